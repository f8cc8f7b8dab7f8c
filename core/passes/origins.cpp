// SPDX-License-Identifier: Apache-2.0
#include "core/passes/origins.h"

#include <algorithm>
#include <utility>

#include "core/passes/walk.h"

namespace pypto::passes {

using ir::AliasClass;
using ir::ExprKind;
using ir::StmtKind;

OriginScan::OriginScan(const ir::Block& block) { run(block); }

Origin OriginScan::of(const ir::Var* v) const {
  if (const auto it = state_.find(v); it != state_.end()) return it->second;
  Origin o;
  o.entries.insert(v);
  return o;
}

void OriginScan::merge(State& into, const State& from) {
  for (auto& [v, o] : into) {
    if (!from.count(v)) o.entries.insert(v);
  }
  for (const auto& [v, o] : from) {
    auto [it, added] = into.try_emplace(v, o);
    if (added) {
      it->second.entries.insert(v);
    } else {
      it->second.join(o);
    }
  }
}

void OriginScan::jump(std::optional<State>& into, const State& from) {
  if (into) {
    merge(*into, from);
  } else {
    into = from;
  }
}

Origin OriginScan::origin(const ir::ExprPtr& e) const {
  Origin fresh;
  fresh.fresh = true;
  if (!e) return fresh;
  switch (e->kind) {
    case ExprKind::kVar:
      return of(e->var.get());
    case ExprKind::kItem:
      if (e->args[0]->kind == ExprKind::kTuple)
        return origin(e->args[0]->args[static_cast<size_t>(e->int_value)]);
      if (e->args[0]->kind == ExprKind::kCall) {
        const auto& call = *e->args[0];
        const auto& results = call.call->callee->return_params;
        const auto k = static_cast<size_t>(e->int_value);
        if (k < results.size() && results[k] >= 0 && results[k] < static_cast<int>(call.args.size())) {
          return origin(call.args[static_cast<size_t>(results[k])]);
        }
      }
      return fresh;
    case ExprKind::kCall:
      if (e->call && e->call->callee && !e->call->callee->return_params.empty()) {
        const int p = e->call->callee->return_params[0];
        if (p >= 0 && p < static_cast<int>(e->args.size())) return origin(e->args[static_cast<size_t>(p)]);
      }
      return fresh;
    case ExprKind::kOp: {
      if (e->op == ir::OpId::k_create_tensor) {
        Origin o;
        o.creates.insert(e.get());
        return o;
      }
      const auto& row = ir::op_row(e->op);
      if (row.alias == AliasClass::kView) {
        Origin o = origin(e->args[0]);
        if (e->op != ir::OpId::k_no_dep) o.view = true;
        return o;
      }
      if (row.alias == AliasClass::kInPlace && row.inplace_param >= 0) {
        return origin(e->args[static_cast<size_t>(row.inplace_param)]);
      }
      return fresh;
    }
    default:
      return fresh;
  }
}

void OriginScan::set(const ir::VarPtr& v, Origin o) {
  if (v) state_[v.get()] = std::move(o);
}

void OriginScan::note_creates(const ir::Stmt& s) {
  walk_expr(s.value, [&](const ir::ExprPtr& e) {
    if (e->kind != ExprKind::kOp || e->op != ir::OpId::k_create_tensor) return;
    Made& m = made_[e.get()];
    m.stmt = &s;
    for (const auto& [v, o] : state_) {
      const auto target = [v = v](const ir::VarPtr& t) { return t.get() == v; };
      if (o.creates.count(e.get()) && std::none_of(s.targets.begin(), s.targets.end(), target))
        m.held.insert(v);
    }
  });
}

void OriginScan::run(const ir::Block& block) {
  for (const auto& s : block) {
    if (dead_) return;
    run(*s);
  }
}

void OriginScan::run(const ir::Stmt& s) {
  switch (s.kind) {
    case StmtKind::kAssign: {
      note_creates(s);
      std::vector<Origin> values;
      for (size_t i = 0; i < s.targets.size(); ++i) {
        if (s.targets.size() == 1) {
          values.push_back(origin(s.value));
        } else if (s.value->kind == ExprKind::kTuple && i < s.value->args.size()) {
          values.push_back(origin(s.value->args[i]));
        } else if (s.value->kind == ExprKind::kCall && s.value->call && s.value->call->callee &&
                   i < s.value->call->callee->return_params.size() &&
                   s.value->call->callee->return_params[i] >= 0 &&
                   s.value->call->callee->return_params[i] < static_cast<int>(s.value->args.size())) {
          values.push_back(
              origin(s.value->args[static_cast<size_t>(s.value->call->callee->return_params[i])]));
        } else {
          values.push_back(origin(nullptr));
        }
      }
      for (size_t i = 0; i < s.targets.size(); ++i) set(s.targets[i], std::move(values[i]));
      break;
    }
    case StmtKind::kYield: {
      std::vector<Origin> values;
      for (const auto& v : s.values) values.push_back(origin(v));
      if (!loops_.empty()) {
        const ir::Stmt& loop = *loops_.back().stmt;
        if (loop.explicit_carry && !loop.body.empty() && loop.body.back().get() == &s) {
          for (size_t i = 0; i < loop.carries.size() && i < values.size(); ++i)
            set(loop.carries[i].var, values[i]);
        }
      }
      for (size_t i = 0; i < s.targets.size() && i < values.size(); ++i) set(s.targets[i], values[i]);
      break;
    }
    case StmtKind::kIf: {
      State before = state_;
      run(s.body);
      const bool dead_then = dead_;
      State then_state = std::exchange(state_, std::move(before));
      dead_ = false;
      run(s.else_body);
      const bool dead_else = dead_;
      dead_ = dead_then && dead_else;
      if (dead_else) {
        state_ = std::move(then_state);
      } else if (!dead_then) {
        merge(state_, then_state);
      }
      break;
    }
    case StmtKind::kFor:
    case StmtKind::kWhile: {
      std::vector<Origin> inits;
      for (const auto& c : s.carries) inits.push_back(origin(c.init));
      for (size_t i = 0; i < s.carries.size(); ++i) {
        set(s.carries[i].var, inits[i]);
        set(s.carries[i].result, inits[i]);
      }
      State exits = state_;
      // What the last visit ended with holds in this one too: nested loops cost no further rounds.
      if (const auto known = heads_.find(&s); known != heads_.end()) merge(state_, known->second);
      for (;;) {
        State head = state_;
        std::optional<State> continues, breaks;
        loops_.push_back({&breaks, &continues, &s});
        run(s.body);
        loops_.pop_back();
        if (!dead_) merge(exits, state_);
        State end = dead_ ? head : state_;
        dead_ = false;
        if (breaks) merge(exits, *breaks);
        if (continues) {
          merge(exits, *continues);
          merge(end, *continues);
        }
        merge(end, head);
        state_ = end;
        if (end == head) break;
      }
      heads_[&s] = std::move(state_);
      state_ = std::move(exits);
      break;
    }
    case StmtKind::kBreak:
      if (!loops_.empty()) jump(*loops_.back().exits, state_);
      dead_ = true;
      break;
    case StmtKind::kContinue:
      if (!loops_.empty()) jump(*loops_.back().continues, state_);
      dead_ = true;
      break;
    case StmtKind::kReturn: {
      auto& values = returned_[&s];
      values.resize(s.values.size());
      for (size_t i = 0; i < values.size(); ++i) values[i].join(origin(s.values[i]));
      dead_ = true;
      break;
    }
    case StmtKind::kScope:
      run(s.body);
      break;
    case StmtKind::kEval:
    case StmtKind::kComment:
      break;
  }
}

}  // namespace pypto::passes
