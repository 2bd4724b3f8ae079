/* WAV files, as they are, mixed and at another rate. */
#include "data/sound.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.workspace_bytes = 64}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    for (int pass = 0; pass < 2; pass++) {
        mica_sound s;
        mica_wav_opts opts = {.rate = pass == 1 ? 4000 : 0, .mono = pass == 1};
        mica_status status = mica_sound_from_memory(ctx, &s, data, size, "input", &opts);
        INSIST(status == MICA_OK || status == MICA_ERR_FORMAT || status == MICA_ERR_MEMORY ||
               status == MICA_ERR_IO);
        INSIST((status == MICA_OK) == (s.samples.data != NULL));
        if (status == MICA_OK)
            INSIST(mica_tensor_contiguous(&s.samples) && mica_tensor_bytes(&s.samples) <= s.owned);
        mica_sound_destroy(ctx, &s);
    }
    INSIST(mica_context_heap(ctx).live_bytes == live);
    mica_context_destroy(ctx);
    return 0;
}
