// SPDX-License-Identifier: Apache-2.0
// Element access (02 section 6) and data movement (section 7).
#include <algorithm>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

/// Index list of read and write: one integer per axis, constants inside the extents (02 O-601).
void element_index(Typer& t, int i) {
  const Type& x = t.type(0);
  if (x.is_tile() && x.rank() > 2) {
    t.value_error("not supported on >2D tiles: '" + t.param(0) + "' has shape " + shape_text(x.shape),
                  "reshape the tile to two dimensions first");
  }
  if (!t.is_list(i)) {
    if (!t.is_scalar(i)) t.bad(i, "an integer scalar or a list with one index per axis");
    if (x.rank() != 1) {
      t.value_error("a single index addresses rank-1 values only, '" + t.param(0) + "' has rank " +
                        std::to_string(x.rank()),
                    "give one index per axis: [i0, i1, ...]");
    }
    t.args[static_cast<size_t>(i)] = tuple_expr({t.arg(i)}, t.arg(i)->span);
  }
  const auto entries = t.entries(i, x.rank());
  for (size_t k = 0; k < entries.size(); ++k) {
    const auto c = const_int(simplify(entries[k]));
    if (!c) continue;
    if (*c < 0 || (x.shape[k].is_const() && *c >= x.shape[k].value)) {
      t.value_error("index " + std::to_string(*c) + " on axis " + std::to_string(k) + " of '" + t.param(0) +
                    "' is out of range [0, " + dim_text(x.shape[k]) + ")");
    }
  }
}

void array_level(Typer& t) { t.dispatch({0}); }

/// dtypes a store or assemble converts between (02 O-703). `product`: the source is a matrix product.
void check_store_dtype(const Typer& t, const Type& source, const Type& target, bool accumulator) {
  const DType a = source.dtype;
  const DType b = target.dtype;
  if (same_dtype(a, b)) {
    if (accumulator && source.is_tile() && a != DType::kFp32 && a != DType::kInt32 && a != DType::kFp16 &&
        a != DType::kBf16) {
      t.type_error("a cube accumulator of dtype " + std::string(dtype_text(a)) + " cannot be stored");
    }
    return;
  }
  if (accumulator) {
    if (a == DType::kFp32 && (b == DType::kFp16 || b == DType::kBf16)) return;
    fail(ErrorClass::kError,
         "AccToGmStoreValid: " + t.name() +
             ": the cube accumulator cannot be stored directly: " + std::string(dtype_text(a)) + " to " +
             std::string(dtype_text(b)) + " has no path on the '" + t.arch_text() + "' platform",
         {}, "pl.cast it first");
  }
  const bool same_bits = is_int(a) && is_int(b) && dtype_bits(a) == dtype_bits(b);
  if (source.is_tile() && same_bits) return;
  t.type_error("source has dtype " + std::string(dtype_text(a)) + ", target has dtype " +
                   std::string(dtype_text(b)) + "; they must be equal",
               "convert the source first: pl.cast(source, pl." + std::string(dtype_info(b).member) + ")");
}

bool is_product(const Type& t) {
  return (t.is_tile() && t.space == MemorySpace::kAcc) || (t.is_tensor() && t.storage && t.storage->product);
}

/// Extents of a source as seen by a target of `rank`: surplus leading extents of 1 fall away (02 O-706).
Shape fit_rank(const Typer& t, Shape extents, size_t rank, const Type& source) {
  while (extents.size() > rank) {
    if (!source.shape[source.shape.size() - extents.size()].is_const() ||
        source.shape[source.shape.size() - extents.size()].value != 1) {
      t.value_error("a source of shape " + shape_text(source.shape) + " does not fit a target of rank " +
                        std::to_string(rank) + ": surplus leading dimensions must be 1",
                    "reshape the source first");
    }
    extents.erase(extents.begin());
  }
  return extents;
}

