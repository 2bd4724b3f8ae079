/* Einsum, as products of matrices, and determinants.
 *
 * The equation names the axes of every operand by a letter; the axes of "..." get letters of their own here. Operands
 * are joined from left to right. Letters that nobody else needs are summed over at once; then two operands become
 *
 *     a [shared, own, summed]  times  b [shared, summed, own]   gives   [shared, a's own, b's own]
 *
 * which is a matmul of three axes, or of more as they are: then sizes that may be smaller in a step stay apart. Letters
 * that one operand has twice are its diagonal. */
#include <string.h>

#include "onnx/moves.h"

#define MOST_OPERANDS 16
#define LETTERS       128 /* by their codes; those of "..." are 1 to MICA_MAX_RANK, counted from the last */

typedef struct term {
    mica_onnx_ref x;
    int rank;
    unsigned char letter[2 * MICA_MAX_RANK];
} term;

typedef struct equation {
    term in[MOST_OPERANDS];
    int count;
    term out;
    mica_index size[LETTERS]; /* 0: the letter is not there */
    int dots;                 /* the most axes that a "..." stands for */
} equation;

/* ---- Reading ---- */

/* Reads the letters of one term up to a comma, an arrow or the end. `dots`: for how many axes "..." stands. */
static const char *read_term(mica_onnx_importing *n, const char *text, term *t, int dots)
{
    t->rank = 0;
    for (; *text != '\0' && *text != ',' && *text != '-'; text++) {
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        if (*text == ' ')
            continue;
        if (t->rank + (letter ? 1 : dots) > 2 * MICA_MAX_RANK || (!letter && strncmp(text, "...", 3) != 0)) {
            (void)mica_onnx_bad(n, "an equation that ends with \"%.16s\"", text);
            return text;
        }
        if (letter) {
            t->letter[t->rank++] = (unsigned char)*text;
            continue;
        }
        for (int k = dots; k > 0; k--)
            t->letter[t->rank++] = (unsigned char)k;
        text += 2;
    }
    return text;
}

