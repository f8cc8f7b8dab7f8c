// SPDX-License-Identifier: Apache-2.0
// Cross-core pipes of hand-written AIC/AIV functions (02 section 21).
#include <algorithm>

#include "core/machine/machine_ops.h"
#include "core/machine/simulation.h"
#include "core/vm/ops/lanes.h"
#include "core/vm/ops/region.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using vm::ExecStatus;
using vm::View;

enum Direction { kC2V = 0, kV2C = 1 };
const char* direction_text(int d) { return d == kC2V ? "cube to vector" : "vector to cube"; }

[[noreturn]] void protocol(std::string title, std::string message, std::string hint) {
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.id = "H-56";
  d.title = std::move(title);
  d.message = std::move(message);
  d.hint = std::move(hint);
  throw Failure(std::move(d));
}

int lane_of(const Actor& actor) { return actor.side == Actor::Side::kLane1 ? 1 : 0; }
int vector_lanes(const Actor& actor) { return std::max(1, actor.block->vector_actors); }

ir::SplitMode mode_of(int64_t split) {
  if (split == 0) return ir::SplitMode::kNone;
  return split == 1 || split == 3 ? ir::SplitMode::kUpDown : ir::SplitMode::kLeftRight;
}

int pipe_id(const vm::OpCall& call) { return static_cast<int>(call.attr_int(AttrKey::k_id, 0)); }

Pipe& pipe_of(Actor& actor, const vm::OpCall& call) {
  const int id = pipe_id(call);
  const auto it = actor.block->pipes.find(id);
  const bool cube = actor.side == Actor::Side::kCube;
  const bool whole = actor.side == Actor::Side::kWhole;
  if (it == actor.block->pipes.end() || (!whole && !it->second.declared[cube ? 0 : 1])) {
    const std::string side = cube ? "aic" : "aiv";
    protocol("pipe not initialised",
             "'" + actor.fiber->frames.front().fn->name + "' uses pipe " + std::to_string(id) +
                 " but has no 'system." + side + "_initialize_pipe' call",
             "initialise the pipe on both sides before its first use");
  }
  return it->second;
}

void wake_pipe_waiters(Actor& actor) {
  std::vector<Actor*> all{actor.block->root.get()};
  for (size_t i = 0; i < all.size(); ++i) {
    for (const auto& kid : all[i]->kids) all.push_back(kid.get());
  }
  for (Actor* a : all) {
    if (a->wait.kind == WaitState::Kind::kPush || a->wait.kind == WaitState::Kind::kPop) actor.sim().wake(*a);
  }
}

ExecStatus wait_for_peer(Actor& actor, WaitState::Kind kind, const Pipe& pipe, int id, int direction,
                         const char* operation) {
  const PipeQueue& q = pipe.queue[direction];
  WaitState w;
  w.kind = kind;
  w.detail = std::string(operation) + " on pipe " + std::to_string(id) + " (" + direction_text(direction) +
             "), " + std::to_string(q.slots.size()) + " of " + std::to_string(pipe.depth[direction]) +
             " slots in use, pushed " + std::to_string(q.pushed[0]) + ", popped " +
             std::to_string(q.popped[0]) + ", freed " + std::to_string(q.freed[0]);
  actor.sim().block(actor, std::move(w));
  return ExecStatus::kBlocked;
}

View box_copy(vm::OpCall& call, const View& tile) { return vm::packed_copy(call, tile, tile.dtype); }

}  // namespace

ExecStatus op_buffer(Actor& actor, vm::OpCall& call) {
  const std::string name = call.attrs->get_string(AttrKey::k_name);
  Block& block = *actor.block;
  if (call.op == ir::OpId::k_reserve_buffer) {
    int64_t base = call.attr_int(AttrKey::k_base, -1);
    if (base < 0) base = (static_cast<int64_t>(block.buffers.size()) + 1) << 20;
    Block::ReservedBuffer r;
    r.base = base;
    r.size = call.has_attr(AttrKey::k_size) ? call.attr_int(AttrKey::k_size)
             : call.has(1)                  ? call.integer(1)
                                            : 0;
    block.buffers[name] = r;
    call.set_result(vm::scalar_of(base));
    return ExecStatus::kDone;
  }
  const auto it = block.buffers.find(name);
  call.set_result(vm::scalar_of(it == block.buffers.end() ? int64_t{-1} : it->second.base));
  return ExecStatus::kDone;
}

