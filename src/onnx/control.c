/* Control flow that is decided while the net is built: branches whose condition is known, and loops whose number of
 * turns is, which are written out. */
#include <string.h>

#include "onnx/moves.h"
#include "onnx/state.h"

/* The turns of a loop that is written out: more would make the program too large. */
#define MOST_TURNS 4096

static const mica_onnx_graph *graph_of(mica_onnx_importing *n, const char *name)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, name);
    if (a != NULL && a->kind == MICA_ONNX_GRAPH)
        return a->g;
    (void)mica_onnx_bad(n, "no graph \"%s\"", name);
    return NULL;
}

/* Imports that decide otherwise are of graphs that cannot be compared. */
static void note_decision(mica_onnx_importing *n, uint64_t decision)
{
    n->import->decisions = (n->import->decisions ^ (decision + 1)) * 0x100000001b3; /* FNV-1a's prime */
}

static void branch(mica_onnx_importing *n)
{
    if (mica_onnx_known(n, n->in[0], "the condition") == NULL)
        return;
    bool holds = mica_onnx_known_number(n, n->in[0], "the condition") != 0;
    note_decision(n, holds);
    const mica_onnx_graph *graph = graph_of(n, holds ? "then_branch" : "else_branch");
    if (graph != NULL)
        (void)mica_onnx_import_graph(n, graph, NULL, 0, n->out, n->outs);
}

/* ---- Loops ---- */

/* What the turns have made so far of one output: parts of size 1 along a new axis, which are joined at the end. */
typedef struct collected {
    mica_onnx_ref *parts;
    int count, room;
    int axis;
    bool reverse;
} collected;

static void collect(mica_onnx_importing *n, collected *c, mica_onnx_ref part)
{
    int rank = mica_onnx_shape(n, part)->rank;
    c->axis += c->axis < 0 ? rank + 1 : 0;
    if (c->count == c->room) {
        int room = c->room > 0 ? 2 * c->room : 16;
        mica_onnx_ref *parts = mica_onnx_room(n, (size_t)room, sizeof *parts);
        if (parts == NULL)
            return;
        if (c->count > 0)
            memcpy(parts, c->parts, (size_t)c->count * sizeof *parts);
        c->parts = parts;
        c->room = room;
    }
    c->parts[c->count++] = mica_onnx_op1(n, "unsqueeze", part, &(mica_axis_opts){c->axis});
}

static void give_collected(mica_onnx_importing *n, const collected *c, int count, int first)
{
    for (int k = 0; k < count && !n->failed; k++) {
        if (c[k].count == 0 && mica_onnx_wants(n, first + k))
            (void)mica_onnx_unsupported(n,
                                        "a loop without a turn, whose output has a shape that is not known");
        for (int i = 0; c[k].reverse && i < c[k].count / 2; i++) {
            mica_onnx_ref *other = &c[k].parts[c[k].count - 1 - i], kept = c[k].parts[i];
            c[k].parts[i] = *other;
            *other = kept;
        }
        mica_onnx_give(n, first + k, mica_onnx_join(n, c[k].parts, c[k].count, c[k].axis));
    }
}

/* The number of turns; MOST_TURNS + 1: as many as the condition allows. -1 after an error. */
static int64_t turns_of(mica_onnx_importing *n)
{
    if (n->ins < 1 || n->in[0] == 0)
        return MOST_TURNS + 1;
    double turns = mica_onnx_known_number(n, n->in[0], "the number of turns");
    if (n->failed)
        return -1;
    if (turns > MOST_TURNS)
        return MOST_TURNS + 1;
    return turns > 0 ? (int64_t)turns : 0;
}

static bool holds(mica_onnx_importing *n, mica_onnx_ref condition)
{
    return condition == 0 ||
           (mica_onnx_known_number(n, condition, "the condition of a loop") != 0 && !n->failed);
}

static void loop(mica_onnx_importing *n)
{
    const mica_onnx_graph *body = graph_of(n, "body");
    int carried = n->ins > 2 ? n->ins - 2 : 0;
    mica_onnx_ref in[MICA_ONNX_OUTS], out[MICA_ONNX_OUTS] = {0}, condition = n->ins > 1 ? n->in[1] : 0;
    collected scans[MICA_ONNX_OUTS] = {{0}};
    int64_t turns = turns_of(n), turn = 0;
    int scanned = body != NULL ? body->output_count - 1 - carried : 0;
    if (n->failed)
        return;
    if (scanned < 0 || carried + 2 > MICA_ONNX_OUTS || body->output_count > MICA_ONNX_OUTS) {
        (void)mica_onnx_bad(n, "its body has %d outputs for %d values", body->output_count, carried);
        return;
    }
    for (int i = 0; i < carried; i++)
        in[i + 2] = n->in[i + 2];
    for (; turn < turns && holds(n, condition); turn++) {
        if (turn == MOST_TURNS)
            (void)mica_onnx_unsupported(n, "a loop of more than %d turns", MOST_TURNS);
        in[0] = mica_onnx_scalar(n, MICA_I64, (double)turn);
        in[1] = condition != 0 ? condition : mica_onnx_scalar(n, MICA_BOOL, 1);
        if (n->failed || !mica_onnx_import_graph(n, body, in, carried + 2, out, MICA_ONNX_OUTS))
            return;
        condition = out[0];
        for (int i = 0; i < carried; i++)
            in[i + 2] = out[i + 1];
        for (int k = 0; k < scanned; k++)
            collect(n, &scans[k], out[1 + carried + k]);
    }
    note_decision(n, (uint64_t)turn);
    for (int i = 0; i < carried; i++)
        mica_onnx_give(n, i, in[i + 2]);
    give_collected(n, scans, scanned, carried);
}

