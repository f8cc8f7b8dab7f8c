# Use ccache when it is there. Paths are made relative, so that two checkouts of the same source share the cache.
if(DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()
find_program(PYPTO_CCACHE ccache)
mark_as_advanced(PYPTO_CCACHE)
if(PYPTO_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      "${PYPTO_CCACHE}")
endif()
