/* A training step: backward, clipping, and one pass of the optimizer over flat memory. */
#include <math.h>

#include <mica/train.h>

#include "base/parallel.h"
#include "base/size.h"
#include "net/net.h"
#include "kernel/kernels.h"
#include "train/loop.h"

/* ---- The update ---- */

/* Elements in one block of parallel work, at least. */
#define BLOCK ((size_t)16384)
/* Parameters and gradients of so many elements, 10 MiB, are taken to be in the third cache. */
#define NEAR_ELEMENTS ((size_t)5 << 18)

typedef struct update_job {
    mica_net *net;
    size_t first, end; /* elements */
    size_t block;
    mica_update_fn *fn;
    mica_update with_decay, without;
} update_job;

static float or_else(float value, float usual) { return value != 0.0f ? value : usual; }

float mica_optimizer_lr(const mica_optimizer *o)
{
    bool adam = o->kind == MICA_ADAM || o->kind == MICA_ADAMW;
    return or_else(o->lr, adam ? 0.001f : 0.01f);
}

/* Whether a parameter is decayed: AdamW leaves biases and norms alone unless told otherwise. */
static bool decays(const mica_optimizer *o, const mica_value_info *v)
{
    return o->kind != MICA_ADAMW || o->decay_all || v->tensor.rank >= 2;
}

static mica_update_fn *choose_kernel(const mica_optimizer_kernels *k, const mica_optimizer *o)
{
    switch (o->kind) {
    case MICA_SGD:
        return o->momentum != 0.0f ? MICA_KERNEL_OF(k, optimizer, sgd_momentum)
                                   : MICA_KERNEL_OF(k, optimizer, sgd);
    case MICA_RMSPROP:
        return o->momentum != 0.0f ? MICA_KERNEL_OF(k, optimizer, rmsprop_momentum)
                                   : MICA_KERNEL_OF(k, optimizer, rmsprop);
    case MICA_ADAGRAD:
        return MICA_KERNEL_OF(k, optimizer, adagrad);
    default:
        return MICA_KERNEL_OF(k, optimizer, adam);
    }
}

/* All numbers of step `t` (from 1) but the decay. */
static mica_update numbers(const mica_optimizer *o, float lr, uint64_t t, float gradient_scale)
{
    bool adam = o->kind == MICA_ADAM || o->kind == MICA_ADAMW;
    double beta1 = or_else(o->beta1, 0.9f), beta2 = or_else(o->beta2, 0.999f);
    mica_update u = {.lr = lr,
                     .gradient_scale = gradient_scale,
                     .clip_value = or_else(o->clip_value, INFINITY),
                     .keep = 1.0f,
                     .momentum = o->momentum,
                     .nesterov_momentum = o->nesterov ? o->momentum : 0.0f,
                     .beta1 = (float)beta1,
                     .beta2 = adam ? (float)beta2 : or_else(o->alpha, 0.99f),
                     .eps = or_else(o->eps, o->kind == MICA_ADAGRAD ? 1e-10f : 1e-8f)};
    if (adam) { /* nobody else reads these, and powers are dear on a processor without doubles */
        u.step_size = (float)((double)lr / (1.0 - pow(beta1, (double)t)));
        u.root_scale = (float)(1.0 / sqrt(1.0 - pow(beta2, (double)t)));
    }
    return u;
}

