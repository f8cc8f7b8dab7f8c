// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ir/type.h"

/// Names of enum members and views as they are written under `pl.`, for types in messages and in printed
/// programs.
namespace pypto::ir {

const char* level_member(Level level);
const char* function_type_member(FunctionType type);
const char* role_member(Role role);
const char* split_member(SplitMode mode);
const char* space_member(MemorySpace space);
const char* tensor_layout_member(TensorLayout layout);
const char* tile_layout_member(TileLayout layout);
const char* pad_member(PadValue pad);
const char* pipe_member(PipeType pipe);

/// How a list of extents is written: messages and printed programs name symbols in their own ways.
using DimsText = std::function<std::string(const std::vector<Dim>&)>;

/// `pl.TensorView(...)` and `pl.TileView(...)` with the fields that are set.
std::string tensor_view_text(const TensorView& v, const DimsText& dims);
std::string tile_view_text(const TileView& v, const DimsText& dims);

}  // namespace pypto::ir
