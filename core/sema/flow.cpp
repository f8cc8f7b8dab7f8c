// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Where flows of control meet: definite assignment (01 L-85) and equal types (L-83, L-84).
namespace pypto::sema {
namespace {

bool same_constant(const ExprPtr& a, const ExprPtr& b) {
  if (!a || !b) return !a && !b;
  return a->kind == b->kind && a->int_value == b->int_value && a->float_value == b->float_value &&
         a->type->dtype == b->type->dtype;
}

bool same_value(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Value::Kind::kNothing:
      return true;
    case Value::Kind::kExpr:
      if (a.expr == b.expr) return true;
      if (a.expr->kind != b.expr->kind) return false;
      if (a.expr->kind == ir::ExprKind::kVar) return a.expr->var == b.expr->var;
      if (a.expr->kind == ir::ExprKind::kString) return a.expr->text == b.expr->text;
      if (a.expr->kind == ir::ExprKind::kNone) return true;
      if (a.expr->kind == ir::ExprKind::kInt || a.expr->kind == ir::ExprKind::kFloat) {
        return same_constant(a.expr, b.expr);
      }
      return ir::same_expr(a.expr, b.expr);
    case Value::Kind::kTuple:
      return a.items.size() == b.items.size() &&
             std::equal(a.items.begin(), a.items.end(), b.items.begin(), same_value);
    case Value::Kind::kHost:
      return a.host.kind == b.host.kind && a.host.int_value == b.host.int_value &&
             a.host.text == b.host.text && a.host.dtype == b.host.dtype &&
             a.host.function == b.host.function &&
             (a.host.kind == HostKind::kDType || a.host.kind == HostKind::kEnum ||
              a.host.kind == HostKind::kDynVar || a.host.kind == HostKind::kFunction ||
              a.host.handle == b.host.handle);
  }
  return false;
}

std::string binding_type(const Binding& b) {
  if (b.kind == Binding::Kind::kVar) return ir::type_text(*b.type);
  if (b.value.is_expr()) return ir::type_text(*b.value.expr->type);
  if (b.value.is_tuple()) return "tuple";
  return b.value.is_host() && !b.value.host.text.empty() ? b.value.host.text : "compile-time value";
}

}  // namespace

TypePtr FunctionBuilder::join_types(const TypePtr& a, const TypePtr& b, const Site& site) {
  if (a == b) return a;
  auto t = std::make_shared<ir::Type>(*a);
  for (size_t i = 0; i < t->shape.size() && i < b->shape.size(); ++i) {
    if (!same_dim(a->shape[i], b->shape[i])) t->shape[i] = ir::Dim();
  }
  if (!same_dims(a->valid, b->valid)) {
    const auto& x = a->valid.empty() ? a->shape : a->valid;
    const auto& y = b->valid.empty() ? b->shape : b->valid;
    t->valid = x;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!same_dim(x[i], y[i])) t->valid[i] = ir::Dim();
    }
    if (same_dims(t->valid, t->shape)) t->valid.clear();
  }
  if (a->pad != b->pad) t->pad = ir::PadValue::kNull;
  if (a->space != b->space && (a->space == ir::MemorySpace::kUnset || b->space == ir::MemorySpace::kUnset)) {
    t->space = a->space == ir::MemorySpace::kUnset ? b->space : a->space;
  }
  if (a->acc_dtype != b->acc_dtype) t->acc_dtype = a->acc_dtype;
  (void)site;
  t->storage = join_storage(a->storage, b->storage);
  return t;
}

