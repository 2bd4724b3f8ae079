/* Elements and slices by index, and what is found along an axis. */
#include <string.h>

#include "base/sort.h"
#include "onnx/moves.h"
#include "onnx/state.h"

/* ---- Gather ---- */

static void gather(mica_onnx_importing *n)
{
    int axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", 0), n->in[0]);
    mica_onnx_ref x = n->in[0], index = n->in[1];
    int64_t at;
    if (mica_onnx_is_known(n, index) && mica_onnx_shape(n, index)->rank == 0) { /* one place: a slice */
        if (mica_onnx_known_ints(n, index, "indices", &at, 1) != 1)
            return;
        mica_index size = mica_onnx_shape(n, x)->dim[axis];
        if (at < -size || at >= size) {
            (void)mica_onnx_bad(n, "index %lld of an axis of size %td", (long long)at, size);
            return;
        }
        x = mica_onnx_slice(n, x, axis, at, at == -1 ? INT64_MAX : at + 1, 1);
        mica_onnx_give(n, 0, mica_onnx_drop_axes(n, x, 1u << axis));
        return;
    }
    index = mica_onnx_indices(n, index, x, &(mica_wrap_opts){.axis = axis});
    mica_onnx_give(n, 0, mica_onnx_op2(n, "take", x, index, &(mica_axis_opts){.axis = axis}));
}

static void gather_elements(mica_onnx_importing *n)
{
    int axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", 0), n->in[0]);
    mica_onnx_ref index = mica_onnx_indices(n, n->in[1], n->in[0], &(mica_wrap_opts){.axis = axis});
    mica_onnx_give(n, 0, mica_onnx_op2(n, "gather", n->in[0], index, &(mica_axis_opts){.axis = axis}));
}

static void gather_nd(mica_onnx_importing *n)
{
    struct {
        int batch;
    } opts = {(int)mica_onnx_int(n, "batch_dims", 0)};
    mica_onnx_ref index = mica_onnx_indices(n, n->in[1], n->in[0],
                                            &(mica_wrap_opts){.tuples = true, .batch = opts.batch});
    mica_onnx_give(n, 0, mica_onnx_op2(n, "gather_nd", n->in[0], index, &opts));
}

/* ---- Scatter ---- */

static bool scatter_kind(mica_onnx_importing *n, mica_scatter_kind *kind)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = mica_onnx_text(n, "reduction", "none");
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0) {
            *kind = (mica_scatter_kind)i;
            return true;
        }
    return mica_onnx_bad(n, "reduction \"%s\"", name) != 0;
}

static void scatter_by(mica_onnx_importing *n, const char *op, mica_scatter_opts *opts,
                       const mica_wrap_opts *wrap)
{
    mica_onnx_ref x = n->in[0], src = n->in[2];
    if (!scatter_kind(n, &opts->kind))
        return;
    if (opts->kind != MICA_SCATTER_SET && mica_onnx_is_half(mica_onnx_shape(n, x)->dtype)) {
        x = mica_onnx_cast(n, x, MICA_F32);
        src = mica_onnx_cast(n, src, MICA_F32);
    }
    mica_onnx_ref index = mica_onnx_indices(n, n->in[1], x, wrap);
    mica_onnx_give_like(n, 0, mica_onnx_op(n, op, (mica_onnx_ref[]){x, src, index}, 3, opts), n->in[0]);
}

