#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <mica/mica.h>

#include "cli/model/take.h"
#include "cli/onnx/case.h"
#include "cli/onnx/given.h"
#include "host/heap.h"
#include "onnx/model.h"

/* A data set that is being run. */
typedef struct data_set {
    given given;
    const char *folder; /* of the test */
    int number;
    tolerance within;
    mica_net *net;
    mica_onnx *input_file[GIVEN_INPUTS]; /* in the order of the model's inputs */
    case_result result;
} data_set;

/* Returns false, so that what fails can end with it. */
__attribute__((format(printf, 3, 4))) static bool ends(data_set *d, case_status status, const char *format,
                                                       ...)
{
    va_list args;
    va_start(args, format);
    d->result.status = status;
    vsnprintf(d->result.reason, sizeof d->result.reason, format, args);
    va_end(args);
    return false;
}

/* What the library said. */
static bool fails(data_set *d, const char *doing)
{
    return ends(d, CASE_FAILED, "%s: %s", doing, mica_error(d->given.ctx));
}

/* ---- Inputs ---- */

/* Tests of before NumPy had bf16 hold its bits, as integers; ONNX's runner then compares those. */
static bool are_bits(const mica_tensor *t, mica_dtype declared)
{
    return declared == MICA_BF16 && t->dtype == MICA_U16;
}

static bool read_tensor(data_set *d, mica_onnx **file, mica_tensor *t, const char **name, const char *kind,
                        int number)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/test_data_set_%d/%s_%d.pb", d->folder, d->number, kind, number);
    if (mica_onnx_open_tensor(d->given.ctx, file, t, name, path) == MICA_OK)
        return true;
    char what[32];
    snprintf(what, sizeof what, "%s %d", kind, number);
    return fails(d, what);
}

/* Whether a file has a shape that the model rules out, as a few of ONNX's own tests do (of CastLike): then it is taken
 * as a constant, in the shape that it has. */
static bool contradicts(const mica_tensor *t, const mica_onnx_value *v)
{
    bool fits = v->rank < 0 || v->rank == t->rank;
    for (int k = 0; fits && k < v->rank; k++)
        fits = v->dim[k] < 0 || v->dim[k] == t->dim[k];
    return !fits;
}

/* The model's input that a file is for: of its name; else the one at its place. */
static bool read_input(data_set *d, int number)
{
    given *g = &d->given;
    mica_onnx *file;
    mica_tensor t;
    const char *name;
    if (!read_tensor(d, &file, &t, &name, "input", number))
        return false;
    int named = name != NULL ? given_find(g, name, strlen(name)) : -1, i = named >= 0 ? named : number;
    if (d->input_file[i] != NULL) {
        mica_onnx_close(file);
        return ends(d, CASE_FAILED, "two files for input \"%s\"", g->input[i].name);
    }
    d->input_file[i] = file;
    static char nothing[1]; /* a value of no elements is known, too */
    if (are_bits(&t, g->input[i].dtype))
        t.dtype = MICA_BF16;
    g->value[i] = t;
    if (t.data == NULL)
        g->value[i].data = nothing;
    g->how[i] = contradicts(&t, &g->input[i]) ? GIVEN_VALUE : GIVEN_SHAPE;
    return true;
}

/* No sequences, strings and the like. */
static bool all_tensors(data_set *d)
{
    mica_onnx_value v = {.name = "", .type = ""};
    for (int i = 0; i < mica_onnx_inputs(d->given.model); i++)
        if (mica_onnx_input(d->given.model, &v, i) != MICA_OK || v.dtype == MICA_DTYPE_COUNT)
            return ends(d, CASE_UNSUPPORTED, "input \"%s\" is of type %s", v.name, v.type);
    for (int i = 0; i < mica_onnx_outputs(d->given.model); i++)
        if (mica_onnx_output(d->given.model, &v, i) != MICA_OK || v.dtype == MICA_DTYPE_COUNT)
            return ends(d, CASE_UNSUPPORTED, "output \"%s\" is of type %s", v.name, v.type);
    return true;
}

static bool read_inputs(data_set *d)
{
    int count = mica_onnx_inputs(d->given.model);
    if (count > GIVEN_INPUTS)
        return ends(d, CASE_UNSUPPORTED, "%d inputs, expected at most %d", count, GIVEN_INPUTS);
    for (int i = 0; i < count; i++)
        if (!read_input(d, i))
            return false;
    return true;
}

/* ---- The net ---- */

/* What could not be imported: the first, and how many more there are. */
static bool say_problems(data_set *d)
{
    mica_onnx_problem p;
    int count = mica_onnx_problems(d->given.model);
    if (count == 0 || mica_onnx_problem_at(d->given.model, &p, 0) != MICA_OK)
        return fails(d, "build");
    char more[32] = "";
    if (count > 1)
        snprintf(more, sizeof more, " (and %d more)", count - 1);
    return ends(d, CASE_UNSUPPORTED, "%s: %s%s", p.type, p.reason, more);
}

