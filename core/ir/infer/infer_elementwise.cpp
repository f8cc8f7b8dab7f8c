// SPDX-License-Identifier: Apache-2.0
// Binary and unary arithmetic (02 sections 9 and 10), partial and three-input operations (section 14).
#include "core/ir/infer/broadcast.h"

namespace pypto::ir::infer {

Shape broadcast(const Typer& t, std::initializer_list<int> operands) {
  size_t rank = 0;
  for (const int i : operands) rank = std::max(rank, t.type(i).shape.size());
  Shape out(rank, Dim(1));
  int last = *operands.begin();
  for (const int i : operands) {
    const Shape& s = t.type(i).shape;
    for (size_t k = 0; k < s.size(); ++k) {
      Dim& d = out[rank - s.size() + k];
      if (d.is_const() && d.value == 1) {
        d = s[k];
      } else if (s[k].is_const() && s[k].value != 1) {
        if (d.is_const() && d.value != s[k].value) {
          t.value_error("shapes " + shape_text(t.type(last).shape) + " of '" + t.param(last) + "' and " +
                            shape_text(s) + " of '" + t.param(i) +
                            "' do not broadcast: each dimension must be equal or 1",
                        "reshape one operand, or spread it with pl.row_expand / pl.col_expand");
        }
        d = s[k];
      }
    }
    last = i;
  }
  return out;
}

Shape broadcast_valid(const Typer& t, int first, const Shape& shape) {
  const Type& type = t.type(first);
  if (fully_valid(type)) return {};
  Shape valid = shape;
  const size_t lead = shape.size() - type.shape.size();
  for (size_t k = 0; k < type.shape.size(); ++k) {
    const bool spread =
        type.shape[k].is_const() && type.shape[k].value == 1 && !provably_equal(shape[lead + k], Dim(1));
    const Dim& v = type.valid[k];
    if (!spread) {
      valid[lead + k] = v;
    } else if (!v.is_const()) {
      valid[lead + k] = Dim();
    } else if (v.value == 0) {
      valid[lead + k] = Dim(0);
    }
  }
  return valid;
}

namespace {

bool is_scalar_row(OpId id) {
  switch (id) {
    case OpId::k_adds:
    case OpId::k_subs:
    case OpId::k_muls:
    case OpId::k_divs:
    case OpId::k_fmods:
    case OpId::k_maximums:
    case OpId::k_minimums:
    case OpId::k_rems:
      return true;
    default:
      return false;
  }
}

void require_left_array(const Typer& t) {
  if (!t.is_scalar(0)) return;
  t.bad(0, "a Tensor or Tile (the array operand comes first)",
        "exchange the operands; for 1.0 - x write pl.add(pl.neg(x), 1.0), for 1.0 / x write pl.recip(x)");
}

void require_fmod_dtype(const Typer& t, int i) {
  switch (t.type(i).dtype) {
    case DType::kFp32:
    case DType::kFp16:
    case DType::kInt32:
      return;
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kUInt32:
      t.require_a5("dtype " + std::string(dtype_text(t.type(i).dtype)) + " of " + t.name());
      return;
    default:
      t.require_dtype(i, {DType::kFp32, DType::kFp16, DType::kInt32}, "cast it to pl.FP32 first");
  }
}

bool is_remainder(OpId id) {
  return id == OpId::k_fmod || id == OpId::k_fmods || id == OpId::k_rem || id == OpId::k_rems;
}

/// Array with scalar (02 O-904, O-905).
ExprPtr with_scalar(Typer& t) {
  const OpId id = t.row->id;
  const DType own = t.type(0).dtype;
  t.require_arithmetic(0);
  if (is_remainder(id)) require_fmod_dtype(t, 0);
  const bool subtract = id == OpId::k_sub || id == OpId::k_subs;
  DType dtype = own;
  if (t.tile_level() || subtract) {
    if (subtract) {
      const auto accepted = {DType::kInt8, DType::kInt16, DType::kInt32,
                             DType::kFp16, DType::kFp32,  DType::kBf16};
      t.require_dtype(0, accepted);
      t.numeric(1, own);
      t.require_dtype(1, accepted, "pl.cast the scalar");
    }
    t.numeric_as(1, own);
  } else {
    const DType scalar = t.numeric(1, own);
    dtype = promote(own, scalar);
    if (dtype == DType::kNone) static_cast<void>(t.promoted(0, 1));
    t.numeric_as(1, dtype);
  }
  return t.value(t.type(0).shape, dtype, t.type(0).valid);
}

/// tmp of rem and rems (02 O-906).
void check_remainder_tmp(Typer& t) {
  const Type& tmp = t.tile(2);
  t.require_same_dtype(0, 2);
  const Dim need = t.type(0).shape.empty() ? Dim(1) : t.type(0).shape.back();
  if (tmp.shape.empty() ||
      (need.is_const() && tmp.shape.back().is_const() && tmp.shape.back().value < need.value)) {
    t.value_error("argument 'tmp' must have at least 1 row and " + dim_text(need) + " columns, got " +
                  shape_text(tmp.shape));
  }
}

void check_division(Typer& t, bool high_precision) {
  const auto accepted = {DType::kInt16, DType::kInt32, DType::kFp16, DType::kFp32};
  if (t.tile_level()) {
    t.require_dtype(0, accepted, "cast to pl.FP32 first");
    t.require_dtype(1, accepted, "cast to pl.FP32 first");
    t.require_same_dtype(0, 1);
    t.require_same_shape(0, 1);
    if (t.type(0).rank() != t.type(1).rank() ||
        !same_static_shape(valid_of(t.type(0)), valid_of(t.type(1)))) {
      t.value_error("Tile division needs identical valid shapes, got " + shape_text(valid_of(t.type(0))) +
                        " and " + shape_text(valid_of(t.type(1))),
                    "use pl.row_expand_div or pl.col_expand_div to spread a vector");
    }
  } else {
    const DType d = t.promoted(0, 1);
    if (d != DType::kInt16 && d != DType::kInt32 && d != DType::kFp16 && d != DType::kFp32) {
      t.type_error("operands of dtype " + std::string(dtype_text(t.type(0).dtype)) + " and " +
                       std::string(dtype_text(t.type(1).dtype)) + "; expected one of " + dtype_list(accepted),
                   "cast both to pl.FP32 first");
    }
  }
  if (!high_precision) return;
  if (is_int(t.type(0).dtype)) t.type_error("keyword 'high_precision' is for float operands only");
  if (t.type(0).rank() != t.type(1).rank() || !same_static_shape(t.type(0).shape, t.type(1).shape)) {
    t.value_error("high_precision=True does not broadcast: shapes " + shape_text(t.type(0).shape) + " and " +
                  shape_text(t.type(1).shape));
  }
}

ExprPtr binary(Typer& t) {
  const OpId id = t.row->id;
  require_left_array(t);
  const bool division = id == OpId::k_div;
  const bool high_precision = division && t.bool_attr(2, AttrKey::k_high_precision);
  if (is_scalar_row(id) && !t.is_scalar(1)) {
    const std::string base(t.row->name, std::string(t.row->name).size() - 1);
    t.bad(1, "a scalar", "use pl." + base + " for two arrays");
  }
  const bool has_tmp = id == OpId::k_rem || id == OpId::k_rems;
  const bool tile_row = !(t.row->forms & kFormTensor);
  if (t.is_scalar(1)) {
    tile_row ? t.tile_only({0}) : t.dispatch({0});
    if (high_precision) {
      t.type_error("keyword 'high_precision' is not supported with a scalar divisor", "leave it out");
    }
    if (has_tmp) check_remainder_tmp(t);
    return with_scalar(t);
  }
  if (t.has(1) && !t.type(1).is_array_like()) t.bad(1, "a Tensor, a Tile or a scalar");
  tile_row ? t.tile_only({0, 1}) : t.dispatch({0, 1});
  for (const int i : {0, 1}) {
    t.require_arithmetic(i);
    if (is_remainder(id)) require_fmod_dtype(t, i);
  }
  if (division) check_division(t, high_precision);
  if (has_tmp) check_remainder_tmp(t);
  const DType dtype = t.promoted(0, 1);
  Shape shape = broadcast(t, {0, 1});
  Shape valid = broadcast_valid(t, 0, shape);
  return t.value(std::move(shape), dtype, std::move(valid));
}

/// Unary operation whose result has the operand's shape; integer tensors give FP32 where `widen` says so (02
/// O-1001).
ExprPtr unary(Typer& t, std::initializer_list<DType> accepted, bool widen, const std::string& hint = {}) {
  t.dispatch({0});
  const Type& x = t.type(0);
  DType dtype = x.dtype;
  if (widen && !t.tile_level() && is_int(dtype)) {
    dtype = DType::kFp32;
  } else {
    t.require_dtype(0, accepted, hint);
  }
  return t.value(x.shape, dtype, x.valid);
}

constexpr const char* kCastHint = "pl.cast(x, pl.FP32) first";

}  // namespace

#define PYPTO_SAME(op_name, function) \
  ExprPtr type_##op_name(Typer& t) { return function(t); }
PYPTO_SAME(add, binary)
PYPTO_SAME(sub, binary)
PYPTO_SAME(mul, binary)
PYPTO_SAME(div, binary)
PYPTO_SAME(maximum, binary)
PYPTO_SAME(minimum, binary)
PYPTO_SAME(fmod, binary)
PYPTO_SAME(fmods, binary)
PYPTO_SAME(rem, binary)
PYPTO_SAME(rems, binary)
PYPTO_SAME(adds, binary)
PYPTO_SAME(subs, binary)
PYPTO_SAME(muls, binary)
PYPTO_SAME(divs, binary)
PYPTO_SAME(maximums, binary)
PYPTO_SAME(minimums, binary)

namespace {

ExprPtr signed_unary(Typer& t) {
  return unary(t, {DType::kInt8, DType::kInt16, DType::kInt32, DType::kFp16, DType::kBf16, DType::kFp32},
               false);
}
ExprPtr float_unary(Typer& t) {
  return unary(t, {DType::kFp16, DType::kBf16, DType::kFp32}, true, kCastHint);
}
ExprPtr circular(Typer& t) { return unary(t, {DType::kFp32}, false, kCastHint); }

}  // namespace

PYPTO_SAME(neg, signed_unary)
PYPTO_SAME(abs, signed_unary)
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) PYPTO_SAME(id, float_unary)
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
PYPTO_SAME(sin, circular)
PYPTO_SAME(cos, circular)

