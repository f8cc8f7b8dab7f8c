// SPDX-License-Identifier: Apache-2.0
#include "fake_call.h"

#include <cmath>

#include "core/vm/kernels/gemm.h"
#include "core/vm/ops/views.h"

namespace pypto::vm::testing {
namespace {

using ir::AttrKey;
using ir::OpId;

constexpr DType kF32 = DType::kFp32;

std::vector<float> random_floats(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(n);
  for (auto& x : out) {
    // Wide exponents: sums cancel, and a second rounding would show.
    const int exponent = static_cast<int>(random() % 24) - 12;
    x = std::ldexp(static_cast<float>(static_cast<int32_t>(random())), exponent - 31);
  }
  return out;
}

/// The definition: k ascending, one fused multiply-add per term (O-307).
float definition(const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k, float start) {
  float sum = start;
  for (int64_t p = 0; p < k; ++p) sum = std::fmaf(a[p * a_step], b[p * b_step], sum);
  return sum;
}

// ------------------------------------------------------------------ kernel

TEST(Gemm, SameBitsAsTheDefinitionOnEveryInstructionSet) {  // O-307, O-311, H-46
  struct Size {
    int64_t m, n, k;
  };
  const std::vector<Size> sizes = {{1, 1, 1},   {1, 17, 5},  {3, 16, 16},    {16, 16, 16},
                                   {7, 33, 19}, {8, 32, 64}, {13, 48, 7},    {31, 15, 40},
                                   {64, 1, 50}, {50, 3, 9},  {100, 70, 300}, {2, 130, 257}};
  for_each_target([&] {
    for (const Size s : sizes) {
      const auto a = random_floats(static_cast<size_t>(s.m * s.k), 1),
                 b = random_floats(static_cast<size_t>(s.k * s.n), 2);
      const auto old = random_floats(static_cast<size_t>(s.m * s.n), 3),
                 bias = random_floats(static_cast<size_t>(s.n), 4);
      for (const bool a_trans : {false, true}) {
        for (const bool b_trans : {false, true}) {
          for (const GemmStart start : {GemmStart::kZero, GemmStart::kOld, GemmStart::kBias}) {
            auto c = old;
            Gemm g;
            g.m = s.m;
            g.n = s.n;
            g.k = s.k;
            g.a = {a.data(), kF32, a_trans ? 1 : s.k, a_trans ? s.m : 1};
            g.b = {b.data(), kF32, b_trans ? 1 : s.n, b_trans ? s.k : 1};
            g.c = c.data();
            g.c_row = s.n;
            g.start = start;
            g.bias = bias.data();
            gemm(g);
            for (int64_t i = 0; i < s.m; ++i) {
              for (int64_t j = 0; j < s.n; ++j) {
                const auto at = static_cast<size_t>(i * s.n + j);
                const float first = start == GemmStart::kZero  ? 0.0f
                                    : start == GemmStart::kOld ? old[at]
                                                               : bias[static_cast<size_t>(j)];
                const float want =
                    definition(a.data() + i * g.a.row, g.a.col, b.data() + j * g.b.col, g.b.row, s.k, first);
                ASSERT_EQ(std::bit_cast<uint32_t>(c[at]), std::bit_cast<uint32_t>(want))
                    << s.m << "x" << s.n << "x" << s.k << " trans " << a_trans << b_trans << " at " << i
                    << "," << j;
              }
            }
          }
        }
      }
    }
  });
}

TEST(Gemm, FusedRoundingOfHardCases) {  // O-307
  // Ties, double rounding traps, subnormal sums, cancellation, infinities.
  const std::vector<float> values = {1.0f,           1.0f + 0x1p-23f, -1.0f,     0x1p-12f + 0x1p-24f,
                                     0x1.fffffep-1f, 0x1.000002p0f,   0x1p-75f,  0x1.8p-75f,
                                     -0x1p-74f,      0x1p-126f,       0x1p-149f, -0x1p-149f,
                                     0x1p60f,        0x1.fffffep63f,  0.0f,      -0.0f,
                                     3.0f,           INFINITY};
  std::vector<float> a, b, c;
  for (const float x : values) {
    for (const float y : values) {
      for (const float z : values) {
        a.push_back(x);
        b.push_back(y);
        c.push_back(z);
      }
    }
  }
  for_each_target([&] {
    // [n, 1] . [1, 1] per element: run 16 columns at a time, the diagonal counts.
    for (size_t i = 0; i + 16 <= a.size(); i += 16) {
      float sums[256];
      for (size_t r = 0; r < 16; ++r) std::memcpy(sums + r * 16, c.data() + i, 64);
      Gemm g;
      g.m = g.n = 16;
      g.k = 1;
      g.a = {a.data() + i, kF32, 1, 1};
      g.b = {b.data() + i, kF32, 16, 1};
      g.c = sums;
      g.c_row = 16;
      g.start = GemmStart::kOld;
      gemm(g);
      for (size_t j = 0; j < 16; ++j) {
        const float want = std::fmaf(a[i + j], b[i + j], c[i + j]);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(sums[j * 17]));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(sums[j * 17]), std::bit_cast<uint32_t>(want))
              << a[i + j] << " * " << b[i + j] << " + " << c[i + j];
        }
      }
    }
  });
}