/* How many letters a term has, without "...". */
static int letters_of(const char *text)
{
    int count = 0;
    for (; *text != '\0' && *text != ',' && *text != '-'; text++)
        count += (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
    return count;
}

static bool note_sizes(mica_onnx_importing *n, equation *e, const term *t)
{
    const mica_tensor *x = mica_onnx_shape(n, t->x);
    for (int k = 0; k < t->rank; k++) {
        mica_index *size = &e->size[t->letter[k]];
        if (x->dim[k] == 0)
            return mica_onnx_unsupported(n, "an operand without elements") != 0;
        if (*size != 0 && *size != x->dim[k] && *size != 1 && x->dim[k] != 1)
            return mica_onnx_bad(n, "one axis is of size %td and of size %td", *size, x->dim[k]) != 0;
        if (*size == 0 || *size == 1)
            *size = x->dim[k];
    }
    return true;
}

/* Without an arrow: "...", then the letters that are there once, by the alphabet. */
static void implied_output(equation *e)
{
    int seen[LETTERS] = {0};
    for (int i = 0; i < e->count; i++)
        for (int k = 0; k < e->in[i].rank; k++)
            seen[e->in[i].letter[k]]++;
    for (int k = e->dots; k > 0; k--)
        e->out.letter[e->out.rank++] = (unsigned char)k;
    for (int c = 'A'; c <= 'z'; c++)
        if (seen[c] == 1 && e->out.rank < MICA_MAX_RANK)
            e->out.letter[e->out.rank++] = (unsigned char)c;
}

static bool read_equation(mica_onnx_importing *n, equation *e)
{
    const char *text = mica_onnx_text(n, "equation", "");
    if (n->ins > MOST_OPERANDS)
        return mica_onnx_unsupported(n, "%d operands, expected at most %d", n->ins, MOST_OPERANDS) != 0;
    for (e->count = 0; e->count < n->ins && !n->failed; e->count++) {
        term *t = &e->in[e->count];
        t->x = n->in[e->count];
        int rank = mica_onnx_shape(n, t->x)->rank, dots = rank - letters_of(text);
        text = read_term(n, text, t, dots > 0 ? dots : 0);
        bool more = e->count + 1 < n->ins;
        if (!n->failed && (t->rank != rank || (*text == ',') != more))
            return mica_onnx_bad(n, "term %d of the equation has %d axes, its operand %d", e->count, t->rank,
                                 rank) != 0;
        for (int k = 0; k < t->rank; k++)
            e->dots = t->letter[k] <= MICA_MAX_RANK && t->letter[k] > e->dots ? t->letter[k] : e->dots;
        if (n->failed || !note_sizes(n, e, t))
            return false;
        text += more;
    }
    if (*text == '-' && text[1] == '>')
        text = read_term(n, text + 2, &e->out, e->dots);
    else if (*text == '\0')
        implied_output(e);
    if (!n->failed && *text != '\0')
        return mica_onnx_bad(n, "an equation that ends with \"%.16s\"", text) != 0;
    for (int k = 0; k < e->out.rank && !n->failed; k++)
        if (e->size[e->out.letter[k]] == 0)
            return mica_onnx_unsupported(n, "an axis of the result that no operand has") != 0;
    return !n->failed;
}

/* ---- One operand ---- */

static int place_of(const term *t, unsigned char letter)
{
    for (int k = 0; k < t->rank; k++)
        if (t->letter[k] == letter)
            return k;
    return -1;
}

static void without_letter(term *t, int at)
{
    memmove(&t->letter[at], &t->letter[at + 1], (size_t)(t->rank - at - 1));
    t->rank--;
}

/* Axes first and second, of the same size n, become one, the diagonal: every n + 1st of the n * n, as the last axis. */
static void take_diagonal(mica_onnx_importing *n, term *t, int first, int second)
{
    const mica_tensor *x = mica_onnx_shape(n, t->x);
    mica_index dims[MICA_MAX_RANK], size = x->dim[first];
    int axes[MICA_MAX_RANK], used = 0;
    unsigned char letter = t->letter[first];
    for (int k = 0; k < t->rank; k++)
        if (k != first && k != second) {
            dims[used] = x->dim[k];
            axes[used++] = k;
        }
    axes[used] = first;
    axes[used + 1] = second;
    dims[used] = size * size;
    mica_onnx_ref y = mica_onnx_reshape(n, mica_onnx_permute(n, t->x, axes), used + 1, dims);
    t->x = mica_onnx_slice(n, y, used, 0, INT64_MAX, size + 1);
    without_letter(t, second);
    without_letter(t, first);
    t->letter[t->rank++] = letter;
}

static void take_diagonals(mica_onnx_importing *n, term *t)
{
    for (int first = 0; first < t->rank && !n->failed; first++)
        for (int second = first + 1; second < t->rank; second++)
            if (t->letter[first] == t->letter[second]) {
                take_diagonal(n, t, first, second);
                first = -1;
                break;
            }
}

/* Sums over the axes whose letters are not needed. An axis of size 1 is only dropped. */
static void sum_others(mica_onnx_importing *n, term *t, const bool *needed)
{
    mica_reduction_opts opts = {.count = 0};
    for (int k = 0; k < t->rank; k++)
        if (!needed[t->letter[k]])
            opts.axes[opts.count++] = k;
    if (opts.count > 0)
        t->x = mica_onnx_op1(n, "sum", t->x, &opts);
    for (int i = opts.count - 1; i >= 0; i--)
        without_letter(t, opts.axes[i]);
}

/* The axes in the order of these letters, all of which it has. */
static void arrange(mica_onnx_importing *n, term *t, const unsigned char *letters)
{
    int axes[MICA_MAX_RANK] = {0};
    bool moved = false;
    for (int k = 0; k < t->rank; k++) {
        axes[k] = place_of(t, letters[k]);
        moved = moved || axes[k] != k;
    }
    if (moved)
        t->x = mica_onnx_permute(n, t->x, axes);
    memcpy(t->letter, letters, (size_t)t->rank);
}

/* ---- Two operands ---- */

typedef struct grouped {
    unsigned char letter[MICA_MAX_RANK];
    int count;
    mica_index size; /* of all together */
} grouped;

static void add_letter(const equation *e, grouped *g, unsigned char letter)
{
    g->letter[g->count++] = letter;
    g->size *= e->size[letter];
}

/* Letters that both have: the same size in both. */
static void stretch(mica_onnx_importing *n, const equation *e, term *t, const term *other)
{
    const mica_tensor *x = mica_onnx_shape(n, t->x);
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < t->rank; k++)
        dims[k] = place_of(other, t->letter[k]) >= 0 ? e->size[t->letter[k]] : x->dim[k];
    t->x = mica_onnx_expand(n, t->x, t->rank, dims);
}

/* `joined`: each group becomes one axis. */
static void lay_out(mica_onnx_importing *n, term *t, const grouped *a, const grouped *b, const grouped *c,
                    bool joined)
{
    unsigned char letters[2 * MICA_MAX_RANK];
    int used = 0;
    const grouped *order[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < order[i]->count; k++)
            letters[used++] = order[i]->letter[k];
    arrange(n, t, letters);
    if (joined)
        t->x = mica_onnx_reshape(n, t->x, 3, (mica_index[]){a->size, b->size, c->size});
}

/* The letters and sizes of a product: shared, a's own, b's own. Returns its rank. */
static int axes_of_product(mica_onnx_importing *n, const term *a, const term *b,
                           const grouped *const order[3], mica_index *dims, unsigned char *letters)
{
    const mica_tensor *x = mica_onnx_shape(n, a->x), *y = mica_onnx_shape(n, b->x);
    int rank = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < order[i]->count; k++) {
            int at = place_of(a, order[i]->letter[k]);
            dims[rank] = at >= 0 ? x->dim[at] : y->dim[place_of(b, order[i]->letter[k])];
            letters[rank++] = order[i]->letter[k];
        }
    return rank;
}

