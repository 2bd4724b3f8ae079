/* Random calls of every operation in a net: inputs of any rank, dtype and home, options of any value. Either it is refused
 * with a reason, or the net compiles, and every step of it, at any smaller size, gives what the operation gives by
 * itself; and however memory is shared, gradients have the bits of a net where nothing is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/net.h"
#include "ops/entry_draw.h"

enum { MOST_BYTES = 1 << 16, MOST_INDEX = 5, CALL_STEPS = 4 };

/* ---- A call, drawn ---- */

/* What the entry's sample says, changed here and there. */
typedef struct wild_call {
    const mica_op *op;
    test_random r;
    entry_draw d;
    int count; /* of the inputs that are given */
    mica_home home[MICA_OP_INS];
    unsigned axes; /* bit d: axes of size d follow a size of the step */
    void *lent[MICA_OP_INS];
} wild_call;

static mica_dtype any_dtype(test_random *r)
{
    static const mica_dtype often[] = {MICA_F32, MICA_F32, MICA_F32, MICA_I32,
                                       MICA_I64, MICA_U8,  MICA_F16, MICA_F64};
    return test_chance(r, 90) ? often[test_int(r, 0, 7)] : (mica_dtype)test_int(r, 0, MICA_Q8_0);
}

/* A tensor that says nothing of what the operation wants. */
static mica_tensor any_shape(test_random *r)
{
    mica_tensor t = {.dtype = any_dtype(r), .rank = test_int(r, 0, 5)};
    for (int k = 0; k < t.rank; k++)
        t.dim[k] = test_chance(r, 5) ? 0 : test_int(r, 1, 5);
    if (t.rank > 0 && mica_dtype_block(t.dtype) > 1)
        t.dim[t.rank - 1] = (mica_index)mica_dtype_block(t.dtype);
    return mica_tensor_like(&t, NULL);
}

static mica_tensor changed_shape(test_random *r, mica_tensor t)
{
    switch (test_int(r, 0, 3)) {
    case 0:
        t.dtype = any_dtype(r);
        break;
    case 1:
        if (t.rank > 0)
            t.dim[test_int(r, 0, t.rank - 1)] = test_int(r, 0, 6);
        break;
    case 2:
        t.rank = test_int(r, 0, t.rank);
        break;
    default:
        if (t.rank < MICA_MAX_RANK)
            t.dim[t.rank++] = test_int(r, 1, 3);
    }
    return mica_tensor_like(&t, NULL);
}

static void change_field(test_random *r, const mica_field *field, char *opts)
{
    int at = field->count > 0 ? test_int(r, 0, field->count - 1) : 0;
    char *to = opts + field->offset;
    if (strcmp(field->name, "position") == 0) { /* a size of the step, which an operation by itself has not */
        *(int *)(void *)to = test_chance(r, 50) ? -1 : 2000000000;
        return;
    }
    static const double odd[] = {0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e9, -1e30};
    double real = odd[test_int(r, 0, 7)];
    int whole = test_chance(r, 80)   ? test_int(r, -2, 5)
                : test_chance(r, 50) ? test_int(r, -100, 100)
                                     : 2000000000;
    switch (field->kind) {
    case MICA_FIELD_INDEX:
        ((mica_index *)(void *)to)[at] = test_chance(r, 3) ? PTRDIFF_MAX - test_int(r, 0, 3) : whole;
        break;
    case MICA_FIELD_FLOAT:
        ((float *)(void *)to)[at] = (float)real;
        break;
    case MICA_FIELD_DOUBLE:
        ((double *)(void *)to)[at] = real;
        break;
    case MICA_FIELD_BOOL:
        ((bool *)(void *)to)[at] = test_chance(r, 50);
        break;
    default:
        ((int *)(void *)to)[at] = whole;
    }
}

