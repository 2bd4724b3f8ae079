/* Weights and checkpoints: the net's tensors as a list of names, and the rest as metadata. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <mica/checkpoint.h>
#include <mica/io.h>
#include <mica/train.h>

#include "io/quote.h"
#include "io/safetensors.h"
#include "net/net.h"
#include "train/loop.h"

/* Longer than any name that mica_net_text makes, with "optimizer.0." before it. */
#define NAME_BYTES 544

/* The tensors of a net under their names; names of optimizer state are built in `text`. */
typedef struct tensor_list {
    mica_named_tensor *tensors;
    char (*text)[NAME_BYTES];
    size_t count, room;
    void *block;
    size_t bytes;
} tensor_list;

static void add_named(tensor_list *list, const char *name, const mica_tensor *t)
{
    list->tensors[list->count++] = (mica_named_tensor){name, *t};
}

/* The optimizer's state of one parameter, as tensors of its shape. */
static void add_optimizer_state(tensor_list *list, mica_net *net, const mica_value_info *v)
{
    for (int i = 0; i < 2; i++) {
        float *state = net->whole_state[i] != NULL ? net->whole_state[i] : net->flat_optimizer[i];
        if (state == NULL)
            continue;
        char *name = list->text[list->count];
        (void)snprintf(name, NAME_BYTES, "optimizer.%d.%s", i, v->name);
        mica_tensor t = mica_tensor_like(&v->tensor, state + v->flat);
        add_named(list, name, &t);
    }
}

/* Whether a value is saved: what is learned, with the statistics that belong to it; in a checkpoint also the state of
 * sequences. What is derived, or an operation's own, never is. */
static bool is_saved(const mica_value_info *v, bool checkpoint)
{
    if (v->home == MICA_HOME_KEPT)
        return v->kept == MICA_KEPT_STATISTICS || (checkpoint && v->kept == MICA_KEPT_STATE);
    return v->kind == MICA_BUFFER_PARAMETER;
}

static mica_status list_tensors(mica_net *net, tensor_list *list, bool checkpoint)
{
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "checkpoint: the net is not bound");
    if (checkpoint && net->state_count < net->learned_count && net->flat_optimizer[0] != NULL &&
        net->whole_state[0] == NULL)
        return mica_fail(
            net->ctx, MICA_ERR_STATE,
            "checkpoint: the optimizer's state is spread over ranks: use mica_ranks_save and _load");
    size_t room = (size_t)net->built_values * 3;
    *list = (tensor_list){.room = room, .bytes = room * (sizeof(mica_named_tensor) + NAME_BYTES) + 1};
    list->block = mica_allocate(net->ctx, list->bytes);
    if (list->block == NULL)
        return net->ctx->status;
    list->tensors = list->block;
    list->text = (char(*)[NAME_BYTES])(void *)(list->tensors + room);
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        if (!is_saved(v, checkpoint))
            continue;
        mica_tensor all = mica_net_built_tensor(net, v);
        add_named(list, v->name, &all);
        if (checkpoint && v->gradient != NONE)
            add_optimizer_state(list, net, v);
    }
    return MICA_OK;
}

static void free_list(mica_net *net, tensor_list *list) { mica_release(net->ctx, list->block, list->bytes); }

/* Makes sure of the scratch that files take, once: a training's later checkpoints find it there. */
static mica_status reserve_scratch(mica_net *net, size_t names)
{
    return mica_workspace_reserve(net->ctx, ((size_t)64 << 10) + 64 * names + 4096);
}

/* mica_safetensors_write, or what only checks. */
typedef mica_status write_fn(mica_context *ctx, const char *path, const mica_named_tensor *tensors,
                             size_t count, const mica_safetensors_write_opts *opts);

static mica_status save(mica_net *net, const char *path, bool checkpoint, const mica_metadata *metadata,
                        size_t count, write_fn *write)
{
    tensor_list list;
    MICA_TRY(list_tensors(net, &list, checkpoint));
    mica_status status = reserve_scratch(net, list.count);
    if (status == MICA_OK)
        status = write(net->ctx, path, list.tensors, list.count,
                       &(mica_safetensors_write_opts){.metadata = metadata, .metadata_count = count});
    free_list(net, &list);
    return status;
}

mica_status mica_weights_save(mica_net *net, const char *path)
{
    return save(net, path, false, &(mica_metadata){"format", "mica weights"}, 1, mica_safetensors_write);
}

/* Gradients belong to the run that was. A state may say which of them are zero (an embedding's), so they all are. */
static void forget_gradients(mica_net *net)
{
    if (net->flat_gradients != NULL)
        memset(net->flat_gradients, 0, net->learned_count * sizeof(float));
}

/* ---- Numbers in metadata: as hexadecimal, so that every bit comes back ---- */

typedef struct number_text {
    char text[24];
} number_text;

static number_text text_of(uint64_t number)
{
    number_text out;
    (void)snprintf(out.text, sizeof out.text, "%" PRIx64, number);
    return out;
}

