// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Subscript reads (01 L-88, L-89).
namespace pypto::sema {

using syn::ExprKind;

namespace {

std::vector<const syn::Expr*> entries_of(const syn::Expr& index) {
  std::vector<const syn::Expr*> out;
  if (index.kind == ExprKind::kTuple) {
    for (const auto& i : index.items) out.push_back(i.get());
  } else {
    out.push_back(&index);
  }
  return out;
}

const char* kind_word(const ir::Type& t) { return t.is_tile() ? "tile" : "tensor"; }

ir::ExprPtr dim_expr(const ir::Dim& d, const Span& span) {
  return d.is_const() ? ir::int_const(d.value, DType::kIndex, span) : d.expr;
}

}  // namespace

/// One index or bound: an integer scalar; constants are checked against the extent.
ExprPtr FunctionBuilder::index_scalar(const syn::Expr& e, const ir::Type& t, int dim, bool upper) {
  if (e.kind == ExprKind::kEllipsis || e.kind == ExprKind::kNone || e.kind == ExprKind::kBool) {
    reject(ErrorClass::kUnsupportedFeatureError, e.span,
           "Subscript index '" + source_text(e) + "' is not supported",
           e.kind == ExprKind::kEllipsis ? "name each dimension: ':' is all of it"
           : e.kind == ExprKind::kNone   ? "pl.reshape(x, [...]) adds a dimension of 1"
                                         : "use integer scalars and slices");
  }
  const Value v = eval(e);
  if (v.is_expr() && v.expr->kind == ir::ExprKind::kNone) {
    reject(ErrorClass::kUnsupportedFeatureError, e.span, "Subscript index 'None' is not supported",
           "pl.reshape(x, [...]) adds a dimension of 1");
  }
  const ExprPtr x = to_expr(v, e.span);
  if (!x->type->is_scalar() || !is_int(x->type->dtype)) {
    reject(ErrorClass::kParserTypeError, e.span,
           "Subscript index must be an integer scalar, got " + ir::type_text(*x->type),
           x->type->is_array_like() ? "use pl.gather for indices that are tensors" : "");
  }
  if (const auto c = ir::const_int(x)) {
    const ir::Dim& extent = t.shape[static_cast<size_t>(dim)];
    const std::string where = "dimension " + std::to_string(dim) + " of extent " + ir::dim_text(extent);
    if (*c < 0) {
      reject(ErrorClass::kParserTypeError, e.span,
             std::string("Negative ") + (upper ? "bound " : "index ") + std::to_string(*c) + " in " + where +
                 " is not supported",
             "count from the front");
    }
    if (extent.is_const() && (upper ? *c > extent.value : *c >= extent.value)) {
      reject(ErrorClass::kParserTypeError, e.span,
             std::string(upper ? "Bound " : "Index ") + std::to_string(*c) + " is out of range for " + where);
    }
  }
  return x;
}

FunctionBuilder::Subscript FunctionBuilder::read_subscript(const ir::Type& t, const syn::Expr& index,
                                                           const Span& span, bool write) {
  const auto entries = entries_of(index);
  Subscript out;
  if (static_cast<int>(entries.size()) > t.rank()) {
    reject(ErrorClass::kParserTypeError, span,
           std::string(t.is_tile() ? "Tile" : "Tensor") + " subscript has " + std::to_string(entries.size()) +
               " indices but the " + kind_word(t) + " is " + std::to_string(t.rank()) + "D",
           "remove " + std::to_string(static_cast<int>(entries.size()) - t.rank()) +
               " index(es), or reshape first");
  }
  for (int dim = 0; dim < t.rank(); ++dim) {
    const syn::Expr* e = dim < static_cast<int>(entries.size()) ? entries[static_cast<size_t>(dim)] : nullptr;
    const ir::Dim& extent = t.shape[static_cast<size_t>(dim)];
    if (e && e->kind != ExprKind::kSlice) {
      out.offset.push_back(index_scalar(*e, t, dim, false));
      out.extent.push_back(ir::int_const(1, DType::kIndex, span));
      out.valid.push_back(nullptr);
      out.dropped.push_back(dim);
      continue;
    }
    out.all_scalar = false;
    ++out.slices;
    const syn::Expr* lower = e ? e->items[0].get() : nullptr;
    const syn::Expr* upper = e && e->items.size() > 1 ? e->items[1].get() : nullptr;
    const syn::Expr* step = e && e->items.size() > 2 ? e->items[2].get() : nullptr;
    if (step && step->kind != ExprKind::kNone) {
      reject(ErrorClass::kUnsupportedFeatureError, e->span, "Slice step is not supported",
             "take a contiguous slice");
    }
    if (lower && lower->kind == ExprKind::kNone) lower = nullptr;
    if (upper && upper->kind == ExprKind::kNone) upper = nullptr;
    const ExprPtr lo =
        lower ? index_scalar(*lower, t, dim, true) : ir::int_const(0, DType::kIndex, span, true);
    const auto lo_const = ir::const_int(lo);
    if (t.is_tile() && !lo_const && !write) {
      reject(ErrorClass::kParserTypeError, lower->span,
             "Dynamic lower bounds are not supported in tile subscript", "use pl.slice(tile, shape, offset)");
    }
    ExprPtr hi;
    if (upper) {
      hi = index_scalar(*upper, t, dim, true);
    } else {
      hi = dim_expr(extent, span);
    }
    const auto hi_const = ir::const_int(hi);
    ExprPtr size;
    if (!hi) {
      size = nullptr;  // the whole rest of an extent that only the value knows
    } else if (lo_const && *lo_const == 0) {
      size = hi;
    } else {
      size = ir::simplify(ir::infer_scalar(ir::OpId::k_scalar_sub, hi, lo, span));
    }
    if (const auto n = ir::const_int(size); n && *n <= 0) {
      const std::string bounds = "dimension " + std::to_string(dim) + ": bounds " +
                                 (lo_const ? std::to_string(*lo_const) : source_text(*lower)) + ":" +
                                 (hi_const ? std::to_string(*hi_const)
                                  : upper  ? source_text(*upper)
                                           : "") +
                                 " of extent " + ir::dim_text(extent);
      reject(ErrorClass::kParserTypeError, e ? e->span : span,
             t.is_tile() ? "Tile subscript must produce a positive static extent in " + bounds
                         : "Empty slice in " + bounds);
    }
    out.offset.push_back(lo);
    if (size && ir::const_int(size)) size = ir::int_const(*ir::const_int(size), DType::kIndex, span);
    if (t.is_tile() && size && !ir::const_int(size)) {
      if (!extent.is_const()) fail_internal(__FILE__, __LINE__, "tile with a dynamic extent");
      out.valid.push_back(size);
      out.extent.push_back(ir::int_const(extent.value - (lo_const ? *lo_const : 0), DType::kIndex, span));
      out.narrowed = true;
    } else {
      out.valid.push_back(nullptr);
      out.extent.push_back(size);
    }
  }
  if (out.narrowed) {
    for (size_t i = 0; i < out.valid.size(); ++i) {
      if (!out.valid[i]) out.valid[i] = out.extent[i];
    }
  } else {
    out.valid.clear();
  }
  return out;
}

Value FunctionBuilder::eval_subscript(const syn::Expr& e) {
  const auto& base_syntax = *e.items[0];
  const auto& index = *e.items[1];
  if (is_static(e)) return fold(e);
  Value base = eval(base_syntax);
  if (base.is_host() && base.host.kind == HostKind::kMemRef) {
    reject(ErrorClass::kParserTypeError, e.span, "An allocation slot is only valid in a tile annotation");
  }
  if (base.is_expr() &&
      (base.expr->type->kind == ir::TypeKind::kTuple || base.expr->kind == ir::ExprKind::kCall)) {
    base = spill(base, "_r", e.span);
  }
  if (base.is_tuple()) {
    if (index.kind == ExprKind::kSlice) {
      reject(ErrorClass::kParserTypeError, e.span, "A tuple of run-time values cannot be sliced",
             "index its elements one by one");
    }
    const Value i = eval(index);
    const auto n = try_constant_int(i);
    if (!n) {
      reject(ErrorClass::kParserTypeError, index.span,
             "Tuple index must be a compile-time integer, got " + source_text(index));
    }
    const auto size = static_cast<int64_t>(base.items.size());
    const int64_t at = *n < 0 ? *n + size : *n;
    if (at < 0 || at >= size) {
      reject(ErrorClass::kParserTypeError, index.span,
             "Tuple index " + std::to_string(*n) + " is out of range for a tuple of " + std::to_string(size));
    }
    return base.items[static_cast<size_t>(at)];
  }
  const ir::Type* t = base.type();
  if (!t || !(t->is_array_like() || t->kind == ir::TypeKind::kArray)) {
    std::string got = t ? ir::type_text(*t) : base.is_host() ? base.host.text : "nothing";
    reject(ErrorClass::kParserTypeError, e.span,
           "Subscript requires Tuple, Tensor, Tile, or Array type, got " + got);
  }
  if (t->kind == ir::TypeKind::kArray) {
    if (index.kind == ExprKind::kSlice || index.kind == ExprKind::kTuple) {
      reject(ErrorClass::kParserTypeError, e.span,
             "Array subscript must be one integer scalar, got " + source_text(index));
    }
    const ExprPtr i = index_scalar(index, *t, 0, false);
    return infer(ir::op_row(ir::OpId::k_array_get), ir::kFormArray, {base.expr, i}, e.span,
                 "pl.array.get_element");
  }
  if (in_host() && t->is_window() && !enclosing(ir::ScopeKind::kHierarchy)) {
    reject(ErrorClass::kParserTypeError, e.span,
           "X-18: window '" + source_text(base_syntax) + "' cannot be read on the host",
           "move data through a kernel");
  }
  const Subscript s = read_subscript(*t, index, e.span, false);
  if (s.all_scalar) {
    if (place() == ir::kPlaceHost) {
      reject(ErrorClass::kParserTypeError, e.span,
             "Element '" + source_text(e) + "' of a host tensor cannot be read in a HOST orchestrator",
             "pass the tensor to a device function and read it there");
    }
    return infer(ir::op_row(ir::OpId::k_read), ir::kFormFlat, {base.expr, ir::tuple_expr(s.offset, e.span)},
                 e.span, "pl.read");
  }
  std::vector<ExprPtr> extents = s.extent;
  ExprPtr array = base.expr;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i]) continue;
    if (array->kind != ir::ExprKind::kVar) array = spill(base, "_v", e.span).expr;
    const ExprPtr whole = extent_of(array, static_cast<int>(i), e.span);
    const auto lo = ir::const_int(s.offset[i]);
    extents[i] =
        lo && *lo == 0 ? whole : ir::infer_scalar(ir::OpId::k_scalar_sub, whole, s.offset[i], e.span);
  }
  std::vector<ExprPtr> drop;
  for (const int d : s.dropped) drop.push_back(ir::int_const(d, DType::kIndex, e.span));
  if (t->is_tile() && t->rank() - static_cast<int>(drop.size()) < 2) {
    program_.warn(e.span, "W-TILE-SUBSCRIPT",
                  "Tile subscript '" + source_text(e) + "' is promoted to 2-D with leading 1s",
                  "write slices such as i:i + 1 to keep the dimension");
  }
  return infer(ir::op_row(ir::OpId::k_slice), ir::kFormFlat,
               {array, ir::tuple_expr(extents, e.span), ir::tuple_expr(s.offset, e.span),
                s.valid.empty() ? nullptr : ir::tuple_expr(s.valid, e.span),
                drop.empty() ? nullptr : ir::tuple_expr(drop, e.span)},
               e.span, "pl.slice");
}

}  // namespace pypto::sema
