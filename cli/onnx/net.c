#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <mica/mica.h>

#include "cli/model/take.h"
#include "cli/onnx/given.h"
#include "cli/onnx/net.h"
#include "cli/onnx/text.h"
#include "io/file.h"
#include "net/net.h"
#include "onnx/model.h"

/* ---- Sizes ---- */

/* An input whose batch has no name either: the shape of it, if the other sizes are known. Such a net runs at this size
 * alone. */
static void set_shape(given *g, int number, mica_index batch, const mica_netfile_opts *opts)
{
    const mica_onnx_value *in = &g->input[number];
    mica_index dims[MICA_MAX_RANK] = {batch};
    bool sample = number == 0 && opts->sample_rank == in->rank - 1;
    for (int k = 1; k < in->rank; k++) {
        dims[k] = in->dim[k] < 0 && sample ? opts->sample[k - 1] : in->dim[k];
        if (dims[k] < 0)
            return;
    }
    if (in->dtype != MICA_DTYPE_COUNT &&
        mica_tensor_init(g->ctx, &g->value[number], NULL, in->dtype, in->rank, dims) == MICA_OK)
        g->how[number] = GIVEN_SHAPE;
}

/* The batch of the first input where --set gives it: data come in batches of another size. -1: it does not. */
static mica_index batch_set(const given *g)
{
    const mica_onnx_value *in = &g->input[0];
    if (g->count == 0 || g->how[0] == GIVEN_VALUE || in->rank == 0)
        return -1;
    if (g->how[0] == GIVEN_SHAPE)
        return g->value[0].rank > 0 ? g->value[0].dim[0] : -1;
    return in->rank > 0 ? given_size(g, in->symbol[0]) : -1;
}

/* A size of the samples: what is made of the net has to know it. */
static void set_sampled(given *g, const char *symbol, mica_index size)
{
    given_set_size(g, symbol, size);
    if (g->sampled_count < OPTION_LIST_MOST && strpbrk(symbol, "=\n") == NULL &&
        (size_t)snprintf(g->sampled[g->sampled_count], sizeof g->sampled[0], "%s=%td", symbol, size) <
            sizeof g->sampled[0])
        g->sampled_count++;
}

