// SPDX-License-Identifier: Apache-2.0
#include "core/passes/create_outputs.h"

#include <algorithm>
#include <utility>

#include "core/passes/walk.h"

namespace pypto::passes {

using ir::ExprKind;
using ir::ExprPtr;
using ir::StmtKind;
using ir::StmtPtr;
using ir::VarPtr;

ExprPtr CreateCloner::expr(const ExprPtr& e) {
  if (e) {
    if (const auto it = creates.find(e.get()); it != creates.end()) return ir::var_ref(it->second, e->span);
  }
  return ir::Cloner::expr(e);
}

OneStorage::OneStorage(const ir::Block& block, const OriginScan& scan, VarSet at_end) : scan_(scan) {
  walk(block, false);
  if (!repeated_.empty()) live_ = std::make_unique<Liveness>(block, std::move(at_end));
}

void OneStorage::walk(const ir::Block& block, bool loop) {
  for (const auto& s : block) {
    const bool inside = loop || s->kind == StmtKind::kFor || s->kind == StmtKind::kWhile;
    own_exprs(*s, [&](const ExprPtr& e) {
      walk_expr(e, [&](const ExprPtr& x) {
        if (inside && x->kind == ExprKind::kOp && x->op == ir::OpId::k_create_tensor)
          repeated_.insert(x.get());
      });
    });
    walk(s->body, inside);
    walk(s->else_body, inside);
  }
}

bool OneStorage::can(const ir::Expr& create) const {
  if (!repeated_.count(&create)) return true;
  const OriginScan::Made* made = scan_.made(create);
  if (!made || create.attrs.find(ir::AttrKey::k_init_value)) return false;
  const auto live = live_->after(*made->stmt);
  return std::none_of(made->held.begin(), made->held.end(),
                      [&](const ir::Var* v) { return live.count(v) > 0; });
}

bool names_only(const ir::Block& block, const VarPtr& var, const ir::Expr& create) {
  if (Liveness(block).start().count(var.get())) return false;
  bool only = true;
  walk_stmts(block, [&](const StmtPtr& s) {
    own_defs(*s, [&](const VarPtr& v) {
      if (v != var) return;
      only = only && s->kind == StmtKind::kAssign && s->targets.size() == 1;
      if (!only) return;
      ExprPtr e = s->value;
      while (e && e->kind == ExprKind::kOp && ir::op_row(e->op).alias == ir::AliasClass::kInPlace) {
        e = e->args[static_cast<size_t>(ir::op_row(e->op).inplace_param)];
      }
      only = e && (e.get() == &create || (e->kind == ExprKind::kVar && e->var == var));
    });
  });
  return only;
}

ir::Block without_self_moves(ir::Block block) {
  ir::Block out;
  for (auto& s : block) {
    s->body = without_self_moves(std::move(s->body));
    s->else_body = without_self_moves(std::move(s->else_body));
    const bool self = s->kind == StmtKind::kAssign && s->targets.size() == 1 &&
                      s->value->kind == ExprKind::kVar && s->value->var == s->targets[0];
    if (!self) out.push_back(std::move(s));
  }
  return out;
}

}  // namespace pypto::passes
