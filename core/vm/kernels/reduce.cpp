// SPDX-License-Identifier: Apache-2.0

// Row reductions in the order of 02 O-307: 16 partial results, element 16 k + j into partial j, whatever the
// vector length; then the fixed tree. Missing elements of the last group are the neutral element, which
// changes no partial.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/reduce.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "core/vm/kernels/flags.h"
#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kPartials = 16;

struct SumStep {
  static constexpr float kNeutral = 0.0f;
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
  static float scalar(float a, float b) { return a + b; }
};
struct ProdStep {
  static constexpr float kNeutral = 1.0f;
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
  static float scalar(float a, float b) { return a * b; }
};
struct MaxStep {
  static constexpr float kNeutral = -std::numeric_limits<float>::infinity();
  // The new element is the second operand, so a NaN among the elements is handed on unless a number follows
  // it.
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Max(a, b);
  }
  static float scalar(float a, float b) { return a > b ? a : b; }
};
struct MinStep {
  static constexpr float kNeutral = std::numeric_limits<float>::infinity();
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Min(a, b);
  }
  static float scalar(float a, float b) { return a < b ? a : b; }
};

/// Lanes where one of two is NaN.
template <class D, class V>
HWY_INLINE auto unordered(D d, V a, V b) {
#if HWY_TARGET == HWY_AVX3
  return hn::MFromD<D>{_mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q)};
#else
  (void)d;
  return hn::Or(hn::IsNaN(a), hn::IsNaN(b));
#endif
}

/// Takes whole groups of 16 elements into the partial results, eight groups at a time, as far as no element
/// is NaN: greatest and least values of neighbours have the same bits in whatever way they are paired.
/// Returns the number of elements taken.
template <class L, class E, class Step, class D, class V>
HWY_INLINE size_t take_groups(D d, const E* x, size_t n, Step step, V* partials) {
  constexpr size_t kGroups = 8, kVectors = kPartials / hn::MaxLanes(D());
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + kGroups * kPartials <= n; i += kGroups * kPartials) {
    V taken[kVectors];
    bool nan = false;
    for (size_t p = 0; p < kVectors; ++p) {
      const E* at = x + i + p * lanes;
      const V a0 = L::load(d, at), a1 = L::load(d, at + kPartials);
      const V a2 = L::load(d, at + 2 * kPartials), a3 = L::load(d, at + 3 * kPartials);
      const V a4 = L::load(d, at + 4 * kPartials), a5 = L::load(d, at + 5 * kPartials);
      const V a6 = L::load(d, at + 6 * kPartials), a7 = L::load(d, at + 7 * kPartials);
      const auto nans = hn::Or(hn::Or(unordered(d, a0, a1), unordered(d, a2, a3)),
                               hn::Or(unordered(d, a4, a5), unordered(d, a6, a7)));
      nan = nan || !hn::AllFalse(d, nans);
      taken[p] = step(step(step(a0, a1), step(a2, a3)), step(step(a4, a5), step(a6, a7)));
    }
    if (HWY_UNLIKELY(nan)) break;
    for (size_t p = 0; p < kVectors; ++p) partials[p] = step(partials[p], taken[p]);
  }
  return i;
}

