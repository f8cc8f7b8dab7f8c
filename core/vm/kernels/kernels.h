// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/numeric.h"

/// Row kernels: operations on `n` contiguous elements. Each is compiled for every instruction set and chosen
/// at run time; all sets give the same bits (02 O-311). Who calls them owns rows, strides, valid regions and
/// broadcasting. Results may be the same memory as an operand, never partly overlap one.
namespace pypto::vm {

/// Which operand of a binary kernel is one element repeated.
enum class Spread : uint8_t { kNone, kLhs, kRhs };

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kFmod,  ///< C fmod: sign of the dividend
  kRem,   ///< floor remainder: sign of the divisor
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,
  kExpDif,  ///< exp(round(a - b)), floats
  kLeaky,   ///< a if a > 0 else a * b
};
using BinaryKernel = void (*)(const void* lhs, const void* rhs, void* out, size_t n);
/// nullptr when the operation is not defined for the dtype. Dtypes: FP32, FP16, BF16 and the integers of 8
/// bits and up.
BinaryKernel binary_kernel(BinaryOp op, DType dtype, Spread spread);

enum class UnaryOp : uint8_t {
  kNeg,
  kAbs,
  kLog,
  kRsqrt,
  kRecip,
  kSin,
  kCos,
  kRelu,
  kNot,  ///< bitwise complement
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) k##Name,
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
};
using UnaryKernel = void (*)(const void* in, void* out, size_t n);
UnaryKernel unary_kernel(UnaryOp op, DType dtype);

/// `dtype` elements to FP32 (round to nearest even where FP32 is not wide enough). Sub-byte dtypes: one per
/// byte.
UnaryKernel widen_kernel(DType dtype);
/// FP32 to `dtype`: RNE for floats; integers are rounded by `mode` and then stored by O-1104.
using NarrowKernel = void (*)(const float* in, void* out, size_t n, CastMode mode);
NarrowKernel narrow_kernel(DType dtype);
/// The kernel that cast_row runs for a pair without a choice of rounding, where it is a single one; else
/// nullptr.
UnaryKernel cast_kernel(DType from, DType to);
/// The conversion of 02 section 11 between any two dtypes, each rounded once.
void cast_row(DType from, const void* in, DType to, void* out, size_t n, CastMode mode);

/// Codes of `cmp_type` (02 section 13).
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
/// out[j] = 1 or 0 per element.
using CompareKernel = void (*)(CompareOp op, const void* lhs, const void* rhs, uint8_t* out, size_t n);
CompareKernel compare_kernel(DType dtype, Spread spread);
/// Bytes 0 / 1 to packed bits, least significant first; writes ceil(n / 8) bytes, unused bits 0.
void pack_bits(const uint8_t* flags, uint8_t* bits, size_t n);
/// out[j] = bit j of `mask` ? lhs[j] : rhs[j], for elements of `width` bytes.
void select_row(const uint8_t* mask, const void* lhs, const void* rhs, void* out, size_t n, int width);

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin };
/// One row to one element, in the order of O-307. n > 0.
using ReduceKernel = void (*)(const void* row, size_t n, void* out);
ReduceKernel reduce_kernel(ReduceOp op, DType dtype);
/// Index of the greatest or least element, the lowest on ties (O-1504).
int32_t arg_row(const void* row, size_t n, DType dtype, bool greatest);
/// One step of a column arg reduction: where row[j] beats best[j], takes it and writes `index`.
void arg_columns(const void* row, void* best, int32_t* where, size_t n, DType dtype, bool greatest,
                 int32_t index);

/// Sine and cosine of any finite argument; correct to about half an ulp.
float sin_any(float x);
float cos_any(float x);

/// First element at which an integer division is unspecified (O-306): divisor 0, or least value / -1; n when
/// none.
size_t find_division_fault(DType dtype, const void* lhs, const void* rhs, Spread spread, size_t n);

/// Copies to memory that is not read again soon, past the caches where the processor can. What other threads
/// may then read is complete after finish_streams.
void stream_bytes(void* to, const void* from, size_t bytes);
void finish_streams();

/// Fills n elements of `width` bytes.
void fill_row(void* out, const void* element, size_t n, int width);

}  // namespace pypto::vm
