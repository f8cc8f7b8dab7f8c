// SPDX-License-Identifier: Apache-2.0
#include "core/ir/print.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/base/poll.h"
#include "core/ir/print_impl.h"

namespace pypto::ir {
namespace printing {
namespace {

constexpr std::array kKeywords = {
    "False",    "None",   "True",  "and",  "as",     "assert",   "async",   "await", "break", "class",
    "continue", "def",    "del",   "elif", "else",   "except",   "finally", "for",   "from",  "global",
    "if",       "import", "in",    "is",   "lambda", "nonlocal", "not",     "or",    "pass",  "raise",
    "return",   "try",    "while", "with", "yield",  "pl",       "pld",     "self",  "float", "tuple"};

template <class Visit>
void each_expr(const ExprPtr& e, const Visit& visit) {
  if (!e) return;
  visit(*e);
  for (const auto& a : e->args) each_expr(a, visit);
}

template <class Visit>
void each_stmt(const Block& b, const Visit& visit) {
  for (const auto& s : b) {
    poll();
    visit(*s);
    each_stmt(s->body, visit);
    each_stmt(s->else_body, visit);
  }
}

void symbols_of(const Type& t, std::vector<std::string>& out) {
  const auto dim = [&](const Dim& d) {
    each_expr(d.expr, [&](const Expr& e) {
      if (e.kind == ExprKind::kVar) out.push_back(e.var->name);
    });
  };
  for (const auto& d : t.shape) dim(d);
  if (t.tensor_view) {
    for (const auto& d : t.tensor_view->valid_shape) dim(d);
    for (const auto& d : t.tensor_view->stride) dim(d);
  }
}

}  // namespace

std::string identifier(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "v" + out;
  return out;
}

const std::string& Names::of(const Var* v) {
  if (const auto it = names_.find(v); it != names_.end()) return it->second;
  const std::string base = identifier(v->name);
  std::string name = base;
  const auto bad = [&](const std::string& n) {
    return taken_.count(n) > 0 || std::find(kKeywords.begin(), kKeywords.end(), n) != kKeywords.end();
  };
  for (int k = 1; bad(name); ++k) name = base + "_" + std::to_string(k);
  taken_.insert(name);
  return names_[v] = name;
}

/// Parameters keep their names; every other variable gets one in order of appearance. Symbols are shared by
/// name.
void Printer::name_variables(const Function& f) {
  names_ = Names();
  for (const auto& p : f.params) names_.of(p.get());
  std::vector<std::string> mentioned;
  for (const auto& p : f.params) symbols_of(*p->type, mentioned);
  for (const auto& s : f.symbols) {
    // A scalar parameter of the symbol's name is the symbol (01 L-32).
    names_.reserve(s->name);
    names_.set(s.get(), s->name);
  }
  for (const auto& m : mentioned) names_.reserve(m);
}

std::vector<std::string> Printer::dynamic_names(const std::vector<const Function*>& functions) const {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for (const Function* f : functions) {
    for (const auto& s : f->symbols) add(s->name);
    std::vector<std::string> mentioned;
    for (const auto& p : f->params) symbols_of(*p->type, mentioned);
    for (const auto& m : mentioned) add(m);
  }
  return out;
}

bool Printer::uses_pld(const Function& f) const {
  bool found = false;
  const auto type_uses = [&](const TypePtr& t) {
    found = found || (t && (t->is_window() || t->kind == TypeKind::kCommCtx));
  };
  for (const auto& v : f.vars) type_uses(v->type);
  for (const auto& t : f.return_types) type_uses(t);
  const auto expr_uses = [&](const ExprPtr& e) {
    each_expr(e, [&](const Expr& x) {
      if (x.kind == ExprKind::kOp &&
          (op_row(x.op).forms & (kFormPld | kFormPldTensor | kFormPldTile | kFormPldSystem)))
        found = true;
    });
  };
  each_stmt(f.body, [&](const Stmt& s) {
    expr_uses(s.value);
    for (const auto& v : s.values) expr_uses(v);
    expr_uses(s.start);
    expr_uses(s.stop);
    expr_uses(s.step);
    for (const auto& c : s.carries) expr_uses(c.init);
    if (s.value && s.value->call) {
      expr_uses(s.value->call->device);
      expr_uses(s.value->call->core_num);
    }
  });
  return found;
}

void Printer::signature(const Function& f, int indent, bool in_class) {
  std::vector<std::string> options;
  if (f.type != FunctionType::kOpaque) {
    options.push_back(std::string("type=pl.FunctionType.") + function_type_member(f.type));
  }
  if (f.level != Level::kNone) options.push_back(std::string("level=pl.Level.") + level_member(f.level));
  if (f.role != Role::kNone) options.push_back(std::string("role=pl.Role.") + role_member(f.role));
  if (!f.auto_scope) options.push_back("auto_scope=False");
  if (f.strict_ssa) options.push_back("strict_ssa=True");
  if (!f.external_source.empty()) options.push_back("external_source=" + quoted(f.external_source));
  std::string decorator = "@pl.function";
  for (size_t i = 0; i < options.size(); ++i) decorator += (i ? ", " : "(") + options[i];
  if (!options.empty()) decorator += ")";
  line(indent, decorator);
  if (identifier(f.name) != f.name) line(indent, "# " + f.name);
  std::string head = "def " + identifier(f.name) + "(";
  bool first = true;
  const auto add = [&](const std::string& text) {
    head += (first ? "" : ", ") + text;
    first = false;
  };
  if (in_class && !f.is_sub_worker) add("self");
  for (size_t i = 0; i < f.params.size(); ++i) {
    std::string t = type(*f.params[i]->type, true);
    const ParamDirection d = i < f.directions.size() ? f.directions[i] : ParamDirection::kIn;
    if (f.params[i]->type->is_tensor() && d == ParamDirection::kOut) t = "pl.Out[" + t + "]";
    if (f.params[i]->type->is_tensor() && d == ParamDirection::kInOut) t = "pl.InOut[" + t + "]";
    add(names_.of(f.params[i].get()) + ": " + t);
  }
  head += ")";
  // An extent that only the body knows cannot stand in the annotation; the return statement says it.
  const bool printable = std::all_of(f.return_types.begin(), f.return_types.end(), [&](const TypePtr& t) {
    return std::all_of(t->shape.begin(), t->shape.end(), [&](const Dim& d) {
      bool known = d.is_const() || d.expr;
      each_expr(d.expr, [&](const Expr& e) {
        if (e.kind == ExprKind::kVar && e.var->kind != VarKind::kSymbol) known = false;
        if (e.kind == ExprKind::kCall) known = false;
      });
      return known;
    });
  });
  if (!f.return_types.empty() && printable &&
      !(f.return_types.size() == 1 && f.return_types[0]->kind == TypeKind::kNone)) {
    if (f.return_types.size() == 1) {
      head += " -> " + type(*f.return_types[0], false);
    } else {
      head += " -> tuple[";
      for (size_t i = 0; i < f.return_types.size(); ++i)
        head += (i ? ", " : "") + type(*f.return_types[i], false);
      head += "]";
    }
  }
  line(indent, head + ":");
}

void Printer::function(const Function& f, int indent, bool in_class) {
  name_variables(f);
  signature(f, indent, in_class);
  if (!f.attrs.empty()) {
    std::string attrs = "pl.func_attr({";
    for (size_t i = 0; i < f.attrs.size(); ++i) {
      attrs += (i ? ", " : "") + quoted(f.attrs[i].key) + ": " + f.attrs[i].value;
    }
    line(indent + 1, attrs + "})");
  }
  if (f.is_sub_worker || !f.external_source.empty()) {
    line(indent + 1, "...");
    return;
  }
  block(f.body, indent + 1);
}

/// Replaces the canonical `pl.` by another alias, outside of string literals.
std::string Printer::finish(std::string text) const {
  if (options_.prefix == "pl") return text;
  std::string out;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      out += c;
      if (c == '\\') {
        out += text[++i];
      } else if (c == quote) {
        quote = 0;
      }
      continue;
    }
    if (c == '"') quote = c;
    const bool starts = i == 0 || !(std::isalnum(static_cast<unsigned char>(text[i - 1])) ||
                                    text[i - 1] == '_' || text[i - 1] == '.');
    if (starts && text.compare(i, 3, "pl.") == 0) {
      out += options_.prefix + ".";
      i += 2;
      continue;
    }
    out += c;
  }
  const std::string import = "import pypto.language as pl\n";
  if (const auto at = out.find(import); at != std::string::npos) {
    out.replace(at, import.size(), "import pypto.language as " + options_.prefix + "\n");
  }
  return out;
}

