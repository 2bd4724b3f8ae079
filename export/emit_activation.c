/* Activations: loops over elements, each an expression. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "export/emit.h"

/* `x` stands for the element, `s` for the slope; in a gradient `d` for dy, and `y` for what the backward reads. */
typedef struct activation {
    const char *name, *kernel, *forward, *backward;
} activation;

static const activation activations[] = {
    {"relu", NULL, "x > 0.0f ? x : 0.0f", "y > 0.0f ? d : 0.0f"},
    {"relu6", NULL, "x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x", "y > 0.0f && y < 6.0f ? d : 0.0f"},
    {"leaky_relu", NULL, "x > 0.0f ? x : s * x", "y > 0.0f ? d : s * d"},
    {"elu", "expm1", "x > 0.0f ? x : s * expm1_f(x)", "y > 0.0f ? d : (y + s) * d"},
    {"sigmoid", "sigmoid", "sigmoid_f(x)", "d * y * (1.0f - y)"},
    {"tanh", "tanh", "tanh_f(x)", "d * (1.0f - y * y)"},
};
#define ACTIVATIONS ((int)(sizeof activations / sizeof activations[0]))

static const activation *find_named(const char *name)
{
    for (int i = 0; i < ACTIVATIONS; i++)
        if (strcmp(activations[i].name, name) == 0)
            return &activations[i];
    return NULL;
}

static const char *name_of(mica_activation kind)
{
    static const char *const names[] = {"",
#define ACTIVATION_NAME(CODE, name) #name,
                                        MICA_ACTIVATION_LIST(ACTIVATION_NAME)
#undef ACTIVATION_NAME
    };
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

static mica_activation fused(const call *c, const char *prefix, double *slope)
{
    char name[64];
    snprintf(name, sizeof name, "%sslope", prefix);
    *slope = call_number(c, name, 0);
    snprintf(name, sizeof name, "%sactivation", prefix);
    return (mica_activation)call_int(c, name, 0);
}

/* An expression with other words in place of its letters. */
static void put_expression(text *out, const char *expression, const char *x, const char *y, const char *d,
                           double slope)
{
    for (const char *p = expression; *p != '\0'; p++) {
        bool alone = (p == expression || !(isalnum((unsigned char)p[-1]) || p[-1] == '_' || p[-1] == '.')) &&
                     !isalnum((unsigned char)p[1]) && p[1] != '_';
        const char *name = !alone ? NULL : *p == 'x' ? x : *p == 'y' ? y : *p == 'd' ? d : NULL;
        if (name != NULL)
            text_add(out, name);
        else if (alone && *p == 's')
            text_add(out, float_text(slope));
        else
            text_put(out, "%c", *p);
    }
}

/* The elements that an expression is made of ("h[i]"), and those that it is written to. */
typedef struct loop {
    const char *to, *sign, *x, *y, *d;
    size_t count;
    double slope;
} loop;

static void emit_loop(emitter *e, const char *expression, const loop *l)
{
    text line = {0};
    put_expression(&line, expression, l->x, l->y, l->d, l->slope);
    emit(e, "for (int i = 0; i < %zu; i++)", l->count);
    emit(e, "    %s %s %s;", l->to, l->sign, line.bytes != NULL ? line.bytes : "");
    text_free(&line);
}

/* "h[i]" */
typedef struct element {
    char text[80];
} element;

static element element_of(const char *name)
{
    element words;
    snprintf(words.text, sizeof words.text, "%s[i]", name);
    return words;
}

static void emit_forward_loop(emitter *e, const activation *a, const char *to, const char *from, size_t count,
                              double slope)
{
    if (a->kernel != NULL)
        use_kernel(e, a->kernel);
    emit_loop(e, a->forward,
              &(loop){.to = element_of(to).text,
                      .sign = "=",
                      .x = element_of(from).text,
                      .count = count,
                      .slope = slope});
}

void emit_activation(emitter *e, const char *name, size_t count, const char *prefix)
{
    double slope;
    mica_activation kind = fused(e->c, prefix, &slope);
    const activation *a = kind != MICA_NO_ACTIVATION ? find_named(name_of(kind)) : NULL;
    if (a != NULL)
        emit_forward_loop(e, a, name, name, count, slope);
}

const char *refuse_activation(const call *c, const char *prefix)
{
    double slope;
    mica_activation kind = fused(c, prefix, &slope);
    return kind == MICA_NO_ACTIVATION || find_named(name_of(kind)) != NULL ? NULL : name_of(kind);
}

static void emit_forward(emitter *e, const call *c)
{
    emit_forward_loop(e, find_named(c->name), out_name(e, 0), in_name(e, 0), out_value(e, 0)->count,
                      call_number(c, "s", 0));
}

static void emit_backward(emitter *e, const call *c)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(strlen(c->name) - strlen("_backward")), c->name);
    emit_loop(e, find_named(name)->backward,
              &(loop){.to = element_of(out_name(e, 0)).text,
                      .sign = c->add & 1u ? "+=" : "=",
                      .y = element_of(in_name(e, 1)).text,
                      .d = element_of(in_name(e, 0)).text,
                      .count = out_value(e, 0)->count,
                      .slope = call_number(c, "s", 0)});
}

int activation_of_gradient(const char *name)
{
    for (int i = 0; i < ACTIVATIONS; i++) {
        size_t length = strlen(activations[i].name);
        if (strncmp(name, activations[i].name, length) == 0 && strcmp(name + length, "_backward") == 0)
            return i;
    }
    return NONE;
}

void put_activation_gradient(text *out, int number, const char *y, const char *d, double slope)
{
    put_expression(out, activations[number].backward, "", y, d, slope);
}

static void emit_softmax(emitter *e, const call *c)
{
    const value *x = in_value(e, 0);
    int axis = call_int(c, "axis", 0), inner = 1;
    axis = axis < 0 ? axis + x->rank : axis;
    for (int k = axis + 1; k < x->rank; k++)
        inner *= (int)x->dim[k];
    int count = (int)x->dim[axis];
    use_kernel(e, "softmax_axis");
    emit(e, "softmax_axis(%s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0),
         (int)x->count / (count * inner), count, inner);
}

const export_op export_activation_ops[] = {
    {.name = "relu", .emit = emit_forward},
    {.name = "relu6", .emit = emit_forward},
    {.name = "leaky_relu", .emit = emit_forward},
    {.name = "elu", .emit = emit_forward},
    {.name = "sigmoid", .emit = emit_forward},
    {.name = "tanh", .emit = emit_forward},
    {.name = "relu_backward", .emit = emit_backward, .adds = 1},
    {.name = "relu6_backward", .emit = emit_backward, .adds = 1},
    {.name = "leaky_relu_backward", .emit = emit_backward, .adds = 1},
    {.name = "elu_backward", .emit = emit_backward, .adds = 1},
    {.name = "sigmoid_backward", .emit = emit_backward, .adds = 1},
    {.name = "tanh_backward", .emit = emit_backward, .adds = 1},
    {.name = "softmax", .emit = emit_softmax},
    {0},
};
