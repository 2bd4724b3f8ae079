#include <mica/mica.h>
#include <stdio.h>

int main(void)
{
    float in[3] = {1, 2, 3}, weights[3 * 2] = {0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f}, out[2];
    mica_tensor x = mica_2d(in, 1, 3), w = mica_2d(weights, 3, 2), y = mica_2d(out, 1, 2);
    mica_context *ctx;
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = 2}) != MICA_OK)
        return 1;
    if (mica_matmul(ctx, &y, &x, &w, NULL) != MICA_OK || mica_softmax(ctx, &y, &y, -1) != MICA_OK)
        return fprintf(stderr, "%s\n", mica_error(ctx)), 1;
    printf("softmax(x w) = %g %g\n", out[0], out[1]);
    mica_context_destroy(ctx);
    return 0;
}
