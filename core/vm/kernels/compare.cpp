// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

#include "core/vm/kernels/elements.h"
#include "core/vm/kernels/flags.h"
#include "core/vm/kernels/kernels.h"

namespace pypto::vm {
namespace {

template <class E, bool kSpreadLhs, bool kSpreadRhs, class F>
void loop(const E* lhs, const E* rhs, uint8_t* out, size_t n, F holds) {
  const auto left = compute_value(lhs[0]);
  const auto right = compute_value(rhs[0]);
  for (size_t i = 0; i < n; ++i) {
    out[i] =
        holds(kSpreadLhs ? left : compute_value(lhs[i]), kSpreadRhs ? right : compute_value(rhs[i])) ? 1 : 0;
  }
}

template <class E>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<E, float>) return DType::kFp32;
  if constexpr (std::is_same_v<E, Fp16>) return DType::kFp16;
  if constexpr (std::is_same_v<E, Bf16>) return DType::kBf16;
  if constexpr (std::is_same_v<E, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<E, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<E, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<E, uint8_t>) return DType::kUInt8;
  return DType::kNone;
}

template <class E, bool kSpreadLhs, bool kSpreadRhs>
void run(CompareOp op, const void* lhs, const void* rhs, uint8_t* out, size_t n) {
  if (n == 0) return;
  const auto* a = static_cast<const E*>(lhs);
  const auto* b = static_cast<const E*>(rhs);
  constexpr Spread kSpread = kSpreadLhs ? Spread::kLhs : kSpreadRhs ? Spread::kRhs : Spread::kNone;
  const size_t done = compare_vectors(op, dtype_of<E>(), kSpread, lhs, rhs, out, n);
  if (!kSpreadLhs) a += done;
  if (!kSpreadRhs) b += done;
  out += done;
  n -= done;
  if (n == 0) return;
  switch (op) {
    case CompareOp::kEq:
      return loop<E, kSpreadLhs, kSpreadRhs>(a, b, out, n, [](auto x, auto y) { return x == y; });
    case CompareOp::kNe:
      return loop<E, kSpreadLhs, kSpreadRhs>(a, b, out, n, [](auto x, auto y) { return x != y; });
    case CompareOp::kLt:
      return loop<E, kSpreadLhs, kSpreadRhs>(a, b, out, n, [](auto x, auto y) { return x < y; });
    case CompareOp::kLe:
      return loop<E, kSpreadLhs, kSpreadRhs>(a, b, out, n, [](auto x, auto y) { return x <= y; });
    case CompareOp::kGt:
      return loop<E, kSpreadLhs, kSpreadRhs>(a, b, out, n, [](auto x, auto y) { return x > y; });
    case CompareOp::kGe:
      return loop<E, kSpreadLhs, kSpreadRhs>(a, b, out, n, [](auto x, auto y) { return x >= y; });
  }
}

template <class E>
CompareKernel pick(Spread spread) {
  switch (spread) {
    case Spread::kLhs:
      return &run<E, true, false>;
    case Spread::kRhs:
      return &run<E, false, true>;
    default:
      return &run<E, false, false>;
  }
}

template <class T>
void select(const uint8_t* mask, const void* lhs, const void* rhs, void* out, size_t n) {
  const auto* a = static_cast<const T*>(lhs);
  const auto* b = static_cast<const T*>(rhs);
  auto* o = static_cast<T*>(out);
  for (size_t j = 0; j < n; ++j) o[j] = (mask[j >> 3] >> (j & 7)) & 1 ? a[j] : b[j];
}

template <class T>
void fill(void* out, const void* element, size_t n) {
  T value;
  std::memcpy(&value, element, sizeof value);
  auto* o = static_cast<T*>(out);
  for (size_t i = 0; i < n; ++i) o[i] = value;
}

}  // namespace

CompareKernel compare_kernel(DType dtype, Spread spread) {
  switch (dtype) {
    case DType::kFp32:
      return pick<float>(spread);
    case DType::kFp16:
      return pick<Fp16>(spread);
    case DType::kBf16:
      return pick<Bf16>(spread);
    case DType::kInt8:
      return pick<int8_t>(spread);
    case DType::kInt16:
      return pick<int16_t>(spread);
    case DType::kInt32:
      return pick<int32_t>(spread);
    case DType::kInt64:
    case DType::kIndex:
      return pick<int64_t>(spread);
    case DType::kBool:
    case DType::kUInt8:
      return pick<uint8_t>(spread);
    case DType::kUInt16:
      return pick<uint16_t>(spread);
    case DType::kUInt32:
      return pick<uint32_t>(spread);
    case DType::kUInt64:
      return pick<uint64_t>(spread);
    default:
      return nullptr;
  }
}

void pack_bits(const uint8_t* flags, uint8_t* bits, size_t n) {
  size_t j = 0;
  for (; j + 8 <= n; j += 8) {
    uint64_t eight;
    std::memcpy(&eight, flags + j, 8);
    // Gathers bit 0 of byte k into bit k of the top byte.
    bits[j / 8] = static_cast<uint8_t>((eight * 0x0102040810204080ull) >> 56);
  }
  if (j < n) {
    uint8_t last = 0;
    for (size_t k = j; k < n; ++k) last = static_cast<uint8_t>(last | (flags[k] << (k - j)));
    bits[j / 8] = last;
  }
}

void select_row(const uint8_t* mask, const void* lhs, const void* rhs, void* out, size_t n, int width) {
  switch (width) {
    case 1:
      return select<uint8_t>(mask, lhs, rhs, out, n);
    case 2:
      return select<uint16_t>(mask, lhs, rhs, out, n);
    case 4:
      return select<uint32_t>(mask, lhs, rhs, out, n);
    default:
      return select<uint64_t>(mask, lhs, rhs, out, n);
  }
}

void fill_row(void* out, const void* element, size_t n, int width) {
  switch (width) {
    case 1:
      return fill<uint8_t>(out, element, n);
    case 2:
      return fill<uint16_t>(out, element, n);
    case 4:
      return fill<uint32_t>(out, element, n);
    default:
      return fill<uint64_t>(out, element, n);
  }
}

}  // namespace pypto::vm
