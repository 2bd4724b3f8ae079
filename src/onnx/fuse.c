/* Finding patterns: fuse.h says what they are. */
#include "onnx/fuse.h"

#include <math.h>
#include <string.h>

#include "io/number.h"

#define MOST_NODES 24 /* of a pattern */

static const mica_onnx_pattern *const families[] = {
#define MICA_ONNX_LIST_PATTERNS(family) mica_onnx_##family##_patterns,
    MICA_ONNX_PATTERNS(MICA_ONNX_LIST_PATTERNS)
#undef MICA_ONNX_LIST_PATTERNS
};

/* ---- Who reads what ---- */

static void count_name(mica_onnx_import *im, const char *name)
{
    mica_onnx_scope *outer = im->scope;
    im->scope = &im->uses;
    mica_onnx_ref count = mica_onnx_look_up(im, name);
    (void)mica_onnx_bind_name(im, name, count > 0 ? count + 1 : 1);
    im->scope = outer;
}

static void count_graph(mica_onnx_import *im, const mica_onnx_graph *g);

static void count_nodes(mica_onnx_import *im, const mica_onnx_node *nodes, int count)
{
    for (int i = 0; i < count && im->status == MICA_OK; i++) {
        const mica_onnx_node *node = &nodes[i];
        bool shape = strcmp(node->type, "Shape") == 0 || strcmp(node->type, "Size") == 0;
        for (int k = 0; k < node->ins && !shape; k++)
            count_name(im, node->in[k]);
        for (int a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].g != NULL)
                count_graph(im, node->attributes[a].g);
    }
}

static void count_graph(mica_onnx_import *im, const mica_onnx_graph *g)
{
    for (int i = 0; i < g->output_count; i++)
        count_name(im, g->outputs[i].name);
    count_nodes(im, g->nodes, g->node_count);
}

void mica_onnx_count_uses(mica_onnx_import *im)
{
    count_graph(im, &im->model->graph);
    for (int i = 0; i < im->model->function_count && im->status == MICA_OK; i++) {
        const mica_onnx_function *f = &im->model->functions[i];
        for (int k = 0; k < f->outs; k++)
            count_name(im, f->out[k]);
        count_nodes(im, f->nodes, f->node_count);
    }
}

static int uses_of(const mica_onnx_import *im, const char *name)
{
    mica_onnx_import look = {.scope = (mica_onnx_scope *)&im->uses};
    mica_onnx_ref count = mica_onnx_look_up(&look, name);
    return count > 0 ? count : 0;
}

bool mica_onnx_read_once(const mica_onnx_importing *n, mica_onnx_ref ref)
{
    const mica_onnx_import *im = n->import;
    int number = mica_onnx_held_at(im, ref)->maker;
    const mica_onnx_maker *maker = number > 0 ? &im->makers[number - 1] : NULL;
    for (int k = 0; maker != NULL && k < maker->node->outs; k++)
        if (maker->out[k] == ref)
            /* The names that qlinear.c makes up are not counted, and are read once. */
            return maker->body == im->body && uses_of(im, maker->node->out[k]) <= 1;
    return false;
}

/* ---- Who makes what ---- */

static bool grow_makers(mica_onnx_import *im)
{
    mica_status status = mica_onnx_grow(im->ctx, &im->makers, im->maker_count, &im->maker_room,
                                        sizeof *im->makers);
    im->status = status != MICA_OK ? status : im->status;
    return status == MICA_OK;
}

/* Values that a node only passes on keep their maker, and constants need none. */
void mica_onnx_note_maker(mica_onnx_importing *n)
{
    mica_onnx_import *im = n->import;
    bool made = false;
    for (int k = 0; k < n->outs && !n->failed; k++)
        made = made ||
               (n->out[k] > 0 && !mica_onnx_held_at(im, n->out[k])->known &&
                mica_onnx_held_at(im, n->out[k])->maker == 0 && !mica_onnx_held_at(im, n->out[k])->input);
    if (!made || im->status != MICA_OK || !grow_makers(im))
        return;
    mica_onnx_ref *in = mica_onnx_memory(im->model, (size_t)(n->node->ins + n->node->outs) * sizeof *in);
    if (in == NULL) {
        im->status = im->ctx->status;
        return;
    }
    mica_onnx_ref *out = in + n->node->ins;
    for (int i = 0; i < n->node->ins; i++)
        in[i] = i < n->ins ? n->in[i] : 0;
    for (int k = 0; k < n->node->outs; k++)
        out[k] = k < n->outs ? n->out[k] : 0;
    im->makers[im->maker_count++] = (mica_onnx_maker){n->node, in, out, im->body};
    for (int k = 0; k < n->outs; k++)
        if (n->out[k] > 0 && mica_onnx_held_at(im, n->out[k])->maker == 0 &&
            !mica_onnx_held_at(im, n->out[k])->input)
            mica_onnx_held_at(im, n->out[k])->maker = im->maker_count;
}

