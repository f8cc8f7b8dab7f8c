// SPDX-License-Identifier: Apache-2.0
// Cross-core transfer (02 section 21), block identity (22), pl.system (23).
#include <algorithm>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

/// Hand-written cube or vector functions may use the operations of their own side only.
void require_side(const Typer& t, FunctionType side) {
  const FunctionType f = t.context.function_type;
  const bool hand_written = f == FunctionType::kAIC || f == FunctionType::kAIV;
  if (!hand_written || f == side) return;
  const bool cube = side == FunctionType::kAIC;
  t.value_error(std::string("runs on the ") + (cube ? "cube core (AIC)" : "vector lanes (AIV)") +
                    ", but is used in an " + (cube ? "AIV" : "AIC") + " function",
                "move the call to the " + std::string(cube ? "AIC" : "AIV") + " function of the group");
}

void pipe_id(Typer& t, int i) {
  const int64_t id = t.int_attr(i, AttrKey::k_id, 0);
  if (id < 0) t.value_error("argument 'id' must be non-negative, got " + std::to_string(id));
}

/// 0 none, 1/2 the two axes, 3/4 the same with an odd extent (02 O-2104).
int64_t split_code(Typer& t, int i, std::optional<int64_t> fallback) {
  const int64_t code = t.int_attr(i, AttrKey::k_split, fallback);
  if (code < 0 || code > 4) {
    t.value_error("argument 'split' must be 0 (none), 1 (up/down), 2 (left/right), 3 or 4, got " +
                  std::to_string(code));
  }
  return code;
}

void lane_stride(Typer& t, int i, const Dim& extent) {
  if (!t.has(i)) return;
  const int64_t stride = t.int_attr(i, AttrKey::k_lane_stride);
  const int64_t half = extent.is_const() ? (extent.value + 1) / 2 : -1;
  if (stride <= 0 || (half >= 0 && stride > half)) {
    t.value_error("argument 'lane_stride' must be positive" +
                  (half >= 0 ? " and at most " + std::to_string(half) : std::string()) + ", got " +
                  std::to_string(stride));
  }
}

Dim split_extent(const Type& x, int64_t code) {
  const bool columns = code == 2 || code == 4;
  return x.rank() == 2 ? x.shape[columns ? 1 : 0] : Dim();
}

ExprPtr push(Typer& t, FunctionType side, MemorySpace wanted, int id_at) {
  t.tile_only({0});
  require_side(t, side);
  const Type& x = t.type(0);
  if (x.space == MemorySpace::kMat || (x.space != MemorySpace::kUnset && x.space != wanted)) {
    t.value_error(std::string("a ") + space_name(x.space) + " tile cannot be pushed; the producer is " +
                      space_name(wanted),
                  std::string("push a tile in ") + space_name(wanted));
  }
  const int64_t code = split_code(t, 1, std::nullopt);
  if (id_at == 3) lane_stride(t, 2, split_extent(x, code));
  pipe_id(t, id_at);
  return t.nothing();
}

ExprPtr pop(Typer& t, FunctionType side, MemorySpace space, int id_at) {
  t.level = OperandLevel::kTile;
  require_side(t, side);
  if (t.has(0) != t.has(1)) {
    t.value_error("arguments 'shape' and 'dtype' are given together or not at all",
                  "or annotate the variable: x: pl.Tile[[...], dtype, memory] = ...");
  }
  if (!t.has(0)) {
    t.type_error(
        "the type of the popped tile is unknown",
        "annotate the variable (x: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = ...) or give shape= and dtype=");
  }
  const Shape shape = t.static_extents(0);
  const DType dtype = t.dtype_attr(1, AttrKey::k_dtype);
  const int64_t code = split_code(t, 2, 0);
  if (id_at == 4) {
    lane_stride(t, 3, shape.size() == 2 ? dim_product(shape[code == 2 || code == 4 ? 1 : 0], Dim(2)) : Dim());
  }
  pipe_id(t, id_at);
  return t.tile_value(shape, dtype, space);
}

ExprPtr free_slot(Typer& t, FunctionType side) {
  t.tile_only({0});
  require_side(t, side);
  if (t.has(1)) split_code(t, 1, std::nullopt);
  pipe_id(t, 2);
  return t.nothing();
}

