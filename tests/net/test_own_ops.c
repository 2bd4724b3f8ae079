/* Operations of a caller's own whose entries are odd or wrong: an error that names them, or the right result. */
#include <math.h>
#include <string.h>

#include "net/net.h"
#include "test.h"

enum { ROWS = 4, COLUMNS = 6, COUNT = ROWS * COLUMNS };

static mica_status like_first(mica_infer *i) { return mica_infer_like(i, 0, 0); }
static mica_status copy_run(const mica_call *c) { return mica_copy(c->ctx, c->out[0], c->in[0]); }

/* ---- Nets of one call ---- */

static mica_net *new_net(void)
{
    mica_net *net = NULL;
    CHECK(mica_net_create(test_context(1), &net) == MICA_OK);
    return net;
}

static mica_value weight(mica_net *net, const char *name)
{
    return mica_net_learned(net, name, 2, (mica_index[]){ROWS, COLUMNS}, (mica_init){MICA_INIT_NORMAL, 1.0f});
}

/* The mean of (y - 0)^2: the gradient of y is 2 y / COUNT. */
static void add_loss(mica_net *net, mica_value y)
{
    static float zeros[COUNT];
    mica_tensor t = mica_2d(zeros, ROWS, COLUMNS);
    mica_net_op(net, "loss", "mse_loss", (mica_value[]){y, mica_net_lent(net, "zeros", &t)}, 2, NULL);
}

static mica_net *net_of(const mica_op *op, int count)
{
    mica_net *net = new_net();
    mica_value in[2] = {weight(net, "w"), weight(net, "v")};
    add_loss(net, mica_net_call(net, "call", op, in, count, NULL));
    return net;
}

static bool steps(mica_net *net)
{
    mica_context *ctx = mica_net_context(net);
    return CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true})) &&
           CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 1)) &&
           CHECK_OK(ctx, mica_net_gradients(net, NULL));
}

/* The gradient of "w" is `factor` times that of a copy; twice that where it is added to. */
static void check_gradient(const mica_op *op, float factor)
{
    mica_net *net = net_of(op, op->ins);
    mica_context *ctx = mica_net_context(net);
    mica_tensor w, g;
    if (steps(net) && CHECK_OK(ctx, mica_net_tensor(net, &w, "w")) &&
        CHECK_OK(ctx, mica_net_gradient(net, &g, "w")))
        for (int times = 1; times <= 2; times++) {
            for (int i = 0; i < COUNT; i++) {
                float want = (float)times * factor * 2.0f / COUNT * ((float *)w.data)[i],
                      got = ((float *)g.data)[i];
                if (!CHECK_MSG(fabsf(got - want) < 1e-5f, "%s: gradient %d is %g, not %g", op->name, i,
                               (double)got, (double)want))
                    break;
            }
            CHECK_OK(ctx, mica_net_gradients(net, &(mica_backward_opts){.add = true}));
        }
    mica_net_destroy(net);
}

/* Cannot be compiled for training, for this reason; can be without. */
static void check_refused(const mica_op *op, mica_status status, const char *text)
{
    mica_net *net = net_of(op, op->ins);
    mica_context *ctx = mica_net_context(net);
    CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true}), status, text);
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_forward(net));
    mica_net_destroy(net);
}

