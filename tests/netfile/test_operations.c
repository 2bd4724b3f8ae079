/* Every operation of the list that can be a word of net files is one, with all its options, by its entry alone. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "netfile/operations.h"
#include "ops/entry_draw.h"
#include "test.h"

/* ---- Lines written from samples ---- */

typedef struct lines {
    char text[2048];
    size_t length;
} lines;

static void put(lines *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(lines *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(l->text + l->length, sizeof l->text - l->length, format, args);
    va_end(args);
    l->length += (size_t)length;
    REQUIRE(l->length < sizeof l->text);
}

static void put_number(lines *l, const mica_field *f, const char *at, int number)
{
    switch (f->kind) {
    case MICA_FIELD_INDEX:
        put(l, "%td", ((const mica_index *)(const void *)at)[number]);
        break;
    case MICA_FIELD_FLOAT:
        put(l, "%.9g", (double)((const float *)(const void *)at)[number]);
        break;
    case MICA_FIELD_DOUBLE:
        put(l, "%.17g", ((const double *)(const void *)at)[number]);
        break;
    default:
        put(l, "%d", ((const int *)(const void *)at)[number]);
    }
}

/* The word of a choice: number `which` of "constant|reflect". */
static void put_choice(lines *l, const char *words, int which)
{
    for (; which > 0; which--)
        words = strchr(words, '|') + 1;
    put(l, "%.*s", (int)strcspn(words, "|"), words);
}

static bool is_zero(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != 0)
            return false;
    return true;
}

static void put_list(lines *l, const mica_field *f, const char *opts, int count)
{
    put(l, " %s=[", f->name);
    for (int i = 0; i < count; i++) {
        put(l, i > 0 ? ", " : "%s", "");
        put_number(l, f, opts + f->offset, i);
    }
    put(l, "]");
}

static void put_option(lines *l, const mica_op *op, int number, const char *opts)
{
    const mica_field *f = &op->fields[number];
    const char *at = opts + f->offset;
    int chosen = 0; /* an option may be smaller than an int */
    if (f->kind != MICA_FIELD_BOOL)
        memcpy(&chosen, at, sizeof chosen);
    if (f->kind == MICA_FIELD_LENGTH)
        return;
    if (f->count > 0) {
        bool counted = number > 0 && f[-1].kind == MICA_FIELD_LENGTH;
        int count = counted ? *(const int *)(const void *)(opts + f[-1].offset) : f->count;
        size_t bytes = f->kind == MICA_FIELD_INDEX ? sizeof(mica_index) : sizeof(int);
        if (counted || !is_zero(at, bytes * (size_t)count))
            put_list(l, f, opts, count);
    } else if (f->kind == MICA_FIELD_BOOL) {
        put(l, "%s%s", *(const bool *)at ? " " : "", *(const bool *)at ? f->name : "");
    } else if (f->kind == MICA_FIELD_CHOICE || f->kind == MICA_FIELD_DTYPE ||
               f->kind == MICA_FIELD_ACTIVATION) {
        if (f->kind == MICA_FIELD_ACTIVATION && chosen == MICA_NO_ACTIVATION)
            return;
        put(l, " %s=", f->name);
        if (f->kind == MICA_FIELD_CHOICE)
            put_choice(l, f->about, chosen);
        else
            put(l, "%s",
                f->kind == MICA_FIELD_DTYPE ? mica_dtype_name((mica_dtype)chosen)
                                            : mica_netfile_activations[chosen - 1]);
    } else {
        put(l, " %s=", f->name);
        put_number(l, f, at, 0);
    }
}

/* False where a net file has no such inputs: they all begin with the batch. */
static bool put_inputs(lines *l, const entry_draw *d)
{
    for (int i = 0; i < d->sample.ins; i++) {
        const mica_tensor *t = &d->in[i];
        if (!d->given[i])
            continue;
        if (t->rank == 0 || t->dim[0] != d->in[0].dim[0] || !d->given[0])
            return false;
        put(l, "input in%d [", i);
        for (int k = 1; k < t->rank; k++)
            put(l, k > 1 ? ", %td" : "%td", t->dim[k]);
        put(l, "] %s\n", mica_dtype_name(t->dtype));
    }
    if (d->sample.ins == 0 || !d->given[0])
        put(l, "input unused [1]\n");
    return true;
}

/* Inputs by place where all up to them are there, else by name. */
static void put_call(lines *l, const entry_draw *d)
{
    const mica_op *op = d->op;
    bool open = op->names == NULL && op->optional_ins > 0;
    put(l, "%s%s", op->name, open ? " from=in0" : "");
    for (int i = open; i < d->sample.ins; i++)
        if (d->given[i] && i <= op->ins)
            put(l, " in%d", i);
        else if (d->given[i])
            put(l, " %s=in%d", mica_operation_input(op, i), i);
    for (int f = 0; f < op->field_count; f++)
        put_option(l, op, f, d->sample.opts);
    put(l, "\n");
}

