/* Operations on single elements, of shapes that broadcast: an expression in a loop nest. */
#include "export/formula.h"
#include "export/nest.h"

#include <stdio.h>
#include <string.h>

/* @a, @b, @c: elements of the inputs; @s, @t: the options' numbers. `kernels` are those that the expression calls. */
static const formula formulas[] = {
    {"add", "@a + @b", ""},
    {"sub", "@a - @b", ""},
    {"mul", "@a * @b", ""},
    {"div", "@a / @b", ""},
    {"min", "@a > @b ? @b : @a", ""},
    {"max", "@a < @b ? @b : @a", ""},
    {"pow", "pow_f(@a, @b)", "pow"},
    {"add_scaled", "@a + @s * @b", ""},
    {"lerp", "@a + @s * (@b - @a)", ""},
    {"add_scalar", "@a + @s", ""},
    {"sub_scalar", "@a - @s", ""},
    {"rsub_scalar", "@s - @a", ""},
    {"scale", "@a * @s", ""},
    {"div_scalar", "@a / @s", ""},
    {"rdiv_scalar", "@s / @a", ""},
    {"min_scalar", "@a > @s ? @s : @a", ""},
    {"max_scalar", "@a < @s ? @s : @a", ""},
    {"pow_scalar", "pow_f(@a, @s)", "pow"},
    {"clamp", "@a < @s ? @s : @a > @t ? @t : @a", ""},
    {"clamp_backward", "@b < @s || @b > @t ? 0.0f : @a", ""},
    {"neg", "-@a", ""},
    {"abs", "@a < 0.0f ? -@a : @a", ""},
    {"sign", "@a > 0.0f ? 1.0f : @a < 0.0f ? -1.0f : @a", ""},
    {"square", "@a * @a", ""},
    {"sqrt", "sqrt_f(@a)", "sqrt"},
    {"rsqrt", "1.0f / sqrt_f(@a)", "sqrt"},
    {"reciprocal", "1.0f / @a", ""},
    {"floor", "floor_f(@a)", "floor"},
    {"ceil", "-floor_f(-(@a))", "floor"},
    {"round", "round_f(@a)", "round"},
    {"exp", "exp_f(@a)", "exp"},
    {"expm1", "expm1_f(@a)", "expm1"},
    {"log", "log_f(@a)", "log"},
    {"log1p", "log1p_f(@a)", "log1p"},
    {"sin", "sin_from(@a, 0)", "sin"},
    {"cos", "sin_from(@a, 1)", "sin"},
    {"erf", "erf_f(@a)", "erf"},
    {"eq", "@a == @b", ""},
    {"ne", "@a != @b", ""},
    {"lt", "@a < @b", ""},
    {"le", "@a <= @b", ""},
    {"gt", "@a > @b", ""},
    {"ge", "@a >= @b", ""},
    {"isnan", "@a != @a", ""},
    {"isfinite", "@a - @a == 0.0f", ""},
    {"where", "@a != 0 ? @b : @c", ""},
    {"relu", "@a <= 0.0f ? 0.0f : @a", ""},
    {"relu_backward", "@b <= 0.0f ? 0.0f : @a", ""},
    {"relu6", "@a <= 0.0f ? 0.0f : @a > 6.0f ? 6.0f : @a", ""},
    {"relu6_backward", "@b <= 0.0f || @b >= 6.0f ? 0.0f : @a", ""},
    {"leaky_relu", "@a <= 0.0f ? @s * @a : @a", ""},
    {"leaky_relu_backward", "@b <= 0.0f ? @s * @a : @a", ""},
    {"elu", "@a <= 0.0f ? @s * expm1_f(@a) : @a", "expm1"},
    {"elu_backward", "@b <= 0.0f ? @a * (@b + @s) : @a", ""},
    {"sigmoid", "sigmoid_f(@a)", "sigmoid"},
    {"sigmoid_backward", "@a * @b * (1.0f - @b)", ""},
    {"tanh", "tanh_f(@a)", "tanh"},
    {"tanh_backward", "@a * (1.0f - @b) * (1.0f + @b)", ""},
    {"softplus", "softplus(@a)", "softplus"},
    {"softplus_backward", "@a * sigmoid_f(@b)", "sigmoid"},
    {"silu", "@a * sigmoid_f(@a)", "sigmoid"},
    {"silu_backward", "@a * silu_grad(@b)", "silu_grad"},
    {"gelu", "gelu(@a)", "gelu"},
    {"gelu_backward", "@a * gelu_grad(@b)", "gelu_grad"},
    {"gelu_tanh", "gelu_tanh(@a)", "gelu_tanh"},
    {"gelu_tanh_backward", "@a * gelu_tanh_grad(@b)", "gelu_tanh_grad"},
    {"hard_swish", "@a <= -3.0f ? 0.0f : @a >= 3.0f ? @a : @a * (@a + 3.0f) * (1.0f / 6.0f)", ""},
    {"hard_swish_backward", "@a * hard_swish_grad(@b)", "hard_swish_grad"},
    {"squared_relu", "@a <= 0.0f ? 0.0f : @s * @a * @a", ""},
    {"softsign", "@a / (1.0f + (@a < 0.0f ? -@a : @a))", ""},
    {"celu", "@a <= 0.0f ? @s * expm1_f(@a / @s) : @a", "expm1"},
    {"selu", "@t * (@a <= 0.0f ? @s * expm1_f(@a) : @a)", "expm1"},
    {"hard_sigmoid", "@s * @a + @t <= 0.0f ? 0.0f : @s * @a + @t >= 1.0f ? 1.0f : @s * @a + @t", ""},
    {"thresholded_relu", "@a <= @s ? 0.0f : @a", ""},
    {"shrink", "@a + @t < 0.0f ? @a + @s : @a <= @t ? 0.0f : @a - @s", ""},
    {"swish", "@a * sigmoid_f(@s * @a)", "sigmoid"},
    {"prelu", "@a <= 0.0f ? @a * @b : @a", ""},
    {NULL, NULL, NULL},
};

