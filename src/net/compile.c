/* Compiling: the program, its scratch, its memory; again with recomputing, then in parts, until a budget holds. */
#include <math.h>
#include <string.h>

#include "net/net.h"

mica_entry *mica_net_new_entry(mica_net *net, const mica_node *node, mica_phase phase, int origin)
{
    if (mica_net_grow(net, &net->entries, net->entry_count, &net->entry_room, sizeof *net->entries) !=
        MICA_OK)
        return NULL;
    mica_entry *entry = &net->entries[net->entry_count++];
    *entry = (mica_entry){.node = *node, .phase = phase, .origin = origin, .group = NONE};
    for (int k = 0; k < MICA_OP_OUTS; k++)
        entry->addend[k] = NONE;
    return entry;
}

/* ---- Scratch ---- */

/* Runs an entry without data, and notes in *bytes what it takes, if that is more. */
static mica_status measure_mode(mica_net *net, mica_entry *entry, bool training, size_t *bytes)
{
    mica_measure_begin(net->ctx);
    net->ctx->one_size = mica_net_one_size(net);
    mica_status status = mica_net_run_entry(net, entry, &(mica_mode){.training = training, .scale = 1.0f});
    net->ctx->one_size = false;
    size_t measured = mica_align_up(mica_measure_end(net->ctx));
    *bytes = measured > *bytes ? measured : *bytes;
    entry->flops = mica_measure_flops(net->ctx);
    return status;
}

/* A net that trains also runs its forwards in inference mode; one that does not may be of a shape that cannot train. */
static mica_status measure_sizes(mica_net *net)
{
    for (int e = 0; e < net->entry_count; e++) {
        mica_entry *entry = &net->entries[e];
        if (entry->phase == MICA_PHASE_FORWARD)
            MICA_TRY(measure_mode(net, entry, false, &entry->workspace_bytes));
        if (net->train)
            MICA_TRY(measure_mode(net, entry, true, &entry->workspace_bytes));
    }
    return MICA_OK;
}

#if !defined(MICA_SMALL)
/* The first lane has the scratch of all threads, which need not be more than that of one. */
static mica_status measure_lane(mica_net *net, mica_entry *entry)
{
    MICA_TRY(measure_mode(net, entry, false, &entry->lane_bytes));
    if (entry->workspace_bytes < entry->lane_bytes)
        entry->workspace_bytes = entry->lane_bytes;
    return MICA_OK;
}

/* The same by one thread, where parts run side by side. */
static mica_status measure_lanes(mica_net *net)
{
    int threads = net->ctx->threads;
    bool beside = mica_net_lanes_for(net) > 1;
    mica_status status = MICA_OK;
    net->ctx->threads = 1;
    for (int e = 0; beside && e < net->entry_count && status == MICA_OK; e++)
        status = measure_lane(net, &net->entries[e]);
    net->ctx->threads = threads;
    return status;
}
#endif

/* What a smaller step takes is never more: a contract of every operation. Only where there is none to speak of are
 * operations asked for what they take at this very size; then a step of no rows is measured on its own. */
static mica_status measure(mica_net *net)
{
    mica_net_link(net);
    if (mica_net_one_size(net) && net->sizes_fixed == NULL && net->size[0].now > 0) {
        net->size[0].now = 0;
        if (mica_net_infer_shapes(net) == MICA_OK)
            (void)measure_sizes(net); /* what it refuses now, it refuses when it is run */
        net->size[0].now = 1;
        MICA_TRY(mica_net_infer_shapes(net));
    }
#if !defined(MICA_SMALL)
    MICA_TRY(measure_lanes(net));
#endif
    return measure_sizes(net);
}

/* ---- One plan ---- */

