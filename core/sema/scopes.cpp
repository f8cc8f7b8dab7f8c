// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "core/sema/builder.h"

/// Regions and scopes: the `with` statements (01 sections 9.1, 9.2, 9.3, 9.5).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

const RegionInfo* FunctionBuilder::kernel_region() const {
  for (auto it = regions_.rbegin(); it != regions_.rend(); ++it) {
    if ((*it)->kernel) return *it;
  }
  return nullptr;
}

const RegionInfo* FunctionBuilder::enclosing(ir::ScopeKind kind) const {
  for (auto it = regions_.rbegin(); it != regions_.rend(); ++it) {
    if ((*it)->kind == kind) return *it;
  }
  return nullptr;
}

const char* type_word(ir::FunctionType t) {
  switch (t) {
    case ir::FunctionType::kInCore:
      return "InCore";
    case ir::FunctionType::kAIC:
      return "AIC";
    case ir::FunctionType::kAIV:
      return "AIV";
    case ir::FunctionType::kGroup:
      return "Group";
    case ir::FunctionType::kSpmd:
      return "Spmd";
    case ir::FunctionType::kOrchestration:
      return "Orchestration";
    case ir::FunctionType::kInline:
      return "Inline";
    case ir::FunctionType::kGraph:
      return "Graph";
    default:
      return "Opaque";
  }
}

namespace {

bool is_identifier(const std::string& s) {
  static const std::set<std::string> kKeywords = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  if (s.empty() || kKeywords.count(s)) return false;
  if (std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  return std::all_of(s.begin(), s.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c >= 0x80; });
}

}  // namespace

void FunctionBuilder::require_control_plane(const Span& span, const std::string& what) {
  if (base_place_ == ir::kPlaceKernel) {
    reject(ErrorClass::kParserSyntaxError, span,
           what + " is only valid in control-plane code; function '" + fn->name + "' is a kernel (" +
               type_word(fn->type) + ")");
  }
}

std::string FunctionBuilder::name_hint(const syn::Expr& e, const std::string& owner) {
  if (e.kind != ExprKind::kString) {
    reject(ErrorClass::kParserSyntaxError, e.span, owner + ": name_hint must be a string literal");
  }
  if (!e.text.empty() && !is_identifier(e.text)) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           owner + ": name_hint must be a valid non-keyword identifier, got '" + e.text + "'");
  }
  return e.text;
}

std::vector<VarPtr> FunctionBuilder::tensor_names(const syn::Expr& e, const std::string& keyword) {
  std::vector<VarPtr> out;
  if (e.kind == ExprKind::kNone) return out;
  if (e.kind != ExprKind::kList) {
    reject(ErrorClass::kParserSyntaxError, e.span, keyword + "= must be a list literal");
  }
  std::set<std::string> seen;
  for (const auto& i : e.items) {
    if (i->kind != ExprKind::kName) {
      reject(ErrorClass::kParserTypeError, i->span,
             keyword + "= entries must be bare tensor names, got " + source_text(*i));
    }
    const BindingPtr b = find_binding(i->text);
    if (!b) {
      reject(ErrorClass::kParserTypeError, i->span, keyword + "=: unknown name '" + i->text + "'",
             did_you_mean(i->text, visible_names()));
    }
    const Value v = read_name(i->text, i->span);
    if (!v.is_expr() || !v.expr->type->is_tensor()) {
      reject(ErrorClass::kParserTypeError, i->span, keyword + "=: '" + i->text + "' is not a tensor");
    }
    if (!seen.insert(i->text).second) {
      reject(ErrorClass::kParserTypeError, i->span, keyword + "=: '" + i->text + "' appears more than once");
    }
    out.push_back(b->var);
  }
  return out;
}

// ------------------------------------------------------------------ with

