/* Recurrent forward, inputs and state multiplied at once: recurrent_forward.h. */
#include "ops/recurrent_forward.h"

#if !defined(MICA_SMALL)

#include <string.h>

void mica_recurrent_join_product(mica_recurrent_forward *j, const float *bias)
{
    const mica_tensor *w = j->w_ih;
    mica_recurrent_product *p = &j->step.product;
    p->input_weights = (mica_gemm_operand){
        .data = w->data, .vector_stride = w->stride[0], .k_stride = w->stride[1]};
    p->inputs = j->r.inputs;
    p->k += p->dots ? 0 : p->inputs;
    p->beta = 0.0f;
    p->bias = bias;
}

static mica_cell_rows inputs_at(const mica_recurrent_forward *j, size_t t)
{
    return (mica_cell_rows){(float *)j->x + t * j->r.batch * j->r.inputs, (ptrdiff_t)j->r.inputs};
}

static mica_cell_rows joined_at(const mica_recurrent_forward *j, size_t t)
{
    size_t stride = mica_recurrent_joined_stride(&j->r);
    return (mica_cell_rows){j->joined + t % 2 * j->r.batch * stride, (ptrdiff_t)stride};
}

void mica_recurrent_join_first(const mica_recurrent_forward *j)
{
    size_t inputs = j->r.inputs, hidden = j->r.hidden;
    if (j->r.dots) /* it stays where it is */
        return;
    mica_cell_rows x = inputs_at(j, 0), to = joined_at(j, 0);
    for (size_t i = j->step.row; i < j->step.row + j->step.rows; i++) {
        float *row = to.data + (ptrdiff_t)i * to.stride;
        memcpy(row, x.data + (ptrdiff_t)i * x.stride, inputs * sizeof *row);
        if (j->h_0 != NULL)
            memcpy(row + inputs, j->h_0 + i * hidden, hidden * sizeof *row);
    }
}

void mica_recurrent_join_step(mica_recurrent_forward *j, size_t t)
{
    const mica_cell_rows none = {NULL, 0};
    mica_recurrent_step *s = &j->step;
    bool last = t + 1 == j->r.steps;
    s->product.to = s->cell.gates;
    if (j->r.dots) {
        s->product.x = inputs_at(j, t);
        return;
    }
    s->product.from = joined_at(j, t);
    s->product.inputs_alone = t == 0 && j->h_0 == NULL;
    s->next = joined_at(j, t + 1);
    s->next_x = last ? none : inputs_at(j, t + 1);
    s->cell.h_again = (mica_cell_rows){s->next.data + j->r.inputs, s->next.stride};
}

#endif
