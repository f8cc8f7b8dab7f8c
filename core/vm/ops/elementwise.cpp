// SPDX-License-Identifier: Apache-2.0
#include "core/vm/ops/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/ir/expand.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

/// Elements converted at a time when a result is narrower than the computation.
constexpr int64_t kStrip = 512;

std::string cell_text(int64_t linear, const View& out) {
  int64_t at[kMaxRank] = {};
  for (int a = out.rank - 1; a >= 0; --a) {
    const int64_t extent = std::max<int64_t>(out.valid[a], 1);
    at[a] = linear % extent;
    linear /= extent;
  }
  return list_text({at, static_cast<size_t>(out.rank)});
}

/// Index of the first negative shift count, or n.
template <class T>
int64_t negative_count(const T* counts, bool repeats, int64_t n) {
  for (int64_t i = 0; i < (repeats ? std::min<int64_t>(n, 1) : n); ++i) {
    if (counts[i] < 0) return i;
  }
  return n;
}

int64_t find_negative(DType dtype, const void* counts, bool repeats, int64_t n) {
  switch (dtype) {
    case DType::kInt8:
      return negative_count(static_cast<const int8_t*>(counts), repeats, n);
    case DType::kInt16:
      return negative_count(static_cast<const int16_t*>(counts), repeats, n);
    case DType::kInt32:
      return negative_count(static_cast<const int32_t*>(counts), repeats, n);
    case DType::kInt64:
    case DType::kIndex:
      return negative_count(static_cast<const int64_t*>(counts), repeats, n);
    default:
      return n;
  }
}

/// Finds the unspecified numeric cases of an integer operation, so that results never depend on looking for
/// them.
void warn_unspecified(OpCall& call, BinaryOp op, DType dtype, const Walk& walk, const View& out) {
  const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kFmod || op == BinaryOp::kRem;
  const bool shifts = (op == BinaryOp::kShl || op == BinaryOp::kShr) && is_signed_int(dtype);
  if (is_float(dtype) || (!divides && !shifts)) return;
  int64_t done = 0, found = -1;
  walk.rows([&](uint8_t* const* p, int64_t n) {
    if (found < 0) {
      const bool left_repeats = n > 1 && walk.repeats(1);
      const bool right_repeats = n > 1 && walk.repeats(2);
      const Spread spread = left_repeats ? Spread::kLhs : right_repeats ? Spread::kRhs : Spread::kNone;
      const int64_t at =
          divides
              ? static_cast<int64_t>(find_division_fault(dtype, p[1], p[2], spread, static_cast<size_t>(n)))
              : find_negative(dtype, p[2], right_repeats, n);
      if (at < n) found = done + at;
    }
    done += n;
  });
  if (found < 0) return;
  const std::string name = ir::op_row(call.op).name;
  call.warn("W-NUMERIC",
            divides
                ? name + ": cell " + cell_text(found, out) +
                      " divides an integer by zero (or the least value by -1), which gives an unspecified "
                      "result; replace such divisors first, for example with pl.maximum"
                : name + ": the shift count of cell " + cell_text(found, out) +
                      " is negative, which gives an unspecified result; use counts >= 0");
}

}  // namespace

void scalar_element(OpCall& call, int param, DType dtype, void* element) {
  const Scalar s = call.scalar(param);
  const DType from = call.scalar_dtype(param);
  if (!is_float(from)) {
    if (!is_float(dtype)) {
      write_integer(dtype, element, s.i);
    } else {
      cast_row(from == DType::kUInt64 ? from : DType::kInt64, &s.i, dtype, element, 1, CastMode::kRound);
    }
    return;
  }
  if (is_float(dtype)) {
    write_float(dtype, element, s.f);
    return;
  }
  const double whole = std::trunc(s.f);
  if (integer_overflows(whole, dtype)) {
    call.warn("W-NUMERIC", std::string(ir::op_row(call.op).name) + ": scalar " + std::to_string(s.f) +
                               " does not fit dtype " + std::string(dtype_text(dtype)) +
                               " of the array it is combined with; cast the array to a float dtype first");
  }
  write_integer(dtype, element, float_to_integer(whole, dtype));
}

// ------------------------------------------------------------------ operands

Input::Input(OpCall& call, int param, DType compute) : call_(&call), param_(param), dtype_(compute) {
  if (call.is_scalar(param)) {
    scalar_ = true;
    scalar_element(call, param, compute, value_);
    return;
  }
  take(call, read_operand(call, param));
}

Input::Input(OpCall& call, const View& value, DType compute) : dtype_(compute) { take(call, value); }

