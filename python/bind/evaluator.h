// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/syntax/syntax.h"
#include "python/bind/host.h"

namespace pypto::bind {

/// Evaluates a compile-time expression on Python objects with Python's own operations (01 L-15), recording a
/// guard for every attribute and item it looks at.
class Evaluator {
 public:
  Evaluator(PyHost& host, const std::vector<std::pair<std::string, sema::HostValue>>& locals);
  nb::object eval(const syntax::Expr& e);
  /// The error that Python raised, for the front end; keeps the exception object.
  static sema::HostError host_error(nb::python_error& e);

 private:
  nb::object call(const syntax::Expr& e);
  nb::object subscript(const syntax::Expr& e);
  nb::object comprehension(const syntax::Expr& e);
  void comprehend(const syntax::Expr& e, size_t clause, nb::list& out);
  void bind(const syntax::Expr& target, nb::object value);
  nb::object compare(const syntax::Expr& e);
  nb::object format(const syntax::Expr& e);
  nb::object eval(const syntax::ExprPtr& e) { return e ? eval(*e) : nb::none(); }

  PyHost& host_;
  std::vector<std::pair<std::string, nb::object>> locals_;
};

/// Records that attribute `name` of `object` was `value`.
void record_attribute(nb::handle object, const std::string& name, nb::handle value);

void register_value_classes(nb::object tensor_view, nb::object tile_view, nb::object memref);
void register_function_class(nb::object cls);

}  // namespace pypto::bind
