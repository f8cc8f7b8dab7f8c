// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pypto {

/// Element types of the language (01 L-6). The enumerator value is the type's stable code.
enum class DType : uint8_t {
  kBool = 0x00,
  kInt4 = 0x10,
  kInt8 = 0x11,
  kInt16 = 0x12,
  kInt32 = 0x13,
  kInt64 = 0x14,
  kIndex = 0x15,
  kUInt4 = 0x20,
  kUInt8 = 0x21,
  kUInt16 = 0x22,
  kUInt32 = 0x23,
  kUInt64 = 0x24,
  kFp4 = 0x30,
  kFp8E4M3FN = 0x31,
  kFp8E5M2 = 0x32,
  kFp16 = 0x33,
  kFp32 = 0x34,
  kFp8E8M0 = 0x36,
  kBf16 = 0x40,
  kHf4 = 0x41,
  kHf8 = 0x42,
  kTaskId = 0x50,
  kNone = 0xff,  ///< not a type; "no dtype"
};

/// One row of the dtype table.
struct DTypeInfo {
  DType dtype;
  const char* member;  ///< name under `pl.`, e.g. "FP32"
  const char* text;    ///< str(dtype), e.g. "fp32"
  int bits;
  const char* c_name;  ///< C type or "unknown"
};

/// The whole table in declaration order.
struct DTypeTable {
  const DTypeInfo* rows;
  int count;
};
DTypeTable dtype_table();

const DTypeInfo& dtype_info(DType dtype);
/// Builds a dtype from its code; empty if there is none.
std::optional<DType> dtype_from_code(int code);
/// Finds a dtype by `pl.` member name ("FP32"); empty if there is none.
std::optional<DType> dtype_from_member(std::string_view member);
/// Finds a dtype by its text ("fp32"); empty if there is none.
std::optional<DType> dtype_from_text(std::string_view text);

inline int dtype_bits(DType d) { return dtype_info(d).bits; }
/// Bytes of one stored element: bits rounded up to whole bytes.
inline int dtype_bytes(DType d) { return (dtype_info(d).bits + 7) / 8; }
/// More than any storage has; sizes beyond it are kept there.
inline constexpr int64_t kMaxBytes = int64_t{1} << 60;
/// Bytes of packed elements with these extents; kMaxBytes if they are no fewer.
int64_t packed_bytes(DType d, const int64_t* extents, size_t rank);
inline std::string_view dtype_text(DType d) { return dtype_info(d).text; }

inline bool is_float(DType d) {
  const auto c = static_cast<uint8_t>(d);
  return (c >= 0x30 && c <= 0x36) || (c >= 0x40 && c <= 0x42);
}
inline bool is_signed_int(DType d) {
  const auto c = static_cast<uint8_t>(d);
  return c >= 0x10 && c <= 0x15;
}
inline bool is_unsigned_int(DType d) {
  const auto c = static_cast<uint8_t>(d);
  return c >= 0x20 && c <= 0x24;
}
/// Integers without BOOL.
inline bool is_int(DType d) { return is_signed_int(d) || is_unsigned_int(d); }
/// INDEX and INT64 are interchangeable (01 L-18).
inline bool same_dtype(DType a, DType b) {
  auto fold = [](DType d) { return d == DType::kIndex ? DType::kInt64 : d; };
  return fold(a) == fold(b);
}

}  // namespace pypto
