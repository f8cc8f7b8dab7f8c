// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/ir.h"
#include "core/ir/member_text.h"
#include "core/ir/print.h"

/// Internal to the printer: one class, one file per concern (types, expressions, statements, functions).
namespace pypto::ir::printing {

/// Python literal text.
std::string quoted(const std::string& text);
std::string float_text(double value);
/// `name` with every character that no Python name has replaced.
std::string identifier(const std::string& name);

/// The name each variable of a function is printed with: its own, or with a suffix where two variables share
/// one.
class Names {
 public:
  void reserve(const std::string& name) { taken_.insert(name); }
  /// Gives `v` a name now (in order of appearance); later calls return the same.
  const std::string& of(const Var* v);
  /// The symbol of a name is one thing in all functions.
  void set(const Var* v, const std::string& name) { names_[v] = name; }

 private:
  std::unordered_map<const Var*, std::string> names_;
  std::set<std::string> taken_;
};

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string module(const Module& m);
  std::string free_function(const Function& f);
  std::string expression(const ExprPtr& e) { return expr(e); }
  std::string statement(const Stmt& s, int indent);

  bool lowered = false;  ///< tile operations by their full names, extents as typed constants (04 TXT-5)

 private:
  // ---- functions (print.cpp)
  void function(const Function& f, int indent, bool in_class);
  void signature(const Function& f, int indent, bool in_class);
  void name_variables(const Function& f);
  std::vector<std::string> dynamic_names(const std::vector<const Function*>& functions) const;
  std::string finish(std::string text) const;
  bool uses_pld(const Function& f) const;

  // ---- types (print_type.cpp)
  std::string dim(const Dim& d);
  std::string dims(const std::vector<Dim>& list);
  std::string dtype(DType d) const;
  std::string type(const Type& t, bool full);
  std::string memref(const MemRef& m);
  bool annotates(const Type& t) const;

  // ---- expressions (print_expr.cpp)
  std::string expr(const ExprPtr& e);
  static const ExprPtr& written(const ExprPtr& e);
  /// Parenthesised when it is an operator expression that does not bind more tightly than `around`.
  std::string operand(const ExprPtr& e, OpId around);
  std::string multiple_of_lane(const Expr& e);
  std::string list(const ExprPtr& e);
  std::string int_literal(const Expr& e, bool in_arithmetic);
  std::string call(const Expr& e);
  std::string op(const Expr& e);
  std::string op_call(const Expr& e);
  std::string attr(AttrKey key, const AttrValue& value);
  std::string predicate(const ExprPtr& e);
  std::string deps(const std::vector<ExprPtr>& list);

  // ---- statements (print_stmt.cpp)
  void block(const Block& b, int indent);
  void stmt(const Stmt& s, int indent);
  void line(int indent, const std::string& text);
  std::string targets(const Stmt& s);
  std::string loop_call(const Stmt& s);
  std::string carry_names(const Stmt& s);
  std::string carry_values(const Stmt& s);
  std::string scope_header(const ScopeInfo& s);

  PrintOptions options_;
  Names names_;
  std::string out_;
  std::string self_ = "self.";
  int lanes_ = 0;                   ///< depth of pl.split_aiv bodies
  int extents_ = 0;                 ///< inside the extents of a type
  std::set<const Var*> lane_vars_;  ///< hold the index of a vector lane
  bool pop_typed_ = false;          ///< the annotation of the target says what a pop yields (02 O-2105)
};

}  // namespace pypto::ir::printing