ExprPtr initialize(Typer& t, FunctionType side) {
  require_side(t, side);
  for (const int i : {0, 1}) {
    if (!t.has(i)) t.args[static_cast<size_t>(i)] = int_const(0, DType::kInt32, t.span);
    t.integer_as(i, DType::kInt32);
  }
  const int64_t mask = t.int_attr(2, AttrKey::k_dir_mask);
  if (mask < 1 || mask > 3) {
    t.value_error("argument 'dir_mask' must be 1 (cube to vector), 2 (vector to cube) or 3 (both), got " +
                  std::to_string(mask));
  }
  const int64_t size = t.int_attr(3, AttrKey::k_slot_size);
  if (size <= 0) t.value_error("argument 'slot_size' must be positive, got " + std::to_string(size));
  const int64_t slots = t.int_attr(4, AttrKey::k_slot_num, mask == 3 ? 4 : 8);
  if (slots <= 0) t.value_error("argument 'slot_num' must be positive, got " + std::to_string(slots));
  if (t.has(5)) {
    if (t.a5()) {
      t.value_error("keyword 'local_slot_num' is not supported on the 'a5' platform",
                    "leave local_slot_num out");
    }
    const int64_t local = t.int_attr(5, AttrKey::k_local_slot_num);
    if (local <= 0 || local > slots) {
      t.value_error("argument 'local_slot_num' must be in [1, " + std::to_string(slots) + "], got " +
                    std::to_string(local));
    }
  }
  pipe_id(t, 6);
  return t.nothing();
}

void require_name(Typer& t, int i, AttrKey key) {
  if (t.string_attr(i, key, "").empty())
    t.value_error("argument '" + std::string(attr_name(key)) + "' must not be empty");
}

}  // namespace

ExprPtr type_tpush_to_aiv(Typer& t) { return push(t, FunctionType::kAIC, MemorySpace::kAcc, 3); }
ExprPtr type_tpush_to_aic(Typer& t) { return push(t, FunctionType::kAIV, MemorySpace::kVec, 2); }
ExprPtr type_tpop_from_aic(Typer& t) { return pop(t, FunctionType::kAIV, MemorySpace::kVec, 4); }
ExprPtr type_tpop_from_aiv(Typer& t) { return pop(t, FunctionType::kAIC, MemorySpace::kMat, 3); }
ExprPtr type_tfree_to_aic(Typer& t) { return free_slot(t, FunctionType::kAIV); }
ExprPtr type_tfree_to_aiv(Typer& t) { return free_slot(t, FunctionType::kAIC); }
ExprPtr type_aic_initialize_pipe(Typer& t) { return initialize(t, FunctionType::kAIC); }
ExprPtr type_aiv_initialize_pipe(Typer& t) { return initialize(t, FunctionType::kAIV); }

ExprPtr type_reserve_buffer(Typer& t) {
  require_name(t, 0, AttrKey::k_name);
  const int64_t size = t.int_attr(1, AttrKey::k_size);
  if (size <= 0)
    t.value_error("argument 'size' must be a positive number of bytes, got " + std::to_string(size));
  const int64_t base = t.int_attr(2, AttrKey::k_base, -1);
  if (base < -1)
    t.value_error("argument 'base' must be a byte address or pl.AUTO, got " + std::to_string(base));
  return t.scalar(DType::kInt32);
}

ExprPtr type_import_peer_buffer(Typer& t) {
  require_name(t, 0, AttrKey::k_name);
  require_name(t, 1, AttrKey::k_peer_func);
  return t.scalar(DType::kInt32);
}

// ---- lanes

