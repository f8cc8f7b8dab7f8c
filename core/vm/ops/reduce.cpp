// SPDX-License-Identifier: Apache-2.0

// Reductions (02 section 15), in the orders of O-307 and O-1505.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

using ir::OpId;

/// Columns of a column reduction that are carried down the rows at a time; they stay in the first-level
/// cache.
constexpr int64_t kColumnStrip = 1024;

/// Result of a reduction over `axis`: extent 1 there, valid as the operand elsewhere. An empty reduced axis
/// is a fault unless no cell would be produced.
View reduced_result(OpCall& call, DType dtype, const View& in, int axis) {
  Extents shape = shape_of(in);
  Extents valid = valid_of(in);
  const bool empty = in.valid[axis] == 0;
  shape[axis] = 1;
  valid[axis] = 1;
  if (empty && valid.product() > 0) {
    fault(call, 0,
          "has no valid cell along dimension " + std::to_string(axis) + " to reduce: its valid shape " +
              list_text(valid_of(in).span()) + " is empty there",
          "skip empty regions with an if, or pl.fillpad the operand first");
  }
  return alloc_result(call, dtype, shape, valid);
}

/// Operand of a reduction with row-major rows of the computing dtype, promoted to rank `least`.
View reduction_operand(OpCall& call, DType compute, int least) {
  const Input in(call, 0, compute);
  View v = in.view();
  v.dtype = compute;
  while (v.rank < least) {
    for (int a = v.rank; a > 0; --a) {
      v.shape[a] = v.shape[a - 1];
      v.valid[a] = v.valid[a - 1];
      v.stride[a] = v.stride[a - 1];
    }
    v.shape[0] = v.valid[0] = 1;
    v.stride[0] = v.shape[1] * v.stride[1];
    ++v.rank;
  }
  return v;
}

/// Strides in bytes.
void byte_strides(const View& v, int64_t* strides) {
  for (int a = 0; a < v.rank; ++a) strides[a] = v.stride[a] * dtype_bytes(v.dtype);
}

/// f(input pointer, output pointer) for every cell of the result, or for every matrix when `by_matrix`.
template <class F>
void for_slices(const View& in, const View& out, bool by_matrix, F f) {
  int64_t extents[kMaxRank] = {};
  for (int a = 0; a < out.rank; ++a) extents[a] = out.valid[a];
  if (by_matrix && extents[out.rank - 1] > 1) extents[out.rank - 1] = 1;
  Walk walk(out.rank, extents);
  int64_t strides[kMaxRank] = {};
  byte_strides(out, strides);
  walk.add(out.data(), strides, dtype_bytes(out.dtype));
  byte_strides(in, strides);
  walk.add(in.data(), strides, dtype_bytes(in.dtype));
  walk.rows([&](uint8_t* const* p, int64_t) { f(p[1], p[0]); });
}

// ------------------------------------------------------------------ along the last axis

template <ReduceOp kOp>
ExecStatus exec_row(OpCall& call) {
  const DType dtype = call.result_dtype();
  const DType compute = compute_dtype(dtype, {call.view(0).dtype});
  const View in = reduction_operand(call, compute, 1);
  const int axis = in.rank - 1;
  const View out = reduced_result(call, dtype, in, axis);
  inherit_reduced(call, 1, out);
  const ReduceKernel kernel = reduce_kernel(kOp, compute);
  PYPTO_CHECK(kernel != nullptr, "no reduction of " + std::string(dtype_text(compute)));
  const auto n = static_cast<size_t>(in.valid[axis]);
  const bool direct = same_dtype(compute, dtype);
  for_slices(in, out, false, [&](const uint8_t* row, uint8_t* cell) {
    if (direct) {
      kernel(row, n, cell);
    } else {
      alignas(8) uint8_t wide[8];
      kernel(row, n, wide);
      cast_row(compute, wide, dtype, cell, 1, CastMode::kRound);
    }
  });
  call.set_result(out);
  return ExecStatus::kDone;
}

