// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Tiers of distributed operations and dispatch (03 sections 3.3, 6.1, 9.2).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

bool FunctionBuilder::in_host() const { return base_place_ == ir::kPlaceHost && !fn->is_sub_worker; }

namespace {

bool is_collective(ir::OpId id) {
  switch (id) {
    case ir::OpId::k_barrier:
    case ir::OpId::k_allreduce:
    case ir::OpId::k_broadcast:
    case ir::OpId::k_allgather:
    case ir::OpId::k_reduce_scatter:
    case ir::OpId::k_all_to_all:
    case ir::OpId::k_all_to_all_v:
      return true;
    default:
      return false;
  }
}

std::string tiers_text(uint8_t places) {
  std::string out;
  const auto add = [&](const char* t) { out += (out.empty() ? "" : ", ") + std::string(t); };
  if (places & ir::kPlaceHost) add("HOST orchestrator");
  if (places & ir::kPlaceOrch) add("device orchestration");
  if (places & ir::kPlaceKernel) add("kernel (InCore)");
  return out;
}

}  // namespace

/// Tier and form of a distributed operation, before its operands are looked at (03 X-2, C-1, C-10, C-55).
void FunctionBuilder::check_distributed(const ir::OpRow& row, const std::string& spelling,
                                        const syn::Expr& call) {
  const Span& span = call.span;
  const ir::OpPlace here = place();
  const bool inside_device = in_host() && here != ir::kPlaceHost;
  if (!(row.places & here)) {
    std::string tier = here == ir::kPlaceHost   ? "the HOST orchestrator '" + fn->name + "'"
                       : here == ir::kPlaceOrch ? "the device orchestration '" + fn->name + "'"
                                                : "a kernel (InCore)";
    if (inside_device) {
      tier = here == ir::kPlaceKernel ? "a device region (InCore) of the HOST function '" + fn->name + "'"
                                      : "a device scope (InCore code's orchestration) of '" + fn->name + "'";
    } else if (here == ir::kPlaceKernel) {
      tier += kernel_region() ? " region of '" + fn->name + "'" : " function '" + fn->name + "'";
    }
    std::string hint = "move it to " + tiers_text(row.places);
    if (row.id == ir::OpId::k_world_size || row.id == ir::OpId::k_rank) {
      hint = "thread the value as a scalar parameter";
    }
    reject(ErrorClass::kInvalidOperationError, span,
           "X-2: '" + spelling + "' is used in " + tier + "; it belongs to: " + tiers_text(row.places), hint);
  }
  if (row.id == ir::OpId::k_world_size) {
    if (call.items.size() > 1) {
      reject(ErrorClass::kParserSyntaxError, span, spelling + "() takes no positional arguments");
    }
    if (!call.keywords.empty()) {
      reject(ErrorClass::kParserSyntaxError, span, spelling + "() takes no keyword arguments");
    }
  }
  if (!is_collective(row.id)) return;
  if (here == ir::kPlaceHost) {
    if (expr_depth_ > 1) {
      reject(ErrorClass::kParserSyntaxError, span,
             "'" + spelling + "' on the host must be a direct assignment, a statement or a return value",
             "bind its result to a name first");
    }
    bool loop = false;
    for (const auto* l : loops_) loop = loop || l->kind != LoopInfo::Kind::kUnroll;
    const bool has_signal = [&] {
      if (call.items.size() > 2) return true;
      for (const auto& k : call.keywords) {
        if (k.name == "signal") return true;
      }
      return false;
    }();
    if (loop && row.id == ir::OpId::k_allreduce && !has_signal) {
      reject(ErrorClass::kInvalidOperationError, span,
             "'" + spelling + "' without an explicit signal is not supported inside a for/while loop",
             "allocate a signal window and pass it");
    }
    if (loop && row.id == ir::OpId::k_all_to_all_v) {
      reject(ErrorClass::kInvalidOperationError, span,
             "'" + spelling + "' is not supported inside a for/while loop");
    }
  } else {
    if (const RegionInfo* lanes = enclosing(ir::ScopeKind::kSplitAiv)) {
      reject(ErrorClass::kInvalidOperationError, span,
             "X-32: '" + spelling + "' inside the pl.split_aiv region at line " +
                 std::to_string(lanes->span.line) + ": 2 lanes would each post credits",
             "call it from a single-block kernel, outside the region");
    }
    const RegionInfo* blocks = enclosing(ir::ScopeKind::kSpmd);
    const auto n = blocks ? ir::const_int(blocks->core_num) : std::nullopt;
    if (n && *n > 1) {
      reject(ErrorClass::kInvalidOperationError, span,
             "X-32: '" + spelling + "' inside the pl.spmd region at line " +
                 std::to_string(blocks->span.line) + ": " + std::to_string(*n) +
                 " blocks would each post credits",
             "call it from a single-block kernel");
    }
    if (!facts.collective.known()) {
      facts.collective = span;
      facts.collective_name = spelling;
    }
  }
  note_collective(spelling, span);
}

