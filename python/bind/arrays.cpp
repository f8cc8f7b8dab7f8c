// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "python/bind/args.h"

namespace pypto::bind {
namespace {

// DLPack's public C structures (version 0.8 and the versioned form of 1.0).
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
constexpr uint64_t kReadOnlyFlag = 1;

/// Element types by the names that torch, NumPy and ml_dtypes share.
DType dtype_from_name(std::string_view name) {
  static const std::unordered_map<std::string_view, DType> table = {
      {"float32", DType::kFp32},         {"float16", DType::kFp16},
      {"bfloat16", DType::kBf16},        {"int8", DType::kInt8},
      {"int16", DType::kInt16},          {"int32", DType::kInt32},
      {"int64", DType::kInt64},          {"uint8", DType::kUInt8},
      {"uint16", DType::kUInt16},        {"uint32", DType::kUInt32},
      {"uint64", DType::kUInt64},        {"bool", DType::kBool},
      {"bool_", DType::kBool},           {"float8_e4m3fn", DType::kFp8E4M3FN},
      {"float8_e5m2", DType::kFp8E5M2},  {"float8_e8m0fnu", DType::kFp8E8M0},
      {"float4_e2m1fn_x2", DType::kFp4},
  };
  const auto it = table.find(name);
  return it == table.end() ? DType::kNone : it->second;
}

DType dtype_from_format(const char* format, Py_ssize_t itemsize) {
  if (!format) return DType::kUInt8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == '\0' || format[1] != '\0') return DType::kNone;
  switch (format[0]) {
    case '?':
      return DType::kBool;
    case 'e':
      return DType::kFp16;
    case 'f':
      return DType::kFp32;
    case 'b':
      return DType::kInt8;
    case 'B':
      return DType::kUInt8;
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return itemsize == 2   ? DType::kInt16
             : itemsize == 4 ? DType::kInt32
             : itemsize == 8 ? DType::kInt64
                             : DType::kNone;
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return itemsize == 2   ? DType::kUInt16
             : itemsize == 4 ? DType::kUInt32
             : itemsize == 8 ? DType::kUInt64
                             : DType::kNone;
    default:
      return DType::kNone;
  }
}

PyObject* loaded_module(const char* name) { return PyDict_GetItemString(PyImport_GetModuleDict(), name); }

/// torch.Tensor once torch has been imported; never imports it.
PyObject* torch_tensor_type() {
  static PyObject* type = nullptr;
  if (!type) {
    PyObject* torch = loaded_module("torch");
    if (!torch) return nullptr;
    type = PyObject_GetAttrString(torch, "Tensor");
    if (!type) PyErr_Clear();
  }
  return type;
}

/// Interned names of the attributes that the warm path reads.
struct Names {
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* is_contiguous = PyUnicode_InternFromString("is_contiguous");
  PyObject* is_cpu = PyUnicode_InternFromString("is_cpu");
  PyObject* interface = PyUnicode_InternFromString("__array_interface__");
  PyObject* is_neg = PyUnicode_InternFromString("is_neg");
  PyObject* dlpack = PyUnicode_InternFromString("__dlpack__");
};
const Names& names() {
  static const Names* n = new Names;
  return *n;
}

nb::object get(nb::handle o, PyObject* name) {
  PyObject* v = PyObject_GetAttr(o.ptr(), name);
  if (!v) PyErr_Clear();
  return v ? nb::steal(v) : nb::object();
}

bool shape_of(nb::handle sequence, std::vector<int64_t>& out) {
  PyObject* fast = PySequence_Fast(sequence.ptr(), "");
  if (!fast) {
    PyErr_Clear();
    return false;
  }
  nb::object own = nb::steal(fast);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
  out.resize(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    out[static_cast<size_t>(i)] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}

DType torch_dtype(nb::handle dtype) {
  static std::unordered_map<PyObject*, DType>* cache = new std::unordered_map<PyObject*, DType>;
  const auto it = cache->find(dtype.ptr());
  if (it != cache->end()) return it->second;
  const std::string text = nb::cast<std::string>(nb::str(dtype));
  const DType d = dtype_from_name(text.rfind("torch.", 0) == 0 ? std::string_view(text).substr(6)
                                                               : std::string_view(text));
  dtype.inc_ref();  // dtype objects are singletons; the key must stay theirs
  (*cache)[dtype.ptr()] = d;
  return d;
}

bool is_true(nb::handle o, PyObject* method) {
  nb::object answer = nb::steal(PyObject_CallMethodNoArgs(o.ptr(), method));
  if (!answer.is_valid()) PyErr_Clear();
  return answer.ptr() == Py_True;
}

std::string attribute_text(nb::handle o, const char* name) {
  nb::object v = nb::steal(PyObject_GetAttrString(o.ptr(), name));
  if (!v.is_valid()) PyErr_Clear();
  return v.is_valid() ? nb::cast<std::string>(nb::str(v)) : std::string();
}

/// A tensor whose elements do not lie in one piece of host memory.
std::string no_memory(nb::handle o) {
  const std::string layout = attribute_text(o, "layout");
  if (!layout.empty() && layout != "torch.strided") {
    return "a tensor of layout " + layout + ", whose elements are not stored one by one. Pass x.to_dense()";
  }
  if (attribute_text(o, "is_nested") == "True") {
    return "a nested tensor, which has no one shape. Pass x.to_padded_tensor(0)";
  }
  return "a tensor without memory of its own (" + type_text(o) +
         " under tracing, vmap or a fake mode). Call outside of them, with a tensor that holds data";
}

bool read_torch(nb::handle o, ArrayRef& out) {
  nb::object is_cpu = get(o, names().is_cpu);
  out.torch = true;
  out.cpu = is_cpu.is_valid() && is_cpu.ptr() == Py_True;
  nb::object dtype = get(o, names().dtype), shape = get(o, names().shape);
  if (!dtype.is_valid()) return false;
  out.dtype = torch_dtype(dtype);
  if (!shape.is_valid() || !shape_of(shape, out.shape)) {
    out.unusable = no_memory(o);
    return true;
  }
  out.packed_fp4 = out.dtype == DType::kFp4;
  if (!out.cpu) return true;
  nb::object contiguous = nb::steal(PyObject_CallMethodNoArgs(o.ptr(), names().is_contiguous));
  nb::object pointer = nb::steal(PyObject_CallMethodNoArgs(o.ptr(), names().data_ptr));
  const bool known = contiguous.is_valid() && pointer.is_valid() && PyLong_Check(pointer.ptr());
  if (known) {
    out.contiguous = contiguous.ptr() == Py_True;
    out.data = reinterpret_cast<uint8_t*>(PyLong_AsSize_t(pointer.ptr()));
  }
  PyErr_Clear();
  const bool empty = std::find(out.shape.begin(), out.shape.end(), 0) != out.shape.end();
  if (!known || (!out.data && !empty)) {
    out.unusable = no_memory(o);
  } else if (is_true(o, names().is_neg)) {
    out.unusable = "a view whose elements are negated when they are read (is_neg()). Pass x.resolve_neg()";
  }
  return true;
}

/// numpy.ma arrays: their mask is not part of the memory.
bool is_masked(nb::handle o) {
  PyObject* numpy = loaded_module("numpy");
  if (!numpy) return false;
  static PyObject* array_type = nullptr;
  if (!array_type) array_type = PyObject_GetAttrString(numpy, "ndarray");
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(o.ptr()));
  if (!array_type || type == array_type) return false;
  PyObject* masked = loaded_module("numpy.ma");
  nb::object cls = masked ? nb::steal(PyObject_GetAttrString(masked, "MaskedArray")) : nb::object();
  if (!cls.is_valid()) PyErr_Clear();
  return cls.is_valid() && PyObject_TypeCheck(o.ptr(), reinterpret_cast<PyTypeObject*>(cls.ptr()));
}

bool packed(const std::vector<int64_t>& shape, const Py_ssize_t* strides, int64_t itemsize) {
  int64_t expected = itemsize;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool read_buffer(nb::handle o, ArrayRef& out) {
  Py_buffer view;
  if (PyObject_GetBuffer(o.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  out.data = static_cast<uint8_t*>(view.buf);
  out.dtype = dtype_from_format(view.format, view.itemsize);
  out.shape.assign(view.shape, view.shape + view.ndim);
  out.writable = !view.readonly;
  out.contiguous = !view.strides || packed(out.shape, view.strides, view.itemsize);
  PyBuffer_Release(&view);
  return true;
}

/// Arrays whose elements the buffer protocol cannot describe (ml_dtypes).
bool read_interface(nb::handle o, ArrayRef& out) {
  nb::object interface = get(o, names().interface);
  if (!interface.is_valid() || !PyDict_Check(interface.ptr())) return false;
  nb::dict d = nb::borrow<nb::dict>(interface);
  if (!d.contains("data") || !d.contains("shape")) return false;
  nb::object data = d["data"];
  if (!PyTuple_Check(data.ptr())) return false;
  out.data = reinterpret_cast<uint8_t*>(nb::cast<uintptr_t>(nb::object(data[0])));
  out.writable = !nb::cast<bool>(nb::object(data[1]));
  if (!shape_of(nb::object(d["shape"]), out.shape)) return false;
  nb::object dtype = get(o, names().dtype);
  int64_t itemsize = 0;
  if (dtype.is_valid()) {
    out.dtype = dtype_from_name(nb::cast<std::string>(nb::str(dtype.attr("name"))));
    itemsize = nb::cast<int64_t>(dtype.attr("itemsize"));
  } else if (d.contains("typestr")) {  // "<f4"
    const std::string text = nb::cast<std::string>(nb::str(nb::object(d["typestr"])));
    itemsize = text.size() > 2 ? std::atoi(text.c_str() + 2) : 0;
    if (itemsize == 0) return false;
    const char* kind = text[0] == '>'   ? ""
                       : text[1] == 'f' ? "float"
                       : text[1] == 'i' ? "int"
                       : text[1] == 'u' ? "uint"
                                        : "";
    out.dtype = text.substr(1) == "b1" ? DType::kBool : dtype_from_name(kind + std::to_string(8 * itemsize));
  }
  if (d.contains("strides") && !nb::object(d["strides"]).is_none()) {
    std::vector<int64_t> strides;
    if (!shape_of(nb::object(d["strides"]), strides)) return false;
    std::vector<Py_ssize_t> s(strides.begin(), strides.end());
    out.contiguous = packed(out.shape, s.data(), itemsize);
  }
  return true;
}

DType dlpack_dtype(const DLDataType& t) {
  if (t.lanes != 1) return DType::kNone;
  switch (t.code) {
    case 0:
      return t.bits == 8    ? DType::kInt8
             : t.bits == 16 ? DType::kInt16
             : t.bits == 32 ? DType::kInt32
             : t.bits == 64 ? DType::kInt64
                            : DType::kNone;
    case 1:
      return t.bits == 8    ? DType::kUInt8
             : t.bits == 16 ? DType::kUInt16
             : t.bits == 32 ? DType::kUInt32
             : t.bits == 64 ? DType::kUInt64
                            : DType::kNone;
    case 2:
      return t.bits == 16 ? DType::kFp16 : t.bits == 32 ? DType::kFp32 : DType::kNone;
    case 4:
      return t.bits == 16 ? DType::kBf16 : DType::kNone;
    case 6:
      return DType::kBool;
    case 10:
      return DType::kFp8E4M3FN;
    case 12:
      return DType::kFp8E5M2;
    case 14:
      return DType::kFp8E8M0;
    default:
      return DType::kNone;
  }
}

bool read_dlpack(nb::handle o, ArrayRef& out) {
  nb::object method = get(o, names().dlpack);
  if (!method.is_valid()) return false;
  nb::object capsule = nb::steal(PyObject_CallNoArgs(method.ptr()));
  if (!capsule.is_valid() || !PyCapsule_CheckExact(capsule.ptr())) {
    PyErr_Clear();
    return false;
  }
  const DLTensor* t = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    t = &static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))->dl_tensor;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto* m =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    t = &m->dl_tensor;
    out.writable = !(m->flags & kReadOnlyFlag);
  }
  if (!t) return false;
  out.cpu = t->device.device_type == 1 || t->device.device_type == 3;  // kDLCPU, kDLCUDAHost
  out.data = static_cast<uint8_t*>(t->data) + t->byte_offset;
  out.dtype = dlpack_dtype(t->dtype);
  out.shape.assign(t->shape, t->shape + t->ndim);
  if (t->strides) {
    std::vector<Py_ssize_t> s(t->strides, t->strides + t->ndim);
    out.contiguous = packed(out.shape, s.data(), 1);
  }
  out.keep = capsule;  // the memory stays valid as long as the capsule is not consumed
  return true;
}

}  // namespace

