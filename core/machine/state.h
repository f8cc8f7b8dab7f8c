// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/check/checker.h"
#include "core/machine/cores.h"
#include "core/machine/regions.h"
#include "core/machine/run.h"
#include "core/machine/timing.h"
#include "core/vm/interp.h"

/// What a simulated world consists of while it runs.
namespace pypto::machine {

class Actor;
class Simulation;
struct Block;
struct Dispatch;
struct Task;

/// An argument of a dispatch or a task.
struct ArgValue {
  bool is_view = false;
  vm::View view;
  vm::Scalar scalar{};
  int32_t mark = 0;  ///< of an unspecified scalar (vm::Marks)
  std::string name;  ///< of the root as the user knows it
};

/// A condition on a cell that is looked at whenever the cell changes: of a blocked actor or of a waiter task.
struct Watch {
  int64_t offset = 0;
  Actor* actor = nullptr;
  Task* task = nullptr;
  size_t condition = 0;
};

/// Record of storage that more than one actor can see; vm::Buffer::object is its index.
struct alignas(64) ObjectRecord {
  // First what every access looks at.
  int rank = -1;                 ///< owner, -1 = host
  int window = -1;               ///< index of the window buffer
  int32_t pending_notifies = 0;  ///< logged in this round, not committed
  bool live = false;
  bool dirty = false;          ///< plainly written in this round while somebody waited
  std::vector<Watch> watches;  ///< open conditions on cells of this slice
  /// Rows that an all_to_all_v left unspecified (03 X-67), strict checking only.
  struct Unspecified {
    check::Box box;
    int source = -1;
    int64_t row = 0, received = 0;
  };
  std::vector<Unspecified> unspecified;
  std::string name;
  bool manual_dep = false;  ///< create_tensor(..., manual_dep=True)
  bool heap = false;        ///< counts in the output heap of its device
  bool carried = false;     ///< holds what an earlier call wrote (03 W-31)
};

/// A window buffer (03 W-10): one slice per rank of its domain, made when first touched.
struct WindowBuffer {
  int index = -1;
  std::string name;
  Span span;
  int64_t requested = 0;
  int64_t reserved = 0;
  int64_t offset = 0;  ///< in the communication memory of each rank
  int domain = -1;
  int64_t cell_base = 0;              ///< of the view through which its cells were named first
  std::vector<int64_t> cell_stride;   ///< in elements; empty: never a signal
  std::vector<int64_t> view_stride;   ///< in elements, of the host's first view
  DType view_dtype = DType::kNone;    ///< its
  std::vector<int> ranks;             ///< device set while the host program is planned
  std::vector<vm::BufferRef> slices;  ///< by domain rank
};

/// A comm domain (03 D-51).
struct Domain {
  std::string name;
  std::vector<int> members;   ///< logical ranks, ascending
  std::vector<int> index_of;  ///< by logical rank, -1 = not a member
  std::vector<int> windows;
};

/// A committed notify or a satisfied wait, kept for the report of a standstill.
struct CellEvent {
  int64_t offset = 0;
  const vm::Site* site = nullptr;
  int32_t object = -1;
  int32_t rank = -1;  ///< who did it
  int32_t before = 0, after = 0;
  int32_t round = 0;
  bool wait = false;
};

/// The collectives that ranks entered on one signal window, in order.
struct SignalUse {
  struct Call {
    std::string name;
    int64_t op = 0, root = 0;
    std::string dtype, shape;  ///< of the data operands
    std::string operands;      ///< their window buffers
    int rank = -1;             ///< who came first
    const vm::Site* site = nullptr;
  };
  std::vector<Call> calls;
  std::vector<int> entered;  ///< by logical rank: how many
};
/// The collective an actor is in.
struct CollectiveState {
  std::string name;  ///< empty = none
  int window = -1;
  int index = 0;  ///< which call on the signal
  int64_t barriers = 0;
};

/// Why an actor does not run.
struct WaitState {
  enum class Kind : uint8_t {
    kNone,
    kSignal,  ///< a cell
    kTasks,   ///< completion of tasks (element access of the control plane)
    kRing,    ///< a task slot
    kHeap,    ///< output heap
    kPush,    ///< a free slot of a pipe
    kPop,     ///< a filled slot of a pipe
    kBarrier,
    kEvent,     ///< sync_wait
    kChildren,  ///< lanes or group members
    kCommit,    ///< the end of the round
  } kind = Kind::kNone;
  // kSignal
  vm::BufferRef buffer;
  int64_t offset = 0;
  ir::WaitCmp cmp = ir::WaitCmp::kGe;
  int32_t expected = 0;
  std::vector<int64_t> cell;
  std::string name;  ///< the signal as the kernel calls it
  // kTasks
  std::vector<int64_t> tasks;
  // kPush, kPop, kBarrier, kEvent, kRing, kHeap: for the report
  std::string detail;
};

/// Order of commits (03 M-38).
struct ActorKey {
  int32_t rank = -1;
  int32_t dispatch = -1;
  int64_t task = -1;
  int32_t block = -1;
  int32_t lane = -1;
  auto operator<=>(const ActorKey&) const = default;
};

/// A one-way queue of a cross-core pipe (02 O-2101).
struct PipeQueue {
  struct Slot {
    vm::View tile;     ///< what a consumer pops (cube: joined)
    vm::View half[2];  ///< vector -> cube: what each lane pushed
    bool pushed[2] = {false, false};
    int pops = 0, frees = 0;  ///< by consumers
    int split = 0;
    check::Clock clock[2];
    double ready[2] = {0, 0};  ///< on the virtual clock
    const vm::Site* site = nullptr;
  };
  std::deque<double> freed_at;  ///< on the virtual clock, of the slots before `first`
  int64_t first = 0;            ///< sequence number of slots.front()
  std::deque<Slot> slots;
  int64_t pushed[2] = {0, 0};  ///< sequence number of the next push of each producer lane
  int64_t popped[2] = {0, 0};  ///< and of the next pop and free of each consumer lane
  int64_t freed[2] = {0, 0};
};
struct Pipe {
  bool declared[2] = {false, false};  ///< by cube side, by vector side
  const vm::FunctionCode* by[2] = {nullptr, nullptr};
  const vm::Site* site[2] = {nullptr, nullptr};
  int dir_mask = 0;
  int64_t slot_size = 0;
  int slot_num = 0;
  int depth[2] = {0, 0};  ///< slots of c2v, v2c
  PipeQueue queue[2];     ///< c2v, v2c
};

/// Counting events between the sides of a cluster (02 O-2303).
struct Events {
  int64_t to_lane[2] = {0, 0};    ///< cube set, vector lane may wait
  int64_t from_lane[2] = {0, 0};  ///< vector lane set, cube may wait
  bool both_lanes = false;        ///< ffts_mode 2: a cube wait takes one set of each lane
  int64_t whole = 0;              ///< set and awaited by one fiber that runs both sides
  check::Clock clock;
  double at = 0;  ///< of the last set, on the virtual clock
};

/// Data of a remote_store that is still travelling (03 O-36).
struct DelayedStore {
  vm::View target;
  vm::View data;
  bool atomic = false;
};

/// A running block of a task on its cores.
struct Block {
  Task* task = nullptr;
  int index = 0;
  CoreSet cores;
  std::unique_ptr<Actor> root;
  int vector_actors = 0;  ///< vector-side members of a Group
  std::map<int, Pipe> pipes;
  std::map<int, Events> events;
  struct ReservedBuffer {
    int64_t base = 0, size = 0;
  };
  std::map<std::string, ReservedBuffer> buffers;  ///< channel storage by name
  std::vector<size_t> notifies;                   ///< logged in this round by its actors
  std::unique_ptr<BlockTime> time;                ///< while the virtual clock runs
};

/// One barrier of the blocks of a task (01 L-169).
struct BarrierState {
  int64_t arrived = 0;  ///< weight
  int64_t generation = 0;
  std::vector<Actor*> waiting;
  std::vector<check::Clock> clocks;
  check::Clock released;  ///< join of the last complete generation
  double latest = 0;      ///< arrival, on the virtual clock
  double released_at = 0;
  const vm::Site* site = nullptr;
};

/// A condition of a waiter task (03 O-27).
struct Condition {
  vm::BufferRef buffer;
  int64_t offset = 0;
  int32_t expected = 0;
  bool satisfied = false;
  std::vector<int64_t> cell;
  std::string name;
  const vm::Site* site = nullptr;
};

/// A submitted task (01 L-158).
struct Task : RegionOwner {
  int64_t handle = 0;  ///< unique in the run, 0 = invalid
  int64_t number = 0;  ///< submission number in its dispatch
  Dispatch* dispatch = nullptr;
  const vm::CallInsn* call = nullptr;  ///< null: task_dummy
  const vm::FunctionCode* fn = nullptr;
  const vm::Site* site = nullptr;
  std::vector<ArgValue> args;
  int64_t blocks = 1, started = 0, finished = 0;
  vm::CoreKind core = vm::CoreKind::kVector;
  bool sync_start = false;
  int64_t scope = 0;  ///< manual scope instance
  int ring = 0;
  int pending = 0;               ///< predecessors that have not completed
  int64_t unfinished_users = 0;  ///< successors that have not completed
  std::vector<Task*> successors;
  std::vector<Task*> predecessors;  ///< not consumed before this task completes
  bool has_predicate = false;
  vm::View predicate;  ///< the element
  std::vector<Condition> conditions;
  int64_t open_conditions = 0;
  std::vector<check::Clock> after;
  check::Clock start;
  std::vector<check::Clock> ends;
  std::map<std::string, BarrierState> barriers;
  std::vector<std::unique_ptr<Block>> running;
  TaskTime time;
  int record = -1;  ///< index in RunReport::tasks
};

/// An open scope of a control plane.
struct ScopeFrame {
  ir::ScopeKind kind = ir::ScopeKind::kAuto;
  int64_t manual = 0;  ///< instance number of a manual scope
};

/// Steps of one call site during one execution of its rank loop (03 M-32).
struct Group {
  int index = 0;
  std::vector<int> steps;
  bool quiet_seen = false;  ///< at the end of some round all were finished or blocked
  std::vector<int> after;   ///< groups that must have been quiet before dispatches of this one start
};

/// A dispatch or a sub-worker call of the host program, in host order.
struct HostStep : RegionOwner {
  int index = 0;
  bool callback = false;
  int fn = -1;
  const vm::CallInsn* call = nullptr;
  const vm::Site* site = nullptr;
  std::vector<ArgValue> args;
  int rank = -1;
  int group = -1;
  int pending = 0;
  struct Pred {
    int step = -1;
    std::string reason;  ///< D-38: the tensor; empty: order of the device
  };
  std::vector<Pred> preds;
  std::vector<int> succs;
  enum class State : uint8_t { kPending, kRunning, kDone } state = State::kPending;
  std::unique_ptr<Dispatch> dispatch;
  check::Clock end;
  double done = 0;  ///< on the virtual clock
};

/// One execution of a device orchestration.
struct Dispatch {
  HostStep* step = nullptr;
  int index = 0;  ///< among dispatches, host order
  int rank = 0;
  int number = 0;  ///< among dispatches of this rank
  const vm::FunctionCode* fn = nullptr;
  std::unique_ptr<Actor> orch;
  bool orch_done = false;
  int active = 0;  ///< runnable actors, and commits that are withheld
  int64_t submitted = 0;
  int64_t live = 0;     ///< tasks not completed
  int64_t waiters = 0;  ///< tasks with open conditions (03 O-27 f)
  RegionTable regions;
  std::unordered_map<int64_t, std::unique_ptr<Task>> tasks;  ///< not consumed, by handle
  std::unordered_map<int64_t, check::Clock> old_clocks;      ///< of completed tasks, while checks need them
  check::Clock older_clocks;                                 ///< join of those that were dropped
  std::vector<ScopeFrame> scopes;
  std::array<int64_t, 4> ring_used{};
  int64_t manual_scopes = 0;  ///< instances so far
  check::Clock start;
  std::vector<check::Clock> ends;
  CommCounters comm;
  std::vector<Actor*> blocked_on_tasks;  ///< control planes waiting for completions, slots or heap
  /// On the virtual clock: begin, the control plane now, the latest completion that was seen.
  double begin = 0, control = 0, end = 0;
  std::unordered_map<int64_t, double> seen;  ///< completions by handle, while the virtual clock runs
};

/// A device: its cores and the tasks that are ready for them.
struct Device {
  explicit Device(int clusters) : cores(clusters) {}
  Cores cores;
  std::deque<Task*> ready[3];  ///< vector, cube, mixed; in order of readiness
  int dispatches = 0;
  int64_t heap_used = 0;  ///< bytes of live tensors created by control planes
};

}  // namespace pypto::machine
