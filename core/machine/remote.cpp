// SPDX-License-Identifier: Apache-2.0
// remote_load, remote_store, put, get (03 sections 6.4 - 6.6). The machine's ranks share one address space,
// so a transfer is a copy between slices; what makes it remote is who may see it when, which the checker
// decides.
#include "core/machine/machine_ops.h"
#include "core/machine/simulation.h"
#include "core/vm/ops/region.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using vm::AccessKind;
using vm::ExecStatus;
using vm::Extents;
using vm::View;

std::string operand(const vm::OpCall& call, int param, const char* fallback) {
  std::string name = call.operand_name(param);
  return name.empty() ? fallback : name;
}

[[noreturn]] void out_of_window(const char* operation, const std::string& name, int axis, int64_t offset,
                                int64_t extent, int64_t limit) {
  Diagnostic d;
  d.cls = ErrorClass::kOutOfBoundsError;
  d.id = "X-54";
  d.title = "access outside the window";
  if (offset < 0) {
    d.message = std::string(operation) + ": offset " + std::to_string(offset) + " in dimension " +
                std::to_string(axis) + " of '" + name + "' is negative";
  } else {
    d.message = std::string(operation) + ": '" + name + "' dimension " + std::to_string(axis) + ": offset " +
                std::to_string(offset) + " + extent " + std::to_string(extent) + " = " +
                std::to_string(static_cast<uint64_t>(offset) + static_cast<uint64_t>(extent)) +
                " exceeds the extent " + std::to_string(limit);
  }
  d.hint = "fix the offset";
  throw Failure(std::move(d));
}

void check_inside(const char* operation, const std::string& name, const View& v, const Extents& offset,
                  const Extents& extent) {
  for (int i = 0; i < v.rank; ++i) {
    if (offset[i] < 0 || (extent[i] > 0 && !vm::lies_inside(offset[i], extent[i], v.shape[i]))) {
      out_of_window(operation, name, i, offset[i], extent[i], v.shape[i]);
    }
  }
}

int64_t payload(const View& v) { return (v.valid_elements() * dtype_bits(v.dtype) + 7) / 8; }

/// Counts one transfer with a peer (03 K-1).
void count(Actor& actor, const WindowPlace& place, int peer, int64_t bytes,
           int64_t CommCounters::* operations, int64_t CommCounters::* volume) {
  if (bytes == 0) return;
  CommCounters& comm = actor.dispatch.comm;
  if (peer == place.me) {
    comm.self_bytes += bytes;
    return;
  }
  ++(comm.*operations);
  comm.*volume += bytes;
  actor.sim().count_traffic(actor.dispatch.rank, place.domain->members[static_cast<size_t>(peer)], bytes);
}

/// A transfer that does not start on a 32-byte boundary of the peer's slice (X-55, strict only). What a
/// collective moves is cut by its lowering, which is not the user's to align.
void check_alignment(Actor& actor, const View& v, const char* operation, const std::string& name) {
  if (actor.sim().options.checks != Checks::kStrict || v.offset % 32 == 0) return;
  if (!actor.collective.name.empty()) return;
  Diagnostic d;
  d.cls = ErrorClass::kProgramFault;
  d.severity = Severity::kWarning;
  d.id = "X-55";
  d.title = "transfer start not aligned";
  d.message = std::string(operation) + ": the region of '" + name + "' starts at byte " +
              std::to_string(v.offset) + " of its slice; a transfer must start at a multiple of 32 bytes";
  d.hint = "align the offset";
  d.span = actor.span();
  actor.sim().annotate(d, actor);
  actor.sim().report(std::move(d));
}

/// Bytes on which an uncommitted notify of this core lies are read in the next round (03 M-38).
bool must_wait_for_commit(Actor& actor, const View& read) {
  return read.buffer->kind == vm::BufferKind::kWindow && actor.sim().pending_notify_in(actor, read);
}

}  // namespace

