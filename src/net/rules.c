/* Rules: how shapes follow from the sizes of a step, so that a smaller step need not infer every call again.
 *
 * Nearly every dimension is a constant times one or two sizes of the step, plus a constant: the batch, the batch times
 * the length. Compiling finds these rules by probing some sizes, and checks them against inference at others. A size
 * that some value depends on in another way (through a strided convolution, say) has no rules: it is inferred. */
#include <string.h>

#include "net/net.h"

/* Sizes at which rules are probed: the smallest, and a run of the largest, where a stride or a window would show. */
enum { SMALL_TRIES = 4, LARGE_TRIES = 9, MIXED_TRIES = 8 };

typedef struct finding {
    mica_net *net;
    mica_index most[MICA_SIZES]; /* of a step, or of a part of it */
} finding;

/* Infers all shapes for these sizes. Where that fails some shapes have changed, and others not: they go back at once,
 * as inference looks only at what has changed since the last time. */
static mica_status infer_at(finding *f, const mica_index *sizes)
{
    for (int i = 0; i < f->net->size_count; i++)
        f->net->size[i].now = sizes[i];
    mica_status status = mica_net_infer_shapes(f->net);
    if (status != MICA_OK && sizes != f->most)
        (void)infer_at(f, f->most);
    return status;
}

static mica_index value_of(const mica_rule *rule, const mica_index *sizes)
{
    mica_index product = rule->factor;
    for (int i = 0; rule->sizes >> i; i++)
        product *= (rule->sizes >> i & 1u) ? sizes[i] : 1;
    return product + rule->plus;
}

/* Notes which axes change where size number s is one less than the most, and by how much. `all` has every axis. */
static void note_changes(finding *f, int s, mica_rule *all)
{
    mica_net *net = f->net;
    mica_index sizes[MICA_SIZES];
    memcpy(sizes, f->most, sizeof sizes);
    sizes[s]--;
    if (infer_at(f, sizes) != MICA_OK) {
        net->inferred |= 1u << s;
        return;
    }
    for (int i = 0; i < net->value_count; i++) {
        const mica_value_info *v = &net->values[i];
        for (int k = 0; k < v->tensor.rank; k++) {
            mica_rule *rule = &all[i * MICA_MAX_RANK + k];
            if (v->tensor.dim[k] == v->widest[k])
                continue;
            rule->sizes |= 1u << s;
            rule->factor = v->widest[k] - v->tensor.dim[k]; /* of several, their product's is found later */
        }
    }
}

/* Keeps the axes that follow a size. */
static mica_status keep_rules(finding *f, const mica_rule *all)
{
    mica_net *net = f->net;
    for (int i = 0; i < net->value_count * MICA_MAX_RANK; i++) {
        if (all[i].sizes == 0)
            continue;
        MICA_TRY(mica_net_grow(net, &net->rules, net->rule_count, &net->rule_room, sizeof *net->rules));
        mica_rule *rule = &net->rules[net->rule_count++];
        *rule = all[i];
        rule->value = i / MICA_MAX_RANK;
        rule->axis = i % MICA_MAX_RANK;
    }
    return MICA_OK;
}

/* Completes the rules from the shapes at the most of every size. */
static void complete_rules(finding *f)
{
    mica_net *net = f->net;
    for (int r = 0; r < net->rule_count; r++) {
        mica_rule *rule = &net->rules[r];
        mica_index widest = net->values[rule->value].widest[rule->axis], product = 1;
        bool single = (rule->sizes & (rule->sizes - 1)) == 0;
        for (int i = 0; rule->sizes >> i; i++)
            product *= (rule->sizes >> i & 1u) ? f->most[i] : 1;
        if (!single && product > 0) /* none of them is 0: each was one less in some try */
            rule->factor = widest / product;
        rule->plus = widest - rule->factor * product;
    }
}

/* Whether all shapes that were just inferred are those of the rules. */
static bool rules_hold(const finding *f, const mica_index *sizes)
{
    const mica_net *net = f->net;
    int changed = 0, ruled = 0;
    for (int i = 0; i < net->value_count; i++)
        for (int k = 0; k < net->values[i].tensor.rank; k++)
            changed += net->values[i].tensor.dim[k] != net->values[i].widest[k];
    for (int r = 0; r < net->rule_count; r++) {
        const mica_rule *rule = &net->rules[r];
        const mica_value_info *v = &net->values[rule->value];
        mica_index size = value_of(rule, sizes);
        if (v->tensor.dim[rule->axis] != size)
            return false;
        ruled += size != v->widest[rule->axis];
    }
    return changed == ruled; /* nothing else changed */
}

