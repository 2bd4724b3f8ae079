/* The files that are written. */
#ifndef MICA_EXPORT_WRITE_H
#define MICA_EXPORT_WRITE_H

#include "export/emit.h"
#include "export/export.h"

/* NAME in capitals. */
typedef struct capitals {
    char text[80];
} capitals;
capitals capitals_of(const char *name);

size_t ram_bytes(const graph *g);
/* Bytes of weights and tables that stay const. */
size_t const_bytes(const graph *g);
bool has_kept(const graph *g);
bool needs_init(const graph *g);

/* The arguments of NAME_train_step before the rate: "const float *target, "; none if the net compares with its inputs. */
void put_targets(text *out, const graph *g);

bool write_source(text *out, emitter *e, const export_opts *opts, text *why);
void write_weights(text *out, const graph *g);
void write_start(text *out, const graph *g, const export_opts *opts); /* NAME_init and what it copies */
void write_training(text *out, emitter *e, const export_opts *opts);
/* NAME_normalize, if it is known how; what the elements of inputs and outputs stand for, if the data said so. */
void write_normalize(text *out, const graph *g, const export_opts *opts);
void write_output_meaning(text *out, const graph *g, const export_opts *opts);
void write_header(text *out, const graph *g, const export_opts *opts);
bool write_test(text *out, const graph *g, mica_net *check, const export_opts *opts, text *why);
void write_page(text *out, const graph *g, const export_opts *opts);

/* Of nets whose caller writes or reads bytes: write_int8.c. The test draws its numbers from a generator, for which
 * `fill` does the same on the library's side. */
typedef struct generator {
    uint32_t state;
} generator;
typedef bool test_fill(const graph *g, mica_net *check, generator *r);
void put_int8_header(text *out, const graph *g, const export_opts *opts);
bool put_int8_expected(text *out, const graph *g, mica_net *check, const export_opts *opts, test_fill *fill);
void put_int8_kernels(text *out, const graph *g); /* before the kernels: how they are compiled */
void put_int8_main(text *out, const graph *g, const export_opts *opts);

/* The function around the calls of a run. */
void write_forward(text *out, emitter *e);
/* Its call: "forward(sample);" */
void put_forward_call(text *out, const emitter *e, bool training, int indent);

#endif
