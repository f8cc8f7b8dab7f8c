// SPDX-License-Identifier: Apache-2.0

// Every element-wise executor x dtype x valid region x operand layout x instruction set against the scalar
// definitions (02 O-210, O-303, O-305, O-311, O-901).
#include <cmath>

#include "core/vm/kernels/reference.h"
#include "tests/core/kernels_support.h"

namespace pypto::vm {
namespace {

using namespace testing;
using ir::OpId;

constexpr int64_t kRows = 5, kColumns = 19;
const std::vector<std::vector<int64_t>> kRegions = {{5, 19}, {3, 7}, {5, 16}, {1, 1}, {0, 4}, {5, 0}};

View random_view(DType dtype, std::vector<int64_t> shape, uint32_t seed, bool nan = false) {
  View v = make_view(dtype, shape, {0});
  const auto bytes = random_elements(dtype, static_cast<size_t>(v.elements()), seed, nan);
  std::memcpy(v.data(), bytes.data(), bytes.size());
  return v;
}

/// Shift counts, and divisors that are not 0 or -1.
void tame(View& v, bool shift) {
  const int64_t width = dtype_bytes(v.dtype);
  for (int64_t i = 0; i < v.elements(); ++i) {
    if (shift) write_integer(v.dtype, v.data() + i * width, i % 70);
    if (!shift && !is_float(v.dtype)) write_integer(v.dtype, v.data() + i * width, 2 + i % 90);
  }
}

const uint8_t* cell(const View& v, int64_t i, int64_t j) {
  const int64_t r = v.shape[0] == 1 ? 0 : i, c = v.shape[1] == 1 ? 0 : j;
  return v.data() + (r * v.stride[0] + c * v.stride[1]) * dtype_bytes(v.dtype);
}

void expect_cell(DType dtype, const uint8_t* got, const uint8_t* want, double ulps,
                 const std::string& where) {
  if (is_float(dtype)) {
    const double g = read_float(dtype, got), w = read_float(dtype, want);
    if (std::isnan(w)) {
      ASSERT_TRUE(std::isnan(g)) << where;
      return;
    }
    if (ulps > 0 && std::isfinite(w)) {
      const double step = std::ldexp(std::fabs(w), dtype == DType::kFp32   ? -23
                                                   : dtype == DType::kFp16 ? -10
                                                                           : -7);
      ASSERT_LE(std::fabs(g - w), ulps * step + 1e-37) << where;
      return;
    }
    ASSERT_EQ(g, w) << where;
    return;
  }
  ASSERT_EQ(read_integer(dtype, got), read_integer(dtype, want)) << where;
}

struct BinaryCase {
  OpId op;
  BinaryOp kernel;
};

TEST(KernelsSweep, Binary) {
  for_each_target([] {
    const std::vector<BinaryCase> cases = {{OpId::k_add, BinaryOp::kAdd},
                                           {OpId::k_sub, BinaryOp::kSub},
                                           {OpId::k_mul, BinaryOp::kMul},
                                           {OpId::k_div, BinaryOp::kDiv},
                                           {OpId::k_maximum, BinaryOp::kMax},
                                           {OpId::k_minimum, BinaryOp::kMin},
                                           {OpId::k_fmod, BinaryOp::kFmod},
                                           {OpId::k_rem, BinaryOp::kRem},
                                           {OpId::k_and_, BinaryOp::kAnd},
                                           {OpId::k_or_, BinaryOp::kOr},
                                           {OpId::k_xor, BinaryOp::kXor},
                                           {OpId::k_shl, BinaryOp::kShl},
                                           {OpId::k_shr, BinaryOp::kShr},
                                           {OpId::k_row_expand_add, BinaryOp::kAdd},
                                           {OpId::k_row_expand_sub, BinaryOp::kSub},
                                           {OpId::k_row_expand_mul, BinaryOp::kMul},
                                           {OpId::k_row_expand_div, BinaryOp::kDiv},
                                           {OpId::k_row_expand_max, BinaryOp::kMax},
                                           {OpId::k_row_expand_min, BinaryOp::kMin},
                                           {OpId::k_col_expand_add, BinaryOp::kAdd},
                                           {OpId::k_col_expand_sub, BinaryOp::kSub},
                                           {OpId::k_col_expand_mul, BinaryOp::kMul},
                                           {OpId::k_col_expand_div, BinaryOp::kDiv},
                                           {OpId::k_col_expand_max, BinaryOp::kMax},
                                           {OpId::k_col_expand_min, BinaryOp::kMin},
                                           {OpId::k_part_add, BinaryOp::kAdd},
                                           {OpId::k_part_mul, BinaryOp::kMul},
                                           {OpId::k_part_max, BinaryOp::kMax},
                                           {OpId::k_part_min, BinaryOp::kMin},
                                           {OpId::k_prelu, BinaryOp::kLeaky}};
    for (const BinaryCase& c : cases) {
      const std::string name = ir::op_row(c.op).name;
      const bool rows = name.rfind("row_", 0) == 0, columns = name.rfind("col_", 0) == 0;
      const bool bits = c.kernel >= BinaryOp::kAnd && c.kernel <= BinaryOp::kShr;
      for (const DType dtype : arithmetic_dtypes()) {
        if (is_float(dtype) ? bits : c.kernel == BinaryOp::kLeaky) continue;
        for (const auto& region : kRegions) {
          for (int layout = 0; layout < 3; ++layout) {
            View a = random_view(dtype, {kRows, kColumns}, 1);
            View b = random_view(dtype, {columns ? 1 : kRows, rows ? 1 : kColumns}, 2);
            const bool shift = c.kernel == BinaryOp::kShl || c.kernel == BinaryOp::kShr;
            if (shift || c.kernel == BinaryOp::kDiv || c.kernel == BinaryOp::kFmod ||
                c.kernel == BinaryOp::kRem)
              tame(b, shift);
            if (layout == 1) a = with_stride(a, 2);
            if (layout == 2) b = with_stride(b, 3);
            a = with_valid(a, region);
            FakeCall call(c.op, dtype);
            const View out = call.arg(0, a).arg(1, b).run();
            EXPECT_TRUE(call.warnings.empty());
            ASSERT_EQ(valid_list(out), region);
            ASSERT_EQ(shape_list(out), (std::vector<int64_t>{kRows, kColumns}));
            for (int64_t i = 0; i < region[0]; ++i) {
              for (int64_t j = 0; j < region[1]; ++j) {
                alignas(8) uint8_t want[8];
                reference::binary(c.kernel, dtype, cell(a, i, j), cell(b, i, j), want);
                expect_cell(
                    dtype, cell(out, i, j), want, 0,
                    name + " " + std::string(dtype_text(dtype)) + " layout " + std::to_string(layout));
              }
            }
          }
        }
      }
    }
  });
}

TEST(KernelsSweep, BinaryWithScalar) {
  for_each_target([] {
    const std::vector<BinaryCase> cases = {
        {OpId::k_adds, BinaryOp::kAdd},     {OpId::k_subs, BinaryOp::kSub},
        {OpId::k_muls, BinaryOp::kMul},     {OpId::k_divs, BinaryOp::kDiv},
        {OpId::k_maximums, BinaryOp::kMax}, {OpId::k_minimums, BinaryOp::kMin},
        {OpId::k_fmods, BinaryOp::kFmod},   {OpId::k_rems, BinaryOp::kRem},
        {OpId::k_ands, BinaryOp::kAnd},     {OpId::k_ors, BinaryOp::kOr},
        {OpId::k_xors, BinaryOp::kXor},     {OpId::k_shls, BinaryOp::kShl},
        {OpId::k_shrs, BinaryOp::kShr},     {OpId::k_lrelu, BinaryOp::kLeaky}};
    for (const BinaryCase& c : cases) {
      const bool bits = c.kernel >= BinaryOp::kAnd && c.kernel <= BinaryOp::kShr;
      for (const DType dtype : arithmetic_dtypes()) {
        if (is_float(dtype) ? bits : c.kernel == BinaryOp::kLeaky) continue;
        for (const auto& region : kRegions) {
          const View a = with_valid(random_view(dtype, {kRows, kColumns}, 3), region);
          alignas(8) uint8_t element[8];
          put(dtype, element, 3);
          FakeCall call(c.op, dtype);
          call.arg(0, a).arg(1, is_float(dtype) ? scalar_of(3.0) : scalar_of(int64_t{3}), dtype);
          const View out = call.run();
          ASSERT_EQ(valid_list(out), region);
          for (int64_t i = 0; i < region[0]; ++i) {
            for (int64_t j = 0; j < region[1]; ++j) {
              alignas(8) uint8_t want[8];
              reference::binary(c.kernel, dtype, cell(a, i, j), element, want);
              expect_cell(dtype, cell(out, i, j), want, 0,
                          std::string(ir::op_row(c.op).name) + " " + std::string(dtype_text(dtype)));
            }
          }
        }
      }
    }
  });
}

TEST(KernelsSweep, Unary) {
  for_each_target([] {
    struct Case {
      OpId op;
      UnaryOp kernel;
      bool integers;
    };
    for (const Case c :
         {Case{OpId::k_neg, UnaryOp::kNeg, true}, Case{OpId::k_abs, UnaryOp::kAbs, true},
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) Case{OpId::k_##id, UnaryOp::k##Name, false},
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
          Case{OpId::k_log, UnaryOp::kLog, false}, Case{OpId::k_rsqrt, UnaryOp::kRsqrt, false},
          Case{OpId::k_tile_rsqrt, UnaryOp::kRsqrt, false}, Case{OpId::k_recip, UnaryOp::kRecip, false},
          Case{OpId::k_relu, UnaryOp::kRelu, true}, Case{OpId::k_not_, UnaryOp::kNot, true}}) {
      for (const DType dtype : arithmetic_dtypes()) {
        if (c.kernel == UnaryOp::kNot ? is_float(dtype) : !is_float(dtype) && !c.integers) continue;
        for (const auto& region : kRegions) {
          for (const int64_t stride : {1, 2}) {
            View a = random_view(dtype, {kRows, kColumns}, 4, true);
            if (stride != 1) a = with_stride(a, stride);
            a = with_valid(a, region);
            const View out = FakeCall(c.op, dtype).arg(0, a).run();
            ASSERT_EQ(valid_list(out), region);
            for (int64_t i = 0; i < region[0]; ++i) {
              for (int64_t j = 0; j < region[1]; ++j) {
                alignas(8) uint8_t want[8];
                reference::unary(c.kernel, dtype, cell(a, i, j), want);
                expect_cell(dtype, cell(out, i, j), want, dtype == DType::kFp32 ? 4 : 1,
                            std::string(ir::op_row(c.op).name) + " " + std::string(dtype_text(dtype)));
              }
            }
          }
        }
      }
    }
  });
}

// Section 15 over dtypes and regions; 16-bit sums of columns by O-1505.
TEST(KernelsSweep, Reductions) {
  for_each_target([] {
    struct Case {
      OpId row, column;
      ReduceOp op;
      BinaryOp step;
    };
    for (const Case c : {Case{OpId::k_row_sum, OpId::k_col_sum, ReduceOp::kSum, BinaryOp::kAdd},
                         Case{OpId::k_row_max, OpId::k_col_max, ReduceOp::kMax, BinaryOp::kMax},
                         Case{OpId::k_row_min, OpId::k_col_min, ReduceOp::kMin, BinaryOp::kMin}}) {
      for (const DType dtype : arithmetic_dtypes()) {
        for (const auto& region : kRegions) {
          if (region[0] == 0 || region[1] == 0) continue;
          View a = random_view(dtype, {kRows, kColumns}, 5);
          if (is_float(dtype)) {
            for (int64_t i = 0; i < a.elements(); ++i) {
              write_float(dtype, a.data() + i * dtype_bytes(dtype),
                          std::sin(static_cast<double>(i * 3 + 1)) * 90);
            }
          }
          a = with_valid(a, region);
          const View rows = FakeCall(c.row, dtype).arg(0, a).run();
          const View columns = FakeCall(c.column, dtype).arg(0, a).run();
          ASSERT_EQ(valid_list(rows), (std::vector<int64_t>{region[0], 1}));
          ASSERT_EQ(valid_list(columns), (std::vector<int64_t>{1, region[1]}));
          for (int64_t i = 0; i < region[0]; ++i) {
            alignas(8) uint8_t want[8];
            reference::reduce(c.op, dtype, cell(a, i, 0), static_cast<size_t>(region[1]), want);
            expect_cell(dtype, cell(rows, i, 0), want, 0, ir::op_row(c.row).name);
          }
          for (int64_t j = 0; j < region[1]; ++j) {
            alignas(8) uint8_t want[8];
            std::memcpy(want, cell(a, 0, j), static_cast<size_t>(dtype_bytes(dtype)));
            for (int64_t i = 1; i < region[0]; ++i)
              reference::binary(c.step, dtype, want, cell(a, i, j), want);
            expect_cell(dtype, cell(columns, 0, j), want, 0, ir::op_row(c.column).name);
          }
        }
      }
    }
    for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kInt16, DType::kInt32}) {
      for (const auto& region : kRegions) {
        if (region[0] == 0 || region[1] == 0) continue;
        const View a = with_valid(random_view(dtype, {kRows, kColumns}, 6), region);
        const View top = FakeCall(OpId::k_row_argmax, DType::kInt32).arg(0, a).run();
        const View low = FakeCall(OpId::k_row_argmin, DType::kInt32).arg(0, a).run();
        for (int64_t i = 0; i < region[0]; ++i) {
          EXPECT_EQ(read_integer(DType::kInt32, cell(top, i, 0)),
                    reference::arg(dtype, cell(a, i, 0), static_cast<size_t>(region[1]), true));
          EXPECT_EQ(read_integer(DType::kInt32, cell(low, i, 0)),
                    reference::arg(dtype, cell(a, i, 0), static_cast<size_t>(region[1]), false));
        }
      }
    }
  });
}

}  // namespace
}  // namespace pypto::vm
