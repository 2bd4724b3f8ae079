/* Loops whose counts are constants, written out by the compiler, so that arrays become registers. Others than GCC do
 * so by themselves. */
#if defined __GNUC__ && !defined __clang__
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif
