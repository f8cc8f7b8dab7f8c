// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "core/vm/emit.h"
#include "core/vm/interp.h"

namespace pypto::vm {
namespace {

using namespace ir;

/// A machine for functions that need none.
class QuietEnv : public Env {
 public:
  std::vector<std::string> warnings;
  ExecStatus machine_op(OpCall&) override {
    ADD_FAILURE() << "no machine operation expected";
    return ExecStatus::kDone;
  }
  ExecStatus call(const CallInsn&, Frame&) override { return ExecStatus::kDone; }
  View create(const CreateInsn&, const std::vector<int64_t>&) override { return {}; }
  ExecStatus order_element(const View&, AccessKind) override { return ExecStatus::kDone; }
  void access(const View&, AccessKind) override {}
  void warn(const char* id, std::string) override { warnings.emplace_back(id); }
  void scope(bool, ScopeKind) override {}
  void spawn(std::unique_ptr<Fiber> child, int) override { children_.push_back(std::move(child)); }
  bool join() override {
    for (auto& c : children_) {
      if (run(*c, *program, *this, 1000) != RunStatus::kDone) return false;
    }
    return true;
  }
  std::vector<std::unique_ptr<Fiber>>& children() override { return children_; }
  const Program* program = nullptr;

 private:
  std::vector<std::unique_ptr<Fiber>> children_;
};

/// Builds one kernel function whose parameters are INT64 scalars and whose single result is an INT64 scalar.
struct Kernel {
  Module module;
  FunctionPtr fn = std::make_shared<Function>();

  Kernel() {
    module.name = "m";
    fn->name = "k";
    fn->type = FunctionType::kInCore;
    fn->return_types.push_back(scalar_type(DType::kInt64));
    fn->return_params.push_back(-1);
    module.functions.push_back(fn);
  }
  VarPtr param(const char* name) {
    VarPtr v = fn->add_var(name, scalar_type(DType::kInt64), VarKind::kParam, {});
    fn->params.push_back(v);
    return v;
  }
  VarPtr local(const char* name, TypePtr t = scalar_type(DType::kInt64)) {
    return fn->add_var(name, t, VarKind::kLocal, {});
  }
  static ExprPtr i(int64_t v) { return int_const(v, DType::kInt64); }
  static ExprPtr op(OpId id, ExprPtr a, ExprPtr b, DType t = DType::kInt64) {
    return op_expr(id, {std::move(a), std::move(b)}, {}, scalar_type(t));
  }
  static StmtPtr set(VarPtr v, ExprPtr e) {
    auto s = std::make_shared<Stmt>();
    s->kind = StmtKind::kAssign;
    s->targets.push_back(std::move(v));
    s->value = std::move(e);
    return s;
  }
  static StmtPtr give(ExprPtr e) {
    auto s = std::make_shared<Stmt>();
    s->kind = StmtKind::kReturn;
    s->values.push_back(std::move(e));
    return s;
  }
  StmtPtr loop(const char* name, ExprPtr start, ExprPtr stop, ExprPtr step, Block body) {
    auto s = std::make_shared<Stmt>();
    s->kind = StmtKind::kFor;
    s->loop_var = fn->add_var(name, scalar_type(DType::kInt64), VarKind::kLoop, {});
    s->start = std::move(start);
    s->stop = std::move(stop);
    s->step = std::move(step);
    s->body = std::move(body);
    return s;
  }

