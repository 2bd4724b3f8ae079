/* Making tensors, asking about them, and what makes one sound. */
#include "tensor/tensor.h"
#include "base/format.h"

/* a * b, or -1 where that is more than a mica_index holds. Both are at least 0. */
static mica_index multiply(mica_index a, mica_index b)
{
    mica_index product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

/* Elements, counting sizes of 0 as 1: a slice of an empty tensor must not overflow either. -1: too many. */
static mica_index count_nonzero(int rank, const mica_index *dims)
{
    mica_index count = 1;
    for (int k = 0; k < rank && count >= 0; k++)
        count = multiply(count, dims[k] > 0 ? dims[k] : 1);
    return count;
}

/* How far apart the first and the last element in memory lie; -1 if that is too far. */
static mica_index span_of(const mica_tensor *t)
{
    mica_index span = 0;
    for (int k = 0; k < t->rank; k++) {
        if (t->dim[k] < 2)
            continue;
        mica_index stride = t->stride[k];
        mica_index reach = stride == PTRDIFF_MIN ? -1
                                                 : multiply(stride < 0 ? -stride : stride, t->dim[k] - 1);
        if (reach < 0 || span > PTRDIFF_MAX - 1 - reach)
            return -1;
        span += reach;
    }
    return span;
}

/* What keeps the blocks of a dtype from lying whole along the last axis. */
static const char *block_flaw(const mica_tensor *t, char text[MICA_SHAPE_TEXT])
{
    mica_index block = (mica_index)mica_dtype_kinds[t->dtype].block;
#if defined(MICA_SMALL)
    bool rare = t->dtype == MICA_U16 || (t->dtype >= MICA_I4 && t->dtype <= MICA_U2);
    if (block > 1 || rare || mica_is_small_float(t->dtype)) {
        mica_format(text, MICA_SHAPE_TEXT, "has dtype %s, which a small build leaves out",
                    mica_dtype_name(t->dtype));
        return text;
    }
#endif
    if (block == 1)
        return NULL;
    int last = t->rank - 1;
    mica_index size = last < 0 ? 1 : t->dim[last];
    if (size % block != 0) {
        mica_format(text, MICA_SHAPE_TEXT,
                    "has %td values along its last axis, which splits the blocks of %td of %s", size, block,
                    mica_dtype_name(t->dtype));
        return text;
    }
    for (int k = 0; k <= last && mica_tensor_count(t) > 0; k++) {
        if (t->dim[k] < 2 || (k == last ? t->stride[k] == 1 : t->stride[k] % block == 0))
            continue;
        mica_format(text, MICA_SHAPE_TEXT,
                    "has stride %td in dimension %d, which splits the blocks of %td of %s", t->stride[k], k,
                    block, mica_dtype_name(t->dtype));
        return text;
    }
    return NULL;
}

/* Bytes that `count` values take, rounded up to whole blocks; -1 if they are too many. */
static mica_index bytes_of(mica_dtype dtype, mica_index count)
{
    mica_index block = (mica_index)mica_dtype_kinds[dtype].block;
    if (block > 1 && count >= 0) /* every call checks its tensors: no division for plain types */
        count = count / block + (count % block != 0);
    return multiply(count, (mica_index)mica_dtype_kinds[dtype].bytes);
}

const char *mica_tensor_flaw(const mica_tensor *t, char text[MICA_SHAPE_TEXT])
{
    if (t == NULL)
        return "is NULL";
    if (t->rank < 0 || t->rank > MICA_MAX_RANK) {
        mica_format(text, MICA_SHAPE_TEXT, "has rank %d, expected 0 to %d", t->rank, MICA_MAX_RANK);
        return text;
    }
    if (mica_dtype_bytes(t->dtype) == 0) {
        mica_format(text, MICA_SHAPE_TEXT, "has unknown dtype %d", (int)t->dtype);
        return text;
    }
    for (int k = 0; k < t->rank; k++) {
        if (t->dim[k] < 0) {
            mica_format(text, MICA_SHAPE_TEXT, "has size %td in dimension %d", t->dim[k], k);
            return text;
        }
    }
    if (bytes_of(t->dtype, count_nonzero(t->rank, t->dim)) < 0)
        return "has more elements than memory can hold";
    mica_index span = span_of(t);
    if (span < 0 || bytes_of(t->dtype, span + 1) < 0)
        return "has strides that exceed the address space";
    return block_flaw(t, text);
}

mica_status mica_tensor_check(mica_context *ctx, const char *op, const char *name, const mica_tensor *t)
{
    char text[MICA_SHAPE_TEXT];
    const char *flaw = mica_tensor_flaw(t, text);
    return flaw == NULL ? MICA_OK : mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s %s", op, name, flaw);
}

void mica_tensor_set_strides(mica_tensor *t)
{
    mica_index stride = 1;
    for (int k = t->rank - 1; k >= 0; k--) {
        t->stride[k] = stride;
        if (t->dim[k] > 0) { /* wraps where the tensor is unsound, which every operation finds out */
            stride = (mica_index)((size_t)stride * (size_t)t->dim[k]);
        }
    }
}

void mica_tensor_set_channels_last(mica_tensor *t)
{
    mica_tensor_set_strides(t);
    mica_index channels = t->dim[1] > 0 ? t->dim[1] : 1;
    for (int k = 2; k < t->rank; k++)
        t->stride[k] = (mica_index)((size_t)t->stride[k] * (size_t)channels);
    t->stride[1] = 1;
}

bool mica_channels_last(const mica_tensor *t)
{
    return t->rank >= 3 && t->dim[1] > 1 && t->stride[1] == 1 && t->stride[t->rank - 1] >= t->dim[1];
}

mica_status mica_tensor_init(mica_context *ctx, mica_tensor *out, void *data, mica_dtype dtype, int rank,
                             const mica_index *dims)
{
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "tensor_init: out is NULL");
    if (dims == NULL && rank > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "tensor_init: dims is NULL");
    mica_tensor t = {.data = data, .dtype = dtype, .rank = rank};
    if (rank >= 0 && rank <= MICA_MAX_RANK) {
        for (int k = 0; k < rank; k++)
            t.dim[k] = dims[k];
        mica_tensor_set_strides(&t);
    }
    char text[MICA_SHAPE_TEXT];
    const char *flaw = mica_tensor_flaw(&t, text);
    if (flaw != NULL) {
        bool shown = rank >= 0 && rank <= MICA_MAX_RANK;
        return mica_fail(ctx, mica_dtype_bytes(dtype) == 0 ? MICA_ERR_DTYPE : MICA_ERR_SHAPE,
                         "tensor_init: the tensor%s%s %s", shown ? " " : "",
                         shown ? mica_shape_text_of(rank, dims).text : "", flaw);
    }
    *out = t;
    return MICA_OK;
}

