/* RNN, LSTM and GRU: what Mica's own operations can do, they do; otherwise the steps follow one another in the net
 * (unroll.c). */
#include <string.h>

#include "node/entry.h"
#include "onnx/recurrent.h"

enum { X, W, R, B, LENGTHS, H_0, C_0, P };
enum { Y, Y_H, Y_C };

/* ---- Reading the node ---- */

static bool read_direction(mica_onnx_importing *n, mica_onnx_recurrent *r)
{
    const char *direction = mica_onnx_text(n, "direction", "forward");
    r->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (r->directions == 1 && strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0)
        return mica_onnx_bad(n, "direction is \"%s\"", direction) != 0;
    return true;
}

static bool read_shapes(mica_onnx_importing *n, mica_onnx_recurrent *r)
{
    const mica_tensor *x = mica_onnx_shape(n, n->in[X]), *w = mica_onnx_shape(n, n->ins > W ? n->in[W] : 0),
                      *back = mica_onnx_shape(n, n->ins > R ? n->in[R] : 0);
    if (x->rank != 3 || w->rank != 3 || back->rank != 3)
        return mica_onnx_bad(n, "X is %s, W %s, R %s: expected three dimensions each", MICA_SHAPE(x),
                             MICA_SHAPE(w), MICA_SHAPE(back)) != 0;
    r->batch_first = mica_onnx_int(n, "layout", 0) != 0;
    r->time = x->dim[r->batch_first ? 1 : 0];
    r->batch = x->dim[r->batch_first ? 0 : 1];
    r->inputs = x->dim[2];
    r->hidden = back->dim[2];
    mica_index rows = r->blocks * r->hidden;
    if (!mica_onnx_has_shape(n, n->in[W], 3, (mica_index[]){r->directions, rows, r->inputs}) ||
        !mica_onnx_has_shape(n, n->in[R], 3, (mica_index[]){r->directions, rows, r->hidden}))
        return mica_onnx_bad(n, "X is %s, W %s, R %s: expected W [%d, %td, %td] and R [%d, %td, %td]",
                             MICA_SHAPE(x), MICA_SHAPE(w), MICA_SHAPE(back), r->directions, rows, r->inputs,
                             r->directions, rows, r->hidden) != 0;
    return true;
}

/* Lengths that are known to be that of x need no masks. */
static void read_lengths(mica_onnx_importing *n, mica_onnx_recurrent *r)
{
    mica_onnx_ref ref = n->ins > LENGTHS ? n->in[LENGTHS] : 0;
    bool all = ref == 0;
    if (ref != 0 && mica_onnx_is_known(n, ref)) {
        const mica_tensor *t = mica_onnx_shape(n, ref);
        all = t->dtype == MICA_I32;
        for (size_t i = 0; all && i < mica_tensor_count(t); i++)
            all = ((const int32_t *)t->data)[i] == r->time;
    }
    if (!all)
        r->lengths = mica_onnx_cast(n, mica_onnx_reshape(n, ref, 2, (mica_index[]){r->batch, 1}), MICA_F32);
}

