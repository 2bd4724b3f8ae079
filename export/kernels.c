/* The kernels as text: each is written out once, where something uses it, after those that it includes. */
#include <string.h>

#include "export/emit.h"
#include "mica_export_kernels.h" /* made by the build: kernel_files */

typedef struct writing {
    text *out;
    bool done[sizeof kernel_files / sizeof kernel_files[0]];
    const char *missing;
} writing;

static int find(const char *name, size_t length)
{
    for (size_t i = 0; kernel_files[i].name != NULL; i++)
        if (strlen(kernel_files[i].name) == length && memcmp(kernel_files[i].name, name, length) == 0)
            return (int)i;
    return NONE;
}

static bool put_kernel(writing *w, const char *name, size_t length);

/* What keeps a kernel from being included twice: #ifndef KERNEL_EXP, #define KERNEL_EXP, #endif, with the KERNEL_EXP
 * in a comment. */
static bool is_guard(const char *line, const char *end)
{
    static const char *const starts[] = {"#ifndef KERNEL_", "#define KERNEL_", "#endif /* KERNEL_"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if ((size_t)(end - line) > strlen(starts[i]) && memcmp(line, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* A line `#include "other.c"` is replaced by that file before this one; those of the system stand in NAME.c already. */
static bool put_included(writing *w, const char *line, const char *end)
{
    const char *quote = memchr(line, '"', (size_t)(end - line));
    const char *last = quote != NULL ? memchr(quote + 1, '"', (size_t)(end - quote - 1)) : NULL;
    return last == NULL || put_kernel(w, quote + 1, (size_t)(last - quote - 1) - 2);
}

static bool put_kernel(writing *w, const char *name, size_t length)
{
    int number = find(name, length);
    if (number == NONE) {
        w->missing = name;
        return false;
    }
    if (w->done[number])
        return true;
    w->done[number] = true;
    const char *source = kernel_files[number].text;
    for (int pass = 0; pass < 2; pass++) /* what is included, then the file itself */
        for (const char *line = source; *line != '\0';) {
            const char *end = strchr(line, '\n');
            end = end != NULL ? end + 1 : line + strlen(line);
            bool include = strncmp(line, "#include", 8) == 0 &&
                           strncmp(line, "#include <arm_", 14) != 0; /* that depends on the processor */
            bool guard = is_guard(line, end);
            if (pass == 0 && include && !put_included(w, line, end))
                return false;
            if (pass == 1 && !include && !guard)
                text_put(w->out, "%.*s", (int)(end - line), line);
            line = end;
        }
    text_put(w->out, "\n");
    return true;
}

bool put_kernels(text *out, const emitter *e, const char **missing)
{
    writing w = {.out = out};
    for (int i = 0; i < e->kernel_count; i++)
        if (!put_kernel(&w, e->kernels[i], strlen(e->kernels[i]))) {
            *missing = e->kernels[i];
            return false;
        }
    return true;
}
