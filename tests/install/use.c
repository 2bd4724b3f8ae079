/* What a C program of somebody else's does first: a context with two threads, and a look at it. */
#include <mica/mica.h>
#include <stdio.h>

int main(void)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.threads = 2});
    if (status != MICA_OK) {
        fprintf(stderr, "%s\n", mica_status_text(status));
        return 1;
    }
    printf("mica %s, %s, %d threads\n", mica_version(), mica_context_isa(ctx), mica_context_threads(ctx));
    mica_context_destroy(ctx);
    return 0;
}
