/* Weights and checkpoints: the net's tensors as a list of names, and the rest as metadata. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include <mica/checkpoint.h>
#include <mica/io.h>
#include <mica/train.h>

#include "base/format.h"
#include "io/quote.h"
#include "io/safetensors.h"
#include "net/net.h"
#include "train/best.h"
#include "train/loop.h"

/* Metadata of a checkpoint whose best weights are not its weights, but tensors of their own. */
#define BEST_KEY "best_weights"

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
        (void)mica_format(name, NAME_BYTES, "optimizer.%d.%s", i, v->name);
        mica_tensor t = mica_tensor_like(&v->tensor, state + v->flat);
        add_named(list, name, &t);
    }
}

static void add_best(tensor_list *list, const mica_value_info *v, const mica_tensor *t)
{
    char *name = list->text[list->count];
    (void)mica_format(name, NAME_BYTES, "best.%s", v->name);
    add_named(list, name, t);
}

/* What of a net a list names. */
typedef enum list_kind {
    WEIGHTS,      /* what is learned, and the statistics that belong to it */
    BEST_WEIGHTS, /* the same, as a checkpoint names the best ones */
    CHECKPOINT, /* also the state of sequences and the optimizer's state. What is derived, or an operation's own,
                        never is saved */
    CHECKPOINT_BEST, /* also the best weights: net->best */
} list_kind;

static mica_status list_tensors(mica_net *net, tensor_list *list, list_kind kind)
{
    bool checkpoint = kind >= CHECKPOINT;
    if (net->block == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "checkpoint: the net is not bound");
    if (checkpoint && net->state_count < net->learned_count && net->flat_optimizer[0] != NULL &&
        net->whole_state[0] == NULL)
        return mica_fail(
            net->ctx, MICA_ERR_STATE,
            "checkpoint: the optimizer's state is spread over ranks: use mica_ranks_save and _load");
    size_t room = (size_t)net->built_values * 4;
    *list = (tensor_list){.room = room, .bytes = room * (sizeof(mica_named_tensor) + NAME_BYTES) + 1};
    list->block = mica_allocate(net->ctx, list->bytes);
    if (list->block == NULL)
        return net->ctx->status;
    list->tensors = list->block;
    list->text = (char(*)[NAME_BYTES])(void *)(list->tensors + room);
    size_t at = 0; /* in the best weights */
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        bool weight = mica_is_weight(v);
        if (!weight && !(checkpoint && v->home == MICA_HOME_KEPT && v->kept == MICA_KEPT_STATE))
            continue;
        mica_tensor all = mica_net_built_tensor(net, v);
        if (kind == BEST_WEIGHTS)
            add_best(list, v, &all);
        else
            add_named(list, v->name, &all);
        if (checkpoint && v->gradient != NONE)
            add_optimizer_state(list, net, v);
        if (kind == CHECKPOINT_BEST && weight) {
            all = mica_best_tensor(net, v, &at);
            add_best(list, v, &all);
        }
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

static mica_status save(mica_net *net, const char *path, list_kind kind, const mica_metadata *metadata,
                        size_t count, write_fn *write)
{
    tensor_list list;
    MICA_TRY(list_tensors(net, &list, kind));
    mica_status status = reserve_scratch(net, list.count);
    if (status == MICA_OK)
        status = write(net->ctx, path, list.tensors, list.count,
                       &(mica_safetensors_write_opts){.metadata = metadata, .metadata_count = count});
    free_list(net, &list);
    return status;
}

mica_status mica_weights_save(mica_net *net, const char *path)
{
    return save(net, path, WEIGHTS, &(mica_metadata){"format", "mica weights"}, 1, mica_safetensors_write);
}

/* ---- Numbers in metadata: as hexadecimal, so that every bit comes back ---- */

typedef struct number_text {
    char text[24];
} number_text;

static number_text text_of(uint64_t number)
{
    number_text out;
    (void)mica_format(out.text, sizeof out.text, "%llx", (unsigned long long)number);
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
                         "%s: the checkpoint's \"%s\" is %s: expected at most %llx", MICA_QUOTE(path), key,
                         MICA_QUOTE(text), (unsigned long long)most);
    return MICA_OK;
}

