// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/unary.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>

#include "core/vm/kernels/divide-inl.h"
#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/lanes-inl.h"
#include "core/vm/kernels/math-inl.h"
#include "core/vm/kernels/trig.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

#define PYPTO_VECTOR_BODY(Name, expression)   \
  struct Name {                               \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      (void)d;                                \
      return expression;                      \
    }                                         \
  }
PYPTO_VECTOR_BODY(NegFloat, hn::Neg(x));
PYPTO_VECTOR_BODY(NegInteger, hn::Sub(hn::Zero(d), x));
PYPTO_VECTOR_BODY(AbsFloat, hn::Abs(x));
PYPTO_VECTOR_BODY(AbsInteger, hn::Max(x, hn::Sub(hn::Zero(d), x)));  // the least value stays itself
PYPTO_VECTOR_BODY(LogBody, log_lanes(d, x));
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) PYPTO_VECTOR_BODY(Name##Body, body);
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
PYPTO_VECTOR_BODY(RsqrtBody, reciprocal_lanes(d, hn::Sqrt(x)));
PYPTO_VECTOR_BODY(RecipBody, reciprocal_lanes(d, x));
PYPTO_VECTOR_BODY(ReluFloat, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x));
PYPTO_VECTOR_BODY(ReluInteger, hn::Max(x, hn::Zero(d)));
PYPTO_VECTOR_BODY(NotBody, hn::Not(x));
#undef PYPTO_VECTOR_BODY

template <class E, class Body, int kUnroll = 1>
void run(const void* in, void* out, size_t n) {
  map_row<E, kUnroll>(static_cast<const E*>(in), static_cast<E*>(out), n, Body());
}

/// -x or |x| of 16-bit floats, of which the sign is one bit. NaN become what conversion makes of them: FP16
/// the one quiet NaN of their sign, BF16 quiet with their payload.
template <bool kBrain, bool kNegative>
struct SignOfHalf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V size = hn::And(x, hn::Set(d, 0x7fff));
    const auto is_nan = hn::Gt(size, hn::Set(d, kBrain ? 0x7f80 : 0x7c00));
    const V quiet = kBrain ? hn::Or(size, hn::Set(d, 0x40)) : hn::Set(d, 0x7e00);
    const V clean = hn::IfThenElse(is_nan, quiet, size);
    if constexpr (!kNegative) return clean;
    return hn::Or(clean, hn::AndNot(x, hn::Set(d, static_cast<int16_t>(-0x8000))));
  }
};

template <class E>
UnaryKernel float_kernel(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg:
      return &run<E, NegFloat, 4>;
    case UnaryOp::kAbs:
      return &run<E, AbsFloat, 4>;
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) \
  case UnaryOp::k##Name:                              \
    return &run<E, Name##Body>;
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
    case UnaryOp::kLog:
      return &run<E, LogBody>;
    case UnaryOp::kRsqrt:
      return &run<E, RsqrtBody>;
    case UnaryOp::kRecip:
      return &run<E, RecipBody>;
    case UnaryOp::kRelu:
      return &run<E, ReluFloat, 4>;
    default:
      return nullptr;
  }
}

template <class E>
UnaryKernel integer_kernel(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg:
      return &run<E, NegInteger, 4>;
    case UnaryOp::kAbs:
      if constexpr (std::is_signed_v<E>) return &run<E, AbsInteger, 4>;
      return nullptr;
    case UnaryOp::kRelu:
      return &run<E, ReluInteger, 4>;
    case UnaryOp::kNot:
      return &run<E, NotBody, 4>;
    default:
      return nullptr;
  }
}

UnaryKernel vector_kernel(UnaryOp op, DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return float_kernel<float>(op);
    case DType::kFp16:
      if (op == UnaryOp::kNeg) return &run<int16_t, SignOfHalf<false, true>, 4>;
      if (op == UnaryOp::kAbs) return &run<int16_t, SignOfHalf<false, false>, 4>;
      return float_kernel<Fp16>(op);
    case DType::kBf16:
      if (op == UnaryOp::kNeg) return &run<int16_t, SignOfHalf<true, true>, 4>;
      if (op == UnaryOp::kAbs) return &run<int16_t, SignOfHalf<true, false>, 4>;
      return float_kernel<Bf16>(op);
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(vector_kernel);

namespace {

using FloatRow = void (*)(const float* in, float* out, size_t n);

/// A function of FP32 rows for 16-bit floats, piece by piece.
template <DType kType, FloatRow kRow>
void through_fp32(const void* in, void* out, size_t n) {
  constexpr size_t kStrip = 256;
  float wide[kStrip];
  const auto* x = static_cast<const uint8_t*>(in);
  auto* o = static_cast<uint8_t*>(out);
  for (size_t i = 0; i < n; i += kStrip) {
    const size_t count = std::min(kStrip, n - i);
    cast_row(kType, x + 2 * i, DType::kFp32, wide, count, CastMode::kRint);
    kRow(wide, wide, count);
    cast_row(DType::kFp32, wide, kType, o + 2 * i, count, CastMode::kRint);
  }
}

template <FloatRow kRow>
UnaryKernel float_row_kernel(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return [](const void* in, void* out, size_t n) {
        kRow(static_cast<const float*>(in), static_cast<float*>(out), n);
      };
    case DType::kFp16:
      return &through_fp32<DType::kFp16, kRow>;
    case DType::kBf16:
      return &through_fp32<DType::kBf16, kRow>;
    default:
      return nullptr;
  }
}

/// 1 / x truncated: itself for 1 and -1, else 0 (0 is unspecified, O-306).
template <class E>
void integer_recip(const void* in, void* out, size_t n) {
  const auto* x = static_cast<const E*>(in);
  auto* o = static_cast<E*>(out);
  for (size_t i = 0; i < n; ++i) o[i] = x[i] == E(1) || x[i] == E(-1) ? x[i] : E(0);
}

}  // namespace

UnaryKernel unary_kernel(UnaryOp op, DType dtype) {
  if (op == UnaryOp::kSin) return float_row_kernel<sin_row>(dtype);
  if (op == UnaryOp::kCos) return float_row_kernel<cos_row>(dtype);
  if (UnaryKernel vectors = HWY_DYNAMIC_DISPATCH(vector_kernel)(op, dtype)) return vectors;
  if (op == UnaryOp::kAbs && is_unsigned_int(dtype)) {
    switch (dtype_bytes(dtype)) {
      case 1:
        return [](const void* in, void* out, size_t n) { std::memmove(out, in, n); };
      case 2:
        return [](const void* in, void* out, size_t n) { std::memmove(out, in, n * 2); };
      case 4:
        return [](const void* in, void* out, size_t n) { std::memmove(out, in, n * 4); };
      default:
        return [](const void* in, void* out, size_t n) { std::memmove(out, in, n * 8); };
    }
  }
  if (op == UnaryOp::kRecip) {
    switch (dtype) {
      case DType::kInt8:
        return &integer_recip<int8_t>;
      case DType::kInt16:
        return &integer_recip<int16_t>;
      case DType::kInt32:
        return &integer_recip<int32_t>;
      case DType::kInt64:
        return &integer_recip<int64_t>;
      default:
        return nullptr;
    }
  }
  return nullptr;
}

}  // namespace pypto::vm
#endif
