// SPDX-License-Identifier: Apache-2.0
// The record of what is specified in a buffer: all, a rectangle, or marks by group of bytes.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

/// Rows of `width` bytes, `pitch` apart. One run has one row.
struct ByteRect {
  int64_t begin = 0, pitch = 0, rows = 0, width = 0;
};

/// The axes of a region in order of their strides, outermost first, merged where they touch.
struct Axes {
  int rank = 0;
  int64_t extent[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};  // bytes
  bool empty = false;
};

Axes axes_of(const View& region) {
  Axes raw;
  const int64_t size = dtype_bytes(region.dtype);
  for (int i = 0; i < region.rank; ++i) {
    if (region.valid[i] == 0) raw.empty = true;
    if (region.valid[i] == 1 || (region.stride[i] == 0 && region.valid[i] != 0)) continue;
    int at = raw.rank++;
    for (; at > 0 && raw.stride[at - 1] < region.stride[i] * size; --at) {
      raw.extent[at] = raw.extent[at - 1];
      raw.stride[at] = raw.stride[at - 1];
    }
    raw.extent[at] = region.valid[i];
    raw.stride[at] = region.stride[i] * size;
  }
  Axes out;
  out.empty = raw.empty;
  for (int i = 0; i < raw.rank; ++i) {
    const int last = out.rank - 1;
    if (last >= 0 && out.stride[last] == raw.stride[i] * raw.extent[i]) {
      out.extent[last] *= raw.extent[i];
      out.stride[last] = raw.stride[i];
    } else {
      out.extent[out.rank] = raw.extent[i];
      out.stride[out.rank++] = raw.stride[i];
    }
  }
  return out;
}

bool rect_of(const View& region, const Axes& axes, ByteRect* out) {
  const int64_t size = dtype_bytes(region.dtype);
  *out = {region.offset, 0, 1, size};
  if (axes.empty) {
    out->rows = 0;
    return true;
  }
  int inner = axes.rank - 1;
  if (inner >= 0 && axes.stride[inner] == size) out->width = axes.extent[inner--] * size;
  if (inner > 0 || (inner == 0 && axes.stride[0] < out->width)) return false;
  if (inner == 0) {
    out->rows = axes.extent[0];
    out->pitch = axes.stride[0];
  }
  return true;
}

/// The same for the usual regions, which need no sorting of axes: some elements of one row, or rows of a
/// tile.
bool plain_rect(const View& v, ByteRect* out) {
  if (v.rank != 2 || v.stride[1] != 1 || v.valid[0] <= 0 || v.valid[1] <= 0) return false;
  const int64_t size = dtype_bytes(v.dtype);
  if (v.valid[0] > 1 && v.stride[0] <= v.valid[1]) return false;  // rows that touch or share bytes
  *out = {v.offset, v.valid[0] > 1 ? v.stride[0] * size : 0, v.valid[0], v.valid[1] * size};
  return true;
}

/// body(first byte, bytes) for every run of the region until it returns false.
template <class Body>
bool for_runs(const View& region, const Axes& axes, Body&& body) {
  if (axes.empty) return true;
  const int64_t size = dtype_bytes(region.dtype);
  int outer = axes.rank;
  int64_t run = size;
  if (outer > 0 && axes.stride[outer - 1] == size) run = axes.extent[--outer] * size;
  int64_t at[kMaxRank] = {};
  int64_t position = region.offset;
  while (true) {
    if (!body(position, run)) return false;
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      position += axes.stride[axis];
      if (++at[axis] < axes.extent[axis]) break;
      position -= axes.stride[axis] * axes.extent[axis];
      at[axis] = 0;
    }
    if (axis < 0) return true;
  }
}

bool tracked(const View& v) { return v.buffer && !nibble_packed(v); }

/// Whether the rectangle of the record contains `r`.
bool contains(const WrittenMap& w, const ByteRect& r) {
  if (r.rows == 0) return true;
  if (w.rows == 0 || r.begin < w.begin) return false;
  const int64_t from = r.begin - w.begin;
  if (w.rows == 1) return from + (r.rows - 1) * r.pitch + r.width <= w.width;
  if (r.rows > 1 && r.pitch % w.pitch != 0) {
    for (int64_t i = 0; i < r.rows; ++i) {
      if (!contains(w, {r.begin + i * r.pitch, 0, 1, r.width})) return false;
    }
    return true;
  }
  const int64_t steps = r.rows > 1 ? (r.rows - 1) * (r.pitch / w.pitch) : 0;
  return from % w.pitch + r.width <= w.width && from / w.pitch + steps < w.rows;
}

