// SPDX-License-Identifier: Apache-2.0

#include "core/sema/builder.h"

/// Bodies that several blocks or both lanes run: pl.spmd and pl.split_aiv (01 sections 9.4, 9.6).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

/// Launch width of pl.spmd / pl.spmd_submit (01 L-117).
ExprPtr FunctionBuilder::core_count(const syn::Expr& e, const std::string& owner) {
  const Value v = eval(e);
  if (v.is_expr() && v.expr->kind == ir::ExprKind::kInt && v.expr->type->dtype != DType::kBool) {
    if (v.expr->int_value <= 0) {
      reject(ErrorClass::kParserSyntaxError, e.span,
             owner + " core_num must be a positive integer, got " + std::to_string(v.expr->int_value));
    }
    return v.expr;
  }
  const bool symbol_value = v.is_host() && v.host.kind == HostKind::kDynVar;
  const ExprPtr x = v.is_expr() || symbol_value ? to_expr(v, e.span) : nullptr;
  if (!x || !x->type->is_scalar() || !is_int(x->type->dtype)) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           owner + " core_num must be an integer expression (a positive integer), got " + source_text(e));
  }
  if (const RegionInfo* cluster = enclosing(ir::ScopeKind::kCluster)) {
    for (const auto& var : cluster->defined) {
      if (mentions(x, ir::var_ref(var))) {
        reject(ErrorClass::kValueError, e.span,
               "The launch width of " + owner + " depends on '" + var->name +
                   "', which is defined inside the "
                   "pl.cluster",
               "compute it before the cluster", {{"the cluster", cluster->span}});
      }
    }
  }
  return x;
}

