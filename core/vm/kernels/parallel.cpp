// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/parallel.h"

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#define PYPTO_POSIX_THREADS 1
#else
#define PYPTO_POSIX_THREADS 0
#endif

namespace pypto::vm {
namespace {

thread_local int wanted = 1;

int processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

/// Signals are for the threads of the caller's program: none is delivered to a thread started meanwhile.
class BlockSignals {
 public:
#if PYPTO_POSIX_THREADS
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
#endif
};

}  // namespace

void set_operation_threads(int threads) {
  static const int all = processors();
  wanted = threads > 0 ? threads : all;
}
int operation_threads() { return wanted; }

void run_parts(int parts, const std::function<void(int)>& part) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(parts));
  const auto guarded = [&](int p) {
    try {
      part(p);
    } catch (...) {
      failures[static_cast<size_t>(p)] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  int started = 1;
  {
    const BlockSignals block;
    try {
      for (; started < parts; ++started) threads.emplace_back(guarded, started);
    } catch (const std::system_error&) {  // no more threads: the rest is done here
    }
  }
  guarded(0);
  for (int p = started; p < parts; ++p) guarded(p);
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& f : failures) {
    if (f) std::rethrow_exception(f);
  }
}

}  // namespace pypto::vm
