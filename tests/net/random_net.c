/* A random net, and operations of its own. */
#include "net/random_net.h"

#include <stdio.h>
#include <string.h>

#include "layer/layer_case.h"
#include "net/net.h"

/* ---- Operations that use what the planner offers ---- */

static mica_status like_first(mica_infer *i) { return mica_infer_like(i, 0, 0); }

/* y = x0 + x1 + ..., of two to six values. Each gradient is a copy, by an operation that cannot add. */
enum { MOST_TERMS = 6 };

static mica_status total_run(const mica_call *c)
{
    mica_status status = mica_copy(c->ctx, c->out[0], c->in[0]);
    for (int i = 1; i < c->ins && c->in[i] != NULL && status == MICA_OK; i++)
        status = mica_add(c->ctx, c->out[0], c->out[0], c->in[i]);
    return status;
}

static mica_status copies_run(const mica_call *c)
{
    mica_status status = MICA_OK;
    for (int k = 0; k < c->outs && status == MICA_OK; k++)
        if (c->out[k] != NULL)
            status = mica_copy(c->ctx, c->out[k], c->in[0]);
    return status;
}

static const mica_op copies = {
    .name = "copies", .ins = 1, .outs = MOST_TERMS, .optional_outs = 63, .run = copies_run};

static void total_gradient(mica_grad *g)
{
    mica_grad_give_all(g, (int[]){0, 1, 2, 3, 4, 5}, MOST_TERMS, &copies, &g->dout[0], 1, NULL);
}

static const mica_op total = {.name = "total",
                              .ins = 2,
                              .optional_ins = MOST_TERMS - 2,
                              .outs = 1,
                              .infer = like_first,
                              .run = total_run,
                              .gradient = total_gradient};

/* y = x0 * x1, with copies of both as outputs that only its gradient reads, by way of a value in between. */
static mica_status product_infer(mica_infer *i)
{
    mica_status status = mica_infer_like(i, 0, 0);
    for (int k = 1; k <= 2 && status == MICA_OK; k++)
        status = mica_infer_like(i, k, 0);
    return status;
}

static mica_status product_run(const mica_call *c)
{
    mica_status status = mica_mul(c->ctx, c->out[0], c->in[0], c->in[1]);
    for (int k = 1; k <= 2 && status == MICA_OK; k++)
        if (c->out[k] != NULL)
            status = mica_copy(c->ctx, c->out[k], c->in[k - 1]);
    return status;
}

static void product_gradient(mica_grad *g)
{
    const mica_op *mul = mica_op_find("mul"), *copy = mica_op_find("copy");
    for (int i = 0; i < 2; i++) {
        if (!mica_grad_wants(g, i))
            continue;
        mica_value between = mica_grad_value(g, mul, (mica_value[]){g->out[2 - i], g->dout[0]}, 2, NULL);
        mica_grad_give(g, i, copy, &between, 1, NULL);
    }
}

static const mica_op product = {.name = "product",
                                .ins = 2,
                                .outs = 3,
                                .optional_outs = 6,
                                .infer = product_infer,
                                .run = product_run,
                                .gradient = product_gradient};

/* y = x / 2, in place in both directions. */
static mica_status half_run(const mica_call *c) { return mica_scale(c->ctx, c->out[0], c->in[0], 0.5f); }
static const mica_op half_back = {.name = "half_back", .ins = 1, .outs = 1, .in_place = {1}, .run = half_run};
static void half_gradient(mica_grad *g) { mica_grad_give(g, 0, &half_back, &g->dout[0], 1, NULL); }

static const mica_op half = {.name = "half",
                             .flags = MICA_OP_CHEAP,
                             .ins = 1,
                             .outs = 1,
                             .in_place = {1},
                             .infer = like_first,
                             .run = half_run,
                             .gradient = half_gradient};

/* [B, F] under the shape [B, 2, F / 2], and back. */
static mica_status fold_infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0];
    mica_index dims[3] = {x->dim[0], 2, x->dim[1] / 2};
    if (x->rank == 3)
        dims[1] = x->dim[1] * x->dim[2];
    return mica_infer_out(i, 0, MICA_F32, x->rank == 3 ? 2 : 3, dims);
}

