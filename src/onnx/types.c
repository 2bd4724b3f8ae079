/* ONNX's types of elements, by their numbers in TensorProto. */
#include <string.h>

#include "onnx/model.h"

static const struct {
    const char *name;  /* as the standard has it */
    const char *dtype; /* Mica's name; NULL: it has none */
} types[] = {
    {"UNDEFINED", NULL},
    {"FLOAT", "f32"},
    {"UINT8", "u8"},
    {"INT8", "i8"},
    {"UINT16", "u16"},
    {"INT16", "i16"},
    {"INT32", "i32"},
    {"INT64", "i64"},
    {"STRING", NULL},
    {"BOOL", "bool"},
    {"FLOAT16", "f16"},
    {"DOUBLE", "f64"},
    {"UINT32", "u32"},
    {"UINT64", "u64"},
    {"COMPLEX64", NULL},
    {"COMPLEX128", NULL},
    {"BFLOAT16", "bf16"},
    {"FLOAT8E4M3FN", "f8e4m3fn"},
    {"FLOAT8E4M3FNUZ", "f8e4m3fnuz"},
    {"FLOAT8E5M2", "f8e5m2"},
    {"FLOAT8E5M2FNUZ", "f8e5m2fnuz"},
    {"UINT4", "u4"},
    {"INT4", "i4"},
    {"FLOAT4E2M1", "f4e2m1"},
    {"FLOAT8E8M0", "f8e8m0"},
    {"UINT2", "u2"},
    {"INT2", "i2"},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

mica_dtype mica_onnx_dtype(int64_t type)
{
    if (type < 0 || type >= TYPE_COUNT || types[type].dtype == NULL)
        return MICA_DTYPE_COUNT;
    mica_dtype dtype = 0;
    while (dtype < MICA_DTYPE_COUNT && strcmp(mica_dtype_name(dtype), types[type].dtype) != 0)
        dtype++;
    return dtype;
}

const char *mica_onnx_type_name(int64_t type)
{
    return type >= 0 && type < TYPE_COUNT ? types[type].name : "UNKNOWN";
}
