// SPDX-License-Identifier: Apache-2.0
// Creation (02 section 5), element access (6), places (O-204).
#include <cmath>

#include "core/ir/op.h"
#include "tests/core/infer_support.h"

namespace pypto::ir::test {
namespace {

using Create = Infer;
const auto kF32 = DType::kFp32;

// O-501, 01 L-186
TEST_F(Create, TensorLivesByUse) {
  const ExprPtr local = call("create_tensor", {ints({16, 64}), dtype(kF32)});
  EXPECT_EQ(local->type->place, TensorPlace::kOnChip);
  EXPECT_TRUE(local->type->storage->created);
  EXPECT_FALSE(local->type->storage->needs_global);
  // A run-time extent, or a use that only global memory serves, puts it there.
  EXPECT_TRUE(call("create_tensor", {list({index(), num(64)}), dtype(kF32)})->type->storage->needs_global);
  const ExprPtr x = var(local->type, "buf");
  call("load", {x, ints({0, 0}), ints({16, 64})});
  EXPECT_TRUE(local->type->storage->needs_global);
  const ExprPtr target = var(call("create_tensor", {ints({16, 64}), dtype(kF32)})->type, "buf");
  const ExprPtr piece = call("slice", {target, ints({8, 64}), ints({8, 0})});
  call("store", {tile(dims({8, 64}), kF32), ints({0, 0}), piece});
  EXPECT_TRUE(target->type->storage->needs_global);
  EXPECT_TRUE(target->type->storage->written);
  orchestration();
  EXPECT_EQ(call("create_tensor", {ints({16, 64}), dtype(kF32)})->type->place, TensorPlace::kGlobal);
}

TEST_F(Create, TensorRules) {
  EXPECT_EQ(call("create_tensor", {ints({4, 4}), dtype(DType::kInt32)}, {{"init_value", num(7)}})
                ->attrs.get_int(AttrKey::k_init_value),
            7);
  EXPECT_REJECTED(call("create_tensor", {ints({4}), dtype(kF32)}, {{"init_value", real(INFINITY)}}),
                  "finite");
  EXPECT_REJECTED(call("create_tensor", {ints({4}), dtype(DType::kInt32)}, {{"init_value", real(1.5)}}),
                  "whole");
  EXPECT_REJECTED(call("create_tensor", {ints({4}), dtype(DType::kBf16)}, {{"init_value", num(1)}}),
                  "bfloat16");
  EXPECT_EQ(outcome([&] {
              return call("create_tensor", {ints({4}), dtype(DType::kBf16)}, {{"init_value", num(0)}});
            }),
            "ok Tensor[[4], bfloat16]");
  EXPECT_REJECTED(call("create_tensor", {ints({4, 0}), dtype(kF32)}), "dimension 1", "positive");
  EXPECT_REJECTED(call("create_tensor", {num(4), dtype(kF32)}), "TypeError", "'shape'", "list");
  EXPECT_REJECTED(call("create_tensor", {list({real(4.0)}), dtype(kF32)}), "TypeError", "floating-point");
}

// O-502
TEST_F(Create, Tile) {
  const ExprPtr t =
      call("create_tile", {ints({16, 64}), dtype(kF32)}, {{"target_memory", memory(MemorySpace::kAcc)}});
  EXPECT_EQ(text_of(t), "Tile[[16, 64], fp32, Mem.Acc]");
  EXPECT_EQ(text_of(call("create_tile", {ints({1, 32}), dtype(DType::kUInt8)})),
            "Tile[[1, 32], uint8, Mem.Vec]");
  EXPECT_REJECTED(call("create_tile", {list({index(), num(4)}), dtype(kF32)}), "dimension 0",
                  "positive constant");
  EXPECT_REJECTED(call("create_tile", {ints({16, 16}), dtype(kF32)},
                       {{"target_memory", memory(MemorySpace::kLeftScale)}}),
                  "ValueError", "LeftScale");
  EXPECT_REJECTED(call("create_tile", {ints({16, 16}), dtype(kF32)}, {{"transpose", yes()}}), "transpose");
  EXPECT_REJECTED(call("create_tile", {ints({16, 16}), dtype(DType::kUInt4)}), "uint4", "a2a3");
}

// O-504
TEST_F(Create, Full) {
  const ExprPtr f = call("full", {ints({16, 16}), dtype(DType::kInt32), num(-3)});
  EXPECT_EQ(f->attrs.get_int(AttrKey::k_value), -3);
  EXPECT_EQ(f->type->place, TensorPlace::kOnChip);
  EXPECT_EQ(call_tile("full", {ints({16, 16}), dtype(kF32), num(2)})->attrs.get_float(AttrKey::k_value), 2.0);
  EXPECT_EQ(text_of(call_tile("full", {ints({16, 16}), dtype(kF32), real(0.0)})),
            "Tile[[16, 16], fp32, Mem.Vec]");
  EXPECT_REJECTED(call("full", {ints({16, 16}), dtype(kF32), scalar(kF32)}), "numeric constant");
  EXPECT_REJECTED(call("full", {ints({16, 16}), dtype(DType::kInt8), num(300)}), "300", "int8");
}

// O-505
TEST_F(Create, Arange) {
  EXPECT_EQ(text_of(call("arange", {num(0), ints({1, 512})}, {{"dtype", dtype(DType::kUInt32)}})),
            "Tensor[[1, 512], uint32]");
  EXPECT_EQ(text_of(call_tile("ci", {num(3), ints({1, 8})})), "Tile[[1, 8], int32, Mem.Vec]");
  EXPECT_REJECTED(call("arange", {num(0), ints({2, 8})}), "dimension 0");
  EXPECT_REJECTED(call("arange", {num(0), ints({8, 1})}), "dimension");
  EXPECT_REJECTED(call("arange", {num(0), ints({1, 8})}, {{"dtype", dtype(kF32)}}), "INT16", "fp32");
  EXPECT_REJECTED(call("arange", {scalar(DType::kInt64), ints({1, 8})}), "int64", "int32");
}

// O-506, O-507, O-310
TEST_F(Create, TriAndRandom) {
  EXPECT_REJECTED(call("tri", {num(0), ints({16, 16})}, {{"dtype", dtype(DType::kBf16)}}),
                  "not supported on the 'a2a3' backend");
  EXPECT_EQ(valid_text(call("tri", {num(-1), ints({16, 16}), ints({5, 7})})), "[5, 7]");
  const std::vector<ExprPtr> seeds = {num(1), num(2),          num(3),        num(4),
                                      num(5), num(0xFFFFFFFF), ints({4, 300})};
  EXPECT_REJECTED(call("random", seeds), "a2a3");
  a5();
  const ExprPtr r = call("random", seeds, {{"rounds", num(7)}});
  EXPECT_EQ(text_of(r), "Tensor[[4, 300], uint32]");
  EXPECT_EQ(*const_int(r->args[5]), -1);  // a 32-bit word
  EXPECT_REJECTED(call("random", seeds, {{"rounds", num(8)}}), "7 or 10");
  EXPECT_EQ(outcome([&] { return call("tri", {num(0), ints({16, 16})}, {{"dtype", dtype(DType::kBf16)}}); }),
            "ok Tile[[16, 16], bfloat16, Mem.Vec]");
}

// O-601, O-602, O-603
TEST_F(Create, ReadWriteDim) {
  const ExprPtr x = tensor(dims({8, 4}), DType::kInt32);
  EXPECT_EQ(text_of(call("read", {x, list({index(), num(3)})})), "Scalar[int32]");
  EXPECT_EQ(text_of(call("read", {tensor(dims({8}), kF32), index()})), "Scalar[fp32]");
  EXPECT_REJECTED(call("read", {x, index()}), "rank-1");
  EXPECT_REJECTED(call("read", {x, ints({1})}), "1 entries", "rank 2");
  EXPECT_REJECTED(call("read", {x, ints({8, 0})}), "index 8", "axis 0", "[0, 8)");
  EXPECT_REJECTED(call("read", {x, ints({0, -1})}), "-1");
  EXPECT_REJECTED(call_tile("read", {tile(dims({2, 16, 16}), kF32), ints({0, 0, 0})}),
                  "not supported on >2D tiles");
  const ExprPtr w = call("write", {x, ints({0, 1}), num(5)});
  EXPECT_EQ(w->args[2]->type->dtype, DType::kInt32);
  EXPECT_TRUE(x->type->storage->written);
  EXPECT_REJECTED(call("write", {x, ints({0, 1}), index()}), "TypeError", "index", "int32", "pl.cast");
  EXPECT_REJECTED(call("write", {x, ints({0, 1}), real(1.5)}), "fp32", "int32");
  EXPECT_EQ(*const_int(call("dim", {x, num(-1)})), 4);
  EXPECT_REJECTED(call("dim", {x, num(2)}), "axis 2", "rank 2");
  const ExprPtr dynamic = tensor({Dim(index("M")), Dim(4)}, kF32);
  const ExprPtr d = call_tensor("dim", {dynamic, num(0)});
  EXPECT_EQ(d->attrs.get_int(AttrKey::k_axis), 0);
  EXPECT_EQ(text_of(d), "Scalar[index]");
}

// O-204, 01 L-113
TEST_F(Create, MisplacedOperations) {
  orchestration();
  const ExprPtr x = tensor(dims({16, 16}), kF32);
  EXPECT_REJECTED(call("add", {x, x}), "ValueError", "Misplaced tensor op 'tensor.add'",
                  "Orchestration function", "should be inside InCore block");
  EXPECT_REJECTED(call("full", {ints({4, 4}), dtype(kF32), num(0)}), "Misplaced tensor op 'tensor.full'");
  EXPECT_REJECTED(call("load", {x, ints({0, 0}), ints({16, 16})}), "Misplaced builtin op 'tile.load'");
  EXPECT_REJECTED(call("cast", {x, dtype(DType::kBf16)}), "Misplaced tensor op 'tensor.cast'");
  EXPECT_REJECTED(call("reinterpret_view", {x, dtype(DType::kInt32)}), "Misplaced tensor op",
                  "reinterpret_view belongs in a kernel");
  EXPECT_REJECTED(
      call_in(kFormPldSystem, "notify", {x, num(0), ints({0, 0}), num(1), member("NotifyOp.Set", 1)}),
      "InCore");
  EXPECT_REJECTED(call_in(kFormPld, "world_size", {}), "HOST");
  EXPECT_EQ(text_of(call("slice", {x, ints({4, 16}), list({index(), num(0)})})), "Tensor[[4, 16], fp32]");
  EXPECT_EQ(text_of(call_system("available_aiv_count", {})), "Scalar[int32]");
  host();
  EXPECT_REJECTED(call("mul", {x, x}), "Misplaced tensor op 'tensor.mul'");
}

// O-2401 - O-2403
TEST_F(Create, Arrays) {
  const ExprPtr a = var(call_in(kFormArray, "create", {num(4), dtype(DType::kInt32)})->type, "a");
  EXPECT_EQ(text_of(a), "Array[4, int32]");
  EXPECT_EQ(text_of(call_in(kFormArray, "get_element", {a, index()})), "Scalar[int32]");
  EXPECT_REJECTED(call_in(kFormArray, "get_element", {a, num(4)}), "index 4", "extent 4");
  EXPECT_EQ(text_of(call_in(kFormArray, "update_element", {a, num(0), index()})), "Array[4, int32]");
  EXPECT_REJECTED(call_in(kFormArray, "update_element", {a, num(0), scalar(DType::kInt64)}), "int64",
                  "int32");
  EXPECT_REJECTED(call_in(kFormArray, "create", {num(4), dtype(kF32)}), "fp32");
  EXPECT_REJECTED(call_in(kFormArray, "create", {num(0), dtype(DType::kInt32)}), "positive");
  const ExprPtr tasks = var(array_type(2, DType::kTaskId), "tids");
  EXPECT_EQ(text_of(call_in(kFormArray, "update_element", {tasks, num(1), none_const()})),
            "Array[2, task_id]");
  EXPECT_REJECTED(call_in(kFormArray, "update_element", {tasks, num(1), num(3)}), "task_id");
}

}  // namespace
}  // namespace pypto::ir::test
