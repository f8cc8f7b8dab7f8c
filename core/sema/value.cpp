// SPDX-License-Identifier: Apache-2.0
#include "core/sema/value.h"

#include <algorithm>

namespace pypto::sema {

void reject(ErrorClass cls, const Span& span, std::string message, std::string hint,
            std::vector<Note> notes) {
  Diagnostic d;
  d.cls = cls;
  d.message = std::move(message);
  d.span = span;
  d.hint = std::move(hint);
  for (auto& n : notes) d.notes.push_back({std::move(n.text), n.span});
  throw Failure(std::move(d));
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates) {
  const std::string best = nearest(name, candidates);
  return best.empty() ? std::string() : "did you mean '" + best + "'?";
}

std::string last_component(const std::string& dotted) {
  const auto at = dotted.rfind('.');
  return at == std::string::npos ? dotted : dotted.substr(at + 1);
}

namespace {

std::string join_texts(const std::vector<syn::ExprPtr>& items, size_t first, const char* separator) {
  std::string out;
  for (size_t i = first; i < items.size(); ++i) {
    if (i > first) out += separator;
    out += items[i] ? source_text(*items[i]) : "";
  }
  return out;
}

std::string float_text(double v) {
  std::string s = std::to_string(v);
  while (s.size() > 3 && s.back() == '0' && s[s.size() - 2] != '.') s.pop_back();
  return s;
}

}  // namespace

std::string source_text(const syn::Expr& e) {
  switch (e.kind) {
    case syn::ExprKind::kInt:
      return e.big ? "<large integer>" : std::to_string(e.int_value);
    case syn::ExprKind::kFloat:
      return float_text(e.float_value);
    case syn::ExprKind::kBool:
      return e.int_value ? "True" : "False";
    case syn::ExprKind::kNone:
      return "None";
    case syn::ExprKind::kString:
      return "'" + e.text + "'";
    case syn::ExprKind::kEllipsis:
      return "...";
    case syn::ExprKind::kName:
      return e.text;
    case syn::ExprKind::kAttribute:
      return source_text(*e.items[0]) + "." + e.text;
    case syn::ExprKind::kCall: {
      std::string out = source_text(*e.items[0]) + "(" + join_texts(e.items, 1, ", ");
      bool first = e.items.size() == 1;
      for (const auto& k : e.keywords) {
        out += (first ? "" : ", ") + (k.name.empty() ? "**" : k.name + "=") + source_text(*k.value);
        first = false;
      }
      return out + ")";
    }
    case syn::ExprKind::kSubscript: {
      const auto& index = *e.items[1];
      const std::string inner =
          index.kind == syn::ExprKind::kTuple ? join_texts(index.items, 0, ", ") : source_text(index);
      return source_text(*e.items[0]) + "[" + inner + "]";
    }
    case syn::ExprKind::kSlice: {
      std::string out =
          (e.items[0] ? source_text(*e.items[0]) : "") + ":" + (e.items[1] ? source_text(*e.items[1]) : "");
      if (e.items.size() > 2 && e.items[2]) out += ":" + source_text(*e.items[2]);
      return out;
    }
    case syn::ExprKind::kTuple:
      return "(" + join_texts(e.items, 0, ", ") + (e.items.size() == 1 ? ",)" : ")");
    case syn::ExprKind::kList:
      return "[" + join_texts(e.items, 0, ", ") + "]";
    case syn::ExprKind::kUnary:
      return e.text + (e.text == "not" ? " " : "") + source_text(*e.items[0]);
    case syn::ExprKind::kBinary:
      return source_text(*e.items[0]) + " " + e.text + " " + source_text(*e.items[1]);
    case syn::ExprKind::kBool2:
      return join_texts(e.items, 0, (" " + e.text + " ").c_str());
    case syn::ExprKind::kCompare: {
      std::string out = source_text(*e.items[0]);
      for (size_t i = 0; i < e.ops.size(); ++i) out += " " + e.ops[i] + " " + source_text(*e.items[i + 1]);
      return out;
    }
    case syn::ExprKind::kIfExp:
      return source_text(*e.items[1]) + " if " + source_text(*e.items[0]) + " else " +
             source_text(*e.items[2]);
    default:
      return e.text.empty() ? "<expression>" : e.text;
  }
}

TypePtr with_storage(const TypePtr& type, std::shared_ptr<ir::Storage> storage) {
  if (type->storage == storage) return type;
  auto t = std::make_shared<ir::Type>(*type);
  t->storage = std::move(storage);
  return t;
}

TypePtr with_place(const TypePtr& type, ir::TensorPlace place) {
  if (type->place == place) return type;
  auto t = std::make_shared<ir::Type>(*type);
  t->place = place;
  return t;
}

bool same_dim(const ir::Dim& a, const ir::Dim& b) {
  if (a.is_const() || b.is_const()) return a.value == b.value;
  if (!a.expr || !b.expr) return !a.expr && !b.expr;
  return ir::same_expr(a.expr, b.expr);
}

bool same_dims(const ir::Shape& a, const ir::Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_dim);
}

bool meets(const ir::Type& a, const ir::Type& b, bool* needs_move) {
  if (needs_move) *needs_move = false;
  if (ir::same_type(a, b)) return true;
  if (!a.is_tile() || !b.is_tile()) return false;
  ir::Type x = a;
  ir::Type y = b;
  x.space = y.space = ir::MemorySpace::kUnset;
  if (!ir::same_type(x, y)) return false;
  if (needs_move) *needs_move = true;
  return true;
}

}  // namespace pypto::sema
