// SPDX-License-Identifier: Apache-2.0
#include "core/base/poll.h"

#include <chrono>

namespace pypto {
namespace {

constexpr int kPollsPerClock = 64;  // reading the clock costs as much as a few statements of a walk
constexpr std::chrono::milliseconds kInterval(50);

constinit thread_local const PollScope* current = nullptr;
thread_local std::chrono::steady_clock::time_point last;

}  // namespace

namespace detail {

constinit thread_local int polls_left = 0;

void poll_now() {
  polls_left = kPollsPerClock;
  if (!current || !current->look()) return;
  if (current->always()) {
    polls_left = 0;
  } else {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kInterval) return;
    last = now;
  }
  current->look()();
}

}  // namespace detail

PollScope::PollScope(std::function<void()> look, bool always)
    : look_(std::move(look)), always_(always), outer_(current) {
  current = this;
  detail::polls_left = 0;
}

PollScope::~PollScope() { current = outer_; }

}  // namespace pypto
