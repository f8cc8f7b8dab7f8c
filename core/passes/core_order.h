// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/passes/core_sides.h"

namespace pypto::passes {

/// Keeps what the cores of a divided kernel do in global memory in the order that its synchronisation gives
/// it. The vector core waits and signals for the whole kernel: a wait guards what follows on both cores, a
/// notify publishes what either core did before, and a free slot is announced after either has read it (03
/// O-22, O-23). Between the cores only what passes through the pipe orders anything, so the cube core may
/// not touch global memory after a wait before something came from the vector core, nor the vector core
/// signal before something came from the cube core after it touched memory.
///
/// The statements of the kernel are told in their order; what breaks the order throws NotSplit.
class CoreOrder {
 public:
  /// Which order is still missing between the cores.
  struct Missing {
    bool awaited = false;  ///< the vector core waited, the cube core does not know
    bool touched = false;  ///< the cube core touched memory, the vector core does not know
  };

  /// A tile passes to core `to`.
  void crossed(Side to) { (to == kCube ? now_.awaited : now_.touched) = false; }
  /// The operations that `s` itself evaluates on core `at`; nothing: on both.
  void run(const ir::Stmt& s, std::optional<Side> at);

  Missing now() const { return now_; }
  /// What may be missing where an iteration of a loop begins.
  Missing in_loop(const ir::Stmt& loop, const CoreSides& sides) const;
  /// Goes on from another point of the kernel.
  void resume(const Missing& at) { now_ = at; }
  /// Goes on where control comes from here or from there.
  void join(const Missing& from);

 private:
  Missing now_;
};

}  // namespace pypto::passes