static bool is_any(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Defaults of alpha and beta; 0 where a function has none. */
static mica_onnx_activation default_activation(const char *name)
{
    mica_onnx_activation a = {.name = name};
    if (strcmp(name, "LeakyRelu") == 0)
        a.alpha = 0.01f;
    else if (is_any(name, (const char *const[]){"ThresholdedRelu", "Elu", "Affine", "ScaledTanh", NULL}))
        a.alpha = 1.0f;
    else if (strcmp(name, "HardSigmoid") == 0)
        a.alpha = 0.2f, a.beta = 0.5f;
    if (strcmp(name, "ScaledTanh") == 0)
        a.beta = 1.0f;
    return a;
}

/* The activations of all directions, in order. Lists of alphas and betas have entries for those that take them. */
static bool read_activations(mica_onnx_importing *n, const mica_onnx_recurrent *r, mica_onnx_direction *d)
{
    static const char *const with_alpha[] = {"LeakyRelu",  "ThresholdedRelu", "Elu", "Affine",
                                             "ScaledTanh", "HardSigmoid",     NULL};
    static const char *const with_beta[] = {"Affine", "ScaledTanh", "HardSigmoid", NULL};
    int each = r->cell == MICA_ONNX_LSTM ? 3 : r->cell == MICA_ONNX_GRU ? 2 : 1;
    int total = each * r->directions, a = 0, b = 0;
    float alpha[6], beta[6];
    int alphas = mica_onnx_float_list(n, "activation_alpha", alpha, 6);
    int betas = mica_onnx_float_list(n, "activation_beta", beta, 6);
    const mica_onnx_attribute *names = mica_onnx_find(n, "activations");
    if (names != NULL && (names->kind != MICA_ONNX_STRINGS || names->count != (size_t)total))
        return mica_onnx_bad(n, "%zu activations, expected %d", names->count, total) != 0;
    for (int i = 0; i < total; i++) {
        int place = i % each;
        const char *usual = r->cell == MICA_ONNX_RNN || place > 0 ? "Tanh" : "Sigmoid";
        mica_onnx_activation one = default_activation(names != NULL ? names->strings[i] : usual);
        if (is_any(one.name, with_alpha) && a < alphas)
            one.alpha = alpha[a++];
        if (is_any(one.name, with_beta) && b < betas)
            one.beta = beta[b++];
        *(place == 0 ? &d[i / each].f : place == 1 ? &d[i / each].g : &d[i / each].h) = one;
    }
    return !n->failed;
}

/* Part `number` of a direction's axis, which comes first: [D, ...] or, of states that are batch first, [N, D, ...]. */
static mica_onnx_ref of_direction(mica_onnx_importing *n, mica_onnx_ref ref, int axis, int number)
{
    return ref == 0 ? 0 : mica_onnx_drop_axis(n, mica_onnx_part(n, ref, axis, number, number + 1), axis);
}

static void read_weights(mica_onnx_importing *n, const mica_onnx_recurrent *r, mica_onnx_direction *d,
                         int number)
{
    mica_index rows = r->blocks * r->hidden;
    d->w = of_direction(n, mica_onnx_f32(n, W), 0, number);
    d->r = of_direction(n, mica_onnx_f32(n, R), 0, number);
    mica_onnx_ref bias = of_direction(n, mica_onnx_f32(n, B), 0, number);
    if (bias != 0) {
        d->w_bias = mica_onnx_part(n, bias, 0, 0, rows);
        d->r_bias = mica_onnx_part(n, bias, 0, rows, 2 * rows);
    }
    d->h_0 = of_direction(n, mica_onnx_f32(n, H_0), r->batch_first ? 1 : 0, number);
    if (r->cell == MICA_ONNX_LSTM) {
        d->c_0 = of_direction(n, mica_onnx_f32(n, C_0), r->batch_first ? 1 : 0, number);
        d->peepholes = of_direction(n, mica_onnx_f32(n, P), 0, number);
    }
}

/* ---- Mica's own operations ---- */

static bool has_own(const mica_onnx_recurrent *r, const mica_onnx_direction *d)
{
    bool tanh_g = strcmp(d->g.name != NULL ? d->g.name : "", "Tanh") == 0;
    bool plain = r->clip == 0.0f && !r->input_forget && r->lengths == 0 && d->peepholes == 0;
    if (!plain || r->time == 0)
        return false;
    if (r->cell == MICA_ONNX_RNN)
        return strcmp(d->f.name, "Tanh") == 0 || strcmp(d->f.name, "Relu") == 0;
    if (strcmp(d->f.name, "Sigmoid") != 0 || !tanh_g)
        return false;
    return r->cell == MICA_ONNX_GRU ? r->linear_before_reset : strcmp(d->h.name, "Tanh") == 0;
}

/* Blocks of rows in Mica's order: LSTM i, f, c, o; GRU r, z, h. */
static mica_onnx_ref reorder(mica_onnx_importing *n, const mica_onnx_recurrent *r, mica_onnx_ref ref)
{
    static const int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2};
    const int *order = r->cell == MICA_ONNX_LSTM ? lstm : gru;
    mica_onnx_ref parts[4];
    if (ref == 0 || r->cell == MICA_ONNX_RNN)
        return ref;
    for (int i = 0; i < r->blocks; i++)
        parts[i] = mica_onnx_part(n, ref, 0, order[i] * r->hidden, (order[i] + 1) * r->hidden);
    return mica_onnx_join(n, parts, r->blocks, 0);
}

