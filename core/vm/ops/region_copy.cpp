// SPDX-License-Identifier: Apache-2.0
// Copies and additions over pairs of strided views.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/base/numeric.h"
#include "core/vm/kernels/kernels.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {

namespace {

/// Axes of a two-view loop, outermost first, merged where both sides allow.
struct Loop {
  int rank = 0;
  int64_t extent[kMaxRank] = {};
  int64_t dst[kMaxRank] = {};  // strides in elements
  int64_t src[kMaxRank] = {};
  bool empty = false;
};

Loop make_loop(const View& dst, const View& src) {
  Loop raw;
  const int rank = std::max(dst.rank, src.rank);
  for (int i = 0; i < rank; ++i) {
    const int d = i - (rank - dst.rank), s = i - (rank - src.rank);
    const int64_t extent = s >= 0 ? src.shape[s] : 1;
    if (extent == 0) raw.empty = true;
    if (extent == 1) continue;
    PYPTO_CHECK(d >= 0, "surplus leading axes of a source must have extent 1");
    raw.extent[raw.rank] = extent;
    raw.dst[raw.rank] = dst.stride[d];
    raw.src[raw.rank] = src.stride[s];
    ++raw.rank;
  }
  Loop out;
  out.empty = raw.empty;
  for (int i = 0; i < raw.rank; ++i) {
    const int last = out.rank - 1;
    if (last >= 0 && out.dst[last] == raw.dst[i] * raw.extent[i] &&
        out.src[last] == raw.src[i] * raw.extent[i]) {
      out.extent[last] *= raw.extent[i];
      out.dst[last] = raw.dst[i];
      out.src[last] = raw.src[i];
    } else {
      out.extent[out.rank] = raw.extent[i];
      out.dst[out.rank] = raw.dst[i];
      out.src[out.rank] = raw.src[i];
      ++out.rank;
    }
  }
  return out;
}

/// Calls body(dst element, src element) for every position of the axes before the last `inner` ones.
template <class Body>
void for_outer(const Loop& loop, int inner, Body&& body) {
  const int outer = loop.rank - inner;
  if (outer <= 0) {
    body(int64_t{0}, int64_t{0});
    return;
  }
  int64_t at[kMaxRank] = {};
  int64_t d = 0, s = 0;
  while (true) {
    body(d, s);
    int axis = outer - 1;
    while (axis >= 0) {
      d += loop.dst[axis];
      s += loop.src[axis];
      if (++at[axis] < loop.extent[axis]) break;
      d -= loop.dst[axis] * loop.extent[axis];
      s -= loop.src[axis] * loop.extent[axis];
      at[axis--] = 0;
    }
    if (axis < 0) return;
  }
}

/// Copies a rows x cols block whose source is contiguous along rows: a transposition, in pieces that stay in
/// L1.
template <class T>
void copy_transposed(T* dst, int64_t dst_row, int64_t dst_col, const T* src, int64_t src_row, int64_t src_col,
                     int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = std::min(rows, r0 + kBlock);
    for (int64_t c0 = 0; c0 < cols; c0 += kBlock) {
      const int64_t c1 = std::min(cols, c0 + kBlock);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) dst[r * dst_row + c * dst_col] = src[r * src_row + c * src_col];
      }
    }
  }
}

template <class T>
void copy_strided(uint8_t* dst_bytes, const uint8_t* src_bytes, const Loop& loop) {
  T* dst = reinterpret_cast<T*>(dst_bytes);
  const T* src = reinterpret_cast<const T*>(src_bytes);
  if (loop.rank == 0) {
    *dst = *src;
    return;
  }
  const int last = loop.rank - 1;
  const int64_t n = loop.extent[last], ds = loop.dst[last], ss = loop.src[last];
  if (ds == 1 && ss == 1) {
    const size_t bytes = static_cast<size_t>(n) * sizeof(T);
    for_outer(loop, 1, [&](int64_t d, int64_t s) { std::memcpy(dst + d, src + s, bytes); });
  } else if (last > 0) {
    const int64_t rows = loop.extent[last - 1], dr = loop.dst[last - 1], sr = loop.src[last - 1];
    for_outer(loop, 2,
              [&](int64_t d, int64_t s) { copy_transposed(dst + d, dr, ds, src + s, sr, ss, rows, n); });
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * ds] = src[i * ss];
  }
}

