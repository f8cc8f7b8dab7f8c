// SPDX-License-Identifier: Apache-2.0
#include "core/vm/ops/written.h"
#include "fake_call.h"

#include "core/ir/enums.h"

namespace pypto::vm::testing {
namespace {

using ir::AttrKey;
using ir::OpId;

constexpr DType kF32 = DType::kFp32;

/// A tensor of an element per cell, its number.
View tensor(Longs shape, DType dtype = kF32) {
  int64_t n = 1;
  for (const int64_t e : shape) n *= e;
  return global_view(dtype, shape, numbers(n));
}

// ------------------------------------------------------------------ load

TEST(OpsLoad, ReadsAWindowFromTheMiddle) {  // O-701
  const View x = tensor({10, 20});
  OpRun call(OpId::k_load);
  const View t = call.in(0, x).ints(1, {3, 5}).ints(2, {4, 6}).run_op();
  EXPECT_EQ(shape_list(t), (Longs{4, 6}));
  EXPECT_TRUE(t.fully_valid);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 6; ++j) EXPECT_EQ(cell(t, {i, j}), cell(x, {3 + i, 5 + j}));
  }
  ASSERT_EQ(call.accesses.size(), 1u);
  EXPECT_EQ(call.accesses[0].kind, AccessKind::kRead);
  EXPECT_EQ(call.accesses[0].begin, (3 * 20 + 5) * 4);
  EXPECT_EQ(call.accesses[0].extent, (Longs{4, 6}));
}

TEST(OpsLoad, RaggedTailWithValidShape) {  // B-4, O-211.2
  const View x = tensor({20, 64});
  OpRun call(OpId::k_load);
  const View t = call.in(0, x).ints(1, {16, 0}).ints(2, {16, 64}).ints(3, {4, 64}).run_op();
  EXPECT_EQ(shape_list(t), (Longs{16, 64}));
  EXPECT_EQ(valid_list(t), (Longs{4, 64}));
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 64; ++j) EXPECT_EQ(cell(t, {i, j}), i < 4 ? cell(x, {16 + i, j}) : 0.0);  // O-209
  }
}

