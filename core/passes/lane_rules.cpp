// SPDX-License-Identifier: Apache-2.0
#include "core/passes/lane_rules.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/passes/core_kinds.h"
#include "core/passes/tile_bytes.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AliasClass;
using ir::Block;
using ir::CostClass;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::MemorySpace;
using ir::OpId;
using ir::SplitMode;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

/// Where an on-chip value comes from.
struct Origin {
  enum class Core : uint8_t { kEither, kCube, kVector };
  Core core = Core::kEither;
  const Stmt* body = nullptr;  ///< the split_aiv body that made it, null outside or when it was handed over
  bool shared_out = false;     ///< a lane's part of a divided value
};

bool on_chip(const Expr& e) {
  return e.type && (e.type->is_tile() || (e.type->is_tensor() && e.type->place == ir::TensorPlace::kOnChip));
}
bool on_chip(const ExprPtr& e) { return e && on_chip(*e); }

bool is_vector_compute(const Expr& e) {
  switch (e.op) {
    case OpId::k_full:
    case OpId::k_tile_full:
    case OpId::k_arange:
    case OpId::k_tile_arange:
    case OpId::k_gather_row:  // a transfer
    case OpId::k_paged_gather:
      return false;
    default:
      break;
  }
  if (!on_chip(e)) return false;
  switch (ir::op_row(e.op).cost) {
    case CostClass::kElementwise:
    case CostClass::kReduce:
    case CostClass::kExpand:
    case CostClass::kGather:
    case CostClass::kSort:
      return true;
    default:
      return false;
  }
}

std::string call_text(const Expr& e) { return std::string("pl.") + ir::op_row(e.op).name; }

std::string value_text(const ExprPtr& e) {
  return e->kind == ExprKind::kVar ? e->var->name : "the value of " + call_text(*e);
}

class LaneRules {
 public:
  explicit LaneRules(const ir::Function& f) : f_(f) {
    walk_stmts(f.body, [&](const ir::StmtPtr& s) { any_ = any_ || is_split(*s); });
    if (any_) run(f.body);
  }

 private:
  static bool is_split(const Stmt& s) {
    return s.kind == StmtKind::kScope && s.scope->kind == ir::ScopeKind::kSplitAiv;
  }

  [[noreturn]] void refuse(const std::string& what, const Expr& at, const std::string& hint) const {
    fail(ErrorClass::kValueError, what + " (kernel '" + f_.name + "')", at.span.known() ? at.span : f_.span,
         hint);
  }

  // ---- where values come from
  Origin origin(const ExprPtr& e) const {
    if (!e) return {};
    switch (e->kind) {
      case ExprKind::kVar: {
        const auto it = origins_.find(e->var.get());
        return it == origins_.end() ? Origin() : it->second;
      }
      case ExprKind::kItem:
        return origin(e->args[0]);
      case ExprKind::kOp:
        break;
      default:
        return {};
    }
    if (!on_chip(e)) return {};
    Origin made;
    made.body = inside_;
    if (e->op == OpId::k_aiv_shard) {
      made.core = Origin::Core::kVector;
      made.shared_out = inside_ && inside_->scope->mode != SplitMode::kNone;
      return made;
    }
    if (e->op == OpId::k_aic_gather) return {Origin::Core::kCube, nullptr, false};
    for (const auto& a : e->args) made.shared_out = made.shared_out || (on_chip(a) && origin(a).shared_out);
    const ir::OpRow& row = ir::op_row(e->op);
    if (is_product(e->op) || e->op == OpId::k_create_l1 || e->op == OpId::k_paged_gather) {
      made.core = Origin::Core::kCube;
    } else if (row.alias == AliasClass::kView || e->op == OpId::k_copy_tile || e->op == OpId::k_snapshot) {
      return origin(e->args[0]);
    } else if (e->type->is_tile() && e->type->space != MemorySpace::kVec &&
               e->type->space != MemorySpace::kUnset) {
      made.core = Origin::Core::kCube;
    } else if (is_vector_compute(*e)) {
      made.core = Origin::Core::kVector;
    }
    return made;
  }

  // ---- what an operation may do where it stands
  void visit(const ExprPtr& e) {
    if (e->kind != ExprKind::kOp) return;
    const std::string name = call_text(*e);
    if (e->op == OpId::k_aiv_shard || e->op == OpId::k_aic_gather) {
      crossing(*e);
      return;
    }
    if (inside_ && is_product(e->op)) {
      refuse("cube op '" + name + "' inside a pl.split_aiv region", *e,
             "products run on the cube core: move it before or after the loop, and name what crosses with "
             "pl.aiv_shard and pl.aic_gather");
    }
    if (!inside_ && is_vector_compute(*e)) {
      refuse("vector op '" + name + "' sits outside every pl.split_aiv region", *e,
             "this kernel places its vector work by hand: wrap it in `for lane in pl.split_aiv(2, "
             "mode=pl.SplitMode.NONE):`");
    }
    for (const auto& a : e->args) operand(a);
    reduction(*e, name);
  }

