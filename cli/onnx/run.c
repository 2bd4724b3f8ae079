#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <mica/mica.h>

#include "cli/model/take.h"
#include "cli/onnx/given.h"
#include "cli/onnx/npy.h"
#include "cli/onnx/onnx.h"
#include "cli/picture/text.h"
#include "host/clock.h"
#include "host/heap.h"

#define VALUES_SHOWN 8    /* of an output that is printed */
#define VALUES_JSON  1024 /* of one in JSON */

typedef struct onnx_runner {
    const verb *v;
    const onnx_run_settings *set;
    given given;
    mica_net *net;
    double *seconds; /* [set->repeat] */
    uint64_t heap_calls;
} onnx_runner;

/* ---- Running ---- */

static int build(onnx_runner *r, const char *path)
{
    mica_context *ctx = r->given.ctx;
    if (given_build(&r->given, &r->net, false) != MICA_OK)
        return given_build_failed(&r->given, r->v, path);
    if (mica_net_compile(r->net, &(mica_compile_opts){.prepare = r->set->prepare}) != MICA_OK ||
        mica_net_bind(r->net, NULL, 0) != MICA_OK)
        return verb_failed(r->v, ctx);
    return EXIT_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Inputs are written anew before each run: their memory is used for other things once they have been read. */
static int run_all(onnx_runner *r)
{
    for (int64_t i = 0; i < r->set->repeat; i++) {
        mica_status status = given_write(&r->given, r->net);
        uint64_t calls = heap_now().calls;
        double begin = clock_seconds();
        if (status == MICA_OK)
            status = mica_net_forward(r->net);
        r->seconds[i] = clock_seconds() - begin;
        r->heap_calls += heap_now().calls - calls;
        if (status != MICA_OK)
            return verb_failed(r->v, r->given.ctx);
    }
    qsort(r->seconds, (size_t)r->set->repeat, sizeof *r->seconds, by_value);
    return EXIT_OK;
}

/* ---- Outputs ---- */

/* NAME.npy: what is no letter or digit of the name is "_". */
static void file_name(char *to, size_t size, const char *name)
{
    static const char kept[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    size_t at = 0;
    for (; *name != '\0' && at + 1 < size; name++)
        to[at++] = strchr(kept, *name) != NULL ? *name : '_';
    to[at] = '\0';
    if (to[0] == '.')
        to[0] = '_';
}

/* FOLDER/NAME.npy; with its number before that, where the name is empty or another output's file has it. */
static bool output_path(char *path, size_t size, const onnx_runner *r, const char *name, int number)
{
    char own[200], other[200];
    file_name(own, sizeof own, name);
    bool taken = own[0] == '\0';
    for (int i = 0; i < number && !taken; i++) {
        mica_onnx_value v;
        if (mica_onnx_output(r->given.model, &v, i) == MICA_OK) {
            file_name(other, sizeof other, v.name);
            taken = strcmp(own, other) == 0;
        }
    }
    int length = taken ? snprintf(path, size, "%s/output_%d%s%s.npy", r->set->output, number,
                                  own[0] != '\0' ? "_" : "", own)
                       : snprintf(path, size, "%s/%s.npy", r->set->output, own);
    return length > 0 && (size_t)length < size;
}

static void put_values(mica_context *ctx, const mica_tensor *t, size_t most, bool json)
{
    size_t count = 0;
    for (mica_iter it = mica_iter_begin(t, 0, NULL); it.valid && count < most; mica_iter_next(&it)) {
        double value;
        if (mica_at(ctx, &value, t, it.index) != MICA_OK)
            return;
        printf("%s", count++ == 0 ? "" : json ? ", " : " ");
        if (json)
            put_json_number(stdout, value);
        else
            printf("%.6g", value);
    }
}

static void put_tensor_json(const char *name, const mica_tensor *t, bool first)
{
    printf("%s\n{\"name\": ", first ? "" : ",");
    put_json(stdout, name);
    printf(", \"dtype\": \"%s\", \"shape\": [", mica_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%td", i > 0 ? ", " : "", t->dim[i]);
    printf("]");
}

static int put_output(onnx_runner *r, int number)
{
    mica_onnx_value v;
    mica_tensor t;
    char path[4096] = "";
    bool json = r->set->shared.json;
    mica_context *ctx = r->given.ctx;
    if (mica_onnx_output(r->given.model, &v, number) != MICA_OK ||
        mica_net_tensor(r->net, &t, v.name) != MICA_OK)
        return verb_failed(r->v, ctx);
    if (r->set->output != NULL) {
        if (!output_path(path, sizeof path, r, v.name, number))
            return verb_error(r->v, EXIT_FAILED, "the path of the folder %s is too long", r->set->output);
        if (!npy_write(ctx, path, &t))
            return verb_error(r->v, EXIT_FAILED, "cannot write %s: %s", path,
                              errno != 0 ? strerror(errno) : mica_error(ctx));
    }
    if (json) {
        put_tensor_json(v.name, &t, number == 0);
        printf(path[0] != '\0' ? ", \"file\": " : ", \"values\": [");
        if (path[0] != '\0')
            put_json(stdout, path);
        else
            put_values(ctx, &t, VALUES_JSON, true);
        printf(path[0] != '\0' ? "}" : "]}");
        return EXIT_OK;
    }
    put_plain(stdout, v.name);
    printf("  %s  ", shape_text(t.dtype, t.rank, t.dim).text);
    if (path[0] != '\0')
        put_plain(stdout, path);
    else
        put_values(ctx, &t, VALUES_SHOWN, false);
    printf("%s\n", path[0] == '\0' && mica_tensor_count(&t) > VALUES_SHOWN ? " ..." : "");
    return EXIT_OK;
}

static void put_inputs_json(onnx_runner *r)
{
    printf("{\"inputs\": [");
    for (int i = 0; i < r->given.count; i++) {
        put_tensor_json(r->given.input[i].name, &r->given.value[i], i == 0);
        printf(", \"fixed\": %s}", r->given.how[i] == GIVEN_VALUE ? "true" : "false");
    }
    printf("], \"outputs\": [");
}

static int put_all(onnx_runner *r)
{
    const mica_plan *plan = mica_net_plan(r->net);
    int64_t runs = r->set->repeat;
    double seconds = r->seconds[runs / 2];
    int code = EXIT_OK;
    if (r->set->output != NULL && mkdir(r->set->output, 0777) != 0 && errno != EEXIST)
        return verb_error(r->v, EXIT_FAILED, "cannot create the folder %s: %s", r->set->output,
                          strerror(errno));
    if (r->set->shared.json)
        put_inputs_json(r);
    for (int i = 0; i < mica_onnx_outputs(r->given.model) && code == EXIT_OK; i++)
        code = put_output(r, i);
    if (r->set->shared.json)
        printf("], \"runs\": %lld, \"seconds\": %.9g, \"heap_calls\": %llu, \"plan_bytes\": %zu}\n",
               (long long)runs, seconds, (unsigned long long)r->heap_calls, plan->total);
    else if (!r->set->shared.quiet)
        fprintf(stderr, "%s%s, %llu heap calls, %s planned\n", time_text(seconds).text,
                runs > 1 ? " (median)" : "", (unsigned long long)r->heap_calls,
                size_text((double)plan->total).text);
    return code;
}

int onnx_run(mica_context *ctx, const verb *v, const onnx_run_settings *set, const char *path, char **files,
             int file_count)
{
    onnx_runner *r = take(1, sizeof *r);
    r->v = v;
    r->set = set;
    r->seconds = take((size_t)set->repeat, sizeof *r->seconds);
    int code = given_open(&r->given, ctx, path) == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
    if (code == EXIT_OK)
        code = given_sets(&r->given, v, &set->set);
    if (code == EXIT_OK)
        code = given_inputs(&r->given, v, &set->inputs, files, file_count);
    if (code == EXIT_OK)
        code = build(r, path);
    if (code == EXIT_OK)
        code = run_all(r);
    if (code == EXIT_OK)
        code = put_all(r);
    mica_net_destroy(r->net);
    given_close(&r->given);
    free(r->seconds);
    free(r);
    return code;
}
