// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/numeric.h"
#include "core/vm/exec.h"
#include "core/vm/ops/register.h"

/// Runs executors without a machine: operands are built from numbers, results are read back as numbers.
namespace pypto::vm::testing {

inline void release_owned(Buffer* b) {
  std::free(b->data);
  std::free(b->written.map);
  delete b;
}

inline BufferRef make_buffer(int64_t bytes, BufferKind kind = BufferKind::kOnChip) {
  auto* b = new Buffer();
  b->bytes = bytes;
  // Exact size, so that address sanitizers see every overrun.
  b->data = static_cast<uint8_t*>(std::calloc(static_cast<size_t>(bytes > 0 ? bytes : 1), 1));
  b->kind = kind;
  b->release = &release_owned;
  return BufferRef(b);
}

inline void put(DType dtype, void* element, double value) {
  if (is_float(dtype)) {
    write_float(dtype, element, value);
  } else {
    write_integer(dtype, element, static_cast<int64_t>(value));
  }
}
inline double get(DType dtype, const void* element) {
  return is_float(dtype) ? read_float(dtype, element) : static_cast<double>(read_integer(dtype, element));
}

/// Packed array with the given cells (row-major).
inline View make_view(DType dtype, std::vector<int64_t> shape, const std::vector<double>& cells,
                      BufferKind kind = BufferKind::kOnChip) {
  View v;
  v.dtype = dtype;
  v.set_packed(static_cast<int>(shape.size()), shape.data());
  const int64_t width = dtype_bytes(dtype);
  v.buffer = make_buffer(v.elements() * width, kind);
  for (int64_t i = 0; i < v.elements(); ++i) {
    put(dtype, v.data() + i * width, cells[static_cast<size_t>(i) % cells.size()]);
  }
  return v;
}

/// The same cells in storage where neighbours of the last axis are `step` elements apart.
inline View with_stride(const View& v, int64_t step) {
  View w = v;
  for (int a = 0; a < w.rank; ++a) w.stride[a] = v.stride[a] * step;
  const int64_t width = dtype_bytes(v.dtype);
  w.buffer = make_buffer((v.elements() - 1) * step * width + width);
  for (int64_t i = 0; i < v.elements(); ++i)
    std::memcpy(w.data() + i * step * width, v.data() + i * width, static_cast<size_t>(width));
  return w;
}

inline View with_valid(View v, std::vector<int64_t> valid) {
  for (size_t a = 0; a < valid.size(); ++a) v.valid[a] = valid[a];
  v.refresh_fully_valid();
  return v;
}

/// Cells of the valid region, row-major.
inline std::vector<double> cells(const View& v) {
  std::vector<double> out;
  const int64_t width = dtype_bytes(v.dtype);
  std::vector<int64_t> at(static_cast<size_t>(v.rank), 0);
  if (v.valid_elements() == 0) return out;
  for (;;) {
    int64_t offset = 0;
    for (int a = 0; a < v.rank; ++a) offset += at[static_cast<size_t>(a)] * v.stride[a];
    out.push_back(get(v.dtype, v.data() + offset * width));
    int a = v.rank - 1;
    for (; a >= 0; --a) {
      if (++at[static_cast<size_t>(a)] < v.valid[a]) break;
      at[static_cast<size_t>(a)] = 0;
    }
    if (a < 0) return out;
  }
}

inline std::vector<int64_t> shape_list(const View& v) { return {v.shape, v.shape + v.rank}; }
inline std::vector<int64_t> valid_list(const View& v) { return {v.valid, v.valid + v.rank}; }

/// A call with operands by parameter position.
class FakeCall : public OpCall {
 public:
  explicit FakeCall(ir::OpId id, DType result, bool tile = true) : result_dtype_(result), tile_(tile) {
    op = id;
    attrs = &attributes;
  }
  FakeCall& arg(int param, View v) {
    views_[param] = std::move(v);
    return *this;
  }
  FakeCall& arg(int param, Scalar s, DType dtype) {
    scalars_[param] = {s, dtype};
    return *this;
  }
  FakeCall& list_arg(int param, std::vector<int64_t> values) {
    lists_[param] = std::move(values);
    return *this;
  }
  FakeCall& attr(ir::AttrKey key, ir::AttrValue value) {
    attributes.set(key, std::move(value));
    return *this;
  }
  View run() {
    static const ExecTable table = [] {
      ExecTable t;
      register_create(t);
      register_binary(t);
      register_unary(t);
      register_cast(t);
      register_compare(t);
      register_reduce(t);
      register_expand(t);
      register_fill(t);
      return t;
    }();
    const ExecFn fn = table.fn[static_cast<int>(op)];
    EXPECT_NE(fn, nullptr) << ir::op_row(op).name;
    EXPECT_EQ(fn(*this), ExecStatus::kDone);
    return result;
  }