bool read_array(nb::handle o, ArrayRef& out) {
  PyObject* p = o.ptr();
  if (p == Py_None || PyLong_Check(p) || PyFloat_Check(p) || PyUnicode_Check(p) || PyBytes_Check(p))
    return false;
  if (PyObject* torch = torch_tensor_type();
      torch && PyObject_TypeCheck(p, reinterpret_cast<PyTypeObject*>(torch))) {
    return read_torch(o, out);
  }
  if (!(PyObject_CheckBuffer(p) && read_buffer(o, out)) && !read_interface(o, out) && !read_dlpack(o, out))
    return false;
  if (is_masked(o)) {
    out.unusable =
        "a masked array, and its mask would be ignored. Pass x.filled(value), or x.data if every element "
        "counts";
  }
  return true;
}

std::string as_array_hint(nb::handle o) {
  if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) return "; np.array(x, dtype=...) makes one of a list";
  return nb::hasattr(o, "toarray")     ? "; x.toarray() makes one"
         : nb::hasattr(o, "__array__") ? "; np.asarray(x) makes one"
                                       : "";
}

std::string array_dtype_text(nb::handle o) {
  nb::object dtype = get(o, names().dtype);
  if (!dtype.is_valid()) {
    ArrayRef a;
    return read_array(o, a) && a.dtype != DType::kNone ? std::string(dtype_text(a.dtype)) : "unknown";
  }
  return nb::cast<std::string>(nb::str(dtype));
}