#define OWN(op, ...)            \
    static const mica_op op = { \
        .name = #op, .ins = 1, .outs = 1, .infer = like_first, .run = copy_run, __VA_ARGS__}

/* ---- Gradients that are fine ---- */

static void give(mica_grad *g, int in) { mica_grad_give(g, in, mica_op_find("copy"), g->dout, 1, NULL); }

static void gives_to_nobody(mica_grad *g)
{
    give(g, 0);
    give(g, 1); /* an optional input that is not there */
    give(g, -1);
    give(g, 1000);
    mica_grad_pass(g, 2, g->dout[0]);
    mica_grad_pass(g, 0, 0);
    mica_grad_pass_summed(g, 1, g->dout[0]);
    CHECK(mica_grad_shape(g, 0).rank == 0 && mica_grad_shape(g, -1).rank == 0 &&
          mica_grad_shape(g, 9999).rank == 0);
}
OWN(to_nobody, .optional_ins = 2, .gradient = gives_to_nobody);

static void gives_thrice(mica_grad *g)
{
    give(g, 0);
    mica_grad_pass(g, 0, g->dout[0]);
    mica_grad_pass_summed(g, 0, g->dout[0]);
}
OWN(thrice, .gradient = gives_thrice);

static mica_status two_run(const mica_call *c)
{
    mica_status status = mica_copy(c->ctx, c->out[0], c->in[0]);
    return status == MICA_OK ? mica_copy(c->ctx, c->out[1], c->in[0]) : status;
}
static const mica_op two = {.name = "two", .ins = 1, .outs = 2, .in_place = {0, 1}, .run = two_run};
static void gives_both(mica_grad *g) { mica_grad_give_all(g, (int[]){0, 0}, 2, &two, g->dout, 1, NULL); }
OWN(both, .gradient = gives_both);

/* Gradients through views: nothing runs, and none need be able to. */
static mica_status flat_infer(mica_infer *i)
{
    return mica_infer_out(i, 0, MICA_F32, 1, (mica_index[]){COUNT});
}
static mica_status tall_infer(mica_infer *i)
{
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){ROWS, COLUMNS});
}
static const mica_op flat = {.name = "flat", .flags = MICA_OP_VIEW, .ins = 1, .outs = 1, .infer = flat_infer};
static const mica_op tall = {.name = "tall", .flags = MICA_OP_VIEW, .ins = 1, .outs = 1, .infer = tall_infer};

static void gives_a_view(mica_grad *g)
{
    mica_value between = mica_grad_value(g, &flat, g->dout, 1, NULL);
    between = mica_grad_value(g, mica_op_find("neg"), &between, 1, NULL);
    between = mica_grad_value(g, mica_op_find("neg"), &between, 1, NULL);
    mica_grad_give(g, 0, &tall, &between, 1, NULL);
}
OWN(by_views, .gradient = gives_a_view);

/* A value on the way from an operation with two outputs, both of which it must have. */
static mica_status twins_infer(mica_infer *i)
{
    mica_status status = mica_infer_like(i, 0, 0);
    return status == MICA_OK ? mica_infer_like(i, 1, 0) : status;
}
static const mica_op twins = {.name = "twins", .ins = 1, .outs = 2, .infer = twins_infer, .run = two_run};
static void gives_a_twin(mica_grad *g)
{
    mica_value between = mica_grad_value(g, &twins, g->dout, 1, NULL);
    mica_grad_give(g, 0, mica_op_find("copy"), &between, 1, NULL);
}
OWN(by_twins, .gradient = gives_a_twin);

TEST(own_ops_gradients_are_added_up)
{
    check_gradient(&to_nobody, 1.0f);
    check_gradient(&thrice, 3.0f);
    check_gradient(&both, 2.0f);
    check_gradient(&by_views, 1.0f);
    check_gradient(&by_twins, 1.0f);
}

static void gives_nothing(mica_grad *g) { (void)g; }
OWN(nothing, .gradient = gives_nothing);

TEST(own_ops_may_give_no_gradient)
{
    mica_net *net = net_of(&nothing, 1);
    mica_tensor g;
    CHECK(steps(net));
    CHECK_ERROR(mica_net_context(net), mica_net_gradient(net, &g, "w"), MICA_ERR_ARGUMENT,
                "argument error: net: \"w\" has no gradient");
    mica_net_destroy(net);
}

/* ---- Gradients that are wrong ---- */