static uint64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static mica_status save_checkpoint(mica_net *net, const char *path, const mica_training_state *state,
                                   write_fn *write)
{
    number_text steps = text_of(net->steps_taken), seed = text_of(net->seed),
                epoch = text_of(state->cursor.epoch), position = text_of(state->cursor.position),
                best = text_of(bits_of(state->best_loss)), bad = text_of((uint64_t)state->bad_epochs),
                best_epoch = text_of(state->best_epoch),
                accuracy = text_of(double_bits(state->best_accuracy));
    mica_metadata own[] = {
        {"format", "mica checkpoint"}, {"steps", steps.text},           {"seed", seed.text},
        {"epoch", epoch.text},         {"position", position.text},     {"best_loss", best.text},
        {"bad_epochs", bad.text},      {"best_epoch", best_epoch.text}, {"best_accuracy", accuracy.text},
        {BEST_KEY, "best.NAME"}};
    bool apart = net->best != NULL && state->best_epoch > 0;
    size_t fixed = sizeof own / sizeof own[0] - !apart;
    size_t count = fixed + state->note_count, bytes = count * sizeof(mica_metadata);
    mica_metadata *all = mica_allocate(net->ctx, bytes);
    if (all == NULL)
        return net->ctx->status;
    memcpy(all, own, fixed * sizeof own[0]);
    if (state->note_count > 0)
        memcpy(all + fixed, state->notes, state->note_count * sizeof(mica_metadata));
    mica_status status = save(net, path, apart ? CHECKPOINT_BEST : CHECKPOINT, all, count, write);
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
    mica_forget_gradients(net);
    return mica_net_derive(net);
}

static mica_status read_checkpoint(mica_net *net, const char *path, const mica_safetensors *file,
                                   const tensor_list *list, mica_training_state *state)
{
    uint64_t steps = 0, seed = 0, epoch = 0, position = 0, best = 0, bad = 0, best_epoch = 0, accuracy = 0;
    bool apart = mica_safetensors_metadata_find(file, BEST_KEY) != NULL;
    MICA_TRY(find_number(net, file, path, "steps", &steps, INT64_MAX));
    MICA_TRY(find_number(net, file, path, "seed", &seed, UINT64_MAX));
    MICA_TRY(find_number(net, file, path, "epoch", &epoch, INT64_MAX));
    MICA_TRY(find_number(net, file, path, "position", &position, INT64_MAX));
    MICA_TRY(find_number(net, file, path, "best_loss", &best, UINT32_MAX));
    MICA_TRY(find_number(net, file, path, "bad_epochs", &bad, INT_MAX));
    if (mica_safetensors_metadata_find(file, "best_epoch") != NULL) { /* older files have none */
        MICA_TRY(find_number(net, file, path, "best_epoch", &best_epoch, INT64_MAX));
        MICA_TRY(find_number(net, file, path, "best_accuracy", &accuracy, UINT64_MAX));
    }
    uint32_t best_bits = (uint32_t)best;
    mica_training_state read = {.cursor = {epoch, position}, .bad_epochs = (int)bad};
    memcpy(&read.best_loss, &best_bits, sizeof best_bits);
    memcpy(&read.best_accuracy, &accuracy, sizeof accuracy);
    read.best_epoch = apart && net->best == NULL ? 0 : best_epoch; /* they are not read then */
    if (isnan(read.best_loss))
        return mica_fail(net->ctx, MICA_ERR_FORMAT, "%s: the checkpoint's \"best_loss\" is not a number",
                         MICA_QUOTE(path));
    MICA_TRY(read_weights(net, file, list));
    if (net->best != NULL && !apart && read.best_epoch > 0)
        mica_best_keep(net); /* the training had ended, with the best weights */
    net->steps_taken = steps;
    net->seed = seed;
    *state = read;
    return MICA_OK;
}