std::string array_device(nb::handle o) {
  nb::object device = nb::steal(PyObject_GetAttrString(o.ptr(), "device"));
  if (!device.is_valid()) {
    PyErr_Clear();
    return "cpu";
  }
  return nb::cast<std::string>(nb::str(device));
}

bool read_number(nb::handle o, Number& out) {
  PyObject* p = o.ptr();
  if (PyBool_Check(p)) {
    out.kind = Number::Kind::kBool;
    out.i = p == Py_True;
    out.f = static_cast<double>(out.i);
    return true;
  }
  if (PyLong_Check(p)) {
    int overflow = 0;
    out.i = PyLong_AsLongLongAndOverflow(p, &overflow);
    if (overflow) {
      // Values of UINT64 above 2^63 keep their bits.
      out.big = true;
      const unsigned long long u = PyLong_AsUnsignedLongLong(p);
      if (PyErr_Occurred()) {
        PyErr_Clear();
      } else {
        out.i = static_cast<int64_t>(u);
      }
    }
    out.f = PyLong_AsDouble(p);
    if (PyErr_Occurred()) PyErr_Clear();
    return true;
  }
  if (PyFloat_Check(p)) {
    out.kind = Number::Kind::kFloat;
    out.f = PyFloat_AS_DOUBLE(p);
    return true;
  }
  const char* type_name = Py_TYPE(p)->tp_name;
  // ctypes simple values: an instance of a class with `_type_` and a `value`.
  if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(p)), "_type_") &&
      PyObject_HasAttrString(p, "value") && !PyObject_HasAttrString(p, "dtype")) {
    nb::object value = o.attr("value");
    Number inner;
    if (!read_number(value, inner)) return false;
    out = inner;
    const char* dot = std::strrchr(type_name, '.');
    out.ctype = dot ? dot + 1 : type_name;
    // The platform's aliases by width.
    nb::object size = nb::module_::import_("ctypes").attr("sizeof")(o);
    const std::string bits = std::to_string(8 * nb::cast<int>(size));
    static const std::unordered_map<std::string, bool> integers = {
        {"c_byte", true}, {"c_short", true}, {"c_int", true},   {"c_long", true},  {"c_longlong", true},
        {"c_int8", true}, {"c_int16", true}, {"c_int32", true}, {"c_int64", true}, {"c_ssize_t", true}};
    static const std::unordered_map<std::string, bool> naturals = {
        {"c_ubyte", true}, {"c_ushort", true}, {"c_uint", true},   {"c_ulong", true},  {"c_ulonglong", true},
        {"c_uint8", true}, {"c_uint16", true}, {"c_uint32", true}, {"c_uint64", true}, {"c_size_t", true}};
    if (integers.count(out.ctype)) out.ctype = "c_int" + bits;
    if (naturals.count(out.ctype)) out.ctype = "c_uint" + bits;
    return true;
  }
  // NumPy scalars and 0-dim arrays of any library.
  ArrayRef a;
  if (!read_array(o, a) || !a.shape.empty()) return false;
  nb::object item = nb::steal(PyObject_CallMethod(p, "item", nullptr));
  if (!item.is_valid()) {
    PyErr_Clear();
    return false;
  }
  Number inner;
  if (item.is(o)) return false;
  if (!PyLong_Check(item.ptr()) && !PyFloat_Check(item.ptr())) {
    // ml_dtypes scalars convert through float.
    PyObject* f = PyNumber_Float(item.ptr());
    if (!f) {
      PyErr_Clear();
      return false;
    }
    item = nb::steal(f);
  }
  if (!read_number(item, inner)) return false;
  out = inner;
  out.from_array = true;
  return true;
}

