/* Linear over weights that were packed when the net was bound: created by compiling for inference alone, so it has no
 * gradient. The same bits as linear. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"
#include "ops/gemm.h"
#include "tensor/tensor.h"

#if !defined(MICA_SMALL)

enum { X, W, BIAS, PACKED };

/* Rows of x up to which weights are best read as they lie, and the least sizes of weights that are worth it. */
#define FEW_ROWS    4
#define LEAST_UNITS 8
#define LEAST_WIDTH 8

static mica_tensor as_rows(const mica_tensor *t)
{
    mica_index count = 1;
    for (int k = 0; k + 1 < t->rank; k++)
        count *= t->dim[k];
    mica_tensor rows = *t;
    (void)mica_tensor_refit(&rows, t, 2, (mica_index[]){count, t->dim[t->rank - 1]});
    return rows;
}

static mica_status infer(mica_infer *i) { return mica_op_linear.infer(i); }

static mica_status run(const mica_call *c)
{
    const mica_matmul_opts *opts = c->opts;
    mica_tensor x = as_rows(c->in[X]), y = as_rows(c->out[0]);
    return mica_matmul_packed(
        c->ctx, &y, &x, c->in[W], c->in[PACKED],
        &(mica_matmul_opts){
            .transpose_b = true, .bias = c->in[BIAS], .activation = opts->activation, .slope = opts->slope});
}

static const mica_field fields[] = {
    MICA_FIELD(mica_matmul_opts, activation, ACTIVATION, "fused activation"),
    MICA_FIELD(mica_matmul_opts, slope, FLOAT, "slope of leaky_relu, alpha of elu"),
};

const mica_op mica_op_linear_packed = {.name = "linear_packed",
                                       .about = "x wT + bias over the last axis, w packed before",
                                       .ins = 4,
                                       .outs = 1,
                                       .names = (const char *const[]){"x", "w", "bias", "packed", "y"},
                                       .opts_bytes = sizeof(mica_matmul_opts),
                                       MICA_FIELD_LIST(fields),
                                       .infer = infer,
                                       .run = run};

/* ---- Packing ---- */

static mica_status run_pack(const mica_call *c)
{
    return mica_matmul_pack(c->ctx, c->out[0], c->in[0], true);
}

static const mica_op pack = {.name = "linear_pack",
                             .about = "weights as linear_packed reads them",
                             .ins = 1,
                             .outs = 1,
                             .run = run_pack};

bool mica_linear_prepare(const mica_net *net, const mica_node *node, mica_preparation *how)
{
    mica_tensor x = as_rows(&net->values[node->in[X]].tensor);
    const mica_tensor *w = &net->values[node->in[W]].tensor;
    if (x.dim[0] <= FEW_ROWS || w->dim[0] < LEAST_UNITS || w->dim[1] < LEAST_WIDTH)
        return false;
    mica_index floats = (mica_index)mica_gemm_packed_floats(net->ctx, (size_t)w->dim[0], (size_t)w->dim[1],
                                                            false);
    how->input = W;
    how->place = PACKED;
    how->op = &mica_op_linear_packed;
    memcpy(&how->opts, node->opts, sizeof(mica_matmul_opts));
    how->maker = &pack;
    how->shape = mica_1d(NULL, floats);
    return true;
}

#endif
