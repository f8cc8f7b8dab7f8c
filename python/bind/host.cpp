// SPDX-License-Identifier: Apache-2.0
#include "python/bind/host.h"

#include <array>
#include <unordered_set>

#include "python/bind/evaluator.h"
#include "python/bind/program.h"
#include "python/bind/source_tree.h"
#include "python/bind/symbolic.h"

namespace pypto::bind {
namespace {

using sema::HostKind;
using sema::HostValue;

/// Python builtins that a body may use (01 L-15).
bool allowed_builtin(const std::string& name) {
  static const std::unordered_set<std::string> names = {"len",   "max",   "min",        "abs",  "sum",
                                                        "round", "int",   "float",      "bool", "list",
                                                        "tuple", "range", "isinstance", "type"};
  return names.count(name) != 0;
}

std::vector<ir::Dim> dims_of(nb::handle sequence) {
  std::vector<ir::Dim> out;
  if (sequence.is_none()) return out;
  for (nb::handle d : sequence) {
    // Anything that is no extent stays unknown; the front end rejects it where it matters (01 L-37).
    out.push_back(dim_from_python(d));
  }
  return out;
}

int int_of(nb::handle o, int fallback) {
  if (o.is_none() || !PyLong_Check(o.ptr())) return fallback;
  return nb::cast<int>(o);
}

std::shared_ptr<const ir::TensorView> tensor_view(nb::handle o) {
  auto v = std::make_shared<ir::TensorView>();
  v->valid_shape = dims_of(o.attr("valid_shape"));
  v->stride = dims_of(o.attr("stride"));
  v->layout = static_cast<ir::TensorLayout>(int_of(o.attr("layout"), 0));
  v->pad = static_cast<ir::PadValue>(int_of(o.attr("pad"), 0));
  return v;
}

std::shared_ptr<const ir::TileView> tile_view(nb::handle o) {
  auto v = std::make_shared<ir::TileView>();
  v->valid_shape = dims_of(o.attr("valid_shape"));
  v->stride = dims_of(o.attr("stride"));
  v->start_offset = dims_of(o.attr("start_offset"));
  const int blayout = int_of(o.attr("blayout"), -1), slayout = int_of(o.attr("slayout"), -1);
  if (blayout >= 0) v->blayout = static_cast<ir::TileLayout>(blayout);
  if (slayout >= 0) v->slayout = static_cast<ir::TileLayout>(slayout);
  v->fractal = int_of(o.attr("fractal"), 0);
  const int pad = int_of(o.attr("pad"), -1);
  v->has_pad = pad >= 0;
  if (pad >= 0) v->pad = static_cast<ir::PadValue>(pad);
  v->compact = static_cast<ir::CompactMode>(int_of(o.attr("compact"), 0));
  return v;
}

std::shared_ptr<const ir::MemRef> memref(nb::handle o) {
  auto v = std::make_shared<ir::MemRef>();
  nb::object name = o.attr("name");
  if (!name.is_none()) v->name = nb::cast<std::string>(nb::str(name));
  v->slots = int_of(o.attr("slots"), 1);
  const ir::Dim slot = dim_from_python(o.attr("slot"));
  if (slot.is_const()) v->slot = ir::int_const(slot.value, DType::kIndex, {}, true);
  if (slot.expr) v->slot = slot.expr;
  v->offset = int_of(o.attr("byte_offset"), -1);
  v->size = int_of(o.attr("size"), -1);
  return v;
}

/// Classes of pypto.language whose instances the front end takes apart.
struct ValueClasses {
  PyObject *tensor_view = nullptr, *tile_view = nullptr, *memref = nullptr;
  std::unordered_set<PyObject*> functions;  ///< JITFunction, InlineFunction, ...: objects with `_source`
};
ValueClasses& value_classes() {
  static ValueClasses* c = new ValueClasses;
  return *c;
}

struct Callables {
  std::vector<nb::object> list;
  std::unordered_map<PyObject*, int> index;
};
Callables& callables() {
  static Callables* c = new Callables;
  return *c;
}

bool numpy_integer(PyObject* o) {
  return PyIndex_Check(o) && std::string_view(Py_TYPE(o)->tp_name).rfind("numpy.", 0) == 0 &&
         !PySequence_Check(o);
}

/// Re-reads a function whose code was replaced since it was last read.
void refresh(PyFunctionSource& f) {
  if (!PyFunction_Check(f.function.ptr())) return;
  PyObject* code = PyFunction_GetCode(f.function.ptr());
  if (f.code.is_valid() && f.code.ptr() != code) f.source->def.reset();
  f.code = nb::borrow(code);
}

}  // namespace

int register_callable(nb::object callable) {
  auto& c = callables();
  const auto [it, added] = c.index.try_emplace(callable.ptr(), static_cast<int>(c.list.size()));
  if (added) c.list.push_back(callable);
  return it->second;
}

nb::object callable_object(int index) {
  auto& c = callables();
  if (index < 0 || static_cast<size_t>(index) >= c.list.size()) return nb::none();
  return c.list[static_cast<size_t>(index)];
}

std::shared_ptr<sema::FunctionSource> function_source_of(nb::handle object) {
  if (nb::isinstance<PyFunction>(object)) {
    auto& f = nb::cast<PyFunction&>(object);
    if (!f.callee) {
      f.callee = std::make_shared<sema::FunctionSource>();
      f.callee->name = f.function->name;
      f.callee->decl = sema::DeclKind::kIrFunction;
      f.callee->type = f.function->type;
      f.callee->has_type = true;
      f.callee->level = f.function->level;
      f.callee->role = f.function->role;
      f.callee->ir_function = f.function;
      f.callee->host_callable = f.function->host_callable;
    }
    return f.callee;
  }
  if (!value_classes().functions.count(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())))) return nullptr;
  nb::object source = object.attr("_source");
  if (!nb::isinstance<PyFunctionSource>(source)) return nullptr;
  auto& f = nb::cast<PyFunctionSource&>(source);
  refresh(f);
  if (Guards* g = BuildSession::current().guards()) g->add_function(f.function);
  return f.source;
}