std::string type_text(nb::handle o) {
  nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o.ptr())));
  std::string module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  const std::string name = nb::cast<std::string>(nb::str(type.attr("__qualname__")));
  if (module == "builtins") return name;
  if (module.rfind("torch", 0) == 0) module = "torch";
  if (module.rfind("pypto.", 0) == 0) return name;
  return module + "." + name;
}

nb::object array_view(uint8_t* data, DType dtype, const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& stride, nb::object keep, int torch) {
  const bool use_torch = torch < 0 ? loaded_module("torch") != nullptr : torch != 0;
  nb::object make = nb::module_::import_("pypto._arrays").attr(use_torch ? "torch_view" : "numpy_view");
  int64_t extent = 1;
  bool empty = false;
  std::vector<int64_t> strides = stride;
  if (strides.empty()) {
    strides.resize(shape.size());
    int64_t s = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      strides[i] = s;
      s *= shape[i];
    }
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    empty = empty || shape[i] == 0;
    extent += (shape[i] - 1) * strides[i];
  }
  const int64_t bytes = empty ? 0 : extent * dtype_bytes(dtype);
  nb::object memory =
      nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(empty ? nullptr : data), bytes, PyBUF_WRITE));
  if (empty || !memory.is_valid()) {
    PyErr_Clear();
    memory = nb::steal(PyByteArray_FromStringAndSize(nullptr, 0));
  }
  return make(memory, dtype_object(dtype), nb::cast(shape), nb::cast(strides), keep);
}

