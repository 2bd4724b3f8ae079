/* Gradients against differences of the loss. */
#include <math.h>
#include <string.h>

#include <mica/train.h>

#include "base/context.h"
#include "base/size.h"
#include "tensor/tensor.h"

#define SMALLER 8 /* a step that crosses a corner is tried again this much smaller, twice */

typedef struct checker {
    mica_net *net;
    mica_context *ctx;
    mica_gradient_check_opts opts;
    mica_gradient_check *out;
    char *inputs; /* copies of all of them, one after the other */
    size_t input_bytes;
    double *differences; /* [opts.count] */
} checker;

/* ---- Inputs: a step may overwrite them ---- */

static mica_status copy_inputs(const checker *c, bool restore)
{
    char *at = c->inputs;
    for (int n = 0; n < mica_net_inputs(c->net); n++) {
        const char *name;
        mica_tensor t;
        MICA_TRY(mica_net_input_tensor(c->net, &name, &t, n));
        size_t bytes = mica_tensor_bytes(&t);
        if (bytes > 0)
            memcpy(restore ? t.data : at, restore ? at : t.data, bytes);
        at += bytes;
    }
    return MICA_OK;
}

static mica_status measure_inputs(checker *c)
{
    for (int n = 0; n < mica_net_inputs(c->net); n++) {
        const char *name;
        mica_tensor t;
        MICA_TRY(mica_net_input_tensor(c->net, &name, &t, n));
        c->input_bytes += mica_tensor_bytes(&t);
    }
    return MICA_OK;
}

/* What each forward starts from. */
static mica_status prepare(const checker *c)
{
    if (mica_net_keeps_states(c->net))
        MICA_TRY(mica_net_reset_states(c->net));
    return copy_inputs(c, true);
}

/* ---- Differences ---- */

static mica_status loss_of(const checker *c, double *loss)
{
    MICA_TRY(prepare(c));
    MICA_TRY(mica_net_forward_training(c->net, c->opts.step_number));
    *loss = c->opts.loss != NULL ? c->opts.loss(c->opts.user, c->net) : (double)mica_net_loss(c->net);
    return MICA_OK;
}

static mica_status difference_at(const checker *c, double *out, float *element, double step)
{
    float kept = *element;
    volatile float above = kept + (float)step, below = kept - (float)step; /* as they are stored */
    double high, low;
    *element = above;
    mica_status status = loss_of(c, &high);
    *element = below;
    if (status == MICA_OK)
        status = loss_of(c, &low);
    *element = kept;
    if (status == MICA_OK)
        *out = (high - low) / ((double)above - (double)below);
    return status;
}

/* ---- One parameter ---- */

typedef struct parameter {
    const char *name;
    float *values;
    const float *gradients;
    size_t elements, count; /* all; those that are checked */
} parameter;

/* Number `i` of the elements to check: one from each of equal parts of the parameter. */
static size_t chosen(const checker *c, const parameter *p, size_t i)
{
    if (p->count == p->elements)
        return i;
    size_t first = (size_t)((double)i * (double)p->elements / (double)p->count);
    size_t next = (size_t)((double)(i + 1) * (double)p->elements / (double)p->count);
    uint64_t hash = (c->opts.seed + 0x9e3779b97f4a7c15u * (i + 1)) * 0xbf58476d1ce4e5b9u;
    return mica_least(first + (size_t)((hash ^ hash >> 31) % (next > first ? next - first : 1)),
                      p->elements - 1);
}

static void note(checker *c, const parameter *p, size_t at, double difference, double largest)
{
    double gradient = (double)p->gradients[at], error = fabs(gradient - difference) / largest;
    error = isnan(error) ? INFINITY : error;
    c->out->checked++;
    if (!(error <= c->opts.tolerance))
        c->out->right = false;
    if (c->out->name != NULL && error <= c->out->error)
        return;
    c->out->name = p->name;
    c->out->element = at;
    c->out->gradient = gradient;
    c->out->difference = difference;
    c->out->error = error;
}