/// Appends `var = value of from`, moving a tile or reading an address where kinds differ.
void FunctionBuilder::convert_into(const VarPtr& var, const Binding& from, ir::Block* block, bool before_last,
                                   const Span& span) {
  if (!block) return;
  ExprPtr value;
  if (from.kind == Binding::Kind::kVar) {
    auto e = std::make_shared<ir::Expr>(*ir::var_ref(from.var, span));
    e->type = from.type;
    value = e;
    if (var->type->is_tile() && from.type->is_tile() && var->type->space != ir::MemorySpace::kUnset &&
        from.type->space != ir::MemorySpace::kUnset && var->type->space != from.type->space) {
      ir::AttrMap attrs;
      attrs.set(ir::AttrKey::k_target_memory, static_cast<int64_t>(var->type->space));
      auto t = std::make_shared<ir::Type>(*from.type);
      t->space = var->type->space;
      t->storage = new_storage(var->name);
      value = ir::op_expr(ir::OpId::k_move, {e, nullptr, nullptr, nullptr}, attrs, t, span);
    } else if (var->type->is_tensor() && var->type->place == ir::TensorPlace::kOnChip &&
               from.type->place != ir::TensorPlace::kOnChip) {
      TypePtr t = with_storage(with_place(from.type, ir::TensorPlace::kOnChip), new_storage(var->name));
      value = ir::op_expr(ir::OpId::k_snapshot, {e}, {}, t, span);
    }
  } else {
    value = from.value.expr;
    if (value->untyped) value = ir::convert_scalar(value, var->type->dtype, "'" + var->name + "'");
  }
  auto s = make(ir::StmtKind::kAssign, span);
  s->targets = {var};
  s->value = value;
  if (before_last && !block->empty()) {
    block->insert(block->end() - 1, s);
  } else {
    block->push_back(s);
  }
}

