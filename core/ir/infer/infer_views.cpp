// SPDX-License-Identifier: Apache-2.0
// Views and addresses (02 section 8).
#include <algorithm>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

constexpr OperandLevel kTensorLevel = OperandLevel::kTensor;

/// Axes of `drop_dims`: constant, distinct, of extent 1 (02 O-802).
std::vector<int64_t> dropped_axes(Typer& t, int i, const Shape& shape, const Shape& valid) {
  std::vector<int64_t> axes;
  if (!t.has(i)) return axes;
  const auto rank = static_cast<int64_t>(shape.size());
  for (const auto& e : t.entries(i)) {
    const auto c = const_int(simplify(e));
    if (!c) t.bad(i, "a list of constant axis numbers");
    const int64_t axis = *c < 0 ? *c + rank : *c;
    if (axis < 0 || axis >= rank) {
      t.value_error("axis " + std::to_string(*c) + " of 'drop_dims' is out of range for rank " +
                    std::to_string(rank));
    }
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      t.value_error("axis " + std::to_string(axis) + " occurs twice in 'drop_dims'");
    }
    const Dim& d = shape[static_cast<size_t>(axis)];
    const bool narrowed = !valid.empty() && provably_differ(valid[static_cast<size_t>(axis)], Dim(1));
    if (!d.is_const() || d.value != 1 || narrowed) {
      t.value_error("axis " + std::to_string(axis) +
                        " of 'drop_dims' must have extent 1 and be fully valid, got " + dim_text(d),
                    "only unit axes can be dropped");
    }
    axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end());
  t.drop(i);
  if (!axes.empty()) t.attrs.set(AttrKey::k_drop_dims, axes);
  return axes;
}

Shape without(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape out;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(k)) == axes.end()) out.push_back(shape[k]);
  }
  return out;
}

bool is_fp4(DType d) { return d == DType::kFp4; }

}  // namespace

ExprPtr type_slice(Typer& t) {
  t.dispatch({0});
  const Type x = t.type(0);
  const bool tile = t.tile_level();
  if (tile && x.rank() > 2) {
    t.value_error("not supported on >2D tiles: '" + t.param(0) + "' has shape " + shape_text(x.shape),
                  "reshape the tile to two dimensions first");
  }
  Window w;
  w.extents = tile ? t.static_extents(1, x.rank()) : t.extents(1, x.rank(), 1);
  w.offsets = t.entries(2, x.rank());
  if (t.has(3)) w.requested = t.entries(3, x.rank());
  w.exact = tile;
  w.clamp = t.bool_attr(6, AttrKey::k_clamp);
  t.require_packed_offset(x.dtype, w.offsets);
  Shape valid = t.read_window(x, w, t.param(0));
  const auto axes = dropped_axes(t, 4, w.extents, valid);
  if (!tile && !axes.empty() && axes.size() == w.extents.size()) {
    t.value_error("'drop_dims' drops every axis", "use pl.read for one element");
  }
  const bool has_pad = t.has(5);
  const PadValue pad = has_pad ? t.pad_attr(5, PadValue::kNull, true) : x.pad;
  if (has_pad && pad != PadValue::kNull && valid.empty()) {
    t.warn("pad_value is given but nothing is narrowed: the window is fully valid",
           "give valid_shape, or leave pad_value out", "W-UNUSED-PAD");
  }
  Shape shape = without(w.extents, axes);
  if (!valid.empty()) valid = without(valid, axes);
  while (tile && !axes.empty() && shape.size() < 2) {
    shape.insert(shape.begin(), Dim(1));
    if (!valid.empty()) valid.insert(valid.begin(), Dim(1));
  }
  const ExprPtr e = t.view(0, std::move(shape), std::move(valid));
  if (e->type->pad == pad) return e;
  auto type = std::make_shared<Type>(*e->type);
  type->pad = pad;
  return t.result(type);
}

// ---- reshape

namespace {

struct UnitFree {
  Shape shape, valid;
  bool empty = false;
};

/// Shape and valid extents without the unit axes.
UnitFree unit_free(const Shape& shape, const Shape& valid) {
  UnitFree out;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (valid[k].is_const() && valid[k].value == 0) out.empty = true;
    if (shape[k].is_const() && shape[k].value == 1) continue;
    out.shape.push_back(shape[k]);
    out.valid.push_back(valid[k]);
  }
  return out;
}

