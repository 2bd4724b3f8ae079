/* The frequencies of rotary positions, with the ways to stretch them to longer texts. */
#include <math.h>

#include "text/model.h"
#include "tensor/tensor.h"

/* By what each frequency is divided, where the file has such a tensor. */
static bool find_factors(const mica_model *model, mica_tensor *out, mica_index context)
{
    if (mica_source_tensor(&model->source, out, "rope_freqs.weight"))
        return true;
    return mica_source_tensor(&model->source, out,
                              context > model->scaling_context ? "rope_factors_long.weight"
                                                               : "rope_factors_short.weight");
}

/* YaRN: frequencies that turn often within the trained context stay, those that turn less than once are stretched,
 * with a ramp in between. */
static double yarn_share(const mica_model *model, double base, mica_index pair)
{
    double pi = 3.14159265358979323846, turned = (double)model->turned, bound[2];
    const double turns[2] = {32.0, 1.0};
    for (int i = 0; i < 2; i++)
        bound[i] = turned * log((double)model->scaling_context / (turns[i] * 2.0 * pi)) / (2.0 * log(base));
    double low = fmax(0.0, floor(bound[0])), high = fmin(turned - 1.0, ceil(bound[1]));
    double share = ((double)pair - low) / fmax(0.001, high - low);
    return 1.0 - fmin(1.0, fmax(0.0, share));
}

mica_status mica_model_make_rope(const mica_model *model, mica_rope *rope, bool local, mica_index context)
{
    mica_tensor factors;
    mica_index pairs = model->turned / 2;
    bool own_base = local && model->local_base > 0.0;
    double base = own_base ? model->local_base : model->base;
    /* A base of their own means that layers with a window were trained as they are. */
    double stretch = own_base && model->architecture->local_base > 0.0 ? 1.0 : model->scaling_factor;
    bool divided = find_factors(model, &factors, context);
    if (divided && (factors.dtype != MICA_F32 || factors.rank != 1 || factors.dim[0] != pairs))
        return mica_fail(model->ctx, MICA_ERR_FORMAT,
                         "%s: the tensor of RoPE factors is %s %s: expected f32 [%td]", model->source.path,
                         mica_dtype_name(factors.dtype), MICA_SHAPE(&factors), pairs);
    for (mica_index i = 0; i < pairs; i++) {
        double f = pow(base, -2.0 * (double)i / (double)model->turned);
        if (divided)
            f /= (double)((const float *)factors.data)[i];
        double kept = model->scaling == MICA_ROPE_YARN && stretch != 1.0 ? yarn_share(model, base, i) : 0.0;
        rope->frequency[i] = (float)(f / stretch * (1.0 - kept) + f * kept);
        if (!isfinite(rope->frequency[i]))
            return mica_fail(model->ctx, MICA_ERR_FORMAT, "%s: RoPE factor %td is %g", model->source.path, i,
                             divided ? (double)((const float *)factors.data)[i] : 1.0);
    }
    rope->magnitude = (float)model->scaling_magnitude;
    if (model->scaling == MICA_ROPE_YARN && stretch > 1.0)
        rope->magnitude = (float)(model->scaling_magnitude * (1.0 + 0.1 * log(stretch)));
    return MICA_OK;
}