static mica_tensor make_f32(float *data, int rank, const mica_index *dims)
{
    mica_tensor t = {.data = data, .dtype = MICA_F32, .rank = rank};
    for (int k = 0; k < rank; k++)
        t.dim[k] = dims[k];
    mica_tensor_set_strides(&t);
    return t;
}

mica_tensor mica_0d(float *data) { return make_f32(data, 0, NULL); }

mica_tensor mica_1d(float *data, mica_index d0) { return make_f32(data, 1, &d0); }

mica_tensor mica_2d(float *data, mica_index d0, mica_index d1)
{
    return make_f32(data, 2, (const mica_index[]){d0, d1});
}

mica_tensor mica_3d(float *data, mica_index d0, mica_index d1, mica_index d2)
{
    return make_f32(data, 3, (const mica_index[]){d0, d1, d2});
}

mica_tensor mica_4d(float *data, mica_index d0, mica_index d1, mica_index d2, mica_index d3)
{
    return make_f32(data, 4, (const mica_index[]){d0, d1, d2, d3});
}

mica_tensor mica_tensor_like(const mica_tensor *like, void *data)
{
    mica_tensor t = *like;
    t.data = data;
    if (t.rank >= 0 && t.rank <= MICA_MAX_RANK)
        mica_tensor_set_strides(&t);
    return t;
}

size_t mica_tensor_count(const mica_tensor *t)
{
    size_t count = 1;
    for (int k = 0; k < t->rank; k++)
        count *= t->dim[k] > 0 ? (size_t)t->dim[k] : 0;
    return count;
}

size_t mica_tensor_bytes(const mica_tensor *t)
{
    size_t block = mica_dtype_block(t->dtype);
    return block == 0 ? 0 : mica_tensor_count(t) / block * mica_dtype_bytes(t->dtype);
}

bool mica_tensor_contiguous(const mica_tensor *t)
{
    mica_index stride = 1;
    bool dense = true;
    for (int k = t->rank - 1; k >= 0; k--) {
        if (t->dim[k] == 0)
            return true;
        if (t->dim[k] > 1 && t->stride[k] != stride)
            dense = false;
        stride *= t->dim[k];
    }
    return dense;
}

bool mica_tensor_same_shape(const mica_tensor *a, const mica_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (int k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return true;
}
