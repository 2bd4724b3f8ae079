#include "onnx/round_trip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/scratch.h"
#include "net/net.h"

enum { MOST = 64 };

/* What went in or came out, by name. */
typedef struct kept {
    char name[96];
    mica_tensor tensor; /* with a copy of its elements */
} kept;

typedef struct ends {
    kept in[MOST], out[MOST];
    int ins, outs;
} ends;

static void keep(kept *k, const char *name, const mica_tensor *t)
{
    snprintf(k->name, sizeof k->name, "%s", name);
    k->tensor = *t;
    k->tensor.data = malloc(mica_tensor_bytes(t) + 1);
    if (mica_tensor_bytes(t) > 0)
        memcpy(k->tensor.data, t->data, mica_tensor_bytes(t));
}

static void forget(ends *e)
{
    for (int i = 0; i < e->ins; i++)
        free(e->in[i].tensor.data);
    for (int i = 0; i < e->outs; i++)
        free(e->out[i].tensor.data);
}

/* ---- For other programs ---- */

static void write_npy(const char *folder, const char *name, const char *what, int number,
                      const mica_tensor *t)
{
    static const char *const codes[] = {"f4", "f8", "f2", "b1", "i8", "i4", "i2", "i1", "u1", "u2"};
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F64, MICA_F16, MICA_BOOL, MICA_I64,
                                        MICA_I32, MICA_I16, MICA_I8,  MICA_U8,   MICA_U16};
    char path[600], header[300], shape[128] = "";
    const char *code = "V2";
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        code = dtypes[i] == t->dtype ? codes[i] : code;
    for (int i = 0; i < t->rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%td,", t->dim[i]);
    int length = snprintf(header, sizeof header, "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }",
                          code, shape);
    while ((length + 11) % 64 != 0)
        header[length++] = ' ';
    header[length++] = '\n';
    snprintf(path, sizeof path, "%s/%s.%s%d.npy", folder, name, what, number);
    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL);
    unsigned char size[2] = {(unsigned char)(length & 255), (unsigned char)(length >> 8)};
    fwrite("\x93NUMPY\x01\x00", 1, 8, f);
    fwrite(size, 1, 2, f);
    fwrite(header, 1, (size_t)length, f);
    fwrite(t->data, 1, mica_tensor_bytes(t), f);
    fclose(f);
}

/* ---- The file ---- */

