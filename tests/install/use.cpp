// The same from C++.
#include <cstdio>
#include <mica/mica.h>

int main()
{
    mica_context_opts opts{};
    opts.threads = 2;
    mica_context *ctx = nullptr;
    if (mica_context_create(&ctx, &opts) != MICA_OK)
        return 1;
    std::printf("mica %s, %s\n", mica_version(), mica_context_isa(ctx));
    mica_context_destroy(ctx);
    return 0;
}
