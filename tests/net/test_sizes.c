/* The sizes of a step: batch, length and position, within what was planned. */
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "node/entry.h"
#include "test.h"

enum { BATCH = 3, LENGTH = 6, WIDTH = 8, PLACES = 20 };

/* Positions of three kinds, from where the size "position" says. */
static mica_net *placed_net(mica_context *ctx, bool train)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_index length = mica_net_size(net, "length", LENGTH),
               at = mica_net_size(net, "position", PLACES - LENGTH);
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){BATCH, length, WIDTH}), h = x;
    h = mica_net_learned_positions(
        net, h, &(mica_net_positions_opts){.name = "learned", .rows = PLACES, .position = at});
    h = mica_net_sinusoidal_positions(net, h, &(mica_net_positions_opts){.name = "waves", .position = at});
    h = mica_net_rotary(net, h, &(mica_net_rotary_opts){.name = "turned", .heads = 2, .position = at});
    mica_net_output(net, "y", h);
    if (train)
        mica_net_mse(net, h, x, NULL);
    if (mica_net_compile(net, &(mica_compile_opts){.train = train,
                                                   .optimizer = train ? &(mica_optimizer){.kind = MICA_SGD}
                                                                      : NULL}) == MICA_OK &&
        mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 1) == MICA_OK)
        return net;
    test_check(false, __FILE__, __LINE__, "%s", mica_error(ctx));
    mica_net_destroy(net);
    return NULL;
}

/* Runs `length` rows of ones from `first` on; out [BATCH, length, WIDTH]. */
static void run_at(mica_net *net, mica_index first, mica_index length, float *out)
{
    mica_context *ctx = mica_net_context(net);
    mica_tensor x, y;
    CHECK_OK(ctx, mica_net_set_size(net, "position", first));
    CHECK_OK(ctx, mica_net_set_size(net, "length", length));
    CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = 1.0f + (float)(i % WIDTH);
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    CHECK(y.dim[0] == BATCH && y.dim[1] == length && y.dim[2] == WIDTH);
    memcpy(out, y.data, mica_tensor_bytes(&y));
}

TEST(sizes_place_a_sequence_where_the_step_says)
{
    mica_context *ctx = test_context(1);
    mica_net *net = placed_net(ctx, false);
    REQUIRE(net != NULL);
    static float all[BATCH * LENGTH * WIDTH], one[BATCH * WIDTH];
    test_heap heap = test_heap_now();
    for (mica_index first = 0; first + LENGTH <= PLACES; first++) {
        run_at(net, first, LENGTH, all);
        for (mica_index t = 0; t < LENGTH && first + t <= PLACES - LENGTH; t++) { /* a row at a time */
            run_at(net, first + t, 1, one);
            for (mica_index n = 0; n < BATCH; n++)
                CHECK(memcmp(one + n * WIDTH, all + (n * LENGTH + t) * WIDTH, WIDTH * sizeof(float)) == 0);
        }
    }
    CHECK(test_heap_now().calls == heap.calls);
    CHECK_ERROR(ctx, mica_net_set_size(net, "position", PLACES), MICA_ERR_SHAPE,
                "shape error: net_set_size: position is 20, but the net was built for at most 14");
    mica_net_destroy(net);
}

/* The options of "rotary" and its like, as their entries describe them. */
static void set_position(const mica_op *op, void *opts, int position)
{
    for (int f = 0; f < op->field_count; f++)
        if (strcmp(op->fields[f].name, "position") == 0)
            memcpy((char *)opts + op->fields[f].offset, &position, sizeof position);
}

TEST(sizes_that_are_not_there_are_no_position)
{
    mica_context *ctx = test_context(1);
    const mica_op *op = mica_op_find("rotary");
    for (int position = -1; position <= 2; position += 3) {
        mica_net *net;
        char opts[64] = {0};
        REQUIRE(op->opts_bytes <= sizeof opts && mica_net_create(ctx, &net) == MICA_OK);
        set_position(op, opts, position);
        mica_value in[] = {mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){3, 4}),
                           mica_net_input(net, "table", MICA_F32, 2, (mica_index[]){9, 4})};
        mica_net_output(net, "y", mica_net_call(net, NULL, op, in, 2, opts));
        CHECK_ERROR(
            ctx, mica_net_compile(net, NULL), MICA_ERR_ARGUMENT,
            position < 0
                ? "argument error: rotary: position is -1: expected 0, or 1 + the number of one of 1 sizes"
                : "argument error: rotary: position is 2: expected 0, or 1 + the number of one of 1 sizes");
        mica_net_destroy(net);
    }
}