const formula *find_formula(const char *name)
{
    for (const formula *f = formulas; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

formula_text expand_formula(emitter *e, const formula *f, const char *const operand[3],
                            const double number[2])
{
    formula_text out;
    size_t at = 0;
    if (f->kernel[0] != '\0')
        use_kernel(e, f->kernel);
    for (const char *p = f->expression; *p != '\0' && at + 1 < sizeof out.text; p++) {
        if (*p != '@') {
            out.text[at++] = *p;
            continue;
        }
        p++;
        const char *word = *p == 's'   ? float_text(number[0])
                           : *p == 't' ? float_text(number[1])
                                       : operand[*p - 'a'];
        bool negative = word[0] == '-' && at > 0 && out.text[at - 1] != '(';
        at += (size_t)snprintf(out.text + at, sizeof out.text - at, negative ? "(%s)" : "%s", word);
        at = at < sizeof out.text ? at : sizeof out.text - 1;
    }
    out.text[at] = '\0';
    return out;
}

static void numbers_of(const call *c, double number[2])
{
    static const char *const curves[] = {"celu",   "selu", "hard_sigmoid", "thresholded_relu",
                                         "shrink", "swish"};
    bool range = strncmp(c->name, "clamp", 5) == 0, curve = false;
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
        curve = curve || strcmp(c->name, curves[i]) == 0;
    const char *first = range ? "low" : curve ? "alpha" : strcmp(c->name, "squared_relu") == 0 ? "gain" : "s";
    number[0] = call_number(c, first, 0);
    number[1] = range ? call_number(c, "high", 0) : curve ? call_number(c, "beta", 0) : 0.0;
    if (strcmp(c->name, "squared_relu") == 0 && number[0] == 0.0)
        number[0] = 1.0;
}

static void emit_elementwise(emitter *e, const call *c)
{
    nest n;
    double number[2];
    numbers_of(c, number);
    nest_start(&n, out_value(e, 0));
    int to = nest_operand(&n, out_name(e, 0), out_value(e, 0)), from[3] = {0};
    for (int i = 0; i < c->ins && i < 3; i++)
        if (c->in[i] != NONE)
            from[i] = nest_broadcast(&n, in_name(e, i), in_value(e, i));
    nest_open(e, &n);
    const char *operand[3] = {NULL, NULL, NULL};
    for (int i = 0; i < c->ins && i < 3; i++)
        if (c->in[i] != NONE)
            operand[i] = nest_at(&n, from[i]);
    formula_text body = expand_formula(e, find_formula(c->name), operand, number);
    emit(e, "%s %s %s;", nest_at(&n, to), c->add & 1u ? "+=" : "=", body.text);
    nest_close(e, &n);
}

/* ---- An activation at the end of something else ---- */

static const char *const activation_names[MICA_ACTIVATION_COUNT] = {NULL,
#define NAME(CODE, name) #name,
                                                                    MICA_ACTIVATION_LIST(NAME)
#undef NAME
};

void emit_finish(emitter *e, const char *name, size_t count, mica_activation activation, double slope)
{
    if (activation == MICA_NO_ACTIVATION)
        return;
    char element[96];
    snprintf(element, sizeof element, "%s[i]", name);
    const char *const operand[3] = {element, NULL, NULL};
    formula_text body = expand_formula(e, find_formula(activation_names[activation]), operand,
                                       (double[2]){slope, 0.0});
    emit(e, "for (int i = 0; i < %zu; i++)", count);
    e->indent++;
    emit(e, "%s[i] = %s;", name, body.text);
    e->indent--;
}

/* ---- Not quite of single elements ---- */

/* act(a) b, silu if nothing is said */
static void emit_gate(emitter *e, const call *c)
{
    const mica_gate_opts *opts = c->opts;
    mica_activation activation = opts->activation != MICA_NO_ACTIVATION ? opts->activation : MICA_SILU;
    char a[96];
    snprintf(a, sizeof a, "%s[i]", in_name(e, 0));
    const char *const operand[3] = {a, NULL, NULL};
    formula_text body = expand_formula(e, find_formula(activation_names[activation]), operand,
                                       (double[2]){0.0, 0.0});
    emit(e, "for (int i = 0; i < %zu; i++)", out_value(e, 0)->count);
    e->indent++;
    emit(e, "%s[i] = (%s) * %s[i];", out_name(e, 0), body.text, in_name(e, 1));
    e->indent--;
}

/* silu(a) b of the halves of each row */
static void emit_swiglu(emitter *e, const call *c)
{
    (void)c;
    int half = columns_of(out_value(e, 0)), rows = rows_of(out_value(e, 0));
    use_kernel(e, "sigmoid");
    const char *x = in_name(e, 0), *y = out_name(e, 0);
    emit(e, "for (int row = 0; row < %d; row++)", rows);
    emit(e, "    for (int i = 0; i < %d; i++)", half);
    emit(e,
         "        %s[%d * row + i] = %s[%d * row + i] * sigmoid_f(%s[%d * row + i]) * %s[%d * row + %d + i];",
         y, half, x, 2 * half, x, 2 * half, x, 2 * half, half);
}

/* da = dy b silu'(a), db = dy silu(a) */
static void emit_swiglu_backward(emitter *e, const call *c)
{
    const char *assign = c->add & 1u ? "+=" : "=", *dx = out_name(e, 0), *dy = in_name(e, 0),
               *x = in_name(e, 1);
    int half = columns_of(in_value(e, 0)), rows = rows_of(in_value(e, 0));
    use_kernel(e, "silu_grad");
    use_kernel(e, "sigmoid");
    emit(e, "for (int row = 0; row < %d; row++)", rows);
    emit(e, "    for (int i = 0, a = %d * row; i < %d; i++, a++) {", 2 * half, half);
    emit(e, "        %s[a] %s %s[%d * row + i] * %s[a + %d] * silu_grad(%s[a]);", dx, assign, dy, half, x,
         half, x);
    emit(e, "        %s[a + %d] %s %s[%d * row + i] * %s[a] * sigmoid_f(%s[a]);", dx, half, assign, dy, half,
         x, x);
    emit(e, "    }");
}

/* One half of where's gradient: dy where the condition holds, or with `otherwise` where it does not, else 0 */
static void emit_choice(emitter *e, int out, int dy, int condition, bool otherwise)
{
    nest n;
    nest_start(&n, out_value(e, out));
    int to = nest_operand(&n, out_name(e, out), out_value(e, out)),
        from = nest_broadcast(&n, in_name(e, dy), in_value(e, dy)),
        by = nest_broadcast(&n, in_name(e, condition), in_value(e, condition));
    nest_open(e, &n);
    emit(e, "%s %s %s %s 0 ? %s : 0.0f;", nest_at(&n, to), e->c->add >> out & 1u ? "+=" : "=",
         nest_at(&n, by), otherwise ? "==" : "!=", nest_at(&n, from));
    nest_close(e, &n);
}

static void emit_where_part(emitter *e, const call *c)
{
    emit_choice(e, 0, 0, 1, call_int(c, "otherwise", 0) != 0);
}

/* The second is written first, as the first may lie over dy. */
static void emit_where_backward(emitter *e, const call *c)
{
    for (int k = 1; k >= 0; k--)
        if (c->out[k] != NONE)
            emit_choice(e, k, 0, 1, k == 1);
}

static void emit_add_positions(emitter *e, const call *c)
{
    const value *x = in_value(e, 0);
    int length = (int)x->dim[x->rank - 2] * columns_of(x);
    emit(e, "for (int i = 0; i < %zu; i++)", x->count);
    emit(e, "    %s[i] = %s[i] + %s[i %% %d];", out_name(e, 0), in_name(e, 0), in_name(e, 1), length);
    (void)c;
}

static void emit_add_positions_backward(emitter *e, const call *c)
{
    const value *dy = in_value(e, 0);
    int length = (int)dy->dim[dy->rank - 2] * columns_of(dy);
    emit(e, "for (int i = 0; i < %zu; i++)", dy->count);
    emit(e, "    %s[i %% %d] += %s[i];", out_name(e, 0), length, in_name(e, 0));
    (void)c;
}

const char *refuse_position(const graph *g, const call *c)
{
    (void)g;
    return call_int(c, "position", 0) != 0
               ? "its position is a size of the step, which an exported program has none of"
               : NULL;
}

/* clang-format off */
#define MAP(op) {.name = #op, .emit = emit_elementwise, .adds = 1}
/* clang-format on */

const export_op export_elementwise_ops[] = {
    MAP(add),
    MAP(sub),
    MAP(mul),
    MAP(div),
    MAP(min),
    MAP(max),
    MAP(pow),
    MAP(add_scaled),
    MAP(lerp),
    MAP(add_scalar),
    MAP(sub_scalar),
    MAP(rsub_scalar),
    MAP(scale),
    MAP(div_scalar),
    MAP(rdiv_scalar),
    MAP(min_scalar),
    MAP(max_scalar),
    MAP(pow_scalar),
    MAP(clamp),
    MAP(clamp_backward),
    MAP(neg),
    MAP(abs),
    MAP(sign),
    MAP(square),
    MAP(sqrt),
    MAP(rsqrt),
    MAP(reciprocal),
    MAP(floor),
    MAP(ceil),
    MAP(round),
    MAP(exp),
    MAP(expm1),
    MAP(log),
    MAP(log1p),
    MAP(sin),
    MAP(cos),
    MAP(erf),
    MAP(eq),
    MAP(ne),
    MAP(lt),
    MAP(le),
    MAP(gt),
    MAP(ge),
    MAP(isnan),
    MAP(isfinite),
    MAP(where),
    MAP(relu),
    MAP(relu_backward),
    MAP(relu6),
    MAP(relu6_backward),
    MAP(leaky_relu),
    MAP(leaky_relu_backward),
    MAP(elu),
    MAP(elu_backward),
    MAP(sigmoid),
    MAP(sigmoid_backward),
    MAP(tanh),
    MAP(tanh_backward),
    MAP(softplus),
    MAP(softplus_backward),
    MAP(silu),
    MAP(silu_backward),
    MAP(gelu),
    MAP(gelu_backward),
    MAP(gelu_tanh),
    MAP(gelu_tanh_backward),
    MAP(hard_swish),
    MAP(hard_swish_backward),
    MAP(squared_relu),
    MAP(softsign),
    MAP(celu),
    MAP(selu),
    MAP(hard_sigmoid),
    MAP(thresholded_relu),
    MAP(shrink),
    MAP(swish),
    MAP(prelu),
    {.name = "gate", .emit = emit_gate},
    {.name = "swiglu", .emit = emit_swiglu},
    {.name = "swiglu_backward", .emit = emit_swiglu_backward, .adds = 1},
    {.name = "where_part", .emit = emit_where_part, .adds = 1},
    {.name = "where_backward", .emit = emit_where_backward, .adds = 3},
    {.name = "add_positions", .emit = emit_add_positions, .refuse = refuse_position},
    {.name = "add_positions_backward",
     .emit = emit_add_positions_backward,
     .only_adds = 1,
     .refuse = refuse_position},
    {.name = NULL},
};
