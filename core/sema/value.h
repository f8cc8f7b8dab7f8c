// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/ir.h"
#include "core/sema/host.h"

/// Values and names as the front end sees them while it reads a body.
namespace pypto::sema {

namespace syn = pypto::syntax;
using ir::ExprPtr;
using ir::TypePtr;
using ir::VarPtr;

/// What an expression of a body denotes: a run-time (or literal) value, a compile-time tuple of values, or a
/// compile-time object of the host.
struct Value {
  enum class Kind : uint8_t { kNothing, kExpr, kTuple, kHost };
  Kind kind = Kind::kNothing;
  ExprPtr expr;
  std::vector<Value> items;
  HostValue host;
  bool is_list = false;

  static Value of(ExprPtr e) {
    Value v;
    v.kind = Kind::kExpr;
    v.expr = std::move(e);
    return v;
  }
  static Value tuple(std::vector<Value> items) {
    Value v;
    v.kind = Kind::kTuple;
    v.items = std::move(items);
    return v;
  }
  static Value of_host(HostValue h) {
    Value v;
    v.kind = Kind::kHost;
    v.host = std::move(h);
    return v;
  }
  bool is_expr() const { return kind == Kind::kExpr; }
  bool is_tuple() const { return kind == Kind::kTuple; }
  bool is_host() const { return kind == Kind::kHost; }
  const ir::Type* type() const { return is_expr() ? expr->type.get() : nullptr; }
  bool is_array_like() const { return is_expr() && expr->type && expr->type->is_array_like(); }
  bool is_scalar() const { return is_expr() && expr->type && expr->type->is_scalar(); }
  bool is_task() const { return is_scalar() && expr->type->dtype == DType::kTaskId; }
};

/// What a name stands for at one point of a body. Immutable; a rebinding makes a new one, so that two flows
/// can be compared by address.
struct Binding {
  enum class Kind : uint8_t {
    kVar,      ///< `var`, at this point of type `type`
    kValue,    ///< compile-time value (unrolled loop variable, baked scalar, tuple, DynVar, ...)
    kPoison,   ///< two arms gave it different types
    kNoValue,  ///< result of an operation that has none
  };
  Kind kind = Kind::kVar;
  VarPtr var;
  TypePtr type;
  Value value;
  std::optional<int64_t> lower;  ///< integer scalars: known least value
  ExprPtr constant;              ///< scalar variables: the constant it is known to hold here
  std::string undefined;         ///< not empty: not assigned on every path; why
  Span undefined_span;
  std::string poison;        ///< kPoison: the two types
  std::vector<int> regions;  ///< regions whose body made the value (01 L-111)
  std::string stale;         ///< explicit carries: the yielded name that holds the final value (01 L-97)
  bool loop_variable = false;
  bool blocks = false;   ///< made in a body that several blocks run
  bool address = false;  ///< slice or other address of a larger storage
  Span span;             ///< last definition
};
using BindingPtr = std::shared_ptr<const Binding>;
using Env = std::map<std::string, BindingPtr>;

/// A flow of control: the names, and whether this point can be reached.
struct Flow {
  Env names;
  bool live = true;
};

/// Shared by every rejection: location, hint and notes in one call.
struct Note {
  std::string text;
  Span span;
};
[[noreturn]] void reject(ErrorClass cls, const Span& span, std::string message, std::string hint = {},
                         std::vector<Note> notes = {});
/// "; did you mean 'x'?" or empty.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates);

/// Short source text of an expression, for messages.
std::string source_text(const syn::Expr& e);

/// The last component of a dotted name.
std::string last_component(const std::string& dotted);

// ---- static types of a flow (flow.cpp)

TypePtr with_storage(const TypePtr& type, std::shared_ptr<ir::Storage> storage);
TypePtr with_place(const TypePtr& type, ir::TensorPlace place);
bool same_dim(const ir::Dim& a, const ir::Dim& b);
/// Equal extents, constants and expressions alike.
bool same_dims(const ir::Shape& a, const ir::Shape& b);
/// The types agree where definitions meet; for tiles, memory spaces may differ (a move makes them agree).
bool meets(const ir::Type& a, const ir::Type& b, bool* needs_move = nullptr);

}  // namespace pypto::sema