TEST(sizes_can_be_listed)
{
    mica_context *ctx = test_context(1);
    mica_net *net = placed_net(ctx, true);
    REQUIRE(net != NULL);
    const char *name;
    mica_index now, most;
    CHECK(mica_net_sizes(net) == 3);
    CHECK_OK(ctx, mica_net_resize(net, 2));
    CHECK_OK(ctx, mica_net_size_at(net, &name, &now, &most, 0));
    CHECK(strcmp(name, "batch") == 0 && now == 2 && most == BATCH);
    CHECK_OK(ctx, mica_net_size_at(net, &name, &now, &most, 2));
    CHECK(strcmp(name, "position") == 0 && most == PLACES - LENGTH);
    CHECK(mica_net_size_at(net, NULL, NULL, NULL, 3) == MICA_ERR_INDEX);
    for (mica_index length = LENGTH; length >= 0; length--) { /* the target follows the output */
        mica_tensor x;
        CHECK_OK(ctx, mica_net_set_size(net, "length", length));
        CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
        memset(x.data, 0, mica_tensor_bytes(&x));
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
    }
    mica_net_destroy(net);
}

/* Backward goes back over the forward right before it, and over nothing else. */
TEST(backward_follows_a_forward_in_training_mode)
{
    mica_context *ctx = test_context(1);
    mica_net *net = placed_net(ctx, true);
    REQUIRE(net != NULL);
    static const char *const refused =
        "state error: net_backward: expected a call of mica_net_forward_training right before it";
    mica_tensor x, g;
    CHECK_ERROR(ctx, mica_net_backward(net, NULL), MICA_ERR_STATE, refused);
    mica_net_tensor(net, &x, "x");
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)(i % 5);
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK_ERROR(ctx, mica_net_backward(net, NULL), MICA_ERR_STATE, refused);
    CHECK_OK(ctx, mica_net_forward_training(net, 0));
    CHECK_OK(ctx, mica_net_reset_states(net));
    CHECK_ERROR(ctx, mica_net_backward(net, NULL), MICA_ERR_STATE, refused);
    CHECK_OK(ctx, mica_net_forward_training(net, 0));
    CHECK_OK(ctx, mica_train_update(net, MICA_OPTIMIZER_LR));
    CHECK_ERROR(ctx, mica_net_backward(net, NULL), MICA_ERR_STATE, refused);
    for (int at_once = 0; at_once < 2; at_once++) {
        static float first[PLACES * WIDTH];
        for (size_t i = 0; i < mica_tensor_count(&x); i++)
            ((float *)x.data)[i] = (float)(i % 5);
        if (at_once) {
            CHECK_OK(ctx, mica_net_gradients(net, NULL));
        } else {
            CHECK_OK(ctx, mica_net_forward_training(net, 0));
            CHECK_OK(ctx, mica_net_backward(net, NULL));
            CHECK_ERROR(ctx, mica_net_backward(net, NULL), MICA_ERR_STATE, refused);
        }
        CHECK_OK(ctx, mica_net_gradient(net, &g, "learned.weight"));
        if (at_once)
            CHECK(memcmp(first, g.data, sizeof first) == 0);
        memcpy(first, g.data, sizeof first);
    }
    mica_net_destroy(net);
}

/* Attention over 4 heads of 4 samples with a mask of so many axes. */
static mica_net *masked_net(mica_context *ctx, int mask_rank)
{
    static const mica_index qkv[] = {4, 4, 3, 2}, by_head[] = {4, 3, 3}, by_sample[] = {4, 1, 3, 3};
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, qkv);
    mica_value mask = mica_net_input(net, "mask", MICA_F32, mask_rank, mask_rank == 3 ? by_head : by_sample);
    mica_value y = mica_net_op(net, "y", "attention", (mica_value[]){x, x, x, mask}, 4, NULL);
    (void)mica_net_output(net, "out", y);
    if (mica_net_compile(net, &(mica_compile_opts){0}) == MICA_OK)
        return net;
    mica_net_destroy(net);
    return NULL;
}

TEST(a_mask_by_head_keeps_samples_together)
{
    mica_context *ctx = test_context(1);
    mica_net *by_head = masked_net(ctx, 3), *by_sample = masked_net(ctx, 4);
    REQUIRE(by_head != NULL && by_sample != NULL);
    CHECK(!mica_net_samples_apart(by_head));
    CHECK(mica_net_samples_apart(by_sample));
    mica_net_destroy(by_head);
    mica_net_destroy(by_sample);
}