void FunctionBuilder::warn_rank_condition(const std::string& operation, const Span& collective,
                                          const Span& condition) {
  program_.warn(collective, "X-33",
                "'" + operation + "' stands under a condition that depends on the rank (line " +
                    std::to_string(condition.line) + "); all ranks must take the same path",
                "call it on every rank");
}

void FunctionBuilder::note_collective(const std::string& spelling, const Span& span) {
  for (const auto& c : rank_conditions_) {
    if (c.rank) {
      warn_rank_condition(spelling, span, c.span);
      return;
    }
    if (!c.params.empty()) {
      FunctionFacts::RankCondition r;
      r.params = c.params;
      r.condition = c.span;
      r.collective = span;
      r.operation = spelling;
      facts.rank_conditions.push_back(std::move(r));
    }
  }
}

namespace {

/// A waiter region that became a kernel function, as a lowered program prints it.
bool is_lowered_waiter(const ir::Function& f) {
  return std::any_of(f.attrs.begin(), f.attrs.end(), [](const ir::FunctionAttr& a) {
    return a.key == "deferred_waiter" && a.int_value != 0;
  });
}

/// What may stand beside registrations; the elements of an array come into a waiter function one by one.
bool is_scalar_work(const ir::TypePtr& t) {
  return t && (t->is_scalar() || t->kind == ir::TypeKind::kCommCtx || t->kind == ir::TypeKind::kArray);
}

bool reads_data(const ExprPtr& e) {
  if (!e) return false;
  if (e->kind == ir::ExprKind::kOp && e->op == ir::OpId::k_read) return true;
  return std::any_of(e->args.begin(), e->args.end(), reads_data);
}

}  // namespace

/// Clause c of 03 O-27: nothing but scalar work beside the registrations, and no data read after one.
bool FunctionBuilder::check_waiter(const ir::Block& body, bool registered) {
  for (const auto& s : body) {
    const auto& v = s->value;
    if (v && v->kind == ir::ExprKind::kOp && v->op == ir::OpId::k_defer_wait) {
      registered = true;
      continue;
    }
    const bool in_body = check_waiter(s->body, registered);
    const bool in_else = check_waiter(s->else_body, registered);
    const bool late = registered && reads_data(v);
    registered = registered || in_body || in_else;
    if (!v || (is_scalar_work(v->type) && s->kind != ir::StmtKind::kEval && !late)) continue;
    reject(
        ErrorClass::kInvalidOperationError, v->span.known() ? v->span : s->span,
        "X-63: defer_wait, clause c: after the first registration only further defer_wait calls are allowed",
        "move it to a task of its own that depends on the waiter: 'deps=[tid]'");
  }
  return registered;
}

/// A host intermediate is made once per call (03 D-22).
void FunctionBuilder::check_intermediate(const std::string& spelling, const Span& span) {
  for (const LoopInfo* l : loops_) {
    if (l->kind == LoopInfo::Kind::kUnroll) continue;
    reject(ErrorClass::kInvalidOperationError, span,
           "'" + spelling + "' inside a loop of the HOST orchestrator '" + fn->name +
               "': a host intermediate is made once per call",
           "hoist it above the loop; give it a leading dimension and slice it for one per iteration",
           {{"the loop", l->span}});
  }
}

