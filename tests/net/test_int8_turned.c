/* Products with weights the other way round, as ONNX models have them, in int8. */
#include <math.h>
#include <string.h>

#include "net/int8_run.h"
#include "node/entry.h"
#include "test.h"

enum { BATCH = 8 };

enum { WIDE = 6, HIDDEN = 9, NARROW = 4 };

/* Two dense layers: by linear, whose weights are [out, in], or by matmul, whose weights are [in, out]. */
static mica_net *make_dense(mica_context *ctx, bool turned)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_index first[] = {turned ? WIDE : HIDDEN, turned ? HIDDEN : WIDE},
               second[] = {turned ? HIDDEN : NARROW, turned ? NARROW : HIDDEN}, bias = HIDDEN;
    const mica_op *op = turned ? &mica_op_matmul : &mica_op_linear;
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){BATCH, 2, WIDE});
    mica_value w1 = mica_net_learned(net, "w1", 2, first, (mica_init){0}),
               b1 = mica_net_learned(net, "b1", 1, &bias, (mica_init){0}),
               w2 = mica_net_learned(net, "w2", 2, second, (mica_init){0});
    mica_value h = mica_net_call(net, "hidden", op, (mica_value[]){x, w1, b1}, 3,
                                 &(mica_matmul_opts){.activation = MICA_RELU});
    mica_value y = mica_net_call(net, "logits", op, (mica_value[]){h, w2}, 2, NULL);
    (void)mica_net_output(net, NULL, y);
    (void)mica_net_fix_sizes(net, "a test");
    return net;
}

/* The same numbers in both, by their places in [out, in]. */
static void set_dense(mica_net *net, bool turned)
{
    static const char *const names[] = {"w1", "w2", "b1"};
    for (int n = 0; n < 3; n++) {
        mica_tensor w;
        test_random r = test_seed(70 + (uint64_t)n);
        if (!CHECK(mica_net_tensor(net, &w, names[n]) == MICA_OK))
            return;
        bool swap = turned && w.rank == 2;
        mica_index outs = w.dim[swap ? 1 : 0], ins = w.rank == 2 ? w.dim[swap ? 0 : 1] : 1;
        for (mica_index o = 0; o < outs; o++)
            for (mica_index i = 0; i < ins; i++)
                ((float *)w.data)[swap ? i * outs + o : o * ins + i] = (float)test_normal(&r);
    }
}

/* What the net of bytes gives, and what the net of floats with the roundings does. */
static void convert_dense(mica_context *ctx, bool turned, float *out, float *rounded)
{
    mica_net *net = make_dense(ctx, turned), *bytes = NULL, *fake = NULL;
    mica_int8 *q = NULL;
    if (CHECK_OK(ctx, mica_int8_create(net, &q)) && int8_ready(ctx, net)) {
        set_dense(net, turned);
        int8_fill(net, 3);
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK_OK(ctx, mica_int8_collect(q));
        CHECK_OK(ctx, mica_int8_choose(q, NULL));
    }
    if (q != NULL && CHECK_OK(ctx, mica_net_create(ctx, &fake)) && CHECK_OK(ctx, mica_int8_fake(q, fake)) &&
        int8_ready(ctx, fake) && CHECK_OK(ctx, mica_int8_fake_copy(q, fake, false)))
        int8_run(fake, 4, rounded);
    if (q != NULL && CHECK_OK(ctx, mica_net_create(ctx, &bytes)) &&
        CHECK_OK(ctx, mica_int8_build(q, bytes)) && int8_ready(ctx, bytes) &&
        CHECK_OK(ctx, mica_int8_weights_set(q, bytes))) {
        CHECK(int8_count_calls(bytes, "int8_linear") == 2 && int8_count_calls(bytes, "matmul") == 0);
        CHECK(mica_net_resize(bytes, BATCH - 1) == MICA_ERR_SHAPE); /* the sizes of the first net are fixed */
        int8_run(bytes, 4, out);
    }
    mica_net_destroy(bytes);
    mica_net_destroy(fake);
    mica_int8_destroy(q);
    mica_net_destroy(net);
}

TEST(int8_takes_weights_the_other_way_round)
{
    mica_context *ctx = test_context(1);
    enum { COUNT = BATCH * 2 * NARROW };
    float want[COUNT] = {0}, got[COUNT] = {0}, rounded[2][COUNT] = {{0}};
    double far = 0.0, near = 0.0;
    convert_dense(ctx, false, want, rounded[0]);
    convert_dense(ctx, true, got, rounded[1]);
    CHECK(memcmp(want, got, sizeof want) == 0);
    for (int i = 0; i < COUNT; i++) {
        far = fmax(far, fabs((double)want[i]));
        near = fmax(near, fabs((double)rounded[0][i] - (double)rounded[1][i]));
    }
    CHECK_MSG(far > 0.1 && near < 0.02 * far, "largest %g, largest difference of the rounded nets %g", far,
              near);
}
