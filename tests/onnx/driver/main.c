/* An ONNX model as asked for by another program: what ./dev test --onnx and ./dev bench --peers onnx talk to.
 *
 *   open MODEL THREADS [WORD...]   builds, compiles and binds it: "ok", the bytes of the plan without weights
 *                                  in other layouts (prepared and derived), and those; or "no" and why:
 *       NAME=8                       the size NAME, or the value of the input NAME
 *       NAME=1x576                   the shape of an input
 *       prepare=no                   weights are not prepared when the net is bound
 *       train=KIND:LR                training, by sgd (momentum 0.9), or adam
 *       loss=KIND:OUTPUT             cross_entropy or mse of that output; the input "target" is added
 *   size NAME N                    a size of the steps that follow; inputs are written again after it
 *   write NAME FILE                keeps the bytes of a file, which every run then writes to that input
 *   run                            one forward: "ok" and its heap calls
 *   step                           one training step: "ok", the loss, heap calls
 *   gradients                      forward in training mode and backward, no update: "ok", the loss, heap calls
 *   parameters FILE                the names of what is learned, one a line
 *   gradient NAME FILE             the gradient of one, as "read" does
 *   carry OUTPUT INPUT             what a run made is what the next one is given
 *   read NAME FILE                 the bytes of an output, as f32
 *   sample NS                      forwards for at least so long: "ok", nanoseconds for one at best, heap calls of all
 *   calls FILE                     the calls of the program, one a line
 *
 * A line each way. */
#include <mica/mica.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/heap.h"

#define MOST 32

typedef struct kept_input {
    char name[256];
    mica_tensor tensor;
    void *bytes;
} kept_input;

typedef struct driver {
    mica_context *ctx;
    mica_onnx *model;
    mica_net *net;
    mica_optimizer optimizer;
    kept_input inputs[MOST];
    int count;
} driver;

typedef struct request {
    mica_onnx_set sets[MOST];
    mica_tensor values[MOST];
    int64_t numbers[MOST];
    int count;
    char loss[64], output[256];
    bool train, plain; /* plain: weights are read as they are */
} request;

static bool no(const char *why)
{
    char line[900];
    size_t length = 0;
    for (; why[length] != '\0' && length + 1 < sizeof line; length++)
        line[length] = why[length] == '\n' ? ';' : why[length];
    line[length] = '\0';
    printf("no %s\n", line);
    return false;
}

/* ---- Opening ---- */

static void close_model(driver *d)
{
    for (int i = 0; i < d->count; i++)
        free(d->inputs[i].bytes);
    mica_net_destroy(d->net);
    mica_onnx_close(d->model);
    mica_context_destroy(d->ctx);
    *d = (driver){0};
}

static bool is_input(const mica_onnx *model, const char *name, mica_onnx_value *out)
{
    for (int i = 0; i < mica_onnx_inputs(model); i++)
        if (mica_onnx_input(model, out, i) == MICA_OK && strcmp(out->name, name) == 0)
            return true;
    return false;
}

/* "1x576" */
static void parse_shape(mica_tensor *t, char *text)
{
    char *rest = NULL;
    for (char *part = strtok_r(text, "x", &rest); part != NULL; part = strtok_r(NULL, "x", &rest))
        t->dim[t->rank++] = strtol(part, NULL, 10);
}

static void take_word(driver *d, request *r, char *word)
{
    char *value = strchr(word, '=');
    if (value == NULL || r->count == MOST)
        return;
    *value++ = '\0';
    char *second = strchr(value, ':');
    if (strcmp(word, "train") == 0 && second != NULL) {
        r->train = true;
        d->optimizer.kind = strncmp(value, "adam", 4) == 0 ? MICA_ADAM : MICA_SGD;
        d->optimizer.momentum = d->optimizer.kind == MICA_SGD ? 0.9f : 0.0f;
        d->optimizer.lr = strtof(second + 1, NULL);
        return;
    }
    if (strcmp(word, "prepare") == 0) {
        r->plain = strcmp(value, "no") == 0;
        return;
    }
    if (strcmp(word, "loss") == 0 && second != NULL) {
        *second = '\0';
        snprintf(r->loss, sizeof r->loss, "%s", value);
        snprintf(r->output, sizeof r->output, "%s", second + 1);
        return;
    }
    mica_onnx_value input;
    mica_onnx_set *set = &r->sets[r->count];
    mica_tensor *t = &r->values[r->count];
    *set = (mica_onnx_set){.name = word, .size = strtol(value, NULL, 10)};
    if (is_input(d->model, word, &input)) {
        *t = (mica_tensor){.dtype = input.dtype};
        set->value = t;
        if (strchr(value, 'x') != NULL) {
            parse_shape(t, value);
        } else { /* little-endian: the first bytes of a wider integer are those of a narrower one */
            r->numbers[r->count] = strtol(value, NULL, 10);
            t->data = &r->numbers[r->count];
        }
    }
    r->count++;
}

