/* What a comparison with one twin may miss. A number that follows from a size by sums and products differs in the twin,
 * or is the same at all sizes. One that is rounded (a third of a length) or limited (at most 4) may be the same in
 * both, or follow a size in both, but not elsewhere; and so may a condition. So may an axis behind windows with a
 * stride, or a slice. Where numbers that differ in the twin meet anything but what is known to keep them exact, or an
 * axis that differs meets such an operation, the import is doubtful, and is compared at more sizes (twin.c). A test for
 * equality might hold at a size that is not among these. */
#include <string.h>

#include "onnx/state.h"

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(name, names) is_one_of(name, names, sizeof names / sizeof names[0])

mica_onnx_likeness mica_onnx_in_twin(const mica_onnx_import *im, mica_onnx_ref ref)
{
    if (ref >= im->twin->count)
        return MICA_ONNX_OTHER;
    const mica_onnx_held *held = mica_onnx_held_at(im, ref), *twin = mica_onnx_held_at(im->twin, ref);
    const mica_tensor *x = &held->shape, *y = &twin->shape;
    if (!held->known || !twin->known || x->dtype != y->dtype)
        return MICA_ONNX_OTHER;
    if (!mica_tensor_same_shape(x, y))
        return MICA_ONNX_LONGER;
    size_t bytes = mica_tensor_bytes(x);
    return bytes == 0 || x->data == y->data || memcmp(x->data, y->data, bytes) == 0 ? MICA_ONNX_SAME
                                                                                    : MICA_ONNX_OTHER;
}

static bool is_whole(mica_dtype dtype) { return dtype == MICA_I64 || dtype == MICA_I32; }

/* Their difference at place i is the same in the twin. */
static bool is_as_far(const mica_onnx_import *im, const mica_onnx_ref *ins, size_t i)
{
    int64_t far[2];
    for (int t = 0; t < 2; t++) {
        const mica_onnx_import *in = t == 0 ? im : im->twin;
        const int64_t *a = mica_onnx_held_at(in, ins[0])->shape.data,
                      *b = mica_onnx_held_at(in, ins[1])->shape.data;
        far[t] = (int64_t)((uint64_t)a[i] - (uint64_t)b[i]);
    }
    return far[0] == far[1];
}

/* Whether this comparison has one result at all sizes. Exporters look for the -1 and 0 of Reshape in shapes, and no
 * size equals these; any other constant may be some size. Two numbers whose difference does not change meet always or
 * never. */
static bool never_meet(const mica_onnx_import *im, const mica_onnx_ref *ins, unsigned others, unsigned loose)
{
    others |= loose;
    const mica_onnx_held *a = mica_onnx_held_at(im, ins[0]), *b = mica_onnx_held_at(im, ins[1]);
    const mica_onnx_held *constant = others == 1 ? b : a, *differs = others == 1 ? a : b;
    bool never = a->shape.dtype == MICA_I64, both = others == 3;
    for (int i = 0; i < 2 && both; i++) {
        const mica_onnx_held *mine = i == 0 ? a : b,
                             *then = ins[i] < im->twin->count ? mica_onnx_held_at(im->twin, ins[i]) : NULL;
        never = never && mica_tensor_same_shape(&a->shape, &b->shape) && then != NULL && then->known &&
                then->shape.dtype == MICA_I64 && mica_tensor_same_shape(&mine->shape, &then->shape);
    }
    if (both ? loose != 0 : differs->falls)
        return false;
    for (size_t i = 0; never && i < mica_tensor_count(&constant->shape); i++)
        never = both ? is_as_far(im, ins, i) : ((const int64_t *)constant->shape.data)[i] <= 0;
    return never;
}

static bool has_negative(const mica_tensor *x)
{
    size_t count = x->dtype == MICA_I64 ? mica_tensor_count(x) : 0;
    for (size_t i = 0; i < count; i++)
        if (((const int64_t *)x->data)[i] < 0)
            return true;
    return false;
}

