/* Reports for people: the layers of a net, and its memory plan, as text in a caller's buffer. */

#include "base/format.h"
#include "base/writer.h"
#include "net/net.h"
#include "tensor/tensor.h"

const char *mica_buffer_kind_text(mica_buffer_kind kind)
{
    static const char *const texts[] = {
#define KIND_TEXT(code, text) text,
        MICA_BUFFER_KINDS(KIND_TEXT)
#undef KIND_TEXT
    };
    return (unsigned)kind < MICA_BUFFER_KIND_COUNT ? texts[kind] : "unknown";
}

const char *mica_phase_text(mica_phase phase)
{
    static const char *const texts[] = {
#define PHASE_TEXT(code, text) text,
        MICA_PHASES(PHASE_TEXT)
#undef PHASE_TEXT
    };
    return (unsigned)phase < MICA_PHASE_COUNT ? texts[phase] : "unknown";
}

/* "4.21 MiB" */
typedef struct size_text {
    char text[24];
} size_text;

static size_text size_of(size_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit++;
    }
    size_text out;
    (void)mica_format(out.text, sizeof out.text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return out;
}

int mica_net_layers(const mica_net *net) { return net->layer_count; }

mica_status mica_net_layer(const mica_net *net, const char **name, const char **kind, mica_value *output,
                           int number)
{
    if (number < 0 || number >= net->layer_count)
        return mica_fail(net->ctx, MICA_ERR_INDEX, "net_layer: layer %d of %d", number, net->layer_count);
    const mica_layer_info *layer = &net->layers[number];
    if (name != NULL)
        *name = layer->name;
    if (kind != NULL)
        *kind = layer->kind;
    if (output != NULL)
        *output = layer->output;
    return MICA_OK;
}

size_t mica_net_layer_parameters(const mica_net *net, int number)
{
    size_t count = 0;
    for (int i = 0; i < net->built_values; i++) /* a shared one counts where it was made */
        if (net->values[i].kind == MICA_BUFFER_PARAMETER && net->values[i].layer == number)
            count += mica_tensor_count(&net->values[i].tensor);
    return count;
}

size_t mica_net_summary(char *text, size_t size, const mica_net *net)
{
    mica_writer w = {text, size, 0};
    size_t all = 0;
    mica_put(&w, "%-28s %-20s %-22s %12s %12s\n", "layer", "kind", "output", "parameters", "bytes");
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].kind == MICA_BUFFER_INPUT)
            mica_put(&w, "%-28s %-20s %-22s %12s %12zu\n", net->values[i].name, "input",
                     MICA_SHAPE(&net->values[i].tensor), "", net->values[i].bytes);
    for (int n = 0; n < net->layer_count; n++) {
        const mica_layer_info *layer = &net->layers[n];
        if (layer->output == 0)
            continue; /* a layer that failed */
        const mica_value_info *out = &net->values[layer->output - 1];
        size_t count = mica_net_layer_parameters(net, n);
        all += count;
        mica_put(&w, "%-28s %-20s %-22s %12zu %12zu\n", layer->name, layer->kind, MICA_SHAPE(&out->tensor),
                 count, out->bytes);
    }
    mica_put(&w, "%zu parameters, %s\n", all, size_of(all * sizeof(float)).text);
    return w.length;
}

size_t mica_plan_print(char *text, size_t size, const mica_plan *plan)
{
    mica_writer w = {text, size, 0};
    if (plan == NULL) {
        mica_put(&w, "no plan: the net is not compiled\n");
        return w.length;
    }
    size_t lost = plan->total - plan->lower_bound;
    mica_put(&w, "total %zu bytes (%s), lower bound %zu, packing lost %zu (%.2f %%)\n", plan->total,
             size_of(plan->total).text, plan->lower_bound, lost,
             plan->lower_bound > 0 ? 100.0 * (double)lost / (double)plan->lower_bound : 0.0);
    for (mica_buffer_kind kind = 0; kind < MICA_BUFFER_KIND_COUNT; kind++)
        if (plan->kind_bytes[kind] > 0)
            mica_put(&w, "  %-20s %14zu\n", mica_buffer_kind_text(kind), plan->kind_bytes[kind]);
    if (plan->parts > 1)
        mica_put(&w, "the batch is split into %d parts, %d at a time\n", plan->parts, plan->lanes);
    if (plan->recomputed > 0)
        mica_put(&w, "%d calls run twice, to keep less: %.1f %% more work in the forward pass\n",
                 plan->recomputed, 100.0 * plan->extra_work);
    mica_put(&w, "%14s %14s %6s %6s  %-20s %s\n", "offset", "bytes", "first", "last", "kind", "buffer");
    for (size_t i = 0; i < plan->count; i++) {
        const mica_plan_buffer *b = &plan->buffers[i];
        mica_put(&w, "%14zu %14zu %6d %6d  %-20s %s\n", b->offset, b->bytes, b->first, b->last,
                 mica_buffer_kind_text(b->kind), b->name);
    }
    return w.length;
}
