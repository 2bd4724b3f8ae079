/* The weights of the new net, from those of the first: batch norm is multiplied in, then every output channel gets its
 * scale. All in double precision; what comes out are integers. */
#include <math.h>

#include "int8/convert.h"
#include "io/quote.h"
#include "node/entry.h"

/* What a norm has for each channel. */
enum { GAMMA, BETA, MEAN, VARIANCE, PARTS };

/* What a product of the first net has, as doubles. */
typedef struct product {
    mica_index channels, each; /* output channels; weights of one */
    double *w, *bias, *norm;   /* [channels, each], [channels], [PARTS, channels] */
} product;

/* Fills out[count] with a value that lasts, a matrix `turned` if so; `otherwise` where it is NONE. */
static mica_status read(mica_int8 *q, double *out, size_t count, int value, bool turned, double otherwise)
{
    mica_tensor t;
    size_t i = 0;
    for (; value == NONE && i < count; i++)
        out[i] = otherwise;
    if (value == NONE)
        return MICA_OK;
    MICA_TRY(mica_net_value_tensor(q->net, &t, value + 1));
    if (turned)
        MICA_TRY(mica_view_transpose(q->ctx, &t, &t, 0, 1));
    for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid && i < count; mica_iter_next(&it))
        out[i++] = (double)*(const float *)it.element;
    return MICA_OK;
}

/* w' = w g, b' = (b - mean) g + beta, with g = gamma / sqrt(variance + eps) */
static mica_status fold(mica_int8 *q, product *p, const mica_node *norm)
{
    static const double usual[PARTS] = {1.0, 0.0, 0.0, 1.0};
    const mica_norm_opts *o = norm->opts;
    double eps = o->eps != 0.0f ? (double)o->eps : 1e-5, *part[PARTS];
    size_t channels = (size_t)p->channels;
    for (int k = 0; k < PARTS; k++) {
        part[k] = p->norm + (size_t)k * channels;
        MICA_TRY(read(q, part[k], channels, norm->in[1 + k], false, usual[k]));
    }
    for (size_t c = 0; c < channels; c++) {
        double gain = part[GAMMA][c] / sqrt(part[VARIANCE][c] + eps);
        for (mica_index i = 0; i < p->each; i++)
            p->w[(mica_index)c * p->each + i] *= gain;
        p->bias[c] = (p->bias[c] - part[MEAN][c]) * gain + part[BETA][c];
    }
    return MICA_OK;
}

/* ---- To integers ---- */

static double largest(const double *w, mica_index count)
{
    double most = 0.0;
    for (mica_index i = 0; i < count; i++)
        most = isnan(w[i]) ? INFINITY : fmax(most, fabs(w[i]));
    return most;
}

/* So that weights fit 127 and the bias fits 2^30. */
static double weight_scale(const product *p, mica_index first, mica_index channels, double x_scale)
{
    double scale = largest(p->w + first * p->each, channels * p->each) / 127.0;
    scale = fmax(scale, largest(p->bias + first, channels) / x_scale / 0x1p30);
    return scale > 0x1p-100 ? scale : 0x1p-100;
}

static double nearest(double x, double most) { return fmax(-most, fmin(most, floor(x + 0.5))); }

typedef struct made {
    int8_t *w;
    int32_t *bias, *multiplier;
    uint8_t *shift;
} made;

/* Into *out, or, if that is NULL, only whether that can be. */
static mica_status quantize(mica_int8 *q, const made *out, const product *p, const mica_node *node,
                            double x_scale, double y_scale)
{
    double all = weight_scale(p, 0, p->channels, x_scale);
    for (mica_index c = 0; c < p->channels; c++) {
        double scale = q->per_tensor ? all : weight_scale(p, c, 1, x_scale);
        int shift;
        int32_t multiplier;
        if (!isfinite(scale) || !mica_int8_factor(x_scale * scale / y_scale, &multiplier, &shift))
            return mica_fail(q->ctx, MICA_ERR_STATE,
                             "int8: layer %s: weights of scale %g between values of scales %g and %g: "
                             "expected finite numbers, and a ratio below 2^29",
                             MICA_QUOTE(node->layer != NONE ? q->net->layers[node->layer].name : ""), scale,
                             x_scale, y_scale);
        if (out == NULL)
            continue;
        out->multiplier[q->per_tensor ? 0 : c] = multiplier;
        out->shift[q->per_tensor ? 0 : c] = (uint8_t)shift;
        out->bias[c] = (int32_t)nearest(p->bias[c] / (x_scale * scale), 0x1p30);
        for (mica_index i = c * p->each; i < (c + 1) * p->each; i++)
            out->w[i] = (int8_t)nearest(p->w[i] / scale, 127.0);
    }
    return MICA_OK;
}