/* Numbers for everything; indices mostly in range. */
static void draw_values(wild_call *w, mica_tensor *t, const char *seen)
{
    (void)seen;
    for (size_t i = 0, count = mica_tensor_count(t); i < count; i++)
        switch (t->dtype) {
        case MICA_F32:
            ((float *)t->data)[i] = (float)test_uniform(&w->r, 0.1, 1.0);
            break;
        case MICA_F64:
            ((double *)t->data)[i] = test_uniform(&w->r, 0.1, 1.0);
            break;
        case MICA_I32:
            ((int32_t *)t->data)[i] = test_chance(&w->r, 1) ? -7 : test_int(&w->r, 0, 1);
            break;
        case MICA_I64:
            ((int64_t *)t->data)[i] = test_chance(&w->r, 1) ? 1000 : test_int(&w->r, 0, 1);
            break;
        default:
            if (mica_dtype_block(t->dtype) == 1)
                memset((char *)t->data + i * mica_dtype_bytes(t->dtype), 1, mica_dtype_bytes(t->dtype));
        }
    if (mica_dtype_block(t->dtype) > 1)
        memset(t->data, 1, mica_tensor_bytes(t));
}

static void draw_call(wild_call *w, mica_context *ctx, uint64_t seed)
{
    *w = (wild_call){.r = test_seed(seed)};
    int ops = 0;
    while (mica_op_at(ops) != NULL)
        ops++;
    do
        w->op = mica_op_at(test_int(&w->r, 0, ops - 1));
    while (!entry_callable(w->op) || entry_skipped(w->op));
    entry_draw_make(&w->d, ctx, w->op, seed);
    w->count = w->d.sample.ins;
    if (test_chance(&w->r, 10))
        w->count = test_int(&w->r, w->op->ins > 0 ? w->op->ins - 1 : 0, w->op->ins + w->op->optional_ins);
    /* A kernel that shrinks makes its result grow; a factor that is repeated in some steps only makes another product. */
    bool conv = strcmp(w->op->family, "conv") == 0, product = strcmp(w->op->family, "linalg") == 0,
         fixed = false;
    for (int i = 0; i < w->count; i++) {
        mica_tensor *t = &w->d.sample.in[i];
        if (i >= w->d.sample.ins || test_chance(&w->r, 4))
            *t = any_shape(&w->r);
        else if (t->rank >= 0 && test_chance(&w->r, 12))
            *t = changed_shape(&w->r, *t);
        bool learned = t->dtype == MICA_F32 && (test_chance(&w->r, 40) || fixed);
        w->home[i] = (w->op->writes >> i & 1u) || test_chance(&w->r, 5) ? MICA_HOME_KEPT
                     : learned                                          ? MICA_HOME_LEARNED
                     : test_chance(&w->r, 10)                           ? MICA_HOME_LENT
                                                                        : MICA_HOME_PLANNED;
        if (fixed && w->home[i] != MICA_HOME_LEARNED)
            w->home[i] = MICA_HOME_LENT;
        if (product && i > 0 && w->home[0] == MICA_HOME_PLANNED)
            w->home[i] = MICA_HOME_PLANNED;
        fixed = conv || (product && w->home[0] != MICA_HOME_PLANNED);
    }
    for (int f = 0; f < w->op->field_count; f++)
        if (test_chance(&w->r, 12))
            change_field(&w->r, &w->op->fields[f], w->d.sample.opts);
    w->axes = test_chance(&w->r, 70) ? (unsigned)test_next(&w->r) & 0x7eu : 0;
}

/* ---- As a net ---- */

typedef struct wild_net {
    mica_net *net;
    mica_value in[MICA_OP_INS], out[MICA_OP_OUTS];
} wild_net;

