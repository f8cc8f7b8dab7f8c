// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/stream.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/vm/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void stream(uint8_t* to, const uint8_t* from, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t width = hn::Lanes(d);
  const size_t head = std::min(bytes, static_cast<size_t>(-reinterpret_cast<uintptr_t>(to)) % width);
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + width <= bytes; i += width) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(stream);

void stream_bytes(void* to, const void* from, size_t bytes) {
  HWY_DYNAMIC_DISPATCH(stream)(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), bytes);
}

void finish_streams() { hwy::FlushStream(); }

}  // namespace pypto::vm
#endif
