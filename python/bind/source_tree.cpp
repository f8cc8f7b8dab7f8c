// SPDX-License-Identifier: Apache-2.0
#include "python/bind/source_tree.h"
#include "core/base/poll.h"

#include <sys/stat.h>

#include <cstring>
#include <set>

namespace pypto::bind {
namespace {

using syntax::Expr;
using syntax::ExprKind;
using syntax::ExprPtr;
using syntax::Stmt;
using syntax::StmtKind;
using syntax::StmtPtr;

constexpr int kOnlyAst = 0x0400;  // PyCF_ONLY_AST

/// Owned attribute; null (not an exception) when absent.
nb::object attr(nb::handle node, const char* name) {
  PyObject* value = PyObject_GetAttrString(node.ptr(), name);
  if (!value) {
    PyErr_Clear();
    return nb::object();
  }
  return nb::steal(value);
}

bool present(const nb::object& o) { return o.is_valid() && !o.is_none(); }

long attr_long(nb::handle node, const char* name, long fallback = 0) {
  nb::object o = attr(node, name);
  return present(o) ? PyLong_AsLong(o.ptr()) : fallback;
}

const char* class_of(nb::handle node) {
  const char* name = Py_TYPE(node.ptr())->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot ? dot + 1 : name;
}

std::string text_of(nb::handle o) {
  Py_ssize_t n = 0;
  const char* s = PyUnicode_AsUTF8AndSize(o.ptr(), &n);
  if (!s) {
    PyErr_Clear();  // lone surrogates
    nb::object b = nb::steal(PyUnicode_AsEncodedString(o.ptr(), "utf-8", "backslashreplace"));
    return std::string(PyBytes_AsString(b.ptr()), static_cast<size_t>(PyBytes_Size(b.ptr())));
  }
  return std::string(s, static_cast<size_t>(n));
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    size_t stop = end;
    if (stop > at && text[stop - 1] == '\r') --stop;
    lines.push_back(text.substr(at, stop - at));
    at = end + 1;
  }
  return lines;
}

bool is_ascii(const std::string& s) {
  for (const char c : s) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

/// Characters in the first `bytes` bytes of UTF-8 text.
int characters(const std::string& s, size_t bytes) {
  int n = 0;
  for (size_t i = 0; i < bytes && i < s.size(); ++i) {
    if ((static_cast<unsigned char>(s[i]) & 0xc0) != 0x80) ++n;
  }
  return n;
}

nb::object compile_tree(const std::string& text, const std::string& path, int start) {
  PyCompilerFlags flags;
  std::memset(&flags, 0, sizeof(flags));
  flags.cf_flags = kOnlyAst | PyCF_IGNORE_COOKIE;
  flags.cf_feature_version = PY_MINOR_VERSION;
  // Every object made here stays: the collector would look at all of them again and again.
  const int collecting = PyGC_Disable();
  PyObject* tree = Py_CompileStringExFlags(text.c_str(), path.c_str(), start, &flags, -1);
  if (collecting) PyGC_Enable();
  if (!tree) throw nb::python_error();
  return nb::steal(tree);
}

/// Records every function of a statement list by its first line.
void index_functions(nb::handle statements, ParsedFile& out) {
  if (!PyList_Check(statements.ptr())) return;
  const Py_ssize_t n = PyList_GET_SIZE(statements.ptr());
  for (Py_ssize_t i = 0; i < n; ++i) {
    nb::handle s = PyList_GET_ITEM(statements.ptr(), i);
    const char* cls = class_of(s);
    const bool function = std::strcmp(cls, "FunctionDef") == 0 || std::strcmp(cls, "AsyncFunctionDef") == 0;
    poll();
    if (function) {
      long first = attr_long(s, "lineno");
      nb::object decorators = attr(s, "decorator_list");
      if (present(decorators)) {
        for (nb::handle d : decorators) first = std::min(first, attr_long(d, "lineno"));
      }
      out.functions[first].push_back(nb::borrow(s));
    }
    if (std::strcmp(cls, "Expr") == 0 || std::strcmp(cls, "Assign") == 0) continue;
    for (const char* field : {"body", "orelse", "finalbody"}) {
      nb::object block = attr(s, field);
      if (present(block)) index_functions(block, out);
    }
    for (const char* field : {"handlers", "cases"}) {
      nb::object parts = attr(s, field);
      if (!present(parts)) continue;
      for (nb::handle h : parts) {
        nb::object block = attr(h, "body");
        if (present(block)) index_functions(block, out);
      }
    }
  }
}

struct FileCache {
  std::unordered_map<std::string, std::shared_ptr<ParsedFile>> files;
  std::unordered_map<std::string, std::shared_ptr<ParsedFile>> texts;  ///< registered, never on disk
};
FileCache& cache() {
  static FileCache* c = new FileCache;
  return *c;
}

std::shared_ptr<ParsedFile> make_parsed(const std::string& path, const std::string& text) {
  auto out = std::make_shared<ParsedFile>();
  out->file = std::make_shared<SourceFile>();
  out->file->path = path;
  out->file->lines = split_lines(text);
  out->ascii.reserve(out->file->lines.size());
  for (const auto& l : out->file->lines) out->ascii.push_back(is_ascii(l));
  out->tree = compile_tree(text, path, Py_file_input);
  nb::object body = attr(out->tree, "body");
  if (present(body)) index_functions(body, *out);
  return out;
}

/// The text of a file on disk as UTF-8; the coding line is honoured (PEP 263).
bool read_text(const std::string& path, std::string& out) {
  std::FILE* f = std::fopen(path.c_str(), "rb");
  if (!f) return false;
  char buffer[1 << 16];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof(buffer), f)) > 0) out.append(buffer, n);
  std::fclose(f);
  if (out.rfind("\xef\xbb\xbf", 0) == 0) out.erase(0, 3);
  const std::string head = out.substr(0, std::min<size_t>(out.size(), 200));
  const size_t coding = head.find("coding");
  if (coding != std::string::npos && head[0] == '#' && head.find("utf-8") == std::string::npos &&
      head.find("utf8") == std::string::npos) {
    try {
      nb::object file = nb::module_::import_("tokenize").attr("open")(path);
      nb::object text = file.attr("read")();
      file.attr("close")();
      out = text_of(text);
    } catch (nb::python_error& e) {
      pass_on(e);
      return false;
    }
  }
  return true;
}

