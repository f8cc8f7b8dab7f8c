// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/fuse.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/vm/kernels/fuse.h"
#include "core/vm/kernels/lanes-inl.h"
#include "core/vm/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;

/// Operand vector at element `at`; `rest` > 0: that many elements only.
template <class E>
HWY_INLINE V operand(D d, const E* data, size_t at, size_t rest) {
  if (rest == 0) return Lanes<E>::load(d, data + at);
  alignas(64) E buffer[16] = {};
  std::memcpy(buffer, data + at, rest * sizeof(E));
  return Lanes<E>::load(d, buffer);
}

/// The operands of a block of vectors as FP32.
template <class E>
HWY_NOINLINE void widen(D d, const E* data, size_t at, size_t rest, int vectors, float* out) {
  const size_t lanes = hn::Lanes(d);
  for (int v = 0; v < vectors; ++v, at += lanes, out += lanes) hn::Store(operand(d, data, at, rest), d, out);
}

template <class E>
HWY_INLINE void put(D d, V v, E* data, size_t at, size_t rest) {
  if (rest == 0) return Lanes<E>::store(d, v, data + at);
  alignas(64) E buffer[16];
  Lanes<E>::store(d, v, buffer);
  std::memcpy(data + at, buffer, rest * sizeof(E));
}

/// Runs `action` with `p`, a pointer to the elements of an array. A macro, as a closure would keep the
/// vectors it uses out of registers.
#define PYPTO_TYPED(type, data, action)         \
  switch (type) {                               \
    case FuseType::kFp32: {                     \
      auto* p = reinterpret_cast<float*>(data); \
      action;                                   \
      break;                                    \
    }                                           \
    case FuseType::kFp16: {                     \
      auto* p = reinterpret_cast<Fp16*>(data);  \
      action;                                   \
      break;                                    \
    }                                           \
    case FuseType::kBf16: {                     \
      auto* p = reinterpret_cast<Bf16*>(data);  \
      action;                                   \
      break;                                    \
    }                                           \
  }

HWY_INLINE float single(FuseType type, uint8_t* data) {
  PYPTO_TYPED(type, data, return compute_value(*p));
  return 0;
}

#if HWY_NATIVE_FMA
// Division by one number for many elements. With y the correctly rounded 1 / b and q = a y, q + (a - q b) y
// is the correctly rounded a / b (Markstein), as long as nothing leaves the normal range and b's fraction is
// not all ones.
constexpr float kLeast = 0x1p-60f, kMost = 0x1p60f;

HWY_INLINE bool has_quotients(float b) {
  uint32_t bits;
  std::memcpy(&bits, &b, sizeof(bits));
  const float size = std::fabs(b);
  return size >= kLeast && size <= kMost && (bits & 0x7fffffu) != 0x7fffffu;
}

HWY_INLINE V quotient(D d, V a, V b, V inverse) {
  const V size = hn::Abs(a);
  if (HWY_UNLIKELY(
          !hn::AllTrue(d, hn::And(hn::Ge(size, hn::Set(d, kLeast)), hn::Le(size, hn::Set(d, kMost)))))) {
    return hn::Div(a, b);
  }
  const V q = hn::Mul(a, inverse);
  return hn::MulAdd(hn::NegMulAdd(q, b, a), inverse, q);
}
#endif

