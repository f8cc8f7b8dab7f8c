// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "core/base/poll.h"
#include "core/passes/kernel_results.h"
#include "core/passes/liveness.h"
#include "core/passes/passes.h"
#include "core/passes/region.h"
#include "core/passes/simplify.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::ExprKind;
using ir::Function;
using ir::FunctionPtr;
using ir::FunctionType;
using ir::ScopeInfo;
using ir::ScopeKind;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtPtr;

bool has_region(const Block& block) {
  bool found = false;
  walk_stmts(block, [&](const StmtPtr& s) {
    found = found || (s->kind == StmtKind::kScope && is_region(s->scope->kind));
  });
  return found;
}

bool has_device_scope(const Block& block) {
  bool found = false;
  walk_stmts(block, [&](const StmtPtr& s) {
    found = found || (s->kind == StmtKind::kScope && s->scope->kind == ScopeKind::kHierarchy &&
                      s->scope->level < ir::Level::kHost);
  });
  return found;
}

/// Calls of a block, not looking into nested regions that will be functions of their own.
void find_calls(const Block& block, std::vector<StmtPtr>& out) {
  walk_stmts(block, [&](const StmtPtr& s) {
    if ((s->kind == StmtKind::kAssign || s->kind == StmtKind::kEval) && s->value &&
        s->value->kind == ExprKind::kCall) {
      out.push_back(s);
    }
  });
}

bool reads_block_index(const Block& block) {
  bool found = false;
  walk_exprs(block, [&](const ir::ExprPtr& e) { found = found || is_op(e, ir::OpId::k_get_block_idx); });
  return found;
}

/// The only statement of a block apart from printed comments, or nullptr.
StmtPtr only_statement(const Block& block) {
  StmtPtr found;
  for (const auto& s : block) {
    if (s->kind == StmtKind::kComment) continue;
    if (found) return nullptr;
    found = s;
  }
  return found;
}

class OutlineFunction {
 public:
  OutlineFunction(ir::Module& module, Function& f, FunctionNames& names, std::vector<FunctionPtr>& made)
      : module_(module), f_(f), names_(names), made_(made), live_(f.body) {
    for (const auto& p : f.params) defined_.insert(p.get());
    for (const auto& s : f.symbols) defined_.insert(s.get());
  }

  void run(bool device_scopes) {
    device_scopes_ = device_scopes;
    definitions_ = definitions(f_.body, Regions::kLeftOut);
    f_.body = rewrite(f_.body);
  }

 private:
  void define(const Stmt& s) {
    own_defs(s, [&](const ir::VarPtr& v) { defined_.insert(v.get()); });
  }

  Block rewrite(const Block& block) {
    Block out;
    for (const auto& s : block) {
      poll();
      if (s->kind == StmtKind::kScope) {
        if (Block code; rewrite_scope(s, code)) {
          for (auto& x : code) out.push_back(std::move(x));
          walk_stmts(Block{s}, [&](const StmtPtr& x) { define(*x); });
          continue;
        }
      }
      if (s->kind == StmtKind::kFor || s->kind == StmtKind::kWhile) {
        // An iteration sees what earlier ones defined.
        walk_stmts(Block{s}, [&](const StmtPtr& x) { define(*x); });
      }
      own_defs(*s, [&](const ir::VarPtr& v) {
        if (s->kind == StmtKind::kScope) defined_.insert(v.get());
      });
      s->body = rewrite(s->body);
      s->else_body = rewrite(s->else_body);
      define(*s);
      out.push_back(s);
    }
    return out;
  }

  bool rewrite_scope(const StmtPtr& s, Block& code) {
    const ScopeInfo& info = *s->scope;
    if (device_scopes_) {
      if (info.kind != ScopeKind::kHierarchy || info.level >= ir::Level::kHost) return false;
      Region r = region(s, "chip");
      r.type = FunctionType::kOrchestration;
      r.level = info.level;
      r.role = ir::Role::kOrchestrator;
      r.kind = "pl.at";
      r.body = s->body;
      finish(r, code);
      return true;
    }
    switch (info.kind) {
      case ScopeKind::kIncore: {
        Region r = region(s, "incore");
        r.body = s->body;
        finish(r, code);
        return true;
      }
      case ScopeKind::kSpmd:
        spmd(s, code);
        return true;
      case ScopeKind::kCluster:
        cluster(s, code);
        return true;
      default:
        return false;
    }
  }

