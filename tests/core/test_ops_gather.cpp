// SPDX-License-Identifier: Apache-2.0
#include "fake_call.h"

#include "core/vm/ops/views.h"

namespace pypto::vm::testing {
namespace {

using ir::AttrKey;
using ir::OpId;

constexpr DType kF32 = DType::kFp32;
constexpr DType kI32 = DType::kInt32;

TEST(OpsGather, IndexFormOnEveryAxis) {  // B-18, O-1902
  const View x = make_view(kF32, {3, 4, 5}, numbers(60));
  for (const int64_t dim : {-1, 0, 1, 2}) {
    const int64_t axis = dim < 0 ? 2 : dim;
    Longs shape = {2, 3, 4};
    shape[static_cast<size_t>(axis)] = 7;  // free on the gather axis
    const int64_t bound = x.shape[axis];
    const int64_t count = shape[0] * shape[1] * shape[2];
    const View index =
        make_view(kI32, shape, scrambled(count, static_cast<uint32_t>(axis + 1), 0, bound - 1));
    for (const View& source : {x, with_stride(x, 3)}) {
      const View r = OpRun(OpId::k_gather).in(0, source).in(2, index).with(AttrKey::k_dim, dim).run_op();
      EXPECT_EQ(shape_list(r), shape);
      for (int64_t i = 0; i < shape[0]; ++i) {
        for (int64_t j = 0; j < shape[1]; ++j) {
          for (int64_t k = 0; k < shape[2]; ++k) {
            Longs at = {i, j, k};
            at[static_cast<size_t>(axis)] = static_cast<int64_t>(cell(index, {i, j, k}));
            EXPECT_EQ(cell(r, {i, j, k}), cell(x, at));
          }
        }
      }
    }
  }
}

TEST(OpsGather, StaleIndexGivesZero) {  // B-19, O-1905
  const View x = make_view(DType::kFp16, {2, 8}, numbers(16));
  const View index = with_valid(make_view(DType::kInt16, {2, 4}, {1, 7, 99, -3, 0, 2, 12345, 8}), {2, 2});
  OpRun quiet(OpId::k_gather, DType::kFp16);
  const View r = quiet.in(0, x).in(2, index).with(AttrKey::k_dim, int64_t{-1}).run_op();
  EXPECT_TRUE(r.fully_valid);
  EXPECT_EQ(cells(r), (std::vector<double>{2, 8, 0, 0, 9, 11, 0, 0}));
  EXPECT_TRUE(quiet.warnings.empty());  // the index cells were padding
  OpRun loud(OpId::k_gather, DType::kFp16);
  loud.in(0, x).in(2, with_valid(index, {2, 4})).with(AttrKey::k_dim, int64_t{1}).run_op();
  EXPECT_EQ(loud.warnings.size(), 1u);
}

TEST(OpsGather, FlatIndexOfATile) {  // O-1903
  const View x = with_valid(make_view(kF32, {4, 6}, numbers(24)), {2, 3});
  const View index = make_view(kI32, {2, 3}, {23, 0, 7, 6, 24, 5});
  const View r = OpRun(OpId::k_tile_gather).in(0, x).in(1, index).run_op();
  EXPECT_EQ(cells(r), (std::vector<double>{24, 1, 8, 7, 0, 6}));
}

TEST(OpsGather, Masks) {  // O-1904
  const View x = make_view(kF32, {3, 16}, numbers(48));
  const int first[] = {0, 0, 1, 0, 1, 2, 3, 0}, step[] = {0, 2, 2, 4, 4, 4, 4, 1};
  for (int64_t pattern = 1; pattern <= 7; ++pattern) {
    for (const OpId op : {OpId::k_gather, OpId::k_gather_mask}) {
      const View r = OpRun(op).in(0, x).with(AttrKey::k_mask_pattern, pattern).run_op();
      EXPECT_EQ(shape_list(r), (Longs{3, 16 / step[pattern]}));
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < r.shape[1]; ++j) {
          EXPECT_EQ(cell(r, {i, j}), cell(x, {i, first[pattern] + j * step[pattern]}));
        }
      }
    }
  }
  const View bits =
      OpRun(OpId::k_gather, DType::kUInt32).in(0, x).with(AttrKey::k_mask_pattern, int64_t{2}).run_op();
  EXPECT_EQ(bits.as<uint32_t>()[0], std::bit_cast<uint32_t>(2.0f));
}

