// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Parts of annotations: extents, dtypes, views, declared allocations (01 L-27 - L-39).
namespace pypto::sema {

using syn::ExprKind;

namespace {

bool is_slice_entry(const syn::Expr& e) { return e.kind == ExprKind::kList || e.kind == ExprKind::kTuple; }

ir::TileLayout tile_layout(const HostValue& h, const Span& span) {
  if (h.kind != HostKind::kEnum || h.text.rfind("TileLayout.", 0) != 0) {
    reject(ErrorClass::kParserTypeError, span, "Unknown layout: a pl.TileLayout member is expected");
  }
  return static_cast<ir::TileLayout>(h.int_value);
}

}  // namespace

ir::Dim FunctionBuilder::read_dim(const syn::Expr& e, AnnotationUse use) {
  if (e.kind == ExprKind::kName && !find_binding(e.text)) {
    const HostValue h = host_lookup(e.text);
    if (h.kind == HostKind::kMissing) {
      reject(ErrorClass::kParserTypeError, e.span, "Unknown shape variable: " + e.text,
             did_you_mean(e.text, visible_names()));
    }
  }
  const Value v = eval(e);
  return value_dim(v, e, use);
}

ir::Dim FunctionBuilder::value_dim(const Value& v, const syn::Expr& e, AnnotationUse use) {
  if (const auto n = try_constant_int(v)) {
    if (*n < 1 && use != AnnotationUse::kAssign) {
      reject(ErrorClass::kParserTypeError, e.span,
             "Shape dimension must be >= 1, got " + std::to_string(*n) + " (" + source_text(e) + ")");
    }
    if (*n < 1) {
      reject(ErrorClass::kParserTypeError, e.span, "Shape dimension must be >= 1, got " + std::to_string(*n));
    }
    return ir::Dim(*n);
  }
  if (v.is_host() && v.host.kind == HostKind::kDynVar) return ir::Dim(symbol(v.host.text, e.span));
  if (v.is_scalar() && is_int(v.expr->type->dtype)) return ir::Dim(ir::simplify(v.expr));
  std::string got = v.is_expr() ? ir::type_text(*v.expr->type) : v.is_host() ? v.host.text : "a tuple";
  if (v.is_expr() && v.expr->kind == ir::ExprKind::kFloat) got = "float " + source_text(e);
  reject(ErrorClass::kParserTypeError, e.span,
         "Shape dimension '" + source_text(e) + "' must be int or pl.dynamic(), got " + got);
}

ir::Shape FunctionBuilder::read_shape(const syn::Expr& e, AnnotationUse use) {
  ir::Shape out;
  if (is_slice_entry(e)) {
    for (const auto& i : e.items) {
      if (i->kind == ExprKind::kStarred) {  // `[P, *SHAPE]`
        for (const ir::Dim& d : read_shape(*i->items[0], use)) out.push_back(d);
      } else {
        out.push_back(read_dim(*i, use));
      }
    }
    return out;
  }
  if (e.kind == ExprKind::kName && !find_binding(e.text) && host_lookup(e.text).kind == HostKind::kMissing) {
    reject(ErrorClass::kParserTypeError, e.span, "Unknown shape variable: " + e.text,
           did_you_mean(e.text, visible_names()));
  }
  const Value v = eval(e);
  if (v.is_tuple()) {
    for (const auto& i : v.items) out.push_back(value_dim(i, e, use));
    return out;
  }
  reject(ErrorClass::kParserTypeError, e.span,
         "Shape '" + source_text(e) + "' must be a list or tuple of dimensions", "write [d0, d1]");
}

DType FunctionBuilder::read_dtype(const syn::Expr& e) {
  if (e.kind == ExprKind::kAttribute && resolve_host(*e.items[0]).kind == HostKind::kModule &&
      resolve_host(e).kind == HostKind::kMissing) {
    std::vector<std::string> members;
    const DTypeTable table = dtype_table();
    for (int i = 0; i < table.count; ++i) members.push_back(table.rows[i].member);
    reject(ErrorClass::kParserTypeError, e.span, "Unknown dtype: " + source_text(e),
           did_you_mean(e.text, members));
  }
  if (e.kind == ExprKind::kName && !find_binding(e.text) && host_lookup(e.text).kind == HostKind::kMissing) {
    reject(ErrorClass::kParserTypeError, e.span, "Unknown dtype: " + e.text);
  }
  const Value v = eval(e);
  if (v.is_host() && v.host.kind == HostKind::kDType) return v.host.dtype;
  reject(ErrorClass::kParserTypeError, e.span, "Unknown dtype: " + source_text(e),
         "a pl dtype such as pl.FP32 is expected");
}

std::shared_ptr<const ir::TensorView> FunctionBuilder::read_tensor_view(const syn::Expr& call,
                                                                        AnnotationUse use) {
  auto v = std::make_shared<ir::TensorView>();
  bool has_layout = false;
  if (call.items.size() > 1) {
    reject(ErrorClass::kParserTypeError, call.span, "pl.TensorView takes keyword arguments only");
  }
  for (const auto& k : call.keywords) {
    if (k.name == "valid_shape") {
      if (k.value->kind != ExprKind::kNone) v->valid_shape = read_shape(*k.value, use);
    } else if (k.name == "stride") {
      if (k.value->kind != ExprKind::kNone) v->stride = read_shape(*k.value, use);
    } else if (k.name == "layout") {
      const Value l = eval(*k.value);
      if (!l.is_host() || l.host.kind != HostKind::kEnum || l.host.text.rfind("TensorLayout.", 0) != 0) {
        reject(ErrorClass::kParserTypeError, k.value->span, "Unknown layout: " + source_text(*k.value));
      }
      v->layout = static_cast<ir::TensorLayout>(l.host.int_value);
      has_layout = true;
    } else if (k.name == "pad") {
      const Value p = eval(*k.value);
      if (!p.is_host() || p.host.kind != HostKind::kEnum || p.host.text.rfind("PadValue.", 0) != 0) {
        reject(ErrorClass::kParserTypeError, k.value->span, "pad= must be a pl.PadValue member");
      }
      v->pad = static_cast<ir::PadValue>(p.host.int_value);
    } else {
      reject(ErrorClass::kParserTypeError, k.value->span, "Unknown TensorView keyword argument: " + k.name,
             did_you_mean(k.name, {"valid_shape", "stride", "layout", "pad"}));
    }
  }
  if (!has_layout && !call.keywords.empty()) {
    reject(ErrorClass::kParserTypeError, call.span,
           "pl.TensorView requires layout= when another field is given");
  }
  return v;
}

std::shared_ptr<const ir::TileView> FunctionBuilder::read_tile_view(const syn::Expr& call,
                                                                    AnnotationUse use) {
  auto v = std::make_shared<ir::TileView>();
  if (call.items.size() > 1) {
    reject(ErrorClass::kParserTypeError, call.span, "pl.TileView takes keyword arguments only");
  }
  const auto dims = [&](const syn::Expr& e) {
    ir::Shape out;
    if (e.kind == ExprKind::kNone) return out;
    if (is_slice_entry(e)) {
      for (const auto& i : e.items) {
        const Value x = eval(*i);
        if (const auto n = try_constant_int(x)) {
          out.push_back(ir::Dim(*n));
        } else {
          out.push_back(value_dim(x, *i, use));
        }
      }
      return out;
    }
    return read_shape(e, use);
  };
  for (const auto& k : call.keywords) {
    if (k.name == "valid_shape") {
      v->valid_shape = dims(*k.value);
    } else if (k.name == "stride") {
      v->stride = dims(*k.value);
    } else if (k.name == "start_offset") {
      if (is_slice_entry(*k.value)) {
        v->start_offset = dims(*k.value);
      } else if (k.value->kind != ExprKind::kNone) {
        const Value x = eval(*k.value);
        if (const auto n = try_constant_int(x))
          v->start_offset = {ir::Dim(*n)};
        else
          v->start_offset = {value_dim(x, *k.value, use)};
      }
    } else if (k.name == "blayout" || k.name == "slayout") {
      const Value l = eval(*k.value);
      const ir::TileLayout layout = tile_layout(l.is_host() ? l.host : HostValue(), k.value->span);
      (k.name == "blayout" ? v->blayout : v->slayout) = layout;
    } else if (k.name == "fractal") {
      const auto n = try_constant_int(eval(*k.value));
      if (!n || (*n != 32 && *n != 512 && *n != 1024)) {
        reject(ErrorClass::kParserTypeError, k.value->span,
               "fractal= must be 32, 512 or 1024, got " + source_text(*k.value));
      }
      v->fractal = static_cast<int>(*n);
    } else if (k.name == "pad" || k.name == "compact") {
      const Value p = eval(*k.value);
      const std::string family = k.name == "pad" ? "PadValue." : "CompactMode.";
      if (!p.is_host() || p.host.kind != HostKind::kEnum || p.host.text.rfind(family, 0) != 0) {
        reject(ErrorClass::kParserTypeError, k.value->span, k.name + "= must be a pl." + family + "* member");
      }
      if (k.name == "pad") {
        v->pad = static_cast<ir::PadValue>(p.host.int_value);
        v->has_pad = true;
      } else {
        v->compact = static_cast<ir::CompactMode>(p.host.int_value);
      }
    } else {
      reject(ErrorClass::kParserTypeError, k.value->span, "Unknown TileView keyword argument: " + k.name,
             did_you_mean(k.name, {"valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal",
                                   "pad", "compact"}));
    }
  }
  return v;
}

/// A MemRef construct, written in place or held in a name, with or without a slot.
std::shared_ptr<const ir::MemRef> FunctionBuilder::read_memref(const syn::Expr& e) {
  const syn::Expr* base = &e;
  const syn::Expr* slot = nullptr;
  if (e.kind == ExprKind::kSubscript) {
    base = e.items[0].get();
    slot = e.items[1].get();
  }
  auto m = std::make_shared<ir::MemRef>();
  bool explicit_name = false;
  if (base->kind == ExprKind::kCall) {
    const Callee c = resolve_callee(*base->items[0]);
    if (c.kind != Callee::Kind::kConstruct || c.name != "pl.MemRef") return nullptr;
    const size_t n = base->items.size() - 1;
    if (n == 1) {
      const Value v = eval(*base->items[1]);
      if (!v.is_expr() || v.expr->kind != ir::ExprKind::kString) {
        reject(ErrorClass::kParserTypeError, base->items[1]->span, "pl.MemRef name must be a string literal");
      }
      m->name = v.expr->text;
      explicit_name = true;
    } else if (n >= 3) {
      // MemRef(base, byte_offset, size) and MemRef(space, address, size, id).
      const Value first = base->items[1]->kind == ExprKind::kName && !find_binding(base->items[1]->text) &&
                                  host_lookup(base->items[1]->text).kind == HostKind::kMissing
                              ? Value()
                              : eval(*base->items[1]);
      if (first.is_expr() && first.expr->kind == ir::ExprKind::kString) {
        m->name = first.expr->text;
      } else {
        m->name = source_text(*base->items[n >= 4 ? 4 : 1]);
      }
      const auto offset = try_constant_int(eval(*base->items[2]));
      const auto size = try_constant_int(eval(*base->items[3]));
      m->offset = offset.value_or(-1);
      m->size = size.value_or(-1);
      explicit_name = true;
    } else if (n == 2) {
      reject(ErrorClass::kParserTypeError, base->span,
             "pl.MemRef takes a name, or base, byte_offset and size");
    }
    for (const auto& k : base->keywords) {
      if (k.name == "slots") {
        const auto slots = k.value->kind == ExprKind::kInt || is_static(*k.value)
                               ? try_constant_int(eval(*k.value))
                               : std::nullopt;
        if (!slots || *slots < 1) {
          reject(ErrorClass::kParserTypeError, k.value->span,
                 "pl.MemRef slots= must be a positive int literal");
        }
        m->slots = static_cast<int>(*slots);
      } else if (k.name == "name") {
        const Value v = eval(*k.value);
        if (v.is_expr()) m->name = v.expr->text;
        explicit_name = true;
      } else {
        reject(ErrorClass::kParserTypeError, k.value->span, "Unknown MemRef keyword argument: " + k.name);
      }
    }
  } else if (base->kind == ExprKind::kName || base->kind == ExprKind::kAttribute) {
    Value v;
    if (base->kind == ExprKind::kName && find_binding(base->text)) {
      const BindingPtr b = find_binding(base->text);
      if (b->kind != Binding::Kind::kValue || !b->value.is_host()) return nullptr;
      v = b->value;
    } else {
      const HostValue h = resolve_host(*base);
      if (h.kind == HostKind::kMissing) return nullptr;
      v = Value::of_host(h);
    }
    if (v.host.kind != HostKind::kMemRef || !v.host.memref) return nullptr;
    *m = *v.host.memref;
    const std::string variable =
        base->kind == ExprKind::kName ? base->text : last_component(source_text(*base));
    if (m->name.empty()) {
      m->name = variable;
      const std::string key = std::to_string(v.host.handle);
      if (v.host.handle >= 0) {
        auto& known = memref_variables_[key];
        if (!known.empty() && known != variable) {
          reject(
              ErrorClass::kParserTypeError, base->span,
              "One pl.MemRef() declaration is used under two names, '" + known + "' and '" + variable + "'",
              "declare two allocations, or use one name");
        }
        known = variable;
      }
    } else {
      explicit_name = true;
    }
  } else {
    return nullptr;
  }
  if (m->name.empty())
    m->name = "memref_" + std::to_string(base->span.line) + "_" + std::to_string(base->span.column);
  if (m->offset < 0) {
    auto& origin = memref_names_[m->name];
    const std::string where = base->kind == ExprKind::kCall
                                  ? "slots=" + std::to_string(m->slots)
                                  : base->text + "#slots=" + std::to_string(m->slots);
    if (!origin.empty() && origin != where) {
      reject(ErrorClass::kParserTypeError, base->span,
             "Two pl.MemRef declarations resolve to the name '" + m->name + "'", "give them different names");
    }
    origin = where;
  }
  (void)explicit_name;
  if (slot) {
    if (m->slots <= 1) {
      reject(ErrorClass::kParserTypeError, slot->span,
             "Allocation '" + m->name + "' has a single slot and cannot be subscripted", "declare slots=N");
    }
    const ExprPtr k = eval_expr(*slot);
    if (!k->type->is_scalar() || !is_int(k->type->dtype)) {
      reject(ErrorClass::kParserTypeError, slot->span, "Slot index must be an integer scalar");
    }
    if (const auto c = ir::const_int(k); c && (*c < 0 || *c >= m->slots)) {
      reject(ErrorClass::kParserTypeError, slot->span,
             "Slot index " + std::to_string(*c) + " is out of range: allocation '" + m->name + "' has " +
                 std::to_string(m->slots) + " slots (Slot index k is out of range)");
    }
    m->slot = k;
  }
  if (m->offset < 0) {
    for (const LoopInfo* l : loops_) {
      if (l->kind == LoopInfo::Kind::kPipeline && l->stage >= 2) {
        reject(ErrorClass::kParserTypeError, e.span,
               "A declared allocation cannot be used inside pl.pipeline with stage >= 2",
               "use pl.range, or let the compiler place the tile", {{"the loop", l->span}});
      }
    }
  }
  return m;
}

}  // namespace pypto::sema
