/* Operations of bytes: element by element, pooling, dense layers, convolutions. */
#include <stdio.h>
#include <string.h>

#include "export/emit_int8.h"

limit_words limit_words_of(const call *c, int least)
{
    int low = call_int(c, "low", 0), high = call_int(c, "high", 0);
    limit_words words;
    bool all = low == 0 && high == 0;
    snprintf(words.text, sizeof words.text, "%d, %d", all ? least : low, all ? 127 : high);
    return words;
}

static limit_words limits_of(const call *c) { return limit_words_of(c, -127); }

/* ---- Element by element ---- */

static void emit_quantize(emitter *e, const call *c)
{
    float factor = 1.0f / (float)call_number(c, "scale", 0);
    use_kernel(e, "int8_quantize");
    emit(e, "int8_quantize(%s, %s, %zu, %s);", out_name(e, 0), in_name(e, 0), out_value(e, 0)->count,
         float_text((double)factor));
}

static void emit_dequantize(emitter *e, const call *c)
{
    use_kernel(e, "int8_dequantize");
    emit(e, "int8_dequantize(%s, %s, %zu, %s);", out_name(e, 0), in_name(e, 0), out_value(e, 0)->count,
         float_text(call_number(c, "scale", 0)));
}

static void emit_rescale(emitter *e, const call *c)
{
    use_kernel(e, "int8_rescale");
    emit(e, "int8_rescale(%s, %s, %zu, %d, %d, %s);", out_name(e, 0), in_name(e, 0), out_value(e, 0)->count,
         call_int(c, "multiplier", 0), call_int(c, "shift", 0), limits_of(c).text);
}

static void emit_add(emitter *e, const call *c)
{
    use_kernel(e, "int8_add");
    emit(e, "int8_add(%s, %s, %s, %zu, %d, %d, %d, %s);", out_name(e, 0), in_name(e, 0), in_name(e, 1),
         out_value(e, 0)->count, call_int(c, "multiplier", 0), call_int(c, "multiplier", 1),
         call_int(c, "shift", 0), limits_of(c).text);
}

/* ---- Pooling ---- */

/* [..., H, W]; [N, C, L] is one row where its windows are. */
static image planes_of(const value *v, const call *c)
{
    bool flat = v->rank == 3 && call_int(c, "kernel", 0) == 1;
    image m = {.count = 1, .channels = 1, .rows = 1, .columns = (int)v->dim[v->rank - 1]};
    if (!flat)
        m.rows = (int)v->dim[v->rank - 2];
    m.channels = m.rows * m.columns > 0 ? (int)v->count / (m.rows * m.columns) : 0;
    return m;
}

static void emit_max_pool(emitter *e, const call *c)
{
    use_kernel(e, "int8_max_pool");
    emit_pool_shape(e, planes_of(in_value(e, 0), c), planes_of(out_value(e, 0), c), "");
    emit(e, "int8_max_pool(%s, %s, &windows);", out_name(e, 0), in_name(e, 0));
}

static void emit_avg_pool(emitter *e, const call *c)
{
    use_kernel(e, "int8_avg_pool");
    emit_pool_shape(e, planes_of(in_value(e, 0), c), planes_of(out_value(e, 0), c), "");
    emit(e, "int8_avg_pool(%s, %s, &windows, %d, %d, %s);", out_name(e, 0), in_name(e, 0),
         call_int(c, "multiplier", 0), call_int(c, "shift", 0), limits_of(c).text);
}

static void emit_global_avg_pool(emitter *e, const call *c)
{
    const value *x = in_value(e, 0);
    int planes = (int)(x->dim[0] * x->dim[1]);
    use_kernel(e, "int8_global_avg_pool");
    emit(e, "int8_global_avg_pool(%s, %s, %d, %d, %d, %d, %s);", out_name(e, 0), in_name(e, 0), planes,
         (int)x->count / planes, call_int(c, "multiplier", 0), call_int(c, "shift", 0), limits_of(c).text);
}

