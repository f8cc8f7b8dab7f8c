// SPDX-License-Identifier: Apache-2.0
// Regions: what a window read delivers and what a write leaves valid (02 section 2.3).
#include <algorithm>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

std::string offset_text(const ExprPtr& e) {
  return dim_text(e && const_int(e) && *const_int(e) >= 0 ? Dim(*const_int(e)) : Dim(e));
}

/// Static valid extent of one axis of a window read.
Dim read_axis(const Dim& source_valid, bool source_full, const ExprPtr& offset, const Dim& want,
              bool trusted) {
  const auto at = const_int(simplify(offset));
  if (source_valid.is_const() && at && want.is_const()) {
    return Dim(std::min(want.value, std::max<int64_t>(source_valid.value - *at, 0)));
  }
  const auto over = fold_sum(offset, want, source_valid);
  if (over && *over <= 0) return want;
  // A window that leaves the source is an error at run time (in the control plane it is cut there), so
  // nothing is known to be narrowed: extents that only might be must not make later operations fail.
  if (source_full && trusted) return want;
  return Dim();
}

}  // namespace

Shape Typer::read_window(const Type& source, const Window& w, const std::string& operand) const {
  const size_t rank = w.extents.size();
  const size_t lead = source.shape.size() - rank;
  const Shape source_valid = valid_of(source);
  const bool source_full = source.valid.empty();
  Shape valid;
  for (size_t k = 0; k < rank; ++k) {
    const ExprPtr offset = simplify(w.offsets[k]);
    const Dim& extent = w.extents[k];
    const Dim& limit = source.shape[lead + k];
    const std::string axis = "axis " + std::to_string(lead + k) + " of '" + operand + "'";
    if (const auto c = const_int(offset); c && *c < 0) {
      value_error("offset " + std::to_string(*c) + " on " + axis + " is negative",
                  "offsets count from the start of the axis");
    }
    Dim want = extent;
    if (!w.requested.empty()) {
      want = dim_of(w.requested[k]);
      if (const auto c = const_int(simplify(w.requested[k])); c && *c < 0) {
        value_error("valid extent " + std::to_string(*c) + " on " + axis + " is negative");
      }
      const auto over = fold_sum(int_const(0, DType::kIndex), want, extent);
      if (over && *over > 0) {
        value_error("valid extent " + dim_text(want) + " on " + axis + " exceeds the window extent " +
                        dim_text(extent),
                    "a valid extent is at most the window's");
      }
    }
    const Dim& must_fit = w.exact ? extent : want;
    const auto over = fold_sum(offset, must_fit, limit);
    // In the control plane an overhanging slice is cut at the parent's edge (02 O-211.4).
    if (over && *over > 0 && !w.clamp && (in_kernel() || w.exact)) {
      value_error(
          "the window [" + offset_text(offset) + ", " + offset_text(offset) + " + " + dim_text(must_fit) +
              ") reaches past the extent " + dim_text(limit) + " of " + axis +
              (w.exact ? "; the whole window must lie inside" : ". Pass clamp=True to cut it at the edge"),
          w.exact ? "use a smaller window" : "Pass clamp=True, or give valid_shape for the part that exists");
    }
    Dim axis_valid = read_axis(source_valid[lead + k], source_full, offset, want, !w.clamp);
    // A run-time extent is no static knowledge: the variables in it may change.
    if (!axis_valid.is_const() && !provably_equal(axis_valid, extent)) axis_valid = Dim();
    valid.push_back(std::move(axis_valid));
  }
  return normal_valid(w.extents, std::move(valid));
}

void Typer::check_write(const Type& target, const std::vector<ExprPtr>& offsets, const Shape& extents,
                        const std::string& operand) const {
  const size_t offset_lead = target.shape.size() - offsets.size();
  for (size_t k = 0; k < offsets.size(); ++k) {
    if (const auto c = const_int(simplify(offsets[k])); c && *c < 0) {
      value_error("offset " + std::to_string(*c) + " on axis " + std::to_string(offset_lead + k) + " of '" +
                      operand + "' is negative",
                  "offsets count from the start of the axis");
    }
  }
  for (size_t k = 0; k < extents.size(); ++k) {
    const size_t axis = target.shape.size() - extents.size() + k;
    if (axis < offset_lead) continue;
    const ExprPtr& offset = offsets[axis - offset_lead];
    const auto over = fold_sum(offset, extents[k], target.shape[axis]);
    if (over && *over > 0) {
      value_error("writing " + dim_text(extents[k]) + " elements at offset " + offset_text(offset) +
                      " reaches past the extent " + dim_text(target.shape[axis]) + " of axis " +
                      std::to_string(axis) + " of '" + operand + "'",
                  "shrink the source's valid shape, or move the offset");
    }
  }
}

Shape Typer::written_valid(const Type& target, const std::vector<ExprPtr>& offsets,
                           const Shape& source_valid) const {
  const size_t rank = target.shape.size();
  if (fully_valid(target)) return {};
  // The rule applies to equal ranks only; otherwise the target's valid shape is kept (02 O-212).
  if (offsets.size() != rank || source_valid.size() != rank) return target.valid;
  std::vector<int64_t> at(rank), size(rank), old(rank);
  for (size_t k = 0; k < rank; ++k) {
    const auto c = const_int(simplify(offsets[k]));
    if (!c || !source_valid[k].is_const() || !target.valid[k].is_const() || !target.shape[k].is_const()) {
      return Shape(rank, Dim());
    }
    at[k] = *c;
    size[k] = source_valid[k].value;
    old[k] = target.valid[k].value;
  }
  const auto all = [&](auto test) {
    for (size_t k = 0; k < rank; ++k) {
      if (!test(k)) return false;
    }
    return true;
  };
  const bool written_empty = !all([&](size_t k) { return size[k] > 0; });
  const bool target_empty = !all([&](size_t k) { return old[k] > 0; });
  const bool at_origin = all([&](size_t k) { return at[k] == 0; });
  const bool inside = all([&](size_t k) { return at[k] + size[k] <= old[k]; });
  const bool covers = at_origin && all([&](size_t k) { return size[k] >= old[k]; });
  if (written_empty) return target.valid;
  Shape candidate(rank);
  for (size_t k = 0; k < rank; ++k) {
    candidate[k] = Dim(std::min(target.shape[k].value, std::max(target_empty ? 0 : old[k], at[k] + size[k])));
  }
  if (inside && !target_empty) return target.valid;
  if ((target_empty && at_origin) || covers) return normal_valid(target.shape, candidate);
  int growing = -1;
  for (size_t k = 0; k < rank && !target_empty; ++k) {
    const bool same = at[k] == 0 && size[k] == old[k];
    if (same) continue;
    if (growing >= 0) {
      value_error("the write leaves an L-shape: axes " + std::to_string(growing) + " and " +
                      std::to_string(k) + " both change (valid extents " + shape_text(target.valid) +
                      ", writing " + shape_text(source_valid) +
                      "), and a valid region must stay one rectangle",
                  "write whole rows or columns of the valid region, or make the target fully valid first");
    }
    growing = static_cast<int>(k);
  }
  if (target_empty || growing < 0 || at[static_cast<size_t>(growing)] > old[static_cast<size_t>(growing)]) {
    const size_t k = growing < 0 ? 0 : static_cast<size_t>(growing);
    value_error("the write leaves a gap on axis " + std::to_string(k) + ": valid up to " +
                    std::to_string(old[k]) + ", writing from " + std::to_string(at[k]),
                "write the part in between first, or make the target fully valid");
  }
  return normal_valid(target.shape, candidate);
}

}  // namespace pypto::ir::infer
