// SPDX-License-Identifier: Apache-2.0

// Executors of chapter 02 sections 9, 10, 12, 13, 14 and 16: shapes, valid regions, broadcasting, strides,
// scalars.
#include <cmath>
#include <functional>

#include "tests/core/kernels_support.h"

namespace pypto::vm {
namespace {

using namespace testing;
using ir::AttrKey;
using ir::OpId;

std::vector<double> ramp(int64_t n, double start, double step) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(start + step * static_cast<double>(i));
  return out;
}

// O-902, B-1: every broadcast form keeps operand order.
TEST(KernelsElementwise, BroadcastKeepsOrder) {
  const View m = make_view(DType::kFp32, {3, 5}, ramp(15, 1, 1.5));
  const View column = make_view(DType::kFp32, {3, 1}, {10, 20, 30});
  const View row = make_view(DType::kFp32, {1, 5}, {1, 2, 3, 4, 5});
  const View one = make_view(DType::kFp32, {1, 1}, {7});
  const std::vector<double> a = cells(m);
  auto expect = [&](const View& x, const View& y, std::function<double(int, int)> f) {
    const View out = FakeCall(OpId::k_sub, DType::kFp32).arg(0, x).arg(1, y).run();
    EXPECT_EQ(shape_list(out), (std::vector<int64_t>{3, 5}));
    const auto got = cells(out);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 5; ++j) EXPECT_EQ(got[static_cast<size_t>(i * 5 + j)], f(i, j)) << i << ", " << j;
    }
  };
  auto at = [&](int i, int j) { return a[static_cast<size_t>(i * 5 + j)]; };
  expect(m, column, [&](int i, int j) { return at(i, j) - 10 * (i + 1); });
  expect(column, m, [&](int i, int j) { return 10 * (i + 1) - at(i, j); });
  expect(m, row, [&](int i, int j) { return at(i, j) - (j + 1); });
  expect(row, m, [&](int i, int j) { return (j + 1) - at(i, j); });
  expect(m, one, [&](int i, int j) { return at(i, j) - 7; });
  expect(one, m, [&](int i, int j) { return 7 - at(i, j); });
  expect(column, row, [&](int i, int j) { return 10 * (i + 1) - (j + 1); });
  expect(row, column, [&](int i, int j) { return (j + 1) - 10 * (i + 1); });
}

// O-901: rank 4 with repeated inner and outer axes.
TEST(KernelsElementwise, BroadcastHighRank) {
  const View a = make_view(DType::kInt32, {2, 1, 3, 4}, ramp(24, 0, 1));
  const View b = make_view(DType::kInt32, {5, 1, 4}, ramp(20, 100, 10));
  const View out = FakeCall(OpId::k_add, DType::kInt32).arg(0, a).arg(1, b).run();
  ASSERT_EQ(shape_list(out), (std::vector<int64_t>{2, 5, 3, 4}));
  const auto got = cells(out);
  size_t at = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < 4; ++l) {
          EXPECT_EQ(got[at++], (i * 12 + k * 4 + l) + (100 + 10 * (j * 4 + l)));
        }
}

// O-210: valid of the first operand; raw cells of a later one are used.
TEST(KernelsElementwise, ValidOfFirstOperand) {
  const View a = with_valid(make_view(DType::kFp32, {4, 8}, ramp(32, 0, 1)), {3, 5});
  const View b = with_valid(make_view(DType::kFp32, {4, 8}, ramp(32, 100, 1)), {2, 8});
  const View out = FakeCall(OpId::k_add, DType::kFp32).arg(0, a).arg(1, b).run();
  EXPECT_EQ(valid_list(out), (std::vector<int64_t>{3, 5}));
  EXPECT_FALSE(out.fully_valid);
  const auto got = cells(out);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) EXPECT_EQ(got[static_cast<size_t>(i * 5 + j)], 100 + 2 * (i * 8 + j));
  EXPECT_EQ(out.as<float>()[7], 0.0f) << "cells outside the valid region are zero (O-209)";
  const View column = with_valid(make_view(DType::kFp32, {4, 1}, {1, 2, 3, 4}), {2, 1});
  const View spread = FakeCall(OpId::k_mul, DType::kFp32).arg(0, column).arg(1, b).run();
  EXPECT_EQ(valid_list(spread), (std::vector<int64_t>{2, 8}));
}

