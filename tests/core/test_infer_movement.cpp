// SPDX-License-Identifier: Apache-2.0
// Data movement, views and regions (02 sections 2.3, 7, 8).
#include <cmath>

#include "core/ir/op.h"
#include "tests/core/infer_support.h"

namespace pypto::ir::test {
namespace {

using Movement = Infer;
const auto kF32 = DType::kFp32;
const auto kBf = DType::kBf16;

ExprPtr sum(const ExprPtr& a, const ExprPtr& b) { return infer_scalar(OpId::k_scalar_add, a, b, {}); }

// O-701, O-211, B-4, B-5
TEST_F(Movement, LoadWindows) {
  const ExprPtr x = tensor(dims({100, 64}), kF32);
  const ExprPtr plain = call("load", {x, list({index(), num(0)}), ints({16, 64})});
  EXPECT_EQ(text_of(plain), "Tile[[16, 64], fp32]");  // placed by its consumers
  EXPECT_EQ(valid_text(plain), "full");
  EXPECT_EQ(
      valid_text(call("load", {x, list({index(), num(0)}), ints({16, 64}), list({index("r"), num(64)})})),
      "[?, 64]");
  EXPECT_EQ(valid_text(call("load", {x, ints({96, 0}), ints({16, 64}), ints({4, 64})})), "[4, 64]");
  EXPECT_REJECTED(call("load", {x, ints({96, 0}), ints({16, 64})}), "ValueError", "Pass clamp=True", "axis 0",
                  "100");
  EXPECT_EQ(valid_text(call("load", {x, ints({96, 0}), ints({16, 64})}, {{"clamp", yes()}})), "[4, 64]");
  EXPECT_REJECTED(call("load", {x, ints({-1, 0}), ints({16, 64})}), "-1", "negative");
  EXPECT_REJECTED(call("load", {x, ints({0, 0}), ints({16, 64}), ints({17, 64})}), "17", "exceeds");
  EXPECT_REJECTED(call("load", {x, ints({0, 0}), list({index(), num(64)})}), "positive constant");
  EXPECT_REJECTED(call("load", {x, ints({0}), ints({16, 64})}), "1 and 2 entries");
  EXPECT_REJECTED(
      call("load", {x, ints({0, 0}), ints({16, 64})}, {{"target_memory", memory(MemorySpace::kLeft)}}),
      "ValueError", "Left", "pl.move");
  EXPECT_REJECTED(call("load", {tile(dims({16, 64}), kF32), ints({0, 0}), ints({16, 64})}), "TypeError",
                  "global memory");
  EXPECT_REJECTED(call("load", {on_chip(dims({16, 64}), kF32), ints({0, 0}), ints({16, 64})}), "TypeError",
                  "on-chip Tensor");
  // A list shorter than the rank addresses the trailing axes.
  EXPECT_EQ(text_of(call("load", {tensor(dims({3, 100, 64}), kF32), ints({0, 0}), ints({16, 64})})),
            "Tile[[16, 64], fp32]");
  // Symbolic overhang is provable too.
  const ExprPtr n = index("N");
  const ExprPtr dynamic = tensor({Dim(n), Dim(64)}, kF32);
  EXPECT_REJECTED(call("load", {dynamic, list({sum(n, num(-8)), num(0)}), ints({16, 64})}), "Pass clamp=True",
                  "N");
}

// O-703, O-704, O-212, 01 L-148, L-149
TEST_F(Movement, Store) {
  const ExprPtr y = tensor(dims({64, 64}), kF32);
  const ExprPtr t = tile(dims({16, 64}), kF32, dims({5, 64}));
  const ExprPtr r = call("store", {t, list({index(), num(0)}), y});
  EXPECT_EQ(r->type->storage, y->type->storage);
  EXPECT_TRUE(y->type->storage->written);
  EXPECT_REJECTED(call("store", {t, ints({60, 0}), y}), "axis 0", "60", "64");
  EXPECT_EQ(text_of(call("store", {t, ints({59, 0}), y})), "Tensor[[64, 64], fp32]");
  EXPECT_REJECTED(call("store", {tile(dims({16, 64}), kBf), ints({0, 0}), y}), "TypeError", "bfloat16",
                  "fp32");
  EXPECT_REJECTED(call("store", {tile(dims({16, 64}), kF32, {}, MemorySpace::kMat), ints({0, 0}), y}), "Mat");
  EXPECT_REJECTED(call("store", {on_chip(dims({16, 64}), kF32), ints({0, 0}), y}), "TypeError",
                  "must be a Tile", "pl.assemble");
  const ExprPtr acc = tile(dims({16, 64}), kF32, {}, MemorySpace::kAcc);
  EXPECT_EQ(text_of(call("store", {acc, ints({0, 0}), tensor(dims({64, 64}), kBf)})),
            "Tensor[[64, 64], bfloat16]");
  EXPECT_REJECTED(call("store", {acc, ints({0, 0}), tensor(dims({64, 64}), DType::kInt8)}),
                  "Error: AccToGmStoreValid", "cube accumulator cannot be stored directly", "int8",
                  "pl.cast");
  EXPECT_EQ(text_of(call("store", {tile(dims({4, 8}), DType::kInt32), ints({0, 0}),
                                   tensor(dims({4, 8}), DType::kUInt32)})),
            "Tensor[[4, 8], uint32]");
  EXPECT_EQ(call("store", {t, ints({0, 0}), y}, {{"atomic", atomic_add()}})->attrs.get_int(AttrKey::k_atomic),
            1);
  EXPECT_REJECTED(
      call("store", {tile(dims({4, 8}), DType::kUInt8), ints({0, 0}), tensor(dims({4, 8}), DType::kUInt8)},
           {{"atomic", atomic_add()}}),
      "AtomicAddDtypeValid", "uint8");
  // Lower rank maps to the trailing axes, surplus leading ones fall away.
  EXPECT_EQ(text_of(call("store", {tile(dims({1, 64}), kF32), ints({3}), tensor(dims({100}), kF32)})),
            "Tensor[[100], fp32]");
  const ExprPtr deep = call("store", {t, ints({1, 0, 0}), tensor(dims({2, 64, 64}), kF32)});
  EXPECT_EQ(deep->args[1]->args.size(), 3u);
  a5();
  EXPECT_REJECTED(call("store", {tile(dims({4, 16}), kBf), ints({0, 0}), tensor(dims({4, 16}), kBf)},
                       {{"atomic", atomic_add()}}),
                  "AtomicAddDtypeValid", "bf16", "a5");
}

// O-212, B-7
TEST_F(Movement, WritesKeepOneRectangle) {
  const auto target = [&](Shape valid) {
    return tensor(dims({16, 64}), kF32, TensorPlace::kGlobal, std::move(valid));
  };
  const auto source = [&](Shape shape) { return tile(std::move(shape), kF32); };
  EXPECT_EQ(valid_text(call("store", {source(dims({4, 64})), ints({4, 0}), target(dims({4, 64}))})),
            "[8, 64]");
  EXPECT_EQ(valid_text(call("store", {source(dims({2, 64})), ints({1, 0}), target(dims({4, 64}))})),
            "[4, 64]");
  EXPECT_EQ(valid_text(call("store", {source(dims({16, 64})), ints({0, 0}), target(dims({4, 32}))})), "full");
  EXPECT_EQ(valid_text(call("store", {source(dims({4, 8})), ints({0, 0}), target(dims({0, 0}))})), "[4, 8]");
  EXPECT_REJECTED(call("store", {source(dims({4, 64})), ints({8, 0}), target(dims({4, 64}))}), "gap",
                  "axis 0");
  EXPECT_REJECTED(call("store", {source(dims({8, 32})), ints({0, 32}), target(dims({4, 32}))}), "L-shape");
  EXPECT_EQ(valid_text(call("store", {source(dims({4, 64})), ints({8, 0}), tensor(dims({16, 64}), kF32)})),
            "full");
}

// O-705, 01 L-143
TEST_F(Movement, Move) {
  const auto at = [&](MemorySpace s) { return tile(dims({16, 64}), kF32, dims({5, 64}), s); };
  const ExprPtr m = call("move", {at(MemorySpace::kMat), memory(MemorySpace::kLeft)});
  EXPECT_EQ(text_of(m), "Tile[[16, 64], fp32, Mem.Left]");
  EXPECT_EQ(valid_text(m), "[5, 64]");
  EXPECT_REJECTED(call("move", {at(MemorySpace::kVec), memory(MemorySpace::kAcc)}), "Vec", "Acc", "a2a3");
  EXPECT_REJECTED(call("move", {at(MemorySpace::kLeft), memory(MemorySpace::kVec)}), "Left", "Vec");
  EXPECT_EQ(text_of(call("move", {at(MemorySpace::kVec), memory(MemorySpace::kRight)})),
            "Tile[[16, 64], fp32, Mem.Right]");
  EXPECT_REJECTED(call("move", {at(MemorySpace::kMat), memory(MemorySpace::kLeftScale)}), "a2a3");
}

// O-706, O-707, O-221
TEST_F(Movement, Assemble) {
  const ExprPtr y = tensor(dims({64, 64}), kF32);
  const ExprPtr v = on_chip(dims({16, 64}), kF32);
  const ExprPtr r = call("assemble", {y, v, list({index(), num(0)})});
  EXPECT_EQ(r->type->storage, y->type->storage);
  EXPECT_EQ(text_of(call("assemble", {y, tile(dims({16, 64}), kF32), ints({0, 0})})),
            "Tensor[[64, 64], fp32]");
  EXPECT_EQ(text_of(call("assemble", {y, on_chip(dims({1, 16, 64}), kF32), ints({0, 0})})),
            "Tensor[[64, 64], fp32]");
  EXPECT_REJECTED(call("assemble", {y, on_chip(dims({2, 16, 64}), kF32), ints({0, 0})}), "rank 2");
  EXPECT_REJECTED(call("assemble", {y, on_chip(dims({16, 64}), kBf), ints({0, 0})}), "TypeError", "bfloat16",
                  "fp32");
  EXPECT_REJECTED(call("assemble", {y, v, ints({0})}), "1 entries", "rank 2");
  EXPECT_REJECTED(
      call("assemble", {y, tensor(dims({16, 64}), kF32), ints({0, 0})}, {{"atomic", atomic_add()}}),
      "on-chip source");
  // A product may be narrowed when it is assembled.
  const ExprPtr product = call("matmul", {tensor(dims({16, 32}), kBf), tensor(dims({32, 64}), kBf)},
                               {{"out_dtype", dtype(kF32)}});
  EXPECT_EQ(text_of(call("assemble", {tensor(dims({64, 64}), kBf), var(product->type), ints({0, 0})})),
            "Tensor[[64, 64], bfloat16]");
  // Tiles: a new value with the whole physical block.
  const ExprPtr t = tile(dims({32, 64}), kF32);
  const ExprPtr t2 = call("assemble", {t, tile(dims({16, 64}), kF32, dims({3, 64})), ints({16, 0})});
  EXPECT_NE(t2->type->storage, t->type->storage);
  EXPECT_REJECTED(call("assemble", {t, tile(dims({16, 64}), kF32), ints({24, 0})}), "axis 0", "32");
  EXPECT_REJECTED(call("assemble", {t, tile(dims({16, 64}), kF32), ints({0, 0})}, {{"atomic", atomic_add()}}),
                  "TypeError", "atomic");
  EXPECT_REJECTED(call("assemble", {t, on_chip(dims({16, 64}), kF32), ints({0, 0})}), "TypeError",
                  "must be a Tile");
  EXPECT_EQ(text_of(call("assemble",
                         {tile(dims({4, 8, 16}), kF32), tile(dims({1, 8, 16}), kF32), ints({2, 0, 0})})),
            "Tile[[4, 8, 16], fp32, Mem.Vec]");  // K17
  EXPECT_REJECTED(
      call("assemble", {tile(dims({4, 8, 16}), kF32), tile(dims({2, 4, 16}), kF32), ints({0, 0, 0})}),
      "band");
  orchestration();
  EXPECT_REJECTED(
      call("assemble", {y, tensor(dims({16, 64}), kF32), ints({0, 0})}, {{"atomic", atomic_add()}}),
      "only supported inside an InCore function");
}

// O-708, O-709
TEST_F(Movement, ExtractAndConcat) {
  const ExprPtr t = tile(dims({32, 64}), kF32, dims({20, 64}));
  EXPECT_EQ(valid_text(call_tile("extract", {t, num(16), num(0), ints({16, 64})},
                                 {{"target_memory", memory(MemorySpace::kVec)}})),
            "[4, 64]");
  EXPECT_REJECTED(call_tile("extract", {t, num(20), num(0), ints({16, 64})},
                            {{"target_memory", memory(MemorySpace::kVec)}}),
                  "axis 0", "32");
  const ExprPtr c = call("concat", {tile(dims({32, 64}), kF32), tile(dims({32, 32}), kF32, dims({32, 10}))});
  EXPECT_EQ(text_of(c), "Tile[[32, 96], fp32, Mem.Vec]");
  EXPECT_EQ(valid_text(c), "[32, 74]");
  EXPECT_REJECTED(call("concat", {tile(dims({32, 64}), kF32, dims({32, 60})), tile(dims({32, 64}), kF32)}),
                  "all its columns");
  EXPECT_REJECTED(call("concat", {tile(dims({32, 64}), kF32), tile(dims({16, 64}), kF32)}), "equal rows");
}

// O-801 - O-804, O-813
TEST_F(Movement, Slice) {
  const ExprPtr x = tensor(dims({100, 64}), kF32);
  const ExprPtr s = call("slice", {x, ints({16, 64}), list({index(), num(0)})});
  EXPECT_EQ(s->type->storage, x->type->storage);
  EXPECT_EQ(s->type->place, TensorPlace::kGlobal);
  EXPECT_EQ(call("slice", {window(dims({8, 8}), kF32), ints({4, 8}), ints({4, 0})})->type->place,
            TensorPlace::kWindow);
  EXPECT_REJECTED(call("slice", {x, ints({16, 64}), ints({90, 0})}), "Pass clamp=True");
  EXPECT_EQ(valid_text(call("slice", {x, ints({16, 64}), ints({90, 0})}, {{"clamp", yes()}})), "[10, 64]");
  const ExprPtr dropped =
      call("slice", {x, ints({1, 64}), list({index(), num(0)})}, {{"drop_dims", ints({0})}});
  EXPECT_EQ(text_of(dropped), "Tensor[[64], fp32]");
  EXPECT_EQ(std::get<std::vector<int64_t>>(*dropped->attrs.find(AttrKey::k_drop_dims)),
            std::vector<int64_t>{0});
  EXPECT_REJECTED(call("slice", {x, ints({1, 1}), ints({0, 0})}, {{"drop_dims", ints({0, 1})}}), "every axis",
                  "pl.read");
  EXPECT_REJECTED(call("slice", {x, ints({2, 64}), ints({0, 0})}, {{"drop_dims", ints({0})}}), "extent 1");
  EXPECT_REJECTED(call("slice", {x, ints({1, 1}), ints({0, 0})}, {{"drop_dims", ints({0, 0})}}), "twice");
  const ExprPtr t = tile(dims({32, 64}), kF32, dims({20, 64}));
  EXPECT_EQ(valid_text(call("slice", {t, ints({16, 64}), ints({16, 0})})), "[4, 64]");
  EXPECT_EQ(text_of(call("slice", {t, ints({1, 64}), ints({3, 0})}, {{"drop_dims", ints({0})}})),
            "Tile[[1, 64], fp32, Mem.Vec]");
  EXPECT_REJECTED(call("slice", {t, ints({16, 64}), ints({20, 0})}), "whole window");
  EXPECT_REJECTED(call("slice", {tile(dims({2, 16, 16}), kF32), ints({1, 16, 16}), ints({0, 0, 0})}),
                  "not supported on >2D tiles");
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(call("slice", {t, ints({16, 64}), ints({0, 0})}, {{"pad_value", real(-INFINITY)}})->type->pad,
            PadValue::kMin);
  EXPECT_EQ(warnings.size(), 1u);  // nothing is narrowed
  EXPECT_REJECTED(call("slice", {tensor(dims({4, 64}), DType::kFp4), ints({4, 8}), ints({0, 3})}), "even",
                  "3");
  orchestration();
  // An overhanging slice is cut, not rejected (O-211.4, B-32).
  EXPECT_EQ(valid_text(call("slice", {x, ints({16, 64}), ints({90, 0})})), "[10, 64]");
  EXPECT_EQ(text_of(call("slice", {x, list({index("n"), num(64)}), ints({0, 0})})), "Tensor[[n, 64], fp32]");
}

// O-805, O-806, K13, K14, B-23
TEST_F(Movement, Reshape) {
  const auto t = [&](Shape s, Shape v) { return tile(std::move(s), kF32, std::move(v)); };
  EXPECT_EQ(valid_text(call("reshape", {t(dims({8, 16}), {}), ints({4, 32})})), "full");
  EXPECT_EQ(valid_text(call("reshape", {t(dims({8, 16}), dims({5, 16})), ints({16, 8})})), "[10, 8]");
  EXPECT_REJECTED(call("reshape", {t(dims({8, 16}), dims({5, 16})), ints({4, 32})}), "ValueError", "[8, 16]",
                  "[5, 16]", "[4, 32]");
  EXPECT_REJECTED(call("reshape", {t(dims({8, 16}), dims({8, 10})), ints({16, 8})}), "[8, 10]");
  EXPECT_EQ(valid_text(call("reshape", {t(dims({8, 16}), dims({8, 10})), ints({1, 8, 16})})), "[1, 8, 10]");
  EXPECT_EQ(valid_text(call("reshape", {t(dims({16, 1}), dims({5, 1})), ints({1, 16})})), "[1, 5]");
  EXPECT_EQ(valid_text(call("reshape", {t(dims({8, 16}), dims({0, 16})), ints({4, 32})})), "[0, 0]");
  EXPECT_REJECTED(call("reshape", {t(dims({8, 16}), {}), ints({8, 17})}), "128", "136");
  const ExprPtr x = tensor({Dim(index("M")), Dim(64)}, kF32);
  const ExprPtr r = call("reshape", {x, list({infer_scalar(OpId::k_scalar_mul, index("M"), num(64), {})})});
  EXPECT_EQ(r->type->storage, x->type->storage);
}

// O-807 - O-809
TEST_F(Movement, Transpose) {
  const ExprPtr x = tensor(dims({4, 8, 16}), kF32);
  const ExprPtr v = call("transpose", {x, num(0), num(-1)});
  EXPECT_EQ(text_of(v), "Tensor[[16, 8, 4], fp32]");
  EXPECT_NE(v->type->storage, x->type->storage);
  EXPECT_EQ(v->attrs.get_int(AttrKey::k_axis2), 2);
  EXPECT_EQ(valid_text(call("transpose", {tile(dims({16, 64}), kF32, dims({5, 7})), num(0), num(1)})),
            "[7, 5]");
  EXPECT_REJECTED(call("transpose", {x, num(1), num(1)}), "must differ");
  EXPECT_REJECTED(call("transpose", {x, num(0), num(3)}), "axis 3", "out of range");
  EXPECT_REJECTED(call("transpose", {tile(dims({4, 8, 16}), kF32), num(0), num(1)}), "last two axes");
  const ExprPtr t = tile(dims({32, 64}), kF32, dims({20, 64}));
  const ExprPtr view = call_tile("transpose_view", {t});
  EXPECT_EQ(view->type->storage, t->type->storage);
  EXPECT_EQ(valid_text(view), "[64, 20]");
  orchestration();
  EXPECT_EQ(call("transpose", {x, num(0), num(1)})->type->storage, x->type->storage);
  EXPECT_REJECTED(call("transpose", {tensor(dims({4, 8}), DType::kFp4), num(0), num(1)}), "FP4");
}

// O-810 - O-812, B-24
TEST_F(Movement, Views) {
  EXPECT_EQ(text_of(call("reinterpret_view", {tile(dims({4, 16}), kF32), dtype(DType::kInt16)})),
            "Tile[[4, 32], int16, Mem.Vec]");
  EXPECT_REJECTED(call("reinterpret_view", {tile(dims({4, 5}), DType::kInt8), dtype(kF32)}), "do not divide");
  EXPECT_EQ(text_of(call("reinterpret_view", {tile(dims({4, 16}), kF32), dtype(DType::kUInt8)},
                         {{"shape", ints({1, 256})}})),
            "Tile[[1, 256], uint8, Mem.Vec]");
  EXPECT_REJECTED(call("reinterpret_view", {tile(dims({4, 16}), kF32), dtype(DType::kFp8E4M3FN)}),
                  "fp8e4m3fn");
  const ExprPtr t = tile(dims({16, 64}), kF32, dims({5, 64}));
  EXPECT_EQ(valid_text(call("set_validshape", {t, num(16), index()})), "[16, ?]");  // may widen
  EXPECT_REJECTED(call("set_validshape", {t, num(17), num(64)}), "17", "16");
  EXPECT_REJECTED(call("set_validshape", {t, real(3.0), num(64)}), "TypeError", "floating-point");
  EXPECT_EQ(text_of(call_tensor("view", {tensor(dims({4, 8}), kF32)}, {{"shape", ints({2, 16})}})),
            "Tensor[[2, 16], fp32]");
  EXPECT_EQ(
      text_of(call_tensor("view", {tensor(dims({4, 8}), kF32)}, {{"layout", member("TensorLayout.DN", 1)}})),
      "Tensor[[8, 4], fp32, DN]");
  orchestration();
  EXPECT_REJECTED(call_tensor("view", {tensor(dims({4, 8}), kF32)},
                              {{"shape", ints({2, 16})}, {"layout", member("TensorLayout.DN", 1)}}),
                  "not both");
}

}  // namespace
}  // namespace pypto::ir::test
