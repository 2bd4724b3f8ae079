/* Attention over a cache of keys and values.
 *
 * Rows of the call are written to the cache first. Then rows of one sequence at places one behind the other, a run, are
 * cut into items; a block of parallel work is an item with the heads that share a head of keys and values. Where there
 * are fewer blocks than threads, as when one text is generated, each segment of places is a block of its own. None of
 * this changes a bit: src/kernel/cache.h. */
#include <mica/ops/text.h>

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/contiguous.h"

_Static_assert(MICA_CACHE_PAGE == MICA_CACHE_PLACES, "kernels lay out the pages that the interface tells of");

#define PAGE      ((mica_index)MICA_CACHE_PAGE)
#define ITEM_ROWS ((size_t)32) /* most rows of an item */

/* ---- Layout ---- */

static bool layout_of(const mica_cached_attention_opts *opts, mica_cache_layout *layout)
{
    mica_index width = opts->width, value_width = opts->value_width != 0 ? opts->value_width : width;
    mica_index most = PTRDIFF_MAX / 1024 / (opts->heads > 0 ? opts->heads : 1);
    if (opts->heads < 1 || opts->kv_heads < 1 || opts->heads % opts->kv_heads != 0 || width < 1 ||
        value_width < 1 || width > most || value_width > most)
        return false;
    if (opts->type == MICA_Q8_0 && (width % 32 != 0 || value_width % 32 != 0))
        return false;
    if (opts->type != MICA_F32 && opts->type != MICA_F16 && opts->type != MICA_Q8_0)
        return false;
    *layout = (mica_cache_layout){.type = (mica_dtype)opts->type,
                                  .width = (size_t)width,
                                  .value_width = (size_t)value_width,
                                  .value_stride = mica_round_up((size_t)value_width, 16)};
    size_t each = opts->type == MICA_F32   ? 4 * MICA_CACHE_PAGE
                  : opts->type == MICA_F16 ? 2 * MICA_CACHE_PAGE
                                           : 34;
    layout->key_head = layout->width * each;
    layout->value_head = layout->value_stride * each;
    layout->key_page = layout->key_head * (size_t)opts->kv_heads;
    layout->value_page = layout->value_head * (size_t)opts->kv_heads;
    return true;
}

size_t mica_cache_page_bytes(const mica_cached_attention_opts *opts, bool values)
{
    mica_cache_layout layout;
    if (opts == NULL || !layout_of(opts, &layout))
        return 0;
    return values ? layout.value_page : layout.key_page;
}

/* ---- The call ---- */

/* Rows of a run. */
typedef struct item {
    int32_t row, rows;
    int32_t sequence, place;
    int32_t first, end; /* as in mica_cache_queries */
} item;

typedef struct attend_job {
    mica_context *ctx;
    const mica_cached_attention_opts *opts;
    mica_cache_layout layout;
    const mica_cache_kernels *kernels;
    const mica_tensor *y, *q, *k, *v; /* with contiguous rows */
    uint8_t *keys, *values;
    mica_tensor table, first, sequence, place;
    mica_index rows, sequences;
    size_t group;
    float scale;

    item *items; /* room for one per row */
    size_t item_count, item_rows;
    int32_t *last; /* both_ways: of each sequence, the end of its places in this call */
    float *scratch;
    size_t scratch_each; /* floats for a thread */

    float *records; /* [item][head of keys][segment][query of the item] */
    size_t segments, segment_floats;
} attend_job;

static int32_t at(const mica_tensor *t, mica_index i) { return ((const int32_t *)t->data)[i * t->stride[0]]; }

static const int32_t *pages_of(const attend_job *job, int32_t sequence)
{
    return (const int32_t *)job->table.data + sequence * job->table.stride[0];
}