/// Clauses of 03 O-27 that the front end can see.
void FunctionBuilder::check_defer_wait(const std::vector<ExprPtr>& args, const Span& span) {
  const auto broken = [&](const char* clause, const std::string& text) {
    reject(ErrorClass::kInvalidOperationError, span,
           "X-63: defer_wait, clause " + std::string(clause) + ": " + text,
           "write it in a waiter region of its own: 'with pl.at(level=pl.Level.CORE_GROUP) as tid:'");
  };
  const RegionInfo* region = regions_.empty() ? nullptr : regions_.back();
  const bool lowered = base_place_ == ir::kPlaceKernel && !region && is_lowered_waiter(*fn);
  if (!lowered && (base_place_ == ir::kPlaceKernel || !region || region->kind != ir::ScopeKind::kIncore)) {
    broken("a", "it appears only in a dedicated waiter region of a device orchestration");
  }
  if (!lowered && region->early_resolve)
    broken("b", "allow_early_resolve=True is not allowed on a waiter region");
  const ExprPtr& signal = args[0];
  if (!signal || signal->kind != ir::ExprKind::kVar || signal->var->kind != ir::VarKind::kParam) {
    broken("d", "signal is directly an INT32 window parameter (no slice, alias, reshape)");
  }
  bool& known = lowered ? waits_ : regions_.back()->waiter;
  if (!known) {
    for (const auto& s : lowered ? fn->body : *region->block) {
      const auto& v = s->value;
      const bool flow =
          s->kind == ir::StmtKind::kFor || s->kind == ir::StmtKind::kIf || s->kind == ir::StmtKind::kComment;
      if (!(v && is_scalar_work(v->type)) && !flow)
        broken("c", "before the first registration only scalar work is allowed");
    }
    known = true;
  }
}

/// Clause b of 03 O-27 for the task of a lowered waiter.
void FunctionBuilder::check_waiter_task(const ir::Expr& call, const Span& span) {
  if (!call.call || !call.call->callee || !is_lowered_waiter(*call.call->callee)) return;
  const ir::CallInfo& info = *call.call;
  const char* broken = info.predicate             ? "a predicate is not allowed on a waiter"
                       : info.allow_early_resolve ? "allow_early_resolve=True is not allowed on a waiter"
                       : info.spmd                ? "a waiter is single-block"
                                                  : nullptr;
  if (!broken) return;
  reject(ErrorClass::kInvalidOperationError, span, std::string("X-63: defer_wait, clause b: ") + broken,
         "submit '" + info.callee->name + "' as one plain task");
}

ExprPtr FunctionBuilder::read_device(const syn::Expr& e, bool, const std::string& callee) {
  const Value v = eval(e);
  const bool dyn = v.is_host() && v.host.kind == HostKind::kDynVar;
  const ExprPtr x = v.is_expr() || dyn ? to_expr(v, e.span) : nullptr;
  if (!x || !x->type->is_scalar() || !is_int(x->type->dtype)) {
    reject(ErrorClass::kParserTypeError, e.span,
           "X-5: 'device' of the dispatch of '" + callee + "' must be an integer, got " + source_text(e),
           "use the rank loop's variable");
  }
  if (const auto c = ir::const_int(x); c && *c < 0) {
    reject(
        ErrorClass::kParserTypeError, e.span,
        "X-5: 'device' of the dispatch of '" + callee + "' must be non-negative, got " + std::to_string(*c));
  }
  return x;
}

/// The loop whose induction variable an expression is, through assigned temporaries.
const LoopInfo* FunctionBuilder::loop_of(const ExprPtr& e) const {
  const ir::Expr* x = e.get();
  while (x && x->kind == ir::ExprKind::kOp && x->op == ir::OpId::k_scalar_cast) x = x->args[0].get();
  if (!x || x->kind != ir::ExprKind::kVar) return nullptr;
  const auto it = loop_alias_.find(x->var.get());
  const ir::Var* v = it == loop_alias_.end() ? x->var.get() : it->second;
  for (const auto* l : loops_) {
    if (l->var.get() == v) return l;
  }
  return nullptr;
}

