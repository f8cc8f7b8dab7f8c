// SPDX-License-Identifier: Apache-2.0
#include "core/vm/interp.h"

namespace pypto::vm {

const Site* Fiber::site() const {
  if (frames.empty()) return nullptr;
  const Frame& f = frames.back();
  if (f.pc < 0 || f.pc >= static_cast<int32_t>(f.fn->code.size())) return nullptr;
  const int32_t site = part_site >= 0 ? part_site : f.fn->code[static_cast<size_t>(f.pc)].site;
  return site >= 0 ? &f.fn->sites[static_cast<size_t>(site)] : nullptr;
}

std::unique_ptr<Fiber> make_fiber(const FunctionCode& fn) {
  auto fiber = std::make_unique<Fiber>();
  Frame frame;
  frame.fn = &fn;
  frame.s.resize(static_cast<size_t>(fn.scalar_count));
  for (auto& x : frame.s) x.i = 0;
  frame.v.resize(static_cast<size_t>(fn.view_count));
  frame.a.resize(static_cast<size_t>(fn.array_count));
  fiber->frames.push_back(std::move(frame));
  return fiber;
}

std::vector<Diagnostic> bind_symbols(Frame& frame) {
  std::vector<Diagnostic> warnings;
  for (const SymbolBinding& b : frame.fn->symbols) {
    const ParamInfo& p = frame.fn->params[static_cast<size_t>(b.param)];
    const View& first = frame.v[static_cast<size_t>(p.reg.index)];
    const int64_t extent = (b.valid ? first.valid[b.axis] : first.shape[b.axis]) / b.divide;
    frame.s[static_cast<size_t>(b.reg)].i = extent;
    for (const auto& [param, axis] : b.others) {
      const ParamInfo& q = frame.fn->params[static_cast<size_t>(param)];
      const int64_t other = frame.v[static_cast<size_t>(q.reg.index)].shape[axis];
      if (other == extent) continue;
      Diagnostic d;
      d.cls = ErrorClass::kTypeError;
      d.id = "W-DYN-EXTENT";
      d.message = frame.fn->name + ": dynamic dimension '" + b.name + "' is " + std::to_string(extent) +
                  " in '" + p.name + "' (dimension " + std::to_string(b.axis) + ") but " +
                  std::to_string(other) + " in '" + q.name + "' (dimension " + std::to_string(axis) + ")";
      d.hint = "pass arguments whose extents agree, or give the dimensions different symbols";
      d.span = frame.fn->span;
      if (b.used_as_value) throw Failure(std::move(d));
      d.severity = Severity::kWarning;
      warnings.push_back(std::move(d));
    }
  }
  return warnings;
}

}  // namespace pypto::vm
