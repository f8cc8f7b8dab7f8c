// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/fuse.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/diagnostic.h"
#include "core/vm/kernels/divide-inl.h"
#include "core/vm/kernels/fuse.h"
#include "core/vm/kernels/lanes-inl.h"
#include "core/vm/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;

using M = hn::MFromD<D>;

/// Lanes [from, to) of a vector at the edge of a run: the others are not read and not written.
struct Part {
  size_t from = 0, to = 0;

  M mask(D d) const { return hn::AndNot(hn::FirstN(d, from), hn::FirstN(d, to)); }
};

/// Operand vector at `data`. kPartial: of the lanes in `part` only.
template <bool kPartial, class E>
HWY_INLINE V operand(D d, const E* data, const Part& part) {
  if constexpr (!kPartial) return Lanes<E>::load(d, data);
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<E, float>) return hn::MaskedLoad(part.mask(d), d, data);
#endif
  alignas(64) E buffer[16] = {};
  std::memcpy(buffer + part.from, data + part.from, (part.to - part.from) * sizeof(E));
  return Lanes<E>::load(d, buffer);
}

/// The operands of a block of vectors as FP32.
template <bool kPartial, class E>
HWY_NOINLINE void widen(D d, const E* data, const Part& part, int vectors, float* out) {
  const size_t lanes = hn::Lanes(d);
  for (int v = 0; v < vectors; ++v, data += lanes, out += lanes) {
    hn::Store(operand<kPartial>(d, data, part), d, out);
  }
}

template <bool kPartial, class E>
HWY_INLINE void put(D d, V v, E* data, const Part& part) {
  if constexpr (!kPartial) return Lanes<E>::store(d, v, data);
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<E, float>) return hn::BlendedStore(v, part.mask(d), d, data);
#endif
  alignas(64) E buffer[16];
  Lanes<E>::store(d, v, buffer);
  std::memcpy(data + part.from, buffer + part.from, (part.to - part.from) * sizeof(E));
}

/// Runs `action` with `p`, a pointer to the elements of an array from `base` on. A macro, as a closure would
/// keep the vectors it uses out of registers.
#define PYPTO_TYPED(type, data, base, action)          \
  if (HWY_LIKELY(type == FuseType::kFp32)) {           \
    auto* p = reinterpret_cast<float*>(data) + (base); \
    action;                                            \
  } else if (type == FuseType::kFp16) {                \
    auto* p = reinterpret_cast<Fp16*>(data) + (base);  \
    action;                                            \
  } else {                                             \
    auto* p = reinterpret_cast<Bf16*>(data) + (base);  \
    action;                                            \
  }

HWY_INLINE float single(FuseType type, uint8_t* data) {
  PYPTO_TYPED(type, data, 0, return compute_value(*p));
  return 0;
}

/// A step as the blocks need it: what is the same for all of them is found once.
struct Ready {
  FuseOp op;
  bool one;        ///< the operand is `element`
  bool wide;       ///< the operand must be widened
  bool quotients;  ///< `element` divides through `inverse`
  FuseType type, result;
  float element, inverse;
  uint8_t* data;
  int64_t pitch;

  void read_element() {
    element = single(type, data);
#if HWY_NATIVE_FMA
    quotients = op == FuseOp::kDiv && has_quotients(element);
    if (quotients) inverse = 1.0f / element;
#endif
  }
};

/// The steps of a run. Runs are short: a chain has no more steps than this.
struct Program {
  static constexpr size_t kMost = 64;
  Ready steps[kMost];
  size_t count;

  explicit Program(std::span<const FuseStep> from) : count(from.size()) {
    PYPTO_CHECK(count <= kMost, "too many steps in one run");
    for (size_t i = 0; i < count; ++i) {
      Ready& s = steps[i];
      const FuseStep& f = from[i];
      s.op = f.op;
      s.type = f.type;
      s.result = f.result;
      s.data = f.data;
      s.pitch = f.pitch;
      const bool operand = f.op != FuseOp::kStore && f.data != nullptr;
      s.one = operand && f.one;
      s.wide = operand && !f.one && f.type != FuseType::kFp32;
      s.quotients = false;
      if (s.one) s.read_element();
    }
  }

  void next_row() {
    for (size_t i = 0; i < count; ++i) {
      Ready& s = steps[i];
      if (s.pitch == 0) continue;
      s.data += s.pitch;
      if (s.one) s.read_element();
    }
  }
};

// The vectors of a block are separate variables, not an array, so that they stay in registers. `at` is the
// place of vector `a` in the block.
#define PYPTO_ONE(vector, place, expression)         \
  {                                                  \
    V& a = vector;                                   \
    constexpr size_t at = place * hn::MaxLanes(D()); \
    (void)at;                                        \
    expression;                                      \
  }