/// Number of cells when the valid region is a row-major prefix, else -1.
int64_t prefix_cells(const Shape& shape, const Shape& valid) {
  size_t k = 0;
  while (k < shape.size() && valid[k].value == 1) ++k;
  if (k == shape.size()) return 1;
  int64_t cells = valid[k].value;
  for (++k; k < shape.size(); ++k) {
    if (valid[k].value != shape[k].value) return -1;
    cells *= shape[k].value;
  }
  return cells;
}

/// The rectangle at the origin of `shape` that is the row-major prefix of `cells` cells; empty when there is
/// none.
Shape prefix_rectangle(const Shape& shape, int64_t cells) {
  Shape valid(shape.size(), Dim(1));
  int64_t inner = 1;
  for (size_t k = shape.size(); k-- > 0;) {
    if (cells % inner != 0) return {};
    const int64_t here = cells / inner;
    if (here <= shape[k].value) {
      valid[k] = Dim(here);
      return valid;
    }
    valid[k] = shape[k];
    inner *= shape[k].value;
  }
  return {};
}

bool all_const(const Shape& s) {
  return std::all_of(s.begin(), s.end(), [](const Dim& d) { return d.is_const(); });
}

/// Valid extents after a reshape (02 O-806).
Shape reshaped_valid(const Typer& t, const Type& x, const Shape& shape) {
  if (fully_valid(x)) return {};
  const UnitFree from = unit_free(x.shape, x.valid);
  if (from.empty) return Shape(shape.size(), Dim(0));
  const UnitFree to = unit_free(shape, shape);
  const bool units_only = from.shape.size() == to.shape.size() &&
                          std::equal(from.shape.begin(), from.shape.end(), to.shape.begin(),
                                     [](const Dim& a, const Dim& b) { return provably_equal(a, b); });
  if (units_only) {
    Shape valid;
    size_t next = 0;
    for (const Dim& d : shape) valid.push_back(d.is_const() && d.value == 1 ? Dim(1) : from.valid[next++]);
    return valid;
  }
  if (!all_const(x.shape) || !all_const(x.valid) || !all_const(shape)) return Shape(shape.size(), Dim());
  const int64_t cells = prefix_cells(x.shape, x.valid);
  Shape valid = cells < 0 ? Shape{} : prefix_rectangle(shape, cells);
  if (valid.empty()) {
    t.value_error(
        "shape " + shape_text(x.shape) + " with valid shape " + shape_text(x.valid) + " reshaped to " +
            shape_text(shape) +
            ": the valid cells do not form a rectangle at the origin of the new shape (valid shape " +
            shape_text(x.valid) + ")",
        "fill the padding first: pl.fillpad");
  }
  return valid;
}

Dim element_count(const Shape& shape) {
  Dim n(1);
  for (const Dim& d : shape) n = dim_product(n, d);
  return n;
}

void check_count(const Typer& t, const Shape& from, const Shape& to) {
  const Dim a = element_count(from);
  const Dim b = element_count(to);
  if (!provably_differ(a, b)) return;
  t.value_error("shape " + shape_text(from) + " has " + dim_text(a) + " elements, the new shape " +
                    shape_text(to) + " has " + dim_text(b),
                "a reshape keeps the number of elements");
}

}  // namespace

ExprPtr type_reshape(Typer& t) {
  t.dispatch({0});
  const Type x = t.type(0);
  Shape shape = t.tile_level() ? t.static_extents(1) : t.extents(1, -1, 1);
  check_count(t, x.shape, shape);
  Shape valid = reshaped_valid(t, x, shape);
  return t.view(0, std::move(shape), std::move(valid));
}

// ---- transpose

