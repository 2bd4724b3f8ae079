/* The new net: call by call, bytes where they can be. A value may exist as bytes, as floats, or as both. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "int8/convert.h"
#include "node/entry.h"

/* ---- Names and layers ---- */

const char *mica_int8_name_of(const mica_net *net, int value)
{
    const mica_value_info *v = &net->values[value];
    if (v->name != NULL)
        return v->name;
    bool is_layers = v->layer != NONE && net->layers[v->layer].output == value + 1;
    return is_layers ? net->layers[v->layer].name : NULL;
}

typedef struct layer_name {
    char text[512];
} layer_name;

/* That of the call's layer, or where another call has it, with the operation's behind it. */
static layer_name name_of(const mica_int8 *q, int node, const mica_op *op)
{
    layer_name name;
    const mica_net *net = q->net;
    int layer = net->nodes[node].layer;
    const char *own = layer != NONE ? net->layers[layer].name : "call";
    bool ends = layer != NONE && (net->layers[layer].output == net->nodes[node].out[0] + 1 ||
                                  q->step[node].kind == MICA_INT8_PRODUCT);
    (void)snprintf(name.text, sizeof name.text, ends ? "%.400s" : "%.400s.%s", own, op->name);
    for (int k = 2; mica_net_name_taken(q->out, name.text) && k < 10000; k++)
        (void)snprintf(name.text, sizeof name.text, "%.400s.%s_%d", own, op->name, k);
    return name;
}

void mica_int8_begin(mica_int8 *q, int node, const mica_op *op, mica_value input)
{
    layer_name name = name_of(q, node, op);
    mica_net_layer_begin(q->out, op->name, name.text, input);
}

/* ---- Values ---- */

static mica_value floats_of(mica_int8 *q, int value)
{
    if (value == NONE)
        return 0;
    if (q->net->values[value].home != MICA_HOME_PLANNED)
        return mica_int8_lasting(q, value);
    if (q->as_floats[value] == 0 && q->as_bytes[value] != 0)
        q->as_floats[value] = mica_net_call(q->out, NULL, &mica_op_dequantize, &q->as_bytes[value], 1,
                                            &(mica_int8_scale_opts){q->used[value]});
    return q->as_floats[value];
}

static mica_value bytes_of(mica_int8 *q, int value)
{
    if (q->as_bytes[value] == 0) {
        mica_value x = floats_of(q, value);
        q->as_bytes[value] = mica_net_call(q->out, NULL, &mica_op_quantize, &x, 1,
                                           &(mica_int8_scale_opts){q->used[value]});
    }
    return q->as_bytes[value];
}

/* mica_int8_factor for options, whose multiplier is an int: not the same type as int32_t on every processor. */
static bool factor(double ratio, int *multiplier, int *shift)
{
    int32_t number;
    if (!mica_int8_factor(ratio, &number, shift))
        return false;
    *multiplier = (int)number;
    return true;
}

/* The same bytes at another scale. */
static mica_value bytes_at(mica_int8 *q, int value, float scale)
{
    mica_value x = bytes_of(q, value);
    if (q->used[value] == scale)
        return x;
    mica_int8_rescale_opts o = {0};
    if (!factor((double)q->used[value] / (double)scale, &o.multiplier, &o.shift))
        return mica_net_refuse(q->out, MICA_ERR_STATE, "int8: scales %g and %g are too far apart",
                               (double)q->used[value], (double)scale);
    return mica_net_call(q->out, NULL, &mica_op_int8_rescale, &x, 1, &o);
}

/* Whether the caller may look at it: it is an output, or nothing reads it. */
static bool is_seen(const mica_int8 *q, int value)
{
    return mica_int8_is_output(q, value) || (q->readers[value] == 0 && q->net->values[value].number == 0);
}

/* Ends the layer of a value, with floats where the caller looks at it. */
static void end(mica_int8 *q, int value, mica_value bytes)
{
    q->as_bytes[value] = bytes;
    bool floats = is_seen(q, value);
    (void)mica_net_layer_end(q->out, floats ? floats_of(q, value) : bytes);
}

static void note(mica_int8 *q, int node, int value, const mica_op *op)
{
    const mica_net *net = q->net;
    int layer = net->nodes[node].layer;
    q->row[q->rows++] = (mica_int8_compared){
        .value = value, .name = layer != NONE ? net->layers[layer].name : "", .op = op};
}

/* The factor of sums of x that are divided by `count`. */
static bool factor_of(mica_int8 *q, int x, int y, double count, int *multiplier, int *shift)
{
    double ratio = (double)q->used[x] / count / (double)q->used[y];
    if (factor(ratio, multiplier, shift))
        return true;
    (void)mica_net_refuse(q->out, MICA_ERR_STATE, "int8: scales %g and %g are too far apart",
                          (double)q->used[x], (double)q->used[y]);
    return false;
}

