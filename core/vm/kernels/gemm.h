// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/dtype.h"

/// Matrix products with one accumulation order (02 O-307): per result cell k ascending, one fused
/// multiply-add per term in FP32, or exact wrapping INT32. The bits do not depend on the instruction set, on
/// the sizes of blocks or on how a product is split over calls along k.
namespace pypto::vm {

/// A matrix in memory. Strides are in elements and may be anything (transposed views, windows of tensors).
struct GemmMatrix {
  const void* data = nullptr;
  DType dtype = DType::kFp32;  ///< FP32, FP16, BF16 (may be mixed), or INT8 for both operands
  int64_t row = 0;             ///< stride between rows
  int64_t col = 0;             ///< stride between columns
};

/// What the accumulator starts from.
enum class GemmStart : uint8_t { kZero, kOld, kBias };

struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  GemmMatrix a;       ///< [m, k]
  GemmMatrix b;       ///< [k, n]
  void* c = nullptr;  ///< [m, n], FP32 or INT32
  int64_t c_row = 0, c_col = 1;
  GemmStart start = GemmStart::kZero;
  const void* bias = nullptr;  ///< [n], for kBias
  int64_t bias_col = 1;
};

/// Runs one product. Operands must not overlap the result.
void gemm(const Gemm& product);

/// Scratch memory of the calling thread, for the kernels; `slot` tells simultaneous uses apart.
void* gemm_workspace(int slot, int64_t bytes);

}  // namespace pypto::vm
