/* Reductions over any axes, what spreads their gradients, and positions of extremes. */
#include <string.h>

#include "export/nest.h"

/* ---- Axes ---- */

static unsigned mask_of(const mica_reduction_opts *o, int rank)
{
    unsigned mask = 0;
    for (int k = 0; k < o->count; k++)
        mask |= 1u << (o->axes[k] < 0 ? o->axes[k] + rank : o->axes[k]);
    return o->count == 0 ? (1u << rank) - 1u : mask;
}

/* An axis of an operand that lacks those of the mask, or has them with size 1; the nest has the axes of `whole`. */
static void skip_axes(nest *n, int operand, const value *whole, unsigned mask, const int *place)
{
    mica_index step = 1;
    for (int k = whole->rank - 1; k >= 0; k--) {
        bool reduced = (mask >> k & 1u) != 0;
        n->stride[operand][place[k]] = reduced ? 0 : step;
        step *= reduced ? 1 : whole->dim[k];
    }
}

/* A nest over `whole` whose axes of the mask are the inner loops. place[k]: where axis k went. */
static void start_reduction(nest *n, const value *whole, unsigned mask, int place[MICA_MAX_RANK])
{
    nest_start(n, NULL);
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < whole->rank; k++)
            if (((mask >> k & 1u) != 0) == (pass == 1)) {
                place[k] = n->rank;
                nest_axis(n, whole->dim[k]);
            }
        if (pass == 0)
            n->split = n->rank;
    }
}

static int add_whole(nest *n, const char *name, const value *whole, const int *place)
{
    int number = nest_add(n, name);
    mica_index stride[MICA_MAX_RANK];
    strides_of(whole, stride);
    for (int k = 0; k < whole->rank; k++)
        n->stride[number][place[k]] = stride[k];
    return number;
}

/* ---- Reductions: sums of an expression, from a start, to a result ---- */

static double count_of(const value *whole, unsigned mask)
{
    double count = 1.0;
    for (int k = 0; k < whole->rank; k++)
        count *= mask >> k & 1u ? (double)whole->dim[k] : 1.0;
    return count;
}

static void emit_inner(emitter *e, nest *n, const char *line)
{
    nest_open_inner(e, n);
    emit(e, "%s", line);
    nest_close_inner(e, n);
}

typedef struct reduction {
    const char *name, *start, *step, *result; /* %s: the element; result NULL: sum / count */
} reduction;

static const reduction reductions[] = {
    {"sum", "0.0f", "sum += %s;", "sum"},
    {"sum_to", "0.0f", "sum += %s;", "sum"},
    {"mean", "0.0f", "sum += %s;", NULL},
    {"prod", "1.0f", "sum *= %s;", "sum"},
    {"amax", NULL, "sum = sum < %s ? %s : sum;", "sum"},
    {"amin", NULL, "sum = sum > %s ? %s : sum;", "sum"},
    {"norm", "0.0f", "sum += %s * %s;", "sqrt_f(sum)"},
};

static void put_line(char *line, size_t size, const char *format, const char *x)
{
    size_t at = 0;
    for (const char *p = format; *p != '\0' && at + 1 < size; p++) {
        if (p[0] == '%' && p[1] == 's') {
            size_t length = strlen(x);
            if (at + length + 1 >= size)
                break;
            memcpy(line + at, x, length);
            at += length;
            p++;
        } else {
            line[at++] = *p;
        }
    }
    line[at] = '\0';
}

static reduction find_reduction(const call *c)
{
    reduction r = {0};
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (strcmp(reductions[i].name, c->name) == 0)
            r = reductions[i];
    mica_norm_kind kind = strcmp(c->name, "norm") == 0 ? ((const mica_reduction_opts *)c->opts)->kind
                                                       : MICA_NORM_L2;
    if (kind == MICA_NORM_L1)
        r.step = "sum += %s < 0.0f ? -%s : %s;", r.result = "sum";
    if (kind == MICA_NORM_INF)
        r.step = "sum = %s > sum ? %s : -%s > sum ? -%s : sum;", r.result = "sum";
    return r;
}

static void emit_reduction(emitter *e, const value *whole, unsigned mask, const reduction *r)
{
    nest n;
    int place[MICA_MAX_RANK];
    char line[1024];
    start_reduction(&n, whole, mask, place);
    int x = add_whole(&n, in_name(e, 0), whole, place), y = nest_add(&n, out_name(e, 0));
    skip_axes(&n, y, whole, mask, place);
    nest_open_outer(e, &n);
    nest outer = n; /* the first element of each reduction: inner loops at 0 */
    outer.rank = n.split;
    if (r->result != NULL && strncmp(r->result, "sqrt_f", 6) == 0)
        use_kernel(e, "sqrt");
    emit(e, "float sum = %s;", r->start != NULL ? r->start : nest_at(&outer, x));
    put_line(line, sizeof line, r->step, nest_at(&n, x));
    emit_inner(e, &n, line);
    const char *assign = e->c->add & 1u ? "+=" : "=";
    if (r->result != NULL)
        emit(e, "%s %s %s;", nest_at(&outer, y), assign, r->result);
    else
        emit(e, "%s %s sum / %s;", nest_at(&outer, y), assign, float_text(count_of(whole, mask)));
    nest_close(e, &n);
}

