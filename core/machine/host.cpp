// SPDX-License-Identifier: Apache-2.0
#include "core/machine/host.h"

#include <algorithm>
#include <string_view>

#include "core/machine/simulation.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/written.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using ir::OpId;
using vm::ExecStatus;

constexpr int64_t kWindowMemory = int64_t{4} << 30;  // 03 W-15

void release_host(vm::Buffer* b) {
  delete static_cast<ResidentRows*>(b->owner);
  vm::specify_all(*b);
  delete b;
}
void release_plain(vm::Buffer* b) {
  vm::specify_all(*b);
  delete b;
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
/// 03 W-11.
int64_t reserved_bytes(int64_t requested) {
  return round_up(std::max<int64_t>(4096, round_up(requested, 32) + 256), 32);
}

/// The Env of the host body.
class HostPlanner final : public vm::Env {
 public:
  HostPlanner(Simulation& sim, HostPlan& plan, const std::vector<int>& domain_sizes)
      : sim_(sim), plan_(plan), domain_sizes_(domain_sizes) {}

  bool asked_for_size() const { return asked_for_size_; }

  ExecStatus machine_op(vm::OpCall& call) override {
    switch (call.op) {
      case OpId::k_world_size:
        call.set_result(vm::scalar_of(int64_t{sim_.ranks}));
        return ExecStatus::kDone;
      case OpId::k_alloc_window_buffer:
        call.set_result(vm::scalar_of(int64_t{allocate(call)}));
        return ExecStatus::kDone;
      case OpId::k_window:
        call.set_result(view(call));
        return ExecStatus::kDone;
      case OpId::k_get_comm_ctx:
        call.set_result(vm::scalar_of(int64_t{planned_window(call.view(0))}));
        return ExecStatus::kDone;
      case OpId::k_nranks: {
        const auto w = static_cast<size_t>(call.integer(0));
        asked_for_size_ = true;
        const int n = w < domain_sizes_.size() ? domain_sizes_[w] : sim_.ranks;
        call.set_result(vm::scalar_of(int64_t{n}));
        return ExecStatus::kDone;
      }
      case OpId::k_no_dep:
        call.set_result(call.view(0));
        return ExecStatus::kDone;
      case OpId::k_task_invalid:
        call.set_result(vm::scalar_of(int64_t{0}));
        return ExecStatus::kDone;
      case OpId::k_dump_tag:
        return ExecStatus::kDone;
      default:
        break;
    }
    PYPTO_CHECK(false, std::string("operation '") + ir::op_row(call.op).name + "' in a host orchestrator");
  }

  ExecStatus call(const vm::CallInsn& call, vm::Frame& frame) override;

  vm::View create(const vm::CreateInsn& create, const std::vector<int64_t>& shape) override {
    return sim_.created_tensor(create, shape, -1, false);
  }
  ExecStatus order_element(const vm::View&, vm::AccessKind) override { return ExecStatus::kDone; }
  void access(const vm::View&, vm::AccessKind) override {}
  void warn(const char* id, std::string text) override {
    if (std::string_view(id) == "W-NEGATIVE-DIVIDEND") return;  // a matter of device code (01 L-17)
    Diagnostic d;
    d.cls = ErrorClass::kProgramFault;
    d.severity = sim_.options.checks == Checks::kStrict ? Severity::kError : Severity::kWarning;
    d.id = id;
    d.message = std::move(text);
    if (const vm::Site* s = fiber->site()) d.span = s->span;
    if (sim_.options.checks != Checks::kOff) sim_.report(std::move(d));
  }
  void scope(bool, ir::ScopeKind) override {}
  void spawn(std::unique_ptr<vm::Fiber>, int) override { PYPTO_CHECK(false, "lanes in a host orchestrator"); }
  bool join() override { return true; }
  std::vector<std::unique_ptr<vm::Fiber>>& children() override { return children_; }

  vm::Fiber* fiber = nullptr;

 private:
  int allocate(vm::OpCall& call);
  vm::View view(vm::OpCall& call);
  int group_of(const vm::CallInsn& call, int rank);
  int device_of(const vm::CallInsn& call, const vm::Frame& frame, const std::vector<ArgValue>& args);
  /// Resident rows stay where they are: each must go to the rank that holds it (04 DEV-8).
  void check_holders(const std::vector<ArgValue>& args, int rank);
  void order(HostStep& step, const vm::FunctionCode& fn);

  Simulation& sim_;
  HostPlan& plan_;
  const std::vector<int>& domain_sizes_;
  bool asked_for_size_ = false;
  std::vector<std::unique_ptr<vm::Fiber>> children_;
  RegionTable regions_;
  std::map<int, int> last_on_rank_;
  int last_callback_ = -1;
  int unpinned_ = 0;
  struct OpenGroup {
    int group = -1;
    std::set<int> ranks;
  };
  std::map<const vm::CallInsn*, OpenGroup> open_groups_;
  std::map<int, int> last_group_of_window_;
};

int HostPlanner::allocate(vm::OpCall& call) {
  std::string name = call.attrs->get_string(AttrKey::k_name);
  const vm::Site* site = fiber->site();
  if (name.empty() && site) name = site->what;
  int64_t bytes = 0;
  const vm::Extents shape = vm::param_list(call, 0, AttrKey::k_shape);
  if (call.has_attr(AttrKey::k_dtype)) {
    const auto dtype = static_cast<DType>(call.attr_int(AttrKey::k_dtype));
    bytes = packed_bytes(dtype, shape.v, static_cast<size_t>(shape.rank));
    for (int i = 0; i < shape.rank; ++i) {
      if (shape[i] < 0) bytes = -1;
    }
  } else {
    bytes = vm::param_int(call, 0, AttrKey::k_size, 0);
  }
  // A computed extent may be 0: 2 * (world_size() - 1) rows in a world of one rank, a call without elements.
  if (bytes < 0) {
    fail(ErrorClass::kValueError, "alloc_window_buffer '" + name + "': no dimension may be negative, got " +
                                      (shape.rank > 0 ? vm::list_text(shape.span()) : std::to_string(bytes)));
  }
  for (const WindowBuffer& w : plan_.windows) {
    if (w.name != name) continue;
    // Written in a loop: one buffer all the same (03 W-4).
    if (w.requested != bytes) {
      fail(ErrorClass::kProgramFault,
           "window buffer '" + name + "' was allocated with " + std::to_string(w.requested) +
               " bytes and again with " + std::to_string(bytes) + " bytes",
           {}, "hoist the allocation above the loop");
    }
    return w.index;
  }
  WindowBuffer w;
  w.index = static_cast<int>(plan_.windows.size());
  w.name = name;
  w.requested = bytes;
  w.reserved = reserved_bytes(bytes);
  if (site) w.span = site->span;
  plan_.windows.push_back(std::move(w));
  return plan_.windows.back().index;
}

vm::View HostPlanner::view(vm::OpCall& call) {
  WindowBuffer& w = plan_.windows[static_cast<size_t>(call.integer(0))];
  const vm::Extents shape = vm::param_list(call, 1, AttrKey::k_shape);
  const auto dtype = static_cast<DType>(call.attr_int(AttrKey::k_dtype));
  vm::View v;
  v.dtype = dtype;
  v.set_packed(shape.rank, shape.v);
  const int64_t needed = packed_bytes(dtype, shape.v, static_cast<size_t>(shape.rank));
  if (needed > w.requested) {
    Diagnostic d;
    d.cls = ErrorClass::kProgramFault;
    d.id = "X-13";
    d.title = "view larger than its buffer";
    d.message = "window '" + w.name + "': a view of shape " + vm::list_text(shape.span()) + " and dtype " +
                std::string(dtype_text(dtype)) + " needs " + std::to_string(needed) +
                " bytes, the buffer has " + std::to_string(w.requested);
    d.hint = "use the shape form of alloc_window_buffer; the scalar form counts bytes";
    throw Failure(std::move(d));
  }
  if (w.view_stride.empty()) {
    w.view_stride.assign(v.stride, v.stride + v.rank);
    w.view_dtype = v.dtype;
  }
  auto* b = new vm::Buffer();
  b->kind = vm::BufferKind::kWindow;
  b->object = -2 - w.index;
  b->bytes = w.requested;
  b->release = &release_plain;
  v.buffer = vm::BufferRef(b);
  return v;
}

int HostPlanner::group_of(const vm::CallInsn& call, int rank) {
  OpenGroup& open = open_groups_[&call];
  if (open.group < 0 || call.group_site < 0 || !open.ranks.insert(rank).second) {
    open.group = static_cast<int>(plan_.groups.size());
    open.ranks = {rank};
    Group g;
    g.index = open.group;
    plan_.groups.push_back(std::move(g));
  }
  return open.group;
}

int HostPlanner::device_of(const vm::CallInsn& call, const vm::Frame& frame,
                           const std::vector<ArgValue>& args) {
  if (call.device.cls == vm::RegClass::kScalar) {
    const int64_t rank = frame.s[static_cast<size_t>(call.device.index)].i;
    if (rank >= 0 && rank < sim_.ranks) return static_cast<int>(rank);
    std::string ids;
    for (size_t i = 0; i < sim_.options.device_ids.size() && i < 16; ++i) {
      ids += (i ? ", " : "") + std::to_string(sim_.options.device_ids[i]);
    }
    if (sim_.options.device_ids.size() > 16) ids += ", ...";
    Diagnostic d;
    d.cls = ErrorClass::kProgramFault;
    d.id = "X-6";
    d.title = "device index out of range";
    d.message = "device=" + std::to_string(rank) + " is outside [0, " + std::to_string(sim_.ranks) +
                ") (device_ids [" + ids + "])";
    d.hint = "fix the loop bound or device_ids";
    throw Failure(std::move(d));
  }
  for (const ArgValue& a : args) {
    if (!a.is_view) continue;
    const ResidentRows* rows = resident_rows(a.view);
    if (!rows || rows->ranks.empty()) continue;
    const int64_t row = rows->stacked && rows->row_bytes > 0 ? a.view.offset / rows->row_bytes : 0;
    const int rank = rows->ranks[static_cast<size_t>(
        std::min<int64_t>(row, static_cast<int64_t>(rows->ranks.size()) - 1))];
    if (rank >= 0 && rank < sim_.ranks) return rank;
  }
  return unpinned_++ % sim_.ranks;
}

void HostPlanner::check_holders(const std::vector<ArgValue>& args, int rank) {
  for (const ArgValue& a : args) {
    const ResidentRows* rows = a.is_view ? resident_rows(a.view) : nullptr;
    if (!rows || rows->ranks.empty()) continue;
    const int64_t row = rows->stacked && rows->row_bytes > 0 ? a.view.offset / rows->row_bytes : 0;
    if (row >= static_cast<int64_t>(rows->ranks.size())) continue;
    const int holder = rows->ranks[static_cast<size_t>(row)];
    if (holder == rank || holder < 0) continue;
    fail(ErrorClass::kValueError,
         (rows->stacked ? "row " + std::to_string(row) + " of " : std::string()) + "the resident argument " +
             sim_.storage_text(a.view) + " lives on rank " + std::to_string(holder) +
             " but is dispatched to rank " + std::to_string(rank) +
             "; dispatch it with device=" + std::to_string(holder) + ", or upload it to the other rank");
  }
}

void HostPlanner::order(HostStep& step, const vm::FunctionCode& fn) {
  auto after = [&](int pred, std::string reason) {
    if (pred < 0 || pred == step.index) return;
    for (auto& p : step.preds) {
      if (p.step == pred) return;
    }
    step.preds.push_back({pred, std::move(reason)});
  };
  for (const bool add : {false, true}) {
    for (size_t i = 0; i < step.args.size(); ++i) {
      const ArgValue& a = step.args[i];
      if (!a.is_view || a.view.empty() || planned_window(a.view) >= 0) continue;
      const bool write = i < fn.params.size() && fn.params[i].effective != ir::ParamDirection::kIn;
      const check::Box box = check::box_of(a.view);
      if (add) {
        regions_.add(a.view.buffer, step, box, write, 0, static_cast<int32_t>(i));
        continue;
      }
      std::vector<RegionTable::Conflict> conflicts;
      regions_.query(a.view.buffer.get(), box, write, 0, write, &conflicts);
      for (const auto& c : conflicts) {
        after(static_cast<HostStep*>(c.owner)->index, sim_.storage_text(a.view));
      }
    }
  }
  if (step.callback) {
    after(last_callback_, {});
    last_callback_ = step.index;
    return;
  }
  const auto [it, fresh] = last_on_rank_.try_emplace(step.rank, step.index);
  if (!fresh) after(std::exchange(it->second, step.index), {});
}

ExecStatus HostPlanner::call(const vm::CallInsn& call, vm::Frame& frame) {
  const vm::FunctionCode& fn = sim_.program.functions[static_cast<size_t>(call.callee)];
  auto owned = std::make_unique<HostStep>();
  HostStep& step = *owned;
  step.index = static_cast<int>(plan_.steps.size());
  step.fn = call.callee;
  step.call = &call;
  step.site = fiber->site();
  step.callback = fn.role == ir::Role::kSubWorker;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const vm::Reg& reg = call.args[i];
    ArgValue a;
    a.is_view = reg.cls == vm::RegClass::kView;
    if (a.is_view) {
      a.view = frame.v[static_cast<size_t>(reg.index)];
      a.view.snapshot = vm::BufferRef();
    } else if (reg.cls == vm::RegClass::kScalar) {
      a.scalar = frame.s[static_cast<size_t>(reg.index)];
    }
    if (i < fn.params.size()) a.name = fn.params[i].name;
    step.args.push_back(std::move(a));
  }
  if (!step.callback) {
    step.rank = device_of(call, frame, step.args);
    check_holders(step.args, step.rank);
    step.group = group_of(call, step.rank);
    Group& group = plan_.groups[static_cast<size_t>(step.group)];
    for (const ArgValue& a : step.args) {
      const int w = a.is_view ? planned_window(a.view) : -1;
      if (w < 0) continue;
      plan_.windows[static_cast<size_t>(w)].ranks.push_back(step.rank);
      const auto [it, fresh] = last_group_of_window_.try_emplace(w, step.group);
      if (!fresh && it->second != step.group) {
        const int before = std::exchange(it->second, step.group);
        if (std::find(group.after.begin(), group.after.end(), before) == group.after.end()) {
          group.after.push_back(before);
        }
      }
    }
    group.steps.push_back(step.index);
  }
  order(step, fn);
  for (size_t k = 0; k < call.results.size(); ++k) {
    const vm::Reg& reg = call.results[k];
    if (reg.cls != vm::RegClass::kView) continue;
    const int param = k < fn.result_params.size() ? fn.result_params[k] : -1;
    PYPTO_CHECK(param >= 0, "result of '" + fn.name + "' is not the storage of a parameter");
    frame.v[static_cast<size_t>(reg.index)] = step.args[static_cast<size_t>(param)].view;
  }
  plan_.steps.push_back(std::move(owned));
  return ExecStatus::kDone;
}

