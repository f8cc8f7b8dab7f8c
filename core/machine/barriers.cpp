// SPDX-License-Identifier: Apache-2.0
// syncall (01 L-169) and cube/vector events (02 O-2303).
#include <algorithm>

#include "core/machine/machine_ops.h"
#include "core/machine/simulation.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using vm::ExecStatus;

/// Arrivals are weighed so that every way of running a block adds up to the same: a whole block, its two
/// lanes, or the members of its group. One participant of 02 O-2301 weighs `kUnit`.
constexpr int64_t kUnit = 6;

[[noreturn]] void protocol(std::string id, std::string title, std::string message, std::string hint) {
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.id = std::move(id);
  d.title = std::move(title);
  d.message = std::move(message);
  d.hint = std::move(hint);
  throw Failure(std::move(d));
}

int64_t participants_per_block(const std::string& core_type) { return core_type == "mix" ? 3 : 1; }

/// What one actor contributes to a barrier over `core_type`.
int64_t weight(const Actor& actor, const std::string& core_type) {
  const bool split = actor.is_lane();
  const int vector_actors = std::max(1, actor.block->vector_actors);
  if (!split) return participants_per_block(core_type) * kUnit;
  const bool member = actor.fiber->top().end_pc < 0;
  if (core_type == "mix") {
    // Lanes of a split_aiv body stand for their whole block, members of a group each for themselves.
    if (!member) return 3 * kUnit / 2;
    return actor.side == Actor::Side::kCube ? kUnit : 2 * kUnit / vector_actors;
  }
  if (actor.side == Actor::Side::kCube) return kUnit;
  return kUnit / vector_actors;
}

bool concerns(const Actor& actor, const std::string& core_type) {
  if (core_type == "aiv_only") return actor.side != Actor::Side::kCube;
  if (core_type == "aic_only") return actor.side == Actor::Side::kCube || actor.side == Actor::Side::kWhole;
  return true;
}

void check_hard(const Actor& actor, const std::string& core_type) {
  const Task& task = *actor.task;
  const int capacity =
      actor.sim().devices[static_cast<size_t>(actor.dispatch.rank)]->cores.capacity(task.core);
  const bool vector_task = task.core == vm::CoreKind::kVector || task.core == vm::CoreKind::kScalarOnly;
  if ((core_type == "aic_only" || core_type == "mix") && vector_task) {
    protocol("H-55", "hard barrier",
             "syncall with core_type=\"" + core_type + "\" can never complete: '" + task.fn->name +
                 "' launches no cube cores",
             "use core_type=\"aiv_only\", or mode=\"soft\"");
  }
  if (task.blocks != capacity) {
    protocol("H-55", "hard barrier",
             "a hard syncall requires the SPMD launch to fill all " + std::to_string(capacity) +
                 " cores of its kind, '" + task.fn->name + "' was launched with " +
                 std::to_string(task.blocks) + " blocks",
             "launch with the matching available_*_count(), or use mode=\"soft\"");
  }
  if (!task.sync_start) {
    protocol("H-55", "hard barrier",
             "a hard syncall requires the SPMD launch to set sync_start=True ('" + task.fn->name + "')",
             "add sync_start=True, or use mode=\"soft\"");
  }
}

}  // namespace

