// SPDX-License-Identifier: Apache-2.0
#include "core/machine/core_timer.h"

#include <algorithm>

#include "core/machine/actor.h"
#include "core/machine/simulation.h"

namespace pypto::machine {
namespace {

using ir::MemorySpace;
using ir::OpId;
using trace::CorePipe;
using trace::Param;
using trace::Path;
using trace::Touch;
using vm::View;

constexpr int kCube = 0, kVector = 1;

int64_t payload(const View& v) { return (v.valid_elements() * dtype_bits(v.dtype) + 7) / 8; }

int64_t rows_of(const View& v) {
  const int64_t columns = v.rank > 0 ? v.valid[v.rank - 1] : 1;
  return columns > 0 ? v.valid_elements() / columns : 0;
}
int64_t columns_of(const View& v) { return v.rank > 0 ? v.valid[v.rank - 1] : 1; }

Path path_from_mat(MemorySpace to) {
  switch (to) {
    case MemorySpace::kLeft:
      return Path::kMatLeft;
    case MemorySpace::kRight:
      return Path::kMatRight;
    default:
      return Path::kMatBias;
  }
}

bool is_cube_space(MemorySpace s) {
  return s != MemorySpace::kVec && s != MemorySpace::kUnset && s != MemorySpace::kDDR;
}

}  // namespace

CoreTimer::CoreTimer(Timing& timing, Actor& actor)
    : timing_(timing), actor_(actor), time_(*actor.block->time), p_(timing.params()) {}

// ------------------------------------------------------------------ cores

int CoreTimer::vector_core() const {
  const int core = kVector + (actor_.side == Actor::Side::kLane1 ? 1 : 0);
  if (clock().core[core].exists) return core;
  return clock().core[kVector].exists ? kVector : kCube;
}
int CoreTimer::cube_core() const { return clock().core[kCube].exists ? kCube : vector_core(); }

int CoreTimer::rank() const { return actor_.dispatch.rank; }

double CoreTimer::now() const {
  const bool cube = actor_.side == Actor::Side::kCube;
  const double vector = cube ? 0 : clock().core[vector_core()].s;
  const bool both = cube || actor_.side == Actor::Side::kWhole;
  return both ? std::max(vector, clock().core[cube_core()].s) : vector;
}

void CoreTimer::wait_until(double time) {
  if (actor_.side != Actor::Side::kCube) clock().wait_until(vector_core(), time);
  if (actor_.side == Actor::Side::kCube || actor_.side == Actor::Side::kWhole)
    clock().wait_until(cube_core(), time);
}

bool CoreTimer::expired() const { return timing_.ordered && now() > timing_.horizon; }

void CoreTimer::scalar() {
  // An undivided kernel stands for two functions, each of which has the scalar code.
  wait_until(now() + p_.ns(Param::k_scalar_op));
}
void CoreTimer::loop() { wait_until(now() + p_.ns(Param::k_scalar_loop)); }

double CoreTimer::drained() const {
  double t = now();
  const auto core = [&](int c) { t = std::max({t, clock().core[c].drained(), clock().core[c].posted}); };
  if (actor_.side != Actor::Side::kCube) core(vector_core());
  if (actor_.side == Actor::Side::kCube || actor_.side == Actor::Side::kWhole) core(cube_core());
  return t;
}

double CoreTimer::drain() {
  wait_until(drained() + p_.ns(Param::k_sync_all));
  return now();
}

// ------------------------------------------------------------------ timeline

void CoreTimer::record(trace::EventKind kind, int core, int pipe, double begin, double end, const char* name,
                       int64_t amount, int peer) {
  const bool instruction = kind == trace::EventKind::kInstruction;
  if (!timing_.records(instruction ? 3 : 2)) return;
  trace::Event e;
  e.kind = kind;
  e.pipe = static_cast<int8_t>(pipe);
  e.rank = rank();
  e.core = core == kCube ? time_.aic : cluster_count(p_.arch()) + time_.aiv[core - kVector];
  e.peer = peer;
  e.begin_ns = begin;
  e.end_ns = end;
  const bool flow = kind == trace::EventKind::kFlowBegin || kind == trace::EventKind::kFlowEnd;
  e.bytes = flow ? 0 : amount;
  e.id = flow ? amount : actor_.task->handle;
  e.name = name;
  if (const vm::FunctionCode* fn = actor_.kernel()) e.kernel = fn->name;
  e.span = actor_.span();
  timing_.record(std::move(e));
}

void CoreTimer::collective(bool begin, const std::string& name) {
  if (!timing_.records(2)) return;
  if (begin) {
    collectives_.emplace_back(name, now());
  } else if (!collectives_.empty()) {
    const auto [of, from] = collectives_.back();
    collectives_.pop_back();
    const int core = actor_.side == Actor::Side::kCube ? cube_core() : vector_core();
    record(trace::EventKind::kCollective, core, -1, from, now(), of.c_str(), 0, -1);
  }
}

// ------------------------------------------------------------------ instructions

Touch CoreTimer::touch_of(const View& v, bool write) const {
  Touch t;
  // Buffers on the chip go by their address, which is 8-byte aligned; objects of the device by their number.
  t.storage = on_chip(v) ? reinterpret_cast<uintptr_t>(v.buffer.get())
                         : static_cast<uint64_t>(static_cast<uint32_t>(v.buffer->object)) * 2 + 1;
  t.box = check::box_of(v);
  t.write = write;
  return t;
}

MemorySpace CoreTimer::space_of(const View& v) const {
  if (!on_chip(v)) return MemorySpace::kDDR;
  return clock().storage(reinterpret_cast<uintptr_t>(v.buffer.get())).space;
}

double CoreTimer::run(int core, CorePipe pipe, double duration, std::span<const Touch> touches,
                      std::span<const Dependency> deps, const char* name, int64_t bytes) {
  const double start = clock().start(core, pipe, touches, deps);
  const double end = start + duration;
  clock().finish(core, pipe, touches, end);
  record(trace::EventKind::kInstruction, core, static_cast<int>(pipe), start, end, name, bytes, -1);
  return end;
}

CoreTimer::Dependency CoreTimer::transfer(int core, CorePipe pipe, Path path, const trace::Transfer& t,
                                          std::vector<Touch> touches, std::span<const Dependency> deps,
                                          int64_t object, const check::Box& box, const char* name) {
  const double start = clock().start(core, pipe, touches, deps);
  if (t.bytes <= 0) return {start, core, pipe};
  const double end = timing_.memory(rank(), start, trace::path_cost(p_, path).alpha,
                                    start + trace::transfer_time(p_, path, t), t.bytes, object, box);
  clock().finish(core, pipe, touches, end);
  record(trace::EventKind::kTransfer, core, static_cast<int>(pipe), start, end, name, t.bytes, -1);
  return {end, core, pipe};
}

CoreTimer::Dependency CoreTimer::drain_acc(const View& acc, DType to, const View* gm, const char* name) {
  const int core = cube_core();
  std::vector<Touch> touches{touch_of(acc, false)};
  if (gm) touches.push_back(touch_of(*gm, true));
  const double start = clock().start(core, CorePipe::kFix, touches, {});
  double end = start + trace::fixpipe_time(p_, rows_of(acc), columns_of(acc), dtype_bytes(to));
  const int64_t bytes = gm ? payload(*gm) : rows_of(acc) * columns_of(acc) * dtype_bytes(to);
  if (gm) end = timing_.memory(rank(), start, 0, end, bytes, gm->buffer->object, check::box_of(*gm));
  clock().finish(core, CorePipe::kFix, touches, end);
  record(gm ? trace::EventKind::kTransfer : trace::EventKind::kInstruction, core,
         static_cast<int>(CorePipe::kFix), start, end, name, bytes, -1);
  return {end, core, CorePipe::kFix};
}

CoreTimer::Dependency CoreTimer::load_region(const View& gm, MemorySpace space) {
  const bool vector = !is_cube_space(space);
  const int core = vector ? vector_core() : cube_core();
  Dependency d = transfer(core, CorePipe::kMte2, vector ? Path::kGmVec : Path::kGmMat, trace::transfer_of(gm),
                          {touch_of(gm, false)}, {}, gm.buffer->object, check::box_of(gm), "load");
  if (vector || space == MemorySpace::kMat) return d;
  const auto t = packed(payload(gm));
  d.finish = run(core, CorePipe::kMte1, trace::transfer_time(p_, path_from_mat(space), t), {},
                 std::span<const Dependency>(&d, 1), "move", t.bytes);
  d.pipe = CorePipe::kMte1;
  return d;
}

CoreTimer::Dependency CoreTimer::in(const View& v, MemorySpace space) {
  if (v.empty()) return {};
  if (!on_chip(v)) return load_region(v, space);
  const uint64_t key = reinterpret_cast<uintptr_t>(v.buffer.get());
  const MemorySpace from = clock().storage(key).space;
  if (from == space) return {};
  const check::Box box = check::box_of(v);
  for (const auto& copy : clock().storage(key).copies) {
    if (copy.space == space && copy.box == box) return copy.made;
  }
  const bool a5 = p_.arch() == ir::Arch::kA5;
  const int64_t bytes = payload(v);
  const int cube = cube_core();
  const int vector = vector_core();
  Dependency d;
  const auto after = [&] { return std::span<const Dependency>(&d, 1); };
  // To Mat, or out of the cube core.
  if (from == MemorySpace::kVec) {
    if (a5) {
      const Touch read = touch_of(v, false);
      d.finish = run(vector, CorePipe::kMte3, trace::transfer_time(p_, Path::kVecMat, packed(bytes)),
                     std::span<const Touch>(&read, 1), {}, "move", bytes);
      d.core = vector;
      d.pipe = CorePipe::kMte3;
    } else {
      d = transfer(vector, CorePipe::kMte3, Path::kVecGm, packed(bytes), {touch_of(v, false)}, {}, -1, {},
                   "move");
      d = transfer(cube, CorePipe::kMte2, Path::kGmMat, packed(bytes), {}, after(), -1, {}, "move");
    }
  } else if (from == MemorySpace::kAcc) {
    d = drain_acc(v, v.dtype, nullptr, "move");
    if (space == MemorySpace::kVec && !a5)
      d = transfer(vector, CorePipe::kMte2, Path::kGmVec, packed(bytes), {}, after(), -1, {}, "move");
  } else if (space == MemorySpace::kVec) {
    d = transfer(cube, CorePipe::kMte3, Path::kMatGm, packed(bytes), {touch_of(v, false)}, {}, -1, {},
                 "move");
    d = transfer(vector, CorePipe::kMte2, Path::kGmVec, packed(bytes), {}, after(), -1, {}, "move");
  }
  if (space != MemorySpace::kVec && space != MemorySpace::kMat) {
    const Touch read = touch_of(v, false);
    const bool first = d.core < 0;  // straight out of the value's own memory
    d.finish = run(cube, CorePipe::kMte1, trace::transfer_time(p_, path_from_mat(space), packed(bytes)),
                   std::span<const Touch>(&read, first ? 1 : 0),
                   first ? std::span<const Dependency>() : after(), "move", bytes);
    d.core = cube;
    d.pipe = CorePipe::kMte1;
  }
  clock().storage(key).copies.push_back({space, box, d});
  return d;
}

void CoreTimer::define(const View& result, MemorySpace space) {
  if (!on_chip(result)) return;
  const auto key = reinterpret_cast<uintptr_t>(result.buffer.get());
  for (const auto& [param, v] : operands_) {
    if (v.buffer == result.buffer) return;  // the same storage goes on
  }
  clock().fresh(key, space == MemorySpace::kUnset ? MemorySpace::kVec : space);
}

void CoreTimer::created(const View& fresh) {
  if (on_chip(fresh)) clock().fresh(reinterpret_cast<uintptr_t>(fresh.buffer.get()), MemorySpace::kVec);
}

// ------------------------------------------------------------------ operations

void CoreTimer::begin(const vm::OpCall& call, const vm::OpInsn& insn) {
  collecting_ = true;
  touches_.clear();
  operands_.clear();
  for (size_t i = 0; i < insn.operands.size(); ++i) {
    const vm::Operand& o = insn.operands[i];
    if (o.kind == vm::Operand::Kind::kReg && o.reg.cls == vm::RegClass::kView)
      operands_.emplace_back(static_cast<int>(i), call.view(static_cast<int>(i)));
  }
}

void CoreTimer::end(const vm::OpCall& call, const vm::OpInsn& insn, std::span<const View> results) {
  collecting_ = false;
  const ir::OpRow& row = ir::op_row(insn.op);
  const auto operand = [&](int param) -> const View* {
    for (const auto& [i, v] : operands_) {
      if (i == param && !v.empty()) return &v;
    }
    return nullptr;
  };
  const auto first_result = [&]() -> const View* {
    return !results.empty() && !results[0].empty() ? &results[0] : nullptr;
  };
  const MemorySpace wanted = insn.result_space.empty() ? MemorySpace::kUnset : insn.result_space[0];
  switch (insn.op) {
    case OpId::k_load:
      for (const Access& a : touches_) {
        const Dependency d = load_region(a.view, wanted);
        if (const View* r = first_result()) {
          define(*r, wanted);
          const Touch write = touch_of(*r, true);
          clock().finish(d.core, d.pipe, std::span<const Touch>(&write, 1), d.finish);
        }
      }
      if (touches_.empty() && first_result()) define(*first_result(), wanted);
      return;
    case OpId::k_store:
      for (const Access& a : touches_) {
        if (a.write) store_value(operand(0), nullptr, a.view);
      }
      return;
    case OpId::k_assemble: {
      const View* source = operand(1);
      bool global = false;
      for (const Access& a : touches_) {
        if (!a.write) continue;
        global = true;
        store_value(source, nullptr, a.view);
      }
      if (!global) vector_op(call, insn, results);
      return;
    }
    case OpId::k_move:
    case OpId::k_extract: {
      const View* source = operand(0);
      const View* r = first_result();
      if (!source || !r) return;
      const MemorySpace to = wanted == MemorySpace::kUnset ? MemorySpace::kVec : wanted;
      if (space_of(*source) == to || (!is_cube_space(to) && space_of(*source) == MemorySpace::kVec)) {
        if (to == MemorySpace::kVec) {
          vector_op(call, insn, results);
        } else {
          define(*r, to);
        }
        return;
      }
      View part = *source;  // an extract moves a window
      part.rank = r->rank;
      std::copy_n(r->shape, vm::kMaxRank, part.shape);
      std::copy_n(r->valid, vm::kMaxRank, part.valid);
      const Dependency d = in(insn.op == OpId::k_extract && r->rank == source->rank ? part : *source, to);
      define(*r, to);
      if (d.core < 0 || r->buffer == source->buffer) return;
      const Touch write = touch_of(*r, true);
      clock().finish(d.core, d.pipe, std::span<const Touch>(&write, 1), d.finish);
      return;
    }
    case OpId::k_create_tile:
    case OpId::k_create_l1:
      if (const View* r = first_result())
        define(*r, insn.op == OpId::k_create_l1 ? MemorySpace::kMat : wanted);
      return;
    case OpId::k_snapshot:
      if (const View* r = first_result()) define(*r, MemorySpace::kVec);
      return;
    case OpId::k_read:
    case OpId::k_write:
      element(call);
      return;
    case OpId::k_remote_load:
    case OpId::k_remote_store:
    case OpId::k_tensor_remote_store:
    case OpId::k_put:
    case OpId::k_get:
    case OpId::k_tile_put:
    case OpId::k_tile_get:
      remote(call, insn, results);
      return;
    case OpId::k_bar_all:
    case OpId::k_fence:
      drain();
      return;
    case OpId::k_bar_v:
    case OpId::k_bar_m: {
      const bool v = insn.op == OpId::k_bar_v;
      const int core = v ? vector_core() : cube_core();
      double& free = clock().core[core].free[static_cast<size_t>(v ? CorePipe::kV : CorePipe::kM)];
      free = std::max(free, clock().core[core].s) + (v ? p_.ns(Param::k_sync_vbar) : 0);
      return;
    }
    case OpId::k_mgather:
    case OpId::k_mscatter:
    case OpId::k_gather_row:
    case OpId::k_paged_gather:
      gathered(results);
      return;
    default:
      break;
  }
  switch (row.cost) {
    case ir::CostClass::kElementwise:
    case ir::CostClass::kReduce:
    case ir::CostClass::kExpand:
    case ir::CostClass::kGather:
    case ir::CostClass::kSort:
    case ir::CostClass::kMove:
      vector_op(call, insn, results);
      return;
    case ir::CostClass::kMatmul:
      product(call, insn, results);
      return;
    case ir::CostClass::kScalar:
    case ir::CostClass::kFree:
      scalar();
      break;
    case ir::CostClass::kSync:
    case ir::CostClass::kComm:
      break;
  }
  // Views and the joints of mixed kernels: a result in new storage is where its operand is.
  for (const View& r : results) {
    if (r.empty() || !on_chip(r)) continue;
    const View* source = operand(0);
    define(r, source && on_chip(*source) ? space_of(*source) : wanted);
  }
}

void CoreTimer::element(const vm::OpCall& call) {
  if (operands_.empty() || operands_[0].second.empty()) return;
  const View& v = operands_[0].second;
  const bool write = call.op == OpId::k_write;
  const bool cube = is_cube_space(space_of(v)) || actor_.side == Actor::Side::kCube;
  const int core = cube ? cube_core() : vector_core();
  if (on_chip(v)) {
    clock().wait_for(core, touch_of(v, write));
    wait_until(clock().core[core].s + p_.ns(Param::k_scalar_vec_access));
    return;
  }
  for (const Access& a : touches_) {
    clock().wait_for(core, touch_of(a.view, a.write));
    wait_until(clock().core[core].s);
    if (a.write) {
      scalar();
      continue;
    }
    const int64_t line = static_cast<int64_t>(a.view.buffer->object) << 40 | a.view.offset / 64;
    int64_t& last = clock().core[core].gm_line;
    wait_until(now() + p_.ns(line == last ? Param::k_scalar_gm_hit : Param::k_scalar_gm_miss));
    last = line;
  }
}

void CoreTimer::vector_op(const vm::OpCall& call, const vm::OpInsn& insn, std::span<const View> results) {
  const int core = vector_core();
  std::vector<Dependency> deps;
  std::vector<Touch> touches;
  std::vector<const View*> shapes;
  const ir::OpRow& row = ir::op_row(insn.op);
  const std::string_view effects = row.effects;
  for (const auto& [param, v] : operands_) {
    if (v.empty()) continue;
    const auto at = static_cast<size_t>(param);
    const char effect = at < effects.size() ? effects[at] : '-';
    if (effect == '-') continue;  // scratch, or a shape
    const Dependency d = in(v, MemorySpace::kVec);
    if (d.core >= 0) deps.push_back(d);
    shapes.push_back(&v);
    if (on_chip(v) && (d.core < 0 || effect != 'r')) touches.push_back(touch_of(v, effect != 'r'));
  }
  const bool expands = row.cost == ir::CostClass::kExpand;
  for (const View& r : results) {
    if (!r.empty() && r.rank > 0 && (expands || shapes.empty() || insn.op == OpId::k_cast))
      shapes.push_back(&r);
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const View* a, const View* b) { return a->valid_elements() > b->valid_elements(); });
  if (row.cost == ir::CostClass::kMove && !operands_.empty() && insn.op != OpId::k_transpose) {
    // What moves is the source, not the tile it goes into.
    const size_t source = insn.op == OpId::k_assemble && operands_.size() > 1 ? 1 : 0;
    shapes = {&operands_[source].second};
    if (insn.op == OpId::k_concat || insn.op == OpId::k_extract) shapes = {&results[0]};
  }
  const trace::Extent extent = trace::extent_of(shapes);
  const DType dtype = !operands_.empty() ? operands_[0].second.dtype
                      : !shapes.empty()  ? shapes[0]->dtype
                                         : DType::kFp32;
  const DType to = !results.empty() ? results[0].dtype : dtype;
  const OpId op = call.has(1) && call.is_scalar(1) ? trace::scalar_form(insn.op) : insn.op;
  double duration = 0;
  if (insn.op == OpId::k_mrgsort || insn.op == OpId::k_mrgsort_format1 ||
      insn.op == OpId::k_mrgsort_format2) {
    const int64_t pairs = !results.empty() ? results[0].valid_elements() / 2 : 0;
    int64_t merges = 1;
    if (operands_.size() == 1 && !operands_.empty()) {
      const int64_t block = std::max<int64_t>(call.attr_int(ir::AttrKey::k_block_len, 64), 1);
      merges = std::max<int64_t>(1, (operands_[0].second.valid_elements() + 4 * block - 1) / (4 * block));
    }
    duration = trace::mrgsort_time(p_, merges, pairs);
  } else {
    duration =
        trace::vector_time(p_, op, extent, dtype, to, call.attr_int(ir::AttrKey::k_high_precision, 0) != 0);
  }
  for (const View& r : results) {
    if (r.empty()) continue;
    define(r, MemorySpace::kVec);
    if (on_chip(r)) touches.push_back(touch_of(r, true));
  }
  const bool on_scalar = insn.op == OpId::k_arange || insn.op == OpId::k_tile_arange;
  run(core, on_scalar ? CorePipe::kS : CorePipe::kV, duration, touches, deps, ir::op_row(op).name);
}

