/* The rest of a line: options by name and by position, flags, activations. */
#include <limits.h>
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "netfile/hints.h"
#include "netfile/reader.h"

static const char *const expected[] = {
#define VALUE_TEXT(kind, text) text,
    VALUE_KINDS(VALUE_TEXT)};

static bool same(const reader *r, const token *t, const char *text)
{
    return strlen(text) == t->length && memcmp(r->text + t->at, text, t->length) == 0;
}

/* The number of the token's word in a list that ends with NULL; -1: not in it. */
static int number_in(const reader *r, const token *t, const char *const *list)
{
    for (int i = 0; list[i] != NULL; i++)
        if (same(r, t, list[i]))
            return i;
    return -1;
}

static size_t length_of(const char *const *list)
{
    size_t count = 0;
    while (list[count] != NULL)
        count++;
    return count;
}

/* ---- Names ---- */

/* Names of `names` that a full name can have here: with the scopes around, the innermost first. */
static bool in_scope(const reader *r, int scope, const token *name, const char *full)
{
    const mica_net *net = r->net;
    size_t prefix = scope == net->scopes ? strlen(net->prefix) : net->scope_start[scope];
    return strncmp(full, net->prefix, prefix) == 0 && same(r, name, full + prefix);
}

mica_value mica_value_called(const reader *r, const token *name)
{
    for (int scope = r->net->scopes; scope >= 0; scope--)
        for (const label *l = r->labels; l != NULL; l = l->before)
            if (in_scope(r, scope, name, l->name))
                return l->value;
    return 0;
}

mica_status mica_find_value(reader *r, const token *name, mica_value *out)
{
    *out = mica_value_called(r, name);
    if (*out != 0)
        return MICA_OK;
    const char *names[64];
    size_t count = 0;
    for (const label *l = r->labels; l != NULL && count < 64; l = l->before)
        names[count++] = l->name;
    return mica_fail_at(r, name, MICA_ERR_FORMAT, "there is no line %s above%s",
                        MICA_QUOTE_N(r->text + name->at, name->length),
                        mica_guess_of(r, name, names, count, sizeof names[0]).text);
}

static mica_status find_parameter(reader *r, const token *name, const char **out)
{
    const mica_net *net = r->net;
    for (int scope = net->scopes; scope >= 0; scope--)
        for (int i = 0; i < net->built_values; i++)
            if (net->values[i].kind == MICA_BUFFER_PARAMETER &&
                in_scope(r, scope, name, net->values[i].name)) {
                *out = net->values[i].name;
                return MICA_OK;
            }
    return mica_fail_at(r, name, MICA_ERR_FORMAT,
                        "no layer above has a parameter %s (names look like conv1.weight)",
                        MICA_QUOTE_N(r->text + name->at, name->length));
}

/* ---- Values ---- */

static mica_status need_word(reader *r, const word_option *o)
{
    if (r->now.kind == TOKEN_WORD)
        return MICA_OK;
    return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s: expected %s, found %s", o->name, expected[o->kind],
                        mica_found_now(r).text);
}

static mica_status read_choice(reader *r, const word_option *o, const char *const *list, int *out)
{
    MICA_TRY(need_word(r, o));
    *out = number_in(r, &r->now, list);
    if (*out < 0)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s: unknown value %s%s", o->name,
                            mica_found_now(r).text,
                            mica_guess_of(r, &r->now, list, length_of(list), sizeof list[0]).text);
    return mica_next_token(r);
}

/* normal(0.02), he_normal */
static mica_status read_init(reader *r, const word_option *o, mica_init *out)
{
    int kind;
    MICA_TRY(read_choice(r, o, mica_netfile_inits, &kind));
    out->kind = (mica_init_kind)(kind + MICA_INIT_CONSTANT);
    if (mica_is_sign(r, '(') && !r->now.spaced) {
        double value;
        MICA_TRY(mica_read_expression(r, &value, false));
        out->value = (float)value;
    } else if (out->kind <= MICA_INIT_NORMAL) {
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT,
                            "%s: expected a number in parentheses, such as %s(0.02), found %s", o->name,
                            mica_netfile_inits[kind], mica_found_now(r).text);
    }
    return MICA_OK;
}

