/* The first and the last + 1 of the taps 0 to count - 1, a dilation apart from `at` on, that lie within [0, size). */
#ifndef KERNEL_CONV_RANGE
#define KERNEL_CONV_RANGE

static void conv_range(int *first, int *end, int at, int dilation, int count, int size)
{
    *first = at < 0 ? (-at + dilation - 1) / dilation : 0;
    *end = at < size ? (size - at + dilation - 1) / dilation : 0;
    *end = *end < count ? *end : count;
}

#endif /* KERNEL_CONV_RANGE */
