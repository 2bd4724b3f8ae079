/* Cases of the normalizations: one model of all five, whose gradients come from finite differences. */
#include "ops/op_memory.h"

#include <math.h>
#include <stdlib.h>

enum { LAYER, RMS, GROUP, INSTANCE, BATCH };

/* Options: i[0] which norm, i[1] normalised axes, i[2] groups, i[3] inference; f[0] eps, f[1] momentum. */
enum { KIND, AXES, GROUPS, INFERENCE };

/* Which mean and which gamma an element of x [.., n] or [N, C, S] belongs to. */
typedef struct model {
    int kind;
    size_t count, stats, params, each; /* each: elements that share a mean */
    size_t n, channels, size, groups;
    double eps;
    bool inference;
} model;

static model model_of(const op_call *c, const mica_tensor *x)
{
    model m = {.kind = (int)c->i[KIND], .inference = c->i[INFERENCE] != 0, .n = 1, .size = 1};
    m.eps = c->f[0] != 0.0 ? (double)(float)c->f[0] : (double)1e-5f;
    m.count = mica_tensor_count(x);
    if (m.kind == LAYER || m.kind == RMS) {
        m.stats = 1;
        int axes = c->i[AXES] != 0 ? (int)c->i[AXES] : 1;
        for (int i = 0; i < x->rank; i++)
            *(i < x->rank - axes ? &m.stats : &m.n) *= (size_t)x->dim[i];
        m.params = m.each = m.n;
        return m;
    }
    m.channels = m.params = (size_t)x->dim[1];
    for (int i = 2; i < x->rank; i++)
        m.size *= (size_t)x->dim[i];
    m.groups = m.kind == GROUP ? (size_t)(c->i[GROUPS] != 0 ? c->i[GROUPS] : 1) : m.channels;
    m.stats = m.kind == BATCH ? m.channels : (size_t)x->dim[0] * m.groups;
    m.each = m.stats > 0 ? m.count / m.stats : 0;
    return m;
}

static size_t param_of(const model *m, size_t i)
{
    return m->kind == LAYER || m->kind == RMS ? i % m->n : i / m->size % m->channels;
}

static size_t stat_of(const model *m, size_t i)
{
    if (m->kind == LAYER || m->kind == RMS)
        return i / m->n;
    size_t channel = i / m->size % m->channels, sample = i / m->size / m->channels;
    return m->kind == BATCH ? channel : sample * m->groups + channel / (m->channels / m->groups);
}

static void statistics(const model *m, const double *x, double *mean, double *variance)
{
    for (size_t s = 0; s < m->stats; s++)
        mean[s] = variance[s] = 0.0;
    for (size_t i = 0; m->kind != RMS && i < m->count; i++)
        mean[stat_of(m, i)] += x[i] / (double)m->each;
    for (size_t i = 0; i < m->count; i++) {
        double apart = x[i] - mean[stat_of(m, i)];
        variance[stat_of(m, i)] += apart * apart / (double)m->each;
    }
}

static void normalise(const model *m, double *y, const double *x, const double *mean, const double *rstd,
                      const double *gamma, const double *beta)
{
    for (size_t i = 0; i < m->count; i++) {
        size_t s = stat_of(m, i), p = param_of(m, i);
        y[i] = (x[i] - mean[s]) * rstd[s] * (gamma != NULL ? gamma[p] : 1.0) + (beta != NULL ? beta[p] : 0.0);
    }
}

/* ---- Shapes ---- */

