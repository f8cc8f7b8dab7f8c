// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// One function: parameters, place, attributes, body (01 section 5).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

FunctionBuilder::FunctionBuilder(ProgramBuilder& program, std::shared_ptr<FunctionSource> source)
    : program_(program), source_(std::move(source)) {
  source_->ensure_loaded();
  root_ = std::make_unique<Frame>();
  root_->source = source_;
  root_->host = source_->host.get();
  root_->auto_scope = source_->auto_scope;
  frame_ = root_.get();
  fn = std::make_shared<ir::Function>();
  fn->name = source_->name;
  fn->type = source_->type;
  fn->level = source_->level;
  fn->role = source_->role;
  fn->auto_scope = source_->auto_scope;
  fn->strict_ssa = source_->strict_ssa;
  fn->attrs = source_->attrs;
  fn->external_source = source_->external_source;
  fn->host_callable = source_->host_callable;
  if (source_->def) fn->span = source_->def->span;
  facts.source = source_;
  switch (source_->decl) {
    case DeclKind::kJit:
      fn->type = ir::FunctionType::kOrchestration;
      fn->level = ir::Level::kChip;
      fn->role = ir::Role::kNone;
      jit_ = true;
      break;
    case DeclKind::kJitHost:
      fn->type = ir::FunctionType::kOrchestration;
      fn->level = ir::Level::kHost;
      fn->role = ir::Role::kOrchestrator;
      jit_ = true;
      break;
    case DeclKind::kJitIncore:
      fn->type = source_->level == ir::Level::kAIC   ? ir::FunctionType::kAIC
                 : source_->level == ir::Level::kAIV ? ir::FunctionType::kAIV
                                                     : ir::FunctionType::kInCore;
      jit_ = true;
      break;
    case DeclKind::kJitExtern:
      jit_ = true;
      break;
    case DeclKind::kJitInline:
    case DeclKind::kInlineHelper:
      fn->type = ir::FunctionType::kInline;
      jit_ = true;
      break;
    case DeclKind::kJitOpaque:
      fn->type = ir::FunctionType::kOpaque;
      jit_ = true;
      break;
    case DeclKind::kSubWorker:
      fn->is_sub_worker = true;
      fn->requires_runtime_binding = source_->body_is_ellipsis;
      if (fn->level == ir::Level::kNone) fn->level = ir::Level::kHost;
      fn->role = ir::Role::kSubWorker;
      break;
    default:
      break;
  }
  if (fn->role == ir::Role::kSubWorker && source_->decl != DeclKind::kSubWorker) {
    fn->is_sub_worker = true;
    fn->requires_runtime_binding = source_->body_is_ellipsis;
  }
  if (fn->level == ir::Level::kNone) {
    switch (fn->type) {
      case ir::FunctionType::kOrchestration:
      case ir::FunctionType::kGraph:
        fn->level = ir::Level::kChip;
        break;
      case ir::FunctionType::kInCore:
        fn->level = ir::Level::kChipDie;
        break;
      case ir::FunctionType::kAIC:
        fn->level = ir::Level::kAIC;
        break;
      case ir::FunctionType::kAIV:
        fn->level = ir::Level::kAIV;
        break;
      case ir::FunctionType::kGroup:
        fn->level = ir::Level::kCoreGroup;
        break;
      default:
        break;
    }
  }
  // Level CHIP with a role is a device orchestration (03 D-20).
  if (fn->level == ir::Level::kChip && fn->role == ir::Role::kOrchestrator &&
      fn->type == ir::FunctionType::kOpaque) {
    fn->type = ir::FunctionType::kOrchestration;
  }
  if (fn->is_sub_worker && source_->has_self) {
    reject(ErrorClass::kParserSyntaxError, fn->span,
           "SubWorker function '" + fn->name + "' must not declare 'self'", "remove the parameter");
  }
  if (source_->def) collect_names(source_->def->body);
}

