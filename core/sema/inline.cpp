// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/sema/builder.h"

/// Inline helpers: the body is read in place, in a name scope of its own (01 L-59).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

Value FunctionBuilder::expand(const std::shared_ptr<FunctionSource>& source, std::vector<Argument> args,
                              const syn::Expr& call) {
  source->ensure_loaded();
  if (!source->def) {
    reject(ErrorClass::kOSError, call.span,
           "The source of inline function '" + source->name + "' is not available");
  }
  const auto& def = *source->def;
  // Recursion, direct or mutual.
  if (std::find(expanding_.begin(), expanding_.end(), source.get()) != expanding_.end() ||
      expanding_.size() > 200) {
    std::string chain;
    bool on = false;
    for (const auto* f : expanding_) {
      if (f == source.get()) on = true;
      if (on) chain += f->name + " -> ";
    }
    reject(ErrorClass::kValueError, call.span, "Cycle detected in inline functions: " + chain + source->name,
           "inline functions cannot call themselves");
  }
  std::vector<const syn::Param*> params;
  for (const auto& p : def.params) {
    if (p.name == "self" && &p == &def.params.front() && (source->has_self || program_.is_class)) continue;
    params.push_back(&p);
  }
  // Positional, then keywords, exact count.
  std::vector<const Argument*> bound(params.size(), nullptr);
  size_t positional = 0;
  size_t given = 0;
  for (const auto& a : args) {
    ++given;
    if (a.keyword.empty()) {
      if (positional < params.size()) bound[positional] = &a;
      ++positional;
      continue;
    }
    const auto it =
        std::find_if(params.begin(), params.end(), [&](const auto* p) { return p->name == a.keyword; });
    if (it == params.end()) {
      std::vector<std::string> names;
      for (const auto* p : params) names.push_back(p->name);
      reject(ErrorClass::kParserTypeError, a.span,
             "Inline function '" + source->name + "' does not accept keyword argument '" + a.keyword + "'",
             did_you_mean(a.keyword, names));
    }
    auto& slot = bound[static_cast<size_t>(it - params.begin())];
    if (slot) {
      reject(ErrorClass::kParserTypeError, a.span,
             "Inline function '" + source->name + "' got multiple values for parameter '" + a.keyword + "'");
    }
    slot = &a;
  }
  size_t required = 0;
  bool missing = positional > params.size();
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i]->default_value) ++required;
    if (!bound[i] && !params[i]->default_value) missing = true;
  }
  if (missing) {
    std::string list;
    for (const auto* p : params) list += (list.empty() ? "" : ", ") + p->name;
    reject(ErrorClass::kParserTypeError, call.span,
           "Inline function '" + source->name + "' expects " + std::to_string(params.size()) +
               " argument(s), got " + std::to_string(given),
           "its parameters are: " + list);
  }
  // Arguments are evaluated once, in the caller's scope.
  std::vector<const syn::Expr*> syntax(params.size(), nullptr);
  std::vector<Value> values(params.size());
  {
    std::vector<const syn::Expr*> order;
    std::vector<size_t> slots;
    for (const auto& a : args) {
      for (size_t i = 0; i < bound.size(); ++i) {
        if (bound[i] != &a) continue;
        syntax[i] = a.syntax;
        if (a.syntax && a.value.kind == Value::Kind::kNothing) {
          order.push_back(a.syntax);
          slots.push_back(i);
        } else {
          values[i] = a.value;
        }
      }
    }
    const std::vector<Value> got = eval_operands(order);
    for (size_t k = 0; k < slots.size(); ++k) values[slots[k]] = got[k];
  }
  Frame frame;
  frame.source = source;
  frame.host = source->host.get();
  frame.parent = frame_;
  frame.is_inline = true;
  frame.call = call.span;
  frame.auto_scope = source->auto_scope;
  frame.loop_base = loops_.size();
  frame.region_base = regions_.size();
  Frame* caller = frame_;
  const int depth = std::exchange(expr_depth_, 0);  // the statements of the helper are statements
  const auto leave = [&] {
    frame_ = caller;
    expr_depth_ = depth;
    expanding_.pop_back();
  };
  expanding_.push_back(source.get());
  Value result;
  try {
    for (size_t i = 0; i < params.size(); ++i) {
      if (!bound[i]) {
        frame_ = &frame;
        values[i] = eval(*params[i]->default_value);
        frame_ = caller;
      }
      bind_inline_param(frame, *params[i], values[i], syntax[i], bound[i] ? bound[i]->span : call.span);
    }
    frame_ = &frame;
    for (const auto& s : def.body) {
      if (s->kind == StmtKind::kIf && (contains_return(s->body) || contains_return(s->orelse))) {
        frame.several_returns = true;
      }
    }
    // Attributes of a helper have no meaning of their own once it is spliced in.
    size_t first = 0;
    while (first < def.body.size()) {
      const auto& s = *def.body[first];
      if (s.kind != StmtKind::kExpr || !s.value) break;
      if (s.value->kind == ExprKind::kString) {
        ++first;
        continue;
      }
      if (s.value->kind != ExprKind::kCall) break;
      const HostValue h = resolve_host(*s.value->items[0]);
      if (h.kind != HostKind::kConstruct || h.text != "pl.func_attr") break;
      ++first;
    }
    frame.flow.live = true;
    exec_from(def.body, first);
    if (frame.several_returns && frame.value_return) {
      if (frame.flow.live) {
        reject(ErrorClass::kUnsupportedFeatureError, def.span,
               "Function '" + source->name + "' can end without a 'return' after a conditional value return",
               "return a value on every path");
      }
      std::vector<Value> items;
      for (size_t k = 0; frame.flow.names.count("%ret" + std::to_string(k)); ++k) {
        items.push_back(
            read_binding("return value", frame.flow.names["%ret" + std::to_string(k)], call.span));
      }
      result = items.size() == 1 ? items[0] : Value::tuple(std::move(items));
    } else if (frame.value_return) {
      result = frame.result.size() == 1 && !frame.tuple_return ? frame.result[0] : Value::tuple(frame.result);
    }
  } catch (Failure& f) {
    leave();
    // The error is in the helper's text; say who called it (01 L-76).
    auto& notes = f.diagnostic().notes;
    if (notes.size() < 8) notes.push_back({"in inline function '" + source->name + "' called", call.span});
    throw;
  }
  leave();
  return result;
}

