/* Random layouts, guards, and elements read and written without the library's help. */
#define _DEFAULT_SOURCE
#include "ops/op_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Elements ---- */

static float half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexp(1024 + fraction, exponent - 25);
    return (float)(bits & 0x8000 ? -value : value);
}

static double get_element(const void *p, mica_dtype dtype)
{
    uint32_t wide = 0;
    float f;
    switch (dtype) {
    case MICA_F32:
        memcpy(&f, p, sizeof f);
        return f;
    case MICA_F64:
        return *(const double *)p;
    case MICA_F16:
        return half_value(*(const uint16_t *)p);
    case MICA_BF16:
        wide = (uint32_t) * (const uint16_t *)p << 16;
        memcpy(&f, &wide, sizeof f);
        return f;
    case MICA_I64:
        return (double)*(const int64_t *)p;
    case MICA_I32:
        return *(const int32_t *)p;
    case MICA_I16:
        return *(const int16_t *)p;
    case MICA_U16:
        return *(const uint16_t *)p;
    case MICA_U32:
        return *(const uint32_t *)p;
    case MICA_U64:
        return (double)*(const uint64_t *)p;
    case MICA_I8:
    case MICA_I4:
        return *(const int8_t *)p;
    default:
        return *(const uint8_t *)p;
    }
}

/* Values for f16 and bf16 are small integers here, which both hold exactly. */
static void set_element(void *p, mica_dtype dtype, double value)
{
    float f = (float)value;
    uint32_t wide;
    memcpy(&wide, &f, sizeof wide);
    uint32_t half = value == 0.0 ? 0 : (wide >> 16 & 0x8000) | (((wide & 0x7fffffff) - (112u << 23)) >> 13);
    switch (dtype) {
    case MICA_F32:
        memcpy(p, &f, sizeof f);
        break;
    case MICA_F64:
        *(double *)p = value;
        break;
    case MICA_F16:
        *(uint16_t *)p = (uint16_t)half;
        break;
    case MICA_BF16:
        *(uint16_t *)p = (uint16_t)(wide >> 16);
        break;
    case MICA_I64:
        *(int64_t *)p = (int64_t)value;
        break;
    case MICA_I32:
        *(int32_t *)p = (int32_t)value;
        break;
    case MICA_I16:
        *(int16_t *)p = (int16_t)value;
        break;
    case MICA_U16:
        *(uint16_t *)p = (uint16_t)value;
        break;
    case MICA_U32:
        *(uint32_t *)p = (uint32_t)value;
        break;
    case MICA_U64:
        *(uint64_t *)p = (uint64_t)value;
        break;
    case MICA_I8:
    case MICA_I4:
        *(int8_t *)p = (int8_t)value;
        break;
    case MICA_BOOL:
        *(uint8_t *)p = value != 0.0;
        break;
    default:
        *(uint8_t *)p = (uint8_t)value;
    }
}

/* The address of element i in row-major order. */
static unsigned char *address(const mica_tensor *t, size_t i)
{
    mica_index offset = 0;
    for (int axis = t->rank - 1; axis >= 0; axis--) {
        offset += (mica_index)(i % (size_t)t->dim[axis]) * t->stride[axis];
        i /= (size_t)t->dim[axis];
    }
    return (unsigned char *)t->data + offset * (mica_index)mica_dtype_bytes(t->dtype);
}

void op_read(const mica_tensor *t, double *value)
{
    for (size_t i = 0; i < mica_tensor_count(t); i++)
        value[i] = get_element(address(t, i), t->dtype);
}

void op_write(const mica_tensor *t, const double *value)
{
    for (size_t i = 0; i < mica_tensor_count(t); i++)
        set_element(address(t, i), t->dtype, value[i]);
}

/* ---- Layouts ---- */

/* Random strides: axes in any order of memory, steps, gaps, either direction; inputs now and then repeat an
 * axis. Returns the elements spanned; *first is where the element at index 0, 0, ... lies. */