static mica_value add_value(wild_call *w, mica_net *net, int i)
{
    char name[16];
    const mica_tensor *t = &w->d.sample.in[i];
    mica_index dims[MICA_MAX_RANK];
    if (t->rank < 0)
        return 0;
    for (int k = 0; k < t->rank; k++) {
        char size[32];
        snprintf(size, sizeof size, "size %td", t->dim[k]);
        bool follows = t->dim[k] > 0 && t->dim[k] < 7 && (w->axes >> t->dim[k] & 1u) &&
                       w->home[i] != MICA_HOME_LEARNED;
        dims[k] = follows ? mica_net_size(net, size, t->dim[k]) : t->dim[k];
    }
    snprintf(name, sizeof name, "in %d", i);
    switch (w->home[i]) {
    case MICA_HOME_KEPT:
        return mica_net_kept(net, name, MICA_KEPT_STATE, t->dtype, t->rank, dims, 0.0f);
    case MICA_HOME_LEARNED:
        return mica_net_learned(net, name, t->rank, t->dim, (mica_init){MICA_INIT_NORMAL, 1.0f});
    case MICA_HOME_LENT: {
        mica_tensor lent = mica_tensor_like(t, NULL);
        if (w->lent[i] == NULL) {
            w->lent[i] = lent.data = aligned_alloc(64, (mica_tensor_bytes(t) + 64) / 64 * 64);
            draw_values(w, &lent, name);
        }
        lent.data = w->lent[i];
        return mica_net_lent(net, name, &lent);
    }
    default:
        return mica_net_input(net, name, t->dtype, t->rank, dims);
    }
}

/* One to train by, if nothing else is. */
static void add_losses(wild_net *n, int outs)
{
    for (int k = 0; k < outs; k++) {
        mica_tensor shape;
        mica_index dims[MICA_MAX_RANK];
        if (n->out[k] == 0 || mica_net_shape(n->net, &shape, n->out[k]) != MICA_OK ||
            shape.dtype != MICA_F32 || mica_tensor_count(&shape) == 0)
            continue;
        char name[24];
        snprintf(name, sizeof name, "target %d", k);
        for (int a = 0; a < shape.rank; a++)
            dims[a] = mica_net_dim(n->net, n->out[k], a);
        mica_value target = mica_net_input(n->net, name, MICA_F32, shape.rank, dims);
        mica_net_op(n->net, NULL, "mse_loss", (mica_value[]){n->out[k], target}, 2, NULL);
    }
    mica_value unused = mica_net_learned(n->net, "unused", 0, NULL, (mica_init){MICA_INIT_CONSTANT, 1.0f});
    mica_value nothing = mica_net_input(n->net, "nothing", MICA_F32, 0, NULL);
    mica_net_op(n->net, NULL, "mse_loss", (mica_value[]){unused, nothing}, 2, NULL);
}

static bool make_net(wild_call *w, mica_context *ctx, wild_net *n)
{
    *n = (wild_net){.net = NULL};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &n->net)))
        return false;
    for (int i = 0; i < w->count; i++)
        n->in[i] = add_value(w, n->net, i);
    n->out[0] = mica_net_call(n->net, "call", w->op, n->in, w->count, w->d.sample.opts);
    for (int k = 1; n->out[0] != 0 && k < w->op->outs; k++)
        if (n->net->nodes[0].out[k] != NONE && !(w->op->optional_outs >> k & 1u))
            n->out[k] = mica_net_result(n->net, n->out[0], k);
    for (int k = 0; n->out[0] != 0 && k < w->op->outs; k++)
        if (n->out[k] != 0)
            mica_net_output(n->net, NULL, n->out[k]);
    if (!(w->op->flags & MICA_OP_LOSS))
        add_losses(n, w->op->outs);
    return mica_net_status(n->net) == MICA_OK;
}

static void fill_net(wild_call *w, const wild_net *n, int step)
{
    w->r = test_seed((uint64_t)step + 77);
    for (int i = 0; i < n->net->built_values; i++) {
        mica_value_info *v = &n->net->values[i];
        mica_tensor t;
        if (v->maker != NONE || v->home == MICA_HOME_LENT || v->home == MICA_HOME_LEARNED ||
            mica_net_value_tensor(n->net, &t, i + 1) != MICA_OK || t.data == NULL)
            continue;
        draw_values(w, &t, v->name);
    }
}

/* ---- By itself ---- */

