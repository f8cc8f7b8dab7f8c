// SPDX-License-Identifier: Apache-2.0
#include "core/passes/drop_unused.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <unordered_set>

#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Stmt;
using ir::StmtKind;

bool has_effect(const ExprPtr& e) {
  bool found = false;
  walk_expr(e, [&](const ExprPtr& x) {
    found = found || x->kind == ExprKind::kCall;
    if (x->kind != ExprKind::kOp) return;
    const ir::OpRow& row = ir::op_row(x->op);
    if (row.cost == ir::CostClass::kSync || row.cost == ir::CostClass::kComm) found = true;
    for (const char* c = row.effects; *c; ++c) found = found || (*c != '-' && *c != 'r');
  });
  return found;
}

/// Marks what is needed, from effects backwards, until nothing changes.
class Needed {
 public:
  explicit Needed(const Block& body) {
    for (bool changed = true; changed;) {
      const size_t before = vars_.size() + stmts_.size();
      mark(body);
      changed = vars_.size() + stmts_.size() != before;
    }
  }

  Block sweep(const Block& body) const {
    Block out;
    for (const auto& s : body) {
      if (!stmts_.count(s.get())) continue;
      auto copy = std::make_shared<Stmt>(*s);
      copy->body = sweep(s->body);
      copy->else_body = sweep(s->else_body);
      if (copy->kind == StmtKind::kIf && copy->else_body.empty()) copy->has_else = false;
      out.push_back(copy);
    }
    return out;
  }

 private:
  void need(const ExprPtr& e) {
    walk_expr(e, [&](const ExprPtr& x) {
      if (x->kind == ExprKind::kVar) vars_.insert(x->var.get());
      if (!x->type) return;
      for (const auto* dims : {&x->type->shape, &x->type->valid}) {
        for (const auto& d : *dims) {
          if (d.expr && d.expr.get() != x.get())
            walk_expr(d.expr, [&](const ExprPtr& y) {
              if (y->kind == ExprKind::kVar) vars_.insert(y->var.get());
            });
        }
      }
    });
  }

  bool mark(const Block& body) {
    bool any = false;
    for (const auto& s : body) any = mark(*s) || any;
    return any;
  }

  bool mark(const Stmt& s) {
    bool keep = mark(s.body);
    keep = mark(s.else_body) || keep;
    switch (s.kind) {
      case StmtKind::kBreak:
      case StmtKind::kContinue:
      case StmtKind::kReturn:
      case StmtKind::kYield:
      case StmtKind::kComment:
        keep = true;
        break;
      default:
        break;
    }
    if (s.kind == StmtKind::kFor || s.kind == StmtKind::kWhile) {
      // A yield alone is no reason to run a loop.
      keep = std::any_of(s.body.begin(), s.body.end(), [&](const auto& b) {
        return stmts_.count(b.get()) && b->kind != StmtKind::kYield && b->kind != StmtKind::kComment;
      });
    }
    if (s.value && (s.kind == StmtKind::kEval || s.kind == StmtKind::kAssign))
      keep = keep || has_effect(s.value);
    own_defs(s, [&](const ir::VarPtr& v) { keep = keep || vars_.count(v.get()) > 0; });
    if (!keep) return false;
    stmts_.insert(&s);
    own_exprs(s, [&](const ExprPtr& e) { need(e); });
    return true;
  }

  std::unordered_set<const ir::Var*> vars_;
  std::unordered_set<const Stmt*> stmts_;
};

}  // namespace

void drop_unused_code(ir::Function& f) { f.body = Needed(f.body).sweep(f.body); }

}  // namespace pypto::passes
