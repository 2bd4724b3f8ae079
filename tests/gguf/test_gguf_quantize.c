/* Quantizing whole files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/scratch.h"
#include "oom.h"
#include "test.h"

enum { ROWS = 40, ROW = 512, VALUES = ROWS * ROW };

static float weights[VALUES], norm[ROW];

static void fill(uint64_t seed)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < VALUES; i++)
        weights[i] = (float)(0.05 * test_normal(&r));
    for (int i = 0; i < ROW; i++)
        norm[i] = 1.0f + (float)(0.1 * test_normal(&r));
}

/* A model of one layer: a matrix, its norm, an output. */
static mica_status write_model(mica_context *ctx, const char *path)
{
    const mica_gguf_new_tensor tensors[] = {
        {.name = "output.weight", .tensor = mica_2d(weights, ROWS, ROW)},
        {.name = "blk.0.ffn_up.weight", .tensor = mica_2d(weights, ROWS, ROW)},
        {.name = "blk.0.ffn_norm.weight", .tensor = mica_1d(norm, ROW)}};
    const mica_gguf_new_setting settings[] = {
        {"general.architecture", {.kind = MICA_GGUF_STRING, .text = {"llama", 5}}},
        {"general.file_type", {.kind = MICA_GGUF_U32, .u = 0}},
        {"llama.block_count", {.kind = MICA_GGUF_U32, .u = 1}},
        {"split.count", {.kind = MICA_GGUF_U32, .u = 1}}};
    return mica_gguf_write(ctx, path, tensors, 3,
                           &(mica_gguf_write_opts){.settings = settings, .setting_count = 4});
}

static mica_status quantize(mica_context *ctx, const char *from, const char *to, mica_gguf_quantize_opts opts)
{
    mica_gguf *file;
    mica_status status = mica_gguf_open(ctx, &file, from);
    if (status == MICA_OK)
        status = mica_gguf_quantize(ctx, file, to, &opts);
    mica_gguf_close(file);
    return status;
}

/* Squared error of a tensor, over the squares of its values. */
static double error_of(mica_context *ctx, const mica_tensor *t, const float *wanted)
{
    static float got[VALUES];
    mica_tensor values = mica_1d(got, (mica_index)mica_tensor_count(t)), flat;
    CHECK_OK(ctx, mica_view_reshape(ctx, &flat, t, 1, values.dim));
    CHECK_OK(ctx, mica_copy(ctx, &values, &flat));
    double error = 0.0, total = 0.0;
    for (mica_index i = 0; i < values.dim[0]; i++) {
        error += pow((double)got[i] - (double)wanted[i], 2);
        total += pow((double)wanted[i], 2);
    }
    return error / total;
}

TEST(gguf_quantize_writes_every_mix)
{
    mica_context *ctx = test_context(2);
    scratch s = scratch_make();
    char in[300];
    strcpy(in, scratch_path(&s, "in.gguf"));
    const char *out = scratch_path(&s, "out.gguf");
    fill(31);
    CHECK_OK(ctx, write_model(ctx, in));
    for (mica_gguf_mix mix = 0; mix < MICA_MIX_COUNT; mix++) {
        mica_gguf *file;
        mica_tensor up, output, kept;
        mica_gguf_value type, version, parts;
        CHECK_OK(ctx, quantize(ctx, in, out, (mica_gguf_quantize_opts){.mix = mix}));
        if (!CHECK_OK(ctx, mica_gguf_open(ctx, &file, out)))
            continue;
        CHECK(mica_gguf_tensors(file) == 3 && mica_gguf_settings(file) == 4);
        CHECK(mica_gguf_find(file, &type, "general.file_type") && type.kind == MICA_GGUF_U32);
        CHECK(mica_gguf_find(file, &version, "general.quantization_version") && version.u == 2);
        CHECK(!mica_gguf_find(file, &parts, "split.count"));
        if (CHECK(mica_gguf_find_tensor(file, &up, "blk.0.ffn_up.weight") &&
                  mica_gguf_find_tensor(file, &output, "output.weight") &&
                  mica_gguf_find_tensor(file, &kept, "blk.0.ffn_norm.weight"))) {
            double error = error_of(ctx, &up, weights), bits = mica_dtype_block(up.dtype) > 1 ? 3.0 : 8.0;
            CHECK_MSG(error < 0.1 && (mix > MICA_MIX_BF16 || error < pow(0.5, bits)), "%s: %g",
                      mica_gguf_mix_name(mix), error);
            CHECK(error_of(ctx, &output, weights) <= error + 1e-6);
            CHECK(kept.dtype == MICA_F32 && memcmp(kept.data, norm, sizeof norm) == 0);
        }
        mica_gguf_close(file);
    }
    scratch_remove(&s);
}

