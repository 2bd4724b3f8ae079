/* Signals: Fourier transforms, as products with tables of sines and cosines, and windows.
 *
 * A complex number is two elements, so a transform of n numbers to m is one product of a row of n (real) or 2 n
 * elements with a table of 2 m columns:
 *
 *     real part       cos   sin
 *     imaginary part -sin   cos      of the angle -2 pi j k / n; of the inverse, +2 pi j k / n, all divided by n */
#include <math.h>
#include <string.h>

#include "onnx/moves.h"

#define TAU 6.283185307179586476925

typedef struct transform {
    int64_t length;   /* n */
    mica_index given; /* how many of the n are there; the others are 0 */
    mica_index bins;  /* m */
    bool complex, inverse;
    bool plain; /* the inverse is not divided by n */
} transform;

/* [given * (1 or 2), 2 * bins], in f32. */
static mica_onnx_ref table_of(mica_onnx_importing *n, const transform *t)
{
    mica_index dims[] = {t->given * (t->complex ? 2 : 1), 2 * t->bins};
    void *data;
    mica_onnx_ref ref = mica_onnx_fresh(n, MICA_F32, 2, dims, &data);
    double scale = t->inverse && !t->plain ? 1.0 / (double)t->length : 1.0;
    float *to = data;
    for (mica_index j = 0; data != NULL && j < t->given; j++)
        for (mica_index k = 0; k < t->bins; k++) {
            int64_t turn = (int64_t)j * k % t->length;
            double angle = (t->inverse ? TAU : -TAU) * (double)turn / (double)t->length;
            float c = (float)(cos(angle) * scale), s = (float)(sin(angle) * scale);
            float *row = to + (t->complex ? 2 * j : j) * dims[1] + 2 * k;
            row[0] = c;
            row[1] = s;
            if (t->complex) {
                row[dims[1]] = -s;
                row[dims[1] + 1] = c;
            }
        }
    return ref;
}

/* x [..., given, 1 or 2] times the table: [..., bins, 2]. */
static mica_onnx_ref apply(mica_onnx_importing *n, mica_onnx_ref x, const transform *t, mica_onnx_ref table)
{
    mica_tensor shape = *mica_onnx_shape(n, x);
    mica_index rows = 1;
    for (int k = 0; k < shape.rank - 2; k++)
        rows *= shape.dim[k];
    x = mica_onnx_reshape(n, x, 2, (mica_index[]){rows, t->given * (t->complex ? 2 : 1)});
    mica_onnx_ref y = mica_onnx_op2(n, "matmul", x, table, NULL);
    shape.dim[shape.rank - 2] = t->bins;
    shape.dim[shape.rank - 1] = 2;
    return mica_onnx_reshape(n, y, shape.rank, shape.dim);
}

/* ---- Two steps: a length that is p q takes p + q products for each number, not p q ----
 *
 * With j = q a + b and k = p d + c, the angle of j k is that of a c in p, of b c in p q, and of b d in q:
 *
 *     [p, q]  transform over a: [c, b]  turned by b c / (p q)  transform over b: [c, d]  transposed: [d, c] */

/* The largest divisor of n up to its root: 1 for a prime. */
static int64_t divisor_of(int64_t n)
{
    int64_t best = 1;
    for (int64_t p = 2; p * p <= n; p++)
        best = n % p == 0 ? p : best;
    return best;
}

/* z [..., q, p, 2], each number turned by its angle. */
static mica_onnx_ref turn(mica_onnx_importing *n, mica_onnx_ref z, mica_index p, mica_index q, bool inverse)
{
    mica_index dims[] = {q, p, 1};
    void *c, *s;
    int last = mica_onnx_shape(n, z)->rank - 1;
    mica_onnx_ref cosines = mica_onnx_fresh(n, MICA_F32, 3, dims, &c),
                  sines = mica_onnx_fresh(n, MICA_F32, 3, dims, &s);
    for (mica_index i = 0; !n->failed && i < p * q; i++) {
        mica_index b = i / p;
        double angle = (inverse ? TAU : -TAU) * (double)b * (double)(i - b * p) / (double)(p * q);
        ((float *)c)[i] = (float)cos(angle);
        ((float *)s)[i] = (float)sin(angle);
    }
    mica_onnx_ref re = mica_onnx_slice(n, z, last, 0, 1, 1), im = mica_onnx_slice(n, z, last, 1, 2, 1);
    mica_onnx_ref parts[] = {mica_onnx_op2(n, "sub", mica_onnx_op2(n, "mul", re, cosines, NULL),
                                           mica_onnx_op2(n, "mul", im, sines, NULL), NULL),
                             mica_onnx_op2(n, "add", mica_onnx_op2(n, "mul", re, sines, NULL),
                                           mica_onnx_op2(n, "mul", im, cosines, NULL), NULL)};
    return mica_onnx_join(n, parts, 2, last);
}

