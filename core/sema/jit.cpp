// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/sema/builder.h"

/// Specialisation of JIT functions (01 section 6).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

FunctionBuilder::JitAnnotation FunctionBuilder::jit_annotation(const syn::Param& param) {
  JitAnnotation out;
  if (!param.annotation) return out;
  const Annotation a = annotation(*param.annotation, AnnotationUse::kJitParam);
  if (a.ignored) return out;
  out.present = true;
  out.direction = a.direction;
  out.window = a.window || (a.type && a.type->is_window());
  out.type = a.type;
  out.bare = a.bare_tensor && !a.type;
  if (a.is_tuple) reject(ErrorClass::kParserTypeError, param.span, "Parameter type cannot be a tuple");
  return out;
}

namespace {

/// Symbol of dimension `dim` of a parameter of rank `rank`, or empty.
std::string dynamic_name(const ProgramBuilder::DynamicDims& dims, const std::string& param, int dim,
                         int rank) {
  const auto p = dims.find(param);
  if (p == dims.end()) return {};
  for (const int key : {dim, dim - rank}) {
    const auto it = p->second.find(key);
    if (it != p->second.end()) return it->second;
  }
  return {};
}

bool reinterprets(DType want, DType have) {
  if (want == DType::kBool) return have == DType::kUInt8 || have == DType::kInt8;
  return is_int(want) && is_int(have) && dtype_bits(want) == dtype_bits(have) &&
         is_unsigned_int(want) != is_unsigned_int(have) && dtype_bits(want) >= 16;
}

}  // namespace

namespace {

/// Type of a baked parameter and its record in the module.
void bake(ir::Module& module, const syn::Param& p, const FunctionBuilder::JitAnnotation& a,
          FunctionBuilder::ParamSpec& spec, size_t index) {
  const ExprPtr& c = spec.constant;
  if (a.type && a.type->is_scalar()) {
    spec.type = a.type;
    if (c->kind == ir::ExprKind::kInt && is_int(a.type->dtype) && c->type->dtype != DType::kBool) {
      try {
        (void)ir::convert_scalar(c, a.type->dtype, "parameter '" + p.name + "'");
      } catch (Failure& f) {
        if (!f.diagnostic().span.known()) f.diagnostic().span = p.span;
        throw;
      }
    }
  } else if (c->kind == ir::ExprKind::kFloat) {
    spec.type = ir::scalar_type(DType::kFp32);
  } else {
    spec.type = ir::scalar_type(c->type->dtype == DType::kBool ? DType::kBool : DType::kInt64);
  }
  ir::BakedScalar baked;
  baked.param = static_cast<int>(index);
  baked.int_value = c->int_value;
  baked.float_value = static_cast<double>(c->int_value);
  if (c->kind == ir::ExprKind::kFloat) {
    baked.float_value = c->float_value;
    // For an integer parameter, which compares integers: 1.0 is 1.
    if (std::fabs(c->float_value) < 9.2e18) baked.int_value = static_cast<int64_t>(c->float_value);
  }
  module.baked.push_back(baked);
}

}  // namespace