/// Text that Python itself registered for a file name (IPython cells, doctest, pl.parse).
bool linecache_text(const std::string& path, std::string& out) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* module = PyDict_GetItemString(modules, "linecache");
  if (!module) return false;
  nb::object lines;
  try {
    lines = nb::borrow(module).attr("getlines")(path);
  } catch (nb::python_error& e) {
    pass_on(e);
    return false;
  }
  if (PySequence_Size(lines.ptr()) <= 0) return false;
  for (nb::handle l : lines) out += text_of(l);
  return true;
}

/// Walks one function.
class Converter {
 public:
  Converter(std::shared_ptr<ParsedFile> parsed) : parsed_(std::move(parsed)) {}
  Converter(const Span& fixed) : fixed_(&fixed) {}

  ExprPtr expr(nb::handle node);
  std::vector<StmtPtr> block(nb::handle list);
  std::shared_ptr<syntax::FunctionDef> function(nb::handle node);

 private:
  Span span(nb::handle node);
  int column(int line, long offset) const;
  ExprPtr make(ExprKind kind, nb::handle node) {
    auto e = std::make_unique<Expr>();
    e->kind = kind;
    e->span = span(node);
    return e;
  }
  ExprPtr optional(nb::handle node, const char* field) {
    nb::object o = attr(node, field);
    return present(o) ? expr(o) : nullptr;
  }
  void all(nb::handle node, const char* field, std::vector<ExprPtr>& out) {
    nb::object list = attr(node, field);
    for (nb::handle item : list) out.push_back(item.is_none() ? nullptr : expr(item));
  }
  ExprPtr constant(nb::handle node);
  void comprehension(nb::handle node, Expr& out);
  StmtPtr stmt(nb::handle node);

  std::shared_ptr<ParsedFile> parsed_;
  const Span* fixed_ = nullptr;
};

int Converter::column(int line, long offset) const {
  const size_t i = static_cast<size_t>(line - 1);
  if (i < parsed_->ascii.size() && !parsed_->ascii[i]) {
    return characters(parsed_->file->lines[i], static_cast<size_t>(offset)) + 1;
  }
  return static_cast<int>(offset) + 1;
}

Span Converter::span(nb::handle node) {
  if (fixed_) return *fixed_;
  Span s;
  s.file = parsed_->file;
  s.line = static_cast<int>(attr_long(node, "lineno"));
  s.column = column(s.line, attr_long(node, "col_offset"));
  s.end_line = static_cast<int>(attr_long(node, "end_lineno", s.line));
  s.end_column = column(s.end_line, attr_long(node, "end_col_offset", s.column - 1));
  if (!parsed_->mapped.empty()) {
    const auto it = parsed_->mapped.find(s.line);
    if (it != parsed_->mapped.end()) return it->second;
  }
  return s;
}

