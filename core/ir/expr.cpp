// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "core/ir/ir.h"

namespace pypto::ir {
namespace {

std::shared_ptr<Expr> make_expr(ExprKind kind, TypePtr type, Span span) {
  auto e = std::make_shared<Expr>();
  e->kind = kind;
  e->type = std::move(type);
  e->span = std::move(span);
  return e;
}

bool is_op(const ExprPtr& e, OpId op) { return e && e->kind == ExprKind::kOp && e->op == op; }

DType dtype_of(const ExprPtr& e) {
  return e && e->type && e->type->is_scalar() ? e->type->dtype : DType::kNone;
}

int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// An integer expression as a sum of atoms with coefficients. Sums are exact in the ring of the dtype, so
/// only subexpressions of the same width are opened: a narrower one wraps earlier than its context.
struct Linear {
  std::vector<std::pair<int64_t, ExprPtr>> terms;
  int64_t constant = 0;
};

bool atoms_equal(const ExprPtr& a, const ExprPtr& b);

void add_term(Linear& out, int64_t coefficient, const ExprPtr& atom) {
  for (auto& [c, e] : out.terms) {
    if (atoms_equal(e, atom)) {
      c = wrap_add(c, coefficient);
      return;
    }
  }
  out.terms.emplace_back(coefficient, atom);
}

void linearize(const ExprPtr& e, int64_t scale, int bits, Linear& out) {
  if (e->kind == ExprKind::kInt) {
    out.constant = wrap_add(out.constant, wrap_mul(scale, e->int_value));
    return;
  }
  if (e->kind == ExprKind::kOp && dtype_bits(dtype_of(e)) == bits) {
    if (e->op == OpId::k_scalar_add || e->op == OpId::k_scalar_sub) {
      linearize(e->args[0], scale, bits, out);
      linearize(e->args[1], e->op == OpId::k_scalar_add ? scale : wrap_mul(scale, -1), bits, out);
      return;
    }
    if (e->op == OpId::k_scalar_neg) return linearize(e->args[0], wrap_mul(scale, -1), bits, out);
    if (e->op == OpId::k_scalar_mul) {
      const auto a = const_int(e->args[0]);
      const auto b = const_int(e->args[1]);
      if (b) return linearize(e->args[0], wrap_mul(scale, *b), bits, out);
      if (a) return linearize(e->args[1], wrap_mul(scale, *a), bits, out);
    }
    if (is_op(e, OpId::k_scalar_floordiv) || is_op(e, OpId::k_scalar_mod)) {
      const ExprPtr simple = simplify(e);
      if (simple != e) return linearize(simple, scale, bits, out);
    }
  }
  add_term(out, scale, e);
}

Linear linear_of(const ExprPtr& e) {
  Linear out;
  linearize(e, 1, dtype_bits(dtype_of(e)), out);
  std::erase_if(out.terms, [](const auto& t) { return t.first == 0; });
  return out;
}

/// Two expressions are the same atom when they read the same variables through the same operations.
bool atoms_equal(const ExprPtr& a, const ExprPtr& b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  switch (a->kind) {
    case ExprKind::kInt:
      return a->int_value == b->int_value;
    case ExprKind::kFloat:
      return a->float_value == b->float_value && dtype_of(a) == dtype_of(b);
    case ExprKind::kVar:
      return a->var == b->var;
    case ExprKind::kItem:
      return a->int_value == b->int_value && atoms_equal(a->args[0], b->args[0]);
    case ExprKind::kTuple:
      break;
    case ExprKind::kOp:
      // A value read from memory is not the same at two times; everything else here is pure.
      if (a->op != b->op || !(a->attrs == b->attrs) || a->op == OpId::k_read || a->op == OpId::k_array_get) {
        return false;
      }
      break;
    default:
      return false;
  }
  if (a->args.size() != b->args.size()) return false;
  for (size_t i = 0; i < a->args.size(); ++i) {
    const auto& x = a->args[i];
    const auto& y = b->args[i];
    if (!x != !y) return false;
    if (x && !(is_int(dtype_of(x)) && is_int(dtype_of(y)) ? same_expr(x, y) : atoms_equal(x, y)))
      return false;
  }
  return true;
}

ExprPtr scalar_op(OpId op, std::vector<ExprPtr> args, const TypePtr& type, const Span& span) {
  return op_expr(op, std::move(args), {}, type, span);
}

ExprPtr rebuild(const Linear& linear, const TypePtr& type, const Span& span) {
  ExprPtr sum;
  // Positive terms first, so that the text reads `a - b` and not `-b + a`.
  for (const bool positive : {true, false}) {
    for (const auto& [c, atom] : linear.terms) {
      if ((c > 0) != positive) continue;
      const int64_t magnitude = positive || c == INT64_MIN ? c : -c;
      ExprPtr term = atom;
      if (magnitude != 1) {
        // At equal width the left operand decides the dtype (01 L-18).
        std::vector<ExprPtr> factors = {atom, int_const(magnitude, type->dtype, span)};
        if (dtype_of(atom) != type->dtype) std::swap(factors[0], factors[1]);
        term = scalar_op(OpId::k_scalar_mul, std::move(factors), type, span);
      }
      if (!sum) {
        sum = positive ? term : scalar_op(OpId::k_scalar_neg, {term}, type, span);
      } else {
        sum = scalar_op(positive ? OpId::k_scalar_add : OpId::k_scalar_sub, {sum, term}, type, span);
      }
    }
  }
  if (!sum) return int_const(linear.constant, type->dtype, span);
  if (linear.constant > 0) {
    return scalar_op(OpId::k_scalar_add, {sum, int_const(linear.constant, type->dtype, span)}, type, span);
  }
  if (linear.constant < 0 && linear.constant != INT64_MIN) {
    return scalar_op(OpId::k_scalar_sub, {sum, int_const(-linear.constant, type->dtype, span)}, type, span);
  }
  return sum;
}

/// The dtype that the operands of a rebuilt sum give it when its text is read (01 L-18).
DType dtype_as_read(const ExprPtr& e) {
  if (!is_op(e, OpId::k_scalar_add) && !is_op(e, OpId::k_scalar_sub) && !is_op(e, OpId::k_scalar_mul)) {
    return dtype_of(e);
  }
  const DType a = dtype_as_read(e->args[0]), b = dtype_as_read(e->args[1]);
  return dtype_bits(b) > dtype_bits(a) ? b : a;
}

int size_of(const ExprPtr& e) {
  int n = 1;
  for (const auto& a : e->args) {
    if (a) n += size_of(a);
  }
  return n;
}

/// Division and remainder of a constant, or of terms that the divisor all divides, by a positive constant.
ExprPtr simplify_division(const ExprPtr& e) {
  const ExprPtr lhs = simplify(e->args[0]);
  const auto divisor = const_int(e->args[1]);
  const bool quotient = e->op == OpId::k_scalar_floordiv;
  if (divisor && *divisor > 0) {
    Linear linear;
    linearize(lhs, 1, dtype_bits(dtype_of(e)), linear);
    const int64_t d = *divisor;
    if (linear.terms.empty()) {
      const int64_t below = (linear.constant % d + d) % d;  // floors
      return int_const(quotient ? (linear.constant - below) / d : below, e->type->dtype, e->span);
    }
    const bool exact =
        linear.constant % d == 0 && std::all_of(linear.terms.begin(), linear.terms.end(),
                                                [&](const auto& t) { return t.first % d == 0; });
    if (exact) {
      if (!quotient) return int_const(0, e->type->dtype, e->span);
      for (auto& t : linear.terms) t.first /= d;
      linear.constant /= d;
      return rebuild(linear, e->type, e->span);
    }
  }
  if (lhs == e->args[0]) return e;
  return scalar_op(e->op, {lhs, e->args[1]}, e->type, e->span);
}

ExprPtr simplify_extremum(const ExprPtr& e) {
  const ExprPtr a = simplify(e->args[0]);
  const ExprPtr b = simplify(e->args[1]);
  const bool greatest = e->op == OpId::k_max;
  const auto ca = const_int(a);
  const auto cb = const_int(b);
  if (ca && cb) return int_const(greatest ? std::max(*ca, *cb) : std::min(*ca, *cb), e->type->dtype, e->span);
  if (same_expr(a, b)) return a;
  if (a == e->args[0] && b == e->args[1]) return e;
  return op_expr(e->op, {a, b}, e->attrs, e->type, e->span);
}

}  // namespace

ExprPtr int_const(int64_t value, DType dtype, Span span, bool untyped) {
  auto e = make_expr(ExprKind::kInt, scalar_type(dtype), std::move(span));
  e->int_value = value;
  e->untyped = untyped;
  return e;
}

ExprPtr bool_const(bool value, Span span) { return int_const(value ? 1 : 0, DType::kBool, std::move(span)); }

ExprPtr float_const(double value, DType dtype, Span span, bool untyped) {
  auto e = make_expr(ExprKind::kFloat, scalar_type(dtype), std::move(span));
  e->float_value = value;
  e->untyped = untyped;
  return e;
}

ExprPtr none_const(Span span) {
  return make_expr(ExprKind::kNone, scalar_type(DType::kTaskId), std::move(span));
}

ExprPtr string_const(std::string text, Span span) {
  auto e = make_expr(ExprKind::kString, simple_type(TypeKind::kString), std::move(span));
  e->text = std::move(text);
  return e;
}

ExprPtr var_ref(VarPtr var, Span span) {
  auto e = make_expr(ExprKind::kVar, var ? var->type : none_type(), std::move(span));
  e->var = std::move(var);
  return e;
}

ExprPtr tuple_expr(std::vector<ExprPtr> items, Span span) {
  std::vector<TypePtr> types;
  types.reserve(items.size());
  for (const auto& item : items) types.push_back(item && item->type ? item->type : none_type());
  auto e = make_expr(ExprKind::kTuple, tuple_type(std::move(types)), std::move(span));
  e->args = std::move(items);
  return e;
}

ExprPtr item_expr(ExprPtr tuple, int index, Span span) {
  PYPTO_CHECK(tuple && tuple->type && tuple->type->kind == TypeKind::kTuple && index >= 0 &&
                  index < static_cast<int>(tuple->type->elements.size()),
              "item of something that is no tuple, or past its end");
  auto e = make_expr(ExprKind::kItem, tuple->type->elements[static_cast<size_t>(index)], std::move(span));
  e->int_value = index;
  e->args = {std::move(tuple)};
  return e;
}

ExprPtr op_expr(OpId op, std::vector<ExprPtr> args, AttrMap attrs, TypePtr type, Span span) {
  auto e = make_expr(ExprKind::kOp, std::move(type), std::move(span));
  e->op = op;
  e->args = std::move(args);
  e->attrs = std::move(attrs);
  return e;
}

std::optional<int64_t> const_int(const ExprPtr& e) {
  if (!e || e->kind != ExprKind::kInt) return std::nullopt;
  return e->int_value;
}

std::optional<double> const_number(const ExprPtr& e) {
  if (!e) return std::nullopt;
  if (e->kind == ExprKind::kInt) return static_cast<double>(e->int_value);
  if (e->kind == ExprKind::kFloat) return e->float_value;
  return std::nullopt;
}

ExprPtr simplify(const ExprPtr& e) {
  if (!e || e->kind != ExprKind::kOp || !is_int(dtype_of(e))) return e;
  switch (e->op) {
    case OpId::k_scalar_floordiv:
    case OpId::k_scalar_mod: {
      const ExprPtr simple = simplify_division(e);
      return dtype_as_read(simple) == dtype_of(e) ? simple : e;
    }
    case OpId::k_max:
    case OpId::k_min: {
      const ExprPtr simple = simplify_extremum(e);
      return dtype_as_read(simple) == dtype_of(e) ? simple : e;
    }
    case OpId::k_scalar_add:
    case OpId::k_scalar_sub:
    case OpId::k_scalar_mul:
    case OpId::k_scalar_neg: {
      const ExprPtr simple = rebuild(linear_of(e), e->type, e->span);
      // The user's own text is kept unless something really fell away, and no other type came of it.
      return size_of(simple) < size_of(e) && dtype_as_read(simple) == dtype_of(e) ? simple : e;
    }
    default:
      return e;
  }
}

bool is_checked_conversion(const ExprPtr& e) {
  return e && e->kind == ExprKind::kOp && e->op == OpId::k_scalar_cast && e->attrs.find(AttrKey::k_name);
}

bool same_expr(const ExprPtr& a, const ExprPtr& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (!is_int(dtype_of(a)) || !is_int(dtype_of(b))) return atoms_equal(a, b);
  Linear difference;
  const int bits = std::max(dtype_bits(dtype_of(a)), dtype_bits(dtype_of(b)));
  if (a->kind == ExprKind::kOp || b->kind == ExprKind::kOp) {
    const auto is_sum = [](const ExprPtr& e) {
      return is_op(e, OpId::k_scalar_add) || is_op(e, OpId::k_scalar_sub) || is_op(e, OpId::k_scalar_mul) ||
             is_op(e, OpId::k_scalar_neg);
    };
    // Neither is a sum: compare as atoms, or the comparison would not end.
    if (!is_sum(a) && !is_sum(b)) {
      if (atoms_equal(a, b)) return true;
      const ExprPtr sa = simplify(a);
      const ExprPtr sb = simplify(b);
      return (sa != a || sb != b) && same_expr(sa, sb);
    }
  }
  linearize(a, 1, bits, difference);
  linearize(b, -1, bits, difference);
  return difference.constant == 0 && std::all_of(difference.terms.begin(), difference.terms.end(),
                                                 [](const auto& t) { return t.first == 0; });
}

}  // namespace pypto::ir
