// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/infer.h"

/// The room where operations are typed. Each row of ops.def has one function `type_<id>`; a row without one
/// does not link. The functions live in one file per section of chapter 02 (and of 03 for the distributed
/// rows) and share the helpers of Typer.
namespace pypto::ir::infer {

/// What the array operands of a call are; decides which form of an operation is meant (02 O-102).
enum class OperandLevel : uint8_t { kNone, kScalar, kTensor, kTile };

/// A window read or written: entries are aligned with the trailing axes of `source`.
struct Window {
  std::vector<ExprPtr> offsets;
  Shape extents;
  std::vector<ExprPtr> requested;  ///< valid_shape; empty = not given
  bool exact = false;              ///< the whole window must fit (02 O-211.3)
  bool clamp = false;
};

/// One operation call while it is typed.
class Typer {
 public:
  Typer(InferContext& context_in, const OpCallSite& call);

  InferContext& context;
  const OpRow* row;
  OpForm form;
  Span span;
  std::vector<ExprPtr> args;
  AttrMap attrs;
  OperandLevel level = OperandLevel::kNone;

  bool tile_level() const { return level == OperandLevel::kTile; }
  bool in_kernel() const { return context.place == kPlaceKernel; }
  bool a5() const { return context.arch == Arch::kA5; }
  const char* arch_text() const { return a5() ? "a5" : "a2a3"; }

  // ---- names and errors
  /// `id` is the id of the rule that is broken (03 X-0); rows of collectives default to X-30.
  /// "tensor.add", "tile.add", "pld.tensor.put", "system.syncall".
  std::string name() const;
  /// Name of parameter `i` in the form that was called.
  std::string param(int i) const;
  /// What argument `i` is, for messages: its type, or its value when it is a literal.
  std::string got(int i) const;
  [[noreturn]] void type_error(const std::string& what, const std::string& hint = {},
                               const std::string& id = {}) const;
  [[noreturn]] void value_error(const std::string& what, const std::string& hint = {},
                                const std::string& id = {}) const;
  /// "argument 'x' must be <expected>, got <type>".
  [[noreturn]] void bad(int i, const std::string& expected, const std::string& hint = {},
                        const std::string& id = {}) const;
  void warn(const std::string& what, const std::string& hint = {}, const std::string& id = {}) const;
  /// Rejects on the platforms that lack something (02 O-310).
  void require_a5(const std::string& what) const;

  // ---- operands
  bool has(int i) const {
    return i < static_cast<int>(args.size()) && args[static_cast<size_t>(i)] != nullptr;
  }
  const ExprPtr& arg(int i) const { return args[static_cast<size_t>(i)]; }
  /// Type of argument `i`, which must be given.
  const Type& type(int i) const;
  bool is_tensor(int i) const { return has(i) && type(i).is_tensor(); }
  bool is_tile(int i) const { return has(i) && type(i).is_tile(); }
  bool is_scalar(int i) const { return has(i) && type(i).is_scalar(); }
  /// Finds tensor or tile level from the operands at `operands`; rejects mixtures (02 O-113), the wrong
  /// namespace (02 O-221) and keywords that the level does not have (02 O-111).
  void dispatch(std::initializer_list<int> operands);
  /// The same for a row that has only a tensor or only a tile form.
  void tile_only(std::initializer_list<int> operands);
  void tensor_only(std::initializer_list<int> operands);
  /// Array operand of the call's level.
  const Type& array(int i) const;
  const Type& tile(int i) const;
  const Type& tensor(int i) const;
  /// Tensor in global memory or a window; a tensor created in the kernel is put there (01 L-186).
  const Type& global(int i) const;
  /// Window (DistributedTensor).
  const Type& window(int i) const;
  void require_dtype(int i, std::initializer_list<DType> accepted, const std::string& hint = {}) const;
  void require_rank(int i, int rank) const;
  /// Rejects 4-bit dtypes that no memory of the platform holds (01 L-10).
  void require_storable(DType d) const;
  /// Constant last-axis offsets of packed FP4 data must be even (02 O-804).
  void require_packed_offset(DType d, const std::vector<ExprPtr>& offsets) const;
  /// Arithmetic dtypes of 02 O-901.
  void require_arithmetic(int i) const;
  void require_same_dtype(int i, int j) const;
  void require_same_shape(int i, int j) const;
  /// The dtype two operands promote to (02 O-301), or an error naming both.
  DType promoted(int i, int j) const;

  // ---- scalar operands
  /// Numeric scalar operand beside an array of `dtype`: literals adapt (02 O-120), run-time INDEX is rejected
  /// (02 O-122), BOOL too. Returns its dtype afterwards.
  DType numeric(int i, DType dtype);
  /// The same, then converted to `dtype` (02 O-123, O-304).
  void numeric_as(int i, DType dtype);
  /// Integer scalar used as index, extent or count; any integer dtype. Constants become INDEX.
  void index(int i);
  ExprPtr index_entry(const ExprPtr& e, const std::string& what) const;
  /// Integer scalar of exactly `dtype` (literals adapt).
  void integer_as(int i, DType dtype);

