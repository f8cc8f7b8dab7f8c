// SPDX-License-Identifier: Apache-2.0
#include "python/bind/args.h"

#include <cmath>
#include <limits>

#include "core/base/numeric.h"

namespace pypto::bind {
namespace {

std::string list_text(const std::vector<int64_t>& v) {
  std::string out = "[";
  for (size_t i = 0; i < v.size(); ++i) out += (i ? ", " : "") + std::to_string(v[i]);
  return out + "]";
}

/// The C type that a scalar of this dtype travels as (04 DTY-2).
std::string scalar_ctype(DType d) {
  switch (d) {
    case DType::kFp32:
    case DType::kFp16:
    case DType::kBf16:
      return "c_float";
    case DType::kBool:
      return "c_bool";
    case DType::kIndex:
    case DType::kTaskId:
      return "c_int64";
    default:
      if (is_signed_int(d)) return "c_int" + std::to_string(dtype_bits(d));
      if (is_unsigned_int(d)) return "c_uint" + std::to_string(dtype_bits(d));
      return "";
  }
}

bool narrow_float(DType d) { return d == DType::kFp16 || d == DType::kBf16; }

/// Value of a float as the parameter's dtype holds it (01 L-9).
double round_to(DType d, double v) {
  const float f = static_cast<float>(v);
  if (d == DType::kFp16) return fp16_to_fp32(fp32_to_fp16(f));
  if (d == DType::kBf16) return bf16_to_fp32(fp32_to_bf16(f));
  return d == DType::kFp32 ? f : v;
}

struct Range {
  int64_t low;
  uint64_t high;
};
Range int_range(DType d) {
  const int bits = dtype_bits(d);
  if (d == DType::kBool) return {0, 1};
  if (is_unsigned_int(d)) return {0, bits == 64 ? ~0ULL : (1ULL << bits) - 1};
  if (bits == 64)
    return {std::numeric_limits<int64_t>::min(), static_cast<uint64_t>(std::numeric_limits<int64_t>::max())};
  return {-(1LL << (bits - 1)), static_cast<uint64_t>((1LL << (bits - 1)) - 1)};
}

class Binder {
 public:
  Binder(const PyCompiled& c, int entry, const std::string& function, bool devices, BoundArgs& out)
      : c_(c),
        entry_(entry),
        f_(c.code->functions[static_cast<size_t>(entry)]),
        name_(function.empty() ? f_.name : function),
        devices_(devices),
        out_(out) {}

  void bind(nb::handle args) {
    PyObject* fast = PySequence_Fast(args.ptr(), "arguments must be a sequence");
    if (!fast) throw nb::python_error();
    nb::object own = nb::steal(fast);
    const size_t n = static_cast<size_t>(PySequence_Fast_GET_SIZE(fast));
    if (n != f_.params.size()) {
      std::string names;
      for (const auto& p : f_.params) names += (names.empty() ? "'" : ", '") + p.name + "'";
      fail(ErrorClass::kTypeError, name_ + " expects " + std::to_string(f_.params.size()) +
                                       " arguments, got " + std::to_string(n) + ". Parameters: [" + names +
                                       "]");
    }
    out_.args.resize(n);
    for (size_t i = 0; i < n; ++i) {
      index_ = i;
      try {
        arg(PySequence_Fast_GET_ITEM(fast, static_cast<Py_ssize_t>(i)), f_.params[i], out_.args[i]);
      } catch (Failure& f) {
        const std::string place = f_.params[i].span.known() ? f_.params[i].span.text() : "";
        std::string& message = f.diagnostic().message;
        if (message.find(place) == std::string::npos) message += " (declared at " + place + ")";
        throw;
      }
    }
    check_symbols();
    check_overlap();
  }

 private:
  std::string position() const { return std::to_string(index_); }
  /// " (parameter 'x' of f)"
  std::string owner(const vm::ParamInfo& p) const { return " (parameter '" + p.name + "' of " + name_ + ")"; }

