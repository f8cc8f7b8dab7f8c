// SPDX-License-Identifier: Apache-2.0

// Strip chains give the bits that their operations give one by one (02 O-311).
#include <cmath>
#include <cstring>
#include <limits>

#include "core/vm/kernels/chain.h"
#include "tests/core/kernels_support.h"

namespace pypto::vm {
namespace {

using namespace testing;
using ir::OpId;

class FakeHost : public ChainHost {
 public:
  View alloc(DType dtype, std::span<const int64_t> shape, bool zero) override {
    View v;
    v.dtype = dtype;
    v.set_packed(static_cast<int>(shape.size()), shape.data());
    v.buffer = make_buffer(v.elements() * dtype_bytes(dtype));
    if (!zero) std::memset(v.buffer->data, 0xa5, static_cast<size_t>(v.buffer->bytes));
    return v;
  }
  void access(const View&) override { ++reads; }
  void warn(const char*, std::string text) override { warnings.push_back(std::move(text)); }
  int reads = 0;
  std::vector<std::string> warnings;
};

struct Program {
  Chain chain;
  std::vector<View> inputs;
  std::vector<Scalar> scalars;

  int32_t input(View v) {
    inputs.push_back(std::move(v));
    chain.inputs = static_cast<int32_t>(inputs.size());
    return chain.inputs - 1;
  }
  /// Inputs must be complete before the first step.
  int32_t step(OpId op, DType dtype, int32_t lhs, int32_t rhs = -1) {
    ChainStep s;
    s.op = op;
    s.dtype = dtype;
    s.lhs = lhs;
    s.rhs = rhs;
    chain.steps.push_back(s);
    return chain.inputs + static_cast<int32_t>(chain.steps.size()) - 1;
  }
  int32_t with_scalar(OpId op, DType dtype, int32_t lhs, double value, DType scalar) {
    const int32_t v = step(op, dtype, lhs);
    chain.steps.back().scalar = static_cast<int32_t>(scalars.size());
    scalars.push_back(is_float(scalar) ? scalar_of(value) : scalar_of(static_cast<int64_t>(value)));
    chain.scalars.push_back(scalar);
    return v;
  }

  /// The steps through the ordinary executors.
  std::vector<View> one_by_one() const {
    std::vector<View> values = inputs;
    for (const ChainStep& s : chain.steps) {
      FakeCall call(s.op, s.dtype);
      call.arg(0, values[static_cast<size_t>(s.lhs)]);
      if (s.rhs >= 0) call.arg(1, values[static_cast<size_t>(s.rhs)]);
      if (s.scalar >= 0) {
        call.arg(1, scalars[static_cast<size_t>(s.scalar)], chain.scalars[static_cast<size_t>(s.scalar)]);
      }
      if (s.op == OpId::k_cast) call.attr(ir::AttrKey::k_mode, static_cast<int64_t>(s.mode));
      values.push_back(call.run());
    }
    return values;
  }

  void check(bool strips) {
    std::vector<const View*> pointers;
    for (const View& v : inputs) pointers.push_back(&v);
    EXPECT_EQ(chain_runs_in_strips(chain, pointers), strips);
    for (const ChainStep& s : chain.steps) {
      auto dtype = [&](int32_t v) {
        if (v < 0) return DType::kNone;
        return v < chain.inputs ? inputs[static_cast<size_t>(v)].dtype
                                : chain.steps[static_cast<size_t>(v - chain.inputs)].dtype;
      };
      EXPECT_TRUE(chain_supports(s.op, dtype(s.lhs), dtype(s.rhs),
                                 s.scalar >= 0 ? chain.scalars[static_cast<size_t>(s.scalar)] : DType::kNone,
                                 s.dtype))
          << ir::op_row(s.op).name;
    }
    const std::vector<View> expected = one_by_one();
    for_each_target([&] {
      FakeHost host;
      std::vector<View> results(chain.outputs.size());
      run_chain(chain, pointers, scalars, host, results);
      for (size_t o = 0; o < results.size(); ++o)
        compare(results[o], expected[static_cast<size_t>(chain.outputs[o])]);
      // Into given storage: rows of a wider array.
      std::vector<View> targets;
      for (const int32_t v : chain.outputs) {
        const View& e = expected[static_cast<size_t>(v)];
        View t;
        t.dtype = e.dtype;
        t.set_packed(e.rank, e.shape);
        if (e.rank == 2) t.stride[0] += 5;
        t.buffer = make_buffer((t.elements() + (e.rank == 2 ? 5 * e.shape[0] : 0)) * dtype_bytes(e.dtype));
        targets.push_back(t);
      }
      run_chain(chain, pointers, scalars, host, targets);
      for (size_t o = 0; o < targets.size(); ++o) {
        const View& e = expected[static_cast<size_t>(chain.outputs[o])];
        View t = targets[o];
        std::copy(e.valid, e.valid + e.rank, t.valid);
        EXPECT_EQ(bits(t), bits(e));
      }
    });
  }

