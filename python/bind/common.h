// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "core/base/diagnostic.h"
#include "core/base/dtype.h"
#include "core/base/poll.h"
#include "core/ir/ir.h"

/// The Python module `pypto._core`: one `register_*` function per file, called by module.cpp.
namespace pypto::bind {

namespace nb = nanobind;

/// A dtype as Python sees it.
struct PyDType {
  DType dtype = DType::kNone;
};
/// The one Python object of a dtype (`DataType.FP32`).
nb::object dtype_object(DType dtype);

/// The member of a public enum, such as enum_object("FunctionType", 2); None for a value without member.
nb::object enum_object(const char* name, int64_t value);
/// Name of a registered enum class ("FunctionType"), or nullptr.
const std::string* enum_class_name(PyObject* cls);
/// Canonical path of a registered language object ("pl.range"), or nullptr.
const std::string* construct_path(PyObject* object);

/// The exception object for a diagnostic (04 section 20). Needs the GIL.
nb::object make_exception(const Diagnostic& d);
/// Issues Python warnings for the warnings of a program from index `first` on (01 L-183).
void issue_warnings(const std::vector<Diagnostic>& warnings, size_t first = 0);
/// Keeps a Python exception until the diagnostic that mentions it is raised.
int keep_exception(nb::object exception);
nb::object take_exception(int index);
/// A diagnostic as Python sees it (class Diagnostic).
nb::object diagnostic_object(const Diagnostic& d);

/// Looks for Ctrl-C while it lives: poll() throws what the signal handler raised. Needs no GIL.
class Interruptible {
 public:
  Interruptible();

 private:
  PollScope scope_;
};
/// Throws on what is no `Exception`, such as Ctrl-C: nobody may take that for an answer or an error of a
/// program.
void pass_on(nb::python_error& e);

/// Runs core code; anything but a Failure that comes out of it is our own defect.
template <class F>
auto checked_run(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Failure&) {
    throw;
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    fail_internal("core", 0, std::string("unexpected exception: ") + e.what());
  }
}

/// The same for work that Ctrl-C may end wherever it is: whatever reads, rewrites or prints a program.
template <class F>
auto guarded(F&& body) -> decltype(body()) {
  const Interruptible interruptible;
  return checked_run(std::forward<F>(body));
}

void register_values(nb::module_& m);
void register_errors(nb::module_& m);
void register_interrupt(nb::module_& m);
void register_source(nb::module_& m);
void register_program(nb::module_& m);
void register_nodes(nb::module_& m);
void register_compile(nb::module_& m);
void register_arrays(nb::module_& m);
void register_args(nb::module_& m);
void register_run(nb::module_& m);
void register_jit(nb::module_& m);
void register_analysis(nb::module_& m);

}  // namespace pypto::bind