TEST(OpsLoad, OverrunIsAFaultUnlessClamped) {  // B-5, L-155, O-404
  const View x = tensor({20, 64});
  const Diagnostic d = OpRun(OpId::k_load).in(0, x).ints(1, {16, 0}).ints(2, {16, 64}).run_fault();
  EXPECT_EQ(d.cls, ErrorClass::kOutOfBoundsError);
  EXPECT_NE(d.message.find("operand0"), std::string::npos);
  EXPECT_NE(d.message.find("dimension 0"), std::string::npos);
  EXPECT_NE(d.message.find("16"), std::string::npos);
  EXPECT_NE(d.message.find("extent is 20"), std::string::npos);
  EXPECT_NE(d.hint.find("Pass clamp=True"), std::string::npos);

  const View t = OpRun(OpId::k_load)
                     .in(0, x)
                     .ints(1, {16, 0})
                     .ints(2, {16, 64})
                     .with(AttrKey::k_clamp, int64_t{1})
                     .run_op();
  EXPECT_EQ(valid_list(t), (Longs{4, 64}));
  EXPECT_EQ(cell(t, {3, 63}), cell(x, {19, 63}));
  // A window wholly past the end is empty.
  const View e = OpRun(OpId::k_load)
                     .in(0, x)
                     .ints(1, {32, 0})
                     .ints(2, {16, 64})
                     .with(AttrKey::k_clamp, int64_t{1})
                     .run_op();
  EXPECT_EQ(valid_list(e), (Longs{0, 64}));
  EXPECT_EQ(OpRun(OpId::k_load).in(0, x).ints(1, {-1, 0}).ints(2, {4, 64}).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
  EXPECT_EQ(OpRun(OpId::k_load).in(0, x).ints(1, {0, 0}).ints(2, {4, 8}).ints(3, {5, 8}).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
}

TEST(OpsLoad, NarrowsByTheSourcesValidShape) {  // O-211
  const View x = with_valid(tensor({8, 16}), {5, 10});
  const View t = OpRun(OpId::k_load).in(0, x).ints(1, {3, 4}).ints(2, {4, 8}).run_op();
  EXPECT_EQ(valid_list(t), (Longs{2, 6}));
}

TEST(OpsLoad, ShortOffsetsAddressTrailingAxes) {  // O-701
  const View x = tensor({2, 3, 8, 8});
  const View t = OpRun(OpId::k_load).in(0, x).ints(1, {1, 2}).ints(2, {4, 4}).run_op();
  EXPECT_EQ(t.rank, 2);
  EXPECT_EQ(cell(t, {2, 3}), cell(x, {0, 0, 3, 5}));
}

TEST(OpsLoad, StridedSourceAndFourDimensions) {  // B-25, O-808
  const View x = tensor({3, 4, 6, 8});
  const View t = OpRun(OpId::k_load).in(0, x).ints(1, {1, 1, 2, 3}).ints(2, {2, 3, 4, 5}).run_op();
  View y = global_view(kF32, {4, 4, 6, 8}, {-1});
  OpRun(OpId::k_store).in(0, t).ints(1, {2, 0, 1, 2}).in(2, y).run_op();
  for (int64_t a = 0; a < 4; ++a) {
    for (int64_t b = 0; b < 4; ++b) {
      for (int64_t c = 0; c < 6; ++c) {
        for (int64_t d = 0; d < 8; ++d) {
          const bool in = a >= 2 && b < 3 && c >= 1 && c < 5 && d >= 2 && d < 7;
          EXPECT_EQ(cell(y, {a, b, c, d}), in ? cell(x, {a - 1, b + 1, c + 1, d + 1}) : -1);
        }
      }
    }
  }
  // A transposed tensor (strides only) is loaded element by element.
  const View m = tensor({20, 37});
  View mt = m;
  std::swap(mt.shape[0], mt.shape[1]);
  std::swap(mt.stride[0], mt.stride[1]);
  std::swap(mt.valid[0], mt.valid[1]);
  const View u = OpRun(OpId::k_load).in(0, mt).ints(1, {2, 1}).ints(2, {33, 18}).run_op();
  for (int64_t i = 0; i < 33; ++i) {
    for (int64_t j = 0; j < 18; ++j) EXPECT_EQ(cell(u, {i, j}), cell(m, {j + 1, i + 2}));
  }
}

TEST(OpsLoad, PadModeOfTheSourceFills) {  // L-156
  View x = with_valid(tensor({4, 8}), {3, 5});
  x.pad = PadMode::kMin;
  const View t = OpRun(OpId::k_load).in(0, x).ints(1, {0, 0}).ints(2, {4, 8}).run_op();
  EXPECT_EQ(t.pad, PadMode::kMin);
  EXPECT_EQ(cell(t, {2, 4}), cell(x, {2, 4}));
  EXPECT_EQ(cell(t, {2, 5}), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(cell(t, {3, 0}), -std::numeric_limits<double>::infinity());
}

TEST(OpsLoad, PackedFp4) {  // O-302, O-804
  View x;
  x.dtype = DType::kFp4;
  const int64_t shape[] = {4, 8};
  x.set_packed(2, shape);
  x.buffer = make_buffer(16, BufferKind::kGlobal);
  for (int i = 0; i < 16; ++i) x.data()[i] = static_cast<uint8_t>(i * 17 + 3);
  const auto code = [&](int64_t i, int64_t j) { return x.data()[(i * 8 + j) / 2] >> (j % 2 ? 4 : 0) & 0xf; };
  const View t = OpRun(OpId::k_load, DType::kFp4).in(0, x).ints(1, {1, 2}).ints(2, {2, 5}).run_op();
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(t.data()[i * 5 + j], code(i + 1, j + 2));
  }
  View y = x;
  y.buffer = make_buffer(16, BufferKind::kGlobal);
  OpRun(OpId::k_store, DType::kFp4).in(0, t).ints(1, {2, 2}).in(2, y).run_op();
  EXPECT_EQ(y.data()[8 + 1] & 0xf, code(1, 2));
  EXPECT_EQ(y.data()[8 + 3] & 0xf, code(1, 6));
  EXPECT_EQ(y.data()[8 + 3] >> 4, 0);  // outside the window
  EXPECT_EQ(OpRun(OpId::k_load, DType::kFp4).in(0, x).ints(1, {1, 1}).ints(2, {2, 4}).run_fault().cls,
            ErrorClass::kProgramFault);
}

TEST(OpsLoad, MxByteOrder) {  // O-702
  const View x = global_view(DType::kFp8E8M0, {32, 4}, {1});
  for (int64_t i = 0; i < 128; ++i) x.data()[i] = static_cast<uint8_t>(i);
  const View t = OpRun(OpId::k_load, DType::kFp8E8M0)
                     .in(0, x)
                     .ints(1, {0, 0})
                     .ints(2, {32, 4})
                     .with(AttrKey::k_layout, static_cast<int64_t>(ir::TensorLayout::kMxAZZ))
                     .run_op();
  int64_t position = 0;
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t c = 0; c < 16; ++c) {
        for (int64_t d = 0; d < 2; ++d) EXPECT_EQ(t.data()[(16 * a + c) * 4 + 2 * b + d], position++);
      }
    }
  }
}