namespace {

nb::object dtype_of(nb::handle value) {
  if (nb::isinstance<PyDType>(value)) return nb::borrow(value);
  std::string text;
  if (PyUnicode_Check(value.ptr())) {
    text = nb::cast<std::string>(value);
  } else if (PyObject* torch = loaded_module("torch");
             torch && std::string_view(Py_TYPE(value.ptr())->tp_name) == "torch.dtype") {
    text = nb::cast<std::string>(nb::str(value));
  } else {
    try {
      text = nb::cast<std::string>(nb::str(nb::module_::import_("numpy").attr("dtype")(value).attr("name")));
    } catch (nb::python_error& e) {
      pass_on(e);
      return nb::none();
    }
  }
  if (text.rfind("torch.", 0) == 0) text = text.substr(6);
  if (const DType d = dtype_from_name(text); d != DType::kNone) return dtype_object(d);
  if (const auto d = dtype_from_text(text)) return dtype_object(*d);
  return nb::none();
}

}  // namespace

void register_arrays(nb::module_& m) {
  m.def(
      "array_info",
      [](nb::object o) -> nb::object {
        ArrayRef a;
        if (!read_array(o, a)) return nb::none();
        if (!a.unusable.empty()) fail(ErrorClass::kTypeError, "Got " + a.unusable);
        return nb::make_tuple(
            reinterpret_cast<uintptr_t>(a.data), a.dtype == DType::kNone ? nb::none() : dtype_object(a.dtype),
            nb::tuple(nb::cast(a.shape)), a.contiguous, a.writable, type_text(o), array_device(o));
      },
      nb::arg("array"));
  m.def("array_dtype_text", [](nb::object o) { return array_dtype_text(o); });
  m.def("dtype_of", [](nb::object o) { return dtype_of(o); }, nb::arg("value").none());
  m.def(
      "array_view",
      [](uintptr_t pointer, PyDType dtype, const std::vector<int64_t>& shape, nb::object keep,
         nb::object torch) {
        return array_view(reinterpret_cast<uint8_t*>(pointer), dtype.dtype, shape, {}, keep,
                          torch.is_none()         ? -1
                          : nb::cast<bool>(torch) ? 1
                                                  : 0);
      },
      nb::arg("pointer"), nb::arg("dtype"), nb::arg("shape"), nb::kw_only(),
      nb::arg("keep").none() = nb::none(), nb::arg("torch").none() = nb::none());
  m.def(
      "memory_copy",
      [](uintptr_t dst, uintptr_t src, size_t n) {
        nb::gil_scoped_release release;
        std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), n);
      },
      nb::arg("dst"), nb::arg("src"), nb::arg("nbytes"));
  m.def("memory_zero", [](uintptr_t dst, size_t n) { std::memset(reinterpret_cast<void*>(dst), 0, n); });
}

}  // namespace pypto::bind