namespace {

/// The division that applies: the printed form's `split`, or that of the loop around (02 O-2108, O-2109).
SplitMode lane_mode(Typer& t) {
  if (t.has(1)) {
    if (t.form == kFormTile && !t.is_tile(0)) t.bad(0, "a Tile: the form with split= is tile-only");
    if (t.form == kFormFlat && t.context.in_split_aiv) {
      t.type_error("does not accept keyword argument 'split': the mode is that of pl.split_aiv",
                   "leave split out");
    }
    const int64_t code = t.int_attr(1, AttrKey::k_split);
    if (code < 0 || code > 2)
      t.value_error("argument 'split' must be 0, 1 or 2, got " + std::to_string(code));
    return static_cast<SplitMode>(code);
  }
  if (!t.context.in_split_aiv) {
    t.value_error("must be used inside a 'for ... in pl.split_aiv(2, mode=...)' loop",
                  "wrap the vector part of the kernel in `for lane in pl.split_aiv(2, mode=...)`");
  }
  t.attrs.set(AttrKey::k_split, static_cast<int64_t>(t.context.split_mode));
  return t.context.split_mode;
}

void require_lane_operand(Typer& t) {
  if (t.has(0) && t.type(0).is_window()) {
    t.bad(0, "a Tile or a plain Tensor", "a DistributedTensor is read with pl.load or a slice first");
  }
  if (t.is_tile(0))
    t.level = OperandLevel::kTile;
  else if (t.is_tensor(0))
    t.level = OperandLevel::kTensor;
  else
    t.bad(0, "a Tile or a Tensor");
  if (t.type(0).rank() != 2) {
    t.value_error("argument '" + t.param(0) + "' must have rank 2, got shape " + shape_text(t.type(0).shape),
                  "reshape it to two dimensions first");
  }
}

std::string of_text(const Dim& valid, const Dim& whole) {
  return "(" + (valid.is_const() || valid.expr ? dim_text(valid) : std::string("a run-time value")) + " of " +
         dim_text(whole) + ")";
}

/// Divisions whose lanes would not match the data (01 L-127, 02 O-2110).
void check_shard(const Typer& t, SplitMode mode, const Shape& shape, const Shape& valid) {
  const bool narrow_cols = !provably_equal(valid[1], shape[1]);
  const bool narrow_rows = !provably_equal(valid[0], shape[0]);
  if (mode == SplitMode::kLeftRight && narrow_cols) {
    t.value_error(
        "LEFT_RIGHT splits the column axis, and the tile has a narrowed valid column extent " +
            of_text(valid[1], shape[1]) +
            "; use mode=pl.SplitMode.UP_DOWN, or restore the columns with pl.set_validshape(x, rows, " +
            dim_text(shape[1]) + ") before the crossing",
        "pl.set_validshape(x, rows, <full columns>) before the crossing");
  }
  if (mode == SplitMode::kUpDown && narrow_rows && narrow_cols) {
    t.value_error(
        "UP_DOWN gives a per-lane row extent, and the tile also has a narrowed valid column extent " +
            of_text(valid[1], shape[1]) + "; restore the columns with pl.set_validshape(x, rows, " +
            dim_text(shape[1]) + ") before the crossing",
        "pl.set_validshape(x, rows, <full columns>) before the crossing");
  }
  if (mode == SplitMode::kUpDown && narrow_rows && valid[0].is_const() && shape[0].is_const()) {
    const int64_t half = (shape[0].value + 1) / 2;
    const int64_t first = std::min(valid[0].value, half);
    const int64_t second = valid[0].value - first;
    if (second != 0 && first - second > 1) {
      t.value_error("the valid row extent " + of_text(valid[0], shape[0]) + " leaves the two AIV lanes " +
                        std::to_string(first) + " and " + std::to_string(second) +
                        " cells, which an independently split value would not match; set the extent with "
                        "pl.tile.set_validshape to " +
                        std::to_string(shape[0].value) + " / " + std::to_string(shape[0].value - 1),
                    "pl.tile.set_validshape(x, rows, cols) with one of the extents named");
    }
  }
}

ExprPtr lane_value(Typer& t, Shape shape, Shape valid, MemorySpace space) {
  auto type = std::make_shared<Type>(*t.value_type(std::move(shape), t.type(0).dtype, std::move(valid)));
  if (t.tile_level()) type->space = space;
  if (space == MemorySpace::kMat) type->space = t.tile_level() ? space : MemorySpace::kUnset;
  return t.result(type);
}

}  // namespace

