// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "python/bind/args.h"
#include "python/bind/evaluator.h"
#include "python/bind/host.h"
#include "python/bind/program.h"

// Keys of JIT specialisations (04 sections 4.2, 4.4, 4.6). A raw key is what a call's arguments say, as
// bytes: per parameter a tag and its facts. A specialisation holds the pattern that such keys must match
// (dynamic dimensions match anything), the options it was built with, and its guards.
namespace pypto::bind {
namespace {

enum Tag : char {
  kTensorTag = 'T',
  kIntTag = 'i',
  kFloatTag = 'f',
  kBoolTag = 'b',
  kRuntimeTag = 'R',
  kOmittedTag = 'o'
};

struct JitParam {
  enum class Kind : uint8_t { kTensor, kScalar, kAny } kind = Kind::kAny;
  std::string name;
  DType dtype = DType::kNone;  ///< of the annotation
  bool full = false;           ///< annotation gives shape and dtype
  std::vector<int64_t> shape;  ///< of a full annotation; -1 dynamic
};

struct Runtime {};  // class of pl.RUNTIME

struct PySignature {
  std::string function;
  std::weak_ptr<sema::FunctionSource> source;  ///< says where a parameter is declared
  std::vector<JitParam> params;
};

struct PySpecialization {
  nb::object options;
  std::string pattern;
  Guards guards;
};

void put64(std::string& out, int64_t v) { out.append(reinterpret_cast<const char*>(&v), 8); }
int64_t get64(const char* p) {
  int64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (const int64_t d : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(d);
  return out + "]";
}

DType fold(DType d) { return d == DType::kIndex ? DType::kInt64 : d; }

void put_tensor(std::string& out, DType dtype, const std::vector<int64_t>& shape) {
  out.push_back(kTensorTag);
  out.push_back(static_cast<char>(fold(dtype)));
  out.push_back(static_cast<char>(shape.size()));
  for (const int64_t d : shape) put64(out, d);
}

/// Whether a raw key matches a pattern; both walk the same parameters.
bool match(const std::string& pattern, const char* raw, size_t size) {
  size_t i = 0, j = 0;
  while (i < pattern.size() && j < size) {
    if (pattern[i] != raw[j]) return false;
    const char tag = raw[j];
    ++i;
    ++j;
    if (tag == kTensorTag) {
      if (pattern[i] != raw[j] || pattern[i + 1] != raw[j + 1]) return false;
      const int rank = raw[j + 1];
      i += 2;
      j += 2;
      for (int d = 0; d < rank; ++d, i += 8, j += 8) {
        const int64_t want = get64(pattern.data() + i), have = get64(raw + j);
        if (want != -1 && want != have) return false;
      }
    } else if (tag == kIntTag || tag == kFloatTag || tag == kBoolTag) {
      if (std::memcmp(pattern.data() + i, raw + j, 8) != 0) return false;
      i += 8;
      j += 8;
    }
  }
  return i == pattern.size() && j == size;
}

const char* supported_types() {
  return "float32, float16, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool, "
         "float8_e4m3fn, "
         "float8_e5m2, float8_e8m0fnu, float4_e2m1fn_x2";
}

/// Reads the arguments of one call by parameter.
class Reader {
 public:
  explicit Reader(const PySignature& s) : s_(s) {}

  /// One argument: appends to `key` and, if wanted, fills the front end's view of it.
  void read(size_t i, nb::handle value, std::string& key, sema::ArgSpec* spec) const {
    try {
      read_one(i, value, key, spec);
    } catch (Failure& f) {
      if (const auto source = s_.source.lock()) {
        f.diagnostic().message += " (declared at " + source->place_of(s_.params[i].name).text() + ")";
      }
      throw;
    }
  }

 private:
  void read_one(size_t i, nb::handle value, std::string& key, sema::ArgSpec* spec) const {
    const JitParam& p = s_.params[i];
    if (value.is(nb::handle(Py_Ellipsis))) return omitted(p, key, spec);
    if (nb::isinstance<Runtime>(value)) {
      key.push_back(kRuntimeTag);
      if (spec) spec->kind = sema::ArgSpec::Kind::kRuntime;
      return;
    }
    ArrayRef a;
    if (p.kind == JitParam::Kind::kScalar) return scalar(p, value, key, spec);
    if (read_array(value, a) && (p.kind == JitParam::Kind::kTensor || !a.shape.empty())) {
      return tensor(p, value, a, key, spec);
    }
    if (device(p, value, key, spec)) return;
    if (p.kind == JitParam::Kind::kAny) return scalar(p, value, key, spec);
    fail(ErrorClass::kTypeError,
         prefix() + "Parameter '" + p.name + "' is a tensor; got " + type_text(value) +
             ". Pass a torch.Tensor (host) or DeviceTensor (worker-resident). NumPy arrays and other "
             "CPU arrays are host tensors too" +
             as_array_hint(value));
  }

  std::string prefix() const { return "@pl.jit function '" + s_.function + "': "; }

  /// Signature mode, or an output left out: the annotation speaks.
  void omitted(const JitParam& p, std::string& key, sema::ArgSpec* spec) const {
    if (p.full) {
      put_tensor(key, p.dtype, p.shape);
    } else {
      key.push_back(kOmittedTag);
    }
    if (spec) spec->kind = sema::ArgSpec::Kind::kSignature;
  }

  void tensor(const JitParam& p, nb::handle value, ArrayRef& a, std::string& key, sema::ArgSpec* spec) const {
    if (!a.unusable.empty()) {
      fail(ErrorClass::kTypeError, prefix() + "Parameter '" + p.name + "' is a tensor; got " + a.unusable);
    }
    if (a.dtype == DType::kNone) {
      const std::string text = array_dtype_text(value);
      const bool swapped = !text.empty() && text[0] == '>';
      fail(ErrorClass::kTypeError,
           std::string(a.torch ? "Unsupported torch dtype " : "Unsupported dtype ") + text +
               " of parameter '" + p.name + "' of " + s_.function + "; supported: " + supported_types() +
               (swapped ? ". Its bytes are in the other order: pass x.astype(x.dtype.newbyteorder('='))"
                        : ""));
    }
    DType dtype = a.dtype;
    const DType want = p.dtype;
    // A signed array for an unsigned annotation, and carriers of types that the library lacks (04 DTY-2,
    // DTY-3).
    if (want != DType::kNone && want != dtype) {
      const bool same_width = dtype_bits(want) == dtype_bits(dtype) && dtype_bits(want) >= 16;
      const bool byte = dtype == DType::kUInt8 || dtype == DType::kInt8;
      const bool half = dtype == DType::kUInt16 || dtype == DType::kInt16;
      const bool small = is_float(want) && dtype_bits(want) <= 8;
      if (same_width && is_unsigned_int(want) && is_signed_int(dtype))
        dtype = want;
      else if (same_dtype(want, dtype))
        dtype = want;
      else if (byte && (small || want == DType::kBool || dtype_bits(want) == 4))
        dtype = want;
      else if (half && want == DType::kBf16)
        dtype = want;
    }
    if (dtype == DType::kFp4) {
      if (a.shape.empty() || a.shape.back() <= 0) {
        fail(ErrorClass::kTypeError,
             prefix() + "parameter '" + p.name +
                 "' is a packed 4-bit tensor: its last dimension must be positive (two values per byte)");
      }
      a.shape.back() *= 2;
    }
    put_tensor(key, dtype, a.shape);
    if (!spec) return;
    spec->kind = sema::ArgSpec::Kind::kTensor;
    spec->dtype = dtype;
    spec->shape = a.shape;
    spec->array_type = type_text(value);
  }

  /// DeviceTensor, StackedDeviceTensor (04 section 12): objects with data_ptr / shards, shape and dtype.
  bool device(const JitParam& p, nb::handle value, std::string& key, sema::ArgSpec* spec) const {
    const std::string_view type = Py_TYPE(value.ptr())->tp_name;
    if (type != "DeviceTensor" && type != "StackedDeviceTensor") return false;
    if (!nb::hasattr(value, "shape") || !nb::hasattr(value, "dtype")) return false;
    nb::object dtype = nb::module_::import_("pypto._core").attr("dtype_of")(value.attr("dtype"));
    if (!nb::isinstance<PyDType>(dtype)) return false;
    ArrayRef a;
    a.dtype = nb::cast<PyDType&>(dtype).dtype;
    for (nb::handle d : value.attr("shape")) a.shape.push_back(nb::cast<int64_t>(d));
    tensor(p, value, a, key, spec);
    return true;
  }

  void scalar(const JitParam& p, nb::handle value, std::string& key, sema::ArgSpec* spec) const {
    Number n;
    if (!read_number(value, n)) {
      const std::string kind =
          p.kind == JitParam::Kind::kAny
              ? "takes a tensor or a scalar"
              : "is a scalar (" + std::string(p.dtype == DType::kNone ? "number" : dtype_text(p.dtype)) + ")";
      fail(ErrorClass::kTypeError,
           prefix() + "Parameter '" + p.name + "' " + kind + "; got " + type_text(value) +
               (p.kind == JitParam::Kind::kAny
                    ? ". Pass an array, an int, a float or a bool"
                    : ". Pass an int, a float, a bool, a NumPy or ctypes scalar or a 0-dim array"));
    }
    using Kind = Number::Kind;
    key.push_back(n.kind == Kind::kFloat ? kFloatTag : n.kind == Kind::kBool ? kBoolTag : kIntTag);
    int64_t bits = n.i;
    if (n.kind == Kind::kFloat) std::memcpy(&bits, &n.f, 8);
    put64(key, bits);
    if (!spec) return;
    spec->kind = n.kind == Kind::kFloat  ? sema::ArgSpec::Kind::kFloat
                 : n.kind == Kind::kBool ? sema::ArgSpec::Kind::kBool
                                         : sema::ArgSpec::Kind::kInt;
    spec->int_value = n.i;
    spec->float_value = n.f;
  }

  const PySignature& s_;
};

std::string raw_key(const PySignature& s, nb::handle args) {
  std::string key;
  key.reserve(64);
  const Reader reader(s);
  const Py_ssize_t n = PyList_Check(args.ptr()) ? PyList_GET_SIZE(args.ptr()) : -1;
  PYPTO_CHECK(n == static_cast<Py_ssize_t>(s.params.size()), "one argument per parameter is wanted");
  for (Py_ssize_t i = 0; i < n; ++i)
    reader.read(static_cast<size_t>(i), PyList_GET_ITEM(args.ptr(), i), key, nullptr);
  return key;
}

/// The pattern of a specialisation: tensors as the entry's parameters have them now, scalars as given.
std::string pattern_of(const PySignature& s, nb::handle args, const ir::Function& entry) {
  std::string out;
  const Reader reader(s);
  for (size_t i = 0; i < s.params.size(); ++i) {
    const ir::TypePtr type = i < entry.params.size() ? entry.params[i]->type : nullptr;
    if (type && type->is_array_like()) {
      std::vector<int64_t> shape;
      for (const auto& d : type->shape) shape.push_back(d.is_const() ? d.value : -1);
      put_tensor(out, type->dtype, shape);
    } else {
      reader.read(i, PyList_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i)), out, nullptr);
    }
  }
  return out;
}

nb::object build_jit(nb::object function, const PySignature& signature, nb::object args,
                     const std::string& arch, nb::object options) {
  auto& source = nb::cast<PyFunctionSource&>(function);
  auto specialization = std::make_unique<PySpecialization>();
  specialization->options = options;
  BuildSession session(&specialization->guards);
  // Re-reads the function if its code was replaced, and guards it.
  specialization->guards.add_function(source.function);
  if (PyObject* code = PyFunction_GetCode(source.function.ptr());
      source.code.is_valid() && source.code.ptr() != code) {
    source.source->def.reset();
    source.code = nb::borrow(code);
  }
  source.source->ensure_loaded();
  std::vector<sema::ArgSpec> specs(signature.params.size());
  const Reader reader(signature);
  std::string ignored;
  for (size_t i = 0; i < specs.size(); ++i) {
    reader.read(i, PyList_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i)), ignored, &specs[i]);
  }
  sema::BuildOptions build;
  build.arch = arch_from_text(arch);
  ir::ModulePtr module;
  try {
    module = guarded([&] { return sema::build_jit(source.source, specs, build); });
  } catch (Failure& f) {
    // What a body says of extents of 0 comes from the argument.
    for (size_t i = 0; i < specs.size(); ++i) {
      if (std::find(specs[i].shape.begin(), specs[i].shape.end(), 0) == specs[i].shape.end()) continue;
      f.diagnostic().message += "; argument '" + signature.params[i].name + "' is empty: its shape is " +
                                shape_text(specs[i].shape);
    }
    throw;
  }
  ir::FunctionPtr entry = module->find(source.source->name);
  PYPTO_CHECK(entry, "the entry is not in its module");
  specialization->pattern = pattern_of(signature, args, *entry);
  issue_warnings(module->warnings);
  return nb::make_tuple(program_object(module), nb::cast(std::move(*specialization)));
}

