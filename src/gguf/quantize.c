/* A GGUF file with its tensors in other types: piece by piece, through the writer. */
#include <string.h>

#include <mica/ops/copy.h>

#include "base/size.h"
#include "gguf/cursor.h"
#include "gguf/mix.h"
#include "io/quote.h"
#include "tensor/tensor.h"

static const char op[] = "gguf_quantize";

#define QUANTIZATION_VERSION 2 /* of the block formats, as others count it */

typedef struct quantizing quantizing;

/* One tensor of the new file. */
typedef struct one {
    quantizing *all;
    size_t number;
    char name[MICA_GGUF_LONGEST_NAME + 1];
} one;

struct quantizing {
    const mica_gguf *in;
    const mica_gguf_quantize_opts *opts;
    one *tensors;
    mica_gguf_new_tensor *made;
};

static mica_status report(const one *t, mica_context *ctx, size_t done)
{
    const quantizing *q = t->all;
    if (q->opts->report == NULL)
        return MICA_OK;
    const mica_tensor *from = &q->in->tensors[t->number].tensor;
    mica_gguf_quantizing at = {.number = t->number,
                               .tensors = q->in->tensor_count,
                               .name = t->name,
                               .from = *from,
                               .to = q->made[t->number].tensor,
                               .values = mica_tensor_count(from),
                               .values_done = done};
    return q->opts->report(q->opts->user, ctx, &at);
}

/* ---- Pieces ---- */

/* Bytes of an f16 in each block that is infinite or NaN if a value did not fit; the second may be the first. */
static void scales_of(mica_dtype dtype, size_t at[2])
{
    static const uint8_t places[MICA_DTYPE_COUNT][2] = {
        [MICA_Q4_1] = {0, 2}, [MICA_Q5_1] = {0, 2}, [MICA_Q2_K] = {80, 82},   [MICA_Q3_K] = {108, 108},
        [MICA_Q4_K] = {0, 2}, [MICA_Q5_K] = {0, 2}, [MICA_Q6_K] = {208, 208},
    };
    at[0] = places[dtype][0];
    at[1] = places[dtype][1];
}

/* The row of a piece that has a value which is not finite, or too large; -1: none. */
static mica_index spoilt_row(const mica_tensor *piece)
{
    size_t at[2], size = mica_dtype_bytes(piece->dtype);
    if (piece->dtype != MICA_F16 && !mica_in_blocks(piece->dtype))
        return -1;
    scales_of(piece->dtype, at);
    size_t row = (size_t)piece->dim[1] / mica_dtype_block(piece->dtype), count = row * (size_t)piece->dim[0];
    const uint8_t *block = piece->data;
    for (size_t i = 0; i < count; i++, block += size)
        if ((block[at[0] + 1] & 0x7c) == 0x7c || (block[at[1] + 1] & 0x7c) == 0x7c)
            return (mica_index)(i / row);
    return -1;
}

static mica_status make_piece(void *user, mica_context *ctx, const mica_tensor *piece, mica_index row)
{
    const one *t = user;
    const mica_tensor *from = &t->all->in->tensors[t->number].tensor;
    mica_tensor rows;
    mica_index width = piece->dim[1];
    if (row == 0)
        MICA_TRY(report(t, ctx, 0));
    char *first = (char *)from->data + mica_offset_bytes(from->dtype, row * width);
    MICA_TRY(mica_tensor_init(ctx, &rows, first, from->dtype, 2, piece->dim));
    MICA_TRY(mica_copy(ctx, piece, &rows));
    mica_index spoilt = from->dtype == piece->dtype ? -1 : spoilt_row(piece);
    if (spoilt >= 0)
        return mica_fail(ctx, MICA_ERR_FORMAT,
                         "%s: %s: tensor %s, row %td: a value is not finite, or too large for %s", op,
                         MICA_QUOTE(t->all->in->name), t->name, row + spoilt, mica_dtype_name(piece->dtype));
    mica_map_forget(&t->all->in->map, first, mica_tensor_bytes(&rows));
    return report(t, ctx, (size_t)(row + piece->dim[0]) * (size_t)width);
}

