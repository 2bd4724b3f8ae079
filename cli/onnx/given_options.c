/* What the command line says of a model's inputs and sizes. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "cli/model/take.h"
#include "cli/onnx/given.h"
#include "cli/onnx/npy.h"
#include "cli/picture/text.h"

#define MOST_NUMBERS 4096

/* "[batch, 3, 224, 224]": as the model says. In text[size], which is returned. */
static const char *declared(char *text, size_t size, const mica_onnx_value *v)
{
    size_t at = (size_t)snprintf(text, size, "%s [", v->type);
    for (int i = 0; i < v->rank && at + 64 < size; i++)
        at += (size_t)(v->dim[i] >= 0 ? snprintf(text + at, size - at, "%s%td", i > 0 ? ", " : "", v->dim[i])
                                      : snprintf(text + at, size - at, "%s%.40s", i > 0 ? ", " : "",
                                                 v->symbol[i] != NULL ? v->symbol[i] : "?"));
    (void)snprintf(text + at, size - at, v->rank < 0 ? "of any shape]" : "]");
    return text;
}

/* What there is, for messages. */
static void list_names(const given *g, char *text, size_t size, bool symbols)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < g->count && at + 160 < size; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s%.64s", at > 0 ? ", " : "", g->input[i].name);
        for (int k = 0; symbols && k < g->input[i].rank && at + 160 < size; k++)
            if (g->input[i].symbol[k] != NULL && strstr(text, g->input[i].symbol[k]) == NULL)
                at += (size_t)snprintf(text + at, size - at, ", %.64s", g->input[i].symbol[k]);
    }
}

/* ---- Values ---- */

static bool is_float(mica_dtype dtype)
{
    return dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_F16 || dtype == MICA_BF16;
}

/* Holds a shape against what the model says of the input, and what was set. */
static int check_shape(const given *g, const verb *v, int number, const mica_tensor *t, const char *from)
{
    const mica_onnx_value *in = &g->input[number];
    char text[512];
    bool fits = in->rank < 0 || in->rank == t->rank;
    for (int k = 0; fits && k < in->rank; k++) {
        fits = in->dim[k] < 0 || in->dim[k] == t->dim[k];
        mica_index most = in->dim[k] < 0 ? given_size(g, in->symbol[k]) : -1;
        if (fits && most >= 0 && t->dim[k] > most)
            return usage_error(v, "%s is %s, but --set %s=%td", from,
                               shape_text(t->dtype, t->rank, t->dim).text, in->symbol[k], most);
    }
    if (fits)
        return EXIT_OK;
    return verb_error(v, EXIT_FILE, "%s is %s: the model's input \"%s\" is %s", from,
                      shape_text(t->dtype, t->rank, t->dim).text, in->name, declared(text, sizeof text, in));
}

/* Whether every value of one type is one of another: i32 of i64, u8 of i16. */
static bool widens(mica_dtype from, mica_dtype to)
{
    static const mica_dtype order[][4] = {{MICA_I8, MICA_I16, MICA_I32, MICA_I64},
                                          {MICA_U8, MICA_U16, MICA_U32, MICA_U64}};
    int a[2] = {-1, -1}, b[2] = {-1, -1}; /* places among the signed and the unsigned */
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < 4; i++) {
            a[s] = order[s][i] == from ? i : a[s];
            b[s] = order[s][i] == to ? i : b[s];
        }
    return (a[0] >= 0 && b[0] > a[0]) || (a[1] >= 0 && (b[1] > a[1] || b[0] > a[1]));
}

