// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/machine/machine_ops.h"
#include "core/machine/simulation.h"
#include "core/machine/slice.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using vm::ExecStatus;

constexpr int64_t kMaxConditions = 64;  // 03 O-27 f
constexpr int64_t kMaxWaiters = 64;

int32_t checked_int32(int64_t value, const char* operation, const char* what) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    fail(ErrorClass::kProgramFault, std::string(operation) + ": " + what + " " + std::to_string(value) +
                                        " does not fit the INT32 signal cell");
  }
  return static_cast<int32_t>(value);
}

std::string operand(const vm::OpCall& call, int param, const char* fallback) {
  std::string name = call.operand_name(param);
  return name.empty() ? fallback : name;
}

}  // namespace

std::string index_text(std::span<const int64_t> index) {
  std::string s = "[";
  for (size_t i = 0; i < index.size(); ++i) s += (i ? ", " : "") + std::to_string(index[i]);
  return s + "]";
}

WindowPlace window_place(const Actor& actor, const vm::View& v) {
  Simulation& sim = actor.sim();
  if (v.empty() || v.buffer->kind != vm::BufferKind::kWindow) {
    fail(ErrorClass::kTypeError, "expects a DistributedTensor, got a plain tensor");
  }
  WindowPlace p;
  p.window = sim.object_of(v).window;
  p.domain = &sim.domain_of_window(p.window);
  p.me = p.domain->index_of[static_cast<size_t>(actor.dispatch.rank)];
  return p;
}

int checked_peer(const Actor& actor, const WindowPlace& place, int64_t peer, const std::string& window_name) {
  const auto n = static_cast<int64_t>(place.domain->members.size());
  if (peer >= 0 && peer < n) return static_cast<int>(peer);
  std::string ranks;
  for (size_t i = 0; i < place.domain->members.size() && i < 16; ++i) {
    ranks += (i ? ", " : "") + std::to_string(place.domain->members[i]);
  }
  if (n > 16) ranks += ", ...";
  Diagnostic d;
  d.cls = ErrorClass::kOutOfBoundsError;
  d.id = "X-20";
  d.title = "peer out of range";
  d.message = "peer " + std::to_string(peer) + " is outside [0, " + std::to_string(n) + ") of window '" +
              window_name + "' (domain " + place.domain->name + ", logical ranks " + ranks + ")";
  d.hint = "wrap with % nranks; keep peers domain-relative";
  (void)actor;
  throw Failure(std::move(d));
}

vm::View at_peer(const Actor& actor, const WindowPlace& place, const vm::View& v, int peer) {
  if (peer == place.me) return v;
  vm::View r = v;
  r.snapshot = vm::BufferRef();
  r.buffer = actor.sim().slice(place.window, peer);
  return r;
}

int64_t cell_offset(const vm::View& signal, std::span<const int64_t> offsets, const char* operation,
                    const std::string& name) {
  int64_t at = 0;
  for (int i = 0; i < signal.rank; ++i) {
    const int64_t o = i < static_cast<int>(offsets.size()) ? offsets[static_cast<size_t>(i)] : 0;
    if (o < 0 || o >= signal.shape[i]) {
      Diagnostic d;
      d.cls = ErrorClass::kOutOfBoundsError;
      d.id = "X-54";
      d.title = "cell outside the signal";
      d.message = std::string(operation) + ": cell " + index_text(offsets) + " is outside '" + name +
                  "': dimension " + std::to_string(i) + ", offset " + std::to_string(o) + ", extent " +
                  std::to_string(signal.shape[i]);
      d.hint = "fix the offset";
      throw Failure(std::move(d));
    }
    at += o * signal.stride[i];
  }
  const int64_t byte = signal.offset + at * 4;
  if (byte % 4 != 0) {
    Diagnostic d;
    d.cls = ErrorClass::kProgramFault;
    d.id = "X-55";
    d.title = "misaligned cell";
    d.message = std::string(operation) + ": cell " + index_text(offsets) + " of '" + name + "' is at byte " +
                std::to_string(byte) + " of its slice; a signal cell must be aligned to 4 bytes";
    d.hint = "align the offset";
    throw Failure(std::move(d));
  }
  return byte;
}

ExecStatus op_notify(Actor& actor, vm::OpCall& call) {
  const vm::View& target = call.view(0);
  const std::string name = operand(call, 0, "target");
  const WindowPlace place = window_place(actor, target);
  const int peer = checked_peer(actor, place, call.integer(1), name);
  const auto offsets = call.list(2);
  Simulation& sim = actor.sim();
  Simulation::PendingNotify n;
  n.offset = cell_offset(target, offsets, "notify", name);
  sim.name_cells(target);
  n.value = checked_int32(call.integer(3), "notify", "value");
  n.op = static_cast<ir::NotifyOp>(call.attr_int(AttrKey::k_op));
  n.buffer = sim.slice(place.window, peer);
  n.block = actor.block;
  CommCounters& comm = actor.dispatch.comm;
  ++(peer == place.me ? comm.notify_self : comm.notify_remote);
  if (peer != place.me)
    sim.count_traffic(actor.dispatch.rank, place.domain->members[static_cast<size_t>(peer)], 0);
  n.site = actor.site();
  n.rank = actor.dispatch.rank;
  if (sim.checking) {
    n.who = sim.checker->identity(actor.id);
    n.release = sim.checker->release(actor.id);
    n.iteration = actor.fiber->steps;
    n.sole = peer == place.me && Simulation::is_sole(actor);
  }
  if (actor.clock) n.visible = actor.clock->notify(place.domain->members[static_cast<size_t>(peer)], &n.flow);
  sim.log_notify(std::move(n));
  return ExecStatus::kDone;
}