ExprPtr type_aiv_shard(Typer& t) {
  require_lane_operand(t);
  const SplitMode mode = lane_mode(t);
  Shape shape = t.type(0).shape;
  Shape valid = valid_of(t.type(0));
  check_shard(t, mode, shape, valid);
  if (mode != SplitMode::kNone) {
    const size_t axis = mode == SplitMode::kUpDown ? 0 : 1;
    lane_stride(t, 2, shape[axis]);
    const bool even = shape[axis].is_const() && shape[axis].value % 2 == 0;
    const bool full = provably_equal(shape[axis], valid[axis]);
    shape[axis] = shape[axis].is_const() ? Dim((shape[axis].value + 1) / 2) : Dim();
    valid[axis] = even && full ? shape[axis] : Dim();
  }
  return lane_value(t, std::move(shape), std::move(valid), MemorySpace::kVec);
}

ExprPtr type_aic_gather(Typer& t) {
  require_lane_operand(t);
  const SplitMode mode = lane_mode(t);
  Shape shape = t.type(0).shape;
  Shape valid = valid_of(t.type(0));
  if (mode != SplitMode::kNone) {
    const size_t axis = mode == SplitMode::kUpDown ? 0 : 1;
    if (provably_differ(valid[axis], shape[axis])) {
      t.value_error(
          "tile.aic_gather re-joins the two lanes positionally, but each half is only partly valid " +
              of_text(valid[axis], shape[axis]) + "; fill the padding with pl.fillpad first",
          "pl.fillpad(x) before pl.aic_gather(x)");
    }
    const bool full = provably_equal(valid[axis], shape[axis]);
    shape[axis] = dim_product(shape[axis], Dim(2));
    valid[axis] = full ? shape[axis] : Dim();
  }
  return lane_value(t, std::move(shape), std::move(valid), MemorySpace::kMat);
}

// ---- identity

ExprPtr type_get_block_idx(Typer& t) { return t.scalar(DType::kIndex); }
ExprPtr type_get_block_num(Typer& t) { return t.scalar(DType::kIndex); }
ExprPtr type_get_subblock_idx(Typer& t) { return t.scalar(DType::kIndex); }

// ---- section 23

ExprPtr type_syncall(Typer& t) {
  const std::string core = t.string_attr(0, AttrKey::k_core_type, "mix");
  if (core != "mix" && core != "aiv_only" && core != "aic_only") {
    t.value_error("core_type must be \"aiv_only\", \"aic_only\" or \"mix\", got \"" + core + "\"");
  }
  const std::string mode = t.string_attr(1, AttrKey::k_mode, "hard");
  if (mode != "hard" && mode != "soft")
    t.value_error("mode must be \"hard\" or \"soft\", got \"" + mode + "\"");
  if (mode == "hard") {
    if (t.has(2) || t.has(3)) {
      t.value_error(std::string("mode=\"hard\" takes neither gm_workspace nor used_cores, got ") +
                        (t.has(2) ? "gm_workspace" : "used_cores"),
                    "Use mode=\"soft\" with both, or leave them out");
    }
    return t.nothing();
  }
  if (!t.has(2) || !t.has(3)) {
    t.value_error(
        "mode=\"soft\" needs gm_workspace and used_cores",
        "give an INT32 tensor of at least 16 zeros and the number of participants (0 = from the launch)");
  }
  const Type& work = t.global(2);
  t.require_dtype(2, {DType::kInt32}, "the workspace is INT32");
  const int64_t cells = work.static_elements();
  if (cells >= 0 && cells < 16) {
    t.value_error("gm_workspace must have at least 16 elements, got " + std::to_string(cells));
  }
  if (const auto c = t.constant(3); c && (*c < 0 || *c > INT32_MAX)) {
    t.value_error("used_cores must be in [0, 2^31 - 1], got " + std::to_string(*c));
  }
  if (!t.constant(3) && !(t.is_scalar(3) && t.type(3).dtype == DType::kInt32)) {
    t.bad(3, "an integer constant or an INT32 scalar", "pl.cast(value, pl.INT32)");
  }
  t.integer_as(3, DType::kInt32);
  return t.nothing();
}