/* Sizes that are open: the first axis is the batch, the others are those of the data's samples. */
static int set_sizes(given *g, const verb *v, const mica_netfile_opts *opts, const char *path,
                     mica_index usual)
{
    mica_index other = batch_set(g), own = g->count > 0 && g->input[0].rank > 0 ? g->input[0].dim[0] : -1;
    mica_index batch = opts->batch > 0 ? opts->batch : other >= 0 ? other : own >= 0 ? own : usual;
    if (other >= 0 && other != batch)
        return usage_error(v, "--set gives %s a batch of %td, but the batch size is %td", g->input[0].name,
                           other, batch);
    for (int i = 0; i < g->count; i++) {
        const mica_onnx_value *in = &g->input[i];
        if (g->how[i] != GIVEN_NOTHING || in->rank < 1)
            continue;
        if (i == 0 && in->dim[0] >= 0 && in->dim[0] != batch)
            return verb_error(
                v, EXIT_FILE,
                "%s takes batches of %td, which is fixed in the model: use --batch %td, or export it "
                "with a dynamic batch size",
                path, in->dim[0], in->dim[0]);
        if (in->dim[0] < 0 && in->symbol[0] == NULL)
            set_shape(g, i, batch, opts);
        else if (in->dim[0] < 0)
            given_set_size(g, in->symbol[0], batch);
        for (int k = 1; k < in->rank && i == 0 && opts->sample_rank == in->rank - 1; k++)
            if (in->dim[k] < 0 && in->symbol[k] != NULL && given_size(g, in->symbol[k]) < 0)
                set_sampled(g, in->symbol[k], opts->sample[k - 1]);
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
static mica_status add_ends(mica_net *net, mica_netfile_info *info, const given *g, mica_task task,
                            const mica_netfile_opts *opts)
{
    const char *name;
    mica_tensor t;
    mica_value y = first_output(net, g->model), logits = 0;
    *info = (mica_netfile_info){.task = task};
    if (task != MICA_TASK_NONE)
        y = as_rows(net, y);
    for (int i = 0; i < mica_net_inputs(net) && mica_net_input_tensor(net, &name, &t, i) == MICA_OK; i++)
        *(i == 0 ? &info->input : &info->other_input) = name;
    if (y == 0 || mica_net_shape(net, &t, y) != MICA_OK)
        return mica_fail(net->ctx, MICA_ERR_FORMAT, "the model has no output that Mica can use");
    if (task == MICA_TASK_CLASSES)
        logits = before(net, y, "softmax");
    else if (task == MICA_TASK_BINARY)
        logits = before(net, y, "sigmoid");
    info->logits = logits != 0 || task == MICA_TASK_CLASSES;
    info->output_value = logits != 0 ? logits : y;
    info->classes = t.rank > 0 ? t.dim[t.rank - 1] : 1;
    (void)mica_net_output(net, NULL, info->output_value);
    if (!opts->inference && task != MICA_TASK_NONE)
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

/* What there is to build, and how. */
typedef struct building {
    const verb *v;
    mica_context *ctx;
    const char *path; /* of the model */
    const char *file; /* the same as its text has it */
    mica_task task;
    const option_list *set;
    const mica_netfile_opts *opts;
    bool learns;      /* the weights do */
    mica_index usual; /* the batch where nothing else says what it is */
} building;

static int build_from(mica_net **out, mica_netfile_info *info, const building *b, given *g)
{
    int code = given_sets(g, b->v, b->set);
    if (code == EXIT_OK)
        code = set_sizes(g, b->v, b->opts, b->path, b->usual > 0 ? b->usual : 1);
    if (code != EXIT_OK)
        return code;
    if (given_build(g, out, b->learns) != MICA_OK)
        return given_build_failed(g, b->v, b->path);
    mica_net_at_end(*out, close_model, g);
    if (add_ends(*out, info, g, b->task, b->opts) != MICA_OK)
        return verb_error(b->v, EXIT_FILE, "%s: %s", b->path, mica_error(b->ctx));
    return EXIT_OK;
}

/* With the sizes that data have told. A model whose weights lie in other files is not copied, but found where it is. */
static char *text_of(const building *b, const given *g)
{
    char where[8192];
    option_list all = *b->set;
    for (int i = 0; i < g->sampled_count && all.count < OPTION_LIST_MOST; i++)
        all.item[all.count++] = g->sampled[i];
    bool apart = g->model->mapped != NULL && absolute_path(where, sizeof where, b->path);
    return onnx_text_print(apart ? where : b->file, b->task, &all);
}

/* `text`: of a checkpoint; NULL: it is made. */
static int build(mica_net **out, mica_netfile_info *info, const building *b, const char *text)
{
    *out = NULL;
    given *g = take(1, sizeof *g);
    int code = given_open(g, b->ctx, b->path) == MICA_OK ? EXIT_OK : verb_failed(b->v, b->ctx);
    if (code == EXIT_OK)
        code = build_from(out, info, b, g);
    if (code == EXIT_OK) {
        char *made = text == NULL ? text_of(b, g) : NULL;
        info->text = made != NULL ? made : text;
        if (!take_into_net(*out, &info->text))
            code = verb_failed(b->v, b->ctx);
        free(made);
    }
    if (*out == NULL)
        close_model(g); /* otherwise the net does */
    if (code != EXIT_OK) {
        mica_net_destroy(*out);
        *out = NULL;
    }
    return code;
}

static const mica_netfile_opts no_opts;
static const option_list no_set;

int onnx_text_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                    const char *text, const char *checkpoint, const mica_netfile_opts *opts)
{
    onnx_text s;
    char path[8192];
    *out = NULL;
    int code = onnx_text_read(&s, v, text);
    if (code != EXIT_OK)
        return code;
    if (!onnx_text_path(path, sizeof path, &s, checkpoint))
        code = verb_error(v, EXIT_FILE, "%s: the path of its model is too long", checkpoint);
    else if (!mica_file_exists(path))
        code = verb_error(v, EXIT_FILE, "%s was made from an ONNX model, which it needs: there is no %s",
                          checkpoint, path);
    if (code == EXIT_OK)
        code = build(out, info,
                     &(building){.v = v,
                                 .ctx = ctx,
                                 .path = path,
                                 .task = s.task,
                                 .set = &s.set,
                                 .opts = opts != NULL ? opts : &no_opts,
                                 .learns = true},
                     text);
    free(s.lines);
    return code;
}

int onnx_train_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                     const char *path, mica_task task, const option_list *set, const mica_netfile_opts *opts)
{
    building b = {.v = v,
                  .ctx = ctx,
                  .path = path,
                  .file = ONNX_SOURCE,
                  .task = task,
                  .set = set != NULL ? set : &no_set,
                  .opts = opts != NULL ? opts : &no_opts,
                  .learns = true,
                  .usual = 32};
    return build(out, info, &b, NULL);
}

int onnx_run_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                   const char *path, const option_list *set, const mica_netfile_opts *opts)
{
    building b = {.v = v,
                  .ctx = ctx,
                  .path = path,
                  .file = path,
                  .set = set != NULL ? set : &no_set,
                  .opts = opts != NULL ? opts : &no_opts};
    return build(out, info, &b, NULL);
}

