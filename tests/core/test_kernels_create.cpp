// SPDX-License-Identifier: Apache-2.0

// Creation and generation (02 section 5) and `cast` (section 11).
#include <cmath>

#include "tests/core/kernels_support.h"

namespace pypto::vm {
namespace {

using namespace testing;
using ir::AttrKey;
using ir::OpId;

// O-502, O-209: zero-filled and unwritten.
TEST(KernelsCreate, Tile) {
  const View t = FakeCall(OpId::k_create_tile, DType::kFp16).list_arg(0, {3, 16}).run();
  EXPECT_EQ(cells(t), std::vector<double>(48, 0.0));
  EXPECT_FALSE(t.buffer->written.all);
}

// O-504
TEST(KernelsCreate, Full) {
  EXPECT_EQ(cells(FakeCall(OpId::k_full, DType::kFp32).list_arg(0, {2, 3}).attr(AttrKey::k_value, 0.1).run()),
            std::vector<double>(6, static_cast<double>(0.1f)));
  EXPECT_EQ(cells(FakeCall(OpId::k_tile_full, DType::kInt8)
                      .list_arg(0, {1, 5})
                      .attr(AttrKey::k_value, int64_t{-3})
                      .run()),
            std::vector<double>(5, -3.0));
  EXPECT_EQ(cells(FakeCall(OpId::k_tile_full, DType::kFp16)
                      .list_arg(0, {2, 2})
                      .attr(AttrKey::k_value, int64_t{2049})
                      .run()),
            std::vector<double>(4, 2048.0));
  EXPECT_EQ(
      cells(FakeCall(OpId::k_full, DType::kFp32).list_arg(0, {1, 2}).attr(AttrKey::k_value, -INFINITY).run()),
      std::vector<double>(2, -INFINITY));
}

// O-505
TEST(KernelsCreate, Arange) {
  EXPECT_EQ(cells(FakeCall(OpId::k_arange, DType::kInt32)
                      .arg(0, scalar_of(int64_t{5}), DType::kInt32)
                      .list_arg(1, {1, 4})
                      .run()),
            (std::vector<double>{5, 6, 7, 8}));
  EXPECT_EQ(cells(FakeCall(OpId::k_arange, DType::kUInt16)
                      .arg(0, scalar_of(int64_t{2}), DType::kUInt16)
                      .list_arg(1, {1, 1, 4})
                      .attr(AttrKey::k_descending, int64_t{1})
                      .run()),
            (std::vector<double>{2, 1, 0, 65535}));
  EXPECT_EQ(cells(FakeCall(OpId::k_tile_arange, DType::kInt16)
                      .arg(0, scalar_of(int64_t{32767}), DType::kInt16)
                      .list_arg(1, {1, 2})
                      .run()),
            (std::vector<double>{32767, -32768}));
}

// O-506
TEST(KernelsCreate, Tri) {
  for (const bool upper : {false, true}) {
    for (int64_t diagonal = -5; diagonal <= 5; ++diagonal) {
      const View t = FakeCall(OpId::k_tri, DType::kFp16)
                         .arg(0, scalar_of(diagonal), DType::kInt32)
                         .list_arg(1, {4, 6})
                         .list_arg(2, {3, 5})
                         .attr(AttrKey::k_upper, int64_t{upper})
                         .run();
      EXPECT_EQ(valid_list(t), (std::vector<int64_t>{3, 5}));
      const auto got = cells(t);
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 5; ++j) {
          const bool one = upper ? j >= i + diagonal : j <= i + diagonal;
          EXPECT_EQ(got[static_cast<size_t>(i * 5 + j)], one ? 1 : 0) << diagonal << " " << i << " " << j;
        }
      }
    }
  }
}

