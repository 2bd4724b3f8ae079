/* Values of an import, and calls on them. A call on constants runs at once; its results are constants. */
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "net/net.h"
#include "onnx/pool.h"
#include "onnx/state.h"

/* Constants that are computed take memory that no plan tells of; no real model needs more than a few times its size. */
#define MOST_FOLDED ((size_t)1 << 30)
/* The longest name of a constant; nets take no longer ones. And of a number behind it. */
#define CONSTANT_NAME 256
#define NAME_NUMBER   16

/* ---- Values ---- */

void *mica_onnx_import_memory(mica_onnx_import *im, size_t bytes)
{
    return mica_onnx_memory_in(im->ctx, im->sizing == 0 ? &im->model->chunks : &im->chunks, bytes);
}

/* Another page, behind the last. */
static bool add_page(mica_onnx_import *im)
{
    int number = im->count / MICA_ONNX_PAGE;
    if (mica_onnx_grow(im->ctx, &im->pages, number, &im->page_room, sizeof *im->pages) != MICA_OK)
        return false;
    im->pages[number] = mica_allocate(im->ctx, MICA_ONNX_PAGE * sizeof **im->pages);
    return im->pages[number] != NULL;
}

mica_onnx_ref mica_onnx_hold(mica_onnx_import *im, const mica_onnx_held *held)
{
    if (im->count % MICA_ONNX_PAGE == 0 && !add_page(im)) {
        im->status = im->ctx->status;
        return 0;
    }
    if (im->count == 0)
        *mica_onnx_held_at(im, im->count++) = (mica_onnx_held){.shape = {.dtype = MICA_F32}};
    *mica_onnx_held_at(im, im->count) = *held;
    return im->count++;
}

static const mica_onnx_held *held_of(const mica_onnx_importing *n, mica_onnx_ref ref)
{
    static const mica_onnx_held none = {.shape = {.dtype = MICA_F32}};
    return ref > 0 && ref < n->import->count ? mica_onnx_held_at(n->import, ref) : &none;
}

const mica_tensor *mica_onnx_shape(mica_onnx_importing *n, mica_onnx_ref ref)
{
    return &held_of(n, ref)->shape;
}

bool mica_onnx_is_known(mica_onnx_importing *n, mica_onnx_ref ref)
{
    const mica_onnx_held *held = held_of(n, ref);
    return held->known && !held->learned;
}

/* "the input "axes"", "the inputs "axes", "k"": those of the model that have these bits, in text[size]. */
static void name_inputs(char *text, size_t size, const mica_onnx_import *im, uint64_t bits)
{
    enum { NAMED = 4 };
    size_t at = 0;
    int named = 0;
    text[0] = '\0';
    for (int i = 0; i < mica_onnx_inputs(im->model) && i < 64; i++) {
        mica_onnx_value v;
        if ((bits >> i & 1) == 0 || at >= size || mica_onnx_input(im->model, &v, i) != MICA_OK)
            continue;
        bool more = (bits >> i & ~(uint64_t)1) != 0;
        at += (size_t)mica_format(text + at, size - at, "%s%s",
                                  named > 0 ? ", "
                                  : more    ? "the inputs "
                                            : "the input ",
                                  named < NAMED ? MICA_QUOTE(v.name) : "...");
        if (named++ == NAMED)
            return;
    }
    if (named == 0)
        (void)mica_format(text, size, "inputs");
}

const mica_tensor *mica_onnx_known(mica_onnx_importing *n, mica_onnx_ref ref, const char *what)
{
    const mica_onnx_held *held = held_of(n, ref);
    if (n->failed)
        return NULL;
    n->sized = n->sized || (n->import->twin != NULL && mica_onnx_in_twin(n->import, ref) != MICA_ONNX_SAME);
    if (held->known)
        return &held->shape;
    char reason[MICA_ERROR_TEXT], names[400];
    name_inputs(names, sizeof names, n->import, held->inputs);
    if (ref == 0)
        (void)mica_format(reason, sizeof reason, "%s is missing", what);
    else
        (void)mica_format(reason, sizeof reason,
                          "%s must be known before the net is planned: it is computed from %s", what, names);
    mica_onnx_add_problem(n->import, n->node, reason, held->inputs);
    n->failed = true;
    return NULL;
}