  Region region(const StmtPtr& s, const char* suffix) {
    Region r;
    r.stmt = s.get();
    r.facts = std::make_shared<ScopeInfo>(*s->scope);
    r.live_after = live_.after(*s);
    r.defined_before = &defined_;
    name(r, suffix);
    return r;
  }

  void name(Region& r, const char* suffix) {
    r.name = r.facts->name_hint.empty() ? f_.name + "_" + suffix + "_" + std::to_string(count_++)
                                        : r.facts->name_hint;
  }

  void finish(Region& r, Block& code) {
    r.name = names_.unique(r.name);
    r.definitions = &definitions_;
    OutlinedRegion result = outline_region(f_, r);
    made_.push_back(result.function);
    for (auto& x : result.code) code.push_back(std::move(x));
  }

  // with pl.spmd(n) / for i in pl.spmd(n)
  void spmd(const StmtPtr& s, Block& code) {
    const ScopeInfo& info = *s->scope;
    const StmtPtr only = only_statement(s->body);
    if (only && only->kind == StmtKind::kScope && only->scope->kind == ScopeKind::kCluster) {
      merge_facts(*only->scope, info);
      only->scope->core_num = info.core_num;
      only->scope->sync_start = info.sync_start;
      cluster(only, code);
      return;
    }
    std::vector<StmtPtr> calls;
    find_calls(s->body, calls);
    if (calls.size() == 1 && !info.loop_var && !has_region(s->body) && !reads_block_index(s->body)) {
      launch_call(s, calls[0], code);
      return;
    }
    Region r;
    r.stmt = s.get();
    r.facts = std::make_shared<ScopeInfo>(info);
    r.live_after = live_.after(*s);
    r.defined_before = &defined_;
    r.blocks = true;
    r.kind = "pl.spmd";
    r.body = s->body;
    if (only && only->kind == StmtKind::kScope && only->scope->kind == ScopeKind::kIncore) {
      // The one region inside is the kernel; both say things about it.
      merge_facts(*r.facts, *only->scope);
      r.body = only->body;
    }
    name(r, "incore");
    if (info.loop_var) {
      auto index = std::make_shared<Stmt>();
      index->kind = StmtKind::kAssign;
      index->span = s->span;
      index->targets = {info.loop_var};
      index->value = ir::op_expr(ir::OpId::k_get_block_idx, {}, {}, info.loop_var->type, s->span);
      r.body.insert(r.body.begin(), index);
    }
    finish(r, code);
  }

  static void merge_facts(ScopeInfo& into, const ScopeInfo& from) {
    if (into.name_hint.empty() || !from.name_hint.empty())
      into.name_hint = from.name_hint.empty() ? into.name_hint : from.name_hint;
    if (from.has_split) {
      into.has_split = true;
      into.split = from.split;
    }
    if (from.slot_num > 0) into.slot_num = from.slot_num;
    into.windowize = into.windowize || from.windowize;
    into.allow_early_resolve = into.allow_early_resolve || from.allow_early_resolve;
    if (from.has_deps) {
      into.has_deps = true;
      into.deps.insert(into.deps.end(), from.deps.begin(), from.deps.end());
    }
    into.no_dep_args.insert(into.no_dep_args.end(), from.no_dep_args.begin(), from.no_dep_args.end());
    into.dumps.insert(into.dumps.end(), from.dumps.begin(), from.dumps.end());
    if (!into.task) into.task = from.task;
    if (!into.predicate) into.predicate = from.predicate;
  }

