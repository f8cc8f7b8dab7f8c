// SPDX-License-Identifier: Apache-2.0
#include "core/vm/ops/written.h"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace pypto::vm {
namespace {

/// f(coordinates) for every cell of a box.
template <class F>
void for_cells(const int64_t* extents, int rank, F f) {
  int64_t at[kMaxRank] = {};
  for (int a = 0; a < rank; ++a) {
    if (extents[a] == 0) return;
  }
  for (;;) {
    f(at);
    int a = rank - 1;
    for (; a >= 0; --a) {
      if (++at[a] < extents[a]) break;
      at[a] = 0;
    }
    if (a < 0) return;
  }
}

/// Whether the cell of `v` that result cell `at` (of rank `rank`) reads is unspecified.
bool unspecified(const View& v, const int64_t* at, int rank) {
  int64_t offset = v.offset;
  const int lead = rank - v.rank;
  for (int a = 0; a < v.rank; ++a) {
    const int64_t i = lead + a < 0 || v.shape[a] == 1 ? 0 : at[lead + a];
    if (i >= v.valid[a]) return true;
    offset += i * v.stride[a] * dtype_bytes(v.dtype);
  }
  const WrittenMap& written = v.buffer->written;
  if (written.all) return false;
  return written.map == nullptr || written.map[offset] == 0;
}

}  // namespace

bool valid_throughout(const View& v, const Extents& region) {
  if (v.fully_valid) return true;
  const int lead = region.rank - v.rank;
  for (int a = 0; a < v.rank; ++a) {
    const int64_t needed = lead + a < 0 ? 1 : region[lead + a];
    if (v.valid[a] < (v.shape[a] == 1 ? std::min<int64_t>(needed, 1) : needed)) return false;
  }
  return true;
}

void inherit_unwritten(const View& out, std::initializer_list<const Input*> inputs) {
  const View* partial[4];
  int count = 0;
  for (const Input* in : inputs) {
    if (in->is_scalar()) continue;
    const View& v = in->source();
    const WrittenMap& written = v.buffer->written;
    if (written.all && v.fully_valid) continue;
    if (!written.all && written.map == nullptr) {
      out.buffer->written.all = false;  // no cell is specified
      return;
    }
    if (dtype_bits(v.dtype) < 8) continue;
    if (!written.all || !valid_throughout(v, valid_of(out))) partial[count++] = &v;
  }
  if (count == 0) return;
  auto* map = static_cast<uint8_t*>(std::malloc(static_cast<size_t>(out.buffer->bytes)));
  if (map == nullptr) return;  // without room for the record nothing is reported
  std::memset(map, 1, static_cast<size_t>(out.buffer->bytes));
  const auto width = static_cast<size_t>(dtype_bytes(out.dtype));
  bool any = false;
  for_cells(out.valid, out.rank, [&](const int64_t* at) {
    bool missing = false;
    for (int i = 0; i < count && !missing; ++i) missing = unspecified(*partial[i], at, out.rank);
    if (!missing) return;
    any = true;
    int64_t offset = out.offset;
    for (int a = 0; a < out.rank; ++a) offset += at[a] * out.stride[a] * static_cast<int64_t>(width);
    std::memset(map + offset, 0, width);
  });
  if (!any) {
    std::free(map);
    return;
  }
  std::free(out.buffer->written.map);
  out.buffer->written.map = map;
  out.buffer->written.all = false;
}

void warn_mixed(OpCall& call) {
  const View& v = call.view(0);
  const WrittenMap& written = v.buffer->written;
  if (written.all || written.map == nullptr || dtype_bits(v.dtype) < 8) return;
  bool some = false;
  Extents first;
  for_cells(v.valid, v.rank, [&](const int64_t* at) {
    if (!unspecified(v, at, v.rank)) {
      some = true;
    } else if (first.rank == 0) {
      first = Extents(at, v.rank);
    }
  });
  if (!some || first.rank == 0) return;
  call.warn("W-UNSPECIFIED",
            subject(call, 0) + " mixes specified values with unspecified ones: cell " +
                list_text(first.span()) +
                " was never written. Fill it first (pl.full, pl.fillpad with the neutral value), or set "
                "the valid shape to the written part");
}

}  // namespace pypto::vm