  void operand(const ExprPtr& a) const {
    if (!on_chip(a) || a->kind != ExprKind::kVar) return;
    const Origin o = origin(a);
    const std::string name = value_text(a);
    if (inside_ && o.core == Origin::Core::kCube) {
      refuse(
          "'" + name +
              "' is produced on the CUBE lane and used inside a pl.split_aiv region; hand it over with "
              "pl.aiv_shard(" +
              name + ")",
          *a,
          "the form is `v = pl.aiv_shard(x)`: write `v = pl.aiv_shard(" + name + ")` in the body and use v");
    }
    if (!inside_ && o.body) {
      refuse("'" + name +
                 "' is defined inside a pl.split_aiv region and used after it; hand it over with "
                 "pl.aic_gather(" +
                 name + ")",
             *a,
             "the form is `y = pl.aic_gather(x)`: write `y = pl.aic_gather(" + name +
                 ")` as the last use in the body and use y after it");
    }
  }

  void crossing(const Expr& e) const {
    const ExprPtr& x = e.args[0];
    const Origin o = origin(x);
    const std::string name = value_text(x);
    const auto space = [&](const char* otherwise) {
      const bool known = x->type->is_tile() && x->type->space != MemorySpace::kUnset;
      return known ? std::string(space_name(x->type->space)) : std::string(otherwise);
    };
    if (e.op == OpId::k_aiv_shard && o.core == Origin::Core::kVector) {
      refuse("pl.aiv_shard hands a value of the cube core (Acc) to the vector lanes; '" + name + "' is in " +
                 space("Vec"),
             e, "a vector value needs no crossing: use it as it is");
    }
    if (e.op == OpId::k_aic_gather && o.core == Origin::Core::kCube) {
      refuse("pl.aic_gather hands a value of the vector lanes (Vec) to the cube core; '" + name + "' is in " +
                 space("Acc"),
             e, "a cube value needs no crossing: use it as it is");
    }
  }

  void reduction(const Expr& e, const std::string& name) const {
    if (!inside_ || inside_->scope->mode == SplitMode::kNone || ir::op_row(e.op).cost != CostClass::kReduce)
      return;
    const bool over_columns = std::string(ir::op_row(e.op).name).rfind("row_", 0) == 0;
    const bool split_columns = inside_->scope->mode == SplitMode::kLeftRight;
    if (over_columns != split_columns || e.args.empty() || !origin(e.args[0]).shared_out) return;
    refuse("'" + name + "' reduces over the split axis: each lane holds " +
               (split_columns ? "half of the columns" : "half of the rows") + " of '" +
               value_text(e.args[0]) + "'",
           e,
           split_columns
               ? "divide the rows (mode=pl.SplitMode.UP_DOWN), or work undivided (mode=pl.SplitMode.NONE)"
               : "divide the columns (mode=pl.SplitMode.LEFT_RIGHT), or work undivided "
                 "(mode=pl.SplitMode.NONE)");
  }

  // ---- statements
  void define(const ir::VarPtr& v, const Origin& o) {
    if (v) origins_[v.get()] = o;
  }

  void run(const Block& block) {
    for (const auto& s : block) {
      own_exprs(*s, [&](const ExprPtr& e) { walk_expr(e, [&](const ExprPtr& x) { visit(x); }); });
      if (s->kind == StmtKind::kAssign) {
        const bool display = s->value->kind == ExprKind::kTuple && s->value->args.size() == s->targets.size();
        for (size_t i = 0; i < s->targets.size(); ++i)
          define(s->targets[i], origin(display ? s->value->args[i] : s->value));
      }
      for (size_t i = 0; s->kind == StmtKind::kYield && i < s->targets.size() && i < s->values.size(); ++i)
        define(s->targets[i], origin(s->values[i]));
      for (const auto& c : s->carries) {
        define(c.var, origin(c.init));
        define(c.result, origin(c.init));
      }
      const Stmt* outer = inside_;
      if (is_split(*s)) inside_ = s.get();
      run(s->body);
      run(s->else_body);
      inside_ = outer;
      const Stmt* last = s->body.empty() ? nullptr : s->body.back().get();
      for (size_t i = 0;
           last && last->kind == StmtKind::kYield && i < s->carries.size() && i < last->values.size(); ++i)
        define(s->carries[i].result, origin(last->values[i]));
    }
  }

  const ir::Function& f_;
  bool any_ = false;
  const Stmt* inside_ = nullptr;
  std::unordered_map<const Var*, Origin> origins_;
};

