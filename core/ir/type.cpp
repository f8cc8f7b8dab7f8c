// SPDX-License-Identifier: Apache-2.0
#include "core/ir/type.h"

#include <utility>

#include "core/ir/ir.h"
#include "core/ir/member_text.h"

namespace pypto::ir {
namespace {

std::shared_ptr<Type> make_type(TypeKind kind) {
  auto t = std::make_shared<Type>();
  t->kind = kind;
  return t;
}

const char* operator_text(OpId op) {
  switch (op) {
    case OpId::k_scalar_add:
      return " + ";
    case OpId::k_scalar_sub:
      return " - ";
    case OpId::k_scalar_mul:
      return " * ";
    case OpId::k_scalar_truediv:
      return " / ";
    case OpId::k_scalar_floordiv:
      return " // ";
    case OpId::k_scalar_mod:
      return " % ";
    case OpId::k_scalar_lshift:
      return " << ";
    case OpId::k_scalar_rshift:
      return " >> ";
    case OpId::k_scalar_eq:
      return " == ";
    case OpId::k_scalar_ne:
      return " != ";
    case OpId::k_scalar_lt:
      return " < ";
    case OpId::k_scalar_le:
      return " <= ";
    case OpId::k_scalar_gt:
      return " > ";
    case OpId::k_scalar_ge:
      return " >= ";
    case OpId::k_scalar_and:
      return " and ";
    case OpId::k_scalar_or:
      return " or ";
    default:
      return nullptr;
  }
}

/// Scalar expression as the user would write it; only what extents can contain.
std::string scalar_text(const ExprPtr& e, bool nested) {
  if (!e) return "?";
  switch (e->kind) {
    case ExprKind::kInt:
      return std::to_string(e->int_value);
    case ExprKind::kFloat:
      return std::to_string(e->float_value);
    case ExprKind::kVar:
      return e->var ? e->var->name : "?";
    case ExprKind::kOp:
      break;
    default:
      return "?";
  }
  if (const char* symbol = operator_text(e->op); symbol && e->args.size() == 2) {
    std::string text = scalar_text(e->args[0], true) + symbol + scalar_text(e->args[1], true);
    return nested ? "(" + text + ")" : text;
  }
  if (e->op == OpId::k_scalar_neg) return "-" + scalar_text(e->args[0], true);
  std::string text = std::string(op_row(e->op).name) + "(";
  bool first = true;
  for (const auto& a : e->args) {
    if (!a) continue;
    if (!first) text += ", ";
    first = false;
    text += a->type && a->type->is_scalar() ? scalar_text(a, false) : (a->var ? a->var->name : "...");
  }
  if (const auto* axis = e->attrs.find(AttrKey::k_axis)) {
    if (const auto* i = std::get_if<int64_t>(axis)) text += ", " + std::to_string(*i);
  }
  return text + ")";
}

std::string dims_text(const std::vector<Dim>& dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + dim_text(dims[i]);
  return out + "]";
}

std::string array_text(const Type& t, bool annotation) {
  std::string name = t.is_tile() ? "Tile" : t.is_window() ? "DistributedTensor" : "Tensor";
  std::string out = annotation ? (t.is_window() ? "pld." : "pl.") + name : name;
  out += "[" + shape_text(t.shape) + ", ";
  out += annotation ? std::string("pl.") + dtype_info(t.dtype).member : std::string(dtype_text(t.dtype));
  const std::string prefix = annotation ? "pl." : "";
  if (t.is_tile()) {
    if (t.space != MemorySpace::kUnset) out += ", " + prefix + "Mem." + space_member(t.space);
    if (annotation && t.tile_view) out += ", " + tile_view_text(*t.tile_view, dims_text);
  } else if (annotation && t.tensor_view) {
    out += ", " + tensor_view_text(*t.tensor_view, dims_text);
  } else if (t.layout == TensorLayout::kDN) {
    out += annotation ? ", pl.TensorView(layout=pl.TensorLayout.DN)" : ", DN";
  } else if (t.layout != TensorLayout::kND) {
    out += ", " + prefix + tensor_layout_member(t.layout);
  }
  return out + "]";
}

bool same_shape(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_const() && b[i].is_const() && a[i].value != b[i].value) return false;
  }
  return true;
}

