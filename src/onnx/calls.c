/* Calls are recorded while nodes are imported, and enter the net at the end. */
#include <string.h>

#include "base/format.h"
#include "net/net.h"
#include "onnx/state.h"

bool mica_onnx_record(mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count,
                      const void *opts, mica_onnx_ref first)
{
    if (im->call_count == im->call_room) {
        int room = im->call_room > 0 ? 2 * im->call_room : 256;
        mica_onnx_recorded *calls = mica_allocate(im->ctx, (size_t)room * sizeof *calls);
        if (calls == NULL) {
            im->status = im->ctx->status;
            return false;
        }
        if (im->call_count > 0)
            memcpy(calls, im->calls, (size_t)im->call_count * sizeof *calls);
        mica_release(im->ctx, im->calls, (size_t)im->call_room * sizeof *calls);
        im->calls = calls;
        im->call_room = room;
    }
    mica_onnx_recorded call = {.op = op, .first = first, .ins = count};
    memcpy(call.in, ins, (size_t)count * sizeof *ins);
    if (op->opts_bytes > 0) {
        void *kept = mica_onnx_memory(im->model, op->opts_bytes);
        if (kept == NULL) {
            im->status = im->ctx->status;
            return false;
        }
        if (opts != NULL)
            memcpy(kept, opts, op->opts_bytes);
        else
            memset(kept, 0, op->opts_bytes);
        call.opts = kept;
    }
    im->calls[im->call_count++] = call;
    for (int k = 0; k < op->outs; k++)
        im->values[first + k].call = im->call_count;
    return true;
}

static void need(mica_onnx_import *im, mica_onnx_ref ref)
{
    if (ref > 0 && im->values[ref].call != 0)
        im->calls[im->values[ref].call - 1].needed = true;
}

/* A name that no output of the model has: they get theirs last. */
static const char *name_call(mica_onnx_import *im, char text[96], const mica_op *op)
{
    bool taken = true;
    for (int k = 0; taken; k++) {
        (void)mica_format(text, 96, k == 0 ? "%s.%d" : "%s.%d.%d", op->name, im->entered, k);
        taken = mica_net_name_taken(im->net, text);
        for (int i = 0; i < im->model->graph.output_count && !taken; i++)
            taken = strcmp(im->model->graph.outputs[i].name, text) == 0;
    }
    im->entered++;
    return text;
}

static void enter(mica_onnx_import *im, const mica_onnx_recorded *c)
{
    char name[96];
    mica_value ins[MICA_OP_INS] = {0};
    mica_shape_opts room;
    const void *opts = mica_onnx_check_call(im, c, &room);
    for (int i = 0; i < c->ins; i++)
        ins[i] = c->in[i] != 0 ? mica_onnx_in_net(im, c->in[i]) : 0;
    (void)name_call(im, name, c->op);
    const mica_tensor *shape = &im->values[c->first].shape;
    mica_value first = c->derived ? mica_net_derived(im->net, name, shape->dtype, shape->rank, shape->dim,
                                                     c->op, ins, c->ins, opts)
                                  : mica_net_call(im->net, name, c->op, ins, c->ins, opts);
    im->values[c->first].value = first;
    for (int k = 1; k < c->op->outs; k++) /* what has no shape is no result with these options */
        if (im->values[c->first + k].shape.rank >= 0)
            im->values[c->first + k].value = mica_net_result(im->net, first, k);
    im->status = im->status == MICA_OK ? mica_net_status(im->net) : im->status;
}

void mica_onnx_enter_calls(mica_onnx_import *im, const mica_onnx_ref *outs, int count)
{
    for (int i = 0; i < count; i++)
        need(im, outs[i]);
    for (int c = im->call_count - 1; c >= 0; c--) /* inputs come from earlier calls */
        for (int i = 0; im->calls[c].needed && i < im->calls[c].ins; i++)
            need(im, im->calls[c].in[i]);
    for (int c = 0; c < im->call_count && im->status == MICA_OK; c++)
        if (im->calls[c].needed)
            enter(im, &im->calls[c]);
}