void FunctionBuilder::exec_spmd(const syn::Stmt& s, const syn::Expr& call, const syn::Expr* as,
                                bool for_form) {
  auto info = std::make_shared<ir::ScopeInfo>();
  info->kind = ir::ScopeKind::kSpmd;
  const syn::Expr* count = nullptr;
  if (call.items.size() > 2) {
    reject(ErrorClass::kParserSyntaxError, call.span,
           "pl.spmd() takes at most one positional argument, got " + std::to_string(call.items.size() - 1));
  }
  if (call.items.size() == 2) count = call.items[1].get();
  const RegionInfo* cluster = enclosing(ir::ScopeKind::kCluster);
  const syn::Expr* deps = nullptr;
  const syn::Expr* predicate = nullptr;
  const syn::Expr* optimizations = nullptr;
  for (const auto& k : call.keywords) {
    if (k.name.empty()) {
      reject(ErrorClass::kParserSyntaxError, k.value->span, "pl.spmd() does not accept **kwargs");
    }
    if (for_form &&
        (k.name == "init_values" || k.name == "chunk" || k.name == "attrs" || k.name == "stage")) {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "for ... in pl.spmd() does not accept '" + k.name + "='", "blocks carry nothing between them");
    }
    if (k.name == "core_num") {
      if (count) {
        reject(ErrorClass::kParserSyntaxError, k.value->span,
               "pl.spmd() got multiple values for argument 'core_num'");
      }
      count = k.value.get();
    } else if (k.name == "sync_start")
      info->sync_start = bool_literal(k);
    else if (k.name == "name_hint")
      info->name_hint = name_hint(*k.value, "pl.spmd()");
    else if (k.name == "optimizations")
      optimizations = k.value.get();
    else if (k.name == "deps")
      deps = k.value.get();
    else if (k.name == "allow_early_resolve" || k.name == "predicate") {
      if (cluster) {
        reject(ErrorClass::kParserSyntaxError, k.value->span,
               "pl.spmd(..., " + k.name + "=) cannot be nested inside pl.cluster");
      }
      if (k.name == "predicate")
        predicate = k.value.get();
      else
        info->allow_early_resolve = bool_literal(k);
    } else {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "pl.spmd() got unexpected keyword argument '" + k.name + "'",
             did_you_mean(k.name, {"core_num", "sync_start", "name_hint", "optimizations", "deps",
                                   "allow_early_resolve", "predicate"}));
    }
  }
  if (!count) reject(ErrorClass::kParserSyntaxError, call.span, "pl.spmd() requires core_num");
  require_control_plane(s.span, "pl.spmd");
  if (const RegionInfo* r = kernel_region()) {
    reject(ErrorClass::kParserSyntaxError, s.span,
           "Nested InCore: pl.spmd cannot appear inside the " + r->name + " region at line " +
               std::to_string(r->span.line));
  }
  if (for_form && s.targets[0]->kind != ExprKind::kName) {
    reject(ErrorClass::kParserSyntaxError, s.targets[0]->span,
           "for ... in pl.spmd() needs a single loop variable");
  }
  if (as && cluster) {
    reject(ErrorClass::kParserSyntaxError, as->span,
           "pl.spmd(...) as " + as->text + " cannot capture a TaskId when nested inside pl.cluster");
  }
  if (deps && deps->kind != ExprKind::kNone) {
    if (!as) {
      reject(ErrorClass::kParserSyntaxError, deps->span,
             "pl.spmd() does not accept 'deps=' here: it needs the form 'with pl.spmd(...) as tid:'");
    }
    info->has_deps = true;
    read_deps(*deps, info->deps);
  }
  info->core_num = core_count(*count, "pl.spmd");
  if (predicate) info->predicate = read_predicate(*predicate, info->deps);
  if (optimizations) read_optimizations(*optimizations, *info, "pl.spmd");
  auto stmt = make(ir::StmtKind::kScope, s.span);
  stmt->scope = info;
  RegionInfo region;
  region.kind = ir::ScopeKind::kSpmd;
  region.span = s.span;
  region.name = "pl.spmd";
  region.hint = info->name_hint;
  region.kernel = true;
  const auto width = ir::const_int(info->core_num);
  region.blocks = !(width && *width == 1);
  region.has_split = info->has_split;
  region.core_num = info->core_num;
  // The with form must say what a block does (01 L-116).
  int index_reads = 0, kernel_calls = 0, regions = 0, others = 0;
  if (!for_form) {
    scan_spmd_body(s.body, &index_reads, &kernel_calls, &regions);
    for (const auto& st : s.body) {
      const bool doc = st->kind == StmtKind::kExpr && st->value && st->value->kind == ExprKind::kString;
      if (!doc && st->kind != StmtKind::kPass) ++others;
    }
    if (kernel_calls > 1) {
      reject(ErrorClass::kParserSyntaxError, s.span,
             "The pl.spmd body launches " + std::to_string(kernel_calls) +
                 " kernels (it may call exactly one; "
                 "'launches 2 kernels' is not supported)",
             "use one pl.spmd per kernel");
    }
    const bool one_region = regions == 1 && others == 1;
    if (index_reads == 0 && kernel_calls == 0 && !one_region) {
      reject(
          ErrorClass::kParserSyntaxError, s.span,
          "The pl.spmd body neither reads the per-block index (pl.get_block_idx()) nor calls a kernel: every "
          "block would do the same",
          "use 'for i in pl.spmd(n):'");
    }
    if (one_region && s.body.size() == 1 && !s.body[0]->with_items.empty() && optimizations &&
        info->has_split) {
      for (const auto& k : s.body[0]->with_items[0].context->keywords) {
        if (k.name == "optimizations") {
          reject(ErrorClass::kParserSyntaxError, k.value->span,
                 "`optimizations=` is specified twice: on pl.spmd and on the pl.at inside it; it belongs on "
                 "the InCore scope");
        }
      }
    }
  }
  const auto saved = spmd_region_;
  spmd_region_ = info;
  LoopInfo loop;
  loop.kind = LoopInfo::Kind::kSpmd;
  loop.span = s.span;
  loop.frame = frame_;
  loop.regions = regions_.size() + 1;
  BindingPtr before;
  std::string variable_text;
  if (for_form) {
    variable_text = s.targets[0]->text;
    before = find_binding(variable_text);
    info->loop_var = fn->add_var(variable_name(variable_text), ir::scalar_type(DType::kIndex),
                                 ir::VarKind::kLoop, s.targets[0]->span);
    loop.var = info->loop_var;
    loop.variable = variable_text;
    if (region.blocks || true) device_data_.insert(info->loop_var.get());
  }
  run_region(stmt, region, s.body, [&] {
    if (!for_form) return;
    auto b = std::make_shared<Binding>();
    b->var = info->loop_var;
    b->type = info->loop_var->type;
    b->span = s.targets[0]->span;
    b->loop_variable = true;
    b->lower = 0;
    bind(variable_text, b);
    loop.entry = flow().names;
    loops_.push_back(&loop);
  });
  if (for_form) {
    loops_.pop_back();
    if (before) {
      bind(variable_text, before);
    } else {
      auto gone = std::make_shared<Binding>(*find_binding(variable_text));
      gone->undefined = "it is the block index of the pl.spmd at line " + std::to_string(s.span.line) +
                        " and does not exist after it";
      bind(variable_text, gone);
    }
  }
  spmd_region_ = saved;
  emit(stmt);
  if (as) bind_task(info, *as);
}

