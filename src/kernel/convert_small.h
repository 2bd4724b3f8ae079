/* Floats of eight and four bits, one value at a time: sign, exponent and fraction as their names say.
 *
 *   fn      no infinity; NaN is the largest code
 *   fnuz    no infinity, no negative zero, whose code is NaN
 *   e5m2    as IEEE 754 would have it
 *   e8m0    powers of two from 2^-127 on, without sign or zero; the last code is NaN
 *   e2m1    finite values only; it lies in the lower half of a byte */
#ifndef MICA_SRC_KERNEL_CONVERT_SMALL_H
#define MICA_SRC_KERNEL_CONVERT_SMALL_H

#include <mica/tensor.h>

#include "kernel/vec.h"

typedef struct small_format {
    int fraction; /* bits */
    int bias;
    uint8_t sign;    /* its bit */
    uint8_t largest; /* code of the largest finite value */
    uint8_t beyond;  /* what follows it: an infinity or NaN; 0: nothing, it saturates */
    uint8_t nan;     /* 0: none */
    bool no_minus;   /* no negative zero, and NaN has no sign */
} small_format;

VF_INLINE small_format small_format_of(mica_dtype dtype)
{
    switch (dtype) {
    case MICA_F8E4M3FN:
        return (small_format){3, 7, 0x80, 0x7e, 0x7f, 0x7f, false};
    case MICA_F8E4M3FNUZ:
        return (small_format){3, 8, 0x80, 0x7f, 0x80, 0x80, true};
    case MICA_F8E5M2:
        return (small_format){2, 15, 0x80, 0x7b, 0x7c, 0x7f, false};
    case MICA_F8E5M2FNUZ:
        return (small_format){2, 16, 0x80, 0x7f, 0x80, 0x80, true};
    default:
        return (small_format){1, 1, 0x08, 0x07, 0, 0, false}; /* f4e2m1 */
    }
}

VF_INLINE float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

VF_INLINE uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

VF_INLINE float power_of_two(int exponent) { return float_of_bits((uint32_t)(exponent + 127) << 23); }

VF_INLINE float small_decode(small_format f, uint8_t code)
{
    uint8_t size = code & (uint8_t)(f.sign - 1);
    if (f.nan != 0 && (f.no_minus ? code == f.nan : size > f.beyond || size == f.nan))
        return float_of_bits(0x7fc00000u | (uint32_t)(f.no_minus ? 0 : code & f.sign) << 24);
    float value;
    int exponent = size >> f.fraction, fraction = size & ((1 << f.fraction) - 1);
    if (f.beyond == 0x7c && size == f.beyond)
        value = float_of_bits(0x7f800000u);
    else if (exponent == 0)
        value = (float)fraction * power_of_two(1 - f.bias - f.fraction);
    else
        value = (float)(fraction + (1 << f.fraction)) * power_of_two(exponent - f.bias - f.fraction);
    return code & f.sign ? -value : value;
}

VF_INLINE uint8_t small_encode(small_format f, float x, bool overflow)
{
    uint32_t bits = bits_of_float(x), size = bits & 0x7fffffffu;
    uint8_t sign = bits >> 31 != 0 ? f.sign : 0;
    if (size > 0x7f800000u)
        return f.no_minus || f.nan == 0 ? f.nan : (uint8_t)(sign | f.nan);
    uint32_t code = UINT32_MAX; /* of infinity */
    if (size < 0x7f800000u) {
        int exponent = (int)(size >> 23) - 127, least = 1 - f.bias;
        if (exponent < least)
            exponent = least;
        /* In units of the last place, exactly; adding and taking away 1.5 * 2^52 rounds to nearest even. */
        double units = (double)float_of_bits(size) * (double)power_of_two(f.fraction - exponent);
        uint32_t whole = (uint32_t)((units + 0x1.8p52) - 0x1.8p52);
        code = whole + ((uint32_t)(exponent - least) << f.fraction);
    }
    if (code > f.largest)
        code = overflow && f.beyond != 0 ? f.beyond : f.largest;
    if (f.no_minus && (code == 0 || code == f.nan))
        return (uint8_t)code;
    return (uint8_t)(sign | code);
}

/* The sign is ignored. What lies below 2^-127, and zero, becomes that; with `overflow` NaN. */
VF_INLINE uint8_t exponent_encode(float x, mica_cast_rounding round, bool overflow)
{
    uint32_t size = bits_of_float(x) & 0x7fffffffu, code = size >> 23, rest = size & 0x7fffffu;
    if (size > 0x7f800000u || (size < 0x400000u && overflow))
        return 0xff;
    bool up = round == MICA_ROUND_UP ? rest > 0 : round == MICA_ROUND_NEAREST && rest >= 0x400000u;
    if (code == 0) /* in units of 2^-149, without a leading one: 2^-127 is 0x400000 */
        up = round == MICA_ROUND_UP ? rest > 0x400000u : round == MICA_ROUND_NEAREST && rest >= 0x600000u;
    code += up;
    return (uint8_t)(code < 0xff ? code : overflow ? 0xff : 0xfe);
}

VF_INLINE float exponent_decode(uint8_t code)
{
    return float_of_bits(code == 0xff ? 0x7fc00000u : code == 0 ? 0x400000u : (uint32_t)code << 23);
}

static void small_to_f32(float *out, const uint8_t *in, size_t n, mica_dtype dtype)
{
    small_format f = small_format_of(dtype);
    for (size_t i = 0; i < n; i++)
        out[i] = dtype == MICA_F8E8M0 ? exponent_decode(in[i]) : small_decode(f, in[i]);
}

static void small_from_f32(uint8_t *out, const float *in, size_t n, mica_dtype dtype,
                           const mica_cast_opts *opts)
{
    small_format f = small_format_of(dtype);
    for (size_t i = 0; i < n; i++)
        out[i] = dtype == MICA_F8E8M0 ? exponent_encode(in[i], opts->round, opts->overflow)
                                      : small_encode(f, in[i], opts->overflow);
}

#endif
