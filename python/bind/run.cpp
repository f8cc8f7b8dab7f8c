// SPDX-License-Identifier: Apache-2.0
#include "core/machine/run.h"

#include <atomic>
#include <chrono>

#include "core/trace/core_clock.h"
#include "python/bind/args.h"
#include "python/bind/gil.h"
#include "python/bind/host.h"

namespace pypto::bind {
namespace {

using machine::RunOptions;
using machine::RunReport;

struct PyOptions {
  RunOptions options;
  std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);
};

struct PyReport {
  std::shared_ptr<RunReport> report;
};

struct PyWorld {
  std::shared_ptr<machine::World> world;
};

const char* schedule_text(machine::Schedule s) {
  return s == machine::Schedule::kTimed ? "timed" : s == machine::Schedule::kExplore ? "explore" : "fast";
}
machine::Schedule schedule_from(const std::string& s) {
  if (s == "fast") return machine::Schedule::kFast;
  if (s == "timed") return machine::Schedule::kTimed;
  if (s == "explore") return machine::Schedule::kExplore;
  throw nb::value_error(("schedule must be 'fast', 'timed' or 'explore', got '" + s + "'").c_str());
}
const char* checks_text(machine::Checks c) {
  return c == machine::Checks::kStrict ? "strict" : c == machine::Checks::kOff ? "off" : "default";
}
machine::Checks checks_from(const std::string& s) {
  if (s == "default") return machine::Checks::kDefault;
  if (s == "strict") return machine::Checks::kStrict;
  if (s == "off") return machine::Checks::kOff;
  throw nb::value_error(("checks must be 'default', 'strict' or 'off', got '" + s + "'").c_str());
}

nb::dict comm_dict(const machine::CommCounters& c) {
  nb::dict d;
  d["notify_remote"] = c.notify_remote;
  d["notify_self"] = c.notify_self;
  d["wait"] = c.wait;
  d["remote_load"] = c.remote_load;
  d["remote_store"] = c.remote_store;
  d["put"] = c.put;
  d["get"] = c.get;
  d["bytes_read"] = c.bytes_read;
  d["bytes_written"] = c.bytes_written;
  d["self_bytes"] = c.self_bytes;
  d["barriers"] = c.barriers;
  d["collectives"] = nb::cast(c.collectives);
  return d;
}

nb::list ranks_list(const RunReport& r) {
  nb::list out;
  for (const auto& k : r.ranks) {
    nb::dict d;
    d["rank"] = k.rank;
    d["tasks"] = k.tasks;
    d["kernels"] = nb::cast(k.kernels);
    d["comm"] = comm_dict(k.comm);
    nb::dict peers;
    for (size_t peer = 0; peer < k.by_peer.size(); ++peer) {
      const auto& [messages, bytes] = k.by_peer[peer];
      if (messages) peers[nb::int_(peer)] = nb::make_tuple(messages, bytes);
    }
    d["by_peer"] = peers;
    d["rounds"] = nb::cast(k.rounds);
    d["peak_memory"] = nb::cast(k.peak_memory);
    d["device_time_us"] = k.device_time_us;
    d["wait_us"] = k.wait_us;
    out.append(d);
  }
  return out;
}

nb::list tasks_list(const RunReport& r) {
  nb::list out;
  for (const auto& t : r.tasks) {
    nb::dict d;
    d["id"] = t.id;
    d["rank"] = t.rank;
    d["dispatch"] = t.dispatch;
    d["kernel"] = t.kernel;
    d["core_type"] = t.core_type;
    d["cores"] = nb::cast(t.cores);
    d["file"] = t.span.known() ? nb::object(nb::str(t.span.file->path.c_str())) : nb::none();
    d["line"] = t.span.known() ? nb::object(nb::int_(t.span.line)) : nb::none();
    d["start_us"] = t.start_us;
    d["end_us"] = t.end_us;
    d["seen_us"] = t.seen_us;
    nb::list runs;
    for (const auto& x : t.runs)
      runs.append(nb::make_tuple(x.core, x.block, x.dispatch_us, x.start_us, x.end_us));
    d["runs"] = runs;
    nb::list args;
    for (const auto& a : t.args) {
      nb::dict e;
      e["name"] = a.name;
      e["direction"] = a.direction;
      e["begin"] = a.begin;
      e["end"] = a.end;
      e["root"] = a.root;
      args.append(e);
    }
    d["args"] = args;
    out.append(d);
  }
  return out;
}

nb::list edges_list(const RunReport& r) {
  nb::list out;
  for (const auto& e : r.edges) {
    nb::dict d;
    d["pred"] = e.pred;
    d["succ"] = e.succ;
    d["arg"] = e.arg;
    d["reason"] = e.reason;
    out.append(d);
  }
  return out;
}

nb::list windows_list(const RunReport& r) {
  nb::list out;
  for (const auto& w : r.windows) {
    nb::dict d;
    d["domain"] = w.domain;
    d["name"] = w.name;
    d["ranks"] = nb::cast(w.ranks);
    d["requested"] = w.requested;
    d["reserved"] = w.reserved;
    d["offset"] = w.offset;
    out.append(d);
  }
  return out;
}

nb::list dispatches_list(const RunReport& r) {
  nb::list out;
  for (const auto& x : r.dispatches) {
    nb::dict d;
    d["rank"] = x.rank;
    d["index"] = x.index;
    d["program"] = x.program;
    d["comm"] = comm_dict(x.comm);
    d["begin_us"] = x.begin_us;
    d["end_us"] = x.end_us;
    out.append(d);
  }
  return out;
}

/// Events of the timeline as tuples: kind, rank, core, pipe, begin and end in us, name, kernel, file, line,
/// bytes, peer, id.
nb::list events_list(const RunReport& r) {
  nb::list out;
  for (const auto& e : r.events) {
    const bool known = e.span.known();
    out.append(nb::make_tuple(
        trace::event_name(e.kind), e.rank, e.core,
        e.pipe < 0 ? nb::object(nb::none())
                   : nb::object(nb::str(trace::pipe_name(static_cast<trace::CorePipe>(e.pipe)))),
        e.begin_ns / 1000, e.end_ns / 1000, e.name, e.kernel,
        known ? nb::object(nb::str(e.span.file->path.c_str())) : nb::object(nb::none()),
        known ? e.span.line : 0, e.bytes, e.peer, e.id));
  }
  return out;
}

nb::list parameters_list(const RunReport& r) {
  nb::list out;
  for (const auto& p : r.parameters) out.append(nb::make_tuple(p.key, p.value, p.tag));
  return out;
}

/// A tensor of a callback as an array over the real memory; a scalar as a Python number.
nb::object callback_value(const machine::CallbackArg& a) {
  if (a.is_tensor) return array_view(a.data, a.dtype, a.shape, a.stride, nb::none(), -1);
  if (is_float(a.dtype)) return nb::float_(a.float_value);
  if (a.dtype == DType::kBool) return nb::bool_(a.int_value != 0);
  return nb::int_(a.int_value);
}

[[noreturn]] void callback_failed(const std::string& name, nb::python_error& e, const nb::handle& function) {
  Diagnostic d;
  d.cls = ErrorClass::kCallbackError;
  d.host_exception = keep_exception(nb::borrow(e.value()));
  d.message = "sub-worker '" + name + "' raised " +
              nb::cast<std::string>(nb::str(e.type().attr("__name__"))) + ": " +
              nb::cast<std::string>(nb::str(e.value()));
  nb::object code = nb::getattr(function, "__code__", nb::none());
  if (!code.is_none()) {
    auto file = std::make_shared<SourceFile>();
    file->path = nb::cast<std::string>(nb::str(code.attr("co_filename")));
    d.span.file = file;
    d.span.line = nb::cast<int>(code.attr("co_firstlineno"));
    d.span.column = 1;
    // The line of the callback at which the exception passed.
    nb::object traceback = nb::borrow(e.traceback());
    while (traceback.is_valid() && !traceback.is_none()) {
      if (traceback.attr("tb_frame").attr("f_code").is(code))
        d.span.line = nb::cast<int>(traceback.attr("tb_lineno"));
      traceback = traceback.attr("tb_next");
    }
  }
  throw Failure(std::move(d));
}

/// Runs sub-workers: bound callbacks take one sequence of tensors, concrete ones one value per parameter (04
/// section 15).
class Callbacks {
 public:
  /// `interrupt` takes what is no `Exception` (Ctrl-C in a callback): it ends the run as itself.
  Callbacks(const PyCompiled& c, nb::object bound, std::optional<nb::python_error>& interrupt)
      : compiled_(c), bound_(std::move(bound)), interrupt_(interrupt) {}

