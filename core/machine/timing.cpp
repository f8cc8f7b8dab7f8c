// SPDX-License-Identifier: Apache-2.0
#include "core/machine/timing.h"

#include <algorithm>
#include <limits>

#include "core/machine/core_timer.h"
#include "core/machine/simulation.h"

namespace pypto::machine {
namespace {

using trace::Param;

constexpr double kBusy = std::numeric_limits<double>::infinity();
constexpr size_t kMaxEvents = size_t{1} << 21;
constexpr size_t kMaxCellHistory = 256;

uint64_t cell_key(int32_t object, int64_t offset) {
  return static_cast<uint64_t>(object) << 40 | static_cast<uint64_t>(offset);
}

trace::Params make_params(const RunOptions& options, ir::Arch arch) {
  trace::Params p(arch);
  if (!options.hardware) return p;
  for (const auto& [name, keys] : options.hardware->params) {
    // The other architecture's part of the file is checked, too.
    trace::Params other(name == "a5" ? ir::Arch::kA5 : ir::Arch::kA2A3);
    trace::Params& to = other.arch() == arch ? p : other;
    for (const auto& [key, value] : keys) to.set(key, value);
  }
  return p;
}

}  // namespace

Timing::Timing(Simulation& sim, const RunOptions& options)
    : sim_(sim),
      params_(make_params(options, sim.program.arch)),
      level_(options.want_timeline ? options.timeline_level : 0) {
  const auto clusters = static_cast<size_t>(cluster_count(sim.program.arch));
  for (int r = 0; r < sim.ranks; ++r) {
    auto d = std::make_unique<DeviceTime>();
    d->aic.assign(clusters, 0);
    d->aiv.assign(2 * clusters, 0);
    d->threads.assign(std::max<size_t>(1, static_cast<size_t>(params_[Param::k_disp_threads])), 0);
    d->l2 = trace::Server(params_.rate(Param::k_l2_rate));
    d->hbm = trace::Server(params_.rate(Param::k_hbm_rate));
    d->in = trace::Server(params_.rate(Param::k_link_dev));
    d->out = trace::Server(params_.rate(Param::k_link_dev));
    d->resident = std::make_unique<trace::Residency>(params_[Param::k_l2_size]);
    devices_.push_back(std::move(d));
  }
  host_ = params_.ns(Param::k_host_run);
  RunReport& report = sim.run_report;
  report.timed = true;
  report.parameter_source = options.hardware ? options.hardware->name : "default";
  for (const auto& row : params_.rows()) report.parameters.push_back({row.key, row.value, row.tag});
}

// ------------------------------------------------------------------ host and dispatch

void Timing::begin_dispatch(HostStep& step, Dispatch& d) {
  const double submit = host_;
  host_ += params_.ns(Param::k_host_dispatch);
  d.begin = host_;
  for (const auto& p : step.preds) d.begin = std::max(d.begin, sim_.steps[static_cast<size_t>(p.step)]->done);
  d.control = d.end = d.begin;
  if (first_ < 0 || d.begin < first_) first_ = d.begin;
  if (!records(1)) return;
  trace::Event e;
  e.kind = trace::EventKind::kHost;
  e.begin_ns = submit;
  e.end_ns = host_;
  e.peer = d.rank;
  e.name = "dispatch " + d.fn->name;
  e.kernel = d.fn->name;
  if (step.site) e.span = step.site->span;
  record(std::move(e));
}

void Timing::end_dispatch(HostStep& step, Dispatch& d) {
  d.end = std::max(d.end, d.control);
  step.done = d.end;
  last_ = std::max(last_, d.end);
  sim_.run_report.ranks[static_cast<size_t>(d.rank)].device_time_us += (d.end - d.begin) / 1000;
}

void Timing::callback(HostStep& step) {
  // The callback itself takes no time of the devices: what it costs is the host's to measure.
  for (const auto& p : step.preds) host_ = std::max(host_, sim_.steps[static_cast<size_t>(p.step)]->done);
  step.done = host_;
}

void Timing::submitted(Task& task) {
  Dispatch& d = *task.dispatch;
  d.control += params_.ns(Param::k_disp_submit);
  task.time.ready = std::max(task.time.ready, d.control);
}

int Timing::pick(const std::vector<double>& free, double ready) const {
  int best = -1;
  for (size_t i = 0; i < free.size(); ++i) {
    if (free[i] <= ready) return static_cast<int>(i);
    if (free[i] != kBusy && (best < 0 || free[i] < free[static_cast<size_t>(best)]))
      best = static_cast<int>(i);
  }
  return best;
}

void Timing::start_block(Block& block) {
  Task& task = *block.task;
  DeviceTime& device = *devices_[static_cast<size_t>(task.dispatch->rank)];
  block.time = std::make_unique<BlockTime>(params_);
  BlockTime& t = *block.time;
  double from = task.time.ready;
  int cluster = 0;
  if (task.core == vm::CoreKind::kMixed) {
    // A cluster is free when its cores are; one with a running block only if there is no other.
    std::vector<double> free(device.aic.size());
    for (size_t c = 0; c < free.size(); ++c)
      free[c] = std::max({device.aic[c], device.aiv[2 * c], device.aiv[2 * c + 1]});
    cluster = pick(free, from);
    if (cluster < 0) cluster = block.cores.aic;
    t.aic = cluster;
    t.aiv[0] = 2 * cluster;
    t.aiv[1] = 2 * cluster + 1;
  } else if (task.core == vm::CoreKind::kCube) {
    cluster = pick(device.aic, from);
    if (cluster < 0) cluster = block.cores.aic;
    t.aic = cluster;
  } else {
    int core = pick(device.aiv, from);
    if (core < 0) core = block.cores.aiv0;
    t.aiv[0] = core;
    cluster = core / 2;
  }
  const auto take = [&](double& free, int clock) {
    if (free != kBusy) from = std::max(from, free);
    free = kBusy;
    t.clock.core[clock].exists = true;
  };
  if (t.aic >= 0) take(device.aic[static_cast<size_t>(t.aic)], 0);
  for (int k = 0; k < 2; ++k) {
    if (t.aiv[k] >= 0) take(device.aiv[static_cast<size_t>(t.aiv[k])], 1 + k);
  }
  double& thread = device.threads[static_cast<size_t>(cluster) * device.threads.size() / device.aic.size()];
  t.served = thread = std::max(thread, from) + params_.ns(Param::k_disp_serve);
  t.start = t.served + params_.ns(Param::k_disp_start);
  for (auto& core : t.clock.core) {
    core.s = t.start;
    for (double& free : core.free) free = t.start;
  }
  if (task.time.first < 0 || t.start < task.time.first) task.time.first = t.start;
}

void Timing::end_block(Block& block) {
  Task& task = *block.task;
  BlockTime& t = *block.time;
  DeviceTime& device = *devices_[static_cast<size_t>(task.dispatch->rank)];
  double end = t.start;
  for (const auto& core : t.clock.core) {
    if (core.exists) end = std::max({end, core.drained(), core.posted});
  }
  const auto cubes = static_cast<int>(device.aic.size());
  std::vector<int> cores;
  if (t.aic >= 0) {
    device.aic[static_cast<size_t>(t.aic)] = end;
    cores.push_back(t.aic);
  }
  for (const int v : t.aiv) {
    if (v < 0) continue;
    device.aiv[static_cast<size_t>(v)] = end;
    cores.push_back(cubes + v);
  }
  task.time.last = std::max(task.time.last, end);
  if (task.record >= 0) {
    TaskRecord& r = sim_.run_report.tasks[static_cast<size_t>(task.record)];
    for (const int core : cores)
      r.runs.push_back({core, block.index, t.served / 1000, t.start / 1000, end / 1000});
  }
}

void Timing::completed(Task& task) {
  Dispatch& d = *task.dispatch;
  TaskTime& t = task.time;
  const bool ran = t.first >= 0;
  t.last = std::max(t.last, t.ready);
  t.seen = ran ? t.last + params_.ns(Param::k_disp_seen) : t.last;
  d.end = std::max(d.end, t.seen);
  d.seen.emplace(task.handle, t.seen);
  for (Actor* actor : d.blocked_on_tasks) {
    const auto& w = actor->wait;
    const bool mine = w.kind != WaitState::Kind::kTasks ||
                      std::find(w.tasks.begin(), w.tasks.end(), task.handle) != w.tasks.end();
    if (mine) d.control = std::max(d.control, t.seen);
  }
  if (task.record >= 0) {
    TaskRecord& r = sim_.run_report.tasks[static_cast<size_t>(task.record)];
    r.start_us = (ran ? t.first : t.last) / 1000;
    r.end_us = t.last / 1000;
    r.seen_us = t.seen / 1000;
  }
}

double Timing::seen(const Dispatch& d, int64_t handle) const {
  const auto found = d.seen.find(handle);
  return found == d.seen.end() ? 0 : found->second;
}

// ------------------------------------------------------------------ memory and links

double Timing::memory(int rank, double start, double alpha, double end, int64_t bytes, int64_t object,
                      const check::Box& box) {
  DeviceTime& d = *devices_[static_cast<size_t>(rank)];
  end = std::max(end, d.l2.serve(start + alpha, static_cast<double>(bytes)));
  const int64_t missed = object < 0 ? 0 : std::min(bytes, d.resident->touch(object, box));
  if (missed > 0) end = std::max(end, d.hbm.serve(start + alpha, static_cast<double>(missed)));
  return end;
}

double Timing::link(int from, int to, double start, double alpha, double end, int64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  const auto pair = pairs_.try_emplace({from, to}, params_.rate(Param::k_link_pair)).first;
  end = std::max(end, pair->second.serve(start + alpha, amount));
  end = std::max(end, devices_[static_cast<size_t>(from)]->out.serve(start + alpha, amount));
  return std::max(end, devices_[static_cast<size_t>(to)]->in.serve(start + alpha, amount));
}

// ------------------------------------------------------------------ signals

void Timing::raised(int32_t object, int64_t offset, int32_t after, bool set, double visible, int64_t flow) {
  std::vector<CellTime>& list = cells_[cell_key(object, offset)];
  if (set) list.clear();
  if (list.size() >= kMaxCellHistory) list.erase(list.begin(), list.begin() + kMaxCellHistory / 2);
  CellTime c;
  c.after = after;
  c.upto = list.empty() ? visible : std::max(visible, list.back().upto);
  c.flow = flow;
  list.push_back(c);
}

Timing::Seen Timing::visible(int32_t object, int64_t offset, ir::WaitCmp cmp, int32_t expected) const {
  Seen seen;
  const auto found = cells_.find(cell_key(object, offset));
  if (found == cells_.end()) return seen;
  const std::vector<CellTime>& list = found->second;
  for (size_t i = list.size(); i-- > 0;) {
    const bool met = cmp == ir::WaitCmp::kEq ? list[i].after == expected : list[i].after >= expected;
    if (!met) break;
    seen.time = list[i].upto;
    seen.flow = list[i].flow;
  }
  return seen;
}

// ------------------------------------------------------------------ timeline

void Timing::record(trace::Event e) {
  auto& events = sim_.run_report.events;
  if (events.size() < kMaxEvents) events.push_back(std::move(e));
}

void Timing::finish() {
  sim_.run_report.device_time_us = first_ < 0 ? 0 : std::max(0.0, last_ - first_) / 1000;
}

}  // namespace pypto::machine
