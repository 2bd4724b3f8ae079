/* The benchmarks: cases, how one is measured, and what comes out.
 *
 * A case is one row: it makes its tensors before the clock starts, and then does one operation again and
 * again. Cases lie in tables, bench/case_FAMILY.c; a new row is one line in one of them. */
#ifndef MICA_BENCH_BENCH_H
#define MICA_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include <mica/mica.h>

/* ---- Cases ---- */

#define BENCH_MOST_TENSORS 20
#define BENCH_MOST_SIZES   8

typedef struct bench_case bench_case;

/* A case that is being measured. */
typedef struct bench_state {
    const bench_case *row;
    mica_context *ctx;
    mica_tensor t[BENCH_MOST_TENSORS]; /* in the order that setup made them */
    int tensors;
    mica_pool *pool; /* for the cases that are about one */
    mica_net *net;   /* and for those */
    void *scratch;   /* released with the state */

    /* One operation's work, at the least that any implementation must do. Every tensor that setup makes adds
     * its bytes once, as moved between memory and processor once; setup corrects that where it is not so. */
    double bytes;
    double repeats; /* an operation may be many calls over the same bytes; 1 unless setup says so */
    double flops;   /* of matrix products and convolutions; 0 where moving the bytes is what counts */
    bool quantized; /* flops are of bytes in integers; without flops, reading the bytes is what counts */
} bench_state;

typedef mica_status bench_fn(bench_state *s);

struct bench_case {
    const char *name; /* as typed by users: letters, digits, underscores */
    bench_fn *setup;
    bench_fn *run;
    mica_index size[BENCH_MOST_SIZES]; /* what setup makes of it */
};

typedef struct bench_family {
    const char *name;
    const bench_case *cases;
    size_t count;
} bench_family;

/* Every table of cases: bench_<family>, in the order of the output. */
#define BENCH_FAMILIES(X) \
    X(elementwise)        \
    X(shape)              \
    X(activation)         \
    X(reduce)             \
    X(linalg)             \
    X(conv)               \
    X(depthwise)          \
    X(layout)             \
    X(pooling)            \
    X(recurrent)          \
    X(norm)               \
    X(dropout)            \
    X(loss)               \
    X(attention)          \
    X(cached_attention)   \
    X(transformer)        \
    X(text_float)         \
    X(text_quant)         \
    X(memory)             \
    X(train)              \
    X(net)                \
    X(int8)

#define BENCH_DECLARE(family) extern const bench_family bench_##family;
BENCH_FAMILIES(BENCH_DECLARE)
#undef BENCH_DECLARE

#define BENCH_FAMILY(family, table) \
    const bench_family bench_##family = {#family, (table), sizeof(table) / sizeof(table)[0]}

/* For setup: the next of s->t, contiguous, filled with numbers from -1 to 1 (integers: with zeros). Its
 * memory goes with the state. */
mica_status bench_tensor(bench_state *s, mica_dtype dtype, int rank, const mica_index *dims);
/* For setup: lays a matrix of floats column by column. It keeps its shape and its numbers. */
mica_status bench_turn(bench_state *s, int tensor);

/* The same, f32, with as many dims as are given: BENCH_TENSOR(s, 32, 512). */
#define BENCH_TENSOR(s, ...)                                                                     \
    bench_tensor((s), MICA_F32, (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), \
                 (mica_index[]){__VA_ARGS__})

#define BENCH_TRY(call)                        \
    do {                                       \
        mica_status bench_try_status = (call); \
        if (bench_try_status != MICA_OK)       \
            return bench_try_status;           \
    } while (0)

/* ---- Measuring ---- */

/* What a row is held against: the rate of multiply-adds, or the rate of a copy that moves as many bytes. */
typedef enum bench_limit {
    BENCH_LIMIT_NONE,
    BENCH_LIMIT_FMA,
    BENCH_LIMIT_COPY,
    BENCH_LIMIT_INT8, /* products of bytes in integers */
    BENCH_LIMIT_READ, /* reading as many bytes */
} bench_limit;

const char *bench_limit_name(bench_limit kind); /* "fma", "copy", "int8", "read", "none" */

typedef struct bench_result {
    const char *name;
    int threads;
    double ns, ns_min;  /* of one operation: median, best */
    double gflops, gbs; /* at the median; 0 where a case has none */
    bench_limit limit;
    double percent;       /* of that limit, measured in turns: by medians; by best times if disturbed */
    double allocs, bytes; /* heap calls and bytes asked for, per operation */
    double instructions,
        moved;      /* per operation, the latter bytes from beyond the caches; below 0: not known */
    bool disturbed; /* there were hardly any samples without another program in between */
} bench_result;

/* What the probes find at one number of threads. */
typedef struct bench_peak {
    int threads;
    double gflops; /* multiply-add, all threads at once */
    double gbs;    /* copying BENCH_PROBE_BYTES, read and written bytes together */
} bench_peak;

#define BENCH_PROBE_BYTES ((size_t)64 << 20)

typedef struct bench_timing {
    double seconds;  /* for each case, its probe included */
    int min_samples; /* even if that takes longer */
} bench_timing;

mica_status bench_measure_peak(bench_peak *out, mica_context *ctx, const bench_timing *timing);

/* Sets a case up, and sees that the context has the scratch that it takes. Closed whether that succeeds or not. */
mica_status bench_open(bench_state *out, mica_context *ctx, const bench_case *row);
void bench_close(bench_state *s);

/* Sets the case up, measures it, and takes it down. On failure the context has the text. */
mica_status bench_measure(bench_result *out, mica_context *ctx, const bench_case *row, const bench_peak *peak,
                          const bench_timing *timing);

/* ---- The whole run ---- */

#define BENCH_MOST_THREAD_COUNTS 8

typedef struct bench_options {
    char *const *filters; /* a case runs if its name contains one of them; none: all run */
    size_t filter_count;
    int threads[BENCH_MOST_THREAD_COUNTS];
    int thread_counts;
    bench_timing timing;
    const char *json;    /* a file to write, or NULL */
    const char *compare; /* a file to compare with, or NULL */
    const char *exactly; /* only the case of this name; NULL: what the filters choose */
    long calls;          /* above 0: call each case so often, and measure nothing */
    bool valgrind;       /* count instructions and bytes by valgrind, not by the processor */
    bool list;           /* names only */
    bool ops;     /* the rows op_NAME, one for every operation, instead; else they run by a filter "op_..." */
    bool check;   /* fail if a case allocates */
    bool profile; /* the cases that are nets, node by node, instead */
    bool growth;  /* how time and memory grow with sizes, instead */
    bool isas;    /* the cases on every instruction set of this processor, instead */
    bool paths;   /* every path of convolutions against the chosen one, instead */
    bool int8;    /* float nets against the same in int8, instead */
    bool serve;   /* measure what lines on stdin ask for (bench/serve.h), with the first of `threads` */
} bench_options;

/* Whether the filters choose a case of this name. */
bool bench_chosen(const bench_options *options, const char *name);

/* What a program should end with: 0, 1 for a failure or an allocation under `check`, 2 for a filter that fits
 * no case, 3 for a file that cannot be read or written. */
int bench_run(const bench_options *options);

#endif
