// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/chain_strips.h"

#include <algorithm>
#include <cstring>

#include "core/vm/kernels/parallel.h"
#include "core/vm/ops/elementwise.h"

namespace pypto::vm {
namespace {

/// Elements of a strip: 8 KiB of FP32: four to five values fit the first-level cache.
constexpr int64_t kStripElements = 2048;

/// Inputs from this size on are not found in the caches of a core.
constexpr int64_t kFetchBytes = int64_t{1} << 20;

/// Elements times steps that a thread of its own is worth.
constexpr int64_t kThreadWork = int64_t{3} << 20;

std::vector<uint8_t>& arena() {
  thread_local std::vector<uint8_t> bytes;
  return bytes;
}

int64_t count_of(ChainPart part, int64_t rows, int64_t columns) {
  return part == ChainPart::kOne ? 1 : part == ChainPart::kColumn ? rows : rows * columns;
}

/// Operand data in the computing dtype.
const uint8_t* converted(const uint8_t* data, DType from, DType compute, int64_t count, uint8_t* room) {
  cast_row(from, data, compute, room, static_cast<size_t>(count), CastMode::kRound);
  return room;
}

void spread(const uint8_t* in, bool one, uint8_t* out, int64_t count, int64_t width) {
  if (one) {
    fill_row(out, in, static_cast<size_t>(count), static_cast<int>(width));
  } else {
    std::memmove(out, in, static_cast<size_t>(count * width));
  }
}

}  // namespace

// ------------------------------------------------------------------ preparation

StripRun::StripRun(const Chain& chain, const ChainPlan& plan)
    : chain_(chain), plan_(plan), input_count_(static_cast<size_t>(chain.inputs)) {
  choose_strip();
  make_slots();
  make_steps();
}

void StripRun::bind(std::span<const View* const> values) {
  for (size_t v = 0; v < values.size(); ++v) {
    Slot& s = slots_[v];
    if (!s.given) continue;
    s.base = values[v]->data();
    s.pitch = row_pitch(*values[v], s.width);
  }
}

void StripRun::set_scalars(std::span<const Scalar> scalars) {
  for (const auto& [k, compute] : scalar_steps_) {
    const auto index = static_cast<size_t>(chain_.steps[k].scalar);
    const DType from = chain_.scalars[index];
    uint8_t* element = scalar_elements_.data() + k * 8;
    if (is_float(from)) {
      write_float(compute, element, scalars[index].f);
    } else if (is_float(compute)) {
      cast_row(from == DType::kUInt64 ? from : DType::kInt64, &scalars[index].i, compute, element, 1,
               CastMode::kRound);
    } else {
      write_integer(compute, element, scalars[index].i);
    }
  }
}

void StripRun::output(size_t v, const View& target, bool streams) {
  Slot& s = slots_[v];
  s.base = target.data();
  s.pitch = row_pitch(target, s.width);
  s.streams = streams && s.part == ChainPart::kFull;
  const bool contiguous =
      !s.streams && (strip_rows_ == 1 || (s.part == ChainPart::kColumn ? s.pitch == s.width
                                                                       : s.pitch == plan_.columns * s.width));
  bool over_input = false;
  for (size_t i = 0; i < input_count_; ++i) over_input = over_input || slots_[i].base == s.base;
  if (s.copies_out == contiguous || s.over_input != over_input) grouped_ = false;
  s.copies_out = !contiguous;
  s.over_input = over_input;
}

int64_t StripRun::row_pitch(const View& v, int64_t width) const {
  if (plan_.flat || v.rank < 2) return 0;
  // Merged leading axes have one pitch; the innermost of them that is longer than 1 tells it.
  for (int a = v.rank - 2; a >= 0; --a) {
    if (v.shape[a] != 1) {
      int64_t inner = 1;
      for (int b = a + 1; b <= v.rank - 2; ++b) inner *= v.shape[b];
      return v.stride[a] / std::max<int64_t>(inner, 1) * width;
    }
  }
  return 0;
}

void StripRun::choose_strip() {
  bool whole_rows = false;
  for (const ChainStep& step : chain_.steps)
    whole_rows = whole_rows || chain_op(step.op).kind == ChainKind::kReduce;
  if (plan_.columns >= kStripElements) {
    strip_rows_ = 1;
    strip_columns_ = whole_rows ? plan_.columns : kStripElements;
  } else {
    strip_columns_ = plan_.columns;
    strip_rows_ = std::min(plan_.rows, std::max<int64_t>(1, kStripElements / plan_.columns));
  }
}

void StripRun::make_slots() {
  const size_t values = input_count_ + chain_.steps.size();
  slots_.resize(values + chain_.steps.size());  // one more per step for a scalar operand
  for (size_t v = 0; v < values; ++v) {
    Slot& s = slots_[v];
    s.part = plan_.parts[v];
    s.width = dtype_bytes(plan_.dtypes[v]);
    s.given = v < input_count_ || plan_.before[v - input_count_];
  }
  scalar_elements_.resize(chain_.steps.size() * 8);
}

void StripRun::make_steps() {
  for (size_t k = 0; k < chain_.steps.size(); ++k) {
    if (plan_.before[k]) continue;
    const ChainStep& from = chain_.steps[k];
    const ChainOp op = chain_op(from.op);
    Step s;
    s.op = op;
    s.lhs = static_cast<size_t>(from.lhs);
    s.out = input_count_ + k;
    s.dtype = from.dtype;
    s.mode = from.mode;
    s.lhs_dtype = plan_.dtypes[s.lhs];
    s.compute = compute_dtype(s.dtype, {s.lhs_dtype});
    if (from.rhs >= 0) {
      s.has_rhs = true;
      s.rhs = static_cast<size_t>(from.rhs);
      s.rhs_dtype = plan_.dtypes[s.rhs];
      if (compute_dtype(s.dtype, {s.rhs_dtype}) != s.dtype) s.compute = DType::kFp32;
    }
    if (from.scalar >= 0) {
      s.has_rhs = true;
      s.rhs = input_count_ + chain_.steps.size() + k;
      s.rhs_dtype = s.compute;
      Slot& slot = slots_[s.rhs];
      slot.part = ChainPart::kOne;
      slot.width = dtype_bytes(s.compute);
      slot.base = scalar_elements_.data() + k * 8;
      scalar_steps_.push_back({k, s.compute});
    }
    switch (op.kind) {
      case ChainKind::kBinary:
        choose_binary(s, op.binary);
        break;
      case ChainKind::kUnary:
        s.unary = unary_kernel(op.unary, s.compute);
        break;
      case ChainKind::kReduce:
        s.reduce = reduce_kernel(op.reduce, s.compute);
        break;
      case ChainKind::kCast:
        s.compute = s.lhs_dtype;
        break;
      case ChainKind::kSpread:
        s.compute = s.dtype;
        break;
      case ChainKind::kNo:
        break;
    }
    s.width = dtype_bytes(s.compute);
    s.out_part = slots_[s.out].part;
    s.lhs_part = slots_[s.lhs].part;
    s.rhs_part = slots_[s.rhs].part;
    s.converts_lhs = !same_dtype(s.lhs_dtype, s.compute);
    s.converts_rhs = !same_dtype(s.rhs_dtype, s.compute);
    s.narrows = !same_dtype(s.compute, s.dtype);
    steps_.push_back(s);
  }
}

/// One kernel for the whole strip, or one call per row where an operand is a column.
void StripRun::choose_binary(Step& s, BinaryOp op) const {
  const ChainPart lhs = slots_[s.lhs].part, rhs = slots_[s.rhs].part, out = slots_[s.out].part;
  const bool wide = out == ChainPart::kFull;
  s.lhs_one = lhs == ChainPart::kOne;
  s.rhs_one = rhs == ChainPart::kOne;
  Spread spread = Spread::kNone;
  if (wide && lhs == ChainPart::kColumn) {
    s.cover = Cover::kRowsLhs;
    spread = Spread::kLhs;
  } else if (wide && rhs == ChainPart::kColumn) {
    s.cover = Cover::kRowsRhs;
    spread = Spread::kRhs;
  } else if (s.rhs_one) {
    spread = Spread::kRhs;
  } else if (s.lhs_one) {
    spread = Spread::kLhs;
  }
  s.binary = binary_kernel(op, s.compute, spread);
}

/// Finds an output in whose rows value `v`, made by `step` of `unit`, can live: one that is computed from it
/// or later. Rows that are written anyway take no room of their own in the caches.
bool StripRun::lend_output(size_t v, size_t step, const Unit& unit) {
  const Slot& value = slots_[v];
  if (value.part != ChainPart::kFull || last_use_[v] <= step) return false;
  for (size_t k = step + 1; k < steps_.size(); ++k) {
    const size_t u = steps_[k].out;
    const Slot& out = slots_[u];
    if (out.base == nullptr || out.copies_out || out.over_input || out.part != ChainPart::kFull) continue;
    if (!same_dtype(plan_.dtypes[u], plan_.dtypes[v]) || last_use_[v] > k) continue;
    // A unit may read its operands until its end.
    const bool taken = std::any_of(lent_.begin(), lent_.end(), [&](const auto& l) {
      return l.second == u && last_use_[l.first] >= unit.first;
    });
    if (taken) continue;
    lent_.emplace_back(v, u);
    return true;
  }
  return false;
}

/// Whether the next strip's inputs should come closer while the last unit works: for strips that are large
/// rows of inputs beyond the caches, with enough arithmetic (one slow step, or many) to leave memory idle.
bool StripRun::worth_fetching() const {
  if (strip_rows_ != 1 || strip_columns_ != plan_.columns) return false;
  if (plan_.rows * plan_.columns * 4 < kFetchBytes || units_.size() < 2) return false;
  const auto slow = [](const Step& s) {
    if (s.out_part != ChainPart::kFull) return false;
    if (s.op.kind == ChainKind::kBinary) return s.op.binary == BinaryOp::kExpDif;
    return s.op.kind == ChainKind::kUnary && s.op.unary != UnaryOp::kNeg && s.op.unary != UnaryOp::kAbs &&
           s.op.unary != UnaryOp::kRelu && s.op.unary != UnaryOp::kNot;
  };
  constexpr int64_t kManySteps = 5;
  const auto full = [](const Step& s) { return s.out_part == ChainPart::kFull; };
  return std::any_of(steps_.begin(), steps_.end(), slow) ||
         std::count_if(steps_.begin(), steps_.end(), full) >= kManySteps;
}

/// Strip storage for every value that has none of its own, reused after the last use of a value.
void StripRun::assign_buffers() {
  lent_.clear();
  fetches_ = worth_fetching() && units_.back().fused && !units_.back().reduces;
  int64_t widest = 1;
  for (const Slot& s : slots_) widest = std::max(widest, s.width);
  for (const Step& s : steps_) widest = std::max<int64_t>(widest, dtype_bytes(s.compute));
  // An odd number of cache lines apart: strips at equal offsets modulo 4 KiB would look dependent to the
  // processor.
  const int64_t lines = (strip_elements() * widest + 63) / 64;
  buffer_bytes_ = (lines | 1) * 64 + 128;
  std::vector<int> free_list;
  owner_.assign(slots_.size(), -1);
  int count = 3;  // converted operands and unrounded results
  auto take = [&] {
    if (free_list.empty()) return count++;
    const int b = free_list.back();
    free_list.pop_back();
    return b;
  };
  for (size_t v = 0; v < input_count_ + chain_.steps.size(); ++v) {
    const Slot& s = slots_[v];
    if (!s.given) continue;
    // Rows of an input that do not follow each other are gathered; a row vector is repeated.
    const bool gathers =
        (s.part == ChainPart::kFull && strip_rows_ > 1 && s.pitch != plan_.columns * s.width) ||
        (s.part == ChainPart::kRow && strip_rows_ > 1) ||
        (s.part == ChainPart::kColumn && s.pitch != s.width);
    if (gathers) owner_[v] = count++;
  }
  for (const Unit& unit : units_) {
    for (size_t i = unit.first; i <= unit.last; ++i) {
      const Slot& out = slots_[steps_[i].out];
      if (!out.stored || (out.base != nullptr && !out.copies_out)) continue;
      if (out.base == nullptr && lend_output(steps_[i].out, i, unit)) continue;
      owner_[steps_[i].out] = take();
    }
    // A unit may read its operands until its end.
    for (size_t i = unit.first; i <= unit.last; ++i) {
      const bool two = steps_[i].has_rhs && steps_[i].lhs != steps_[i].rhs;
      for (int side = 0; side < (two ? 2 : 1); ++side) {
        const size_t operand = side == 0 ? steps_[i].lhs : steps_[i].rhs;
        const bool temporary =
            operand < input_count_ + chain_.steps.size() && owner_[operand] >= 0 && !slots_[operand].given;
        if (temporary && last_use_[operand] == i) free_list.push_back(owner_[operand]);
      }
    }
  }
  buffer_count_ = count;
}

void StripRun::place_slots() {
  const auto size = static_cast<size_t>(buffer_bytes_) * static_cast<size_t>(buffer_count_) + 64;
  if (arena().size() < size) arena().resize(size);
  auto* start = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(arena().data()) + 63) / 64 * 64);
  converted_ = start;
  converted_rhs_ = start + buffer_bytes_;
  unrounded_ = start + buffer_bytes_ * 2;
  moving_.clear();
  for (size_t v = 0; v < slots_.size(); ++v) {
    Slot& s = slots_[v];
    s.buffer = owner_[v] >= 0 ? start + buffer_bytes_ * owner_[v] : nullptr;
    s.data = s.buffer != nullptr ? s.buffer : s.base;
    if (s.part == ChainPart::kNone || s.part == ChainPart::kOne || s.data == nullptr) continue;
    if (s.part == ChainPart::kRow) {
      if (s.buffer == nullptr) s.pitch = 0;  // strips of one row: only the column moves
      for (int64_t r = 0; r < strip_rows_ && s.buffer != nullptr; ++r) {
        std::memcpy(s.buffer + r * plan_.columns * s.width, s.base,
                    static_cast<size_t>(plan_.columns * s.width));
      }
    }
    const bool fixed =
        s.buffer != nullptr && (s.base == nullptr || s.copies_out || s.part == ChainPart::kRow);
    if (!fixed) moving_.push_back(v);
  }
}