ExprPtr target_result(Typer& t, int i, Shape valid) {
  const Type& target = t.type(i);
  if (target.storage) target.storage->written = true;
  valid = normal_valid(target.shape, std::move(valid));
  if (valid.empty() && target.valid.empty()) return t.in_place(i);
  auto type = std::make_shared<Type>(target);
  type->valid = std::move(valid);
  return t.result(type);
}

}  // namespace

ExprPtr type_read(Typer& t) {
  array_level(t);
  element_index(t, 1);
  return t.scalar(t.type(0).dtype);
}

ExprPtr type_write(Typer& t) {
  array_level(t);
  element_index(t, 1);
  const DType element = t.type(0).dtype;
  if (!t.is_scalar(2)) t.bad(2, "a scalar of dtype " + std::string(dtype_text(element)));
  const ExprPtr value = t.arg(2);
  const bool literal = value->untyped && !(value->kind == ExprKind::kFloat && !is_float(element));
  if (literal || (value->kind == ExprKind::kInt && value->type->dtype == element)) {
    t.args[2] = convert_scalar(value, element, t.name() + ": argument 'value'");
  } else if (!same_dtype(value->type->dtype, element)) {
    t.type_error("argument 'value' has dtype " + std::string(dtype_text(value->type->dtype)) +
                     "; the element dtype is " + std::string(dtype_text(element)),
                 "pl.cast(value, pl." + std::string(dtype_info(element).member) + ")");
  }
  if (t.type(0).storage) t.type(0).storage->written = true;
  return t.in_place(0);
}

ExprPtr type_dim(Typer& t) {
  t.tensor_only({0});
  const Type& x = t.type(0);
  const auto given = t.constant(1);
  if (!given) t.bad(1, "a compile-time axis number");
  const int64_t axis = *given < 0 ? *given + x.rank() : *given;
  if (axis < 0 || axis >= x.rank()) {
    t.value_error("axis " + std::to_string(*given) + " is out of range for rank " + std::to_string(x.rank()));
  }
  const Dim& d = x.shape[static_cast<size_t>(axis)];
  if (d.is_const()) return int_const(d.value, DType::kIndex, t.span, true);
  t.drop(1);
  t.attrs.set(AttrKey::k_axis, axis);
  return t.scalar(DType::kIndex);
}

// ---- load, store

ExprPtr type_load(Typer& t) {
  t.level = OperandLevel::kTile;
  if (t.is_tile(0)) {
    t.bad(0, "a Tensor in global memory or a DistributedTensor",
          "a Tile is on chip already: use it, or pl.slice of it");
  }
  const Type& x = t.global(0);
  t.require_storable(x.dtype);
  Window w;
  w.offsets = t.entries(1);
  t.require_packed_offset(x.dtype, w.offsets);
  w.extents = t.static_extents(2);
  if (w.offsets.size() != w.extents.size()) {
    t.value_error("arguments 'offsets' and 'shapes' have " + std::to_string(w.offsets.size()) + " and " +
                      std::to_string(w.extents.size()) + " entries; the tensor has rank " +
                      std::to_string(x.rank()),
                  "give one entry per dimension in both");
  }
  if (w.extents.size() > x.shape.size()) {
    t.value_error("argument 'shapes' has " + std::to_string(w.extents.size()) +
                      " entries, but the tensor has rank " + std::to_string(x.rank()),
                  "give one entry per dimension");
  }
  if (t.has(3)) {
    w.requested = t.entries(3);
    if (w.requested.size() != w.extents.size()) {
      t.value_error("argument 'valid_shape' has " + std::to_string(w.requested.size()) +
                    " entries, 'shapes' has " + std::to_string(w.extents.size()));
    }
  }
  auto space = MemorySpace::kUnset;
  if (t.has(4)) {
    space = static_cast<MemorySpace>(t.enum_attr(4, AttrKey::k_target_memory, "MemorySpace", 0, 10));
    if (space != MemorySpace::kVec && space != MemorySpace::kMat) {
      t.value_error(
          std::string("target_memory ") + space_name(space) + " cannot be loaded to; use Vec or Mat",
          "load to pl.MemorySpace.Mat, then pl.move to " + std::string(space_name(space)));
    }
  }
  w.clamp = t.bool_attr(5, AttrKey::k_clamp);
  if (x.layout == TensorLayout::kMxAZZ || x.layout == TensorLayout::kMxBNN) {
    t.require_a5("a block-scale (MX) layout");
    if (x.rank() != 2 || (x.dtype != DType::kFp8E8M0 && x.dtype != DType::kUInt8)) {
      t.type_error("a block-scale (MX) tensor is rank 2 with dtype FP8E8M0 or UINT8, got " + type_text(x));
    }
    if (space != MemorySpace::kMat) {
      t.value_error("a block-scale (MX) tensor needs an explicit target_memory=Mat",
                    "target_memory=pl.MemorySpace.Mat");
    }
    t.attrs.set(AttrKey::k_layout, static_cast<int64_t>(x.layout));  // the byte order to read (02 O-702)
  }
  Shape valid = t.read_window(x, w, t.param(0));
  auto type = std::make_shared<Type>(*tile_type(w.extents, x.dtype, space));
  type->valid = std::move(valid);
  type->pad = x.pad;
  type->storage = std::make_shared<Storage>();
  return t.result(type);
}

