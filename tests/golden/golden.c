/* The reader of golden files. They are ours, so a malformed one is a failed check, not a case to handle. */
#include "golden/golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024 };

static mica_dtype dtype_of(const char *name)
{
    for (int d = 0; d < MICA_DTYPE_COUNT; d++)
        if (strcmp(mica_dtype_name((mica_dtype)d), name) == 0)
            return (mica_dtype)d;
    return MICA_DTYPE_COUNT;
}

static void set_element(const mica_tensor *t, size_t i, double value)
{
    if (t->dtype == MICA_F32)
        ((float *)t->data)[i] = (float)value;
    else if (t->dtype == MICA_I32)
        ((int32_t *)t->data)[i] = (int32_t)value;
    else
        ((uint8_t *)t->data)[i] = (uint8_t)value;
}

static double element(const mica_tensor *t, size_t i)
{
    if (t->dtype == MICA_F32)
        return (double)((const float *)t->data)[i];
    return t->dtype == MICA_I32 ? (double)((const int32_t *)t->data)[i]
                                : (double)((const uint8_t *)t->data)[i];
}

static void *zeroed(const mica_tensor *t)
{
    return calloc(mica_tensor_count(t) + 1, mica_dtype_bytes(t->dtype));
}

/* "tensor <name> <dtype> <sizes>...", with the values on the lines that follow. */
static bool read_tensor(golden_case *c, char *line, FILE *file)
{
    if (c->tensor_count == GOLDEN_TENSORS)
        return false;
    golden_tensor *t = &c->tensors[c->tensor_count++];
    char *rest = line, *word = strtok(rest, " \n");
    word = strtok(NULL, " \n");
    snprintf(t->name, sizeof t->name, "%s", word);
    t->tensor = (mica_tensor){.dtype = dtype_of(strtok(NULL, " \n"))};
    while ((word = strtok(NULL, " \n")) != NULL && t->tensor.rank < MICA_MAX_RANK)
        t->tensor.dim[t->tensor.rank++] = strtol(word, NULL, 10);
    if (t->tensor.dtype == MICA_DTYPE_COUNT)
        return false;
    t->tensor = mica_tensor_like(&t->tensor, zeroed(&t->tensor));
    for (size_t i = 0; i < mica_tensor_count(&t->tensor); i++) {
        double value;
        if (fscanf(file, "%lf", &value) != 1)
            return false;
        set_element(&t->tensor, i, value);
    }
    return true;
}

/* "number <name> <values>..." */
static bool read_number(golden_case *c, char *line)
{
    if (c->number_count == GOLDEN_NUMBERS)
        return false;
    golden_number *n = &c->numbers[c->number_count++];
    char *word = strtok(line, " \n");
    word = strtok(NULL, " \n");
    snprintf(n->name, sizeof n->name, "%s", word);
    while ((word = strtok(NULL, " \n")) != NULL && n->count < 4)
        n->value[n->count++] = strtod(word, NULL);
    return n->count > 0;
}

static bool read_line(golden_file *out, char *line, FILE *file)
{
    golden_case *c = out->count > 0 ? &out->cases[out->count - 1] : NULL;
    if (strncmp(line, "case ", 5) == 0) {
        golden_case *grown = realloc(out->cases, (out->count + 1) * sizeof *grown);
        if (grown == NULL)
            return false;
        out->cases = grown;
        c = &out->cases[out->count++];
        memset(c, 0, sizeof *c);
        return sscanf(line, "case %31s %31s", c->op, c->note) == 2;
    }
    if (c != NULL && strncmp(line, "tensor ", 7) == 0)
        return read_tensor(c, line, file);
    if (c != NULL && strncmp(line, "number ", 7) == 0)
        return read_number(c, line);
    return line[0] == '\n'; /* what is left of the line after a tensor's last value */
}

golden_file golden_load(const char *family)
{
    golden_file out = {0};
    char path[LINE], line[LINE];
    snprintf(path, sizeof path, "%s/golden/%s.txt", MICA_TEST_DATA, family);
    FILE *file = fopen(path, "r");
    if (!CHECK_MSG(file != NULL, "cannot open %s", path))
        return out;
    while (fgets(line, sizeof line, file) != NULL)
        if (!CHECK_MSG(read_line(&out, line, file), "%s: case %zu is malformed", path, out.count))
            break;
    fclose(file);
    CHECK_MSG(out.count > 0, "%s has no case", path);
    return out;
}

void golden_free(golden_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        for (int k = 0; k < file->cases[i].tensor_count; k++)
            free(file->cases[i].tensors[k].tensor.data);
    free(file->cases);
    *file = (golden_file){0};
}

const mica_tensor *golden_find(const golden_case *c, const char *name)
{
    for (int k = 0; k < c->tensor_count; k++)
        if (strcmp(c->tensors[k].name, name) == 0)
            return &c->tensors[k].tensor;
    return NULL;
}

double golden_value(const golden_case *c, const char *name, int i, double otherwise)
{
    for (int k = 0; k < c->number_count; k++)
        if (strcmp(c->numbers[k].name, name) == 0)
            return c->numbers[k].value[i < c->numbers[k].count ? i : c->numbers[k].count - 1];
    return otherwise;
}

mica_tensor golden_like(const golden_case *c, const char *name)
{
    const mica_tensor *t = golden_find(c, name);
    return t != NULL ? mica_tensor_like(t, zeroed(t)) : (mica_tensor){0};
}

void golden_release(mica_tensor *t)
{
    free(t->data);
    t->data = NULL;
}

void golden_compare(const golden_case *c, const char *name, const mica_tensor *got, double tolerance)
{
    const mica_tensor *want = golden_find(c, name);
    if (want == NULL)
        return;
    double worst = 0.0;
    size_t at = 0;
    for (size_t i = 0; i < mica_tensor_count(want); i++) {
        double a = element(got, i), b = element(want, i);
        double error = a == b ? 0.0 : fabs(a - b) / fmax(1.0, fabs(b));
        if (!(error <= worst)) {
            worst = isnan(error) ? HUGE_VAL : error;
            at = i;
        }
    }
    CHECK_MSG(worst <= tolerance, "%s %s: element %zu of %s is off by %.3g", c->op, c->note, at, name, worst);
}
