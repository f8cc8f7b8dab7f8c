// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/enums.h"

namespace pypto::trace {

/// What the machine costs (05 section A.13): one value per row of hardware.def and vector_ops.def.
enum class Param : int {
#define PYPTO_HW(id, ...) k_##id,
#include "core/trace/hardware.def"
#undef PYPTO_HW
  kCount,
};

/// Durations of a vector instruction: b + k R contiguous; (a n + d) vr + c with gaps (`a5` only).
struct LinearCost {
  double k = 0, b = 0, a = 0, d = 0, c = 0;
};
enum class VectorRow : int {
#define PYPTO_HW_OP(id, ...) k_##id,
#define PYPTO_HW_OP_LIKE(id, ...) k_##id,
#include "core/trace/vector_ops.def"
#undef PYPTO_HW_OP
#undef PYPTO_HW_OP_LIKE
  kCount,
};

/// The parameters of one architecture: defaults, and what a file of PYPTO_HW_PARAMS replaces (05 H-76).
class Params {
 public:
  explicit Params(ir::Arch arch);

  /// Replaces one value. Throws Failure (kValueError) naming the key: unknown, not finite, or a rate that is
  /// not positive.
  void set(const std::string& key, double value);
  /// Every key with value and tag, in the order of the tables.
  struct Row {
    std::string key;
    double value = 0;
    std::string tag;
  };
  std::vector<Row> rows() const;

  ir::Arch arch() const { return arch_; }
  double operator[](Param p) const { return values_[static_cast<size_t>(p)]; }
  const LinearCost& operator[](VectorRow r) const { return ops_[static_cast<size_t>(r)]; }
  /// Cycles of the AI-core clock as ns.
  double cycles(double n) const { return n * ns_per_cycle_; }
  /// A cycle parameter as ns; of a parameter in ns, its value.
  double ns(Param p) const;
  /// A rate parameter as bytes per ns.
  double rate(Param p) const;

 private:
  ir::Arch arch_;
  double ns_per_cycle_ = 1;
  std::vector<double> values_;
  std::vector<LinearCost> ops_;
  std::map<std::string, bool> replaced_;
};

}  // namespace pypto::trace