/* Runs the operation on copies of the net's inputs. */
static mica_status run_alone(const wild_call *w, mica_context *ctx, const wild_net *n, mica_tensor *out)
{
    static _Alignas(64) char memory[MICA_OP_INS + MICA_OP_OUTS][MOST_BYTES];
    mica_tensor in[MICA_OP_INS];
    const mica_tensor *ins[MICA_OP_INS] = {NULL}, *outs[MICA_OP_OUTS] = {NULL};
    for (int i = 0; i < w->count; i++) {
        if (n->in[i] == 0)
            continue;
        const mica_tensor *t = &n->net->values[n->in[i] - 1].tensor;
        in[i] = mica_tensor_like(t, memory[i]);
        memcpy(memory[i], t->data, mica_tensor_bytes(t));
        ins[i] = &in[i];
    }
    mica_status status = mica_op_infer(ctx, w->op, out, ins, w->count, w->d.sample.opts);
    for (int k = 0; k < w->op->outs; k++) {
        bool wanted = n->out[k] != 0;
        out[k].data = memory[MICA_OP_INS + k];
        outs[k] = wanted ? &out[k] : NULL;
    }
    if (status != MICA_OK || (w->op->flags & MICA_OP_VIEW)) {
        memcpy(out[0].data, in[0].data, mica_tensor_bytes(&in[0]));
        return status;
    }
    mica_measure_begin(ctx);
    status = mica_op_run(ctx, w->op, outs, ins, w->count, w->d.sample.opts);
    size_t scratch = mica_measure_end(ctx);
    if (status == MICA_OK)
        status = mica_workspace_reserve(ctx, scratch);
    return status == MICA_OK ? mica_op_run(ctx, w->op, outs, ins, w->count, w->d.sample.opts) : status;
}

/* ---- Steps ---- */

static void shrink(wild_call *w, mica_net *net, int step)
{
    test_random r = test_seed((uint64_t)step * 31 + test_next(&w->d.random) * 0);
    for (int s = 0; step > 0 && s < mica_net_sizes(net); s++) {
        const char *name;
        mica_index most;
        CHECK_OK(net->ctx, mica_net_size_at(net, &name, NULL, &most, s));
        (void)mica_net_set_size(net, name,
                                test_int(&r, step == 1 && most > 0 ? 1 : 0, (int)most)); /* may be refused */
    }
}

typedef struct wild_result {
    mica_status status;
    float loss;
    size_t bytes;
    char gradients[MOST_BYTES];
} wild_result;

static void note(const mica_net *net, mica_status status, wild_result *to)
{
    to->status = status;
    to->bytes = status == MICA_OK ? net->learned_count * sizeof(float) : 0;
    to->loss = status == MICA_OK ? mica_net_loss(net) : 0.0f;
    to->bytes = to->bytes < sizeof to->gradients ? to->bytes : sizeof to->gradients;
    if (to->bytes > 0)
        memcpy(to->gradients, net->flat_gradients, to->bytes);
}

static void compare_alone(wild_call *w, mica_context *ctx, const wild_net *n, uint64_t seed, int step)
{
    mica_tensor want[MICA_OP_OUTS];
    mica_status alone = run_alone(w, ctx, n, want);
    char why[200];
    snprintf(why, sizeof why, "%.199s", alone != MICA_OK ? mica_error(ctx) : "");
    mica_status status = mica_net_forward_training(n->net, 0);
    if (!CHECK_MSG(alone == status || (w->op->flags & MICA_OP_LOSS),
                   "call %d, step %d: %s: in a net %s, by itself %s (%s)", (int)seed, step, w->op->name,
                   mica_status_text(status), mica_status_text(alone),
                   status != MICA_OK ? mica_error(ctx) : why) ||
        status != MICA_OK || (w->op->flags & MICA_OP_RANDOM))
        return;
    for (int k = 0; k < w->op->outs; k++) {
        mica_tensor got;
        if (n->out[k] == 0 || !CHECK_OK(ctx, mica_net_value_tensor(n->net, &got, n->out[k])))
            continue;
        CHECK_MSG(mica_tensor_same_shape(&got, &want[k]) && got.dtype == want[k].dtype &&
                      memcmp(got.data, want[k].data, mica_tensor_bytes(&got)) == 0,
                  "call %d, step %d: output %d of %s is not what it gives by itself", (int)seed, step, k,
                  w->op->name);
    }
}