  void call(const std::string& name, std::vector<machine::CallbackArg>& args) {
    HeldGil gil;
    nb::object function;
    try {
      if (!bound_.is_none() && nb::cast<bool>(bound_.attr("__contains__")(name))) {
        function = bound_[name.c_str()];
        nb::list tensors;
        for (const auto& a : args) {
          if (a.is_tensor) tensors.append(callback_value(a));
        }
        call_python(function, nb::make_tuple(tensors));
        return;
      }
      const auto it = compiled_.callables.find(name);
      if (it == compiled_.callables.end()) {
        fail(ErrorClass::kValueError, "program '" + compiled_.code->name +
                                          "' has runtime-bound callbacks: '" + name +
                                          "' must be supplied via callbacks={...}");
      }
      function = it->second;
      nb::list values;
      for (const auto& a : args) values.append(callback_value(a));
      call_python(function, nb::tuple(values));
    } catch (nb::python_error& e) {
      if (e.matches(PyExc_Exception)) callback_failed(name, e, function.is_valid() ? function : nb::none());
      interrupt_.emplace(std::move(e));
      Diagnostic d;
      d.cls = ErrorClass::kRuntimeError;
      d.id = "interrupted";
      d.message = "interrupted in sub-worker '" + name + "'";
      throw Failure(std::move(d));
    }
  }

