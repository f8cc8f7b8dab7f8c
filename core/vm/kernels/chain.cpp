// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/chain.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/vm/kernels/chain_plan.h"
#include "core/vm/ops/elementwise.h"

namespace pypto::vm {
namespace {

/// Elements of a strip: 4 KiB of FP32, so that half a dozen values fit the first-level cache.
constexpr int64_t kStripElements = 1024;

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

// ------------------------------------------------------------------ strips

/// Memory of one value during a strip.
struct Slot {
    uint8_t* data = nullptr;  ///< of this strip
    // Where the data comes from or goes to beyond the strip; null for values that live in the strip only.
    uint8_t* base = nullptr;
    int64_t pitch = 0;        ///< bytes between rows of `base`
    int64_t width = 0;        ///< bytes of an element
    uint8_t* buffer = nullptr;  ///< strip storage, when `base` cannot be used directly
    ChainPart part = ChainPart::kNone;
    bool copies_out = false;  ///< computed in `buffer`, then copied to `base`
};

/// How a binary step covers its strip.
enum class Cover : uint8_t {
    kWhole,     ///< one kernel call
    kRowsLhs,   ///< one call per row, the left operand one element per row
    kRowsRhs,
};

/// A step with its kernels chosen.
struct Step {
    ChainKind kind = ChainKind::kNo;
    Cover cover = Cover::kWhole;
    bool converts_lhs = false, converts_rhs = false, narrows = false;
    bool lhs_one = false, rhs_one = false;
    ChainPart lhs_part = ChainPart::kNone, rhs_part = ChainPart::kNone, out_part = ChainPart::kNone;
    int64_t width = 0;  ///< bytes of an element of the computing dtype
    BinaryKernel binary = nullptr;
    UnaryKernel unary = nullptr;
    ReduceKernel reduce = nullptr;
    DType lhs_dtype = DType::kNone, rhs_dtype = DType::kNone;
    DType compute = DType::kNone, dtype = DType::kNone;
    size_t lhs = 0, rhs = 0, out = 0;  ///< slots
    CastMode mode = CastMode::kRound;
};

class StripRun {
public:
    StripRun(const Chain& chain, const ChainPlan& plan, std::span<const View> values, size_t input_count)
        : chain_(chain), plan_(plan), values_(values), input_count_(input_count) {
        choose_strip();
        make_slots();
        make_steps();
    }

    /// Scalar operands as elements of the dtype their step computes in.
    void set_scalars(std::span<const Scalar> scalars) {
        for (const auto& [k, compute] : scalar_steps_) {
            const auto index = static_cast<size_t>(chain_.steps[k].scalar);
            const DType from = chain_.scalars[index];
            uint8_t* element = scalar_elements_.data() + k * 8;
            if (is_float(from)) {
                write_float(compute, element, scalars[index].f);
            } else if (is_float(compute)) {
                cast_row(from == DType::kUInt64 ? from : DType::kInt64, &scalars[index].i, compute, element, 1,
                         CastMode::kRound);
            } else {
                write_integer(compute, element, scalars[index].i);
            }
        }
    }

    /// Declares that value `v` is written to `target` (rows of the valid region).
    void output(size_t v, const View& target) {
        Slot& s = slots_[v];
        s.base = target.data();
        s.pitch = row_pitch(target, s.width);
        const bool contiguous = strip_rows_ == 1 || (s.part == ChainPart::kColumn ? s.pitch == s.width
                                                                                  : s.pitch == plan_.columns * s.width);
        s.copies_out = !contiguous;
    }

    void run() {
        assign_buffers();
        for (int64_t row = 0; row < plan_.rows; row += strip_rows_) {
            const int64_t rows = std::min(strip_rows_, plan_.rows - row);
            for (int64_t column = 0; column < plan_.columns; column += strip_columns_) {
                strip(row, rows, column, std::min(strip_columns_, plan_.columns - column));
            }
        }
    }

private:
    int64_t row_pitch(const View& v, int64_t width) const {
        if (plan_.flat || v.rank < 2) return 0;
        // Merged leading axes have one pitch; the innermost of them that is longer than 1 tells it.
        for (int a = v.rank - 2; a >= 0; --a) {
            if (v.shape[a] != 1) {
                int64_t inner = 1;
                for (int b = a + 1; b <= v.rank - 2; ++b) inner *= v.shape[b];
                return v.stride[a] / std::max<int64_t>(inner, 1) * width;
            }
        }
        return 0;
    }

    void choose_strip() {
        bool whole_rows = false;
        for (const ChainStep& step : chain_.steps) whole_rows = whole_rows || chain_op(step.op).kind == ChainKind::kReduce;
        if (plan_.columns >= kStripElements) {
            strip_rows_ = 1;
            strip_columns_ = whole_rows ? plan_.columns : kStripElements;
        } else {
            strip_columns_ = plan_.columns;
            strip_rows_ = std::min(plan_.rows, std::max<int64_t>(1, kStripElements / plan_.columns));
        }
    }

