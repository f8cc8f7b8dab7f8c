// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/machine/core_timer.h"
#include "core/machine/state.h"

namespace pypto::machine {

/// Thrown out of an Env service that must wait but cannot say so: the instruction is executed again later.
struct Suspend {};

/// A device orchestration, a block of a task, or a lane of a block: one fiber and what the interpreter needs
/// for it.
class Actor final : public vm::Env {
 public:
  enum class Kind : uint8_t { kOrchestration, kBlock, kLane };
  enum class State : uint8_t { kRunnable, kBlocked, kDone, kFailed };

  Actor(Simulation& sim, Kind kind, Dispatch& dispatch) : sim_(sim), kind(kind), dispatch(dispatch) {}

  vm::ExecStatus machine_op(vm::OpCall& call) override;
  vm::ExecStatus call(const vm::CallInsn& call, vm::Frame& frame) override;
  vm::View create(const vm::CreateInsn& create, const std::vector<int64_t>& shape) override;
  vm::ExecStatus order_element(const vm::View& element, vm::AccessKind kind) override;
  void access(const vm::View& v, vm::AccessKind kind) override;
  void warn(const char* id, std::string text) override;
  void report(Diagnostic d) override;
  void annotate(Diagnostic& d) const override;
  void scope(bool begin, ir::ScopeKind kind) override;
  void spawn(std::unique_ptr<vm::Fiber> child, int lane) override;
  bool join() override;
  std::vector<std::unique_ptr<vm::Fiber>>& children() override { return child_fibers; }

  /// Completes the remote stores of this actor that are still travelling (03 O-36, M-26).
  void deliver();

  /// An access through another actor's name: the operation, whether it crosses ranks, and the operand's name.
  /// `changes` as in check::Access; `source`: what a write is going to copy.
  void record(const vm::View& v, vm::AccessKind kind, ir::OpId op, bool remote, const std::string& name,
              int changes = -1, const vm::View* source = nullptr);

  Simulation& sim() const { return sim_; }
  const vm::Site* site() const { return fiber ? fiber->site() : nullptr; }
  Span span() const {
    const vm::Site* s = site();
    if (s) return s->span;
    return fiber && !fiber->frames.empty() ? fiber->frames.back().fn->span : Span();
  }
  /// Its time on the virtual clock, ns.
  double now() const { return clock ? clock->now() : dispatch.control; }
  bool is_lane() const { return kind == Kind::kLane; }
  /// The part of a mixed kernel it runs: everything, the cube part, or vector lane 0 / 1.
  enum class Side : uint8_t { kWhole, kCube, kLane0, kLane1 };
  Side side = Side::kWhole;
  check::ActorInfo info() const;
  const vm::FunctionCode* kernel() const;

 private:
  void look_at_unspecified(ObjectRecord& object, const vm::View& v, vm::AccessKind access);

  Simulation& sim_;

 public:
  const Kind kind;
  Dispatch& dispatch;
  Task* task = nullptr;
  Block* block = nullptr;
  int lane = -1;
  ir::SplitMode split = ir::SplitMode::kNone;  ///< of the split_aiv loop a lane runs
  ActorKey key;
  State state = State::kRunnable;
  WaitState wait;
  std::unique_ptr<vm::Fiber> fiber;
  Actor* parent = nullptr;
  std::vector<std::unique_ptr<Actor>> kids;
  size_t live_kids = 0;
  size_t child_index = 0;  ///< of a lane, in its parent's child_fibers
  std::vector<std::unique_ptr<vm::Fiber>> child_fibers;
  check::ActorId id = check::kNoActor;
  check::Clock end;
  bool heap_waited = false;
  CollectiveState collective;
  std::vector<DelayedStore> travelling;
  std::unique_ptr<CoreTimer> clock;  ///< while the virtual clock runs, of blocks and lanes
  std::string barrier_key;           ///< of the barrier it has arrived at
  bool barrier_passed = false;
};

}  // namespace pypto::machine
