/* The reader of earlier benchmark runs, over any bytes: what it takes is in range, and what it refuses is refused at a
 * byte of the text. */
#include <string.h>

#include "bench/earlier.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly this size, so that the sanitizer sees a step past the end. */
    char *text = malloc(size > 0 ? size : 1);
    INSIST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    bench_earlier earlier;
    if (earlier_read(&earlier, text, size)) {
        INSIST(earlier.error[0] == '\0');
        for (size_t i = 0; i < earlier.count; i++) {
            const bench_result *r = &earlier.results[i];
            INSIST(r->name >= text && strlen(r->name) < size);
            INSIST(r->threads >= 1 && r->threads <= MICA_MAX_THREADS && r->ns >= 0.0 && r->bytes >= 0.0);
        }
    } else {
        INSIST(earlier.error[0] != '\0' && earlier.error_at <= size && earlier.count == 0);
    }
    earlier_release(&earlier);
    free(text);
    return 0;
}
