/* Nets and data side by side. */
#include "cli/model/match.h"

#include <string.h>

#include "base/context.h"
#include "cli/onnx/net.h"
#include "cli/picture/text.h"

static short_text shape_of(const mica_tensor *t) { return shape_text(t->dtype, t->rank, t->dim); }

static size_t elements_each(const mica_tensor *t)
{
    return t->rank > 0 && t->dim[0] > 0 ? mica_tensor_count(t) / (size_t)t->dim[0] : 0;
}

/* The shape of one sample: without axis 0. */
static short_text sample_text(const mica_tensor *t)
{
    return shape_text(t->dtype, t->rank > 0 ? t->rank - 1 : 0, t->dim + 1);
}

/* The sizes of a sample other than 1. How many. */
static int sizes_of(mica_index *out, const mica_tensor *t)
{
    int count = 0;
    for (int i = 1; i < t->rank; i++)
        if (t->dim[i] != 1)
            out[count++] = t->dim[i];
    return count;
}

int sample_match(const verb *v, const mica_tensor *wanted, const char *what, const mica_tensor *given,
                 const char *from)
{
    mica_index a[MICA_MAX_RANK], b[MICA_MAX_RANK];
    if (elements_each(given) != elements_each(wanted))
        return verb_error(v, EXIT_FILE, "the input of %s takes %zu values, a sample of %s has %zu: %s and %s",
                          what, elements_each(wanted), from, elements_each(given), sample_text(wanted).text,
                          sample_text(given).text);
    /* As many values in another order: the net would see noise. [784] for [1, 28, 28] is the same order. */
    int count = sizes_of(a, wanted);
    if (count < 2 || count != sizes_of(b, given) || memcmp(a, b, (size_t)count * sizeof a[0]) == 0)
        return EXIT_OK;
    bool last = count == 3 && a[0] == b[2] && a[1] == b[0] && a[2] == b[1];
    return verb_error(v, EXIT_FILE, "the input of %s is %s, a sample of %s is %s: %s", what,
                      sample_text(wanted).text, from, sample_text(given).text,
                      last ? "put the channels first, x.transpose(0, 3, 1, 2) in NumPy"
                           : "the axes are in a different order");
}

/* ---- The net ---- */

static bool find_input(mica_tensor *out, mica_net *net, const char *name)
{
    const char *called;
    for (int i = 0; name != NULL && i < mica_net_inputs(net); i++)
        if (mica_net_input_tensor(net, &called, out, i) == MICA_OK && strcmp(called, name) == 0)
            return true;
    return false;
}

static bool predicts_classes(const mica_netfile_info *info)
{
    return info->task == MICA_TASK_CLASSES || info->task == MICA_TASK_TEXT;
}

static int check_target(const net_ends *e, const verb *v, const mica_netfile_info *info, const char *what)
{
    const mica_tensor *t = &e->target;
    if (t->rank < 1 || t->dim[0] != e->input.dim[0])
        return verb_error(
            v, EXIT_FILE,
            "%s: its target \"%s\" is %s, its input \"%s\" is %s: expected the same number of samples", what,
            info->target, shape_of(t).text, info->input, shape_of(&e->input).text);
    if (!predicts_classes(info))
        return EXIT_OK;
    if (t->dtype != MICA_I32 && t->dtype != MICA_I64)
        return verb_error(v, EXIT_FILE, "%s: its target \"%s\" is %s: expected class indices, i32 or i64",
                          what, info->target, shape_of(t).text);
    if (mica_tensor_count(&e->output) != mica_tensor_count(t) * (size_t)info->classes)
        return verb_error(v, EXIT_FILE,
                          "%s: its output is %s: expected %td values for each element of target %s", what,
                          shape_of(&e->output).text, info->classes, shape_of(t).text);
    return EXIT_OK;
}

int net_ends_find(net_ends *out, const verb *v, mica_net *net, const mica_netfile_info *info,
                  const char *what)
{
    *out = (net_ends){.has_target = info->target != NULL};
    const mica_tensor *x = &out->input, *y = &out->output;
    if (!find_input(&out->input, net, info->input))
        return verb_error(v, EXIT_FILE, "%s: the net has no input", what);
    if (info->other_input != NULL)
        return verb_error(v, EXIT_FILE,
                          "%s: besides \"%s\", the net reads an input \"%s\" that no data provides%s%s%s",
                          what, info->input, info->other_input, onnx_of(net) != NULL ? ": --set " : "",
                          onnx_of(net) != NULL ? info->other_input : "",
                          onnx_of(net) != NULL ? "=@FILE.npy gives it one value for all samples" : "");
    if (x->rank < 1 || elements_each(x) == 0)
        return verb_error(v, EXIT_FILE, "%s: its input \"%s\" is %s, which is empty", what, info->input,
                          shape_of(x).text);
    if (mica_net_shape(net, &out->output, info->output_value) != MICA_OK || y->dtype != MICA_F32 ||
        y->rank < 1 || y->dim[0] != x->dim[0] || mica_tensor_count(y) == 0)
        return verb_error(v, EXIT_FILE, "%s: its output \"%s\" is %s: expected f32, %td samples along axis 0",
                          what, info->output, shape_of(y).text, x->dim[0]);
    if (!out->has_target)
        return EXIT_OK;
    if (!find_input(&out->target, net, info->target))
        return verb_error(v, EXIT_FILE, "%s: the net has no input \"%s\"", what, info->target);
    return check_target(out, v, info, what);
}