/* Draws x's shape and the shapes of what goes with it. */
static int draw_dims(op_call *c, test_random *r, int kind, mica_index *dims, int *stat_rank, mica_index *stat,
                     int *param_rank, mica_index *param)
{
    c->i[KIND] = kind;
    c->f[0] = test_chance(r, 30) ? 0.0 : test_uniform(r, 0.001, 0.1);
    c->scale = 10.0;
    bool rows = kind == LAYER || kind == RMS;
    int rank = test_int(r, rows ? 1 : 2, 4);
    for (int i = 0; i < rank; i++)
        dims[i] = test_chance(r, 3) ? 0 : test_int(r, 1, 4); /* finite differences take their time */
    if (test_chance(r, 40))
        dims[test_int(r, 0, rank - 1)] = test_int(r, 10, 30);
    if (c->large) {
        for (int i = 0; i < rank; i++)
            dims[i] = test_int(r, 2, 9);
        dims[test_int(r, 0, rank - 1)] = 700;
    }
    *stat_rank = *param_rank = 0;
    if (rows) {
        int axes = test_int(r, 1, rank);
        c->i[AXES] = axes == 1 && test_chance(r, 50) ? 0 : axes;
        for (int i = 0; i < rank; i++)
            *(i < rank - axes ? &stat[(*stat_rank)++] : &param[(*param_rank)++]) = dims[i];
        return rank;
    }
    c->i[GROUPS] = dims[1] > 0 && dims[1] % 2 == 0 && test_chance(r, 60) ? 2 : test_int(r, 0, 1);
    param[(*param_rank)++] = dims[1];
    if (kind != BATCH)
        stat[(*stat_rank)++] = dims[0];
    stat[(*stat_rank)++] = kind == GROUP ? (c->i[GROUPS] != 0 ? c->i[GROUPS] : 1) : dims[1];
    return rank;
}

/* ---- Forward: y, mean, rstd, sum or running_mean, running_var; x, gamma, beta, residual ---- */

static void draw_forward(op_call *c, test_random *r, int kind)
{
    mica_index dims[MICA_MAX_RANK], stat[MICA_MAX_RANK], param[MICA_MAX_RANK];
    int stat_rank, param_rank;
    int rank = draw_dims(c, r, kind, dims, &stat_rank, stat, &param_rank, param);
    int in = c->op->outs;
    op_tensor(c, 0, MICA_F32, rank, dims);
    op_tensor(c, 1, MICA_F32, stat_rank, stat);
    op_tensor(c, 2, MICA_F32, stat_rank, stat);
    for (int k = 3; k < in; k++) {
        if (kind == BATCH)
            op_tensor(c, k, MICA_F32, param_rank, param);
        else
            op_tensor(c, k, MICA_F32, rank, dims);
    }
    op_tensor(c, in, MICA_F32, rank, dims);
    op_tensor(c, in + 1, MICA_F32, param_rank, param);
    op_tensor(c, in + 2, MICA_F32, param_rank, param);
    op_tensor(c, in + 3, MICA_F32, rank, dims);
    for (int k = 1; k < in + c->op->ins; k++)
        c->absent[k] = k != in && (c->op->optional & OP_BIT(k)) && test_chance(r, 40);
    if (in == 4 && c->absent[in + 3])
        c->absent[3] = true;
    if (kind == BATCH) {
        bool alone = mica_tensor_count(&c->tensor[0]) == (size_t)dims[1];
        c->i[INFERENCE] = alone || test_chance(r, 40);
        c->f[1] = test_chance(r, 50) ? 0.0 : 0.3;
        if (c->i[INFERENCE] != 0)
            c->absent[3] = c->absent[4] = false;
    }
}

/* A mean far from 0 now and then; variances above 0. */
static void fill_forward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    double centre = tensor == c->op->outs && test_chance(r, 20) ? 50.0 : 0.0;
    for (size_t i = 0; i < count; i++)
        value[i] = centre + test_normal(r);
    for (size_t i = 0; c->i[KIND] == BATCH && tensor == 4 && i < count; i++)
        value[i] = 0.2 + fabs(value[i]);
}

static mica_norm_opts options(const op_call *c)
{
    mica_norm_opts o = {.eps = (float)c->f[0], .axes = (int)c->i[AXES], .groups = (int)c->i[GROUPS]};
    o.mean = OP(c, 1);
    o.rstd = OP(c, 2);
    if (c->i[KIND] == LAYER || c->i[KIND] == RMS) {
        o.sum = OP(c, 3);
        o.residual = OP(c, 7);
    }
    if (c->i[KIND] == BATCH) {
        o.running_mean = OP(c, 3);
        o.running_var = OP(c, 4);
        o.inference = c->i[INFERENCE] != 0;
        o.momentum = (float)c->f[1];
    }
    return o;
}

