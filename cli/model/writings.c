/* Texts of a net. */
#include "cli/model/writings.h"

#include <stdlib.h>

#include <mica/text.h>

#include "cli/model/take.h"

enum { LONGEST = 4 }; /* bytes of a character */

/* A line's beginning, where the vocabulary has line ends; else the first token there is. */
static int32_t first_token(mica_context *ctx, const mica_vocabulary *v)
{
    int32_t token = 0;
    size_t count = 1;
    return mica_text_encode(ctx, &token, &count, v, "\n") == MICA_OK && count == 1 ? token : 0;
}

/* One text, terminated, or NULL. */
static char *write_text(mica_net *net, const mica_netfile_info *info, const mica_vocabulary *v, uint64_t seed,
                        uint64_t stream)
{
    mica_context *ctx = mica_net_context(net);
    int32_t *tokens = take(WRITING_TOKENS + 1, sizeof *tokens);
    char *text = take(WRITING_TOKENS * LONGEST + 1, 1);
    mica_random dice = mica_random_stream(seed, stream);
    mica_sampling sampling = {.temperature = 0.8f};
    mica_tensor so_far = {.data = tokens, .dtype = MICA_I32, .rank = 1, .dim = {1}, .stride = {1}};
    mica_generation writer;
    mica_status status = mica_generation_begin(&writer, net, info->output);
    tokens[0] = first_token(ctx, v);
    for (; so_far.dim[0] <= WRITING_TOKENS && status == MICA_OK; so_far.dim[0]++)
        status = mica_generation_next(&writer, &tokens[so_far.dim[0]], &so_far, &dice, &sampling);
    so_far.data = tokens + 1;
    so_far.dim[0] = WRITING_TOKENS;
    if (status == MICA_OK)
        status = mica_text_decode(ctx, text, WRITING_TOKENS * LONGEST + 1, v, &so_far);
    free(tokens);
    if (status == MICA_OK)
        return text;
    free(text);
    return NULL;
}

int writings_make(writings *out, const verb *v, mica_context *ctx, const saved *s, uint64_t seed)
{
    mica_net *net = NULL;
    mica_netfile_info info;
    *out = (writings){.count = 0};
    if (s->meaning.vocabulary.count == 0)
        return EXIT_OK;
    const char *windows;
    int code = saved_build_writer(&net, &info, v, ctx, s, &windows);
    /* A net can have more tokens than the texts it was trained on: what it cannot spell is left out. */
    for (uint64_t i = 0; i < WRITINGS && code == EXIT_OK; i++) {
        char *text = write_text(net, &info, &s->meaning.vocabulary, seed, i);
        if (text != NULL)
            out->texts[out->count++] = text;
    }
    mica_net_destroy(net);
    return code;
}

int writings_of(writings *out, const verb *v, mica_context *ctx, const char *path, uint64_t seed)
{
    saved s;
    *out = (writings){.count = 0};
    int code = saved_open(&s, v, ctx, path);
    if (code == EXIT_OK)
        code = writings_make(out, v, ctx, &s, seed);
    saved_close(ctx, &s);
    return code;
}

void writings_free(writings *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->texts[i]);
    *w = (writings){.count = 0};
}