template <bool kGreatest>
ExecStatus exec_row_arg(OpCall& call) {
  const DType compute = call.view(0).dtype;
  const View in = reduction_operand(call, compute, 1);
  const int axis = in.rank - 1;
  const View out = reduced_result(call, call.result_dtype(), in, axis);
  inherit_reduced(call, 1, out);
  const auto n = static_cast<size_t>(in.valid[axis]);
  for_slices(in, out, false, [&](const uint8_t* row, uint8_t* cell) {
    write_integer(out.dtype, cell, arg_row(row, n, compute, kGreatest));
  });
  call.set_result(out);
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ down the rows

/// f(strip of the first row, pitch, rows, strip of the result, columns) for every matrix and strip of
/// columns.
template <class F>
void for_column_strips(const View& in, const View& out, F f) {
  const int rows_axis = in.rank - 2;
  const int64_t pitch = in.stride[rows_axis] * dtype_bytes(in.dtype);
  const int64_t rows = in.valid[rows_axis];
  const int64_t columns = out.valid[out.rank - 1];
  const int64_t in_width = dtype_bytes(in.dtype);
  const int64_t out_width = dtype_bytes(out.dtype);
  for_slices(in, out, true, [&](const uint8_t* matrix, uint8_t* result) {
    for (int64_t j = 0; j < columns; j += kColumnStrip) {
      const auto count = static_cast<size_t>(std::min(kColumnStrip, columns - j));
      f(matrix + j * in_width, pitch, rows, result + j * out_width, count);
    }
  });
}

struct ColumnCall {
  View in, out;
};

ColumnCall column_call(OpCall& call, DType compute) {
  ColumnCall c;
  c.in = reduction_operand(call, compute, 2);
  c.out = reduced_result(call, call.result_dtype(), c.in, c.in.rank - 2);
  inherit_reduced(call, 2, c.out);
  return c;
}

/// Rows ascending, each step rounded to the element dtype: sums of O-1505 without scratch, maxima, minima,
/// integer products.
template <BinaryOp kOp>
void reduce_columns(const ColumnCall& c) {
  const DType dtype = c.out.dtype;
  const BinaryKernel kernel = binary_kernel(kOp, dtype, Spread::kNone);
  PYPTO_CHECK(kernel != nullptr, "no reduction of " + std::string(dtype_text(dtype)));
  const auto width = static_cast<size_t>(dtype_bytes(dtype));
  for_column_strips(c.in, c.out,
                    [&](const uint8_t* first, int64_t pitch, int64_t rows, uint8_t* out, size_t n) {
                      std::memcpy(out, first, n * width);
                      for (int64_t i = 1; i < rows; ++i) kernel(out, first + i * pitch, out, n);
                    });
}

template <BinaryOp kOp>
ExecStatus exec_column(OpCall& call) {
  const ColumnCall c = column_call(call, call.result_dtype());
  reduce_columns<kOp>(c);
  call.set_result(c.out);
  return ExecStatus::kDone;
}

/// col_sum: the scratch operand selects the pairwise order (O-1505).
ExecStatus exec_col_sum(OpCall& call) {
  const DType dtype = call.result_dtype();
  const ColumnCall c = column_call(call, dtype);
  if (!call.has(1) || !is_float(dtype)) {
    reduce_columns<BinaryOp::kAdd>(c);
    call.set_result(c.out);
    return ExecStatus::kDone;
  }
  const BinaryKernel add = binary_kernel(BinaryOp::kAdd, dtype, Spread::kNone);
  const int64_t width = dtype_bytes(dtype);
  std::vector<uint8_t> scratch;
  for_column_strips(
      c.in, c.out, [&](const uint8_t* first, int64_t pitch, int64_t rows, uint8_t* out, size_t n) {
        const auto row_bytes = static_cast<int64_t>(n) * width;
        scratch.resize(static_cast<size_t>(std::max<int64_t>(rows, 1) * row_bytes));
        for (int64_t i = 0; i < rows; ++i) {
          std::memcpy(scratch.data() + i * row_bytes, first + i * pitch, static_cast<size_t>(row_bytes));
        }
        auto row = [&](int64_t i) { return scratch.data() + i * row_bytes; };
        for (int64_t left = rows; left > 1; left /= 2) {
          const int64_t half = left / 2;
          for (int64_t k = 0; k < half; ++k) add(row(2 * k), row(2 * k + 1), row(k), n);
          if (left % 2 != 0) add(row(0), row(left - 1), row(0), n);
        }
        std::memcpy(out, scratch.data(), static_cast<size_t>(row_bytes));
      });
  call.set_result(c.out);
  return ExecStatus::kDone;
}

/// col_prod: floats in FP32 from 1, rounded once (O-307); integers wrap.
ExecStatus exec_col_prod(OpCall& call) {
  const DType dtype = call.result_dtype();
  if (!is_float(dtype)) return exec_column<BinaryOp::kMul>(call);
  const ColumnCall c = column_call(call, compute_dtype(dtype, {call.view(0).dtype}));
  const UnaryKernel widen = widen_kernel(c.in.dtype);
  const BinaryKernel multiply = binary_kernel(BinaryOp::kMul, DType::kFp32, Spread::kNone);
  std::vector<float> product(kColumnStrip), row(kColumnStrip);
  for_column_strips(c.in, c.out,
                    [&](const uint8_t* first, int64_t pitch, int64_t rows, uint8_t* out, size_t n) {
                      std::fill(product.begin(), product.end(), 1.0f);
                      for (int64_t i = 0; i < rows; ++i) {
                        widen(first + i * pitch, row.data(), n);
                        multiply(product.data(), row.data(), product.data(), n);
                      }
                      cast_row(DType::kFp32, product.data(), dtype, out, n, CastMode::kRound);
                    });
  call.set_result(c.out);
  return ExecStatus::kDone;
}

template <bool kGreatest>
ExecStatus exec_col_arg(OpCall& call) {
  const DType compute = call.view(0).dtype;
  const ColumnCall c = column_call(call, compute);
  const auto width = static_cast<size_t>(dtype_bytes(compute));
  std::vector<uint8_t> best(kColumnStrip * width);
  std::vector<int32_t> where(kColumnStrip);
  for_column_strips(c.in, c.out,
                    [&](const uint8_t* first, int64_t pitch, int64_t rows, uint8_t* out, size_t n) {
                      std::memcpy(best.data(), first, n * width);
                      std::fill(where.begin(), where.end(), 0);
                      for (int64_t i = 1; i < rows; ++i) {
                        arg_columns(first + i * pitch, best.data(), where.data(), n, compute, kGreatest,
                                    static_cast<int32_t>(i));
                      }
                      cast_row(DType::kInt32, where.data(), c.out.dtype, out, n, CastMode::kRound);
                    });
  call.set_result(c.out);
  return ExecStatus::kDone;
}

}  // namespace

void register_reduce(ExecTable& t) {
  t.set(OpId::k_row_sum, &exec_row<ReduceOp::kSum>);
  t.set(OpId::k_row_prod, &exec_row<ReduceOp::kProd>);
  t.set(OpId::k_row_max, &exec_row<ReduceOp::kMax>);
  t.set(OpId::k_row_min, &exec_row<ReduceOp::kMin>);
  t.set(OpId::k_row_argmax, &exec_row_arg<true>);
  t.set(OpId::k_row_argmin, &exec_row_arg<false>);
  t.set(OpId::k_col_sum, &exec_col_sum);
  t.set(OpId::k_col_max, &exec_column<BinaryOp::kMax>);
  t.set(OpId::k_col_min, &exec_column<BinaryOp::kMin>);
  t.set(OpId::k_col_prod, &exec_col_prod);
  t.set(OpId::k_col_argmax, &exec_col_arg<true>);
  t.set(OpId::k_col_argmin, &exec_col_arg<false>);
}

}  // namespace pypto::vm
