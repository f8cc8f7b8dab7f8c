// SPDX-License-Identifier: Apache-2.0
#include "core/passes/lane_stores.h"

#include <algorithm>

#include "core/passes/build.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::Block;
using ir::ExprKind;
using ir::ExprPtr;
using ir::OpId;

class LaneStores {
 public:
  LaneStores(ir::Function& f, ir::Arch arch, size_t axis) : f_(f), arch_(arch), axis_(axis) {
    CodeBuilder b(f, arch, ir::kPlaceKernel, f.span);
    lane_ = b.let("lane", b.op(OpId::k_get_subblock_idx, {}, ir::kFormTile));
    f.body = block(f.body);
    f.body.insert(f.body.begin(), b.code.begin(), b.code.end());
  }

 private:
  ExprPtr expr(const ExprPtr& e) const {
    if (!e) return nullptr;
    auto copy = std::make_shared<ir::Expr>(*e);
    for (auto& a : copy->args) a = expr(a);
    if (!is_op(e, OpId::k_store) || copy->args[1]->kind != ExprKind::kTuple ||
        copy->args[1]->args.size() != 2)
      return copy;
    const ir::Dim& extent = e->args[0]->type->shape[axis_];
    if (!extent.is_const()) return copy;
    CodeBuilder b(f_, arch_, ir::kPlaceKernel, e->span);
    auto offsets = copy->args[1]->args;
    offsets[axis_] = b.add(offsets[axis_], b.mul(CodeBuilder::ref(lane_), b.index(extent.value)));
    copy->args[1] = b.list(offsets);
    return copy;
  }

  Block block(const Block& in) const {
    Block out;
    for (const auto& s : in) {
      auto copy = std::make_shared<ir::Stmt>(*s);
      copy->value = expr(s->value);
      for (auto& v : copy->values) v = expr(v);
      copy->body = block(s->body);
      copy->else_body = block(s->else_body);
      out.push_back(copy);
    }
    return out;
  }

  ir::Function& f_;
  ir::Arch arch_;
  size_t axis_;
  ir::VarPtr lane_;
};

}  // namespace

void shift_lane_stores(ir::Function& f, ir::Arch arch) {
  const ir::FunctionAttr* split = f.attr("split");
  if (f.type != ir::FunctionType::kAIV || !split || split->int_value == 0) return;
  bool divided = false;
  walk_exprs(f.body, [&](const ExprPtr& e) {
    if (is_op(e, OpId::k_tpop_from_aic) || is_op(e, OpId::k_tpush_to_aic))
      divided = divided || e->attrs.get_int(AttrKey::k_split) != 0;
  });
  if (!divided) return;
  LaneStores(f, arch, split->int_value == 1 ? 0 : 1);
  auto& attrs = f.attrs;
  attrs.erase(std::remove_if(attrs.begin(), attrs.end(),
                             [](const auto& a) { return a.key == "split" || a.key == "dual_aiv_dispatch"; }),
              attrs.end());
  attrs.push_back({"dual_aiv_dispatch", "True", 1});
}

}  // namespace pypto::passes
