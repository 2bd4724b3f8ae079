/* Rows times weights of f32, f16 or bf16. */
#include "ops/linear_rows.h"

#include "kernel/kernels.h"

size_t mica_linear_rows_float_scratch(const mica_context *ctx, const mica_linear_rows_call *call)
{
    (void)ctx;
    (void)call;
    return 0;
}

void mica_linear_rows_float(mica_context *ctx, const mica_linear_rows_call *c, void *scratch)
{
    (void)scratch;
    mica_index bytes = (mica_index)mica_dtype_bytes(c->w_dtype);
    for (size_t n = 0; n < c->units; n++) {
        const char *w = (const char *)c->w + (mica_index)n * c->w_stride * bytes;
        for (size_t t = 0; t < c->rows; t++) {
            float sum = 0.0f;
            for (size_t k = 0; k < c->width; k++) {
                float value;
                ctx->kernels->convert->run(&value, MICA_F32, w + (mica_index)k * bytes, c->w_dtype, 1);
                sum += value * c->x[(mica_index)t * c->x_stride + (mica_index)k];
            }
            c->y[(mica_index)t * c->y_stride + (mica_index)n] = c->bias != NULL ? sum + c->bias[n] : sum;
        }
    }
}
