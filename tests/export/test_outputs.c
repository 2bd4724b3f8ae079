/* Nets that end with a view, which no call makes, and nets that end with labels. */
#include <stdio.h>

#include <mica/op.h>

#include "export/compiled.h"

static mica_net *make(mica_context *ctx, bool labels)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, 5});
    mica_value y = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 6, .activation = MICA_TANH});
    if (labels)
        y = mica_net_call(net, "best", mica_op_find("argmax"), &y, 1,
                          &(mica_arg_opts){.axis = 1, .wide = true});
    else
        y = mica_net_call(net, "view", mica_op_find("reshape"), &y, 1,
                          &(mica_shape_opts){.rank = 3, .dims = {1, 2, 3}});
    if (CHECK_OK(ctx, mica_net_output(net, "y", y)) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 3)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

TEST(export_outputs)
{
    mica_context *ctx = test_context(1);
    compiled all;
    if (!compiled_start(&all, "outputs"))
        return;
    for (int labels = 0; labels < 2; labels++) {
        mica_net *net = make(ctx, labels != 0), *check = make(ctx, labels != 0);
        export_opts opts = {.name = labels != 0 ? "labels" : "view",
                            .source = "a test",
                            .output = "y",
                            .samples = 1,
                            .batch = 1};
        exported e = {0};
        text why = {0};
        if (net != NULL && check != NULL &&
            CHECK_MSG(export_net(&e, net, check, &opts, &why), "%s: %s", opts.name,
                      why.bytes != NULL ? why.bytes : ""))
            compiled_add_test(&all, opts.name, &e);
        exported_free(&e);
        text_free(&why);
        mica_net_destroy(net);
        mica_net_destroy(check);
    }
    compiled_run(&all);
}