#define PYPTO_EACH(expression)                                                               \
  do {                                                                                       \
    PYPTO_ONE(a0, 0, expression)                                                             \
    if constexpr (kVectors > 1) PYPTO_ONE(a1, 1, expression)                                 \
    if constexpr (kVectors > 2) {                                                            \
      PYPTO_ONE(a2, 2, expression) PYPTO_ONE(a3, 3, expression)                              \
    }                                                                                        \
    if constexpr (kVectors > 4) {                                                            \
      PYPTO_ONE(a4, 4, expression)                                                           \
      PYPTO_ONE(a5, 5, expression) PYPTO_ONE(a6, 6, expression) PYPTO_ONE(a7, 7, expression) \
    }                                                                                        \
  } while (0)

// Partial results of a reduction, and vectors that hold them: element i belongs to partial i mod 16.
constexpr size_t kPartials = 16;
constexpr size_t kGroup = kPartials / hn::MaxLanes(D());

struct Partials {
  ReduceOp op = ReduceOp::kSum;
  size_t shift = 0;  ///< lane c of these vectors holds partial c + shift
  V p[kGroup];
};

float neutral(ReduceOp op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return op == ReduceOp::kSum    ? 0.0f
         : op == ReduceOp::kProd ? 1.0f
         : op == ReduceOp::kMax  ? -kInfinity
                                 : kInfinity;
}

/// One block of kVectors vectors from element `base` on through all steps, written to `out` or taken in by
/// `partials`. kPartial: one vector of which the lanes of `part` exist.
template <int kVectors, bool kPartial, bool kReduce>
HWY_INLINE void block(D d, const FuseArray& first, const Program& program, const FuseArray& out,
                      Partials& partials, ptrdiff_t base, const Part& part) {
  const size_t lanes = hn::Lanes(d);
  if constexpr (!kPartial) {
    for (const FuseAhead& ahead : first.ahead) {
      if (ahead.data == nullptr) break;
      const size_t first_element = static_cast<size_t>(base);
      const size_t begin = first_element * ahead.width,
                   end = (first_element + kVectors * lanes) * ahead.width;
      for (size_t at = begin; at < end; at += 64) __builtin_prefetch(ahead.data + at);
    }
  }
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  (void)lanes;
  if (first.one) {
    const V x = hn::Set(d, single(first.type, first.data));
    PYPTO_EACH(a = x);
  } else {
    PYPTO_TYPED(first.type, first.data, base, PYPTO_EACH(a = operand<kPartial>(d, p + at, part)));
  }
  alignas(64) float wide[kVectors * 16];
  for (size_t s = 0; s < program.count; ++s) {
    const Ready& step = program.steps[s];
    // As a number: steps without an operand have no pointer, and the block before an aligned one starts
    // before the row.
    const auto* data = reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(step.data) +
                                                      static_cast<uintptr_t>(base) * sizeof(float));
    if (HWY_UNLIKELY(step.wide)) {
      PYPTO_TYPED(step.type, step.data, base, widen<kPartial>(d, p, part, kVectors, wide));
      data = wide;
    }
#define PYPTO_WITH(expression)                                                     \
  if (step.one) {                                                                  \
    const V x = hn::Set(d, step.element);                                          \
    PYPTO_EACH(a = expression);                                                    \
  } else {                                                                         \
    PYPTO_EACH(const V x = operand<kPartial>(d, data + at, part); a = expression); \
  }                                                                                \
  break
    switch (step.op) {
      case FuseOp::kAdd:
        PYPTO_WITH(hn::Add(a, x));
      case FuseOp::kAddRight:
        PYPTO_WITH(hn::Add(x, a));
      case FuseOp::kSub:
        PYPTO_WITH(hn::Sub(a, x));
      case FuseOp::kSubRight:
        PYPTO_WITH(hn::Sub(x, a));
      case FuseOp::kMul:
        PYPTO_WITH(hn::Mul(a, x));
      case FuseOp::kMulRight:
        PYPTO_WITH(hn::Mul(x, a));
      case FuseOp::kDiv:
#if HWY_NATIVE_FMA
        if (step.quotients) {
          const V x = hn::Set(d, step.element), inverse = hn::Set(d, step.inverse);
          auto range = quotient_range(d, a0);
          PYPTO_EACH(range = hn::And(range, quotient_range(d, a)));
          if (HWY_LIKELY(has_quotients(d, range))) {
            PYPTO_EACH(a = quotient(d, a, x, inverse));
          } else {
            PYPTO_EACH(a = any_quotient(d, a, x, inverse));
          }
          break;
        }
#endif
        PYPTO_WITH(hn::Div(a, x));
      case FuseOp::kDivRight:
        PYPTO_WITH(hn::Div(x, a));
      case FuseOp::kMax:
        PYPTO_WITH(hn::Max(a, x));
      case FuseOp::kMaxRight:
        PYPTO_WITH(hn::Max(x, a));
      case FuseOp::kMin:
        PYPTO_WITH(hn::Min(a, x));
      case FuseOp::kMinRight:
        PYPTO_WITH(hn::Min(x, a));
      case FuseOp::kSquare:
        PYPTO_EACH(a = hn::Mul(a, a));
        break;
      case FuseOp::kDouble:
        PYPTO_EACH(a = hn::Add(a, a));
        break;
      case FuseOp::kNeg:
        PYPTO_EACH(a = hn::Neg(a));
        break;
      case FuseOp::kAbs:
        PYPTO_EACH(a = hn::Abs(a));
        break;
      case FuseOp::kExp:
        PYPTO_EACH(a = exp_lanes(d, a));
        break;
      case FuseOp::kLog:
        PYPTO_EACH(a = log_lanes(d, a));
        break;
      case FuseOp::kSqrt:
        PYPTO_EACH(a = hn::Sqrt(a));
        break;
      case FuseOp::kRsqrt:
        PYPTO_EACH(a = reciprocal_lanes(d, hn::Sqrt(a)));
        break;
      case FuseOp::kRecip:
        PYPTO_EACH(a = hn::Div(hn::Set(d, 1.0f), a));
        break;
      case FuseOp::kRelu:
        PYPTO_EACH(a = hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Zero(d), a));
        break;
      case FuseOp::kLoad:
        PYPTO_WITH(x);
      case FuseOp::kPass:
        break;
      case FuseOp::kStore:
        PYPTO_TYPED(step.type, step.data, base, PYPTO_EACH(put<kPartial>(d, a, p + at, part)));
        break;
    }
