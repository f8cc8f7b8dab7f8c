// SPDX-License-Identifier: Apache-2.0
#include "core/ir/print_impl.h"

namespace pypto::ir::printing {

const char* level_member(Level level) {
  switch (level) {
    case Level::kAIV:
      return "AIV";
    case Level::kAIC:
      return "AIC";
    case Level::kCoreGroup:
      return "CORE_GROUP";
    case Level::kChipDie:
      return "CHIP_DIE";
    case Level::kChip:
      return "CHIP";
    case Level::kHost:
      return "HOST";
    case Level::kCluster0:
      return "CLUSTER_0";
    case Level::kCluster1:
      return "CLUSTER_1";
    case Level::kCluster2:
      return "CLUSTER_2";
    case Level::kGlobal:
      return "GLOBAL";
    case Level::kNone:
      break;
  }
  return "";
}

const char* function_type_member(FunctionType type) {
  switch (type) {
    case FunctionType::kOpaque:
      return "Opaque";
    case FunctionType::kOrchestration:
      return "Orchestration";
    case FunctionType::kInCore:
      return "InCore";
    case FunctionType::kAIC:
      return "AIC";
    case FunctionType::kAIV:
      return "AIV";
    case FunctionType::kGroup:
      return "Group";
    case FunctionType::kSpmd:
      return "Spmd";
    case FunctionType::kInline:
      return "Inline";
    case FunctionType::kGraph:
      return "Graph";
  }
  return "";
}

const char* role_member(Role role) {
  switch (role) {
    case Role::kOrchestrator:
      return "Orchestrator";
    case Role::kSubWorker:
      return "SubWorker";
    case Role::kNone:
      break;
  }
  return "";
}

const char* split_member(SplitMode mode) {
  switch (mode) {
    case SplitMode::kNone:
      return "NONE";
    case SplitMode::kUpDown:
      return "UP_DOWN";
    case SplitMode::kLeftRight:
      return "LEFT_RIGHT";
  }
  return "";
}

const char* space_member(MemorySpace space) {
  switch (space) {
    case MemorySpace::kDDR:
      return "DDR";
    case MemorySpace::kVec:
      return "Vec";
    case MemorySpace::kMat:
      return "Mat";
    case MemorySpace::kLeft:
      return "Left";
    case MemorySpace::kRight:
      return "Right";
    case MemorySpace::kAcc:
      return "Acc";
    case MemorySpace::kBias:
      return "Bias";
    case MemorySpace::kScalarLocal:
      return "ScalarLocal";
    case MemorySpace::kLeftScale:
      return "LeftScale";
    case MemorySpace::kRightScale:
      return "RightScale";
    case MemorySpace::kUnset:
      break;
  }
  return "";
}

const char* tensor_layout_member(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::kND:
      return "ND";
    case TensorLayout::kDN:
      return "DN";
    case TensorLayout::kNZ:
      return "NZ";
    case TensorLayout::kMxAZZ:
      return "MX_A_ZZ";
    case TensorLayout::kMxBNN:
      return "MX_B_NN";
  }
  return "";
}

const char* tile_layout_member(TileLayout layout) {
  switch (layout) {
    case TileLayout::kNoneBox:
      return "none_box";
    case TileLayout::kRowMajor:
      return "row_major";
    case TileLayout::kColMajor:
      return "col_major";
  }
  return "";
}

const char* pad_member(PadValue pad) {
  switch (pad) {
    case PadValue::kNull:
      return "null";
    case PadValue::kZero:
      return "zero";
    case PadValue::kMax:
      return "max";
    case PadValue::kMin:
      return "min";
  }
  return "";
}

const char* pipe_member(PipeType pipe) {
  static const char* kNames[] = {"MTE1", "MTE2", "MTE3", "M", "V", "S", "FIX", "ALL"};
  return kNames[static_cast<int>(pipe)];
}

std::string Printer::dtype(DType d) const { return std::string("pl.") + dtype_info(d).member; }

std::string Printer::dim(const Dim& d) {
  if (d.is_const()) return std::to_string(d.value);
  return d.expr ? expr(d.expr) : "-1";
}

std::string Printer::dims(const std::vector<Dim>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + dim(list[i]);
  return out + "]";
}

