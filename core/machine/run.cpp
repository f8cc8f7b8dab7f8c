// SPDX-License-Identifier: Apache-2.0
#include "core/machine/run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "core/base/poll.h"
#include "core/machine/host.h"
#include "core/machine/layouts.h"
#include "core/machine/simulation.h"
#include "core/machine/slice.h"
#include "core/vm/kernels/parallel.h"
#include "core/vm/ops/written.h"

namespace pypto::machine {
namespace {

/// Whether two accesses of the program could ever be unordered: signals, blocks, lanes, manual order.
bool needs_checker(const vm::Program& program, bool* track_tensors) {
  bool needed = false;
  for (const vm::FunctionCode& fn : program.functions) {
    needed =
        needed || !fn.lanes.empty() || fn.type == ir::FunctionType::kGroup || fn.level >= ir::Level::kHost;
    for (const vm::Insn& in : fn.code) {
      if (in.op == vm::Opcode::kScopeBegin && static_cast<ir::ScopeKind>(in.a) == ir::ScopeKind::kManual) {
        *track_tensors = true;
      }
    }
    for (const vm::CreateInsn& c : fn.creates) *track_tensors = *track_tensors || c.manual_dep;
    for (const vm::CallInsn& c : fn.calls) {
      needed = needed || c.core_num.cls != vm::RegClass::kNone;
      for (const uint8_t no : c.no_dep) *track_tensors = *track_tensors || no != 0;
    }
  }
  return needed || *track_tensors;
}

}  // namespace

Simulation::Simulation(const vm::Program& program_in, const RunOptions& options_in,
                       const HostCallback& callback_in, RetainedWorld* world_in, RunReport& report_in)
    : program(program_in),
      options(options_in),
      callback(callback_in),
      world(world_in),
      run_report(report_in),
      policy(options_in) {
  ranks = static_cast<int>(options.device_ids.size());
  run_report = RunReport();
  run_report.world_size = ranks;
  traffic_.resize(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    RankReport rank;
    rank.rank = r;
    run_report.ranks.push_back(std::move(rank));
    devices.push_back(std::make_unique<Device>(cluster_count(program.arch)));
  }
  if (options.delay_remote && !policy.explores()) {
    Diagnostic d;
    d.cls = ErrorClass::kValueError;
    d.severity = Severity::kWarning;
    d.id = "W-DELAY-REMOTE";
    d.message = "SimOptions.delay_remote has an effect only with schedule=\"explore\"";
    run_report.diagnostics.push_back(std::move(d));
  }
  if (options.checks != Checks::kOff && needs_checker(program, &track_tensors)) {
    check::CheckOptions c;
    c.strict = options.checks == Checks::kStrict;
    c.ranks = ranks;
    c.device_ids = options.device_ids;
    c.track_tensors = track_tensors;
    for (const vm::FunctionCode& fn : program.functions)
      c.signals = c.signals || fn.level >= ir::Level::kHost;
    checker = check::make_checker(c, *this);
    checking = true;
  } else {
    checker = check::make_null_checker();
  }
  if (options.device_time || policy.timed() || options.want_timeline) {
    timing = std::make_unique<Timing>(*this, options);
    timing->ordered = policy.timed();
  }
  last_poll_ = std::chrono::steady_clock::now();
}

Simulation::~Simulation() {
  // Buffers report to the object table when they go: drop everything that holds one first.
  runnable_.clear();
  next_.clear();
  log_.clear();
  held_.clear();
  notifies_.clear();
  finished_blocks_.clear();
  finished_dispatches_.clear();
  steps.clear();
  for (WindowBuffer& w : windows) w.slices.clear();
  outputs_.clear();
}

void Simulation::run(int entry, std::vector<HostArg>& host_args) {
  if (options.checks == Checks::kStrict) {
    for (Diagnostic d : program.findings) {
      d.severity = Severity::kError;
      d.cls = ErrorClass::kCompileError;  // 03 X-0: no rank has run yet
      if (!options.collect) throw Failure(std::move(d));
      report(std::move(d));
    }
  }
  const vm::FunctionCode& fn = program.functions[static_cast<size_t>(entry)];
  std::vector<ArgValue> args;
  for (size_t i = 0; i < fn.params.size(); ++i) {
    PYPTO_CHECK(i < host_args.size(), "one argument per parameter");
    const HostArg& h = host_args[i];
    ArgValue a;
    a.name = fn.params[i].name;
    a.is_view = fn.params[i].reg.cls == vm::RegClass::kView;
    if (a.is_view) {
      a.view = host_view(*this, h, a.name);
      if (!h.read_only && !h.device_resident && h.shards.empty()) outputs_.push_back(a.view);
    } else if (is_float(fn.params[i].reg.dtype)) {
      a.scalar.f = h.float_value;
    } else {
      a.scalar.i = h.int_value;
    }
    args.push_back(std::move(a));
  }
  if (fn.level >= ir::Level::kHost) {
    HostPlan plan = plan_host(*this, entry, args);
    steps = std::move(plan.steps);
    windows = std::move(plan.windows);
    domains = std::move(plan.domains);
    groups = std::move(plan.groups);
  } else {
    auto step = std::make_unique<HostStep>();
    step->fn = entry;
    step->args = std::move(args);
    step->rank = 0;
    for (const ArgValue& a : step->args) {
      const ResidentRows* rows = a.is_view ? resident_rows(a.view) : nullptr;
      if (rows && !rows->ranks.empty() && rows->ranks[0] > 0 && rows->ranks[0] < ranks)
        step->rank = rows->ranks[0];
    }
    steps.push_back(std::move(step));
  }
  args.clear();
  const PollScope long_operations([this] { poll_interrupt(); });
  adopt_windows();
  prepare_steps();
  rounds();
  checker->finish(!failed_);
  if (timing) timing->finish();
  if (!failed_) report_unspecified_outputs();
  retain_windows();
  sort_reports();
}

void Simulation::adopt_windows() {
  for (const Domain& d : domains) {
    for (const int w : d.windows) {
      const WindowBuffer& b = windows[static_cast<size_t>(w)];
      WindowRecord r;
      r.domain = d.name;
      r.name = b.name;
      r.ranks = d.members;
      r.requested = b.requested;
      r.reserved = b.reserved;
      r.offset = b.offset;
      run_report.windows.push_back(std::move(r));
    }
    if (!world) continue;
    if (!world->persistent) {
      ++world->groups_created;
      continue;
    }
    auto& retained = world->programs[&program].domains;
    const auto it = retained.find(d.name);
    if (it == retained.end()) {
      ++world->groups_created;
      continue;
    }
    for (const int w : d.windows) {
      WindowBuffer& b = windows[static_cast<size_t>(w)];
      for (auto& old : it->second) {
        if (old.name != b.name) continue;
        if (old.requested != b.requested || old.slices.size() != b.slices.size()) {
          fail_run(ErrorClass::kValueError, {},
                   "persistent window '" + b.name + "' has " + std::to_string(old.requested) + " bytes on " +
                       std::to_string(old.slices.size()) + " ranks, this call needs " +
                       std::to_string(b.requested) + " bytes on " + std::to_string(b.slices.size()),
                   b.span, "keep window sizes equal over the calls of a persistent worker");
        }
        b.slices = old.slices;
        for (const vm::BufferRef& slice : b.slices) {
          if (!slice) continue;
          slice->object = -1;
          if (!world->reset) continue;
          Slice::of(slice.get()).clear();
          vm::specify_all(*slice);
        }
      }
    }
  }
}

void Simulation::retain_windows() {
  if (!world || !world->persistent) return;
  auto& retained = world->programs[&program].domains;
  for (const Domain& d : domains) {
    auto& list = retained[d.name];
    list.clear();
    for (const int w : d.windows) {
      const WindowBuffer& b = windows[static_cast<size_t>(w)];
      for (const vm::BufferRef& slice : b.slices) {
        if (slice && !slice->written.all) vm::forget_origins(*slice);
      }
      list.push_back({b.name, b.requested, b.slices});
    }
  }
}

/// Elements of what the host sees that hold unspecified values (03 M-37), once per line that stored some.
void Simulation::report_unspecified_outputs() {
  struct Found {
    const vm::View* output = nullptr;
    vm::Extents first;
    vm::Mark mark = 0;  ///< of the first element
    int order = 0;      ///< of the line: the first mark that it made
    int64_t count = 0;
  };
  std::map<const void*, Found> by_line;
  for (const vm::View& v : outputs_) {
    if (v.buffer->written.all || vm::specified(v)) continue;
    const int64_t n = v.elements();
    for (int64_t i = 0; i < n; ++i) {
      const vm::Mark mark = vm::cell_mark(v, i);
      if (mark == 0) continue;
      const vm::Origin* origin = vm::marks().find(mark);
      Found& f = by_line[origin ? origin->site : nullptr];
      if (f.count++ > 0) {
        f.order = std::min<int>(f.order, mark);
        continue;
      }
      f.output = &v;
      f.mark = mark;
      f.order = mark;
      f.first = vm::shape_of(v);
      int64_t rest = i;
      for (int a = v.rank - 1; a >= 0; --a) {
        f.first[a] = rest % v.shape[a];
        rest /= v.shape[a];
      }
    }
  }
  std::vector<Found> found;
  for (const auto& [line, f] : by_line) found.push_back(f);
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.order < b.order; });
  for (const Found& f : found) {
    const vm::Mark mark = f.mark;
    const vm::Origin* origin = vm::marks().find(mark);
    Diagnostic d = vm::unspecified_report(
        "an output holds unspecified values",
        "element " + vm::list_text(f.first.span()) + " of '" + object_of(*f.output).name + "' of shape " +
            vm::list_text(vm::shape_of(*f.output).span()) +
            (f.count > 1 ? " and " + std::to_string(f.count - 1) + " more" : std::string()) +
            " are unspecified when the call ends: what was stored there " + vm::marks().why(mark) +
            ", and nothing wrote them later");
    if (f.count == 1) {
      const auto put = [&](const char* from, const char* to) {
        const size_t i = d.message.find(from);
        if (i != std::string::npos) d.message.replace(i, std::string(from).size(), to);
      };
      put(" are unspecified", " is unspecified");
      put("wrote them", "wrote it");
    }
    if (origin) {
      const Diagnostic& place = origin->place;
      d.message += place.message;
      d.rank = place.rank;
      d.core = place.core;
      d.task = place.task;
      d.kernel = place.kernel;
      d.block = place.block;
      d.lane = place.lane;
      if (origin->site) d.span = origin->site->span;
    }
    vm::marks().explain(mark, d);
    d.severity = options.checks == Checks::kStrict ? Severity::kError : Severity::kWarning;
    report(std::move(d));
  }
}

