// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine/run.h"

namespace pypto::machine {

/// Arrays whose parameter declares how they are stored (01 L-35: NZ; L-36: DN, strides), as packed rows for
/// the time of a run: the program sees logical cells, the caller's memory holds the declared order before and
/// after.
class LogicalArrays {
 public:
  LogicalArrays(const vm::FunctionCode& entry, std::vector<HostArg>& args);
  LogicalArrays(const LogicalArrays&) = delete;
  LogicalArrays& operator=(const LogicalArrays&) = delete;
  /// Brings what was written back to the caller's memory.
  ~LogicalArrays();

  /// The arguments of the run.
  std::vector<HostArg>& args() { return changed_ ? own_ : given_; }

 private:
  struct Piece {
    uint8_t* stored = nullptr;
    std::vector<uint8_t> packed;
    std::vector<int64_t> shape;
    std::vector<int64_t> stride;  ///< elements; empty: NZ
    int64_t element = 0;          ///< bytes
    int64_t row = 0;              ///< bytes of a packed row
    bool written = false;
  };

  uint8_t* unpack(uint8_t* stored, const std::vector<int64_t>& shape, const vm::ParamInfo& p);
  static void copy(Piece& piece, bool to_stored);

  std::vector<HostArg>& given_;
  std::vector<HostArg> own_;
  bool changed_ = false;
  std::vector<Piece> pieces_;
};

}  // namespace pypto::machine