void set_rect(WrittenMap& w, const ByteRect& r) {
  w.begin = r.begin;
  w.pitch = r.pitch;
  w.rows = r.rows;
  w.width = r.width;
  if (w.rows > 1 && w.pitch == w.width) {
    w.width *= w.rows;
    w.rows = 1;
  }
}

/// Adds `r` to the rectangle, if the union is one.
bool grow(WrittenMap& w, const ByteRect& r) {
  if (contains(w, r)) return true;
  if (w.rows == 0) {
    set_rect(w, r);
    return true;
  }
  const ByteRect old{w.begin, w.pitch, w.rows, w.width};
  if (r.rows == 1 && w.rows == 1) {
    if (r.begin <= w.begin + w.width && w.begin <= r.begin + r.width) {
      const int64_t end = std::max(w.begin + w.width, r.begin + r.width);
      w.begin = std::min(w.begin, r.begin);
      w.width = end - w.begin;
      return true;
    }
    if (r.width == w.width && r.begin > w.begin) {
      set_rect(w, {w.begin, r.begin - w.begin, 2, w.width});
      return true;
    }
    return false;
  }
  if (r.width == w.width && (r.rows == 1 || r.pitch == w.pitch) && w.rows > 1 &&
      r.begin == w.begin + w.rows * w.pitch) {
    set_rect(w, {w.begin, w.pitch, w.rows + r.rows, w.width});
    return true;
  }
  if (r.rows == w.rows && r.pitch == w.pitch) {
    if (r.begin == w.begin + w.width && w.width + r.width <= w.pitch) {
      set_rect(w, {w.begin, w.pitch, w.rows, w.width + r.width});
      return true;
    }
    if (r.begin == w.begin && r.width > w.width) {
      set_rect(w, r);
      return true;
    }
  }
  WrittenMap other;
  set_rect(other, r);
  if (contains(other, old)) {
    set_rect(w, r);
    return true;
  }
  return false;
}

void set_run(WrittenMap& w, int64_t at, int64_t bytes, Mark mark) {
  // Where cells of other widths share an entry, it is specified when part of it is.
  const int64_t round = mark == 0 ? 0 : (int64_t{1} << w.shift) - 1;
  const int64_t first = std::max<int64_t>((at + round) >> w.shift, 0);
  const int64_t end = std::min((at + bytes + ((int64_t{1} << w.shift) - 1 - round)) >> w.shift, w.entries);
  if (first >= end) return;
  int64_t open = 0, i = first;
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  for (; i + 8 <= end; i += 8) {
    uint64_t word;
    std::memcpy(&word, w.map + i, 8);
    open += std::popcount((((word & kLow) + kLow) | word) & ~kLow);
  }
  for (; i < end; ++i) open += w.map[i] != 0 ? 1 : 0;
  std::memset(w.map + first, mark, static_cast<size_t>(end - first));
  w.open += (mark != 0 ? end - first : 0) - open;
}

/// Turns the record into marks by group of bytes; false: there is no room, nothing is recorded any more.
bool make_map(Buffer& buffer, int64_t size) {
  WrittenMap& w = buffer.written;
  if (w.map) return true;
  int shift = size >= 8 ? 3 : size >= 4 ? 2 : size >= 2 ? 1 : 0;
  const int64_t all_bits = w.all ? 0 : w.begin | w.pitch | w.width;
  while (shift > 0 && (all_bits & ((int64_t{1} << shift) - 1)) != 0) --shift;
  const int64_t entries = (buffer.bytes + (int64_t{1} << shift) - 1) >> shift;
  auto* map = static_cast<uint8_t*>(std::malloc(static_cast<size_t>(entries)));
  if (map == nullptr) {
    specify_all(buffer);
    return false;
  }
  const bool was_all = w.all;
  w.map = map;
  w.entries = entries;
  w.shift = static_cast<uint8_t>(shift);
  w.all = false;
  std::memset(map, was_all ? 0 : mark_of_unwritten(buffer), static_cast<size_t>(entries));
  w.open = was_all ? 0 : entries;
  if (!was_all) {
    for (int64_t i = 0; i < w.rows; ++i) set_run(w, w.begin + i * w.pitch, w.width, 0);
  }
  w.rows = 0;
  return true;
}