/* A transform over the last but one axis of [rows, a, b, 2], without a factor. */
static mica_onnx_ref step(mica_onnx_importing *n, mica_onnx_ref x, mica_index length, bool inverse)
{
    transform t = {.length = length,
                   .given = length,
                   .bins = length,
                   .complex = true,
                   .inverse = inverse,
                   .plain = true};
    return apply(n, x, &t, table_of(n, &t));
}

/* x [..., n, 2] of complex numbers, all of them. */
static mica_onnx_ref in_two_steps(mica_onnx_importing *n, mica_onnx_ref x, const transform *t,
                                  int64_t divisor)
{
    static const int swapped[] = {0, 2, 1, 3};
    mica_tensor shape = *mica_onnx_shape(n, x);
    mica_index p = (mica_index)divisor, q = (mica_index)(t->length / divisor), rows = 1;
    for (int k = 0; k < shape.rank - 2; k++)
        rows *= shape.dim[k];
    x = mica_onnx_permute(n, mica_onnx_reshape(n, x, 4, (mica_index[]){rows, p, q, 2}), swapped);
    x = turn(n, step(n, x, p, t->inverse), p, q, t->inverse);
    x = step(n, mica_onnx_permute(n, x, swapped), q, t->inverse);
    x = mica_onnx_reshape(n, mica_onnx_permute(n, x, swapped), shape.rank, shape.dim);
    return t->inverse ? mica_onnx_op1(n, "scale", x, &(mica_scalar_opts){(float)(1.0 / (double)t->length)})
                      : x;
}

/* ---- DFT ---- */

/* The axis becomes the last but one, or comes back from there. */
static mica_onnx_ref move_axis(mica_onnx_importing *n, mica_onnx_ref x, int axis, bool back)
{
    int rank = mica_onnx_shape(n, x)->rank, axes[MICA_MAX_RANK], from = back ? rank - 2 : axis,
        to = back ? axis : rank - 2, used = 0;
    if (from == to)
        return x;
    for (int k = 0; k < rank; k++)
        if (k != from) {
            if (used == to)
                axes[used++] = from;
            axes[used++] = k;
        }
    return mica_onnx_permute(n, x, axes);
}

static void dft_along(mica_onnx_importing *n, int64_t along)
{
    mica_onnx_ref x = mica_onnx_cast(n, n->in[0], MICA_F32);
    const mica_tensor shape = *mica_onnx_shape(n, x);
    int axis = mica_onnx_axis(n, along, x);
    bool onesided = mica_onnx_int(n, "onesided", 0) != 0;
    transform t = {.inverse = mica_onnx_int(n, "inverse", 0) != 0};
    if (n->failed || shape.rank < 2 || axis == shape.rank - 1 || shape.dim[shape.rank - 1] > 2) {
        (void)mica_onnx_bad(n, "axis %d of a tensor of rank %d with %td parts of a number", axis, shape.rank,
                            shape.rank > 0 ? shape.dim[shape.rank - 1] : 0);
        return;
    }
    t.complex = shape.dim[shape.rank - 1] == 2;
    t.length = shape.dim[axis];
    if (n->ins > 1 && n->in[1] != 0 && mica_onnx_known_ints(n, n->in[1], "dft_length", &t.length, 1) != 1)
        return;
    if (t.length < 1 || t.length > INT32_MAX || (onesided && (t.complex || t.inverse))) {
        (void)mica_onnx_unsupported(n, "a transform of length %lld%s", (long long)t.length,
                                    onesided ? ", one-sided, of complex numbers or inverse" : "");
        return;
    }
    mica_onnx_doubt_axis(n, x, axis);
    t.given = shape.dim[axis] < t.length ? shape.dim[axis] : (mica_index)t.length;
    t.bins = onesided ? (mica_index)(t.length / 2 + 1) : (mica_index)t.length;
    if (t.given < shape.dim[axis])
        x = mica_onnx_slice(n, x, axis, 0, t.given, 1);
    x = move_axis(n, x, axis, false);
    int64_t divisor = t.complex && t.given == t.length ? divisor_of(t.length) : 1;
    mica_onnx_ref y = divisor > 1 ? in_two_steps(n, x, &t, divisor) : apply(n, x, &t, table_of(n, &t));
    mica_onnx_give_like(n, 0, move_axis(n, y, axis, true), n->in[0]);
}

