/* JPEG images, through libjpeg. */
#include "array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_array(mica_jpeg_read, data, size);
}