static void scatter_elements(mica_onnx_importing *n)
{
    mica_scatter_opts opts = {.axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", 0), n->in[0])};
    scatter_by(n, "scatter", &opts, &(mica_wrap_opts){.axis = opts.axis});
}

static void scatter_nd(mica_onnx_importing *n)
{
    scatter_by(n, "scatter_nd", &(mica_scatter_opts){0}, &(mica_wrap_opts){.tuples = true});
}

static void tensor_scatter(mica_onnx_importing *n)
{
    mica_tensor_scatter_opts opts = {.axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", -2), n->in[0]),
                                     .circular = strcmp(mica_onnx_text(n, "mode", "linear"), "circular") ==
                                                 0};
    mica_onnx_give(n, 0, mica_onnx_op(n, "tensor_scatter", n->in, n->ins, &opts));
}

/* ---- Along an axis ---- */

static void one_hot(mica_onnx_importing *n)
{
    struct {
        int axis;
        mica_index depth;
    } opts = {(int)mica_onnx_int(n, "axis", -1), 0};
    double depth = mica_onnx_known_number(n, n->in[1], "depth");
    if (!(depth >= 0 && depth <= INT32_MAX)) {
        (void)mica_onnx_bad(n, "a depth of %g", depth);
        return;
    }
    opts.depth = (mica_index)depth;
    mica_onnx_ref index = mica_onnx_cast(n, n->in[0], MICA_I64);
    mica_onnx_give(n, 0, mica_onnx_op2(n, "one_hot", index, n->in[2], &opts));
}

static void top_k(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[0]);
    mica_top_k_opts opts = {.axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", -1), n->in[0]),
                            .smallest = mica_onnx_int(n, "largest", 1) == 0};
    int64_t k = mica_onnx_int(n, "k", 0);
    if (n->ins > 1 && mica_onnx_known_ints(n, n->in[1], "k", &k, 1) != 1)
        return;
    opts.k = (mica_index)k;
    if (k == 0) {
        mica_tensor none = *x;
        none.dim[opts.axis] = 0;
        mica_onnx_give(n, 0, mica_onnx_zeros(n, none.dtype, none.rank, none.dim));
        mica_onnx_give(n, 1, mica_onnx_zeros(n, MICA_I64, none.rank, none.dim));
        return;
    }
    mica_onnx_ref values = mica_onnx_op1(n, "top_k", n->in[0], &opts);
    mica_onnx_give(n, 0, values);
    mica_onnx_give(n, 1, mica_onnx_result(n, values, 1));
}

/* argmax is f32's; of other types, and of the last of equal elements, top_k finds the place. */
static void arg(mica_onnx_importing *n, bool largest)
{
    mica_onnx_ref x = n->in[0];
    int axis = mica_onnx_axis(n, mica_onnx_int(n, "axis", 0), x);
    bool keep = mica_onnx_int(n, "keepdims", 1) != 0, last = mica_onnx_int(n, "select_last_index", 0) != 0;
    if (mica_onnx_shape(n, x)->dtype == MICA_F32 && !last) {
        mica_arg_opts opts = {.axis = axis, .keep = keep, .wide = true};
        mica_onnx_give(n, 0, mica_onnx_op1(n, largest ? "argmax" : "argmin", x, &opts));
        return;
    }
    mica_top_k_opts opts = {.axis = axis, .k = 1, .smallest = !largest, .last = last};
    mica_onnx_ref place = mica_onnx_result(n, mica_onnx_op1(n, "top_k", x, &opts), 1);
    mica_onnx_give(n, 0, keep ? place : mica_onnx_drop_axes(n, place, 1u << axis));
}

static void arg_max(mica_onnx_importing *n) { arg(n, true); }
static void arg_min(mica_onnx_importing *n) { arg(n, false); }

static void cum_sum(mica_onnx_importing *n)
{
    int64_t axis;
    if (mica_onnx_known_ints(n, n->in[1], "axis", &axis, 1) != 1)
        return;
    mica_cumsum_opts opts = {.axis = mica_onnx_axis(n, axis, n->in[0]),
                             .exclusive = mica_onnx_int(n, "exclusive", 0) != 0,
                             .reverse = mica_onnx_int(n, "reverse", 0) != 0};
    mica_onnx_ref x = n->in[0];
    if (mica_onnx_is_half(mica_onnx_shape(n, x)->dtype))
        x = mica_onnx_cast(n, x, MICA_F32);
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, "cumsum", x, &opts), n->in[0]);
}

static void trilu(mica_onnx_importing *n)
{
    int64_t k = 0;
    mica_trilu_opts opts = {.lower = mica_onnx_int(n, "upper", 1) == 0};
    if (n->ins > 1 && n->in[1] != 0 && mica_onnx_known_ints(n, n->in[1], "k", &k, 1) != 1)
        return;
    opts.k = (mica_index)k;
    mica_onnx_give(n, 0, mica_onnx_op1(n, "trilu", n->in[0], &opts));
}

static void reverse_sequence(mica_onnx_importing *n)
{
    mica_reverse_sequence_opts opts = {(int)mica_onnx_int(n, "time_axis", 0),
                                       (int)mica_onnx_int(n, "batch_axis", 1)};
    mica_onnx_give(n, 0, mica_onnx_op2(n, "reverse_sequence", n->in[0], n->in[1], &opts));
}

/* ---- What has a shape that depends on elements: these must be known ---- */