  static std::vector<std::vector<uint8_t>> bits(const View& v) {
    std::vector<std::vector<uint8_t>> out;
    const auto width = static_cast<size_t>(dtype_bytes(v.dtype));
    std::vector<int64_t> at(static_cast<size_t>(v.rank), 0);
    if (v.valid_elements() == 0) return out;
    for (;;) {
      int64_t offset = 0;
      for (int a = 0; a < v.rank; ++a) offset += at[static_cast<size_t>(a)] * v.stride[a];
      const uint8_t* p = v.data() + offset * static_cast<int64_t>(width);
      out.emplace_back(p, p + width);
      int a = v.rank - 1;
      for (; a >= 0; --a) {
        if (++at[static_cast<size_t>(a)] < v.valid[a]) break;
        at[static_cast<size_t>(a)] = 0;
      }
      if (a < 0) return out;
    }
  }

  static void compare(const View& got, const View& want) {
    ASSERT_EQ(got.dtype, want.dtype);
    ASSERT_EQ(shape_list(got), shape_list(want));
    ASSERT_EQ(valid_list(got), valid_list(want));
    ASSERT_EQ(got.fully_valid, want.fully_valid);
    ASSERT_EQ(bits(got), bits(want));
  }
};

std::vector<double> wave(int64_t n, double scale, int64_t phase) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(scale * static_cast<double>((i * 37 + phase * 11) % 101 - 50) / 17.0);
  return out;
}

View matrix(DType dtype, int64_t rows, int64_t columns, int64_t phase, std::vector<int64_t> valid = {}) {
  View v = make_view(dtype, {rows, columns}, wave(rows * columns, 1.0, phase));
  return valid.empty() ? v : with_valid(v, std::move(valid));
}

const std::vector<std::pair<int64_t, int64_t>> kShapes = {
    {1, 1}, {1, 16}, {3, 5}, {8, 64}, {16, 47}, {33, 130}, {5, 1024}, {2, 2500}, {64, 64}, {300, 7}};

// Plain element-wise chain with scalars, every float dtype.
TEST(KernelsChain, Elementwise) {
  for (const DType d : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    for (const auto& [m, n] : kShapes) {
      Program p;
      const auto a = p.input(matrix(d, m, n, 1)), b = p.input(matrix(d, m, n, 2)),
                 c = p.input(matrix(d, m, n, 3));
      const auto s = p.step(OpId::k_add, d, a, b);
      const auto t = p.step(OpId::k_mul, d, s, c);
      const auto u = p.with_scalar(OpId::k_muls, d, t, 0.3, DType::kFp32);
      const auto e = p.step(OpId::k_exp, d, u);
      const auto r = p.step(OpId::k_sub, d, e, a);
      const auto q = p.step(OpId::k_mul, d, r, r);
      p.chain.outputs = {t, q};
      p.check(true);
    }
  }
}

// Softmax over rows: reductions and row vectors inside the chain, partial valid regions.
TEST(KernelsChain, Softmax) {
  for (const DType d : {DType::kFp32, DType::kFp16}) {
    for (const auto& [m, n] : kShapes) {
      if (n == 1) continue;
      for (const bool partial : {false, true}) {
        Program p;
        const auto x = p.input(partial ? matrix(d, m, n, 4, {(m + 1) / 2, n - n / 3}) : matrix(d, m, n, 4));
        const auto top = p.step(OpId::k_row_max, d, x);
        const auto e = p.step(OpId::k_row_expand_expdif, d, x, top);
        const auto sum = p.step(OpId::k_row_sum, d, e);
        const auto inverse = p.step(OpId::k_recip, d, sum);
        const auto y = p.step(OpId::k_row_expand_mul, d, e, inverse);
        p.chain.outputs = {y, sum};
        p.check(true);
      }
    }
  }
}

// Rows long enough for whole blocks, where a mask, infinities and NaN leave zeros and the like among the
// exponentials; targets at every place of a cache line, in rows that the exponentials pass through first.
TEST(KernelsChain, LongRowsWithSpecialValues) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const int64_t n : {200, 1031, 4099}) {
    constexpr int64_t kRows = 9;
    std::vector<double> x = wave(kRows * n, 1.0, 3);
    const auto row = [&](int64_t r) { return x.begin() + r * n; };
    std::fill(row(1) + n / 3, row(2), -kInfinity);
    for (int64_t i = 0; i < n; i += 3) row(2)[i] = -1e30;
    row(3)[n - 2] = std::nan("");
    std::fill(row(4), row(5), -kInfinity);  // 0 / 0
    row(5)[17] = kInfinity;
    for (int64_t i = 0; i < n; ++i) row(6)[i] = -static_cast<double>(i) / 9;  // down through the subnormals
    for (int64_t i = 0; i < n; ++i) row(7)[i] = i % 2 != 0 ? 0.0 : -0.0;
    Program p;
    const auto a = p.input(make_view(DType::kFp32, {kRows, n}, x));
    const auto top = p.step(OpId::k_row_max, DType::kFp32, a);
    const auto low = p.step(OpId::k_row_min, DType::kFp32, a);
    const auto shifted = p.step(OpId::k_row_expand_sub, DType::kFp32, a, top);
    const auto e = p.step(OpId::k_exp, DType::kFp32, shifted);
    const auto sum = p.step(OpId::k_row_sum, DType::kFp32, e);
    const auto y = p.step(OpId::k_row_expand_div, DType::kFp32, e, sum);
    const auto signs = p.step(OpId::k_row_expand_div, DType::kFp32, a, sum);
    p.chain.outputs = {y, top, low, sum, signs};
    p.check(true);
    const std::vector<View> expected = p.one_by_one();
    for (const int64_t place : {0, 1, 4, 15}) {
      View target;
      target.dtype = DType::kFp32;
      const int64_t shape[2] = {kRows, n};
      target.set_packed(2, shape);
      target.buffer = make_buffer((kRows * n + place) * 4, BufferKind::kGlobal);
      target.offset = place * 4;
      Program q = p;
      q.chain.outputs = {y};
      const View* pointers[1] = {&q.inputs[0]};
      for_each_target([&] {
        FakeHost host;
        std::vector<View> results = {target};
        run_chain(q.chain, pointers, q.scalars, host, results);
        EXPECT_EQ(Program::bits(target), Program::bits(expected[static_cast<size_t>(y)])) << place;
      });
    }
  }
}

