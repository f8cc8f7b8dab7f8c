// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::ir {

struct PrintOptions {
  std::string prefix = "pl";
  bool concise = false;
  bool explicit_layout = false;
};

/// Text that the front end reads back as an equal program (01 L-79, 04 SER-1, SER-2). Deterministic.
std::string print(const Module& module, const PrintOptions& options = {});
std::string print(const Function& function, const PrintOptions& options = {});
std::string print(const ExprPtr& expr);
std::string print(const Stmt& stmt, int indent = 0);

/// Structural equality (04 SER-7): names and locations do not count; variables are matched by position of
/// definition. On a difference, `path` (if given) receives the path to it and both sides' text.
bool structural_equal(const Module& a, const Module& b, std::string* path = nullptr);
bool structural_equal(const Function& a, const Function& b, std::string* path = nullptr);
uint64_t structural_hash(const Module& m);
uint64_t structural_hash(const Function& f);

/// Binary form (04 SER-9). deserialize throws Failure (kValueError) for damaged or foreign bytes; it never
/// reads outside.
std::string serialize(const Module& m);
ModulePtr deserialize_module(const std::string& bytes);
std::string serialize(const Function& f);
FunctionPtr deserialize_function(const std::string& bytes);

/// Deep copy with fresh variables.
ModulePtr clone(const Module& m);
FunctionPtr clone(const Function& f);

/// Checks the invariants listed in verify's documentation; one diagnostic (kInternalError) per violation.
std::vector<Diagnostic> verify(const Module& m);

}  // namespace pypto::ir
