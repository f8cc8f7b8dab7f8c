// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python/bind/common.h"

namespace pypto::bind {

/// pl.DynVar.
struct PySymbol {
  std::string name;
  mutable ir::ExprPtr cached;
  ir::ExprPtr expr() const;
};

/// Integer arithmetic over symbols, as Python evaluates it outside a body.
struct PySymExpr {
  ir::ExprPtr expr;
};

/// Same operations on symbols of the same names.
bool symbolic_equal(const ir::ExprPtr& a, const ir::ExprPtr& b);
/// An extent from an int, a symbol or an expression; unknown (neither constant nor symbolic) for anything
/// else.
ir::Dim dim_from_python(nb::handle value);

}  // namespace pypto::bind