ExprPtr type_log(Typer& t) {
  t.bool_attr(1, AttrKey::k_high_precision);
  return unary(t, {DType::kFp16, DType::kFp32}, false, kCastHint);
}

ExprPtr type_recip(Typer& t) {
  t.bool_attr(1, AttrKey::k_high_precision);
  if (t.is_tile(0)) {
    return unary(t, {DType::kFp16, DType::kBf16, DType::kFp32, DType::kInt16, DType::kInt32}, false,
                 kCastHint);
  }
  return float_unary(t);
}

ExprPtr type_rsqrt(Typer& t) {
  const bool high_precision = t.bool_attr(1, AttrKey::k_high_precision);
  if (!t.is_tile(0)) return float_unary(t);
  if (t.form == kFormTensor) t.dispatch({0});
  if (high_precision) {
    t.type_error("keyword 'high_precision' is not supported on Tile operands",
                 "pass a scratch tile instead: pl.tile.rsqrt(tile, tmp)");
  }
  t.row = &op_row(OpId::k_tile_rsqrt);
  t.attrs = {};
  return type_tile_rsqrt(t);
}

ExprPtr type_tile_rsqrt(Typer& t) {
  t.tile_only({0});
  t.require_dtype(0, {DType::kFp16, DType::kBf16, DType::kFp32}, kCastHint);
  if (t.has(1)) {
    static_cast<void>(t.tile(1));
    t.require_same_dtype(0, 1);
    t.require_same_shape(0, 1);
  }
  return t.value(t.type(0).shape, t.type(0).dtype, t.type(0).valid);
}

