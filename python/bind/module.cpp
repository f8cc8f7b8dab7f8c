// SPDX-License-Identifier: Apache-2.0
#include "python/bind/common.h"

#ifndef PYPTO_VERSION
#define PYPTO_VERSION "0"
#endif

NB_MODULE(_core, m) {
  using namespace pypto::bind;
  // Guards, caches and registered language objects live as long as the interpreter.
  nb::set_leak_warnings(false);
  m.attr("__version__") = PYPTO_VERSION;
  register_errors(m);
  register_interrupt(m);
  register_values(m);
  register_nodes(m);
  register_program(m);

  register_source(m);
  register_compile(m);
  register_arrays(m);
  register_args(m);
  register_run(m);
  register_jit(m);
  register_analysis(m);
}
