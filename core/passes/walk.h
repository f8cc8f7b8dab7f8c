// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "core/base/poll.h"
#include "core/ir/ir.h"

/// Visiting expressions and statements in the order in which they are evaluated.
namespace pypto::passes {

/// Calls visit(e) for `e` and everything below it, operands before the expression that uses them.
template <class Visit>
void walk_expr(const ir::ExprPtr& e, Visit&& visit) {
  if (!e) return;
  for (const auto& a : e->args) walk_expr(a, visit);
  if (e->call) {
    walk_expr(e->call->core_num, visit);
    for (const auto& d : e->call->deps) walk_expr(d, visit);
    walk_expr(e->call->device, visit);
    walk_expr(e->call->predicate, visit);
  }
  visit(e);
}

/// Calls visit(e) for the expressions that a statement itself evaluates, not those of nested statements.
template <class Visit>
void own_exprs(const ir::Stmt& s, Visit&& visit) {
  poll();
  const auto one = [&](const ir::ExprPtr& e) {
    if (e) visit(e);
  };
  for (const auto& c : s.carries) one(c.init);
  one(s.start);
  one(s.stop);
  one(s.step);
  one(s.value);
  for (const auto& v : s.values) one(v);
  if (s.scope) {
    one(s.scope->core_num);
    for (const auto& d : s.scope->deps) one(d);
    one(s.scope->predicate);
  }
}

/// Calls visit(stmt) for every statement of a block, outer ones first.
template <class Visit>
void walk_stmts(const ir::Block& block, Visit&& visit) {
  for (const auto& s : block) {
    poll();
    visit(s);
    walk_stmts(s->body, visit);
    walk_stmts(s->else_body, visit);
  }
}

/// Calls visit(e) for every expression of a block in textual order, operands first.
template <class Visit>
void walk_exprs(const ir::Block& block, Visit&& visit) {
  for (const auto& s : block) {
    own_exprs(*s, [&](const ir::ExprPtr& e) { walk_expr(e, visit); });
    walk_exprs(s->body, visit);
    walk_exprs(s->else_body, visit);
  }
}

/// Calls visit(v) for every variable that a statement itself defines.
template <class Visit>
void own_defs(const ir::Stmt& s, Visit&& visit) {
  const auto one = [&](const ir::VarPtr& v) {
    if (v) visit(v);
  };
  for (const auto& c : s.carries) {
    one(c.var);
    one(c.result);
  }
  one(s.loop_var);
  if (s.scope) {
    one(s.scope->loop_var);
    one(s.scope->task);
  }
  for (const auto& t : s.targets) one(t);
}

inline bool is_op(const ir::ExprPtr& e, ir::OpId op) {
  return e && e->kind == ir::ExprKind::kOp && e->op == op;
}

}  // namespace pypto::passes
