# Installing: headers, both libraries, a pkg-config file and a CMake package; mpi/CMakeLists.txt adds libmica_mpi to them.
#
#   find_package(mica REQUIRED)
#   target_link_libraries(program PRIVATE mica::mica)          # or mica::mica_static
include(CMakePackageConfigHelpers)

if(MICA_SHARED)
  set_target_properties(mica_shared PROPERTIES EXPORT_NAME mica)
  add_library(mica::mica ALIAS mica_shared)
endif()
set_target_properties(mica_static PROPERTIES EXPORT_NAME mica_static)
add_library(mica::mica_static ALIAS mica_static)

install(TARGETS ${MICA_LIBRARIES} EXPORT mica-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/mica DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(MICA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mica)
install(EXPORT mica-targets NAMESPACE mica:: DESTINATION ${MICA_CMAKE_DIR})
configure_package_config_file(cmake/mica-config.cmake.in ${PROJECT_BINARY_DIR}/mica-config.cmake
  INSTALL_DESTINATION ${MICA_CMAKE_DIR} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mica-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mica-config.cmake ${PROJECT_BINARY_DIR}/mica-config-version.cmake
  DESTINATION ${MICA_CMAKE_DIR})

set(MICA_PC_PRIVATE_LIBS "-lm")
if(MICA_THREADS)
  string(APPEND MICA_PC_PRIVATE_LIBS " -pthread")
endif()
if(MICA_HAVE_ZLIB)
  string(APPEND MICA_PC_PRIVATE_LIBS " -lz")
endif()
if(MICA_HAVE_JPEG)
  string(APPEND MICA_PC_PRIVATE_LIBS " -ljpeg")
endif()
# The .pc file finds its prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH MICA_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/mica.pc.in ${PROJECT_BINARY_DIR}/mica.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mica.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
