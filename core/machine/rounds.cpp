// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/machine/simulation.h"
#include "core/machine/slice.h"

namespace pypto::machine {
namespace {

constexpr uint64_t kQuantum = 65536;  // 03 M-31
constexpr size_t kMaxCellEvents = size_t{1} << 22;
constexpr size_t kStepsPerPoll = 16;

int32_t load_cell(const vm::Buffer* buffer, int64_t offset) { return Slice::of(buffer).load(offset); }

bool satisfied(ir::WaitCmp cmp, int32_t value, int32_t expected) {
  return cmp == ir::WaitCmp::kEq ? value == expected : value >= expected;
}

}  // namespace

// ------------------------------------------------------------------ states of actors

void Simulation::make_runnable(Actor& actor) {
  actor.state = Actor::State::kRunnable;
  ++actor.dispatch.active;
  next_.push_back(&actor);
}

void Simulation::block(Actor& actor, WaitState wait) {
  actor.wait = std::move(wait);
  if (actor.wait.kind == WaitState::Kind::kSignal) {
    watch_cell(actor.wait.buffer.get(), actor.wait.offset, &actor, nullptr);
  }
}

void Simulation::wake(Actor& actor) {
  if (actor.state != Actor::State::kBlocked) return;
  if (actor.wait.kind == WaitState::Kind::kSignal) {
    actor.wait.kind = WaitState::Kind::kNone;  // the wait runs again, on the cell that stands there
  } else {
    actor.wait = WaitState();
  }
  make_runnable(actor);
}

vm::ExecStatus Simulation::wait_for_commit(Actor& actor) {
  WaitState w;
  w.kind = WaitState::Kind::kCommit;
  actor.wait = std::move(w);
  return vm::ExecStatus::kBlocked;
}

void Simulation::watch_cell(const vm::Buffer* buffer, int64_t offset, Actor* actor, Task* task) {
  Watch w;
  w.offset = offset;
  w.actor = actor;
  w.task = task;
  if (task) w.condition = task->conditions.size() - 1;
  objects[static_cast<size_t>(buffer->object)].watches.push_back(w);
}

// ------------------------------------------------------------------ rounds

void Simulation::rounds() {
  start_steps();
  schedule();
  while (true) {
    poll_interrupt();
    if (next_.empty()) {
      if (steps_left_ == 0) return;
      if (release_soft_waits()) continue;
      if (failed_)
        return;  // an actor was stopped by its error: what waits for it is no deadlock of the program
      deadlock();
    }
    run_round();
  }
}

void Simulation::run_round() {
  ++round_;
  runnable_.clear();
  runnable_.swap(next_);
  if (policy.explores()) {
    // The order of the round is the order of its commits: the seed chooses it (03 M-35, M-38).
    policy.begin_round(round_);
    std::vector<std::pair<uint64_t, Actor*>> order;
    order.reserve(runnable_.size());
    for (Actor* actor : runnable_) order.emplace_back(policy.priority(actor->key), actor);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second->key < b.second->key;
    });
    for (size_t i = 0; i < order.size(); ++i) runnable_[i] = order[i].second;
  } else {
    const auto before = [](const Actor* a, const Actor* b) { return a->key < b->key; };
    // Ranks that wake their neighbours leave one or two runs that are in order.
    const auto second = std::is_sorted_until(runnable_.begin(), runnable_.end(), before);
    if (std::is_sorted(second, runnable_.end(), before)) {
      std::inplace_merge(runnable_.begin(), second, runnable_.end(), before);
    } else {
      std::sort(runnable_.begin(), runnable_.end(), before);
    }
    if (policy.timed()) hold_back_by_time();
  }
  if (policy.weighted()) hold_slow_ranks();
  for (size_t i = 0; i < runnable_.size(); ++i) {
    step_actor(*runnable_[i]);
    // A round of a thousand ranks that spin takes many seconds (04 DST-34); asking the clock is not free.
    if ((i + 1) % kStepsPerPoll == 0) poll_interrupt();
  }
  commit();
  schedule();
  note_quiet_groups();
  start_steps();
  schedule();
}

/// Leaves the actors of ranks that sit this round out for the next one; when only such could run, they do.
void Simulation::hold_slow_ranks() {
  const auto slow = std::stable_partition(runnable_.begin(), runnable_.end(), [&](const Actor* a) {
    return policy.takes_part(a->dispatch.rank, round_);
  });
  if (slow == runnable_.begin()) return;
  next_.insert(next_.end(), slow, runnable_.end());
  runnable_.erase(slow, runnable_.end());
}