ExecStatus op_syncall(Actor& actor, vm::OpCall& call) {
  std::string core_type = call.attrs->get_string(AttrKey::k_core_type);
  if (core_type.empty()) core_type = "mix";
  const bool soft = call.attrs->get_string(AttrKey::k_mode) == "soft";
  Task& task = *actor.task;
  if (!concerns(actor, core_type)) return ExecStatus::kDone;
  const bool vector_task = task.core == vm::CoreKind::kVector || task.core == vm::CoreKind::kScalarOnly;
  int64_t expected = task.blocks * participants_per_block(core_type);
  // A purely vector or cube launch has one participant per block, whatever the type says.
  const std::string counted = core_type == "mix" && task.core != vm::CoreKind::kMixed ? "alone" : core_type;
  if (counted == "alone") expected = task.blocks;
  std::string key = core_type;
  if (soft) {
    if (call.has(2)) key += " " + std::to_string(reinterpret_cast<uintptr_t>(call.view(2).data()));
    const int64_t used = call.has(3) ? call.integer(3) : 0;
    if (used > 0) {
      if (used < expected) {
        protocol("O-2301", "soft barrier",
                 "syncall: used_cores is " + std::to_string(used) + " but the launch of '" + task.fn->name +
                     "' has " + std::to_string(expected) + " participants of type \"" + core_type + "\"",
                 "pass the number of participants, or 0 to derive it from the launch");
      }
      expected = used;
    }
  } else {
    check_hard(actor, vector_task && core_type == "mix" ? std::string("mix") : core_type);
  }
  BarrierState& b = task.barriers[key];
  if (actor.barrier_key == key && actor.barrier_passed) {
    actor.barrier_passed = false;
    actor.barrier_key.clear();
    if (actor.clock) actor.clock->waited(b.released_at, "syncall");
    actor.sim().checker->acquire(actor.id, b.released);
    return ExecStatus::kDone;
  }
  if (soft && b.generation == 0 && b.arrived == 0 && call.has(2)) {
    const vm::View& ws = call.view(2);
    for (int64_t i = 0; i < 16 && i < ws.elements(); ++i) {
      if (ws.as<int32_t>()[i] != 0) {
        protocol("O-2301", "soft barrier",
                 "syncall: the gm_workspace '" + call.operand_name(2) +
                     "' must be zero before its first use, element " + std::to_string(i) + " is " +
                     std::to_string(ws.as<int32_t>()[i]),
                 "zero the workspace, and use it for nothing else");
      }
    }
  }
  if (!b.site) b.site = actor.site();
  b.arrived += counted == "alone" ? (actor.is_lane() ? kUnit / 2 : kUnit) : weight(actor, core_type);
  if (actor.sim().checking) b.clocks.push_back(actor.sim().checker->release(actor.id));
  if (actor.clock) b.latest = std::max(b.latest, actor.clock->drain());
  if (b.arrived >= expected * kUnit) {
    b.released = actor.sim().checker->join(b.clocks);
    b.clocks.clear();
    b.arrived = 0;
    ++b.generation;
    if (actor.clock) {
      const trace::Params& p = actor.sim().timing->params();
      b.released_at =
          b.latest + (soft ? p.ns(trace::Param::k_syncall_soft) +
                                 static_cast<double>(expected) * p.ns(trace::Param::k_syncall_soft_each)
                           : p.ns(trace::Param::k_syncall_hard));
      actor.clock->waited(b.released_at, "syncall");
    }
    for (Actor* other : b.waiting) {
      other->barrier_passed = true;
      actor.sim().wake(*other);
    }
    b.waiting.clear();
    actor.sim().checker->acquire(actor.id, b.released);
    return ExecStatus::kDone;
  }
  actor.barrier_key = key;
  actor.barrier_passed = false;
  b.waiting.push_back(&actor);
  WaitState w;
  w.kind = WaitState::Kind::kBarrier;
  w.name = key;
  w.detail = "syncall(core_type=\"" + core_type + "\", mode=\"" + (soft ? "soft" : "hard") +
             "\"): " + std::to_string(b.arrived / kUnit) + " of " + std::to_string(expected) +
             " participants have arrived";
  actor.sim().block(actor, std::move(w));
  return ExecStatus::kBlocked;
}

