// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/machine/simulation.h"
#include "core/machine/slice.h"
#include "core/vm/ops/written.h"

namespace pypto::machine {
namespace {

constexpr size_t kKeptClocks = 4096;   ///< of completed tasks, one by one; older ones are merged
constexpr size_t kKeptRegions = 4096;  ///< likewise

size_t queue_of(vm::CoreKind kind) {
  return kind == vm::CoreKind::kCube ? 1 : kind == vm::CoreKind::kMixed ? 2 : 0;
}

bool holds(ir::OpId op, int64_t lhs, int64_t rhs) {
  switch (op) {
    case ir::OpId::k_scalar_eq:
      return lhs == rhs;
    case ir::OpId::k_scalar_ne:
      return lhs != rhs;
    case ir::OpId::k_scalar_lt:
      return lhs < rhs;
    case ir::OpId::k_scalar_le:
      return lhs <= rhs;
    case ir::OpId::k_scalar_gt:
      return lhs > rhs;
    default:
      return lhs >= rhs;
  }
}

int64_t read_integer(const vm::View& element) {
  Simulation::make_plain(element);
  const uint8_t* p = element.data();
  switch (dtype_bytes(element.dtype)) {
    case 1:
      return *reinterpret_cast<const int8_t*>(p);
    case 2:
      return *reinterpret_cast<const int16_t*>(p);
    case 4:
      return *reinterpret_cast<const int32_t*>(p);
    default:
      return *reinterpret_cast<const int64_t*>(p);
  }
}

// A handle as programs hold it: the task, and above it the manual scope that its slot belongs to.
constexpr int kHandleBits = 40;
constexpr int64_t kScopeMask = (int64_t{1} << 22) - 1;

int64_t task_of(int64_t handle) { return handle & ((int64_t{1} << kHandleBits) - 1); }
int64_t scope_of(int64_t handle) { return handle >> kHandleBits; }

int64_t program_handle(const Task& task) { return task.handle | ((task.scope & kScopeMask) << kHandleBits); }

std::string slice_text(const vm::View& v) {
  const check::Box box = check::box_of(v);
  return "bytes " + std::to_string(box.begin()) + " to " + std::to_string(box.end());
}

/// A predicate must be specified (03 M-37).
void check_predicate(const Task& task) {
  const vm::View& cell = task.predicate;
  if (cell.buffer->written.all) return;
  const vm::Mark mark = vm::cell_mark(cell, 0);
  if (mark == 0) return;
  Diagnostic d = vm::unspecified_report("an unspecified value decides what the program does",
                                        "an unspecified value decides the predicate of the launch of '" +
                                            task.fn->name + "': its cell " + vm::marks().why(mark));
  vm::marks().explain(mark, d);
  if (task.site) d.span = task.site->span;
  d.rank = task.dispatch->rank;
  d.task = task.number;
  d.kernel = task.fn->name;
  throw Failure(std::move(d));
}

}  // namespace

// ------------------------------------------------------------------ submission

void Simulation::add_edge(Task& task, RegionOwner* owner, const check::Clock& clock, int arg,
                          const std::string& reason) {
  if (!owner || owner->completed) {
    if (clock) task.after.push_back(clock);
    return;
  }
  if (owner->mark == query_mark_) return;
  owner->mark = query_mark_;
  auto* pred = static_cast<Task*>(owner);
  if (pred == &task) return;
  pred->successors.push_back(&task);
  ++pred->unfinished_users;
  task.predecessors.push_back(pred);
  ++task.pending;
  if (task.record >= 0) {
    EdgeRecord e;
    e.pred = pred->handle;
    e.succ = task.handle;
    e.arg = arg;
    e.reason = reason;
    run_report.edges.push_back(std::move(e));
  }
}

void Simulation::require_open_scope(const Dispatch& d, int64_t dep, const vm::Site* site) {
  const int64_t scope = scope_of(dep);
  if (scope == 0) return;
  for (const ScopeFrame& f : d.scopes) {
    if (f.kind == ir::ScopeKind::kManual && (f.manual & kScopeMask) == scope) return;
  }
  Diagnostic diag;
  diag.cls = ErrorClass::kProgramFault;
  diag.id = "L-166";
  diag.message = "deps= holds the handle of a task of a manual scope that has ended";
  const auto it = d.tasks.find(task_of(dep));
  if (it != d.tasks.end()) {
    const Task& task = *it->second;
    diag.message += ": " + (task.fn ? "'" + task.fn->name + "'" : std::string("task_dummy")) +
                    ", submission " + std::to_string(task.number);
    if (task.site) diag.notes.push_back({"the task", task.site->span});
  }
  diag.hint =
      "a handle is valid until its scope ends: wait inside the scope, or drop the entry where both tasks use "
      "one tensor, since edges across the end of a scope are automatic";
  if (site) diag.span = site->span;
  throw Failure(std::move(diag));
}

bool Simulation::submit(Dispatch& d, Actor* orch, Submission s, int64_t* handle) {
  const int depth = static_cast<int>(std::min<size_t>(d.scopes.size(), 3));
  const int64_t window = options.ring_task_window > 0 ? options.ring_task_window : 16384;
  if (d.ring_used[static_cast<size_t>(depth)] >= window) {
    WaitState w;
    w.kind = WaitState::Kind::kRing;
    w.detail = "ring " + std::to_string(depth) + " (scope depth " + std::to_string(d.scopes.size()) +
               "), task window " + std::to_string(window) + " slots, all in use";
    block(*orch, std::move(w));
    d.blocked_on_tasks.push_back(orch);
    return false;
  }
  for (const int64_t dep : s.deps) require_open_scope(d, dep, s.site);
  auto owned = std::make_unique<Task>();
  Task& task = *owned;
  task.handle = next_handle_++;
  task.number = d.submitted++;
  task.dispatch = &d;
  task.call = s.call;
  task.fn = s.fn;
  task.site = s.site;
  task.args = std::move(s.args);
  if (checking) {
    for (const ArgValue& a : task.args) {
      if (!a.is_view || a.view.empty() || a.view.buffer->kind != vm::BufferKind::kWindow) continue;
      window_params_.emplace(std::pair{task.fn, object_of(a.view).window}, a.name);
    }
  }
  task.blocks = s.blocks;
  task.sync_start = s.sync_start;
  task.ring = depth;
  task.has_predicate = s.has_predicate;
  task.predicate = std::move(s.predicate);
  if (s.fn) {
    task.core = s.fn->core;
    if (s.fn->type == ir::FunctionType::kGroup) task.core = vm::CoreKind::kMixed;
    if (s.fn->type == ir::FunctionType::kAIC) task.core = vm::CoreKind::kCube;
  }
  for (const ScopeFrame& f : d.scopes) {
    if (f.kind == ir::ScopeKind::kManual) task.scope = f.manual;
  }
  const Device& device = *devices[static_cast<size_t>(d.rank)];
  if (task.sync_start && task.blocks > device.cores.capacity(task.core)) {
    Diagnostic diag;
    diag.cls = ErrorClass::kProgramFault;
    diag.id = "H-11";
    diag.message = "sync_start launch of '" + task.fn->name + "' asks for " + std::to_string(task.blocks) +
                   " blocks, but the device has " + std::to_string(device.cores.capacity(task.core)) +
                   " cores of its kind: they can never start together";
    diag.hint = "use at most that many blocks, or drop sync_start";
    if (task.site) diag.span = task.site->span;
    throw Failure(std::move(diag));
  }
  if (options.want_task_graph || options.want_timeline) record_task(task);

  ++query_mark_;
  if (orch && checking) task.after.push_back(checker->release(orch->id));
  if (!orch && d.start) task.after.push_back(d.start);
  std::vector<RegionTable::Conflict> conflicts;
  struct Use {
    vm::BufferRef buffer;
    check::Box box;
    bool write = false;
    int32_t arg = -1;
  };
  std::vector<Use> uses;
  for (size_t i = 0; i < task.args.size(); ++i) {
    const ArgValue& a = task.args[i];
    if (!a.is_view || a.view.empty() || a.view.buffer->kind == vm::BufferKind::kOnChip) continue;
    if (s.call && i < s.call->no_dep.size() && s.call->no_dep[i]) continue;
    if (object_of(a.view).manual_dep) continue;
    const vm::ParamInfo& p = s.fn->params[i];
    Use u;
    u.buffer = a.view.buffer;
    u.box = p.remote_target ? check::box_of_range(0, a.view.buffer->bytes) : check::box_of(a.view);
    u.write = p.effective != ir::ParamDirection::kIn;
    u.arg = static_cast<int32_t>(i);
    uses.push_back(std::move(u));
  }
  if (task.has_predicate) {
    Use u;
    u.buffer = task.predicate.buffer;
    u.box = check::box_of(task.predicate);
    uses.push_back(std::move(u));
  }
  for (const Use& u : uses) {
    conflicts.clear();
    // 03 M-27: the predicate's read waits for its writers in manual scopes too.
    const int64_t scope = u.arg < 0 ? 0 : task.scope;
    d.regions.query(u.buffer.get(), u.box, u.write, scope, u.write && task.scope == 0, &conflicts);
    for (const auto& c : conflicts) {
      std::string reason;
      if (task.record >= 0) {
        reason = std::string(c.write ? "writes" : "reads") + " -> " + (u.write ? "writes " : "reads ") +
                 (u.arg >= 0 ? task.args[static_cast<size_t>(u.arg)].name + " " +
                                   slice_text(task.args[static_cast<size_t>(u.arg)].view)
                             : std::string("predicate"));
      }
      if (timing) {
        if (!c.owner) task.time.ready = std::max(task.time.ready, c.time);
        if (c.owner && c.owner->completed)
          task.time.ready = std::max(task.time.ready, static_cast<Task*>(c.owner)->time.seen);
      }
      add_edge(task, c.owner, c.clock, u.arg, reason);
    }
  }
  for (const int64_t entry : s.deps) {
    if (entry <= 0) continue;
    const int64_t dep = task_of(entry);
    if (timing) task.time.ready = std::max(task.time.ready, timing->seen(d, dep));
    const auto it = d.tasks.find(dep);
    if (it != d.tasks.end() && !it->second->completed) {
      add_edge(task, it->second.get(), nullptr, -1, "deps=");
      continue;
    }
    if (!checking) continue;
    const auto old = d.old_clocks.find(dep);
    task.after.push_back(old != d.old_clocks.end() ? old->second : d.older_clocks);
  }
  task.regions.reserve(uses.size());
  for (const Use& u : uses) d.regions.add(u.buffer, task, u.box, u.write, task.scope, u.arg);

  ++d.ring_used[static_cast<size_t>(depth)];
  ++d.live;
  if (handle) *handle = program_handle(task);
  d.tasks.emplace(task.handle, std::move(owned));
  RankReport& rank = run_report.ranks[static_cast<size_t>(d.rank)];
  if (task.fn) {
    ++rank.tasks;
    ++rank.kernels[task.fn->name];
  }
  if (timing) timing->submitted(task);
  if (task.pending == 0) ready(task);
  return true;
}

void Simulation::record_task(Task& task) {
  task.record = static_cast<int>(run_report.tasks.size());
  TaskRecord r;
  r.id = task.handle;
  r.rank = task.dispatch->rank;
  r.dispatch = task.dispatch->number;
  r.kernel = task.fn ? task.fn->name : "task_dummy";
  r.core_type = task.core == vm::CoreKind::kCube ? "AIC" : task.core == vm::CoreKind::kMixed ? "MIX" : "AIV";
  if (task.site) r.span = task.site->span;
  for (size_t i = 0; i < task.args.size(); ++i) {
    const ArgValue& a = task.args[i];
    if (!a.is_view || a.view.empty()) continue;
    TaskRecord::Arg arg;
    arg.name = task.fn->params[i].name;
    switch (task.fn->params[i].effective) {
      case ir::ParamDirection::kIn:
        arg.direction = "input";
        break;
      case ir::ParamDirection::kOut:
        arg.direction = "output";
        break;
      case ir::ParamDirection::kInOut:
        arg.direction = "inout";
        break;
    }
    const check::Box box = check::box_of(a.view);
    arg.begin = box.begin();
    arg.end = box.end();
    arg.root = a.view.buffer->object >= 0 ? object_of(a.view).name : a.name;
    r.args.push_back(std::move(arg));
  }
  run_report.tasks.push_back(std::move(r));
}

// ------------------------------------------------------------------ ready, running, complete

void Simulation::ready(Task& task) {
  if (checking && (task.fn || !task.after.empty())) task.start = checker->join(task.after);
  task.after.clear();
  bool run = task.fn != nullptr && task.blocks > 0;
  if (run && task.has_predicate) {
    check_predicate(task);
    run = holds(task.call->predicate_op, read_integer(task.predicate), task.call->predicate_value);
  }
  if (!run) {
    task.finished = task.blocks;
    task.ends = {task.start};
    completions_.push_back(&task);
    return;
  }
  devices[static_cast<size_t>(task.dispatch->rank)]->ready[queue_of(task.core)].push_back(&task);
  touched_devices_.push_back(task.dispatch->rank);
}

void Simulation::schedule() {
  drain_completions();
  std::sort(touched_devices_.begin(), touched_devices_.end());
  touched_devices_.erase(std::unique(touched_devices_.begin(), touched_devices_.end()),
                         touched_devices_.end());
  const std::vector<int> devices_now = std::move(touched_devices_);
  touched_devices_.clear();
  for (const int rank : devices_now) schedule_device(*devices[static_cast<size_t>(rank)]);
}

bool Simulation::schedule_device(Device& device) {
  bool any = false;
  while (true) {
    // The startable task that was submitted first; a simultaneous start that does not fit yet lets others
    // pass.
    Task* best = nullptr;
    size_t best_queue = 0;
    size_t best_index = 0;
    for (size_t q = 0; q < 3; ++q) {
      for (size_t i = 0; i < device.ready[q].size(); ++i) {
        Task* t = device.ready[q][i];
        const int free = device.cores.available(t->core);
        if (free == 0) break;
        if (t->sync_start && free < t->blocks) continue;
        if (!best || t->handle < best->handle) {
          best = t;
          best_queue = q;
          best_index = i;
        }
        break;
      }
    }
    if (!best) return any;
    any = true;
    do {
      start_block(device, *best);
    } while (best->started < best->blocks && device.cores.available(best->core) > 0);
    if (best->started == best->blocks) {
      auto& queue = device.ready[best_queue];
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(best_index));
    }
  }
}

