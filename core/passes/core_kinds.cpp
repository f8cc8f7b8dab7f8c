// SPDX-License-Identifier: Apache-2.0
#include "core/passes/core_kinds.h"

#include <unordered_set>

#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::CostClass;
using ir::ExprKind;
using ir::ExprPtr;
using ir::MemorySpace;
using ir::OpId;
using ir::StmtKind;

bool on_cube(MemorySpace s) {
  switch (s) {
    case MemorySpace::kMat:
    case MemorySpace::kLeft:
    case MemorySpace::kRight:
    case MemorySpace::kAcc:
    case MemorySpace::kBias:
    case MemorySpace::kLeftScale:
    case MemorySpace::kRightScale:
      return true;
    default:
      return false;
  }
}

class KindScan {
 public:
  bool cube = false, vector = false;

  explicit KindScan(const ir::Function& f) {
    for (bool changed = true; changed;) {
      changed = false;
      walk_stmts(f.body, [&](const ir::StmtPtr& s) {
        const auto add = [&](const ir::VarPtr& v, const ExprPtr& value) {
          if (v && value && product(value)) changed = products_.insert(v.get()).second || changed;
        };
        if (s->kind == StmtKind::kAssign && s->targets.size() == 1) add(s->targets[0], s->value);
        for (size_t i = 0; s->kind == StmtKind::kYield && i < s->targets.size() && i < s->values.size();
             ++i) {
          add(s->targets[i], s->values[i]);
        }
        for (const auto& c : s->carries) add(c.var, c.init);
      });
    }
    walk_exprs(f.body, [&](const ExprPtr& e) {
      if (e->kind == ExprKind::kOp) visit(*e);
    });
    walk_stmts(f.body, [&](const ir::StmtPtr& s) {
      vector = vector || (s->kind == StmtKind::kScope && s->scope->kind == ir::ScopeKind::kSplitAiv);
    });
  }

 private:
  /// The value comes out of the cube core.
  bool product(const ExprPtr& e) const {
    if (!e || !e->type) return false;
    if (e->type->is_tile()) return on_cube(e->type->space);
    if (e->kind == ExprKind::kVar) return products_.count(e->var.get()) > 0;
    if (e->kind != ExprKind::kOp) return false;
    if (is_product(e->op) || e->op == OpId::k_create_l1 || e->op == OpId::k_paged_gather) return true;
    return ir::op_row(e->op).alias == ir::AliasClass::kView && product(e->args[0]);
  }

  void visit(const ir::Expr& e) {
    const auto& row = ir::op_row(e.op);
    const auto space = e.type && e.type->is_tile() ? e.type->space : MemorySpace::kUnset;
    switch (e.op) {
      case OpId::k_load:
        (on_cube(space) ? cube : vector) = true;
        return;
      case OpId::k_store:
      case OpId::k_remote_store:
      case OpId::k_tensor_remote_store:
        (product(e.args[0]) ? cube : vector) = true;
        return;
      case OpId::k_assemble:
        (product(e.args[1]) ? cube : vector) = true;
        return;
      case OpId::k_move: {
        const auto to = static_cast<MemorySpace>(e.attrs.get_int(ir::AttrKey::k_target_memory));
        if (on_cube(to)) cube = true;
        if (!on_cube(to)) vector = true;
        if (product(e.args[0])) cube = true;
        if (e.args[0]->type->is_tile() && e.args[0]->type->space == MemorySpace::kVec) vector = true;
        return;
      }
      case OpId::k_create_l1:
      case OpId::k_paged_gather:
      case OpId::k_tpush_to_aiv:
      case OpId::k_tpop_from_aiv:
      case OpId::k_tfree_to_aiv:
      case OpId::k_aic_initialize_pipe:
        cube = true;
        return;
      case OpId::k_gather_row:
        (product(e.args[0]) ? cube : vector) = true;
        return;
      case OpId::k_tpush_to_aic:
      case OpId::k_tpop_from_aic:
      case OpId::k_tfree_to_aic:
      case OpId::k_aiv_initialize_pipe:
      case OpId::k_put:
      case OpId::k_get:
      case OpId::k_tile_put:
      case OpId::k_tile_get:
      case OpId::k_remote_load:
        vector = true;
        return;
      case OpId::k_aiv_shard:
      case OpId::k_aic_gather:
        cube = vector = true;
        return;
      case OpId::k_full:
      case OpId::k_tile_full:
      case OpId::k_arange:
      case OpId::k_tile_arange:
        return;  // made where it is consumed
      default:
        break;
    }
    if (is_product(e.op)) {
      cube = true;
      return;
    }
    switch (row.cost) {
      case CostClass::kElementwise:
      case CostClass::kReduce:
      case CostClass::kExpand:
      case CostClass::kGather:
      case CostClass::kSort:
        vector = true;
        break;
      case CostClass::kMove:
        // transpose, concat, extract: work of the core that holds the value
        if (e.op == OpId::k_snapshot || e.op == OpId::k_copy_tile) break;
        (product(e.args.empty() ? nullptr : e.args[0]) && on_cube(space) ? cube : vector) = true;
        break;
      default:
        break;
    }
  }

  std::unordered_set<const ir::Var*> products_;
};

}  // namespace

bool is_product(OpId op) { return ir::op_row(op).cost == CostClass::kMatmul; }

std::vector<int> matrix_operands(OpId op) {
  switch (op) {
    case OpId::k_matmul:
    case OpId::k_batch_matmul:
    case OpId::k_gemv:
      return {0, 1};
    case OpId::k_matmul_acc:
    case OpId::k_batch_matmul_acc:
    case OpId::k_gemv_acc:
      return {1, 2};
    case OpId::k_matmul_bias:
    case OpId::k_gemv_bias:
      return {0, 1, 2};
    case OpId::k_matmul_mx:
      return {0, 1, 2, 3};
    case OpId::k_matmul_mx_acc:
      return {1, 2, 3, 4};
    case OpId::k_matmul_mx_bias:
      return {0, 1, 2, 3, 4};
    default:
      return {};
  }
}

void set_core_kind(ir::Function& f) {
  if (f.type == ir::FunctionType::kAIC) {
    f.uses_cube = true;
    return;
  }
  if (f.type == ir::FunctionType::kAIV) {
    f.uses_vector = true;
    return;
  }
  const KindScan scan(f);
  f.uses_cube = scan.cube;
  f.uses_vector = scan.vector || !scan.cube;
  if (f.uses_cube && f.uses_vector) return;
  f.type = f.uses_cube ? ir::FunctionType::kAIC : ir::FunctionType::kAIV;
  f.level = f.uses_cube ? ir::Level::kAIC : ir::Level::kAIV;
}

}  // namespace pypto::passes
