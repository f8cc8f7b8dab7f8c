// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/poll.h"
#include "core/passes/core_kinds.h"
#include "core/passes/passes.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::Block;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::MemorySpace;
using ir::OpId;
using ir::StmtKind;
using ir::StmtPtr;
using ir::Type;
using ir::TypePtr;
using ir::Var;
using ir::VarPtr;

TypePtr with_space(const TypePtr& t, MemorySpace space) {
  auto copy = std::make_shared<Type>(*t);
  copy->space = space;
  return copy;
}

/// Gives every tile a memory space: what its consumers need, Mat when one of them is a matrix operand (01
/// L-144).
class SpaceAssigner {
 public:
  explicit SpaceAssigner(Function& f) : f_(f) {}

  void run() {
    for (bool changed = true; changed;) {
      changed_ = false;
      computed(f_.body);
      changed = changed_;
    }
    // Demands flow from uses to definitions, through views, copies and carries.
    for (bool changed = true; changed;) {
      changed_ = false;
      collect(f_.body);
      changed = changed_;
    }
    // Spaces flow from definitions to uses.
    for (int round = 0; round < 8; ++round) {
      changed_ = false;
      f_.body = rewrite(f_.body);
      if (!changed_) break;
    }
    lower_stores(f_.body);
  }

 private:
  /// No path leads from Mat to global memory (L-145): what a matrix product reads and a store writes is moved
  /// in between (L-144).
  void lower_stores(const Block& block) {
    for (const auto& s : block) {
      const ExprPtr& e = s->value;
      if (e && e->kind == ExprKind::kOp && e->op == OpId::k_store && e->args[0]->type->is_tile() &&
          e->args[0]->type->space == MemorySpace::kMat) {
        const ExprPtr& tile = e->args[0];
        ir::AttrMap attrs;
        attrs.set(AttrKey::k_target_memory, static_cast<int64_t>(MemorySpace::kVec));
        auto type =
            std::make_shared<Type>(*ir::tile_type(tile->type->shape, tile->type->dtype, MemorySpace::kVec));
        type->valid = tile->type->valid;
        type->pad = tile->type->pad;
        type->storage = std::make_shared<ir::Storage>();
        auto copy = std::make_shared<Expr>(*e);
        copy->args[0] = ir::op_expr(OpId::k_move, {tile, nullptr, nullptr, nullptr}, std::move(attrs),
                                    std::move(type), tile->span);
        s->value = copy;
      }
      lower_stores(s->body);
      lower_stores(s->else_body);
    }
  }

  /// What a vector operation makes lies where it made it, even when a matrix product reads it later.
  bool computed(const ExprPtr& e) const {
    if (!e || !e->type || !e->type->is_tile()) return false;
    if (e->kind == ExprKind::kVar) return computed_.count(e->var.get()) > 0;
    if (e->kind != ExprKind::kOp) return false;
    const auto& row = ir::op_row(e->op);
    if (row.alias == ir::AliasClass::kView) return computed(e->args[0]);
    if (e->type->space != MemorySpace::kUnset && e->type->space != MemorySpace::kVec) return false;
    switch (e->op) {
      case OpId::k_full:
      case OpId::k_tile_full:
      case OpId::k_arange:
      case OpId::k_tile_arange:
      case OpId::k_fillpad:
        return false;  // made where they are consumed
      default:
        break;
    }
    using ir::CostClass;
    return row.cost == CostClass::kElementwise || row.cost == CostClass::kReduce ||
           row.cost == CostClass::kExpand || row.cost == CostClass::kGather || row.cost == CostClass::kSort;
  }