static mica_status read_pair(reader *r, const word_option *o, mica_index *out)
{
    token at = r->now;
    mica_index sizes[MICA_MAX_RANK];
    int count;
    MICA_TRY(mica_read_sizes(r, sizes, &count, o->name, 0));
    if (count < 1 || count > 2)
        return mica_fail_at(r, &at, MICA_ERR_FORMAT, "%s: expected one or two sizes, found %d", o->name,
                            count);
    out[0] = sizes[0];
    out[1] = sizes[count - 1];
    return MICA_OK;
}

static mica_status read_values(reader *r, const word_option *o, value_list *out)
{
    MICA_TRY(need_word(r, o));
    while (r->now.kind == TOKEN_WORD) {
        token name = r->now;
        MICA_TRY(mica_next_token(r));
        if (mica_is_sign(r, '=')) { /* the name of the next option */
            r->now = name;
            return MICA_OK;
        }
        if (out->count > 0 && number_in(r, &name, mica_netfile_activations) >= 0) {
            r->now = name;
            return MICA_OK;
        }
        if (out->count == MICA_OP_OUTS - 1)
            return mica_fail_at(r, &name, MICA_ERR_FORMAT, "%s: more than %d names", o->name,
                                MICA_OP_OUTS - 1);
        MICA_TRY(mica_find_value(r, &name, &out->value[out->count++]));
    }
    return MICA_OK;
}

static mica_status read_name(reader *r, const word_option *o, const char **out)
{
    MICA_TRY(need_word(r, o));
    if (memchr(r->text + r->now.at, '.', r->now.length) != NULL)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s: expected a name without dots, found %s",
                            o->name, mica_found_now(r).text);
    *out = mica_keep_word(r, &r->now);
    return *out != NULL ? mica_next_token(r) : r->net->status;
}

static mica_status read_number(reader *r, const word_option *o, void *field)
{
    double number = 0.0;
    mica_index whole = 0;
    switch (o->kind) {
    case VALUE_SIZE:
        return mica_read_whole(r, field, o->name, 1, INT32_MAX);
    case VALUE_OFFSET:
        return mica_read_whole(r, field, o->name, INT32_MIN, INT32_MAX);
    case VALUE_INT:
        MICA_TRY(mica_read_whole(r, &whole, o->name, INT32_MIN, INT32_MAX));
        *(int *)field = (int)whole;
        return MICA_OK;
    case VALUE_COUNT:
        MICA_TRY(mica_read_whole(r, &whole, o->name, 1, MOST_COUNT));
        *(int *)field = (int)whole;
        return MICA_OK;
    default:
        MICA_TRY(mica_read_expression(r, &number, false));
        if (o->kind == VALUE_FLOAT)
            *(float *)field = (float)number;
        else
            *(double *)field = number;
        return MICA_OK;
    }
}

static mica_status read_value(reader *r, line *l, const word_option *o)
{
    void *field = (char *)l->opts + o->offset;
    token name = r->now;
    int number;
    switch (o->kind) {
    case VALUE_FLAG:
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s takes no value", o->name);
    case VALUE_PAIR:
        return read_pair(r, o, field);
    case VALUE_LIST:
        l->list = r->now;
        MICA_TRY(
            mica_read_sizes(r, ((size_list *)field)->size, &((size_list *)field)->count, o->name, INT32_MIN));
        l->list_end = r->before;
        return MICA_OK;
    case VALUE_ACTIVATION:
        MICA_TRY(read_choice(r, o, mica_netfile_activations, &number));
        *(mica_activation *)field = (mica_activation)(number + 1);
        return MICA_OK;
    case VALUE_INIT:
        return read_init(r, o, field);
    case VALUE_CHOICE:
        return read_choice(r, o, o->choices, field);
    case VALUE_NAME:
        return read_name(r, o, field);
    case VALUE_PARAMETER:
        MICA_TRY(need_word(r, o));
        MICA_TRY(find_parameter(r, &name, field));
        return mica_next_token(r);
    case VALUE_VALUE:
        MICA_TRY(need_word(r, o));
        MICA_TRY(mica_find_value(r, &name, field));
        return mica_next_token(r);
    case VALUE_VALUES:
        return read_values(r, o, field);
    case VALUE_NUMBERS:
        return mica_read_numbers(r, l, o);
    default:
        return read_number(r, o, field);
    }
}