// The vectors of a block are separate variables, not an array, so that they stay in registers.
#define PYPTO_EACH(expression)              \
  do {                                      \
    {                                       \
      V& a = a0;                            \
      const size_t at = base;               \
      (void)at;                             \
      expression;                           \
    }                                       \
    if constexpr (kVectors > 1) {           \
      {                                     \
        V& a = a1;                          \
        const size_t at = base + lanes;     \
        (void)at;                           \
        expression;                         \
      }                                     \
    }                                       \
    if constexpr (kVectors > 2) {           \
      {                                     \
        V& a = a2;                          \
        const size_t at = base + 2 * lanes; \
        (void)at;                           \
        expression;                         \
      }                                     \
      {                                     \
        V& a = a3;                          \
        const size_t at = base + 3 * lanes; \
        (void)at;                           \
        expression;                         \
      }                                     \
    }                                       \
    if constexpr (kVectors > 4) {           \
      {                                     \
        V& a = a4;                          \
        const size_t at = base + 4 * lanes; \
        (void)at;                           \
        expression;                         \
      }                                     \
      {                                     \
        V& a = a5;                          \
        const size_t at = base + 5 * lanes; \
        (void)at;                           \
        expression;                         \
      }                                     \
      {                                     \
        V& a = a6;                          \
        const size_t at = base + 6 * lanes; \
        (void)at;                           \
        expression;                         \
      }                                     \
      {                                     \
        V& a = a7;                          \
        const size_t at = base + 7 * lanes; \
        (void)at;                           \
        expression;                         \
      }                                     \
    }                                       \
  } while (0)

// Partial results of a reduction, and vectors that hold them: element i belongs to partial i mod 16.
constexpr size_t kPartials = 16;
constexpr size_t kGroup = kPartials / hn::MaxLanes(D());

struct Partials {
  ReduceOp op = ReduceOp::kSum;
  V p[kGroup];
};

float neutral(ReduceOp op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return op == ReduceOp::kSum    ? 0.0f
         : op == ReduceOp::kProd ? 1.0f
         : op == ReduceOp::kMax  ? -kInfinity
                                 : kInfinity;
}

/// One block of kVectors vectors through all steps, written to `out` or taken in by `partials`. kPartial: one
/// vector of which `rest` elements exist.
template <int kVectors, bool kPartial, bool kReduce>
HWY_INLINE void block(D d, const FuseArray& first, const FuseStep* steps, size_t count, const FuseArray& out,
                      Partials& partials, size_t base, size_t rest_in) {
  const size_t lanes = hn::Lanes(d);
  const size_t rest = kPartial ? rest_in : 0;
  if constexpr (kReduce && !kPartial) {
    const size_t width = first.type == FuseType::kFp32 ? 4 : 2;
    const size_t begin = base * width, end = (base + kVectors * lanes) * width;
    if (first.read_soon != nullptr) {
      for (size_t at = begin; at < end; at += 64) __builtin_prefetch(first.read_soon + at, 0, 2);
    }
    if (first.written_soon != nullptr) {
      for (size_t at = begin; at < end; at += 64) __builtin_prefetch(first.written_soon + at, 1, 2);
    }
  }
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  (void)lanes;
  if (first.one) {
    const V x = hn::Set(d, single(first.type, first.data));
    PYPTO_EACH(a = x);
  } else {
    PYPTO_TYPED(first.type, first.data, PYPTO_EACH(a = operand(d, p, at, rest)));
  }
  alignas(64) float wide[kVectors * 16];
  for (size_t s = 0; s < count; ++s) {
    const auto* data = reinterpret_cast<const float*>(steps[s].data);
    const bool one = steps[s].one;
    size_t shift = 0;  // of positions in the array to those in `data`
    size_t short_by = rest;
    float element = 0;
    if (steps[s].op != FuseOp::kStore && steps[s].data != nullptr) {
      if (one) {
        element = single(steps[s].type, steps[s].data);
      } else if (steps[s].type != FuseType::kFp32) {
        PYPTO_TYPED(steps[s].type, steps[s].data, widen(d, p, base, rest, kVectors, wide));
        data = wide;
        shift = base;
        short_by = 0;
      }
    }
#define PYPTO_WITH(expression)                                                      \
  if (one) {                                                                        \
    const V x = hn::Set(d, element);                                                \
    PYPTO_EACH(a = expression);                                                     \
  } else {                                                                          \
    PYPTO_EACH(const V x = operand(d, data, at - shift, short_by); a = expression); \
  }                                                                                 \
  break
    switch (steps[s].op) {
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
        if (one && has_quotients(element)) {
          const V x = hn::Set(d, element), inverse = hn::Set(d, 1.0f / element);
          PYPTO_EACH(a = quotient(d, a, x, inverse));
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
        PYPTO_EACH(a = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(a)));
        break;
      case FuseOp::kRecip:
        PYPTO_EACH(a = hn::Div(hn::Set(d, 1.0f), a));
        break;
      case FuseOp::kRelu:
        PYPTO_EACH(a = hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Zero(d), a));
        break;
      case FuseOp::kPass:
        break;
      case FuseOp::kStore:
        PYPTO_TYPED(steps[s].type, steps[s].data, PYPTO_EACH(put(d, a, p, at, rest)));
        break;
    }
#undef PYPTO_WITH
    if (steps[s].result == FuseType::kFp16) PYPTO_EACH(a = Lanes<Fp16>::round(d, a));
    if (steps[s].result == FuseType::kBf16) PYPTO_EACH(a = Lanes<Bf16>::round(d, a));
  }
  if constexpr (kReduce) {
    if (kPartial) a0 = hn::IfThenElse(hn::FirstN(d, rest), a0, hn::Set(d, neutral(partials.op)));
#define PYPTO_TAKE(operation) PYPTO_EACH(V& p = partials.p[at / lanes % kGroup]; p = operation(p, a))
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
    PYPTO_TYPED(out.type, out.data, PYPTO_EACH(put(d, a, p, at, rest)));
  }
}
#undef PYPTO_EACH
#undef PYPTO_TYPED

