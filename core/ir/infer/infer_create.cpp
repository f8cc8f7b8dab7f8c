// SPDX-License-Identifier: Apache-2.0
// Creation and generation (02 section 5).
#include <cmath>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

DType required_dtype(Typer& t, int i, DType fallback = DType::kNone) {
  const DType d = t.dtype_attr(i, AttrKey::k_dtype, fallback);
  if (d == DType::kNone) t.type_error("missing required argument '" + t.param(i) + "'");
  if (d == DType::kTaskId)
    t.type_error("dtype task_id is no element type of a Tensor or Tile", "use pl.array.create");
  if (t.in_kernel()) t.require_storable(d);
  return d;
}

/// Constant fill converted to the element dtype (02 O-504); kept exact for integers.
void fill_attr(Typer& t, int i, DType dtype, AttrKey key) {
  const auto number = const_number(t.arg(i));
  if (!number || t.type(i).dtype == DType::kBool) {
    t.bad(i, "a numeric constant",
          "a run-time scalar cannot fill: use pl.expands, or multiply a tile of ones by it");
  }
  const ExprPtr value = cast_scalar(t.arg(i), dtype);
  if (value->kind == ExprKind::kInt) {
    if (t.arg(i)->kind == ExprKind::kInt && t.arg(i)->untyped && !fits_dtype(t.arg(i)->int_value, dtype)) {
      fail(ErrorClass::kParserTypeError, t.name() + ": the constant " + std::to_string(t.arg(i)->int_value) +
                                             " does not fit dtype " + std::string(dtype_text(dtype)));
    }
    t.attrs.set(key, value->int_value);
  } else {
    t.attrs.set(key, value->float_value);
  }
  t.drop(i);
}

/// `init_value` of create_tensor (02 O-501).
void init_attr(Typer& t, int i, DType dtype) {
  if (!t.has(i)) return;
  const auto number = const_number(t.arg(i));
  if (!number || t.type(i).dtype == DType::kBool) t.bad(i, "a numeric constant");
  if (!std::isfinite(*number)) t.value_error("init_value must be finite, got " + t.got(i));
  if (is_float(dtype)) {
    if (*number != 0 && dtype_bits(dtype) < 32) {
      t.value_error("init_value " + t.got(i) + " is not supported for dtype " +
                        std::string(dtype_text(dtype)) + "; below 32 bits only 0 is",
                    "initialise with pl.full inside a kernel");
    }
    t.attrs.set(AttrKey::k_init_value, round_to_dtype(*number, dtype));
  } else {
    if (std::trunc(*number) != *number || std::fabs(*number) > 9007199254740992.0) {
      t.value_error("init_value " + t.got(i) + " must be a whole number of at most 2^53 for dtype " +
                    std::string(dtype_text(dtype)));
    }
    const auto whole = static_cast<int64_t>(*number);
    if (dtype != DType::kBool && !fits_dtype(whole, dtype)) {
      t.value_error("init_value " + t.got(i) + " does not fit dtype " + std::string(dtype_text(dtype)));
    }
    t.attrs.set(AttrKey::k_init_value, whole);
  }
  t.drop(i);
}

}  // namespace

ExprPtr type_create_tensor(Typer& t) {
  t.level = OperandLevel::kTensor;
  // Only literal zeros are wrong for certain: a symbol may be 0 at run time.
  Shape shape = t.extents(0, -1, 1);
  const DType dtype = t.dtype_attr(1, AttrKey::k_dtype);
  if (dtype == DType::kNone) t.bad(1, "a dtype such as pl.FP32");
  if (dtype == DType::kTaskId)
    t.type_error("dtype task_id is no element type of a Tensor", "use pl.array.create");
  const auto layout = t.enum_attr(2, AttrKey::k_layout, "TensorLayout", 0, 5);
  if (layout != 0) t.value_error("create_tensor makes ND tensors only", "leave layout out");
  t.bool_attr(3, AttrKey::k_manual_dep);
  init_attr(t, 4, dtype);
  const bool kernel = t.in_kernel();
  auto type = std::make_shared<Type>(
      *tensor_type(std::move(shape), dtype, kernel ? TensorPlace::kOnChip : TensorPlace::kGlobal));
  type->storage = std::make_shared<Storage>();
  type->storage->created = kernel;
  // A run-time extent cannot live on chip (01 L-186).
  type->storage->needs_global = kernel && !type->static_shape();
  return t.result(type);
}

