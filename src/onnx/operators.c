/* The table of operators: those of all families. */
#include <string.h>

#include "onnx/import.h"

static const mica_onnx_operator *const families[] = {
#define LISTED(family) mica_onnx_##family##_operators,
    MICA_ONNX_FAMILIES(LISTED)
#undef LISTED
};

/* "Type" of the main domain, "domain:Type" of others. */
static bool named(const char *row, const char *domain, const char *type)
{
    size_t length = strlen(domain);
    if (length == 0)
        return strcmp(row, type) == 0;
    return strncmp(row, domain, length) == 0 && row[length] == ':' && strcmp(row + length + 1, type) == 0;
}

const mica_onnx_operator *mica_onnx_operator_for(const char *domain, const char *type, int opset)
{
    const mica_onnx_operator *best = NULL;
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (const mica_onnx_operator *row = families[f]; row->type != NULL; row++)
            if (named(row->type, domain, type) && row->since <= opset &&
                (best == NULL || row->since > best->since))
                best = row;
    return best;
}
