/* Cases of positions of rows, and of attention over a cache. */
#include "ops/op_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Angles: table; positions, frequency. f[0] magnitude ---- */

static void draw_angles(op_call *c, test_random *r)
{
    mica_index rows = c->large ? 300 : test_int(r, test_chance(r, 5) ? 0 : 1, 9);
    mica_index pairs = test_int(r, test_chance(r, 5) ? 0 : 1, c->large ? 64 : 6);
    op_tensor(c, 0, MICA_F32, 2, (mica_index[]){rows, 2 * pairs});
    op_tensor(c, 1, MICA_I32, 1, &rows);
    op_tensor(c, 2, MICA_F32, 1, &pairs);
    c->f[0] = test_chance(r, 50) ? 0.0 : test_uniform(r, 0.5, 2.0);
}

/* Positions of all sizes, the largest included. */
static void fill_angles(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c;
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 1
                       ? (double)(test_chance(r, 20) ? INT32_MAX - test_int(r, 0, 9)
                                                     : test_int(r, 0, test_chance(r, 50) ? 9 : 1 << 20))
                       : (double)(float)test_uniform(r, 0.0, 1.0);
}

static mica_status run_angles(mica_context *ctx, const op_call *c)
{
    mica_rotary_angles_opts opts = {.magnitude = (float)c->f[0]};
    return mica_rotary_angles(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &opts);
}

static void reference_angles(const op_call *c, double *const *v)
{
    mica_index rows = c->tensor[0].dim[0], pairs = c->tensor[2].dim[0];
    double magnitude = c->f[0] != 0.0 ? (double)(float)c->f[0] : 1.0;
    for (mica_index row = 0; row < rows; row++)
        for (mica_index i = 0; i < pairs; i++) {
            double angle = v[1][row] * v[2][i];
            v[0][row * 2 * pairs + i] = magnitude * cos(angle);
            v[0][row * 2 * pairs + pairs + i] = magnitude * sin(angle);
        }
}

OP_CASE(rotary_angles) = {.names = {"table", "positions", "frequency"},
                          .outs = 1,
                          .ins = 2,
                          .draw = draw_angles,
                          .fill = fill_angles,
                          .run = run_angles,
                          .reference = reference_angles,
                          .tolerance = 1e-6};

/* ---- Turning: y; x, table. i[0] interleaved, i[1] heads ---- */

static void draw_rows(op_call *c, test_random *r)
{
    mica_index rows = c->large ? 200 : test_int(r, test_chance(r, 5) ? 0 : 1, 7), heads = test_int(r, 1, 4);
    mica_index width = c->large ? 80 : test_int(r, 1, 20), turned = 2 * test_int(r, 0, (int)(width / 2));
    mica_index x[] = {rows, heads * width}, table[] = {rows, turned};
    op_tensor(c, 0, MICA_F32, 2, x);
    op_tensor(c, 1, MICA_F32, 2, x);
    op_tensor(c, 2, MICA_F32, 2, table);
    c->i[0] = test_chance(r, 50);
    c->i[1] = heads == 1 && test_chance(r, 50) ? 0 : heads;
}

static mica_status run_rows(mica_context *ctx, const op_call *c)
{
    mica_rotary_rows_opts opts = {.heads = (int)c->i[1], .interleaved = c->i[0] != 0};
    return mica_rotary_rows(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &opts);
}

static void reference_rows(const op_call *c, double *const *v)
{
    mica_index heads = c->i[1] != 0 ? c->i[1] : 1, width = c->tensor[1].dim[1] / heads,
               n = c->tensor[2].dim[1];
    memcpy(v[0], v[1], op_count(c, 0) * sizeof **v);
    for (mica_index row = 0; row < c->tensor[1].dim[0]; row++)
        for (mica_index k = 0; k < heads * (n / 2); k++) {
            mica_index start = (row * heads + k / (n / 2)) * width, i = k % (n / 2);
            mica_index a = start + (c->i[0] ? 2 * i : i), b = start + (c->i[0] ? 2 * i + 1 : i + n / 2);
            double cosine = v[2][row * n + i], sine = v[2][row * n + n / 2 + i];
            v[0][a] = v[1][a] * cosine - v[1][b] * sine;
            v[0][b] = v[1][b] * cosine + v[1][a] * sine;
        }
}

