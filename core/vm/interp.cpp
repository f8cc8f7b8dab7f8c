// SPDX-License-Identifier: Apache-2.0
#include "core/vm/interp.h"

#include <algorithm>

#include "core/vm/frame_call.h"
#include "core/vm/marks.h"
#include "core/vm/ops/lanes.h"
#include "core/vm/ops/views.h"
#include "core/vm/ops/written.h"
#include "core/vm/scalar.h"

namespace pypto::vm {
namespace {

using ir::OpId;

/// The element or window that a control-plane read, write or assemble touches (01 L-161).
View touched(const View& base, std::span<const int64_t> offset, std::span<const int64_t> extent) {
  View v = base;
  v.snapshot = BufferRef();
  const int lead = base.rank - static_cast<int>(offset.size());
  for (int i = 0; i < base.rank; ++i) {
    const int64_t o = i < lead ? 0 : offset[static_cast<size_t>(i - lead)];
    const int64_t n = extent.empty() ? 1 : (i < lead ? 1 : extent[static_cast<size_t>(i - lead)]);
    if (o < 0 || o >= std::max<int64_t>(base.shape[i], 1))
      return base;  // the operation reports the bad index
    v.offset += o * base.stride[i] * dtype_bytes(base.dtype);
    v.shape[i] = v.valid[i] = std::min(n, base.shape[i] - o);
  }
  v.fully_valid = true;
  return v;
}

ExecStatus order_control_plane(FrameCall& call, Env& env) {
  switch (call.op) {
    case OpId::k_read:
      return env.order_element(touched(call.view(0), call.list(1), {}), AccessKind::kRead);
    case OpId::k_write:
      return env.order_element(touched(call.view(0), call.list(1), {}), AccessKind::kWrite);
    case OpId::k_assemble: {
      const View& source = call.view(1);
      if (env.order_element(source, AccessKind::kRead) == ExecStatus::kBlocked) return ExecStatus::kBlocked;
      const std::vector<int64_t> extent(source.shape, source.shape + source.rank);
      const View& target = call.view(0);
      const auto offset = call.list(2);
      if (static_cast<int>(offset.size()) != source.rank)
        return env.order_element(target, AccessKind::kWrite);
      return env.order_element(touched(target, offset, extent), AccessKind::kWrite);
    }
    default:
      return ExecStatus::kDone;
  }
}

class Interpreter {
 public:
  Interpreter(Fiber& fiber, const Program& program, Env& env) : fiber_(fiber), program_(program), env_(env) {}

  RunStatus run(uint64_t quantum) {
    uint64_t left = quantum;
    while (true) {
      Frame& f = fiber_.top();
      const uint64_t plain = run_plain(f, left);
      left -= plain;
      fiber_.steps += plain;
      if (f.pc == f.end_pc) return RunStatus::kDone;  // end of a lane body
      if (left == 0) return RunStatus::kQuantum;
      --left;
      ++fiber_.steps;
      const Insn& in = f.fn->code[static_cast<size_t>(f.pc)];
      const ExecStatus status = step(f, in);
      if (status == ExecStatus::kDone && in.op != Opcode::kReturn) continue;
      if (status == ExecStatus::kBlocked) return RunStatus::kBlocked;
      if (fiber_.frames.empty()) return RunStatus::kDone;
      if (status == ExecStatus::kYield) return RunStatus::kYield;
    }
  }

  /// The same with a virtual clock. A function of its own, so that runs without one pay nothing.
  [[gnu::noinline]] RunStatus run_timed(uint64_t quantum) {
    for (uint64_t left = quantum;; --left) {
      Frame& f = fiber_.top();
      if (f.pc == f.end_pc) return RunStatus::kDone;  // end of a lane body
      if (left == 0 || (left < quantum && env_.timer->expired())) return RunStatus::kQuantum;
      ++fiber_.steps;
      const Insn& in = f.fn->code[static_cast<size_t>(f.pc)];
      ExecStatus status = ExecStatus::kDone;
      if (in.op == Opcode::kOp) {
        if (!f.marks.empty()) follow_marks(f, in);
        status = timed_operation(f, f.fn->ops[static_cast<size_t>(in.a)]);
        if (status != ExecStatus::kBlocked) ++f.pc;
      } else {
        time_scalar(f, in);
        status = timed_step(f, in);
      }
      if (status == ExecStatus::kBlocked) return RunStatus::kBlocked;
      if (fiber_.frames.empty()) return RunStatus::kDone;
      if (status == ExecStatus::kYield) return RunStatus::kYield;
    }
  }