 private:
  const PyCompiled& compiled_;
  nb::object bound_;
  std::optional<nb::python_error>& interrupt_;
};

/// Names of sub-workers without a body that nobody bound (04 CBK-2).
void check_callbacks(const PyCompiled& c, nb::handle bound) {
  std::string missing;
  for (const auto& f : c.code->functions) {
    if (f.role != ir::Role::kSubWorker || c.callables.count(f.name)) continue;
    if (!bound.is_none() && nb::cast<bool>(bound.attr("__contains__")(f.name))) continue;
    missing += (missing.empty() ? "'" : ", '") + f.name + "'";
  }
  if (!missing.empty()) {
    fail(ErrorClass::kValueError, "program '" + c.code->name + "' has runtime-bound callbacks: " + missing +
                                      " must be supplied via callbacks={...} of prepare()");
  }
}

nb::object run(const PyCompiled& c, nb::object args, std::optional<std::string> entry, PyOptions* options,
               nb::object callbacks, PyWorld* world, std::optional<std::string> function, bool devices,
               bool) {
  const int index = entry_index(c, entry);
  BoundArgs bound;
  bind_args(c, index, args, function.value_or(""), devices, bound);
  check_callbacks(c, callbacks);
  RunOptions run_options = options ? options->options : RunOptions();
  std::shared_ptr<std::atomic<bool>> stop = options ? options->stop : nullptr;
  std::optional<nb::python_error> interrupt;
  auto last = std::chrono::steady_clock::now();
  nb::object probe;
  run_options.interrupted = [&interrupt, &last, &probe, stop]() -> bool {
    if (stop && stop->load(std::memory_order_relaxed)) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(50)) return false;
    last = now;
    HeldGil gil;
    if (PyErr_CheckSignals() != 0) {
      interrupt.emplace();  // takes the pending error
      return true;
    }
    // Signals reach the main thread only; an exception that it sent to this one is raised by running any
    // bytecode.
    try {
      if (!probe.is_valid()) probe = nb::module_::import_("builtins").attr("eval")("lambda: None");
      call_python(probe, nb::tuple());
    } catch (nb::python_error& e) {
      interrupt.emplace(std::move(e));
      return true;
    }
    return false;
  };
  Callbacks python(c, callbacks, interrupt);
  const machine::HostCallback callback =
      [&python](const std::string& name, int, std::vector<machine::CallbackArg>& a) { python.call(name, a); };
  auto report = std::make_shared<RunReport>();
  std::optional<Failure> failure;
  {
    ReleasedGil release;
    try {
      const PollScope quiet({});  // the machine looks for Ctrl-C itself
      checked_run([&] {
        machine::run(*c.code, index, bound.args, run_options, callback, world ? world->world.get() : nullptr,
                     report.get());
      });
    } catch (Failure& f) {
      failure.emplace(std::move(f));
    }
  }
  nb::object out = nb::cast(PyReport{report});
  if (interrupt) {
    if (failure) nb::setattr(interrupt->value(), "report", out);
    throw std::move(*interrupt);
  }
  if (failure) {
    nb::object e = make_exception(failure->diagnostic());
    nb::setattr(e, "report", out);
    PyErr_SetObject(e.type().ptr(), e.ptr());
    throw nb::python_error();
  }
  return out;
}

