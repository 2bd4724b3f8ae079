/* Int8 images with channels last: the bits of planar ones, on every instruction set, with any number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/isa_context.h"

enum { ROOM = 1 << 18, MOST_CHANNELS = 150, MOST_SETS = 7 };

static const char *const sets[MOST_SETS] = {"avx512-vnni", "avx512-plain", "avx2-vnni", "avx2-plain",
                                            "neon-dot",    "neon-plain",   "scalar"};

typedef struct image {
    mica_tensor t;
    char *data;
} image;

static mica_tensor plain(void *data, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor t = {0};
    (void)mica_tensor_init(NULL, &t, data, dtype, rank, dims);
    return t;
}

static void put_channels_last(mica_tensor *t)
{
    const mica_index c = t->dim[1], w = t->dim[3], stride[4] = {t->dim[2] * w * c, 1, w * c, c};
    memcpy(t->stride, stride, sizeof stride);
}

/* An image in either layout; its data is aligned to nothing, and followed by nothing. */
static image make(mica_dtype dtype, const mica_index dims[4], bool last)
{
    image i = {.data = NULL};
    i.t = plain(NULL, dtype, 4, dims);
    i.data = calloc(mica_tensor_bytes(&i.t) + 1, 1);
    i.t.data = i.data;
    if (last)
        put_channels_last(&i.t);
    return i;
}

static size_t bytes_of(const mica_tensor *t) { return mica_tensor_count(t) * mica_dtype_bytes(t->dtype); }

static void fill(mica_tensor *t, test_random *r)
{
    int8_t *data = t->data;
    for (size_t i = 0; i < bytes_of(t); i++)
        data[i] = (int8_t)(test_chance(r, 10) ? -128 : test_int(r, -128, 127));
}

/* Whether both hold the same. */
static bool same(mica_context *ctx, const mica_tensor *a, const mica_tensor *b)
{
    image flat = make(a->dtype, a->dim, false), other = make(a->dtype, a->dim, false);
    bool ok = mica_copy(ctx, &flat.t, a) == MICA_OK && mica_copy(ctx, &other.t, b) == MICA_OK &&
              memcmp(flat.data, other.data, bytes_of(a)) == 0;
    free(flat.data);
    free(other.data);
    return ok;
}

typedef struct weights {
    int8_t w[ROOM];
    int32_t bias[MOST_CHANNELS], multiplier[MOST_CHANNELS];
    uint8_t shift[MOST_CHANNELS];
    float factor[MOST_CHANNELS];
    _Alignas(64) uint8_t packed[1 << 20];
} weights;

static void draw_weights(weights *n, test_random *r)
{
    int low = test_chance(r, 70) ? 33 : 20;
    for (size_t i = 0; i < sizeof n->w; i++)
        n->w[i] = (int8_t)test_int(r, -128, 127);
    for (int i = 0; i < MOST_CHANNELS; i++) {
        n->bias[i] = test_int(r, -40000, 40000);
        n->multiplier[i] = (1 << 30) + test_int(r, 0, (1 << 30) - 1);
        n->shift[i] = (uint8_t)test_int(r, low, 44);
        n->factor[i] = (float)exp(test_uniform(r, low == 20 ? -3.0 : -9.0, low == 20 ? 80.0 : -3.0));
    }
}

typedef struct conv_call {
    mica_index groups, in, out, taps[2], x[4], y[4], stride[2], pad[2], dilation[2];
    bool affine, x_last, packed, tiled;
    int zero, one_factor;
    mica_dtype to;
} conv_call;

