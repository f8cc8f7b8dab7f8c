// SPDX-License-Identifier: Apache-2.0

// Per instruction set: the fused multiply-add of FP32 lanes, exact everywhere. Include only from files that
// are compiled through hwy/foreach_target.h.
#if defined(PYPTO_VM_KERNELS_FMA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PYPTO_VM_KERNELS_FMA_INL_H_
#undef PYPTO_VM_KERNELS_FMA_INL_H_
#else
#define PYPTO_VM_KERNELS_FMA_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// a * b + c, rounded once.
template <class D>
HWY_INLINE hn::VFromD<D> fused_lanes(D d, hn::VFromD<D> a, hn::VFromD<D> b, hn::VFromD<D> c) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(a, b, c);
#elif HWY_ARCH_X86 && HWY_HAVE_FLOAT64
  // The product is exact in double. The sum is rounded to odd there (with the error of the addition), after
  // which the rounding to float is the correct one.
  const hn::Repartition<double, D> dd;
  const hn::RebindToSigned<decltype(dd)> di;
  const hn::Half<D> dh;
  const auto half = [&](auto x, auto y, auto z) HWY_ATTR {
    const auto p = hn::Mul(hn::PromoteTo(dd, x), hn::PromoteTo(dd, y));
    const auto q = hn::PromoteTo(dd, z);
    const auto sum = hn::Add(p, q);
    const auto part = hn::Sub(sum, p);
    const auto error = hn::Add(hn::Sub(p, hn::Sub(sum, part)), hn::Sub(q, part));
    const auto bits = hn::BitCast(di, sum);
    const auto one = hn::Set(di, 1);
    const auto inexact = hn::And(hn::Ne(error, hn::Zero(dd)), hn::Eq(error, error));
    const auto even = hn::Eq(hn::And(bits, one), hn::Zero(di));
    const auto apart =
        hn::BroadcastSignBit(hn::BitCast(di, hn::Xor(error, sum)));  // -1: error points to zero
    const auto odd = hn::Add(bits, hn::Or(apart, one));
    const auto chosen = hn::IfThenElse(hn::And(hn::RebindMask(di, inexact), even), odd, bits);
    return hn::DemoteTo(dh, hn::BitCast(dd, chosen));
  };
  const auto low = half(hn::LowerHalf(dh, a), hn::LowerHalf(dh, b), hn::LowerHalf(dh, c));
  const auto high = half(hn::UpperHalf(dh, a), hn::UpperHalf(dh, b), hn::UpperHalf(dh, c));
  return hn::Combine(d, high, low);
#else
  alignas(64) float x[16], y[16], z[16];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < hn::Lanes(d); ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#endif  // toggle