TEST(OpsGather, CompareForm) {  // O-1906
  const View x = with_valid(make_view(kI32, {3, 8}, scrambled(24, 5, 0, 3)), {3, 7});
  const char* names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (int code = 0; code < 6; ++code) {
    for (const bool by_name : {false, true}) {
      OpRun call(OpId::k_gather_compare, kI32);
      call.second_result(DType::kUInt32).in(0, x).integer_arg(1, 2, kI32);
      if (by_name) {
        call.with(AttrKey::k_cmp_mode, std::string(names[code]));
      } else {
        call.with(AttrKey::k_cmp_mode, int64_t{code});
      }
      const View r =
          call.with(AttrKey::k_offset, int64_t{100}).with(AttrKey::k_out_cols, int64_t{3}).run_op();
      const View counts = call.results[1];
      EXPECT_EQ(shape_list(counts), (Longs{1, 3}));
      EXPECT_EQ(counts.dtype, DType::kUInt32);
      for (int64_t i = 0; i < 3; ++i) {
        int64_t n = 0;
        for (int64_t j = 0; j < 7; ++j) {
          const double v = cell(x, {i, j});
          const bool hit[] = {v == 2, v != 2, v < 2, v <= 2, v > 2, v >= 2};
          if (!hit[code]) continue;
          if (n < 3) {
            EXPECT_EQ(cell(r, {i, n}), static_cast<double>(j + 100));
          }
          ++n;
        }
        EXPECT_EQ(cell(counts, {0, i}), static_cast<double>(n));
      }
    }
  }
  OpRun flat(OpId::k_gather, kI32);
  flat.second_result(kI32)
      .in(0, make_view(kF32, {1, 4}, {1.5, 2.5, 1.5, -1}))
      .float_arg(5, 1.5, kF32)
      .with(AttrKey::k_cmp_mode, int64_t{0})
      .with(AttrKey::k_out_cols, int64_t{2});
  EXPECT_EQ(cells(flat.run_op()), (std::vector<double>{0, 2}));
}

TEST(OpsGather, Blocks) {  // O-1907
  const View x = make_view(DType::kFp16, {4, 64}, numbers(256));
  View offset =
      make_view(DType::kUInt32, {2, 8}, {0, 32, 480, 64, 96, 128, 160, 448, 32, 32, 0, 0, 0, 0, 0, 0});
  offset = with_valid(offset, {2, 4});
  const View r = OpRun(OpId::k_gatherb, DType::kFp16).in(0, x).in(1, offset).run_op();
  EXPECT_EQ(shape_list(r), (Longs{2, 128}));
  EXPECT_EQ(valid_list(r), (Longs{2, 64}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t c = 0; c < 4; ++c) {
      for (int64_t e = 0; e < 16; ++e) {
        EXPECT_EQ(cell(r, {i, c * 16 + e}), cell(offset, {i, c}) / 2 + static_cast<double>(e + 1));
      }
    }
  }
  for (const double bad : {16.0, 512.0}) {
    const View o = make_view(DType::kUInt32, {1, 8}, {bad, 0, 0, 0, 0, 0, 0, 0});
    EXPECT_EQ(OpRun(OpId::k_gatherb, DType::kFp16).in(0, x).in(1, o).run_fault().cls,
              ErrorClass::kOutOfBoundsError);
  }
}