static void reference_running(const op_call *c, const model *m, double *const *v, double *mean,
                              double *variance)
{
    double momentum = c->f[1] != 0.0 ? c->f[1] : 0.1, each = (double)m->each;
    for (size_t s = 0; s < m->stats; s++) {
        if (m->inference) {
            mean[s] = v[3][s];
            variance[s] = v[4][s];
            continue;
        }
        if (!c->absent[3] && m->each > 0)
            v[3][s] += momentum * (mean[s] - v[3][s]);
        if (!c->absent[4] && m->each > 0)
            v[4][s] += momentum * (variance[s] * each / (each - 1.0) - v[4][s]);
    }
}

static void reference_forward(const op_call *c, double *const *v)
{
    int in = c->op->outs;
    model m = model_of(c, &c->tensor[0]);
    double *mean = calloc(m.stats + 1, sizeof *mean), *rstd = calloc(m.stats + 1, sizeof *rstd);
    double *x = calloc(m.count + 1, sizeof *x);
    bool residual = in == 4 && !c->absent[in + 3];
    for (size_t i = 0; i < m.count; i++) {
        x[i] = v[in][i] + (residual ? v[in + 3][i] : 0.0);
        if (residual && !c->absent[3])
            v[3][i] = x[i];
    }
    statistics(&m, x, mean, rstd);
    if (m.kind == BATCH)
        reference_running(c, &m, v, mean, rstd);
    for (size_t s = 0; s < m.stats; s++)
        rstd[s] = 1.0 / sqrt(rstd[s] + m.eps);
    normalise(&m, v[0], x, mean, rstd, c->absent[in + 1] ? NULL : v[in + 1],
              m.kind == RMS || c->absent[in + 2] ? NULL : v[in + 2]);
    for (size_t s = 0; s < m.stats; s++) {
        if (!c->absent[1])
            v[1][s] = mean[s];
        if (!c->absent[2])
            v[2][s] = rstd[s];
    }
    free(mean);
    free(rstd);
    free(x);
}

#define RUN_FORWARD(name)                                                               \
    static mica_status run_##name(mica_context *ctx, const op_call *c)                  \
    {                                                                                   \
        mica_norm_opts o = options(c);                                                  \
        int in = c->op->outs;                                                           \
        return mica_##name(ctx, OP(c, 0), OP(c, in), OP(c, in + 1), OP(c, in + 2), &o); \
    }
RUN_FORWARD(layer_norm)
RUN_FORWARD(group_norm)
RUN_FORWARD(instance_norm)
RUN_FORWARD(batch_norm)

static mica_status run_rms_norm(mica_context *ctx, const op_call *c)
{
    mica_norm_opts o = options(c);
    return mica_rms_norm(ctx, OP(c, 0), OP(c, 4), OP(c, 5), &o);
}

#define DRAW(op, kind, way) \
    static void draw_##op(op_call *c, test_random *r) { draw_##way(c, r, kind); }
DRAW(layer_norm, LAYER, forward)
DRAW(group_norm, GROUP, forward)
DRAW(instance_norm, INSTANCE, forward)
DRAW(batch_norm, BATCH, forward)

/* RMS norm has no mean and no beta. */
static void draw_rms_norm(op_call *c, test_random *r)
{
    draw_forward(c, r, RMS);
    c->absent[1] = c->absent[6] = true;
}

OP_CASE(layer_norm) = {.names = {"y", "mean", "rstd", "sum", "x", "gamma", "beta", "residual"},
                       .outs = 4,
                       .ins = 4,
                       .in_place = OP_BIT(4) | OP_BIT(7),
                       .optional = OP_BIT(1) | OP_BIT(2) | OP_BIT(3) | OP_BIT(5) | OP_BIT(6) | OP_BIT(7),
                       .draws = 400,
                       .draw = draw_layer_norm,
                       .fill = fill_forward,
                       .run = run_layer_norm,
                       .reference = reference_forward,
                       .tolerance = 1e-5};