ExprPtr type_store(Typer& t) {
  t.level = OperandLevel::kTile;
  if (t.is_tensor(0)) {
    t.bad(0, "a Tile",
          t.type(0).place == TensorPlace::kOnChip
              ? "write a tensor-level value with pl.assemble(target, value, offsets) or target[...] = value"
              : "load it first, or copy with target[...] = source");
  }
  const Type& source = t.tile(0);
  if (source.space == MemorySpace::kMat) {
    t.value_error("a Mat tile cannot be stored: store takes Vec or Acc",
                  "pl.move it to pl.MemorySpace.Vec first");
  }
  const Type& target = t.global(2);
  auto offsets = t.entries(1);
  if (offsets.size() > target.shape.size() || offsets.empty()) {
    t.value_error("argument 'offsets' has " + std::to_string(offsets.size()) +
                      " entries, but the tensor has rank " + std::to_string(target.rank()),
                  "give one entry per dimension");
  }
  const size_t given = offsets.size();
  while (offsets.size() < target.shape.size())
    offsets.insert(offsets.begin(), int_const(0, DType::kIndex, t.span));
  t.args[1] = tuple_expr(offsets, t.args[1]->span);
  t.require_packed_offset(target.dtype, offsets);
  t.atomic_attr(4, target.dtype);
  check_store_dtype(t, source, target, source.space == MemorySpace::kAcc);
  if (t.has(3)) {
    const Shape window = t.extents(3, static_cast<int>(given), 1);
    t.check_write(target, offsets, window, t.param(2));
    return target_result(t, 2, t.written_valid(target, offsets, window));
  }
  const Shape extents = fit_rank(t, valid_of(source), target.shape.size(), source);
  t.check_write(target, offsets, extents, t.param(2));
  return target_result(t, 2, t.written_valid(target, offsets, extents));
}

