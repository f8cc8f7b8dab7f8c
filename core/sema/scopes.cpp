// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "core/sema/builder.h"

/// Regions and scopes (01 section 9).
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

namespace {

const char* type_word(ir::FunctionType t) {
    switch (t) {
        case ir::FunctionType::kInCore: return "InCore";
        case ir::FunctionType::kAIC: return "AIC";
        case ir::FunctionType::kAIV: return "AIV";
        case ir::FunctionType::kGroup: return "Group";
        case ir::FunctionType::kSpmd: return "Spmd";
        case ir::FunctionType::kOrchestration: return "Orchestration";
        case ir::FunctionType::kInline: return "Inline";
        case ir::FunctionType::kGraph: return "Graph";
        default: return "Opaque";
    }
}

bool is_identifier(const std::string& s) {
    static const std::set<std::string> kKeywords = {
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
        "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
        "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield"};
    if (s.empty() || kKeywords.count(s)) return false;
    if (std::isdigit(static_cast<unsigned char>(s[0]))) return false;
    return std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c >= 0x80; });
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
            reject(ErrorClass::kParserTypeError, i->span, keyword + "= entries must be bare tensor names, got " +
                                                              source_text(*i));
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

/// `optimizations=[pl.split(MODE), pl.cross_core_slot(slot_num=N)]` (01 L-114).
void FunctionBuilder::read_optimizations(const syn::Expr& e, ir::ScopeInfo& info, const std::string& owner) {
    if (e.kind == ExprKind::kNone) return;
    if (e.kind != ExprKind::kList) {
        reject(ErrorClass::kParserSyntaxError, e.span, owner + "(optimizations=...) must be a list literal");
    }
    bool split = false;
    bool slot = false;
    bool slot_from_split = false;
    const auto count = [&](const syn::Expr& n) {
        const auto v = n.kind == ExprKind::kInt || is_static(n) || n.kind == ExprKind::kUnary
                           ? try_constant_int(eval(n))
                           : std::nullopt;
        if (!v) reject(ErrorClass::kParserSyntaxError, n.span, "slot_num must be an integer literal, got " + source_text(n));
        if (*v <= 0) reject(ErrorClass::kParserSyntaxError, n.span, "slot_num must be positive, got " + std::to_string(*v));
        return static_cast<int>(*v);
    };
    for (const auto& entry : e.items) {
        HostValue h;
        if (entry->kind == ExprKind::kCall) h = resolve_host(*entry->items[0]);
        const std::string name = h.kind == HostKind::kConstruct ? last_component(h.text) : "";
        if (name == "split") {
            if (split) {
                reject(ErrorClass::kParserSyntaxError, entry->span,
                       "Duplicate 'pl.split(...)' in " + owner + "(optimizations=[...])");
            }
            split = true;
            const syn::Expr* mode = entry->items.size() == 2 ? entry->items[1].get() : nullptr;
            const syn::Expr* slots = nullptr;
            for (const auto& k : entry->keywords) {
                if (k.name == "slot_num") slots = k.value.get();
                else if (k.name == "mode" && entry->items.size() == 1) mode = k.value.get();
                else {
                    reject(ErrorClass::kParserSyntaxError, k.value->span,
                           "Unknown keyword argument '" + k.name + "' in pl.split()");
                }
            }
            if (!mode || entry->items.size() > 2) {
                reject(ErrorClass::kParserSyntaxError, entry->span, "pl.split takes exactly 1 positional argument");
            }
            const Value m = eval(*mode);
            if (!m.is_host() || m.host.kind != HostKind::kEnum || m.host.text.rfind("SplitMode.", 0) != 0) {
                reject(ErrorClass::kParserSyntaxError, mode->span, "pl.split mode must be a pl.SplitMode member, got " +
                                                                       source_text(*mode));
            }
            info.split = static_cast<ir::SplitMode>(m.host.int_value);
            info.has_split = info.split != ir::SplitMode::kNone;
            if (slots && slots->kind != ExprKind::kNone) {
                if (slot) {
                    reject(ErrorClass::kParserSyntaxError, slots->span,
                           owner + "(optimizations=[...]) sets the cross-core slot count twice");
                }
                slot_from_split = true;
                info.slot_num = count(*slots);
                Diagnostic d;
                d.severity = Severity::kWarning;
                d.id = "DeprecationWarning";
                d.message = "pl.split(slot_num=...) is deprecated";
                d.hint = "use pl.cross_core_slot(slot_num=N)";
                d.span = slots->span;
                program_.warn(std::move(d));
            }
            continue;
        }
        if (name == "cross_core_slot") {
            if (slot) {
                reject(ErrorClass::kParserSyntaxError, entry->span,
                       "Duplicate 'pl.cross_core_slot(...)' in " + owner + "(optimizations=[...])");
            }
            slot = true;
            if (entry->items.size() > 1) {
                reject(ErrorClass::kParserSyntaxError, entry->span, "pl.cross_core_slot takes no positional arguments");
            }
            const syn::Expr* n = nullptr;
            for (const auto& k : entry->keywords) {
                if (k.name == "slot_num") n = k.value.get();
                else {
                    reject(ErrorClass::kParserSyntaxError, k.value->span,
                           "Unknown keyword argument '" + k.name + "' in pl.cross_core_slot()");
                }
            }
            if (!n) {
                reject(ErrorClass::kParserSyntaxError, entry->span,
                       "pl.cross_core_slot requires the slot_num= keyword argument");
            }
            if (slot_from_split) {
                reject(ErrorClass::kParserSyntaxError, entry->span,
                       owner + "(optimizations=[...]) sets the cross-core slot count twice");
            }
            info.slot_num = count(*n);
            continue;
        }
        reject(ErrorClass::kParserSyntaxError, entry->span,
               "Unsupported entry in " + owner + "(optimizations=[...]): " + source_text(*entry),
               "entries are pl.split(mode) and pl.cross_core_slot(slot_num=N)");
    }
}

