// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/ir/print.h"
#include "core/passes/dual_lanes.h"
#include "core/passes/launch_rules.h"
#include "core/passes/passes.h"
#include "core/passes/split_cores.h"
#include "core/passes/tile_form.h"
#include "core/passes/tile_products.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

constexpr const char* kOutline = "OutlineScopes";
constexpr const char* kSimplify = "Simplify";
constexpr const char* kCollectives = "LowerCollectives";
constexpr const char* kPlace = "PlaceMemory";
constexpr const char* kCapacity = "CheckCapacity";
constexpr const char* kTiles = "TileKernels";
constexpr const char* kSplit = "SplitCores";

/// Kernels that cannot be generated, one paragraph each (04 CMP-11).
void raise_codegen_errors(const std::vector<Diagnostic>& errors) {
  if (errors.empty()) return;
  Diagnostic d = errors.front();
  d.cls = ErrorClass::kPartialCodegenError;
  if (errors.size() > 1) {
    d.message = std::to_string(errors.size()) + " kernels cannot be generated";
    for (const auto& e : errors) d.message += "\n\n" + e.message + " (" + e.span.file_line() + ")";
  }
  throw Failure(std::move(d));
}

/// Whether the kernel's tiles fit their memories.
bool fits(const ir::Module& module, const ir::FunctionPtr& f, const PassOptions& options) {
  ir::Module one;
  one.arch = module.arch;
  one.functions = {f};
  try {
    check_capacity(one, options);
    return true;
  } catch (const Failure&) {
    return false;
  }
}

/// Kernels that can be written with tiles alone.
void tile_kernels(ir::Module& module, const PassOptions& options) {
  for (auto& f : module.functions) {
    if (f->is_sub_worker || !f->is_kernel() || !f->external_source.empty()) continue;
    const ir::FunctionPtr copy = ir::clone(*f);
    if (!to_tile_form(*copy, module.arch)) continue;
    place_tiles(*copy);
    if (!fits(module, copy, options)) continue;
    f->body = copy->body;
    f->vars = copy->vars;
    f->params = copy->params;
    f->symbols = copy->symbols;
    f->return_types = copy->return_types;
  }
}

/// 04 PRG-10: what an entry returns reaches the caller only as one of its parameters.
void warn_undelivered(ir::Module& module, const ir::Function& entry) {
  for (size_t i = 0; i < entry.return_types.size(); ++i) {
    const ir::TypePtr& type = entry.return_types[i];
    if (!type || !(type->is_tensor() || type->is_scalar())) continue;
    if (i < entry.return_params.size() && entry.return_params[i] >= 0) continue;
    Diagnostic d;
    d.cls = ErrorClass::kValueError;
    d.severity = Severity::kWarning;
    d.id = "W-RETURN-DROPPED";
    d.span = entry.span;
    std::string name;
    walk_stmts(entry.body, [&](const ir::StmtPtr& s) {
      if (s->kind != ir::StmtKind::kReturn || i >= s->values.size() || !name.empty()) return;
      d.span = s->span;
      name = s->values[i]->kind == ir::ExprKind::kVar ? "'" + s->values[i]->var->name + "'"
                                                      : ir::print(s->values[i]);
    });
    d.message = "entry '" + entry.name + "' returns " + (name.empty() ? ir::type_text(*type) : name) +
                ", which is none of its Out or InOut parameters: the caller does not get it";
    d.hint = "add a parameter 'result: pl.Out[pl.Tensor[...]]', write the value to it and return it";
    module.warnings.push_back(std::move(d));
  }
}

}  // namespace

ir::ModulePtr device_form(const ir::Module& lowered, const PassOptions& options) {
  ir::ModulePtr m = ir::clone(lowered);
  tile_kernels(*m, options);
  if (options.after) options.after(kTiles, *m);
  split_cores(*m);
  if (options.after) options.after(kSplit, *m);
  return m;
}

LowerResult lower(const ir::Module& module, const PassOptions& options) {
  LowerResult result;
  result.module = ir::clone(module);
  ir::Module& m = *result.module;
  const auto done = [&](const char* name) {
    if (options.after) options.after(name, m);
  };
  if (const ir::FunctionPtr entry = m.entry()) warn_undelivered(m, *entry);
  outline(m);  // regions first: every later stage works on whole kernels
  done(kOutline);
  simplify(m);  // before code is generated from what is left
  done(kSimplify);
  lower_collectives(m, options);  // before placement: their tiles count like any others
  done(kCollectives);
  place(m);
  dual_lanes(m);
  check_launch_rules(m);
  done(kPlace);
  m.lowered = true;
  result.memory = check_capacity(m, options);
  done(kCapacity);
  raise_codegen_errors(m.codegen_errors);
  return result;
}

std::vector<std::string> pass_names() {
  return {kOutline, kSimplify, kCollectives, kPlace, kCapacity, kTiles, kSplit};
}

ir::ModulePtr apply_pass(const std::string& name, const ir::Module& module, const PassOptions& options) {
  ir::ModulePtr copy = ir::clone(module);
  ir::Module& m = *copy;
  // Stages of the public factories (04 PKG-8) that have no counterpart here, because the representation is
  // already in that form or the stage belongs to another one, return the program as it is.
  static const char* const kIdentity[] = {
      "inline_functions",         "unroll_loops",        "ctrl_flow_transform",      "convert_to_ssa",
      "normalize_stmt_structure", "flatten_call_expr",   "outline_hierarchy_scopes", "outline_cluster_scopes",
      "optimize_orch_tensors",    "lower_composite_ops", "flatten_tile_nd_to_2d"};
  if (name == kOutline || name == "outline_incore_scopes") {
    outline(m);
  } else if (name == kSimplify || name == "simplify") {
    simplify(m);
  } else if (name == kCollectives) {
    lower_collectives(m, options);
  } else if (name == kPlace) {
    place(m);
  } else if (name == kCapacity) {
    m.lowered = true;
    check_capacity(m, options);
  } else if (name == kTiles || name == "convert_tensor_to_tile_ops") {
    tile_kernels(m, options);
  } else if (name == kSplit) {
    split_cores(m);
  } else if (name == "auto_tile_matmul_l0") {
    tile_products(m, options);
  } else if (std::none_of(std::begin(kIdentity), std::end(kIdentity),
                          [&](const char* n) { return name == n; })) {
    std::vector<std::string> known = pass_names();
    known.insert(known.end(), std::begin(kIdentity), std::end(kIdentity));
    const std::string near = nearest(name, known);
    fail(ErrorClass::kValueError, "there is no pass '" + name + "'", {},
         near.empty() ? "" : "did you mean '" + near + "'?");
  }
  return copy;
}

}  // namespace pypto::passes
