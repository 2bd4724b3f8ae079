/* Every primitive of vec.h and function of vmath.h as plain functions, one table per instruction set. */
#ifndef MICA_TESTS_KERNEL_ISA_PROBE_H
#define MICA_TESTS_KERNEL_ISA_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What goes in and what may come out of a primitive, besides what scalar says. */
typedef enum probe_kind {
    PROBE_EXACT,      /* the same bits; one NaN is as good as another */
    PROBE_ORDER,      /* the sign of a zero is free */
    PROBE_NAN_IN_B,   /* as PROBE_ORDER, and anything where only a is NaN */
    PROBE_FITS_INT,   /* a is a number that an int32_t can hold */
    PROBE_EXPONENT,   /* a is from -126 to 127 */
    PROBE_MODERATE,   /* no product of a and b over- or underflows */
    PROBE_FUSED,      /* a * b + c */
    PROBE_FUSED_MINUS /* c - a * b */
} probe_kind;

/* One vector: arrays of `lanes` 32-bit words. */
typedef void probe_fn(void *out, const void *a, const void *b, const void *c);
typedef struct probe_entry {
    const char *name;
    probe_kind kind;
    probe_fn *run;
} probe_entry;

/* Any number of elements. */
typedef void probe_map1(float *dst, const float *x, size_t n);
typedef void probe_map2(float *dst, const float *x, const float *y, size_t n);
typedef struct probe_function {
    const char *name;
    probe_map1 *run;
} probe_function;

typedef struct probe_table {
    const char *isa;
    size_t lanes;
    bool has_fma;

    const probe_entry *entries;
    size_t entry_count;

    const probe_function *functions;
    size_t function_count;
    probe_map2 *pow;

    void (*load_tail)(float *out, const float *p, size_t n);                  /* out: a whole vector */
    void (*load_where)(float *out, const float *p, size_t first, size_t end); /* lanes `first` to `end` - 1 */
    void (*store_tail)(float *p, const float *in, size_t n);                  /* in: a whole vector */
    void (*vi_load_tail)(int32_t *out, const int32_t *p, size_t n);
    void (*vi_store_tail)(int32_t *p, const int32_t *in, size_t n);
    void (*stream)(float *p, const float *in);
    void (*gather)(float *out, const float *p, ptrdiff_t stride);
    void (*scatter)(float *p, ptrdiff_t stride, const float *in);
    float (*sum)(const float *in);
    void (*sums)(float *out, const float *in); /* in: a whole vector for each lane of out */
    float (*hmin)(const float *in);
    float (*hmax)(const float *in);
    /* Bit 0: lane i of vm_first(n) is set; bit 1: vm_any; bit 2: vm_all. -1: vm_store_bytes says otherwise. */
    int (*first)(size_t n, size_t i);
    void (*from_f16)(float *dst, const uint16_t *src, size_t n);
    void (*to_f16)(uint16_t *dst, const float *src, size_t n);
    void (*from_bf16)(float *dst, const uint16_t *src, size_t n);
    void (*to_bf16)(uint16_t *dst, const float *src, size_t n);
} probe_table;

/* Those that this machine can run, scalar first; returns how many. */
#define PROBE_MAX 4
size_t probe_tables(const probe_table *tables[PROBE_MAX]);

#endif
