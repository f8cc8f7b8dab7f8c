// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/span.h"

namespace pypto {

/// The exception class that the binding raises for a diagnostic (04 section 20). Compile-time ones first.
enum class ErrorClass : uint8_t {
  kParserError,
  kParserSyntaxError,
  kParserTypeError,
  kUndefinedVariableError,
  kSSAViolationError,
  kUnsupportedFeatureError,
  kInvalidOperationError,
  kScopeIsolationError,
  kValueError,  ///< plain ValueError
  kTypeError,   ///< plain TypeError
  kIndexError,
  kKeyError,
  kZeroDivisionError,
  kOSError,
  kSyntaxError,
  kError,                ///< pypto.Error
  kCompileError,         ///< CompileError, a ValueError
  kPartialCodegenError,  ///< CompileError + RuntimeError
  kRuntimeError,
  kProgramFault,  ///< found while running; RuntimeError
  kDeadlockError,
  kRaceError,
  kUninitializedReadError,
  kProtocolError,
  kOutOfBoundsError,  ///< ProgramFault + IndexError
  kCallbackError,
  kPlatformUnavailableError,
  kInternalError,
};

enum class Severity : uint8_t { kNote, kWarning, kError };

/// One further location with a text, printed as `= note:`.
struct DiagnosticNote {
  std::string text;
  Span span;
};

/// One access of a run-time report (04 OBS-30).
struct DiagnosticAccess {
  int rank = -1;
  std::string core;
  int64_t task = -1;
  std::string kernel;
  int block = -1;
  int lane = -1;
  Span span;
  std::string kind;    ///< "read", "write", "atomic"
  std::string object;  ///< window or tensor
  std::vector<std::pair<int64_t, int64_t>> range;
  int64_t bytes = 0;
};

/// One blocked wait of a run-time report (04 OBS-30).
struct DiagnosticWait {
  int rank = -1;
  std::string core;
  std::string kernel;
  int block = -1;
  int lane = -1;
  Span span;
  std::string object;
  std::vector<int64_t> cell;
  int64_t seen = 0;
  std::string comparison;
  int64_t needed = 0;
  std::vector<std::string> raisers;
};

/// What, where, got versus expected, how to fix. One shape for the whole project.
struct Diagnostic {
  ErrorClass cls = ErrorClass::kParserError;
  Severity severity = Severity::kError;
  std::string id;  ///< stable rule id such as "X-40"; may be empty
  std::string title;
  std::string message;  ///< one sentence in the user's names and values
  Span span;
  std::string label;  ///< short text beside the caret
  std::string hint;   ///< how to fix it; may be empty
  std::vector<DiagnosticNote> notes;
  /// Class and text of the chained cause (01 L-179), if `has_cause`.
  bool has_cause = false;
  ErrorClass cause_cls = ErrorClass::kValueError;
  std::string cause_message;
  /// Index of a host (Python) exception kept by the embedder, or -1.
  int host_exception = -1;
  Span previous_span;  ///< SSAViolationError only

  // Run time only.
  int rank = -1;
  std::string core;
  int64_t task = -1;
  std::string kernel;
  int block = -1;
  int lane = -1;
  std::string replay;
  std::vector<DiagnosticAccess> accesses;
  std::vector<DiagnosticWait> waits;
};

/// Carries a diagnostic through a component; caught at the component's border, never crosses the C++ API of
/// core/.
class Failure : public std::exception {
 public:
  explicit Failure(Diagnostic d) : diagnostic_(std::move(d)) {}
  const char* what() const noexcept override { return diagnostic_.message.c_str(); }
  const Diagnostic& diagnostic() const { return diagnostic_; }
  Diagnostic& diagnostic() { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

/// Builds and throws a Failure.
[[noreturn]] void fail(ErrorClass cls, std::string message, Span span = {}, std::string hint = {},
                       std::string label = {});
/// Our own defect: throws a Failure of class kInternalError.
[[noreturn]] void fail_internal(const char* file, int line, const std::string& what);
#define PYPTO_CHECK(cond, what)                                    \
  do {                                                             \
    if (!(cond)) ::pypto::fail_internal(__FILE__, __LINE__, what); \
  } while (0)

/// Renders `Error: message`, arrow line, excerpt with caret, help and notes (01 L-181).
std::string render(const Diagnostic& d, bool color = false);
/// The arrow line and excerpt alone (appended to str() of non-front-end errors, 01 L-182).
std::string render_location(const Diagnostic& d);

/// The candidate nearest to `name` by edit distance, or empty when none is near.
std::string nearest(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace pypto
