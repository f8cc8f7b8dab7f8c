// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/poll.h"
#include "core/ir/clone.h"
#include "core/ir/infer.h"
#include "core/ir/infer/typer.h"
#include "core/passes/definitions.h"
#include "core/passes/passes.h"
#include "core/passes/simplify.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::OpId;
using ir::StmtKind;
using ir::StmtPtr;
using ir::Var;

bool is_scalar_row(OpId op) {
  return (op >= OpId::k_scalar_add && op <= OpId::k_scalar_not) || op == OpId::k_max || op == OpId::k_min;
}

/// Operations that cannot fail and read nothing, so that an unused result may go.
bool is_harmless(const ExprPtr& e) {
  if (!e) return true;
  switch (e->kind) {
    case ExprKind::kInt:
    case ExprKind::kFloat:
    case ExprKind::kVar:
    case ExprKind::kNone:
      return true;
    case ExprKind::kOp:
      break;
    default:
      return false;
  }
  switch (e->op) {
    case OpId::k_scalar_floordiv:
    case OpId::k_scalar_mod:
    case OpId::k_scalar_lshift:
    case OpId::k_scalar_rshift:
    case OpId::k_scalar_truediv:
      return false;  // may fault, and then must be seen to
    case OpId::k_dim:
    case OpId::k_get_comm_ctx:
    case OpId::k_rank:
    case OpId::k_nranks:
    case OpId::k_get_block_idx:
    case OpId::k_get_block_num:
    case OpId::k_get_subblock_idx:
      break;
    default:
      if (!is_scalar_row(e->op)) return false;
  }
  for (const auto& a : e->args) {
    if (!is_harmless(a)) return false;
  }
  return true;
}

/// A scalar that only ever stands for a dynamic dimension is that dimension: the front end reads it so, too.
class SymbolNames {
  // Variables, storages and callees stay what they are; only the names of symbols are replaced.
  class KeepingCloner : public ir::Cloner {
   public:
    KeepingCloner() : ir::Cloner(nullptr) {}
    std::shared_ptr<ir::Storage> storage(const std::shared_ptr<ir::Storage>& s) override { return s; }
    ExprPtr expr(const ExprPtr& e) override {
      if (!e || e->kind != ExprKind::kVar || values.count(e->var.get())) return ir::Cloner::expr(e);
      auto copy = std::make_shared<Expr>(*e);
      copy->type = type(e->type);
      return copy;
    }
  };

 public:
  explicit SymbolNames(Function& f) : f_(f) {
    std::unordered_map<const Var*, int> count;
    walk_stmts(f.body,
               [&](const StmtPtr& s) { own_defs(*s, [&](const ir::VarPtr& v) { ++count[v.get()]; }); });
    for (bool changed = true; changed;) {
      changed = false;
      walk_stmts(f.body, [&](const StmtPtr& s) {
        if (s->kind != StmtKind::kAssign || s->targets.size() != 1 || !s->targets[0] || !s->value ||
            s->value->kind != ExprKind::kVar)
          return;
        const auto& v = s->targets[0];
        if (!v->type->is_scalar() || count[v.get()] != 1 || cloner_.values.count(v.get())) return;
        const auto known = cloner_.values.find(s->value->var.get());
        const ExprPtr source = known == cloner_.values.end() ? s->value : known->second;
        if (source->var->kind != ir::VarKind::kSymbol) return;
        cloner_.values[v.get()] = source;
        changed = true;
      });
    }
  }

  void run() {
    if (cloner_.values.empty()) return;
    for (const auto& v : f_.vars) v->type = cloner_.type(v->type);
    for (auto& t : f_.return_types) t = cloner_.type(t);
    rewrite(f_.body);
  }

 private:
  void rewrite(Block& block) {
    Block out;
    for (auto& s : block) {
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && s->targets[0] &&
          cloner_.values.count(s->targets[0].get()))
        continue;
      s->value = cloner_.expr(s->value);
      s->values = cloner_.exprs(s->values);
      s->start = cloner_.expr(s->start);
      s->stop = cloner_.expr(s->stop);
      s->step = cloner_.expr(s->step);
      s->annotation = cloner_.type(s->annotation);
      for (auto& c : s->carries) c.init = cloner_.expr(c.init);
      if (s->scope) {
        s->scope->core_num = cloner_.expr(s->scope->core_num);
        s->scope->deps = cloner_.exprs(s->scope->deps);
        s->scope->predicate = cloner_.expr(s->scope->predicate);
      }
      rewrite(s->body);
      rewrite(s->else_body);
      out.push_back(std::move(s));
    }
    block = std::move(out);
  }

  Function& f_;
  KeepingCloner cloner_;
};

class Simplifier {
 public:
  explicit Simplifier(Function& f) : f_(f) {}

  void run() {
    f_.body = rewrite(f_.body);
    while (note_numbers()) f_.body = rewrite(f_.body);
    for (bool changed = true; changed;) changed = drop_unused();
  }

 private:
  /// Finds names that have become one number: what reads them reads the number, as in the front end. False
  /// when there is no new one.
  bool note_numbers() {
    bool more = false;
    for (const auto& [v, value] : definitions(f_.body)) {
      const bool number =
          ir::const_int(value) && value->type->dtype == v->type->dtype && value->type->dtype != DType::kBool;
      if (number && numbers_.try_emplace(v, value).second) more = true;
    }
    return more;
  }

