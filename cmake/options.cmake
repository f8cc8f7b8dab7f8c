# How every C++ file of the project is compiled. Link to pypto_options to get it all.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1") # assertions stay on
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

# ccache turns our absolute paths into ones relative to the build folder, so both spellings are mapped.
file(RELATIVE_PATH pypto_relative_source "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")

add_library(pypto_options INTERFACE)
target_include_directories(pypto_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(pypto_options INTERFACE
    -Wall -Wextra
    # g++ fuses a separate multiply and add by default, which makes results depend on the instruction set.
    -ffp-contract=off
    # Paths in messages and debug data start at the root of the repository.
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${pypto_relative_source}=")

# Instruction sets of the SIMD kernels. On x86-64 the baseline is SSE4.2 (every CPU since 2009), so that a vector
# always has at least four FP32 lanes; AVX2 and AVX-512 are chosen at run time. All files must agree on this.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_compile_definitions(pypto_options INTERFACE
      HWY_BASELINE_TARGETS=HWY_SSE4 "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)")
else()
  target_compile_definitions(pypto_options INTERFACE "HWY_DISABLED_TARGETS=(HWY_SVE_256|HWY_SVE2_128)")
endif()

if(PYPTO_SANITIZE)
  target_compile_options(pypto_options INTERFACE
      "-fsanitize=${PYPTO_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(pypto_options INTERFACE "-fsanitize=${PYPTO_SANITIZE}")
  target_compile_definitions(pypto_options INTERFACE HWY_COMPILE_ONLY_STATIC)
endif()

include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=lld PYPTO_HAVE_LLD)
if(PYPTO_HAVE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_link_options(LINKER:--as-needed)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)