// O-210: empty valid regions do nothing.
TEST(KernelsElementwise, EmptyValidRegion) {
  const View a = with_valid(make_view(DType::kFp16, {4, 8}, ramp(32, 0, 1)), {0, 5});
  const View out = FakeCall(OpId::k_exp, DType::kFp16).arg(0, a).run();
  EXPECT_EQ(valid_list(out), (std::vector<int64_t>{0, 5}));
  const View one = make_view(DType::kFp32, {1, 1}, {4});
  EXPECT_EQ(cells(FakeCall(OpId::k_sqrt, DType::kFp32).arg(0, one).run()), (std::vector<double>{2}));
}

// 02 O-205: views whose last axis is not contiguous, and column windows of a wider array.
TEST(KernelsElementwise, StridedOperands) {
  const View a = with_stride(make_view(DType::kInt16, {3, 7}, ramp(21, -10, 1)), 3);
  const View b = make_view(DType::kInt16, {3, 7}, ramp(21, 5, 2));
  const auto plain = cells(FakeCall(OpId::k_sub, DType::kInt16)
                               .arg(0, make_view(DType::kInt16, {3, 7}, ramp(21, -10, 1)))
                               .arg(1, b)
                               .run());
  EXPECT_EQ(cells(FakeCall(OpId::k_sub, DType::kInt16).arg(0, a).arg(1, b).run()), plain);
  View column = make_view(DType::kFp32, {4, 6}, ramp(24, 0, 1));
  column.shape[1] = column.valid[1] = 1;
  column.offset = 2 * 4;
  EXPECT_EQ(cells(FakeCall(OpId::k_neg, DType::kFp32).arg(0, column).run()),
            (std::vector<double>{-2, -8, -14, -20}));
  const View m = make_view(DType::kFp32, {4, 3}, ramp(12, 0, 1));
  EXPECT_EQ(cells(FakeCall(OpId::k_row_expand_add, DType::kFp32).arg(0, m).arg(1, column).run()),
            (std::vector<double>{2, 3, 4, 11, 12, 13, 20, 21, 22, 29, 30, 31}));
}

// O-120 - O-123, O-905, B-2: scalars.
TEST(KernelsElementwise, Scalars) {
  const View a = make_view(DType::kInt32, {2, 3}, {1, 2, 3, -4, 5, 6});
  EXPECT_EQ(
      cells(
          FakeCall(OpId::k_mul, DType::kInt32).arg(0, a).arg(1, scalar_of(int64_t{2}), DType::kInt32).run()),
      (std::vector<double>{2, 4, 6, -8, 10, 12}));
  EXPECT_EQ(cells(FakeCall(OpId::k_mul, DType::kFp32).arg(0, a).arg(1, scalar_of(2.5), DType::kFp32).run()),
            (std::vector<double>{2.5, 5, 7.5, -10, 12.5, 15}));
  // Tile form keeps INT32: the scalar truncates toward zero (O-304).
  EXPECT_EQ(
      cells(FakeCall(OpId::k_muls, DType::kInt32).arg(0, a).arg(1, scalar_of(-2.9), DType::kFp32).run()),
      (std::vector<double>{-2, -4, -6, 8, -10, -12}));
  FakeCall big(OpId::k_adds, DType::kInt8);
  big.arg(0, make_view(DType::kInt8, {1, 2}, {1, 2})).arg(1, scalar_of(300.7), DType::kFp32);
  EXPECT_EQ(cells(big.run()), (std::vector<double>{45, 46}));  // 300 keeps its low bits: 44 (O-1104)
  ASSERT_EQ(big.warnings.size(), 1u);
  EXPECT_NE(big.warnings[0].find("W-NUMERIC"), std::string::npos);
}

