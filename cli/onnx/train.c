#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mica/mica.h>

#include "cli/model/take.h"
#include "cli/onnx/given.h"
#include "cli/onnx/train.h"
#include "net/net.h"
#include "onnx/model.h"

#define FIRST_WORD "onnx "
#define MOST_TEXT  65536

/* ---- Text ---- */

static const struct {
    const char *name;
    mica_task task;
} tasks[] = {{"none", MICA_TASK_NONE},
             {"classes", MICA_TASK_CLASSES},
             {"regression", MICA_TASK_REGRESSION},
             {"binary", MICA_TASK_BINARY}};
enum { TASKS = sizeof tasks / sizeof tasks[0] };

bool is_onnx_text(const char *text) { return strncmp(text, FIRST_WORD, strlen(FIRST_WORD)) == 0; }

/* To be given to free(). */
static char *text_of(const char *path, mica_task task, const option_list *set)
{
    char *text = take(MOST_TEXT, 1);
    const char *name = tasks[0].name;
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].task == task)
            name = tasks[i].name;
    size_t at = (size_t)snprintf(text, MOST_TEXT, FIRST_WORD "%.4096s\ntask %s\n", path, name);
    for (size_t i = 0; set != NULL && i < set->count; i++)
        at += (size_t)snprintf(text + at, MOST_TEXT - at, "set %.1500s\n", set->item[i]);
    return text;
}

/* A text, taken apart. */
typedef struct source {
    char *text; /* a copy, its lines cut */
    const char *file;
    mica_task task;
    option_list set;
} source;

/* One line; false: it is none that there is. */
static bool read_line(source *s, char *line)
{
    if (strncmp(line, FIRST_WORD, strlen(FIRST_WORD)) == 0 && s->file == NULL) {
        s->file = line + strlen(FIRST_WORD);
        return *s->file != '\0';
    }
    if (strncmp(line, "set ", 4) == 0 && s->set.count < OPTION_LIST_MOST) {
        s->set.item[s->set.count++] = line + 4;
        return true;
    }
    for (int i = 0; i < TASKS; i++)
        if (strncmp(line, "task ", 5) == 0 && strcmp(line + 5, tasks[i].name) == 0) {
            s->task = tasks[i].task;
            return true;
        }
    return false;
}

static int read_text(source *s, const verb *v, const char *text)
{
    *s = (source){.text = take_text(text)};
    for (char *line = s->text, *next; line != NULL && *line != '\0'; line = next) {
        char *end = strchr(line, '\n');
        next = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        if (!read_line(s, line)) {
            int code = verb_error(v, EXIT_FILE,
                                  "the text of an ONNX net has a line \"%.80s\": expected onnx, task or set",
                                  line);
            free(s->text);
            s->text = NULL;
            return code;
        }
    }
    return EXIT_OK;
}

/* ---- Sizes ---- */

static bool is_set(const given *g, const char *symbol)
{
    for (int i = 0; i < g->symbols; i++)
        if (strcmp(g->symbol[i].name, symbol) == 0)
            return true;
    return false;
}

static void set_size(given *g, const char *symbol, mica_index size)
{
    if (symbol != NULL && !is_set(g, symbol) && g->symbols < OPTION_LIST_MOST)
        g->symbol[g->symbols++] = (mica_onnx_set){.name = symbol, .size = size};
}

/* Sizes that are open: the first axis is the batch, the others are those of the data's samples. */
static int set_sizes(given *g, const verb *v, const mica_netfile_opts *opts, const char *path)
{
    mica_index batch = opts->batch > 0 ? opts->batch : 1;
    for (int i = 0; i < g->count; i++) {
        const mica_onnx_value *in = &g->input[i];
        if (g->how[i] != GIVEN_NOTHING || in->rank < 1)
            continue;
        if (i == 0 && in->dim[0] >= 0 && in->dim[0] != batch)
            return verb_error(
                v, EXIT_FILE,
                "%s takes batches of %td, which is written into the model: --batch %td, or export it "
                "with a batch that is left open",
                path, in->dim[0], in->dim[0]);
        set_size(g, in->symbol[0], batch);
        for (int k = 1; k < in->rank && i == 0 && opts->sample_rank == in->rank - 1; k++)
            if (in->dim[k] < 0)
                set_size(g, in->symbol[k], opts->sample[k - 1]);
    }
    return EXIT_OK;
}

/* ---- Ends ---- */

