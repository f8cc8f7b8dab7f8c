// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/numeric.h"

namespace pypto::vm {

/// Storage of the 16-bit floats as distinct types, so that kernels can be templates over the element.
struct Fp16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

/// Value used to compute with one element in scalar code.
template <class E>
inline E compute_value(E e) {
  return e;
}
inline float compute_value(Fp16 e) { return fp16_to_fp32(e.bits); }
inline float compute_value(Bf16 e) { return bf16_to_fp32(e.bits); }

template <class E, class V>
inline E element_of(V value) {
  return static_cast<E>(value);
}
template <>
inline Fp16 element_of<Fp16, float>(float value) {
  return Fp16{fp32_to_fp16(value)};
}
template <>
inline Bf16 element_of<Bf16, float>(float value) {
  return Bf16{fp32_to_bf16(value)};
}

}  // namespace pypto::vm