// O-301: operands of different dtypes are brought to the promoted one.
TEST(KernelsElementwise, Promotion) {
  const View i = make_view(DType::kInt32, {1, 3}, {1, 2, 3});
  const View f = make_view(DType::kFp16, {1, 3}, {0.5, 0.25, -1});
  EXPECT_EQ(cells(FakeCall(OpId::k_add, DType::kFp16).arg(0, i).arg(1, f).run()),
            (std::vector<double>{1.5, 2.25, 2}));
  const View s = make_view(DType::kInt8, {1, 3}, {-1, -2, 127});
  EXPECT_EQ(cells(FakeCall(OpId::k_add, DType::kInt32).arg(0, s).arg(1, i).run()),
            (std::vector<double>{0, 0, 130}));
}

// O-1802, O-303: a wider accumulator operand is rounded once, after the operation.
TEST(KernelsElementwise, AccumulatorRoundsOnce) {
  const View acc = make_view(DType::kFp32, {1, 1}, {1.0 + 1.0 / 4096});  // not representable in FP16
  const View h = make_view(DType::kFp16, {1, 1}, {1.0 + 1.0 / 1024});
  // Exact sum 2 + 5/4096; FP16 spacing at 2 is 2/1024 = 8/4096, so the tie-free nearest is 2 + 8/4096.
  EXPECT_EQ(cells(FakeCall(OpId::k_add, DType::kFp16).arg(0, acc).arg(1, h).run())[0], 2.0 + 8.0 / 4096);
}

// O-303: 16-bit results round once per operation.
TEST(KernelsElementwise, SixteenBitRounding) {
  const View a = make_view(DType::kBf16, {1, 2}, {1.0, 256.0});
  const View b = make_view(DType::kBf16, {1, 2}, {1.0 / 256, 1.0});
  // 1 + 1/256 is a tie between 1 and 1 + 1/128 (to even: 1); 257 lies between 256 and 258 (to even: 256).
  EXPECT_EQ(cells(FakeCall(OpId::k_add, DType::kBf16).arg(0, a).arg(1, b).run()),
            (std::vector<double>{1.0, 256.0}));
}

// O-305, O-306: wrapping, truncating division, warnings with the cell.
TEST(KernelsElementwise, IntegerArithmetic) {
  const View a = make_view(DType::kInt16, {2, 3}, {32767, -7, 7, -32768, 5, 9});
  const View b = make_view(DType::kInt16, {2, 3}, {1, 2, -2, -1, 0, 4});
  EXPECT_EQ(cells(FakeCall(OpId::k_add, DType::kInt16).arg(0, a).arg(1, b).run())[0], -32768);
  FakeCall div(OpId::k_div, DType::kInt16);
  const auto q = cells(div.arg(0, a).arg(1, b).run());
  EXPECT_EQ(q[1], -3);
  EXPECT_EQ(q[2], -3);
  EXPECT_EQ(q[5], 2);
  ASSERT_EQ(div.warnings.size(), 1u);
  EXPECT_NE(div.warnings[0].find("div: cell [1, 0]"), std::string::npos) << div.warnings[0];
  // O-906: fmod has the sign of the dividend, rem that of the divisor.
  EXPECT_EQ(cells(FakeCall(OpId::k_fmod, DType::kInt16).arg(0, a).arg(1, b).run())[1], -1);
  EXPECT_EQ(cells(FakeCall(OpId::k_rem, DType::kInt16).arg(0, a).arg(1, b).run())[1], 1);
  EXPECT_EQ(cells(FakeCall(OpId::k_rem, DType::kInt16).arg(0, a).arg(1, b).run())[2], -1);
  const View x = make_view(DType::kFp32, {1, 4}, {-7.5, 7.5, 7.5, 1});
  const View y = make_view(DType::kFp32, {1, 4}, {2, -2, 2, 0});
  const auto m = cells(FakeCall(OpId::k_fmod, DType::kFp32).arg(0, x).arg(1, y).run());
  EXPECT_EQ(m[0], -1.5);
  EXPECT_EQ(m[1], 1.5);
  EXPECT_TRUE(std::isnan(m[3]));
  const auto r = cells(FakeCall(OpId::k_rem, DType::kFp32).arg(0, x).arg(1, y).run());
  EXPECT_EQ(r[0], 0.5);
  EXPECT_EQ(r[1], -0.5);
  EXPECT_EQ(r[2], 1.5);
  EXPECT_TRUE(std::isnan(r[3]));
  const auto z = cells(FakeCall(OpId::k_div, DType::kFp32)
                           .arg(0, x)
                           .arg(1, make_view(DType::kFp32, {1, 4}, {0, 0, 1, 1}))
                           .run());
  EXPECT_EQ(z[0], -INFINITY);
  EXPECT_EQ(z[1], INFINITY);
}

