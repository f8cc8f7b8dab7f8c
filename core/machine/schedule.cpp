// SPDX-License-Identifier: Apache-2.0
#include "core/machine/schedule.h"

#include <cstdio>
#include <cstdlib>

#include "core/base/diagnostic.h"

namespace pypto::machine {
namespace {

constexpr uint64_t kChangeEvery = 16;  ///< rounds between changes of priorities, on average
constexpr uint64_t kWithholdOneIn = 3;

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

[[noreturn]] void wrong_token(const std::string& token) {
  fail(ErrorClass::kValueError, "replay token '" + token + "' is not one that a report gave", {},
       "pass the token of a report unchanged");
}

}  // namespace

Policy::Policy(const RunOptions& options)
    : schedule_(options.schedule),
      seed_(options.seed),
      delay_(options.delay_remote),
      weights_(options.rank_weights) {
  if (!options.replay.empty()) read_token(options.replay);
  const auto ranks = static_cast<int64_t>(options.device_ids.size());
  for (const auto& [rank, weight] : weights_) {
    if (rank >= 0 && rank < ranks && weight >= 1) continue;
    fail(ErrorClass::kValueError,
         "SimOptions.rank_weights: " + (weight < 1 ? "the weight " + std::to_string(weight) + " of rank " +
                                                         std::to_string(rank) + " is below 1"
                                                   : "rank " + std::to_string(rank) + " is outside [0, " +
                                                         std::to_string(ranks) + "), the ranks of this run"),
         {}, "name ranks of the run, with weights of 1 or more");
  }
}

void Policy::read_token(const std::string& token) {
  // "fast", "timed", or "explore-<seed>" with "-delay" behind it; then "-slow<rank>x<weight>" for each slow
  // rank.
  const size_t slow = token.find("-slow");
  const std::string t = token.substr(0, slow);
  weights_.clear();
  for (size_t at = slow; at < token.size();) {
    int rank = 0;
    long long weight = 0;
    int length = 0;
    if (std::sscanf(token.c_str() + at, "-slow%dx%lld%n", &rank, &weight, &length) != 2) {
      wrong_token(token);
    }
    weights_[rank] = weight;
    at += static_cast<size_t>(length);
  }
  if (t == "fast" || t == "timed") {
    schedule_ = t == "fast" ? Schedule::kFast : Schedule::kTimed;
    return;
  }
  const std::string prefix = "explore-";
  char* end = nullptr;
  if (t.rfind(prefix, 0) == 0) {
    seed_ = std::strtoull(t.c_str() + prefix.size(), &end, 10);
    const std::string rest = end;
    if (end != t.c_str() + prefix.size() && (rest.empty() || rest == "-delay")) {
      schedule_ = Schedule::kExplore;
      delay_ = !rest.empty();
      return;
    }
  }
  wrong_token(token);
}

std::string Policy::token() const {
  std::string t = schedule_ == Schedule::kTimed ? "timed"
                  : schedule_ == Schedule::kFast
                      ? "fast"
                      : "explore-" + std::to_string(seed_) + (delay_ ? "-delay" : "");
  for (const auto& [rank, weight] : weights_)
    t += "-slow" + std::to_string(rank) + "x" + std::to_string(weight);
  return t;
}

uint64_t Policy::hash(const ActorKey& key, uint64_t salt) const {
  uint64_t h = mix(seed_ ^ mix(salt));
  for (const int64_t part :
       {int64_t{key.rank}, int64_t{key.dispatch}, key.task, int64_t{key.block}, int64_t{key.lane}}) {
    h = mix(h ^ static_cast<uint64_t>(part));
  }
  return h;
}

uint64_t Policy::priority(const ActorKey& key) const { return explores() ? hash(key, 1 + phase_) : 0; }

bool Policy::withholds(const ActorKey& issuer, int64_t round) const {
  return explores() && hash(issuer, ~static_cast<uint64_t>(round)) % kWithholdOneIn == 0;
}

void Policy::begin_round(int64_t round) {
  if (explores() && mix(seed_ + static_cast<uint64_t>(round) * 2) % kChangeEvery == 0) ++phase_;
}

}  // namespace pypto::machine
