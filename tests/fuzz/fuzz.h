/* Shared by the fuzz targets: numbers from the input, and a check that stops the fuzzer. */
#ifndef MICA_TESTS_FUZZ_H
#define MICA_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mica/mica.h>

#define INSIST(condition)                                                   \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

typedef struct bytes {
    const uint8_t *data;
    size_t left;
} bytes;

/* A number from low to high, both included and less than 256 apart; low when the input is used up. */
static inline int take(bytes *in, int low, int high)
{
    if (in->left == 0)
        return low;
    in->left--;
    return low + *in->data++ % (high - low + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