// O-1203
TEST(KernelsElementwise, Shifts) {
  const View a = make_view(DType::kInt8, {1, 5}, {-128, -1, 64, 3, 1});
  const View n = make_view(DType::kInt8, {1, 5}, {1, 9, 1, 8, 7});
  EXPECT_EQ(cells(FakeCall(OpId::k_shr, DType::kInt8).arg(0, a).arg(1, n).run()),
            (std::vector<double>{-64, -1, 32, 0, 0}));
  EXPECT_EQ(cells(FakeCall(OpId::k_shl, DType::kInt8).arg(0, a).arg(1, n).run()),
            (std::vector<double>{0, 0, -128, 0, -128}));
  const View u = make_view(DType::kUInt16, {1, 2}, {0x8000, 0xffff});
  EXPECT_EQ(cells(FakeCall(OpId::k_shrs, DType::kUInt16)
                      .arg(0, u)
                      .arg(1, scalar_of(int64_t{15}), DType::kUInt16)
                      .run()),
            (std::vector<double>{1, 1}));
  FakeCall negative(OpId::k_shls, DType::kInt32);
  negative.arg(0, make_view(DType::kInt32, {1, 2}, {1, 2}))
      .arg(1, scalar_of(int64_t{-1}), DType::kInt32)
      .run();
  ASSERT_EQ(negative.warnings.size(), 1u);
}

// Section 12
TEST(KernelsElementwise, Bitwise) {
  const View a = make_view(DType::kUInt16, {1, 3}, {0xff00, 0x0ff0, 1});
  const View b = make_view(DType::kUInt16, {1, 3}, {0x0f0f, 0x00ff, 3});
  EXPECT_EQ(cells(FakeCall(OpId::k_and_, DType::kUInt16).arg(0, a).arg(1, b).run()),
            (std::vector<double>{0x0f00, 0x00f0, 1}));
  EXPECT_EQ(cells(FakeCall(OpId::k_or_, DType::kUInt16).arg(0, a).arg(1, b).run()),
            (std::vector<double>{0xff0f, 0x0fff, 3}));
  EXPECT_EQ(cells(FakeCall(OpId::k_xor, DType::kUInt16).arg(0, a).arg(1, b).run()),
            (std::vector<double>{0xf00f, 0x0f0f, 2}));
  EXPECT_EQ(cells(FakeCall(OpId::k_not_, DType::kUInt16).arg(0, a).run()),
            (std::vector<double>{0x00ff, 0xf00f, 0xfffe}));
}

// O-1001: integer tensors become FP32.
TEST(KernelsElementwise, UnaryOnIntegers) {
  const View a = make_view(DType::kInt32, {1, 3}, {4, 16, 1});
  EXPECT_EQ(cells(FakeCall(OpId::k_sqrt, DType::kFp32).arg(0, a).run()), (std::vector<double>{2, 4, 1}));
  EXPECT_EQ(cells(FakeCall(OpId::k_rsqrt, DType::kFp32).arg(0, a).run()),
            (std::vector<double>{0.5, 0.25, 1}));
  FakeCall recip(OpId::k_recip, DType::kInt32);
  EXPECT_EQ(cells(recip.arg(0, make_view(DType::kInt32, {1, 4}, {1, -1, 2, 0})).run()),
            (std::vector<double>{1, -1, 0, 0}));
  EXPECT_EQ(recip.warnings.size(), 1u);
  EXPECT_EQ(
      cells(FakeCall(OpId::k_abs, DType::kInt8).arg(0, make_view(DType::kInt8, {1, 2}, {-128, -5})).run()),
      (std::vector<double>{-128, 5}));
}