HostValue to_host_value(nb::handle object) {
  HostValue v;
  PyObject* o = object.ptr();
  const auto kind = [&](HostKind k) {
    v.kind = k;
    v.handle = BuildSession::current().handle(object);
    return v;
  };
  if (const std::string* path = construct_path(o)) {
    v.text = *path;
    return kind(PyModule_Check(o) ? HostKind::kModule : HostKind::kConstruct);
  }
  if (o == Py_None) return kind(HostKind::kNone);
  if (PyBool_Check(o)) {
    v.int_value = o == Py_True;
    return kind(HostKind::kBool);
  }
  if (const std::string* name = enum_class_name(reinterpret_cast<PyObject*>(Py_TYPE(o)))) {
    v.text = *name + "." + nb::cast<std::string>(nb::str(object.attr("name")));
    v.int_value = PyLong_AsLongLong(o);
    return kind(HostKind::kEnum);
  }
  if (PyLong_Check(o) || numpy_integer(o)) {
    nb::object exact = nb::steal(PyNumber_Index(o));
    int overflow = 0;
    v.int_value = PyLong_AsLongLongAndOverflow(exact.ptr(), &overflow);
    v.big = overflow != 0;
    if (v.big) v.text = nb::cast<std::string>(nb::str(exact));
    return kind(HostKind::kInt);
  }
  if (PyFloat_Check(o)) {
    v.float_value = PyFloat_AS_DOUBLE(o);
    return kind(HostKind::kFloat);
  }
  if (PyUnicode_Check(o)) {
    v.text = nb::cast<std::string>(object);
    return kind(HostKind::kString);
  }
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; ++i) {
      v.items.push_back(to_host_value(nb::borrow(PySequence_Fast_GET_ITEM(o, i))));
    }
    v.text = PyList_Check(o) ? "list" : "tuple";
    return kind(HostKind::kTuple);
  }
  if (nb::isinstance<PyDType>(object)) {
    v.dtype = nb::cast<PyDType&>(object).dtype;
    return kind(HostKind::kDType);
  }
  if (nb::isinstance<PySymbol>(object)) {
    v.text = nb::cast<PySymbol&>(object).name;
    v.expr = nb::cast<PySymbol&>(object).expr();
    return kind(HostKind::kDynVar);
  }
  if (nb::isinstance<PySymExpr>(object)) {
    v.expr = nb::cast<PySymExpr&>(object).expr;
    return kind(HostKind::kSymbolic);
  }
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
  const auto& classes = value_classes();
  if (type == classes.tensor_view) {
    v.tensor_view = tensor_view(object);
    return kind(HostKind::kTensorView);
  }
  if (type == classes.tile_view) {
    v.tile_view = tile_view(object);
    return kind(HostKind::kTileView);
  }
  if (type == classes.memref) {
    v.memref = memref(object);
    return kind(HostKind::kMemRef);
  }
  if (auto f = function_source_of(object)) {
    v.function = f;
    v.text = f->name;
    return kind(HostKind::kFunction);
  }
  if (PyModule_Check(o)) {
    const char* name = PyModule_GetName(o);
    if (!name) PyErr_Clear();
    v.text = std::string("python:") + (name ? name : "?");
    return kind(HostKind::kModule);
  }
  v.text = Py_TYPE(o)->tp_name;
  if (const auto dot = v.text.rfind('.'); dot != std::string::npos) v.text = v.text.substr(dot + 1);
  return kind(HostKind::kOpaque);
}