#undef PYPTO_WITH
    if (HWY_LIKELY(step.result == FuseType::kFp32)) continue;
    if (step.result == FuseType::kFp16) {
      PYPTO_EACH(a = Lanes<Fp16>::round(d, a));
    } else {
      PYPTO_EACH(a = Lanes<Bf16>::round(d, a));
    }
  }
  if constexpr (kReduce) {
    // The vector before the first aligned one starts `lanes` before element 0 of these.
    const size_t group = (static_cast<size_t>(base) + kPartials - partials.shift) / lanes % kGroup;
    const auto taken = part.mask(d);
#define PYPTO_TAKE(operation)                                  \
  PYPTO_EACH(V& p = partials.p[(group + at / lanes) % kGroup]; \
             p = kPartial ? hn::IfThenElse(taken, operation(p, a), p) : operation(p, a))
    switch (partials.op) {
      case ReduceOp::kSum:
        PYPTO_TAKE(hn::Add);
        break;
      case ReduceOp::kProd:
        PYPTO_TAKE(hn::Mul);
        break;
      case ReduceOp::kMax:
        PYPTO_TAKE(hn::Max);
        break;
      case ReduceOp::kMin:
        PYPTO_TAKE(hn::Min);
        break;
    }
#undef PYPTO_TAKE
  } else {
    PYPTO_TYPED(out.type, out.data, base, PYPTO_EACH(put<kPartial>(d, a, p + at, part)));
  }
}
#undef PYPTO_EACH
#undef PYPTO_ONE
#undef PYPTO_TYPED

/// Elements before the first one at `data` that vectors are aligned at, if the run is long enough for that to
/// matter: stores across cache lines take twice as long, and NumPy's large arrays start 16 bytes into one.
size_t head_of(const uint8_t* data, FuseType type, size_t n) {
  constexpr size_t kVector = hn::MaxLanes(D()) * sizeof(float);
  const size_t bytes = -reinterpret_cast<uintptr_t>(data) % kVector;
  if (type != FuseType::kFp32 || bytes % sizeof(float) != 0 || n < 8 * hn::MaxLanes(D())) return 0;
  return bytes / sizeof(float);
}

/// Elements [i, n).
template <bool kReduce>
HWY_INLINE void blocks(const FuseArray& first, const Program& program, const FuseArray& out,
                       Partials& partials, size_t i, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto at = [](size_t element) { return static_cast<ptrdiff_t>(element); };
  for (; i + 8 * lanes <= n; i += 8 * lanes)
    block<8, false, kReduce>(d, first, program, out, partials, at(i), Part());
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    block<4, false, kReduce>(d, first, program, out, partials, at(i), Part());
  for (; i + lanes <= n; i += lanes)
    block<1, false, kReduce>(d, first, program, out, partials, at(i), Part());
  if (i < n) block<1, true, kReduce>(d, first, program, out, partials, at(i), Part{0, n - i});
}