void FunctionBuilder::add_param(const syn::Param& param, const ParamSpec& spec) {
  const auto index = fn->params.size();
  TypePtr type = spec.type;
  if (type->is_tensor()) {
    auto storage = new_storage(param.name);
    storage->param = static_cast<int>(index);
    storage->region_local = false;
    type = with_storage(type, storage);
  }
  VarPtr var;
  const bool integer = type->is_scalar() && is_int(type->dtype);
  if (integer && root_->symbols.count(param.name)) {
    reject(ErrorClass::kParserTypeError, param.span,
           "Scalar parameter '" + param.name + "' shadows the dynamic symbol '" + param.name +
               "' of an earlier parameter",
           "declare '" + param.name + "' before the parameters whose shapes mention it");
  }
  var = fn->add_var(param.name, type, ir::VarKind::kParam, param.span);
  // A later `pl.dynamic` of this name is this parameter (01 L-32).
  if (integer) root_->symbols[param.name] = ir::var_ref(var, param.span);
  fn->params.push_back(var);
  fn->directions.push_back(spec.direction);
  facts.annotated.push_back(spec.annotated);
  facts.read.push_back(false);
  facts.written.push_back(false);
  facts.symbol_param.push_back(integer);
  param_written_.emplace_back();
  param_read_first_.emplace_back();
  param_rebound_.emplace_back();
  param_mentioned_.push_back(false);
  param_written_directly_.push_back(false);
  used_names_.insert(param.name);
  root_->vars[param.name].push_back(var);
  root_->renamed[param.name] = param.name;
  if (spec.constant) {
    bind_value(param.name, Value::of(spec.constant), param.span);
    return;
  }
  auto b = std::make_shared<Binding>();
  b->var = var;
  b->type = type;
  b->span = param.span;
  bind(param.name, b);
}

void reject_signature(const syn::FunctionDef& def) {
  if (def.has_varargs) {
    reject(ErrorClass::kUnsupportedFeatureError, def.span,
           "Function '" + def.name + "' has *args or **kwargs parameters, which are not supported");
  }
  if (def.is_async) {
    reject(ErrorClass::kUnsupportedFeatureError, def.span,
           "Function '" + def.name + "' is an async function, which is not supported", "write 'def'");
  }
}

void FunctionBuilder::declare_params() {
  const auto& def = *source_->def;
  reject_signature(def);
  for (const auto& p : def.params) {
    if (p.name == "self" && &p == &def.params.front()) continue;
    if (!p.annotation) {
      reject(ErrorClass::kParserTypeError, p.span, "Parameter '" + p.name + "' missing type annotation",
             "annotate it as pl.Tensor[[...], dtype] or pl.Scalar[dtype]");
    }
    const Annotation a = annotation(*p.annotation, AnnotationUse::kParam);
    if (a.is_tuple) reject(ErrorClass::kParserTypeError, p.span, "Parameter type cannot be a tuple");
    if (!a.type) {
      reject(ErrorClass::kParserTypeError, p.annotation->span,
             "Incomplete type annotation of parameter '" + p.name + "': " + source_text(*p.annotation));
    }
    ParamSpec spec;
    spec.type = a.type;
    spec.direction = a.direction;
    add_param(p, spec);
  }
}

void FunctionBuilder::read_return_annotation(bool jit) {
  (void)jit;
  const auto& def = *source_->def;
  if (!def.returns) return;
  const Annotation a = annotation(*def.returns, AnnotationUse::kReturn);
  if (a.is_none) {
    return_none_ = true;
    return;
  }
  fn->has_return_annotation = true;
  if (a.is_tuple) {
    return_annotation_ = a.elements;
  } else {
    return_annotation_ = {a};
  }
}

// ------------------------------------------------------------------ place

