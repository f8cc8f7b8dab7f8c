// SPDX-License-Identifier: Apache-2.0
#include "core/passes/lane_memory.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/passes/flatten.h"
#include "core/passes/lane_extents.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

bool is_tensor(const ExprPtr& e) { return e && e->type && e->type->is_tensor(); }

class LaneMemory {
 public:
  LaneMemory(const ir::Function& f, ir::SplitMode mode) : axis_(split_axis(mode)) {
    for (const auto& p : f.params) ++defined_[p.get()];
    note(f.body, false);
    walk_exprs(f.body, [&](const ExprPtr& e) {
      if (e->kind == ExprKind::kOp) access(*e);
    });
  }

  bool apart() const {
    for (const auto& [tensor, windows] : windows_) {
      if (!written_.count(tensor)) continue;
      if (other_.count(tensor) || !apart(windows)) return false;
    }
    return true;
  }

 private:
  struct Window {
    ExprPtr offset;
    int64_t extent;
  };

  // ---- names
  void note(const Block& block, bool in_loop) {
    for (const auto& s : block) {
      own_defs(*s, [&](const ir::VarPtr& v) {
        ++defined_[v.get()];
        if (in_loop) repeated_.insert(v.get());
      });
      const bool loop = s->kind == StmtKind::kFor || s->kind == StmtKind::kWhile;
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1) values_[s->targets[0].get()] = s->value;
      if (s->loop_var) {
        loops_[s->loop_var.get()] = s.get();
        repeated_.insert(s->loop_var.get());
      }
      for (const auto& c : s->carries) {
        if (is_tensor(c.init)) {
          const Var* r = root(c.init);
          same_[c.var.get()] = r;
          if (c.result) same_[c.result.get()] = r;
        } else {
          repeated_.insert(c.var.get());
        }
      }
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && is_tensor(s->value)) {
        const bool view =
            s->value->kind == ExprKind::kOp && ir::op_row(s->value->op).alias == ir::AliasClass::kView;
        const Var* r = root(s->value);
        if (r && r != s->targets[0].get()) same_[s->targets[0].get()] = r;
        if (view) views_.insert(s->targets[0].get());
      }
      note(s->body, in_loop || loop);
      note(s->else_body, in_loop || loop);
    }
  }

  const Var* root(const ExprPtr& e) const {
    if (e->kind == ExprKind::kVar) {
      const auto it = same_.find(e->var.get());
      return it == same_.end() ? e->var.get() : it->second;
    }
    if (e->kind != ExprKind::kOp) return nullptr;
    const ir::OpRow& row = ir::op_row(e->op);
    if (row.alias == ir::AliasClass::kView && !e->args.empty()) return root(e->args[0]);
    if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0)
      return root(e->args[static_cast<size_t>(row.inplace_param)]);
    return nullptr;
  }

  // ---- accesses
  void access(const Expr& e) {
    const char* effects = ir::op_row(e.op).effects;
    bool all = true;
    for (size_t i = 0; i < e.args.size(); ++i) {
      const char effect = all && effects[i] ? effects[i] : '\0';
      all = effect != '\0';
      if (!is_tensor(e.args[i])) continue;
      const Var* r = root(e.args[i]);
      if (!r) continue;
      if (effect != '\0' && effect != '-' && effect != 'r') written_.insert(r);
      const bool direct = e.args[i]->kind == ExprKind::kVar && !views_.count(e.args[i]->var.get());
      const bool load = e.op == OpId::k_load && i == 0, store = e.op == OpId::k_store && i == 2;
      const ir::Type& tile = load ? *e.type : *e.args[0]->type;
      const ExprPtr& offsets = e.args.size() > 1 ? e.args[1] : e.args[0];
      const bool window = direct && (load || store) && tile.rank() == 2 && tile.shape[axis_].is_const() &&
                          offsets->kind == ExprKind::kTuple && offsets->args.size() == 2;
      windows_[r];
      if (window) {
        windows_[r].push_back({offsets->args[axis_], tile.shape[axis_].value});
      } else {
        other_.insert(r);
      }
    }
  }

  /// Always a multiple of `n`.
  bool aligned(const ExprPtr& e, int64_t n, int depth = 0) const {
    if (const auto c = ir::const_int(e)) return *c % n == 0;
    if (depth > 8) return false;
    if (e->kind == ExprKind::kVar) {
      const Var* v = e->var.get();
      const auto count = defined_.find(v);
      if (count == defined_.end() || count->second != 1) return false;
      if (const auto loop = loops_.find(v); loop != loops_.end()) {
        const Stmt& s = *loop->second;
        return s.kind == StmtKind::kFor && (!s.start || aligned(s.start, n, depth + 1)) && s.step &&
               aligned(s.step, n, depth + 1);
      }
      const auto value = values_.find(v);
      return value != values_.end() && aligned(value->second, n, depth + 1);
    }
    if (e->kind != ExprKind::kOp || e->args.size() < 2 || !e->args[0] || !e->args[1]) return false;
    if (e->op == OpId::k_scalar_mul)
      return aligned(e->args[0], n, depth + 1) || aligned(e->args[1], n, depth + 1);
    if (e->op == OpId::k_scalar_add || e->op == OpId::k_scalar_sub)
      return aligned(e->args[0], n, depth + 1) && aligned(e->args[1], n, depth + 1);
    return false;
  }

  /// The same whenever it is evaluated.
  bool fixed(const ExprPtr& e) const {
    bool same = true;
    walk_expr(e, [&](const ExprPtr& x) {
      if (x->kind == ExprKind::kVar) {
        const auto count = defined_.find(x->var.get());
        same = same && !repeated_.count(x->var.get()) && count != defined_.end() && count->second == 1;
      } else if (x->kind == ExprKind::kOp) {
        same = same && ir::op_row(x->op).effects[0] == '\0';
      }
    });
    return same;
  }

  bool apart(const std::vector<Window>& windows) const {
    bool grid = true, one = true;
    for (const auto& w : windows) {
      if (w.extent != windows[0].extent) return false;
      grid = grid && aligned(w.offset, w.extent);
      one = one && fixed(w.offset) && ir::same_expr(w.offset, windows[0].offset);
    }
    return grid || one;
  }

  size_t axis_;
  std::unordered_map<const Var*, int> defined_;
  std::unordered_map<const Var*, ExprPtr> values_;
  std::unordered_map<const Var*, const Stmt*> loops_;
  std::unordered_map<const Var*, const Var*> same_;
  std::unordered_set<const Var*> repeated_, views_, written_, other_;
  std::unordered_map<const Var*, std::vector<Window>> windows_;
};

}  // namespace

bool lanes_stay_apart(const ir::Function& f, ir::SplitMode mode) { return LaneMemory(f, mode).apart(); }

}  // namespace pypto::passes