static void emit_reduce(emitter *e, const call *c)
{
    reduction r = find_reduction(c);
    emit_reduction(e, in_value(e, 0), mask_of(c->opts, in_value(e, 0)->rank), &r);
}

/* Over the axes along which the output is smaller, or that it does not have. */
static void emit_sum_to(emitter *e, const call *c)
{
    const value *x = in_value(e, 0), *y = out_value(e, 0);
    unsigned mask = 0;
    for (int k = 0; k < x->rank; k++) {
        int own = k - (x->rank - y->rank);
        if (own < 0 || y->dim[own] != x->dim[k])
            mask |= 1u << k;
    }
    reduction r = find_reduction(c);
    emit_reduction(e, x, mask, &r);
}

static void emit_variance(emitter *e, const call *c)
{
    const mica_reduction_opts *o = c->opts;
    const value *whole = in_value(e, 0);
    unsigned mask = mask_of(o, whole->rank);
    nest n;
    int place[MICA_MAX_RANK];
    char line[600];
    double count = count_of(whole, mask);
    start_reduction(&n, whole, mask, place);
    int x = add_whole(&n, in_name(e, 0), whole, place), y = nest_add(&n, out_name(e, 0));
    skip_axes(&n, y, whole, mask, place);
    nest_open_outer(e, &n);
    nest outer = n;
    outer.rank = n.split;
    emit(e, "float mean = 0.0f, sum = 0.0f;");
    put_line(line, sizeof line, "mean += %s;", nest_at(&n, x));
    emit_inner(e, &n, line);
    emit(e, "mean /= %s;", float_text(count));
    put_line(line, sizeof line, "sum += (%s - mean) * (%s - mean);", nest_at(&n, x));
    emit_inner(e, &n, line);
    emit(e, "%s %s sum / %s;", nest_at(&outer, y), c->add & 1u ? "+=" : "=",
         float_text(count - o->correction));
    nest_close(e, &n);
}

static const char *refuse_variance(const graph *g, const call *c)
{
    const mica_reduction_opts *o = c->opts;
    const value *x = &g->values[c->in[0]];
    return count_of(x, mask_of(o, x->rank)) <= o->correction ? "the variance of too few elements" : NULL;
}

static void emit_dot(emitter *e, const call *c)
{
    emit(e, "float sum = 0.0f;");
    emit(e, "for (int i = 0; i < %zu; i++)", in_value(e, 0)->count);
    emit(e, "    sum += %s[i] * %s[i];", in_name(e, 0), in_name(e, 1));
    emit(e, "%s[0] %s sum;", out_name(e, 0), c->add & 1u ? "+=" : "=");
}

/* ---- Back: dy, broadcast over the reduced axes, times a factor and perhaps an input ---- */

static void emit_spread(emitter *e, const call *c)
{
    const mica_reduction_opts *o = c->opts;
    const value *whole = out_value(e, 0);
    unsigned mask = mask_of(o, whole->rank);
    bool times = c->ins > 1 && c->in[1] != NONE;
    double factor = 1.0, count = count_of(whole, mask);
    if (strcmp(c->name, "mean_backward") == 0)
        factor = 1.0 / count;
    if (strcmp(c->name, "variance_backward") == 0)
        factor = 2.0 / (count - o->correction);
    nest n;
    int place[MICA_MAX_RANK];
    for (int k = 0; k < MICA_MAX_RANK; k++)
        place[k] = k;
    nest_start(&n, whole);
    int to = nest_operand(&n, out_name(e, 0), whole), a = times ? nest_operand(&n, in_name(e, 0), whole) : 0;
    int dy = nest_add(&n, in_name(e, times ? 1 : 0));
    skip_axes(&n, dy, whole, mask, place);
    nest_open(e, &n);
    emit(e, "%s %s %s%s%s%s%s;", nest_at(&n, to), c->add & 1u ? "+=" : "=", times ? nest_at(&n, a) : "",
         times ? " * " : "", nest_at(&n, dy), factor != 1.0 ? " * " : "",
         factor != 1.0 ? float_text((double)(float)factor) : "");
    nest_close(e, &n);
}

