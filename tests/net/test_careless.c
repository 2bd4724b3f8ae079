/* Careless use of what builds nets of operations: an error that says what is wrong, or the right numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>
#include <mica/op.h>

#include "node/entry.h"
#include "test.h"

#define DIMS(...) \
    (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), (mica_index[]) { __VA_ARGS__ }

static mica_net *new_net(void)
{
    mica_net *net = NULL;
    CHECK(mica_net_create(test_context(1), &net) == MICA_OK);
    return net;
}

static mica_value input(mica_net *net) { return mica_net_input(net, "x", MICA_F32, DIMS(4, 6)); }

static mica_value op(mica_net *net, const char *name, mica_value x, const void *opts)
{
    return mica_net_op(net, NULL, name, &x, 1, opts);
}

static bool ready(mica_net *net, const mica_compile_opts *opts)
{
    mica_context *ctx = mica_net_context(net);
    return CHECK_OK(ctx, mica_net_compile(net, opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
           CHECK_OK(ctx, mica_net_initialize(net, 1));
}

static void count_up(const mica_tensor *t)
{
    for (size_t i = 0; i < mica_tensor_count(t); i++)
        ((float *)t->data)[i] = (float)i;
}

/* One line for each thing to build on x [4, 6] that is refused. */
#define REFUSES(status, text, build)                                                   \
    do {                                                                               \
        mica_net *net = new_net();                                                     \
        mica_value x = input(net);                                                     \
        (void)x;                                                                       \
        build;                                                                         \
        CHECK_ERROR(mica_net_context(net), mica_net_compile(net, NULL), status, text); \
        mica_net_destroy(net);                                                         \
    } while (0)

#define NORMAL ((mica_init){MICA_INIT_NORMAL, 1.0f})

TEST(careless_with_null)
{
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: a parameter needs a name",
            mica_net_learned(net, NULL, DIMS(2), NORMAL));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: a state needs a name",
            mica_net_kept(net, "", MICA_KEPT_STATE, MICA_F32, DIMS(2), 0.0f));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: unknown init 77 for \"\"",
            mica_net_learned(net, NULL, DIMS(2), (mica_init){(mica_init_kind)77, 0.0f}));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: a tensor of rank 2 whose dims are NULL",
            mica_net_input(net, "y", MICA_F32, 2, NULL));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: a tensor of rank 2 whose dims are NULL",
            mica_net_kept(net, "k", MICA_KEPT_STATE, MICA_F32, 2, NULL, 0.0f));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: shares \"\", which is not a parameter of this net",
            mica_net_shared(net, NULL, DIMS(2)));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: shares \"w\" of rank 1, whose dims are NULL",
            (mica_net_learned(net, "w", DIMS(2), NORMAL), mica_net_shared(net, "w", 1, NULL)));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: derived by an operation that is NULL",
            mica_net_derived(net, "d", MICA_F32, DIMS(2), NULL, NULL, 0, NULL));
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: mica_net_layer_begin needs a kind",
            mica_net_layer_begin(net, NULL, "layer", x));
}

TEST(careless_with_results_that_are_null)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net();
    mica_value w = mica_net_learned(net, "w", DIMS(2), NORMAL);
    mica_net_op(net, NULL, "mse_loss", (mica_value[]){w, mica_net_input(net, "t", MICA_F32, DIMS(2))}, 2,
                NULL);
    REQUIRE(ready(net, &(mica_compile_opts){.train = true}));
    CHECK(mica_net_create(ctx, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_net_shape(net, NULL, w) == MICA_ERR_ARGUMENT);
    CHECK(mica_net_tensor(net, NULL, "w") == MICA_ERR_ARGUMENT);
    CHECK(mica_net_value_tensor(net, NULL, w) == MICA_ERR_ARGUMENT);
    CHECK(mica_net_gradient(net, NULL, "w") == MICA_ERR_ARGUMENT);
    CHECK(mica_net_program_call(net, NULL, 0) == MICA_ERR_ARGUMENT);
    CHECK(mica_net_program_value(net, NULL, 1) == MICA_ERR_ARGUMENT);
    mica_net_destroy(net);
}

static mica_status sums_options(mica_infer *i)
{
    int sum = 0;
    for (size_t k = 0; k < i->op->opts_bytes; k++)
        sum += ((const char *)i->opts)[k];
    return sum == 0 ? mica_infer_like(i, 0, 0) : MICA_ERR_ARGUMENT;
}

