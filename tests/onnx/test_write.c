/* Nets as ONNX files: read again they give the same bits. Every operation by random samples of its entry, the built-in
 * nets, and random nets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/netfile.h>

#include "io/scratch.h"
#include "net/example_nets.h"
#include "net/net.h"
#include "net/random_net.h"
#include "node/entry.h"
#include "onnx/round_trip.h"
#include "onnx/write.h"
#include "ops/entry_draw.h"

enum { SEEDS = 6 };

/* ---- Operations ---- */

/* Inputs are inputs, or learned where they can be and `learned` says so, or kept where the operation writes to them. */
static mica_net *net_of(mica_context *ctx, const entry_draw *d, bool learned)
{
    mica_net *net;
    mica_value in[MICA_OP_INS] = {0}, y;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    for (int i = 0; i < d->sample.ins; i++) {
        char name[16];
        const mica_tensor *t = &d->in[i];
        snprintf(name, sizeof name, "in %d", i);
        if (!d->given[i])
            continue;
        if (d->op->writes >> i & 1u)
            in[i] = mica_net_kept(net, name, MICA_KEPT_STATISTICS, t->dtype, t->rank, t->dim, 0.0f);
        else if (learned && i > 0 && t->dtype == MICA_F32)
            in[i] = mica_net_learned(net, name, t->rank, t->dim, (mica_init){MICA_INIT_CONSTANT, 0.0f});
        else
            in[i] = mica_net_input(net, name, t->dtype, t->rank, t->dim);
    }
    y = mica_net_call(net, "call", d->op, in, d->sample.ins, d->sample.opts);
    for (int k = 0; k < d->op->outs; k++) {
        char name[16];
        snprintf(name, sizeof name, "out %d", k);
        if (entry_result(d, k) && !(d->op->flags & MICA_OP_LARGEST && k > 0))
            (void)mica_net_output(net, name, mica_net_result(net, y, k));
    }
    bool made = CHECK_MSG(mica_net_compile(net, &(mica_compile_opts){.train = false}) == MICA_OK &&
                              mica_net_bind(net, NULL, 0) == MICA_OK &&
                              mica_net_initialize(net, 1) == MICA_OK,
                          "%s: %s", d->op->name, mica_error(ctx));
    for (int i = 0; made && i < d->sample.ins; i++) {
        mica_tensor t;
        if (in[i] != 0 && CHECK_OK(ctx, mica_net_value_tensor(net, &t, in[i])) && mica_tensor_bytes(&t) > 0)
            memcpy(t.data, d->in[i].data, mica_tensor_bytes(&t));
    }
    if (made)
        CHECK_OK(ctx, mica_net_derive(net));
    return net;
}

/* Some options cannot be expressed, but of every operation that has a row something can, and is looked for. */
static void try_operation(mica_context *ctx, const mica_op *op, int seeds)
{
    int written = 0;
    bool writable = mica_onnx_row_of(op) != NULL;
    for (int seed = 0; seed < seeds || (writable && written == 0 && seed < SEEDS); seed++) {
        entry_draw d;
        char name[96];
        snprintf(name, sizeof name, "op_%s_%d", op->name, seed);
        entry_draw_make(&d, ctx, op, (uint64_t)seed);
        mica_net *net = net_of(ctx, &d, seed % 2 == 1);
        if (net != NULL && round_trip(net, name))
            written++;
        else
            CHECK_MSG(strstr(mica_error(ctx), "cannot be written as ONNX") != NULL, "%s: %s", name,
                      mica_error(ctx));
        mica_net_destroy(net);
        entry_draw_free(&d);
    }
    CHECK_MSG(written > 0 || !writable, "%s: %s", op->name, mica_error(ctx));
}

