/* Calls are recorded while nodes are imported, and enter the net at the end. */
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "net/net.h"
#include "onnx/state.h"

/* Some nodes become more calls the larger their inputs are, and an input may be said to be as large as one likes. */
#define MOST_CALLS 500000

bool mica_onnx_record(mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count,
                      const void *opts, mica_onnx_ref first)
{
    if (im->call_count >= MOST_CALLS) {
        im->status = mica_fail(im->ctx, MICA_ERR_FORMAT, "%s: its nodes become more than %d operations",
                               MICA_QUOTE(im->model->path), MOST_CALLS);
        return false;
    }
    mica_status status = mica_onnx_grow(im->ctx, &im->calls, im->call_count, &im->call_room,
                                        sizeof *im->calls);
    if (status != MICA_OK) {
        im->status = status;
        return false;
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
        mica_onnx_held_at(im, first + k)->call = im->call_count;
    return true;
}

static void need(mica_onnx_import *im, mica_onnx_ref ref)
{
    if (ref > 0 && mica_onnx_held_at(im, ref)->call != 0)
        im->calls[mica_onnx_held_at(im, ref)->call - 1].needed = true;
}

static const char *name_call(mica_onnx_import *im, char text[96], const mica_op *op)
{
    bool taken = true;
    for (int k = 0; taken; k++) {
        (void)mica_format(text, 96, k == 0 ? "%s.%d" : "%s.%d.%d", op->name, im->entered, k);
        taken = mica_onnx_name_taken(im, text);
    }
    im->entered++;
    return text;
}

static void enter(mica_onnx_import *im, mica_onnx_recorded *c)
{
    char name[96];
    mica_value ins[MICA_OP_INS] = {0};
    mica_onnx_check_call(im, c);
    for (int i = 0; i < c->ins; i++)
        ins[i] = c->in[i] != 0 ? mica_onnx_in_net(im, c->in[i]) : 0;
    (void)name_call(im, name, c->op);
    const mica_tensor *shape = &mica_onnx_held_at(im, c->first)->shape;
    mica_value first = c->derived ? mica_net_derived(im->net, name, shape->dtype, shape->rank, shape->dim,
                                                     c->op, ins, c->ins, c->opts)
                                  : mica_net_call(im->net, name, c->op, ins, c->ins, c->opts);
    mica_onnx_held_at(im, c->first)->value = first;
    for (int k = 1; k < c->op->outs; k++) /* what has no shape is no result with these options */
        if (mica_onnx_held_at(im, c->first + k)->shape.rank >= 0)
            mica_onnx_held_at(im, c->first + k)->value = mica_net_result(im->net, first, k);
    im->status = im->status == MICA_OK ? mica_net_status(im->net) : im->status;
    if (first != 0 && c->op->outs > 1) /* the model says what its outputs are */
        im->net->values[first - 1].unasked = true;
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