TEST(Gemm, SplitsChangeNoBit) {  // O-1806
  const int64_t m = 40, n = 50, k = 700;
  const auto a = random_floats(m * k, 5), b = random_floats(k * n, 6);
  std::vector<float> whole(m * n), parts(m * n);
  Gemm g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.a = {a.data(), kF32, k, 1};
  g.b = {b.data(), kF32, n, 1};
  g.c = whole.data();
  g.c_row = n;
  gemm(g);
  for (int64_t i0 = 0; i0 < m; i0 += 17) {
    for (int64_t j0 = 0; j0 < n; j0 += 13) {
      for (int64_t k0 = 0; k0 < k; k0 += 123) {
        Gemm part = g;
        part.m = std::min<int64_t>(17, m - i0);
        part.n = std::min<int64_t>(13, n - j0);
        part.k = std::min<int64_t>(123, k - k0);
        part.a.data = a.data() + i0 * k + k0;
        part.b.data = b.data() + k0 * n + j0;
        part.c = parts.data() + i0 * n + j0;
        part.start = k0 == 0 ? GemmStart::kZero : GemmStart::kOld;
        gemm(part);
      }
    }
  }
  EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * 4), 0);
}

TEST(Gemm, Int8IsExact) {  // O-307
  for_each_target([&] {
    for (const int64_t k : {1, 3, 4, 16, 33, 64, 1100}) {
      for (const int64_t n : {1, 5, 16, 31, 32, 47, 100}) {
        const int64_t m = 11;
        std::mt19937 random(static_cast<uint32_t>(k * 131 + n));
        std::vector<int8_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
        for (auto& x : a) x = random() % 4 == 0 ? -128 : static_cast<int8_t>(random());
        for (auto& x : b) x = random() % 4 == 0 ? -128 : static_cast<int8_t>(random());
        for (const int mode : {0, 1, 2, 3}) {
          const bool a_trans = mode & 1, b_trans = mode & 2;
          std::vector<int32_t> c(static_cast<size_t>(m * n), 2147483000);
          Gemm g;
          g.m = m;
          g.n = n;
          g.k = k;
          g.a = {a.data(), DType::kInt8, a_trans ? 1 : k, a_trans ? m : 1};
          g.b = {b.data(), DType::kInt8, b_trans ? 1 : n, b_trans ? k : 1};
          g.c = c.data();
          g.c_row = n;
          g.start = GemmStart::kOld;
          gemm(g);
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              int64_t want = 2147483000;
              for (int64_t p = 0; p < k; ++p) {
                want += static_cast<int64_t>(a[static_cast<size_t>(i * g.a.row + p * g.a.col)]) *
                        b[static_cast<size_t>(p * g.b.row + j * g.b.col)];
              }
              ASSERT_EQ(c[static_cast<size_t>(i * n + j)], static_cast<int32_t>(want))
                  << k << " " << n << " " << mode;
            }
          }
        }
      }
    }
  });
}

