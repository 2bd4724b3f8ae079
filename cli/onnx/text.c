#include "cli/onnx/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/model/saved.h"
#include "cli/model/take.h"

#define FIRST_WORD "onnx "

static const struct {
    const char *name;
    mica_task task;
} tasks[] = {{"none", MICA_TASK_NONE},
             {"classes", MICA_TASK_CLASSES},
             {"regression", MICA_TASK_REGRESSION},
             {"binary", MICA_TASK_BINARY}};
enum { TASKS = sizeof tasks / sizeof tasks[0] };

bool is_onnx_text(const char *text) { return strncmp(text, FIRST_WORD, strlen(FIRST_WORD)) == 0; }

bool absolute_path(char *out, size_t size, const char *path)
{
    char here[4096] = "";
    if (path[0] != '/' && getcwd(here, sizeof here) == NULL)
        return false;
    int length = snprintf(out, size, "%s%s%s", here, path[0] != '/' ? "/" : "", path);
    return length > 0 && (size_t)length < size;
}

/* ---- Reading ---- */

/* One line; false: it is none that there is. */
static bool read_line(onnx_text *t, char *line)
{
    if (is_onnx_text(line) && t->file == NULL) {
        t->file = line + strlen(FIRST_WORD);
        return *t->file != '\0';
    }
    if (strncmp(line, "set ", 4) == 0 && t->set.count < OPTION_LIST_MOST) {
        t->set.item[t->set.count++] = line + 4;
        return true;
    }
    for (int i = 0; i < TASKS; i++)
        if (strncmp(line, "task ", 5) == 0 && strcmp(line + 5, tasks[i].name) == 0) {
            t->task = tasks[i].task;
            return true;
        }
    return false;
}

int onnx_text_read(onnx_text *out, const verb *v, const char *text)
{
    *out = (onnx_text){.lines = take_text(text)};
    for (char *line = out->lines, *next; line != NULL && *line != '\0'; line = next) {
        char *end = strchr(line, '\n');
        next = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        if (!read_line(out, line)) {
            int code = verb_error(v, EXIT_FILE,
                                  "the text of an ONNX net has a line \"%.80s\": expected onnx, task or set",
                                  line);
            free(out->lines);
            *out = (onnx_text){.lines = NULL};
            return code;
        }
    }
    return EXIT_OK;
}

/* ---- Writing ---- */

/* "mask=@mask.npy", with a path that is the same from any folder. */
static char *lasting_set(const char *item)
{
    const char *at = strstr(item, "=@");
    char path[8192];
    if (at == NULL || !absolute_path(path, sizeof path, at + 2))
        return take_text(item);
    size_t before = (size_t)(at - item) + 2, bytes = before + strlen(path) + 1;
    char *set = take(bytes, 1);
    (void)snprintf(set, bytes, "%.*s%s", (int)before, item, path);
    return set;
}

char *onnx_text_print(const char *file, mica_task task, const option_list *set)
{
    char *items[OPTION_LIST_MOST];
    size_t count = set != NULL ? set->count : 0, bytes = strlen(file) + 64, at;
    const char *name = tasks[0].name;
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].task == task)
            name = tasks[i].name;
    for (size_t i = 0; i < count; i++) {
        items[i] = lasting_set(set->item[i]);
        bytes += strlen(items[i]) + 8;
    }
    char *text = take(bytes, 1);
    at = (size_t)snprintf(text, bytes, FIRST_WORD "%s\ntask %s\n", file, name);
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(text + at, bytes - at, "set %s\n", items[i]);
        free(items[i]);
    }
    return text;
}

/* ---- Where the model lies ---- */

bool onnx_text_has_copy(const onnx_text *t) { return strchr(t->file, '/') == NULL; }

bool onnx_text_path(char *path, size_t size, const onnx_text *t, const char *checkpoint)
{
    const char *slash = strrchr(checkpoint, '/');
    bool beside = t->file[0] != '/' && slash != NULL;
    int length = snprintf(path, size, "%.*s%s", beside ? (int)(slash - checkpoint) + 1 : 0, checkpoint,
                          t->file);
    return length >= 0 && (size_t)length < size;
}

char *onnx_text_for(const onnx_text *t, const char *checkpoint)
{
    static const char ending[] = ".safetensors";
    const char *slash = strrchr(checkpoint, '/'), *name = slash != NULL ? slash + 1 : checkpoint;
    size_t length = strlen(name), end = strlen(ending);
    if (!onnx_text_has_copy(t))
        return onnx_text_print(t->file, t->task, &t->set);
    if (strcmp(name, CHECKPOINT_NAME) == 0)
        return onnx_text_print(ONNX_SOURCE, t->task, &t->set);
    if (length > end && strcmp(name + length - end, ending) == 0)
        length -= end;
    char *file = take(length + sizeof "." ONNX_SOURCE, 1);
    (void)snprintf(file, length + sizeof "." ONNX_SOURCE, "%.*s." ONNX_SOURCE, (int)length, name);
    char *text = onnx_text_print(file, t->task, &t->set);
    free(file);
    return text;
}
