// SPDX-License-Identifier: Apache-2.0
// Marks of lowered collectives: counters (03 K-1), and whether all ranks make the same calls.
#include "core/machine/machine_ops.h"
#include "core/machine/simulation.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using vm::ExecStatus;

const char* op_text(int64_t op) {
  static constexpr const char* kNames[] = {"Sum", "Max", "Min", "Prod"};
  return op >= 0 && op < 4 ? kNames[op] : "?";
}

/// Compares this rank's call with the first rank's call of the same number on the signal.
void check_same_call(Actor& actor, const SignalUse::Call& first, const SignalUse::Call& mine,
                     const std::string& signal, int number) {
  std::string field;
  std::string a;
  std::string b;
  if (first.name != mine.name) {
    field = "kind";
    a = first.name;
    b = mine.name;
  } else if (first.op != mine.op) {
    field = "op";
    a = op_text(first.op);
    b = op_text(mine.op);
  } else if (first.root != mine.root) {
    const bool mode = first.name == "allreduce";
    field = mode ? "mode" : "root";
    a = mode ? (first.root ? "ring" : "mesh") : std::to_string(first.root);
    b = mode ? (mine.root ? "ring" : "mesh") : std::to_string(mine.root);
  } else {
    return;
  }
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.id = "X-51";
  d.title = "different collectives meet";
  d.message = "collective number " + std::to_string(number + 1) + " on signal '" + signal + "' differs in " +
              field + ": rank " + std::to_string(first.rank) + " has " + a +
              (first.site ? " at " + first.site->span.file_line() : std::string()) + ", rank " +
              std::to_string(mine.rank) + " has " + b +
              (mine.site ? " at " + mine.site->span.file_line() : std::string());
  d.hint = "same arguments on all ranks";
  (void)actor;
  throw Failure(std::move(d));
}

void begin(Actor& actor, vm::OpCall& call) {
  Simulation& sim = actor.sim();
  const vm::View& signal = call.view(0);
  const WindowPlace place = window_place(actor, signal);
  CollectiveState& c = actor.collective;
  c.name = call.attrs->get_string(AttrKey::k_name);
  c.window = place.window;
  c.barriers = 0;
  // Blocks of one call use lanes of one signal: the first speaks for all.
  if (actor.block->index != 0) return;
  ++actor.dispatch.comm.collectives[c.name];
  SignalUse& use = sim.signal_uses[place.window];
  use.entered.resize(static_cast<size_t>(sim.ranks), 0);
  c.index = use.entered[static_cast<size_t>(actor.dispatch.rank)]++;
  SignalUse::Call mine;
  mine.name = c.name;
  mine.op = call.attr_int(AttrKey::k_op);
  mine.root = call.attr_int(AttrKey::k_root);
  mine.rank = actor.dispatch.rank;
  mine.site = actor.site();
  if (static_cast<size_t>(c.index) == use.calls.size()) {
    use.calls.push_back(mine);
  } else if (sim.options.checks != Checks::kOff) {
    check_same_call(actor, use.calls[static_cast<size_t>(c.index)], mine, sim.object_of(signal).name,
                    c.index);
  }
  if (sim.checking) {
    check::Entered e;
    e.actor = actor.id;
    e.object = signal.buffer->object;
    e.box = check::box_of(signal);
    e.name = c.name;
    e.site = actor.site();
    sim.checker->enter_collective(e);
  }
}

void end(Actor& actor, vm::OpCall& call) {
  Simulation& sim = actor.sim();
  CollectiveState& c = actor.collective;
  if (actor.block->index == 0) {
    const auto ranks = static_cast<int64_t>(sim.domain_of_window(c.window).members.size());
    const bool ring = c.name == "allreduce" && call.attr_int(AttrKey::k_root) != 0;
    sim.run_report.ranks[static_cast<size_t>(actor.dispatch.rank)].rounds[c.name] += ranks < 2 ? 0
                                                                                     : ring
                                                                                         ? 2 * (ranks - 1) + 1
                                                                                         : c.barriers;
  }
  c = CollectiveState();
}

}  // namespace

ExecStatus op_comm_mark(Actor& actor, vm::OpCall& call) {
  const std::string mode = call.attrs->get_string(AttrKey::k_mode);
  if (mode == "begin") {
    // The own clearing notifies of the collective before count at entry: they must be in the cells.
    if (actor.sim().pending_notify_in(actor, call.view(0))) return actor.sim().wait_for_commit(actor);
    begin(actor, call);
  } else if (mode == "end") {
    end(actor, call);
  } else {
    const WindowPlace place = window_place(actor, call.view(0));
    if (place.domain->members.size() > 1) {
      ++actor.dispatch.comm.barriers;
      ++actor.collective.barriers;
    }
  }
  return ExecStatus::kDone;
}

}  // namespace pypto::machine