OP_CASE(rotary_rows) = {.names = {"y", "x", "table"},
                        .outs = 1,
                        .ins = 2,
                        .in_place = OP_BIT(1),
                        .any_shape = OP_BIT(2),
                        .draw = draw_rows,
                        .run = run_rows,
                        .reference = reference_rows,
                        .tolerance = 2e-6};

/* ---- Attention: y, keys, values; q, k, v, table, first, sequence, place ---- */

enum { Y, KEYS, VALUES, Q, K, V, TABLE, FIRST, SEQUENCE, PLACE };
enum { HEADS, KV_HEADS, WIDTH, VALUE_WIDTH, TYPE, WINDOW, BOTH_WAYS, SHARED }; /* of i[] */
enum { SCALE, CAP };                                                           /* of f[] */

static mica_cached_attention_opts attention_options(const op_call *c)
{
    return (mica_cached_attention_opts){.heads = (int)c->i[HEADS],
                                        .kv_heads = (int)c->i[KV_HEADS],
                                        .width = c->i[WIDTH],
                                        .value_width = c->i[VALUE_WIDTH],
                                        .type = (int)c->i[TYPE],
                                        .window = c->i[WINDOW],
                                        .both_ways = c->i[BOTH_WAYS] != 0,
                                        .scale = (float)c->f[SCALE],
                                        .cap = (float)c->f[CAP]};
}

static mica_index value_width_of(const op_call *c)
{
    return c->i[VALUE_WIDTH] ? c->i[VALUE_WIDTH] : c->i[WIDTH];
}

static void draw_attention(op_call *c, test_random *r)
{
    static const mica_dtype types[] = {MICA_F32, MICA_F16, MICA_Q8_0};
    static const int widths[] = {32, 64, 80, 24, 96, 128, 256, 7};
    c->i[TYPE] = types[test_int(r, 0, 2)];
    c->i[KV_HEADS] = test_int(r, 1, 3);
    c->i[HEADS] = c->i[KV_HEADS] * test_int(r, 1, test_chance(r, 10) ? 15 : 4);
    c->i[WIDTH] = c->i[TYPE] == MICA_Q8_0 ? 32 * test_int(r, 1, 3) : widths[test_int(r, 0, 7)];
    c->i[VALUE_WIDTH] = test_chance(r, 70)        ? 0
                        : c->i[TYPE] == MICA_Q8_0 ? 32 * test_int(r, 1, 3)
                                                  : test_int(r, 1, 100);
    c->i[WINDOW] = test_chance(r, 30) ? test_int(r, 1, 50) : 0;
    c->i[BOTH_WAYS] = test_chance(r, 20);
    c->f[SCALE] = test_chance(r, 30) ? 0.5 : 0.0;
    c->f[CAP] = test_chance(r, 20) ? 3.0 : 0.0;
    mica_index rows = c->large ? 600 : test_int(r, test_chance(r, 5) ? 0 : 1, 70);
    mica_index sequences = test_int(r, 1, 3), pages = rows / MICA_CACHE_PAGE + test_int(r, 1, 2);
    mica_cached_attention_opts opts = attention_options(c);
    op_tensor(c, Y, MICA_F32, 2, (mica_index[]){rows, c->i[HEADS] * value_width_of(c)});
    op_tensor(c, Q, MICA_F32, 2, (mica_index[]){rows, c->i[HEADS] * c->i[WIDTH]});
    op_tensor(c, K, MICA_F32, 2, (mica_index[]){rows, c->i[KV_HEADS] * c->i[WIDTH]});
    op_tensor(c, V, MICA_F32, 2, (mica_index[]){rows, c->i[KV_HEADS] * value_width_of(c)});
    mica_index pool = sequences * pages + test_int(r, 0, 2);
    op_tensor(c, KEYS, MICA_U8, 2, (mica_index[]){pool, (mica_index)mica_cache_page_bytes(&opts, false)});
    op_tensor(c, VALUES, MICA_U8, 2, (mica_index[]){pool, (mica_index)mica_cache_page_bytes(&opts, true)});
    op_tensor(c, TABLE, MICA_I32, 2, (mica_index[]){sequences, pages});
    op_tensor(c, FIRST, MICA_I32, 1, &sequences);
    op_tensor(c, SEQUENCE, MICA_I32, 1, &rows);
    op_tensor(c, PLACE, MICA_I32, 1, &rows);
}