static size_t random_layout(mica_tensor *t, test_random *r, bool output, mica_index *first)
{
    int order[MICA_MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        int j = test_int(r, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
    bool keep_order = test_chance(r, 50); /* row-major with gaps is the usual case */
    mica_index span = test_chance(r, 30) ? 2 : 1;
    *first = 0;
    for (int k = t->rank - 1; k >= 0; k--) {
        int axis = keep_order ? k : order[k];
        if (!output && t->dim[axis] == 1 && test_chance(r, 20)) {
            t->stride[axis] = 0;
            continue;
        }
        mica_index gap = test_chance(r, 25) ? test_int(r, 1, 3) : 0;
        bool backwards = test_chance(r, 10);
        mica_index extent = span * (t->dim[axis] > 0 ? t->dim[axis] : 1);
        t->stride[axis] = backwards ? -span : span;
        if (backwards && t->dim[axis] > 0)
            *first += (t->dim[axis] - 1) * span;
        span = extent + gap;
    }
    return (size_t)span;
}

/* Memory that ends with a page, behind which lies one that cannot be touched: what is read beyond an input changes no
 * result, and the address sanitizer does not see all loads of vectors. */
static void take_pages(op_storage *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (s->size + page - 1) / page * page;
    s->mapped = pages + page;
    s->pages = mmap(NULL, s->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(s->pages != MAP_FAILED && mprotect((char *)s->pages + pages, page, PROT_NONE) == 0);
    s->bytes = (unsigned char *)s->pages + pages - s->size;
}

static void place_tensor(op_storage *s, mica_tensor *t, test_random *r, bool output, bool plain)
{
    mica_index first = 0;
    size_t span = mica_tensor_count(t), width = mica_dtype_bytes(t->dtype);
    size_t margin = 16; /* guard elements on either side */
    if (!plain) {
        span = random_layout(t, r, output, &first);
        margin += (size_t)test_int(r, 0, 3);
    }
    s->size = (span + (output ? 2 : 1) * margin) * width;
    if (output)
        s->bytes = malloc(s->size);
    else
        take_pages(s);
    s->before = malloc(s->size);
    s->element = calloc(s->size, sizeof *s->element);
    for (size_t i = 0; i < s->size; i++)
        s->bytes[i] = (unsigned char)test_next(r);
    for (size_t i = 0; i < margin * width && !output; i++) /* a call has the numbers that it always had */
        (void)test_next(r);
    t->data = s->bytes + (margin + (size_t)first) * width;
    for (size_t i = 0; i < mica_tensor_count(t); i++)
        memset(s->element + (address(t, i) - s->bytes), 1, width);
}

static void fill_values(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    bool real = c->tensor[tensor].dtype == MICA_F32 || c->tensor[tensor].dtype == MICA_F64;
    for (size_t i = 0; i < count; i++)
        value[i] = real ? (double)(float)test_normal(r) : (double)test_int(r, 0, 9);
}

void op_place(op_memory *m, op_call *c, test_random *r, bool plain)
{
    memset(m, 0, sizeof *m);
    for (int k = 0; k < c->op->outs + c->op->ins; k++) {
        if (c->absent[k])
            continue;
        bool output = k < c->op->outs;
        bool contiguous = plain || (c->op->contiguous & OP_BIT(k)) || test_chance(r, 30);
        place_tensor(&m->of[k], &c->tensor[k], r, output, contiguous);
        size_t count = op_count(c, k);
        m->value[k] = calloc(count + 1, sizeof(double));
        if (output && !(c->op->reads_outs & OP_BIT(k)))
            continue;
        (c->op->fill != NULL ? c->op->fill : fill_values)(c, r, k, m->value[k], count);
        op_write(&c->tensor[k], m->value[k]);
        op_read(&c->tensor[k], m->value[k]); /* as the dtype holds them */
    }
}

void op_free(op_memory *m)
{
    for (int k = 0; k < OP_TENSORS; k++) {
        if (m->of[k].pages != NULL)
            (void)munmap(m->of[k].pages, m->of[k].mapped);
        else
            free(m->of[k].bytes);
        free(m->of[k].before);
        free(m->of[k].element);
        free(m->value[k]);
    }
}

void op_keep(op_memory *m)
{
    for (int k = 0; k < OP_TENSORS; k++)
        if (m->of[k].bytes != NULL)
            memcpy(m->of[k].before, m->of[k].bytes, m->of[k].size);
}

bool op_unchanged(const op_memory *m, const op_call *c, bool but_outputs)
{
    for (int k = 0; k < OP_TENSORS; k++) {
        const op_storage *s = &m->of[k];
        bool skip_elements = but_outputs && k < c->op->outs;
        for (size_t i = 0; s->bytes != NULL && i < s->size; i++)
            if (s->bytes[i] != s->before[i] && !(skip_elements && s->element[i]))
                return false;
    }
    return true;
}
