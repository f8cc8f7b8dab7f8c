// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

/// How long work gives way to an interrupt (04 ERR-11). Whoever starts the work says what to look for; every
/// walk that grows with the program calls poll() once per statement, node or record.
namespace pypto {

/// While it lives, poll() on this thread calls `look` now and then. `look` throws to give up: the work
/// unwinds and what it made so far is dropped. An empty `look`: nothing may end the work.
class PollScope {
 public:
  /// `always`: at every poll() instead of a few times a second.
  explicit PollScope(std::function<void()> look, bool always = false);
  ~PollScope();
  PollScope(const PollScope&) = delete;
  PollScope& operator=(const PollScope&) = delete;

  const std::function<void()>& look() const { return look_; }
  bool always() const { return always_; }

 private:
  std::function<void()> look_;
  bool always_;
  const PollScope* outer_;
};

namespace detail {
/// Calls of poll() left before the clock is read.
extern constinit thread_local int polls_left;
void poll_now();
}  // namespace detail

/// Never in a destructor: it may throw.
inline void poll() {
  if (--detail::polls_left <= 0) detail::poll_now();
}

}  // namespace pypto
