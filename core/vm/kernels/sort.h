// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Sorting of value/index pair records of 8 bytes (02 section 20).
namespace pypto::vm {

/// Position of a record's value: FP32 in the low four bytes, or FP16 in the low two.
enum class RecordKind : uint8_t { kFp32, kFp16 };

/// Sorts one block of 32 values with their indices, descending by value, ties by ascending unsigned index
/// (equal indices keep their order); +0 and -0 tie. Writes 32 records.
void sort_block(RecordKind kind, const void* values, const uint32_t* indices, uint64_t* records);

/// One sorted run of records.
struct Run {
  const uint64_t* data = nullptr;
  int64_t count = 0;
};

/// Merges up to four runs, stable and descending: on ties the earlier run wins. Writes at most `limit`
/// records and returns their number. `stop_when_exhausted`: ends as soon as one run is used up.
int64_t merge_runs(RecordKind kind, const Run* runs, int count, uint64_t* out, int64_t limit,
                   bool stop_when_exhausted);

}  // namespace pypto::vm
