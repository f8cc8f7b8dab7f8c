// SPDX-License-Identifier: Apache-2.0
#include "python/bind/evaluator.h"
#include "python/bind/host.h"
#include "python/bind/program.h"
#include "python/bind/source_tree.h"

namespace pypto::bind {
namespace {

using sema::DeclKind;
using sema::FunctionSource;

DeclKind decl_from_text(const std::string& text) {
  static const std::map<std::string, DeclKind> kinds = {
      {"method", DeclKind::kProgramMethod}, {"jit", DeclKind::kJit},
      {"host", DeclKind::kJitHost},         {"incore", DeclKind::kJitIncore},
      {"inline", DeclKind::kJitInline},     {"opaque", DeclKind::kJitOpaque},
      {"extern", DeclKind::kJitExtern},     {"helper", DeclKind::kInlineHelper},
      {"sub_worker", DeclKind::kSubWorker},
  };
  const auto it = kinds.find(text);
  PYPTO_CHECK(it != kinds.end(), "unknown kind of declaration " + text);
  return it->second;
}

/// A body that is only `...`, after a docstring and pl.func_attr.
bool only_ellipsis(const syntax::FunctionDef& def) {
  if (def.body.empty()) return false;
  const auto& last = *def.body.back();
  if (last.kind != syntax::StmtKind::kExpr || !last.value || last.value->kind != syntax::ExprKind::kEllipsis)
    return false;
  for (size_t i = 0; i + 1 < def.body.size(); ++i) {
    const auto& s = *def.body[i];
    if (s.kind != syntax::StmtKind::kExpr || !s.value) return false;
    const bool docstring = s.value->kind == syntax::ExprKind::kString;
    const bool attribute_call = s.value->kind == syntax::ExprKind::kCall &&
                                s.value->items[0]->kind == syntax::ExprKind::kAttribute &&
                                s.value->items[0]->text == "func_attr";
    if (!docstring && !attribute_call) return false;
  }
  return true;
}

void load(FunctionSource& f, const nb::object& function, const nb::object& captured, bool method) {
  PyObject* code = PyFunction_GetCode(function.ptr());
  auto def = function_tree(code);
  if (!def) {
    const auto path = nb::cast<std::string>(nb::handle(code).attr("co_filename"));
    fail(ErrorClass::kOSError,
         "the source of function '" + f.name + "' cannot be read: there is no Python file " + path +
             " that defines it (functions typed into a shell or made by exec have none)");
  }
  f.has_self = method && !def->params.empty() && def->params[0].name == "self";
  f.body_is_ellipsis = only_ellipsis(*def);
  f.def = std::move(def);
  if (!f.host) f.host = std::make_shared<PyHost>(function, captured);
}

std::vector<ir::FunctionAttr> attributes(nb::handle attrs) {
  std::vector<ir::FunctionAttr> out;
  if (attrs.is_none()) return out;
  for (auto [key, value] : nb::borrow<nb::dict>(attrs)) {
    ir::FunctionAttr a;
    a.key = nb::cast<std::string>(nb::str(key));
    if (const std::string* cls = enum_class_name(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())))) {
      a.value = "pl." + *cls + "." + nb::cast<std::string>(nb::str(value.attr("name")));
    } else {
      a.value = nb::cast<std::string>(nb::repr(value));
    }
    if (PyLong_Check(value.ptr())) a.int_value = nb::cast<int64_t>(value);
    out.push_back(std::move(a));
  }
  return out;
}

/// Reads a program for one architecture. Warnings are the caller's.
ir::ModulePtr read_program(const sema::ProgramSource& source, ir::Arch arch) {
  BuildSession session;
  sema::BuildOptions options;
  options.arch = arch;
  return guarded([&] { return sema::build_program(source, options); });
}

/// A program is read when it is defined, before anybody names a platform: first for a2a3, and if it uses what
/// only the other family has, for a5.
nb::object build_program(const std::string& name, std::vector<nb::object> functions, bool strict_ssa,
                         nb::object) {
  auto source = std::make_shared<sema::ProgramSource>();
  source->name = name;
  source->strict_ssa = strict_ssa;
  for (const nb::object& f : functions) {
    auto& py = nb::cast<PyFunctionSource&>(f);
    py.source->ensure_loaded();
    source->functions.push_back(py.source);
  }
  if (!source->functions.empty() && source->functions[0]->def) source->span = source->functions[0]->def->span;
  ir::ModulePtr module;
  try {
    module = read_program(*source, ir::Arch::kA2A3);
  } catch (const Failure& first) {
    if (first.diagnostic().cls == ErrorClass::kInternalError) throw;
    try {
      module = read_program(*source, ir::Arch::kA5);
    } catch (const Failure&) {
      throw first;
    }
  }
  issue_warnings(module->warnings);
  return program_object(module, source);
}

nb::object build_function(nb::object function) {
  auto& py = nb::cast<PyFunctionSource&>(function);
  py.source->ensure_loaded();
  BuildSession session;
  sema::BuildOptions options;
  ir::ModulePtr module = guarded([&]() -> ir::ModulePtr {
    try {
      return sema::build_function(py.source, options);
    } catch (const Failure& first) {
      if (first.diagnostic().cls == ErrorClass::kInternalError) throw;
      options.arch = ir::Arch::kA5;
      try {
        return sema::build_function(py.source, options);
      } catch (const Failure&) {
        throw first;
      }
    }
  });
  issue_warnings(module->warnings);
  ir::FunctionPtr f = module->find(py.source->name);
  PYPTO_CHECK(f, "the function that was read is not in its module");
  return function_object(f, module);
}

}  // namespace