void Simulation::sort_reports() {
  for (int r = 0; r < ranks; ++r) {
    run_report.ranks[static_cast<size_t>(r)].by_peer = std::move(traffic_[static_cast<size_t>(r)]);
  }
  std::stable_sort(run_report.dispatches.begin(), run_report.dispatches.end(),
                   [](const DispatchRecord& a, const DispatchRecord& b) {
                     return std::tie(a.rank, a.index) < std::tie(b.rank, b.index);
                   });
  if (!options.collect) return;
  std::stable_sort(run_report.diagnostics.begin(), run_report.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     const std::string fa = a.span.file ? a.span.file->path : std::string();
                     const std::string fb = b.span.file ? b.span.file->path : std::string();
                     return std::tie(a.rank, fa, a.span.line) < std::tie(b.rank, fb, b.span.line);
                   });
}

// ------------------------------------------------------------------ messages

std::string Simulation::rank_text(int rank) const {
  if (rank < 0) return "host";
  std::string s = "rank " + std::to_string(rank);
  if (rank < ranks) s += " (device " + std::to_string(options.device_ids[static_cast<size_t>(rank)]) + ")";
  return s;
}

void Simulation::annotate(Diagnostic& d, const Actor& actor) const {
  const check::ActorInfo info = actor.info();
  if (d.rank >= 0) return;
  d.rank = info.rank;
  d.core = info.core;
  d.task = info.task;
  d.block = info.block;
  d.lane = info.lane;
  d.kernel = info.kernel ? info.kernel->name : std::string();
  std::string where = rank_text(info.rank);
  if (actor.dispatch.step && actor.dispatch.step->site) {
    where +=
        ", dispatch of '" + actor.dispatch.fn->name + "' at " + actor.dispatch.step->site->span.file_line();
  }
  if (actor.task) {
    where += ", kernel '" + d.kernel + "', task " + std::to_string(info.task) + ", block " +
             std::to_string(info.block) + ", " + info.core;
    if (info.lane >= 0) where += ", lane " + std::to_string(info.lane);
  } else {
    where += ", orchestration '" + d.kernel + "'";
  }
  d.message += " [" + where + "]";
  d.replay = policy.token();
}