/* ---- Calls ---- */

static mica_int8_conv_opts conv_opts(const mica_node *node)
{
    if (node->op == &mica_op_conv1d) {
        const mica_conv1d_opts *o = node->opts;
        return (mica_int8_conv_opts){
            .stride = {0, o->stride}, .pad = {0, o->pad}, .dilation = {0, o->dilation}, .groups = o->groups};
    }
    const mica_conv2d_opts *o = node->opts;
    return (mica_int8_conv_opts){.stride = {o->stride[0], o->stride[1]},
                                 .pad = {o->pad[0], o->pad[1]},
                                 .dilation = {o->dilation[0], o->dilation[1]},
                                 .groups = o->groups};
}

/* Weights are kept values of the new net, and saved with it. */
static void build_product(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    const mica_int8_step *s = &q->step[n];
    bool linear = node->op == &mica_op_linear || node->op == &mica_op_matmul;
    const mica_op *op = linear ? &mica_op_int8_linear : &mica_op_int8_conv2d;
    mica_tensor w = mica_int8_weights_of(q, node);
    mica_index channels = w.dim[0], factors = q->per_tensor ? 1 : channels;
    mica_value in[6] = {bytes_of(q, node->in[0])};
    mica_int8_begin(q, n, op, in[0]);
    in[1] = mica_net_kept(q->out, "weight", MICA_KEPT_STATISTICS, MICA_I8, w.rank, w.dim, 0.0f);
    in[2] = mica_net_kept(q->out, "bias", MICA_KEPT_STATISTICS, MICA_I32, 1, &channels, 0.0f);
    in[3] = mica_net_kept(q->out, "multiplier", MICA_KEPT_STATISTICS, MICA_I32, 1, &factors, 0.0f);
    in[4] = mica_net_kept(q->out, "shift", MICA_KEPT_STATISTICS, MICA_U8, 1, &factors, 1.0f);
    int low, high;
    mica_int8_limits_of(s->activation, q->used[s->end], &low, &high);
    mica_int8_limits limit = {low, high};
    mica_int8_conv_opts o = linear ? (mica_int8_conv_opts){0} : conv_opts(node);
    o.low = low;
    o.high = high;
    int count = 5;
    mica_int8_pack_opts groups = {.groups = o.groups};
    mica_index bytes = q->unpacked ? 0 : mica_int8_packed_bytes(q->ctx, &w, &groups);
    if (bytes > 0)
        in[count++] = mica_net_derived(q->out, "packed", MICA_U8, 1, &bytes, &mica_op_int8_pack, &in[1], 2,
                                       &groups);
    end(q, s->end,
        mica_net_call(q->out, NULL, op, in, count, linear ? (const void *)&limit : (const void *)&o));
    note(q, n, s->end, op);
}

static void build_limit(mica_int8 *q, int n)
{
    const mica_int8_step *s = &q->step[n];
    int x = q->net->nodes[n].in[0];
    mica_int8_rescale_opts o = {0};
    if (!factor_of(q, x, s->end, 1.0, &o.multiplier, &o.shift))
        return;
    mica_int8_limits_of(s->activation, q->used[s->end], &o.low, &o.high);
    mica_value in = bytes_of(q, x);
    mica_int8_begin(q, n, &mica_op_int8_rescale, in);
    end(q, s->end, mica_net_call(q->out, NULL, &mica_op_int8_rescale, &in, 1, &o));
    note(q, n, s->end, &mica_op_int8_rescale);
}

/* The larger multiplier is 2^20 up to less than 2^21, as far as the shift reaches. */
static void build_sum(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    const mica_int8_step *s = &q->step[n];
    double ratio[2], most;
    mica_int8_add_opts o = {.shift = 1};
    for (int k = 0; k < 2; k++)
        ratio[k] = (double)q->used[node->in[k]] / (double)q->used[s->end];
    most = fmax(ratio[0], ratio[1]);
    while (o.shift < 30 && ldexp(most, o.shift) < 0x1p20)
        o.shift++;
    if (ldexp(most, o.shift) > 0x1p21) {
        (void)mica_net_refuse(q->out, MICA_ERR_STATE, "int8: scales of a sum are too far apart");
        return;
    }
    for (int k = 0; k < 2; k++)
        o.multiplier[k] = (int)floor(ldexp(ratio[k], o.shift) + 0.5);
    mica_int8_limits_of(s->activation, q->used[s->end], &o.low, &o.high);
    mica_value in[2] = {bytes_of(q, node->in[0]), bytes_of(q, node->in[1])};
    mica_int8_begin(q, n, &mica_op_int8_add, in[0]);
    end(q, s->end, mica_net_call(q->out, NULL, &mica_op_int8_add, in, 2, &o));
    note(q, n, s->end, &mica_op_int8_add);
}

