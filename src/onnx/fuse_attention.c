/* Attention as exporters write it: two products around a softmax, with scales, a mask, and the moves that bring heads
 * to the front and back. */
#include <string.h>

#include "node/entry.h"
#include "onnx/fuse.h"
#include "onnx/moves.h"

/* What c, the scale, does. */
enum { MULTIPLIES, DIVIDES };

/* ---- Moves ---- */

/* The call that makes `ref`, if it permutes axes in this way. */
static const mica_onnx_recorded *permuted(const mica_onnx_importing *n, mica_onnx_ref ref, int rank,
                                          const int *axes)
{
    const mica_onnx_recorded *p = mica_onnx_made_by(n, ref, "permute");
    if (p == NULL || mica_onnx_held_at(n->import, ref)->shape.rank != rank)
        return NULL;
    const mica_permute_opts *opts = p->opts;
    for (int k = 0; k < rank; k++)
        if (opts->axes[k] != axes[k])
            return NULL;
    return p;
}

/* The last two axes of a value of rank 3 or 4, exchanged. What has just been exchanged is taken as it was before. */
static mica_onnx_ref exchange_last(mica_onnx_importing *n, mica_onnx_ref ref)
{
    const mica_tensor *shape = mica_onnx_shape(n, ref);
    int rank = shape->rank, axes[MICA_MAX_RANK], moved[MICA_MAX_RANK];
    bool same = true;
    for (int k = 0; k < rank; k++)
        moved[k] = k < rank - 2 ? k : 2 * rank - 3 - k;
    const mica_onnx_recorded *p = mica_onnx_made_by(n, ref, "permute"),
                             *r = mica_onnx_made_by(n, ref, "reshape");
    if (p != NULL) {
        for (int k = 0; k < rank; k++) {
            axes[k] = ((const mica_permute_opts *)p->opts)->axes[moved[k]];
            same = same && axes[k] == k;
        }
        return same ? p->in[0] : mica_onnx_permute(n, p->in[0], axes);
    }
    /* [B, H, T, D] -> [B * H, T, D] -> [B * H, D, T] -> [B, H, D, T] */
    p = r != NULL ? permuted(n, r->in[0], 3, (int[]){0, 2, 1}) : NULL;
    r = p != NULL ? mica_onnx_made_by(n, p->in[0], "reshape") : NULL;
    const mica_tensor *x = r != NULL ? mica_onnx_shape(n, r->in[0]) : NULL;
    if (x != NULL && rank == 4 && x->rank == 4 && x->dim[0] == shape->dim[0] && x->dim[1] == shape->dim[1] &&
        x->dim[2] == shape->dim[3] && x->dim[3] == shape->dim[2] &&
        mica_onnx_shape(n, p->in[0])->dim[1] == x->dim[2] &&
        mica_onnx_shape(n, p->in[0])->dim[2] == x->dim[3])
        return r->in[0];
    return mica_onnx_permute(n, ref, moved);
}

/* ---- Products around a softmax ---- */

static bool takes_last(mica_onnx_importing *n, const mica_onnx_match *m, int rank)
{
    mica_onnx_importing softmax = mica_onnx_as_node(n, m, 's');
    int64_t axis = mica_onnx_int(&softmax, "axis", softmax.opset >= 13 ? -1 : 1);
    return axis == -1 || axis == rank - 1;
}

static bool scale_of(mica_onnx_importing *n, const mica_onnx_match *m, int kind, float *out)
{
    double scale = 1, number;
    mica_onnx_ref c = mica_onnx_matched(m, 'c'), d = mica_onnx_matched(m, 'd');
    if (c != 0 && (!mica_onnx_is_number(n, c, &number) || number == 0))
        return false;
    if (c != 0)
        scale = kind == DIVIDES ? 1 / number : number;
    if (d != 0 && !mica_onnx_is_number(n, d, &number))
        return false;
    *out = (float)(d != 0 ? scale * number : scale);
    return *out > 0;
}

/* Whether a mask broadcasts to the scores of q [..., Tq, D] and t [..., D, Tk]. A mask has no gradient. */
static bool masks(mica_onnx_importing *n, mica_onnx_ref mask, const mica_tensor *q, const mica_tensor *t)
{
    const mica_tensor *shape = mica_onnx_shape(n, mask);
    const mica_onnx_held *held = mica_onnx_held_at(n->import, mask);
    bool learns = mica_onnx_may_train(n) && (held->trained || held->learned);
    bool fits = shape->dtype == MICA_F32 && shape->rank <= q->rank && !learns;
    for (int k = 1; fits && k <= shape->rank; k++) {
        mica_index whole = k == 1 ? t->dim[t->rank - 1] : q->dim[q->rank - k];
        fits = shape->dim[shape->rank - k] == 1 || shape->dim[shape->rank - k] == whole;
    }
    return fits;
}