mica_status net_output(mica_tensor *out, mica_net *net, const mica_netfile_info *info, mica_index samples)
{
    mica_status status = mica_net_tensor(net, out, info->output);
    if (status != MICA_OK)
        return status;
    bool rows = out->dtype == MICA_F32 && out->rank > 0 && out->dim[0] == samples &&
                mica_tensor_contiguous(out);
    if (rows && (!predicts_classes(info) || out->dim[out->rank - 1] == info->classes))
        return MICA_OK;
    return mica_fail(mica_net_context(net), MICA_ERR_SHAPE,
                     "the output \"%s\" for %td samples is %s: expected a row of %td for each", info->output,
                     samples, shape_of(out).text, info->classes);
}

/* ---- Data ---- */

static int match_table(const data *d, const char *spec, const verb *v, const net_ends *ends, const char *what)
{
    mica_tensor sample = data_sample(d);
    size_t inputs = 1, targets = (size_t)(mica_table_targets(d->table) * (d->window > 0 ? d->horizon : 1));
    for (int i = 0; i < sample.rank; i++)
        inputs *= (size_t)sample.dim[i];
    if (inputs != elements_each(&ends->input))
        return verb_error(v, EXIT_FILE, "the input of %s takes %zu values, a row of %s becomes %zu", what,
                          elements_each(&ends->input), spec, inputs);
    if (targets != elements_each(&ends->target))
        return verb_error(v, EXIT_FILE, "%s expects %zu target values per sample, %s has %zu", what,
                          elements_each(&ends->target), spec, targets);
    return EXIT_OK;
}

static int match_samples(const data *d, const char *spec, const verb *v, const net_ends *ends,
                         const char *what)
{
    if (d->table != NULL)
        return match_table(d, spec, v, ends, what);
    const mica_dataset *sets[] = {&d->samples, d->has_test ? &d->test : NULL};
    for (size_t i = 0; i < 2 && sets[i] != NULL; i++) {
        const mica_dataset *set = sets[i];
        if (!set->has_targets)
            return verb_error(v, EXIT_FILE, "%s has no targets to train on or compare with", spec);
        int code = set->count > 0 ? sample_match(v, &ends->input, what, &set->inputs, spec) : EXIT_OK;
        if (code != EXIT_OK)
            return code;
        if (set->count > 0 && elements_each(&set->targets) != elements_each(&ends->target))
            return verb_error(v, EXIT_FILE, "%s expects %zu target values per sample, %s has %zu%s", what,
                              elements_each(&ends->target), spec, elements_each(&set->targets),
                              (set->targets.dtype == MICA_F32 || set->targets.dtype == MICA_F64) &&
                                      elements_each(&set->targets) == 1
                                  ? " (class labels must be integers)"
                                  : "");
    }
    return EXIT_OK;
}

int data_match(const data *d, const char *spec, const verb *v, const net_ends *ends,
               const mica_netfile_info *info, const char *what)
{
    if (info->task == MICA_TASK_NONE || !ends->has_target)
        return verb_error(v, EXIT_FILE, "%s has no loss with a target, so it cannot be trained or scored",
                          what);
    if ((info->task == MICA_TASK_TEXT) != d->is_text)
        return verb_error(v, EXIT_FILE,
                          d->is_text ? "%s does not take text, but %s is text"
                                     : "%s takes text, but %s is not text%s",
                          what, spec, d->table != NULL ? ": mlp, or a net file, takes tables" : "");
    if (d->is_text && info->classes < d->text.vocabulary.count)
        return verb_error(v, EXIT_FILE, "%s has a vocabulary of %td tokens, %s has %d", what, info->classes,
                          spec, (int)d->text.vocabulary.count);
    if (d->is_text)
        return EXIT_OK;
    int code = match_samples(d, spec, v, ends, what);
    if (code == EXIT_OK && info->task == MICA_TASK_BINARY && d->class_count > 2)
        return verb_error(v, EXIT_FILE, "%s says yes or no, but %s has %lld classes: expected 2", what, spec,
                          (long long)d->class_count);
    if (code == EXIT_OK && d->table != NULL &&
        (info->task == MICA_TASK_REGRESSION) != (d->task == TABLE_NUMBERS))
        code = verb_error(
            v, EXIT_FILE,
            d->task == TABLE_NUMBERS
                ? "%s predicts classes, but what is to be learned from %s are numbers: --task classes "
                  "takes them as names"
                : "%s predicts numbers, but what is to be learned from %s are classes",
            what, spec);
    if (code != EXIT_OK || info->task != MICA_TASK_CLASSES)
        return code;
    if (d->class_count == 0)
        return verb_error(v, EXIT_FILE,
                          "%s learns classes, but the targets of %s are not integers of at least 0", what,
                          spec);
    if (d->class_count > info->classes)
        return verb_error(v, EXIT_FILE, "%s has %td classes, %s has %lld%s", what, info->classes, spec,
                          (long long)d->class_count,
                          d->class_names == NULL ? ": its largest label plus 1, since labels start at 0"
                                                 : "");
    return EXIT_OK;
}
