/* Operations of the list as words of net files, by nothing but their entries: inputs by place or by name, options by
 * the fields that describe them. A new operation is a word without a line here. */
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "netfile/operations.h"
#include "tensor/tensor.h"

/* ---- Which are words ---- */

static bool is_word(const mica_op *op)
{
    return op->infer != NULL && op->writes == 0 && (op->flags & MICA_OP_CALLBACK) == 0 &&
           strstr(op->name, "_backward") == NULL && op->opts_bytes <= OPERATION_OPTION_BYTES &&
           mica_find_word(op->name, strlen(op->name)) == NULL;
}

const mica_op *mica_netfile_operation(int number)
{
    const mica_op *op = mica_op_at(number);
    return op != NULL && is_word(op) ? op : NULL;
}

int mica_find_operation(const char *name, size_t length)
{
    for (int n = 0; mica_op_at(n) != NULL; n++)
        if (strlen(mica_op_at(n)->name) == length && memcmp(mica_op_at(n)->name, name, length) == 0)
            return mica_netfile_operation(n) != NULL ? n : NONE;
    return NONE;
}

/* ---- Names ---- */

const char *mica_operation_input(const mica_op *op, int in)
{
    static const char *const letters[MICA_OP_INS] = {"a", "b", "c", "d", "e", "f",
                                                     "g", "h", "i", "j", "k", "l"};
    return op->names != NULL ? op->names[in] : letters[in];
}

const char *mica_operation_output(const mica_op *op, int out)
{
    static const char *const numbers[MICA_OP_OUTS] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    return op->names != NULL ? op->names[op->ins + op->optional_ins + out] : numbers[out];
}

/* Whether it takes any number of values that are all alike, as concat does. */
static bool is_open(const mica_op *op) { return op->names == NULL && op->optional_ins > 0; }

void mica_operation_usage(char *out, size_t size, const mica_op *op)
{
    size_t used = (size_t)mica_format(out, size, "%s", op->name);
    if (is_open(op)) {
        (void)mica_format(out + used, size - used, " others");
        return;
    }
    for (int i = 0; i < op->ins + op->optional_ins && used < size; i++)
        used += (size_t)mica_format(out + used, size - used, i > 0 && i < op->ins ? " %s" : " [%s]",
                                    mica_operation_input(op, i));
}

/* ---- Options from fields ---- */

/* "constant|reflect" as a list. */
static const char *const *choices_of(operation_word *w, const char *words)
{
    const char **first = &w->choices[w->choice_count];
    char *text = w->text + w->text_length;
    size_t length = strlen(words) + 1;
    if (length > sizeof w->text - w->text_length)
        return NULL;
    memcpy(text, words, length);
    w->text_length += length;
    while (text != NULL) {
        if (w->choice_count + 2 > OPERATION_CHOICES)
            return NULL;
        w->choices[w->choice_count++] = text;
        text = strchr(text, '|');
        if (text != NULL)
            *text++ = '\0';
    }
    w->choices[w->choice_count++] = NULL;
    return first;
}

/* False for what no word stands for. */
static bool option_of(operation_word *w, word_option *o, const mica_field *field)
{
    static const value_kind kinds[] = {
        [MICA_FIELD_INT] = VALUE_INT,      [MICA_FIELD_INDEX] = VALUE_OFFSET,
        [MICA_FIELD_FLOAT] = VALUE_FLOAT,  [MICA_FIELD_DOUBLE] = VALUE_DOUBLE,
        [MICA_FIELD_BOOL] = VALUE_FLAG,    [MICA_FIELD_ACTIVATION] = VALUE_ACTIVATION,
        [MICA_FIELD_DTYPE] = VALUE_CHOICE, [MICA_FIELD_CHOICE] = VALUE_CHOICE,
    };
    if (field->kind >= MICA_FIELD_LENGTH || (field->count > 0 && field->kind > MICA_FIELD_DOUBLE))
        return false;
    *o = (word_option){.name = field->name,
                       .kind = field->count > 0 ? VALUE_NUMBERS : kinds[field->kind],
                       .offset = (unsigned)(offsetof(operation_line, opts) + field->offset),
                       .help = field->about};
    if (field->kind == MICA_FIELD_DTYPE)
        o->choices = mica_netfile_dtypes;
    if (field->kind == MICA_FIELD_CHOICE) {
        o->choices = choices_of(w, field->about);
        o->help = "one of";
        return o->choices != NULL;
    }
    return true;
}