// Section 14
TEST(KernelsElementwise, Activations) {
  const View x = make_view(DType::kFp16, {1, 4}, {-2, 0, 0.5, -1});
  EXPECT_EQ(cells(FakeCall(OpId::k_relu, DType::kFp16).arg(0, x).run()), (std::vector<double>{0, 0, 0.5, 0}));
  EXPECT_EQ(
      cells(FakeCall(OpId::k_lrelu, DType::kFp16).arg(0, x).arg(1, scalar_of(0.25), DType::kFp16).run()),
      (std::vector<double>{-0.5, 0, 0.5, -0.25}));
  const View slope = make_view(DType::kFp16, {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(cells(FakeCall(OpId::k_prelu, DType::kFp16).arg(0, x).arg(1, slope).run()),
            (std::vector<double>{-2, 0, 0.5, -4}));
}

// O-1402, B-34
TEST(KernelsElementwise, PartialOperands) {
  const View a = with_valid(make_view(DType::kFp32, {3, 4}, ramp(12, 1, 1)), {3, 2});
  const View b = with_valid(make_view(DType::kFp32, {3, 4}, ramp(12, 100, 1)), {1, 4});
  const View out = FakeCall(OpId::k_part_add, DType::kFp32).arg(0, a).arg(1, b).run();
  EXPECT_EQ(valid_list(out), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(cells(out), (std::vector<double>{101, 103, 5, 6, 9, 10}));
  const View all = with_valid(out, {3, 4});
  EXPECT_EQ(cells(all), (std::vector<double>{101, 103, 102, 103, 5, 6, 0, 0, 9, 10, 0, 0}));
}

// O-1403: left to right with one rounding per step.
TEST(KernelsElementwise, ThreeInputs) {
  const View a = make_view(DType::kBf16, {2, 1}, {256, 256});
  const View b = make_view(DType::kBf16, {2, 2}, {1, 1, 1, 1});
  const View c = make_view(DType::kBf16, {1, 2}, {1, 2});
  // 256 + 1 = 256 (tie to even), then + 1 = 256 again; + 2 = 258.
  EXPECT_EQ(cells(FakeCall(OpId::k_addc, DType::kBf16).arg(0, a).arg(1, b).arg(2, c).run()),
            (std::vector<double>{256, 258, 256, 258}));
  EXPECT_EQ(cells(FakeCall(OpId::k_subsc, DType::kInt32)
                      .arg(0, make_view(DType::kInt32, {1, 2}, {10, 20}))
                      .arg(1, scalar_of(int64_t{3}), DType::kInt32)
                      .arg(2, make_view(DType::kInt32, {1, 2}, {1, 2}))
                      .run()),
            (std::vector<double>{6, 15}));
}

// O-1301
TEST(KernelsElementwise, TensorCompare) {
  const View a = make_view(DType::kFp32, {2, 3}, {1, 2, 3, NAN, 5, 6});
  const View out = FakeCall(OpId::k_cmp, DType::kFp32, false)
                       .arg(0, a)
                       .arg(1, scalar_of(3.0), DType::kFp32)
                       .attr(AttrKey::k_cmp_type, int64_t{3})
                       .run();
  EXPECT_EQ(cells(out), (std::vector<double>{1, 1, 1, 0, 0, 0}));
  const View ne = FakeCall(OpId::k_cmp, DType::kFp32, false)
                      .arg(0, a)
                      .arg(1, a)
                      .attr(AttrKey::k_cmp_type, int64_t{1})
                      .run();
  EXPECT_EQ(cells(ne), (std::vector<double>{0, 0, 0, 1, 0, 0}));
}

// O-1302 - O-1304, B-10
TEST(KernelsElementwise, PackedMasks) {
  const View a = with_valid(make_view(DType::kFp32, {3, 16}, ramp(48, 0, 1)), {2, 11});
  const View b = make_view(DType::kFp32, {1, 16}, ramp(16, 30, -2));
  const View mask =
      FakeCall(OpId::k_cmp, DType::kUInt8).arg(0, a).arg(1, b).attr(AttrKey::k_cmp_type, int64_t{2}).run();
  EXPECT_EQ(shape_list(mask), (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(valid_list(mask), (std::vector<int64_t>{2, 2}));
  // Row 0: j < 30 - 2j for j <= 9; row 1: 16 + j < 30 - 2j for j <= 4. Bits from 11 on are 0.
  EXPECT_EQ(cells(mask), (std::vector<double>{0xff, 0x03, 0x1f, 0x00}));
  const View other = make_view(DType::kFp32, {3, 16}, {-1});
  const View sel = FakeCall(OpId::k_sel, DType::kFp32).arg(0, mask).arg(1, a).arg(2, other).run();
  EXPECT_EQ(valid_list(sel), (std::vector<int64_t>{2, 11}));
  const auto got = cells(sel);
  for (int j = 0; j < 11; ++j) {
    EXPECT_EQ(got[static_cast<size_t>(j)], j <= 9 ? j : -1);
    EXPECT_EQ(got[static_cast<size_t>(11 + j)], j <= 4 ? 16 + j : -1);
  }
  View words = mask;  // the same bytes as 16-bit words
  words.dtype = DType::kInt16;
  const int64_t extents[2] = {3, 16};
  words.set_packed(2, extents);
  const View sels = FakeCall(OpId::k_sels, DType::kInt32)
                        .arg(0, words)
                        .arg(1, make_view(DType::kInt32, {2, 12}, ramp(24, 0, 1)))
                        .arg(3, scalar_of(int64_t{-9}), DType::kInt32)
                        .run();
  const auto chosen = cells(sels);
  for (int j = 0; j < 12; ++j) {
    EXPECT_EQ(chosen[static_cast<size_t>(j)], j <= 9 ? j : -9);
    EXPECT_EQ(chosen[static_cast<size_t>(12 + j)], j <= 4 ? 12 + j : -9);
  }
}

// O-1601 - O-1604
TEST(KernelsElementwise, Expand) {
  const View a = with_valid(make_view(DType::kFp32, {3, 4}, ramp(12, 0, 1)), {2, 3});
  const View column = make_view(DType::kFp32, {3, 1}, {1, 2, 3});
  const View row = make_view(DType::kFp32, {1, 4}, {10, 20, 30, 40});
  EXPECT_EQ(cells(FakeCall(OpId::k_row_expand_sub, DType::kFp32).arg(0, a).arg(1, column).run()),
            (std::vector<double>{-1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(cells(FakeCall(OpId::k_col_expand_mul, DType::kFp32).arg(0, a).arg(1, row).run()),
            (std::vector<double>{0, 20, 60, 40, 100, 180}));
  const View spread = FakeCall(OpId::k_row_expand, DType::kFp32).arg(0, a).arg(1, column).run();
  EXPECT_EQ(valid_list(spread), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(cells(spread), (std::vector<double>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(cells(FakeCall(OpId::k_col_expand, DType::kFp32).arg(0, a).arg(1, row).run()),
            (std::vector<double>{10, 20, 30, 10, 20, 30}));
  const View filled =
      FakeCall(OpId::k_expands, DType::kFp32).arg(0, a).arg(1, scalar_of(2.5), DType::kFp32).run();
  EXPECT_TRUE(filled.fully_valid);
  EXPECT_EQ(cells(filled), std::vector<double>(12, 2.5));
  const auto e = cells(FakeCall(OpId::k_row_expand_expdif, DType::kFp32).arg(0, a).arg(1, column).run());
  EXPECT_NEAR(e[0], std::exp(-1.0), 1e-6);
  EXPECT_NEAR(e[5], std::exp(4.0), 1e-4);
  // Rank 3.
  const View cube = make_view(DType::kInt32, {2, 2, 3}, ramp(12, 0, 1));
  const View line = make_view(DType::kInt32, {2, 2, 1}, {1, 2, 3, 4});
  EXPECT_EQ(cells(FakeCall(OpId::k_row_expand_mul, DType::kInt32).arg(0, cube).arg(1, line).run()),
            (std::vector<double>{0, 1, 2, 6, 8, 10, 18, 21, 24, 36, 40, 44}));
}

// O-1602: a lane block is repeated along the columns.
TEST(KernelsElementwise, RowExpandAddLaneBlock) {
  const View a = make_view(DType::kFp32, {2, 20}, ramp(40, 0, 1));
  const View block = make_view(DType::kFp32, {2, 8}, ramp(16, 100, 100));
  const auto got = cells(FakeCall(OpId::k_row_expand_add, DType::kFp32).arg(0, a).arg(1, block).run());
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 20; ++j) {
      EXPECT_EQ(got[static_cast<size_t>(i * 20 + j)], i * 20 + j + 100 * (i * 8 + j % 8 + 1));
    }
}

// O-1605
TEST(KernelsElementwise, ExpandClone) {
  const View src = make_view(DType::kInt32, {2, 1, 3}, ramp(6, 1, 1));
  const View target = make_view(DType::kInt32, {2, 2, 3}, {0}, BufferKind::kGlobal);
  FakeCall call(OpId::k_expand_clone, DType::kInt32, false);
  const View out = call.arg(0, src).arg(1, target).run();
  EXPECT_TRUE(out.buffer == target.buffer);
  EXPECT_EQ(call.writes, 1);
  EXPECT_EQ(cells(target), (std::vector<double>{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
}

// O-216: operands keep their contents, also when both are one value; GM operands declare their access.
TEST(KernelsElementwise, InputsUnchanged) {
  const View a = make_view(DType::kFp32, {2, 40}, ramp(80, 1, 0.5), BufferKind::kGlobal);
  const auto before = cells(a);
  FakeCall call(OpId::k_mul, DType::kFp32);
  const auto got = cells(call.arg(0, a).arg(1, a).run());
  EXPECT_EQ(call.reads, 2);
  EXPECT_EQ(cells(a), before);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], before[i] * before[i]);
}

// 01 L-154, 03 M-37: unspecified cells are followed through element-wise operations into reductions.
TEST(KernelsElementwise, UnspecifiedCellsAreFollowed) {
  View a = make_view(DType::kFp32, {3, 4}, ramp(12, 1, 1));
  a.buffer->written.all = false;
  a.buffer->written.rows = 1;
  a.buffer->written.width = 40;  // the last two cells were never written
  const View half = FakeCall(OpId::k_cast, DType::kFp16).arg(0, a).run();
  const View column = make_view(DType::kFp16, {3, 1}, {1, 2, 3});
  const View sum = FakeCall(OpId::k_add, DType::kFp16).arg(0, column).arg(1, half).run();
  ASSERT_FALSE(sum.buffer->written.all);
  FakeCall reduce(OpId::k_row_sum, DType::kFp16);
  const View total = reduce.arg(0, sum).run();
  ASSERT_EQ(reduce.warnings.size(), 1u);
  EXPECT_NE(reduce.warnings[0].find("W-UNSPECIFIED row_sum: 'x' of shape [3, 4]"), std::string::npos)
      << reduce.warnings[0];
  EXPECT_NE(reduce.warnings[0].find("[2, 2]"), std::string::npos);
  EXPECT_EQ(cells(total)[2], 9 + 10 + 11 + 12 + 3 * 4) << "values never depend on the record";
  FakeCall upper(OpId::k_col_max, DType::kFp16);
  upper.arg(0, with_valid(sum, {2, 4})).run();
  EXPECT_TRUE(upper.warnings.empty()) << "the written part alone is reduced";

  // Padding of a later operand under the result's region.
  const View full = make_view(DType::kInt32, {2, 4}, ramp(8, 0, 1));
  const View part = with_valid(make_view(DType::kInt32, {2, 4}, ramp(8, 0, 1)), {2, 3});
  FakeCall mixed(OpId::k_row_max, DType::kInt32);
  mixed.arg(0, FakeCall(OpId::k_mul, DType::kInt32).arg(0, full).arg(1, part).run()).run();
  EXPECT_EQ(mixed.warnings.size(), 1u);
  FakeCall clean(OpId::k_row_max, DType::kInt32);
  clean.arg(0, FakeCall(OpId::k_mul, DType::kInt32).arg(0, part).arg(1, full).run()).run();
  EXPECT_TRUE(clean.warnings.empty());

  // Nothing specified at all is handed on as such, without a warning.
  View none = make_view(DType::kFp32, {2, 2}, {0});
  none.buffer->written.all = false;
  FakeCall empty(OpId::k_row_sum, DType::kFp32);
  const View still = empty.arg(0, FakeCall(OpId::k_neg, DType::kFp32).arg(0, none).run()).run();
  EXPECT_TRUE(empty.warnings.empty());
  EXPECT_FALSE(still.buffer->written.all);
}

}  // namespace
}  // namespace pypto::vm