// ------------------------------------------------------------------ with

void FunctionBuilder::exec_with(const syn::Stmt& s) {
    if (s.with_items.size() != 1) {
        reject(ErrorClass::kParserSyntaxError, s.span, "Only single context manager supported in a 'with' statement",
               "nest two 'with' statements");
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
    if (name != "pl.at" && name != "pl.cluster" && name != "pl.spmd" && name != "pl.scope" && name != "pl.manual_scope") {
        reject(ErrorClass::kUnsupportedFeatureError, s.span, "Unsupported context manager: " + source_text(context),
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

void FunctionBuilder::run_region(const ir::StmtPtr& stmt, RegionInfo info, const std::vector<syn::StmtPtr>& body,
                                 const std::function<void()>& prologue) {
    info.id = next_region_++;
    for (RegionInfo* r : regions_) ++r->regions_inside;
    region_log_[info.id] = info;
    ir::Block* outer = block_;
    block_ = &stmt->body;
    regions_.push_back(&info);
    if (prologue) prologue();
    exec_block(body);
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
    for (RegionInfo* r : regions_) {
        if (r->kind == ir::ScopeKind::kCluster) r->defined.insert(var);
    }
}

void FunctionBuilder::exec_at(const syn::Stmt& s, const syn::Expr& call, const syn::Expr* as) {
    auto info = std::make_shared<ir::ScopeInfo>();
    const syn::Expr* level = nullptr;
    const syn::Expr* role = nullptr;
    if (call.items.size() > 3) {
        reject(ErrorClass::kParserSyntaxError, call.span, "pl.at() takes at most 2 positional arguments, got " +
                                                              std::to_string(call.items.size() - 1));
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
        if (k.name == "level") level = k.value.get();
        else if (k.name == "role") role = k.value.get();
        else if (k.name == "name_hint") info->name_hint = name_hint(*k.value, "pl.at()");
        else if (k.name == "optimizations") optimizations = k.value.get();
        else if (k.name == "deps") {
            if (k.value->kind != ExprKind::kNone) {
                info->has_deps = true;
                read_deps(*k.value, info->deps);
            }
        } else if (k.name == "no_dep_args") info->no_dep_args = tensor_names(*k.value, "no_dep_args");
        else if (k.name == "dumps") info->dumps = tensor_names(*k.value, "dumps");
        else if (k.name == "allow_early_resolve") {
            info->allow_early_resolve = bool_literal(k);
            early = &k;
        } else if (k.name == "windowize") info->windowize = bool_literal(k);
        else {
            const std::string guess = nearest(k.name, {"level", "role", "name_hint", "optimizations", "deps",
                                                       "no_dep_args", "dumps", "allow_early_resolve", "windowize"});
            reject(ErrorClass::kParserSyntaxError, k.value->span, "Unknown keyword argument '" + k.name + "' in pl.at()",
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
            reject(ErrorClass::kParserSyntaxError, role->span, "pl.at() role must be a pl.Role member, got " +
                                                                   source_text(*role));
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
                   "Nested InCore: pl.at(level=CORE_GROUP) cannot appear in the kernel function '" + fn->name + "' (" +
                       type_word(fn->type) + ")", "drop the 'with': the function is a kernel already");
        }
        if (const RegionInfo* outer = kernel_region()) {
            // A block body that consists of exactly one region is that region (01 L-116).
            const bool wraps = outer->kind == ir::ScopeKind::kSpmd;
            if (!wraps) {
                reject(ErrorClass::kParserSyntaxError, s.span,
                       "Nested InCore: this pl.at(level=CORE_GROUP) is inside the " + outer->name + " region at line " +
                           std::to_string(outer->span.line), "merge the two regions",
                       {{"the outer region", outer->span}});
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
            reject(ErrorClass::kParserSyntaxError, s.span, "pl.at with level " + source_text(*level) +
                                                               " cannot appear inside a kernel");
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
        reject(ErrorClass::kParserSyntaxError, s.span,
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
                reject(ErrorClass::kParserSyntaxError, k.value->span, "pl.scope() takes only a 'mode=' keyword, got '" +
                                                                          k.name + "'");
            }
            const HostValue m = resolve_host(*k.value);
            if (m.kind != HostKind::kEnum || m.text.rfind("ScopeMode.", 0) != 0) {
                reject(ErrorClass::kParserSyntaxError, k.value->span, "mode= must be a pl.ScopeMode member, got " +
                                                                          source_text(*k.value));
            }
            if (static_cast<ir::ScopeMode>(m.int_value) == ir::ScopeMode::kManual) info->kind = ir::ScopeKind::kManual;
        }
    }
    require_control_plane(s.span, owner);
    if (const RegionInfo* r = kernel_region()) {
        reject(ErrorClass::kParserSyntaxError, s.span,
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
                       "The launch width of " + owner + " depends on '" + var->name + "', which is defined inside the "
                       "pl.cluster", "compute it before the cluster", {{"the cluster", cluster->span}});
            }
        }
    }
    return x;
}

void FunctionBuilder::exec_spmd(const syn::Stmt& s, const syn::Expr& call, const syn::Expr* as, bool for_form) {
    auto info = std::make_shared<ir::ScopeInfo>();
    info->kind = ir::ScopeKind::kSpmd;
    const syn::Expr* count = nullptr;
    if (call.items.size() > 2) {
        reject(ErrorClass::kParserSyntaxError, call.span, "pl.spmd() takes at most one positional argument, got " +
                                                              std::to_string(call.items.size() - 1));
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
        if (for_form && (k.name == "init_values" || k.name == "chunk" || k.name == "attrs" || k.name == "stage")) {
            reject(ErrorClass::kParserSyntaxError, k.value->span,
                   "for ... in pl.spmd() does not accept '" + k.name + "='", "blocks carry nothing between them");
        }
        if (k.name == "core_num") {
            if (count) {
                reject(ErrorClass::kParserSyntaxError, k.value->span,
                       "pl.spmd() got multiple values for argument 'core_num'");
            }
            count = k.value.get();
        } else if (k.name == "sync_start") info->sync_start = bool_literal(k);
        else if (k.name == "name_hint") info->name_hint = name_hint(*k.value, "pl.spmd()");
        else if (k.name == "optimizations") optimizations = k.value.get();
        else if (k.name == "deps") deps = k.value.get();
        else if (k.name == "allow_early_resolve" || k.name == "predicate") {
            if (cluster) {
                reject(ErrorClass::kParserSyntaxError, k.value->span,
                       "pl.spmd(..., " + k.name + "=) cannot be nested inside pl.cluster");
            }
            if (k.name == "predicate") predicate = k.value.get();
            else info->allow_early_resolve = bool_literal(k);
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
        reject(ErrorClass::kParserSyntaxError, s.targets[0]->span, "for ... in pl.spmd() needs a single loop variable");
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
                   "The pl.spmd body launches " + std::to_string(kernel_calls) + " kernels (it may call exactly one; "
                   "'launches 2 kernels' is not supported)", "use one pl.spmd per kernel");
        }
        const bool one_region = regions == 1 && others == 1;
        if (index_reads == 0 && kernel_calls == 0 && !one_region) {
            reject(ErrorClass::kParserSyntaxError, s.span,
                   "The pl.spmd body neither reads the per-block index (pl.get_block_idx()) nor calls a kernel: every "
                   "block would do the same", "use 'for i in pl.spmd(n):'");
        }
        if (one_region && s.body.size() == 1 && !s.body[0]->with_items.empty() && optimizations && info->has_split) {
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
        info->loop_var = fn->add_var(variable_name(variable_text), ir::scalar_type(DType::kIndex), ir::VarKind::kLoop,
                                     s.targets[0]->span);
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

void FunctionBuilder::scan_spmd_body(const std::vector<syn::StmtPtr>& body, int* index_reads, int* kernel_calls,
                                     int* regions) {
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
               "pl.split_aiv takes exactly one positional argument (2), got " + std::to_string(call.items.size() - 1));
    }
    const auto n = try_constant_int(eval(*call.items[1]));
    if (!n || *n != 2) {
        reject(ErrorClass::kParserSyntaxError, call.items[1]->span, "pl.split_aiv requires n == 2, got " +
                                                                        source_text(*call.items[1]));
    }
    bool has_mode = false;
    for (const auto& k : call.keywords) {
        if (k.name == "mode") {
            const HostValue m = resolve_host(*k.value);
            if (m.kind != HostKind::kEnum || m.text.rfind("SplitMode.", 0) != 0) {
                reject(ErrorClass::kParserSyntaxError, k.value->span, "pl.split_aiv mode must be a pl.SplitMode member");
            }
            info->mode = static_cast<ir::SplitMode>(m.int_value);
            has_mode = true;
        } else if (k.name == "init_values" || k.name == "optimizations" || k.name == "chunk" || k.name == "attrs" ||
                   k.name == "stage") {
            reject(ErrorClass::kParserSyntaxError, k.value->span, "pl.split_aiv does not accept '" + k.name + "='");
        } else {
            reject(ErrorClass::kParserSyntaxError, k.value->span,
                   "pl.split_aiv got unexpected keyword argument '" + k.name + "'");
        }
    }
    if (!has_mode) {
        reject(ErrorClass::kParserSyntaxError, call.span, "pl.split_aiv requires mode=",
               "write pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN)");
    }
    if (s.targets[0]->kind != ExprKind::kName) {
        reject(ErrorClass::kParserSyntaxError, s.targets[0]->span, "pl.split_aiv needs a single loop variable");
    }
    if (place() != ir::kPlaceKernel) {
        reject(ErrorClass::kParserSyntaxError, s.span,
               "pl.split_aiv is only valid inside a kernel; function '" + fn->name + "' is " + type_word(fn->type),
               "put it inside 'with pl.at(level=pl.Level.CORE_GROUP):'");
    }
    if (const RegionInfo* outer = enclosing(ir::ScopeKind::kSplitAiv)) {
        reject(ErrorClass::kParserSyntaxError, s.span, "A nested 'for ... in pl.split_aiv(...)' is not supported", {},
               {{"the outer loop", outer->span}});
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