/* Whether what the fields describe is the same; of a list, as many as there are. */
static bool same_options(const mica_op *op, const char *a, const char *b)
{
    static const size_t bytes[] = {
        [MICA_FIELD_INT] = sizeof(int),     [MICA_FIELD_INDEX] = sizeof(mica_index),
        [MICA_FIELD_FLOAT] = sizeof(float), [MICA_FIELD_DOUBLE] = sizeof(double),
        [MICA_FIELD_BOOL] = sizeof(bool),   [MICA_FIELD_ACTIVATION] = sizeof(int),
        [MICA_FIELD_DTYPE] = sizeof(int),   [MICA_FIELD_CHOICE] = sizeof(int),
        [MICA_FIELD_LENGTH] = sizeof(int),
    };
    for (int i = 0; i < op->field_count; i++) {
        const mica_field *f = &op->fields[i];
        size_t count = f->count > 0 ? (size_t)f->count : 1;
        if (i > 0 && f[-1].kind == MICA_FIELD_LENGTH)
            count = (size_t) * (const int *)(const void *)(b + f[-1].offset);
        if (memcmp(a + f->offset, b + f->offset, count * bytes[f->kind]) != 0)
            return false;
    }
    return true;
}

/* The file's last call is the sample's. */
static void check_call(const mica_net *net, const entry_draw *d, const char *text)
{
    const mica_op *op = d->op;
    const mica_node *node = &net->nodes[net->node_count - 1];
    CHECK_MSG(node->op == op, "%s\nis a call of %s", text, node->op->name);
    for (int i = 0; i < op->ins + op->optional_ins; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        bool given = i < d->sample.ins && d->given[i];
        CHECK_MSG(given ? node->in[i] != NONE && strcmp(net->values[node->in[i]].name, name) == 0
                        : node->in[i] == NONE,
                  "%s\ninput %d is another", text, i);
    }
    CHECK_MSG(op->opts_bytes == 0 || same_options(op, node->opts, d->sample.opts),
              "%s\nhas other options than the sample", text);
}

static bool try_draw(mica_context *ctx, const mica_op *op, uint64_t seed)
{
    entry_draw d;
    lines l = {.length = 0};
    entry_draw_make(&d, ctx, op, seed);
    bool fits = put_inputs(&l, &d);
    if (fits) {
        mica_net *net;
        put_call(&l, &d);
        mica_netfile_opts opts = {.batch = d.sample.ins > 0 && d.given[0] ? d.in[0].dim[0] : 1};
        CHECK_OK(ctx, mica_net_create(ctx, &net));
        if (CHECK_MSG(mica_netfile_build(net, NULL, l.text, &opts) == MICA_OK, "%s\n%s", l.text,
                      mica_error(ctx))) {
            check_call(net, &d, l.text);
            CHECK_MSG(mica_net_compile(net, NULL) == MICA_OK, "%s\n%s", l.text, mica_error(ctx));
        }
        mica_net_destroy(net);
    }
    entry_draw_free(&d);
    return fits;
}

TEST(netfile_operations_are_words)
{
    mica_context *ctx = test_context(1);
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        const mica_op *op = mica_netfile_operation(n);
        int tried = 0;
        if (op == NULL || entry_skipped(op))
            continue;
        for (uint64_t seed = 0; tried < 8 && seed < 2000; seed++)
            tried += try_draw(ctx, op, seed);
        CHECK_MSG(tried > 0, "%s: no sample fits a net file", op->name);
    }
}

TEST(netfile_operations_leave_out_what_no_file_can_say)
{
    static const char *const words[] = {"sub", "matmul", "sum", "clamp", "where", "gather", "split", "zeros"};
    static const char *const none[] = {"relu",   "dropout",  "relu_backward", "where_backward",
                                       "apply1", "generate", "lstm",          "nothing"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        CHECK_MSG(mica_find_operation(words[i], strlen(words[i])) != NONE, "%s is no word", words[i]);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK_MSG(mica_find_operation(none[i], strlen(none[i])) == NONE, "%s is a word", none[i]);
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        operation_word made;
        const mica_op *op = mica_netfile_operation(n);
        if (op == NULL)
            continue;
        mica_operation_word(&made, op);
        size_t fields = 0;
        for (int f = 0; f < op->field_count; f++)
            fields += op->fields[f].kind != MICA_FIELD_LENGTH;
        CHECK_MSG(made.word.option_count == (size_t)(op->ins + op->optional_ins) + fields,
                  "%s: not every input and field is an option", op->name);
    }
}

/* ---- Lines by hand ---- */