std::string Printer::module(const Module& m) {
  lowered = m.lowered;
  out_ = "# pypto.program: " + m.name + "\nimport pypto.language as pl\n";
  std::vector<const Function*> functions;
  bool pld = false;
  for (const auto& f : m.functions) {
    functions.push_back(f.get());
    pld = pld || uses_pld(*f);
  }
  if (pld) out_ += "import pypto.language.distributed as pld\n";
  const auto dynamics = dynamic_names(functions);
  if (!dynamics.empty()) out_ += "\n";
  for (const auto& d : dynamics) out_ += d + " = pl.dynamic(" + quoted(d) + ")\n";
  out_ += "\n\n@pl.program\nclass " + identifier(m.name) + ":\n";
  for (size_t i = 0; i < functions.size(); ++i) {
    if (i) out_ += "\n";
    function(*functions[i], 1, true);
  }
  if (functions.empty()) line(1, "pass");
  return finish(std::move(out_));
}

std::string Printer::free_function(const Function& f) {
  self_.clear();
  out_ = "import pypto.language as pl\n";
  if (uses_pld(f)) out_ += "import pypto.language.distributed as pld\n";
  const auto dynamics = dynamic_names({&f});
  if (!dynamics.empty()) out_ += "\n";
  for (const auto& d : dynamics) out_ += d + " = pl.dynamic(" + quoted(d) + ")\n";
  out_ += "\n\n";
  function(f, 0, false);
  return finish(std::move(out_));
}

}  // namespace printing

std::string print(const Module& module, const PrintOptions& options) {
  return printing::Printer(options).module(module);
}

std::string print(const Function& function, const PrintOptions& options) {
  return printing::Printer(options).free_function(function);
}

std::string print(const ExprPtr& expr) { return printing::Printer({}).expression(expr); }

std::string print(const Stmt& stmt, int indent) { return printing::Printer({}).statement(stmt, indent); }

}  // namespace pypto::ir
