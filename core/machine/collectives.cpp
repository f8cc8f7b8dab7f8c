// SPDX-License-Identifier: Apache-2.0
// Marks of lowered collectives: counters (03 K-1), and whether all ranks make the same calls.
#include <algorithm>
#include <cstring>

#include "core/machine/machine_ops.h"
#include "core/machine/simulation.h"
#include "core/vm/ops/region.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using vm::ExecStatus;

const char* op_text(int64_t op) {
  static constexpr const char* kNames[] = {"Sum", "Max", "Min", "Prod"};
  return op >= 0 && op < 4 ? kNames[op] : "?";
}

/// Positions of the operands of a mark.
constexpr int kTarget = 5, kInput = 6, kSendCounts = 7, kRecvCounts = 8;
constexpr int kData[] = {kTarget, kInput, kSendCounts, kRecvCounts};
constexpr const char* kDataNames[] = {"target", "input", "send_counts", "recv_counts"};

bool is_ring(const vm::OpCall& call) {
  return call.attrs->get_string(AttrKey::k_name) == "allreduce" && call.attr_int(AttrKey::k_root) != 0;
}

/// Dtypes, shapes and windows of the data operands: what must be equal on all ranks.
void describe_operands(const Simulation& sim, const vm::OpCall& call, SignalUse::Call* mine) {
  for (int i = 0; i < 4; ++i) {
    if (!call.has(kData[i])) continue;
    const vm::View& v = call.view(kData[i]);
    const std::string name = std::string(kDataNames[i]) + " ";
    const char* comma = mine->dtype.empty() ? "" : ", ";
    mine->dtype += comma + name + std::string(dtype_text(v.dtype));
    mine->shape += comma + name + vm::list_text(vm::shape_of(v).span());
    if (!v.fully_valid) mine->shape += " valid " + vm::list_text(vm::valid_of(v).span());
    // Plain tensors are every rank's own: only windows can be the same or others.
    const bool window = !v.empty() && v.buffer->kind == vm::BufferKind::kWindow;
    mine->operands += comma + name + (window ? "'" + sim.object_of(v).name + "'" : std::string("plain"));
    // What peers read or write they address by their own part of it: all ranks name the same one.
    if (window && v.offset != 0 && (kData[i] == kTarget || kData[i] == kRecvCounts))
      mine->operands += " from byte " + std::to_string(v.offset);
  }
}

/// Compares this rank's call with the first rank's call of the same number on the signal.
void check_same_call(const SignalUse::Call& first, const SignalUse::Call& mine, const std::string& signal,
                     int number) {
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
  } else if (first.dtype != mine.dtype) {
    field = "dtype";
    a = first.dtype;
    b = mine.dtype;
  } else if (first.shape != mine.shape) {
    field = "shape";
    a = first.shape;
    b = mine.shape;
  } else if (first.operands != mine.operands) {
    field = "operand buffers";
    a = first.operands;
    b = mine.operands;
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
  throw Failure(std::move(d));
}

// ------------------------------------------------------------------ extents that are no constants (03 C-9)

[[noreturn]] void wrong_extent(const vm::OpCall& call, const std::string& operand, const std::string& name,
                               const vm::View& v, const std::string& needed, int64_t ranks,
                               const char* hint) {
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.id = "X-30";
  d.title = "operand does not fit the domain";
  d.message = call.attrs->get_string(AttrKey::k_name) + (is_ring(call) ? ", mode=\"ring\"" : "") + ": " +
              operand + (name.empty() ? "" : " '" + name + "'") + " must have shape " + needed + " for " +
              std::to_string(ranks) + " ranks, got " + vm::list_text(vm::shape_of(v).span());
  d.hint = hint;
  throw Failure(std::move(d));
}

/// Extents that the compiler could not compare with the number of ranks.
void check_extents(const vm::OpCall& call, int64_t ranks) {
  const std::string kind = call.attrs->get_string(AttrKey::k_name);
  const vm::View& signal = call.view(0);
  const std::string name = call.operand_name(0);
  const std::string p = std::to_string(ranks);
  if (is_ring(call)) {
    // A row of cells per step, a column per rank (C-22).
    if (ranks > 1 && (signal.rank != 2 || signal.shape[0] < 2 * (ranks - 1) || signal.shape[1] != ranks)) {
      wrong_extent(call, "signal", name, signal,
                   "[" + std::to_string(2 * (ranks - 1)) + ", " + p + "] or more rows", ranks,
                   "allocate it as [2 * (pld.world_size() - 1), pld.world_size()]");
    }
  } else if (signal.shape[0] < ranks || (kind == "all_to_all_v" && signal.shape[0] != ranks)) {
    wrong_extent(call, "signal", name, signal, "[" + p + ", 1]", ranks,
                 "allocate it as [pld.world_size(), 1]");
  }
  if (!call.has(kTarget)) return;
  const vm::View& target = call.view(kTarget);
  if (!target.packed()) {
    Diagnostic d;
    d.cls = ErrorClass::kProtocolError;
    d.id = "X-30";
    d.title = "target with gaps";
    d.message = kind + ": requires a packed source, and target '" + call.operand_name(kTarget) +
                "' is a strided part of a window, of shape " + vm::list_text(vm::shape_of(target).span());
    d.hint = "copy it into a packed window first";
    throw Failure(std::move(d));
  }
  const bool by_rank = kind == "allgather" || kind == "reduce_scatter" || kind == "all_to_all";
  if (by_rank && target.shape[0] < ranks) {
    wrong_extent(call, "target", call.operand_name(kTarget), target, "[" + p + ", S]", ranks,
                 "give it a row per rank: [pld.world_size(), S]");
  }
  if (kind == "all_to_all" && call.view(kInput).shape[0] < ranks) {
    wrong_extent(call, "input", call.operand_name(kInput), call.view(kInput), "[" + p + ", S]", ranks,
                 "give it a row per rank");
  }
  if (kind == "all_to_all_v" && target.shape[0] % ranks != 0) {
    wrong_extent(call, "target", call.operand_name(kTarget), target, "[" + p + " * M, S]", ranks,
                 "give it a block of M rows per rank");
  }
}