ExecStatus op_wait(Actor& actor, vm::OpCall& call) {
  const vm::View& signal = call.view(0);
  const std::string name = operand(call, 0, "signal");
  window_place(actor, signal);
  const auto offsets = call.list(1);
  const int64_t offset = cell_offset(signal, offsets, "wait", name);
  const int32_t expected = checked_int32(call.integer(2), "wait", "expected value");
  const auto cmp = static_cast<ir::WaitCmp>(call.attr_int(AttrKey::k_cmp));
  Simulation& sim = actor.sim();
  sim.name_cells(signal);
  const int32_t value = Slice::of(signal.buffer.get()).load(offset);
  if (cmp == ir::WaitCmp::kEq ? value == expected : value >= expected) {
    // Own notifies of the cell happen before the wait, so it observes them (03 M-30): they must be in the
    // cell.
    vm::View cell = signal;
    cell.offset = offset;
    for (int i = 0; i < cell.rank; ++i) cell.shape[i] = cell.valid[i] = 1;
    if (sim.pending_notify_in(actor, cell)) return sim.wait_for_commit(actor);
    ++actor.dispatch.comm.wait;
    if (actor.clock) {
      const Timing::Seen seen = sim.timing->visible(signal.buffer->object, offset, cmp, expected);
      actor.clock->waited(seen.time + sim.timing->params().ns(trace::Param::k_wait_poll), "wait", seen.flow);
    }
    sim.log_wait(signal.buffer->object, offset, actor.dispatch.rank, actor.site());
    if (sim.checking) {
      check::Observe o;
      o.actor = actor.id;
      o.object = signal.buffer->object;
      o.offset = offset;
      o.cmp = cmp;
      o.expected = expected;
      o.seen = value;
      o.site = actor.site();
      o.sole = Simulation::is_sole(actor);
      sim.checker->observe(o);
    }
    return ExecStatus::kDone;
  }
  WaitState& w = actor.wait;  // in place: this happens in every step of every rank
  w.kind = WaitState::Kind::kSignal;
  w.buffer = signal.buffer;
  w.offset = offset;
  w.cmp = cmp;
  w.expected = expected;
  w.cell.assign(offsets.begin(), offsets.end());
  w.name = name;
  sim.watch_cell(signal.buffer.get(), offset, &actor, nullptr);
  return ExecStatus::kBlocked;
}

ExecStatus op_defer_wait(Actor& actor, vm::OpCall& call) {
  const vm::View& signal = call.view(0);
  const std::string name = operand(call, 0, "signal");
  window_place(actor, signal);
  const auto offsets = call.list(1);
  Task& task = *actor.task;
  auto refuse = [&](const char* clause, const std::string& text) {
    Diagnostic d;
    d.cls = ErrorClass::kProtocolError;
    d.id = "X-63";
    d.title = "defer_wait contract";
    d.message = "defer_wait, clause " + std::string(clause) + ": " + text + " (task " +
                std::to_string(task.number) + " '" + task.fn->name + "')";
    d.hint = std::string("see clause ") + clause + " of the contract of defer_wait";
    throw Failure(std::move(d));
  };
  if (task.blocks > 1 || actor.is_lane())
    refuse("b", "the waiter region must be vector-only and single-block");
  const int64_t expected = call.integer(2);
  if (expected < 0 || expected > std::numeric_limits<int32_t>::max()) {
    refuse("e", "expected value " + std::to_string(expected) + " is outside [0, 2**31 - 1]");
  }
  if (static_cast<int64_t>(task.conditions.size()) >= kMaxConditions)
    refuse("f", "at most 64 conditions per task");
  Simulation& sim = actor.sim();
  sim.name_cells(signal);
  Condition c;
  c.buffer = signal.buffer;
  c.offset = cell_offset(signal, offsets, "defer_wait", name);
  c.expected = static_cast<int32_t>(expected);
  c.cell.assign(offsets.begin(), offsets.end());
  c.name = name;
  c.site = actor.site();
  c.satisfied = Slice::of(signal.buffer.get()).load(c.offset) >= c.expected;
  ++actor.dispatch.comm.wait;
  task.conditions.push_back(c);
  if (task.open_conditions++ == 0 && ++actor.dispatch.waiters > kMaxWaiters) {
    refuse("f", "at most 64 waiter tasks may be pending on one device");
  }
  if (c.satisfied) {
    sim.condition_met(task);
  } else {
    sim.watch_cell(signal.buffer.get(), c.offset, nullptr, &task);
  }
  return ExecStatus::kDone;
}

}  // namespace pypto::machine