static bool draw_conv(conv_call *c, test_random *r)
{
    *c = (conv_call){
        .affine = test_chance(r, 60), .x_last = test_chance(r, 75), .packed = test_chance(r, 50)};
    int kind = test_int(r, 0, 3); /* depthwise, few channels, 1 x 1, any */
    c->groups = kind == 0 ? test_int(r, 2, MOST_CHANNELS) : kind == 3 && test_chance(r, 20) ? 2 : 1;
    c->in = kind == 0 ? 1 : kind == 1 ? test_int(r, 1, 3) : test_int(r, 1, 40);
    c->out = kind == 0 || test_chance(r, 15) ? 1 : test_int(r, 1, 75);
    for (int k = 0; k < 2; k++) {
        c->taps[k] = kind == 2 ? 1 : test_chance(r, 50) ? 3 : test_int(r, 1, kind == 1 ? 7 : 5);
        c->stride[k] = test_int(r, 1, test_chance(r, 80) ? 2 : 4);
        c->pad[k] = test_int(r, 0, 2);
        c->dilation[k] = test_chance(r, 80) ? 1 : 2;
        c->x[2 + k] = test_int(r, 1, 19);
        mica_index room = c->x[2 + k] + 2 * c->pad[k] - c->dilation[k] * (c->taps[k] - 1) - 1;
        if (room < 0)
            return false;
        c->y[2 + k] = room / c->stride[k] + 1;
    }
    c->x[0] = c->y[0] = test_int(r, 1, 3);
    c->x[1] = c->groups * c->in;
    c->y[1] = c->groups * c->out;
    c->zero = test_int(r, -128, 127);
    c->one_factor = test_chance(r, 20);
    c->to = !c->affine || test_chance(r, 80) ? MICA_I8 : test_chance(r, 50) ? MICA_F32 : MICA_I32;
    return c->groups * c->out * c->in * c->taps[0] * c->taps[1] <= ROOM;
}

static mica_status run_conv(mica_context *ctx, const conv_call *c, weights *n, const mica_tensor *y,
                            const mica_tensor *x, bool packed)
{
    mica_index all = c->y[1], factors = c->one_factor ? 1 : all;
    mica_tensor w = plain(n->w, MICA_I8, 4, (mica_index[]){all, c->in, c->taps[0], c->taps[1]}),
                bias = plain(n->bias, MICA_I32, 1, &all), factor = plain(n->factor, MICA_F32, 1, &factors),
                multiplier = plain(n->multiplier, MICA_I32, 1, &factors),
                shift = plain(n->shift, MICA_U8, 1, &factors);
    mica_int8_pack_opts pack = {.groups = c->groups, .zero = c->affine ? c->zero : 0, .tiled = c->tiled};
    mica_index bytes = mica_int8_packed_bytes(ctx, &w, &pack);
    if (bytes > (mica_index)sizeof n->packed)
        packed = false;
    mica_tensor ready = plain(n->packed, MICA_U8, 1, &bytes);
    if (packed)
        CHECK_OK(ctx, mica_int8_pack(ctx, &ready, &w, &bias, &pack));
    if (c->affine) {
        mica_affine_weights aw = {&w, &bias, &factor, packed ? &ready : NULL};
        mica_affine_conv_opts o = {.stride = {c->stride[0], c->stride[1]},
                                   .pad = {c->pad[0], c->pad[1]},
                                   .dilation = {c->dilation[0], c->dilation[1]},
                                   .groups = c->groups,
                                   .x_zero = c->zero,
                                   .y_zero = -c->zero / 2,
                                   .dtype = c->to};
        return mica_affine_conv2d(ctx, y, x, &aw, &o);
    }
    mica_int8_weights iw = {&w, &bias, &multiplier, &shift, packed ? &ready : NULL};
    return mica_int8_conv2d(ctx, y, x, &iw,
                            &(mica_int8_conv_opts){.stride = {c->stride[0], c->stride[1]},
                                                   .pad = {c->pad[0], c->pad[1]},
                                                   .dilation = {c->dilation[0], c->dilation[1]},
                                                   .groups = c->groups,
                                                   .low = -100,
                                                   .high = 101});
}

/* Planar on one thread of the scalar set; then channels last on each set. */
static void check_conv(mica_context *const *ctx, mica_context *scalar, const conv_call *c, weights *n,
                       test_random *r)
{
    image x = make(MICA_I8, c->x, false), y = make(c->to, c->y, false), x_last = make(MICA_I8, c->x, true);
    fill(&x.t, r);
    CHECK_OK(scalar, mica_copy(scalar, &x_last.t, &x.t));
    CHECK_OK(scalar, run_conv(scalar, c, n, &y.t, &x.t, false));
    for (int s = 0; s < MOST_SETS; s++) {
        if (ctx[s] == NULL)
            continue;
        image made = make(c->to, c->y, true), planar = make(c->to, c->y, false);
        CHECK_OK(ctx[s], run_conv(ctx[s], c, n, &made.t, c->x_last ? &x_last.t : &x.t, c->packed));
        CHECK_MSG(same(scalar, &made.t, &y.t),
                  "%s: groups %td, %td to %td channels, %td x %td, stride %td %td, pad %td %td, dilation %td "
                  "%td, x %td x %td%s%s",
                  sets[s], c->groups, c->in, c->out, c->taps[0], c->taps[1], c->stride[0], c->stride[1],
                  c->pad[0], c->pad[1], c->dilation[0], c->dilation[1], c->x[2], c->x[3],
                  c->x_last ? ", last" : "", c->packed ? ", packed" : "");
        CHECK_OK(ctx[s], run_conv(ctx[s], c, n, &planar.t, c->x_last ? &x_last.t : &x.t, c->packed));
        CHECK_MSG(same(scalar, &planar.t, &y.t), "%s: to a planar image", sets[s]);
        free(made.data);
        free(planar.data);
    }
    free(x.data);
    free(y.data);
    free(x_last.data);
}

