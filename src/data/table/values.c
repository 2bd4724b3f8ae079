/* The different values of a column, with how often each occurs: a hash table that gives up when there are too many. */
#include <string.h>

#include "data/table/table.h"

#define MOST_TEXT ((uint32_t)1 << 18) /* bytes of all values of a column */

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

/* The slot of a value, or the empty one where it would be. */
static uint32_t find_slot(const mica_value_list *list, const char *text, size_t length, uint64_t hash)
{
    uint32_t mask = list->slot_count - 1, slot = (uint32_t)hash & mask;
    for (; list->slots[slot] != 0; slot = (slot + 1) & mask) {
        const mica_value_entry *e = &list->entries[list->slots[slot] - 1];
        if (e->hash == hash && e->length == length && memcmp(list->text + e->start, text, length) == 0)
            break;
    }
    return slot;
}

/* Another block of `room` elements with the first `count` of the old one. */
static void *grow(mica_context *ctx, void *old, size_t size, size_t count, size_t old_room, size_t room)
{
    void *block = mica_allocate(ctx, room * size);
    if (block == NULL)
        return NULL;
    if (count > 0)
        memcpy(block, old, count * size);
    mica_release(ctx, old, old_room * size);
    return block;
}

static mica_status more_entries(mica_context *ctx, mica_value_list *list)
{
    uint32_t room = list->entry_room > 0 ? 2 * list->entry_room : 16, slots = 2 * room;
    mica_value_entry *entries = grow(ctx, list->entries, sizeof *entries, list->count, list->entry_room,
                                     room);
    if (entries == NULL)
        return ctx->status;
    list->entries = entries;
    list->entry_room = room;
    uint32_t *table = mica_allocate(ctx, slots * sizeof *table);
    if (table == NULL)
        return ctx->status;
    mica_release(ctx, list->slots, list->slot_count * sizeof *table);
    list->slots = table;
    list->slot_count = slots;
    memset(table, 0, slots * sizeof *table);
    for (uint32_t i = 0; i < list->count; i++) {
        const mica_value_entry *e = &entries[i];
        table[find_slot(list, list->text + e->start, e->length, e->hash)] = i + 1;
    }
    return MICA_OK;
}

static mica_status more_text(mica_context *ctx, mica_value_list *list, size_t length)
{
    uint32_t room = list->text_room > 0 ? list->text_room : 64;
    while (room - list->used < length)
        room *= 2;
    char *text = grow(ctx, list->text, 1, list->used, list->text_room, room);
    if (text == NULL)
        return ctx->status;
    list->text = text;
    list->text_room = room;
    return MICA_OK;
}

void mica_value_list_free(mica_context *ctx, mica_value_list *list)
{
    mica_release(ctx, list->entries, list->entry_room * sizeof *list->entries);
    mica_release(ctx, list->slots, list->slot_count * sizeof *list->slots);
    mica_release(ctx, list->text, list->text_room);
    *list = (mica_value_list){.more = list->more};
}

mica_status mica_value_list_add(mica_context *ctx, mica_value_list *list, const char *text, size_t length)
{
    if (list->more)
        return MICA_OK;
    uint64_t hash = hash_of(text, length);
    uint32_t slot = list->slot_count > 0 ? find_slot(list, text, length, hash) : 0;
    if (list->slot_count > 0 && list->slots[slot] != 0) {
        list->entries[list->slots[slot] - 1].count++;
        return MICA_OK;
    }
    if (list->count == MICA_TABLE_MOST_VALUES || length > MOST_TEXT - list->used) {
        list->more = true;
        mica_value_list_free(ctx, list);
        return MICA_OK;
    }
    if (list->text_room - list->used < length)
        MICA_TRY(more_text(ctx, list, length));
    if (list->count == list->entry_room) {
        MICA_TRY(more_entries(ctx, list));
        slot = find_slot(list, text, length, hash);
    }
    memcpy(list->text + list->used, text, length);
    list->entries[list->count] = (mica_value_entry){list->used, (uint32_t)length, hash, 1};
    list->used += (uint32_t)length;
    list->slots[slot] = ++list->count;
    return MICA_OK;
}

bool mica_value_list_has(const mica_value_list *list, const char *text, size_t length)
{
    return list->slot_count > 0 && list->slots[find_slot(list, text, length, hash_of(text, length))] != 0;
}
