// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Calls of functions: who may call whom, how arguments meet parameters (01 L-46, L-47; 03 D-21).
namespace pypto::sema {

using syn::ExprKind;

namespace {

bool is_inline(const FunctionSource& f) {
  return f.decl == DeclKind::kInlineHelper || f.decl == DeclKind::kJitInline ||
         (f.decl == DeclKind::kProgramMethod && f.type == ir::FunctionType::kInline);
}

bool is_kernel_source(const FunctionSource& f) {
  if (f.decl == DeclKind::kJitIncore || f.decl == DeclKind::kJitExtern) return true;
  if (f.decl == DeclKind::kIrFunction && f.ir_function) return f.ir_function->is_kernel();
  return f.type == ir::FunctionType::kInCore || f.type == ir::FunctionType::kAIC ||
         f.type == ir::FunctionType::kAIV;
}

bool is_sub_worker(const FunctionSource& f) {
  return f.decl == DeclKind::kSubWorker || f.role == ir::Role::kSubWorker ||
         (f.decl == DeclKind::kIrFunction && f.ir_function && f.ir_function->is_sub_worker);
}

bool is_host_orchestrator(const FunctionSource& f) {
  if (is_sub_worker(f)) return false;
  if (f.decl == DeclKind::kIrFunction && f.ir_function) return f.ir_function->is_host();
  return f.decl == DeclKind::kJitHost || f.level >= ir::Level::kHost;
}

bool is_orchestration(const FunctionSource& f) {
  if (is_host_orchestrator(f) || is_sub_worker(f)) return false;
  if (f.decl == DeclKind::kJit) return true;
  if (f.decl == DeclKind::kIrFunction && f.ir_function) {
    return f.ir_function->type == ir::FunctionType::kOrchestration;
  }
  return f.type == ir::FunctionType::kOrchestration ||
         (f.type == ir::FunctionType::kOpaque && f.level == ir::Level::kChip &&
          f.role == ir::Role::kOrchestrator);
}

bool is_jit_callee(const FunctionSource& f) {
  return f.decl == DeclKind::kJit || f.decl == DeclKind::kJitIncore || f.decl == DeclKind::kJitExtern ||
         f.decl == DeclKind::kJitOpaque || f.decl == DeclKind::kJitHost;
}

std::vector<std::string> param_names(const FunctionSource& f) {
  std::vector<std::string> out;
  if (f.decl == DeclKind::kIrFunction && f.ir_function) {
    for (const auto& p : f.ir_function->params) out.push_back(p->name);
    return out;
  }
  if (!f.def) return out;
  for (const auto& p : f.def->params) {
    if (p.name == "self" && &p == &f.def->params.front()) continue;
    out.push_back(p.name);
  }
  return out;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

}  // namespace

const char* FunctionBuilder::callee_tier(const FunctionSource& f) const {
  if (is_inline(f)) return "an inline function";
  if (is_sub_worker(f)) return "a HOST SubWorker";
  if (is_host_orchestrator(f)) return "a HOST orchestrator";
  if (is_kernel_source(f)) return "a kernel";
  if (is_orchestration(f)) return "a device orchestration";
  if (f.type == ir::FunctionType::kGroup) return "a Group function";
  if (f.type == ir::FunctionType::kSpmd) return "a Spmd function";
  return "an orchestration fragment";
}

/// Who may call whom (01 L-46, 03 D-21).
void FunctionBuilder::check_call_rules(const std::shared_ptr<FunctionSource>& source, const Span& span) {
  const FunctionSource& f = *source;
  if (is_inline(f)) return;
  const std::string callee = "'" + f.name + "' (" + callee_tier(f) + ")";
  const std::string caller = "'" + fn->name + "'";
  if (place() == ir::kPlaceKernel) {
    const RegionInfo* region = kernel_region();
    if (region && region->kind == ir::ScopeKind::kSpmd && is_kernel_source(f)) return;  // launched per block
    if (region && region->kind == ir::ScopeKind::kSpmd && f.type == ir::FunctionType::kGroup) return;
    reject(ErrorClass::kParserTypeError, span,
           "Kernel " + (region ? "region '" + region->name + "' in " + caller : caller) + " cannot call " +
               callee + ": a kernel may call inline functions only",
           "call it from the orchestration, or make it @pl.inline");
  }
  const bool host = in_host() && !enclosing(ir::ScopeKind::kHierarchy);
  if (host) {
    if (is_kernel_source(f)) {
      reject(ErrorClass::kParserTypeError, span,
             "X-9: host orchestrator " + caller + " calls the kernel '" + f.name + "' directly",
             "wrap it in a @pl.jit orchestration (or FunctionType.Orchestration) and dispatch that");
    }
    if (is_host_orchestrator(f)) {
      reject(ErrorClass::kParserTypeError, span, "HOST orchestrator " + caller + " cannot call " + callee,
             "call a device orchestration");
    }
    return;
  }
  if (is_sub_worker(f) || is_host_orchestrator(f)) {
    reject(ErrorClass::kParserTypeError, span,
           "Function " + caller + " runs on a device and cannot call " + callee,
           "call it from a HOST orchestrator");
  }
  if (fn->type == ir::FunctionType::kGroup || fn->type == ir::FunctionType::kSpmd) {
    if (!is_kernel_source(f) && f.type != ir::FunctionType::kGroup) {
      reject(ErrorClass::kParserTypeError, span,
             "Function " + caller + " (Group) may call AIC, AIV and InCore kernels only, not " + callee);
    }
    return;
  }
  if (is_orchestration(f)) {
    reject(ErrorClass::kParserTypeError, span, "Device orchestration " + caller + " cannot call " + callee,
           "call kernels or orchestration fragments (Opaque, Graph, inline) from it");
  }
}

Value FunctionBuilder::invoke(const std::shared_ptr<FunctionSource>& source, const syn::Expr& call,
                              ir::CallInfo* submit, size_t first_arg) {
  if (!source) {
    reject(ErrorClass::kUndefinedVariableError, call.span,
           "Function '" + source_text(*call.items[0]) + "' not defined in program");
  }
  source->ensure_loaded();
  check_call_rules(source, call.span);
  if (is_inline(*source)) {
    if (submit) {
      reject(ErrorClass::kParserSyntaxError, call.span,
             "pl.submit: '" + source->name +
                 "' is an inline function; the first argument must be a "
                 "`self.<kernel>` method reference");
    }
    return expand(source, arguments(call, first_arg), call);
  }
  for (RegionInfo* r : regions_) ++r->kernel_calls;
  // Reserved keywords.
  std::vector<Argument> args;
  ir::CallInfo info;
  if (submit) info = *submit;
  const syn::Expr* device = nullptr;
  const bool dispatch = in_host() && !enclosing(ir::ScopeKind::kHierarchy) && !is_sub_worker(*source);
  const std::vector<std::string> names = param_names(*source);
  for (auto& a : arguments(call, first_arg)) {
    const bool own = std::find(names.begin(), names.end(), a.keyword) != names.end();
    if (!a.keyword.empty() && !own) {
      if (a.keyword == "device") {
        if (!dispatch) {
          reject(ErrorClass::kParserTypeError, a.span,
                 "X-4: keyword argument 'device' is only accepted on a dispatch of a device orchestration "
                 "from a HOST orchestrator; '" +
                     source->name + "' is " + callee_tier(*source),
                 "remove device=, or call the device orchestration");
        }
        device = a.syntax;
        continue;
      }
      if (a.keyword == "attrs") {
        read_call_attrs(*a.syntax, names.size());
        continue;
      }
      if (submit && submit_keyword(a.keyword)) continue;
      if (a.keyword == "deps") {
        reject(ErrorClass::kParserTypeError, a.span,
               "deps= is not accepted on a plain call of '" + source->name + "'",
               "use pl.submit(self." + source->name + ", ..., deps=[...])");
      }
      reject(ErrorClass::kParserTypeError, a.span,
             "Function '" + source->name + "' does not accept keyword argument '" + a.keyword + "'",
             did_you_mean(a.keyword, names).empty() ? "its parameters are: " + join_names(names)
                                                    : did_you_mean(a.keyword, names));
    }
    // pl.no_dep(x) as an argument (01 L-138).
    if (a.syntax && a.syntax->kind == ExprKind::kCall && a.syntax->items.size() == 2) {
      const HostValue h = resolve_host(*a.syntax->items[0]);
      if (h.kind == HostKind::kConstruct && (h.text == "pl.no_dep" || h.text == "pl.tensor.no_dep")) {
        a.no_dep = true;
        a.syntax = a.syntax->items[1].get();
      }
    }
    args.push_back(std::move(a));
  }
  // Orchestration fragments are orchestration code in place (01 L-46).
  const bool fragment = !dispatch && !is_kernel_source(*source) && !is_sub_worker(*source) &&
                        !is_orchestration(*source) && source->type != ir::FunctionType::kGroup &&
                        source->type != ir::FunctionType::kSpmd && source->decl != DeclKind::kIrFunction;
  if (fragment) {
    bool kernel = false;
    if (source->decl == DeclKind::kProgramMethod) {
      kernel = program_.declared_function(source, call.span)->is_kernel();
    } else {
      FunctionBuilder probe(program_, source);
      probe.decide_place();
      kernel = probe.fn->is_kernel();
    }
    if (!kernel && !submit) return expand(source, std::move(args), call);
  }
  if (device) info.device = read_device(*device, false, source->name);
  return call_function(source, std::move(args), call, std::move(info));
}

std::vector<Value> FunctionBuilder::match_params(const std::shared_ptr<FunctionSource>& source,
                                                 std::vector<Argument>& args, const Span& span,
                                                 std::vector<bool>* no_dep,
                                                 std::vector<const syn::Expr*>* syntax, bool allow_missing) {
  const std::vector<std::string> names = param_names(*source);
  std::vector<int> slot_of(args.size(), -1);
  std::vector<bool> taken(names.size(), false);
  size_t positional = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].keyword.empty()) {
      if (positional < names.size()) slot_of[i] = static_cast<int>(positional);
      ++positional;
    } else {
      const auto it = std::find(names.begin(), names.end(), args[i].keyword);
      slot_of[i] = static_cast<int>(it - names.begin());
    }
    if (slot_of[i] >= 0) {
      if (taken[static_cast<size_t>(slot_of[i])]) {
        reject(ErrorClass::kParserTypeError, args[i].span,
               "Function '" + source->name + "' got multiple values for parameter '" +
                   names[static_cast<size_t>(slot_of[i])] + "'");
      }
      taken[static_cast<size_t>(slot_of[i])] = true;
    }
  }
  std::vector<const syn::Param*> params;
  if (source->def) {
    for (const auto& p : source->def->params) {
      if (p.name == "self" && &p == &source->def->params.front()) continue;
      params.push_back(&p);
    }
  }
  bool missing = positional > names.size();
  for (size_t i = 0; i < names.size(); ++i) {
    const bool has_default = i < params.size() && params[i]->default_value;
    if (!taken[i] && !has_default && !allow_missing) missing = true;
  }
  if (missing) {
    reject(ErrorClass::kParserTypeError, span,
           "Function '" + source->name + "' expects " + std::to_string(names.size()) + " argument(s), got " +
               std::to_string(args.size()),
           "its parameters are: " + join_names(names));
  }
  std::vector<const syn::Expr*> order;
  for (auto& a : args) order.push_back(a.syntax);
  const std::vector<Value> got = eval_operands(order);
  std::vector<Value> out(names.size());
  no_dep->assign(names.size(), false);
  syntax->assign(names.size(), nullptr);
  for (size_t i = 0; i < args.size(); ++i) {
    if (slot_of[i] < 0) continue;
    const auto s = static_cast<size_t>(slot_of[i]);
    out[s] = args[i].value.kind == Value::Kind::kNothing ? got[i] : args[i].value;
    (*no_dep)[s] = args[i].no_dep;
    (*syntax)[s] = args[i].syntax;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (taken[i] || i >= params.size() || !params[i]->default_value) continue;
    // Defaults are values of the callee's own scope.
    Frame inner;
    inner.source = source;
    inner.host = source->host.get();
    inner.parent = nullptr;
    Frame* outer = frame_;
    frame_ = &inner;
    out[i] = eval(*params[i]->default_value);
    frame_ = outer;
  }
  return out;
}

