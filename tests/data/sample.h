/* Reading formats from bytes in memory, for the tests of data sets. */
#ifndef MICA_TESTS_SAMPLE_H
#define MICA_TESTS_SAMPLE_H

#include "data/image_file.h"

/* Through a copy of exactly this size, so that the sanitizer sees every step beyond it. */
mica_status sample_read(mica_context *ctx, mica_loaded *out, mica_read_fn *read, const void *bytes,
                        size_t count);

/* Whether the library was built with zlib. */
bool sample_has_zlib(mica_context *ctx);

/* A file of the folder of real data ($MICA_DATA, or ../shared/data beside the sources); NULL if it is not there.
 * Valid until the next call. */
const char *sample_real_data(const char *name);

#endif