// ------------------------------------------------------------------ execution

void StripRun::run() {
  if (!grouped_) {
    group();
    assign_buffers();
    grouped_ = true;
  }
  const int64_t row_strips = (plan_.rows + strip_rows_ - 1) / strip_rows_;
  const int64_t column_strips = (plan_.columns + strip_columns_ - 1) / strip_columns_;
  // Threads share out whole rows of strips, as the strips of a row may make the same column vectors.
  const bool by_row = row_strips > 1;
  const int64_t work = plan_.rows * plan_.columns * static_cast<int64_t>(steps_.size() + 1);
  const auto parts = static_cast<int>(
      std::min<int64_t>({operation_threads(), work / kThreadWork, by_row ? row_strips : column_strips}));
  if (parts <= 1) {
    place_slots();
    return run_strips(0, row_strips, 0, column_strips);
  }
  run_parts(parts, [&](int p) {
    StripRun part(*this);
    part.place_slots();
    const auto share = [&](int64_t n, int k) { return n * k / parts; };
    if (by_row) {
      part.run_strips(share(row_strips, p), share(row_strips, p + 1), 0, column_strips);
    } else {
      part.run_strips(0, 1, share(column_strips, p), share(column_strips, p + 1));
    }
  });
}

/// Strips [first_row, end_row) x [first_column, end_column).
void StripRun::run_strips(int64_t first_row, int64_t end_row, int64_t first_column, int64_t end_column) {
  for (int64_t r = first_row; r < end_row; ++r) {
    const int64_t row = r * strip_rows_, rows = std::min(strip_rows_, plan_.rows - row);
    for (int64_t c = first_column; c < end_column; ++c) {
      const int64_t column = c * strip_columns_;
      strip(row, rows, column, std::min(strip_columns_, plan_.columns - column));
    }
  }
  for (const Slot& s : slots_) {
    if (s.streams) return finish_streams();
  }
}

