/* Names: a table of all that are taken, so that a net of thousands of layers is built, and looked up, at once.
 *
 * Open addressing. An entry is a value's number plus one, or minus a layer's number minus one; 0 is free. */
#include <string.h>

#include "net/net.h"

#if defined(MICA_SMALL)
#define NAMES_FIRST 16
#define NAMES_ROOM  5 /* quarters of the table for each name, at least */
#else
#define NAMES_FIRST 64
#define NAMES_ROOM  8
#endif

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static const char *name_of(const mica_net *net, int entry)
{
    return entry > 0 ? net->values[entry - 1].name : net->layers[-entry - 1].name;
}

static void put(mica_net *net, int entry)
{
    uint32_t mask = (uint32_t)net->name_room - 1, at = hash_of(name_of(net, entry)) & mask;
    while (net->names[at] != 0)
        at = (at + 1) & mask;
    net->names[at] = entry;
}

static mica_status make_room(mica_net *net)
{
    if (NAMES_ROOM * net->name_count < 4 * net->name_room)
        return MICA_OK;
    int *old = net->names, old_room = net->name_room, room = old_room > 0 ? 2 * old_room : NAMES_FIRST;
    int *names = mica_allocate(net->ctx, (size_t)room * sizeof *names);
    if (names == NULL)
        return mica_net_failed(net, net->ctx->status);
    memset(names, 0, (size_t)room * sizeof *names);
    net->names = names;
    net->name_room = room;
    for (int i = 0; i < old_room; i++)
        if (old[i] != 0)
            put(net, old[i]);
    mica_release(net->ctx, old, (size_t)old_room * sizeof *old);
    return MICA_OK;
}

static mica_status add(mica_net *net, int entry)
{
    MICA_TRY(make_room(net));
    put(net, entry);
    net->name_count++;
    return MICA_OK;
}

mica_status mica_net_name_value(mica_net *net, int value) { return add(net, value + 1); }
mica_status mica_net_name_layer(mica_net *net, int layer) { return add(net, -layer - 1); }

/* The first entry with this name; 0: none. */
static int find(const mica_net *net, const char *name)
{
    if (net->name_room == 0)
        return 0;
    uint32_t mask = (uint32_t)net->name_room - 1;
    for (uint32_t at = hash_of(name) & mask; net->names[at] != 0; at = (at + 1) & mask)
        if (strcmp(name_of(net, net->names[at]), name) == 0)
            return net->names[at];
    return 0;
}

int mica_net_find(const mica_net *net, const char *name)
{
    int entry = find(net, name);
    return entry >= 0 ? entry - 1 : net->layers[-entry - 1].output - 1;
}

bool mica_net_name_taken(const mica_net *net, const char *name) { return find(net, name) != 0; }
