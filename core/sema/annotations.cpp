// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Type annotations (01 L-25 - L-28).
namespace pypto::sema {

using syn::ExprKind;

namespace {

const char* use_word(FunctionBuilder::AnnotationUse use) {
  return use == FunctionBuilder::AnnotationUse::kReturn ? "return" : "parameter";
}

}  // namespace

namespace {

bool is_handle_name(const std::string& n) {
  return n == "pl.PrefetchAsyncContext" || n == "pl.PrefetchAsyncContextType" || n == "pl.AsyncEvent" ||
         n == "pl.AsyncEventType" || n == "pl.AsyncSession" || n == "pl.AsyncSessionType" ||
         n == "pld.CommCtx" || n == "pld.CommCtxType" || n == "pl.Ptr" || n == "pl.PtrType" ||
         n == "pl.MemRefType" || n == "pl.MemRef";
}

TypePtr handle_type(const std::string& n) {
  if (n.find("Prefetch") != std::string::npos) return ir::simple_type(ir::TypeKind::kPrefetchContext);
  if (n.find("AsyncEvent") != std::string::npos) return ir::simple_type(ir::TypeKind::kAsyncEvent);
  if (n.find("AsyncSession") != std::string::npos) return ir::simple_type(ir::TypeKind::kAsyncSession);
  if (n.find("CommCtx") != std::string::npos) return ir::simple_type(ir::TypeKind::kCommCtx);
  return ir::simple_type(ir::TypeKind::kPtr);
}

}  // namespace

FunctionBuilder::Annotation FunctionBuilder::annotation(const syn::Expr& e, AnnotationUse use) {
  Depth reading(annotations_);
  Annotation out;
  const bool jit = use == AnnotationUse::kJitParam || use == AnnotationUse::kInlineParam;
  if (e.kind == ExprKind::kString) {
    syn::ExprPtr tree;
    for (Frame* f = frame_; f && !tree; f = f->parent) {
      if (f->host) tree = f->host->parse_annotation(e.text, e.span);
    }
    if (!tree) {
      if (use == AnnotationUse::kAssign) {
        out.ignored = true;
        return out;
      }
      reject(ErrorClass::kParserTypeError, e.span, "Unsupported type annotation: '" + e.text + "'");
    }
    if (use == AnnotationUse::kAssign) {
      try {
        return annotation(*tree, use);
      } catch (const Failure&) {
        out.ignored = true;
        return out;
      }
    }
    return annotation(*tree, use);
  }
  if (e.kind == ExprKind::kNone) {
    out.is_none = true;
    return out;
  }
  const auto unsupported = [&]() {
    reject(ErrorClass::kParserTypeError, e.span, "Unsupported type annotation: " + source_text(e),
           "annotations are pl.Tensor[...], pl.Tile[...], pl.Scalar[...], pl.Array[...], "
           "pld.DistributedTensor[...], "
           "pl.Out[...], pl.InOut[...] and, for results, tuple[...]");
  };
  // The constructor and its arguments, in subscript or call spelling.
  const syn::Expr* head = &e;
  std::vector<const syn::Expr*> args;
  bool applied = false;
  if (e.kind == ExprKind::kSubscript) {
    head = e.items[0].get();
    applied = true;
    if (e.items[1]->kind == ExprKind::kTuple) {
      for (const auto& i : e.items[1]->items) args.push_back(i.get());
    } else {
      args.push_back(e.items[1].get());
    }
  } else if (e.kind == ExprKind::kCall) {
    head = e.items[0].get();
    applied = true;
    for (size_t i = 1; i < e.items.size(); ++i) args.push_back(e.items[i].get());
  }
  // A Python number type says no more than no annotation (superset of 01 L-25).
  if (jit && !applied && e.kind == ExprKind::kName &&
      (e.text == "int" || e.text == "float" || e.text == "bool" || e.text == "str") &&
      !find_binding(e.text)) {
    out.ignored = true;
    return out;
  }
  HostValue h = resolve_host(*head);
  std::string name = h.kind == HostKind::kConstruct ? h.text : "";
  if (h.kind == HostKind::kOpaque && head->kind == ExprKind::kName && head->text == "tuple") name = "tuple";
  if (head->kind == ExprKind::kName && head->text == "tuple" && !find_binding("tuple")) name = "tuple";
  if (h.kind == HostKind::kDType && !applied) {
    if (!jit && use != AnnotationUse::kReturn) unsupported();
    out.type = ir::scalar_type(h.dtype);
    return out;
  }
  if (h.kind == HostKind::kNone && !applied) {
    out.is_none = true;
    return out;
  }
  // A name bound to a complete annotation (pl.TaskId, Vec = pl.Tensor[[64], pl.FP32]).
  if (h.kind == HostKind::kOpaque && !applied && name.empty()) {
    const HostValue shape = frame_host()->attribute(h, "__pypto_annotation__");
    if (shape.kind == HostKind::kString) {
      if (syn::ExprPtr tree = frame_host()->parse_annotation(shape.text, e.span))
        return annotation(*tree, use);
    }
  }
  if (name == "pl.TaskId") {
    out.type = ir::scalar_type(DType::kTaskId);
    return out;
  }
  if (name == "pl.Out" || name == "pl.InOut" || name == "pl.In") {
    if (args.size() != 1) unsupported();
    out = annotation(*args[0], use);
    if (out.is_tuple) {
      reject(ErrorClass::kParserTypeError, e.span, "Parameter type cannot be a tuple");
    }
    if (out.type && !out.type->is_tensor()) {
      if (out.type->is_scalar()) {
        reject(ErrorClass::kParserTypeError, e.span,
               "Scalar parameters cannot have InOut direction (got " + name + ")",
               "return the value through a tensor");
      }
      reject(ErrorClass::kParserTypeError, e.span,
             "Only tensor parameters can have a direction, got " + ir::type_text(*out.type, true));
    }
    out.has_direction = true;
    out.direction = name == "pl.Out"     ? ir::ParamDirection::kOut
                    : name == "pl.InOut" ? ir::ParamDirection::kInOut
                                         : ir::ParamDirection::kIn;
    return out;
  }
  if (name == "tuple" || name == "pl.Tuple") {
    if (use == AnnotationUse::kParam || use == AnnotationUse::kJitParam) {
      reject(ErrorClass::kParserTypeError, e.span, "Parameter type cannot be a tuple",
             "use one parameter per element");
    }
    out.is_tuple = true;
    if (args.size() == 1 && args[0]->kind == ExprKind::kList) {
      const syn::Expr* list = args[0];
      args.clear();
      for (const auto& i : list->items) args.push_back(i.get());
    }
    for (const auto* a : args) {
      if (a->kind == ExprKind::kEllipsis) unsupported();
      Annotation part = annotation(*a, use);
      if (part.is_tuple) {
        reject(ErrorClass::kParserTypeError, a->span, "Nested tuple types are not supported");
      }
      out.elements.push_back(std::move(part));
    }
    return out;
  }
  if (is_handle_name(name)) {
    if (use == AnnotationUse::kAssign) {
      out.ignored = true;
      return out;
    }
    out.type = handle_type(name);
    return out;
  }
  if (name == "pl.Scalar") {
    if (!applied) {
      reject(ErrorClass::kParserTypeError, e.span, "Incomplete type annotation: pl.Scalar needs a dtype",
             "write pl.Scalar[pl.INT32]");
    }
    if (args.size() != 1) unsupported();
    out.type = ir::scalar_type(read_dtype(*args[0]));
    return out;
  }
  if (name == "pl.Array") {
    if (!applied || args.size() != 2) {
      reject(ErrorClass::kParserTypeError, e.span, "Incomplete type annotation: write pl.Array[N, dtype]");
    }
    const auto n = is_static(*args[0]) || args[0]->kind == ExprKind::kInt ? try_constant_int(eval(*args[0]))
                                                                          : std::nullopt;
    if (!n) {
      reject(ErrorClass::kParserTypeError, args[0]->span,
             "Array extent must be an int literal or compile-time constant, got " + source_text(*args[0]));
    }
    if (*n < 1) reject(ErrorClass::kParserTypeError, args[0]->span, "Array extent must be >= 1");
    const DType d = read_dtype(*args[1]);
    if (!is_int(d) && d != DType::kBool && d != DType::kTaskId) {
      reject(ErrorClass::kParserTypeError, args[1]->span,
             "Array dtype must be an integer, BOOL or TASK_ID, got " + std::string(dtype_text(d)));
    }
    if (use == AnnotationUse::kParam || use == AnnotationUse::kReturn) {
      reject(ErrorClass::kParserTypeError, e.span,
             std::string("pl.Array as a ") + use_word(use) + " type: arrays cannot cross function boundaries",
             "pass the elements in a tensor, or use an inline helper");
    }
    out.type = ir::array_type(*n, d);
    return out;
  }
  const bool window = name == "pld.DistributedTensor";
  if (name == "pl.Tensor" || window) {
    out.window = window;
    if (!applied) {
      if (!jit && !(use == AnnotationUse::kReturn && jit_) && use != AnnotationUse::kAssign) {
        reject(ErrorClass::kParserTypeError, e.span,
               "Incomplete type annotation: " + source_text(e) + " needs a shape and a dtype",
               "write " + source_text(e) + "[[d0, d1], pl.FP32]");
      }
      out.bare_tensor = true;
      return out;
    }
    if (args.size() < 2 || args.size() > 5) {
      reject(ErrorClass::kParserTypeError, e.span,
             "Incomplete type annotation: " + source_text(e) + " needs a shape and a dtype");
    }
    auto t = std::make_shared<ir::Type>(
        *ir::tensor_type(read_shape(*args[0], use), read_dtype(*args[1]),
                         window ? ir::TensorPlace::kWindow : ir::TensorPlace::kGlobal));
    bool has_layout = false;
    for (size_t i = 2; i < args.size(); ++i) {
      const syn::Expr& x = *args[i];
      if (x.kind == ExprKind::kString && window && x.text.rfind("window_buffer=", 0) == 0) continue;
      if (const auto m = read_memref(x)) {
        if (t->memref) reject(ErrorClass::kParserTypeError, x.span, "Tensor takes at most one MemRef");
        t->memref = m;
        continue;
      }
      std::shared_ptr<const ir::TensorView> view;
      if (x.kind == ExprKind::kCall) {
        const Callee c = resolve_callee(*x.items[0]);
        if (c.kind == Callee::Kind::kConstruct && c.name == "pl.TensorView") view = read_tensor_view(x, use);
      } else {
        const HostValue v = resolve_host(x);
        if (v.kind == HostKind::kTensorView) {
          // Symbols of the view are this function's.
          auto copy = std::make_shared<ir::TensorView>(*v.tensor_view);
          for (auto* dims : {&copy->valid_shape, &copy->stride}) {
            for (auto& d : *dims) {
              if (d.expr) d = ir::Dim(symbolic(d.expr, x.span));
            }
          }
          view = copy;
        }
        if (v.kind == HostKind::kEnum && v.text.rfind("TensorLayout.", 0) == 0) {
          const auto layout = static_cast<ir::TensorLayout>(v.int_value);
          if (layout == ir::TensorLayout::kDN) {
            reject(ErrorClass::kParserTypeError, x.span, "pl.Tensor[..., pl.DN] is not supported",
                   "annotate the source shape and use pl.transpose, or give "
                   "pl.TensorView(stride=..., layout=pl.TensorLayout.DN)");
          }
          if (has_layout) reject(ErrorClass::kParserTypeError, x.span, "Tensor takes at most one layout");
          has_layout = true;
          t->layout = layout;
          continue;
        }
      }
      if (!view) {
        reject(ErrorClass::kParserTypeError, x.span, "Unknown layout: " + source_text(x),
               "layouts are pl.ND, pl.NZ, pl.MX_A_ZZ, pl.MX_B_NN, or a pl.TensorView(...)");
      }
      if (t->tensor_view) reject(ErrorClass::kParserTypeError, x.span, "Tensor takes at most one TensorView");
      t->tensor_view = view;
      t->layout = view->layout;
      t->pad = view->pad;
      if (!view->valid_shape.empty()) t->valid = view->valid_shape;
    }
    out.type = t;
    return out;
  }
  if (name == "pl.Tile") {
    if (!applied || args.size() < 2) {
      reject(ErrorClass::kParserTypeError, e.span,
             "Incomplete type annotation: pl.Tile needs a shape and a dtype");
    }
    if (use == AnnotationUse::kReturn && !jit_ && fn && fn->type != ir::FunctionType::kInline) {
      // Kernels cannot return tiles; the return statement says so with the value at hand.
    }
    auto t = std::make_shared<ir::Type>(*ir::tile_type(read_shape(*args[0], use), read_dtype(*args[1])));
    for (size_t i = 2; i < args.size(); ++i) {
      const syn::Expr& x = *args[i];
      if (const auto m = read_memref(x)) {
        if (t->memref) reject(ErrorClass::kParserTypeError, x.span, "Tile takes at most one MemRef");
        t->memref = m;
        continue;
      }
      if (x.kind == ExprKind::kCall) {
        const Callee c = resolve_callee(*x.items[0]);
        if (c.kind == Callee::Kind::kConstruct && c.name == "pl.TileView") {
          if (t->tile_view) reject(ErrorClass::kParserTypeError, x.span, "Tile takes at most one TileView");
          t->tile_view = read_tile_view(x, use);
          continue;
        }
      }
      const HostValue v = resolve_host(x);
      if (v.kind == HostKind::kTileView) {
        if (t->tile_view) reject(ErrorClass::kParserTypeError, x.span, "Tile takes at most one TileView");
        auto copy = std::make_shared<ir::TileView>(*v.tile_view);
        for (auto* dims : {&copy->valid_shape, &copy->stride, &copy->start_offset}) {
          for (auto& d : *dims) {
            if (d.expr) d = ir::Dim(symbolic(d.expr, x.span));
          }
        }
        t->tile_view = copy;
        continue;
      }
      if (v.kind == HostKind::kEnum &&
          (v.text.rfind("TensorLayout.", 0) == 0 || v.text.rfind("TileLayout.", 0) == 0)) {
        reject(ErrorClass::kParserTypeError, x.span,
               "Tile does not accept layouts (got " + source_text(x) + ")",
               "use pl.TileView(blayout=..., slayout=...)");
      }
      if (v.kind == HostKind::kEnum && v.text.rfind("MemorySpace.", 0) == 0) {
        if (t->space != ir::MemorySpace::kUnset) {
          reject(ErrorClass::kParserTypeError, x.span, "Tile takes at most one memory space");
        }
        t->space = static_cast<ir::MemorySpace>(v.int_value);
        continue;
      }
      reject(ErrorClass::kParserTypeError, x.span, "Unknown memory space: " + source_text(x),
             "memory spaces are pl.Mem.Vec, Mat, Left, Right, Acc, Bias");
    }
    if (t->memref && t->space == ir::MemorySpace::kUnset) {
      reject(ErrorClass::kParserTypeError, e.span,
             "A Tile with a MemRef must also specify explicit memory space",
             "add pl.Mem.Vec or another space");
    }
    out.type = t;
    return out;
  }
  if (h.kind == HostKind::kMissing && head->kind == ExprKind::kName) {
    if (use == AnnotationUse::kAssign) {
      reject(ErrorClass::kParserTypeError, e.span, "Unsupported type annotation: " + source_text(e));
    }
  }
  unsupported();
  return out;
}

}  // namespace pypto::sema
