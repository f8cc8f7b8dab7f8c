# SPDX-License-Identifier: Apache-2.0
# The build fails, naming the operation, if a row of core/ir/ops.def has no type rule, kernel, documentation or test.
file(GLOB_RECURSE pypto_complete_inputs CONFIGURE_DEPENDS
     core/*.cpp core/*.h core/*.def tests/*.cpp tests/*.h tests/*.py examples/*.py)
set(pypto_complete_stamp "${CMAKE_CURRENT_BINARY_DIR}/operations.complete")
add_custom_command(
  OUTPUT "${pypto_complete_stamp}"
  COMMAND "${Python_EXECUTABLE}" tests/acceptance/completeness.py . "${pypto_complete_stamp}"
  WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
  DEPENDS ${pypto_complete_inputs}
  COMMENT "Looking for operations that lack something"
  VERBATIM)
add_custom_target(pypto_complete ALL DEPENDS "${pypto_complete_stamp}")
