// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ir/enums.h"
#include "core/machine/run.h"
#include "core/trace/core_clock.h"
#include "core/trace/cost.h"
#include "core/trace/params.h"
#include "core/trace/servers.h"

/// Virtual time of a run (05 A.13): what the devices of a world share, and the dispatch of tasks. Exists only
/// when time was asked for. All times are ns from the start of the run.
namespace pypto::machine {

class Actor;
class Simulation;
struct Block;
struct Dispatch;
struct HostStep;
struct Task;

/// Times of a task (05 H-74).
struct TaskTime {
  double ready = 0;   ///< submitted, and all dependencies seen
  double first = -1;  ///< first instruction of its first block
  double last = 0;    ///< end of its last block
  double seen = 0;    ///< dependents see it complete
};

/// Cores of a running block in virtual time. They are chosen by the virtual clock, so they may be others than
/// the ones that the block holds in the simulation.
struct BlockTime {
  explicit BlockTime(const trace::Params& p) : clock(p) {}
  trace::BlockClock clock;
  int aic = -1, aiv[2] = {-1, -1};
  double served = 0, start = 0;
};

class Timing {
 public:
  Timing(Simulation& sim, const RunOptions& options);

  const trace::Params& params() const { return params_; }

  // ---- host and dispatch
  void begin_dispatch(HostStep& step, Dispatch& d);
  void end_dispatch(HostStep& step, Dispatch& d);
  void callback(HostStep& step);
  void submitted(Task& task);
  void start_block(Block& block);
  void end_block(Block& block);
  /// The task is complete; `d` is its dispatch.
  void completed(Task& task);
  /// A submitted task that was complete when somebody depended on it.
  double seen(const Dispatch& d, int64_t handle) const;

  // ---- memory and links
  /// End of a transfer of a core of `rank` that starts at `start` and alone would take until `end`; `object`
  /// < 0: storage of the compiler, resident.
  double memory(int rank, double start, double alpha, double end, int64_t bytes, int64_t object,
                const check::Box& box);
  /// The same of a transfer between ranks.
  double link(int from, int to, double start, double alpha, double end, int64_t bytes);

  // ---- signals
  /// A notify was committed.
  void raised(int32_t object, int64_t offset, int32_t after, bool set, double visible, int64_t flow);
  struct Seen {
    double time = 0;
    int64_t flow = -1;
  };
  /// When the cell came to hold what satisfies the condition now.
  Seen visible(int32_t object, int64_t offset, ir::WaitCmp cmp, int32_t expected) const;

  // ---- timeline
  bool records(int level) const { return level_ >= level; }
  void record(trace::Event e);
  int64_t next_flow() { return ++flows_; }
  /// Totals of the run.
  void finish();

  /// Under `timed`: nobody runs further than this before the others have caught up.
  double horizon = 0;
  bool ordered = false;

 private:
  struct DeviceTime {
    std::vector<double> aic, aiv;  ///< when free; kBusy while a block runs
    std::vector<double> threads;   ///< of the scheduler
    trace::Server l2, hbm, in, out;
    std::unique_ptr<trace::Residency> resident;
  };
  struct CellTime {
    int32_t after = 0;
    double upto = 0;  ///< by now this value and all before it are visible
    int64_t flow = -1;
  };

  int pick(const std::vector<double>& free, double ready) const;

  Simulation& sim_;
  trace::Params params_;
  int level_ = 0;
  std::vector<std::unique_ptr<DeviceTime>> devices_;
  std::map<std::pair<int, int>, trace::Server> pairs_;
  std::unordered_map<uint64_t, std::vector<CellTime>> cells_;
  double host_ = 0;
  int64_t flows_ = 0;
  double first_ = -1, last_ = 0;
};

}  // namespace pypto::machine
