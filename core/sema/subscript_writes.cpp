// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Subscript writes (01 L-90).
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

void FunctionBuilder::exec_subscript_write(const syn::Expr& target, Value value, const Span& span,
                                           const syn::Expr* source) {
  const auto& base = *target.items[0];
  if (base.kind != ExprKind::kName) {
    reject(ErrorClass::kParserSyntaxError, target.span,
           "Subscript-write target must be a variable name, got '" + source_text(base) + "'",
           "bind the part to a name first, or write both indices in one subscript");
  }
  if (fn->strict_ssa) {
    reject(ErrorClass::kUnsupportedFeatureError, span,
           "Subscript writes are not available under strict_ssa=True", "use pl.assemble and a new name");
  }
  const std::string& name = base.text;
  const Value dst = eval(base);
  const ir::Type* t = dst.type();
  if (!t || !(t->is_array_like() || t->kind == ir::TypeKind::kArray)) {
    reject(ErrorClass::kParserTypeError, target.span,
           "Subscript-write target '" + name + "' must be a Tensor, Tile or Array, got " +
               (t ? ir::type_text(*t) : std::string("a compile-time value")));
  }
  const auto& index = *target.items[1];
  if (t->kind == ir::TypeKind::kArray) {
    const BindingPtr b = find_binding(name);
    if (kernel_region() && base_place_ != ir::kPlaceKernel && b && b->regions.empty()) {
      reject(ErrorClass::kParserTypeError, span,
             "Array '" + name + "' is read-only inside the region: it is made outside of it",
             "create the array inside the region");
    }
    const ExprPtr i = index_scalar(index, *t, 0, false);
    const Value updated = infer(ir::op_row(ir::OpId::k_array_update), ir::kFormArray,
                                {dst.expr, i, to_expr(value, span)}, span, "pl.array.update_element");
    // By reference: the caller's own variable is changed (01 L-59).
    assign(name, updated, span);
    return;
  }
  if (in_host() && !enclosing(ir::ScopeKind::kHierarchy)) {
    reject(ErrorClass::kParserTypeError, span,
           (t->is_window() ? "X-18: window '" : "Tensor '") + name + "' cannot be written on the host",
           "move data through a kernel");
  }
  const Subscript s = read_subscript(*t, index, target.span, true);
  if (s.all_scalar) {
    std::string indices;
    for (const auto* i : entries_of(index)) indices += (indices.empty() ? "" : ", ") + source_text(*i);
    reject(ErrorClass::kUnsupportedFeatureError, target.span,
           "Element-write '" + source_text(target) + " = ...' is not supported; Use slice indices",
           "pl.write(" + name + ", [" + indices + "], value)");
  }
  const ir::Type* v = value.type();
  if (!v || !v->is_array_like()) {
    reject(ErrorClass::kParserTypeError, span,
           "Subscript-write source must be a Tensor or Tile, got " +
               (v ? ir::type_text(*v) : std::string("a compile-time value")),
           "use pl.full or pl.write for scalars");
  }
  if (t->is_tile() && !v->is_tile()) {
    reject(ErrorClass::kParserTypeError, span,
           "Subscript-write source is " + ir::type_text(*v) + " but the target '" + name + "' is a Tile",
           "pl.load the tensor first");
  }
  if (!t->is_tile() && v->is_tile() && place() != ir::kPlaceKernel) {
    reject(ErrorClass::kParserTypeError, span, "A Tile can be written into a Tensor only inside a kernel");
  }
  // Window extents against the source, aligned from the right; extents of 1 may be missing on either side.
  std::vector<ir::Dim> window;
  for (size_t i = 0; i < s.extent.size(); ++i) {
    if (std::find(s.dropped.begin(), s.dropped.end(), static_cast<int>(i)) != s.dropped.end()) continue;
    const ExprPtr& x = s.extent[i];
    const auto n = x ? ir::const_int(x) : std::nullopt;
    window.push_back(n ? ir::Dim(*n) : x ? ir::Dim(x) : ir::Dim());
  }
  std::vector<ir::Dim> have(v->shape.begin(), v->shape.end());
  std::vector<ir::Dim> valid(v->valid.begin(), v->valid.end());
  if (valid.empty()) valid = have;
  const auto is_one = [](const ir::Dim& d) { return d.is_const() && d.value == 1; };
  const auto strip = [&](std::vector<ir::Dim>& dims, std::vector<ir::Dim>* twin, size_t wanted) {
    for (size_t i = 0; i < dims.size() && dims.size() > wanted;) {
      if (is_one(dims[i])) {
        dims.erase(dims.begin() + static_cast<long>(i));
        if (twin) twin->erase(twin->begin() + static_cast<long>(i));
      } else {
        ++i;
      }
    }
  };
  const size_t window_rank = window.size();
  strip(have, &valid, window.size());
  strip(window, nullptr, have.size());
  if (have.size() != window.size()) {
    reject(ErrorClass::kParserTypeError, span,
           "Subscript-write shape mismatch: the window has rank " + std::to_string(window_rank) +
               " but the source is " + ir::type_text(*v),
           "reshape the source, or use as many slices as it has dimensions");
  }
  for (size_t i = 0; i < have.size(); ++i) {
    const bool fits = !window[i].is_const() || !have[i].is_const() || window[i].value == have[i].value ||
                      !valid[i].is_const() || valid[i].value == window[i].value;
    if (!fits) {
      reject(ErrorClass::kParserTypeError, source ? source->span : span,
             "Subscript-write shape mismatch on source axis " + std::to_string(i) + ": window expects " +
                 std::to_string(window[i].value) + " elements, source has " + std::to_string(have[i].value),
             "make both extents equal");
    }
  }
  // The source takes as many dimensions as the target accepts.
  ExprPtr src = value.expr;
  if (!v->is_tile() && static_cast<int>(v->rank()) != t->rank()) {
    // Rank of the target with 1s where an index dropped the dimension; same cells.
    std::vector<ExprPtr> shape;
    size_t k = 0;
    bool exact = v->static_shape();
    std::vector<int64_t> dims;
    for (const auto& d : v->shape) {
      if (!is_one(d)) dims.push_back(d.value);
    }
    std::vector<int64_t> full(static_cast<size_t>(t->rank()), 1);
    for (int i = t->rank() - 1, j = static_cast<int>(dims.size()) - 1; i >= 0 && j >= 0; --i) {
      if (std::find(s.dropped.begin(), s.dropped.end(), i) != s.dropped.end()) continue;
      const auto n =
          s.extent[static_cast<size_t>(i)] ? ir::const_int(s.extent[static_cast<size_t>(i)]) : std::nullopt;
      if (n && *n == 1) continue;
      full[static_cast<size_t>(i)] = dims[static_cast<size_t>(j)];
      --j;
      k += 1;
    }
    exact = exact && k == dims.size();
    const bool trailing = [&] {
      for (const int d : s.dropped) {
        if (d >= t->rank() - v->rank()) return false;
      }
      return v->rank() < t->rank();
    }();
    if (exact && !trailing) {
      for (const int64_t d : full) shape.push_back(ir::int_const(d, DType::kIndex, span));
      src = infer(ir::op_row(ir::OpId::k_reshape), ir::kFormFlat, {src, ir::tuple_expr(shape, span)}, span,
                  "pl.reshape")
                .expr;
    }
  } else if (v->is_tile() && v->rank() != t->rank() && v->static_shape()) {
    // Only a dropped dimension between the slices needs another shape; leading ones are the operation's own
    // rule.
    const bool inner =
        std::any_of(s.dropped.begin(), s.dropped.end(), [&](int d) { return d >= t->rank() - v->rank(); });
    if (inner || v->rank() > t->rank()) {
      std::vector<int64_t> full(static_cast<size_t>(t->rank()), 1);
      std::vector<int64_t> dims;
      for (const auto& d : v->shape) {
        if (!is_one(d)) dims.push_back(d.value);
      }
      int j = static_cast<int>(dims.size()) - 1;
      for (int i = t->rank() - 1; i >= 0 && j >= 0; --i) {
        if (std::find(s.dropped.begin(), s.dropped.end(), i) != s.dropped.end()) continue;
        full[static_cast<size_t>(i)] = dims[static_cast<size_t>(j--)];
      }
      if (j < 0 && t->rank() >= 2) {
        std::vector<ExprPtr> shape;
        for (const int64_t d : full) shape.push_back(ir::int_const(d, DType::kIndex, span));
        src = infer(ir::op_row(ir::OpId::k_reshape), ir::kFormFlat, {src, ir::tuple_expr(shape, span)}, span,
                    "pl.reshape")
                  .expr;
      }
    }
  }
  const Value out = infer(ir::op_row(ir::OpId::k_assemble), ir::kFormFlat,
                          {dst.expr, src, ir::tuple_expr(s.offset, span)}, span, "pl.assemble");
  if (t->is_tensor()) {
    // In place: the name keeps its storage; nothing is rebound.
    if (const BindingPtr b = find_binding(name); b && b->kind == Binding::Kind::kVar) {
      auto n = std::make_shared<Binding>(*b);
      n->type = out.expr->type->storage ? out.expr->type : with_storage(out.expr->type, b->type->storage);
      if (n->type->rank() != b->type->rank()) n->type = b->type;
      if (b->type->valid.empty() && n->type->valid.empty()) {
        emit_eval(out.expr, span);
      } else {
        emit_assign(b->var, out.expr, span);
        bind(name, n);
      }
      return;
    }
    emit_eval(out.expr, span);
    return;
  }
  assign(name, out, span);
}

}  // namespace pypto::sema