TEST(Gemm, WidensSixteenBitOperands) {  // O-307
  for_each_target([&] {
    for (const DType dtype : {DType::kFp16, DType::kBf16}) {
      const int64_t m = 19, n = 37, k = 45;
      std::mt19937 random(9);
      std::vector<uint16_t> a(m * k), b(k * n);
      std::vector<float> wide_a(m * k), wide_b(k * n);
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<uint16_t>(random() & (dtype == DType::kFp16 ? 0xbbff : 0xbfff));
        wide_a[i] = static_cast<float>(read_float(dtype, &a[i]));
      }
      for (size_t i = 0; i < b.size(); ++i) {
        b[i] = static_cast<uint16_t>(random() & (dtype == DType::kFp16 ? 0xbbff : 0xbfff));
        wide_b[i] = static_cast<float>(read_float(dtype, &b[i]));
      }
      for (const int mode : {0, 1, 2, 3}) {
        const bool a_trans = mode & 1, b_trans = mode & 2;
        std::vector<float> c(m * n);
        Gemm g;
        g.m = m;
        g.n = n;
        g.k = k;
        g.a = {a.data(), dtype, a_trans ? 1 : k, a_trans ? m : 1};
        g.b = {b.data(), dtype, b_trans ? 1 : n, b_trans ? k : 1};
        g.c = c.data();
        g.c_row = n;
        gemm(g);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const float want =
                definition(wide_a.data() + i * g.a.row, g.a.col, wide_b.data() + j * g.b.col, g.b.row, k, 0);
            ASSERT_EQ(std::bit_cast<uint32_t>(c[static_cast<size_t>(i * n + j)]),
                      std::bit_cast<uint32_t>(want));
          }
        }
      }
    }
  });
}

// ------------------------------------------------------------------ operations

double product_cell(const View& a, const View& b, int64_t i, int64_t j, int64_t k) {
  double sum = 0;
  for (int64_t p = 0; p < k; ++p) sum += cell(a, {i, p}) * cell(b, {p, j});
  return sum;
}

/// Small whole numbers, so that every order of additions gives the same result.
View matrix(Longs shape, uint32_t seed, DType dtype = kF32) {
  int64_t n = 1;
  for (const int64_t e : shape) n *= e;
  return make_view(dtype, shape, scrambled(n, seed));
}

TEST(OpsMatmul, PaddingNeverContributes) {  // B-11, O-1804
  View a = matrix({20, 256}, 1), b = matrix({256, 40}, 2);
  for (int64_t i = 0; i < 20; ++i) a.as<float>()[i * 256 + 255] = NAN;
  for (int64_t j = 0; j < 40; ++j) b.as<float>()[255 * 40 + j] = NAN;
  a = with_valid(a, {18, 255});
  b = with_valid(b, {256, 33});
  const View c = OpRun(OpId::k_matmul).in(0, a).in(1, b).run_op();
  EXPECT_EQ(shape_list(c), (Longs{20, 40}));
  EXPECT_EQ(valid_list(c), (Longs{18, 33}));
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 40; ++j) {
      EXPECT_EQ(cell(c, {i, j}), i < 18 && j < 33 ? product_cell(a, b, i, j, 255) : 0);
    }
  }
  const Diagnostic d = OpRun(OpId::k_matmul).in(0, a).in(1, with_valid(b, {254, 33})).run_fault();
  EXPECT_EQ(d.cls, ErrorClass::kProgramFault);
  EXPECT_NE(d.message.find("254"), std::string::npos);
  EXPECT_NE(d.message.find("255"), std::string::npos);
  // Nothing valid along K: zeros.
  const View z = OpRun(OpId::k_matmul).in(0, with_valid(a, {18, 0})).in(1, b).run_op();
  EXPECT_EQ(cell(z, {3, 3}), 0);
}

TEST(OpsMatmul, ViewsAndTransposes) {  // O-1801, O-1803, O-809
  const View a = matrix({12, 30}, 3), b = matrix({25, 30}, 4);
  const View bt = OpRun(OpId::k_transpose_view).in(0, b).run_op();
  const View c = OpRun(OpId::k_matmul).in(0, a).in(1, bt).run_op();
  const View d = OpRun(OpId::k_matmul).in(0, a).in(1, b).with(AttrKey::k_b_trans, int64_t{1}).run_op();
  const View at = transpose_strides(a, 0, 1);
  const View e = OpRun(OpId::k_matmul)
                     .in(0, at)
                     .in(1, b)
                     .with(AttrKey::k_a_trans, int64_t{1})
                     .with(AttrKey::k_b_trans, int64_t{1})
                     .run_op();
  const View spread = transpose_strides(with_stride(b, 2), 0, 1);
  const View strided = OpRun(OpId::k_matmul).in(0, with_stride(a, 3)).in(1, spread).run_op();
  for (int64_t i = 0; i < 12; ++i) {
    for (int64_t j = 0; j < 25; ++j) {
      const double want = product_cell(a, bt, i, j, 30);
      EXPECT_EQ(cell(c, {i, j}), want);
      EXPECT_EQ(cell(d, {i, j}), want);
      EXPECT_EQ(cell(e, {i, j}), want);
      EXPECT_EQ(cell(strided, {i, j}), want);
    }
  }
  // A window with a row pitch.
  const View big = matrix({40, 64}, 5);
  const View w = OpRun(OpId::k_slice).in(0, big).ints(1, {12, 30}).ints(2, {7, 9}).run_op();
  const View f = OpRun(OpId::k_matmul).in(0, w).in(1, bt).run_op();
  EXPECT_EQ(cell(f, {11, 24}), product_cell(w, bt, 11, 24, 30));
  const View gram = OpRun(OpId::k_matmul).in(0, w).in(1, w).with(AttrKey::k_b_trans, int64_t{1}).run_op();
  EXPECT_EQ(cell(gram, {3, 10}), product_cell(w, transpose_strides(w, 0, 1), 3, 10, 30));
}