void mica_operation_word(operation_word *w, const mica_op *op)
{
    size_t count = 0;
    *w = (operation_word){.word = {.name = op->name,
                                   .flags = op->ins == 0 ? SOURCE : 0,
                                   .build = mica_line_operation,
                                   .help = op->about,
                                   .op = op}};
    for (int i = 0; i < op->ins + op->optional_ins; i++)
        w->options[count++] = (word_option){
            .name = mica_operation_input(op, i),
            .kind = VALUE_VALUE,
            .offset = (unsigned)(offsetof(operation_line, in) + (size_t)i * sizeof(mica_value))};
    for (int f = 0; f < op->field_count && count < OPERATION_OPTIONS; f++)
        count += option_of(w, &w->options[count], &op->fields[f]);
    w->word.options = w->options;
    w->word.option_count = count;
}

/* ---- Reading ---- */

static mica_status read_floats(reader *r, const word_option *o, double *out, int *count, int most)
{
    bool list = mica_is_sign(r, '[');
    *count = 0;
    if (!list) {
        *count = 1;
        return mica_read_expression(r, out, false);
    }
    MICA_TRY(mica_next_token(r));
    while (!mica_is_sign(r, ']')) {
        if (*count == most)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s: more than %d numbers", o->name, most);
        MICA_TRY(mica_read_expression(r, &out[(*count)++], true));
        if (mica_is_sign(r, ','))
            MICA_TRY(mica_next_token(r));
        else if (!mica_is_sign(r, ']'))
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s: expected \",\" or \"]\", found %s", o->name,
                                mica_found_now(r).text);
    }
    return mica_next_token(r);
}

static void store(void *list, const mica_field *field, int number, double value)
{
    switch (field->kind) {
    case MICA_FIELD_INDEX:
        ((mica_index *)list)[number] = (mica_index)value;
        break;
    case MICA_FIELD_FLOAT:
        ((float *)list)[number] = (float)value;
        break;
    case MICA_FIELD_DOUBLE:
        ((double *)list)[number] = value;
        break;
    default:
        ((int *)list)[number] = (int)value;
    }
}

mica_status mica_read_numbers(reader *r, const line *l, const word_option *o)
{
    const mica_op *op = l->word->op;
    const mica_field *field = op->fields;
    operation_line *to = l->opts;
    token at = r->now;
    double number[OPERATION_NUMBERS];
    int count = 0;
    while (field->count == 0 || strcmp(field->name, o->name) != 0)
        field++;
    int most = field->count < OPERATION_NUMBERS ? field->count : OPERATION_NUMBERS;
    if (field->kind == MICA_FIELD_FLOAT || field->kind == MICA_FIELD_DOUBLE) {
        MICA_TRY(read_floats(r, o, number, &count, most));
    } else {
        mica_index sizes[MICA_MAX_RANK];
        MICA_TRY(mica_read_sizes(r, sizes, &count, o->name, INT32_MIN));
        for (int i = 0; i < count; i++)
            number[i] = (double)sizes[i];
    }
    if (count > most)
        return mica_fail_at(r, &at, MICA_ERR_FORMAT, "%s: expected up to %d numbers, found %d", o->name, most,
                            count);
    if (field > op->fields && field[-1].kind == MICA_FIELD_LENGTH)
        *(int *)(void *)(to->opts + field[-1].offset) = count;
    else if (field->count == 2 && count == 1)
        number[count++] = number[0]; /* one size stands for both */
    for (int i = 0; i < count; i++)
        store(to->opts + field->offset, field, i, number[i]);
    return MICA_OK;
}

