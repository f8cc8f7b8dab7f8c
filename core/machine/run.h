// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/trace/timeline.h"
#include "core/vm/program.h"

namespace pypto::machine {

enum class Schedule : uint8_t { kFast, kTimed, kExplore };
enum class Checks : uint8_t { kDefault, kStrict, kOff };

/// Parameters of the timing model that a file replaces (05 H-76).
struct HardwareFile {
  std::string name;
  std::map<std::string, std::map<std::string, double>> params;  ///< by architecture and key
};

/// Simulator options (04 section 22) and facts of the run. Defaults are those of the specification.
struct RunOptions {
  Schedule schedule = Schedule::kFast;
  uint64_t seed = 0;
  std::string replay;
  int threads = 0;
  Checks checks = Checks::kDefault;
  int64_t step_limit = 0;  ///< 0 = none
  bool collect = false;
  bool delay_remote = false;
  std::map<int, int64_t> rank_weights;  ///< a rank takes part in one of so many rounds; 1 if not named
  bool device_time = false;
  std::vector<int> device_ids{0};
  int64_t ring_task_window = 0, ring_heap = 0, ring_dep_pool = 0;  ///< 0 = default
  bool want_task_graph = false;                                    ///< keep tasks and edges for the report
  bool want_timeline = false;
  int timeline_level = 4;  ///< 1 tasks, 2 and transfers and waits, 3 and 4 and instructions
  std::shared_ptr<const HardwareFile> hardware;  ///< null: the defaults of the timing model
  /// Asked about once per round and every few thousand instructions; true = stop the run (KeyboardInterrupt).
  std::function<bool()> interrupted;
};

/// A host argument. Memory stays the caller's; outputs are written in place.
struct HostArg {
  bool is_tensor = true;
  uint8_t* data = nullptr;
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  bool read_only = false;
  bool device_resident = false;  ///< DeviceTensor: lives on `rank`
  int rank = -1;
  /// Stacked resident tensor: one shard per leading index, with the ranks that hold them.
  std::vector<uint8_t*> shards;
  std::vector<int> shard_ranks;
  bool unwritten = false;      ///< contents unspecified (DEV-2)
  std::shared_ptr<void> keep;  ///< written-map or other state that outlives the run, owned by the caller
  int64_t int_value = 0;       ///< scalar
  double float_value = 0;
};

/// A tensor argument of a host callback, viewing the real memory.
struct CallbackArg {
  std::string name;
  bool is_tensor = true;
  uint8_t* data = nullptr;
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  std::vector<int64_t> stride;  ///< elements
  int64_t int_value = 0;
  double float_value = 0;
};

/// The embedder's side of sub-workers: runs callback `name` (index `host_callable`, -1 if bound at run time
/// by name). Throws Failure (kCallbackError with host_exception) when it raised.
using HostCallback =
    std::function<void(const std::string& name, int host_callable, std::vector<CallbackArg>& args)>;

struct CommCounters {
  int64_t notify_remote = 0, notify_self = 0, wait = 0;
  int64_t remote_load = 0, remote_store = 0, put = 0, get = 0;
  int64_t bytes_read = 0, bytes_written = 0, self_bytes = 0;
  int64_t barriers = 0;
  std::map<std::string, int64_t> collectives;
};

struct RankReport {
  int rank = 0;
  int64_t tasks = 0;
  std::map<std::string, int64_t> kernels;
  CommCounters comm;
  std::vector<std::pair<int64_t, int64_t>> by_peer;  ///< by peer: messages, bytes; empty: nothing was sent
  std::map<std::string, int64_t> rounds;
  std::map<std::string, int64_t> peak_memory;
  double device_time_us = 0;
  double wait_us = 0;
};

struct TaskRecord {
  int64_t id = 0;
  int rank = 0;
  int dispatch = 0;
  std::string kernel;
  std::string core_type;
  std::vector<int> cores;
  Span span;
  double start_us = 0, end_us = 0;
  double seen_us = 0;  ///< dependents see it complete
  /// One block on one core, in virtual time.
  struct Run {
    int core = 0;
    int block = 0;
    double dispatch_us = 0, start_us = 0, end_us = 0;
  };
  std::vector<Run> runs;
  struct Arg {
    std::string name;
    std::string direction;
    int64_t begin = 0, end = 0;  ///< bytes in the root
    std::string root;
  };
  std::vector<Arg> args;
};
struct EdgeRecord {
  int64_t pred = 0, succ = 0;
  int arg = -1;
  std::string reason;
};

struct WindowRecord {
  std::string domain, name;
  std::vector<int> ranks;
  int64_t requested = 0, reserved = 0, offset = 0;
};

struct DispatchRecord {
  int rank = 0, index = 0;
  std::string program;
  CommCounters comm;
  double begin_us = 0, end_us = 0;  ///< on the virtual clock
};
/// One parameter of the timing model in effect.
struct ParameterRecord {
  std::string key;
  double value = 0;
  std::string tag;
};

struct RunReport {
  int world_size = 1;
  double device_time_us = 0;
  double host_time_us = 0;
  std::vector<RankReport> ranks;
  std::vector<Diagnostic> diagnostics;  ///< errors (collect), warnings, notes
  std::vector<TaskRecord> tasks;
  std::vector<EdgeRecord> edges;
  std::vector<WindowRecord> windows;
  std::vector<DispatchRecord> dispatches;
  bool timed = false;                       ///< whether the virtual clock ran
  std::vector<ParameterRecord> parameters;  ///< of the timing model
  std::string parameter_source;             ///< "default" or a file
  std::vector<trace::Event> events;         ///< of the timeline
  bool ok = true;
};

/// State that lives longer than one run: devices and windows of a prepared worker, retained windows.
class World {
 public:
  virtual ~World() = default;
  /// Number of window groups created so far (04 DST-29).
  virtual int64_t window_groups() const = 0;
};
/// `persistent`: windows live as long as the world; `reset`: zero them before every call.
std::shared_ptr<World> make_world(std::vector<int> device_ids, bool persistent, bool reset);

/// Runs function `entry` of `program` (-1: its entry) once. Blocks until it ends. Throws Failure for the
/// first error (unless options.collect). The report is complete also when it throws (written to *report
/// first). Threads: runs on the calling thread, callbacks included.
void run(const vm::Program& program, int entry, std::vector<HostArg>& args, const RunOptions& options,
         const HostCallback& callback, World* world, RunReport* report);

}  // namespace pypto::machine