TEST(OpsGatherRow, WindowsAndTransposition) {  // O-1910
  const View x = global_view(kF32, {20, 16}, numbers(320));
  View acc = make_view(kF32, {8, 16}, {-1});
  OpRun call(OpId::k_gather_row);
  const View r =
      call.in(0, acc).in(1, x).ints(2, {6, 0}).ints(3, {17, 0}).ints(4, {4, 16}).ints(6, {2, 16}).run_op();
  EXPECT_TRUE(r.buffer == acc.buffer);
  EXPECT_EQ(cell(acc, {7, 15}), cell(x, {18, 15}));
  EXPECT_EQ(cell(acc, {5, 3}), -1);
  ASSERT_EQ(call.accesses.size(), 1u);
  EXPECT_EQ(call.accesses[0].extent, (Longs{2, 16}));
  EXPECT_EQ(OpRun(OpId::k_gather_row)
                .in(0, acc)
                .in(1, x)
                .ints(2, {6, 0})
                .ints(3, {0, 0})
                .ints(4, {4, 16})
                .run_fault()
                .cls,
            ErrorClass::kOutOfBoundsError);
  EXPECT_EQ(OpRun(OpId::k_gather_row)
                .in(0, acc)
                .in(1, x)
                .ints(2, {0, 0})
                .ints(3, {18, 0})
                .ints(4, {4, 16})
                .run_fault()
                .cls,
            ErrorClass::kOutOfBoundsError);
  View t = make_view(kF32, {16, 8}, {0});
  OpRun(OpId::k_gather_row)
      .in(0, t)
      .in(1, x)
      .ints(2, {4, 5})
      .ints(3, {3, 2})
      .ints(4, {2, 7})
      .with(AttrKey::k_transpose, int64_t{1})
      .run_op();
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 7; ++j) EXPECT_EQ(cell(t, {4 + j, 5 + i}), cell(x, {3 + i, 2 + j}));
  }
}

TEST(OpsPagedGather, PagesAndColumns) {  // O-1911
  const View x = global_view(DType::kFp16, {32, 12}, numbers(384));
  const View indices = global_view(kI32, {1, 5}, {0, 9, 4, 15, 2}),
             table = global_view(kI32, {4}, {3, 0, 6, 7});
  const auto run = [&](bool trans) {
    OpRun call(OpId::k_paged_gather, DType::kFp16, false);
    return call.in(0, x)
        .in(1, indices)
        .in(2, table)
        .with(AttrKey::k_block_size, int64_t{4})
        .with(AttrKey::k_size, int64_t{6})
        .with(AttrKey::k_max_indices, int64_t{8})
        .with(AttrKey::k_col_off, int64_t{5})
        .with(AttrKey::k_is_trans, int64_t{trans})
        .run_op();
  };
  const View r = run(false), t = run(true);
  EXPECT_EQ(shape_list(r), (Longs{8, 6}));
  EXPECT_EQ(shape_list(t), (Longs{6, 8}));
  for (int64_t i = 0; i < 5; ++i) {
    const auto id = static_cast<int64_t>(cell(indices, {0, i}));
    const int64_t row = static_cast<int64_t>(cell(table, {id / 4})) * 4 + id % 4;
    for (int64_t j = 0; j < 6; ++j) {
      EXPECT_EQ(cell(r, {i, j}), cell(x, {row, 5 + j}));
      EXPECT_EQ(cell(t, {j, i}), cell(x, {row, 5 + j}));
    }
  }
  const auto fault = [&](const View& ids, const View& pages, int64_t most) {
    OpRun call(OpId::k_paged_gather, DType::kFp16, false);
    return call.in(0, x)
        .in(1, ids)
        .in(2, pages)
        .with(AttrKey::k_block_size, int64_t{4})
        .with(AttrKey::k_size, int64_t{6})
        .with(AttrKey::k_max_indices, most)
        .run_fault()
        .cls;
  };
  EXPECT_EQ(fault(global_view(kI32, {1}, {16}), table, 8), ErrorClass::kOutOfBoundsError);
  EXPECT_EQ(fault(global_view(kI32, {1}, {-1}), table, 8), ErrorClass::kOutOfBoundsError);
  EXPECT_EQ(fault(indices, global_view(kI32, {4}, {3, 0, 6, 8}), 8), ErrorClass::kOutOfBoundsError);
  EXPECT_EQ(fault(indices, table, 4), ErrorClass::kOutOfBoundsError);
}

