// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/vm/exec.h"
#include "core/vm/program.h"

namespace pypto::vm {

/// What a virtual clock is told while a fiber of a core runs. Operations that run as one strip chain are told
/// one by one: fusion costs and saves nothing (05 A.13).
class Timer {
 public:
  virtual ~Timer() = default;

  virtual void scalar() = 0;  ///< a scalar statement
  virtual void loop() = 0;    ///< an iteration of a loop
  virtual void created(const View& fresh) = 0;
  /// An operation is about to run. Accesses to memory of the device until the next call belong to it.
  virtual void begin(const OpCall& call, const OpInsn& insn) = 0;
  virtual void end(const OpCall& call, const OpInsn& insn, std::span<const View> results) = 0;
  /// The operation was not done: it runs again later.
  virtual void abandon() = 0;

  // Chains: their loads, then the steps at once, then the stores.
  virtual void loaded(int32_t value, const OpInsn& insn, const View& result) = 0;
  virtual void steps(const ChainInsn& insn, std::span<const View* const> inputs) = 0;
  virtual void stored(int32_t output, const View& target) = 0;
  virtual void outputs(const ChainInsn& insn, std::span<const View> results) = 0;

  /// Whether the fiber has had its share of time and lets others catch up.
  virtual bool expired() const = 0;
};

}  // namespace pypto::vm
