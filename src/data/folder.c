/* Folders of samples. */
#include "data/folder.h"

#include <string.h>

#include "base/format.h"
#include "base/size.h"
#include "base/sort.h"
#include "data/classes.h"
#include "io/file.h"
#include "io/quote.h"

enum { MOST_DEPTH = 16 };

/* What the list is made of; kept with it. */
typedef struct mica_folder_block {
    mica_context *ctx;
    const mica_folder_opts *opts; /* while it is made */

    char *text; /* paths one after the other, a zero byte after each */
    size_t used, room;
    mica_folder_file *files; /* [most] */
    size_t count, most;

    bool finds_classes;        /* rather than files */
    int number;                /* of the class being read; -1: none */
    int depth;                 /* of the folder being read */
    char at[MICA_FOLDER_PATH]; /* and its path */
    size_t length;

    const char *names[MICA_MOST_CLASSES];
    mica_classes found; /* sub-folders */
} lister;

/* ---- Room ---- */

/* Makes room for `more` bytes behind the first `used` of a block. */
static mica_status grow(mica_context *ctx, void *block, size_t used, size_t *room, size_t more)
{
    if (more <= *room - used)
        return MICA_OK;
    size_t bytes = mica_most(2 * *room, used + more);
    void *larger = mica_allocate(ctx, bytes), *old;
    if (larger == NULL)
        return ctx->status;
    memcpy(&old, block, sizeof old);
    if (used > 0)
        memcpy(larger, old, used);
    mica_release(ctx, old, *room);
    memcpy(block, &larger, sizeof larger);
    *room = bytes;
    return MICA_OK;
}

/* Appends "/NAME" to the path. */
static mica_status enter(lister *l, const char *name)
{
    size_t length = strlen(name);
    bool slash = l->length > 0 && l->at[l->length - 1] == '/';
    if (length + 2 > sizeof l->at - l->length)
        return mica_fail(l->ctx, MICA_ERR_IO, "%s: a path in it has more than %d bytes", MICA_QUOTE(l->at),
                         MICA_FOLDER_PATH - 1);
    if (!slash)
        l->at[l->length++] = '/';
    memcpy(l->at + l->length, name, length + 1);
    l->length += length;
    return MICA_OK;
}

static void leave(lister *l, size_t length)
{
    l->length = length;
    l->at[length] = '\0';
}

static mica_status add_file(lister *l)
{
    size_t bytes = l->count * sizeof *l->files, room = l->most * sizeof *l->files;
    if (l->count == MICA_FOLDER_MOST_FILES)
        return mica_fail(l->ctx, MICA_ERR_IO, "%s: expected at most %zu files in the folder",
                         MICA_QUOTE(l->at), MICA_FOLDER_MOST_FILES);
    mica_status status = grow(l->ctx, &l->files, bytes, &room, sizeof *l->files);
    l->most = room / sizeof *l->files;
    if (status == MICA_OK)
        status = grow(l->ctx, &l->text, l->used, &l->room, l->length + 1);
    if (status != MICA_OK)
        return status;
    memcpy(l->text + l->used, l->at, l->length + 1);
    l->used += l->length + 1;
    l->files[l->count++].number = l->number;
    return MICA_OK;
}

/* ---- Reading ---- */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool wanted(const mica_folder_opts *opts, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < opts->end_count; i++) {
        size_t end = strlen(opts->ends[i]), same = 0;
        while (end <= length && same < end && lower(name[length - end + same]) == lower(opts->ends[i][same]))
            same++;
        if (same == end)
            return true;
    }
    return opts->end_count == 0;
}

static mica_visit_fn visit;

/* What lies in a class, or in a folder without classes. */
static mica_status visit_inside(lister *l, mica_file_type type, bool is_wanted)
{
    if (is_wanted)
        return add_file(l);
    if (type != MICA_FILE_FOLDER)
        return MICA_OK;
    if (l->depth == MOST_DEPTH)
        return mica_fail(l->ctx, MICA_ERR_IO, "%s: expected at most %d folders within one another",
                         MICA_QUOTE(l->at), MOST_DEPTH);
    l->depth++;
    mica_status status = mica_file_visit(l->ctx, l->at, visit, l);
    l->depth--;
    return status;
}

/* What lies beside the classes: one of them. */
static mica_status visit_class(lister *l, const char *name, mica_file_type type, bool is_wanted)
{
    if (is_wanted)
        return mica_fail(l->ctx, MICA_ERR_IO, "%s: expected every file in the sub-folder of its class",
                         MICA_QUOTE(l->at));
    bool is_folder = type == MICA_FILE_FOLDER || type == MICA_FILE_FOLDER_LINK;
    if (is_folder && !mica_classes_add(&l->found, name, strlen(name)))
        return mica_fail(
            l->ctx, MICA_ERR_IO,
            "%s: expected at most %d sub-folders, one for each class, of %zu bytes in all their names",
            MICA_QUOTE(l->at), MICA_MOST_CLASSES, MICA_CLASS_TEXT_BYTES);
    return MICA_OK;
}

static mica_status visit(void *user, const char *name)
{
    lister *l = user;
    size_t before = l->length;
    if (name[0] == '.')
        return MICA_OK;
    MICA_TRY(enter(l, name));
    mica_file_type type = mica_file_type_of(l->at);
    bool is_wanted = type == MICA_FILE_REGULAR && wanted(l->opts, name);
    mica_status status = l->finds_classes ? visit_class(l, name, type, is_wanted)
                                          : visit_inside(l, type, is_wanted);
    leave(l, before);
    return status;
}