template <class E, class Step>
void float_row(const void* row, size_t n, void* out) {
  using L = Lanes<E>;
  const hn::CappedTag<float, kPartials> d;
  constexpr size_t kMost = kPartials / 4;  // vectors that hold the partials; lanes are 4, 8 or 16
  const size_t lanes = hn::Lanes(d);
  const size_t vectors = kPartials / lanes;
  const auto* x = static_cast<const E*>(row);
  const Step step;
  alignas(64) float partial[kPartials];
  alignas(64) E last[kPartials];
  const size_t whole = n / kPartials * kPartials;
  const size_t rest = n - whole;
  if (rest != 0) {
    for (size_t j = 0; j < kPartials; ++j) last[j] = j < rest ? x[whole + j] : element_of<E>(Step::kNeutral);
  }
  decltype(hn::Zero(d)) p0 = hn::Set(d, Step::kNeutral), p1 = p0, p2 = p0, p3 = p0;
  static_assert(kMost == 4);
  size_t done = 0;
  if constexpr (std::is_same_v<Step, MaxStep> || std::is_same_v<Step, MinStep>) {
    decltype(p0) partials[kMost] = {p0, p0, p0, p0};
    done = take_groups<L>(d, x, whole, step, partials);
    p0 = partials[0], p1 = partials[1], p2 = partials[2], p3 = partials[3];
  }
  if (vectors == 1) {
    for (size_t i = done; i < whole; i += kPartials) p0 = step(p0, L::load(d, x + i));
    if (rest != 0) p0 = step(p0, L::load(d, last));
    hn::Store(p0, d, partial);
  } else if (vectors == 2) {
    for (size_t i = done; i < whole; i += kPartials) {
      p0 = step(p0, L::load(d, x + i));
      p1 = step(p1, L::load(d, x + i + lanes));
    }
    if (rest != 0) {
      p0 = step(p0, L::load(d, last));
      p1 = step(p1, L::load(d, last + lanes));
    }
    hn::Store(p0, d, partial);
    hn::Store(p1, d, partial + lanes);
  } else {
    for (size_t i = done; i < whole; i += kPartials) {
      p0 = step(p0, L::load(d, x + i));
      p1 = step(p1, L::load(d, x + i + lanes));
      p2 = step(p2, L::load(d, x + i + 2 * lanes));
      p3 = step(p3, L::load(d, x + i + 3 * lanes));
    }
    if (rest != 0) {
      p0 = step(p0, L::load(d, last));
      p1 = step(p1, L::load(d, last + lanes));
      p2 = step(p2, L::load(d, last + 2 * lanes));
      p3 = step(p3, L::load(d, last + 3 * lanes));
    }
    hn::Store(p0, d, partial);
    hn::Store(p1, d, partial + lanes);
    hn::Store(p2, d, partial + 2 * lanes);
    hn::Store(p3, d, partial + 3 * lanes);
  }
  for (size_t half = kPartials / 2; half != 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) partial[j] = Step::scalar(partial[j], partial[j + half]);
  }
  *static_cast<E*>(out) = element_of<E>(partial[0]);
}

template <class E>
ReduceKernel float_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return &float_row<E, SumStep>;
    case ReduceOp::kProd:
      return &float_row<E, ProdStep>;
    case ReduceOp::kMax:
      return &float_row<E, MaxStep>;
    case ReduceOp::kMin:
      return &float_row<E, MinStep>;
  }
  return nullptr;
}

ReduceKernel float_reduction(ReduceOp op, DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return float_kernel<float>(op);
    case DType::kFp16:
      return float_kernel<Fp16>(op);
    case DType::kBf16:
      return float_kernel<Bf16>(op);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(float_reduction);

namespace {

template <class T, ReduceOp kOp>
void integer_row(const void* row, size_t n, void* out) {
  using Wide = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int32_t, T>>;
  const auto* x = static_cast<const T*>(row);
  T result = x[0];
  for (size_t i = 1; i < n; ++i) {
    switch (kOp) {
      case ReduceOp::kSum:
        result = static_cast<T>(static_cast<Wide>(result) + static_cast<Wide>(x[i]));
        break;
      case ReduceOp::kProd:
        result = static_cast<T>(static_cast<Wide>(result) * static_cast<Wide>(x[i]));
        break;
      case ReduceOp::kMax:
        result = x[i] > result ? x[i] : result;
        break;
      case ReduceOp::kMin:
        result = x[i] < result ? x[i] : result;
        break;
    }
  }
  *static_cast<T*>(out) = result;
}

template <class T>
ReduceKernel integer_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return &integer_row<T, ReduceOp::kSum>;
    case ReduceOp::kProd:
      return &integer_row<T, ReduceOp::kProd>;
    case ReduceOp::kMax:
      return &integer_row<T, ReduceOp::kMax>;
    case ReduceOp::kMin:
      return &integer_row<T, ReduceOp::kMin>;
  }
  return nullptr;
}