/// 01 L-127, L-129: a value that crosses to the vector lanes is cut where its valid part can be shared,
/// unless it meets a value that is cut by itself, in the middle of the box.
class DividedKernel {
 public:
  DividedKernel(const ir::Function& f, SplitMode mode) : f_(f), rows_(mode == SplitMode::kUpDown) {
    walk_stmts(f.body, [&](const ir::StmtPtr& s) {
      own_exprs(*s, [&](const ExprPtr& e) { walk_expr(e, [&](const ExprPtr& x) { visit(x); }); });
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && crossed(s->value))
        crossed_.insert(s->targets[0].get());
      for (const auto& c : s->carries) {
        if (crossed(c.init)) crossed_.insert(c.var.get());
      }
    });
  }

 private:
  size_t axis(const ir::Type& t) const { return t.shape.size() - (rows_ ? 2 : 1); }

  /// Comes from the cube core.
  bool crossed(const ExprPtr& e) const {
    if (!e || !on_chip(e)) return false;
    if (e->kind == ExprKind::kVar) return crossed_.count(e->var.get()) > 0;
    if (e->kind != ExprKind::kOp) return false;
    if (is_product(e->op)) return true;
    const CostClass cost = ir::op_row(e->op).cost;
    const bool keeps = ir::op_row(e->op).alias == AliasClass::kView || cost == CostClass::kElementwise ||
                       cost == CostClass::kExpand || e->op == OpId::k_move;
    if (!keeps || e->op == OpId::k_fillpad) return false;
    for (const auto& a : e->args) {
      if (crossed(a)) return true;
    }
    return false;
  }

  void visit(const ExprPtr& e) const {
    if (e->kind != ExprKind::kOp || !is_vector_compute(*e)) return;
    const ExprPtr* narrow = nullptr;
    const ExprPtr* alone = nullptr;
    for (const auto& a : e->args) {
      if (!a || !a->type || !a->type->is_array_like() || a->type->rank() < 2) continue;
      const ir::Dim& n = a->type->shape[axis(*a->type)];
      if (!n.is_const() || n.value < 2) continue;
      if (!crossed(a)) {
        alone = &a;
      } else if (!a->type->valid.empty() && a->type->valid[axis(*a->type)].is_const()) {
        narrow = &a;
      }
    }
    if (!narrow || !alone) return;
    const ir::Type& t = *(*narrow)->type;
    const int64_t n = t.shape[axis(t)].value, v = t.valid[axis(t)].value, half = (n + 1) / 2;
    const int64_t first = std::min(v, half), second = v - first;
    if (second == 0 || first - second <= 1) return;
    const std::string extent = std::to_string(v) + " of " + std::to_string(n);
    fail(ErrorClass::kValueError,
         "cutting '" + value_text(*narrow) + "' (" + extent +
             " valid) where the independently split value '" + value_text(*alone) +
             "' is cut leaves the two AIV lanes " + std::to_string(first) + " and " + std::to_string(second) +
             " cells (kernel '" + f_.name + "'); set the extent with pl.tile.set_validshape to " +
             std::to_string(n) + " / " + std::to_string(n - 1),
         e->span.known() ? e->span : f_.span,
         "pl.tile.set_validshape(x, rows, cols) with one of the extents named, or drop pl.split");
  }

  const ir::Function& f_;
  bool rows_;
  std::unordered_set<const Var*> crossed_;
};

}  // namespace

namespace {

/// The notifies of `block` outside `pl.split_aiv` regions, those of collectives excepted.
void notifies_outside(const Block& block, const std::function<void(const Expr&)>& found) {
  bool collective = false;
  for (const auto& s : block) {
    own_exprs(*s, [&](const ExprPtr& e) {
      walk_expr(e, [&](const ExprPtr& x) {
        if (is_op(x, OpId::k_comm_mark)) {
          const std::string mode = x->attrs.get_string(ir::AttrKey::k_mode);
          collective = mode == "begin" || (collective && mode != "end");
        }
        if (is_op(x, OpId::k_notify) && !collective) found(*x);
      });
    });
    if (collective || (s->kind == StmtKind::kScope && s->scope->kind == ir::ScopeKind::kSplitAiv)) continue;
    notifies_outside(s->body, found);
    notifies_outside(s->else_body, found);
  }
}

}  // namespace

void warn_lone_notifies(ir::Module& module, const ir::Function& f) {
  if (!f.uses_cube || !f.uses_vector) return;
  notifies_outside(f.body, [&](const Expr& e) {
    Diagnostic d;
    d.cls = ErrorClass::kValueError;
    d.severity = Severity::kWarning;
    d.id = "X-57";
    d.kernel = f.name;
    d.span = e.span;
    d.message = "pld.system.notify in kernel '" + f.name +
                "', which mixes cube and vector work, stands outside every pl.split_aiv region: on a device "
                "several lanes may issue it";
    d.hint = "put the communication phase in a region";
    const auto same = [&](const Diagnostic& w) {
      return w.id == d.id && w.span.text() == d.span.text() && w.message == d.message;
    };
    if (std::none_of(module.warnings.begin(), module.warnings.end(), same))
      module.warnings.push_back(std::move(d));
  });
}

void check_lane_rules(const ir::Function& f) {
  LaneRules rules(f);
  const ir::FunctionAttr* split = f.attr("split");
  if (f.type != ir::FunctionType::kInCore || !split || split->int_value == 0) return;
  DividedKernel divided(f, static_cast<SplitMode>(split->int_value));
}

}  // namespace pypto::passes