void StripRun::strip(int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (const size_t v : moving_) {
    Slot& s = slots_[v];
    const bool column_part = s.part == ChainPart::kColumn;
    if (s.buffer == nullptr) {
      s.data = s.base + row * s.pitch + (column_part ? 0 : column * s.width);
      continue;
    }
    const int64_t bytes = column_part ? s.width : columns * s.width;
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(s.buffer + r * bytes, s.base + (row + r) * s.pitch, static_cast<size_t>(bytes));
    }
  }
  for (const auto& [v, output] : lent_) slots_[v].data = slots_[output].data;
  for (Unit& unit : units_) {
    if (unit.fused) {
      execute_fused(unit, rows, columns);
    } else {
      execute(steps_[unit.first], rows, columns);
    }
    for (size_t i = unit.first; i <= unit.last; ++i) {
      const Slot& out = slots_[steps_[i].out];
      if (out.copies_out) copy_out(out, row, rows, column, columns);
    }
  }
}

void StripRun::copy_out(const Slot& out, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  const bool column_part = out.part == ChainPart::kColumn;
  const int64_t bytes = column_part ? out.width : columns * out.width;
  const int64_t start = column_part ? 0 : column * out.width;
  for (int64_t r = 0; r < rows; ++r) {
    uint8_t* to = out.base + (row + r) * out.pitch + start;
    const uint8_t* from = out.data + r * bytes;
    if (out.streams) {
      stream_row(to, from, bytes);
    } else {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    }
  }
}

