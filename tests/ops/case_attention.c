/* Cases of attention. The reference keeps the whole matrix of chances; gradients of small cases come from
 * finite differences. */
#include "ops/op_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Options: i[0] causal; f[0] scale. */
static mica_attention_opts options(const op_call *c, const mica_tensor *mask, const mica_tensor *lse)
{
    return (mica_attention_opts){.scale = (float)c->f[0], .causal = c->i[0] != 0, .mask = mask, .lse = lse};
}

typedef struct shapes {
    mica_index q[4], k[4], mask[4];
    int mask_rank;
    mica_dtype mask_dtype;
} shapes;

static shapes draw_shapes(op_call *c, test_random *r, int longest)
{
    shapes s;
    mica_index batch = test_int(r, test_chance(r, 4) ? 0 : 1, 2), kv = test_int(r, 1, 2);
    mica_index group = test_int(r, 1, 2), d = test_int(r, 1, 4);
    mica_index tq = test_int(r, test_chance(r, 5) ? 0 : 1, 5), tk = test_int(r, test_chance(r, 5) ? 0 : 1, 5);
    if (longest > 5 && test_chance(r, 25)) { /* more than a tile, and wide */
        tq = test_int(r, 1, longest);
        tk = test_int(r, 1, longest);
        d = test_int(r, 1, 40);
    }
    if (c->large) {
        batch = test_int(r, 1, 2); /* fewer heads than threads now and then */
        tq = tk = 150;
        d = 24;
    }
    memcpy(s.q, (mica_index[]){batch, kv * group, tq, d}, sizeof s.q);
    memcpy(s.k, (mica_index[]){batch, kv, tk, d}, sizeof s.k);
    s.mask_rank = op_random_broadcast(r, 4, (mica_index[]){batch, kv * group, tq, tk}, s.mask);
    s.mask_dtype = test_chance(r, 50) ? MICA_F32 : MICA_U8;
    c->i[0] = test_chance(r, 50);
    c->f[0] = test_chance(r, 50) ? 0.0 : test_uniform(r, 0.3, 1.5);
    return s;
}

static void fill_mask(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    bool keep = c->tensor[tensor].dtype == MICA_U8;
    for (size_t i = 0; i < count; i++)
        value[i] = keep ? test_chance(r, 70) : test_chance(r, 15) ? (double)-INFINITY : test_normal(r);
}

/* ---- The model ---- */

typedef struct model {
    size_t batch, heads, kv, tq, tk, d;
    double scale;
    bool causal;
    const mica_tensor *mask_tensor; /* or NULL */
    const double *q, *k, *v, *mask, *dout;
    double *p, *out, *lse; /* p [B, H, Tq, Tk] */
} model;

static model model_of(const op_call *c, int q, int k, int mask)
{
    const mica_index *a = c->tensor[q].dim, *b = c->tensor[k].dim;
    model m = {.batch = (size_t)a[0], .heads = (size_t)a[1], .kv = (size_t)b[1], .tq = (size_t)a[2]};
    m.tk = (size_t)b[2];
    m.d = (size_t)a[3];
    m.scale = c->f[0] != 0.0 ? (double)(float)c->f[0] : 1.0 / sqrt((double)m.d);
    m.causal = c->i[0] != 0;
    m.mask_tensor = c->absent[mask] ? NULL : &c->tensor[mask];
    m.p = calloc(m.batch * m.heads * m.tq * m.tk + 1, sizeof *m.p);
    return m;
}

/* The score of query i and key j of head bh; -infinity where hidden. */
static double score(const model *m, size_t bh, size_t i, size_t j)
{
    size_t b = bh / m->heads, h = bh % m->heads, group = m->heads / m->kv;
    if (m->causal && j + m->tq > m->tk + i)
        return (double)-INFINITY;
    const double *q = m->q + (bh * m->tq + i) * m->d;
    const double *k = m->k + ((b * m->kv + h / group) * m->tk + j) * m->d;
    double s = 0.0;
    for (size_t x = 0; x < m->d; x++)
        s += q[x] * k[x];
    s *= m->scale;
    if (m->mask_tensor == NULL)
        return s;
    mica_tensor all = {
        .rank = 4, .dim = {(mica_index)m->batch, (mica_index)m->heads, (mica_index)m->tq, (mica_index)m->tk}};
    double mask = m->mask[op_broadcast_index(m->mask_tensor, &all, (bh * m->tq + i) * m->tk + j)];
    if (m->mask_tensor->dtype == MICA_U8)
        return mask != 0.0 ? s : (double)-INFINITY;
    return s + mask;
}

