/* Lines, braces and names of a net file. There is no recursion: braces are a stack of frames, and a repeat jumps
 * back to its first line. */
#include <limits.h>
#include <string.h>

#include "base/format.h"
#include "base/nearest.h"
#include "io/number.h"
#include "io/quote.h"
#include "io/stream.h"
#include "layer/scope.h"
#include "netfile/hints.h"
#include "netfile/operations.h"
#include "netfile/words.h"

#define MOST_LINE_BYTES 4096

struct frame {
    token open;       /* the word that opened it */
    const word *kind; /* NULL: the file */
    token body;       /* the brace */
    mica_index index, count;
    const char *name; /* of the scope; NULL: it has none */
    int counted;      /* its index as a constant, or NONE */
    mica_value x;     /* residual: what goes in */
    mica_net_residual_opts residual;
    unsigned short
        words[MOST_WORDS + OPERATION_COUNT]; /* lines of each word in this scope, for their names */
};

static frame *top(reader *r) { return &r->frames[r->frame_count - 1]; }

static bool is_kind(const frame *f, const char *kind)
{
    return f->kind != NULL && strcmp(f->kind->name, kind) == 0;
}

/* ---- Names ---- */

mica_status mica_add_label(reader *r, const char *name, mica_value value)
{
    label *l = mica_net_memory(r->net, sizeof *l);
    const char *full = mica_net_text(r->net, "%s%s", r->net->prefix, name);
    if (l == NULL || full == NULL)
        return r->net->status;
    *l = (label){full, value, r->labels};
    r->labels = l;
    return MICA_OK;
}

static bool is_taken(const reader *r, const char *name)
{
    size_t prefix = strlen(r->net->prefix);
    for (const label *l = r->labels; l != NULL; l = l->before)
        if (strncmp(l->name, r->net->prefix, prefix) == 0 && strcmp(l->name + prefix, name) == 0)
            return true;
    return false;
}

/* "conv1", "conv2", ... in each scope; "loss" and "loss2". */
static mica_status make_name(reader *r, line *l)
{
    int scope = r->frame_count - 1;
    while (scope > 0 && r->frames[scope].name == NULL)
        scope--;
    unsigned short *count = &r->frames[scope].words[l->number];
    char name[64];
    do {
        ++*count;
        mica_format(name, sizeof name, *count == 1 && strcmp(l->word->name, "loss") == 0 ? "%s" : "%s%d",
                    l->word->name, *count);
    } while (is_taken(r, name) && *count < USHRT_MAX);
    l->name = mica_net_text(r->net, "%s", name);
    return r->net->status;
}

/* ---- Constants ---- */

static mica_status new_constant(reader *r, const token *at, const char *name, double value, bool loop)
{
    if (name == NULL)
        return r->net->status;
    if (r->constant_count == MOST_CONSTANTS)
        return mica_fail_at(r, at, MICA_ERR_FORMAT, "more than %d constants", MOST_CONSTANTS);
    r->constants[r->constant_count++] = (constant){name, value, loop, at->line};
    return MICA_OK;
}

static void print_number(char out[MICA_NUMBER_ROOM], double number)
{
    double back;
    (void)mica_print_number(out, 15, number);
    if (!mica_parse_number(&back, out, strlen(out)) || back != number)
        (void)mica_print_number(out, 17, number);
}

/* Another value that the caller gave, instead of the expression from `from` on. */
static void take_given(reader *r, const char *name, size_t from, double *value)
{
    for (size_t i = 0; i < r->opts->constant_count; i++) {
        const mica_netfile_constant *given = &r->opts->constants[i];
        if (strcmp(given->name, name) != 0)
            continue;
        r->used[i] = true;
        edit *e = given->value == *value ? NULL : &r->edits[r->edit_count++];
        *value = given->value;
        if (e == NULL)
            return;
        *e = (edit){.at = from, .length = r->before - from};
        print_number(e->text, *value);
        return;
    }
}