ExprPtr type_move(Typer& t) {
  t.tile_only({0});
  const Type& x = t.type(0);
  if (!t.has(1)) t.type_error("missing required argument 'target_memory'");
  const auto to = static_cast<MemorySpace>(t.enum_attr(1, AttrKey::k_target_memory, "MemorySpace", 0, 10));
  if (t.has(2)) t.enum_attr(2, AttrKey::k_blayout, "TileLayout", 0, 3);
  if (t.has(3)) t.enum_attr(3, AttrKey::k_slayout, "TileLayout", 0, 3);
  const MemorySpace from = x.space;
  const bool scale = to == MemorySpace::kLeftScale || to == MemorySpace::kRightScale;
  if (scale) t.require_a5(std::string("memory space ") + space_name(to));
  const bool source_ok = from == MemorySpace::kVec || from == MemorySpace::kMat ||
                         from == MemorySpace::kAcc || from == MemorySpace::kUnset;
  const bool target_ok = to == MemorySpace::kVec || to == MemorySpace::kMat || to == MemorySpace::kLeft ||
                         to == MemorySpace::kRight || to == MemorySpace::kBias || scale;
  if (!source_ok || !target_ok) {
    // A tile that nothing has placed yet would come from Vec.
    const char* source = from == MemorySpace::kUnset ? space_name(MemorySpace::kVec) : space_name(from);
    t.value_error(std::string("there is no path from ") + source + " to " + space_name(to) + " on the '" +
                      t.arch_text() + "' platform",
                  to == MemorySpace::kDDR
                      ? "pl.store writes to global memory"
                      : "legal chains are Vec-Mat, Mat-Left/Right/Bias, Acc-Mat, Acc-Vec");
  }
  const DType dtype = scale && x.dtype == DType::kUInt8 ? DType::kFp8E8M0 : x.dtype;
  auto type = std::make_shared<Type>(*tile_type(x.shape, dtype, to));
  type->valid = x.valid;
  type->pad = x.pad;
  type->storage = std::make_shared<Storage>();
  return t.result(type);
}

// ---- assemble

namespace {

/// A rank-N tile region must be one band of the merged rows (02 O-203).
void check_band(const Typer& t, const Type& target, const Shape& source,
                const std::vector<ExprPtr>& offsets) {
  const size_t rank = target.shape.size();
  bool inside = false;
  for (size_t k = 0; k + 1 < rank; ++k) {
    const bool whole = provably_equal(source[k], target.shape[k]);
    if (inside && !whole) {
      t.value_error("a region of shape " + shape_text(source) + " in a tile of shape " +
                        shape_text(target.shape) + " is no contiguous band when the leading axes are merged",
                    "assemble slice by slice, or reshape to two dimensions");
    }
    if (!(source[k].is_const() && source[k].value == 1)) inside = true;
  }
  static_cast<void>(offsets);
}

ExprPtr assemble_tile(Typer& t) {
  const Type& target = t.type(0);
  t.level = OperandLevel::kTile;
  const Type& source = t.tile(1);
  if (t.has(3) && !(t.arg(3)->kind == ExprKind::kInt && t.arg(3)->int_value == 0)) {
    t.type_error("keyword 'atomic' is not supported on Tile operands",
                 "store the tile with pl.store(..., atomic=...)");
  }
  t.drop(3);
  const auto offsets = t.entries(2, target.rank());
  const bool narrowing = source.space == MemorySpace::kAcc && source.dtype == DType::kFp32 &&
                         (target.dtype == DType::kFp16 || target.dtype == DType::kBf16);
  if (!narrowing) t.require_same_dtype(0, 1);
  Shape extents = fit_rank(t, source.shape, target.shape.size(), source);
  while (extents.size() < target.shape.size()) extents.insert(extents.begin(), Dim(1));
  if (target.rank() > 2) check_band(t, target, extents, offsets);
  t.check_write(target, offsets, extents, t.param(0));
  auto type = std::make_shared<Type>(target);
  type->valid = t.written_valid(target, offsets, extents);
  type->memref = nullptr;
  type->storage = std::make_shared<Storage>();
  return t.result(type);
}

}  // namespace

