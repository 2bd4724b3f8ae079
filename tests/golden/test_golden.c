/* Pooling, normalization, attention and losses against PyTorch's numbers. */
#include <string.h>

#include "golden/golden.h"

/* The result of a call: checked to succeed, compared with the case's tensor of that name, and released. */
#define RESULT(ctx, c, name, tolerance, out, call)    \
    do {                                              \
        mica_tensor out = golden_like(c, name);       \
        if (CHECK_OK(ctx, call))                      \
            golden_compare(c, name, &out, tolerance); \
        golden_release(&out);                         \
    } while (0)

static const mica_tensor *or_null(const mica_tensor *t) { return t->data != NULL ? t : NULL; }
static bool is(const golden_case *c, const char *op) { return strcmp(c->op, op) == 0; }

/* ---- Pooling ---- */

static mica_pooling_opts pooling_options(const golden_case *c)
{
    mica_pooling_opts o = {.ceil_mode = golden_value(c, "ceil_mode", 0, 0.0) != 0.0,
                           .exclude_pad = golden_value(c, "exclude_pad", 0, 0.0) != 0.0};
    for (int k = 0; k < 2; k++) {
        o.kernel[k] = (mica_index)golden_value(c, "kernel", k, 0.0);
        o.stride[k] = (mica_index)golden_value(c, "stride", k, 0.0);
        o.pad[k] = (mica_index)golden_value(c, "pad", k, 0.0);
        o.dilation[k] = (mica_index)golden_value(c, "dilation", k, 0.0);
    }
    return o;
}

static void check_max_pool(mica_context *ctx, const golden_case *c)
{
    mica_pooling_opts o = pooling_options(c);
    const mica_tensor *x = golden_find(c, "x"), *dy = golden_find(c, "dy");
    bool flat = is(c, "max_pool1d");
    mica_tensor y = golden_like(c, "y"), indices = golden_like(c, "indices");
    CHECK_OK(ctx,
             flat ? mica_max_pool1d(ctx, &y, &indices, x, &o) : mica_max_pool2d(ctx, &y, &indices, x, &o));
    golden_compare(c, "y", &y, 0.0);
    golden_compare(c, "indices", &indices, 0.0);
    RESULT(ctx, c, "dx", 1e-6, dx,
           flat ? mica_max_pool1d_backward(ctx, &dx, dy, &indices)
                : mica_max_pool2d_backward(ctx, &dx, dy, &indices));
    golden_release(&y);
    golden_release(&indices);
}

static void check_average_pool(mica_context *ctx, const golden_case *c)
{
    mica_pooling_opts o = pooling_options(c);
    const mica_tensor *x = golden_find(c, "x"), *dy = golden_find(c, "dy");
    if (is(c, "avg_pool1d")) {
        RESULT(ctx, c, "y", 1e-6, y, mica_avg_pool1d(ctx, &y, x, &o));
        RESULT(ctx, c, "dx", 1e-6, dx, mica_avg_pool1d_backward(ctx, &dx, dy, &o));
    } else if (is(c, "avg_pool2d")) {
        RESULT(ctx, c, "y", 1e-6, y, mica_avg_pool2d(ctx, &y, x, &o));
        RESULT(ctx, c, "dx", 1e-6, dx, mica_avg_pool2d_backward(ctx, &dx, dy, &o));
    } else if (is(c, "adaptive_avg_pool1d")) {
        RESULT(ctx, c, "y", 1e-6, y, mica_adaptive_avg_pool1d(ctx, &y, x));
        RESULT(ctx, c, "dx", 1e-6, dx, mica_adaptive_avg_pool1d_backward(ctx, &dx, dy));
    } else if (is(c, "adaptive_avg_pool2d")) {
        RESULT(ctx, c, "y", 1e-6, y, mica_adaptive_avg_pool2d(ctx, &y, x));
        RESULT(ctx, c, "dx", 1e-6, dx, mica_adaptive_avg_pool2d_backward(ctx, &dx, dy));
    } else {
        RESULT(ctx, c, "y", 1e-6, y, mica_global_avg_pool(ctx, &y, x));
        RESULT(ctx, c, "dx", 1e-6, dx, mica_global_avg_pool_backward(ctx, &dx, dy));
    }
}

