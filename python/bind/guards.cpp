// SPDX-License-Identifier: Apache-2.0
#include "python/bind/guards.h"

#include "python/bind/symbolic.h"

namespace pypto::bind {
namespace {

thread_local BuildSession* current_session = nullptr;

bool plain_value(PyObject* o) {
  if (o == Py_None || PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o))
    return true;
  if (enum_class_name(reinterpret_cast<PyObject*>(Py_TYPE(o)))) return true;
  nb::handle h(o);
  if (nb::isinstance<PyDType>(h) || nb::isinstance<PySymbol>(h) || nb::isinstance<PySymExpr>(h)) return true;
  // Methods are made anew by every attribute access; two of the same function and object are equal.
  if (PyMethod_Check(o) || PyCFunction_Check(o)) return true;
  const char* name = Py_TYPE(o)->tp_name;
  const std::string_view type = name;
  return type == "TensorView" || type == "TileView" || type == "MemRef";
}

bool same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    // By bits: 0.0 and -0.0 differ, a NaN equals itself.
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof(x)) == 0;
  }
  const int eq = PyObject_RichCompareBool(a, b, Py_EQ);
  if (eq < 0) PyErr_Clear();
  return eq == 1;
}

}  // namespace

Snapshot Snapshot::of(nb::handle value) {
  Snapshot s;
  s.object = nb::borrow(value);
  PyObject* o = value.ptr();
  if (plain_value(o)) {
    s.kind = Kind::kValue;
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    s.kind = Kind::kSequence;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; ++i) s.items.push_back(of(PySequence_Fast_GET_ITEM(o, i)));
    // The list itself may change: its content is what counts.
    if (PyList_Check(o)) s.object = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o)));
  }
  return s;
}

bool Snapshot::matches(PyObject* now) const {
  switch (kind) {
    case Kind::kIdentity:
      return now == object.ptr();
    case Kind::kValue:
      return same_value(object.ptr(), now);
    case Kind::kSequence: {
      const bool list = PyList_Check(now);
      if (!list && !PyTuple_Check(now)) return false;
      PyObject* type =
          PyTuple_Check(object.ptr()) ? reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) : object.ptr();
      if (reinterpret_cast<PyObject*>(Py_TYPE(now)) != type) return false;
      if (static_cast<size_t>(PySequence_Fast_GET_SIZE(now)) != items.size()) return false;
      for (size_t i = 0; i < items.size(); ++i) {
        nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(now, static_cast<Py_ssize_t>(i)));
        if (!items[i].matches(item.ptr())) return false;
      }
      return true;
    }
  }
  return false;
}

bool Guard::holds() const {
  switch (kind) {
    case Kind::kCell: {
      PyObject* now = PyCell_GET(holder.ptr());
      return now ? !absent && expected.matches(now) : absent;
    }
    case Kind::kDict: {
      PyObject* now = PyDict_GetItemWithError(holder.ptr(), name.ptr());
      if (!now) {
        PyErr_Clear();
        return absent;
      }
      return !absent && expected.matches(now);
    }
    case Kind::kAttr: {
      PyObject* now = PyObject_GetAttr(holder.ptr(), name.ptr());
      if (!now) {
        PyErr_Clear();
        return false;
      }
      nb::object own = nb::steal(now);
      return expected.matches(now);
    }
    case Kind::kItem: {
      PyObject* now = PyObject_GetItem(holder.ptr(), name.ptr());
      if (!now) {
        PyErr_Clear();
        return false;
      }
      nb::object own = nb::steal(now);
      return expected.matches(now);
    }
    case Kind::kCode: {
      PyObject* f = holder.ptr();
      return PyFunction_GetCode(f) == expected.items[0].object.ptr() &&
             reinterpret_cast<PyFunctionObject*>(f)->func_defaults ==
                 (expected.items[1].object.is_none() ? nullptr : expected.items[1].object.ptr());
    }
  }
  return false;
}

bool Guards::first(Guard::Kind kind, nb::handle holder, nb::handle name) {
  std::string key(1, static_cast<char>(kind));
  if (name.is_valid()) key += nb::repr(name).c_str();
  return seen_.insert({holder.ptr(), std::move(key)}).second;
}

void Guards::add_cell(nb::handle cell, nb::handle name, nb::handle value) {
  if (!first(Guard::Kind::kCell, cell, name)) return;
  Guard g{Guard::Kind::kCell, nb::borrow(cell), nb::borrow(name), {}, !value.is_valid()};
  if (value.is_valid()) g.expected = Snapshot::of(value);
  guards_.push_back(std::move(g));
}

void Guards::add_dict(nb::handle dict, nb::handle name, PyObject* value) {
  if (!first(Guard::Kind::kDict, dict, name)) return;
  Guard g{Guard::Kind::kDict, nb::borrow(dict), nb::borrow(name), {}, value == nullptr};
  if (value) g.expected = Snapshot::of(value);
  guards_.push_back(std::move(g));
}

void Guards::add_attr(nb::handle base, nb::handle name, nb::handle value) {
  if (!first(Guard::Kind::kAttr, base, name)) return;
  guards_.push_back({Guard::Kind::kAttr, nb::borrow(base), nb::borrow(name), Snapshot::of(value), false});
}

void Guards::add_item(nb::handle base, nb::handle key, nb::handle value) {
  if (!first(Guard::Kind::kItem, base, key)) return;
  guards_.push_back({Guard::Kind::kItem, nb::borrow(base), nb::borrow(key), Snapshot::of(value), false});
}

void Guards::add_function(nb::handle function) {
  if (!PyFunction_Check(function.ptr()) || !first(Guard::Kind::kCode, function, nb::handle())) return;
  Guard g{Guard::Kind::kCode, nb::borrow(function), nb::object(), {}, false};
  g.expected.items.resize(2);
  g.expected.items[0].object = nb::borrow(PyFunction_GetCode(function.ptr()));
  PyObject* defaults = PyFunction_GetDefaults(function.ptr());
  g.expected.items[1].object = defaults ? nb::borrow(defaults) : nb::none();
  guards_.push_back(std::move(g));
}

bool Guards::hold() const {
  for (const Guard& g : guards_) {
    if (!g.holds()) return false;
  }
  return true;
}

int Guards::traverse(visitproc visit, void* arg) const {
  for (const Guard& g : guards_) {
    Py_VISIT(g.holder.ptr());
    Py_VISIT(g.expected.object.ptr());
  }
  return 0;
}

BuildSession::BuildSession(Guards* guards) : guards_(guards), previous_(current_session) {
  current_session = this;
}
BuildSession::~BuildSession() { current_session = previous_; }

int BuildSession::handle(nb::handle object) {
  const auto [it, added] = index_.try_emplace(object.ptr(), static_cast<int>(objects_.size()));
  if (added) objects_.push_back(nb::borrow(object));
  return it->second;
}

nb::object BuildSession::object(int handle) const {
  if (handle < 0 || static_cast<size_t>(handle) >= objects_.size()) return nb::object();
  return objects_[static_cast<size_t>(handle)];
}

BuildSession& BuildSession::current() {
  PYPTO_CHECK(current_session, "a host value was used outside the build that made it");
  return *current_session;
}

}  // namespace pypto::bind
