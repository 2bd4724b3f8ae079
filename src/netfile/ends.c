/* Inputs, outputs and losses of a net, and the task they imply. */
#include <string.h>

#include "base/format.h"
#include "netfile/words.h"
#include "tensor/tensor.h"

/* ---- Inputs ---- */

static void print_list(char *out, size_t size, const size_list *list)
{
    size_t used = (size_t)mica_format(out, size, "[");
    for (int i = 0; i < list->count && used < size; i++)
        used += (size_t)mica_format(out + used, size - used, "%s%td", i > 0 ? ", " : "", list->size[i]);
    if (used < size)
        mica_format(out + used, size - used, "]");
}

static double elements(const mica_index *size, int count)
{
    double product = 1.0;
    for (int i = 0; i < count; i++)
        product *= (double)size[i];
    return product;
}

/* Gives the first input the shape of the data's samples, where that is another and fits. */
static bool take_sample(reader *r, const line *l, size_list *shape)
{
    const mica_netfile_opts *o = r->opts;
    size_list sample = {.count = o->sample_rank};
    memcpy(sample.size, o->sample, sizeof sample.size);
    double count = elements(sample.size, sample.count);
    if (sample.count == 0 || r->info.input != NULL || count == elements(shape->size, shape->count))
        return true;
    size_list fitted = *shape;
    int more = shape->count - sample.count;
    if (shape->count == 1 && count <= INT32_MAX) {
        fitted.size[0] = (mica_index)count;
    } else if (more == 0 || (more == 1 && shape->size[0] == 1)) {
        memcpy(fitted.size + more, sample.size, (size_t)sample.count * sizeof sample.size[0]);
    } else {
        char want[128], got[128];
        print_list(want, sizeof want, shape);
        print_list(got, sizeof got, &sample);
        (void)mica_fail_at(r, &l->list, MICA_ERR_SHAPE,
                           "the data has samples %s, which is not a valid shape for %s", got, want);
        return false;
    }
    *shape = fitted;
    edit *e = &r->edits[r->edit_count++];
    *e = (edit){.at = l->list.at, .length = l->list_end - l->list.at};
    print_list(e->text, sizeof e->text, shape);
    return true;
}

mica_value mica_line_input(reader *r, const line *l)
{
    input_line *o = l->opts;
    mica_index dims[MICA_MAX_RANK] = {r->opts->batch > 0 ? r->opts->batch : 1};
    if (!take_sample(r, l, &o->shape))
        return 0;
    if (o->shape.count >= MICA_MAX_RANK)
        return mica_net_refuse(r->net, MICA_ERR_SHAPE, "a shape of more than %d axes", MICA_MAX_RANK - 1);
    memcpy(dims + 1, o->shape.size, (size_t)o->shape.count * sizeof dims[0]);
    bool tokens = mica_is_integer((mica_dtype)o->dtype) && o->shape.count == 1;
    if (tokens) /* a text may be shorter than planned */
        dims[1] = mica_net_size(r->net, r->info.input == NULL ? "length" : o->name, dims[1]);
    mica_value x = mica_net_input(r->net, o->name, (mica_dtype)o->dtype, o->shape.count + 1, dims);
    if (x != 0 && r->info.input == NULL) {
        r->info.input = r->net->values[x - 1].name;
        r->tokens = tokens;
    }
    return x;
}

/* ---- Outputs ---- */

mica_value mica_line_output(reader *r, const line *l)
{
    const output_line *o = l->opts;
    if (mica_net_output(r->net, o->name, l->x) != MICA_OK)
        return 0;
    if (!r->scored)
        r->info.output_value = l->x;
    return l->x;
}

/* ---- Losses ---- */

enum { CROSS_ENTROPY, CROSS_ENTROPY_PROBS, MSE, L1, HUBER, BCE, BCE_LOGITS }; /* as mica_netfile_losses */

typedef mica_value loss_builder(mica_net *net, mica_value x, mica_value target,
                                const mica_net_loss_opts *opts);
static loss_builder *const builders[] = {
    mica_net_cross_entropy, mica_net_cross_entropy_probs, mica_net_mse, mica_net_l1, mica_net_huber,
    mica_net_bce,           mica_net_bce_logits};

/* What the first loss says of the net. */
static void score(reader *r, mica_value x, const mica_tensor *shape, const loss_line *o)
{
    mica_netfile_info *info = &r->info;
    bool classes = o->kind == CROSS_ENTROPY || o->kind == CROSS_ENTROPY_PROBS;
    r->scored = true;
    info->output_value = x;
    info->logits = o->kind == CROSS_ENTROPY || o->kind == BCE_LOGITS;
    if (classes && r->tokens && shape->rank == 3) {
        info->task = MICA_TASK_TEXT;
        info->length = shape->dim[1];
    } else if (classes) {
        info->task = MICA_TASK_CLASSES;
    } else {
        info->task = o->kind == BCE || o->kind == BCE_LOGITS ? MICA_TASK_BINARY : MICA_TASK_REGRESSION;
    }
}

/* The input that the loss compares with: class numbers without the last axis, or numbers like x. */
static mica_value make_target(reader *r, const line *l, const mica_tensor *shape, const loss_line *o)
{
    bool numbers = (o->kind == CROSS_ENTROPY || o->kind == CROSS_ENTROPY_PROBS) && !o->one_hot &&
                   shape->rank > 0;
    const char *number = l->name; /* of "loss2" */
    while (*number != '\0' && (*number < '0' || *number > '9'))
        number++;
    const char *name = mica_net_text(r->net, "target%s", l->named ? "" : number);
    mica_index dims[MICA_MAX_RANK]; /* as x has them in a step, which may be smaller */
    for (int i = 0; i < shape->rank - numbers; i++)
        dims[i] = mica_net_dim(r->net, l->x, i);
    return name != NULL
               ? mica_net_input(r->net, name, numbers ? MICA_I32 : MICA_F32, shape->rank - numbers, dims)
               : 0;
}

mica_value mica_line_loss(reader *r, const line *l)
{
    loss_line *o = l->opts;
    mica_tensor shape;
    if (mica_net_shape(r->net, &shape, l->x) != MICA_OK)
        return 0;
    bool first = !r->scored;
    if (first) {
        score(r, l->x, &shape, o);
        (void)mica_net_output(r->net, NULL, l->x);
    }
    if (r->opts->inference)
        return l->x;
    for (size_t i = 0; i < l->word->option_count; i++)
        if (strcmp(l->word->options[i].name, "ignore") == 0 && (l->given & 1u << i) != 0)
            o->loss.ignore = true;
    o->loss.ignore_index = o->ignore;
    if (first && r->opts->class_weights != NULL) {
        if (o->kind != CROSS_ENTROPY && o->kind != CROSS_ENTROPY_PROBS)
            return mica_net_refuse(r->net, MICA_ERR_ARGUMENT,
                                   "class weights are for cross-entropies, not for %s",
                                   mica_netfile_losses[o->kind]);
        o->loss.class_weights = r->opts->class_weights;
        o->loss.class_weight_count = r->opts->class_weight_count;
    }
    bool made = o->target == 0;
    if (made)
        o->target = make_target(r, l, &shape, o);
    if (o->target != 0 && first) {
        const mica_value_info *target = &r->net->values[o->target - 1];
        if (target->kind == MICA_BUFFER_INPUT && strcmp(target->name, r->info.input) != 0)
            r->info.target = target->name;
    }
    return builders[o->kind](r->net, l->x, o->target, &o->loss) != 0 ? l->x : 0;
}