// O-507, B-35: published Philox-4x32 answers, the chunk rule and the running counter.
TEST(KernelsCreate, Random) {
  auto run = [](std::vector<uint32_t> seed, std::vector<int64_t> shape, int64_t rounds,
                std::vector<int64_t> valid = {}) {
    FakeCall call(OpId::k_tile_random, DType::kUInt32);
    for (int i = 0; i < 6; ++i)
      call.arg(i, scalar_of(static_cast<int64_t>(static_cast<int32_t>(seed[static_cast<size_t>(i)]))),
               DType::kInt32);
    call.list_arg(6, shape).attr(AttrKey::k_rounds, rounds);
    if (!valid.empty()) call.list_arg(7, valid);
    return cells(call.run());
  };
  const auto zero = run({0, 0, 0, 0, 0, 0}, {1, 256}, 10);
  EXPECT_EQ(zero[0], 0x6627e8d5u);
  EXPECT_EQ(zero[64], 0xe169c58du);
  EXPECT_EQ(zero[128], 0xbc57ac4cu);
  EXPECT_EQ(zero[192], 0x9b00dbd8u);
  const auto ones = run({~0u, ~0u, ~0u, ~0u, ~0u, ~0u}, {1, 256}, 10);
  EXPECT_EQ(ones[0], 0x408f276du);
  EXPECT_EQ(ones[64], 0x41c83b0eu);
  EXPECT_EQ(ones[128], 0xa20bc7c6u);
  EXPECT_EQ(ones[192], 0x6d5451fdu);
  EXPECT_EQ(ones[1], run({~0u, ~0u, 0, 0, 0, 0}, {1, 256}, 10)[0]) << "the counter wraps over 128 bits";
  // 300 columns, two rows, 7 rounds: chunk 1 of row 0 starts 75 later, row 1 150 later.
  const auto wide = run({1, 2, 3, 4, 5, 6}, {2, 300}, 7);
  const auto chunk1 = run({1, 2, 3 + 75, 4, 5, 6}, {1, 256}, 7);
  const auto row1 = run({1, 2, 3 + 150, 4, 5, 6}, {1, 256}, 7);
  for (size_t j = 0; j < 44; ++j) EXPECT_EQ(wide[256 + j], chunk1[j]);
  for (size_t j = 0; j < 256; ++j) EXPECT_EQ(wide[300 + j], row1[j]);
  const auto part = run({1, 2, 3, 4, 5, 6}, {2, 300}, 7, {2, 70});
  for (size_t j = 0; j < 70; ++j) {
    EXPECT_EQ(part[j], wide[j]);
    EXPECT_EQ(part[70 + j], wide[300 + j]);
  }
}

std::vector<double> cast_cells(DType from, DType to, std::vector<double> x, ir::AttrValue mode) {
  const auto n = static_cast<int64_t>(x.size());
  return cells(FakeCall(OpId::k_cast, to)
                   .arg(0, make_view(from, {1, n}, x))
                   .attr(AttrKey::k_mode, std::move(mode))
                   .run());
}

// B-15, B-16, section 11
TEST(KernelsCast, Modes) {
  struct Case {
    const char* mode;
    std::vector<double> want;
  };
  const std::vector<double> x = {2.5, -2.5, 3.5, -0.5, 0.49999997, -0.49999997, 1.5, 7.0, 8388609.0};
  for (const Case& c :
       {Case{"none", {2, -2, 3, 0, 0, 0, 1, 7, 8388609}}, Case{"rint", {2, -2, 4, 0, 0, 0, 2, 7, 8388609}},
        Case{"round", {3, -3, 4, -1, 0, 0, 2, 7, 8388609}},
        Case{"floor", {2, -3, 3, -1, 0, -1, 1, 7, 8388609}}, Case{"ceil", {3, -2, 4, 0, 1, 0, 2, 7, 8388609}},
        Case{"trunc", {2, -2, 3, 0, 0, 0, 1, 7, 8388609}},
        Case{"odd", {3, -3, 3, -1, 0, 0, 1, 7, 8388609}}}) {
    for_each_target([&] {
      EXPECT_EQ(cast_cells(DType::kFp32, DType::kInt32, x, std::string(c.mode)), c.want) << c.mode;
    });
  }
  EXPECT_EQ(cast_cells(DType::kFp16, DType::kInt8, {300.0, -1.5, 127.5}, std::string("trunc")),
            (std::vector<double>{44, -1, 127}));
  EXPECT_EQ(cast_cells(DType::kFp32, DType::kInt16, {2.5}, int64_t{6}), (std::vector<double>{3}));
}

// O-1104
TEST(KernelsCast, Saturation) {
  const std::vector<double> x = {3e9, -3e9, NAN, INFINITY, -INFINITY, 2147483520.0, 4294967296.0};
  EXPECT_EQ(
      cast_cells(DType::kFp32, DType::kInt32, x, std::string("round")),
      (std::vector<double>{2147483647, -2147483648.0, 0, 2147483647, -2147483648.0, 2147483520, 2147483647}));
  EXPECT_EQ(cast_cells(DType::kFp32, DType::kUInt32, x, std::string("round")),
            (std::vector<double>{3000000000.0, 0, 0, 4294967295.0, 0, 2147483520, 4294967295.0}));
  // 16 bits: INT32 first, then the low bits.
  EXPECT_EQ(cast_cells(DType::kFp32, DType::kInt16, {3e9, 65537, -32769, NAN}, std::string("round")),
            (std::vector<double>{-1, 1, 32767, 0}));
  EXPECT_EQ(cast_cells(DType::kFp32, DType::kUInt8, {-1, 256, 300}, std::string("round")),
            (std::vector<double>{255, 0, 44}));
  EXPECT_EQ(cast_cells(DType::kFp16, DType::kInt4, {-20, 20, 3.5, -3.5}, std::string("rint")),
            (std::vector<double>{-8, 7, 4, -4}));
  const auto wide =
      cast_cells(DType::kFp32, DType::kInt64, {1e20, -1e20, 1099511627776.0, NAN}, std::string("round"));
  EXPECT_EQ(wide, (std::vector<double>{9223372036854775807.0, -9223372036854775808.0, 1099511627776.0, 0}));
}

