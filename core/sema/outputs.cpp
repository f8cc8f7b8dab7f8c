// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "core/base/poll.h"
#include "core/sema/builder.h"

/// The end of a function: places of created tensors, directions, outputs that were dropped (01 L-48, L-54,
/// L-186).
namespace pypto::sema {

namespace {

/// Rebuilds the types of an expression where `change` gives another one.
ExprPtr retype(const ExprPtr& e, const std::function<TypePtr(const TypePtr&)>& change) {
  if (!e) return e;
  bool same = true;
  std::vector<ExprPtr> args;
  args.reserve(e->args.size());
  for (const auto& a : e->args) {
    args.push_back(retype(a, change));
    if (args.back() != a) same = false;
  }
  const TypePtr t = e->type ? change(e->type) : e->type;
  if (same && t == e->type) return e;
  auto out = std::make_shared<ir::Expr>(*e);
  out->args = std::move(args);
  out->type = t;
  return out;
}

void retype(ir::Block& block, const std::function<TypePtr(const TypePtr&)>& change) {
  for (auto& s : block) {
    poll();
    s->value = retype(s->value, change);
    for (auto& v : s->values) v = retype(v, change);
    for (auto& c : s->carries) c.init = retype(c.init, change);
    retype(s->body, change);
    retype(s->else_body, change);
  }
}

bool uses_name(const syn::ExprPtr& e, const std::string& name) {
  if (!e) return false;
  if (e->kind == syn::ExprKind::kName && e->text == name) return true;
  const auto inside = [&](const syn::ExprPtr& x) { return uses_name(x, name); };
  return std::any_of(e->items.begin(), e->items.end(), inside) ||
         std::any_of(e->keywords.begin(), e->keywords.end(),
                     [&](const syn::Keyword& k) { return inside(k.value); }) ||
         std::any_of(e->generators.begin(), e->generators.end(), [&](const syn::Comprehension& g) {
           return inside(g.iter) || std::any_of(g.ifs.begin(), g.ifs.end(), inside);
         });
}

/// Whether the text of a body uses a name other than by returning it.
bool uses_name(const std::vector<syn::StmtPtr>& body, const std::string& name) {
  return std::any_of(body.begin(), body.end(), [&](const syn::StmtPtr& s) {
    const bool own = s->kind != syn::StmtKind::kReturn && uses_name(s->value, name);
    return own ||
           std::any_of(s->targets.begin(), s->targets.end(),
                       [&](const syn::ExprPtr& e) { return uses_name(e, name); }) ||
           std::any_of(s->with_items.begin(), s->with_items.end(),
                       [&](const syn::WithItem& w) { return uses_name(w.context, name); }) ||
           uses_name(s->body, name) || uses_name(s->orelse, name);
  });
}

}  // namespace

/// Created tensors that ended up in global memory are global everywhere they are mentioned.
void FunctionBuilder::settle_places() {
  for (bool again = true; again;) {
    again = false;
    for (auto& [key, s] : joined_) {
      bool global = s->needs_global;
      for (const auto& m : leaves(s)) global = global || (m->created && m->needs_global);
      if (!global) continue;
      for (const auto& m : leaves(s)) {
        if (!m->needs_global) {
          m->needs_global = true;
          again = true;
        }
      }
      s->needs_global = true;
    }
  }
  bool any = false;
  for (const auto& s : kept_) any = any || (s->created && s->needs_global);
  if (!any) return;
  const auto created = [&](const std::shared_ptr<ir::Storage>& s) {
    for (const auto& m : leaves(s)) {
      if (!m->created || !m->needs_global) return false;
    }
    return true;
  };
  std::map<const ir::Type*, TypePtr> cache;
  const std::function<TypePtr(const TypePtr&)> change = [&](const TypePtr& t) -> TypePtr {
    if (t->kind == ir::TypeKind::kTuple) {
      bool same = true;
      std::vector<TypePtr> parts;
      for (const auto& p : t->elements) {
        parts.push_back(change(p));
        if (parts.back() != p) same = false;
      }
      return same ? t : ir::tuple_type(std::move(parts));
    }
    if (!t->is_tensor() || t->place != ir::TensorPlace::kOnChip || !t->storage || !created(t->storage))
      return t;
    auto& out = cache[t.get()];
    if (!out) out = with_place(t, ir::TensorPlace::kGlobal);
    return out;
  };
  for (auto& v : fn->vars) v->type = change(v->type);
  retype(fn->body, change);
  for (auto& t : fn->return_types) t = change(t);
}

void FunctionBuilder::effective_directions() {
  fn->effective_directions.clear();
  for (size_t i = 0; i < fn->params.size(); ++i) {
    const ir::Type& t = *fn->params[i]->type;
    const auto declared = fn->directions[i];
    auto d = declared;
    if (t.is_window()) {
      // Inferred silently; a declaration never narrows it (03 T-3).
      const bool writes = facts.written[i] || declared != ir::ParamDirection::kIn;
      const bool reads = facts.read[i] || declared == ir::ParamDirection::kInOut;
      d = writes && reads ? ir::ParamDirection::kInOut
          : writes        ? ir::ParamDirection::kOut
                          : ir::ParamDirection::kIn;
    } else if (t.is_tensor() && declared == ir::ParamDirection::kIn && facts.written[i]) {
      d = ir::ParamDirection::kInOut;
      if (facts.annotated[i] && param_written_directly_[i]) {
        program_.warn(param_written_[i], "W-IN-PARAM-WRITTEN",
                      "Parameter '" + fn->params[i]->name + "' of function '" + fn->name +
                          "' is written but not marked as an output; it is treated as pl.InOut",
                      "annotate it as pl.InOut[...] or pl.Out[...]");
      }
    } else if (t.is_tensor() && declared == ir::ParamDirection::kOut && facts.read[i] &&
               base_place_ == ir::kPlaceKernel && param_read_first_[i].known()) {
      d = ir::ParamDirection::kInOut;
      program_.warn(param_read_first_[i], "W-OUT-PARAM-READ",
                    "Kernel '" + fn->name + "' reads elements of the pl.Out parameter '" +
                        fn->params[i]->name + "' that it has not written before; it should be pl.InOut",
                    "annotate '" + fn->params[i]->name + "' as pl.InOut[...]");
    }
    fn->effective_directions.push_back(d);
  }
}

void FunctionBuilder::report_dropped_outputs() {
  for (size_t i = 0; i < fn->params.size(); ++i) {
    const ir::Type& t = *fn->params[i]->type;
    if (!t.is_tensor() || t.is_window() || fn->directions[i] == ir::ParamDirection::kIn) continue;
    const std::string& name = fn->params[i]->name;
    const std::string fixes =
        "write '" + name + "[:] = ...' for the whole tensor or '" + name + "[<slices>] = ...' for a part";
    if (param_rebound_[i].known()) {
      const std::string text = "OutParamWriteDropped: output parameter '" + name + "' of function '" +
                               fn->name + "' is rebound to a value that does not derive from it, at line " +
                               std::to_string(param_rebound_[i].line) +
                               "; the caller's buffer is not written";
      if (facts.written[i]) {
        program_.warn(param_rebound_[i], "W-OUT-PARAM-REBOUND", text + "; fix: " + fixes, fixes);
      } else {
        Diagnostic d;
        d.cls = ErrorClass::kPartialCodegenError;
        d.message = text + " on any path; fix: " + fixes;
        d.span = param_rebound_[i];
        d.hint = fixes;
        d.kernel = fn->name;
        program_.module->codegen_errors.push_back(std::move(d));
      }
      continue;
    }
    // A branch that a constant rules out may write it: then this specialisation leaves it alone on purpose.
    const bool elsewhere = source_->def && uses_name(source_->def->body, name);
    if (!facts.written[i] && !param_mentioned_[i] && !elsewhere) {
      program_.warn(fn->params[i]->span, "W-OUT-PARAM-UNUSED",
                    "OutParamWriteDropped: output parameter '" + name + "' of function '" + fn->name +
                        "' (line " + std::to_string(fn->params[i]->span.line) +
                        ") is never written; fix: " + fixes,
                    fixes);
    }
  }
}

void FunctionBuilder::finish() {
  if (waits_) check_waiter(fn->body);
  if (value_return_ && flow().live) {
    reject(ErrorClass::kUnsupportedFeatureError, fn->span,
           "Function '" + fn->name + "' can end without a 'return' after a conditional value return",
           "return a value on every path", {{"the first return", first_return_}});
  }
  if (!has_return_ && !return_annotation_.empty() && !fn->is_sub_worker) {
    bool any = false;
    for (const auto& a : return_annotation_) any = any || a.type || a.bare_tensor;
    if (any) {
      reject(ErrorClass::kParserTypeError, fn->span,
             "Function '" + fn->name + "' declares " + std::to_string(return_annotation_.size()) +
                 " result(s) but returns nothing",
             "add 'return ...', or remove the return annotation");
    }
  }
  settle_places();
  effective_directions();
  report_dropped_outputs();
  if (in_host()) check_windows();
}

}  // namespace pypto::sema