/* ---- Matching ---- */

typedef struct matching {
    mica_onnx_importing *n;
    mica_onnx_match m;
    const mica_onnx_maker *inner[MOST_NODES]; /* all but the last node, each once */
    int count;
} matching;

static bool match_value(matching *s, const char **text, mica_onnx_ref ref);

static bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

/* The end of the argument that begins here. */
static const char *skip(const char *text)
{
    int depth = 0;
    for (; *text != '\0' && (depth > 0 || (*text != ',' && *text != ')')); text++)
        depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
    return text;
}

/* Whether a known number has more axes than the other input, as [1, 1, 1] next to a matrix: then so has the result, and
 * patterns do not look for that. */
static bool adds_axes(mica_onnx_importing *n, const mica_onnx_ref *in, int count)
{
    for (int i = 0; i < count && count == 2; i++) {
        const mica_tensor *number = mica_onnx_shape(n, in[i]);
        if (mica_onnx_is_known(n, in[i]) && mica_tensor_count(number) == 1 && in[1 - i] != 0 &&
            number->rank > mica_onnx_shape(n, in[1 - i])->rank)
            return true;
    }
    return false;
}

/* Inputs of a node against "(a,b)", from behind the bracket; swapped: the first two change places. */
static bool match_inputs(matching *s, const char *text, const mica_onnx_ref *in, int count, bool swapped)
{
    int i = 0;
    for (; *text != ')'; i++) {
        int at = swapped && i < 2 ? 1 - i : i;
        const char *end = skip(text);
        if (at >= count || in[at] == 0) {
            if (end[-1] != '?')
                return false;
            text = end;
        } else if (!match_value(s, &text, in[at])) {
            return false;
        }
        text += *text == ',';
    }
    for (; i < count; i++)
        if (in[i] != 0)
            return false;
    return true;
}

static bool match_both_ways(matching *s, const char *type, const char *text, const mica_onnx_ref *in,
                            int count)
{
    matching before = *s;
    if (adds_axes(s->n, in, count))
        return false;
    if (match_inputs(s, text, in, count, false))
        return true;
    *s = before;
    return count == 2 && (strcmp(type, "Add") == 0 || strcmp(type, "Mul") == 0) &&
           match_inputs(s, text, in, count, true);
}

/* "Op" or "Op.1": whether the node has this type and output; *text moves to behind the bracket. */
static bool match_type(const char **text, const mica_onnx_node *node, int output)
{
    const char *name = *text;
    size_t length = strcspn(name, ".(");
    int wanted = name[length] == '.' ? name[length + 1] - '0' : 0;
    *text = strchr(name, '(') + 1;
    return node->domain[0] == '\0' && wanted == output && strlen(node->type) == length &&
           strncmp(node->type, name, length) == 0;
}

static bool match_node(matching *s, const char **text, mica_onnx_ref ref)
{
    mica_onnx_import *im = s->n->import;
    int number = mica_onnx_held_at(im, ref)->maker, output = 0;
    const char *end = skip(*text), *at = *text, *label = at[1] == ':' ? at : NULL;
    at += label != NULL ? 2 : 0;
    *text = end;
    if (number == 0)
        return false;
    const mica_onnx_maker *maker = &im->makers[number - 1];
    while (output < maker->node->outs && maker->out[output] != ref)
        output++;
    if (maker->body != im->body || !match_type(&at, maker->node, output) || s->count == MOST_NODES)
        return false;
    bool there = false;
    for (int i = 0; i < s->count; i++)
        there = there || s->inner[i] == maker;
    if (!there)
        s->inner[s->count++] = maker;
    if (label != NULL)
        s->m.node[*label - 'a'] = maker;
    return match_both_ways(s, maker->node->type, at, maker->in, maker->node->ins);
}

