/* Kernels of a cache of keys and values; compiled once per instruction set. */
#include "kernel/cache.h"
#include "kernel/block.h"
#include "kernel/cache_tile.h"
#include "kernel/convert.h"

extern const mica_block_kernels VF_SYMBOL(mica_block_kernels);
extern const mica_convert_kernels VF_SYMBOL(mica_convert_kernels);

/* ---- Writing ---- */

enum { Q8_BYTES = 34 }; /* of a block of q8_0: its scale, then its values */

static void write_key(const mica_cache_layout *layout, uint8_t *head, const float *key, size_t slot)
{
    size_t width = layout->width;
    uint16_t halves[BLOCK];
    uint8_t block[Q8_BYTES];
    for (size_t first = 0; first < width; first += BLOCK) {
        size_t n = width - first < BLOCK ? width - first : BLOCK;
        uint8_t *scale = head + width * PAGE + (first / BLOCK * PAGE + slot) * sizeof(uint16_t);
        if (layout->type == MICA_F16)
            VF_SYMBOL(mica_convert_kernels).run(halves, MICA_F16, key + first, MICA_F32, n);
        if (layout->type == MICA_Q8_0) {
            VF_SYMBOL(mica_block_kernels).encode[MICA_Q8_0](block, key + first, 1);
            memcpy(scale, block, sizeof(uint16_t));
        }
        for (size_t i = 0; i < n; i++) {
            size_t at = (first + i) * PAGE + slot;
            if (layout->type == MICA_F32)
                ((float *)(void *)head)[at] = key[first + i];
            else if (layout->type == MICA_F16)
                ((uint16_t *)(void *)head)[at] = halves[i];
            else
                head[at] = block[2 + i];
        }
    }
}

static void write_value(const mica_cache_layout *layout, uint8_t *head, const float *value, size_t slot)
{
    size_t width = layout->value_width, at = slot * layout->value_stride;
    if (layout->type != MICA_Q8_0) {
        uint8_t *to = head + at * mica_dtype_bytes(layout->type);
        VF_SYMBOL(mica_convert_kernels).run(to, layout->type, value, MICA_F32, width);
        return;
    }
    for (size_t first = 0; first < width; first += BLOCK) {
        uint8_t block[Q8_BYTES];
        VF_SYMBOL(mica_block_kernels).encode[MICA_Q8_0](block, value + first, 1);
        memcpy(head + width * PAGE + (first / BLOCK * PAGE + slot) * sizeof(uint16_t), block,
               sizeof(uint16_t));
        memcpy(head + at + first, block + 2, BLOCK);
    }
}

/* ---- A tile of queries ---- */

typedef struct tile {
    const mica_cache_queries *of;
    const tile_kernels *kernels;
    size_t query, rows;
    size_t begin[ROWS], end[ROWS]; /* the places that each query sees */
    size_t low, high;              /* the first that any of them sees, and the end of the last */
    float *q, *scores, *part, *total;
} tile;

/* to [width][rows] = the rows times scale. Up to a vector behind `to` may be written to. */
static void turn(float *to, const float *const *q, size_t rows, size_t width, float scale)
{
    size_t i = 0;
    for (; rows <= VF_LANES && 2 * rows > VF_LANES && i + VF_LANES <= width; i += VF_LANES) {
        vf square[VF_LANES];
        for (size_t r = 0; r < VF_LANES; r++)
            square[r] = r < rows ? vf_mul(vf_load(q[r] + i), vf_set1(scale)) : vf_zero();
        vf_transpose(square);
        for (size_t k = 0; k < VF_LANES; k++) /* what goes too far is overwritten by the next */
            vf_store(to + (i + k) * rows, square[k]);
    }
    for (; i < width; i++)
        for (size_t r = 0; r < rows; r++)
            to[i * rows + r] = q[r][i] * scale;
}

static void tile_start(tile *t, const mica_cache_queries *b, size_t query)
{
    const mica_cache_layout *layout = b->layout;
    size_t width = layout->width, record = mica_cache_record(layout);
    size_t rows = tile_height(b->rows * b->group - query);
    *t = (tile){
        .of = b, .kernels = tiles_of(layout->type) + rows, .query = query, .rows = rows, .low = SIZE_MAX};
    t->q = b->scratch;
    t->scores = t->q + MICA_CACHE_TILE * width;
    t->part = t->scores + MICA_CACHE_TILE * SEGMENT;
    t->total = t->part + MICA_CACHE_TILE * record;
    const float *q[ROWS];
    for (size_t r = 0; r < rows; r++) {
        size_t row = (query + r) / b->group, head = (query + r) % b->group;
        q[r] = b->q + (ptrdiff_t)row * b->q_row + head * width;
        ptrdiff_t begin, end;
        mica_cache_seen(b, row, &begin, &end);
        t->begin[r] = (size_t)begin;
        t->end[r] = (size_t)(end > begin ? end : begin);
        if (begin >= end)
            continue;
        t->low = t->begin[r] < t->low ? t->begin[r] : t->low;
        t->high = t->end[r] > t->high ? t->end[r] : t->high;
    }
    turn(t->q, q, rows, width, b->scale);
}