/// Temporaries, parameters of inline helpers and parts of tuples stay the rank variable or the number of
/// ranks that they were assigned (03 D-31).
void FunctionBuilder::note_host_scalar(const ir::Var& var, const ExprPtr& value) {
  if (!in_host() || !value->type || !value->type->is_scalar()) return;
  const LoopInfo* loop = loop_of(value);
  if (loop) {
    loop_alias_[&var] = loop->var.get();
  } else {
    loop_alias_.erase(&var);
  }
  if (is_world_size(value)) {
    world_vars_.insert(&var);
  } else {
    world_vars_.erase(&var);
  }
}

void FunctionBuilder::check_dispatch(const ir::Function& callee, const std::vector<ExprPtr>& args,
                                     const ExprPtr& device, const Span& span) {
  std::string windows;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i] || !args[i]->type->is_window()) continue;
    windows += (windows.empty() ? "'" : ", '") + callee.params[i]->name + "'";
    consume_window(args[i]);
    if (args[i]->type->storage && leaves(args[i]->type->storage).size() > 1) {
      reject(ErrorClass::kParserTypeError, span,
             "X-17: Cannot determine the communication context of the window passed as '" +
                 callee.params[i]->name + "': it may be a view of several buffers",
             "keep one buffer per name");
    }
  }
  if (windows.empty()) return;
  if (!device) {
    reject(ErrorClass::kParserTypeError, span,
           "X-7: the dispatch of '" + callee.name + "' receives windows (" + windows + ") but has no device=",
           "add device=r with the variable of the rank loop");
  }
  if (ir::const_int(device)) return;
  const LoopInfo* loop = loop_of(device);
  const std::string forms =
      "accepted: a non-negative constant, or the variable of pl.range(pld.world_size()), "
      "pl.range(n) or pl.range(a, n) with constants";
  if (!loop) {
    reject(ErrorClass::kParserTypeError, device->span.known() ? device->span : span,
           "X-5: unsupported device= expression '" + ir::dim_text(ir::Dim(device)) +
               "' of the dispatch of '" + callee.name + "'; " + forms,
           "use the rank loop's variable");
  }
  const auto step = ir::const_int(loop->step);
  if (!step || *step != 1) {
    reject(ErrorClass::kParserTypeError, span,
           "X-5: device= of the dispatch of '" + callee.name + "': non-unit-step loop is not supported; " +
               forms,
           {}, {{"the loop", loop->span}});
  }
  const auto start = ir::const_int(loop->start);
  const bool constant = start && ir::const_int(loop->stop);
  const bool world = is_world_size(loop->stop) && start && *start == 0;
  if (start && *start < 0) {
    reject(ErrorClass::kParserTypeError, span,
           "X-5: device= of the dispatch of '" + callee.name + "' starts at a negative value; " + forms, {},
           {{"the loop", loop->span}});
  }
  if (!constant && !world && is_world_size(loop->stop)) {
    reject(ErrorClass::kParserTypeError, span,
           "X-5: device= of the dispatch of '" + callee.name + "' runs from '" +
               ir::dim_text(ir::Dim(loop->start)) + "' to pld.world_size(), which is no constant; " + forms,
           "start the loop at 0, or end it at a constant", {{"the loop", loop->span}});
  }
  if (!constant && !world) {
    reject(ErrorClass::kParserTypeError, span,
           "X-5: device= of the dispatch of '" + callee.name + "' runs over '" +
               ir::dim_text(ir::Dim(loop->stop)) +
               "', whose bound is neither constant nor pld.world_size(); " + forms,
           "use pl.range(pld.world_size())", {{"the loop", loop->span}});
  }
}

bool FunctionBuilder::is_world_size(const ExprPtr& e) const {
  if (!e) return false;
  if (e->kind == ir::ExprKind::kVar) return world_vars_.count(e->var.get()) != 0;
  if (e->kind != ir::ExprKind::kOp) return false;
  if (e->op == ir::OpId::k_world_size) return true;
  if (e->op == ir::OpId::k_scalar_cast) return is_world_size(e->args[0]);
  return false;
}

}  // namespace pypto::sema
