// SPDX-License-Identifier: Apache-2.0
#include "core/passes/core_order.h"

#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Stmt;

/// What the operations of a statement do that the order of memory depends on.
struct Deeds {
  bool memory = false;   ///< touch global memory
  bool acquire = false;  ///< wait for another task or rank
  bool release = false;  ///< tell another task or rank
};

void add(const Expr& e, Deeds& out) {
  if (e.kind != ExprKind::kOp) return;
  const ir::OpRow& row = ir::op_row(e.op);
  const bool comm = row.cost == ir::CostClass::kComm;
  bool all = true;
  for (size_t i = 0; i < e.args.size(); ++i) {
    all = all && row.effects[i] != '\0';
    const char effect = all ? row.effects[i] : '-';
    const ExprPtr& a = e.args[i];
    if (effect == '-' || !a || !a->type) continue;
    out.memory = out.memory || (a->type->is_tensor() && a->type->place != ir::TensorPlace::kOnChip);
    out.acquire = out.acquire || effect == 's' || (comm && effect == 'x');
    out.release = out.release || effect == 'n' || (comm && effect == 'x');
  }
}

Deeds deeds(const Stmt& s) {
  Deeds out;
  own_exprs(s, [&](const ExprPtr& e) { walk_expr(e, [&](const ExprPtr& x) { add(*x, out); }); });
  return out;
}

}  // namespace

void CoreOrder::run(const Stmt& s, std::optional<Side> at) {
  const Deeds d = deeds(s);
  if (at != kVector && d.memory) {
    if (now_.awaited) throw NotSplit();
    now_.touched = true;
  }
  if (d.release && now_.touched) throw NotSplit();
  if (d.acquire) now_.awaited = true;
}

CoreOrder::Missing CoreOrder::in_loop(const Stmt& loop, const CoreSides& sides) const {
  Missing out = now_;
  walk_stmts(loop.body, [&](const ir::StmtPtr& s) {
    const Deeds d = deeds(*s);
    out.awaited = out.awaited || d.acquire;
    out.touched = out.touched || (d.memory && sides.of(*s) != kVector);
  });
  return out;
}

void CoreOrder::join(const Missing& from) {
  now_.awaited = now_.awaited || from.awaited;
  now_.touched = now_.touched || from.touched;
}

}  // namespace pypto::passes