const char* operator_text(nb::handle op) {
  static const std::unordered_map<std::string, const char*> table = {
      {"Add", "+"},    {"Sub", "-"},        {"Mult", "*"},    {"Div", "/"},        {"FloorDiv", "//"},
      {"Mod", "%"},    {"Pow", "**"},       {"LShift", "<<"}, {"RShift", ">>"},    {"BitAnd", "&"},
      {"BitOr", "|"},  {"BitXor", "^"},     {"MatMult", "@"}, {"USub", "-"},       {"UAdd", "+"},
      {"Invert", "~"}, {"Not", "not"},      {"And", "and"},   {"Or", "or"},        {"Eq", "=="},
      {"NotEq", "!="}, {"Lt", "<"},         {"LtE", "<="},    {"Gt", ">"},         {"GtE", ">="},
      {"Is", "is"},    {"IsNot", "is not"}, {"In", "in"},     {"NotIn", "not in"},
  };
  const auto it = table.find(class_of(op));
  return it == table.end() ? "?" : it->second;
}

ExprPtr Converter::constant(nb::handle node) {
  nb::object value = attr(node, "value");
  PyObject* v = value.ptr();
  if (v == Py_None) return make(ExprKind::kNone, node);
  if (v == Py_Ellipsis) return make(ExprKind::kEllipsis, node);
  if (PyBool_Check(v)) {
    auto e = make(ExprKind::kBool, node);
    e->int_value = v == Py_True;
    return e;
  }
  if (PyLong_Check(v)) {
    auto e = make(ExprKind::kInt, node);
    int overflow = 0;
    e->int_value = PyLong_AsLongLongAndOverflow(v, &overflow);
    e->big = overflow != 0;
    if (overflow) e->text = text_of(nb::str(value));
    return e;
  }
  if (PyFloat_Check(v)) {
    auto e = make(ExprKind::kFloat, node);
    e->float_value = PyFloat_AS_DOUBLE(v);
    return e;
  }
  if (PyUnicode_Check(v)) {
    auto e = make(ExprKind::kString, node);
    e->text = text_of(value);
    return e;
  }
  auto e = make(ExprKind::kOther, node);
  e->text = Py_TYPE(v)->tp_name;
  return e;
}

void Converter::comprehension(nb::handle node, Expr& out) {
  nb::object generators = attr(node, "generators");
  for (nb::handle g : generators) {
    syntax::Comprehension c;
    c.target = expr(attr(g, "target"));
    c.iter = expr(attr(g, "iter"));
    all(g, "ifs", c.ifs);
    out.generators.push_back(std::move(c));
  }
}