void FunctionBuilder::scan_expr(const syn::Expr& e, bool* kernel_op, bool* calls) {
  if (e.kind == ExprKind::kCall) {
    const auto& callee = *e.items[0];
    if (callee.kind == ExprKind::kAttribute && is_self(*callee.items[0])) *calls = true;
    const HostValue h = resolve_host(callee);
    ir::OpForm form;
    std::string name;
    if (h.kind == HostKind::kConstruct) {
      if (h.text == "pl.submit" || h.text == "pl.spmd_submit") *calls = true;
      if (operation_form(h.text, &form, &name)) {
        const ir::OpRow* row = ir::find_op(form, name);
        const bool any = row && (row->places & ir::kPlaceKernel) && !(row->places & ir::kPlaceOrch);
        const bool cast = row && row->id == ir::OpId::k_cast;
        // Element-wise names on scalars are legal everywhere; they alone do not make a kernel.
        static const std::set<std::string> kScalarToo = {"add", "sub", "mul", "div", "cast", "max", "min"};
        if (any && !cast && !(form == ir::kFormFlat && kScalarToo.count(name))) *kernel_op = true;
        if (row && form == ir::kFormTile) *kernel_op = true;
      }
    }
    if (h.kind == HostKind::kFunction && h.function) {
      const auto d = h.function->decl;
      if (d == DeclKind::kJitIncore || d == DeclKind::kJitExtern ||
          (d == DeclKind::kIrFunction && h.function->ir_function && h.function->ir_function->is_kernel())) {
        *calls = true;
      } else if (d == DeclKind::kInlineHelper || d == DeclKind::kJitInline) {
        h.function->ensure_loaded();
        if (h.function->def && scanned_.insert(h.function.get()).second) {
          // Names of the helper resolve in its own scope.
          Frame inner;
          inner.source = h.function;
          inner.host = h.function->host.get();
          inner.parent = frame_;
          inner.is_inline = true;
          Frame* outer = frame_;
          frame_ = &inner;
          bool region = false, split = false;
          scan_body(h.function->def->body, kernel_op, calls, &region, &split);
          frame_ = outer;
          if (region) *calls = true;
        }
      }
    }
  }
  for (const auto& i : e.items) {
    if (i) scan_expr(*i, kernel_op, calls);
  }
  for (const auto& k : e.keywords) {
    if (k.value) scan_expr(*k.value, kernel_op, calls);
  }
}

void FunctionBuilder::scan_body(const std::vector<syn::StmtPtr>& body, bool* kernel_op, bool* calls,
                                bool* region, bool* split_aiv) {
  for (const auto& s : body) {
    if (s->kind == StmtKind::kWith) {
      for (const auto& w : s->with_items) {
        if (w.context && w.context->kind == ExprKind::kCall) {
          const HostValue h = resolve_host(*w.context->items[0]);
          if (h.kind == HostKind::kConstruct) *region = true;
        }
      }
    }
    if (s->kind == StmtKind::kFor && s->value && s->value->kind == ExprKind::kCall) {
      const HostValue h = resolve_host(*s->value->items[0]);
      if (h.text == "pl.spmd") *region = true;
      if (h.text == "pl.split_aiv") *split_aiv = true;
    }
    if (*region) continue;
    if (s->value) scan_expr(*s->value, kernel_op, calls);
    scan_body(s->body, kernel_op, calls, region, split_aiv);
    scan_body(s->orelse, kernel_op, calls, region, split_aiv);
  }
}

void FunctionBuilder::decide_place() {
  if (fn->is_sub_worker) {
    base_place_ = ir::kPlaceHost;
    return;
  }
  if (fn->level >= ir::Level::kHost) {
    base_place_ = ir::kPlaceHost;
    return;
  }
  switch (fn->type) {
    case ir::FunctionType::kInCore:
    case ir::FunctionType::kAIC:
    case ir::FunctionType::kAIV:
      base_place_ = ir::kPlaceKernel;
      return;
    case ir::FunctionType::kInline:
    case ir::FunctionType::kOpaque: {
      bool kernel_op = false, calls = false, region = false, split = false;
      scan_body(source_->def->body, &kernel_op, &calls, &region, &split);
      facts.has_regions = region;
      if (!region && !calls && (kernel_op || split)) {
        base_place_ = ir::kPlaceKernel;
        if (fn->type == ir::FunctionType::kOpaque) fn->opaque_kernel = true;
      } else {
        base_place_ = ir::kPlaceOrch;
      }
      return;
    }
    default:
      base_place_ = ir::kPlaceOrch;
      return;
  }
}

