// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace pypto {

/// Moves `bytes` bytes at `p` to the caches, at most `kMost`; `p` may be any address.
inline void prefetch_bytes(const void* p, size_t bytes) {
  constexpr size_t kLine = 64, kMost = 512;
  const auto first = reinterpret_cast<uintptr_t>(p) & ~(kLine - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(p) + (bytes < kMost ? bytes : kMost);
  for (uintptr_t at = first; at < end; at += kLine) __builtin_prefetch(reinterpret_cast<const void*>(at));
}

/// The same for an object.
template <class T>
void prefetch_object(const T* p) {
  prefetch_bytes(p, sizeof(T));
}

}  // namespace pypto
