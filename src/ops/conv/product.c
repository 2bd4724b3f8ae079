/* Shared by the paths of a convolution's product. */
#include "ops/conv/product.h"

bool mica_conv_pixel_stride(ptrdiff_t *stride, size_t rows, size_t columns, ptrdiff_t row_stride,
                            ptrdiff_t column_stride)
{
    *stride = columns == 1 ? row_stride : column_stride;
    return rows == 1 || columns == 1 || row_stride == (ptrdiff_t)columns * column_stride;
}

/* ---- Weights ---- */

/* A mica_gemm_pack_fn: rows are output channels, k runs over (channel, tap row, tap column). */
void mica_conv_pack_weights(const void *source, float *panel, size_t width, size_t first, size_t count,
                            size_t k0, size_t k)
{
    const mica_conv_weights *w = source;
    size_t u = k0 % w->columns, t = k0 / w->columns % w->rows, c = k0 / w->columns / w->rows;
    for (size_t p = 0, n; p < k; p += n) {
        n = mica_least(w->columns - u, k - p);
        const float *from = w->taps.data + (ptrdiff_t)first * w->vector_stride +
                            (ptrdiff_t)c * w->taps.channel_stride + (ptrdiff_t)t * w->taps.row_stride +
                            (ptrdiff_t)u * w->taps.column_stride;
        w->gemm->pack(panel + p * width, width, from, w->vector_stride, w->taps.column_stride, count, n);
        u = 0;
        if (++t == w->rows) {
            t = 0;
            c++;
        }
    }
}

void mica_conv_join_taps(mica_conv_weights *w)
{
    ptrdiff_t stride;
    if (mica_conv_pixel_stride(&stride, w->rows, w->columns, w->taps.row_stride, w->taps.column_stride)) {
        w->columns *= w->rows;
        w->rows = 1;
        w->taps.column_stride = stride;
    }
}

/* ---- The end ---- */

void mica_conv_finish_plane(const mica_conv_product *p, float *at, size_t rows, size_t columns)
{
    if (p->finish == NULL)
        return;
    ptrdiff_t stride = p->out.column_stride;
    if (stride == 1 && p->out.row_stride == (ptrdiff_t)columns) { /* rows are one run */
        columns *= rows;
        rows = mica_least(rows, 1);
    }
    for (size_t i = 0; i < rows; i++, at += p->out.row_stride) {
        if (stride == 1) {
            p->finish(at, (const float *const[]){at}, columns, &p->slope);
            continue;
        }
        float some[64];
        for (size_t j = 0, n; j < columns; j += n) {
            n = mica_least(columns - j, sizeof some / sizeof some[0]);
            for (size_t x = 0; x < n; x++)
                some[x] = at[(ptrdiff_t)(j + x) * stride];
            p->finish(some, (const float *const[]){some}, n, &p->slope);
            for (size_t x = 0; x < n; x++)
                at[(ptrdiff_t)(j + x) * stride] = some[x];
        }
    }
}
