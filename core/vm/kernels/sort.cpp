// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/sort.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/sort.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// before[i] = number of keys less than keys[i], for 32 keys.
void count_before(const int64_t* HWY_RESTRICT keys, int64_t* HWY_RESTRICT before) {
  const hn::ScalableTag<int64_t> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < 32; i += 2 * lanes) {
    const auto low = hn::LoadU(d, keys + i), high = hn::LoadU(d, keys + i + lanes);
    auto low_count = hn::Zero(d), high_count = hn::Zero(d);
    for (size_t j = 0; j < 32; ++j) {
      const auto key = hn::Set(d, keys[j]);
      low_count = hn::Sub(low_count, hn::VecFromMask(d, hn::Lt(key, low)));
      high_count = hn::Sub(high_count, hn::VecFromMask(d, hn::Lt(key, high)));
    }
    hn::StoreU(low_count, d, before + i);
    hn::StoreU(high_count, d, before + i + lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <bit>
#include <vector>

#include "core/base/numeric.h"

namespace pypto::vm {

HWY_EXPORT(count_before);

namespace {

constexpr int kBlock = 32;

/// An integer that orders as the value does, both zeros alike; greater value, greater key.
inline int32_t order_of(uint32_t fp32_bits) {
  const auto bits = static_cast<int32_t>(fp32_bits);
  const auto negative = static_cast<int32_t>(0x80000000u - fp32_bits);  // of -0: 0
  return bits >= 0 ? bits : negative;
}

template <RecordKind kind>
inline int32_t record_order(uint64_t record) {
  if constexpr (kind == RecordKind::kFp32) return order_of(static_cast<uint32_t>(record));
  return order_of(std::bit_cast<uint32_t>(fp16_to_fp32(static_cast<uint16_t>(record))));
}

/// Two runs; the order of equal records is that of the runs.
template <RecordKind kind>
int64_t merge_two(Run a, Run b, uint64_t* out, int64_t limit) {
  const uint64_t* x = a.data;
  const uint64_t* y = b.data;
  const uint64_t* const x_end = x + a.count;
  const uint64_t* const y_end = y + b.count;
  int64_t written = 0;
  while (x < x_end && y < y_end && written < limit) {
    const uint64_t first = *x, second = *y;
    const bool take_second = record_order<kind>(second) > record_order<kind>(first);
    out[written++] = take_second ? second : first;
    x += take_second ? 0 : 1;
    y += take_second ? 1 : 0;
  }
  while (x < x_end && written < limit) out[written++] = *x++;
  while (y < y_end && written < limit) out[written++] = *y++;
  return written;
}

/// Record by record, until one run is used up.
template <RecordKind kind>
int64_t merge_until_exhausted(const Run* runs, int count, uint64_t* out, int64_t limit) {
  int64_t at[4] = {};
  for (int r = 0; r < count; ++r) {
    if (runs[r].count == 0) return 0;
  }
  for (int64_t written = 0; written < limit;) {
    int best = 0;
    for (int r = 1; r < count; ++r) {
      if (record_order<kind>(runs[r].data[at[r]]) > record_order<kind>(runs[best].data[at[best]])) best = r;
    }
    out[written++] = runs[best].data[at[best]];
    if (++at[best] == runs[best].count) return written;
  }
  return limit;
}

template <RecordKind kind>
int64_t merge(const Run* runs, int count, uint64_t* out, int64_t limit, bool stop_when_exhausted) {
  if (stop_when_exhausted) return merge_until_exhausted<kind>(runs, count, out, limit);
  if (count <= 2) return merge_two<kind>(runs[0], count == 2 ? runs[1] : Run{}, out, limit);
  // Pairwise: (0 1) and (2 3), then both, which keeps the order of equal records.
  thread_local std::vector<uint64_t> pairs;
  const int64_t first = runs[0].count + runs[1].count;
  const int64_t second = runs[2].count + (count > 3 ? runs[3].count : 0);
  if (static_cast<int64_t>(pairs.size()) < first + second) pairs.resize(static_cast<size_t>(first + second));
  merge_two<kind>(runs[0], runs[1], pairs.data(), first);
  merge_two<kind>(runs[2], count > 3 ? runs[3] : Run{}, pairs.data() + first, second);
  return merge_two<kind>({pairs.data(), first}, {pairs.data() + first, second}, out, limit);
}

}  // namespace

void sort_block(RecordKind kind, const void* values, const uint32_t* indices, uint64_t* records) {
  int64_t keys[kBlock], before[kBlock];
  uint32_t bits[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    uint32_t fp32;
    if (kind == RecordKind::kFp32) {
      fp32 = bits[i] = static_cast<const uint32_t*>(values)[i];
    } else {
      bits[i] = static_cast<const uint16_t*>(values)[i];
      fp32 = std::bit_cast<uint32_t>(fp16_to_fp32(static_cast<uint16_t>(bits[i])));
    }
    // Ascending keys: descending value, then ascending index.
    keys[i] = -static_cast<int64_t>(order_of(fp32)) * (int64_t{1} << 32) + static_cast<int64_t>(indices[i]);
  }
  HWY_DYNAMIC_DISPATCH(count_before)(keys, before);
  // The place of an element is the number of elements before it; equal keys take the following places in
  // turn.
  uint32_t taken = 0;
  for (int i = 0; i < kBlock; ++i) {
    while (taken >> before[i] & 1u) ++before[i];
    taken |= 1u << before[i];
    records[before[i]] = static_cast<uint64_t>(indices[i]) << 32 | bits[i];
  }
}

int64_t merge_runs(RecordKind kind, const Run* runs, int count, uint64_t* out, int64_t limit,
                   bool stop_when_exhausted) {
  return kind == RecordKind::kFp32 ? merge<RecordKind::kFp32>(runs, count, out, limit, stop_when_exhausted)
                                   : merge<RecordKind::kFp16>(runs, count, out, limit, stop_when_exhausted);
}

}  // namespace pypto::vm
#endif  // HWY_ONCE