static bool shapes_fit(mica_onnx_importing *n, const mica_tensor *q, const mica_tensor *t,
                       const mica_tensor *v, mica_onnx_ref mask)
{
    int rank = q->rank;
    bool fits = (rank == 3 || rank == 4) && t->rank == rank && v->rank == rank && q->dtype == MICA_F32 &&
                t->dtype == MICA_F32 && v->dtype == MICA_F32;
    for (int k = 0; fits && k < rank - 2; k++)
        fits = q->dim[k] == t->dim[k] && q->dim[k] == v->dim[k];
    return fits && q->dim[rank - 1] == t->dim[rank - 2] && v->dim[rank - 1] == q->dim[rank - 1] &&
           v->dim[rank - 2] == t->dim[rank - 1] && (mask == 0 || masks(n, mask, q, t));
}

static bool attention_of(mica_onnx_importing *n, const mica_onnx_match *m, int kind)
{
    mica_onnx_ref in[] = {mica_onnx_matched(m, 'q'), mica_onnx_matched(m, 't'), mica_onnx_matched(m, 'v'),
                          mica_onnx_matched(m, 'm')};
    mica_tensor q = *mica_onnx_shape(n, in[0]), t = *mica_onnx_shape(n, in[1]),
                v = *mica_onnx_shape(n, in[2]);
    mica_attention_opts opts = {0};
    if (!shapes_fit(n, &q, &t, &v, in[3]) || !takes_last(n, m, q.rank) ||
        !scale_of(n, m, kind, &opts.scale) || mica_onnx_is_known(n, in[0]))
        return false;
    in[1] = exchange_last(n, in[1]);
    for (int k = 0; k < 4 && q.rank == 3; k++)
        if (k < 3 || (in[k] != 0 && mica_onnx_shape(n, in[k])->rank == 3))
            in[k] = mica_onnx_op1(n, "unsqueeze", in[k], &(mica_axis_opts){1});
    mica_onnx_ref y = mica_onnx_op(n, "attention", in, 4, &opts);
    mica_onnx_give(n, 0, q.rank == 3 ? mica_onnx_op1(n, "squeeze", y, &(mica_axis_opts){1}) : y);
    return true;
}

static bool attention(mica_onnx_importing *n, const mica_onnx_match *m)
{
    return attention_of(n, m, MULTIPLIES);
}
static bool attention_divided(mica_onnx_importing *n, const mica_onnx_match *m)
{
    return attention_of(n, m, DIVIDES);
}

/* ---- Heads that lie side by side ---- */

/* x of rank 3, if `heads` is [B, T, H * D] -> [B, T, H, D] -> [B, H, T, D] of it; 0 otherwise. */
static mica_onnx_ref rows_of(mica_onnx_importing *n, mica_onnx_ref heads)
{
    const mica_onnx_recorded *p = permuted(n, heads, 4, (int[]){0, 2, 1, 3});
    const mica_onnx_recorded *r = p != NULL ? mica_onnx_made_by(n, p->in[0], "reshape") : NULL;
    if (r == NULL)
        return 0;
    const mica_tensor *x = mica_onnx_shape(n, r->in[0]), *y = mica_onnx_shape(n, heads);
    bool same = x->rank == 3 && x->dim[0] == y->dim[0] && x->dim[1] == y->dim[2];
    return same ? r->in[0] : 0;
}

/* x, if `heads` is part number `part` of [B, T, 3 * H * D] -> [B, T, 3, H, D] -> [3, B, H, T, D]; 0 otherwise. */
static mica_onnx_ref packed_of(mica_onnx_importing *n, mica_onnx_ref heads, int part)
{
    const mica_onnx_recorded *s = mica_onnx_made_by(n, heads, "squeeze");
    if (s == NULL)
        s = mica_onnx_made_by(n, heads, "reshape"); /* without an axis of size 1 */
    mica_onnx_ref of = s != NULL ? s->in[0] : 0;
    const mica_onnx_recorded *cut = mica_onnx_made_by(n, of, "slice"),
                             *split = mica_onnx_made_by(n, of, "split");
    const mica_tensor *part_shape = mica_onnx_shape(n, of);
    bool right = s != NULL && part_shape->rank == 5 && part_shape->dim[0] == 1 &&
                 mica_onnx_has_shape(n, heads, 4, part_shape->dim + 1);
    if (right && cut != NULL) {
        const mica_slice_range_opts *opts = cut->opts;
        right = opts->axis == 0 && opts->start == part && (opts->step == 0 || opts->step == 1);
    } else if (right && split != NULL) {
        const mica_split_opts *opts = split->opts;
        right = opts->axis == 0 && opts->count == 3 && of - split->first == part;
    }
    mica_onnx_ref all = cut != NULL ? cut->in[0] : split != NULL ? split->in[0] : 0;
    const mica_onnx_recorded *p = right && all != 0 ? permuted(n, all, 5, (int[]){2, 0, 3, 1, 4}) : NULL;
    const mica_onnx_recorded *r = p != NULL ? mica_onnx_made_by(n, p->in[0], "reshape") : NULL;
    if (r == NULL)
        return 0;
    const mica_tensor *x = mica_onnx_shape(n, r->in[0]), *y = mica_onnx_shape(n, all);
    right = x->rank == 3 && y->dim[0] == 3 && x->dim[0] == y->dim[1] && x->dim[1] == y->dim[3];
    return right ? r->in[0] : 0;
}