/* The first learned parameter that ends behind `element`, by number in net->learned. */
static int first_behind(const mica_net *net, size_t element)
{
    int low = 0, high = net->learned_values;
    while (low < high) {
        int middle = (low + high) / 2;
        const mica_value_info *v = &net->values[net->learned[middle]];
        if (v->flat + mica_align_up(v->bytes) / sizeof(float) <= element)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void update_block(void *work, size_t block, int thread)
{
    (void)thread;
    const update_job *job = work;
    mica_net *net = job->net;
    size_t begin = job->first + block * job->block, end = mica_least(begin + job->block, job->end);
    float *const *state = net->flat_optimizer;
    for (int i = first_behind(net, begin); i < net->learned_values && begin < end; i++) {
        const mica_value_info *v = &net->values[net->learned[i]];
        size_t its_end = v->flat + mica_align_up(v->bytes) / sizeof(float);
        size_t n = mica_least(its_end, end) - begin, at = begin - net->state_first;
        job->fn(net->flat_parameters + begin, net->flat_gradients + begin,
                state[0] != NULL ? state[0] + at : NULL, state[1] != NULL ? state[1] + at : NULL, n,
                decays(&net->optimizer, v) ? &job->with_decay : &job->without);
        begin += n;
    }
}

static mica_status find_norm(mica_net *net)
{
    if (net->optimizer.clip_norm == 0.0f)
        return MICA_OK;
    mica_tensor gradients = mica_1d(net->flat_gradients, (mica_index)net->learned_count);
    mica_tensor norm = mica_0d(&net->gradient_norm);
    return mica_norm(net->ctx, &norm, &gradients, MICA_NORM_L2, NULL);
}

/* PyTorch's clip_grad_norm_, its 1e-6 included. */
static float clip_scale(const mica_net *net)
{
    float factor = net->optimizer.clip_norm / (net->gradient_norm + 1e-6f);
    return net->optimizer.clip_norm != 0.0f && factor < 1.0f ? factor : 1.0f;
}

void mica_train_update_part(mica_net *net, float lr, size_t first, size_t count)
{
    const mica_optimizer *o = &net->optimizer;
    if (lr < 0.0f)
        lr = mica_optimizer_lr(o);
    float scale = clip_scale(net);
    update_job job = {.net = net,
                      .first = first,
                      .end = first + count,
                      .block = mica_block_elements(net->ctx, count, BLOCK),
                      .fn = choose_kernel(net->ctx->kernels->optimizer, o)};
    job.without = numbers(o, lr, net->steps_taken + 1, scale);
#if !defined(MICA_SMALL)
    job.without.near = count <= NEAR_ELEMENTS;
#endif
    job.with_decay = job.without;
    if (o->kind == MICA_ADAMW)
        job.with_decay.keep = 1.0f - lr * o->weight_decay;
    else
        job.with_decay.weight_decay = o->weight_decay;
    mica_parallel(net->ctx, mica_div_up(count, job.block), update_block, &job);
    net->steps_taken++;
}

static mica_status update(mica_net *net, float lr)
{
    MICA_TRY(find_norm(net));
    mica_train_update_part(net, lr, 0, net->learned_count);
    return MICA_OK;
}

mica_status mica_train_check_lr(mica_net *net, float lr)
{
    if (isfinite(lr) && (lr >= 0.0f || lr == MICA_OPTIMIZER_LR))
        return MICA_OK;
    return mica_fail(net->ctx, MICA_ERR_ARGUMENT,
                     "train_update: the learning rate is %g: expected 0 or more, or MICA_OPTIMIZER_LR",
                     (double)lr);
}

mica_status mica_train_update(mica_net *net, float lr)
{
    if (net->block == NULL || !net->has_optimizer)
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "train_update: the net is not bound, or was compiled without an optimizer");
    if (net->ranks > 1) /* even if a rank has all of it, as others have none */
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "train_update: the optimizer's state is spread over ranks: use mica_ranks_step");
    MICA_TRY(mica_train_check_lr(net, lr));
    net->ready = false; /* what the forward read has changed */
    if (net->watch == NULL)
        return update(net, lr);
    mica_work work = mica_net_update_work(net);
    mica_net_tell(net, &work, false);
    mica_status status = update(net, lr);
    mica_net_tell(net, &work, true);
    return status;
}

/* ---- Steps ---- */

mica_status mica_train_accumulate(mica_net *net, int part, int parts)
{
    if (parts < 1 || part < 0 || part >= parts)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "train_accumulate: part %d of %d", part, parts);
    return mica_net_gradients(
        net, &(mica_backward_opts){.add = part > 0,
                                   .scale = 1.0f / (float)parts,
                                   .step = net->steps_taken * (uint64_t)parts + (uint64_t)part});
}

mica_status mica_train_step(mica_net *net, float lr)
{
    mica_parallel_begin(net->ctx);
    mica_status status = mica_train_accumulate(net, 0, 1);
    if (status == MICA_OK)
        status = mica_train_update(net, lr);
    mica_parallel_end(net->ctx);
    return status;
}

uint64_t mica_train_steps(const mica_net *net) { return net->steps_taken; }

mica_status mica_train_set_steps(mica_net *net, uint64_t steps)
{
    net->steps_taken = steps;
    return MICA_OK;
}

float mica_train_gradient_norm(const mica_net *net) { return net->gradient_norm; }

int mica_train_state(mica_net *net, mica_tensor out[2])
{
    int count = 0;
    for (int i = 0; i < 2; i++)
        if (net->flat_optimizer[i] != NULL)
            out[count++] = mica_1d(net->flat_optimizer[i], (mica_index)net->state_count);
    return count;
}
