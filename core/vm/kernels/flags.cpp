// SPDX-License-Identifier: Apache-2.0

// Comparisons to flags, selection by bits, and positions of extremes, in vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/flags.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "core/vm/kernels/flags.h"
#include "core/vm/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

enum class Base : uint8_t { kEq, kLt, kLe };

/// out[j] = flip ^ (lhs[j] op rhs[j]).
template <class E, Base kOp, bool kSpreadLhs, bool kSpreadRhs>
size_t flags_of(const E* lhs, const E* rhs, uint8_t flip, uint8_t* out, size_t n) {
  using L = Lanes<E>;
  const typename L::Tag d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  auto a = L::splat(d, lhs[0]), b = L::splat(d, rhs[0]);
  const auto one = hn::Set(du, 1), turn = hn::Set(du, flip);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if constexpr (!kSpreadLhs) a = L::load(d, lhs + i);
    if constexpr (!kSpreadRhs) b = L::load(d, rhs + i);
    const auto mask = [&]() HWY_ATTR {
      if constexpr (kOp == Base::kEq) return hn::Eq(a, b);
      if constexpr (kOp == Base::kLt) return hn::Lt(a, b);
      if constexpr (kOp == Base::kLe && std::is_same_v<hn::TFromD<decltype(d)>, float>) return hn::Le(a, b);
      if constexpr (kOp == Base::kLe && !std::is_same_v<hn::TFromD<decltype(d)>, float>)
        return hn::Not(hn::Lt(b, a));
    }();
    const auto flags = hn::Xor(hn::IfThenElseZero(hn::RebindMask(du, mask), one), turn);
    if constexpr (sizeof(hn::TFromD<decltype(du)>) == 1) {
      hn::StoreU(flags, d8, out + i);
    } else {
      hn::StoreU(hn::TruncateTo(d8, flags), d8, out + i);
    }
  }
  return i;
}

template <class E, Base kOp>
size_t flags_with(Spread spread, const void* lhs, const void* rhs, uint8_t flip, uint8_t* out, size_t n) {
  const auto* a = static_cast<const E*>(lhs);
  const auto* b = static_cast<const E*>(rhs);
  switch (spread) {
    case Spread::kLhs:
      return flags_of<E, kOp, true, false>(a, b, flip, out, n);
    case Spread::kRhs:
      return flags_of<E, kOp, false, true>(a, b, flip, out, n);
    default:
      return flags_of<E, kOp, false, false>(a, b, flip, out, n);
  }
}

template <class E>
size_t flags_for(CompareOp op, Spread spread, const void* lhs, const void* rhs, uint8_t* out, size_t n) {
  const Spread other = spread == Spread::kLhs ? Spread::kRhs : spread == Spread::kRhs ? Spread::kLhs : spread;
  switch (op) {
    case CompareOp::kEq:
      return flags_with<E, Base::kEq>(spread, lhs, rhs, 0, out, n);
    case CompareOp::kNe:
      return flags_with<E, Base::kEq>(spread, lhs, rhs, 1, out, n);
    case CompareOp::kLt:
      return flags_with<E, Base::kLt>(spread, lhs, rhs, 0, out, n);
    case CompareOp::kLe:
      return flags_with<E, Base::kLe>(spread, lhs, rhs, 0, out, n);
    case CompareOp::kGt:
      return flags_with<E, Base::kLt>(other, rhs, lhs, 0, out, n);
    default:
      return flags_with<E, Base::kLe>(other, rhs, lhs, 0, out, n);
  }
}

size_t flags(CompareOp op, DType dtype, Spread spread, const void* lhs, const void* rhs, uint8_t* out,
             size_t n) {
#if HWY_TARGET != HWY_SCALAR
  switch (dtype) {
    case DType::kFp32:
      return flags_for<float>(op, spread, lhs, rhs, out, n);
    case DType::kFp16:
      return flags_for<Fp16>(op, spread, lhs, rhs, out, n);
    case DType::kBf16:
      return flags_for<Bf16>(op, spread, lhs, rhs, out, n);
    case DType::kInt8:
      return flags_for<int8_t>(op, spread, lhs, rhs, out, n);
    case DType::kInt16:
      return flags_for<int16_t>(op, spread, lhs, rhs, out, n);
    case DType::kInt32:
      return flags_for<int32_t>(op, spread, lhs, rhs, out, n);
    case DType::kUInt8:
      return flags_for<uint8_t>(op, spread, lhs, rhs, out, n);
    default:
      break;
  }
#endif
  (void)op, (void)dtype, (void)spread, (void)lhs, (void)rhs, (void)out, (void)n;
  return 0;
}

/// Position of the first greatest (least) number; the first element when that is no number.
template <class E>
int32_t arg(const E* x, size_t n, bool greatest) {
  using L = Lanes<E>;
  const typename L::Tag d;
  const size_t lanes = hn::Lanes(d);
  const auto start = L::splat(d, x[0]);
  if (compute_value(x[0]) != compute_value(x[0])) return 0;
  auto best = start;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = L::load(d, x + i);
    const auto number = hn::IfThenElse(hn::Eq(v, v), v, start);
    best = greatest ? hn::Max(best, number) : hn::Min(best, number);
  }
  using T = hn::TFromD<decltype(d)>;
  alignas(64) T values[64 / sizeof(T)];
  hn::Store(best, d, values);
  T found = values[0];
  const auto take = [&](T v) {
    if (greatest ? v > found : v < found) found = v;
  };
  for (size_t j = 1; j < lanes; ++j) take(values[j]);
  for (size_t j = i; j < n; ++j) take(compute_value(x[j]));
  const auto wanted = hn::Set(d, found);
  for (size_t j = 0; j < i; j += lanes) {
    const auto at = hn::FindFirstTrue(d, hn::Eq(L::load(d, x + j), wanted));
    if (at >= 0) return static_cast<int32_t>(j + static_cast<size_t>(at));
  }
  for (size_t j = i; j < n; ++j) {
    if (compute_value(x[j]) == found) return static_cast<int32_t>(j);
  }
  return 0;
}

int32_t arg_vectors(const void* row, size_t n, DType dtype, bool greatest) {
  switch (dtype) {
    case DType::kFp32:
      return arg(static_cast<const float*>(row), n, greatest);
    case DType::kFp16:
      return arg(static_cast<const Fp16*>(row), n, greatest);
    case DType::kBf16:
      return arg(static_cast<const Bf16*>(row), n, greatest);
    case DType::kInt32:
      return arg(static_cast<const int32_t*>(row), n, greatest);
    case DType::kInt16:
      return arg(static_cast<const int16_t*>(row), n, greatest);
    default:
      return -1;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(flags);
HWY_EXPORT(arg_vectors);

size_t compare_vectors(CompareOp op, DType dtype, Spread spread, const void* lhs, const void* rhs,
                       uint8_t* out, size_t n) {
  return n == 0 ? 0 : HWY_DYNAMIC_DISPATCH(flags)(op, dtype, spread, lhs, rhs, out, n);
}

int32_t arg_row_vectors(const void* row, size_t n, DType dtype, bool greatest) {
  return HWY_DYNAMIC_DISPATCH(arg_vectors)(row, n, dtype, greatest);
}

}  // namespace pypto::vm
#endif