static const uint8_t *keys_at(const mica_cache_queries *b, size_t place)
{
    return b->keys + (size_t)b->table[(ptrdiff_t)(place / PAGE) * b->table_stride] * b->layout->key_page;
}

static size_t within(size_t x, size_t low, size_t high) { return x < low ? low : x > high ? high : x; }

/* Of one query: s [count] becomes e^(s - the largest), 0 outside of [begin, end). Returns the largest and the sum. */
static void softmax(float *s, size_t count, size_t begin, size_t end, float cap, float *result)
{
    for (size_t i = 0; cap != 0.0f && i < count; i += VF_LANES)
        vf_store(s + i, vf_mul(vf_set1(cap), vf_tanh(vf_div(vf_load(s + i), vf_set1(cap)))));
    for (size_t i = 0; i < begin; i++)
        s[i] = -INFINITY;
    for (size_t i = end; i < count; i++)
        s[i] = -INFINITY;
    /* A NaN that is lost here shows in the sum. PAGE is a multiple of two vectors. */
    vf most = vf_set1(-INFINITY), other = most, sum = vf_zero();
    for (size_t i = 0; i < count; i += 2 * VF_LANES) {
        most = vf_max(most, vf_load(s + i));
        other = vf_max(other, vf_load(s + i + VF_LANES));
    }
    result[0] = vf_hmax(vf_max(most, other));
    vf shift = vf_set1(result[0] == -INFINITY ? 0.0f : result[0]);
    for (size_t i = 0; i < count; i += VF_LANES) {
        vf e = vf_exp_down(vf_sub(vf_load(s + i), shift));
        vf_store(s + i, e);
        sum = vf_add(sum, e);
    }
    result[1] = vf_sum(sum);
}

/* The scores of all keys of the pages from `low` to `high`, in a segment that begins at `origin`. */
static void score_segment(const tile *t, size_t low, size_t high, size_t origin)
{
    const mica_cache_queries *b = t->of;
    for (size_t place = low, count; place < high; place += count * PAGE) {
        count = t->kernels->score_two != NULL && place + PAGE < high ? 2 : 1;
        key_pages pages;
        for (size_t k = 0; k < count; k++) {
            size_t at = place + k * PAGE, next = at + count * PAGE;
            pages.keys[k] = keys_at(b, at);
            pages.next[k] = keys_at(b, next < t->high ? next : at);
        }
        (count == 2 ? t->kernels->score_two : t->kernels->score)(t->scores + (place - origin), t->q, &pages,
                                                                 b->layout->width);
    }
}

/* Each query's record of a segment that one of them sees some of. */
static void tile_segment(const tile *t, size_t segment, float *records)
{
    const mica_cache_queries *b = t->of;
    const mica_cache_layout *layout = b->layout;
    size_t stride = mica_cache_record(layout), origin = segment * SEGMENT;
    size_t low = within(t->low, origin, origin + SEGMENT) / PAGE * PAGE;
    size_t high = within(t->high, origin, origin + SEGMENT), common[2] = {origin, origin + SEGMENT};
    score_segment(t, low, high, origin);
    high = (high + PAGE - 1) / PAGE * PAGE;
    for (size_t r = 0; r < t->rows; r++) {
        size_t begin = within(t->begin[r], low, high), end = within(t->end[r], low, high);
        float *record = records + r * stride;
        memset(record, 0, layout->value_stride * sizeof *record);
        softmax(t->scores + r * SEGMENT + (low - origin), high - low, begin - low, end - low, b->cap,
                record + layout->value_stride);
        common[0] = begin > common[0] ? begin : common[0];
        common[1] = end < common[1] ? end : common[1];
    }
    /* What a query does not see may be anything, even no number: it is not added, not even times 0. */
    value_range all = {b, common[0], common[1], origin, t->high};
    bool any = common[0] < common[1];
    values_fn *add_one = tiles_of(layout->type)[1].values;
    for (size_t r = 0; r < t->rows; r++) {
        size_t begin = within(t->begin[r], low, high), end = within(t->end[r], low, high);
        add_one(records + r * stride, stride, t->scores + r * SEGMENT,
                &(value_range){b, begin, any ? common[0] : end, origin, 0});
    }
    if (any)
        t->kernels->values(records, stride, t->scores, &all);
    for (size_t r = 0; r < t->rows && any; r++)
        add_one(records + r * stride, stride, t->scores + r * SEGMENT,
                &(value_range){b, common[1], within(t->end[r], low, high), origin, 0});
}

