/* Patterns of normalizations that are written out. */
#include <math.h>

#include "onnx/fuse.h"

/* Whether the node is a mean over the last axis alone, which stays. */
static bool means_last(mica_onnx_importing *n, const mica_onnx_match *m, char letter)
{
    mica_onnx_importing mean = mica_onnx_as_node(n, m, letter);
    int64_t axes[MICA_MAX_RANK];
    int rank = mica_onnx_shape(n, mean.in[0])->rank;
    int count = mean.ins > 1 && mean.in[1] != 0
                    ? mica_onnx_known_ints(&mean, mean.in[1], "axes", axes, MICA_MAX_RANK)
                    : mica_onnx_int_list(&mean, "axes", axes, MICA_MAX_RANK);
    return !mean.failed && count == 1 && (axes[0] == -1 || axes[0] == rank - 1) &&
           mica_onnx_int(&mean, "keepdims", 1) != 0;
}

/* Whether it has one number for each element along x's last axis. */
static bool is_along_last(mica_onnx_importing *n, mica_onnx_ref ref, mica_onnx_ref x)
{
    const mica_tensor *t = mica_onnx_shape(n, ref), *shape = mica_onnx_shape(n, x);
    return ref == 0 || (t->dtype == MICA_F32 && t->rank == 1 && t->dim[0] == shape->dim[shape->rank - 1]);
}

static bool may_normalize(mica_onnx_importing *n, const mica_onnx_match *m, float *eps)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x');
    double number;
    if (!mica_onnx_is_f32(n, x) || mica_onnx_shape(n, x)->rank < 1 || !means_last(n, m, 'v') ||
        !mica_onnx_is_number(n, mica_onnx_matched(m, 'e'), &number) || !(number > 0))
        return false;
    *eps = (float)number;
    return is_along_last(n, mica_onnx_matched(m, 'g'), x) && is_along_last(n, mica_onnx_matched(m, 'b'), x);
}

/* Without gamma there can be no beta. */
static bool layer_norm(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_norm_opts opts = {0};
    mica_onnx_ref in[] = {mica_onnx_matched(m, 'x'), mica_onnx_matched(m, 'g'), mica_onnx_matched(m, 'b')};
    if (!may_normalize(n, m, &opts.eps) || !means_last(n, m, 'u'))
        return false;
    mica_onnx_give(n, 0, mica_onnx_op(n, "layer_norm", in, 3, &opts));
    return true;
}

static bool rms_norm(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_norm_opts opts = {0};
    mica_onnx_ref in[] = {mica_onnx_matched(m, 'x'), mica_onnx_matched(m, 'g')};
    if (!may_normalize(n, m, &opts.eps))
        return false;
    mica_onnx_give(n, 0, mica_onnx_op(n, "rms_norm", in, 2, &opts));
    return true;
}

/* The mean of each plane of [N, C, H, W]. */
static bool global_mean(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_importing mean = mica_onnx_as_node(n, m, 'v');
    mica_onnx_ref x = mica_onnx_matched(m, 'x'), given = mica_onnx_matched(m, 'a');
    int64_t axes[MICA_MAX_RANK];
    int count = given != 0 ? mica_onnx_known_ints(&mean, given, "axes", axes, MICA_MAX_RANK)
                           : mica_onnx_int_list(&mean, "axes", axes, MICA_MAX_RANK);
    if (count != 2 || !mica_onnx_is_f32(n, x) || mica_onnx_shape(n, x)->rank != 4)
        return false;
    int64_t first = axes[0] < 0 ? axes[0] + 4 : axes[0], second = axes[1] < 0 ? axes[1] + 4 : axes[1];
    if (first + second != 5 || first * second != 6) /* 2 and 3 */
        return false;
    mica_global_pool_opts opts = {.keep = mica_onnx_int(&mean, "keepdims", 1) != 0};
    mica_onnx_give(n, 0, mica_onnx_op1(n, "global_avg_pool", x, &opts));
    return true;
}

/* clang-format off */
#define CENTRED        "Sub(x,u:ReduceMean(x,a?))"
#define SQUARED        "Pow(" CENTRED ",2)"
#define MULTIPLIED     "Mul(" CENTRED "," CENTRED ")"
#define ROOT(square)   "Sqrt(Add(v:ReduceMean(" square ",a?),#e))"
#define NORMED(square) "Div(" CENTRED "," ROOT(square) ")"

#define LAYER_NORM(square)                            \
    {"Add(Mul(" NORMED(square) ",g),b)", layer_norm}, \
    {"Mul(" NORMED(square) ",g)", layer_norm},        \
    {NORMED(square), layer_norm}
#define RMS_NORM(square)                                      \
    {"Mul(Mul(x,Reciprocal(" ROOT(square) ")),g)", rms_norm}, \
    {"Mul(Mul(x,Div(1," ROOT(square) ")),g)", rms_norm},      \
    {"Mul(Div(x," ROOT(square) "),g)", rms_norm}

const mica_onnx_pattern mica_onnx_norm_patterns[] = {
    LAYER_NORM(SQUARED),
    LAYER_NORM(MULTIPLIED),
    RMS_NORM("Pow(x,2)"),
    RMS_NORM("Mul(x,x)"),
    {"v:ReduceMean(x,#a?)", global_mean},
    {NULL, NULL},
};
/* clang-format on */