/// Device sets, domains and offsets (03 D-50 - D-52, W-12).
void make_domains(Simulation& sim, HostPlan& plan) {
  std::map<std::vector<int>, int> by_set;
  for (WindowBuffer& w : plan.windows) {
    std::sort(w.ranks.begin(), w.ranks.end());
    w.ranks.erase(std::unique(w.ranks.begin(), w.ranks.end()), w.ranks.end());
    if (w.ranks.empty()) continue;  // allocated in a branch that was not taken
    const auto [it, fresh] = by_set.try_emplace(w.ranks, static_cast<int>(plan.domains.size()));
    if (fresh) {
      Domain d;
      d.name = "comm_d" + std::to_string(plan.domains.size());
      d.members = w.ranks;
      d.index_of.assign(static_cast<size_t>(sim.ranks), -1);
      for (size_t i = 0; i < d.members.size(); ++i)
        d.index_of[static_cast<size_t>(d.members[i])] = static_cast<int>(i);
      plan.domains.push_back(std::move(d));
    }
    Domain& d = plan.domains[static_cast<size_t>(it->second)];
    w.domain = it->second;
    for (const int other : d.windows) w.offset += plan.windows[static_cast<size_t>(other)].reserved;
    d.windows.push_back(w.index);
    w.slices.resize(d.members.size());
  }
}