ExprPtr Converter::expr(nb::handle node) {
  poll();
  const std::string_view cls = class_of(node);
  if (cls == "Constant") return constant(node);
  if (cls == "Name") {
    auto e = make(ExprKind::kName, node);
    e->text = text_of(attr(node, "id"));
    return e;
  }
  if (cls == "Attribute") {
    auto e = make(ExprKind::kAttribute, node);
    e->text = text_of(attr(node, "attr"));
    e->items.push_back(expr(attr(node, "value")));
    return e;
  }
  if (cls == "Call") {
    auto e = make(ExprKind::kCall, node);
    e->items.push_back(expr(attr(node, "func")));
    all(node, "args", e->items);
    nb::object keywords = attr(node, "keywords");
    for (nb::handle k : keywords) {
      syntax::Keyword kw;
      nb::object name = attr(k, "arg");
      if (present(name)) kw.name = text_of(name);
      kw.value = expr(attr(k, "value"));
      kw.span = span(k);
      e->keywords.push_back(std::move(kw));
    }
    return e;
  }
  if (cls == "Subscript") {
    auto e = make(ExprKind::kSubscript, node);
    e->items.push_back(expr(attr(node, "value")));
    e->items.push_back(expr(attr(node, "slice")));
    return e;
  }
  if (cls == "Slice") {
    auto e = make(ExprKind::kSlice, node);
    for (const char* field : {"lower", "upper", "step"}) e->items.push_back(optional(node, field));
    return e;
  }
  if (cls == "Tuple" || cls == "List" || cls == "Set") {
    auto e = make(cls == "Tuple" ? ExprKind::kTuple : cls == "List" ? ExprKind::kList : ExprKind::kSet, node);
    all(node, "elts", e->items);
    return e;
  }
  if (cls == "Dict") {
    auto e = make(ExprKind::kDict, node);
    nb::object keys = attr(node, "keys"), values = attr(node, "values");
    const Py_ssize_t n = PyList_Size(keys.ptr());
    for (Py_ssize_t i = 0; i < n; ++i) {
      nb::handle key = PyList_GET_ITEM(keys.ptr(), i);
      e->items.push_back(key.is_none() ? nullptr : expr(key));
      e->items.push_back(expr(PyList_GET_ITEM(values.ptr(), i)));
    }
    return e;
  }
  if (cls == "UnaryOp") {
    auto e = make(ExprKind::kUnary, node);
    e->text = operator_text(attr(node, "op"));
    e->items.push_back(expr(attr(node, "operand")));
    return e;
  }
  if (cls == "BinOp") {
    auto e = make(ExprKind::kBinary, node);
    e->text = operator_text(attr(node, "op"));
    e->items.push_back(expr(attr(node, "left")));
    e->items.push_back(expr(attr(node, "right")));
    return e;
  }
  if (cls == "BoolOp") {
    auto e = make(ExprKind::kBool2, node);
    e->text = operator_text(attr(node, "op"));
    all(node, "values", e->items);
    return e;
  }
  if (cls == "Compare") {
    auto e = make(ExprKind::kCompare, node);
    e->items.push_back(expr(attr(node, "left")));
    nb::object ops = attr(node, "ops");
    for (nb::handle op : ops) e->ops.emplace_back(operator_text(op));
    all(node, "comparators", e->items);
    return e;
  }
  if (cls == "IfExp") {
    auto e = make(ExprKind::kIfExp, node);
    for (const char* field : {"test", "body", "orelse"}) e->items.push_back(expr(attr(node, field)));
    return e;
  }
  if (cls == "ListComp" || cls == "GeneratorExp" || cls == "SetComp") {
    auto e = make(ExprKind::kListComp, node);
    e->text = cls;
    e->items.push_back(expr(attr(node, "elt")));
    comprehension(node, *e);
    return e;
  }
  if (cls == "Lambda") {
    auto e = make(ExprKind::kLambda, node);
    e->text = cls;
    return e;
  }
  if (cls == "JoinedStr") {
    auto e = make(ExprKind::kJoinedStr, node);
    all(node, "values", e->items);
    return e;
  }
  if (cls == "FormattedValue") {
    auto e = make(ExprKind::kFormatted, node);
    e->items.push_back(expr(attr(node, "value")));
    e->items.push_back(optional(node, "format_spec"));
    e->int_value = attr_long(node, "conversion", -1);
    return e;
  }
  if (cls == "Starred") {
    auto e = make(ExprKind::kStarred, node);
    e->items.push_back(expr(attr(node, "value")));
    return e;
  }
  if (cls == "NamedExpr") {
    auto e = make(ExprKind::kNamedExpr, node);
    e->items.push_back(expr(attr(node, "target")));
    e->items.push_back(expr(attr(node, "value")));
    return e;
  }
  auto e = make(ExprKind::kOther, node);
  e->text = cls;
  return e;
}

std::vector<StmtPtr> Converter::block(nb::handle list) {
  std::vector<StmtPtr> out;
  for (nb::handle s : list) out.push_back(stmt(s));
  return out;
}

