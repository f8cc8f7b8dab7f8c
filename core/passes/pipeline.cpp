// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/ir/print.h"
#include "core/passes/passes.h"

namespace pypto::passes {
namespace {

constexpr const char* kOutline = "OutlineScopes";
constexpr const char* kCollectives = "LowerCollectives";
constexpr const char* kPlace = "PlaceMemory";

}  // namespace

LowerResult lower(const ir::Module& module, const PassOptions& options) {
  LowerResult result;
  result.module = ir::clone(module);
  ir::Module& m = *result.module;
  const auto done = [&](const char* name) {
    if (options.after) options.after(name, m);
  };
  outline(m);  // regions first: every later stage works on whole kernels
  done(kOutline);
  lower_collectives(m, options);  // before placement: their tiles count like any others
  done(kCollectives);
  place(m);
  done(kPlace);
  m.lowered = true;
  return result;
}

std::vector<std::string> pass_names() { return {kOutline, kCollectives, kPlace}; }

}  // namespace pypto::passes