uint8_t get_nibble(const uint8_t* base, int64_t element, bool packed) {
  return packed ? base[element >> 1] >> (element & 1 ? 4 : 0) & 0xf : base[element] & 0xf;
}
void put_nibble(uint8_t* base, int64_t element, bool packed, uint8_t value) {
  if (!packed) {
    base[element] = value;
    return;
  }
  uint8_t& byte = base[element >> 1];
  byte = element & 1 ? static_cast<uint8_t>((byte & 0x0f) | value << 4)
                     : static_cast<uint8_t>((byte & 0xf0) | value);
}

void copy_nibbles(const View& dst, const View& src, const Loop& loop) {
  const bool packed_dst = nibble_packed(dst), packed_src = nibble_packed(src);
  for_outer(loop, 0, [&](int64_t d, int64_t s) {
    put_nibble(dst.data(), d, packed_dst, get_nibble(src.data(), s, packed_src));
  });
}

void copy_converted(const View& dst, const View& src, const Loop& loop) {
  const int64_t to = dtype_bytes(dst.dtype), from = dtype_bytes(src.dtype);
  const int last = loop.rank - 1;
  const int64_t n = loop.rank > 0 ? loop.extent[last] : 1;
  const int64_t ds = loop.rank > 0 ? loop.dst[last] : 1, ss = loop.rank > 0 ? loop.src[last] : 1;
  if (ds == 1 && ss == 1) {
    for_outer(loop, 1, [&](int64_t d, int64_t s) {
      cast_row(src.dtype, src.data() + s * from, dst.dtype, dst.data() + d * to, static_cast<size_t>(n),
               CastMode::kRint);
    });
    return;
  }
  for_outer(loop, 0, [&](int64_t d, int64_t s) {
    cast_row(src.dtype, src.data() + s * from, dst.dtype, dst.data() + d * to, 1, CastMode::kRint);
  });
}

bool overlapping(const View& a, const View& b, const Loop&) {
  if (!(a.buffer == b.buffer)) return false;
  int64_t a0, a1, b0, b1;
  View region = a;
  for (int i = 0; i < std::min<int>(a.rank, b.rank); ++i)
    region.shape[a.rank - 1 - i] = b.shape[b.rank - 1 - i];
  for (int i = 0; i < a.rank - b.rank; ++i) region.shape[i] = 1;
  byte_range(region, &a0, &a1);
  byte_range(b, &b0, &b1);
  return a0 < b1 && b0 < a1;
}

/// Same-width integers of other signedness, and byte types of one width, are bit copies.
bool bit_copy(DType to, DType from) {
  if (to == from || same_dtype(to, from)) return true;
  if (dtype_bytes(to) != dtype_bytes(from) || (dtype_bits(to) == 4) != (dtype_bits(from) == 4)) return false;
  if (to == DType::kBool || from == DType::kBool) return false;
  return (is_int(to) && is_int(from)) || to == DType::kFp8E8M0 || from == DType::kFp8E8M0;
}

}  // namespace

void copy_cells(const View& dst, const View& src) {
  const Loop loop = make_loop(dst, src);
  if (loop.empty) return;
  if (overlapping(dst, src, loop)) {
    // Through a temporary: the order of element copies must not matter.
    std::vector<uint8_t> bytes(static_cast<size_t>(src.elements() * dtype_bytes(src.dtype)));
    Buffer storage;
    storage.data = bytes.data();
    storage.bytes = static_cast<int64_t>(bytes.size());
    storage.refs = 1;
    View temporary;
    temporary.dtype = src.dtype;
    temporary.set_packed(src.rank, src.shape);
    temporary.buffer = BufferRef(&storage);
    copy_cells(temporary, src);
    copy_cells(dst, temporary);
    specify_all(storage);
    return;
  }
  if (!src.buffer->written.all || !dst.buffer->written.all) carry_marks(dst, src);
  if (!bit_copy(dst.dtype, src.dtype)) {
    PYPTO_CHECK(!nibble_packed(dst) && !nibble_packed(src),
                "packed 4-bit tensors are moved without conversion");
    copy_converted(dst, src, loop);
    return;
  }
  if (nibble_packed(dst) || nibble_packed(src)) {
    copy_nibbles(dst, src, loop);
    return;
  }
  switch (dtype_bytes(dst.dtype)) {
    case 1:
      copy_strided<uint8_t>(dst.data(), src.data(), loop);
      break;
    case 2:
      copy_strided<uint16_t>(dst.data(), src.data(), loop);
      break;
    case 4:
      copy_strided<uint32_t>(dst.data(), src.data(), loop);
      break;
    default:
      copy_strided<uint64_t>(dst.data(), src.data(), loop);
      break;
  }
}