/* ---- The line ---- */

/* How a word is used, for messages: "conv channels kernel". */
static void usage(char *out, size_t size, const word *w)
{
    size_t used = (size_t)mica_format(out, size, "%s", w->name);
    for (size_t i = 0; i < w->option_count && used < size; i++)
        if ((w->options[i].flags & REQUIRED) != 0)
            used += (size_t)mica_format(out + used, size - used, " %s", w->options[i].name);
}

/* What someone means who knows another framework: an end for a message, or nothing. The value, if there is one, is the
 * present token. */
static guess habit_of(const reader *r, const line *l, const token *name)
{
    guess g = {""};
    const char *text = r->text + name->at, *ours = mica_option_alias(l->word, text, name->length);
    if (mica_option_is_activation(text, name->length) && (l->word->flags & ACTIVATES) != 0) {
        int number = number_in(r, &r->now, mica_netfile_activations);
        (void)mica_format(g.text, sizeof g.text, "; an activation is a word of its own: \"%s\"",
                          number >= 0 ? mica_netfile_activations[number] : "relu");
    } else if (mica_option_is_known(text, name->length)) {
        (void)mica_format(g.text, sizeof g.text, "; sizes of the input follow from the line above");
    } else if (ours != NULL) {
        (void)mica_format(g.text, sizeof g.text, "; did you mean \"%s\"?", ours);
    }
    return g;
}

static mica_status unknown(reader *r, const line *l, const token *name)
{
    const char *names[64];
    size_t count = 0;
    if ((l->word->flags & UNNAMED) == 0)
        names[count++] = "name";
    if ((l->word->flags & SOURCE) == 0)
        names[count++] = "from";
    for (size_t i = 0; i < l->word->option_count; i++)
        names[count++] = l->word->options[i].name;
    if ((l->word->flags & ACTIVATES) != 0)
        for (size_t i = 0; i < mica_activation_count(); i++)
            names[count++] = mica_netfile_activations[i];
    guess meant = habit_of(r, l, name);
    if (meant.text[0] == '\0')
        meant = mica_guess_of(r, name, names, count, sizeof names[0]);
    return mica_fail_at(r, name, MICA_ERR_FORMAT, "%s takes no %s%s", l->word->name,
                        MICA_QUOTE_N(r->text + name->at, name->length), meant.text);
}

/* name=value, where the token before the = is `name`. */
static mica_status read_named(reader *r, line *l, const token *name, unsigned *given)
{
    if (same(r, name, "name") && (l->word->flags & UNNAMED) == 0) {
        if (l->named)
            return mica_fail_at(r, name, MICA_ERR_FORMAT, "name is given twice");
        l->named = true;
        return read_name(r, &(word_option){.name = "name", .kind = VALUE_NAME}, &l->name);
    }
    if (same(r, name, "from") && (l->word->flags & SOURCE) == 0) {
        token value = r->now;
        l->from = true;
        MICA_TRY(need_word(r, &(word_option){.name = "from", .kind = VALUE_VALUE}));
        MICA_TRY(mica_find_value(r, &value, &l->x));
        return mica_next_token(r);
    }
    for (size_t i = 0; i < l->word->option_count; i++) {
        const word_option *o = &l->word->options[i];
        if (!same(r, name, o->name))
            continue;
        if ((*given & 1u << i) != 0)
            return mica_fail_at(r, name, MICA_ERR_FORMAT, "%s is given twice", o->name);
        *given |= 1u << i;
        return read_value(r, l, o);
    }
    return unknown(r, l, name);
}

