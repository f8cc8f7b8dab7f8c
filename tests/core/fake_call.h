// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "kernels_support.h"

#include "core/base/diagnostic.h"

/// Calls of data movement, products, gathers and sorts: FakeCall with several results, recorded accesses and
/// faults.
namespace pypto::vm::testing {

struct Access {
  AccessKind kind;
  int64_t begin;  ///< first byte in the buffer
  std::vector<int64_t> extent;
};

class OpRun : public FakeCall {
 public:
  explicit OpRun(ir::OpId id, DType result = DType::kFp32, bool tile = true) : FakeCall(id, result, tile) {}

  OpRun& in(int param, View v) {
    arg(param, std::move(v));
    return *this;
  }
  OpRun& integer_arg(int param, int64_t value, DType dtype = DType::kIndex) {
    arg(param, scalar_of(value), dtype);
    return *this;
  }
  OpRun& float_arg(int param, double value, DType dtype) {
    arg(param, scalar_of(value), dtype);
    return *this;
  }
  OpRun& ints(int param, std::vector<int64_t> values) {
    list_arg(param, std::move(values));
    return *this;
  }
  OpRun& with(ir::AttrKey key, ir::AttrValue value) {
    attr(key, std::move(value));
    return *this;
  }
  OpRun& control_plane() {
    control_plane_ = true;
    return *this;
  }
  OpRun& second_result(DType dtype) {
    second_dtype_ = dtype;
    return *this;
  }

  View run_op() {
    const ExecFn fn = exec_function(op);
    EXPECT_NE(fn, nullptr) << ir::op_row(op).name;
    EXPECT_EQ(fn(*this), ExecStatus::kDone);
    return results[0];
  }
  /// Runs and returns the fault's diagnostic; fails the test when there is none.
  Diagnostic run_fault() {
    try {
      exec_function(op)(*this);
    } catch (const Failure& f) {
      return f.diagnostic();
    }
    ADD_FAILURE() << "no fault from " << ir::op_row(op).name;
    return {};
  }

  void set_result(View v, int k) override { results[k] = std::move(v); }
  void set_result(Scalar s, int) override { scalar_result = s; }
  DType result_dtype(int k) const override { return k == 0 ? FakeCall::result_dtype(0) : second_dtype_; }
  bool in_control_plane() const override { return control_plane_; }
  void access(const View& v, AccessKind kind) override {
    EXPECT_NE(v.buffer->kind, BufferKind::kOnChip);
    accesses.push_back({kind, v.offset, valid_list(v)});
  }
  std::string operand_name(int p) const override { return "operand" + std::to_string(p); }

  View results[2];
  Scalar scalar_result = {};
  std::vector<Access> accesses;

 private:
  bool control_plane_ = false;
  DType second_dtype_ = DType::kNone;
};

/// count, count + 1, ... : every cell differs from its neighbours.
inline std::vector<double> numbers(int64_t count, double first = 1) {
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(first + static_cast<double>(i));
  return out;
}
/// Small whole numbers that look random.
inline std::vector<double> scrambled(int64_t count, uint32_t seed, int64_t low = -8, int64_t high = 8) {
  std::mt19937 random(seed);
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(
        static_cast<double>(low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1))));
  }
  return out;
}
/// One cell by coordinates.
inline double cell(const View& v, std::vector<int64_t> at) {
  int64_t offset = 0;
  for (size_t a = 0; a < at.size(); ++a) offset += at[a] * v.stride[a];
  return get(v.dtype, v.data() + offset * dtype_bytes(v.dtype));
}
inline View global_view(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  return make_view(dtype, std::move(shape), values, BufferKind::kGlobal);
}
using Longs = std::vector<int64_t>;

}  // namespace pypto::vm::testing