void FunctionBuilder::exec_with(const syn::Stmt& s) {
  if (s.with_items.size() != 1) {
    reject(ErrorClass::kParserSyntaxError, s.span,
           "Only single context manager supported in a 'with' statement", "nest two 'with' statements");
  }
  const auto& item = s.with_items[0];
  const auto& context = *item.context;
  std::string name;
  if (context.kind == ExprKind::kCall) {
    const HostValue h = resolve_host(*context.items[0]);
    if (h.kind == HostKind::kConstruct) name = h.text;
  }
  if (name == "pl.split_aiv") {
    reject(ErrorClass::kParserSyntaxError, s.span,
           "pl.split_aiv is not a context manager: write 'for lane in pl.split_aiv(2, mode=...):'");
  }
  if (name != "pl.at" && name != "pl.cluster" && name != "pl.spmd" && name != "pl.scope" &&
      name != "pl.manual_scope") {
    reject(ErrorClass::kUnsupportedFeatureError, s.span,
           "Unsupported context manager: " + source_text(context),
           "supported: pl.at, pl.cluster, pl.spmd, pl.scope, pl.manual_scope");
  }
  if (item.as) {
    if (name != "pl.at" && name != "pl.spmd") {
      reject(ErrorClass::kParserSyntaxError, item.as->span,
             "the `as` clause only applies to pl.at and pl.spmd, not " + name);
    }
    if (item.as->kind != ExprKind::kName) {
      reject(ErrorClass::kParserSyntaxError, item.as->span,
             "The `as` target must be a plain variable name, got " + source_text(*item.as));
    }
  }
  if (name == "pl.at") return exec_at(s, context, item.as.get());
  if (name == "pl.cluster") return exec_cluster(s, context);
  if (name == "pl.spmd") return exec_spmd(s, context, item.as.get(), false);
  exec_scope(s, context, name == "pl.manual_scope");
}

void FunctionBuilder::run_region(const ir::StmtPtr& stmt, RegionInfo info,
                                 const std::vector<syn::StmtPtr>& body,
                                 const std::function<void()>& prologue) {
  info.id = next_region_++;
  for (RegionInfo* r : regions_) ++r->regions_inside;
  region_log_[info.id] = info;
  ir::Block* outer = block_;
  block_ = &stmt->body;
  regions_.push_back(&info);
  if (prologue) prologue();
  exec_block(body);
  if (info.waiter) check_waiter(stmt->body);
  regions_.pop_back();
  block_ = outer;
  region_log_[info.id] = info;
}

void FunctionBuilder::bind_task(const std::shared_ptr<ir::ScopeInfo>& info, const syn::Expr& as) {
  const VarPtr var = variable(as.text, ir::scalar_type(DType::kTaskId), as.span, ir::VarKind::kTask);
  info->task = var;
  auto b = std::make_shared<Binding>();
  b->var = var;
  b->type = var->type;
  b->span = as.span;
  bind(as.text, b);
  note_manual_task(var);
  for (RegionInfo* r : regions_) {
    if (r->kind == ir::ScopeKind::kCluster) r->defined.insert(var);
  }
}

void FunctionBuilder::note_manual_task(const VarPtr& handle) {
  if (const RegionInfo* scope = enclosing(ir::ScopeKind::kManual)) {
    manual_tasks_[handle.get()] = {scope->id, scope->span};
  }
}

const ManualTask* FunctionBuilder::ended_scope(const VarPtr& handle) const {
  const auto it = manual_tasks_.find(handle.get());
  if (it == manual_tasks_.end()) return nullptr;
  const bool open = std::any_of(regions_.begin(), regions_.end(),
                                [&](const RegionInfo* r) { return r->id == it->second.region; });
  return open ? nullptr : &it->second;
}

