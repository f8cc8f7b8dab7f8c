// SPDX-License-Identifier: Apache-2.0
#include "core/passes/effects.h"

#include <cstring>
#include <utility>

#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AliasClass;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::OpId;
using ir::ParamDirection;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

using Roots = std::set<const Var*>;

/// Flow-insensitive: a name may stand for every root it is ever bound to. An access too many only orders
/// tasks more.
class AccessScan {
 public:
  AccessScan(const ir::Block& block, const std::vector<ir::VarPtr>& roots) {
    for (const auto& r : roots) {
      may_be_[r.get()].insert(r.get());
      result_[r.get()];
    }
    for (bool changed = true; changed;) {
      changed = false;
      walk_stmts(block, [&](const ir::StmtPtr& s) { changed = bind(*s) || changed; });
    }
    walk_stmts(block, [&](const ir::StmtPtr& s) {
      own_exprs(*s, [&](const ExprPtr& e) { walk_expr(e, [&](const ExprPtr& x) { use(*x); }); });
      if (s->kind == StmtKind::kReturn) {
        // A slice returned is read as a value; a name that stands for the whole storage is not (01 L-87).
        for (const auto& v : s->values) {
          if (v && v->kind != ExprKind::kVar && v->type && v->type->is_array_like())
            touch(roots_of(v), true, false);
        }
      }
    });
  }
  std::unordered_map<const Var*, Access> take() { return std::move(result_); }

 private:
  Roots roots_of(const ExprPtr& e) {
    if (!e) return {};
    switch (e->kind) {
      case ExprKind::kVar: {
        const auto it = may_be_.find(e->var.get());
        return it == may_be_.end() ? Roots() : it->second;
      }
      case ExprKind::kOp: {
        const auto& row = ir::op_row(e->op);
        int from = -1;
        if (row.alias == AliasClass::kView) from = 0;
        if (row.alias == AliasClass::kInPlace) from = row.inplace_param;
        if (from < 0 || from >= static_cast<int>(e->args.size())) return {};
        return roots_of(e->args[static_cast<size_t>(from)]);
      }
      case ExprKind::kTuple: {
        Roots out;
        for (const auto& a : e->args) out.merge(roots_of(a));
        return out;
      }
      case ExprKind::kItem:
        return roots_of(e->args[0]);
      case ExprKind::kCall: {
        Roots out;
        if (!e->call || !e->call->callee) return out;
        for (const int p : e->call->callee->return_params) {
          if (p >= 0 && p < static_cast<int>(e->args.size()))
            out.merge(roots_of(e->args[static_cast<size_t>(p)]));
        }
        return out;
      }
      default:
        return {};
    }
  }

  bool add(const Var* v, const Roots& roots) {
    if (!v || roots.empty()) return false;
    auto& set = may_be_[v];
    const size_t before = set.size();
    set.insert(roots.begin(), roots.end());
    return set.size() != before;
  }

  bool bind(const Stmt& s) {
    bool changed = false;
    for (const auto& c : s.carries) {
      changed = add(c.var.get(), roots_of(c.init)) || changed;
      changed = add(c.result.get(), roots_of(c.init)) || changed;
    }
    if (s.explicit_carry && !s.body.empty() && s.body.back()->kind == StmtKind::kYield) {
      const auto& y = *s.body.back();
      for (size_t i = 0; i < s.carries.size() && i < y.values.size(); ++i) {
        changed = add(s.carries[i].var.get(), roots_of(y.values[i])) || changed;
      }
    }
    if (s.kind == StmtKind::kYield) {
      for (size_t i = 0; i < s.targets.size() && i < s.values.size(); ++i) {
        changed = add(s.targets[i].get(), roots_of(s.values[i])) || changed;
      }
    }
    if (s.kind == StmtKind::kAssign && s.value) {
      if (s.targets.size() > 1 && s.value->kind == ExprKind::kTuple &&
          s.value->args.size() == s.targets.size()) {
        for (size_t i = 0; i < s.targets.size(); ++i) {
          changed = add(s.targets[i].get(), roots_of(s.value->args[i])) || changed;
        }
      } else {
        const Roots roots = roots_of(s.value);
        for (const auto& t : s.targets) changed = add(t.get(), roots) || changed;
      }
    }
    return changed;
  }

  void touch(const Roots& roots, bool read, bool write) {
    for (const Var* r : roots) {
      result_[r].read |= read;
      result_[r].write |= write;
    }
  }

  void use(const Expr& e) {
    if (e.kind == ExprKind::kOp) {
      const auto& row = ir::op_row(e.op);
      const size_t letters = std::strlen(row.effects);
      for (size_t i = 0; i < e.args.size(); ++i) {
        if (!e.args[i]) continue;
        char letter = i < letters ? row.effects[i] : '-';
        if (letter == '-') continue;
        if (letter == 'w' && e.attrs.get_int(ir::AttrKey::k_atomic) != 0) letter = 'a';
        const Roots roots = roots_of(e.args[i]);
        switch (letter) {
          case 'r':
          case 'R':
          case 's':
            touch(roots, true, false);
            break;
          case 'w':
          case 'W':
          case 'n':
            touch(roots, false, true);
            break;
          default:
            touch(roots, true, true);
        }
      }
      // A window written at a peer with `Add` is read there too, but by the peer's memory, not by this task.
      return;
    }
    if (e.kind == ExprKind::kCall && e.call && e.call->callee) {
      const auto& callee = *e.call->callee;
      const auto& directions = callee.effective_directions.size() == callee.params.size()
                                   ? callee.effective_directions
                                   : callee.directions;
      for (size_t i = 0; i < e.args.size() && i < directions.size(); ++i) {
        if (!e.args[i]) continue;
        touch(roots_of(e.args[i]), directions[i] != ParamDirection::kOut,
              directions[i] != ParamDirection::kIn);
      }
      if (e.call->predicate) {
        walk_expr(e.call->predicate, [&](const ExprPtr& x) { use(*x); });
      }
    }
  }

  std::unordered_map<const Var*, Roots> may_be_;
  std::unordered_map<const Var*, Access> result_;
};

}  // namespace

std::unordered_map<const Var*, Access> accesses(const ir::Block& block,
                                                const std::vector<ir::VarPtr>& roots) {
  return AccessScan(block, roots).take();
}

std::vector<ParamDirection> used_directions(const ir::Function& f) {
  const auto found = accesses(f.body, f.params);
  std::vector<ParamDirection> out = f.directions;
  out.resize(f.params.size(), ParamDirection::kIn);
  for (size_t i = 0; i < f.params.size(); ++i) {
    if (!f.params[i]->type || !f.params[i]->type->is_array_like()) continue;
    const Access a = found.at(f.params[i].get());
    if (f.params[i]->type->is_window()) {
      out[i] = a.write ? (a.read ? ParamDirection::kInOut : ParamDirection::kOut) : ParamDirection::kIn;
      if (f.directions.size() > i && f.directions[i] == ParamDirection::kInOut)
        out[i] = ParamDirection::kInOut;
      if (f.directions.size() > i && f.directions[i] == ParamDirection::kOut && !a.write) {
        out[i] = a.read ? ParamDirection::kInOut : ParamDirection::kOut;
      }
    } else if (a.write && out[i] == ParamDirection::kIn) {
      out[i] = ParamDirection::kInOut;  // promoted (01 L-48)
    } else if (a.read && out[i] == ParamDirection::kOut) {
      // Reading what an Out parameter held before is allowed and ordered (01 L-48).
      out[i] = ParamDirection::kInOut;
    }
  }
  return out;
}

}  // namespace pypto::passes