ExecStatus op_remote_load(Actor& actor, vm::OpCall& call) {
  const View& target = call.view(0);
  const std::string name = operand(call, 0, "target");
  const WindowPlace place = window_place(actor, target);
  const int peer = checked_peer(actor, place, call.integer(1), name);
  const Extents offset(call.list(2));
  const Extents shape(call.list(3));
  const Extents wanted = call.has(4) ? Extents(call.list(4)) : shape;
  for (int i = 0; i < wanted.rank; ++i) {
    if (wanted[i] < 0 || wanted[i] > shape[i]) {
      fail(ErrorClass::kProgramFault, "remote_load: valid_shape entry " + std::to_string(wanted[i]) +
                                          " of dimension " + std::to_string(i) + " is outside [0, " +
                                          std::to_string(shape[i]) + "]");
    }
  }
  check_inside("remote_load", name, target, offset, wanted);
  Extents valid = wanted;
  for (int i = 0; i < valid.rank; ++i) {
    valid[i] = std::min(wanted[i], std::max<int64_t>(target.valid[i] - offset[i], 0));
  }
  const View window = vm::window_of(at_peer(actor, place, target, peer), offset, valid);
  if (valid.product() > 0 && must_wait_for_commit(actor, window)) return actor.sim().wait_for_commit(actor);
  View out = vm::alloc_result(call, target.dtype, shape, valid);
  out.pad = target.pad;
  if (valid.product() > 0) {
    // Segments of a ring start where the count of elements has them start, and have a valid shape: the
    // ladder's own is one (03 G-9).
    if (!call.has(4)) check_alignment(actor, window, "remote_load", name);
    actor.record(window, AccessKind::kRead, call.op, peer != place.me, name);
    vm::copy_cells(out, window);
  }
  vm::fill_outside(out);
  count(actor, place, peer, payload(window), &CommCounters::remote_load, &CommCounters::bytes_read);
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

namespace {

/// Whether both views hold the same bytes (the second is packed).
bool same_cells(const View& a, const View& packed) {
  View copy = packed;
  copy.buffer = vm::BufferRef(
      vm::pool_alloc(std::max<int64_t>(packed.elements() * dtype_bytes(packed.dtype), 1), true));
  copy.offset = 0;
  vm::copy_cells(copy, a);
  return std::equal(copy.data(), copy.data() + packed.elements() * dtype_bytes(packed.dtype), packed.data());
}

}  // namespace

ExecStatus op_remote_store(Actor& actor, vm::OpCall& call) {
  const View source = call.view(0);
  const View& target = call.view(1);
  const std::string name = operand(call, 1, "target");
  const WindowPlace place = window_place(actor, target);
  const int peer = checked_peer(actor, place, call.integer(2), name);
  const Extents offset(call.list(3));
  // The two inner extents of the source land in the two inner dimensions; the rest is addressed by offsets.
  Extents extent = vm::expand_front({}, target.rank, 1);
  const int n = std::min(source.rank, target.rank);
  bool empty = false;
  for (int i = 0; i < source.rank; ++i) {
    empty = empty || source.valid[i] == 0;
    if (i < source.rank - 2 && source.valid[i] > 1) {
      fail(ErrorClass::kProgramFault, "remote_store: the source has extent " +
                                          std::to_string(source.valid[i]) + " in leading dimension " +
                                          std::to_string(i) + "; only 1 is possible there");
    }
  }
  for (int i = 0; i < n; ++i) extent[target.rank - 1 - i] = source.valid[source.rank - 1 - i];
  if (empty) return ExecStatus::kDone;
  for (int i = 0; i < target.rank; ++i) {
    if (!vm::lies_inside(offset[i], extent[i], target.shape[i])) {
      out_of_window("remote_store: push exceeds the peer's target region", name, i, offset[i], extent[i],
                    target.shape[i]);
    }
  }
  View cells = vm::valid_region(source);
  if (cells.buffer->kind != vm::BufferKind::kOnChip) {
    if (must_wait_for_commit(actor, cells)) return actor.sim().wait_for_commit(actor);
    actor.record(cells, AccessKind::kRead, call.op, false, operand(call, 0, "src"));
  }
  const View window = vm::window_of(at_peer(actor, place, target, peer), offset, extent);
  check_alignment(actor, window, "remote_store", name);
  // Leading extents of 1 are dropped or added so that both sides have the target's rank.
  View shaped = cells;
  shaped.rank = target.rank;
  for (int i = 0; i < target.rank; ++i) {
    const int from = source.rank - target.rank + i;
    shaped.shape[i] = shaped.valid[i] = from < 0 ? 1 : cells.shape[from];
    shaped.stride[i] = from < 0 ? 0 : cells.stride[from];
  }
  shaped.fully_valid = true;
  const bool atomic = call.attr_int(AttrKey::k_atomic) != 0;
  if (actor.sim().policy.delays_remote() && peer != place.me) {
    DelayedStore d;
    d.data = vm::packed_copy(call, shaped, window.dtype);
    d.target = window;
    d.atomic = atomic;
    Simulation::make_plain(window);
    const bool changes = atomic || !same_cells(window, d.data);
    actor.record(window, atomic ? AccessKind::kAtomic : AccessKind::kWrite, call.op, true, name,
                 changes ? 1 : 0);
    actor.travelling.push_back(std::move(d));
    count(actor, place, peer, payload(window), &CommCounters::remote_store, &CommCounters::bytes_written);
    return ExecStatus::kDone;
  }
  actor.record(window, atomic ? AccessKind::kAtomic : AccessKind::kWrite, call.op, peer != place.me, name, -1,
               atomic ? nullptr : &shaped);
  if (atomic) {
    if (shaped.dtype != window.dtype) shaped = vm::packed_copy(call, shaped, window.dtype);
    vm::add_cells(window, shaped);
  } else {
    vm::copy_cells(window, shaped);
  }
  count(actor, place, peer, payload(window), &CommCounters::remote_store, &CommCounters::bytes_written);
  return ExecStatus::kDone;
}

namespace {

/// Regions of a put or get. The tile forms have two staging operands before the region.
struct Transfer {
  View dst, src;
  std::string dst_name, src_name;
};

Transfer transfer_of(vm::OpCall& call, const char* operation, bool staged) {
  Transfer t;
  const View& dst = call.view(0);
  const View& src = call.view(2);
  t.dst_name = operand(call, 0, "dst");
  t.src_name = operand(call, 2, "src");
  const int first = staged ? 5 : 3;
  if (dst.rank != src.rank && !call.has(first)) {
    fail(ErrorClass::kProgramFault, std::string(operation) + ": 'dst' has rank " + std::to_string(dst.rank) +
                                        " but 'src' has rank " + std::to_string(src.rank));
  }
  if (!call.has(first)) {
    for (int i = 0; i < dst.rank; ++i) {
      if (dst.shape[i] != src.shape[i]) {
        fail(ErrorClass::kProgramFault,
             std::string(operation) + ": whole-slice form needs equal shapes, got " +
                 vm::list_text(vm::shape_of(dst).span()) + " for '" + t.dst_name + "' and " +
                 vm::list_text(vm::shape_of(src).span()) + " for '" + t.src_name + "'");
      }
    }
    t.dst = dst;
    t.src = src;
  } else {
    const Extents dst_offset(call.list(first));
    const Extents src_offset(call.list(first + 1));
    const Extents shape(call.list(first + 2));
    for (int i = 0; i < shape.rank; ++i) {
      if (shape[i] < 0) out_of_window(operation, "shape", i, shape[i], 0, 0);
    }
    if (shape.product() > 0) {
      check_inside(operation, t.dst_name, dst, dst_offset, shape);
      check_inside(operation, t.src_name, src, src_offset, shape);
      t.dst = vm::window_of(dst, dst_offset, shape);
      t.src = vm::window_of(src, src_offset, shape);
    } else {
      t.dst = dst;
      t.src = src;
      t.dst.valid[0] = t.src.valid[0] = 0;
    }
  }
  t.dst.snapshot = t.src.snapshot = vm::BufferRef();
  return t;
}

/// Whole transfers move the physical region; a partial valid region limits them.
View whole(const View& v) {
  View r = v;
  if (r.valid[0] == 0) return r;
  for (int i = 0; i < r.rank; ++i) r.valid[i] = r.shape[i];
  r.fully_valid = true;
  return r;
}

void check_self_overlap(const char* operation, const View& dst, const View& src) {
  if (!(dst.buffer == src.buffer)) return;
  const check::Box a = check::box_of(dst);
  const check::Box b = check::box_of(src);
  if (a == b || !check::overlap(a, b)) return;
  Diagnostic d;
  d.cls = ErrorClass::kProgramFault;
  d.id = "X-54";
  d.title = "overlapping self transfer";
  const check::Range r = check::common_range(a, b);
  d.message = std::string(operation) +
              " with peer = own rank: overlapping self transfer, source and destination share bytes " +
              std::to_string(r.begin) + " to " + std::to_string(r.end) +
              " of the slice but are not identical";
  d.hint = "fix the offset";
  throw Failure(std::move(d));
}

}  // namespace

ExecStatus op_put(Actor& actor, vm::OpCall& call) {
  Transfer t = transfer_of(call, "put", call.op == ir::OpId::k_tile_put);
  const WindowPlace place = window_place(actor, t.dst);
  const int peer = checked_peer(actor, place, call.integer(1), t.dst_name);
  t.dst = whole(at_peer(actor, place, t.dst, peer));
  t.src = whole(t.src);
  if (t.dst.valid_elements() == 0) return ExecStatus::kDone;
  if (must_wait_for_commit(actor, t.src)) return actor.sim().wait_for_commit(actor);
  if (peer == place.me) check_self_overlap("put", t.dst, t.src);
  const bool atomic = call.attr_int(AttrKey::k_atomic) != 0;
  if (t.src.buffer->kind != vm::BufferKind::kOnChip) {
    actor.record(t.src, AccessKind::kRead, call.op, false, t.src_name);
  }
  check_alignment(actor, t.dst, "put", t.dst_name);
  actor.record(t.dst, atomic ? AccessKind::kAtomic : AccessKind::kWrite, call.op, peer != place.me,
               t.dst_name, -1, atomic ? nullptr : &t.src);
  if (atomic) {
    vm::add_cells(t.dst, t.src);
  } else {
    vm::copy_cells(t.dst, t.src);
  }
  count(actor, place, peer, payload(t.dst), &CommCounters::put, &CommCounters::bytes_written);
  return ExecStatus::kDone;
}

ExecStatus op_get(Actor& actor, vm::OpCall& call) {
  Transfer t = transfer_of(call, "get", call.op == ir::OpId::k_tile_get);
  const WindowPlace place = window_place(actor, t.src);
  const int peer = checked_peer(actor, place, call.integer(1), t.src_name);
  t.src = whole(at_peer(actor, place, t.src, peer));
  t.dst = whole(t.dst);
  if (t.src.valid_elements() == 0) return ExecStatus::kDone;
  if (must_wait_for_commit(actor, t.src)) return actor.sim().wait_for_commit(actor);
  if (peer == place.me) check_self_overlap("get", t.dst, t.src);
  check_alignment(actor, t.src, "get", t.src_name);
  actor.record(t.src, AccessKind::kRead, call.op, peer != place.me, t.src_name);
  if (t.dst.buffer->kind != vm::BufferKind::kOnChip) {
    actor.record(t.dst, AccessKind::kWrite, call.op, false, t.dst_name, -1, &t.src);
  }
  vm::copy_cells(t.dst, t.src);
  count(actor, place, peer, payload(t.src), &CommCounters::get, &CommCounters::bytes_read);
  return ExecStatus::kDone;
}

}  // namespace pypto::machine