void FunctionBuilder::scan_spmd_expr(const syn::Expr& e, int* index_reads, int* kernel_calls) {
  if (e.kind == ExprKind::kCall) {
    const auto& callee = *e.items[0];
    std::shared_ptr<FunctionSource> f;
    if (callee.kind == ExprKind::kAttribute && is_self(*callee.items[0])) {
      f = program_.find_method(callee.text);
    } else {
      const HostValue h = resolve_host(callee);
      if (h.kind == HostKind::kFunction) f = h.function;
      if (h.kind == HostKind::kConstruct && last_component(h.text) == "get_block_idx") ++*index_reads;
    }
    if (f) {
      const bool inlined = f->decl == DeclKind::kInlineHelper || f->decl == DeclKind::kJitInline ||
                           (f->decl == DeclKind::kProgramMethod && f->type == ir::FunctionType::kInline);
      if (!inlined) {
        ++*kernel_calls;
      } else {
        f->ensure_loaded();
        if (f->def && scanned_.insert(f.get()).second) {
          Frame inner;
          inner.source = f;
          inner.host = f->host.get();
          inner.parent = frame_;
          inner.is_inline = true;
          Frame* outer = frame_;
          frame_ = &inner;
          int regions = 0;
          scan_spmd_body(f->def->body, index_reads, kernel_calls, &regions);
          frame_ = outer;
          scanned_.erase(f.get());
        }
      }
    }
  }
  for (const auto& i : e.items) {
    if (i) scan_spmd_expr(*i, index_reads, kernel_calls);
  }
  for (const auto& k : e.keywords) {
    if (k.value) scan_spmd_expr(*k.value, index_reads, kernel_calls);
  }
}

void FunctionBuilder::scan_spmd_body(const std::vector<syn::StmtPtr>& body, int* index_reads,
                                     int* kernel_calls, int* regions) {
  for (const auto& s : body) {
    if (s->value) scan_spmd_expr(*s->value, index_reads, kernel_calls);
    if (s->kind == StmtKind::kWith) {
      for (const auto& w : s->with_items) {
        if (w.context && w.context->kind == ExprKind::kCall &&
            resolve_host(*w.context->items[0]).text == "pl.at") {
          ++*regions;
        }
      }
    }
    scan_spmd_body(s->body, index_reads, kernel_calls, regions);
    scan_spmd_body(s->orelse, index_reads, kernel_calls, regions);
  }
}