#define XY "input x [4, 6]\ninput y [4, 6]\n"

/* A net, and the inputs and shape of its last call. */
static const struct {
    const char *text, *inputs, *shape;
} cases[] = {
    {XY "sub x", "y x", "[2, 4, 6]"},
    {XY "sub x y", "x y", "[2, 4, 6]"},
    {XY "relu from=x\nsub y from=x", "x y", "[2, 4, 6]"},
    {XY "sub x a=y", "y x", "[2, 4, 6]"},
    {XY "sub b=x", "y x", "[2, 4, 6]"},
    {XY "sum axes=[1] keep", "y", "[2, 1, 6]"},
    {XY "sum axes=-1", "y", "[2, 4]"},
    {XY "mean", "y", "[]"},
    {XY "norm l1 axes=[1, 2]", "y", "[2]"},
    {XY "clamp low=0 high=1", "y", "[2, 4, 6]"},
    {XY "gt x mask name=m\nwhere m x y", "m x y", "[2, 4, 6]"},
    {XY "gt x mask\nwhere x y", "gt1 x y", "[2, 4, 6]"},
    {XY "matmul x transpose_b relu", "y x", "[2, 4, 4]"},
    {XY "stack x axis=1", "y x", "[2, 2, 4, 6]"},
    {XY "stack x x from=x axis=1", "x x x", "[2, 3, 4, 6]"},
    {XY "split count=2 axis=-1 name=s\nmul s.1 from=s.0", "s.0 s.1", "[2, 4, 3]"},
    {XY "split sizes=[1, -1] axis=1 name=s\nneg s.1", "s.1", "[2, 3, 6]"},
    {XY "zeros x", "x", "[2, 4, 6]"},
    {XY "zeros dims=[3, 5]", "", "[3, 5]"},
    {XY "copy cast dtype=f16", "y", "[2, 4, 6]"},
    {XY "unsqueeze 1\nmax_pool2d kernel=2\nabs max_pool2d1", "max_pool2d1", "[2, 1, 2, 3]"},
    {XY "block name=b {\nsplit count=2 axis=1 name=s\n}\nneg b.s.1", "b.s.1", "[2, 2, 6]"},
};

static mica_value called(const mica_net *net, const char *name, int *length)
{
    char text[64], *dot;
    *length = (int)strcspn(name, " ");
    snprintf(text, sizeof text, "%.*s", *length, name);
    int number = 0;
    dot = strrchr(text, '.');
    if (dot != NULL && dot[1] >= '0' && dot[1] <= '9') {
        number = dot[1] - '0';
        *dot = '\0';
    }
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        const char *name_of = v->layer != NONE ? net->layers[v->layer].name : v->name;
        if (strcmp(name_of, text) == 0 && v->number == number)
            return i + 1;
    }
    return 0;
}

TEST(netfile_operations_take_values_by_place_and_name)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_net *net;
        CHECK_OK(ctx, mica_net_create(ctx, &net));
        if (CHECK_MSG(mica_netfile_build(net, NULL, cases[i].text, &(mica_netfile_opts){.batch = 2}) ==
                          MICA_OK,
                      "%s: %s", cases[i].text, mica_error(ctx))) {
            const mica_node *node = &net->nodes[net->node_count - 1];
            int k = 0, length = 0;
            for (const char *name = cases[i].inputs; *name != '\0';
                 name += length + (name[length] == ' '), k++) {
                mica_value value = called(net, name, &length);
                CHECK_MSG(value != 0 && node->in[k] == value - 1, "%s: input %d is not %s", cases[i].text, k,
                          name);
            }
            CHECK_MSG(k == node->ins || node->in[k] == NONE, "%s: more inputs", cases[i].text);
            const mica_tensor *y = &net->values[node->out[0]].tensor;
            CHECK_MSG(strcmp(MICA_SHAPE(y), cases[i].shape) == 0, "%s: %s", cases[i].text, MICA_SHAPE(y));
        }
        mica_net_destroy(net);
    }
}

TEST(netfile_operations_that_are_losses_train)
{
    mica_context *ctx = test_context(1);
    static const char text[] = "input x [3]\ninput t [2]\ndense 2 from=x name=y\nmse_loss t\n";
    for (int inference = 0; inference < 2; inference++) {
        mica_net *net;
        mica_netfile_info info;
        CHECK_OK(ctx, mica_net_create(ctx, &net));
        CHECK_OK(ctx,
                 mica_netfile_build(net, &info, text, &(mica_netfile_opts){.inference = inference != 0}));
        CHECK(strcmp(info.output, "y") == 0 && info.task == MICA_TASK_REGRESSION &&
              strcmp(info.target, "t") == 0);
        CHECK(mica_net_layers(net) == 2 - inference);
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = inference == 0}));
        mica_net_destroy(net);
    }
}