 private:
  /// Runs what loops over tiles consist of, up to `most` instructions or the first that needs more than the
  /// frame; returns how many ran.
  static uint64_t run_plain(Frame& f, uint64_t most) {
    const Insn* const code = f.fn->code.data();
    Scalar* const s = f.s.data();
    uint64_t done = 0;
    if (!f.marks.empty()) return done;  // unspecified scalars are followed step by step
    DirectRunner direct(f);
    for (; done < most && f.pc != f.end_pc; ++done) {
      const Insn& in = code[f.pc];
      switch (in.op) {
        case Opcode::kMoveS:
          s[in.dst] = s[in.a];
          break;
        case Opcode::kForTest:
          if (s[in.c].i > 0 ? s[in.a].i >= s[in.b].i : s[in.a].i <= s[in.b].i) {
            f.pc = in.dst;
            continue;
          }
          break;
        case Opcode::kJump:
          f.pc = in.a;
          continue;
        case Opcode::kScalar:
          if (in.sub != static_cast<uint16_t>(OpId::k_scalar_add) || in.dtype != DType::kInt64) return done;
          s[in.dst].i =
              static_cast<int64_t>(static_cast<uint64_t>(s[in.a].i) + static_cast<uint64_t>(s[in.b].i));
          break;
        case Opcode::kOp: {
          const DirectOp& op = f.fn->ops[static_cast<size_t>(in.a)].direct;
          if (op.kind == DirectOp::Kind::kNone || !direct.run(op, in.a)) return done;
          break;
        }
        default:
          return done;
      }
      ++f.pc;
    }
    return done;
  }

  Scalar& s(Frame& f, int32_t i) { return f.s[static_cast<size_t>(i)]; }
  View& v(Frame& f, int32_t i) { return f.v[static_cast<size_t>(i)]; }

  /// Scalar statements and loop iterations (05 H-64); operations are told where they run.
  void time_scalar(Frame& f, const Insn& in) {
    switch (in.op) {
      case Opcode::kScalar:
      case Opcode::kCast:
      case Opcode::kBranchFalse:
      case Opcode::kArrayGet:
      case Opcode::kArraySet:
        env_.timer->scalar();
        break;
      case Opcode::kForTest: {
        const int64_t i = s(f, in.a).i;
        if (s(f, in.c).i > 0 ? i < s(f, in.b).i : i > s(f, in.b).i) env_.timer->loop();
        break;
      }
      default:
        break;
    }
  }

  [[gnu::noinline]] ExecStatus timed_step(Frame& f, const Insn& in) { return step(f, in); }

