/* Convolutions against PyTorch's numbers. */
#include <string.h>

#include "golden/golden.h"

#define TOLERANCE 5e-6

static mica_index number(const golden_case *c, const char *name, int i)
{
    return (mica_index)golden_value(c, name, i, 0.0);
}

/* All results of a case, whatever the kind of convolution. */
typedef struct results {
    mica_tensor y, dx, dw, db;
} results;

static void check_2d(mica_context *ctx, const golden_case *c, results *r)
{
    mica_conv2d_opts o = {.groups = number(c, "groups", 0)};
    for (int k = 0; k < 2; k++) {
        o.stride[k] = number(c, "stride", k);
        o.pad[k] = number(c, "pad", k);
        o.dilation[k] = number(c, "dilation", k);
        o.output_pad[k] = number(c, "output_pad", k);
    }
    const mica_tensor *x = golden_find(c, "x"), *w = golden_find(c, "w"), *dy = golden_find(c, "dy");
    if (strcmp(c->op, "conv2d") == 0) {
        CHECK_OK(ctx, mica_conv2d(ctx, &r->y, x, w, golden_find(c, "b"), &o));
        CHECK_OK(ctx, mica_conv2d_backward_input(ctx, &r->dx, dy, w, &o));
        CHECK_OK(ctx, mica_conv2d_backward_weight(ctx, &r->dw, dy, x, &o));
    } else {
        CHECK_OK(ctx, mica_conv_transpose2d(ctx, &r->y, x, w, golden_find(c, "b"), &o));
        CHECK_OK(ctx, mica_conv_transpose2d_backward_input(ctx, &r->dx, dy, w, &o));
        CHECK_OK(ctx, mica_conv_transpose2d_backward_weight(ctx, &r->dw, dy, x, &o));
    }
    if (r->db.data != NULL)
        CHECK_OK(ctx, mica_conv2d_backward_bias(ctx, &r->db, dy, NULL));
}

static void check_1d(mica_context *ctx, const golden_case *c, results *r)
{
    mica_conv1d_opts o = {.stride = number(c, "stride", 0),
                          .pad = number(c, "pad", 0),
                          .dilation = number(c, "dilation", 0),
                          .groups = number(c, "groups", 0),
                          .output_pad = number(c, "output_pad", 0)};
    const mica_tensor *x = golden_find(c, "x"), *w = golden_find(c, "w"), *dy = golden_find(c, "dy");
    if (strcmp(c->op, "conv1d") == 0) {
        CHECK_OK(ctx, mica_conv1d(ctx, &r->y, x, w, golden_find(c, "b"), &o));
        CHECK_OK(ctx, mica_conv1d_backward_input(ctx, &r->dx, dy, w, &o));
        CHECK_OK(ctx, mica_conv1d_backward_weight(ctx, &r->dw, dy, x, &o));
    } else {
        CHECK_OK(ctx, mica_conv_transpose1d(ctx, &r->y, x, w, golden_find(c, "b"), &o));
        CHECK_OK(ctx, mica_conv_transpose1d_backward_input(ctx, &r->dx, dy, w, &o));
        CHECK_OK(ctx, mica_conv_transpose1d_backward_weight(ctx, &r->dw, dy, x, &o));
    }
    if (r->db.data != NULL)
        CHECK_OK(ctx, mica_conv1d_backward_bias(ctx, &r->db, dy, NULL));
}

TEST(golden_conv)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load("conv");
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        results r = {golden_like(c, "y"), golden_like(c, "dx"), golden_like(c, "dw"), golden_like(c, "db")};
        if (strstr(c->op, "2d") != NULL)
            check_2d(ctx, c, &r);
        else
            check_1d(ctx, c, &r);
        mica_tensor *all[] = {&r.y, &r.dx, &r.dw, &r.db};
        static const char *const names[] = {"y", "dx", "dw", "db"};
        for (int k = 0; k < 4; k++) {
            golden_compare(c, names[k], all[k], TOLERANCE);
            golden_release(all[k]);
        }
    }
    golden_free(&file);
}
