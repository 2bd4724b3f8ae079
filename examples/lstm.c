/* An LSTM learns to recall: a symbol comes first, twenty others follow, and the answer is the first one. */
#include <mica/mica.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, SYMBOLS = 4, STEPS = 21, FEATURES = 2 * SYMBOLS, UNITS = 24 };

/* Symbols as one-hot rows: the first on channels 0 to 3, the others, which do not matter, on 4 to 7. */
static void draw(const mica_tensor *x, const mica_tensor *answer)
{
    float *row = x->data;
    memset(row, 0, mica_tensor_bytes(x));
    for (int n = 0; n < BATCH; n++)
        for (int t = 0; t < STEPS; t++, row += FEATURES) {
            int symbol = rand() % SYMBOLS;
            row[t == 0 ? symbol : SYMBOLS + symbol] = 1.0f;
            if (t == 0)
                ((int32_t *)answer->data)[n] = symbol;
        }
}

static mica_net *build(mica_context *ctx)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){BATCH, STEPS, FEATURES});
    mica_value answer = mica_net_input(net, "answer", MICA_I32, 1, (mica_index[]){BATCH});
    mica_value h = mica_net_lstm(net, x,
                                 &(mica_net_recurrent_opts){.name = "lstm", .units = UNITS, .last = true});
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "out", .units = SYMBOLS});
    mica_net_cross_entropy(net, y, answer, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.01f, .clip_norm = 1.0f};
    mica_tensor bias, forget;
    if (mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}) != MICA_OK ||
        mica_net_bind(net, NULL, 0) != MICA_OK || mica_net_initialize(net, 1) != MICA_OK ||
        mica_net_tensor(net, &bias, "lstm.bias_ih") != MICA_OK ||
        mica_view_slice(ctx, &forget, &bias, 0, UNITS, 2 * UNITS, 1) != MICA_OK ||
        mica_fill(ctx, &forget, 3.0f) != MICA_OK) /* gates i f g o: to start with, forget little */
        return NULL;
    return net;
}

int main(void)
{
    mica_context *ctx;
    if (mica_context_create(&ctx, NULL) != MICA_OK)
        return 1;
    mica_net *net = build(ctx);
    float loss = 2.0f;
    for (int step = 0; net != NULL && step < 1000 && loss > 0.02f; step++) {
        mica_tensor x, answer;
        mica_net_tensor(net, &x, "x");
        mica_net_tensor(net, &answer, "answer");
        draw(&x, &answer);
        if (mica_train_step(net, MICA_OPTIMIZER_LR) != MICA_OK)
            break;
        loss = 0.9f * loss + 0.1f * mica_net_loss(net);
        if (step % 40 == 0)
            printf("step %4d  loss %.3f\n", step, (double)mica_net_loss(net));
    }
    if (mica_error(ctx)[0] != '\0')
        fprintf(stderr, "%s\n", mica_error(ctx));
    printf(loss <= 0.02f ? "it recalls\n" : "it did not learn\n");
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return loss <= 0.02f ? 0 : 1;
}
