// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/vm/view.h"

/// Where unspecified values come from (01 L-154, 02 O-209). Values never depend on any of this.
namespace pypto::vm {

class Env;
struct Fiber;
struct Frame;
struct Insn;
struct OpInsn;
struct Site;

/// 0: specified. Else the number of an Origin.
using Mark = uint8_t;
inline constexpr Mark kUnknownMark = 255;

/// What left cells unspecified.
struct Origin {
  enum class Kind : uint8_t {
    kCreated,  ///< storage that nothing wrote
    kPadding,  ///< outside the valid extents of a value made at `site`
    kStored,   ///< an unspecified value was stored; `from` tells its own origin
    kHeld,     ///< device memory without init (04 DEV-2)
  } kind = Kind::kCreated;
  Mark from = 0;
  const Site* site = nullptr;
  std::string name;
  Diagnostic place;  ///< kStored: who did it
};

/// The marks of the run of this thread.
class Marks {
 public:
  bool on = true;                ///< false: nothing is looked for
  const Fiber* fiber = nullptr;  ///< that runs, for lines
  Env* env = nullptr;

  Mark origin(Origin::Kind kind, const std::string& name = {}, Mark from = 0);
  /// The number of an unspecified scalar, read from a cell that `text` describes.
  int32_t scalar(std::string text, Mark from);
  /// The cell mark that a scalar leaves where it is written.
  Mark mark_of_scalar(int32_t scalar) const { return scalars_[static_cast<size_t>(scalar) - 1].from; }
  const Origin* find(Mark mark) const {
    return mark == 0 || mark > origins_.size() ? nullptr : &origins_[mark - 1];
  }
  /// Adds as notes where an unspecified value came from.
  void explain(Mark mark, Diagnostic& d) const;
  /// "which was never written", "which is padding".
  std::string why(Mark mark) const;
  /// Ends the program: an unspecified scalar decides `what` (03 M-37).
  [[noreturn]] void fail_scalar(int32_t scalar, const std::string& what) const;

 private:
  struct ScalarOrigin {
    std::string text;
    Span span;
    Mark from = 0;
  };
  std::vector<Origin> origins_;
  std::vector<ScalarOrigin> scalars_;
};

Marks& marks();

/// Fresh marks while it lives; runs may nest.
class MarksOfRun {
 public:
  explicit MarksOfRun(bool on);
  ~MarksOfRun();
  MarksOfRun(const MarksOfRun&) = delete;
  MarksOfRun& operator=(const MarksOfRun&) = delete;

 private:
  Marks saved_;
};

/// A report about an unspecified value: class, id, title, and the general hint.
Diagnostic unspecified_report(std::string title, std::string message);

/// Hands the marks of scalar registers through an instruction that is about to run; faults where an
/// unspecified one decides something. Only for frames that have any.
void follow_marks(Frame& frame, const Insn& in);
/// Marks the array results of an element-wise operation that took an unspecified scalar.
void spread_scalar_marks(Frame& frame, const OpInsn& insn);

}  // namespace pypto::vm