BindingPtr FunctionBuilder::join(const std::string& name, const BindingPtr& a, const BindingPtr& b,
                                 const Site& site) {
  if (a == b) return a;
  if (!a || !b) {
    auto one = std::make_shared<Binding>(a ? *a : *b);
    if (one->undefined.empty()) one->undefined = a ? site.missing_b : site.missing_a;
    if (one->undefined.empty()) one->undefined = "it is not assigned on every path";
    return one;
  }
  if (a->kind == Binding::Kind::kPoison) return a;
  if (b->kind == Binding::Kind::kPoison) return b;
  auto out = std::make_shared<Binding>(*a);
  if (out->undefined.empty()) {
    out->undefined = b->undefined;
    if (!b->undefined.empty()) out->undefined_span = b->undefined_span;
  }
  for (const int r : b->regions) {
    if (std::find(out->regions.begin(), out->regions.end(), r) == out->regions.end())
      out->regions.push_back(r);
  }
  out->blocks = a->blocks || b->blocks;
  if (a->lower && b->lower) {
    out->lower = std::min(*a->lower, *b->lower);
  } else {
    out->lower.reset();
  }
  out->loop_variable = a->loop_variable && b->loop_variable;
  if (a->stale != b->stale) out->stale.clear();
  if (a->kind == Binding::Kind::kNoValue || b->kind == Binding::Kind::kNoValue) {
    out->kind = Binding::Kind::kNoValue;
    return out;
  }
  BindingPtr before;
  if (site.before) {
    const auto it = site.before->find(name);
    if (it != site.before->end()) before = it->second;
  }
  const auto mismatch = [&]() -> BindingPtr {
    // The earlier definition is the one from before; the later one is reported.
    const bool b_is_new = before != b || site.loop;
    const Binding& first = b_is_new ? *a : *b;
    const Binding& second = b_is_new ? *b : *a;
    const std::string text = "Cannot reassign '" + name + "' with a different type: was " +
                             binding_type(first) + ", got " + binding_type(second);
    if (before && before->undefined.empty()) {
      const bool lists = first.value.is_tuple() && second.value.is_tuple();
      reject(
          ErrorClass::kParserTypeError, second.span.known() ? second.span : site.span,
          lists ? "Cannot reassign '" + name +
                      "' here: lists and tuples are known while compiling only, and this one would depend on "
                      "the path taken"
                : text,
          lists ? "give the entries that change names of their own and write [a, b] where they are used"
                : "use another name, or bring both values to one type",
          {{"'" + name + "' was first defined", first.span}});
    }
    auto poison = std::make_shared<Binding>(second);
    poison->kind = Binding::Kind::kPoison;
    poison->poison = text;
    return poison;
  };
  const bool va = a->kind == Binding::Kind::kVar;
  const bool vb = b->kind == Binding::Kind::kVar;
  if (!va && !vb) {
    if (same_value(a->value, b->value)) return out;
    const bool scalars =
        a->value.is_expr() && b->value.is_expr() && a->value.is_scalar() && b->value.is_scalar();
    if (!scalars || !ir::same_type(*a->value.expr->type, *b->value.expr->type)) return mismatch();
    const VarPtr var = variable(name, a->value.expr->type, a->span);
    convert_into(var, *a, site.block_a, site.before_last_a, site.span);
    convert_into(var, *b, site.block_b, site.before_last_b, site.span);
    out->kind = Binding::Kind::kVar;
    out->var = var;
    out->type = var->type;
    out->value = {};
    return out;
  }
  if (va != vb) {
    const Binding& fixed = va ? *b : *a;
    const Binding& cell = va ? *a : *b;
    if (!fixed.value.is_expr() || !fixed.value.is_scalar() || !cell.type->is_scalar()) return mismatch();
    const ir::Type& ft = *fixed.value.expr->type;
    const bool adapts = fixed.value.expr->untyped && fixed.value.expr->kind == ir::ExprKind::kInt &&
                        ft.dtype != DType::kBool && (is_int(cell.type->dtype) || is_float(cell.type->dtype));
    const bool float_adapts = fixed.value.expr->untyped && fixed.value.expr->kind == ir::ExprKind::kFloat &&
                              is_float(cell.type->dtype);
    if (!ir::same_type(ft, *cell.type) && !adapts && !float_adapts) return mismatch();
    convert_into(cell.var, fixed, va ? site.block_b : site.block_a,
                 va ? site.before_last_b : site.before_last_a, site.span);
    out->kind = Binding::Kind::kVar;
    out->var = cell.var;
    out->type = cell.type;
    out->value = {};
    out->constant = nullptr;
    return out;
  }
  bool move = false;
  if (!meets(*a->type, *b->type, &move)) return mismatch();
  if (site.loop && a->type->is_window() && a->type->storage && b->type->storage && before && before == a &&
      leaves(a->type->storage) != leaves(b->type->storage)) {
    reject(ErrorClass::kParserTypeError, b->span,
           "X-17: Rebinding loop-carried DistributedTensor '" + name + "' to a different buffer: was '" +
               a->type->storage->name + "', got '" + b->type->storage->name + "'",
           "keep one buffer per carried name", {{"'" + name + "' before the loop", a->span}});
  }
  if (a->var != b->var) {
    const bool kinds = a->type->is_tensor() && (a->type->place == ir::TensorPlace::kOnChip) !=
                                                   (b->type->place == ir::TensorPlace::kOnChip);
    if (kinds && b->type->place == ir::TensorPlace::kOnChip) {
      // An address and an on-chip value meet: the address is read.
      convert_into(b->var, *a, site.block_a, site.before_last_a, site.span);
      out->var = b->var;
      out->type = with_place(join_types(b->type, a->type, site), ir::TensorPlace::kOnChip);
      out->constant = nullptr;
      return out;
    }
    convert_into(a->var, *b, site.block_b, site.before_last_b, site.span);
  }
  out->type = join_types(a->type, b->type, site);
  if (!same_constant(a->constant, b->constant)) out->constant = nullptr;
  return out;
}

Flow FunctionBuilder::merge(const Flow& a, const Flow& b, const Site& site) {
  if (!a.live) return b;
  if (!b.live) return a;
  Flow out;
  auto x = a.names.begin();
  auto y = b.names.begin();
  while (x != a.names.end() || y != b.names.end()) {
    const int order = x == a.names.end() ? 1 : y == b.names.end() ? -1 : x->first.compare(y->first);
    const std::string name = order <= 0 ? x->first : y->first;
    const BindingPtr bx = order <= 0 ? (x++)->second : nullptr;
    const BindingPtr by = order >= 0 ? (y++)->second : nullptr;
    if (const BindingPtr j = join(name, bx, by, site)) out.names[name] = j;
  }
  return out;
}

}  // namespace pypto::sema