/* ---- Files ---- */

static mica_status write_file(const quantizing *q, mica_context *ctx, const char *path)
{
    const mica_gguf_value none = {.kind = MICA_GGUF_KIND_COUNT};
    const mica_gguf_new_setting settings[] = {
        {"general.quantization_version", {.kind = MICA_GGUF_U32, .u = QUANTIZATION_VERSION}},
        {"general.file_type", {.kind = MICA_GGUF_U32, .u = mica_mix_number(q->opts->mix)}},
        {"split.no", none},
        {"split.count", none},
        {"split.tensors.count", none},
    };
    const mica_gguf_write_opts opts = {
        .copy = q->in, .settings = settings, .setting_count = sizeof settings / sizeof settings[0]};
    return mica_gguf_write(ctx, path, q->made, q->in->tensor_count, &opts);
}

static mica_status set_tensors(quantizing *q, mica_context *ctx, const mica_dtype *to)
{
    for (size_t i = 0; i < q->in->tensor_count; i++) {
        const mica_gguf_entry *entry = &q->in->tensors[i];
        one *t = &q->tensors[i];
        *t = (one){.all = q, .number = i};
        memcpy(t->name, entry->name.bytes, mica_least(entry->name.length, MICA_GGUF_LONGEST_NAME));
        q->made[i] = (mica_gguf_new_tensor){.name = t->name, .make = make_piece, .user = t};
        MICA_TRY(
            mica_tensor_init(ctx, &q->made[i].tensor, NULL, to[i], entry->tensor.rank, entry->tensor.dim));
    }
    return MICA_OK;
}

static mica_status report_all(const quantizing *q, mica_context *ctx)
{
    for (size_t i = 0; i < q->in->tensor_count; i++)
        MICA_TRY(report(&q->tensors[i], ctx, 0));
    return MICA_OK;
}

static mica_status check(mica_context *ctx, const mica_gguf *in, const mica_gguf_quantize_opts *opts)
{
    mica_gguf_value parts;
    int64_t count;
    if (in == NULL || opts == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, in == NULL ? "in" : "opts");
    if ((unsigned)opts->mix >= MICA_MIX_COUNT)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: mix is %d", op, (int)opts->mix);
    if (mica_gguf_find(in, &parts, "split.count") && mica_gguf_integer_at(&parts, &count, 0) && count > 1)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: %s is one of %lld parts of a model, expected all of it",
                         op, MICA_QUOTE(in->name), (long long)count);
    return MICA_OK;
}

mica_status mica_gguf_quantize(mica_context *ctx, const mica_gguf *in, const char *path,
                               const mica_gguf_quantize_opts *opts)
{
    MICA_TRY(check(ctx, in, opts));
    /* One block for the three lists: no count overflows it that the reader has accepted. */
    size_t count = in->tensor_count, made = count * sizeof(mica_gguf_new_tensor),
           tensors = count * sizeof(one), bytes = made + tensors + count * sizeof(mica_dtype);
    char *block = NULL;
    if (bytes > 0) {
        block = mica_allocate(ctx, bytes);
        if (block == NULL)
            return ctx->status;
    }
    quantizing q = {in, opts, (one *)(void *)(block + made), (mica_gguf_new_tensor *)(void *)block};
    mica_dtype *to = (mica_dtype *)(void *)(block + made + tensors);
    mica_status status = mica_mix_choose(ctx, to, in, opts->mix, opts->pure);
    if (status == MICA_OK)
        status = set_tensors(&q, ctx, to);
    if (status == MICA_OK)
        status = path != NULL ? write_file(&q, ctx, path) : report_all(&q, ctx);
    mica_release(ctx, block, bytes);
    return status;
}
