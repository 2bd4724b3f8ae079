/* Files without a file system: opening always fails. */
#include "io/file.h"
#include "io/quote.h"

static mica_status refuse(mica_context *ctx, const char *path)
{
    return mica_fail(ctx, MICA_ERR_IO, "%s: this build has no file support (MICA_IO=OFF)", MICA_QUOTE(path));
}

mica_status mica_file_open(mica_context *ctx, mica_file *out, const char *path)
{
    *out = (mica_file){.handle = -1};
    return refuse(ctx, path);
}

bool mica_file_exists(const char *path)
{
    (void)path;
    return false;
}

mica_file_type mica_file_type_of(const char *path)
{
    (void)path;
    return MICA_FILE_NOTHING;
}

mica_status mica_file_visit(mica_context *ctx, const char *folder, mica_visit_fn *visit, void *user)
{
    (void)visit, (void)user;
    return refuse(ctx, folder);
}

void mica_file_close(mica_file *file) { (void)file; }

mica_status mica_system_read(mica_context *ctx, void *to, const mica_file *file, size_t bytes,
                             uint64_t offset)
{
    (void)to, (void)bytes, (void)offset;
    return refuse(ctx, file->path);
}

mica_status mica_map_open(mica_context *ctx, mica_map *out, const char *path)
{
    *out = (mica_map){0};
    return refuse(ctx, path);
}

void mica_map_close(mica_map *map) { (void)map; }

void mica_map_forget(const mica_map *map, const void *bytes, size_t count)
{
    (void)map;
    (void)bytes;
    (void)count;
}

mica_status mica_new_file_begin(mica_context *ctx, mica_new_file *out, const char *path)
{
    out->path = path;
    return refuse(ctx, path);
}

mica_status mica_new_file_write(mica_context *ctx, mica_new_file *file, const void *bytes, size_t count)
{
    (void)bytes, (void)count;
    return refuse(ctx, file->path);
}

mica_status mica_new_file_commit(mica_context *ctx, mica_new_file *file) { return refuse(ctx, file->path); }

void mica_new_file_abandon(mica_new_file *file) { (void)file; }
