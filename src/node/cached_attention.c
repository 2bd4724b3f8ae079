/* Attention over a cache of keys and values, which are kept from step to step. No gradients. */
#include "node/check.h"

enum { Q, K, V, KEYS, VALUES, TABLE, FIRST, SEQUENCE, PLACE, INS };

static mica_status expect(mica_infer *i, int in, mica_dtype dtype, int rank, mica_index rows,
                          mica_index columns)
{
    const mica_tensor *t = i->in[in];
    if (t->dtype == dtype && t->rank == rank && t->dim[0] == rows && (rank < 2 || t->dim[1] == columns))
        return MICA_OK;
    char got[128], want[64];
    (void)mica_tensor_print_shape(got, sizeof got, t);
    mica_tensor shape = {.rank = rank, .dim = {rows, columns}};
    (void)mica_tensor_print_shape(want, sizeof want, &shape);
    return mica_infer_fail(i, MICA_ERR_SHAPE, "expected %s %s %s, got %s %s", i->op->names[in],
                           mica_dtype_name(dtype), want, mica_dtype_name(t->dtype), got);
}

static mica_status infer(mica_infer *i)
{
    const mica_cached_attention_opts *opts = i->opts;
    size_t key_bytes = mica_cache_page_bytes(opts, false), value_bytes = mica_cache_page_bytes(opts, true);
    if (key_bytes == 0 || opts->window < 0)
        return mica_infer_fail(
            i, MICA_ERR_ARGUMENT,
            "%d heads that share %d, of width %td and %td: expected a divisor of the heads, widths "
            "of at least 1 (for q8_0 multiples of 32), type f32, f16 or q8_0, and no negative window",
            opts->heads, opts->kv_heads, opts->width, opts->value_width);
    mica_index value_width = opts->value_width != 0 ? opts->value_width : opts->width;
    if (i->in[Q]->rank != 2 || i->in[KEYS]->rank != 2 || i->in[TABLE]->rank != 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected q [T, heads * D], keys [pages, bytes of a page] and table "
                               "[sequences, pages of a sequence]");
    mica_index rows = i->in[Q]->dim[0], pages = i->in[KEYS]->dim[0], sequences = i->in[TABLE]->dim[0];
    MICA_TRY(expect(i, Q, MICA_F32, 2, rows, opts->heads * opts->width));
    MICA_TRY(expect(i, K, MICA_F32, 2, rows, opts->kv_heads * opts->width));
    MICA_TRY(expect(i, V, MICA_F32, 2, rows, opts->kv_heads * value_width));
    MICA_TRY(expect(i, KEYS, MICA_U8, 2, pages, (mica_index)key_bytes));
    MICA_TRY(expect(i, VALUES, MICA_U8, 2, pages, (mica_index)value_bytes));
    MICA_TRY(expect(i, TABLE, MICA_I32, 2, sequences, i->in[TABLE]->dim[1]));
    MICA_TRY(expect(i, FIRST, MICA_I32, 1, sequences, 0));
    MICA_TRY(expect(i, SEQUENCE, MICA_I32, 1, rows, 0));
    MICA_TRY(expect(i, PLACE, MICA_I32, 1, rows, 0));
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){rows, opts->heads * value_width});
}

static mica_status run(const mica_call *c)
{
    mica_cached_attention_args args = {.q = c->in[Q],
                                       .k = c->in[K],
                                       .v = c->in[V],
                                       .keys = c->in[KEYS],
                                       .values = c->in[VALUES],
                                       .table = c->in[TABLE],
                                       .first = c->in[FIRST],
                                       .sequence = c->in[SEQUENCE],
                                       .place = c->in[PLACE]};
    return mica_cached_attention(c->ctx, c->out[0], &args, c->opts);
}

/* Rows see one another through the cache. */
static bool mixes(const mica_infer *i)
{
    (void)i;
    return true;
}

