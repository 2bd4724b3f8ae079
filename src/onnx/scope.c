/* What names stand for. */
#include <string.h>

#include "net/net.h"
#include "onnx/state.h"

static size_t slot_of(const mica_onnx_scope *s, const char *name)
{
    size_t mask = s->room - 1, at = ((uintptr_t)name >> 4) * 0x9e3779b1u & mask;
    while (s->names[at] != NULL && s->names[at] != name) /* interned: equal names are one */
        at = (at + 1) & mask;
    return at;
}

static bool grow(mica_onnx_import *im, mica_onnx_scope *s)
{
    mica_onnx_scope wider = {.room = s->room > 0 ? 2 * s->room : 16};
    wider.names = mica_onnx_memory(im->model, wider.room * sizeof *wider.names);
    wider.refs = mica_onnx_memory(im->model, wider.room * sizeof *wider.refs);
    if (wider.names == NULL || wider.refs == NULL) {
        im->status = im->ctx->status;
        return false;
    }
    memset(wider.names, 0, wider.room * sizeof *wider.names);
    for (size_t i = 0; i < s->room; i++)
        if (s->names[i] != NULL) {
            size_t at = slot_of(&wider, s->names[i]);
            wider.names[at] = s->names[i];
            wider.refs[at] = s->refs[i];
        }
    s->names = wider.names;
    s->refs = wider.refs;
    s->room = wider.room;
    return true;
}

bool mica_onnx_bind_name(mica_onnx_import *im, const char *name, mica_onnx_ref ref)
{
    mica_onnx_scope *s = im->scope;
    if (name[0] == '\0')
        return true;
    if (2 * ((size_t)s->count + 1) > s->room && !grow(im, s))
        return false;
    size_t at = slot_of(s, name);
    s->count += s->names[at] == NULL;
    s->names[at] = name;
    s->refs[at] = ref;
    return true;
}

mica_onnx_ref mica_onnx_look_up(const mica_onnx_import *im, const char *name)
{
    for (const mica_onnx_scope *s = im->scope; s != NULL; s = s->outer) {
        if (s->room == 0)
            continue;
        size_t at = slot_of(s, name);
        if (s->names[at] != NULL)
            return s->refs[at];
    }
    return -1;
}

bool mica_onnx_name_taken(mica_onnx_import *im, const char *text)
{
    if (mica_net_name_taken(im->net, text))
        return true;
    const char *name = mica_onnx_intern(im->model, text, strlen(text));
    if (name == NULL)
        im->status = im->ctx->status;
    return name != NULL && im->names->room > 0 && im->names->names[slot_of(im->names, name)] != NULL;
}
