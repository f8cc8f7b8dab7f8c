// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/sema/sema.h"
#include "python/bind/guards.h"

namespace pypto::bind {

/// The names around one Python function: closure cells, names of the enclosing frame at decoration, class
/// names, module globals, allowed builtins (01 L-14).
class PyHost final : public sema::Host {
 public:
  PyHost(nb::object function, nb::object captured);

  sema::HostValue lookup(const std::string& name) override;
  sema::HostValue attribute(const sema::HostValue& base, const std::string& name) override;
  sema::HostValue eval(const syntax::Expr& expr,
                       const std::vector<std::pair<std::string, sema::HostValue>>& locals) override;
  syntax::ExprPtr parse_annotation(const std::string& text, const Span& span) override;
  void print(const std::string& line) override;

  /// The object that a name denotes; null if it is defined nowhere. Records a guard.
  nb::object find(const std::string& name);

 private:
  friend class Evaluator;
  nb::object function_, globals_, captured_;
  std::vector<std::pair<std::string, nb::object>> cells_;
};

/// A Python object as the front end sees it.
sema::HostValue to_host_value(nb::handle object);
/// The Python object of a host value of this build.
nb::object to_python(const sema::HostValue& value);

/// A decorated Python function; Python's `_core.FunctionSource`.
struct PyFunctionSource {
  std::shared_ptr<sema::FunctionSource> source;
  nb::object function;  ///< the Python function
  nb::object captured;  ///< names of the enclosing frame, a dict or None
  nb::object code;      ///< code object that `source->def` was read from
};
/// The function source behind a JIT function, inline helper or ir.Function; nullptr for anything else.
std::shared_ptr<sema::FunctionSource> function_source_of(nb::handle object);

/// Registered Python callables of sub-workers (ir::Function::host_callable).
int register_callable(nb::object callable);
nb::object callable_object(int index);

}  // namespace pypto::bind