int mica_onnx_known_ints(mica_onnx_importing *n, mica_onnx_ref ref, const char *what, int64_t *out, int most)
{
    const mica_tensor *t = mica_onnx_known(n, ref, what);
    if (t == NULL)
        return -1;
    size_t count = mica_tensor_count(t);
    if (count > (size_t)most || (t->dtype != MICA_I64 && t->dtype != MICA_I32)) {
        (void)mica_onnx_bad(n, "%s is %s %s: expected at most %d integers", what, mica_dtype_name(t->dtype),
                            MICA_SHAPE(t), most);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = t->dtype == MICA_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
    return (int)count;
}

double mica_onnx_known_number(mica_onnx_importing *n, mica_onnx_ref ref, const char *what)
{
    const mica_tensor *t = mica_onnx_known(n, ref, what);
    double value = 0;
    if (t == NULL)
        return 0;
    mica_index zeros[MICA_MAX_RANK] = {0};
    if (mica_tensor_count(t) != 1 || mica_at(n->import->ctx, &value, t, zeros) != MICA_OK)
        (void)mica_onnx_bad(n, "%s is %s: expected one number", what, MICA_SHAPE(t));
    return value;
}

/* ---- Constants ---- */

bool mica_onnx_may_compute(mica_onnx_importing *n, size_t bytes)
{
    mica_onnx_import *im = n->import;
    if (bytes > MOST_FOLDED - im->folded)
        return mica_onnx_unsupported(n, "constants computed from others take more than %zu bytes",
                                     MOST_FOLDED) != 0;
    im->folded += bytes;
    return true;
}

mica_onnx_ref mica_onnx_constant(mica_onnx_importing *n, const mica_tensor *tensor)
{
    if (n->failed)
        return 0;
    mica_onnx_held held = {.shape = *tensor, .known = true};
    size_t bytes = mica_tensor_bytes(tensor);
    held.shape.data = mica_onnx_memory(n->import->model, bytes > 0 ? bytes : 1);
    if (held.shape.data == NULL) {
        n->import->status = n->import->ctx->status;
        n->failed = true;
        return 0;
    }
    if (bytes > 0)
        memcpy(held.shape.data, tensor->data, bytes);
    return mica_onnx_hold(n->import, &held);
}

mica_onnx_ref mica_onnx_scalar(mica_onnx_importing *n, mica_dtype dtype, double value)
{
    uint64_t room[2] = {0};
    mica_tensor t = {.data = room, .dtype = dtype};
    if (n->failed)
        return 0;
    if (mica_set_at(n->import->ctx, &t, NULL, value) != MICA_OK)
        return mica_onnx_bad(n, "%g as %s", value, mica_dtype_name(dtype));
    return mica_onnx_constant(n, &t);
}

mica_onnx_ref mica_onnx_vector(mica_onnx_importing *n, const int64_t *values, int count)
{
    mica_tensor t = {.dtype = MICA_I64, .rank = 1, .dim = {count}, .stride = {1}};
    memcpy(&t.data, &values, sizeof values); /* only read */
    return mica_onnx_constant(n, &t);
}

/* ---- Calls ---- */

/* Inputs of a call as tensors. False: it can not, or need not, be made. */
typedef struct call {
    const mica_op *op;
    const mica_onnx_ref *ins;
    int count;
    const void *opts;
    const mica_tensor *tensors[MICA_OP_INS];
    mica_tensor shapes[MICA_OP_INS], outs[MICA_OP_OUTS];
    bool fold, trained;
    uint64_t inputs;
} call;

/* How many outputs it has: of some operations, the options say that. */
static int outs_of(const call *c)
{
    int count = 0;
    while (count < c->op->outs && c->outs[count].rank >= 0)
        count++;
    return count;
}

static bool collect(mica_onnx_importing *n, call *c)
{
    c->fold = (c->op->flags & (MICA_OP_RANDOM | MICA_OP_LOSS)) == 0 && c->op->writes == 0 &&
              c->op->run != NULL;
    if (c->count > MICA_OP_INS) {
        (void)mica_onnx_unsupported(n, "%d inputs, expected at most %d", c->count, MICA_OP_INS);
        return false;
    }
    for (int i = 0; i < c->op->ins; i++)
        if (i >= c->count || c->ins[i] == 0) {
            (void)mica_onnx_bad(n, "an input is missing: %s takes %d", c->op->name, c->op->ins);
            return false;
        }
    for (int i = 0; i < c->count; i++) {
        const mica_onnx_held *held = held_of(n, c->ins[i]);
        c->tensors[i] = c->ins[i] != 0 ? &c->shapes[i] : NULL;
        c->shapes[i] = held->shape;
        c->shapes[i].data = NULL;
        c->inputs |= held->inputs;
        c->trained = c->trained || held->learned || held->trained;
        c->fold = c->fold && (c->ins[i] == 0 || (held->known && !held->learned));
    }
    return true;
}

/* The first outputs have consecutive numbers: mica_onnx_result counts on that. */
static mica_onnx_ref hold_outputs(mica_onnx_importing *n, const call *c, bool known)
{
    mica_onnx_ref first = 0;
    for (int k = 0; k < c->op->outs; k++) {
        mica_onnx_held held = {.shape = c->outs[k],
                               .inputs = c->inputs,
                               .known = known,
                               .loose = known && mica_onnx_is_loose(n->import, c->ins, c->count),
                               .falls = known && mica_onnx_may_fall(n->import, c->op, c->ins, c->count),
                               .trained = c->trained};
        if (!known)
            held.shape.data = NULL;
        mica_onnx_ref ref = mica_onnx_hold(n->import, &held);
        first = k == 0 ? ref : first;
    }
    n->failed = n->failed || first == 0;
    return first;
}

static mica_onnx_ref run_now(mica_onnx_importing *n, call *c)
{
    mica_onnx_import *im = n->import;
    const mica_tensor *outs[MICA_OP_OUTS] = {NULL};
    size_t bytes = 0;
    for (int k = 0; k < outs_of(c); k++)
        bytes += mica_tensor_bytes(&c->outs[k]);
    if (!mica_onnx_may_compute(n, bytes))
        return 0;
    for (int k = 0; k < outs_of(c); k++) {
        size_t each = mica_tensor_bytes(&c->outs[k]);
        c->outs[k].data = mica_onnx_import_memory(im, each > 0 ? each : 1);
        if (c->outs[k].data == NULL) {
            im->status = im->ctx->status;
            n->failed = true;
            return 0;
        }
        outs[k] = &c->outs[k];
    }
    for (int i = 0; i < c->count; i++)
        c->shapes[i].data = held_of(n, c->ins[i])->shape.data;
    mica_measure_begin(im->ctx);
    mica_status status = mica_op_run(im->ctx, c->op, outs, c->tensors, c->count, c->opts);
    size_t scratch = mica_measure_end(im->ctx);
    if (status == MICA_OK && scratch > mica_workspace_bytes(im->ctx))
        status = mica_workspace_reserve(im->ctx, scratch);
    if (status == MICA_OK)
        status = mica_op_run(im->ctx, c->op, outs, c->tensors, c->count, c->opts);
    if (status != MICA_OK)
        return mica_onnx_bad(n, "%s", mica_error(im->ctx));
    mica_onnx_doubt_folded(im, c->op, c->ins, c->count, c->outs[0].dtype);
    return hold_outputs(n, c, true);
}

static mica_onnx_ref add_call(mica_onnx_importing *n, const call *c)
{
    mica_onnx_ref first = hold_outputs(n, c, false);
    if (first == 0 || !mica_onnx_record(n->import, c->op, c->ins, c->count, c->opts, first))
        n->failed = true;
    return n->failed ? 0 : first;
}

mica_onnx_ref mica_onnx_call(mica_onnx_importing *n, const mica_op *op, const mica_onnx_ref *ins, int count,
                             const void *opts)
{
    call c = {.op = op, .ins = ins, .count = count, .opts = opts};
    if (n->failed || n->import->status != MICA_OK)
        return 0;
    while (c.count > op->ins && ins[c.count - 1] == 0)
        c.count--;
    if (!collect(n, &c))
        return 0;
    if (mica_op_infer(n->import->ctx, op, c.outs, c.tensors, c.count, opts) != MICA_OK)
        return mica_onnx_bad(n, "%s", mica_error(n->import->ctx));
    return c.fold ? run_now(n, &c) : add_call(n, &c);
}

mica_onnx_ref mica_onnx_derived(mica_onnx_importing *n, const mica_op *op, const mica_onnx_ref *ins,
                                int count, const void *opts)
{
    call c = {.op = op, .ins = ins, .count = count, .opts = opts};
    if (n->failed || n->import->status != MICA_OK || n->import->net->ctx != n->import->ctx || !collect(n, &c))
        return 0;
    if (mica_op_infer(n->import->ctx, op, c.outs, c.tensors, c.count, opts) != MICA_OK)
        return mica_onnx_bad(n, "%s", mica_error(n->import->ctx));
    mica_onnx_ref first = add_call(n, &c);
    if (first != 0)
        n->import->calls[n->import->call_count - 1].derived = true;
    return first;
}

mica_onnx_ref mica_onnx_op(mica_onnx_importing *n, const char *op, const mica_onnx_ref *ins, int count,
                           const void *opts)
{
    const mica_op *entry = mica_op_find(op);
    if (entry == NULL)
        return mica_onnx_unsupported(n, "Mica has no operation \"%s\"", op);
    return mica_onnx_call(n, entry, ins, count, opts);
}

mica_onnx_ref mica_onnx_op1(mica_onnx_importing *n, const char *op, mica_onnx_ref a, const void *opts)
{
    return mica_onnx_op(n, op, &a, 1, opts);
}

mica_onnx_ref mica_onnx_op2(mica_onnx_importing *n, const char *op, mica_onnx_ref a, mica_onnx_ref b,
                            const void *opts)
{
    return mica_onnx_op(n, op, (mica_onnx_ref[]){a, b}, 2, opts);
}

mica_onnx_ref mica_onnx_result(mica_onnx_importing *n, mica_onnx_ref ref, int number)
{
    return n->failed || ref == 0 ? 0 : ref + number;
}

/* ---- Common calls ---- */

mica_onnx_ref mica_onnx_cast(mica_onnx_importing *n, mica_onnx_ref ref, mica_dtype dtype)
{
    if (ref == 0 || mica_onnx_shape(n, ref)->dtype == dtype)
        return ref;
    return mica_onnx_op1(n, "copy", ref, &(mica_copy_opts){.cast = true, .dtype = dtype});
}

mica_onnx_ref mica_onnx_reshape(mica_onnx_importing *n, mica_onnx_ref ref, int rank, const mica_index *dims)
{
    mica_shape_opts opts = {.rank = rank};
    if (rank > MICA_MAX_RANK)
        return mica_onnx_unsupported(n, "a tensor of %d dimensions: Mica has at most %d", rank,
                                     MICA_MAX_RANK);
    for (int i = 0; i < rank; i++)
        opts.dims[i] = dims[i];
    return mica_onnx_op1(n, "reshape", ref, &opts);
}

mica_onnx_ref mica_onnx_permute(mica_onnx_importing *n, mica_onnx_ref ref, const int *axes)
{
    mica_permute_opts opts = {0};
    memcpy(opts.axes, axes, (size_t)mica_onnx_shape(n, ref)->rank * sizeof *axes);
    return mica_onnx_op1(n, "permute", ref, &opts);
}

/* A type of floats that is computed in f32. */
static bool is_other_float(mica_dtype dtype)
{
    return dtype == MICA_F16 || dtype == MICA_BF16 || dtype == MICA_F64;
}

mica_onnx_ref mica_onnx_f32(mica_onnx_importing *n, int number)
{
    mica_onnx_ref ref = number < n->ins ? n->in[number] : 0;
    return ref != 0 && is_other_float(mica_onnx_shape(n, ref)->dtype) ? mica_onnx_cast(n, ref, MICA_F32)
                                                                      : ref;
}

void mica_onnx_give_like(mica_onnx_importing *n, int number, mica_onnx_ref ref, mica_onnx_ref like)
{
    mica_onnx_give(n, number, mica_onnx_cast(n, ref, mica_onnx_shape(n, like)->dtype));
}

void mica_onnx_give(mica_onnx_importing *n, int number, mica_onnx_ref ref)
{
    if (number < n->outs)
        n->out[number] = ref;
}

bool mica_onnx_wants(const mica_onnx_importing *n, int number)
{
    return number < n->outs && n->node->out[number][0] != '\0';
}

/* ---- In the net ---- */

mica_context *mica_onnx_context(const mica_onnx_importing *n) { return n->import->ctx; }

bool mica_onnx_training(const mica_onnx_importing *n) { return n->import->opts->train; }
bool mica_onnx_may_train(const mica_onnx_importing *n)
{
    return n->import->opts->train && !n->import->opts->frozen;
}

/* The name of a constant, or one for what has none, or one that is longer than a net takes. `end` tells several uses
 * of an initializer apart: files share those that are equal, so that a mean may be a shift as well. A number does so
 * for those of several subgraphs, say of both branches of an If. */
static const char *constant_name(mica_onnx_import *im, const mica_onnx_held *held, const char *end,
                                 char *text, size_t size)
{
    size_t length = held->name != NULL ? strlen(held->name) : 0, more = strlen(end) + 1;
    if (length > 0 && length + more + (held->inner ? NAME_NUMBER : 0) <= size) {
        memcpy(text, held->name, length);
        memcpy(text + length, end, more);
        for (int k = 2; held->inner && mica_onnx_name_taken(im, text); k++)
            (void)mica_format(text + length + more - 1, NAME_NUMBER, ".%d", k);
        return text;
    }
    do
        (void)mica_format(text, size, "constant.%d", im->made_names++);
    while (mica_onnx_name_taken(im, text));
    return text;
}

mica_value mica_onnx_in_net(mica_onnx_import *im, mica_onnx_ref ref)
{
    mica_onnx_held *held = mica_onnx_held_at(im, ref);
    if (held->value != 0 || !held->known)
        return held->value;
    char text[CONSTANT_NAME];
    bool shared = held->kept[0] != 0 || held->kept[1] != 0;
    const char *name = constant_name(im, held, shared ? ".shared" : "", text, sizeof text);
    if (held->learned) {
        held->value = mica_net_learned(im->net, name, held->shape.rank, held->shape.dim, (mica_init){0});
        mica_status status = mica_onnx_remember(im->model, name, &held->shape);
        im->status = im->status == MICA_OK ? status : im->status;
    } else {
        mica_value lent = mica_net_lent(im->net, name, &held->shape);
        held->value = mica_onnx_sized_constant(im, ref, lent);
    }
    return held->value;
}

mica_onnx_ref mica_onnx_kept(mica_onnx_importing *n, mica_onnx_ref ref, int which)
{
    const mica_onnx_held from = *held_of(n, ref);
    if (n->failed || mica_onnx_known(n, ref, "a running statistic") == NULL)
        return 0;
    if (from.kept[which] != 0)
        return from.kept[which];
    char text[CONSTANT_NAME];
    const char *end = from.kept[1 - which] == 0 ? "" : which == 0 ? ".mean" : ".variance";
    const char *name = constant_name(n->import, &from, end, text, sizeof text);
    mica_onnx_held held = {.shape = from.shape};
    held.shape.data = NULL;
    held.value = mica_net_kept(n->import->net, name, MICA_KEPT_STATISTICS, from.shape.dtype, from.shape.rank,
                               from.shape.dim, 0);
    mica_status status = mica_onnx_remember(n->import->model, name, &from.shape);
    n->import->status = n->import->status == MICA_OK ? status : n->import->status;
    mica_onnx_ref kept = mica_onnx_hold(n->import, &held);
    if (kept != 0)
        mica_onnx_held_at(n->import, ref)->kept[which] = kept;
    return kept;
}
