// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/chunks.h"
#include "core/machine/actor.h"
#include "core/machine/schedule.h"
#include "core/machine/state.h"
#include "core/machine/world.h"

namespace pypto::machine {

/// One run: rounds of actors, commits between them (03 M-38). The host program is planned first (host.h); the
/// steps of the plan, the tasks they submit and the blocks of those tasks are what runs here.
class Simulation final : public check::Sink {
 public:
  Simulation(const vm::Program& program, const RunOptions& options, const HostCallback& callback,
             RetainedWorld* world, RunReport& report);
  ~Simulation() override;

  /// Runs the entry. Throws the first error unless errors are collected.
  void run(int entry, std::vector<HostArg>& args);

  // ---- check::Sink
  void report(Diagnostic d) override;
  int64_t round() const override { return round_; }
  std::string cell_text(int32_t object, int64_t offset) const override;
  std::string dispatch_text(int dispatch) const override;
  std::string parameter_of(const vm::FunctionCode* kernel, int window) const override;

  // ---- storage (storage.cpp)
  int32_t add_object(ObjectRecord record, vm::Buffer* buffer);
  void drop_object(int32_t object);
  const ObjectRecord& object_of(const vm::View& v) const {
    return objects[static_cast<size_t>(v.buffer->object)];
  }
  ObjectRecord& object_of(const vm::View& v) { return objects[static_cast<size_t>(v.buffer->object)]; }
  /// Zero-filled storage of a create_tensor; counts in the output heap of device `rank` if `heap`.
  vm::View created_tensor(const vm::CreateInsn& create, const std::vector<int64_t>& shape, int rank,
                          bool heap);
  static void release_created(vm::Buffer* b);
  /// Slice of a window buffer on domain rank `member`.
  vm::BufferRef slice(int window, int member);
  /// Before data operations touch `v`: what notifies wrote there is in its memory.
  static void make_plain(const vm::View& v);
  const Domain& domain_of_window(int window) const {
    return domains[static_cast<size_t>(windows[static_cast<size_t>(window)].domain)];
  }
  /// The bytes and name of a tensor for messages: "window 'box' of rank 1", "tensor 'x'".
  std::string storage_text(const vm::View& v) const;
  /// Remembers how the program counts the cells of the signal.
  void name_cells(const vm::View& signal);

  // ---- actors (rounds.cpp)
  void make_runnable(Actor& actor);
  void block(Actor& actor, WaitState wait);
  void wake(Actor& actor);
  /// Ends the actor's round; it runs again in the next one.
  vm::ExecStatus wait_for_commit(Actor& actor);
  /// A condition on a cell: looked at again whenever the cell changes.
  void watch_cell(const vm::Buffer* buffer, int64_t offset, Actor* actor, Task* task);

  // ---- signals
  struct PendingNotify {
    vm::BufferRef buffer;
    Block* block = nullptr;  ///< of the issuer
    const vm::Site* site = nullptr;
    int64_t offset = 0;
    check::Clock release;  ///< while checks are on: as in check::Notify
    int64_t who = -1;
    uint64_t iteration = 0;
    int32_t value = 0;
    int32_t rank = -1;
    double visible = 0;  ///< at the peer, on the virtual clock
    int64_t flow = -1;
    ir::NotifyOp op = ir::NotifyOp::kAtomicAdd;
    bool applied = false;
    bool sole = false;  ///< see check::Notify
  };
  /// Whether everybody else who may still act on the actor's rank comes after it: it is all that is left of
  /// its dispatch, and dispatches of a device come one after the other.
  static bool is_sole(const Actor& actor) {
    return actor.task && actor.kind == Actor::Kind::kBlock && actor.task->blocks == 1 && actor.kids.empty() &&
           actor.dispatch.orch_done && actor.dispatch.live == 1;
  }
  void log_notify(PendingNotify n);
  void log_wait(int32_t object, int64_t offset, int rank, const vm::Site* site);
  /// Whether an uncommitted notify of this actor or its block is in the bytes of `v`.
  bool pending_notify_in(const Actor& actor, const vm::View& v);
  void apply_pending_in(const Actor& actor, const vm::View& v);

  /// One message with `bytes` of payload from rank to rank (04 OBS-7).
  void count_traffic(int rank, int peer, int64_t bytes) {
    auto& of_rank = traffic_[static_cast<size_t>(rank)];
    if (of_rank.empty()) of_rank.resize(static_cast<size_t>(ranks));
    ++of_rank[static_cast<size_t>(peer)].first;
    of_rank[static_cast<size_t>(peer)].second += bytes;
  }

  // ---- tasks (tasks.cpp)
  struct Submission {
    const vm::FunctionCode* fn = nullptr;
    const vm::CallInsn* call = nullptr;
    std::vector<ArgValue> args;
    std::vector<int64_t> deps;
    int64_t blocks = 1;
    bool sync_start = false;
    bool has_predicate = false;
    vm::View predicate;
    const vm::Site* site = nullptr;
  };
  /// Submits a task; false if the submitter must wait for a slot first (its wait state is then set).
  bool submit(Dispatch& d, Actor* orch, Submission s, int64_t* handle);
  /// Stops the run if `dep`, a handle as programs hold it, names a task of a manual scope that has ended.
  void require_open_scope(const Dispatch& d, int64_t dep, const vm::Site* site);
  void condition_met(Task& task);
  void start_dispatch(HostStep& step);

