/* The list of ONNX operators, by family, from the tables of the importer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/onnx/onnx.h"
#include "cli/picture/text.h"
#include "onnx/import.h"

#define COLUMNS 110
#define MOST    512 /* operators of a family */

static const struct {
    const char *name;
    const mica_onnx_operator *rows;
} families[] = {
#define LISTED(family) {#family, mica_onnx_##family##_operators},
    MICA_ONNX_FAMILIES(LISTED)
#undef LISTED
};
enum { FAMILIES = sizeof families / sizeof families[0] };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The types of a family, each once, in order. */
static int types_of(const char **types, const mica_onnx_operator *rows)
{
    int count = 0;
    for (; rows->type != NULL && count < MOST; rows++) {
        int k = 0;
        while (k < count && strcmp(types[k], rows->type) != 0)
            k++;
        if (k == count)
            types[count++] = rows->type;
    }
    qsort(types, (size_t)count, sizeof *types, by_name);
    return count;
}

static void print_text(void)
{
    const char *types[MOST];
    for (int f = 0; f < FAMILIES; f++) {
        int count = types_of(types, families[f].rows), column = printf("%-11s ", families[f].name);
        for (int i = 0; i < count; i++) {
            int length = (int)strlen(types[i]) + (i + 1 < count);
            if (column + 1 + length > COLUMNS)
                column = printf("\n%-11s ", "") - 1;
            column += printf(" %s%s", types[i], i + 1 < count ? "," : "");
        }
        printf("\n");
    }
}

static void print_json(void)
{
    bool first = true;
    printf("[");
    for (int f = 0; f < FAMILIES; f++)
        for (const mica_onnx_operator *row = families[f].rows; row->type != NULL; row++) {
            printf("%s{\"type\": ", first ? "" : ",\n");
            put_json(stdout, row->type);
            printf(", \"since\": %d, \"family\": \"%s\"}", row->since, families[f].name);
            first = false;
        }
    printf("]\n");
}

void onnx_operators(bool json)
{
    if (json)
        print_json();
    else
        print_text();
}
