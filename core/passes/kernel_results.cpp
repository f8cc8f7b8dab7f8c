// SPDX-License-Identifier: Apache-2.0
#include "core/passes/kernel_results.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/passes/build.h"
#include "core/passes/create_outputs.h"
#include "core/passes/effects.h"
#include "core/passes/origins.h"
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

/// The tensors created in a kernel that its results may be.
class ReturnedCreates {
 public:
  explicit ReturnedCreates(const Function& f) : scan_(f.body), one_(f.body, scan_) {
    walk(f.body);
    bool bulk = false, element = false;
    walk_exprs(f.body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kOp) return;
      const size_t target = e->op == OpId::k_store ? 2 : 0;
      if (target == 0 && e->op != OpId::k_assemble && e->op != OpId::k_write) return;
      if (target >= e->args.size() || !e->args[target]) return;
      const auto& storage = e->args[target]->type->storage;
      if (!storage || storage->param < 0) (e->op == OpId::k_write ? element : bulk) = true;
    });
    mixed_ = bulk && element;
  }

  /// All that can be parameters, in order of creation.
  std::vector<ExprPtr> all(const std::vector<size_t>& results) const {
    std::unordered_set<const ir::Expr*> can, found;
    if (mixed_) return {};
    for (const auto& create : creates_) can.insert(create.get());
    std::vector<const Origin*> origins;
    for (const Stmt* s : returns_) {
      for (const size_t k : results) {
        if (const Origin* o = origin(*s, k); o && !o->creates.empty()) origins.push_back(o);
      }
    }
    // Values that meet in one name live in one kind of memory: all of them are parameters or none is.
    for (bool again = true; again;) {
      again = false;
      for (const Origin* o : origins) {
        const bool whole = !o->fresh && o->entries.empty() &&
                           std::all_of(o->creates.begin(), o->creates.end(),
                                       [&](const ir::Expr* c) { return can.count(c) > 0; });
        for (const ir::Expr* c : o->creates) {
          found.insert(c);
          if (!whole && can.erase(c)) again = true;
        }
      }
    }
    std::vector<ExprPtr> out;
    for (const auto& create : creates_) {
      if (can.count(create.get()) && found.count(create.get())) out.push_back(create);
    }
    return out;
  }

  /// The one that result `k` is at every return, else nullptr.
  const ir::Expr* only(size_t k) const {
    const ir::Expr* found = nullptr;
    for (const Stmt* s : returns_) {
      const Origin* o = origin(*s, k);
      if (!o) continue;
      const ir::Expr* create = o->is_create() ? *o->creates.begin() : nullptr;
      if (!create || (found && found != create)) return nullptr;
      found = create;
    }
    return found;
  }

  VarPtr target(const ir::Expr* create) const {
    const auto it = targets_.find(create);
    return it == targets_.end() ? nullptr : it->second;
  }

 private:
  const Origin* origin(const Stmt& s, size_t k) const {
    const auto* values = scan_.returned(s);
    return values && k < values->size() ? &(*values)[k] : nullptr;
  }

  void walk(const Block& block) {
    walk_stmts(block, [&](const StmtPtr& s) {
      if (s->kind == StmtKind::kReturn) returns_.push_back(s.get());
      own_exprs(*s, [&](const ExprPtr& e) {
        walk_expr(e, [&](const ExprPtr& x) {
          if (x->kind == ExprKind::kOp && x->op == OpId::k_create_tensor && one_.can(*x))
            creates_.push_back(x);
        });
      });
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && s->targets[0])
        targets_[s->value.get()] = s->targets[0];
    });
  }

  OriginScan scan_;
  OneStorage one_;
  std::vector<const Stmt*> returns_;
  std::vector<ExprPtr> creates_;
  std::unordered_map<const ir::Expr*, VarPtr> targets_;
  bool mixed_ = false;  ///< written in bulk and by element, which a parameter must not be (01 L-150)
};

