// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/machine/run.h"
#include "core/machine/state.h"

namespace pypto::machine {

/// Which of the legal interleavings a run takes (04 section 22): a function of policy and seed alone.
class Policy {
 public:
  explicit Policy(const RunOptions& options);

  bool timed() const { return schedule_ == Schedule::kTimed; }
  bool explores() const { return schedule_ == Schedule::kExplore; }
  bool delays_remote() const { return explores() && delay_; }
  Schedule schedule() const { return schedule_; }
  /// Place of an actor in the round: lower runs, and therefore commits, earlier.
  uint64_t priority(const ActorKey& key) const;
  /// Whether the commits of this issuer are kept back at the end of the round.
  bool withholds(const ActorKey& issuer, int64_t round) const;
  /// Whether a slow rank takes part in this round (SimOptions.rank_weights).
  bool weighted() const { return !weights_.empty(); }
  bool takes_part(int rank, int64_t round) const {
    const auto found = weights_.find(rank);
    return found == weights_.end() || round % found->second == 0;
  }
  /// Called before each round; a few times in a run the priorities change.
  void begin_round(int64_t round);
  /// Reproduces this schedule as SimOptions.replay.
  std::string token() const;

 private:
  void read_token(const std::string& token);
  uint64_t hash(const ActorKey& key, uint64_t salt) const;

  Schedule schedule_ = Schedule::kFast;
  uint64_t seed_ = 0;
  bool delay_ = false;
  std::map<int, int64_t> weights_;
  uint64_t phase_ = 0;
};

}  // namespace pypto::machine