static const mica_op fold = {.name = "fold", .flags = MICA_OP_VIEW, .ins = 1, .outs = 1, .infer = fold_infer};

/* Two halves of the last axis, each a value: both are read, or one, or none. */
static mica_status halves_infer(mica_infer *i)
{
    mica_index dims[MICA_MAX_RANK];
    int last = i->in[0]->rank - 1;
    memcpy(dims, i->in[0]->dim, sizeof dims);
    dims[last] /= 2;
    mica_status status = mica_infer_out(i, 0, MICA_F32, last + 1, dims);
    return status != MICA_OK ? status : mica_infer_out(i, 1, MICA_F32, last + 1, dims);
}

static mica_tensor half_of(const mica_tensor *t, int which)
{
    mica_tensor half_view = *t;
    half_view.dim[t->rank - 1] /= 2;
    if (t->data != NULL)
        half_view.data = (float *)t->data + which * half_view.dim[t->rank - 1];
    return half_view;
}

static mica_status halves_run(const mica_call *c)
{
    mica_status status = MICA_OK;
    for (int k = 0; k < 2 && status == MICA_OK; k++) {
        mica_tensor part = half_of(c->in[0], k);
        status = c->out[k] != NULL ? mica_copy(c->ctx, c->out[k], &part) : MICA_OK;
    }
    return status;
}

static mica_status join_run(const mica_call *c)
{
    mica_status status = MICA_OK;
    for (int k = 0; k < 2 && status == MICA_OK; k++) {
        mica_tensor part = half_of(c->out[0], k);
        status = c->in[k] != NULL ? mica_copy(c->ctx, &part, c->in[k]) : mica_zeros(c->ctx, &part);
    }
    return status;
}

static const mica_op join = {.name = "join", .ins = 0, .optional_ins = 2, .outs = 1, .run = join_run};

static void halves_gradient(mica_grad *g) { mica_grad_give(g, 0, &join, g->dout, 2, NULL); }

static const mica_op halves = {.name = "halves",
                               .ins = 1,
                               .outs = 2,
                               .optional_outs = 2,
                               .infer = halves_infer,
                               .run = halves_run,
                               .gradient = halves_gradient};

/* ---- A random net ---- */

enum { MOST_VALUES = 140, WIDTH = 2 * RANDOM_NET_BELOW };

typedef struct growing {
    mica_net *net;
    test_random r;
    mica_value values[MOST_VALUES];
    int count, outputs, dense;
    bool
        divisible; /* the mean over a batch is that over its parts: losses are means, and nothing is random */
    bool listed;   /* only operations of the list, and of layers */
} growing;

static mica_value any(growing *g) { return g->values[test_int(&g->r, 0, g->count - 1)]; }

/* A recent one more often than not, so that nets grow deep as well as wide. */
static mica_value recent(growing *g)
{
    int from = g->count > 4 && test_chance(&g->r, 70) ? g->count - 4 : 0;
    return g->values[test_int(&g->r, from, g->count - 1)];
}

/* Up to `most` values shaped like the first; the same one may come twice. */
static int alike(growing *g, mica_value *inputs, int most)
{
    mica_tensor first, other;
    inputs[0] = recent(g);
    mica_net_shape(g->net, &first, inputs[0]);
    int count = 1;
    for (int tries = 0; tries < 12 && count < most; tries++) {
        inputs[count] = any(g);
        mica_net_shape(g->net, &other, inputs[count]);
        count += mica_tensor_same_shape(&first, &other);
    }
    while (count < 2)
        inputs[count++] = inputs[0];
    return count;
}

