// SPDX-License-Identifier: Apache-2.0
// Bulk transfers between global memory of two ranks: put and get (03 section 6.6).
#include <algorithm>

#include "core/ir/infer/pld.h"

namespace pypto::ir::infer {

namespace {

/// Positions of the parameters of the four rows.
struct Transfer {
  int dst_offsets, src_offsets, shape, atomic;
};

/// Bounds of one side's region (03 O-55).
void check_region(Typer& t, int operand, int list, const char* side, const Shape& extents) {
  const Type& x = t.type(operand);
  const auto offsets = t.entries(list, x.rank());
  for (size_t k = 0; k < offsets.size(); ++k) {
    const auto at = const_int(simplify(offsets[k]));
    if (at && *at < 0) {
      t.value_error(std::string(side) + "_offsets dimension " + std::to_string(k) +
                        " must be non-negative, got " + std::to_string(*at),
                    {}, "X-54");
    }
    const auto over = fold_sum(offsets[k], extents[k], x.shape[k]);
    if (over && *over > 0) {
      t.value_error(std::string(side) + " subregion dimension " + std::to_string(k) + " exceeds " + side +
                        " shape: offset " + dim_text(dim_of(offsets[k])) + " + extent " +
                        dim_text(extents[k]) + " > " + dim_text(x.shape[k]),
                    {}, "X-54");
    }
  }
}

/// Operands of put and get; returns the extents that move.
Shape transfer(Typer& t, bool put, const Transfer& at) {
  const int remote = put ? 0 : 2;
  const int local = put ? 2 : 0;
  const char* remote_name = put ? "dst" : "src";
  if (!t.has(remote) || !t.type(remote).is_window()) {
    t.type_error(std::string("expects a DistributedTensor ") + remote_name + ", got " + t.got(remote),
                 std::string("the ") + (put ? "written" : "read") + " side is a peer's slice of a window",
                 "X-3");
  }
  if (t.is_tile(local)) {
    t.bad(local, "a Tensor in global memory or a DistributedTensor",
          put ? "push a Tile with pld.tile.remote_store" : "read into a Tile with pld.tile.remote_load");
  }
  static_cast<void>(t.global(local));
  reject_block_scaled(t, 0);
  reject_block_scaled(t, 2);
  peer_operand(t, 1);
  const Type& dst = t.type(0);
  const Type& src = t.type(2);
  if (!same_dtype(dst.dtype, src.dtype)) {
    t.type_error("dst and src must have the same element type, got " + std::string(dtype_text(dst.dtype)) +
                     " and " + std::string(dtype_text(src.dtype)),
                 "cast on chip first", "X-22");
  }
  if (at.atomic >= 0) t.atomic_attr(at.atomic, dst.dtype);
  if (dst.storage) dst.storage->written = true;
  const int given = t.has(at.dst_offsets) + t.has(at.src_offsets) + t.has(at.shape);
  if (given == 0) {
    if (!same_static_shape(dst.shape, src.shape)) {
      t.value_error("dst and src must have the same shape, got " + shape_text(dst.shape) + " and " +
                        shape_text(src.shape),
                    "give dst_offsets, src_offsets and shape to move a region");
    }
    Shape moved = dst.shape;
    for (size_t k = 0; k < moved.size(); ++k) {
      if (!moved[k].is_const()) moved[k] = src.shape[k];
    }
    return moved;
  }
  if (given != 3) {
    t.value_error("dst_offsets, src_offsets and shape must be provided together", "give all three or none");
  }
  if (dst.rank() != src.rank()) {
    t.value_error("dst and src must have equal ranks, got " + shape_text(dst.shape) + " and " +
                  shape_text(src.shape));
  }
  const Shape extents = t.extents(at.shape, dst.rank(), 0);
  check_region(t, 0, at.dst_offsets, "dst", extents);
  check_region(t, 2, at.src_offsets, "src", extents);
  return extents;
}

int64_t chunk(Typer& t, int i, AttrKey key) {
  const int64_t v = t.int_attr(i, key, 0);
  if (v < 0)
    t.value_error(
        "argument '" + std::string(attr_name(key)) + "' must be non-negative, got " + std::to_string(v), {},
        "X-25");
  return v;
}

/// Vector memory that a staging tile can use (01 L-142).
int64_t staging_capacity(const Typer& t) { return t.a5() ? 245760 : 188416; }

/// Explicit pieces must fit vector memory (03 O-60); others are chosen after the passes.
void check_staging_size(const Typer& t, int64_t rows, int64_t cols, bool pipeline, bool chosen, DType dtype) {
  const int64_t row_bytes = cols * dtype_bytes(dtype);
  const int64_t needed = rows * row_bytes * (pipeline ? 2 : 1);
  const int64_t available = staging_capacity(t);
  if (!chosen || needed <= available) return;
  t.value_error("staging of " + std::to_string(rows) + " x " + std::to_string(cols) + " elements" +
                    (pipeline ? ", twice for pipeline=True," : "") + " needs " + std::to_string(needed) +
                    " bytes, vector memory has " + std::to_string(available),
                "smaller chunk_rows / chunk_cols, or leave them out", "X-25");
}

/// chunk_rows, chunk_cols, pipeline (03 O-58).
void staging(Typer& t, int first, const Shape& extents) {
  int64_t rows = chunk(t, first, AttrKey::k_chunk_rows);
  int64_t cols = chunk(t, first + 1, AttrKey::k_chunk_cols);
  const bool pipeline = t.bool_attr(first + 2, AttrKey::k_pipeline);
  Dim leading(1);
  for (size_t k = 0; k + 1 < extents.size(); ++k) {
    leading = leading.is_const() && extents[k].is_const() ? Dim(leading.value * extents[k].value) : Dim();
  }
  const Dim last = extents.empty() ? Dim(1) : extents.back();
  if (!leading.is_const() && rows == 0) {
    t.value_error(
        "a dynamic leading transfer dim needs a static chunk_rows (extents " + shape_text(extents) + ")",
        "chunk_rows=<rows per piece>", "X-25");
  }
  if (!last.is_const() && cols == 0) {
    t.value_error(
        "a dynamic last transfer dim needs a static chunk_cols (extents " + shape_text(extents) + ")",
        "chunk_cols=<columns per piece>", "X-25");
  }
  if (pipeline && (rows == 0 || cols == 0)) {
    t.value_error("pipeline=True requires both chunk_rows>0 and chunk_cols>0, got " + std::to_string(rows) +
                      " and " + std::to_string(cols),
                  {}, "X-25");
  }
  const bool chosen = rows > 0 || cols > 0;
  // A piece is never larger than the region.
  if (leading.is_const()) rows = rows == 0 ? leading.value : std::min(rows, leading.value);
  if (last.is_const()) cols = cols == 0 ? last.value : std::min(cols, last.value);
  check_staging_size(t, rows, cols, pipeline, chosen, t.type(0).dtype);
}

/// Staging tiles of the printed forms (03 O-70).
void staged_form(Typer& t) {
  if (t.has(4) && t.is_list(4)) {
    // A list in the place of stage2 is dst_offsets; what follows moves one place on.
    t.args.insert(t.args.begin() + 4, nullptr);
    t.args.resize(op_params(*t.row, kFormFlat).size());
  }
  static_cast<void>(t.tile(3));
  t.require_same_dtype(0, 3);
  if (t.has(4)) static_cast<void>(t.tile(4));
}

}  // namespace

ExprPtr type_put(Typer& t) {
  const Shape extents = transfer(t, true, {3, 4, 5, 6});
  staging(t, 7, extents);
  return t.nothing();
}

ExprPtr type_get(Typer& t) {
  const Shape extents = transfer(t, false, {3, 4, 5, -1});
  staging(t, 6, extents);
  return t.nothing();
}

ExprPtr type_tile_put(Typer& t) {
  staged_form(t);
  transfer(t, true, {5, 6, 7, 8});
  return t.nothing();
}

ExprPtr type_tile_get(Typer& t) {
  staged_form(t);
  transfer(t, false, {5, 6, 7, -1});
  return t.nothing();
}

}  // namespace pypto::ir::infer