static void takes_too_many(mica_grad *g)
{
    mica_grad_give_all(g, (int[]){0, 0}, 2, mica_op_find("copy"), g->dout, 1, NULL);
}
OWN(too_many, .gradient = takes_too_many);
static void takes_too_few(mica_grad *g) { mica_grad_give(g, 0, &two, g->dout, 1, NULL); }
OWN(too_few, .gradient = takes_too_few);
static const mica_op shapeless = {.name = "shapeless", .ins = 1, .outs = 2, .run = two_run};
static void takes_shapeless(mica_grad *g)
{
    mica_grad_give_all(g, (int[]){0, 99}, 2, &shapeless, g->dout, 1, NULL);
}
OWN(unknown_shape, .gradient = takes_shapeless);
static void passes_flat(mica_grad *g) { mica_grad_pass(g, 0, mica_grad_value(g, &flat, g->dout, 1, NULL)); }
OWN(wrong_shape, .gradient = passes_flat);
static void passes_mask(mica_grad *g)
{
    mica_grad_pass(g, 0,
                   mica_grad_value(g, mica_op_find("eq"), (mica_value[]){g->in[0], g->in[0]}, 2,
                                   &(mica_compare_opts){.mask = true}));
}
OWN(wrong_dtype, .gradient = passes_mask);
static void passes_unknown(mica_grad *g) { mica_grad_pass(g, 0, 9999); }
OWN(unknown, .gradient = passes_unknown);
static void calls_null(mica_grad *g) { mica_grad_give(g, 0, NULL, g->dout, 1, NULL); }
OWN(of_null, .gradient = calls_null);
static void calls_wrongly(mica_grad *g) { mica_grad_give(g, 0, mica_op_find("add"), g->dout, 1, NULL); }
OWN(wrong_count, .gradient = calls_wrongly);

TEST(own_ops_gradients_that_are_wrong_are_refused)
{
    check_refused(&too_many, MICA_ERR_ARGUMENT,
                  "argument error: net: the gradient of too_many takes 2 outputs of copy, which has 1");
    check_refused(&too_few, MICA_ERR_ARGUMENT,
                  "argument error: net: the gradient of too_few takes 1 outputs of two, which has 2");
    check_refused(
        &unknown_shape, MICA_ERR_ARGUMENT,
        "argument error: net: the gradient of unknown_shape: output 1 of shapeless must be there, of no known shape");
    check_refused(
        &wrong_shape, MICA_ERR_SHAPE,
        "shape error: net: the gradient of wrong_shape gives f32 [24] for input 0, which is [4, 6]");
    check_refused(
        &wrong_dtype, MICA_ERR_SHAPE,
        "shape error: net: the gradient of wrong_dtype gives u8 [4, 6] for input 0, which is [4, 6]");
    check_refused(&unknown, MICA_ERR_ARGUMENT,
                  "argument error: net: a gradient: value 9999 does not belong to this net");
    check_refused(&of_null, MICA_ERR_ARGUMENT, "argument error: net: a call of an operation that is NULL");
    check_refused(&wrong_count, MICA_ERR_ARGUMENT, "argument error: net: add of 1 values: expected 2");
}

/* ---- Entries that cannot be called ---- */

static void check_call(const mica_op *op, mica_status status, const char *text)
{
    mica_net *net = new_net();
    mica_value w = weight(net, "w");
    CHECK(mica_net_call(net, "call", op, &w, 1, NULL) == 0);
    CHECK_ERROR(mica_net_context(net), mica_net_compile(net, NULL), status, text);
    mica_net_destroy(net);
}

static mica_status no_shape(mica_infer *i) { return (void)i, MICA_OK; }
static mica_status no_rows(mica_infer *i) { return mica_infer_out(i, 0, MICA_F32, 1, (mica_index[]){0}); }
static mica_status doubled(mica_infer *i)
{
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){ROWS, 2 * COLUMNS});
}

