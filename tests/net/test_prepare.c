/* Weights prepared when a net is bound: the same numbers as without, in what the plan says, for every step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "node/entry.h"
#include "test.h"

/* ---- A net with both plans ---- */

typedef void build_fn(mica_net *net, test_random *r, mica_index batch);

/* The same net, prepared or not. */
static mica_net *make_net(mica_context *ctx, build_fn *build, uint64_t seed, mica_index batch, bool prepare,
                          const mica_net *weights)
{
    mica_net *net = NULL;
    test_random r = test_seed(seed);
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    build(net, &r, batch);
    if (CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.prepare = prepare, .weights = weights})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        (weights != NULL || CHECK_OK(ctx, mica_net_initialize(net, 1 + seed))))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* Of a step: its output, which the caller frees. */
static float *run_net(mica_net *net, uint64_t seed, size_t *count)
{
    mica_context *ctx = mica_net_context(net);
    mica_tensor x, y;
    test_random r = test_seed(seed);
    CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_uniform(&r, -1.0, 1.0);
    test_heap heap = test_heap_now();
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK(test_heap_now().calls == heap.calls);
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    *count = mica_tensor_count(&y);
    float *out = malloc(mica_tensor_bytes(&y) + 1);
    memcpy(out, y.data, mica_tensor_bytes(&y));
    return out;
}

/* The largest difference of what two nets make of the same, relative to the largest number that is above 1. */
static double difference(mica_net *a, mica_net *b, uint64_t seed)
{
    size_t n, other;
    float *want = run_net(a, seed, &n), *got = run_net(b, seed, &other);
    double most = CHECK(n == other) ? 0.0 : INFINITY, largest = 1.0;
    for (size_t i = 0; i < n && n == other; i++) {
        double off = fabs((double)want[i] - (double)got[i]);
        most = off > most || isnan(off) ? off : most;
        largest = fmax(largest, fabs((double)want[i]));
    }
    free(want);
    free(got);
    return most / largest;
}

static size_t prepared_bytes(const mica_net *net)
{
    return mica_net_plan(net)->kind_bytes[MICA_BUFFER_PREPARED];
}

/* At every batch up to the planned one. */
static void compare(mica_net *plain, mica_net *prepared, mica_index most, double within, const char *what)
{
    mica_context *ctx = mica_net_context(plain), *other = mica_net_context(prepared);
    for (mica_index batch = most; batch >= 0; batch = batch > 12 ? batch / 2 : batch - 1) {
        CHECK_OK(ctx, mica_net_resize(plain, batch));
        CHECK_OK(other, mica_net_resize(prepared, batch));
        double off = difference(plain, prepared, 7 + (uint64_t)batch);
        CHECK_MSG(off <= within, "%s, batch %td of %td, %s, %d threads: off by %g", what, batch, most,
                  mica_context_isa(ctx), mica_context_threads(ctx), off);
    }
}

/* ---- Products ---- */

/* Some dense layers over rows, or over sequences of them. */
static void build_dense(mica_net *net, test_random *r, mica_index batch)
{
    bool sequence = test_int(r, 0, 1) == 1;
    mica_index dims[3] = {mica_net_size(net, "batch", batch), test_int(r, 1, 5), test_int(r, 1, 70)};
    if (!sequence)
        dims[1] = dims[2];
    mica_value h = mica_net_input(net, "x", MICA_F32, sequence ? 3 : 2, dims);
    mica_index layers = test_int(r, 1, 3);
    for (mica_index i = 0; i < layers; i++) {
        mica_net_dense_opts opts = {.units = test_int(r, 1, test_int(r, 0, 3) == 0 ? 600 : 90),
                                    .no_bias = test_int(r, 0, 1) == 1,
                                    .activation = (mica_activation)test_int(r, 0, MICA_ACTIVATION_COUNT - 1)};
        h = mica_net_dense(net, h, &opts);
    }
    mica_net_output(net, "y", h);
}

static const char *const sets[] = {"scalar", "avx2", "avx512", "neon"};