// ------------------------------------------------------------------ store

TEST(OpsStore, OnlyTheValidRegionMoves) {  // B-6, O-213
  const View t = with_valid(make_view(kF32, {16, 64}, numbers(1024)), {3, 7});
  View y = global_view(kF32, {32, 128}, {-5});
  OpRun call(OpId::k_store);
  const View r = call.in(0, t).ints(1, {4, 9}).in(2, y).run_op();
  EXPECT_TRUE(r.fully_valid);
  int changed = 0;
  for (int64_t i = 0; i < 32; ++i) {
    for (int64_t j = 0; j < 128; ++j) {
      const bool in = i >= 4 && i < 7 && j >= 9 && j < 16;
      EXPECT_EQ(cell(y, {i, j}), in ? cell(t, {i - 4, j - 9}) : -5);
      changed += in;
    }
  }
  EXPECT_EQ(changed, 21);
  ASSERT_EQ(call.accesses.size(), 1u);
  EXPECT_EQ(call.accesses[0].extent, (Longs{3, 7}));
}

TEST(OpsStore, BoundsAreThoseOfTheValidRegion) {  // L-155
  const View t = with_valid(make_view(kF32, {16, 64}, numbers(1024)), {3, 7});
  View y = global_view(kF32, {8, 16}, {0});
  OpRun(OpId::k_store).in(0, t).ints(1, {5, 9}).in(2, y).run_op();
  EXPECT_EQ(cell(y, {7, 15}), cell(t, {2, 6}));
  const Diagnostic d = OpRun(OpId::k_store).in(0, t).ints(1, {6, 9}).in(2, y).run_fault();
  EXPECT_EQ(d.cls, ErrorClass::kOutOfBoundsError);
  EXPECT_NE(d.message.find("operand2"), std::string::npos);
  EXPECT_EQ(OpRun(OpId::k_store).in(0, t).ints(1, {0, -1}).in(2, y).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
}

TEST(OpsStore, ValidShapeOfAPartlyValidTarget) {  // B-7, O-212
  const View t = make_view(kF32, {4, 8}, numbers(32));
  const auto store = [&](Longs valid, Longs offset, Longs source_valid) {
    const View y = with_valid(global_view(kF32, {16, 16}, {0}), valid);
    OpRun call(OpId::k_store);
    return valid_list(call.in(0, with_valid(t, source_valid)).ints(1, offset).in(2, y).run_op());
  };
  EXPECT_EQ(store({0, 0}, {0, 0}, {4, 8}), (Longs{4, 8}));   // empty target, origin
  EXPECT_EQ(store({6, 9}, {1, 1}, {4, 8}), (Longs{6, 9}));   // inside
  EXPECT_EQ(store({3, 8}, {0, 0}, {4, 8}), (Longs{4, 8}));   // covers
  EXPECT_EQ(store({4, 8}, {4, 0}, {4, 8}), (Longs{8, 8}));   // abuts below
  EXPECT_EQ(store({4, 8}, {2, 0}, {4, 8}), (Longs{6, 8}));   // overlaps and grows
  EXPECT_EQ(store({4, 8}, {0, 8}, {4, 8}), (Longs{4, 16}));  // abuts on the right
  EXPECT_EQ(store({4, 8}, {9, 9}, {0, 8}), (Longs{4, 8}));   // nothing written
  for (const auto& [valid, offset] :
       std::vector<std::pair<Longs, Longs>>{{{4, 8}, {5, 0}}, {{0, 0}, {1, 0}}}) {
    const View y = with_valid(global_view(kF32, {16, 16}, {0}), valid);
    const Diagnostic d = OpRun(OpId::k_store).in(0, t).ints(1, offset).in(2, y).run_fault();
    EXPECT_EQ(d.cls, ErrorClass::kProgramFault);
    EXPECT_NE(d.message.find("gap"), std::string::npos) << d.message;
  }
  const View y = with_valid(global_view(kF32, {16, 16}, {0}), {6, 8});
  EXPECT_NE(OpRun(OpId::k_store).in(0, t).ints(1, {0, 8}).in(2, y).run_fault().message.find("L-shape"),
            std::string::npos);
}

TEST(OpsStore, AccumulatorNarrowsToNearestEven) {  // O-703, O-312
  const float half_even = 1.0f + 0x1p-11f, above = 1.0f + 0x1p-11f + 0x1p-20f, big = 70000.0f,
              tiny = 0x1p-25f;
  for (const DType to : {DType::kFp16, DType::kBf16}) {
    const View t = make_view(kF32, {1, 5}, {half_even, above, big, tiny, std::nan("")});
    View y = global_view(to, {1, 5}, {0});
    OpRun(OpId::k_store).in(0, t).ints(1, {0, 0}).in(2, y).run_op();
    for (int64_t j = 0; j < 5; ++j) {
      const auto f = static_cast<float>(cell(t, {0, j}));
      const double want = to == DType::kFp16 ? fp16_to_fp32(fp32_to_fp16(f)) : bf16_to_fp32(fp32_to_bf16(f));
      if (std::isnan(f)) {
        EXPECT_TRUE(std::isnan(cell(y, {0, j})));
      } else {
        EXPECT_EQ(cell(y, {0, j}), want) << j;
      }
    }
  }
  // Same-width integers of other signedness: bits.
  const View s = make_view(DType::kInt16, {1, 3}, {-1, 5, -32768});
  View u = global_view(DType::kUInt16, {1, 3}, {0});
  OpRun(OpId::k_store).in(0, s).ints(1, {0, 0}).in(2, u).run_op();
  EXPECT_EQ(cells(u), (std::vector<double>{65535, 5, 32768}));
}

TEST(OpsStore, RanksAndExplicitWindow) {  // O-703
  const View t = make_view(kF32, {2, 6}, numbers(12));
  View y = global_view(kF32, {3, 4, 8}, {0});
  const View lower = OpRun(OpId::k_store).in(0, t).ints(1, {2, 1, 2}).in(2, y).run_op();
  EXPECT_EQ(lower.rank, 3);
  EXPECT_EQ(cell(y, {2, 2, 7}), 12);
  EXPECT_EQ(cell(y, {2, 1, 2}), 1);
  // shapes: row-major refill of another window.
  View z = global_view(kF32, {4, 8}, {0});
  OpRun(OpId::k_store).in(0, t).ints(1, {1, 2}).in(2, z).ints(3, {4 - 1, 4}).run_op();
  for (int64_t k = 0; k < 12; ++k) EXPECT_EQ(cell(z, {1 + k / 4, 2 + k % 4}), static_cast<double>(k + 1));
  // The same with a partly valid tile: only its valid cells move.
  View w = global_view(kF32, {4, 8}, {-1});
  OpRun(OpId::k_store).in(0, with_valid(t, {2, 5})).ints(1, {1, 2}).in(2, w).ints(3, {3, 4}).run_op();
  for (int64_t k = 0; k < 12; ++k) {
    EXPECT_EQ(cell(w, {1 + k / 4, 2 + k % 4}), k % 6 < 5 ? static_cast<double>(k + 1) : -1.0);
  }
}

TEST(OpsStore, AtomicAdd) {  // B-14, O-704
  for (const DType dtype : {kF32, DType::kFp16, DType::kBf16, DType::kInt8, DType::kInt16, DType::kInt32}) {
    const View t = with_valid(make_view(dtype, {4, 8}, scrambled(32, 3)), {3, 5});
    View y = global_view(dtype, {6, 9}, scrambled(54, 4));
    std::vector<double> before = cells(y);
    OpRun call(OpId::k_store);
    for (int i = 0; i < 2; ++i) {
      call.in(0, t).ints(1, {2, 3}).in(2, y).with(AttrKey::k_atomic, int64_t{1}).run_op();
    }
    EXPECT_EQ(call.accesses[0].kind, AccessKind::kAtomic);
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        const bool in = i >= 2 && i < 5 && j >= 3 && j < 8;
        const double add = in ? 2 * cell(t, {i - 2, j - 3}) : 0;
        EXPECT_EQ(cell(y, {i, j}), before[static_cast<size_t>(i * 9 + j)] + add) << dtype_text(dtype);
      }
    }
  }
  // 16-bit sums round after each addition: 2048 + 1 + 1 stays 2048 in FP16.
  View y = global_view(DType::kFp16, {1, 1}, {2048});
  for (int i = 0; i < 2; ++i) {
    OpRun(OpId::k_store)
        .in(0, make_view(DType::kFp16, {1, 1}, {1}))
        .ints(1, {0, 0})
        .in(2, y)
        .with(AttrKey::k_atomic, int64_t{1})
        .run_op();
  }
  EXPECT_EQ(cell(y, {0, 0}), 2048);
  // INT8 wraps.
  View b = global_view(DType::kInt8, {1, 1}, {100});
  OpRun(OpId::k_store)
      .in(0, make_view(DType::kInt8, {1, 1}, {100}))
      .ints(1, {0, 0})
      .in(2, b)
      .with(AttrKey::k_atomic, int64_t{1})
      .run_op();
  EXPECT_EQ(cell(b, {0, 0}), -56);
}