void FunctionBuilder::bind_inline_param(Frame& frame, const syn::Param& param, const Value& value,
                                        const syn::Expr* syntax, const Span& span) {
  Annotation a;
  const bool annotated = param.annotation != nullptr;
  Frame* caller = frame_;
  if (annotated) {
    // Symbols of the annotation are the argument's extents.
    const ir::Type* t = value.type();
    frame_ = &frame;
    std::vector<std::pair<std::string, int>> named;
    if (t && t->is_array_like()) bind_annotation_symbols(*param.annotation, value, span);
    a = annotation(*param.annotation, AnnotationUse::kInlineParam);
    frame_ = caller;
    // The parameters of an orchestration fragment keep theirs: they are a signature (01 L-44, L-59).
    const FunctionSource& f = *frame.source;
    const bool helper = f.decl == DeclKind::kInlineHelper || f.decl == DeclKind::kJitInline ||
                        f.type == ir::FunctionType::kInline;
    if (a.has_direction && helper) {
      Diagnostic d;
      d.cls = ErrorClass::kTypeError;
      d.id = "W-DEPRECATED";
      d.severity = Severity::kWarning;
      d.message = "Direction annotations are deprecated in inline functions: parameter '" + param.name +
                  "' of '" + frame.source->name + "' is passed by reference";
      d.span = param.span;
      d.hint = "drop pl.Out / pl.InOut";
      program_.warn(std::move(d));
    }
  }
  const auto wrong = [&](const std::string& expected) {
    reject(ErrorClass::kParserTypeError, span,
           "Parameter '" + param.name + "' of inline function '" + frame.source->name + "' is declared " +
               expected + ", got " +
               (value.is_expr() ? ir::type_text(*value.expr->type) : std::string("a compile-time value")),
           {}, {{"the parameter", param.span}});
  };
  auto b = std::make_shared<Binding>();
  b->span = param.span;
  Value v = value;
  if (v.is_host() && v.host.kind == HostKind::kDynVar && a.type && a.type->is_scalar()) {
    v = Value::of(to_expr(v, span));
  }
  if (a.type && v.is_expr()) {
    const ir::Type& want = *a.type;
    const ir::Type& have = *v.expr->type;
    if (want.is_tensor() && have.is_tensor() && want.is_window() != have.is_window()) {
      reject(ErrorClass::kParserTypeError, span,
             "X-3: parameter '" + param.name + "' of '" + frame.source->name + "' is a " +
                 (want.is_window() ? "DistributedTensor" : "Tensor") + " but the argument is a " +
                 (have.is_window() ? "DistributedTensor" : "Tensor"),
             want.is_window() ? "shared data must live in a window"
                              : "annotate the parameter with pld.DistributedTensor[...]",
             {{"the parameter", param.span}});
    }
    if (want.kind != have.kind) wrong(ir::type_text(want));
    if (want.is_scalar()) {
      const bool task = want.dtype == DType::kTaskId || have.dtype == DType::kTaskId;
      if (task && want.dtype != have.dtype) wrong(ir::type_text(want));
      if (!task) {
        try {
          v.expr = ir::convert_scalar(v.expr, want.dtype, "parameter '" + param.name + "'");
        } catch (Failure& f) {
          if (!f.diagnostic().span.known()) f.diagnostic().span = span;
          if (f.diagnostic().cls == ErrorClass::kTypeError) f.diagnostic().cls = ErrorClass::kParserTypeError;
          throw;
        }
      }
    } else if (want.is_array_like()) {
      if (!same_dtype(want.dtype, have.dtype)) wrong(ir::type_text(want));
    }
  } else if (a.type && !v.is_expr() && !v.is_host()) {
    wrong(ir::type_text(*a.type));
  }
  if (v.is_tuple() || v.is_host()) {
    b->kind = Binding::Kind::kValue;
    b->value = v.is_tuple() ? spill(v, param.name.c_str(), span) : v;
    frame.flow.names[param.name] = b;
    return;
  }
  if (!v.is_expr() || !v.expr->type || v.expr->type->kind == ir::TypeKind::kNone) {
    reject(ErrorClass::kParserTypeError, span, "Argument of parameter '" + param.name + "' has no value");
  }
  const auto kind = v.expr->kind;
  if (kind == ir::ExprKind::kInt || kind == ir::ExprKind::kFloat || kind == ir::ExprKind::kString ||
      kind == ir::ExprKind::kNone || kind == ir::ExprKind::kDType) {
    b->kind = Binding::Kind::kValue;
    b->value = v;
    frame.flow.names[param.name] = b;
    return;
  }
  const bool reference = !v.expr->type->is_scalar() && kind == ir::ExprKind::kVar;
  b->kind = Binding::Kind::kVar;
  b->type = v.expr->type;
  if (reference) {
    b->var = v.expr->var;
    // Where the caller's value came from stays known.
    if (syntax && syntax->kind == ExprKind::kName) {
      if (const BindingPtr outer = find_binding(syntax->text)) {
        b->regions = outer->regions;
        b->blocks = outer->blocks;
        b->address = outer->address;
      }
    }
    if (v.expr->type->kind == ir::TypeKind::kArray) frame.vars[param.name].push_back(v.expr->var);
  } else {
    if (kind == ir::ExprKind::kVar && v.expr->var->kind == ir::VarKind::kSymbol) {
      // A symbol does not change: its name may serve as an extent inside.
      b->var = v.expr->var;
      frame.flow.names[param.name] = b;
      return;
    }
    frame_ = &frame;
    const std::string name = variable_name(param.name);
    frame_ = caller;
    const VarPtr var = fn->add_var(name, v.expr->type, ir::VarKind::kLocal, span);
    if (v.expr->type->is_scalar()) {
      if (kernel_region() && (device_conditions_ > 0 || reads_device_data(v.expr))) {
        device_data_.insert(var.get());
      }
      std::set<int> params;
      if (rank_dependent(v.expr, &params)) rank_vars_.insert(var.get());
      if (!params.empty()) rank_params_[var.get()].insert(params.begin(), params.end());
      b->lower = lower_bound(v.expr);
    }
    emit_assign(var, v.expr, span);
    b->var = var;
    if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
      b->regions = {region->id};
      b->blocks = region->blocks;
    }
    frame.vars[param.name].push_back(var);
  }
  frame.flow.names[param.name] = b;
}

