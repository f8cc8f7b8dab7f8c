// SPDX-License-Identifier: Apache-2.0
#include "core/passes/definitions.h"

#include "core/base/poll.h"
#include "core/passes/region.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

void look(const ir::Block& block, Regions regions, Definitions& found) {
  for (const auto& s : block) {
    poll();
    const bool plain = s->kind == ir::StmtKind::kAssign && s->targets.size() == 1;
    own_defs(*s, [&](const ir::VarPtr& v) {
      const auto [it, first] = found.try_emplace(v.get(), plain ? s->value : nullptr);
      if (!first) it->second = nullptr;
    });
    if (regions == Regions::kLeftOut && s->kind == ir::StmtKind::kScope && is_region(s->scope->kind))
      continue;
    look(s->body, regions, found);
    look(s->else_body, regions, found);
  }
}

}  // namespace

Definitions definitions(const ir::Block& block, Regions regions) {
  Definitions found;
  look(block, regions, found);
  return found;
}

ir::ExprPtr resolved(ir::ExprPtr e, const Definitions& definitions) {
  while (e && e->kind == ir::ExprKind::kVar) {
    const auto it = definitions.find(e->var.get());
    if (it == definitions.end() || !it->second) break;
    e = it->second;
  }
  return e;
}

}  // namespace pypto::passes