  void arg(nb::handle value, const vm::ParamInfo& p, machine::HostArg& out) {
    if (p.type && p.type->is_array_like()) {
      tensor(value, p, out);
    } else {
      scalar(value, p, out);
    }
  }

  void tensor(nb::handle value, const vm::ParamInfo& p, machine::HostArg& out) {
    if (nb::isinstance<PyDeviceArg>(value)) return device(nb::cast<PyDeviceArg&>(value), p, out);
    if (nb::isinstance<PyStackedArg>(value)) return stacked(nb::cast<PyStackedArg&>(value), p, out);
    ArrayRef a;
    if (!read_array(value, a)) {
      fail(ErrorClass::kTypeError,
           "Parameter '" + p.name + "' is a tensor; got " + type_text(value) +
               ". Pass a torch.Tensor (host) or DeviceTensor (worker-resident). NumPy arrays and "
               "other CPU arrays are host tensors too" +
               as_array_hint(value) + owner(p));
    }
    if (!a.unusable.empty()) {
      fail(ErrorClass::kTypeError, "Parameter '" + p.name + "' is a tensor; got " + a.unusable + owner(p));
    }
    if (!a.cpu) {
      fail(ErrorClass::kValueError, "Tensor at position " + position() + " is on " + array_device(value) +
                                        ", expected CPU. Call .cpu() before passing it." + owner(p));
    }
    const DType dtype = stored_dtype(p.type->dtype, a);
    if (dtype == DType::kFp4 && !a.shape.empty()) a.shape.back() *= 2;
    check(p, a.dtype == DType::kNone ? DType::kNone : dtype, a.shape,
          [&] { return array_dtype_text(value) + " " + list_text(a.shape) + " on " + array_device(value); });
    const bool written = p.declared != ir::ParamDirection::kIn || p.effective != ir::ParamDirection::kIn;
    if (!a.contiguous) {
      fail(ErrorClass::kValueError,
           "Tensor at position " + position() + " is not contiguous. Call .contiguous() before passing it." +
               (a.torch ? "" : " For a NumPy array that is np.ascontiguousarray(x).") +
               (written ? " It is written: copy the result back from what you pass." : "") + owner(p));
    }
    if (written && !a.writable) {
      fail(ErrorClass::kValueError, "Tensor at position " + position() + " is read-only, but parameter '" +
                                        p.name + "' of " + name_ + " is written. Pass a writable array.");
    }
    out.is_tensor = true;
    out.data = a.data;
    out.dtype = dtype;
    out.shape = std::move(a.shape);
    out.read_only = !a.writable;
    if (a.keep.is_valid()) out_.keep.push_back(a.keep);
  }

  /// The parameter's dtype if the array's elements may be read as it (04 DTY-3, carriers of DTY-2), else the
  /// array's.
  static DType stored_dtype(DType want, const ArrayRef& a) {
    const DType have = a.dtype;
    if (have == DType::kNone || want == have) return have;
    if (same_dtype(want, have)) return want;
    const bool ints =
        is_int(want) && is_int(have) && dtype_bits(want) == dtype_bits(have) && dtype_bits(want) >= 16;
    if (ints && is_unsigned_int(want) != is_unsigned_int(have)) return want;
    const bool byte = have == DType::kUInt8 || have == DType::kInt8;
    const bool half = have == DType::kUInt16 || have == DType::kInt16;
    if (want == DType::kBool && byte) return want;
    if (want == DType::kBf16 && half) return want;
    const bool small = want == DType::kFp8E4M3FN || want == DType::kFp8E5M2 || want == DType::kFp8E8M0 ||
                       want == DType::kFp4 || want == DType::kHf8 || want == DType::kHf4 ||
                       want == DType::kInt4 || want == DType::kUInt4;
    return small && byte ? want : have;
  }