/// Sets one field by name; the constructor's keywords.
void set_option(PyOptions& py, const std::string& name, nb::handle value) {
  RunOptions& o = py.options;
  const auto integer = [&] { return value.is_none() ? int64_t{0} : nb::cast<int64_t>(value); };
  const auto text = [&] { return value.is_none() ? std::string() : nb::cast<std::string>(value); };
  if (name == "schedule")
    o.schedule = schedule_from(text());
  else if (name == "checks")
    o.checks = checks_from(text());
  else if (name == "seed")
    o.seed = nb::cast<uint64_t>(value);
  else if (name == "replay")
    o.replay = text();
  else if (name == "threads")
    o.threads = static_cast<int>(integer());
  else if (name == "step_limit")
    o.step_limit = integer();
  else if (name == "device_ids")
    o.device_ids = nb::cast<std::vector<int>>(value);
  else if (name == "collect")
    o.collect = nb::cast<bool>(value);
  else if (name == "delay_remote")
    o.delay_remote = nb::cast<bool>(value);
  else if (name == "rank_weights")
    o.rank_weights = nb::cast<std::map<int, int64_t>>(value);
  else if (name == "device_time")
    o.device_time = nb::cast<bool>(value);
  else if (name == "ring_task_window")
    o.ring_task_window = integer();
  else if (name == "ring_heap")
    o.ring_heap = integer();
  else if (name == "ring_dep_pool")
    o.ring_dep_pool = integer();
  else if (name == "want_task_graph")
    o.want_task_graph = nb::cast<bool>(value);
  else if (name == "want_timeline")
    o.want_timeline = nb::cast<bool>(value);
  else if (name == "timeline_level")
    o.timeline_level = static_cast<int>(integer());
  else
    throw nb::type_error(("RunOptions has no field '" + name + "'").c_str());
}

}  // namespace