TEST(prepare_gives_products_the_same_bits)
{
    size_t prepared_in_all = 0;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (int threads = 1; threads <= 3; threads++) {
            mica_context *ctx;
            if (mica_context_create(&ctx, &(mica_context_opts){.threads = threads, .isa = sets[i]}) !=
                MICA_OK)
                continue; /* not of this machine */
            for (uint64_t seed = 0; seed < 12; seed++) {
                mica_index batch = 1 + (mica_index)(seed * 37 % 150);
                mica_net *plain = make_net(ctx, build_dense, seed, batch, false, NULL),
                         *prepared = make_net(ctx, build_dense, seed, batch, true, NULL);
                if (plain != NULL && prepared != NULL) {
                    compare(plain, prepared, batch, 0.0, "dense");
                    prepared_in_all += prepared_bytes(prepared);
                    CHECK(prepared_bytes(plain) == 0);
                }
                mica_net_destroy(plain);
                mica_net_destroy(prepared);
            }
            mica_context_destroy(ctx);
        }
    CHECK(prepared_in_all > 0);
}

/* ---- Convolutions ---- */

/* One or two, of images or signals, whose height is a size of the step. */
static void build_conv(mica_net *net, test_random *r, mica_index batch)
{
    bool signals = test_int(r, 0, 3) == 0;
    mica_index size = mica_net_size(net, "size", test_int(r, 5, 20)), width = test_int(r, 5, 20);
    mica_index groups = test_int(r, 0, 3) == 0 ? 2 : 1, channels = groups * test_int(r, 1, 48);
    mica_index dims[4] = {mica_net_size(net, "batch", batch), channels, size, width};
    mica_value h = mica_net_input(net, "x", MICA_F32, signals ? 3 : 4, dims);
    int layers = test_int(r, 1, 2);
    for (int i = 0; i < layers; i++) {
        bool three = test_int(r, 0, 1) == 1; /* many of these go by way of transforms */
        mica_index taps = three ? 3 : test_int(r, 1, 3), step = three ? 1 : test_int(r, 1, 2),
                   pad = test_int(r, 0, 1);
        mica_net_conv_opts opts = {.out_channels = 2 * test_int(r, 1, 40),
                                   .kernel = {taps, signals ? 0 : taps},
                                   .stride = {step, signals ? 0 : step},
                                   .pad = {pad + 1, signals ? 0 : pad + 1},
                                   .groups = groups,
                                   .no_bias = test_int(r, 0, 1) == 1,
                                   .activation = (mica_activation)test_int(r, 0, 3)};
        h = signals ? mica_net_conv1d(net, h, &opts) : mica_net_conv2d(net, h, &opts);
    }
    mica_net_output(net, "y", h);
}

/* How many calls read weights prepared for each path: rows of src/ops/conv/prepare.c. */
enum { PACKED = 2, TRANSFORMED };

static void count_rows(const mica_net *net, int *rows)
{
    for (int i = 0; i < mica_net_program(net); i++) {
        mica_program_call call;
        if (mica_net_program_call(net, &call, i) == MICA_OK && strcmp(call.op->name, "conv2d_prepared") == 0)
            for (int f = 0; f < call.op->field_count; f++)
                if (strcmp(call.op->fields[f].name, "row") == 0)
                    rows[*(const int *)(const void *)((const char *)call.opts + call.op->fields[f].offset)]++;
    }
}

static void compare_sizes(mica_net *plain, mica_net *prepared, mica_index batch)
{
    mica_context *ctx = mica_net_context(plain);
    mica_index most;
    CHECK_OK(ctx, mica_net_size_at(plain, NULL, NULL, &most, 1));
    for (mica_index size = most; size >= 3; size -= 1 + size / 3) {
        CHECK_OK(ctx, mica_net_set_size(plain, "size", size));
        CHECK_OK(ctx, mica_net_set_size(prepared, "size", size));
        compare(plain, prepared, batch, 2e-5, "convolution");
    }
}