/* A number of at most `most`. */
static mica_status find_number(mica_net *net, const mica_safetensors *file, const char *path, const char *key,
                               uint64_t *out, uint64_t most)
{
    static const char digits[] = "0123456789abcdef";
    const char *text = mica_safetensors_metadata_find(file, key);
    size_t length = text != NULL ? strlen(text) : 0;
    bool sound = length > 0 && length <= 16;
    *out = 0;
    for (size_t i = 0; sound && i < length; i++) {
        const char *digit = strchr(digits, text[i]);
        sound = digit != NULL;
        *out = *out << 4 | (sound ? (uint64_t)(digit - digits) : 0);
    }
    if (!sound)
        return mica_fail(net->ctx, MICA_ERR_FORMAT,
                         "%s: the checkpoint's \"%s\" is %s: expected up to 16 hexadecimal digits",
                         MICA_QUOTE(path), key, text != NULL ? MICA_QUOTE(text) : "missing");
    if (*out > most)
        return mica_fail(net->ctx, MICA_ERR_FORMAT,
                         "%s: the checkpoint's \"%s\" is %s: expected at most %" PRIx64, MICA_QUOTE(path),
                         key, MICA_QUOTE(text), most);
    return MICA_OK;
}

static uint64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static mica_status save_checkpoint(mica_net *net, const char *path, const mica_training_state *state,
                                   write_fn *write)
{
    number_text steps = text_of(net->steps_taken), seed = text_of(net->seed),
                epoch = text_of(state->cursor.epoch), position = text_of(state->cursor.position),
                best = text_of(bits_of(state->best_loss)), bad = text_of((uint64_t)state->bad_epochs);
    mica_metadata own[] = {{"format", "mica checkpoint"}, {"steps", steps.text},
                           {"seed", seed.text},           {"epoch", epoch.text},
                           {"position", position.text},   {"best_loss", best.text},
                           {"bad_epochs", bad.text}};
    enum { OWN = sizeof own / sizeof own[0] };
    size_t count = OWN + state->note_count, bytes = count * sizeof(mica_metadata);
    mica_metadata *all = mica_allocate(net->ctx, bytes);
    if (all == NULL)
        return net->ctx->status;
    memcpy(all, own, sizeof own);
    if (state->note_count > 0)
        memcpy(all + OWN, state->notes, state->note_count * sizeof(mica_metadata));
    mica_status status = save(net, path, true, all, count, write);
    mica_release(net->ctx, all, bytes);
    return status;
}

mica_status mica_checkpoint_save(mica_net *net, const char *path, const mica_training_state *state)
{
    if (state == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "checkpoint_save: state is NULL");
    return save_checkpoint(net, path, state, mica_safetensors_write);
}

mica_status mica_checkpoint_check(mica_net *net, const char *path, const mica_training_state *state)
{
    return save_checkpoint(net, path, state, mica_safetensors_check);
}

static mica_status read_weights(mica_net *net, const mica_safetensors *file, const tensor_list *list)
{
    MICA_TRY(mica_safetensors_read(net->ctx, list->tensors, list->count, file));
    forget_gradients(net);
    return mica_net_derive(net);
}

static mica_status read_checkpoint(mica_net *net, const char *path, const mica_safetensors *file,
                                   const tensor_list *list, mica_training_state *state)
{
    uint64_t steps = 0, seed = 0, epoch = 0, position = 0, best = 0, bad = 0;
    MICA_TRY(find_number(net, file, path, "steps", &steps, INT64_MAX));
    MICA_TRY(find_number(net, file, path, "seed", &seed, UINT64_MAX));
    MICA_TRY(find_number(net, file, path, "epoch", &epoch, INT64_MAX));
    MICA_TRY(find_number(net, file, path, "position", &position, INT64_MAX));
    MICA_TRY(find_number(net, file, path, "best_loss", &best, UINT32_MAX));
    MICA_TRY(find_number(net, file, path, "bad_epochs", &bad, INT_MAX));
    uint32_t best_bits = (uint32_t)best;
    mica_training_state read = {.cursor = {epoch, position}, .bad_epochs = (int)bad};
    memcpy(&read.best_loss, &best_bits, sizeof best_bits);
    if (isnan(read.best_loss))
        return mica_fail(net->ctx, MICA_ERR_FORMAT, "%s: the checkpoint's \"best_loss\" is not a number",
                         MICA_QUOTE(path));
    MICA_TRY(read_weights(net, file, list));
    net->steps_taken = steps;
    net->seed = seed;
    *state = read;
    return MICA_OK;
}

/* A whole checkpoint, or the weights alone (then there is no state). */
static mica_status load(mica_net *net, const char *path, bool whole, mica_training_state *state)
{
    tensor_list list;
    MICA_TRY(list_tensors(net, &list, whole));
    mica_safetensors *file = NULL;
    mica_status status = reserve_scratch(net, list.count);
    if (status == MICA_OK)
        status = mica_safetensors_open(net->ctx, &file, path);
    if (status == MICA_OK)
        status = whole ? read_checkpoint(net, path, file, &list, state) : read_weights(net, file, &list);
    mica_safetensors_close(net->ctx, file);
    free_list(net, &list);
    return status;
}

mica_status mica_weights_load(mica_net *net, const char *path) { return load(net, path, false, NULL); }

mica_status mica_checkpoint_load(mica_net *net, mica_training_state *state, const char *path)
{
    if (state == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "checkpoint_load: state is NULL");
    return load(net, path, true, state);
}
