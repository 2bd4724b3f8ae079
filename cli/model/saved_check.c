/* What a checkpoint says, held against the net that it is of. */
#include "cli/model/match.h"
#include "cli/model/saved.h"
#include "cli/model/sounds.h"
#include "cli/onnx/net.h"
#include "cli/onnx/text.h"

static size_t sample_elements(const mica_tensor *sample)
{
    size_t count = 1;
    for (int i = 0; i < sample->rank; i++)
        count *= (size_t)sample->dim[i];
    return count;
}

static int check_sample(const saved *s, const verb *v, const net_ends *ends)
{
    const mica_tensor *sample = &s->meaning.sample;
    size_t wanted = mica_tensor_count(&ends->input) / (size_t)ends->input.dim[0];
    if (sample->rank > 0 && sample_elements(sample) != wanted)
        return verb_error(v, EXIT_FILE,
                          "%s: its \"mica.sample\" has %zu elements: expected %zu, as the net's input",
                          s->path, sample_elements(sample), wanted);
    mica_index channels = s->meaning.normalization.channels;
    if (channels > 1 && (sample->rank == 0 || sample->dim[0] != channels))
        return verb_error(
            v, EXIT_FILE,
            "%s: its \"mica.mean\" has %td numbers: expected 1, or the size of the first axis of \"mica.sample\" (%td)",
            s->path, channels, sample->rank > 0 ? sample->dim[0] : 0);
    return EXIT_OK;
}

/* A table says how large inputs and targets are, too. */
static int check_table(const saved *s, const verb *v, const net_ends *ends, const mica_netfile_info *info)
{
    const meaning *m = &s->meaning;
    if (m->table == NULL)
        return EXIT_OK;
    mica_index rows = m->forecast.horizon > 0 ? m->forecast.window : 1,
               horizon = m->forecast.horizon > 0 ? m->forecast.horizon : 1;
    size_t inputs = mica_tensor_count(&ends->input) / (size_t)ends->input.dim[0],
           outputs = mica_tensor_count(&ends->output) / (size_t)ends->output.dim[0],
           targets = (size_t)(mica_table_targets(m->table) * horizon);
    if (info->task == MICA_TASK_CLASSES)
        outputs = 1;
    if (inputs != (size_t)(rows * mica_table_inputs(m->table)) || outputs != targets)
        return verb_error(
            v, EXIT_FILE,
            "%s: its \"mica.table\" has %td inputs and %zu targets: the net takes %zu and predicts %zu",
            s->path, rows * mica_table_inputs(m->table), targets, inputs, outputs);
    bool numbers = m->units.count > 0 && s->meaning.class_count == 0;
    if (info->task == MICA_TASK_REGRESSION && !numbers)
        return verb_error(v, EXIT_FILE, "%s: its \"mica.table\" has classes: expected numbers", s->path);
    return EXIT_OK;
}

static int check_text(const saved *s, const verb *v, const mica_netfile_info *info)
{
    const meaning *m = &s->meaning;
    bool reads_text = info->task == MICA_TASK_TEXT;
    if (!reads_text && m->vocabulary.count > 0)
        return verb_error(v, EXIT_FILE, "%s: it has a \"mica.vocabulary\": expected none for a net for %s",
                          s->path, mica_task_text(info->task));
    if (reads_text && m->vocabulary.count == 0)
        return verb_error(v, EXIT_FILE,
                          "%s: its metadata has no \"mica.vocabulary\": expected one for a text net",
                          s->path);
    if (m->vocabulary.count > info->classes && reads_text)
        return verb_error(v, EXIT_FILE,
                          "%s: its \"mica.vocabulary\" has %d tokens: expected at most the net's %td",
                          s->path, (int)m->vocabulary.count, info->classes);
    if (reads_text && (m->sample.rank > 0 || m->normalization.channels > 0))
        return verb_error(v, EXIT_FILE, "%s: it has a \"%s\": expected none for a text net", s->path,
                          m->sample.rank > 0 ? "mica.sample" : "mica.mean");
    return EXIT_OK;
}

static int check_net(const saved *s, const verb *v, mica_net *net, const mica_netfile_info *info)
{
    net_ends ends;
    int code = net_ends_find(&ends, v, net, info, s->path);
    if (code == EXIT_OK)
        code = check_text(s, v, info);
    if (code == EXIT_OK)
        code = check_sample(s, v, &ends);
    if (code == EXIT_OK)
        code = check_table(s, v, &ends, info);
    if (code == EXIT_OK && info->task == MICA_TASK_CLASSES && s->meaning.class_count > info->classes)
        code = verb_error(v, EXIT_FILE,
                          "%s: its \"mica.classes\" has %d names: expected at most %td, one per class",
                          s->path, s->meaning.class_count, info->classes);
    return code;
}

int saved_check(const saved *s, const verb *v, mica_context *ctx)
{
    mica_net *net = NULL;
    mica_netfile_info info;
    const char *text = saved_text(s, MICA_NETFILE_KEY);
    mica_netfile_opts opts = {.file = s->path, .inference = true};
    int code = EXIT_OK;
    if (is_onnx_text(text)) {
        opts.batch = s->settings.batch > 0 ? (mica_index)s->settings.batch
                                           : 1; /* it may be one of the model's */
        code = onnx_text_build(&net, &info, v, ctx, text, s->path, &opts);
    } else {
        mica_status status = mica_net_create(ctx, &net);
        if (status == MICA_OK)
            status = mica_netfile_build(net, &info, text, &opts);
        if (status != MICA_OK)
            code = verb_error(v, status == MICA_ERR_MEMORY ? EXIT_FAILED : EXIT_FILE, "%s", mica_error(ctx));
    }
    if (code == EXIT_OK)
        code = check_net(s, v, net, &info);
    mica_net_destroy(net);
    return code == EXIT_OK ? sounds_check(s, v, ctx) : code;
}
