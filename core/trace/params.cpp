// SPDX-License-Identifier: Apache-2.0
#include "core/trace/params.h"

#include <cmath>

#include "core/base/diagnostic.h"

namespace pypto::trace {
namespace {

enum class Unit { kNs, kCycles, kGiBs, kGBs, kBytesPerCycle, kBytes, kMHz, kCount, kFactor };

struct ParamRow {
  const char* key;
  double value[2];
  const char* tag[2];
  Unit unit;
};
constexpr ParamRow kParams[] = {
#define PYPTO_HW(id, key, a2a3, tag2, a5, tag5, unit) {key, {a2a3, a5}, {tag2, tag5}, Unit::unit},
#include "core/trace/hardware.def"
#undef PYPTO_HW
};

struct OpCostRow {
  const char* name;
  LinearCost cost[2];
  const char* tag[2];
};
constexpr OpCostRow kOps[] = {
#define PYPTO_HW_OP(id, name, k, b, tag2, k5, b5, a5, d5, c5, tag5) \
  {name, {{k, b, 0, 0, 0}, {k5, b5, a5, d5, c5}}, {tag2, tag5}},
#define PYPTO_HW_OP_LIKE(id, name, k, b, tag2) \
  {name, {{k, b, 0, 0, 0}, {k / 1.6, b + 30.0, 1.9, 2.9, 45}}, {tag2, "G"}},
#include "core/trace/vector_ops.def"
#undef PYPTO_HW_OP
#undef PYPTO_HW_OP_LIKE
};

constexpr const char* kParts[] = {"k", "b", "a", "d", "c"};
double& part(LinearCost& cost, size_t i) {
  double* const at[] = {&cost.k, &cost.b, &cost.a, &cost.d, &cost.c};
  return *at[i];
}

/// Values that others are divided by.
bool must_be_positive(Unit unit) {
  switch (unit) {
    case Unit::kGiBs:
    case Unit::kGBs:
    case Unit::kBytesPerCycle:
    case Unit::kBytes:
    case Unit::kMHz:
    case Unit::kCount:
      return true;
    default:
      return false;
  }
}

const char* arch_text(ir::Arch arch) { return arch == ir::Arch::kA5 ? "a5" : "a2a3"; }

}  // namespace

Params::Params(ir::Arch arch) : arch_(arch) {
  const size_t column = arch == ir::Arch::kA5 ? 1 : 0;
  for (const ParamRow& row : kParams) values_.push_back(row.value[column]);
  for (const OpCostRow& row : kOps) ops_.push_back(row.cost[column]);
  ns_per_cycle_ = 1000.0 / (*this)[Param::k_clock_mhz];
}

void Params::set(const std::string& key, double value) {
  const std::string where = "PYPTO_HW_PARAMS: " + std::string(arch_text(arch_)) + ", key '" + key + "': ";
  if (!std::isfinite(value)) fail(ErrorClass::kValueError, where + "the value must be a finite number");
  for (size_t i = 0; i < std::size(kParams); ++i) {
    if (key != kParams[i].key) continue;
    if (must_be_positive(kParams[i].unit) ? value <= 0 : value < 0) {
      fail(ErrorClass::kValueError,
           where + "a " +
               (must_be_positive(kParams[i].unit) ? "rate, size or count must be positive"
                                                  : "time must not be negative") +
               ", got " + std::to_string(value));
    }
    values_[i] = value;
    replaced_[key] = true;
    ns_per_cycle_ = 1000.0 / (*this)[Param::k_clock_mhz];
    return;
  }
  const size_t parts = arch_ == ir::Arch::kA5 ? 5 : 2;
  for (size_t i = 0; i < std::size(kOps); ++i) {
    for (size_t p = 0; p < parts; ++p) {
      if (key != std::string("op.") + kOps[i].name + "." + kParts[p]) continue;
      part(ops_[i], p) = value;
      replaced_[key] = true;
      return;
    }
  }
  std::vector<std::string> known;
  for (const Row& row : rows()) known.push_back(row.key);
  const std::string near = nearest(key, known);
  fail(ErrorClass::kValueError, where + "unknown key", {},
       near.empty() ? "use the keys of the timing model" : "did you mean '" + near + "'?");
}

std::vector<Params::Row> Params::rows() const {
  const size_t column = arch_ == ir::Arch::kA5 ? 1 : 0;
  std::vector<Row> out;
  const auto add = [&](std::string key, double value, const char* tag) {
    Row row;
    row.tag = replaced_.count(key) ? "file" : tag;
    row.key = std::move(key);
    row.value = value;
    out.push_back(std::move(row));
  };
  for (size_t i = 0; i < std::size(kParams); ++i) add(kParams[i].key, values_[i], kParams[i].tag[column]);
  for (size_t i = 0; i < std::size(kOps); ++i) {
    LinearCost cost = ops_[i];
    for (size_t p = 0; p < (column == 1 ? 5u : 2u); ++p)
      add(std::string("op.") + kOps[i].name + "." + kParts[p], part(cost, p), kOps[i].tag[column]);
  }
  return out;
}

double Params::ns(Param p) const {
  const double value = (*this)[p];
  return kParams[static_cast<size_t>(p)].unit == Unit::kCycles ? cycles(value) : value;
}

double Params::rate(Param p) const {
  const double value = (*this)[p];
  switch (kParams[static_cast<size_t>(p)].unit) {
    case Unit::kGiBs:
      return value * 1.073741824;
    case Unit::kBytesPerCycle:
      return value / ns_per_cycle_;
    default:
      return value;  // 10**9 bytes per second are bytes per ns
  }
}

}  // namespace pypto::trace
