// SPDX-License-Identifier: Apache-2.0
#include "fake_call.h"

#include <algorithm>

namespace pypto::vm::testing {
namespace {

using ir::AttrKey;
using ir::OpId;

constexpr DType kF32 = DType::kFp32;

struct Record {
  double value;
  uint32_t index;
  bool operator==(const Record&) const = default;
};

std::vector<Record> records_of(const View& v, int64_t row) {
  std::vector<Record> out;
  const int64_t width = v.shape[v.rank - 1] * dtype_bytes(v.dtype) / 8;
  for (int64_t k = 0; k < width; ++k) {
    const uint8_t* at = v.data() + (row * width + k) * 8;
    Record r;
    r.value = read_float(v.dtype, at);
    std::memcpy(&r.index, at + 4, 4);
    if (v.dtype == DType::kFp16) {
      uint16_t zero;
      std::memcpy(&zero, at + 2, 2);
      EXPECT_EQ(zero, 0);
    }
    out.push_back(r);
  }
  return out;
}

bool better(const Record& a, const Record& b) {
  return a.value != b.value ? a.value > b.value : a.index < b.index;
}

std::vector<double> scores(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) {
    const auto pick = random() % 40;
    out.push_back(pick == 0   ? -std::numeric_limits<double>::infinity()
                  : pick == 1 ? -0.0
                  : pick == 2 ? 0.0
                              : static_cast<double>(static_cast<int>(random() % 61) - 30) / 4);
  }
  return out;
}

View indices(int64_t rows, int64_t cols) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * cols; ++i) values.push_back(static_cast<double>(i % cols));
  return make_view(DType::kUInt32, {rows, cols}, values);
}

TEST(OpsSort, BlocksOf32) {  // O-2001
  for_each_target([&] {
    for (const DType dtype : {kF32, DType::kFp16}) {
      const View x = make_view(dtype, {3, 96}, scores(288, 1));
      View index = indices(3, 96);
      index.as<uint32_t>()[5] = 0xfffffff0u;  // unsigned order, exact bits
      index.as<uint32_t>()[7] = index.as<uint32_t>()[6];
      const View r = OpRun(OpId::k_sort32, dtype).in(0, x).in(1, index).run_op();
      EXPECT_EQ(shape_list(r), (Longs{3, dtype == kF32 ? 192 : 384}));
      EXPECT_TRUE(r.fully_valid);
      for (int64_t row = 0; row < 3; ++row) {
        std::vector<Record> want;
        for (int64_t j = 0; j < 96; ++j) {
          want.push_back({cell(x, {row, j}), index.as<uint32_t>()[row * 96 + j]});
        }
        for (size_t b = 0; b < 96; b += 32) {
          std::stable_sort(want.begin() + static_cast<long>(b), want.begin() + static_cast<long>(b) + 32,
                           better);
        }
        EXPECT_EQ(records_of(r, row), want);
      }
    }
  });
}

TEST(OpsSort, ChainOver2048Scores) {  // B-20, O-2002
  for (const DType dtype : {kF32, DType::kFp16}) {
    const int64_t n = 2048, per_record = 8 / dtype_bytes(dtype);
    const View x = make_view(dtype, {2, n}, scores(2 * n, 2));
    View r = OpRun(OpId::k_sort32, dtype).in(0, x).in(1, indices(2, n)).run_op();
    for (const int64_t block : {64, 256, 1024, 4096}) {
      if (block == 4096 && dtype == kF32) break;
      const int64_t elements = block * per_record / 2;
      r = OpRun(OpId::k_mrgsort, dtype).in(0, r).with(AttrKey::k_block_len, elements).run_op();
    }
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<Record> want;
      for (int64_t j = 0; j < n; ++j) want.push_back({cell(x, {row, j}), static_cast<uint32_t>(j)});
      std::stable_sort(want.begin(), want.end(), better);
      EXPECT_EQ(records_of(r, row), want);
    }
  }
}