// ---- section 14

namespace {

ExprPtr partial(Typer& t) {
  t.dispatch({0, 1});
  for (const int i : {0, 1}) {
    t.require_arithmetic(i);
    t.require_rank(i, 2);
  }
  const DType dtype = t.promoted(0, 1);
  Shape shape = broadcast(t, {0, 1});
  Shape valid = broadcast_valid(t, 0, shape);
  return t.value(std::move(shape), dtype, std::move(valid));
}

ExprPtr three_inputs(Typer& t) {
  const bool scalar = t.row->id == OpId::k_addsc || t.row->id == OpId::k_subsc;
  DType dtype = DType::kNone;
  if (scalar) {
    t.tile_only({0, 2});
    dtype = t.promoted(0, 2);
    t.require_arithmetic(0);
    t.require_arithmetic(2);
    t.numeric_as(1, dtype);
  } else {
    t.tile_only({0, 1, 2});
    for (const int i : {0, 1, 2}) t.require_arithmetic(i);
    dtype = promote(t.promoted(0, 1), t.type(2).dtype);
  }
  Shape shape = scalar ? broadcast(t, {0, 2}) : broadcast(t, {0, 1, 2});
  Shape valid = broadcast_valid(t, 0, shape);
  return t.value(std::move(shape), dtype, std::move(valid));
}

}  // namespace