/* ---- Segments together ---- */

/* Adds to the record of all segments before that of the next. */
static void merge(const mica_cache_layout *layout, float *total, const float *next)
{
    size_t width = layout->value_stride;
    vf before = vf_set1(total[width]), after = vf_set1(next[width]), most = vf_max_nan(before, after);
    vf shift = vf_select(vf_eq(most, vf_set1(-INFINITY)), vf_zero(), most);
    vf keep = vf_exp_down(vf_sub(before, shift)), take = vf_exp_down(vf_sub(after, shift));
    float lane[2][VF_LANES];
    vf_store(lane[0], most);
    vf_store(lane[1], vf_fma(vf_set1(next[width + 1]), take, vf_mul(vf_set1(total[width + 1]), keep)));
    for (size_t i = 0; i < width; i += VF_LANES)
        vf_store(total + i, vf_fma(vf_load(next + i), take, vf_mul(vf_load(total + i), keep)));
    total[width] = lane[0][0];
    total[width + 1] = lane[1][0];
}

static void finish(const mica_cache_queries *b, size_t query, const float *total)
{
    size_t width = b->layout->value_width, i = 0;
    float *y = b->y + (ptrdiff_t)(query / b->group) * b->y_row + query % b->group * width;
    float sum = total[b->layout->value_stride + 1];
    vf scale = vf_set1(sum == 0.0f ? 0.0f : 1.0f / sum);
    for (; i + VF_LANES <= width; i += VF_LANES)
        vf_store(y + i, vf_mul(vf_load(total + i), scale));
    vf_store_tail(y + i, vf_mul(vf_load_tail(total + i, width - i), scale), width - i);
}

static void clear(const mica_cache_queries *b, size_t query)
{
    size_t width = b->layout->value_width;
    memset(b->y + (ptrdiff_t)(query / b->group) * b->y_row + query % b->group * width, 0,
           width * sizeof(float));
}

static void attend_tile(const tile *t)
{
    const mica_cache_queries *b = t->of;
    size_t stride = mica_cache_record(b->layout);
    for (size_t segment = t->low / SEGMENT; segment * SEGMENT < t->high; segment++) {
        bool first = segment == t->low / SEGMENT;
        tile_segment(t, segment, first ? t->total : t->part);
        for (size_t r = 0; r < t->rows && !first; r++) {
            float *total = t->total + r * stride, *part = t->part + r * stride;
            if (t->begin[r] / SEGMENT == segment)
                memcpy(total, part, stride * sizeof *part);
            else if (t->begin[r] / SEGMENT < segment && t->end[r] > segment * SEGMENT)
                merge(b->layout, total, part);
        }
    }
    for (size_t r = 0; r < t->rows; r++) {
        if (t->begin[r] < t->end[r])
            finish(b, t->query + r, t->total + r * stride);
        else
            clear(b, t->query + r);
    }
}

static void attend(const mica_cache_queries *b)
{
    tile t;
    for (size_t query = 0; query < b->rows * b->group; query += t.rows) {
        tile_start(&t, b, query);
        attend_tile(&t);
    }
}

static void attend_segment(const mica_cache_queries *b, size_t segment, float *records)
{
    tile t;
    for (size_t query = 0; query < b->rows * b->group; query += t.rows) {
        tile_start(&t, b, query);
        if (t.low < (segment + 1) * SEGMENT && t.high > segment * SEGMENT)
            tile_segment(&t, segment, records + query * mica_cache_record(b->layout));
    }
}

static void join(const mica_cache_queries *b, size_t first_segment, const float *records, size_t stride)
{
    size_t record = mica_cache_record(b->layout);
    float *total = b->scratch;
    for (size_t query = 0; query < b->rows * b->group; query++) {
        ptrdiff_t begin, end;
        mica_cache_seen(b, query / b->group, &begin, &end);
        if (begin >= end) {
            clear(b, query);
            continue;
        }
        size_t segment = (size_t)begin / SEGMENT;
        const float *at = records + query * record + (segment - first_segment) * stride;
        memcpy(total, at, record * sizeof *at);
        for (segment++; segment * SEGMENT < (size_t)end; segment++)
            merge(b->layout, total, at += stride);
        finish(b, query, total);
    }
}

const mica_cache_kernels VF_SYMBOL(mica_cache_kernels) = {.write_key = write_key,
                                                          .write_value = write_value,
                                                          .attend = attend,
                                                          .attend_segment = attend_segment,
                                                          .join = join};
