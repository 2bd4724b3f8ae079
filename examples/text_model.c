/* A public text model writes: its memory is known before it is taken, and no token takes more.
 *
 *     ./dev model
 *     build/examples/text_model build/models/SmolLM2-135M-Instruct.Q4_1.gguf "Once upon a time" */
#include <mica/mica.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 512, TOKENS = 40 };

/* Draws tokens from the logits of the last run, and runs each. */
static mica_status write_on(mica_context *ctx, mica_session *session, const mica_tokenizer *tokenizer)
{
    mica_random dice = mica_random_stream(42, 0);
    mica_sampling how = {.temperature = 0.8f, .top_p = 0.95f};
    mica_decoder decoder;
    mica_status status = MICA_OK;
    mica_decode_begin(&decoder, tokenizer, false);
    for (int n = 0; n < TOKENS && status == MICA_OK; n++) {
        mica_tensor logits, row;
        int32_t token = 0;
        char text[512];
        status = mica_session_logits(session, &logits);
        if (status == MICA_OK)
            status = mica_view_select(ctx, &row, &logits, 0, 0);
        if (status == MICA_OK)
            status = mica_sample(ctx, &token, &row, &dice, &how);
        if (status != MICA_OK || mica_token_ends(tokenizer, token))
            break;
        size_t length = mica_decode_next(&decoder, text, sizeof text, token);
        if (length <= sizeof text)
            printf("%.*s", (int)length, text);
        status = mica_session_run(session, &(mica_session_piece){.tokens = &token, .count = 1, .logits = 1},
                                  1);
    }
    printf("\n");
    return status;
}

static mica_status run_model(mica_context *ctx, const mica_model *model, mica_session *session,
                             const char *prompt)
{
    const mica_tokenizer *tokenizer = mica_model_tokenizer(model);
    int32_t tokens[CONTEXT / 2];
    size_t count = CONTEXT / 2, bytes = mica_encode_scratch(tokenizer, strlen(prompt));
    void *scratch = malloc(bytes);
    mica_status status = mica_encode(ctx, tokenizer, tokens, &count, prompt, strlen(prompt), scratch, bytes,
                                     NULL);
    free(scratch);
    printf("the plan: %zu bytes, beside %zu bytes of weights in the file\n",
           mica_net_plan(mica_session_net(session))->total, mica_model_about(model)->weight_bytes);
    if (status == MICA_OK)
        status = mica_session_bind(session, NULL, 0); /* or your own block */
    if (status == MICA_OK)
        status = mica_session_run(
            session, &(mica_session_piece){.tokens = tokens, .count = (mica_index)count, .logits = 1}, 1);
    printf("%s", prompt);
    return status == MICA_OK ? write_on(ctx, session, tokenizer) : status;
}

int main(int argc, char **argv)
{
    mica_context *ctx;
    mica_model *model = NULL;
    mica_session *session = NULL;
    if (argc < 3) {
        printf("usage: text_model MODEL.gguf PROMPT\n");
        return 0;
    }
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = 2}) != MICA_OK)
        return 1;
    mica_status status = mica_model_open(ctx, &model, argv[1]);
    if (status == MICA_OK)
        status = mica_session_create(model, &session, &(mica_session_opts){.context = CONTEXT});
    if (status == MICA_OK)
        status = run_model(ctx, model, session, argv[2]);
    if (status != MICA_OK)
        fprintf(stderr, "%s\n", mica_error(ctx));
    mica_session_destroy(session);
    mica_model_close(model);
    mica_context_destroy(ctx);
    return status != MICA_OK;
}