int traverse(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x03090000
  Py_VISIT(Py_TYPE(self));
#endif
  if (!nb::inst_ready(self)) return 0;
  auto* s = nb::inst_ptr<PySpecialization>(self);
  Py_VISIT(s->options.ptr());
  return s->guards.traverse(visit, arg);
}

int clear(PyObject* self) {
  auto* s = nb::inst_ptr<PySpecialization>(self);
  s->guards.clear();
  s->options.reset();
  return 0;
}

PyType_Slot specialization_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                      {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                      {0, nullptr}};

}  // namespace

void register_jit(nb::module_& m) {
  nb::class_<Runtime>(m, "RuntimeMarker", "Class of pl.RUNTIME.")
      .def(nb::init<>())
      .def("__repr__", [](const Runtime&) { return "pl.RUNTIME"; });
  nb::class_<PySignature>(m, "Signature", "Parameters of a JIT function as argument reading needs them.")
      .def(
          "__init__",
          [](PySignature* self, const std::string& function, nb::list params, PyFunctionSource& source) {
            new (self) PySignature();
            self->function = function;
            self->source = source.source;
            for (nb::handle p : params) {
              // (name, kind, dtype or None, shape or None)
              JitParam out;
              out.name = nb::cast<std::string>(nb::object(p[nb::int_(0)]));
              const auto kind = nb::cast<std::string>(nb::object(p[nb::int_(1)]));
              out.kind = kind == "tensor"   ? JitParam::Kind::kTensor
                         : kind == "scalar" ? JitParam::Kind::kScalar
                                            : JitParam::Kind::kAny;
              nb::object dtype = p[nb::int_(2)], shape = p[nb::int_(3)];
              if (!dtype.is_none()) out.dtype = nb::cast<PyDType&>(dtype).dtype;
              if (!shape.is_none()) {
                out.full = true;
                out.shape = nb::cast<std::vector<int64_t>>(shape);
              }
              self->params.push_back(std::move(out));
            }
          },
          nb::arg("function"), nb::arg("params"), nb::arg("source"))
      .def(
          "key",
          [](const PySignature& s, nb::object args) {
            const std::string k = raw_key(s, args);
            return nb::bytes(k.data(), k.size());
          },
          nb::arg("args"),
          "What a list of arguments (one per parameter; `...` = take the annotation) says, as bytes.");
  nb::class_<PySpecialization>(m, "Specialization", nb::type_slots(specialization_slots),
                               nb::is_weak_referenceable(), "Key of one JIT specialisation.")
      .def(
          "holds", [](const PySpecialization& s) { return s.guards.hold(); },
          "Whether every guard still holds.")
      .def(
          "matches",
          [](const PySpecialization& s, nb::bytes raw, nb::object options) {
            return match(s.pattern, raw.c_str(), raw.size()) && s.options.equal(options);
          },
          nb::arg("raw"), nb::arg("options"))
      .def_prop_ro("guard_count", [](const PySpecialization& s) { return s.guards.size(); })
      .def("__repr__", [](const PySpecialization& s) {
        return "Specialization(" + std::to_string(s.guards.size()) + " guards)";
      });
  m.def("build_jit", &build_jit, nb::arg("function"), nb::arg("signature"), nb::arg("args"), nb::arg("arch"),
        nb::arg("options"));
}

}  // namespace pypto::bind