/* Optional outputs that nobody reads go nowhere. */
static mica_status drop_unread(mica_net *net)
{
    bool *read = mica_allocate(net->ctx, (size_t)net->value_count + 1);
    if (read == NULL)
        return net->ctx->status;
    for (int i = 0; i < net->value_count; i++)
        read[i] = net->values[i].home != MICA_HOME_PLANNED;
    for (int i = 0; i < net->value_count; i++)
        if (net->values[i].output)
            read[net->values[i].root] = true;
    for (int e = 0; e < net->entry_count; e++)
        for (int i = 0; i < net->entries[e].node.ins; i++)
            if (net->entries[e].node.in[i] != NONE)
                read[net->values[net->entries[e].node.in[i]].root] = true;
    for (int e = 0; e < net->entry_count; e++) {
        mica_node *node = &net->entries[e].node;
        for (int k = 0; k < node->outs; k++)
            if (node->out[k] != NONE && !read[node->out[k]] && (node->op->optional_outs >> k & 1u))
                node->out[k] = NONE;
    }
    mica_release(net->ctx, read, (size_t)net->value_count + 1);
    return MICA_OK;
}

/* What is recomputed: segments of so many calls; 0: single calls, for so many bytes alive at once, or 0: if cheap. */
typedef struct recipe {
    int segment_calls;
    size_t target;
    mica_index part_rows;
} recipe;

static mica_status plan_once(mica_net *net, const recipe *how)
{
    MICA_TRY(mica_net_unplan(net));
    net->plan.recomputed = 0;
    MICA_TRY(mica_net_plan_parts(net, how->part_rows));
    MICA_TRY(mica_net_forward_calls(net));
#if !defined(MICA_NO_TRAINING)
    if (net->train)
        MICA_TRY(mica_net_differentiate(net));
#endif
#if !defined(MICA_SMALL)
    if (net->prepare) {
        MICA_TRY(mica_net_fold(net));
        MICA_TRY(mica_net_pair(net));
    }
#endif
    MICA_TRY(mica_net_fuse(net));
    MICA_TRY(drop_unread(net));
#if !defined(MICA_SMALL)
    if (!net->train && !net->planes)
        MICA_TRY(mica_net_choose_layouts(net));
    if (net->prepare)
        MICA_TRY(mica_net_prepare(net));
#endif
    MICA_TRY(measure(net));
#if !defined(MICA_NO_TRAINING)
    if (net->train) {
        MICA_TRY(how->segment_calls > 0 ? mica_net_recompute_segments(net, how->segment_calls)
                                        : mica_net_recompute_cheap(net, how->target));
        if (net->plan.recomputed > 0)
            MICA_TRY(measure(net));
    }
#endif
    MICA_TRY(mica_net_lay_out(net));
#if !defined(MICA_SMALL)
    if (how->part_rows >= net->size[0].most)
        net->whole_total = net->plan.total;
#endif
    return MICA_OK;
}

mica_status mica_net_plan_with_parts(mica_net *net, mica_index rows)
{
    return plan_once(net, &(recipe){.part_rows = rows});
}

/* ---- Budgets, and parts ---- */

#if defined(MICA_SMALL) && defined(MICA_NO_TRAINING)
#define CAN_PART(net) false
#elif defined(MICA_SMALL)
#define CAN_PART(net) ((net)->train && mica_net_can_part(net))
#else
#define CAN_PART(net) ((net)->train ? mica_net_can_part(net) : mica_net_can_infer_parts(net))
#endif

enum { PACKINGS = 4 }; /* the most tries of single calls. Built small: none */

/* A plan that was tried: the cheapest that fits so far, or the smallest. */
typedef struct trial {
    recipe how;
    double work;
    size_t total;
} trial;

static mica_status try_one(mica_net *net, size_t budget, const recipe *how, trial *best, trial *smallest)
{
    MICA_TRY(plan_once(net, how));
    trial this = {*how, mica_net_extra_work(net), net->plan.total};
    if (this.total <= budget && (best->total == SIZE_MAX || this.work < best->work))
        *best = this;
    if (this.total < smallest->total)
        *smallest = this;
    return MICA_OK;
}