/// Dynamic symbols named in a helper's annotation denote the argument's extents.
void FunctionBuilder::bind_annotation_symbols(const syn::Expr& annotation_syntax, const Value& value,
                                              const Span& span) {
  if (annotation_syntax.kind == ExprKind::kString) return;
  const syn::Expr* e = &annotation_syntax;
  if (e->kind == ExprKind::kSubscript) {
    const HostValue h = resolve_host(*e->items[0]);
    if (h.kind == HostKind::kConstruct && (h.text == "pl.Out" || h.text == "pl.InOut")) {
      bind_annotation_symbols(*e->items[1], value, span);
      return;
    }
    if (e->items[1]->kind != ExprKind::kTuple || e->items[1]->items.empty()) return;
    const auto& shape = *e->items[1]->items[0];
    std::vector<std::string> names;
    if (shape.kind == ExprKind::kList || shape.kind == ExprKind::kTuple) {
      for (const auto& d : shape.items) {
        const HostValue v = d->kind == ExprKind::kName || d->kind == ExprKind::kAttribute ? resolve_host(*d)
                            : d->kind == ExprKind::kCall && is_static(*d)                 ? fold(*d).host
                                                                                          : HostValue();
        names.push_back(v.kind == HostKind::kDynVar ? v.text : "");
      }
    } else {
      const HostValue v = resolve_host(shape);
      if (v.kind == HostKind::kTuple) {
        for (const auto& d : v.items) names.push_back(d.kind == HostKind::kDynVar ? d.text : "");
      }
    }
    for (size_t i = 0; i < names.size() && static_cast<int>(i) < value.expr->type->rank(); ++i) {
      if (names[i].empty() || frame_->symbols.count(names[i])) continue;
      const ir::Dim& d = value.expr->type->shape[i];
      if (d.is_const()) {
        frame_->symbols[names[i]] = ir::int_const(d.value, DType::kIndex, span, true);
        continue;
      }
      Frame* inner = frame_;
      frame_ = inner->parent;
      ExprPtr base = value.expr;
      if (base->kind != ir::ExprKind::kVar) base = spill(value, "_v", span).expr;
      const ExprPtr extent = extent_of(base, static_cast<int>(i), span);
      const Value kept = extent->kind == ir::ExprKind::kVar
                             ? Value::of(extent)
                             : spill(Value::of(extent), names[i].c_str(), span);
      frame_ = inner;
      frame_->symbols[names[i]] = kept.expr;
    }
  }
}