void FunctionBuilder::exec_split_aiv(const syn::Stmt& s, const syn::Expr& call) {
  auto info = std::make_shared<ir::ScopeInfo>();
  info->kind = ir::ScopeKind::kSplitAiv;
  if (call.items.size() != 2) {
    reject(ErrorClass::kParserSyntaxError, call.span,
           "pl.split_aiv takes exactly one positional argument (2), got " +
               std::to_string(call.items.size() - 1));
  }
  const auto n = try_constant_int(eval(*call.items[1]));
  if (!n || *n != 2) {
    reject(ErrorClass::kParserSyntaxError, call.items[1]->span,
           "pl.split_aiv requires n == 2, got " + source_text(*call.items[1]));
  }
  bool has_mode = false;
  for (const auto& k : call.keywords) {
    if (k.name == "mode") {
      const HostValue m = resolve_host(*k.value);
      if (m.kind != HostKind::kEnum || m.text.rfind("SplitMode.", 0) != 0) {
        reject(ErrorClass::kParserSyntaxError, k.value->span,
               "pl.split_aiv mode must be a pl.SplitMode member");
      }
      info->mode = static_cast<ir::SplitMode>(m.int_value);
      has_mode = true;
    } else if (k.name == "init_values" || k.name == "optimizations" || k.name == "chunk" ||
               k.name == "attrs" || k.name == "stage") {
      reject(ErrorClass::kParserSyntaxError, k.value->span, "pl.split_aiv does not accept '" + k.name + "='");
    } else {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "pl.split_aiv got unexpected keyword argument '" + k.name + "'");
    }
  }
  if (!has_mode) {
    reject(ErrorClass::kParserSyntaxError, call.span,
           "pl.split_aiv requires mode=", "write pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN)");
  }
  if (s.targets[0]->kind != ExprKind::kName) {
    reject(ErrorClass::kParserSyntaxError, s.targets[0]->span, "pl.split_aiv needs a single loop variable");
  }
  if (place() != ir::kPlaceKernel) {
    reject(
        ErrorClass::kParserSyntaxError, s.span,
        "pl.split_aiv is only valid inside a kernel; function '" + fn->name + "' is " + type_word(fn->type),
        "put it inside 'with pl.at(level=pl.Level.CORE_GROUP):'");
  }
  if (const RegionInfo* outer = enclosing(ir::ScopeKind::kSplitAiv)) {
    reject(ErrorClass::kParserSyntaxError, s.span, "A nested 'for ... in pl.split_aiv(...)' is not supported",
           {}, {{"the outer loop", outer->span}});
  }
  const RegionInfo* kernel = kernel_region();
  const ir::FunctionAttr* split_attr = fn->attr("split");
  if ((kernel && kernel->has_split) || (!kernel && split_attr && split_attr->int_value != 0) ||
      (spmd_region_ && spmd_region_->has_split)) {
    reject(ErrorClass::kParserSyntaxError, s.span,
           "pl.split_aiv and optimizations=[pl.split(...)] of the same region are mutually exclusive");
  }
  auto stmt = make(ir::StmtKind::kScope, s.span);
  stmt->scope = info;
  const std::string& name = s.targets[0]->text;
  const BindingPtr before = find_binding(name);
  info->loop_var = fn->add_var(variable_name(name), ir::scalar_type(DType::kIndex), ir::VarKind::kLoop,
                               s.targets[0]->span);
  device_data_.insert(info->loop_var.get());
  RegionInfo region;
  region.kind = ir::ScopeKind::kSplitAiv;
  region.span = s.span;
  region.name = "pl.split_aiv";
  region.mode = info->mode;
  LoopInfo loop;
  loop.kind = LoopInfo::Kind::kSplitAiv;
  loop.span = s.span;
  loop.frame = frame_;
  loop.regions = regions_.size() + 1;
  run_region(stmt, region, s.body, [&] {
    auto b = std::make_shared<Binding>();
    b->var = info->loop_var;
    b->type = info->loop_var->type;
    b->span = s.targets[0]->span;
    b->loop_variable = true;
    b->lower = 0;
    bind(name, b);
    loop.entry = flow().names;
    loops_.push_back(&loop);
  });
  loops_.pop_back();
  if (before) {
    bind(name, before);
  } else {
    auto gone = std::make_shared<Binding>(*find_binding(name));
    gone->undefined = "it is the lane of the pl.split_aiv at line " + std::to_string(s.span.line) +
                      " and does not exist after it";
    bind(name, gone);
  }
  emit(stmt);
}

}  // namespace pypto::sema
