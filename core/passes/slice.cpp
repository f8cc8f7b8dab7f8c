// SPDX-License-Identifier: Apache-2.0
#include "core/passes/slice.h"

#include <utility>

#include "core/base/poll.h"
#include "core/passes/walk.h"

namespace pypto::passes {

using ir::AliasClass;
using ir::ExprKind;
using ir::ExprPtr;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;

void ControlSlice::refuse(const std::string& why) {
  if (reason_.empty()) reason_ = why;
}

void ControlSlice::need(const ExprPtr& e) {
  if (!e) return;
  if (e->kind == ExprKind::kVar) {
    changed_ = needed_.insert(e->var.get()).second || changed_;
    return;
  }
  if (e->kind == ExprKind::kOp) {
    if (creates_.count(e.get())) return;
    const auto& row = ir::op_row(e->op);
    if (row.alias == AliasClass::kInPlace && row.inplace_param >= 0) {
      return need(e->args[static_cast<size_t>(row.inplace_param)]);
    }
  }
  for (const auto& a : e->args) need(a);
}

bool ControlSlice::keeps(const Stmt& s) const {
  for (const auto& t : s.targets) {
    if (t && needed_.count(t.get())) return true;
  }
  for (const auto& c : s.carries) {
    if (needed_.count(c.var.get()) || (c.result && needed_.count(c.result.get()))) return true;
  }
  if (s.loop_var && needed_.count(s.loop_var.get())) return true;
  if (s.scope && s.scope->loop_var && needed_.count(s.scope->loop_var.get())) return true;
  for (const auto& x : s.body) {
    if (keeps(*x)) return true;
  }
  for (const auto& x : s.else_body) {
    if (keeps(*x)) return true;
  }
  return false;
}

namespace {
/// Whether a block can jump out of its own iteration of the innermost loop around it.
bool jumps(const ir::Block& block) {
  for (const auto& s : block) {
    if (s->kind == StmtKind::kBreak || s->kind == StmtKind::kContinue) return true;
    if (s->kind != StmtKind::kFor && s->kind != StmtKind::kWhile && (jumps(s->body) || jumps(s->else_body)))
      return true;
  }
  return false;
}
}  // namespace

void ControlSlice::close(const ir::Block& block) {
  for (const auto& s : block) {
    poll();
    const bool jump_here = s->kind == StmtKind::kIf && (jumps(s->body) || jumps(s->else_body));
    if (!keeps(*s) && !jump_here) continue;
    switch (s->kind) {
      case StmtKind::kAssign:
        need(s->value);
        break;
      case StmtKind::kYield:
        for (size_t i = 0; i < s->values.size(); ++i) need(s->values[i]);
        break;
      case StmtKind::kFor:
        need(s->start);
        need(s->stop);
        need(s->step);
        break;
      case StmtKind::kIf:
      case StmtKind::kWhile:
        need(s->value);
        break;
      default:
        break;
    }
    for (const auto& c : s->carries) need(c.init);
    close(s->body);
    close(s->else_body);
  }
}

bool ControlSlice::build(const VarSet& wanted) {
  needed_ = wanted;
  code_.clear();
  reason_.clear();
  do {
    changed_ = false;
    close(region_);
  } while (changed_);
  code_ = rewrite(region_);
  return reason_.empty();
}

ExprPtr ControlSlice::rewrite(const ExprPtr& e) {
  if (!e) return nullptr;
  if (const auto it = creates_.find(e.get()); it != creates_.end()) return ir::var_ref(it->second, e->span);
  if (e->kind == ExprKind::kVar || e->args.empty()) {
    if (e->kind == ExprKind::kVar && e->type && e->type->is_tile()) refuse("it depends on a tile");
    if (e->kind != ExprKind::kOp) return e;
  }
  if (e->kind == ExprKind::kCall) {
    refuse("it depends on a call");
    return e;
  }
  if (e->kind == ExprKind::kOp) {
    const auto& row = ir::op_row(e->op);
    if (row.alias == AliasClass::kInPlace && row.inplace_param >= 0) {
      return rewrite(e->args[static_cast<size_t>(row.inplace_param)]);
    }
    if (e->op == OpId::k_get_block_num && block_count_) return block_count_;
    if (e->op == OpId::k_read) {
      refuse("it is read from device data");
      return e;
    }
    if (!(row.places & ir::kPlaceOrch) || e->op == OpId::k_create_tensor) {
      refuse(std::string("'pl.") + row.name + "' runs on the device only");
      return e;
    }
  }
  auto copy = std::make_shared<ir::Expr>(*e);
  for (auto& a : copy->args) a = rewrite(a);
  return copy;
}

ir::Block ControlSlice::rewrite(const ir::Block& block) {
  ir::Block out;
  for (const auto& s : block) {
    poll();
    if (s->kind == StmtKind::kBreak || s->kind == StmtKind::kContinue) {
      out.push_back(std::make_shared<Stmt>(*s));
      continue;
    }
    const bool jump_here = s->kind == StmtKind::kIf && (jumps(s->body) || jumps(s->else_body));
    if (!keeps(*s) && !jump_here) continue;
    if (s->kind == StmtKind::kScope) {
      if (s->scope->loop_var && needed_.count(s->scope->loop_var.get()))
        refuse("it depends on the vector lane");
      for (auto& x : rewrite(s->body)) out.push_back(std::move(x));
      continue;
    }
    if (auto copy = rewrite(*s)) out.push_back(std::move(copy));
  }
  return out;
}

ir::StmtPtr ControlSlice::rewrite(const Stmt& s) {
  auto copy = std::make_shared<Stmt>(s);
  copy->annotation = nullptr;
  copy->value = s.value && s.kind != StmtKind::kEval ? rewrite(s.value) : nullptr;
  for (auto& v : copy->values) v = rewrite(v);
  copy->start = rewrite(s.start);
  copy->stop = rewrite(s.stop);
  copy->step = rewrite(s.step);
  for (auto& c : copy->carries) c.init = rewrite(c.init);
  copy->body = rewrite(s.body);
  copy->else_body = rewrite(s.else_body);
  if (s.kind == StmtKind::kAssign && s.targets.size() == 1 && copy->value &&
      copy->value->kind == ExprKind::kVar && copy->value->var == s.targets[0]) {
    return nullptr;  // `y = pl.store(t, off, y)`: the name keeps its storage
  }
  if (s.kind == StmtKind::kIf && copy->body.empty() && copy->else_body.empty()) return nullptr;
  return copy;
}

}  // namespace pypto::passes
