// SPDX-License-Identifier: Apache-2.0
// What crosses cores and ranks: signals, rings, transfers between ranks (05 H-72, H-73).
#include <algorithm>

#include "core/machine/actor.h"
#include "core/machine/core_timer.h"
#include "core/machine/simulation.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using ir::MemorySpace;
using ir::OpId;
using trace::CorePipe;
using trace::Param;
using trace::Path;
using trace::Touch;
using vm::View;

constexpr int64_t kMaxPiece = 184 * 1024;  ///< what a staging tile can hold (05 H-13)
constexpr int64_t kMaxPieces = 4096;       ///< beyond it, pieces are charged in groups

int64_t payload(const View& v) { return (v.valid_elements() * dtype_bits(v.dtype) + 7) / 8; }

}  // namespace

int CoreTimer::owner(const View& v) const {
  if (!v.buffer || v.buffer->object < 0) return rank();
  const ObjectRecord& object = actor_.sim().objects[static_cast<size_t>(v.buffer->object)];
  return object.window >= 0 && object.rank >= 0 ? object.rank : rank();
}

// ------------------------------------------------------------------ signals, rings, barriers

void CoreTimer::waited(double visible, const char* what, int64_t flow) {
  const double before = now();
  wait_until(std::max(before, visible));
  const double met = now();
  const bool cube = actor_.side == Actor::Side::kCube;
  const int core = cube ? cube_core() : vector_core();
  if (met > before) {
    actor_.sim().run_report.ranks[static_cast<size_t>(rank())].wait_us += (met - before) / 1000;
    record(trace::EventKind::kWait, core, -1, before, met, what, 0, -1);
  }
  if (flow < 0 || !timing_.records(2)) return;
  record(trace::EventKind::kFlowEnd, core, -1, met, met, what, flow, -1);
}

double CoreTimer::notify(int peer, int64_t* flow) {
  const double begin = drain();
  wait_until(begin + p_.ns(Param::k_notify_send));
  const int core = actor_.side == Actor::Side::kCube ? cube_core() : vector_core();
  record(trace::EventKind::kNotify, core, -1, begin, now(), "notify", 0, peer);
  if (timing_.records(2)) {
    *flow = timing_.next_flow();
    record(trace::EventKind::kFlowBegin, core, -1, begin, begin, "notify", *flow, peer);
  }
  return begin + p_.ns(peer == rank() ? Param::k_notify_send : Param::k_notify_oneway);
}

double CoreTimer::push(const View& tile) {
  const MemorySpace from = space_of(tile);
  Dependency d;
  if (actor_.side == Actor::Side::kCube || from == MemorySpace::kAcc) {
    d = drain_acc(tile, tile.dtype, nullptr, "tpush");
  } else {
    const Touch read = touch_of(tile, false);
    const int64_t bytes = payload(tile);
    const int core = vector_core();
    if (p_.arch() == ir::Arch::kA5) {
      d.finish = run(core, CorePipe::kMte3, trace::transfer_time(p_, Path::kVecMat, {bytes, bytes, true}),
                     std::span<const Touch>(&read, 1), {}, "tpush", bytes);
    } else {
      d = transfer(core, CorePipe::kMte3, Path::kVecGm, {bytes, bytes, true}, {read}, {}, -1, {}, "tpush");
    }
  }
  return d.finish + p_.ns(Param::k_xcore_signal);
}

void CoreTimer::pop(const View& tile) {
  if (!tile.buffer) return;
  const bool cube = actor_.side == Actor::Side::kCube;
  const int core = cube ? cube_core() : vector_core();
  const auto key = reinterpret_cast<uintptr_t>(tile.buffer.get());
  clock().fresh(key, cube ? MemorySpace::kMat : MemorySpace::kVec);
  if (p_.arch() == ir::Arch::kA5) return;  // read in place
  const int64_t bytes = payload(tile);
  transfer(core, CorePipe::kMte2, cube ? Path::kGmMat : Path::kGmVec, {bytes, bytes, true},
           {touch_of(tile, true)}, {}, -1, {}, "tpop");
}

// ------------------------------------------------------------------ transfers between ranks

CoreTimer::Dependency CoreTimer::remote_read(const View& gm, int peer, int64_t bytes,
                                             std::span<const Touch> touches, std::span<const Dependency> deps,
                                             const char* name) {
  const int core = vector_core();
  if (peer == rank()) {
    std::vector<Touch> all(touches.begin(), touches.end());
    return transfer(core, CorePipe::kMte2, Path::kGmVec, {bytes, bytes, true}, std::move(all), deps,
                    gm.buffer->object, check::box_of(gm), name);
  }
  const double start = clock().start(core, CorePipe::kMte2, touches, deps);
  const double alpha = p_.ns(Param::k_link_alpha_read);
  const double alone = start + alpha + static_cast<double>(bytes) / p_.rate(Param::k_link_pair);
  const double end = timing_.link(peer, rank(), start, alpha, alone, bytes);
  clock().finish(core, CorePipe::kMte2, touches, end);
  record(trace::EventKind::kRemote, core, static_cast<int>(CorePipe::kMte2), start, end, name, bytes, peer);
  return {end, core, CorePipe::kMte2};
}

