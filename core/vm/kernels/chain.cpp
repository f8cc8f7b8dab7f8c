// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/chain.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/vm/kernels/chain_plan.h"
#include "core/vm/kernels/chain_strips.h"
#include "core/vm/ops/elementwise.h"

namespace pypto::vm {
namespace {

// ------------------------------------------------------------------ one operation at a time

/// A step as an ordinary operation call.
class StepCall final : public OpCall {
 public:
  StepCall(const Chain& chain, const ChainStep& step, std::span<const View> values,
           std::span<const Scalar> scalars, ChainHost& host)
      : chain_(chain), step_(step), values_(values), scalars_(scalars), host_(host) {
    op = step.op;
    if (step.op == ir::OpId::k_cast) attributes_.set(ir::AttrKey::k_mode, static_cast<int64_t>(step.mode));
    attrs = &attributes_;
  }
  bool has(int p) const override { return p == 0 || (p == 1 && (step_.rhs >= 0 || step_.scalar >= 0)); }
  const View& view(int p) const override {
    return values_[static_cast<size_t>(p == 0 ? step_.lhs : step_.rhs)];
  }
  bool is_scalar(int p) const override { return p == 1 && step_.scalar >= 0; }
  Scalar scalar(int) const override { return scalars_[static_cast<size_t>(step_.scalar)]; }
  DType scalar_dtype(int) const override { return chain_.scalars[static_cast<size_t>(step_.scalar)]; }
  std::span<const int64_t> list(int) const override { return {}; }
  DType result_dtype(int) const override { return step_.dtype; }
  bool result_is_tile(int) const override { return step_.is_tile; }
  void set_result(View value, int) override { result = std::move(value); }
  void set_result(Scalar, int) override {}
  View alloc(DType dtype, std::span<const int64_t> shape, bool zero) override {
    return host_.alloc(dtype, shape, zero);
  }
  void access(const View& v, AccessKind) override { host_.access(v); }
  void warn(const char* id, std::string text) override { host_.warn(id, std::move(text)); }
  std::string operand_name(int) const override { return {}; }

  View result;