/* A whole checkpoint, or the weights alone (then there is no state). */
static mica_status load(mica_net *net, const char *path, bool whole, mica_training_state *state)
{
    tensor_list list = {.block = NULL};
    mica_safetensors *file;
    MICA_TRY(mica_safetensors_open(net->ctx, &file, path));
    bool apart = mica_safetensors_metadata_find(file, BEST_KEY) != NULL;
    list_kind kind = whole ? (apart && net->best != NULL ? CHECKPOINT_BEST : CHECKPOINT)
                           : (apart ? BEST_WEIGHTS : WEIGHTS);
    mica_status status = list_tensors(net, &list, kind);
    if (status == MICA_OK)
        status = reserve_scratch(net, list.count);
    if (status == MICA_OK)
        status = whole ? read_checkpoint(net, path, file, &list, state) : read_weights(net, file, &list);
    mica_safetensors_close(net->ctx, file);
    if (list.block != NULL)
        free_list(net, &list);
    return status;
}

/* ---- What fits ---- */

static bool fits(const mica_named_tensor *wanted, const mica_safetensors_entry *found)
{
    const mica_tensor *t = &wanted->tensor;
    return found->readable && found->rank == t->rank &&
           (t->rank == 0 || memcmp(found->dim, t->dim, (size_t)t->rank * sizeof t->dim[0]) == 0);
}

/* Leaves in the list what the file has. `prefix`: bytes of the names before those of the net. */
static void keep_fitting(tensor_list *list, size_t prefix, mica_weights_match *match,
                         const mica_safetensors *file)
{
    size_t all = list->count;
    list->count = 0;
    for (size_t i = 0; i < all; i++) {
        mica_named_tensor wanted = list->tensors[i];
        const mica_safetensors_entry *found = mica_safetensors_find(file, wanted.name);
        mica_weights_found kind = found == NULL           ? MICA_WEIGHTS_MISSING
                                  : !fits(&wanted, found) ? MICA_WEIGHTS_DIFFERENT
                                                          : MICA_WEIGHTS_LOADED;
        match->loaded += kind == MICA_WEIGHTS_LOADED;
        match->missing += kind == MICA_WEIGHTS_MISSING;
        match->different += kind == MICA_WEIGHTS_DIFFERENT;
        if (kind == MICA_WEIGHTS_LOADED)
            list->tensors[list->count++] = wanted;
        wanted.name += prefix; /* as the net has it */
        if (match->tell != NULL)
            match->tell(match->user, kind, &wanted, found);
    }
}

mica_status mica_weights_load_matching(mica_net *net, mica_weights_match *match, const char *path)
{
    mica_weights_match none = {0};
    match = match != NULL ? match : &none;
    match->loaded = match->missing = match->different = 0;
    tensor_list list = {.block = NULL};
    mica_safetensors *file;
    MICA_TRY(mica_safetensors_open(net->ctx, &file, path));
    bool apart = mica_safetensors_metadata_find(file, BEST_KEY) != NULL;
    mica_status status = list_tensors(net, &list, apart ? BEST_WEIGHTS : WEIGHTS);
    if (status == MICA_OK)
        status = reserve_scratch(net, list.count);
    if (status == MICA_OK)
        keep_fitting(&list, apart ? strlen("best.") : 0, match, file);
    if (status == MICA_OK && list.count == 0)
        status = mica_fail(net->ctx, MICA_ERR_FORMAT,
                           "%s: none of its %zu tensors has the name and shape of one of the net's %zu",
                           MICA_QUOTE(path), mica_safetensors_count(file), match->missing + match->different);
    if (status == MICA_OK)
        status = read_weights(net, file, &list);
    mica_safetensors_close(net->ctx, file);
    if (list.block != NULL)
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
