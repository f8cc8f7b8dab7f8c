// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <unordered_map>

#include "core/ir/ir.h"

namespace pypto::passes {

/// Thrown while a mixed kernel is divided: it stays whole.
struct NotSplit {};

/// The two kinds of core of a cluster.
enum Side { kCube = 0, kVector = 1 };
constexpr std::array kSides = {kCube, kVector};
inline Side other(Side s) { return s == kCube ? kVector : kCube; }

Side side_of(const ir::Type& t);
/// The core that holds a tile: where its variable was placed.
Side side_of(const ir::ExprPtr& e);

/// Whether a statement, or one inside it, defines `v`.
bool defines(const ir::Stmt& s, const ir::Var* v);

/// Which core of a cluster runs what of a mixed kernel. What must hold: every operation on tiles has a
/// statement of its own (flatten.h), tiles have memory spaces.
class CoreSides {
 public:
  explicit CoreSides(const ir::Function& f);

  /// The core of a statement; nothing: both.
  std::optional<Side> of(const ir::Stmt& s) const;
  /// The only core that knows a scalar, as one that was read from a tile.
  std::optional<Side> of_scalar(const ir::ExprPtr& e) const;
  /// Whether a statement, or one inside it, needs `v` on core `at`.
  bool uses(const ir::Stmt& s, const ir::Var* v, Side at) const;
  /// The last statement of the block that needs on core `at` the value that `v` has at statement `i`.
  size_t last_use(const ir::Block& in, size_t i, const ir::Var* v, Side at) const;

 private:
  std::unordered_map<const ir::Var*, Side> own_scalars_;
};

}  // namespace pypto::passes