  // One kernel call launched over the blocks: the kernel itself is the task.
  void launch_call(const StmtPtr& s, const StmtPtr& call, Block& code) {
    for (const auto& x : rewrite_call(s->body, call, *s->scope)) code.push_back(x);
  }

  Block rewrite_call(const Block& block, const StmtPtr& call, const ScopeInfo& facts) {
    Block out;
    for (const auto& x : block) {
      if (x != call) {
        x->body = rewrite_call(x->body, call, facts);
        x->else_body = rewrite_call(x->else_body, call, facts);
        out.push_back(x);
        continue;
      }
      const auto& old = *call->value->call;
      ScopeInfo merged = facts;
      std::vector<ir::VarPtr> results = call->targets;
      if (old.submit) {
        merged.has_deps = merged.has_deps || old.has_deps;
        merged.deps.insert(merged.deps.end(), old.deps.begin(), old.deps.end());
        if (!merged.predicate) merged.predicate = old.predicate;
        merged.allow_early_resolve = merged.allow_early_resolve || old.allow_early_resolve;
        if (!results.empty()) {
          if (!merged.task) merged.task = results.back();
          results.pop_back();
        }
      }
      out.push_back(
          make_task_call(f_, old.callee, call->value->args, results, merged, true, old.no_dep, call->span));
    }
    return out;
  }

  // with pl.cluster(): the members' calls become the body of a Group function.
  void cluster(const StmtPtr& s, Block& code) {
    auto facts = std::make_shared<ScopeInfo>(*s->scope);
    const StmtPtr only = only_statement(s->body);
    bool blocks = facts->core_num != nullptr;
    if (only && only->kind == StmtKind::kScope && only->scope->kind == ScopeKind::kSpmd) {
      const ScopeInfo inner = *only->scope;
      std::vector<StmtPtr> calls;
      find_calls(only->body, calls);
      if (!inner.loop_var && !has_region(only->body) && !reads_block_index(only->body) && !calls.empty()) {
        // The launch width belongs to the group.
        facts->core_num = inner.core_num;
        facts->sync_start = inner.sync_start;
        blocks = true;
        if (facts->name_hint.empty()) facts->name_hint = inner.name_hint;
        s->body = only->body;
      } else {
        // A region over blocks is one kernel already; a group of one adds nothing.
        if (only->scope->name_hint.empty()) only->scope->name_hint = facts->name_hint;
        spmd(only, code);
        return;
      }
    }
    if (only && only->kind == StmtKind::kScope && only->scope->kind == ScopeKind::kIncore) {
      merge_facts(*only->scope, *facts);
      if (blocks) {
        only->scope->core_num = facts->core_num;
        only->scope->sync_start = facts->sync_start;
      }
      Region r = region(only, "incore");
      r.blocks = blocks;
      r.body = only->body;
      finish(r, code);
      return;
    }
    s->body = rewrite(s->body);  // regions among the members
    Region r = region(s, "cluster");
    r.facts = facts;
    r.type = FunctionType::kGroup;
    r.level = ir::Level::kCoreGroup;
    r.kind = "pl.cluster";
    r.blocks = blocks;
    r.body = s->body;
    // Regions among the members left code around their calls: what they read later is known again from here.
    finish(r, code);
  }

  ir::Module& module_;
  Function& f_;
  FunctionNames& names_;
  std::vector<FunctionPtr>& made_;
  Liveness live_;
  VarSet defined_;
  Definitions definitions_;
  bool device_scopes_ = false;
  int count_ = 0;
};

/// A body with compute outside every region, and no region, is a kernel (01 L-44).
bool is_kernel_body(const Function& f) {
  if (has_region(f.body)) return false;
  bool compute = false;
  walk_exprs(f.body, [&](const ir::ExprPtr& e) {
    compute = compute || (e->kind == ExprKind::kOp && ir::op_row(e->op).places == ir::kPlaceKernel);
  });
  walk_stmts(f.body, [&](const StmtPtr& s) {
    compute = compute || (s->kind == StmtKind::kScope && s->scope->kind == ScopeKind::kSplitAiv);
  });
  return compute;
}