TEST(OpsMgather, RowsElementsAndOutOfRange) {  // O-1912, O-1914
  const View x = global_view(kF32, {6, 8}, numbers(48));
  const View rows = make_view(kI32, {1, 4}, {5, 0, 7, -1});
  const auto gather = [&](const char* oob) {
    return OpRun(OpId::k_mgather)
        .in(0, x)
        .in(1, rows)
        .with(AttrKey::k_coalesce, std::string("row"))
        .with(AttrKey::k_gather_oob, std::string(oob))
        .run_op();
  };
  const View clamp = gather("clamp"), wrap = gather("wrap"), zero = gather("zero");
  for (int64_t j = 0; j < 8; ++j) {
    EXPECT_EQ(cell(clamp, {0, j}), cell(x, {5, j}));
    EXPECT_EQ(cell(clamp, {2, j}), cell(x, {5, j}));
    EXPECT_EQ(cell(clamp, {3, j}), cell(x, {5, j}));  // -1 is 2^32 - 1
    EXPECT_EQ(cell(wrap, {2, j}), cell(x, {1, j}));
    EXPECT_EQ(cell(wrap, {3, j}), cell(x, {4294967295LL % 6, j}));
    EXPECT_EQ(cell(zero, {2, j}), 0);
    EXPECT_EQ(cell(zero, {1, j}), cell(x, {0, j}));
  }
  EXPECT_EQ(OpRun(OpId::k_mgather).in(0, x).in(1, rows).run_fault().cls, ErrorClass::kOutOfBoundsError);
  const View elements = with_valid(make_view(kI32, {2, 3}, {47, 0, 999, 9, 10, 999}), {2, 2});
  OpRun call(OpId::k_mgather);
  const View e = call.in(0, x).in(1, elements).with(AttrKey::k_coalesce, int64_t{1}).run_op();
  EXPECT_EQ(valid_list(e), (Longs{2, 2}));
  EXPECT_EQ(cells(e), (std::vector<double>{48, 1, 10, 11}));
  EXPECT_EQ(call.accesses.size(), 4u);  // the cells themselves, nothing else
  EXPECT_EQ(call.accesses[0].begin, 47 * 4);
}

TEST(OpsMscatter, LastWriteWins) {  // O-1924
  View y = global_view(kF32, {4, 5}, {0});
  const View s = make_view(kF32, {2, 3}, numbers(6));
  const View index = with_valid(make_view(kI32, {2, 3}, {19, 3, 999, 3, 0, 999}), {2, 2});
  OpRun call(OpId::k_mscatter);
  call.in(0, with_valid(s, {2, 2})).in(1, index).in(2, y).run_op();
  EXPECT_EQ(cell(y, {3, 4}), 1);
  EXPECT_EQ(cell(y, {0, 3}), 4);
  EXPECT_EQ(cell(y, {0, 0}), 5);
  double sum = 0;
  for (const double v : cells(y)) sum += v;
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(OpRun(OpId::k_mscatter).in(0, s).in(1, with_valid(index, {2, 3})).in(2, y).run_fault().cls,
            ErrorClass::kOutOfBoundsError);
}