TEST(sizes_can_be_fixed)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 3});
    (void)mica_net_op(net, "y", "relu", &x, 1, NULL);
    CHECK_OK(ctx, mica_net_fix_sizes(net, "the mean divides by it"));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_resize(net, 4));
    CHECK_ERROR(ctx, mica_net_resize(net, 3), MICA_ERR_SHAPE,
                "shape error: net: batch cannot be 3, only 4 as planned: the mean divides by it");
    CHECK_ERROR(ctx, mica_net_fix_sizes(net, NULL), MICA_ERR_STATE,
                "state error: net: nothing can be added after mica_net_compile");
    CHECK_OK(ctx, mica_net_forward(net));
    mica_net_destroy(net);
}

/* Sizes that the net cannot have are tried while it is compiled, one after the other: afterwards every shape is the
 * planned one again, also that of a call between those that refused. */
TEST(sizes_that_calls_refuse_leave_no_trace)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_tensor table, y;
    float rows[BATCH * WIDTH];
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    for (int i = 0; i < BATCH * WIDTH; i++)
        rows[i] = (float)i;
    table = mica_2d(rows, BATCH, WIDTH);
    mica_index length = mica_net_size(net, "length", 2);
    mica_value h = mica_net_input(net, "h", MICA_F32, 2, (mica_index[]){BATCH, WIDTH});
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){length, BATCH, WIDTH});
    x = mica_net_op(net, NULL, "slice", &x, 1, &(mica_slice_range_opts){.axis = 0, .start = 1, .stop = 2});
    x = mica_net_op(net, NULL, "squeeze", &x, 1, &(mica_axis_opts){0}); /* refuses a length of 1 */
    h = mica_net_op(net, NULL, "neg", &h, 1, NULL);
    mica_value fixed = mica_net_lent(net, "table", &table);
    h = mica_net_op(net, NULL, "add", (mica_value[]){h, fixed}, 2, NULL); /* refuses other batches */
    mica_net_output(net, "y", mica_net_op(net, NULL, "add", (mica_value[]){h, x}, 2, NULL));
    REQUIRE(CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
            CHECK_OK(ctx, mica_net_initialize(net, 1)));
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < mica_net_inputs(net); i++) {
            CHECK_OK(ctx, mica_net_input_tensor(net, NULL, &y, i));
            for (size_t k = 0; k < mica_tensor_count(&y); k++)
                ((float *)y.data)[k] = i == 0 ? 2.0f : 3.0f;
        }
        REQUIRE(CHECK_OK(ctx, mica_net_forward(net)) && CHECK_OK(ctx, mica_net_tensor(net, &y, "y")));
        CHECK(y.dim[0] == BATCH && y.dim[1] == WIDTH);
        for (int i = 0; i < BATCH * WIDTH; i++)
            CHECK(((const float *)y.data)[i] == (float)i + 1.0f);
        CHECK(mica_net_resize(net, BATCH - 1) == MICA_ERR_SHAPE);
        CHECK(mica_net_set_size(net, "length", 1) == MICA_ERR_SHAPE);
        CHECK_OK(ctx, mica_net_resize(net, BATCH));
    }
    mica_net_destroy(net);
}

/* Rows without elements are rows all the same: their products are the bias. */
TEST(sizes_of_rows_without_elements)
{
    mica_context *ctx = test_context(1);
    for (int prepare = 0; prepare < 2; prepare++) {
        mica_net *net;
        mica_tensor y;
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        mica_index none = mica_net_size(net, "none", 0);
        mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){BATCH, 2, none});
        mica_value in[] = {
            x, mica_net_learned(net, "w", 2, (mica_index[]){WIDTH, 0}, (mica_init){0}),
            mica_net_learned(net, "b", 1, (mica_index[]){WIDTH}, (mica_init){MICA_INIT_CONSTANT, 5})};
        mica_net_output(net, "y", mica_net_call(net, NULL, &mica_op_linear, in, 3, NULL));
        REQUIRE(CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.prepare = prepare == 1})) &&
                CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 1)));
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
        CHECK(y.rank == 3 && mica_tensor_count(&y) == BATCH * 2 * WIDTH);
        for (int i = 0; i < BATCH * 2 * WIDTH; i++)
            CHECK(((const float *)y.data)[i] == 5.0f);
        mica_net_destroy(net);
    }
}