ExecStatus op_initialize_pipe(Actor& actor, vm::OpCall& call) {
  const bool cube = call.op == ir::OpId::k_aic_initialize_pipe;
  const int id = pipe_id(call);
  Pipe& pipe = actor.block->pipes[id];
  const int64_t dir_mask = call.attr_int(AttrKey::k_dir_mask);
  const int64_t slot_size = call.attr_int(AttrKey::k_slot_size);
  const int64_t given = call.attr_int(AttrKey::k_slot_num, 0);
  const int slot_num = static_cast<int>(given > 0 ? given : dir_mask == 3 ? 4 : 8);
  const int me = cube ? 0 : 1;
  const vm::FunctionCode* fn = actor.fiber->frames.front().fn;
  const bool known = pipe.declared[0] || pipe.declared[1];
  if (known && (pipe.dir_mask != dir_mask || pipe.slot_size != slot_size || pipe.slot_num != slot_num)) {
    const vm::FunctionCode* other = pipe.by[1 - me] ? pipe.by[1 - me] : pipe.by[me];
    protocol("pipe mismatch",
             "pipe " + std::to_string(id) + ": '" + fn->name + "' declares dir_mask " +
                 std::to_string(dir_mask) + ", slot_size " + std::to_string(slot_size) + ", slot_num " +
                 std::to_string(slot_num) + " but '" + (other ? other->name : std::string("its peer")) +
                 "' declares dir_mask " + std::to_string(pipe.dir_mask) + ", slot_size " +
                 std::to_string(pipe.slot_size) + ", slot_num " + std::to_string(pipe.slot_num),
             "give both sides the same values");
  }
  if (!known) {
    pipe.dir_mask = static_cast<int>(dir_mask);
    pipe.slot_size = slot_size;
    pipe.slot_num = slot_num;
    pipe.depth[0] = pipe.depth[1] = slot_num;
  }
  pipe.declared[me] = true;
  if (actor.side == Actor::Side::kWhole) pipe.declared[0] = pipe.declared[1] = true;
  pipe.by[me] = fn;
  pipe.site[me] = actor.site();
  // The consumer's storage may hold fewer slots than the pipe declares.
  const int direction = cube ? kV2C : kC2V;
  const int param = direction == kC2V ? 0 : 1;
  if ((dir_mask & (direction == kC2V ? 1 : 2)) && call.has(param) && call.is_scalar(param) && slot_size > 0) {
    const int64_t base = call.integer(param);
    for (const auto& [name, r] : actor.block->buffers) {
      if (r.base != base || r.size <= 0) continue;
      pipe.depth[direction] = static_cast<int>(std::clamp<int64_t>(r.size / slot_size, 1, slot_num));
    }
  }
  return ExecStatus::kDone;
}