static void sample_bytes(mica_op_sample *s, int in, mica_index pages, size_t bytes)
{
    mica_op_sample_shape(s, in, 2, (mica_index[]){pages, (mica_index)bytes});
    s->in[in].dtype = MICA_U8;
    s->low[in] = 0.0;
    s->high[in] = 1.0;
}

static void sample(mica_op_sample *s)
{
    static const int types[] = {MICA_F32, MICA_F16, MICA_Q8_0};
    mica_cached_attention_opts *opts = s->opts;
    mica_index rows = mica_op_sample_int(s, 1, 5), pages = mica_op_sample_int(s, 1, 3), sequences = 2;
    opts->type = types[mica_op_sample_int(s, 0, 2)];
    opts->kv_heads = (int)mica_op_sample_int(s, 1, 2);
    opts->heads = opts->kv_heads * (int)mica_op_sample_int(s, 1, 3);
    opts->width = opts->type == MICA_Q8_0 ? 32 : mica_op_sample_int(s, 1, 9);
    opts->window = mica_sample_chance(s) ? 5 : 0;
    opts->cap = mica_sample_chance(s) ? 2.0f : 0.0f;
    opts->both_ways = mica_sample_chance(s);
    mica_op_sample_shape(s, Q, 2, (mica_index[]){rows, opts->heads * opts->width});
    mica_op_sample_shape(s, K, 2, (mica_index[]){rows, opts->kv_heads * opts->width});
    mica_op_sample_shape(s, V, 2, (mica_index[]){rows, opts->kv_heads * opts->width});
    sample_bytes(s, KEYS, pages, mica_cache_page_bytes(opts, false));
    sample_bytes(s, VALUES, pages, mica_cache_page_bytes(opts, true));
    mica_sample_indices(s, TABLE, 2, (mica_index[]){sequences, 2}, pages);
    mica_sample_indices(s, FIRST, 1, &sequences, 3);
    mica_sample_indices(s, SEQUENCE, 1, &rows, sequences);
    mica_sample_indices(s, PLACE, 1, &rows, 2 * MICA_CACHE_PAGE);
}

static const mica_field fields[] = {
    MICA_FIELD(mica_cached_attention_opts, heads, INT, "query heads"),
    MICA_FIELD(mica_cached_attention_opts, kv_heads, INT, "key/value heads: a divisor of heads"),
    MICA_FIELD(mica_cached_attention_opts, width, INDEX, "features of a head of queries and keys"),
    MICA_FIELD(mica_cached_attention_opts, value_width, INDEX, "features of a head of values; 0: width"),
    MICA_FIELD(mica_cached_attention_opts, type, DTYPE, "of the cache: f32, f16 or q8_0"),
    MICA_FIELD(mica_cached_attention_opts, scale, FLOAT, "scale of the scores; 0: 1 / sqrt(D)"),
    MICA_FIELD(mica_cached_attention_opts, cap, FLOAT, "scores become cap * tanh(score / cap); 0: none"),
    MICA_FIELD(mica_cached_attention_opts, window, INDEX,
               "a token sees itself and window - 1 before it; 0: all"),
    MICA_FIELD(mica_cached_attention_opts, both_ways, BOOL,
               "a token also sees those behind it in the same call"),
};

const mica_op mica_op_cached_attention = {
    .name = "cached_attention",
    .family = "text",
    .about = "attention of rows of tokens over a cache of keys and values, to which theirs are added",
    .ins = INS,
    .outs = 1,
    .fixed_ins = 1u << Q | 1u << K | 1u << V,
    .names = (const char *const[]){"q", "k", "v", "keys", "values", "table", "first", "sequence", "place",
                                   "y"},
    .opts_bytes = sizeof(mica_cached_attention_opts),
    MICA_FIELD_LIST(fields),
    .writes = 1u << KEYS | 1u << VALUES,
    .infer = infer,
    .run = run,
    .mixes = mixes,
    .sample = MICA_SAMPLE(sample)};
