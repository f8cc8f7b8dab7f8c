// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/check/cells.h"
#include "core/check/checker.h"
#include "core/check/clock.h"
#include "core/check/history.h"

namespace pypto::check {

/// Who did something: an actor's names, kept after it has ended.
struct Meta {
  ActorInfo info;
  int32_t last_wait = -1;
  bool ended = false;
};

/// What a dispatch has heard of others so far, for the explanation of a race.
struct Ears {
  uint32_t waits = 0;
  int32_t last_wait = -1;
  struct Heard {
    int64_t since = 0;  ///< sequence of the first wait that observed a notify of the rank
    uint32_t last = 0;  ///< 1 + meta of the last notify of the rank that a wait observed; 0 = none
  };
  std::vector<Heard> heard;  ///< by 1 + rank
  /// 1 + meta of the last notify of `rank` that was observed if any was before `sequence`, else 0.
  uint32_t last_from(int rank, int64_t sequence) const {
    const auto i = static_cast<size_t>(rank + 1);
    return i < heard.size() && heard[i].since < sequence ? heard[i].last : 0;
  }
};

/// A set of numbers that mostly has one element.
class Numbers {
 public:
  Numbers() = default;
  Numbers(const Numbers& o)
      : one_(o.one_), more_(o.more_ ? std::make_unique<std::vector<int64_t>>(*o.more_) : nullptr) {}
  Numbers(Numbers&&) = default;
  Numbers& operator=(Numbers&&) = default;
  void add(int64_t n) {
    if (one_ < 0) {
      one_ = n;
      return;
    }
    if (!more_) more_ = std::make_unique<std::vector<int64_t>>();
    more_->push_back(n);
  }
  bool has(int64_t n) const {
    return one_ == n || (more_ && std::find(more_->begin(), more_->end(), n) != more_->end());
  }

 private:
  int64_t one_ = -1;
  std::unique_ptr<std::vector<int64_t>> more_;
};

/// A satisfied wait, for explanations and for judging it again.
struct WaitRecord {
  uint32_t meta = 0;
  int32_t object = -1;
  int64_t offset = 0;
  const vm::Site* site = nullptr;
  bool reused = false;  ///< satisfied entirely by modifications that an earlier wait on the cell had seen
  ir::WaitCmp cmp = ir::WaitCmp::kGe;
  int32_t expected = 0;
  uint32_t chain = 0, epoch = 0;
  int64_t sequence = 0;
  int64_t base = 0;  ///< the cell by what is ordered before the wait
  Numbers sure;      ///< notifies that it surely observes
  Numbers open;      ///< modifications (by sequence) that were there and not ordered before it
};

/// What an analysis saw in memory, in the order in which it looked: written by the analysis that runs with
/// the program, read by one that runs again over the log.
struct Seen {
  bool replay = false;
  std::vector<uint8_t> silent;
  std::vector<int32_t> cells;
  size_t next_silent = 0, next_cell = 0;
};

/// Observations (number of the wait, number of the notify) that are not edges.
using Withdrawn = std::set<std::pair<int64_t, int64_t>>;

/// Happens-before with vector clocks over chains, histories of accesses per object, modification orders of
/// cells.
class Analysis final : public Checker {
 public:
  Analysis(const CheckOptions& options, Sink& sink, Seen* seen = nullptr,
           const Withdrawn* withdrawn = nullptr)
      : options_(options), sink_(sink), seen_(seen), withdrawn_(withdrawn) {}

  /// Observations that turned out not to be sure when later notifies arrived.
  const Withdrawn& newly_withdrawn() const { return newly_withdrawn_; }

  ActorId start(const ActorInfo& info, std::span<const Clock> after) override;
  int64_t identity(ActorId actor) override {
    return actor < 0 ? -1 : actors_[static_cast<size_t>(actor)].meta;
  }
  Clock release(ActorId actor) override;
  void acquire(ActorId actor, const Clock& clock) override;
  Clock end(ActorId actor) override;
  Clock join(std::span<const Clock> clocks) override;
  void add_object(int32_t object, const ObjectInfo& info) override;
  void drop_object(int32_t object) override;
  void reset_object(int32_t object) override;
  void drop_part(int64_t part) override;
  void access(const Access& access) override;
  void notify(Notify&& notify) override;
  Clock observe(const Observe& observe) override;
  void enter_collective(const Entered& entered) override;
  void settle() override;
  void end_round() override;
  void decide() override;
  void finish(bool complete) override;

