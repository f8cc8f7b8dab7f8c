// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/machine/run.h"
#include "core/vm/program.h"

/// Register code written by hand, so that the machine is tested without the front end.
namespace pypto::machine {

using ir::AttrKey;
using ir::OpId;
using vm::Opcode;
using vm::Operand;
using vm::Reg;
using vm::RegClass;

class FunctionBuilder {
 public:
  FunctionBuilder(vm::Program& program, std::string name, ir::Level level = ir::Level::kNone) {
    index_ = static_cast<int>(program.functions.size());
    program.functions.emplace_back();
    program_ = &program;
    fn().name = std::move(name);
    fn().level = level;
    fn().type = level == ir::Level::kNone ? ir::FunctionType::kInCore : ir::FunctionType::kOrchestration;
    if (level != ir::Level::kNone) fn().role = ir::Role::kOrchestrator;
    file_ = std::make_shared<SourceFile>();
    file_->path = "test.py";
  }
  vm::FunctionCode& fn() { return program_->functions[static_cast<size_t>(index_)]; }
  int index() const { return index_; }

  Reg scalar(DType dtype = DType::kInt64) { return {RegClass::kScalar, fn().scalar_count++, dtype}; }
  Reg view(DType dtype = DType::kFp32) { return {RegClass::kView, fn().view_count++, dtype}; }
  Reg array() { return {RegClass::kArray, fn().array_count++, DType::kTaskId}; }
  Reg param(std::string name, Reg reg, ir::ParamDirection direction = ir::ParamDirection::kIn,
            bool remote_target = false) {
    vm::ParamInfo p;
    p.name = std::move(name);
    p.reg = reg;
    p.declared = p.effective = direction;
    p.remote_target = remote_target;
    fn().params.push_back(std::move(p));
    return reg;
  }
  Reg tensor(std::string name, ir::ParamDirection direction = ir::ParamDirection::kIn,
             DType dtype = DType::kFp32) {
    return param(std::move(name), view(dtype), direction);
  }
  Reg window(std::string name, ir::ParamDirection direction = ir::ParamDirection::kInOut,
             DType dtype = DType::kFp32) {
    return param(std::move(name), view(dtype), direction, true);
  }
  Reg number(std::string name, DType dtype = DType::kInt64) { return param(std::move(name), scalar(dtype)); }

  int site(std::string what = {}) {
    vm::Site s;
    s.span.file = file_;
    s.span.line = line_++;
    s.span.column = 1;
    s.what = std::move(what);
    fn().sites.push_back(std::move(s));
    return static_cast<int>(fn().sites.size()) - 1;
  }
  int here() { return static_cast<int>(fn().code.size()); }
  vm::Insn& add(Opcode op) {
    vm::Insn in;
    in.op = op;
    in.site = site();
    fn().code.push_back(in);
    return fn().code.back();
  }
  Reg constant(int64_t value) {
    const Reg r = scalar();
    fn().pool.push_back(value);
    const int at = static_cast<int>(fn().pool.size()) - 1;
    vm::Insn& in = add(Opcode::kConst);
    in.dst = r.index;
    in.a = at;
    return r;
  }
  Reg float_constant(double value) {
    const Reg r = scalar(DType::kFp32);
    int64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    fn().pool.push_back(bits);
    const int at = static_cast<int>(fn().pool.size()) - 1;
    vm::Insn& in = add(Opcode::kConst);
    in.dst = r.index;
    in.a = at;
    return r;
  }
  Reg arith(OpId op, Reg a, Reg b) {
    const Reg r = scalar();
    vm::Insn& in = add(Opcode::kScalar);
    in.sub = static_cast<uint16_t>(op);
    in.dtype = DType::kInt64;
    in.dst = r.index;
    in.a = a.index;
    in.b = b.index;
    return r;
  }

