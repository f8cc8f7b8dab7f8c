// SPDX-License-Identifier: Apache-2.0
// Block-scaled (MX) matrix products (02 O-1810).
#include <bit>
#include <cmath>
#include <vector>

#include "core/base/numeric.h"
#include "core/vm/kernels/gemm.h"
#include "core/vm/ops/matmul.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

using ir::OpId;

/// One data element times 2^(scale - 127) of its group of 32.
struct MxMatrix {
  std::vector<double> values;  ///< row-major, exact
  int64_t cols = 0;
};

/// `groups_along_rows`: the scale's group axis is the second axis of the data (left operand).
MxMatrix scaled(const View& data, const View& scale, int64_t rows, int64_t cols, bool groups_along_rows) {
  MxMatrix out;
  out.cols = cols;
  out.values.resize(static_cast<size_t>(rows * cols));
  const int64_t size = dtype_bytes(data.dtype);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t si = groups_along_rows ? i : i / 32, sj = groups_along_rows ? j / 32 : j;
      const uint8_t code = scale.data()[si * scale.stride[0] + sj * scale.stride[1]];
      const double x = read_float(data.dtype, data.data() + (i * data.stride[0] + j * data.stride[1]) * size);
      out.values[static_cast<size_t>(i * cols + j)] =
          code == 0xff ? std::nan("") : std::ldexp(x, static_cast<int>(code) - 127);
    }
  }
  return out;
}

bool exact_in_fp32(const MxMatrix& m, std::vector<float>* out) {
  out->resize(m.values.size());
  for (size_t i = 0; i < m.values.size(); ++i) {
    (*out)[i] = static_cast<float>(m.values[i]);
    if (static_cast<double>((*out)[i]) != m.values[i]) return false;  // NaN too
  }
  return true;
}

/// (float)(product + c) with one rounding; the product is exact.
float add_exact(double product, float c) {
  const double wide = c;
  const double sum = product + wide;
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double part = sum - product;
  const double error = (product - (sum - part)) + (wide - part);
  auto bits = std::bit_cast<int64_t>(sum);
  if (error != 0 && (bits & 1) == 0)
    bits += std::signbit(error) == std::signbit(sum) ? 1 : -1;  // round to odd
  return static_cast<float>(std::bit_cast<double>(bits));
}

void mx_product(OpCall& call, int first, const View& out, GemmStart start, const View* bias) {
  const View& a = read_operand(call, first);
  const View& a_scale = read_operand(call, first + 1);
  const View& b = read_operand(call, first + 2);
  const View& b_scale = read_operand(call, first + 3);
  const int64_t m = a.valid[0], k = a.valid[1], n = b.valid[1];
  if (b.valid[0] < k) {
    fault(call, first + 2,
          "is valid for " + std::to_string(b.valid[0]) + " rows, the left operand for " + std::to_string(k) +
              " columns of the contraction");
  }
  const MxMatrix left = scaled(a, a_scale, m, k, true), right = scaled(b, b_scale, k, n, false);
  std::vector<float> left32, right32;
  Gemm g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.c = out.data();
  g.c_row = out.stride[out.rank - 2];
  g.c_col = out.stride[out.rank - 1];
  g.start = start;
  if (bias) {
    g.bias = bias->data();
    g.bias_col = bias->stride[bias->rank - 1];
  }
  if (exact_in_fp32(left, &left32) && exact_in_fp32(right, &right32)) {
    g.a = {left32.data(), DType::kFp32, k, 1};
    g.b = {right32.data(), DType::kFp32, n, 1};
    gemm(g);
    return;
  }
  // Scales beyond FP32's range: the products are still exact in double.
  auto* c = static_cast<float*>(g.c);
  const auto* bias_data = static_cast<const float*>(g.bias);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float& cell = c[i * g.c_row + j * g.c_col];
      float sum = start == GemmStart::kZero   ? 0.0f
                  : start == GemmStart::kBias ? bias_data[j * g.bias_col]
                                              : cell;
      for (int64_t p = 0; p < k; ++p) {
        sum = add_exact(
            left.values[static_cast<size_t>(i * k + p)] * right.values[static_cast<size_t>(p * n + j)], sum);
      }
      cell = sum;
    }
  }
}

ExecStatus mx_result(OpCall& call, int bias_param) {
  const View& a = call.view(0);
  const View& b = call.view(2);
  View out = alloc_result(call, DType::kFp32, {a.shape[0], b.shape[1]}, {a.valid[0], b.valid[1]});
  if (bias_param < 0) {
    mx_product(call, 0, out, GemmStart::kZero, nullptr);
  } else {
    const View bias = as_packed(call, read_operand(call, bias_param), DType::kFp32);
    mx_product(call, 0, out, GemmStart::kBias, &bias);
  }
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_matmul_mx(OpCall& call) { return mx_result(call, -1); }
ExecStatus exec_matmul_mx_bias(OpCall& call) { return mx_result(call, 4); }

ExecStatus exec_matmul_mx_acc(OpCall& call) {
  const View& acc = call.view(0);
  View region = acc;
  region.valid[acc.rank - 2] = call.view(1).valid[0];
  region.valid[acc.rank - 1] = call.view(3).valid[1];
  region.refresh_fully_valid();
  const bool rests = !acc.buffer->written.all && !specified(region);
  if (rests) warn_unwritten(call, region);
  touch(call, region, AccessKind::kRead);
  touch(call, region, AccessKind::kWrite);
  mx_product(call, 1, acc, GemmStart::kOld, nullptr);
  if (!rests) mark_written(region);
  call.set_result(acc);
  return ExecStatus::kDone;
}

}  // namespace

void register_matmul_mx(ExecTable& table) {
  table.set(OpId::k_matmul_mx, exec_matmul_mx);
  table.set(OpId::k_matmul_mx_acc, exec_matmul_mx_acc);
  table.set(OpId::k_matmul_mx_bias, exec_matmul_mx_bias);
}

}  // namespace pypto::vm