void Simulation::start_block(Device& device, Task& task) {
  auto block = std::make_unique<Block>();
  block->task = &task;
  block->index = static_cast<int>(task.started++);
  device.cores.take(task.core, &block->cores);
  block->root = std::make_unique<Actor>(*this, Actor::Kind::kBlock, *task.dispatch);
  Actor& actor = *block->root;
  actor.task = &task;
  actor.block = block.get();
  if (task.core == vm::CoreKind::kCube) actor.side = Actor::Side::kCube;
  if (task.fn->type == ir::FunctionType::kAIV && task.core == vm::CoreKind::kVector)
    actor.side = Actor::Side::kWhole;
  actor.key = {task.dispatch->rank, task.dispatch->index, task.number, block->index, -1};
  actor.fiber = vm::make_fiber(*task.fn);
  vm::Frame& frame = actor.fiber->top();
  for (size_t i = 0; i < task.args.size(); ++i) {
    const vm::Reg& reg = task.fn->params[i].reg;
    if (task.args[i].is_view) {
      frame.v[static_cast<size_t>(reg.index)] = task.args[i].view;
    } else if (reg.cls == vm::RegClass::kScalar) {
      frame.s[static_cast<size_t>(reg.index)] = task.args[i].scalar;
      if (task.args[i].mark != 0) {
        if (frame.marks.empty()) frame.marks.resize(frame.s.size());
        frame.marks[static_cast<size_t>(reg.index)] = task.args[i].mark;
      }
    }
  }
  if (checking) actor.id = checker->start(actor.info(), {&task.start, 1});
  if (timing) {
    timing->start_block(*block);
    actor.clock = std::make_unique<CoreTimer>(*timing, actor);
    actor.timer = actor.clock.get();
  }
  task.running.push_back(std::move(block));
  make_runnable(actor);
  for (Diagnostic& d : vm::bind_symbols(frame)) {
    annotate(d, actor);
    report(std::move(d));
  }
  if (task.record >= 0) {
    const CoreSet& c = actor.block->cores;
    TaskRecord& r = run_report.tasks[static_cast<size_t>(task.record)];
    if (c.aic >= 0) r.cores.push_back(c.aic);
    for (const int v : {c.aiv0, c.aiv1}) {
      if (v >= 0) r.cores.push_back(device.cores.capacity(vm::CoreKind::kCube) + v);
    }
  }
}