void Input::take(OpCall& call, const View& value) {
  view_ = value;
  source_ = &value;
  const int last = value.rank - 1;
  bool direct = !nibble_packed(value);
  if (direct && last >= 0) {
    direct = value.shape[last] == 1 ? value.rank == 1 || value.packed() || value.stride[last] == 0
                                    : value.stride[last] == 1;
  }
  // A window that overhangs its storage may be read in its valid region only.
  if (direct && !value.fully_valid) direct = readable_region(value).elements() == value.elements();
  if (!direct) view_ = packed_copy(call, value, value.dtype);
  if (!same_dtype(value.dtype, dtype_)) {
    if (!view_.packed()) view_ = packed_copy(call, view_, value.dtype);
    View converted = call.alloc(dtype_, shape_of(view_).span(), false);
    cast_row(value.dtype, view_.data(), dtype_, converted.data(), static_cast<size_t>(view_.elements()),
             CastMode::kRound);
    for (int a = 0; a < view_.rank; ++a) converted.valid[a] = view_.valid[a];
    converted.fully_valid = view_.fully_valid;
    view_ = std::move(converted);
  }
}

void Input::add_to(Walk& walk, const Extents& shape) const {
  int64_t strides[kMaxRank] = {};
  const int64_t width = dtype_bytes(dtype_);
  if (!scalar_) {
    const int lead = shape.rank - view_.rank;
    for (int a = 0; a < view_.rank; ++a) {
      if (view_.shape[a] != 1 && (lead + a < 0 || view_.shape[a] != shape[lead + a])) misfit(shape);
      if (lead + a < 0) continue;
      strides[lead + a] = view_.shape[a] == 1 ? 0 : view_.stride[a] * width;
    }
  }
  walk.add(data(), strides, width);
}

void Input::misfit(const Extents& shape) const {
  const std::string what = "of shape " + list_text(shape_of(view_).span()) + " does not fit shape " +
                           list_text(shape.span()) + " of the other operand";
  PYPTO_CHECK(param_ >= 0, "an intermediate value " + what);
  fault(*call_, param_, what, "each dimension must be equal or 1");
}

// ------------------------------------------------------------------ shapes

Extents broadcast(const Extents& a, const Extents& b) {
  const Extents& longer = a.rank >= b.rank ? a : b;
  const Extents& shorter = a.rank >= b.rank ? b : a;
  Extents out = longer;
  const int lead = longer.rank - shorter.rank;
  for (int i = 0; i < shorter.rank; ++i) {
    if (out[lead + i] == 1) out[lead + i] = shorter[i];
  }
  return out;
}

bool operands_fit(ir::OpId op, const Extents& lhs, const Extents& rhs) {
  const ir::Expansion spread = ir::expansion(op);
  if (spread == ir::Expansion::kNone) {
    const int axes = std::min(lhs.rank, rhs.rank);
    for (int i = 1; i <= axes; ++i) {
      const int64_t a = lhs[lhs.rank - i], b = rhs[rhs.rank - i];
      if (a != b && a != 1 && b != 1) return false;
    }
    return true;
  }
  const int lead = lhs.rank - rhs.rank;
  if (lead < 0 || (lead > 0 && spread != ir::Expansion::kRow)) return false;
  const int unit = spread == ir::Expansion::kColumn ? rhs.rank - 1 : rhs.rank - 2;
  for (int i = 0; i < rhs.rank; ++i) {
    // Axes in front of the last two may be shared by a row.
    const bool shared = spread == ir::Expansion::kRow && i < unit && rhs[i] == 1;
    if (rhs[i] != (i == unit ? 1 : lhs[lead + i]) && !shared) return false;
  }
  return true;
}

void require_fit(const OpCall& call, const View& lhs, const View& rhs) {
  const Extents a = shape_of(lhs), b = shape_of(rhs);
  if (operands_fit(call.op, a, b)) return;
  const ir::Expansion spread = ir::expansion(call.op);
  fault(call, 1,
        "of shape " + list_text(b.span()) + " does not fit shape " + list_text(a.span()) +
            " of the first operand",
        spread == ir::Expansion::kColumn ? "it needs the same rows and one column"
        : spread == ir::Expansion::kRow  ? "it needs one row and the same columns"
                                         : "each dimension must be equal or 1");
}

Extents broadcast_valid(const View& v, const Extents& shape) {
  Extents out = shape;
  const int lead = shape.rank - v.rank;
  for (int i = 0; i < v.rank; ++i) {
    if (lead + i < 0) continue;
    if (v.shape[i] == shape[lead + i]) {
      out[lead + i] = v.valid[i];
    } else if (v.valid[i] == 0) {
      out[lead + i] = 0;
    }
  }
  return out;
}

DType compute_dtype(DType result, std::initializer_list<DType> operands) {
  if (result != DType::kFp16 && result != DType::kBf16) return result;
  for (const DType d : operands) {
    if (d != result && is_float(d)) return DType::kFp32;
  }
  return result;
}

View elementwise_result(OpCall& call, DType dtype, const Extents& shape, const View& first) {
  const View out = alloc_result(call, dtype, shape, broadcast_valid(first, shape));
  if (!out.fully_valid && !first.fully_valid && first.buffer->written.origin != 0)
    out.buffer->written.origin = first.buffer->written.origin;
  return out;
}