void check_window_memory(Simulation& sim, const HostPlan& plan) {
  std::vector<int64_t> total(static_cast<size_t>(sim.ranks), 0);
  for (const WindowBuffer& w : plan.windows) {
    for (const int r : w.ranks) total[static_cast<size_t>(r)] += w.reserved;
  }
  for (int r = 0; r < sim.ranks; ++r) {
    if (total[static_cast<size_t>(r)] <= kWindowMemory) continue;
    std::vector<const WindowBuffer*> sorted;
    for (const WindowBuffer& w : plan.windows) {
      if (std::find(w.ranks.begin(), w.ranks.end(), r) != w.ranks.end()) sorted.push_back(&w);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const WindowBuffer* a, const WindowBuffer* b) { return a->reserved > b->reserved; });
    std::string list;
    for (const WindowBuffer* w : sorted) {
      list += (list.empty() ? "'" : ", '") + w->name + "' " + std::to_string(w->reserved);
    }
    sim.fail_run(ErrorClass::kProgramFault, "W-15",
                 "device " + std::to_string(sim.options.device_ids[static_cast<size_t>(r)]) + " (rank " +
                     std::to_string(r) + ") needs " + std::to_string(total[static_cast<size_t>(r)]) +
                     " bytes of window memory, available are " + std::to_string(kWindowMemory) + ": " + list,
                 {}, "make the largest windows smaller");
  }
}

}  // namespace