  /// Collects the variables that hold the result of a vector operation on some path.
  void computed(const Block& block) {
    const auto note = [&](const VarPtr& v, const ExprPtr& value) {
      if (v && computed(value)) changed_ = computed_.insert(v.get()).second || changed_;
    };
    walk_stmts(block, [&](const StmtPtr& s) {
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1) note(s->targets[0], s->value);
      for (size_t i = 0; s->kind == StmtKind::kYield && i < s->targets.size() && i < s->values.size(); ++i) {
        note(s->targets[i], s->values[i]);
      }
      for (const auto& c : s->carries) note(c.var, c.init);
      if (!s->explicit_carry || s->body.empty() || s->body.back()->kind != StmtKind::kYield) return;
      const auto& next = s->body.back()->values;
      for (size_t i = 0; i < s->carries.size() && i < next.size(); ++i) note(s->carries[i].var, next[i]);
    });
  }

  void demand(const ExprPtr& e) {
    if (!e || computed(e)) return;
    if (e->kind == ExprKind::kVar) {
      changed_ = wanted_.insert(e->var.get()).second || changed_;
      return;
    }
    if (e->kind == ExprKind::kOp) {
      loads_.insert(e.get());
      const auto& row = ir::op_row(e->op);
      if (row.alias == ir::AliasClass::kView) demand(e->args[0]);
      if (e->op == OpId::k_fillpad || e->op == OpId::k_assemble) demand(e->args[0]);
    }
  }

  void uses(const ExprPtr& e) {
    walk_expr(e, [&](const ExprPtr& x) {
      if (x->kind != ExprKind::kOp) return;
      for (const int i : matrix_operands(x->op)) {
        const auto k = static_cast<size_t>(i);
        if (k < x->args.size() && x->args[k] && x->args[k]->type && x->args[k]->type->is_tile())
          demand(x->args[k]);
      }
      if (x->op == OpId::k_move || x->op == OpId::k_extract) {
        const auto to = static_cast<MemorySpace>(x->attrs.get_int(AttrKey::k_target_memory));
        if (to == MemorySpace::kLeft || to == MemorySpace::kRight || to == MemorySpace::kBias ||
            to == MemorySpace::kLeftScale || to == MemorySpace::kRightScale) {
          demand(x->args[0]);
        }
      }
    });
  }

  void flow(const VarPtr& to, const ExprPtr& from) {
    if (to && wanted_.count(to.get()) && from) demand(from);
  }

  void collect(const Block& block) {
    for (const auto& s : block) {
      own_exprs(*s, [&](const ExprPtr& e) { uses(e); });
      if (s->kind == StmtKind::kAssign) {
        for (size_t i = 0; i < s->targets.size(); ++i) {
          const bool display = s->value->kind == ExprKind::kTuple && i < s->value->args.size();
          flow(s->targets[i], display ? s->value->args[i] : s->targets.size() == 1 ? s->value : nullptr);
        }
      }
      for (size_t i = 0; s->kind == StmtKind::kYield && i < s->targets.size() && i < s->values.size(); ++i) {
        flow(s->targets[i], s->values[i]);
      }
      for (const auto& c : s->carries) flow(c.var, c.init);
      collect(s->body);
      collect(s->else_body);
    }
  }

  ExprPtr rewrite(const ExprPtr& e) {
    if (!e) return nullptr;
    bool same = true;
    std::vector<ExprPtr> args;
    args.reserve(e->args.size());
    for (const auto& a : e->args) {
      args.push_back(rewrite(a));
      same = same && args.back() == a;
    }
    TypePtr type = e->type;
    if (e->kind == ExprKind::kVar && e->var->type != e->type && e->type && e->type->is_tile() &&
        e->type->space == MemorySpace::kUnset) {
      return ir::var_ref(e->var, e->span);
    }
    if (e->kind == ExprKind::kOp && type && type->is_tile() && type->space == MemorySpace::kUnset) {
      const auto& row = ir::op_row(e->op);
      MemorySpace space = MemorySpace::kVec;
      if (e->op == OpId::k_load) {
        space = loads_.count(e.get()) ? MemorySpace::kMat : MemorySpace::kVec;
      } else if (row.alias == ir::AliasClass::kView && args[0]) {
        space = args[0]->type->space;
      } else if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0) {
        space = args[static_cast<size_t>(row.inplace_param)]->type->space;
      }
      if (space != MemorySpace::kUnset) {
        type = with_space(type, space);
        same = false;
      }
    }
    if (same) return e;
    auto copy = std::make_shared<Expr>(*e);
    copy->args = std::move(args);
    copy->type = type;
    if (loads_.count(e.get())) loads_.insert(copy.get());
    kept_.push_back(copy);
    if (e->op == OpId::k_load && e->kind == ExprKind::kOp && type->is_tile() &&
        !e->attrs.find(AttrKey::k_target_memory)) {
      copy->attrs.set(AttrKey::k_target_memory, static_cast<int64_t>(type->space));
    }
    changed_ = true;
    return copy;
  }

  void settle(const VarPtr& v, const TypePtr& from) {
    if (!v || !v->type || !v->type->is_tile() || v->type->space != MemorySpace::kUnset || !from ||
        !from->is_tile() || from->space == MemorySpace::kUnset) {
      return;
    }
    v->type = with_space(v->type, from->space);
    changed_ = true;
  }

  Block rewrite(const Block& block) {
    for (const auto& s : block) {
      poll();
      s->value = rewrite(s->value);
      for (auto& v : s->values) v = rewrite(v);
      s->start = rewrite(s->start);
      s->stop = rewrite(s->stop);
      s->step = rewrite(s->step);
      for (auto& c : s->carries) {
        c.init = rewrite(c.init);
        settle(c.var, c.init->type);
        settle(c.result, c.init->type);
      }
      if (s->kind == StmtKind::kAssign) {
        for (size_t i = 0; i < s->targets.size(); ++i) {
          if (s->targets.size() == 1) {
            settle(s->targets[0], s->value->type);
          } else if (s->value->type->kind == ir::TypeKind::kTuple && i < s->value->type->elements.size()) {
            const bool display = s->value->kind == ExprKind::kTuple;
            settle(s->targets[i], display ? s->value->args[i]->type : s->value->type->elements[i]);
          }
        }
      }
      for (size_t i = 0; s->kind == StmtKind::kYield && i < s->targets.size() && i < s->values.size(); ++i) {
        settle(s->targets[i], s->values[i]->type);
      }
      rewrite(s->body);
      rewrite(s->else_body);
    }
    return block;
  }

  Function& f_;
  bool changed_ = false;
  std::unordered_set<const Var*> computed_;  ///< hold results of vector operations
  std::unordered_set<const Var*> wanted_;
  std::unordered_set<const Expr*> loads_;  ///< expressions whose value a matrix product reads
  std::vector<ExprPtr> kept_;
};

}  // namespace

void place_tiles(ir::Function& f) { SpaceAssigner(f).run(); }

}  // namespace pypto::passes