void FunctionBuilder::exec_inline_return(const syn::Stmt& s) {
  std::vector<Value> values;
  bool tuple = false;
  const bool none = !s.value || (s.value->kind == ExprKind::kNone && !frame_->value_return);
  if (!none) {
    Value v = eval(*s.value);
    if (v.is_expr() && v.expr->type->kind == ir::TypeKind::kTuple) v = spill(v, "_r", s.span);
    if (v.is_expr() && v.expr->type->kind == ir::TypeKind::kNone) {
      emit_eval(v.expr, s.span);
    } else if (v.is_tuple()) {
      values = v.items;
      tuple = true;
    } else if (v.kind != Value::Kind::kNothing) {
      values = {v};
    }
  }
  if (!values.empty()) frame_->value_return = true;
  if (frame_->several_returns) {
    for (size_t k = 0; k < values.size(); ++k) {
      Value v = values[k];
      assign("%ret" + std::to_string(k), v, s.span);
    }
    frame_->tuple_return = tuple;
  } else {
    // Values that depend on variables of the helper stay what they are until the caller uses them: the caller
    // uses them at once.
    for (auto& v : values) {
      if (v.is_expr() && (v.expr->kind == ir::ExprKind::kOp || v.expr->kind == ir::ExprKind::kCall)) {
        v = spill(v, "_r", s.span);
      }
    }
    frame_->result = std::move(values);
    frame_->tuple_return = tuple;
  }
  frame_->returned = true;
  flow().live = false;
}

}  // namespace pypto::sema
