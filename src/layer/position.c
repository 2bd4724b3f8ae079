/* Positions of a sequence: an added table, learned or sinusoidal, or rotary embedding. */
#include <mica/layers.h>

#include "node/entry.h"

/* Begins the layer. Whether x is a sequence f32 [..., T, C]; else the layer has failed or ended. */
static bool begin(mica_net *net, const char *kind, const char *name, mica_value x, mica_tensor *t)
{
    mica_net_layer_begin(net, kind, name, x);
    if (mica_net_shape(net, t, x) != MICA_OK)
        (void)mica_net_layer_end(net, 0);
    else if (t->dtype != MICA_F32 || t->rank < 2)
        (void)mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 [..., T, C] of rank 2 or more");
    else
        return true;
    return false;
}

/* Where sequences begin: a size of the step, and the most that it can be. */
typedef struct begin_at {
    int option; /* as operations want it: its number plus one; 0: they begin at 0 */
    mica_index most;
} begin_at;

static begin_at begin_of(const mica_net *net, mica_index position)
{
    begin_at at = {.option = mica_net_size_number(net, position) + 1};
    if (at.option > 0)
        (void)mica_net_size_at(net, NULL, NULL, &at.most, at.option - 1);
    return at;
}

/* Ends the layer with x + table. */
static mica_value add(mica_net *net, mica_value x, mica_value table, const begin_at *at)
{
    mica_value in[] = {x, table};
    mica_positions_opts opts = {.position = at->option};
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_add_positions, in, 2, &opts));
}

/* A table with a row for each position that x, as built, can have. It is made when the net is bound. */
static mica_value table(mica_net *net, const mica_op *op, const mica_tensor *x, const begin_at *at,
                        mica_index columns, double base)
{
    mica_table_opts opts = {.rows = x->dim[x->rank - 2] + at->most, .columns = columns, .base = base};
    return mica_net_derived(net, "table", MICA_F32, 2, (mica_index[]){opts.rows, opts.columns}, op, NULL, 0,
                            &opts);
}

mica_value mica_net_learned_positions(mica_net *net, mica_value x, const mica_net_positions_opts *opts)
{
    static const mica_net_positions_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    if (!begin(net, "learned_positions", opts->name, x, &t))
        return 0;
    const mica_index *last = &t.dim[t.rank - 2]; /* [T, C] */
    mica_index weight[] = {opts->rows != 0 ? opts->rows : last[0], last[1]};
    if (weight[0] < last[0])
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected at most %td positions, got %td", weight[0],
                                   last[0]);
    mica_init init = opts->weight_init.kind != MICA_INIT_DEFAULT ? opts->weight_init
                                                                 : (mica_init){MICA_INIT_NORMAL, 0.02f};
    begin_at at = begin_of(net, opts->position);
    return add(net, x, mica_net_learned(net, "weight", 2, weight, init), &at);
}

mica_value mica_net_sinusoidal_positions(mica_net *net, mica_value x, const mica_net_positions_opts *opts)
{
    static const mica_net_positions_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    if (!begin(net, "sinusoidal_positions", opts->name, x, &t))
        return 0;
    if (!(opts->base >= 0.0))
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "base is %g: expected more than 0", opts->base);
    begin_at at = begin_of(net, opts->position);
    return add(net, x, table(net, &mica_op_sinusoidal_table, &t, &at, t.dim[t.rank - 1], opts->base), &at);
}

mica_value mica_net_rotary(mica_net *net, mica_value x, const mica_net_rotary_opts *opts)
{
    static const mica_net_rotary_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    if (!begin(net, "rotary", opts->name, x, &t))
        return 0;
    mica_index heads = opts->heads != 0 ? opts->heads : 1, turned = opts->turned != 0 ? opts->turned : heads;
    mica_index all = t.dim[t.rank - 1], features = heads > 0 ? all / heads : 0;
    mica_index width = opts->width != 0 ? opts->width : features;
    if (heads < 1 || turned < 1 || turned > heads || all % heads != 0 || t.rank >= MICA_MAX_RANK)
        return mica_net_layer_fail(
            net, MICA_ERR_SHAPE,
            "expected features that divide evenly among %td heads, of which %td are rotated", heads, turned);
    if (width < 0 || width % 2 != 0 || width > features)
        return mica_net_layer_fail(
            net, MICA_ERR_ARGUMENT,
            "%td features of each head are to be rotated: expected an even number, at most %td", width,
            features);
    begin_at at = begin_of(net, opts->position);
    mica_turn_opts how = {.position = at.option,
                          .interleaved = opts->interleaved,
                          .heads = opts->heads,
                          .turned = opts->turned};
    mica_value in[] = {x, table(net, &mica_op_rotary_table, &t, &at, width, opts->base)};
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_rotary_packed, in, 2, &how));
}
