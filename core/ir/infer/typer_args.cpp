// SPDX-License-Identifier: Apache-2.0
// Arguments that are no arrays: scalars, compile-time parameters, lists.
#include <algorithm>
#include <cmath>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

bool is_enum(const Expr& e, const std::string& family) {
  if (e.kind != ExprKind::kInt) return false;
  if (e.text.rfind(family + ".", 0) == 0) return true;
  return family == "MemorySpace" && e.text.rfind("Mem.", 0) == 0;
}

bool is_plain_int(const Expr& e) {
  return e.kind == ExprKind::kInt && e.text.empty() && e.type->dtype != DType::kBool;
}

/// The members an enum parameter takes, as the user writes them.
std::string member_list(const std::string& family) {
  if (family == "ReduceOp") return "pld.ReduceOp.Sum, Max, Min, or Prod";
  if (family == "NotifyOp") return "pld.NotifyOp.AtomicAdd or Set";
  if (family == "WaitCmp") return "pld.WaitCmp.Eq or Ge";
  if (family == "AtomicType") return "pl.AtomicType.None_ or Add";
  return "a member of pl." + family;
}

std::string name_list(std::initializer_list<const char*> names) {
  std::string out;
  for (const char* n : names) out += (out.empty() ? "\"" : ", \"") + std::string(n) + "\"";
  return out;
}

}  // namespace

// ---- scalars

DType Typer::numeric(int i, DType dtype) {
  if (!is_scalar(i)) bad(i, "a scalar");
  const ExprPtr e = arg(i);
  const DType own = e->type->dtype;
  auto& slot = args[static_cast<size_t>(i)];
  if (own == DType::kBool) {
    bad(i, "a numeric scalar",
        "a comparison or True/False is no number: pl.cast(" + param(i) + ", pl.INT32)");
  }
  if (own == DType::kTaskId || e->kind == ExprKind::kNone || e->kind == ExprKind::kDType)
    bad(i, "a numeric scalar");
  if (e->kind == ExprKind::kInt && (e->untyped || own == DType::kIndex)) {
    if (is_float(dtype)) {
      slot = float_const(round_to_dtype(static_cast<double>(e->int_value), dtype), dtype, e->span);
      return dtype;
    }
    if (!fits_dtype(e->int_value, dtype)) {
      fail(ErrorClass::kParserTypeError,
           name() + ": the constant " + std::to_string(e->int_value) + " does not fit dtype " +
               std::string(dtype_text(dtype)) + " of the array it is combined with",
           {}, "use a value in range, or cast the array to a wider dtype");
    }
    slot = int_const(e->int_value, dtype, e->span);
    return dtype;
  }
  if (e->kind == ExprKind::kFloat && e->untyped && is_float(dtype)) {
    slot = float_const(round_to_dtype(e->float_value, dtype), dtype, e->span);
    return dtype;
  }
  if (own == DType::kIndex) {
    value_error(
        "Scalar operand has dtype `index` (argument '" + param(i) +
            "'): loop variables, dim results and arithmetic on them are indices, not element values; write "
            "pl.cast(<value>, pl.INT32)",
        "convert it first: pl.cast(<value>, pl.INT32)");
  }
  return own;
}

void Typer::numeric_as(int i, DType dtype) {
  const DType own = numeric(i, dtype);
  if (own != dtype) args[static_cast<size_t>(i)] = cast_scalar(arg(i), dtype);
}

ExprPtr Typer::index_entry(const ExprPtr& e, const std::string& what) const {
  const std::string found =
      e && e->type
          ? (e->kind == ExprKind::kFloat ? "the floating-point constant " + std::to_string(e->float_value)
                                         : type_text(*e->type))
          : "nothing";
  if (!e || !e->type || !e->type->is_scalar() || e->kind == ExprKind::kNone || !e->text.empty()) {
    type_error(what + " must be an integer scalar, got " + found);
  }
  if (is_float(e->type->dtype)) {
    type_error(what + " must be an integer scalar, got a floating-point scalar (" + found + ")",
               "keep index arithmetic in integers: use // instead of /, or pl.cast(value, pl.INT32)",
               form >= kFormPld ? "X-27" : "");
  }
  if (!is_int(e->type->dtype)) type_error(what + " must be an integer scalar, got " + found);
  if (const auto c = const_int(e)) return int_const(*c, DType::kIndex, e->span);
  return e;
}

