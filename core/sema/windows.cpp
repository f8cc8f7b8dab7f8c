// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Window memory in a HOST orchestrator (03 section 4).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

namespace {

bool dispatches_on(const std::vector<syn::StmtPtr>& body, const std::string& variable);

bool dispatches_on(const syn::Expr& e, const std::string& variable) {
  if (e.kind == ExprKind::kCall) {
    for (const auto& k : e.keywords) {
      if (k.name == "device" && k.value->kind == ExprKind::kName && k.value->text == variable) return true;
    }
  }
  for (const auto& i : e.items) {
    if (i && dispatches_on(*i, variable)) return true;
  }
  return false;
}

bool dispatches_on(const std::vector<syn::StmtPtr>& body, const std::string& variable) {
  for (const auto& s : body) {
    if (s->value && dispatches_on(*s->value, variable)) return true;
    if (dispatches_on(s->body, variable) || dispatches_on(s->orelse, variable)) return true;
  }
  return false;
}

}  // namespace

Value FunctionBuilder::alloc_window(const syn::Expr& e, const std::string& name) {
  const std::string spelling = "pld.alloc_window_buffer";
  const auto& row = ir::op_row(ir::OpId::k_alloc_window_buffer);
  check_distributed(row, spelling, e);
  if (name.empty()) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "X-10: " + spelling + "(...) must appear as the RHS of a simple assignment",
           "write 'buf = " + spelling + "(...)'");
  }
  const syn::Expr* size = e.items.size() > 1 ? e.items[1].get() : nullptr;
  const syn::Expr* dtype = nullptr;
  if (e.items.size() > 2) {
    reject(ErrorClass::kParserTypeError, e.span,
           "X-10: " + spelling + "() takes 1 positional argument, got " + std::to_string(e.items.size() - 1));
  }
  for (const auto& k : e.keywords) {
    if (k.name == "size") {
      if (size) {
        reject(ErrorClass::kParserTypeError, k.value->span,
               "X-10: " + spelling + "() got multiple values for argument 'size'");
      }
      size = k.value.get();
    } else if (k.name == "dtype") {
      if (k.value->kind != ExprKind::kNone) dtype = k.value.get();
    } else if (k.name == "name") {
      reject(ErrorClass::kParserTypeError, k.value->span,
             "X-10: 'name' kwarg cannot be passed explicitly: the buffer is named after its variable, '" +
                 name + "'",
             "remove name=");
    } else if (k.name != "attrs" && k.name != "span") {
      reject(ErrorClass::kParserTypeError, k.value->span,
             "X-10: " + spelling + "() got an unexpected keyword argument '" + k.name + "'",
             did_you_mean(k.name, {"size", "dtype"}));
    }
  }
  if (!size) {
    reject(ErrorClass::kParserTypeError, e.span, "X-10: " + spelling + "() missing required argument 'size'");
  }
  const Value v = eval(*size);
  const bool shape = v.is_tuple();
  if (!shape && dtype) {
    reject(ErrorClass::kParserTypeError, dtype->span,
           "X-10: dtype= is only valid when the first argument is a shape",
           "write " + spelling + "([" + source_text(*size) + "], dtype=...)");
  }
  if (shape && !dtype) {
    reject(ErrorClass::kParserTypeError, e.span, "X-10: " + spelling + "() with a shape requires dtype=");
  }
  if (shape && v.items.empty()) {
    reject(ErrorClass::kParserTypeError, size->span, "X-10: " + spelling + "(): shape must be non-empty");
  }
  DType type = DType::kNone;
  if (dtype) type = read_dtype(*dtype);
  ExprPtr bytes;
  bool constant = true;
  int64_t total = 1;
  const auto add = [&](const Value& item) {
    const ExprPtr x = to_expr(item, size->span);
    if (!x->type->is_scalar() || !is_int(x->type->dtype)) {
      reject(ErrorClass::kParserTypeError, size->span,
             "X-10: " + spelling + "() needs integer extents, got " + ir::type_text(*x->type));
    }
    if (const auto c = ir::const_int(x)) {
      if (*c <= 0) {
        reject(ErrorClass::kParserTypeError, size->span,
               "X-10: " + spelling + "(): all dimensions must be positive, got " + std::to_string(*c));
      }
      total *= *c;
    } else {
      constant = false;
    }
    return x;
  };
  ExprPtr first;
  if (shape) {
    std::vector<ExprPtr> dims;
    for (const auto& i : v.items) dims.push_back(add(i));
    first = ir::tuple_expr(dims, size->span);
    if (constant) {
      const int64_t bits = total * dtype_bits(type);
      if (dtype_bits(type) < 8 && type != DType::kBool && bits % 8 != 0) {
        reject(ErrorClass::kParserTypeError, size->span,
               "X-10: shape " + source_text(*size) + " of dtype " + std::string(dtype_text(type)) +
                   " is not a whole number of bytes");
      }
      total = type == DType::kBool ? total : bits / 8;
    }
  } else {
    first = add(v);
  }
  if (constant) bytes = ir::int_const(total, DType::kIndex, e.span);
  if (!program_.windows.insert(name).second) {
    reject(ErrorClass::kParserSyntaxError, e.span, "X-10: window buffer '" + name + "' is already declared",
           "allocate it once and reuse it, or use another name");
  }
  for (const auto* l : loops_) {
    const bool world = l->stop && l->stop->kind == ir::ExprKind::kOp && l->stop->op == ir::OpId::k_world_size;
    if (l->kind == LoopInfo::Kind::kUnroll || l->kind == LoopInfo::Kind::kWhile) continue;
    if (world || (l->body && dispatches_on(*l->body, l->variable))) {
      program_.warn(e.span, "X-11",
                    "window buffer '" + name + "' is allocated inside the rank loop at line " +
                        std::to_string(l->span.line) + "; it is one buffer all the same",
                    "hoist above the rank loop; keep window() inside");
      break;
    }
  }
  ExprPtr d;
  if (dtype) {
    HostValue h;
    h.kind = HostKind::kDType;
    h.dtype = type;
    d = to_argument(Value::of_host(h), dtype->span);
  }
  Value out = infer(row, ir::kFormPld, {first, d, ir::string_const(name, e.span)}, e.span, spelling);
  auto storage = new_storage(name);
  auto copy = std::make_shared<ir::Expr>(*out.expr);
  copy->type = with_storage(out.expr->type, storage);
  WindowBuffer buffer;
  buffer.name = name;
  buffer.span = e.span;
  buffer.bytes = bytes;
  buffer.storage = storage;
  buffers_[storage.get()] = buffer;
  facts.allocates_windows = true;
  return Value::of(copy);
}

