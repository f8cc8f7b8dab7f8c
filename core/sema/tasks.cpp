// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Tasks and their handles (01 L-130, L-136 - L-140).
namespace pypto::sema {

using syn::ExprKind;

bool FunctionBuilder::submit_keyword(const std::string& name) {
  return name == "deps" || name == "dumps" || name == "allow_early_resolve" || name == "predicate" ||
         name == "core_num" || name == "sync_start";
}

bool FunctionBuilder::bool_literal(const syn::Keyword& k) {
  if (k.value->kind != ExprKind::kBool) {
    reject(ErrorClass::kParserSyntaxError, k.value->span,
           k.name + "= must be a boolean literal, got " + source_text(*k.value));
  }
  return k.value->int_value != 0;
}

/// `predicate=(T[i, ...] OP K)` (01 L-136).
ExprPtr FunctionBuilder::read_predicate(const syn::Expr& e, const std::vector<ExprPtr>& deps) {
  if (e.kind == ExprKind::kNone) return nullptr;
  if (e.kind != ExprKind::kCompare || e.ops.size() != 1 || e.ops[0] == "in" || e.ops[0] == "is" ||
      e.ops[0] == "not in" || e.ops[0] == "is not") {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "predicate= must be a single comparison, got " + source_text(e), "write predicate=(flags[i] > 0)");
  }
  const syn::Expr* element = e.items[0].get();
  const syn::Expr* literal = e.items[1].get();
  std::string op = e.ops[0];
  const auto is_number = [&](const syn::Expr& x) {
    if (x.kind == ExprKind::kInt) return true;
    if (x.kind == ExprKind::kUnary && x.text == "-") return x.items[0]->kind == ExprKind::kInt;
    return is_static(x);
  };
  if (is_number(*element) && !is_number(*literal)) {
    std::swap(element, literal);
    static const std::map<std::string, std::string> kSwap = {{"<", ">"},   {"<=", ">="}, {">", "<"},
                                                             {">=", "<="}, {"==", "=="}, {"!=", "!="}};
    op = kSwap.at(op);
  }
  if (!is_number(*literal) || element->kind != ExprKind::kSubscript) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "predicate= must compare one tensor element with an integer literal, got " + source_text(e));
  }
  const auto k = try_constant_int(eval(*literal));
  if (!k)
    reject(ErrorClass::kParserSyntaxError, literal->span,
           "predicate= must compare one tensor element with an integer literal");
  const Value base = eval(*element->items[0]);
  if (!base.is_expr() || !base.expr->type->is_tensor()) {
    reject(ErrorClass::kParserTypeError, element->span,
           "predicate operand must be a tensor, got " +
               (base.is_expr() ? ir::type_text(*base.expr->type) : source_text(*element->items[0])));
  }
  const ir::Type& t = *base.expr->type;
  if (!is_signed_int(t.dtype) || t.dtype == DType::kInt4) {
    reject(ErrorClass::kParserTypeError, element->span,
           "predicate operand must be a signed 8/16/32/64-bit integer tensor, got " +
               std::string(dtype_text(t.dtype)));
  }
  std::vector<const syn::Expr*> indices;
  const auto& index = *element->items[1];
  if (index.kind == ExprKind::kTuple) {
    for (const auto& i : index.items) indices.push_back(i.get());
  } else {
    indices.push_back(&index);
  }
  if (static_cast<int>(indices.size()) != t.rank()) {
    reject(
        ErrorClass::kParserTypeError, element->span,
        "predicate needs " + std::to_string(t.rank()) + " index(es), got " + std::to_string(indices.size()));
  }
  std::vector<ExprPtr> offsets;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i]->kind == ExprKind::kSlice) {
      reject(ErrorClass::kParserSyntaxError, indices[i]->span, "predicate= must compare one tensor element");
    }
    const ExprPtr x = eval_expr(*indices[i]);
    if (!x->type->is_scalar() || !is_int(x->type->dtype)) {
      reject(ErrorClass::kParserTypeError, indices[i]->span, "predicate indices must be integer scalars");
    }
    if (const auto c = ir::const_int(x)) {
      if (*c < 0) {
        reject(ErrorClass::kParserTypeError, indices[i]->span, "predicate indices must be non-negative");
      }
      if (t.shape[i].is_const() && *c >= t.shape[i].value) {
        reject(ErrorClass::kParserTypeError, indices[i]->span,
               "predicate index " + std::to_string(*c) + " is out of range for dimension " +
                   std::to_string(i) + " of extent " + std::to_string(t.shape[i].value));
      }
    }
    offsets.push_back(x);
  }
  // A known writer of the operand must be waited for.
  if (t.storage) {
    const auto it = writer_task_.find(t.storage.get());
    if (it != writer_task_.end() && it->second && !ended_scope(it->second)) {
      bool listed = false;
      for (const auto& d : deps) {
        if (d->kind == ir::ExprKind::kVar &&
            (d->var == it->second || d->type->kind == ir::TypeKind::kArray)) {
          listed = true;
        }
        if (d->kind == ir::ExprKind::kOp) listed = true;
      }
      if (!listed) {
        reject(ErrorClass::kParserSyntaxError, e.span,
               "predicate operand '" + source_text(*element->items[0]) + "' is written by task '" +
                   it->second->name + "', which is not in deps=",
               "add deps=[" + it->second->name + "]");
      }
    }
  }
  auto read = ir::op_expr(ir::OpId::k_read, {base.expr, ir::tuple_expr(offsets, element->span)}, {},
                          ir::scalar_type(t.dtype), element->span);
  mark_read(base.expr->type, element->span);
  static const std::map<std::string, ir::OpId> kOps = {
      {"==", ir::OpId::k_scalar_eq}, {"!=", ir::OpId::k_scalar_ne}, {"<", ir::OpId::k_scalar_lt},
      {"<=", ir::OpId::k_scalar_le}, {">", ir::OpId::k_scalar_gt},  {">=", ir::OpId::k_scalar_ge}};
  return ir::op_expr(kOps.at(op), {read, ir::int_const(*k, t.dtype, literal->span)}, {},
                     ir::scalar_type(DType::kBool), e.span);
}

