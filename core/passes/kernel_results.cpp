// SPDX-License-Identifier: Apache-2.0
#include "core/passes/kernel_results.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/passes/build.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::AttrMap;
using ir::Block;
using ir::Dim;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::OpId;
using ir::ParamDirection;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtPtr;
using ir::TypePtr;
using ir::VarKind;
using ir::VarPtr;

/// The type of a whole tensor in global memory: parameter `param` of a kernel, or one created for a task.
TypePtr whole_tensor(const ir::Type& t, const std::string& name, int param) {
  auto copy = std::make_shared<ir::Type>(t);
  copy->place = ir::TensorPlace::kGlobal;
  copy->valid.clear();
  copy->tensor_view = nullptr;
  copy->memref = nullptr;
  copy->acc_dtype = DType::kNone;
  copy->storage = std::make_shared<ir::Storage>();
  copy->storage->name = name;
  copy->storage->param = param;
  copy->storage->created = param < 0;
  copy->storage->needs_global = param < 0;
  copy->storage->written = true;
  return copy;
}

std::string free_name(const Function& f, const std::string& stem) {
  std::string name = stem;
  const auto taken = [&](const VarPtr& v) { return v->name == name; };
  for (int n = 1; std::any_of(f.vars.begin(), f.vars.end(), taken); ++n)
    name = stem + "_" + std::to_string(n);
  return name;
}

/// The extents of results in terms of a call's arguments.
class CallerExtents {
 public:
  CallerExtents(const Function& callee, const std::vector<ExprPtr>& args) {
    for (size_t i = 0; i < args.size() && i < callee.params.size(); ++i) {
      const ir::Type& formal = *callee.params[i]->type;
      const ir::Type& given = *args[i]->type;
      for (size_t a = 0; a < formal.shape.size() && a < given.shape.size(); ++a) {
        const ExprPtr& e = formal.shape[a].expr;
        if (e && e->kind == ExprKind::kVar) dims_.emplace(e->var.get(), given.shape[a]);
      }
    }
  }

  /// nullptr when an extent is known to the kernel only.
  ExprPtr find(const Dim& d, const Span& span) const {
    return d.is_const() ? ir::int_const(d.value, DType::kIndex, span, true) : substitute(d.expr, span);
  }

 private:
  ExprPtr substitute(const ExprPtr& e, const Span& span) const {
    if (!e) return nullptr;
    if (e->kind == ExprKind::kVar) {
      const auto it = dims_.find(e->var.get());
      if (it == dims_.end()) return nullptr;
      const Dim& d = it->second;
      return d.is_const() ? ir::int_const(d.value, DType::kIndex, span, true) : d.expr;
    }
    if (e->kind == ExprKind::kInt) return e;
    if (e->kind != ExprKind::kOp || e->args.size() != 2) return nullptr;
    const ExprPtr a = substitute(e->args[0], span), b = substitute(e->args[1], span);
    return a && b ? ir::infer_scalar(e->op, a, b, span) : nullptr;
  }

  std::unordered_map<const ir::Var*, Dim> dims_;
};

bool extents_known(const Function& callee, const ir::Type& result, const std::vector<ExprPtr>& args,
                   const Span& span, std::vector<ExprPtr>* shape) {
  const CallerExtents extents(callee, args);
  for (const Dim& d : result.shape) {
    shape->push_back(extents.find(d, span));
    if (!shape->back()) return false;
  }
  return true;
}

class Results {
 public:
  explicit Results(ir::Module& module) : module_(module) {}

  void run() {
    for (const auto& f : module_.functions) {
      walk_exprs(f->body, [&](const ExprPtr& e) {
        if (e->kind == ExprKind::kCall && e->call && e->call->callee)
          calls_[e->call->callee.get()].emplace_back(f.get(), e);
      });
    }
    for (const auto& f : module_.functions) {
      if (!f->is_kernel() || !f->external_source.empty() || !calls_.count(f.get())) continue;
      const std::vector<size_t> fresh = fresh_results(*f);
      if (!fresh.empty() && possible(*f, fresh)) change(*f, fresh);
    }
    for (const auto& f : module_.functions) {
      if (!f->is_kernel()) check_groups(*f);
      if (!f->is_kernel() && !added_.empty()) f->body = callers(*f, f->body);
    }
  }

 private:
  /// The members of a group run as one task, which has the outputs of its parameters only.
  static void check_groups(const Function& caller) {
    walk_stmts(caller.body, [&](const StmtPtr& s) {
      if (s->kind != StmtKind::kAssign || !s->value || s->value->kind != ExprKind::kCall || !s->value->call)
        return;
      const ir::FunctionPtr& callee = s->value->call->callee;
      if (!callee || !callee->external_source.empty()) return;
      const bool group = callee->type == ir::FunctionType::kGroup;
      if (!group && !(caller.type == ir::FunctionType::kGroup && callee->is_kernel())) return;
      for (const size_t k : fresh_results(*callee)) {
        if (k >= s->targets.size() || !s->targets[k]) continue;
        fail(ErrorClass::kParserTypeError,
             "Value " + std::to_string(k) + " returned by " + (group ? "group '" : "group member '") +
                 callee->name + "' is none of its parameters",
             s->span, "write it to an Out parameter and return that");
      }
    });
  }

