// SPDX-License-Identifier: Apache-2.0
#include <nanobind/operators.h>

#include <unordered_map>

#include "core/ir/op.h"
#include "python/bind/symbolic.h"

namespace pypto::bind {
namespace {

/// Public enums in the order of the documentation; aliases follow the member they name (01 L-45).
struct EnumRow {
  const char* name;
  std::vector<std::pair<const char*, int>> members;
};

const std::vector<EnumRow>& enum_rows() {
  static const std::vector<EnumRow> rows = {
      {"FunctionType",
       {{"Opaque", 0},
        {"Orchestration", 1},
        {"InCore", 2},
        {"AIC", 3},
        {"AIV", 4},
        {"Group", 5},
        {"Spmd", 6},
        {"Inline", 7},
        {"Graph", 8}}},
      {"Level",
       {{"AIV", 0},
        {"AIC", 1},
        {"CORE_GROUP", 2},
        {"CHIP_DIE", 3},
        {"CHIP", 4},
        {"HOST", 5},
        {"CLUSTER_0", 6},
        {"CLUSTER_1", 7},
        {"CLUSTER_2", 8},
        {"GLOBAL", 9},
        {"L2CACHE", 3},
        {"PROCESSOR", 4},
        {"UMA", 4},
        {"NODE", 5},
        {"POD", 6},
        {"CLOS1", 7},
        {"CLOS2", 8}}},
      {"Role", {{"Orchestrator", 0}, {"SubWorker", 1}}},
      {"SplitMode", {{"NONE", 0}, {"UP_DOWN", 1}, {"LEFT_RIGHT", 2}}},
      {"MemorySpace",
       {{"DDR", 0},
        {"Vec", 1},
        {"Mat", 2},
        {"Left", 3},
        {"Right", 4},
        {"Acc", 5},
        {"Bias", 6},
        {"ScalarLocal", 7},
        {"LeftScale", 8},
        {"RightScale", 9}}},
      {"ParamDirection", {{"In", 0}, {"Out", 1}, {"InOut", 2}}},
      {"ArgDirection",
       {{"Input", 0}, {"Output", 1}, {"InOut", 2}, {"OutputExisting", 3}, {"NoDep", 4}, {"Scalar", 5}}},
      {"TensorLayout", {{"ND", 0}, {"DN", 1}, {"NZ", 2}, {"MX_A_ZZ", 3}, {"MX_B_NN", 4}}},
      {"TileLayout", {{"none_box", 0}, {"row_major", 1}, {"col_major", 2}}},
      {"PadValue", {{"null", 0}, {"zero", 1}, {"max", 2}, {"min", 3}}},
      {"CompactMode", {{"null", 0}, {"normal", 1}}},
      {"AtomicType", {{"None_", 0}, {"Add", 1}}},
      {"PipeType",
       {{"MTE1", 0}, {"MTE2", 1}, {"MTE3", 2}, {"M", 3}, {"V", 4}, {"S", 5}, {"FIX", 6}, {"ALL", 7}}},
      {"NotifyOp", {{"AtomicAdd", 0}, {"Set", 1}}},
      {"WaitCmp", {{"Eq", 0}, {"Ge", 1}}},
      {"ReduceOp", {{"Sum", 0}, {"Max", 1}, {"Min", 2}, {"Prod", 3}}},
      {"ForKind", {{"Sequential", 0}, {"Parallel", 1}, {"Unroll", 2}, {"Pipeline", 3}}},
      {"ScopeMode", {{"AUTO", 0}, {"MANUAL", 1}}},
      {"CoreType", {{"CUBE", 0}, {"VECTOR", 1}}},
      {"MaskPattern",
       {{"P0101", 1}, {"P1010", 2}, {"P0001", 3}, {"P0010", 4}, {"P0100", 5}, {"P1000", 6}, {"P1111", 7}}},
  };
  return rows;
}

struct Registry {
  std::unordered_map<PyObject*, std::string> constructs;
  std::unordered_map<PyObject*, std::string> enum_classes;
  std::unordered_map<std::string, nb::object> enums;
};
Registry& registry() {
  static Registry* r = new Registry;  // outlives the interpreter's tear-down
  return *r;
}

nb::object* dtype_objects() {
  static nb::object* objects = new nb::object[256];
  return objects;
}

const char* form_namespace(ir::OpForm form) {
  switch (form) {
    case ir::kFormFlat:
      return "pl";
    case ir::kFormTensor:
      return "pl.tensor";
    case ir::kFormTile:
      return "pl.tile";
    case ir::kFormSystem:
      return "pl.system";
    case ir::kFormArray:
      return "pl.array";
    case ir::kFormPrefetch:
      return "pl.prefetch";
    case ir::kFormPld:
      return "pld";
    case ir::kFormPldTensor:
      return "pld.tensor";
    case ir::kFormPldTile:
      return "pld.tile";
    case ir::kFormPldSystem:
      return "pld.system";
    default:
      return "";
  }
}

nb::list op_table() {
  nb::list out;
  for (uint32_t bit = 1; bit < ir::kFormInternal; bit <<= 1) {
    const auto form = static_cast<ir::OpForm>(bit);
    for (const std::string& name : ir::op_names(form)) {
      const ir::OpRow* row = ir::find_op(form, name);
      const char* sig = row->sig;
      if (form == ir::kFormTensor && row->sig_tensor[0]) sig = row->sig_tensor;
      if (form == ir::kFormTile && row->sig_tile[0]) sig = row->sig_tile;
      out.append(nb::make_tuple(form_namespace(form), name, sig, row->doc, row->name));
    }
  }
  return out;
}

nb::dict enum_table() {
  nb::dict out;
  for (const auto& row : enum_rows()) {
    nb::list members;
    for (const auto& [name, value] : row.members) members.append(nb::make_tuple(name, value));
    out[row.name] = members;
  }
  return out;
}

ir::ExprPtr dim_expr(nb::handle value) {
  if (nb::isinstance<PySymbol>(value)) return nb::cast<PySymbol&>(value).expr();
  if (nb::isinstance<PySymExpr>(value)) return nb::cast<PySymExpr&>(value).expr;
  if (PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr())) {
    return ir::int_const(nb::cast<int64_t>(value), DType::kIndex, {}, true);
  }
  return nullptr;
}

nb::object symbolic_binary(ir::OpId op, nb::handle a, nb::handle b) {
  ir::ExprPtr lhs = dim_expr(a), rhs = dim_expr(b);
  if (!lhs || !rhs) return nb::borrow(Py_NotImplemented);
  return nb::cast(PySymExpr{ir::op_expr(op, {lhs, rhs}, {}, ir::scalar_type(DType::kIndex))});
}

template <class C>
void bind_arithmetic(C& cls) {
  struct Entry {
    const char* name;
    const char* reflected;
    ir::OpId op;
  };
  static constexpr Entry kOps[] = {
      {"__add__", "__radd__", ir::OpId::k_scalar_add},
      {"__sub__", "__rsub__", ir::OpId::k_scalar_sub},
      {"__mul__", "__rmul__", ir::OpId::k_scalar_mul},
      {"__floordiv__", "__rfloordiv__", ir::OpId::k_scalar_floordiv},
      {"__mod__", "__rmod__", ir::OpId::k_scalar_mod},
  };
  for (const Entry& e : kOps) {
    const ir::OpId op = e.op;
    cls.def(
        e.name, [op](nb::object a, nb::object b) { return symbolic_binary(op, a, b); }, nb::is_operator());
    cls.def(
        e.reflected, [op](nb::object a, nb::object b) { return symbolic_binary(op, b, a); },
        nb::is_operator());
  }
}

bool identifier(const std::string& name) {
  nb::str text(name.c_str());
  return PyUnicode_IsIdentifier(text.ptr()) == 1;
}

void bind_dtype(nb::module_& m) {
  auto cls = nb::class_<PyDType>(m, "DataType", "An element type; compared by value.");
  cls.def(
         "__init__",
         [](PyDType* self, int code) {
           const auto dtype = dtype_from_code(code);
           if (!dtype) {
             throw nb::value_error(
                 ("DataType: there is no element type with code " + std::to_string(code)).c_str());
           }
           new (self) PyDType{*dtype};
         },
         nb::arg("code"))
      .def(
          "get_bit", [](PyDType d) { return dtype_bits(d.dtype); }, "Bits of one element.")
      .def(
          "get_byte", [](PyDType d) { return dtype_bytes(d.dtype); }, "Bytes of one element, rounded up.")
      .def("to_string", [](PyDType d) { return std::string(dtype_text(d.dtype)); })
      .def("to_c_type_string", [](PyDType d) { return std::string(dtype_info(d.dtype).c_name); })
      .def("is_float", [](PyDType d) { return is_float(d.dtype); })
      .def("is_int", [](PyDType d) { return is_int(d.dtype); })
      .def("is_signed_int", [](PyDType d) { return is_signed_int(d.dtype); })
      .def("is_unsigned_int", [](PyDType d) { return is_unsigned_int(d.dtype); })
      .def("code", [](PyDType d) { return static_cast<int>(d.dtype); })
      .def_prop_ro("member", [](PyDType d) { return dtype_info(d.dtype).member; })
      .def("__str__", [](PyDType d) { return std::string(dtype_text(d.dtype)); })
      .def("__repr__", [](PyDType d) { return std::string(dtype_text(d.dtype)); })
      .def("__hash__", [](PyDType d) { return static_cast<int>(d.dtype) + 0x5054; })
      .def("__eq__",
           [](PyDType a, nb::object b) {
             return nb::isinstance<PyDType>(b) && nb::cast<PyDType&>(b).dtype == a.dtype;
           })
      .def("__ne__",
           [](PyDType a, nb::object b) {
             return !nb::isinstance<PyDType>(b) || nb::cast<PyDType&>(b).dtype != a.dtype;
           })
      .def("__reduce__",
           [](nb::object self) {
             return nb::make_tuple(self.type(),
                                   nb::make_tuple(static_cast<int>(nb::cast<PyDType&>(self).dtype)));
           })
      .def("__copy__", [](nb::object self) { return self; })
      .def("__deepcopy__", [](nb::object self, nb::object) { return self; });
  nb::list names;
  const DTypeTable table = dtype_table();
  for (int i = 0; i < table.count; ++i) {
    const DTypeInfo& row = table.rows[i];
    nb::object value = nb::cast(PyDType{row.dtype});
    dtype_objects()[static_cast<int>(row.dtype)] = value;
    cls.attr(row.member) = value;
    names.append(row.member);
  }
  cls.attr("DEFAULT_CONST_INT") = dtype_object(DType::kInt64);
  cls.attr("DEFAULT_CONST_FLOAT") = dtype_object(DType::kFp32);
  m.attr("DTYPE_NAMES") = names;
}

}  // namespace