void Simulation::step_actor(Actor& actor) {
  vm::RunStatus status = vm::RunStatus::kDone;
  try {
    status = vm::run(*actor.fiber, program, actor, kQuantum);
  } catch (const Suspend&) {
    status = vm::RunStatus::kBlocked;
  } catch (Failure& failure) {
    if (failure.diagnostic().id == "interrupted") throw;
    checker->settle();
    annotate(failure.diagnostic(), actor);
    if (!options.collect) {
      checker->decide();  // what was found before comes first
      note_others(failure.diagnostic());
      throw;
    }
    fail_actor(actor, failure.diagnostic());
    return;
  }
  checker->settle();
  switch (status) {
    case vm::RunStatus::kDone:
      --actor.dispatch.active;
      actor.state = Actor::State::kDone;
      actor.deliver();
      actor.end = checker->end(actor.id);
      log_.push_back({&actor, LogEntry::kDone, timing ? actor.now() : 0});
      break;
    case vm::RunStatus::kQuantum:
    case vm::RunStatus::kYield:
      next_.push_back(&actor);
      break;
    case vm::RunStatus::kBlocked:
      if (actor.wait.kind == WaitState::Kind::kCommit) {
        next_.push_back(&actor);
        break;
      }
      --actor.dispatch.active;
      actor.state = Actor::State::kBlocked;
      break;
  }
  if (options.step_limit > 0 && actor.fiber &&
      actor.fiber->steps > static_cast<uint64_t>(options.step_limit) &&
      actor.state == Actor::State::kRunnable) {
    Diagnostic d;
    d.cls = ErrorClass::kProgramFault;
    d.message = "step_limit of " + std::to_string(options.step_limit) + " instructions exceeded";
    d.span = actor.span();
    d.hint = "raise SimOptions.step_limit, or make the loop end";
    annotate(d, actor);
    throw Failure(std::move(d));
  }
}

void Simulation::fail_actor(Actor& actor, Diagnostic d) {
  --actor.dispatch.active;
  actor.state = Actor::State::kFailed;
  failed_ = true;
  run_report.diagnostics.push_back(std::move(d));
  run_report.ok = false;
}

// ------------------------------------------------------------------ commit

ActorKey Simulation::LogEntry::issuer() const {
  ActorKey key = actor->key;
  key.lane = 0;
  return key;
}

void Simulation::log_notify(PendingNotify n) {
  log_.push_back({n.block->root.get(), notifies_.size(), n.visible});
  ++objects[static_cast<size_t>(n.buffer->object)].pending_notifies;
  if (n.block->notifies.empty()) notifying_blocks_.push_back(n.block);
  n.block->notifies.push_back(notifies_.size());
  notifies_.push_back(std::move(n));
}

void Simulation::log_wait(int32_t object, int64_t offset, int rank, const vm::Site* site) {
  if (cell_events.size() >= kMaxCellEvents) return;
  cell_events.push_back({offset, site, object, rank, 0, 0, static_cast<int32_t>(round_), true});
}

bool Simulation::pending_notify_in(const Actor& actor, const vm::View& v) {
  if (notifies_.empty() || !actor.block || object_of(v).pending_notifies == 0) return false;
  const check::Box box = check::box_of(v);
  for (const size_t i : actor.block->notifies) {
    const PendingNotify& n = notifies_[i];
    if (n.applied || !(n.buffer == v.buffer)) continue;
    if (check::overlap(box, check::box_of_range(n.offset, n.offset + 4))) return true;
  }
  return false;
}

void Simulation::apply_pending_in(const Actor& actor, const vm::View& v) {
  if (!pending_notify_in(actor, v)) return;
  const check::Box box = check::box_of(v);
  for (const size_t i : actor.block->notifies) {
    PendingNotify& n = notifies_[i];
    if (n.applied || !(n.buffer == v.buffer)) continue;
    if (check::overlap(box, check::box_of_range(n.offset, n.offset + 4))) apply(n);
  }
}

