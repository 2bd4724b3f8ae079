#include <mica/tensor.h>

const char *mica_dtype_name(mica_dtype dtype)
{
    switch (dtype) {
#define NAME_CASE(code, name, bytes, type) \
    case MICA_##code:                      \
        return name;
        MICA_DTYPE_LIST(NAME_CASE)
#undef NAME_CASE
    case MICA_DTYPE_COUNT:
        break;
    }
    return "invalid";
}

size_t mica_dtype_bytes(mica_dtype dtype)
{
    switch (dtype) {
#define BYTES_CASE(code, name, bytes, type) \
    case MICA_##code:                       \
        return bytes;
        MICA_DTYPE_LIST(BYTES_CASE)
#undef BYTES_CASE
    case MICA_DTYPE_COUNT:
        break;
    }
    return 0;
}
