// SPDX-License-Identifier: Apache-2.0
// Gathers (02 sections 19.1 and 19.2).
#include <algorithm>

#include "core/ir/infer/gather.h"

namespace pypto::ir::infer {

MaskColumns mask_columns(Typer& t, int i) {
  if (!t.has(i)) t.type_error("missing required argument 'mask_pattern'");
  const ExprPtr& e = t.arg(i);
  if (e->kind != ExprKind::kInt || e->type->dtype == DType::kBool) {
    t.bad(i, "a constant mask pattern", "pl.tile.MaskPattern.P0101 or a number from 1 to 7");
  }
  const int64_t pattern = e->int_value;
  if (pattern < 1 || pattern > 7) {
    t.value_error("mask_pattern must be a pl.tile.MaskPattern or a number from 1 to 7, got " +
                  std::to_string(pattern));
  }
  t.drop(i);
  t.attrs.set(AttrKey::k_mask_pattern, pattern);
  return {pattern, pattern <= 2 ? 2 : pattern <= 6 ? 4 : 1};
}

namespace {

void require_gather_dtype(const Typer& t, int i) {
  t.require_dtype(i, {DType::kFp16, DType::kFp32, DType::kInt16, DType::kInt32}, "pl.cast it first");
}

/// INT32, or INT16 beside 16-bit elements (02 O-1902, O-1903).
void require_index_dtype(const Typer& t, int index, int source) {
  if (dtype_bits(t.type(source).dtype) == 16) {
    t.require_dtype(index, {DType::kInt32, DType::kInt16}, "pl.cast the index to pl.INT32");
  } else {
    t.require_dtype(index, {DType::kInt32}, "pl.cast the index to pl.INT32");
  }
}

ExprPtr index_form(Typer& t) {
  t.tensor_only({0, 2});
  const Type& x = t.type(0);
  const Type& index = t.type(2);
  if (x.rank() < 2 || x.rank() != index.rank()) {
    t.value_error("'input' and 'index' must have equal ranks of 2 or more, got shapes " +
                  shape_text(x.shape) + " and " + shape_text(index.shape));
  }
  require_gather_dtype(t, 0);
  require_index_dtype(t, 2, 0);
  const auto given = t.constant(1);
  if (!given) t.bad(1, "a constant axis number");
  const int64_t axis = *given < 0 ? *given + x.rank() : *given;
  if (axis < 0 || axis >= x.rank()) {
    t.value_error("'dim' " + std::to_string(*given) + " is out of range for rank " +
                  std::to_string(x.rank()));
  }
  t.drop(1);
  t.attrs.set(AttrKey::k_dim, axis);
  for (size_t k = 0; k < x.shape.size(); ++k) {
    if (static_cast<int64_t>(k) == axis) continue;
    if (x.shape[k].is_const() && index.shape[k].is_const() && index.shape[k].value > x.shape[k].value) {
      t.value_error("'index' has extent " + dim_text(index.shape[k]) + " on axis " + std::to_string(k) +
                    ", more than the input's " + dim_text(x.shape[k]));
    }
  }
  return t.value(index.shape, x.dtype);
}

/// `output_dtype` of the same width reinterprets the bits (02 O-1904).
DType output_dtype(Typer& t, int i, DType source) {
  const DType out = t.dtype_attr(i, AttrKey::k_output_dtype, source);
  if (dtype_bits(out) != dtype_bits(source)) {
    t.type_error("output_dtype " + std::string(dtype_text(out)) + " must have the bit width of " +
                     std::string(dtype_text(source)),
                 "it reinterprets bits; pl.cast converts values");
  }
  return out;
}

ExprPtr mask_form(Typer& t, int pattern_at, int dtype_at) {
  t.require_rank(0, 2);
  const Type& x = t.type(0);
  const MaskColumns mask = mask_columns(t, pattern_at);
  const DType out = output_dtype(t, dtype_at, x.dtype);
  if (x.shape[1].is_const() && x.shape[1].value % mask.stride != 0) {
    t.value_error("mask pattern " + std::to_string(mask.pattern) + " needs a multiple of " +
                  std::to_string(mask.stride) + " columns, got " + dim_text(x.shape[1]));
  }
  Dim columns = x.shape[1];
  if (columns.is_const())
    columns = Dim(columns.value / mask.stride);
  else if (mask.stride != 1)
    columns = Dim();
  return t.value({x.shape[0], columns}, out);
}

/// Result of the compare form: (dst [M, out_cols] INT32, counts [1, M]) (02 O-1906).
ExprPtr compare_form(Typer& t, int kvalue, int mode, int offset, int cols, int counts) {
  t.require_rank(0, 2);
  require_gather_dtype(t, 0);
  const Type& x = t.type(0);
  if (!t.has(kvalue)) t.type_error("missing required argument 'kvalue'");
  const DType own = t.numeric(kvalue, x.dtype);
  if (own != x.dtype) {
    t.type_error("argument 'kvalue' has dtype " + std::string(dtype_text(own)) +
                     "; it must be the source's " + std::string(dtype_text(x.dtype)),
                 "pl.cast it");
  }
  t.code_attr(mode, AttrKey::k_cmp_mode, {"eq", "ne", "lt", "le", "gt", "ge"}, 0);
  t.int_attr(offset, AttrKey::k_offset, 0);
  if (!t.has(cols)) t.type_error("missing required argument 'out_cols'");
  const int64_t out_cols = t.int_attr(cols, AttrKey::k_out_cols);
  if (out_cols <= 0) t.value_error("argument 'out_cols' must be positive, got " + std::to_string(out_cols));
  const DType count_dtype = t.dtype_attr(counts, AttrKey::k_count_dtype, DType::kInt32);
  if (count_dtype != DType::kInt32 && count_dtype != DType::kUInt32) {
    t.type_error("argument 'count_dtype' must be INT32 or UINT32, got " +
                 std::string(dtype_text(count_dtype)));
  }
  return t.result(tuple_type({t.value_type({x.shape[0], Dim(out_cols)}, DType::kInt32),
                              t.value_type({Dim(1), x.shape[0]}, count_dtype)}));
}

}  // namespace

ExprPtr type_gather(Typer& t) {
  if (t.is_tile(0)) {
    t.bad(0, "a Tensor",
          "on Tiles use pl.tile.gather (flat index), pl.tile.gather_mask or pl.tile.gather_compare");
  }
  t.tensor_only({0});
  const bool offset_given = t.has(8) && t.constant(8) != int64_t{0};
  const bool index = t.has(1) || t.has(2);
  const bool mask = t.has(3) || t.has(4);
  const bool compare = t.has(5) || t.has(6) || t.has(7) || t.has(9) || offset_given;
  const bool complete = index ? t.has(1) && t.has(2) : mask ? t.has(3) : compare && t.has(5) && t.has(7);
  if (index + mask + compare != 1 || !complete) {
    t.type_error(
        "takes exactly one of three forms: index (dim, index), mask (mask_pattern[, output_dtype]), compare "
        "(kvalue, cmp_mode, out_cols[, offset, count_dtype])",
        "give the arguments of one form");
  }
  if (!compare) t.drop(8);
  if (index) return index_form(t);
  if (mask) return mask_form(t, 3, 4);
  return compare_form(t, 5, 6, 8, 7, 9);
}

ExprPtr type_tile_gather(Typer& t) {
  t.tile_only({0, 1, 2});
  require_index_dtype(t, 1, 0);
  return t.value(t.type(1).shape, t.type(0).dtype);
}

ExprPtr type_gather_mask(Typer& t) {
  t.dispatch({0});
  return mask_form(t, 1, 2);
}

ExprPtr type_gather_compare(Typer& t) {
  t.tile_only({0, 2});
  t.require_dtype(2, {DType::kUInt8});
  return compare_form(t, 1, 3, 4, 5, 6);
}

ExprPtr type_tensor_gather_compare(Typer& t) {
  t.tensor_only({0});
  return compare_form(t, 1, 2, 3, 4, 5);
}

ExprPtr type_gatherb(Typer& t) {
  t.tile_only({0, 1});
  t.require_rank(0, 2);
  t.require_rank(1, 2);
  t.require_dtype(1, {DType::kUInt32}, "byte offsets are UINT32");
  const DType own = t.type(0).dtype;
  if (dtype_bits(own) != 8 && dtype_bits(own) != 16 && dtype_bits(own) != 32) {
    t.type_error("argument 'src' has dtype " + std::string(dtype_text(own)) +
                 "; expected an 8/16/32-bit dtype");
  }
  const DType out = t.dtype_attr(2, AttrKey::k_output_dtype, own);
  if (dtype_bits(out) != 8 && dtype_bits(out) != 16 && dtype_bits(out) != 32) {
    t.type_error("output_dtype " + std::string(dtype_text(out)) + " must be an 8/16/32-bit dtype");
  }
  const Type& offset = t.type(1);
  if (offset.shape[1].is_const() && offset.shape[1].value % 8 != 0) {
    t.value_error("argument 'offset' must have a multiple of 8 columns, got " + dim_text(offset.shape[1]));
  }
  const int64_t per_block = 32 / dtype_bytes(out);
  const Shape valid = valid_of(offset);
  return t.value({offset.shape[0], dim_product(offset.shape[1], Dim(per_block))}, out,
                 {valid[0], valid[1].is_const() ? Dim(valid[1].value * per_block) : Dim()});
}

// ---- section 19.2

ExprPtr type_gather_row(Typer& t) {
  const bool tile = t.is_tile(0);
  if (!tile && !t.is_tensor(0)) t.bad(0, "an on-chip Tensor or a Tile");
  if (t.form == kFormTensor && tile) t.dispatch({0});
  if (t.form == kFormTile && !tile) t.dispatch({0});
  t.level = tile ? OperandLevel::kTile : OperandLevel::kTensor;
  const Type& dst = t.type(0);
  if (!tile && dst.place != TensorPlace::kOnChip) {
    t.bad(0, "an on-chip Tensor (pl.create_l1, pl.create_tensor) or a Tile",
          "gather_row copies global memory into on-chip memory; copy between tensors with pl.assemble");
  }
  if (tile && dst.space != MemorySpace::kVec && dst.space != MemorySpace::kMat &&
      dst.space != MemorySpace::kUnset) {
    t.value_error(std::string("argument '") + t.param(0) + "' is in " + space_name(dst.space) +
                  "; it must be in Mat or Vec");
  }
  if (t.is_tile(1))
    t.bad(1, "a Tensor in global memory or a DistributedTensor", "a Tile source is copied with pl.assemble");
  const Type& src = t.global(1);
  t.require_same_dtype(0, 1);
  const auto dst_offset = t.entries(2, dst.rank());
  const auto src_offset = t.entries(3, src.rank());
  const Shape shapes = t.static_extents(4, src.rank());
  const bool transpose = t.bool_attr(5, AttrKey::k_transpose);
  Shape moved = shapes;
  if (t.has(6)) {
    if (transpose)
      t.value_error("'valid_shape' cannot be combined with transpose=True", "leave one of them out");
    moved = t.extents(6, src.rank(), 0);
    for (size_t k = 0; k < moved.size(); ++k) {
      if (moved[k].is_const() && moved[k].value > shapes[k].value) {
        t.value_error("valid extent " + dim_text(moved[k]) + " on axis " + std::to_string(k) +
                      " exceeds the window extent " + dim_text(shapes[k]));
      }
    }
  }
  t.check_write(src, src_offset, moved, t.param(1));
  if (transpose) {
    if (moved.size() != 2 || dst.rank() != 2)
      t.value_error("transpose=True needs rank-2 source and destination");
    std::swap(moved[0], moved[1]);
  }
  while (moved.size() > static_cast<size_t>(dst.rank())) {
    if (!moved[0].is_const() || moved[0].value != 1) {
      t.value_error("a window of shape " + shape_text(shapes) + " does not fit a destination of rank " +
                    std::to_string(dst.rank()));
    }
    moved.erase(moved.begin());
  }
  t.check_write(dst, dst_offset, moved, t.param(0));
  if (dst.storage) dst.storage->written = true;
  return t.in_place(0);
}

ExprPtr type_paged_gather(Typer& t) {
  t.tensor_only({0, 1, 2});
  t.require_rank(0, 2);
  t.require_dtype(0, {DType::kFp16, DType::kBf16, DType::kFp32, DType::kInt8});
  for (const int i : {1, 2}) {
    t.require_dtype(i, {DType::kInt32}, "indices are INT32");
    const Shape& s = t.type(i).shape;
    if (s.empty() || s.size() > 2 || (s.size() == 2 && provably_differ(s[0], Dim(1)))) {
      t.value_error("argument '" + t.param(i) + "' must have shape [n] or [1, n], got " + shape_text(s));
    }
  }
  const auto positive = [&](int i, AttrKey key) {
    const int64_t v = t.int_attr(i, key);
    if (v <= 0)
      t.value_error("argument '" + std::string(attr_name(key)) + "' must be positive, got " +
                    std::to_string(v));
    return v;
  };
  positive(3, AttrKey::k_block_size);
  const int64_t size = positive(4, AttrKey::k_size);
  const int64_t most = positive(5, AttrKey::k_max_indices);
  const Dim& count = t.type(1).shape.back();
  if (count.is_const() && count.value > most) {
    t.value_error("'indices' has " + dim_text(count) + " entries, more than max_indices " +
                  std::to_string(most));
  }
  const auto space = static_cast<MemorySpace>(
      t.enum_attr(6, AttrKey::k_space, "MemorySpace", static_cast<int64_t>(MemorySpace::kMat), 10));
  if (space != MemorySpace::kMat && space != MemorySpace::kVec) {
    t.value_error(std::string("argument 'space' must be Mat or Vec, got ") + space_name(space));
  }
  const int64_t column = t.int_attr(7, AttrKey::k_col_off, 0);
  const Dim& width = t.type(0).shape[1];
  if (column < 0 || (width.is_const() && column + size > width.value)) {
    t.value_error("columns [" + std::to_string(column) + ", " + std::to_string(column + size) +
                  ") lie outside the source's " + dim_text(width));
  }
  const bool transposed = t.bool_attr(8, AttrKey::k_is_trans);
  if (transposed && space != MemorySpace::kMat) t.value_error("is_trans=True needs space=Mat");
  t.bool_attr(9, AttrKey::k_is_b_matrix);
  const Shape shape = transposed ? Shape{Dim(size), Dim(most)} : Shape{Dim(most), Dim(size)};
  auto type = std::make_shared<Type>(*t.value_type(shape, t.type(0).dtype));
  type->space = space;
  return t.result(type);
}

// ---- mgather

namespace {

void check_mgather_dtype(const Typer& t, DType d) {
  switch (d) {
    case DType::kFp8E4M3FN:
    case DType::kFp8E5M2:
    case DType::kHf8:
      t.require_a5("mgather with dtype " + std::string(dtype_text(d)));
      return;
    default:
      t.require_dtype(0, {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32,
                          DType::kUInt32, DType::kFp16, DType::kBf16, DType::kFp32});
  }
}

}  // namespace

ExprPtr type_mgather(Typer& t) {
  t.level = OperandLevel::kTile;
  if (t.is_tile(0)) t.bad(0, "a Tensor in global memory or a DistributedTensor");
  const Type& mem = t.global(0);
  check_mgather_dtype(t, mem.dtype);
  const bool row = t.mode_attr(2, AttrKey::k_coalesce, {"row", "elem"}, 0) == "row";
  t.mode_attr(3, AttrKey::k_gather_oob, {"undefined", "clamp", "wrap", "zero"}, 0);
  const auto space = static_cast<MemorySpace>(
      t.enum_attr(4, AttrKey::k_target_memory, "MemorySpace", static_cast<int64_t>(MemorySpace::kVec), 10));
  if (space != MemorySpace::kVec && space != MemorySpace::kMat) {
    t.value_error(std::string("target_memory must be Vec or Mat, got ") + space_name(space));
  }
  const bool to_mat = space == MemorySpace::kMat;
  const Type& idx =
      to_mat ? (t.is_tile(1) ? (t.bad(1, "an INT32 Tensor in global memory (target_memory=Mat)"), t.type(1))
                             : t.global(1))
             : t.tile(1);
  t.require_dtype(1, {DType::kInt32}, "indices are INT32");
  t.require_rank(1, 2);
  if (row) t.require_rank(0, 2);
  Shape shape, valid;
  const Shape idx_valid = valid_of(idx);
  if (row) {
    const bool column =
        !to_mat && !provably_differ(idx.shape[1], Dim(1)) && provably_differ(idx.shape[0], Dim(1));
    if (column) t.require_a5("an index in column form [R, 1]");
    if (!column && provably_differ(idx.shape[0], Dim(1))) {
      t.value_error("argument 'idx' must have shape [1, R], got " + shape_text(idx.shape));
    }
    const size_t axis = column ? 0 : 1;
    shape = {idx.shape[axis], mem.shape[1]};
    valid = {idx_valid[axis], mem.shape[1]};
  } else {
    shape = idx.shape;
    valid = idx_valid;
  }
  for (size_t k = 0; k < 2; ++k) {
    if (!shape[k].is_const()) {
      t.value_error("the gathered tile needs constant extents, got " + shape_text(shape),
                    "use a source and an index of static shape");
    }
  }
  const int64_t row_bytes = shape[1].value * dtype_bytes(mem.dtype);
  if (!to_mat && !t.a5()) {
    if (mem.layout != TensorLayout::kND) t.value_error("mgather on the 'a2a3' platform needs an ND source");
    if (row_bytes % 32 != 0) {
      t.value_error(
          "mgather on the 'a2a3' platform needs physical rows that are a multiple of 32 bytes, got " +
          std::to_string(row_bytes));
    }
  }
  if (to_mat) {
    const int64_t columns = 32 / dtype_bytes(mem.dtype);
    if (shape[0].value % 16 != 0 || shape[1].value % columns != 0) {
      t.value_error("a Mat result needs a multiple of 16 rows and of " + std::to_string(columns) +
                    " columns, got " + shape_text(shape));
    }
    if (!row) {
      if (!t.has(5)) t.type_error("coalesce=\"elem\" to Mat needs a 'scratch' tensor in global memory");
      const Type& scratch = t.global(5);
      t.require_same_dtype(0, 5);
      const int64_t cells = scratch.static_elements();
      if (cells >= 0 && cells < shape[0].value * shape[1].value) {
        t.value_error("'scratch' has " + std::to_string(cells) + " elements, the result " +
                      std::to_string(shape[0].value * shape[1].value));
      }
      const auto same = [&](int i) { return t.type(i).storage && t.type(i).storage == scratch.storage; };
      if (same(0) || same(1)) t.value_error("'scratch' must be distinct from 'mem' and 'idx'");
    }
    if (t.has(6)) {
      const Shape given = t.extents(6, 2, 0);
      for (size_t k = 0; k < 2; ++k) {
        if (!given[k].is_const() || given[k].value > shape[k].value) {
          t.value_error("'valid_shape' must be constant and within " + shape_text(shape));
        }
      }
      valid = given;
    }
  } else if (t.has(6)) {
    t.value_error("'valid_shape' is for target_memory=Mat; in Vec the valid region follows 'idx'");
  }
  return t.tile_value(shape, mem.dtype, space, valid);
}

}  // namespace pypto::ir::infer
