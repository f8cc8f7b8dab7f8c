// SPDX-License-Identifier: Apache-2.0
#include "core/machine/layouts.h"

#include <algorithm>
#include <cstring>

#include "core/vm/ops/region.h"

namespace pypto::machine {
namespace {

constexpr int64_t kFractalRows = 16;
constexpr int64_t kFractalBytes = 32;

/// The strides that the parameter's annotation asks for, in elements; empty for packed rows and for NZ.
std::vector<int64_t> strides_of(const ir::Type& type, const std::vector<int64_t>& shape) {
  std::vector<int64_t> out;
  if (type.tensor_view && type.tensor_view->stride.size() == shape.size()) {
    for (const ir::Dim& d : type.tensor_view->stride) {
      if (!d.is_const()) return {};
      out.push_back(d.value);
    }
    return out;
  }
  if (type.layout != ir::TensorLayout::kDN || shape.size() < 2) return {};
  out.assign(shape.size(), 1);
  const size_t n = shape.size();
  out[n - 1] = shape[n - 2];
  int64_t cells = shape[n - 1] * shape[n - 2];
  for (size_t i = n - 2; i-- > 0; cells *= shape[i]) out[i] = cells;
  return out;
}

bool packed(const std::vector<int64_t>& stride, const std::vector<int64_t>& shape) {
  int64_t cells = 1;
  for (size_t i = shape.size(); i-- > 0; cells *= shape[i]) {
    if (shape[i] != 1 && stride[i] != cells) return false;
  }
  return true;
}

}  // namespace

LogicalArrays::LogicalArrays(const vm::FunctionCode& entry, std::vector<HostArg>& args) : given_(args) {
  const size_t n = std::min(entry.params.size(), args.size());
  for (size_t i = 0; i < n; ++i) {
    const vm::ParamInfo& p = entry.params[i];
    const HostArg& arg = args[i];
    if (!p.type || !p.type->is_tensor() || !arg.is_tensor) continue;
    const bool nz = p.type->layout == ir::TensorLayout::kNZ;
    const std::vector<int64_t> stride = strides_of(*p.type, arg.shape);
    if (!nz && (stride.empty() || packed(stride, arg.shape))) continue;
    if (!changed_) own_ = args;
    changed_ = true;
    HostArg& out = own_[i];
    if (arg.shards.empty()) {
      out.data = unpack(arg.data, arg.shape, p);
    } else {
      const std::vector<int64_t> shard(arg.shape.begin() + 1, arg.shape.end());
      for (size_t k = 0; k < arg.shards.size(); ++k) out.shards[k] = unpack(arg.shards[k], shard, p);
      out.data = out.shards[0];
    }
  }
}

LogicalArrays::~LogicalArrays() {
  for (Piece& piece : pieces_) {
    if (piece.written) copy(piece, true);
  }
}

uint8_t* LogicalArrays::unpack(uint8_t* stored, const std::vector<int64_t>& shape, const vm::ParamInfo& p) {
  const auto reject = [&](const std::string& what, const std::string& help) {
    fail(ErrorClass::kValueError,
         "Parameter '" + p.name + "' " + what + "; got " + ir::type_text(*p.type) + ", extents " +
             vm::list_text(shape),
         p.span, help);
  };
  Piece piece;
  piece.stored = stored;
  piece.shape = shape;
  piece.written = p.declared != ir::ParamDirection::kIn || p.effective != ir::ParamDirection::kIn;
  const int64_t bits = dtype_bits(p.type->dtype);
  int64_t cells = 1;
  for (const int64_t d : shape) cells *= d;
  if (p.type->layout == ir::TensorLayout::kNZ) {
    const size_t n = shape.size();
    if (n < 2 || shape[n - 2] % kFractalRows != 0 || shape[n - 1] * bits % (kFractalBytes * 8) != 0) {
      reject("has layout NZ, whose last two dimensions are blocks of 16 rows and 32 bytes",
             "give extents that are multiples of 16 and of " + std::to_string(kFractalBytes * 8 / bits) +
                 ", or drop the layout");
    }
    piece.row = shape[n - 1] * bits / 8;
  } else {
    piece.stride = strides_of(*p.type, shape);
    piece.element = bits / 8;
    int64_t last = 0;
    for (size_t i = 0; i < shape.size(); ++i) last += shape[i] > 0 ? (shape[i] - 1) * piece.stride[i] : 0;
    if (bits % 8 != 0 || last >= std::max<int64_t>(cells, 1)) {
      reject("has strides " + vm::list_text(piece.stride) + ", which leave its array",
             "give strides of whole bytes within the array");
    }
  }
  piece.packed.resize(static_cast<size_t>((cells * bits + 7) / 8));
  copy(piece, false);
  pieces_.push_back(std::move(piece));
  return pieces_.back().packed.data();
}

void LogicalArrays::copy(Piece& piece, bool to_stored) {
  if (piece.packed.empty()) return;
  const auto move = [&](int64_t stored, int64_t cell, int64_t bytes) {
    uint8_t* a = piece.stored + stored;
    uint8_t* b = piece.packed.data() + cell;
    std::memcpy(to_stored ? a : b, to_stored ? b : a, static_cast<size_t>(bytes));
  };
  const std::vector<int64_t>& shape = piece.shape;
  const size_t n = shape.size();
  if (piece.stride.empty()) {
    const int64_t rows = shape[n - 2];
    const int64_t blocks = piece.row / kFractalBytes;
    const int64_t matrix = rows * piece.row;
    for (int64_t at = 0; at < static_cast<int64_t>(piece.packed.size()); at += matrix) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < blocks; ++c) {
          move(at + (c * rows + r) * kFractalBytes, at + r * piece.row + c * kFractalBytes, kFractalBytes);
        }
      }
    }
    return;
  }
  std::vector<int64_t> index(n, 0);
  const int64_t total = static_cast<int64_t>(piece.packed.size()) / piece.element;
  for (int64_t cell = 0; cell < total; ++cell) {
    int64_t at = 0;
    for (size_t i = 0; i < n; ++i) at += index[i] * piece.stride[i];
    move(at * piece.element, cell * piece.element, piece.element);
    for (size_t i = n; i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace pypto::machine
