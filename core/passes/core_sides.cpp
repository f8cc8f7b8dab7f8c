// SPDX-License-Identifier: Apache-2.0
#include "core/passes/core_sides.h"

#include "core/passes/flatten.h"
#include "core/passes/walk.h"

namespace pypto::passes {

using ir::Block;
using ir::ExprKind;
using ir::ExprPtr;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtPtr;
using ir::Type;
using ir::Var;
using ir::VarPtr;

namespace {

bool is_tile(const ExprPtr& e) { return e && e->type && e->type->is_tile(); }

}  // namespace

Side side_of(const Type& t) { return tile_side(t) == TileSide::kVector ? kVector : kCube; }

Side side_of(const ExprPtr& e) { return side_of(e->kind == ExprKind::kVar ? *e->var->type : *e->type); }

bool defines(const Stmt& s, const Var* v) {
  bool found = false;
  const auto look = [&](const Stmt& x) {
    own_defs(x, [&](const VarPtr& d) { found = found || d.get() == v; });
  };
  look(s);
  walk_stmts(s.body, [&](const StmtPtr& x) { look(*x); });
  walk_stmts(s.else_body, [&](const StmtPtr& x) { look(*x); });
  return found;
}

CoreSides::CoreSides(const ir::Function& f) {
  walk_stmts(f.body, [&](const StmtPtr& s) {
    if (s->kind != StmtKind::kAssign || s->targets.size() != 1 || !s->value->type->is_scalar()) return;
    if (const auto at = of(*s)) own_scalars_[s->targets[0].get()] = *at;
  });
}

std::optional<Side> CoreSides::of(const Stmt& s) const {
  if (s.kind != StmtKind::kAssign && s.kind != StmtKind::kEval) return std::nullopt;
  const ExprPtr& e = s.value;
  if (is_tile(e)) {
    if (is_op(e, OpId::k_aiv_shard)) return kVector;
    if (is_op(e, OpId::k_aic_gather)) return kCube;
    return side_of(e);
  }
  if (e->kind != ExprKind::kOp) return of_scalar(e);
  std::optional<Side> found;
  for (const auto& a : e->args) {
    if (is_tile(a)) found = side_of(a);
  }
  if (found) return found;
  const ir::OpRow& row = ir::op_row(e->op);
  switch (e->op) {
    case OpId::k_bar_all:
    case OpId::k_fence:
    case OpId::k_cacheinvalid:
      return std::nullopt;
    case OpId::k_get_subblock_idx:
      return kVector;
    default:
      break;
  }
  if (row.cost == ir::CostClass::kSync) throw NotSplit();
  if (row.cost == ir::CostClass::kComm) return kVector;
  for (const char* c = row.effects; *c; ++c) {
    if (*c != '-' && *c != 'r') return kVector;
  }
  return of_scalar(e);
}

std::optional<Side> CoreSides::of_scalar(const ExprPtr& e) const {
  std::optional<Side> found;
  walk_expr(e, [&](const ExprPtr& x) {
    if (x->kind != ExprKind::kVar) return;
    const auto it = own_scalars_.find(x->var.get());
    if (it == own_scalars_.end()) return;
    if (found && *found != it->second) throw NotSplit();
    found = it->second;
  });
  return found;
}

bool CoreSides::uses(const Stmt& s, const Var* v, Side at) const {
  bool found = false;
  const auto look = [&](const Stmt& x) {
    const auto where = of(x);
    own_exprs(x, [&](const ExprPtr& e) {
      walk_expr(e, [&](const ExprPtr& y) {
        if (y->kind == ExprKind::kVar && y->var.get() == v && (!where || *where == at)) found = true;
      });
    });
  };
  look(s);
  walk_stmts(s.body, [&](const StmtPtr& x) { look(*x); });
  walk_stmts(s.else_body, [&](const StmtPtr& x) { look(*x); });
  return found;
}

size_t CoreSides::last_use(const Block& in, size_t i, const Var* v, Side at) const {
  size_t last = i;
  for (size_t j = i; j < in.size(); ++j) {
    const bool compound = !in[j]->body.empty() || !in[j]->else_body.empty();
    const bool redefined = j > i && defines(*in[j], v);
    if (compound && redefined) break;
    if (uses(*in[j], v, at)) last = j;
    if (redefined) break;
  }
  return last;
}

}  // namespace pypto::passes
