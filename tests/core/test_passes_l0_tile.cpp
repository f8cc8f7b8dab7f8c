// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/base/diagnostic.h"
#include "core/passes/l0_tile.h"

namespace pypto::passes {
namespace {

struct Answer {
  int64_t bytes, M, K, N;
  int twice;  ///< double buffer allowed: 0, 1, or 2 for both settings
  int64_t m, n, k;
  Stationarity stationarity;
  bool double_buffered;
  int holds_a;  ///< -1: not stated
};

// 04 section 23: the answers to reproduce.
const Answer kAnswers[] = {
    {4, 16, 128, 128, 2, 16, 128, 64, Stationarity::kOutput, false, -1},
    {4, 64, 192, 128, 2, 64, 128, 64, Stationarity::kOutput, false, -1},
    {4, 64, 384, 256, 2, 64, 256, 32, Stationarity::kOutput, false, -1},
    {4, 128, 384, 64, 2, 128, 64, 64, Stationarity::kOutput, false, -1},
    {4, 160, 64, 160, 1, 80, 128, 64, Stationarity::kOutput, true, -1},
    {4, 144, 64, 144, 1, 48, 128, 64, Stationarity::kOutput, true, -1},
    {4, 256, 64, 256, 1, 32, 256, 64, Stationarity::kB, true, -1},
    {4, 448, 64, 448, 1, 112, 128, 64, Stationarity::kOutput, true, -1},
    {4, 320, 64, 320, 1, 64, 128, 64, Stationarity::kOutput, true, -1},
    {4, 384, 64, 256, 1, 32, 256, 64, Stationarity::kB, true, -1},
    {4, 16, 64, 256, 1, 16, 128, 64, Stationarity::kOutput, true, 1},
    {4, 256, 64, 16, 1, 128, 16, 64, Stationarity::kOutput, true, 0},
    {2, 256, 64, 256, 1, 64, 256, 64, Stationarity::kOutput, true, -1},
    {2, 256, 128, 544, 0, 256, 128, 128, Stationarity::kA, false, -1},
    {2, 48, 352, 96, 1, 48, 32, 352, Stationarity::kA, true, -1},
    {2, 192, 64, 512, 0, 64, 512, 64, Stationarity::kB, false, -1},
    {2, 64, 80, 256, 1, 32, 256, 80, Stationarity::kB, true, -1},
};

TEST(L0Tile, AnswersOfTheTable) {  // 04 TIL-1 to TIL-8
  for (const auto& a : kAnswers) {
    for (int d = 0; d < 2; ++d) {
      if (a.twice != 2 && a.twice != d) continue;
      L0TileConfig c = l0_config(ir::Arch::kA2A3, false);
      c.M = a.M;
      c.N = a.N;
      c.K = a.K;
      c.bytes_a = c.bytes_b = a.bytes;
      c.allow_double_buffer_c = d == 1;
      const L0TileResult r = choose_l0_tile(c);
      SCOPED_TRACE(testing::Message()
                   << "bytes " << a.bytes << " M,K,N " << a.M << "," << a.K << "," << a.N << " D " << d);
      EXPECT_EQ(r.m, a.m);
      EXPECT_EQ(r.n, a.n);
      EXPECT_EQ(r.k, a.k);
      EXPECT_EQ(r.stationarity, a.stationarity);
      EXPECT_EQ(r.double_buffer_c, a.double_buffered);
      if (a.holds_a >= 0) EXPECT_EQ(r.os_holds_a, a.holds_a == 1);
      EXPECT_EQ(r.padded_compute_volume,
                (a.M + r.m - 1) / r.m * r.m * ((a.N + r.n - 1) / r.n * r.n) * ((a.K + r.k - 1) / r.k * r.k));
    }
  }
}

TEST(L0Tile, NamesTheFieldThatIsNotPositive) {  // 04 TIL-8
  L0TileConfig c = l0_config(ir::Arch::kA2A3, false);
  c.M = 16;
  c.N = 16;
  try {
    choose_l0_tile(c);
    FAIL() << "K = 0 was accepted";
  } catch (const Failure& f) {
    EXPECT_EQ(f.diagnostic().cls, ErrorClass::kValueError);
    EXPECT_NE(f.diagnostic().message.find("K must be positive"), std::string::npos);
  }
}

TEST(L0Tile, Int32AccumulatorsAreAlignedTo32Rows) {  // 04 section 23, 05 H-26
  EXPECT_EQ(l0_config(ir::Arch::kA2A3, true).l0c_align_m, 32);
  EXPECT_EQ(l0_config(ir::Arch::kA5, true).l0c_align_m, 16);
}

}  // namespace
}  // namespace pypto::passes
