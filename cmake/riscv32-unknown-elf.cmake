# Bare-metal 32-bit RISC-V, Debian's gcc-riscv64-unknown-elf and picolibc: -DMICA_CPU=rv32imac|rv32imafc.
# The library alone, without threads and files; functions that a program does not use are not linked: docs/bare-metal.md.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv32)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_ASM_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # a program needs a board's linker script

set(MICA_CPU rv32imac CACHE STRING "As in -march=")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MICA_CPU)
set(MICA_CPU_ABI ilp32)
if(MICA_CPU MATCHES "^rv32[a-z]*f")
  set(MICA_CPU_ABI ilp32f)
endif()
set(MICA_CPU_FLAGS "-march=${MICA_CPU} -mabi=${MICA_CPU_ABI} --specs=picolibc.specs")
set(CMAKE_C_FLAGS_INIT "${MICA_CPU_FLAGS} -ffunction-sections -fdata-sections")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--gc-sections")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

include(${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake)