TEST(golden_pool)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load("pool");
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        if (strncmp(c->op, "max", 3) == 0)
            check_max_pool(ctx, c);
        else
            check_average_pool(ctx, c);
    }
    golden_free(&file);
}

/* ---- Normalization ---- */

static mica_status norm_forward(mica_context *ctx, const golden_case *c, const mica_tensor *y,
                                const mica_norm_opts *o)
{
    const mica_tensor *x = golden_find(c, "x"), *gamma = golden_find(c, "gamma"),
                      *beta = golden_find(c, "beta");
    if (is(c, "layer_norm"))
        return mica_layer_norm(ctx, y, x, gamma, beta, o);
    if (is(c, "rms_norm"))
        return mica_rms_norm(ctx, y, x, gamma, o);
    if (is(c, "group_norm"))
        return mica_group_norm(ctx, y, x, gamma, beta, o);
    if (is(c, "instance_norm"))
        return mica_instance_norm(ctx, y, x, gamma, beta, o);
    return mica_batch_norm(ctx, y, x, gamma, beta, o);
}

static mica_status norm_backward(mica_context *ctx, const golden_case *c, const mica_norm_grads *grads,
                                 const mica_norm_saved *saved)
{
    const mica_tensor *x = golden_find(c, "x"), *gamma = golden_find(c, "gamma"), *dy = golden_find(c, "dy");
    if (is(c, "layer_norm"))
        return mica_layer_norm_backward(ctx, grads, dy, x, gamma, saved);
    if (is(c, "rms_norm"))
        return mica_rms_norm_backward(ctx, grads, dy, x, gamma, saved);
    if (is(c, "group_norm"))
        return mica_group_norm_backward(ctx, grads, dy, x, gamma, saved);
    if (is(c, "instance_norm"))
        return mica_instance_norm_backward(ctx, grads, dy, x, gamma, saved);
    return mica_batch_norm_backward(ctx, grads, dy, x, gamma, saved);
}

static mica_tensor copy_of(const golden_case *c, const char *name)
{
    const mica_tensor *t = golden_find(c, name);
    mica_tensor copy = golden_like(c, name);
    if (t != NULL)
        memcpy(copy.data, t->data, mica_tensor_bytes(t));
    return copy;
}

static void check_norm(mica_context *ctx, const golden_case *c)
{
    enum { Y, MEAN, RSTD, RUNNING_MEAN, RUNNING_VAR, DX, DGAMMA, DBETA, COUNT };
    static const char *const names[COUNT] = {"y",       "mean", "rstd",   "new_mean",
                                             "new_var", "dx",   "dgamma", "dbeta"};
    mica_tensor t[COUNT];
    for (int k = 0; k < COUNT; k++)
        t[k] = k == RUNNING_MEAN  ? copy_of(c, "running_mean")
               : k == RUNNING_VAR ? copy_of(c, "running_var")
                                  : golden_like(c, names[k]);
    mica_norm_opts o = {.eps = (float)golden_value(c, "eps", 0, 0.0),
                        .axes = (int)golden_value(c, "axes", 0, 0.0),
                        .groups = (int)golden_value(c, "groups", 0, 0.0),
                        .momentum = (float)golden_value(c, "momentum", 0, 0.0),
                        .inference = golden_value(c, "inference", 0, 0.0) != 0.0,
                        .mean = or_null(&t[MEAN]),
                        .rstd = or_null(&t[RSTD]),
                        .running_mean = or_null(&t[RUNNING_MEAN]),
                        .running_var = or_null(&t[RUNNING_VAR])};
    CHECK_OK(ctx, norm_forward(ctx, c, &t[Y], &o));
    mica_norm_grads grads = {&t[DX], or_null(&t[DGAMMA]), or_null(&t[DBETA])};
    mica_norm_saved saved = {or_null(&t[MEAN]), or_null(&t[RSTD]), o.inference};
    CHECK_OK(ctx, norm_backward(ctx, c, &grads, &saved));
    for (int k = 0; k < COUNT; k++) {
        golden_compare(c, names[k], &t[k], 5e-6);
        golden_release(&t[k]);
    }
}