namespace {

void pipe_attr(Typer& t, int i, AttrKey key) {
  if (!t.has(i)) t.type_error("missing required argument '" + std::string(attr_name(key)) + "'");
  t.enum_attr(i, key, "PipeType", 0, 8);
}

/// Event id: constant in range, or a run-time scalar that stays an argument.
void event(Typer& t, int i, int64_t last) {
  if (const auto c = t.constant(i)) {
    if (*c < 0 || *c > last) {
      t.value_error("event_id must be in [0, " + std::to_string(last) + "]" +
                    (last == 13 ? " (14 and 15 are reserved)" : "") + ", got " + std::to_string(*c));
    }
    t.int_attr(i, AttrKey::k_event_id);
    return;
  }
  t.index(i);
}

void core_side(Typer& t, int i) {
  if (!t.has(i)) return;
  const std::string core = t.string_attr(i, AttrKey::k_core_type, "");
  if (core != "aic" && core != "aiv")
    t.value_error("core_type must be \"aic\" or \"aiv\", got \"" + core + "\"");
}

}  // namespace

ExprPtr type_sync_set(Typer& t) {
  event(t, 0, 13);
  pipe_attr(t, 1, AttrKey::k_pipe);
  if (t.has(2)) {
    const int64_t mode = t.int_attr(2, AttrKey::k_ffts_mode);
    if (mode < 0 || mode > 2) t.value_error("ffts_mode must be 0, 1 or 2, got " + std::to_string(mode));
  }
  core_side(t, 3);
  return t.nothing();
}

ExprPtr type_sync_wait(Typer& t) {
  event(t, 0, 13);
  pipe_attr(t, 1, AttrKey::k_pipe);
  core_side(t, 2);
  return t.nothing();
}

ExprPtr type_set_ffts(Typer& t) {
  static_cast<void>(t.global(0));
  t.require_dtype(0, {DType::kInt64}, "the workspace is INT64");
  t.require_rank(0, 1);
  const Dim& n = t.type(0).shape[0];
  if (!n.is_const() || n.value < 256) {
    t.value_error("the workspace must have a static length of at least 256, got " + dim_text(n));
  }
  return t.nothing();
}

namespace {

ExprPtr pipe_flag(Typer& t) {
  pipe_attr(t, 0, AttrKey::k_set_pipe);
  pipe_attr(t, 1, AttrKey::k_wait_pipe);
  event(t, 2, 15);
  return t.nothing();
}

}  // namespace

ExprPtr type_sync_src(Typer& t) { return pipe_flag(t); }
ExprPtr type_sync_dst(Typer& t) { return pipe_flag(t); }
ExprPtr type_bar_v(Typer& t) { return t.nothing(); }
ExprPtr type_bar_m(Typer& t) { return t.nothing(); }
ExprPtr type_bar_all(Typer& t) { return t.nothing(); }
ExprPtr type_fence(Typer& t) { return t.nothing(); }

ExprPtr type_cacheinvalid(Typer& t) {
  const int given = t.has(0) + t.has(1) + t.has(2);
  if (given == 0) return t.nothing();
  if (given != 3) t.type_error("takes no arguments, or tensor, shapes and offsets together");
  const Type& x = t.global(0);
  t.extents(1, x.rank(), 0);
  const auto offsets = t.entries(2, x.rank());
  t.check_write(x, offsets, {}, t.param(0));
  return t.nothing();
}

ExprPtr type_task_dummy(Typer& t) {
  if (!t.has(0)) t.type_error("keyword 'deps' is mandatory", "pl.system.task_dummy(deps=[...])");
  if (t.arg(0)->kind != ExprKind::kTuple) t.bad(0, "a list of task handles");
  for (const auto& e : t.arg(0)->args) {
    const bool handle =
        e && e->type &&
        (e->kind == ExprKind::kNone ||
         ((e->type->is_scalar() || e->type->kind == TypeKind::kArray) && e->type->dtype == DType::kTaskId));
    if (!handle) {
      t.type_error("deps entries must be a TaskId variable, an array of task ids, or None, got " +
                   (e && e->type ? type_text(*e->type) : std::string("nothing")));
    }
  }
  return t.scalar(DType::kTaskId);
}

ExprPtr type_task_invalid(Typer& t) { return none_const(t.span); }
ExprPtr type_available_cluster_count(Typer& t) { return t.scalar(DType::kInt32); }
ExprPtr type_available_aiv_count(Typer& t) { return t.scalar(DType::kInt32); }

}  // namespace pypto::ir::infer