/* Steps of one plan: at the full sizes, then at others. */
static void run_net(wild_call *w, mica_context *ctx, wild_net *n, uint64_t seed, wild_result *results,
                    bool alone)
{
    for (int step = 0; step < CALL_STEPS; step++) {
        shrink(w, n->net, step);
        if (alone) {
            fill_net(w, n, step);
            compare_alone(w, ctx, n, seed, step);
        }
        fill_net(w, n, step);
        note(n->net, mica_net_gradients(n->net, &(mica_backward_opts){.add = step == 1}), &results[step]);
    }
}

static bool ready(mica_context *ctx, mica_net *net, size_t budget)
{
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].built_bytes > MOST_BYTES)
            return false;
    return mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true, .budget = budget}) ==
               MICA_OK &&
           mica_net_plan(net)->total < (size_t)64 * MOST_BYTES &&
           CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
           CHECK_MSG(mica_net_initialize(net, 1) == MICA_OK, "%s", mica_error(ctx));
}

/* Returns whether it could be run at all. */
static bool try_call(mica_context *ctx, uint64_t seed)
{
    static wild_result want[CALL_STEPS], got[CALL_STEPS];
    wild_call w;
    wild_net n;
    draw_call(&w, ctx, seed);
    if (getenv("MICA_TEST_SHOW") != NULL) {
        printf("call %d: %s", (int)seed, w.op->name);
        for (int i = 0; i < w.count; i++) {
            char text[128] = "-";
            if (w.d.sample.in[i].rank >= 0)
                mica_tensor_print_shape(text, sizeof text, &w.d.sample.in[i]);
            printf(" %s %s %s", mica_home_text(w.home[i]), mica_dtype_name(w.d.sample.in[i].dtype), text);
        }
        for (size_t i = 0; i < w.op->opts_bytes; i++)
            printf("%s%02x", i % 8 ? "" : " ", ((unsigned char *)w.d.sample.opts)[i]);
        printf(" axes %x\n", w.axes);
        fflush(stdout);
    }
    size_t total = 0;
    bool ran = false, random = (w.op->flags & MICA_OP_RANDOM) != 0;
    (void)random;
    for (int plan = 0; plan < 4; plan++) { /* nothing shared; shared; with two budgets */
        bool built = make_net(&w, ctx, &n);
        CHECK_MSG(built || strlen(mica_error(ctx)) > 10, "call %d: %s: refused without a reason", (int)seed,
                  w.op->name);
        n.net->unshared = plan == 0;
        size_t budget = plan < 2 ? 0 : total * (plan == 2 ? 90 : 75) / 100;
        if (built && ready(ctx, n.net, budget)) {
            ran = true;
            run_net(&w, ctx, &n, seed, plan == 0 ? want : got, plan < 2);
            if (plan == 1)
                total = mica_net_plan(n.net)->total;
            for (int step = 0; step < CALL_STEPS && plan > 0 && mica_net_plan(n.net)->parts == 1; step++)
                CHECK_MSG(
                    got[step].status == want[step].status && got[step].bytes == want[step].bytes &&
                        memcmp(&got[step].loss, &want[step].loss, sizeof(float)) == 0 &&
                        memcmp(got[step].gradients, want[step].gradients, want[step].bytes) == 0,
                    "call %d: %s: plan %d, step %d has other gradients than with nothing shared (%s, %s)",
                    (int)seed, w.op->name, plan, step, mica_status_text(got[step].status),
                    mica_status_text(want[step].status));
        } else {
            plan = 4;
        }
        mica_net_destroy(n.net);
    }
    for (int i = 0; i < MICA_OP_INS; i++)
        free(w.lent[i]);
    entry_draw_free(&w.d);
    return ran;
}

TEST(random_calls_are_refused_or_right)
{
    mica_context *ctx = test_context(1);
    const char *from = getenv("MICA_TEST_SEED");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 0;
    int calls = test_effort(2000), ran = 0;
    for (uint64_t seed = first; seed < first + (uint64_t)calls; seed++)
        ran += try_call(ctx, seed);
    CHECK_MSG(ran > calls / 3, "%d of %d calls could be run", ran, calls);
}