static bool build(data_set *d)
{
    if (given_build(&d->given, &d->net, false) != MICA_OK)
        return say_problems(d);
    if (mica_net_compile(d->net, &(mica_compile_opts){0}) != MICA_OK)
        return fails(d, "compile");
    return mica_net_bind(d->net, NULL, 0) == MICA_OK || fails(d, "bind");
}

static bool run_net(data_set *d)
{
    if (given_write(&d->given, d->net) != MICA_OK)
        return fails(d, "inputs");
    uint64_t before = heap_now().calls;
    mica_status status = mica_net_forward(d->net);
    uint64_t calls = heap_now().calls - before;
    if (status != MICA_OK)
        return fails(d, "run");
    if (heap_counted() && calls > 0)
        return ends(d, CASE_FAILED, "the run made %llu heap calls", (unsigned long long)calls);
    return true;
}

/* ---- Outputs ---- */

/* A model with random numbers has run, but there is nothing to compare them with. */
static bool is_comparable(data_set *d)
{
    const mica_onnx_graph *graph = &d->given.model->graph;
    for (int i = 0; i < graph->node_count; i++) {
        const char *type = graph->nodes[i].type;
        if (strncmp(type, "Random", 6) == 0 || strcmp(type, "Bernoulli") == 0)
            return ends(d, CASE_UNSUPPORTED,
                        "%s: random numbers, which cannot be compared with the expected ones", type);
    }
    return true;
}

/* Tests that expect something else than the standard says; a difference there is no fault of ours. NULL: none of
 * them. */
static const char *mistake_of(const char *folder)
{
    static const char wraps[] = "its expected output wraps around where the standard saturates",
                      doubles[] = "its expected output is that of double precision";
    static const struct {
        const char *name, *mistake;
    } known[] = {
        {"test_qlinearmatmul_2D_int8_float16", wraps},
        {"test_qlinearmatmul_2D_int8_float32", wraps},
        {"test_qlinearmatmul_3D_int8_float16", wraps},
        {"test_qlinearmatmul_3D_int8_float32", wraps},
        {"test_adam_multiple", "its expected output has an epsilon of 1e-2, its node the standard's 1e-6"},
        {"test_dft_inverse", doubles}, /* of ONNX 1.12 */
    };
    const char *slash = strrchr(folder, '/'), *name = slash != NULL ? slash + 1 : folder;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].mistake;
    return NULL;
}

static bool check_output(data_set *d, int number)
{
    mica_onnx_value v = {.name = "", .type = ""};
    mica_onnx *file;
    mica_tensor got, expected;
    const char *name;
    char why[512];
    tolerance within = d->within;
    if (mica_onnx_output(d->given.model, &v, number) != MICA_OK ||
        mica_net_tensor(d->net, &got, v.name) != MICA_OK)
        return fails(d, "outputs");
    if (!read_tensor(d, &file, &expected, &name, "output", number))
        return false;
    if (are_bits(&expected, got.dtype)) {
        got.dtype = MICA_U16;
        within.integers = true;
    }
    bool same = same_tensors(why, sizeof why, d->given.ctx, &got, &expected, within);
    mica_onnx_close(file);
    const char *mistake = same ? NULL : mistake_of(d->folder);
    if (mistake != NULL)
        return ends(d, CASE_UNSUPPORTED, "output \"%s\": %s: %s", v.name, why, mistake);
    return same || ends(d, CASE_FAILED, "output \"%s\": %s", v.name, why);
}

static bool run_set(data_set *d, mica_context *ctx)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model.onnx", d->folder);
    if (given_open(&d->given, ctx, path) != MICA_OK)
        return fails(d, "open");
    if (!all_tensors(d) || !read_inputs(d) || !build(d) || !run_net(d) || !is_comparable(d))
        return false;
    for (int i = 0; i < mica_onnx_outputs(d->given.model); i++)
        if (!check_output(d, i))
            return false;
    return true;
}

static void close_set(data_set *d)
{
    mica_net_destroy(d->net);
    for (int i = 0; i < GIVEN_INPUTS; i++)
        mica_onnx_close(d->input_file[i]);
    given_close(&d->given);
}

case_result case_run(mica_context *ctx, const char *folder, tolerance within)
{
    case_result result = {.status = CASE_FAILED, .reason = "there is no test_data_set_0"};
    data_set *d = take(1, sizeof *d);
    for (int number = 0; number == 0 || result.status == CASE_PASSED; number++) {
        char path[4096];
        struct stat about;
        snprintf(path, sizeof path, "%s/test_data_set_%d", folder, number);
        if (stat(path, &about) != 0)
            break;
        *d = (data_set){.folder = folder, .number = number, .within = within};
        d->result.status = CASE_PASSED;
        run_set(d, ctx);
        close_set(d);
        result = d->result;
    }
    free(d);
    return result;
}
