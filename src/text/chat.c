/* Chats as tokens: the families of chat templates, known by their form. Templates are programs (Jinja); these families
 * are written out here, and a template of another is refused.
 *
 * The marks of a family are put as tokens, and what is between them is encoded as plain text: nothing that a message
 * says becomes a special token. */
#include <string.h>

#include "io/quote.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

/* How a family writes a chat. \1MARK\1 is a token, if the vocabulary has it, \2 eos, \3 bos, \4 the role. */
typedef struct family {
    const char *name;
    const char *signs[3]; /* the template has all of these */
    const char *before[3],
        *after[3]; /* of system, user, assistant; before[0] NULL: the system's text begins the first user's */
    const char *system_end; /* then: what is between them */
    const char *begin;      /* of the assistant's turn at the end */
    const char *assistant;  /* the role's name */
    bool trims;
} family;

enum { SYSTEM, USER, ASSISTANT };

#define ALL(text)        \
    {                    \
        text, text, text \
    }

static const family families[] = {
    {"ChatML",
     {"<|im_start|>"},
     ALL("\1<|im_start|>\1\4\n"),
     ALL("\1<|im_end|>\1\n"),
     NULL,
     "\1<|im_start|>\1assistant\n",
     "assistant",
     false},
    {"Llama 3",
     {"<|start_header_id|>", "<|end_header_id|>"},
     ALL("\1<|start_header_id|>\1\4\1<|end_header_id|>\1\n\n"),
     ALL("\1<|eot_id|>\1"),
     NULL,
     "\1<|start_header_id|>\1assistant\1<|end_header_id|>\1\n\n",
     "assistant",
     true},
    {"Gemma",
     {"<start_of_turn>"},
     {NULL, "\1<start_of_turn>\1\4\n", "\1<start_of_turn>\1\4\n"},
     ALL("\1<end_of_turn>\1\n"),
     "\n\n",
     "\1<start_of_turn>\1model\n",
     "model",
     true},
    {"Phi-3",
     {"<|user|>", "<|assistant|>", "<|end|>"},
     {"\1<|system|>\1\n", "\1<|user|>\1\n", "\1<|assistant|>\1\n"},
     ALL("\1<|end|>\1\n"),
     NULL,
     "\1<|assistant|>\1\n",
     "assistant",
     false},
    {"Zephyr",
     {"<|user|>", "<|assistant|>", "eos_token"},
     {"\1<|system|>\1\n", "\1<|user|>\1\n", "\1<|assistant|>\1\n"},
     ALL("\2\n"),
     NULL,
     "\1<|assistant|>\1\n",
     "assistant",
     false},
    {"Llama 2",
     {"[INST]", "<<SYS>>"},
     {NULL, "\3\1[INST]\1 ", " "},
     {"", " \1[/INST]\1", " \2"},
     "\n<</SYS>>\n\n",
     "",
     "assistant",
     true},
    {"Mistral",
     {"[INST]", " [/INST]"},
     {NULL, "\1[INST]\1 ", ""},
     {"", " \1[/INST]\1", "\2"},
     "\n\n",
     "",
     "assistant",
     false},
    {"Mistral",
     {"[INST]", "[/INST]"},
     {NULL, "\1[INST]\1 ", " "},
     {"", "\1[/INST]\1", "\2"},
     "\n\n",
     "",
     "assistant",
     false},
};

static bool has(const char *text, size_t length, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; n <= length && i <= length - n; i++)
        if (text[i] == word[0] && memcmp(text + i, word, n) == 0)
            return true;
    return false;
}

static const family *family_of(const mica_tokenizer_info *info)
{
    for (size_t i = 0; info->chat_template != NULL && i < sizeof families / sizeof families[0]; i++) {
        bool all = true;
        for (int s = 0; s < 3 && families[i].signs[s] != NULL; s++)
            all = all && has(info->chat_template, info->chat_template_bytes, families[i].signs[s]);
        if (all)
            return &families[i];
    }
    return NULL;
}

/* ---- Writing ---- */

