/* Operation cases: what the tests need to know of an operation to try it in every way.
 *
 * A case says how to draw a random call, how to make it, and what the result is in double precision.
 * test_ops.c does the rest for every case: hundreds of random shapes and layouts against the reference,
 * aliasing, wrong arguments of every kind, measured workspaces, heap calls, and the same bits for any number
 * of threads.
 *
 *     static void draw(op_call *c, test_random *r)
 *     {
 *         mica_index dims[MICA_MAX_RANK];
 *         int rank = op_random_shape(c, r, 0, 4, dims);
 *         op_tensor(c, 0, MICA_F32, rank, dims);
 *         op_tensor(c, 1, MICA_F32, rank, dims);
 *     }
 *     static mica_status run(mica_context *ctx, const op_call *c)
 *     {
 *         return mica_square(ctx, OP(c, 0), OP(c, 1));
 *     }
 *     static void reference(const op_call *c, double *const *v)
 *     {
 *         for (size_t i = 0; i < op_count(c, 0); i++)
 *             v[0][i] = v[1][i] * v[1][i];
 *     }
 *     OP_CASE(square) = {.names = {"dst", "a"}, .outs = 1, .ins = 1, .in_place = OP_BIT(1),
 *                        .draw = draw, .run = run, .reference = reference, .tolerance = 1e-6};
 *
 * Tensors are numbered: outputs first, then inputs. MICA_OP=name limits the tests to one operation. */
#ifndef MICA_TESTS_OPS_OP_CASE_H
#define MICA_TESTS_OPS_OP_CASE_H

#include "test.h"

#define OP_TENSORS     20
#define OP_BIT(tensor) (1u << (tensor))

/* One call: tensors, and options in the case's own numbering. */
typedef struct op_call {
    mica_tensor tensor[OP_TENSORS];
    bool absent[OP_TENSORS]; /* an optional tensor that is given as NULL */
    long i[32];              /* options: integers */
    double f[16];            /* options: numbers */
    bool large;              /* draw sizes that several threads share; no reference is computed */
    double scale;            /* errors are relative to max(|reference|, scale); 1 unless the case sets it */
    const struct op_case *op;
} op_call;

typedef struct op_case {
    const char *name; /* set by OP_CASE */
    struct op_case *next;

    const char *names[OP_TENSORS]; /* of the tensors, as in error messages */
    int outs, ins;
    unsigned in_place;   /* inputs that may be exactly output 0 */
    unsigned optional;   /* tensors that may be NULL */
    unsigned reads_outs; /* outputs that are read too (accumulated into, running statistics) */
    unsigned
        any_shape; /* tensors whose shape may differ without an error (they broadcast, or are broadcast to) */
    unsigned any_dtype;  /* tensors that take any dtype */
    unsigned blocks;     /* tensors that take block-quantized types too */
    unsigned contiguous; /* tensors that the operation requires to be contiguous */
    int axis_option;     /* 1 + the number in i[] of an axis option; 0: none */
    int draws;           /* random cases; 0: 200 */
    double tolerance;

    /* Chooses shapes, dtypes and options: op_tensor for every tensor that is present. */
    void (*draw)(op_call *c, test_random *r);
    /* Values for a tensor, row-major; NULL: normal numbers (small integers for integer dtypes). */
    void (*fill)(const op_call *c, test_random *r, int tensor, double *value, size_t count);
    mica_status (*run)(mica_context *ctx, const op_call *c);
    /* Makes axes of data (batch, length, height, width) smaller or larger, tensors row-major again; NULL: any sizes,
     * as far as the operation takes them. */
    void (*resize)(op_call *c, test_random *r, bool larger);
    /* v[t]: the elements of tensor t in row-major order. Inputs are filled; the outputs are to be (those in
     * reads_outs hold what they held before). */
    void (*reference)(const op_call *c, double *const *v);
} op_case;

void op_register(op_case *op, const char *name);
const op_case *op_cases(void);

#define OP_CASE(op)                                                                                      \
    static op_case op_case_##op;                                                                         \
    __attribute__((constructor)) static void register_op_##op(void) { op_register(&op_case_##op, #op); } \
    static op_case op_case_##op

/* ---- For draw ---- */

/* Gives a tensor its dtype and shape. The harness chooses memory and layout. */
void op_tensor(op_call *c, int tensor, mica_dtype dtype, int rank, const mica_index *dims);
/* A random shape: small with an empty axis now and then, or, for large calls, some 100,000 elements. Returns
 * the rank. */
int op_random_shape(const op_call *c, test_random *r, int low_rank, int high_rank, mica_index *dims);
/* A shape that broadcasts to dims[rank]: some axes 1, some leading ones dropped. Returns its rank. */
int op_random_broadcast(test_random *r, int rank, const mica_index *dims, mica_index *out);

/* ---- For run ---- */

/* The tensor, or NULL where it is absent. */
#define OP(c, n) ((c)->absent[n] ? NULL : &(c)->tensor[n])

/* ---- For reference ---- */

size_t op_count(const op_call *c, int tensor);
/* Where element i of a row-major `to` shape lies in a tensor that broadcasts to it, row-major. */
size_t op_broadcast_index(const mica_tensor *t, const mica_tensor *to, size_t i);
/* The gradient of loss by x[count], by central differences. loss reads x, which is changed and restored. */
void op_numeric_gradient(double *gradient, double *x, size_t count, double (*loss)(void *user), void *user);

#endif
