// SPDX-License-Identifier: Apache-2.0
#include "core/base/dtype.h"

#include <array>
#include <iterator>

namespace pypto {
namespace {

constexpr DTypeInfo kRows[] = {
    {DType::kBool, "BOOL", "bool", 1, "bool"},
    {DType::kInt4, "INT4", "int4", 4, "unknown"},
    {DType::kInt8, "INT8", "int8", 8, "int8_t"},
    {DType::kInt16, "INT16", "int16", 16, "int16_t"},
    {DType::kInt32, "INT32", "int32", 32, "int32_t"},
    {DType::kInt64, "INT64", "int64", 64, "int64_t"},
    {DType::kIndex, "INDEX", "index", 64, "int64_t"},
    {DType::kUInt4, "UINT4", "uint4", 4, "unknown"},
    {DType::kUInt8, "UINT8", "uint8", 8, "uint8_t"},
    {DType::kUInt16, "UINT16", "uint16", 16, "uint16_t"},
    {DType::kUInt32, "UINT32", "uint32", 32, "uint32_t"},
    {DType::kUInt64, "UINT64", "uint64", 64, "uint64_t"},
    {DType::kFp4, "FP4", "fp4", 4, "float4_e2m1x2_t"},
    {DType::kFp8E4M3FN, "FP8E4M3FN", "fp8e4m3fn", 8, "float8_e4m3_t"},
    {DType::kFp8E5M2, "FP8E5M2", "fp8e5m2", 8, "float8_e5m2_t"},
    {DType::kFp16, "FP16", "fp16", 16, "half"},
    {DType::kFp32, "FP32", "fp32", 32, "float"},
    {DType::kFp8E8M0, "FP8E8M0", "fp8e8m0", 8, "float8_e8m0_t"},
    {DType::kBf16, "BF16", "bfloat16", 16, "bfloat16_t"},
    {DType::kHf4, "HF4", "hf4", 4, "unknown"},
    {DType::kHf8, "HF8", "hf8", 8, "unknown"},
    {DType::kTaskId, "TASK_ID", "task_id", 64, "unknown"},
};
constexpr DTypeInfo kNoneRow = {DType::kNone, "NONE", "none", 0, "unknown"};

/// Row of each code: every operation that runs asks for element sizes.
constexpr auto kRowOfCode = [] {
  std::array<const DTypeInfo*, 256> rows{};
  rows.fill(&kNoneRow);
  for (const DTypeInfo& row : kRows) rows[static_cast<size_t>(row.dtype)] = &row;
  return rows;
}();

}  // namespace

DTypeTable dtype_table() { return {kRows, static_cast<int>(std::size(kRows))}; }

const DTypeInfo& dtype_info(DType dtype) { return *kRowOfCode[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_from_code(int code) {
  for (const auto& row : kRows) {
    if (static_cast<int>(row.dtype) == code) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_member(std::string_view member) {
  for (const auto& row : kRows) {
    if (member == row.member) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_text(std::string_view text) {
  for (const auto& row : kRows) {
    if (text == row.text) return row.dtype;
  }
  return std::nullopt;
}

int64_t packed_bytes(DType d, const int64_t* extents, size_t rank) {
  int64_t bits = dtype_bits(d);
  bool large = false;
  for (size_t i = 0; i < rank; ++i) {
    if (extents[i] == 0) return 0;
    large = __builtin_mul_overflow(bits, extents[i], &bits) || large;
  }
  return large || bits / 8 >= kMaxBytes ? kMaxBytes : (bits + 7) / 8;
}

}  // namespace pypto
