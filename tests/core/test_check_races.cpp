// SPDX-License-Identifier: Apache-2.0
// Triples of programs: correct (no report), racy (the right pair and name).
#include <gtest/gtest.h>

#include "tests/core/machine_builder.h"

namespace pypto::machine {
namespace {

using Operands = RankProgram::Operands;

std::string run_for_id(RankProgram& program, int ranks, Diagnostic* out = nullptr, RunOptions options = {}) {
  std::vector<float> y;
  try {
    const RunReport r = program.run_ranks(ranks, &y, options);
    if (!r.diagnostics.empty()) {
      if (out) *out = r.diagnostics.front();
      return "warning " + r.diagnostics.front().id;
    }
    return "";
  } catch (const Failure& f) {
    if (out) *out = f.diagnostic();
    return f.diagnostic().id;
  }
}

void stage(FunctionBuilder& k, const Operands& a, Reg row) {
  const Reg zero = k.constant(0);
  k.store(k.load(a.x, zero, zero, k.constant(1), k.constant(RankProgram::kCols)), row, zero, a.box);
}
/// Hand-written barrier: everybody raises its row at everybody else and waits for all rows.
void barrier(FunctionBuilder& k, const Operands& a, int64_t round = 1, ir::WaitCmp cmp = ir::WaitCmp::kGe) {
  const Reg zero = k.constant(0);
  const Reg one = k.constant(1);
  k.loop(zero, a.n, [&](Reg q) { k.unless_equal(q, a.me, [&] { k.notify(a.sig, q, a.me, one); }); });
  const Reg expected = k.constant(round);
  k.loop(zero, a.n, [&](Reg q) { k.unless_equal(q, a.me, [&] { k.wait(a.sig, q, expected, cmp); }); });
}
void fetch(FunctionBuilder& k, const Operands& a, Reg peer) {
  const Reg zero = k.constant(0);
  k.store(k.remote_load(a.box, peer, zero, k.constant(RankProgram::kCols)), zero, zero, a.y);
}
void read_own(FunctionBuilder& k, const Operands& a) {
  const Reg zero = k.constant(0);
  k.store(k.load(a.box, zero, zero, k.constant(1), k.constant(RankProgram::kCols)), zero, zero, a.y);
}
Reg own_value(FunctionBuilder& k, const Operands& a) {
  const Reg zero = k.constant(0);
  return k.load(a.x, zero, zero, k.constant(1), k.constant(RankProgram::kCols));
}

/// x + round, so that every round writes other bytes (03 M-24).
Reg value_of_round(FunctionBuilder& k, const Operands& a, int64_t round) {
  const Reg r = k.view();
  k.op(OpId::k_adds, {k.one(own_value(k, a)), k.one(k.float_constant(static_cast<double>(round)))}, {r});
  return r;
}
void stage_round(FunctionBuilder& k, const Operands& a, int64_t round) {
  const Reg zero = k.constant(0);
  k.store(value_of_round(k, a, round), zero, zero, a.box);
}

TEST(CheckRaces, StageBarrierLoadIsClean) {  // 03 X-73
  for (const int ranks : {1, 2, 3, 5}) {
    RankProgram p;
    p.build([](FunctionBuilder& k, const Operands& a) {
      stage(k, a, k.constant(0));
      barrier(k, a);
      fetch(k, a, a.left);
    });
    RunOptions strict;
    strict.checks = Checks::kStrict;
    EXPECT_EQ(run_for_id(p, ranks, nullptr, strict), "") << ranks;
  }
}

TEST(CheckRaces, LoadBeforeBarrier) {  // 03 X-42
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    stage(k, a, k.constant(0));
    fetch(k, a, a.left);
    barrier(k, a);
  });
  Diagnostic d;
  EXPECT_EQ(run_for_id(p, 2, &d), "X-40/X-42");
  EXPECT_EQ(d.cls, ErrorClass::kRaceError);
  EXPECT_NE(d.message.find("race"), std::string::npos);
  ASSERT_EQ(d.accesses.size(), 2u);
  EXPECT_NE(d.accesses[0].rank, d.accesses[1].rank);
  EXPECT_EQ(d.accesses[0].object, "box_buf");
  EXPECT_EQ(d.accesses[0].bytes, 16);
  EXPECT_EQ(d.accesses[0].range, (std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {0, 4}}));
}