/// Streams a row of a strip while the inputs of the next strip are on their way to the caches.
void StripRun::stream_row(uint8_t* to, const uint8_t* from, int64_t bytes) const {
  constexpr int64_t kPiece = 1024;
  // Pieces end where cache lines do.
  const auto first = kPiece + static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % 64);
  for (int64_t at = 0; at < bytes;) {
    const int64_t piece = std::min(at == 0 ? first : kPiece, bytes - at);
    for (const size_t v : moving_) {
      const Slot& s = slots_[v];
      if (!s.given || s.buffer != nullptr || s.part != ChainPart::kFull) continue;
      const uint8_t* next = s.data + strip_elements() * s.width + at;
      for (int64_t line = 0; line < piece; line += 64) __builtin_prefetch(next + line);
    }
    stream_bytes(to + at, from + at, static_cast<size_t>(piece));
    at += piece;
  }
}

void StripRun::execute_fused(Unit& unit, int64_t rows, int64_t columns) {
  const bool by_row = unit.by_row || unit.reduces;
  const auto pitch = [&](ChainPart p, FuseType type) -> int64_t {
    const int64_t width = type == FuseType::kFp32 ? 4 : 2;
    return !by_row || p == ChainPart::kOne ? 0 : p == ChainPart::kColumn ? width : columns * width;
  };
  for (size_t i = 0; i < unit.steps.size(); ++i) {
    if (unit.slots[i] == kNoSlot) continue;
    const Slot& slot = slots_[unit.slots[i]];
    unit.steps[i].data = slot.data;
    unit.steps[i].pitch = pitch(slot.part, unit.steps[i].type);
  }
  const ChainPart part = slots_[unit.start].part;
  FuseArray first{slots_[unit.start].data, unit.first_type,
                  part == ChainPart::kOne || part == ChainPart::kColumn, pitch(part, unit.first_type)};
  const FuseArray out{slots_[steps_[unit.last].out].data, unit.out_type, false,
                      pitch(unit.reduces ? ChainPart::kColumn : ChainPart::kFull, unit.out_type)};
  if (fetches_ && &unit == &units_.back()) {
    size_t count = 0;
    for (const size_t v : moving_) {
      const Slot& s = slots_[v];
      if (!s.given || s.buffer != nullptr || s.part != ChainPart::kFull || count == std::size(first.ahead))
        continue;
      first.ahead[count++] = {s.data + s.pitch, static_cast<size_t>(s.width)};
    }
  }
  const FuseRows covered = by_row ? FuseRows{static_cast<size_t>(rows), static_cast<size_t>(columns)}
                                  : FuseRows{1, static_cast<size_t>(rows * columns)};
  if (unit.reduces) {
    run_fused_reduce(first, unit.steps, unit.reduce, out, covered);
  } else {
    run_fused(first, unit.steps, out, covered);
  }
}