ExecStatus op_push(Actor& actor, vm::OpCall& call) {
  const int direction = call.op == ir::OpId::k_tpush_to_aiv ? kC2V : kV2C;
  Pipe& pipe = pipe_of(actor, call);
  const int id = pipe_id(call);
  PipeQueue& q = pipe.queue[direction];
  const View& tile = call.view(0);
  const auto split = static_cast<int>(call.attr_int(AttrKey::k_split));
  const char* name = direction == kC2V ? "tpush_to_aiv" : "tpush_to_aic";
  if (!(pipe.dir_mask & (direction == kC2V ? 1 : 2))) {
    protocol("pipe direction",
             std::string(name) + ": pipe " + std::to_string(id) + " was declared with dir_mask " +
                 std::to_string(pipe.dir_mask) + ", which has no " + direction_text(direction) + " queue",
             "declare the direction with dir_mask");
  }
  const int lane = direction == kC2V ? 0 : lane_of(actor);
  const int64_t seq = q.pushed[lane];
  const auto index = static_cast<size_t>(seq - q.first);
  if (index >= q.slots.size()) {
    if (static_cast<int>(q.slots.size()) >= pipe.depth[direction]) {
      return wait_for_peer(actor, WaitState::Kind::kPush, pipe, id, direction, name);
    }
    q.slots.emplace_back();
    q.slots.back().split = split;
    q.slots.back().site = actor.site();
  }
  PipeQueue::Slot& slot = q.slots[index];
  if (slot.split != split) {
    protocol("split code",
             std::string(name) + ": the lanes push with different split codes, " +
                 std::to_string(slot.split) + " and " + std::to_string(split),
             "use one split code for both ends of a transfer");
  }
  slot.half[lane] = box_copy(call, tile);
  slot.pushed[lane] = true;
  slot.clock[lane] = actor.sim().checker->release(actor.id);
  if (actor.clock) {
    const int64_t before = seq - pipe.depth[direction];  // whose slot this one is
    if (before >= 0 && before < static_cast<int64_t>(q.freed_at.size()))
      actor.clock->waited(q.freed_at[static_cast<size_t>(before)], name);
    slot.ready[lane] = actor.clock->push(tile);
  }
  ++q.pushed[lane];
  wake_pipe_waiters(actor);
  return ExecStatus::kDone;
}

namespace {

/// The pushed tile as the cube or one vector lane sees it.
View popped_view(Actor& actor, const PipeQueue::Slot& slot, int direction, int lane, int64_t lane_stride,
                 const vm::Extents& shape) {
  const ir::SplitMode mode = mode_of(slot.split);
  if (direction == kC2V) {
    View v = slot.half[0];
    if (mode != ir::SplitMode::kNone) return vm::boxed_lane(v, mode, lane, lane_stride);
    if (lane == 1) {
      for (int i = 0; i < v.rank; ++i) v.valid[i] = 0;
      v.fully_valid = false;
    }
    return v;
  }
  if (mode == ir::SplitMode::kNone || vector_lanes(actor) == 1) return slot.half[0];
  const int axis = mode == ir::SplitMode::kUpDown ? 0 : 1;
  const bool odd = slot.split >= 3 && shape.rank == 2 && slot.half[0].rank == 2;
  return vm::join_lanes(slot.half[0], slot.half[1], mode, odd ? shape.v[axis] : 0);
}

}  // namespace

ExecStatus op_pop(Actor& actor, vm::OpCall& call) {
  const int direction = call.op == ir::OpId::k_tpop_from_aic ? kC2V : kV2C;
  Pipe& pipe = pipe_of(actor, call);
  const int id = pipe_id(call);
  PipeQueue& q = pipe.queue[direction];
  const char* name = direction == kC2V ? "tpop_from_aic" : "tpop_from_aiv";
  const int lane = direction == kC2V ? lane_of(actor) : 0;
  const auto index = static_cast<size_t>(q.popped[lane] - q.first);
  bool filled = index < q.slots.size() && q.slots[index].pushed[0];
  if (filled && direction == kV2C && vector_lanes(actor) == 2) filled = q.slots[index].pushed[1];
  if (!filled) return wait_for_peer(actor, WaitState::Kind::kPop, pipe, id, direction, name);
  PipeQueue::Slot& slot = q.slots[index];
  const auto split = static_cast<int>(call.attr_int(AttrKey::k_split, 0));
  if (slot.split != split) {
    protocol("split code",
             std::string(name) + " on pipe " + std::to_string(id) + ": popped with split=" +
                 std::to_string(split) + ", pushed with split=" + std::to_string(slot.split) +
                 (slot.site ? " at " + slot.site->span.file_line() : std::string()),
             "use one split code for both ends of a transfer");
  }
  const vm::Extents shape = vm::param_list(call, 0, AttrKey::k_shape);
  View v = popped_view(actor, slot, direction, lane, call.attr_int(AttrKey::k_lane_stride), shape);
  const DType wanted = call.result_dtype();
  if (wanted != DType::kNone && v.dtype != wanted) {
    protocol("pipe element type",
             std::string(name) + " on pipe " + std::to_string(id) + ": expects " +
                 std::string(dtype_text(wanted)) + ", the pushed tile is " + std::string(dtype_text(v.dtype)),
             "push and pop the same element type");
  }
  if (shape.rank > 0 && !std::ranges::equal(shape.span(), vm::shape_of(v).span())) {
    const bool half = direction == kC2V && split != 0 && shape.product() == slot.half[0].elements();
    if (shape.product() != v.elements() && !half) {
      protocol("pipe tile size",
               std::string(name) + " on pipe " + std::to_string(id) + ": expects shape " +
                   vm::list_text(shape.span()) + ", the pushed tile gives " +
                   vm::list_text(vm::shape_of(v).span()),
               "push and pop tiles of equal byte size");
    }
    if (!half && v.fully_valid) {
      View packed = vm::as_packed(call, v, v.dtype);
      packed.set_packed(shape.rank, shape.v);
      v = packed;
    }
  }
  actor.sim().checker->acquire(actor.id, slot.clock[0]);
  if (slot.clock[1]) actor.sim().checker->acquire(actor.id, slot.clock[1]);
  ++slot.pops;
  ++q.popped[lane];
  if (actor.clock) {
    actor.clock->waited(std::max(slot.ready[0], slot.ready[1]), name);
    actor.clock->pop(v);
  }
  call.set_result(std::move(v));
  return ExecStatus::kDone;
}