ir::FunctionPtr ProgramBuilder::build_entry(const std::shared_ptr<FunctionSource>& source,
                                            const std::vector<ArgSpec>& args) {
  const auto& def = *source->def;
  const std::string prefix = "@pl.jit function '" + source->name + "': ";
  enter(source, def.span);
  reject_signature(def);
  if (!def.params.empty() && def.params.front().name == "self") {
    reject(ErrorClass::kParserSyntaxError, def.params.front().span,
           "@pl.jit function '" + def.name + "' declares 'self', but is no method",
           "define it outside the class, or without 'self' under @staticmethod");
  }
  const DynamicDims& dims = dynamic_dims(source);
  FunctionBuilder b(*this, source);
  size_t index = 0;
  for (const auto& p : def.params) {
    if (p.name == "self" && &p == &def.params.front()) continue;
    const ArgSpec arg = index < args.size() ? args[index] : ArgSpec();
    FunctionBuilder::JitAnnotation a = b.jit_annotation(p);
    FunctionBuilder::ParamSpec spec;
    spec.direction = a.direction;
    spec.annotated = a.present;
    auto kind = arg.kind;
    const auto type_error = [&](const std::string& text) {
      reject(ErrorClass::kTypeError, p.span, prefix + text);
    };
    switch (kind) {
      case ArgSpec::Kind::kTensor: {
        if (a.type && !a.type->is_tensor()) {
          type_error("parameter '" + p.name + "' is declared " + ir::type_text(*a.type) +
                     " but received an array of type " + std::string(dtype_text(arg.dtype)));
        }
        const int rank = static_cast<int>(arg.shape.size());
        const auto text = [&] {
          std::string s = "Tensor[[";
          for (int i = 0; i < rank; ++i)
            s += (i ? ", " : "") + std::to_string(arg.shape[static_cast<size_t>(i)]);
          return s + "], " + std::string(dtype_text(arg.dtype)) + "]";
        };
        if (a.type && a.type->rank() != rank) {
          type_error("parameter '" + p.name + "' expects rank " + std::to_string(a.type->rank()) + " (" +
                     ir::type_text(*a.type) + "), got rank " + std::to_string(rank) + " (" + text() + ")");
        }
        auto t = std::make_shared<ir::Type>(
            a.type ? *a.type
                   : *ir::tensor_type({}, arg.dtype,
                                      a.window ? ir::TensorPlace::kWindow : ir::TensorPlace::kGlobal));
        bool differs = false;
        ir::Shape shape;
        for (int i = 0; i < rank; ++i) {
          const auto at = static_cast<size_t>(i);
          const std::string symbol = dynamic_name(dims, p.name, i, rank);
          if (a.type && !a.type->shape[at].is_const()) {
            shape.push_back(a.type->shape[at]);
          } else if (!symbol.empty()) {
            shape.push_back(ir::Dim(b.symbol(symbol, p.span)));
          } else {
            if (a.type && a.type->shape[at].value != arg.shape[at]) differs = true;
            shape.push_back(ir::Dim(arg.shape[at]));
          }
        }
        t->shape = shape;
        if (a.type && !same_dtype(a.type->dtype, arg.dtype)) {
          if (!reinterprets(a.type->dtype, arg.dtype)) {
            differs = true;
            t->dtype = arg.dtype;
          }
        }
        if (!a.type) t->dtype = arg.dtype;
        if (differs) {
          warn(p.span, "W-JIT-ARG-MISMATCH",
               "Parameter '" + p.name + "' of '" + source->name + "' is annotated " + ir::type_text(*a.type) +
                   " but the argument is " + text() + "; the argument governs",
               "annotate what is passed, or use pl.dynamic for extents that vary");
        }
        spec.type = t;
        break;
      }
      case ArgSpec::Kind::kInt:
      case ArgSpec::Kind::kFloat:
      case ArgSpec::Kind::kBool: {
        if (a.bare || (a.type && !a.type->is_scalar())) {
          type_error("parameter '" + p.name + "' is declared " +
                     (a.type ? ir::type_text(*a.type) : std::string("Tensor")) + " but received a number");
        }
        if (kind == ArgSpec::Kind::kInt) {
          spec.constant = ir::int_const(arg.int_value, DType::kIndex, p.span, true);
        } else if (kind == ArgSpec::Kind::kFloat) {
          spec.constant = ir::float_const(arg.float_value, DType::kFp32, p.span, true);
        } else {
          spec.constant = ir::bool_const(arg.int_value != 0, p.span);
        }
        break;
      }
      case ArgSpec::Kind::kDefault: {
        if (p.default_value) {
          const Value v = b.eval(*p.default_value);
          if (v.is_expr() && (v.expr->kind == ir::ExprKind::kInt || v.expr->kind == ir::ExprKind::kFloat)) {
            spec.constant = v.expr;
          }
        }
        if (!spec.constant) {
          if (arg.float_value != 0 && arg.int_value == 0) {
            spec.constant = ir::float_const(arg.float_value, DType::kFp32, p.span, true);
          } else {
            spec.constant = ir::int_const(arg.int_value, DType::kIndex, p.span, true);
          }
        }
        break;
      }
      case ArgSpec::Kind::kRuntime:
        if (!a.type || !a.type->is_scalar()) {
          type_error("'" + p.name + "' received pl.RUNTIME but is no scalar parameter");
        }
        spec.type = a.type;
        break;
      case ArgSpec::Kind::kSignature: {
        if (!a.present) {
          type_error("cannot infer parameter '" + p.name +
                     "' from the signature: it has no annotation and only an argument could type it");
        }
        if (a.bare) {
          type_error("cannot specialize from the signature because parameter '" + p.name +
                     "' has a bare 'pl.Tensor' annotation with no shape");
        }
        if (a.type && a.type->is_scalar() && a.type->dtype != DType::kTaskId) {
          type_error("scalar parameter '" + p.name + "' has no value: pass " + p.name + "=<value>, or " +
                     p.name + "=pl.RUNTIME to keep it a run-time scalar");
        }
        auto t = std::make_shared<ir::Type>(*a.type);
        for (int i = 0; i < t->rank(); ++i) {
          const std::string symbol = dynamic_name(dims, p.name, i, t->rank());
          if (!symbol.empty() && t->is_tensor()) {
            t->shape[static_cast<size_t>(i)] = ir::Dim(b.symbol(symbol, p.span));
          }
        }
        spec.type = t;
        break;
      }
    }
    if (spec.constant) {
      bake(*module, p, a, spec, index);
    }
    b.add_param(p, spec);
    ++index;
  }
  b.read_return_annotation(true);
  b.decide_place();
  b.build_body();
  leave();
  facts_[b.fn.get()] = std::move(b.facts);
  module->functions.push_back(b.fn);
  return b.fn;
}