    int64_t strip_elements() const { return strip_rows_ * strip_columns_; }

    void make_slots() {
        const size_t values = input_count_ + chain_.steps.size();
        slots_.resize(values + chain_.steps.size());  // one more per step for a scalar operand
        for (size_t v = 0; v < values; ++v) {
            Slot& s = slots_[v];
            s.part = plan_.parts[v];
            s.width = dtype_bytes(plan_.dtypes[v]);
            const bool given = v < input_count_ || plan_.before[v - input_count_];
            if (given) {
                s.base = values_[v].data();
                s.pitch = row_pitch(values_[v], s.width);
            }
        }
        scalar_elements_.resize(chain_.steps.size() * 8);
    }

    void make_steps() {
        for (size_t k = 0; k < chain_.steps.size(); ++k) {
            if (plan_.before[k]) continue;
            const ChainStep& from = chain_.steps[k];
            const ChainOp op = chain_op(from.op);
            Step s;
            s.kind = op.kind;
            s.lhs = static_cast<size_t>(from.lhs);
            s.out = input_count_ + k;
            s.dtype = from.dtype;
            s.mode = from.mode;
            s.lhs_dtype = plan_.dtypes[s.lhs];
            s.compute = compute_dtype(s.dtype, {s.lhs_dtype});
            if (from.rhs >= 0) {
                s.rhs = static_cast<size_t>(from.rhs);
                s.rhs_dtype = plan_.dtypes[s.rhs];
                if (compute_dtype(s.dtype, {s.rhs_dtype}) != s.dtype) s.compute = DType::kFp32;
            }
            if (from.scalar >= 0) {
                s.rhs = input_count_ + chain_.steps.size() + k;
                s.rhs_dtype = s.compute;
                Slot& slot = slots_[s.rhs];
                slot.part = ChainPart::kOne;
                slot.width = dtype_bytes(s.compute);
                slot.base = scalar_elements_.data() + k * 8;
                scalar_steps_.push_back({k, s.compute});
            }
            switch (op.kind) {
                case ChainKind::kBinary: choose_binary(s, op.binary); break;
                case ChainKind::kUnary: s.unary = unary_kernel(op.unary, s.compute); break;
                case ChainKind::kReduce: s.reduce = reduce_kernel(op.reduce, s.compute); break;
                case ChainKind::kCast: s.compute = s.lhs_dtype; break;
                case ChainKind::kSpread: s.compute = s.dtype; break;
                case ChainKind::kNo: break;
            }
            s.width = dtype_bytes(s.compute);
            s.out_part = slots_[s.out].part;
            s.lhs_part = slots_[s.lhs].part;
            s.rhs_part = slots_[s.rhs].part;
            s.converts_lhs = !same_dtype(s.lhs_dtype, s.compute);
            s.converts_rhs = !same_dtype(s.rhs_dtype, s.compute);
            s.narrows = !same_dtype(s.compute, s.dtype);
            steps_.push_back(s);
        }
    }

    /// One kernel for the whole strip, or one call per row where an operand is a column.
    void choose_binary(Step& s, BinaryOp op) const {
        const ChainPart lhs = slots_[s.lhs].part, rhs = slots_[s.rhs].part, out = slots_[s.out].part;
        const bool wide = out == ChainPart::kFull;
        s.lhs_one = lhs == ChainPart::kOne;
        s.rhs_one = rhs == ChainPart::kOne;
        Spread spread = Spread::kNone;
        if (wide && lhs == ChainPart::kColumn) {
            s.cover = Cover::kRowsLhs;
            spread = Spread::kLhs;
        } else if (wide && rhs == ChainPart::kColumn) {
            s.cover = Cover::kRowsRhs;
            spread = Spread::kRhs;
        } else if (s.rhs_one) {
            spread = Spread::kRhs;
        } else if (s.lhs_one) {
            spread = Spread::kLhs;
        }
        s.binary = binary_kernel(op, s.compute, spread);
    }