/// Printed call attributes are names only (01 L-140).
void FunctionBuilder::read_call_attrs(const syn::Expr& e, size_t arguments) {
  if (e.kind != ExprKind::kDict) {
    reject(ErrorClass::kParserSyntaxError, e.span, "attrs= of a call must be a dict literal");
  }
  for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
    const auto* key = e.items[i].get();
    if (!key || key->kind != ExprKind::kString) {
      reject(ErrorClass::kParserSyntaxError, e.span, "attrs= keys must be string literals");
    }
    const auto& value = *e.items[i + 1];
    if (key->text == "manual_dep_edges") {
      reject(ErrorClass::kParserSyntaxError, key->span,
             "attrs={'manual_dep_edges': ...} is not accepted on a call", "use pl.submit(..., deps=[...])");
    }
    if (key->text != "arg_directions") continue;
    if (value.kind != ExprKind::kList && value.kind != ExprKind::kTuple) {
      reject(ErrorClass::kParserSyntaxError, value.span, "arg_directions must be a list");
    }
    for (const auto& d : value.items) {
      const HostValue h = resolve_host(*d);
      const std::string text = source_text(*d);
      if (h.text.rfind("pl.adir.", 0) != 0 && text.find("adir.") == std::string::npos) {
        reject(ErrorClass::kParserSyntaxError, d->span,
               "arg_directions entries must be pl.adir.<name>, got " + text);
      }
    }
    if (value.items.size() != arguments) {
      reject(ErrorClass::kParserSyntaxError, value.span,
             "arg_directions has " + std::to_string(value.items.size()) + " entries but the call has " +
                 std::to_string(arguments) + " arguments");
    }
  }
}

