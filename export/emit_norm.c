/* Norms. */
#include <string.h>

#include "export/emit.h"

enum { X, GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR };
enum { Y, MEAN, RSTD };
enum { DY, BACK_X, SAVED_MEAN, SAVED_RSTD, BACK_GAMMA };
enum { DX, DGAMMA, DBETA };

static const char *eps_of(const call *c)
{
    float eps = ((const mica_norm_opts *)c->opts)->eps;
    return float_text(eps != 0.0f ? (double)eps : (double)1e-5f);
}

/* How x falls into rows, groups and channels: norm_rows.c. */
typedef struct rows {
    int rows, groups, channels, inner;
} rows;

static rows by_channels(const value *x, int groups)
{
    int inner = 1;
    for (int k = 2; k < x->rank; k++)
        inner *= (int)x->dim[k];
    return (rows){(int)x->dim[0] * groups, groups, (int)x->dim[1] / groups, inner};
}

static rows by_last_axes(const value *x, int leading)
{
    int count = 1;
    for (int k = 0; k < leading; k++)
        count *= (int)x->dim[k];
    return (rows){count, 1, (int)x->count / count, 1};
}

static rows rows_in(emitter *e, const call *c)
{
    const value *x = in_value(e, X);
    const mica_norm_opts *o = c->opts;
    if (strcmp(c->name, "group_norm") == 0)
        return by_channels(x, o->groups != 0 ? o->groups : 1);
    if (strcmp(c->name, "instance_norm") == 0)
        return by_channels(x, (int)x->dim[1]);
    return by_last_axes(x, x->rank - (o->axes != 0 ? o->axes : 1));
}

/* The backward of the last axes has no options: they follow from what was saved. */
static rows rows_back(emitter *e, const call *c, int saved)
{
    const value *x = in_value(e, BACK_X), *rstd = in_value(e, saved);
    if (strcmp(c->name, "layer_norm_backward") == 0 || strcmp(c->name, "rms_norm_backward") == 0)
        return by_last_axes(x, rstd->rank);
    return by_channels(x, (int)rstd->dim[1]);
}

static void emit_norm(emitter *e, const call *c)
{
    rows r = rows_in(e, c);
    use_kernel(e, "norm_rows");
    emit(e, "norm_rows(%s, %s, %s, %s, %s, %s, %d, %d, %d, %d, %s);", out_name(e, Y), out_name(e, MEAN),
         out_name(e, RSTD), in_name(e, X), in_name(e, GAMMA), in_name(e, BETA), r.rows, r.groups, r.channels,
         r.inner, eps_of(c));
}

static void emit_norm_backward(emitter *e, const call *c)
{
    rows r = rows_back(e, c, SAVED_RSTD);
    use_kernel(e, "norm_rows_backward");
    emit(e, "norm_rows_backward(%s, %s, %s, %s, %s, %s, %s, %s, %d, %d, %d, %d);", out_name(e, DX),
         out_name(e, DGAMMA), out_name(e, DBETA), in_name(e, DY), in_name(e, BACK_X), in_name(e, SAVED_MEAN),
         in_name(e, SAVED_RSTD), in_name(e, BACK_GAMMA), r.rows, r.groups, r.channels, r.inner);
}

static void emit_rms(emitter *e, const call *c)
{
    rows r = rows_in(e, c);
    use_kernel(e, "rms_norm");
    emit(e, "rms_norm(%s, %s, %s, %s, %d, %d, %s);", out_name(e, Y), out_name(e, 1), in_name(e, X),
         in_name(e, GAMMA), r.rows, r.channels, eps_of(c));
}

static void emit_rms_backward(emitter *e, const call *c)
{
    rows r = rows_back(e, c, 2);
    use_kernel(e, "rms_norm_backward");
    emit(e, "rms_norm_backward(%s, %s, %s, %s, %s, %s, %d, %d);", out_name(e, DX), out_name(e, DGAMMA),
         in_name(e, DY), in_name(e, BACK_X), in_name(e, 2), in_name(e, 3), r.rows, r.channels);
}