nb::object to_python(const HostValue& value) {
  if (value.handle >= 0) {
    nb::object o = BuildSession::current().object(value.handle);
    if (o.is_valid()) return o;
  }
  switch (value.kind) {
    case HostKind::kInt:
      return nb::int_(value.int_value);
    case HostKind::kBool:
      return nb::bool_(value.int_value != 0);
    case HostKind::kFloat:
      return nb::float_(value.float_value);
    case HostKind::kString:
      return nb::str(value.text.c_str(), value.text.size());
    case HostKind::kNone:
      return nb::none();
    case HostKind::kDType:
      return dtype_object(value.dtype);
    case HostKind::kTuple: {
      nb::list items;
      for (const auto& i : value.items) items.append(to_python(i));
      return nb::tuple(items);
    }
    case HostKind::kDynVar:
      return nb::cast(PySymbol{value.text, nullptr});
    case HostKind::kSymbolic:
      return nb::cast(PySymExpr{value.expr});
    default:
      return nb::none();
  }
}

PyHost::PyHost(nb::object function, nb::object captured)
    : function_(std::move(function)), captured_(std::move(captured)) {
  if (!function_.is_valid() || !PyFunction_Check(function_.ptr())) return;
  auto* f = reinterpret_cast<PyFunctionObject*>(function_.ptr());
  globals_ = nb::borrow(f->func_globals);
  if (f->func_closure) {
    nb::object names = nb::handle(f->func_code).attr("co_freevars");
    const Py_ssize_t n = PyTuple_GET_SIZE(f->func_closure);
    for (Py_ssize_t i = 0; i < n; ++i) {
      cells_.emplace_back(nb::cast<std::string>(nb::handle(PyTuple_GET_ITEM(names.ptr(), i))),
                          nb::borrow(PyTuple_GET_ITEM(f->func_closure, i)));
    }
  }
}

nb::object PyHost::find(const std::string& name) {
  Guards* guards = BuildSession::current().guards();
  nb::str key(name.c_str(), name.size());
  for (const auto& [cell_name, cell] : cells_) {
    if (cell_name != name) continue;
    PyObject* value = PyCell_GET(cell.ptr());
    if (!value) break;  // not assigned yet in the enclosing function
    if (guards) guards->add_cell(cell, key, value);
    return nb::borrow(value);
  }
  for (const nb::object* dict : {&captured_, &globals_}) {
    if (!dict->is_valid() || !PyDict_Check(dict->ptr())) continue;
    PyObject* value = PyDict_GetItemWithError(dict->ptr(), key.ptr());
    if (!value) {
      PyErr_Clear();
      continue;
    }
    if (guards) guards->add_dict(*dict, key, value);
    return nb::borrow(value);
  }
  // Names of the language in the text of an annotation object, whatever the function's file calls it.
  if (name == "__pypto_pl__") return nb::module_::import_("pypto.language");
  if (name == "__pypto_pld__") return nb::module_::import_("pypto.language.distributed");
  if (guards && globals_.is_valid()) guards->add_dict(globals_, key, nullptr);
  if (allowed_builtin(name)) return nb::module_::import_("builtins").attr(name.c_str());
  return nb::object();
}

HostValue PyHost::lookup(const std::string& name) {
  nb::object value = find(name);
  return value.is_valid() ? to_host_value(value) : HostValue{};
}

HostValue PyHost::attribute(const HostValue& base, const std::string& name) {
  nb::object object = to_python(base);
  PyObject* value = PyObject_GetAttrString(object.ptr(), name.c_str());
  if (!value) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_Clear();
      return {};
    }
    nb::python_error e;
    throw Evaluator::host_error(e);
  }
  nb::object own = nb::steal(value);
  record_attribute(object, name, own);
  return to_host_value(own);
}

HostValue PyHost::eval(const syntax::Expr& expr,
                       const std::vector<std::pair<std::string, HostValue>>& locals) {
  try {
    return to_host_value(Evaluator(*this, locals).eval(expr));
  } catch (nb::python_error& e) {
    throw Evaluator::host_error(e);
  }
}

syntax::ExprPtr PyHost::parse_annotation(const std::string& text, const Span& span) {
  return parse_expression(text, span);
}

void PyHost::print(const std::string& line) { nb::print(line.c_str()); }

void register_value_classes(nb::object tensor_view, nb::object tile_view, nb::object memref) {
  auto& c = value_classes();
  c.tensor_view = tensor_view.inc_ref().ptr();
  c.tile_view = tile_view.inc_ref().ptr();
  c.memref = memref.inc_ref().ptr();
}

void register_function_class(nb::object cls) { value_classes().functions.insert(cls.inc_ref().ptr()); }

}  // namespace pypto::bind
