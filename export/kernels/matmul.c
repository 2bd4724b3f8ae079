/* c = alpha a b + bias, or with add c += alpha a b, of matrices at any strides, so that either may be transposed. */
#ifndef KERNEL_MATMUL
#define KERNEL_MATMUL

#include <stddef.h>

static void matmul(float *c /* [m, n] */, const float *a /* [m, k] */, const float *b /* [k, n] */,
                   const float *bias /* [n] or NULL */, int m, int n, int k, int a_row, int a_column,
                   int b_row, int b_column, float alpha, int add)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++, c++) {
            const float *left = a + i * a_row, *right = b + j * b_column;
            float sum = 0.0f;
            for (int l = 0; l < k; l++, left += a_column, right += b_row)
                sum += *left * *right;
            *c = (add ? *c : bias != NULL ? bias[j] : 0.0f) + alpha * sum;
        }
}

#endif /* KERNEL_MATMUL */