static void dft_17(mica_onnx_importing *n) { dft_along(n, mica_onnx_int(n, "axis", 1)); }

static void dft_20(mica_onnx_importing *n)
{
    int64_t axis = -2;
    if (n->ins > 2 && n->in[2] != 0 && mica_onnx_known_ints(n, n->in[2], "axis", &axis, 1) != 1)
        return;
    dft_along(n, axis);
}

/* ---- STFT ---- */

/* Frames [B, frames, length, 1 or 2] of a signal [B, L, 1 or 2]. */
static mica_onnx_ref cut_frames(mica_onnx_importing *n, mica_onnx_ref x, int64_t step, int64_t length)
{
    mica_index whole = mica_onnx_shape(n, x)->dim[1];
    if (step < 1 || length < 1 || length > whole)
        return mica_onnx_bad(n, "frames of %lld every %lld of %td samples", (long long)length,
                             (long long)step, whole);
    mica_onnx_doubt_axis(n, x, 1);
    mica_index dims[] = {(whole - (mica_index)length) / (mica_index)step + 1, (mica_index)length};
    void *data;
    mica_onnx_ref index = mica_onnx_fresh(n, MICA_I64, 2, dims, &data);
    for (mica_index i = 0; data != NULL && i < dims[0]; i++)
        for (mica_index j = 0; j < dims[1]; j++)
            ((int64_t *)data)[i * dims[1] + j] = (int64_t)i * step + j;
    return mica_onnx_op2(n, "take", x, index, &(mica_axis_opts){.axis = 1});
}

static void stft(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_cast(n, n->in[0], MICA_F32), window = n->ins > 2 ? n->in[2] : 0;
    int64_t step, length = 0;
    if (mica_onnx_shape(n, x)->rank == 2)
        x = mica_onnx_add_axis(n, x, 2);
    const mica_tensor shape = *mica_onnx_shape(n, x);
    if (mica_onnx_known_ints(n, n->in[1], "frame_step", &step, 1) != 1)
        return;
    if (n->ins > 3 && n->in[3] != 0 && mica_onnx_known_ints(n, n->in[3], "frame_length", &length, 1) != 1)
        return;
    if (length == 0 && window != 0)
        length = mica_onnx_shape(n, window)->dim[0];
    bool complex = shape.rank == 3 && shape.dim[2] == 2, onesided = mica_onnx_int(n, "onesided", 1) != 0;
    if (shape.rank != 3 || shape.dim[2] > 2 || (complex && onesided)) {
        (void)mica_onnx_bad(n, "a signal of rank %d%s", shape.rank,
                            complex ? ", complex, but one-sided" : "");
        return;
    }
    x = cut_frames(n, x, step, length);
    transform t = {.length = length, .given = (mica_index)length, .complex = complex};
    t.bins = onesided ? (mica_index)(length / 2 + 1) : (mica_index)length;
    if (window != 0 && !n->failed) {
        if (mica_onnx_shape(n, window)->rank != 1 || mica_onnx_shape(n, window)->dim[0] != length) {
            (void)mica_onnx_unsupported(n, "a window of another length than the frames");
            return;
        }
        window = mica_onnx_add_axis(n, mica_onnx_cast(n, window, MICA_F32), 1);
        x = mica_onnx_op2(n, "mul", x, window, NULL);
    }
    if (!n->failed)
        mica_onnx_give_like(n, 0, apply(n, x, &t, table_of(n, &t)), n->in[0]);
}

/* ---- Windows ---- */