/* let NAME = EXPRESSION */
static mica_status read_let(reader *r)
{
    if (r->frame_count > 1)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "let is only allowed outside of braces");
    MICA_TRY(mica_next_token(r));
    token name = r->now;
    if (name.kind != TOKEN_WORD || memchr(r->text + name.at, '.', name.length) != NULL)
        return mica_fail_at(r, &name, MICA_ERR_FORMAT, "expected the name of a constant, found %s",
                            mica_found_now(r).text);
    const constant *there = mica_find_constant(r, r->text + name.at, name.length);
    if (there != NULL)
        return mica_fail_at(r, &name, MICA_ERR_FORMAT, "\"%s\" was already defined as %g on line %d",
                            there->name, there->value, there->line);
    MICA_TRY(mica_next_token(r));
    if (!mica_is_sign(r, '='))
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected \"=\", found %s", mica_found_now(r).text);
    MICA_TRY(mica_next_token(r));
    size_t from = r->now.at;
    double value;
    MICA_TRY(mica_read_expression(r, &value, true));
    MICA_TRY(new_constant(r, &name, mica_keep_word(r, &name), value, false));
    constant *c = &r->constants[r->constant_count - 1];
    take_given(r, c->name, from, &c->value);
    return MICA_OK;
}

/* ---- Braces ---- */

static mica_status enter_turn(reader *r, frame *f)
{
    memset(f->words, 0, sizeof f->words);
    if (f->counted != NONE)
        r->constants[f->counted].value = (double)f->index;
    if (f->name == NULL)
        return MICA_OK;
    char name[128];
    mica_format(name, sizeof name, is_kind(f, "repeat") ? "%.100s%td" : "%.100s", f->name, f->index);
    mica_net_enter(r->net, name);
    return r->net->status;
}

/* Goes behind the brace that closes the one at hand. */
static mica_status skip_body(reader *r)
{
    int depth = 0;
    do {
        depth += mica_is_sign(r, '{') - mica_is_sign(r, '}');
        if (r->now.kind == TOKEN_END)
            return MICA_OK; /* which is said where the file ends */
        r->lines += r->now.kind == TOKEN_LINE;
        MICA_TRY(mica_next_token(r));
    } while (depth > 0);
    return MICA_OK;
}

static mica_status open_brace(reader *r, line *l)
{
    if (!mica_is_sign(r, '{'))
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected \"{\" at the end of a %s line, found %s",
                            l->word->name, mica_found_now(r).text);
    if (r->frame_count == MICA_NETFILE_MOST_DEPTH)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "braces are nested more than %d deep",
                            MICA_NETFILE_MOST_DEPTH - 1);
    bool repeat = strcmp(l->word->name, "repeat") == 0, residual = strcmp(l->word->name, "residual") == 0;
    const repeat_line *o = l->opts;
    if (repeat && (o->count < 0 || o->count > MICA_NETFILE_MOST_LINES))
        return mica_fail_at(r, &l->at, MICA_ERR_FORMAT, "count: expected a number from 0 to %d, found %td",
                            MICA_NETFILE_MOST_LINES, o->count);
    if (repeat && o->count == 0)
        return skip_body(r);
    if (!repeat && !l->named)
        MICA_TRY(make_name(r, l));
    frame *f = &r->frames[r->frame_count++];
    *f = (frame){.open = l->at,
                 .kind = l->word,
                 .body = r->now,
                 .name = l->name,
                 .counted = NONE,
                 .x = l->x,
                 .count = 1};
    r->value = l->x;
    if (repeat) {
        f->count = o->count;
        if (o->index != NULL) {
            f->counted = r->constant_count;
            MICA_TRY(new_constant(r, &l->at, o->index, 0.0, true));
        }
    }
    if (residual)
        f->residual = (mica_net_residual_opts){.project = ((const residual_line *)l->opts)->project,
                                               .activation = l->activation};
    MICA_TRY(enter_turn(r, f));
    return mica_next_token(r);
}

static mica_status builder_failed(reader *r, const token *at);

