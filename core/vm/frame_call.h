// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/vm/interp.h"
#include "core/vm/marks.h"
#include "core/vm/ops/movement.h"

/// Calls of operations and chains over the registers of a frame. Internal to the interpreter.
namespace pypto::vm {

inline bool control_plane(const FunctionCode& fn) {
  return fn.level >= ir::Level::kChip || fn.type == ir::FunctionType::kOrchestration;
}

inline View alloc_view(DType dtype, std::span<const int64_t> shape, bool zero) {
  View v;
  v.dtype = dtype;
  v.set_packed(static_cast<int>(shape.size()), shape.data());
  v.buffer = BufferRef(pool_alloc(v.elements() * dtype_bytes(dtype), zero));
  return v;
}

/// OpCall over the registers of a frame.
class FrameCall final : public OpCall {
 public:
  FrameCall(Frame& frame, const OpInsn& insn, Env& env) : frame_(frame), insn_(insn), env_(env) {
    op = insn.op;
    attrs = &insn.attrs;
  }

  bool has(int p) const override {
    return p < static_cast<int>(insn_.operands.size()) &&
           insn_.operands[static_cast<size_t>(p)].kind != Operand::Kind::kAbsent;
  }
  const View& view(int p) const override {
    return frame_.v[static_cast<size_t>(insn_.operands[static_cast<size_t>(p)].reg.index)];
  }
  bool is_scalar(int p) const override { return has(p) && reg(p).cls == RegClass::kScalar; }
  Scalar scalar(int p) const override { return frame_.s[static_cast<size_t>(reg(p).index)]; }
  DType scalar_dtype(int p) const override { return reg(p).dtype; }
  std::span<const int64_t> list(int p) const override {
    if (!has(p)) return {};
    const Operand& o = insn_.operands[static_cast<size_t>(p)];
    if (o.kind == Operand::Kind::kList && o.list.size() <= kMaxRank) {
      int64_t* const short_list = short_[static_cast<size_t>(p) % kMaxLists];
      size_t n = 0;
      for (const Reg& r : o.list) {
        if (r.cls == RegClass::kArray) break;
        short_list[n++] = frame_.s[static_cast<size_t>(r.index)].i;
      }
      if (n == o.list.size()) return {short_list, n};
    }
    auto& out = lists_[static_cast<size_t>(p) % kMaxLists];
    out.clear();
    auto push = [&](const Reg& r) {
      if (r.cls == RegClass::kArray) {
        const auto& items = frame_.a[static_cast<size_t>(r.index)]->items;
        out.insert(out.end(), items.begin(), items.end());
      } else {
        out.push_back(frame_.s[static_cast<size_t>(r.index)].i);
      }
    };
    if (o.kind == Operand::Kind::kList) {
      for (const Reg& r : o.list) push(r);
    } else {
      push(o.reg);
    }
    return out;
  }

  DType result_dtype(int k) const override {
    return k < static_cast<int>(insn_.results.size()) ? insn_.results[static_cast<size_t>(k)].dtype
                                                      : DType::kNone;
  }
  bool result_is_tile(int k) const override {
    return k < static_cast<int>(insn_.result_is_tile.size()) &&
           insn_.result_is_tile[static_cast<size_t>(k)] != 0;
  }
  void set_result(View value, int k) override {
    if (k >= static_cast<int>(insn_.results.size())) return;
    const Reg& r = insn_.results[static_cast<size_t>(k)];
    if (r.cls == RegClass::kView) frame_.v[static_cast<size_t>(r.index)] = std::move(value);
  }
  void set_result(Scalar value, int k) override {
    if (k >= static_cast<int>(insn_.results.size())) return;
    const Reg& r = insn_.results[static_cast<size_t>(k)];
    if (r.cls == RegClass::kScalar) frame_.s[static_cast<size_t>(r.index)] = value;
  }

  View alloc(DType dtype, std::span<const int64_t> shape, bool zero) override {
    return alloc_view(dtype, shape, zero);
  }
  void access(const View& v, AccessKind kind) override {
    if (v.buffer && v.buffer->kind != BufferKind::kOnChip) env_.access(v, kind);
  }
  void warn(const char* id, std::string text) override { env_.warn(id, std::move(text)); }
  void report(Diagnostic d) override { env_.report(std::move(d)); }
  uint8_t scalar_mark(int p) const override {
    if (frame_.marks.empty() || !is_scalar(p)) return 0;
    const int32_t m = frame_.marks[static_cast<size_t>(reg(p).index)];
    return m != 0 ? marks().mark_of_scalar(m) : 0;
  }
  void mark_scalar(uint8_t mark, std::string text) override {
    if (insn_.results.empty() || insn_.results[0].cls != RegClass::kScalar || !marks().on) return;
    if (frame_.marks.empty()) frame_.marks.resize(frame_.s.size());
    frame_.marks[static_cast<size_t>(insn_.results[0].index)] = marks().scalar(std::move(text), mark);
  }
  bool in_control_plane() const override { return control_plane(*frame_.fn); }
  std::string operand_name(int p) const override {
    return has(p) ? insn_.operands[static_cast<size_t>(p)].name : std::string();
  }

