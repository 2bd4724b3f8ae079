#include "bench/served_net.h"

#include <stdlib.h>
#include <string.h>

#include <mica/netfile.h>

#include "base/context.h"

#define SEED          42    /* what mica convert takes: the same weights as in the file that it writes */
#define LEARNING_RATE 1e-6f /* the numbers stay what they were, whatever is measured for how long */

/* ---- The words ---- */

static const char *read_constant(served_net *out, const char *word)
{
    const char *equals = strchr(word, '=');
    char *end;
    size_t length = equals != NULL ? (size_t)(equals - word) : 0;
    if (length == 0 || length >= sizeof out->constant_name[0])
        return "a constant is NAME=NUMBER";
    if (out->constants == SERVED_MOST_CONSTANTS)
        return "there are too many constants";
    double value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end != '\0')
        return "a constant is NAME=NUMBER";
    memcpy(out->constant_name[out->constants], word, length);
    out->constant_name[out->constants][length] = '\0';
    out->constant[out->constants++] = value;
    return NULL;
}

static bench_fn setup, train_step, infer_step;

/* "train", "infer", or "infer/ROWS" in parts of so many rows at most. */
static bool read_kind(served_net *out, const char *word)
{
    out->train = word != NULL && strcmp(word, "train") == 0;
    if (out->train || (word != NULL && strcmp(word, "infer") == 0))
        return true;
    if (word == NULL || strncmp(word, "infer/", 6) != 0)
        return false;
    out->part_rows = (mica_index)strtoll(word + 6, NULL, 10);
    return out->part_rows > 0;
}

const char *served_net_read(served_net *out, char *words)
{
    char *rest = NULL, *path = strtok_r(words, " \n", &rest), *what = strtok_r(NULL, " \n", &rest);
    const char *batch = strtok_r(NULL, " \n", &rest), *tokens = strtok_r(NULL, " \n", &rest), *word;
    *out = (served_net){.batch = batch != NULL ? (mica_index)strtoll(batch, NULL, 10) : 0,
                        .tokens = tokens != NULL ? (mica_index)strtoll(tokens, NULL, 10) : 0};
    if (!read_kind(out, what) || out->batch < 1 || out->tokens < 1)
        return "a net is FILE train|infer[/ROWS] BATCH TOKENS [NAME=NUMBER...]";
    if (strlen(path) >= sizeof out->path)
        return "the file's name is too long";
    memcpy(out->path, path, strlen(path) + 1);
    out->row = (bench_case){"net", setup, out->train ? train_step : infer_step, {0}};
    while ((word = strtok_r(NULL, " \n", &rest)) != NULL) {
        const char *wrong = read_constant(out, word);
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}

/* ---- The row ---- */

/* Whoever serves has made its row a served_net. */
static const served_net *of_row(const bench_state *s) { return (const served_net *)s->row; }

/* Integers: classes for the target, tokens for others. Those of a text repeat after none of its lengths. */
static mica_status make_batch(bench_state *s, const mica_netfile_info *info)
{
    for (int i = 0; i < mica_net_inputs(s->net); i++) {
        mica_tensor t;
        const char *name;
        BENCH_TRY(mica_net_input_tensor(s->net, &name, &t, i));
        BENCH_TRY(bench_tensor(s, t.dtype, t.rank, t.dim));
        bool target = info->target != NULL && strcmp(name, info->target) == 0;
        mica_index below = target ? info->classes : of_row(s)->tokens;
        size_t count = t.dtype == MICA_I32 && below > 0 ? mica_tensor_count(&t) : 0;
        for (size_t k = 0; k < count; k++)
            ((int32_t *)s->t[i].data)[k] = (int32_t)((mica_index)(k * 7919 % 65521) % below);
    }
    s->bytes = 0.0; /* arithmetic is what counts */
    return MICA_OK;
}

static void add_flops(void *user, const mica_work *work, bool done)
{
    if (done)
        *(double *)user += work->flops;
}

static mica_status count_flops(bench_state *s)
{
    double flops = 0.0;
    mica_net_watch(s->net, add_flops, &flops);
    mica_status status = s->row->run(s);
    mica_net_watch(s->net, NULL, NULL);
    s->flops = flops;
    return status;
}

static mica_status setup(bench_state *s)
{
    const served_net *own = of_row(s);
    mica_netfile_constant constants[SERVED_MOST_CONSTANTS];
    for (size_t i = 0; i < own->constants; i++)
        constants[i] = (mica_netfile_constant){.name = own->constant_name[i], .value = own->constant[i]};
    mica_netfile_opts opts = {.batch = own->batch,
                              .inference = !own->train,
                              .constants = constants,
                              .constant_count = own->constants};
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = LEARNING_RATE};
    mica_netfile_info info;
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    BENCH_TRY(mica_netfile_load(s->net, &info, own->path, &opts));
    if (own->train && info.task == MICA_TASK_NONE)
        return mica_fail(s->ctx, MICA_ERR_STATE, "%s has no loss to be trained by", own->path);
    mica_compile_opts compile = {.train = own->train,
                                 .optimizer = own->train ? &adam : NULL,
                                 .prepare = !own->train,
                                 .part_rows = own->train ? MICA_CHEAP_PARTS : own->part_rows};
    BENCH_TRY(mica_net_compile(s->net, &compile));
    BENCH_TRY(mica_net_bind(s->net, NULL, 0));
    BENCH_TRY(mica_net_initialize(s->net, SEED));
    size_t length = strlen(info.output) + 1;
    s->scratch = malloc(length);
    if (s->scratch == NULL)
        return mica_fail(s->ctx, MICA_ERR_MEMORY, "no memory for a name");
    memcpy(s->scratch, info.output, length);
    BENCH_TRY(make_batch(s, &info));
    return count_flops(s);
}

static mica_status set_inputs(bench_state *s)
{
    for (int i = 0; i < s->tensors; i++) {
        mica_tensor t;
        BENCH_TRY(mica_net_input_tensor(s->net, NULL, &t, i));
        memcpy(t.data, s->t[i].data, mica_tensor_bytes(&t));
    }
    return MICA_OK;
}

static mica_status train_step(bench_state *s)
{
    BENCH_TRY(set_inputs(s));
    return mica_train_step(s->net, LEARNING_RATE);
}

static mica_status infer_step(bench_state *s)
{
    BENCH_TRY(set_inputs(s));
    return mica_net_forward(s->net);
}

mica_status served_net_result(mica_tensor *out, bench_state *s)
{
    return mica_net_tensor(s->net, out, s->scratch);
}

mica_status served_net_cost(served_cost *out, bench_state *s)
{
    const mica_plan *plan = mica_net_plan(s->net);
    *out = (served_cost){.plan = (double)plan->total,
                         .prepared = (double)plan->kind_bytes[MICA_BUFFER_PREPARED],
                         .flops = s->flops};
    for (int i = 0; i < mica_net_parameters(s->net); i++) {
        mica_tensor t;
        BENCH_TRY(mica_net_parameter(s->net, NULL, &t, i));
        out->parameters += (double)mica_tensor_count(&t);
    }
    /* These share their memory with nothing. */
    out->work = out->plan - out->prepared -
                (double)(plan->kind_bytes[MICA_BUFFER_PARAMETER] + plan->kind_bytes[MICA_BUFFER_GRADIENT] +
                         plan->kind_bytes[MICA_BUFFER_OPTIMIZER]);
    return MICA_OK;
}
