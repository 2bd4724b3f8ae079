/* Tokenizers of Hugging Face: tokenizer.json, and the chat template of tokenizer_config.json. */
#include "text/tokenizer_json.h"

#include <string.h>

#include "io/file.h"
#include "io/quote.h"

#define LARGEST_FILE ((uint64_t)512 << 20) /* the largest public ones take 35 MB */

static mica_status read_file(mica_tokenizer *t, mica_json_text *j, const char *path)
{
    mica_file file;
    *j = (mica_json_text){.ctx = t->ctx, .path = path};
    MICA_TRY(mica_file_open(t->ctx, &file, path));
    mica_status status = MICA_OK;
    if (file.bytes > LARGEST_FILE)
        status = mica_fail(t->ctx, MICA_ERR_FORMAT, "%s: %llu bytes are too many for a tokenizer",
                           MICA_QUOTE(path), (unsigned long long)file.bytes);
    else if ((j->text = mica_tokenizer_take(t, (size_t)file.bytes + 1, 1)) == NULL)
        status = MICA_ERR_MEMORY;
    else
        status = mica_file_read(t->ctx, j->text, &file, (size_t)file.bytes, 0);
    j->length = status == MICA_OK ? (size_t)file.bytes : 0;
    mica_file_close(&file);
    return status;
}

/* ---- tokenizer_config.json ---- */

/* A token is its text, or an object with it as "content". */
static mica_status find_token(mica_tokenizer *t, const mica_json_text *j, const mica_json_part *part,
                              int32_t *out)
{
    mica_json_part content = *part;
    static const char *const names[] = {"content"};
    if (part->kind == MICA_JSON_OBJECT)
        MICA_TRY(mica_json_members(j, part, names, &content, 1));
    if (content.kind != MICA_JSON_STRING)
        return MICA_OK;
    mica_json_string text = mica_json_take(j, &content);
    int32_t token = mica_token_find(t, text.text, text.length);
    *out = token >= 0 ? token : *out;
    return MICA_OK;
}

/* One, or several with names, of which the one called "default" counts. */
static mica_status take_template(mica_tokenizer *t, const mica_json_text *j, const mica_json_part *part)
{
    mica_json_part text = *part, element, member[2];
    static const char *const names[] = {"name", "template"};
    size_t at = 0;
    while (part->kind == MICA_JSON_ARRAY && mica_json_each(j, part, NULL, &element, &at)) {
        MICA_TRY(mica_json_members(j, &element, names, member, 2));
        if (mica_json_string_is(j, &member[0], "default"))
            text = member[1];
    }
    if (text.kind != MICA_JSON_STRING)
        return MICA_OK;
    mica_json_string template = mica_json_take(j, &text);
    t->info.chat_template = template.text;
    t->info.chat_template_bytes = template.length;
    return MICA_OK;
}

static mica_status read_config(mica_tokenizer *t, const mica_json_text *j)
{
    static const char *const names[] = {"bos_token",     "eos_token",     "unk_token",
                                        "sep_token",     "pad_token",     "cls_token",
                                        "add_bos_token", "add_eos_token", "chat_template"};
    mica_json_part whole, part[9];
    MICA_TRY(mica_json_whole(j, &whole));
    MICA_TRY(mica_json_members(j, &whole, names, part, 9));
    MICA_TRY(find_token(t, j, &part[5], &t->info.bos));
    int32_t *tokens[] = {&t->info.bos, &t->info.eos, &t->info.unknown, &t->info.separator, &t->info.padding};
    for (int i = 0; i < 5; i++)
        MICA_TRY(find_token(t, j, &part[i], tokens[i]));
    if (part[6].kind != MICA_JSON_DONE && !t->info.add_bos)
        t->info.add_bos = mica_json_true(&part[6]);
    if (part[7].kind != MICA_JSON_DONE && !t->info.add_eos)
        t->info.add_eos = mica_json_true(&part[7]);
    return take_template(t, j, &part[8]);
}