void Simulation::block_done(Block& block) {
  Task& task = *block.task;
  if (timing) timing->end_block(block);
  devices[static_cast<size_t>(task.dispatch->rank)]->cores.give(block.cores);
  touched_devices_.push_back(task.dispatch->rank);
  check_pipes_at_end(block);
  if (checking) task.ends.push_back(block.root->end);
  ++task.finished;
  const auto it = std::find_if(task.running.begin(), task.running.end(),
                               [&](const std::unique_ptr<Block>& b) { return b.get() == &block; });
  finished_blocks_.push_back(std::move(*it));
  task.running.erase(it);
  if (task.finished == task.blocks && task.open_conditions == 0) completions_.push_back(&task);
}

void Simulation::condition_met(Task& task) {
  const size_t i =
      static_cast<size_t>(std::find_if(task.conditions.begin(), task.conditions.end(),
                                       [](const Condition& c) { return c.satisfied && c.buffer; }) -
                          task.conditions.begin());
  if (i < task.conditions.size()) {
    Condition& c = task.conditions[i];
    if (timing) {
      const double seen = timing->visible(c.buffer->object, c.offset, ir::WaitCmp::kGe, c.expected).time +
                          timing->params().ns(trace::Param::k_wait_poll);
      task.time.last = std::max(task.time.last, seen);
    }
    if (checking) {
      check::Observe o;
      o.info.rank = task.dispatch->rank;
      o.info.dispatch = task.dispatch->index;
      o.info.group = task.dispatch->step->group;
      o.info.task = task.number;
      o.info.kernel = task.fn;
      o.at = task.start;
      o.object = c.buffer->object;
      o.offset = c.offset;
      o.expected = c.expected;
      o.seen = Slice::of(c.buffer.get()).load(c.offset);
      o.site = c.site;
      task.ends.push_back(checker->observe(o));
    }
    c.buffer = vm::BufferRef();
  }
  if (--task.open_conditions == 0) {
    --task.dispatch->waiters;
    if (task.finished == task.blocks) completions_.push_back(&task);
  }
}