  [[gnu::always_inline]] ExecStatus step(Frame& f, const Insn& in) {
    if (!f.marks.empty()) follow_marks(f, in);
    switch (in.op) {
      case Opcode::kNop:
        break;
      case Opcode::kConst:
        std::memcpy(&s(f, in.dst), &f.fn->pool[static_cast<size_t>(in.a)], sizeof(int64_t));
        break;
      case Opcode::kMoveS:
        s(f, in.dst) = s(f, in.a);
        break;
      case Opcode::kMoveV:
        if (in.dst != in.a) v(f, in.dst) = View(v(f, in.a));
        break;
      case Opcode::kMoveA:
        f.a[static_cast<size_t>(in.dst)] = std::make_shared<ArrayValue>(*f.a[static_cast<size_t>(in.a)]);
        break;
      case Opcode::kShareA:
        f.a[static_cast<size_t>(in.dst)] = f.a[static_cast<size_t>(in.a)];
        break;
      case Opcode::kScalar:
        scalar(f, in);
        break;
      case Opcode::kCast:
        cast(f, in);
        break;
      case Opcode::kRangeCheck:
        range_check(f, in);
        break;
      case Opcode::kJump:
        f.pc = in.a;
        return ExecStatus::kDone;
      case Opcode::kBranchFalse:
        if (s(f, in.a).i == 0) {
          f.pc = in.b;
          return ExecStatus::kDone;
        }
        break;
      case Opcode::kForTest: {
        const int64_t i = s(f, in.a).i;
        const int64_t stop = s(f, in.b).i;
        const int64_t stride = s(f, in.c).i;
        if (stride > 0 ? i >= stop : i <= stop) {
          f.pc = in.dst;
          return ExecStatus::kDone;
        }
        break;
      }
      case Opcode::kForCheck:
        if (s(f, in.a).i == 0) {
          fail(ErrorClass::kProgramFault, "the step of this loop is 0", {}, "use a non-zero step");
        }
        break;
      case Opcode::kOp: {
        const ExecStatus status = operation(f, f.fn->ops[static_cast<size_t>(in.a)]);
        if (status != ExecStatus::kDone) {
          if (status == ExecStatus::kYield) ++f.pc;
          return status;
        }
        break;
      }
      case Opcode::kCall:
        return call(f, f.fn->calls[static_cast<size_t>(in.a)]);
      case Opcode::kDim:
        s(f, in.dst).i = v(f, in.a).shape[in.b];
        break;
      case Opcode::kValid:
        s(f, in.dst).i = v(f, in.a).valid[in.b];
        break;
      case Opcode::kArrayNew: {
        auto array = std::make_shared<ArrayValue>();
        array->dtype = in.dtype;
        array->items.assign(static_cast<size_t>(in.a), 0);
        f.a[static_cast<size_t>(in.dst)] = std::move(array);
        break;
      }
      case Opcode::kArrayGet:
        if (f.marks.empty() && !f.a[static_cast<size_t>(in.a)]->marks.empty()) {
          f.marks.resize(f.s.size());
          follow_marks(f, in);
        }
        s(f, in.dst).i = element(f, in.a, s(f, in.b).i, in);
        break;
      case Opcode::kArraySet:
        element(f, in.dst, s(f, in.a).i, in) = s(f, in.b).i;
        break;
      case Opcode::kCreate:
        create(f, in);
        break;
      case Opcode::kLanes:
        return lanes(f, f.fn->lanes[static_cast<size_t>(in.a)]);
      case Opcode::kReturn:
        return leave(f);
      case Opcode::kScopeBegin:
      case Opcode::kScopeEnd:
        env_.scope(in.op == Opcode::kScopeBegin, static_cast<ir::ScopeKind>(in.a));
        break;
      case Opcode::kRelease:
        v(f, in.a) = View();
        break;
      case Opcode::kChain:
        run_chain_insn(f, in.a, env_);
        break;
    }
    ++f.pc;
    return ExecStatus::kDone;
  }

  void scalar(Frame& f, const Insn& in) {
    const Scalar a = s(f, in.a);
    const Scalar b = in.b >= 0 ? s(f, in.b) : scalar_of(int64_t{0});
    const auto op = static_cast<OpId>(in.sub);
    if (!is_float(in.dtype) && a.i < 0 && (op == OpId::k_scalar_floordiv || op == OpId::k_scalar_mod) &&
        is_signed_int(in.dtype)) {
      env_.warn("W-NEGATIVE-DIVIDEND",
                std::string("negative dividend ") + std::to_string(a.i) + " of " +
                    (op == OpId::k_scalar_mod ? "%" : "//") +
                    ": floor semantics here, truncating targets differ; add the divisor first");
    }
    s(f, in.dst) = scalar_op(op, in.dtype, a, b);
  }