ExprPtr type_create_tile(Typer& t) {
  t.level = OperandLevel::kTile;
  const Shape shape = t.static_extents(0);
  const DType dtype = required_dtype(t, 1);
  const auto space = static_cast<MemorySpace>(
      t.enum_attr(2, AttrKey::k_target_memory, "MemorySpace", static_cast<int64_t>(MemorySpace::kVec), 10));
  switch (space) {
    case MemorySpace::kVec:
    case MemorySpace::kMat:
    case MemorySpace::kLeft:
    case MemorySpace::kRight:
    case MemorySpace::kAcc:
    case MemorySpace::kBias:
      break;
    default:
      t.value_error(std::string("target_memory ") + space_name(space) +
                    " cannot hold a created tile; use Vec, Mat, Left, Right, Acc or Bias");
  }
  const bool transpose = t.bool_attr(3, AttrKey::k_transpose);
  const bool flat_given = t.has(4);
  const bool flat = t.bool_attr(4, AttrKey::k_flat_layout);
  if (transpose && (shape.size() != 2 || space != MemorySpace::kMat)) {
    t.value_error("transpose=True is only valid for rank-2 Mat tiles, got rank " +
                  std::to_string(shape.size()) + " in " + space_name(space));
  }
  if (flat_given && flat && (space != MemorySpace::kMat || transpose)) {
    t.value_error("flat_layout is only valid for Mat tiles without transpose");
  }
  return t.tile_value(shape, dtype, space);
}

ExprPtr type_create_l1(Typer& t) {
  t.level = OperandLevel::kTensor;
  Shape shape = t.static_extents(0);
  const DType dtype = required_dtype(t, 1);
  t.bool_attr(2, AttrKey::k_transpose);
  auto type = std::make_shared<Type>(*t.value_type(std::move(shape), dtype));
  type->space = MemorySpace::kMat;
  return t.result(type);
}

namespace {

ExprPtr full(Typer& t, bool tile) {
  t.level = tile ? OperandLevel::kTile : OperandLevel::kTensor;
  Shape shape = tile ? t.static_extents(0) : t.extents(0, -1, 1);
  const DType dtype = required_dtype(t, 1);
  fill_attr(t, 2, dtype, AttrKey::k_value);
  return t.value(std::move(shape), dtype);
}

ExprPtr arange(Typer& t, bool tile) {
  t.level = tile ? OperandLevel::kTile : OperandLevel::kTensor;
  const Shape shape = t.static_extents(1);
  const DType dtype = required_dtype(t, 2, DType::kInt32);
  if (dtype != DType::kInt16 && dtype != DType::kInt32 && dtype != DType::kUInt16 &&
      dtype != DType::kUInt32) {
    t.type_error("argument 'dtype' must be one of INT16, INT32, UINT16, UINT32, got " +
                 std::string(dtype_text(dtype)));
  }
  for (size_t k = 0; k + 1 < shape.size(); ++k) {
    if (shape[k].value != 1) {
      t.value_error("every dimension except the last must be 1, dimension " + std::to_string(k) + " of " +
                        shape_text(shape) + " is " + dim_text(shape[k]),
                    "make one row and spread it with pl.col_expand");
    }
  }
  if (shape.back().value == 1) t.value_error("the last dimension must not be 1, got " + shape_text(shape));
  t.bool_attr(3, AttrKey::k_descending);
  if (!t.is_scalar(0)) t.bad(0, "an integer scalar");
  const ExprPtr start = t.arg(0);
  if (start->kind == ExprKind::kInt && (start->untyped || start->type->dtype == DType::kIndex)) {
    t.integer_as(0, dtype);
  } else if (start->type->dtype != dtype) {
    t.type_error("argument 'start' has dtype " + std::string(dtype_text(start->type->dtype)) +
                     "; it must be " + std::string(dtype_text(dtype)) + ", the dtype of the result",
                 "pl.cast(start, pl." + std::string(dtype_info(dtype).member) + ")");
  }
  return t.value(shape, dtype);
}

void seed(Typer& t, int i) {
  if (!t.is_scalar(i)) t.bad(i, "an INT32 scalar or an integer literal");
  const ExprPtr e = t.arg(i);
  if (e->kind == ExprKind::kInt && e->type->dtype != DType::kBool) {
    // Seeds are 32-bit words: a literal may be written signed or unsigned.
    if (e->int_value < INT32_MIN || e->int_value > static_cast<int64_t>(UINT32_MAX)) {
      t.value_error("argument '" + t.param(i) + "' does not fit 32 bits: " + t.got(i));
    }
    t.args[static_cast<size_t>(i)] =
        int_const(wrap_to_dtype(e->int_value, DType::kInt32), DType::kInt32, e->span);
    return;
  }
  if (e->type->dtype != DType::kInt32 && e->type->dtype != DType::kUInt32) {
    t.bad(i, "an INT32 scalar or an integer literal", "pl.cast(value, pl.INT32)");
  }
}

ExprPtr random(Typer& t, bool tile) {
  t.level = tile ? OperandLevel::kTile : OperandLevel::kTensor;
  t.require_a5("random");
  for (int i = 0; i < 6; ++i) seed(t, i);
  const Shape shape = t.static_extents(6, -1);
  if (shape.size() != 2) t.value_error("argument 'shape' must have rank 2, got " + shape_text(shape));
  int at = 7;
  Shape valid;
  if (tile) {
    if (t.has(7)) {
      valid = t.extents(7, 2, 0);
      for (size_t k = 0; k < 2; ++k) {
        if (valid[k].is_const() && valid[k].value > shape[k].value) {
          t.value_error("valid_shape " + shape_text(valid) + " exceeds the shape " + shape_text(shape));
        }
        if (!valid[k].is_const()) valid[k] = Dim();
      }
    }
    at = 8;
  }
  const DType dtype = required_dtype(t, at, DType::kUInt32);
  if (dtype != DType::kInt32 && dtype != DType::kUInt32) {
    t.type_error("argument 'dtype' must be INT32 or UINT32, got " + std::string(dtype_text(dtype)));
  }
  const int64_t rounds = t.int_attr(at + 1, AttrKey::k_rounds, 10);
  if (rounds != 7 && rounds != 10)
    t.value_error("argument 'rounds' must be 7 or 10, got " + std::to_string(rounds));
  return t.value(shape, dtype, valid);
}

}  // namespace

