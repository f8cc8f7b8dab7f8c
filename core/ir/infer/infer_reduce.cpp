// SPDX-License-Identifier: Apache-2.0
// Reductions (02 section 15), broadcast and expand (16), padding (17).
#include "core/ir/infer/broadcast.h"

namespace pypto::ir::infer {
namespace {

bool is_arg_form(OpId id) {
  return id == OpId::k_row_argmax || id == OpId::k_row_argmin || id == OpId::k_col_argmax ||
         id == OpId::k_col_argmin;
}

void check_reduce_tmp(Typer& t) {
  const Type& x = t.type(0);
  const Type& tmp = t.tile(1);
  t.require_same_dtype(0, 1);
  bool ok = tmp.rank() == x.rank();
  for (size_t k = 0; ok && k < x.shape.size(); ++k) {
    if (!x.shape[k].is_const() || !tmp.shape[k].is_const()) continue;
    ok = is_arg_form(t.row->id) ? tmp.shape[k].value == x.shape[k].value
                                : tmp.shape[k].value >= x.shape[k].value;
  }
  if (!ok) {
    t.value_error("argument '" + t.param(1) + "' of shape " + shape_text(tmp.shape) + " must have " +
                      (is_arg_form(t.row->id) ? "exactly" : "at least") + " the operand's shape " +
                      shape_text(x.shape),
                  "pl.create_tile(" + shape_text(x.shape) + ", dtype=pl." + dtype_info(x.dtype).member + ")");
  }
}

ExprPtr reduce(Typer& t, bool rows) {
  t.dispatch({0});
  const OpId id = t.row->id;
  const Type& x = t.type(0);
  const int least = rows ? (t.tile_level() ? 2 : 1) : 2;
  if (x.rank() < least || (!rows && t.tile_level() && x.rank() != 2)) {
    t.value_error("argument '" + t.param(0) + "' of shape " + shape_text(x.shape) + " must have rank " +
                      (!rows && t.tile_level() ? "2" : "at least " + std::to_string(least)),
                  "reshape it first");
  }
  if (is_arg_form(id)) {
    t.require_dtype(0, {DType::kFp16, DType::kFp32, DType::kInt16, DType::kInt32},
                    "cast it to pl.FP32 first");
  } else if (id == OpId::k_row_min) {
    t.require_dtype(0, {DType::kInt16, DType::kInt32, DType::kFp16, DType::kFp32},
                    "cast it to pl.FP32 first");
    if (x.tile_view && x.tile_view->blayout && *x.tile_view->blayout == TileLayout::kColMajor) {
      t.value_error("row_min takes a row-major tile", "leave the blayout out of the TileView");
    }
  } else {
    t.require_dtype(0, {DType::kFp16, DType::kBf16, DType::kFp32, DType::kInt16, DType::kInt32},
                    "cast it to pl.FP32 or pl.INT32 first");
  }
  if (t.args.size() > 1 && t.has(1)) check_reduce_tmp(t);
  const size_t axis = x.shape.size() - (rows ? 1 : 2);
  Shape shape = x.shape;
  Shape valid = valid_of(x);
  if (valid[axis].is_const() && valid[axis].value == 0) {
    t.value_error("the valid extent of the reduced axis " + std::to_string(axis) + " is empty (valid shape " +
                      shape_text(valid) + ")",
                  "call pl.fillpad with the neutral value first if padding should take part");
  }
  shape[axis] = Dim(1);
  valid[axis] = Dim(1);
  return t.value(std::move(shape), is_arg_form(id) ? DType::kInt32 : x.dtype, std::move(valid));
}

}  // namespace

#define PYPTO_REDUCE(op_name, rows) \
  ExprPtr type_##op_name(Typer& t) { return reduce(t, rows); }
PYPTO_REDUCE(row_sum, true)
PYPTO_REDUCE(row_max, true)
PYPTO_REDUCE(row_min, true)
PYPTO_REDUCE(row_prod, true)
PYPTO_REDUCE(row_argmax, true)
PYPTO_REDUCE(row_argmin, true)
PYPTO_REDUCE(col_sum, false)
PYPTO_REDUCE(col_max, false)
PYPTO_REDUCE(col_min, false)
PYPTO_REDUCE(col_prod, false)
PYPTO_REDUCE(col_argmax, false)
PYPTO_REDUCE(col_argmin, false)
#undef PYPTO_REDUCE

// ---- section 16

namespace {

[[noreturn]] void bad_vector(const Typer& t, bool rows) {
  const Type& a = t.type(0);
  Shape expected = a.shape;
  if (!expected.empty()) {
    if (rows)
      expected.back() = Dim(1);
    else if (expected.size() >= 2)
      expected[expected.size() - 2] = Dim(1);
  }
  t.value_error("argument '" + t.param(1) + "' of shape " + shape_text(t.type(1).shape) + " must be " +
                    shape_text(expected) + " for a main operand of shape " + shape_text(a.shape),
                rows ? "a row vector has one column and the operand's rows"
                     : "a column vector has one row and the operand's columns");
}

void check_row_vector(const Typer& t) {
  const Shape& a = t.type(0).shape;
  const Shape& v = t.type(1).shape;
  if (a.size() != v.size() || v.empty() || provably_differ(v.back(), Dim(1))) bad_vector(t, true);
  for (size_t k = 0; k + 1 < v.size(); ++k) {
    if (provably_differ(a[k], v[k])) bad_vector(t, true);
  }
}

void check_col_vector(const Typer& t) {
  const Shape& a = t.type(0).shape;
  const Shape& v = t.type(1).shape;
  if (v.empty() || a.empty() || v.size() > a.size() || provably_differ(v.back(), a.back()))
    bad_vector(t, false);
  if (v.size() >= 2 && provably_differ(v[v.size() - 2], Dim(1))) bad_vector(t, false);
  const size_t lead = a.size() - v.size();
  for (size_t k = 0; k + 2 < v.size(); ++k) {
    if (provably_differ(a[lead + k], v[k]) && v[k].value != 1) bad_vector(t, false);
  }
}

/// row_expand_add: the vector may be a lane block on tiles (02 O-1602).
void check_row_expand_add(const Typer& t) {
  t.require_dtype(0, {DType::kInt8, DType::kInt16, DType::kInt32, DType::kFp16, DType::kFp32},
                  "cast it first");
  t.require_same_dtype(0, 1);
  const Type& a = t.type(0);
  const Type& v = t.type(1);
  const bool rank2 = a.rank() == 2 && v.rank() == 2;
  const bool lane_block = t.tile_level() && rank2 && v.shape[1].is_const() && v.shape[1].value != 1 &&
                          v.shape[1].value == 32 / dtype_bytes(v.dtype) &&
                          !provably_differ(a.shape[0], v.shape[0]);
  if (!lane_block) check_row_vector(t);
  if (rank2 && provably_differ(valid_of(a)[0], valid_of(v)[0])) {
    t.value_error("arguments '" + t.param(0) + "' and '" + t.param(1) + "' must have equal valid rows, got " +
                  dim_text(valid_of(a)[0]) + " and " + dim_text(valid_of(v)[0]));
  }
}

ExprPtr expand(Typer& t, bool rows) {
  t.dispatch({0, 1});
  const OpId id = t.row->id;
  t.require_arithmetic(0);
  t.require_arithmetic(1);
  if (id == OpId::k_row_expand_expdif || id == OpId::k_col_expand_expdif) {
    for (const int i : {0, 1}) {
      t.require_dtype(i, {DType::kFp16, DType::kBf16, DType::kFp32}, "pl.cast(x, pl.FP32) first");
    }
  }
  if (id == OpId::k_row_expand_add) {
    check_row_expand_add(t);
    if (t.has(2)) static_cast<void>(t.tile(2));
  } else if (rows) {
    check_row_vector(t);
  } else {
    check_col_vector(t);
  }
  return t.value(t.type(0).shape, t.promoted(0, 1), t.type(0).valid);
}

}  // namespace

#define PYPTO_EXPAND(op_name, rows) \
  ExprPtr type_##op_name(Typer& t) { return expand(t, rows); }
PYPTO_EXPAND(row_expand, true)
PYPTO_EXPAND(row_expand_mul, true)
PYPTO_EXPAND(row_expand_sub, true)
PYPTO_EXPAND(row_expand_div, true)
PYPTO_EXPAND(row_expand_max, true)
PYPTO_EXPAND(row_expand_min, true)
PYPTO_EXPAND(row_expand_expdif, true)
PYPTO_EXPAND(row_expand_add, true)
PYPTO_EXPAND(col_expand, false)
PYPTO_EXPAND(col_expand_mul, false)
PYPTO_EXPAND(col_expand_add, false)
PYPTO_EXPAND(col_expand_sub, false)
PYPTO_EXPAND(col_expand_div, false)
PYPTO_EXPAND(col_expand_max, false)
PYPTO_EXPAND(col_expand_min, false)
PYPTO_EXPAND(col_expand_expdif, false)
#undef PYPTO_EXPAND

ExprPtr type_expands(Typer& t) {
  t.dispatch({0});
  t.require_arithmetic(0);
  DType dtype = t.type(0).dtype;
  if (t.tile_level()) {
    dtype = promote(dtype, t.numeric(1, dtype));
    if (dtype == DType::kNone) static_cast<void>(t.promoted(0, 1));
  }
  t.numeric_as(1, dtype);
  return t.value(t.type(0).shape, dtype);
}

ExprPtr type_expand_clone(Typer& t) {
  t.tensor_only({0, 1});
  static_cast<void>(t.global(1));
  t.require_rank(0, 3);
  t.require_rank(1, 3);
  t.require_same_dtype(0, 1);
  const Shape& src = t.type(0).shape;
  const Shape& target = t.type(1).shape;
  int axes = 0;
  for (size_t k = 0; k < 3; ++k) {
    if (!provably_differ(src[k], target[k])) continue;
    if (src[k].value != 1) {
      t.value_error("dimension " + std::to_string(k) + " of 'src' is " + dim_text(src[k]) + ", of 'target' " +
                    dim_text(target[k]) + "; they must be equal, or src's must be 1");
    }
    if (++axes > 1) {
      t.value_error(
          "at most one axis may be broadcast, shapes are " + shape_text(src) + " and " + shape_text(target),
          "clone in two steps");
    }
  }
  return t.in_place(1);
}

// ---- section 17

namespace {

PadValue fill_value(Typer& t, int i) {
  const PadValue pad = t.pad_attr(i, PadValue::kZero, false);
  const Type& x = t.type(0);
  const bool narrow = is_float(x.dtype) && dtype_bits(x.dtype) <= 8;
  if (pad != PadValue::kZero && narrow) {
    t.value_error("dtype " + std::string(dtype_text(x.dtype)) + " can only be padded with zero",
                  "pl.PadValue.zero");
  }
  if (pad != PadValue::kZero && x.is_tile() && x.space == MemorySpace::kMat) {
    t.value_error("a Mat tile can only be padded with zero", "pad it in Vec before moving it");
  }
  return pad;
}

ExprPtr with_pad(Typer& t, TypePtr type, PadValue pad) {
  auto copy = std::make_shared<Type>(*type);
  copy->pad = pad;
  return t.result(copy);
}

}  // namespace

ExprPtr type_fillpad(Typer& t) {
  t.dispatch({0});
  const PadValue pad = fill_value(t, 1);
  auto type = std::make_shared<Type>(*t.value_type(t.type(0).shape, t.type(0).dtype));
  if (t.tile_level() && t.type(0).space == MemorySpace::kMat) type->space = MemorySpace::kMat;
  return with_pad(t, type, pad);
}

ExprPtr type_fillpad_inplace(Typer& t) {
  t.tile_only({0});
  const PadValue pad = fill_value(t, 1);
  auto type = std::make_shared<Type>(t.type(0));
  type->valid.clear();
  return with_pad(t, type, pad);
}

ExprPtr type_fillpad_expand(Typer& t) {
  t.dispatch({0});
  const PadValue pad = fill_value(t, 2);
  const Type& x = t.type(0);
  const Shape shape = t.static_extents(1);
  if (shape.size() != x.shape.size()) {
    t.value_error("argument 'shape' " + shape_text(shape) + " must have the operand's rank " +
                  std::to_string(x.rank()));
  }
  for (size_t k = 0; k < shape.size(); ++k) {
    if (x.shape[k].is_const() && shape[k].value < x.shape[k].value) {
      t.value_error("dimension " + std::to_string(k) + " of 'shape' is " + dim_text(shape[k]) +
                    ", smaller than the operand's " + dim_text(x.shape[k]));
    }
  }
  return with_pad(t, t.value_type(shape, x.dtype), pad);
}

}  // namespace pypto::ir::infer