TEST(onnx_write_every_operation)
{
    mica_context *ctx = test_context(1);
    const mica_op *more[] = {&mica_op_linear,        &mica_op_embedding,     &mica_op_attention_packed,
                             &mica_op_rotary_packed, &mica_op_add_positions, &mica_op_swiglu};
    for (int i = 0; mica_op_at(i) != NULL; i++)
        if (entry_callable(mica_op_at(i)) && !entry_skipped(mica_op_at(i)) &&
            !(mica_op_at(i)->flags & (MICA_OP_CALLBACK | MICA_OP_LOSS)))
            try_operation(ctx, mica_op_at(i), test_effort(SEEDS));
    for (size_t i = 1; i < sizeof more / sizeof more[0]; i++)
        if (!entry_skipped(more[i]))
            try_operation(ctx, more[i], test_effort(SEEDS));
}

/* Heads side by side, with and without masks, and fewer heads of keys. */
static mica_net *attention_net(mica_context *ctx, test_random *r)
{
    int kv = test_int(r, 1, 3), features = test_int(r, 1, 6), masked = test_int(r, 0, 2);
    mica_attention_packed_opts opts = {.heads = kv * test_int(r, 1, 3),
                                       .kv_heads = kv,
                                       .causal = test_chance(r, 40),
                                       .scale = test_chance(r, 50) ? 0.3f : 0.0f};
    mica_index n = test_int(r, 1, 3), queries = test_int(r, 1, 5), keys = queries + test_int(r, 0, 3);
    mica_index q[] = {n, queries, opts.heads * features}, k[] = {n, keys, kv * features},
               mask[] = {n, 1, 1, keys};
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_value in[] = {mica_net_input(net, "q", MICA_F32, 3, q), mica_net_input(net, "k", MICA_F32, 3, k),
                       mica_net_input(net, "v", MICA_F32, 3, k), 0};
    if (masked > 0)
        in[3] = mica_net_input(net, "mask", masked == 1 ? MICA_F32 : MICA_U8, 4, mask);
    mica_net_output(net, "y", mica_net_call(net, "call", &mica_op_attention_rows, in, 4, &opts));
    bool made = CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
                CHECK_OK(ctx, mica_net_initialize(net, 1));
    for (int i = 0; made && i < mica_net_inputs(net); i++) {
        mica_tensor t;
        mica_net_input_tensor(net, NULL, &t, i);
        for (size_t j = 0; j < mica_tensor_count(&t); j++) {
            if (t.dtype == MICA_F32)
                ((float *)t.data)[j] = (float)test_uniform(r, -1.0, 1.0);
            else
                ((uint8_t *)t.data)[j] = (uint8_t)test_chance(r, 70);
        }
    }
    return net;
}

TEST(onnx_write_attention_of_rows)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(31);
    for (int i = 0; i < test_effort(24); i++) {
        char name[32];
        snprintf(name, sizeof name, "attention_rows_%d", i);
        mica_net *net = attention_net(ctx, &r);
        REQUIRE(net != NULL);
        CHECK_MSG(round_trip(net, name), "%s: %s", name, mica_error(ctx));
        mica_net_destroy(net);
    }
}

/* ---- Nets ---- */

static void fill_inputs(mica_net *net, uint64_t seed, int below)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        mica_net_input_tensor(net, NULL, &t, i);
        for (size_t j = 0; j < mica_tensor_count(&t); j++) {
            if (t.dtype == MICA_F32)
                ((float *)t.data)[j] = (float)test_uniform(&r, -1.0, 1.0);
            else
                ((int32_t *)t.data)[j] = test_int(&r, 0, below - 1);
        }
    }
}

/* What losses judge is an output of the file: here it must last until it is compared. */
static void keep_judged(mica_net *net)
{
    for (int n = 0; n < net->node_count; n++)
        if ((net->nodes[n].op->flags & MICA_OP_LOSS) && net->values[net->nodes[n].in[0]].maker != NONE)
            net->values[net->nodes[n].in[0]].output = true;
}

