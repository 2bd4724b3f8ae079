/* A position reflected at the first and the last of `size` elements, which are not repeated. */
#ifndef KERNEL_REFLECT
#define KERNEL_REFLECT

static int reflect(int at, int size)
{
    at = at < 0 ? -at : at;
    return at >= size ? 2 * (size - 1) - at : at;
}

#endif /* KERNEL_REFLECT */