  static std::vector<size_t> fresh_results(const Function& f) {
    std::vector<size_t> out;
    for (size_t k = 0; k < f.return_types.size() && k < f.return_params.size(); ++k) {
      if (f.return_params[k] < 0 && f.return_types[k] && f.return_types[k]->is_tensor()) out.push_back(k);
    }
    return out;
  }

  bool possible(const Function& f, const std::vector<size_t>& fresh) const {
    for (const auto& [caller, e] : calls_.at(&f)) {
      if (caller->is_kernel() || caller->is_host() || caller->type == ir::FunctionType::kGroup) return false;
      for (const size_t k : fresh) {
        std::vector<ExprPtr> shape;
        if (extents_known(f, *f.return_types[k], e->args, e->span, &shape)) continue;
        fail(ErrorClass::kParserTypeError,
             "Value " + std::to_string(k) + " returned by kernel '" + f.name + "' (" +
                 ir::type_text(*f.return_types[k]) + ") has an extent known only on the device",
             f.span, "write it to an Out parameter of the kernel");
      }
    }
    return true;
  }

  void change(Function& f, const std::vector<size_t>& fresh) {
    std::vector<std::pair<size_t, VarPtr>> params;
    for (const size_t k : fresh) {
      const int index = static_cast<int>(f.params.size());
      const std::string name = free_name(f, "result_" + std::to_string(k));
      VarPtr p = f.add_var(name, whole_tensor(*f.return_types[k], name, index), VarKind::kParam, f.span);
      f.params.push_back(p);
      f.directions.push_back(ParamDirection::kOut);
      if (!f.effective_directions.empty()) f.effective_directions.push_back(ParamDirection::kOut);
      f.return_params[k] = index;
      params.emplace_back(k, p);
    }
    added_[&f] = params;
    f.body = returns(f, f.body, params);
  }

  Block returns(Function& f, const Block& block, const std::vector<std::pair<size_t, VarPtr>>& params) {
    Block out;
    for (const auto& s : block) {
      s->body = returns(f, s->body, params);
      s->else_body = returns(f, s->else_body, params);
      if (s->kind == StmtKind::kReturn) {
        CodeBuilder b(f, module_.arch, ir::kPlaceKernel, s->span);
        for (const auto& [k, p] : params) {
          if (k >= s->values.size()) continue;
          std::vector<ExprPtr> zeros(p->type->shape.size(), b.index(0));
          b.eval(b.op(OpId::k_assemble, {CodeBuilder::ref(p), s->values[k], b.list(zeros)}));
          s->values[k] = CodeBuilder::ref(p);
        }
        for (auto& x : b.code) out.push_back(std::move(x));
      }
      out.push_back(s);
    }
    return out;
  }

  Block callers(Function& f, const Block& block) {
    Block out;
    for (const auto& s : block) {
      s->body = callers(f, s->body);
      s->else_body = callers(f, s->else_body);
      if ((s->kind == StmtKind::kAssign || s->kind == StmtKind::kEval) && s->value &&
          s->value->kind == ExprKind::kCall && s->value->call) {
        if (const auto it = added_.find(s->value->call->callee.get()); it != added_.end()) {
          create(f, *s, *it->first, it->second, out);
        }
      }
      out.push_back(s);
    }
    return out;
  }

  void create(Function& f, Stmt& s, const Function& callee,
              const std::vector<std::pair<size_t, VarPtr>>& params, Block& out) {
    auto call = std::make_shared<ir::Expr>(*s.value);
    for (const auto& [k, p] : params) {
      std::vector<ExprPtr> shape;
      extents_known(callee, *callee.return_types[k], call->args, s.span, &shape);
      const ir::Type& given =
          k < s.targets.size() && s.targets[k] ? *s.targets[k]->type : *callee.return_types[k];
      const std::string name = free_name(
          f, k < s.targets.size() && s.targets[k] ? s.targets[k]->name : callee.name + "_" + p->name);
      VarPtr v = f.add_var(name, whole_tensor(given, name, -1), VarKind::kLocal, s.span);
      AttrMap attrs;
      attrs.set(AttrKey::k_dtype, static_cast<int64_t>(given.dtype));
      attrs.set(AttrKey::k_layout, static_cast<int64_t>(ir::TensorLayout::kND));
      attrs.set(AttrKey::k_manual_dep, int64_t{0});
      std::vector<ExprPtr> args(ir::op_params(ir::op_row(OpId::k_create_tensor), ir::kFormFlat).size());
      args[0] = ir::tuple_expr(std::move(shape), s.span);
      auto assign = std::make_shared<Stmt>();
      assign->kind = StmtKind::kAssign;
      assign->span = s.span;
      assign->targets = {v};
      assign->value = ir::op_expr(OpId::k_create_tensor, args, attrs, v->type, s.span);
      out.push_back(assign);
      call->args.push_back(ir::var_ref(v, s.span));
    }
    if (call->call && !call->call->no_dep.empty()) {
      auto info = std::make_shared<ir::CallInfo>(*call->call);
      info->no_dep.resize(call->args.size(), false);
      call->call = info;
    }
    s.value = call;
  }

  ir::Module& module_;
  std::unordered_map<const Function*, std::vector<std::pair<Function*, ExprPtr>>> calls_;
  std::unordered_map<const Function*, std::vector<std::pair<size_t, VarPtr>>> added_;
};

}  // namespace

void give_results_parameters(ir::Module& module) { Results(module).run(); }

}  // namespace pypto::passes