template <bool kReduce>
HWY_INLINE void blocks(const FuseArray& first, const FuseStep* steps, size_t count, const FuseArray& out,
                       Partials& partials, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 8 * lanes <= n; i += 8 * lanes)
    block<8, false, kReduce>(d, first, steps, count, out, partials, i, 0);
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    block<4, false, kReduce>(d, first, steps, count, out, partials, i, 0);
  for (; i + lanes <= n; i += lanes) block<1, false, kReduce>(d, first, steps, count, out, partials, i, 0);
  if (i < n) block<1, true, kReduce>(d, first, steps, count, out, partials, i, n - i);
}

void fused(const FuseArray& first, const FuseStep* steps, size_t count, const FuseArray& out, size_t n) {
  Partials none;
  blocks<false>(first, steps, count, out, none, n);
}

void fused_reduce(const FuseArray& first, const FuseStep* steps, size_t count, ReduceOp op, float* out,
                  size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  Partials partials;
  partials.op = op;
  const V start = hn::Set(d, neutral(op));
  for (V& p : partials.p) p = start;
  blocks<true>(first, steps, count, FuseArray(), partials, n);
  const auto combine = [op](float a, float b) {
    return op == ReduceOp::kSum    ? a + b
           : op == ReduceOp::kProd ? a * b
           : op == ReduceOp::kMax  ? (a > b ? a : b)
                                   : (a < b ? a : b);
  };
  alignas(64) float partial[kPartials];
  for (size_t g = 0; g < kGroup; ++g) hn::Store(partials.p[g], d, partial + g * lanes);
  // The last row of partials is complete: what is missing counts as neutral.
  if (n % kPartials != 0) {
    for (size_t j = (n % kPartials + lanes - 1) / lanes * lanes; j < kPartials; ++j)
      partial[j] = combine(partial[j], neutral(op));
  }
  for (size_t half = kPartials / 2; half != 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) partial[j] = combine(partial[j], partial[j + half]);
  }
  *out = partial[0];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(fused);
HWY_EXPORT(fused_reduce);

void run_fused(const FuseArray& first, std::span<const FuseStep> steps, const FuseArray& out, size_t n) {
  HWY_DYNAMIC_DISPATCH(fused)(first, steps.data(), steps.size(), out, n);
}

void run_fused_reduce(const FuseArray& first, std::span<const FuseStep> steps, ReduceOp op, float* out,
                      size_t n) {
  HWY_DYNAMIC_DISPATCH(fused_reduce)(first, steps.data(), steps.size(), op, out, n);
}

}  // namespace pypto::vm
#endif
