/* A plugin for QEMU that counts instructions and modelled cycles between marks (board_mark() in board.h).
 *
 *     qemu-system-arm ... -plugin count.so,model=m4,out=FILE
 *
 * It writes a line "region NUMBER INSTRUCTIONS CYCLES" at each mark, and one at the end. Costs are summed when a block
 * is translated; running it adds two numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "qemu.h"

#define PLUGIN_API __attribute__((visibility("default")))

enum { taken_cost = 2 };

struct block {
    uint64_t start, end; /* addresses */
    uint64_t instructions, cycles;
    int free_jump;
};

/* What of its block comes after a mark, which ends one region and begins the next. */
struct mark {
    struct mark *next;
    uint64_t instructions, cycles;
};

static const struct {
    const char *name;
    cost_model cost;
} models[] = {{"m4", cost_cortex_m4}, {"m3", cost_cortex_m3}, {"m55", cost_cortex_m55}, {"rv32", cost_rv32}};

/* One processor, one thread: QEMU gives plugins no other place for what they know. */
static cost_model model;
static FILE *out;
static struct block *last;
static uint64_t instructions, cycles;     /* since the start */
static uint64_t region_start[2], regions; /* where this region began */

static void close_region(uint64_t later_instructions, uint64_t later_cycles)
{
    uint64_t at[2] = {instructions - later_instructions, cycles - later_cycles};
    fprintf(out, "region %llu %llu %llu\n", (unsigned long long)regions++,
            (unsigned long long)(at[0] - region_start[0]), (unsigned long long)(at[1] - region_start[1]));
    memcpy(region_start, at, sizeof at);
}

static void on_mark(unsigned cpu, void *data)
{
    const struct mark *m = data;
    (void)cpu;
    close_region(m->instructions, m->cycles);
}

/* A block that does not follow the last one in memory was jumped to. */
static void on_execute(unsigned cpu, void *data)
{
    struct block *b = data;
    (void)cpu;
    if (last && last->end != b->start && !last->free_jump)
        cycles += taken_cost;
    instructions += b->instructions;
    cycles += b->cycles;
    last = b;
}

/* mov r11, r11; ori x0, x0, 77 */
static int is_mark(const uint8_t *bytes, size_t size)
{
    return (size == 2 && memcmp(bytes, "\xDB\x46", 2) == 0) ||
           (size == 4 && memcmp(bytes, "\x13\x60\xD0\x04", 4) == 0);
}

static void *take(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        abort(); /* QEMU does the same */
    return memory;
}

/* Blocks and marks are never freed: QEMU may run one as long as it likes. */
static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *translated)
{
    struct block *b = take(sizeof *b);
    struct mark *marks = NULL;
    int after_memory = 0;
    (void)id;
    b->instructions = qemu_plugin_tb_n_insns(translated);
    b->start = b->end = qemu_plugin_tb_vaddr(translated);
    for (size_t i = 0; i < b->instructions; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(translated, i);
        const uint8_t *bytes = qemu_plugin_insn_data(insn);
        size_t size = qemu_plugin_insn_size(insn);
        struct cost c = model(bytes, size, after_memory);
        after_memory = c.memory;
        b->cycles += c.cycles;
        b->end += size;
        b->free_jump = c.free_jump;
        for (struct mark *m = marks; m; m = m->next)
            m->instructions++, m->cycles += c.cycles;
        if (is_mark(bytes, size)) {
            struct mark *m = take(sizeof *m);
            m->next = marks;
            marks = m;
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, 0, m);
        }
    }
    qemu_plugin_register_vcpu_tb_exec_cb(translated, on_execute, 0, b);
}

static void on_end(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    close_region(0, 0);
    fclose(out);
}

PLUGIN_API int qemu_plugin_version = qemu_plugin_interface;

PLUGIN_API int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0)
            out = fopen(argv[i] + 4, "w");
        if (strncmp(argv[i], "model=", 6) == 0)
            for (size_t m = 0; m < sizeof models / sizeof *models; m++)
                if (strcmp(argv[i] + 6, models[m].name) == 0)
                    model = models[m].cost;
    }
    if (!out || !model) {
        fprintf(stderr, "count.so: out=FILE and model=m4|m3|m55|rv32 are needed\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
    return 0;
}
