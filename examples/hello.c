#include <mica/mica.h>
#include <stdio.h>

int main(void)
{
    float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3] = {10, 20, 30}, sum[2 * 3];
    mica_tensor x = mica_2d(a, 2, 3), row = mica_1d(b, 3), y = mica_2d(sum, 2, 3);
    mica_context *ctx;
    if (mica_context_create(&ctx, NULL) != MICA_OK)
        return 1;
    if (mica_add(ctx, &y, &x, &row) != MICA_OK) /* the row is broadcast; nothing is allocated */
        return fprintf(stderr, "%s\n", mica_error(ctx)), 1;
    printf("%g %g %g\n%g %g %g\n", sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]);
    mica_context_destroy(ctx);
    return 0;
}
