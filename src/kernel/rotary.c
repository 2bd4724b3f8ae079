/* Rotary kernels; compiled once per instruction set. */
#include "kernel/rotary.h"
#include "kernel/vec.h"

/* (a, b) becomes (a cos - b sin, b cos + a sin). */
VF_INLINE void turn_pair(vf *a, vf *b, vf cosine, vf sine)
{
    vf first = vf_fnma(*b, sine, vf_mul(*a, cosine));
    *b = vf_fma(*a, sine, vf_mul(*b, cosine));
    *a = first;
}

static void halves(float *y, const float *x, const float *turn, size_t n, float sign)
{
    vf s = vf_set1(sign);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf a = vf_load(x + i), b = vf_load(x + n + i);
        turn_pair(&a, &b, vf_load(turn + i), vf_mul(s, vf_load(turn + n + i)));
        vf_store(y + i, a);
        vf_store(y + n + i, b);
    }
    if (i < n) {
        size_t left = n - i;
        vf a = vf_load_tail(x + i, left), b = vf_load_tail(x + n + i, left);
        turn_pair(&a, &b, vf_load_tail(turn + i, left), vf_mul(s, vf_load_tail(turn + n + i, left)));
        vf_store_tail(y + i, a, left);
        vf_store_tail(y + n + i, b, left);
    }
}

static void pairs(float *y, const float *x, const float *turn, size_t n, float sign)
{
    vf s = vf_set1(sign);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf a, b, low, high;
        vf_unzip(vf_load(x + 2 * i), vf_load(x + 2 * i + VF_LANES), &a, &b);
        turn_pair(&a, &b, vf_load(turn + i), vf_mul(s, vf_load(turn + n + i)));
        vf_zip(a, b, &low, &high);
        vf_store(y + 2 * i, low);
        vf_store(y + 2 * i + VF_LANES, high);
    }
    for (; i < n; i++) {
        float a = x[2 * i], b = x[2 * i + 1], cosine = turn[i], sine = sign * turn[n + i];
        y[2 * i] = a * cosine - b * sine;
        y[2 * i + 1] = b * cosine + a * sine;
    }
}

const mica_rotary_kernels VF_SYMBOL(mica_rotary_kernels) = {.halves = halves, .pairs = pairs};