TEST(OpsMatmul, VectorsAndBatches) {  // O-1801
  const View a = matrix({9, 14}, 6), x = matrix({14}, 7), y = matrix({9}, 8);
  const View ax = OpRun(OpId::k_matmul).in(0, a).in(1, x).run_op();
  EXPECT_EQ(shape_list(ax), (Longs{9}));
  const View ya = OpRun(OpId::k_matmul).in(0, y).in(1, a).run_op();
  EXPECT_EQ(shape_list(ya), (Longs{14}));
  const View xx = OpRun(OpId::k_matmul).in(0, x).in(1, x).run_op();
  EXPECT_EQ(xx.rank, 0);
  double dot = 0;
  for (int64_t p = 0; p < 14; ++p) dot += cell(x, {p}) * cell(x, {p});
  EXPECT_EQ(*xx.as<float>(), static_cast<float>(dot));
  for (int64_t i = 0; i < 9; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < 14; ++p) sum += cell(a, {i, p}) * cell(x, {p});
    EXPECT_EQ(cell(ax, {i}), sum);
  }
  // [2, 1, M, K] with [3, K, N]: NumPy broadcast.
  const View p = matrix({2, 1, 5, 6}, 9), q = matrix({3, 6, 4}, 10);
  const View r = OpRun(OpId::k_matmul).in(0, p).in(1, q).run_op();
  EXPECT_EQ(shape_list(r), (Longs{2, 3, 5, 4}));
  for (int64_t b0 = 0; b0 < 2; ++b0) {
    for (int64_t b1 = 0; b1 < 3; ++b1) {
      for (int64_t i = 0; i < 5; ++i) {
        for (int64_t j = 0; j < 4; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 6; ++k) sum += cell(p, {b0, 0, i, k}) * cell(q, {b1, k, j});
          EXPECT_EQ(cell(r, {b0, b1, i, j}), sum);
        }
      }
    }
  }
  const View two_d = OpRun(OpId::k_matmul).in(0, a).in(1, matrix({1, 14, 3}, 11)).run_op();
  EXPECT_EQ(shape_list(two_d), (Longs{1, 9, 3}));
}

TEST(OpsMatmul, Dtypes) {  // O-1802, O-1803
  for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kInt8}) {
    const View a = matrix({17, 40}, 12, dtype), b = matrix({40, 21}, 13, dtype);
    // The declared dtype may be narrower: the value stays in the accumulator.
    const View c = OpRun(OpId::k_matmul, dtype).in(0, a).in(1, b).run_op();
    EXPECT_EQ(c.dtype, dtype == DType::kInt8 ? DType::kInt32 : kF32);
    for (int64_t i = 0; i < 17; ++i) {
      for (int64_t j = 0; j < 21; ++j) EXPECT_EQ(cell(c, {i, j}), product_cell(a, b, i, j, 40));
    }
  }
  // A product as operand of the next one, still FP32 beside an FP16 operand.
  const View a = matrix({8, 8}, 14), b = matrix({8, 8}, 15, DType::kFp16);
  const View c = OpRun(OpId::k_matmul, DType::kFp16).in(0, a).in(1, b).run_op();
  EXPECT_EQ(cell(c, {7, 3}), product_cell(a, b, 7, 3, 8));
}