  int64_t run_with(std::vector<int64_t> args, QuietEnv* env = nullptr) {
    QuietEnv own;
    if (!env) env = &own;
    // Every program also survives saving and loading.
    const ProgramPtr program = load(save(*emit(module)));
    env->program = program.get();
    const FunctionCode& code = program->functions[0];
    auto fiber = make_fiber(code);
    for (size_t k = 0; k < args.size(); ++k)
      fiber->top().s[static_cast<size_t>(code.params[k].reg.index)].i = args[k];
    int64_t result = 0;
    while (true) {
      Frame last = fiber->top();
      const RunStatus status = vm::run(*fiber, *program, *env, 1);
      if (status == RunStatus::kDone) {
        result = last.s[static_cast<size_t>(code.results[0].index)].i;
        return result;
      }
    }
  }
};

TEST(Emit, FloorDivisionAndRemainderFollowTheDivisor) {  // 01 L-17
  Kernel k;
  const VarPtr a = k.param("a");
  const VarPtr b = k.param("b");
  k.fn->body = {Kernel::give(
      Kernel::op(OpId::k_scalar_add,
                 Kernel::op(OpId::k_scalar_mul, Kernel::op(OpId::k_scalar_floordiv, var_ref(a), var_ref(b)),
                            Kernel::i(100)),
                 Kernel::op(OpId::k_scalar_mod, var_ref(a), var_ref(b))))};
  QuietEnv env;
  EXPECT_EQ(k.run_with({-7, 2}, &env), -4 * 100 + 1);
  EXPECT_EQ(env.warnings.size(), 2u);  // one per operator
  EXPECT_EQ(k.run_with({-7, 3}), -3 * 100 + 2);
  EXPECT_EQ(k.run_with({7, -3}), -3 * 100 - 2);
  EXPECT_EQ(k.run_with({9, 4}), 2 * 100 + 1);
}

TEST(Emit, DivisionByZeroNamesTheDividend) {  // 01 L-19
  Kernel k;
  const VarPtr a = k.param("a");
  const VarPtr b = k.param("b");
  k.fn->body = {Kernel::give(Kernel::op(OpId::k_scalar_floordiv, var_ref(a), var_ref(b)))};
  try {
    k.run_with({41, 0});
    FAIL() << "expected a fault";
  } catch (const Failure& f) {
    EXPECT_NE(f.diagnostic().message.find("41"), std::string::npos);
    EXPECT_EQ(f.diagnostic().cls, ErrorClass::kProgramFault);
  }
}

TEST(Emit, LoopsCountDownAndMayRunZeroTimes) {  // 01 L-94; case K12
  Kernel k;
  const VarPtr n = k.param("n");
  const VarPtr sum = k.local("sum");
  const VarPtr trips = k.local("trips");
  k.fn->body = {Kernel::set(sum, Kernel::i(0)), Kernel::set(trips, Kernel::i(0))};
  Block body;
  auto loop = k.loop("i", var_ref(n), Kernel::i(0), Kernel::i(-1), {});
  loop->body = {Kernel::set(sum, Kernel::op(OpId::k_scalar_add, var_ref(sum), var_ref(loop->loop_var))),
                // Rebinding the loop variable affects the rest of that iteration only.
                Kernel::set(loop->loop_var, Kernel::i(1000)),
                Kernel::set(trips, Kernel::op(OpId::k_scalar_add, var_ref(trips), Kernel::i(1)))};
  k.fn->body.push_back(loop);
  k.fn->body.push_back(Kernel::give(Kernel::op(
      OpId::k_scalar_add, Kernel::op(OpId::k_scalar_mul, var_ref(sum), Kernel::i(100)), var_ref(trips))));
  EXPECT_EQ(k.run_with({8}), 36 * 100 + 8);
  EXPECT_EQ(k.run_with({0}), 0);
  EXPECT_EQ(k.run_with({-3}), 0);
}

TEST(Emit, ExplicitCarriesHoldTheLastValueAfterBreakAndContinue) {  // 01 L-97, L-103
  Kernel k;
  const VarPtr n = k.param("n");
  const VarPtr a0 = k.local("a0");
  const VarPtr a = k.fn->add_var("a", scalar_type(DType::kInt64), VarKind::kCarry, {});
  const VarPtr r = k.local("r");
  k.fn->body = {Kernel::set(a0, Kernel::i(5))};
  auto loop = k.loop("i", Kernel::i(0), var_ref(n), Kernel::i(1), {});
  loop->explicit_carry = true;
  loop->carries.push_back({a, var_ref(a0), r});
  auto skip = std::make_shared<Stmt>();
  skip->kind = StmtKind::kIf;
  skip->value = Kernel::op(OpId::k_scalar_eq, var_ref(loop->loop_var), Kernel::i(1), DType::kBool);
  auto next = std::make_shared<Stmt>();
  next->kind = StmtKind::kContinue;
  skip->body = {next};
  auto stop = std::make_shared<Stmt>();
  stop->kind = StmtKind::kIf;
  stop->value = Kernel::op(OpId::k_scalar_eq, var_ref(loop->loop_var), Kernel::i(4), DType::kBool);
  auto leave = std::make_shared<Stmt>();
  leave->kind = StmtKind::kBreak;
  stop->body = {leave};
  auto yield = std::make_shared<Stmt>();
  yield->kind = StmtKind::kYield;
  yield->targets = {r};
  yield->values = {Kernel::op(OpId::k_scalar_add, Kernel::op(OpId::k_scalar_mul, var_ref(a), Kernel::i(10)),
                              var_ref(loop->loop_var))};
  loop->body = {skip, stop, yield};
  k.fn->body.push_back(loop);
  k.fn->body.push_back(Kernel::give(Kernel::op(
      OpId::k_scalar_add, var_ref(r), Kernel::op(OpId::k_scalar_mul, var_ref(a0), Kernel::i(1000000)))));
  EXPECT_EQ(k.run_with({0}), 5000005);  // no iteration: the initial value
  EXPECT_EQ(k.run_with({3}), 5000502);  // 5 -> 50 (i=0) -> skipped (i=1) -> 502
  EXPECT_EQ(k.run_with({9}), 5005023);  // ... -> 5023 (i=3), left at i=4; a0 unchanged
}

TEST(Emit, ArrayElementsAreSnapshotsAndPlainAssignmentCopies) {  // 02 O-2402, 01 L-83
  Kernel k;
  const VarPtr n = k.param("n");
  const TypePtr t = array_type(4, DType::kInt32);
  const VarPtr arr = k.local("arr", t);
  const VarPtr other = k.local("other", t);
  const VarPtr x = k.local("x");
  auto get = [&](const VarPtr& v, int64_t at) {
    return op_expr(OpId::k_array_get, {var_ref(v), Kernel::i(at)}, {}, scalar_type(DType::kInt32));
  };
  auto put = [&](const VarPtr& v, ExprPtr at, ExprPtr value) {
    return Kernel::set(v,
                       op_expr(OpId::k_array_update, {var_ref(v), std::move(at), std::move(value)}, {}, t));
  };
  k.fn->body = {Kernel::set(arr, op_expr(OpId::k_array_create, {}, {}, t)),
                put(arr, Kernel::i(2), Kernel::i(7)),
                Kernel::set(other, var_ref(arr)),
                Kernel::set(x, get(arr, 2)),
                put(arr, var_ref(n), Kernel::i(9)),
                Kernel::give(Kernel::op(
                    OpId::k_scalar_add, Kernel::op(OpId::k_scalar_mul, get(arr, 2), Kernel::i(100)),
                    Kernel::op(OpId::k_scalar_add,
                               Kernel::op(OpId::k_scalar_mul, get(other, 2), Kernel::i(10)), var_ref(x))))};
  EXPECT_EQ(k.run_with({2}), 9 * 100 + 7 * 10 + 7);
  EXPECT_EQ(k.run_with({0}), 7 * 100 + 7 * 10 + 7);
  try {
    k.run_with({4});
    FAIL() << "expected an index error";
  } catch (const Failure& f) {  // 01 L-132
    EXPECT_EQ(f.diagnostic().cls, ErrorClass::kOutOfBoundsError);
    EXPECT_NE(f.diagnostic().message.find("'arr'"), std::string::npos);
  }
}

TEST(Emit, DamagedProgramsAreRefused) {  // 04 PRG-13
  Kernel k;
  const VarPtr n = k.param("n");
  k.fn->body = {Kernel::give(Kernel::op(OpId::k_scalar_add, var_ref(n), Kernel::i(3)))};
  const std::string good = save(*emit(k.module));
  EXPECT_NO_THROW(load(good));
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_THROW(load(good.substr(0, cut)), Failure) << cut;
  int refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x5a);
    try {
      load(bad);  // a changed name or constant may still be a program; it must not crash
    } catch (const Failure&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size() / 8));
}

}  // namespace
}  // namespace pypto::vm