  void cast(Frame& f, const Insn& in) {
    bool bad = false;
    const Scalar value = s(f, in.a);
    s(f, in.dst) = cast_scalar(value, in.dtype, in.dtype2, &bad);
    if (bad && is_float(in.dtype)) {
      env_.warn("W-CAST-RANGE", "scalar " + std::to_string(value.f) + " does not fit " +
                                    std::string(dtype_text(in.dtype2)) + "; it becomes " +
                                    std::to_string(s(f, in.dst).i));
    }
  }

  void range_check(Frame& f, const Insn& in) {
    const int64_t value = s(f, in.a).i;
    if (fits(value, in.dtype)) return;
    const std::string name =
        in.site >= 0 ? f.fn->sites[static_cast<size_t>(in.site)].what : std::string("the value");
    fail(ErrorClass::kProgramFault, name + ": the value " + std::to_string(value) + " does not fit dtype " +
                                        std::string(dtype_text(in.dtype)));
  }

  int64_t& element(Frame& f, int32_t array, int64_t index, const Insn& in) {
    auto& items = f.a[static_cast<size_t>(array)]->items;
    if (index < 0 || index >= static_cast<int64_t>(items.size())) {
      const std::string name =
          in.site >= 0 ? f.fn->sites[static_cast<size_t>(in.site)].what : std::string("array");
      fail(ErrorClass::kOutOfBoundsError, "index " + std::to_string(index) + " is outside array '" + name +
                                              "' of extent " + std::to_string(items.size()));
    }
    return items[static_cast<size_t>(index)];
  }

  void create(Frame& f, const Insn& in) {
    const CreateInsn& c = f.fn->creates[static_cast<size_t>(in.a)];
    std::vector<int64_t> shape;
    for (const Reg& r : c.shape) {
      shape.push_back(s(f, r.index).i);
      if (shape.back() < 0) {
        fail(ErrorClass::kProgramFault, "extent " + std::to_string(shape.back()) + " of dimension " +
                                            std::to_string(shape.size() - 1) + " of '" + c.name +
                                            "' is negative");
      }
    }
    if (!c.on_chip) {
      v(f, in.dst) = env_.create(c, shape);
      if (env_.timer) env_.timer->created(v(f, in.dst));
      return;
    }
    View value;
    value.dtype = c.dtype;
    value.set_packed(static_cast<int>(shape.size()), shape.data());
    value.buffer = BufferRef(pool_alloc(value.elements() * dtype_bytes(c.dtype), true));
    if (!c.has_init && marks().on)
      mark_unwritten(*value.buffer, marks().origin(Origin::Kind::kCreated, c.name));
    if (c.has_init && c.init != 0) fill_elements(value.data(), c.dtype, c.init, value.elements());
    if (env_.timer) env_.timer->created(value);
    v(f, in.dst) = std::move(value);
  }

  /// The results of `insn` that are arrays; the others are empty.
  std::span<const View> result_views(Frame& f, const OpInsn& insn) {
    results_.clear();
    for (const Reg& r : insn.results) results_.push_back(r.cls == RegClass::kView ? v(f, r.index) : View());
    return results_;
  }

  ExecStatus timed_operation(Frame& f, const OpInsn& insn) {
    FrameCall call(f, insn, env_);
    env_.timer->begin(call, insn);
    ExecStatus status = ExecStatus::kDone;
    try {
      const ExecFn fn = exec_function(insn.op);
      status = fn ? fn(call) : env_.machine_op(call);
    } catch (...) {
      env_.timer->abandon();
      throw;
    }
    if (status == ExecStatus::kBlocked) {
      env_.timer->abandon();
    } else {
      env_.timer->end(call, insn, result_views(f, insn));
      results_.clear();
    }
    return status;
  }

  ExecStatus operation(Frame& f, const OpInsn& insn) {
    FrameCall call(f, insn, env_);
    if (control_plane(*f.fn)) {
      if (order_control_plane(call, env_) == ExecStatus::kBlocked) return ExecStatus::kBlocked;
      if (insn.op == OpId::k_transpose) {
        call.set_result(transpose_strides(call.view(0), static_cast<int>(call.attr_int(ir::AttrKey::k_axis1)),
                                          static_cast<int>(call.attr_int(ir::AttrKey::k_axis2))),
                        0);
        return ExecStatus::kDone;
      }
    }
    const ExecFn fn = exec_function(insn.op);
    if (!fn) return env_.machine_op(call);
    const ExecStatus status = fn(call);
    if (!f.marks.empty()) spread_scalar_marks(f, insn);
    return status;
  }