/// Copies the statements of a function into itself, with created tensors as parameters.
class InPlaceCloner : public CreateCloner {
 public:
  std::shared_ptr<ir::Storage> storage(const std::shared_ptr<ir::Storage>& s) override {
    const auto it = storages.find(s.get());
    return it == storages.end() ? s : it->second;
  }
};

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

  /// An output of a kernel that its callers make.
  struct Output {
    VarPtr param;
    TypePtr type;               ///< in terms of the kernel's extents
    size_t result = kNoResult;  ///< which returned value it is
    ExprPtr create;             ///< the tensor created in the kernel that it was
  };
  static constexpr size_t kNoResult = static_cast<size_t>(-1);

  static Output& add_output(Function& f, std::vector<Output>& outputs, const std::string& stem,
                            TypePtr type) {
    const int index = static_cast<int>(f.params.size());
    Output o;
    const std::string name = free_name(f, stem);
    o.param = f.add_var(name, whole_tensor(*type, name, index), VarKind::kParam, f.span);
    o.type = std::move(type);
    f.params.push_back(o.param);
    f.directions.push_back(ParamDirection::kOut);
    if (!f.effective_directions.empty()) f.effective_directions.push_back(ParamDirection::kOut);
    outputs.push_back(std::move(o));
    return outputs.back();
  }

  void change(Function& f, const std::vector<size_t>& fresh) {
    const ReturnedCreates returned(f);
    const std::vector<ExprPtr> creates = returned.all(fresh);
    std::vector<Output> outputs;
    std::unordered_set<const ir::Expr*> taken;
    for (const size_t k : fresh) {
      Output& o = add_output(f, outputs, "result_" + std::to_string(k), f.return_types[k]);
      o.result = k;
      f.return_params[k] = static_cast<int>(f.params.size()) - 1;
      const ir::Expr* only = returned.only(k);
      for (const auto& c : creates) {
        if (c.get() == only && taken.insert(only).second) o.create = c;
      }
    }
    // What is returned on one path only, or an address into it, is memory of the task that the result is
    // copied from.
    for (const auto& create : creates) {
      if (taken.count(create.get()) || !known_to_callers(f, *create)) continue;
      const VarPtr target = returned.target(create.get());
      add_output(f, outputs, (target ? target->name : "result") + "_memory", create->type).create = create;
    }
    write_directly(f, outputs, returned);
    f.body = returns(f, f.body, outputs);
    const auto found = accesses(f.body, f.params);
    for (const Output& o : outputs) {
      const auto at =
          static_cast<size_t>(std::find(f.params.begin(), f.params.end(), o.param) - f.params.begin());
      if (!o.create || !found.at(o.param.get()).read) continue;
      f.directions[at] = ParamDirection::kInOut;
      if (at < f.effective_directions.size()) f.effective_directions[at] = ParamDirection::kInOut;
    }
    added_[&f] = std::move(outputs);
  }

  bool known_to_callers(const Function& f, const ir::Expr& create) const {
    return std::all_of(calls_.at(&f).begin(), calls_.at(&f).end(), [&](const auto& call) {
      std::vector<ExprPtr> shape;
      return extents_known(f, *create.type, call.second->args, call.second->span, &shape);
    });
  }

  /// Tensors created in the kernel become the outputs themselves: nothing is copied, and what the kernel says
  /// of them is true wherever it is read (01 L-186).
  static void write_directly(Function& f, const std::vector<Output>& outputs,
                             const ReturnedCreates& returned) {
    InPlaceCloner cloner;
    for (const Output& o : outputs) {
      if (!o.create) continue;
      cloner.creates[o.create.get()] = o.param;
      const VarPtr target = returned.target(o.create.get());
      if (target && target->kind != VarKind::kParam && names_only(f.body, target, *o.create))
        cloner.vars[target.get()] = o.param;
      if (o.create->type->storage) cloner.storages[o.create->type->storage.get()] = o.param->type->storage;
    }
    if (cloner.creates.empty()) return;
    for (const auto& v : f.vars) {
      if (v->kind != VarKind::kParam && v->type) v->type = cloner.type(v->type);
    }
    f.body = without_self_moves(cloner.block(f.body));
  }

  Block returns(Function& f, const Block& block, const std::vector<Output>& outputs) {
    Block out;
    for (const auto& s : block) {
      s->body = returns(f, s->body, outputs);
      s->else_body = returns(f, s->else_body, outputs);
      if (s->kind == StmtKind::kReturn) {
        CodeBuilder b(f, module_.arch, ir::kPlaceKernel, s->span);
        for (const auto& o : outputs) {
          const size_t k = o.result;
          const VarPtr& p = o.param;
          if (k >= s->values.size()) continue;
          const ExprPtr& value = s->values[k];
          if (o.create) {
            s->values[k] = CodeBuilder::ref(p);
            continue;
          }
          std::vector<ExprPtr> zeros(p->type->shape.size(), b.index(0));
          b.eval(b.op(OpId::k_assemble, {CodeBuilder::ref(p), value, b.list(zeros)}));
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

  void create(Function& f, Stmt& s, const Function& callee, const std::vector<Output>& outputs, Block& out) {
    auto call = std::make_shared<ir::Expr>(*s.value);
    for (const auto& o : outputs) {
      const VarPtr target = o.result < s.targets.size() ? s.targets[o.result] : nullptr;
      std::vector<ExprPtr> shape;
      extents_known(callee, *o.type, call->args, s.span, &shape);
      ir::Type given = target ? *target->type : *o.type;
      for (size_t i = 0; !target && i < given.shape.size(); ++i) {
        const auto n = ir::const_int(shape[i]);
        given.shape[i] = n ? Dim(*n) : Dim(shape[i]);
      }
      const std::string name = free_name(f, target ? target->name : callee.name + "_" + o.param->name);
      VarPtr v = f.add_var(name, whole_tensor(given, name, -1), VarKind::kLocal, s.span);
      AttrMap attrs;
      if (o.create) attrs = o.create->attrs;
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
  std::unordered_map<const Function*, std::vector<Output>> added_;
};

}  // namespace

void give_results_parameters(ir::Module& module) { Results(module).run(); }

}  // namespace pypto::passes