 private:
  struct Actor {
    bool live = false;
    uint32_t meta = 0;
    Ears* ears = nullptr;  ///< of its dispatch
    ActorClock clock;
  };
  struct Object {
    History shared;  // first what every access looks at
    Cells cells;
    bool live = false;
    ObjectInfo info;
  };
  struct Part {
    std::unordered_map<int32_t, History> histories;
  };
  /// A write told but not yet seen to have taken effect.
  struct PendingWrite {
    bool valid = false;
    ActorId actor = kNoActor;
    int32_t object = -1;
    int64_t part = 0;
    Box box;
    Entry entry;
    int rank = 0;
    int64_t stride[vm::kMaxRank] = {};
    bool lowered = false;
    std::vector<uint8_t> old;
    uint64_t old_hash = 0;
    int changes = -1;
  };
  /// Geometry of the access that completes a report, for index ranges.
  struct Shape {
    int rank = 0;
    const int64_t* stride = nullptr;
    DType dtype = DType::kNone;
    bool lowered = false;  ///< not the user's: what the host views tells more
  };
  /// A race found, reported at the end of the round.
  struct Found {
    int32_t object = -1;
    std::string object_name;
    int object_rank = -1;
    int window = -1;
    Box a_box, b_box;
    Entry a, b;  ///< a was recorded first
    bool a_notify = false, b_notify = false;
    int32_t a_value = 0, b_value = 0, result = 0;
    bool quiet = false;  ///< changes no byte (03 M-24)
    std::string index;
    std::vector<std::pair<int64_t, int64_t>> range;
    int64_t round = 0;  ///< in which it was found
  };
  /// A fetch of bytes that nobody had written: told at the end unless it turns out to be a race.
  struct Unwritten {
    Found read;  ///< `b` and its box: the bytes
    int64_t bytes = 0;
  };

  // analysis.cpp
  uint32_t take_chain(int rank, const ActorClock& known);
  Object& object(int32_t id) { return objects_[static_cast<size_t>(id)]; }
  History& history(int32_t object, int64_t part);
  /// The cell at `offset`, which holds `value` now.
  Cell& cell(Object& o, int64_t offset, int32_t value);
  void compare(Actor& actor, int32_t object_id, int64_t part, const Box& box, Entry& entry,
               const Shape& shape);
  void compare_cells(Actor& actor, int32_t object_id, const Box& box, const Entry& entry, const Shape& shape);
  int32_t value_of_cell(const Object& o, int64_t offset);
  void settle_write();
  static bool prunes(const Entry& now, const Entry& old);
  static bool conflicts(const Entry& a, const Entry& b);
  static bool overlaps_quietly(const Entry& a, const Entry& b);
  void check_lanes(const Notify& n);
  template <class Known>
  void forget_clocks(Cells& cells, Cell& c, Known known, uint32_t waiter);
  void judge_again(Cells& cells, Cell& c, const Mod& mod);

  // report.cpp
  void tell(Diagnostic d);
  void report_unwritten(const Unwritten& u);
  void note_unwritten(int32_t object, const Box& box, const Entry& entry, const Shape& shape,
                      const std::vector<Box>& written);
  void missed_value(int32_t object, int64_t offset, const WaitNote& wait, const Mod& mod);
  void found(Found f);
  void locate(Found& f, const Shape& shape) const;
  void report(const Found& f);
  struct Verdict {
    const char* id = "X-40";
    const char* variant = "data race";
    const char* fix = "order the two accesses with a notify and a wait";
    bool open = false;  ///< a notify still to come could change it
  };
  Verdict classify(const Found& f) const;
  bool heard(const Entry& listener, const Meta& speaker) const;
  enum class Arrival : uint8_t { kNo, kMaybe, kDependent };
  Arrival order_dependent(const Entry& waiter, const Entry& other) const;
  bool heard_rank(const Entry& listener, int rank) const;
  Severity severity(const Found& f, bool* host_order) const;
  std::string who(const Entry& e) const;
  std::string parameters_text(const Found& f) const;
  std::string place_text(uint32_t meta) const;
  DiagnosticAccess access_record(const Found& f, const Entry& e, bool notify) const;

  CheckOptions options_;
  Sink& sink_;
  Seen* seen_;
  const Withdrawn* withdrawn_;
  Withdrawn newly_withdrawn_;
  int64_t wait_count_ = 0;
  int64_t notify_count_ = 0;
  std::vector<Actor> actors_;
  std::vector<ActorId> free_actors_;
  std::vector<Meta> metas_;
  std::vector<uint32_t> chain_epoch_;                           ///< last epoch of each chain's last user
  std::unordered_map<int, std::vector<uint32_t>> free_chains_;  ///< by rank
  std::vector<Object> objects_;
  std::unordered_map<int64_t, Part> parts_;
  std::unordered_map<int, Ears> ears_;  ///< by dispatch
  std::vector<int64_t> last_notify_;    ///< by rank: sequence of its last notify
  Chunks<WaitRecord> waits_;
  Observed observed_;             ///< by the wait that is being judged
  std::vector<Clock> acquired_;   ///< by it
  Clock last_full_, last_small_;  ///< what forget_clocks() replaced last, and by what
  int64_t sequence_ = 0;
  PendingWrite pending_;
  std::vector<Found> found_;  ///< not yet reported, in the order of reports
  std::vector<Found> quiet_;  ///< told at the end, unless the same lines race
  std::set<std::pair<std::string, std::string>> racing_lines_;
  std::vector<Box> written_, known_;  ///< of the access that is compared
  bool deciding_ = false;
  std::map<int64_t, Unwritten> unwritten_;  ///< by sequence of the read
  std::set<std::string> reported_;
  std::unordered_map<std::string, std::pair<int, int32_t>> lane_notifies_;
};

}  // namespace pypto::check
