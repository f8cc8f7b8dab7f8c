// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "core/sema/builder.h"

/// Types of arguments and results of a call (01 L-47 - L-50, 03 T-2, D-34, D-35, W-23).
namespace pypto::sema {

/// One argument against its parameter (01 L-47, 03 T-2, D-34, D-35, W-23).
ExprPtr FunctionBuilder::convert_argument(const ir::Function& callee, size_t i, const Value& value,
                                          const Span& span, bool dispatch) {
  const VarPtr& param = callee.params[i];
  const ir::Type& want = *param->type;
  const std::string where = "Parameter '" + param->name + "' of function '" + callee.name + "'";
  const auto wrong = [&](const std::string& got, const std::string& hint = {}) {
    reject(ErrorClass::kParserTypeError, span, where + " expects " + ir::type_text(want) + ", got " + got,
           hint, {{"the parameter", param->span}});
  };
  if (!value.is_expr() && !(value.is_host() && value.host.kind == HostKind::kDynVar)) {
    wrong(value.is_tuple()  ? "a tuple"
          : value.is_host() ? "a compile-time object (" + value.host.text + ")"
                            : "nothing");
  }
  ExprPtr e = to_expr(value, span);
  if (e->kind == ir::ExprKind::kCall) e = spill(Value::of(e), "_r", span).expr;
  const ir::Type& have = *e->type;
  if (have.kind == ir::TypeKind::kArray) {
    reject(ErrorClass::kParserTypeError, span, where + ": pl.Array values cannot cross function boundaries",
           "write the elements to a tensor, or use an inline helper");
  }
  if (have.is_scalar() && have.dtype == DType::kTaskId) {
    reject(ErrorClass::kParserTypeError, span, where + ": task handles cannot be passed to kernels",
           "state the dependence with deps=[...]");
  }
  if (have.kind == ir::TypeKind::kPtr && want.is_tensor()) {
    reject(ErrorClass::kParserTypeError, span,
           "X-3: " + where + " got a window buffer handle (Ptr), not a view of it",
           "call pld.window(buf, shape, dtype=...)", {{"the parameter", param->span}});
  }
  if (want.is_tensor() && have.is_tensor() && want.is_window() != have.is_window()) {
    reject(ErrorClass::kParserTypeError, span,
           "X-3: callee '" + callee.name + "', parameter '" + param->name + "': declared " +
               (want.is_window() ? "DistributedTensor" : "Tensor") + " (" + ir::type_text(want, true) +
               "), the argument is a " + (have.is_window() ? "DistributedTensor" : "Tensor") + " (" +
               ir::type_text(have, true) + ")",
           want.is_window() ? "shared data must live in a window: allocate one and pass pld.window(...)"
                            : "annotate the parameter with pld.DistributedTensor[...]",
           {{"the parameter", param->span}});
  }
  if (want.kind != have.kind)
    wrong(ir::type_text(have), have.is_tile() ? "store the tile to a tensor first" : "");
  if (want.is_scalar()) {
    try {
      return ir::convert_scalar(e, want.dtype, "parameter '" + param->name + "' of '" + callee.name + "'");
    } catch (Failure& f) {
      if (!f.diagnostic().span.known()) f.diagnostic().span = span;
      throw;
    }
  }
  if (!want.is_tensor()) return e;
  const bool signs = dtype_bits(want.dtype) == dtype_bits(have.dtype) && is_int(want.dtype) &&
                     is_int(have.dtype) && dispatch && !have.is_window();  // 03 W-23
  if (!same_dtype(want.dtype, have.dtype) && !signs) {
    if (dispatch) {
      reject(ErrorClass::kParserTypeError, span,
             "X-15: " + where + " expects " + ir::type_text(want) + ", got " + ir::type_text(have) +
                 ": dtype " + std::string(dtype_text(have.dtype)) + " for " +
                 std::string(dtype_text(want.dtype)),
             "make them equal", {{"the parameter", param->span}});
    }
    wrong(ir::type_text(have), "cast the data in a kernel first");
  }
  const auto is_one = [](const ir::Dim& d) { return d.is_const() && d.value == 1; };
  const auto reshaped = [&](const ir::Shape& shape) {
    std::vector<ExprPtr> dims;
    for (const auto& d : shape) {
      dims.push_back(d.is_const() ? ir::int_const(d.value, DType::kIndex, span) : d.expr);
    }
    auto t = std::make_shared<ir::Type>(have);
    t->shape = shape;
    t->valid.clear();
    t->tensor_view = nullptr;
    return ir::op_expr(ir::OpId::k_reshape, {e, ir::tuple_expr(std::move(dims), span)}, {}, t, span);
  };
  if (want.rank() == have.rank()) {
    bool differs = false;
    for (size_t d = 0; d < want.shape.size(); ++d) {
      if (want.shape[d].is_const() && have.shape[d].is_const() &&
          want.shape[d].value != have.shape[d].value) {
        differs = true;
      }
    }
    if (!differs) return e;
    if (dispatch) {
      const bool packed = have.is_window();
      const int64_t a = want.static_elements();
      const int64_t b = have.static_elements();
      if (packed && a >= 0 && a == b) return reshaped(want.shape);
      reject(ErrorClass::kParserTypeError, span,
             "X-15: callee '" + callee.name + "', parameter '" + param->name + "' has shape " +
                 ir::shape_text(want.shape) + " (" + std::to_string(a) +
                 " elements), the argument has shape " + ir::shape_text(have.shape) + " (" +
                 std::to_string(b) + " elements)",
             "make them equal", {{"the parameter", param->span}});
    }
    program_.warn(span, "W-ARG-EXTENT",
                  where + " is declared " + ir::type_text(want) + " but the argument is " +
                      ir::type_text(have) + "; the callee works on the argument's storage");
    return e;
  }
  // Leading extents of 1 may be missing on either side.
  ir::Shape a = want.shape;
  ir::Shape b = have.shape;
  while (a.size() > b.size() && is_one(a.front())) a.erase(a.begin());
  while (b.size() > a.size() && is_one(b.front())) b.erase(b.begin());
  bool fits = a.size() == b.size();
  for (size_t d = 0; fits && d < a.size(); ++d) {
    if (a[d].is_const() && b[d].is_const() && a[d].value != b[d].value) fits = false;
  }
  if (fits) {
    ir::Shape shape = b;
    while (shape.size() < want.shape.size()) shape.insert(shape.begin(), ir::Dim(1));
    bool known = true;
    for (const auto& d : shape) known = known && (d.is_const() || d.expr);
    if (known) return reshaped(shape);
    return e;
  }
  const int64_t x = want.static_elements();
  const int64_t y = have.static_elements();
  if (dispatch && have.is_window() && x >= 0 && (y < 0 || x == y)) return reshaped(want.shape);
  if (dispatch && have.is_window() && y >= 0 && x < 0) {
    // One dynamic extent of the parameter follows from the element count.
    int64_t known = 1;
    int unknown = 0;
    for (const auto& d : want.shape) {
      if (d.is_const())
        known *= d.value;
      else
        ++unknown;
    }
    if (unknown == 1 && y % known == 0) {
      ir::Shape shape = want.shape;
      for (auto& d : shape) {
        if (!d.is_const()) d = ir::Dim(y / known);
      }
      return reshaped(shape);
    }
  }
  if (dispatch && have.is_window() && x < 0 && y < 0) {
    // Both hold the world size, say: drop or add extents of 1.
    ir::Shape dims;
    for (const auto& d : have.shape) {
      if (!is_one(d)) dims.push_back(d);
    }
    ir::Shape shape = want.shape;
    size_t k = 0;
    bool ok = true;
    for (auto& d : shape) {
      if (is_one(d)) continue;
      if (k >= dims.size()) {
        ok = false;
        break;
      }
      d = dims[k++];
    }
    if (ok && k == dims.size()) return reshaped(shape);
  }
  reject(ErrorClass::kParserTypeError, span,
         (dispatch ? "X-15: " : "") + where + " has rank " + std::to_string(want.rank()) + " (" +
             ir::type_text(want) + ") but the argument has rank " + std::to_string(have.rank()) + " (" +
             ir::type_text(have) + ")",
         "reshape the argument", {{"the parameter", param->span}});
}

/// Types of a call's results: an output parameter is the argument's own storage (01 L-50).
std::vector<TypePtr> FunctionBuilder::result_types(const ir::Function& callee,
                                                   const std::vector<ExprPtr>& args) {
  std::map<const ir::Var*, ir::Dim> extents;
  for (size_t i = 0; i < callee.params.size(); ++i) {
    const ir::Type& p = *callee.params[i]->type;
    if (p.is_scalar()) {
      if (args[i]) {
        const auto c = ir::const_int(args[i]);
        extents[callee.params[i].get()] = c ? ir::Dim(*c) : ir::Dim(args[i]);
      }
      continue;
    }
    if (!p.is_tensor() || !args[i] || !args[i]->type->is_tensor()) continue;
    for (size_t d = 0; d < p.shape.size() && d < args[i]->type->shape.size(); ++d) {
      const auto& e = p.shape[d].expr;
      if (e && e->kind == ir::ExprKind::kVar && !extents.count(e->var.get())) {
        extents[e->var.get()] = args[i]->type->shape[d];
      }
    }
  }
  const std::function<ir::Dim(const ExprPtr&)> translate = [&](const ExprPtr& e) -> ir::Dim {
    if (!e) return {};
    if (const auto c = ir::const_int(e)) return ir::Dim(*c);
    if (e->kind == ir::ExprKind::kVar) {
      const auto it = extents.find(e->var.get());
      return it == extents.end() ? ir::Dim() : it->second;
    }
    if (e->kind != ir::ExprKind::kOp || e->args.empty() || e->args.size() > 2) return {};
    std::vector<ExprPtr> parts;
    for (const auto& a : e->args) {
      const ir::Dim d = translate(a);
      if (d.is_const())
        parts.push_back(ir::int_const(d.value, DType::kIndex));
      else if (d.expr)
        parts.push_back(d.expr);
      else
        return {};
    }
    const std::string name = ir::op_row(e->op).name;
    if (std::string(ir::op_row(e->op).sig) != "lhs, rhs" && parts.size() == 2) return {};
    if (ir::op_row(e->op).forms != ir::kFormInternal) return {};
    const ExprPtr out =
        ir::simplify(ir::infer_scalar(e->op, parts[0], parts.size() > 1 ? parts[1] : nullptr, {}));
    const auto c = ir::const_int(out);
    return c ? ir::Dim(*c) : ir::Dim(out);
  };
  std::vector<TypePtr> out;
  for (size_t k = 0; k < callee.return_types.size(); ++k) {
    const TypePtr& r = callee.return_types[k];
    const int root = k < callee.return_params.size() ? callee.return_params[k] : -1;
    if (root >= 0 && args[static_cast<size_t>(root)]) {
      const TypePtr& a = args[static_cast<size_t>(root)]->type;
      if (r->rank() == a->rank() &&
          same_dims(r->shape, callee.params[static_cast<size_t>(root)]->type->shape)) {
        out.push_back(a);
        continue;
      }
    }
    auto t = std::make_shared<ir::Type>(*r);
    for (auto& d : t->shape) {
      if (!d.is_const()) d = translate(d.expr);
    }
    t->valid.clear();
    t->storage = nullptr;
    if (t->is_tensor()) {
      if (!t->is_window()) t->place = ir::TensorPlace::kGlobal;
      t->storage = root >= 0 && args[static_cast<size_t>(root)]
                       ? args[static_cast<size_t>(root)]->type->storage
                       : new_storage("");
    }
    out.push_back(t);
  }
  return out;
}

/// Type of an output argument that was left out, from the extents of those that were given.
std::vector<TypePtr> FunctionBuilder::omitted_type(const ir::Function& callee, size_t i,
                                                   const std::vector<ExprPtr>& given) {
  ir::Function probe;
  probe.params = callee.params;
  auto t = std::make_shared<ir::Type>(*callee.params[i]->type);
  probe.return_types = {t};
  probe.return_params = {-1};
  std::vector<ExprPtr> args = given;
  args.resize(callee.params.size());
  return result_types(probe, args);
}

bool FunctionBuilder::mentions(const ExprPtr& e, const ExprPtr& var) const {
  if (!e || !var) return false;
  if (e->kind == ir::ExprKind::kVar && var->kind == ir::ExprKind::kVar) return e->var == var->var;
  for (const auto& a : e->args) {
    if (a && a->type && a->type->is_scalar() && mentions(a, var)) return true;
  }
  return false;
}

}  // namespace pypto::sema