 private:
  const Chain& chain_;
  const ChainStep& step_;
  std::span<const View> values_;
  std::span<const Scalar> scalars_;
  ChainHost& host_;
  ir::AttrMap attributes_;
};

View run_step(const Chain& chain, size_t k, std::span<const View> values, std::span<const Scalar> scalars,
              ChainHost& host) {
  StepCall call(chain, chain.steps[k], values, scalars, host);
  const ExecFn fn = exec_function(chain.steps[k].op);
  PYPTO_CHECK(fn != nullptr, std::string("no executor of ") + ir::op_row(chain.steps[k].op).name);
  fn(call);
  return call.result;
}

// ------------------------------------------------------------------ segments

/// Neighbouring steps of a chain that share one matrix and run in strips, or a single step that does not.
struct Segment {
  size_t first = 0, last = 0;  ///< steps [first, last] of the whole chain
  Chain chain;                 ///< the steps with values numbered anew
  std::vector<size_t> inputs;  ///< values of the whole chain
  std::vector<size_t> made;    ///< per output of `chain`: value of the whole chain
  ChainPlan plan;
  std::unique_ptr<StripRun> strips;
};

/// A chain prepared for inputs of certain shapes, kept from one run to the next.
struct Prepared {
  const Chain* key = nullptr;
  Chain chain;  ///< without operands that a step ignores
  Chain original;
  std::vector<ChainInput> inputs;
  std::vector<Segment> segments;
};

/// Steps [first, last] as a chain of their own.
Segment cut(const Chain& chain, size_t first, size_t last) {
  Segment s;
  s.first = first;
  s.last = last;
  const auto inputs = static_cast<size_t>(chain.inputs);
  std::vector<int32_t> local(inputs + chain.steps.size(), -1);
  auto use = [&](int32_t v) {
    const auto value = static_cast<size_t>(v);
    if (v < 0 || value >= inputs + first || local[value] >= 0) return;
    local[value] = static_cast<int32_t>(s.inputs.size());
    s.inputs.push_back(value);
  };
  for (size_t k = first; k <= last; ++k) {
    use(chain.steps[k].lhs);
    use(chain.steps[k].rhs);
  }
  s.chain.inputs = static_cast<int32_t>(s.inputs.size());
  s.chain.scalars = chain.scalars;
  for (size_t k = first; k <= last; ++k) {
    ChainStep step = chain.steps[k];
    step.lhs = local[static_cast<size_t>(step.lhs)];
    if (step.rhs >= 0) step.rhs = local[static_cast<size_t>(step.rhs)];
    local[inputs + k] = s.chain.inputs + static_cast<int32_t>(k - first);
    s.chain.steps.push_back(step);
  }
  // What lives on: outputs of the chain, and values that later steps read.
  for (size_t k = first; k <= last; ++k) {
    const auto v = static_cast<int32_t>(inputs + k);
    bool lives = std::find(chain.outputs.begin(), chain.outputs.end(), v) != chain.outputs.end();
    for (size_t l = last + 1; l < chain.steps.size() && !lives; ++l) {
      lives = chain.steps[l].lhs == v || chain.steps[l].rhs == v;
    }
    if (!lives) continue;
    s.chain.outputs.push_back(local[static_cast<size_t>(v)]);
    s.made.push_back(static_cast<size_t>(v));
  }
  return s;
}

/// Cuts the chain into the longest segments that run in strips.
void cut_segments(Prepared& p) {
  const size_t count = p.chain.steps.size();
  std::vector<ChainInput> values = p.inputs;
  for (size_t k = 0; k < count;) {
    Segment best = cut(p.chain, k, k);
    for (size_t last = count - 1; last > k; --last) {
      Segment s = cut(p.chain, k, last);
      std::vector<ChainInput> inputs;
      for (const size_t v : s.inputs) inputs.push_back(values[v]);
      s.plan = plan_chain(s.chain, inputs);
      if (!s.plan.strips) continue;
      best = std::move(s);
      break;
    }
    if (!best.plan.strips) {
      std::vector<ChainInput> inputs;
      for (const size_t v : best.inputs) inputs.push_back(values[v]);
      best.plan = plan_chain(best.chain, inputs);  // for the shape of its result
      best.plan.strips = false;
    }
    const auto local = static_cast<size_t>(best.chain.inputs);
    for (size_t i = 0; i <= best.last - best.first; ++i) {
      values.push_back(describe_value(best.plan.shapes[local + i], best.plan.dtypes[local + i]));
    }
    k = best.last + 1;
    p.segments.push_back(std::move(best));
  }
  for (Segment& s : p.segments) {
    if (s.plan.strips) s.strips = std::make_unique<StripRun>(s.chain, s.plan);
  }
}

bool same_chain(const Chain& a, const Chain& b) {
  return a.inputs == b.inputs && a.steps == b.steps && a.scalars == b.scalars && a.outputs == b.outputs;
}

/// The prepared form of a chain; the few that a thread used last are kept.
Prepared& prepare(const Chain& chain, std::span<const View* const> inputs) {
  constexpr size_t kKept = 64;
  thread_local std::unique_ptr<Prepared> kept[kKept];
  auto& place = kept[(reinterpret_cast<uintptr_t>(&chain) / alignof(Chain)) % kKept];
  if (place && place->key == &chain && place->inputs.size() == inputs.size() &&
      same_chain(place->original, chain)) {
    bool same = true;
    for (size_t i = 0; i < inputs.size() && same; ++i) same = place->inputs[i] == describe_input(*inputs[i]);
    if (same) return *place;
  }
  place = std::make_unique<Prepared>();
  Prepared& p = *place;
  p.key = &chain;
  p.original = p.chain = chain;
  for (ChainStep& step : p.chain.steps) {
    const ChainKind kind = chain_op(step.op).kind;
    if (kind != ChainKind::kBinary && kind != ChainKind::kSpread) step.rhs = -1;  // scratch
  }
  for (const View* v : inputs) p.inputs.push_back(describe_input(*v));
  cut_segments(p);
  return p;
}

/// Whether writing `target` could change what `v` reads.
bool shares_bytes(const View& target, const View& v) {
  if (!(target.buffer == v.buffer)) return false;
  int64_t begin_a, end_a, begin_b, end_b;
  byte_range(target, &begin_a, &end_a);
  byte_range(v, &begin_b, &end_b);
  return begin_a < end_b && begin_b < end_a;
}

/// Whether strips can be written straight into `target`: rows of the value are rows of the target.
bool takes_strips(const ChainPlan& plan, size_t v, const View& target) {
  const ChainShape& s = plan.shapes[v];
  if (target.rank != s.rank || !same_dtype(target.dtype, plan.dtypes[v])) return false;
  if (target.packed() && std::equal(s.shape, s.shape + s.rank, target.shape)) return true;
  return !plan.flat && s.rank <= 2 && target.stride[target.rank - 1] == 1;
}

View fresh_value(const ChainPlan& plan, size_t v, ChainHost& host) {
  const ChainShape& s = plan.shapes[v];
  const bool full = std::equal(s.shape, s.shape + s.rank, s.valid);
  View out = host.alloc(plan.dtypes[v], {s.shape, static_cast<size_t>(s.rank)}, !full);
  std::copy_n(s.valid, s.rank, out.valid);
  out.fully_valid = full;
  return out;
}

/// Runs a segment in strips. `target(value)` is where the caller wants a value of the whole chain, or
/// nullptr; the first `chain_inputs` values are those that the chain was given.
template <class Target>
void run_segment(Segment& segment, std::span<View> values, size_t chain_inputs,
                 std::span<const Scalar> scalars, ChainHost& host, Target target) {
  const Chain& chain = segment.chain;
  const ChainPlan& plan = segment.plan;
  const size_t inputs = segment.inputs.size();
  std::vector<View> local(inputs + chain.steps.size());
  // Which values rest on storage that nothing ever wrote (02 O-209).
  std::vector<uint8_t> unwritten(local.size(), 0);
  for (size_t i = 0; i < inputs; ++i) {
    local[i] = values[segment.inputs[i]];
    unwritten[i] = never_written(local[i]);
  }
  for (size_t k = 0; k < chain.steps.size(); ++k) {
    const ChainStep& step = chain.steps[k];
    if (plan.before[k]) local[inputs + k] = run_step(chain, k, local, scalars, host);
    const bool reads_lhs = chain_op(step.op).kind != ChainKind::kSpread;
    unwritten[inputs + k] = (reads_lhs && unwritten[static_cast<size_t>(step.lhs)]) ||
                            (step.rhs >= 0 && unwritten[static_cast<size_t>(step.rhs)]);
  }
  StripRun& run = *segment.strips;
  run.bind(local);
  run.set_scalars(scalars);
  for (size_t o = 0; o < chain.outputs.size(); ++o) {
    const auto v = static_cast<size_t>(chain.outputs[o]);
    View& value = values[segment.made[o]];
    if (plan.before[v - inputs]) {
      value = local[v];
      continue;
    }
    const View* wanted = target(segment.made[o]);
    bool direct = wanted != nullptr && takes_strips(plan, v, *wanted);
    for (size_t i = 0; i < chain_inputs && direct; ++i) direct = !shares_bytes(*wanted, values[i]);
    if (direct) {
      value = *wanted;
      std::copy_n(plan.shapes[v].valid, value.rank, value.valid);
      value.refresh_fully_valid();
    } else {
      value = fresh_value(plan, v, host);
      value.buffer->written.all = !unwritten[v];
    }
    run.output(v, value);
  }
  run.run();
}

}  // namespace

bool chain_runs_in_strips(const Chain& chain, std::span<const View* const> inputs) {
  const Prepared& p = prepare(chain, inputs);
  return p.segments.size() == 1 && p.segments[0].strips != nullptr;
}

void run_chain(const Chain& chain, std::span<const View* const> inputs, std::span<const Scalar> scalars,
               ChainHost& host, std::span<View> results) {
  Prepared& prepared = prepare(chain, inputs);
  std::vector<View> values(inputs.size() + chain.steps.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[i] = *inputs[i];
  auto target = [&](size_t v) -> const View* {
    for (size_t o = 0; o < chain.outputs.size(); ++o) {
      if (static_cast<size_t>(chain.outputs[o]) == v && !results[o].empty()) return &results[o];
    }
    return nullptr;
  };
  std::vector<uint8_t> announced(inputs.size(), 0);
  for (Segment& s : prepared.segments) {
    if (s.strips == nullptr) {  // its executor declares the accesses
      values[inputs.size() + s.first] = run_step(prepared.chain, s.first, values, scalars, host);
      continue;
    }
    for (const size_t v : s.inputs) {
      if (v >= inputs.size() || announced[v] || values[v].buffer->kind == BufferKind::kOnChip) continue;
      host.access(values[v]);
      announced[v] = 1;
    }
    run_segment(s, values, inputs.size(), scalars, host, target);
  }
  for (size_t o = 0; o < chain.outputs.size(); ++o) {
    const View& value = values[static_cast<size_t>(chain.outputs[o])];
    if (results[o].empty()) {
      results[o] = value;
      continue;
    }
    if (value.buffer == results[o].buffer) continue;  // written in place
    View into = results[o];
    std::copy_n(value.valid, into.rank, into.shape);
    copy_cells(into, valid_region(value));
  }
}

}  // namespace pypto::vm
