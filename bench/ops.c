/* Operations by their entries. The sample of an entry is small; here it grows: every size that occurs among the inputs
 * is doubled wherever it occurs, as long as the operation takes that and the whole stays within a limit. So a new
 * operation has its row without a line here. */
#include "bench/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/op.h>

#include "base/context.h"

#define PREFIX        "op_"
#define SAMPLES       16        /* that are tried; the one that grows largest is taken */
#define MOST_ELEMENTS (1 << 20) /* of all inputs and outputs */
#define MOST_FLOPS    4e8

/* ---- Rows ---- */

/* Views run nothing; backwards without a sample depend on what their forward made. */
static bool has_row(const mica_op *op)
{
    return op->infer != NULL && op->run != NULL &&
           (op->sample != NULL || strstr(op->name, "_backward") == NULL);
}

static mica_status setup(bench_state *s);
static mica_status run(bench_state *s);

bench_case *bench_op_rows(size_t *count)
{
    size_t bytes = 0, n = 0;
    for (int i = 0; mica_op_at(i) != NULL; i++)
        if (has_row(mica_op_at(i))) {
            bytes += sizeof PREFIX + strlen(mica_op_at(i)->name);
            n++;
        }
    bench_case *rows = calloc(1, n * sizeof *rows + bytes + 1);
    *count = n;
    if (rows == NULL)
        return NULL;
    char *name = (char *)(rows + n);
    n = 0;
    for (int i = 0; mica_op_at(i) != NULL; i++)
        if (has_row(mica_op_at(i))) {
            rows[n++] = (bench_case){name, setup, run, {i}};
            name += snprintf(name, sizeof PREFIX + strlen(mica_op_at(i)->name), PREFIX "%s",
                             mica_op_at(i)->name) +
                    1;
        }
    return rows;
}

/* ---- A sample that grows ---- */

typedef struct op_call {
    const mica_op *op;
    uint64_t state; /* of the numbers that the sample draws */
    mica_op_sample sample;
    mica_tensor out[MICA_OP_OUTS];
    double elements, made, flops; /* in all; of the outputs */
    const mica_tensor *ins[MICA_OP_INS], *outs[MICA_OP_OUTS];
    _Alignas(max_align_t) char opts[]; /* op->opts_bytes */
} op_call;

static uint64_t draw(mica_op_sample *sample)
{
    op_call *c = sample->user;
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return c->state >> 33;
}

static void take_sample(op_call *c, uint64_t seed)
{
    memset(c->opts, 0, c->op->opts_bytes);
    c->state = seed;
    c->sample = (mica_op_sample){.draw = draw, .user = c, .opts = c->opts, .ins = c->op->ins};
    for (int i = 0; i < MICA_OP_INS; i++) {
        c->sample.in[i].rank = -1;
        c->sample.low[i] = -1.0;
        c->sample.high[i] = 1.0;
        if (i < c->op->ins)
            mica_op_sample_shape(&c->sample, i, 2, (mica_index[]){8, 8});
    }
    if (c->op->sample != NULL)
        c->op->sample(&c->sample);
}

static void point(op_call *c)
{
    for (int i = 0; i < MICA_OP_INS; i++)
        c->ins[i] = i < c->sample.ins && c->sample.in[i].rank >= 0 ? &c->sample.in[i] : NULL;
    for (int k = 0; k < MICA_OP_OUTS; k++)
        c->outs[k] = k < c->op->outs && c->out[k].rank >= 0 ? &c->out[k] : NULL;
}

/* Infers, and runs without data: whether the operation takes these shapes, and what it then costs. */
static bool try_call(op_call *c, mica_context *ctx)
{
    for (int i = 0; i < c->sample.ins; i++)
        if (c->sample.in[i].rank >= 0)
            c->sample.in[i] = mica_tensor_like(&c->sample.in[i], NULL);
    for (int k = 0; k < MICA_OP_OUTS; k++)
        c->out[k].rank = -1;
    point(c);
    if (mica_op_infer(ctx, c->op, c->out, c->ins, c->sample.ins, c->opts) != MICA_OK)
        return false;
    point(c);
    c->elements = c->made = 0.0;
    for (int i = 0; i < MICA_OP_INS; i++)
        c->elements += c->ins[i] != NULL ? (double)mica_tensor_count(c->ins[i]) : 0.0;
    for (int k = 0; k < MICA_OP_OUTS; k++)
        c->made += c->outs[k] != NULL ? (double)mica_tensor_count(c->outs[k]) : 0.0;
    c->elements += c->made;
    if (c->elements > MOST_ELEMENTS)
        return false;
    mica_measure_begin(ctx);
    mica_status status = mica_op_run(ctx, c->op, c->outs, c->ins, c->sample.ins, c->opts);
    c->flops = mica_measure_flops(ctx);
    (void)mica_measure_end(ctx);
    return status == MICA_OK && c->flops <= MOST_FLOPS;
}