PYPTO_SAME(part_add, partial)
PYPTO_SAME(part_mul, partial)
PYPTO_SAME(part_max, partial)
PYPTO_SAME(part_min, partial)
PYPTO_SAME(addc, three_inputs)
PYPTO_SAME(subc, three_inputs)
PYPTO_SAME(addsc, three_inputs)
PYPTO_SAME(subsc, three_inputs)
#undef PYPTO_SAME

ExprPtr type_relu(Typer& t) {
  t.tile_only({0});
  t.require_dtype(0, {DType::kFp16, DType::kFp32, DType::kInt32}, "pl.maximum(x, 0) serves other dtypes");
  return t.value(t.type(0).shape, t.type(0).dtype, t.type(0).valid);
}

ExprPtr type_lrelu(Typer& t) {
  t.tile_only({0});
  t.require_dtype(0, {DType::kFp16, DType::kFp32});
  t.numeric_as(1, t.type(0).dtype);
  return t.value(t.type(0).shape, t.type(0).dtype, t.type(0).valid);
}

ExprPtr type_prelu(Typer& t) {
  t.tile_only({0, 1, 2});
  t.require_dtype(0, {DType::kFp16, DType::kFp32});
  t.require_rank(0, 2);
  t.require_same_dtype(0, 1);
  t.require_same_shape(0, 1);
  const Shape valid = valid_of(t.type(0));
  if (!same_static_shape(valid, valid_of(t.type(1)))) {
    t.value_error("arguments 'tile' and 'slope' must have the same valid shape, got " + shape_text(valid) +
                  " and " + shape_text(valid_of(t.type(1))));
  }
  if (!t.a5()) {
    const Type& tmp = t.type(2);
    t.require_dtype(2, {DType::kUInt8});
    t.require_rank(2, 2);
    const Shape tmp_valid = valid_of(tmp);
    const bool few_rows =
        valid[0].is_const() && tmp.shape[0].is_const() && tmp.shape[0].value < valid[0].value + 1;
    const bool few_cols =
        valid[1].is_const() && tmp_valid[1].is_const() && tmp_valid[1].value < (valid[1].value + 7) / 8;
    if (few_rows || few_cols) {
      t.value_error(
          "argument 'tmp' must have at least valid rows + 1 rows and ceil(valid columns / 8) columns for a "
          "tile with valid shape " +
          shape_text(valid) + " on the 'a2a3' platform, got " + shape_text(tmp.shape));
    }
  }
  return t.value(t.type(0).shape, t.type(0).dtype, t.type(0).valid);
}

}  // namespace pypto::ir::infer
