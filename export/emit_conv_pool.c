/* Convolution and max pooling in one: rewrite_conv_pool.c makes these calls. numbers[]: kernel, pad, window, relu. */
#include <stdio.h>
#include <string.h>

#include "export/emit.h"

typedef struct plane_words {
    char text[64];
} plane_words;

static plane_words plane_of(image m)
{
    plane_words words;
    snprintf(words.text, sizeof words.text, "(struct plane){%d, %d, %d, %d}", m.rows, m.columns, m.stride,
             m.plane);
    return words;
}

/* What is written must have zeros around it. */
static void clear_border(emitter *e, int k)
{
    const value *v = out_value(e, k);
    if (v->border > 0)
        emit(e, "memset(%s - %zu, 0, %zu * sizeof *%s);", out_name(e, k), value_inset(v), value_size(e->g, v),
             out_name(e, k));
}

static const char *kernel_of(const call *c)
{
    return c->numbers[0] != 3   ? "conv_pool"
           : c->numbers[2] == 1 ? "conv3x3"
           : c->numbers[2] == 2 ? "conv3x3_pool2"
                                : "conv_pool";
}

static void emit_forward(emitter *e, const call *c)
{
    image x = image_of(e->g, c->in[0]), y = image_of(e->g, c->out[0]);
    const char *least = c->numbers[3] ? "0.0f" : "-3.4e38f", *kernel = kernel_of(c);
    bool plain = strcmp(kernel, "conv3x3") == 0;
    use_kernel(e, kernel);
    clear_border(e, 0);
    emit(e, "%s(%s, %s, %s%s%d,", kernel, out_name(e, 0), plane_of(y).text, plain ? "" : out_name(e, 1),
         plain ? "" : ", ", y.channels);
    emit(e, "    %s, %s, %d, %d,", in_name(e, 0), plane_of(x).text, x.channels, c->numbers[1]);
    if (strcmp(kernel, "conv_pool") != 0)
        emit(e, "    %s, %s, %s);", in_name(e, 1), in_name(e, 2), least);
    else
        emit(e, "    %s, %s, %s, %d, %d);", in_name(e, 1), in_name(e, 2), least, c->numbers[0],
             c->numbers[2]);
}

static void emit_backward(emitter *e, const call *c)
{
    image x = image_of(e->g, c->in[2]), dy = image_of(e->g, c->in[0]);
    bool small = c->numbers[0] == 3;
    const char *kernel = small ? "conv3x3_pool_backward" : "conv_pool_backward";
    use_kernel(e, kernel);
    emit(e, "%s(%s, %s, %s, %s, %s,", kernel, out_name(e, 0), out_name(e, 1), out_name(e, 2), in_name(e, 0),
         plane_of(dy).text);
    emit(e, "    %s, %d, %s, %s, %d, %d,", in_name(e, 1), dy.channels, in_name(e, 2), plane_of(x).text,
         x.channels, c->numbers[1]);
    if (small)
        emit(e, "    %s, %d);", in_name(e, 3), c->numbers[2]);
    else
        emit(e, "    %s, %d, %d);", in_name(e, 3), c->numbers[0], c->numbers[2]);
}

static void emit_border(emitter *e, const call *c)
{
    image y = image_of(e->g, c->out[0]);
    use_kernel(e, "border");
    emit(e, "border(%s, %s, %s, %d, %d);", out_name(e, 0), plane_of(y).text, in_name(e, 0), y.channels,
         out_value(e, 0)->border);
}

static void emit_unborder(emitter *e, const call *c)
{
    image x = image_of(e->g, c->in[0]);
    use_kernel(e, "unborder");
    emit(e, "unborder(%s, %s, %s, %d, %d);", out_name(e, 0), in_name(e, 0), plane_of(x).text, x.channels,
         (int)(c->add & 1u));
}

const export_op export_conv_pool_ops[] = {
    {.name = "conv_pool", .title = "convolution, with relu and max pooling if any", .emit = emit_forward},
    {.name = "conv_pool_backward",
     .title = "gradients of weights, bias and input, where the maxima were",
     .emit = emit_backward,
     .only_adds = 7},
    {.name = "border", .title = "a border of zeros around each plane", .emit = emit_border},
    {.name = "unborder", .title = "without its border", .emit = emit_unborder, .adds = 1},
    {0},
};