/* a - b cos(2 pi i / n) + c cos(4 pi i / n) */
static void window(mica_onnx_importing *n, double a, double b, double c)
{
    int64_t count;
    mica_dtype dtype = mica_onnx_dtype_of(n, mica_onnx_int(n, "output_datatype", 1));
    if (mica_onnx_known_ints(n, n->in[0], "size", &count, 1) != 1)
        return;
    double length = (double)count - (mica_onnx_int(n, "periodic", 1) != 0 ? 0.0 : 1.0);
    mica_index dims[] = {(mica_index)count};
    void *data;
    mica_onnx_ref ref = mica_onnx_fresh(n, MICA_F64, 1, dims, &data);
    for (mica_index i = 0; data != NULL && i < dims[0]; i++) {
        double angle = length > 0.0 ? TAU * (double)i / length : 0.0;
        ((double *)data)[i] = a - b * cos(angle) + c * cos(2.0 * angle);
    }
    mica_onnx_give(n, 0, mica_onnx_cast(n, ref, dtype));
}

static void hann_window(mica_onnx_importing *n) { window(n, 0.5, 0.5, 0.0); }
static void hamming_window(mica_onnx_importing *n) { window(n, 25.0 / 46.0, 21.0 / 46.0, 0.0); }
static void blackman_window(mica_onnx_importing *n) { window(n, 0.42, 0.5, 0.08); }

/* ---- Mel ---- */

/* The bin of a spectrum where band i of the mel scale begins, or one far behind the last. A mel is
 * 2595 log10(1 + f / 700); any unit does. */
static int64_t bin_of(int64_t i, int64_t bands, double low, double high, int64_t length, int64_t rate)
{
    double from = log(1.0 + low / 700.0), to = log(1.0 + high / 700.0);
    double mel = (double)i * (to - from) / (double)(bands + 2) + from;
    double hertz = 700.0 * (exp(mel) - 1.0);
    return (int64_t)fmin(floor(((double)length + 1.0) * hertz / (double)rate), 0x1p53);
}

static void mel_weight_matrix(mica_onnx_importing *n)
{
    int64_t bands, length, rate;
    if (mica_onnx_known_ints(n, n->in[0], "num_mel_bins", &bands, 1) != 1 ||
        mica_onnx_known_ints(n, n->in[1], "dft_length", &length, 1) != 1 ||
        mica_onnx_known_ints(n, n->in[2], "sample_rate", &rate, 1) != 1)
        return;
    double low = mica_onnx_known_number(n, n->in[3], "lower_edge_hertz");
    double high = mica_onnx_known_number(n, n->in[4], "upper_edge_hertz");
    mica_dtype dtype = mica_onnx_dtype_of(n, mica_onnx_int(n, "output_datatype", 1));
    mica_index dims[] = {(mica_index)(length / 2 + 1), (mica_index)bands};
    if (n->failed || bands < 0 || length < 0 || rate < 1 || !(low >= 0.0) || !(high >= low) || isinf(high)) {
        (void)mica_onnx_bad(n, "%lld bands from %g to %g Hz", (long long)bands, low, high);
        return;
    }
    mica_onnx_ref ref = mica_onnx_zeros(n, MICA_F64, 2, dims);
    double *to = n->failed ? NULL : mica_onnx_shape(n, ref)->data;
    for (int64_t i = 0; to != NULL && i < bands; i++) {
        int64_t from = bin_of(i, bands, low, high, length, rate),
                center = bin_of(i + 1, bands, low, high, length, rate),
                end = bin_of(i + 2, bands, low, high, length, rate);
        for (int64_t j = from; j <= center && j < dims[0]; j++)
            to[j * bands + i] = center > from ? (double)(j - from) / (double)(center - from) : 1.0;
        for (int64_t j = center; j < end && j < dims[0]; j++)
            to[j * bands + i] = (double)(end - j) / (double)(end - center);
    }
    mica_onnx_give(n, 0, n->failed ? 0 : mica_onnx_cast(n, ref, dtype));
}

const mica_onnx_operator mica_onnx_signal_operators[] = {{"DFT", 17, dft_17},
                                                         {"DFT", 20, dft_20},
                                                         {"STFT", 17, stft},
                                                         {"HannWindow", 17, hann_window},
                                                         {"HammingWindow", 17, hamming_window},
                                                         {"BlackmanWindow", 17, blackman_window},
                                                         {"MelWeightMatrix", 17, mel_weight_matrix},
                                                         {NULL, 0, NULL}};
