// SPDX-License-Identifier: Apache-2.0
#include "core/passes/liveness.h"

#include <utility>

#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Stmt;
using ir::StmtKind;

void add_uses(const ir::ExprPtr& e, VarSet& live) {
  walk_expr(e, [&](const ir::ExprPtr& x) {
    if (x->kind == ir::ExprKind::kVar) live.insert(x->var.get());
  });
}

bool add_all(VarSet& into, const VarSet& from) {
  const size_t before = into.size();
  into.insert(from.begin(), from.end());
  return into.size() != before;
}

}  // namespace

Liveness::Liveness(const ir::Block& block, VarSet at_end) { start_ = run(block, std::move(at_end)); }

VarSet Liveness::run(const ir::Block& block, VarSet live) {
  for (auto it = block.rbegin(); it != block.rend(); ++it) live = run(**it, std::move(live));
  return live;
}

VarSet Liveness::run(const Stmt& s, VarSet live) {
  after_[&s] = live;
  switch (s.kind) {
    case StmtKind::kAssign:
    case StmtKind::kEval:
    case StmtKind::kYield:
    case StmtKind::kComment:
      for (const auto& t : s.targets) live.erase(t.get());
      if (s.kind == StmtKind::kYield && !loops_.empty()) {
        // The yield of a loop also gives the carried variables their next values; that of a branch does not.
        const Stmt& loop = *loops_.back().loop;
        if (loop.explicit_carry && !loop.body.empty() && loop.body.back().get() == &s) {
          for (const auto& c : loop.carries) live.erase(c.var.get());
        }
      }
      break;
    case StmtKind::kReturn:
      live.clear();
      break;
    case StmtKind::kBreak:
      if (!loops_.empty()) live = *loops_.back().on_break;
      break;
    case StmtKind::kContinue:
      if (!loops_.empty()) live = *loops_.back().on_continue;
      break;
    case StmtKind::kIf: {
      VarSet other = run(s.else_body, live);
      live = run(s.body, std::move(live));
      add_all(live, other);
      break;
    }
    case StmtKind::kScope:
      live = run(s.body, std::move(live));
      if (s.scope) {
        live.erase(s.scope->task.get());
        live.erase(s.scope->loop_var.get());
        for (const auto& v : s.scope->no_dep_args) live.insert(v.get());
        for (const auto& v : s.scope->dumps) live.insert(v.get());
      }
      break;
    case StmtKind::kFor:
    case StmtKind::kWhile: {
      const VarSet exit = live;
      VarSet head = live;  // live where the next iteration is decided
      if (s.kind == StmtKind::kWhile) add_uses(s.value, head);
      for (;;) {
        VarSet at_head = head;
        loops_.push_back({&exit, &at_head, &s});
        VarSet body = run(s.body, head);
        loops_.pop_back();
        body.erase(s.loop_var.get());
        if (!add_all(head, body)) break;
      }
      live = std::move(head);
      for (const auto& c : s.carries) {
        live.erase(c.var.get());
        live.erase(c.result.get());
      }
      if (s.kind == StmtKind::kWhile) add_uses(s.value, live);
      for (const auto& c : s.carries) live.erase(c.var.get());
      break;
    }
  }
  own_exprs(s, [&](const ir::ExprPtr& e) {
    if (s.kind == StmtKind::kWhile && e == s.value && !s.carries.empty()) return;
    add_uses(e, live);
  });
  if (s.kind == StmtKind::kWhile && !s.carries.empty()) {
    VarSet condition;
    add_uses(s.value, condition);
    for (const auto& c : s.carries) condition.erase(c.var.get());
    add_all(live, condition);
  }
  before_[&s] = live;
  return live;
}

VarSet live_at_start(const ir::Block& block) { return Liveness(block).start(); }

}  // namespace pypto::passes