/// The elements before the first aligned one: the last lanes of the vector before it.
template <bool kReduce>
HWY_INLINE void head_block(const FuseArray& first, const Program& program, const FuseArray& out,
                           Partials& partials, size_t head) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto base = static_cast<ptrdiff_t>(head) - static_cast<ptrdiff_t>(lanes);
  block<1, true, kReduce>(d, first, program, out, partials, base, Part{lanes - head, lanes});
}

void fused(FuseArray first, std::span<const FuseStep> steps, FuseArray out, FuseRows rows) {
  Partials none;
  Program program(steps);
  for (size_t row = 0;;) {
    const size_t head = head_of(out.data, out.type, rows.length);
    if (head != 0) head_block<false>(first, program, out, none, head);
    blocks<false>(first, program, out, none, head, rows.length);
    if (++row >= rows.count) return;
    program.next_row();
    first.data += first.pitch;
    out.data += out.pitch;
  }
}

using Quarter = hn::FixedTag<float, 4>;

/// Lanes or numbers taken together.
template <class T>
HWY_INLINE T combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    return op == ReduceOp::kSum    ? a + b
           : op == ReduceOp::kProd ? a * b
           : op == ReduceOp::kMax  ? (a > b ? a : b)
                                   : (a < b ? a : b);
  } else {
    return op == ReduceOp::kSum    ? hn::Add(a, b)
           : op == ReduceOp::kProd ? hn::Mul(a, b)
           : op == ReduceOp::kMax  ? hn::Max(a, b)
                                   : hn::Min(a, b);
  }
}

/// The tree over 16 partial results.
HWY_INLINE float combine_partials(ReduceOp op, const float* partial) {
  const Quarter d;
  const auto low = combine(op, hn::Load(d, partial), hn::Load(d, partial + 8));
  const auto high = combine(op, hn::Load(d, partial + 4), hn::Load(d, partial + 12));
  alignas(16) float last[4];
  hn::Store(combine(op, low, high), d, last);
  return combine(op, combine(op, last[0], last[2]), combine(op, last[1], last[3]));
}

/// The reduction of one row. `head`: elements before the first that vectors are aligned at.
HWY_INLINE float reduce_row(const FuseArray& first, const Program& program, ReduceOp op, size_t head,
                            size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const float start = neutral(op);
  Partials partials;
  partials.op = op;
  for (V& p : partials.p) p = hn::Set(d, start);
  partials.shift = head;
  if (head != 0) head_block<true>(first, program, FuseArray(), partials, head);
  blocks<true>(first, program, FuseArray(), partials, head, n);
  alignas(64) float partial[kPartials];
  if (head == 0) {
    for (size_t g = 0; g < kGroup; ++g) hn::Store(partials.p[g], d, partial + g * lanes);
  } else {
    alignas(64) float turned[2 * kPartials];  // twice in a row, so that any turn of it is a piece
    for (size_t g = 0; g < 2 * kGroup; ++g) hn::Store(partials.p[g % kGroup], d, turned + g * lanes);
    std::memcpy(partial, turned + kPartials - head, sizeof(partial));
  }
  // The last row of partials is complete: what is missing counts as neutral.
  if (n % kPartials != 0) {
    for (size_t j = n % kPartials; j < kPartials; ++j) partial[j] = combine(op, partial[j], start);
  }
  return combine_partials(op, partial);
}

void fused_reduce(FuseArray first, std::span<const FuseStep> steps, ReduceOp op, FuseArray out,
                  FuseRows rows) {
  Program program(steps);
  size_t store = 0;
  while (store < program.count && program.steps[store].op != FuseOp::kStore) ++store;
  for (size_t row = 0;;) {
    const Ready* s = store < program.count ? &program.steps[store] : nullptr;
    const size_t head = s == nullptr ? 0 : head_of(s->data, s->type, rows.length);
    *reinterpret_cast<float*>(out.data) = reduce_row(first, program, op, head, rows.length);
    if (++row >= rows.count) return;
    program.next_row();
    first.data += first.pitch;
    out.data += out.pitch;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(fused);
HWY_EXPORT(fused_reduce);

void run_fused(const FuseArray& first, std::span<const FuseStep> steps, const FuseArray& out, FuseRows rows) {
  HWY_DYNAMIC_DISPATCH(fused)(first, steps, out, rows);
}

void run_fused_reduce(const FuseArray& first, std::span<const FuseStep> steps, ReduceOp op,
                      const FuseArray& out, FuseRows rows) {
  HWY_DYNAMIC_DISPATCH(fused_reduce)(first, steps, op, out, rows);
}

}  // namespace pypto::vm
#endif
