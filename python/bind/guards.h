// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/bind/common.h"

/// What a specialisation depends on besides its arguments (04 section 4.6).
namespace pypto::bind {

/// A value as it was when the program was built. Numbers, text, dtypes, enum members, symbols and views
/// compare by type and value, lists and tuples by content, everything else by identity.
struct Snapshot {
  enum class Kind : uint8_t { kIdentity, kValue, kSequence };
  Kind kind = Kind::kIdentity;
  nb::object object;
  std::vector<Snapshot> items;

  static Snapshot of(nb::handle value);
  bool matches(PyObject* now) const;
};

/// One name, attribute or item, where it lives, and what it was.
struct Guard {
  enum class Kind : uint8_t {
    kCell,  ///< holder: cell
    kDict,  ///< holder: globals or captured names; expected.object null = absent
    kAttr,
    kItem,
    kCode,  ///< holder: function; expected: its code, defaults, annotations
  };
  Kind kind = Kind::kDict;
  nb::object holder, name;
  Snapshot expected;
  bool absent = false;

  bool holds() const;
};

/// The guards of one specialisation; each place is recorded once.
class Guards {
 public:
  void add_cell(nb::handle cell, nb::handle name, nb::handle value);
  void add_dict(nb::handle dict, nb::handle name, PyObject* value_or_null);
  void add_attr(nb::handle base, nb::handle name, nb::handle value);
  void add_item(nb::handle base, nb::handle key, nb::handle value);
  void add_function(nb::handle function);
  bool hold() const;
  size_t size() const { return guards_.size(); }
  int traverse(visitproc visit, void* arg) const;
  void clear() { guards_.clear(); }

 private:
  bool first(Guard::Kind kind, nb::handle holder, nb::handle name);
  std::vector<Guard> guards_;
  std::set<std::pair<PyObject*, std::string>> seen_;
};

/// State of one build: objects that host values refer to by handle, and the guards being recorded (null:
/// none).
class BuildSession {
 public:
  explicit BuildSession(Guards* guards = nullptr);
  ~BuildSession();
  BuildSession(const BuildSession&) = delete;
  BuildSession& operator=(const BuildSession&) = delete;

  int handle(nb::handle object);
  nb::object object(int handle) const;
  Guards* guards() const { return guards_; }
  static BuildSession& current();

 private:
  std::vector<nb::object> objects_;
  std::unordered_map<PyObject*, int> index_;
  Guards* guards_;
  BuildSession* previous_;
};

}  // namespace pypto::bind
