/* Gradients of broadcasting and of selection. */
#include "node/gradient.h"

#include "tensor/tensor.h"

/* ---- Repeated: broadcasting ---- */

bool mica_common_shape(const mica_tensor *a, const mica_tensor *b, int *rank, mica_index *dims)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int k = 1; k <= *rank; k++) {
        mica_index da = k <= a->rank ? a->dim[a->rank - k] : 1, db = k <= b->rank ? b->dim[b->rank - k] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        dims[*rank - k] = da == 1 ? db : da;
    }
    return true;
}

static mica_status run_sum_to(const mica_call *c)
{
    const mica_tensor *from = c->in[0], *y = c->out[0];
    mica_tensor to = *y; /* y with leading axes of 1, one for each of the input's */
    mica_reduce_opts axes = {.count = 0};
    to.rank = from->rank;
    for (int k = 0; k < from->rank; k++) {
        int own = k - (from->rank - y->rank);
        to.dim[k] = own >= 0 ? y->dim[own] : 1;
        to.stride[k] = own >= 0 ? y->stride[own] : 0;
        if (to.dim[k] != from->dim[k])
            axes.axes[axes.count++] = k;
    }
    return axes.count > 0 ? mica_sum(c->ctx, &to, from, &axes) : mica_copy(c->ctx, &to, from);
}

const mica_op mica_op_sum_to = {.name = "sum_to",
                                .about = "a, summed over the axes that were broadcast",
                                .ins = 1,
                                .outs = 1,
                                .run = run_sum_to};

void mica_grad_give_summed(mica_grad *g, int in, const mica_op *op, const mica_value *ins, int count,
                           const void *opts)
{
    if (!mica_grad_wants(g, in))
        return;
    mica_tensor x = mica_grad_shape(g, g->in[in]), y = mica_grad_shape(g, g->out[0]);
    if (mica_tensor_same_shape(&x, &y))
        mica_grad_give(g, in, op, ins, count, opts);
    else
        mica_grad_pass_summed(g, in, mica_grad_value(g, op, ins, count, opts));
}

/* ---- Chosen ---- */

typedef struct part_opts {
    bool otherwise;
} part_opts;

static const mica_field part_fields[] = {
    MICA_FIELD(part_opts, otherwise, BOOL, "select where the condition is 0 instead")};

static mica_status infer_part(mica_infer *i) { return mica_infer_like(i, 0, 0); }

static mica_status run_part(const mica_call *c)
{
    bool otherwise = ((const part_opts *)c->opts)->otherwise;
    return mica_where_backward(c->ctx, otherwise ? NULL : c->out[0], otherwise ? c->out[0] : NULL, c->in[0],
                               c->in[1]);
}

/* One of where_backward's two results, for where the other is not wanted, or the sums of both are. */
static const mica_op part = {.name = "where_part",
                             .about = "a where the condition holds, else 0",
                             .flags = MICA_OP_CHEAP,
                             .ins = 2,
                             .outs = 1,
                             .names = (const char *const[]){"a", "cond", "y"},
                             .opts_bytes = sizeof(part_opts),
                             MICA_FIELD_LIST(part_fields),
                             .in_place = {1},
                             .infer = infer_part,
                             .run = run_part};

mica_value mica_grad_part(mica_grad *g, mica_value x, mica_value condition, bool otherwise)
{
    return mica_grad_value(g, &part, (mica_value[]){x, condition}, 2, &(part_opts){otherwise});
}

void mica_grad_give_choice(mica_grad *g, int yes, int no, mica_value condition)
{
    mica_value ins[] = {g->dout[0], condition};
    mica_grad_give_summed(g, no, &part, ins, 2, &(part_opts){true});
    mica_grad_give_summed(g, yes, &part, ins, 2, &(part_opts){false});
}