/* Off by more than the tolerance with one step: perhaps there is a corner in between. */
static mica_status look_closer(checker *c, const parameter *p, size_t i, double largest)
{
    size_t at = chosen(c, p, i);
    double gradient = (double)p->gradients[at], step = c->opts.step, most = c->opts.tolerance * largest;
    for (int k = 0; k < 2 && !(fabs(gradient - c->differences[i]) <= most); k++) {
        double closer;
        step /= SMALLER;
        MICA_TRY(difference_at(c, &closer, p->values + at, step));
        if (fabs(gradient - closer) <= most) {
            c->differences[i] = closer;
            c->out->corners++;
        }
    }
    return MICA_OK;
}

static mica_status check_parameter(checker *c, const parameter *p)
{
    double largest = c->opts.least;
    for (size_t i = 0; i < p->count; i++) {
        size_t at = chosen(c, p, i);
        MICA_TRY(difference_at(c, &c->differences[i], p->values + at, c->opts.step));
        largest = fmax(largest, fmax(fabs(c->differences[i]), fabs((double)p->gradients[at])));
    }
    for (size_t i = 0; i < p->count; i++) {
        MICA_TRY(look_closer(c, p, i, largest));
        note(c, p, chosen(c, p, i), c->differences[i], largest);
    }
    return MICA_OK;
}

static mica_status check_all(checker *c)
{
    mica_tensor all, gradients;
    MICA_TRY(copy_inputs(c, false));
    MICA_TRY(prepare(c));
    MICA_TRY(mica_net_gradients(c->net, &(mica_backward_opts){.step = c->opts.step_number}));
    MICA_TRY(mica_net_flat(c->net, &all, &gradients));
    for (int n = 0; n < mica_net_parameters(c->net); n++) {
        parameter p;
        mica_tensor t;
        MICA_TRY(mica_net_parameter(c->net, &p.name, &t, n));
        ptrdiff_t first = (float *)t.data - (float *)all.data;
        if (first >= gradients.dim[0] && mica_tensor_count(&t) > 0)
            continue; /* frozen */
        p.values = t.data;
        p.gradients = (const float *)gradients.data + first;
        p.elements = mica_tensor_count(&t);
        p.count = mica_least(p.elements, c->opts.count);
        MICA_TRY(check_parameter(c, &p));
    }
    return prepare(c);
}

static void settle(mica_gradient_check_opts *o, const mica_gradient_check_opts *given)
{
    *o = given != NULL ? *given : (mica_gradient_check_opts){0};
    o->step = o->step > 0 ? o->step : 1e-2;
    o->tolerance = o->tolerance > 0 ? o->tolerance : 5e-3;
    o->least = o->least > 0 ? o->least : 1e-3;
    o->count = o->count > 0 ? o->count : 64;
}

mica_status mica_check_gradients(mica_net *net, mica_gradient_check *out,
                                 const mica_gradient_check_opts *opts)
{
    if (net == NULL)
        return MICA_ERR_ARGUMENT;
    checker c = {.net = net, .ctx = mica_net_context(net), .out = out};
    if (out == NULL)
        return mica_fail(c.ctx, MICA_ERR_ARGUMENT, "check_gradients: out is NULL");
    *out = (mica_gradient_check){.right = true};
    settle(&c.opts, opts);
    MICA_TRY(measure_inputs(&c));
    if (c.opts.count > SIZE_MAX / 2 / sizeof *c.differences)
        return mica_fail(c.ctx, MICA_ERR_ARGUMENT, "check_gradients: count is %zu: expected less",
                         c.opts.count);
    size_t most = 0;
    for (int n = 0; n < mica_net_parameters(net); n++) {
        const char *name;
        mica_tensor t;
        MICA_TRY(mica_net_parameter(net, &name, &t, n));
        most = mica_most(most, mica_least(mica_tensor_count(&t), c.opts.count));
    }
    size_t bytes = most * sizeof *c.differences + c.input_bytes + 1;
    c.differences = mica_allocate(c.ctx, bytes);
    if (c.differences == NULL)
        return c.ctx->status;
    c.inputs = (char *)(c.differences + most);
    mica_status status = check_all(&c);
    mica_release(c.ctx, c.differences, bytes);
    return status;
}