static bool make(mica_net *net, const mica_compile_opts *opts)
{
    mica_context *ctx = mica_net_context(net);
    keep_judged(net);
    return CHECK_OK(ctx, mica_net_compile(net, opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
           CHECK_OK(ctx, mica_net_initialize(net, 7));
}

TEST(onnx_write_builtin_nets)
{
    mica_context *ctx = test_context(2);
    for (size_t i = 0; mica_netfile_builtin_name(i) != NULL; i++)
        for (int train = 0; train < 2; train++) {
            const char *name = mica_netfile_builtin_name(i);
            char file[64];
            mica_net *net;
            mica_netfile_info info;
            mica_netfile_opts how = {.batch = 3, .inference = train == 0};
            snprintf(file, sizeof file, "net_%s%s", name, train ? "_loss" : "");
            REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
            if (CHECK_OK(ctx, mica_netfile_build(net, &info, mica_netfile_builtin(name), &how)) &&
                make(net, &(mica_compile_opts){.train = train == 1})) {
                fill_inputs(net, 5, 10);
                CHECK_MSG(round_trip(net, file), "%s: %s", name, mica_error(ctx));
            }
            mica_net_destroy(net);
        }
}

TEST(onnx_write_example_nets)
{
    mica_context *ctx = test_context(2);
    for (int i = 0; i < example_net_count; i++) {
        char file[64];
        snprintf(file, sizeof file, "example_%s", example_nets[i].name);
        mica_net *net = example_net_make(ctx, &example_nets[i], 0, NULL);
        REQUIRE(net != NULL);
        example_net_fill(net, &example_nets[i], 3);
        if (!mica_net_keeps_states(net))
            CHECK_MSG(round_trip(net, file), "%s: %s", file, mica_error(ctx));
        else
            CHECK_MSG(!round_trip(net, file), "%s: its states were written", file);
        mica_net_destroy(net);
    }
}

TEST(onnx_write_random_nets)
{
    mica_context *ctx = test_context(2);
    int nets = test_effort(getenv("MICA_ONNX_KEEP") != NULL || getenv("MICA_TEST_LONG") != NULL ? 300 : 60);
    for (int seed = 0; seed < nets; seed++) {
        char name[64];
        snprintf(name, sizeof name, "random_%d", seed);
        mica_net *net = random_net(ctx, (uint64_t)seed, true);
        REQUIRE(net != NULL);
        if (make(net, &(mica_compile_opts){.train = seed % 3 == 0})) {
            fill_inputs(net, (uint64_t)seed, RANDOM_NET_BELOW);
            CHECK_MSG(round_trip(net, name), "%s: %s", name, mica_error(ctx));
        }
        mica_net_destroy(net);
    }
}

/* ---- Names, errors ---- */

static mica_net *small_net(mica_context *ctx, const char *input, const char *layer)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_value x = mica_net_input(net, input, MICA_F32, 2, (mica_index[]){2, 3});
    mica_value y = mica_net_dense(net, x,
                                  &(mica_net_dense_opts){.name = layer, .units = 4, .activation = MICA_GELU});
    mica_net_output(net, "y", y);
    return net;
}

TEST(onnx_write_odd_names)
{
    mica_context *ctx = test_context(1);
    static const char *const names[] = {
        "x y", "\xc3\xbc\xe6\xbc\xa2", "a/b:c\"d'\\", "v1", "linear_1", "t1", "-1", "gelu.0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char layer[64];
        snprintf(layer, sizeof layer, "%s.layer", names[i]);
        mica_net *net = small_net(ctx, names[i], layer);
        REQUIRE(net != NULL);
        if (make(net, &(mica_compile_opts){.train = false})) {
            fill_inputs(net, 1, 2);
            CHECK_MSG(round_trip(net, "odd_names"), "%s: %s", names[i], mica_error(ctx));
        }
        mica_net_destroy(net);
    }
    mica_net *net = small_net(ctx, "x\xff", "layer");
    REQUIRE(net != NULL);
    if (make(net, &(mica_compile_opts){.train = false})) {
        CHECK(!round_trip(net, "not_utf8"));
        CHECK_MSG(strstr(mica_error(ctx), "is not valid UTF-8") != NULL, "%s", mica_error(ctx));
    }
    mica_net_destroy(net);
}

TEST(onnx_write_refuses_what_it_cannot_say)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    mica_net *net = small_net(ctx, "x", "first");
    REQUIRE(net != NULL);
    CHECK(mica_onnx_write(net, scratch_path(&s, "a.onnx"), NULL) == MICA_ERR_STATE);
    mica_value x = mica_net_input(net, "more", MICA_F32, 2, (mica_index[]){2, 3});
    x = mica_net_op(net, "noise", "uniform", &x, 1, NULL);
    x = mica_net_op(net, "around", "pad", &x, 1, &(mica_pad_opts){.after = {0, 1}, .mode = MICA_PAD_WRAP});
    mica_net_output(net, "z", x);
    if (make(net, &(mica_compile_opts){.train = false})) {
        CHECK(mica_onnx_write(net, NULL, NULL) == MICA_ERR_ARGUMENT);
        CHECK(mica_onnx_write(net, scratch_path(&s, "a.onnx"), NULL) == MICA_ERR_ARGUMENT);
        CHECK_MSG(
            strcmp(mica_error(ctx),
                   "argument error: onnx_write: cannot be written as ONNX: \"noise\" (uniform: random), "
                   "\"around\" (pad: wraps around, for which opset 17 has no mode)") == 0,
            "%s", mica_error(ctx));
        CHECK(scratch_count(&s) == 0);
    }
    mica_net_destroy(net);
    scratch_remove(&s);
}

