/* Normalizations, as they are in inference. */
#include "onnx/write.h"

enum { X, GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR };

static float eps_of(const mica_onnx_writing *c)
{
    float eps = ((const mica_norm_opts *)c->opts)->eps;
    return eps != 0.0f ? eps : 1e-5f;
}

static bool has(const mica_onnx_writing *c, int in) { return in < c->node->ins && c->node->in[in] != NONE; }

/* [count], the same number in all. */
static mica_onnx_term constants(mica_onnx_writing *c, mica_index count, float value)
{
    return mica_onnx_node2(c, NEW, "Expand", mica_onnx_put_number(c, value), mica_onnx_put_int(c, count));
}

static mica_onnx_term or_constants(mica_onnx_writing *c, int in, mica_index count, float value)
{
    return has(c, in) ? IN(in) : constants(c, count, value);
}

/* ---- Over the last axes ---- */

static int axes_of(const mica_onnx_writing *c)
{
    int axes = ((const mica_norm_opts *)c->opts)->axes;
    return axes != 0 ? axes : 1;
}

static bool is_layer_norm(mica_onnx_writing *c) { return has(c, GAMMA); }

static void layer_norm(mica_onnx_writing *c)
{
    mica_onnx_term gamma = has(c, GAMMA) ? IN(GAMMA) : 0;
    mica_onnx_dim dims[MICA_MAX_RANK];
    int axes = axes_of(c);
    for (int i = 0; gamma == 0 && i < axes; i++)
        dims[i] = mica_onnx_dim_of(c, X, c->in[X]->rank - axes + i);
    if (gamma == 0)
        gamma = mica_onnx_node2(c, NEW, "Expand", mica_onnx_put_number(c, 1.0f),
                                mica_onnx_put_dims(c, dims, axes));
    mica_onnx_put(c, OUT(0), "LayerNormalization", TERMS(IN(X), gamma, has(c, BETA) ? IN(BETA) : 0),
                  ATTRS(mica_onnx_int_attr("axis", -axes), mica_onnx_float_attr("epsilon", eps_of(c))));
}

/* x / sqrt(mean of x^2 + eps) */
static void rms_norm(mica_onnx_writing *c)
{
    int64_t axes[MICA_MAX_RANK];
    int count = axes_of(c);
    for (int i = 0; i < count; i++)
        axes[i] = i - count;
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Mul", IN(X), IN(X));
    t = mica_onnx_put_reduce(c, NEW, "ReduceMean", t, axes, count, true);
    t = mica_onnx_node2(c, NEW, "Add", t, mica_onnx_put_number(c, eps_of(c)));
    t = mica_onnx_node1(c, NEW, "Sqrt", t, NO_ATTRS);
    t = mica_onnx_node2(c, has(c, GAMMA) ? NEW : OUT(0), "Div", IN(X), t);
    if (has(c, GAMMA))
        mica_onnx_node2(c, OUT(0), "Mul", t, IN(GAMMA));
}

/* ---- Of channels ---- */

static bool is_instance_norm(mica_onnx_writing *c) { return has(c, GAMMA) && has(c, BETA); }

static void instance_norm(mica_onnx_writing *c)
{
    mica_index channels = c->in[X]->dim[1];
    if (c->in[X]->rank < 3)
        mica_onnx_refuse(c, "of rank 2");
    mica_onnx_term gamma = or_constants(c, GAMMA, channels, 1.0f),
                   beta = or_constants(c, BETA, channels, 0.0f);
    mica_onnx_put(c, OUT(0), "InstanceNormalization", TERMS(IN(X), gamma, beta),
                  ATTRS(mica_onnx_float_attr("epsilon", eps_of(c))));
}

/* A number for each channel, [C, 1, ...], to broadcast over x. */
static mica_onnx_term by_channel(mica_onnx_writing *c, int in)
{
    int64_t dims[MICA_MAX_RANK];
    int rank = c->in[X]->rank - 1;
    for (int i = 0; i < rank; i++)
        dims[i] = i == 0 ? -1 : 1;
    return mica_onnx_node2(c, NEW, "Reshape", IN(in), mica_onnx_put_ints(c, dims, rank));
}

/* Each group as one channel. */
static void group_norm(mica_onnx_writing *c)
{
    int groups = ((const mica_norm_opts *)c->opts)->groups;
    groups = groups != 0 ? groups : 1;
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Reshape", IN(X),
                                       mica_onnx_put_ints(c, (int64_t[]){0, groups, -1}, 3));
    mica_onnx_term ones = constants(c, groups, 1.0f), zeros = constants(c, groups, 0.0f);
    t = mica_onnx_put(c, NEW, "InstanceNormalization", TERMS(t, ones, zeros),
                      ATTRS(mica_onnx_float_attr("epsilon", eps_of(c))));
    bool scaled = has(c, GAMMA), shifted = has(c, BETA);
    mica_onnx_term shape = mica_onnx_node1(c, NEW, "Shape", IN(X), NO_ATTRS);
    t = mica_onnx_node2(c, scaled || shifted ? NEW : OUT(0), "Reshape", t, shape);
    if (scaled)
        t = mica_onnx_node2(c, shifted ? NEW : OUT(0), "Mul", t, by_channel(c, GAMMA));
    if (shifted)
        mica_onnx_node2(c, OUT(0), "Add", t, by_channel(c, BETA));
}

static void batch_norm(mica_onnx_writing *c)
{
    float momentum = ((const mica_norm_opts *)c->opts)->momentum;
    mica_index channels = c->in[X]->dim[1];
    if (!has(c, RUNNING_MEAN) || !has(c, RUNNING_VAR))
        mica_onnx_refuse(c, "without running statistics");
    mica_onnx_term gamma = or_constants(c, GAMMA, channels, 1.0f),
                   beta = or_constants(c, BETA, channels, 0.0f);
    mica_onnx_put(c, OUT(0), "BatchNormalization",
                  TERMS(IN(X), gamma, beta, IN(RUNNING_MEAN), IN(RUNNING_VAR)),
                  ATTRS(mica_onnx_float_attr("epsilon", eps_of(c)),
                        mica_onnx_float_attr("momentum", 1.0f - (momentum != 0.0f ? momentum : 0.1f))));
}

const mica_onnx_row mica_onnx_write_norm[] = {
    {&mica_op_layer_norm, layer_norm, is_layer_norm, true, false},
    OWN(rms_norm, rms_norm),
    OWN(group_norm, group_norm),
    {&mica_op_instance_norm, instance_norm, is_instance_norm, true, false},
    PLAIN(batch_norm, batch_norm),
    END_OF_ROWS};