TEST(prepare_gives_convolutions_the_same_numbers)
{
    int rows[8] = {0};
    bool wide = false; /* where costs were fitted: others may hold one of them to be no gain */
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (int threads = 1; threads <= 3; threads++) {
            mica_context *ctx;
            if (mica_context_create(&ctx, &(mica_context_opts){.threads = threads, .isa = sets[i]}) !=
                MICA_OK)
                continue; /* not of this machine */
            wide = wide || strcmp(mica_context_isa(ctx), "avx512") == 0;
            for (uint64_t seed = 0; seed < 30; seed++) {
                mica_index batch = 1 + (mica_index)(seed % 4);
                mica_net *plain = make_net(ctx, build_conv, seed, batch, false, NULL),
                         *prepared = make_net(ctx, build_conv, seed, batch, true, NULL);
                if (plain != NULL && prepared != NULL) {
                    count_rows(prepared, rows);
                    compare_sizes(plain, prepared, batch);
                }
                mica_net_destroy(plain);
                mica_net_destroy(prepared);
            }
            mica_context_destroy(ctx);
        }
    CHECK_MSG(rows[PACKED] + rows[TRANSFORMED] > 0 && (!wide || (rows[PACKED] > 0 && rows[TRANSFORMED] > 0)),
              "%d calls by packed weights, %d by transformed ones", rows[PACKED], rows[TRANSFORMED]);
}

/* The same bits for any number of threads, and when the plan is for one size alone. */
static void build_deep(mica_net *net, test_random *r, mica_index batch)
{
    (void)r;
    mica_value x = mica_net_input(net, "x", MICA_F32, 4,
                                  (mica_index[]){mica_net_size(net, "batch", batch), 64, 14, 14});
    mica_net_conv_opts opts = {.out_channels = 72, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
    x = mica_net_conv2d(net, x, &opts);
    opts = (mica_net_conv_opts){.out_channels = 100, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}};
    mica_net_output(net, "y", mica_net_conv2d(net, x, &opts));
}

TEST(prepare_gives_the_same_bits_for_any_number_of_threads)
{
#if defined(MICA_NO_THREADS)
    const int most = 1;
#else
    const int most = 3;
#endif
    for (mica_index batch = 1; batch <= 2; batch++) {
        mica_net *nets[3] = {NULL};
        mica_context *ctx[3] = {NULL};
        for (int i = 0; i < most; i++) {
            REQUIRE(mica_context_create(&ctx[i], &(mica_context_opts){.threads = i + 1}) == MICA_OK);
            nets[i] = make_net(ctx[i], build_deep, 4, batch, true, NULL);
            REQUIRE(nets[i] != NULL);
            CHECK(prepared_bytes(nets[i]) > 0);
        }
        for (int i = 1; i < most; i++)
            compare(nets[0], nets[i], batch, 0.0, "threads");
        for (int i = 0; i < most; i++) {
            mica_net_destroy(nets[i]);
            mica_context_destroy(ctx[i]);
        }
    }
}

#if !defined(MICA_NO_THREADS)

/* The bytes of weights that are prepared within a budget; SIZE_MAX: it is refused. */
static size_t prepared_within(size_t budget, int threads, size_t *total)
{
    mica_context *ctx = NULL;
    mica_net *net = NULL;
    test_random r = test_seed(4);
    size_t bytes = SIZE_MAX;
    if (!CHECK(mica_context_create(&ctx, &(mica_context_opts){.threads = threads}) == MICA_OK))
        return bytes;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    build_deep(net, &r, 1);
    mica_status status = mica_net_compile(net, &(mica_compile_opts){.prepare = true, .budget = budget});
    if (CHECK_MSG(status == MICA_OK || (status == MICA_ERR_MEMORY && threads > 1), "%s", mica_error(ctx)) &&
        status == MICA_OK) {
        bytes = prepared_bytes(net);
        *total = mica_net_plan(net)->total;
        CHECK(budget == 0 || *total <= budget);
    }
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return bytes;
}