std::string Simulation::dispatch_text(int dispatch) const {
  if (dispatch < 0 || static_cast<size_t>(dispatch) >= steps.size()) return {};
  const HostStep& step = *steps[static_cast<size_t>(dispatch)];
  if (step.fn < 0 || !step.site) return {};
  return "'" + program.functions[static_cast<size_t>(step.fn)].name + "' at " + step.site->span.file_line();
}

std::string Simulation::parameter_of(const vm::FunctionCode* kernel, int window) const {
  const auto it = window_params_.find({kernel, window});
  return it == window_params_.end() ? std::string() : it->second;
}

void Simulation::note_others(Diagnostic& d) const {
  constexpr int kShown = 8;
  std::map<int, const Actor*> seen;  // by rank: somebody of it, blocked ones first
  for (const Actor* a : blocked_actors()) seen.emplace(a->dispatch.rank, a);
  // A report that stops the call passes here again on its way out of the actor that made it.
  const auto note = [&](const std::string& text, const Span& span = {}) {
    for (const auto& n : d.notes) {
      if (n.text == text) return;
    }
    d.notes.push_back({text, span});
  };
  int shown = 0;
  for (int r = 0; r < ranks; ++r) {
    if (r == d.rank) continue;
    if (++shown > kShown) {
      note("and " + std::to_string(ranks - kShown - (d.rank >= 0 ? 1 : 0)) + " more ranks");
      return;
    }
    const auto blocked = seen.find(r);
    if (blocked != seen.end()) {
      note(rank_text(r) + " is blocked", blocked->second->span());
      continue;
    }
    bool open = false;
    for (const auto& step : steps) open = open || (step->rank == r && step->state != HostStep::State::kDone);
    note(rank_text(r) + (open ? " is running" : " has finished"));
  }
}

