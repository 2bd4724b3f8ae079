/* Whether a net can take a batch in parts, and about how long a step in parts takes. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"

#if !defined(MICA_SMALL)

/* ---- Whether ---- */

/* What lasts, and is more than weights: a state, a cache. What an embedding notes is for its backward alone. */
static bool keeps_more(const mica_net *net, const mica_node *node)
{
    for (int i = 0; i < node->ins; i++) {
        const mica_value_info *v = node->in[i] != NONE ? &net->values[node->in[i]] : NULL;
        if (v != NULL && v->home == MICA_HOME_KEPT && v->kept != MICA_KEPT_STATISTICS &&
            node->op != &mica_op_embedding)
            return true;
    }
    return false;
}

/* Random numbers would be others for each part; a loss would be that of the last. */
bool mica_net_can_infer_parts(mica_net *net)
{
    for (int n = 0; n < net->node_count; n++) {
        const mica_node *node = &net->nodes[n];
        bool random = (node->op->flags & MICA_OP_RANDOM) != 0 && node->op != &mica_op_dropout;
        if (random || (node->op->flags & MICA_OP_LOSS) || keeps_more(net, node))
            return false;
    }
    return !net->continues && mica_net_can_part(net);
}

/* The share of the forward's arithmetic that must be in calls that are as fast for fewer samples. */
#define ALIKE 0.95

/* Products of many rows and attention are. A convolution is not, which gives threads images, nor is a recurrent call,
 * which has a product of as many rows as there are samples for every step of a sequence. */
static bool is_alike(const mica_op *op)
{
    return op->family != NULL && (strcmp(op->family, "linalg") == 0 || strcmp(op->family, "attention") == 0);
}

/* Statistics of a batch would be those of a part. */
bool mica_net_can_train_parts(mica_net *net)
{
    double all = 0.0, alike = 0.0;
    for (int e = 0; e < net->forward_count; e++) {
        const mica_op *op = net->nodes[net->entries[e].origin].op;
        all += net->entries[e].flops;
        alike += is_alike(op) ? net->entries[e].flops : 0.0;
        if (op->writes != 0)
            return false;
    }
    return alike >= ALIKE * all && mica_net_can_part(net);
}

/* ---- How long a step takes ----
 *
 * Only differences between plans count, so this knows what differs: what calls hand on to one another stays in the
 * cache if there is little of it, weights are read again for every part, and convolutions take other paths for fewer
 * images, of which they tell the time themselves (layout.c). Fitted to nets of convolutions and of products, on one
 * core with AVX-512. */

/* A core can count on a share of the cache behind its second one: so many times the bytes of the second. From so many
 * times that share on, all that a call works on comes from memory. */
#define CACHE_FACTOR 8.0
#define FAR_FACTOR   4.0
/* ns: for a byte between calls that leaves the cache, a byte of weights, an operation, and a call. */
#define FAR_BYTE    0.06
#define WEIGHT_BYTE 0.1
#define OPERATION   0.01
#define CALL        200.0

/* What a call moves: of samples, what of that lies between two calls, and weights. */
typedef struct moved {
    double samples, between, weights;
} moved;

static void add_moved(const mica_net *net, int value, moved *sum)
{
    const mica_value_info *v = &net->values[value], *root = &net->values[v->root];
    double bytes = (double)mica_tensor_bytes(&v->tensor);
    if (root->home != MICA_HOME_PLANNED) {
        sum->weights += bytes;
        return;
    }
    sum->samples += bytes;
    if (root->kind != MICA_BUFFER_INPUT && !root->output && !root->whole)
        sum->between += bytes;
}

static moved moved_by(const mica_net *net, const mica_entry *entry)
{
    const mica_node *node = &entry->node;
    moved sum = {0.0, 0.0, 0.0};
    for (int i = 0; i < node->ins; i++)
        if (node->in[i] != NONE)
            add_moved(net, node->in[i], &sum);
    for (int k = 0; k < node->outs; k++)
        if (node->out[k] != NONE)
            add_moved(net, node->out[k], &sum);
    if (node->op->flags & MICA_OP_PICKS)
        sum.weights = 0.0;
    for (int i = 0; i < node->ins; i++) /* what it was prepared from is not read */
        if (node->in[i] != NONE && net->values[node->in[i]].kind == MICA_BUFFER_PREPARED)
            sum.weights = (double)mica_tensor_bytes(&net->values[node->in[i]].tensor);
    return sum;
}

static double far_time_of(const mica_net *net, const moved *m)
{
    double cache = (double)net->ctx->second_cache * CACHE_FACTOR,
           far = (m->samples / cache - 1.0) / (FAR_FACTOR - 1.0);
    return FAR_BYTE * m->between * (far < 0.0 ? 0.0 : far < 1.0 ? far : 1.0);
}

static double parts_of(const mica_net *net)
{
    mica_index rows = net->part_rows > 0 ? net->part_rows : 1, parts = (net->size[0].most + rows - 1) / rows;
    return (double)parts;
}

double mica_net_step_time(const mica_net *net)
{
    double sum = 0.0;
    for (int e = 0; e < net->entry_count; e++) {
        const mica_entry *entry = &net->entries[e];
        moved m = moved_by(net, &net->entries[e]);
        double own = entry->time > 0.0 ? entry->time : OPERATION * entry->flops + WEIGHT_BYTE * m.weights;
        sum += CALL + own + far_time_of(net, &m);
    }
    return sum * parts_of(net);
}

/* What is kept for the backward leaves the cache in any case. Weights are read and gradients added to beside the
 * arithmetic, for each part. */
double mica_net_training_time(const mica_net *net)
{
    double sum = 0.0;
    for (int e = 0; e < net->entry_count; e++) {
        moved m = moved_by(net, &net->entries[e]);
        sum += CALL + OPERATION * net->entries[e].flops + WEIGHT_BYTE * m.weights;
    }
    return sum * parts_of(net);
}

#endif
