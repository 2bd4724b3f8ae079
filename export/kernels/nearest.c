/* A position, or that of the first or last of `size` elements if it lies beyond. */
#ifndef KERNEL_NEAREST
#define KERNEL_NEAREST

static int nearest(int at, int size) { return at < 0 ? 0 : at >= size ? size - 1 : at; }

#endif /* KERNEL_NEAREST */