/* What NumPy calls a type of ONNX. */
static const char *numpy_name(char *text, size_t size, const char *type)
{
    if (strcmp(type, "FLOAT") == 0 || strcmp(type, "DOUBLE") == 0)
        return type[0] == 'F' ? "float32" : "float64";
    (void)snprintf(text, size, "%s", type);
    for (char *at = text; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    return text;
}

/* The value of an input, from a file; floats are converted, and integers to wider ones. */
static int take_file(given *g, const verb *v, int number, const char *path, given_how how)
{
    const mica_onnx_value *in = &g->input[number];
    mica_loaded *loaded = &g->loaded[number];
    if (g->how[number] != GIVEN_NOTHING)
        return usage_error(v, "the input \"%s\" is given twice", in->name);
    if (npy_read(g->ctx, loaded, path) != MICA_OK)
        return mica_context_status(g->ctx) == MICA_ERR_FORMAT &&
                       strstr(mica_error(g->ctx), "expected") == NULL
                   ? verb_error(v, EXIT_FILE,
                                "%s\n  (an input is an array of numbers, as numpy.save writes it)",
                                mica_error(g->ctx))
                   : verb_failed(v, g->ctx);
    int code = check_shape(g, v, number, &loaded->tensor, path);
    if (code != EXIT_OK)
        return code;
    g->how[number] = how;
    g->value[number] = loaded->tensor;
    if (loaded->tensor.dtype == in->dtype)
        return EXIT_OK;
    char name[32];
    if ((!is_float(loaded->tensor.dtype) || !is_float(in->dtype)) && !widens(loaded->tensor.dtype, in->dtype))
        return verb_error(v, EXIT_FILE, "%s is %s: the model's input \"%s\" is %s. Save x.astype(\"%s\")",
                          path, mica_dtype_name(loaded->tensor.dtype), in->name, in->type,
                          numpy_name(name, sizeof name, in->type));
    mica_tensor *t = &g->value[number];
    if (mica_tensor_init(g->ctx, t, NULL, in->dtype, t->rank, loaded->tensor.dim) != MICA_OK)
        return verb_failed(v, g->ctx);
    t->data = g->owned[number] = take(mica_tensor_bytes(t) + 1, 1);
    return mica_copy(g->ctx, t, &loaded->tensor) == MICA_OK ? EXIT_OK : verb_failed(v, g->ctx);
}

/* "16000", "1,2,3", "[1, 2, 3]": numbers. How many; -1: something else. */
static int read_numbers(double *out, int most, const char *text, bool *list)
{
    int count = 0;
    *list = *text == '[' || strchr(text, ',') != NULL;
    text += *text == '[';
    for (;;) {
        char *end;
        double value = strtod(text, &end);
        if (end == text || count == most)
            return -1;
        out[count++] = value;
        end += strspn(end, " ");
        if (*end == ',') {
            text = end + 1;
            continue;
        }
        end += *end == ']';
        return *end == '\0' ? count : -1;
    }
}

/* A number that the input's type has: 1.5 is no integer, 300 no byte. */
static int put_number(given *g, const verb *v, int number, const mica_tensor *t, mica_index at, double value)
{
    double is;
    if (mica_set_at(g->ctx, t, &at, value) != MICA_OK || mica_at(g->ctx, &is, t, &at) != MICA_OK)
        return verb_failed(v, g->ctx);
    if (is == value || is_float(t->dtype))
        return EXIT_OK;
    return usage_error(v, "--set %s: %g is not a valid %s", g->input[number].name, value,
                       g->input[number].type);
}

static int take_numbers(given *g, const verb *v, int number, const char *text)
{
    const mica_onnx_value *in = &g->input[number];
    double *values = take(MOST_NUMBERS, sizeof *values);
    bool list;
    int count = read_numbers(values, MOST_NUMBERS, text, &list), code = EXIT_OK;
    mica_tensor t;
    mica_index dims[1] = {count};
    int rank = in->rank == 0 || (in->rank < 0 && !list) ? 0 : 1;
    if (count < 0)
        code = usage_error(v, "--set %s takes numbers, a shape such as 1x3x224x224, or @FILE.npy: got \"%s\"",
                           in->name, text);
    else if ((in->rank > 1) || (rank == 0 && count != 1))
        code = usage_error(v, "--set %s: got %d number%s for an input of %d axes: @FILE.npy gives an array",
                           in->name, count, count == 1 ? "" : "s", in->rank);
    else if (mica_tensor_init(g->ctx, &t, NULL, in->dtype, rank, dims) != MICA_OK)
        code = verb_failed(v, g->ctx);
    if (code == EXIT_OK) {
        t.data = g->owned[number] = take(mica_tensor_bytes(&t) + 8, 1);
        for (mica_index i = 0; i < count && code == EXIT_OK; i++)
            code = put_number(g, v, number, &t, i, values[i]);
        g->value[number] = t;
        g->how[number] = GIVEN_VALUE;
    }
    free(values);
    return code == EXIT_OK ? check_shape(g, v, number, &t, "what --set gives") : code;
}

/* "1x3x224x224", "8x" */
static bool read_shape(const char *text, int *rank, mica_index *dims)
{
    *rank = 0;
    if (strchr(text, 'x') == NULL)
        return false;
    while (isdigit((unsigned char)*text) && *rank < MICA_MAX_RANK) {
        char *end;
        errno = 0;
        long long size = strtoll(text, &end, 10);
        if (errno != 0)
            return false;
        dims[(*rank)++] = (mica_index)size;
        if (*end == '\0')
            return true;
        if (*end != 'x')
            return false;
        text = end + 1;
    }
    return *text == '\0' && *rank > 0;
}

static int take_shape(given *g, const verb *v, int number, int rank, const mica_index *dims)
{
    mica_dtype dtype = g->input[number].dtype;
    if (mica_tensor_init(g->ctx, &g->value[number], NULL, dtype, rank, dims) != MICA_OK)
        return verb_failed(v, g->ctx);
    g->how[number] = GIVEN_SHAPE;
    return check_shape(g, v, number, &g->value[number], "what --set gives");
}

/* ---- Options ---- */

static int unknown_name(const given *g, const verb *v, const char *name, bool symbols)
{
    char names[2048];
    list_names(g, names, sizeof names, symbols);
    return usage_error(v, "the model has no input%s \"%s\": it has %s", symbols ? " or size" : "", name,
                       names);
}

static bool is_symbol(const given *g, const char *name)
{
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->input[i].rank; k++)
            if (g->input[i].symbol[k] != NULL && strcmp(g->input[i].symbol[k], name) == 0)
                return true;
    return false;
}