/* It is optional, and beside the other one. */
static mica_status open_config(mica_tokenizer *t, const char *path)
{
    static const char name[] = "tokenizer_config.json";
    const char *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    char *beside = mica_tokenizer_take(t, folder + sizeof name, 1);
    if (beside == NULL)
        return MICA_ERR_MEMORY;
    memcpy(beside, path, folder);
    memcpy(beside + folder, name, sizeof name);
    if (!mica_file_exists(beside))
        return MICA_OK;
    mica_json_text j;
    MICA_TRY(read_file(t, &j, beside));
    return read_config(t, &j);
}

/* ---- tokenizer.json ---- */

mica_status mica_tokenizer_json_unknown(const mica_tokenizer_json *f, const char *what,
                                        const mica_json_part *type)
{
    if (type->kind != MICA_JSON_STRING)
        return mica_json_wrong(&f->j, type->start, "a %s without a type", what);
    mica_json_string name = mica_json_take(&f->j, type);
    return mica_json_wrong(&f->j, type->start, "the %s %s is not known", what,
                           MICA_QUOTE_N(name.text, name.length));
}

static mica_status read_all(mica_tokenizer_json *f)
{
    static const char *const names[] = {"normalizer", "pre_tokenizer", "post_processor", "model",
                                        "added_tokens"};
    mica_json_part whole, part[5];
    mica_tokenizer *t = f->t;
    MICA_TRY(mica_json_whole(&f->j, &whole));
    MICA_TRY(mica_json_members(&f->j, &whole, names, part, 5));
    f->normalizer = part[0];
    f->pre_tokenizer = part[1];
    f->post_processor = part[2];
    f->model = part[3];
    f->added = part[4];
    t->info = (mica_tokenizer_info){
        .pre = "", .bos = -1, .eos = -1, .unknown = -1, .separator = -1, .padding = -1};
    t->drops_unknown = true;
    t->word_prefix = "";
    t->part_prefix = "##";
    MICA_TRY(mica_tokenizer_json_model(f));
    return mica_tokenizer_json_post_processor(f, &f->post_processor);
}

static mica_status open_all(mica_tokenizer *t, const char *path)
{
    mica_tokenizer_json f = {.t = t};
    MICA_TRY(read_file(t, &f.j, path));
    MICA_TRY(read_all(&f));
    MICA_TRY(open_config(t, path));
    mica_vocabulary_ends(t);
    return mica_vocabulary_specials(t);
}

static mica_status create(mica_context *ctx, mica_tokenizer **out)
{
    mica_tokenizer *t = mica_allocate(ctx, sizeof *t);
    *out = t;
    if (t == NULL)
        return MICA_ERR_MEMORY;
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    return MICA_OK;
}

mica_status mica_tokenizer_of_json(mica_context *ctx, mica_tokenizer **out, const char *path)
{
    if (out != NULL)
        *out = NULL;
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "tokenizer: %s is NULL", out == NULL ? "out" : "path");
    mica_tokenizer *t;
    MICA_TRY(create(ctx, &t));
    mica_status status = open_all(t, path);
    if (status == MICA_OK)
        *out = t;
    else
        mica_tokenizer_close(t);
    return status;
}

mica_status mica_tokenizer_over_json(mica_context *ctx, mica_tokenizer **out, const char *text, size_t length,
                                     const char *config, size_t config_length)
{
    mica_tokenizer *t;
    *out = NULL;
    MICA_TRY(create(ctx, &t));
    mica_tokenizer_json f = {.t = t, .j = {.ctx = ctx, .path = "tokenizer.json", .length = length}};
    mica_json_text c = {.ctx = ctx, .path = "tokenizer_config.json", .length = config_length};
    f.j.text = mica_tokenizer_take(t, length + 1, 1);
    c.text = f.j.text != NULL ? mica_tokenizer_take(t, config_length + 1, 1) : NULL;
    mica_status status = c.text != NULL ? MICA_OK : MICA_ERR_MEMORY;
    if (status == MICA_OK && length > 0)
        memcpy(f.j.text, text, length);
    if (status == MICA_OK && config_length > 0)
        memcpy(c.text, config, config_length);
    if (status == MICA_OK)
        status = read_all(&f);
    if (status == MICA_OK && config != NULL)
        status = read_config(t, &c);
    if (status == MICA_OK) {
        mica_vocabulary_ends(t);
        status = mica_vocabulary_specials(t);
    }
    if (status == MICA_OK)
        *out = t;
    else
        mica_tokenizer_close(t);
    return status;
}