TEST(own_ops_that_cannot_be_called)
{
    static const mica_op no_run = {.name = "no_run", .ins = 1, .outs = 1, .infer = like_first};
    static const mica_op no_name = {.ins = 1, .outs = 1, .infer = like_first, .run = copy_run};
    static const mica_op no_outs = {.name = "no_outs", .ins = 1, .infer = like_first, .run = copy_run};
    static const mica_op many = {.name = "many", .ins = 7, .optional_ins = 7, .outs = 1, .run = copy_run};
    static const mica_op less = {.name = "less", .ins = -1, .outs = 1, .run = copy_run};
    static const mica_op bare_view = {
        .name = "bare_view", .flags = MICA_OP_VIEW, .optional_ins = 1, .outs = 1, .infer = like_first};
    static const mica_op large_view = {
        .name = "large_view", .flags = MICA_OP_VIEW, .ins = 1, .outs = 1, .infer = doubled};
    static const mica_op unknown_first = {
        .name = "unknown_first", .ins = 1, .outs = 1, .optional_outs = 1, .infer = no_shape, .run = copy_run};
    static const mica_op empty_loss = {
        .name = "empty_loss", .flags = MICA_OP_LOSS, .ins = 1, .outs = 1, .infer = no_rows, .run = copy_run};
#define IN_LAYER(op, text) "layer 0 \"call\" (" op ")\n  input is [4, 6], the net's input \"w\"\n  " text
    check_call(&no_run, MICA_ERR_ARGUMENT, "argument error: net: no_run cannot be called: its run is NULL");
    check_call(&no_name, MICA_ERR_ARGUMENT, "argument error: net: a call of an operation that has no name");
    check_call(&no_outs, MICA_ERR_ARGUMENT, "argument error: net: no_outs has 0 outputs: expected 1 to 8");
    check_call(&many, MICA_ERR_ARGUMENT, "argument error: net: many has 14 inputs: expected 0 to 12");
    check_call(&less, MICA_ERR_ARGUMENT, "argument error: net: less has -1 inputs: expected 0 to 12");
    check_call(&bare_view, MICA_ERR_ARGUMENT,
               "argument error: net: bare_view cannot be called: a view has one output, of its first input");
    check_call(&large_view, MICA_ERR_SHAPE,
               "shape error: " IN_LAYER("large_view", "f32 [4, 12] is no view of f32 [4, 6]"));
    check_call(&unknown_first, MICA_ERR_STATE,
               "state error: " IN_LAYER("unknown_first", "output 0 was not inferred"));
    check_call(&empty_loss, MICA_ERR_SHAPE,
               "shape error: " IN_LAYER("empty_loss", "a loss is f32 [0]: expected one number, f32"));
}

/* ---- Values that are kept ---- */

/* y = x; the count goes up by one. */
static mica_status tick_run(const mica_call *c)
{
    mica_status status = mica_copy(c->ctx, c->out[0], c->in[0]);
    return status == MICA_OK && !c->again ? mica_add_scalar(c->ctx, c->in[1], c->in[1], 1.0f) : status;
}
static void passes(mica_grad *g) { mica_grad_pass(g, 0, g->dout[0]); }
static const mica_op tick = {.name = "tick",
                             .ins = 2,
                             .outs = 1,
                             .writes = 2,
                             .infer = like_first,
                             .run = tick_run,
                             .gradient = passes};

/* w times the count before this step, by way of a copy of the count or not. */
static mica_net *counting_net(bool copied)
{
    mica_net *net = new_net();
    mica_value w = weight(net, "w"),
               count = mica_net_kept(net, "count", MICA_KEPT_STATE, MICA_F32, 0, NULL, 1.0f);
    mica_value read = copied ? mica_net_op(net, "copy", "copy", &count, 1, NULL) : count;
    mica_value y = mica_net_op(net, "product", "mul", (mica_value[]){w, read}, 2, NULL);
    for (int i = 0; i < 3; i++)
        y = mica_net_op(net, NULL, "neg", &y, 1, NULL);
    add_loss(net, mica_net_call(net, "tick", &tick, (mica_value[]){y, count}, 2, NULL));
    return net;
}