static void build_join(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    int value = q->step[n].end, count = 0;
    mica_value in[MICA_OP_INS] = {0};
    for (int i = 0; i < node->ins && node->in[i] != NONE; i++)
        in[count++] = bytes_at(q, node->in[i], q->used[value]);
    mica_int8_begin(q, n, node->op, in[0]);
    end(q, value, mica_net_call(q->out, NULL, node->op, in, count, node->opts));
    note(q, n, value, node->op);
}

/* In one dimension there is one row. */
static mica_pooling_opts windows_of(const mica_node *node)
{
    mica_pooling_opts o = *(const mica_pooling_opts *)node->opts;
    if (node->op == &mica_op_max_pool1d || node->op == &mica_op_avg_pool1d) {
        o = (mica_pooling_opts){.kernel = {1, o.kernel[0]},
                                .stride = {1, o.stride[0]},
                                .pad = {0, o.pad[0]},
                                .dilation = {0, o.dilation[0]},
                                .ceil_mode = o.ceil_mode};
    }
    return o;
}

static void build_maximum(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    mica_pooling_opts o = windows_of(node);
    mica_value in = bytes_of(q, node->in[0]);
    mica_int8_begin(q, n, &mica_op_int8_max_pool2d, in);
    end(q, node->out[0], mica_net_call(q->out, NULL, &mica_op_int8_max_pool2d, &in, 1, &o));
    note(q, n, node->out[0], &mica_op_int8_max_pool2d);
}

static void build_average(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    mica_pooling_opts w = windows_of(node);
    mica_int8_avg_pool_opts o = {.kernel = {w.kernel[0], w.kernel[1]},
                                 .stride = {w.stride[0], w.stride[1]},
                                 .pad = {w.pad[0], w.pad[1]}};
    double count = (double)w.kernel[0] * (double)w.kernel[1];
    if (!factor_of(q, node->in[0], node->out[0], count, &o.multiplier, &o.shift))
        return;
    mica_value in = bytes_of(q, node->in[0]);
    mica_int8_begin(q, n, &mica_op_int8_avg_pool2d, in);
    end(q, node->out[0], mica_net_call(q->out, NULL, &mica_op_int8_avg_pool2d, &in, 1, &o));
    note(q, n, node->out[0], &mica_op_int8_avg_pool2d);
}

static void build_global(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    const mica_tensor *x = &q->net->values[node->in[0]].tensor;
    mica_int8_global_pool_opts o = {.keep = ((const mica_global_pool_opts *)node->opts)->keep};
    double count = 1.0;
    for (int k = 2; k < x->rank; k++)
        count *= (double)x->dim[k];
    if (!factor_of(q, node->in[0], node->out[0], count, &o.multiplier, &o.shift))
        return;
    mica_value in = bytes_of(q, node->in[0]);
    mica_int8_begin(q, n, &mica_op_int8_global_avg_pool, in);
    end(q, node->out[0], mica_net_call(q->out, NULL, &mica_op_int8_global_avg_pool, &in, 1, &o));
    note(q, n, node->out[0], &mica_op_int8_global_avg_pool);
}

static void build_same(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    q->as_bytes[node->out[0]] = q->as_bytes[node->in[0]];
    q->as_floats[node->out[0]] = q->as_floats[node->in[0]];
    if (q->as_bytes[node->out[0]] == 0)
        q->as_floats[node->out[0]] = floats_of(q, node->in[0]);
}

static void build_moves(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    mica_value in = bytes_of(q, node->in[0]);
    mica_int8_begin(q, n, node->op, in);
    end(q, node->out[0], mica_net_call(q->out, NULL, node->op, &in, 1, node->opts));
}

static void build_float(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    mica_value in[MICA_OP_INS] = {0};
    for (int i = 0; i < node->ins; i++)
        in[i] = floats_of(q, node->in[i]);
    int count = node->ins;
    while (count > node->op->ins && in[count - 1] == 0)
        count--;
    mica_int8_begin(q, n, node->op, in[0]);
    mica_value y = mica_net_call(q->out, NULL, node->op, in, count, node->opts);
    for (int k = 0; k < node->outs && y != 0; k++)
        if (node->out[k] != NONE)
            q->as_floats[node->out[k]] = mica_net_result(q->out, y, k);
    (void)mica_net_layer_end(q->out, y);
    if (q->net->values[node->out[0]].tensor.dtype == MICA_F32 &&
        !(node->op->flags & (MICA_OP_VIEW | MICA_OP_LOSS)))
        note(q, n, node->out[0], node->op);
}

