/* Files: the part that is independent of the operating system. */
#include "io/file.h"

#include <string.h>

#include "io/quote.h"

mica_file mica_file_over(const void *memory, size_t bytes, const char *name)
{
    /* An empty file may have no memory, but is still one in memory. */
    static const unsigned char nothing[1];
    return (mica_file){
        .path = name, .memory = memory != NULL ? memory : nothing, .handle = -1, .bytes = bytes};
}

mica_file mica_file_part(const mica_file *whole, uint64_t start, uint64_t bytes)
{
    mica_file part = *whole;
    part.part = true;
    part.bytes = bytes;
    part.start += start;
    if (part.memory != NULL)
        part.memory += start;
    return part;
}

mica_status mica_file_read(mica_context *ctx, void *to, const mica_file *file, size_t bytes, uint64_t offset)
{
    if (bytes > file->bytes || offset > file->bytes - bytes)
        return mica_fail(
            ctx, MICA_ERR_FORMAT, "%s: cannot read %zu bytes at byte %llu: the file ends at byte %llu",
            MICA_QUOTE(file->path), bytes, (unsigned long long)offset, (unsigned long long)file->bytes);
    if (file->memory == NULL)
        return mica_system_read(ctx, to, file, bytes, file->start + offset);
    if (bytes > 0)
        memcpy(to, file->memory + offset, bytes);
    return MICA_OK;
}