  ExecStatus call(Frame& f, const CallInsn& insn) {
    if (!insn.local && !insn.member) {
      const ExecStatus status = env_.call(insn, f);
      if (status == ExecStatus::kBlocked) return status;
      ++f.pc;
      return status;
    }
    const FunctionCode& callee = program_.functions[static_cast<size_t>(insn.callee)];
    auto fiber = make_fiber(callee);
    Frame& target = fiber->top();
    for (size_t i = 0; i < insn.args.size(); ++i) pass(f, insn.args[i], target, callee.params[i].reg);
    bind_symbols(target);
    ++f.pc;
    if (insn.member) {
      alias_results(f, insn, callee);
      if (callee.dual_aiv) {
        auto second = std::make_unique<Fiber>(*fiber);
        env_.spawn(std::move(fiber), 0);
        env_.spawn(std::move(second), 1);
      } else {
        env_.spawn(std::move(fiber), -1);
      }
      return ExecStatus::kDone;
    }
    target.return_to = &insn;
    fiber_.frames.push_back(std::move(fiber->frames.front()));  // invalidates f
    return ExecStatus::kDone;
  }

  void pass(Frame& from, const Reg& arg, Frame& to, const Reg& param) {
    switch (arg.cls) {
      case RegClass::kScalar:
        s(to, param.index) = s(from, arg.index);
        if (!from.marks.empty() || !to.marks.empty()) {
          if (to.marks.empty()) to.marks.resize(to.s.size());
          to.marks[static_cast<size_t>(param.index)] =
              from.marks.empty() ? 0 : from.marks[static_cast<size_t>(arg.index)];
        }
        break;
      case RegClass::kView:
        v(to, param.index) = v(from, arg.index);
        break;
      case RegClass::kArray:
        to.a[static_cast<size_t>(param.index)] = from.a[static_cast<size_t>(arg.index)];
        break;
      case RegClass::kNone:
        break;
    }
  }

  /// Results of a call that are the storage of arguments.
  void alias_results(Frame& f, const CallInsn& insn, const FunctionCode& callee) {
    for (size_t k = 0; k < insn.results.size(); ++k) {
      const Reg& r = insn.results[k];
      if (r.cls != RegClass::kView || k >= callee.result_params.size() || callee.result_params[k] < 0)
        continue;
      v(f, r.index) = View(v(f, insn.args[static_cast<size_t>(callee.result_params[k])].index));
    }
  }

  ExecStatus leave(Frame& f) {
    if (f.fn->type == ir::FunctionType::kGroup && !env_.join()) return ExecStatus::kBlocked;
    if (fiber_.frames.size() == 1) {
      fiber_.frames.clear();
      return ExecStatus::kDone;
    }
    const CallInsn* insn = f.return_to;
    Frame done = std::move(fiber_.frames.back());
    fiber_.frames.pop_back();
    Frame& caller = fiber_.top();
    for (size_t k = 0; insn && k < insn->results.size() && k < done.fn->results.size(); ++k) {
      const Reg& to = insn->results[k];
      const Reg& from = done.fn->results[k];
      if (to.cls != from.cls) continue;
      pass(done, from, caller, to);
    }
    return ExecStatus::kDone;
  }

