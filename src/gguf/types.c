/* The numbers that GGUF files have for the types of tensors. */
#include "gguf/format.h"

/* Every type that files have had: number, name, and ours (MICA_DTYPE_COUNT: none). Numbers 4, 5, 31 to 33 and 36 to 38
 * are no longer in use. */
static const struct type {
    const char *name;
    mica_dtype dtype;
} types[] = {
    [0] = {"F32", MICA_F32},
    [1] = {"F16", MICA_F16},
    [2] = {"Q4_0", MICA_Q4_0},
    [3] = {"Q4_1", MICA_Q4_1},
    [6] = {"Q5_0", MICA_Q5_0},
    [7] = {"Q5_1", MICA_Q5_1},
    [8] = {"Q8_0", MICA_Q8_0},
    [9] = {"Q8_1", MICA_DTYPE_COUNT},
    [10] = {"Q2_K", MICA_Q2_K},
    [11] = {"Q3_K", MICA_Q3_K},
    [12] = {"Q4_K", MICA_Q4_K},
    [13] = {"Q5_K", MICA_Q5_K},
    [14] = {"Q6_K", MICA_Q6_K},
    [15] = {"Q8_K", MICA_DTYPE_COUNT},
    [16] = {"IQ2_XXS", MICA_DTYPE_COUNT},
    [17] = {"IQ2_XS", MICA_DTYPE_COUNT},
    [18] = {"IQ3_XXS", MICA_DTYPE_COUNT},
    [19] = {"IQ1_S", MICA_DTYPE_COUNT},
    [20] = {"IQ4_NL", MICA_IQ4_NL},
    [21] = {"IQ3_S", MICA_DTYPE_COUNT},
    [22] = {"IQ2_S", MICA_DTYPE_COUNT},
    [23] = {"IQ4_XS", MICA_IQ4_XS},
    [24] = {"I8", MICA_I8},
    [25] = {"I16", MICA_I16},
    [26] = {"I32", MICA_I32},
    [27] = {"I64", MICA_I64},
    [28] = {"F64", MICA_F64},
    [29] = {"IQ1_M", MICA_DTYPE_COUNT},
    [30] = {"BF16", MICA_BF16},
    [34] = {"TQ1_0", MICA_DTYPE_COUNT},
    [35] = {"TQ2_0", MICA_DTYPE_COUNT},
    [39] = {"MXFP4", MICA_DTYPE_COUNT},
    [40] = {"NVFP4", MICA_DTYPE_COUNT},
    [41] = {"Q1_0", MICA_DTYPE_COUNT},
    [42] = {"Q2_0", MICA_DTYPE_COUNT},
};
#define TYPES (sizeof types / sizeof types[0])

int mica_gguf_type(mica_dtype dtype)
{
    if ((unsigned)dtype >= MICA_DTYPE_COUNT)
        return -1;
    for (size_t i = 0; i < TYPES; i++)
        if (types[i].name != NULL && types[i].dtype == dtype)
            return (int)i;
    return -1;
}

mica_dtype mica_gguf_dtype(uint32_t type)
{
    return type < TYPES && types[type].name != NULL ? types[type].dtype : MICA_DTYPE_COUNT;
}

const char *mica_gguf_type_name(uint32_t type) { return type < TYPES ? types[type].name : NULL; }
