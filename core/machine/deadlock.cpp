// SPDX-License-Identifier: Apache-2.0
// Quiescence: nothing can run, nothing is in flight, and something is left (03 M-31, X-46, precedence X-75).
#include <algorithm>
#include <map>
#include <set>

#include "core/machine/simulation.h"
#include "core/machine/slice.h"

namespace pypto::machine {
namespace {

std::string cell_text(const std::vector<int64_t>& cell) {
  std::string s = "[";
  for (size_t i = 0; i < cell.size(); ++i) s += (i ? ", " : "") + std::to_string(cell[i]);
  return s + "]";
}

std::string place_text(const vm::Site* site) {
  return site ? site->span.file_line() : std::string("<unknown>");
}

bool notifies(const vm::Program& program, const vm::FunctionCode& fn, int depth = 0) {
  for (const vm::OpInsn& op : fn.ops) {
    if (op.op == ir::OpId::k_notify) return true;
  }
  if (depth > 4) return false;
  return std::any_of(fn.calls.begin(), fn.calls.end(), [&](const vm::CallInsn& c) {
    return notifies(program, program.functions[static_cast<size_t>(c.callee)], depth + 1);
  });
}

/// Explains one standstill.
class Explanation {
 public:
  explicit Explanation(Simulation& sim) : sim_(sim), blocked_(sim.blocked_actors()) {
    for (const CellEvent& e : sim.cell_events) by_cell_[{e.object, e.offset}].push_back(&e);
  }

  Diagnostic make();

 private:
  using Events = std::vector<const CellEvent*>;

  bool is_signal(const Actor& a) const { return a.wait.kind == WaitState::Kind::kSignal; }
  const ObjectRecord& signal_of(const Actor& a) const {
    return sim_.objects[static_cast<size_t>(a.wait.buffer->object)];
  }
  const Events* events_of(int32_t object, int64_t offset) const {
    const auto it = by_cell_.find({object, offset});
    return it == by_cell_.end() ? nullptr : &it->second;
  }
  bool notified(int32_t object, int64_t offset) const {
    const Events* e = events_of(object, offset);
    return e && std::any_of(e->begin(), e->end(), [](const CellEvent* x) { return !x->wait; });
  }

  bool missed_value(Diagnostic& d) const;
  bool wrong_direction(Diagnostic& d) const;
  bool row_mismatch(Diagnostic& d) const;
  bool absent_from_collective(Diagnostic& d) const;
  bool held_by_order(Diagnostic& d) const;
  bool flow_control(Diagnostic& d) const;
  bool cores_held(Diagnostic& d) const;
  void describe_waits(Diagnostic& d) const;
  std::string where_is(int rank) const;
  bool uses_window(const std::vector<ArgValue>& args, int window) const;
  /// The data order that keeps a dispatch which receives `window` from starting; null when none does.
  const HostStep::Pred* held(const HostStep& step, int window) const;