/* a = a times b, over what both have and nobody else needs. */
static void multiply(mica_onnx_importing *n, equation *e, term *a, term *b, const bool *needed)
{
    grouped shared = {.size = 1}, of_a = {.size = 1}, of_b = {.size = 1}, summed = {.size = 1};
    stretch(n, e, a, b);
    stretch(n, e, b, a);
    const mica_tensor *x = mica_onnx_shape(n, a->x), *y = mica_onnx_shape(n, b->x);
    for (int k = 0; k < a->rank; k++) {
        unsigned char letter = a->letter[k];
        bool both = place_of(b, letter) >= 0;
        grouped *g = !both ? &of_a : needed[letter] ? &shared : &summed;
        add_letter(e, g, letter);
        g->size = both ? g->size : g->size / e->size[letter] * x->dim[k];
    }
    for (int k = 0; k < b->rank; k++)
        if (place_of(a, b->letter[k]) < 0) {
            add_letter(e, &of_b, b->letter[k]);
            of_b.size = of_b.size / e->size[b->letter[k]] * y->dim[k];
        }
    if (shared.count == 0 &&
        of_a.count < of_b.count) { /* the one with more axes goes first: they stay as they are */
        const term turned = *a;
        const grouped own = of_a;
        *a = *b;
        *b = turned;
        of_a = of_b;
        of_b = own;
    }
    if (shared.count + of_a.count + of_b.count > MICA_MAX_RANK) {
        (void)mica_onnx_unsupported(n, "a product of more than %d dimensions", MICA_MAX_RANK);
        return;
    }
    mica_index dims[MICA_MAX_RANK];
    unsigned char letters[MICA_MAX_RANK];
    int rank = axes_of_product(n, a, b, (const grouped *const[]){&shared, &of_a, &of_b}, dims, letters);
    bool joined = summed.count != 1 || of_b.count != 1 || of_a.count < 1 ||
                  (shared.count > 0 && of_a.count > 1);
    lay_out(n, a, &shared, &of_a, &summed, joined);
    lay_out(n, b, &shared, &summed, &of_b, joined);
    a->x = mica_onnx_op2(n, "matmul", a->x, b->x, NULL);
    if (joined)
        a->x = mica_onnx_reshape(n, a->x, rank, dims);
    a->rank = rank;
    memcpy(a->letter, letters, (size_t)rank);
}

/* Letters that the result or an operand from `first` on needs. */
static void find_needed(const equation *e, int first, bool *needed)
{
    memset(needed, 0, LETTERS * sizeof *needed);
    for (int k = 0; k < e->out.rank; k++)
        needed[e->out.letter[k]] = true;
    for (int i = first; i < e->count; i++)
        for (int k = 0; k < e->in[i].rank; k++)
            needed[e->in[i].letter[k]] = true;
}

/* Letters that the result or an operand other than number i needs. */
static void needed_elsewhere(const equation *e, int from, int i, bool *needed)
{
    find_needed(e, e->count, needed);
    for (int j = from; j < e->count; j++)
        for (int k = 0; k < e->in[j].rank && j != i; k++)
            needed[e->in[j].letter[k]] = true;
}

static void einsum(mica_onnx_importing *n)
{
    equation e = {.count = 0};
    bool needed[LETTERS];
    if (!read_equation(n, &e))
        return;
    for (int i = 0; i < e.count; i++) {
        mica_dtype dtype = mica_onnx_shape(n, e.in[i].x)->dtype;
        if (mica_onnx_is_half(dtype))
            e.in[i].x = mica_onnx_cast(n, e.in[i].x, MICA_F32);
        take_diagonals(n, &e.in[i]);
        needed_elsewhere(&e, 0, i, needed);
        sum_others(n, &e.in[i], needed);
    }
    term *all = &e.in[0];
    for (int i = 1; i < e.count && !n->failed; i++) {
        find_needed(&e, i + 1, needed);
        multiply(n, &e, all, &e.in[i], needed);
    }
    find_needed(&e, e.count, needed);
    sum_others(n, all, needed);
    if (n->failed || all->rank != e.out.rank) {
        (void)mica_onnx_unsupported(n, "a result with a letter twice");
        return;
    }
    arrange(n, all, e.out.letter);
    mica_onnx_give_like(n, 0, all->x, n->in[0]);
}

static void det(mica_onnx_importing *n)
{
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, "det", mica_onnx_f32(n, 0), NULL), n->in[0]);
}

const mica_onnx_operator mica_onnx_einsum_operators[] = {
    {"Einsum", 12, einsum}, {"Det", 11, det}, {NULL, 0, NULL}};
