/* LSTM, GRU and RNN against PyTorch's numbers: outputs, last states, and every gradient. */
#include "golden/golden.h"

typedef mica_status forward_fn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                               const mica_recurrent_weights *weights, const mica_recurrent_opts *opts);
typedef mica_status backward_fn(mica_context *ctx, const mica_recurrent_grads *grads,
                                const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                                const mica_recurrent_weights *weights);

static const mica_tensor *or_null(const mica_tensor *t) { return t->data != NULL ? t : NULL; }

/* What forward keeps for backward. */
static mica_tensor kept(const mica_tensor *y, mica_index blocks, float *data)
{
    mica_tensor shape = *y;
    shape.dim[2] *= blocks;
    return mica_tensor_like(&shape, data);
}

static void check(mica_context *ctx, const golden_case *c, forward_fn *forward, backward_fn *backward)
{
    enum { Y, H_N, C_N, DX, DW_IH, DW_HH, DB_IH, DB_HH, DH_0, DC_0, COUNT };
    static const char *const names[COUNT] = {"y",     "h_n",   "c_n",   "dx",   "dw_ih",
                                             "dw_hh", "db_ih", "db_hh", "dh_0", "dc_0"};
    static float memory[2][16384];
    mica_tensor t[COUNT];
    for (int k = 0; k < COUNT; k++)
        t[k] = golden_like(c, names[k]);
    REQUIRE(mica_tensor_count(&t[Y]) * 4 <= 16384);
    mica_tensor gates = kept(&t[Y], 4, memory[0]), cells = kept(&t[Y], 1, memory[1]);
    bool relu = golden_value(c, "relu", 0, 0.0) != 0.0;
    mica_recurrent_weights weights = {golden_find(c, "w_ih"), golden_find(c, "w_hh"), golden_find(c, "b_ih"),
                                      golden_find(c, "b_hh")};
    mica_recurrent_opts opts = {.h_0 = golden_find(c, "h_0"),
                                .c_0 = golden_find(c, "c_0"),
                                .h_n = &t[H_N],
                                .c_n = or_null(&t[C_N]),
                                .gates = &gates,
                                .cells = &cells,
                                .relu = relu};
    CHECK_OK(ctx, forward(ctx, &t[Y], golden_find(c, "x"), &weights, &opts));
    mica_recurrent_grads grads = {.x = &t[DX],
                                  .w_ih = &t[DW_IH],
                                  .w_hh = &t[DW_HH],
                                  .b_ih = or_null(&t[DB_IH]),
                                  .b_hh = or_null(&t[DB_HH]),
                                  .h_0 = or_null(&t[DH_0]),
                                  .c_0 = or_null(&t[DC_0])};
    mica_recurrent_dout dout = {golden_find(c, "dy"), golden_find(c, "dh_n"), golden_find(c, "dc_n")};
    mica_recurrent_saved saved = {.x = golden_find(c, "x"),
                                  .y = &t[Y],
                                  .gates = &gates,
                                  .cells = &cells,
                                  .h_0 = opts.h_0,
                                  .c_0 = opts.c_0,
                                  .relu = relu};
    CHECK_OK(ctx, backward(ctx, &grads, &dout, &saved, &weights));
    for (int k = 0; k < COUNT; k++) {
        golden_compare(c, names[k], &t[k], 1e-5);
        golden_release(&t[k]);
    }
}

TEST(golden_recurrent)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load("recurrent");
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        if (c->op[0] == 'l')
            check(ctx, c, mica_lstm, mica_lstm_backward);
        else if (c->op[0] == 'g')
            check(ctx, c, mica_gru, mica_gru_backward);
        else
            check(ctx, c, mica_rnn, mica_rnn_backward);
    }
    golden_free(&file);
}
