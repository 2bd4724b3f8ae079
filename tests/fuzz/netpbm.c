/* PGM and PPM images. */
#include "array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_array(mica_netpbm_read, data, size);
}