  template <class Got>
  void check(const vm::ParamInfo& p, DType dtype, const std::vector<int64_t>& shape, Got&& got) {
    const ir::Shape& want = p.type->shape;
    std::string why;
    if (dtype == DType::kNone || !same_dtype(dtype, p.type->dtype)) {
      const std::string text(dtype_text(p.type->dtype));
      why += "\n  dtype     " +
             (dtype == DType::kNone ? std::string("this element type") : std::string(dtype_text(dtype))) +
             " is not " + text + ": convert the array, e.g. with .to(torch." + torch_name(p.type->dtype) +
             ")";
    }
    if (want.size() != shape.size()) {
      why += "\n  rank      " + std::to_string(shape.size()) + " is not " + std::to_string(want.size());
    } else {
      for (size_t i = 0; i < want.size(); ++i) {
        if (want[i].is_const() && want[i].value != shape[i]) {
          why += "\n  axis " + std::to_string(i) + "    " + std::to_string(shape[i]) + " is not " +
                 std::to_string(want[i].value);
          break;
        }
      }
    }
    if (why.empty()) return;
    std::string text =
        name_ + ": argument '" + p.name + "' (position " + position() + ") does not match its parameter";
    text += "\n  expected  " + ir::type_text(*p.type);
    if (p.span.known()) text += "          declared at " + p.span.text();
    text += "\n  got       " + got() + why;
    fail(ErrorClass::kTypeError, text);
  }

  static std::string torch_name(DType d) {
    switch (d) {
      case DType::kFp32:
        return "float32";
      case DType::kFp16:
        return "float16";
      case DType::kIndex:
        return "int64";
      default:
        return std::string(dtype_text(d));
    }
  }

  void device(PyDeviceArg& d, const vm::ParamInfo& p, machine::HostArg& out) {
    if (!devices_) {
      fail(ErrorClass::kTypeError,
           "One-shot calls take host arrays, but parameter '" + p.name + "' of " + name_ +
               " got a DeviceTensor. Use prepare() and alloc_tensor() (or a ChipWorker) to work "
               "with resident tensors");
    }
    check(p, d.dtype, d.shape,
          [&] { return "DeviceTensor " + std::string(dtype_text(d.dtype)) + " " + list_text(d.shape); });
    out.data = reinterpret_cast<uint8_t*>(d.pointer);
    out.dtype = same_dtype(d.dtype, p.type->dtype) ? p.type->dtype : d.dtype;
    out.shape = d.shape;
    out.device_resident = true;
    out.rank = d.rank;
    out.unwritten = d.unwritten;
    if (d.keep.is_valid()) out_.keep.push_back(d.keep);
  }

  void stacked(PyStackedArg& s, const vm::ParamInfo& p, machine::HostArg& out) {
    if (!devices_) {
      fail(ErrorClass::kTypeError,
           "One-shot calls take host arrays, but parameter '" + p.name + "' of " + name_ +
               " got a StackedDeviceTensor. Use prepare() and alloc_stacked_tensor()");
    }
    check(p, s.dtype, s.shape, [&] {
      return "StackedDeviceTensor " + std::string(dtype_text(s.dtype)) + " " + list_text(s.shape);
    });
    out.dtype = p.type->dtype;
    out.shape = s.shape;
    out.device_resident = true;
    for (const uint64_t pointer : s.pointers) out.shards.push_back(reinterpret_cast<uint8_t*>(pointer));
    out.shard_ranks = s.ranks;
    if (s.keep.is_valid()) out_.keep.push_back(s.keep);
  }