// Steps that come back to an older value: it is read from where it was stored within the same pass.
TEST(KernelsChain, OlderValuesWithinOnePass) {
  for (const DType d : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    for (const auto& [m, n] : kShapes) {
      Program p;
      const auto x = p.input(matrix(d, m, n, 6));
      const auto column = p.input(make_view(d, {m, 1}, wave(m, 0.5, 7)));
      const auto twice = p.with_scalar(OpId::k_muls, d, x, 0.5, DType::kFp32);
      const auto e = p.step(OpId::k_exp, d, twice);
      const auto low = p.with_scalar(OpId::k_subs, d, e, 1.0, DType::kFp32);
      const auto high = p.with_scalar(OpId::k_adds, d, e, 1.0, DType::kFp32);
      const auto tanh = p.step(OpId::k_div, d, low, high);
      const auto none = p.step(OpId::k_sub, d, e, e);
      const auto square = p.step(OpId::k_mul, d, twice, twice);
      const auto wide = p.step(OpId::k_cast, DType::kFp32, high);
      const auto spread = n == 1 ? square : p.step(OpId::k_row_expand_mul, d, square, column);
      const auto other = p.step(OpId::k_maximum, d, low, spread);
      const auto sum = p.step(OpId::k_add, d, none, tanh);
      p.chain.outputs = {sum, other, wide, tanh};
      p.check(true);
    }
  }
}