void StripRun::execute(const Step& s, int64_t rows, int64_t columns) {
  const Slot& out = slots_[s.out];
  const auto count = static_cast<size_t>(count_of(s.out_part, rows, columns));
  const uint8_t* a = slots_[s.lhs].data;
  if (s.op.kind == ChainKind::kCast) return cast_row(s.lhs_dtype, a, s.dtype, out.data, count, s.mode);
  if (s.op.kind == ChainKind::kSpread) return spread_vector(s, rows, columns);
  uint8_t* to = s.narrows ? unrounded_ : out.data;
  if (s.converts_lhs)
    a = converted(a, s.lhs_dtype, s.compute, count_of(s.lhs_part, rows, columns), converted_);
  switch (s.op.kind) {
    case ChainKind::kUnary:
      s.unary(a, to, count);
      break;
    case ChainKind::kReduce:
      for (int64_t r = 0; r < rows; ++r) {
        s.reduce(a + r * columns * s.width, static_cast<size_t>(columns), to + r * s.width);
      }
      break;
    default: {
      const uint8_t* b = slots_[s.rhs].data;
      if (s.converts_rhs) {
        b = converted(b, s.rhs_dtype, s.compute, count_of(s.rhs_part, rows, columns), converted_rhs_);
      }
      binary(s, a, b, to, rows, columns, count);
      break;
    }
  }
  if (s.narrows) cast_row(s.compute, unrounded_, s.dtype, out.data, count, CastMode::kRound);
}