template <class E>
int32_t arg_in_row(const E* x, size_t n, bool greatest) {
  size_t best = 0;
  auto value = compute_value(x[0]);
  for (size_t i = 1; i < n; ++i) {
    const auto candidate = compute_value(x[i]);
    if (greatest ? candidate > value : candidate < value) {
      value = candidate;
      best = i;
    }
  }
  return static_cast<int32_t>(best);
}

template <class E>
void arg_step(const E* x, E* best, int32_t* where, size_t n, bool greatest, int32_t index) {
  for (size_t j = 0; j < n; ++j) {
    const auto candidate = compute_value(x[j]);
    const auto value = compute_value(best[j]);
    if (greatest ? candidate > value : candidate < value) {
      best[j] = x[j];
      where[j] = index;
    }
  }
}

/// Calls `f` with a null pointer of the element type.
template <class F>
void with_element(DType dtype, F f) {
  switch (dtype) {
    case DType::kFp32:
      return f(static_cast<const float*>(nullptr));
    case DType::kFp16:
      return f(static_cast<const Fp16*>(nullptr));
    case DType::kBf16:
      return f(static_cast<const Bf16*>(nullptr));
    case DType::kInt8:
      return f(static_cast<const int8_t*>(nullptr));
    case DType::kInt16:
      return f(static_cast<const int16_t*>(nullptr));
    case DType::kInt32:
      return f(static_cast<const int32_t*>(nullptr));
    case DType::kInt64:
    case DType::kIndex:
      return f(static_cast<const int64_t*>(nullptr));
    case DType::kBool:
    case DType::kUInt8:
      return f(static_cast<const uint8_t*>(nullptr));
    case DType::kUInt16:
      return f(static_cast<const uint16_t*>(nullptr));
    case DType::kUInt32:
      return f(static_cast<const uint32_t*>(nullptr));
    case DType::kUInt64:
      return f(static_cast<const uint64_t*>(nullptr));
    default:
      return;
  }
}

}  // namespace

ReduceKernel reduce_kernel(ReduceOp op, DType dtype) {
  if (ReduceKernel floats = HWY_DYNAMIC_DISPATCH(float_reduction)(op, dtype)) return floats;
  switch (dtype) {
    case DType::kInt8:
      return integer_kernel<int8_t>(op);
    case DType::kInt16:
      return integer_kernel<int16_t>(op);
    case DType::kInt32:
      return integer_kernel<int32_t>(op);
    case DType::kInt64:
    case DType::kIndex:
      return integer_kernel<int64_t>(op);
    case DType::kUInt8:
      return integer_kernel<uint8_t>(op);
    case DType::kUInt16:
      return integer_kernel<uint16_t>(op);
    case DType::kUInt32:
      return integer_kernel<uint32_t>(op);
    case DType::kUInt64:
      return integer_kernel<uint64_t>(op);
    default:
      return nullptr;
  }
}

int32_t arg_row(const void* row, size_t n, DType dtype, bool greatest) {
  int32_t index = arg_row_vectors(row, n, dtype, greatest);
  if (index >= 0) return index;
  with_element(dtype, [&](auto* tag) { index = arg_in_row(static_cast<decltype(tag)>(row), n, greatest); });
  return index;
}

void arg_columns(const void* row, void* best, int32_t* where, size_t n, DType dtype, bool greatest,
                 int32_t index) {
  with_element(dtype, [&](auto* tag) {
    using E = std::remove_cv_t<std::remove_pointer_t<decltype(tag)>>;
    arg_step(static_cast<const E*>(row), static_cast<E*>(best), where, n, greatest, index);
  });
}

}  // namespace pypto::vm
#endif