void Simulation::apply(PendingNotify& n) {
  n.applied = true;
  --objects[static_cast<size_t>(n.buffer->object)].pending_notifies;
  int32_t before = load_cell(n.buffer.get(), n.offset);
  int32_t after = n.value;
  bool overflow = false;
  if (n.op == ir::NotifyOp::kAtomicAdd) overflow = __builtin_add_overflow(before, n.value, &after);
  Slice::of(n.buffer.get()).store(n.offset, after);
  if (cell_events.size() < kMaxCellEvents) {
    cell_events.push_back(
        {n.offset, n.site, n.buffer->object, n.rank, before, after, static_cast<int32_t>(round_), false});
  }
  if (timing) {
    timing->raised(n.buffer->object, n.offset, after, n.op == ir::NotifyOp::kSet, n.visible, n.flow);
  }
  if (checking) {
    check::Notify e;
    e.who = n.who;
    e.release = std::move(n.release);
    e.object = n.buffer->object;
    e.offset = n.offset;
    e.op = n.op;
    e.value = n.value;
    e.before = before;
    e.after = after;
    e.site = n.site;
    e.iteration = n.iteration;
    e.sole = n.sole;
    checker->notify(std::move(e));
  }
  if (overflow && options.checks != Checks::kOff) {
    Diagnostic d;
    d.cls = ErrorClass::kProtocolError;
    d.id = "X-68";
    d.title = "signal cell overflow";
    d.message = "the notify makes the signal cell overflow INT32: " + std::to_string(before) + " + " +
                std::to_string(n.value) + ", cell " + cell_text(n.buffer->object, n.offset) + " of rank " +
                std::to_string(objects[static_cast<size_t>(n.buffer->object)].rank);
    d.hint = "reset between rounds";
    if (n.site) d.span = n.site->span;
    annotate(d, *n.block->root);
    report(std::move(d));
  }
  look_at_cell(n.buffer.get(), n.offset);
}

void Simulation::look_at_cell(const vm::Buffer* buffer, int64_t offset) {
  std::vector<Watch>& list = objects[static_cast<size_t>(buffer->object)].watches;
  if (list.empty()) return;
  const int32_t value = load_cell(buffer, offset);
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const Watch w = list[i];
    bool done = false;
    if (w.offset == offset) {
      if (w.actor) {
        if (satisfied(w.actor->wait.cmp, value, w.actor->wait.expected)) {
          wake(*w.actor);
          done = true;
        }
      } else if (value >= w.task->conditions[w.condition].expected) {
        w.task->conditions[w.condition].satisfied = true;
        condition_met(*w.task);
        done = true;
      }
    }
    if (!done) list[kept++] = w;
  }
  list.resize(kept);
}

void Simulation::recheck_cells() {
  for (const int32_t object : dirty_) {
    ObjectRecord& record = objects[static_cast<size_t>(object)];
    record.dirty = false;
    if (record.window < 0) continue;
    const WindowBuffer& w = windows[static_cast<size_t>(record.window)];
    const int member = domains[static_cast<size_t>(w.domain)].index_of[static_cast<size_t>(record.rank)];
    const vm::Buffer* buffer = w.slices[static_cast<size_t>(member)].get();
    std::vector<int64_t> offsets;
    for (const Watch& watch : record.watches) offsets.push_back(watch.offset);
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    for (const int64_t offset : offsets) look_at_cell(buffer, offset);
  }
  dirty_.clear();
}

/// Under `explore` some issuers' commits stay behind: all of one issuer, so that its own order is kept.
void Simulation::withhold() {
  std::vector<LogEntry> all = std::move(held_);
  held_.clear();
  for (const LogEntry& e : all) --e.actor->dispatch.active;
  for (const LogEntry& e : log_) all.push_back(e);
  log_.clear();
  const bool nothing_else = next_.empty();
  for (const LogEntry& e : all) {
    const bool behind =
        std::any_of(held_.begin(), held_.end(), [&](const LogEntry& h) { return h.issuer() == e.issuer(); });
    if (behind || (!nothing_else && policy.withholds(e.issuer(), round_))) {
      held_.push_back(e);
      ++e.actor->dispatch.active;
    } else {
      log_.push_back(LogEntry(e));
    }
  }
}

/// Under `timed` a round has the actors whose virtual time is next, in its order; the others come later.
void Simulation::hold_back_by_time() {
  constexpr double kSlice = 500;  // ns; less than anything takes that one core does to another
  std::stable_sort(runnable_.begin(), runnable_.end(),
                   [](const Actor* a, const Actor* b) { return a->now() < b->now(); });
  timing->horizon = runnable_.front()->now() + kSlice;
  const auto later = std::find_if(runnable_.begin(), runnable_.end(),
                                  [&](const Actor* a) { return a->now() > timing->horizon; });
  next_.insert(next_.end(), later, runnable_.end());
  runnable_.erase(later, runnable_.end());
}

