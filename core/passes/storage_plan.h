// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace pypto::passes {

/// A buffer that must be somewhere from `from` to `to` (inclusive positions).
struct BufferSpan {
  int64_t bytes = 0;
  int from = 0, to = 0;
  int64_t offset = 0;  ///< filled by place_buffers
};

/// Places the buffers from address `base` on, aligned, so that buffers alive together do not overlap, and
/// returns the high-water mark of the best placement found. Looks longer when that is above `limit`.
int64_t place_buffers(std::vector<BufferSpan>& buffers, int64_t base, int64_t alignment, int64_t limit);

}  // namespace pypto::passes