  bool has(int p) const override { return views_.count(p) || scalars_.count(p) || lists_.count(p); }
  const View& view(int p) const override { return views_.at(p); }
  bool is_scalar(int p) const override { return scalars_.count(p) != 0; }
  Scalar scalar(int p) const override { return scalars_.at(p).first; }
  DType scalar_dtype(int p) const override { return scalars_.at(p).second; }
  std::span<const int64_t> list(int p) const override { return lists_.at(p); }
  DType result_dtype(int) const override { return result_dtype_; }
  bool result_is_tile(int) const override { return tile_; }
  void set_result(View v, int) override { result = std::move(v); }
  void set_result(Scalar, int) override {}
  View alloc(DType dtype, std::span<const int64_t> shape, bool zero) override {
    View v;
    v.dtype = dtype;
    v.set_packed(static_cast<int>(shape.size()), shape.data());
    v.buffer = make_buffer(v.elements() * dtype_bytes(dtype));
    // Hostile contents show cells that an executor forgets.
    if (!zero) std::memset(v.buffer->data, 0xa5, static_cast<size_t>(v.buffer->bytes));
    return v;
  }
  void access(const View&, AccessKind kind) override { ++(kind == AccessKind::kRead ? reads : writes); }
  void warn(const char* id, std::string text) override { warnings.push_back(std::string(id) + " " + text); }
  std::string operand_name(int) const override { return "x"; }

  ir::AttrMap attributes;
  View result;
  int reads = 0, writes = 0;
  std::vector<std::string> warnings;

 private:
  DType result_dtype_;
  bool tile_;
  std::map<int, View> views_;
  std::map<int, std::pair<Scalar, DType>> scalars_;
  std::map<int, std::vector<int64_t>> lists_;
};

/// Runs `f` once per instruction set that this host has.
template <class F>
void for_each_target(F f) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

inline const std::vector<DType>& arithmetic_dtypes() {
  static const std::vector<DType> all = {DType::kFp32,   DType::kFp16,   DType::kBf16,  DType::kInt8,
                                         DType::kInt16,  DType::kInt32,  DType::kInt64, DType::kUInt8,
                                         DType::kUInt16, DType::kUInt32, DType::kUInt64};
  return all;
}

/// n elements with random bits; floats: mostly moderate numbers, some specials (NaN only when asked for).
inline std::vector<uint8_t> random_elements(DType dtype, size_t n, uint32_t seed, bool nan = false) {
  std::mt19937_64 random(seed);
  const auto width = static_cast<size_t>(dtype_bytes(dtype));
  std::vector<uint8_t> out(n * width);
  for (size_t i = 0; i < n; ++i) {
    uint8_t* element = out.data() + i * width;
    if (!is_float(dtype)) {
      write_integer(dtype, element, static_cast<int64_t>(random()));
      continue;
    }
    const auto pick = random() % 16;
    double value = static_cast<double>(static_cast<int64_t>(random() % 2000001) - 1000000) / 65536.0;
    if (pick == 0) value = value * 1e-39;
    if (pick == 1) value = value * 1e30;
    if (pick == 2) value = random() % 2 ? 0.0 : -0.0;
    if (pick == 3 && nan) value = std::numeric_limits<double>::quiet_NaN();
    if (pick == 4) value = random() % 2 ? std::numeric_limits<double>::infinity() : -3.0;
    write_float(dtype, element, value);
  }
  return out;
}

}  // namespace pypto::vm::testing