bool onnx_sizes_fixed(const mica_net *net) { return net->sizes_fixed != NULL; }

mica_index onnx_batch_of(mica_context *ctx, const char *path)
{
    mica_onnx *model;
    mica_onnx_value in;
    if (mica_onnx_open(ctx, &model, path) != MICA_OK)
        return 0;
    bool fixed = mica_onnx_inputs(model) > 0 && mica_onnx_input(model, &in, 0) == MICA_OK && in.rank > 0 &&
                 in.dim[0] > 0;
    mica_index batch = fixed ? in.dim[0] : 0;
    mica_onnx_close(model);
    return batch;
}

/* ---- The copy beside a checkpoint ---- */

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* The model may be mapped from the very file that is replaced: it is as long as that is open. */
static mica_status write_copy(mica_context *ctx, const char *path, const mica_onnx *model)
{
    mica_new_file *file = take(1, sizeof *file);
    mica_status status = mica_new_file_begin(ctx, file, path);
    if (status == MICA_OK) {
        status = mica_new_file_write(ctx, file, model->bytes, model->size);
        if (status == MICA_OK)
            status = mica_new_file_commit(ctx, file);
        else
            mica_new_file_abandon(file);
    }
    free(file);
    return status;
}

int onnx_keep_source(const mica_net *net, const verb *v, const char *text, const char *checkpoint)
{
    const mica_onnx *model = onnx_of(net);
    onnx_text s;
    char path[8192];
    if (model == NULL)
        return EXIT_OK;
    int code = onnx_text_read(&s, v, text);
    if (code != EXIT_OK)
        return code;
    bool copies = onnx_text_has_copy(&s), fits = onnx_text_path(path, sizeof path, &s, checkpoint);
    free(s.lines);
    if (!copies)
        return EXIT_OK;
    if (!fits)
        return verb_error(v, EXIT_FAILED, "%s: the path of its model is too long", checkpoint);
    if (same_file(path, model->path))
        return EXIT_OK; /* resumed: the net is of that very copy */
    return write_copy(model->ctx, path, model) == MICA_OK
               ? EXIT_OK
               : verb_error(v, EXIT_FAILED, "%s", mica_error(model->ctx));
}
