/* Comparing what ranks have, by hashes. */
#include "cli/model/same.h"

#include <string.h>

#include "cli/ranks.h"

static uint64_t hash_bytes(uint64_t hash, const void *from, size_t bytes)
{
    const unsigned char *at = from;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (; bytes > 0; bytes--)
        hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return text != NULL ? hash_bytes(hash, text, strlen(text) + 1) : hash;
}

static uint64_t hash_tensor(uint64_t hash, const mica_tensor *t)
{
    hash = hash_bytes(hash, t->dim, (size_t)t->rank * sizeof t->dim[0]);
    hash = hash_bytes(hash, &t->dtype, sizeof t->dtype);
    return t->data != NULL && mica_tensor_contiguous(t) ? hash_bytes(hash, t->data, mica_tensor_bytes(t))
                                                        : hash;
}

int same_data(const data *d, const verb *v, const char *spec)
{
    if (ranks_count() == 1)
        return EXIT_OK;
    const mica_tensor *parts[] = {&d->text.tokens, &d->samples.inputs, &d->samples.targets, &d->test.inputs,
                                  &d->test.targets};
    uint64_t hash = (uint64_t)d->class_count + 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = hash_tensor(hash, parts[i]);
    int other = ranks_differing(hash);
    return other == 0 ? EXIT_OK
                      : verb_error(v, EXIT_FILE, "rank %d has other data in %s than rank 0", other, spec);
}

int same_inputs(const mica_tensor *inputs, const verb *v, const char *spec)
{
    data alone = {.samples = {.inputs = *inputs}};
    return same_data(&alone, v, spec);
}

int same_net(const saved *s, mica_net *net, const verb *v)
{
    mica_tensor weights = {.rank = 0};
    mica_context *ctx = mica_net_context(net);
    if (ranks_count() == 1)
        return EXIT_OK;
    int other = ranks_differing(hash_text(hash_text(1, mica_version()), mica_context_isa(ctx)));
    if (other > 0)
        return verb_error(
            v, EXIT_FAILED,
            "rank %d runs another version of Mica than rank 0, or other kernels: set MICA_ISA to "
            "what all have",
            other);
    uint64_t hash = 1;
    for (size_t i = 0; i < mica_safetensors_metadata_count(s->file); i++) {
        const mica_metadata *m = mica_safetensors_metadata_at(s->file, i);
        hash = hash_text(hash_text(hash, m->key), m->value);
    }
    (void)mica_net_flat(net, &weights, NULL); /* it is bound, and has weights of its own */
    other = ranks_differing(hash_tensor(hash, &weights));
    return other == 0
               ? EXIT_OK
               : verb_error(v, EXIT_FILE, "rank %d has another checkpoint in %s than rank 0", other, s->path);
}

int same_options(const int64_t *options, size_t count, const verb *v)
{
    int other = ranks_differing(hash_bytes(1, options, count * sizeof *options));
    return other == 0 ? EXIT_OK
                      : verb_error(v, EXIT_USAGE, "rank %d was given other options than rank 0", other);
}