/* A word that stands for itself: a flag, a choice, an activation. *done: it was one. */
static mica_status read_bare(reader *r, line *l, unsigned *given, bool *done)
{
    *done = true;
    for (size_t i = 0; i < l->word->option_count; i++) {
        const word_option *o = &l->word->options[i];
        void *field = (char *)l->opts + o->offset;
        int number = o->kind == VALUE_FLAG         ? same(r, &r->now, o->name) ? 1 : -1
                     : o->kind == VALUE_CHOICE     ? number_in(r, &r->now, o->choices)
                     : o->kind == VALUE_ACTIVATION ? number_in(r, &r->now, mica_netfile_activations)
                                                   : -1;
        if (number < 0)
            continue;
        if ((*given & 1u << i) != 0)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s is given twice", o->name);
        *given |= 1u << i;
        if (o->kind == VALUE_FLAG)
            *(bool *)field = true;
        else if (o->kind == VALUE_CHOICE)
            *(int *)field = number;
        else
            *(mica_activation *)field = (mica_activation)(number + 1);
        return mica_next_token(r);
    }
    int activation = (l->word->flags & ACTIVATES) != 0 ? number_in(r, &r->now, mica_netfile_activations) : -1;
    *done = activation >= 0;
    if (activation < 0)
        return MICA_OK;
    if (l->activation != MICA_NO_ACTIVATION)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "a second activation, %s: put it on its own line",
                            mica_found_now(r).text);
    l->activation = (mica_activation)(activation + 1);
    return mica_next_token(r);
}

/* The next option that may be given by its place and was not yet. */
static mica_status read_placed(reader *r, line *l, unsigned *given)
{
    for (size_t i = 0; i < l->word->option_count; i++)
        if ((l->word->options[i].flags & IN_PLACE) != 0 && (*given & 1u << i) == 0) {
            *given |= 1u << i;
            return read_value(r, l, &l->word->options[i]);
        }
    if (r->now.kind == TOKEN_WORD)
        return l->word->op != NULL ? mica_read_input(r, l) : unknown(r, l, &r->now);
    return mica_fail_at(r, &r->now, MICA_ERR_FORMAT,
                        "%s: expected an option or the end of the line, found %s%s", l->word->name,
                        mica_found_now(r).text,
                        r->now.kind == TOKEN_SIGN && strchr("+-*/^", r->now.sign) != NULL
                            ? "; an expression with spaces needs parentheses"
                            : "");
}

static mica_status check_given(reader *r, const line *l, unsigned given)
{
    for (size_t i = 0; i < l->word->option_count; i++) {
        const word_option *o = &l->word->options[i];
        if ((o->flags & REQUIRED) == 0 || (given & 1u << i) != 0)
            continue;
        char how[160];
        usage(how, sizeof how, l->word);
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected %s of %s (\"%s\"), found %s", o->name,
                            l->word->name, how, mica_found_now(r).text);
    }
    return MICA_OK;
}

mica_status mica_read_arguments(reader *r, line *l)
{
    unsigned given = 0;
    while (r->now.kind != TOKEN_END && r->now.kind != TOKEN_LINE && !mica_is_sign(r, '{') &&
           !mica_is_sign(r, '}')) {
        token name = r->now;
        if (name.kind == TOKEN_WORD) {
            MICA_TRY(mica_next_token(r));
            if (mica_is_sign(r, '=')) {
                MICA_TRY(mica_next_token(r));
                MICA_TRY(read_named(r, l, &name, &given));
                continue;
            }
            r->now = name;
            bool done;
            MICA_TRY(read_bare(r, l, &given, &done));
            if (done)
                continue;
        }
        MICA_TRY(read_placed(r, l, &given));
    }
    MICA_TRY(check_given(r, l, given));
    l->given = given;
    return MICA_OK;
}