// O-1103, O-1105, O-1107
TEST(KernelsCast, OtherPairs) {
  EXPECT_EQ(cast_cells(DType::kInt32, DType::kInt8, {300, -129, 127}, int64_t{2}),
            (std::vector<double>{44, 127, 127}));
  EXPECT_EQ(cast_cells(DType::kInt8, DType::kUInt32, {-1}, int64_t{2}), (std::vector<double>{4294967295.0}));
  EXPECT_EQ(cast_cells(DType::kInt32, DType::kFp32, {16777217, 16777219}, int64_t{2}),
            (std::vector<double>{16777216, 16777220}));
  // Just above a BF16 tie; through FP32 it would fall on the tie.
  EXPECT_EQ(cast_cells(DType::kInt64, DType::kBf16, {16842753}, int64_t{2}), (std::vector<double>{16908288}));
  EXPECT_EQ(cast_cells(DType::kFp32, DType::kFp8E4M3FN, {448, 464, 465, -0.001, 1.0625}, int64_t{2})[0], 448);
  EXPECT_TRUE(std::isnan(cast_cells(DType::kFp32, DType::kFp8E4M3FN, {465}, int64_t{2})[0]));
  EXPECT_EQ(cast_cells(DType::kFp32, DType::kFp8E5M2, {61440, 57344, 1.125, 1.375}, int64_t{2}),
            (std::vector<double>{INFINITY, 57344, 1, 1.5}));
  EXPECT_EQ(cast_cells(DType::kFp4, DType::kBf16, {0, 0.5, 1, 1.5, 2, 3, 4, 6, -6}, int64_t{2}),
            (std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6, -6}));
  EXPECT_EQ(cast_cells(DType::kFp32, DType::kFp4, {0.25, 0.75, 5, -2.5, 100}, int64_t{2}),
            (std::vector<double>{0, 1, 4, -2, 6}));
}

// O-1102, B-17: a strided or reshaped operand keeps its order and valid region.
TEST(KernelsCast, OrderAndRegion) {
  const View column =
      with_valid(with_stride(make_view(DType::kFp32, {6, 1}, {1.5, 2.5, 3.5, 4.5, 5.5, 6.5}), 4), {5, 1});
  const View out = FakeCall(OpId::k_cast, DType::kBf16).arg(0, column).run();
  EXPECT_EQ(valid_list(out), (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(cells(out), (std::vector<double>{1.5, 2.5, 3.5, 4.5, 5.5}));
}

// O-1802: the accumulator of a product with a narrower declared dtype is rounded to that before the cast.
TEST(KernelsCast, AccumulatorOperand) {
  const View acc = make_view(DType::kFp32, {1, 2}, {1.0 + 1.0 / 4096, 3});
  EXPECT_EQ(cells(FakeCall(OpId::k_cast, DType::kInt32)
                      .arg(0, make_view(DType::kFp32, {1, 1}, {2.4999}))
                      .attr(AttrKey::k_acc_dtype, static_cast<int64_t>(DType::kFp16))
                      .run()),
            (std::vector<double>{3}));  // 2.5 in FP16, then away from zero
  EXPECT_EQ(cells(FakeCall(OpId::k_cast, DType::kFp32)
                      .arg(0, acc)
                      .attr(AttrKey::k_acc_dtype, static_cast<int64_t>(DType::kFp16))
                      .run()),
            (std::vector<double>{1, 3}));
  EXPECT_EQ(cells(FakeCall(OpId::k_cast, DType::kFp16).arg(0, acc).run()), (std::vector<double>{1, 3}));
}

// O-302: four-bit elements are packed in global memory, low nibble first.
TEST(KernelsCast, PackedNibbles) {
  View v;
  v.dtype = DType::kFp4;
  const int64_t extents[2] = {2, 4};
  v.set_packed(2, extents);
  v.buffer = make_buffer(4, BufferKind::kGlobal);
  const uint8_t bytes[4] = {0x21, 0x43, 0x65, 0xf7};
  std::memcpy(v.data(), bytes, 4);
  EXPECT_EQ(cells(FakeCall(OpId::k_cast, DType::kFp32).arg(0, v).run()),
            (std::vector<double>{0.5, 1, 1.5, 2, 3, 4, 6, -6}));
}

}  // namespace
}  // namespace pypto::vm