Mark same_mark(Mark m) { return m; }
/// In memory that others see, the line of the store is remembered.
Mark stored_mark(Mark m) { return marks().origin(Origin::Kind::kStored, {}, m); }
using Translate = Mark (*)(Mark);
Translate translation(const Buffer& to) { return to.kind == BufferKind::kOnChip ? same_mark : stored_mark; }

void settle(Buffer& buffer) {
  WrittenMap& w = buffer.written;
  if (w.map ? w.open == 0 : w.rows == 1 && w.begin == 0 && w.width >= buffer.bytes) specify_all(buffer);
}

}  // namespace

void specify_all(Buffer& buffer) {
  std::free(buffer.written.map);
  buffer.written = WrittenMap();
}

void mark_unwritten(Buffer& buffer, Mark mark) {
  std::free(buffer.written.map);
  buffer.written = WrittenMap();
  buffer.written.all = false;
  buffer.written.origin = mark;
}

void forget_origins(Buffer& buffer) {
  WrittenMap& w = buffer.written;
  w.origin = 0;
  if (!w.map) return;
  for (int64_t i = 0; i < w.entries; ++i) w.map[i] = w.map[i] != 0 ? kUnknownMark : 0;
}

Mark mark_at(const Buffer& buffer, int64_t at) {
  const WrittenMap& w = buffer.written;
  if (w.all || at < 0 || at >= buffer.bytes) return 0;  // a clamped window reaches past its storage
  if (w.map) return w.map[at >> w.shift];
  return contains(w, {at, 0, 1, 1}) ? 0 : mark_of_unwritten(buffer);
}

bool specified(const View& v) {
  const WrittenMap& w = v.buffer->written;
  if (w.all || !tracked(v)) return true;
  ByteRect plain;
  if (!w.map && plain_rect(v, &plain)) return contains(w, plain);
  const Axes axes = axes_of(v);
  if (axes.empty) return true;
  if (!w.map) {
    ByteRect r;
    if (rect_of(v, axes, &r)) return contains(w, r);
    return for_runs(v, axes, [&](int64_t at, int64_t n) { return contains(w, {at, 0, 1, n}); });
  }
  return for_runs(v, axes, [&](int64_t at, int64_t n) {
    const int64_t end = std::min((at + n + (int64_t{1} << w.shift) - 1) >> w.shift, w.entries);
    int64_t i = std::max<int64_t>(at >> w.shift, 0);
    uint64_t any = 0;
    for (; i + 8 <= end; i += 8) {
      uint64_t word;
      std::memcpy(&word, w.map + i, 8);
      any |= word;
    }
    for (; i < end; ++i) any |= w.map[i];
    return any == 0;
  });
}

void mark_written(const View& v) {
  WrittenMap& w = v.buffer->written;
  if (w.all) return;
  if (!tracked(v)) {
    specify_all(*v.buffer);
    return;
  }
  ByteRect r;
  if (!w.map && plain_rect(v, &r) && grow(w, r)) {
    settle(*v.buffer);
    return;
  }
  const Axes axes = axes_of(v);
  if (axes.empty) return;
  if (w.map || !rect_of(v, axes, &r) || !grow(w, r)) {
    if (!make_map(*v.buffer, dtype_bytes(v.dtype))) return;
    for_runs(v, axes, [&](int64_t at, int64_t n) {
      set_run(w, at, n, 0);
      return true;
    });
  }
  settle(*v.buffer);
}

void mark_unspecified(const View& v, Mark mark) {
  if (!marks().on || !tracked(v)) return;
  WrittenMap& w = v.buffer->written;
  const Axes axes = axes_of(v);
  if (axes.empty) return;
  mark = translation(*v.buffer)(mark);
  ByteRect r;
  if (rect_of(v, axes, &r) && r.rows == 1 && r.begin == 0 && r.width >= v.buffer->bytes) {
    mark_unwritten(*v.buffer, mark);
    return;
  }
  if (!make_map(*v.buffer, dtype_bytes(v.dtype))) return;
  for_runs(v, axes, [&](int64_t at, int64_t n) {
    set_run(w, at, n, mark);
    return true;
  });
}