  // ---- deadlock.cpp
  [[noreturn]] void deadlock();
  void add_waits(Diagnostic& d);
  /// Every blocked actor but those that wait for their own lanes, in commit order.
  /// Actors of the open dispatches that have not ended, in the order of their keys.
  std::vector<Actor*> open_actors() const;
  std::vector<Actor*> blocked_actors() const;

  // ---- messages
  /// Completes a fault of `actor` with rank, core, kernel, task, block and lane.
  void annotate(Diagnostic& d, const Actor& actor) const;
  /// What the other ranks were doing when this error stopped the run, as notes (03 X-70).
  void note_others(Diagnostic& d) const;
  /// An error of the run that is nobody's instruction.
  [[noreturn]] void fail_run(ErrorClass cls, std::string id, std::string message, Span span,
                             std::string hint);
  std::string rank_text(int rank) const;

  const vm::Program& program;
  const RunOptions& options;
  const HostCallback& callback;
  RetainedWorld* world;
  RunReport& run_report;
  std::unique_ptr<check::Checker> checker;
  std::unique_ptr<Timing> timing;  ///< null unless time was asked for
  Policy policy;
  bool checking = false;
  bool track_tensors = false;
  int ranks = 1;

  std::vector<ObjectRecord> objects;
  std::vector<WindowBuffer> windows;
  std::vector<Domain> domains;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<HostStep>> steps;
  std::vector<Group> groups;
  std::unordered_map<int, SignalUse> signal_uses;  ///< by window buffer
  Chunks<CellEvent> cell_events;

 private:
  friend class Actor;
  struct LogEntry {
    Actor* actor = nullptr;  ///< that is done; of a notify: the root of the issuer's block
    size_t notify = kDone;
    static constexpr size_t kDone = SIZE_MAX;
    double time = 0;  ///< on the virtual clock
    bool done() const { return notify == kDone; }
    /// Of the block or control plane, for withholding.
    ActorKey issuer() const;
  };

  // rounds.cpp
  void rounds();
  void run_round();
  void hold_slow_ranks();
  void step_actor(Actor& actor);
  void finish_actor(Actor& actor);
  void fail_actor(Actor& actor, Diagnostic d);
  void commit();
  void withhold();
  void order_by_time();
  void hold_back_by_time();
  void apply(PendingNotify& n);
  void recheck_cells();
  void look_at_cell(const vm::Buffer* buffer, int64_t offset);
  void poll_interrupt();
  /// Where each rank is, as notes (04 DST-34).
  void note_places(Diagnostic& d) const;
  bool release_soft_waits();

  // tasks.cpp
  void schedule();
  bool schedule_device(Device& device);
  void start_block(Device& device, Task& task);
  void ready(Task& task);
  void block_done(Block& block);
  void check_pipes_at_end(const Block& block);  // channels.cpp
  void complete(Task& task);
  void drain_completions();
  void consume(Task& task);
  void add_edge(Task& task, RegionOwner* owner, const check::Clock& clock, int arg,
                const std::string& reason);
  void control_plane_done(Dispatch& d);
  void maybe_finish(Dispatch& d);
  void record_task(Task& task);

  void adopt_windows();
  void retain_windows();

  // steps.cpp
  void prepare_steps();
  void start_steps();
  bool startable(const HostStep& step) const;
  void run_callback(HostStep& step);
  void finish_step(HostStep& step);
  void bind_dispatch_args(HostStep& step, const vm::FunctionCode& fn, std::vector<ArgValue>* out);
  void match_parameter(const HostStep& step, const vm::FunctionCode& fn, size_t param, const ir::Type& type,
                       bool window, vm::View* v);
  void note_quiet_groups();
  void report_unspecified_outputs();
  void sort_reports();

  int64_t round_ = 0;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> traffic_;  ///< by rank, peer: messages, bytes
  std::vector<int32_t> free_objects_;
  std::vector<Actor*> runnable_;
  std::vector<Actor*> next_;
  Chunks<LogEntry> log_;        ///< of this round
  std::vector<LogEntry> held_;  ///< withheld from earlier rounds, in order of issue
  Chunks<PendingNotify> notifies_;
  std::vector<Block*> notifying_blocks_;
  std::vector<int32_t> dirty_;
  std::vector<Task*> completions_;
  std::vector<std::unique_ptr<Block>> finished_blocks_;  ///< freed at the end of the commit
  std::vector<std::unique_ptr<Dispatch>> finished_dispatches_;
  std::vector<HostStep*> waiting_steps_;  ///< all predecessors done, held by M-32
  std::vector<int> touched_devices_;
  int64_t next_handle_ = 1;
  uint64_t query_mark_ = 0;
  int64_t steps_left_ = 0;
  bool failed_ = false;
  std::vector<vm::View> outputs_;  ///< what the host sees
  std::set<std::string> warned_;
  std::map<std::pair<const vm::FunctionCode*, int>, std::string> window_params_;
  std::chrono::steady_clock::time_point last_poll_;
};

}  // namespace pypto::machine
