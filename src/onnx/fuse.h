/* Patterns: some nodes that are one operation of Mica's.
 *
 * A pattern is a text, in the form that one would write the last node down in:
 *
 *     {"Mul(Mul(x,Add(Erf(Div(x,1.41421356)),1)),0.5)", gelu}
 *
 *     Op(...)      what a node of this type makes; Add and Mul in either order of their inputs
 *     Op.1(...)    its output number 1
 *     p:Op(...)    the same, and the node is m->node['p' - 'a']
 *     x            any value, m->value['x' - 'a']; the same letter is the same value
 *     #x           a value that is known; x? one that may be absent
 *     0.5          a known number
 *
 * When the last node is imported, all before it were, and their calls were recorded; those that the pattern replaces
 * are needed by nobody then, and never enter the net. Nodes whose results others read, too, are not replaced. The
 * function may decline: it looks at shapes, attributes and constants. */
#ifndef MICA_SRC_ONNX_FUSE_H
#define MICA_SRC_ONNX_FUSE_H

#include "onnx/state.h"

typedef struct mica_onnx_match {
    mica_onnx_ref value[26];
    const mica_onnx_maker *node[26];
} mica_onnx_match;

typedef struct mica_onnx_pattern {
    const char *text;
    bool (*import)(mica_onnx_importing *n, const mica_onnx_match *m); /* false: declined */
} mica_onnx_pattern;

/* The families of patterns: each ends with {NULL}. Those of the first are tried first. */
#define MICA_ONNX_PATTERNS(X) \
    X(int8)                   \
    X(int8_product)           \
    X(one_hot)                \
    X(product)                \
    X(activation)             \
    X(norm)                   \
    X(attention)

#define MICA_ONNX_DECLARE_PATTERNS(family) extern const mica_onnx_pattern mica_onnx_##family##_patterns[];
MICA_ONNX_PATTERNS(MICA_ONNX_DECLARE_PATTERNS)
#undef MICA_ONNX_DECLARE_PATTERNS

static inline mica_onnx_ref mica_onnx_matched(const mica_onnx_match *m, char letter)
{
    return m->value[letter - 'a'];
}

/* A node of the pattern as if it were being imported: for its attributes, or to import it with other inputs. */
mica_onnx_importing mica_onnx_as_node(const mica_onnx_importing *n, const mica_onnx_match *m, char letter);
/* Imports `as`, which a pattern has changed, in the place of the node itself. */
bool mica_onnx_import_as(mica_onnx_importing *n, mica_onnx_importing *as);
/* The known number that a value is; false: it is none. */
bool mica_onnx_is_number(mica_onnx_importing *n, mica_onnx_ref ref, double *out);
/* Whether it is f32. */
bool mica_onnx_is_f32(mica_onnx_importing *n, mica_onnx_ref ref);
/* The call that makes a value, if it is one of this operation; NULL otherwise. */
const mica_onnx_recorded *mica_onnx_made_by(const mica_onnx_importing *n, mica_onnx_ref ref, const char *op);

#endif