TEST(CheckRaces, BarrierBeforeStaging) {  // 03 X-43 pull
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    barrier(k, a);
    stage(k, a, k.constant(0));
    fetch(k, a, a.left);
  });
  EXPECT_EQ(run_for_id(p, 2), "X-40/X-43");
}

TEST(CheckRaces, BarrierBeforePush) {  // 03 X-43 push
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    barrier(k, a);
    k.remote_store(own_value(k, a), a.box, a.right, k.constant(0));
    read_own(k, a);
  });
  EXPECT_EQ(run_for_id(p, 2), "X-40/X-43");
}

TEST(CheckRaces, PushWithoutSignal) {  // 03 X-60
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    k.remote_store(own_value(k, a), a.box, a.right, k.constant(0));
    read_own(k, a);
  });
  EXPECT_EQ(run_for_id(p, 2), "X-40/X-60");
}

TEST(CheckRaces, HandshakeWithTheWrongNeighbour) {  // 03 X-59
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    stage(k, a, k.constant(0));
    const Reg zero = k.constant(0);
    k.notify(a.sig, a.left, zero, k.constant(1));
    k.wait(a.sig, zero, k.constant(1));
    fetch(k, a, a.left);
  });
  EXPECT_EQ(run_for_id(p, 3), "X-40/X-59");
}

TEST(CheckRaces, OverwriteWhilePeersRead) {  // 03 X-71
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    stage(k, a, k.constant(0));
    barrier(k, a);
    const Reg zero = k.constant(0);
    const Reg got = k.remote_load(a.box, a.left, zero, k.constant(RankProgram::kCols));
    k.store(got, zero, zero, a.box);
  });
  Diagnostic d;
  EXPECT_EQ(run_for_id(p, 3, &d), "X-40");
  EXPECT_NE(d.title.find("overwrite while peers read"), std::string::npos);
}

TEST(CheckRaces, ReadCompleteBarrierMakesOverwritingLegal) {
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    stage(k, a, k.constant(0));
    barrier(k, a);
    const Reg zero = k.constant(0);
    const Reg got = k.remote_load(a.box, a.left, zero, k.constant(RankProgram::kCols));
    barrier(k, a, 2);
    k.store(got, zero, zero, a.box);
  });
  EXPECT_EQ(run_for_id(p, 4), "");
}

TEST(CheckRaces, TargetStillBeingRead) {  // 03 C-31
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    for (int64_t round = 1; round <= 2; ++round) {
      k.remote_store(value_of_round(k, a, round), a.box, a.right, zero);
      barrier(k, a, round);
      read_own(k, a);
    }
  });
  Diagnostic d;
  EXPECT_EQ(run_for_id(p, 2, &d), "X-40");
  EXPECT_NE(d.title.find("target still being read"), std::string::npos) << d.title;
}

TEST(CheckRaces, TwoWriters) {  // 03 X-61
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    k.loop(zero, a.n, [&](Reg q) { k.remote_store(own_value(k, a), a.box, q, zero); });
  });
  EXPECT_EQ(run_for_id(p, 2), "X-40/X-61");
}

TEST(CheckRaces, SecondBarrierOnUsedCells) {  // 03 X-45
  RankProgram p;
  p.box_rows = 2;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    for (int i = 0; i < 2; ++i) {
      const Reg row = k.constant(i);
      stage(k, a, row);
      barrier(k, a, 1);
      k.store(k.remote_load(a.box, a.left, row, k.constant(RankProgram::kCols)), zero, zero, a.y);
    }
  });
  EXPECT_EQ(run_for_id(p, 2), "X-40/X-45");
}

TEST(CheckRaces, EpochBarriersAreClean) {  // 03 M-30
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    for (int64_t i = 0; i < 4; ++i) {
      stage_round(k, a, i);
      barrier(k, a, 2 * i + 1);
      fetch(k, a, a.left);
      barrier(k, a, 2 * i + 2);
    }
  });
  EXPECT_EQ(run_for_id(p, 3), "");
}

