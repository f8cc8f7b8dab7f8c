// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "python/bind/common.h"
#include "python/bind/diagnostic_view.h"

namespace pypto::bind {
namespace {

const char* class_name(ErrorClass cls) {
  switch (cls) {
    case ErrorClass::kParserError:
      return "ParserError";
    case ErrorClass::kParserSyntaxError:
      return "ParserSyntaxError";
    case ErrorClass::kParserTypeError:
      return "ParserTypeError";
    case ErrorClass::kUndefinedVariableError:
      return "UndefinedVariableError";
    case ErrorClass::kSSAViolationError:
      return "SSAViolationError";
    case ErrorClass::kUnsupportedFeatureError:
      return "UnsupportedFeatureError";
    case ErrorClass::kInvalidOperationError:
      return "InvalidOperationError";
    case ErrorClass::kScopeIsolationError:
      return "ScopeIsolationError";
    case ErrorClass::kValueError:
      return "ValueError";
    case ErrorClass::kTypeError:
      return "TypeError";
    case ErrorClass::kIndexError:
      return "IndexError";
    case ErrorClass::kKeyError:
      return "KeyError";
    case ErrorClass::kZeroDivisionError:
      return "ZeroDivisionError";
    case ErrorClass::kOSError:
      return "OSError";
    case ErrorClass::kSyntaxError:
      return "SyntaxError";
    case ErrorClass::kError:
      return "Error";
    case ErrorClass::kCompileError:
      return "CompileError";
    case ErrorClass::kPartialCodegenError:
      return "PartialCodegenError";
    case ErrorClass::kRuntimeError:
      return "RuntimeError";
    case ErrorClass::kProgramFault:
      return "ProgramFault";
    case ErrorClass::kDeadlockError:
      return "DeadlockError";
    case ErrorClass::kRaceError:
      return "RaceError";
    case ErrorClass::kUninitializedReadError:
      return "UninitializedReadError";
    case ErrorClass::kProtocolError:
      return "ProtocolError";
    case ErrorClass::kOutOfBoundsError:
      return "OutOfBoundsError";
    case ErrorClass::kCallbackError:
      return "CallbackError";
    case ErrorClass::kPlatformUnavailableError:
      return "PlatformUnavailableError";
    case ErrorClass::kInternalError:
      return "InternalError";
  }
  return "InternalError";
}

struct Exceptions {
  std::mutex mutex;
  std::unordered_map<int, nb::object> kept;
  int next = 1;
};
Exceptions& exceptions() {
  static Exceptions* e = new Exceptions;
  return *e;
}

nb::object text_or_none(const std::string& s) {
  return s.empty() ? nb::none() : nb::object(nb::str(s.c_str(), s.size()));
}
nb::object index_or_none(int64_t v) { return v < 0 ? nb::none() : nb::object(nb::int_(v)); }

/// The rule id of a finding; findings of the front end have it at the head of their message only.
std::string rule_id(const Diagnostic& d) {
  if (!d.id.empty()) return d.id;
  size_t end = d.message.rfind("X-", 0) == 0 ? 2 : std::string::npos;
  while (end < d.message.size() && d.message[end] >= '0' && d.message[end] <= '9') ++end;
  const bool found = end != std::string::npos && end > 2 && d.message.compare(end, 2, ": ") == 0;
  return found ? d.message.substr(0, end) : std::string();
}

nb::object span_line(const Span& s) { return s.known() ? nb::object(nb::int_(s.line)) : nb::none(); }
nb::object span_column(const Span& s) { return s.known() ? nb::object(nb::int_(s.column)) : nb::none(); }
nb::object span_file(const Span& s) {
  return s.known() ? nb::object(nb::str(s.file->path.c_str())) : nb::none();
}

const char* severity_text(Severity s) {
  return s == Severity::kError ? "error" : s == Severity::kWarning ? "warning" : "note";
}

nb::dict diagnostic_dict(const Diagnostic& d) {
  nb::dict out;
  out["id"] = text_or_none(rule_id(d));
  out["severity"] = severity_text(d.severity);
  out["title"] = d.title;
  out["message"] = d.message;
  out["help"] = text_or_none(d.hint);
  out["rank"] = index_or_none(d.rank);
  out["core"] = text_or_none(d.core);
  out["task"] = index_or_none(d.task);
  out["kernel"] = text_or_none(d.kernel);
  out["block"] = index_or_none(d.block);
  out["lane"] = index_or_none(d.lane);
  out["file"] = span_file(d.span);
  out["line"] = span_line(d.span);
  out["column"] = span_column(d.span);
  out["replay"] = text_or_none(d.replay);
  nb::list accesses;
  for (const auto& a : d.accesses) {
    nb::dict e;
    e["rank"] = index_or_none(a.rank);
    e["core"] = text_or_none(a.core);
    e["task"] = index_or_none(a.task);
    e["kernel"] = text_or_none(a.kernel);
    e["block"] = index_or_none(a.block);
    e["lane"] = index_or_none(a.lane);
    e["file"] = span_file(a.span);
    e["line"] = span_line(a.span);
    e["column"] = span_column(a.span);
    e["kind"] = a.kind;
    e["object"] = text_or_none(a.object);
    nb::list range;
    for (const auto& [begin, end] : a.range) range.append(nb::make_tuple(begin, end));
    e["range"] = range;
    e["bytes"] = a.bytes;
    accesses.append(e);
  }
  out["accesses"] = accesses;
  nb::list waits;
  for (const auto& w : d.waits) {
    nb::dict e;
    e["rank"] = index_or_none(w.rank);
    e["core"] = text_or_none(w.core);
    e["kernel"] = text_or_none(w.kernel);
    e["block"] = index_or_none(w.block);
    e["lane"] = index_or_none(w.lane);
    e["file"] = span_file(w.span);
    e["line"] = span_line(w.span);
    e["object"] = text_or_none(w.object);
    nb::list cell;
    for (const int64_t c : w.cell) cell.append(c);
    e["cell"] = cell;
    e["seen"] = w.seen;
    e["comparison"] = text_or_none(w.comparison);
    e["needed"] = w.needed;
    nb::list raisers;
    for (const auto& r : w.raisers) raisers.append(nb::str(r.c_str()));
    e["raisers"] = raisers;
    waits.append(e);
  }
  out["waits"] = waits;
  return out;
}

/// A list of dicts as a list of objects with attributes.
nb::object records(const nb::handle& dicts) {
  nb::object record = nb::module_::import_("pypto._errors").attr("Record");
  nb::list out;
  for (nb::handle d : dicts) out.append(record(nb::borrow(d)));
  return out;
}

nb::object span_object(const Span& s) {
  if (!s.known()) return nb::none();
  return nb::cast(PySpan{s});
}

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const Failure& f) {
    nb::object e = make_exception(f.diagnostic());
    PyErr_SetObject(e.type().ptr(), e.ptr());
  }
}