static mica_status close_brace(reader *r)
{
    frame *f = top(r);
    if (f->kind == NULL)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "unmatched \"}\"");
    token close = r->now;
    if (is_kind(f, "residual")) /* leaves the scope too */
        r->value = mica_end_residual(r->net, r->value, f->x, &f->residual);
    else if (f->name != NULL)
        mica_net_leave(r->net);
    if (r->net->status != MICA_OK)
        return builder_failed(r, &f->open);
    if (f->name != NULL) {
        char name[128];
        mica_format(name, sizeof name, is_kind(f, "repeat") ? "%.100s%td" : "%.100s", f->name, f->index);
        MICA_TRY(mica_add_label(r, name, r->value));
    }
    if (++f->index < f->count) {
        r->now = f->body;
        MICA_TRY(enter_turn(r, f));
        return mica_next_token(r);
    }
    if (f->counted != NONE)
        r->constant_count--;
    r->frame_count--;
    r->now = close;
    return mica_next_token(r);
}

/* ---- Layers ---- */

/* What a builder found wrong, said of the line. */
static mica_status builder_failed(reader *r, const token *at)
{
    mica_status status = r->net->status;
    if (status == MICA_ERR_MEMORY || r->told)
        return status; /* none of the line's, or it names the line already */
    char message[MICA_ERROR_TEXT];
    const char *words = mica_status_text(status),
               *text = r->net->error != NULL ? r->net->error : r->net->ctx->error;
    if (strncmp(text, words, strlen(words)) == 0)
        text += strlen(words) + 2;
    if (strncmp(text, "net: ", 5) == 0)
        text += 5;
    mica_format(message, sizeof message, "%s", text);
    r->net->status = MICA_OK;
    return mica_fail_at(r, at, status, "%s", message);
}

static mica_status build_line(reader *r, line *l)
{
    if (!l->named && (l->word->flags & UNNAMED) == 0)
        MICA_TRY(make_name(r, l));
    if ((l->word->flags & UNNAMED) == 0)
        *(const char **)l->opts = l->name;
    else
        l->name = *(const char **)l->opts;
    mica_value y = l->word->build(r, l);
    if (y != 0 && l->activation != MICA_NO_ACTIVATION) {
        const char *name = mica_net_text(r->net, "%s.%s", l->name,
                                         mica_netfile_activations[l->activation - 1]);
        y = mica_net_activation(r->net, y, &(mica_net_activation_opts){.name = name, .kind = l->activation});
    }
    if (r->net->status != MICA_OK)
        return builder_failed(r, &l->at);
    if (r->net->node_count > MICA_NETFILE_MOST_LAYERS)
        return mica_fail_at(r, &l->at, MICA_ERR_FORMAT, "more than %d layers", MICA_NETFILE_MOST_LAYERS);
    r->value = y;
    MICA_TRY(mica_add_label(r, l->name, y));
    return mica_label_outputs(r, l, y);
}

/* Finds what the line begins with: a layer's word, else an operation's, which is made in *made. */
static mica_status find_word(reader *r, line *l, operation_word *made)
{
    const char *name = r->text + r->now.at;
    l->word = mica_find_word(name, r->now.length);
    if (l->word != NULL) {
        l->number = (int)(l->word - mica_netfile_words);
        return MICA_OK;
    }
    int number = mica_find_operation(name, r->now.length);
    if (number != NONE) {
        mica_operation_word(made, mica_op_at(number));
        l->word = &made->word;
        l->number = MOST_WORDS + number;
        return MICA_OK;
    }
    const char *names[MOST_WORDS + OPERATION_COUNT], *alias = mica_layer_alias(name, r->now.length);
    size_t count = 0;
    if (alias != NULL)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "unknown layer %s; did you mean \"%s\"?",
                            mica_found_now(r).text, alias);
    for (size_t i = 0; i < mica_netfile_word_count; i++)
        names[count++] = mica_netfile_words[i].name;
    for (int n = 0; n < OPERATION_COUNT; n++)
        if (mica_netfile_operation(n) != NULL)
            names[count++] = mica_op_at(n)->name;
    return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "unknown layer %s%s", mica_found_now(r).text,
                        mica_guess_of(r, &r->now, names, count, sizeof names[0]).text);
}