ExprPtr type_transpose(Typer& t) {
  t.dispatch({0});
  const Type x = t.type(0);
  const int rank = x.rank();
  if (rank < 2)
    t.value_error("argument '" + t.param(0) + "' must have rank 2 or more, got " + shape_text(x.shape));
  int64_t axes[2];
  for (const int k : {0, 1}) {
    const auto c = t.constant(1 + k);
    if (!c) t.bad(1 + k, "a constant axis number");
    axes[k] = *c < 0 ? *c + rank : *c;
    if (axes[k] < 0 || axes[k] >= rank) {
      t.value_error("axis " + std::to_string(*c) + " is out of range [" + std::to_string(-rank) + ", " +
                    std::to_string(rank) + ")");
    }
    t.drop(1 + k);
  }
  if (axes[0] == axes[1])
    t.value_error("'axis1' and 'axis2' are both axis " + std::to_string(axes[0]) + "; they must differ");
  t.attrs.set(AttrKey::k_axis1, axes[0]);
  t.attrs.set(AttrKey::k_axis2, axes[1]);
  if (t.tile_level() && rank > 2 && std::min(axes[0], axes[1]) != rank - 2) {
    t.value_error("a Tile of rank " + std::to_string(rank) + " transposes its last two axes only, got axes " +
                      std::to_string(axes[0]) + " and " + std::to_string(axes[1]),
                  "reshape the tile, or transpose the Tensor before loading");
  }
  if (t.has(3)) {
    const Type& tmp = t.tile(3);
    t.require_same_dtype(0, 3);
    if (tmp.rank() != rank) t.value_error("argument 'tmp_tile' must have rank " + std::to_string(rank));
  }
  if (!t.in_kernel() && is_fp4(x.dtype) && std::max(axes[0], axes[1]) == rank - 1) {
    t.value_error("the last axis of a packed FP4 tensor cannot be moved",
                  "transpose inside a kernel, after a cast");
  }
  Shape shape = x.shape;
  Shape valid = valid_of(x);
  std::swap(shape[static_cast<size_t>(axes[0])], shape[static_cast<size_t>(axes[1])]);
  std::swap(valid[static_cast<size_t>(axes[0])], valid[static_cast<size_t>(axes[1])]);
  // In the control plane only the strides change (02 O-808).
  if (!t.in_kernel()) return t.view(0, std::move(shape), std::move(valid));
  return t.value(std::move(shape), x.dtype, std::move(valid));
}

ExprPtr type_transpose_view(Typer& t) {
  t.tile_only({0});
  const Type x = t.type(0);
  if (x.rank() < 2) t.value_error("argument 'tile' must have rank 2 or more, got " + shape_text(x.shape));
  Shape shape = x.shape;
  Shape valid = valid_of(x);
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  std::swap(valid[shape.size() - 1], valid[shape.size() - 2]);
  return t.view(0, std::move(shape), std::move(valid));
}

// ---- reinterpret_view

namespace {

void require_bit_view(const Typer& t, DType d, const std::string& what) {
  const bool ok =
      (is_int(d) && dtype_bits(d) >= 8) || d == DType::kFp16 || d == DType::kBf16 || d == DType::kFp32;
  if (ok) return;
  t.type_error(what + " has dtype " + std::string(dtype_text(d)) +
               "; expected an 8/16/32/64-bit integer, FP16, BF16 or FP32");
}

/// `extent` elements of `from` bytes counted in elements of `to` bytes; unknown when not constant.
Dim scaled(const Typer& t, const Dim& extent, int from, int to, const char* what) {
  if (!extent.is_const()) {
    if (from == to) return extent;
    return from > to ? dim_product(extent, Dim(from / to)) : Dim();
  }
  const int64_t bytes = extent.value * from;
  if (bytes % to != 0) {
    t.value_error(std::string(what) + " of the last axis is " + std::to_string(bytes) + " bytes, which " +
                  std::to_string(to) + "-byte elements do not divide");
  }
  return Dim(bytes / to);
}

}  // namespace

ExprPtr type_reinterpret_view(Typer& t) {
  t.dispatch({0});
  const Type x = t.type(0);
  const DType target = t.dtype_attr(1, AttrKey::k_dtype);
  if (target == DType::kNone) t.type_error("missing required argument 'dtype'");
  require_bit_view(t, x.dtype, "argument '" + t.param(0) + "'");
  require_bit_view(t, target, "the target");
  if (!t.tile_level() &&
      (x.layout != TensorLayout::kND || (x.tensor_view && !x.tensor_view->stride.empty()))) {
    t.value_error("a Tensor must be packed ND to be reinterpreted, got " + type_text(x, true));
  }
  const int from = dtype_bytes(x.dtype);
  const int to = dtype_bytes(target);
  Shape shape = x.shape;
  Shape valid = valid_of(x);
  if (t.has(2)) {
    if (!fully_valid(x)) {
      t.value_error("with 'shape' the source must be fully valid, its valid shape is " + shape_text(valid) +
                    " of " + shape_text(x.shape));
    }
    shape = t.static_extents(2);
    const int64_t cells = x.static_elements();
    int64_t wanted = 1;
    for (const Dim& d : shape) wanted *= d.value;
    if (cells >= 0 && cells * from != wanted * to) {
      t.value_error("shape " + shape_text(shape) + " of " + std::string(dtype_text(target)) + " has " +
                    std::to_string(wanted * to) + " bytes, the source has " + std::to_string(cells * from));
    }
    valid = shape;
  } else if (!shape.empty()) {
    shape.back() = scaled(t, shape.back(), from, to, "the extent");
    valid.back() = scaled(t, valid.back(), from, to, "the valid extent");
  }
  const ExprPtr e = t.view(0, std::move(shape), std::move(valid));
  auto type = std::make_shared<Type>(*e->type);
  type->dtype = target;
  type->acc_dtype = DType::kNone;
  if (type->pad != PadValue::kZero) type->pad = PadValue::kNull;
  return t.result(type);
}

