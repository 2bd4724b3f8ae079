/* A plane of an image: it may have a border around it, so a row may be longer than its columns. */
struct plane {
    int rows, columns;
    int stride, plane; /* floats from row to row, and to the plane of the next channel */
};
