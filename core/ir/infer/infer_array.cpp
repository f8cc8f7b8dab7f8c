// SPDX-License-Identifier: Apache-2.0
// pl.array (02 section 24), pl.prefetch (25), markers (26).
#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {
namespace {

const Type& array_operand(const Typer& t) {
  if (!t.has(0) || t.type(0).kind != TypeKind::kArray) t.bad(0, "an array made by pl.array.create");
  return t.type(0);
}

void array_index(Typer& t) {
  t.index(1);
  const Dim& extent = array_operand(t).shape[0];
  if (const auto c = t.constant(1); c && (*c < 0 || (extent.is_const() && *c >= extent.value))) {
    t.value_error("index " + std::to_string(*c) + " is out of range for an array of extent " +
                  dim_text(extent));
  }
}

}  // namespace

ExprPtr type_array_create(Typer& t) {
  if (!t.constant(0)) t.bad(0, "a positive compile-time integer");
  const int64_t extent = t.int_attr(0, AttrKey::k_extent);
  if (extent <= 0) t.value_error("argument 'extent' must be positive, got " + std::to_string(extent));
  const DType dtype = t.dtype_attr(1, AttrKey::k_dtype);
  if (dtype == DType::kNone || (!is_int(dtype) && dtype != DType::kBool && dtype != DType::kTaskId)) {
    t.type_error("argument 'dtype' must be an integer dtype, BOOL or TASK_ID, got " +
                     (dtype == DType::kNone ? "nothing" : std::string(dtype_text(dtype))),
                 "floats live in Tensors and Tiles");
  }
  return t.result(array_type(extent, dtype));
}

ExprPtr type_array_get(Typer& t) {
  const DType dtype = array_operand(t).dtype;
  array_index(t);
  return t.scalar(dtype);
}

ExprPtr type_array_update(Typer& t) {
  const Type& array = array_operand(t);
  array_index(t);
  const ExprPtr& value = t.arg(2);
  if (!value->type || !value->type->is_scalar()) {
    t.bad(2, "a scalar of dtype " + std::string(dtype_text(array.dtype)),
          value->type && value->type->is_array_like()
              ? "arrays hold scalars; Tensors and windows cannot be elements"
              : "");
  }
  const DType own = value->type->dtype;
  const bool index =
      is_int(own) && is_int(array.dtype) && (own == DType::kIndex || array.dtype == DType::kIndex);
  if (!same_dtype(own, array.dtype) && !index && !value->untyped) {
    t.type_error("argument 'value' has dtype " + std::string(dtype_text(own)) + "; the array holds " +
                     std::string(dtype_text(array.dtype)),
                 array.dtype == DType::kTaskId
                     ? "store a task handle or None"
                     : "pl.cast(value, pl." + std::string(dtype_info(array.dtype).member) + ")");
  }
  if (value->kind != ExprKind::kNone) {
    t.args[2] = convert_scalar(value, array.dtype, t.name() + ": argument 'value'");
  }
  return t.in_place(0);
}

ExprPtr type_prefetch_make_context(Typer& t) { return t.result(simple_type(TypeKind::kPrefetchContext)); }

ExprPtr type_prefetch_async(Typer& t) {
  const Type& x = t.global(0);
  if (t.arg(0)->kind != ExprKind::kVar) t.bad(0, "a tensor variable", "bind the value to a name first");
  for (size_t k = 0; k < x.shape.size(); ++k) {
    const bool last = k + 1 == x.shape.size();
    if (!x.shape[k].is_const() || (!last && x.shape[k].value != 1)) {
      t.value_error("dimension " + std::to_string(k) + " of 'src' is " + dim_text(x.shape[k]) +
                        "; the shape must be static and every dimension except the last 1",
                    "reshape it to one row: pl.reshape(src, [1, n])");
    }
  }
  if (t.type(1).kind != TypeKind::kPrefetchContext) t.bad(1, "a context made by pl.prefetch.make_context");
  return t.result(simple_type(TypeKind::kAsyncEvent));
}

ExprPtr type_prefetch_session(Typer& t) {
  if (t.type(0).kind != TypeKind::kPrefetchContext) t.bad(0, "a context made by pl.prefetch.make_context");
  return t.result(simple_type(TypeKind::kAsyncSession));
}

ExprPtr type_prefetch_wait(Typer& t) {
  if (t.type(0).kind != TypeKind::kAsyncEvent) t.bad(0, "an event of pl.prefetch.async_prefetch");
  if (t.type(1).kind != TypeKind::kAsyncSession) t.bad(1, "a session of pl.prefetch.session");
  return t.scalar(DType::kBool);
}

ExprPtr type_dump_tag(Typer& t) {
  if (!t.is_tensor(0)) t.bad(0, "a Tensor (it is not a tensor)");
  if (t.arg(0)->kind != ExprKind::kVar) t.bad(0, "a bare variable name");
  return t.nothing();
}

}  // namespace pypto::ir::infer
