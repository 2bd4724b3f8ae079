# What a bare-metal target has and has not; each may be given by -D.
set(BUILD_SHARED_LIBS OFF CACHE BOOL "")
set(MICA_THREADS OFF CACHE BOOL "")
set(MICA_IO OFF CACHE BOOL "")
set(MICA_ZLIB OFF CACHE BOOL "")
set(MICA_JPEG OFF CACHE BOOL "")
set(MICA_MPI OFF CACHE BOOL "")
set(MICA_TOOL OFF CACHE BOOL "")
set(MICA_TESTS OFF CACHE BOOL "")
set(MICA_SMALL ON CACHE BOOL "")
set(CMAKE_BUILD_TYPE MinSizeRel CACHE STRING "") # kernels: -O2
set(MICA_ACTIVATIONS relu relu6 leaky_relu sigmoid tanh CACHE STRING "")