/* Sequences begin at place 0, and their rows come interleaved: PLACE is filled after SEQUENCE, by the same numbers. */
static int sequence_of(const op_call *c, size_t row)
{
    unsigned mixed = ((unsigned)(row / 5) + (unsigned)c->i[WIDTH]) * 2654435761u >> 20;
    return (int)(mixed % (unsigned)(c->tensor[TABLE].dim[0] + 1)) - 1;
}

static int place_of(const op_call *c, size_t row)
{
    int place = 0;
    for (size_t i = 0; i < row; i++)
        place += sequence_of(c, i) == sequence_of(c, row);
    return place;
}

static void fill_attention(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    size_t pool = (size_t)c->tensor[KEYS].dim[0];
    for (size_t i = 0; i < count; i++) {
        switch (tensor) {
        case TABLE: /* every page has one owner; in no order */
            value[i] = (double)(pool - 1 - (i * 2 < count ? i : count - 1 - (i - (count + 1) / 2)));
            break;
        case FIRST:
            value[i] = test_chance(r, 70) ? 0 : test_int(r, 0, 40);
            break;
        case SEQUENCE:
            value[i] = sequence_of(c, i);
            break;
        case PLACE:
            value[i] = sequence_of(c, i) < 0 ? -7 : place_of(c, i);
            break;
        case KEYS:
        case VALUES:
            value[i] = 255; /* no numbers */
            break;
        default:
            value[i] = (double)(float)test_normal(r);
        }
    }
}

static mica_status run_attention(mica_context *ctx, const op_call *c)
{
    mica_cached_attention_opts opts = attention_options(c);
    mica_cached_attention_args args = {.q = OP(c, Q),
                                       .k = OP(c, K),
                                       .v = OP(c, V),
                                       .keys = OP(c, KEYS),
                                       .values = OP(c, VALUES),
                                       .table = OP(c, TABLE),
                                       .first = OP(c, FIRST),
                                       .sequence = OP(c, SEQUENCE),
                                       .place = OP(c, PLACE)};
    return mica_cached_attention(ctx, OP(c, Y), &args, &opts);
}

/* x as f16: the value, and its bits. */
static double as_half(double x, unsigned *bits)
{
    int exponent;
    (void)frexp(x, &exponent);
    int least = exponent - 1 < -14 ? -14 : exponent - 1;
    double whole = rint(ldexp(fabs(x), 10 - least)); /* 1024 to 2048; less: subnormal */
    *bits = (signbit(x) ? 0x8000u : 0u) + ((unsigned)(least + 14) << 10) + (unsigned)whole;
    return copysign(ldexp(whole, least - 10), x);
}

/* A block of q8_0: the scale's bits, and the values. Returns the scale. */
static double as_block(const double *x, int *q, unsigned *bits)
{
    float most = 0.0f;
    for (int i = 0; i < 32; i++)
        most = fmaxf(most, fabsf((float)x[i]));
    float scale = most / 127.0f, inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    for (int i = 0; i < 32; i++) {
        float value = (float)x[i] * inverse;
        q[i] = (int)lroundf(value);
    }
    return as_half((double)scale, bits);
}

/* Puts x [width], a token's key or value of a head, into the page of bytes v, and x becomes what is read from there.
 * Feature i of a token stands at index i * feature + start of the head. */
static void put(double *v, mica_dtype type, double *x, mica_index width, mica_index start, mica_index feature,
                mica_index scales)
{
    for (mica_index i = 0; i < width; i++) {
        mica_index at = start + i * feature;
        unsigned bits;
        int q[32];
        float f = (float)x[i];
        if (type == MICA_F32) {
            unsigned char bytes[4];
            memcpy(bytes, &f, sizeof f);
            for (int k = 0; k < 4; k++)
                v[4 * at + k] = bytes[k];
        } else if (type == MICA_F16) {
            x[i] = as_half(x[i], &bits);
            v[2 * at] = bits & 255;
            v[2 * at + 1] = bits >> 8;
        } else if (i % 32 == 0) {
            double scale = as_block(x + i, q, &bits);
            v[scales + i * 2] = bits & 255;
            v[scales + i * 2 + 1] = bits >> 8;
            for (mica_index k = 0; k < 32; k++) {
                x[i + k] = scale * q[k];
                v[start + (i + k) * feature] = q[k] & 255;
            }
        }
    }
}

/* Bytes of a page for each feature. */
static mica_index feature_bytes(mica_dtype type)
{
    return type == MICA_F32 ? 128 : type == MICA_F16 ? 64 : 34;
}

