/* Kernels whose sizes are known where they are called become code of their own there: faster, and larger. Where a net
 * has many such calls, INT8_EACH is defined as nothing, and they share one. */
#ifndef KERNEL_INT8_INLINE
#define KERNEL_INT8_INLINE

#ifdef __GNUC__
#define INT8_PART inline __attribute__((always_inline))
#else
#define INT8_PART inline
#endif
#ifndef INT8_EACH
#define INT8_EACH INT8_PART
#endif

#endif /* KERNEL_INT8_INLINE */
