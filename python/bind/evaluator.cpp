// SPDX-License-Identifier: Apache-2.0
#include "python/bind/evaluator.h"

#include <functional>
#include <unordered_map>

#include "core/base/poll.h"
#include "python/bind/symbolic.h"

namespace pypto::bind {
namespace {

using syntax::Expr;
using syntax::ExprKind;

[[noreturn]] void raise(PyObject* cls, const std::string& text) {
  PyErr_SetString(cls, text.c_str());
  throw nb::python_error();
}

nb::object checked(PyObject* o) {
  if (!o) throw nb::python_error();
  return nb::steal(o);
}

bool truth(const nb::object& o) {
  const int t = PyObject_IsTrue(o.ptr());
  if (t < 0) throw nb::python_error();
  return t == 1;
}

using Binary = PyObject* (*)(PyObject*, PyObject*);

Binary binary_function(const std::string& op) {
  static const std::unordered_map<std::string, Binary> table = {
      {"+", PyNumber_Add},
      {"-", PyNumber_Subtract},
      {"*", PyNumber_Multiply},
      {"/", PyNumber_TrueDivide},
      {"//", PyNumber_FloorDivide},
      {"%", PyNumber_Remainder},
      {"<<", PyNumber_Lshift},
      {">>", PyNumber_Rshift},
      {"&", PyNumber_And},
      {"|", PyNumber_Or},
      {"^", PyNumber_Xor},
      {"@", PyNumber_MatrixMultiply},
      {"**", [](PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }},
  };
  const auto it = table.find(op);
  return it == table.end() ? nullptr : it->second;
}

/// Values whose attributes cannot change.
bool fixed_attributes(nb::handle o) {
  if (construct_path(o.ptr()) || enum_class_name(o.ptr())) return true;
  if (PyUnicode_Check(o.ptr()) || PyLong_Check(o.ptr()) || PyFloat_Check(o.ptr()) || PyTuple_Check(o.ptr()) ||
      PyList_Check(o.ptr())) {
    return true;
  }
  return nb::isinstance<PyDType>(o) || nb::isinstance<PySymbol>(o) || nb::isinstance<PySymExpr>(o);
}

}  // namespace

void record_attribute(nb::handle object, const std::string& name, nb::handle value) {
  Guards* guards = BuildSession::current().guards();
  if (!guards || fixed_attributes(object)) return;
  guards->add_attr(object, nb::str(name.c_str()), value);
}

Evaluator::Evaluator(PyHost& host, const std::vector<std::pair<std::string, sema::HostValue>>& locals)
    : host_(host) {
  for (const auto& [name, value] : locals) locals_.emplace_back(name, to_python(value));
}

sema::HostError Evaluator::host_error(nb::python_error& e) {
  pass_on(e);
  sema::HostError out;
  nb::object type = nb::borrow(e.type()), value = nb::borrow(e.value());
  out.type = nb::cast<std::string>(type.attr("__name__"));
  out.message = nb::cast<std::string>(nb::str(value));
  out.exception = keep_exception(value);
  return out;
}

nb::object Evaluator::eval(const Expr& e) {
  poll();
  switch (e.kind) {
    case ExprKind::kInt:
      if (e.big) return checked(PyLong_FromString(e.text.c_str(), nullptr, 10));
      return nb::int_(e.int_value);
    case ExprKind::kFloat:
      return nb::float_(e.float_value);
    case ExprKind::kBool:
      return nb::bool_(e.int_value != 0);
    case ExprKind::kNone:
      return nb::none();
    case ExprKind::kString:
      return nb::str(e.text.c_str(), e.text.size());
    case ExprKind::kEllipsis:
      return nb::borrow(Py_Ellipsis);
    case ExprKind::kName: {
      for (auto it = locals_.rbegin(); it != locals_.rend(); ++it) {
        if (it->first == e.text) return it->second;
      }
      nb::object value = host_.find(e.text);
      if (!value.is_valid()) raise(PyExc_NameError, "name '" + e.text + "' is not defined");
      return value;
    }
    case ExprKind::kAttribute: {
      nb::object base = eval(e.items[0]);
      nb::object value = checked(PyObject_GetAttrString(base.ptr(), e.text.c_str()));
      record_attribute(base, e.text, value);
      return value;
    }
    case ExprKind::kCall:
      return call(e);
    case ExprKind::kSubscript:
      return subscript(e);
    case ExprKind::kSlice: {
      nb::object lower = eval(e.items[0]), upper = eval(e.items[1]), step = eval(e.items[2]);
      return checked(PySlice_New(lower.ptr(), upper.ptr(), step.ptr()));
    }
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kSet: {
      nb::list items;
      for (const auto& item : e.items) {
        if (item->kind == ExprKind::kStarred) {
          for (nb::handle v : eval(item->items[0])) items.append(v);
        } else {
          items.append(eval(item));
        }
      }
      if (e.kind == ExprKind::kList) return items;
      if (e.kind == ExprKind::kSet) return checked(PySet_New(items.ptr()));
      return nb::tuple(items);
    }
    case ExprKind::kDict: {
      nb::dict out;
      for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
        nb::object value = eval(e.items[i + 1]);
        if (e.items[i]) {
          out[eval(e.items[i])] = value;
        } else if (PyDict_Update(out.ptr(), value.ptr()) < 0) {
          throw nb::python_error();
        }
      }
      return out;
    }
    case ExprKind::kUnary: {
      nb::object v = eval(e.items[0]);
      if (e.text == "-") return checked(PyNumber_Negative(v.ptr()));
      if (e.text == "+") return checked(PyNumber_Positive(v.ptr()));
      if (e.text == "~") return checked(PyNumber_Invert(v.ptr()));
      return nb::bool_(!truth(v));
    }
    case ExprKind::kBinary: {
      nb::object a = eval(e.items[0]), b = eval(e.items[1]);
      const Binary f = binary_function(e.text);
      if (!f) raise(PyExc_TypeError, "operator " + e.text + " cannot be evaluated");
      return checked(f(a.ptr(), b.ptr()));
    }
    case ExprKind::kBool2: {
      nb::object v = nb::none();
      for (const auto& item : e.items) {
        v = eval(item);
        if (truth(v) != (e.text == "and")) return v;
      }
      return v;
    }
    case ExprKind::kCompare:
      return compare(e);
    case ExprKind::kIfExp:
      return truth(eval(e.items[0])) ? eval(e.items[1]) : eval(e.items[2]);
    case ExprKind::kListComp:
      return comprehension(e);
    case ExprKind::kJoinedStr:
    case ExprKind::kFormatted:
      return format(e);
    case ExprKind::kStarred:
    case ExprKind::kNamedExpr:
    case ExprKind::kLambda:
    case ExprKind::kOther:
      break;
  }
  raise(PyExc_SyntaxError, "this form cannot be evaluated while the program is read");
}

