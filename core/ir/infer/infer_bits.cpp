// SPDX-License-Identifier: Apache-2.0
// cast (02 section 11), bitwise operations and shifts (12), comparison and selection (13).
#include <algorithm>

#include "core/ir/infer/broadcast.h"

namespace pypto::ir::infer {
namespace {

bool is_one_of(DType d, std::initializer_list<DType> list) {
  return std::find(list.begin(), list.end(), d) != list.end();
}

bool cast_base(DType d) {
  return is_one_of(d, {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8, DType::kUInt8, DType::kInt16,
                       DType::kInt32, DType::kInt64});
}

/// Whether a platform converts `a` to `b` or back (02 O-1106).
bool cast_pair(DType a, DType b, bool a5) {
  if (cast_base(a) && cast_base(b)) return true;
  if (!a5) return a == DType::kInt4 && b == DType::kFp16;
  const bool wide_float = is_one_of(b, {DType::kFp32, DType::kFp16, DType::kBf16});
  if (is_one_of(a, {DType::kUInt16, DType::kUInt32}))
    return cast_base(b) || is_one_of(b, {DType::kUInt16, DType::kUInt32});
  if (is_one_of(a, {DType::kFp8E4M3FN, DType::kFp8E5M2, DType::kHf8})) {
    return wide_float || (a == DType::kFp8E4M3FN && b == DType::kFp4);
  }
  return a == DType::kFp4 && is_one_of(b, {DType::kBf16, DType::kFp32, DType::kFp8E4M3FN});
}

}  // namespace

ExprPtr type_cast(Typer& t) {
  t.dispatch({0});
  const Type& x = t.type(0);
  const DType target = t.dtype_attr(1, AttrKey::k_target_type);
  t.mode_attr(2, AttrKey::k_mode, {"none", "rint", "round", "floor", "ceil", "trunc", "odd"}, 2);
  const DType from = x.dtype == DType::kIndex ? DType::kInt64 : x.dtype;
  const DType to = target == DType::kIndex ? DType::kInt64 : target;
  if (from == to) {
    t.value_error("the operand already has dtype " + std::string(dtype_text(x.dtype)) + ". Remove the cast",
                  "Remove the cast");
  }
  if (!cast_pair(from, to, t.a5()) && !cast_pair(to, from, t.a5())) {
    t.value_error("no native cast path from " + std::string(dtype_text(from)) + " to " +
                      std::string(dtype_text(to)) + " on the '" + t.arch_text() + "' platform",
                  "go through pl.FP32 with two casts where both exist");
  }
  // A cast reads a product at its declared dtype, not its accumulator (02 O-1802).
  if (x.acc_dtype != DType::kNone) t.attrs.set(AttrKey::k_acc_dtype, static_cast<int64_t>(x.dtype));
  // A product that becomes the operand of another product stays on the cube (02 O-1102): its consumers place
  // it.
  if (x.is_tile() && x.space == MemorySpace::kAcc)
    return t.tile_value(x.shape, target, MemorySpace::kUnset, x.valid);
  return t.value(x.shape, target, x.valid);
}

// ---- section 12

namespace {

void require_bits(const Typer& t, int i) {
  const DType d = t.type(i).dtype;
  if (is_int(d) && dtype_bits(d) == 64) {
    t.require_a5(t.name() + " on 64-bit integers");
    return;
  }
  t.require_dtype(i,
                  {DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16, DType::kUInt32},
                  "bitwise operations take integers: pl.cast or pl.reinterpret_view first");
}

/// and_, or_, xor, shl, shr and their scalar forms (02 O-1201 - O-1203).
ExprPtr bitwise(Typer& t, bool shift, bool scalar_row) {
  const bool exclusive = t.row->id == OpId::k_xor || t.row->id == OpId::k_xors;
  if (t.is_scalar(0)) t.bad(0, "a Tensor or Tile (the array operand comes first)", "exchange the operands");
  if (scalar_row && !t.is_scalar(1)) t.bad(1, "an integer scalar");
  if (t.is_scalar(1)) {
    t.dispatch({0});
    require_bits(t, 0);
    if (!is_int(t.type(1).dtype)) {
      t.bad(1, "an integer scalar", "pl.cast(value, pl.INT32)");
    }
    if (shift && t.constant(1) && *t.constant(1) < 0) {
      t.value_error("shift count " + t.got(1) + " is negative");
    }
    t.numeric_as(1, t.type(0).dtype);
  } else {
    t.dispatch({0, 1});
    require_bits(t, 0);
    require_bits(t, 1);
    if (!t.tile_level()) t.require_same_shape(0, 1);
  }
  if (exclusive && t.tile_level()) {
    static_cast<void>(t.tile(2));
    t.require_same_dtype(0, 2);
    t.require_same_shape(0, 2);
  }
  if (t.is_scalar(1)) return t.value(t.type(0).shape, t.type(0).dtype, t.type(0).valid);
  const DType dtype = shift ? t.type(0).dtype : t.promoted(0, 1);
  Shape shape = broadcast(t, {0, 1});
  Shape valid = broadcast_valid(t, 0, shape);
  return t.value(std::move(shape), dtype, std::move(valid));
}

}  // namespace

ExprPtr type_and_(Typer& t) { return bitwise(t, false, false); }
ExprPtr type_or_(Typer& t) { return bitwise(t, false, false); }
ExprPtr type_xor(Typer& t) { return bitwise(t, false, false); }
ExprPtr type_ands(Typer& t) { return bitwise(t, false, true); }
ExprPtr type_ors(Typer& t) { return bitwise(t, false, true); }
ExprPtr type_xors(Typer& t) { return bitwise(t, false, true); }
ExprPtr type_shl(Typer& t) { return bitwise(t, true, false); }
ExprPtr type_shr(Typer& t) { return bitwise(t, true, false); }
ExprPtr type_shls(Typer& t) { return bitwise(t, true, true); }
ExprPtr type_shrs(Typer& t) { return bitwise(t, true, true); }

ExprPtr type_not_(Typer& t) {
  t.dispatch({0});
  t.require_dtype(0, {DType::kInt16, DType::kUInt16}, "pl.xors(x, -1) complements other integer dtypes");
  return t.value(t.type(0).shape, t.type(0).dtype, t.type(0).valid);
}

// ---- section 13

namespace {

Dim mask_bytes(const Dim& columns) { return columns.is_const() ? Dim((columns.value + 7) / 8) : Dim(); }

/// Packed mask tile for a comparison of `shape` (02 O-1302).
ExprPtr mask_tile(Typer& t, const Shape& shape, const Shape& valid_in) {
  if (shape.size() != 2) {
    t.value_error("a Tile comparison takes rank-2 tiles, got shape " + shape_text(shape),
                  "reshape to two dimensions");
  }
  const Shape valid = valid_in.empty() ? shape : valid_in;
  const Dim bytes = mask_bytes(shape[1]);
  const Shape physical = {shape[0], Dim((bytes.value + 31) / 32 * 32)};
  return t.tile_value(physical, DType::kUInt8, MemorySpace::kVec, {valid[0], mask_bytes(valid[1])});
}

void require_comparable(const Typer& t, int i) {
  t.require_dtype(i, {DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16,
                      DType::kUInt32, DType::kFp16, DType::kBf16, DType::kFp32});
}

ExprPtr compare(Typer& t) {
  const bool scalar_row = t.row->id == OpId::k_cmps;
  int64_t code = 0;
  if (t.has(2)) {
    const auto c = t.constant(2);
    if (!c) t.bad(2, "a constant from 0 to 5 (0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge)");
    code = *c;
    if (code < 0 || code > 5) {
      t.value_error("argument 'cmp_type' must be 0 eq, 1 ne, 2 lt, 3 le, 4 gt or 5 ge, got " + t.got(2));
    }
    t.drop(2);
  }
  t.attrs.set(AttrKey::k_cmp_type, code);
  if (t.is_scalar(0)) t.bad(0, "a Tensor or Tile (the array operand comes first)", "exchange the operands");
  if (scalar_row && !t.is_scalar(1)) t.bad(1, "a scalar", "use pl.cmp for two tiles");
  const bool scalar = t.is_scalar(1);
  if (scalar_row) {
    t.tile_only({0});
  } else if (scalar) {
    t.dispatch({0});
  } else {
    t.dispatch({0, 1});
  }
  if (t.tile_level()) {
    require_comparable(t, 0);
    if (scalar) {
      t.numeric_as(1, t.type(0).dtype);
      return mask_tile(t, t.type(0).shape, t.type(0).valid);
    }
    require_comparable(t, 1);
    static_cast<void>(t.promoted(0, 1));
    const Shape shape = broadcast(t, {0, 1});
    return mask_tile(t, shape, broadcast_valid(t, 0, shape));
  }
  t.require_arithmetic(0);
  if (scalar) {
    const DType dtype = promote(t.type(0).dtype, t.numeric(1, t.type(0).dtype));
    t.numeric_as(1, dtype);
    return t.value(t.type(0).shape, dtype);
  }
  t.require_arithmetic(1);
  const DType dtype = t.promoted(0, 1);
  return t.value(broadcast(t, {0, 1}), dtype);
}

/// The mask must have a bit for every cell (02 O-1303, O-1304).
void require_mask(const Typer& t, const Shape& shape) {
  const Type& mask = t.type(0);
  t.require_rank(0, 2);
  if (shape.size() != 2) t.value_error("selection takes rank-2 tiles, got shape " + shape_text(shape));
  const int64_t width = dtype_bytes(mask.dtype);
  const bool few_rows = provably_differ(mask.shape[0], shape[0]) && mask.shape[0].value < shape[0].value;
  const bool few_bytes = mask.shape[1].is_const() && shape[1].is_const() &&
                         mask.shape[1].value * width < (shape[1].value + 7) / 8;
  if (few_rows || few_bytes) {
    t.value_error("argument 'mask' of shape " + shape_text(mask.shape) + " (" +
                      std::string(dtype_text(mask.dtype)) + ") does not cover " + shape_text(shape) +
                      ": it needs every row and ceil(columns / 8) bytes per row",
                  "make the mask with pl.cmp on a tile of the same shape");
  }
}

}  // namespace

ExprPtr type_cmp(Typer& t) { return compare(t); }
ExprPtr type_cmps(Typer& t) { return compare(t); }

ExprPtr type_sel(Typer& t) {
  t.tile_only({0, 1, 2, 3});
  t.require_dtype(0, {DType::kUInt8}, "make the mask with pl.cmp");
  t.require_dtype(3, {DType::kUInt8});
  t.require_arithmetic(1);
  t.require_arithmetic(2);
  const DType dtype = t.promoted(1, 2);
  Shape shape = broadcast(t, {1, 2});
  require_mask(t, shape);
  Shape valid = broadcast_valid(t, 1, shape);
  return t.value(std::move(shape), dtype, std::move(valid));
}

ExprPtr type_sels(Typer& t) {
  t.tile_only({0, 1, 2});
  t.require_dtype(0,
                  {DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16, DType::kUInt32},
                  "make the mask with pl.cmp");
  const DType dtype = t.type(1).dtype;
  if (dtype == DType::kInt8 || dtype == DType::kUInt8) {
    t.require_a5("sels with dtype " + std::string(dtype_text(dtype)));
  } else {
    t.require_dtype(
        1, {DType::kInt16, DType::kUInt16, DType::kInt32, DType::kUInt32, DType::kFp16, DType::kFp32});
  }
  require_mask(t, t.type(1).shape);
  if (t.is_scalar(3) && is_int(dtype) && t.arg(3)->kind == ExprKind::kFloat) {
    const double v = t.arg(3)->float_value;
    if (v != static_cast<double>(static_cast<int64_t>(v))) {
      t.value_error("argument 'scalar' is " + t.got(3) + ", which is no value of the integer dtype " +
                    std::string(dtype_text(dtype)));
    }
  }
  t.numeric_as(3, dtype);
  return t.value(t.type(1).shape, dtype, t.type(1).valid);
}

}  // namespace pypto::ir::infer
