// SPDX-License-Identifier: Apache-2.0
// Operations that run as one strip chain, charged one by one.
#include <algorithm>

#include "core/machine/actor.h"
#include "core/machine/core_timer.h"
#include "core/machine/simulation.h"
#include "core/vm/kernels/chain_plan.h"

namespace pypto::machine {

using ir::MemorySpace;
using ir::OpId;
using trace::CorePipe;
using trace::Touch;
using vm::View;

void CoreTimer::loaded(int32_t value, const vm::OpInsn&, const View& result) {
  collecting_ = false;
  if (values_.size() <= static_cast<size_t>(value)) values_.resize(static_cast<size_t>(value) + 1);
  ChainValue& v = values_[static_cast<size_t>(value)];
  v.known = true;
  v.made = {};
  for (const Access& a : touches_) v.made = load_region(a.view, MemorySpace::kVec);
  if (!on_chip(result)) return;
  clock().fresh(reinterpret_cast<uintptr_t>(result.buffer.get()), MemorySpace::kVec);
  if (v.made.core < 0) return;
  const Touch write = touch_of(result, true);
  clock().finish(v.made.core, v.made.pipe, std::span<const Touch>(&write, 1), v.made.finish);
}

void CoreTimer::steps(const vm::ChainInsn& insn, std::span<const View* const> inputs) {
  const vm::Chain& chain = insn.chain;
  std::vector<vm::ChainInput> described;
  for (const View* v : inputs) described.push_back(vm::describe_input(*v));
  const vm::ChainPlan plan = vm::plan_chain(chain, described);
  const size_t count = inputs.size() + chain.steps.size();
  values_.resize(count);
  std::vector<View> shapes(count);
  for (size_t v = 0; v < count; ++v) {
    const vm::ChainShape& s = plan.shapes[v];
    if (v < inputs.size() && (!values_[v].known || on_chip(*inputs[v]))) {
      shapes[v] = *inputs[v];
      continue;
    }
    shapes[v].dtype = plan.dtypes[v];
    shapes[v].set_packed(s.rank, s.shape);
    std::copy_n(s.valid, s.rank, shapes[v].valid);
  }
  const int core = vector_core();
  for (size_t k = 0; k < chain.steps.size(); ++k) {
    const vm::ChainStep& step = chain.steps[k];
    actor_.fiber->part_site = insn.step_sites[k];
    std::vector<Dependency> deps;
    std::vector<Touch> touches;
    std::vector<const View*> of;
    const bool target_only = step.op == OpId::k_row_expand || step.op == OpId::k_col_expand;
    for (const int32_t operand : {step.lhs, step.rhs}) {
      if (operand < 0) continue;
      const auto v = static_cast<size_t>(operand);
      of.push_back(&shapes[v]);
      if (target_only && operand == step.lhs && step.rhs >= 0) continue;
      if (v < inputs.size() && !values_[v].known) {
        values_[v].known = true;
        values_[v].made = in(*inputs[v], MemorySpace::kVec);
      }
      if (values_[v].made.core >= 0) {
        deps.push_back(values_[v].made);
      } else if (v < inputs.size() && on_chip(*inputs[v])) {
        touches.push_back(touch_of(*inputs[v], false));
      }
    }
    const size_t made = inputs.size() + k;
    if (step.op == OpId::k_cast || ir::op_row(step.op).cost == ir::CostClass::kExpand)
      of.push_back(&shapes[made]);
    std::stable_sort(of.begin(), of.end(),
                     [](const View* a, const View* b) { return a->valid_elements() > b->valid_elements(); });
    const OpId op = step.scalar >= 0 ? trace::scalar_form(step.op) : step.op;
    const double duration = trace::vector_time(p_, op, trace::extent_of(of),
                                               shapes[static_cast<size_t>(step.lhs)].dtype, step.dtype);
    values_[made].known = true;
    values_[made].made = {run(core, CorePipe::kV, duration, touches, deps, ir::op_row(op).name), core,
                          CorePipe::kV};
  }
  actor_.fiber->part_site = -1;
  outputs_ = chain.outputs;
}

void CoreTimer::stored(int32_t output, const View& target) {
  collecting_ = false;
  const auto value = static_cast<size_t>(outputs_[static_cast<size_t>(output)]);
  store_value(nullptr, &values_[value].made, target);
}

void CoreTimer::outputs(const vm::ChainInsn& insn, std::span<const View> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!on_chip(results[i])) continue;
    const Dependency& made = values_[static_cast<size_t>(insn.chain.outputs[i])].made;
    clock().fresh(reinterpret_cast<uintptr_t>(results[i].buffer.get()), MemorySpace::kVec);
    if (made.core < 0) continue;
    const Touch write = touch_of(results[i], true);
    clock().finish(made.core, made.pipe, std::span<const Touch>(&write, 1), made.finish);
  }
  values_.clear();
}

}  // namespace pypto::machine