    /// Strip storage for every value that has none of its own, reused after the last use of a value.
    void assign_buffers() {
        int64_t widest = 1;
        for (const Slot& s : slots_) widest = std::max(widest, s.width);
        for (const Step& s : steps_) widest = std::max<int64_t>(widest, dtype_bytes(s.compute));
        // An odd number of cache lines apart: strips at equal offsets modulo 4 KiB would look dependent to the processor.
        const int64_t lines = (strip_elements() * widest + 63) / 64;
        const int64_t bytes = (lines | 1) * 64 + 128;
        std::vector<size_t> last(slots_.size(), 0);
        for (size_t i = 0; i < steps_.size(); ++i) {
            last[steps_[i].lhs] = i;
            last[steps_[i].rhs] = std::max(last[steps_[i].rhs], i);
        }
        std::vector<int> free_list;
        std::vector<int> owner(slots_.size(), -1);
        int count = 3;  // converted operands and unrounded results
        auto take = [&] {
            if (free_list.empty()) return count++;
            const int b = free_list.back();
            free_list.pop_back();
            return b;
        };
        for (size_t v = 0; v < input_count_ + chain_.steps.size(); ++v) {
            Slot& s = slots_[v];
            const bool given = v < input_count_ || plan_.before[v - input_count_];
            if (!given) continue;
            // Rows of an input that do not follow each other are gathered; a row vector is repeated.
            const bool gathers =
                (s.part == ChainPart::kFull && strip_rows_ > 1 && s.pitch != plan_.columns * s.width) ||
                (s.part == ChainPart::kRow && strip_rows_ > 1) || (s.part == ChainPart::kColumn && s.pitch != s.width);
            if (gathers) owner[v] = count++;
        }
        for (size_t i = 0; i < steps_.size(); ++i) {
            const Step& step = steps_[i];
            Slot& out = slots_[step.out];
            if (out.base == nullptr || out.copies_out) owner[step.out] = take();
            for (const size_t operand : {step.lhs, step.rhs}) {
                const bool temporary = operand >= input_count_ && operand < input_count_ + chain_.steps.size() &&
                                       owner[operand] >= 0 && !plan_.before[operand - input_count_];
                if (temporary && last[operand] == i && operand != step.out) {
                    free_list.push_back(owner[operand]);
                    if (step.lhs == step.rhs) break;
                }
            }
        }
        const auto size = static_cast<size_t>(bytes) * static_cast<size_t>(count) + 64;
        if (arena().size() < size) arena().resize(size);
        auto* start = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(arena().data()) + 63) / 64 * 64);
        converted_ = start;
        converted_rhs_ = start + bytes;
        unrounded_ = start + bytes * 2;
        for (size_t v = 0; v < slots_.size(); ++v) {
            if (owner[v] >= 0) slots_[v].buffer = start + bytes * owner[v];
        }
        for (size_t v = 0; v < slots_.size(); ++v) {
            Slot& s = slots_[v];
            s.data = s.buffer != nullptr ? s.buffer : s.base;
            if (s.part == ChainPart::kNone || s.part == ChainPart::kOne) continue;
            if (s.part == ChainPart::kRow) {
                if (s.buffer == nullptr) s.pitch = 0;  // strips of one row: only the column moves
                for (int64_t r = 0; r < strip_rows_ && s.buffer != nullptr; ++r) {
                    std::memcpy(s.buffer + r * plan_.columns * s.width, s.base, static_cast<size_t>(plan_.columns * s.width));
                }
            }
            const bool fixed = s.buffer != nullptr && (s.base == nullptr || s.copies_out || s.part == ChainPart::kRow);
            if (!fixed) moving_.push_back(v);
        }
    }

    static std::vector<uint8_t>& arena() {
        thread_local std::vector<uint8_t> bytes;
        return bytes;
    }

    void strip(int64_t row, int64_t rows, int64_t column, int64_t columns) {
        for (const size_t v : moving_) {
            Slot& s = slots_[v];
            const bool column_part = s.part == ChainPart::kColumn;
            if (s.buffer == nullptr) {
                s.data = s.base + row * s.pitch + (column_part ? 0 : column * s.width);
                continue;
            }
            const int64_t bytes = column_part ? s.width : columns * s.width;
            for (int64_t r = 0; r < rows; ++r) {
                std::memcpy(s.buffer + r * bytes, s.base + (row + r) * s.pitch, static_cast<size_t>(bytes));
            }
        }
        for (const Step& step : steps_) {
            execute(step, rows, columns);
            const Slot& out = slots_[step.out];
            if (!out.copies_out) continue;
            const int64_t bytes = out.part == ChainPart::kColumn ? out.width : columns * out.width;
            const int64_t start = out.part == ChainPart::kColumn ? 0 : column * out.width;
            for (int64_t r = 0; r < rows; ++r) {
                std::memcpy(out.base + (row + r) * out.pitch + start, out.data + r * bytes, static_cast<size_t>(bytes));
            }
        }
    }

    static int64_t count_of(ChainPart part, int64_t rows, int64_t columns) {
        return part == ChainPart::kOne ? 1 : part == ChainPart::kColumn ? rows : rows * columns;
    }

    /// Operand data in the computing dtype.
    static const uint8_t* converted(const uint8_t* data, DType from, DType compute, int64_t count, uint8_t* room) {
        cast_row(from, data, compute, room, static_cast<size_t>(count), CastMode::kRound);
        return room;
    }

