// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "core/vm/kernels/chain_plan.h"
#include "core/vm/kernels/fuse.h"

/// The loop over strips of a chain whose plan allows it. Internal to the chain executor.
namespace pypto::vm {

/// Runs the steps of a chain strip by strip: a strip is about 8 KiB of every value, several rows or a piece
/// of one.
class StripRun {
 public:
  /// Chain and plan must outlive this object, which serves any number of runs with inputs of the same
  /// shapes.
  StripRun(const Chain& chain, const ChainPlan& plan);

  // In this order for every run:
  /// The inputs and the results of the steps that ran before the loop, by value number.
  void bind(std::span<const View* const> values);
  /// Scalar operands as elements of the dtype their step computes in.
  void set_scalars(std::span<const Scalar> scalars);
  /// Declares that value `v` is written to `target` (rows of the valid region). A target shares no byte with
  /// an input, unless both are the same cells and later steps do not read the input. `streams`: the bytes are
  /// too many to be found in a cache when they are read again.
  void output(size_t v, const View& target, bool streams);
  void run();

 private:
  /// Memory of one value during a strip.
  struct Slot {
    uint8_t* data = nullptr;  ///< of this strip
    // Where the data comes from or goes to beyond the strip; null for values that live in the strip only.
    uint8_t* base = nullptr;
    int64_t pitch = 0;          ///< bytes between rows of `base`
    int64_t width = 0;          ///< bytes of an element
    uint8_t* buffer = nullptr;  ///< strip storage, when `base` cannot be used directly
    ChainPart part = ChainPart::kNone;
    bool copies_out = false;  ///< computed in `buffer`, then copied to `base`
    bool streams = false;     ///< copied past the caches
    bool over_input = false;  ///< `base` are the cells of an input
    bool given = false;       ///< an input or the result of a step before the loop
    bool stored = true;       ///< false: handed on in registers only
  };

  /// How a binary step covers its strip.
  enum class Cover : uint8_t {
    kWhole,    ///< one kernel call
    kRowsLhs,  ///< one call per row, the left operand one element per row
    kRowsRhs,
  };

  /// A step with its kernels chosen.
  struct Step {
    ChainOp op;
    Cover cover = Cover::kWhole;
    bool converts_lhs = false, converts_rhs = false, narrows = false;
    bool lhs_one = false, rhs_one = false, has_rhs = false;
    ChainPart lhs_part = ChainPart::kNone, rhs_part = ChainPart::kNone, out_part = ChainPart::kNone;
    int64_t width = 0;  ///< bytes of an element of the computing dtype
    BinaryKernel binary = nullptr;
    UnaryKernel unary = nullptr;
    ReduceKernel reduce = nullptr;
    DType lhs_dtype = DType::kNone, rhs_dtype = DType::kNone;
    DType compute = DType::kNone, dtype = DType::kNone;
    size_t lhs = 0, rhs = 0, out = 0;  ///< slots
    CastMode mode = CastMode::kRound;
  };

  /// Neighbouring steps that run as one: a single step through its kernel, or several in registers.
  struct Unit {
    size_t first = 0, last = 0;  ///< steps [first, last]
    bool fused = false, by_row = false;
    bool reduces = false;  ///< ends in a reduction of FP32 rows, `reduce`
    ReduceOp reduce = ReduceOp::kSum;
    size_t start = 0;  ///< slot that the registers are loaded from
    FuseType first_type = FuseType::kFp32, out_type = FuseType::kFp32;
    std::vector<FuseStep> steps;
    std::vector<size_t> slots;  ///< operand of each of `steps`, or kNoSlot
  };
  static constexpr size_t kNoSlot = ~size_t{0};

  int64_t row_pitch(const View& v, int64_t width) const;
  int64_t strip_elements() const { return strip_rows_ * strip_columns_; }
  void choose_strip();
  void make_slots();
  void make_steps();
  void choose_binary(Step& s, BinaryOp op) const;
  void group();
  bool fusable(const Step& s) const;
  bool extend(Unit& unit);
  void append(Unit& unit, const Step& s, bool value_is_lhs, bool value_is_rhs) const;
  void assign_buffers();
  bool lend_output(size_t v, size_t step, const Unit& unit);
  bool worth_fetching() const;
  void place_slots();

  void run_strips(int64_t first_row, int64_t end_row, int64_t first_column, int64_t end_column);
  void strip(int64_t row, int64_t rows, int64_t column, int64_t columns);
  void copy_out(const Slot& out, int64_t row, int64_t rows, int64_t column, int64_t columns) const;
  void stream_row(uint8_t* to, const uint8_t* from, int64_t bytes) const;
  void execute(const Step& s, int64_t rows, int64_t columns);
  void execute_fused(Unit& unit, int64_t rows, int64_t columns);
  static void binary(const Step& s, const uint8_t* a, const uint8_t* b, uint8_t* to, int64_t rows,
                     int64_t columns, size_t count);
  void spread_vector(const Step& s, int64_t rows, int64_t columns);

  const Chain& chain_;
  const ChainPlan& plan_;
  size_t input_count_;
  bool grouped_ = false;
  int64_t strip_rows_ = 1, strip_columns_ = 1;
  std::vector<Slot> slots_;     ///< values, then scalar operands by step
  std::vector<size_t> moving_;  ///< slots whose data changes from strip to strip
  std::vector<Step> steps_;
  std::vector<size_t> last_use_;  ///< per slot: the last step that reads it
  std::vector<Unit> units_;
  std::vector<uint8_t> scalar_elements_;
  std::vector<std::pair<size_t, DType>> scalar_steps_;
  std::vector<int> owner_;  ///< per slot: its strip buffer, or -1
  /// Values that lie in the rows of an output until that is computed: value, output.
  std::vector<std::pair<size_t, size_t>> lent_;
  bool fetches_ = false;  ///< the last unit fetches the next strip's inputs
  int64_t buffer_bytes_ = 0;
  int buffer_count_ = 0;
  uint8_t* converted_ = nullptr;
  uint8_t* converted_rhs_ = nullptr;
  uint8_t* unrounded_ = nullptr;
};

}  // namespace pypto::vm
