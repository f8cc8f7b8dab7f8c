// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "core/sema/sema.h"
#include "python/bind/common.h"

namespace pypto::bind {

/// ir.Function: a function together with the program it belongs to.
struct PyFunction {
  ir::FunctionPtr function;
  ir::ModulePtr module;
  std::shared_ptr<sema::FunctionSource> callee;  ///< as seen by a body that calls it; made on first use
};

/// ir.Program.
struct PyProgram {
  ir::ModulePtr module;
  /// What it was read from; lets it be read again for another architecture (04 PLAT-5). Null for text and
  /// bytes.
  std::shared_ptr<sema::ProgramSource> source;
  std::map<ir::Arch, ir::ModulePtr> other;  ///< the program read for another architecture
  nb::object functions;                     ///< mapping handed out, made on first use
  bool full_names = false;                  ///< printed as lowered programs are (04 TXT-5): the text was one
};

ir::Arch arch_from_text(const std::string& text);
const char* arch_text(ir::Arch arch);
/// The module of a program for an architecture.
ir::ModulePtr module_for(PyProgram& program, ir::Arch arch);
nb::object program_object(ir::ModulePtr module, std::shared_ptr<sema::ProgramSource> source = nullptr);
nb::object function_object(ir::FunctionPtr function, ir::ModulePtr module);
/// Statement-view object of a body, a type, an expression (04 SER-10). `keep` holds the function they belong
/// to.
nb::object body_object(const ir::FunctionPtr& function);
nb::object type_object(const ir::TypePtr& type);
nb::object var_object(const ir::VarPtr& var);

}  // namespace pypto::bind