  void scalar(nb::handle value, const vm::ParamInfo& p, machine::HostArg& out) {
    const DType d = p.type->dtype;
    const std::string text(dtype_text(d));
    Number n;
    if (!read_number(value, n)) {
      fail(ErrorClass::kTypeError,
           "Parameter '" + p.name + "' is a scalar (" + text + "); got " + type_text(value) + owner(p));
    }
    const auto misfit = [&](const std::string& why) {
      fail(ErrorClass::kValueError, "Parameter '" + p.name + "' is a scalar (" + text + "); the value " +
                                        std::string(nb::str(value).c_str()) + " " + why + owner(p));
    };
    if (!n.ctype.empty() && n.ctype != scalar_ctype(d)) {
      if (narrow_float(d) && n.ctype == "c_uint16") {
        n.f = d == DType::kFp16 ? fp16_to_fp32(static_cast<uint16_t>(n.i))
                                : bf16_to_fp32(static_cast<uint16_t>(n.i));
        n.kind = Number::Kind::kFloat;
      } else {
        fail(ErrorClass::kTypeError, "Parameter '" + p.name + "' is a scalar (" + text + ") and travels as " +
                                         scalar_ctype(d) + "; got " + n.ctype + owner(p));
      }
    }
    out.is_tensor = false;
    out.dtype = d;
    if (is_float(d)) {
      out.float_value = round_to(d, n.f);
      out.int_value = static_cast<int64_t>(n.i);
    } else {
      if (n.kind == Number::Kind::kFloat) {
        if (std::floor(n.f) != n.f || std::fabs(n.f) >= 9.3e18) misfit("is no integer of that type");
        n.i = static_cast<int64_t>(n.f);
      }
      const Range r = int_range(d);
      const bool negative = n.i < 0 && !n.big;
      const bool fits = n.big      ? d == DType::kUInt64
                        : negative ? n.i >= r.low
                                   : static_cast<uint64_t>(n.i) <= r.high;
      if (!fits) misfit("does not fit");
      out.int_value = n.i;
      out.float_value = static_cast<double>(n.i);
    }
    check_baked(p, out, value);
  }

  /// A scalar that was compiled in must be given again with the same value (04 JIT-20).
  void check_baked(const vm::ParamInfo& p, const machine::HostArg& given, nb::handle value) {
    if (entry_ != c_.code->entry) return;
    for (const auto& b : c_.code->baked) {
      if (b.param != static_cast<int>(index_)) continue;
      const DType d = given.dtype;
      const bool same = is_float(d) ? same_bits(round_to(d, b.float_value), given.float_value)
                                    : b.int_value == given.int_value;
      if (same) return;
      const std::string compiled =
          is_float(d) ? std::string(nb::str(nb::float_(b.float_value)).c_str()) : std::to_string(b.int_value);
      fail(ErrorClass::kValueError, "parameter '" + p.name + "' of " + name_ +
                                        " was compiled in with the value " + compiled + "; got " +
                                        std::string(nb::str(value).c_str()) +
                                        ". Compile again for another value, or compile with pl.RUNTIME");
    }
  }
  static bool same_bits(double a, double b) {
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
  }

  /// One symbol, several places (01 L-30).
  void check_symbols() {
    for (const auto& s : f_.symbols) {
      const auto extent = [&](int32_t param, int32_t axis) -> int64_t {
        const auto& shape = out_.args[static_cast<size_t>(param)].shape;
        return axis >= 0 && static_cast<size_t>(axis) < shape.size() ? shape[static_cast<size_t>(axis)] : -1;
      };
      if (s.param < 0 || s.valid) continue;
      const int64_t first = extent(s.param, s.axis);
      for (const auto& [param, axis] : s.others) {
        const int64_t other = extent(param, axis);
        if (other == first || other < 0 || first < 0) continue;
        const auto place = [&](int32_t q, int32_t a, int64_t v) {
          return "'" + f_.params[static_cast<size_t>(q)].name + "' dimension " + std::to_string(a) + " is " +
                 std::to_string(v);
        };
        const std::string text = "dynamic dimension '" + s.name + "' of " + name_ +
                                 " has two extents: " + place(s.param, s.axis, first) + ", " +
                                 place(param, axis, other);
        if (s.used_as_value) {
          fail(ErrorClass::kTypeError,
               text + ". The function uses the dimension as a value, so they must agree");
        }
        Diagnostic d;
        d.severity = Severity::kWarning;
        d.id = "W-DYN-EXTENT";
        d.message = text + "; each tensor keeps its own extent";
        d.span = f_.span;
        issue_warnings({d});
      }
    }
  }

