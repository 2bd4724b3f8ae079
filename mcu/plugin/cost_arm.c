/* Cortex-M: tables of bit patterns. The first that fits an instruction gives its cost; without one it is a cycle.
 *
 * M4: tables 3-1 and 7-1 of the Technical Reference Manual r0p1. M3: table 18-1 of the one r2p1; both with the mean where a
 * range is given. M55: scalar instructions a cycle each, vector ones two (four beats, two at a time) with no overlap
 * counted: rough. */
#include "cost.h"

enum kind {
    plain,    /* as many cycles as its entry says */
    load,     /* 2, or 1 after another load or store */
    store,    /* 1: the write buffer takes it */
    multiple, /* 1 and 1 for each register of the list in the last halfword */
    words,    /* 1 and 1 for each word; their number is in the last halfword */
    loop_end  /* 1, and its jump is free */
};

struct pattern {
    uint16_t mask, value;   /* of the first halfword */
    uint16_t mask2, value2; /* of the second */
    enum kind kind;
    unsigned cycles;
    uint16_t list; /* multiple: the bits that stand for registers */
};

static const struct pattern narrow[] = {
    {0xF800, 0x4800, 0, 0, load, 0, 0},          /* LDR literal */
    {0xFE00, 0x5600, 0, 0, load, 0, 0},          /* LDRSB register */
    {0xF800, 0x5800, 0, 0, load, 0, 0},          /* LDR, LDRH, LDRB, LDRSH register */
    {0xF000, 0x5000, 0, 0, store, 0, 0},         /* STR.. register */
    {0xE800, 0x6800, 0, 0, load, 0, 0},          /* LDR, LDRB immediate */
    {0xE800, 0x6000, 0, 0, store, 0, 0},         /* STR, STRB immediate */
    {0xE800, 0x8800, 0, 0, load, 0, 0},          /* LDRH immediate, LDR from the stack */
    {0xF800, 0x8000, 0, 0, store, 0, 0},         /* STRH immediate */
    {0xF800, 0x9000, 0, 0, store, 0, 0},         /* STR to the stack */
    {0xF600, 0xB400, 0, 0, multiple, 0, 0x01FF}, /* PUSH, POP */
    {0xF000, 0xC000, 0, 0, multiple, 0, 0x00FF}, /* LDM, STM */
};

#define VFP        0x0E00, 0x0A00 /* coprocessors 10 and 11 */
#define VFP_DATA   0x0E10, 0x0A00 /* arithmetic, not a move from or to a core register */
#define VFP_SQUARE 0x0ED0, 0x0AC0

static const struct pattern wide[] = {
    {0xFE40, 0xE800, 0, 0, multiple, 0, 0xFFFF}, /* LDM.W, STM.W, PUSH.W, POP.W */
    {0xFE40, 0xE840, 0, 0, plain, 3, 0},         /* LDRD, STRD, TBB, exclusive accesses */
    {0xFE10, 0xF810, 0, 0, load, 0, 0},          /* LDR.W, LDRB.W.. */
    {0xFE10, 0xF800, 0, 0, store, 0, 0},         /* STR.W.. */
    {0xFFD0, 0xFB90, 0, 0, plain, 7, 0},         /* SDIV, UDIV: 2 to 12 */
    {0xEFB0, 0xEE00, VFP_DATA, plain, 3, 0},     /* VMLA, VMLS */
    {0xEFB0, 0xEE10, VFP_DATA, plain, 3, 0},     /* VNMLA, VNMLS */
    {0xEFB0, 0xEE80, VFP_DATA, plain, 14, 0},    /* VDIV */
    {0xEFB0, 0xEE90, VFP_DATA, plain, 3, 0},     /* VFNMA, VFNMS */
    {0xEFB0, 0xEEA0, VFP_DATA, plain, 3, 0},     /* VFMA, VFMS */
    {0xEFBF, 0xEEB1, VFP_SQUARE, plain, 14, 0},  /* VSQRT */
    {0xEFE0, 0xEC40, VFP, plain, 2, 0},          /* VMOV of two registers */
    {0xEF20, 0xED00, VFP, load, 0, 0},           /* VLDR, VSTR */
    {0xEE00, 0xEC00, VFP, words, 0, 0x00FF},     /* VLDM, VSTM, VPUSH, VPOP */
};

