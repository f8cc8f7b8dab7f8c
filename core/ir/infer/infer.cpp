// SPDX-License-Identifier: Apache-2.0
#include "core/ir/infer.h"

#include <utility>

#include "core/ir/infer/typer.h"

namespace pypto::ir {
namespace infer {
namespace {

constexpr TypeFn kTypeFunctions[] = {
#define PYPTO_OP(id, ...) &type_##id,
#include "core/ir/ops.def"
#undef PYPTO_OP
};
static_assert(std::size(kTypeFunctions) == static_cast<size_t>(kOpCount),
              "every row of ops.def needs a type function");

constexpr uint32_t kPldForms = kFormPld | kFormPldTensor | kFormPldTile | kFormPldSystem;

/// The scalar row that a flat call on scalars means (02 O-606, O-607), or the row itself.
OpId scalar_row(const Typer& t) {
  const auto scalars = [&](int count) {
    for (int i = 0; i < count; ++i) {
      if (!t.is_scalar(i)) return false;
    }
    return true;
  };
  if (t.form == kFormTensor || t.form == kFormTile) return t.row->id;
  switch (t.row->id) {
    case OpId::k_add:
      return scalars(2) ? OpId::k_scalar_add : t.row->id;
    case OpId::k_sub:
      return scalars(2) ? OpId::k_scalar_sub : t.row->id;
    case OpId::k_mul:
      return scalars(2) ? OpId::k_scalar_mul : t.row->id;
    case OpId::k_div:
      return scalars(2) ? OpId::k_scalar_truediv : t.row->id;
    case OpId::k_cast:
      return scalars(1) ? OpId::k_scalar_cast : t.row->id;
    default:
      return t.row->id;
  }
}

std::string place_name(OpPlace place) {
  switch (place) {
    case kPlaceKernel:
      return "InCore kernel code";
    case kPlaceOrch:
      return "an Orchestration function";
    default:
      return "a HOST orchestrator";
  }
}

std::string places_text(uint8_t places) {
  std::string out;
  for (const OpPlace p : {kPlaceHost, kPlaceOrch, kPlaceKernel}) {
    if (places & p) out += (out.empty() ? "" : " or ") + place_name(p);
  }
  return out;
}

void check_place(Typer& t) {
  // The row serves scalars everywhere; on arrays it is compute.
  const uint8_t places = t.row->id == OpId::k_cast ? static_cast<uint8_t>(kPlaceKernel) : t.row->places;
  if (places & t.context.place) return;
  if (t.row->forms & kPldForms) {
    t.value_error("used in " + place_name(t.context.place) + "; it belongs in " + places_text(places),
                  t.context.place == kPlaceKernel || t.context.place == kPlaceOrch
                      ? "move the call, or compute the value there and pass it down as an argument"
                      : "call it inside a kernel that the host dispatches");
  }
  if (t.in_kernel()) {
    t.value_error("used in InCore kernel code; it belongs in " + places_text(places),
                  "move the call to the Orchestration function around the kernel");
  }
  bool tile = (t.row->forms & kFormTile) && !(t.row->forms & kFormTensor);
  for (size_t i = 0; i < t.args.size(); ++i) tile = tile || t.is_tile(static_cast<int>(i));
  if (t.form == kFormTile) tile = true;
  const bool tensor = !tile && (t.row->forms & (kFormTensor | kFormFlat)) && !(t.row->forms & kFormSystem);
  t.level = tile ? OperandLevel::kTile : tensor ? OperandLevel::kTensor : OperandLevel::kNone;
  const bool host = t.context.place == kPlaceHost;
  const char* where = host ? "HOST orchestrator" : "Orchestration function";
  if (t.row->places == kPlaceOrch) {
    t.value_error("used in " + place_name(t.context.place) + "; it belongs in " + places_text(places));
  }
  std::string hint = host ? "put it inside a device region (pl.at) or a kernel that the host dispatches"
                          : "put it inside `with pl.at(level=pl.Level.CORE_GROUP):` or an InCore function";
  if (t.row->id == OpId::k_reinterpret_view) {
    hint = "reinterpret_view belongs in a kernel; in orchestration code use pl.reshape or pl.tensor.view";
  }
  fail(ErrorClass::kValueError,
       std::string("Misplaced ") + (tensor ? "tensor op '" : "builtin op '") + t.name() + "' in " + where +
           " (should be inside InCore block)",
       {}, hint);
}

}  // namespace

TypeFn type_function(OpId id) { return kTypeFunctions[static_cast<int>(id)]; }

}  // namespace infer

ExprPtr infer_op(InferContext& context, const OpCallSite& call) {
  PYPTO_CHECK(call.row != nullptr, "a call without a row");
  infer::Typer t(context, call);
  if (const OpId id = infer::scalar_row(t); id != t.row->id) {
    if (id == OpId::k_scalar_cast && t.has(2)) {
      // Only the default mode has a meaning for a scalar (01 L-22); an unknown one is a ValueError first.
      const auto mode =
          t.mode_attr(2, AttrKey::k_mode, {"none", "rint", "round", "floor", "ceil", "trunc", "odd"}, 2);
      if (mode != "round") {
        t.type_error("Scalar inputs do not support non-default mode, got \"" + mode + "\"",
                     "leave mode out; a float becomes an integer toward zero");
      }
    }
    t.row = &op_row(id);
    t.args.resize(op_params(*t.row, kFormFlat).size());
    t.attrs = {};
  }
  infer::check_place(t);
  return infer::type_function(t.row->id)(t);
}

}  // namespace pypto::ir
