// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"
#include "core/sema/hints.h"

/// Calls: which operation, construct or function a callee is (01 L-1, L-47; 02 O-108).
namespace pypto::sema {

using syn::ExprKind;

bool FunctionBuilder::is_self(const syn::Expr& e) {
  return e.kind == ExprKind::kName && e.text == "self" && !find_binding("self") &&
         (program_.is_class || host_lookup("self").kind == HostKind::kMissing);
}

FunctionBuilder::Callee FunctionBuilder::resolve_callee(const syn::Expr& callee) {
  Callee out;
  if (callee.kind == ExprKind::kAttribute && is_self(*callee.items[0])) {
    out.kind = Callee::Kind::kMethod;
    out.name = callee.text;
    out.function = program_.find_method(callee.text);
    if (!out.function && !program_.is_class) {
      // JIT bodies have no self: the method is the kernel of that name (01 L-130).
      const HostValue h = host_lookup(callee.text);
      if (h.kind == HostKind::kFunction) out.function = h.function;
    }
    return out;
  }
  const HostValue h = resolve_host(callee);
  out.host = h;
  if (h.kind == HostKind::kConstruct) {
    out.kind = Callee::Kind::kConstruct;
    out.name = h.text;
  } else if (h.kind == HostKind::kFunction) {
    out.kind = Callee::Kind::kFunction;
    out.function = h.function;
    out.name = h.function ? h.function->name : "";
  } else if (h.kind != HostKind::kMissing) {
    out.kind = Callee::Kind::kPython;
  }
  return out;
}

/// A builtin of 01 L-15 whose arguments are known here though Python does not know their names: `a.shape[1]`,
/// a variable that holds a constant.
std::optional<Value> FunctionBuilder::fold_builtin(const syn::Expr& e) {
  static const std::set<std::string> kBuiltins = {"min",   "max", "abs",   "sum",
                                                  "round", "int", "float", "bool"};
  const syn::Expr& name = *e.items[0];
  if (name.kind != ExprKind::kName || !kBuiltins.count(name.text) || !e.keywords.empty()) return std::nullopt;
  syn::Expr call;
  call.kind = ExprKind::kCall;
  call.span = e.span;
  const auto add_name = [&](const std::string& text, const Span& span) {
    auto item = std::make_unique<syn::Expr>();
    item->kind = ExprKind::kName;
    item->text = text;
    item->span = span;
    call.items.push_back(std::move(item));
  };
  add_name(name.text, name.span);
  std::vector<std::pair<std::string, HostValue>> known;
  for (size_t i = 1; i < e.items.size(); ++i) {
    const auto value = host_value(eval(*e.items[i]));
    if (!value || value->kind == HostKind::kSymbolic || value->kind == HostKind::kDynVar) return std::nullopt;
    known.emplace_back("argument_" + std::to_string(i), *value);
    add_name(known.back().first, e.items[i]->span);
  }
  try {
    const HostValue h = frame_->host->eval(call, known);
    if (h.kind == HostKind::kMissing) return std::nullopt;
    return from_host(h, e.span);
  } catch (const HostError& error) {
    reject(ErrorClass::kParserTypeError, e.span,
           "Failed to evaluate expression '" + source_text(e) + "': " + error.type + ": " + error.message);
  }
}

Value FunctionBuilder::eval_call(const syn::Expr& e, bool statement) {
  const auto& callee_syntax = *e.items[0];
  const Callee callee = resolve_callee(callee_syntax);
  switch (callee.kind) {
    case Callee::Kind::kConstruct:
      return eval_construct(callee.name, e, statement);
    case Callee::Kind::kMethod:
      if (!callee.function) {
        if (!program_.is_class) {
          reject(ErrorClass::kUndefinedVariableError, callee_syntax.span,
                 "Function '" + callee.name + "' not defined in program",
                 "'self." + callee.name + "' in a JIT body is the JIT function that the name '" +
                     callee.name + "' resolves to");
        }
        std::string list;
        for (const auto& m : program_.method_names()) list += (list.empty() ? "" : ", ") + m;
        const std::string guess = did_you_mean(callee.name, program_.method_names());
        reject(ErrorClass::kUndefinedVariableError, callee_syntax.span,
               "Function '" + callee.name + "' not defined in program",
               (guess.empty() ? "" : guess + " ") + "available methods: " + list);
      }
      return invoke(callee.function, e);
    case Callee::Kind::kFunction:
      return invoke(callee.function, e);
    case Callee::Kind::kPython:
      if (callee.host.kind == HostKind::kDType || callee.host.kind == HostKind::kOpaque ||
          callee.host.kind == HostKind::kModule) {
        if (const auto known = fold_builtin(e)) return *known;
        if (callee_syntax.kind == ExprKind::kName &&
            (callee_syntax.text == "min" || callee_syntax.text == "max" || callee_syntax.text == "abs")) {
          reject(ErrorClass::kUnsupportedFeatureError, e.span,
                 "Python's '" + callee_syntax.text +
                     "' only folds constants; its arguments are run-time "
                     "values",
                 "use pl." + callee_syntax.text + "(...)");
        }
        if (callee_syntax.kind == ExprKind::kName && callee_syntax.text == "len" && e.items.size() == 2) {
          const Value v = eval(*e.items[1]);
          if (v.is_tuple()) {
            return Value::of(
                ir::int_const(static_cast<int64_t>(v.items.size()), DType::kIndex, e.span, true));
          }
        }
        reject(ErrorClass::kUnsupportedFeatureError, e.span,
               "Python function '" + source_text(callee_syntax) + "' cannot be called on run-time values",
               "call pl operations, functions of the program, or @pl.inline helpers");
      }
      reject(ErrorClass::kParserTypeError, e.span,
             "'" + source_text(callee_syntax) + "' is not callable here");
    case Callee::Kind::kUnknown:
      break;
  }
  if (callee_syntax.kind == ExprKind::kAttribute) {
    if (bind_dynamic(e)) return {};
    const HostValue base = resolve_host(*callee_syntax.items[0]);
    if (base.kind == HostKind::kModule && base.text.rfind("python:", 0) != 0) {
      unknown_operation(callee_syntax, base.text + "." + callee_syntax.text);
    }
    // pl.foo.bar(...): an unknown category.
    if (base.kind == HostKind::kMissing && callee_syntax.items[0]->kind == ExprKind::kAttribute) {
      const HostValue root = resolve_host(*callee_syntax.items[0]->items[0]);
      if (root.kind == HostKind::kModule && (root.text == "pl" || root.text == "pld")) {
        // Operations that only passes make: the text of a lowered program names them so (04 SER-2).
        if (root.text == "pl" && callee_syntax.items[0]->text == "internal" &&
            ir::find_op(ir::kFormInternal, callee_syntax.text)) {
          return call_operation(ir::kFormInternal, callee_syntax.text, "pl.internal." + callee_syntax.text,
                                e);
        }
        unknown_operation(callee_syntax,
                          root.text + "." + callee_syntax.items[0]->text + "." + callee_syntax.text);
      }
    }
    // The dtype of an array (01 L-74) is known here, though Python does not know the array.
    if (base.kind != HostKind::kMissing || is_static(*callee_syntax.items[0])) return fold(e);
    const Value object = eval(*callee_syntax.items[0]);
    if (object.is_host() && object.host.kind == HostKind::kDType && callee_syntax.text == "get_byte") {
      return Value::of(ir::int_const(dtype_bytes(object.host.dtype), DType::kIndex, e.span, true));
    }
    reject(ErrorClass::kInvalidOperationError, e.span,
           "Method '" + callee_syntax.text + "' of a " +
               (object.is_expr() ? ir::type_text(*object.expr->type) : std::string("value")) +
               " does not exist",
           "there is no method-call sugar: write pl." + callee_syntax.text + "(" +
               source_text(*callee_syntax.items[0]) + ", ...)");
  }
  if (callee_syntax.kind == ExprKind::kName) {
    const BindingPtr b = find_binding(callee_syntax.text);
    if (b) {
      reject(ErrorClass::kParserTypeError, e.span,
             "'" + callee_syntax.text + "' is a variable, not a function");
    }
    const std::string builtin = hint_for_builtin(callee_syntax.text);
    reject(ErrorClass::kUndefinedVariableError, callee_syntax.span,
           "Undefined variable '" + callee_syntax.text + "'",
           builtin.empty() ? did_you_mean(callee_syntax.text, visible_names()) : builtin);
  }
  reject(ErrorClass::kUnsupportedFeatureError, e.span, "Unsupported call: " + source_text(callee_syntax));
}

void FunctionBuilder::unknown_operation(const syn::Expr& callee, const std::string& dotted) {
  const std::string name = last_component(dotted);
  if (dotted == "pld" || dotted.rfind("pld.", 0) == 0) {
    std::string hint;
    const auto dots = std::count(dotted.begin(), dotted.end(), '.');
    std::vector<std::string> names;
    for (const auto& [prefix, form] :
         std::vector<std::pair<std::string, ir::OpForm>>{{"pld.", ir::kFormPld},
                                                         {"pld.system.", ir::kFormPldSystem},
                                                         {"pld.tensor.", ir::kFormPldTensor},
                                                         {"pld.tile.", ir::kFormPldTile}}) {
      for (const auto& n : ir::op_names(form)) names.push_back(prefix + n);
    }
    const std::string guess = nearest(dotted, names);
    if (!guess.empty()) hint = "did you mean '" + guess + "'?";
    if (dots > 1) {
      const std::string category = dotted.substr(4, dotted.find('.', 4) - 4);
      if (category != "system" && category != "tensor" && category != "tile") {
        reject(ErrorClass::kInvalidOperationError, callee.span,
               "X-1: Unknown distributed operation '" + dotted + "': no category '" + category +
                   "', the categories are system, tensor, tile",
               hint);
      }
    }
    if (hint.empty()) {
      for (const auto& n : names) {
        if (last_component(n) == name) hint = "did you mean '" + n + "'?";
      }
    }
    reject(ErrorClass::kInvalidOperationError, callee.span,
           "X-1: Unknown distributed operation '" + dotted + "'",
           hint.empty() ? "see the operations of pld.system, pld.tensor and pld.tile" : hint);
  }
  ir::OpForm form = ir::kFormFlat;
  std::string rest;
  std::vector<std::string> names;
  if (operation_form(dotted + (dotted.back() == '.' ? "x" : ""), &form, &rest)) names = ir::op_names(form);
  std::string hint = did_you_mean(name, names);
  if (form != ir::kFormFlat) {
    const std::string module = form_module(form);
    if (hint.empty() && ir::find_op(ir::kFormFlat, name)) hint = "did you mean 'pl." + name + "'?";
    reject(
        ErrorClass::kInvalidOperationError, callee.span,
        "Unknown " + module + " operation: " + name + " (Unknown pl." + module + " operation: " + name + ")",
        hint);
  }
  if (hint.empty()) {
    for (const auto& [prefix, f] : std::vector<std::pair<std::string, ir::OpForm>>{
             {"pl.tensor.", ir::kFormTensor}, {"pl.tile.", ir::kFormTile}, {"pl.system.", ir::kFormSystem}}) {
      if (ir::find_op(f, name)) {
        hint = "did you mean '" + prefix + name + "'?";
        break;
      }
    }
  }
  reject(ErrorClass::kInvalidOperationError, callee.span, "Unknown operation '" + dotted + "'", hint);
}

std::vector<Argument> FunctionBuilder::arguments(const syn::Expr& call, size_t first) {
  std::vector<Argument> out;
  for (size_t i = first + 1; i < call.items.size(); ++i) {
    if (call.items[i]->kind == ExprKind::kStarred) {
      reject(ErrorClass::kUnsupportedFeatureError, call.items[i]->span,
             "Unsupported expression type: Starred", "write the arguments one by one");
    }
    Argument a;
    a.syntax = call.items[i].get();
    a.span = call.items[i]->span;
    out.push_back(std::move(a));
  }
  for (const auto& k : call.keywords) {
    if (k.name.empty()) {
      reject(ErrorClass::kParserSyntaxError, k.span.known() ? k.span : call.span,
             "'**' arguments are not supported in a call", "write the keywords one by one");
    }
    Argument a;
    a.keyword = k.name;
    a.syntax = k.value.get();
    a.span = k.value->span;
    out.push_back(std::move(a));
  }
  return out;
}

Value FunctionBuilder::eval_construct(const std::string& name, const syn::Expr& e, bool statement) {
  if (name == "pl.const") return const_(e);
  if (name == "pl.submit" || name == "pl.spmd_submit") {
    reject(ErrorClass::kParserSyntaxError, e.span, name + "(...) must be unpacked as a 2-tuple",
           "write 'result, tid = " + name + "(...)'");
  }
  if (name == "pl.yield_") {
    if (statement) {
      reject(ErrorClass::kParserSyntaxError, e.span, "A loop or branch requires an assignment-form pl.yield_",
             "write 'x = pl.yield_(value)'");
    }
    return eval_yield(e, {}, e.span);
  }
  if (name == "pl.cond") {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "pl.cond can only be the first statement of a 'for ... in pl.while_(...)' body");
  }
  if (name == "pl.static_print") {
    static_print(e);
    return {};
  }
  if (name == "pl.static_assert") {
    static_assert_(e);
    return {};
  }
  if (name == "pl.func_attr") {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "pl.func_attr(...) must appear before every other statement of the function");
  }
  if (name == "pl.dump_tag" || name == "pl.tensor.dump_tag") return dump_tag(e);
  if (name == "pl.system.task_dummy") return task_dummy(e);
  if (name == "pl.system.task_invalid") {
    if (e.items.size() > 1 || !e.keywords.empty()) {
      reject(ErrorClass::kParserSyntaxError, e.span, "pl.system.task_invalid() takes no arguments");
    }
    return Value::of(ir::none_const(e.span));
  }
  if (name == "pld.alloc_window_buffer" || name == "pld.tensor.alloc_window_buffer")
    return alloc_window(e, "");
  if (name == "pld.window" || name == "pld.tensor.window") return host_window(e);
  if (name == "pl.at" || name == "pl.cluster" || name == "pl.scope" || name == "pl.manual_scope" ||
      name == "pl.spmd" || name == "pl.split_aiv") {
    reject(ErrorClass::kParserSyntaxError, e.span, name + "(...) is not an expression",
           name == "pl.split_aiv" ? "write 'for lane in pl.split_aiv(2, mode=...):'"
                                  : "write 'with " + name + "(...):'");
  }
  if (name == "pl.range" || name == "pl.parallel" || name == "pl.unroll" || name == "pl.pipeline" ||
      name == "pl.while_") {
    reject(ErrorClass::kParserSyntaxError, e.span,
           name + "(...) is only valid as the iterator of a for loop");
  }
  if (name == "pl.split" || name == "pl.cross_core_slot" || name == "pl.optimizations.split" ||
      name == "pl.optimizations.cross_core_slot") {
    reject(ErrorClass::kParserSyntaxError, e.span, name + "(...) must be written inside optimizations=[...]");
  }
  if (name.rfind("pl.adir.", 0) == 0) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           name + " is a name of attrs={'arg_directions': [...]}, not a function");
  }
  if (name == "pl.Tensor" || name == "pl.Tile" || name == "pl.Scalar" || name == "pl.Array" ||
      name == "pl.Tuple" || name == "pl.TensorView" || name == "pl.TileView" || name == "pl.MemRef" ||
      name == "pld.DistributedTensor") {
    if (is_static(*e.items[0]) && name == "pl.MemRef") {
      Value v;
      v.kind = Value::Kind::kHost;
      v.host.kind = HostKind::kMemRef;
      return fold(e);
    }
    reject(ErrorClass::kParserTypeError, e.span, name + " is a type and cannot be used as a value",
           "use it in an annotation");
  }
  // no_dep outside a call's arguments returns its operand (02 O-601).
  if (name == "pl.no_dep" || name == "pl.tensor.no_dep") {
    if (e.items.size() != 2 || !e.keywords.empty()) {
      reject(ErrorClass::kParserSyntaxError, e.span, "pl.no_dep takes exactly one positional argument");
    }
    const Value v = eval(*e.items[1]);
    if (!v.is_expr() || !v.expr->type->is_tensor()) {
      reject(ErrorClass::kParserTypeError, e.span,
             "pl.no_dep needs a tensor, got " +
                 (v.is_expr() ? ir::type_text(*v.expr->type) : std::string("a compile-time value")));
    }
    return v;
  }
  ir::OpForm form;
  std::string op;
  if (operation_form(name, &form, &op)) return call_operation(form, op, name, e);
  reject(ErrorClass::kInvalidOperationError, e.span, "'" + name + "' cannot be called in a decorated body");
}

}  // namespace pypto::sema
