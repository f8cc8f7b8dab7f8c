// SPDX-License-Identifier: Apache-2.0

// Reductions (02 section 15) and padding (section 17).
#include <cmath>

#include "tests/core/kernels_support.h"

namespace pypto::vm {
namespace {

using namespace testing;
using ir::AttrKey;
using ir::OpId;

// O-307, B-36: the order decides the value.
TEST(KernelsReduce, RowSumOrder) {
  for_each_target([] {
    const View a = make_view(DType::kFp32, {1, 4}, {1e8, 1, -1e8, 0});
    EXPECT_EQ(cells(FakeCall(OpId::k_row_sum, DType::kFp32).arg(0, a).run()), (std::vector<double>{1}));
    // 2^24 and eighteen ones, element 16 k + j in partial j: partial 0 holds 2^24 + 1 = 2^24, partial 1
    // holds 2, the others 1. Tree: [2^24 + 1 -> 2^24, 3, 2 ...], then [2^24 + 2, 5, ...] and so on; by
    // hand 2^24 + 18 rounds to what the partials give.
    std::vector<double> x(19, 1.0);
    x[0] = 16777216.0;
    // p0 = 2^24 (+1 lost), p1 = 2, p2 = 2, p3..p15 = 1.
    // +8: p0 = 2^24 (+1 lost), p1 = 3, p2 = 3, p3..p7 = 2.
    // +4: p0 = 2^24 + 2, p1 = 5, p2 = 5, p3 = 4. +2: p0 = 2^24 + 7 -> 2^24 + 8 (even), p1 = 9. +1: 2^24 +
    // 17 -> 2^24 + 16.
    EXPECT_EQ(
        cells(FakeCall(OpId::k_row_sum, DType::kFp32).arg(0, make_view(DType::kFp32, {1, 19}, x)).run()),
        (std::vector<double>{16777232.0}));
  });
}

// O-1502, B-8, K15: only valid cells take part.
TEST(KernelsReduce, ValidCellsOnly) {
  std::vector<double> x(3 * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 64 < 47 ? -1.0 - static_cast<double>(i % 5) : 1000.0;
  const View a = with_valid(make_view(DType::kFp32, {3, 64}, x), {2, 47});
  double sum0 = 0;
  for (size_t j = 0; j < 47; ++j) sum0 += x[j];
  const View s = FakeCall(OpId::k_row_sum, DType::kFp32).arg(0, a).run();
  EXPECT_EQ(shape_list(s), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(valid_list(s), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(cells(s)[0], sum0);
  EXPECT_EQ(cells(FakeCall(OpId::k_row_max, DType::kFp32).arg(0, a).run()), (std::vector<double>{-1, -1}));
  const View m = FakeCall(OpId::k_col_max, DType::kFp32).arg(0, a).run();
  EXPECT_EQ(valid_list(m), (std::vector<int64_t>{1, 47}));
  EXPECT_EQ(cells(m)[3], std::max(x[3], x[64 + 3]));
  const View empty = with_valid(a, {2, 0});
  EXPECT_THROW(FakeCall(OpId::k_row_sum, DType::kFp32).arg(0, empty).run(), Failure);
  EXPECT_EQ(cells(FakeCall(OpId::k_row_sum, DType::kFp32).arg(0, with_valid(a, {0, 5})).run()).size(), 0u);
}

// O-1501: leading axes, rank 1 tensors.
TEST(KernelsReduce, Ranks) {
  std::vector<double> x;
  for (int i = 0; i < 24; ++i) x.push_back(i * i % 11);
  const View a = make_view(DType::kInt32, {2, 3, 4}, x);
  const View rows = FakeCall(OpId::k_row_sum, DType::kInt32).arg(0, a).run();
  EXPECT_EQ(shape_list(rows), (std::vector<int64_t>{2, 3, 1}));
  const View columns = FakeCall(OpId::k_col_sum, DType::kInt32).arg(0, a).run();
  EXPECT_EQ(shape_list(columns), (std::vector<int64_t>{2, 1, 4}));
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 3; ++i) {
      double s = 0;
      for (int j = 0; j < 4; ++j) s += x[static_cast<size_t>(b * 12 + i * 4 + j)];
      EXPECT_EQ(cells(rows)[static_cast<size_t>(b * 3 + i)], s);
    }
    for (int j = 0; j < 4; ++j) {
      double s = 0;
      for (int i = 0; i < 3; ++i) s += x[static_cast<size_t>(b * 12 + i * 4 + j)];
      EXPECT_EQ(cells(columns)[static_cast<size_t>(b * 4 + j)], s);
    }
  }
  EXPECT_EQ(cells(FakeCall(OpId::k_row_max, DType::kInt32, false)
                      .arg(0, make_view(DType::kInt32, {5}, {3, 9, -2, 9, 1}))
                      .run()),
            (std::vector<double>{9}));
}

// O-1504, B-9
TEST(KernelsReduce, ArgTiesAndNan) {
  const View a = make_view(DType::kFp32, {3, 5}, {1, 7, 7, 2, 7, NAN, 3, 9, 9, 1, 2, NAN, 1, 5, 5});
  const auto top = cells(FakeCall(OpId::k_row_argmax, DType::kInt32).arg(0, a).run());
  EXPECT_EQ(top[0], 1);
  EXPECT_EQ(top[2], 3);
  const auto low = cells(FakeCall(OpId::k_row_argmin, DType::kInt32).arg(0, a).run());
  EXPECT_EQ(low[0], 0);
  EXPECT_EQ(low[2], 2);
  const View b = make_view(DType::kInt16, {4, 3}, {5, 1, 2, 9, 1, 3, 9, 0, 3, 2, 0, 1});
  EXPECT_EQ(cells(FakeCall(OpId::k_col_argmax, DType::kInt32).arg(0, b).run()),
            (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(cells(FakeCall(OpId::k_col_argmin, DType::kInt32).arg(0, b).run()),
            (std::vector<double>{3, 2, 3}));
  const View f16 = make_view(DType::kFp16, {1, 40}, [] {
    std::vector<double> x(40, -5.0);
    x[33] = -4.5;
    return x;
  }());
  EXPECT_EQ(cells(FakeCall(OpId::k_row_argmax, DType::kInt32).arg(0, f16).run()), (std::vector<double>{33}));
}

// O-1505: FP16 sums round at every step, ascending without scratch, pairwise with it.
TEST(KernelsReduce, ColumnSumOrders) {
  for_each_target([] {
    // Column 0 of five rows: 2048 1 1 1 1. Ascending: 2048 + 1 = 2048 (tie to even) four times.
    // Pairwise: r0 = 2048 + 1 = 2048, r1 = 1 + 1 = 2, odd: r0 += r[4] = 2048; then r0 = 2048 + 2 = 2050.
    std::vector<double> x(5 * 33);
    for (size_t i = 0; i < 5; ++i) {
      for (size_t j = 0; j < 33; ++j) x[i * 33 + j] = i == 0 ? 2048.0 + 2.0 * static_cast<double>(j) : 1.0;
    }
    const View a = make_view(DType::kFp16, {5, 33}, x);
    const auto ascending = cells(FakeCall(OpId::k_col_sum, DType::kFp16).arg(0, a).run());
    EXPECT_EQ(ascending[0], 2048);
    EXPECT_EQ(ascending[1], 2052);  // 2050 + 1 = 2051 is a tie, to even 2052; then 2053 -> 2052
    const auto pairwise = cells(FakeCall(OpId::k_col_sum, DType::kFp16).arg(0, a).arg(1, a).run());
    EXPECT_EQ(pairwise[0], 2050);
    // 2050 + 1 -> 2052, + r4 1 -> 2052 (2053 tie to even), + 2 -> 2054.
    EXPECT_EQ(pairwise[1], 2054);
  });
}

// O-307: col_prod in FP32, rounded once; row_prod of BF16 rounded once.
TEST(KernelsReduce, Products) {
  const View a = make_view(DType::kBf16, {4, 2}, {1.0078125, 3, 1.0078125, -1, 1.0078125, 2, 1.0078125, 0.5});
  // (1 + 2^-7)^4 = 1.0316... in FP32, nearest BF16 1.03125; rounding every step would give the same digits
  // plus error.
  const auto p = cells(FakeCall(OpId::k_col_prod, DType::kBf16).arg(0, a).run());
  EXPECT_EQ(p[0], static_cast<double>(
                      bf16_to_fp32(fp32_to_bf16(1.0078125f * 1.0078125f * 1.0078125f * 1.0078125f))));
  EXPECT_EQ(p[1], -3);
  EXPECT_EQ(cells(FakeCall(OpId::k_row_prod, DType::kInt16)
                      .arg(0, make_view(DType::kInt16, {1, 3}, {300, 300, 3}))
                      .run()),
            (std::vector<double>{static_cast<int16_t>(270000)}));
  EXPECT_EQ(cells(FakeCall(OpId::k_row_min, DType::kFp16)
                      .arg(0, make_view(DType::kFp16, {2, 3}, {3, 1, 2, -1, -4, 8}))
                      .run()),
            (std::vector<double>{1, -4}));
}

// Strips of columns and wide matrices.
TEST(KernelsReduce, ManyColumns) {
  std::vector<double> x(7 * 3000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>((i * 7919) % 101) - 50;
  const View a = make_view(DType::kFp32, {7, 3000}, x);
  const auto s = cells(FakeCall(OpId::k_col_sum, DType::kFp32).arg(0, a).run());
  const auto m = cells(FakeCall(OpId::k_col_argmax, DType::kInt32).arg(0, a).run());
  for (size_t j = 0; j < 3000; ++j) {
    double sum = 0;
    size_t best = 0;
    for (size_t i = 0; i < 7; ++i) {
      sum += x[i * 3000 + j];
      if (x[i * 3000 + j] > x[best * 3000 + j]) best = i;
    }
    ASSERT_EQ(s[j], sum);
    ASSERT_EQ(m[j], static_cast<double>(best));
  }
}

// O-1702 - O-1704, B-22
TEST(KernelsFill, Fillpad) {
  const View a = with_valid(make_view(DType::kFp32, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), {2, 3});
  const View z = FakeCall(OpId::k_fillpad, DType::kFp32).arg(0, a).run();
  EXPECT_TRUE(z.fully_valid);
  EXPECT_EQ(cells(z), (std::vector<double>{1, 2, 3, 0, 5, 6, 7, 0, 0, 0, 0, 0}));
  const View top =
      FakeCall(OpId::k_fillpad, DType::kFp32).arg(0, a).attr(AttrKey::k_pad_value, int64_t{2}).run();
  EXPECT_EQ(top.pad, PadMode::kMax);
  EXPECT_EQ(cells(top)[3], INFINITY);
  EXPECT_EQ(
      cells(
          FakeCall(OpId::k_fillpad, DType::kFp32).arg(0, a).attr(AttrKey::k_pad_value, -INFINITY).run())[11],
      -INFINITY);
  struct Case {
    DType dtype;
    double greatest, least;
  };
  for (const Case c : {Case{DType::kInt32, 2147483647.0, -2147483648.0}, Case{DType::kUInt8, 255, 0},
                       Case{DType::kInt8, 127, -128}, Case{DType::kUInt16, 65535, 0},
                       Case{DType::kFp16, INFINITY, -INFINITY}}) {
    const View v = with_valid(make_view(c.dtype, {1, 2}, {1, 2}), {1, 1});
    EXPECT_EQ(
        cells(FakeCall(OpId::k_fillpad, c.dtype).arg(0, v).attr(AttrKey::k_pad_value, int64_t{2}).run())[1],
        c.greatest);
    EXPECT_EQ(
        cells(FakeCall(OpId::k_fillpad, c.dtype).arg(0, v).attr(AttrKey::k_pad_value, int64_t{3}).run())[1],
        c.least);
  }
  const View none = FakeCall(OpId::k_fillpad, DType::kFp32).arg(0, with_valid(a, {0, 3})).run();
  EXPECT_EQ(cells(none), std::vector<double>(12, 0.0));
  const View grown = FakeCall(OpId::k_fillpad_expand, DType::kFp32)
                         .arg(0, a)
                         .list_arg(1, {4, 5})
                         .attr(AttrKey::k_pad_value, int64_t{3})
                         .run();
  const double low = -INFINITY;
  EXPECT_EQ(cells(grown), (std::vector<double>{1,   2,   3,   low, low, 5,   6,   7,   low, low,
                                               low, low, low, low, low, low, low, low, low, low}));
  EXPECT_EQ(cells(a).size(), 6u) << "the operand keeps its valid shape";
}

// O-1703
TEST(KernelsFill, FillpadInPlace) {
  const View cube = with_valid(make_view(DType::kInt16, {2, 3, 4}, {1, 2, 3, 4, 5, 6, 7}), {1, 2, 3});
  const View before = make_view(DType::kInt16, {2, 3, 4}, {1, 2, 3, 4, 5, 6, 7});
  const View out = FakeCall(OpId::k_fillpad_inplace, DType::kInt16)
                       .arg(0, cube)
                       .attr(AttrKey::k_pad_value, int64_t{3})
                       .run();
  EXPECT_TRUE(out.buffer == cube.buffer);
  EXPECT_TRUE(out.fully_valid);
  const auto got = cells(out), old = cells(before);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 4; ++k) {
        const size_t at = i * 12 + j * 4 + k;
        EXPECT_EQ(got[at], i < 1 && j < 2 && k < 3 ? old[at] : -32768.0);
      }
  const View strided =
      with_valid(with_stride(make_view(DType::kFp32, {2, 3}, {1, 2, 3, 4, 5, 6}), 2), {2, 1});
  EXPECT_EQ(cells(FakeCall(OpId::k_fillpad_inplace, DType::kFp32).arg(0, strided).run()),
            (std::vector<double>{1, 0, 0, 4, 0, 0}));
}

}  // namespace
}  // namespace pypto::vm