Value FunctionBuilder::eval_submit(const std::string& construct, const syn::Expr& e) {
  require_control_plane(e.span, construct);
  if (const RegionInfo* r = kernel_region()) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           construct + " is not allowed inside the " + r->name + " region at line " +
               std::to_string(r->span.line));
  }
  if (e.items.size() < 2) {
    reject(ErrorClass::kParserSyntaxError, e.span, construct + " requires the kernel as its first argument");
  }
  const auto& target = *e.items[1];
  std::shared_ptr<FunctionSource> kernel;
  if (target.kind == ExprKind::kAttribute && is_self(*target.items[0])) {
    const Callee c = resolve_callee(target);
    kernel = c.function;
    if (!kernel) {
      reject(ErrorClass::kUndefinedVariableError, target.span,
             "Function '" + target.text + "' not defined in program",
             did_you_mean(target.text, program_.method_names()));
    }
  } else {
    const HostValue h = resolve_host(target);
    if (h.kind == HostKind::kFunction) kernel = h.function;
  }
  if (!kernel) {
    reject(ErrorClass::kParserSyntaxError, target.span,
           construct + ": first argument must be a `self.<kernel>` method reference, got " +
               source_text(target));
  }
  ir::CallInfo info;
  info.submit = true;
  info.spmd = construct == "pl.spmd_submit";
  const RegionInfo* cluster = enclosing(ir::ScopeKind::kCluster);
  const syn::Expr* predicate = nullptr;
  std::vector<std::pair<std::string, Span>> dumps;
  for (const auto& k : e.keywords) {
    const bool metadata =
        k.name == "deps" || k.name == "dumps" || k.name == "predicate" || k.name == "allow_early_resolve";
    if (metadata && cluster) {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             construct + " inside pl.cluster cannot carry per-task dispatch metadata (" + k.name + "=)",
             "the cluster is one task", {{"the cluster", cluster->span}});
    }
    if (k.name == "deps") {
      info.has_deps = true;
      if (k.value->kind != ExprKind::kNone) read_deps(*k.value, info.deps);
    } else if (k.name == "dumps") {
      if (k.value->kind == ExprKind::kNone) continue;
      if (k.value->kind != ExprKind::kList && k.value->kind != ExprKind::kTuple) {
        reject(ErrorClass::kParserSyntaxError, k.value->span, "dumps= must be a list literal");
      }
      for (const auto& d : k.value->items) {
        if (d->kind != ExprKind::kName) {
          reject(ErrorClass::kParserTypeError, d->span, "dumps= entries must be bare tensor names");
        }
        dumps.emplace_back(d->text, d->span);
      }
    } else if (k.name == "allow_early_resolve") {
      info.allow_early_resolve = bool_literal(k);
    } else if (k.name == "predicate") {
      predicate = k.value.get();
    } else if (k.name == "core_num" && info.spmd) {
      info.core_num = core_count(*k.value, construct);
    } else if (k.name == "sync_start" && info.spmd) {
      info.sync_start = bool_literal(k);
    } else if (submit_keyword(k.name)) {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             construct + "() got an unexpected keyword argument '" + k.name + "'");
    }
  }
  if (info.spmd && !info.core_num) {
    reject(ErrorClass::kParserSyntaxError, e.span, construct + " requires the core_num keyword argument",
           "write core_num=N");
  }
  if (predicate) info.predicate = read_predicate(*predicate, info.deps);
  for (const auto& [name, span] : dumps) {
    bool found = false;
    for (size_t i = 2; i < e.items.size(); ++i) {
      found = found || (e.items[i]->kind == ExprKind::kName && e.items[i]->text == name);
    }
    for (const auto& k : e.keywords) {
      found = found || (!submit_keyword(k.name) && k.value->kind == ExprKind::kName && k.value->text == name);
    }
    if (!found) {
      reject(ErrorClass::kParserTypeError, span,
             "dumps= entry '" + name + "' is not an argument of this submit");
    }
    info.dumps.push_back(name);
  }
  return invoke(kernel, e, &info, 1);
}

