// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/ir.h"
#include "core/syntax/syntax.h"

namespace pypto::sema {

struct FunctionSource;

enum class HostKind : uint8_t {
  kMissing,  ///< the name is not defined
  kInt,      ///< int_value
  kFloat,
  kBool,
  kString,
  kNone,
  kTuple,     ///< items (list or tuple)
  kDType,     ///< dtype
  kEnum,      ///< text = "MemorySpace.Vec" (class name . member name), int_value = value
  kDynVar,    ///< text = symbol name
  kSymbolic,  ///< expression over dynamic symbols: `expr` (kOp tree over kVar of kind kSymbol; symbols
              ///< compare by name)
  kTensorView,
  kTileView,
  kMemRef,
  kFunction,  ///< `function`: JIT function, inline helper, ir.Function, sub-worker
  kModule,    ///< text = canonical dotted path: "pl", "pl.tensor", "pl.tile", "pl.system", "pl.array",
              ///< "pl.prefetch", "pl.optimizations", "pl.adir", "pl.parser", "pld", "pld.tensor", "pld.tile",
              ///< "pld.system", or "python:<name>" for other modules
  kConstruct,  ///< an object of the language namespace: text = canonical dotted name such as "pl.range",
               ///< "pl.Tensor", "pl.at", "pl.add", "pld.tensor.put" (recognised by identity, so aliases work,
               ///< 01 L-1)
  kOpaque,     ///< anything else; text = type name
};

/// A compile-time value that Python supplied. `handle` lets the embedder find its own object again (attribute
/// access, items, identity); -1 if there is none.
struct HostValue {
  HostKind kind = HostKind::kMissing;
  int64_t int_value = 0;
  double float_value = 0;
  std::string text;
  std::vector<HostValue> items;
  DType dtype = DType::kNone;
  ir::ExprPtr expr;
  std::shared_ptr<const ir::TensorView> tensor_view;
  std::shared_ptr<const ir::TileView> tile_view;
  std::shared_ptr<const ir::MemRef> memref;
  std::shared_ptr<FunctionSource> function;
  int handle = -1;
  bool big = false;  ///< kInt that does not fit 64 bits
};

/// Thrown by Host::eval when Python raised.
struct HostError {
  std::string type;  ///< "ZeroDivisionError"
  std::string message;
  int exception = -1;  ///< embedder's index of the exception object
};

/// The embedder's view of the names around one function. All calls happen on the thread that builds the
/// program.
class Host {
 public:
  virtual ~Host() = default;
  /// Closure, then globals, then the allowed Python builtins (01 L-14). kMissing when not found. Records a
  /// guard.
  virtual HostValue lookup(const std::string& name) = 0;
  /// Attribute of a value obtained earlier; kMissing if absent. Records a guard.
  virtual HostValue attribute(const HostValue& base, const std::string& name) = 0;
  /// Evaluates an expression all of whose names are compile-time (01 L-15). `locals` overrides names
  /// (unrolled loop variables, comprehension variables). Throws HostError.
  virtual HostValue eval(const syntax::Expr& expr,
                         const std::vector<std::pair<std::string, HostValue>>& locals) = 0;
  /// Resolves a string annotation to a tree in this function's scope; nullptr (with message) if it does not
  /// parse.
  virtual syntax::ExprPtr parse_annotation(const std::string& text, const Span& span) = 0;
  /// Called for pl.static_print.
  virtual void print(const std::string& line) = 0;
};

/// What a function was declared as.
enum class DeclKind : uint8_t {
  kProgramMethod,  ///< @pl.function in a class, or a free @pl.function
  kJit,            ///< @pl.jit
  kJitHost,
  kJitIncore,
  kJitInline,
  kJitOpaque,
  kJitExtern,
  kInlineHelper,  ///< @pl.inline
  kIrFunction,    ///< an already built ir.Function: `ir_function`
  kSubWorker,     ///< method with role SubWorker; body not read by the language
};

/// A function as the decorators hand it over. Shared: identity of the object is identity of the function.
struct FunctionSource {
  std::string name;
  DeclKind decl = DeclKind::kProgramMethod;
  ir::FunctionType type = ir::FunctionType::kOpaque;
  bool has_type = false;
  ir::Level level = ir::Level::kNone;
  ir::Role role = ir::Role::kNone;
  bool auto_scope = true;
  bool strict_ssa = false;
  bool has_self = false;
  std::vector<ir::FunctionAttr> attrs;  ///< from attrs= of the decorator
  std::string external_source;
  std::shared_ptr<syntax::FunctionDef> def;
  std::shared_ptr<Host> host;
  ir::FunctionPtr ir_function;
  int host_callable = -1;
  bool body_is_ellipsis = false;  ///< sub-workers: `...`
  /// Fills `def` and `host` on first use (reading Python source is not free).
  std::function<void(FunctionSource&)> load;
  void ensure_loaded() {
    if (!def && load) load(*this);
  }
  /// Where a parameter is declared, or the function if it has none of that name.
  Span place_of(const std::string& parameter) {
    ensure_loaded();
    if (!def) return {};
    for (const auto& p : def->params) {
      if (p.name == parameter) return p.span;
    }
    return def->span;
  }
};

}  // namespace pypto::sema
