// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/walk.h"

namespace pypto::vm {

Walk::Walk(int rank_in, const int64_t* extents) : rank(rank_in) {
  for (int a = 0; a < rank; ++a) {
    extent[a] = extents[a];
    cells_ *= extents[a];
  }
}

void Walk::add(const void* data, const int64_t* strides, int64_t element_bytes) {
  base[count] = static_cast<uint8_t*>(const_cast<void*>(data));
  for (int a = 0; a < rank; ++a) stride[count][a] = extent[a] == 1 ? 0 : strides[a];
  width[count] = element_bytes;
  ++count;
}

void Walk::collapse() {
  if (cells_ == 0) return;
  // From the innermost axis outwards: the last kept axis grows while its neighbour continues it.
  int kept = kMaxRank;  // axes [kept, kMaxRank) of the result
  int64_t new_extent[kMaxRank] = {};
  int64_t new_stride[kMost][kMaxRank] = {};
  for (int a = rank - 1; a >= 0; --a) {
    if (extent[a] == 1) continue;
    bool merges = kept < kMaxRank;
    for (int i = 0; merges && i < count; ++i) merges = stride[i][a] == new_stride[i][kept] * new_extent[kept];
    if (merges) {
      new_extent[kept] *= extent[a];
      continue;
    }
    if (kept == kMaxRank) {
      // The rows: only an axis along which every array is contiguous or repeated will do.
      bool unit = true;
      for (int i = 0; unit && i < count; ++i) unit = stride[i][a] == width[i] || stride[i][a] == 0;
      if (!unit) {
        --kept;
        new_extent[kept] = 1;
      }
    }
    --kept;
    new_extent[kept] = extent[a];
    for (int i = 0; i < count; ++i) new_stride[i][kept] = stride[i][a];
  }
  rank = kMaxRank - kept;
  for (int a = 0; a < rank; ++a) {
    extent[a] = new_extent[kept + a];
    for (int i = 0; i < count; ++i) stride[i][a] = new_stride[i][kept + a];
  }
}

}  // namespace pypto::vm