// ------------------------------------------------------------------ assemble and the rest

TEST(OpsAssemble, TensorTargetIsChangedInPlace) {  // O-706, O-214
  View y = global_view(kF32, {8, 8}, {0});
  const View s = with_valid(make_view(kF32, {1, 4, 6}, numbers(24)), {1, 2, 5});
  const View r = OpRun(OpId::k_assemble, kF32, false).in(0, y).in(1, s).ints(2, {3, 1}).run_op();
  EXPECT_TRUE(r.buffer == y.buffer);
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      const bool in = i >= 3 && i < 5 && j >= 1 && j < 6;
      EXPECT_EQ(cell(y, {i, j}), in ? cell(s, {0, i - 3, j - 1}) : 0);
    }
  }
  // A source that overlaps its target within one tensor is read before it is written.
  View z = tensor({1, 10});
  View part = z;
  part.shape[1] = part.valid[1] = 8;
  OpRun(OpId::k_assemble, kF32, false).in(0, z).in(1, part).ints(2, {0, 2}).run_op();
  EXPECT_EQ(cells(z), (std::vector<double>{1, 2, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(OpsAssemble, TileTargetGivesANewTile) {  // O-707, L-185
  const View t = make_view(kF32, {6, 8}, numbers(48));
  const View s = with_valid(make_view(kF32, {2, 3}, {-1, -2, -3, -4, -5, -6}), {1, 1});
  const View r = OpRun(OpId::k_assemble).in(0, t).in(1, s).ints(2, {4, 5}).run_op();
  EXPECT_FALSE(r.buffer == t.buffer);
  EXPECT_EQ(cells(t), numbers(48));
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      const bool in = i >= 4 && j >= 5;  // the whole physical block
      EXPECT_EQ(cell(r, {i, j}), in ? cell(s, {i - 4, j - 5}) : cell(t, {i, j}));
    }
  }
  EXPECT_EQ(OpRun(OpId::k_assemble).in(0, t).in(1, s).ints(2, {5, 5}).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
  const View h = OpRun(OpId::k_assemble, DType::kFp16)
                     .in(0, make_view(DType::kFp16, {2, 4}, numbers(8)))
                     .in(1, make_view(kF32, {1, 2}, {1.0 + 0x1p-11, 3.0}))
                     .ints(2, {1, 1})
                     .run_op();
  EXPECT_EQ(cells(h), (std::vector<double>{1, 2, 3, 4, 5, 1, 3, 8}));
}

TEST(OpsExtract, ExactWindow) {  // O-708, O-211.3
  const View t = with_valid(make_view(kF32, {8, 10}, numbers(80)), {6, 9});
  const View r = OpRun(OpId::k_extract).in(0, t).integer_arg(1, 3).integer_arg(2, 4).ints(3, {4, 6}).run_op();
  EXPECT_EQ(valid_list(r), (Longs{3, 5}));
  EXPECT_EQ(cell(r, {2, 4}), cell(t, {5, 8}));
  EXPECT_EQ(
      OpRun(OpId::k_extract).in(0, t).integer_arg(1, 5).integer_arg(2, 4).ints(3, {4, 6}).run_fault().cls,
      ErrorClass::kOutOfBoundsError);
}

TEST(OpsConcat, JoinsColumns) {  // B-27, O-709
  const View a = with_valid(make_view(DType::kInt32, {5, 3}, scrambled(15, 1, -1000, 1000)), {4, 3});
  const View b = with_valid(make_view(DType::kInt32, {5, 6}, scrambled(30, 2, -1000, 1000)), {4, 2});
  const View r = OpRun(OpId::k_concat, DType::kInt32).in(0, a).in(1, b).run_op();
  EXPECT_EQ(shape_list(r), (Longs{5, 9}));
  EXPECT_EQ(valid_list(r), (Longs{4, 5}));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(cell(r, {i, j}), j < 3 ? cell(a, {i, j}) : cell(b, {i, j - 3}));
  }
  EXPECT_EQ(OpRun(OpId::k_concat).in(0, b).in(1, a).run_fault().cls, ErrorClass::kProgramFault);
  EXPECT_EQ(OpRun(OpId::k_concat).in(0, a).in(1, with_valid(b, {3, 2})).run_fault().cls,
            ErrorClass::kProgramFault);
}

TEST(OpsCopies, KeepShapeAndValid) {  // O-705, L-185, L-87
  View t = with_valid(with_stride(make_view(kF32, {4, 6}, numbers(24)), 3), {2, 5});
  t.pad = PadMode::kMax;
  for (const OpId op : {OpId::k_copy_tile, OpId::k_move}) {
    const View r = OpRun(op).in(0, t).run_op();
    EXPECT_TRUE(r.packed());
    EXPECT_EQ(valid_list(r), (Longs{2, 5}));
    EXPECT_EQ(r.pad, PadMode::kMax);
    EXPECT_EQ(cells(r), cells(t));
    EXPECT_FALSE(r.buffer == t.buffer);
  }
  const View scale = make_view(DType::kUInt8, {2, 2}, {1, 127, 128, 255});
  const View moved = OpRun(OpId::k_move, DType::kFp8E8M0).in(0, scale).run_op();
  EXPECT_EQ(std::memcmp(moved.data(), scale.data(), 4), 0);
  // A window that reaches past its base is copied as far as it is valid.
  View x = tensor({4, 8});
  View w = with_valid(x, {2, 8});
  w.offset = 2 * 8 * 4;
  const View s = OpRun(OpId::k_snapshot, kF32, false).in(0, w).run_op();
  EXPECT_EQ(shape_list(s), (Longs{4, 8}));
  EXPECT_EQ(valid_list(s), (Longs{2, 8}));
  EXPECT_EQ(cell(s, {1, 7}), 32);
}

TEST(OpsWritten, PartialWritesAreRemembered) {  // O-209
  View t = make_view(kF32, {4, 8}, {0});
  t.buffer->written.all = false;
  const View s = make_view(kF32, {2, 3}, numbers(6));
  OpRun(OpId::k_assemble, kF32, false).in(0, t).in(1, s).ints(2, {1, 2}).run_op();
  ASSERT_FALSE(t.buffer->written.all);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      EXPECT_EQ(mark_at(*t.buffer, (i * 8 + j) * 4) == 0, i >= 1 && i < 3 && j >= 2 && j < 5);
    }
  }
  OpRun(OpId::k_assemble, kF32, false)
      .in(0, t)
      .in(1, make_view(kF32, {4, 8}, numbers(32)))
      .ints(2, {0, 0})
      .run_op();
  EXPECT_TRUE(t.buffer->written.all);
}

}  // namespace
}  // namespace pypto::vm::testing