/* Each weight begins at a multiple of 64 of the file; what cannot be written leaves what was there. */
TEST(onnx_write_lays_weights_out)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    char path[300];
    snprintf(path, sizeof path, "%s", scratch_path(&s, "a.onnx"));
    mica_net *net = small_net(ctx, "x", "layer");
    REQUIRE(net != NULL);
    if (make(net, &(mica_compile_opts){.train = false}) && CHECK_OK(ctx, mica_onnx_write(net, path, NULL))) {
        size_t size = 0, found = 0;
        mica_tensor w;
        unsigned char *bytes = scratch_read(path, &size);
        REQUIRE(CHECK_OK(ctx, mica_net_tensor(net, &w, "layer.weight")));
        for (size_t at = 0; at + mica_tensor_bytes(&w) <= size; at += 64)
            found += memcmp(bytes + at, w.data, mica_tensor_bytes(&w)) == 0;
        CHECK_MSG(found == 1, "the weight is found %zu times", found);
        CHECK(mica_onnx_write(net, scratch_path(&s, "none/a.onnx"), NULL) != MICA_OK);
        CHECK(scratch_count(&s) == 1);
        free(bytes);
    }
    mica_net_destroy(net);
    scratch_remove(&s);
}

/* In the order that they became outputs, whatever made them first. */
TEST(onnx_write_keeps_the_order_of_outputs)
{
    static const char *const order[] = {"y", "late", "early"};
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    char path[300];
    snprintf(path, sizeof path, "%s", scratch_path(&s, "a.onnx"));
    mica_net *net;
    REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){2, 3});
    mica_value early = mica_net_op(net, "first", "relu", &x, 1, NULL);
    mica_value middle = mica_net_op(net, "second", "tanh", &early, 1, NULL);
    mica_value late = mica_net_op(net, "third", "abs", &middle, 1, NULL);
    mica_net_output(net, "y", middle);
    mica_net_output(net, "late", late);
    mica_net_output(net, "early", early);
    mica_onnx *model = NULL;
    if (make(net, &(mica_compile_opts){.train = false}) && CHECK_OK(ctx, mica_onnx_write(net, path, NULL)) &&
        CHECK_OK(ctx, mica_onnx_open(ctx, &model, path)) && CHECK(mica_onnx_outputs(model) == 3))
        for (int k = 0; k < 3; k++) {
            mica_onnx_value value;
            CHECK_OK(ctx, mica_onnx_output(model, &value, k));
            CHECK_MSG(strcmp(value.name, order[k]) == 0, "output %d is %s", k, value.name);
        }
    mica_onnx_close(model);
    mica_net_destroy(net);
    scratch_remove(&s);
}

