// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "core/machine/simulation.h"
#include "core/machine/slice.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/written.h"
#include "core/vm/scalar.h"

namespace pypto::machine {
namespace {

void (*pool_release)(vm::Buffer*) = nullptr;

}  // namespace

int32_t Simulation::add_object(ObjectRecord record, vm::Buffer* buffer) {
  int32_t index;
  if (!free_objects_.empty()) {
    index = free_objects_.back();
    free_objects_.pop_back();
  } else {
    index = static_cast<int32_t>(objects.size());
    objects.emplace_back();
  }
  record.live = true;
  buffer->object = index;
  if (checking) {
    check::ObjectInfo info;
    info.name = record.name;
    info.rank = record.rank;
    info.window = record.window;
    info.data = buffer->data;
    info.bytes = buffer->bytes;
    info.carried = record.carried;
    if (record.window >= 0) {
      info.stride = windows[static_cast<size_t>(record.window)].view_stride;
      info.dtype = windows[static_cast<size_t>(record.window)].view_dtype;
    }
    checker->add_object(index, info);
  }
  objects[static_cast<size_t>(index)] = std::move(record);
  return index;
}

void Simulation::drop_object(int32_t object) {
  ObjectRecord& record = objects[static_cast<size_t>(object)];
  if (!record.live) return;
  record.live = false;
  if (checking) checker->drop_object(object);
  free_objects_.push_back(object);
}

void Simulation::release_created(vm::Buffer* b) {
  auto* sim = static_cast<Simulation*>(b->owner);
  const ObjectRecord& record = sim->objects[static_cast<size_t>(b->object)];
  if (record.heap) sim->devices[static_cast<size_t>(record.rank)]->heap_used -= b->bytes;
  sim->drop_object(b->object);
  b->release = pool_release;
  b->owner = nullptr;
  pool_release(b);
}

vm::View Simulation::created_tensor(const vm::CreateInsn& create, const std::vector<int64_t>& shape, int rank,
                                    bool heap) {
  vm::View v;
  v.dtype = create.dtype;
  const int64_t bytes = packed_bytes(create.dtype, shape.data(), shape.size());
  const auto too_large = [&] {
    fail(ErrorClass::kProgramFault,
         "tensor '" + create.name + "' of shape " + vm::list_text(shape) + " and dtype " +
             std::string(dtype_text(create.dtype)) + " does not fit into the memory of this machine",
         {}, "make it smaller");
  };
  if (bytes >= kMaxBytes) too_large();
  v.set_packed(static_cast<int>(shape.size()), shape.data());
  vm::Buffer* b = nullptr;
  try {
    b = vm::pool_alloc(bytes, !create.has_init || create.init == 0);
  } catch (const std::bad_alloc&) {
    too_large();
  }
  pool_release = b->release;
  b->kind = vm::BufferKind::kGlobal;
  b->release = &Simulation::release_created;
  b->owner = this;
  v.buffer = vm::BufferRef(b);
  // A tensor of the host is zero (03 D-22); others are unspecified until somebody writes them.
  if (!create.has_init && rank >= 0 && vm::marks().on && dtype_bits(create.dtype) >= 8)
    vm::mark_unwritten(*b, vm::marks().origin(vm::Origin::Kind::kCreated, create.name));
  if (create.has_init && create.init != 0)
    vm::fill_elements(b->data, create.dtype, create.init, v.elements());
  ObjectRecord record;
  record.name = create.name;
  record.rank = rank;
  record.manual_dep = create.manual_dep;
  record.heap = heap;
  add_object(std::move(record), b);
  if (heap) devices[static_cast<size_t>(rank)]->heap_used += b->bytes;
  return v;
}

vm::BufferRef Simulation::slice(int window, int member) {
  WindowBuffer& w = windows[static_cast<size_t>(window)];
  vm::BufferRef& slot = w.slices[static_cast<size_t>(member)];
  const bool fresh = !slot;
  if (fresh) slot = Slice::make(w.requested);
  if (slot->object < 0) {
    ObjectRecord record;
    record.carried = !fresh && !(world && world->reset);
    record.name = w.name;
    record.rank = domains[static_cast<size_t>(w.domain)].members[static_cast<size_t>(member)];
    record.window = window;
    add_object(std::move(record), slot.get());
  }
  return slot;
}

void Simulation::make_plain(const vm::View& v) {
  if (v.empty() || v.buffer->kind != vm::BufferKind::kWindow) return;
  int64_t begin = 0, end = 0;
  vm::byte_range(v, &begin, &end);
  Slice::of(v.buffer.get()).make_plain(begin, end);
}

void Simulation::name_cells(const vm::View& signal) {
  WindowBuffer& w = windows[static_cast<size_t>(object_of(signal).window)];
  if (!w.cell_stride.empty()) return;
  w.cell_base = signal.offset / 4;
  w.cell_stride.assign(signal.stride, signal.stride + signal.rank);
}

std::string Simulation::cell_text(int32_t object, int64_t offset) const {
  const ObjectRecord& record = objects[static_cast<size_t>(object)];
  const WindowBuffer* w = record.window >= 0 ? &windows[static_cast<size_t>(record.window)] : nullptr;
  if (!w || w->cell_stride.empty() || offset / 4 < w->cell_base) {
    return record.name + "[" + std::to_string(offset / 4) + "]";
  }
  // Outer axes first; an axis of one cell has any stride.
  std::vector<size_t> order(w->cell_stride.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return w->cell_stride[a] > w->cell_stride[b]; });
  std::vector<int64_t> index(order.size(), 0);
  int64_t left = offset / 4 - w->cell_base;
  for (const size_t i : order) {
    const int64_t stride = std::max<int64_t>(w->cell_stride[i], 1);
    index[i] = left / stride;
    left %= stride;
  }
  std::string text = record.name + "[";
  for (size_t i = 0; i < index.size(); ++i) text += (i ? ", " : "") + std::to_string(index[i]);
  return text + "]";
}

std::string Simulation::storage_text(const vm::View& v) const {
  if (v.empty() || v.buffer->object < 0) return "storage";
  const ObjectRecord& record = objects[static_cast<size_t>(v.buffer->object)];
  if (record.window >= 0) return "window '" + record.name + "' of rank " + std::to_string(record.rank);
  return "tensor '" + record.name + "'";
}

}  // namespace pypto::machine