    void execute(const Step& s, int64_t rows, int64_t columns) {
        const Slot& out = slots_[s.out];
        const auto count = static_cast<size_t>(count_of(s.out_part, rows, columns));
        const uint8_t* a = slots_[s.lhs].data;
        if (s.kind == ChainKind::kCast) return cast_row(s.lhs_dtype, a, s.dtype, out.data, count, s.mode);
        if (s.kind == ChainKind::kSpread) return spread_vector(s, rows, columns);
        uint8_t* to = s.narrows ? unrounded_ : out.data;
        if (s.converts_lhs) a = converted(a, s.lhs_dtype, s.compute, count_of(s.lhs_part, rows, columns), converted_);
        switch (s.kind) {
            case ChainKind::kUnary: s.unary(a, to, count); break;
            case ChainKind::kReduce:
                for (int64_t r = 0; r < rows; ++r) {
                    s.reduce(a + r * columns * s.width, static_cast<size_t>(columns), to + r * s.width);
                }
                break;
            default: {
                const uint8_t* b = slots_[s.rhs].data;
                if (s.converts_rhs) {
                    b = converted(b, s.rhs_dtype, s.compute, count_of(s.rhs_part, rows, columns), converted_rhs_);
                }
                binary(s, a, b, to, rows, columns, count);
                break;
            }
        }
        if (s.narrows) cast_row(s.compute, unrounded_, s.dtype, out.data, count, CastMode::kRound);
    }

    static void binary(const Step& s, const uint8_t* a, const uint8_t* b, uint8_t* to, int64_t rows, int64_t columns,
                       size_t count) {
        if (s.cover == Cover::kWhole) return s.binary(a, b, to, count);
        const int64_t row_bytes = columns * s.width;
        const int64_t step_a = s.cover == Cover::kRowsLhs ? s.width : s.lhs_one ? 0 : row_bytes;
        const int64_t step_b = s.cover == Cover::kRowsRhs ? s.width : s.rhs_one ? 0 : row_bytes;
        for (int64_t r = 0; r < rows; ++r) {
            s.binary(a + r * step_a, b + r * step_b, to + r * row_bytes, static_cast<size_t>(columns));
        }
    }

    void spread_vector(const Step& s, int64_t rows, int64_t columns) {
        const Slot& out = slots_[s.out];
        const uint8_t* in = slots_[s.rhs].data;
        if (s.converts_rhs) {
            in = converted(in, s.rhs_dtype, s.compute, count_of(s.rhs_part, rows, columns), converted_rhs_);
        }
        if (s.out_part == ChainPart::kFull && s.rhs_part == ChainPart::kColumn) {
            for (int64_t r = 0; r < rows; ++r) {
                fill_row(out.data + r * columns * s.width, in + r * s.width, static_cast<size_t>(columns),
                         static_cast<int>(s.width));
            }
            return;
        }
        spread(in, s.rhs_part == ChainPart::kOne, out.data, count_of(s.out_part, rows, columns), s.width);
    }

    static void spread(const uint8_t* in, bool one, uint8_t* out, int64_t count, int64_t width) {
        if (one) {
            fill_row(out, in, static_cast<size_t>(count), static_cast<int>(width));
        } else {
            std::memmove(out, in, static_cast<size_t>(count * width));
        }
    }

    const Chain& chain_;
    const ChainPlan& plan_;
    std::span<const View> values_;
    size_t input_count_;
    int64_t strip_rows_ = 1, strip_columns_ = 1;
    std::vector<Slot> slots_;  ///< values, then scalar operands by step
    std::vector<size_t> moving_;  ///< slots whose data changes from strip to strip
    std::vector<Step> steps_;
    std::vector<uint8_t> scalar_elements_;
    std::vector<std::pair<size_t, DType>> scalar_steps_;
    uint8_t* converted_ = nullptr;
    uint8_t* converted_rhs_ = nullptr;
    uint8_t* unrounded_ = nullptr;
};

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

void run_chain(const Chain& chain, std::span<const View* const> inputs, std::span<const Scalar> scalars, ChainHost& host,
               std::span<View> results) {
    const ChainPlan plan = plan_chain(chain, inputs);
    if (!plan.strips) return run_one_by_one(chain, inputs, scalars, host, results);
    std::vector<View> values(inputs.size() + chain.steps.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        values[i] = *inputs[i];
        if (values[i].buffer->kind != BufferKind::kOnChip) host.access(values[i]);
    }
    for (size_t k = 0; k < chain.steps.size(); ++k) {
        if (plan.before[k]) values[inputs.size() + k] = run_step(chain, k, values, scalars, host);
    }
    StripRun run(chain, plan, values, inputs.size());
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