TEST(gguf_quantize_same_bytes_for_any_number_of_threads)
{
    scratch s = scratch_make();
    char in[300];
    strcpy(in, scratch_path(&s, "in.gguf"));
    const char *out = scratch_path(&s, "out.gguf");
    fill(32);
    CHECK_OK(test_context(1), write_model(test_context(1), in));
    size_t first_size = 0, size;
    unsigned char *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        mica_context *ctx = test_context(threads);
        CHECK_OK(ctx, quantize(ctx, in, out, (mica_gguf_quantize_opts){.mix = MICA_MIX_Q4_K_M}));
        unsigned char *made = scratch_read(out, &size);
        if (first == NULL)
            first = made, first_size = size, made = NULL;
        else
            CHECK(size == first_size && memcmp(made, first, size) == 0);
        free(made);
    }
    /* And onto itself: the file that is read is the one that is replaced. */
    mica_context *ctx = test_context(1);
    CHECK_OK(ctx, quantize(ctx, in, in, (mica_gguf_quantize_opts){.mix = MICA_MIX_Q4_K_M}));
    unsigned char *made = scratch_read(in, &size);
    CHECK(size == first_size && memcmp(made, first, size) == 0);
    free(made);
    free(first);
    scratch_remove(&s);
}

static mica_status stop_at_second(void *user, mica_context *ctx, const mica_gguf_quantizing *at)
{
    (void)ctx;
    ++*(int *)user;
    return at->number == 1 ? MICA_ERR_STATE : MICA_OK;
}

TEST(gguf_quantize_leaves_the_old_file_if_it_fails)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    char in[300];
    strcpy(in, scratch_path(&s, "in.gguf"));
    const char *out = scratch_path(&s, "out.gguf");
    int calls = 0;
    fill(33);
    scratch_write(out, "old", 3);
    CHECK_OK(ctx, write_model(ctx, in));
    CHECK(quantize(ctx, in, out,
                   (mica_gguf_quantize_opts){
                       .mix = MICA_MIX_Q8_0, .report = stop_at_second, .user = &calls}) == MICA_ERR_STATE);
    CHECK(calls == 3 && scratch_count(&s) == 2);
    const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (mica_gguf_mix mix = 0; mix < MICA_MIX_COUNT; mix++) {
        for (int i = 0; i < 4; i++) {
            fill(33);
            weights[17 * ROW + 100] = bad[i];
            CHECK_OK(ctx, write_model(ctx, in));
            if (mix == MICA_MIX_F32 || mix == MICA_MIX_BF16)
                continue;
            mica_status status = quantize(ctx, in, out, (mica_gguf_quantize_opts){.mix = mix});
            CHECK_MSG(status == MICA_ERR_FORMAT && strstr(mica_error(ctx), "output.weight, row 17") != NULL,
                      "%s, %g: %s", mica_gguf_mix_name(mix), (double)bad[i], mica_error(ctx));
        }
    }
    size_t size;
    unsigned char *old = scratch_read(out, &size);
    CHECK(size == 3 && memcmp(old, "old", 3) == 0 && scratch_count(&s) == 2);
    free(old);
    scratch_remove(&s);
}

TEST(gguf_quantize_refuses_nonsense)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *in = scratch_path(&s, "in.gguf");
    mica_gguf *file;
    fill(34);
    CHECK_OK(ctx, write_model(ctx, in));
    CHECK_OK(ctx, mica_gguf_open(ctx, &file, in));
    CHECK_ERROR(ctx, mica_gguf_quantize(ctx, file, NULL, NULL), MICA_ERR_ARGUMENT,
                "argument error: gguf_quantize: opts is NULL");
    CHECK_ERROR(ctx, mica_gguf_quantize(ctx, NULL, NULL, &(mica_gguf_quantize_opts){0}), MICA_ERR_ARGUMENT,
                "argument error: gguf_quantize: in is NULL");
    CHECK_ERROR(ctx, mica_gguf_quantize(ctx, file, NULL, &(mica_gguf_quantize_opts){.mix = MICA_MIX_COUNT}),
                MICA_ERR_ARGUMENT, "argument error: gguf_quantize: mix is 19");
    const mica_gguf_new_setting parts = {"split.count", {.kind = MICA_GGUF_U16, .u = 3}};
    const mica_gguf_new_tensor one = {.name = "a.weight", .tensor = mica_1d(norm, ROW)};
    mica_gguf_close(file);
    CHECK_OK(ctx, mica_gguf_write(ctx, in, &one, 1,
                                  &(mica_gguf_write_opts){.settings = &parts, .setting_count = 1}));
    CHECK(quantize(ctx, in, in, (mica_gguf_quantize_opts){.mix = MICA_MIX_Q8_0}) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "is one of 3 parts of a model") != NULL);
    CHECK(strcmp(mica_gguf_mix_name(MICA_MIX_COUNT), "invalid") == 0);
    scratch_remove(&s);
}

static mica_status quantize_with(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    scratch *s = argument;
    char in[300];
    strcpy(in, scratch_path(s, "in.gguf"));
    status = quantize(ctx, in, scratch_path(s, "out.gguf"), (mica_gguf_quantize_opts){.mix = MICA_MIX_Q6_K});
    mica_context_destroy(ctx);
    return status;
}

TEST(gguf_quantize_out_of_memory)
{
    scratch s = scratch_make();
    fill(35);
    CHECK_OK(test_context(1), write_model(test_context(1), scratch_path(&s, "in.gguf")));
    CHECK(test_oom(quantize_with, &s) > 3);
    scratch_remove(&s);
}