/* The multiplier of the M3 is slower. */
static const struct pattern wide_m3[] = {
    {0xFFF0, 0xFB00, 0xF000, 0xF000, plain, 1, 0}, /* MUL */
    {0xFFF0, 0xFB00, 0, 0, plain, 2, 0},           /* MLA, MLS */
    {0xFFD0, 0xFB80, 0, 0, plain, 4, 0},           /* SMULL, UMULL: 3 to 5 */
    {0xFFD0, 0xFBC0, 0, 0, plain, 5, 0},           /* SMLAL, UMLAL: 4 to 7 */
};

static const struct pattern wide_m55[] = {
    {0xFFFF, 0xF00F, 0xF001, 0xC001, loop_end, 0, 0}, /* LE */
    {0xFFFF, 0xF01F, 0xF001, 0xC001, loop_end, 0, 0}, /* LETP */
    {0xEFB0, 0xEE00, VFP_DATA, plain, 1, 0},          /* scalar floating point is pipelined */
    {0xEFB0, 0xEE10, VFP_DATA, plain, 1, 0},
    {0xEFB0, 0xEE90, VFP_DATA, plain, 1, 0},
    {0xEFB0, 0xEEA0, VFP_DATA, plain, 1, 0},
    {0xEE00, 0xEC00, 0x1E00, 0x1E00, plain, 2, 0}, /* vector loads and stores */
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct pattern *find(const struct pattern *patterns, size_t count, unsigned first,
                                  unsigned second)
{
    for (size_t i = 0; i < count; i++)
        if ((first & patterns[i].mask) == patterns[i].value &&
            (second & patterns[i].mask2) == patterns[i].value2)
            return &patterns[i];
    return NULL;
}

static unsigned halfword(const uint8_t *bytes) { return bytes[0] | (unsigned)bytes[1] << 8; }

/* Tables are asked in order: that of the processor, then the common one. */
static const struct pattern *find_wide(const uint8_t *bytes, const struct pattern *own, size_t own_count)
{
    unsigned first = halfword(bytes), second = halfword(bytes + 2);
    const struct pattern *p = find(own, own_count, first, second);
    return p ? p : find(wide, COUNT(wide), first, second);
}

static struct cost price(const struct pattern *p, unsigned last, int after_memory)
{
    struct cost c = {1, 0, 0};
    if (!p)
        return c;
    switch (p->kind) {
    case plain:
        c.cycles = p->cycles;
        break;
    case load:
        c.memory = 1, c.cycles = after_memory ? 1 : 2;
        break;
    case store:
        c.memory = 1;
        break;
    case multiple:
        c.cycles = 1 + (unsigned)__builtin_popcount(last & p->list);
        break;
    case words:
        c.cycles = 1 + (last & p->list);
        break;
    case loop_end:
        c.free_jump = 1;
        break;
    }
    return c;
}

static struct cost cortex(const uint8_t *bytes, size_t size, int after_memory, const struct pattern *own,
                          size_t count)
{
    if (size == 2)
        return price(find(narrow, COUNT(narrow), halfword(bytes), 0), halfword(bytes), after_memory);
    return price(find_wide(bytes, own, count), halfword(bytes + 2), after_memory);
}

struct cost cost_cortex_m4(const uint8_t *bytes, size_t size, int after_memory)
{
    return cortex(bytes, size, after_memory, NULL, 0);
}

struct cost cost_cortex_m3(const uint8_t *bytes, size_t size, int after_memory)
{
    return cortex(bytes, size, after_memory, wide_m3, COUNT(wide_m3));
}

/* Of what has no pattern, the vector instructions are those in the coprocessors' space that are not 10 or 11. */
struct cost cost_cortex_m55(const uint8_t *bytes, size_t size, int after_memory)
{
    struct cost c = cortex(bytes, size, after_memory, wide_m55, COUNT(wide_m55));
    if (c.memory)
        c.cycles = 1;
    if (size == 4 && (bytes[1] & 0xEE) == 0xEE && (bytes[3] & 0x0E) != 0x0A)
        c.cycles = 2;
    return c;
}