// ------------------------------------------------------------------ counts of all_to_all_v

int32_t count_at(const vm::View& counts, int64_t i) {
  Simulation::make_plain(counts);
  int32_t value = 0;
  std::memcpy(&value, counts.data() + i * counts.stride[0] * 4, sizeof(value));
  return value;
}

/// Counts to send that no block can hold.
void check_counts(Actor& actor, const vm::OpCall& call, const WindowPlace& place) {
  const vm::View& counts = call.view(kSendCounts);
  const auto ranks = static_cast<int64_t>(place.domain->members.size());
  const int64_t rows = call.view(kTarget).shape[0] / ranks;
  for (int64_t q = 0; q < ranks && q < counts.shape[0]; ++q) {
    const int32_t n = count_at(counts, q);
    if (n >= 0 && n <= rows) continue;
    Diagnostic d;
    d.cls = ErrorClass::kProtocolError;
    d.id = "X-66";
    d.title = n < 0 ? "negative count" : "count above the size of a block";
    d.message = "all_to_all_v: rank " + std::to_string(place.me) + " wants to send " + std::to_string(n) +
                " rows to rank " + std::to_string(q) + ", a block holds M = " + std::to_string(rows) +
                (n < 0 ? std::string() : "; the count is clamped to " + std::to_string(rows));
    d.hint = "size M for the largest block";
    if (n < 0) throw Failure(std::move(d));
    d.severity = actor.sim().options.checks == Checks::kStrict ? Severity::kError : Severity::kWarning;
    d.span = actor.span();
    actor.sim().annotate(d, actor);
    actor.sim().report(std::move(d));
  }
}

/// Rows past what each source sent: nobody may read them before somebody writes them.
void note_unspecified(Actor& actor, const vm::OpCall& call) {
  const vm::View& target = call.view(kTarget);
  const vm::View& counts = call.view(kRecvCounts);
  const WindowPlace place = window_place(actor, target);
  const auto ranks = static_cast<int64_t>(place.domain->members.size());
  const int64_t rows = target.shape[0] / ranks;
  actor.sim().apply_pending_in(actor, counts);  // its own count, when nothing was waited for
  auto& list = actor.sim().object_of(target).unspecified;
  const check::Box whole = check::box_of(target);
  std::erase_if(list, [&](const auto& u) { return check::overlap(whole, u.box); });
  for (int64_t q = 0; q < ranks; ++q) {
    const int32_t received = count_at(counts, q);
    for (int64_t row = std::max(received, 0); row < rows; ++row) {
      vm::View v = target;
      v.offset += (q * rows + row) * v.stride[0] * dtype_bytes(v.dtype);
      v.shape[0] = v.valid[0] = 1;
      list.push_back({check::box_of(v), static_cast<int>(q), row, received});
    }
  }
}

/// Several blocks would each post credits (03 C-10); on the host rail each block has a lane of the signal
/// (C-61).
void check_blocks(Actor& actor, const vm::OpCall& call) {
  const int64_t blocks = actor.task ? actor.task->blocks : 1;
  if (blocks <= 1 || actor.sim().options.checks == Checks::kOff) return;
  const vm::View& signal = call.view(0);
  const std::string name = call.attrs->get_string(AttrKey::k_name);
  if (name == "allreduce" && !is_ring(call) && signal.rank == 2 && signal.shape[1] >= blocks) return;
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.id = "X-51";
  d.title = "collective in several blocks";
  d.message = name + " is called by a task of " + std::to_string(blocks) +
              " blocks, which would each post credits on signal '" + call.operand_name(0) + "'";
  d.hint = "call it from a single-block kernel";
  throw Failure(std::move(d));
}

void begin(Actor& actor, vm::OpCall& call) {
  Simulation& sim = actor.sim();
  const vm::View& signal = call.view(0);
  check_blocks(actor, call);
  const WindowPlace place = window_place(actor, signal);
  check_extents(call, static_cast<int64_t>(place.domain->members.size()));
  if (call.attrs->get_string(AttrKey::k_name) == "broadcast")
    checked_peer(actor, place, call.attr_int(AttrKey::k_root), call.operand_name(kTarget));
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
  describe_operands(sim, call, &mine);
  mine.rank = actor.dispatch.rank;
  mine.site = actor.site();
  if (static_cast<size_t>(c.index) == use.calls.size()) {
    use.calls.push_back(mine);
  } else if (sim.options.checks != Checks::kOff) {
    check_same_call(use.calls[static_cast<size_t>(c.index)], mine, sim.object_of(signal).name, c.index);
  }
  if (c.name == "all_to_all_v" && sim.options.checks != Checks::kOff) check_counts(actor, call, place);
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
  if (c.name == "all_to_all_v" && sim.options.checks == Checks::kStrict) note_unspecified(actor, call);
  if (actor.block->index == 0) {
    const auto ranks = static_cast<int64_t>(sim.domain_of_window(c.window).members.size());
    const bool ring = is_ring(call);
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
    if (actor.clock) actor.clock->collective(true, actor.collective.name);
  } else if (mode == "end") {
    end(actor, call);
    if (actor.clock) actor.clock->collective(false, {});
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
