// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ir/print.h"
#include "python/bind/diagnostic_view.h"
#include "python/bind/program.h"

// The statement view of a program (04 SER-10): read-only objects made on demand from the tree.
namespace pypto::bind {
namespace {

struct PyType {
  ir::TypePtr type;
};
struct PyTensorType : PyType {};
struct PyTileType : PyType {};
struct PyScalarType : PyType {};
struct PyTupleType : PyType {};
struct PyArrayType : PyType {};
struct PyOtherType : PyType {};

struct PyNode {};
struct PyExpr : PyNode {
  ir::ExprPtr expr;
};
struct PyVar : PyNode {
  ir::VarPtr var;
};
struct PyConstInt : PyExpr {};
struct PyConstFloat : PyExpr {};
struct PyConstBool : PyExpr {};
struct PyConstNone : PyExpr {};
struct PyConstString : PyExpr {};
struct PyConstDType : PyExpr {};
struct PyCall : PyExpr {};
struct PySubmit : PyCall {};
struct PyMakeTuple : PyExpr {};
struct PyTupleGetItem : PyExpr {};
struct PyOp {
  std::string name;
};
struct PyStmt : PyNode {
  ir::StmtPtr stmt;
};
struct PySeq : PyNode {
  ir::Block block;
};
struct PyAssign : PyStmt {};
struct PyEval : PyStmt {};
struct PyFor : PyStmt {};
struct PyWhile : PyStmt {};
struct PyIf : PyStmt {};
struct PyScope : PyStmt {};
struct PyReturn : PyStmt {};
struct PyYield : PyStmt {};
struct PyBreak : PyStmt {};
struct PyContinue : PyStmt {};
struct PyComment : PyStmt {};

template <class T>
nb::object wrap_expr(const ir::ExprPtr& e) {
  T t;
  t.expr = e;
  return nb::cast(std::move(t));
}
template <class T>
nb::object wrap_stmt(const ir::StmtPtr& s) {
  T t;
  t.stmt = s;
  return nb::cast(std::move(t));
}
template <class T>
nb::object wrap_type(const ir::TypePtr& type) {
  T t;
  t.type = type;
  return nb::cast(std::move(t));
}

nb::object expr_object(const ir::ExprPtr& e) {
  if (!e) return nb::none();
  switch (e->kind) {
    case ir::ExprKind::kInt:
      return e->type && e->type->dtype == DType::kBool ? wrap_expr<PyConstBool>(e) : wrap_expr<PyConstInt>(e);
    case ir::ExprKind::kFloat:
      return wrap_expr<PyConstFloat>(e);
    case ir::ExprKind::kNone:
      return wrap_expr<PyConstNone>(e);
    case ir::ExprKind::kString:
      return wrap_expr<PyConstString>(e);
    case ir::ExprKind::kVar:
      return var_object(e->var);
    case ir::ExprKind::kOp:
      return wrap_expr<PyCall>(e);
    case ir::ExprKind::kCall:
      return e->call && e->call->submit ? wrap_expr<PySubmit>(e) : wrap_expr<PyCall>(e);
    case ir::ExprKind::kTuple:
      return wrap_expr<PyMakeTuple>(e);
    case ir::ExprKind::kItem:
      return wrap_expr<PyTupleGetItem>(e);
    case ir::ExprKind::kDType:
      return wrap_expr<PyConstDType>(e);
  }
  return nb::none();
}

nb::list expr_list(const std::vector<ir::ExprPtr>& list) {
  nb::list out;
  for (const auto& e : list) {
    if (e) out.append(expr_object(e));
  }
  return out;
}

nb::object seq_object(const ir::Block& block) {
  PySeq s;
  s.block = block;
  return nb::cast(std::move(s));
}

nb::object stmt_object(const ir::StmtPtr& s) {
  switch (s->kind) {
    case ir::StmtKind::kAssign:
      return wrap_stmt<PyAssign>(s);
    case ir::StmtKind::kEval:
      return wrap_stmt<PyEval>(s);
    case ir::StmtKind::kFor:
      return wrap_stmt<PyFor>(s);
    case ir::StmtKind::kWhile:
      return wrap_stmt<PyWhile>(s);
    case ir::StmtKind::kIf:
      return wrap_stmt<PyIf>(s);
    case ir::StmtKind::kScope:
      return wrap_stmt<PyScope>(s);
    case ir::StmtKind::kReturn:
      return wrap_stmt<PyReturn>(s);
    case ir::StmtKind::kBreak:
      return wrap_stmt<PyBreak>(s);
    case ir::StmtKind::kContinue:
      return wrap_stmt<PyContinue>(s);
    case ir::StmtKind::kYield:
      return wrap_stmt<PyYield>(s);
    case ir::StmtKind::kComment:
      return wrap_stmt<PyComment>(s);
  }
  return nb::none();
}

nb::list var_list(const std::vector<ir::VarPtr>& list) {
  nb::list out;
  for (const auto& v : list) out.append(var_object(v));
  return out;
}

/// "tensor.add", "tile.load", "system.syncall", "pld.tensor.put": the name with the namespace that its
/// operands choose.
std::string op_name(const ir::Expr& e) {
  if (e.kind == ir::ExprKind::kCall) return e.call ? e.call->callee->name : "";
  const ir::OpRow& row = ir::op_row(e.op);
  bool tile = e.type && e.type->is_tile(), tensor = e.type && e.type->is_tensor();
  for (const auto& a : e.args) {
    if (!a || !a->type) continue;
    tile = tile || a->type->is_tile();
    tensor = tensor || a->type->is_tensor();
  }
  const auto has = [&](ir::OpForm f) { return (row.forms & f) != 0; };
  const std::string name = row.name;
  if (has(ir::kFormPldTensor) || has(ir::kFormPldTile)) {
    if (has(ir::kFormPldTile) && (tile || !has(ir::kFormPldTensor))) return "pld.tile." + name;
    return "pld.tensor." + name;
  }
  if (has(ir::kFormPldSystem)) return "pld.system." + name;
  if (has(ir::kFormTile) && (tile || !has(ir::kFormTensor))) return "tile." + name;
  if (has(ir::kFormTensor)) return "tensor." + name;
  if (has(ir::kFormSystem)) return "system." + name;
  if (has(ir::kFormArray)) return "array." + name;
  if (has(ir::kFormPrefetch)) return "prefetch." + name;
  if (has(ir::kFormPld)) return "pld." + name;
  (void)tensor;
  return name;
}

nb::object attr_object(ir::AttrKey key, const ir::AttrValue& value) {
  if (const auto* s = std::get_if<std::string>(&value)) return nb::str(s->c_str(), s->size());
  if (const auto* d = std::get_if<double>(&value)) return nb::float_(*d);
  if (const auto* l = std::get_if<std::vector<int64_t>>(&value)) {
    nb::list out;
    for (const int64_t v : *l) out.append(v);
    return out;
  }
  const int64_t i = std::get<int64_t>(value);
  switch (ir::attr_kind(key)) {
    case ir::AttrKind::kBool:
      return nb::bool_(i != 0);
    case ir::AttrKind::kDType:
      return dtype_object(static_cast<DType>(i));
    case ir::AttrKind::kMemorySpace:
      return enum_object("MemorySpace", i);
    case ir::AttrKind::kTensorLayout:
      return enum_object("TensorLayout", i);
    case ir::AttrKind::kTileLayout:
      return enum_object("TileLayout", i);
    case ir::AttrKind::kPadValue:
      return enum_object("PadValue", i);
    case ir::AttrKind::kAtomicType:
      return enum_object("AtomicType", i);
    case ir::AttrKind::kPipeType:
      return enum_object("PipeType", i);
    case ir::AttrKind::kNotifyOp:
      return enum_object("NotifyOp", i);
    case ir::AttrKind::kWaitCmp:
      return enum_object("WaitCmp", i);
    case ir::AttrKind::kReduceOp:
      return enum_object("ReduceOp", i);
    default:
      return nb::int_(i);
  }
}

nb::dict call_kwargs(const ir::Expr& e) {
  nb::dict out;
  for (const auto& [key, value] : e.attrs.entries()) {
    const auto name = ir::attr_name(key);
    out[nb::str(name.data(), name.size())] = attr_object(key, value);
  }
  if (e.call) {
    if (e.call->device) out["device"] = expr_object(e.call->device);
    if (e.call->core_num) out["core_num"] = expr_object(e.call->core_num);
    if (e.call->has_deps) out["deps"] = expr_list(e.call->deps);
  }
  return out;
}

nb::object dim_object(const ir::Dim& d) {
  if (d.is_const()) return nb::int_(d.value);
  if (d.expr) return expr_object(d.expr);
  return nb::int_(-1);
}

nb::list shape_object(const ir::Shape& shape) {
  nb::list out;
  for (const auto& d : shape) out.append(dim_object(d));
  return out;
}

nb::object span_of(const Span& s) { return s.known() ? nb::cast(PySpan{s}) : nb::none(); }

void bind_types(nb::module_& m) {
  nb::class_<PyType>(m, "Type", "A static type.")
      .def("__str__", [](const PyType& t) { return ir::type_text(*t.type, true); })
      .def("__repr__", [](const PyType& t) { return ir::type_text(*t.type, true); })
      .def("__eq__",
           [](const PyType& a, nb::object b) {
             return nb::isinstance<PyType>(b) && ir::same_type(*a.type, *nb::cast<PyType&>(b).type);
           })
      .def("__hash__", [](const PyType& t) {
        return static_cast<int>(t.type->kind) * 31 + static_cast<int>(t.type->dtype);
      });
  const auto shape = [](const PyType& t) { return shape_object(t.type->shape); };
  const auto dtype = [](const PyType& t) { return dtype_object(t.type->dtype); };
  nb::class_<PyTensorType, PyType>(m, "TensorType")
      .def_prop_ro("shape", shape)
      .def_prop_ro("dtype", dtype)
      .def_prop_ro(
          "layout",
          [](const PyType& t) { return enum_object("TensorLayout", static_cast<int>(t.type->layout)); })
      .def_prop_ro("distributed", [](const PyType& t) { return t.type->is_window(); });
  nb::class_<PyTileType, PyType>(m, "TileType")
      .def_prop_ro("shape", shape)
      .def_prop_ro("dtype", dtype)
      .def_prop_ro(
          "memory_space",
          [](const PyType& t) { return enum_object("MemorySpace", static_cast<int>(t.type->space)); })
      .def_prop_ro("valid_shape", [](const PyType& t) {
        return shape_object(t.type->valid.empty() ? t.type->shape : t.type->valid);
      });
  nb::class_<PyScalarType, PyType>(m, "ScalarType").def_prop_ro("dtype", dtype);
  nb::class_<PyArrayType, PyType>(m, "ArrayType").def_prop_ro("shape", shape).def_prop_ro("dtype", dtype);
  nb::class_<PyTupleType, PyType>(m, "TupleType").def_prop_ro("types", [](const PyType& t) {
    nb::list out;
    for (const auto& e : t.type->elements) out.append(type_object(e));
    return out;
  });
  nb::class_<PyOtherType, PyType>(m, "OpaqueType");
}

void bind_exprs(nb::module_& m) {
  nb::class_<PyNode>(m, "Node", "Base of the statement view.");
  nb::class_<PyExpr, PyNode>(m, "Expr")
      .def_prop_ro("span", [](const PyExpr& e) { return span_of(e.expr->span); })
      .def_prop_ro("type", [](const PyExpr& e) { return type_object(e.expr->type); })
      .def("__str__", [](const PyExpr& e) { return ir::print(e.expr); })
      .def("__repr__", [](const PyExpr& e) { return ir::print(e.expr); })
      .def("as_python", [](const PyExpr& e, nb::args, nb::kwargs) { return ir::print(e.expr); });
  nb::class_<PyVar, PyNode>(m, "Var")
      .def_prop_ro("name", [](const PyVar& v) { return v.var->name; })
      .def_prop_ro("name_hint", [](const PyVar& v) { return v.var->name; })
      .def_prop_ro("type", [](const PyVar& v) { return type_object(v.var->type); })
      .def_prop_ro("dtype",
                   [](const PyVar& v) { return v.var->type ? dtype_object(v.var->type->dtype) : nb::none(); })
      .def_prop_ro("shape",
                   [](const PyVar& v) -> nb::object {
                     if (!v.var->type || !v.var->type->is_array_like()) return nb::none();
                     return shape_object(v.var->type->shape);
                   })
      .def_prop_ro("span", [](const PyVar& v) { return span_of(v.var->span); })
      .def("__str__", [](const PyVar& v) { return v.var->name; })
      .def("__repr__", [](const PyVar& v) { return "Var(" + v.var->name + ")"; })
      .def("__eq__",
           [](const PyVar& a, nb::object b) {
             return nb::isinstance<PyVar>(b) && nb::cast<PyVar&>(b).var == a.var;
           })
      .def("__hash__", [](const PyVar& v) { return reinterpret_cast<Py_ssize_t>(v.var.get()) >> 4; });
  const auto dtype = [](const PyExpr& e) {
    return e.expr->type ? dtype_object(e.expr->type->dtype) : nb::none();
  };
  nb::class_<PyConstInt, PyExpr>(m, "ConstInt")
      .def_prop_ro("value", [](const PyExpr& e) { return e.expr->int_value; })
      .def_prop_ro("dtype", dtype);
  nb::class_<PyConstFloat, PyExpr>(m, "ConstFloat")
      .def_prop_ro("value", [](const PyExpr& e) { return e.expr->float_value; })
      .def_prop_ro("dtype", dtype);
  nb::class_<PyConstBool, PyExpr>(m, "ConstBool").def_prop_ro("value", [](const PyExpr& e) {
    return e.expr->int_value != 0;
  });
  nb::class_<PyConstNone, PyExpr>(m, "ConstNone");
  nb::class_<PyConstString, PyExpr>(m, "ConstString").def_prop_ro("value", [](const PyExpr& e) {
    return e.expr->text;
  });
  nb::class_<PyConstDType, PyExpr>(m, "ConstDType").def_prop_ro("value", [](const PyExpr& e) {
    return dtype_object(static_cast<DType>(e.expr->int_value));
  });
  nb::class_<PyOp>(m, "Op", "An operation or a callee.")
      .def_prop_ro("name", [](const PyOp& o) { return o.name; })
      .def("__str__", [](const PyOp& o) { return o.name; })
      .def("__repr__", [](const PyOp& o) { return "Op(" + o.name + ")"; })
      .def("__eq__",
           [](const PyOp& a, nb::object b) {
             return nb::isinstance<PyOp>(b) && nb::cast<PyOp&>(b).name == a.name;
           })
      .def("__hash__",
           [](const PyOp& o) { return static_cast<Py_ssize_t>(std::hash<std::string>()(o.name) >> 1); });
  nb::class_<PyCall, PyExpr>(m, "Call")
      .def_prop_ro("op", [](const PyExpr& e) { return PyOp{op_name(*e.expr)}; })
      .def_prop_ro("args", [](const PyExpr& e) { return expr_list(e.expr->args); })
      .def_prop_ro("kwargs", [](const PyExpr& e) { return call_kwargs(*e.expr); })
      .def_prop_ro("attrs", [](const PyExpr& e) { return call_kwargs(*e.expr); });
  nb::class_<PySubmit, PyCall>(m, "Submit").def_prop_ro("deps", [](const PyExpr& e) {
    return expr_list(e.expr->call->deps);
  });
  nb::class_<PyMakeTuple, PyExpr>(m, "MakeTuple").def_prop_ro("elements", [](const PyExpr& e) {
    return expr_list(e.expr->args);
  });
  nb::class_<PyTupleGetItem, PyExpr>(m, "TupleGetItemExpr")
      .def_prop_ro("tuple", [](const PyExpr& e) { return expr_object(e.expr->args[0]); })
      .def_prop_ro("index", [](const PyExpr& e) { return e.expr->int_value; });
  m.def("get_op", [](const std::string& name) {
    const auto at = name.rfind('.');
    const std::string space = at == std::string::npos ? "" : name.substr(0, at);
    const std::string leaf = at == std::string::npos ? name : name.substr(at + 1);
    static const std::vector<std::pair<std::string, ir::OpForm>> forms = {{"", ir::kFormFlat},
                                                                          {"tensor", ir::kFormTensor},
                                                                          {"tile", ir::kFormTile},
                                                                          {"system", ir::kFormSystem},
                                                                          {"array", ir::kFormArray},
                                                                          {"prefetch", ir::kFormPrefetch},
                                                                          {"pld", ir::kFormPld},
                                                                          {"pld.tensor", ir::kFormPldTensor},
                                                                          {"pld.tile", ir::kFormPldTile},
                                                                          {"pld.system", ir::kFormPldSystem}};
    for (const auto& [text, form] : forms) {
      if (text == space && ir::find_op(form, leaf)) return PyOp{name};
    }
    std::vector<std::string> known;
    for (const auto& [text, form] : forms) {
      for (const auto& op : ir::op_names(form)) known.push_back((text.empty() ? "" : text + ".") + op);
    }
    const std::string near = nearest(name, known);
    const std::string advice = near.empty() ? "; operations are named as in 'tile.add' or 'tensor.matmul'"
                                            : "; did you mean '" + near + "'?";
    throw nb::value_error(("there is no operation '" + name + "'" + advice).c_str());
  });
}

void bind_stmts(nb::module_& m) {
  nb::class_<PySeq, PyNode>(m, "SeqStmts", "Statements in order.")
      .def_prop_ro("stmts",
                   [](const PySeq& s) {
                     nb::list out;
                     for (const auto& x : s.block) out.append(stmt_object(x));
                     return out;
                   })
      .def_prop_ro("span",
                   [](const PySeq& s) { return s.block.empty() ? nb::none() : span_of(s.block[0]->span); })
      .def("__len__", [](const PySeq& s) { return s.block.size(); })
      .def("__str__", [](const PySeq& s) {
        std::string out;
        for (const auto& x : s.block) out += ir::print(*x);
        return out;
      });
  nb::class_<PyStmt, PyNode>(m, "Stmt")
      .def_prop_ro("span", [](const PyStmt& s) { return span_of(s.stmt->span); })
      .def("__str__", [](const PyStmt& s) { return ir::print(*s.stmt); })
      .def("__repr__", [](const PyStmt& s) { return ir::print(*s.stmt); })
      .def("as_python", [](const PyStmt& s, nb::args, nb::kwargs) { return ir::print(*s.stmt); });
  nb::class_<PyAssign, PyStmt>(m, "AssignStmt")
      .def_prop_ro("var",
                   [](const PyStmt& s) -> nb::object {
                     if (s.stmt->targets.size() == 1) return var_object(s.stmt->targets[0]);
                     return nb::tuple(var_list(s.stmt->targets));
                   })
      .def_prop_ro("targets", [](const PyStmt& s) { return var_list(s.stmt->targets); })
      .def_prop_ro("value", [](const PyStmt& s) { return expr_object(s.stmt->value); });
  nb::class_<PyEval, PyStmt>(m, "EvalStmt").def_prop_ro("expr", [](const PyStmt& s) {
    return expr_object(s.stmt->value);
  });
  const auto body = [](const PyStmt& s) { return seq_object(s.stmt->body); };
  const auto carries = [](const PyStmt& s) {
    nb::list out;
    for (const auto& c : s.stmt->carries) out.append(nb::make_tuple(var_object(c.var), expr_object(c.init)));
    return out;
  };
  nb::class_<PyFor, PyStmt>(m, "ForStmt")
      .def_prop_ro("loop_var", [](const PyStmt& s) { return var_object(s.stmt->loop_var); })
      .def_prop_ro("start", [](const PyStmt& s) { return expr_object(s.stmt->start); })
      .def_prop_ro("stop", [](const PyStmt& s) { return expr_object(s.stmt->stop); })
      .def_prop_ro("step", [](const PyStmt& s) { return expr_object(s.stmt->step); })
      .def_prop_ro("kind",
                   [](const PyStmt& s) { return enum_object("ForKind", static_cast<int>(s.stmt->for_kind)); })
      .def_prop_ro("iter_args", carries)
      .def_prop_ro("attrs",
                   [](const PyStmt& s) {
                     nb::dict d;
                     for (const auto& [k, v] : s.stmt->loop_attrs) d[k.c_str()] = v;
                     return d;
                   })
      .def_prop_ro("body", body);
  nb::class_<PyWhile, PyStmt>(m, "WhileStmt")
      .def_prop_ro("condition", [](const PyStmt& s) { return expr_object(s.stmt->value); })
      .def_prop_ro("iter_args", carries)
      .def_prop_ro("body", body);
  nb::class_<PyIf, PyStmt>(m, "IfStmt")
      .def_prop_ro("condition", [](const PyStmt& s) { return expr_object(s.stmt->value); })
      .def_prop_ro("then_body", body)
      .def_prop_ro("else_body", [](const PyStmt& s) {
        return s.stmt->has_else || !s.stmt->else_body.empty() ? seq_object(s.stmt->else_body) : nb::none();
      });
  nb::class_<PyScope, PyStmt>(m, "ScopeStmt")
      .def_prop_ro("scope_kind",
                   [](const PyStmt& s) {
                     static const char* names[] = {"InCore", "Hierarchy", "Cluster", "Spmd",
                                                   "Auto",   "Manual",    "SplitAiv"};
                     return names[static_cast<int>(s.stmt->scope->kind)];
                   })
      .def_prop_ro("name_hint", [](const PyStmt& s) { return s.stmt->scope->name_hint; })
      .def_prop_ro(
          "level",
          [](const PyStmt& s) { return enum_object("Level", static_cast<int>(s.stmt->scope->level)); })
      .def_prop_ro("role",
                   [](const PyStmt& s) { return enum_object("Role", static_cast<int>(s.stmt->scope->role)); })
      .def_prop_ro("loop_var",
                   [](const PyStmt& s) {
                     return s.stmt->scope->loop_var ? var_object(s.stmt->scope->loop_var) : nb::none();
                   })
      .def_prop_ro("core_num", [](const PyStmt& s) { return expr_object(s.stmt->scope->core_num); })
      .def_prop_ro("body", body);
  const auto values = [](const PyStmt& s) { return expr_list(s.stmt->values); };
  nb::class_<PyReturn, PyStmt>(m, "ReturnStmt").def_prop_ro("value", values).def_prop_ro("values", values);
  nb::class_<PyYield, PyStmt>(m, "YieldStmt").def_prop_ro("value", values).def_prop_ro("values", values);
  nb::class_<PyBreak, PyStmt>(m, "BreakStmt");
  nb::class_<PyContinue, PyStmt>(m, "ContinueStmt");
  nb::class_<PyComment, PyStmt>(m, "CommentStmt").def_prop_ro("text", [](const PyStmt& s) {
    return s.stmt->text;
  });
}

}  // namespace

nb::object var_object(const ir::VarPtr& var) {
  if (!var) return nb::none();
  PyVar v;
  v.var = var;
  return nb::cast(std::move(v));
}

nb::object type_object(const ir::TypePtr& type) {
  if (!type) return nb::none();
  switch (type->kind) {
    case ir::TypeKind::kTensor:
      return wrap_type<PyTensorType>(type);
    case ir::TypeKind::kTile:
      return wrap_type<PyTileType>(type);
    case ir::TypeKind::kScalar:
      return wrap_type<PyScalarType>(type);
    case ir::TypeKind::kArray:
      return wrap_type<PyArrayType>(type);
    case ir::TypeKind::kTuple:
      return wrap_type<PyTupleType>(type);
    default:
      return wrap_type<PyOtherType>(type);
  }
}

nb::object body_object(const ir::FunctionPtr& function) { return seq_object(function->body); }

void register_nodes(nb::module_& m) {
  bind_types(m);
  bind_exprs(m);
  bind_stmts(m);
}

}  // namespace pypto::bind
