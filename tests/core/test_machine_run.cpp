// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/core/machine_builder.h"

namespace pypto::machine {
namespace {

using Dir = ir::ParamDirection;

/// out = in + 1 per element, rows x cols, as a kernel `add_one(x, y)`.
FunctionBuilder add_one(vm::Program& p, int64_t rows, int64_t cols, const char* name = "add_one") {
  FunctionBuilder k(p, name);
  const Reg x = k.tensor("x");
  const Reg y = k.tensor("y", Dir::kOut);
  const Reg zero = k.constant(0);
  const Reg tile = k.load(x, zero, zero, k.constant(rows), k.constant(cols));
  const Reg sum = k.view();
  const Reg one = k.float_constant(1);
  k.op(OpId::k_adds, {k.one(tile), k.one(one)}, {sum});
  k.store(sum, zero, zero, y);
  k.done();
  return k;
}

TEST(MachineRun, KernelAsEntry) {
  vm::Program p;
  FunctionBuilder k = add_one(p, 3, 5);
  auto x = ramp(15);
  std::vector<float> y(15);
  const RunReport r = run_program(p, k.index(), {host_array(x, {3, 5}), host_array(y, {3, 5})});
  EXPECT_EQ(y, ramp(15, 2));
  EXPECT_EQ(r.ranks[0].kernels.at("add_one"), 1);
}

TEST(MachineRun, TasksAreOrderedByOverlap) {  // 01 L-159
  vm::Program p;
  FunctionBuilder k = add_one(p, 1, 4);
  FunctionBuilder o(p, "orch", ir::Level::kChip);
  const Reg x = o.tensor("x");
  const Reg y = o.tensor("y", Dir::kOut);
  // t = x + 1 three times over through one scratch row, then y rows from it; rows of y are independent.
  const Reg cols = o.constant(4);
  const Reg t = o.create("t", {o.constant(1), cols});
  o.call(k, {x, t});
  o.call(k, {t, t});
  for (int row = 0; row < 3; ++row) o.call(k, {t, o.row_slice(y, o.constant(row), cols)});
  o.call(k, {t, t});
  o.done();
  auto xs = ramp(4);
  std::vector<float> ys(12);
  RunOptions options;
  options.want_task_graph = true;
  const RunReport r = run_program(p, o.index(), {host_array(xs, {1, 4}), host_array(ys, {3, 4})}, options);
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(std::vector<float>(ys.begin() + 4 * row, ys.begin() + 4 * row + 4), ramp(4, 4));
  }
  ASSERT_EQ(r.tasks.size(), 6u);
  auto edge = [&](int a, int b) {
    for (const auto& e : r.edges) {
      if (e.pred == r.tasks[static_cast<size_t>(a)].id && e.succ == r.tasks[static_cast<size_t>(b)].id)
        return true;
    }
    return false;
  };
  EXPECT_TRUE(edge(0, 1));                 // RAW and WAW
  EXPECT_TRUE(edge(1, 2) && edge(1, 4));   // RAW
  EXPECT_FALSE(edge(2, 3) || edge(3, 4));  // disjoint rows
  EXPECT_TRUE(edge(2, 5) && edge(4, 5));   // WAR
}

TEST(MachineRun, HalfAMillionTasksInBoundedMemory) {  // 05 H-141
  vm::Program p;
  FunctionBuilder k = add_one(p, 1, 4);
  FunctionBuilder o(p, "orch", ir::Level::kChip);
  const Reg y = o.tensor("y", Dir::kInOut);
  const Reg cols = o.constant(4);
  o.loop(o.constant(0), o.constant(100000), [&](Reg) {
    for (int row = 0; row < 5; ++row) {
      const Reg part = o.row_slice(y, o.constant(row), cols);
      o.call(k, {part, part});
    }
  });
  o.done();
  auto ys = ramp(20);
  const RunReport r = run_program(p, o.index(), {host_array(ys, {5, 4})});
  EXPECT_EQ(ys, ramp(20, 100001));
  EXPECT_EQ(r.ranks[0].tasks, 500000);
}

TEST(MachineRun, BlocksRunInWaves) {  // 01 L-117
  vm::Program p;
  FunctionBuilder k(p, "fill");
  const Reg y = k.tensor("y", Dir::kOut);
  const Reg i = k.scalar();
  k.op(OpId::k_get_block_idx, {}, {i});
  const Reg n = k.scalar();
  k.op(OpId::k_get_block_num, {}, {n});
  const Reg zero = k.constant(0);
  const Reg value = k.scalar(DType::kFp32);
  vm::Insn& cast = k.add(Opcode::kCast);
  cast.dst = value.index;
  const Reg both = k.arith(OpId::k_scalar_add, i, n);
  k.fn().code[k.fn().code.size() - 2].a = both.index;
  std::swap(k.fn().code[k.fn().code.size() - 2], k.fn().code[k.fn().code.size() - 1]);
  k.fn().code.back().dtype = DType::kInt64;
  k.fn().code.back().dtype2 = DType::kFp32;
  const Reg r = k.view();
  k.op(OpId::k_write, {k.one(y), k.list({i, zero}), k.one(value)}, {r}, false);
  k.done();
  FunctionBuilder o(p, "orch", ir::Level::kChip);
  const Reg out = o.tensor("y", Dir::kOut);
  const Reg blocks = o.constant(130);
  o.call(k, {out}).core_num = blocks;
  o.done();
  std::vector<float> ys(130);
  const RunReport report = run_program(p, o.index(), {host_array(ys, {130, 1})});
  EXPECT_EQ(ys, ramp(130, 130));
  EXPECT_EQ(report.ranks[0].tasks, 1);
}

TEST(MachineRun, SyncStartThatCannotFit) {  // 05 H-11
  vm::Program p;
  FunctionBuilder k = add_one(p, 1, 4);
  FunctionBuilder o(p, "orch", ir::Level::kChip);
  const Reg x = o.tensor("x");
  const Reg y = o.tensor("y", Dir::kOut);
  const Reg blocks = o.constant(49);
  vm::CallInsn& c = o.call(k, {x, y});
  c.core_num = blocks;
  c.sync_start = true;
  o.done();
  auto xs = ramp(4);
  std::vector<float> ys(4);
  try {
    run_program(p, o.index(), {host_array(xs, {1, 4}), host_array(ys, {1, 4})});
    FAIL();
  } catch (const Failure& f) {
    EXPECT_NE(f.diagnostic().message.find("49 blocks"), std::string::npos) << f.diagnostic().message;
    EXPECT_NE(f.diagnostic().message.find("48 cores"), std::string::npos);
  }
}

TEST(MachineRun, ManualScopeOrdersByDepsOnly) {  // 01 L-166, L-133, L-137
  vm::Program p;
  FunctionBuilder k = add_one(p, 1, 4);
  FunctionBuilder o(p, "orch", ir::Level::kChip);
  const Reg y = o.tensor("y", Dir::kInOut);
  o.scope(true, ir::ScopeKind::kManual);
  Reg last = o.scalar(DType::kTaskId);
  o.call(k, {y, y}).task = last;
  for (int i = 0; i < 3; ++i) {
    const Reg dummy = o.scalar(DType::kTaskId);
    o.op(OpId::k_task_dummy, {o.list({last})}, {dummy});
    const Reg next = o.scalar(DType::kTaskId);
    vm::CallInsn& c = o.call(k, {y, y});
    c.has_deps = true;
    c.deps = {dummy};
    c.task = next;
    last = next;
  }
  o.scope(false, ir::ScopeKind::kManual);
  o.call(k, {y, y});
  o.done();
  auto ys = ramp(4);
  RunOptions options;
  options.want_task_graph = true;
  const RunReport r = run_program(p, o.index(), {host_array(ys, {1, 4})}, options);
  EXPECT_EQ(ys, ramp(4, 6));
  EXPECT_EQ(r.tasks.size(), 8u);  // five kernels, three dummies
}

TEST(MachineRun, PredicateFalseSkipsTheTask) {  // 01 L-136
  vm::Program p;
  FunctionBuilder k = add_one(p, 1, 4);
  FunctionBuilder o(p, "orch", ir::Level::kChip);
  const Reg flag = o.tensor("flag", Dir::kIn, DType::kInt32);
  const Reg y = o.tensor("y", Dir::kInOut);
  const Reg zero = o.constant(0);
  for (const int64_t want : {7, 8}) {
    vm::CallInsn& c = o.call(k, {y, y});
    c.has_predicate = true;
    c.predicate_tensor = flag;
    c.predicate_index = {zero};
    c.predicate_op = OpId::k_scalar_eq;
    c.predicate_value = want;
  }
  o.done();
  std::vector<int32_t> flags{7};
  auto ys = ramp(4);
  HostArg f;
  f.data = reinterpret_cast<uint8_t*>(flags.data());
  f.dtype = DType::kInt32;
  f.shape = {1};
  run_program(p, o.index(), {f, host_array(ys, {1, 4})});
  EXPECT_EQ(ys, ramp(4, 2));
}

// ------------------------------------------------------------------ several ranks

/// Every rank publishes x[r] in its window, tells its right neighbour, and copies its left neighbour's slice
/// to y[r].
struct Ring : RankProgram {
  int64_t wait_row = 0;
  bool send_notify = true;