/* ---- Positions ---- */

/* Sizes before and along an axis; returns those behind it. */
static int around_axis(const value *v, int axis, int *outer, int *count)
{
    int inner = 1;
    *outer = 1;
    if (axis == MICA_ALL_AXES) {
        *count = (int)v->count;
        return 1;
    }
    axis = axis < 0 ? axis + v->rank : axis;
    for (int k = 0; k < axis; k++)
        *outer *= (int)v->dim[k];
    for (int k = axis + 1; k < v->rank; k++)
        inner *= (int)v->dim[k];
    *count = (int)v->dim[axis];
    return inner;
}

static void emit_arg(emitter *e, const call *c)
{
    int outer, count,
        inner = around_axis(in_value(e, 0), ((const mica_arg_opts *)c->opts)->axis, &outer, &count);
    use_kernel(e, "arg_axis");
    emit(e, "arg_axis(%s, %s, %d, %d, %d, %d);", out_name(e, 0), in_name(e, 0), outer, count, inner,
         strcmp(c->name, "argmax") == 0);
}

static void emit_extreme_backward(emitter *e, const call *c)
{
    int outer, count, inner = around_axis(out_value(e, 0), call_int(c, "axis", 0), &outer, &count);
    use_kernel(e, "put_along_axis");
    emit(e, "put_along_axis(%s, %s, %s, %d, %d, %d);", out_name(e, 0), in_name(e, 0), in_name(e, 1), outer,
         count, inner);
}

/* ---- Along an axis ---- */

static void emit_along(emitter *e, const call *c, const char *kernel, int ins, const char *more)
{
    int outer, count, inner = around_axis(out_value(e, 0), call_int(c, "axis", 0), &outer, &count);
    use_kernel(e, kernel);
    if (ins == 1)
        emit(e, "%s(%s, %s, %d, %d, %d%s);", kernel, out_name(e, 0), in_name(e, 0), outer, count, inner,
             more);
    else
        emit(e, "%s(%s, %s, %s, %d, %d, %d%s);", kernel, out_name(e, 0), in_name(e, 0), in_name(e, 1), outer,
             count, inner, more);
}

static void emit_softmax(emitter *e, const call *c) { emit_along(e, c, "softmax_axis", 1, ""); }
static void emit_softmax_backward(emitter *e, const call *c)
{
    emit_along(e, c, "softmax_axis_backward", 2, "");
}
static void emit_log_softmax(emitter *e, const call *c) { emit_along(e, c, "log_softmax_axis", 1, ""); }
static void emit_log_softmax_backward(emitter *e, const call *c)
{
    emit_along(e, c, "log_softmax_axis_backward", 2, "");
}

static void emit_l2(emitter *e, const call *c)
{
    double eps = call_number(c, "eps", 0);
    char more[64];
    bool back = strcmp(c->name, "l2_normalize_backward") == 0;
    put_line(more, sizeof more, ", %s", float_text(eps != 0.0 ? eps : 1e-12));
    emit_along(e, c, back ? "l2_normalize_backward" : "l2_normalize", back ? 2 : 1, more);
}

#define REDUCE(op)                                  \
    {                                               \
        .name = #op, .emit = emit_reduce, .adds = 1 \
    }

const export_op export_reduce_ops[] = {
    REDUCE(sum),
    REDUCE(mean),
    REDUCE(prod),
    REDUCE(amax),
    REDUCE(amin),
    REDUCE(norm),
    {.name = "sum_to", .emit = emit_sum_to, .adds = 1},
    {.name = "variance", .emit = emit_variance, .adds = 1, .refuse = refuse_variance},
    {.name = "dot", .emit = emit_dot, .adds = 1},
    {.name = "sum_backward", .emit = emit_spread, .adds = 1},
    {.name = "mean_backward", .emit = emit_spread, .adds = 1},
    {.name = "mul_spread", .emit = emit_spread, .adds = 1},
    {.name = "variance_backward", .emit = emit_spread, .adds = 1},
    {.name = "argmax", .emit = emit_arg},
    {.name = "argmin", .emit = emit_arg},
    {.name = "amax_backward", .emit = emit_extreme_backward, .only_adds = 1},
    {.name = "extreme_backward", .emit = emit_extreme_backward, .only_adds = 1},
    {.name = "softmax", .emit = emit_softmax},
    {.name = "softmax_backward", .emit = emit_softmax_backward},
    {.name = "log_softmax", .emit = emit_log_softmax},
    {.name = "log_softmax_backward", .emit = emit_log_softmax_backward},
    {.name = "l2_normalize", .emit = emit_l2},
    {.name = "l2_normalize_backward", .emit = emit_l2},
    {.name = NULL},
};
