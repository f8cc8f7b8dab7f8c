// SPDX-License-Identifier: Apache-2.0
#include "core/vm/emitter.h"

namespace pypto::vm {
namespace {

using namespace ir;

/// Walks a body once; keeps the path of (block, statement) to the current place.
class UseWalker {
 public:
  UseWalker(const Function& fn, UseInfo& out) : fn_(fn), out_(out) {}

  void run() {
    walk(fn_.body);
    for (auto& [var, path] : paths_) {
      out_.ranges[var] = {path.empty() ? nullptr : path.back().first,
                          path.empty() ? nullptr : path.back().second};
    }
  }

 private:
  using Path = std::vector<std::pair<const Block*, const Stmt*>>;

  void note(const VarPtr& var) {
    if (!var) return;
    auto it = paths_.find(var.get());
    if (it == paths_.end()) {
      paths_[var.get()] = path_;
      return;
    }
    // Keep the longest common chain of blocks; at its end the later statement counts.
    Path& known = it->second;
    size_t n = 0;
    while (n < known.size() && n < path_.size() && known[n].first == path_[n].first) {
      ++n;
      if (known[n - 1].second != path_[n - 1].second) break;
    }
    known.assign(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(n));
  }

  void expr(const ExprPtr& e, bool value) {
    if (!e) return;
    switch (e->kind) {
      case ExprKind::kVar:
        note(e->var);
        if (value) out_.value_uses.insert(e->var.get());
        return;
      case ExprKind::kOp: {
        const OpRow& row = op_row(e->op);
        effects(*e, row);
        for (size_t i = 0; i < e->args.size(); ++i)
          expr(e->args[i], value_operand(row, static_cast<int>(i), *e));
        return;
      }
      case ExprKind::kCall: {
        const CallInfo& c = *e->call;
        for (const auto& a : e->args) expr(a, false);
        expr(c.core_num, true);
        expr(c.device, true);
        expr(c.predicate, true);
        for (const auto& d : c.deps) expr(d, true);
        return;
      }
      default:
        for (const auto& a : e->args) expr(a, value);
    }
  }

  static bool value_operand(const OpRow& row, int param, const Expr& e) {
    // Views, loads, element access and in-place targets use an operand as a place; remote_store reads a
    // value.
    if (row.alias == AliasClass::kView || row.alias == AliasClass::kNone)
      return row.id == OpId::k_tensor_remote_store && param == 0;
    if (row.id == OpId::k_load) return false;
    if (row.alias == AliasClass::kInPlace && param == row.inplace_param) return false;
    if (row.cost == CostClass::kComm) return false;
    return static_cast<size_t>(param) < e.args.size();
  }

  void written(const ExprPtr& target) {
    if (!target || !target->type) return;
    if (target->type->is_tile()) {
      out_.tile_in_place = true;
      return;
    }
    if (!target->type->storage || target->type->is_window()) {
      out_.unknown_written = true;
    } else {
      out_.written.insert(target->type->storage.get());
    }
  }

  void effects(const Expr& e, const OpRow& row) {
    const std::string_view effects = row.effects;
    for (size_t i = 0; i < effects.size() && i < e.args.size(); ++i) {
      const char c = effects[i];
      if (c == 'w' || c == 'x' || c == 'a') written(e.args[i]);
      if (c == 's' || c == 'R' || c == 'W') out_.waits = true;
    }
    if (row.alias == AliasClass::kInPlace && row.inplace_param >= 0)
      written(e.args[static_cast<size_t>(row.inplace_param)]);
    if (e.op == OpId::k_syncall || e.op == OpId::k_sync_wait) out_.waits = true;
  }

  void walk(const Block& b) {
    for (const auto& sp : b) {
      const Stmt& s = *sp;
      path_.emplace_back(&b, &s);
      for (const auto& t : s.targets) note(t);
      const bool plain_alias = s.kind == StmtKind::kAssign && s.value && s.value->kind == ExprKind::kVar;
      expr(s.value, !plain_alias || !s.value->type->is_tensor());
      for (const auto& v : s.values) expr(v, true);
      expr(s.start, true);
      expr(s.stop, true);
      expr(s.step, true);
      note(s.loop_var);
      for (const auto& c : s.carries) {
        note(c.var);
        note(c.result);
        expr(c.init, true);
      }
      if (s.scope) {
        expr(s.scope->core_num, true);
        expr(s.scope->predicate, true);
        for (const auto& d : s.scope->deps) expr(d, true);
        note(s.scope->task);
        note(s.scope->loop_var);
      }
      walk(s.body);
      walk(s.else_body);
      path_.pop_back();
    }
  }

  const Function& fn_;
  UseInfo& out_;
  Path path_;
  std::unordered_map<const Var*, Path> paths_;
};

}  // namespace

UseInfo analyse_uses(const ir::Function& fn) {
  UseInfo info;
  UseWalker(fn, info).run();
  return info;
}

}  // namespace pypto::vm