nb::object Evaluator::call(const Expr& e) {
  nb::object callee = eval(e.items[0]);
  nb::list args;
  for (size_t i = 1; i < e.items.size(); ++i) {
    if (e.items[i]->kind == ExprKind::kStarred) {
      for (nb::handle v : eval(e.items[i]->items[0])) args.append(v);
    } else {
      args.append(eval(e.items[i]));
    }
  }
  nb::dict kwargs;
  for (const auto& k : e.keywords) {
    nb::object value = eval(k.value);
    if (!k.name.empty()) {
      kwargs[k.name.c_str()] = value;
    } else if (PyDict_Update(kwargs.ptr(), value.ptr()) < 0) {
      throw nb::python_error();
    }
  }
  return checked(PyObject_Call(callee.ptr(), nb::tuple(args).ptr(), kwargs.ptr()));
}

nb::object Evaluator::subscript(const Expr& e) {
  nb::object base = eval(e.items[0]), key = eval(e.items[1]);
  nb::object value = checked(PyObject_GetItem(base.ptr(), key.ptr()));
  Guards* guards = BuildSession::current().guards();
  if (guards && !fixed_attributes(base)) guards->add_item(base, key, value);
  return value;
}

nb::object Evaluator::compare(const Expr& e) {
  nb::object left = eval(e.items[0]), result = nb::bool_(true);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    nb::object right = eval(e.items[i + 1]);
    const std::string& op = e.ops[i];
    if (op == "is" || op == "is not") {
      result = nb::bool_((left.ptr() == right.ptr()) == (op == "is"));
    } else if (op == "in" || op == "not in") {
      const int found = PySequence_Contains(right.ptr(), left.ptr());
      if (found < 0) throw nb::python_error();
      result = nb::bool_((found == 1) == (op == "in"));
    } else {
      const int code = op == "<"    ? Py_LT
                       : op == "<=" ? Py_LE
                       : op == "==" ? Py_EQ
                       : op == "!=" ? Py_NE
                       : op == ">"  ? Py_GT
                                    : Py_GE;
      result = checked(PyObject_RichCompare(left.ptr(), right.ptr(), code));
    }
    if (i + 1 < e.ops.size() && !truth(result)) return result;
    left = right;
  }
  return result;
}

void Evaluator::bind(const Expr& target, nb::object value) {
  if (target.kind == ExprKind::kName) {
    locals_.emplace_back(target.text, std::move(value));
    return;
  }
  if (target.kind != ExprKind::kTuple && target.kind != ExprKind::kList) {
    raise(PyExc_SyntaxError, "unsupported target of a comprehension");
  }
  nb::list items;
  for (nb::handle v : value) items.append(v);
  if (items.size() != target.items.size()) raise(PyExc_ValueError, "wrong number of values to unpack");
  for (size_t i = 0; i < target.items.size(); ++i) bind(*target.items[i], nb::object(items[i]));
}

void Evaluator::comprehend(const Expr& e, size_t clause, nb::list& out) {
  if (clause == e.generators.size()) {
    out.append(eval(e.items[0]));
    return;
  }
  const auto& g = e.generators[clause];
  const size_t depth = locals_.size();
  for (nb::handle v : eval(g.iter)) {
    bind(*g.target, nb::borrow(v));
    bool keep = true;
    for (const auto& test : g.ifs) keep = keep && truth(eval(test));
    if (keep) comprehend(e, clause + 1, out);
    locals_.resize(depth);
  }
}

nb::object Evaluator::comprehension(const Expr& e) {
  nb::list out;
  comprehend(e, 0, out);
  if (e.text == "SetComp") return checked(PySet_New(out.ptr()));
  return out;
}

nb::object Evaluator::format(const Expr& e) {
  if (e.kind == ExprKind::kJoinedStr) {
    nb::list parts;
    for (const auto& item : e.items) parts.append(nb::str(eval(item)));
    nb::str empty("");
    return checked(PyUnicode_Join(empty.ptr(), parts.ptr()));
  }
  nb::object value = eval(e.items[0]);
  if (e.int_value == 's') value = nb::str(value);
  if (e.int_value == 'r') value = nb::repr(value);
  if (e.int_value == 'a') value = checked(PyObject_ASCII(value.ptr()));
  nb::object spec = e.items[1] ? eval(e.items[1]) : nb::object(nb::str(""));
  return checked(PyObject_Format(value.ptr(), spec.ptr()));
}

}  // namespace pypto::bind
