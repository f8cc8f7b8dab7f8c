// SPDX-License-Identifier: Apache-2.0
#include "core/passes/liveness.h"

#include <algorithm>
#include <utility>

#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Stmt;
using ir::StmtKind;

/// Whether a jump of the loop around the block is in it.
bool jumps(const ir::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const ir::StmtPtr& s) {
    poll();
    if (s->kind == StmtKind::kBreak || s->kind == StmtKind::kContinue) return true;
    return s->kind != StmtKind::kFor && s->kind != StmtKind::kWhile &&
           (jumps(s->body) || jumps(s->else_body));
  });
}

}  // namespace

Liveness::Liveness(const ir::Block& block, VarSet at_end) {
  for (const auto* v : at_end) add(v);
  run(block);
}

bool Liveness::is_live(const ir::Var* v, int place) const {
  const auto it = changes_.find(v);
  if (it == changes_.end()) return false;
  const auto end = std::upper_bound(it->second.begin(), it->second.end(), place);
  return (end - it->second.begin()) % 2 == 1;
}

void Liveness::add(const ir::Var* v) {
  if (!v || !live_.insert(v).second) return;
  log_.push_back(v);
  if (recording_) changes_[v].push_back(place_);
}

void Liveness::remove(const ir::Var* v) {
  if (live_.erase(v) == 0) return;
  log_.push_back(v);
  if (recording_) changes_[v].push_back(place_);
}

void Liveness::become(const VarSet& set) {
  std::vector<const ir::Var*> gone;
  for (const auto* v : live_) {
    if (!set.count(v)) gone.push_back(v);
  }
  for (const auto* v : gone) remove(v);
  for (const auto* v : set) add(v);
}

void Liveness::add_uses(const ir::ExprPtr& e) {
  walk_expr(e, [&](const ir::ExprPtr& x) {
    if (x->kind == ir::ExprKind::kVar) add(x->var.get());
  });
}

/// Variables that are live now and were not when the log had `mark` entries, or the other way round.
VarSet Liveness::changed_since(size_t mark) const {
  VarSet out;
  for (size_t i = mark; i < log_.size(); ++i) {
    if (!out.insert(log_[i]).second) out.erase(log_[i]);
  }
  return out;
}

void Liveness::run(const ir::Block& block) {
  for (auto it = block.rbegin(); it != block.rend(); ++it) run(**it);
}

void Liveness::branch(const Stmt& s) {
  const size_t start = log_.size();
  run(s.else_body);
  const VarSet other = changed_since(start);
  VarSet read;  // in the else arm only, as far as is known
  for (const auto* v : other) {
    if (live_.count(v)) {
      read.insert(v);
      remove(v);
    } else {
      add(v);
    }
  }
  const size_t middle = log_.size();
  run(s.body);
  for (const auto* v : changed_since(middle)) {
    if (!live_.count(v) && !other.count(v)) add(v);  // defined in one arm only
  }
  for (const auto* v : read) add(v);
}

/// What a round reads of the values that it finds: all that a loop adds to what is live after it.
const VarSet& Liveness::exposed(const Stmt& s) {
  if (const auto it = exposed_.find(&s); it != exposed_.end()) return it->second;
  const VarSet none;
  VarSet live = std::exchange(live_, {});
  auto log = std::exchange(log_, {});
  const bool recording = std::exchange(recording_, false);
  loops_.push_back({&none, &none, &s});
  run(s.body);
  loops_.pop_back();
  recording_ = recording;
  log_ = std::move(log);
  live.swap(live_);
  live.erase(s.loop_var.get());
  return exposed_[&s] = std::move(live);
}

void Liveness::loop(const Stmt& s) {
  VarSet exit, head;
  const bool jump = recording_ && jumps(s.body);
  if (jump) exit = live_;
  if (s.kind == StmtKind::kWhile) add_uses(s.value);
  for (const auto* v : exposed(s)) add(v);
  if (recording_) {
    if (jump) head = live_;
    const size_t mark = log_.size();
    loops_.push_back({&exit, &head, &s});
    run(s.body);
    loops_.pop_back();
    remove(s.loop_var.get());
    for (const auto* v : changed_since(mark)) add(v);  // where the next round is decided
  }
  for (const auto& c : s.carries) {
    remove(c.var.get());
    remove(c.result.get());
  }
  if (s.kind == StmtKind::kWhile) add_uses(s.value);
  for (const auto& c : s.carries) remove(c.var.get());
}

void Liveness::run(const Stmt& s) {
  if (recording_) places_[&s].after = place_++;
  switch (s.kind) {
    case StmtKind::kAssign:
    case StmtKind::kEval:
    case StmtKind::kYield:
    case StmtKind::kComment:
      for (const auto& t : s.targets) remove(t.get());
      if (s.kind == StmtKind::kYield && !loops_.empty()) {
        // The yield of a loop also gives the carried variables their next values; that of a branch does not.
        const Stmt& loop = *loops_.back().loop;
        if (loop.explicit_carry && !loop.body.empty() && loop.body.back().get() == &s) {
          for (const auto& c : loop.carries) remove(c.var.get());
        }
      }
      break;
    case StmtKind::kReturn:
      become({});
      break;
    case StmtKind::kBreak:
      if (!loops_.empty()) become(*loops_.back().on_break);
      break;
    case StmtKind::kContinue:
      if (!loops_.empty()) become(*loops_.back().on_continue);
      break;
    case StmtKind::kIf:
      branch(s);
      break;
    case StmtKind::kScope:
      run(s.body);
      if (s.scope) {
        remove(s.scope->task.get());
        remove(s.scope->loop_var.get());
        for (const auto& v : s.scope->no_dep_args) add(v.get());
        for (const auto& v : s.scope->dumps) add(v.get());
      }
      break;
    case StmtKind::kFor:
    case StmtKind::kWhile:
      loop(s);
      break;
  }
  own_exprs(s, [&](const ir::ExprPtr& e) {
    if (s.kind == StmtKind::kWhile && e == s.value && !s.carries.empty()) return;
    add_uses(e);
  });
  if (s.kind == StmtKind::kWhile && !s.carries.empty()) {
    VarSet condition;
    walk_expr(s.value, [&](const ir::ExprPtr& x) {
      if (x->kind == ir::ExprKind::kVar) condition.insert(x->var.get());
    });
    for (const auto& c : s.carries) condition.erase(c.var.get());
    for (const auto* v : condition) add(v);
  }
  if (recording_) places_[&s].before = place_++;
}

VarSet live_at_start(const ir::Block& block) { return Liveness(block).start(); }

}  // namespace pypto::passes