static void for_all_sets(void (*fn)(mica_context *const *ctx, mica_context *scalar, test_random *r),
                         uint64_t seed)
{
    mica_context *scalar = isa_context("scalar", 1), *ctx[MOST_SETS];
    test_random r = test_seed(seed);
    REQUIRE(scalar != NULL);
    for (int s = 0; s < MOST_SETS; s++)
        ctx[s] = isa_context(sets[s], 1 + (int)((seed + (uint64_t)s) % 3));
    fn(ctx, scalar, &r);
    for (int s = 0; s < MOST_SETS; s++)
        mica_context_destroy(ctx[s]);
    mica_context_destroy(scalar);
}

static void convolutions(mica_context *const *ctx, mica_context *scalar, test_random *r)
{
    weights *n = aligned_alloc(64, (sizeof *n + 63) / 64 * 64);
    REQUIRE(n != NULL);
    for (int trial = 0; trial < 60; trial++) {
        conv_call c;
        if (!draw_conv(&c, r))
            continue;
        draw_weights(n, r);
        check_conv(ctx, scalar, &c, n, r);
    }
    free(n);
}

TEST(int8_conv_channels_last)
{
    for (uint64_t seed = 0; seed < 4; seed++)
        for_all_sets(convolutions, seed);
}

/* Enough rows and channels that a call is divided. */
static void large_convolutions(mica_context *const *ctx, mica_context *scalar, test_random *r)
{
    weights *n = aligned_alloc(64, (sizeof *n + 63) / 64 * 64);
    REQUIRE(n != NULL);
    for (int trial = 0; trial < 4; trial++) {
        bool deep = trial % 2 == 0;
        mica_index side = deep ? 40 : 30, out = (side - 1) / (1 + trial / 2) + 1;
        conv_call c = {.groups = deep ? MOST_CHANNELS : 1,
                       .in = deep ? 1 : 64,
                       .out = deep ? 1 : 120,
                       .taps = {3, 3},
                       .x = {2, deep ? MOST_CHANNELS : 64, side, side},
                       .y = {2, deep ? MOST_CHANNELS : 120, out, out},
                       .stride = {1 + trial / 2, 1 + trial / 2},
                       .pad = {1, 1},
                       .dilation = {1, 1},
                       .affine = true,
                       .x_last = true,
                       .packed = true,
                       .zero = -128,
                       .to = MICA_I8};
        draw_weights(n, r);
        check_conv(ctx, scalar, &c, n, r);
    }
    free(n);
}

TEST(int8_conv_channels_last_divided) { for_all_sets(large_convolutions, 1); }

/* ---- By tiles ---- */

/* Images that are large enough for it, in channels, padding and whatever sides. */
static conv_call draw_tiled(test_random *r, mica_index in, mica_index out)
{
    conv_call c = {.groups = 1,
                   .in = in,
                   .out = out,
                   .taps = {3, 3},
                   .x = {test_int(r, 1, 2), in},
                   .y = {1, out},
                   .stride = {1, 1},
                   .pad = {test_int(r, 0, 2), test_int(r, 0, 2)},
                   .dilation = {1, 1},
                   .affine = test_chance(r, 70),
                   .x_last = test_chance(r, 90),
                   .packed = true,
                   .tiled = true,
                   .zero = test_int(r, -128, 127),
                   .one_factor = test_chance(r, 20)};
    c.to = !c.affine || test_chance(r, 70) ? MICA_I8 : test_chance(r, 50) ? MICA_F32 : MICA_I32;
    c.y[0] = c.x[0];
    for (int k = 0; k < 2; k++) {
        c.x[2 + k] = test_int(r, 27, 45);
        c.y[2 + k] = c.x[2 + k] + 2 * c.pad[k] - 2;
    }
    return c;
}