static void chances(const model *m, size_t bh, size_t i)
{
    double *p = m->p + (bh * m->tq + i) * m->tk, most = (double)-INFINITY, sum = 0.0;
    for (size_t j = 0; j < m->tk; j++) {
        p[j] = score(m, bh, i, j);
        most = fmax(most, p[j]);
    }
    for (size_t j = 0; j < m->tk; j++)
        sum += p[j] = isinf(most) ? 0.0 : exp(p[j] - most);
    for (size_t j = 0; j < m->tk && sum > 0.0; j++)
        p[j] /= sum;
    if (m->lse != NULL)
        m->lse[bh * m->tq + i] = sum > 0.0 ? most + log(sum) : (double)-INFINITY;
}

static void forward(const model *m)
{
    size_t group = m->kv > 0 ? m->heads / m->kv : 1;
    for (size_t bh = 0; bh < m->batch * m->heads; bh++) {
        const double *v = m->v + (bh / m->heads * m->kv + bh % m->heads / group) * m->tk * m->d;
        for (size_t i = 0; i < m->tq; i++) {
            chances(m, bh, i);
            for (size_t x = 0; x < m->d && m->out != NULL; x++) {
                double sum = 0.0;
                for (size_t j = 0; j < m->tk; j++)
                    sum += m->p[(bh * m->tq + i) * m->tk + j] * v[j * m->d + x];
                m->out[(bh * m->tq + i) * m->d + x] = sum;
            }
        }
    }
}

/* ---- Forward: out, lse; q, k, v, mask ---- */

static void draw_forward(op_call *c, test_random *r)
{
    shapes s = draw_shapes(c, r, 150);
    op_tensor(c, 0, MICA_F32, 4, s.q);
    op_tensor(c, 1, MICA_F32, 3, s.q);
    op_tensor(c, 2, MICA_F32, 4, s.q);
    op_tensor(c, 3, MICA_F32, 4, s.k);
    op_tensor(c, 4, MICA_F32, 4, s.k);
    op_tensor(c, 5, s.mask_dtype, s.mask_rank, s.mask);
    c->absent[1] = test_chance(r, 30);
    c->absent[5] = test_chance(r, 50);
}

static void fill_forward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    if (tensor == 5) {
        fill_mask(c, r, tensor, value, count);
        return;
    }
    double size = test_chance(r, 15) ? 10.0 : 1.0;
    for (size_t i = 0; i < count; i++)
        value[i] = test_normal(r) * (tensor == 4 ? 1.0 : size);
}

static mica_status run_forward(mica_context *ctx, const op_call *c)
{
    mica_attention_opts o = options(c, OP(c, 5), OP(c, 1));
    return mica_attention(ctx, OP(c, 0), OP(c, 2), OP(c, 3), OP(c, 4), &o);
}

static void reference_forward(const op_call *c, double *const *v)
{
    model m = model_of(c, 2, 3, 5);
    m.q = v[2];
    m.k = v[3];
    m.v = v[4];
    m.mask = v[5];
    m.out = v[0];
    m.lse = c->absent[1] ? NULL : v[1];
    forward(&m);
    free(m.p);
}

OP_CASE(attention) = {.names = {"out", "lse", "q", "k", "v", "mask"},
                      .outs = 2,
                      .ins = 4,
                      .in_place = OP_BIT(2),
                      .optional = OP_BIT(1) | OP_BIT(5),
                      .draws = 300,
                      .draw = draw_forward,
                      .fill = fill_forward,
                      .run = run_forward,
                      .reference = reference_forward,
                      .tolerance = 1e-4};

/* ---- Backward: dq, dk, dv; dout, q, k, v, mask, out, lse ---- */

enum { DQ, DK, DV, DOUT, Q, K, V, MASK, OUT, LSE };

static void draw_backward(op_call *c, test_random *r)
{
    shapes s = draw_shapes(c, r, 100);
    for (int k = 0; k < 10; k++) {
        if (k == MASK)
            op_tensor(c, k, s.mask_dtype, s.mask_rank, s.mask);
        else if (k == DK || k == DV || k == K || k == V)
            op_tensor(c, k, MICA_F32, 4, s.k);
        else
            op_tensor(c, k, MICA_F32, k == LSE ? 3 : 4, s.q);
    }
    c->absent[MASK] = test_chance(r, 50);
}

