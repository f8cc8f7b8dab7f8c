// SPDX-License-Identifier: Apache-2.0
#include "core/vm/ops/lanes.h"

#include <algorithm>
#include <string>

#include "core/base/diagnostic.h"
#include "core/vm/interp.h"
#include "core/vm/ops/region.h"

namespace pypto::vm {
namespace {

int split_axis(const View& v, ir::SplitMode mode) {
  return mode == ir::SplitMode::kUpDown ? v.rank - 2 : v.rank - 1;
}

/// Copies `n` rows of the last axis between strided rank-2 views.
void copy_block(const View& from, const View& to, int64_t rows, int64_t cols) {
  if (!from.buffer->written.all) carry_marks(to, from);
  const int64_t size = dtype_bytes(from.dtype);
  const int r = from.rank - 2;
  const int c = from.rank - 1;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      std::memcpy(to.data() + (i * to.stride[r] + j * to.stride[c]) * size,
                  from.data() + (i * from.stride[r] + j * from.stride[c]) * size, static_cast<size_t>(size));
    }
  }
}

}  // namespace

View shard_lane(const View& value, ir::SplitMode mode, int lane, int64_t lane_stride) {
  View part = value;
  if (mode == ir::SplitMode::kNone || value.rank < 2) return part;
  const int axis = split_axis(value, mode);
  const int64_t n = value.shape[axis];
  const int64_t half = (n + 1) / 2;
  const int64_t start = lane == 0 ? 0 : (lane_stride > 0 ? lane_stride : half);
  part.shape[axis] = lane == 0 || n % 2 == 0 ? half : n - half;
  part.valid[axis] =
      std::clamp<int64_t>(value.valid[axis] - start, 0, lane == 0 && lane_stride > 0 ? lane_stride : half);
  part.offset += start * value.stride[axis] * dtype_bytes(value.dtype);
  part.refresh_fully_valid();
  return part;
}

View boxed_lane(const View& value, ir::SplitMode mode, int lane, int64_t lane_stride) {
  View part = shard_lane(value, mode, lane, lane_stride);
  if (mode == ir::SplitMode::kNone || value.rank != 2) return part;
  const int axis = split_axis(value, mode);
  const int64_t half = (value.shape[axis] + 1) / 2;
  if (part.shape[axis] == half) return part;
  View box;
  box.dtype = part.dtype;
  int64_t shape[kMaxRank];
  for (int i = 0; i < part.rank; ++i) shape[i] = part.shape[i];
  shape[axis] = half;
  box.set_packed(part.rank, shape);
  box.buffer = BufferRef(pool_alloc(box.elements() * dtype_bytes(part.dtype), true));
  box.pad = part.pad;
  copy_block(part, box, part.shape[part.rank - 2], part.shape[part.rank - 1]);
  for (int i = 0; i < part.rank; ++i) box.valid[i] = part.valid[i];
  box.refresh_fully_valid();
  return box;
}

View join_lanes(const View& lane0, const View& lane1, ir::SplitMode mode, int64_t extent) {
  const int64_t size = dtype_bytes(lane0.dtype);
  const int r = lane0.rank - 2;
  const int c = lane0.rank - 1;
  if (mode == ir::SplitMode::kNone) {
    for (int64_t i = 0; i < lane0.valid[r]; ++i) {
      for (int64_t j = 0; j < lane0.valid[c]; ++j) {
        if (std::memcmp(lane0.data() + (i * lane0.stride[r] + j * lane0.stride[c]) * size,
                        lane1.data() + (i * lane1.stride[r] + j * lane1.stride[c]) * size,
                        static_cast<size_t>(size)) != 0) {
          fail(ErrorClass::kProtocolError,
               "aic_gather in mode NONE: the two vector lanes hold different values at cell [" +
                   std::to_string(i) + ", " + std::to_string(j) + "]",
               {}, "compute the same value on both lanes, or use mode UP_DOWN or LEFT_RIGHT");
        }
      }
    }
    return lane0;
  }
  const int axis = split_axis(lane0, mode);
  View out;
  out.dtype = lane0.dtype;
  int64_t shape[kMaxRank];
  for (int i = 0; i < lane0.rank; ++i) shape[i] = lane0.shape[i];
  const int64_t rest = extent > lane0.shape[axis] ? std::min(extent - lane0.shape[axis], lane1.shape[axis])
                                                  : lane1.shape[axis];
  shape[axis] = lane0.shape[axis] + rest;
  out.set_packed(lane0.rank, shape);
  out.buffer = BufferRef(pool_alloc(out.elements() * size, true));
  out.pad = lane0.pad;
  copy_block(lane0, out, lane0.shape[r], lane0.shape[c]);
  View second = out;
  second.offset += lane0.shape[axis] * out.stride[axis] * size;
  copy_block(lane1, second, axis == r ? rest : lane1.shape[r], axis == c ? rest : lane1.shape[c]);
  for (int i = 0; i < out.rank; ++i) out.valid[i] = lane0.valid[i];
  if (lane1.valid[axis] > 0 && lane0.valid[axis] != lane0.shape[axis]) {
    fail(ErrorClass::kProtocolError,
         "tile.aic_gather re-joins the two lanes positionally, but lane 0 is only partly valid (" +
             std::to_string(lane0.valid[axis]) + " of " + std::to_string(lane0.shape[axis]) + ")",
         {}, "fill the padding with pl.fillpad before the gather");
  }
  out.valid[axis] = lane0.valid[axis] + std::min(lane1.valid[axis], rest);
  out.refresh_fully_valid();
  return out;
}

}  // namespace pypto::vm
