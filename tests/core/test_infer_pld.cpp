// SPDX-License-Identifier: Apache-2.0
// The distributed namespace (03 sections 4, 6 and 7).
#include "core/ir/op.h"
#include "tests/core/infer_support.h"

namespace pypto::ir::test {
namespace {

const auto kF32 = DType::kFp32;
const auto kI32 = DType::kInt32;
const auto kBf = DType::kBf16;

struct Distributed : Infer {
  ExprPtr pld(const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    return call_in(kFormPldTensor, name, std::move(args), named);
  }
  ExprPtr sys(const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    return call_in(kFormPldSystem, name, std::move(args), named);
  }
  ExprPtr til(const std::string& name, std::vector<ExprPtr> args, const Named& named = {}) {
    return call_in(kFormPldTile, name, std::move(args), named);
  }
};

ExprPtr add_op() { return member("NotifyOp.AtomicAdd", 0); }
ExprPtr ge() { return member("WaitCmp.Ge", 1); }
ExprPtr reduce(int64_t v) { return member("ReduceOp.X", v); }
ExprPtr signals(int64_t rows = 4) { return window(dims({rows, 1}), kI32); }

// 03 O-10 - O-14, section 6.1
TEST_F(Distributed, QueriesAndTiers) {
  const ExprPtr w = window(dims({4, 64}), kF32);
  const ExprPtr ctx = var(call_in(kFormPld, "get_comm_ctx", {w})->type, "ctx");
  EXPECT_EQ(text_of(call_in(kFormPld, "rank", {ctx})), "Scalar[int32]");
  EXPECT_EQ(text_of(call_in(kFormPld, "nranks", {ctx})), "Scalar[int32]");
  EXPECT_REJECTED(call_in(kFormPld, "rank", {w}), "TypeError", "CommCtx");
  EXPECT_REJECTED(call_in(kFormPld, "get_comm_ctx", {tensor(dims({4}), kF32)}), "TypeError",
                  "DistributedTensor");
  EXPECT_REJECTED(call_in(kFormPld, "world_size", {}), "HOST", "InCore");
  EXPECT_REJECTED(pld("window", {index(), ints({4})}, {{"dtype", dtype(kF32)}}), "HOST");
  host();
  EXPECT_EQ(text_of(call_in(kFormPld, "world_size", {})), "Scalar[int64]");
  EXPECT_REJECTED(call_in(kFormPld, "rank", {ctx}), "pld.system.rank", "HOST orchestrator", "InCore");
  EXPECT_REJECTED(sys("notify", {signals(), num(0), ints({0, 0}), num(1)}, {{"op", add_op()}}),
                  "pld.system.notify", "HOST", "InCore");
  EXPECT_REJECTED(pld("put", {w, num(0), w}), "HOST");
}

// 03 W-1, W-2, W-20, W-22
TEST_F(Distributed, Windows) {
  host();
  const ExprPtr buf =
      var(call_in(kFormPld, "alloc_window_buffer", {ints({4, 64})}, {{"dtype", dtype(kF32)}})->type, "buf");
  const ExprPtr w = call_in(kFormPld, "window", {buf, ints({4, 64})}, {{"dtype", dtype(kF32)}});
  EXPECT_EQ(text_of(w), "DistributedTensor[[4, 64], fp32]");
  EXPECT_EQ(w->type->storage, buf->type->storage);
  EXPECT_REJECTED(call_in(kFormPld, "window", {buf, ints({4, 65})}, {{"dtype", dtype(kF32)}}), "1040 bytes",
                  "1024");
  EXPECT_REJECTED(call_in(kFormPld, "window", {buf, ints({4, 64})}), "dtype");
  EXPECT_REJECTED(call_in(kFormPld, "window", {tensor(dims({4}), kF32), ints({4})}, {{"dtype", dtype(kF32)}}),
                  "Ptr handle");
  const ExprPtr bytes = var(call_in(kFormPld, "alloc_window_buffer", {num(16)})->type, "buf");
  EXPECT_REJECTED(call_in(kFormPld, "window", {bytes, ints({16})}, {{"dtype", dtype(kF32)}}), "64 bytes",
                  "16", "scalar form counts bytes");
  EXPECT_REJECTED(call_in(kFormPld, "alloc_window_buffer", {num(16)}, {{"dtype", dtype(kF32)}}),
                  "dtype= is only valid when the first argument is a shape");
  EXPECT_REJECTED(call_in(kFormPld, "alloc_window_buffer", {ints({4})}), "requires dtype=");
  EXPECT_REJECTED(call_in(kFormPld, "alloc_window_buffer", {list({})}, {{"dtype", dtype(kF32)}}),
                  "shape must be non-empty");
  EXPECT_REJECTED(call_in(kFormPld, "alloc_window_buffer", {ints({4, 0})}, {{"dtype", dtype(kF32)}}),
                  "all dimensions must be positive");
  EXPECT_EQ(call_in(kFormPld, "alloc_window_buffer", {num(4)}, {{"name", text("b")}})
                ->attrs.get_string(AttrKey::k_name),
            "b");
}

// 03 O-20 - O-23, O-27
TEST_F(Distributed, Signals) {
  const ExprPtr s = signals();
  const ExprPtr n =
      sys("notify", {s, index("right"), list({index("me"), num(0)}), num(1)}, {{"op", add_op()}});
  EXPECT_EQ(n->attrs.get_int(AttrKey::k_op), 0);
  EXPECT_EQ(n->args[3]->type->dtype, kI32);
  EXPECT_REJECTED(
      sys("notify", {tensor(dims({4, 1}), kI32), num(0), ints({0, 0}), num(1)}, {{"op", add_op()}}),
      "DistributedTensor");
  EXPECT_REJECTED(
      sys("notify", {window(dims({4, 1}), kF32), num(0), ints({0, 0}), num(1)}, {{"op", add_op()}}), "INT32",
      "fp32");
  EXPECT_REJECTED(sys("notify", {s, num(0), ints({0}), num(1)}, {{"op", add_op()}}), "1 entries", "rank 2");
  EXPECT_REJECTED(sys("notify", {s, num(0), ints({4, 0}), num(1)}, {{"op", add_op()}}), "4", "out of range");
  EXPECT_REJECTED(sys("notify", {s, num(-1), ints({0, 0}), num(1)}, {{"op", add_op()}}), "peer -1");
  EXPECT_REJECTED(sys("notify", {s, scalar(kF32), ints({0, 0}), num(1)}, {{"op", add_op()}}),
                  "integer scalar", "fp32");
  EXPECT_REJECTED(sys("notify", {s, num(0), ints({0, 0}), real(1.0)}, {{"op", add_op()}}), "integer scalar");
  EXPECT_REJECTED(sys("notify", {s, num(0), ints({0, 0}), num(1)}), "op");
  EXPECT_EQ(sys("wait", {s, ints({0, 0}), scalar(kI32)}, {{"cmp", ge()}})->attrs.get_int(AttrKey::k_cmp), 1);
  EXPECT_EQ(text_of(sys("defer_wait", {s, ints({0, 0}), num(3)}, {{"cmp", ge()}})), "None");
  EXPECT_REJECTED(sys("defer_wait", {s, ints({0, 0}), num(3)}, {{"cmp", member("WaitCmp.Eq", 0)}}),
                  "clause e");
  EXPECT_REJECTED(sys("defer_wait", {s, ints({0, 0}), num(-3)}, {{"cmp", ge()}}), "clause e", "-3");
  const ExprPtr piece = call("slice", {s, ints({2, 1}), ints({0, 0})});
  EXPECT_REJECTED(sys("defer_wait", {piece, ints({0, 0}), num(3)}, {{"cmp", ge()}}), "clause d");
}

// 03 O-30 - O-34
TEST_F(Distributed, RemoteLoad) {
  const ExprPtr w = window(dims({32, 64}), kBf);
  EXPECT_EQ(text_of(call_in(kFormPld, "remote_load", {w, index(), ints({0, 0}), ints({16, 64})})),
            "Tile[[16, 64], bfloat16, Mem.Vec]");
  EXPECT_REJECTED(til("remote_load", {tensor(dims({32, 64}), kBf), num(0), ints({0, 0}), ints({16, 64})}),
                  "TypeError", "expects a DistributedTensor target");
  EXPECT_REJECTED(til("remote_load", {w, num(0), ints({24, 0}), ints({16, 64})}),
                  "reads past the end of dimension 0");
  EXPECT_EQ(valid_text(til("remote_load", {w, num(0), ints({24, 0}), ints({16, 64}), ints({8, 64})})),
            "[8, 64]");
  EXPECT_REJECTED(til("remote_load", {w, num(0), ints({0, 0}), list({index(), num(64)})}),
                  "positive constant");
  EXPECT_REJECTED(til("remote_load", {w, num(0), ints({0, -1}), ints({16, 64})}), "non-negative");
}

// 03 O-35 - O-42
TEST_F(Distributed, RemoteStore) {
  const ExprPtr w = window(dims({4, 32, 64}), kF32);
  const ExprPtr t = tile(dims({16, 64}), kF32, dims({9, 64}));
  EXPECT_EQ(text_of(til("remote_store", {t, w, index(), list({index(), num(0), num(0)})})), "None");
  EXPECT_REJECTED(til("remote_store", {t, w, num(0), ints({0, 24, 0})}),
                  "push exceeds the peer's target region in dimension 1");
  EXPECT_EQ(text_of(til("remote_store", {t, w, num(0), ints({0, 23, 0})})), "None");
  EXPECT_REJECTED(til("remote_store", {tile(dims({16, 64}), kBf), w, num(0), ints({0, 0, 0})}), "TypeError",
                  "bfloat16", "fp32");
  EXPECT_REJECTED(til("remote_store", {tensor(dims({16, 64}), kF32), w, num(0), ints({0, 0, 0})}),
                  "pld.tensor.remote_store");
  EXPECT_REJECTED(pld("remote_store", {t, w, num(0), ints({0, 0, 0})}), "pld.tile.remote_store");
  EXPECT_EQ(
      call_in(kFormPld, "remote_store", {on_chip(dims({16, 64}), kF32), w, num(0), ints({0, 0, 0})})->op,
      OpId::k_tensor_remote_store);
  EXPECT_EQ(call_in(kFormPld, "remote_store", {t, w, num(0), ints({0, 0, 0})})->op, OpId::k_remote_store);
  EXPECT_REJECTED(
      til("remote_store",
          {tile(dims({4, 64}), DType::kInt64), window(dims({4, 64}), DType::kInt64), num(0), ints({0, 0})},
          {{"atomic", atomic_add()}}),
      "int64", "accepted");
}

// 03 O-50 - O-58
TEST_F(Distributed, PutAndGet) {
  const ExprPtr w = window(dims({32, 64}), kF32);
  const ExprPtr x = tensor(dims({32, 64}), kF32);
  EXPECT_EQ(text_of(pld("put", {w, index(), x})), "None");
  EXPECT_EQ(text_of(pld("get", {x, index(), w})), "None");
  EXPECT_REJECTED(pld("put", {x, num(0), w}), "TypeError", "DistributedTensor dst");
  EXPECT_REJECTED(pld("get", {w, num(0), x}), "TypeError", "DistributedTensor src");
  EXPECT_REJECTED(pld("put", {w, num(0), tensor(dims({32, 64}), kBf)}), "same element type");
  EXPECT_REJECTED(pld("put", {w, num(0), tensor(dims({16, 64}), kF32)}), "same shape");
  EXPECT_REJECTED(pld("put", {w, num(0), tile(dims({32, 64}), kF32)}), "pld.tile.remote_store");
  EXPECT_REJECTED(pld("put", {w, num(0), on_chip(dims({32, 64}), kF32)}), "global memory");
  EXPECT_REJECTED(pld("put", {w, num(0), x, ints({0, 0})}), "ValueError", "must be provided together");
  EXPECT_EQ(text_of(pld("put", {w, num(0), x, ints({0, 0}), list({index(), num(0)}), ints({8, 64})})),
            "None");
  EXPECT_REJECTED(pld("put", {w, num(0), x, ints({-1, 0}), ints({0, 0}), ints({8, 64})}),
                  "dst_offsets dimension 0 must be non-negative");
  EXPECT_REJECTED(pld("put", {w, num(0), x, ints({30, 0}), ints({0, 0}), ints({8, 64})}),
                  "dst subregion dimension 0 exceeds dst shape");
  EXPECT_REJECTED(pld("get", {x, num(0), w, ints({0, 0}), ints({30, 0}), ints({8, 64})}),
                  "src subregion dimension 0 exceeds src shape");
  EXPECT_REJECTED(pld("put", {w, num(0), x}, {{"chunk_rows", yes()}}), "TypeError");
  EXPECT_REJECTED(pld("put", {w, num(0), x}, {{"chunk_rows", num(-1)}}), "ValueError", "chunk_rows");
  EXPECT_REJECTED(pld("put", {w, num(0), x}, {{"pipeline", yes()}}),
                  "pipeline=True requires both chunk_rows>0 and chunk_cols>0");
  EXPECT_REJECTED(pld("put", {w, num(0), x, ints({0, 0}), ints({0, 0}), list({index(), num(64)})}),
                  "a dynamic leading transfer dim needs a static chunk_rows");
  EXPECT_REJECTED(pld("get", {x, num(0), w, ints({0, 0}), ints({0, 0}), list({num(8), index()})}),
                  "chunk_cols");
  // O-60, X-29: explicit pieces must fit vector memory; others are chosen, and announced, after the passes.
  const ExprPtr big = window(dims({1024, 1024}), kF32);
  const ExprPtr other = tensor(dims({1024, 1024}), kF32);
  EXPECT_EQ(text_of(pld("put", {big, num(0), other})), "None");
  EXPECT_TRUE(warnings.empty());
  EXPECT_REJECTED(pld("put", {big, num(0), other}, {{"chunk_rows", num(64)}}), "262144 bytes", "188416");
  EXPECT_EQ(text_of(pld("put", {big, num(0), other}, {{"chunk_rows", num(5000)}, {"chunk_cols", num(32)}})),
            "None");
  const ExprPtr stage = tile(dims({8, 64}), kF32);
  EXPECT_EQ(til("put", {w, num(0), x, stage, ints({0, 0}), ints({0, 0}), ints({8, 64})})->args[5]->kind,
            ExprKind::kTuple);
  // Storage made in the kernel is put into global memory.
  const ExprPtr made = call("create_tensor", {ints({32, 64}), dtype(kF32)});
  pld("get", {var(made->type), num(0), w});
  EXPECT_TRUE(made->type->storage->needs_global);
}

// 03 C-5, C-20 - C-29
TEST_F(Distributed, KernelRail) {
  const ExprPtr data = window(dims({4, 64}), kF32);
  const ExprPtr s = signals();
  EXPECT_EQ(text_of(pld("barrier", {s})), "DistributedTensor[[4, 1], int32]");
  EXPECT_REJECTED(pld("barrier", {none_const()}), "TypeError", "signal cannot be None");
  EXPECT_REJECTED(pld("barrier", {window(dims({4}), kI32)}), "[P, 1]");
  EXPECT_REJECTED(pld("barrier", {window(dims({4, 1}), kF32)}), "INT32", "[P, 1]");
  EXPECT_REJECTED(pld("barrier", {tensor(dims({4, 1}), kI32)}), "DistributedTensor");
  const ExprPtr r = pld("allreduce", {data, s}, {{"op", reduce(1)}});
  EXPECT_EQ(r->type->storage, data->type->storage);
  EXPECT_EQ(r->attrs.get_int(AttrKey::k_op), 1);
  EXPECT_EQ(r->attrs.get_string(AttrKey::k_mode), "mesh");
  EXPECT_EQ(pld("allreduce", {data, s}, {{"op", num(2)}})->attrs.get_int(AttrKey::k_op), 2);  // 03 D-4
  EXPECT_REJECTED(pld("allreduce", {data, s}, {{"op", num(4)}}), "TypeError",
                  "ReduceOp.Sum, Max, Min, or Prod");
  EXPECT_REJECTED(pld("allreduce", {data}), "requires an explicit signal");
  EXPECT_REJECTED(pld("allreduce", {data, none_const()}), "signal cannot be None");
  EXPECT_REJECTED(pld("allreduce", {data, s}, {{"core_num", num(2)}}),
                  "supported only in a HOST orchestrator");
  EXPECT_REJECTED(pld("allreduce", {data, s}, {{"mode", text("tree")}}), "mode must be \"ring\" or \"mesh\"");
  EXPECT_REJECTED(pld("allreduce", {window(dims({4, 64}), DType::kInt16), s}),
                  "target dtype must be FP16 or FP32 or BF16 or INT32, got int16");
  EXPECT_REJECTED(pld("allreduce", {tensor(dims({4, 64}), kF32), s}), "DistributedTensor");
  EXPECT_EQ(text_of(pld("allreduce", {data, window(dims({6, 4}), kI32)}, {{"mode", text("ring")}})),
            "DistributedTensor[[4, 64], fp32]");
  EXPECT_REJECTED(pld("allreduce", {data, window(dims({5, 4}), kI32)}, {{"mode", text("ring")}}),
                  "2*(P-1) = 6");
  EXPECT_REJECTED(pld("allreduce", {s, s}), "different windows");
  EXPECT_EQ(pld("broadcast", {data, s}, {{"root", num(3)}})->attrs.get_int(AttrKey::k_root), 3);
  EXPECT_REJECTED(pld("broadcast", {data, s}, {{"root", num(-1)}}), "root (-1) must be a valid rank");
  const ExprPtr row = tensor(dims({1, 64}), kF32);
  EXPECT_EQ(text_of(pld("allgather", {row, data, s})), "DistributedTensor[[4, 64], fp32]");
  EXPECT_REJECTED(pld("allgather", {window(dims({1, 64}), kF32), data, s}), "plain Tensor");
  EXPECT_REJECTED(pld("allgather", {tensor(dims({1, 32}), kF32), data, s}), "[1, 64]");
  EXPECT_EQ(text_of(pld("reduce_scatter", {data, s})), "DistributedTensor[[4, 64], fp32]");
  EXPECT_EQ(text_of(pld("all_to_all", {tensor(dims({4, 64}), kF32), data, s})),
            "DistributedTensor[[4, 64], fp32]");
  EXPECT_EQ(text_of(pld("all_to_all_v", {tensor(dims({8, 64}), kF32), window(dims({8, 64}), kF32), s,
                                         tensor(dims({4}), kI32), signals()})),
            "DistributedTensor[[8, 64], fp32]");
  EXPECT_REJECTED(pld("all_to_all_v", {tensor(dims({6, 64}), kF32), window(dims({6, 64}), kF32), s,
                                       tensor(dims({4}), kI32), signals()}),
                  "multiple of P = 4");
}

// 03 C-40 - C-59
TEST_F(Distributed, HostRail) {
  host();
  const ExprPtr data = window(dims({4, 64}), kF32);
  const ExprPtr flat = window(dims({4}), kI32);
  EXPECT_EQ(text_of(pld("barrier", {flat})), "DistributedTensor[[4], int32]");
  EXPECT_EQ(text_of(pld("allreduce", {data})), "DistributedTensor[[4, 64], fp32]");
  EXPECT_EQ(text_of(pld("allreduce", {data, window(dims({4, 8}), kI32)}, {{"core_num", num(8)}})),
            "DistributedTensor[[4, 64], fp32]");
  EXPECT_REJECTED(pld("allreduce", {data, flat}, {{"core_num", num(2)}}),
                  "rank-1 signal is valid only when one signal lane is required");
  EXPECT_REJECTED(pld("allreduce", {data, window(dims({4, 2}), kI32)}, {{"core_num", num(3)}}),
                  "must be at least the required lane count");
  EXPECT_REJECTED(pld("allreduce", {data, window({Dim(4), Dim(index())}, kI32)}),
                  "rank-2 signal shape[1] must be constant");
  EXPECT_REJECTED(pld("allreduce", {data, flat}, {{"core_num", num(49)}}),
                  "exceeds the backend AIV core count");
  EXPECT_REJECTED(
      pld("allreduce", {data, window(dims({7, 4}), kI32)}, {{"mode", text("ring")}, {"core_num", num(2)}}),
      "mode=\"ring\" does not support core_num > 1");
  EXPECT_REJECTED(pld("allreduce", {data, window(dims({6, 4}), kI32)}, {{"mode", text("ring")}}),
                  "must be at least 2*(NR-1) + 1");
  EXPECT_REJECTED(pld("broadcast", {window(dims({4, 64}), kBf), flat}, {{"root", num(0)}}), "FP32",
                  "bfloat16");
  EXPECT_REJECTED(pld("allgather", {tensor(dims({1, 64}), kF32), data, flat}),
                  "local_data must be a window-bound DistributedTensor");
  EXPECT_EQ(text_of(pld("allgather", {window(dims({64}), kF32), data, flat})),
            "DistributedTensor[[4, 64], fp32]");
  const ExprPtr both = signals();
  EXPECT_REJECTED(pld("allreduce", {both, both}), "target and signal must be different window allocations");
  context.in_loop = true;
  EXPECT_REJECTED(pld("allreduce", {data}), "without an explicit signal is not supported inside a for/while");
}

}  // namespace
}  // namespace pypto::ir::test