std::string Printer::tensor_view(const TensorView& v) {
  std::string out = "pl.TensorView(";
  if (!v.valid_shape.empty()) out += "valid_shape=" + dims(v.valid_shape) + ", ";
  if (!v.stride.empty()) out += "stride=" + dims(v.stride) + ", ";
  out += std::string("layout=pl.TensorLayout.") + tensor_layout_member(v.layout);
  if (v.pad != PadValue::kNull) out += std::string(", pad=pl.PadValue.") + pad_member(v.pad);
  return out + ")";
}

std::string Printer::tile_view(const TileView& v) {
  std::string out;
  const auto field = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (!v.valid_shape.empty()) field("valid_shape=" + dims(v.valid_shape));
  if (!v.stride.empty()) field("stride=" + dims(v.stride));
  if (!v.start_offset.empty()) field("start_offset=" + dims(v.start_offset));
  if (v.blayout) field(std::string("blayout=pl.TileLayout.") + tile_layout_member(*v.blayout));
  if (v.slayout) field(std::string("slayout=pl.TileLayout.") + tile_layout_member(*v.slayout));
  if (v.fractal) field("fractal=" + std::to_string(v.fractal));
  if (v.has_pad) field(std::string("pad=pl.PadValue.") + pad_member(v.pad));
  if (v.compact != CompactMode::kNull) field("compact=pl.CompactMode.normal");
  return "pl.TileView(" + out + ")";
}

std::string Printer::memref(const MemRef& m) {
  if (m.offset >= 0) {
    return "pl.MemRef(" + quoted(m.name) + ", " + std::to_string(m.offset) + ", " + std::to_string(m.size) +
           ")";
  }
  std::string out = "pl.MemRef(" + (m.name.empty() ? std::string() : quoted(m.name));
  if (m.slots > 1) out += (m.name.empty() ? "slots=" : ", slots=") + std::to_string(m.slots);
  out += ")";
  if (m.slot) out += "[" + expr(m.slot) + "]";
  return out;
}

std::string Printer::type(const Type& t, bool full) {
  switch (t.kind) {
    case TypeKind::kNone:
      return "None";
    case TypeKind::kScalar:
      return "pl.Scalar[" + dtype(t.dtype) + "]";
    case TypeKind::kTensor: {
      std::string out = t.is_window() ? "pld.DistributedTensor[" : "pl.Tensor[";
      out += dims(t.shape) + ", " + dtype(t.dtype);
      if (t.tensor_view) {
        out += ", " + tensor_view(*t.tensor_view);
      } else if (t.layout == TensorLayout::kDN) {
        out += ", pl.TensorView(layout=pl.TensorLayout.DN)";
      } else if (t.layout != TensorLayout::kND) {
        out += std::string(", pl.") + tensor_layout_member(t.layout);
      } else if (options_.explicit_layout) {
        out += ", pl.ND";
      }
      if (full && t.memref) out += ", " + memref(*t.memref);
      return out + "]";
    }
    case TypeKind::kTile: {
      std::string out = "pl.Tile[" + dims(t.shape) + ", " + dtype(t.dtype);
      if (t.space != MemorySpace::kUnset) out += std::string(", pl.Mem.") + space_member(t.space);
      if ((full || options_.explicit_layout) && t.tile_view) out += ", " + tile_view(*t.tile_view);
      if (full && t.memref) out += ", " + memref(*t.memref);
      return out + "]";
    }
    case TypeKind::kArray:
      return "pl.Array[" + (t.shape.empty() ? "0" : dim(t.shape[0])) + ", " + dtype(t.dtype) + "]";
    case TypeKind::kTuple: {
      std::string out = "tuple[";
      for (size_t i = 0; i < t.elements.size(); ++i) out += (i ? ", " : "") + type(*t.elements[i], full);
      return out + "]";
    }
    case TypeKind::kPtr:
      return "pl.Ptr";
    case TypeKind::kCommCtx:
      return "pld.CommCtx";
    case TypeKind::kPrefetchContext:
      return "pl.PrefetchAsyncContext";
    case TypeKind::kAsyncEvent:
      return "pl.AsyncEvent";
    case TypeKind::kAsyncSession:
      return "pl.AsyncSession";
    case TypeKind::kString:
      return "str";
  }
  return "None";
}

/// Types worth showing at an assignment, in a form that says nothing that the value does not say itself.
bool Printer::annotates(const Type& t) const {
  if (options_.concise || !t.is_array_like() || !t.static_shape() || t.is_window()) return false;
  return !t.is_tensor() || (t.layout == TensorLayout::kND && !t.tensor_view);
}

}  // namespace pypto::ir::printing