Value FunctionBuilder::host_window(const syn::Expr& e) {
  const auto& row = ir::op_row(ir::OpId::k_window);
  const std::string spelling = "pld.window";
  check_distributed(row, spelling, e);
  const syn::Expr* slots[3] = {nullptr, nullptr, nullptr};
  static const char* kNames[3] = {"buf", "shape", "dtype"};
  for (size_t i = 1; i < e.items.size(); ++i) {
    if (i > 2) {
      reject(ErrorClass::kParserTypeError, e.span,
             "X-14: pld.window() takes 2 positional arguments, got " + std::to_string(e.items.size() - 1) +
                 "; dtype= is keyword only");
    }
    slots[i - 1] = e.items[i].get();
  }
  for (const auto& k : e.keywords) {
    if (k.name == "attrs" || k.name == "span") continue;
    bool found = false;
    for (int i = 0; i < 3; ++i) {
      if (k.name != kNames[i]) continue;
      if (slots[i]) {
        reject(ErrorClass::kParserTypeError, k.value->span,
               "X-14: pld.window() got multiple values for argument '" + k.name + "'");
      }
      slots[i] = k.value.get();
      found = true;
    }
    if (!found) {
      reject(ErrorClass::kParserTypeError, k.value->span,
             "X-14: pld.window() got an unexpected keyword argument '" + k.name + "'",
             did_you_mean(k.name, {"buf", "shape", "dtype"}));
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (!slots[i]) {
      reject(ErrorClass::kParserTypeError, e.span,
             std::string("X-14: pld.window() missing required argument '") + kNames[i] + "'" +
                 (i == 2 ? ": dtype= is required" : ""));
    }
  }
  const Value buf = eval(*slots[0]);
  if (!buf.is_expr() || buf.expr->type->kind != ir::TypeKind::kPtr) {
    reject(ErrorClass::kParserTypeError, slots[0]->span,
           "X-14: pld.window() needs a Ptr handle as its first argument, got " +
               (buf.is_expr() ? ir::type_text(*buf.expr->type) : source_text(*slots[0])),
           "pass the value returned by pld.alloc_window_buffer(...)");
  }
  const Value shape = eval(*slots[1]);
  const DType dtype = read_dtype(*slots[2]);
  if (!shape.is_tuple()) {
    reject(ErrorClass::kParserTypeError, slots[1]->span,
           "X-14: pld.window() shape must be a list or tuple, got " + source_text(*slots[1]));
  }
  const auto& storage = buf.expr->type->storage;
  const auto it = storage ? buffers_.find(storage.get()) : buffers_.end();
  if (it != buffers_.end()) {
    it->second.viewed = true;
    int64_t need = dtype_bytes(dtype);
    std::string extents;
    for (const auto& item : shape.items) {
      const auto n = try_constant_int(item);
      need = n && need >= 0 ? need * *n : -1;
      extents += (extents.empty() ? "" : ", ") + (n ? std::to_string(*n) : std::string("?"));
    }
    const auto have = ir::const_int(it->second.bytes);
    if (need >= 0 && have && need > *have) {
      reject(ErrorClass::kParserTypeError, e.span,
             "X-13: the view [" + extents + "] " + std::string(dtype_text(dtype)) + " of buffer '" +
                 it->second.name + "' needs " + std::to_string(need) + " bytes, the buffer has " +
                 std::to_string(*have),
             "use the shape form alloc_window_buffer([...], dtype=...); the scalar form counts bytes",
             {{"the allocation", it->second.span}});
    }
  }
  HostValue h;
  h.kind = HostKind::kDType;
  h.dtype = dtype;
  const Value out =
      infer(row, ir::kFormPld,
            {buf.expr, to_argument(shape, slots[1]->span), to_argument(Value::of_host(h), slots[2]->span)},
            e.span, spelling);
  auto copy = std::make_shared<ir::Expr>(*out.expr);
  if (storage) copy->type = with_storage(out.expr->type, storage);
  return Value::of(copy);
}

void FunctionBuilder::consume_window(const ExprPtr& e) {
  if (!e || !e->type || !e->type->storage) return;
  for (const auto& s : leaves(e->type->storage)) {
    const auto it = buffers_.find(s.get());
    if (it != buffers_.end()) it->second.consumed = true;
  }
}

void FunctionBuilder::check_windows() {
  for (const auto& [key, b] : buffers_) {
    if (!b.viewed) {
      reject(ErrorClass::kCompileError, b.span,
             "X-12: window buffer '" + b.name + "' has no pld.tensor.window materialisation",
             "delete it, or make a view of it and pass that to a dispatch");
    }
    if (!b.consumed) {
      reject(ErrorClass::kCompileError, b.span,
             "X-12: window buffer '" + b.name + "' is not consumed by any dispatch or host collective",
             "delete it, or pass a view of it to a dispatch");
    }
  }
}

}  // namespace pypto::sema