bool mica_onnx_is_loose(const mica_onnx_import *im, const mica_onnx_ref *ins, int count)
{
    for (int i = 0; i < count; i++)
        if (ins[i] != 0 && mica_onnx_held_at(im, ins[i])->loose)
            return true;
    return false;
}

bool mica_onnx_may_fall(const mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count)
{
    static const char *const falling[] = {"sub", "neg"}, *const by_negative[] = {"add", "mul", "sum", "prod"};
    bool sums = IS_ONE_OF(op->name, by_negative);
    for (int i = 0; i < count; i++) {
        const mica_onnx_held *held = ins[i] != 0 ? mica_onnx_held_at(im, ins[i]) : NULL;
        if (held != NULL && (held->falls || (sums && has_negative(&held->shape))))
            return true;
    }
    return IS_ONE_OF(op->name, falling);
}

/* Of an operation on numbers that differ; bit i of `others`: input i does. */
static bool is_exact(const mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, unsigned others,
                     mica_dtype to)
{
    static const char *const sums[] = {"add", "sub", "mul", "neg", "sum", "prod"};
    static const char *const by_index[] = {"take", "gather"};
    const mica_tensor *first = &mica_onnx_held_at(im, ins[0])->shape;
    if (strcmp(op->family, "shape") == 0)
        return !IS_ONE_OF(op->name, by_index) || (others & ~1u) == 0;
    if (strcmp(op->name, "copy") == 0)
        return first->dtype == to || (is_whole(first->dtype) && (is_whole(to) || to == MICA_F32));
    if (strcmp(op->name, "where") == 0)
        return (others & 1u) == 0;
    return is_whole(first->dtype) && IS_ONE_OF(op->name, sums);
}

/* Of tables that are longer than their twins: an element follows from those at its place. */
static bool is_by_element(const mica_op *op)
{
    static const char *const families[] = {"shape", "copy", "elementwise", "bits", "compare", "activation"};
    return IS_ONE_OF(op->family, families);
}

void mica_onnx_doubt_folded(mica_onnx_import *im, const mica_op *op, const mica_onnx_ref *ins, int count,
                            mica_dtype to)
{
    unsigned others = 0, longer = 0, loose = 0;
    for (int i = 0; i < count && im->twin != NULL; i++) {
        mica_onnx_likeness likeness = ins[i] != 0 ? mica_onnx_in_twin(im, ins[i]) : MICA_ONNX_SAME;
        others |= likeness == MICA_ONNX_OTHER ? 1u << i : 0u;
        longer |= likeness == MICA_ONNX_LONGER ? 1u << i : 0u;
        loose |= mica_onnx_is_loose(im, &ins[i], 1) ? 1u << i : 0u;
    }
    if ((others | loose) != 0 && (strcmp(op->name, "eq") == 0 || strcmp(op->name, "ne") == 0)) {
        if (im->fixed == NULL &&
            !never_meet(im, ins, others, loose)) /* no other sizes would tell of that one */
            im->fixed = "the model tests a size for equality";
        return;
    }
    if ((others != 0 && (op->family == NULL || !is_exact(im, op, ins, others, to))) ||
        (longer != 0 && (op->family == NULL || !is_by_element(op))))
        im->doubtful = true;
}

void mica_onnx_doubt_node(mica_onnx_importing *n)
{
    /* What takes numbers as they are. Branches and turns are compared as such, and Slice and Range look themselves. */
    static const char *const exact[] = {"Reshape", "Expand", "ConstantOfShape", "Tile",     "Slice", "Range",
                                        "If",      "Loop",   "Squeeze",         "Unsqueeze"};
    if (n->sized && !IS_ONE_OF(n->node->type, exact))
        n->import->doubtful = true;
}

void mica_onnx_doubt_numbers(mica_onnx_importing *n)
{
    n->import->doubtful = n->import->doubtful || n->sized;
}

void mica_onnx_doubt_axis(mica_onnx_importing *n, mica_onnx_ref ref, int axis)
{
    if (mica_onnx_axis_varies(n->import, ref, axis))
        n->import->doubtful = n->import->rounds = true;
}