/// Drops the variables that no statement mentions any more and numbers the others again.
void drop_unused_vars(Function& f) {
  VarSet used;
  const auto mention = [&](const ir::ExprPtr& e) {
    walk_expr(e, [&](const ir::ExprPtr& x) {
      if (x->kind == ExprKind::kVar) used.insert(x->var.get());
    });
  };
  const auto mention_type = [&](const ir::TypePtr& t) {
    if (!t) return;
    for (const auto& d : t->shape) mention(d.expr);
    for (const auto& d : t->valid) mention(d.expr);
  };
  for (const auto& p : f.params) used.insert(p.get());
  for (const auto& s : f.symbols) used.insert(s.get());
  walk_stmts(f.body, [&](const StmtPtr& s) {
    own_defs(*s, [&](const ir::VarPtr& v) { used.insert(v.get()); });
    own_exprs(*s, mention);
    mention_type(s->annotation);
    if (s->scope) {
      for (const auto& v : s->scope->no_dep_args) used.insert(v.get());
      for (const auto& v : s->scope->dumps) used.insert(v.get());
    }
  });
  for (bool changed = true; changed;) {
    const size_t before = used.size();
    for (const auto& v : f.vars) {
      if (used.count(v.get())) mention_type(v->type);
    }
    changed = used.size() != before;
  }
  std::vector<ir::VarPtr> kept;
  for (const auto& v : f.vars) {
    if (!used.count(v.get())) continue;
    v->id = static_cast<int>(kept.size());
    kept.push_back(v);
  }
  f.vars = std::move(kept);
}

}  // namespace

void outline(ir::Module& module) {
  give_results_parameters(module);
  FunctionNames names(module);
  std::unordered_set<const Function*> called;
  bool has_orchestration = false;
  for (const auto& f : module.functions) {
    has_orchestration = has_orchestration || f->type == FunctionType::kOrchestration;
    walk_exprs(f->body, [&](const ir::ExprPtr& e) {
      if (e->kind == ExprKind::kCall && e->call) called.insert(e->call->callee.get());
    });
  }
  std::vector<FunctionPtr> result;
  const auto expand = [&](const FunctionPtr& f, bool device_scopes, std::vector<FunctionPtr>& into) {
    std::vector<FunctionPtr> made;
    OutlineFunction(module, *f, names, made).run(device_scopes);
    drop_unused_vars(*f);
    for (auto& m : made) into.push_back(std::move(m));
    into.push_back(f);
  };
  std::vector<FunctionPtr> stage;
  for (const auto& f : module.functions) {
    if (!f->is_sub_worker && f->is_host() && has_device_scope(f->body)) {
      expand(f, true, stage);
    } else {
      stage.push_back(f);
    }
  }
  for (const auto& f : stage) {
    if (f->opaque_kernel || (f->type == FunctionType::kOpaque && !f->is_host() && is_kernel_body(*f))) {
      f->type = FunctionType::kInCore;
      if (f->level == ir::Level::kNone) f->level = ir::Level::kChipDie;
      f->opaque_kernel = false;
    }
    if (f->is_sub_worker || f->is_kernel() || f->type == FunctionType::kGroup ||
        !f->external_source.empty()) {
      result.push_back(f);
      continue;
    }
    if (has_region(f->body)) {
      expand(f, false, result);
    } else {
      result.push_back(f);
    }
    // An entry that says nothing of its type builds tasks (01 L-44); beside an Orchestration function it is a
    // fragment, whose body its callers have taken over (04 PRG-2).
    if (f->type == FunctionType::kOpaque && !f->is_host() && !has_orchestration && !called.count(f.get())) {
      f->type = FunctionType::kOrchestration;
      if (f->level == ir::Level::kNone) f->level = ir::Level::kChip;
    }
  }
  module.functions = std::move(result);
  for (const auto& f : module.functions) {
    if (f->is_sub_worker) continue;
    name_symbols(*f);
    drop_unused_vars(*f);
  }
}

}  // namespace pypto::passes
