// SPDX-License-Identifier: Apache-2.0
// Cross-core transfer, pl.system, prefetch (02 sections 21 - 26).
#include "core/ir/op.h"
#include "tests/core/infer_support.h"

namespace pypto::ir::test {
namespace {

using System = Infer;
const auto kF32 = DType::kFp32;
const auto kI32 = DType::kInt32;

ExprPtr pipe_type(const char* name, int64_t v) { return member(std::string("PipeType.") + name, v); }

// O-2101 - O-2106
TEST_F(System, Channels) {
  const ExprPtr acc = tile(dims({16, 64}), kF32, {}, MemorySpace::kAcc);
  EXPECT_EQ(call("tpush_to_aiv", {acc, num(1)})->attrs.get_int(AttrKey::k_split), 1);
  EXPECT_REJECTED(call("tpush_to_aiv", {acc, num(5)}), "split", "5");
  EXPECT_REJECTED(call("tpush_to_aiv", {acc}), "missing required argument 'split'");
  EXPECT_REJECTED(call("tpush_to_aic", {tile(dims({16, 64}), kF32, {}, MemorySpace::kMat), num(0)}), "Mat");
  const ExprPtr p = call("tpop_from_aiv", {}, {{"shape", ints({16, 16})}, {"dtype", dtype(kF32)}});
  EXPECT_EQ(text_of(p), "Tile[[16, 16], fp32, Mem.Mat]");
  EXPECT_REJECTED(call("tpop_from_aic", {}, {{"shape", ints({16, 16})}}), "ValueError", "together");
  EXPECT_REJECTED(call("tpop_from_aic", {}), "annotate");
  const ExprPtr init = call("aic_initialize_pipe", {}, {{"dir_mask", num(2)}, {"slot_size", num(1024)}});
  EXPECT_EQ(init->attrs.get_int(AttrKey::k_slot_num), 8);
  EXPECT_EQ(call("aiv_initialize_pipe", {}, {{"dir_mask", num(3)}, {"slot_size", num(1024)}})
                ->attrs.get_int(AttrKey::k_slot_num),
            4);
  EXPECT_REJECTED(call("aic_initialize_pipe", {}, {{"dir_mask", num(4)}, {"slot_size", num(8)}}), "dir_mask",
                  "4");
  EXPECT_EQ(text_of(call("reserve_buffer", {text("ring"), num(8192), num(-1)})), "Scalar[int32]");
  EXPECT_EQ(text_of(call("import_peer_buffer", {text("ring"), text("mul")})), "Scalar[int32]");
  context.function_type = FunctionType::kAIV;
  EXPECT_REJECTED(call("tpush_to_aiv", {acc, num(0)}), "AIC");
  a5();
  EXPECT_REJECTED(call("aiv_initialize_pipe", {},
                       {{"dir_mask", num(1)}, {"slot_size", num(8)}, {"local_slot_num", num(2)}}),
                  "local_slot_num", "a5");
}

// O-2108 - O-2110, 01 L-125, L-127
TEST_F(System, Lanes) {
  const ExprPtr x = tile(dims({32, 64}), kF32, {}, MemorySpace::kAcc);
  EXPECT_REJECTED(call("aiv_shard", {x}), "must be used inside a 'for ... in pl.split_aiv");
  context.in_split_aiv = true;
  context.split_mode = SplitMode::kUpDown;
  EXPECT_EQ(text_of(call("aiv_shard", {x})), "Tile[[16, 64], fp32, Mem.Vec]");
  EXPECT_EQ(text_of(call("aiv_shard", {tile(dims({15, 64}), kF32)})), "Tile[[8, 64], fp32, Mem.Vec]");
  EXPECT_EQ(valid_text(call("aiv_shard", {tile(dims({15, 64}), kF32)})), "[?, 64]");
  EXPECT_EQ(text_of(call("aic_gather", {tile(dims({16, 64}), kF32)})), "Tile[[32, 64], fp32, Mem.Mat]");
  EXPECT_EQ(text_of(call("aiv_shard", {on_chip(dims({32, 64}), kF32)})), "Tensor[[16, 64], fp32]");
  EXPECT_REJECTED(call("aiv_shard", {window(dims({32, 64}), kF32)}), "TypeError", "DistributedTensor");
  EXPECT_REJECTED(call("aiv_shard", {tile(dims({2, 32, 64}), kF32)}), "rank 2", "reshape");
  EXPECT_REJECTED(call("aiv_shard", {tile(dims({32, 64}), kF32, dims({24, 64}))}),
                  "leaves the two AIV lanes 16 and 8 cells", "independently split value",
                  "pl.tile.set_validshape", "32 / 31");
  EXPECT_REJECTED(call("aiv_shard", {tile(dims({32, 64}), kF32, dims({31, 60}))}), "per-lane row extent",
                  "pl.set_validshape");
  EXPECT_REJECTED(call("aic_gather", {tile(dims({16, 64}), kF32, dims({9, 64}))}),
                  "tile.aic_gather re-joins the two lanes positionally", "(9 of 16)", "pl.fillpad");
  context.split_mode = SplitMode::kLeftRight;
  EXPECT_EQ(text_of(call("aiv_shard", {x})), "Tile[[32, 32], fp32, Mem.Vec]");
  EXPECT_REJECTED(call("aiv_shard", {tile(dims({32, 64}), kF32, dims({32, 60}))}),
                  "LEFT_RIGHT splits the column axis", "valid column extent (60 of 64)",
                  "mode=pl.SplitMode.UP_DOWN", "pl.set_validshape");
  EXPECT_REJECTED(call("aiv_shard", {x}, {{"split", num(1)}}), "does not accept keyword argument");
  context.split_mode = SplitMode::kNone;
  EXPECT_EQ(text_of(call("aiv_shard", {x})), "Tile[[32, 64], fp32, Mem.Vec]");
  // The outlined form stands anywhere, on tiles.
  context.in_split_aiv = false;
  EXPECT_EQ(text_of(call_tile("aiv_shard", {x, num(2)})), "Tile[[32, 32], fp32, Mem.Vec]");
  EXPECT_REJECTED(call_tile("aiv_shard", {on_chip(dims({32, 64}), kF32), num(1)}), "tile-only");
  EXPECT_REJECTED(call_tile("aiv_shard", {x, num(1), num(17)}), "lane_stride", "16");
}

// O-2301 - O-2307
TEST_F(System, Synchronisation) {
  const ExprPtr work = tensor(dims({16}), kI32);
  EXPECT_EQ(text_of(call_system("syncall", {})), "None");
  EXPECT_REJECTED(call_system("syncall", {}, {{"core_type", text("vector")}}), "ValueError", "core_type");
  EXPECT_REJECTED(call_system("syncall", {}, {{"mode", text("firm")}}), "ValueError", "mode");
  EXPECT_REJECTED(call_system("syncall", {}, {{"used_cores", num(3)}}), "ValueError", "used_cores");
  EXPECT_REJECTED(call_system("syncall", {}, {{"mode", text("soft")}, {"gm_workspace", work}}), "used_cores");
  const ExprPtr soft =
      call_system("syncall", {}, {{"mode", text("soft")}, {"gm_workspace", work}, {"used_cores", num(0)}});
  EXPECT_EQ(soft->args[3]->type->dtype, kI32);
  EXPECT_REJECTED(
      call_system(
          "syncall", {},
          {{"mode", text("soft")}, {"gm_workspace", tensor(dims({8}), kI32)}, {"used_cores", num(1)}}),
      "16 elements");
  EXPECT_EQ(
      call_system("sync_set", {num(3)}, {{"pipe", pipe_type("V", 4)}})->attrs.get_int(AttrKey::k_event_id),
      3);
  EXPECT_TRUE(call_system("sync_wait", {index()}, {{"pipe", pipe_type("V", 4)}})->args[0] != nullptr);
  EXPECT_REJECTED(call_system("sync_set", {num(14)}, {{"pipe", pipe_type("V", 4)}}), "14", "reserved");
  EXPECT_REJECTED(call_system("sync_set", {num(1)}, {{"pipe", num(4)}}), "pl.PipeType");
  EXPECT_REJECTED(call_system("set_ffts", {tensor(dims({128}), DType::kInt64)}), "256", "128");
  EXPECT_EQ(text_of(call_system("cacheinvalid", {})), "None");
  EXPECT_REJECTED(call_system("cacheinvalid", {work}), "together");
  EXPECT_EQ(text_of(call("get_block_idx", {})), "Scalar[index]");
  orchestration();
  EXPECT_REJECTED(call("get_block_idx", {}), "Misplaced");
  EXPECT_REJECTED(call_system("syncall", {}), "Misplaced builtin op 'system.syncall'");
  EXPECT_EQ(
      text_of(call_system(
          "task_dummy", {list({scalar(DType::kTaskId), none_const(), var(array_type(3, DType::kTaskId))})})),
      "Scalar[task_id]");
  EXPECT_REJECTED(call_system("task_dummy", {list({index()})}), "entries must be a TaskId variable");
  EXPECT_EQ(text_of(call_system("available_cluster_count", {})), "Scalar[int32]");
}

// O-2501, O-2601
TEST_F(System, PrefetchAndMarkers) {
  const ExprPtr ctx = var(call_in(kFormPrefetch, "make_context", {})->type, "ctx");
  const ExprPtr event =
      var(call_in(kFormPrefetch, "async_prefetch", {tensor(dims({1, 512}), kF32), ctx})->type, "event");
  const ExprPtr session = var(call_in(kFormPrefetch, "session", {ctx})->type, "session");
  EXPECT_EQ(text_of(call_in(kFormPrefetch, "wait", {event, session})), "Scalar[bool]");
  EXPECT_REJECTED(call_in(kFormPrefetch, "async_prefetch", {tensor(dims({2, 512}), kF32), ctx}),
                  "dimension 0", "reshape");
  EXPECT_REJECTED(call_in(kFormPrefetch, "wait", {session, event}), "TypeError");
  const ExprPtr x = tensor(dims({4, 4}), kF32);
  EXPECT_EQ(call("no_dep", {x})->type, x->type);
  orchestration();
  EXPECT_REJECTED(call("dump_tag", {index()}), "not a tensor");
}

}  // namespace
}  // namespace pypto::ir::test