  /// split_aiv: both lanes run the body on a copy of the registers; gathered values are joined afterwards.
  ExecStatus lanes(Frame& f, const LanesInsn& insn) {
    if (!fiber_.lanes_running) {
      for (int lane = 0; lane < 2; ++lane) {
        auto child = std::make_unique<Fiber>();
        child->frames.push_back(f);
        Frame& c = child->top();
        c.pc = insn.begin;
        c.end_pc = insn.end;
        c.return_to = nullptr;
        s(c, insn.lane_reg).i = lane;
        child->lane = lane;
        env_.spawn(std::move(child), lane);
      }
      fiber_.lanes_running = true;
      return ExecStatus::kBlocked;
    }
    if (!env_.join()) return ExecStatus::kBlocked;
    fiber_.lanes_running = false;
    auto& children = env_.children();
    PYPTO_CHECK(children.size() == 2, "a split_aiv body has two lanes");
    Frame& lane0 = children[0]->top();
    Frame& lane1 = children[1]->top();
    const int32_t end_pc = f.end_pc;
    f.s = lane0.s;
    f.marks = lane0.marks;
    std::vector<View> joined;
    for (const auto& join : insn.joins) {
      joined.push_back(join_lanes(v(lane0, join.lane_view), v(lane1, join.lane_view), insn.mode));
      if (env_.timer) env_.timer->created(joined.back());
    }
    f.v = lane0.v;
    f.a = lane0.a;
    for (size_t k = 0; k < joined.size(); ++k) v(f, insn.joins[k].parent_view) = std::move(joined[k]);
    f.end_pc = end_pc;
    f.pc = insn.end;
    children.clear();
    return ExecStatus::kDone;
  }

  void run_chain_insn(Frame& f, int32_t index, Env& env);

  Fiber& fiber_;
  const Program& program_;
  Env& env_;
  std::vector<View> results_;  ///< of the operation that is timed
};

void Interpreter::run_chain_insn(Frame& f, int32_t index, Env& env) {
  const ChainInsn& insn = f.fn->chains[static_cast<size_t>(index)];
  const View* inputs[kMaxChainOperands];
  Scalar scalars[kMaxChainOperands];
  thread_local View room[kMaxChainOperands];
  struct Results {
    const std::span<View> views;
    ~Results() {
      for (View& r : views) r.buffer = BufferRef();
    }
  } results{{room, insn.outputs.size()}};
  ChainServices services(fiber_, f, insn, env);
  services.load();
  for (size_t i = 0; i < insn.inputs.size(); ++i) inputs[i] = &v(f, insn.inputs[i].index);
  for (size_t i = 0; i < insn.scalars.size(); ++i) scalars[i] = s(f, insn.scalars[i].index);
  if (env.timer) env.timer->steps(insn, {inputs, insn.inputs.size()});
  run_chain(insn.chain, {inputs, insn.inputs.size()}, {scalars, insn.scalars.size()}, services,
            results.views);
  services.finish(results.views);
  fiber_.part_site = -1;
}

/// Tells the marks whose lines they are about.
class RunningFiber {
 public:
  RunningFiber(const Fiber& fiber, Env& env) : marks_(marks()) {
    marks_.fiber = &fiber;
    marks_.env = &env;
  }
  ~RunningFiber() {
    marks_.fiber = nullptr;
    marks_.env = nullptr;
  }
  RunningFiber(const RunningFiber&) = delete;
  RunningFiber& operator=(const RunningFiber&) = delete;

 private:
  Marks& marks_;
};

}  // namespace

RunStatus run(Fiber& fiber, const Program& program, Env& env, uint64_t quantum) {
  Interpreter interpreter(fiber, program, env);
  const RunningFiber running(fiber, env);
  try {
    return env.timer ? interpreter.run_timed(quantum) : interpreter.run(quantum);
  } catch (Failure& failure) {
    Diagnostic& d = failure.diagnostic();
    if (!d.span.known()) {
      if (const Site* site = fiber.site()) d.span = site->span;
    }
    if (d.id.empty() && d.cls == ErrorClass::kProgramFault) d.id = "O-402";
    const bool host = !fiber.frames.empty() && fiber.frames.back().fn->level >= ir::Level::kHost;
    if (host && d.id.empty() && d.cls == ErrorClass::kOutOfBoundsError) {
      d.id = "X-16";  // a host tensor too small for the world
      d.hint = "use pl.dynamic(\"NR\") and pld.world_size() for rank counts";
    }
    if (d.id.empty() && d.cls == ErrorClass::kOutOfBoundsError) d.id = "O-404";
    throw;
  }
}

}  // namespace pypto::vm
