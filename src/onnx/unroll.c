/* Recurrent networks step by step, for options that Mica's own operations do not have: other activations, clipping,
 * peepholes, sequences of different lengths. What goes into the gates from x is one product for all steps. */
#include <string.h>

#include "onnx/recurrent.h"

/* A step's gates before their activations, and the states that it continues. */
typedef struct walk {
    mica_onnx_importing *n;
    const mica_onnx_recurrent *r;
    const mica_onnx_direction *d;
    mica_onnx_ref from_x; /* [T, N, blocks H]: x WT + biases that are added before anything else */
    mica_onnx_ref h, c;   /* [N, H] */
} walk;

/* ---- Activations ---- */

static mica_onnx_ref clamp(mica_onnx_importing *n, mica_onnx_ref x, float low, float high)
{
    return mica_onnx_op1(n, "clamp", x, &(mica_clamp_opts){low, high});
}

static mica_onnx_ref of_numbers(mica_onnx_importing *n, const mica_onnx_activation *a, mica_onnx_ref x)
{
    const char *name = a->name;
    if (strcmp(name, "Affine") == 0)
        return mica_onnx_plus(n, mica_onnx_scale(n, x, a->alpha), a->beta);
    if (strcmp(name, "ScaledTanh") == 0)
        return mica_onnx_scale(n, mica_onnx_op1(n, "tanh", mica_onnx_scale(n, x, a->beta), NULL), a->alpha);
    if (strcmp(name, "HardSigmoid") == 0)
        return clamp(n, mica_onnx_plus(n, mica_onnx_scale(n, x, a->alpha), a->beta), 0.0f, 1.0f);
    if (strcmp(name, "LeakyRelu") == 0)
        return mica_onnx_op1(n, "leaky_relu", x, &(mica_scalar_opts){a->alpha});
    if (strcmp(name, "Elu") == 0)
        return mica_onnx_op1(n, "elu", x, &(mica_scalar_opts){a->alpha});
    if (strcmp(name, "ThresholdedRelu") == 0) {
        mica_onnx_ref over = mica_onnx_op2(n, "gt", x, mica_onnx_scalar(n, MICA_F32, (double)a->alpha), NULL);
        return mica_onnx_choose(n, over, x, mica_onnx_scalar(n, MICA_F32, 0.0));
    }
    if (strcmp(name, "Softsign") == 0)
        return mica_onnx_div(n, x, mica_onnx_plus(n, mica_onnx_op1(n, "abs", x, NULL), 1.0f));
    return mica_onnx_unsupported(n, "activation \"%s\"", name);
}

static mica_onnx_ref activate(const walk *k, const mica_onnx_activation *a, mica_onnx_ref x)
{
    static const char *const plain[][2] = {
        {"Relu", "relu"}, {"Tanh", "tanh"}, {"Sigmoid", "sigmoid"}, {"Softplus", "softplus"}};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(a->name, plain[i][0]) == 0)
            return mica_onnx_op1(k->n, plain[i][1], x, NULL);
    return of_numbers(k->n, a, x);
}

/* What goes into a gate, clipped, then its activation. */
static mica_onnx_ref gate(const walk *k, const mica_onnx_activation *a, mica_onnx_ref x)
{
    return activate(k, a, k->r->clip > 0.0f ? clamp(k->n, x, -k->r->clip, k->r->clip) : x);
}

/* ---- Steps ---- */

/* x wT + bias; bias 0: none. */
static mica_onnx_ref linear(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref w, mica_onnx_ref bias)
{
    return mica_onnx_op(n, "matmul", (mica_onnx_ref[]){x, w, bias}, 3,
                        &(mica_matmul_opts){.transpose_b = true});
}

/* Block `number` of a gate's [N, blocks H]; of a vector [blocks H], its part. */
static mica_onnx_ref block(const walk *k, mica_onnx_ref ref, int number)
{
    mica_index hidden = k->r->hidden;
    return ref == 0 ? 0
                    : mica_onnx_part(k->n, ref, mica_onnx_shape(k->n, ref)->rank - 1, number * hidden,
                                     (number + 1) * hidden);
}

/* gate + peephole * c */
static mica_onnx_ref peep(const walk *k, mica_onnx_ref gates, int number, mica_onnx_ref c)
{
    if (k->d->peepholes == 0)
        return gates;
    return mica_onnx_add(k->n, gates, mica_onnx_mul(k->n, block(k, k->d->peepholes, number), c));
}

/* c' = f c + i g, h' = o h(c'); blocks i, o, f, c. */
static void lstm_step(const walk *k, mica_onnx_ref x, mica_onnx_ref *h, mica_onnx_ref *c)
{
    mica_onnx_importing *n = k->n;
    mica_onnx_ref all = mica_onnx_add(n, x, linear(n, k->h, k->d->r, 0));
    mica_onnx_ref i = gate(k, &k->d->f, peep(k, block(k, all, 0), 0, k->c)), f;
    if (k->r->input_forget)
        f = mica_onnx_minus_from(n, i, 1.0f);
    else
        f = gate(k, &k->d->f, peep(k, block(k, all, 2), 2, k->c));
    mica_onnx_ref g = gate(k, &k->d->g, block(k, all, 3));
    *c = mica_onnx_add(n, mica_onnx_mul(n, f, k->c), mica_onnx_mul(n, i, g));
    mica_onnx_ref o = gate(k, &k->d->f, peep(k, block(k, all, 1), 1, *c));
    *h = mica_onnx_mul(n, o, activate(k, &k->d->h, *c));
}