void Typer::index(int i) {
  args[static_cast<size_t>(i)] = index_entry(arg(i), "argument '" + param(i) + "'");
}

void Typer::integer_as(int i, DType dtype) {
  if (!is_scalar(i) || !is_int(type(i).dtype)) {
    if (is_scalar(i) && is_float(type(i).dtype)) {
      bad(i, "an integer scalar (a floating-point scalar is rejected here)",
          "keep such values in integers, or pl.cast(value, pl.INT32)", form >= kFormPld ? "X-27" : "");
    }
    bad(i, "an integer scalar");
  }
  args[static_cast<size_t>(i)] = convert_scalar(arg(i), dtype, name() + ": argument '" + param(i) + "'");
}

// ---- parameters

std::optional<int64_t> Typer::constant(int i) const {
  if (!has(i)) return std::nullopt;
  const ExprPtr e = simplify(arg(i));
  if (!e || e->kind != ExprKind::kInt || !e->text.empty() || e->type->dtype == DType::kBool)
    return std::nullopt;
  return e->int_value;
}

int64_t Typer::int_attr(int i, AttrKey key, std::optional<int64_t> fallback) {
  int64_t value = fallback.value_or(0);
  if (has(i)) {
    const auto c = constant(i);
    if (!c) bad(i, "a compile-time integer");
    value = *c;
    drop(i);
  } else if (!fallback) {
    type_error("missing required argument '" + param(i) + "'");
  }
  attrs.set(key, value);
  return value;
}

bool Typer::bool_attr(int i, AttrKey key, bool fallback) {
  bool value = fallback;
  if (has(i)) {
    const ExprPtr& e = arg(i);
    if (e->kind != ExprKind::kInt || e->type->dtype != DType::kBool) bad(i, "True or False");
    value = e->int_value != 0;
    drop(i);
  }
  attrs.set(key, static_cast<int64_t>(value));
  return value;
}

DType Typer::dtype_attr(int i, AttrKey key, DType fallback) {
  DType value = fallback;
  if (has(i)) {
    const auto d = arg(i)->kind == ExprKind::kDType ? dtype_from_code(static_cast<int>(arg(i)->int_value))
                                                    : std::nullopt;
    if (!d) bad(i, "a dtype such as pl.FP32");
    value = *d;
    drop(i);
  }
  if (value != DType::kNone) attrs.set(key, static_cast<int64_t>(value));
  return value;
}

int64_t Typer::enum_attr(int i, AttrKey key, const char* family, int64_t fallback, int64_t members) {
  int64_t value = fallback;
  if (has(i)) {
    // Dumps of distributed programs print the integer (03 D-4).
    const bool number = row->forms >= kFormPld && row->forms < kFormInternal && is_plain_int(*arg(i));
    if (!(number || is_enum(*arg(i), family)) || arg(i)->int_value < 0 || arg(i)->int_value >= members) {
      bad(i, member_list(family));
    }
    value = arg(i)->int_value;
    drop(i);
  }
  attrs.set(key, value);
  return value;
}

std::string Typer::string_attr(int i, AttrKey key, const std::string& fallback) {
  std::string value = fallback;
  if (has(i)) {
    if (arg(i)->kind != ExprKind::kString) bad(i, "a string");
    value = arg(i)->text;
    drop(i);
  }
  attrs.set(key, value);
  return value;
}

int64_t Typer::code_attr(int i, AttrKey key, std::initializer_list<const char*> names, int fallback) {
  int64_t code = fallback;
  if (has(i)) {
    const Expr& e = *arg(i);
    code = -1;
    if (e.kind == ExprKind::kString) {
      int64_t k = 0;
      for (const char* n : names) {
        if (e.text == n) code = k;
        ++k;
      }
    } else if (is_plain_int(e)) {
      if (e.int_value < static_cast<int64_t>(names.size())) code = e.int_value;
    } else {
      bad(i, "one of " + name_list(names) + " or its number");
    }
    if (code < 0) {
      value_error("argument '" + param(i) + "' must be one of " + name_list(names) + " or 0.." +
                  std::to_string(names.size() - 1) + ", got " + got(i));
    }
    drop(i);
  }
  attrs.set(key, code);
  return code;
}

std::string Typer::mode_attr(int i, AttrKey key, std::initializer_list<const char*> names, int fallback) {
  const int64_t code = code_attr(i, key, names, fallback);
  std::string value = *(names.begin() + code);
  attrs.set(key, value);
  return value;
}

