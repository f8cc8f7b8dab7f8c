// SPDX-License-Identifier: Apache-2.0
#include "core/machine/actor.h"

#include <algorithm>
#include <cstring>

#include "core/machine/machine_ops.h"
#include "core/machine/simulation.h"
#include "core/vm/ops/region.h"

namespace pypto::machine {

const vm::FunctionCode* Actor::kernel() const {
  if (fiber && !fiber->frames.empty() && kind != Kind::kOrchestration &&
      fiber->frames.front().fn != task->fn) {
    return fiber->frames.front().fn;  // a member of a group
  }
  return task ? task->fn : dispatch.fn;
}

check::ActorInfo Actor::info() const {
  check::ActorInfo info;
  info.rank = dispatch.rank;
  info.dispatch = dispatch.index;
  info.group = dispatch.step ? dispatch.step->group : -1;
  info.kernel = kernel();
  if (task) {
    info.task = task->number;
    info.manual = task->scope != 0;
  }
  if (block) {
    info.block = block->index;
    info.core = block->cores.name(lane);
    if (side == Side::kCube && block->cores.aiv0 >= 0) info.core = "AIC " + std::to_string(block->cores.aic);
  }
  info.lane = lane;
  return info;
}

// ------------------------------------------------------------------ control plane

vm::ExecStatus Actor::call(const vm::CallInsn& call, vm::Frame& frame) {
  Simulation::Submission s;
  s.fn = &sim_.program.functions[static_cast<size_t>(call.callee)];
  s.call = &call;
  s.site = site();
  s.args.reserve(call.args.size());
  for (size_t i = 0; i < call.args.size(); ++i) {
    const vm::Reg& reg = call.args[i];
    ArgValue a;
    a.is_view = reg.cls == vm::RegClass::kView;
    if (a.is_view) {
      a.view = frame.v[static_cast<size_t>(reg.index)];
      a.view.snapshot = vm::BufferRef();
      if (i < s.fn->params.size()) a.name = s.fn->params[i].name;
    } else if (reg.cls == vm::RegClass::kScalar) {
      a.scalar = frame.s[static_cast<size_t>(reg.index)];
      if (!frame.marks.empty()) a.mark = frame.marks[static_cast<size_t>(reg.index)];
    }
    s.args.push_back(std::move(a));
  }
  for (const vm::Reg& reg : call.deps) {
    if (reg.cls == vm::RegClass::kArray) {
      const auto& items = frame.a[static_cast<size_t>(reg.index)]->items;
      s.deps.insert(s.deps.end(), items.begin(), items.end());
    } else if (reg.cls == vm::RegClass::kScalar) {
      s.deps.push_back(frame.s[static_cast<size_t>(reg.index)].i);
    }
  }
  if (call.core_num.cls == vm::RegClass::kScalar) {
    s.blocks = frame.s[static_cast<size_t>(call.core_num.index)].i;
    if (s.blocks <= 0) {
      fail(ErrorClass::kProgramFault, "core_num of the launch of '" + s.fn->name +
                                          "' must be a positive integer, got " + std::to_string(s.blocks));
    }
  }
  s.sync_start = call.sync_start;
  if (call.has_predicate) {
    s.has_predicate = true;
    s.predicate = frame.v[static_cast<size_t>(call.predicate_tensor.index)];
    vm::View& e = s.predicate;
    for (int i = 0; i < e.rank; ++i) {
      const int64_t at = frame.s[static_cast<size_t>(call.predicate_index[static_cast<size_t>(i)].index)].i;
      if (at < 0 || at >= e.shape[i]) {
        fail(ErrorClass::kOutOfBoundsError, "predicate index " + std::to_string(at) +
                                                " is outside dimension " + std::to_string(i) + " of extent " +
                                                std::to_string(e.shape[i]));
      }
      e.offset += at * e.stride[i] * dtype_bytes(e.dtype);
      e.shape[i] = e.valid[i] = 1;
    }
  }
  int64_t handle = 0;
  std::vector<vm::View> views;
  for (const ArgValue& a : s.args) views.push_back(a.view);
  const vm::FunctionCode& fn = *s.fn;
  if (!sim_.submit(dispatch, this, std::move(s), &handle)) return vm::ExecStatus::kBlocked;
  if (call.task.cls == vm::RegClass::kScalar) frame.s[static_cast<size_t>(call.task.index)].i = handle;
  for (size_t k = 0; k < call.results.size(); ++k) {
    const vm::Reg& reg = call.results[k];
    if (reg.cls != vm::RegClass::kView) continue;
    const int param = k < fn.result_params.size() ? fn.result_params[k] : -1;
    PYPTO_CHECK(param >= 0, "result of '" + fn.name + "' is not the storage of a parameter");
    frame.v[static_cast<size_t>(reg.index)] = views[static_cast<size_t>(param)];
  }
  return vm::ExecStatus::kDone;
}

vm::View Actor::create(const vm::CreateInsn& create, const std::vector<int64_t>& shape) {
  if (kind == Kind::kOrchestration) {
    int64_t bytes = packed_bytes(create.dtype, shape.data(), shape.size());
    const int64_t heap = sim_.options.ring_heap > 0 ? sim_.options.ring_heap : int64_t{256} << 20;
    if (bytes > heap) {
      fail(ErrorClass::kProgramFault,
           "tensor '" + create.name + "' of " + std::to_string(bytes) +
               " bytes is larger than the output heap of " + std::to_string(heap) + " bytes",
           {}, "make it smaller, pass it in from the host, or raise the ring heap of the run configuration");
    }
    // Run-ahead of the control plane is bounded by the heap: wait for a task to finish and free its tensors.
    const int64_t used = sim_.devices[static_cast<size_t>(dispatch.rank)]->heap_used;
    if (used + bytes > heap && dispatch.live > 0 && !heap_waited) {
      heap_waited = true;
      WaitState w;
      w.kind = WaitState::Kind::kHeap;
      w.detail = "output heap, " + std::to_string(used) + " of " + std::to_string(heap) + " bytes in use";
      sim_.block(*this, std::move(w));
      dispatch.blocked_on_tasks.push_back(this);
      throw Suspend{};
    }
    heap_waited = false;
  }
  return sim_.created_tensor(create, shape, dispatch.rank, kind == Kind::kOrchestration);
}

vm::ExecStatus Actor::order_element(const vm::View& element, vm::AccessKind access) {
  if (kind != Kind::kOrchestration || element.empty()) return vm::ExecStatus::kDone;
  if (element.buffer->kind == vm::BufferKind::kOnChip) return vm::ExecStatus::kDone;
  std::vector<RegionTable::Conflict> conflicts;
  dispatch.regions.query(element.buffer.get(), check::box_of(element), access != vm::AccessKind::kRead, 0,
                         false, &conflicts);
  WaitState w;
  for (const auto& c : conflicts) {
    if (c.owner && !c.owner->completed) {
      w.tasks.push_back(static_cast<Task*>(c.owner)->handle);
    } else {
      if (c.clock) sim_.checker->acquire(id, c.clock);
      dispatch.control =
          std::max(dispatch.control, c.owner ? static_cast<Task*>(c.owner)->time.seen : c.time);
    }
  }
  if (w.tasks.empty()) return vm::ExecStatus::kDone;
  w.kind = WaitState::Kind::kTasks;
  w.name = sim_.storage_text(element);
  sim_.block(*this, std::move(w));
  dispatch.blocked_on_tasks.push_back(this);
  return vm::ExecStatus::kBlocked;
}

void Actor::scope(bool begin, ir::ScopeKind scope_kind) {
  if (kind != Kind::kOrchestration) return;
  if (!begin) {
    if (!dispatch.scopes.empty()) dispatch.scopes.pop_back();
    return;
  }
  if (dispatch.scopes.size() >= 64) {
    fail(ErrorClass::kProgramFault, "scopes are nested more than 64 deep", {}, "merge scopes");
  }
  ScopeFrame f;
  f.kind = scope_kind;
  if (scope_kind == ir::ScopeKind::kManual) f.manual = ++dispatch.manual_scopes;
  dispatch.scopes.push_back(f);
}

// ------------------------------------------------------------------ lanes and members

void Actor::deliver() {
  std::vector<DelayedStore> stores = std::move(travelling);
  travelling.clear();
  for (DelayedStore& s : stores) {
    if (s.atomic) {
      vm::add_cells(s.target, s.data);
    } else {
      vm::copy_cells(s.target, s.data);
    }
    ObjectRecord& object = sim_.object_of(s.target);
    if (!object.watches.empty() && !object.dirty) {
      object.dirty = true;
      sim_.dirty_.push_back(s.target.buffer->object);
    }
  }
}

void Actor::spawn(std::unique_ptr<vm::Fiber> child, int child_lane) {
  deliver();
  auto actor = std::make_unique<Actor>(sim_, Kind::kLane, dispatch);
  Actor& kid = *actor;
  kid.task = task;
  kid.block = block;
  kid.parent = this;
  kid.child_index = kids.size();
  const vm::Frame& top = child->top();
  const bool member = top.end_pc < 0;
  if (member && top.fn->type == ir::FunctionType::kAIC) {
    kid.side = Side::kCube;
  } else {
    const int index = child_lane >= 0 ? child_lane : 0;
    kid.side = index == 0 ? Side::kLane0 : Side::kLane1;
    kid.lane = index;
    ++block->vector_actors;
  }
  if (!member) {
    const int32_t pc = top.pc;
    for (const vm::LanesInsn& lanes : top.fn->lanes) {
      if (lanes.begin == pc) kid.split = lanes.mode;
    }
  }
  kid.key = key;
  kid.key.lane = static_cast<int32_t>(kids.size());
  kid.fiber = std::move(child);
  if (clock) {
    kid.clock = std::make_unique<CoreTimer>(*sim_.timing, kid);
    kid.timer = kid.clock.get();
    kid.clock->wait_until(clock->now());
  }
  if (sim_.checking) {
    const check::Clock start = sim_.checker->release(id);
    kid.id = sim_.checker->start(kid.info(), {&start, 1});
  }
  ++live_kids;
  kids.push_back(std::move(actor));
  child_fibers.push_back(nullptr);
  sim_.make_runnable(kid);
  WaitState w;
  w.kind = WaitState::Kind::kChildren;
  sim_.block(*this, std::move(w));
}

bool Actor::join() {
  if (live_kids > 0) {
    WaitState w;
    w.kind = WaitState::Kind::kChildren;
    sim_.block(*this, std::move(w));
    return false;
  }
  for (const auto& kid : kids) {
    sim_.checker->acquire(id, kid->end);
    if (clock) clock->wait_until(kid->clock->drained());  // what they made is there
    if (kid->side != Side::kCube) --block->vector_actors;
  }
  kids.clear();
  if (fiber->top().fn->type == ir::FunctionType::kGroup) child_fibers.clear();
  return true;
}

// ------------------------------------------------------------------ memory

/// Whether a copy changes a byte, if that is easy to see, else -1.
static int copy_changes(const vm::View& to, const vm::View& from) {
  const int64_t bytes = to.elements() * dtype_bytes(to.dtype);
  if (to.dtype != from.dtype || dtype_bits(to.dtype) < 8 || !to.fully_valid || !from.fully_valid ||
      !to.packed() || !from.packed() || from.elements() * dtype_bytes(from.dtype) != bytes) {
    return -1;
  }
  return std::memcmp(to.data(), from.data(), static_cast<size_t>(bytes)) != 0;
}

void Actor::access(const vm::View& v, vm::AccessKind access) { record(v, access, {}, false, {}); }

void Actor::record(const vm::View& v, vm::AccessKind access, ir::OpId op, bool remote,
                   const std::string& name, int changes, const vm::View* source) {
  if (clock) clock->touched(v, access != vm::AccessKind::kRead);
  ObjectRecord& object = sim_.object_of(v);
  if (object.window >= 0) Simulation::make_plain(v);
  if (access != vm::AccessKind::kRead && !object.watches.empty() && !object.dirty) {
    object.dirty = true;
    sim_.dirty_.push_back(v.buffer->object);
  }
  if (access == vm::AccessKind::kWrite && !v.buffer->written.all) vm::mark_written(v);
  if (!travelling.empty()) {
    // The core's own later accesses see what it sent.
    for (const DelayedStore& s : travelling) {
      if (s.target.buffer == v.buffer) {
        deliver();
        break;
      }
    }
  }
  if (object.pending_notifies > 0) sim_.apply_pending_in(*this, v);
  if (!object.unspecified.empty() && collective.name.empty()) look_at_unspecified(object, v, access);
  if (!sim_.checking) return;
  // Tasks of an automatic scope are ordered by their declared regions, and a view cannot leave its region.
  const bool tracked = object.window >= 0 || sim_.track_tensors || lane >= 0 || (task && task->blocks > 1);
  if (!tracked) return;
  check::Access a;
  a.actor = id;
  a.object = v.buffer->object;
  a.box = check::box_of(v);
  if (object.window < 0 && !sim_.track_tensors && task) a.part = task->handle;
  a.kind = access;
  a.dtype = v.dtype;
  a.remote = remote;
  a.internal = !collective.name.empty();
  a.op = op;
  a.site = site();
  a.name = name;
  a.view = &v;
  a.changes = changes < 0 && source ? copy_changes(v, *source) : changes;
  sim_.checker->access(a);
}

/// Rows that an all_to_all_v did not fill (03 X-67): reads are told, writes give them contents.
void Actor::look_at_unspecified(ObjectRecord& object, const vm::View& v, vm::AccessKind access) {
  const check::Box box = check::box_of(v);
  if (access != vm::AccessKind::kRead) {
    std::erase_if(object.unspecified, [&](const auto& u) { return check::covers(box, u.box); });
    return;
  }
  for (const auto& u : object.unspecified) {
    if (!check::overlap(box, u.box)) continue;
    Diagnostic d;
    d.cls = ErrorClass::kUninitializedReadError;
    d.severity = Severity::kWarning;
    d.id = "X-67";
    d.title = "read of a row that was not received";
    d.message = "row " + std::to_string(u.row) + " of the block from rank " + std::to_string(u.source) +
                " of " + sim_.storage_text(v) + " is read, but all_to_all_v received only " +
                std::to_string(u.received) + " rows from there; the rest is unspecified";
    d.hint = "bound the loop by recv_counts";
    d.span = span();
    sim_.annotate(d, *this);
    sim_.report(std::move(d));
    return;
  }
}

void Actor::warn(const char* warning_id, std::string text) {
  Diagnostic d;
  d.severity = Severity::kWarning;
  d.id = warning_id;
  d.cls = ErrorClass::kProgramFault;
  d.message = std::move(text);
  d.span = span();
  if (sim_.options.checks == Checks::kOff) return;
  if (sim_.options.checks == Checks::kStrict) d.severity = Severity::kError;
  sim_.annotate(d, *this);
  sim_.report(std::move(d));
}

void Actor::report(Diagnostic d) {
  if (sim_.options.checks == Checks::kOff) return;
  d.severity = sim_.options.checks == Checks::kStrict ? Severity::kError : Severity::kWarning;
  if (!d.span.known()) d.span = span();
  sim_.annotate(d, *this);
  sim_.report(std::move(d));
}

void Actor::annotate(Diagnostic& d) const { sim_.annotate(d, *this); }

vm::ExecStatus Actor::machine_op(vm::OpCall& call) { return run_machine_op(*this, call); }

}  // namespace pypto::machine