ExprPtr type_set_validshape(Typer& t) {
  t.dispatch({0});
  const Type x = t.type(0);
  t.require_rank(0, 2);
  Shape valid;
  for (const int k : {0, 1}) {
    t.index(1 + k);
    const auto c = const_int(simplify(t.arg(1 + k)));
    const Dim& limit = x.shape[static_cast<size_t>(k)];
    if (c && (*c < 0 || (limit.is_const() && *c > limit.value))) {
      t.value_error("argument '" + t.param(1 + k) + "' is " + std::to_string(*c) + "; it must lie in [0, " +
                        dim_text(limit) + "]",
                    "a valid extent is at most the physical extent");
    }
    valid.push_back(c ? Dim(*c) : provably_equal(dim_of(t.arg(1 + k)), limit) ? limit : Dim());
  }
  return t.view(0, x.shape, std::move(valid));
}

ExprPtr type_view(Typer& t) {
  t.tensor_only({0});
  if (t.in_kernel()) static_cast<void>(t.global(0));
  const Type x = t.type(0);
  TensorLayout layout = x.layout;
  const bool relayout = t.has(3);
  if (relayout) {
    layout = static_cast<TensorLayout>(t.enum_attr(3, AttrKey::k_layout, "TensorLayout", 0, 5));
    const bool ok = (layout == TensorLayout::kND || layout == TensorLayout::kDN) &&
                    (x.layout == TensorLayout::kND || x.layout == TensorLayout::kDN) && x.rank() >= 2;
    if (!ok) t.value_error("argument 'layout' changes between ND and DN of a rank-2 or higher Tensor only");
  }
  if (!t.in_kernel() && t.has(1) && relayout) {
    t.value_error("in orchestration code either 'shape' or 'layout' is given, not both", "use two views");
  }
  if (!t.in_kernel() && t.has(1) && x.layout != TensorLayout::kND) {
    t.value_error("in orchestration code 'shape' needs an ND Tensor, got " + type_text(x));
  }
  Shape shape = x.shape;
  if (relayout && layout != x.layout) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  Shape valid = valid_of(x);
  if (relayout && layout != x.layout) std::swap(valid[valid.size() - 1], valid[valid.size() - 2]);
  if (t.has(1)) {
    const Shape given = t.extents(1, -1, 1);
    check_count(t, shape, given);
    valid = reshaped_valid(t, x, given);
    shape = given;
  }
  if (t.has(2)) {
    valid.clear();
    const auto requested = t.entries(2, static_cast<int>(shape.size()));
    for (size_t k = 0; k < requested.size(); ++k) {
      const auto c = const_int(simplify(requested[k]));
      if (c && (*c < 0 || (shape[k].is_const() && *c > shape[k].value))) {
        t.value_error("valid extent " + std::to_string(*c) + " on axis " + std::to_string(k) +
                      " must lie in [0, " + dim_text(shape[k]) + "]");
      }
      valid.push_back(c ? Dim(*c) : provably_equal(dim_of(requested[k]), shape[k]) ? shape[k] : Dim());
    }
  }
  const ExprPtr e = t.view(0, std::move(shape), std::move(valid));
  if (e->type->layout == layout) return e;
  auto type = std::make_shared<Type>(*e->type);
  type->layout = layout;
  return t.result(type);
}

ExprPtr type_no_dep(Typer& t) {
  t.level = kTensorLevel;
  if (!t.is_tensor(0)) t.bad(0, "a Tensor");
  return t.in_place(0);
}

}  // namespace pypto::ir::infer
