/* Joined walks over several layouts. */
#include "ops/walk.h"

#include <string.h>

static mica_index magnitude(mica_index stride) { return stride < 0 ? -stride : stride; }

/* Strides of t as if it had the first operand's rank and shape: 0 along broadcast axes. */
static void broadcast_strides(mica_index *stride, const mica_tensor *t, const mica_tensor *to)
{
    int missing = to->rank - t->rank;
    for (int i = 0; i < to->rank; i++) {
        bool stays = i < missing || (t->dim[i - missing] == 1 && to->dim[i] != 1);
        stride[i] = stays ? 0 : t->stride[i - missing];
    }
}

static void swap_axes(mica_walk *w, int a, int b)
{
    mica_index d = w->dim[a];
    w->dim[a] = w->dim[b];
    w->dim[b] = d;
    for (int k = 0; k < w->operands; k++) {
        mica_index s = w->stride[k][a];
        w->stride[k][a] = w->stride[k][b];
        w->stride[k][b] = s;
    }
}

/* Largest step of operand 0 first. Insertion sort: stable, and there are at most eight axes. */
static void sort_axes(mica_walk *w)
{
    for (int i = 1; i < w->rank; i++)
        for (int j = i; j > 0 && magnitude(w->stride[0][j - 1]) < magnitude(w->stride[0][j]); j--)
            swap_axes(w, j - 1, j);
}

/* Walks axes that operand 0 stores backwards from their other end. */
static void unflip_axes(mica_walk *w)
{
    for (int i = 0; i < w->rank; i++) {
        if (w->stride[0][i] >= 0)
            continue;
        for (int k = 0; k < w->operands; k++) {
            mica_index bytes = (mica_index)mica_dtype_bytes(w->dtype[k]);
            w->data[k] += (w->dim[i] - 1) * w->stride[k][i] * bytes;
            w->stride[k][i] = -w->stride[k][i];
        }
    }
}

/* Whether axis `outer` continues axis `inner` in every operand. */
static bool continues(const mica_walk *w, int outer, int inner)
{
    for (int k = 0; k < w->operands; k++)
        if (w->stride[k][outer] != w->stride[k][inner] * w->dim[inner])
            return false;
    return true;
}

/* Drops axes of one element and joins those that continue one another. */
static void join_axes(mica_walk *w)
{
    int kept = 0;
    for (int i = 0; i < w->rank; i++) {
        if (w->dim[i] == 1)
            continue;
        bool joins = kept > 0 && continues(w, kept - 1, i);
        int into = joins ? kept - 1 : kept++;
        w->dim[into] = joins ? w->dim[into] * w->dim[i] : w->dim[i];
        for (int k = 0; k < w->operands; k++)
            w->stride[k][into] = w->stride[k][i];
    }
    if (kept == 0) { /* one element */
        w->dim[0] = 1;
        for (int k = 0; k < w->operands; k++)
            w->stride[k][0] = 1;
        kept = 1;
    }
    w->rank = kept;
}

void mica_walk_init(mica_walk *w, const mica_tensor *const *operands, int count)
{
    const mica_tensor *first = operands[0];
    w->operands = count;
    w->rank = first->rank;
    w->count = mica_tensor_count(first);
    memcpy(w->dim, first->dim, sizeof w->dim);
    for (int k = 0; k < count; k++) {
        w->data[k] = operands[k]->data;
        w->dtype[k] = operands[k]->dtype;
        broadcast_strides(w->stride[k], operands[k], first);
    }
    if (w->count == 0)
        return;
    unflip_axes(w);
    sort_axes(w);
    join_axes(w);
}

mica_walk_place mica_walk_at(const mica_walk *w, size_t position)
{
    mica_walk_place c = {{0}};
    if (position == 0)
        return c;
    for (int i = w->rank - 1; i >= 0; i--) {
        c.index[i] = (mica_index)(position % (size_t)w->dim[i]);
        position /= (size_t)w->dim[i];
    }
    return c;
}