namespace {

template <class T>
void add_integers(const View& dst, const View& src, const Loop& loop) {
  T* d = dst.as<T>();
  const T* s = src.as<T>();
  for_outer(loop, 0, [&](int64_t i, int64_t j) { d[i] = static_cast<T>(d[i] + s[j]); });
}

}  // namespace

void add_cells(const View& dst, const View& src) {
  const Loop loop = make_loop(dst, src);
  if (loop.empty) return;
  if (!src.buffer->written.all) carry_marks(dst, src, true);
  switch (dst.dtype) {
    case DType::kFp32: {
      float* d = dst.as<float>();
      const float* s = src.as<float>();
      for_outer(loop, 0, [&](int64_t i, int64_t j) { d[i] += s[j]; });
      return;
    }
    case DType::kFp16: {
      uint16_t* d = dst.as<uint16_t>();
      const uint16_t* s = src.as<uint16_t>();
      for_outer(loop, 0,
                [&](int64_t i, int64_t j) { d[i] = fp32_to_fp16(fp16_to_fp32(d[i]) + fp16_to_fp32(s[j])); });
      return;
    }
    case DType::kBf16: {
      uint16_t* d = dst.as<uint16_t>();
      const uint16_t* s = src.as<uint16_t>();
      for_outer(loop, 0,
                [&](int64_t i, int64_t j) { d[i] = fp32_to_bf16(bf16_to_fp32(d[i]) + bf16_to_fp32(s[j])); });
      return;
    }
    default:
      break;
  }
  switch (dtype_bytes(dst.dtype)) {
    case 1:
      add_integers<uint8_t>(dst, src, loop);
      break;
    case 2:
      add_integers<uint16_t>(dst, src, loop);
      break;
    case 4:
      add_integers<uint32_t>(dst, src, loop);
      break;
    default:
      add_integers<uint64_t>(dst, src, loop);
      break;
  }
}

void fill_outside(const View& v) {
  if (v.fully_valid || v.pad == PadMode::kNull) return;
  alignas(8) uint8_t element[8] = {};
  if (v.pad != PadMode::kZero) write_extreme(v.dtype, element, v.pad == PadMode::kMax);
  const int64_t size = dtype_bytes(v.dtype);
  const int64_t last = v.rank - 1;
  View rows = v;  // all rows, one column
  rows.shape[last] = 1;
  Loop loop;
  for (int i = 0; i < last; ++i) {
    if (v.shape[i] == 0) return;
    loop.extent[loop.rank] = v.shape[i];
    loop.dst[loop.rank++] = v.stride[i];
  }
  int64_t at[kMaxRank] = {};
  for_outer(loop, 0, [&](int64_t d, int64_t) {
    bool valid_row = true;
    for (int i = 0; i < last; ++i) valid_row = valid_row && at[i] < v.valid[i];
    for (int64_t j = valid_row ? v.valid[last] : 0; j < v.shape[last]; ++j) {
      std::memcpy(v.data() + (d + j * v.stride[last]) * size, element, static_cast<size_t>(size));
    }
    for (int64_t i = last - 1; i >= 0 && ++at[i] == v.shape[i]; --i) at[i] = 0;
  });
  if (!v.buffer->written.all) mark_filled(v);
}

}  // namespace pypto::vm