static const kept *find(const kept *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static bool has_size(const mica_onnx *model, const char *name)
{
    bool found = false;
    for (int i = 0; i < mica_onnx_inputs(model); i++) {
        mica_onnx_value v;
        if (CHECK(mica_onnx_input(model, &v, i) == MICA_OK))
            for (int k = 0; k < v.rank; k++)
                found = found || (v.symbol[k] != NULL && strcmp(v.symbol[k], name) == 0);
    }
    return found;
}

static bool build_again(mica_context *ctx, mica_onnx *model, mica_net **again, const mica_net *net)
{
    mica_onnx_set sets[MICA_SIZES];
    int count = 0;
    for (int i = 0; i < mica_net_sizes(net); i++) {
        sets[count] = (mica_onnx_set){.name = NULL};
        (void)mica_net_size_at(net, &sets[count].name, NULL, &sets[count].size, i);
        count += has_size(model, sets[count].name);
    }
    return mica_net_create(ctx, again) == MICA_OK &&
           mica_onnx_build(model, *again, &(mica_onnx_opts){.sets = sets, .count = count, .train = true}) ==
               MICA_OK &&
           mica_net_compile(*again, &(mica_compile_opts){.train = false}) == MICA_OK &&
           mica_net_bind(*again, NULL, 0) == MICA_OK && mica_net_initialize(*again, 1) == MICA_OK &&
           mica_onnx_load(model, *again) == MICA_OK;
}

static void compare(mica_context *ctx, mica_net *again, const char *name, const ends *e)
{
    for (int i = 0; i < mica_net_inputs(again); i++) {
        const char *input;
        mica_tensor t;
        REQUIRE(mica_net_input_tensor(again, &input, &t, i) == MICA_OK);
        const kept *k = find(e->in, e->ins, input);
        if (CHECK_MSG(k != NULL && mica_tensor_bytes(&t) == mica_tensor_bytes(&k->tensor), "%s: input %s",
                      name, input) &&
            mica_tensor_bytes(&t) > 0)
            memcpy(t.data, k->tensor.data, mica_tensor_bytes(&t));
    }
    if (!CHECK_MSG(mica_net_forward(again) == MICA_OK, "%s: %s", name, mica_error(ctx)))
        return;
    for (int i = 0; i < e->outs; i++) {
        mica_tensor t;
        const mica_tensor *want = &e->out[i].tensor;
        if (!CHECK_MSG(mica_net_tensor(again, &t, e->out[i].name) == MICA_OK, "%s: %s", name,
                       mica_error(ctx)))
            continue;
        bool same = mica_tensor_same_shape(&t, want) && t.dtype == want->dtype;
        size_t bytes = mica_tensor_bytes(want), at = 0;
        while (same && at < bytes && ((const char *)t.data)[at] == ((const char *)want->data)[at])
            at++;
        CHECK_MSG(same && at == bytes, "%s: %s, as read again, has other bits from byte %zu of %zu on", name,
                  e->out[i].name, at, bytes);
    }
}

/* Weights are lent where they lie: each is aligned. */
static void check_file(mica_context *ctx, const char *path, const char *name, const ends *e,
                       const mica_net *net)
{
    mica_onnx *model = NULL;
    mica_net *again = NULL;
    if (!CHECK_MSG(mica_onnx_open(ctx, &model, path) == MICA_OK, "%s: %s", name, mica_error(ctx)))
        return;
    CHECK_MSG(mica_onnx_outputs(model) == e->outs, "%s: %d outputs", name, mica_onnx_outputs(model));
    if (CHECK_MSG(build_again(ctx, model, &again, net), "%s: %s", name, mica_error(ctx)))
        compare(ctx, again, name, e);
    mica_net_destroy(again);
    mica_onnx_close(model);
}

/* ---- The net ---- */

static void keep_inputs(mica_net *net, ends *e)
{
    e->ins = mica_net_inputs(net);
    REQUIRE(e->ins <= MOST);
    for (int i = 0; i < e->ins; i++) {
        const char *name;
        mica_tensor t;
        REQUIRE(mica_net_input_tensor(net, &name, &t, i) == MICA_OK);
        keep(&e->in[i], name, &t);
    }
}

/* What has no name in the net is called by its number. */
static mica_status tensor_of(mica_net *net, mica_tensor *t, const char *name)
{
    char *end = NULL;
    long number = name[0] == 'v' && !mica_net_name_taken(net, name) ? strtol(name + 1, &end, 10) : 0;
    return end != NULL && end > name + 1 && *end == '\0'
               ? mica_net_value_tensor(net, t, (mica_value)number + 1)
               : mica_net_tensor(net, t, name);
}

/* In the order of the file. */
static void keep_outputs(mica_context *ctx, mica_net *net, ends *e, const char *path, const char *keep_in,
                         const char *name)
{
    mica_onnx *model = NULL;
    REQUIRE(CHECK_OK(ctx, mica_onnx_open(ctx, &model, path)));
    e->outs = mica_onnx_outputs(model);
    REQUIRE(e->outs <= MOST);
    for (int i = 0; i < e->outs; i++) {
        mica_onnx_value v;
        mica_tensor t;
        REQUIRE(mica_onnx_output(model, &v, i) == MICA_OK);
        REQUIRE(CHECK_OK(ctx, tensor_of(net, &t, v.name)));
        keep(&e->out[i], v.name, &t);
        if (keep_in != NULL)
            write_npy(keep_in, name, "out", i, &t);
    }
    for (int i = 0; keep_in != NULL && i < mica_onnx_inputs(model); i++) {
        mica_onnx_value v;
        REQUIRE(mica_onnx_input(model, &v, i) == MICA_OK);
        write_npy(keep_in, name, "in", i, &find(e->in, e->ins, v.name)->tensor);
    }
    mica_onnx_close(model);
}

static bool round_trip_as(mica_net *net, const char *name, bool plain)
{
    mica_context *ctx = mica_net_context(net);
    const char *keep_in = getenv("MICA_ONNX_KEEP");
    scratch s = scratch_make();
    ends *e = calloc(1, sizeof *e);
    char file[128], path[600];
    snprintf(file, sizeof file, "%s.onnx", name);
    snprintf(path, sizeof path, "%s/%s", keep_in != NULL ? keep_in : s.folder, file);
    bool written = mica_onnx_write(net, path, &(mica_onnx_write_opts){.plain = plain}) == MICA_OK;
    if (written) {
        keep_inputs(net, e);
        if (CHECK_MSG(mica_net_forward(net) == MICA_OK, "%s: %s", name, mica_error(ctx))) {
            keep_outputs(ctx, net, e, path, keep_in, name);
            check_file(ctx, path, name, e, net);
        }
        forget(e);
    }
    free(e);
    scratch_remove(&s);
    return written;
}

bool round_trip(mica_net *net, const char *name) { return round_trip_as(net, name, false); }
bool round_trip_plain(mica_net *net, const char *name) { return round_trip_as(net, name, true); }