/* ---- All of it ---- */

/* A size as the first net was told it: a number, or what stands for a size of the step or for an axis of a value. */
static mica_index size_of(mica_int8 *q, const mica_value_info *v, int axis)
{
    mica_index source = v->source[axis];
    if (source == 0 || source == MICA_SIZE_CODE(0))
        return v->built[axis];
    if (source > MICA_DIM_FIRST)
        return source;
    mica_index code = MICA_DIM_FIRST - source;
    int from = (int)(code / MICA_MAX_RANK);
    mica_value now = q->as_bytes[from] != 0 ? q->as_bytes[from] : q->as_floats[from];
    return mica_net_dim(q->out, now, (int)(code % MICA_MAX_RANK));
}

/* Inputs that were made before value number `end`, from *next on. */
void mica_int8_build_inputs(mica_int8 *q, int *next, int end)
{
    for (; *next < end; ++*next) {
        const mica_value_info *v = &q->net->values[*next];
        mica_index dims[MICA_MAX_RANK];
        if (v->home != MICA_HOME_PLANNED || v->kind != MICA_BUFFER_INPUT)
            continue;
        for (int k = 0; k < v->tensor.rank; k++)
            dims[k] = size_of(q, v, k);
        q->as_floats[*next] = mica_net_input(q->out, v->name, v->tensor.dtype, v->tensor.rank, dims);
    }
}

/* What the caller finds by name in the first net, is found in this one. */
void mica_int8_build_outputs(mica_int8 *q)
{
    for (int i = 0; i < q->values; i++) {
        const mica_value_info *v = &q->net->values[i];
        if (v->home != MICA_HOME_PLANNED || v->kind == MICA_BUFFER_INPUT || !is_seen(q, i) ||
            (q->as_bytes[i] == 0 && q->as_floats[i] == 0))
            continue;
        mica_value y = floats_of(q, i);
        const char *name = mica_int8_name_of(q->net, i);
        bool there = name != NULL && mica_net_find(q->out, name) == y - 1;
        (void)mica_net_output(q->out, there ? NULL : name, y);
    }
}

mica_status mica_int8_start(mica_int8 *q, mica_net *out)
{
    if (out == NULL || out->node_count > 0 || out->value_count > 0)
        return mica_fail(q->ctx, MICA_ERR_ARGUMENT, "int8_build: expected an empty net");
    MICA_TRY(mica_int8_find(q));
    q->out = out;
    q->rows = 0;
    memset(q->as_bytes, 0, (size_t)q->values * sizeof *q->as_bytes);
    memset(q->as_floats, 0, (size_t)q->values * sizeof *q->as_floats);
    for (int i = 1; i < q->net->size_count; i++)
        (void)mica_net_size(out, q->net->size[i].name, q->net->size[i].most);
    if (q->net->sizes_fixed != NULL)
        (void)mica_net_fix_sizes(out, q->net->sizes_fixed);
    return out->status;
}

mica_status mica_int8_build(mica_int8 *q, mica_net *out)
{
    static void (*const builders[])(mica_int8 *, int) = {
        [MICA_INT8_STAYS] = build_float,     [MICA_INT8_SAME] = build_same,
        [MICA_INT8_MOVES] = build_moves,     [MICA_INT8_PRODUCT] = build_product,
        [MICA_INT8_LIMIT] = build_limit,     [MICA_INT8_SUM] = build_sum,
        [MICA_INT8_JOIN] = build_join,       [MICA_INT8_MAXIMUM] = build_maximum,
        [MICA_INT8_AVERAGE] = build_average, [MICA_INT8_GLOBAL] = build_global};
    MICA_TRY(mica_int8_start(q, out));
    int inputs = 0;
    for (int n = 0; n < q->nodes && out->status == MICA_OK; n++) {
        mica_int8_build_inputs(q, &inputs, q->net->nodes[n].out[0]);
        if (builders[q->step[n].kind] != NULL)
            builders[q->step[n].kind](q, n);
    }
    mica_int8_build_inputs(q, &inputs, q->values);
    mica_int8_build_outputs(q);
    return out->status;
}

void mica_int8_pack_weights(mica_int8 *q, bool pack) { q->unpacked = !pack; }

mica_value mica_int8_value(const mica_int8 *q, mica_value value, float *scale)
{
    if (value < 1 || value > q->values || q->out == NULL)
        return 0;
    int i = value - 1;
    bool bytes = q->as_bytes[i] != 0 && !(is_seen(q, i) && q->as_floats[i] != 0);
    if (scale != NULL)
        *scale = bytes ? q->used[i] : 0.0f;
    return bytes ? q->as_bytes[i] : q->as_floats[i];
}