TEST(CheckRaces, TallyCellWithThresholdOne) {  // 03 X-45, order-dependent arrival
  RankProgram p;
  p.sig_rows = 1;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    const Reg one = k.constant(1);
    stage(k, a, zero);
    k.loop(zero, a.n, [&](Reg q) { k.unless_equal(q, a.me, [&] { k.notify(a.sig, q, zero, one); }); });
    k.wait(a.sig, zero, one);
    fetch(k, a, a.left);
    fetch(k, a, a.right);
  });
  Diagnostic d;
  EXPECT_EQ(run_for_id(p, 3, &d), "X-40/X-45");
  EXPECT_NE(d.title.find("order-dependent"), std::string::npos) << d.title;
}

TEST(CheckRaces, TallyCellWithFullCountIsClean) {
  RankProgram p;
  p.sig_rows = 1;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    const Reg one = k.constant(1);
    stage(k, a, zero);
    k.loop(zero, a.n, [&](Reg q) { k.unless_equal(q, a.me, [&] { k.notify(a.sig, q, zero, one); }); });
    k.wait(a.sig, zero, k.arith(OpId::k_scalar_sub, a.n, one));
    fetch(k, a, a.left);
    fetch(k, a, a.right);
  });
  EXPECT_EQ(run_for_id(p, 4), "");
}

TEST(CheckRaces, ALateArrivalMakesEarlierObservationsUnsure) {  // 03 M-30
  for (const int64_t threshold : {2, 3}) {
    RankProgram p;
    p.sig_rows = 1;
    p.build([&](FunctionBuilder& k, const Operands& a) {
      const Reg zero = k.constant(0);
      const Reg one = k.constant(1);
      stage(k, a, zero);
      k.unless_equal(a.me, zero, [&] {
        // The last rank is slow: its notify comes rounds after the wait for two was satisfied.
        const Reg three = k.constant(3);
        const Reg turns =
            k.arith(OpId::k_scalar_mul, k.arith(OpId::k_scalar_floordiv, a.me, three), k.constant(100000));
        k.loop(zero, turns, [&](Reg) {});
        k.notify(a.sig, zero, zero, one);
      });
      const Reg me_is_zero = k.arith(OpId::k_scalar_eq, a.me, zero);
      k.unless_equal(me_is_zero, zero, [&] {
        k.wait(a.sig, zero, k.constant(threshold));
        fetch(k, a, a.right);
      });
    });
    EXPECT_EQ(run_for_id(p, 4), threshold == 2 ? "X-40/X-45" : "");
  }
}

TEST(CheckRaces, SetOnASharedCell) {  // 03 X-44
  RankProgram p;
  p.sig_rows = 1;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    const Reg one = k.constant(1);
    k.loop(zero, a.n, [&](Reg q) {
      k.unless_equal(q, a.me, [&] { k.notify(a.sig, q, zero, one, ir::NotifyOp::kSet); });
    });
    k.wait(a.sig, zero, one);
  });
  EXPECT_EQ(run_for_id(p, 3), "X-44");
}

TEST(CheckRaces, EqMayMissItsValue) {  // 03 X-48
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    barrier(k, a, 1, ir::WaitCmp::kEq);
    barrier(k, a, 2, ir::WaitCmp::kEq);
  });
  EXPECT_EQ(run_for_id(p, 2), "X-48");
}

TEST(CheckRaces, SilentWritesDoNotRaceWithReads) {  // 03 M-24
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    // Zeros over zeros while the neighbour reads.
    k.store(k.load(a.box, zero, zero, k.constant(1), k.constant(RankProgram::kCols)), zero, zero, a.box);
    fetch(k, a, a.left);
  });
  EXPECT_EQ(run_for_id(p, 2), "");
}