OP_CASE(rms_norm) = {.names = {"y", "mean", "rstd", "sum", "x", "gamma", "beta", "residual"},
                     .outs = 4,
                     .ins = 4,
                     .in_place = OP_BIT(4) | OP_BIT(7),
                     .optional = OP_BIT(1) | OP_BIT(2) | OP_BIT(3) | OP_BIT(5) | OP_BIT(6) | OP_BIT(7),
                     .draw = draw_rms_norm,
                     .fill = fill_forward,
                     .run = run_rms_norm,
                     .reference = reference_forward,
                     .tolerance = 1e-5};
OP_CASE(group_norm) = {.names = {"y", "mean", "rstd", "x", "gamma", "beta"},
                       .outs = 3,
                       .ins = 3,
                       .in_place = OP_BIT(3),
                       .optional = OP_BIT(1) | OP_BIT(2) | OP_BIT(4) | OP_BIT(5),
                       .draw = draw_group_norm,
                       .fill = fill_forward,
                       .run = run_group_norm,
                       .reference = reference_forward,
                       .tolerance = 1e-5};
OP_CASE(instance_norm) = {.names = {"y", "mean", "rstd", "x", "gamma", "beta"},
                          .outs = 3,
                          .ins = 3,
                          .in_place = OP_BIT(3),
                          .optional = OP_BIT(1) | OP_BIT(2) | OP_BIT(4) | OP_BIT(5),
                          .draw = draw_instance_norm,
                          .fill = fill_forward,
                          .run = run_instance_norm,
                          .reference = reference_forward,
                          .tolerance = 1e-5};
OP_CASE(batch_norm) = {.names = {"y", "mean", "rstd", "running_mean", "running_var", "x", "gamma", "beta"},
                       .outs = 5,
                       .ins = 3,
                       .in_place = OP_BIT(5),
                       .optional = OP_BIT(1) | OP_BIT(2) | OP_BIT(3) | OP_BIT(4) | OP_BIT(6) | OP_BIT(7),
                       .reads_outs = OP_BIT(3) | OP_BIT(4),
                       .draws = 400,
                       .draw = draw_batch_norm,
                       .fill = fill_forward,
                       .run = run_batch_norm,
                       .reference = reference_forward,
                       .tolerance = 1e-5};

/* ---- Backward: dx, dgamma, dbeta; dy, x, gamma, mean, rstd ---- */

enum { DX, DGAMMA, DBETA, DY, X, GAMMA, MEAN, RSTD };

static void draw_backward(op_call *c, test_random *r, int kind)
{
    mica_index dims[MICA_MAX_RANK], stat[MICA_MAX_RANK], param[MICA_MAX_RANK];
    int stat_rank, param_rank;
    int rank = draw_dims(c, r, kind, dims, &stat_rank, stat, &param_rank, param);
    for (int k = 0; k < 8; k++) {
        if (k == DX || k == DY || k == X)
            op_tensor(c, k, MICA_F32, rank, dims);
        else if (k == MEAN || k == RSTD)
            op_tensor(c, k, MICA_F32, stat_rank, stat);
        else
            op_tensor(c, k, MICA_F32, param_rank, param);
    }
    c->i[INFERENCE] = kind == BATCH && test_chance(r, 30);
    for (int k = 0; k <= GAMMA; k++)
        c->absent[k] = k != DY && k != X && test_chance(r, 15);
    if (kind == RMS)
        c->absent[DBETA] = c->absent[MEAN] = true;
}

/* mean and rstd are x's, which is filled before them. */
static void fill_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = test_normal(r);
    if (tensor != MEAN && tensor != RSTD)
        return;
    model m = model_of(c, &c->tensor[X]);
    double *x = calloc(m.count + 1, sizeof *x), *mean = calloc(m.stats + 1, sizeof *mean);
    double *variance = calloc(m.stats + 1, sizeof *variance);
    op_read(&c->tensor[X], x);
    statistics(&m, x, mean, variance);
    for (size_t s = 0; s < m.stats && s < count; s++)
        value[s] = tensor == MEAN ? mean[s] : 1.0 / sqrt(variance[s] + m.eps);
    free(x);
    free(mean);
    free(variance);
}

