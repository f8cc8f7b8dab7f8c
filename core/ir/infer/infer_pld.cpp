// SPDX-License-Identifier: Apache-2.0
// The distributed namespace without collectives: queries, windows, signals, remote memory access (03 sections
// 4 and 6).
#include <algorithm>

#include "core/ir/infer/pld.h"

namespace pypto::ir::infer {

void peer_operand(Typer& t, int i) {
  if (!t.is_scalar(i) || !is_int(t.type(i).dtype) || t.arg(i)->kind == ExprKind::kNone) {
    const bool real = t.is_scalar(i) && is_float(t.type(i).dtype);
    t.bad(i, "an integer scalar (a rank of the domain)", "keep peers in integers: (me + 1) % nranks",
          real ? "X-27" : "");
  }
  if (const auto c = t.constant(i); c && *c < 0) {
    t.value_error("peer " + std::to_string(*c) + " is outside [0, nranks), the ranks of the domain",
                  "wrap it with % nranks; peers are domain-relative", "X-20");
  }
  t.index(i);
}

void reject_block_scaled(const Typer& t, int i) {
  const TensorLayout layout = t.type(i).layout;
  if (layout == TensorLayout::kMxAZZ || layout == TensorLayout::kMxBNN) {
    t.value_error(
        "argument '" + t.param(i) + "' has a block-scaled (MX) layout, which remote access does not move",
        "use an ND window", "X-28");
  }
}

// ---- queries, windows

ExprPtr type_world_size(Typer& t) { return t.scalar(DType::kInt64); }

ExprPtr type_get_comm_ctx(Typer& t) {
  static_cast<void>(t.window(0));
  return t.result(simple_type(TypeKind::kCommCtx));
}

namespace {

ExprPtr rank_query(Typer& t) {
  if (t.type(0).kind != TypeKind::kCommCtx) t.bad(0, "a CommCtx", "pass pld.get_comm_ctx(window)");
  return t.scalar(DType::kInt32);
}

}  // namespace

ExprPtr type_rank(Typer& t) { return rank_query(t); }
ExprPtr type_nranks(Typer& t) { return rank_query(t); }

ExprPtr type_alloc_window_buffer(Typer& t) {
  // The front end names the buffer after its variable and rejects an explicit name= (03 W-2).
  if (t.has(2)) t.string_attr(2, AttrKey::k_name, "");
  Dim bytes;
  DType dtype = DType::kNone;
  if (t.is_list(0)) {
    dtype = t.dtype_attr(1, AttrKey::k_dtype);
    if (dtype == DType::kNone)
      t.type_error("a shape requires dtype=", "pld.alloc_window_buffer(shape, dtype=pl.FP32)", "X-10");
    const auto entries = t.entries(0);
    if (entries.empty()) t.value_error("shape must be non-empty", {}, "X-10");
    Dim cells(1);
    for (const auto& e : entries) {
      const ExprPtr simple = simplify(e);
      if (const auto c = const_int(simple); c && *c <= 0) {
        t.value_error("all dimensions must be positive, got " + std::to_string(*c), {}, "X-10");
      }
      cells = dim_product(cells, dim_of(simple));
    }
    if (cells.is_const() && cells.value >= kMaxBytes / dtype_bytes(dtype)) {
      t.value_error("the shape has more bytes than any memory", {}, "X-10");
    }
    if (dtype_bits(dtype) < 8 && dtype != DType::kBool) {
      if (cells.is_const() && cells.value * dtype_bits(dtype) % 8 != 0) {
        t.value_error("shape of " + dim_text(cells) + " elements of " + std::string(dtype_text(dtype)) +
                          " is no whole number of bytes",
                      {}, "X-10");
      }
      bytes = cells.is_const() ? Dim(cells.value * dtype_bits(dtype) / 8) : Dim();
    } else {
      bytes = dim_product(cells, Dim(dtype_bytes(dtype)));
    }
  } else {
    if (t.has(1)) {
      t.type_error("dtype= is only valid when the first argument is a shape",
                   "a scalar size counts bytes; pld.alloc_window_buffer([n], dtype=...) counts elements",
                   "X-10");
    }
    t.index(0);
    if (const auto c = t.constant(0); c && *c <= 0) {
      t.value_error("all dimensions must be positive: size is " + std::to_string(*c) + " bytes", {}, "X-10");
    }
    bytes = dim_of(t.arg(0));
  }
  auto type = std::make_shared<Type>(*simple_type(TypeKind::kPtr));
  type->dtype = dtype;
  type->shape = {bytes};
  type->storage = std::make_shared<Storage>();
  return t.result(type);
}

ExprPtr type_window(Typer& t) {
  if (t.type(0).kind != TypeKind::kPtr) {
    t.bad(0, "a Ptr handle returned by pld.alloc_window_buffer",
          "pass the value returned by alloc_window_buffer", "X-14");
  }
  const Type buffer = t.type(0);
  const Shape shape = t.extents(1, -1, 1);
  if (shape.empty()) t.value_error("argument 'shape' must be non-empty");
  const DType dtype = t.dtype_attr(2, AttrKey::k_dtype);
  if (dtype == DType::kNone) t.type_error("requires dtype=", "pld.window(buf, shape, dtype=pl.FP32)", "X-14");
  int64_t cells = 1;
  for (const Dim& d : shape) cells = d.is_const() && cells >= 0 ? cells * d.value : -1;
  const bool sized = cells >= 0 && !buffer.shape.empty() && buffer.shape[0].is_const();
  const int64_t needed =
      cells * (dtype_bits(dtype) < 8 && dtype != DType::kBool ? dtype_bits(dtype) : dtype_bytes(dtype) * 8) /
      8;
  if (sized && needed > buffer.shape[0].value) {
    t.value_error("the view " + shape_text(shape) + " of " + std::string(dtype_text(dtype)) + " needs " +
                      std::to_string(needed) + " bytes, the buffer has " +
                      std::to_string(buffer.shape[0].value),
                  "allocate by shape: pld.alloc_window_buffer(" + shape_text(shape) + ", dtype=pl." +
                      dtype_info(dtype).member + "); the scalar form counts bytes",
                  "X-13");
  }
  auto type = std::make_shared<Type>(*tensor_type(shape, dtype, TensorPlace::kWindow));
  type->storage = buffer.storage ? buffer.storage : std::make_shared<Storage>();
  return t.result(type);
}

// ---- signals

namespace {

/// Signal operand and its cell (03 O-20).
void signal_cell(Typer& t, int window, int offsets) {
  const Type& s = t.window(window);
  if (s.dtype != DType::kInt32) {
    t.type_error("argument '" + t.param(window) + "' must be an INT32 DistributedTensor, got dtype " +
                     std::string(dtype_text(s.dtype)),
                 "allocate the signal as INT32", "X-23");
  }
  if (s.rank() < 1) t.value_error("argument '" + t.param(window) + "' must have rank 1 or more");
  const auto cell = t.entries(offsets, s.rank());
  for (size_t k = 0; k < cell.size(); ++k) {
    const auto c = const_int(simplify(cell[k]));
    if (c && (*c < 0 || (s.shape[k].is_const() && *c >= s.shape[k].value))) {
      t.value_error("cell index " + std::to_string(*c) + " on dimension " + std::to_string(k) + " of '" +
                        t.param(window) + "' is out of range [0, " + dim_text(s.shape[k]) + ")",
                    {}, "X-54");
    }
  }
}

void require_op(const Typer& t, int i, const char* what) {
  if (!t.has(i)) t.type_error(std::string("missing required argument '") + what + "'");
}

ExprPtr wait_condition(Typer& t) {
  signal_cell(t, 0, 1);
  t.integer_as(2, DType::kInt32);
  require_op(t, 3, "cmp");
  t.enum_attr(3, AttrKey::k_cmp, "WaitCmp", 0, 2);
  return t.nothing();
}

}  // namespace

ExprPtr type_notify(Typer& t) {
  signal_cell(t, 0, 2);
  peer_operand(t, 1);
  t.integer_as(3, DType::kInt32);
  require_op(t, 4, "op");
  t.enum_attr(4, AttrKey::k_op, "NotifyOp", 0, 2);
  if (t.type(0).storage) t.type(0).storage->written = true;
  return t.nothing();
}

ExprPtr type_wait(Typer& t) {
  const ExprPtr expected = t.arg(2);
  const ExprPtr result = wait_condition(t);
  const auto c = const_int(expected);
  if (c && *c <= 0 && t.attrs.get_int(AttrKey::k_cmp) == static_cast<int64_t>(WaitCmp::kGe)) {
    t.warn("expected=" + std::to_string(*c) + " with cmp=Ge is always satisfied: cells start at 0",
           "tags and counts start at 1", "X-69");
  }
  return result;
}

ExprPtr type_defer_wait(Typer& t) {
  const ExprPtr expected = t.arg(2);
  const bool whole = t.arg(0)->kind == ExprKind::kVar;
  const ExprPtr result = wait_condition(t);
  if (!whole) {
    t.value_error(
        "signal must be directly an INT32 window parameter, not a slice, alias or reshape (clause d)",
        "pass the parameter itself and address the cell with offsets", "X-63");
  }
  if (t.attrs.get_int(AttrKey::k_cmp) != static_cast<int64_t>(WaitCmp::kGe)) {
    t.value_error("cmp must be pld.WaitCmp.Ge (clause e)", "wait for a count with cmp=pld.WaitCmp.Ge",
                  "X-63");
  }
  if (const auto c = const_int(expected); c && (*c < 0 || *c > INT32_MAX)) {
    t.value_error("expected must be in [0, 2**31 - 1], got " + std::to_string(*c) + " (clause e)",
                  "counts start at 1", "X-63");
  }
  return result;
}

// ---- tile-level RMA

ExprPtr type_remote_load(Typer& t) {
  if (!t.has(0) || !t.type(0).is_window()) {
    t.type_error(
        "expects a DistributedTensor target, got " + t.got(0),
        "annotate the parameter with pld.DistributedTensor[...]; a local tensor is read with pl.load", "X-3");
  }
  t.level = OperandLevel::kTile;
  const Type& w = t.type(0);
  reject_block_scaled(t, 0);
  if (w.rank() < 1) t.value_error("argument 'target' must have rank 1 or more");
  peer_operand(t, 1);
  const auto offsets = t.entries(2, w.rank());
  const Shape shape = t.static_extents(3, w.rank());
  Shape want = shape;
  if (t.has(4)) {
    want = t.extents(4, w.rank(), 0);
    for (size_t k = 0; k < want.size(); ++k) {
      if (want[k].is_const() && want[k].value > shape[k].value) {
        t.value_error("valid extent " + dim_text(want[k]) + " on dimension " + std::to_string(k) +
                          " exceeds the shape entry " + dim_text(shape[k]),
                      {}, "X-54");
      }
    }
  }
  Shape valid = want;
  const Shape source = valid_of(w);
  for (size_t k = 0; k < want.size(); ++k) {
    const auto at = const_int(simplify(offsets[k]));
    if (at && *at < 0) {
      t.value_error(
          "offset " + std::to_string(*at) + " on dimension " + std::to_string(k) + " must be non-negative",
          {}, "X-54");
    }
    const auto over = fold_sum(offsets[k], want[k], w.shape[k]);
    if (over && *over > 0) {
      t.value_error("reads past the end of dimension " + std::to_string(k) + ": offset " +
                        dim_text(dim_of(offsets[k])) + " + extent " + dim_text(want[k]) + " exceeds " +
                        dim_text(w.shape[k]),
                    "shrink the shape, or give valid_shape for the part that exists", "X-54");
    }
    if (!want[k].is_const()) valid[k] = provably_equal(want[k], shape[k]) ? shape[k] : Dim();
    if (!w.valid.empty() && !provably_equal(source[k], w.shape[k])) {
      const bool known = at && source[k].is_const() && want[k].is_const();
      valid[k] = known ? Dim(std::min(want[k].value, std::max<int64_t>(source[k].value - *at, 0))) : Dim();
    }
  }
  return t.tile_value(shape, w.dtype, MemorySpace::kVec, valid);
}

namespace {

/// The 2-D region of a remote store: source extents against the two inner dimensions (03 O-35).
ExprPtr remote_store(Typer& t) {
  const Type& source = t.type(0);
  const Type& target = t.window(1);
  reject_block_scaled(t, 1);
  peer_operand(t, 2);
  if (target.rank() < 2)
    t.value_error("argument 'target' must have rank 2 or more, got " + shape_text(target.shape));
  const auto offsets = t.entries(3, target.rank());
  Shape extents = valid_of(source);
  for (size_t k = 0; k + 2 < source.shape.size(); ++k) {
    if (provably_differ(source.shape[k], Dim(1))) {
      t.value_error("argument '" + t.param(0) +
                        "' must have 2 dimensions, or more with leading extents 1, got " +
                        shape_text(source.shape),
                    "reshape it first");
    }
  }
  if (source.rank() < 2) {
    t.value_error("argument '" + t.param(0) + "' must have 2 dimensions, got " + shape_text(source.shape),
                  "reshape it to [1, n]");
  }
  extents.erase(extents.begin(), extents.end() - 2);
  // A product held in FP32 keeps its declared dtype here: the store converts it (02 O-1802).
  if (!same_dtype(source.dtype, target.dtype)) {
    t.type_error(
        "'" + t.param(0) + "' has dtype " + std::string(dtype_text(source.dtype)) +
            ", the window has dtype " + std::string(dtype_text(target.dtype)) + "; they must be equal",
        "cast on chip first: pl.cast(value, pl." + std::string(dtype_info(target.dtype).member) + ")",
        "X-22");
  }
  t.atomic_attr(4, target.dtype);
  const size_t lead = target.shape.size() - 2;
  for (size_t k = 0; k < offsets.size(); ++k) {
    const auto at = const_int(simplify(offsets[k]));
    if (at && *at < 0) {
      t.value_error(
          "offset " + std::to_string(*at) + " on dimension " + std::to_string(k) + " must be non-negative",
          {}, "X-54");
    }
    const Dim extent = k < lead ? Dim(1) : extents[k - lead];
    const auto over = fold_sum(offsets[k], extent, target.shape[k]);
    if (over && *over > 0) {
      t.value_error("push exceeds the peer's target region in dimension " + std::to_string(k) + ": offset " +
                        dim_text(dim_of(offsets[k])) + " + extent " + dim_text(extent) + " exceeds " +
                        dim_text(target.shape[k]),
                    "move the offset, or push a smaller value", "X-54");
    }
  }
  if (target.storage) target.storage->written = true;
  return t.nothing();
}

}  // namespace

ExprPtr type_remote_store(Typer& t) {
  if (t.is_tensor(0)) {
    if (t.form == kFormPld) {
      t.row = &op_row(OpId::k_tensor_remote_store);
      return type_tensor_remote_store(t);
    }
    t.bad(0, "a Tile; pld.tensor.remote_store takes tensor values", "use pld.tensor.remote_store");
  }
  t.tile_only({0});
  const MemorySpace space = t.type(0).space;
  if (space != MemorySpace::kVec && space != MemorySpace::kAcc && space != MemorySpace::kUnset) {
    t.value_error(
        std::string("a ") + space_name(space) + " tile cannot be pushed; the source is in Vec or Acc",
        "pl.move it to Vec first");
  }
  return remote_store(t);
}

ExprPtr type_tensor_remote_store(Typer& t) {
  if (t.is_tile(0)) t.bad(0, "a Tensor; pld.tile.remote_store takes tiles", "use pld.tile.remote_store");
  t.tensor_only({0});
  return remote_store(t);
}

}  // namespace pypto::ir::infer