/* What made a value, if that is this operation along the last axis: its input. 0: something else did. */
static mica_value before(const mica_net *net, mica_value value, const char *op)
{
    int maker = net->values[value - 1].maker;
    if (maker == NONE || strcmp(net->nodes[maker].op->name, op) != 0 || net->nodes[maker].in[0] == NONE)
        return 0;
    const mica_axis_opts *opts = net->nodes[maker].opts;
    bool last = opts == NULL || opts->axis == -1 || opts->axis == net->values[value - 1].tensor.rank - 1;
    return strcmp(op, "softmax") != 0 || last ? net->nodes[maker].in[0] + 1 : 0;
}

/* The value of the model's first output. 0: there is none. */
static mica_value first_output(const mica_net *net, const mica_onnx *model)
{
    mica_onnx_value v;
    if (mica_onnx_output(model, &v, 0) != MICA_OK)
        return 0;
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].name != NULL && strcmp(net->values[i].name, v.name) == 0)
            return i + 1;
    for (int i = 0; i < net->layer_count; i++)
        if (net->layers[i].output != 0 && strcmp(net->layers[i].name, v.name) == 0)
            return net->layers[i].output;
    return 0;
}

/* [N, C, 1, 1] becomes [N, C]. */
static mica_value as_rows(mica_net *net, mica_value x)
{
    mica_tensor shape;
    if (mica_net_shape(net, &shape, x) != MICA_OK || shape.rank <= 2)
        return x;
    for (int i = 2; i < shape.rank; i++)
        if (shape.dim[i] != 1)
            return x;
    return mica_net_op(net, NULL, "reshape", &x, 1, &(mica_shape_opts){.rank = 2, .dims = {0, shape.dim[1]}});
}

static mica_value make_target(mica_net *net, mica_value x, bool classes)
{
    mica_tensor shape;
    mica_index dims[MICA_MAX_RANK];
    if (mica_net_shape(net, &shape, x) != MICA_OK)
        return 0;
    int rank = shape.rank - (classes && shape.rank > 0);
    for (int i = 0; i < rank; i++)
        dims[i] = mica_net_dim(net, x, i);
    return mica_net_input(net, "target", classes ? MICA_I32 : MICA_F32, rank, dims);
}

static void add_loss(mica_net *net, mica_netfile_info *info, const mica_netfile_opts *opts)
{
    mica_value x = info->output_value, target = make_target(net, x, info->task == MICA_TASK_CLASSES);
    mica_net_loss_opts loss = {.class_weights = opts->class_weights,
                               .class_weight_count = opts->class_weight_count};
    if (target == 0)
        return;
    info->target = net->values[target - 1].name;
    if (info->task == MICA_TASK_CLASSES)
        (void)mica_net_cross_entropy(net, x, target, &loss);
    else if (info->task == MICA_TASK_BINARY)
        (void)(info->logits ? mica_net_bce_logits : mica_net_bce)(net, x, target, NULL);
    else
        (void)mica_net_mse(net, x, target, NULL);
}

/* What the net takes and gives; and its loss. A softmax at the end belongs to the loss, which is exact without it. */
static mica_status add_ends(mica_net *net, mica_netfile_info *info, const given *g, const source *s,
                            const mica_netfile_opts *opts)
{
    const char *name;
    mica_tensor t;
    mica_value y = as_rows(net, first_output(net, g->model)), logits = 0;
    *info = (mica_netfile_info){.task = s->task};
    for (int i = 0; i < mica_net_inputs(net) && mica_net_input_tensor(net, &name, &t, i) == MICA_OK; i++)
        *(i == 0 ? &info->input : &info->other_input) = name;
    if (y == 0 || mica_net_shape(net, &t, y) != MICA_OK)
        return mica_fail(net->ctx, MICA_ERR_FORMAT, "the model has no output that a net could have");
    if (s->task == MICA_TASK_CLASSES)
        logits = before(net, y, "softmax");
    else if (s->task == MICA_TASK_BINARY)
        logits = before(net, y, "sigmoid");
    info->logits = logits != 0 || s->task == MICA_TASK_CLASSES;
    info->output_value = logits != 0 ? logits : y;
    info->classes = t.rank > 0 ? t.dim[t.rank - 1] : 1;
    (void)mica_net_output(net, NULL, info->output_value);
    if (!opts->inference && s->task != MICA_TASK_NONE)
        add_loss(net, info, opts);
    info->output = mica_net_value_name(net, info->output_value - 1);
    return mica_net_status(net);
}

/* ---- All ---- */