/// Commits of a round in the order of the virtual clock. Those of one issuer stay in its own order: its times
/// only grow.
void Simulation::order_by_time() {
  std::vector<LogEntry> all;
  for (const LogEntry& e : log_) all.push_back(e);
  std::map<const Actor*, double> latest;
  for (LogEntry& e : all) {
    double& last = latest[e.actor];
    last = e.time = std::max(e.time, last);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const LogEntry& a, const LogEntry& b) { return a.time < b.time; });
  log_.clear();
  for (const LogEntry& e : all) log_.push_back(LogEntry(e));
}

void Simulation::commit() {
  if (policy.explores()) withhold();
  if (policy.timed()) order_by_time();
  constexpr size_t kAhead = 16;  // a burst of notifies goes to as many slices as there are ranks
  for (size_t i = 0; i < log_.size(); ++i) {
    const LogEntry e = log_[i];
    if (i + kAhead < log_.size() && !log_[i + kAhead].done()) {
      const PendingNotify& later = notifies_[log_[i + kAhead].notify];
      Slice::of(later.buffer.get()).prefetch(later.offset);
    }
    if (e.done()) {
      finish_actor(*e.actor);
    } else if (!notifies_[e.notify].applied) {
      apply(notifies_[e.notify]);
    }
  }
  log_.clear();
  for (Block* block : notifying_blocks_) block->notifies.clear();
  notifying_blocks_.clear();
  Chunks<PendingNotify> kept;
  for (LogEntry& e : held_) {
    if (e.done()) continue;
    PendingNotify& n = notifies_[e.notify];
    e.notify = kept.size();
    if (n.block->notifies.empty()) notifying_blocks_.push_back(n.block);
    n.block->notifies.push_back(kept.size());
    kept.push_back(std::move(n));
  }
  if (held_.empty()) {
    notifies_.clear();
  } else {
    notifies_ = std::move(kept);
  }
  recheck_cells();
  checker->end_round();
  drain_completions();
  finished_blocks_.clear();
  finished_dispatches_.clear();
}

void Simulation::finish_actor(Actor& actor) {
  switch (actor.kind) {
    case Actor::Kind::kLane: {
      Actor& parent = *actor.parent;
      parent.child_fibers[actor.child_index] = std::move(actor.fiber);
      if (--parent.live_kids == 0 && parent.wait.kind == WaitState::Kind::kChildren) wake(parent);
      return;
    }
    case Actor::Kind::kBlock:
      block_done(*actor.block);
      return;
    case Actor::Kind::kOrchestration:
      control_plane_done(actor.dispatch);
      return;
  }
}

// ------------------------------------------------------------------ standstill

/// Waits that only bound memory or follow host order by courtesy are given up when nothing else can move.
bool Simulation::release_soft_waits() {
  if (!held_.empty()) {
    commit();
    schedule();
    note_quiet_groups();
    start_steps();
    schedule();
    return true;
  }
  bool any = false;
  for (const auto& step : steps) {
    if (!step->dispatch) continue;
    for (Actor* actor : std::vector<Actor*>(step->dispatch->blocked_on_tasks)) {
      if (actor->wait.kind != WaitState::Kind::kHeap) continue;
      auto& list = step->dispatch->blocked_on_tasks;
      list.erase(std::find(list.begin(), list.end(), actor));
      wake(*actor);
      any = true;
    }
  }
  if (any) return true;
  if (!waiting_steps_.empty()) {
    // 03 M-32 never introduces a deadlock: the earliest held group goes ahead.
    const int group = waiting_steps_.front()->group;
    groups[static_cast<size_t>(group)].after.clear();
    start_steps();
    schedule();
    return !next_.empty();
  }
  return false;
}

void Simulation::poll_interrupt() {
  if (!options.interrupted) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_poll_ < std::chrono::milliseconds(50)) return;
  last_poll_ = now;
  if (!options.interrupted()) return;
  Diagnostic d;
  d.cls = ErrorClass::kRuntimeError;
  d.id = "interrupted";
  d.message = "interrupted in round " + std::to_string(round_);
  note_places(d);
  add_waits(d);
  throw Failure(std::move(d));
}

}  // namespace pypto::machine