/// A sorted run of pair records.
View run_of(std::vector<double> values, uint32_t first_index) {
  View v = make_view(kF32, {1, static_cast<int64_t>(values.size()) * 2}, {0});
  for (size_t i = 0; i < values.size(); ++i) {
    v.as<float>()[2 * i] = static_cast<float>(values[i]);
    v.as<uint32_t>()[2 * i + 1] = first_index + static_cast<uint32_t>(i);
  }
  return v;
}

TEST(OpsSort, TrailingRunsOfFormat1) {  // O-2002
  // Five full runs and a partial one: four are merged, then the last two.
  std::vector<double> values = scores(5 * 32 + 7, 3);
  std::vector<Record> want;
  View all = make_view(kF32, {1, (5 * 32 + 7) * 2}, {0});
  for (size_t start = 0; start < values.size(); start += 32) {
    std::vector<Record> run;
    for (size_t i = start; i < std::min(values.size(), start + 32); ++i)
      run.push_back({values[i], static_cast<uint32_t>(i)});
    std::stable_sort(run.begin(), run.end(), better);
    for (size_t i = 0; i < run.size(); ++i) {
      all.as<float>()[2 * (start + i)] = static_cast<float>(run[i].value);
      all.as<uint32_t>()[2 * (start + i) + 1] = run[i].index;
    }
    want.insert(want.end(), run.begin(), run.end());
  }
  std::stable_sort(want.begin(), want.begin() + 128, better);
  std::stable_sort(want.begin() + 128, want.end(), better);
  const View r = OpRun(OpId::k_mrgsort_format1).in(0, all).integer_arg(1, 64, DType::kInt32).run_op();
  EXPECT_EQ(records_of(r, 0), want);
  EXPECT_EQ(OpRun(OpId::k_mrgsort_format1).in(0, all).integer_arg(1, 48, DType::kInt32).run_fault().cls,
            ErrorClass::kProgramFault);
}

TEST(OpsSort, Format2IsStable) {  // O-2003
  const View a = run_of({5, 3, 3, 1}, 0), b = run_of({5, 4, 3}, 100), c = run_of({6, 3, -1}, 200),
             d = run_of({3}, 300);
  const View two = OpRun(OpId::k_mrgsort, kF32, false).in(0, a).in(1, b).run_op();
  EXPECT_EQ(records_of(two, 0),
            (std::vector<Record>{{5, 0}, {5, 100}, {4, 101}, {3, 1}, {3, 2}, {3, 102}, {1, 3}}));
  const View four = OpRun(OpId::k_mrgsort, kF32, false).in(0, a).in(1, b).in(2, c).in(3, d).run_op();
  EXPECT_EQ(records_of(four, 0), (std::vector<Record>{{6, 200},
                                                      {5, 0},
                                                      {5, 100},
                                                      {4, 101},
                                                      {3, 1},
                                                      {3, 2},
                                                      {3, 102},
                                                      {3, 201},
                                                      {3, 300},
                                                      {1, 3},
                                                      {-1, 202}}));
  // Tile: the shape of tmp; leading records.
  const View tmp = make_view(kF32, {1, 8}, {0});
  const View tile = OpRun(OpId::k_mrgsort_format2).in(0, a).in(1, b).in(2, c).in(4, tmp).run_op();
  EXPECT_EQ(records_of(tile, 0), (std::vector<Record>{{6, 200}, {5, 0}, {5, 100}, {4, 101}}));
  // exhausted: up to the record that uses up an input.
  const View stop = OpRun(OpId::k_mrgsort, kF32, false)
                        .in(0, a)
                        .in(1, b)
                        .in(3, d)
                        .with(AttrKey::k_exhausted, int64_t{1})
                        .run_op();
  auto got = records_of(stop, 0);
  got.resize(7);
  EXPECT_EQ(got, (std::vector<Record>{{5, 0}, {5, 100}, {4, 101}, {3, 1}, {3, 2}, {3, 102}, {0, 0}}));
}

}  // namespace
}  // namespace pypto::vm::testing