static void close_model(void *user)
{
    given *g = user;
    given_close(g);
    free(g);
}

mica_onnx *onnx_of(const mica_net *net)
{
    return net->at_end == close_model ? ((const given *)net->at_end_user)->model : NULL;
}

static int build_from(mica_net **out, mica_netfile_info *info, const verb *v, given *g, const source *s,
                      const char *path, const mica_netfile_opts *opts)
{
    int code = given_sets(g, v, &s->set);
    if (code == EXIT_OK)
        code = set_sizes(g, v, opts, path);
    if (code != EXIT_OK)
        return code;
    if (given_build(g, out, true) != MICA_OK)
        return given_build_failed(g, v, path);
    mica_net_at_end(*out, close_model, g);
    if (add_ends(*out, info, g, s, opts) != MICA_OK)
        return verb_error(v, EXIT_FILE, "%s: %s", path, mica_error(g->ctx));
    return EXIT_OK;
}

int onnx_text_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                    const char *text, const char *path, const mica_netfile_opts *opts)
{
    static const mica_netfile_opts none;
    source s;
    *out = NULL;
    int code = read_text(&s, v, text);
    if (code != EXIT_OK)
        return code;
    given *g = take(1, sizeof *g);
    code = given_open(g, ctx, path) == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
    if (code == EXIT_OK)
        code = build_from(out, info, v, g, &s, path, opts != NULL ? opts : &none);
    if (code == EXIT_OK)
        info->text = mica_net_text(*out, "%s", text);
    if (code == EXIT_OK && info->text == NULL)
        code = verb_failed(v, ctx);
    if (*out == NULL)
        close_model(g); /* otherwise the net does */
    if (code != EXIT_OK) {
        mica_net_destroy(*out);
        *out = NULL;
    }
    free(s.text);
    return code;
}

int onnx_text_build_beside(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                           const char *text, const char *checkpoint, const mica_netfile_opts *opts)
{
    source s;
    char path[8192];
    *out = NULL;
    int code = read_text(&s, v, text);
    if (code != EXIT_OK)
        return code;
    const char *slash = strrchr(checkpoint, '/');
    bool beside = s.file[0] != '/' && slash != NULL;
    int length = snprintf(path, sizeof path, "%.*s%s", beside ? (int)(slash - checkpoint) + 1 : 0, checkpoint,
                          s.file);
    free(s.text);
    if (length < 0 || (size_t)length >= sizeof path)
        return verb_error(v, EXIT_FILE, "%s: the path of its model is too long", checkpoint);
    return onnx_text_build(out, info, v, ctx, text, path, opts);
}

static bool absolute_path(char *out, size_t size, const char *path)
{
    char here[4096] = "";
    if (path[0] != '/' && getcwd(here, sizeof here) == NULL)
        return false;
    int length = snprintf(out, size, "%s%s%s", here, path[0] != '/' ? "/" : "", path);
    return length > 0 && (size_t)length < size;
}

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* A model whose weights lie in other files is not copied, but found where it is. */
int onnx_train_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                     const char *path, mica_task task, const option_list *set, const mica_netfile_opts *opts)
{
    char where[4096], *text = text_of(ONNX_SOURCE, task, set);
    int code = onnx_text_build(out, info, v, ctx, text, path, opts);
    if (code == EXIT_OK && onnx_of(*out)->mapped != NULL && absolute_path(where, sizeof where, path)) {
        free(text);
        text = text_of(where, task, set);
        info->text = mica_net_text(*out, "%s", text);
    }
    free(text);
    return code;
}

static bool write_whole(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    bool good = file != NULL && fwrite(bytes, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0)
        good = false;
    return good;
}

int onnx_keep_source(const mica_net *net, const verb *v, const char *text, const char *folder)
{
    const mica_onnx *model = onnx_of(net);
    char path[4096];
    if (model == NULL || strncmp(text, FIRST_WORD ONNX_SOURCE "\n", strlen(FIRST_WORD ONNX_SOURCE "\n")) != 0)
        return EXIT_OK;
    int length = snprintf(path, sizeof path, "%s/%s", folder, ONNX_SOURCE);
    if (length < 0 || (size_t)length >= sizeof path)
        return verb_error(v, EXIT_FAILED, "the path of the folder %s is too long", folder);
    if (same_file(path, model->path))
        return EXIT_OK; /* resumed: the net is of that very copy */
    if (write_whole(path, model->bytes, model->size))
        return EXIT_OK;
    return verb_error(v, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
}