static double *read_tensor(const op_call *c, int tensor)
{
    double *value = calloc(op_count(c, tensor) + 1, sizeof *value);
    if (!c->absent[tensor])
        op_read(&c->tensor[tensor], value);
    return value;
}

/* out and lse are those of the inputs before them. */
static void fill_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    if (tensor == MASK) {
        fill_mask(c, r, tensor, value, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        value[i] = test_normal(r);
    if (tensor != OUT && tensor != LSE)
        return;
    model m = model_of(c, Q, K, MASK);
    double *inputs[] = {read_tensor(c, Q), read_tensor(c, K), read_tensor(c, V), read_tensor(c, MASK)};
    m.q = inputs[0];
    m.k = inputs[1];
    m.v = inputs[2];
    m.mask = inputs[3];
    m.out = tensor == OUT ? value : NULL;
    m.lse = tensor == LSE ? value : NULL;
    forward(&m);
    for (int k = 0; k < 4; k++)
        free(inputs[k]);
    free(m.p);
}

static double loss_of(void *user)
{
    const model *m = user;
    forward(m);
    double loss = 0.0;
    for (size_t i = 0; i < m->batch * m->heads * m->tq * m->d; i++)
        loss += m->out[i] * m->dout[i];
    return loss;
}

/* By the formulas, for what is too large to be nudged element by element. */
static void formulas(const model *m, double *dq, double *dk, double *dv)
{
    forward(m);
    size_t group = m->kv > 0 ? m->heads / m->kv : 1;
    for (size_t row = 0; row < m->batch * m->heads * m->tq; row++) {
        size_t bh = row / m->tq, kv = (bh / m->heads * m->kv + bh % m->heads / group) * m->tk;
        const double *dout = m->dout + row * m->d, *out = m->out + row * m->d;
        double delta = 0.0;
        for (size_t x = 0; x < m->d; x++)
            delta += dout[x] * out[x];
        for (size_t j = 0; j < m->tk; j++) {
            double p = m->p[row * m->tk + j], dp = 0.0;
            for (size_t x = 0; x < m->d; x++)
                dp += dout[x] * m->v[(kv + j) * m->d + x];
            double ds = p * (dp - delta) * m->scale;
            for (size_t x = 0; x < m->d; x++) {
                dq[row * m->d + x] += ds * m->k[(kv + j) * m->d + x];
                dk[(kv + j) * m->d + x] += ds * m->q[row * m->d + x];
                dv[(kv + j) * m->d + x] += p * dout[x];
            }
        }
    }
}

static void reference_backward(const op_call *c, double *const *v)
{
    model m = model_of(c, Q, K, MASK);
    m.q = v[Q];
    m.k = v[K];
    m.v = v[V];
    m.mask = v[MASK];
    m.dout = v[DOUT];
    m.out = calloc(op_count(c, Q) + 1, sizeof *m.out);
    if (op_count(c, Q) + op_count(c, K) < 80) {
        op_numeric_gradient(v[DQ], v[Q], op_count(c, Q), loss_of, &m);
        op_numeric_gradient(v[DK], v[K], op_count(c, K), loss_of, &m);
        op_numeric_gradient(v[DV], v[V], op_count(c, V), loss_of, &m);
    } else {
        for (int k = DQ; k <= DV; k++)
            memset(v[k], 0, op_count(c, k) * sizeof(double));
        formulas(&m, v[DQ], v[DK], v[DV]);
    }
    free(m.out);
    free(m.p);
}

static mica_status run_backward(mica_context *ctx, const op_call *c)
{
    mica_attention_opts o = options(c, OP(c, MASK), NULL);
    mica_attention_grads grads = {OP(c, DQ), OP(c, DK), OP(c, DV)};
    mica_attention_saved saved = {OP(c, Q), OP(c, K), OP(c, V), OP(c, OUT), OP(c, LSE)};
    return mica_attention_backward(ctx, &grads, OP(c, DOUT), &saved, &o);
}

OP_CASE(attention_backward) = {.names = {"dq", "dk", "dv", "dout", "q", "k", "v", "mask", "out", "lse"},
                               .outs = 3,
                               .ins = 7,
                               .optional = OP_BIT(MASK),
                               .draws = 300,
                               .draw = draw_backward,
                               .fill = fill_backward,
                               .run = run_backward,
                               .reference = reference_backward,
                               .tolerance = 6e-5};