ExprPtr type_full(Typer& t) { return full(t, false); }
ExprPtr type_tile_full(Typer& t) { return full(t, true); }
ExprPtr type_arange(Typer& t) { return arange(t, false); }
ExprPtr type_tile_arange(Typer& t) { return arange(t, true); }
ExprPtr type_random(Typer& t) { return random(t, false); }
ExprPtr type_tile_random(Typer& t) { return random(t, true); }

ExprPtr type_tri(Typer& t) {
  t.level = OperandLevel::kTile;
  const Shape shape = t.static_extents(1);
  if (shape.size() != 2) t.value_error("argument 'shape' must have rank 2, got " + shape_text(shape));
  Shape valid;
  if (t.has(2)) {
    valid = t.extents(2, 2, 0);
    for (size_t k = 0; k < 2; ++k) {
      if (valid[k].is_const() && valid[k].value > shape[k].value) {
        t.value_error("valid_shape " + shape_text(valid) + " exceeds the shape " + shape_text(shape));
      }
      if (!valid[k].is_const()) valid[k] = Dim();
    }
  }
  const DType dtype = required_dtype(t, 3, DType::kInt32);
  switch (dtype) {
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kInt32:
    case DType::kUInt32:
    case DType::kFp16:
    case DType::kFp32:
      break;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBf16:
      t.require_a5("tri with dtype " + std::string(dtype_text(dtype)));
      break;
    default:
      t.type_error(
          "argument 'dtype' must be one of INT8, UINT8, INT16, UINT16, INT32, UINT32, FP16, BF16, FP32, "
          "got " +
          std::string(dtype_text(dtype)));
  }
  t.bool_attr(4, AttrKey::k_upper);
  if (t.is_scalar(0) && t.constant(0)) {
    t.integer_as(0, DType::kInt32);
  } else if (!t.is_scalar(0) || t.type(0).dtype != DType::kInt32) {
    t.bad(0, "a constant or an INT32 scalar", "pl.cast(diagonal, pl.INT32)");
  }
  return t.value(shape, dtype, valid);
}

ExprPtr type_alloc(Typer& t) {
  t.enum_attr(0, AttrKey::k_memory_space, "MemorySpace", 0, 10);
  const int64_t size = t.int_attr(1, AttrKey::k_size);
  if (size <= 0)
    t.value_error("argument 'size' must be a positive number of bytes, got " + std::to_string(size));
  t.bool_attr(2, AttrKey::k_pinned);
  return t.result(simple_type(TypeKind::kPtr));
}

}  // namespace pypto::ir::infer
