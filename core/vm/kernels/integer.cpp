// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/integer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/vm/kernels/elements.h"

namespace pypto::vm {
namespace {

template <class T>
constexpr bool kIsInt = std::is_integral_v<T>;

/// What a / b gives in the two cases that 02 O-306 leaves open; fixed here so that runs are reproducible.
template <class T>
bool unspecified_division(T a, T b) {
  if (b == 0) return true;
  if constexpr (std::is_signed_v<T>) return b == T(-1) && a == std::numeric_limits<T>::min();
  return false;
}

struct MulScalar {
  template <class T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int, T>>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
struct DivScalar {
  template <class T>
  T operator()(T a, T b) const {
    if (unspecified_division(a, b)) return b == 0 ? T(0) : a;
    return static_cast<T>(a / b);
  }
};
struct FmodScalar {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (kIsInt<T>) {
      return unspecified_division(a, b) ? T(0) : static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};
struct RemScalar {
  template <class T>
  T operator()(T a, T b) const {
    T r = FmodScalar()(a, b);
    if constexpr (std::is_signed_v<T>) {
      if (r != 0 && (r < 0) != (b < 0)) r = static_cast<T>(r + b);
    }
    return r;
  }
};
struct ShlScalar {
  template <class T>
  T operator()(T a, T b) const {
    constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
    if (b < 0 || static_cast<uint64_t>(b) >= static_cast<uint64_t>(kBits)) return T(0);
    return static_cast<T>(static_cast<uint64_t>(a) << static_cast<int>(b));
  }
};
struct ShrScalar {
  template <class T>
  T operator()(T a, T b) const {
    constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
    if (b < 0 || static_cast<uint64_t>(b) >= static_cast<uint64_t>(kBits)) return a < 0 ? T(-1) : T(0);
    return static_cast<T>(a >> static_cast<int>(b));
  }
};

template <class E, class F, bool kSpreadLhs, bool kSpreadRhs>
void run(const void* lhs, const void* rhs, void* out, size_t n) {
  const auto* a = static_cast<const E*>(lhs);
  const auto* b = static_cast<const E*>(rhs);
  auto* o = static_cast<E*>(out);
  const auto left = compute_value(a[0]);
  const auto right = compute_value(b[0]);
  for (size_t i = 0; i < n; ++i) {
    o[i] =
        element_of<E>(F()(kSpreadLhs ? left : compute_value(a[i]), kSpreadRhs ? right : compute_value(b[i])));
  }
}

template <class E, class F>
BinaryKernel pick(Spread spread) {
  switch (spread) {
    case Spread::kLhs:
      return &run<E, F, true, false>;
    case Spread::kRhs:
      return &run<E, F, false, true>;
    default:
      return &run<E, F, false, false>;
  }
}

template <class E>
BinaryKernel float_kernel(BinaryOp op, Spread spread) {
  switch (op) {
    case BinaryOp::kFmod:
      return pick<E, FmodScalar>(spread);
    case BinaryOp::kRem:
      return pick<E, RemScalar>(spread);
    default:
      return nullptr;
  }
}

template <class E>
BinaryKernel integer_kernel(BinaryOp op, Spread spread) {
  switch (op) {
    case BinaryOp::kMul:
      return pick<E, MulScalar>(spread);
    case BinaryOp::kDiv:
      return pick<E, DivScalar>(spread);
    case BinaryOp::kFmod:
      return pick<E, FmodScalar>(spread);
    case BinaryOp::kRem:
      return pick<E, RemScalar>(spread);
    case BinaryOp::kShl:
      return pick<E, ShlScalar>(spread);
    case BinaryOp::kShr:
      return pick<E, ShrScalar>(spread);
    default:
      return nullptr;
  }
}

template <class E>
size_t division_fault(const void* lhs, const void* rhs, Spread spread, size_t n) {
  const auto* a = static_cast<const E*>(lhs);
  const auto* b = static_cast<const E*>(rhs);
  for (size_t i = 0; i < n; ++i) {
    if (unspecified_division(spread == Spread::kLhs ? a[0] : a[i], spread == Spread::kRhs ? b[0] : b[i]))
      return i;
  }
  return n;
}

}  // namespace

BinaryKernel scalar_kernel(BinaryOp op, DType dtype, Spread spread) {
  switch (dtype) {
    case DType::kFp32:
      return float_kernel<float>(op, spread);
    case DType::kFp16:
      return float_kernel<Fp16>(op, spread);
    case DType::kBf16:
      return float_kernel<Bf16>(op, spread);
    case DType::kInt8:
      return integer_kernel<int8_t>(op, spread);
    case DType::kInt16:
      return integer_kernel<int16_t>(op, spread);
    case DType::kInt32:
      return integer_kernel<int32_t>(op, spread);
    case DType::kInt64:
    case DType::kIndex:
      return integer_kernel<int64_t>(op, spread);
    case DType::kBool:
    case DType::kUInt8:
      return integer_kernel<uint8_t>(op, spread);
    case DType::kUInt16:
      return integer_kernel<uint16_t>(op, spread);
    case DType::kUInt32:
      return integer_kernel<uint32_t>(op, spread);
    case DType::kUInt64:
      return integer_kernel<uint64_t>(op, spread);
    default:
      return nullptr;
  }
}

size_t find_division_fault(DType dtype, const void* lhs, const void* rhs, Spread spread, size_t n) {
  switch (dtype) {
    case DType::kInt8:
      return division_fault<int8_t>(lhs, rhs, spread, n);
    case DType::kInt16:
      return division_fault<int16_t>(lhs, rhs, spread, n);
    case DType::kInt32:
      return division_fault<int32_t>(lhs, rhs, spread, n);
    case DType::kInt64:
    case DType::kIndex:
      return division_fault<int64_t>(lhs, rhs, spread, n);
    case DType::kBool:
    case DType::kUInt8:
      return division_fault<uint8_t>(lhs, rhs, spread, n);
    case DType::kUInt16:
      return division_fault<uint16_t>(lhs, rhs, spread, n);
    case DType::kUInt32:
      return division_fault<uint32_t>(lhs, rhs, spread, n);
    case DType::kUInt64:
      return division_fault<uint64_t>(lhs, rhs, spread, n);
    default:
      return n;
  }
}

}  // namespace pypto::vm
