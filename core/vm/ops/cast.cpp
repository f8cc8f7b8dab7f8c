// SPDX-License-Identifier: Apache-2.0

// `cast` (02 section 11).
#include <string_view>
#include <variant>

#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

ExecStatus exec_cast(OpCall& call) {
  // An accumulator is rounded to its declared dtype before it is cast (02 O-1802).
  const DType held = call.view(0).dtype;
  const DType from = static_cast<DType>(call.attr_int(ir::AttrKey::k_acc_dtype, static_cast<int64_t>(held)));
  const DType to = call.result_dtype();
  if (const View& v = call.view(0); dtype_bits(from) >= 8 && dtype_bits(to) >= 8 && plain_tile(v, from)) {
    View out = plain_result(call, to, v);
    cast_row(from, v.data(), to, out.data(), static_cast<size_t>(v.elements()), cast_mode(*call.attrs));
    call.set_result(std::move(out));
    return ExecStatus::kDone;
  }
  const Input in(call, 0, from);
  const View out = elementwise_result(call, to, shape_of(in.view()), in.view());
  Walk walk = walk_result(out);
  in.add_to(walk, shape_of(out));
  walk.collapse();
  const CastMode mode = cast_mode(*call.attrs);
  inherit_unwritten(out, {&in});
  walk.rows(
      [&](uint8_t* const* p, int64_t n) { cast_row(from, p[1], to, p[0], static_cast<size_t>(n), mode); });
  call.set_result(out);
  return ExecStatus::kDone;
}

}  // namespace

CastMode cast_mode(const ir::AttrMap& attrs) {
  const ir::AttrValue* value = attrs.find(ir::AttrKey::k_mode);
  if (value == nullptr) return CastMode::kRound;
  if (const auto* text = std::get_if<std::string>(value)) {
    static constexpr std::string_view kNames[] = {"none", "rint", "round", "floor", "ceil", "trunc", "odd"};
    for (int i = 0; i < 7; ++i) {
      if (*text == kNames[i]) return static_cast<CastMode>(i);
    }
    return CastMode::kRound;
  }
  return static_cast<CastMode>(attrs.get_int(ir::AttrKey::k_mode, 2));
}

void register_cast(ExecTable& t) { t.set(ir::OpId::k_cast, &exec_cast); }

}  // namespace pypto::vm
