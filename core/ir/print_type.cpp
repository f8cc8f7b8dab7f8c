// SPDX-License-Identifier: Apache-2.0
#include "core/ir/print_impl.h"

namespace pypto::ir::printing {

std::string Printer::dtype(DType d) const { return std::string("pl.") + dtype_info(d).member; }

std::string Printer::dim(const Dim& d) {
  if (d.is_const()) return std::to_string(d.value);
  if (!d.expr) return "-1";
  ++extents_;
  std::string text = expr(d.expr);
  --extents_;
  return text;
}

std::string Printer::dims(const std::vector<Dim>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + dim(list[i]);
  return out + "]";
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
  const auto dims_of = [this](const std::vector<Dim>& list) { return dims(list); };
  switch (t.kind) {
    case TypeKind::kNone:
      return "None";
    case TypeKind::kScalar:
      return "pl.Scalar[" + dtype(t.dtype) + "]";
    case TypeKind::kTensor: {
      std::string out = t.is_window() ? "pld.DistributedTensor[" : "pl.Tensor[";
      out += dims(t.shape) + ", " + dtype(t.dtype);
      if (t.tensor_view) {
        out += ", " + tensor_view_text(*t.tensor_view, dims_of);
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
      if ((full || options_.explicit_layout) && t.tile_view)
        out += ", " + tile_view_text(*t.tile_view, dims_of);
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