void StripRun::binary(const Step& s, const uint8_t* a, const uint8_t* b, uint8_t* to, int64_t rows,
                      int64_t columns, size_t count) {
  if (s.cover == Cover::kWhole) return s.binary(a, b, to, count);
  const int64_t row_bytes = columns * s.width;
  const int64_t step_a = s.cover == Cover::kRowsLhs ? s.width : s.lhs_one ? 0 : row_bytes;
  const int64_t step_b = s.cover == Cover::kRowsRhs ? s.width : s.rhs_one ? 0 : row_bytes;
  for (int64_t r = 0; r < rows; ++r) {
    s.binary(a + r * step_a, b + r * step_b, to + r * row_bytes, static_cast<size_t>(columns));
  }
}

void StripRun::spread_vector(const Step& s, int64_t rows, int64_t columns) {
  const Slot& out = slots_[s.out];
  const uint8_t* in = slots_[s.rhs].data;
  if (s.converts_rhs) {
    in = converted(in, s.rhs_dtype, s.compute, count_of(s.rhs_part, rows, columns), converted_rhs_);
  }
  if (s.out_part == ChainPart::kFull && s.rhs_part == ChainPart::kColumn) {
    for (int64_t r = 0; r < rows; ++r) {
      fill_row(out.data + r * columns * s.width, in + r * s.width, static_cast<size_t>(columns),
               static_cast<int>(s.width));
    }
    return;
  }
  spread(in, s.rhs_part == ChainPart::kOne, out.data, count_of(s.out_part, rows, columns), s.width);
}

}  // namespace pypto::vm
