/* Casts. */
#include <string.h>

#include "onnx/import.h"

static void cast_to(mica_onnx_importing *n, mica_dtype dtype)
{
    const char *mode = mica_onnx_text(n, "round_mode", "up");
    /* Integers that do not fit wrap around, as NumPy's do. */
    mica_copy_opts opts = {.cast = true, .dtype = dtype, .wrap = true};
    opts.overflow = mica_onnx_int(n, "saturate", 1) == 0;
    opts.round = strcmp(mode, "down") == 0      ? MICA_ROUND_DOWN
                 : strcmp(mode, "nearest") == 0 ? MICA_ROUND_NEAREST
                                                : MICA_ROUND_UP;
    if (n->failed)
        return;
    if (mica_onnx_shape(n, n->in[0])->dtype == dtype)
        mica_onnx_give(n, 0, n->in[0]);
    else
        mica_onnx_give(n, 0, mica_onnx_op1(n, "copy", n->in[0], &opts));
}

static void cast(mica_onnx_importing *n) { cast_to(n, mica_onnx_dtype_of(n, mica_onnx_int(n, "to", 0))); }
static void cast_like(mica_onnx_importing *n) { cast_to(n, mica_onnx_shape(n, n->in[1])->dtype); }

const mica_onnx_operator mica_onnx_cast_operators[] = {
    {"Cast", 6, cast}, {"CastLike", 15, cast_like}, {NULL, 0, NULL}};