ir::FunctionPtr ProgramBuilder::specialise(const std::shared_ptr<FunctionSource>& source,
                                           const std::vector<Value>& values,
                                           const std::vector<std::string>& arg_names, const Span& call,
                                           std::vector<ExprPtr>* constants) {
  source->ensure_loaded();
  if (!source->def) {
    reject(ErrorClass::kOSError, call, "The source of JIT function '" + source->name + "' is not available");
  }
  const auto& def = *source->def;
  reject_signature(def);
  const DynamicDims& dims = dynamic_dims(source);
  FunctionBuilder b(*this, source);
  std::string key;
  std::vector<std::pair<const ir::Var*, std::string>> passed;  // caller's symbols by the name they get here
  std::vector<const syn::Param*> params;
  for (const auto& p : def.params) {
    if (p.name == "self" && &p == &def.params.front()) continue;
    params.push_back(&p);
  }
  std::vector<Diagnostic> warnings;
  std::vector<FunctionBuilder::ParamSpec> specs;
  for (size_t i = 0; i < params.size(); ++i) {
    const syn::Param& p = *params[i];
    const Value& v = i < values.size() ? values[i] : Value();
    const FunctionBuilder::JitAnnotation a = b.jit_annotation(p);
    FunctionBuilder::ParamSpec spec;
    spec.direction = a.direction;
    spec.annotated = a.present;
    const ir::Type* t = v.type();
    if (t && t->is_tensor()) {
      if (a.type && (!a.type->is_tensor() || a.type->rank() != t->rank())) {
        spec.type = a.type;  // the argument is brought to it, or rejected, where it is passed
      } else {
        auto type = std::make_shared<ir::Type>(a.type ? *a.type
                                                      : *ir::tensor_type({}, t->dtype,
                                                                         t->is_window() || a.window
                                                                             ? ir::TensorPlace::kWindow
                                                                             : ir::TensorPlace::kGlobal,
                                                                         t->layout));
        ir::Shape shape;
        bool differs = false;
        for (int d = 0; d < t->rank(); ++d) {
          const auto at = static_cast<size_t>(d);
          const std::string symbol = dynamic_name(dims, p.name, d, t->rank());
          const ir::Dim& have = t->shape[at];
          if (a.type && !a.type->shape[at].is_const()) {
            shape.push_back(a.type->shape[at]);
          } else if (!symbol.empty()) {
            shape.push_back(ir::Dim(b.symbol(symbol, p.span)));
          } else if (have.is_const()) {
            if (a.type && a.type->shape[at].value != have.value) differs = true;
            shape.push_back(have);
          } else {
            // The caller's extent is not known: a symbol of this function, one per symbol of the caller.
            std::string name = p.name + "_d" + std::to_string(d);
            const bool plain = have.expr && have.expr->kind == ir::ExprKind::kVar;
            if (plain) {
              const auto it = std::find_if(passed.begin(), passed.end(),
                                           [&](const auto& x) { return x.first == have.expr->var.get(); });
              if (it != passed.end())
                name = it->second;
              else
                passed.emplace_back(have.expr->var.get(), name);
            }
            shape.push_back(ir::Dim(b.symbol(name, p.span)));
          }
        }
        type->shape = shape;
        if (differs) {
          Diagnostic d;
          d.id = "W-JIT-ARG-MISMATCH";
          d.message = "Parameter '" + p.name + "' of '" + source->name + "' is annotated " +
                      ir::type_text(*a.type) + " but the argument '" + arg_names[i] + "' is " +
                      ir::type_text(*t) + "; the argument governs";
          d.span = p.span;
          d.notes.push_back({"the call", call});
          warnings.push_back(std::move(d));
        }
        spec.type = type;
        // A window has the declared number of elements or does not fit (03 W-23, X-15): the call says so.
        const bool counts = a.type && t->is_window() && source->decl == DeclKind::kJit && differs;
        if (counts && a.type->static_elements() >= 0 && t->static_elements() >= 0) {
          spec.type = a.type;
          warnings.pop_back();
        }
      }
    } else if (t && t->is_scalar() && t->dtype != DType::kTaskId) {
      const bool constant = v.expr->kind == ir::ExprKind::kInt || v.expr->kind == ir::ExprKind::kFloat;
      if (a.type) {
        spec.type = a.type;
      } else {
        spec.type =
            ir::scalar_type(v.expr->untyped && v.expr->kind == ir::ExprKind::kInt ? DType::kInt64 : t->dtype);
      }
      if (constant && spec.type->is_scalar()) {
        auto literal = std::make_shared<ir::Expr>(*v.expr);
        literal->span = p.span;
        spec.constant = literal;
        ExprPtr passed_value;
        try {
          passed_value = ir::convert_scalar(v.expr, spec.type->dtype,
                                            "parameter '" + p.name + "' of '" + source->name + "'");
        } catch (Failure& f) {
          if (!f.diagnostic().span.known()) f.diagnostic().span = call;
          throw;
        }
        (*constants)[i] = passed_value;
      }
    } else if (t && a.type) {
      spec.type = a.type;
    } else if (t && (t->kind == ir::TypeKind::kCommCtx || t->kind == ir::TypeKind::kPtr ||
                     t->kind == ir::TypeKind::kAsyncEvent || t->kind == ir::TypeKind::kPrefetchContext)) {
      spec.type = ir::simple_type(t->kind);
    } else if (v.is_host() && v.host.kind == HostKind::kDynVar) {
      spec.type = a.type ? a.type : ir::scalar_type(DType::kIndex);
    } else if (a.type) {
      spec.type = a.type;
    } else {
      const std::string argument = i < arg_names.size() ? arg_names[i] : "";
      const std::string why = argument.empty() && !t
                                  ? "the argument is left out and the annotation gives no shape"
                                  : "argument '" + argument + "' has " + (t ? ir::type_text(*t) : "no type");
      reject(ErrorClass::kValueError, call,
             "missing inferred tensor metadata for parameter '" + p.name + "' of '" + source->name + "' (" +
                 why + ")",
             "annotate the parameter, or pass a tensor whose type is known");
    }
    key += "|" + ir::type_text(*spec.type, true) + (spec.type->is_window() ? "w" : "") + "@" +
           std::to_string(static_cast<int>(spec.type->layout));
    if (spec.type->is_tensor()) {
      for (const auto& d : spec.type->shape) key += "," + ir::dim_text(d);
    }
    if (spec.constant) {
      key += "=" + std::to_string(static_cast<int>(spec.constant->kind)) + ":" +
             std::to_string(spec.constant->int_value) + ":" + std::to_string(spec.constant->float_value) +
             ":" + std::to_string(static_cast<int>(spec.constant->type->dtype)) +
             (spec.constant->untyped ? "u" : "");
    }
    specs.push_back(std::move(spec));
    // Later annotations may mention this parameter (01 L-32).
    b.add_param(p, specs.back());
  }
  for (auto& w : warnings) warn(std::move(w));
  for (const auto& s : specialisations_[source.get()]) {
    if (s.key == key) return s.function;
  }
  enter(source, call);
  if (source->decl == DeclKind::kJitExtern && b.fn->type == ir::FunctionType::kOpaque) {
    b.fn->type = ir::FunctionType::kAIV;
    b.fn->level = ir::Level::kAIV;
  }
  b.read_return_annotation(true);  // messages name the function as its author does (04 JIT-16)
  b.decide_place();
  b.build_body();
  leave();
  b.fn->name = unique_function_name(source->name);  // callees of the same name were added meanwhile
  facts_[b.fn.get()] = std::move(b.facts);
  module->functions.push_back(b.fn);
  specialisations_[source.get()].push_back({key, b.fn, *constants});
  return b.fn;
}

}  // namespace pypto::sema
