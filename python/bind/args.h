// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/machine/run.h"
#include "python/bind/compiled.h"

/// Host arrays and numbers (04 sections 3 and 8).
namespace pypto::bind {

/// Any CPU (or other) array: NumPy, torch, buffer protocol, DLPack.
struct ArrayRef {
  uint8_t* data = nullptr;
  DType dtype = DType::kNone;  ///< kNone: an element type without counterpart, named by dtype_text
  std::vector<int64_t> shape;
  bool contiguous = true;
  bool writable = true;
  bool torch = false;
  bool cpu = true;
  bool packed_fp4 = false;  ///< torch float4_e2m1fn_x2: `shape` counts bytes along the last axis
  std::string dtype_text;   ///< filled on demand by array_dtype_text
  /// Why its elements cannot be read or written where they are, and what to pass instead; empty for most.
  std::string unusable;
  nb::object keep;
};
/// False when `o` is no array (no Python error is left).
bool read_array(nb::handle o, ArrayRef& out);
/// What to do with an object that is no array but says how to become one; empty for others.
std::string as_array_hint(nb::handle o);
/// "torch.float16", "float64": the array's own name of its element type.
std::string array_dtype_text(nb::handle o);
/// "cuda:0"; "cpu" for host arrays.
std::string array_device(nb::handle o);

/// A Python, NumPy or ctypes number, or a 0-dim array.
struct Number {
  enum class Kind : uint8_t { kInt, kFloat, kBool } kind = Kind::kInt;
  int64_t i = 0;
  double f = 0;
  bool big = false;         ///< does not fit 64 bits
  bool from_array = false;  ///< 0-dim array or NumPy scalar
  std::string ctype;        ///< "c_int32" ...; empty when it is no ctypes value
};
bool read_number(nb::handle o, Number& out);

/// "torch.Tensor", "numpy.ndarray", "int": type as messages show it.
std::string type_text(nb::handle o);

/// _core.DeviceArg: resident tensor.
struct PyDeviceArg {
  uint64_t pointer = 0;
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  int rank = 0;
  nb::object keep;
  bool unwritten = false;
};
/// _core.StackedArg.
struct PyStackedArg {
  std::vector<uint64_t> pointers;
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  std::vector<int> ranks;
  nb::object keep;
};

struct BoundArgs {
  std::vector<machine::HostArg> args;
  std::vector<nb::object> keep;
};
/// Checks and converts one argument per parameter. Throws Failure; changes nothing.
void bind_args(const PyCompiled& c, int entry, nb::handle args, const std::string& function, bool devices,
               BoundArgs& out);

/// An array over memory: torch if it was imported (or asked for), else NumPy. Strides in elements; empty =
/// packed.
nb::object array_view(uint8_t* data, DType dtype, const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& stride, nb::object keep, int torch);

}  // namespace pypto::bind