static mica_status read_line(reader *r)
{
    if (mica_is_sign(r, '}'))
        return close_brace(r);
    if (mica_is_word(r, "let"))
        return read_let(r);
    if (r->now.kind != TOKEN_WORD)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected a layer, found %s",
                            mica_found_now(r).text);
    _Alignas(MICA_ALIGN) char opts[WORD_OPTION_BYTES] = {0};
    operation_word made;
    line l = {.at = r->now, .opts = opts, .x = r->value};
    MICA_TRY(find_word(r, &l, &made));
    MICA_TRY(mica_next_token(r));
    MICA_TRY(mica_read_arguments(r, &l));
    if (l.x == 0 && (l.word->flags & SOURCE) == 0)
        return mica_fail_at(r, &l.at, MICA_ERR_FORMAT,
                            "there is nothing before %s: a net starts with an input", l.word->name);
    return (l.word->flags & OPENS) != 0 ? open_brace(r, &l) : build_line(r, &l);
}

/* ---- The text ---- */

static mica_status read_text(reader *r)
{
    MICA_TRY(mica_next_token(r));
    while (r->now.kind != TOKEN_END) {
        if (r->now.kind != TOKEN_LINE)
            MICA_TRY(read_line(r));
        if (r->now.kind == TOKEN_END)
            break;
        if (r->now.kind != TOKEN_LINE)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected the end of the line, found %s",
                                mica_found_now(r).text);
        if (++r->lines > MICA_NETFILE_MOST_LINES)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "more than %d lines, counting every repetition",
                                MICA_NETFILE_MOST_LINES);
        if (r->now.at - r->now.line_at > MOST_LINE_BYTES)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "line longer than %d bytes", MOST_LINE_BYTES);
        MICA_TRY(mica_next_token(r));
    }
    if (r->frame_count > 1)
        return mica_fail_at(r, &top(r)->open, MICA_ERR_FORMAT, "%s has no \"}\"", top(r)->kind->name);
    if (r->net->node_count == 0)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected layers, found the end of the file");
    return MICA_OK;
}

static mica_status check_given(reader *r)
{
    for (size_t i = 0; i < r->opts->constant_count; i++) {
        const mica_netfile_constant *given = &r->opts->constants[i];
        if (r->used[i] || given->optional)
            continue;
        const char *meant = mica_nearest(given->name, strlen(given->name), &r->constants[0].name,
                                         (size_t)r->constant_count, sizeof(constant));
        const char *file = r->opts->file != NULL ? r->opts->file : "net";
        return mica_net_failed(r->net,
                               mica_fail(r->ctx, MICA_ERR_ARGUMENT, "%.60s has no constant %s%s%s%s", file,
                                         MICA_QUOTE(given->name), meant != NULL ? "; did you mean \"" : "",
                                         meant != NULL ? meant : "", meant != NULL ? "\"?" : ""));
    }
    return MICA_OK;
}

/* The text with what was given written into it. */
static const char *settled_text(reader *r)
{
    size_t size = r->length + 1;
    for (int i = 0; i < r->edit_count; i++)
        size += strlen(r->edits[i].text);
    char *text = mica_net_memory(r->net, size), *to = text;
    size_t from = 0;
    if (text == NULL)
        return NULL;
    for (int i = 0; i < r->edit_count; i++) {
        const edit *e = &r->edits[i];
        memcpy(to, r->text + from, e->at - from);
        to += e->at - from;
        memcpy(to, e->text, strlen(e->text));
        to += strlen(e->text);
        from = e->at + e->length;
    }
    memcpy(to, r->text + from, r->length - from + 1);
    return text;
}

/* The first input that a layer reads, and that is neither the data's nor the target's. */
static const char *other_input(const reader *r)
{
    const mica_net *net = r->net;
    for (int i = 0; i < net->node_count; i++) {
        for (int k = 0; k < net->nodes[i].ins; k++) {
            int in = net->nodes[i].in[k];
            const mica_value_info *v = in != NONE ? &net->values[in] : NULL;
            if (v != NULL && v->kind == MICA_BUFFER_INPUT && v->home != MICA_HOME_LENT &&
                v->name != r->info.input && v->name != r->info.target)
                return v->name;
        }
    }
    return NULL;
}

