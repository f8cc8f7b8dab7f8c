// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/base/poll.h"
#include "core/vm/emitter.h"

/// Statements: blocks, assignments, loops, branches, scopes.
namespace pypto::vm {

using namespace ir;  // NOLINT: the emitter reads IR throughout

void FunctionEmitter::block(const Block& b) {
  for (const auto& s : b) {
    poll();
    const size_t mark = temps_.size();
    statement(*s);
    recycle_temps(mark);
    release_dead(b, *s);
  }
}

void FunctionEmitter::release_dead(const Block& b, const Stmt& s) {
  if (s.kind == StmtKind::kReturn || s.kind == StmtKind::kBreak || s.kind == StmtKind::kContinue) return;
  const auto dying = dying_.find(&s);
  if (dying == dying_.end()) return;
  std::vector<int32_t> dead;
  for (const Var* var : dying->second) {
    if (uses_.ranges.at(var).block != &b || var->kind == VarKind::kParam) continue;
    const auto it = var_regs_.find(var);
    if (it == var_regs_.end()) continue;
    for (const Reg& r : it->second) {
      if (r.cls == RegClass::kView) dead.push_back(r.index);
    }
  }
  std::sort(dead.begin(), dead.end());
  for (const int32_t r : dead) add(Opcode::kRelease, {}).a = r;
}

void FunctionEmitter::statement(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kAssign:
      assign(s);
      break;
    case StmtKind::kEval:
      exprs(s.value, nullptr);
      break;
    case StmtKind::kFor:
      for_loop(s);
      break;
    case StmtKind::kWhile:
      while_loop(s);
      break;
    case StmtKind::kIf:
      branch(s);
      break;
    case StmtKind::kScope:
      scope(s);
      break;
    case StmtKind::kReturn:
      give_back(s);
      break;
    case StmtKind::kBreak:
      PYPTO_CHECK(!loops_.empty(), "break outside a loop");
      loops_.back().breaks.push_back(here());
      add(Opcode::kJump, s.span);
      break;
    case StmtKind::kContinue:
      PYPTO_CHECK(!loops_.empty(), "continue outside a loop");
      loops_.back().continues.push_back(here());
      add(Opcode::kJump, s.span);
      break;
    case StmtKind::kYield:
      yield(s);
      break;
    case StmtKind::kComment:
      break;
  }
}

void FunctionEmitter::assign(const Stmt& s) {
  Regs targets;
  for (const auto& t : s.targets) {
    const Regs& r = var_regs(t);
    targets.insert(targets.end(), r.begin(), r.end());
  }
  const bool copies = options_.force_copies || uses_.tile_in_place;
  auto copy_tile = [&](const Reg& dst, const Reg& src, const std::string& name) {
    OpInsn op;
    op.op = OpId::k_copy_tile;
    op.operands.push_back({Operand::Kind::kReg, src, {}, name});
    op.results.push_back(dst);
    op.result_is_tile.push_back(1);
    op.result_space.push_back(MemorySpace::kUnset);
    out_.ops.push_back(std::move(op));
    add(Opcode::kOp, s.span, name).a = static_cast<int32_t>(out_.ops.size()) - 1;
  };
  if (s.value->kind == ExprKind::kTuple) {
    // Every element is read before the first target is written (a, b = b, a).
    Regs values;
    for (const auto& item : s.value->args) {
      const bool tile = item->type && item->type->is_tile() && item->kind == ExprKind::kVar;
      for (const Reg& r : exprs(item, nullptr)) {
        const Reg t = temp(r.cls, r.dtype);
        if (tile && copies) {
          copy_tile(t, r, item->var->name);
        } else {
          move(t, r, s.span);
        }
        values.push_back(t);
      }
    }
    for (size_t i = 0; i < targets.size() && i < values.size(); ++i) move(targets[i], values[i], s.span);
    return;
  }
  const bool plain = s.value->kind == ExprKind::kVar || s.value->kind == ExprKind::kItem;
  if (plain && copies && s.value->type->is_tile() && targets.size() == 1) {
    const Reg src = expr(s.value);
    if (src.index != targets[0].index) copy_tile(targets[0], src, s.targets[0]->name);
    return;
  }
  // The value goes straight to its target unless the target is still read while it is computed.
  const Regs values = exprs(s.value, &targets);
  for (size_t i = 0; i < targets.size() && i < values.size(); ++i) move(targets[i], values[i], s.span);
  if (s.value->kind == ExprKind::kOp && s.value->op == OpId::k_aic_gather && s.targets.size() == 1) {
    gathered_.insert(s.targets[0].get());
  }
  if (s.targets.size() == 1) {
    const Var& var = *s.targets[0];
    if (needs_snapshot(var, s.value)) {
      const bool base_value = cut_from_snapshot(s.value);
      if (!snapshots_.count(&var)) snapshots_[&var] = new_reg(RegClass::kView, var.type->dtype);
      OpInsn op;
      op.op = OpId::k_snapshot;
      const Reg from = base_value ? value_of_address(s.value) : targets[0];
      op.operands.push_back({Operand::Kind::kReg, from, {}, var.name});
      op.results.push_back(snapshots_[&var]);
      op.result_is_tile.push_back(0);
      op.result_space.push_back(MemorySpace::kUnset);
      out_.ops.push_back(std::move(op));
      add(Opcode::kOp, s.span, "slice").a = static_cast<int32_t>(out_.ops.size()) - 1;
    } else if (const auto known =
                   s.value->kind == ExprKind::kVar ? snapshots_.find(s.value->var.get()) : snapshots_.end();
               known != snapshots_.end() && known->first != &var && uses_.value_uses.count(&var)) {
      // One more name of an address: as a value it is the same bytes.
      const Reg from = known->second;
      if (!snapshots_.count(&var)) snapshots_[&var] = new_reg(RegClass::kView, var.type->dtype);
      move(snapshots_[&var], from, s.span);
    } else if (snapshots_.count(&var)) {
      // Another value now; later uses must not see the old snapshot.
      move(snapshots_[&var], targets[0], s.span);
    }
  }
}

