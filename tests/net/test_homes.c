/* Values and their homes: lent memory of any dtype, what is derived from it, what is kept; and what is said of them. */
#include <stdlib.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "test.h"

enum { IN = 64, OUT = 6, BATCH = 3 };

/* y = x wT, with the weights lent as they lie, in blocks of eight-bit numbers. */
static mica_net *quantized_net(mica_context *ctx, const mica_tensor *blocks, bool derive)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_copy_opts wide = {.cast = true, .dtype = MICA_F32};
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){BATCH, IN});
    mica_value w = mica_net_lent(net, "weight", blocks);
    w = derive ? mica_net_derived(net, "wide", MICA_F32, 2, (mica_index[]){OUT, IN}, mica_op_find("copy"), &w,
                                  1, &wide)
               : mica_net_op(net, NULL, "copy", &w, 1, &wide);
    mica_matmul_opts turned = {.transpose_b = true};
    mica_net_output(net, "y", mica_net_op(net, "y", "matmul", (mica_value[]){x, w}, 2, &turned));
    return net;
}

static void run_net(mica_net *net, const float *input, float *output)
{
    mica_context *ctx = mica_net_context(net);
    mica_tensor x, y;
    CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    memcpy(x.data, input, mica_tensor_bytes(&x));
    test_heap heap = test_heap_now();
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK(test_heap_now().calls == heap.calls);
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    memcpy(output, y.data, mica_tensor_bytes(&y));
}

TEST(homes_of_lent_and_derived_weights)
{
    mica_context *ctx = test_context(1);
    static float wide[OUT * IN], input[BATCH * IN], want[BATCH * OUT], got[BATCH * OUT];
    test_random r = test_seed(3);
    for (size_t i = 0; i < OUT * IN; i++)
        wide[i] = (float)test_uniform(&r, -1.0, 1.0);
    for (size_t i = 0; i < BATCH * IN; i++)
        input[i] = (float)test_uniform(&r, -1.0, 1.0);
    mica_tensor blocks, w = mica_2d(wide, OUT, IN), x = mica_2d(input, BATCH, IN),
                        y = mica_2d(want, BATCH, OUT);
    size_t bytes = (size_t)OUT * IN / mica_dtype_block(MICA_Q8_0) * mica_dtype_bytes(MICA_Q8_0);
    void *mapped = malloc(bytes);
    REQUIRE(CHECK_OK(ctx, mica_tensor_init(ctx, &blocks, mapped, MICA_Q8_0, 2, (mica_index[]){OUT, IN})));
    CHECK_OK(ctx, mica_copy(ctx, &blocks, &w)); /* quantized, */
    CHECK_OK(ctx, mica_copy(ctx, &w, &blocks)); /* and what is left of it */
    CHECK_OK(ctx, mica_matmul(ctx, &y, &x, &w, &(mica_matmul_opts){.transpose_b = true}));
    size_t totals[2];
    for (int derive = 0; derive < 2; derive++) {
        mica_net *net = quantized_net(ctx, &blocks, derive == 1);
        REQUIRE(CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)));
        totals[derive] = mica_net_plan(net)->kind_bytes[MICA_BUFFER_DERIVED];
        CHECK(mica_net_plan(net)->kind_bytes[MICA_BUFFER_PARAMETER] == 0 && mica_net_parameters(net) == 0);
        CHECK(mica_net_inputs(net) == 1);
        run_net(net, input, got);
        CHECK(memcmp(want, got, sizeof want) == 0);
        mica_tensor lent;
        CHECK_OK(ctx, mica_net_tensor(net, &lent, "weight"));
        CHECK(lent.data == mapped && lent.dtype == MICA_Q8_0); /* never copied */
        char text[2048];
        CHECK(mica_net_program_print(text, sizeof text, net) < sizeof text);
        CHECK(strstr(text, "matmul") != NULL && (strstr(text, "lent") != NULL) == (derive == 0));
        mica_net_destroy(net);
    }
    CHECK(totals[0] == 0 && totals[1] == OUT * IN * sizeof(float));
    free(mapped);
}