PadValue Typer::pad_attr(int i, PadValue fallback, bool null_ok) {
  PadValue value = fallback;
  if (has(i)) {
    const Expr& e = *arg(i);
    bool ok = true;
    if (is_enum(e, "PadValue")) {
      value = static_cast<PadValue>(e.int_value);
      ok = null_ok || value != PadValue::kNull;
    } else if (is_plain_int(e) && e.int_value == 0) {
      value = PadValue::kZero;
    } else if (e.kind == ExprKind::kFloat && e.float_value == 0) {
      value = PadValue::kZero;
    } else if (e.kind == ExprKind::kFloat && std::isinf(e.float_value)) {
      value = e.float_value > 0 ? PadValue::kMax : PadValue::kMin;
    } else {
      ok = false;
    }
    if (!ok) {
      value_error("argument '" + param(i) + "' is " + got(i) +
                  "; accepted are pl.PadValue.zero, pl.PadValue.max, pl.PadValue.min, 0, 0.0, math.inf and "
                  "-math.inf" +
                  (null_ok ? " (or pl.PadValue.null for no padding)" : ""));
    }
    drop(i);
  }
  attrs.set(AttrKey::k_pad_value, static_cast<int64_t>(value));
  return value;
}

AtomicType Typer::atomic_attr(int i, DType element) {
  const auto atomic = static_cast<AtomicType>(enum_attr(i, AttrKey::k_atomic, "AtomicType", 0, 2));
  if (atomic != AtomicType::kAdd) return atomic;
  switch (element) {
    case DType::kFp32:
    case DType::kFp16:
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
      return atomic;
    case DType::kBf16:
      if (!a5()) return atomic;
      break;
    default:
      break;
  }
  const std::string text = element == DType::kBf16 ? "bf16" : std::string(dtype_text(element));
  value_error("AtomicAddDtypeValid: atomic=pl.AtomicType.Add does not support dtype " + text + " on the '" +
                  arch_text() + "' platform; accepted are FP32, FP16, INT32, INT16, INT8" +
                  (a5() ? "" : ", BF16"),
              "accumulate in FP32 and cast once at the end", form >= kFormPld ? "X-24" : "");
}

// ---- lists

bool Typer::is_list(int i) const {
  return has(i) && (arg(i)->kind == ExprKind::kTuple || type(i).kind == TypeKind::kTuple);
}

std::vector<ExprPtr> Typer::entries(int i, int rank) {
  if (!is_list(i)) bad(i, "a list or tuple of integers");
  std::vector<ExprPtr> items;
  if (arg(i)->kind == ExprKind::kTuple) {
    items = arg(i)->args;
  } else {
    for (int k = 0; k < static_cast<int>(type(i).elements.size()); ++k)
      items.push_back(item_expr(arg(i), k, arg(i)->span));
  }
  if (rank >= 0 && static_cast<int>(items.size()) != rank) {
    value_error("argument '" + param(i) + "' has " + std::to_string(items.size()) +
                    " entries, but the tensor has rank " + std::to_string(rank),
                "give one entry per dimension", form >= kFormPld ? "X-21" : "");
  }
  for (size_t k = 0; k < items.size(); ++k) {
    items[k] = index_entry(items[k], "entry " + std::to_string(k) + " of argument '" + param(i) + "'");
  }
  args[static_cast<size_t>(i)] = tuple_expr(items, arg(i)->span);
  return items;
}

Shape Typer::extents(int i, int rank, int64_t least) {
  Shape shape;
  const auto items = entries(i, rank);
  for (size_t k = 0; k < items.size(); ++k) {
    const ExprPtr simple = simplify(items[k]);
    if (const auto c = const_int(simple); c && *c < least) {
      value_error("dimension " + std::to_string(k) + " of argument '" + param(i) + "' is " +
                  std::to_string(*c) + "; it must be " + (least > 0 ? "positive" : "non-negative"));
    }
    shape.push_back(dim_of(simple));
  }
  return shape;
}

Shape Typer::static_extents(int i, int rank) {
  Shape shape = extents(i, rank, 1);
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k].is_const()) continue;
    value_error("dimension " + std::to_string(k) + " of argument '" + param(i) + "' (" + dim_text(shape[k]) +
                    ") must be a positive constant",
                "use a compile-time extent and narrow it with valid_shape");
  }
  if (shape.empty()) value_error("argument '" + param(i) + "' must have at least one dimension");
  return shape;
}

}  // namespace pypto::ir::infer
