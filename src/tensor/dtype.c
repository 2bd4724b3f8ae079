/* What is known of each dtype. */
#include "tensor/tensor.h"

const mica_dtype_kind mica_dtype_kinds[MICA_DTYPE_COUNT] = {
#define KIND(code, name, bytes, block, type) [MICA_##code] = {name, bytes, block},
    MICA_DTYPE_LIST(KIND)
#undef KIND
};

#define FITS(code, name, bytes, block, type)                                     \
    _Static_assert(MICA_MAX_BLOCK % (block) == 0, name " has an unusual block"); \
    _Static_assert((bytes) % sizeof(type) == 0, name " is no whole number of its C type");
MICA_DTYPE_LIST(FITS)
#undef FITS

static const mica_dtype_kind *find(mica_dtype dtype)
{
    static const mica_dtype_kind none = {"invalid", 0, 0};
    return (unsigned)dtype < MICA_DTYPE_COUNT ? &mica_dtype_kinds[dtype] : &none;
}

const char *mica_dtype_name(mica_dtype dtype) { return find(dtype)->name; }

size_t mica_dtype_bytes(mica_dtype dtype) { return find(dtype)->bytes; }

size_t mica_dtype_block(mica_dtype dtype) { return find(dtype)->block; }
