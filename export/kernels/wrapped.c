/* A position that goes on at the other end of `size` elements, as often as needed. */
#ifndef KERNEL_WRAPPED
#define KERNEL_WRAPPED

static int wrapped(int at, int size) { return (at % size + size) % size; }

#endif /* KERNEL_WRAPPED */