static mica_value add_dense(growing *g, mica_value x)
{
    mica_tensor shape;
    mica_net_shape(g->net, &shape, x);
    char name[16], shared[32];
    snprintf(name, sizeof name, "fc%d", g->dense);
    mica_net_dense_opts opts = {.name = name,
                                .units = WIDTH * test_int(&g->r, 1, 3),
                                .no_bias = test_chance(&g->r, 20),
                                .activation = (mica_activation)test_int(&g->r, 0, MICA_ACTIVATION_COUNT - 1)};
    /* Share an earlier one's weight, where it fits. */
    for (int other = 0; other < g->dense && test_chance(&g->r, 50); other++) {
        snprintf(shared, sizeof shared, "fc%d.weight", other);
        int value = mica_net_find(g->net, shared);
        if (value == NONE || g->net->values[value].tensor.dim[1] != shape.dim[shape.rank - 1])
            continue;
        opts.share_weight = shared;
        opts.units = g->net->values[value].tensor.dim[0];
        break;
    }
    g->dense++;
    return mica_net_dense(g->net, x, &opts);
}

static mica_value add_fold(growing *g, mica_value x, const mica_tensor *shape)
{
    mica_shape_opts apart = {3, {0, 2, -1}}, together = {2, {0, -1}};
    return g->listed ? mica_net_op(g->net, NULL, "reshape", &x, 1, shape->rank == 3 ? &together : &apart)
                     : mica_net_call(g->net, NULL, &fold, &x, 1, NULL);
}

static mica_value add_all(growing *g, const mica_value *inputs, int count)
{
    mica_value sum = inputs[0];
    for (int i = 1; i < count; i++)
        sum = mica_net_op(g->net, NULL, "add", (mica_value[]){sum, inputs[i]}, 2, NULL);
    return sum;
}

static mica_value add_node(growing *g)
{
    mica_value inputs[MICA_OP_INS];
    mica_value x = recent(g);
    mica_tensor shape;
    mica_net_shape(g->net, &shape, x);
    switch (test_int(&g->r, 0, 17)) {
    case 0:
    case 1:
    case 2:
        return add_dense(g, x);
    case 3:
    case 4:
        return mica_net_activation(g->net, x,
                                   &(mica_net_activation_opts){.kind = (mica_activation)test_int(
                                                                   &g->r, 1, MICA_ACTIVATION_COUNT - 1)});
    case 5:
        return g->listed ? mica_net_op(g->net, NULL, "scale", &x, 1, &(mica_scalar_opts){0.5f})
                         : mica_net_call(g->net, NULL, &half, &x, 1, NULL);
    case 6:
        return shape.dim[shape.rank - 1] % 2 == 0 ? add_fold(g, x, &shape) : x;
    case 7:
        (void)alike(g, inputs, 2);
        return g->listed ? mica_net_op(g->net, NULL, "mul", inputs, 2, NULL)
                         : mica_net_call(g->net, NULL, &product, inputs, 2, NULL);
    case 8:
        (void)alike(g, inputs, 2);
        return mica_net_times(g->net, inputs[0], inputs[1], NULL);
    case 9:
        (void)alike(g, inputs, 2);
        return mica_net_plus(g->net, inputs[0], inputs[1], NULL);
    case 10:
        (void)alike(g, inputs, 2);
        return shape.dim[shape.rank - 1] > 4 * WIDTH
                   ? x
                   : mica_net_concat(g->net, inputs, 2, &(mica_net_axis_opts){.axis = 1});
    case 11:
        return mica_net_layer_norm(g->net, x, NULL);
    case 12:
        return g->divisible ? x : mica_net_dropout(g->net, x, &(mica_net_dropout_opts){.rate = 0.3f});
    case 13: { /* two outputs */
        if (shape.dim[shape.rank - 1] % 2 != 0 || shape.dim[shape.rank - 1] < WIDTH)
            return x;
        mica_split_opts two = {.axis = -1, .count = 2};
        mica_value first = g->listed ? mica_net_op(g->net, NULL, "split", &x, 1, &two)
                                     : mica_net_call(g->net, NULL, &halves, &x, 1, NULL);
        mica_value second = mica_net_result(g->net, first, 1);
        if (test_chance(&g->r, 70) && g->count < MOST_VALUES - 2)
            g->values[g->count++] = second;
        return first;
    }
    case 14: { /* other dtypes, and back: what rounds so coarsely shows how a product was cut */
        if (g->divisible)
            return x;
        mica_copy_opts narrow = {.cast = true, .dtype = test_chance(&g->r, 50) ? MICA_F16 : MICA_BF16};
        mica_copy_opts wide = {.cast = true, .dtype = MICA_F32};
        mica_value cast = mica_net_op(g->net, NULL, "copy", &x, 1, &narrow);
        return mica_net_op(g->net, NULL, "copy", &cast, 1, &wide);
    }
    case 15: { /* a mask of bytes chooses */
        if (g->divisible)
            return x;
        (void)alike(g, inputs, 2);
        mica_value mask = mica_net_op(g->net, NULL, "gt", inputs, 2, &(mica_compare_opts){.mask = true});
        return mica_net_op(g->net, NULL, "where", (mica_value[]){mask, inputs[1], inputs[0]}, 3, NULL);
    }
    default: {
        int count = alike(g, inputs, test_int(&g->r, 2, 5));
        return g->listed ? add_all(g, inputs, count)
                         : mica_net_call(g->net, NULL, &total, inputs, count, NULL);
    }
    }
}