nb::object dtype_object(DType dtype) {
  nb::object& o = dtype_objects()[static_cast<int>(dtype)];
  return o.is_valid() ? o : nb::none();
}

nb::object enum_object(const char* name, int64_t value) {
  auto& enums = registry().enums;
  auto it = enums.find(name);
  if (it == enums.end()) {
    nb::module_::import_("pypto._enums");  // registers the classes
    it = enums.find(name);
    if (it == enums.end()) return nb::int_(value);
  }
  if (value < 0) return nb::none();
  try {
    return it->second(value);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ValueError)) throw;
    return nb::none();
  }
}

const std::string* enum_class_name(PyObject* cls) {
  const auto& m = registry().enum_classes;
  const auto it = m.find(cls);
  return it == m.end() ? nullptr : &it->second;
}

const std::string* construct_path(PyObject* object) {
  const auto& m = registry().constructs;
  const auto it = m.find(object);
  return it == m.end() ? nullptr : &it->second;
}

ir::ExprPtr PySymbol::expr() const {
  if (!cached) {
    auto var = std::make_shared<ir::Var>();
    var->name = name;
    var->type = ir::scalar_type(DType::kIndex);
    var->kind = ir::VarKind::kSymbol;
    cached = ir::var_ref(std::move(var));
  }
  return cached;
}

