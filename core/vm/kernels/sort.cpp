// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/sort.h"

#include <algorithm>
#include <bit>

#include "core/base/numeric.h"

namespace pypto::vm {
namespace {

constexpr int kBlock = 32;

/// An integer that orders as the value does, both zeros alike; greater value, greater key.
inline int32_t order_of(uint32_t fp32_bits) {
    const auto bits = static_cast<int32_t>(fp32_bits);
    if ((fp32_bits << 1) == 0) return 0;
    return bits >= 0 ? bits : static_cast<int32_t>(0x80000000u - fp32_bits);
}

inline int32_t record_order(RecordKind kind, uint64_t record) {
    if (kind == RecordKind::kFp32) return order_of(static_cast<uint32_t>(record));
    return order_of(std::bit_cast<uint32_t>(fp16_to_fp32(static_cast<uint16_t>(record))));
}

template <RecordKind kind>
int64_t merge(const Run* runs, int count, uint64_t* out, int64_t limit, bool stop_when_exhausted) {
    // Keys of the heads; a run that is used up has the least key and can only win when all are.
    constexpr int64_t kDone = INT64_MIN;
    int64_t key[4] = {kDone, kDone, kDone, kDone};
    int64_t at[4] = {};
    for (int r = 0; r < count; ++r) {
        if (runs[r].count > 0) {
            key[r] = record_order(kind, runs[r].data[0]);
        } else if (stop_when_exhausted) {
            return 0;
        }
    }
    int64_t written = 0;
    while (written < limit) {
        const int left = key[1] > key[0] ? 1 : 0;
        const int right = key[3] > key[2] ? 3 : 2;
        const int best = key[right] > key[left] ? right : left;
        if (key[best] == kDone) break;
        out[written++] = runs[best].data[at[best]];
        if (++at[best] < runs[best].count) {
            key[best] = record_order(kind, runs[best].data[at[best]]);
        } else {
            key[best] = kDone;
            if (stop_when_exhausted) break;
        }
    }
    return written;
}

}  // namespace

void sort_block(RecordKind kind, const void* values, const uint32_t* indices, uint64_t* records) {
    // The place of an element is the number of elements before it: no branches, and equal keys keep their order.
    int64_t keys[kBlock];
    uint32_t bits[kBlock];
    for (int i = 0; i < kBlock; ++i) {
        uint32_t fp32;
        if (kind == RecordKind::kFp32) {
            fp32 = bits[i] = static_cast<const uint32_t*>(values)[i];
        } else {
            const uint16_t half = static_cast<const uint16_t*>(values)[i];
            bits[i] = half;
            fp32 = std::bit_cast<uint32_t>(fp16_to_fp32(half));
        }
        // Ascending keys: descending value, then ascending index.
        keys[i] = static_cast<int64_t>(-static_cast<int64_t>(order_of(fp32))) * (int64_t{1} << 32) +
                  static_cast<int64_t>(indices[i]);
    }
    int place[kBlock] = {};
    for (int i = 0; i < kBlock; ++i) {
        const int64_t key = keys[i];
        int before = 0;
        for (int j = 0; j < i; ++j) before += keys[j] <= key ? 1 : 0;
        for (int j = i + 1; j < kBlock; ++j) before += keys[j] < key ? 1 : 0;
        place[i] = before;
    }
    for (int i = 0; i < kBlock; ++i) {
        records[place[i]] = static_cast<uint64_t>(indices[i]) << 32 | bits[i];
    }
}

int64_t merge_runs(RecordKind kind, const Run* runs, int count, uint64_t* out, int64_t limit,
                   bool stop_when_exhausted) {
    return kind == RecordKind::kFp32 ? merge<RecordKind::kFp32>(runs, count, out, limit, stop_when_exhausted)
                                     : merge<RecordKind::kFp16>(runs, count, out, limit, stop_when_exhausted);
}

}  // namespace pypto::vm