/* Tries recomputation of single calls, then by segments of every useful length, for parts of so many rows. */
static mica_status try_recomputing(mica_net *net, size_t budget, mica_index part_rows, trial *best,
                                   trial *smallest)
{
    recipe how = {.part_rows = part_rows};
    MICA_TRY(try_one(net, budget, &how, best, smallest));
    if (net->plan.total <= budget || !net->train)
        return MICA_OK; /* nothing to recompute */
    int calls = net->forward_count;
#if !defined(MICA_SMALL)
    how.target = budget > net->persistent && !net->keep_cheap ? budget - net->persistent : 0;
    for (int i = 0; i < PACKINGS && how.target > 0 && net->plan.total > budget; i++) {
        MICA_TRY(try_one(net, budget, &how, best, smallest));
        how.target -= how.target / 16; /* packing loses a little */
    }
#endif
    for (int length = 2; length < calls; length += 1 + length / 8)
        MICA_TRY(
            try_one(net, budget, &(recipe){.segment_calls = length, .part_rows = part_rows}, best, smallest));
    return MICA_OK;
}

/* Plans the cheapest trial that fits. */
static mica_status take_best(mica_net *net, size_t budget, const trial *best, const trial *smallest)
{
#if !defined(MICA_SMALL)
    if (best->total == SIZE_MAX && net->prepare)
        return mica_fail(
            net->ctx, MICA_ERR_MEMORY,
            "net: needs at least %zu bytes, the budget is %zu (%zu short); it would fit with one "
            "thread, or perhaps without prepared weights",
            smallest->total, budget, smallest->total - budget);
#endif
    if (best->total == SIZE_MAX)
        return mica_fail(net->ctx, MICA_ERR_MEMORY,
                         "net: needs at least %zu bytes, the budget is %zu (%zu short)", smallest->total,
                         budget, smallest->total - budget);
    return plan_once(net, &best->how);
}

/* Recomputes as little as fits; where nothing fits, also runs the batch in parts, as few as fit. */
static mica_status fit_budget(mica_net *net, size_t budget, bool may_part)
{
    trial best = {.total = SIZE_MAX}, smallest = {.total = SIZE_MAX};
    mica_index most = may_part ? net->size[0].most : net->part_rows;
#if !defined(MICA_SMALL)
    if (net->part_rows < most)
        MICA_TRY(mica_net_plan_with_parts(net, most)); /* whether it can be split is asked of the whole */
#endif
    bool parts = may_part && CAN_PART(net);
    mica_index fewest = parts ? mica_net_fewest_rows(net) : 1;
    for (mica_index rows = most; best.total == SIZE_MAX; rows = (rows + 1) / 2) {
        mica_status status = rows == most || mica_net_parts_fit(most, rows, fewest)
                                 ? try_recomputing(net, budget, rows, &best, &smallest)
                                 : MICA_OK;
        if (status != MICA_OK && (rows == most || status == MICA_ERR_MEMORY))
            return status;
        net->status = MICA_OK; /* parts of a size that some operation refuses are none */
        if (rows <= 1 || !parts)
            break;
    }
    return take_best(net, budget, &best, &smallest);
}

/* The same in the parts that one thread with the optimizer's whole state would take: recomputing changes no bit, but
 * other parts round otherwise. */
static mica_status fit_same_parts(mica_net *net, size_t budget, bool may_part)
{
    trial best = {.total = SIZE_MAX}, smallest = {.total = SIZE_MAX};
    int threads = net->ctx->threads, ranks = net->ranks;
    net->ctx->threads = 1;
    net->ranks = 0;
    mica_status status = mica_net_plan_with_parts(net, net->part_rows);
    if (status == MICA_OK && net->plan.total > budget)
        status = fit_budget(net, budget, may_part);
    net->ctx->threads = threads;
    net->ranks = ranks;
    MICA_TRY(status);
    MICA_TRY(try_recomputing(net, budget, net->part_rows, &best, &smallest));
    return take_best(net, budget, &best, &smallest);
}

#if !defined(MICA_SMALL)
/* Weights stay as they are if, prepared, they would not fit beside the scratch of one thread: what only saves time goes
 * first. More threads are not asked, since calls on prepared weights round otherwise. */
static mica_status drop_prepared(mica_net *net, size_t budget)
{
    int threads = net->ctx->threads;
    net->ctx->threads = 1;
    mica_status status = mica_net_plan_with_parts(net, net->part_rows);
    net->ctx->threads = threads;
    MICA_TRY(status);
    net->prepare = net->plan.total <= budget;
    return mica_net_plan_with_parts(net, net->part_rows);
}
#endif

/* ---- The whole ---- */