ir::Dim dim_from_python(nb::handle value) {
  if (PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr())) return ir::Dim(nb::cast<int64_t>(value));
  ir::ExprPtr e = dim_expr(value);
  return e ? ir::Dim(std::move(e)) : ir::Dim();
}

void register_values(nb::module_& m) {
  bind_dtype(m);
  m.def("enum_table", &enum_table);
  m.def("register_enum", [](const std::string& name, nb::object cls) {
    registry().enum_classes[cls.ptr()] = name;
    registry().enums[name] = cls;
  });
  m.def("register_construct", [](nb::object object, const std::string& path) {
    registry().constructs[object.ptr()] = path;
    object.inc_ref();  // identity must stay unique
  });
  m.def("construct_path", [](nb::object object) -> std::optional<std::string> {
    const std::string* p = construct_path(object.ptr());
    return p ? std::optional<std::string>(*p) : std::nullopt;
  });
  m.def("op_table", &op_table, "Rows (namespace, name, signature, doc, row name), one per spelling.");
  m.def("nearest", &nearest, nb::arg("name"), nb::arg("candidates"));

  auto symbol = nb::class_<PySymbol>(m, "DynVar", "A dynamic dimension (01 L-29).");
  symbol
      .def(
          "__init__",
          [](PySymbol* self, nb::object name) {
            if (!PyUnicode_Check(name.ptr()) || !identifier(nb::cast<std::string>(name))) {
              throw nb::value_error(
                  ("pl.dynamic: the name of a dynamic dimension must be a Python identifier, got " +
                   std::string(nb::repr(name).c_str()))
                      .c_str());
            }
            new (self) PySymbol{nb::cast<std::string>(name), nullptr};
          },
          nb::arg("name"))
      .def_prop_ro("name", [](const PySymbol& s) { return s.name; })
      .def("__repr__", [](const PySymbol& s) { return s.name; })
      .def("__hash__",
           [](const PySymbol& s) { return static_cast<Py_ssize_t>(std::hash<std::string>()(s.name) >> 1); })
      .def("__eq__",
           [](const PySymbol& a, nb::object b) {
             return nb::isinstance<PySymbol>(b) && nb::cast<PySymbol&>(b).name == a.name;
           })
      .def("__reduce__", [](nb::object self) {
        return nb::make_tuple(self.type(), nb::make_tuple(nb::cast<PySymbol&>(self).name));
      });
  bind_arithmetic(symbol);
  auto expr = nb::class_<PySymExpr>(m, "SymExpr", "Integer expression over dynamic symbols (01 L-31).");
  expr.def("__repr__", [](const PySymExpr& e) { return ir::dim_text(ir::Dim(e.expr)); })
      .def("__eq__",
           [](const PySymExpr& a, nb::object b) {
             return nb::isinstance<PySymExpr>(b) && symbolic_equal(a.expr, nb::cast<PySymExpr&>(b).expr);
           })
      .def("__hash__", [](const PySymExpr& e) {
        return static_cast<Py_ssize_t>(std::hash<std::string>()(ir::dim_text(ir::Dim(e.expr))) >> 1);
      });
  bind_arithmetic(expr);
}

bool symbolic_equal(const ir::ExprPtr& a, const ir::ExprPtr& b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case ir::ExprKind::kInt:
      return a->int_value == b->int_value;
    case ir::ExprKind::kVar:
      return a->var->name == b->var->name;
    case ir::ExprKind::kOp:
      if (a->op != b->op || a->args.size() != b->args.size()) return false;
      for (size_t i = 0; i < a->args.size(); ++i) {
        if (!symbolic_equal(a->args[i], b->args[i])) return false;
      }
      return true;
    default:
      return false;
  }
}

}  // namespace pypto::bind
