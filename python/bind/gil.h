// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include <utility>

// A thread that asks for the interpreter lock while Python is shutting down is ended by pthread_exit, which
// unwinds through our frames: destructors would then touch objects without the lock, or end the process. Such
// a thread stops here instead and goes with the process.
namespace pypto::bind {

/// Runs `f`, which may take the interpreter lock; the thread stops if it is unwound from outside.
template <class F>
auto or_stop(F&& f) -> decltype(f()) {
#if defined(__GLIBCXX__)
  try {
    return f();
  } catch (abi::__forced_unwind&) {
    for (;;) ::pause();
  }
#else
  return f();
#endif
}

/// Holds the interpreter lock, on whatever thread.
class HeldGil {
 public:
  HeldGil() : state_(or_stop([] { return PyGILState_Ensure(); })) {}
  ~HeldGil() { PyGILState_Release(state_); }
  HeldGil(const HeldGil&) = delete;
  HeldGil& operator=(const HeldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Gives the interpreter lock away and takes it back.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    or_stop([this] { PyEval_RestoreThread(state_); });
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// `function(*args)`.
inline nb::object call_python(nb::handle function, nb::handle args) {
  nb::object result = nb::steal(or_stop([&] { return PyObject_Call(function.ptr(), args.ptr(), nullptr); }));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

}  // namespace pypto::bind