/* Those that fit beside one thread's scratch: more threads have the same, or are refused. */
TEST(prepare_within_a_budget_does_not_depend_on_threads)
{
    size_t least = 0, most = 0, total = 0;
    size_t all = prepared_within(0, 1, &least);
    CHECK(all > 0 && prepared_within(0, 3, &most) == all && most > least);
    CHECK(prepared_within(most, 3, &total) == all);
    CHECK(prepared_within(least - 1, 1, &total) == 0 && prepared_within(least - 1, 3, &total) != all);
    for (size_t budget = least; budget < most; budget += (most - least + 7) / 8) {
        size_t one = prepared_within(budget, 1, &total), three = prepared_within(budget, 3, &total);
        CHECK_MSG(one == all && (three == all || three == SIZE_MAX),
                  "%zu bytes: %zu prepared, with threads %zu", budget, one, three);
    }
}

#endif

/* ---- Where weights live ---- */

enum { ROWS = 9, WIDTH = 33, UNITS = 40 };

static void build_one(mica_net *net, test_random *r, mica_index batch)
{
    (void)r;
    mica_value x = mica_net_input(net, "x", MICA_F32, 2,
                                  (mica_index[]){mica_net_size(net, "batch", batch), WIDTH});
    mica_net_output(net, "y", mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = UNITS}));
}

TEST(prepare_follows_weights_when_derived_again)
{
    mica_context *ctx = test_context(2);
    mica_net *plain = make_net(ctx, build_one, 3, ROWS, false, NULL),
             *prepared = make_net(ctx, build_one, 3, ROWS, true, NULL);
    REQUIRE(plain != NULL && prepared != NULL);
    mica_index step = 64 / (mica_index)sizeof(float);
    CHECK(prepared_bytes(prepared) >= UNITS * WIDTH * sizeof(float) && prepared_bytes(prepared) % 64 == 0);
    CHECK(mica_net_plan(prepared)->total <=
          mica_net_plan(plain)->total + prepared_bytes(prepared)); /* no more than they */
    CHECK(difference(plain, prepared, 1) == 0.0);
    mica_tensor w[2];
    CHECK_OK(ctx, mica_net_tensor(plain, &w[0], "fc.weight"));
    CHECK_OK(ctx, mica_net_tensor(prepared, &w[1], "fc.weight"));
    for (mica_index i = 0; i < UNITS * WIDTH; i += step)
        ((float *)w[0].data)[i] = ((float *)w[1].data)[i] = 2.0f;
    CHECK(difference(plain, prepared, 2) > 0.0); /* it has read the old ones */
    CHECK_OK(ctx, mica_net_derive(prepared));
    CHECK(difference(plain, prepared, 2) == 0.0);
    CHECK_OK(ctx, mica_net_initialize(plain, 99));
    CHECK_OK(ctx, mica_net_initialize(prepared, 99));
    CHECK(difference(plain, prepared, 3) == 0.0);
    mica_net_destroy(plain);
    mica_net_destroy(prepared);
}

TEST(prepare_of_shared_weights)
{
    mica_context *ctx = test_context(1);
    mica_net *owner = make_net(ctx, build_one, 3, ROWS, false, NULL);
    REQUIRE(owner != NULL);
    mica_net *user = make_net(ctx, build_one, 3, ROWS, true, owner);
    REQUIRE(user != NULL);
    CHECK(mica_net_plan(user)->kind_bytes[MICA_BUFFER_PARAMETER] == 0 && prepared_bytes(user) > 0);
    compare(owner, user, ROWS, 0.0, "shared weights");
    mica_net_destroy(user);
    mica_net_destroy(owner);
}

/* The weights of linear from each home, through a view too, and two layers that share them. */
typedef enum home { LENT, TURNED, KEPT, STATE, DERIVED, VIEW, TIED, HOMES } home;