TEST(golden_norm)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load("norm");
    for (size_t i = 0; i < file.count; i++)
        check_norm(ctx, &file.cases[i]);
    golden_free(&file);
}

/* ---- Attention ---- */

TEST(golden_attention)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load("attention");
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        mica_tensor out = golden_like(c, "out"), lse = golden_like(c, "lse"), dq = golden_like(c, "dq");
        mica_tensor dk = golden_like(c, "dk"), dv = golden_like(c, "dv");
        mica_attention_opts o = {.scale = (float)golden_value(c, "scale", 0, 0.0),
                                 .causal = golden_value(c, "causal", 0, 0.0) != 0.0,
                                 .mask = golden_find(c, "mask"),
                                 .lse = &lse};
        mica_attention_saved saved = {golden_find(c, "q"), golden_find(c, "k"), golden_find(c, "v"), &out,
                                      &lse};
        CHECK_OK(ctx, mica_attention(ctx, &out, saved.q, saved.k, saved.v, &o));
        CHECK_OK(ctx, mica_attention_backward(ctx, &(mica_attention_grads){&dq, &dk, &dv},
                                              golden_find(c, "dout"), &saved, &o));
        mica_tensor *results[] = {&out, &lse, &dq, &dk, &dv};
        static const char *const names[] = {"out", "lse", "dq", "dk", "dv"};
        for (int k = 0; k < 5; k++) {
            golden_compare(c, names[k], results[k], 5e-6);
            golden_release(results[k]);
        }
    }
    golden_free(&file);
}

/* ---- Losses ---- */

typedef mica_status loss_fn(mica_context *ctx, const mica_tensor *loss, const mica_tensor *grad,
                            const mica_tensor *pred, const mica_tensor *target, const mica_loss_opts *opts);

static loss_fn *loss_by_name(const char *name)
{
    static const struct {
        const char *name;
        loss_fn *fn;
    } losses[] = {{"mse_loss", mica_mse_loss},
                  {"l1_loss", mica_l1_loss},
                  {"huber_loss", mica_huber_loss},
                  {"bce_loss", mica_bce_loss},
                  {"bce_logits_loss", mica_bce_logits_loss},
                  {"cross_entropy", mica_cross_entropy},
                  {"cross_entropy_probs", mica_cross_entropy_probs}};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        if (strcmp(losses[i].name, name) == 0)
            return losses[i].fn;
    return NULL;
}

TEST(golden_loss)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load("loss");
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        loss_fn *fn = loss_by_name(c->op);
        REQUIRE(fn != NULL);
        mica_tensor loss = golden_like(c, "loss"), grad = golden_like(c, "grad");
        mica_loss_opts o = {.reduction = (mica_loss_reduction)golden_value(c, "reduction", 0, 0.0),
                            .delta = (float)golden_value(c, "delta", 0, 0.0),
                            .smoothing = (float)golden_value(c, "smoothing", 0, 0.0),
                            .ignore = golden_value(c, "ignore", 0, 0.0) != 0.0,
                            .ignore_index = (int64_t)golden_value(c, "ignore_index", 0, 0.0),
                            .class_weights = golden_find(c, "class_weights")};
        CHECK_OK(ctx, fn(ctx, &loss, &grad, golden_find(c, "pred"), golden_find(c, "target"), &o));
        golden_compare(c, "loss", &loss, 2e-6);
        golden_compare(c, "grad", &grad, 2e-6);
        golden_release(&loss);
        golden_release(&grad);
    }
    golden_free(&file);
}
