/* A JSON file in memory, by its parts: values are found by the names of objects' members, and read where they lie.
 *
 * The whole text is checked when it is opened. Strings are decoded in place, so each is taken once, and its part not
 * looked at again. */
#ifndef MICA_SRC_TEXT_JSON_PARTS_H
#define MICA_SRC_TEXT_JSON_PARTS_H

#include "base/context.h"
#include "io/json.h"

typedef struct mica_json_text {
    mica_context *ctx;
    const char *path; /* for messages */
    char *text;
    size_t length;
} mica_json_text;

/* One value. */
typedef struct mica_json_part {
    mica_json_kind kind; /* MICA_JSON_DONE: there is none */
    size_t start, end;   /* in the text */
} mica_json_part;

/* Checks all of the text; its value. */
mica_status mica_json_whole(const mica_json_text *j, mica_json_part *out);

/* An object's members of these names; those that are null or missing have kind DONE. A name twice is an error. Others
 * are skipped. */
mica_status mica_json_members(const mica_json_text *j, const mica_json_part *object, const char *const *names,
                              mica_json_part *out, int count);

/* Walks over the elements of an array or the members of an object: `at` starts at 0. False at the end. */
bool mica_json_each(const mica_json_text *j, const mica_json_part *part, mica_json_part *key,
                    mica_json_part *value, size_t *at);

/* Decodes a string in place. */
typedef struct mica_json_string {
    const char *text;
    size_t length;
} mica_json_string;
mica_json_string mica_json_take(const mica_json_text *j, const mica_json_part *string);

bool mica_json_string_is(const mica_json_text *j, const mica_json_part *string, const char *text);
static inline bool mica_json_true(const mica_json_part *part) { return part->kind == MICA_JSON_TRUE; }
/* A whole number of a part, less than `most`. */
bool mica_json_number_below(const mica_json_text *j, const mica_json_part *part, uint64_t most,
                            uint64_t *out);

/* "PATH: byte N: message". */
mica_status mica_json_wrong(const mica_json_text *j, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