/* Whether a Reshape of [B, T, H, D] gives [B, T, H * D]. */
static bool joins_heads(mica_onnx_importing *n, mica_onnx_ref shape, const mica_tensor *y)
{
    int64_t dims[MICA_MAX_RANK];
    mica_onnx_importing look = *n;
    if (mica_onnx_known_ints(&look, shape, "shape", dims, MICA_MAX_RANK) != 3)
        return false;
    mica_index wanted[] = {y->dim[0], y->dim[2], y->dim[1] * y->dim[3]};
    int left = 0;
    for (int k = 0; k < 3; k++) {
        left += dims[k] == -1;
        bool copied = k < 2 && dims[k] == 0 && mica_onnx_int(n, "allowzero", 0) == 0;
        if (dims[k] != wanted[k] && dims[k] != -1 && !copied)
            return false;
    }
    return left <= 1;
}

/* The heads of attention go back side by side: it can write them there. */
static bool rows(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref y = mica_onnx_matched(m, 'y');
    const mica_onnx_recorded *a = mica_onnx_made_by(n, y, "attention");
    mica_onnx_importing move = mica_onnx_as_node(n, m, 'p');
    int64_t axes[MICA_MAX_RANK];
    if (a == NULL || a->first != y || mica_onnx_int_list(&move, "perm", axes, MICA_MAX_RANK) != 4 ||
        axes[0] != 0 || axes[1] != 2 || axes[2] != 1 ||
        !joins_heads(n, mica_onnx_matched(m, 'r'), mica_onnx_shape(n, y)))
        return false;
    const mica_attention_opts *opts = a->opts;
    int heads = (int)mica_onnx_shape(n, y)->dim[1], shared = (int)mica_onnx_shape(n, a->in[1])->dim[1];
    mica_attention_packed_opts how = {.heads = heads,
                                      .kv_heads = shared < heads ? shared : 0,
                                      .causal = opts->causal,
                                      .scale = opts->scale};
    mica_onnx_ref mask = a->ins > 3 ? a->in[3] : 0, x = packed_of(n, a->in[0], 0);
    if (x != 0 && packed_of(n, a->in[1], 1) == x && packed_of(n, a->in[2], 2) == x) {
        mica_onnx_give(n, 0,
                       mica_onnx_call(n, &mica_op_attention_packed, (mica_onnx_ref[]){x, mask}, 2, &how));
        return true;
    }
    mica_onnx_ref in[] = {rows_of(n, a->in[0]), rows_of(n, a->in[1]), rows_of(n, a->in[2]), mask};
    if (in[0] == 0 || in[1] == 0 || in[2] == 0)
        return false;
    mica_onnx_give(n, 0, mica_onnx_call(n, &mica_op_attention_rows, in, 4, &how));
    return true;
}

/* clang-format off */
#define AROUND(scores) "MatMul(s:Softmax(" scores "),v)"
#define SCALED(function, op)                             \
    {AROUND("Add(" op "(MatMul(q,t),#c),m)"), function}, \
    {AROUND(op "(MatMul(q,t),#c)"), function},           \
    {AROUND("Add(MatMul(" op "(q,#c),t),m)"), function}, \
    {AROUND("MatMul(" op "(q,#c),t)"), function}

const mica_onnx_pattern mica_onnx_attention_patterns[] = {
    {AROUND("Add(MatMul(Mul(q,#c),Mul(t,#d)),m)"), attention},
    {AROUND("MatMul(Mul(q,#c),Mul(t,#d))"), attention},
    SCALED(attention, "Mul"),
    SCALED(attention_divided, "Div"),
    {AROUND("Add(MatMul(q,t),m)"), attention},
    {AROUND("MatMul(q,t)"), attention},
    {"Reshape(p:Transpose(y),#r)", rows},
    {NULL, NULL},
};
/* clang-format on */
