/* The tables that tools/make_unicode.py makes. */
#ifndef MICA_SRC_TEXT_UNICODE_TABLE_H
#define MICA_SRC_TEXT_UNICODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Characters `first` to `last`, every `step`-th, whose lower case is `add` further on. */
typedef struct mica_unicode_lower_run {
    uint32_t first, last;
    int32_t step, add;
} mica_unicode_lower_run;

/* A character and what it decomposes into, once; second 0: into one. */
typedef struct mica_unicode_pair {
    uint32_t code, first, second;
} mica_unicode_pair;

typedef struct mica_unicode_class_run {
    uint32_t first, last, number;
} mica_unicode_class_run;

typedef struct mica_unicode_range {
    uint32_t first, last;
} mica_unicode_range;

/* Code point << 5 | category, where another category begins. */
extern const uint32_t mica_unicode_categories[];
extern const size_t mica_unicode_categories_count;
/* mica_unicode_class of ASCII, which most text is. */
extern const uint32_t mica_unicode_ascii[];
extern const size_t mica_unicode_ascii_count;
extern const mica_unicode_lower_run mica_unicode_lower_runs[];
extern const size_t mica_unicode_lower_runs_count;
/* Canonical combining classes but 0. */
extern const mica_unicode_class_run mica_unicode_classes[];
extern const size_t mica_unicode_classes_count;
/* Later than Unicode 8. */
extern const mica_unicode_range mica_unicode_later[];
extern const size_t mica_unicode_later_count;
extern const mica_unicode_pair mica_unicode_pairs[];
extern const size_t mica_unicode_pairs_count;
/* Of the pairs that are composed again, sorted by first and second. */
extern const uint16_t mica_unicode_composed[];
extern const size_t mica_unicode_composed_count;

#endif