void FunctionEmitter::yield(const Stmt& s) {
  Regs values;
  for (const auto& v : s.values) {
    for (const Reg& r : exprs(v, nullptr)) {
      const Reg t = temp(r.cls, r.dtype);
      move(t, r, s.span);
      values.push_back(t);
    }
  }
  size_t at = 0;
  for (const auto& t : s.targets) {
    for (const Reg& r : var_regs(t)) {
      if (at < values.size()) move(r, values[at++], s.span);
    }
  }
}

void FunctionEmitter::begin_carries(const Stmt& s) {
  std::vector<std::pair<Regs, Regs>> moves;
  for (const auto& c : s.carries) {
    if (c.init) moves.emplace_back(var_regs(c.var), exprs(c.init, nullptr));
  }
  for (const auto& [dst, src] : moves) {
    for (size_t i = 0; i < dst.size() && i < src.size(); ++i) move(dst[i], src[i], s.span);
  }
}

namespace {

/// The yield that ends an iteration, if the loop was written with one.
const Stmt* final_yield(const Stmt& loop) {
  if (!loop.explicit_carry || loop.body.empty()) return nullptr;
  const Stmt& last = *loop.body.back();
  return last.kind == StmtKind::kYield ? &last : nullptr;
}

/// Task handles that a parallel loop rebinds stand for all iterations afterwards (01 L-135).
void collect_handles(const Block& b, std::vector<VarPtr>* out) {
  for (const auto& s : b) {
    for (const auto& t : s->targets) {
      if (t->type->is_scalar() && t->type->dtype == DType::kTaskId &&
          std::find(out->begin(), out->end(), t) == out->end()) {
        out->push_back(t);
      }
    }
    collect_handles(s->body, out);
    collect_handles(s->else_body, out);
  }
}

}  // namespace

void FunctionEmitter::for_loop(const Stmt& s) {
  begin_carries(s);
  auto keep = [&](const ExprPtr& e, int64_t fallback) {
    const Reg r = new_reg(RegClass::kScalar, DType::kInt64);
    const size_t mark = temps_.size();
    move(r, e ? expr(e) : constant(fallback, DType::kInt64, s.span), s.span);
    recycle_temps(mark);
    return r;
  };
  const Reg counter = keep(s.start, 0);
  const Reg stop = keep(s.stop, 0);
  const Reg step = keep(s.step, 1);
  if (s.step && !const_int(s.step)) add(Opcode::kForCheck, s.span).a = step.index;
  std::vector<std::pair<VarPtr, Reg>> handles;
  if (!kernel() && s.for_kind == ForKind::kParallel) {
    std::vector<VarPtr> vars;
    collect_handles(s.body, &vars);
    for (const auto& v : vars) {
      const auto it = uses_.ranges.find(v.get());
      if (it == uses_.ranges.end() || it->second.block == &s.body) continue;
      const Reg all = new_reg(RegClass::kScalar, DType::kTaskId);
      move(all, constant(0, DType::kTaskId, s.span), s.span);
      handles.emplace_back(v, all);
    }
  }
  const int32_t saved_site = loop_site_;
  loop_site_ = site(s.span, "loop");
  const int32_t head = here();
  Insn& test = add(Opcode::kForTest, s.span);
  test.a = counter.index;
  test.b = stop.index;
  test.c = step.index;
  move(var_regs(s.loop_var)[0], counter, s.span);
  loops_.push_back({});
  loops_.back().stmt = &s;
  block(s.body);
  if (const Stmt* y = final_yield(s)) {
    for (size_t k = 0; k < s.carries.size() && k < y->targets.size(); ++k) {
      const Regs dst = var_regs(s.carries[k].var);
      const Regs src = var_regs(y->targets[k]);
      for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
    }
  }
  patch_jumps(loops_.back().continues, here());
  for (const auto& [var, all] : handles) {
    OpInsn op;
    op.op = OpId::k_task_dummy;
    op.operands.push_back({Operand::Kind::kList, {}, {all, var_regs(var)[0]}, {}});
    op.results.push_back(all);
    op.result_is_tile.push_back(0);
    op.result_space.push_back(MemorySpace::kUnset);
    out_.ops.push_back(std::move(op));
    add(Opcode::kOp, s.span, "parallel").a = static_cast<int32_t>(out_.ops.size()) - 1;
  }
  Insn& next = add(Opcode::kScalar, s.span);
  next.sub = static_cast<uint16_t>(OpId::k_scalar_add);
  next.dtype = DType::kInt64;
  next.dst = next.a = counter.index;
  next.b = step.index;
  add(Opcode::kJump, s.span).a = head;
  out_.code[static_cast<size_t>(head)].dst = here();
  patch_jumps(loops_.back().breaks, here());
  loops_.pop_back();
  loop_site_ = saved_site;
  for (const auto& [var, all] : handles) move(var_regs(var)[0], all, s.span);
  for (const auto& c : s.carries) {
    if (!c.result || c.result == c.var) continue;
    const Regs dst = var_regs(c.result);
    const Regs src = var_regs(c.var);
    for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
  }
}