/* Weights, bias, multiplier and shift of the call that makes a value. */
static mica_status find_made(mica_int8 *q, mica_net *out, int value, made *m)
{
    const mica_node *node = &out->nodes[out->values[q->as_bytes[value] - 1].maker];
    void *data[5];
    for (int i = 1; i < 5; i++) {
        mica_tensor t;
        MICA_TRY(mica_net_value_tensor(out, &t, node->in[i] + 1));
        data[i] = t.data;
    }
    *m = (made){.w = data[1], .bias = data[2], .multiplier = data[3], .shift = data[4]};
    return MICA_OK;
}

/* In `room`, of product_room. Unless it `sets` them, the weights of the new net stay as they are. */
static mica_status set_product(mica_int8 *q, mica_net *out, int n, double *room, bool sets)
{
    const mica_node *node = &q->net->nodes[n];
    const mica_int8_step *s = &q->step[n];
    mica_tensor w = mica_int8_weights_of(q, node);
    size_t count = mica_tensor_count(&w);
    product p = {.channels = w.dim[0], .w = room, .bias = room + count};
    p.norm = p.bias + p.channels;
    p.each = p.channels > 0 ? (mica_index)count / p.channels : 0;
    made m;
    MICA_TRY(read(q, p.w, count, node->in[1], mica_int8_turned(node), 0.0));
    MICA_TRY(read(q, p.bias, (size_t)p.channels, node->in[2], false, 0.0));
    if (s->norm != NONE)
        MICA_TRY(fold(q, &p, &q->net->nodes[s->norm]));
    MICA_TRY(find_made(q, out, s->end, &m));
    return quantize(q, sets ? &m : NULL, &p, node, (double)q->used[node->in[0]], (double)q->used[s->end]);
}

/* Bytes of the largest product's numbers. */
static size_t product_room(mica_int8 *q)
{
    size_t most = 1;
    for (int n = 0; n < q->nodes; n++)
        if (q->step[n].kind == MICA_INT8_PRODUCT) {
            mica_tensor w = mica_int8_weights_of(q, &q->net->nodes[n]);
            size_t count = mica_tensor_count(&w) + (1 + PARTS) * (size_t)w.dim[0];
            most = count > most ? count : most;
        }
    return most * sizeof(double);
}

static mica_status each_product(mica_int8 *q, mica_net *out, double *room, bool sets)
{
    for (int n = 0; n < q->nodes; n++)
        if (q->step[n].kind == MICA_INT8_PRODUCT)
            MICA_TRY(set_product(q, out, n, room, sets));
    return MICA_OK;
}

/* All are looked at before the first is set: after an error the new net is as it was. */
mica_status mica_int8_weights_set(mica_int8 *q, mica_net *out)
{
    if (out == NULL || out != q->out || out->block == NULL || q->net->block == NULL)
        return mica_fail(q->ctx, MICA_ERR_STATE,
                         "int8_weights_set: expected the net that was built, and both bound");
    size_t bytes = product_room(q);
    double *room = mica_allocate(q->ctx, bytes);
    if (room == NULL)
        return q->ctx->status;
    mica_status status = each_product(q, out, room, false);
    if (status == MICA_OK)
        status = mica_int8_copy_lasting(q, out, false);
    if (status == MICA_OK)
        status = each_product(q, out, room, true);
    mica_release(q->ctx, room, bytes);
    return status == MICA_OK ? mica_net_derive(out) : status;
}