static void tiled_convolutions(mica_context *const *ctx, mica_context *scalar, test_random *r)
{
    weights *n = aligned_alloc(64, (sizeof *n + 63) / 64 * 64);
    REQUIRE(n != NULL);
    for (int trial = 0; trial < 6; trial++) {
        conv_call c = draw_tiled(r, 32 * test_int(r, 1, 2), 32 * test_int(r, 1, 3));
        draw_weights(n, r);
        check_conv(ctx, scalar, &c, n, r);
    }
    free(n);
}

TEST(int8_conv_by_tiles)
{
    for (uint64_t seed = 0; seed < 3; seed++)
        for_all_sets(tiled_convolutions, seed);
}

/* Sums of all that a tile can hold, and of more, which are made the other way. */
static void largest_sums(mica_context *const *ctx, mica_context *scalar, test_random *r)
{
    weights *n = aligned_alloc(64, (sizeof *n + 63) / 64 * 64);
    REQUIRE(n != NULL);
    for (int trial = 0; trial < 2; trial++) {
        conv_call c = draw_tiled(r, trial == 0 ? 224 : 256, 32);
        c.affine = c.x_last = true;
        c.to = MICA_I32;
        draw_weights(n, r);
        memset(n->w, 127, sizeof n->w / 2);
        image x = make(MICA_I8, c.x, true), y = make(MICA_I32, c.y, false), made = make(MICA_I32, c.y, true);
        memset(x.data, -128, bytes_of(&x.t));
        CHECK_OK(scalar, run_conv(scalar, &c, n, &y.t, &x.t, false));
        for (int s = 0; s < MOST_SETS; s++)
            if (ctx[s] != NULL) {
                CHECK_OK(ctx[s], run_conv(ctx[s], &c, n, &made.t, &x.t, true));
                CHECK_MSG(same(scalar, &made.t, &y.t), "%s: %td channels", sets[s], c.in);
            }
        free(x.data);
        free(y.data);
        free(made.data);
    }
    free(n);
}

TEST(int8_conv_by_tiles_of_largest_sums) { for_all_sets(largest_sums, 4); }

/* Weights for tiles lie beside the others, where there are any. */
TEST(int8_pack_tiled)
{
    for (int s = 0; s < MOST_SETS; s++) {
        mica_context *ctx = isa_context(sets[s], 1);
        if (ctx == NULL)
            continue;
        mica_tensor w = plain(NULL, MICA_I8, 4, (mica_index[]){64, 32, 3, 3}),
                    wide = plain(NULL, MICA_I8, 4, (mica_index[]){64, 32, 5, 5}),
                    odd = plain(NULL, MICA_I8, 4, (mica_index[]){64, 33, 3, 3});
        const mica_int8_pack_opts tiled = {.tiled = true};
        bool has = strcmp(sets[s], "scalar") != 0;
        mica_index more = mica_int8_packed_bytes(ctx, &w, &tiled) - mica_int8_packed_bytes(ctx, &w, NULL);
        CHECK_MSG(has ? more >= 72 * 64 * 32 && more < 73 * 64 * 32 : more == 0, "%s: %td", sets[s], more);
        CHECK(mica_int8_packed_bytes(ctx, &wide, &tiled) == mica_int8_packed_bytes(ctx, &wide, NULL));
        CHECK(mica_int8_packed_bytes(ctx, &odd, &tiled) == mica_int8_packed_bytes(ctx, &odd, NULL));
        mica_context_destroy(ctx);
    }
}

/* ---- Pooling, and element by element ---- */

static mica_status pool(mica_context *ctx, int kind, const mica_tensor *y, const mica_tensor *x,
                        const mica_pooling_opts *w)
{
    switch (kind) {
    case 0:
        return mica_int8_max_pool2d(ctx, y, x, w);
    case 1:
        return mica_int8_avg_pool2d(ctx, y, x,
                                    &(mica_int8_avg_pool_opts){.kernel = {w->kernel[0], w->kernel[1]},
                                                               .stride = {w->stride[0], w->stride[1]},
                                                               .pad = {w->pad[0], w->pad[1]},
                                                               .multiplier = 1 << 30,
                                                               .shift = 33});
    case 2:
        return mica_int8_global_avg_pool(ctx, y, x,
                                         &(mica_int8_global_pool_opts){.multiplier = 1 << 30, .shift = 35});
    default:
        return mica_affine_global_avg_pool(
            ctx, y, x, &(mica_affine_pool_opts){.factor = 1.3f, .x_zero = -7, .y_zero = 5});
    }
}