  ExprPtr fold(const ExprPtr& e) {
    if (!e) return nullptr;
    if (e->kind == ExprKind::kVar && !numbers_.empty()) {
      const auto it = numbers_.find(e->var.get());
      if (it == numbers_.end()) return e;
      return ir::int_const(it->second->int_value, it->second->type->dtype, e->span, it->second->untyped);
    }
    bool same = true;
    std::vector<ExprPtr> args;
    args.reserve(e->args.size());
    for (const auto& a : e->args) {
      args.push_back(fold(a));
      same = same && args.back() == a;
    }
    ExprPtr out = e;
    if (!same) {
      auto copy = std::make_shared<Expr>(*e);
      copy->args = std::move(args);
      out = copy;
    }
    if (const auto number = converted_number(out)) return number;
    if (out->kind != ExprKind::kOp || !is_scalar_row(out->op) || !out->type->is_scalar()) return out;
    if (out->args.size() == 2 && ir::const_number(out->args[0]) && ir::const_number(out->args[1])) {
      const auto divisor = ir::const_int(out->args[1]);
      const bool division = out->op == OpId::k_scalar_floordiv || out->op == OpId::k_scalar_mod;
      if (!division || (divisor && *divisor != 0)) {
        const ExprPtr folded = ir::infer_scalar(out->op, out->args[0], out->args[1], out->span);
        if (folded->type->dtype == out->type->dtype) return folded;
      }
    }
    ExprPtr simple = ir::simplify(out);
    return reads_as(simple, out->type->dtype) ? simple : out;
  }

  /// Whether the operands of what is left still give it its dtype when its text is read (01 L-18).
  static bool reads_as(const ExprPtr& e, DType dtype) {
    if (is_op(e, OpId::k_scalar_add) || is_op(e, OpId::k_scalar_sub) || is_op(e, OpId::k_scalar_mul))
      return reads_as(e->args[0], dtype) || reads_as(e->args[1], dtype);
    return e->type->dtype == dtype;
  }

  /// An integer conversion of a number that the other type has, too: the number of that type.
  static ExprPtr converted_number(const ExprPtr& e) {
    if (e->kind != ExprKind::kOp || e->op != OpId::k_scalar_cast) return nullptr;
    const auto value = ir::const_int(e->args[0]);
    const DType to = e->type->dtype;
    if (!value || !is_int(to) || to == DType::kBool || !ir::infer::fits_dtype(*value, to)) return nullptr;
    return ir::int_const(*value, to, e->span);
  }

  Block rewrite(const Block& block) {
    Block out;
    for (const auto& s : block) {
      poll();
      s->value = fold(s->value);
      for (auto& v : s->values) v = fold(v);
      s->start = fold(s->start);
      s->stop = fold(s->stop);
      s->step = fold(s->step);
      for (auto& c : s->carries) c.init = fold(c.init);
      s->body = rewrite(s->body);
      s->else_body = rewrite(s->else_body);
      if (s->kind == StmtKind::kIf) {
        if (const auto known = ir::const_int(s->value)) {
          for (auto& x : *known ? s->body : s->else_body) out.push_back(std::move(x));
          continue;
        }
        if (s->body.empty() && s->else_body.empty() && is_harmless(s->value)) continue;
      }
      if (s->kind == StmtKind::kFor && s->body.empty() && s->carries.empty() && is_harmless(s->start) &&
          is_harmless(s->stop) && (!s->step || ir::const_int(s->step))) {
        continue;
      }
      out.push_back(s);
    }
    return out;
  }

  bool drop_unused() {
    std::unordered_set<const Var*> used;
    const auto mention = [&](const ExprPtr& e) {
      walk_expr(e, [&](const ExprPtr& x) {
        if (x->kind == ExprKind::kVar) used.insert(x->var.get());
      });
    };
    const auto mention_type = [&](const ir::TypePtr& t) {
      if (!t) return;
      for (const auto& d : t->shape) mention(d.expr);
      for (const auto& d : t->valid) mention(d.expr);
      if (t->memref) mention(t->memref->slot);
    };
    for (const auto& v : f_.vars) mention_type(v->type);
    walk_stmts(f_.body, [&](const StmtPtr& s) {
      own_exprs(*s, mention);
      mention_type(s->annotation);
      for (const auto& c : s->carries) used.insert(c.var.get());
      if (s->kind == StmtKind::kYield) {
        for (const auto& t : s->targets) used.insert(t.get());
      }
    });
    bool changed = false;
    drop(f_.body, used, changed);
    return changed;
  }

  static void drop(Block& block, const std::unordered_set<const Var*>& used, bool& changed) {
    Block out;
    for (auto& s : block) {
      poll();
      drop(s->body, used, changed);
      drop(s->else_body, used, changed);
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && s->targets[0] &&
          !used.count(s->targets[0].get()) && s->targets[0]->type->is_scalar() && is_harmless(s->value)) {
        changed = true;
        continue;
      }
      out.push_back(std::move(s));
    }
    block = std::move(out);
  }

  Function& f_;
  Definitions numbers_;
};

}  // namespace

void name_symbols(ir::Function& f) { SymbolNames(f).run(); }

void simplify(ir::Module& module) {
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || !f->external_source.empty()) continue;
    name_symbols(*f);
    Simplifier(*f).run();
  }
}

}  // namespace pypto::passes