int planned_window(const vm::View& v) {
  return !v.empty() && v.buffer->kind == vm::BufferKind::kWindow && v.buffer->object <= -2
             ? -2 - v.buffer->object
             : -1;
}

ResidentRows* resident_rows(const vm::View& v) {
  return !v.empty() && v.buffer->release == &release_host ? static_cast<ResidentRows*>(v.buffer->owner)
                                                          : nullptr;
}

vm::View row_view(Simulation& sim, const vm::View& v) {
  ResidentRows* rows = resident_rows(v);
  if (!rows || !rows->stacked || rows->row_bytes == 0) return v;
  const auto row = static_cast<size_t>(v.offset / rows->row_bytes);
  if (check::box_of(v).end() > static_cast<int64_t>(row + 1) * rows->row_bytes || row >= rows->rows.size()) {
    fail(ErrorClass::kValueError, sim.storage_text(v) +
                                      " is stacked: its rows live on different devices and can be "
                                      "passed only one at a time (x[r])");
  }
  rows->buffers.resize(rows->rows.size());
  vm::BufferRef& slot = rows->buffers[row];
  if (!slot) {
    auto* b = new vm::Buffer();
    b->kind = vm::BufferKind::kGlobal;
    b->data = rows->rows[row];
    b->bytes = rows->row_bytes;
    b->release = &release_plain;
    slot = vm::BufferRef(b);
    ObjectRecord record;
    record.name = sim.object_of(v).name;
    sim.add_object(std::move(record), b);
  }
  vm::View r = v;
  r.buffer = slot;
  r.offset -= static_cast<int64_t>(row) * rows->row_bytes;
  return r;
}

