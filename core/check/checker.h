// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/check/box.h"
#include "core/check/clock_data.h"
#include "core/ir/enums.h"
#include "core/vm/exec.h"
#include "core/vm/program.h"

/// Happens-before checking of one run (03 section 8). The machine tells the checker what happens, in commit
/// order; the checker tells the machine what is wrong, through a Sink. It never changes a value and never
/// blocks anybody.
namespace pypto::check {

/// An actor of 03 M-1 while it lives. -1: not tracked (checks are off).
using ActorId = int32_t;
inline constexpr ActorId kNoActor = -1;

/// Names of an actor for reports, and what decides severities (03 M-33).
struct ActorInfo {
  int rank = -1;      ///< logical rank, -1 = host
  int dispatch = -1;  ///< index in host order
  int group = -1;     ///< dispatch group (03 M-32)
  int64_t task = -1;  ///< submission number in its dispatch, -1 = control plane
  int block = -1;
  int lane = -1;  ///< vector lane 0 or 1, -1 = none
  const vm::FunctionCode* kernel = nullptr;
  std::string core;     ///< "AIV 3"
  bool manual = false;  ///< its task belongs to a manual scope (hint of the report)
};

/// Storage that more than one actor can see.
struct ObjectInfo {
  std::string name;  ///< buffer name of a window, parameter or variable name of a tensor
  int rank = -1;     ///< owner; -1 = host memory
  int window = -1;   ///< index of the window buffer, -1 = plain tensor
  const uint8_t* data = nullptr;
  int64_t bytes = 0;
  bool carried = false;  ///< holds what an earlier call wrote (03 W-31)
  /// In elements, of a window as the host views it; empty = unknown.
  std::vector<int64_t> stride;
  DType dtype = DType::kNone;  ///< of that view
};

/// A plain or atomic access (03 M-3), told before it takes effect.
struct Access {
  ActorId actor = kNoActor;
  int32_t object = -1;
  Box box;
  vm::AccessKind kind = vm::AccessKind::kRead;
  DType dtype = DType::kNone;  ///< two atomic adds of one dtype do not conflict
  bool remote = false;         ///< by RMA with a peer other than itself
  bool internal = false;       ///< of a lowered collective
  /// A write that takes effect later (03 O-36): whether it changes a byte; -1: found by looking before and
  /// after.
  int changes = -1;
  /// Accesses of one object are compared within a part: 0 = everything of the object; a task whose accesses
  /// can only race with those of its own blocks and lanes has a part of its own.
  int64_t part = 0;
  ir::OpId op = {};
  const vm::Site* site = nullptr;
  std::string_view name;  ///< the operand as the user wrote it
  /// The view's shape, strides and element offset in its root, for index ranges of reports; may be null.
  const vm::View* view = nullptr;
};

/// An executed notify, told when it is committed.
struct Notify {
  int64_t who = -1;  ///< Checker::identity of the issuer, which may have ended since
  Clock release;     ///< the issuer's clock when it executed the notify
  int32_t object = -1;
  int64_t offset = 0;  ///< byte offset of the cell in its slice
  ir::NotifyOp op = ir::NotifyOp::kAtomicAdd;
  int32_t value = 0;
  int32_t before = 0, after = 0;  ///< the cell
  const vm::Site* site = nullptr;
  uint64_t iteration = 0;  ///< the issuer's instruction count, tells executions of one statement apart
  /// The issuer is of the cell's rank, and everybody who may still act there comes after it.
  bool sole = false;
};

/// A satisfied wait.
struct Observe {
  ActorId actor = kNoActor;  ///< kNoActor for defer_wait
  ActorInfo info;
  Clock at;  ///< what the waiting side knew before; used when actor is kNoActor
  int32_t object = -1;
  int64_t offset = 0;
  ir::WaitCmp cmp = ir::WaitCmp::kGe;
  int32_t expected = 0;
  int32_t seen = 0;
  const vm::Site* site = nullptr;
  bool sole = false;  ///< everybody else who may still act on this rank comes after this actor
};

/// Receives reports. Throws Failure when the report is an error and the run stops at the first one.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void report(Diagnostic d) = 0;
  /// Round in which the scheduler is (03 M-38), for M-33.
  virtual int64_t round() const = 0;
  /// A signal cell as the program names it: "signal_buf[1, 0]" (03 X-0).
  virtual std::string cell_text(int32_t object, int64_t offset) const = 0;
  /// "'on_device' at program.py:30": the dispatch of this index, and where the host program makes it; "" =
  /// none.
  virtual std::string dispatch_text(int dispatch) const = 0;
  /// The name under which `kernel` knows a window buffer; "" = none.
  virtual std::string parameter_of(const vm::FunctionCode* kernel, int window) const = 0;
};

struct CheckOptions {
  bool strict = false;
  int ranks = 1;
  std::vector<int> device_ids;
  /// Plain tensors need histories beyond one task: the program has manual scopes, no_dep or manual_dep.
  bool track_tensors = false;
  bool signals = false;  ///< the program notifies and waits
};

/// A collective is entered: its signal must be all zero as far as the caller can know (03 C-4).
struct Entered {
  ActorId actor = kNoActor;
  int32_t object = -1;  ///< own slice of the signal
  Box box;
  std::string name;
  const vm::Site* site = nullptr;
};

class Checker {
 public:
  virtual ~Checker() = default;

  // ---- actors and order (03 M-10, M-11, M-14 ... M-19, M-27)
  /// A new actor whose first operation comes after everything in `after`.
  virtual ActorId start(const ActorInfo& info, std::span<const Clock> after) = 0;
  /// A number that names the actor after its end.
  virtual int64_t identity(ActorId actor) = 0;
  /// Everything the actor did so far, as a release. Later operations of the actor are not part of it.
  virtual Clock release(ActorId actor) = 0;
  /// Everything in `clock` happens before what the actor does next.
  virtual void acquire(ActorId actor, const Clock& clock) = 0;
  /// The actor's last operation is done. Its id may be reused.
  virtual Clock end(ActorId actor) = 0;
  virtual Clock join(std::span<const Clock> clocks) = 0;

  // ---- storage
  virtual void add_object(int32_t object, const ObjectInfo& info) = 0;
  virtual void drop_object(int32_t object) = 0;
  /// Zeroing at the start of a call (03 W-13): forgets histories and modification orders of the object.
  virtual void reset_object(int32_t object) = 0;
  /// The task of part `part` has ended.
  virtual void drop_part(int64_t part) = 0;

  // ---- accesses and signals
  virtual void access(const Access& access) = 0;
  virtual void notify(Notify&& notify) = 0;
  /// Acquires what the wait surely observes (03 M-30): into the actor, or (defer_wait) as the returned clock.
  virtual Clock observe(const Observe& observe) = 0;
  virtual void enter_collective(const Entered& entered) = 0;
  /// The slice of one actor's execution ends: what it accessed last has taken effect.
  virtual void settle() = 0;
  /// The commits of a round are done: reports of the round are made, in commit order.
  virtual void end_round() = 0;
  /// Makes the reports that are held back because what follows could change their explanation: the run stops
  /// at another error.
  virtual void decide() = 0;
  /// Everything has run, or (not `complete`) nothing can run any more. Reports what could only be judged with
  /// all notifies known (03 M-30).
  virtual void finish(bool complete) = 0;
};

/// Checks of 03 M-37 for `default` and `strict`.
std::unique_ptr<Checker> make_checker(const CheckOptions& options, Sink& sink);
/// Tells nothing, knows nothing: `off`.
std::unique_ptr<Checker> make_null_checker();

}  // namespace pypto::check