TEST(OpsScatter, IndexFormIsAValue) {  // O-1920
  const View x = make_view(kF32, {3, 6}, numbers(18));
  const View index = make_view(kI32, {2, 3}, {5, 0, 5, 1, 1, 2}),
             s = make_view(kF32, {2, 3}, numbers(6, 100));
  const View r = OpRun(OpId::k_scatter, kF32, false)
                     .in(0, x)
                     .in(2, index)
                     .in(3, s)
                     .with(AttrKey::k_dim, int64_t{-1})
                     .run_op();
  EXPECT_EQ(cells(x), numbers(18));
  EXPECT_EQ(cells(r),
            (std::vector<double>{101, 2, 3, 4, 5, 102, 7, 104, 105, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(OpRun(OpId::k_scatter, kF32, false)
                .in(0, x)
                .in(2, make_view(kI32, {2, 3}, {6, 0, 0, 0, 0, 0}))
                .in(3, s)
                .run_fault()
                .cls,
            ErrorClass::kOutOfBoundsError);
  View t = make_view(kF32, {3, 6}, numbers(18));
  const View flat = make_view(kI32, {2, 3}, {17, 0, 9, 0, 8, 1});
  const View tr = OpRun(OpId::k_tile_scatter).in(0, t).in(1, s).in(2, flat).run_op();
  EXPECT_TRUE(tr.buffer == t.buffer);
  EXPECT_EQ(cells(t),
            (std::vector<double>{103, 105, 3, 4, 5, 6, 7, 8, 104, 102, 11, 12, 13, 14, 15, 16, 17, 100}));
}

TEST(OpsScatter, TwoMasksIntoOneTarget) {  // B-21, O-1921, O-1922
  View t = make_view(kF32, {2, 8}, {0});
  const View a = make_view(kF32, {2, 4}, numbers(8)), b = make_view(kF32, {2, 4}, numbers(8, 101));
  OpRun(OpId::k_scatter_mask).in(0, t).in(1, a).with(AttrKey::k_mask_pattern, int64_t{1}).run_op();
  OpRun(OpId::k_scatter_mask).in(0, t).in(1, b).with(AttrKey::k_mask_pattern, int64_t{2}).run_op();
  const View d = make_view(kF32, {2, 8}, {0});
  const View v1 = OpRun(OpId::k_scatter, kF32, false)
                      .in(0, a)
                      .in(5, d)
                      .with(AttrKey::k_mask_pattern, int64_t{1})
                      .run_op();
  const View v2 = OpRun(OpId::k_tensor_scatter_mask, kF32, false)
                      .in(0, b)
                      .in(1, v1)
                      .with(AttrKey::k_mask_pattern, int64_t{2})
                      .run_op();
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(cell(t, {i, 2 * j}), cell(a, {i, j}));
      EXPECT_EQ(cell(t, {i, 2 * j + 1}), cell(b, {i, j}));
      EXPECT_EQ(cell(v1, {i, 2 * j + 1}), 0);
    }
  }
  EXPECT_EQ(cells(v2), cells(t));
}

TEST(OpsScatter, UpdateRows) {  // O-1923
  const View index = make_view(kI32, {2, 2}, {4, 1, 4, 0});
  const View s = make_view(kF32, {4, 3}, numbers(12, 100));
  const View x = make_view(kF32, {5, 3}, numbers(15));
  for (const bool in_place : {false, true}) {
    View target = make_view(kF32, {5, 3}, numbers(15));
    const View r = OpRun(OpId::k_scatter_update, kF32, in_place).in(0, target).in(2, index).in(3, s).run_op();
    EXPECT_EQ(r.buffer == target.buffer, in_place);
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(cell(r, {4, j}), cell(s, {2, j}));
      EXPECT_EQ(cell(r, {1, j}), cell(s, {1, j}));
      EXPECT_EQ(cell(r, {0, j}), cell(s, {3, j}));
      EXPECT_EQ(cell(r, {2, j}), cell(x, {2, j}));
    }
    if (!in_place) {
      EXPECT_EQ(cells(target), numbers(15));
    }
  }
  const View cache = make_view(kF32, {3, 4, 1, 2}, numbers(24)),
             rows = make_view(kF32, {2, 2, 1, 2}, numbers(8, 100));
  const View at = make_view(kI32, {2, 2}, {11, 3, 0, 6});
  const View r = OpRun(OpId::k_scatter_update, kF32, false).in(0, cache).in(2, at).in(3, rows).run_op();
  EXPECT_EQ(cell(r, {2, 3, 0, 1}), 101);
  EXPECT_EQ(cell(r, {0, 3, 0, 0}), 102);
  EXPECT_EQ(cell(r, {1, 2, 0, 1}), 107);
  EXPECT_EQ(cell(r, {1, 1, 0, 1}), cell(cache, {1, 1, 0, 1}));
  EXPECT_EQ(OpRun(OpId::k_scatter_update, kF32, false)
                .in(0, cache)
                .in(2, make_view(kI32, {2, 2}, {12, 0, 0, 0}))
                .in(3, rows)
                .run_fault()
                .cls,
            ErrorClass::kOutOfBoundsError);
}

}  // namespace
}  // namespace pypto::vm::testing