static void run_own(mica_onnx_importing *n, const mica_onnx_recurrent *r, mica_onnx_direction *d)
{
    enum { OWN_H_N = 4, OWN_C_N };
    static const char *const names[] = {"rnn", "lstm", "gru"};
    mica_sequence_opts opts = {.last = !d->wants_y,
                               .relu = r->cell == MICA_ONNX_RNN && strcmp(d->f.name, "Relu") == 0,
                               .reverse = d->reverse,
                               .time_first = !r->batch_first};
    mica_onnx_ref in[] = {r->x,
                          reorder(n, r, d->w),
                          reorder(n, r, d->r),
                          reorder(n, r, d->w_bias),
                          reorder(n, r, d->r_bias),
                          0,
                          0,
                          0,
                          0,
                          d->h_0,
                          d->c_0};
    mica_onnx_ref y = mica_onnx_op(n, names[r->cell], in, 11, &opts);
    d->y = opts.last ? 0 : y;
    d->h_n = opts.last ? y : mica_onnx_result(n, y, OWN_H_N);
    d->c_n = r->cell == MICA_ONNX_LSTM ? mica_onnx_result(n, y, OWN_C_N) : 0;
}

/* ---- Outputs ---- */

/* One of each direction, joined along a new axis. */
static void give_joined(mica_onnx_importing *n, int number, const mica_onnx_ref *parts, int count, int axis)
{
    mica_onnx_ref joined[2];
    if (!mica_onnx_wants(n, number))
        return;
    for (int i = 0; i < count; i++)
        joined[i] = mica_onnx_add_axis(n, parts[i], axis);
    mica_onnx_give_like(n, number, mica_onnx_join(n, joined, count, axis), n->in[X]);
}

static void import(mica_onnx_importing *n, mica_onnx_cell cell)
{
    mica_onnx_recurrent r = {.cell = cell,
                             .blocks = cell == MICA_ONNX_LSTM  ? 4
                                       : cell == MICA_ONNX_GRU ? 3
                                                               : 1};
    mica_onnx_direction d[2] = {0};
    if (!read_direction(n, &r) || !read_shapes(n, &r) || !read_activations(n, &r, d))
        return;
    r.clip = mica_onnx_float(n, "clip", 0.0f);
    r.linear_before_reset = mica_onnx_int(n, "linear_before_reset", 0) != 0;
    r.input_forget = mica_onnx_int(n, "input_forget", 0) != 0;
    r.x = mica_onnx_f32(n, X);
    read_lengths(n, &r);
    bool backward = strcmp(mica_onnx_text(n, "direction", "forward"), "reverse") == 0;
    for (int i = 0; i < r.directions; i++) {
        d[i].reverse = backward || i == 1;
        d[i].wants_y = mica_onnx_wants(n, Y);
        read_weights(n, &r, &d[i], i);
        if (has_own(&r, &d[i]))
            run_own(n, &r, &d[i]);
        else
            mica_onnx_unroll(n, &r, &d[i]);
    }
    give_joined(n, Y, (mica_onnx_ref[]){d[0].y, d[1].y}, r.directions, r.batch_first ? 2 : 1);
    give_joined(n, Y_H, (mica_onnx_ref[]){d[0].h_n, d[1].h_n}, r.directions, r.batch_first ? 1 : 0);
    give_joined(n, Y_C, (mica_onnx_ref[]){d[0].c_n, d[1].c_n}, r.directions, r.batch_first ? 1 : 0);
}

static void rnn(mica_onnx_importing *n) { import(n, MICA_ONNX_RNN); }
static void lstm(mica_onnx_importing *n) { import(n, MICA_ONNX_LSTM); }
static void gru(mica_onnx_importing *n) { import(n, MICA_ONNX_GRU); }

const mica_onnx_operator mica_onnx_recurrent_operators[] = {
    {"RNN", 7, rnn}, {"LSTM", 7, lstm}, {"GRU", 7, gru}, {NULL, 0, NULL}};