bool deprecation(const Diagnostic& d) { return d.id == "W-DEPRECATED"; }

}  // namespace

int keep_exception(nb::object exception) {
  auto& e = exceptions();
  std::lock_guard lock(e.mutex);
  const int index = e.next++;
  e.kept[index] = std::move(exception);
  return index;
}

nb::object take_exception(int index) {
  auto& e = exceptions();
  std::lock_guard lock(e.mutex);
  const auto it = e.kept.find(index);
  if (it == e.kept.end()) return nb::none();
  nb::object out = std::move(it->second);
  e.kept.erase(it);
  return out;
}

nb::object diagnostic_object(const Diagnostic& d) { return nb::cast(PyDiagnostic{d}); }

nb::object make_exception(const Diagnostic& d) {
  nb::object cause = nb::none();
  if (d.host_exception >= 0) {
    cause = take_exception(d.host_exception);
  }
  nb::object cause_text = nb::none(), cause_class = nb::none();
  if (d.has_cause) {
    cause_class = nb::str(class_name(d.cause_cls));
    cause_text = nb::str(d.cause_message.c_str());
  }
  return nb::module_::import_("pypto._errors")
      .attr("_from_native")(class_name(d.cls), diagnostic_object(d), cause, cause_class, cause_text);
}

void issue_warnings(const std::vector<Diagnostic>& warnings, size_t first) {
  if (first >= warnings.size()) return;
  nb::object issue = nb::module_::import_("pypto._errors").attr("_warn");
  for (size_t i = first; i < warnings.size(); ++i) {
    const Diagnostic& d = warnings[i];
    if (d.severity != Severity::kWarning) continue;
    std::string text = d.id.empty() || d.message.rfind(d.id, 0) == 0 ? d.message : d.id + ": " + d.message;
    if (d.span.known()) text += " [" + d.span.file_line() + "]";
    if (!d.hint.empty()) text += "\n  help: " + d.hint;
    issue(text, deprecation(d), d.span.known() ? d.span.file->path : std::string("<unknown>"), d.span.line);
  }
}

