// SPDX-License-Identifier: Apache-2.0
// The timing model against the values that 05 states (H-60, H-75) and against formulas written out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/diagnostic.h"
#include "core/trace/cost.h"

namespace pypto::trace {
namespace {

using ir::Arch;
using ir::OpId;

Extent extent(int64_t rows, int64_t columns, int64_t bytes, bool contiguous = true) {
  return {rows, columns, bytes, contiguous};
}

void expect_near(double got, double wanted, double part) {
  EXPECT_NEAR(got, wanted, wanted * part) << "wanted " << wanted << " ns";
}

// H-75: times in ns as the table states them, within 0.5 %.
TEST(TraceCosts, WorkedValues) {
  const Params a2(Arch::kA2A3);
  const Params a5(Arch::kA5);
  const auto f32 = DType::kFp32;
  const auto vector = [&](const Params& p, OpId op, const Extent& e, DType t) {
    return vector_time(p, op, e, t, t);
  };
  expect_near(vector(a2, OpId::k_add, extent(64, 64, 4), f32), 82.7, 0.005);
  expect_near(vector(a2, OpId::k_add, extent(64, 60, 4, false), f32), 91.9, 0.005);
  expect_near(vector(a2, OpId::k_adds, extent(32, 128, 2), DType::kFp16), 30.8, 0.005);
  expect_near(vector(a5, OpId::k_add, extent(64, 64, 4), f32), 81.8, 0.005);
  expect_near(vector(a2, OpId::k_row_sum, extent(64, 128, 4), f32), 324.2, 0.005);
  expect_near(vector(a2, OpId::k_row_expand, extent(64, 64, 4), f32), 504.3, 0.005);
  expect_near(matmul_time(a2, 128, 64, 128, 16), 149.7, 0.005);
  expect_near(matmul_time(a2, 128, 64, 128, 32), 564.9, 0.005);
  expect_near(matmul_time(a5, 128, 64, 128, 16), 170.3, 0.005);
  const Transfer whole{16384, 16384, true};
  expect_near(transfer_time(a2, Path::kMatLeft, whole), 76.9, 0.005);
  expect_near(transfer_time(a2, Path::kMatRight, whole), 112.4, 0.005);
  expect_near(fixpipe_time(a2, 128, 128, 4), 396.5, 0.005);
  expect_near(transfer_time(a2, Path::kGmVec, whole), 176.7, 0.005);
  expect_near(transfer_time(a2, Path::kGmVec, {16384, 128, false}), 190.6, 0.005);
  expect_near(transfer_time(a2, Path::kGmMat, {32768, 32768, true}), 341.1, 0.005);
  expect_near(transfer_time(a2, Path::kVecGm, whole), 139.0, 0.005);
  expect_near(get_piece_time(a2, 4096), 730, 0.005);
  expect_near(a2.ns(Param::k_disp_serve) + a2.ns(Param::k_disp_start) + a2.ns(Param::k_disp_seen), 1500,
              0.005);
}

// H-60: measured points, within 15 %.
TEST(TraceCosts, MeasuredReads) {
  const Params p(Arch::kA2A3);
  struct Point {
    int64_t bytes;
    double synchronous_us, asynchronous_us;
  };
  for (const Point& at : {Point{4096, 0.73, 2.73}, Point{16384, 3.00, 3.23}, Point{65536, 11.6, 5.55},
                          Point{262144, 48.2, 14.9}, Point{1048576, 186, 52.5}, Point{4194304, 758, 205}}) {
    double pieces = 0;
    for (int64_t done = 0; done < at.bytes; done += 4096) pieces += get_piece_time(p, 4096);
    expect_near(pieces, at.synchronous_us * 1000, 0.15);
    expect_near(sdma_time(p, at.bytes), at.asynchronous_us * 1000, 0.15);
  }
}

// H-65: repeats, tails, empty extents.
TEST(TraceCosts, Repeats) {
  EXPECT_EQ(extent(3, 5, 4).repeats(), 1);  // 60 bytes in one go
  EXPECT_EQ(extent(3, 5, 4, false).repeats(), 3);
  EXPECT_TRUE(extent(3, 5, 4, false).tail());
  EXPECT_FALSE(extent(3, 5, 4).tail());
  EXPECT_FALSE(extent(3, 64, 4, false).tail());
  EXPECT_EQ(extent(3, 65, 4, false).repeats(), 6);
  const Params p(Arch::kA2A3);
  EXPECT_EQ(vector_time(p, OpId::k_add, extent(0, 5, 4), DType::kFp32, DType::kFp32), 0);
}

// H-66: rows of the second table, and the ones that are made of others; cycles by hand.
TEST(TraceCosts, OtherFormulas) {
  const Params p(Arch::kA2A3);
  const auto cycles = [&](OpId op, const Extent& e, DType t = DType::kFp32) {
    return vector_time(p, op, e, t, t) * 1.850;
  };
  const auto near = [](double got, double wanted) { EXPECT_NEAR(got, wanted, 1e-6 * wanted); };
  near(cycles(OpId::k_row_max, extent(64, 128, 4)), 599.8 - 12);
  near(cycles(OpId::k_row_prod, extent(64, 128, 4)), 8 * 599.8);
  near(cycles(OpId::k_row_sum, extent(4, 70, 4, false)), 44 + 15 + 15 + 4 * 8.45);
  near(cycles(OpId::k_col_sum, extent(8, 128, 4)), 15 + 8 * (19.5 + 1.7));
  near(cycles(OpId::k_col_max, extent(8, 64, 4)), 16 + 8 * 17.5);
  near(cycles(OpId::k_col_argmax, extent(8, 64, 4)), 2 * (16 + 8 * 17.5));
  near(cycles(OpId::k_row_expand_mul, extent(32, 64, 4)), 45 + 32 / 8.0 + 2 * 32);
  near(cycles(OpId::k_row_expand_expdif, extent(32, 64, 4)), (25 + 2 * 32) + (31 + 2 * 32));
  near(cycles(OpId::k_exp, extent(32, 128, 2), DType::kFp16), 31 + 4 * 32);
  near(cycles(OpId::k_exp, extent(32, 128, 2), DType::kBf16), 31 + 2 * 32);
  near(cycles(OpId::k_divs, extent(32, 64, 4)), 45 + 5 * 32);
  near(cycles(OpId::k_tile_gather, extent(8, 100, 4)), 26 + 46.6 * 8 * 2);
  near(cycles(OpId::k_tile_scatter, extent(8, 100, 4)), 30 + 4 * 800);
  near(cycles(OpId::k_transpose, extent(40, 20, 4)), 34 + 8 * 4 * 3 * 2);
  near(cycles(OpId::k_sort32, extent(2, 64, 4)), 30 + 16 * 4);
  near(cycles(OpId::k_addc, extent(32, 64, 4)), 2 * (25 + 2 * 32));
  near(mrgsort_time(p, 3, 100) * 1.850, 20 + 78 * 3 + 2 * 100);
}

// H-67: gaps between rows, and rows that only `a2a3` lists.
TEST(TraceCosts, A5) {
  const Params p(Arch::kA5);
  const auto cycles = [&](OpId op, const Extent& e, DType t, DType to) {
    return vector_time(p, op, e, t, to) * 1.650;
  };
  const auto f32 = DType::kFp32;
  EXPECT_NEAR(cycles(OpId::k_add, extent(16, 100, 4, false), f32, f32), (1.875 * 2 + 2.876) * 16 + 44.3,
              1e-6);
  EXPECT_NEAR(cycles(OpId::k_rem, extent(16, 64, 4), f32, f32), 120 + 30 + 20 / 1.6 * 16, 1e-6);
  EXPECT_NEAR(cycles(OpId::k_cast, extent(16, 64, 4), f32, DType::kFp8E4M3FN), 55.3 + 12.32 * 16, 1e-6);
  EXPECT_NEAR(cycles(OpId::k_cast, extent(16, 64, 4), f32, DType::kBf16), 52.3 + 1.32 * 16, 1e-6);
  EXPECT_NEAR(cycles(OpId::k_row_sum, extent(64, 128, 4), f32, f32), 599.8, 1e-6);
  EXPECT_NEAR(fixpipe_time(p, 128, 128, 4) * 1.650, 343.4 + 128 * 4.59, 1e-6);
  EXPECT_NEAR(matmul_time(p, 16, 64, 16, 4) * 1.650, 26, 1e-6);
}

// H-69: the odd part of a row's blocks costs extra.
TEST(TraceCosts, FixpipeOddRows) {
  const Params p(Arch::kA2A3);
  EXPECT_NEAR(fixpipe_time(p, 16, 48, 4) * 1.850, 164 + 16 * (4.45 + 2.6 * 2), 1e-6);  // 6 blocks: 3
}

// Extents and contiguity from views (H-65, H-68).
TEST(TraceCosts, ViewsOfTiles) {
  vm::View whole;
  whole.dtype = DType::kFp32;
  const int64_t shape[] = {64, 64};
  whole.set_packed(2, shape);
  vm::View part = whole;
  part.valid[1] = 60;
  const vm::View* operands[] = {&whole, &part};
  EXPECT_TRUE(extent_of(std::span(operands, 1)).contiguous);
  const vm::View* both[] = {&part, &part};
  const Extent e = extent_of(both);
  EXPECT_FALSE(e.contiguous);
  EXPECT_EQ(e.columns, 60);
  EXPECT_EQ(e.rows, 64);
  const Transfer t = transfer_of(part);
  EXPECT_EQ(t.bytes, 64 * 60 * 4);
  EXPECT_EQ(t.row, 240);
  EXPECT_FALSE(t.adjacent);
  EXPECT_TRUE(transfer_of(whole).adjacent);
  EXPECT_NEAR(row_factor(Params(Arch::kA2A3), t), 1 + 0.30 * (1 - 240 / 512.0), 1e-9);
  EXPECT_EQ(row_factor(Params(Arch::kA5), t), 1.0);  // its granularity is 128 bytes
}

// H-76: replaced values, errors that name the key.
TEST(TraceCosts, Overrides) {
  Params p(Arch::kA2A3);
  p.set("op.add.k", 4);
  EXPECT_NEAR(vector_time(p, OpId::k_add, extent(64, 64, 4), DType::kFp32, DType::kFp32) * 1.850, 25 + 4 * 64,
              1e-9);
  p.set("clock.mhz", 1000);
  EXPECT_NEAR(p.cycles(7), 7.0, 1e-12);
  const auto refused = [&](const char* key, double value, const char* text) {
    try {
      p.set(key, value);
      ADD_FAILURE() << key << " was accepted";
    } catch (const Failure& f) {
      EXPECT_NE(f.diagnostic().message.find(key), std::string::npos) << f.diagnostic().message;
      EXPECT_NE(f.diagnostic().message.find(text), std::string::npos) << f.diagnostic().message;
    }
  };
  refused("gm_vec.beta", 0, "must be positive");
  refused("gm_vec.beta", -3, "must be positive");
  refused("op.add.a", 1, "unknown key");  // a5 only
  refused("gm_vec.betta", 1, "unknown key");
  refused("disp.seen", std::nan(""), "finite");
  Params a5(Arch::kA5);
  a5.set("op.add.a", 2);
  std::set<std::string> keys;
  for (const auto& row : a5.rows()) EXPECT_TRUE(keys.insert(row.key).second) << row.key;
  for (const char* key : {"gm_vec.alpha", "gm_vec.beta", "op.add.k", "op.add.b", "op.exp.fp16.k", "mm.head",
                          "mm.passes.fp32", "fix.fixed", "fix.row", "fix.rate", "fix.odd", "clock.mhz"})
    EXPECT_TRUE(keys.count(key)) << key;
}

}  // namespace
}  // namespace pypto::trace
