/* Random calls of entries, by their samples: shapes, options and values. */
#ifndef MICA_TESTS_OPS_ENTRY_DRAW_H
#define MICA_TESTS_OPS_ENTRY_DRAW_H

#include <mica/op.h>

#include "test.h"

typedef struct entry_draw {
    const mica_op *op;
    mica_op_sample sample;
    test_random random;
    bool given[MICA_OP_INS];
    mica_tensor in[MICA_OP_INS];         /* with their values */
    mica_tensor out[MICA_OP_OUTS];       /* as inferred, with memory; rank -1: none */
    const mica_tensor *ins[MICA_OP_INS]; /* of in[]; NULL: not given */
} entry_draw;

/* A call of this entry, the same for the same seed. Outputs are inferred, where the entry can. */
void entry_draw_make(entry_draw *d, mica_context *ctx, const mica_op *op, uint64_t seed);
void entry_draw_free(entry_draw *d);

/* Whether output k is a result. Others only backwards read: those that may be missing where the first may not, and have
 * no gradient. */
bool entry_result(const entry_draw *d, int k);

/* Whether MICA_OP in the environment limits the tests to another operation. */
bool entry_skipped(const mica_op *op);

/* Whether the entry can be called on its own. Backwards without a sample are called, and checked, by gradients. */
bool entry_callable(const mica_op *op);

/* A net of one call on the drawn inputs. */
typedef struct entry_net {
    mica_net *net;
    mica_value given[MICA_OP_INS]; /* where the inputs come from */
    mica_value in[MICA_OP_INS], out[MICA_OP_OUTS];
} entry_net;

/* Inputs are inputs of the net, or what is kept if the operation writes to them, or learned if `learned` has their
 * bit: then, with `copied`, the call reads copies of them. What comes out is named "out 0", "out 1", ... */
bool entry_net_make(entry_net *n, mica_context *ctx, const entry_draw *d, unsigned learned, bool copied);
/* Puts the drawn values where the net reads them; those that are learned only the first time. */
bool entry_net_fill(const entry_net *n, const entry_draw *d, unsigned learned, bool again);

#endif