static void add_loss(growing *g, mica_value x, mica_index batch)
{
    mica_tensor shape;
    mica_net_shape(g->net, &shape, x);
    char name[16];
    snprintf(name, sizeof name, "target%d", g->outputs++);
    if (shape.rank == 2 && test_chance(&g->r, 40)) {
        mica_value label = mica_net_input(g->net, name, MICA_I32, 1, &batch);
        mica_net_cross_entropy(g->net, x, label, NULL);
    } else if (g->divisible || test_chance(&g->r, 50)) {
        mica_value target = mica_net_input(g->net, name, MICA_F32, shape.rank, shape.dim);
        mica_net_mse(g->net, x, target, &(mica_net_loss_opts){.weight = 0.5f});
    } else {
        layer_weighted_sum(g->net, x);
    }
}

static void add_output(growing *g, mica_value x)
{
    char name[16];
    if (g->net->status != MICA_OK || x == 0)
        return;
    const mica_value_info *v = &g->net->values[x - 1];
    if (v->kind == MICA_BUFFER_INPUT || v->output)
        return;
    snprintf(name, sizeof name, "out%d", g->outputs++);
    mica_net_output(g->net, name, x);
}

mica_net *random_net(mica_context *ctx, uint64_t seed, bool listed)
{
    growing g = {.r = test_seed(seed), .divisible = seed % 2 == 1, .listed = listed};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &g.net)))
        return NULL;
    mica_index batch = test_int(&g.r, 1, test_chance(&g.r, 30) ? 40 : 5),
               dims[] = {batch, WIDTH * test_int(&g.r, 1, 3)};
    g.values[g.count++] = mica_net_input(g.net, "x", MICA_F32, 2, dims);
    if (test_chance(&g.r, 40))
        g.values[g.count++] = mica_net_input(g.net, "x2", MICA_F32, 2, dims);
    g.values[g.count] = add_dense(&g, g.values[0]);
    g.count++;
    int nodes = test_int(&g.r, 1, test_chance(&g.r, 10) ? 60 : 20);
    for (int i = 0; i < nodes; i++) {
        mica_value made = add_node(&g); /* which may add another itself */
        g.values[g.count++] = made;
        if (test_chance(&g.r, 10))
            add_output(&g, g.values[g.count - 1 - test_int(&g.r, 0, i)]);
        if (test_chance(&g.r, 5))
            add_loss(&g, recent(&g), batch);
    }
    add_loss(&g, g.values[g.count - 1], batch);
    if (test_chance(&g.r, 30))
        mica_net_freeze(g.net, "fc0.", true);
    if (g.dense > 2 && test_chance(&g.r, 30))
        mica_net_freeze(g.net, "fc2", true);
    return g.net;
}
