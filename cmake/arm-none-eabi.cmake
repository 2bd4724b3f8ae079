# Bare-metal ARM, Debian's gcc-arm-none-eabi and newlib: -DMICA_CPU=cortex-m0|cortex-m3|cortex-m4|cortex-m7|cortex-m33|cortex-m55.
# The library alone, without threads and files; functions that a program does not use are not linked: docs/bare-metal.md.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # a program needs a board's linker script

set(MICA_CPU cortex-m4 CACHE STRING "As in -mcpu=")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MICA_CPU)
set(MICA_CPU_FLAGS "-mcpu=${MICA_CPU} -mthumb")
if(MICA_CPU MATCHES "^cortex-m4|^cortex-m33|^cortex-m35")
  string(APPEND MICA_CPU_FLAGS " -mfloat-abi=hard -mfpu=fpv4-sp-d16")
elseif(MICA_CPU MATCHES "^cortex-m7")
  string(APPEND MICA_CPU_FLAGS " -mfloat-abi=hard -mfpu=fpv5-d16")
elseif(MICA_CPU MATCHES "^cortex-m55|^cortex-m85")
  # Floats come with -mcpu. The vector extension is left out: gcc 12 writes conditional conversions for it that its
  # assembler does not take.
  set(MICA_CPU_FLAGS "-mcpu=${MICA_CPU}+nomve -mthumb -mfloat-abi=hard")
else()
  string(APPEND MICA_CPU_FLAGS " -mfloat-abi=soft")
endif()
set(CMAKE_C_FLAGS_INIT "${MICA_CPU_FLAGS} -ffunction-sections -fdata-sections -fstack-usage")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--gc-sections")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

include(${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake)
