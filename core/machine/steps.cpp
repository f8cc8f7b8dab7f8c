// SPDX-License-Identifier: Apache-2.0
// Steps of the host program: dispatches and sub-workers, and the order between them.
#include <algorithm>

#include "core/ir/type.h"
#include "core/machine/host.h"
#include "core/machine/simulation.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/written.h"

namespace pypto::machine {
namespace {

bool is_control_plane(const vm::FunctionCode& fn) {
  return fn.level >= ir::Level::kChip || fn.type == ir::FunctionType::kOrchestration;
}

void add(CommCounters& to, const CommCounters& c) {
  to.notify_remote += c.notify_remote;
  to.notify_self += c.notify_self;
  to.wait += c.wait;
  to.remote_load += c.remote_load;
  to.remote_store += c.remote_store;
  to.put += c.put;
  to.get += c.get;
  to.bytes_read += c.bytes_read;
  to.bytes_written += c.bytes_written;
  to.self_bytes += c.self_bytes;
  to.barriers += c.barriers;
  for (const auto& [name, n] : c.collectives) to.collectives[name] += n;
}

}  // namespace

void Simulation::prepare_steps() {
  steps_left_ = static_cast<int64_t>(steps.size());
  for (const auto& step : steps) {
    step->pending = static_cast<int>(step->preds.size());
    for (const auto& p : step->preds) steps[static_cast<size_t>(p.step)]->succs.push_back(step->index);
    if (step->pending == 0) waiting_steps_.push_back(step.get());
  }
}

bool Simulation::startable(const HostStep& step) const {
  if (step.group < 0) return true;
  for (const int g : groups[static_cast<size_t>(step.group)].after) {
    if (!groups[static_cast<size_t>(g)].quiet_seen) return false;
  }
  return true;
}

void Simulation::start_steps() {
  bool again = true;
  while (again) {
    again = false;
    std::vector<HostStep*> held;
    std::vector<HostStep*> now;
    now.swap(waiting_steps_);
    std::sort(now.begin(), now.end(),
              [](const HostStep* a, const HostStep* b) { return a->index < b->index; });
    for (HostStep* step : now) {
      if (!startable(*step)) {
        held.push_back(step);
      } else if (step->callback) {
        run_callback(*step);
        again = true;
      } else {
        start_dispatch(*step);
      }
    }
    waiting_steps_.insert(waiting_steps_.end(), held.begin(), held.end());
  }
}

void Simulation::note_quiet_groups() {
  if (waiting_steps_.empty()) return;
  for (const HostStep* step : waiting_steps_) {
    if (step->group < 0) continue;
    for (const int g : groups[static_cast<size_t>(step->group)].after) {
      Group& group = groups[static_cast<size_t>(g)];
      if (group.quiet_seen) continue;
      group.quiet_seen = std::all_of(group.steps.begin(), group.steps.end(), [&](int i) {
        const HostStep& s = *steps[static_cast<size_t>(i)];
        return s.state == HostStep::State::kDone ||
               (s.state == HostStep::State::kRunning && s.dispatch->active == 0);
      });
    }
  }
}

// ------------------------------------------------------------------ dispatches

void Simulation::bind_dispatch_args(HostStep& step, const vm::FunctionCode& fn, std::vector<ArgValue>* out) {
  for (size_t i = 0; i < step.args.size(); ++i) {
    ArgValue a = step.args[i];
    if (!a.is_view) {
      out->push_back(std::move(a));
      continue;
    }
    const int w = planned_window(a.view);
    if (w >= 0) {
      const Domain& d = domain_of_window(w);
      a.view.buffer = slice(w, d.index_of[static_cast<size_t>(step.rank)]);
      a.name = windows[static_cast<size_t>(w)].name;
    } else {
      a.view = row_view(*this, a.view);
      if (a.view.buffer->object >= 0) a.name = object_of(a.view).name;
    }
    const ir::Type* type = i < fn.params.size() ? fn.params[i].type.get() : nullptr;
    if (type && type->is_tensor()) match_parameter(step, fn, i, *type, w >= 0, &a.view);
    out->push_back(std::move(a));
  }
}

/// Shape and dtype of an argument against its parameter: a packed window is read under the declared shape (03
/// W-23), a host tensor or rank slice must have it (03 D-34).
void Simulation::match_parameter(const HostStep& step, const vm::FunctionCode& fn, size_t param,
                                 const ir::Type& type, bool window, vm::View* v) {
  auto mismatch = [&](const char* id, const char* title, const std::string& what, const char* hint) {
    fail_run(ErrorClass::kProgramFault, id,
             std::string(title) + ": " + what + " (parameter '" + fn.params[param].name + "' of '" + fn.name +
                 "', " + (v->buffer->object >= 0 ? storage_text(*v) : std::string("argument")) +
                 ", declared " + ir::type_text(type) + ", got " + vm::list_text(vm::shape_of(*v).span()) +
                 " " + std::string(dtype_text(v->dtype)) + ")",
             step.site ? step.site->span : Span(), hint);
  };
  if (!same_dtype(type.dtype, v->dtype)) {
    mismatch("X-15", "dtypes differ",
             std::string(dtype_text(v->dtype)) + " is not " + std::string(dtype_text(type.dtype)),
             "make them equal");
  }
  bool same = type.rank() == v->rank;
  for (int i = 0; same && i < v->rank; ++i) {
    same = !type.shape[static_cast<size_t>(i)].is_const() ||
           type.shape[static_cast<size_t>(i)].value == v->shape[i];
  }
  if (same) return;
  if (!window) {
    mismatch("X-16", "shapes differ",
             "a rank slice must have the declared shape in a world of " + std::to_string(ranks) + " ranks",
             "use pl.dynamic(\"NR\") and pld.world_size() for rank counts");
  }
  const int64_t wanted = type.static_elements();
  vm::Extents shape;
  int dynamic = -1;
  int64_t known = 1;
  int unknown = 0;
  for (int i = 0; i < type.rank(); ++i) {
    const ir::Dim& d = type.shape[static_cast<size_t>(i)];
    shape.push(d.is_const() ? d.value : 1);
    if (d.is_const()) {
      known *= d.value;
    } else {
      dynamic = i;
      ++unknown;
    }
  }
  if (wanted < 0 && unknown == 1 && known > 0 && v->elements() % known == 0) {
    shape[dynamic] = v->elements() / known;
  } else if (wanted != v->elements()) {
    mismatch("X-15", "element counts differ",
             std::to_string(v->elements()) + " elements are not " +
                 (wanted >= 0 ? std::to_string(wanted) : std::string("what the declared shape holds")),
             "make them equal");
  }
  v->set_packed(shape.rank, shape.v);
}

void Simulation::start_dispatch(HostStep& step) {
  const vm::FunctionCode& fn = program.functions[static_cast<size_t>(step.fn)];
  step.state = HostStep::State::kRunning;
  step.dispatch = std::make_unique<Dispatch>();
  Dispatch& d = *step.dispatch;
  Device& device = *devices[static_cast<size_t>(step.rank)];
  d.step = &step;
  d.index = step.index;
  d.rank = step.rank;
  d.number = device.dispatches++;
  d.fn = &fn;
  std::vector<check::Clock> after;
  for (const auto& p : step.preds) after.push_back(steps[static_cast<size_t>(p.step)]->end);
  if (checking) d.start = checker->join(after);
  if (timing) timing->begin_dispatch(step, d);
  std::vector<ArgValue> args;
  bind_dispatch_args(step, fn, &args);
  if (!is_control_plane(fn)) {
    // A program that is one kernel: its only task.
    d.orch_done = true;
    Submission s;
    s.fn = &fn;
    s.args = std::move(args);
    s.site = step.site;
    submit(d, nullptr, std::move(s), nullptr);
    return;
  }
  d.orch = std::make_unique<Actor>(*this, Actor::Kind::kOrchestration, d);
  Actor& orch = *d.orch;
  orch.key = {d.rank, d.index, -1, -1, -1};
  orch.fiber = vm::make_fiber(fn);
  vm::Frame& frame = orch.fiber->top();
  for (size_t i = 0; i < args.size(); ++i) {
    const vm::Reg& reg = fn.params[i].reg;
    if (args[i].is_view) {
      frame.v[static_cast<size_t>(reg.index)] = args[i].view;
    } else if (reg.cls == vm::RegClass::kScalar) {
      frame.s[static_cast<size_t>(reg.index)] = args[i].scalar;
    }
  }
  if (checking) orch.id = checker->start(orch.info(), {&d.start, 1});
  for (Diagnostic& diag : vm::bind_symbols(frame)) {
    annotate(diag, orch);
    report(std::move(diag));
  }
  make_runnable(orch);
}

void Simulation::maybe_finish(Dispatch& d) {
  if (!d.orch_done || d.live > 0 || d.step->state != HostStep::State::kRunning) return;
  HostStep& step = *d.step;
  if (checking) step.end = checker->join(d.ends);
  if (timing) timing->end_dispatch(step, d);
  RankReport& rank = run_report.ranks[static_cast<size_t>(d.rank)];
  add(rank.comm, d.comm);
  DispatchRecord record;
  record.rank = d.rank;
  record.index = d.number;
  record.program = d.fn->name;
  record.comm = d.comm;
  record.begin_us = d.begin / 1000;
  record.end_us = d.end / 1000;
  run_report.dispatches.push_back(std::move(record));
  finished_dispatches_.push_back(std::move(step.dispatch));
  finish_step(step);
}

void Simulation::finish_step(HostStep& step) {
  step.state = HostStep::State::kDone;
  step.args.clear();
  --steps_left_;
  for (const int s : step.succs) {
    HostStep& succ = *steps[static_cast<size_t>(s)];
    if (--succ.pending == 0) waiting_steps_.push_back(&succ);
  }
}

// ------------------------------------------------------------------ sub-workers

void Simulation::run_callback(HostStep& step) {
  const vm::FunctionCode& fn = program.functions[static_cast<size_t>(step.fn)];
  step.state = HostStep::State::kRunning;
  std::vector<CallbackArg> args;
  for (size_t i = 0; i < step.args.size(); ++i) {
    const ArgValue& a = step.args[i];
    CallbackArg c;
    c.name = a.name;
    c.is_tensor = a.is_view;
    if (a.is_view) {
      const vm::View v = row_view(*this, a.view);
      if (!v.buffer->written.all) vm::specify_all(*v.buffer);  // the callback may write what it likes
      c.data = v.data();
      c.dtype = v.dtype;
      c.shape.assign(v.shape, v.shape + v.rank);
      c.stride.assign(v.stride, v.stride + v.rank);
    } else {
      c.dtype = fn.params[i].reg.dtype;
      if (is_float(c.dtype)) {
        c.float_value = a.scalar.f;
      } else {
        c.int_value = a.scalar.i;
      }
    }
    args.push_back(std::move(c));
  }
  if (!callback) {
    fail_run(ErrorClass::kValueError, {}, "sub-worker '" + fn.name + "' has no callback",
             step.site ? step.site->span : Span(), "supply it with callbacks={...}");
  }
  std::vector<check::Clock> after;
  for (const auto& p : step.preds) after.push_back(steps[static_cast<size_t>(p.step)]->end);
  if (checking) step.end = checker->join(after);
  if (timing) timing->callback(step);
  try {
    callback(fn.name, fn.host_callable, args);
  } catch (Failure& failure) {
    if (!failure.diagnostic().span.known()) failure.diagnostic().span = fn.span;
    throw;
  }
  finish_step(step);
}

}  // namespace pypto::machine
