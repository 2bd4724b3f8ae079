/* Patterns of matrix products and convolutions. */
#include <string.h>

#include "node/entry.h"
#include "onnx/fuse.h"

/* ---- Linear ---- */

/* The weights [K, N] of a product as linear's [N, K]. Where they are known they are seen the other way round where they
 * lie: a lent tensor may have any layout. */
static mica_onnx_ref turned(mica_onnx_importing *n, mica_onnx_ref w)
{
    mica_onnx_held held = *mica_onnx_held_at(n->import, w);
    if (!mica_onnx_is_known(n, w))
        return mica_onnx_permute(n, w, (int[]){1, 0});
    mica_onnx_held view = {.shape = held.shape, .known = true};
    view.shape.dim[0] = held.shape.dim[1], view.shape.dim[1] = held.shape.dim[0];
    view.shape.stride[0] = held.shape.stride[1], view.shape.stride[1] = held.shape.stride[0];
    return mica_onnx_hold(n->import, &view);
}

/* x [..., K] times w [K, N], which is a weight, plus b [N]. */
static bool linear(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x'), w = mica_onnx_matched(m, 'w'), b = mica_onnx_matched(m, 'b');
    const mica_tensor *shape = mica_onnx_shape(n, w);
    const mica_onnx_held *held = mica_onnx_held_at(n->import, w);
    int rank = mica_onnx_shape(n, x)->rank;
    bool weight = held->known && held->shape.rank == 2;
    if (!weight || rank < 2 || !mica_onnx_is_f32(n, x) || !mica_onnx_is_f32(n, w) ||
        mica_onnx_is_known(n, x) || mica_onnx_shape(n, x)->dim[rank - 1] != shape->dim[0])
        return false;
    if (b != 0 && (!mica_onnx_is_f32(n, b) || mica_onnx_shape(n, b)->rank != 1 ||
                   mica_onnx_shape(n, b)->dim[0] != shape->dim[1]))
        return false;
    if (held->learned) /* stays as it is, and so does its gradient */
        mica_onnx_give(n, 0, mica_onnx_op(n, "matmul", (mica_onnx_ref[]){x, w, b}, 3, NULL));
    else
        mica_onnx_give(n, 0,
                       mica_onnx_call(n, &mica_op_linear, (mica_onnx_ref[]){x, turned(n, w), b}, 3, NULL));
    return true;
}

/* x [..., K] times w [N, K] turned. */
static bool linear_turned(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x'), w = mica_onnx_matched(m, 'w'), b = mica_onnx_matched(m, 'b');
    mica_onnx_importing turn = mica_onnx_as_node(n, m, 't');
    int64_t axes[MICA_MAX_RANK] = {1, 0};
    int rank = mica_onnx_shape(n, x)->rank;
    if (mica_onnx_shape(n, w)->rank != 2 || rank < 2 || !mica_onnx_is_f32(n, x) || !mica_onnx_is_f32(n, w) ||
        mica_onnx_int_list(&turn, "perm", axes, MICA_MAX_RANK) == 0 || axes[0] != 1 ||
        mica_onnx_shape(n, x)->dim[rank - 1] != mica_onnx_shape(n, w)->dim[1])
        return false;
    if (b != 0 && (!mica_onnx_is_f32(n, b) || mica_onnx_shape(n, b)->rank != 1 ||
                   mica_onnx_shape(n, b)->dim[0] != mica_onnx_shape(n, w)->dim[0]))
        return false;
    mica_onnx_give(n, 0, mica_onnx_call(n, &mica_op_linear, (mica_onnx_ref[]){x, w, b}, 3, NULL));
    return true;
}

/* ---- Convolution ---- */

/* A vector [C] as [C, 1, ...] of this rank. */
static mica_onnx_ref per_channel(mica_onnx_importing *n, mica_onnx_ref v, int rank)
{
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < rank; k++)
        dims[k] = k == 0 ? -1 : 1;
    return mica_onnx_reshape(n, v, rank, dims);
}

/* gamma (conv(x) - mean) / sqrt(var + eps) + beta: all of it is constant but x, so it goes into weights and bias. */
static bool fold_norm(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref w = mica_onnx_matched(m, 'w'), b = mica_onnx_matched(m, 'b'),
                  gamma = mica_onnx_matched(m, 'g'), beta = mica_onnx_matched(m, 's'),
                  mean = mica_onnx_matched(m, 'm'), var = mica_onnx_matched(m, 'v');
    mica_onnx_importing conv = mica_onnx_as_node(n, m, 'c');
    const mica_tensor *shape = mica_onnx_shape(n, w);
    if (mica_onnx_training(n) || mica_onnx_int(n, "training_mode", 0) != 0 || shape->rank < 3 ||
        !mica_onnx_is_f32(n, w) || !mica_onnx_is_f32(n, gamma) || !mica_onnx_is_f32(n, var))
        return false;
    mica_onnx_ref eps = mica_onnx_scalar(n, MICA_F32, mica_onnx_float(n, "epsilon", 1e-5f));
    mica_onnx_ref deviation = mica_onnx_op1(n, "sqrt", mica_onnx_op2(n, "add", var, eps, NULL), NULL);
    mica_onnx_ref factor = mica_onnx_op2(n, "div", gamma, deviation, NULL);
    mica_onnx_ref shift = b != 0 ? mica_onnx_op2(n, "sub", b, mean, NULL)
                                 : mica_onnx_op1(n, "neg", mean, NULL);
    conv.in[1] = mica_onnx_op2(n, "mul", w, per_channel(n, factor, shape->rank), NULL);
    conv.in[2] = mica_onnx_op2(n, "add", mica_onnx_op2(n, "mul", shift, factor, NULL), beta, NULL);
    conv.ins = 3;
    return mica_onnx_import_as(n, &conv);
}