  static Operand none() { return {}; }
  static Operand one(Reg r, std::string name = {}) {
    Operand o;
    o.kind = Operand::Kind::kReg;
    o.reg = r;
    o.name = std::move(name);
    return o;
  }
  static Operand list(std::vector<Reg> regs) {
    Operand o;
    o.kind = Operand::Kind::kList;
    o.list = std::move(regs);
    return o;
  }
  vm::OpInsn& op(OpId id, std::vector<Operand> operands, std::vector<Reg> results = {}, bool tile = true,
                 std::string what = {}) {
    vm::OpInsn insn;
    insn.op = id;
    insn.operands = std::move(operands);
    insn.results = std::move(results);
    insn.result_is_tile.assign(insn.results.size(), tile);
    insn.result_space.assign(insn.results.size(), ir::MemorySpace::kVec);
    fn().ops.push_back(std::move(insn));
    const int at = static_cast<int>(fn().ops.size()) - 1;
    add(Opcode::kOp).a = at;
    fn().sites.back().what = std::move(what);
    return fn().ops.back();
  }
  vm::CallInsn& call(const FunctionBuilder& callee, std::vector<Reg> args) {
    vm::CallInsn c;
    c.callee = callee.index();
    c.args = std::move(args);
    fn().calls.push_back(std::move(c));
    const int at = static_cast<int>(fn().calls.size()) - 1;
    add(Opcode::kCall).a = at;
    return fn().calls.back();
  }
  Reg create(std::string name, std::vector<Reg> shape, DType dtype = DType::kFp32) {
    vm::CreateInsn c;
    c.name = std::move(name);
    c.shape = std::move(shape);
    c.dtype = dtype;
    fn().creates.push_back(std::move(c));
    const Reg r = view(dtype);
    const int at = static_cast<int>(fn().creates.size()) - 1;
    vm::Insn& in = add(Opcode::kCreate);
    in.dst = r.index;
    in.a = at;
    return r;
  }
  void scope(bool begin, ir::ScopeKind kind) {
    add(begin ? Opcode::kScopeBegin : Opcode::kScopeEnd).a = static_cast<int>(kind);
  }
  /// for i in range(start, stop): body(i)
  template <class Body>
  void loop(Reg start, Reg stop, Body body) {
    const Reg step = constant(1);
    const Reg i = scalar();
    vm::Insn& move = add(Opcode::kMoveS);
    move.dst = i.index;
    move.a = start.index;
    const int top = here();
    vm::Insn& test = add(Opcode::kForTest);
    test.a = i.index;
    test.b = stop.index;
    test.c = step.index;
    body(i);
    vm::Insn& next = add(Opcode::kScalar);
    next.sub = static_cast<uint16_t>(OpId::k_scalar_add);
    next.dtype = DType::kInt64;
    next.dst = i.index;
    next.a = i.index;
    next.b = step.index;
    add(Opcode::kJump).a = top;
    fn().code[static_cast<size_t>(top)].dst = here();
  }
  /// if a != b: body()
  template <class Body>
  void unless_equal(Reg a, Reg b, Body body) {
    const Reg c = arith(OpId::k_scalar_ne, a, b);
    const int at = here();
    add(Opcode::kBranchFalse).a = c.index;
    body();
    fn().code[static_cast<size_t>(at)].b = here();
  }
  void done() { add(Opcode::kReturn); }

  // Common operations.
  Reg load(Reg t, Reg row, Reg col, Reg rows, Reg cols) {
    const Reg r = view();
    op(OpId::k_load, {one(t), list({row, col}), list({rows, cols})}, {r});
    return r;
  }
  void store(Reg tile, Reg row, Reg col, Reg target) {
    const Reg r = view();
    op(OpId::k_store, {one(tile), list({row, col}), one(target)}, {r}, false);
  }
  Reg row_slice(Reg t, Reg row, Reg cols) {
    const Reg r = view();
    const Reg one_row = constant(1);
    const Reg zero = constant(0);
    op(OpId::k_slice, {one(t), list({one_row, cols}), list({row, zero})}, {r}, false);
    return r;
  }
  Reg remote_load(Reg target, Reg peer, Reg row, Reg cols) {
    const Reg r = view();
    const Reg zero = constant(0);
    const Reg one_row = constant(1);
    op(OpId::k_remote_load, {one(target, "box"), one(peer), list({row, zero}), list({one_row, cols})}, {r});
    return r;
  }
  void remote_store(Reg tile, Reg target, Reg peer, Reg row) {
    const Reg zero = constant(0);
    op(OpId::k_remote_store, {one(tile), one(target, "box"), one(peer), list({row, zero})});
  }
  void notify(Reg signal, Reg peer, Reg row, Reg value, ir::NotifyOp how = ir::NotifyOp::kAtomicAdd) {
    const Reg zero = constant(0);
    op(OpId::k_notify, {one(signal, "sig"), one(peer), list({row, zero}), one(value)})
        .attrs.set(AttrKey::k_op, static_cast<int64_t>(how));
  }
  void wait(Reg signal, Reg row, Reg expected, ir::WaitCmp cmp = ir::WaitCmp::kGe) {
    const Reg zero = constant(0);
    op(OpId::k_wait, {one(signal, "sig"), list({row, zero}), one(expected)})
        .attrs.set(AttrKey::k_cmp, static_cast<int64_t>(cmp));
  }

 private:
  vm::Program* program_;
  int index_;
  std::shared_ptr<SourceFile> file_;
  int line_ = 1;
};

inline HostArg host_array(std::vector<float>& data, std::vector<int64_t> shape) {
  HostArg a;
  a.data = reinterpret_cast<uint8_t*>(data.data());
  a.dtype = DType::kFp32;
  a.shape = std::move(shape);
  return a;
}

inline std::vector<float> ramp(int64_t n, float start = 1) {
  std::vector<float> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), start);
  return v;
}

inline RunReport run_program(const vm::Program& p, int entry, std::vector<HostArg> args,
                             RunOptions options = {}, const HostCallback& callback = nullptr,
                             World* world = nullptr) {
  RunReport report;
  run(p, entry, args, options, callback, world, &report);
  return report;
}