// O-216: a chain may end in the rows that it starts from.
TEST(KernelsChain, InPlace) {
  for (const auto& [m, n] : kShapes) {
    for (const bool reads_late : {false, true}) {
      Program p;
      const auto x = p.input(make_view(DType::kFp32, {m, n}, wave(m * n, 1.0, 8), BufferKind::kGlobal));
      const auto t = p.with_scalar(OpId::k_muls, DType::kFp32, x, 0.5, DType::kFp32);
      const auto e = p.step(OpId::k_exp, DType::kFp32, t);
      const auto sum = p.step(OpId::k_row_sum, DType::kFp32, e);
      const auto s = p.step(OpId::k_add, DType::kFp32, e, reads_late ? x : t);
      const auto y = p.step(OpId::k_row_expand_div, DType::kFp32, s, sum);
      p.chain.outputs = {y};
      const View before = p.inputs[0];
      const auto want = Program::bits(p.one_by_one()[static_cast<size_t>(y)]);
      for_each_target([&] {
        p.inputs[0] = make_view(DType::kFp32, {m, n}, cells(before), BufferKind::kGlobal);
        FakeHost host;
        std::vector<View> results = {p.inputs[0]};
        const View* pointers[1] = {&p.inputs[0]};
        run_chain(p.chain, pointers, p.scalars, host, results);
        EXPECT_EQ(Program::bits(p.inputs[0]), want) << m << " x " << n;
      });
    }
  }
}

// RMS norm: casts, a column of statistics, a weight row.
TEST(KernelsChain, NormWithCasts) {
  for (const auto& [m, n] : kShapes) {
    if (n == 1) continue;
    Program p;
    const auto x = p.input(matrix(DType::kBf16, m, n, 5));
    const auto w = p.input(make_view(DType::kFp32, {1, n}, wave(n, 0.5, 6)));
    const auto wide = p.step(OpId::k_cast, DType::kFp32, x);
    const auto square = p.step(OpId::k_mul, DType::kFp32, wide, wide);
    const auto sum = p.step(OpId::k_row_sum, DType::kFp32, square);
    const auto mean =
        p.with_scalar(OpId::k_muls, DType::kFp32, sum, 1.0 / static_cast<double>(n), DType::kFp32);
    const auto shifted = p.with_scalar(OpId::k_adds, DType::kFp32, mean, 1e-5, DType::kFp32);
    const auto scale = p.step(OpId::k_rsqrt, DType::kFp32, shifted);
    const auto normal = p.step(OpId::k_row_expand_mul, DType::kFp32, wide, scale);
    const auto weighted = p.step(OpId::k_col_expand_mul, DType::kFp32, normal, w);
    const auto out = p.step(OpId::k_cast, DType::kBf16, weighted);
    p.chain.steps.back().mode = CastMode::kRint;
    p.chain.outputs = {out};
    p.check(true);
  }
}

// NumPy broadcasting in plain operations; operands of mixed dtypes; integers.
TEST(KernelsChain, BroadcastAndPromotion) {
  for (const auto& [m, n] : kShapes) {
    if (m == 1 || n == 1) continue;
    Program p;
    const auto a = p.input(matrix(DType::kInt32, m, n, 7));
    const auto column = p.input(make_view(DType::kInt32, {m, 1}, wave(m, 3, 8)));
    const auto row = p.input(make_view(DType::kFp32, {1, n}, wave(n, 1, 9)));
    const auto one = p.input(make_view(DType::kFp32, {1, 1}, {0.25}));
    const auto s = p.step(OpId::k_sub, DType::kInt32, column, a);
    const auto t = p.step(OpId::k_add, DType::kFp32, s, row);
    const auto u = p.step(OpId::k_mul, DType::kFp32, t, one);
    const auto v = p.step(OpId::k_maximum, DType::kFp32, u, column);
    const auto w = p.with_scalar(OpId::k_minimum, DType::kFp32, v, 7, DType::kInt32);
    const auto x = p.step(OpId::k_add, DType::kFp32, row, column);
    const auto y = p.step(OpId::k_row_expand, DType::kInt32, a, column);
    const auto z = p.step(OpId::k_col_expand, DType::kFp32, w, row);
    p.chain.outputs = {s, w, x, y, z};
    p.check(true);
  }
}

