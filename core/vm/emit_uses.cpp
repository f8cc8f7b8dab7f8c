// SPDX-License-Identifier: Apache-2.0
#include "core/base/poll.h"
#include "core/vm/emitter.h"

namespace pypto::vm {
namespace {

using namespace ir;

/// Walks a body once; keeps the path of (block, statement) to the current place.
class UseWalker {
 public:
  UseWalker(const Function& fn, UseInfo& out) : fn_(fn), out_(out) {}

  void run() {
    for (const auto& p : fn_.params) assigned(p, p->type);
    walk(fn_.body);
    spread_writes();
    spread_values();
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
        if (e->type && e->type->storage) seen_[e->var.get()].insert(e->type->storage.get());
        if (value) out_.value_uses.insert(e->var.get());
        return;
      case ExprKind::kOp: {
        const OpRow& row = op_row(e->op);
        effects(*e, row);
        for (size_t i = 0; i < e->args.size(); ++i) {
          // An address cut from an address is, as a value, a part of the other's value (01 L-87).
          const bool base = i == 0 && row.alias == AliasClass::kView && e->type && e->type->is_tensor();
          expr(e->args[i], base ? value && !address_ : value_operand(row, static_cast<int>(i), *e));
        }
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

  /// Whether a statement gives a name to an address; the variable it is cut from is noted.
  bool note_base(const Stmt& s) {
    const Expr* e = s.value.get();
    if (e && e->kind == ExprKind::kVar && e->type && e->type->is_tensor() && s.targets.size() == 1) {
      cut_from_.emplace_back(s.targets[0].get(), e->var.get());  // one more name of it
      return false;
    }
    const auto is_address = [](const Expr* x) {
      return x && x->kind == ExprKind::kOp && op_row(x->op).alias == AliasClass::kView && x->type &&
             x->type->is_tensor() && !x->args.empty();
    };
    if (!is_address(e) || s.targets.size() != 1) return false;
    while (is_address(e)) e = e->args[0].get();
    if (e && e->kind == ExprKind::kVar) cut_from_.emplace_back(s.targets[0].get(), e->var.get());
    return true;
  }

  void spread_values() {
    for (bool grew = true; grew;) {
      grew = false;
      for (const auto& [name, base] : cut_from_) {
        if (out_.value_uses.count(name)) grew |= out_.value_uses.insert(base).second;
      }
    }
  }

  void assigned(const VarPtr& var, const TypePtr& type) {
    if (var && type && type->storage) assigned_[var.get()].insert(type->storage.get());
  }

  /// Where paths meet, a name stands for one of several storages and its references carry a joined one
  /// (01 L-85): what is written under either name is written under the other.
  void spread_writes() {
    std::map<const Storage*, std::set<const Storage*>> members;
    for (const auto& [var, refs] : seen_) {
      const auto own = assigned_.find(var);
      if (own == assigned_.end()) continue;
      for (const Storage* s : refs) {
        if (!own->second.count(s)) members[s].insert(own->second.begin(), own->second.end());
      }
    }
    if (members.empty()) return;
    const std::set<const Storage*> direct = out_.written;
    for (bool grew = true; grew;) {  // a joined storage is written: so may its members be
      grew = false;
      for (const auto& [joined, parts] : members) {
        if (!out_.written.count(joined)) continue;
        for (const Storage* s : parts) grew |= out_.written.insert(s).second;
      }
    }
    std::set<const Storage*> hit = direct;
    for (bool grew = true; grew;) {  // a member is written: so may the joined one be
      grew = false;
      for (const auto& [joined, parts] : members) {
        if (hit.count(joined)) continue;
        for (const Storage* s : parts) {
          if (hit.count(s)) grew |= hit.insert(joined).second;
        }
      }
    }
    out_.written.insert(hit.begin(), hit.end());
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
      poll();
      const Stmt& s = *sp;
      path_.emplace_back(&b, &s);
      for (size_t i = 0; i < s.targets.size(); ++i) {
        note(s.targets[i]);
        if (s.kind == StmtKind::kYield) {
          if (i < s.values.size() && s.values[i]) assigned(s.targets[i], s.values[i]->type);
        } else if (s.value && s.value->type) {
          const bool tuple = s.value->type->kind == TypeKind::kTuple;
          if (!tuple) assigned(s.targets[i], s.value->type);
          if (tuple && i < s.value->type->elements.size()) assigned(s.targets[i], s.value->type->elements[i]);
        }
      }
      const bool plain_alias = s.kind == StmtKind::kAssign && s.value && s.value->kind == ExprKind::kVar;
      // A named address is a place until something uses the name as a value: spread_values() says.
      address_ = s.kind == StmtKind::kAssign && note_base(s);
      expr(s.value, !plain_alias || !s.value->type->is_tensor());
      address_ = false;
      for (const auto& v : s.values) expr(v, true);
      expr(s.start, true);
      expr(s.stop, true);
      expr(s.step, true);
      note(s.loop_var);
      for (const auto& c : s.carries) {
        note(c.var);
        note(c.result);
        if (c.init) {
          assigned(c.var, c.init->type);
          assigned(c.result, c.init->type);
        }
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
  /// Storages that a variable was given, and those that its references carry.
  std::map<const Var*, std::set<const Storage*>> assigned_, seen_;
  std::vector<std::pair<const Var*, const Var*>> cut_from_;
  bool address_ = false;
};

}  // namespace

UseInfo analyse_uses(const ir::Function& fn) {
  UseInfo info;
  UseWalker(fn, info).run();
  return info;
}

}  // namespace pypto::vm
