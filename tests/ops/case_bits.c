/* Cases of the operations on bits; test_typed.c compares them, and arithmetic in other types than f32, in full. */
#include "ops/map_case.h"

static void draw_integers(op_call *c, test_random *r, int inputs)
{
    static const mica_dtype dtypes[] = {MICA_I64, MICA_I32, MICA_U8, MICA_U32, MICA_U64};
    map_draw(c, r, inputs);
    mica_dtype dtype = dtypes[test_int(r, 0, 4)];
    for (int k = 0; k <= inputs; k++)
        c->tensor[k].dtype = dtype;
}
static void draw_integers1(op_call *c, test_random *r) { draw_integers(c, r, 1); }
static void draw_integers2(op_call *c, test_random *r) { draw_integers(c, r, 2); }

#define BITS_CASE(op, inputs, call_, expression)        \
    MAP_CASE(op, inputs, NULL, 0.0, call_, expression); \
    __attribute__((constructor)) static void bits_##op(void) { op_case_##op.draw = draw_integers##inputs; }

/* All ones of an unsigned type, -1 of others. */
static double not_of(const op_call *c, double a)
{
    double most = c->tensor[0].dtype == MICA_U8    ? 255.0
                  : c->tensor[0].dtype == MICA_U32 ? 4294967295.0
                  : c->tensor[0].dtype == MICA_U64 ? 18446744073709551615.0
                                                   : -1.0;
    return most - a;
}

BITS_CASE(bit_and, 2, mica_bit_and(ctx, dst, x, y), (double)((int)a &(int)b))
BITS_CASE(bit_or, 2, mica_bit_or(ctx, dst, x, y), (double)((int)a | (int)b))
BITS_CASE(bit_xor, 2, mica_bit_xor(ctx, dst, x, y), (double)((int)a ^ (int)b))
BITS_CASE(bit_not, 1, mica_bit_not(ctx, dst, x), not_of(call, a))
BITS_CASE(shift_left, 2, mica_shift_left(ctx, dst, x, y),
          call->tensor[0].dtype == MICA_U8 ? (double)(((int)a << (int)b) & 255) * (b < 8)
                                           : (double)((int)a << (int)b))
BITS_CASE(shift_right, 2, mica_shift_right(ctx, dst, x, y), (double)((int)a >> (int)b))