  /// An output that shares bytes with another argument (04 ARG-10).
  void check_overlap() {
    const size_t n = out_.args.size();
    const auto bytes = [&](const machine::HostArg& a) {
      int64_t count = dtype_bytes(a.dtype);
      for (const int64_t e : a.shape) count *= e;
      return a.dtype == DType::kFp4 ? count / 2 : count;
    };
    for (size_t i = 0; i < n; ++i) {
      const auto& a = out_.args[i];
      if (!a.is_tensor || !a.data || f_.params[i].declared == ir::ParamDirection::kIn) continue;
      for (size_t j = 0; j < n; ++j) {
        const auto& b = out_.args[j];
        if (i == j || !b.is_tensor || !b.data) continue;
        if (j < i && f_.params[j].declared != ir::ParamDirection::kIn) continue;  // reported as (j, i)
        if (a.data >= b.data + bytes(b) || b.data >= a.data + bytes(a)) continue;
        Diagnostic d;
        d.severity = Severity::kWarning;
        d.id = "W-ARG-OVERLAP";
        d.message = "arguments '" + f_.params[i].name + "' and '" + f_.params[j].name + "' of " + name_ +
                    " share memory, and '" + f_.params[i].name + "' is an output";
        d.span = f_.span;
        issue_warnings({d});
      }
    }
  }

  const PyCompiled& c_;
  int entry_;
  const vm::FunctionCode& f_;
  std::string name_;
  bool devices_;
  BoundArgs& out_;
  size_t index_ = 0;
};

}  // namespace

void bind_args(const PyCompiled& c, int entry, nb::handle args, const std::string& function, bool devices,
               BoundArgs& out) {
  Binder(c, entry, function, devices, out).bind(args);
}

void register_args(nb::module_& m) {
  nb::class_<PyDeviceArg>(m, "DeviceArg", "A resident tensor as argument.")
      .def(
          "__init__",
          [](PyDeviceArg* self, uint64_t pointer, PyDType dtype, std::vector<int64_t> shape, int rank,
             nb::object keep, bool unwritten) {
            new (self) PyDeviceArg{pointer, dtype.dtype, std::move(shape), rank, std::move(keep), unwritten};
          },
          nb::arg("pointer"), nb::arg("dtype"), nb::arg("shape"), nb::kw_only(), nb::arg("rank") = 0,
          nb::arg("keep").none() = nb::none(), nb::arg("unwritten") = false);
  nb::class_<PyStackedArg>(m, "StackedArg", "A stacked resident tensor as argument.")
      .def(
          "__init__",
          [](PyStackedArg* self, std::vector<uint64_t> pointers, PyDType dtype, std::vector<int64_t> shape,
             std::vector<int> ranks, nb::object keep) {
            new (self) PyStackedArg{std::move(pointers), dtype.dtype, std::move(shape), std::move(ranks),
                                    std::move(keep)};
          },
          nb::arg("pointers"), nb::arg("dtype"), nb::arg("full_shape"), nb::arg("ranks"), nb::kw_only(),
          nb::arg("keep").none() = nb::none());
  m.def(
      "check_args",
      [](const PyCompiled& c, nb::object args, std::optional<std::string> entry,
         std::optional<std::string> function, bool devices) {
        BoundArgs out;
        bind_args(c, entry_index(c, entry), args, function.value_or(""), devices, out);
      },
      nb::arg("compiled"), nb::arg("args"), nb::kw_only(), nb::arg("entry") = nb::none(),
      nb::arg("function") = nb::none(), nb::arg("devices") = true);
  m.def(
      "read_number",
      [](nb::object o) -> nb::object {
        Number n;
        if (!read_number(o, n)) return nb::none();
        nb::object value = n.kind == Number::Kind::kFloat  ? nb::object(nb::float_(n.f))
                           : n.kind == Number::Kind::kBool ? nb::object(nb::bool_(n.i != 0))
                           : n.big                         ? nb::object(nb::int_(static_cast<uint64_t>(n.i)))
                                                           : nb::object(nb::int_(n.i));
        return nb::make_tuple(value, n.ctype.empty() ? nb::none() : nb::object(nb::str(n.ctype.c_str())));
      },
      nb::arg("value"), "(number, ctypes name or None) of a scalar argument; None for anything else.");
  m.def("type_text", [](nb::object o) { return type_text(o); });
}

}  // namespace pypto::bind