TEST(OpsMatmul, AccumulatesInPlace) {  // O-1805, B-13, O-214
  const View a = matrix({10, 12}, 16), b = matrix({12, 18}, 17);
  View acc = make_view(kF32, {10, 18}, {0});
  acc.buffer->written.all = false;
  OpRun unwritten(OpId::k_matmul_acc);
  unwritten.in(0, acc).in(1, a).in(2, b).run_op();
  EXPECT_EQ(unwritten.warnings.size(), 1u);  // M-37
  View sum = make_view(kF32, {10, 18}, scrambled(180, 18));
  const auto before = cells(sum);
  const View r = OpRun(OpId::k_matmul_acc).in(0, sum).in(1, a).in(2, b).run_op();
  EXPECT_TRUE(r.buffer == sum.buffer);
  for (int64_t i = 0; i < 10; ++i) {
    for (int64_t j = 0; j < 18; ++j) {
      EXPECT_EQ(cell(sum, {i, j}), before[static_cast<size_t>(i * 18 + j)] + product_cell(a, b, i, j, 12));
    }
  }
  // init_cond: true takes the product only, whatever the accumulator held.
  View fresh = make_view(kF32, {10, 18}, {NAN});
  fresh.buffer->written.all = false;
  OpRun first(OpId::k_matmul_acc);
  first.in(0, fresh).in(1, a).in(2, b).integer_arg(5, 1, DType::kBool).run_op();
  EXPECT_TRUE(first.warnings.empty());
  EXPECT_TRUE(fresh.buffer->written.all);
  OpRun(OpId::k_matmul_acc).in(0, fresh).in(1, a).in(2, b).integer_arg(5, 0, DType::kBool).run_op();
  EXPECT_EQ(cell(fresh, {9, 17}), 2 * product_cell(a, b, 9, 17, 12));
}

TEST(OpsMatmul, NeverWrittenOperandIsReported) {  // M-37, L-154
  const View a = matrix({4, 5}, 40);
  View b = make_view(kF32, {5, 6}, {0});
  b.buffer->written.all = false;
  OpRun mixed(OpId::k_matmul);
  mixed.in(0, a).in(1, b).run_op();
  ASSERT_EQ(mixed.warnings.size(), 1u);
  EXPECT_NE(mixed.warnings[0].find("operand1"), std::string::npos);
  View u = make_view(kF32, {4, 5}, {0});
  u.buffer->written.all = false;
  OpRun both(OpId::k_matmul);
  EXPECT_FALSE(both.in(0, u).in(1, b).run_op().buffer->written.all);
  EXPECT_TRUE(both.warnings.empty());
}

TEST(OpsMatmul, WindowOfAnAccumulator) {  // B-12, O-215
  View acc = make_view(kF32, {8, 48}, scrambled(8 * 48, 19));
  const auto before = cells(acc);
  const View a = matrix({8, 6}, 20), b = matrix({6, 16}, 21);
  const View w = OpRun(OpId::k_slice).in(0, acc).ints(1, {8, 16}).ints(2, {0, 16}).run_op();
  OpRun(OpId::k_matmul_acc).in(0, w).in(1, a).in(2, b).run_op();
  View y = global_view(kF32, {8, 48}, {0});
  OpRun(OpId::k_store).in(0, acc).ints(1, {0, 0}).in(2, y).run_op();
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 48; ++j) {
      const double add = j >= 16 && j < 32 ? product_cell(a, b, i, j - 16, 6) : 0;
      EXPECT_EQ(cell(y, {i, j}), before[static_cast<size_t>(i * 48 + j)] + add);
    }
  }
  // A transposed accumulator.
  View t = make_view(kF32, {16, 8}, {1});
  const View tv = transpose_strides(t, 0, 1);
  OpRun(OpId::k_matmul_acc).in(0, tv).in(1, a).in(2, b).run_op();
  EXPECT_EQ(cell(t, {11, 5}), 1 + product_cell(a, b, 5, 11, 6));
}