void register_run(nb::module_& m) {
  nb::class_<PyOptions> options(m, "RunOptions", "Options of a run.");
  options
      .def("__init__",
           [](PyOptions* self, nb::kwargs fields) {
             PyOptions options;
             for (auto [key, value] : fields) set_option(options, nb::cast<std::string>(nb::str(key)), value);
             new (self) PyOptions(std::move(options));
           })
      .def_prop_rw(
          "schedule", [](const PyOptions& o) { return schedule_text(o.options.schedule); },
          [](PyOptions& o, const std::string& s) { o.options.schedule = schedule_from(s); })
      .def_prop_rw(
          "checks", [](const PyOptions& o) { return checks_text(o.options.checks); },
          [](PyOptions& o, const std::string& s) { o.options.checks = checks_from(s); })
      .def_prop_rw(
          "seed", [](const PyOptions& o) { return o.options.seed; },
          [](PyOptions& o, uint64_t v) { o.options.seed = v; })
      .def_prop_rw(
          "replay", [](const PyOptions& o) { return o.options.replay; },
          [](PyOptions& o, std::optional<std::string> v) { o.options.replay = v.value_or(""); },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "threads", [](const PyOptions& o) { return o.options.threads; },
          [](PyOptions& o, int v) { o.options.threads = v; })
      .def_prop_rw(
          "step_limit", [](const PyOptions& o) { return o.options.step_limit; },
          [](PyOptions& o, std::optional<int64_t> v) { o.options.step_limit = v.value_or(0); },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "device_ids", [](const PyOptions& o) { return o.options.device_ids; },
          [](PyOptions& o, std::vector<int> v) { o.options.device_ids = std::move(v); });
#define PYPTO_OPTION(field, type)                                 \
  options.def_prop_rw(                                            \
      #field, [](const PyOptions& o) { return o.options.field; }, \
      [](PyOptions& o, type v) { o.options.field = v; })
  PYPTO_OPTION(collect, bool);
  PYPTO_OPTION(delay_remote, bool);
  using Weights = std::map<int, int64_t>;
  PYPTO_OPTION(rank_weights, Weights);
  PYPTO_OPTION(device_time, bool);
  PYPTO_OPTION(ring_task_window, int64_t);
  PYPTO_OPTION(ring_heap, int64_t);
  PYPTO_OPTION(ring_dep_pool, int64_t);
  PYPTO_OPTION(want_task_graph, bool);
  PYPTO_OPTION(want_timeline, bool);
  PYPTO_OPTION(timeline_level, int);
#undef PYPTO_OPTION
  options.def(
      "use_hardware",
      [](PyOptions& o, std::string name, std::map<std::string, std::map<std::string, double>> params) {
        o.options.hardware = std::make_shared<const machine::HardwareFile>(
            machine::HardwareFile{std::move(name), std::move(params)});
      },
      nb::arg("name"), nb::arg("params"),
      "Replaces parameters of the timing model, by architecture and key; `name` says where they come from.");
  options.def(
      "stop", [](PyOptions& o) { o.stop->store(true); },
      "Asks a run that uses these options to end; any thread.");

  nb::class_<PyReport>(m, "RunReport", nb::dynamic_attr(), "Counters, findings and records of one run.")
      .def_prop_ro("world_size", [](const PyReport& r) { return r.report->world_size; })
      .def_prop_ro("device_time_us", [](const PyReport& r) { return r.report->device_time_us; })
      .def_prop_ro("host_time_us", [](const PyReport& r) { return r.report->host_time_us; })
      .def_prop_ro("ok", [](const PyReport& r) { return r.report->ok; })
      .def_prop_ro("ranks", [](const PyReport& r) { return ranks_list(*r.report); })
      .def_prop_ro("diagnostics",
                   [](const PyReport& r) {
                     nb::list out;
                     for (const auto& d : r.report->diagnostics) out.append(diagnostic_object(d));
                     return out;
                   })
      .def_prop_ro("has_diagnostics", [](const PyReport& r) { return !r.report->diagnostics.empty(); })
      .def_prop_ro("tasks", [](const PyReport& r) { return tasks_list(*r.report); })
      .def_prop_ro("edges", [](const PyReport& r) { return edges_list(*r.report); })
      .def_prop_ro("windows", [](const PyReport& r) { return windows_list(*r.report); })
      .def_prop_ro("dispatches", [](const PyReport& r) { return dispatches_list(*r.report); })
      .def_prop_ro("timed", [](const PyReport& r) { return r.report->timed; })
      .def_prop_ro("parameter_source", [](const PyReport& r) { return r.report->parameter_source; })
      .def_prop_ro("parameters", [](const PyReport& r) { return parameters_list(*r.report); })
      .def_prop_ro("events", [](const PyReport& r) { return events_list(*r.report); });

  nb::class_<PyWorld>(m, "World", "Devices, windows and signals that outlive one run.")
      .def_prop_ro("window_groups", [](const PyWorld& w) { return w.world->window_groups(); });
  m.def(
      "make_world",
      [](std::vector<int> device_ids, bool persistent, bool reset) {
        return PyWorld{
            guarded([&] { return machine::make_world(std::move(device_ids), persistent, reset); })};
      },
      nb::arg("device_ids"), nb::arg("persistent") = false, nb::arg("reset") = true);
  m.def("run", &run, nb::arg("compiled"), nb::arg("args"), nb::kw_only(), nb::arg("entry") = nb::none(),
        nb::arg("options").none() = nb::none(), nb::arg("callbacks").none() = nb::none(),
        nb::arg("world").none() = nb::none(), nb::arg("function") = nb::none(), nb::arg("devices") = true,
        nb::arg("checked") = false);
}

}  // namespace pypto::bind