/* What is derived from something learned follows it. */
TEST(homes_of_what_is_derived_from_learned_values)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 1, (mica_index[]){2});
    mica_value w = mica_net_learned(net, "w", 1, (mica_index[]){2}, (mica_init){MICA_INIT_CONSTANT, 3.0f});
    mica_value d = mica_net_derived(net, "square", MICA_F32, 1, (mica_index[]){2}, mica_op_find("square"), &w,
                                    1, NULL);
    mica_net_output(net, "y", mica_net_op(net, NULL, "add", (mica_value[]){x, d}, 2, NULL));
    REQUIRE(CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    const float zero[2] = {0};
    float y[2];
    run_net(net, zero, y);
    CHECK(y[0] == 9.0f && y[1] == 9.0f);
    mica_tensor t;
    CHECK_OK(ctx, mica_net_tensor(net, &t, "w"));
    ((float *)t.data)[1] = 4.0f;
    CHECK_OK(ctx, mica_net_derive(net));
    run_net(net, zero, y);
    CHECK(y[0] == 9.0f && y[1] == 16.0f);
    mica_net_destroy(net);

    REQUIRE(mica_net_create(ctx, &net) == MICA_OK); /* training would leave it behind */
    x = mica_net_input(net, "x", MICA_F32, 1, (mica_index[]){2});
    w = mica_net_learned(net, "w", 1, (mica_index[]){2}, (mica_init){MICA_INIT_CONSTANT, 3.0f});
    d = mica_net_derived(net, "square", MICA_F32, 1, (mica_index[]){2}, mica_op_find("square"), &w, 1, NULL);
    mica_net_mse(net, mica_net_op(net, NULL, "add", (mica_value[]){w, d}, 2, NULL), x, NULL);
    CHECK_ERROR(
        ctx, mica_net_compile(net, &(mica_compile_opts){.train = true}), MICA_ERR_STATE,
        "state error: net_compile: \"square\" is derived from \"w\", which training changes: freeze it");
    mica_net_destroy(net);
}

TEST(homes_that_are_wrong)
{
    mica_context *ctx = test_context(1);
    float data[4] = {0};
    mica_tensor t = mica_1d(data, 4), none = mica_1d(NULL, 4);
    for (int wrong = 0; wrong < 3; wrong++) {
        mica_net *net;
        REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
        mica_value x = mica_net_input(net, "x", MICA_F32, 1, (mica_index[]){4});
        static const char *const texts[] = {
            "argument error: net: lent \"w\" is NULL",
            "argument error: net: the name of its value \"x\" is already in use",
            "argument error: net: derives \"d\" from a value that changes with every step",
        };
        mica_value value = wrong == 0   ? mica_net_lent(net, "w", &none)
                           : wrong == 1 ? mica_net_lent(net, "x", &t)
                                        : mica_net_derived(net, "d", MICA_F32, 1, (mica_index[]){4},
                                                           mica_op_find("square"), &x, 1, NULL);
        CHECK(value == 0);
        CHECK_ERROR(ctx, mica_net_compile(net, NULL), MICA_ERR_ARGUMENT, texts[wrong]);
        mica_net_destroy(net);
    }
}

/* An activation that nobody asked to be kept is not handed out: its memory may hold something else by now. */
TEST(homes_of_a_single_step_are_not_handed_out)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){2, 4});
    mica_value h = mica_net_dense(
        net, x, &(mica_net_dense_opts){.name = "hidden", .units = 5, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "last", .units = 2});
    REQUIRE(CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)));
    mica_tensor t;
    CHECK_ERROR(ctx, mica_net_tensor(net, &t, "hidden"), MICA_ERR_STATE,
                "state error: net: \"hidden\" is only live during part of a step; mica_net_output keeps it");
    CHECK_OK(ctx, mica_net_tensor(net, &t, "last")); /* what nobody reads is for the caller */
    CHECK_OK(ctx, mica_net_value_tensor(net, &t, h));
    CHECK_OK(ctx, mica_net_tensor(net, &t, "hidden.weight"));
    mica_net_destroy(net);
}
