/* The table of one instruction set; compiled once for each. */
#include "kernel/kernels.h"
#include "kernel/vec.h"

#define DECLARE_FAMILY(family) extern const mica_##family##_kernels VF_SYMBOL(mica_##family##_kernels);
MICA_KERNEL_FAMILIES(DECLARE_FAMILY)

const mica_kernels VF_SYMBOL(mica_kernels) = {.isa = VF_TEXT(VF_NAME),
#define FAMILY_FIELD(family) .family = &VF_SYMBOL(mica_##family##_kernels),
                                              MICA_KERNEL_FAMILIES(FAMILY_FIELD)};
