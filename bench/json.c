/* A tree over the library's reader of JSON. Nothing calls itself: a value knows the one that it is part of. */
#include "bench/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "io/number.h"

const char *json_kind_name(json_kind kind)
{
    static const char *const names[] = {"null",     "false",    "true",     "a number",
                                        "a string", "an array", "an object"};
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "nothing";
}

const json_value *json_member(const json_value *object, const char *key)
{
    if (object == NULL || object->kind != JSON_OBJECT)
        return NULL;
    for (const json_value *v = object->first; v != NULL; v = v->next)
        if (strcmp(v->key, key) == 0)
            return v;
    return NULL;
}

void json_free(json_value *value)
{
    while (value != NULL) { /* what is in it first, then itself, then what follows it */
        json_value *inside = value->first;
        if (inside != NULL) {
            value->first = inside->next;
            inside->next = value;
            value = inside;
            continue;
        }
        json_value *next = value->next;
        free(value->string);
        free(value->key);
        free(value);
        value = next;
    }
}

/* ---- Reading ---- */

typedef struct tree {
    json_value *root;
    json_value *open[MICA_JSON_DEEPEST + 1]; /* arrays and objects that have not ended */
    json_value *last[MICA_JSON_DEEPEST + 1]; /* the last value in each */
    int depth;
    char *key; /* of the next value */
    json_error *error;
} tree;

static bool fail(tree *t, size_t offset, const char *text)
{
    t->error->offset = offset;
    snprintf(t->error->text, sizeof t->error->text, "%s", text);
    return false;
}

/* The text of a key or string; NULL, with an error, if it holds a zero byte or there is no memory. */
static char *decoded(tree *t, const mica_json_token *token)
{
    char *text = malloc(token->length + 1);
    if (text == NULL) {
        fail(t, token->offset, "no memory for it");
        return NULL;
    }
    size_t length = mica_json_decode(text, token);
    text[length] = '\0';
    if (strlen(text) == length)
        return text;
    fail(t, token->offset, "a string may not hold a zero byte");
    free(text);
    return NULL;
}

static bool take_key(tree *t, const mica_json_token *token)
{
    t->key = decoded(t, token);
    if (t->key != NULL && json_member(t->open[t->depth], t->key) != NULL)
        return fail(t, token->offset, "a key given twice");
    return t->key != NULL;
}

static json_kind kind_of(mica_json_kind kind)
{
    switch (kind) {
    case MICA_JSON_FALSE:
        return JSON_FALSE;
    case MICA_JSON_TRUE:
        return JSON_TRUE;
    case MICA_JSON_NUMBER:
        return JSON_NUMBER;
    case MICA_JSON_STRING:
        return JSON_STRING;
    case MICA_JSON_ARRAY:
        return JSON_ARRAY;
    case MICA_JSON_OBJECT:
        return JSON_OBJECT;
    default:
        return JSON_NULL;
    }
}

/* A value, at the end of the array or object that is open. */
static bool take_value(tree *t, const mica_json_token *token)
{
    json_value *v = calloc(1, sizeof *v);
    if (v == NULL)
        return fail(t, token->offset, "no memory for it");
    *v = (json_value){.kind = kind_of(token->kind), .offset = token->offset, .key = t->key};
    t->key = NULL;
    if (t->root == NULL)
        t->root = v;
    else if (t->last[t->depth] == NULL)
        t->open[t->depth]->first = v;
    else
        t->last[t->depth]->next = v;
    t->last[t->depth] = v;
    if (v->kind == JSON_NUMBER &&
        (!mica_parse_number(&v->number, token->text, token->length) || !isfinite(v->number)))
        return fail(t, token->offset, "a number is out of range");
    if (v->kind == JSON_STRING && (v->string = decoded(t, token)) == NULL)
        return false;
    if (v->kind == JSON_ARRAY || v->kind == JSON_OBJECT) {
        t->open[++t->depth] = v;
        t->last[t->depth] = NULL;
    }
    return true;
}

static bool take(tree *t, const mica_json_token *token)
{
    if (token->kind == MICA_JSON_KEY)
        return take_key(t, token);
    if (token->kind != MICA_JSON_ARRAY_END && token->kind != MICA_JSON_OBJECT_END)
        return take_value(t, token);
    t->depth--;
    return true;
}

json_value *json_read(const char *text, size_t length, json_error *error)
{
    mica_json json = mica_json_over(text, length);
    mica_json_token token;
    tree t = {.error = error};
    bool sound = true;
    while (sound && mica_json_next(&json, &token) && token.kind != MICA_JSON_DONE)
        sound = take(&t, &token);
    if (json.error != NULL)
        sound = fail(&t, json.at, json.error);
    free(t.key);
    if (sound)
        return t.root;
    json_free(t.root);
    return NULL;
}