/* Doubles a size wherever an input has it. */
static bool double_size(op_call *c, mica_context *ctx, mica_index size)
{
    mica_tensor before[MICA_OP_INS];
    double elements = c->elements;
    memcpy(before, c->sample.in, sizeof before);
    for (int i = 0; i < c->sample.ins; i++)
        for (int k = 0; k < c->sample.in[i].rank; k++)
            if (c->sample.in[i].dim[k] == size)
                c->sample.in[i].dim[k] = 2 * size;
    if (try_call(c, ctx) && c->elements > elements)
        return true;
    memcpy(c->sample.in, before, sizeof before);
    (void)try_call(c, ctx);
    return false;
}

static void grow(op_call *c, mica_context *ctx)
{
    bool grown = true;
    while (grown) {
        mica_index sizes[MICA_OP_INS * MICA_MAX_RANK];
        int count = 0;
        grown = false;
        for (int i = 0; i < c->sample.ins; i++)
            for (int k = 0; k < c->sample.in[i].rank; k++)
                sizes[count++] = c->sample.in[i].dim[k];
        for (int i = 0; i < count; i++)
            grown = (sizes[i] > 0 && double_size(c, ctx, sizes[i])) || grown;
    }
}

/* The sample that grows largest. */
static mica_status find_sample(op_call *c, mica_context *ctx)
{
    double best = -1.0;
    uint64_t seed = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        take_sample(c, i);
        if (!try_call(c, ctx))
            continue;
        grow(c, ctx);
        if (c->elements + 8.0 * c->made > best) { /* a slice of most of it says more than one of nothing */
            best = c->elements + 8.0 * c->made;
            seed = i;
        }
    }
    take_sample(c, seed);
    if (best < 0.0 || !try_call(c, ctx))
        return mica_fail(ctx, MICA_ERR_STATE, "%s does not take its own samples", c->op->name);
    grow(c, ctx);
    return MICA_OK;
}

/* ---- The case ---- */

/* Numbers within the input's range; of integers, below its end. */
static void fill(mica_context *ctx, op_call *c, mica_tensor *t, double low, double high)
{
    bool whole = t->dtype >= MICA_I64 && t->dtype <= MICA_BOOL;
    double least = low > 0.0 ? low : 0.0;
    for (mica_iter it = mica_iter_begin(t, 0, NULL); it.valid; mica_iter_next(&it)) {
        double share = (double)draw(&c->sample) * 0x1p-31;
        double value = whole ? least + (double)(mica_index)(share * (high > least ? high - least : 1.0))
                             : low + share * (high - low);
        (void)mica_set_at(ctx, t, it.index, value);
    }
}

static mica_status setup(bench_state *s)
{
    const mica_op *op = mica_op_at((int)s->row->size[0]);
    op_call *c = s->scratch = calloc(1, sizeof *c + op->opts_bytes + 1);
    if (c == NULL)
        return mica_fail(s->ctx, MICA_ERR_MEMORY, "no memory for a sample of %s", op->name);
    c->op = op;
    BENCH_TRY(find_sample(c, s->ctx));
    s->flops = c->flops;
    for (int i = 0; i < MICA_OP_INS; i++) {
        if (c->ins[i] == NULL)
            continue;
        BENCH_TRY(bench_tensor(s, c->ins[i]->dtype, c->ins[i]->rank, c->ins[i]->dim));
        fill(s->ctx, c, &s->t[s->tensors - 1], c->sample.low[i], c->sample.high[i]);
        c->ins[i] = &s->t[s->tensors - 1];
    }
    for (int k = 0; k < MICA_OP_OUTS; k++) {
        if (c->outs[k] == NULL)
            continue;
        BENCH_TRY(bench_tensor(s, c->outs[k]->dtype, c->outs[k]->rank, c->outs[k]->dim));
        c->outs[k] = &s->t[s->tensors - 1];
    }
    return MICA_OK;
}

static mica_status run(bench_state *s)
{
    op_call *c = s->scratch;
    return mica_op_run(s->ctx, c->op, c->outs, c->ins, c->sample.ins, c->opts);
}
