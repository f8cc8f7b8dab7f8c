// SPDX-License-Identifier: Apache-2.0
#include "fake_call.h"

#include "core/ir/enums.h"
#include "core/vm/ops/views.h"

namespace pypto::vm::testing {
namespace {

using ir::AttrKey;
using ir::OpId;

constexpr DType kF32 = DType::kFp32;

View tile(Longs shape, DType dtype = kF32) {
  int64_t n = 1;
  for (const int64_t e : shape) n *= e;
  return make_view(dtype, shape, numbers(n));
}
View tensor(Longs shape) {
  View v = tile(std::move(shape));
  v.buffer->kind = BufferKind::kGlobal;
  return v;
}

TEST(OpsElement, ReadAndWrite) {  // O-601, O-602
  View x = tensor({4, 6});
  OpRun read(OpId::k_read);
  read.in(0, x).ints(1, {2, 3});
  exec_function(OpId::k_read)(read);
  EXPECT_EQ(read.scalar_result.f, 16);
  ASSERT_EQ(read.accesses.size(), 1u);
  EXPECT_EQ(read.accesses[0].begin, 15 * 4);
  OpRun write(OpId::k_write);
  const View r = write.in(0, x).ints(1, {3, 5}).float_arg(2, -7.5, kF32).run_op();
  EXPECT_EQ(cell(x, {3, 5}), -7.5);
  EXPECT_TRUE(r.buffer == x.buffer);
  EXPECT_EQ(write.accesses[0].kind, AccessKind::kWrite);
  const Diagnostic d = OpRun(OpId::k_read).in(0, x).ints(1, {4, 0}).run_fault();
  EXPECT_EQ(d.cls, ErrorClass::kOutOfBoundsError);
  EXPECT_NE(d.message.find("index 4"), std::string::npos);
  EXPECT_NE(d.message.find("extent 4"), std::string::npos);
  EXPECT_EQ(OpRun(OpId::k_write).in(0, x).ints(1, {0, -1}).float_arg(2, 1, kF32).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
  // One scalar index on rank 1; integers.
  View v = tile({5}, DType::kInt16);
  OpRun one(OpId::k_read, DType::kInt16);
  one.in(0, v).integer_arg(1, 4);
  exec_function(OpId::k_read)(one);
  EXPECT_EQ(one.scalar_result.i, 5);
  OpRun(OpId::k_write, DType::kInt16).in(0, v).integer_arg(1, 0).integer_arg(2, -3, DType::kInt16).run_op();
  EXPECT_EQ(cell(v, {0}), -3);
  // An accumulator reads in its declared dtype.
  OpRun acc(OpId::k_read, DType::kBf16);
  acc.in(0, make_view(kF32, {1, 1}, {1.0 + 0x1p-12})).ints(1, {0, 0});
  exec_function(OpId::k_read)(acc);
  EXPECT_EQ(acc.scalar_result.f, 1.0);
}

TEST(OpsElement, Dim) {  // O-603
  OpRun call(OpId::k_dim, DType::kIndex);
  call.in(0, tile({3, 5, 7})).with(AttrKey::k_axis, int64_t{-2});
  exec_function(OpId::k_dim)(call);
  EXPECT_EQ(call.scalar_result.i, 5);
}

TEST(OpsSlice, TileWindowIsAView) {  // O-801, O-211.3, 2.4
  View t = with_valid(tile({8, 10}), {6, 10});
  const View s = OpRun(OpId::k_slice).in(0, t).ints(1, {4, 5}).ints(2, {3, 2}).run_op();
  EXPECT_EQ(valid_list(s), (Longs{3, 5}));
  OpRun(OpId::k_write).in(0, s).ints(1, {1, 1}).float_arg(2, 99, kF32).run_op();
  EXPECT_EQ(cell(t, {4, 3}), 99);
  EXPECT_EQ(OpRun(OpId::k_slice).in(0, t).ints(1, {4, 5}).ints(2, {5, 2}).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
  const View narrowed =
      OpRun(OpId::k_slice).in(0, t).ints(1, {4, 5}).ints(2, {1, 0}).ints(3, {2, 9 - 6}).run_op();
  EXPECT_EQ(valid_list(narrowed), (Longs{2, 3}));
}

TEST(OpsSlice, TensorWindowMayOverhang) {  // O-211.2, O-211.4, B-32
  const View x = tensor({10, 16});
  const View s =
      OpRun(OpId::k_slice, kF32, false).in(0, x).ints(1, {8, 16}).ints(2, {6, 0}).ints(3, {4, 16}).run_op();
  EXPECT_EQ(shape_list(s), (Longs{8, 16}));
  EXPECT_EQ(valid_list(s), (Longs{4, 16}));
  EXPECT_EQ(OpRun(OpId::k_slice, kF32, false).in(0, x).ints(1, {8, 16}).ints(2, {6, 0}).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
  const View clamped = OpRun(OpId::k_slice, kF32, false)
                           .in(0, x)
                           .ints(1, {8, 16})
                           .ints(2, {6, 0})
                           .with(AttrKey::k_clamp, int64_t{1})
                           .run_op();
  EXPECT_EQ(valid_list(clamped), (Longs{4, 16}));
  const View cut =
      OpRun(OpId::k_slice, kF32, false).control_plane().in(0, x).ints(1, {8, 16}).ints(2, {6, 0}).run_op();
  EXPECT_EQ(shape_list(cut), (Longs{4, 16}));
  EXPECT_TRUE(cut.fully_valid);
  // A later access past it is a fault.
  EXPECT_EQ(OpRun(OpId::k_load).in(0, cut).ints(1, {0, 0}).ints(2, {8, 16}).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
  // Writing through a clamped window past the base is one, too.
  EXPECT_EQ(OpRun(OpId::k_assemble, kF32, false)
                .in(0, clamped)
                .in(1, tile({8, 16}))
                .ints(2, {0, 0})
                .run_fault()
                .cls,
            ErrorClass::kOutOfBoundsError);
}

TEST(OpsSlice, DropDimsAndPad) {  // O-802, O-803
  View x = tensor({3, 4, 5});
  const View s = OpRun(OpId::k_slice, kF32, false)
                     .in(0, x)
                     .ints(1, {1, 4, 2})
                     .ints(2, {2, 0, 3})
                     .with(AttrKey::k_drop_dims, Longs{0})
                     .with(AttrKey::k_pad_value, int64_t{2})
                     .run_op();
  EXPECT_EQ(shape_list(s), (Longs{4, 2}));
  EXPECT_EQ(s.pad, PadMode::kMax);
  EXPECT_EQ(cell(s, {3, 1}), cell(x, {2, 3, 4}));
  const View t = OpRun(OpId::k_slice)
                     .in(0, tile({6, 8}))
                     .ints(1, {1, 8})
                     .ints(2, {4, 0})
                     .with(AttrKey::k_drop_dims, Longs{0})
                     .run_op();
  EXPECT_EQ(shape_list(t), (Longs{1, 8}));  // a tile keeps rank 2
  EXPECT_EQ(cell(t, {0, 3}), 4 * 8 + 4);
  const View column = OpRun(OpId::k_slice)
                          .in(0, tile({6, 8}))
                          .ints(1, {6, 1})
                          .ints(2, {0, 5})
                          .with(AttrKey::k_drop_dims, Longs{1})
                          .run_op();
  EXPECT_EQ(shape_list(column), (Longs{1, 6}));
  EXPECT_EQ(cell(column, {0, 2}), 2 * 8 + 6);
}

TEST(OpsReshape, KeepsRowMajorOrder) {  // O-805, B-17
  const View t = tile({4, 6});
  for (const Longs& shape : {Longs{24}, Longs{2, 12}, Longs{2, 3, 4}, Longs{24, 1}, Longs{1, 24}}) {
    const View r = OpRun(OpId::k_reshape).in(0, t).ints(1, shape).run_op();
    EXPECT_EQ(shape_list(r), shape);
    EXPECT_TRUE(r.buffer == t.buffer);  // a view
    EXPECT_EQ(cells(r), numbers(24));
  }
  // Rows with a pitch: merging them needs a copy, splitting a row does not.
  const View s = OpRun(OpId::k_slice).in(0, tile({4, 10})).ints(1, {4, 6}).ints(2, {0, 2}).run_op();
  const View split = OpRun(OpId::k_reshape).in(0, s).ints(1, {4, 2, 3}).run_op();
  EXPECT_TRUE(split.buffer == s.buffer);
  EXPECT_EQ(cells(split), cells(s));
  const View flat = OpRun(OpId::k_reshape).in(0, s).ints(1, {1, 24}).run_op();
  EXPECT_FALSE(flat.buffer == s.buffer);
  EXPECT_EQ(cells(flat), cells(s));
  const View transposed = transpose_strides(t, 0, 1);
  EXPECT_EQ(cells(OpRun(OpId::k_reshape).in(0, transposed).ints(1, {3, 8}).run_op()), cells(transposed));
  EXPECT_EQ(OpRun(OpId::k_reshape).in(0, t).ints(1, {5, 5}).run_fault().cls, ErrorClass::kProgramFault);
}

TEST(OpsReshape, ValidRegion) {  // O-806, B-23
  const auto reshape = [](Longs shape, Longs valid, Longs to) {
    return valid_list(OpRun(OpId::k_reshape).in(0, with_valid(tile(shape), valid)).ints(1, to).run_op());
  };
  EXPECT_EQ(reshape({1, 24}, {1, 7}, {24, 1}), (Longs{7, 1}));
  EXPECT_EQ(reshape({4, 6}, {3, 5}, {1, 4, 6}), (Longs{1, 3, 5}));
  EXPECT_EQ(reshape({4, 6}, {2, 6}, {24}), (Longs{12}));
  EXPECT_EQ(reshape({4, 6}, {2, 6}, {8, 3}), (Longs{4, 3}));
  EXPECT_EQ(reshape({4, 6}, {0, 6}, {2, 12}), (Longs{0, 0}));
  EXPECT_EQ(reshape({1, 24}, {1, 6}, {4, 6}), (Longs{1, 6}));
  EXPECT_EQ(reshape({1, 24}, {1, 12}, {4, 6}), (Longs{2, 6}));
  EXPECT_EQ(reshape({1, 24}, {1, 5}, {4, 6}), (Longs{1, 5}));
  const Diagnostic d =
      OpRun(OpId::k_reshape).in(0, with_valid(tile({4, 6}), {3, 5})).ints(1, {2, 12}).run_fault();
  EXPECT_EQ(d.cls, ErrorClass::kProgramFault);
  for (const char* part : {"[4, 6]", "[3, 5]", "[2, 12]"}) EXPECT_NE(d.message.find(part), std::string::npos);
  EXPECT_EQ(OpRun(OpId::k_reshape).in(0, with_valid(tile({1, 24}), {1, 9})).ints(1, {4, 6}).run_fault().cls,
            ErrorClass::kProgramFault);
}

TEST(OpsTranspose, ValueAndViews) {  // O-807, O-808, O-809
  const View t = with_valid(tile({5, 19}), {4, 17});
  const View r = OpRun(OpId::k_transpose)
                     .in(0, t)
                     .with(AttrKey::k_axis1, int64_t{0})
                     .with(AttrKey::k_axis2, int64_t{1})
                     .run_op();
  EXPECT_EQ(shape_list(r), (Longs{19, 5}));
  EXPECT_EQ(valid_list(r), (Longs{17, 4}));
  EXPECT_TRUE(r.packed());
  for (int64_t i = 0; i < 17; ++i) {
    for (int64_t j = 0; j < 4; ++j) EXPECT_EQ(cell(r, {i, j}), cell(t, {j, i}));
  }
  const View v = OpRun(OpId::k_transpose_view).in(0, t).run_op();
  EXPECT_TRUE(v.buffer == t.buffer);
  EXPECT_EQ(cells(v), cells(r));
  View x = tensor({2, 3, 4});
  const View o = OpRun(OpId::k_transpose, kF32, false)
                     .control_plane()
                     .in(0, x)
                     .with(AttrKey::k_axis1, int64_t{0})
                     .with(AttrKey::k_axis2, int64_t{2})
                     .run_op();
  EXPECT_TRUE(o.buffer == x.buffer);
  EXPECT_EQ(cell(o, {3, 1, 1}), cell(x, {1, 1, 3}));
  const View s = OpRun(OpId::k_slice, kF32, false)
                     .control_plane()
                     .in(0, o)
                     .ints(1, {2, 3, 1})
                     .ints(2, {1, 0, 1})
                     .run_op();
  EXPECT_EQ(cell(s, {1, 2, 0}), cell(x, {1, 2, 2}));
}

TEST(OpsReinterpret, BitsAndScaling) {  // B-24, O-810
  View t = with_valid(tile({4, 6}), {3, 5});
  t.pad = PadMode::kMax;
  const View r = OpRun(OpId::k_reinterpret_view, DType::kInt16).in(0, t).run_op();
  EXPECT_EQ(shape_list(r), (Longs{4, 12}));
  EXPECT_EQ(valid_list(r), (Longs{3, 10}));
  EXPECT_EQ(r.pad, PadMode::kNull);
  EXPECT_EQ(std::memcmp(r.data(), t.data(), 96), 0);
  EXPECT_TRUE(r.buffer == t.buffer);
  const View back = OpRun(OpId::k_reinterpret_view, kF32).in(0, r).run_op();
  EXPECT_EQ(cells(back), cells(t));
  const View shaped =
      OpRun(OpId::k_reinterpret_view, DType::kInt32).in(0, tile({4, 6})).ints(2, {3, 8}).run_op();
  EXPECT_EQ(shape_list(shaped), (Longs{3, 8}));
  EXPECT_EQ(OpRun(OpId::k_reinterpret_view, kF32)
                .in(0, with_valid(tile({4, 6}, DType::kInt16), {4, 5}))
                .run_fault()
                .cls,
            ErrorClass::kProgramFault);
  EXPECT_EQ(OpRun(OpId::k_reinterpret_view, DType::kInt32).in(0, t).ints(2, {3, 8}).run_fault().cls,
            ErrorClass::kProgramFault);
}

TEST(OpsSetValidshape, NarrowsAndWidens) {  // O-811
  const View t = with_valid(tile({8, 8}), {2, 2});
  const View r = OpRun(OpId::k_set_validshape).in(0, t).integer_arg(1, 8).integer_arg(2, 3).run_op();
  EXPECT_EQ(valid_list(r), (Longs{8, 3}));
  EXPECT_EQ(valid_list(t), (Longs{2, 2}));  // the other name keeps its own
  EXPECT_TRUE(r.buffer == t.buffer);
  const Diagnostic d = OpRun(OpId::k_set_validshape).in(0, t).integer_arg(1, 9).integer_arg(2, 3).run_fault();
  EXPECT_EQ(d.cls, ErrorClass::kOutOfBoundsError);
  EXPECT_EQ(OpRun(OpId::k_set_validshape).in(0, t).integer_arg(1, 1).integer_arg(2, -1).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
}

TEST(OpsView, ShapeAndLayout) {  // O-812
  View x = tensor({4, 6});
  const View s = OpRun(OpId::k_view, kF32, false).in(0, x).ints(1, {3, 8}).run_op();
  EXPECT_EQ(cells(s), numbers(24));
  const View dn = OpRun(OpId::k_view, kF32, false)
                      .in(0, x)
                      .with(AttrKey::k_layout, static_cast<int64_t>(ir::TensorLayout::kDN))
                      .run_op();
  EXPECT_EQ(shape_list(dn), (Longs{6, 4}));
  EXPECT_EQ(cell(dn, {5, 3}), cell(x, {3, 5}));
  const View nd = OpRun(OpId::k_view, kF32, false)
                      .in(0, dn)
                      .with(AttrKey::k_layout, static_cast<int64_t>(ir::TensorLayout::kND))
                      .run_op();
  EXPECT_EQ(cells(nd), numbers(24));
  const View valid = OpRun(OpId::k_view, kF32, false).in(0, x).ints(1, {3, 8}).ints(2, {2, 8}).run_op();
  EXPECT_EQ(valid_list(valid), (Longs{2, 8}));
}

}  // namespace
}  // namespace pypto::vm::testing