/* h' = (1 - z) g + z h; blocks z, r, h. */
static void gru_step(const walk *k, mica_onnx_ref x, mica_onnx_ref *h)
{
    mica_onnx_importing *n = k->n;
    mica_index hidden = k->r->hidden;
    mica_onnx_ref r_gates = mica_onnx_part(n, k->d->r, 0, 0, 2 * hidden);
    mica_onnx_ref r_h = mica_onnx_part(n, k->d->r, 0, 2 * hidden, 3 * hidden),
                  bias = block(k, k->d->r_bias, 2);
    mica_onnx_ref both = mica_onnx_add(n, mica_onnx_part(n, x, 1, 0, 2 * hidden),
                                       linear(n, k->h, r_gates, 0));
    mica_onnx_ref z = gate(k, &k->d->f, block(k, both, 0)), r = gate(k, &k->d->f, block(k, both, 1)), back;
    if (k->r->linear_before_reset)
        back = mica_onnx_mul(n, r, linear(n, k->h, r_h, bias));
    else
        back = linear(n, mica_onnx_mul(n, r, k->h), r_h, bias);
    mica_onnx_ref g = gate(k, &k->d->g, mica_onnx_add(n, block(k, x, 2), back));
    *h = mica_onnx_add(n, g, mica_onnx_mul(n, z, mica_onnx_sub(n, k->h, g)));
}

static void step(const walk *k, mica_onnx_ref x, mica_onnx_ref *h, mica_onnx_ref *c)
{
    *c = 0;
    if (k->r->cell == MICA_ONNX_LSTM)
        lstm_step(k, x, h, c);
    else if (k->r->cell == MICA_ONNX_GRU)
        gru_step(k, x, h);
    else
        *h = gate(k, &k->d->f, mica_onnx_add(k->n, x, linear(k->n, k->h, k->d->r, 0)));
}

/* ---- All steps ---- */

/* What each step's gates get from x: [T, N, blocks H]. Biases of R are added here as well, but for that of GRU's
 * hidden gate, which may be behind its reset gate. */
static mica_onnx_ref products(mica_onnx_importing *n, const mica_onnx_recurrent *r,
                              const mica_onnx_direction *d)
{
    mica_onnx_ref bias = d->w_bias, back = d->r_bias;
    if (bias != 0 && r->cell == MICA_ONNX_GRU) {
        mica_onnx_ref parts[] = {
            mica_onnx_part(n, back, 0, 0, 2 * r->hidden),
            mica_onnx_scale(n, mica_onnx_part(n, back, 0, 2 * r->hidden, 3 * r->hidden), 0.0f)};
        back = mica_onnx_join(n, parts, 2, 0);
    }
    bias = bias != 0 ? mica_onnx_add(n, bias, back) : 0;
    mica_onnx_ref x = r->batch_first ? mica_onnx_permute(n, r->x, (int[]){1, 0, 2}) : r->x;
    return linear(n, x, d->w, bias);
}

static mica_onnx_ref zeros(mica_onnx_importing *n, const mica_onnx_recurrent *r)
{
    return mica_onnx_op(n, "zeros", NULL, 0, &(mica_make_opts){.rank = 2, .dims = {r->batch, r->hidden}});
}

/* Behind its end a sequence keeps its states, and its output is 0. */
static mica_onnx_ref advance(walk *k, mica_index t)
{
    mica_onnx_importing *n = k->n;
    mica_onnx_ref h, c, y;
    mica_onnx_ref x = mica_onnx_drop_axis(n, mica_onnx_part(n, k->from_x, 0, t, t + 1), 0);
    step(k, x, &h, &c);
    y = h;
    if (k->r->lengths != 0) {
        mica_onnx_ref now = mica_onnx_scalar(n, MICA_F32, (double)t);
        mica_onnx_ref within = mica_onnx_op2(n, "gt", k->r->lengths, now, NULL);
        y = mica_onnx_choose(n, within, h, mica_onnx_scalar(n, MICA_F32, 0.0));
        h = mica_onnx_choose(n, within, h, k->h);
        c = c != 0 ? mica_onnx_choose(n, within, c, k->c) : 0;
    }
    k->h = h;
    k->c = c;
    return y;
}

void mica_onnx_unroll(mica_onnx_importing *n, const mica_onnx_recurrent *r, mica_onnx_direction *d)
{
    mica_onnx_ref y[MICA_ONNX_MOST_STEPS];
    if (r->time < 1 || r->time > MICA_ONNX_MOST_STEPS) {
        (void)mica_onnx_unsupported(n, "%td steps, with options that take 1 to %d", r->time,
                                    MICA_ONNX_MOST_STEPS);
        return;
    }
    int time_axis = r->batch_first ? 1 : 0, steps = (int)r->time;
    walk k = {.n = n, .r = r, .d = d, .from_x = products(n, r, d)};
    k.h = d->h_0 != 0 ? d->h_0 : zeros(n, r);
    k.c = r->cell != MICA_ONNX_LSTM ? 0 : d->c_0 != 0 ? d->c_0 : zeros(n, r);
    for (int i = 0; i < steps && !n->failed; i++) {
        int t = d->reverse ? steps - 1 - i : i;
        mica_onnx_ref now = advance(&k, t);
        y[t] = d->wants_y ? mica_onnx_add_axis(n, now, time_axis) : 0;
    }
    d->h_n = k.h;
    d->c_n = k.c;
    d->y = d->wants_y && !n->failed ? mica_onnx_join(n, y, steps, time_axis) : 0;
}