static mica_status finish(reader *r)
{
    mica_netfile_info *info = &r->info;
    mica_tensor shape;
    if (info->output_value == 0)
        info->output_value = r->value;
    MICA_TRY(mica_net_output(r->net, NULL, info->output_value));
    MICA_TRY(mica_net_shape(r->net, &shape, info->output_value));
    info->output = mica_net_value_name(r->net, info->output_value - 1);
    info->classes = shape.rank > 0 ? shape.dim[shape.rank - 1] : 1;
    mica_netfile_constant *constants = mica_net_memory(r->net,
                                                       ((size_t)r->constant_count + 1) * sizeof *constants);
    info->text = settled_text(r);
    if (constants == NULL || info->text == NULL)
        return r->net->status;
    for (int i = 0; i < r->constant_count; i++)
        constants[i] = (mica_netfile_constant){r->constants[i].name, r->constants[i].value, false};
    info->constants = constants;
    info->other_input = other_input(r);
    info->constant_count = (size_t)r->constant_count;
    return MICA_OK;
}

static mica_status run(reader *r)
{
    MICA_TRY(read_text(r));
    MICA_TRY(check_given(r));
    return finish(r);
}

mica_status mica_netfile_build(mica_net *net, mica_netfile_info *info, const char *text,
                               const mica_netfile_opts *opts)
{
    static const mica_netfile_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    if (net->status != MICA_OK)
        return net->status;
    size_t length = text != NULL ? strlen(text) : 0;
    if (text == NULL || length > MICA_NETFILE_MOST_BYTES || opts->constant_count > MOST_CONSTANTS ||
        opts->sample_rank < 0 || opts->sample_rank > MICA_MAX_RANK)
        return mica_net_failed(
            net,
            mica_fail(
                net->ctx, MICA_ERR_ARGUMENT,
                "net file: no text, more than %zu bytes of it, more than %d constants, or samples of rank %d",
                MICA_NETFILE_MOST_BYTES, MOST_CONSTANTS, opts->sample_rank));
    size_t bytes = sizeof(reader) + MICA_NETFILE_MOST_DEPTH * sizeof(frame);
    reader *r = mica_allocate(net->ctx, bytes);
    if (r == NULL)
        return mica_net_failed(net, net->ctx->status);
    memset(r, 0, bytes);
    r->net = net;
    r->ctx = net->ctx;
    r->opts = opts;
    r->text = text;
    r->length = length;
    r->now.line = 1;
    r->frames = (frame *)(r + 1);
    r->frame_count = 1;
    mica_status status = run(r);
    if (info != NULL)
        *info = status == MICA_OK ? r->info : (mica_netfile_info){0};
    mica_release(net->ctx, r, bytes);
    return status;
}

mica_status mica_netfile_load(mica_net *net, mica_netfile_info *info, const char *path,
                              const mica_netfile_opts *opts)
{
    mica_netfile_opts with = opts != NULL ? *opts : (mica_netfile_opts){0};
    mica_context *ctx = net->ctx;
    mica_stream stream;
    char *text;
    size_t bytes;
    if (with.file == NULL)
        with.file = path;
    mica_status status = mica_stream_open(ctx, &stream, path);
    if (status != MICA_OK)
        return mica_net_failed(net, status);
    if (stream.most > MICA_NETFILE_MOST_BYTES)
        status = mica_fail(ctx, MICA_ERR_FORMAT, "%s: a net file has at most %zu bytes", MICA_QUOTE(path),
                           MICA_NETFILE_MOST_BYTES);
    if (status == MICA_OK)
        status = mica_stream_all(ctx, &text, &bytes, &stream);
    mica_stream_close(ctx, &stream);
    if (status != MICA_OK)
        return mica_net_failed(net, status);
    if (memchr(text, '\0', bytes) != NULL)
        status = mica_net_failed(net, mica_fail(ctx, MICA_ERR_FORMAT, "%s: not a text file: byte %zu is 0",
                                                MICA_QUOTE(path), strlen(text)));
    else
        status = mica_netfile_build(net, info, text, &with);
    mica_release(ctx, text, bytes + 1);
    return status;
}
