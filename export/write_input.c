/* In NAME.h: how inputs were normalized in training, for a device that reads them from a sensor. */
#include "export/write.h"

static void put_list(text *out, const char *name, const float *values, int count)
{
    text_put(out, "    static const float %s[%d] = {", name, count);
    for (int c = 0; c < count; c++) {
        text_put(out, c > 0 ? ", " : "");
        text_put_float(out, values[c]);
    }
    text_put(out, "};\n");
}

/* In the header, so that a program that does not call it has no code of it. */
void write_normalize(text *out, const graph *g, const export_opts *opts)
{
    capitals name = capitals_of(opts->name);
    const value *x = &g->values[g->input];
    int channels = opts->channels;
    if (channels <= 0 || (x->dtype != MICA_F32 && !(x->scale > 0.0f)) || x->count % (size_t)channels != 0)
        return;
    text_put(
        out,
        "/* Makes of what a sensor gave what the net was trained on: mean 0 and deviation 1%s. In place. */\n",
        channels > 1 ? " in each channel" : "");
    text_put(out, "static inline void %s_normalize(float *x)\n{\n", opts->name);
    put_list(out, "mean", opts->mean, channels);
    put_list(out, "deviation", opts->deviation, channels);
    text_put(out, "    for (int i = 0; i < %s_INPUT_SIZE; i++)\n        x[i] = (x[i]", name.text);
    if (opts->scale != 1.0f) {
        text_put(out, " * ");
        text_put_float(out, opts->scale);
    }
    if (channels == 1)
        text_put(out, " - mean[0]) / deviation[0];\n}\n\n");
    else
        text_put(out, " - mean[i / %zu %% %d]) / deviation[i / %zu %% %d];\n}\n\n",
                 x->count / (size_t)channels, channels, x->count / (size_t)channels, channels);
}