/* Without functions: within rounding. */
TEST(onnx_write_plain)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    char path[300];
    snprintf(path, sizeof path, "%s", scratch_path(&s, "a.onnx"));
    mica_net *net = small_net(ctx, "x", "layer");
    REQUIRE(net != NULL);
    if (make(net, &(mica_compile_opts){.train = false}) &&
        CHECK_OK(ctx, mica_onnx_write(net, path, &(mica_onnx_write_opts){.plain = true}))) {
        size_t size = 0;
        unsigned char *bytes = scratch_read(path, &size);
        mica_onnx *model = NULL;
        if (CHECK_OK(ctx, mica_onnx_open(ctx, &model, path)))
            CHECK(mica_onnx_describe(model).nodes > 5);
        mica_onnx_close(model);
        free(bytes);
    }
    mica_net_destroy(net);
    scratch_remove(&s);
}

/* Casts of numbers that the type does not hold: ONNX has them wrap around, in Mica's own casts they do not. */
TEST(onnx_write_casts)
{
    static const mica_dtype from[] = {MICA_F32, MICA_F64, MICA_F16, MICA_I32,
                                      MICA_I64, MICA_I8,  MICA_U8,  MICA_BOOL};
    static const mica_dtype to[] = {MICA_I8,  MICA_U8,  MICA_I16,  MICA_U16,
                                    MICA_I32, MICA_I64, MICA_BOOL, MICA_F32};
    static const double numbers[] = {-3e9, -40000, -300, -100, -1.5, 0, 1, 77.5, 200, 300, 40000, 3e9, 1e10};
    enum { COUNT = sizeof numbers / sizeof numbers[0], FROM = 8, TO = 8 };
    mica_context *ctx = test_context(1);
    for (int i = 0; i < FROM * TO * 2; i++) {
        char name[64];
        mica_net *net;
        mica_tensor x;
        mica_copy_opts opts = {.cast = true, .dtype = to[i / FROM % TO], .wrap = i >= FROM * TO};
        REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
        mica_value in = mica_net_input(net, "x", from[i % FROM], 1, (mica_index[]){COUNT});
        mica_net_output(net, "y", mica_net_op(net, "cast", "copy", &in, 1, &opts));
        (void)snprintf(name, sizeof name, "cast_%s_%s_%d", mica_dtype_name(from[i % FROM]),
                       mica_dtype_name(opts.dtype), opts.wrap);
        if (make(net, &(mica_compile_opts){.train = false}) && CHECK_OK(ctx, mica_net_tensor(net, &x, "x"))) {
            for (mica_index k = 0; k < COUNT; k++)
                CHECK_OK(ctx, mica_set_at(ctx, &x, &k, numbers[k]));
            CHECK_MSG(round_trip(net, name), "%s: %s", name, mica_error(ctx));
            if (opts.dtype != MICA_I64) /* whose largest numbers f64 does not have */
                CHECK_MSG(round_trip_plain(net, name), "%s: %s", name, mica_error(ctx));
        }
        mica_net_destroy(net);
    }
}

/* Elements of 4 bits are two in a byte, an odd one has the last byte for itself. */
TEST(onnx_write_packs_small_elements)
{
    static const mica_dtype types[] = {MICA_I4, MICA_U4};
    enum { MOST = 8193 }; /* more than is written at a time */
    static int8_t numbers[MOST];
    static const int counts[] = {1, 4, 7, MOST};
    mica_context *ctx = test_context(1);
    for (int i = 0; i < 2 * 4; i++) {
        char name[64];
        mica_net *net;
        mica_tensor x, w;
        mica_index count = counts[i / 2];
        for (int k = 0; k < MOST; k++)
            numbers[k] = (int8_t)(k * 5 % 16 - (types[i % 2] == MICA_I4 ? 8 : 0));
        CHECK_OK(ctx, mica_tensor_init(ctx, &w, numbers, types[i % 2], 1, &count));
        REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
        mica_value ins[2] = {mica_net_input(net, "x", MICA_F32, 1, &count), mica_net_lent(net, "w", &w)};
        ins[1] = mica_net_op(net, "cast", "copy", &ins[1], 1,
                             &(mica_copy_opts){.cast = true, .dtype = MICA_F32});
        mica_net_output(net, "y", mica_net_op(net, "add", "add", ins, 2, NULL));
        (void)snprintf(name, sizeof name, "small_%s_%d", mica_dtype_name(types[i % 2]), counts[i / 2]);
        if (make(net, &(mica_compile_opts){.train = false}) && CHECK_OK(ctx, mica_net_tensor(net, &x, "x"))) {
            CHECK_OK(ctx, mica_fill(ctx, &x, 0.5));
            CHECK_MSG(round_trip(net, name), "%s: %s", name, mica_error(ctx));
        }
        mica_net_destroy(net);
    }
}