TEST(OpsMatmul, BatchedAccumulator) {  // O-1805, O-1808
  const View a = matrix({7, 5}, 22), b = matrix({1, 9, 5}, 23);
  View acc = make_view(kF32, {1, 7, 9}, {3});
  OpRun(OpId::k_matmul_acc).in(0, acc).in(1, a).in(2, b).with(AttrKey::k_b_trans, int64_t{1}).run_op();
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 9; ++j) {
      double sum = 3;
      for (int64_t k = 0; k < 5; ++k) sum += cell(a, {i, k}) * cell(b, {0, j, k});
      EXPECT_EQ(cell(acc, {0, i, j}), sum);
    }
  }
  const View p = matrix({2, 4, 3}, 24), q = matrix({2, 3, 6}, 25);
  View batched = make_view(kF32, {2, 4, 6}, {0});
  OpRun(OpId::k_batch_matmul_acc).in(0, batched).in(1, p).in(2, q).run_op();
  const View value = OpRun(OpId::k_batch_matmul).in(0, p).in(1, q).run_op();
  EXPECT_EQ(cells(batched), cells(value));
  EXPECT_EQ(OpRun(OpId::k_matmul_acc)
                .in(0, make_view(kF32, {4, 4}, {0}))
                .in(1, a)
                .in(2, matrix({5, 9}, 2))
                .run_fault()
                .cls,
            ErrorClass::kProgramFault);
}

TEST(OpsMatmul, BiasAndGemv) {  // O-1807, O-1809
  const View a = matrix({6, 20}, 26), b = matrix({20, 40}, 27), bias = matrix({1, 40}, 28);
  const View c = OpRun(OpId::k_matmul_bias).in(0, a).in(1, b).in(2, bias).run_op();
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 40; ++j)
      EXPECT_EQ(cell(c, {i, j}), cell(bias, {0, j}) + product_cell(a, b, i, j, 20));
  }
  const View row = matrix({1, 20}, 29);
  const View g = OpRun(OpId::k_gemv).in(0, row).in(1, b).run_op();
  EXPECT_EQ(valid_list(g), (Longs{1, 40}));
  const View gb = OpRun(OpId::k_gemv_bias).in(0, row).in(1, b).in(2, bias).run_op();
  OpRun(OpId::k_gemv_acc).in(0, g).in(1, row).in(2, b).run_op();
  for (int64_t j = 0; j < 40; ++j) {
    EXPECT_EQ(cell(g, {0, j}), 2 * product_cell(row, b, 0, j, 20));
    EXPECT_EQ(cell(gb, {0, j}), cell(bias, {0, j}) + product_cell(row, b, 0, j, 20));
  }
}

TEST(OpsMatmul, MxScales) {  // O-1810
  std::mt19937 random(30);
  const int64_t m = 16, k = 64, n = 32;
  View a = make_view(DType::kFp8E4M3FN, {m, k}, scrambled(m * k, 31)),
       b = make_view(DType::kFp8E4M3FN, {k, n}, scrambled(k * n, 32));
  View sa = make_view(DType::kFp8E8M0, {m, 2}, {1}), sb = make_view(DType::kFp8E8M0, {2, n}, {1});
  const auto fill = [&](int spread) {
    for (int64_t i = 0; i < m * 2; ++i)
      sa.data()[i] = static_cast<uint8_t>(127 + static_cast<int>(random() % 5) - 2 + spread);
    for (int64_t i = 0; i < 2 * n; ++i)
      sb.data()[i] = static_cast<uint8_t>(127 + static_cast<int>(random() % 5) - 2 - spread);
  };
  for (const int spread : {0, 125}) {  // 125: 2^(sa - 127) alone leaves the range of FP32
    fill(spread);
    const View c = OpRun(OpId::k_matmul_mx).in(0, a).in(1, sa).in(2, b).in(3, sb).run_op();
    View acc = make_view(kF32, {m, n}, {2});
    OpRun(OpId::k_matmul_mx_acc).in(0, acc).in(1, a).in(2, sa).in(3, b).in(4, sb).run_op();
    const View bias = make_view(kF32, {1, n}, numbers(n));
    const View d = OpRun(OpId::k_matmul_mx_bias).in(0, a).in(1, sa).in(2, b).in(3, sb).in(4, bias).run_op();
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += std::ldexp(cell(a, {i, p}) * cell(b, {p, j}),
                            sa.data()[i * 2 + p / 32] + sb.data()[p / 32 * n + j] - 254);
        }
        EXPECT_EQ(cell(c, {i, j}), sum);
        EXPECT_EQ(cell(acc, {i, j}), sum + 2);
        EXPECT_EQ(cell(d, {i, j}), sum + static_cast<double>(j + 1));
      }
    }
  }
}

}  // namespace
}  // namespace pypto::vm::testing