ir::ModulePtr module_for(PyProgram& program, ir::Arch arch) {
  if (program.module->arch == arch) return program.module;
  if (const auto it = program.other.find(arch); it != program.other.end()) return it->second;
  ir::ModulePtr module;
  if (program.source) {
    module = read_program(*program.source, arch);
    issue_warnings(module->warnings);
  } else {
    module = std::make_shared<ir::Module>(*program.module);
    module->arch = arch;
  }
  program.other[arch] = module;
  return module;
}

void register_source(nb::module_& m) {
  nb::class_<PyFunctionSource>(m, "FunctionSource", "A decorated Python function as the front end takes it.")
      .def(
          "__init__",
          [](PyFunctionSource* self, nb::object function, const std::string& decl, int type, int level,
             int role, bool auto_scope, bool strict_ssa, nb::object attrs, const std::string& external_source,
             nb::object captured) {
            auto f = std::make_shared<FunctionSource>();
            f->name = nb::cast<std::string>(function.attr("__name__"));
            f->decl = decl_from_text(decl);
            f->has_type = type >= 0;
            if (type >= 0) f->type = static_cast<ir::FunctionType>(type);
            f->level = static_cast<ir::Level>(level);
            f->role = static_cast<ir::Role>(role);
            f->auto_scope = auto_scope;
            f->strict_ssa = strict_ssa;
            f->attrs = attributes(attrs);
            f->external_source = external_source;
            if (f->decl == DeclKind::kSubWorker) f->host_callable = register_callable(function);
            const bool method = f->decl == DeclKind::kProgramMethod || f->decl == DeclKind::kSubWorker;
            f->load = [function, captured, method](FunctionSource& s) {
              load(s, function, captured, method);
            };
            new (self) PyFunctionSource{f, function, captured, nb::object()};
            if (PyFunction_Check(function.ptr())) {
              self->code = nb::borrow(PyFunction_GetCode(function.ptr()));
            }
          },
          nb::arg("function"), nb::arg("decl"), nb::kw_only(), nb::arg("type") = -1, nb::arg("level") = -1,
          nb::arg("role") = -1, nb::arg("auto_scope") = true, nb::arg("strict_ssa") = false,
          nb::arg("attrs").none() = nb::none(), nb::arg("external_source") = "",
          nb::arg("captured").none() = nb::none())
      .def_prop_ro("name", [](const PyFunctionSource& f) { return f.source->name; })
      .def_prop_ro("function", [](const PyFunctionSource& f) { return f.function; })
      .def("decorator_keywords",
           [](PyFunctionSource& f) {
             // Per decorator that is a call: (text of the callee, [(keyword or None for **, kind, text, line,
             // column)]).
             f.source->ensure_loaded();
             nb::list out;
             for (const auto& d : f.source->def->decorators) {
               if (d->kind != syntax::ExprKind::kCall) continue;
               nb::list keywords;
               for (const auto& k : d->keywords) {
                 const char* kind = k.value->kind == syntax::ExprKind::kAttribute ? "attribute"
                                    : k.value->kind == syntax::ExprKind::kName    ? "name"
                                    : k.value->kind == syntax::ExprKind::kBool    ? "bool"
                                    : k.value->kind == syntax::ExprKind::kNone    ? "none"
                                                                                  : "other";
                 std::string text = k.value->text;
                 if (k.value->kind == syntax::ExprKind::kAttribute) {
                   const auto& base = *k.value->items[0];
                   text = base.text + "." + text;
                 }
                 keywords.append(
                     nb::make_tuple(k.name.empty() ? nb::none() : nb::object(nb::str(k.name.c_str())), kind,
                                    text, k.value->span.line, k.value->span.column));
               }
               out.append(nb::make_tuple(d->items[0]->text, keywords));
             }
             return out;
           })
      .def_prop_ro("location",
                   [](PyFunctionSource& f) {
                     f.source->ensure_loaded();
                     return f.source->def->span.text();
                   })
      .def(
          "place_of",
          [](PyFunctionSource& f, const std::string& parameter) {
            return f.source->place_of(parameter).text();
          },
          nb::arg("parameter"), "Where a parameter is declared, or the function if it has none of that name.")
      .def_prop_ro("span",
                   [](PyFunctionSource& f) {
                     f.source->ensure_loaded();
                     const Span& s = f.source->def->span;
                     nb::dict d;
                     d["filename"] = s.file->path;
                     d["line"] = s.line;
                     d["column"] = s.column;
                     return d;
                   })
      .def_prop_ro("has_self", [](PyFunctionSource& f) {
        f.source->ensure_loaded();
        return f.source->has_self;
      });
  m.def("build_program", &build_program, nb::arg("name"), nb::arg("functions"), nb::arg("strict_ssa"),
        nb::arg("cls").none());
  m.def("build_function", &build_function, nb::arg("source"));
  m.def("register_value_classes", &register_value_classes);
  m.def("register_function_class", &register_function_class);
  m.def("register_text", &register_text, nb::arg("path"), nb::arg("text"), nb::arg("shown"),
        nb::arg("source_map").none());
  m.def("forget_text", &forget_text, nb::arg("path"));
  m.def(
      "source_available", [](const std::string& path) { return parsed_file(path) != nullptr; },
      "Whether the functions of a file can be read.");
  m.def(
      "annotation_names",
      [](nb::object code) {
        const auto def = function_tree(code.ptr());
        return def ? annotation_names(*def) : std::vector<std::string>();
      },
      nb::arg("code"),
      "Names in the decorators, defaults and annotations of a function, by its code object.");
}

}  // namespace pypto::bind