void CoreTimer::store_value(const View* value, const Dependency* made, const View& target) {
  std::vector<Dependency> deps;
  if (made && made->core >= 0) deps.push_back(*made);
  if (!target.buffer || on_chip(target)) return;
  const check::Box box = check::box_of(target);
  const int64_t object = target.buffer->object;
  const trace::Transfer t = trace::transfer_of(target);
  if (value && on_chip(*value) && space_of(*value) == MemorySpace::kAcc) {
    drain_acc(*value, target.dtype, &target, "store");
    return;
  }
  const bool mat = value && on_chip(*value) && space_of(*value) == MemorySpace::kMat;
  const int core = mat ? cube_core() : vector_core();
  std::vector<Touch> touches{touch_of(target, true)};
  if (value && on_chip(*value)) {
    touches.push_back(touch_of(*value, false));
  } else if (value && !value->empty()) {
    deps.push_back(load_region(*value, MemorySpace::kVec));  // from memory to memory, through the core
  }
  transfer(core, CorePipe::kMte3, mat ? Path::kMatGm : Path::kVecGm, t, touches, deps, object, box, "store");
}

void CoreTimer::gathered(std::span<const View> results) {
  // One burst per index (05 H-66): the bytes of all of them, in rows as short as one of them.
  int64_t bytes = 0, row = 0;
  const View* some = nullptr;
  bool write = false;
  for (const Access& a : touches_) {
    const trace::Transfer t = trace::transfer_of(a.view);
    bytes += t.bytes;
    row = row == 0 ? t.row : std::min(row, t.row);
    some = &a.view;
    write = write || a.write;
  }
  const int core = vector_core();
  std::vector<Touch> touches;
  std::vector<Dependency> deps;
  for (const auto& [param, v] : operands_) {
    if (on_chip(v)) touches.push_back(touch_of(v, false));
  }
  for (const View& r : results) {
    if (!on_chip(r)) continue;
    define(r, MemorySpace::kVec);
    touches.push_back(touch_of(r, true));
  }
  if (!some) return;
  touches.push_back(touch_of(*some, write));
  transfer(core, write ? CorePipe::kMte3 : CorePipe::kMte2, write ? Path::kVecGm : Path::kGmVec,
           {bytes, row, touches_.size() < 2}, touches, deps, some->buffer->object, check::box_of(*some),
           write ? "mscatter" : "mgather");
}

}  // namespace pypto::machine