TEST(CheckRaces, GroupsThatFollowHostOrderWarn) {  // 03 M-33
  RankProgram p;
  p.rounds = 2;
  p.own_groups = true;
  p.more = {[](FunctionBuilder& k, const Operands& a) { fetch(k, a, a.left); }};
  p.build([](FunctionBuilder& k, const Operands& a) { stage(k, a, k.constant(0)); });
  EXPECT_EQ(run_for_id(p, 2), "warning X-40");
  RunOptions strict;
  strict.checks = Checks::kStrict;
  EXPECT_EQ(run_for_id(p, 2, nullptr, strict), "X-40");
  RunOptions off;
  off.checks = Checks::kOff;
  EXPECT_EQ(run_for_id(p, 2, nullptr, off), "");
}

TEST(CheckRaces, ConsumerTaskSeesWhatTheProducerTaskAcquired) {  // 03 M-11, P-15
  RankProgram p;
  p.more = {[](FunctionBuilder& k, const Operands& a) { fetch(k, a, a.left); }};
  p.build([](FunctionBuilder& k, const Operands& a) {
    stage(k, a, k.constant(0));
    barrier(k, a);
  });
  EXPECT_EQ(run_for_id(p, 3), "");
}

TEST(CheckSchedules, EverySeedGivesTheSameResultsAndReports) {  // 04 SIM-3, SIM-4, 03 M-35
  RankProgram good;
  good.build([](FunctionBuilder& k, const Operands& a) {
    for (int64_t i = 0; i < 3; ++i) {
      stage_round(k, a, i);
      barrier(k, a, 2 * i + 1);
      fetch(k, a, a.left);
      barrier(k, a, 2 * i + 2);
    }
  });
  RankProgram bad;
  bad.build([](FunctionBuilder& k, const Operands& a) {
    stage(k, a, k.constant(0));
    fetch(k, a, a.left);
    barrier(k, a);
  });
  std::vector<float> expected;
  good.run_ranks(4, &expected);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RunOptions options;
    options.schedule = Schedule::kExplore;
    options.seed = seed;
    options.delay_remote = seed % 2 == 1;
    std::vector<float> y;
    const RunReport r = good.run_ranks(4, &y, options);
    EXPECT_EQ(y, expected) << seed;
    EXPECT_TRUE(r.diagnostics.empty()) << seed;
    Diagnostic d;
    EXPECT_EQ(run_for_id(bad, 2, &d, options), "X-40/X-42") << seed;
    RunOptions again;
    again.replay = d.replay;
    Diagnostic same;
    EXPECT_EQ(run_for_id(bad, 2, &same, again), d.id);
    EXPECT_EQ(same.message, d.message);
  }
}

TEST(CheckSchedules, RemoteStoresTravelUntilTheNextEdge) {  // 03 O-36
  RankProgram p;
  p.build([](FunctionBuilder& k, const Operands& a) {
    const Reg zero = k.constant(0);
    const Reg one = k.constant(1);
    k.remote_store(own_value(k, a), a.box, a.right, zero);
    k.notify(a.sig, a.right, zero, one);
    k.wait(a.sig, zero, one);
    read_own(k, a);
  });
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RunOptions options;
    options.schedule = Schedule::kExplore;
    options.seed = seed;
    options.delay_remote = true;
    std::vector<float> y;
    const RunReport r = p.run_ranks(3, &y, options);
    EXPECT_TRUE(r.diagnostics.empty());
    EXPECT_EQ(y[0], 9);
    EXPECT_EQ(y[4], 1);
  }
}

// ------------------------------------------------------------------ one device

struct Scratch {
  vm::Program p;
  int entry = -1;
  /// orch(y): tasks y += ... through `body`.
  void build(const std::function<void(FunctionBuilder&, FunctionBuilder&, Reg)>& body) {
    FunctionBuilder k(p, "copy_row");
    const Reg from = k.tensor("from");
    const Reg to = k.tensor("to", ir::ParamDirection::kOut);
    const Reg zero = k.constant(0);
    k.store(k.load(from, zero, zero, k.constant(1), k.constant(4)), zero, zero, to);
    k.done();
    FunctionBuilder o(p, "orch", ir::Level::kChip);
    const Reg y = o.tensor("y", ir::ParamDirection::kInOut);
    body(o, k, y);
    o.done();
    entry = o.index();
  }
  std::string id() {
    auto y = ramp(16);
    try {
      const RunReport r = run_program(p, entry, {host_array(y, {4, 4})});
      return r.diagnostics.empty() ? "" : "warning";
    } catch (const Failure& f) {
      EXPECT_EQ(f.diagnostic().cls, ErrorClass::kRaceError) << f.diagnostic().message;
      return f.diagnostic().id;
    }
  }
};

