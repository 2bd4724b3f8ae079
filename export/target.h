/* Processors that exported code is written for: which kernels are chosen. All of them compile anywhere. */
#ifndef MICA_EXPORT_TARGET_H
#define MICA_EXPORT_TARGET_H

#include <stdbool.h>

#define EXPORT_TARGETS(X) X(generic) X(m0) X(m3) X(m4) X(m7) X(m33) X(m55) X(rv32)
typedef enum export_target {
#define EXPORT_TARGET_ENUM(name) TARGET_##name,
    EXPORT_TARGETS(EXPORT_TARGET_ENUM)
#undef EXPORT_TARGET_ENUM
} export_target;

/* Two products of 16 bits at a time (SMLAD), and vectors of bytes (MVE). */
static inline bool target_has_pairs(export_target t)
{
    return t == TARGET_m4 || t == TARGET_m7 || t == TARGET_m33 || t == TARGET_m55;
}
static inline bool target_has_vectors(export_target t) { return t == TARGET_m55; }

#endif