void FunctionBuilder::exec_at(const syn::Stmt& s, const syn::Expr& call, const syn::Expr* as) {
  auto info = std::make_shared<ir::ScopeInfo>();
  const syn::Expr* level = nullptr;
  const syn::Expr* role = nullptr;
  if (call.items.size() > 3) {
    reject(ErrorClass::kParserSyntaxError, call.span,
           "pl.at() takes at most 2 positional arguments, got " + std::to_string(call.items.size() - 1));
  }
  if (call.items.size() > 1) level = call.items[1].get();
  if (call.items.size() > 2) role = call.items[2].get();
  std::set<std::string> seen;
  const syn::Expr* optimizations = nullptr;
  const syn::Keyword* early = nullptr;
  for (const auto& k : call.keywords) {
    if (k.name.empty()) {
      reject(ErrorClass::kParserSyntaxError, k.value->span, "'**' arguments are not supported in pl.at()");
    }
    if (!seen.insert(k.name).second || (k.name == "level" && level) || (k.name == "role" && role)) {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "pl.at() got multiple values for argument '" + k.name + "'");
    }
    if (k.name == "level")
      level = k.value.get();
    else if (k.name == "role")
      role = k.value.get();
    else if (k.name == "name_hint")
      info->name_hint = name_hint(*k.value, "pl.at()");
    else if (k.name == "optimizations")
      optimizations = k.value.get();
    else if (k.name == "deps") {
      if (k.value->kind != ExprKind::kNone) {
        info->has_deps = true;
        read_deps(*k.value, info->deps);
      }
    } else if (k.name == "no_dep_args")
      info->no_dep_args = tensor_names(*k.value, "no_dep_args");
    else if (k.name == "dumps")
      info->dumps = tensor_names(*k.value, "dumps");
    else if (k.name == "allow_early_resolve") {
      info->allow_early_resolve = bool_literal(k);
      early = &k;
    } else if (k.name == "windowize")
      info->windowize = bool_literal(k);
    else {
      const std::string guess = nearest(k.name, {"level", "role", "name_hint", "optimizations", "deps",
                                                 "no_dep_args", "dumps", "allow_early_resolve", "windowize"});
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "Unknown keyword argument '" + k.name + "' in pl.at()",
             guess.empty() ? "" : "did you mean '" + guess + "'?");
    }
  }
  (void)early;
  if (!level) {
    reject(ErrorClass::kParserSyntaxError, call.span, "pl.at() requires a level argument",
           "write pl.at(level=pl.Level.CORE_GROUP)");
  }
  const HostValue lv = resolve_host(*level);
  if (lv.kind != HostKind::kEnum || lv.text.rfind("Level.", 0) != 0) {
    reject(ErrorClass::kParserSyntaxError, level->span,
           "pl.at() level must be a pl.Level member, got " + source_text(*level));
  }
  info->level = static_cast<ir::Level>(lv.int_value);
  const bool core_group = info->level == ir::Level::kCoreGroup;
  if (role && role->kind != ExprKind::kNone) {
    const HostValue rv = resolve_host(*role);
    if (rv.kind != HostKind::kEnum || rv.text.rfind("Role.", 0) != 0) {
      reject(ErrorClass::kParserSyntaxError, role->span,
             "pl.at() role must be a pl.Role member, got " + source_text(*role));
    }
    if (core_group) {
      reject(ErrorClass::kParserSyntaxError, role->span,
             "role= is not supported with level=pl.Level.CORE_GROUP");
    }
    info->role = static_cast<ir::Role>(rv.int_value);
    if (info->role != ir::Role::kOrchestrator) {
      reject(ErrorClass::kParserSyntaxError, role->span,
             "pl.at() accepts role=pl.Role.Orchestrator only; a SubWorker body must be a function");
    }
  }
  if (optimizations) {
    if (!core_group && optimizations->kind != ExprKind::kNone) {
      reject(ErrorClass::kParserSyntaxError, optimizations->span,
             "optimizations= is only supported with level=pl.Level.CORE_GROUP");
    }
    read_optimizations(*optimizations, *info, "pl.at");
  }
  if (core_group) {
    if (base_place_ == ir::kPlaceKernel) {
      reject(ErrorClass::kParserSyntaxError, s.span,
             "Nested InCore: pl.at(level=CORE_GROUP) cannot appear in the kernel function '" + fn->name +
                 "' (" + type_word(fn->type) + ")",
             "drop the 'with': the function is a kernel already");
    }
    if (const RegionInfo* outer = kernel_region()) {
      // A block body that consists of exactly one region is that region (01 L-116).
      const bool wraps = outer->kind == ir::ScopeKind::kSpmd;
      if (!wraps) {
        reject(ErrorClass::kParserSyntaxError, s.span,
               "Nested InCore: this pl.at(level=CORE_GROUP) is inside the " + outer->name +
                   " region at line " + std::to_string(outer->span.line),
               "merge the two regions", {{"the outer region", outer->span}});
      }
      if (spmd_region_) {
        if (spmd_region_->has_split && info->has_split) {
          reject(ErrorClass::kParserSyntaxError, s.span,
                 "`optimizations=` is specified twice: on pl.spmd and on the pl.at inside it");
        }
        if (as || info->has_deps) {
          reject(ErrorClass::kParserSyntaxError, s.span,
                 "The pl.at region inside pl.spmd cannot have 'as' or deps= of its own",
                 "write them on pl.spmd");
        }
        if (info->has_split) {
          spmd_region_->has_split = true;
          spmd_region_->split = info->split;
        }
        if (info->slot_num) spmd_region_->slot_num = info->slot_num;
        if (spmd_region_->name_hint.empty()) spmd_region_->name_hint = info->name_hint;
        // Spliced into the block body: the launch is one kernel.
        exec_block(s.body);
        return;
      }
    }
    info->kind = ir::ScopeKind::kIncore;
  } else {
    if (kernel_region() || base_place_ == ir::kPlaceKernel) {
      reject(ErrorClass::kParserSyntaxError, s.span,
             "pl.at with level " + source_text(*level) + " cannot appear inside a kernel");
    }
    info->kind = ir::ScopeKind::kHierarchy;
  }
  auto stmt = make(ir::StmtKind::kScope, s.span);
  stmt->scope = info;
  RegionInfo region;
  region.kind = info->kind;
  region.span = s.span;
  region.name = "pl.at";
  region.hint = info->name_hint;
  region.kernel = core_group;
  region.has_split = info->has_split;
  region.early_resolve = info->allow_early_resolve;
  region.block = &stmt->body;
  run_region(stmt, region, s.body);
  emit(stmt);
  if (as) bind_task(info, *as);
}

