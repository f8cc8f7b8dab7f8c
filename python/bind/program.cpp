// SPDX-License-Identifier: Apache-2.0
#include "python/bind/program.h"

#include "core/ir/print.h"
#include "core/passes/passes.h"
#include "python/bind/diagnostic_view.h"
#include "python/bind/host.h"
#include "python/bind/pass_options.h"

namespace pypto::bind {
namespace {

nb::object functions_of(PyProgram& p) {
  if (!p.functions.is_valid()) {
    nb::dict d;
    for (const auto& f : p.module->functions) d[f->name.c_str()] = function_object(f, p.module);
    p.functions = nb::steal(PyDictProxy_New(d.ptr()));
  }
  return p.functions;
}

std::string print_node(nb::handle node, const ir::PrintOptions& options) {
  if (nb::isinstance<PyProgram>(node)) {
    auto& p = nb::cast<PyProgram&>(node);
    if (!p.full_names) return guarded([&] { return ir::print(*p.module, options); });
    ir::Module shown = *p.module;
    shown.lowered = true;
    return guarded([&] { return ir::print(shown, options); });
  }
  if (nb::isinstance<PyFunction>(node)) {
    auto& f = nb::cast<PyFunction&>(node);
    return guarded([&] { return ir::print(*f.function, options); });
  }
  return nb::cast<std::string>(nb::str(node));
}

ir::PrintOptions print_options(const std::string& prefix, bool concise, bool explicit_layout) {
  ir::PrintOptions o;
  o.prefix = prefix;
  o.concise = concise;
  o.explicit_layout = explicit_layout;
  return o;
}

/// Without mapping only the same variable objects are equal (04 SER-7), so functions must be shared.
bool same_functions(const ir::Module& a, const ir::Module& b) {
  if (a.functions.size() != b.functions.size()) return false;
  for (size_t i = 0; i < a.functions.size(); ++i) {
    if (a.functions[i] != b.functions[i] && !(a.functions[i]->vars.empty() && b.functions[i]->vars.empty()))
      return false;
  }
  return true;
}

/// Both sides as modules or functions; false with `why` set when they are of different kinds.
bool nodes_equal(nb::handle a, nb::handle b, bool mapping, std::string* path) {
  if (nb::isinstance<PyProgram>(a) && nb::isinstance<PyProgram>(b)) {
    const auto &x = nb::cast<PyProgram&>(a).module, &y = nb::cast<PyProgram&>(b).module;
    if (x == y) return true;
    if (!mapping && !same_functions(*x, *y)) {
      if (path) *path = "the programs have different variables";
      return false;
    }
    return guarded([&] { return ir::structural_equal(*x, *y, path); });
  }
  if (nb::isinstance<PyFunction>(a) && nb::isinstance<PyFunction>(b)) {
    const auto &x = nb::cast<PyFunction&>(a).function, &y = nb::cast<PyFunction&>(b).function;
    if (x == y) return true;
    if (!mapping && !x->vars.empty()) {
      if (path) *path = "the functions have different variables";
      return false;
    }
    return guarded([&] { return ir::structural_equal(*x, *y, path); });
  }
  if (a.is(b)) return true;
  if (a.type().is(b.type())) {
    const bool same = nb::cast<std::string>(nb::str(a)) == nb::cast<std::string>(nb::str(b));
    if (!same && path) *path = std::string(nb::str(a).c_str()) + " != " + nb::str(b).c_str();
    return same;
  }
  if (path)
    *path =
        std::string("a ") + nb::type_name(a.type()).c_str() + " against a " + nb::type_name(b.type()).c_str();
  return false;
}

uint64_t hash_of(nb::handle node) {
  if (nb::isinstance<PyProgram>(node)) return ir::structural_hash(*nb::cast<PyProgram&>(node).module);
  if (nb::isinstance<PyFunction>(node)) return ir::structural_hash(*nb::cast<PyFunction&>(node).function);
  return std::hash<std::string>()(nb::cast<std::string>(nb::str(node)));
}

// The first byte of the saved form says what it holds.
constexpr char kProgramTag = 'P';
constexpr char kFunctionTag = 'F';

nb::bytes serialize_node(nb::handle node) {
  std::string bytes;
  if (nb::isinstance<PyProgram>(node)) {
    bytes = kProgramTag + guarded([&] { return ir::serialize(*nb::cast<PyProgram&>(node).module); });
  } else if (nb::isinstance<PyFunction>(node)) {
    bytes = kFunctionTag + guarded([&] { return ir::serialize(*nb::cast<PyFunction&>(node).function); });
  } else {
    throw nb::type_error(("serialize takes an ir.Program or ir.Function, got " +
                          std::string(nb::type_name(node.type()).c_str()))
                             .c_str());
  }
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object deserialize_bytes(const nb::bytes& data) {
  std::string bytes(data.c_str(), data.size());
  const char tag = bytes.empty() ? '\0' : bytes[0];
  if (tag != kProgramTag && tag != kFunctionTag) {
    fail(ErrorClass::kValueError, "deserialize: these bytes were not written by serialize");
  }
  bytes.erase(0, 1);
  if (tag == kProgramTag) return program_object(guarded([&] { return ir::deserialize_module(bytes); }));
  ir::FunctionPtr f = guarded([&] { return ir::deserialize_function(bytes); });
  auto module = std::make_shared<ir::Module>();
  module->name = f->name;
  module->functions.push_back(f);
  return function_object(f, module);
}

std::vector<std::string> entries_of(const ir::Module& m) {
  std::vector<std::string> out;
  if (m.entry()) return out;
  for (const auto& f : m.functions) {
    if (f->type == ir::FunctionType::kOrchestration && !f->is_host()) out.push_back(f->name);
  }
  return out;
}

nb::object attrs_of(const ir::Function& f) {
  nb::dict d;
  nb::object read = nb::module_::import_("pypto._enums").attr("_attribute_value");
  for (const auto& a : f.attrs) d[a.key.c_str()] = read(a.value);
  return nb::steal(PyDictProxy_New(d.ptr()));
}

nb::list diagnostics_of(const std::vector<Diagnostic>& list) {
  nb::list out;
  for (const auto& d : list) out.append(diagnostic_object(d));
  return out;
}

void bind_function(nb::module_& m) {
  nb::class_<PyFunction>(m, "Function", "A function of a program; read-only.")
      .def_prop_ro("name", [](const PyFunction& f) { return f.function->name; })
      .def_prop_ro(
          "func_type",
          [](const PyFunction& f) { return enum_object("FunctionType", static_cast<int>(f.function->type)); })
      .def_prop_ro(
          "level",
          [](const PyFunction& f) { return enum_object("Level", static_cast<int>(f.function->level)); })
      .def_prop_ro(
          "role", [](const PyFunction& f) { return enum_object("Role", static_cast<int>(f.function->role)); })
      .def_prop_ro("params",
                   [](const PyFunction& f) {
                     nb::list out;
                     for (const auto& p : f.function->params) out.append(var_object(p));
                     return out;
                   })
      .def_prop_ro("param_directions",
                   [](const PyFunction& f) {
                     nb::list out;
                     for (const auto d : f.function->directions) {
                       out.append(enum_object("ParamDirection", static_cast<int>(d)));
                     }
                     return out;
                   })
      .def_prop_ro("effective_directions",
                   [](const PyFunction& f) {
                     nb::list out;
                     const auto& list = f.function->effective_directions.empty()
                                            ? f.function->directions
                                            : f.function->effective_directions;
                     for (const auto d : list) out.append(enum_object("ParamDirection", static_cast<int>(d)));
                     return out;
                   })
      .def_prop_ro("return_types",
                   [](const PyFunction& f) {
                     nb::list out;
                     for (const auto& t : f.function->return_types) out.append(type_object(t));
                     return out;
                   })
      .def_prop_ro("return_params", [](const PyFunction& f) { return f.function->return_params; })
      .def_prop_ro("body", [](const PyFunction& f) { return body_object(f.function); })
      .def_prop_ro("attrs", [](const PyFunction& f) { return attrs_of(*f.function); })
      .def_prop_ro("auto_scope", [](const PyFunction& f) { return f.function->auto_scope; })
      .def_prop_ro("requires_runtime_binding",
                   [](const PyFunction& f) { return f.function->requires_runtime_binding; })
      .def_prop_ro("is_sub_worker", [](const PyFunction& f) { return f.function->is_sub_worker; })
      .def_prop_ro("host_function",
                   [](const PyFunction& f) { return callable_object(f.function->host_callable); })
      .def_prop_ro("external_source", [](const PyFunction& f) { return f.function->external_source; })
      .def_prop_ro("uses_cube", [](const PyFunction& f) { return f.function->uses_cube; })
      .def_prop_ro("uses_vector", [](const PyFunction& f) { return f.function->uses_vector; })
      .def_prop_ro("span",
                   [](const PyFunction& f) {
                     return f.function->span.known() ? nb::cast(PySpan{f.function->span}) : nb::none();
                   })
      .def(
          "as_python",
          [](nb::object self, const std::string& prefix, bool concise, bool, bool explicit_layout) {
            return print_node(self, print_options(prefix, concise, explicit_layout));
          },
          nb::arg("prefix") = "pl", nb::arg("concise") = false, nb::arg("format") = true,
          nb::arg("explicit_layout") = false)
      .def("__str__", [](nb::object self) { return print_node(self, {}); })
      .def("__repr__", [](const PyFunction& f) { return "ir.Function('" + f.function->name + "')"; })
      // Pointer equality: several wrappers may stand for one function.
      .def("__eq__",
           [](const PyFunction& a, nb::object b) {
             return nb::isinstance<PyFunction>(b) && nb::cast<PyFunction&>(b).function == a.function;
           })
      .def("__hash__",
           [](const PyFunction& f) { return reinterpret_cast<Py_ssize_t>(f.function.get()) >> 4; })
      .def("__call__", [](const PyFunction& f, nb::args, nb::kwargs) {
        throw nb::type_error(
            ("function '" + f.function->name +
             "' of the language cannot be called from Python; call it inside a decorated function")
                .c_str());
      });
}

void bind_program(nb::module_& m) {
  nb::class_<PyProgram>(m, "Program", nb::is_weak_referenceable(), "A program; read-only.")
      .def_prop_ro("name", [](const PyProgram& p) { return p.module->name; })
      .def_prop_ro("arch", [](const PyProgram& p) { return arch_text(p.module->arch); })
      .def_prop_ro("lowered", [](const PyProgram& p) { return p.module->lowered; })
      .def_prop_ro("functions", &functions_of)
      .def(
          "get_function",
          [](PyProgram& p, const std::string& name) -> nb::object {
            nb::object all = functions_of(p);
            return all.attr("get")(name);
          },
          nb::arg("name"))
      .def_prop_ro("entry",
                   [](PyProgram& p) -> nb::object {
                     const auto f = p.module->entry();
                     if (!f) return nb::none();
                     return functions_of(p)[f->name.c_str()];
                   })
      .def(
          "__getattr__",
          [](const PyProgram& p, const std::string& name) -> nb::object {
            std::string text = "program '" + p.module->name + "' has no attribute '" + name + "'";
            if (p.module->find(name)) {
              text += "; its function is program.functions['" + name +
                      "'], and ir.compile(program) gives what can be called";
            }
            throw nb::attribute_error(text.c_str());
          },
          nb::arg("name"))
      .def_prop_ro("entries", [](const PyProgram& p) { return entries_of(*p.module); })
      .def_prop_ro("is_distributed",
                   [](const PyProgram& p) {
                     for (const auto& f : p.module->functions) {
                       if (f->is_host()) return true;
                     }
                     return false;
                   })
      .def_prop_ro("sub_workers",
                   [](PyProgram& p) {
                     nb::dict out;
                     nb::object all = functions_of(p);
                     for (const auto& f : p.module->functions) {
                       if (f->is_sub_worker) out[f->name.c_str()] = all[f->name.c_str()];
                     }
                     return out;
                   })
      .def_prop_ro("warnings", [](const PyProgram& p) { return diagnostics_of(p.module->warnings); })
      .def(
          "clone",
          [](PyProgram& p, std::optional<std::string> arch) {
            return program_object(ir::clone(*(arch ? module_for(p, arch_from_text(*arch)) : p.module)));
          },
          nb::arg("arch") = nb::none())
      .def(
          "as_python",
          [](nb::object self, const std::string& prefix, bool concise, bool, bool explicit_layout) {
            return print_node(self, print_options(prefix, concise, explicit_layout));
          },
          nb::arg("prefix") = "pl", nb::arg("concise") = false, nb::arg("format") = true,
          nb::arg("explicit_layout") = false)
      .def("__str__", [](nb::object self) { return print_node(self, {}); })
      .def("__repr__", [](const PyProgram& p) {
        std::string names;
        for (const auto& f : p.module->functions) names += (names.empty() ? "" : ", ") + f->name;
        return "ir.Program('" + p.module->name + "', functions: " + names + ")";
      });
}

}  // namespace

ir::Arch arch_from_text(const std::string& text) {
  if (text == "a2a3") return ir::Arch::kA2A3;
  if (text == "a5") return ir::Arch::kA5;
  throw nb::value_error(("architecture must be 'a2a3' or 'a5', got '" + text + "'").c_str());
}

const char* arch_text(ir::Arch arch) { return arch == ir::Arch::kA5 ? "a5" : "a2a3"; }

passes::PassOptions pass_options(const std::string& planner, bool double_buffer_c, bool analyze,
                                 int world_size) {
  passes::PassOptions o;
  if (planner == "DSA_RP") {
    o.planner = passes::MemoryPlanner::kDsaRp;
  } else if (planner == "PTOAS") {
    o.planner = passes::MemoryPlanner::kPtoas;
  } else if (planner != "PYPTO") {
    throw nb::value_error(("memory planner must be PYPTO, DSA_RP or PTOAS, got '" + planner + "'").c_str());
  }
  o.double_buffer_c = double_buffer_c;
  o.analyze_auto_scopes_for_deps = analyze;
  o.world_size = world_size;
  return o;
}

nb::object program_object(ir::ModulePtr module, std::shared_ptr<sema::ProgramSource> source) {
  PyProgram p;
  p.module = std::move(module);
  p.source = std::move(source);
  return nb::cast(std::move(p));
}

nb::object function_object(ir::FunctionPtr function, ir::ModulePtr module) {
  return nb::cast(PyFunction{std::move(function), std::move(module), nullptr});
}

void register_program(nb::module_& m) {
  bind_function(m);
  bind_program(m);
  m.def(
      "python_print",
      [](nb::object node, const std::string& prefix, bool concise, bool explicit_layout) {
        return print_node(node, print_options(prefix, concise, explicit_layout));
      },
      nb::arg("node"), nb::arg("prefix") = "pl", nb::arg("concise") = false,
      nb::arg("explicit_layout") = false);
  m.def(
      "structural_equal",
      [](nb::object a, nb::object b, bool mapping) { return nodes_equal(a, b, mapping, nullptr); },
      nb::arg("a"), nb::arg("b"), nb::arg("enable_auto_mapping") = false);
  m.def(
      "structural_difference",
      [](nb::object a, nb::object b, bool mapping) -> nb::object {
        std::string path;
        if (nodes_equal(a, b, mapping, &path)) return nb::none();
        return nb::str(path.empty() ? "the programs differ" : path.c_str());
      },
      nb::arg("a"), nb::arg("b"), nb::arg("enable_auto_mapping") = true);
  m.def(
      "structural_hash", [](nb::object node, bool) { return hash_of(node) >> 1; }, nb::arg("node"),
      nb::arg("enable_auto_mapping") = false);
  m.def(
      "name_function",
      [](PyProgram& p, const std::string& identifier, const std::string& name) {
        const auto f = p.module->find(identifier);
        if (f) f->name = name;
      },
      nb::arg("program"), nb::arg("identifier"), nb::arg("name"),
      "A function of a text gets back the name that was written as an identifier; before the program is "
      "used.");
  m.def(
      "print_full_names", [](PyProgram& p) { p.full_names = true; }, nb::arg("program"),
      "A program read from the text of a lowered one prints as it was written.");
  m.def("serialize", &serialize_node, nb::arg("node"));
  m.def("deserialize", &deserialize_bytes, nb::arg("data"));
  m.def(
      "verify", [](PyProgram& p) { return diagnostics_of(guarded([&] { return ir::verify(*p.module); })); },
      nb::arg("program"));
  m.def("pass_names", [] { return passes::pass_names(); });
  m.def(
      "apply_pass",
      [](const std::string& name, PyProgram& p, const std::string& planner, bool double_buffer_c,
         bool analyze, int world_size) {
        const auto options = pass_options(planner, double_buffer_c, analyze, world_size);
        ir::ModulePtr out = guarded([&] { return passes::apply_pass(name, *p.module, options); });
        return program_object(out);
      },
      nb::arg("name"), nb::arg("program"), nb::kw_only(), nb::arg("planner") = "PYPTO",
      nb::arg("double_buffer_c") = false, nb::arg("analyze_auto_scopes_for_deps") = false,
      nb::arg("world_size") = 0);
}

}  // namespace pypto::bind
