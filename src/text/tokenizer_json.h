/* The parts of reading a tokenizer.json. */
#ifndef MICA_SRC_TEXT_TOKENIZER_JSON_H
#define MICA_SRC_TEXT_TOKENIZER_JSON_H

#include "text/json_parts.h"
#include "text/vocabulary.h"

typedef struct mica_tokenizer_json {
    mica_tokenizer *t;
    mica_json_text j;
    mica_json_part normalizer, pre_tokenizer, post_processor, model, added;
} mica_tokenizer_json;

/* tokenizer_json_model.c: the vocabulary with its added tokens, and the merges. */
mica_status mica_tokenizer_json_model(mica_tokenizer_json *f);
/* tokenizer_json_rules.c: what is done with text before, and which tokens go around it. */
mica_status mica_tokenizer_json_normalizer(mica_tokenizer_json *f, const mica_json_part *part);
mica_status mica_tokenizer_json_pre_tokenizer(mica_tokenizer_json *f, const mica_json_part *part);
mica_status mica_tokenizer_json_post_processor(mica_tokenizer_json *f, const mica_json_part *part);

/* "PATH: byte N: normalizer "X" is not known". */
mica_status mica_tokenizer_json_unknown(const mica_tokenizer_json *f, const char *what,
                                        const mica_json_part *type);

#endif
