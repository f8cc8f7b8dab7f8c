// SPDX-License-Identifier: Apache-2.0
#include "core/passes/resolve_extents.h"

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::CostClass;
using ir::Dim;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::OpId;
using ir::Shape;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

bool is_tile(const ExprPtr& e) { return e && e->type && e->type->is_tile(); }

bool unknown(const Shape& valid) {
  for (const auto& d : valid) {
    if (!d.is_const() && !d.expr) return true;
  }
  return false;
}

class ResolveExtents {
 public:
  explicit ResolveExtents(Function& f) {
    for (const auto& p : f.params) ++assigned_[p.get()];
    for (const auto& p : f.symbols) ++assigned_[p.get()];
    walk_stmts(f.body, [&](const ir::StmtPtr& s) {
      own_defs(*s, [&](const ir::VarPtr& v) { ++assigned_[v.get()]; });
    });
    f.body = block(f.body);
  }

 private:
  /// An extent that means the same wherever it is read.
  Dim extent(const ExprPtr& e) const {
    const ExprPtr& plain = ir::is_checked_conversion(e) ? e->args[0] : e;
    if (const auto c = ir::const_int(ir::simplify(plain))) return Dim(*c);
    bool fixed = plain->type && plain->type->is_scalar() && plain->type->dtype == DType::kIndex;
    walk_expr(plain, [&](const ExprPtr& x) {
      if (x->kind == ExprKind::kVar) {
        const auto it = assigned_.find(x->var.get());
        fixed = fixed && x->type->is_scalar() && it != assigned_.end() && it->second == 1;
      } else if (x->kind == ExprKind::kOp) {
        fixed = fixed && ir::op_row(x->op).cost == CostClass::kScalar && ir::op_row(x->op).effects[0] == '\0';
      } else {
        fixed = fixed && x->kind == ExprKind::kInt;
      }
    });
    return fixed ? Dim(plain) : Dim();
  }

  Shape valid_of(const ExprPtr& e) const {
    const Type& t = *e->type;
    if (e->kind == ExprKind::kVar) {
      const auto it = known_.find(e->var.get());
      if (it != known_.end() && it->second.size() == t.shape.size()) return it->second;
    }
    if (e->kind != ExprKind::kOp || !unknown(t.valid)) return t.valid;
    Shape valid = t.valid;
    if (e->op == OpId::k_set_validshape) {
      for (const size_t k : {size_t{0}, size_t{1}}) {
        if (!valid[k].is_const() && !valid[k].expr) valid[k] = extent(e->args[1 + k]);
      }
      return valid;
    }
    const CostClass cost = ir::op_row(e->op).cost;
    const bool follows = cost == CostClass::kElementwise || cost == CostClass::kExpand ||
                         e->op == OpId::k_move || e->op == OpId::k_copy_tile || e->op == OpId::k_snapshot;
    if (!follows || e->args.empty() || !is_tile(e->args[0])) return valid;
    const Type& first = *e->args[0]->type;
    for (size_t k = 0; k < valid.size() && first.valid.size() == valid.size(); ++k) {
      const bool same = first.shape[k].is_const() && first.shape[k].value == t.shape[k].value;
      if (!valid[k].is_const() && !valid[k].expr && same) valid[k] = first.valid[k];
    }
    return valid;
  }

  ExprPtr expr(const ExprPtr& e) const {
    if (!e) return nullptr;
    ExprPtr out = e;
    if (!e->args.empty()) {
      std::vector<ExprPtr> args;
      bool same = true;
      for (const auto& a : e->args) {
        args.push_back(expr(a));
        same = same && args.back() == a;
      }
      if (!same) {
        auto copy = std::make_shared<Expr>(*e);
        copy->args = std::move(args);
        out = copy;
      }
    }
    if (!is_tile(out) || !unknown(out->type->valid)) return out;
    auto type = std::make_shared<Type>(*out->type);
    type->valid = valid_of(out);
    auto copy = std::make_shared<Expr>(*out);
    copy->type = type;
    return copy;
  }

  void forget(const Stmt& s) {
    own_defs(s, [&](const ir::VarPtr& v) { known_.erase(v.get()); });
    for (const auto* body : {&s.body, &s.else_body}) {
      walk_stmts(*body, [&](const ir::StmtPtr& x) {
        own_defs(*x, [&](const ir::VarPtr& v) { known_.erase(v.get()); });
      });
    }
  }

  Block block(const Block& in) {
    Block out;
    for (const auto& s : in) {
      auto copy = std::make_shared<Stmt>(*s);
      copy->value = expr(s->value);
      for (auto& v : copy->values) v = expr(v);
      for (auto& c : copy->carries) c.init = expr(c.init);
      const bool loop = s->kind == StmtKind::kFor || s->kind == StmtKind::kWhile;
      if (loop) forget(*s);
      const auto before = known_;
      copy->body = block(s->body);
      known_ = before;
      copy->else_body = block(s->else_body);
      known_ = before;
      forget(*s);
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && is_tile(copy->value)) {
        const Shape valid = valid_of(copy->value);
        if (!unknown(valid)) known_[s->targets[0].get()] = valid.empty() ? copy->value->type->shape : valid;
      }
      out.push_back(copy);
    }
    return out;
  }

  std::unordered_map<const Var*, int> assigned_;
  std::unordered_map<const Var*, Shape> known_;
};

}  // namespace

void resolve_extents(Function& f) { ResolveExtents resolve(f); }

}  // namespace pypto::passes
