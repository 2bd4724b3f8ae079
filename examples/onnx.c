/* An ONNX model in a program: onnx MODEL.onnx [BATCH] prints how much memory it takes, runs it on made-up inputs, and
 * prints the first values of each output. Without arguments it prints its usage.
 *
 *     mica convert lenet lenet.onnx         or torch.onnx.export(model, inputs, "lenet.onnx", ...)
 *     onnx lenet.onnx 8 */
#include <mica/mica.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct runner {
    mica_context *ctx;
    mica_onnx *model;
    mica_net *net;
} runner;

static bool has_size(const mica_onnx *model, const char *name)
{
    mica_onnx_value v;
    for (int i = 0; i < mica_onnx_inputs(model) && mica_onnx_input(model, &v, i) == MICA_OK; i++)
        for (int k = 0; k < v.rank; k++)
            if (v.symbol[k] != NULL && strcmp(v.symbol[k], name) == 0)
                return true;
    return false;
}

/* Everything that allocates. A model with other open sizes, such as a length, needs a mica_onnx_set for each. */
static mica_status load(runner *r, const char *path, mica_index batch)
{
    mica_onnx_set sets[] = {{.name = "batch", .size = batch}};
    mica_status status = mica_onnx_open(r->ctx, &r->model, path);
    if (status == MICA_OK)
        status = mica_net_create(r->ctx, &r->net);
    if (status == MICA_OK)
        status = mica_onnx_build(r->model, r->net,
                                 &(mica_onnx_opts){.sets = sets, .count = has_size(r->model, "batch")});
    if (status == MICA_OK)
        status = mica_net_compile(r->net, &(mica_compile_opts){.prepare = true});
    if (status != MICA_OK)
        return status;
    printf("%zu bytes planned, %zu bytes of weights lent from the file\n", mica_net_plan(r->net)->total,
           mica_onnx_describe(r->model).weight_bytes);
    return mica_net_bind(r->net, NULL, 0);
}

/* A real program writes its own data here. Before each run: a run overwrites its inputs. */
static mica_status fill(const runner *r)
{
    mica_status status = MICA_OK;
    for (int i = 0; status == MICA_OK && i < mica_net_inputs(r->net); i++) {
        const char *name;
        mica_tensor t;
        status = mica_net_input_tensor(r->net, &name, &t, i);
        if (status == MICA_OK)
            memset(t.data, 0, mica_tensor_bytes(&t));
        for (size_t k = 0; status == MICA_OK && t.dtype == MICA_F32 && k < mica_tensor_count(&t); k++)
            ((float *)t.data)[k] = (float)(k % 11) / 5.0f - 1.0f;
    }
    return status;
}

static mica_status print_outputs(const runner *r)
{
    enum { SHOWN = 4 };
    for (int i = 0; i < mica_onnx_outputs(r->model); i++) {
        mica_onnx_value output;
        mica_tensor t;
        mica_status status = mica_onnx_output(r->model, &output, i);
        if (status == MICA_OK)
            status = mica_net_tensor(r->net, &t, output.name);
        if (status != MICA_OK)
            return status;
        printf("%s:", output.name);
        for (size_t k = 0;
             t.dtype == MICA_F32 && mica_tensor_contiguous(&t) && k < mica_tensor_count(&t) && k < SHOWN; k++)
            printf(" %g", (double)((const float *)t.data)[k]);
        printf("\n");
    }
    return MICA_OK;
}

int main(int argc, char **argv)
{
    runner r = {.ctx = NULL};
    if (argc < 2) {
        printf("usage: onnx MODEL.onnx [BATCH]\n");
        return 0;
    }
    if (mica_context_create(&r.ctx, NULL) != MICA_OK)
        return 1;
    mica_status status = load(&r, argv[1], argc > 2 ? atoi(argv[2]) : 1);
    for (int run = 0; status == MICA_OK && run < 3; run++) { /* nothing allocates from here on */
        status = fill(&r);
        if (status == MICA_OK)
            status = mica_net_forward(r.net);
    }
    if (status == MICA_OK)
        status = print_outputs(&r);
    if (status != MICA_OK)
        fprintf(stderr, "onnx: %s\n", mica_error(r.ctx));
    mica_net_destroy(r.net); /* before the model, whose weights it uses */
    mica_onnx_close(r.model);
    mica_context_destroy(r.ctx);
    return status == MICA_OK ? 0 : 1;
}