TEST(own_ops_that_write_to_what_is_kept)
{
    mica_net *net = counting_net(false);
    CHECK_ERROR(
        mica_net_context(net), mica_net_compile(net, &(mica_compile_opts){.train = true}), MICA_ERR_STATE,
        "state error: net: the gradient of mul in layer \"product\" reads \"count\", which a later layer writes "
        "to: let it read a copy");
    CHECK(mica_net_compile(net, NULL) == MICA_OK);
    mica_net_destroy(net);
    for (size_t budget = 4000; budget > 400; budget -= budget / 4) {
        net = counting_net(true);
        mica_context *ctx = mica_net_context(net);
        mica_tensor w, g;
        if (mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true, .budget = budget}) ==
                MICA_OK &&
            CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 1)) &&
            CHECK_OK(ctx, mica_net_tensor(net, &w, "w")) && CHECK_OK(ctx, mica_net_gradient(net, &g, "w")))
            for (int step = 1; step < 4; step++) { /* the gradient of (step w)^2 / COUNT */
                CHECK_OK(ctx, mica_net_gradients(net, NULL));
                float want = 2.0f / COUNT * (float)(step * step) * *(float *)w.data;
                CHECK_MSG(fabsf(*(float *)g.data - want) < 1e-5f * (float)step,
                          "step %d, budget %zu: %g, not %g", step, budget, (double)*(float *)g.data,
                          (double)want);
            }
        mica_net_destroy(net);
    }
    net = new_net();
    mica_value w = weight(net, "w");
    CHECK(mica_net_call(net, NULL, &tick, (mica_value[]){w, w}, 2, NULL) == 0);
    CHECK_ERROR(mica_net_context(net), mica_net_compile(net, NULL), MICA_ERR_ARGUMENT,
                "argument error: net: tick writes to input 1: expected a value that is kept");
    mica_net_destroy(net);
}

/* ---- Sizes that an operation does not like ---- */

static mica_status even_infer(mica_infer *i)
{
    if (i->in[0]->dim[0] % 2 != 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "%td rows, which are odd", i->in[0]->dim[0]);
    return mica_infer_like(i, 0, 0);
}
static void even_gradient(mica_grad *g) { mica_grad_pass(g, 0, g->dout[0]); }
static const mica_op even = {
    .name = "even", .ins = 1, .outs = 1, .infer = even_infer, .run = copy_run, .gradient = even_gradient};

/* Parts of 3 are not planned; parts of 6 run 7 rows as 4 and 3, which is refused. What fails leaves the shapes as they
 * were. */
TEST(own_ops_that_refuse_some_sizes)
{
    mica_context *ctx = test_context(1);
    size_t total = 0;
    int refused = 0;
    for (int percent = 100; percent >= 40; percent -= 5) {
        mica_net *net;
        REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
        mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){12, 1000, 8});
        mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 8, .no_bias = true});
        for (int i = 0; i < 3; i++) {
            h = mica_net_call(net, NULL, &even, &h, 1, NULL);
            h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_TANH});
        }
        mica_net_mse(net, h, mica_net_input(net, "t", MICA_F32, 3, (mica_index[]){12, 1000, 8}), NULL);
        mica_status status = mica_net_compile(
            net, &(mica_compile_opts){.train = true, .debug = true, .budget = total * (size_t)percent / 100});
        if (status == MICA_OK && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
            CHECK_OK(ctx, mica_net_initialize(net, 1))) {
            total = total == 0 ? mica_net_plan(net)->total : total;
            for (mica_index rows = 12; rows >= 0; rows--) {
                mica_tensor t;
                status = mica_net_resize(net, rows);
                if (status == MICA_OK)
                    status = mica_net_gradients(net, NULL);
                CHECK_MSG(status == MICA_OK || status == MICA_ERR_SHAPE, "%s", mica_error(ctx));
                CHECK(rows % 2 != 0 || mica_net_plan(net)->parts > 1 || status == MICA_OK);
                if (mica_net_plan(net)->parts > 1 && status != MICA_OK) { /* so it is the second time */
                    refused++;
                    for (int i = 0; i < 2 && mica_net_resize(net, rows) == MICA_OK; i++)
                        for (int times = 0; times < 2; times++)
                            CHECK(mica_net_gradients(net, NULL) == status &&
                                  strstr(mica_error(ctx), "odd") != NULL);
                }
                CHECK_OK(ctx, mica_net_tensor(net, &t, "x"));
            }
            CHECK_OK(ctx, mica_net_resize(net, 2));
            CHECK_OK(ctx, mica_net_gradients(net, NULL));
        }
        mica_net_destroy(net);
    }
    CHECK(total > 0 && refused > 0);
}