/* Writes the rows to the cache; v[K] and v[V] become what is read from it. */
static void reference_write(const op_call *c, double *const *v)
{
    mica_dtype type = (mica_dtype)c->i[TYPE];
    mica_index heads = c->i[KV_HEADS], width = c->i[WIDTH], value_width = value_width_of(c);
    mica_index stride = (value_width + 15) / 16 * 16, element = type == MICA_F32   ? 4
                                                                : type == MICA_F16 ? 2
                                                                                   : 1;
    for (mica_index row = 0; row < c->tensor[Q].dim[0]; row++) {
        mica_index s = (mica_index)v[SEQUENCE][row], place = (mica_index)v[PLACE][row], slot = place % 32;
        if (s < 0)
            continue;
        mica_index page = (mica_index)v[TABLE][s * c->tensor[TABLE].dim[1] + place / 32];
        for (mica_index h = 0; h < heads; h++) {
            mica_index key = (page * heads + h) * width * feature_bytes(type);
            mica_index value = (page * heads + h) * stride * feature_bytes(type);
            put(v[KEYS], type, v[K] + (row * heads + h) * width, width, key / element + slot, 32,
                key + 32 * width + 2 * slot);
            put(v[VALUES], type, v[V] + (row * heads + h) * value_width, value_width,
                value / element + slot * stride, 1, value + 32 * stride + 2 * slot);
        }
    }
}

/* Whether row i sees row j. */
static bool sees(const op_call *c, double *const *v, mica_index i, mica_index j)
{
    double own = v[PLACE][i], other = v[PLACE][j];
    if (v[SEQUENCE][i] < 0 || v[SEQUENCE][i] != v[SEQUENCE][j] || (other > own && !c->i[BOTH_WAYS]))
        return false;
    return other >= v[FIRST][(int)v[SEQUENCE][i]] &&
           (c->i[WINDOW] == 0 || other > own - (double)c->i[WINDOW]);
}

static double score(const op_call *c, double *const *v, mica_index i, mica_index j, mica_index head)
{
    mica_index width = c->i[WIDTH], heads = c->i[HEADS], kv_heads = c->i[KV_HEADS];
    const double *q = v[Q] + (i * heads + head) * width;
    const double *k = v[K] + (j * kv_heads + head / (heads / kv_heads)) * width;
    double sum = 0.0;
    for (mica_index d = 0; d < width; d++)
        sum += q[d] * k[d];
    sum *= c->f[SCALE] != 0.0 ? c->f[SCALE] : 1.0 / sqrt((double)width);
    return c->f[CAP] != 0.0 ? c->f[CAP] * tanh(sum / c->f[CAP]) : sum;
}

static void reference_attention(const op_call *c, double *const *v)
{
    mica_index rows = c->tensor[Q].dim[0], heads = c->i[HEADS], kv_heads = c->i[KV_HEADS];
    mica_index width = value_width_of(c);
    double *s = malloc(((size_t)rows + 1) * sizeof *s);
    reference_write(c, v);
    for (mica_index i = 0; i < rows * heads; i++) {
        mica_index row = i / heads, head = i % heads;
        double most = -INFINITY, sum = 0.0, *y = v[Y] + i * width;
        for (mica_index j = 0; j < rows; j++) {
            s[j] = sees(c, v, row, j) ? score(c, v, row, j, head) : -INFINITY;
            most = fmax(most, s[j]);
        }
        for (mica_index d = 0; d < width; d++)
            y[d] = 0.0;
        for (mica_index j = 0; j < rows && most > -INFINITY; j++)
            sum += s[j] = exp(s[j] - most);
        for (mica_index j = 0; j < rows && sum > 0.0; j++)
            for (mica_index d = 0; d < width && s[j] > 0.0; d++)
                y[d] += s[j] / sum * v[V][(j * kv_heads + head / (heads / kv_heads)) * width + d];
    }
    free(s);
}

OP_CASE(cached_attention) = {
    .names = {"y", "keys", "values", "q", "k", "v", "table", "first", "sequence", "place"},
    .outs = 3,
    .ins = 7,
    .reads_outs = OP_BIT(KEYS) | OP_BIT(VALUES),
    .any_shape = OP_BIT(TABLE),
    .contiguous = OP_BIT(KEYS) | OP_BIT(VALUES),
    .draws = 100,
    .draw = draw_attention,
    .fill = fill_attention,
    .run = run_attention,
    .reference = reference_attention,
    .tolerance = 1e-5};