void FunctionBuilder::exec_cluster(const syn::Stmt& s, const syn::Expr& call) {
  auto info = std::make_shared<ir::ScopeInfo>();
  info->kind = ir::ScopeKind::kCluster;
  if (call.items.size() > 1) {
    reject(ErrorClass::kParserSyntaxError, call.span, "pl.cluster() takes no positional arguments");
  }
  for (const auto& k : call.keywords) {
    if (k.name == "name_hint") {
      info->name_hint = name_hint(*k.value, "pl.cluster()");
    } else {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "Unknown keyword argument '" + k.name + "' in pl.cluster()");
    }
  }
  require_control_plane(s.span, "pl.cluster");
  if (const RegionInfo* r = kernel_region()) {
    reject(
        ErrorClass::kParserSyntaxError, s.span,
        "pl.cluster cannot appear inside the " + r->name + " region at line " + std::to_string(r->span.line));
  }
  if (enclosing(ir::ScopeKind::kCluster)) {
    reject(ErrorClass::kParserSyntaxError, s.span, "pl.cluster cannot be nested inside another pl.cluster");
  }
  auto stmt = make(ir::StmtKind::kScope, s.span);
  stmt->scope = info;
  RegionInfo region;
  region.kind = ir::ScopeKind::kCluster;
  region.span = s.span;
  region.name = "pl.cluster";
  region.hint = info->name_hint;
  run_region(stmt, region, s.body);
  emit(stmt);
}

void FunctionBuilder::exec_scope(const syn::Stmt& s, const syn::Expr& call, bool manual_form) {
  auto info = std::make_shared<ir::ScopeInfo>();
  info->kind = manual_form ? ir::ScopeKind::kManual : ir::ScopeKind::kAuto;
  const std::string owner = manual_form ? "pl.manual_scope" : "pl.scope";
  if (manual_form) {
    if (call.items.size() > 1 || !call.keywords.empty()) {
      reject(ErrorClass::kParserSyntaxError, call.span, "pl.manual_scope() does not accept arguments");
    }
  } else {
    if (call.items.size() > 1) {
      reject(ErrorClass::kParserSyntaxError, call.span, "pl.scope() takes only a 'mode=' keyword");
    }
    for (const auto& k : call.keywords) {
      if (k.name != "mode") {
        reject(ErrorClass::kParserSyntaxError, k.value->span,
               "pl.scope() takes only a 'mode=' keyword, got '" + k.name + "'");
      }
      const HostValue m = resolve_host(*k.value);
      if (m.kind != HostKind::kEnum || m.text.rfind("ScopeMode.", 0) != 0) {
        reject(ErrorClass::kParserSyntaxError, k.value->span,
               "mode= must be a pl.ScopeMode member, got " + source_text(*k.value));
      }
      if (static_cast<ir::ScopeMode>(m.int_value) == ir::ScopeMode::kManual)
        info->kind = ir::ScopeKind::kManual;
    }
  }
  require_control_plane(s.span, owner);
  if (const RegionInfo* r = kernel_region()) {
    reject(
        ErrorClass::kParserSyntaxError, s.span,
        owner + " cannot appear inside the " + r->name + " region at line " + std::to_string(r->span.line));
  }
  if (in_host() && !enclosing(ir::ScopeKind::kHierarchy)) {
    reject(ErrorClass::kParserSyntaxError, s.span,
           owner + " is only valid in device control-plane code; function '" + fn->name +
               "' is a HOST orchestrator");
  }
  if (const RegionInfo* manual = enclosing(ir::ScopeKind::kManual)) {
    reject(ErrorClass::kParserSyntaxError, s.span,
           std::string(info->kind == ir::ScopeKind::kAuto ? "An AUTO scope" : "A MANUAL scope") +
               " may not be nested inside a manual scope",
           {}, {{"the manual scope", manual->span}});
  }
  if (info->kind == ir::ScopeKind::kAuto && frame_->auto_scope) {
    reject(ErrorClass::kParserSyntaxError, s.span,
           "A hand-written AUTO scope requires @pl.function(auto_scope=False)" +
               std::string(jit_ ? " (for JIT functions @pl.jit(auto_scope=False))" : ""),
           "set auto_scope=False on '" + frame_->source->name + "'");
  }
  auto stmt = make(ir::StmtKind::kScope, s.span);
  stmt->scope = info;
  RegionInfo region;
  region.kind = info->kind;
  region.span = s.span;
  region.name = owner;
  run_region(stmt, region, s.body);
  emit(stmt);
}

}  // namespace pypto::sema
