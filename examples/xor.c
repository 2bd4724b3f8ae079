/* Learns XOR: the smallest net that a line cannot replace. */
#include <mica/mica.h>
#include <stdio.h>
#include <string.h>

static const float inputs[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
static const float targets[4][1] = {{0}, {1}, {1}, {0}};

/* Inputs are set before every step: their memory serves other buffers once they have been read. */
static mica_status set_inputs(mica_net *net)
{
    mica_tensor x, target;
    mica_status status = mica_net_tensor(net, &x, "x");
    if (status == MICA_OK)
        status = mica_net_tensor(net, &target, "target");
    if (status != MICA_OK)
        return status;
    memcpy(x.data, inputs, sizeof inputs);
    memcpy(target.data, targets, sizeof targets);
    return MICA_OK;
}

static mica_status learn(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 2});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){4, 1});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 8, .activation = MICA_TANH});
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 1});
    mica_net_output(net, "y", y);
    mica_net_bce_logits(net, y, target, NULL);

    /* A failure while building is told by compile. The plan is there before any memory is taken. */
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.05f};
    mica_status status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
    if (status == MICA_OK)
        printf("training takes %zu bytes\n", mica_net_plan(net)->total);
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(net, 42);

    for (int step = 0; step < 300 && status == MICA_OK; step++) {
        status = set_inputs(net);
        if (status == MICA_OK)
            status = mica_train_step(net, MICA_OPTIMIZER_LR);
        if (status == MICA_OK && step % 100 == 0)
            printf("step %3d  loss %.4f\n", step, mica_net_loss(net));
    }
    return status;
}

/* Prints what the net makes of each pair; a logit above 0 means 1. */
static mica_status answer(mica_net *net, int *right)
{
    mica_tensor y;
    mica_status status = set_inputs(net);
    if (status == MICA_OK)
        status = mica_net_forward(net);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &y, "y");
    for (int i = 0; i < 4 && status == MICA_OK; i++) {
        int guess = ((const float *)y.data)[i] > 0.0f;
        printf("%g xor %g = %d\n", inputs[i][0], inputs[i][1], guess);
        *right += guess == (int)targets[i][0];
    }
    return status;
}

int main(void)
{
    mica_context *ctx;
    mica_net *net;
    if (mica_context_create(&ctx, NULL) != MICA_OK || mica_net_create(ctx, &net) != MICA_OK)
        return 1;
    int right = 0;
    mica_status status = learn(net);
    if (status == MICA_OK)
        status = answer(net, &right);
    if (status != MICA_OK)
        fprintf(stderr, "%s\n", mica_error(ctx));
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return right == 4 ? 0 : 1;
}