/// `r, tid = pl.submit(...)` in all its target forms (01 L-130).
void FunctionBuilder::assign_submit(const syn::Stmt& s, const syn::Expr& call) {
  const std::string construct = resolve_callee(*call.items[0]).name;
  const auto& target = *s.targets[0];
  Value v = eval_submit(construct, call);
  auto e = std::make_shared<ir::Expr>(*v.expr);
  const size_t results = e->type->elements.size() - 1;
  const std::string kernel = e->call->callee->name;
  const auto remember = [&](const VarPtr& task) {
    // Which task last wrote an output, for predicates.
    note_manual_task(task);
    for (size_t i = 0; i < e->args.size(); ++i) {
      const auto& d = e->call->callee->effective_directions;
      if (i < d.size() && d[i] != ir::ParamDirection::kIn && e->args[i]->type->storage) {
        writer_task_[e->args[i]->type->storage.get()] = task;
      }
    }
    for (const auto& t : e->type->elements) {
      if (t->storage) writer_task_[t->storage.get()] = task;
    }
  };
  if (target.kind == ExprKind::kName) {
    auto info = std::make_shared<ir::CallInfo>(*e->call);
    info->flat_result = true;
    e->call = info;
    assign(target.text, Value::of(e), s.span);
    const BindingPtr b = find_binding(target.text);
    if (b && b->value.is_tuple() && !b->value.items.empty() && b->value.items.back().is_expr()) {
      remember(b->value.items.back().expr->var);
    }
    return;
  }
  if (target.kind != ExprKind::kTuple && target.kind != ExprKind::kList) {
    reject(ErrorClass::kParserSyntaxError, target.span, construct + " must be unpacked as exactly 2 targets");
  }
  if (target.items.size() != 2) {
    reject(ErrorClass::kParserSyntaxError, target.span,
           construct + " must be unpacked as exactly 2 targets, got " + std::to_string(target.items.size()),
           "write '(a, b), tid = " + construct + "(...)' for several results");
  }
  const auto plain = [&](const syn::Expr& t) {
    if (t.kind != ExprKind::kName) {
      reject(ErrorClass::kParserSyntaxError, t.span,
             "Targets of " + construct + " must contain plain variable names only, got " + source_text(t));
    }
    return t.text;
  };
  std::vector<std::string> names;
  const auto& first = *target.items[0];
  const std::string task = plain(*target.items[1]);
  if (first.kind == ExprKind::kTuple || first.kind == ExprKind::kList) {
    for (const auto& t : first.items) names.push_back(plain(*t));
    if (names.size() != results) {
      reject(ErrorClass::kParserTypeError, first.span,
             construct + " unpacks " + std::to_string(names.size()) + " result value(s) but kernel '" +
                 kernel + "' returns " + std::to_string(results));
    }
  } else {
    const std::string name = plain(first);
    if (results == 1) {
      names.push_back(name);
    } else if (results > 1) {
      // One name for several results: a compile-time tuple of them.
      std::vector<std::string> parts;
      for (size_t i = 0; i < results; ++i) parts.push_back("%" + name + "_" + std::to_string(i));
      parts.push_back(task);
      assign_targets(parts, Value::of(e), s.span);
      std::vector<Value> items;
      for (size_t i = 0; i < results; ++i) items.push_back(read_name(parts[i], s.span));
      bind_value(name, Value::tuple(std::move(items)), s.span);
      remember(find_binding(task)->var);
      return;
    } else if (name != "_") {
      reject(ErrorClass::kParserTypeError, first.span,
             construct + " unpacks 1 result value(s) but kernel '" + kernel + "' returns 0",
             "write '_, " + task + " = " + construct + "(...)'");
    }
  }
  names.push_back(task);
  assign_targets(names, Value::of(e), s.span);
  if (const BindingPtr b = find_binding(task); b && b->kind == Binding::Kind::kVar) remember(b->var);
}

Value FunctionBuilder::task_dummy(const syn::Expr& e) {
  require_control_plane(e.span, "pl.system.task_dummy");
  if (e.items.size() > 1) {
    reject(ErrorClass::kParserSyntaxError, e.span, "pl.system.task_dummy takes no positional arguments",
           "write pl.system.task_dummy(deps=[...])");
  }
  std::vector<ExprPtr> deps;
  bool given = false;
  for (const auto& k : e.keywords) {
    if (k.name == "deps") {
      given = true;
      read_deps(*k.value, deps);
    } else if (k.name != "span" && k.name != "attrs") {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "pl.system.task_dummy got an unexpected keyword argument '" + k.name + "'");
    }
  }
  if (!given) reject(ErrorClass::kParserSyntaxError, e.span, "pl.system.task_dummy requires deps=");
  return Value::of(ir::op_expr(ir::OpId::k_task_dummy, {ir::tuple_expr(deps, e.span)}, {},
                               ir::scalar_type(DType::kTaskId), e.span));
}

Value FunctionBuilder::dump_tag(const syn::Expr& e) {
  if (place() != ir::kPlaceOrch) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "pl.dump_tag is only valid inside an Orchestration or Inline function");
  }
  if (e.items.size() != 2 || !e.keywords.empty()) {
    reject(ErrorClass::kParserSyntaxError, e.span, "pl.dump_tag takes exactly one positional argument");
  }
  const auto& a = *e.items[1];
  if (a.kind != ExprKind::kName) {
    reject(ErrorClass::kParserSyntaxError, a.span,
           "The argument of pl.dump_tag must be a bare variable name, got " + source_text(a));
  }
  if (!find_binding(a.text)) {
    reject(ErrorClass::kUndefinedVariableError, a.span, "pl.dump_tag: '" + a.text + "' is not defined",
           did_you_mean(a.text, visible_names()));
  }
  const Value v = eval(a);
  if (!v.is_expr() || !v.expr->type->is_tensor()) {
    reject(ErrorClass::kParserTypeError, a.span, "pl.dump_tag: '" + a.text + "' is not a tensor");
  }
  return Value::of(ir::op_expr(ir::OpId::k_dump_tag, {v.expr}, {}, ir::none_type(), e.span));
}

}  // namespace pypto::sema
