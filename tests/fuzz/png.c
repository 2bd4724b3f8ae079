/* PNG images. */
#include "array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return fuzz_array(mica_png_read, data, size); }
