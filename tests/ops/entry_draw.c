#include "ops/entry_draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool entry_skipped(const mica_op *op)
{
    const char *only = getenv("MICA_OP");
    return only != NULL && *only != '\0' && strcmp(only, op->name) != 0;
}

bool entry_callable(const mica_op *op)
{
    return op->infer != NULL && (op->sample != NULL || strstr(op->name, "_backward") == NULL);
}

bool entry_result(const entry_draw *d, int k)
{
    unsigned optional = d->op->optional_outs, spare = optional & d->op->fixed_outs;
    bool differentiable = d->op->gradient != NULL && d->out[k].dtype == MICA_F32 && !(spare >> k & 1u);
    return k < d->op->outs && d->out[k].rank >= 0 &&
           ((optional & 1u) || !(optional >> k & 1u) || differentiable);
}

static uint64_t draw_number(mica_op_sample *sample) { return test_next(sample->user); }

/* Numbers within the input's range; of integers, below its end. */
static void fill(entry_draw *d, mica_context *ctx, int in)
{
    mica_tensor *t = &d->in[in];
    double low = d->sample.low[in], high = d->sample.high[in];
    bool whole = t->dtype != MICA_F32 && t->dtype != MICA_F64 && t->dtype != MICA_F16 &&
                 t->dtype != MICA_BF16;
    t->data = aligned_alloc(64, (mica_tensor_bytes(t) + 64) / 64 * 64);
    for (mica_iter it = mica_iter_begin(t, 0, NULL); it.valid; mica_iter_next(&it)) {
        double value = whole ? (double)test_int(&d->random, (int)fmax(low, 0.0), (int)fmax(high, 1.0) - 1)
                             : test_uniform(&d->random, low, high);
        (void)mica_set_at(ctx, t, it.index, value);
    }
}

void entry_draw_make(entry_draw *d, mica_context *ctx, const mica_op *op, uint64_t seed)
{
    *d = (entry_draw){.op = op, .random = test_seed(seed)};
    d->sample = (mica_op_sample){.draw = draw_number, .user = &d->random, .ins = op->ins};
    d->sample.opts = calloc(1, op->opts_bytes + 1);
    mica_index dims[3];
    int rank = test_int(&d->random, 1, 3);
    for (int k = 0; k < rank; k++)
        dims[k] = test_int(&d->random, 1, 5);
    for (int i = 0; i < MICA_OP_INS; i++) {
        d->sample.in[i].rank = -1;
        if (i < op->ins)
            mica_op_sample_shape(&d->sample, i, rank, dims);
        d->sample.low[i] = -1.0;
        d->sample.high[i] = 1.0;
    }
    if (op->sample != NULL)
        op->sample(&d->sample);
    for (int i = 0; i < d->sample.ins; i++) {
        d->given[i] = d->sample.in[i].rank >= 0;
        if (!d->given[i])
            continue;
        d->in[i] = mica_tensor_like(&d->sample.in[i], NULL);
        fill(d, ctx, i);
        d->ins[i] = &d->in[i];
    }
    for (int k = 0; k < MICA_OP_OUTS; k++)
        d->out[k].rank = -1;
    if (entry_callable(op) &&
        CHECK_MSG(mica_op_infer(ctx, op, d->out, d->ins, d->sample.ins, d->sample.opts) == MICA_OK,
                  "%s: seed %d: %s", op->name, (int)seed, mica_error(ctx)))
        for (int k = 0; k < op->outs; k++)
            if (d->out[k].rank >= 0)
                d->out[k].data = aligned_alloc(64, (mica_tensor_bytes(&d->out[k]) + 64) / 64 * 64);
}

void entry_draw_free(entry_draw *d)
{
    for (int i = 0; i < MICA_OP_INS; i++)
        free(d->in[i].data);
    for (int k = 0; k < MICA_OP_OUTS; k++)
        free(d->out[k].data);
    free(d->sample.opts);
}

/* ---- Nets ---- */

static mica_value add_input(mica_net *net, const entry_draw *d, int in, bool learned)
{
    char name[16];
    const mica_tensor *t = &d->in[in];
    snprintf(name, sizeof name, "in %d", in);
    if (!d->given[in])
        return 0;
    if (d->op->writes >> in & 1u)
        return mica_net_kept(net, name, MICA_KEPT_STATE, t->dtype, t->rank, t->dim, 0.0f);
    return learned ? mica_net_learned(net, name, t->rank, t->dim, (mica_init){MICA_INIT_CONSTANT, 0.0f})
                   : mica_net_input(net, name, t->dtype, t->rank, t->dim);
}

bool entry_net_make(entry_net *n, mica_context *ctx, const entry_draw *d, unsigned learned, bool copied)
{
    *n = (entry_net){.net = NULL};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &n->net)))
        return false;
    for (int i = 0; i < d->sample.ins; i++) {
        bool is_learned = (learned >> i & 1u) != 0;
        n->given[i] = n->in[i] = add_input(n->net, d, i, is_learned);
        if (is_learned && copied)
            n->in[i] = mica_net_op(n->net, NULL, "copy", &n->given[i], 1, NULL);
    }
    n->out[0] = mica_net_call(n->net, "call", d->op, n->in, d->sample.ins, d->sample.opts);
    for (int k = 0; k < d->op->outs; k++) {
        char name[16];
        snprintf(name, sizeof name, "out %d", k);
        if (!entry_result(d, k))
            continue;
        n->out[k] = mica_net_result(n->net, n->out[0], k);
        (void)mica_net_output(n->net, name, n->out[k]);
    }
    return CHECK_MSG(mica_net_status(n->net) == MICA_OK, "%s: %s", d->op->name, mica_error(ctx));
}

bool entry_net_fill(const entry_net *n, const entry_draw *d, unsigned learned, bool again)
{
    bool ok = true;
    for (int i = 0; i < d->sample.ins; i++) {
        mica_tensor t;
        if (!d->given[i] || (again && (learned >> i & 1u)))
            continue;
        ok = ok && CHECK_OK(mica_net_context(n->net), mica_net_value_tensor(n->net, &t, n->given[i]));
        if (ok && mica_tensor_bytes(&t) > 0)
            memcpy(t.data, d->in[i].data, mica_tensor_bytes(&t));
    }
    return ok;
}