typedef struct chat {
    mica_context *ctx;
    const mica_tokenizer *t;
    const family *family;
    mica_tokens out;
    char *text; /* since the last mark; [room] */
    size_t length, room;
    void *scratch;
    size_t scratch_bytes;
    bool first, stripping; /* no text has been encoded; the last mark takes white space with it */
    mica_status status;
} chat;

static void flush(chat *c)
{
    size_t from = 0;
    while (c->stripping && from < c->length && strchr(" \t\r\n", c->text[from]) != NULL &&
           c->text[from] != '\0')
        from++;
    if (c->status == MICA_OK && c->length > from) {
        c->status = mica_encode_into(c->ctx, c->t, &c->out, c->text + from, c->length - from, c->scratch,
                                     c->scratch_bytes, (mica_encode_how){.later = !c->first});
        c->first = false;
    }
    c->length = 0;
    c->stripping = false;
}

static void put_text(chat *c, const char *text, size_t length)
{
    if (length > c->room - c->length) { /* mica_chat_scratch counts it all */
        c->status = MICA_ERR_MEMORY;
        return;
    }
    memcpy(c->text + c->length, text, length);
    c->length += length;
}

static void put_token(chat *c, int32_t token)
{
    flush(c);
    mica_tokens_put(&c->out, token);
    c->stripping = c->t->entries[token].strips_right;
    c->first = false;
}

static void put_mark(chat *c, const char *text, size_t length)
{
    int32_t token = mica_token_find(c->t, text, length);
    if (token >= 0 && c->t->entries[token].kind != MICA_TOKEN_NORMAL)
        put_token(c, token);
    else
        put_text(c, text, length);
}

static void put_form(chat *c, const char *form, const char *role)
{
    while (*form != '\0') {
        size_t plain = strcspn(form, "\1\2\3\4");
        put_text(c, form, plain);
        form += plain;
        if (*form == '\1') {
            size_t mark = strcspn(form + 1, "\1");
            put_mark(c, form + 1, mark);
            form += mark + 2;
        } else if (*form != '\0') {
            int32_t token = *form == '\2' ? c->t->info.eos : c->t->info.bos;
            if (*form == '\4')
                put_text(c, role, strlen(role));
            else if (token >= 0)
                put_token(c, token);
            form++;
        }
    }
}

static void put_message(chat *c, const char *text)
{
    size_t length = strlen(text);
    while (c->family->trims && length > 0 && strchr(" \t\r\n\v\f", text[length - 1]) != NULL)
        length--;
    while (c->family->trims && length > 0 && strchr(" \t\r\n\v\f", text[0]) != NULL)
        text++, length--;
    put_text(c, text, length);
}

/* ChatML templates may say what the system says where a chat does not: '<|im_start|>system\nTEXT<|im_end|>', where the
 * line's end is escaped or not. TEXT is no expression. */
static void put_default_system(chat *c)
{
    static const char begin[] = "<|im_start|>system", end[] = "<|im_end|>";
    const char *template = c->t->info.chat_template, *stop = template + c->t->info.chat_template_bytes;
    for (const char *at = template; stop - at > (ptrdiff_t)(sizeof begin + sizeof end); at++) {
        if (memcmp(at, begin, sizeof begin - 1) != 0)
            continue;
        const char *text = at + sizeof begin - 1;
        text += *text == '\n' ? 1 : memcmp(text, "\\n", 2) == 0 ? 2 : 0;
        const char *to = text;
        while (stop - to >= (ptrdiff_t)sizeof end && *to != '<' && strchr("'\"{}\\", *to) == NULL)
            to++;
        if (to == text || stop - to < (ptrdiff_t)sizeof end || memcmp(to, end, sizeof end - 1) != 0)
            continue;
        put_form(c, c->family->before[SYSTEM], "system");
        put_text(c, text, (size_t)(to - text));
        put_form(c, c->family->after[SYSTEM], "system");
        return;
    }
}

static int role_of(const char *role)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    for (int i = 0; i < 3; i++)
        if (role != NULL && strcmp(role, roles[i]) == 0)
            return i;
    return -1;
}

