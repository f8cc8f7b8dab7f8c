// SPDX-License-Identifier: Apache-2.0
#include "core/passes/flatten.h"

#include <utility>
#include <vector>

#include "core/passes/build.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;
using ir::VarPtr;

bool is_tile(const ExprPtr& e) { return e && e->type && e->type->is_tile(); }
bool is_split_loop(const Stmt& s) {
  return s.kind == StmtKind::kScope && s.scope->kind == ir::ScopeKind::kSplitAiv;
}

/// Gives every operation on tiles a statement of its own, and the bodies of split_aiv loops their place in
/// the code around them: what they hold says itself on which core it runs.
class Flatten {
 public:
  Flatten(Function& f, ir::Arch arch) : f_(f), arch_(arch) {}

  Block run(const Block& in) {
    Block out;
    for (const auto& s : in) statement(*s, out);
    return out;
  }

 private:
  void statement(const Stmt& s, Block& out) {
    if (is_split_loop(s)) {
      CodeBuilder b(f_, arch_, ir::kPlaceKernel, s.span);
      b.set(s.scope->loop_var, b.op(OpId::k_get_subblock_idx, {}, ir::kFormTile));
      for (auto& made : b.code) out.push_back(made);
      for (const auto& inner : s.body) statement(*inner, out);
      return;
    }
    auto copy = std::make_shared<Stmt>(s);
    const bool binds = (s.kind == StmtKind::kAssign && s.targets.size() == 1) || s.kind == StmtKind::kEval;
    copy->value = binds ? whole(s.value, out) : part(s.value, out);
    for (auto& v : copy->values) v = part(v, out);
    for (auto& c : copy->carries) c.init = part(c.init, out);
    copy->body = run(s.body);
    copy->else_body = run(s.else_body);
    out.push_back(copy);
  }

  ExprPtr whole(const ExprPtr& e, Block& out) {
    if (!e) return nullptr;
    bool same = true;
    std::vector<ExprPtr> args;
    for (const auto& a : e->args) {
      args.push_back(part(a, out));
      same = same && args.back() == a;
    }
    if (same) return e;
    auto copy = std::make_shared<Expr>(*e);
    copy->args = std::move(args);
    return copy;
  }

  ExprPtr part(const ExprPtr& e, Block& out) {
    ExprPtr w = whole(e, out);
    if (!is_tile(w) || w->kind != ExprKind::kOp) return w;
    const char* name = is_op(w, OpId::k_aiv_shard)    ? "part"
                       : is_op(w, OpId::k_aic_gather) ? "joined"
                                                      : ir::op_row(w->op).name;
    const VarPtr v = f_.add_var(name, w->type, ir::VarKind::kLocal, w->span);
    auto s = std::make_shared<Stmt>();
    s->kind = StmtKind::kAssign;
    s->span = w->span;
    s->targets = {v};
    s->value = w;
    out.push_back(s);
    return ir::var_ref(v, w->span);
  }

  Function& f_;
  ir::Arch arch_;
};

}  // namespace

Block one_operation_each(Function& f, ir::Arch arch) { return Flatten(f, arch).run(f.body); }

}  // namespace pypto::passes