TEST(CheckTasks, ManualScopeWithoutDeps) {  // 01 L-166, L-175
  for (const bool with_deps : {false, true}) {
    Scratch s;
    s.build([&](FunctionBuilder& o, FunctionBuilder& k, Reg y) {
      const Reg cols = o.constant(4);
      const Reg a = o.row_slice(y, o.constant(0), cols);
      const Reg b = o.row_slice(y, o.constant(1), cols);
      const Reg c = o.row_slice(y, o.constant(2), cols);
      o.scope(true, ir::ScopeKind::kManual);
      const Reg first = o.scalar(DType::kTaskId);
      o.call(k, {a, b}).task = first;
      vm::CallInsn& second = o.call(k, {b, c});
      if (with_deps) {
        second.has_deps = true;
        second.deps = {first};
      }
      o.scope(false, ir::ScopeKind::kManual);
    });
    EXPECT_EQ(s.id(), with_deps ? "" : "X-40");
  }
}

TEST(CheckTasks, FalseNoDep) {  // 01 L-138
  Scratch s;
  s.build([&](FunctionBuilder& o, FunctionBuilder& k, Reg y) {
    const Reg cols = o.constant(4);
    const Reg a = o.row_slice(y, o.constant(0), cols);
    const Reg b = o.row_slice(y, o.constant(1), cols);
    const Reg c = o.row_slice(y, o.constant(2), cols);
    o.call(k, {a, b});
    o.call(k, {b, c}).no_dep = {1, 0};
  });
  EXPECT_EQ(s.id(), "X-40");
}

TEST(CheckTasks, BlocksOnOneRow) {  // 01 L-119
  for (const bool own_row : {true, false}) {
    vm::Program p;
    FunctionBuilder k(p, "fill");
    const Reg x = k.tensor("x");
    const Reg y = k.tensor("y", ir::ParamDirection::kOut);
    const Reg i = k.scalar();
    k.op(OpId::k_get_block_idx, {}, {i});
    const Reg zero = k.constant(0);
    const Reg tile = k.load(x, i, zero, k.constant(1), k.constant(4));
    k.store(tile, own_row ? i : zero, zero, y);
    k.done();
    FunctionBuilder o(p, "orch", ir::Level::kChip);
    const Reg ox = o.tensor("x");
    const Reg oy = o.tensor("y", ir::ParamDirection::kOut);
    const Reg blocks = o.constant(3);
    o.call(k, {ox, oy}).core_num = blocks;
    o.call(k, {ox, oy}).core_num = blocks;
    o.done();
    auto xs = ramp(12);
    std::vector<float> ys(12);
    std::string id;
    try {
      run_program(p, o.index(), {host_array(xs, {3, 4}), host_array(ys, {3, 4})});
    } catch (const Failure& f) {
      id = f.diagnostic().id;
      EXPECT_EQ(f.diagnostic().accesses[0].object, "y");
    }
    EXPECT_EQ(id, own_row ? "" : "X-40");
  }
}

TEST(CheckTasks,
     OrderSurvivesTheEndOfTasks) {  // 01 L-159: an edge to a task that has retired is still an edge
  Scratch s;
  s.build([&](FunctionBuilder& o, FunctionBuilder& k, Reg y) {
    const Reg cols = o.constant(4);
    const Reg a = o.row_slice(y, o.constant(0), cols);
    const Reg b = o.row_slice(y, o.constant(1), cols);
    o.scope(true, ir::ScopeKind::kManual);
    o.call(k, {a, b});
    o.scope(false, ir::ScopeKind::kManual);
    // Long enough for the first task to be gone.
    const Reg sum = o.constant(0);
    o.loop(o.constant(0), o.constant(200000), [&](Reg i) { o.arith(OpId::k_scalar_add, sum, i); });
    o.call(k, {b, a});
  });
  EXPECT_EQ(s.id(), "");
}

}  // namespace
}  // namespace pypto::machine