// Values without rows are computed once; a chain of shapes that do not fit runs one by one with the same
// results.
TEST(KernelsChain, RowOnlyStepsAndFallback) {
  Program p;
  const auto a = p.input(matrix(DType::kFp32, 9, 40, 1));
  const auto g = p.input(make_view(DType::kFp32, {1, 40}, wave(40, 1, 2)));
  const auto g1 = p.with_scalar(OpId::k_adds, DType::kFp32, g, 1.0, DType::kFp32);
  const auto y = p.step(OpId::k_col_expand_mul, DType::kFp32, a, g1);
  const auto z = p.step(OpId::k_neg, DType::kFp32, y);
  p.chain.outputs = {z, g1};
  p.check(true);

  Program q;  // two unrelated shapes
  const auto b = q.input(matrix(DType::kFp32, 9, 40, 1));
  const auto c = q.input(matrix(DType::kFp32, 5, 7, 2));
  const auto d = q.step(OpId::k_neg, DType::kFp32, b);
  const auto e = q.step(OpId::k_abs, DType::kFp32, c);
  q.chain.outputs = {d, e};
  q.check(false);

  Program r;  // regions that differ
  const auto f = r.input(matrix(DType::kFp32, 9, 40, 1, {9, 20}));
  const auto h = r.input(matrix(DType::kFp32, 9, 40, 2, {4, 40}));
  const auto i = r.step(OpId::k_neg, DType::kFp32, f);
  const auto j = r.step(OpId::k_abs, DType::kFp32, h);
  const auto k = r.step(OpId::k_add, DType::kFp32, i, j);
  r.chain.outputs = {k, j};
  r.check(false);
}

// One step of online softmax: [M, N] scores, [M, 1] statistics and an [M, D] accumulator in one run of
// operations. The chain is cut where the matrix changes.
TEST(KernelsChain, SeveralMatrices) {
  for (const int64_t valid_rows : {12, 7}) {
    Program p;
    const DType d = DType::kFp32;
    const auto scores = p.input(matrix(d, 12, 70, 1, {valid_rows, 70}));
    const auto old_top = p.input(with_valid(make_view(d, {12, 1}, wave(12, 1, 2)), {valid_rows, 1}));
    const auto old_sum = p.input(with_valid(make_view(d, {12, 1}, wave(12, 1, 3)), {valid_rows, 1}));
    const auto acc = p.input(matrix(d, 12, 33, 4, {valid_rows, 33}));
    const auto top = p.step(OpId::k_row_max, d, scores);
    const auto new_top = p.step(OpId::k_maximum, d, old_top, top);
    const auto change = p.step(OpId::k_sub, d, old_top, new_top);
    const auto alpha = p.step(OpId::k_exp, d, change);
    const auto weights = p.step(OpId::k_row_expand_expdif, d, scores, new_top);
    const auto sum = p.step(OpId::k_row_sum, d, weights);
    const auto scaled_sum = p.step(OpId::k_mul, d, old_sum, alpha);
    const auto new_sum = p.step(OpId::k_add, d, scaled_sum, sum);
    const auto scaled = p.step(OpId::k_row_expand_mul, d, acc, alpha);
    const auto half = p.with_scalar(OpId::k_muls, d, scaled, 0.5, d);
    const auto low = p.step(OpId::k_cast, DType::kBf16, weights);
    p.chain.outputs = {new_top, new_sum, half, low, weights};
    p.check(false);
  }
}

