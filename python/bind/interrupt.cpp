// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "python/bind/common.h"

// Ctrl-C while a program is read, compiled, printed, saved or loaded: the core polls, and Python's own signal
// handler says what happens.
namespace pypto::bind {
namespace {

/// Called at every poll instead of looking for signals; tests count polls and raise at one of them.
std::atomic<PyObject*> hook{nullptr};

void look() {
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void call_hook() {
  nb::gil_scoped_acquire gil;
  if (PyObject* f = hook.load()) nb::borrow(f)();
}

void set_hook(nb::object f) {
  PyObject* old = hook.exchange(f.is_none() ? nullptr : f.inc_ref().ptr());
  Py_XDECREF(old);
}

}  // namespace

Interruptible::Interruptible() : scope_(hook.load() ? call_hook : look, hook.load() != nullptr) {}

void pass_on(nb::python_error& e) {
  if (!e.matches(PyExc_Exception)) throw std::move(e);
}

void register_interrupt(nb::module_& m) {
  m.def("set_poll_hook", &set_hook, nb::arg("hook").none(),
        "For tests: what compiling and printing call at every poll instead of looking for signals.");
}

}  // namespace pypto::bind
