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

/* What all return where this number differs; rank 0 says it of the first rank that has another one. The others may have
 * other names for what they have. */
static int compare(uint64_t number, const verb *v, exit_code code, const char *what, const char *where)
{
    int other = ranks_differing(number);
    if (other > 0 && ranks_rank() == 0)
        (void)verb_error(v, code, "rank %d %s%s than rank 0", other, what, where);
    return other > 0 ? (int)code : (int)EXIT_OK;
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
    return compare(hash, v, EXIT_FILE, "has other data in ", spec);
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
    int code = compare(hash_text(1, mica_version()), v, EXIT_FAILED, "runs another version of Mica", "");
    if (code == EXIT_OK)
        code = compare(hash_text(1, mica_context_isa(ctx)), v, EXIT_FAILED, "has other kernels",
                       " (set MICA_ISA to what all have)");
    if (code != EXIT_OK)
        return code;
    uint64_t hash = 1;
    for (size_t i = 0; i < mica_safetensors_metadata_count(s->file); i++) {
        const mica_metadata *m = mica_safetensors_metadata_at(s->file, i);
        hash = hash_text(hash_text(hash, m->key), m->value);
    }
    (void)mica_net_flat(net, &weights, NULL); /* it is bound, and has weights of its own */
    return compare(hash_tensor(hash, &weights), v, EXIT_FILE, "has another checkpoint in ", s->path);
}

int same_options(const int64_t *options, size_t count, const verb *v)
{
    return compare(hash_bytes(1, options, count * sizeof *options), v, EXIT_USAGE, "was given other options",
                   "");
}

/* Options come last among notes: what is first is more than a setting. */
int same_notes(const notes *n, const verb *v)
{
    static const char prefix[] = "mica.train.";
    int code = compare(n->count, v, EXIT_FAILED, "has other options", "");
    for (size_t i = n->count; i-- > 0 && code == EXIT_OK;) {
        const mica_metadata *note = &n->list[i];
        bool option = strncmp(note->key, prefix, sizeof prefix - 1) == 0;
        code = compare(hash_text(hash_text(1, note->key), note->value), v, EXIT_FAILED, "has another ",
                       option ? note->key + sizeof prefix - 1 : note->key);
    }
    return code;
}