/* ---- Dense layers ---- */

static void emit_linear(emitter *e, const call *c)
{
    const value *x = in_value(e, INT8_X), *y = out_value(e, 0);
    const char *kernel = target_has_vectors(e->g->target) ? "int8_dense_mve"
                         : target_has_pairs(e->g->target) ? "int8_dense_pairs"
                                                          : "int8_dense";
    use_kernel(e, kernel);
    emit(e, "%s(%s, %s, %s, %s, %s, %s,", kernel, out_name(e, 0), in_name(e, INT8_X), in_name(e, INT8_W),
         in_name(e, INT8_BIAS), in_name(e, INT8_MULTIPLIER), in_name(e, INT8_SHIFT));
    emit(e, "    %d, %d, %d, %s);", rows_of(x), columns_of(y), columns_of(x), limits_of(c).text);
}

/* ---- Convolutions ---- */

static void put_weights(emitter *e, const char *sizes)
{
    emit(e, "    %s, %s, %s, %s, %s);", in_name(e, INT8_W), in_name(e, INT8_BIAS),
         in_name(e, INT8_MULTIPLIER), in_name(e, INT8_SHIFT), sizes);
}

/* Bytes of one patch, where four of them are laid out: as many floats as all have. */
static size_t patch_bytes(const graph *g, const call *c)
{
    const value *w = &g->values[c->in[INT8_W]];
    return w->count / (size_t)w->dim[0];
}

/* Patches pay if several outputs read them. */
static size_t padded_scratch(const graph *g, const call *c)
{
    const value *w = &g->values[c->in[INT8_W]];
    bool several = w->dim[0] / call_size(c, "groups", 0) >= INT8_FEW;
    return target_has_pairs(g->target) && several ? patch_bytes(g, c) : 0;
}

static void emit_conv(emitter *e, const call *c)
{
    char sizes[64];
    bool padded = padded_scratch(e->g, c) > 0;
    const char *kernel = padded ? "int8_conv_padded" : "int8_conv";
    use_kernel(e, kernel);
    emit_conv_shape(e, image_of(e->g, c->in[0]), image_of(e->g, c->out[0]), in_value(e, INT8_W), "");
    emit(e, "%s(%s, %s,", kernel, out_name(e, 0), in_name(e, INT8_X));
    if (padded)
        (void)scratch_name(e);
    snprintf(sizes, sizeof sizes, "&shape, %s%s", limits_of(c).text, padded ? ", (int8_t *)scratch" : "");
    put_weights(e, sizes);
}

static void emit_conv1x1(emitter *e, const call *c)
{
    image x = image_of(e->g, c->in[0]), y = image_of(e->g, c->out[0]);
    int groups = call_size(c, "groups", 0);
    char sizes[128];
    use_kernel(e, "int8_conv1x1");
    emit(e, "int8_conv1x1(%s, %s,", out_name(e, 0), in_name(e, INT8_X));
    snprintf(sizes, sizeof sizes, "%d, %d, %d, %d, %s", groups, x.channels / groups, y.channels / groups,
             y.rows * y.columns, limits_of(c).text);
    put_weights(e, sizes);
}

static void emit_shape(emitter *e, const call *c, image x, image y)
{
    const value *w = in_value(e, INT8_W);
    int groups = call_size(c, "groups", 0), rows = w->rank > 3 ? (int)w->dim[2] : 1;
    emit(e, "static const struct int8_shape shape = {");
    emit(e, "    .groups = %d, .channels = %d, .outputs = %d, .kernel_rows = %d, .kernel_columns = %d,",
         groups, x.channels / groups, y.channels / groups, rows, (int)w->dim[w->rank - 1]);
    emit(e, "    .rows = %d, .columns = %d, .stride = %d, .plane = %d, .out_stride = %d, .out_plane = %d,",
         y.rows, y.columns, x.stride, x.plane, y.stride, y.plane);
    int low = call_int(c, "low", 0), high = call_int(c, "high", 0);
    bool all = low == 0 && high == 0;
    emit(e, "    .low = %d, .high = %d,", all ? -127 : low, all ? 127 : high);
    emit(e, "};");
}