static void put_messages(chat *c, const mica_chat_message *messages, int count)
{
    const family *f = c->family;
    const mica_tokenizer_info *info = &c->t->info;
    const char *system = NULL; /* which waits for a user */
    bool llama2 = strcmp(f->name, "Llama 2") == 0;
    if (!llama2 && info->bos >= 0 && has(info->chat_template, info->chat_template_bytes, "bos_token"))
        put_token(c, info->bos);
    if (f->before[SYSTEM] != NULL && (count == 0 || role_of(messages[0].role) != SYSTEM))
        put_default_system(c);
    for (int i = 0; i < count; i++) {
        int role = role_of(messages[i].role);
        const char *name = role == ASSISTANT ? f->assistant : messages[i].role;
        if (f->before[role] == NULL) {
            system = messages[i].text;
            continue;
        }
        put_form(c, f->before[role], name);
        if (system != NULL && role == USER) {
            if (llama2)
                put_text(c, "<<SYS>>\n", 8);
            put_message(c, system);
            put_text(c, f->system_end, strlen(f->system_end));
            system = NULL;
        }
        put_message(c, messages[i].text);
        put_form(c, f->after[role], name);
    }
    put_form(c, f->begin, "assistant");
    flush(c);
}

/* ---- The interface ---- */

#define FORM_BYTES 128 /* of what a family puts around a message, at most */

static size_t chat_bytes(const mica_tokenizer *t, const mica_chat_message *messages, int count)
{
    size_t bytes = 2 * FORM_BYTES + t->info.chat_template_bytes;
    for (int i = 0; i < count; i++)
        bytes += FORM_BYTES + (messages[i].text != NULL ? strlen(messages[i].text) : 0);
    return bytes;
}

size_t mica_chat_scratch(const mica_tokenizer *t, const mica_chat_message *messages, int message_count)
{
    if (t == NULL || messages == NULL)
        return 0;
    size_t bytes = chat_bytes(t, messages, message_count), encode = mica_encode_scratch(t, bytes);
    return encode < SIZE_MAX - bytes - MICA_ALIGN ? mica_align_up(bytes) + encode : SIZE_MAX;
}

mica_status mica_chat_encode(mica_context *ctx, const mica_tokenizer *t, int32_t *tokens, size_t *count,
                             const mica_chat_message *messages, int message_count, void *scratch,
                             size_t scratch_bytes)
{
    if (t == NULL || count == NULL || (tokens == NULL && *count > 0) ||
        (messages == NULL && message_count > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "chat: the tokenizer, tokens, count or messages are NULL");
    for (int i = 0; i < message_count; i++)
        if (role_of(messages[i].role) < 0 || messages[i].text == NULL)
            return mica_fail(ctx, MICA_ERR_ARGUMENT,
                             "chat: message %d: the role %s; expected system, user or assistant, and a text",
                             i, messages[i].role != NULL ? MICA_QUOTE(messages[i].role) : "NULL");
    const family *f = family_of(&t->info);
    if (f == NULL)
        return mica_fail(ctx, MICA_ERR_FORMAT, "chat: %s",
                         t->info.chat_template == NULL
                             ? "the model has no chat template"
                             : "the model's chat template is of no family that is known");
    size_t bytes = chat_bytes(t, messages, message_count);
    if (scratch_bytes < mica_align_up(bytes))
        return mica_fail(ctx, MICA_ERR_MEMORY, "chat: %zu bytes of scratch; mica_chat_scratch says how many",
                         scratch_bytes);
    chat c = {.ctx = ctx,
              .t = t,
              .family = f,
              .out = {.token = tokens, .room = *count},
              .text = scratch,
              .room = bytes,
              .scratch = (char *)scratch + mica_align_up(bytes),
              .scratch_bytes = scratch_bytes - mica_align_up(bytes),
              .first = true};
    put_messages(&c, messages, message_count);
    if (c.status != MICA_OK)
        return c.status;
    *count = c.out.count;
    if (c.out.count > c.out.room)
        return mica_fail(ctx, MICA_ERR_MEMORY, "chat: %zu tokens, there is room for %zu", c.out.count,
                         c.out.room);
    return MICA_OK;
}