StmtPtr Converter::stmt(nb::handle node) {
  auto s = std::make_unique<Stmt>();
  s->span = span(node);
  const std::string_view cls = class_of(node);
  if (cls == "Expr") {
    s->kind = StmtKind::kExpr;
    s->value = expr(attr(node, "value"));
  } else if (cls == "Assign") {
    s->kind = StmtKind::kAssign;
    all(node, "targets", s->targets);
    s->value = expr(attr(node, "value"));
  } else if (cls == "AnnAssign") {
    s->kind = StmtKind::kAnnAssign;
    s->targets.push_back(expr(attr(node, "target")));
    s->annotation = expr(attr(node, "annotation"));
    s->value = optional(node, "value");
  } else if (cls == "AugAssign") {
    s->kind = StmtKind::kAugAssign;
    s->targets.push_back(expr(attr(node, "target")));
    s->text = operator_text(attr(node, "op"));
    s->value = expr(attr(node, "value"));
  } else if (cls == "For") {
    s->kind = StmtKind::kFor;
    s->targets.push_back(expr(attr(node, "target")));
    s->value = expr(attr(node, "iter"));
    s->body = block(attr(node, "body"));
    s->orelse = block(attr(node, "orelse"));
  } else if (cls == "While" || cls == "If") {
    s->kind = cls == "If" ? StmtKind::kIf : StmtKind::kWhile;
    s->value = expr(attr(node, "test"));
    s->body = block(attr(node, "body"));
    s->orelse = block(attr(node, "orelse"));
  } else if (cls == "With") {
    s->kind = StmtKind::kWith;
    nb::object items = attr(node, "items");
    for (nb::handle item : items) {
      syntax::WithItem w;
      w.context = expr(attr(item, "context_expr"));
      w.as = optional(item, "optional_vars");
      s->with_items.push_back(std::move(w));
    }
    s->body = block(attr(node, "body"));
  } else if (cls == "Return") {
    s->kind = StmtKind::kReturn;
    s->value = optional(node, "value");
  } else if (cls == "Break") {
    s->kind = StmtKind::kBreak;
  } else if (cls == "Continue") {
    s->kind = StmtKind::kContinue;
  } else if (cls == "Pass") {
    s->kind = StmtKind::kPass;
  } else {
    s->kind = StmtKind::kOther;
    s->text = cls;
  }
  return s;
}

std::shared_ptr<syntax::FunctionDef> Converter::function(nb::handle node) {
  auto f = std::make_shared<syntax::FunctionDef>();
  f->name = text_of(attr(node, "name"));
  f->span = span(node);
  f->file = parsed_->file;
  // The span is that of the name, which the parser does not give.
  const size_t line = static_cast<size_t>(attr_long(node, "lineno") - 1);
  if (parsed_->mapped.empty() && line < parsed_->file->lines.size()) {
    const std::string& text = parsed_->file->lines[line];
    const size_t def = text.find("def ", static_cast<size_t>(attr_long(node, "col_offset")));
    const size_t at = def == std::string::npos ? def : text.find(f->name, def + 4);
    if (at != std::string::npos) f->span.column = column(static_cast<int>(line + 1), static_cast<long>(at));
  }
  nb::object args = attr(node, "args");
  nb::object defaults = attr(args, "defaults");
  std::vector<nb::object> positional;
  for (const char* field : {"posonlyargs", "args"}) {
    nb::object list = attr(args, field);
    for (nb::handle a : list) positional.push_back(nb::borrow(a));
  }
  const auto param = [&](nb::handle a) {
    syntax::Param p;
    p.name = text_of(attr(a, "arg"));
    p.annotation = optional(a, "annotation");
    p.span = span(a);
    return p;
  };
  const size_t with_default = static_cast<size_t>(PyList_Size(defaults.ptr()));
  for (size_t i = 0; i < positional.size(); ++i) {
    syntax::Param p = param(positional[i]);
    if (i + with_default >= positional.size()) {
      p.default_value =
          expr(PyList_GetItem(defaults.ptr(), static_cast<Py_ssize_t>(i + with_default - positional.size())));
    }
    f->params.push_back(std::move(p));
  }
  nb::object keyword_only = attr(args, "kwonlyargs"), keyword_defaults = attr(args, "kw_defaults");
  const Py_ssize_t n = PyList_Size(keyword_only.ptr());
  for (Py_ssize_t i = 0; i < n; ++i) {
    syntax::Param p = param(PyList_GET_ITEM(keyword_only.ptr(), i));
    p.keyword_only = true;
    nb::handle value = PyList_GET_ITEM(keyword_defaults.ptr(), i);
    if (!value.is_none()) p.default_value = expr(value);
    f->params.push_back(std::move(p));
  }
  f->is_async = std::strcmp(class_of(node), "AsyncFunctionDef") == 0;
  f->has_varargs = present(attr(args, "vararg")) || present(attr(args, "kwarg"));
  f->returns = optional(node, "returns");
  f->body = block(attr(node, "body"));
  all(node, "decorator_list", f->decorators);
  return f;
}

/// `strings`: string constants are annotations and name things too.
void collect(const Expr* e, std::set<std::string>& out, bool strings = false) {
  if (!e) return;
  if (e->kind == ExprKind::kName) out.insert(e->text);
  if (strings && e->kind == ExprKind::kString) {
    const ExprPtr inner = parse_expression(e->text, e->span);
    if (inner && inner->kind != ExprKind::kString) collect(inner.get(), out);
  }
  for (const auto& i : e->items) collect(i.get(), out, strings);
  for (const auto& k : e->keywords) collect(k.value.get(), out, strings);
  for (const auto& g : e->generators) {
    collect(g.target.get(), out);
    collect(g.iter.get(), out);
    for (const auto& i : g.ifs) collect(i.get(), out);
  }
}

