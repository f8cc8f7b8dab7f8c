// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/dtype.h"

namespace pypto::vm {

inline constexpr int kMaxRank = 8;

/// A run-time scalar. Integers (BOOL, INDEX, TASK_ID included) live in `i`, floats in `f` (an FP16, BF16 or
/// FP32 scalar holds exactly the value of that dtype, widened). Which one is meant is static.
union Scalar {
  int64_t i;
  double f;
};
inline Scalar scalar_of(int64_t v) {
  Scalar s;
  s.i = v;
  return s;
}
inline Scalar scalar_of(double v) {
  Scalar s;
  s.f = v;
  return s;
}

/// Which cells of a buffer are specified (02 O-209): all of it, one rectangle of bytes, or by group of bytes.
/// A mark is 0 for specified, else it tells what left the cell unspecified (marks.h).
struct WrittenMap {
  bool all = true;
  uint8_t shift = 0;   ///< log2 of the bytes that share an entry of `map`
  uint8_t origin = 0;  ///< mark of what lies outside the rectangle, 0 = unknown
  /// The rectangle in bytes; no rows: nothing is specified.
  int64_t begin = 0, pitch = 0, rows = 0, width = 0;
  int64_t entries = 0;     ///< of `map`
  int64_t open = 0;        ///< entries that are not 0
  uint8_t* map = nullptr;  ///< marks, instead of the rectangle; owned
};

enum class BufferKind : uint8_t {
  kOnChip,  ///< tile or on-chip tensor of one block; private
  kGlobal,  ///< device tensor, host array, created tensor: visible to other tasks
  kWindow,  ///< one rank's slice of a window buffer
};

/// Reference-counted storage. A simulation runs its fibers on one thread, so counts are plain integers.
struct Buffer {
  uint8_t* data = nullptr;
  int64_t bytes = 0;
  int32_t refs = 0;
  BufferKind kind = BufferKind::kOnChip;
  bool read_only = false;
  WrittenMap written;
  int32_t object = -1;  ///< the machine's record of a global or window buffer (name, owner rank, histories)
  /// Called when the last reference goes; returns the storage to its pool.
  void (*release)(Buffer*) = nullptr;
  void* owner = nullptr;  ///< for `release`
};

/// Counted reference to a Buffer.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* b) : buffer_(b) {
    if (buffer_) ++buffer_->refs;
  }
  BufferRef(const BufferRef& o) : buffer_(o.buffer_) {
    if (buffer_) ++buffer_->refs;
  }
  BufferRef(BufferRef&& o) noexcept : buffer_(std::exchange(o.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(buffer_, o.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_ && --buffer_->refs == 0 && buffer_->release) buffer_->release(buffer_);
  }
  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  Buffer& operator*() const { return *buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }
  bool operator==(const BufferRef& o) const { return buffer_ == o.buffer_; }

 private:
  Buffer* buffer_ = nullptr;
};

/// How `fillpad` and padded loads fill cells outside the valid region (01 L-156).
enum class PadMode : uint8_t { kNull = 0, kZero = 1, kMax = 2, kMin = 3 };

/// A tile or tensor value at run time: typed, strided, with run-time valid extents.
/// `shape`, `stride` (in elements) and `valid` have `rank` entries; the last axis is usually contiguous.
/// Sub-byte dtypes (FP4, INT4, UINT4) are stored packed in GM and one element per byte on chip; for packed
/// views `offset` still counts bytes and the last axis must be contiguous.
struct View {
  BufferRef buffer;
  int64_t offset = 0;  ///< bytes from buffer->data
  DType dtype = DType::kNone;
  int8_t rank = 0;
  PadMode pad = PadMode::kNull;
  bool fully_valid = true;  ///< valid == shape on every axis (kept in step by the helpers below)
  int64_t shape[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
  int64_t valid[kMaxRank] = {};
  /// The bytes as of the statement that made this address, when it is used as a value later (01 L-87); else
  /// empty.
  BufferRef snapshot;

  bool empty() const { return !buffer; }
  uint8_t* data() const { return buffer->data + offset; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  int64_t valid_elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= valid[i];
    return n;
  }
  /// Sets shape = valid = the given extents and packed row-major strides.
  void set_packed(int rank_in, const int64_t* extents) {
    rank = static_cast<int8_t>(rank_in);
    int64_t s = 1;
    for (int i = rank_in - 1; i >= 0; --i) {
      shape[i] = valid[i] = extents[i];
      stride[i] = s;
      s *= extents[i];
    }
    fully_valid = true;
  }
  void refresh_fully_valid() {
    fully_valid = true;
    for (int i = 0; i < rank; ++i) fully_valid = fully_valid && valid[i] == shape[i];
  }
  bool packed() const {
    int64_t s = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (shape[i] != 1 && stride[i] != s) return false;
      s *= shape[i];
    }
    return true;
  }
};

}  // namespace pypto::vm
