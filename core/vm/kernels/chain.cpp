// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/chain.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "core/vm/kernels/chain_plan.h"
#include "core/vm/kernels/chain_strips.h"
#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

// ------------------------------------------------------------------ one operation at a time

/// A step as an ordinary operation call.
class StepCall final : public OpCall {
 public:
  StepCall(const Chain& chain, const ChainStep& step, std::span<const View* const> values,
           std::span<const Scalar> scalars, ChainHost& host)
      : chain_(chain), step_(step), values_(values), scalars_(scalars), host_(host) {
    op = step.op;
    if (step.op == ir::OpId::k_cast) attributes_.set(ir::AttrKey::k_mode, static_cast<int64_t>(step.mode));
    attrs = &attributes_;
  }
  bool has(int p) const override { return p == 0 || (p == 1 && (step_.rhs >= 0 || step_.scalar >= 0)); }
  const View& view(int p) const override {
    return *values_[static_cast<size_t>(p == 0 ? step_.lhs : step_.rhs)];
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
  void report(Diagnostic d) override { host_.report(std::move(d)); }
  std::string operand_name(int) const override { return {}; }

  View result;

 private:
  const Chain& chain_;
  const ChainStep& step_;
  std::span<const View* const> values_;
  std::span<const Scalar> scalars_;
  ChainHost& host_;
  ir::AttrMap attributes_;
};

/// `at`: the step's number in the chain that the host knows.
View run_step(const Chain& chain, size_t k, size_t at, std::span<const View* const> values,
              std::span<const Scalar> scalars, ChainHost& host) {
  host.at_step(at);
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
  bool has_before = false;     ///< some steps run before the loop
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
    for (size_t last = count; last-- > k;) {
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
    s.has_before = std::find(s.plan.before.begin(), s.plan.before.end(), 1) != s.plan.before.end();
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
  if (place && place->key == &chain && place->inputs.size() == inputs.size()) {
    const uint64_t id = place->original.id;
    bool same = id != 0 || chain.id != 0 ? id == chain.id : same_chain(place->original, chain);
    for (size_t i = 0; i < inputs.size() && same; ++i) same = described_by(place->inputs[i], *inputs[i]);
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

/// Whether writing `target` could change what `v` reads. Buffers may lie over the same memory.
bool shares_bytes(const View& target, const View& v) {
  int64_t begin_a, end_a, begin_b, end_b;
  byte_range(target, &begin_a, &end_a);
  byte_range(v, &begin_b, &end_b);
  const uint8_t* a = target.buffer->data;
  const uint8_t* b = v.buffer->data;
  return a + begin_a < b + end_b && b + begin_b < a + end_a;
}

/// Whether both views are the same cells in the same places.
bool same_cells(const View& a, const View& b) {
  if (a.data() != b.data() || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (a.shape[i] != b.shape[i] || (a.shape[i] != 1 && a.stride[i] != b.stride[i])) return false;
  }
  return true;
}

/// Whether strips can be written straight into `target`: rows of the value are rows of the target.
bool takes_strips(const ChainPlan& plan, size_t v, const View& target) {
  const ChainShape& s = plan.shapes[v];
  if (target.rank != s.rank || !same_dtype(target.dtype, plan.dtypes[v])) return false;
  if (target.packed() && std::equal(s.shape, s.shape + s.rank, target.shape)) return true;
  return !plan.flat && s.rank <= 2 && target.stride[target.rank - 1] == 1;
}

/// A value as its operation would make it, without storage.
View value_like(const ChainPlan& plan, size_t v) {
  const ChainShape& s = plan.shapes[v];
  View out;
  out.dtype = plan.dtypes[v];
  out.set_packed(s.rank, s.shape);
  std::copy_n(s.valid, s.rank, out.valid);
  out.refresh_fully_valid();
  return out;
}

View fresh_value(const ChainPlan& plan, size_t v, ChainHost& host) {
  const ChainShape& s = plan.shapes[v];
  const bool full = std::equal(s.shape, s.shape + s.rank, s.valid);
  View out = host.alloc(plan.dtypes[v], {s.shape, static_cast<size_t>(s.rank)}, !full);
  std::copy_n(s.valid, s.rank, out.valid);
  out.fully_valid = full;
  return out;
}

/// The first step of the whole chain that reads value `v`.
size_t first_reader(const Chain& chain, size_t v) {
  for (size_t k = 0; k < chain.steps.size(); ++k) {
    if (chain.steps[k].lhs == static_cast<int32_t>(v) || chain.steps[k].rhs == static_cast<int32_t>(v))
      return k;
  }
  return 0;
}

/// The last step of the whole chain that reads value `v`.
size_t last_reader(const Chain& chain, size_t v) {
  size_t last = 0;
  for (size_t k = 0; k < chain.steps.size(); ++k) {
    const ChainStep& s = chain.steps[k];
    if (s.lhs == static_cast<int32_t>(v) || s.rhs == static_cast<int32_t>(v)) last = k;
  }
  return last;
}

/// Outputs from this size on are written past the caches.
constexpr int64_t kStreamBytes = int64_t{8} << 20;

/// Room of a run, kept by its thread.
struct Scratch {
  std::vector<View> made;           ///< by step
  std::vector<const View*> values;  ///< by value of the chain; null until it exists
  std::vector<const View*> local;   ///< by value of a segment
  std::vector<View> before;         ///< values of a segment that are made before its loop
  std::vector<Mark> unwritten;      ///< by value of a segment
};

/// One run of a chain.
class ChainRun {
 public:
  ChainRun(Prepared& prepared, std::span<const View* const> inputs, std::span<const Scalar> scalars,
           ChainHost& host, std::span<View> results, Scratch& scratch)
      : chain_(prepared.chain),
        inputs_(inputs),
        scalars_(scalars),
        host_(host),
        results_(results),
        scratch_(scratch) {}
  ~ChainRun() {
    for (size_t k = 0; k < std::min(chain_.steps.size(), scratch_.made.size()); ++k)
      scratch_.made[k].buffer = BufferRef();
    for (View& v : scratch_.before) v.buffer = BufferRef();
  }
  void run(Prepared& prepared) {
    const auto inputs = inputs_;
    const size_t values = inputs.size() + chain_.steps.size();
    if (scratch_.made.size() < chain_.steps.size()) scratch_.made.resize(chain_.steps.size());
    if (scratch_.values.size() < values) scratch_.values.resize(values);
    std::copy(inputs.begin(), inputs.end(), scratch_.values.begin());
    for (Segment& s : prepared.segments) {
      if (s.strips == nullptr || partly_unspecified(s)) {  // executors declare the accesses
        for (size_t k = s.first; k <= s.last; ++k) {
          const View& made = set(inputs.size() + k,
                                 run_step(chain_, k, k, {scratch_.values.data(), values}, scalars_, host_));
          const int32_t scalar = chain_.steps[k].scalar;
          if (const Mark m = scalar >= 0 ? host_.scalar_mark(static_cast<size_t>(scalar)) : Mark{0})
            mark_unspecified(made, m);
        }
        continue;
      }
      for (const size_t v : s.inputs) {
        if (v >= inputs.size() || (announced_ >> v & 1) != 0 ||
            inputs[v]->buffer->kind == BufferKind::kOnChip)
          continue;
        if (!host_.declared(v)) {
          host_.at_step(first_reader(chain_, v));
          host_.access(*inputs[v]);
        }
        announced_ |= uint64_t{1} << v;
      }
      run_segment(s);
    }
    finish();
  }

 private:
  void run_segment(Segment& segment);
  void finish();

  /// Whether a value that an earlier segment made rests on some unspecified cells: strips know all or
  /// nothing.
  bool partly_unspecified(const Segment& s) const {
    return std::any_of(s.inputs.begin(), s.inputs.end(), [&](size_t v) {
      return v >= inputs_.size() && !scratch_.values[v]->buffer->written.all &&
             !never_written(*scratch_.values[v]) && !specified(*scratch_.values[v]);
    });
  }
  /// The value `v` of the chain exists.
  View& set(size_t v, View value) {
    View& made = scratch_.made[v - inputs_.size()];
    made = std::move(value);
    scratch_.values[v] = &made;
    return made;
  }
  size_t output_of(size_t v) const {
    const auto at = std::find(chain_.outputs.begin(), chain_.outputs.end(), static_cast<int32_t>(v));
    return static_cast<size_t>(at - chain_.outputs.begin());
  }
  /// Where output `o`, the value `v` of a segment and `made` of the chain, is to be written, if strips can be
  /// written there.
  bool find_place(const Segment& segment, size_t v, size_t made, size_t o, View* target, bool* in_place);
  static bool same_shape(const ChainShape& s, const View& v) {
    return s.rank == v.rank && std::equal(s.shape, s.shape + s.rank, v.shape);
  }

  const Chain& chain_;
  std::span<const View* const> inputs_;
  std::span<const Scalar> scalars_;
  ChainHost& host_;
  std::span<View> results_;
  Scratch& scratch_;
  uint64_t announced_ = 0, placed_ = 0;  // bits by input, by output
};

bool ChainRun::find_place(const Segment& segment, size_t v, size_t made, size_t o, View* target,
                          bool* in_place) {
  const ChainPlan& plan = segment.plan;
  if (!results_[o].empty()) {
    *target = results_[o];
  } else if (!host_.place(o, value_like(plan, v), target)) {
    return false;
  }
  if (!takes_strips(plan, v, *target)) return false;
  // Later segments are planned for packed values.
  if (!target->packed() && last_reader(chain_, made) > segment.last) return false;
  *in_place = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!shares_bytes(*target, *inputs_[i])) continue;
    // In place: each strip is read before it is written.
    if (!same_cells(*target, *inputs_[i]) || !same_shape(plan.shapes[v], *inputs_[i]) ||
        last_reader(chain_, i) > made - inputs_.size())
      return false;
    *in_place = true;
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if ((placed_ >> i & 1) != 0 &&
        shares_bytes(*target, *scratch_.values[static_cast<size_t>(chain_.outputs[i])]))
      return false;
  }
  return true;
}

/// Runs a segment in strips.
void ChainRun::run_segment(Segment& segment) {
  const Chain& chain = segment.chain;
  const ChainPlan& plan = segment.plan;
  const size_t inputs = segment.inputs.size(), count = inputs + chain.steps.size();
  auto& local = scratch_.local;
  auto& unwritten = scratch_.unwritten;  // what a value rests on if nothing of it is specified (02 O-209)
  if (local.size() < count) {
    local.resize(count);
    unwritten.resize(count);
  }
  for (size_t i = 0; i < inputs; ++i) {
    local[i] = scratch_.values[segment.inputs[i]];
    unwritten[i] = never_written(*local[i]) ? mark_of_unwritten(*local[i]->buffer) : Mark{0};
  }
  if (segment.has_before && scratch_.before.size() < chain.steps.size())
    scratch_.before.resize(chain.steps.size());
  for (size_t k = 0; k < chain.steps.size(); ++k) {
    const ChainStep& step = chain.steps[k];
    if (plan.before[k]) {
      scratch_.before[k] = run_step(chain, k, segment.first + k, {local.data(), count}, scalars_, host_);
      local[inputs + k] = &scratch_.before[k];
    }
    const bool reads_lhs = chain_op(step.op).kind != ChainKind::kSpread;
    Mark mark = reads_lhs ? unwritten[static_cast<size_t>(step.lhs)] : Mark{0};
    if (mark == 0 && step.rhs >= 0) mark = unwritten[static_cast<size_t>(step.rhs)];
    if (mark == 0 && step.scalar >= 0) mark = host_.scalar_mark(static_cast<size_t>(step.scalar));
    unwritten[inputs + k] = mark;
  }
  StripRun& run = *segment.strips;
  run.bind({local.data(), count});
  run.set_scalars(scalars_);
  for (size_t o = 0; o < chain.outputs.size(); ++o) {
    const auto v = static_cast<size_t>(chain.outputs[o]);
    const size_t made = segment.made[o];
    if (plan.before[v - inputs]) {
      set(made, *local[v]);
      continue;
    }
    const size_t wanted = output_of(made);
    View target;
    bool in_place = false;
    if (wanted < chain_.outputs.size() && !unwritten[v] &&
        find_place(segment, v, made, wanted, &target, &in_place)) {
      std::copy_n(plan.shapes[v].valid, target.rank, target.valid);
      target.refresh_fully_valid();
      placed_ |= uint64_t{1} << wanted;
      if (results_[wanted].empty()) host_.placed(wanted, target);
    } else {
      in_place = true;  // storage of the pool, which is used again soon
      target = fresh_value(plan, v, host_);
      if (unwritten[v] != 0) {
        mark_unwritten(*target.buffer, unwritten[v]);
      } else if (!target.fully_valid) {
        leave_padding(target, inputs_[0]);
      }
    }
    const bool streams = !in_place && plan.rows * plan.columns * dtype_bytes(plan.dtypes[v]) >= kStreamBytes;
    run.output(v, set(made, std::move(target)), streams);
  }
  run.run();
}

void ChainRun::finish() {
  for (size_t o = 0; o < chain_.outputs.size(); ++o) {
    const auto v = static_cast<size_t>(chain_.outputs[o]);
    if (results_[o].empty()) {
      results_[o] = std::move(scratch_.made[v - inputs_.size()]);
      continue;
    }
    const View& value = *scratch_.values[v];
    if (value.buffer == results_[o].buffer) continue;  // written in place
    View into = results_[o];
    std::copy_n(value.valid, into.rank, into.shape);
    copy_cells(into, valid_region(value));
  }
}

}  // namespace

uint64_t new_chain_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bool chain_runs_in_strips(const Chain& chain, std::span<const View* const> inputs) {
  const Prepared& p = prepare(chain, inputs);
  return p.segments.size() == 1 && p.segments[0].strips != nullptr;
}

void run_chain(const Chain& chain, std::span<const View* const> inputs, std::span<const Scalar> scalars,
               ChainHost& host, std::span<View> results) {
  thread_local Scratch scratch;
  Prepared& prepared = prepare(chain, inputs);
  ChainRun(prepared, inputs, scalars, host, results, scratch).run(prepared);
}

}  // namespace pypto::vm
