// SPDX-License-Identifier: Apache-2.0
#include "core/sema/hints.h"

#include <unordered_map>

namespace pypto::sema {
namespace {

using Table = std::unordered_map<std::string_view, const char*>;

std::string find(const Table& table, std::string_view key) {
  const auto it = table.find(key);
  return it == table.end() ? std::string() : it->second;
}

}  // namespace

std::string hint_for_syntax(std::string_view node) {
  static const Table table = {
      {"Assert",
       "pl.static_assert(condition, message) checks while compiling; check arguments before the call"},
      {"AsyncFor", "write 'for ... in pl.range(...)'"},
      {"AsyncWith", "write 'with'"},
      {"Await", "tasks run by themselves, ordered by their data: leave 'await' out"},
      {"ClassDef", "define classes outside; a body can read constants of their objects"},
      {"Delete", "leave it out: storage is reused after the last use of a name"},
      {"Dict", "use one name per value, or build the dictionary outside the body"},
      {"DictComp", "use one name per value, or build the dictionary outside the body"},
      {"FunctionDef", "define the function outside, decorated with @pl.inline or @pl.jit.inline"},
      {"AsyncFunctionDef", "define the function outside, decorated with @pl.inline or @pl.jit.inline"},
      {"GeneratorExp", "write a loop, or a list in square brackets"},
      {"Global", "leave it out: names from outside can be read without it, and cannot be assigned"},
      {"Nonlocal", "leave it out: names from outside can be read without it, and cannot be assigned"},
      {"IfExp", "write 'if' and 'else' as statements that assign the same name"},
      {"Import", "import outside the function; constants of modules can be read in the body"},
      {"ImportFrom", "import outside the function; constants of modules can be read in the body"},
      {"JoinedStr", "pl.static_print(...) prints while compiling; texts are no values of a kernel"},
      {"Lambda", "define a function outside, decorated with @pl.inline or @pl.jit.inline"},
      {"Match", "write 'if' and 'elif'"},
      {"NamedExpr", "assign in a statement of its own"},
      {"Raise", "check arguments before the call, or with pl.static_assert(condition, message)"},
      {"Set", "use a list"},
      {"Try", "errors end a run and cannot be handled in it: leave out 'try'"},
      {"TryStar", "errors end a run and cannot be handled in it: leave out 'try'"},
      {"Yield", "pl.yield_(...) hands a loop's values to its next round; functions 'return'"},
      {"YieldFrom", "pl.yield_(...) hands a loop's values to its next round; functions 'return'"},
  };
  return find(table, node);
}

std::string hint_for_builtin(std::string_view name) {
  static const Table table = {
      {"print", "pl.static_print(...) prints while compiling; run-time values are seen in outputs"},
      {"enumerate", "loop with pl.range and index what is iterated"},
      {"zip", "loop with pl.range and index what is iterated"},
      {"map", "write a loop"},
      {"filter", "write a loop with 'if'"},
      {"reversed", "count down: pl.range(n - 1, -1, -1)"},
      {"pow", "multiply: pl.mul(x, x); for other powers pl.exp(pl.mul(pl.log(x), n))"},
      {"any", "reduce with pl.row_max and read the element"},
      {"all", "reduce with pl.row_min and read the element"},
  };
  if (std::string hint = find(table, name); !hint.empty()) return hint;
  static const Table others = {
      {"breakpoint", ""}, {"bytes", ""},     {"callable", ""}, {"chr", ""},     {"complex", ""},
      {"dict", ""},       {"dir", ""},       {"divmod", ""},   {"eval", ""},    {"exec", ""},
      {"format", ""},     {"frozenset", ""}, {"getattr", ""},  {"globals", ""}, {"hasattr", ""},
      {"hash", ""},       {"hex", ""},       {"id", ""},       {"input", ""},   {"iter", ""},
      {"locals", ""},     {"next", ""},      {"object", ""},   {"open", ""},    {"ord", ""},
      {"repr", ""},       {"set", ""},       {"setattr", ""},  {"slice", ""},   {"sorted", ""},
      {"str", ""},        {"super", ""},     {"vars", ""},
  };
  if (!others.count(name)) return {};
  return "kernels do not have Python's '" + std::string(name) + "': compute the value outside the function";
}

std::string hint_for_operator(std::string_view text) {
  static const Table table = {
      {"@", "write pl.matmul(a, b)"},
      {"**", "multiply: pl.mul(x, x); for other powers pl.exp(pl.mul(pl.log(x), n))"},
  };
  return find(table, text);
}

}  // namespace pypto::sema
