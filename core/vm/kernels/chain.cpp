// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/chain.h"

#include <algorithm>
#include <memory>

#include "core/vm/kernels/chain_plan.h"
#include "core/vm/kernels/chain_strips.h"
#include "core/vm/ops/elementwise.h"

namespace pypto::vm {
namespace {

// ------------------------------------------------------------------ one operation at a time

/// A step as an ordinary operation call.
class StepCall final : public OpCall {
public:
    StepCall(const Chain& chain, const ChainStep& step, std::span<const View> values, std::span<const Scalar> scalars,
             ChainHost& host)
        : chain_(chain), step_(step), values_(values), scalars_(scalars), host_(host) {
        op = step.op;
        if (step.op == ir::OpId::k_cast) attributes_.set(ir::AttrKey::k_mode, static_cast<int64_t>(step.mode));
        attrs = &attributes_;
    }
    bool has(int p) const override { return p == 0 || (p == 1 && (step_.rhs >= 0 || step_.scalar >= 0)); }
    const View& view(int p) const override { return values_[static_cast<size_t>(p == 0 ? step_.lhs : step_.rhs)]; }
    bool is_scalar(int p) const override { return p == 1 && step_.scalar >= 0; }
    Scalar scalar(int) const override { return scalars_[static_cast<size_t>(step_.scalar)]; }
    DType scalar_dtype(int) const override { return chain_.scalars[static_cast<size_t>(step_.scalar)]; }
    std::span<const int64_t> list(int) const override { return {}; }
    DType result_dtype(int) const override { return step_.dtype; }
    bool result_is_tile(int) const override { return step_.is_tile; }
    void set_result(View value, int) override { result = std::move(value); }
    void set_result(Scalar, int) override {}
    View alloc(DType dtype, std::span<const int64_t> shape, bool zero) override { return host_.alloc(dtype, shape, zero); }
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

void run_one_by_one(const Chain& chain, std::span<const View* const> inputs, std::span<const Scalar> scalars,
                    ChainHost& host, std::span<View> results) {
    std::vector<View> values(inputs.size() + chain.steps.size());
    for (size_t i = 0; i < inputs.size(); ++i) values[i] = *inputs[i];
    for (size_t k = 0; k < chain.steps.size(); ++k) values[inputs.size() + k] = run_step(chain, k, values, scalars, host);
    for (size_t o = 0; o < chain.outputs.size(); ++o) {
        const View& value = values[static_cast<size_t>(chain.outputs[o])];
        if (results[o].empty()) {
            results[o] = value;
            continue;
        }
        View target = results[o];
        for (int a = 0; a < target.rank; ++a) target.shape[a] = value.valid[a];
        copy_cells(target, valid_region(value));
    }
}

/// Whether writing `target` could change what `v` reads.
bool shares_bytes(const View& target, const View& v) {
    if (!(target.buffer == v.buffer)) return false;
    int64_t begin_a, end_a, begin_b, end_b;
    byte_range(target, &begin_a, &end_a);
    byte_range(v, &begin_b, &end_b);
    return begin_a < end_b && begin_b < end_a;
}

}  // namespace

bool chain_runs_in_strips(const Chain& chain, std::span<const View* const> inputs) {
    return plan_chain(chain, inputs).strips;
}

namespace {

/// A chain prepared for inputs of certain shapes, kept from one run to the next.
struct Prepared {
    struct Input {
        DType dtype;
        int8_t rank;
        bool fully_valid;
        int64_t shape[kMaxRank], stride[kMaxRank];
    };
    const Chain* key;
    Chain chain;
    std::vector<Input> inputs;
    ChainPlan plan;
    std::unique_ptr<StripRun> strips;
};

bool same_steps(const Chain& a, const Chain& b) {
    return a.inputs == b.inputs && a.steps == b.steps && a.scalars == b.scalars && a.outputs == b.outputs;
}

bool fits(const Prepared& p, const Chain& chain, std::span<const View* const> inputs) {
    if (p.key != &chain || p.inputs.size() != inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const View& v = *inputs[i];
        const Prepared::Input& known = p.inputs[i];
        const bool same = v.dtype == known.dtype && v.rank == known.rank && v.fully_valid && known.fully_valid &&
                          std::equal(v.shape, v.shape + v.rank, known.shape) &&
                          std::equal(v.stride, v.stride + v.rank, known.stride);
        if (!same) return false;
    }
    return same_steps(p.chain, chain);
}

/// The prepared form of a chain; the few that a thread used last are kept.
Prepared& prepare(const Chain& chain, std::span<const View* const> inputs) {
    constexpr size_t kKept = 64;
    thread_local std::unique_ptr<Prepared> kept[kKept];
    auto& place = kept[(reinterpret_cast<uintptr_t>(&chain) / alignof(Chain)) % kKept];
    if (place && fits(*place, chain, inputs)) return *place;
    place = std::make_unique<Prepared>();
    Prepared& p = *place;
    p.key = &chain;
    p.chain = chain;
    for (const View* v : inputs) {
        Prepared::Input in{v->dtype, v->rank, v->fully_valid, {}, {}};
        std::copy_n(v->shape, kMaxRank, in.shape);
        std::copy_n(v->stride, kMaxRank, in.stride);
        p.inputs.push_back(in);
    }
    p.plan = plan_chain(p.chain, inputs);
    if (p.plan.strips) p.strips = std::make_unique<StripRun>(p.chain, p.plan);
    return p;
}

}  // namespace

void run_chain(const Chain& chain, std::span<const View* const> inputs, std::span<const Scalar> scalars, ChainHost& host,
               std::span<View> results) {
    Prepared& prepared = prepare(chain, inputs);
    const ChainPlan& plan = prepared.plan;
    if (!plan.strips) return run_one_by_one(chain, inputs, scalars, host, results);
    std::vector<View> values(inputs.size() + chain.steps.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        values[i] = *inputs[i];
        if (values[i].buffer->kind != BufferKind::kOnChip) host.access(values[i]);
    }
    for (size_t k = 0; k < chain.steps.size(); ++k) {
        if (plan.before[k]) values[inputs.size() + k] = run_step(chain, k, values, scalars, host);
    }
    StripRun& run = *prepared.strips;
    run.bind(values);
    run.set_scalars(scalars);
    // Which values rest on storage that nothing ever wrote (02 O-209).
    std::vector<uint8_t> unwritten(values.size(), 0);
    for (size_t i = 0; i < inputs.size(); ++i) unwritten[i] = never_written(values[i]);
    for (size_t k = 0; k < chain.steps.size(); ++k) {
        const ChainStep& step = chain.steps[k];
        const bool reads_lhs = chain_op(step.op).kind != ChainKind::kSpread;
        unwritten[inputs.size() + k] = (reads_lhs && unwritten[static_cast<size_t>(step.lhs)]) ||
                                       (step.rhs >= 0 && unwritten[static_cast<size_t>(step.rhs)]);
    }
    std::vector<std::pair<size_t, View>> copies;  // outputs whose target overlaps an input
    for (size_t o = 0; o < chain.outputs.size(); ++o) {
        const auto v = static_cast<size_t>(chain.outputs[o]);
        if (v >= inputs.size() && plan.before[v - inputs.size()]) {
            if (results[o].empty()) {
                results[o] = values[v];
            } else {
                copies.emplace_back(o, values[v]);
            }
            continue;
        }
        const ChainShape& s = plan.shapes[v];
        View target = results[o];
        bool direct = !target.empty() && !plan.flat && target.stride[target.rank - 1] == 1 && target.rank == s.rank &&
                      same_dtype(target.dtype, plan.dtypes[v]) && s.rank <= 2;
        direct = direct || (!target.empty() && target.packed() && target.rank == s.rank &&
                            same_dtype(target.dtype, plan.dtypes[v]) && std::equal(s.shape, s.shape + s.rank, target.shape));
        for (size_t i = 0; i < inputs.size() && direct; ++i) direct = !shares_bytes(target, *inputs[i]);
        if (target.empty() || !direct) {
            bool full = true;
            for (int a = 0; a < s.rank; ++a) full = full && s.valid[a] == s.shape[a];
            View out = host.alloc(plan.dtypes[v], {s.shape, static_cast<size_t>(s.rank)}, !full);
            out.buffer->written.all = !unwritten[v];
            for (int a = 0; a < s.rank; ++a) out.valid[a] = s.valid[a];
            out.fully_valid = full;
            if (!target.empty()) {
                copies.emplace_back(o, out);
            } else {
                results[o] = out;
            }
            target = out;
        }
        run.output(v, target);
    }
    run.run();
    for (const auto& [o, value] : copies) {
        View target = results[o];
        for (int a = 0; a < target.rank; ++a) target.shape[a] = value.valid[a];
        copy_cells(target, valid_region(value));
    }
}

}  // namespace pypto::vm
