// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/passes/passes.h"
#include "core/vm/program.h"
#include "python/bind/common.h"

namespace pypto::bind {

/// `_core.Compiled`: a lowered program with its executable form.
struct PyCompiled {
  vm::ProgramPtr code;
  ir::ModulePtr lowered;
  std::vector<passes::MemoryUse> memory;
  nb::object source;   ///< ir.Program as handed in, or None
  nb::object program;  ///< lowered ir.Program
  std::vector<Diagnostic> warnings;
  std::map<std::string, nb::object> callables;  ///< concrete sub-workers by name
  std::string source_bytes;                     ///< after load(): the program it was made from, serialized
};

/// Index of an entry by name (empty: the program's entry). Throws Failure (kKeyError, kTypeError).
int entry_index(const PyCompiled& c, const std::optional<std::string>& entry);

}  // namespace pypto::bind
