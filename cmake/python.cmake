# The extension module pypto._core.
file(GLOB_RECURSE bind_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/bind/*.cpp")
if(NOT bind_sources)
  message(STATUS "python/bind has no sources: no extension module")
  return()
endif()

# Prefer the environment that `make setup` made, unless somebody chose another one.
if(NOT DEFINED SKBUILD AND NOT DEFINED Python_EXECUTABLE AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python")
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

nanobind_add_module(_core NB_STATIC NOMINSIZE ${bind_sources})
target_link_libraries(_core PRIVATE pypto_core)
target_compile_definitions(_core PRIVATE "PYPTO_VERSION=\"${PROJECT_VERSION}\"")
if(DEFINED SKBUILD)
  install(TARGETS _core LIBRARY DESTINATION pypto)
else()
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PYPTO_MODULE_DIR}")
endif()