vm::View host_view(Simulation& sim, const HostArg& arg, const std::string& name) {
  vm::View v;
  v.dtype = arg.dtype;
  v.set_packed(static_cast<int>(arg.shape.size()), arg.shape.data());
  auto* b = new vm::Buffer();
  b->kind = vm::BufferKind::kGlobal;
  b->data = arg.data;
  b->bytes = (v.elements() * dtype_bits(arg.dtype) + 7) / 8;
  b->read_only = arg.read_only;
  b->release = &release_plain;
  v.buffer = vm::BufferRef(b);
  if (arg.device_resident || !arg.shards.empty()) {
    auto rows = std::make_unique<ResidentRows>();
    if (arg.shards.empty()) {
      rows->rows = {arg.data};
      rows->ranks = {arg.rank};
    } else {
      rows->rows = arg.shards;
      rows->ranks = arg.shard_ranks;
      rows->stacked = true;
      rows->row_bytes = arg.shape.empty() || arg.shape[0] == 0 ? 0 : b->bytes / arg.shape[0];
    }
    b->owner = rows.release();
    b->release = &release_host;
  }
  ObjectRecord record;
  record.name = name;
  sim.add_object(std::move(record), b);
  if (arg.unwritten && vm::marks().on && dtype_bits(arg.dtype) >= 8)
    vm::mark_unwritten(*b, vm::marks().origin(vm::Origin::Kind::kHeld, name));
  return v;
}

