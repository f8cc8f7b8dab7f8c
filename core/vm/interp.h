// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/vm/exec.h"
#include "core/vm/program.h"
#include "core/vm/timer.h"

namespace pypto::vm {

/// A small array of scalars (pl.Array). Shared by reference with inline helpers; plain assignment copies.
struct ArrayValue {
  DType dtype = DType::kNone;
  std::vector<int64_t> items;
  std::vector<int32_t> marks;  ///< by item, of unspecified values (Marks::scalar); empty: none
};
using ArrayRef = std::shared_ptr<ArrayValue>;

/// Registers and position of one active function.
struct Frame {
  const FunctionCode* fn = nullptr;
  int32_t pc = 0;
  int32_t end_pc = -1;  ///< lane bodies: stop here
  std::vector<Scalar> s;
  std::vector<View> v;
  std::vector<ArrayRef> a;
  std::vector<int32_t> marks;  ///< by scalar register, of unspecified values (Marks::scalar); empty: none
  const CallInsn* return_to = nullptr;  ///< local call in the frame below, whose results it fills
};

/// An actor's whole state; suspended and resumed by the scheduler.
struct Fiber {
  std::vector<Frame> frames;
  bool blocked = false;
  bool lanes_running = false;  ///< the split_aiv body at pc runs on child fibers
  int lane = -1;               ///< vector lane of a lane fiber
  uint64_t steps = 0;          ///< instructions executed
  int32_t part_site = -1;      ///< of the part of a chain that runs, or -1
  Frame& top() { return frames.back(); }
  const Site* site() const;  ///< of the instruction about to be (or being) executed
};

enum class RunStatus : uint8_t { kDone, kBlocked, kQuantum, kYield };

/// What the interpreter needs from the machine for the actor it runs. One object per running actor.
class Env {
 public:
  virtual ~Env() = default;

  /// Operations without an executor of their own: signals, remote memory, collectives that were not lowered,
  /// channels, barriers, task_dummy, world_size, rank, nranks, windows, block identity, available_*_count.
  virtual ExecStatus machine_op(OpCall& call) = 0;
  /// kCall that is not local: submits a task (control plane of a device), a dispatch, or runs a sub-worker
  /// (host). Arguments are registers of `frame`. Must fill the result and task registers that `call` names.
  virtual ExecStatus call(const CallInsn& call, Frame& frame) = 0;
  /// Storage that outlives the block or is visible to others: control-plane create_tensor, kernel outputs,
  /// scratch.
  virtual View create(const CreateInsn& create, const std::vector<int64_t>& shape) = 0;
  /// Called before `read` / `write` of an element in the control plane (01 L-161): kBlocked until every
  /// earlier submitted task that conflicts has completed. In kernels returns kDone at once.
  virtual ExecStatus order_element(const View& element, AccessKind kind) = 0;
  /// Access of a kernel to global or window memory (never called for on-chip views).
  virtual void access(const View& v, AccessKind kind) = 0;
  virtual void warn(const char* id, std::string text) = 0;
  /// A warning (an error in strict) about an unspecified value, without its place.
  virtual void report(Diagnostic) {}
  /// Adds rank, core, kernel, task, block and lane.
  virtual void annotate(Diagnostic&) const {}
  virtual void scope(bool begin, ir::ScopeKind kind) = 0;
  /// Group members and split_aiv lanes: starts a child fiber. The parent is blocked until join() says true.
  virtual void spawn(std::unique_ptr<Fiber> child, int lane) = 0;
  virtual bool join() = 0;  ///< all spawned children finished (their fibers are available through children())
  virtual std::vector<std::unique_ptr<Fiber>>& children() = 0;

  Timer* timer = nullptr;  ///< the virtual clock of a core, when time was asked for
};

/// Runs `fiber` until it is done, blocks, or has executed `quantum` instructions. Throws Failure on a fault,
/// completed with the source location; the caller adds rank, core, task, kernel and block.
RunStatus run(Fiber& fiber, const Program& program, Env& env, uint64_t quantum);

/// A fiber about to execute `fn` with the given argument registers already placed in its frame by the caller.
std::unique_ptr<Fiber> make_fiber(const FunctionCode& fn);
/// Binds dynamic dimensions of the frame's function from its view parameters (01 L-30). Throws Failure on
/// disagreement where the symbol is used as a value; returns warnings otherwise.
std::vector<Diagnostic> bind_symbols(Frame& frame);

/// On-chip storage of a block: a pool of zeroed, recycled buffers. One per host thread.
Buffer* pool_alloc(int64_t bytes, bool zero);

}  // namespace pypto::vm
