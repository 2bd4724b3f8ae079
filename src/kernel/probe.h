/* Probes: the peak rates of this machine, as a reference for the benchmarks. */
#ifndef MICA_SRC_KERNEL_PROBE_H
#define MICA_SRC_KERNEL_PROBE_H

#include <stddef.h>
#include <stdint.h>

typedef struct mica_probe_kernels {
    /* Multiply-adds at full rate: `rounds` rounds of `flops_per_round` operations that wait for no memory.
     * Returns a number that depends on all of them. */
    float (*multiply_add)(size_t rounds);
    size_t flops_per_round;

    /* The same for products of bytes that are added in 32-bit integers. */
    int32_t (*multiply_bytes)(size_t rounds);
    size_t byte_ops_per_round;

    void (*copy)(float *dst, const float *src, size_t n); /* no overlap */
    float (*read)(const float *src, size_t n);            /* returns a number that depends on all of them */
} mica_probe_kernels;

#endif