HostPlan plan_host(Simulation& sim, int entry, const std::vector<ArgValue>& args) {
  const vm::FunctionCode& fn = sim.program.functions[static_cast<size_t>(entry)];
  std::vector<int> domain_sizes;
  for (int attempt = 0;; ++attempt) {
    HostPlan plan;
    HostPlanner planner(sim, plan, domain_sizes);
    auto fiber = vm::make_fiber(fn);
    planner.fiber = fiber.get();
    vm::Frame& frame = fiber->top();
    for (size_t i = 0; i < args.size(); ++i) {
      const vm::Reg& reg = fn.params[i].reg;
      if (args[i].is_view) {
        frame.v[static_cast<size_t>(reg.index)] = args[i].view;
      } else if (reg.cls == vm::RegClass::kScalar) {
        frame.s[static_cast<size_t>(reg.index)] = args[i].scalar;
      }
    }
    for (Diagnostic& d : vm::bind_symbols(frame)) sim.report(std::move(d));
    const auto go = [&] {
      try {
        return vm::run(*fiber, sim.program, planner, uint64_t{1} << 20);
      } catch (Failure& failure) {
        Diagnostic& d = failure.diagnostic();
        if (d.id == "X-16") d.message += "; the world has " + std::to_string(sim.ranks) + " ranks";
        throw;
      }
    };
    while (go() != vm::RunStatus::kDone) {
      if (sim.options.interrupted && sim.options.interrupted()) {
        sim.fail_run(ErrorClass::kRuntimeError, "interrupted",
                     "interrupted in the host orchestrator '" + fn.name + "'", {}, {});
      }
    }
    for (const auto& step : plan.steps) step->regions.clear();
    make_domains(sim, plan);
    std::vector<int> sizes;
    for (const WindowBuffer& w : plan.windows) sizes.push_back(static_cast<int>(w.ranks.size()));
    // nranks() on the host is the size of a domain, which is known only now (03 O-13).
    if (planner.asked_for_size() && sizes != domain_sizes && attempt < 8) {
      domain_sizes = std::move(sizes);
      continue;
    }
    check_window_memory(sim, plan);
    return plan;
  }
}

}  // namespace pypto::machine