/* Pads [begins, ends] of x's axes, if they are zeros around the axes from 2 on: those, into out. */
static bool zeros_around(mica_onnx_importing *n, const mica_onnx_match *m, int rank, int64_t *out)
{
    mica_onnx_importing pad = mica_onnx_as_node(n, m, 'p');
    int64_t pads[2 * MICA_MAX_RANK];
    double value = 0;
    mica_onnx_ref known = mica_onnx_matched(m, 'a'), filler = mica_onnx_matched(m, 'v');
    int count = known != 0 ? mica_onnx_known_ints(&pad, known, "pads", pads, 2 * MICA_MAX_RANK)
                           : mica_onnx_int_list(&pad, "pads", pads, 2 * MICA_MAX_RANK);
    bool plain = strcmp(mica_onnx_text(&pad, "mode", "constant"), "constant") == 0 &&
                 (filler == 0 || (mica_onnx_is_number(n, filler, &value) && value == 0)) &&
                 mica_onnx_float(&pad, "value", 0) == 0.0f && count == 2 * rank && !pad.failed;
    for (int k = 0; plain && k < rank; k++) {
        plain = pads[k] >= 0 && pads[rank + k] >= 0 && (k >= 2 || (pads[k] == 0 && pads[rank + k] == 0));
        if (k >= 2)
            out[k - 2] = pads[k], out[rank - 2 + k - 2] = pads[rank + k];
    }
    return plain;
}

/* The convolution's own node, but with these pads. */
static const mica_onnx_node *with_pads(mica_onnx_importing *n, const mica_onnx_node *node,
                                       const int64_t *pads, int count)
{
    mica_onnx *model = n->import->model;
    mica_onnx_node *other = mica_onnx_memory(model, sizeof *other);
    mica_onnx_attribute *attributes = mica_onnx_memory(model, ((size_t)node->attribute_count + 1) *
                                                                  sizeof *attributes);
    int64_t *kept = mica_onnx_memory(model, (size_t)count * sizeof *kept);
    const char *name = mica_onnx_intern(model, "pads", 4);
    if (other == NULL || attributes == NULL || kept == NULL || name == NULL) {
        n->import->status = n->import->ctx->status;
        n->failed = true;
        return NULL;
    }
    memcpy(kept, pads, (size_t)count * sizeof *kept);
    *other = *node;
    other->attributes = attributes;
    other->attribute_count = 0;
    for (int i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].name != name)
            attributes[other->attribute_count++] = node->attributes[i];
    attributes[other->attribute_count++] = (mica_onnx_attribute){
        .name = name, .kind = MICA_ONNX_INTS, .ints = kept, .count = (size_t)count};
    return other;
}

static bool fold_pad(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x');
    int rank = mica_onnx_shape(n, x)->rank;
    int64_t around[2 * MICA_MAX_RANK], own[2 * MICA_MAX_RANK] = {0};
    if (rank < 3 || strcmp(mica_onnx_text(n, "auto_pad", "NOTSET"), "NOTSET") != 0 ||
        !zeros_around(n, m, rank, around))
        return false;
    (void)mica_onnx_int_list(n, "pads", own, 2 * (rank - 2));
    for (int k = 0; k < 2 * (rank - 2); k++)
        if (own[k] < 0 || __builtin_add_overflow(own[k], around[k], &own[k]))
            return false;
    mica_onnx_importing conv = *n;
    conv.node = with_pads(n, n->node, own, 2 * (rank - 2));
    conv.in[0] = x;
    return conv.node != NULL && mica_onnx_import_as(n, &conv);
}

const mica_onnx_pattern mica_onnx_product_patterns[] = {
    {"Add(MatMul(x,t:Transpose(w)),b)", linear_turned},
    {"MatMul(x,t:Transpose(w))", linear_turned},
    {"Add(MatMul(x,w),b)", linear},
    {"MatMul(x,w)", linear},
    {"BatchNormalization(c:Conv(x,#w,#b?),#g,#s,#m,#v)", fold_norm},
    {"Conv(p:Pad(x,#a?,#v?),w,b?)", fold_pad},
    {NULL, NULL},
};
