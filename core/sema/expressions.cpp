// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Expressions: compile-time folding by the host (01 L-15), scalar operators (L-17 - L-24), operators on tensors and
/// tiles (L-21).
namespace pypto::sema {

using syn::ExprKind;

namespace {

/// Constructs whose call is evaluated by Python like any other compile-time expression.
bool folds_when_called(const std::string& construct) {
    return construct == "pl.dynamic" || construct == "pl.DynVar" || construct == "pl.DataType";
}

HostValue make_int(int64_t v) {
    HostValue h;
    h.kind = HostKind::kInt;
    h.int_value = v;
    return h;
}

void target_names_of(const syn::Expr& t, std::set<std::string>& out) {
    if (t.kind == ExprKind::kName) out.insert(t.text);
    for (const auto& i : t.items) {
        if (i) target_names_of(*i, out);
    }
}

}  // namespace

// ------------------------------------------------------------------ compile time

/// Host value of a name or dotted name that is no DSL variable; kMissing otherwise.
HostValue FunctionBuilder::resolve_host(const syn::Expr& e) {
    if (e.kind == ExprKind::kName) {
        if (const BindingPtr b = find_binding(e.text)) {
            if (b->kind == Binding::Kind::kValue && b->value.is_host()) return b->value.host;
            return {};
        }
        return host_lookup(e.text);
    }
    if (e.kind != ExprKind::kAttribute) return {};
    const HostValue base = resolve_host(*e.items[0]);
    if (base.kind == HostKind::kMissing) return {};
    for (Frame* f = frame_; f; f = f->parent) {
        if (f->host) return f->host->attribute(base, e.text);
    }
    return {};
}

bool FunctionBuilder::is_static(const syn::Expr& e, std::set<std::string>* bound) {
    const auto all = [&](const std::vector<syn::ExprPtr>& list, size_t first = 0) {
        for (size_t i = first; i < list.size(); ++i) {
            if (list[i] && !is_static(*list[i], bound)) return false;
        }
        return true;
    };
    switch (e.kind) {
        case ExprKind::kInt:
        case ExprKind::kFloat:
        case ExprKind::kBool:
        case ExprKind::kNone:
        case ExprKind::kString:
            return true;
        case ExprKind::kName: {
            if (bound && bound->count(e.text)) return true;
            if (const BindingPtr b = find_binding(e.text)) {
                if (b->kind != Binding::Kind::kValue || !b->undefined.empty()) return false;
                const auto v = host_value(b->value);
                return v && v->kind != HostKind::kDynVar;
            }
            // A dynamic symbol is an extent, known at run time only (01 L-31).
            const HostValue h = host_lookup(e.text);
            return h.kind != HostKind::kMissing && h.kind != HostKind::kSymbolic && h.kind != HostKind::kDynVar;
        }
        case ExprKind::kAttribute: {
            if (!is_static(*e.items[0], bound)) return false;
            const HostValue h = resolve_host(*e.items[0]);
            // A missing name below the language's own modules is reported as an unknown operation.
            if (h.kind == HostKind::kModule && h.text.rfind("python:", 0) != 0) {
                return resolve_host(e).kind != HostKind::kMissing;
            }
            if (h.kind != HostKind::kMissing) {
                const HostValue member = resolve_host(e);
                return member.kind != HostKind::kDynVar && member.kind != HostKind::kSymbolic;
            }
            return true;
        }
        case ExprKind::kCall: {
            const HostValue callee = resolve_host(*e.items[0]);
            if (callee.kind == HostKind::kConstruct && !folds_when_called(callee.text)) return false;
            if (callee.kind == HostKind::kFunction || callee.kind == HostKind::kModule) return false;
            if (!is_static(*e.items[0], bound) || !all(e.items, 1)) return false;
            return std::all_of(e.keywords.begin(), e.keywords.end(),
                               [&](const syn::Keyword& k) { return is_static(*k.value, bound); });
        }
        case ExprKind::kListComp: {
            std::set<std::string> inner = bound ? *bound : std::set<std::string>();
            for (const auto& g : e.generators) {
                if (!is_static(*g.iter, &inner)) return false;
                target_names_of(*g.target, inner);
                for (const auto& c : g.ifs) {
                    if (!is_static(*c, &inner)) return false;
                }
            }
            return is_static(*e.items[0], &inner);
        }
        case ExprKind::kSubscript:
        case ExprKind::kSlice:
        case ExprKind::kTuple:
        case ExprKind::kList:
        case ExprKind::kDict:
        case ExprKind::kSet:
        case ExprKind::kUnary:
        case ExprKind::kBinary:
        case ExprKind::kBool2:
        case ExprKind::kCompare:
        case ExprKind::kIfExp:
        case ExprKind::kJoinedStr:
        case ExprKind::kFormatted:
            return all(e.items);
        default:
            return false;
    }
}

/// The Python value of a compile-time value; empty for anything that exists at run time only.
std::optional<HostValue> FunctionBuilder::host_value(const Value& v) {
    HostValue h;
    switch (v.kind) {
        case Value::Kind::kHost: return v.host;
        case Value::Kind::kTuple: {
            h.kind = HostKind::kTuple;
            h.text = v.is_list ? "list" : "tuple";
            h.handle = v.host.kind == HostKind::kTuple ? v.host.handle : -1;
            for (const auto& i : v.items) {
                const auto item = host_value(i);
                if (!item) return std::nullopt;
                h.items.push_back(*item);
            }
            return h;
        }
        case Value::Kind::kExpr:
            switch (v.expr->kind) {
                case ir::ExprKind::kInt:
                    if (v.expr->type->dtype == DType::kBool) {
                        h.kind = HostKind::kBool;
                    } else {
                        h.kind = HostKind::kInt;
                    }
                    h.int_value = v.expr->int_value;
                    return h;
                case ir::ExprKind::kFloat:
                    h.kind = HostKind::kFloat;
                    h.float_value = v.expr->float_value;
                    return h;
                case ir::ExprKind::kString:
                    h.kind = HostKind::kString;
                    h.text = v.expr->text;
                    return h;
                case ir::ExprKind::kNone:
                    h.kind = HostKind::kNone;
                    return h;
                default: return std::nullopt;
            }
        default: return std::nullopt;
    }
}

/// Small integer arithmetic without asking the host.
std::optional<HostValue> FunctionBuilder::fold_small(const syn::Expr& e) {
    constexpr int64_t kLimit = int64_t{1} << 30;
    if (e.kind == ExprKind::kInt && !e.big) return make_int(e.int_value);
    if (e.kind == ExprKind::kName) {
        HostValue h;
        if (const BindingPtr b = find_binding(e.text)) {
            if (b->kind != Binding::Kind::kValue) return std::nullopt;
            const auto v = host_value(b->value);
            if (!v) return std::nullopt;
            h = *v;
        } else {
            h = host_lookup(e.text);
        }
        if (h.kind == HostKind::kInt && !h.big) return h;
        return std::nullopt;
    }
    if (e.kind == ExprKind::kUnary && e.text == "-") {
        auto v = fold_small(*e.items[0]);
        if (!v || v->int_value == INT64_MIN) return std::nullopt;
        return make_int(-v->int_value);
    }
    if (e.kind != ExprKind::kBinary) return std::nullopt;
    const auto a = fold_small(*e.items[0]);
    if (!a) return std::nullopt;
    const auto b = fold_small(*e.items[1]);
    if (!b) return std::nullopt;
    const int64_t x = a->int_value;
    const int64_t y = b->int_value;
    if (std::abs(x) > kLimit || std::abs(y) > kLimit) return std::nullopt;
    if (e.text == "+") return make_int(x + y);
    if (e.text == "-") return make_int(x - y);
    if (e.text == "*") return make_int(x * y);
    if ((e.text == "//" || e.text == "%") && y != 0) {
        int64_t q = x / y;
        if ((x % y != 0) && ((x < 0) != (y < 0))) --q;
        return make_int(e.text == "//" ? q : x - q * y);
    }
    return std::nullopt;
}

void FunctionBuilder::collect_locals(const syn::Expr& e, std::vector<std::pair<std::string, HostValue>>& out,
                                     std::set<std::string>& seen) {
    if (e.kind == ExprKind::kName) {
        if (!seen.insert(e.text).second) return;
        if (const BindingPtr b = find_binding(e.text)) {
            if (b->kind != Binding::Kind::kValue) return;
            if (const auto h = host_value(b->value)) out.emplace_back(e.text, *h);
        } else if (frame_->parent && frame_->host && frame_->host->lookup(e.text).kind == HostKind::kMissing) {
            const HostValue h = host_lookup(e.text);  // a name of the helper's caller
            if (h.kind != HostKind::kMissing) out.emplace_back(e.text, h);
        }
    }
    for (const auto& i : e.items) {
        if (i) collect_locals(*i, out, seen);
    }
    for (const auto& k : e.keywords) {
        if (k.value) collect_locals(*k.value, out, seen);
    }
    for (const auto& g : e.generators) {
        collect_locals(*g.iter, out, seen);
        for (const auto& c : g.ifs) collect_locals(*c, out, seen);
    }
}

Value FunctionBuilder::fold(const syn::Expr& e) {
    if (const auto small = fold_small(e)) return from_host(*small, e.span);
    std::vector<std::pair<std::string, HostValue>> locals;
    std::set<std::string> seen;
    collect_locals(e, locals, seen);
    try {
        const HostValue h = frame_->host->eval(e, locals);
        if (h.kind == HostKind::kMissing) {
            reject(ErrorClass::kParserTypeError, e.span, "Failed to evaluate expression: " + source_text(e));
        }
        return from_host(h, e.span);
    } catch (const HostError& error) {
        Diagnostic d;
        d.cls = ErrorClass::kParserTypeError;
        d.message = "Failed to evaluate expression '" + source_text(e) + "': " + error.type + ": " + error.message;
        d.span = e.span;
        d.host_exception = error.exception;
        throw Failure(std::move(d));
    }
}

Value FunctionBuilder::compile_time(const syn::Expr& e) {
    if (!is_static(e)) {
        reject(ErrorClass::kParserTypeError, e.span,
               "Expression must be compile-time evaluable: " + source_text(e));
    }
    return fold(e);
}

std::optional<int64_t> FunctionBuilder::try_constant_int(const Value& v) {
    if (!v.is_expr() || v.expr->kind != ir::ExprKind::kInt || v.expr->type->dtype == DType::kBool) return std::nullopt;
    return v.expr->int_value;
}

int64_t FunctionBuilder::constant_int(const syn::Expr& e, const std::string& what, ErrorClass cls) {
    const Value v = eval(e);
    const auto n = try_constant_int(v);
    if (!n) reject(cls, e.span, what + ", got " + source_text(e));
    return *n;
}

// ------------------------------------------------------------------ values to expressions

ExprPtr FunctionBuilder::to_expr(const Value& v, const Span& span) {
    switch (v.kind) {
        case Value::Kind::kExpr: return v.expr;
        case Value::Kind::kTuple: {
            std::vector<ExprPtr> items;
            for (const auto& i : v.items) items.push_back(to_argument(i, span));
            return ir::tuple_expr(std::move(items), span);
        }
        case Value::Kind::kHost:
            if (v.host.kind == HostKind::kDynVar) return symbol(v.host.text, span);
            if (v.host.kind == HostKind::kConstruct && v.host.text == "pl.RUNTIME") {
                reject(ErrorClass::kTypeError, span,
                       "pl.RUNTIME is a compile-time marker for a scalar argument and cannot be used in an expression");
            }
            reject(ErrorClass::kParserTypeError, span,
                   "Unsupported closure variable type: " +
                       (v.host.text.empty() ? std::string("object") : v.host.text));
        case Value::Kind::kNothing: break;
    }
    reject(ErrorClass::kParserTypeError, span, "expression produces no value");
}

/// An operand as infer.h wants it: enums and dtypes are constants with a text.
ExprPtr FunctionBuilder::to_argument(const Value& v, const Span& span) {
    if (v.is_host()) {
        if (v.host.kind == HostKind::kDType) {
            auto e = std::make_shared<ir::Expr>();
            e->kind = ir::ExprKind::kDType;
            e->int_value = static_cast<int64_t>(v.host.dtype);
            e->type = ir::none_type();
            e->span = span;
            e->text = std::string(dtype_text(v.host.dtype));
            return e;
        }
        if (v.host.kind == HostKind::kEnum) {
            auto e = std::make_shared<ir::Expr>(*ir::int_const(v.host.int_value, DType::kIndex, span));
            e->text = v.host.text;
            return e;
        }
    }
    return to_expr(v, span);
}

// ------------------------------------------------------------------ evaluation

ExprPtr FunctionBuilder::eval_expr(const syn::Expr& e) { return to_expr(eval(e), e.span); }

Value FunctionBuilder::eval(const syn::Expr& e) {
    struct Depth {
        int& n;
        explicit Depth(int& depth) : n(depth) { ++n; }
        ~Depth() { --n; }
    } depth(expr_depth_);
    switch (e.kind) {
        case ExprKind::kInt:
            if (e.big) {
                reject(ErrorClass::kParserTypeError, e.span, "Integer literal does not fit INDEX (64 bits)");
            }
            return Value::of(ir::int_const(e.int_value, DType::kIndex, e.span, true));
        case ExprKind::kFloat: return Value::of(ir::float_const(e.float_value, DType::kFp32, e.span, true));
        case ExprKind::kBool: return Value::of(ir::bool_const(e.int_value != 0, e.span));
        case ExprKind::kNone: return Value::of(ir::none_const(e.span));
        case ExprKind::kString: return Value::of(ir::string_const(e.text, e.span));
        case ExprKind::kName: return eval_name(e);
        case ExprKind::kAttribute: return eval_attribute(e);
        case ExprKind::kTuple:
        case ExprKind::kList: {
            std::vector<const syn::Expr*> list;
            for (const auto& i : e.items) {
                if (i->kind == ExprKind::kStarred) {
                    reject(ErrorClass::kUnsupportedFeatureError, i->span, "Unsupported expression type: Starred");
                }
                list.push_back(i.get());
            }
            Value v = Value::tuple(eval_operands(list));
            v.is_list = e.kind == ExprKind::kList;
            return v;
        }
        case ExprKind::kCall:
            if (is_static(e)) return fold(e);
            {
                Value v = eval_call(e);
                if (v.kind == Value::Kind::kNothing) {
                    const Callee c = resolve_callee(*e.items[0]);
                    if (c.function) {
                        reject(ErrorClass::kParserTypeError, e.span,
                               "Inline function '" + c.function->name + "' has no return value",
                               "call it as a statement of its own, or let it return something");
                    }
                }
                return v;
            }
        case ExprKind::kSubscript: return eval_subscript(e);
        case ExprKind::kUnary: return eval_unary(e);
        case ExprKind::kBinary:
            if (const auto small = fold_small(e)) return from_host(*small, e.span);
            return is_static(e) ? fold(e) : eval_binary(e);
        case ExprKind::kCompare: return is_static(e) ? fold(e) : eval_compare(e);
        case ExprKind::kBool2: return is_static(e) ? fold(e) : eval_bool(e);
        case ExprKind::kIfExp:
        case ExprKind::kListComp:
        case ExprKind::kJoinedStr:
        case ExprKind::kFormatted:
        case ExprKind::kDict:
        case ExprKind::kSet:
            if (is_static(e)) return fold(e);
            if (e.kind == ExprKind::kIfExp) {
                // A compile-time condition selects; the other side may be anything.
                if (const auto c = constant_condition(*e.items[0])) return eval(*e.items[*c ? 1 : 2]);
            }
            break;
        default: break;
    }
    static const std::map<ExprKind, const char*> kNames = {
        {ExprKind::kIfExp, "IfExp"},       {ExprKind::kListComp, "ListComp"}, {ExprKind::kJoinedStr, "JoinedStr"},
        {ExprKind::kFormatted, "FormattedValue"}, {ExprKind::kDict, "Dict"},  {ExprKind::kSet, "Set"},
        {ExprKind::kLambda, "Lambda"},     {ExprKind::kNamedExpr, "NamedExpr"}, {ExprKind::kStarred, "Starred"},
        {ExprKind::kSlice, "Slice"},       {ExprKind::kEllipsis, "Ellipsis"},
    };
    const auto it = kNames.find(e.kind);
    reject(ErrorClass::kUnsupportedFeatureError, e.span,
           std::string("Unsupported expression type: ") + (it != kNames.end() ? it->second : e.text.c_str()),
           "use names, literals, arithmetic, comparisons, subscripts and calls of pl operations; if it is a "
           "compile-time value, compute it outside the body");
}

/// Operands in order. What an operand reads must not move behind statements that a later operand expands to.
std::vector<Value> FunctionBuilder::eval_operands(const std::vector<const syn::Expr*>& list) {
    size_t last_expansion = 0;
    for (size_t i = 1; i < list.size(); ++i) {
        if (list[i] && has_expansion(*list[i])) last_expansion = i;
    }
    std::vector<Value> out;
    for (size_t i = 0; i < list.size(); ++i) {
        Value v = list[i] ? eval(*list[i]) : Value();
        if (i < last_expansion && v.is_expr() && v.expr->kind == ir::ExprKind::kOp) v = spill(v, "_v", list[i]->span);
        // A task is a statement of its own.
        if (v.is_expr() && v.expr->kind == ir::ExprKind::kCall) v = spill(v, "_r", list[i]->span);
        out.push_back(std::move(v));
    }
    return out;
}

/// Whether evaluating the expression emits statements of its own.
bool FunctionBuilder::has_expansion(const syn::Expr& e) {
    if (e.kind == ExprKind::kCall) {
        const auto& callee = *e.items[0];
        if (callee.kind == ExprKind::kAttribute && is_self(*callee.items[0])) return true;
        const HostValue h = resolve_host(callee);
        if (h.kind == HostKind::kFunction) return true;
        if (h.kind == HostKind::kConstruct && h.text.find("submit") != std::string::npos) return true;
    }
    for (const auto& i : e.items) {
        if (i && has_expansion(*i)) return true;
    }
    for (const auto& k : e.keywords) {
        if (k.value && has_expansion(*k.value)) return true;
    }
    return false;
}

Value FunctionBuilder::eval_name(const syn::Expr& e) { return read_name(e.text, e.span); }

Value FunctionBuilder::eval_attribute(const syn::Expr& e) {
    const auto& base_syntax = *e.items[0];
    if (resolve_host(base_syntax).kind != HostKind::kMissing) {
        const HostValue h = resolve_host(e);
        if (h.kind == HostKind::kMissing) {
            const HostValue base = resolve_host(base_syntax);
            if (base.kind == HostKind::kModule && base.text.rfind("python:", 0) != 0) {
                unknown_operation(e, base.text + "." + e.text);
            }
            if (base.kind == HostKind::kConstruct) {
                reject(ErrorClass::kParserTypeError, e.span, "'" + base.text + "' has no member '" + e.text + "'");
            }
            return fold(e);  // Python says what is wrong
        }
        return from_host(h, e.span);
    }
    const Value base = eval(base_syntax);
    if (base.is_array_like() || (base.is_expr() && base.expr->type->kind == ir::TypeKind::kArray)) {
        if (e.text == "shape") {
            std::vector<Value> dims;
            const ExprPtr array = base.expr->kind == ir::ExprKind::kVar ? base.expr
                                                                       : spill(base, "_v", e.span).expr;
            for (int i = 0; i < base.expr->type->rank(); ++i) dims.push_back(Value::of(extent_of(array, i, e.span)));
            return Value::tuple(std::move(dims));
        }
        if (e.text == "dtype") {
            HostValue h;
            h.kind = HostKind::kDType;
            h.dtype = base.expr->type->dtype;
            return Value::of_host(h);
        }
        reject(ErrorClass::kParserTypeError, e.span,
               ir::type_text(*base.expr->type) + " has no attribute '" + e.text + "'",
               "there is no method-call sugar: write pl." + e.text + "(" + source_text(base_syntax) + ", ...)");
    }
    if (base.is_scalar() && e.text == "base") return base;  // reserve_buffer's handle (02 section 21)
    if (is_static(base_syntax)) return fold(e);
    reject(ErrorClass::kParserTypeError, e.span,
           "Attribute '" + e.text + "' of a " +
               (base.is_expr() ? ir::type_text(*base.expr->type) : std::string("compile-time value")) +
               " is not available");
}

ExprPtr FunctionBuilder::extent_of(const ExprPtr& base, int dim, const Span& span) {
    const ir::Type& t = *base->type;
    const ir::Dim& d = t.shape[static_cast<size_t>(dim)];
    if (d.is_const()) return ir::int_const(d.value, DType::kIndex, span, true);
    // Symbols do not change; any other expression may have been rebound since, so the extent is asked of the value.
    if (d.expr && d.expr->kind == ir::ExprKind::kVar && d.expr->var->kind == ir::VarKind::kSymbol) return d.expr;
    if (t.kind == ir::TypeKind::kArray) return ir::int_const(d.value, DType::kIndex, span, true);
    const Value v = infer(ir::op_row(ir::OpId::k_dim), ir::kFormFlat,
                          {base, ir::int_const(dim, DType::kIndex, span, true)}, span, "pl.dim");
    return v.expr;
}

// ------------------------------------------------------------------ operators

Value FunctionBuilder::eval_unary(const syn::Expr& e) {
    const auto& operand = *e.items[0];
    if (e.text == "-" && operand.kind == ExprKind::kInt && !operand.big) {
        return Value::of(ir::int_const(-operand.int_value, DType::kIndex, e.span, true));
    }
    if (e.text == "-" && operand.kind == ExprKind::kFloat) {
        return Value::of(ir::float_const(-operand.float_value, DType::kFp32, e.span, true));
    }
    if (is_static(e)) return fold(e);
    const Value v = eval(operand);
    if (v.is_array_like()) {
        const std::string help = e.text == "-" ? "pl.neg" : e.text == "~" ? "pl.not_" : "pl.cmp";
        reject(ErrorClass::kTypeError, e.span,
               "Operator '" + e.text + "' does not take a " + ir::type_text(*v.expr->type),
               "use " + help + "(...)");
    }
    const ExprPtr x = to_expr(v, e.span);
    if (x->type->is_scalar() && x->type->dtype == DType::kTaskId) {
        reject(ErrorClass::kParserTypeError, e.span, "Task handles cannot be computed with (operator '" + e.text + "')");
    }
    if (!x->type->is_scalar()) {
        reject(ErrorClass::kParserTypeError, e.span,
               "Operator '" + e.text + "' needs a scalar, got " + ir::type_text(*x->type));
    }
    if (e.text == "+") return v;
    const ir::OpId op = e.text == "-"   ? ir::OpId::k_scalar_neg
                        : e.text == "~" ? ir::OpId::k_scalar_invert
                                        : ir::OpId::k_scalar_not;
    return scalar_operator(op, e.text, x, nullptr, e);
}

Value FunctionBuilder::scalar_operator(ir::OpId op, const std::string& text, ExprPtr lhs, ExprPtr rhs,
                                       const syn::Expr& e) {
    for (const auto& x : {lhs, rhs}) {
        if (!x) continue;
        if (!x->type || !x->type->is_scalar()) {
            reject(ErrorClass::kParserTypeError, e.span,
                   "Operator '" + text + "' needs scalars, got " + (x->type ? ir::type_text(*x->type) : "nothing"));
        }
        if (x->type->dtype == DType::kTaskId) {
            reject(ErrorClass::kParserTypeError, e.span,
                   "Task handles cannot be computed with or compared (operator '" + text + "')",
                   "use them in deps=[...], arrays and assignments only");
        }
    }
    ExprPtr out;
    try {
        out = ir::infer_scalar(op, lhs, rhs, e.span);
    } catch (Failure& f) {
        if (!f.diagnostic().span.known()) f.diagnostic().span = e.span;
        throw;
    }
    const bool arithmetic = op == ir::OpId::k_scalar_add || op == ir::OpId::k_scalar_sub ||
                            op == ir::OpId::k_scalar_mul || op == ir::OpId::k_scalar_truediv;
    if (arithmetic && is_float(out->type->dtype) && out->kind == ir::ExprKind::kOp && place() == ir::kPlaceKernel) {
        program_.warn(e.span, "X-27",
                      "'" + source_text(e) + "' computes on run-time " + std::string(dtype_text(out->type->dtype)) +
                          " scalars in a kernel: computed exactly here, but AI-core scalar units are not built for it "
                          "and device builds may refuse it",
                      "keep index math in integers and do float math on tiles");
    }
    return Value::of(out);
}

Value FunctionBuilder::eval_binary(const syn::Expr& e) {
    const std::vector<Value> v = eval_operands({e.items[0].get(), e.items[1].get()});
    return binary(e.text, v[0], v[1], e);
}

Value FunctionBuilder::binary(const std::string& text, const Value& lhs, const Value& rhs, const syn::Expr& e) {
    static const std::map<std::string, ir::OpId> kOps = {
        {"+", ir::OpId::k_scalar_add},     {"-", ir::OpId::k_scalar_sub},       {"*", ir::OpId::k_scalar_mul},
        {"/", ir::OpId::k_scalar_truediv}, {"//", ir::OpId::k_scalar_floordiv}, {"%", ir::OpId::k_scalar_mod},
        {"<<", ir::OpId::k_scalar_lshift}, {">>", ir::OpId::k_scalar_rshift},
    };
    const auto it = kOps.find(text);
    if (it == kOps.end()) {
        reject(ErrorClass::kUnsupportedFeatureError, e.span, "Unsupported binary operator: " + text,
               "supported on run-time values: + - * / // % << >>; bitwise operations on tiles are pl.and_, pl.or_, "
               "pl.xor");
    }
    if (lhs.is_array_like() || rhs.is_array_like()) return array_operator(text, lhs, rhs, e);
    if (lhs.is_tuple() && rhs.is_tuple() && text == "+") {
        Value t = lhs;
        t.items.insert(t.items.end(), rhs.items.begin(), rhs.items.end());
        t.host = {};
        return t;
    }
    return scalar_operator(it->second, text, to_expr(lhs, e.span), to_expr(rhs, e.span), e);
}

Value FunctionBuilder::array_operator(const std::string& text, const Value& lhs, const Value& rhs,
                                      const syn::Expr& e) {
    static const std::map<std::string, ir::OpId> kOps = {{"+", ir::OpId::k_add}, {"-", ir::OpId::k_sub},
                                                         {"*", ir::OpId::k_mul}, {"/", ir::OpId::k_div}};
    static const std::map<std::string, int> kCompare = {{"==", 0}, {"!=", 1}, {"<", 2}, {"<=", 3}, {">", 4}, {">=", 5}};
    static const std::map<int, int> kSwapped = {{0, 0}, {1, 1}, {2, 4}, {3, 5}, {4, 2}, {5, 3}};
    const bool scalar_left = !lhs.is_array_like();
    ExprPtr a = to_expr(lhs, e.span);
    ExprPtr b = to_expr(rhs, e.span);
    if (const auto it = kCompare.find(text); it != kCompare.end()) {
        int code = it->second;
        if (scalar_left) {
            std::swap(a, b);
            code = kSwapped.at(code);
        }
        return infer(ir::op_row(ir::OpId::k_cmp), ir::kFormFlat,
                     {a, b, ir::int_const(code, DType::kIndex, e.span, true)}, e.span, "pl.cmp");
    }
    const auto it = kOps.find(text);
    if (it == kOps.end()) {
        static const std::map<std::string, const char*> kHelp = {
            {"//", "pl.div and pl.cast"}, {"%", "pl.fmod"}, {"<<", "pl.shls"}, {">>", "pl.shrs"},
            {"and", "pl.and_"},           {"or", "pl.or_"}};
        const auto help = kHelp.find(text);
        reject(ErrorClass::kTypeError, e.span,
               "Operator '" + text + "' does not take tensors or tiles (" + ir::type_text(*a->type) + ", " +
                   ir::type_text(*b->type) + ")",
               help == kHelp.end() ? std::string() : std::string("use ") + help->second);
    }
    if (scalar_left) {
        if (text == "-" || text == "/") {
            reject(ErrorClass::kTypeError, e.span,
                   "A scalar on the left of '" + text + "' with a " + ir::type_text(*b->type) + " on the right is not "
                   "supported",
                   text == "-" ? "write pl.add(pl.neg(t), s)" : "write pl.mul(pl.recip(t), s)");
        }
        std::swap(a, b);
    }
    return infer(ir::op_row(it->second), ir::kFormFlat, {a, b}, e.span,
                 std::string("pl.") + ir::op_row(it->second).name);
}

Value FunctionBuilder::eval_compare(const syn::Expr& e) {
    for (const auto& op : e.ops) {
        if (op == "in" || op == "not in" || op == "is" || op == "is not") {
            reject(ErrorClass::kUnsupportedFeatureError, e.span, "Unsupported comparison: " + op,
                   "use == != < <= > >=");
        }
    }
    if (e.ops.size() != 1) {
        reject(ErrorClass::kParserSyntaxError, e.span, "Only simple comparisons supported",
               "write (a < b) and (b < c)");
    }
    const std::vector<Value> v = eval_operands({e.items[0].get(), e.items[1].get()});
    if (v[0].is_array_like() || v[1].is_array_like()) return array_operator(e.ops[0], v[0], v[1], e);
    if (v[0].is_host() && v[1].is_host() && (e.ops[0] == "==" || e.ops[0] == "!=")) {
        // Compile-time objects, such as a.dtype == pl.FP32.
        const auto& a = v[0].host;
        const auto& b = v[1].host;
        if (a.kind == b.kind && (a.kind == HostKind::kDType || a.kind == HostKind::kEnum)) {
            const bool equal = a.kind == HostKind::kDType ? a.dtype == b.dtype : a.text == b.text;
            return Value::of(ir::bool_const(equal == (e.ops[0] == "=="), e.span));
        }
    }
    static const std::map<std::string, ir::OpId> kOps = {
        {"==", ir::OpId::k_scalar_eq}, {"!=", ir::OpId::k_scalar_ne}, {"<", ir::OpId::k_scalar_lt},
        {"<=", ir::OpId::k_scalar_le}, {">", ir::OpId::k_scalar_gt},  {">=", ir::OpId::k_scalar_ge}};
    return scalar_operator(kOps.at(e.ops[0]), e.ops[0], to_expr(v[0], e.items[0]->span),
                           to_expr(v[1], e.items[1]->span), e);
}

Value FunctionBuilder::eval_bool(const syn::Expr& e) {
    std::vector<const syn::Expr*> list;
    for (const auto& i : e.items) list.push_back(i.get());
    const std::vector<Value> v = eval_operands(list);
    const ir::OpId op = e.text == "and" ? ir::OpId::k_scalar_and : ir::OpId::k_scalar_or;
    for (const auto& x : v) {
        if (x.is_array_like()) return array_operator(e.text, v[0].is_array_like() ? v[0] : x, x, e);
    }
    Value out = Value::of(to_expr(v[0], e.items[0]->span));
    for (size_t i = 1; i < v.size(); ++i) {
        out = scalar_operator(op, e.text, out.expr, to_expr(v[i], e.items[i]->span), e);
    }
    return out;
}

/// A condition that is known while compiling selects its arm (01 L-91).
std::optional<bool> FunctionBuilder::constant_condition(const syn::Expr& e) {
    if (is_static(e)) {
        const Value v = fold(e);
        if (v.is_expr() && v.expr->kind == ir::ExprKind::kInt && v.expr->type->dtype == DType::kBool) {
            return v.expr->int_value != 0;
        }
    }
    return std::nullopt;
}

ExprPtr FunctionBuilder::condition(const syn::Expr& e, const char* what) {
    const Value v = eval(e);
    if (v.is_scalar() && v.expr->type->dtype == DType::kBool) return v.expr;
    std::string got = "a compile-time value";
    if (v.is_expr() && v.expr->type) got = ir::type_text(*v.expr->type);
    if (v.is_tuple()) got = "a tuple";
    reject(ErrorClass::kParserTypeError, e.span,
           std::string(what) + " condition must be a Bool-typed scalar expression, got " + got,
           "compare explicitly, for instance '" + source_text(e) + " != 0'");
}

}  // namespace pypto::sema