/* The number that files of a class get; -1: it may not have any. */
static int class_number(lister *l, int used, const char *name)
{
    const mica_folder_opts *opts = l->opts;
    for (int i = 0; i < opts->class_count; i++) {
        if (strcmp(opts->classes[i], name) == 0)
            return i;
    }
    return opts->class_count > 0 ? -1 : used;
}

/* Reads the sub-folders in order of their names; those with files are the classes. */
static mica_status read_classes(lister *l, int *count)
{
    for (int i = 0; i < l->found.count; i++) {
        const char *name = l->found.text + l->found.start[i];
        size_t before = l->length, files = l->count;
        l->number = class_number(l, *count, name);
        MICA_TRY(enter(l, name));
        MICA_TRY(mica_file_visit(l->ctx, l->at, visit, l));
        if (l->count > files && l->number < 0)
            return mica_fail(l->ctx, MICA_ERR_FORMAT, "%s: %s is none of the %d classes", MICA_QUOTE(l->at),
                             MICA_QUOTE(name), l->opts->class_count);
        leave(l, before);
        if (l->count > files)
            l->names[(*count)++] = name;
    }
    return MICA_OK;
}

static int by_class_and_path(const void *a, const void *b)
{
    const mica_folder_file *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : strcmp(x->path, y->path);
}

/* Paths by address, now that the text stays where it is, and all in order. */
static void finish(lister *l)
{
    const char *at = l->text;
    for (size_t i = 0; i < l->count; i++) {
        l->files[i].path = at;
        at += strlen(at) + 1;
    }
    mica_sort(l->files, l->count, sizeof *l->files, by_class_and_path);
}

/* "no files named *.png, *.jpg": what was looked for. */
static mica_status nothing_found(lister *l)
{
    char ends[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < l->opts->end_count && used < sizeof ends - 1; i++) {
        int n = mica_format(ends + used, sizeof ends - used, "%s*%s", i > 0 ? ", " : " named ",
                            l->opts->ends[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return mica_fail(l->ctx, MICA_ERR_IO, "%s: the folder has no files%s%s", MICA_QUOTE(l->at), ends,
                     l->opts->flat ? "" : " in sub-folders, one for each class");
}

static mica_status read_all(lister *l, int *class_count, const char *path)
{
    size_t length = strlen(path);
    if (length >= sizeof l->at)
        return mica_fail(l->ctx, MICA_ERR_ARGUMENT, "%s: the path has more than %d bytes", MICA_QUOTE(path),
                         MICA_FOLDER_PATH - 1);
    memcpy(l->at, path, length + 1);
    l->length = length;
    l->number = -1;
    l->finds_classes = !l->opts->flat;
    MICA_TRY(mica_file_visit(l->ctx, path, visit, l));
    l->finds_classes = false;
    if (!l->opts->flat)
        MICA_TRY(read_classes(l, class_count));
    if (l->count == 0)
        return nothing_found(l);
    finish(l);
    return MICA_OK;
}

mica_status mica_folder_list(mica_context *ctx, mica_folder *out, const char *path,
                             const mica_folder_opts *opts)
{
    *out = (mica_folder){0};
    lister *l = mica_allocate(ctx, sizeof *l);
    if (l == NULL)
        return ctx->status;
    memset(l, 0, sizeof *l);
    l->ctx = ctx;
    l->opts = opts;
    out->block = l;
    int class_count = 0;
    mica_status status = read_all(l, &class_count, path);
    l->opts = NULL;
    if (status != MICA_OK) {
        mica_folder_release(ctx, out);
        return status;
    }
    out->count = l->count;
    out->files = l->files;
    out->class_count = opts->class_count > 0 ? opts->class_count : class_count;
    out->classes = opts->class_count > 0 ? opts->classes : l->names;
    return MICA_OK;
}

void mica_folder_release(mica_context *ctx, mica_folder *folder)
{
    lister *l = folder->block;
    if (l != NULL) {
        mica_release(ctx, l->text, l->room);
        mica_release(ctx, l->files, l->most * sizeof *l->files);
        mica_release(ctx, l, sizeof *l);
    }
    *folder = (mica_folder){0};
}

/* ---- Parts ---- */

typedef struct part_search {
    const char *folder;
    bool found;
} part_search;

static mica_status visit_part(void *user, const char *name)
{
    part_search *search = user;
    char path[MICA_FOLDER_PATH];
    int n = mica_format(path, sizeof path, "%s/%s", search->folder, name);
    mica_file_type type = MICA_FILE_NOTHING;
    if (name[0] != '.' && n > 0 && (size_t)n < sizeof path)
        type = mica_file_type_of(path);
    search->found = search->found || type == MICA_FILE_FOLDER || type == MICA_FILE_FOLDER_LINK;
    return MICA_OK;
}

bool mica_folder_part_of(mica_context *ctx, char *to, const char *path, mica_folder_part part)
{
    static const char *const names[][4] = {
        {"train", "training"}, {"validation", "val", "valid"}, {"test", "testing"}};
    for (int i = 0; i < 4 && names[part][i] != NULL; i++) {
        int n = mica_format(to, MICA_FOLDER_PATH, "%s/%s", path, names[part][i]);
        mica_file_type type = n > 0 && n < MICA_FOLDER_PATH ? mica_file_type_of(to) : MICA_FILE_NOTHING;
        part_search search = {.folder = to};
        if ((type == MICA_FILE_FOLDER || type == MICA_FILE_FOLDER_LINK) &&
            mica_file_visit(ctx, to, visit_part, &search) == MICA_OK && search.found)
            return true;
    }
    return false;
}