/// Layouts disagree only when both types ask for one (01 L-84).
template <class T>
bool both_differ(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

}  // namespace

TypePtr none_type() {
  static const TypePtr type = make_type(TypeKind::kNone);
  return type;
}

TypePtr scalar_type(DType dtype) {
  auto t = make_type(TypeKind::kScalar);
  t->dtype = dtype;
  return t;
}

TypePtr tensor_type(Shape shape, DType dtype, TensorPlace place, TensorLayout layout) {
  auto t = make_type(TypeKind::kTensor);
  t->shape = std::move(shape);
  t->dtype = dtype;
  t->place = place;
  t->layout = layout;
  return t;
}

TypePtr tile_type(Shape shape, DType dtype, MemorySpace space) {
  auto t = make_type(TypeKind::kTile);
  t->shape = std::move(shape);
  t->dtype = dtype;
  t->space = space;
  return t;
}

TypePtr array_type(int64_t extent, DType dtype) {
  auto t = make_type(TypeKind::kArray);
  t->shape = {Dim(extent)};
  t->dtype = dtype;
  return t;
}

TypePtr tuple_type(std::vector<TypePtr> elements) {
  auto t = make_type(TypeKind::kTuple);
  t->elements = std::move(elements);
  return t;
}

TypePtr simple_type(TypeKind kind) { return make_type(kind); }

bool same_type(const Type& a, const Type& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case TypeKind::kScalar:
      return same_dtype(a.dtype, b.dtype);
    case TypeKind::kTensor:
      return same_dtype(a.dtype, b.dtype) && a.is_window() == b.is_window() && a.layout == b.layout &&
             same_shape(a.shape, b.shape);
    case TypeKind::kTile:
      if (!same_dtype(a.dtype, b.dtype) || !same_shape(a.shape, b.shape)) return false;
      if (a.space != MemorySpace::kUnset && b.space != MemorySpace::kUnset && a.space != b.space)
        return false;
      return !(a.tile_view && b.tile_view &&
               (both_differ(a.tile_view->blayout, b.tile_view->blayout) ||
                both_differ(a.tile_view->slayout, b.tile_view->slayout)));
    case TypeKind::kArray:
      return same_dtype(a.dtype, b.dtype) && same_shape(a.shape, b.shape);
    case TypeKind::kTuple: {
      if (a.elements.size() != b.elements.size()) return false;
      for (size_t i = 0; i < a.elements.size(); ++i) {
        if (!same_type(*a.elements[i], *b.elements[i])) return false;
      }
      return true;
    }
    default:
      return true;
  }
}

std::string dim_text(const Dim& d) {
  if (d.is_const()) return std::to_string(d.value);
  return scalar_text(d.expr, false);
}

std::string shape_text(const Shape& s) { return dims_text(s); }

std::string type_text(const Type& t, bool annotation) {
  const auto dtype = [&](DType d) {
    return annotation ? std::string("pl.") + dtype_info(d).member : std::string(dtype_text(d));
  };
  const std::string pl = annotation ? "pl." : "";
  switch (t.kind) {
    case TypeKind::kNone:
      return "None";
    case TypeKind::kScalar:
      return pl + "Scalar[" + dtype(t.dtype) + "]";
    case TypeKind::kTensor:
    case TypeKind::kTile:
      return array_text(t, annotation);
    case TypeKind::kArray:
      return pl + "Array[" + (t.shape.empty() ? "?" : dim_text(t.shape[0])) + ", " + dtype(t.dtype) + "]";
    case TypeKind::kTuple: {
      std::string out = annotation ? "tuple[" : "Tuple[";
      for (size_t i = 0; i < t.elements.size(); ++i) {
        out += (i ? ", " : "") + type_text(*t.elements[i], annotation);
      }
      return out + "]";
    }
    case TypeKind::kPtr:
      return pl + "Ptr";
    case TypeKind::kCommCtx:
      return annotation ? "pld.CommCtx" : "CommCtx";
    case TypeKind::kPrefetchContext:
      return pl + "PrefetchAsyncContext";
    case TypeKind::kAsyncEvent:
      return pl + "AsyncEvent";
    case TypeKind::kAsyncSession:
      return pl + "AsyncSession";
    case TypeKind::kString:
      return "str";
  }
  return "?";
}

}  // namespace pypto::ir