  void build() {
    RankProgram::build([&](FunctionBuilder& k, const Operands& a) {
      const Reg zero = k.constant(0);
      const Reg one = k.constant(1);
      const Reg width = k.constant(kCols);
      k.store(k.load(a.x, zero, zero, one, width), zero, zero, a.box);
      if (send_notify) k.notify(a.sig, a.right, zero, one);
      k.wait(a.sig, k.constant(wait_row), one);
      k.store(k.remote_load(a.box, a.left, zero, width), zero, zero, a.y);
    });
  }
  RunReport run_on(int ranks, std::vector<float>* out, RunOptions options = {}, World* world = nullptr) {
    return run_ranks(ranks, out, std::move(options), world);
  }
};

TEST(MachineRanks, NeighbourShift) {
  for (const int ranks : {1, 2, 3, 16}) {
    Ring ring;
    ring.build();
    std::vector<float> y;
    const RunReport r = ring.run_on(ranks, &y);
    for (int q = 0; q < ranks; ++q)
      EXPECT_EQ(y[static_cast<size_t>(4 * q)], 1 + 4 * ((q + ranks - 1) % ranks));
    EXPECT_EQ(r.ranks[0].comm.wait, 1);
    EXPECT_EQ(r.ranks[0].comm.notify_remote, ranks > 1 ? 1 : 0);
    EXPECT_EQ(r.ranks[0].comm.bytes_read, ranks > 1 ? 16 : 0);
    ASSERT_EQ(r.windows.size(), 2u);
    EXPECT_EQ(r.windows[0].name, "box_buf");
    EXPECT_EQ(r.windows[0].reserved, 4096);  // 03 W-11
    EXPECT_EQ(r.windows[1].offset, 4096);
  }
}

TEST(MachineRanks, ThousandRanks) {  // 04 DST-1
  Ring ring;
  ring.build();
  std::vector<float> y;
  ring.run_on(1024, &y);
  EXPECT_EQ(y[0], 1 + 4 * 1023);
  EXPECT_EQ(y[4 * 1000], 1 + 4 * 999);
}

TEST(MachineRanks, MissingNotifyIsADeadlockAtOnce) {  // 03 X-46
  Ring ring;
  ring.send_notify = false;
  ring.build();
  std::vector<float> y;
  try {
    ring.run_on(2, &y);
    FAIL();
  } catch (const Failure& f) {
    EXPECT_EQ(f.diagnostic().cls, ErrorClass::kDeadlockError);
    EXPECT_NE(f.diagnostic().message.find("deadlock"), std::string::npos);
    ASSERT_EQ(f.diagnostic().waits.size(), 2u);
    EXPECT_EQ(f.diagnostic().waits[0].object, "sig_buf");
    EXPECT_EQ(f.diagnostic().waits[1].rank, 1);
  }
}

TEST(MachineRanks, WindowsOfAPersistentWorld) {  // 04 DST-28, DST-29
  Ring ring;
  ring.build();
  std::vector<float> y;
  const auto persistent = make_world({0, 1}, true, true);
  for (int i = 0; i < 3; ++i) ring.run_on(2, &y, {}, persistent.get());
  EXPECT_EQ(persistent->window_groups(), 1);
  const auto plain = make_world({0, 1}, false, true);
  for (int i = 0; i < 3; ++i) ring.run_on(2, &y, {}, plain.get());
  EXPECT_EQ(plain->window_groups(), 3);
}

}  // namespace
}  // namespace pypto::machine