 private:
  static constexpr size_t kMaxLists = 4;
  const Reg& reg(int p) const { return insn_.operands[static_cast<size_t>(p)].reg; }

  Frame& frame_;
  const OpInsn& insn_;
  Env& env_;
  mutable int64_t short_[kMaxLists][kMaxRank];
  mutable std::vector<int64_t> lists_[kMaxLists];
};

/// Services of a chain: those of an operation. The loads and stores that belong to it run as far as possible
/// as windows that the chain reads and writes itself.
class ChainServices final : public ChainHost {
 public:
  ChainServices(Fiber& fiber, Frame& frame, const ChainInsn& insn, Env& env)
      : fiber_(fiber), frame_(frame), insn_(insn), env_(env) {}

  View alloc(DType dtype, std::span<const int64_t> shape, bool zero) override {
    return alloc_view(dtype, shape, zero);
  }
  void access(const View& v) override {
    if (v.buffer && v.buffer->kind != BufferKind::kOnChip) env_.access(v, AccessKind::kRead);
  }
  void warn(const char* id, std::string text) override { env_.warn(id, std::move(text)); }
  void report(Diagnostic d) override { env_.report(std::move(d)); }
  uint8_t scalar_mark(size_t i) const override {
    if (frame_.marks.empty()) return 0;
    const int32_t m = frame_.marks[static_cast<size_t>(insn_.scalars[i].index)];
    return m != 0 ? marks().mark_of_scalar(m) : 0;
  }
  void at_step(size_t step) override { fiber_.part_site = insn_.step_sites[step]; }
  bool declared(size_t input) override { return (declared_ >> input & 1) != 0; }

  void load() {
    for (const FoldedOp& o : insn_.loads) {
      with_site(o, [&](OpCall& call) {
        const OpInsn& insn = frame_.fn->ops[static_cast<size_t>(o.op)];
        if (env_.timer) env_.timer->begin(call, insn);
        View window;
        if (load_window(call, &window)) {
          call.set_result(std::move(window), 0);
          declared_ |= uint32_t{1} << o.value;
        } else {
          exec_function(call.op)(call);
        }
        if (env_.timer) {
          const View& result = frame_.v[static_cast<size_t>(insn.results[0].index)];
          env_.timer->loaded(o.value, insn, result);
        }
      });
    }
  }
  bool place(size_t output, const View& value, View* target) override {
    const FoldedOp* store = store_of(output);
    bool found = false;
    if (store) with_site(*store, [&](OpCall& call) { found = store_window(call, value, target); });
    return found;
  }
  void placed(size_t output, const View& target) override {
    with_site(*store_of(output), [&](OpCall& call) { finish_store(call, target); });
    if (env_.timer) env_.timer->stored(static_cast<int32_t>(output), target);
    placed_ |= uint32_t{1} << output;
  }
  /// The stores that the chain did not do, and the registers of the values that live on.
  void finish(std::span<View> results) {
    if (env_.timer) env_.timer->outputs(insn_, results);
    uint32_t stored = 0;
    for (const FoldedOp& o : insn_.stores) {
      stored |= uint32_t{1} << o.value;
      if ((placed_ >> o.value & 1) != 0) continue;
      View& value = frame_.v[static_cast<size_t>(insn_.outputs[static_cast<size_t>(o.value)].index)];
      value = results[static_cast<size_t>(o.value)];
      with_site(o, [&](OpCall& call) {
        const OpInsn& insn = frame_.fn->ops[static_cast<size_t>(o.op)];
        if (env_.timer) env_.timer->begin(call, insn);
        exec_function(call.op)(call);
        if (env_.timer) env_.timer->end(call, insn, {});
      });
      value = View();
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if ((stored >> i & 1) == 0)
        frame_.v[static_cast<size_t>(insn_.outputs[i].index)] = std::move(results[i]);
    }
  }

 private:
  /// The one store of an output, if it has just one.
  const FoldedOp* store_of(size_t output) const {
    const FoldedOp* found = nullptr;
    for (const FoldedOp& o : insn_.stores) {
      if (static_cast<size_t>(o.value) != output) continue;
      if (found) return nullptr;
      found = &o;
    }
    return found;
  }
  template <class F>
  void with_site(const FoldedOp& o, F f) {
    fiber_.part_site = o.site;
    FrameCall call(frame_, frame_.fn->ops[static_cast<size_t>(o.op)], env_);
    f(call);
  }

  Fiber& fiber_;
  Frame& frame_;
  const ChainInsn& insn_;
  Env& env_;
  uint32_t declared_ = 0, placed_ = 0;  // bits by input, by output
};

}  // namespace pypto::vm