static mica_net *net_of_home(mica_context *ctx, home from, float *numbers, bool prepare)
{
    mica_net *net;
    mica_index dims[2] = {WIDTH, WIDTH};
    mica_tensor lent = mica_2d(numbers, WIDTH, WIDTH);
    if (from == TURNED)
        lent.stride[0] = 1, lent.stride[1] = WIDTH;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 2,
                                  (mica_index[]){mica_net_size(net, "batch", ROWS), WIDTH}),
               w;
    if (from == KEPT || from == STATE)
        w = mica_net_kept(net, "w", from == KEPT ? MICA_KEPT_STATISTICS : MICA_KEPT_STATE, MICA_F32, 2, dims,
                          0.5f);
    else
        w = mica_net_lent(net, "w", &lent);
    if (from == DERIVED)
        w = mica_net_derived(net, "square", MICA_F32, 2, dims, mica_op_find("square"), &w, 1, NULL);
    if (from == VIEW)
        w = mica_net_op(net, NULL, "reshape", &w, 1, &(mica_shape_opts){.rank = 2, .dims = {WIDTH, WIDTH}});
    mica_value y = mica_net_call(net, "a", &mica_op_linear, (mica_value[]){x, w}, 2, NULL);
    if (from == TIED)
        y = mica_net_call(net, "b", &mica_op_linear, (mica_value[]){y, w}, 2, NULL);
    mica_net_output(net, "y", y);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.prepare = prepare, .debug = from == LENT}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 5));
    return net;
}

TEST(prepare_of_every_home)
{
    mica_context *ctx = test_context(2);
    float numbers[WIDTH * WIDTH];
    test_random r = test_seed(8);
    for (size_t i = 0; i < WIDTH * WIDTH; i++)
        numbers[i] = (float)test_uniform(&r, -1.0, 1.0);
    size_t bytes[HOMES];
    for (home from = LENT; from < HOMES; from++) {
        mica_net *plain = net_of_home(ctx, from, numbers, false),
                 *prepared = net_of_home(ctx, from, numbers, true);
        REQUIRE(plain != NULL && prepared != NULL);
        bytes[from] = prepared_bytes(prepared);
        compare(plain, prepared, ROWS, 0.0, "weights of some home");
        char text[4096];
        CHECK(mica_net_program_print(text, sizeof text, prepared) < sizeof text);
        CHECK((strstr(text, "linear_packed") != NULL) == (from != STATE));
        mica_net_destroy(plain);
        mica_net_destroy(prepared);
    }
    CHECK(bytes[STATE] == 0); /* a step may change it */
    for (home from = LENT; from < HOMES; from++)
        CHECK(from == STATE ||
              (bytes[from] == bytes[LENT] && bytes[from] > 0)); /* tied ones are there once */
}

TEST(prepare_is_not_for_training_nor_for_few_rows)
{
    mica_context *ctx = test_context(1);
    mica_net *net = make_net(ctx, build_one, 3, 4, true, NULL);
    REQUIRE(net != NULL);
    CHECK(prepared_bytes(net) == 0);
    mica_net_destroy(net);

    REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
    test_random r = test_seed(1);
    build_one(net, &r, ROWS);
    mica_value target = mica_net_input(net, "t", MICA_F32, 2, (mica_index[]){ROWS, UNITS});
    mica_net_mse(net, mica_net_named(net, "y"), target, NULL);
    CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .prepare = true}),
                MICA_ERR_ARGUMENT, "argument error: net_compile: prepared weights cannot be trained");
    /* A budget is for what a net needs. */
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    size_t least = mica_net_plan(net)->total;
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.prepare = true, .budget = least}));
    CHECK(prepared_bytes(net) == 0 && mica_net_plan(net)->total == least);
    /* Compiling again forgets what was prepared. */
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.prepare = true}));
    size_t bytes = prepared_bytes(net), total = mica_net_plan(net)->total;
    CHECK(bytes > 0);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.prepare = true}));
    CHECK(prepared_bytes(net) == bytes && mica_net_plan(net)->total == total);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true}));
    CHECK(prepared_bytes(net) == 0);
    mica_net_destroy(net);
}
