/* Sums and products of two values, with broadcasting. Two layers each: one for equal shapes, in place, and
 * one that sums the gradients of what was repeated. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

/* ---- Shapes ---- */

/* The shape that a and b are both broadcast to: aligned at the last axis. False if there is none. */
static bool common_shape(const mica_tensor *a, const mica_tensor *b, int *rank, mica_index *dims)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int k = 1; k <= *rank; k++) {
        mica_index da = k <= a->rank ? a->dim[a->rank - k] : 1, db = k <= b->rank ? b->dim[b->rank - k] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        dims[*rank - k] = da == 1 ? db : da;
    }
    return true;
}

static mica_status infer_pair(mica_infer *infer)
{
    const mica_tensor *a = infer->in[0], *b = infer->in[1];
    int rank;
    mica_index dims[MICA_MAX_RANK];
    if (a->dtype != MICA_F32 || b->dtype != MICA_F32)
        return mica_infer_fail(infer, MICA_ERR_DTYPE, "expected f32 and f32, got %s and %s",
                               mica_dtype_name(a->dtype), mica_dtype_name(b->dtype));
    if (!common_shape(a, b, &rank, dims)) {
        char shape[128];
        (void)mica_tensor_print_shape(shape, sizeof shape, b);
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected a shape that fits it, got %s", shape);
    }
    return mica_infer_output(infer, MICA_F32, rank, dims);
}

static mica_status infer_product(mica_infer *infer)
{
    MICA_TRY(infer_pair(infer));
    int rank;
    mica_index dims[MICA_MAX_RANK];
    (void)common_shape(infer->in[0], infer->in[1], &rank, dims);
    return mica_infer_temporary(infer, MICA_F32, rank, dims);
}

/* dst = the sum of `from` over the axes along which dst was repeated. */
static mica_status sum_repeated(const mica_step *s, const mica_tensor *dst, const mica_tensor *from)
{
    mica_tensor to = *from; /* dst with leading axes of 1 */
    mica_reduce_opts axes = {.count = 0};
    for (int k = 0; k < from->rank; k++) {
        int own = k - (from->rank - dst->rank);
        to.dim[k] = own >= 0 ? dst->dim[own] : 1;
        if (to.dim[k] != from->dim[k])
            axes.axes[axes.count++] = k;
    }
    to = mica_tensor_like(&to, dst->data);
    return axes.count > 0 ? mica_sum(s->ctx, &to, from, &axes) : mica_copy(s->ctx, &to, from);
}

/* The order in which gradients are made: din[0] last where it lies over dout. (Where both are one, the second
 * adds to the first, and nothing lies over anything.) */
static int first_of(const mica_step *s)
{
    return s->din[0] != NULL && s->din[0]->data == s->dout->data ? 1 : 0;
}

/* ---- Sums ---- */

static mica_status plus_forward(const mica_step *s) { return mica_add(s->ctx, s->out, s->in[0], s->in[1]); }

/* da = dy, db = dy */
static mica_status plus_backward(const mica_step *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->din[i] == NULL)
            continue;
        MICA_TRY(s->add_din[i] ? mica_add(s->ctx, s->din[i], s->din[i], s->dout)
                               : mica_copy(s->ctx, s->din[i], s->dout));
    }
    return MICA_OK;
}

static mica_status plus_broadcast_backward(const mica_step *s)
{
    for (int n = 0, i = first_of(s); n < 2; n++, i = 1 - i)
        if (s->din[i] != NULL)
            MICA_TRY(sum_repeated(s, s->din[i], s->dout));
    return MICA_OK;
}

/* ---- Products ---- */

static mica_status times_forward(const mica_step *s) { return mica_mul(s->ctx, s->out, s->in[0], s->in[1]); }

/* da = dy b, db = dy a */
static mica_status times_backward(const mica_step *s)
{
    for (int n = 0, i = first_of(s); n < 2; n++, i = 1 - i)
        if (s->din[i] != NULL)
            MICA_TRY(mica_mul(s->ctx, s->din[i], s->dout, s->in[1 - i]));
    return MICA_OK;
}

static mica_status times_broadcast_backward(const mica_step *s)
{
    for (int n = 0, i = first_of(s); n < 2; n++, i = 1 - i) {
        if (s->din[i] == NULL)
            continue;
        bool whole = mica_tensor_same_shape(s->din[i], s->dout);
        const mica_tensor *product = whole ? s->din[i] : s->temp[0];
        MICA_TRY(mica_mul(s->ctx, product, s->dout, s->in[1 - i]));
        if (!whole)
            MICA_TRY(sum_repeated(s, s->din[i], product));
    }
    return MICA_OK;
}

/* ---- Builders ---- */

enum { OVER_FIRST = MICA_LAYER_IN_PLACE | MICA_LAYER_BACKWARD_IN_PLACE };

#define PAIR(kind, flags, infer, forward, backward)                       \
    {                                                                     \
        kind, flags, sizeof(mica_net_pair_opts), infer, forward, backward \
    }

/* By whether shapes are equal. */
static const mica_layer plus[2] = {
    PAIR("add", OVER_FIRST, infer_pair, plus_forward, plus_broadcast_backward),
    PAIR("add", OVER_FIRST | MICA_LAYER_ADDS_INPUTS, infer_pair, plus_forward, plus_backward)};
static const mica_layer times[2] = {
    PAIR("multiply", OVER_FIRST | MICA_LAYER_READS_INPUTS | MICA_LAYER_BACKWARD_TEMPORARIES, infer_product,
         times_forward, times_broadcast_backward),
    PAIR("multiply", OVER_FIRST | MICA_LAYER_READS_INPUTS, infer_pair, times_forward, times_backward)};

/* Puts a value that has the result's shape first, where it can be written over. */
static mica_value add_pair(mica_net *net, const mica_layer layers[2], mica_value a, mica_value b,
                           const mica_net_pair_opts *opts)
{
    mica_tensor ta, tb;
    if (mica_net_status(net) != MICA_OK || mica_net_shape(net, &ta, a) != MICA_OK ||
        mica_net_shape(net, &tb, b) != MICA_OK)
        return mica_net_add(net, &layers[1], opts, (mica_value[]){a, b}, 2); /* which says what is wrong */
    bool same = mica_tensor_same_shape(&ta, &tb);
    bool larger = mica_tensor_count(&tb) > mica_tensor_count(&ta);
    return mica_net_add(net, &layers[same], opts, (mica_value[]){larger ? b : a, larger ? a : b}, 2);
}

mica_value mica_net_plus(mica_net *net, mica_value a, mica_value b, const mica_net_pair_opts *opts)
{
    return add_pair(net, plus, a, b, opts);
}

mica_value mica_net_times(mica_net *net, mica_value a, mica_value b, const mica_net_pair_opts *opts)
{
    return add_pair(net, times, a, b, opts);
}