/* Sizes are added up below: no sum of them, with gradients and optimizer state, may overflow. */
static mica_status check_sizes(mica_net *net)
{
    double bytes = 0.0;
    for (int i = 0; i < net->built_values; i++)
        bytes += (double)net->values[i].built_bytes;
    if (bytes > (double)(SIZE_MAX / 16))
        return mica_fail(net->ctx, MICA_ERR_MEMORY,
                         "net_compile: the tensors take %.3g bytes in all, more than can be addressed",
                         bytes);
    return MICA_OK;
}

/* The first number of an optimizer that makes no sense; NULL: none. */
static const char *optimizer_flaw(const mica_optimizer *o, double *value)
{
    const struct {
        const char *name;
        float value, below;
    } numbers[] = {{"lr", o->lr, INFINITY},
                   {"momentum", o->momentum, INFINITY},
                   {"weight_decay", o->weight_decay, INFINITY},
                   {"beta1", o->beta1, 1.0f},
                   {"beta2", o->beta2, 1.0f},
                   {"alpha", o->alpha, INFINITY},
                   {"eps", o->eps, INFINITY},
                   {"clip_norm", o->clip_norm, INFINITY},
                   {"clip_value", o->clip_value, INFINITY}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *value = (double)numbers[i].value;
        if (!(numbers[i].value >= 0.0f && numbers[i].value < numbers[i].below))
            return numbers[i].name;
    }
    return NULL;
}