static bool is_zero(const mica_tensor *t, size_t i)
{
    static const unsigned char zeros[8];
    size_t bytes = mica_dtype_bytes(t->dtype);
    const char *element = (const char *)t->data + i * bytes;
    if (t->dtype == MICA_F32)
        return *(const float *)(const void *)element == 0.0f;
    if (t->dtype == MICA_F64)
        return *(const double *)(const void *)element == 0.0;
    if (mica_onnx_is_half(t->dtype))
        return (*(const uint16_t *)(const void *)element & 0x7fff) == 0;
    return memcmp(element, zeros, bytes) == 0;
}

static void compress(mica_onnx_importing *n)
{
    const mica_tensor *known = mica_onnx_known(n, n->in[1], "condition");
    const mica_onnx_attribute *along = mica_onnx_find(n, "axis");
    mica_onnx_ref x = n->in[0];
    if (known == NULL)
        return;
    const mica_tensor condition = *known;
    if (along == NULL)
        x = mica_onnx_reshape(n, x, 1, (mica_index[]){-1});
    int axis = along != NULL ? mica_onnx_axis(n, along->i, x) : 0;
    size_t most = mica_tensor_count(&condition);
    int64_t *places = mica_onnx_room(n, most, sizeof *places);
    int count = 0;
    for (size_t i = 0; places != NULL && i < most; i++)
        if (!is_zero(&condition, i))
            places[count++] = (int64_t)i;
    if (places == NULL)
        return;
    mica_onnx_ref index = mica_onnx_vector(n, places, count);
    mica_onnx_give(n, 0, mica_onnx_op2(n, "take", x, index, &(mica_axis_opts){.axis = axis}));
}

static void non_zero(mica_onnx_importing *n)
{
    const mica_tensor *x = mica_onnx_known(n, n->in[0], "what NonZero searches");
    if (x == NULL)
        return;
    const mica_tensor t = *x;
    mica_index dims[2] = {t.rank, 0};
    size_t all = mica_tensor_count(&t);
    for (size_t i = 0; i < all; i++)
        dims[1] += !is_zero(&t, i);
    void *data;
    mica_onnx_ref ref = mica_onnx_fresh(n, MICA_I64, 2, dims, &data);
    mica_index at = 0;
    for (size_t i = 0; data != NULL && i < all; i++) {
        if (is_zero(&t, i))
            continue;
        size_t rest = i;
        for (int k = t.rank - 1; k >= 0; k--) {
            ((int64_t *)data)[k * dims[1] + at] = (int64_t)(rest % (size_t)t.dim[k]);
            rest /= (size_t)t.dim[k];
        }
        at++;
    }
    mica_onnx_give(n, 0, ref);
}

/* ---- Unique ---- */

/* A slice of x along the axis: its elements as f64 or i64 keys, in the order of the slice. */
typedef struct slice_key {
    const double *elements;
    size_t count;
    int64_t place;  /* in x */
    int64_t number; /* of the unique slice that it is */
} slice_key;

static int compare_elements(const slice_key *a, const slice_key *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->elements[i] != b->elements[i])
            return a->elements[i] < b->elements[i] ? -1 : 1;
    return 0;
}

static int by_elements(const void *a, const void *b)
{
    const slice_key *x = a, *y = b;
    int order = compare_elements(x, y);
    return order != 0 ? order : x->place < y->place ? -1 : x->place > y->place;
}

