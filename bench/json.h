/* JSON as a tree, for files of an earlier run. */
#ifndef MICA_BENCH_JSON_H
#define MICA_BENCH_JSON_H

#include <stddef.h>

typedef enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_value {
    json_kind kind;
    double number;
    char *string;                    /* decoded to UTF-8, terminated */
    char *key;                       /* of a member of an object */
    size_t offset;                   /* of its first byte in the text */
    struct json_value *first, *next; /* elements or members, in order */
} json_value;

typedef struct json_error {
    size_t offset; /* bytes from the start of the text */
    char text[96];
} json_error;

/* Reads the whole text, which need not be terminated. NULL, with *error set, if anything in it is not JSON:
 * also a number or a nesting that is out of range, a key given twice, bytes after the value. */
json_value *json_read(const char *text, size_t length, json_error *error);
void json_free(json_value *value); /* NULL is fine */

/* The member of an object; NULL if there is none, or if it is no object. */
const json_value *json_member(const json_value *object, const char *key);

const char *json_kind_name(json_kind kind); /* "a number" */

#endif