// O-218: scratch operands never influence a result, and that nobody wrote them means nothing.
TEST(KernelsChain, ScratchIsIgnored) {
  Program p;
  View scratch = matrix(DType::kFp32, 6, 20, 2);
  scratch.buffer->written.all = false;
  p.input(make_view(DType::kFp32, {6, 20}, {1, 4, 9, 16, 2.25}));
  p.input(scratch);
  const auto r = p.step(OpId::k_tile_rsqrt, DType::kFp32, 0, 1);
  const auto s = p.step(OpId::k_row_sum, DType::kFp32, r, 1);
  p.chain.outputs = {r, s};
  p.check(true);
  FakeHost host;
  std::vector<View> results(2);
  const View* pointers[2] = {&p.inputs[0], &p.inputs[1]};
  run_chain(p.chain, pointers, p.scalars, host, results);
  EXPECT_TRUE(results[0].buffer->written.all);
  EXPECT_TRUE(results[1].buffer->written.all);
  EXPECT_EQ(cells(results[0])[3], 0.25);
}

// Higher ranks, and operands with a row pitch or in global memory.
TEST(KernelsChain, RanksAndPitches) {
  Program p;
  const View cube = make_view(DType::kFp32, {3, 4, 50}, wave(600, 1, 3));
  const auto a = p.input(cube);
  const auto c = p.input(make_view(DType::kFp32, {3, 4, 1}, wave(12, 1, 4)));
  const auto w = p.input(make_view(DType::kFp32, {50}, wave(50, 1, 5)));
  const auto s = p.step(OpId::k_row_expand_sub, DType::kFp32, a, c);
  const auto t = p.step(OpId::k_mul, DType::kFp32, s, w);
  const auto u = p.step(OpId::k_row_max, DType::kFp32, t);
  p.chain.outputs = {t, u};
  p.check(true);

  Program q;
  View window = make_view(DType::kFp32, {40, 100}, wave(4000, 1, 6), BufferKind::kGlobal);
  window.shape[1] = window.valid[1] = 30;
  window.offset = 4 * 17;
  const auto b = q.input(window);
  const auto d = q.input(matrix(DType::kFp32, 40, 30, 7));
  const auto e = q.step(OpId::k_add, DType::kFp32, b, d);
  const auto f = q.step(OpId::k_relu, DType::kFp32, e);
  q.chain.outputs = {f};
  q.check(true);
}

// A folded store may target the memory that an input reads (O-216).
TEST(KernelsChain, TargetOverlapsInput) {
  const View whole = make_view(DType::kFp32, {9, 64}, wave(9 * 64, 1, 1), BufferKind::kGlobal);
  View upper = whole, lower = whole;
  upper.shape[0] = upper.valid[0] = 8;
  lower.shape[0] = lower.valid[0] = 8;
  lower.offset = 64 * 4;
  Program p;
  p.inputs = {upper, upper};
  p.chain.inputs = 2;
  const auto s = p.with_scalar(OpId::k_adds, DType::kFp32, 0, 1.0, DType::kFp32);
  const auto t = p.step(OpId::k_mul, DType::kFp32, s, 1);
  p.chain.outputs = {t};
  const std::vector<double> want = cells(p.one_by_one().back());
  FakeHost host;
  std::vector<View> results = {lower};
  const View* pointers[2] = {&p.inputs[0], &p.inputs[1]};
  run_chain(p.chain, pointers, p.scalars, host, results);
  EXPECT_EQ(cells(lower), want);
}

// O-209: what rests on storage that nothing wrote stays unwritten.
TEST(KernelsChain, UnwrittenInputs) {
  Program p;
  const View a = matrix(DType::kFp32, 4, 8, 1);
  View b = matrix(DType::kFp32, 4, 8, 2);
  b.buffer->written.all = false;
  p.input(a);
  p.input(b);
  const auto x = p.step(OpId::k_neg, DType::kFp32, 0);
  const auto y = p.step(OpId::k_add, DType::kFp32, x, 1);
  p.chain.outputs = {x, y};
  FakeHost host;
  std::vector<View> results(2);
  const View* pointers[2] = {&p.inputs[0], &p.inputs[1]};
  run_chain(p.chain, pointers, p.scalars, host, results);
  EXPECT_TRUE(results[0].buffer->written.all);
  EXPECT_FALSE(results[1].buffer->written.all);
}

}  // namespace
}  // namespace pypto::vm