static size_t plane_scratch(const graph *g, const call *c)
{
    return int8_patches(c->numbers[INT8_KERNEL]) ? patch_bytes(g, c) : 0;
}

static void emit_conv_plane(emitter *e, const call *c)
{
    static const char *const kernels[] = {"",
                                          "",
                                          "int8_conv3x3",
                                          "int8_conv3x3_pool2",
                                          "int8_conv_wide",
                                          "int8_conv_wide_pool2",
                                          "int8_conv_pool2",
                                          "int8_conv_patches",
                                          "int8_conv_patches_pool2"};
    const char *kernel = kernels[c->numbers[INT8_KERNEL]], *to = out_name(e, 0);
    const value *x = root_of(e->g, c->in[0]), *y = root_of(e->g, c->out[0]);
    use_kernel(e, kernel);
    emit_shape(e, c, image_of(e->g, c->in[0]), image_of(e->g, c->out[0]));
    if (y->border > 0)
        emit(e, "memset(%s - %zu, 0, %zu);", to, value_inset(y), value_size(e->g, y));
    if (x->border > 0)
        emit(e, "%s(%s, %s - %zu,", kernel, to, in_name(e, INT8_X), value_inset(x));
    else
        emit(e, "%s(%s, %s,", kernel, to, in_name(e, INT8_X));
    if (plane_scratch(e->g, c) == 0)
        put_weights(e, "&shape");
    else {
        (void)scratch_name(e);
        put_weights(e, "&shape, (int8_t *)scratch");
    }
}

static void emit_each(emitter *e, const call *c)
{
    (void)c;
    emit(e, "for (int i = 0; i < %zu; i++)", out_value(e, 0)->count);
    emit(e, "    %s[i] = %s[0];", out_name(e, 0), in_name(e, 0));
}

static void emit_border(emitter *e, const call *c)
{
    image x = image_of(e->g, c->in[0]);
    const value *y = out_value(e, 0);
    use_kernel(e, "int8_border");
    emit(e, "int8_border(%s - %zu, %s, %d, %d, %d, %d);", out_name(e, 0), value_inset(y), in_name(e, 0),
         x.count * x.channels, x.rows, x.columns, y->border);
}

static const export_op int8_ops[] = {
    {.name = "quantize", .emit = emit_quantize},
    {.name = "dequantize", .emit = emit_dequantize},
    {.name = "int8_rescale", .emit = emit_rescale},
    {.name = "int8_add", .emit = emit_add},
    {.name = "int8_max_pool2d", .emit = emit_max_pool},
    {.name = "int8_avg_pool2d", .emit = emit_avg_pool},
    {.name = "int8_global_avg_pool", .emit = emit_global_avg_pool},
    {.name = "int8_linear", .emit = emit_linear},
    {.name = "int8_conv2d", .emit = emit_conv, .scratch = padded_scratch},
    {.name = "int8_conv1x1", .emit = emit_conv1x1},
    {.name = "int8_conv_plane", .emit = emit_conv_plane, .scratch = plane_scratch},
    {.name = "int8_border", .emit = emit_border},
    {.name = "int8_each", .emit = emit_each},
    {0},
};

const export_op *find_int8_op(const char *name)
{
    for (const export_op *op = int8_ops; op->name != NULL; op++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

bool takes_bytes(const char *name)
{
    static const char *const moves[] = {"concat", "transpose", "permute", "slice", "flip", "reshape", "copy"};
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        if (strcmp(name, moves[i]) == 0)
            return true;
    return find_int8_op(name) != NULL || strncmp(name, "affine_", strlen("affine_")) == 0;
}