bool plain_tile(const View& v, DType dtype) {
  return v.dtype == dtype && v.fully_valid && v.buffer->kind == BufferKind::kOnChip &&
         v.buffer->written.all && v.packed();
}

View plain_result(OpCall& call, DType dtype, const View& like) {
  View out = call.alloc(dtype, {like.shape, static_cast<size_t>(like.rank)}, false);
  return out;
}

Walk walk_result(const View& out) {
  Walk walk(out.rank, out.valid);
  int64_t strides[kMaxRank] = {};
  const int64_t width = dtype_bytes(out.dtype);
  for (int a = 0; a < out.rank; ++a) strides[a] = out.stride[a] * width;
  walk.add(out.data(), strides, width);
  return walk;
}

// ------------------------------------------------------------------ loops

void apply_binary(OpCall& call, BinaryOp op, const Input& lhs, const Input& rhs, const View& out) {
  const DType compute = lhs.dtype();
  Walk walk = walk_result(out);
  const Extents shape = shape_of(out);
  lhs.add_to(walk, shape);
  rhs.add_to(walk, shape);
  walk.collapse();
  inherit_unwritten(out, {&lhs, &rhs});
  if (walk.empty()) return;
  const bool left = walk.repeats(1);
  const bool right = walk.repeats(2);
  const bool both = left && right;
  const Spread spread = both ? Spread::kNone : left ? Spread::kLhs : right ? Spread::kRhs : Spread::kNone;
  const BinaryKernel kernel = binary_kernel(op, compute, spread);
  PYPTO_CHECK(kernel != nullptr, std::string("no kernel of ") + ir::op_row(call.op).name + " for " +
                                     std::string(dtype_text(compute)));
  warn_unspecified(call, op, compute, walk, out);
  if (!both && same_dtype(out.dtype, compute)) {
    walk.rows([&](uint8_t* const* p, int64_t n) { kernel(p[1], p[2], p[0], static_cast<size_t>(n)); });
    return;
  }
  alignas(64) uint8_t strip[kStrip * 8];
  const int64_t width = dtype_bytes(compute);
  const int64_t out_width = dtype_bytes(out.dtype);
  walk.rows([&](uint8_t* const* p, int64_t n) {
    if (both) {
      alignas(8) uint8_t element[8];
      kernel(p[1], p[2], strip, 1);
      cast_row(compute, strip, out.dtype, element, 1, CastMode::kRound);
      fill_row(p[0], element, static_cast<size_t>(n), static_cast<int>(out_width));
      return;
    }
    for (int64_t i = 0; i < n; i += kStrip) {
      const auto count = static_cast<size_t>(std::min(kStrip, n - i));
      kernel(p[1] + (left ? 0 : i * width), p[2] + (right ? 0 : i * width), strip, count);
      cast_row(compute, strip, out.dtype, p[0] + i * out_width, count, CastMode::kRound);
    }
  });
}

void apply_unary(OpCall& call, UnaryOp op, const Input& in, const View& out) {
  const DType compute = in.dtype();
  const UnaryKernel kernel = unary_kernel(op, compute);
  PYPTO_CHECK(kernel != nullptr, std::string("no kernel of ") + ir::op_row(call.op).name + " for " +
                                     std::string(dtype_text(compute)));
  Walk walk = walk_result(out);
  in.add_to(walk, shape_of(out));
  walk.collapse();
  inherit_unwritten(out, {&in});
  const bool direct = same_dtype(out.dtype, compute);
  alignas(64) uint8_t strip[kStrip * 8];
  const int64_t width = dtype_bytes(compute);
  const int64_t out_width = dtype_bytes(out.dtype);
  walk.rows([&](uint8_t* const* p, int64_t n) {
    if (direct) {
      kernel(p[1], p[0], static_cast<size_t>(n));
      return;
    }
    for (int64_t i = 0; i < n; i += kStrip) {
      const auto count = static_cast<size_t>(std::min(kStrip, n - i));
      kernel(p[1] + i * width, strip, count);
      cast_row(compute, strip, out.dtype, p[0] + i * out_width, count, CastMode::kRound);
    }
  });
}

void apply_copy(const Input& in, const View& out) {
  Walk walk = walk_result(out);
  in.add_to(walk, shape_of(out));
  walk.collapse();
  inherit_unwritten(out, {&in});
  const int width = dtype_bytes(out.dtype);
  const bool repeats = walk.repeats(1);
  walk.rows([&](uint8_t* const* p, int64_t n) {
    if (repeats) {
      fill_row(p[0], p[1], static_cast<size_t>(n), width);
    } else {
      std::memmove(p[0], p[1], static_cast<size_t>(n * width));
    }
  });
}

}  // namespace pypto::vm