typedef struct backward_user {
    model m;
    double *y, *mean, *rstd, *beta;
    const double *dy, *x, *gamma, *given_mean, *given_rstd;
} backward_user;

static double loss_of(void *user)
{
    backward_user *u = user;
    const double *mean = u->given_mean, *rstd = u->given_rstd;
    if (!u->m.inference) {
        statistics(&u->m, u->x, u->mean, u->rstd);
        for (size_t s = 0; s < u->m.stats; s++)
            u->rstd[s] = 1.0 / sqrt(u->rstd[s] + u->m.eps);
        mean = u->mean;
        rstd = u->rstd;
    }
    normalise(&u->m, u->y, u->x, mean, rstd, u->gamma, u->beta);
    double loss = 0.0;
    for (size_t i = 0; i < u->m.count; i++)
        loss += u->dy[i] * u->y[i];
    return loss;
}

static void reference_backward(const op_call *c, double *const *v)
{
    backward_user u = {.m = model_of(c, &c->tensor[X]), .dy = v[DY], .x = v[X]};
    double *ones = calloc(u.m.params + 1, sizeof *ones);
    for (size_t i = 0; i < u.m.params; i++)
        ones[i] = c->absent[GAMMA] ? 1.0 : v[GAMMA][i];
    u.gamma = ones;
    u.given_mean = v[MEAN];
    u.given_rstd = v[RSTD];
    u.y = calloc(u.m.count + 1, sizeof *u.y);
    u.mean = calloc(u.m.stats + 1, sizeof *u.mean);
    u.rstd = calloc(u.m.stats + 1, sizeof *u.rstd);
    u.beta = calloc(u.m.params + 1, sizeof *u.beta);
    if (!c->absent[DX])
        op_numeric_gradient(v[DX], v[X], u.m.count, loss_of, &u);
    if (!c->absent[DGAMMA])
        op_numeric_gradient(v[DGAMMA], ones, u.m.params, loss_of, &u);
    if (!c->absent[DBETA])
        op_numeric_gradient(v[DBETA], u.beta, u.m.params, loss_of, &u);
    free(ones);
    free(u.y);
    free(u.mean);
    free(u.rstd);
    free(u.beta);
}

#define BACKWARD_CASE(op, kind, unused)                                                                 \
    DRAW(op##_backward, kind, backward)                                                                 \
    static mica_status run_##op##_backward(mica_context *ctx, const op_call *c)                         \
    {                                                                                                   \
        mica_norm_grads grads = {OP(c, DX), OP(c, DGAMMA), OP(c, DBETA)};                               \
        mica_norm_saved saved = {OP(c, MEAN), OP(c, RSTD), c->i[INFERENCE] != 0};                       \
        return mica_##op##_backward(ctx, &grads, OP(c, DY), OP(c, X), OP(c, GAMMA), &saved);            \
    }                                                                                                   \
    OP_CASE(op##_backward) = {.names = {"dx", "dgamma", "dbeta", "dy", "x", "gamma", "mean", "rstd"},   \
                              .outs = 3,                                                                \
                              .ins = 5,                                                                 \
                              .in_place = OP_BIT(DY) | OP_BIT(X),                                       \
                              .optional = OP_BIT(DX) | OP_BIT(DGAMMA) | OP_BIT(DBETA) | OP_BIT(GAMMA) | \
                                          (unused),                                                     \
                              .draw = draw_##op##_backward,                                             \
                              .fill = fill_backward,                                                    \
                              .run = run_##op##_backward,                                               \
                              .reference = reference_backward,                                          \
                              .tolerance = 2e-5}
BACKWARD_CASE(layer_norm, LAYER, 0);
BACKWARD_CASE(rms_norm, RMS, OP_BIT(MEAN));
BACKWARD_CASE(group_norm, GROUP, 0);
BACKWARD_CASE(instance_norm, INSTANCE, 0);
BACKWARD_CASE(batch_norm, BATCH, 0);