/* Tries size number s alone, from the largest down: rules are used for as far as they hold. */
static void try_size(finding *f, int s)
{
    mica_net *net = f->net;
    mica_index sizes[MICA_SIZES], least = f->most[s];
    for (int t = 1; t < LARGE_TRIES + SMALL_TRIES && least > 1; t++) {
        mica_index size = t < LARGE_TRIES ? f->most[s] - t : LARGE_TRIES + SMALL_TRIES - t;
        if (size < 1 || size >= least)
            continue;
        memcpy(sizes, f->most, sizeof sizes);
        sizes[s] = size;
        if (infer_at(f, sizes) != MICA_OK || !rules_hold(f, sizes))
            break;
        least = size;
    }
    net->size[s].ruled = least;
    if (least == f->most[s] && f->most[s] > 1)
        net->inferred |= 1u << s;
}

/* Tries several sizes at once. */
static void try_mixed(finding *f)
{
    mica_net *net = f->net;
    uint64_t random = 0x9e3779b97f4a7c15u;
    for (int t = 0; t < MIXED_TRIES; t++) {
        mica_index sizes[MICA_SIZES];
        for (int i = 0; i < net->size_count; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            mica_index least = net->inferred >> i & 1u ? f->most[i] : net->size[i].ruled;
            sizes[i] = least + (mica_index)((random >> 33) % (uint64_t)(f->most[i] - least + 1));
        }
        if (infer_at(f, sizes) != MICA_OK || !rules_hold(f, sizes))
            net->inferred = ~0u;
    }
}

static mica_status find_rules(finding *f)
{
    mica_net *net = f->net;
    mica_index largest = 0;
    for (int i = 0; i < net->value_count; i++)
        memcpy(net->values[i].widest, net->values[i].tensor.dim, sizeof net->values[i].widest);
    for (int s = 0; s < net->size_count; s++) {
        net->size[s].ruled = f->most[s];
        largest = f->most[s] > largest ? f->most[s] : largest;
    }
    if (largest <= 1) /* there is no smaller step to speak of */
        return MICA_OK;
    size_t bytes = (size_t)net->value_count * MICA_MAX_RANK * sizeof(mica_rule);
    mica_rule *all = mica_allocate(net->ctx, bytes + 1);
    if (all == NULL)
        return net->ctx->status;
    memset(all, 0, bytes);
    for (int s = 0; s < net->size_count; s++)
        if (f->most[s] > 1)
            note_changes(f, s, all);
    mica_status status = keep_rules(f, all);
    mica_release(net->ctx, all, bytes + 1);
    MICA_TRY(status);
    complete_rules(f);
    for (int s = 0; s < net->size_count; s++)
        if (!(net->inferred >> s & 1u))
            try_size(f, s);
    try_mixed(f);
    return MICA_OK;
}

mica_status mica_net_find_rules(mica_net *net)
{
    finding f = {.net = net};
    for (int i = 0; i < net->size_count; i++)
        f.most[i] = net->size[i].now;
    net->rule_count = 0;
    net->inferred = 0;
    mica_status status = find_rules(&f);
    if (status != MICA_OK)
        net->inferred = ~0u;
    mica_status back = infer_at(&f, f.most);
    return status != MICA_OK ? status : back;
}

/* Whether rules tell all shapes of the present sizes. */
static bool are_ruled(const mica_net *net)
{
    for (int i = 0; i < net->size_count; i++)
        if (net->size[i].now != net->size_now[i] &&
            ((net->inferred >> i & 1u) || net->size[i].now < net->size[i].ruled))
            return false;
    for (int i = 0; i < net->size_count; i++) /* shapes must be those of the rules to begin with */
        if (net->size_now[i] < net->size[i].ruled)
            return false;
    return true;
}

mica_status mica_net_update_shapes(mica_net *net)
{
    if (!net->compiled || net->debug || !are_ruled(net))
        return mica_net_infer_shapes(net);
    mica_index now[MICA_SIZES];
    for (int i = 0; i < net->size_count; i++)
        now[i] = net->size_now[i] = net->size[i].now;
    for (int r = 0; r < net->rule_count; r++) {
        const mica_rule *rule = &net->rules[r];
        mica_value_info *v = &net->values[rule->value];
        v->tensor.dim[rule->axis] = value_of(rule, now);
        mica_net_set_strides(v);
    }
    return MICA_OK;
}
