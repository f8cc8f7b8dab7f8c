// SPDX-License-Identifier: Apache-2.0
#include "core/passes/flatten.h"

#include <optional>
#include <unordered_map>
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

  bool failed() const { return failed_ || (jumps_ && !renamed_.empty()); }

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
    if (s.kind == StmtKind::kAssign && s.targets.size() == 1 && is_tile(copy->value))
      copy->targets = {target(s.targets[0], copy->value, out)};
    jumps_ = jumps_ || s.kind == StmtKind::kBreak || s.kind == StmtKind::kContinue;
    copy->body = run(s.body);
    copy->else_body = run(s.else_body);
    out.push_back(copy);
  }

  /// A name that holds a tile of one core and then one of the other becomes two, where nothing joins them.
  VarPtr target(const VarPtr& v, const ExprPtr& value, const Block& out) {
    const auto now = renamed_.find(v.get());
    const VarPtr current = now == renamed_.end() ? v : now->second;
    const auto [where, first] = made_in_.try_emplace(v.get(), &out);
    if (tile_side(*current->type) == tile_side(*value->type)) return current;
    if (!first && where->second != &out) failed_ = true;
    const VarPtr fresh = f_.add_var(v->name, value->type, ir::VarKind::kLocal, v->span);
    renamed_[v.get()] = fresh;
    return fresh;
  }

  ExprPtr whole(const ExprPtr& e, Block& out) {
    if (!e) return nullptr;
    if (e->kind == ExprKind::kVar) {
      const auto it = renamed_.find(e->var.get());
      return it == renamed_.end() ? e : ir::var_ref(it->second, e->span);
    }
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
  bool failed_ = false, jumps_ = false;
  std::unordered_map<const ir::Var*, VarPtr> renamed_;
  std::unordered_map<const ir::Var*, const Block*> made_in_;  ///< the block of the first definition
};

}  // namespace

TileSide tile_side(const ir::Type& t) {
  const bool vector = t.space == ir::MemorySpace::kVec || t.space == ir::MemorySpace::kUnset;
  return vector ? TileSide::kVector : TileSide::kCube;
}

std::optional<Block> one_operation_each(Function& f, ir::Arch arch) {
  Flatten flatten(f, arch);
  Block body = flatten.run(f.body);
  if (flatten.failed()) return std::nullopt;
  return body;
}

}  // namespace pypto::passes
