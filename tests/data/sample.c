/* Reading formats from bytes in memory. */
#include "data/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

mica_status sample_read(mica_context *ctx, mica_loaded *out, mica_read_fn *read, const void *bytes,
                        size_t count)
{
    void *copy = malloc(count > 0 ? count : 1);
    if (count > 0)
        memcpy(copy, bytes, count);
    mica_stream stream;
    mica_status status = mica_stream_open_memory(ctx, &stream, copy, count, "file");
    if (status == MICA_OK) {
        status = read(ctx, out, &stream);
        mica_stream_close(ctx, &stream);
    }
    free(copy);
    return status;
}

bool sample_has_zlib(mica_context *ctx)
{
    mica_stream stream;
    mica_status status = mica_stream_open_memory(ctx, &stream, "\x1f\x8b", 2, "file");
    if (status == MICA_OK)
        mica_stream_close(ctx, &stream);
    if (status == MICA_ERR_IO)
        CHECK(strcmp(mica_error(ctx),
                     "file error: \"file\": a gzip file, but this build has no zlib: decompress it first") ==
              0);
    return status != MICA_ERR_IO;
}

const char *sample_real_data(const char *name)
{
    static char path[1024];
    const char *folder = getenv("MICA_DATA");
    if (folder != NULL)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    else
        snprintf(path, sizeof path, "%s/../../../shared/data/%s", MICA_TEST_DATA, name);
    return access(path, R_OK) == 0 ? path : NULL;
}
