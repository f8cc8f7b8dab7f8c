// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/fuse.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cstring>

#include "core/vm/kernels/fuse.h"
#include "core/vm/kernels/lanes-inl.h"
#include "core/vm/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;

/// Operand vector k of a block at element `at`; `rest` > 0: that many elements only.
HWY_INLINE V operand(D d, const float* data, bool one, size_t at, size_t rest) {
  if (one) return hn::Set(d, *data);
  if (rest == 0) return hn::LoadU(d, data + at);
  alignas(64) float buffer[16] = {};
  std::memcpy(buffer, data + at, rest * sizeof(float));
  return hn::Load(d, buffer);
}

HWY_INLINE void put(D d, V v, float* data, size_t at, size_t rest) {
  if (rest == 0) {
    hn::StoreU(v, d, data + at);
    return;
  }
  alignas(64) float buffer[16];
  hn::Store(v, d, buffer);
  std::memcpy(data + at, buffer, rest * sizeof(float));
}

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

/// One block of kVectors vectors through all steps. kPartial: one vector of which `rest` elements exist.
template <int kVectors, bool kPartial>
HWY_INLINE void block(D d, const float* first, bool first_one, const FuseStep* steps, size_t count,
                      float* out, size_t base, size_t rest_in) {
  const size_t lanes = hn::Lanes(d);
  const size_t rest = kPartial ? rest_in : 0;
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  (void)lanes;
  PYPTO_EACH(a = operand(d, first, first_one, at, rest));
  for (size_t s = 0; s < count; ++s) {
    float* const data = steps[s].data;
    const bool one = steps[s].one;
#define PYPTO_WITH(expression)                                                 \
  if (one) {                                                                   \
    const V x = hn::Set(d, *data);                                             \
    PYPTO_EACH(a = expression);                                                \
  } else {                                                                     \
    PYPTO_EACH(const V x = operand(d, data, false, at, rest); a = expression); \
  }                                                                            \
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
      case FuseOp::kStore:
        PYPTO_EACH(put(d, a, data, at, rest));
        break;
    }
#undef PYPTO_WITH
  }
  PYPTO_EACH(put(d, a, out, at, rest));
}
#undef PYPTO_EACH

void fused(const float* first, bool first_one, const FuseStep* steps, size_t count, float* out, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 8 * lanes <= n; i += 8 * lanes) block<8, false>(d, first, first_one, steps, count, out, i, 0);
  for (; i + 4 * lanes <= n; i += 4 * lanes) block<4, false>(d, first, first_one, steps, count, out, i, 0);
  for (; i + lanes <= n; i += lanes) block<1, false>(d, first, first_one, steps, count, out, i, 0);
  if (i < n) block<1, true>(d, first, first_one, steps, count, out, i, n - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(fused);

void run_fused(const float* first, bool first_one, std::span<const FuseStep> steps, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(fused)(first, first_one, steps.data(), steps.size(), out, n);
}

}  // namespace pypto::vm
#endif