  Simulation& sim_;
  std::vector<Actor*> blocked_;
  std::map<std::pair<int32_t, int64_t>, Events> by_cell_;
};

std::string Explanation::where_is(int rank) const {
  for (const Actor* a : blocked_) {
    if (a->dispatch.rank == rank) return "blocked at " + place_text(a->site());
  }
  for (const auto& step : sim_.steps) {
    if (step->callback || step->rank != rank) continue;
    if (step->state != HostStep::State::kDone) return "has a dispatch that was never started";
  }
  return "finished";
}

/// an Eq wait whose value came and went.
bool Explanation::missed_value(Diagnostic& d) const {
  for (const Actor* a : blocked_) {
    if (!is_signal(*a) || a->wait.cmp != ir::WaitCmp::kEq) continue;
    const Events* events = events_of(a->wait.buffer->object, a->wait.offset);
    if (!events) continue;
    for (const CellEvent* e : *events) {
      if (e->wait || e->before != a->wait.expected || e->rank == a->dispatch.rank) continue;
      d.id = "X-48";
      d.title = "Eq wait missed its value";
      d.message += "; the Eq wait at " + place_text(a->site()) + " missed its value: rank " +
                   std::to_string(e->rank) + " moved " + signal_of(*a).name + cell_text(a->wait.cell) +
                   " from " + std::to_string(e->before) + " to " + std::to_string(e->after) + " at " +
                   place_text(e->site);
      d.hint = "use Ge";
      return true;
    }
  }
  return false;
}

/// the rank the data comes from told somebody else.
bool Explanation::wrong_direction(Diagnostic& d) const {
  for (const Actor* a : blocked_) {
    if (!is_signal(*a) || !a->collective.name.empty()) continue;
    if (notified(a->wait.buffer->object, a->wait.offset)) continue;
    const int window = signal_of(*a).window;
    const int me = a->dispatch.rank;
    std::set<int> told_me;
    std::map<std::pair<int, int32_t>, int64_t> balance;  // (notifier, slice) of the same cell elsewhere
    std::map<int32_t, int64_t> consumed;
    for (const CellEvent& e : sim_.cell_events) {
      const ObjectRecord& o = sim_.objects[static_cast<size_t>(e.object)];
      if (o.window != window) continue;
      if (!e.wait && o.rank == me) told_me.insert(e.rank);
      if (e.offset != a->wait.offset || o.rank == me) continue;
      if (e.wait) {
        ++consumed[e.object];
      } else if (e.rank != o.rank) {
        ++balance[{e.rank, e.object}];
      }
    }
    for (const auto& [key, count] : balance) {
      const auto [rank, object] = key;
      if (rank == me || told_me.count(rank) || count <= consumed[object]) continue;
      d.id = "X-59";
      d.title = "handshake direction";
      d.message +=
          "; nobody notified " + signal_of(*a).name + cell_text(a->wait.cell) + " of rank " +
          std::to_string(me) + ", while rank " + std::to_string(rank) + " notified that cell of rank " +
          std::to_string(sim_.objects[static_cast<size_t>(object)].rank) + ", which did not wait for it";
      d.hint = "notify the rank that reads from you; wait for the rank you read from";
      return true;
    }
  }
  return false;
}

/// the credit went to another row.
bool Explanation::row_mismatch(Diagnostic& d) const {
  for (const Actor* a : blocked_) {
    if (!is_signal(*a) || !a->collective.name.empty()) continue;
    const int32_t object = a->wait.buffer->object;
    if (notified(object, a->wait.offset)) continue;
    std::string cells;
    int rank = -1;
    for (auto it = by_cell_.lower_bound({object, 0}); it != by_cell_.end() && it->first.first == object;
         ++it) {
      const bool waited =
          std::any_of(it->second.begin(), it->second.end(), [](const CellEvent* e) { return e->wait; });
      if (waited || it->second.empty()) continue;
      rank = it->second.front()->rank;
      cells += (cells.empty() ? "" : ", ") + sim_.cell_text(object, it->first.second) + " by rank " +
               std::to_string(rank);
    }
    if (cells.empty()) continue;
    d.id = "X-47";
    d.title = "row mismatch";
    d.message += "; rank " + std::to_string(a->dispatch.rank) + " waits for " + signal_of(*a).name +
                 cell_text(a->wait.cell) + ", which nobody notified; other cells of its slice were: " + cells;
    d.hint = "notify and wait must agree: [me, 0] at the peer, [src, 0] at home";
    return true;
  }
  return false;
}

/// some ranks are in a collective that others never entered.
bool Explanation::absent_from_collective(Diagnostic& d) const {
  std::set<int> ordered;  // windows that are X-62's
  for (const Actor* a : blocked_) {
    if (a->collective.name.empty() || ordered.count(a->collective.window)) continue;
    const auto it = sim_.signal_uses.find(a->collective.window);
    if (it == sim_.signal_uses.end()) continue;
    std::string present;
    std::string absent;
    bool all_held = true;  // a dispatch that was never started neither finished nor went elsewhere: X-62
    for (const int rank : sim_.domain_of_window(a->collective.window).members) {
      const bool in = it->second.entered[static_cast<size_t>(rank)] > a->collective.index;
      std::string& list = in ? present : absent;
      list += (list.empty() ? "" : ", ") + std::to_string(rank) + (in ? "" : " (" + where_is(rank) + ")");
      all_held &= in || std::any_of(sim_.steps.begin(), sim_.steps.end(), [&](const auto& step) {
                    return step->rank == rank && held(*step, a->collective.window);
                  });
    }
    if (absent.empty()) continue;
    if (all_held) {
      ordered.insert(a->collective.window);
      continue;
    }
    d.id = "X-50";
    d.title = "collective entered by some ranks only";
    d.message += "; " + a->collective.name + " at " + place_text(a->site()) + " was entered by ranks " +
                 present + " but not by ranks " + absent;
    d.hint = "every rank must call it";
    return true;
  }
  return false;
}

bool Explanation::uses_window(const std::vector<ArgValue>& args, int window) const {
  return std::any_of(args.begin(), args.end(), [&](const ArgValue& a) {
    if (!a.is_view || a.view.empty()) return false;
    if (a.view.buffer->object <= -2) return -2 - a.view.buffer->object == window;
    return a.view.buffer->object >= 0 && sim_.object_of(a.view).window == window;
  });
}

const HostStep::Pred* Explanation::held(const HostStep& step, int window) const {
  if (step.callback || step.state != HostStep::State::kPending || !uses_window(step.args, window))
    return nullptr;
  for (const auto& p : step.preds) {
    if (!p.reason.empty() && sim_.steps[static_cast<size_t>(p.step)]->state != HostStep::State::kDone)
      return &p;
  }
  return nullptr;
}

/// what would raise the cell is ordered after what waits for it.
bool Explanation::held_by_order(Diagnostic& d) const {
  for (const Actor* a : blocked_) {
    if (!is_signal(*a)) continue;
    const int window = signal_of(*a).window;
    for (const auto& step : sim_.steps) {
      const HostStep::Pred* order = held(*step, window);
      if (!order) continue;
      d.id = "X-62";
      d.title = "dispatch ordered after the one that waits for it";
      const HostStep& pred = *sim_.steps[static_cast<size_t>(order->step)];
      d.message += "; the dispatch for rank " + std::to_string(step->rank) + " at " + place_text(step->site) +
                   " was never started: it is ordered after the dispatch for rank " +
                   std::to_string(pred.rank) + " at " + place_text(pred.site) +
                   " by overlapping regions of " + order->reason + ", and that dispatch waits for it";
      d.hint = "give each rank its own slice";
      return true;
    }
    if (!a->task) continue;
    for (const auto& [handle, task] : a->dispatch.tasks) {
      if (task->completed || task->pending == 0 || !task->fn || !uses_window(task->args, window)) continue;
      if (!notifies(sim_.program, *task->fn)) continue;
      if (std::find(task->predecessors.begin(), task->predecessors.end(), a->task) ==
          task->predecessors.end())
        continue;
      d.id = "X-62";
      d.title = "task ordered after the one that waits for it";
      d.message += "; task " + std::to_string(task->number) + " '" + task->fn->name + "' submitted at " +
                   place_text(task->site) + " was never started: an automatic edge on window '" +
                   sim_.windows[static_cast<size_t>(window)].name + "' orders it after task " +
                   std::to_string(a->task->number) + " '" + a->task->fn->name + "', which waits for it";
      d.hint = "put publisher and waiter in one pl.manual_scope()";
      return true;
    }
  }
  return false;
}

/// 05 H-141.
bool Explanation::flow_control(Diagnostic& d) const {
  for (const Actor* a : blocked_) {
    if (a->wait.kind != WaitState::Kind::kRing && a->wait.kind != WaitState::Kind::kHeap) continue;
    d.id = "H-141";
    d.title = "flow control";
    const Task* oldest = nullptr;
    for (const auto& [handle, task] : a->dispatch.tasks) {
      if (!oldest || task->number < oldest->number) oldest = task.get();
    }
    d.message +=
        "; flow control: rank " + std::to_string(a->dispatch.rank) + " cannot submit, " + a->wait.detail;
    if (oldest) {
      d.message += "; oldest unconsumed task " + std::to_string(oldest->number) + " '" +
                   (oldest->fn ? oldest->fn->name : std::string("task_dummy")) + "' from " +
                   place_text(oldest->site);
      for (const Actor* b : blocked_) {
        if (b->task == oldest) d.message += " is blocked at " + place_text(b->site());
      }
    }
    d.hint = "raise the ring size, or end scopes earlier";
    return true;
  }
  return false;
}

/// waits hold the cores that a ready task needs.
bool Explanation::cores_held(Diagnostic& d) const {
  for (int rank = 0; rank < sim_.ranks; ++rank) {
    const Device& device = *sim_.devices[static_cast<size_t>(rank)];
    for (const auto& queue : device.ready) {
      if (queue.empty()) continue;
      int64_t holders = 0;
      for (const Actor* a : blocked_) holders += a->dispatch.rank == rank && is_signal(*a) ? 1 : 0;
      if (holders == 0) continue;
      const Task& task = *queue.front();
      d.id = "X-49";
      d.title = "waits hold every core";
      d.message += "; on " + sim_.rank_text(rank) + " " + std::to_string(holders) +
                   " blocked wait(s) hold the cores that the ready task " + std::to_string(task.number) +
                   " '" + task.fn->name + "' (" + std::to_string(task.blocks - task.started) +
                   " block(s), submitted at " + place_text(task.site) + ") needs";
      d.hint = "notify before waiting; order the wait after its producers (deps), or use defer_wait";
      return true;
    }
  }
  return false;
}

void Explanation::describe_waits(Diagnostic& d) const {
  constexpr size_t kShown = 16;
  size_t shown = 0;
  for (const DiagnosticWait& w : d.waits) {
    if (++shown > kShown) {
      d.message += "\n  and " + std::to_string(d.waits.size() - kShown) + " more";
      break;
    }
    std::string line = sim_.rank_text(w.rank);
    if (!w.kernel.empty()) line += ", '" + w.kernel + "'";
    if (w.block >= 0) line += ", block " + std::to_string(w.block) + ", " + w.core;
    if (w.lane >= 0) line += ", lane " + std::to_string(w.lane);
    line += " at " + w.span.file_line() + ": ";
    if (!w.comparison.empty()) {
      line += "waits for " + w.object + cell_text(w.cell) + " " + w.comparison + " " +
              std::to_string(w.needed) + ", which is " + std::to_string(w.seen);
    } else {
      line += w.object;
    }
    d.message += "\n  " + line;
    for (const std::string& r : w.raisers) d.message += "\n    " + r;
  }
  std::string finished;
  for (int r = 0; r < sim_.ranks && r < 64; ++r) {
    if (where_is(r) == "finished") finished += (finished.empty() ? "" : ", ") + std::to_string(r);
  }
  if (!finished.empty()) d.message += "\n  finished: rank " + finished;
}

Diagnostic Explanation::make() {
  Diagnostic d;
  d.cls = ErrorClass::kDeadlockError;
  sim_.add_waits(d);
  const bool signals = std::any_of(d.waits.begin(), d.waits.end(),
                                   [](const DiagnosticWait& w) { return !w.comparison.empty(); });
  d.id = signals ? "X-46" : "L-176";
  d.title = "deadlock";
  d.message =
      "deadlock: nothing can run any more and " + std::to_string(d.waits.size()) + " wait(s) are pending";
  d.hint = signals ? "every wait needs a notify that can still come: check loop bounds, peers and cells"
                   : "every wait needs somebody who can still end it";
  if (!d.waits.empty()) {
    const DiagnosticWait& w = d.waits.front();
    d.span = w.span;
    d.rank = w.rank;
    d.core = w.core;
    d.kernel = w.kernel;
    d.block = w.block;
    d.lane = w.lane;
  }
  // Most specific first.
  missed_value(d) || wrong_direction(d) || row_mismatch(d) || absent_from_collective(d) || held_by_order(d) ||
      flow_control(d) || cores_held(d);
  describe_waits(d);
  return d;
}

}  // namespace

std::vector<Actor*> Simulation::open_actors() const {
  std::vector<Actor*> out;
  for (const auto& step : steps) {
    if (!step->dispatch) continue;
    std::vector<Actor*> all;
    if (step->dispatch->orch) all.push_back(step->dispatch->orch.get());
    for (const auto& [handle, task] : step->dispatch->tasks) {
      for (const auto& block : task->running) all.push_back(block->root.get());
    }
    for (size_t i = 0; i < all.size(); ++i) {
      for (const auto& kid : all[i]->kids) all.push_back(kid.get());
    }
    for (Actor* a : all) {
      if (a->state != Actor::State::kDone) out.push_back(a);
    }
  }
  std::sort(out.begin(), out.end(), [](const Actor* a, const Actor* b) { return a->key < b->key; });
  return out;
}

std::vector<Actor*> Simulation::blocked_actors() const {
  std::vector<Actor*> out;
  for (Actor* a : open_actors()) {
    if (a->state == Actor::State::kBlocked && a->wait.kind != WaitState::Kind::kChildren) out.push_back(a);
  }
  return out;
}

void Simulation::add_waits(Diagnostic& d) {
  constexpr size_t kHistory = 6;
  constexpr size_t kExplained = 32;  // cells whose history is looked up
  const auto tell_history = [&](DiagnosticWait& w, int32_t object, int64_t offset) {
    std::vector<const CellEvent*> history;
    for (const CellEvent& e : cell_events) {
      if (!e.wait && e.object == object && e.offset == offset) history.push_back(&e);
    }
    if (history.empty()) {
      w.raisers.push_back("nobody has notified this cell");
      return;
    }
    std::string line = "history of the cell:";
    const size_t from = history.size() > kHistory ? history.size() - kHistory : 0;
    for (size_t i = from; i < history.size(); ++i) {
      line += (i > from ? "," : "") + std::string(" rank ") + std::to_string(history[i]->rank) + " at " +
              place_text(history[i]->site) + " (round " + std::to_string(history[i]->round) + ") -> " +
              std::to_string(history[i]->after);
    }
    w.raisers.push_back(std::move(line));
  };
  for (Actor* a : blocked_actors()) {
    const check::ActorInfo info = a->info();
    DiagnosticWait w;
    w.rank = info.rank;
    w.core = info.core;
    w.kernel = info.kernel ? info.kernel->name : std::string();
    w.block = info.block;
    w.lane = info.lane;
    w.span = a->span();
    if (a->wait.kind != WaitState::Kind::kSignal) {
      w.object = a->wait.detail;
      if (a->wait.kind == WaitState::Kind::kTasks) {
        w.object = "waits for the tasks that use " + a->wait.name;
        for (const int64_t handle : a->wait.tasks) {
          const auto it = a->dispatch.tasks.find(handle);
          if (it == a->dispatch.tasks.end()) continue;
          w.raisers.push_back("task " + std::to_string(it->second->number) + " '" +
                              (it->second->fn ? it->second->fn->name : std::string("task_dummy")) +
                              "' is unfinished");
        }
      }
      d.waits.push_back(std::move(w));
      continue;
    }
    const ObjectRecord& object = objects[static_cast<size_t>(a->wait.buffer->object)];
    w.object = object.name;
    w.cell = a->wait.cell;
    const int32_t seen = Slice::of(a->wait.buffer.get()).load(a->wait.offset);
    w.seen = seen;
    w.needed = a->wait.expected;
    w.comparison = a->wait.cmp == ir::WaitCmp::kGe ? ">=" : "==";
    if (d.waits.size() >= kExplained) {
      d.waits.push_back(std::move(w));
      continue;
    }
    tell_history(w, a->wait.buffer->object, a->wait.offset);
    d.waits.push_back(std::move(w));
  }
  // Deferred conditions hold no core: nobody is blocked in them.
  for (const auto& step : steps) {
    if (!step->dispatch) continue;
    std::vector<const Task*> waiters;
    for (const auto& [handle, task] : step->dispatch->tasks) {
      if (task->open_conditions > 0) waiters.push_back(task.get());
    }
    std::sort(waiters.begin(), waiters.end(),
              [](const Task* a, const Task* b) { return a->number < b->number; });
    for (const Task* task : waiters) {
      for (const Condition& c : task->conditions) {
        if (c.satisfied || !c.buffer) continue;
        DiagnosticWait w;
        w.rank = step->dispatch->rank;
        w.kernel = task->fn ? task->fn->name : std::string();
        if (c.site) w.span = c.site->span;
        w.object = objects[static_cast<size_t>(c.buffer->object)].name;
        w.cell = c.cell;
        w.seen = Slice::of(c.buffer.get()).load(c.offset);
        w.needed = c.expected;
        w.comparison = ">=";
        if (d.waits.size() < kExplained) tell_history(w, c.buffer->object, c.offset);
        d.waits.push_back(std::move(w));
      }
    }
  }
  // Who could still raise a cell: the members of its domain, unless they have finished.
  if (d.waits.size() > 16) return;
  for (DiagnosticWait& w : d.waits) {
    if (w.comparison.empty()) continue;
    for (const WindowBuffer& b : windows) {
      if (b.name != w.object || b.domain < 0) continue;
      std::string line = "could be raised by:";
      size_t n = 0;
      for (const int rank : domains[static_cast<size_t>(b.domain)].members) {
        if (rank == w.rank || ++n > 8) continue;
        std::string state = "finished";
        for (const auto& step : steps) {
          if (!step->callback && step->rank == rank && step->state != HostStep::State::kDone) {
            state = step->dispatch ? "not blocked" : "not started";
          }
        }
        for (const DiagnosticWait& other : d.waits) {
          if (other.rank == rank) state = "blocked at " + other.span.file_line();
        }
        line += (n > 1 ? ", rank " : " rank ") + std::to_string(rank) + " (" + state + ")";
      }
      w.raisers.push_back(std::move(line));
    }
  }
}

void Simulation::deadlock() {
  checker->finish(false);  // a report that was held back for the end comes first
  Explanation explanation(*this);
  Diagnostic d = explanation.make();
  d.replay = policy.token();
  throw Failure(std::move(d));
}

}  // namespace pypto::machine