void leave_padding(const View& out, const View* like) {
  if (out.fully_valid || !marks().on || !tracked(out)) return;
  ByteRect r;
  if (!plain_rect(out, &r) && !rect_of(out, axes_of(out), &r)) return;
  Mark mark = 0;
  if (like && like->buffer && !like->fully_valid) mark = like->buffer->written.origin;
  mark_unwritten(*out.buffer, mark != 0 ? mark : marks().origin(Origin::Kind::kPadding));
  set_rect(out.buffer->written, r);
}

void mark_filled(const View& v) {
  if (v.buffer->written.all) return;
  const View valid = valid_region(v);
  View all = v;
  for (int a = 0; a < v.rank; ++a) all.valid[a] = v.shape[a];
  all.fully_valid = true;
  if (specified(valid)) {
    mark_written(all);
    return;
  }
  View kept = valid;  // the marks of the valid region, while the whole is marked
  kept.set_packed(valid.rank, valid.shape);
  kept.offset = 0;
  std::vector<uint8_t> bytes(static_cast<size_t>(valid.elements() * dtype_bytes(v.dtype)));
  Buffer storage;
  storage.data = bytes.data();
  storage.bytes = static_cast<int64_t>(bytes.size());
  storage.refs = 1;
  kept.buffer = BufferRef(&storage);
  carry_marks(kept, valid);
  mark_written(all);
  carry_marks(valid, kept);
  specify_all(storage);
}

void set_cell_mark(const View& v, int64_t element, Mark mark) {
  WrittenMap& w = v.buffer->written;
  if ((w.all && mark == 0) || !tracked(v)) return;
  const int64_t size = dtype_bytes(v.dtype);
  if (!make_map(*v.buffer, size)) return;
  set_run(w, v.offset + element * size, size, mark == 0 ? Mark{0} : translation(*v.buffer)(mark));
  settle(*v.buffer);
}

Mark first_unspecified(const View& v, Extents* at) {
  if (specified(v)) return 0;
  *at = expand_front({}, v.rank, 0);
  while (true) {
    int64_t element = 0;
    for (int a = 0; a < v.rank; ++a) element += (*at)[a] * v.stride[a];
    if (const Mark m = cell_mark(v, element)) return m;
    int axis = v.rank - 1;
    while (axis >= 0 && ++(*at)[axis] >= v.valid[axis]) (*at)[axis--] = 0;
    if (axis < 0) return 0;
  }
}

// ------------------------------------------------------------------ copies

namespace {

/// Sets the marks of a run of `bytes` of `to` like those of the run of `from`, cells of `size` and `to_size`.
void carry_run(const Buffer& from, int64_t at, int64_t size, Buffer& to, int64_t to_at, int64_t to_size,
               int64_t cells, Translate translate) {
  const WrittenMap& s = from.written;
  if (!s.map && (s.rows <= 1 || (at - s.begin >= 0 && (at - s.begin) % s.pitch + cells * size <= s.pitch))) {
    // At most one piece of the rectangle lies in the run.
    int64_t begin = 0, end = 0;  // specified cells
    if (s.all) {
      end = cells;
    } else if (s.rows == 1) {
      begin = std::clamp<int64_t>((s.begin - at + size - 1) / size, 0, cells);
      end = std::clamp<int64_t>((s.begin + s.width - at) / size, begin, cells);
    } else if (s.rows > 1 && (at - s.begin) / s.pitch < s.rows) {
      end = std::clamp<int64_t>((s.width - (at - s.begin) % s.pitch) / size, 0, cells);
    }
    const Mark mark = s.all ? 0 : translate(mark_of_unwritten(from));
    set_run(to.written, to_at, begin * to_size, mark);
    set_run(to.written, to_at + begin * to_size, (end - begin) * to_size, 0);
    set_run(to.written, to_at + end * to_size, (cells - end) * to_size, mark);
    return;
  }
  for (int64_t i = 0; i < cells; ++i) {
    const Mark m = mark_at(from, at + i * size);
    set_run(to.written, to_at + i * to_size, to_size, m == 0 ? 0 : translate(m));
  }
}

/// Hands a rectangle on to fresh storage of the same rows.
bool carry_rect(const View& dst, const View& src) {
  const WrittenMap& s = src.buffer->written;
  WrittenMap& d = dst.buffer->written;
  if (s.map || !d.all || !dst.packed() || dst.offset != 0 || dst.buffer->kind != BufferKind::kOnChip)
    return false;
  const int64_t size = dtype_bytes(src.dtype), to_size = dtype_bytes(dst.dtype);
  if (dst.elements() * to_size != dst.buffer->bytes) return false;
  if (s.rows == 0) {
    mark_unwritten(*dst.buffer, s.origin);
    return true;
  }
  if (src.rank != 2 || src.offset < s.begin) return false;
  const int along = src.stride[1] == 1 ? 1 : 0;  // 0: transposed
  const int64_t lines = src.shape[1 - along], line = src.shape[along];
  const int64_t pitch = src.stride[1 - along] * size;
  if (src.stride[along] != 1 || pitch <= 0) return false;
  if (s.rows > 1 ? s.pitch != pitch : (src.offset - s.begin) % pitch != 0) return false;
  int64_t rows = 0, width = 0;
  if (s.rows > 1) {
    const int64_t from = src.offset - s.begin;
    rows = std::clamp<int64_t>(s.rows - from / pitch, 0, lines);
    width = std::clamp<int64_t>((s.width - from % pitch) / size, 0, line);
  } else {
    const int64_t left = s.begin + s.width - src.offset;
    if (left % pitch != 0 && left > 0 && left / pitch < lines && left % pitch < line * size) {
      if (left > pitch) return false;  // whole rows and part of one
      rows = 1;
      width = left / size;
    } else {
      rows = std::clamp<int64_t>((left + pitch - 1) / pitch, 0, lines);
      width = line;
    }
  }
  if (along == 0) std::swap(rows, width);
  mark_unwritten(*dst.buffer, s.origin);
  if (rows > 0 && width > 0) set_rect(d, {0, dst.shape[dst.rank - 1] * to_size, rows, width * to_size});
  settle(*dst.buffer);
  return true;
}

}  // namespace

