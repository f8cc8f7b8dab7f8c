// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"
#include "core/sema/hints.h"

/// Names: the DSL variables of a body, then the host's closure, globals and builtins (01 L-14).
namespace pypto::sema {

BindingPtr FunctionBuilder::find_binding(const std::string& name) const {
  const auto it = frame_->flow.names.find(name);
  return it == frame_->flow.names.end() ? nullptr : it->second;
}

HostValue FunctionBuilder::host_lookup(const std::string& name) {
  // A helper's own names first, then those around its caller (01 L-59).
  for (Frame* f = frame_; f; f = f->parent) {
    if (!f->host) continue;
    HostValue v = f->host->lookup(name);
    if (v.kind != HostKind::kMissing) return v;
  }
  return {};
}

std::vector<std::string> FunctionBuilder::visible_names() const {
  std::vector<std::string> out;
  for (const auto& [name, b] : frame_->flow.names) {
    if (!name.empty() && name[0] != '%') out.push_back(name);
  }
  return out;
}

void FunctionBuilder::bind(const std::string& name, BindingPtr b) { frame_->flow.names[name] = std::move(b); }

void FunctionBuilder::bind_value(const std::string& name, Value v, const Span& span) {
  auto b = std::make_shared<Binding>();
  b->kind = Binding::Kind::kValue;
  b->value = std::move(v);
  b->span = span;
  bind(name, b);
}

std::string FunctionBuilder::unique_name(const std::string& base) {
  std::string name = base;
  if (used_names_.count(name)) {
    int& n = next_suffix_[base];  // the smaller ones are taken
    do name = base + "_" + std::to_string(++n);
    while (used_names_.count(name));
  }
  used_names_.insert(name);
  return name;
}

std::string FunctionBuilder::variable_name(const std::string& name) {
  const auto it = frame_->renamed.find(name);
  if (it != frame_->renamed.end()) return it->second;
  std::string chosen = name;
  if (!name.empty() && name[0] == '%') {
    chosen = unique_name(name.substr(1));
  } else if (frame_->is_inline) {
    chosen = unique_name(name);
  } else {
    used_names_.insert(name);
  }
  frame_->renamed[name] = chosen;
  return chosen;
}

VarPtr FunctionBuilder::variable(const std::string& name, const TypePtr& type, const Span& span,
                                 ir::VarKind kind) {
  auto& table = frame_->vars[name];
  if (kind != ir::VarKind::kLoop && kind != ir::VarKind::kSymbol) {
    std::vector<VarPtr> order = table;
    if (const BindingPtr b = find_binding(name); b && b->kind == Binding::Kind::kVar) {
      order.insert(order.begin(), b->var);  // the name's present cell first
    }
    for (const auto& v : order) {
      if (v->kind == ir::VarKind::kLoop || v->kind == ir::VarKind::kSymbol || !ir::same_type(*v->type, *type))
        continue;
      if (type->is_tensor() &&
          (v->type->place == ir::TensorPlace::kOnChip) != (type->place == ir::TensorPlace::kOnChip)) {
        continue;
      }
      // The cell may now hold values of several extents: its own type says what all of them have in common.
      if (!same_dims(v->type->shape, type->shape)) {
        auto t = std::make_shared<ir::Type>(*v->type);
        for (size_t i = 0; i < t->shape.size(); ++i) {
          if (!same_dim(t->shape[i], type->shape[i])) t->shape[i] = ir::Dim();
        }
        v->type = t;
      }
      if (!same_dims(v->type->valid, type->valid)) {
        auto t = std::make_shared<ir::Type>(*v->type);
        if (t->valid.empty()) t->valid = t->shape;
        const auto& other = type->valid.empty() ? type->shape : type->valid;
        for (size_t i = 0; i < t->valid.size() && i < other.size(); ++i) {
          if (!same_dim(t->valid[i], other[i])) t->valid[i] = ir::Dim();
        }
        v->type = t;
      }
      return v;
    }
  }
  const VarPtr v = fn->add_var(variable_name(name), type, kind, span);
  table.push_back(v);
  return v;
}

VarPtr FunctionBuilder::temp(const char* base, const TypePtr& type, const Span& span) {
  return fn->add_var(unique_name(base), type, ir::VarKind::kLocal, span);
}

namespace {

void names_of_target(const syn::Expr& target, std::set<std::string>& out) {
  if (target.kind == syn::ExprKind::kName) out.insert(target.text);
  if (target.kind == syn::ExprKind::kTuple || target.kind == syn::ExprKind::kList) {
    for (const auto& i : target.items) names_of_target(*i, out);
  }
  if (target.kind == syn::ExprKind::kSubscript && target.items[0]->kind == syn::ExprKind::kName) {
    out.insert(target.items[0]->text);
  }
  if (target.kind == syn::ExprKind::kStarred) names_of_target(*target.items[0], out);
}

}  // namespace

void FunctionBuilder::assigned_names(const std::vector<syn::StmtPtr>& body, std::set<std::string>& out) {
  for (const auto& s : body) {
    for (const auto& t : s->targets) {
      if (t) names_of_target(*t, out);
    }
    for (const auto& w : s->with_items) {
      if (w.as) names_of_target(*w.as, out);
    }
    assigned_names(s->body, out);
    assigned_names(s->orelse, out);
  }
}

void FunctionBuilder::collect_names(const std::vector<syn::StmtPtr>& body) {
  std::set<std::string> names;
  assigned_names(body, names);
  used_names_.insert(names.begin(), names.end());
}

// ------------------------------------------------------------------ host values

ExprPtr FunctionBuilder::symbol(const std::string& name, const Span& span) {
  // A helper's symbol is the extent of its caller's argument; everything else is the function's own.
  for (Frame* f = frame_; f; f = f->parent) {
    const auto it = f->symbols.find(name);
    if (it != f->symbols.end()) return it->second;
  }
  if (reading_body_ && annotations_ == 0) {
    reject(ErrorClass::kUndefinedVariableError, span,
           "Dynamic symbol '" + name + "' is not an extent of any parameter of '" + frame_->source->name +
               "', so it has no value here",
           "use it in the annotation of a parameter, or call param.bind_dynamic(dim, var)");
  }
  const VarPtr v = fn->add_var(name, ir::scalar_type(DType::kIndex), ir::VarKind::kSymbol, span);
  fn->symbols.push_back(v);
  ExprPtr e = ir::var_ref(v, span);
  root_->symbols[name] = e;
  return e;
}

ExprPtr FunctionBuilder::symbolic(const ExprPtr& e, const Span& span) {
  if (!e) return e;
  if (e->kind == ir::ExprKind::kVar) return symbol(e->var->name, span);
  if (e->kind != ir::ExprKind::kOp) return e;
  std::vector<ExprPtr> args;
  for (const auto& a : e->args) args.push_back(symbolic(a, span));
  if (args.size() == 2 && args[0] && args[1]) return ir::infer_scalar(e->op, args[0], args[1], span);
  return ir::op_expr(e->op, std::move(args), e->attrs, e->type, span);
}

Value FunctionBuilder::from_host(const HostValue& h, const Span& span) {
  switch (h.kind) {
    case HostKind::kInt:
      if (h.big) {
        reject(
            ErrorClass::kParserTypeError, span,
            "Integer constant does not fit INDEX (64 bits): " + (h.text.empty() ? "it is larger" : h.text));
      }
      return Value::of(ir::int_const(h.int_value, DType::kIndex, span, true));
    case HostKind::kFloat:
      return Value::of(ir::float_const(h.float_value, DType::kFp32, span, true));
    case HostKind::kBool:
      return Value::of(ir::bool_const(h.int_value != 0, span));
    case HostKind::kString:
      return Value::of(ir::string_const(h.text, span));
    case HostKind::kNone:
      return Value::of(ir::none_const(span));
    case HostKind::kSymbolic:
      return Value::of(symbolic(h.expr, span));
    case HostKind::kTuple: {
      Value v;
      v.kind = Value::Kind::kTuple;
      for (const auto& i : h.items) v.items.push_back(from_host(i, span));
      v.host = h;  // keeps the handle, for identity and for host evaluation
      return v;
    }
    default:
      return Value::of_host(h);
  }
}

// ------------------------------------------------------------------ reading

Value FunctionBuilder::read_name(const std::string& name, const Span& span) {
  if (const BindingPtr b = find_binding(name)) return read_binding(name, b, span);
  const HostValue h = host_lookup(name);
  if (h.kind == HostKind::kMissing) {
    const std::string builtin = hint_for_builtin(name);
    reject(ErrorClass::kUndefinedVariableError, span, "Undefined variable '" + name + "'",
           builtin.empty() ? did_you_mean(name, visible_names()) : builtin);
  }
  return from_host(h, span);
}

Value FunctionBuilder::read_binding(const std::string& name, const BindingPtr& b, const Span& span) {
  if (b->kind == Binding::Kind::kPoison) {
    reject(ErrorClass::kParserTypeError, span, b->poison,
           "give both arms a value of the same type, or use two names",
           {{"'" + name + "' is assigned", b->span}});
  }
  if (!b->undefined.empty()) {
    const bool loop = b->undefined.find("zero times") != std::string::npos;
    reject(ErrorClass::kUndefinedVariableError, span, "Undefined variable '" + name + "': " + b->undefined,
           loop ? "assign '" + name + "' before the loop"
                : "assign '" + name + "' on every path before reading it",
           {{"'" + name + "' is assigned", b->span}});
  }
  if (b->kind == Binding::Kind::kNoValue) {
    reject(ErrorClass::kInvalidOperationError, span,
           "X-34: '" + name + "' is the result of an operation that produces no value",
           "use the operation's destination instead", {{"the operation", b->span}});
  }
  if (b->kind == Binding::Kind::kVar && b->type->is_window() && in_host() && place() != ir::kPlaceHost) {
    reject(ErrorClass::kParserTypeError, span,
           "X-7: a device scope of the HOST orchestrator '" + fn->name + "' receives the window '" + name +
               "', but such a scope has no device=",
           "put its body in a device orchestration and dispatch that with device=r");
  }
  for (LoopInfo* l : loops_) {
    if (l->frame != frame_) continue;
    const auto it = l->entry.find(name);
    if (it != l->entry.end() && it->second == b && l->entry_reads.insert(name).second) {
      l->entry_read_spans[name] = span;
    }
  }
  if (!b->stale.empty() && b->kind == Binding::Kind::kVar && !b->type->is_tensor()) {
    program_.warn(span, "W-STALE-CARRY",
                  "'" + name + "' still denotes the value from before the loop; the final value is in '" +
                      b->stale + "'",
                  "read '" + b->stale + "' instead");
  }
  if (b->kind == Binding::Kind::kValue) return b->value;
  check_crossing(name, *b, span);
  if (b->constant) {
    auto c = std::make_shared<ir::Expr>(*b->constant);
    c->span = span;
    return Value::of(c);
  }
  auto e = std::make_shared<ir::Expr>(*ir::var_ref(b->var, span));
  e->type = b->type;
  if (e->type->is_tensor() && e->type->place == ir::TensorPlace::kOnChip && place() != ir::kPlaceKernel) {
    e->type = with_place(e->type, ir::TensorPlace::kGlobal);
  }
  const auto& storage = e->type->storage;
  if (storage) {
    for (const auto& leaf : leaves(storage)) {
      if (leaf->param >= 0) param_mentioned_[static_cast<size_t>(leaf->param)] = true;
    }
  }
  return Value::of(e);
}

/// What may cross the border of a region (01 L-111).
void FunctionBuilder::check_crossing(const std::string& name, const Binding& b, const Span& span) {
  const RegionInfo* here = kernel_region();
  const int id = here ? here->id : 0;
  const RegionInfo* from = nullptr;
  for (const int r : b.regions) {
    if (r != id) from = &region_log_.at(r);
  }
  const auto where = [](const RegionInfo& r) {
    return "the " + r.name + " region" + (r.hint.empty() ? "" : " '" + r.hint + "'") + " at line " +
           std::to_string(r.span.line);
  };
  if (from) {
    const std::vector<Note> notes{{"the region", from->span}, {"'" + name + "' is assigned", b.span}};
    if (b.type->is_tile() || b.type->kind == ir::TypeKind::kArray) {
      reject(ErrorClass::kParserTypeError, span,
             (b.type->is_tile() ? "Tile '" : "Array '") + name + "' cannot leave " + where(*from),
             "store it to a tensor inside the region and read the tensor afterwards", notes);
    }
    if (b.type->is_scalar() && device_data_.count(b.var.get())) {
      reject(
          ErrorClass::kParserTypeError, span,
          "Scalar '" + name + "' depends on device data read inside " + where(*from) + " and cannot leave it",
          "write it to a tensor inside the region and pl.read it afterwards", notes);
    }
    if (b.type->is_tensor()) {
      bool outer = false;
      bool local = false;
      for (const auto& leaf :
           b.type->storage ? leaves(b.type->storage) : std::vector<std::shared_ptr<ir::Storage>>{}) {
        (leaf->region == from->id ? local : outer) = true;
      }
      if (from->blocks && (local || !outer)) {
        reject(ErrorClass::kParserTypeError, span,
               "Tensor '" + name + "' is made inside " + where(*from) +
                   ", whose body several blocks run; each block has its own, so it cannot be read afterwards",
               "create '" + name + "' before the loop and write parts of it inside", notes);
      }
      mark_leaves_region(b.type);
    }
    return;
  }
  if (here && b.type->is_scalar() && b.type->dtype == DType::kTaskId && base_place_ != ir::kPlaceKernel) {
    reject(
        ErrorClass::kParserTypeError, span,
        "Task handle '" + name + "' cannot enter " + where(*here) + ": handles cannot be passed to kernels",
        "use it in deps=[...] of the region", {{"'" + name + "' is assigned", b.span}});
  }
  if (here && !b.type->is_scalar() && !b.loop_variable) {
    const bool outside = b.regions.empty() && b.span.known() && base_place_ != ir::kPlaceKernel;
    if (!outside) return;
    if (b.type->is_tile()) {
      reject(ErrorClass::kParserTypeError, span, "Tile '" + name + "' cannot enter " + where(*here), {},
             {{"'" + name + "' is assigned", b.span}});
    }
    if (b.type->kind == ir::TypeKind::kArray && b.type->dtype == DType::kTaskId) {
      reject(ErrorClass::kParserTypeError, span,
             "Array of task handles '" + name + "' cannot enter " + where(*here),
             "use it in deps= of the region instead", {{"'" + name + "' is assigned", b.span}});
    }
  }
}

}  // namespace pypto::sema