mica_status mica_read_input(reader *r, line *l)
{
    const mica_op *op = l->word->op;
    operation_line *o = l->opts;
    const char *names[2 * MICA_OP_INS + OPERATION_OPTIONS];
    size_t count = 0;
    token name = r->now;
    char how[160];
    mica_value value = mica_value_called(r, &name);
    if (value == 0) {
        for (size_t i = 0; i < l->word->option_count; i++)
            names[count++] = l->word->options[i].name;
        for (const label *n = r->labels; n != NULL && count < sizeof names / sizeof names[0]; n = n->before)
            names[count++] = n->name;
        return mica_fail_at(r, &name, MICA_ERR_FORMAT, "%s: no option and no line above is called %s%s",
                            op->name, mica_found_now(r).text,
                            mica_guess_of(r, &name, names, count, sizeof names[0]).text);
    }
    mica_operation_usage(how, sizeof how, op);
    if (o->placed == op->ins + op->optional_ins)
        return mica_fail_at(r, &name, MICA_ERR_FORMAT, "%s takes no more values (\"%s\"), found %s", op->name,
                            how, mica_found_now(r).text);
    o->place[o->placed++] = value;
    return mica_next_token(r);
}

/* ---- Building ---- */

/* Inputs by name stay where they are; those by place fill the others in order. Where one fewer is given than must be
 * there, the first is the line above. */
static mica_status take_inputs(reader *r, const line *l, mica_value in[MICA_OP_INS])
{
    const mica_op *op = l->word->op;
    const operation_line *o = l->opts;
    int most = op->ins + op->optional_ins, open = 0, next = 0;
    memcpy(in, o->in, sizeof o->in);
    if (l->from && in[0] != 0)
        return mica_fail_at(r, &l->at, MICA_ERR_FORMAT, "%s: from and %s are the same input", op->name,
                            mica_operation_input(op, 0));
    if (in[0] == 0 && (l->from || is_open(op)))
        in[0] = l->x;
    for (int i = 0; i < op->ins; i++)
        open += in[i] == 0;
    if (op->ins > 0 && in[0] == 0 && o->placed < open)
        in[0] = l->x;
    for (int i = 0; i < most && next < o->placed; i++)
        if (in[i] == 0)
            in[i] = o->place[next++];
    char how[160];
    mica_operation_usage(how, sizeof how, op);
    if (next < o->placed)
        return mica_fail_at(r, &l->at, MICA_ERR_FORMAT, "%s takes %d values at most (\"%s\")", op->name, most,
                            how);
    for (int i = 0; i < op->ins; i++)
        if (in[i] == 0)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected %s of %s (\"%s\"), found %s",
                                mica_operation_input(op, i), op->name, how, mica_found_now(r).text);
    return MICA_OK;
}

/* What a loss that is no kind of the word "loss" says of the net. */
static void score(reader *r, const mica_value *in, int count)
{
    r->scored = true;
    r->info.output_value = in[0];
    r->info.task = MICA_TASK_REGRESSION;
    (void)mica_net_output(r->net, NULL, in[0]);
    if (count < 2 || in[1] == 0)
        return;
    const mica_value_info *target = &r->net->values[in[1] - 1];
    if (mica_is_integer(target->tensor.dtype))
        r->info.task = MICA_TASK_CLASSES;
    if (target->kind == MICA_BUFFER_INPUT && r->info.input != NULL &&
        strcmp(target->name, r->info.input) != 0)
        r->info.target = target->name;
}

mica_value mica_line_operation(reader *r, const line *l)
{
    const mica_op *op = l->word->op;
    operation_line *o = l->opts;
    mica_value in[MICA_OP_INS];
    int most = op->ins + op->optional_ins;
    bool loss = (op->flags & MICA_OP_LOSS) != 0;
    if (take_inputs(r, l, in) != MICA_OK)
        return 0;
    if (loss && !r->scored)
        score(r, in, most);
    if (loss && r->opts->inference)
        return in[0];
    mica_value y = mica_net_call(r->net, l->name, op, in, most, op->opts_bytes > 0 ? o->opts : NULL);
    return loss && y != 0 ? in[0] : y;
}

mica_status mica_label_outputs(reader *r, const line *l, mica_value y)
{
    const mica_op *op = l->word->op;
    if (op == NULL || op->outs < 2 || (op->flags & MICA_OP_LOSS) != 0)
        return MICA_OK;
    const mica_node *node = &r->net->nodes[r->net->values[y - 1].maker];
    for (int k = 0; k < op->outs; k++) {
        if (node->out[k] == NONE)
            continue;
        char name[200];
        (void)mica_format(name, sizeof name, "%.120s.%s", l->name, mica_operation_output(op, k));
        MICA_TRY(mica_add_label(r, name, node->out[k] + 1));
    }
    return MICA_OK;
}
