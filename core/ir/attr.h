// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pypto::ir {

/// Names of operation attributes; the text is the parameter's name in the operation's signature.
enum class AttrKey : uint8_t {
#define PYPTO_ATTR(name) k_##name,
#include "core/ir/attrs.def"
#undef PYPTO_ATTR
  kCount,
};
std::string_view attr_name(AttrKey key);
/// kCount when there is no such name.
AttrKey attr_from_name(std::string_view name);

/// Enums and dtypes are stored as integers; which enum is known from the key (attr_value_kind).
using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

/// What an attribute's integer means, for printing and for the stubs.
enum class AttrKind : uint8_t {
  kInt,
  kBool,
  kFloat,
  kString,
  kDType,
  kMemorySpace,
  kTensorLayout,
  kTileLayout,
  kPadValue,
  kAtomicType,
  kPipeType,
  kNotifyOp,
  kWaitCmp,
  kReduceOp,
  kCastMode,
  kCmpType,
  kMaskPattern,
  kIntList,
  kSplitMode
};
AttrKind attr_kind(AttrKey key);

/// Small ordered map from key to value.
class AttrMap {
 public:
  const AttrValue* find(AttrKey key) const {
    for (const auto& [k, v] : entries_) {
      if (k == key) return &v;
    }
    return nullptr;
  }
  int64_t get_int(AttrKey key, int64_t fallback = 0) const {
    const AttrValue* v = find(key);
    if (!v) return fallback;
    if (const auto* i = std::get_if<int64_t>(v)) return *i;
    if (const auto* d = std::get_if<double>(v)) return static_cast<int64_t>(*d);
    return fallback;
  }
  double get_float(AttrKey key, double fallback = 0) const {
    const AttrValue* v = find(key);
    if (!v) return fallback;
    if (const auto* d = std::get_if<double>(v)) return *d;
    if (const auto* i = std::get_if<int64_t>(v)) return static_cast<double>(*i);
    return fallback;
  }
  std::string get_string(AttrKey key) const {
    const AttrValue* v = find(key);
    const auto* s = v ? std::get_if<std::string>(v) : nullptr;
    return s ? *s : std::string();
  }
  void set(AttrKey key, AttrValue value) {
    for (auto& [k, v] : entries_) {
      if (k == key) {
        v = std::move(value);
        return;
      }
    }
    entries_.emplace_back(key, std::move(value));
  }
  bool empty() const { return entries_.empty(); }
  const std::vector<std::pair<AttrKey, AttrValue>>& entries() const { return entries_; }
  bool operator==(const AttrMap&) const = default;

 private:
  std::vector<std::pair<AttrKey, AttrValue>> entries_;
};

}  // namespace pypto::ir