/// A distributed program of one kernel: every rank r runs it on x[r], y[r] ([1, 4] each), a window `box` of
/// [rows, 4] FP32 and a signal window `sig` of [sig_rows, 1].
struct RankProgram {
  static constexpr int64_t kCols = 4;
  struct Operands {
    Reg x, y, box, sig;
    Reg me, n, left, right;
  };
  using Body = std::function<void(FunctionBuilder&, const Operands&)>;

  vm::Program p;
  int64_t box_rows = 1;
  int64_t sig_rows = 0;     ///< 0 = world size
  int rounds = 1;           ///< dispatches per rank, each in a rank loop of its own
  bool own_groups = false;  ///< each round is another call site
  std::vector<Body> more;   ///< further kernels run by the same orchestration after the first

  FunctionBuilder kernel(const std::string& name, const Body& body) {
    FunctionBuilder k(p, name);
    Operands a;
    a.x = k.tensor("x");
    a.y = k.tensor("y", ir::ParamDirection::kInOut);
    a.box = k.window("box");
    a.sig = k.window("sig", ir::ParamDirection::kInOut, DType::kInt32);
    const Reg one = k.constant(1);
    const Reg ctx = k.scalar();
    a.me = k.scalar();
    a.n = k.scalar();
    k.op(OpId::k_get_comm_ctx, {k.one(a.box)}, {ctx});
    k.op(OpId::k_rank, {k.one(ctx)}, {a.me});
    k.op(OpId::k_nranks, {k.one(ctx)}, {a.n});
    a.right = k.arith(OpId::k_scalar_mod, k.arith(OpId::k_scalar_add, a.me, one), a.n);
    a.left = k.arith(OpId::k_scalar_mod,
                     k.arith(OpId::k_scalar_sub, k.arith(OpId::k_scalar_add, a.me, a.n), one), a.n);
    body(k, a);
    k.done();
    return k;
  }
  void build(const Body& body) {
    std::vector<FunctionBuilder> kernels{kernel("kern", body)};
    for (size_t i = 0; i < more.size(); ++i)
      kernels.push_back(kernel("kern" + std::to_string(i + 2), more[i]));
    std::vector<FunctionBuilder> orchs;
    for (int i = 0; i < (own_groups ? rounds : 1); ++i) {
      FunctionBuilder o(p, "on_device" + std::to_string(i), ir::Level::kChip);
      std::vector<Reg> args{o.tensor("x"), o.tensor("y", ir::ParamDirection::kInOut), o.window("box"),
                            o.window("sig", ir::ParamDirection::kInOut, DType::kInt32)};
      if (own_groups) {
        o.call(kernels[static_cast<size_t>(i)], args);
      } else {
        for (const FunctionBuilder& k : kernels) o.call(k, args);
      }
      o.done();
      orchs.push_back(o);
    }
    FunctionBuilder h(p, "main", ir::Level::kHost);
    const Reg hx = h.tensor("x");
    const Reg hy = h.tensor("y", ir::ParamDirection::kInOut);
    const Reg size = h.scalar();
    h.op(OpId::k_world_size, {}, {size});
    const Reg one = h.constant(1);
    const Reg width = h.constant(kCols);
    auto window = [&](const char* name, DType dtype, Reg rows, Reg columns) {
      const Reg buffer = h.scalar();
      ir::AttrMap& attrs = h.op(OpId::k_alloc_window_buffer, {h.list({rows, columns})}, {buffer}).attrs;
      attrs.set(AttrKey::k_dtype, static_cast<int64_t>(dtype));
      attrs.set(AttrKey::k_name, std::string(name));
      const Reg v = h.view(dtype);
      h.op(OpId::k_window, {h.one(buffer), h.list({rows, columns})}, {v}, false)
          .attrs.set(AttrKey::k_dtype, static_cast<int64_t>(dtype));
      return v;
    };
    const Reg box = window("box_buf", DType::kFp32, h.constant(box_rows), width);
    const Reg sig = window("sig_buf", DType::kInt32, sig_rows > 0 ? h.constant(sig_rows) : size, one);
    for (int i = 0; i < rounds; ++i) {
      h.loop(h.constant(0), size, [&](Reg r) {
        const Reg xr = h.row_slice(hx, r, width);
        const Reg yr = h.row_slice(hy, r, width);
        vm::CallInsn& c = h.call(orchs[own_groups ? static_cast<size_t>(i) : 0], {xr, yr, box, sig});
        c.device = r;
        c.group_site = i;
      });
    }
    h.done();
    p.entry = h.index();
  }
  RunReport run_ranks(int ranks, std::vector<float>* out, RunOptions options = {}, World* world = nullptr) {
    std::vector<float> x = ramp(kCols * ranks);
    out->assign(static_cast<size_t>(kCols * ranks), 0);
    options.device_ids.resize(static_cast<size_t>(ranks));
    std::iota(options.device_ids.begin(), options.device_ids.end(), 0);
    return run_program(p, -1, {host_array(x, {ranks, kCols}), host_array(*out, {ranks, kCols})}, options,
                       nullptr, world);
  }
};

}  // namespace pypto::machine
