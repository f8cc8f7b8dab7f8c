// SPDX-License-Identifier: Apache-2.0
// Collectives on both rails (03 section 7).
#include <algorithm>

#include "core/ir/infer/pld.h"

namespace pypto::ir::infer {
namespace {

bool host_rail(const Typer& t) { return t.context.place == kPlaceHost; }

void require_signal_given(const Typer& t, int i) {
  if (t.has(i) && t.arg(i)->kind == ExprKind::kNone) {
    t.type_error("signal cannot be None",
                 "pass an INT32 window, for example pld.window(buf, [n, 1], dtype=pl.INT32)");
  }
}

/// Window of dtype INT32.
const Type& signal_window(const Typer& t, int i, const std::string& expected) {
  require_signal_given(t, i);
  if (!t.has(i) || !t.type(i).is_window()) {
    if (host_rail(t)) {
      t.type_error(
          t.param(i) + " must be a window-bound DistributedTensor of shape " + expected + ", got " + t.got(i),
          "make a view with pld.window(buf, shape, dtype=pl.INT32)");
    }
    t.bad(i, "an INT32 DistributedTensor of shape " + expected, "signals live in a window");
  }
  if (t.type(i).dtype != DType::kInt32) {
    t.type_error("argument '" + t.param(i) + "' must be an INT32 DistributedTensor of shape " + expected +
                     ", got dtype " + std::string(dtype_text(t.type(i).dtype)),
                 "allocate the signal as INT32");
  }
  return t.type(i);
}

/// [P, 1] of the InCore rail (03 C-20).
void kernel_signal(Typer& t, int i) {
  const Type& s = signal_window(t, i, "[P, 1]");
  if (s.rank() != 2 || provably_differ(s.shape[1], Dim(1))) {
    t.value_error("argument '" + t.param(i) + "' must have shape [P, 1], got " + shape_text(s.shape),
                  "allocate the signal as [world_size, 1] INT32");
  }
}

/// [2*(P-1), P] of the ring on the InCore rail (03 C-22).
void kernel_ring_signal(Typer& t, int i) {
  const Type& s = signal_window(t, i, "[2*(P-1), P]");
  if (s.rank() != 2) {
    t.value_error("argument '" + t.param(i) + "' must have shape [2*(P-1), P] for mode=\"ring\", got " +
                  shape_text(s.shape));
  }
  const int64_t ranks = s.shape[1].is_const() ? s.shape[1].value : -1;
  if (ranks > 1 && s.shape[0].is_const() && s.shape[0].value < 2 * (ranks - 1)) {
    t.value_error("argument '" + t.param(i) + "' must have at least 2*(P-1) = " +
                  std::to_string(2 * (ranks - 1)) + " rows for mode=\"ring\", got " + shape_text(s.shape));
  }
}

/// [n] or [n, L] of the host rail with L >= lanes (03 C-40, C-41, C-51 - C-54).
void host_signal(Typer& t, int i, int64_t lanes) {
  const Type& s = signal_window(t, i, lanes > 1 ? "[n, core_num]" : "[n] or [n, 1]");
  if (s.rank() != 1 && s.rank() != 2) {
    t.value_error("argument '" + t.param(i) + "' must have shape [n] or [n, L], got " + shape_text(s.shape));
  }
  if (s.rank() == 1 && lanes > 1) {
    t.value_error(
        "rank-1 signal is valid only when one signal lane is required, core_num is " + std::to_string(lanes),
        "allocate the signal as [n, core_num]");
  }
  if (s.rank() == 2) {
    if (!s.shape[1].is_const()) {
      t.value_error("rank-2 signal shape[1] must be constant, got " + dim_text(s.shape[1]));
    }
    if (s.shape[1].value < lanes) {
      t.value_error("signal shape[1] = " + dim_text(s.shape[1]) +
                    " must be at least the required lane count " + std::to_string(lanes));
    }
  }
}

void host_ring_signal(Typer& t, int i) {
  const Type& s = signal_window(t, i, "[2*(n-1)+1, n]");
  if (s.rank() != 2) {
    t.value_error("argument '" + t.param(i) + "' must have shape [2*(n-1)+1, n] for mode=\"ring\", got " +
                  shape_text(s.shape));
  }
  const int64_t ranks = s.shape[1].is_const() ? s.shape[1].value : -1;
  if (ranks > 0 && s.shape[0].is_const() && s.shape[0].value < 2 * (ranks - 1) + 1) {
    t.value_error("signal shape[0] = " + dim_text(s.shape[0]) + " must be at least 2*(NR-1) + 1 = " +
                  std::to_string(2 * (ranks - 1) + 1) + " for mode=\"ring\"");
  }
}

void one_lane_signal(Typer& t, int i) { host_rail(t) ? host_signal(t, i, 1) : kernel_signal(t, i); }

// ---- data operands

void require_packed(const Typer& t, int i) {
  const Type& x = t.type(i);
  if (x.layout != TensorLayout::kND) {
    t.value_error("only supports ND layout, argument '" + t.param(i) + "' is " + type_text(x, true),
                  "use an ND window");
  }
  if (x.tensor_view && !x.tensor_view->stride.empty()) {
    t.value_error("requires a packed source, argument '" + t.param(i) + "' is " + type_text(x, true),
                  "copy it into a packed window first");
  }
}

const Type& data_window(const Typer& t, int i) {
  if (!t.has(i) || !t.type(i).is_window()) {
    if (host_rail(t)) {
      t.type_error(t.param(i) + " must be a window-bound DistributedTensor, got " + t.got(i),
                   "make a view with pld.window(buf, shape, dtype=...)");
    }
    static_cast<void>(t.window(i));
  }
  require_packed(t, i);
  return t.type(i);
}

/// Plain tensor on the InCore rail, window on the host rail (03 C-24, C-45).
const Type& input_operand(Typer& t, int i) {
  if (host_rail(t)) return data_window(t, i);
  if (!t.is_tensor(i) || t.type(i).is_window()) {
    t.bad(i, "a plain Tensor",
          "the input of this collective is local data; copy a window into a tensor first");
  }
  if (t.type(i).place == TensorPlace::kOnChip && t.type(i).storage && t.type(i).storage->created) {
    static_cast<void>(t.global(i));
  }
  require_packed(t, i);
  return t.type(i);
}

void require_reduction_dtype(const Typer& t, int i) {
  switch (t.type(i).dtype) {
    case DType::kFp16:
    case DType::kFp32:
    case DType::kBf16:
    case DType::kInt32:
      return;
    default:
      t.type_error("target dtype must be FP16 or FP32 or BF16 or INT32, got " +
                       std::string(dtype_text(t.type(i).dtype)),
                   "cast the data to one of them first");
  }
}

/// The host rail moves FP32 only (03 C-44, C-45, C-47).
void require_host_dtype(const Typer& t, int i) {
  if (!host_rail(t) || t.type(i).dtype == DType::kFp32) return;
  t.type_error(t.param(i) + " dtype must be FP32, got " + std::string(dtype_text(t.type(i).dtype)),
               "call the collective from a kernel, where every dtype moves");
}

void require_full(const Typer& t, int i) {
  if (fully_valid(t.type(i))) return;
  t.value_error("argument '" + t.param(i) + "' must be fully valid, its valid shape is " +
                shape_text(t.type(i).valid) + " of " + shape_text(t.type(i).shape));
}

void distinct(const Typer& t, std::initializer_list<int> operands) {
  for (auto a = operands.begin(); a != operands.end(); ++a) {
    for (auto b = a + 1; b != operands.end(); ++b) {
      if (!t.has(*a) || !t.has(*b) || !t.type(*a).is_window() || !t.type(*b).is_window()) continue;
      const bool same = (t.type(*a).storage && t.type(*a).storage == t.type(*b).storage) ||
                        (t.arg(*a)->kind == ExprKind::kVar && t.arg(*a)->var == t.arg(*b)->var);
      if (!same) continue;
      if (host_rail(t)) {
        t.value_error(t.param(*a) + " and " + t.param(*b) + " must be different window allocations",
                      "allocate a second buffer");
      }
      t.value_error(
          "'" + t.param(*a) + "' and '" + t.param(*b) + "' must be different windows (different buffers)",
          "allocate a second buffer");
    }
  }
}

ExprPtr updated(Typer& t, int i) {
  if (t.type(i).storage) t.type(i).storage->written = true;
  return t.in_place(i);
}

int64_t reduce_op(Typer& t, int i) { return t.enum_attr(i, AttrKey::k_op, "ReduceOp", 0, 4); }

/// A narrowed target of allreduce (03 C-29).
void check_partial(const Typer& t, bool ring) {
  const Type& x = t.type(0);
  if (fully_valid(x)) return;
  const Shape valid = valid_of(x);
  int64_t bytes = dtype_bytes(x.dtype);
  bool known = true;
  for (const Dim& d : valid) {
    known = known && d.is_const();
    if (known) bytes *= d.value;
  }
  if (!known) return;
  if (!ring && (x.rank() != 2 || bytes > 16384)) {
    t.value_error(
        "mode=\"mesh\" takes a valid region that is one 2-D rectangle of at most 16384 bytes, the valid "
        "shape is " +
        shape_text(valid) + " of " + shape_text(x.shape));
  }
  if (!ring) return;
  size_t k = 0;
  while (k < valid.size() && valid[k].value == 1) ++k;
  for (++k; k < valid.size(); ++k) {
    if (provably_differ(valid[k], x.shape[k])) {
      t.value_error("mode=\"ring\" takes a valid region that is a row-major prefix, the valid shape is " +
                    shape_text(valid) + " of " + shape_text(x.shape));
    }
  }
}

}  // namespace

ExprPtr type_barrier(Typer& t) {
  one_lane_signal(t, 0);
  return updated(t, 0);
}

ExprPtr type_allreduce(Typer& t) {
  require_signal_given(t, 1);
  const bool host = host_rail(t);
  static_cast<void>(data_window(t, 0));
  require_reduction_dtype(t, 0);
  reduce_op(t, 2);
  if (t.has(3) && t.arg(3)->kind != ExprKind::kString)
    t.bad(3, "a string: mode must be \"ring\" or \"mesh\"");
  const std::string mode = t.string_attr(3, AttrKey::k_mode, "mesh");
  if (mode != "ring" && mode != "mesh")
    t.value_error("mode must be \"ring\" or \"mesh\", got \"" + mode + "\"");
  if (t.has(4) && !t.constant(4)) t.bad(4, "a positive Python int");
  const int64_t cores = t.int_attr(4, AttrKey::k_core_num, 1);
  if (cores < 1) t.value_error("core_num must be a positive Python int, got " + std::to_string(cores));
  const bool ring = mode == "ring";
  if (!host && cores != 1) {
    t.value_error("core_num=" + std::to_string(cores) + " is supported only in a HOST orchestrator",
                  "leave core_num out");
  }
  if (host && ring && cores > 1)
    t.value_error("mode=\"ring\" does not support core_num > 1, got " + std::to_string(cores));
  const int64_t most = t.a5() ? 72 : 48;
  if (cores > most) {
    t.value_error("core_num=" + std::to_string(cores) + " exceeds the backend AIV core count " +
                  std::to_string(most));
  }
  check_partial(t, ring);
  if (!t.has(1)) {
    if (!host)
      t.value_error("requires an explicit signal inside a kernel", "pass an INT32 window of shape [P, 1]");
    if (t.context.in_loop) {
      t.value_error("allreduce without an explicit signal is not supported inside a for/while loop",
                    "pass a signal: allocate an INT32 window of shape [world_size, 1] before the loop");
    }
    return updated(t, 0);
  }
  if (host)
    ring ? host_ring_signal(t, 1) : host_signal(t, 1, cores);
  else
    ring ? kernel_ring_signal(t, 1) : kernel_signal(t, 1);
  distinct(t, {0, 1});
  return updated(t, 0);
}

ExprPtr type_broadcast(Typer& t) {
  const Type& x = data_window(t, 0);
  require_full(t, 0);
  require_host_dtype(t, 0);
  if (!x.static_shape()) {
    t.value_error("argument 'target' must have a static shape, got " + shape_text(x.shape));
  }
  one_lane_signal(t, 1);
  if (!t.has(2) || !t.constant(2)) t.bad(2, "a Python int (the root's rank)");
  const int64_t root = t.int_attr(2, AttrKey::k_root);
  if (root < 0) t.value_error("root (" + std::to_string(root) + ") must be a valid rank in [0, P)");
  distinct(t, {0, 1});
  return updated(t, 0);
}

ExprPtr type_allgather(Typer& t) {
  const Type& local = input_operand(t, 0);
  const Type& target = data_window(t, 1);
  require_full(t, 0);
  require_full(t, 1);
  require_host_dtype(t, 1);
  t.require_same_dtype(0, 1);
  t.require_rank(1, 2);
  const bool row = local.rank() == 2 && !provably_differ(local.shape[0], Dim(1));
  const bool flat = host_rail(t) && local.rank() == 1;
  if ((!row && !flat) || provably_differ(local.shape.back(), target.shape[1])) {
    t.value_error("argument 'local_data' must have shape [1, " + dim_text(target.shape[1]) +
                  "] for a target of shape " + shape_text(target.shape) + ", got " + shape_text(local.shape));
  }
  one_lane_signal(t, 2);
  distinct(t, {0, 1, 2});
  return updated(t, 1);
}

ExprPtr type_reduce_scatter(Typer& t) {
  static_cast<void>(data_window(t, 0));
  require_full(t, 0);
  require_reduction_dtype(t, 0);
  t.require_rank(0, 2);
  reduce_op(t, 2);
  one_lane_signal(t, 1);
  distinct(t, {0, 1});
  return updated(t, 0);
}

namespace {

void exchange_operands(Typer& t) {
  const Type& input = input_operand(t, 0);
  const Type& target = data_window(t, 1);
  require_full(t, 0);
  require_full(t, 1);
  require_host_dtype(t, 1);
  t.require_same_dtype(0, 1);
  t.require_rank(0, 2);
  t.require_rank(1, 2);
  if (!same_static_shape(input.shape, target.shape)) {
    t.value_error("arguments 'input' and 'target' must have the same shape, got " + shape_text(input.shape) +
                  " and " + shape_text(target.shape));
  }
}

void counts(Typer& t, int i, bool flat_ok) {
  const Type& c = t.type(i);
  t.require_dtype(i, {DType::kInt32}, "counts are INT32");
  const bool column = c.rank() == 2 && !provably_differ(c.shape[1], Dim(1));
  if (!column && !(flat_ok && c.rank() == 1)) {
    t.value_error("argument '" + t.param(i) + "' must have shape " + (flat_ok ? "[P] or [P, 1]" : "[P, 1]") +
                  ", got " + shape_text(c.shape));
  }
}

}  // namespace

ExprPtr type_all_to_all(Typer& t) {
  exchange_operands(t);
  one_lane_signal(t, 2);
  distinct(t, {0, 1, 2});
  return updated(t, 1);
}

ExprPtr type_all_to_all_v(Typer& t) {
  if (host_rail(t) && t.context.in_loop) {
    t.value_error("all_to_all_v is not supported inside a for/while loop", "move it out of the loop");
  }
  exchange_operands(t);
  if (host_rail(t))
    static_cast<void>(data_window(t, 3));
  else if (!t.is_tensor(3))
    t.bad(3, "a Tensor or a DistributedTensor");
  static_cast<void>(data_window(t, 4));
  counts(t, 3, !host_rail(t));
  counts(t, 4, false);
  const Type& signal = signal_window(t, 2, "[P, 1]");
  if (signal.rank() != 2 || provably_differ(signal.shape[1], Dim(1))) {
    t.value_error("argument 'signal' must have shape [P, 1], got " + shape_text(signal.shape));
  }
  const int64_t ranks = signal.shape[0].is_const() ? signal.shape[0].value : 0;
  const Dim& rows = t.type(1).shape[0];
  if (ranks > 0 && rows.is_const() && rows.value % ranks != 0) {
    t.value_error("the rows of 'target' (" + dim_text(rows) +
                  ") must be a multiple of P = " + std::to_string(ranks));
  }
  distinct(t, {0, 1, 2, 3, 4});
  if (t.type(4).storage) t.type(4).storage->written = true;
  return updated(t, 1);
}

}  // namespace pypto::ir::infer