static mica_cache_queries queries_of(const attend_job *job, const item *it, size_t kv_head, int thread)
{
    const mica_cache_layout *layout = &job->layout;
    size_t head = kv_head * job->group;
    return (mica_cache_queries){
        .layout = layout,
        .keys = job->keys + kv_head * layout->key_head,
        .values = job->values + kv_head * layout->value_head,
        .table = pages_of(job, it->sequence),
        .table_stride = job->table.stride[1],
        .rows = (size_t)it->rows,
        .group = job->group,
        .place = it->place,
        .first = it->first,
        .window = job->opts->window > 0 && job->opts->window < INT32_MAX ? job->opts->window : INT32_MAX,
        .end = it->end,
        .q = (const float *)job->q->data + it->row * job->q->stride[0] + (mica_index)(head * layout->width),
        .y = (float *)job->y->data + it->row * job->y->stride[0] + (mica_index)(head * layout->value_width),
        .q_row = job->q->stride[0],
        .y_row = job->y->stride[0],
        .scale = job->scale,
        .cap = job->opts->cap,
        .scratch = job->scratch + (size_t)thread * job->scratch_each};
}

/* ---- Checks ---- */

static mica_status check_options(mica_context *ctx, const char *op, const mica_cached_attention_opts *opts,
                                 mica_cache_layout *layout)
{
    if (opts != NULL && opts->window >= 0 && layout_of(opts, layout))
        return MICA_OK;
    if (opts == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the options are NULL", op);
    return mica_fail(
        ctx, MICA_ERR_ARGUMENT,
        "%s: %d heads that share %d, of width %td and %td, type %s, window %td; expected a divisor of the "
        "heads, widths of at least 1, f32, f16 or q8_0 (widths that 32 divides), no negative window",
        op, opts->heads, opts->kv_heads, opts->width, opts->value_width,
        mica_dtype_name((mica_dtype)opts->type), opts->window);
}

static mica_status check_cache(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                               mica_index pages, size_t bytes, const mica_tensor *keys)
{
    mica_index dims[] = {pages, (mica_index)bytes};
    MICA_TRY(mica_check_shape(ctx, op, name, t, 2, dims, "keys", keys));
    if (!mica_tensor_contiguous(t) || (uintptr_t)t->data % sizeof(float) != 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "%s: %s %s: expected a contiguous tensor at a multiple of 4 bytes", op, name,
                         MICA_SHAPE(t));
    return MICA_OK;
}

static mica_status check_shapes(mica_context *ctx, const char *op, const mica_tensor *y,
                                const mica_cached_attention_args *a, const mica_cached_attention_opts *opts,
                                const mica_cache_layout *layout)
{
    MICA_TRY(mica_check_rank(ctx, op, "q", a->q, 2, 2));
    MICA_TRY(mica_check_rank(ctx, op, "keys", a->keys, 2, 2));
    MICA_TRY(mica_check_rank(ctx, op, "table", a->table, 2, 2));
    mica_index rows = a->q->dim[0], width = (mica_index)layout->width,
               value_width = (mica_index)layout->value_width;
    const struct {
        const char *name;
        const mica_tensor *tensor;
        int rank;
        mica_index dim[2];
        const char *because_name;
        const mica_tensor *because;
    } want[] = {{"q", a->q, 2, {rows, opts->heads * width}, "k", a->k},
                {"k", a->k, 2, {rows, opts->kv_heads * width}, "q", a->q},
                {"v", a->v, 2, {rows, opts->kv_heads * value_width}, "q", a->q},
                {"y", y, 2, {rows, opts->heads * value_width}, "q", a->q},
                {"first", a->first, 1, {a->table->dim[0]}, "table", a->table},
                {"sequence", a->sequence, 1, {rows}, "q", a->q},
                {"place", a->place, 1, {rows}, "q", a->q}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        MICA_TRY(mica_check_shape(ctx, op, want[i].name, want[i].tensor, want[i].rank, want[i].dim,
                                  want[i].because_name, want[i].because));
    double records = (double)a->table->dim[1] * opts->heads * (double)mica_cache_record(layout);
    if (rows >= INT32_MAX || a->table->dim[1] > INT32_MAX / PAGE - 1 ||
        records > (double)(PTRDIFF_MAX / 4096))
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: q is %s, table is %s: more rows or places than can be counted", op,
                         MICA_SHAPE(a->q), MICA_SHAPE(a->table));
    MICA_TRY(check_cache(ctx, op, "keys", a->keys, a->keys->dim[0], layout->key_page, a->keys));
    return check_cache(ctx, op, "values", a->values, a->keys->dim[0], layout->value_page, a->keys);
}

/* ---- Items ---- */

static mica_status check_row(const attend_job *job, const char *op, mica_index row)
{
    int32_t s = at(&job->sequence, row), place = at(&job->place, row);
    mica_index places = job->table.dim[1] * PAGE;
    if (s < -1 || s >= job->sequences)
        return mica_fail(job->ctx, MICA_ERR_INDEX, "%s: sequence[%td] is %d; expected -1 to %td", op, row,
                         (int)s, job->sequences - 1);
    if (s >= 0 && (place < 0 || place >= places))
        return mica_fail(job->ctx, MICA_ERR_INDEX, "%s: place[%td] is %d; expected 0 to %td, as table is %s",
                         op, row, (int)place, places - 1, MICA_SHAPE(&job->table));
    if (s >= 0 && at(&job->first, s) < 0)
        return mica_fail(job->ctx, MICA_ERR_INDEX, "%s: first[%d] is %d; expected 0 or more", op, (int)s,
                         (int)at(&job->first, s));
    return MICA_OK;
}

/* That the pages which hold these places exist. */
static mica_status check_pages(const attend_job *job, const char *op, int32_t sequence, ptrdiff_t begin,
                               ptrdiff_t end, mica_index pages)
{
    const int32_t *table = pages_of(job, sequence);
    for (mica_index p = begin / PAGE; p * PAGE < end; p++) {
        int32_t page = table[p * job->table.stride[1]];
        if (page < 0 || page >= pages)
            return mica_fail(job->ctx, MICA_ERR_INDEX, "%s: table[%d, %td] is %d; expected 0 to %td", op,
                             (int)sequence, p, (int)page, pages - 1);
    }
    return MICA_OK;
}

static mica_status check_item(const attend_job *job, const char *op, const item *it, mica_index pages)
{
    mica_cache_queries b = queries_of(job, it, 0, 0);
    ptrdiff_t begin, end;
    mica_cache_seen(&b, 0, &begin, &end);
    mica_cache_seen(&b, (size_t)it->rows - 1, &(ptrdiff_t){0}, &end);
    MICA_TRY(check_pages(job, op, it->sequence, begin, end, pages));
    return check_pages(job, op, it->sequence, it->place, it->place + it->rows, pages);
}

/* Cuts the rows into items. Nothing is written before all of them are right. */
static mica_status make_items(attend_job *job, const char *op, mica_index pages)
{
    for (mica_index row = 0; row < job->rows; row++)
        MICA_TRY(check_row(job, op, row));
    for (mica_index s = 0; s < job->sequences && job->opts->both_ways; s++)
        job->last[s] = 0;
    for (mica_index row = 0; row < job->rows && job->opts->both_ways; row++) {
        int32_t s = at(&job->sequence, row), end = at(&job->place, row) + 1;
        if (s >= 0 && end > job->last[s])
            job->last[s] = end;
    }
    for (mica_index row = 0; row < job->rows; row++) {
        int32_t s = at(&job->sequence, row), place = at(&job->place, row);
        item *it = job->item_count > 0 ? &job->items[job->item_count - 1] : NULL;
        if (s < 0)
            continue;
        if (it != NULL && it->sequence == s && it->row + it->rows == row && it->place + it->rows == place &&
            (size_t)it->rows < job->item_rows) {
            it->rows++;
            continue;
        }
        job->items[job->item_count++] = (item){.row = (int32_t)row,
                                               .rows = 1,
                                               .sequence = s,
                                               .place = place,
                                               .first = at(&job->first, s),
                                               .end = job->opts->both_ways ? job->last[s] : 0};
    }
    for (size_t i = 0; i < job->item_count; i++)
        MICA_TRY(check_item(job, op, &job->items[i], pages));
    return MICA_OK;
}

/* ---- Work ---- */

/* Rows in order, so that of two at one place the later one stays. */
static void write_head(void *work, size_t kv_head, int thread)
{
    (void)thread;
    const attend_job *job = work;
    const mica_cache_layout *layout = &job->layout;
    const float *key = (const float *)job->k->data + kv_head * layout->width;
    const float *value = (const float *)job->v->data + kv_head * layout->value_width;
    for (mica_index row = 0; row < job->rows; row++) {
        int32_t s = at(&job->sequence, row), place = at(&job->place, row);
        if (s < 0)
            continue;
        size_t page = (size_t)pages_of(job, s)[place / PAGE * job->table.stride[1]],
               slot = (size_t)(place % PAGE);
        job->kernels->write_key(layout, job->keys + page * layout->key_page + kv_head * layout->key_head,
                                key + row * job->k->stride[0], slot);
        job->kernels->write_value(layout,
                                  job->values + page * layout->value_page + kv_head * layout->value_head,
                                  value + row * job->v->stride[0], slot);
    }
}

static void attend_block(void *work, size_t block, int thread)
{
    const attend_job *job = work;
    size_t heads = (size_t)job->opts->kv_heads;
    mica_cache_queries b = queries_of(job, &job->items[block / heads], block % heads, thread);
    job->kernels->attend(&b);
}

static void attend_segment(void *work, size_t block, int thread)
{
    const attend_job *job = work;
    size_t heads = (size_t)job->opts->kv_heads, both = block / job->segments;
    mica_cache_queries b = queries_of(job, &job->items[both / heads], both % heads, thread);
    job->kernels->attend_segment(&b, block % job->segments, job->records + block * job->segment_floats);
}

static void join_block(void *work, size_t block, int thread)
{
    const attend_job *job = work;
    size_t heads = (size_t)job->opts->kv_heads;
    mica_cache_queries b = queries_of(job, &job->items[block / heads], block % heads, thread);
    job->kernels->join(&b, 0, job->records + block * job->segments * job->segment_floats,
                       job->segment_floats);
}

static void clear_left_out(const attend_job *job)
{
    for (mica_index row = 0; row < job->rows; row++)
        if (at(&job->sequence, row) < 0)
            memset((float *)job->y->data + row * job->y->stride[0], 0,
                   (size_t)job->y->dim[1] * sizeof(float));
}

/* Multiply-adds of all items, and the segments that the longest of them sees. */
static double sums_of(const attend_job *job, size_t *segments)
{
    double sums = 0.0;
    *segments = 0;
    for (size_t i = 0; i < job->item_count; i++) {
        const item *it = &job->items[i];
        mica_cache_queries b = queries_of(job, it, 0, 0);
        ptrdiff_t begin, end;
        mica_cache_seen(&b, (size_t)it->rows - 1, &begin, &end);
        if (end > begin)
            sums += (double)it->rows * (double)(end - begin);
        *segments = mica_most(*segments, mica_div_up((size_t)end, MICA_CACHE_SEGMENT));
    }
    return sums * job->opts->heads * (double)(job->layout.width + job->layout.value_width);
}

/* Rows so few that segments become blocks of their own. */
static size_t few_rows(const mica_context *ctx, size_t kv_heads)
{
    return ctx->threads > 1 ? (2 * (size_t)ctx->threads - 1) / kv_heads : 0;
}

static void run(attend_job *job)
{
    size_t heads = (size_t)job->opts->kv_heads, segments, blocks = job->item_count * heads;
    double sums = sums_of(job, &segments);
    clear_left_out(job);
    mica_parallel_sums(job->ctx, 4.0 * (double)job->rows * (double)job->k->dim[1], heads, write_head, job);
    if ((size_t)job->rows > few_rows(job->ctx, heads) || segments < 2) {
        mica_parallel_sums(job->ctx, sums, blocks, attend_block, job);
        return;
    }
    job->segments = segments;
    mica_parallel_sums(job->ctx, sums, blocks * segments, attend_segment, job);
    mica_parallel_sums(job->ctx, 0.0, blocks, join_block, job);
}

/* ---- The operation ---- */

static size_t items_bytes(mica_index rows) { return mica_align_up((size_t)rows * sizeof(item)); }

/* Items | ends of sequences | scratch of the threads | records */
static size_t scratch_bytes(const attend_job *job, const mica_context *ctx, mica_index pages)
{
    size_t few = mica_least((size_t)job->rows, few_rows(ctx, (size_t)job->opts->kv_heads));
    size_t segments = mica_div_up((size_t)(pages * PAGE), MICA_CACHE_SEGMENT);
    size_t records = few * (size_t)job->opts->heads * segments * mica_cache_record(&job->layout) *
                     sizeof(float);
    return items_bytes(job->rows) + mica_align_up((size_t)job->sequences * sizeof *job->last) +
           (size_t)ctx->threads * job->scratch_each * sizeof(float) + records;
}

static void divide_scratch(attend_job *job, const mica_context *ctx, char *scratch)
{
    job->items = (void *)scratch;
    scratch += items_bytes(job->rows);
    job->last = (void *)scratch;
    scratch += mica_align_up((size_t)job->sequences * sizeof *job->last);
    job->scratch = (void *)scratch;
    job->records = job->scratch + (size_t)ctx->threads * job->scratch_each;
}

static attend_job job_of(mica_context *ctx, const mica_cached_attention_args *a,
                         const mica_cached_attention_opts *opts, const mica_cache_layout *layout)
{
    attend_job job = {.ctx = ctx,
                      .opts = opts,
                      .layout = *layout,
                      .kernels = MICA_FAMILY(ctx->kernels, cache),
                      .keys = a->keys->data,
                      .values = a->values->data,
                      .table = *a->table,
                      .first = *a->first,
                      .sequence = *a->sequence,
                      .place = *a->place,
                      .rows = a->q->dim[0],
                      .sequences = a->table->dim[0],
                      .group = (size_t)(opts->heads / opts->kv_heads)};
    job.scale = opts->scale != 0.0f ? opts->scale : 1.0f / sqrtf((float)layout->width);
    job.scratch_each = mica_round_up(mica_cache_floats(layout), MICA_ALIGN / sizeof(float));
    job.segment_floats = job.group * mica_cache_record(layout);
    size_t share = mica_div_up((size_t)job.rows * (size_t)opts->kv_heads, 4 * (size_t)ctx->threads);
    job.item_rows = (size_t)job.rows > few_rows(ctx, (size_t)opts->kv_heads)
                        ? mica_least(ITEM_ROWS, mica_most(4, share))
                        : 1; /* so that records of an item are those of one row */
    return job;
}

mica_status mica_cached_attention(mica_context *ctx, const mica_tensor *y,
                                  const mica_cached_attention_args *args,
                                  const mica_cached_attention_opts *opts)
{
    const char *op = "cached_attention";
    if (args == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the arguments are NULL", op);
    const mica_cached_attention_args *a = args;
    uint64_t bytes = MICA_DTYPE_BIT(MICA_U8), integers = MICA_DTYPE_BIT(MICA_I32);
    mica_arg list[] = {{"y", y, MICA_ARG_OUT, 0},
                       {"q", a->q, 0, 0},
                       {"k", a->k, 0, 0},
                       {"v", a->v, 0, 0},
                       {"keys", a->keys, MICA_ARG_OUT, bytes},
                       {"values", a->values, MICA_ARG_OUT, bytes},
                       {"table", a->table, 0, integers},
                       {"first", a->first, 0, integers},
                       {"sequence", a->sequence, 0, integers},
                       {"place", a->place, 0, integers}};
    mica_cache_layout layout;
    MICA_TRY(check_options(ctx, op, opts, &layout));
    MICA_TRY(mica_check_args(ctx, op, list, 10));
    MICA_TRY(check_shapes(ctx, op, y, a, opts, &layout));
    mica_index pages = a->table->dim[1];
    attend_job job = job_of(ctx, a, opts, &layout);
    mica_count_flops(ctx, 2.0 * (double)job.rows * opts->heads * (double)(layout.width + layout.value_width) *
                              (double)(pages * PAGE));
    mica_contiguous dense;
    void *scratch;
    mica_tensor dense_copies[4];
    mica_contiguous_plan_rows(&dense, dense_copies, list, 4);
    MICA_START(ctx, op, dense.bytes + scratch_bytes(&job, ctx, pages), &scratch);
    divide_scratch(&job, ctx, mica_contiguous_load(&dense, scratch));
    job.y = mica_contiguous_tensor(&dense, 0);
    job.q = mica_contiguous_tensor(&dense, 1);
    job.k = mica_contiguous_tensor(&dense, 2);
    job.v = mica_contiguous_tensor(&dense, 3);
    MICA_TRY(make_items(&job, op, a->keys->dim[0]));
    run(&job);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
