/* The table of one instruction set; compiled once for each. */
#include "kernel/kernels.h"
#include "kernel/vec.h"

#if defined(MICA_BUILD_VARIANT)
#define FULL_NAME VF_TEXT(VF_NAME) "-" VF_TEXT(MICA_BUILD_VARIANT)
#else
#define FULL_NAME VF_TEXT(VF_NAME) "-plain"
#endif

#define DECLARE_COMMON(family) extern const mica_##family##_kernels VF_SYMBOL(mica_##family##_kernels);
#define DECLARE_VARIANT(family) \
    extern const mica_##family##_kernels VF_VARIANT_SYMBOL(mica_##family##_kernels);
MICA_KERNEL_COMMON_FAMILIES(DECLARE_COMMON)
MICA_KERNEL_VARIANT_FAMILIES(DECLARE_VARIANT)

const mica_kernels VF_VARIANT_SYMBOL(mica_kernels) = {.isa = VF_TEXT(VF_NAME),
                                                      .full_name = FULL_NAME,
#define COMMON_FIELD(family)  .family = &VF_SYMBOL(mica_##family##_kernels),
#define VARIANT_FIELD(family) .family = &VF_VARIANT_SYMBOL(mica_##family##_kernels),
                                                      MICA_KERNEL_COMMON_FAMILIES(COMMON_FIELD)
                                                          MICA_KERNEL_VARIANT_FAMILIES(VARIANT_FIELD)};