static int take_size(given *g, const verb *v, const char *name, const char *text)
{
    char *end;
    errno = 0;
    long long size = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || size < 1)
        return usage_error(v, "--set %s takes a size, such as %s=8: got \"%s\"", name, name, text);
    if (given_size(g, name) >= 0)
        return usage_error(v, "the size \"%s\" is given twice", name);
    g->symbol[g->symbols++] = (mica_onnx_set){.name = name, .size = (mica_index)size};
    return EXIT_OK;
}

static int take_set(given *g, const verb *v, const char *item)
{
    const char *equals = strchr(item, '=');
    size_t length = equals != NULL ? (size_t)(equals - item) : 0;
    if (length == 0 || length >= sizeof g->symbol_name[0] || g->symbols == OPTION_LIST_MOST)
        return usage_error(v, "--set takes NAME=VALUE, such as batch=8, not \"%s\"", item);
    char *name = g->symbol_name[g->symbols];
    memcpy(name, item, length);
    name[length] = '\0';
    const char *text = equals + 1;
    int number = given_find(g, name, length), rank;
    mica_index dims[MICA_MAX_RANK];
    if (number < 0)
        return is_symbol(g, name) ? take_size(g, v, name, text) : unknown_name(g, v, name, true);
    if (g->input[number].dtype == MICA_DTYPE_COUNT)
        return usage_error(v, "the input \"%s\" is of type %s, which is not supported", name,
                           g->input[number].type);
    if (g->how[number] != GIVEN_NOTHING)
        return usage_error(v, "the input \"%s\" is given twice", name);
    if (*text == '@')
        return take_file(g, v, number, text + 1, GIVEN_VALUE);
    return read_shape(text, &rank, dims) ? take_shape(g, v, number, rank, dims)
                                         : take_numbers(g, v, number, text);
}

int given_sets(given *g, const verb *v, const option_list *list)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < list->count && code == EXIT_OK; i++)
        code = take_set(g, v, list->item[i]);
    return code;
}

/* Says which inputs are missing, and what they are. */
static int check_all(const given *g, const verb *v)
{
    char text[2048] = "", shape[512];
    for (int i = 0; i < g->count; i++) {
        size_t at = strlen(text);
        if (g->value[i].data == NULL && at + 700 < sizeof text)
            (void)snprintf(text + at, sizeof text - at, "\n  --input %.100s=FILE.npy   %s", g->input[i].name,
                           declared(shape, sizeof shape, &g->input[i]));
    }
    return text[0] == '\0' ? EXIT_OK : usage_error(v, "inputs are missing:%s", text);
}

int given_inputs(given *g, const verb *v, const option_list *list, char **files, int file_count)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < list->count && code == EXIT_OK; i++) {
        const char *equals = strchr(list->item[i], '=');
        size_t length = equals != NULL ? (size_t)(equals - list->item[i]) : 0;
        int number = given_find(g, list->item[i], length);
        char name[128];
        (void)snprintf(name, sizeof name, "%.*s", length < 100 ? (int)length : 100, list->item[i]);
        code = length == 0  ? usage_error(v, "--input takes NAME=FILE.npy, not \"%s\"", list->item[i])
               : number < 0 ? unknown_name(g, v, name, false)
                            : take_file(g, v, number, equals + 1, GIVEN_SHAPE);
    }
    for (int i = 0, number = 0; i < file_count && code == EXIT_OK; i++) {
        while (number < g->count && g->how[number] != GIVEN_NOTHING)
            number++;
        code = number < g->count ? take_file(g, v, number, files[i], GIVEN_SHAPE)
                                 : usage_error(v, "%s: the model has no input left for it", files[i]);
    }
    return code == EXIT_OK ? check_all(g, v) : code;
}