/* ---- Scan ---- */

#define MOST_SCANS 32

typedef struct scan_plan {
    int states, scans, outs; /* carried values, inputs that are cut, outputs that are joined */
    int64_t in_axes[MOST_SCANS], out_axes[MOST_SCANS], in_back[MOST_SCANS], out_back[MOST_SCANS];
    mica_index turns;
} scan_plan;

static bool plan_scan(mica_onnx_importing *n, const mica_onnx_graph *body, scan_plan *p)
{
    int64_t scans = mica_onnx_int(n, "num_scan_inputs", 0);
    bool fits = scans >= 1 && scans <= MOST_SCANS && scans <= n->ins;
    *p = (scan_plan){.scans = fits ? (int)scans : 0};
    p->states = n->ins - p->scans;
    p->outs = body->output_count - p->states;
    if (!fits || p->outs < 0 || p->outs > MOST_SCANS || n->ins > MICA_ONNX_OUTS ||
        body->output_count > MICA_ONNX_OUTS) {
        (void)mica_onnx_bad(n, "num_scan_inputs is %lld of %d inputs, and its body has %d outputs",
                            (long long)scans, n->ins, body->output_count);
        return false;
    }
    (void)mica_onnx_int_list(n, "scan_input_axes", p->in_axes, MOST_SCANS);
    (void)mica_onnx_int_list(n, "scan_output_axes", p->out_axes, MOST_SCANS);
    (void)mica_onnx_int_list(n, "scan_input_directions", p->in_back, MOST_SCANS);
    (void)mica_onnx_int_list(n, "scan_output_directions", p->out_back, MOST_SCANS);
    for (int k = 0; k < p->scans && !n->failed; k++) {
        mica_onnx_ref x = n->in[p->states + k];
        p->in_axes[k] = mica_onnx_axis(n, p->in_axes[k], x);
        mica_index size = mica_onnx_shape(n, x)->dim[p->in_axes[k]];
        if (k > 0 && size != p->turns)
            (void)mica_onnx_bad(n, "inputs to cut into %td and into %td", p->turns, size);
        p->turns = size;
    }
    if (p->turns > MOST_TURNS)
        (void)mica_onnx_unsupported(n, "%td turns: expected at most %d", p->turns, MOST_TURNS);
    return !n->failed;
}

static mica_onnx_ref cut(mica_onnx_importing *n, mica_onnx_ref x, int axis, mica_index at)
{
    mica_onnx_ref row = mica_onnx_op1(n, "slice", x,
                                      &(mica_slice_range_opts){.axis = axis, .start = at, .stop = at + 1});
    return mica_onnx_op1(n, "squeeze", row, &(mica_axis_opts){axis});
}

static void scan(mica_onnx_importing *n)
{
    const mica_onnx_graph *body = graph_of(n, "body");
    scan_plan p;
    mica_onnx_ref in[MICA_ONNX_OUTS], out[MICA_ONNX_OUTS] = {0};
    collected outs[MOST_SCANS] = {{0}};
    if (body == NULL || !plan_scan(n, body, &p))
        return;
    note_decision(n, (uint64_t)p.turns);
    for (int i = 0; i < p.states; i++)
        in[i] = n->in[i];
    for (int k = 0; k < p.outs; k++)
        outs[k] = (collected){.axis = (int)p.out_axes[k], .reverse = p.out_back[k] != 0};
    for (mica_index turn = 0; turn < p.turns; turn++) {
        for (int k = 0; k < p.scans; k++)
            in[p.states + k] = cut(n, n->in[p.states + k], (int)p.in_axes[k],
                                   p.in_back[k] != 0 ? p.turns - 1 - turn : turn);
        if (n->failed || !mica_onnx_import_graph(n, body, in, n->ins, out, MICA_ONNX_OUTS))
            return;
        for (int i = 0; i < p.states; i++)
            in[i] = out[i];
        for (int k = 0; k < p.outs; k++)
            collect(n, &outs[k], out[p.states + k]);
    }
    for (int i = 0; i < p.states; i++)
        mica_onnx_give(n, i, in[i]);
    give_collected(n, outs, p.outs, p.states);
}

static void scan_8(mica_onnx_importing *n)
{
    (void)mica_onnx_unsupported(n, "Scan before opset 9, which had batches");
}

const mica_onnx_operator mica_onnx_control_operators[] = {
    {"If", 1, branch}, {"Loop", 1, loop}, {"Scan", 8, scan_8}, {"Scan", 9, scan}, {NULL, 0, NULL}};