void Simulation::drain_completions() {
  for (size_t i = 0; i < completions_.size(); ++i) complete(*completions_[i]);
  completions_.clear();
}

void Simulation::complete(Task& task) {
  Dispatch& d = *task.dispatch;
  task.completed = true;
  check::Clock end;
  if (checking) {
    if (!track_tensors && task.blocks > 0 && task.fn) checker->drop_part(task.handle);
    end = checker->join(task.ends);
    d.ends.push_back(end);
    if (d.ends.size() > 64) d.ends = {checker->join(d.ends)};
    d.old_clocks.emplace(task.handle, end);
    if (d.old_clocks.size() > kKeptClocks) {
      std::vector<check::Clock> all{d.older_clocks};
      for (const auto& [handle, clock] : d.old_clocks) all.push_back(clock);
      d.older_clocks = checker->join(all);
      d.old_clocks.clear();
    }
  }
  if (timing) timing->completed(task);
  d.regions.retire(task, end, task.time.seen);
  if (d.regions.retired() > kKeptRegions) d.regions.fold_retired(*checker);
  for (Task* succ : task.successors) {
    if (end) succ->after.push_back(end);
    succ->time.ready = std::max(succ->time.ready, task.time.seen);
    if (--succ->pending == 0) ready(*succ);
  }
  for (Task* pred : task.predecessors) {
    if (--pred->unfinished_users == 0) consume(*pred);
  }
  task.predecessors.clear();
  task.args.clear();
  --d.live;
  for (Actor* actor : d.blocked_on_tasks) wake(*actor);
  d.blocked_on_tasks.clear();
  if (task.unfinished_users == 0) consume(task);  // `task` is gone
  maybe_finish(d);
}

void Simulation::consume(Task& task) {
  Dispatch& d = *task.dispatch;
  --d.ring_used[static_cast<size_t>(task.ring)];
  d.tasks.erase(task.handle);
}

void Simulation::control_plane_done(Dispatch& d) {
  d.orch_done = true;
  if (checking) d.ends.push_back(d.orch->end);
  maybe_finish(d);
}

}  // namespace pypto::machine