void register_errors(nb::module_& m) {
  nb::register_exception_translator(translate);
  nb::class_<PySpan>(m, "Span", "A place in a source file; lines and columns are 1-based.")
      .def(
          "__init__",
          [](PySpan* self, const std::string& filename, int line, int column, int end_line, int end_column) {
            auto file = std::make_shared<SourceFile>();
            file->path = filename;
            new (self) PySpan{Span{file, line, column, end_line, end_column}};
          },
          nb::arg("filename") = "<unknown>", nb::arg("line") = 0, nb::arg("column") = 0,
          nb::arg("end_line") = 0, nb::arg("end_column") = 0)
      .def_prop_ro("filename",
                   [](const PySpan& s) { return s.span.file ? s.span.file->path : std::string(); })
      .def_prop_ro("line", [](const PySpan& s) { return s.span.line; })
      .def_prop_ro("column", [](const PySpan& s) { return s.span.column; })
      .def_prop_ro("begin_line", [](const PySpan& s) { return s.span.line; })
      .def_prop_ro("begin_column", [](const PySpan& s) { return s.span.column; })
      .def_prop_ro("end_line", [](const PySpan& s) { return s.span.end_line; })
      .def_prop_ro("end_column", [](const PySpan& s) { return s.span.end_column; })
      .def("source_lines",
           [](const PySpan& s) {
             nb::list out;
             if (s.span.file) {
               for (const auto& l : s.span.file->lines) out.append(nb::str(l.c_str(), l.size()));
             }
             return out;
           })
      .def("__str__", [](const PySpan& s) { return s.span.text(); })
      .def("__repr__", [](const PySpan& s) { return "Span(" + s.span.text() + ")"; })
      .def("__eq__",
           [](const PySpan& a, nb::object b) {
             return nb::isinstance<PySpan>(b) && nb::cast<PySpan&>(b).span.text() == a.span.text();
           })
      .def("__hash__", [](const PySpan& s) {
        return static_cast<Py_ssize_t>(std::hash<std::string>()(s.span.text()) >> 1);
      });

  auto cls = nb::class_<PyDiagnostic>(m, "Diagnostic", "One finding (04 OBS-30).");
  cls.def_prop_ro("id", [](const PyDiagnostic& d) { return rule_id(d.d); })
      .def_prop_ro("severity", [](const PyDiagnostic& d) { return severity_text(d.d.severity); })
      .def_prop_ro("title", [](const PyDiagnostic& d) { return d.d.title; })
      .def_prop_ro("message", [](const PyDiagnostic& d) { return d.d.message; })
      .def_prop_ro("help", [](const PyDiagnostic& d) { return d.d.hint; })
      .def_prop_ro("label", [](const PyDiagnostic& d) { return d.d.label; })
      .def_prop_ro("rank", [](const PyDiagnostic& d) { return index_or_none(d.d.rank); })
      .def_prop_ro("core", [](const PyDiagnostic& d) { return text_or_none(d.d.core); })
      .def_prop_ro("task", [](const PyDiagnostic& d) { return index_or_none(d.d.task); })
      .def_prop_ro("kernel", [](const PyDiagnostic& d) { return text_or_none(d.d.kernel); })
      .def_prop_ro("block", [](const PyDiagnostic& d) { return index_or_none(d.d.block); })
      .def_prop_ro("lane", [](const PyDiagnostic& d) { return index_or_none(d.d.lane); })
      .def_prop_ro("file", [](const PyDiagnostic& d) { return span_file(d.d.span); })
      .def_prop_ro("line", [](const PyDiagnostic& d) { return span_line(d.d.span); })
      .def_prop_ro("column", [](const PyDiagnostic& d) { return span_column(d.d.span); })
      .def_prop_ro("replay", [](const PyDiagnostic& d) { return text_or_none(d.d.replay); })
      .def_prop_ro("span", [](const PyDiagnostic& d) { return span_object(d.d.span); })
      .def_prop_ro("previous_span", [](const PyDiagnostic& d) { return span_object(d.d.previous_span); })
      .def_prop_ro("error_class", [](const PyDiagnostic& d) { return class_name(d.d.cls); })
      .def_prop_ro("accesses",
                   [](const PyDiagnostic& d) { return records(diagnostic_dict(d.d)["accesses"]); })
      .def_prop_ro("waits", [](const PyDiagnostic& d) { return records(diagnostic_dict(d.d)["waits"]); })
      .def_prop_ro("notes",
                   [](const PyDiagnostic& d) {
                     nb::list out;
                     for (const auto& n : d.d.notes) {
                       out.append(nb::make_tuple(
                           n.text, n.span.known() ? nb::object(nb::str(n.span.text().c_str())) : nb::none()));
                     }
                     return out;
                   })
      .def(
          "render", [](const PyDiagnostic& d, bool color) { return render(d.d, color); },
          nb::arg("color") = false)
      .def("location", [](const PyDiagnostic& d) { return render_location(d.d); })
      .def("to_dict", [](const PyDiagnostic& d) { return diagnostic_dict(d.d); })
      .def("exception", [](const PyDiagnostic& d) { return make_exception(d.d); })
      .def("__str__", [](const PyDiagnostic& d) { return render(d.d); })
      .def("__repr__", [](const PyDiagnostic& d) {
        const std::string id = rule_id(d.d);
        return "Diagnostic(" + (id.empty() ? std::string(severity_text(d.d.severity)) : id) + ", " +
               std::string(nb::repr(nb::str(d.d.message.c_str())).c_str()) + ")";
      });
  // Used by pypto.language to raise its own front-end errors with a rendered location.
  m.def(
      "make_diagnostic",
      [](const std::string& message, nb::object span, const std::string& hint, const std::string& note,
         const std::vector<std::string>& lines) {
        Diagnostic d;
        d.message = message;
        d.hint = hint;
        if (!note.empty()) d.notes.push_back({note, {}});
        if (!span.is_none()) {
          auto file = std::make_shared<SourceFile>();
          file->path = nb::cast<std::string>(span["filename"]);
          file->lines = lines;
          d.span = Span{file, nb::cast<int>(span["line"]), nb::cast<int>(span["column"]), 0, 0};
        }
        return PyDiagnostic{std::move(d)};
      },
      nb::arg("message"), nb::arg("span").none(), nb::arg("hint") = "", nb::arg("note") = "",
      nb::arg("lines") = std::vector<std::string>());
  m.def("raise_internal", [](const std::string& what) { fail_internal("python", 0, what); });
}

}  // namespace pypto::bind
