// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/ir/enums.h"

namespace pypto::ir {

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

/// One extent: a constant, or an integer scalar expression (symbol, run-time scalar), or unknown (both
/// unset).
struct Dim {
  int64_t value = -1;  ///< >= 0 when constant
  ExprPtr expr;        ///< set when symbolic

  Dim() = default;
  Dim(int64_t v) : value(v) {}  // NOLINT: extents are integers
  explicit Dim(ExprPtr e) : expr(std::move(e)) {}
  bool is_const() const { return value >= 0; }
};
using Shape = std::vector<Dim>;

enum class TypeKind : uint8_t {
  kNone,  ///< no value
  kScalar,
  kTensor,  ///< kinds G, W and L of 02 O-220 (see `TensorPlace`)
  kTile,
  kArray,  ///< pl.Array
  kTuple,
  kPtr,  ///< window buffer handle, allocation handle
  kCommCtx,
  kPrefetchContext,
  kAsyncEvent,
  kAsyncSession,
  kString,  ///< compile-time text argument
};

/// Where a tensor's storage lives (02 O-220).
enum class TensorPlace : uint8_t { kGlobal, kWindow, kOnChip };

struct TileView {
  std::vector<Dim> valid_shape;  ///< empty = not given
  std::optional<TileLayout> blayout, slayout;
  int fractal = 0;  ///< 0 = not given
  PadValue pad = PadValue::kNull;
  bool has_pad = false;
  CompactMode compact = CompactMode::kNull;
  std::vector<Dim> stride;
  std::vector<Dim> start_offset;
};

struct TensorView {
  std::vector<Dim> valid_shape;
  std::vector<Dim> stride;
  TensorLayout layout = TensorLayout::kND;
  PadValue pad = PadValue::kNull;
};

/// A declared allocation (01 L-39).
struct MemRef {
  std::string name;
  int slots = 1;
  ExprPtr slot;                    ///< slot index when subscripted
  int64_t offset = -1, size = -1;  ///< printed form MemRef(base, byte_offset, size)
};

/// The storage a tensor or tile value lives in, as far as it is known statically; shared by every type of a
/// value that is that storage or an address into it (01 L-87, L-185). Filled while a program is read; never
/// part of equality.
struct Storage {
  std::string name;      ///< as the user wrote it at its creation
  int param = -1;        ///< index of the function parameter it is, or -1
  bool created = false;  ///< create_tensor in a kernel or region: global or on chip by use (01 L-186)
  bool needs_global =
      false;  ///< used where only global memory is accepted, has run-time extents, or leaves its region
  bool written = false;
  bool product = false;  ///< holds a matrix product: stores and assembles may narrow it (02 O-703, O-706)
  Shape extents;         ///< of the whole allocation where it is known; a value may be a window of it
  bool region_local = false;  ///< made inside the current region
  int region = -1;            ///< which region made it
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;

/// A static type. Immutable after construction; share with shared_ptr.
struct Type {
  TypeKind kind = TypeKind::kNone;
  DType dtype = DType::kNone;
  Shape shape;  ///< tensor, tile; array: one entry
  /// Statically known valid extents (tile, tensor): same rank as `shape`, an unknown Dim where only known at
  /// run time. Empty = fully valid. No part of type equality (01 L-84, L-152).
  Shape valid;
  // tensor
  TensorPlace place = TensorPlace::kGlobal;
  TensorLayout layout = TensorLayout::kND;
  std::shared_ptr<const TensorView> tensor_view;
  // tile
  MemorySpace space = MemorySpace::kUnset;  ///< kUnset until placed
  std::shared_ptr<const TileView> tile_view;
  // tile, tensor
  std::shared_ptr<const MemRef> memref;
  PadValue pad = PadValue::kNull;
  // matmul results: accumulator dtype when it differs from `dtype` (02 O-1802), else kNone
  DType acc_dtype = DType::kNone;
  // tuple
  std::vector<TypePtr> elements;
  std::shared_ptr<Storage> storage;  ///< tensors and tiles; may be null (unknown)

  bool is_scalar() const { return kind == TypeKind::kScalar; }
  bool is_tensor() const { return kind == TypeKind::kTensor; }
  bool is_window() const { return kind == TypeKind::kTensor && place == TensorPlace::kWindow; }
  bool is_tile() const { return kind == TypeKind::kTile; }
  bool is_array_like() const { return is_tensor() || is_tile(); }
  int rank() const { return static_cast<int>(shape.size()); }
  bool static_shape() const {
    for (const auto& d : shape) {
      if (!d.is_const()) return false;
    }
    return true;
  }
  /// Product of constant extents; -1 if any is dynamic.
  int64_t static_elements() const {
    int64_t n = 1;
    for (const auto& d : shape) {
      if (!d.is_const()) return -1;
      n *= d.value;
    }
    return n;
  }
};

TypePtr none_type();
TypePtr scalar_type(DType dtype);
TypePtr tensor_type(Shape shape, DType dtype, TensorPlace place = TensorPlace::kGlobal,
                    TensorLayout layout = TensorLayout::kND);
TypePtr tile_type(Shape shape, DType dtype, MemorySpace space = MemorySpace::kUnset);
TypePtr array_type(int64_t extent, DType dtype);
TypePtr tuple_type(std::vector<TypePtr> elements);
TypePtr simple_type(TypeKind kind);

/// Equality of types where definitions meet (01 L-84): kind, dtype, rank, constant extents; INDEX == INT64
/// for scalars. Memory spaces are compared only when both are set. A dynamic extent matches anything.
bool same_type(const Type& a, const Type& b);
/// As the user writes it: "Tensor[[64, 64], fp32]" style text used in messages; `annotation`: "pl.Tensor[[64,
/// 64], pl.FP32]".
std::string type_text(const Type& t, bool annotation = false);
std::string dim_text(const Dim& d);
std::string shape_text(const Shape& s);

}  // namespace pypto::ir