CoreTimer::Dependency CoreTimer::remote_write(const View& gm, int peer, int64_t bytes,
                                              std::span<const Touch> touches,
                                              std::span<const Dependency> deps, const char* name) {
  const int core = vector_core();
  if (peer == rank()) {
    std::vector<Touch> all(touches.begin(), touches.end());
    return transfer(core, CorePipe::kMte3, Path::kVecGm, {bytes, bytes, true}, std::move(all), deps,
                    gm.buffer->object, check::box_of(gm), name);
  }
  const double start = clock().start(core, CorePipe::kMte3, touches, deps);
  const double alone = start + static_cast<double>(bytes) / p_.rate(Param::k_link_pair);
  const double end = timing_.link(rank(), peer, start, 0, alone, bytes);
  clock().finish(core, CorePipe::kMte3, touches, end);
  double& posted = clock().core[core].posted;
  posted = std::max(posted, end + p_.ns(Param::k_link_alpha_write));
  record(trace::EventKind::kRemote, core, static_cast<int>(CorePipe::kMte3), start, end, name, bytes, peer);
  return {end, core, CorePipe::kMte3};
}

void CoreTimer::remote(const vm::OpCall& call, const vm::OpInsn& insn, std::span<const View> results) {
  const char* name = ir::op_row(insn.op).name;
  const View* read = nullptr;
  const View* written = nullptr;
  for (const Access& a : touches_) (a.write ? written : read) = &a.view;
  const bool fetches = insn.op == OpId::k_get || insn.op == OpId::k_tile_get;
  switch (insn.op) {
    case OpId::k_remote_load: {
      if (results.empty() || results[0].empty()) return;
      define(results[0], MemorySpace::kVec);
      if (!read) return;
      const Touch write = touch_of(results[0], true);
      remote_read(*read, owner(*read), payload(*read), std::span<const Touch>(&write, 1), {}, name);
      return;
    }
    case OpId::k_remote_store:
    case OpId::k_tensor_remote_store: {
      if (!written || operands_.empty()) return;
      const View& source = operands_[0].second;
      const Dependency d = in(source, MemorySpace::kVec);
      std::vector<Touch> touches;
      if (d.core < 0 && !source.empty()) touches.push_back(touch_of(source, false));
      if (owner(*written) == rank()) touches.push_back(touch_of(*written, true));
      remote_write(*written, owner(*written), payload(*written), touches, std::span<const Dependency>(&d, 1),
                   name);
      return;
    }
    default:
      break;
  }
  // put and get go through staging tiles, piece by piece (03 O-58, O-59).
  if (!read || !written) return;
  const int64_t bytes = payload(fetches ? *read : *written);
  const int64_t columns = read->rank > 0 ? read->valid[read->rank - 1] : 1;
  const int64_t rows = columns > 0 ? read->valid_elements() / columns : 0;
  int64_t piece = bytes;
  bool two = call.attr_int(AttrKey::k_pipeline, 0) != 0;
  if (insn.op == OpId::k_tile_get || insn.op == OpId::k_tile_put) {
    for (const auto& [param, v] : operands_) {
      if (param == 3 && !v.empty()) piece = v.elements() * dtype_bytes(v.dtype);
      two = two || (param == 4 && !v.empty());
    }
  } else {
    const int64_t chunk_rows = call.attr_int(AttrKey::k_chunk_rows, 0);
    const int64_t chunk_columns = call.attr_int(AttrKey::k_chunk_cols, 0);
    const int64_t r = chunk_rows > 0 ? std::min(chunk_rows, rows) : rows;
    const int64_t c = chunk_columns > 0 ? std::min(chunk_columns, columns) : columns;
    piece = (r * c * dtype_bits(read->dtype) + 7) / 8;
  }
  piece = std::clamp<int64_t>(piece, 1, two ? kMaxPiece / 2 : kMaxPiece);
  const int64_t count = std::max<int64_t>(1, (bytes + piece - 1) / piece);
  if (count > kMaxPieces) piece = (bytes + kMaxPieces - 1) / kMaxPieces;
  const int far = owner(fetches ? *read : *written);
  std::vector<Dependency> out;  // when each staging tile is free again
  Touch from = touch_of(*read, false);
  Touch to = touch_of(*written, true);
  const int core = vector_core();
  size_t number = 0;
  for (int64_t done = 0; done < bytes; done += piece, ++number) {
    const int64_t n = std::min(piece, bytes - done);
    std::vector<Dependency> stage;
    const size_t back = two ? 2 : 1;
    if (number >= back) stage.push_back(out[number - back]);
    const bool near_read = !fetches || far == rank();
    Dependency in_stage =
        near_read ? transfer(core, CorePipe::kMte2, Path::kGmVec, {n, n, true},
                             number == 0 ? std::vector<Touch>{from} : std::vector<Touch>{}, stage,
                             read->buffer->object,
                             check::box_of_range(from.box.begin() + done, from.box.begin() + done + n), name)
                  : remote_read(*read, far, n, {}, stage, name);
    const std::span<const Dependency> after(&in_stage, 1);
    if (fetches) {
      out.push_back(transfer(core, CorePipe::kMte3, Path::kVecGm, {n, n, true},
                             done + piece >= bytes ? std::vector<Touch>{to} : std::vector<Touch>{}, after,
                             written->buffer->object,
                             check::box_of_range(to.box.begin() + done, to.box.begin() + done + n), name));
    } else {
      out.push_back(remote_write(*written, far, n, {}, after, name));
    }
  }
}

}  // namespace pypto::machine