static int by_place(const void *a, const void *b)
{
    const slice_key *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

typedef struct unique_job {
    slice_key *keys; /* sorted by what they hold */
    mica_index count, found;
    int64_t *first; /* of each unique slice: its first place */
    int64_t *counts;
    int64_t *inverse; /* of each slice of x: which unique one it is */
} unique_job;

/* Numbers the unique slices: in their order, or in that of their first places. */
static void number_slices(unique_job *job, bool sorted)
{
    slice_key *keys = job->keys;
    for (mica_index i = 0; i < job->count; i++) {
        bool fresh = i == 0 || compare_elements(&keys[i], &keys[i - 1]) != 0;
        if (fresh)
            job->first[job->found++] = keys[i].place;
        keys[i].number = job->found - 1;
    }
    for (mica_index i = 0; i < job->count; i++)
        job->inverse[keys[i].place] = keys[i].number;
    if (!sorted) {
        mica_sort(keys, (size_t)job->count, sizeof *keys, by_place);
        mica_index seen = 0;
        for (mica_index i = 0; i < job->found; i++)
            job->counts[i] = -1; /* for now: the new numbers */
        for (mica_index i = 0; i < job->count; i++) {
            int64_t old = keys[i].number;
            if (job->counts[old] < 0) {
                job->counts[old] = seen;
                job->first[seen++] = keys[i].place;
            }
            job->inverse[i] = job->counts[old];
        }
    }
    for (mica_index i = 0; i < job->found; i++)
        job->counts[i] = 0;
    for (mica_index i = 0; i < job->count; i++)
        job->counts[job->inverse[i]]++;
}

/* The slices of t along an axis, as keys; t is contiguous f64. */
static bool find_unique(mica_onnx_importing *n, const mica_tensor *t, int axis, bool sorted, unique_job *job)
{
    size_t all = mica_tensor_count(t), inner = 1;
    job->count = t->dim[axis];
    for (int k = axis + 1; k < t->rank; k++)
        inner *= (size_t)t->dim[k];
    size_t count = (size_t)job->count, each = count > 0 ? all / count : 0;
    double *sorted_by_slice = mica_onnx_room(n, all, sizeof *sorted_by_slice);
    job->keys = mica_onnx_room(n, count, sizeof *job->keys);
    job->first = mica_onnx_room(n, count, sizeof *job->first);
    job->counts = mica_onnx_room(n, count, sizeof *job->counts);
    job->inverse = mica_onnx_room(n, count, sizeof *job->inverse);
    if (n->failed)
        return false;
    for (size_t s = 0; s < count; s++) {
        double *to = sorted_by_slice + s * each;
        for (size_t i = 0; i < each; i++)
            to[i] = ((const double *)t->data)[(i / inner * count + s) * inner + i % inner];
        job->keys[s] = (slice_key){to, each, (int64_t)s, 0};
    }
    mica_sort(job->keys, count, sizeof *job->keys, by_elements);
    number_slices(job, sorted);
    return true;
}

static void unique(mica_onnx_importing *n)
{
    const mica_onnx_attribute *along = mica_onnx_find(n, "axis");
    mica_onnx_ref x = n->in[0];
    if (mica_onnx_known(n, x, "what Unique searches") == NULL)
        return;
    if (!mica_onnx_is_known(n, x)) {
        (void)mica_onnx_unsupported(n, "unique elements of weights that are learned");
        return;
    }
    mica_dtype dtype = mica_onnx_shape(n, x)->dtype;
    if (along == NULL)
        x = mica_onnx_reshape(n, x, 1, (mica_index[]){-1});
    int axis = along != NULL ? mica_onnx_axis(n, along->i, x) : 0;
    if (dtype == MICA_I64 || dtype == MICA_U64) {
        const mica_tensor *t = mica_onnx_shape(n, x);
        size_t all = mica_tensor_count(t);
        for (size_t i = 0; i < all; i++)
            if (((const int64_t *)t->data)[i] > (int64_t)1 << 53 ||
                ((const int64_t *)t->data)[i] < -((int64_t)1 << 53)) {
                (void)mica_onnx_unsupported(n, "integers beyond 2^53");
                return;
            }
    }
    unique_job job = {0};
    mica_onnx_ref wide = mica_onnx_cast(n, x, MICA_F64);
    const mica_tensor t = *mica_onnx_shape(n, wide);
    if (n->failed || !find_unique(n, &t, axis, mica_onnx_int(n, "sorted", 1) != 0, &job))
        return;
    mica_onnx_ref first = mica_onnx_vector(n, job.first, (int)job.found);
    mica_onnx_give(n, 0, mica_onnx_op2(n, "take", x, first, &(mica_axis_opts){.axis = axis}));
    mica_onnx_give(n, 1, first);
    mica_onnx_give(n, 2, mica_onnx_vector(n, job.inverse, (int)job.count));
    mica_onnx_give(n, 3, mica_onnx_vector(n, job.counts, (int)job.found));
}

const mica_onnx_operator mica_onnx_index_operators[] = {{"Gather", 1, gather},
                                                        {"GatherElements", 11, gather_elements},
                                                        {"GatherND", 11, gather_nd},
                                                        {"Scatter", 9, scatter_elements},
                                                        {"ScatterElements", 11, scatter_elements},
                                                        {"ScatterND", 11, scatter_nd},
                                                        {"TensorScatter", 24, tensor_scatter},
                                                        {"OneHot", 9, one_hot},
                                                        {"TopK", 1, top_k},
                                                        {"ArgMax", 1, arg_max},
                                                        {"ArgMin", 1, arg_min},
                                                        {"CumSum", 11, cum_sum},
                                                        {"Trilu", 14, trilu},
                                                        {"ReverseSequence", 10, reverse_sequence},
                                                        {"Compress", 9, compress},
                                                        {"NonZero", 9, non_zero},
                                                        {"Unique", 11, unique},
                                                        {NULL, 0, NULL}};