void FunctionEmitter::while_loop(const Stmt& s) {
  begin_carries(s);
  loops_.push_back({});
  const int32_t head = here();
  int32_t leave = -1;
  if (s.value) {
    const size_t mark = temps_.size();
    const Reg c = expr(s.value);
    leave = here();
    add(Opcode::kBranchFalse, s.span).a = c.index;
    recycle_temps(mark);
  }
  block(s.body);
  if (const Stmt* y = final_yield(s)) {
    for (size_t k = 0; k < s.carries.size() && k < y->targets.size(); ++k) {
      const Regs dst = var_regs(s.carries[k].var);
      const Regs src = var_regs(y->targets[k]);
      for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
    }
  }
  patch_jumps(loops_.back().continues, head);
  add(Opcode::kJump, s.span).a = head;
  if (leave >= 0) out_.code[static_cast<size_t>(leave)].b = here();
  patch_jumps(loops_.back().breaks, here());
  loops_.pop_back();
  for (const auto& c : s.carries) {
    if (!c.result || c.result == c.var) continue;
    const Regs dst = var_regs(c.result);
    const Regs src = var_regs(c.var);
    for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
  }
}

void FunctionEmitter::branch(const Stmt& s) {
  const size_t mark = temps_.size();
  const Reg c = expr(s.value);
  const int32_t test = here();
  add(Opcode::kBranchFalse, s.span).a = c.index;
  recycle_temps(mark);
  block(s.body);
  if (s.else_body.empty()) {
    out_.code[static_cast<size_t>(test)].b = here();
    return;
  }
  const int32_t skip = here();
  add(Opcode::kJump, s.span);
  out_.code[static_cast<size_t>(test)].b = here();
  block(s.else_body);
  out_.code[static_cast<size_t>(skip)].a = here();
}

void FunctionEmitter::scope(const Stmt& s) {
  const ScopeInfo& info = *s.scope;
  switch (info.kind) {
    case ScopeKind::kSplitAiv:
      split_aiv(s);
      return;
    case ScopeKind::kAuto:
    case ScopeKind::kManual:
    case ScopeKind::kHierarchy:
      add(Opcode::kScopeBegin, s.span).a = static_cast<int32_t>(info.kind);
      block(s.body);
      add(Opcode::kScopeEnd, s.span).a = static_cast<int32_t>(info.kind);
      return;
    default:
      PYPTO_CHECK(false, "a region was not outlined before emission");
  }
}

void FunctionEmitter::split_aiv(const Stmt& s) {
  const int32_t at = here();
  add(Opcode::kLanes, s.span, "split_aiv");
  LanesInsn lanes;
  lanes.mode = s.scope->mode;
  lanes.lane_reg = var_regs(s.scope->loop_var)[0].index;
  lanes.begin = here();
  block(s.body);
  lanes.end = here();
  // Every gathered value keeps its register; the parent's copy becomes the joined value.
  for (const Var* var : gathered_) {
    const auto it = uses_.ranges.find(var);
    if (it == uses_.ranges.end() || it->second.block == &s.body) continue;
    const int32_t reg = var_regs_.at(var)[0].index;
    lanes.joins.push_back({reg, reg, out_.code[static_cast<size_t>(at)].site});
  }
  gathered_.clear();
  std::sort(lanes.joins.begin(), lanes.joins.end(),
            [](const auto& x, const auto& y) { return x.lane_view < y.lane_view; });
  out_.lanes.push_back(std::move(lanes));
  out_.code[static_cast<size_t>(at)].a = static_cast<int32_t>(out_.lanes.size()) - 1;
}

void FunctionEmitter::give_back(const Stmt& s) {
  Regs values;
  for (const auto& v : s.values) {
    const Regs r = exprs(v, nullptr);
    values.insert(values.end(), r.begin(), r.end());
  }
  for (size_t i = 0; i < out_.results.size() && i < values.size(); ++i) {
    if (out_.results[i].cls == values[i].cls) move(out_.results[i], values[i], s.span);
  }
  add(Opcode::kReturn, s.span);
}

}  // namespace pypto::vm