namespace {

int64_t event_id(vm::OpCall& call) {
  const int64_t id =
      call.has_attr(AttrKey::k_event_id) ? call.attr_int(AttrKey::k_event_id) : call.integer(0);
  if (id < 0 || id > 13) {
    protocol("H-54", "event id",
             "event id " + std::to_string(id) + " is outside 0..13 (14 and 15 are reserved)",
             "use another event id");
  }
  return id;
}

/// `core_type` pins an operation to one side of a mixed kernel; the other side skips it.
bool skipped(const Actor& actor, const vm::OpCall& call) {
  const std::string type = call.attrs->get_string(AttrKey::k_core_type);
  if (type == "aic") return actor.side == Actor::Side::kLane0 || actor.side == Actor::Side::kLane1;
  if (type == "aiv") return actor.side == Actor::Side::kCube;
  return false;
}

void wake_event_waiters(Actor& actor) {
  Block& block = *actor.block;
  std::vector<Actor*> all{block.root.get()};
  for (size_t i = 0; i < all.size(); ++i) {
    for (const auto& kid : all[i]->kids) all.push_back(kid.get());
  }
  for (Actor* a : all) {
    if (a->wait.kind == WaitState::Kind::kEvent) actor.sim().wake(*a);
  }
}

/// Takes what one wait of the cube needs of the lanes' events: one, or one of each lane where they are set
/// together.
bool take_of_lanes(Events& e) {
  int64_t* from = e.from_lane;
  if (e.both_lanes) {
    if (from[0] <= 0 || from[1] <= 0) return false;
    --from[0], --from[1];
    return true;
  }
  if (from[0] <= 0 && from[1] <= 0) return false;
  --from[from[0] > 0 ? 0 : 1];
  return true;
}

}  // namespace

ExecStatus op_sync_set(Actor& actor, vm::OpCall& call) {
  const int64_t id = event_id(call);
  if (skipped(actor, call)) return ExecStatus::kDone;
  Events& e = actor.block->events[static_cast<int>(id)];
  const auto mode = call.attr_int(AttrKey::k_ffts_mode, 0);
  switch (actor.side) {
    case Actor::Side::kWhole:
      ++e.whole;
      [[fallthrough]];  // lanes that run later may wait for it
    case Actor::Side::kCube:
      ++e.to_lane[0];
      ++e.to_lane[1];
      break;
    case Actor::Side::kLane0:
    case Actor::Side::kLane1:
      ++e.from_lane[actor.side == Actor::Side::kLane1 ? 1 : 0];
      e.both_lanes = mode == 2;
      break;
  }
  if (actor.sim().checking) {
    const check::Clock both[2] = {e.clock, actor.sim().checker->release(actor.id)};
    e.clock = actor.sim().checker->join(both);
  }
  if (actor.clock)
    e.at = actor.clock->drain() + actor.sim().timing->params().ns(trace::Param::k_xcore_signal);
  wake_event_waiters(actor);
  return ExecStatus::kDone;
}

ExecStatus op_sync_wait(Actor& actor, vm::OpCall& call) {
  const int64_t id = event_id(call);
  if (skipped(actor, call)) return ExecStatus::kDone;
  Events& e = actor.block->events[static_cast<int>(id)];
  bool ok = false;
  switch (actor.side) {
    case Actor::Side::kWhole:
      if (e.whole > 0) {
        ok = true;
        --e.whole;
      } else {
        ok = take_of_lanes(e);
      }
      break;
    case Actor::Side::kCube:
      ok = take_of_lanes(e);
      break;
    case Actor::Side::kLane0:
    case Actor::Side::kLane1: {
      int64_t& to = e.to_lane[actor.side == Actor::Side::kLane1 ? 1 : 0];
      ok = to > 0;
      if (ok) --to;
      break;
    }
  }
  if (ok) {
    if (actor.clock) actor.clock->waited(e.at, "sync_wait");
    actor.sim().checker->acquire(actor.id, e.clock);
    return ExecStatus::kDone;
  }
  WaitState w;
  w.kind = WaitState::Kind::kEvent;
  w.detail = "sync_wait of event " + std::to_string(id) + ", which nobody has set";
  actor.sim().block(actor, std::move(w));
  return ExecStatus::kBlocked;
}

}  // namespace pypto::machine