TEST(careless_with_operations_by_themselves)
{
    mica_context *ctx = test_context(1);
    const mica_op *neg = mica_op_find("neg");
    mica_tensor t = {.rank = 55, .dtype = (mica_dtype)99}, out, y[MICA_OP_OUTS];
    const mica_tensor *ins[MICA_OP_INS] = {&t, &t, &t, &t, &t, &t, &t, &t, &t, &t, &t, &t}, *outs[] = {&out};
    CHECK(mica_op_run(ctx, NULL, outs, ins, 1, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_op_run(ctx, neg, NULL, ins, 1, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_op_run(ctx, neg, outs, NULL, 1, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_op_infer(ctx, NULL, y, ins, 1, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_op_infer(ctx, neg, NULL, ins, 1, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_op_infer(ctx, neg, y, NULL, 1, NULL) == MICA_ERR_ARGUMENT);
    for (int n = 0; mica_op_at(n) != NULL; n++) /* tensors that are none */
        if (mica_op_at(n)->ins > 0 && mica_op_at(n)->infer != NULL)
            CHECK_MSG(mica_op_infer(ctx, mica_op_at(n), y, ins, mica_op_at(n)->ins, NULL) ==
                          MICA_ERR_ARGUMENT,
                      "%s", mica_op_at(n)->name);
    static const mica_op large = {
        .name = "large", .ins = 1, .outs = 1, .opts_bytes = 5000, .infer = sums_options};
    float number = 1.0f;
    t = mica_1d(&number, 1);
    CHECK_ERROR(ctx, mica_op_infer(ctx, &large, y, ins, 1, NULL), MICA_ERR_ARGUMENT,
                "argument error: large: opts is NULL");
}

TEST(careless_with_layers_and_names)
{
    char name[10001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    REFUSES(
        MICA_ERR_ARGUMENT,
        "argument error: net: the name \"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...\" of its parameter is too long (at most "
        "500 bytes, with its scopes)",
        mica_net_learned(net, name, DIMS(2), NORMAL));
    REFUSES(MICA_ERR_STATE, "state error: net: mica_net_layer_end without mica_net_layer_begin",
            mica_net_layer_end(net, x));
    REFUSES(MICA_ERR_STATE, "state error: net: layer \"l\" ends before mica_net_leave of what it entered",
            (mica_net_layer_begin(net, "kind", "l", x), mica_net_enter(net, "within"),
             mica_net_layer_end(net, x)));
    /* The second output of a layer is not the one that its name stands for. */
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: the name \"s\" is already in use",
            (x = mica_net_op(net, "s", "split", &x, 1, &(mica_split_opts){.axis = 1, .count = 2}),
             mica_net_output(net, "s", mica_net_result(net, x, 1))));
}

TEST(careless_with_sizes)
{
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: -2002 is not a size of this net", /* axis 2 of x */
            mica_net_input(net, "y", MICA_F32, DIMS(mica_net_dim(net, x, 0) - 2)));
    REFUSES(MICA_ERR_DTYPE, "dtype error: net: a state of q8_0 starts at 0, not at 1",
            mica_net_kept(net, "cache", MICA_KEPT_STATE, MICA_Q8_0, DIMS(64), 1.0f));
    REFUSES(
        MICA_ERR_ARGUMENT, "argument error: rotary: position is 2000000000: expected 0, or 1 + the number of one of 1 sizes",
        mica_net_op(net, NULL, "rotary", (mica_value[]){x, x}, 2, &(mica_turn_opts){.position = 2000000000}));
}

TEST(careless_with_sizes_of_odd_inputs)
{
    mica_net *net = new_net();
    CHECK(mica_net_size_number(net, PTRDIFF_MAX) == -1 && mica_net_size_number(net, PTRDIFF_MIN) == -1);
    CHECK(mica_net_size_number(net, mica_net_size(net, "length", 3)) == 1);
    mica_net_destroy(net);

    /* The first input is empty: the batch is another's. */
    net = new_net();
    mica_net_input(net, "none", MICA_F32, DIMS(0, 3));
    mica_value x = input(net);
    mica_net_output(net, "y", op(net, "neg", x, NULL));
    mica_net_kept(net, "cache", MICA_KEPT_STATE, MICA_Q8_0, DIMS(64), 0.0f);
    REQUIRE(ready(net, NULL));
    CHECK(mica_net_resize(net, 4) == MICA_OK && mica_net_resize(net, 2) == MICA_OK);
    CHECK(mica_net_forward(net) == MICA_OK);
    mica_net_destroy(net);

    /* A batch that cuts blocks. */
    net = new_net();
    mica_net_input(net, "x", MICA_Q8_0, DIMS(64));
    REQUIRE(ready(net, NULL));
    CHECK_ERROR(mica_net_context(net), mica_net_resize(net, 33), MICA_ERR_SHAPE,
                "shape error: net: \"x\" would be [33], which cuts the blocks of 32 of q8_0");
    CHECK_OK(mica_net_context(net), mica_net_resize(net, 32));
    mica_net_destroy(net);
}

/* ---- Numbers ---- */

/* What is read after a loss leaves the loss as it is. */
TEST(careless_with_a_loss_that_is_read)
{
    float want = NAN;
    for (int read = 0; read < 2; read++) {
        mica_net *net = new_net();
        mica_value w = mica_net_learned(net, "w", DIMS(4, 6), NORMAL);
        mica_value loss = mica_net_op(net, "loss", "mse_loss", (mica_value[]){w, input(net)}, 2, NULL);
        if (read)
            mica_net_output(net, "scaled", op(net, "scale", loss, &(mica_scalar_opts){100.0f}));
        REQUIRE(ready(net, &(mica_compile_opts){.train = true}));
        mica_tensor x;
        CHECK(mica_net_tensor(net, &x, "x") == MICA_OK);
        for (int mode = 0; mode < 2; mode++) {
            count_up(&x);
            CHECK(mode == 0 ? mica_net_gradients(net, NULL) == MICA_OK : mica_net_forward(net) == MICA_OK);
            want = read ? want : mica_net_loss(net);
            CHECK_MSG(mica_net_loss(net) == want, "the loss is %g, not %g", (double)mica_net_loss(net),
                      (double)want);
        }
        mica_net_destroy(net);
    }
}

/* A view shows memory in order: lent elements that do not lie so are copied first, and then right. */
TEST(careless_with_views_of_what_is_lent)
{
    static float numbers[24];
    mica_context *ctx = test_context(1);
    mica_tensor all = mica_2d(numbers, 4, 6), turned, column, repeated, one = mica_1d(numbers, 1);
    count_up(&all);
    CHECK_OK(ctx, mica_view_transpose(ctx, &turned, &all, 0, 1));
    CHECK_OK(ctx, mica_view_slice(ctx, &column, &all, 1, 1, 2, 1));
    CHECK_OK(ctx, mica_view_broadcast(ctx, &repeated, &one, 2, (mica_index[]){4, 6}));
    const mica_tensor *lent[] = {&turned, &column, &repeated};
    for (size_t i = 0; i < sizeof lent / sizeof lent[0]; i++)
        for (int copied = 0; copied < 2; copied++) {
            mica_net *net = new_net();
            mica_value v = mica_net_lent(net, "lent", lent[i]);
            v = copied ? op(net, "copy", v, NULL) : v;
            v = op(net, "unsqueeze", v, &(mica_axis_opts){0});
            mica_net_output(net, "y", op(net, "neg", v, NULL));
            if (!copied) {
                CHECK(mica_net_compile(net, NULL) == MICA_ERR_SHAPE);
                CHECK(strstr(mica_error(mica_net_context(net)), "copy it first") != NULL);
            } else if (CHECK(ready(net, NULL)) && CHECK(mica_net_forward(net) == MICA_OK)) {
                mica_tensor y;
                CHECK(mica_net_tensor(net, &y, "y") == MICA_OK);
                mica_index at = 0;
                for (mica_iter it = mica_iter_begin(lent[i], 0, NULL); it.valid; mica_iter_next(&it)) {
                    double want;
                    CHECK_OK(ctx, mica_at(ctx, &want, lent[i], it.index));
                    CHECK((double)((float *)y.data)[at++] == -want);
                }
            }
            mica_net_destroy(net);
        }
}

/* At a smaller size one of two inputs could be repeated to fit the other: but the output was planned to lie over it. */
TEST(careless_with_sizes_that_repeat)
{
    mica_context *ctx = test_context(1);
    static float ones[24];
    mica_tensor table = mica_2d(ones, 4, 6), x, y;
    mica_net *net = new_net();
    mica_net_output(
        net, "y",
        mica_net_op(net, NULL, "add", (mica_value[]){input(net), mica_net_lent(net, "t", &table)}, 2, NULL));
    REQUIRE(ready(net, NULL));
    for (mica_index rows = 3; rows >= 0; rows--)
        CHECK(mica_net_resize(net, rows) == MICA_ERR_SHAPE);
    CHECK(mica_net_tensor(net, &x, "x") == MICA_OK && x.dim[0] == 4);
    count_up(&x);
    CHECK(mica_net_forward(net) == MICA_OK && mica_net_tensor(net, &y, "y") == MICA_OK);
    for (int i = 0; i < 24; i++)
        CHECK(((float *)y.data)[i] == (float)i);
    mica_net_destroy(net);
    (void)ctx;
}

/* Statistics of another dtype are none that can be borrowed. */
TEST(careless_with_borrowed_statistics)
{
    mica_net *lender = new_net(), *net = new_net();
    mica_net_kept(lender, "k", MICA_KEPT_STATISTICS, MICA_I8, DIMS(100), 0.0f);
    input(lender);
    REQUIRE(ready(lender, NULL));
    mica_net_output(
        net, "y",
        op(net, "neg", mica_net_kept(net, "k", MICA_KEPT_STATISTICS, MICA_F32, DIMS(100), 0.0f), NULL));
    CHECK(mica_net_compile(net, &(mica_compile_opts){.weights = lender}) == MICA_OK);
    CHECK_ERROR(mica_net_context(net), mica_net_bind(net, NULL, 0), MICA_ERR_SHAPE,
                "shape error: net_bind: the net that lends its weights has no \"k\" of this shape");
    mica_net_destroy(net);
    mica_net_destroy(lender);
}

static mica_status like_first(mica_infer *i) { return mica_infer_like(i, 0, 0); }

TEST(careless_with_what_is_derived)
{
    static const mica_op view = {
        .name = "view", .flags = MICA_OP_VIEW, .ins = 1, .outs = 1, .infer = like_first};
    REFUSES(MICA_ERR_ARGUMENT, "argument error: net: view cannot derive a value: its run is NULL",
            (x = mica_net_learned(net, "w", DIMS(2), NORMAL),
             mica_net_derived(net, "d", MICA_F32, DIMS(2), &view, &x, 1, NULL)));
}