static mica_status check_optimizer(mica_net *net, const mica_optimizer *o)
{
    if ((unsigned)o->kind >= MICA_OPTIMIZER_COUNT)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: unknown optimizer %d", (int)o->kind);
    double value;
    const char *flaw = optimizer_flaw(o, &value);
    if (flaw != NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: the optimizer's %s is %g", flaw, value);
    return MICA_OK;
}

/* Training starts from a loss. */
static mica_status check_loss(mica_net *net)
{
    for (int n = 0; n < net->node_count; n++)
        if (net->nodes[n].op->flags & MICA_OP_LOSS)
            return MICA_OK;
    return mica_fail(net->ctx, MICA_ERR_STATE, "net_compile: the net has no loss to minimize");
}

/* What is derived is made when a net is bound: it would not follow what a training changes. */
static mica_status check_derivations(mica_net *net)
{
    for (int d = 0; d < net->built_derivations; d++)
        for (int i = 0; i < net->derivations[d].ins; i++) {
            int in = net->derivations[d].in[i];
            if (in != NONE && net->values[in].home == MICA_HOME_LEARNED && !net->values[in].frozen)
                return mica_fail(
                    net->ctx, MICA_ERR_STATE,
                    "net_compile: \"%s\" is derived from \"%s\", which training changes: freeze it",
                    net->values[net->derivations[d].out[0]].name, net->values[in].name);
        }
    return MICA_OK;
}

/* What nobody reads is there for the caller, unless a call was made for its other results; so is every loss. */
static mica_status mark_outputs(mica_net *net)
{
    bool *read = mica_allocate(net->ctx, (size_t)net->built_values + 1);
    if (read == NULL)
        return net->ctx->status;
    memset(read, 0, (size_t)net->built_values + 1);
    for (int n = 0; n < net->node_count; n++)
        for (int i = 0; i < net->nodes[n].ins; i++)
            if (net->nodes[n].in[i] != NONE)
                read[net->nodes[n].in[i]] = true;
    for (int i = 0; i < net->built_values; i++) {
        mica_value_info *v = &net->values[i];
        if (v->maker != NONE && v->number == 0 &&
            ((!read[i] && !v->unasked) || (net->nodes[v->maker].op->flags & MICA_OP_LOSS)))
            v->output = v->output > 0 ? v->output : ++net->output_count;
    }
    mica_release(net->ctx, read, (size_t)net->built_values + 1);
    return MICA_OK;
}

static mica_status compile(mica_net *net, const mica_compile_opts *opts)
{
#if defined(MICA_NO_TRAINING)
    if (opts->train)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_compile: built without training (MICA_TRAINING)");
#endif
    if (opts->weights != NULL && opts->train)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: shared weights cannot be trained");
#if !defined(MICA_SMALL)
    if (opts->prepare && opts->train)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: prepared weights cannot be trained");
    net->prepare = opts->prepare;
    bool cheap_parts = opts->train && opts->part_rows == MICA_CHEAP_PARTS;
    if (!cheap_parts && (opts->part_rows < MICA_WHOLE_BATCH || (opts->part_rows != 0 && opts->train)))
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: part_rows is %td%s", opts->part_rows,
                         opts->train ? ", which is for inference: training takes 0 or MICA_CHEAP_PARTS"
                                     : ": expected 0 or more, or MICA_WHOLE_BATCH");
#endif
    if (net->continues && opts->train)
        return mica_fail(
            net->ctx, MICA_ERR_STATE,
            "net_compile: steps that continue one another (mica_net_continue) cannot be trained");
    if (opts->ranks < 0)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_compile: ranks is %d", opts->ranks);
    if (opts->train) {
        MICA_TRY(check_loss(net));
        MICA_TRY(check_derivations(net));
    }
    if (opts->train && opts->optimizer != NULL)
        MICA_TRY(check_optimizer(net, opts->optimizer));
    MICA_TRY(check_sizes(net));
    MICA_TRY(mark_outputs(net));
    net->train = opts->train;
    net->debug = opts->debug;
    net->planes = opts->planes;
    net->keep_cheap = opts->keep_cheap;
    net->ranks = opts->ranks;
    net->weights = opts->weights;
#if !defined(MICA_SMALL)
    net->budget = opts->budget;
    net->in_sequence = opts->part_rows > 0 && !opts->side_by_side;
#endif
    net->has_optimizer = opts->train && opts->optimizer != NULL;
    if (net->has_optimizer)
        net->optimizer = *opts->optimizer;
    mica_net_mark_memory(net);
    MICA_TRY(mica_net_plan_with_parts(net, net->size[0].most));
#if !defined(MICA_SMALL)
    if (!net->train)
        MICA_TRY(mica_net_take_parts(net, opts->part_rows));
    if (cheap_parts)
        MICA_TRY(mica_net_take_cheap_parts(net));
    if (opts->budget > 0 && net->plan.total > opts->budget && net->prepare)
        MICA_TRY(drop_prepared(net, opts->budget));
#endif
    bool may_part = net->train || (opts->part_rows == 0 && !net->planes);
    if (opts->budget > 0 && opts->same_parts)
        MICA_TRY(fit_same_parts(net, opts->budget, may_part));
    else if (opts->budget > 0 && net->plan.total > opts->budget)
        MICA_TRY(fit_budget(net, opts->budget, may_part));
    MICA_TRY(mica_net_fill_plan(net));
#if !defined(MICA_SMALL)
    MICA_TRY(mica_net_make_lanes(net));
#endif
    MICA_TRY(mica_net_find_rules(net));
    mica_net_trim(net);
    net->compiled = true;
    return MICA_OK;
}

mica_status mica_net_compile(mica_net *net, const mica_compile_opts *opts)
{
    static const mica_compile_opts defaults = {0};
    if (net->status == MICA_OK && net->open_layer != NONE)
        (void)mica_net_refuse(net, MICA_ERR_STATE, "layer \"%s\" was begun but not ended",
                              net->layers[net->open_layer].name);
    if (net->status != MICA_OK) {
        if (net->error != NULL)
            memcpy(net->ctx->error, net->error, MICA_ERROR_TEXT);
        return net->ctx->status = net->status;
    }
    if (net->block != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_compile: the net is already bound");
#if !defined(MICA_SMALL)
    mica_status before = net->ctx->status;
    char text[MICA_ERROR_TEXT];
    memcpy(text, net->ctx->error, sizeof text);
#endif
    mica_status status = compile(net, opts != NULL ? opts : &defaults);
    net->status = MICA_OK; /* what failed is this plan: the net is built, and another plan may do */
#if !defined(MICA_SMALL)
    if (status == MICA_OK) { /* parts that were tried, and that some call refused, are no failure */
        net->ctx->status = before;
        memcpy(net->ctx->error, text, sizeof text);
    }
#endif
    return status;
}

const mica_plan *mica_net_plan(const mica_net *net) { return net->compiled ? &net->plan : NULL; }
