#include "net/int8_run.h"

#include <string.h>

#include "test.h"

void int8_fill(mica_net *net, uint64_t seed)
{
    mica_tensor x;
    test_random r = test_seed(seed);
    if (!CHECK(mica_net_tensor(net, &x, "x") == MICA_OK))
        return;
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_normal(&r);
}

bool int8_ready(mica_context *ctx, mica_net *net)
{
    return CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
           CHECK_OK(ctx, mica_net_initialize(net, 5));
}

void int8_run(mica_net *net, uint64_t seed, float *out)
{
    mica_tensor y;
    int8_fill(net, seed);
    if (CHECK(mica_net_forward(net) == MICA_OK) && CHECK(mica_net_tensor(net, &y, "logits") == MICA_OK))
        memcpy(out, y.data, mica_tensor_bytes(&y));
}

int int8_count_calls(const mica_net *net, const char *op)
{
    int count = 0;
    for (int i = 0; i < mica_net_program(net); i++) {
        mica_program_call call;
        if (mica_net_program_call(net, &call, i) == MICA_OK)
            count += strcmp(call.op->name, op) == 0;
    }
    return count;
}
