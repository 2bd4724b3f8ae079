/* A model as Hugging Face's folders have it: config.json, and model.safetensors or its shards. It is given in the terms
 * of GGUF files: names of tensors, keys, and conventions. The weights are lent from the mapped files.
 *
 * Where conventions differ, the tensor says so (mica_huggingface_tensor), or mica_huggingface_rope_halves, or it is
 * made here: norms and biases are f32, as in GGUF (gemma's norms with their + 1), and rope_freqs.weight,
 * rope_factors_long.weight and rope_factors_short.weight come from the configuration. */
#ifndef MICA_SRC_TEXT_HUGGINGFACE_H
#define MICA_SRC_TEXT_HUGGINGFACE_H

#include <mica/tensor.h>

typedef struct mica_huggingface mica_huggingface;

/* Architectures: llama, mistral (as llama), qwen2, qwen3, gemma, gemma2, gemma3 (its text part), phi3, gpt2, bert.
 * Others, and activations that GGUF's conventions have no place for, are errors. */
mica_status mica_huggingface_open(mica_context *ctx, mica_huggingface **out, const char *folder);
void mica_huggingface_close(mica_huggingface *folder); /* NULL is fine */

/* Number or text of a key: "llama.block_count", "llama.rope.freq_base"; "general.architecture", "general.name",
 * "llama.rope.scaling.type". False: the configuration has none, and there is no default. */
bool mica_huggingface_number(const mica_huggingface *folder, double *out, const char *key);
bool mica_huggingface_text(const mica_huggingface *folder, const char **out, const char *key);

/* Whether a layer has a window; false: the configuration does not say it layer by layer. */
bool mica_huggingface_windowed(const mica_huggingface *folder, bool *out, mica_index layer);

/* One tensor, read-only, by its name in GGUF files. A `transposed` one is a view of what the file has as [in, out]: its
 * shape is [out, in] as everywhere else, its strides are not a contiguous tensor's. `transposed` may be NULL. */
bool mica_huggingface_tensor(const mica_huggingface *folder, mica_tensor *out, const char *name,
                             bool *transposed);

/* All of them, in the order of the layers; names last as long as the folder is open. False: no such number. */
size_t mica_huggingface_tensors(const mica_huggingface *folder);
bool mica_huggingface_tensor_at(const mica_huggingface *folder, const char **name, mica_tensor *out,
                                size_t number);

/* Whether rotary positions turn the two halves of a head against each other where the architecture's GGUF files have
 * neighbours: llama, whose q and k are not permuted here. */
bool mica_huggingface_rope_halves(const mica_huggingface *folder);

#endif