ExprPtr type_assemble(Typer& t) {
  if (!t.has(0) || !t.type(0).is_array_like()) t.bad(0, "a Tensor or Tile");
  if (!t.type(1).is_array_like()) t.bad(1, "a Tensor or Tile");
  if (t.form == kFormTensor && t.is_tile(0)) t.dispatch({0});
  if (t.form == kFormTile && t.is_tensor(0)) t.dispatch({0});
  if (t.is_tile(0)) return assemble_tile(t);
  t.level = OperandLevel::kTensor;
  const Type& target = t.type(0);
  const Type& source = t.type(1);
  if (!t.in_kernel() && t.is_tile(1)) t.bad(1, "a Tensor");
  const auto offsets = t.entries(2, target.rank());
  if (t.atomic_attr(3, target.dtype) == AtomicType::kAdd) {
    if (!t.in_kernel()) {
      t.value_error("atomic=pl.AtomicType.Add is only supported inside an InCore function",
                    "move the assemble into a kernel or pl.at region");
    }
    const bool on_chip = source.is_tile() || source.place == TensorPlace::kOnChip;
    if (!on_chip)
      t.value_error("atomic=pl.AtomicType.Add needs an on-chip source, got a " + kind_text(source),
                    "load it first");
    static_cast<void>(t.global(0));
  }
  check_store_dtype(t, source, target, is_product(source));
  const Shape extents = fit_rank(t, valid_of(source), target.shape.size(), source);
  t.check_write(target, offsets, extents, t.param(0));
  return target_result(t, 0, t.written_valid(target, offsets, extents));
}

// ---- the rest

ExprPtr type_extract(Typer& t) {
  t.tile_only({0});
  t.require_rank(0, 2);
  t.index(1);
  t.index(2);
  Window w;
  w.offsets = {t.arg(1), t.arg(2)};
  w.extents = t.static_extents(3, 2);
  w.exact = true;
  if (!t.has(4)) t.type_error("missing required argument 'target_memory'");
  const auto space = static_cast<MemorySpace>(t.enum_attr(4, AttrKey::k_target_memory, "MemorySpace", 0, 10));
  if (space == MemorySpace::kDDR || space == MemorySpace::kScalarLocal) {
    t.value_error(std::string("target_memory ") + space_name(space) + " holds no tiles");
  }
  Shape valid = t.read_window(t.type(0), w, t.param(0));
  return t.tile_value(w.extents, t.type(0).dtype, space, std::move(valid));
}

ExprPtr type_concat(Typer& t) {
  t.dispatch({0, 1});
  t.require_rank(0, 2);
  t.require_rank(1, 2);
  t.require_same_dtype(0, 1);
  const Type& a = t.type(0);
  const Type& b = t.type(1);
  const Shape va = valid_of(a);
  const Shape vb = valid_of(b);
  if (provably_differ(a.shape[0], b.shape[0]) || provably_differ(va[0], vb[0])) {
    t.value_error("operands must have equal rows, got shapes " + shape_text(a.shape) + " and " +
                  shape_text(b.shape) + " with valid shapes " + shape_text(va) + " and " + shape_text(vb));
  }
  if (provably_differ(va[1], a.shape[1])) {
    t.value_error(
        "'src0' must be valid in all its columns, got " + dim_text(va[1]) + " of " + dim_text(a.shape[1]),
        "slice it to its valid columns first");
  }
  const Shape shape = {a.shape[0], dim_sum(a.shape[1], b.shape[1])};
  const Shape valid = {va[0], fully_valid(a) && fully_valid(b) ? shape[1] : dim_sum(a.shape[1], vb[1])};
  return t.value(shape, a.dtype, valid);
}

ExprPtr type_copy_tile(Typer& t) {
  t.level = OperandLevel::kTile;
  auto type = std::make_shared<Type>(t.tile(0));
  type->memref = nullptr;
  type->storage = std::make_shared<Storage>();
  return t.result(type);
}

ExprPtr type_snapshot(Typer& t) {
  t.level = OperandLevel::kTensor;
  auto type = std::make_shared<Type>(t.tensor(0));
  type->place = TensorPlace::kOnChip;
  type->storage = std::make_shared<Storage>();
  return t.result(type);
}

}  // namespace pypto::ir::infer
