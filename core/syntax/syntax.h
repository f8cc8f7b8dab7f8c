// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/span.h"

/// The tree of a function body as written: plain nodes with positions, one enumerator per CPython `ast` class
/// that the language cares about. Anything else is kOther with the class name in `text`, so that the front
/// end can reject it.
namespace pypto::syntax {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;

enum class ExprKind : uint8_t {
  kInt,    ///< int_value; `big` when it does not fit 64 bits
  kFloat,  ///< float_value
  kBool,   ///< int_value 0/1
  kNone,
  kString,  ///< text
  kEllipsis,
  kName,       ///< text
  kAttribute,  ///< items[0] . text
  kCall,       ///< items[0] ( items[1..]; keywords )
  kSubscript,  ///< items[0] [ items[1] ]
  kSlice,      ///< items: lower, upper, step (null where absent)
  kTuple,
  kList,
  kDict,  ///< items: key, value, key, value ... (key null for **)
  kSet,
  kUnary,     ///< text: "-" "+" "~" "not"; items[0]
  kBinary,    ///< text: "+" "-" "*" "/" "//" "%" "**" "<<" ">>" "&" "|" "^" "@"; items[0], items[1]
  kBool2,     ///< text: "and" / "or"; items...
  kCompare,   ///< items[0], then ops[i] items[i+1]
  kIfExp,     ///< items: test, body, orelse
  kListComp,  ///< items[0] element; generators
  kLambda,
  kJoinedStr,  ///< f-string: items; kFormatted parts
  kFormatted,  ///< items[0], format spec items[1] or null; int_value conversion (-1 none)
  kStarred,    ///< items[0]
  kNamedExpr,
  kOther,  ///< text: class name
};

struct Keyword {
  std::string name;  ///< empty for **kwargs
  ExprPtr value;
  Span span;
};

struct Comprehension {
  ExprPtr target, iter;
  std::vector<ExprPtr> ifs;
};

struct Expr {
  ExprKind kind = ExprKind::kOther;
  Span span;
  std::string text;
  int64_t int_value = 0;
  double float_value = 0;
  bool big = false;
  std::vector<ExprPtr> items;
  std::vector<Keyword> keywords;
  std::vector<std::string> ops;           ///< kCompare
  std::vector<Comprehension> generators;  ///< kListComp (also generator and set comprehensions)
  int node = -1;                          ///< index of the embedder's own node (for Host::eval), -1 if none
};

enum class StmtKind : uint8_t {
  kExpr,       ///< value
  kAssign,     ///< targets..., value
  kAnnAssign,  ///< targets[0], annotation, value (may be null)
  kAugAssign,  ///< targets[0], text = operator, value
  kFor,        ///< targets[0], value = iter, body, orelse
  kWhile,      ///< value, body, orelse
  kIf,         ///< value, body, orelse
  kWith,       ///< with_items, body
  kReturn,     ///< value or null
  kBreak,
  kContinue,
  kPass,
  kOther,  ///< text: class name (Assert, Try, Import, FunctionDef, ...)
};

struct WithItem {
  ExprPtr context;
  ExprPtr as;  ///< null when absent
};

struct Stmt {
  StmtKind kind = StmtKind::kOther;
  Span span;
  std::string text;
  std::vector<ExprPtr> targets;
  ExprPtr annotation;
  ExprPtr value;
  std::vector<StmtPtr> body, orelse;
  std::vector<WithItem> with_items;
};

struct Param {
  std::string name;
  ExprPtr annotation;  ///< null when absent
  ExprPtr default_value;
  Span span;
  bool keyword_only = false;
};

/// A function definition.
struct FunctionDef {
  std::string name;
  Span span;  ///< of the name
  std::vector<Param> params;
  bool has_varargs = false;  ///< *args or **kwargs
  bool is_async = false;     ///< async def
  ExprPtr returns;
  std::vector<StmtPtr> body;
  std::vector<ExprPtr> decorators;
  std::shared_ptr<const SourceFile> file;
};

}  // namespace pypto::syntax
