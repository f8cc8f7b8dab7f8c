// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/ir/ir.h"
#include "core/vm/program.h"

namespace pypto::vm {

/// Lowered module -> executable program. What must hold: passes::lower has run. Throws Failure.
ProgramPtr emit(const ir::Module& lowered);

/// Debug switch: copies are made for every plain tile assignment and every slice used as a value (design:
/// Tiles are memory); tests run both ways.
struct EmitOptions {
  bool force_copies = false;
  bool chains = true;  ///< group element-wise operations into strip chains
};
ProgramPtr emit(const ir::Module& lowered, const EmitOptions& options);

/// Portable form of a program (program.bin). load throws Failure (kValueError) for damaged or foreign bytes.
std::string save(const Program& program);
ProgramPtr load(const std::string& bytes);
/// Readable listing.
std::string disassemble(const Program& program);

}  // namespace pypto::vm