static mica_status add_loss(driver *d, const request *r)
{
    mica_value y = mica_net_named(d->net, r->output);
    mica_tensor shape;
    if (y == 0 || mica_net_shape(d->net, &shape, y) != MICA_OK)
        return MICA_ERR_ARGUMENT;
    bool classes = strcmp(r->loss, "cross_entropy") == 0;
    mica_value target = mica_net_input(d->net, "target", classes ? MICA_I64 : MICA_F32,
                                       classes ? shape.rank - 1 : shape.rank, shape.dim);
    if (classes)
        (void)mica_net_cross_entropy(d->net, y, target, NULL);
    else
        (void)mica_net_mse(d->net, y, target, NULL);
    return mica_net_status(d->net);
}

static bool open_model(driver *d, char *path, char *threads, char *rest)
{
    request r = {.count = 0};
    close_model(d);
    if (path == NULL || threads == NULL)
        return no("open MODEL THREADS");
    if (mica_context_create(&d->ctx, &(mica_context_opts){.threads = atoi(threads)}) != MICA_OK)
        return no("no context");
    if (mica_onnx_open(d->ctx, &d->model, path) != MICA_OK || mica_net_create(d->ctx, &d->net) != MICA_OK)
        return no(mica_error(d->ctx));
    char *more = NULL;
    for (char *word = strtok_r(rest, " \n", &more); word != NULL; word = strtok_r(NULL, " \n", &more))
        take_word(d, &r, word);
    mica_status status = mica_onnx_build(
        d->model, d->net, &(mica_onnx_opts){.sets = r.sets, .count = r.count, .train = r.train});
    if (status == MICA_OK && r.loss[0] != '\0')
        status = add_loss(d, &r);
    if (status == MICA_OK)
        status = mica_net_compile(d->net, &(mica_compile_opts){.train = r.train,
                                                               .optimizer = r.train ? &d->optimizer : NULL,
                                                               .prepare = !r.train && !r.plain});
    if (status == MICA_OK)
        status = mica_net_bind(d->net, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(d->net, 1);
    if (status == MICA_OK)
        status = mica_onnx_load(d->model, d->net);
    if (status != MICA_OK)
        return no(mica_error(d->ctx));
    const mica_plan *plan = mica_net_plan(d->net);
    size_t copies = plan->kind_bytes[MICA_BUFFER_PREPARED] + plan->kind_bytes[MICA_BUFFER_DERIVED];
    printf("ok %zu %zu\n", plan->total - copies, copies);
    return true;
}

/* ---- Inputs and outputs ---- */

static bool keep_input(driver *d, const char *name, const char *path)
{
    kept_input *in = NULL;
    for (int i = 0; i < d->count; i++)
        in = strcmp(d->inputs[i].name, name) == 0 ? &d->inputs[i] : in;
    if (in == NULL && d->count < MOST) {
        in = &d->inputs[d->count];
        if (mica_net_tensor(d->net, &in->tensor, name) != MICA_OK)
            return no(mica_error(d->ctx));
        snprintf(in->name, sizeof in->name, "%s", name);
        in->bytes = malloc(mica_tensor_bytes(&in->tensor) + 1);
        d->count++;
    }
    if (in != NULL &&
        mica_net_tensor(d->net, &in->tensor, name) != MICA_OK) /* it may be smaller than at first */
        return no(mica_error(d->ctx));
    FILE *file = in != NULL && in->bytes != NULL ? fopen(path, "rb") : NULL;
    if (file == NULL)
        return no("no such file");
    size_t wanted = mica_tensor_bytes(&in->tensor), got = fread(in->bytes, 1, wanted + 1, file);
    fclose(file);
    if (got != wanted)
        return no("the file has another size");
    printf("ok\n");
    return true;
}

static bool set_size(driver *d, const char *name, const char *size)
{
    if (mica_net_set_size(d->net, name, strtol(size, NULL, 10)) != MICA_OK)
        return no(mica_error(d->ctx));
    printf("ok\n");
    return true;
}

static mica_status forward(driver *d)
{
    for (int i = 0; i < d->count; i++)
        memcpy(d->inputs[i].tensor.data, d->inputs[i].bytes, mica_tensor_bytes(&d->inputs[i].tensor));
    return mica_net_forward(d->net);
}

static bool run(driver *d)
{
    heap_counts before = heap_now();
    mica_status status = forward(d);
    heap_counts after = heap_now();
    if (status != MICA_OK)
        return no(mica_error(d->ctx));
    printf("ok %llu\n", (unsigned long long)(after.calls - before.calls));
    return true;
}

/* With an update, or gradients alone. */
static bool step(driver *d, bool update)
{
    for (int i = 0; i < d->count; i++)
        memcpy(d->inputs[i].tensor.data, d->inputs[i].bytes, mica_tensor_bytes(&d->inputs[i].tensor));
    heap_counts before = heap_now();
    mica_status status = update ? mica_train_step(d->net, d->optimizer.lr)
                                : mica_net_gradients(d->net, &(mica_backward_opts){.add = false});
    heap_counts after = heap_now();
    if (status != MICA_OK)
        return no(mica_error(d->ctx));
    printf("ok %.9g %llu\n", (double)mica_net_loss(d->net), (unsigned long long)(after.calls - before.calls));
    return true;
}

static bool carry(driver *d, const char *from, const char *to)
{
    mica_tensor out;
    for (int i = 0; i < d->count; i++) {
        kept_input *in = &d->inputs[i];
        if (strcmp(in->name, to) != 0)
            continue;
        mica_tensor kept = in->tensor;
        kept.data = in->bytes;
        if (mica_net_tensor(d->net, &out, from) != MICA_OK || mica_copy(d->ctx, &kept, &out) != MICA_OK)
            return no(mica_error(d->ctx));
        printf("ok\n");
        return true;
    }
    return no("no such input was written");
}

static bool list_parameters(driver *d, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return no("cannot write it");
    for (int i = 0; i < mica_net_parameters(d->net); i++) {
        const char *name;
        mica_tensor t;
        if (mica_net_parameter(d->net, &name, &t, i) == MICA_OK)
            fprintf(file, "%s\n", name);
    }
    fclose(file);
    printf("ok\n");
    return true;
}

static bool read_tensor(driver *d, const char *name, bool gradient, const char *path)
{
    mica_tensor out, plain;
    if ((gradient ? mica_net_gradient : mica_net_tensor)(d->net, &out, name) != MICA_OK)
        return no(mica_error(d->ctx));
    size_t bytes = mica_tensor_count(&out) * sizeof(float);
    void *data = malloc(bytes + 1);
    FILE *file = data != NULL ? fopen(path, "wb") : NULL;
    bool written = file != NULL &&
                   mica_tensor_init(d->ctx, &plain, data, MICA_F32, out.rank, out.dim) == MICA_OK &&
                   mica_copy(d->ctx, &plain, &out) == MICA_OK && fwrite(data, 1, bytes, file) == bytes;
    if (file != NULL && fclose(file) != 0)
        written = false;
    free(data);
    if (!written)
        return no("cannot write it");
    printf("ok");
    for (int k = 0; k < out.rank; k++)
        printf(" %td", out.dim[k]);
    printf("\n");
    return true;
}

/* ---- Time, and the program ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static bool sample(driver *d, double most)
{
    double best = 1e300, begun = now();
    if (forward(d) != MICA_OK)
        return no(mica_error(d->ctx));
    heap_counts before = heap_now();
    do {
        double start = now();
        (void)forward(d);
        double taken = now() - start;
        best = taken < best ? taken : best;
    } while (now() - begun < most);
    heap_counts after = heap_now();
    printf("ok %.0f %llu\n", best, (unsigned long long)(after.calls - before.calls));
    return true;
}

static bool list_calls(driver *d, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return no("cannot write it");
    for (int i = 0; i < mica_net_program(d->net); i++) {
        mica_program_call call;
        if (mica_net_program_call(d->net, &call, i) != MICA_OK)
            break;
        fprintf(file, "%s%s%s", call.op->name, call.fused != NULL ? " + " : "",
                call.fused != NULL ? call.fused : "");
        mica_program_value value;
        for (int k = 0; k < call.outs && k < 1; k++)
            if (call.out[k] != 0 && mica_net_program_value(d->net, &value, call.out[k]) == MICA_OK)
                for (int a = 0; a < value.rank; a++)
                    fprintf(file, "%s%td", a == 0 ? " " : "x", value.dim[a]);
        fprintf(file, "\n");
    }
    fclose(file);
    printf("ok\n");
    return true;
}

static bool answer(driver *d, char *line)
{
    char *rest = NULL;
    const char *verb = strtok_r(line, " \n", &rest);
    if (verb == NULL)
        return no("a line is a command");
    char *first = strtok_r(NULL, " \n", &rest), *second = strtok_r(NULL, " \n", &rest);
    if (strcmp(verb, "open") == 0)
        return open_model(d, first, second, rest);
    if (d->net == NULL)
        return no("nothing is open");
    if (strcmp(verb, "run") == 0)
        return run(d);
    if (strcmp(verb, "step") == 0)
        return step(d, true);
    if (strcmp(verb, "gradients") == 0)
        return step(d, false);
    if (first == NULL)
        return no("an argument is missing");
    if (strcmp(verb, "sample") == 0)
        return sample(d, strtod(first, NULL));
    if (strcmp(verb, "calls") == 0)
        return list_calls(d, first);
    if (strcmp(verb, "parameters") == 0)
        return list_parameters(d, first);
    if (second == NULL)
        return no("an argument is missing");
    if (strcmp(verb, "size") == 0)
        return set_size(d, first, second);
    if (strcmp(verb, "write") == 0)
        return keep_input(d, first, second);
    if (strcmp(verb, "carry") == 0)
        return carry(d, first, second);
    if (strcmp(verb, "read") == 0 || strcmp(verb, "gradient") == 0)
        return read_tensor(d, first, verb[0] == 'g', second);
    return no("there is no such command");
}

int main(void)
{
    static driver d;
    static char line[65536];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) != NULL)
        (void)answer(&d, line);
    close_model(&d);
    return 0;
}