/* One argument of a pattern; *text moves to behind it. */
static bool match_value(matching *s, const char **text, mica_onnx_ref ref)
{
    const char *at = *text;
    bool known = *at == '#';
    at += known;
    if (is_letter(*at) && at[1] != ':') {
        *text = skip(at);
        mica_onnx_ref *bound = &s->m.value[*at - 'a'];
        if (known && !mica_onnx_is_known(s->n, ref))
            return false;
        if (*bound == 0)
            *bound = ref;
        return *bound == ref;
    }
    if ((*at >= '0' && *at <= '9') || *at == '-') {
        double wanted = 0, number;
        *text = skip(at);
        return mica_parse_number(&wanted, at, (size_t)(*text - at)) &&
               mica_onnx_is_number(s->n, ref, &number) && fabs(number - wanted) <= 1e-6 * fabs(wanted);
    }
    return match_node(s, text, ref);
}

/* Whether nothing but the pattern reads what lies within. */
static bool is_closed(const matching *s)
{
    const mica_onnx_import *im = s->n->import;
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->inner[i]->node->outs; k++) {
            const char *name = s->inner[i]->node->out[k];
            int within = 0;
            for (int j = 0; j <= s->count; j++) {
                const mica_onnx_node *reader = j < s->count ? s->inner[j]->node : s->n->node;
                for (int r = 0; r < reader->ins; r++)
                    within += reader->in[r] == name;
            }
            if (name[0] != '\0' && uses_of(im, name) > within)
                return false;
        }
    return true;
}

static bool try_pattern(mica_onnx_importing *n, const mica_onnx_pattern *p)
{
    matching s = {.n = n};
    const char *text = p->text[1] == ':' ? p->text + 2 : p->text;
    if (!match_type(&text, n->node, 0) || !match_both_ways(&s, n->node->type, text, n->in, n->ins) ||
        !is_closed(&s))
        return false;
    mica_onnx_maker self = {n->node, n->in, n->out, n->import->body};
    if (p->text[1] == ':')
        s.m.node[p->text[0] - 'a'] = &self;
    return p->import(n, &s.m);
}

bool mica_onnx_fuse(mica_onnx_importing *n)
{
    for (size_t f = 0; f < sizeof families / sizeof *families && n->outs > 0; f++)
        for (const mica_onnx_pattern *p = families[f]; p->text != NULL; p++)
            if (try_pattern(n, p) || n->failed)
                return true;
    return false;
}

/* ---- For the functions ---- */

mica_onnx_importing mica_onnx_as_node(const mica_onnx_importing *n, const mica_onnx_match *m, char letter)
{
    const mica_onnx_maker *maker = m->node[letter - 'a'];
    mica_onnx_importing as = {.import = n->import, .node = maker->node, .opset = n->opset, .outs = 1};
    as.ins = maker->node->ins < MICA_ONNX_INS ? maker->node->ins : MICA_ONNX_INS;
    memcpy(as.in, maker->in, (size_t)as.ins * sizeof *as.in);
    return as;
}

bool mica_onnx_import_as(mica_onnx_importing *n, mica_onnx_importing *as)
{
    const mica_onnx_operator *op = mica_onnx_operator_for(as->node->domain, as->node->type, as->opset);
    if (op == NULL)
        return false;
    while (as->ins > 0 && as->in[as->ins - 1] == 0)
        as->ins--;
    op->import(as);
    n->failed = n->failed || as->failed;
    mica_onnx_give(n, 0, as->out[0]);
    return true;
}

bool mica_onnx_is_number(mica_onnx_importing *n, mica_onnx_ref ref, double *out)
{
    const mica_tensor *t = mica_onnx_shape(n, ref);
    mica_index zeros[MICA_MAX_RANK] = {0};
    return mica_onnx_is_known(n, ref) && mica_tensor_count(t) == 1 &&
           mica_at(n->import->ctx, out, t, zeros) == MICA_OK;
}

bool mica_onnx_is_f32(mica_onnx_importing *n, mica_onnx_ref ref)
{
    return mica_onnx_shape(n, ref)->dtype == MICA_F32;
}

const mica_onnx_recorded *mica_onnx_made_by(const mica_onnx_importing *n, mica_onnx_ref ref, const char *op)
{
    const mica_onnx_import *im = n->import;
    int number = ref > 0 ? mica_onnx_held_at(im, ref)->call : 0;
    return number > 0 && strcmp(im->calls[number - 1].op->name, op) == 0 ? &im->calls[number - 1] : NULL;
}