void Simulation::note_places(Diagnostic& d) const {
  constexpr int kShown = 16;
  std::map<int, std::vector<const Actor*>> open;  // by rank
  for (const Actor* a : open_actors()) {
    if (a->state == Actor::State::kRunnable || a->wait.kind != WaitState::Kind::kChildren) {
      open[a->dispatch.rank].push_back(a);
    }
  }
  for (int r = 0; r < std::min(ranks, kShown); ++r) {
    bool left = false;
    for (const auto& step : steps) left = left || (step->rank == r && step->state != HostStep::State::kDone);
    const auto& actors = open[r];
    if (actors.empty())
      d.notes.push_back({rank_text(r) + (left ? " waits for its turn" : " has finished"), {}});
    for (size_t i = 0; i < actors.size() && i < static_cast<size_t>(kShown); ++i) {
      const Actor& a = *actors[i];
      const check::ActorInfo info = a.info();
      const std::string what = a.task ? "kernel '" + info.kernel->name + "' on " + info.core
                                      : "orchestration '" + a.dispatch.fn->name + "'";
      const bool blocked = a.state == Actor::State::kBlocked;
      d.notes.push_back({rank_text(r) + ", " + what + (blocked ? ", is blocked" : ", is running"), a.span()});
    }
    if (actors.size() > static_cast<size_t>(kShown)) {
      const size_t rest = actors.size() - static_cast<size_t>(kShown);
      d.notes.push_back({rank_text(r) + ": and " + std::to_string(rest) + " more", {}});
    }
  }
  if (ranks > kShown) d.notes.push_back({"and " + std::to_string(ranks - kShown) + " more ranks", {}});
}

void Simulation::fail_run(ErrorClass cls, std::string id, std::string message, Span span, std::string hint) {
  Diagnostic d;
  d.cls = cls;
  d.id = std::move(id);
  d.message = std::move(message);
  d.span = std::move(span);
  d.hint = std::move(hint);
  throw Failure(std::move(d));
}

void Simulation::report(Diagnostic d) {
  d.replay = policy.token();
  if (d.severity == Severity::kError) {
    if (!options.collect) checker->decide();  // what was found before comes first
    run_report.ok = false;
    if (!options.collect) {
      note_others(d);
      throw Failure(std::move(d));
    }
    run_report.diagnostics.push_back(std::move(d));
    return;
  }
  // Once per pair of source locations and cause.
  std::string key = d.id + "|" + d.span.text();
  for (const auto& a : d.accesses) key += "|" + a.span.text();
  if (warned_.insert(std::move(key)).second) run_report.diagnostics.push_back(std::move(d));
}

// ------------------------------------------------------------------ entry points

std::shared_ptr<World> make_world(std::vector<int> device_ids, bool persistent, bool reset) {
  return std::make_shared<RetainedWorld>(std::move(device_ids), persistent, reset);
}

void run(const vm::Program& program, int entry, std::vector<HostArg>& args, const RunOptions& options,
         const HostCallback& callback, World* world, RunReport* report) {
  RunReport local;
  RunReport& out = report ? *report : local;
  auto* retained = static_cast<RetainedWorld*>(world);
  const auto start = std::chrono::steady_clock::now();
  auto stop = [&] {
    out.host_time_us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  };
  if (entry < 0) entry = program.entry;
  PYPTO_CHECK(entry >= 0 && entry < static_cast<int>(program.functions.size()), "no entry to run");
  try {
    vm::set_operation_threads(options.threads);
    const vm::MarksOfRun marks(options.checks != Checks::kOff);
    LogicalArrays logical(program.functions[static_cast<size_t>(entry)], args);
    Simulation simulation(program, options, callback, retained, out);
    simulation.run(entry, logical.args());
    stop();
  } catch (Failure& failure) {
    stop();
    out.ok = false;
    if (retained) retained->programs.erase(&program);
    if (failure.diagnostic().id == "interrupted") {
      out.diagnostics.push_back(failure.diagnostic());  // where each rank was (04 DST-34)
      throw;
    }
    if (options.collect && failure.diagnostic().cls != ErrorClass::kInternalError &&
        failure.diagnostic().cls != ErrorClass::kCallbackError) {
      out.diagnostics.push_back(failure.diagnostic());
      return;
    }
    throw;
  }
}

}  // namespace pypto::machine