// ------------------------------------------------------------------ body

void FunctionBuilder::build_body() {
  const auto& def = *source_->def;
  block_ = &fn->body;
  if (!fn->external_source.empty() || source_->decl == DeclKind::kJitExtern) {
    const bool kernel = fn->type == ir::FunctionType::kAIC || fn->type == ir::FunctionType::kAIV ||
                        source_->decl == DeclKind::kJitExtern;
    if (!kernel) {
      reject(ErrorClass::kParserTypeError, fn->span,
             "external_source= needs an AIC or AIV function, '" + fn->name + "' has another type");
    }
    for (const auto& s : def.body) {
      const bool empty = s->kind == StmtKind::kPass ||
                         (s->kind == StmtKind::kExpr && s->value &&
                          (s->value->kind == ExprKind::kEllipsis || s->value->kind == ExprKind::kString));
      if (!empty) {
        reject(ErrorClass::kParserSyntaxError, s->span,
               "External kernel '" + fn->name + "' must have an empty '...' body");
      }
    }
    for (size_t i = 0; i < fn->params.size(); ++i) {
      facts.read[i] = fn->directions[i] != ir::ParamDirection::kOut;
      facts.written[i] = fn->directions[i] != ir::ParamDirection::kIn;
    }
    fn->effective_directions = fn->directions;
    results_from_annotation();
    return;
  }
  if (fn->is_sub_worker) {
    for (size_t i = 0; i < fn->params.size(); ++i) {
      facts.read[i] = true;
      facts.written[i] = fn->directions[i] != ir::ParamDirection::kIn;
      if (fn->params[i]->type->is_window()) {
        reject(ErrorClass::kParserTypeError, fn->params[i]->span,
               "X-18: SubWorker '" + fn->name + "' cannot take the window '" + fn->params[i]->name + "'",
               "move data through a kernel");
      }
    }
    fn->effective_directions = fn->directions;
    results_from_annotation();
    return;
  }
  reading_body_ = true;
  read_func_attrs();
  exec_from(def.body, first_statement_);
  finish();
}

/// Functions without a body that is read: results are the outputs in declaration order, or what is declared.
void FunctionBuilder::results_from_annotation() {
  std::vector<int> outputs;
  for (size_t i = 0; i < fn->params.size(); ++i) {
    if (fn->directions[i] != ir::ParamDirection::kIn) outputs.push_back(static_cast<int>(i));
  }
  // A sub-worker may say which of its outputs it returns.
  std::vector<std::string> named;
  if (source_->def) {
    for (const auto& s : source_->def->body) {
      if (s->kind != StmtKind::kReturn || !s->value) continue;
      named.clear();
      if (s->value->kind == ExprKind::kName) named = {s->value->text};
      if (s->value->kind == ExprKind::kTuple) {
        for (const auto& i : s->value->items) named.push_back(i->kind == ExprKind::kName ? i->text : "");
      }
    }
  }
  if (return_annotation_.empty() && named.empty()) {
    if (source_->decl != DeclKind::kJitExtern && fn->external_source.empty()) return;
    for (const int i : outputs) {
      fn->return_types.push_back(fn->params[static_cast<size_t>(i)]->type);
      fn->return_params.push_back(i);
    }
    return;
  }
  const size_t count = return_annotation_.empty() ? named.size() : return_annotation_.size();
  for (size_t k = 0; k < count; ++k) {
    int root = -1;
    if (k < named.size()) {
      for (size_t i = 0; i < fn->params.size(); ++i) {
        if (fn->params[i]->name == named[k]) root = static_cast<int>(i);
      }
    }
    if (root < 0 && k < outputs.size()) root = outputs[k];
    TypePtr t = k < return_annotation_.size() ? return_annotation_[k].type : nullptr;
    if (!t && root >= 0) t = fn->params[static_cast<size_t>(root)]->type;
    if (!t) t = ir::none_type();
    fn->return_types.push_back(t);
    fn->return_params.push_back(root);
  }
}

}  // namespace pypto::sema
