/* Net files: any text is an error that says where, or a net that compiles or says why not. Nothing is left
 * behind, and the text that a net keeps builds it again. */
#include <string.h>

#include <mica/netfile.h>

#include "fuzz.h"

static mica_status build(mica_context *ctx, const char *text, bool again)
{
    mica_net *net;
    mica_netfile_info info;
    mica_netfile_constant set[] = {{"width", 5, true}, {"classes", 3, true}};
    mica_netfile_opts opts = {
        .batch = 2, .sample_rank = 2, .sample = {6, 5}, .constants = set, .constant_count = 2};
    INSIST(mica_net_create(ctx, &net) == MICA_OK);
    mica_status status = mica_netfile_build(net, &info, text,
                                            again ? &(mica_netfile_opts){.batch = 2} : &opts);
    if (status == MICA_OK) {
        INSIST(info.output != NULL && info.text != NULL);
        if (!again)
            INSIST(build(ctx, info.text, true) == MICA_OK);
        if (mica_net_layers(net) < 200) /* planning more of them takes its time */
            (void)mica_net_compile(net, &(mica_compile_opts){.train = info.task != MICA_TASK_NONE});
    } else {
        INSIST(*mica_error(ctx) != '\0');
    }
    mica_net_destroy(net);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.workspace_bytes = 64}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    char *text = malloc(size + 1);
    INSIST(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    (void)build(ctx, text, false);
    free(text);
    INSIST(mica_context_heap(ctx).live_bytes == live);
    mica_context_destroy(ctx);
    return 0;
}