static void pools(mica_context *const *ctx, mica_context *scalar, test_random *r)
{
    for (int trial = 0; trial < 60; trial++) {
        int kind = test_int(r, 0, 3);
        int most = test_chance(r, 20) ? 6 : 3;
        mica_pooling_opts w = {.kernel = {test_int(r, 1, most), test_int(r, 1, most)},
                               .stride = {test_int(r, 1, 3), test_int(r, 1, 3)}};
        mica_index x_dims[4] = {test_int(r, 1, 3), test_int(r, 1, test_chance(r, 20) ? 600 : 70),
                                test_int(r, most, 12), test_int(r, most, 12)},
                   y_dims[4] = {x_dims[0], x_dims[1], 1, 1};
        for (int k = 0; k < 2 && kind < 2; k++) {
            w.pad[k] = test_int(r, 0, (int)w.kernel[k] / 2);
            y_dims[2 + k] = (x_dims[2 + k] + 2 * w.pad[k] - w.kernel[k]) / w.stride[k] + 1;
        }
        image x = make(MICA_I8, x_dims, false), y = make(MICA_I8, y_dims, false),
              last = make(MICA_I8, x_dims, true);
        fill(&x.t, r);
        CHECK_OK(scalar, mica_copy(scalar, &last.t, &x.t));
        CHECK_OK(scalar, pool(scalar, kind, &y.t, &x.t, &w));
        for (int s = 0; s < MOST_SETS; s++) {
            image made = make(MICA_I8, y_dims, true);
            if (ctx[s] != NULL) {
                CHECK_OK(ctx[s], pool(ctx[s], kind, &made.t, &last.t, &w));
                CHECK_MSG(same(scalar, &made.t, &y.t), "%s: pooling %d", sets[s], kind);
            }
            free(made.data);
        }
        free(x.data);
        free(y.data);
        free(last.data);
    }
}

TEST(int8_pool_channels_last) { for_all_sets(pools, 2); }

static mica_status map(mica_context *ctx, int kind, const mica_tensor *y, const mica_tensor *a,
                       const mica_tensor *b)
{
    switch (kind) {
    case 0:
        return mica_affine_add(ctx, y, a, b,
                               &(mica_affine_add_opts){.factor = {0.5f, 0.75f}, .zero = {3, -9, 11}});
    case 1:
        return mica_int8_add(ctx, y, a, b, &(mica_int8_add_opts){.multiplier = {700, 900}, .shift = 10});
    case 2:
        return mica_affine_dequantize(ctx, y, a, &(mica_affine_scale_opts){.scale = 0.3f, .zero = 4});
    default:
        return mica_int8_rescale(ctx, y, a, &(mica_int8_rescale_opts){.multiplier = 1 << 30, .shift = 31});
    }
}

static void maps(mica_context *const *ctx, mica_context *scalar, test_random *r)
{
    for (int trial = 0; trial < 40; trial++) {
        int kind = trial % 4;
        mica_index dims[4] = {test_int(r, 1, 3), test_int(r, 1, 40), test_int(r, 1, 12), test_int(r, 1, 12)};
        mica_dtype to = kind == 2 ? MICA_F32 : MICA_I8;
        image a = make(MICA_I8, dims, false), b = make(MICA_I8, dims, false), y = make(to, dims, false),
              a_last = make(MICA_I8, dims, true), b_last = make(MICA_I8, dims, true);
        bool mixed = test_chance(r, 30);
        fill(&a.t, r);
        fill(&b.t, r);
        CHECK_OK(scalar, mica_copy(scalar, &a_last.t, &a.t));
        CHECK_OK(scalar, mica_copy(scalar, &b_last.t, &b.t));
        CHECK_OK(scalar, map(scalar, kind, &y.t, &a.t, &b.t));
        for (int s = 0; s < MOST_SETS; s++) {
            image made = make(to, dims, true);
            if (ctx[s] != NULL) {
                CHECK_OK(ctx[s], map(ctx[s], kind, &made.t, &a_last.t, mixed ? &b.t : &b_last.t));
                CHECK_MSG(same(scalar, &made.t, &y.t), "%s: map %d", sets[s], kind);
            }
            free(made.data);
        }
        free(a.data);
        free(b.data);
        free(y.data);
        free(a_last.data);
        free(b_last.data);
    }
}

TEST(int8_map_channels_last) { for_all_sets(maps, 3); }