ExecStatus op_free(Actor& actor, vm::OpCall& call) {
  const int direction = call.op == ir::OpId::k_tfree_to_aic ? kC2V : kV2C;
  Pipe& pipe = pipe_of(actor, call);
  PipeQueue& q = pipe.queue[direction];
  const int lane = direction == kC2V ? lane_of(actor) : 0;
  if (q.freed[lane] >= q.popped[lane]) {
    protocol("free without pop",
             std::string(direction == kC2V ? "tfree_to_aic" : "tfree_to_aiv") + " on pipe " +
                 std::to_string(pipe_id(call)) + ": free without a pop (popped " +
                 std::to_string(q.popped[lane]) + ", freed " + std::to_string(q.freed[lane]) + ")",
             "call tfree exactly once for every pop");
  }
  PipeQueue::Slot& slot = q.slots[static_cast<size_t>(q.freed[lane] - q.first)];
  ++q.freed[lane];
  ++slot.frees;
  const int consumers = direction == kC2V ? vector_lanes(actor) : 1;
  while (!q.slots.empty() && q.slots.front().frees == consumers) {
    if (actor.clock)
      q.freed_at.push_back(actor.now() + actor.sim().timing->params().ns(trace::Param::k_xcore_signal));
    q.slots.pop_front();
    ++q.first;
  }
  wake_pipe_waiters(actor);
  return ExecStatus::kDone;
}

void Simulation::check_pipes_at_end(const Block& block) {
  for (const auto& [id, pipe] : block.pipes) {
    for (int direction = 0; direction < 2; ++direction) {
      const PipeQueue& q = pipe.queue[direction];
      if (q.slots.empty()) continue;
      int64_t unpopped = 0;
      for (const auto& slot : q.slots) unpopped += slot.pops == 0 ? 1 : 0;
      Diagnostic d;
      d.cls = ErrorClass::kProtocolError;
      d.id = "H-56";
      d.title = unpopped ? "slot never popped" : "slot never freed";
      d.message = "pipe " + std::to_string(id) + " (" + direction_text(direction) + ") of '" +
                  block.task->fn->name + "', consumed on the " + (direction == kC2V ? "AIV" : "AIC") +
                  " side, ends with " + std::to_string(unpopped) + " slot(s) pushed but not popped and " +
                  std::to_string(static_cast<int64_t>(q.slots.size()) - unpopped) + " popped but not freed";
      d.hint = "pop every pushed tile, and call tfree once for every pop";
      if (q.slots.front().site) d.span = q.slots.front().site->span;
      d.rank = block.task->dispatch->rank;
      d.task = block.task->number;
      d.kernel = block.task->fn->name;
      d.block = block.index;
      report(std::move(d));
    }
  }
}

}  // namespace pypto::machine