/// Annotations of local variables: with `from __future__ import annotations` their names are no free
/// variables.
void collect(const std::vector<StmtPtr>& block, std::set<std::string>& out) {
  for (const auto& s : block) {
    collect(s->annotation.get(), out, true);
    collect(s->body, out);
    collect(s->orelse, out);
  }
}

}  // namespace

std::shared_ptr<ParsedFile> parsed_file(const std::string& path) {
  auto& c = cache();
  if (const auto it = c.texts.find(path); it != c.texts.end()) return it->second;
  struct stat info;
  const bool on_disk = ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  const int64_t mtime = on_disk ? info.st_mtim.tv_sec * 1000000000LL + info.st_mtim.tv_nsec : -1;
  const int64_t size = on_disk ? info.st_size : -1;
  if (on_disk) {
    const auto it = c.files.find(path);
    if (it != c.files.end() && it->second->mtime == mtime && it->second->size == size) return it->second;
  }
  std::string text;
  if (!(on_disk && read_text(path, text)) && !linecache_text(path, text)) return nullptr;
  std::shared_ptr<ParsedFile> parsed;
  try {
    parsed = make_parsed(path, text);
  } catch (nb::python_error& e) {
    pass_on(e);
    return nullptr;  // the file changed since it was imported, and does not parse any more
  }
  parsed->mtime = mtime;
  parsed->size = size;
  if (on_disk) c.files[path] = parsed;
  return parsed;
}

void register_text(const std::string& path, const std::string& text, const std::string& shown,
                   nb::object source_map) {
  auto parsed = make_parsed(path, text);
  auto file = std::make_shared<SourceFile>(*parsed->file);
  file->path = shown;
  parsed->file = file;
  if (!source_map.is_none()) {
    std::unordered_map<std::string, std::shared_ptr<SourceFile>> files;
    for (nb::handle key : source_map.attr("keys")()) {
      nb::object target = nb::borrow(source_map[key]);
      const auto name = nb::cast<std::string>(nb::str(nb::object(target[nb::int_(0)])));
      auto& file = files[name];
      if (!file) {
        file = std::make_shared<SourceFile>();
        file->path = name;
        std::string other;
        if (read_text(name, other)) file->lines = split_lines(other);
      }
      Span s;
      s.file = file;
      s.line = s.end_line = nb::cast<int>(nb::object(target[nb::int_(1)]));
      s.column = PySequence_Size(target.ptr()) > 2 ? nb::cast<int>(nb::object(target[nb::int_(2)])) : 1;
      parsed->mapped[nb::cast<int>(key)] = s;
    }
  }
  cache().texts[path] = parsed;
}

void forget_text(const std::string& path) { cache().texts.erase(path); }

std::shared_ptr<syntax::FunctionDef> function_tree(PyObject* code, std::shared_ptr<ParsedFile>* parsed_out) {
  nb::handle c(code);
  const std::string path = text_of(attr(c, "co_filename"));
  const Interruptible interruptible;
  auto parsed = parsed_file(path);
  if (!parsed) return nullptr;
  if (parsed_out) *parsed_out = parsed;
  const long first = attr_long(c, "co_firstlineno");
  const std::string name = text_of(attr(c, "co_name"));
  const auto it = parsed->functions.find(first);
  if (it == parsed->functions.end()) return nullptr;
  for (const nb::object& node : it->second) {
    if (text_of(attr(node, "name")) == name) return Converter(parsed).function(node);
  }
  return nullptr;
}

ExprPtr parse_expression(const std::string& text, const Span& span) {
  try {
    nb::object tree = compile_tree("(" + text + "\n)", "<annotation>", Py_eval_input);
    return Converter(span).expr(attr(tree, "body"));
  } catch (nb::python_error& e) {
    pass_on(e);
    return nullptr;
  }
}

std::vector<std::string> annotation_names(const syntax::FunctionDef& def) {
  std::set<std::string> out;
  for (const auto& p : def.params) {
    collect(p.annotation.get(), out, true);
    collect(p.default_value.get(), out);
  }
  collect(def.returns.get(), out, true);
  for (const auto& d : def.decorators) collect(d.get(), out);
  collect(def.body, out);
  return {out.begin(), out.end()};
}

}  // namespace pypto::bind
