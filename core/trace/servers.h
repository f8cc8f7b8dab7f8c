// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>

#include "core/check/box.h"

namespace pypto::trace {

/// Something that serves one transfer at a time at a fixed rate (05 H-71): the L2, the HBM, a link. Transfers
/// that come in order of their start wait for the one before; one that comes late in the simulation but early
/// in virtual time takes the first gap that holds it, so the order of simulation costs nothing.
class Server {
 public:
  explicit Server(double rate = 1) : rate_(rate) {}
  /// When `bytes` that can be served from `earliest` on are through. Nothing to serve: `earliest`.
  double serve(double earliest, double bytes);

 private:
  double rate_;
  std::map<double, double> busy_;  ///< intervals by begin; neighbours are joined
};

/// What is resident in the L2 of a device: 16-KiB-aligned chunks, least recently used goes first (05 H-71).
class Residency {
 public:
  explicit Residency(double bytes);
  /// Touches the chunks of `box` of an object; returns how many of its bytes were not resident.
  int64_t touch(int64_t object, const check::Box& box);

 private:
  static constexpr int64_t kChunk = 16384;
  bool touch_chunk(uint64_t chunk);

  size_t capacity_;
  std::list<uint64_t> order_;  ///< most recent first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> where_;
};

}  // namespace pypto::trace