/* ---- Batch norm ---- */

static bool by_running(const emitter *e, const call *c)
{
    return ((const mica_norm_opts *)c->opts)->inference || e->mode != MODE_TRAIN;
}

static void emit_batch_norm(emitter *e, const call *c)
{
    const mica_norm_opts *o = c->opts;
    rows r = by_channels(in_value(e, X), 1);
    bool fixed = by_running(e, c), moves = c->phase != MICA_PHASE_RECOMPUTE;
    int batch = (int)in_value(e, X)->dim[0];
    if (fixed) {
        use_kernel(e, "batch_norm_fixed");
        emit(e, "batch_norm_fixed(%s, %s, %s, %s, %s, %s, %s, %s, %d, %d, %d, %s);", out_name(e, Y),
             out_name(e, MEAN), out_name(e, RSTD), in_name(e, RUNNING_MEAN), in_name(e, RUNNING_VAR),
             in_name(e, X), in_name(e, GAMMA), in_name(e, BETA), batch, r.channels, r.inner, eps_of(c));
        return;
    }
    use_kernel(e, "batch_norm");
    emit(e, "batch_norm(%s, %s, %s, %s, %s, %s, %s, %s, %d, %d, %d, %s, %s);", out_name(e, Y),
         out_name(e, MEAN), out_name(e, RSTD), moves ? in_name(e, RUNNING_MEAN) : "0",
         moves ? in_name(e, RUNNING_VAR) : "0", in_name(e, X), in_name(e, GAMMA), in_name(e, BETA), batch,
         r.channels, r.inner, eps_of(c),
         float_text(o->momentum != 0.0f ? (double)o->momentum : (double)0.1f));
}

static void emit_batch_norm_backward(emitter *e, const call *c)
{
    rows r = by_channels(in_value(e, BACK_X), 1);
    use_kernel(e, "batch_norm_backward");
    emit(e, "batch_norm_backward(%s, %s, %s, %s, %s, %s, %s, %s, %d, %d, %d, %d);", out_name(e, DX),
         out_name(e, DGAMMA), out_name(e, DBETA), in_name(e, DY), in_name(e, BACK_X), in_name(e, SAVED_MEAN),
         in_name(e, SAVED_RSTD), in_name(e, BACK_GAMMA), (int)in_value(e, BACK_X)->dim[0], r.channels,
         r.inner, by_running(e, c));
}

static const char *refuse_batch_norm(const graph *g, const call *c)
{
    bool running = c->ins > RUNNING_VAR && c->in[RUNNING_MEAN] != NONE && c->in[RUNNING_VAR] != NONE;
    if (!running)
        return "batch norm without running statistics";
    if (g->train && g->samples > 1 && !((const mica_norm_opts *)c->opts)->inference)
        return "batch norm of samples that are run one by one";
    return NULL;
}

#define WEIGHTS (1u << DGAMMA | 1u << DBETA)

const export_op export_norm_ops[] = {
    {.name = "layer_norm", .emit = emit_norm},
    {.name = "layer_norm_backward", .emit = emit_norm_backward, .only_adds = WEIGHTS},
    {.name = "group_norm", .emit = emit_norm},
    {.name = "group_norm_backward", .emit = emit_norm_backward, .only_adds = WEIGHTS},
    {.name = "instance_norm", .emit = emit_norm},
    {.name = "instance_norm_backward", .emit = emit_norm_backward, .only_adds = WEIGHTS},
    {.name = "rms_norm", .emit = emit_rms},
    {.name = "rms_norm_backward", .emit = emit_rms_backward, .only_adds = 1u << DGAMMA},
    {.name = "batch_norm", .emit = emit_batch_norm, .modes = true, .refuse = refuse_batch_norm},
    {.name = "batch_norm_backward", .emit = emit_batch_norm_backward, .only_adds = WEIGHTS},
    {.name = NULL},
};
