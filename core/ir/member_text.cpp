// SPDX-License-Identifier: Apache-2.0
#include "core/ir/member_text.h"

namespace pypto::ir {

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

std::string tensor_view_text(const TensorView& v, const DimsText& dims) {
  std::string out = "pl.TensorView(";
  if (!v.valid_shape.empty()) out += "valid_shape=" + dims(v.valid_shape) + ", ";
  if (!v.stride.empty()) out += "stride=" + dims(v.stride) + ", ";
  out += std::string("layout=pl.TensorLayout.") + tensor_layout_member(v.layout);
  if (v.pad != PadValue::kNull) out += std::string(", pad=pl.PadValue.") + pad_member(v.pad);
  return out + ")";
}

std::string tile_view_text(const TileView& v, const DimsText& dims) {
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

}  // namespace pypto::ir