Value FunctionBuilder::call_function(const std::shared_ptr<FunctionSource>& source,
                                     std::vector<Argument> args, const syn::Expr& call, ir::CallInfo info) {
  const bool dispatch = in_host() && !enclosing(ir::ScopeKind::kHierarchy);
  std::vector<bool> no_dep;
  std::vector<const syn::Expr*> syntax;
  std::vector<Value> values = match_params(source, args, call.span, &no_dep, &syntax, info.submit);
  const std::vector<std::string> names = param_names(*source);
  std::vector<std::string> arg_names(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    arg_names[i] = syntax[i] ? source_text(*syntax[i]) : "";
    if (values[i].is_expr() && values[i].expr->kind == ir::ExprKind::kCall) {
      values[i] = spill(values[i], "_r", call.span);
    }
  }
  ir::FunctionPtr callee;
  std::vector<ExprPtr> constants(names.size());
  try {
    if (is_jit_callee(*source)) {
      callee = program_.specialise(source, values, arg_names, call.span, &constants);
    } else if (source->decl == DeclKind::kIrFunction) {
      callee = program_.adopt(source, call.span);
    } else {
      callee = program_.declared_function(source, call.span);
    }
  } catch (Failure& f) {
    auto& notes = f.diagnostic().notes;
    if (is_jit_callee(*source) && notes.size() < 8 && f.diagnostic().span.text() != call.span.text()) {
      notes.push_back({"'" + source->name + "' is called", call.span});
    }
    throw;
  }
  std::vector<ExprPtr> converted(callee->params.size());
  for (size_t i = 0; i < callee->params.size(); ++i) {
    if (values[i].kind == Value::Kind::kNothing) {
      // Trailing outputs of a submit may be left out: they are allocated (01 L-55).
      const TypePtr& t = callee->params[i]->type;
      bool trailing = true;
      for (size_t j = i; j < values.size(); ++j)
        trailing = trailing && values[j].kind == Value::Kind::kNothing;
      if (!t->is_tensor() || callee->directions[i] == ir::ParamDirection::kIn || !trailing) {
        reject(ErrorClass::kParserTypeError, call.span,
               "Function '" + callee->name + "' expects " + std::to_string(names.size()) + " argument(s): '" +
                   names[i] + "' is missing",
               "only trailing pl.Out / pl.InOut arguments of pl.submit may be left out");
      }
      const std::vector<TypePtr> shape = omitted_type(*callee, i, converted);
      std::vector<ExprPtr> dims;
      for (const auto& d : shape[0]->shape) {
        if (!d.is_const() && !d.expr) {
          reject(ErrorClass::kParserTypeError, call.span,
                 "The shape of the omitted output '" + names[i] + "' of '" + callee->name +
                     "' cannot be derived",
                 "pass it");
        }
        dims.push_back(d.is_const() ? ir::int_const(d.value, DType::kIndex, call.span) : d.expr);
      }
      HostValue dt;
      dt.kind = HostKind::kDType;
      dt.dtype = t->dtype;
      const Value made = infer(ir::op_row(ir::OpId::k_create_tensor), ir::kFormFlat,
                               {ir::tuple_expr(dims, call.span), to_argument(Value::of_host(dt), call.span)},
                               call.span, "pl.create_tensor");
      values[i] = spill(made, names[i].c_str(), call.span);
    }
    if (constants[i]) {
      converted[i] = constants[i];
      continue;
    }
    if (dispatch && callee->is_sub_worker && values[i].type() && values[i].type()->is_window()) {
      reject(ErrorClass::kParserTypeError, call.span,
             "X-18: the DistributedTensor '" + arg_names[i] + "' cannot be an argument of SubWorker '" +
                 callee->name + "'",
             "move data through a kernel");
    }
    converted[i] = convert_argument(*callee, i, values[i], syntax[i] ? syntax[i]->span : call.span, dispatch);
  }
  auto e = std::make_shared<ir::Expr>();
  e->kind = ir::ExprKind::kCall;
  e->span = call.span;
  e->args = converted;
  std::vector<TypePtr> results = result_types(*callee, converted);
  if (info.submit) results.push_back(ir::scalar_type(DType::kTaskId));
  info.callee = callee;
  if (std::any_of(no_dep.begin(), no_dep.end(), [](bool b) { return b; })) info.no_dep = no_dep;
  e->type = results.empty()                       ? ir::none_type()
            : results.size() == 1 && !info.submit ? results[0]
                                                  : ir::tuple_type(results);
  if (dispatch && !callee->is_sub_worker) check_dispatch(*callee, converted, info.device, call.span);
  // Rank-dependent conditions around collectives of the callee (03 X-33).
  for (const auto& c : program_.facts(callee.get()).rank_conditions) {
    for (const int p : c.params) {
      std::set<int> params;
      const ExprPtr& a = converted[static_cast<size_t>(p)];
      bool ranked = rank_dependent(a, &params);
      if (info.device && mentions(a, info.device)) ranked = true;
      if (ranked) {
        warn_rank_condition(c.operation, c.collective, c.condition);
      } else if (!params.empty()) {
        FunctionFacts::RankCondition up = c;
        up.params = params;
        facts.rank_conditions.push_back(std::move(up));
      }
    }
  }
  e->call = std::make_shared<ir::CallInfo>(std::move(info));
  ExprPtr out = e;
  note_call(out, *callee);
  check_waiter_task(*out, call.span);
  return Value::of(out);
}

}  // namespace pypto::sema
