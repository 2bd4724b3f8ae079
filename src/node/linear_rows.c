/* Rows times weights of any type. */
#include "node/check.h"
#include "tensor/tensor.h"

enum { X, W, BIAS };

static mica_status infer(mica_infer *i)
{
    const mica_tensor *x = i->in[X], *w = i->in[W];
    MICA_TRY(mica_infer_dtype(i, X, MICA_F32));
    if (x->rank != 2 || w->rank != 2 || x->dim[1] != w->dim[1])
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected rows x [T, K] and weights w [N, K], got %s and %s", MICA_SHAPE(x),
                               MICA_SHAPE(w));
    if (w->dtype != MICA_F32 && w->dtype != MICA_F16 && w->dtype != MICA_BF16 && !mica_in_blocks(w->dtype))
        return mica_infer_fail(i, MICA_ERR_DTYPE,
                               "expected weights of f32, f16, bf16 or a block-quantized type, got %s",
                               mica_dtype_name(w->dtype));
    MICA_TRY(mica_infer_expect(i, BIAS, 1, &w->dim[0]));
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){x->dim[0], w->dim[0]});
}

static mica_status run(const mica_call *c)
{
    return mica_linear_rows(c->ctx, c->out[0], c->in[X], c->in[W], c->in[BIAS]);
}

static void sample(mica_op_sample *s)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};
    mica_index rows = mica_op_sample_int(s, 1, 6), units = mica_op_sample_int(s, 1, 6),
               width = mica_op_sample_int(s, 1, 6);
    mica_op_sample_shape(s, X, 2, (mica_index[]){rows, width});
    mica_op_sample_shape(s, W, 2, (mica_index[]){units, width});
    s->in[W].dtype = dtypes[mica_op_sample_int(s, 0, 2)];
    if (mica_sample_chance(s)) {
        s->ins = 3;
        mica_op_sample_shape(s, BIAS, 1, &units);
    }
}

const mica_op mica_op_linear_rows = {.name = "linear_rows",
                                     .family = "text",
                                     .about = "rows x times weights w of any type, transposed, plus bias",
                                     .ins = 2,
                                     .optional_ins = 1,
                                     .outs = 1,
                                     .names = (const char *const[]){"x", "w", "bias", "y"},
                                     .fixed_ins = 1u << X | 1u << W | 1u << BIAS,
                                     .infer = infer,
                                     .run = run,
                                     .sample = MICA_SAMPLE(sample)};
