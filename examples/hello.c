#include <mica/mica.h>
#include <stdio.h>

int main(void)
{
    mica_context *ctx;
    if (mica_context_create(&ctx, NULL) != MICA_OK)
        return 1;
    printf("mica %s with %s kernels\n", mica_version(), mica_context_isa(ctx));
    mica_context_destroy(ctx);
    return 0;
}