/* x plus weights of a type, then what a later opset writes in another way. */
static mica_net *typed_net(mica_context *ctx, mica_dtype dtype, void *numbers)
{
    mica_net *net;
    mica_tensor w;
    mica_index count = 4;
    if (!CHECK_OK(ctx, mica_tensor_init(ctx, &w, numbers, dtype, 1, &count)) ||
        !CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_value ins[2] = {mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){2, 3, count}),
                         mica_net_lent(net, "w", &w)};
    if (dtype != MICA_F32)
        ins[1] = mica_net_op(net, "cast", "copy", &ins[1], 1,
                             &(mica_copy_opts){.cast = true, .dtype = MICA_F32});
    mica_value y = mica_net_op(net, "add", "add", ins, 2, NULL);
    y = mica_net_rms_norm(net, y, NULL);
    y = mica_net_lstm(net, y, &(mica_net_recurrent_opts){.name = "lstm", .units = 3});
    y = mica_net_op(net, "unit", "l2_normalize", &y, 1, &(mica_l2_normalize_opts){.axis = 2});
    mica_net_output(net, "y",
                    mica_net_op(net, "mean", "mean", &y, 1, &(mica_reduction_opts){.axes = {1}, .count = 1}));
    return net;
}

/* A file says the versions of the standard that have the types in it. */
TEST(onnx_write_says_the_version_of_its_types)
{
    static const struct {
        mica_dtype dtype;
        int opset, ir;
    } cases[] = {{MICA_F32, 17, 8}, {MICA_BF16, 17, 8}, {MICA_F8E4M3FN, 19, 9}, {MICA_F8E5M2, 19, 9},
                 {MICA_I4, 21, 10}, {MICA_U4, 21, 10},  {MICA_F4E2M1, 23, 11}};
    mica_context *ctx = test_context(1);
    float numbers[4] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_net *net = typed_net(ctx, cases[i].dtype, numbers);
        scratch s = scratch_make();
        mica_onnx *model = NULL;
        mica_tensor x;
        if (make(net, &(mica_compile_opts){.train = false}) && CHECK_OK(ctx, mica_net_tensor(net, &x, "x")) &&
            CHECK_OK(ctx, mica_fill(ctx, &x, 0.5)) &&
            CHECK_OK(ctx, mica_onnx_write(net, scratch_path(&s, "a.onnx"), NULL)) &&
            CHECK_OK(ctx, mica_onnx_open(ctx, &model, scratch_path(&s, "a.onnx")))) {
            char name[64];
            mica_onnx_about about = mica_onnx_describe(model);
            CHECK_MSG(about.opset == cases[i].opset && about.ir_version == cases[i].ir, "%s: opset %d, IR %d",
                      mica_dtype_name(cases[i].dtype), about.opset, (int)about.ir_version);
            (void)snprintf(name, sizeof name, "typed_%s", mica_dtype_name(cases[i].dtype));
            CHECK_MSG(round_trip(net, name), "%s: %s", name, mica_error(ctx));
        }
        mica_onnx_close(model);
        mica_net_destroy(net);
        scratch_remove(&s);
    }
}
