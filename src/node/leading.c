/* The leading part of a value, as large along some axes as others are: of tables, masks and first states that are as
 * long as the longest step, and of which a shorter one reads the beginning. */
#include "node/entry.h"

static mica_status infer(mica_infer *i)
{
    const mica_leading_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < x->rank; k++) {
        int like = o->like[k];
        bool there = like >= 0 && like < i->ins && (like == 0 || i->in[like] != NULL);
        if (!there || (like > 0 && (o->axis[k] < 0 || o->axis[k] >= i->in[like]->rank)))
            return mica_infer_fail(i, MICA_ERR_AXIS, "axis %d follows an axis that is not there", k);
        dims[k] = like > 0 ? i->in[like]->dim[o->axis[k]] : x->dim[k];
        if (dims[k] > x->dim[k])
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected at most %td along axis %d, got %td",
                                   x->dim[k], k, dims[k]);
    }
    return mica_infer_out(i, 0, x->dtype, x->rank, dims);
}

static mica_status run(const mica_call *c)
{
    mica_tensor part = *c->in[0];
    for (int k = 0; k < part.rank; k++)
        part.dim[k] = c->out[0]->dim[k];
    return mica_copy(c->ctx, c->out[0], &part);
}

/* Every part of a batch would get the beginning. */
static bool mixes(const mica_infer *i) { return ((const mica_leading_opts *)i->opts)->like[0] > 0; }

const mica_op mica_op_leading = {.name = "leading",
                                 .about = "the leading part of x, as large as others along some axes",
                                 .ins = 1,
                                 .optional_ins = MICA_MAX_RANK,
                                 .outs = 1,
                                 .fixed_ins = 1,
                                 .opts_bytes = sizeof(mica_leading_opts),
                                 .infer = infer,
                                 .run = run,
                                 .mixes = mixes};
