// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/machine/timing.h"
#include "core/vm/timer.h"

namespace pypto::machine {

inline bool on_chip(const vm::View& v) { return v.buffer && v.buffer->kind == vm::BufferKind::kOnChip; }
/// A transfer without gaps.
inline trace::Transfer packed(int64_t bytes) { return {bytes, bytes, true}; }

/// The virtual clock of an actor: charges what its fiber does to the cores of its block (05 H-64).
///
/// Kernels run undivided, with values of tensors as they are written. What the device form adds is charged
/// where it is needed: global memory that is read as a value is loaded, a value that lies in another memory
/// than its reader is moved there once over the machine's paths (05 H-19), a product's operands come into
/// Left and Right. Programs written with tiles state these moves themselves and pay the same.
class CoreTimer final : public vm::Timer {
 public:
  CoreTimer(Timing& timing, Actor& actor);

  void scalar() override;
  void loop() override;
  void created(const vm::View& fresh) override;
  void begin(const vm::OpCall& call, const vm::OpInsn& insn) override;
  void end(const vm::OpCall& call, const vm::OpInsn& insn, std::span<const vm::View> results) override;
  void abandon() override { collecting_ = false; }
  void loaded(int32_t value, const vm::OpInsn& insn, const vm::View& result) override;
  void steps(const vm::ChainInsn& insn, std::span<const vm::View* const> inputs) override;
  void stored(int32_t output, const vm::View& target) override;
  void outputs(const vm::ChainInsn& insn, std::span<const vm::View> results) override;
  bool expired() const override;

  /// An access to memory that others can see, by the operation that runs.
  void touched(const vm::View& v, bool write) {
    if (collecting_) touches_.push_back({v, write});
  }

  double now() const;
  /// When everything it issued is done.
  double drained() const;
  /// The actor goes on at this time at the earliest.
  void wait_until(double time);
  /// A wait that was met at `visible`; what it waited for, for the timeline.
  void waited(double visible, const char* what, int64_t flow = -1);
  /// A notify: everything before it is complete; returns when the peer sees it.
  double notify(int peer, int64_t* flow);
  /// Full barrier over the pipes of the core.
  double drain();
  /// A value goes into a slot of a pipe between cores; returns when the consumer may take it.
  double push(const vm::View& tile);
  void pop(const vm::View& tile);
  void collective(bool begin, const std::string& name);

 private:
  using Dependency = trace::Dependency;
  struct Access {
    vm::View view;
    bool write = false;
  };
  /// A value of the chain that runs: where it was made, or that it is not known yet.
  struct ChainValue {
    bool known = false;
    Dependency made;
  };

  int vector_core() const;
  int cube_core() const;
  trace::BlockClock& clock() const { return time_.clock; }
  trace::Touch touch_of(const vm::View& v, bool write) const;
  int rank() const;

  /// The value of `v` in memory `space`, moved or loaded there if it is not; what its readers wait for.
  Dependency in(const vm::View& v, ir::MemorySpace space);
  ir::MemorySpace space_of(const vm::View& v) const;

  double run(int core, trace::CorePipe pipe, double duration, std::span<const trace::Touch> touches,
             std::span<const Dependency> deps, const char* name, int64_t bytes = 0);
  /// A transfer between a core and the memory of the device. `object` < 0: storage of the compiler.
  Dependency transfer(int core, trace::CorePipe pipe, trace::Path path, const trace::Transfer& t,
                      std::vector<trace::Touch> touches, std::span<const Dependency> deps, int64_t object,
                      const check::Box& box, const char* name);
  /// Accumulator to device memory (`gm` not null) or to another memory of the core.
  Dependency drain_acc(const vm::View& acc, DType to, const vm::View* gm, const char* name);
  Dependency load_region(const vm::View& gm, ir::MemorySpace space);
  void store_value(const vm::View* value, const Dependency* made, const vm::View& target);
  void remote(const vm::OpCall& call, const vm::OpInsn& insn, std::span<const vm::View> results);
  Dependency remote_read(const vm::View& gm, int peer, int64_t bytes, std::span<const trace::Touch> touches,
                         std::span<const Dependency> deps, const char* name);
  Dependency remote_write(const vm::View& gm, int peer, int64_t bytes, std::span<const trace::Touch> touches,
                          std::span<const Dependency> deps, const char* name);
  int owner(const vm::View& v) const;

  void vector_op(const vm::OpCall& call, const vm::OpInsn& insn, std::span<const vm::View> results);
  void product(const vm::OpCall& call, const vm::OpInsn& insn, std::span<const vm::View> results);
  void element(const vm::OpCall& call);
  void gathered(std::span<const vm::View> results);
  void define(const vm::View& result, ir::MemorySpace space);
  /// `amount`: bytes, or the number of a flow.
  void record(trace::EventKind kind, int core, int pipe, double begin, double end, const char* name,
              int64_t amount, int peer);

  Timing& timing_;
  Actor& actor_;
  BlockTime& time_;
  const trace::Params& p_;
  bool collecting_ = false;
  std::vector<Access> touches_;
  std::vector<std::pair<int, vm::View>> operands_;  ///< by parameter
  std::vector<ChainValue> values_;
  std::vector<int32_t> outputs_;  ///< values that live on after the chain
  std::vector<std::pair<std::string, double>> collectives_;
};

}  // namespace pypto::machine