  // ---- compile-time parameters: moved from args to attrs
  std::optional<int64_t> constant(int i) const;
  int64_t int_attr(int i, AttrKey key, std::optional<int64_t> fallback = std::nullopt);
  bool bool_attr(int i, AttrKey key, bool fallback = false);
  /// kNone when absent.
  DType dtype_attr(int i, AttrKey key, DType fallback = DType::kNone);
  /// Enum member; `family` is the enum's name under `pl.`.
  int64_t enum_attr(int i, AttrKey key, const char* family, int64_t fallback, int64_t members);
  std::string string_attr(int i, AttrKey key, const std::string& fallback);
  /// One of `names`, by name or by number; stored by name.
  std::string mode_attr(int i, AttrKey key, std::initializer_list<const char*> names, int fallback);
  /// One of `names`, by name or by number; stored as the number.
  int64_t code_attr(int i, AttrKey key, std::initializer_list<const char*> names, int fallback);
  /// PadValue member, 0, 0.0 or +-inf (02 section 17). `null_ok` accepts PadValue.null.
  PadValue pad_attr(int i, PadValue fallback, bool null_ok);
  AtomicType atomic_attr(int i, DType element);
  void drop(int i) { args[static_cast<size_t>(i)] = nullptr; }

  // ---- lists
  bool is_list(int i) const;
  /// Entries of a list argument; the argument becomes a tuple of integer scalars.
  std::vector<ExprPtr> entries(int i, int rank = -1);
  /// Extents: constants >= `least`, or scalars.
  Shape extents(int i, int rank = -1, int64_t least = 1);
  /// Constant extents >= 1.
  Shape static_extents(int i, int rank = -1);

  // ---- results
  ExprPtr result(TypePtr type) const;
  /// Fresh value at this level: Vec tile or on-chip tensor (02 O-220).
  ExprPtr value(Shape shape, DType dtype, Shape valid = {}) const;
  TypePtr value_type(Shape shape, DType dtype, Shape valid = {}) const;
  ExprPtr tile_value(Shape shape, DType dtype, MemorySpace space, Shape valid = {}) const;
  ExprPtr scalar(DType dtype) const { return result(scalar_type(dtype)); }
  ExprPtr nothing() const { return result(none_type()); }
  /// View or address of operand `i` under another shape: same storage, place and space.
  ExprPtr view(int i, Shape shape, Shape valid) const;
  /// The operand itself after an in-place change.
  ExprPtr in_place(int i) const { return result(args[static_cast<size_t>(i)]->type); }

  // ---- regions
  /// Checks a window read and returns its static valid extents, empty when it is the whole window (02 O-211).
  Shape read_window(const Type& source, const Window& w, const std::string& operand) const;
  /// Valid shape of a target after a write (02 O-212); `source_valid` aligned with the trailing axes.
  Shape written_valid(const Type& target, const std::vector<ExprPtr>& offsets,
                      const Shape& source_valid) const;
  /// Checks offsets of a write of `extents` into the trailing axes of `target`.
  void check_write(const Type& target, const std::vector<ExprPtr>& offsets, const Shape& extents,
                   const std::string& operand) const;

 private:
  [[noreturn]] void error(ErrorClass cls, const std::string& what, const std::string& hint,
                          const std::string& id) const;
  bool honoured(int i, OpForm level_form) const;
  void check_keywords();
};

// ---- extents
Dim dim_of(const ExprPtr& e);
ExprPtr expr_of(const Dim& d);
/// Both are known to be equal.
bool provably_equal(const Dim& a, const Dim& b);
/// Both are constants and differ.
inline bool provably_differ(const Dim& a, const Dim& b) {
  return a.is_const() && b.is_const() && a.value != b.value;
}
/// Value of a + b - c when it folds.
std::optional<int64_t> fold_sum(const ExprPtr& a, const Dim& b, const Dim& c);
Dim dim_sum(const Dim& a, const Dim& b);
Dim dim_product(const Dim& a, const Dim& b);
/// Valid extents with every axis filled in.
Shape valid_of(const Type& t);
/// `valid` or empty when it is provably the whole shape.
Shape normal_valid(const Shape& shape, Shape valid);
bool fully_valid(const Type& t);
bool same_static_shape(const Shape& a, const Shape& b);

// ---- scalars
/// Constant conversion and run-time conversion without range check (02 O-304).
ExprPtr cast_scalar(const ExprPtr& e, DType dtype);
double round_to_dtype(double value, DType dtype);
int64_t wrap_to_dtype(int64_t value, DType dtype);
bool fits_dtype(int64_t value, DType dtype);
std::string dtype_list(std::initializer_list<DType> list);
const char* space_name(MemorySpace s);
/// Kind and memory of an operand, in the words of 02 O-220.
std::string kind_text(const Type& t);

using TypeFn = ExprPtr (*)(Typer&);
TypeFn type_function(OpId id);

#define PYPTO_OP(id, ...) ExprPtr type_##id(Typer& t);
#include "core/ir/ops.def"
#undef PYPTO_OP

}  // namespace pypto::ir::infer