void carry_marks(const View& dst, const View& src, bool added) {
  if (!tracked(dst)) {
    if (!added) mark_written(dst);
    return;
  }
  if (src.buffer->written.all && dst.buffer->kind != BufferKind::kOnChip) return;  // recorded with the access
  View region = dst;  // the cells that are written
  for (int i = 0; i < dst.rank; ++i) {
    const int from = i - (dst.rank - src.rank);
    region.shape[i] = region.valid[i] = from >= 0 ? src.shape[from] : 1;
  }
  region.fully_valid = true;
  View source = valid_region(src);
  for (int i = 0; i < src.rank; ++i) source.shape[i] = source.valid[i] = src.shape[i];
  if (!tracked(src) || specified(source)) {
    // The access to memory that others see was declared and recorded before.
    if (!added && dst.buffer->kind == BufferKind::kOnChip) mark_written(region);
    return;
  }
  if (!marks().on) return;
  if (!added && carry_rect(region, source)) return;
  const int64_t size = dtype_bytes(src.dtype), to_size = dtype_bytes(dst.dtype);
  if (!make_map(*dst.buffer, to_size)) return;
  const Translate translate = translation(*dst.buffer);
  // Right-aligned axes; surplus ones have extent 1.
  const int rank = src.rank;
  const auto dst_stride = [&](int axis) {
    const int at = axis + dst.rank - rank;
    return at >= 0 ? dst.stride[at] * to_size : 0;
  };
  const bool rows = rank > 0 && src.stride[rank - 1] == 1 && dst_stride(rank - 1) == to_size && !added;
  const int outer = rows ? rank - 1 : rank;
  int64_t at[kMaxRank] = {};
  int64_t from = src.offset, to = dst.offset;
  while (true) {
    if (rows) {
      carry_run(*src.buffer, from, size, *dst.buffer, to, to_size, src.shape[rank - 1], translate);
    } else if (const Mark m = mark_at(*src.buffer, from); m != 0 || !added) {
      set_run(dst.buffer->written, to, to_size, m == 0 ? 0 : translate(m));
    }
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      from += src.stride[axis] * size;
      to += dst_stride(axis);
      if (++at[axis] < src.shape[axis]) break;
      from -= src.stride[axis] * size * src.shape[axis];
      to -= dst_stride(axis) * src.shape[axis];
      at[axis] = 0;
    }
    if (axis < 0) break;
  }
  settle(*dst.buffer);
}

}  // namespace pypto::vm
