// SPDX-License-Identifier: Apache-2.0
// Scatters (02 section 19.3) and sorting (section 20).
#include <algorithm>

#include "core/ir/infer/gather.h"

namespace pypto::ir::infer {
namespace {

void require_scatter_dtypes(const Typer& t, int target, int index) {
  t.require_dtype(target,
                  {DType::kInt8, DType::kInt16, DType::kInt32, DType::kFp16, DType::kBf16, DType::kFp32});
  const bool wide = dtype_bytes(t.type(target).dtype) == 4;
  t.require_dtype(
      index, {wide ? DType::kInt32 : DType::kInt16},
      wide ? "4-byte elements take an INT32 index" : "1- and 2-byte elements take an INT16 index");
  const int64_t cells = t.type(target).static_elements();
  if (!wide && cells > 32768) {
    t.value_error("an INT16 index reaches 32768 cells, the target has " + std::to_string(cells),
                  "use a 4-byte dtype or a smaller target");
  }
}

/// Mask scatter: `dst` has `stride` times the columns of `src` (02 O-1921).
void check_mask_scatter(const Typer& t, int src, int dst, const MaskColumns& mask) {
  t.require_rank(src, 2);
  t.require_rank(dst, 2);
  t.require_same_dtype(src, dst);
  const Shape& from = t.type(src).shape;
  const Shape& to = t.type(dst).shape;
  const bool columns = from[1].is_const() && to[1].is_const() && to[1].value != from[1].value * mask.stride;
  if (columns || provably_differ(from[0], to[0])) {
    t.value_error("'" + t.param(dst) + "' of shape " + shape_text(to) + " must have the rows and " +
                  std::to_string(mask.stride) + " times the columns of '" + t.param(src) + "' " +
                  shape_text(from));
  }
}

ExprPtr scatter_index_form(Typer& t) {
  t.tensor_only({0, 2, 3});
  t.require_rank(0, 2);
  const auto given = t.constant(1);
  if (!given) t.bad(1, "a constant axis number");
  if (*given != -1 && *given != 1) t.value_error("'dim' must be -1 or 1, got " + std::to_string(*given));
  t.drop(1);
  t.attrs.set(AttrKey::k_dim, int64_t{1});
  t.require_rank(2, 2);
  t.require_same_shape(2, 3);
  t.require_same_dtype(0, 3);
  require_scatter_dtypes(t, 0, 2);
  const Shape& x = t.type(0).shape;
  const Shape& index = t.type(2).shape;
  for (size_t k = 0; k < 2; ++k) {
    if (x[k].is_const() && index[k].is_const() && index[k].value > x[k].value) {
      t.value_error("'index' has extent " + dim_text(index[k]) + " on axis " + std::to_string(k) +
                    ", more than the input's " + dim_text(x[k]));
    }
  }
  return t.value(x, t.type(0).dtype, t.type(0).valid);
}

}  // namespace

ExprPtr type_scatter(Typer& t) {
  if (t.is_tile(0))
    t.bad(0, "a Tensor", "on Tiles use pl.tile.scatter(dst, src, indexes) or pl.tile.scatter_mask");
  t.tensor_only({0});
  const bool index = t.has(1) || t.has(2) || t.has(3);
  const bool mask = t.has(4) || t.has(5);
  const bool complete = index ? t.has(1) && t.has(2) && t.has(3) : t.has(4) && t.has(5);
  if (index == mask || !complete) {
    t.type_error("takes exactly one of two forms: index (dim, index, src) or mask (mask_pattern, dst)",
                 "give the arguments of one form");
  }
  if (index) return scatter_index_form(t);
  t.tensor_only({0, 5});
  const MaskColumns columns = mask_columns(t, 4);
  check_mask_scatter(t, 0, 5, columns);
  return t.value(t.type(5).shape, t.type(5).dtype, t.type(5).valid);
}

ExprPtr type_tensor_scatter_mask(Typer& t) {
  t.tensor_only({0, 1});
  const MaskColumns columns = mask_columns(t, 2);
  check_mask_scatter(t, 0, 1, columns);
  return t.value(t.type(1).shape, t.type(1).dtype, t.type(1).valid);
}

ExprPtr type_tile_scatter(Typer& t) {
  t.tile_only({0, 1, 2});
  t.require_same_dtype(0, 1);
  t.require_same_shape(1, 2);
  require_scatter_dtypes(t, 0, 2);
  if (t.type(0).storage) t.type(0).storage->written = true;
  return t.in_place(0);
}

ExprPtr type_scatter_mask(Typer& t) {
  t.tile_only({0, 1});
  const MaskColumns columns = mask_columns(t, 2);
  check_mask_scatter(t, 1, 0, columns);
  if (t.type(0).storage) t.type(0).storage->written = true;
  return t.in_place(0);
}

ExprPtr type_scatter_update(Typer& t) {
  // The positional style (input, index, src) has no dim: what follows moves one place on (02 O-1923).
  if (t.has(1) && t.type(1).is_array_like()) {
    if (t.has(3) && t.has(2)) t.type_error("'dim' must be a constant axis number, got " + t.got(1));
    if (!t.has(3)) t.args[3] = t.args[2];
    t.args[2] = t.args[1];
    t.args[1] = nullptr;
  }
  if (!t.has(2) || !t.has(3) || !t.type(2).is_array_like() || !t.type(3).is_array_like()) {
    t.type_error("takes (input, dim, index, src), (input, index, src) or the keywords dim=, index=, src=",
                 "index and src are arrays of the input's kind");
  }
  t.dispatch({0, 2, 3});
  int64_t axis = -2;
  if (t.has(1)) {
    const auto given = t.constant(1);
    if (!given) t.bad(1, "a constant axis number");
    axis = *given;
  }
  if (axis != -2) t.value_error("'dim' must be -2, got " + std::to_string(axis));
  t.drop(1);
  t.attrs.set(AttrKey::k_dim, axis);
  const Type& x = t.type(0);
  const Type& index = t.type(2);
  const Type& src = t.type(3);
  t.require_same_dtype(0, 3);
  if (!is_int(index.dtype)) t.bad(2, "an integer array");
  t.require_rank(2, 2);
  if ((x.rank() != 2 && x.rank() != 4) || src.rank() != x.rank()) {
    t.value_error("'input' and 'src' must both have rank 2 or both rank 4, got " + shape_text(x.shape) +
                  " and " + shape_text(src.shape));
  }
  const bool flat = x.rank() == 2;
  bool ok = !provably_differ(x.shape.back(), src.shape.back());
  if (flat) {
    ok = ok && !provably_differ(src.shape[0], dim_product(index.shape[0], index.shape[1]));
  } else {
    ok = ok && !provably_differ(src.shape[0], index.shape[0]) &&
         !provably_differ(src.shape[1], index.shape[1]) && !provably_differ(src.shape[2], Dim(1)) &&
         !provably_differ(x.shape[2], Dim(1));
  }
  if (!ok) {
    t.value_error("shapes do not fit: input " + shape_text(x.shape) + ", index " + shape_text(index.shape) +
                      ", src " + shape_text(src.shape),
                  flat ? "src is [b*s, d] for an index [b, s]" : "src is [b, s, 1, d] for an index [b, s]");
  }
  if (t.tile_level()) {
    if (x.storage) x.storage->written = true;
    return t.in_place(0);
  }
  return t.value(x.shape, x.dtype, x.valid);
}

ExprPtr type_mscatter(Typer& t) {
  t.tile_only({0, 1});
  t.require_a5("mscatter");
  t.require_dtype(0, {DType::kFp16, DType::kFp32, DType::kInt16, DType::kInt32});
  t.require_dtype(1, {DType::kInt32}, "indices are INT32");
  t.require_same_shape(0, 1);
  static_cast<void>(t.global(2));
  t.require_same_dtype(0, 2);
  if (t.type(2).storage) t.type(2).storage->written = true;
  return t.in_place(2);
}

// ---- section 20

ExprPtr type_sort32(Typer& t) {
  t.dispatch({0, 1});
  t.require_dtype(0, {DType::kFp16, DType::kFp32}, "pl.cast it first");
  t.require_dtype(1, {DType::kUInt32, DType::kInt32},
                  "make the index with pl.arange(0, shape, dtype=pl.UINT32)");
  t.require_same_shape(0, 1);
  const Type& x = t.type(0);
  if (x.shape.empty()) t.value_error("argument 'src' has rank 0");
  const Dim& last = x.shape.back();
  if (last.is_const() && last.value % 32 != 0) {
    t.value_error("the last dimension must be a multiple of 32, got " + dim_text(last),
                  "pad it with pl.fillpad_expand");
  }
  Shape shape = x.shape;
  shape.back() = dim_product(last, Dim(x.dtype == DType::kFp32 ? 2 : 4));
  return t.value(std::move(shape), x.dtype);
}

namespace {

/// Runs of one operand (02 O-2002).
ExprPtr merge_runs(Typer& t) {
  if (t.has(1) || t.has(2) || t.has(3)) {
    t.type_error(
        "'block_len' merges the runs of one operand and cannot be combined with 'src1', 'src2' or 'src3'",
        "leave block_len out to merge several operands");
  }
  t.dispatch({0});
  t.require_dtype(0, {DType::kFp16, DType::kFp32}, "pl.cast it first");
  if (const auto c = t.constant(6)) {
    if (*c <= 0 || *c % 64 != 0) {
      t.value_error("'block_len' must be a positive multiple of 64, got " + std::to_string(*c));
    }
    t.int_attr(6, AttrKey::k_block_len);
  } else {
    if (!t.is_scalar(6) || !is_int(t.type(6).dtype)) t.bad(6, "a constant or an INT32 scalar");
    t.integer_as(6, DType::kInt32);
  }
  t.bool_attr(5, AttrKey::k_exhausted);
  return t.value(t.type(0).shape, t.type(0).dtype);
}

/// Two to four operands (02 O-2003).
ExprPtr merge_operands(Typer& t) {
  if (!t.has(1)) {
    t.type_error("needs 'block_len' (runs of one operand) or 'src1' (several operands)",
                 "pl.mrgsort(pairs, block_len=64)");
  }
  if (t.has(3) && !t.has(2)) t.type_error("'src3' is given without 'src2'");
  const int count = t.has(3) ? 4 : t.has(2) ? 3 : 2;
  if (count == 4)
    t.dispatch({0, 1, 2, 3});
  else if (count == 3)
    t.dispatch({0, 1, 2});
  else
    t.dispatch({0, 1});
  Dim total(0);
  for (int i = 0; i < count; ++i) {
    t.require_dtype(i, {DType::kFp16, DType::kFp32}, "pl.cast it first");
    t.require_same_dtype(0, i);
    if (t.type(i).rank() != t.type(0).rank() || t.type(i).rank() == 0) {
      t.value_error("operands must have equal ranks, got " + shape_text(t.type(0).shape) + " and " +
                    shape_text(t.type(i).shape));
    }
    for (size_t k = 0; k + 1 < t.type(i).shape.size(); ++k) {
      if (provably_differ(t.type(0).shape[k], t.type(i).shape[k])) {
        t.value_error("operands must have equal rows, got " + shape_text(t.type(0).shape) + " and " +
                      shape_text(t.type(i).shape));
      }
    }
    total = dim_sum(total, t.type(i).shape.back());
  }
  t.bool_attr(5, AttrKey::k_exhausted);
  if (t.tile_level()) {
    if (!t.has(4)) t.type_error("merging several Tiles needs 'tmp', a Tile of the output's shape");
    const Type& tmp = t.tile(4);
    t.require_same_dtype(0, 4);
    return t.value(tmp.shape, t.type(0).dtype);
  }
  Shape shape = t.type(0).shape;
  shape.back() = total;
  return t.value(std::move(shape), t.type(0).dtype);
}

}  // namespace

ExprPtr type_mrgsort(Typer& t) { return t.has(6) ? merge_runs(t) : merge_operands(t); }

ExprPtr type_mrgsort_format1(Typer& t) {
  t.tile_only({0});
  t.row = &op_row(OpId::k_mrgsort);
  t.args = {t.args[0], nullptr, nullptr, nullptr, nullptr, nullptr, t.args[1]};
  return merge_runs(t);
}

ExprPtr type_mrgsort_format2(Typer& t) {
  // The printed form has tmp right behind the last operand.
  if (!t.has(4)) {
    const int last = t.has(3) ? 3 : 2;
    if (!t.has(last)) t.type_error("merging several Tiles needs 'tmp', a Tile of the output's shape");
    t.args[4] = t.args[static_cast<size_t>(last)];
    t.drop(last);
  }
  t.tile_only({0, 1, 4});
  t.row = &op_row(OpId::k_mrgsort);
  t.args.resize(7);
  return merge_operands(t);
}

}  // namespace pypto::ir::infer
