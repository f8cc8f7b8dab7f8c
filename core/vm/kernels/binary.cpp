// SPDX-License-Identifier: Apache-2.0

// Binary row kernels of the operations that are plain vector code; the rest is in integer.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/binary.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "core/vm/kernels/half.h"
#include "core/vm/kernels/integer.h"
#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/lanes-inl.h"
#include "core/vm/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

#define PYPTO_VECTOR_BODY(Name, expression)        \
  template <class E>                               \
  struct Name {                                    \
    template <class D, class V>                    \
    HWY_INLINE V operator()(D d, V a, V b) const { \
      (void)d;                                     \
      return expression;                           \
    }                                              \
  }
PYPTO_VECTOR_BODY(AddBody, hn::Add(a, b));
PYPTO_VECTOR_BODY(SubBody, hn::Sub(a, b));
PYPTO_VECTOR_BODY(MulBody, hn::Mul(a, b));
PYPTO_VECTOR_BODY(DivBody, hn::Div(a, b));
PYPTO_VECTOR_BODY(MaxBody, hn::Max(a, b));
PYPTO_VECTOR_BODY(MinBody, hn::Min(a, b));
PYPTO_VECTOR_BODY(AndBody, hn::And(a, b));
PYPTO_VECTOR_BODY(OrBody, hn::Or(a, b));
PYPTO_VECTOR_BODY(XorBody, hn::Xor(a, b));
PYPTO_VECTOR_BODY(ExpDifBody, exp_lanes(d, Lanes<E>::round(d, hn::Sub(a, b))));
PYPTO_VECTOR_BODY(LeakyBody, hn::IfThenElse(hn::Gt(a, hn::Zero(d)), a, hn::Mul(a, b)));
#undef PYPTO_VECTOR_BODY

template <class E, template <class> class Body, bool kSpreadLhs, bool kSpreadRhs, int kUnroll>
void run(const void* lhs, const void* rhs, void* out, size_t n) {
  map_rows<E, kSpreadLhs, kSpreadRhs, kUnroll>(static_cast<const E*>(lhs), static_cast<const E*>(rhs),
                                               static_cast<E*>(out), n, Body<E>());
}

template <class E, template <class> class Body, int kUnroll = 4>
BinaryKernel pick(Spread spread) {
  switch (spread) {
    case Spread::kLhs:
      return &run<E, Body, true, false, kUnroll>;
    case Spread::kRhs:
      return &run<E, Body, false, true, kUnroll>;
    default:
      return &run<E, Body, false, false, kUnroll>;
  }
}

template <class E>
BinaryKernel float_kernel(BinaryOp op, Spread spread) {
  switch (op) {
    case BinaryOp::kAdd:
      return pick<E, AddBody>(spread);
    case BinaryOp::kSub:
      return pick<E, SubBody>(spread);
    case BinaryOp::kMul:
      return pick<E, MulBody>(spread);
    case BinaryOp::kDiv:
      return pick<E, DivBody, 1>(spread);
    case BinaryOp::kMax:
      return pick<E, MaxBody>(spread);
    case BinaryOp::kMin:
      return pick<E, MinBody>(spread);
    case BinaryOp::kExpDif:
      return pick<E, ExpDifBody, 1>(spread);
    case BinaryOp::kLeaky:
      return pick<E, LeakyBody>(spread);
    default:
      return nullptr;
  }
}

template <class E>
BinaryKernel integer_vectors(BinaryOp op, Spread spread) {
  switch (op) {
    case BinaryOp::kAdd:
      return pick<E, AddBody>(spread);
    case BinaryOp::kSub:
      return pick<E, SubBody>(spread);
    case BinaryOp::kMul:
      if constexpr (sizeof(E) == 2 || sizeof(E) == 4) return pick<E, MulBody>(spread);
      return nullptr;
    case BinaryOp::kMax:
      return pick<E, MaxBody>(spread);
    case BinaryOp::kMin:
      return pick<E, MinBody>(spread);
    case BinaryOp::kAnd:
      return pick<E, AndBody>(spread);
    case BinaryOp::kOr:
      return pick<E, OrBody>(spread);
    case BinaryOp::kXor:
      return pick<E, XorBody>(spread);
    default:
      return nullptr;
  }
}

BinaryKernel vector_kernel(BinaryOp op, DType dtype, Spread spread) {
  switch (dtype) {
    case DType::kFp32:
      return float_kernel<float>(op, spread);
    case DType::kFp16:
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
      if (BinaryKernel native = half_kernel(op, spread)) return native;
#endif
      return float_kernel<Fp16>(op, spread);
    case DType::kBf16:
      return float_kernel<Bf16>(op, spread);
    case DType::kInt8:
      return integer_vectors<int8_t>(op, spread);
    case DType::kInt16:
      return integer_vectors<int16_t>(op, spread);
    case DType::kInt32:
      return integer_vectors<int32_t>(op, spread);
    case DType::kInt64:
    case DType::kIndex:
      return integer_vectors<int64_t>(op, spread);
    case DType::kBool:
    case DType::kUInt8:
      return integer_vectors<uint8_t>(op, spread);
    case DType::kUInt16:
      return integer_vectors<uint16_t>(op, spread);
    case DType::kUInt32:
      return integer_vectors<uint32_t>(op, spread);
    case DType::kUInt64:
      return integer_vectors<uint64_t>(op, spread);
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
HWY_EXPORT(vector_kernel);

BinaryKernel binary_kernel(BinaryOp op, DType dtype, Spread spread) {
  if (BinaryKernel vectors = HWY_DYNAMIC_DISPATCH(vector_kernel)(op, dtype, spread)) return vectors;
  return scalar_kernel(op, dtype, spread);
}

}  // namespace pypto::vm
#endif
