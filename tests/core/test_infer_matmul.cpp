// SPDX-License-Identifier: Apache-2.0
// Matrix products, gathers, scatters, sorting (02 sections 18 - 20).
#include "core/ir/op.h"
#include "tests/core/infer_support.h"

namespace pypto::ir::test {
namespace {

using Matmul = Infer;
const auto kF32 = DType::kFp32;
const auto kBf = DType::kBf16;
const auto kI8 = DType::kInt8;
const auto kI32 = DType::kInt32;

// O-1801
TEST_F(Matmul, TensorShapes) {
  struct Row {
    std::initializer_list<int64_t> a, b;
    bool ta, tb;
    const char* want;
  };
  const Row rows[] = {{{8, 16}, {16, 24}, false, false, "[8, 24]"},
                      {{16, 8}, {16, 24}, true, false, "[8, 24]"},
                      {{8, 16}, {24, 16}, false, true, "[8, 24]"},
                      {{16}, {16}, false, false, "[]"},
                      {{8, 16}, {16}, false, false, "[8]"},
                      {{16}, {16, 24}, false, false, "[24]"},
                      {{8, 16}, {3, 16, 24}, false, false, "[3, 8, 24]"},
                      {{3, 1, 8, 16}, {5, 16, 24}, false, false, "[3, 5, 8, 24]"},
                      {{2, 16, 8}, {24, 16}, true, true, "[2, 8, 24]"}};
  for (const Row& r : rows) {
    const ExprPtr c = call("matmul", {tensor(dims(r.a), kBf), tensor(dims(r.b), kBf)},
                           {{"a_trans", yes(r.ta)}, {"b_trans", yes(r.tb)}});
    EXPECT_EQ(shape_text(c->type->shape), r.want);
    EXPECT_EQ(c->attrs.get_int(AttrKey::k_a_trans), r.ta);
  }
  EXPECT_REJECTED(call("matmul", {tensor(dims({8, 16}), kBf), tensor(dims({8, 24}), kBf)}), "ValueError",
                  "[8, 16]", "[8, 24]", "16 with 8");
  EXPECT_REJECTED(call("matmul", {tensor(dims({16}), kBf), tensor(dims({16, 8}), kBf)}, {{"a_trans", yes()}}),
                  "cannot be transposed");
  EXPECT_REJECTED(call("matmul", {tensor(dims({2, 8, 16}), kBf), tensor(dims({3, 16, 8}), kBf)}),
                  "do not broadcast");
}

// O-1802
TEST_F(Matmul, ResultDtype) {
  const ExprPtr c = call("matmul", {tensor(dims({8, 16}), kBf), tensor(dims({16, 24}), kBf)});
  EXPECT_EQ(c->type->dtype, kBf);
  EXPECT_EQ(c->type->acc_dtype, kF32);
  EXPECT_EQ(c->attrs.get_int(AttrKey::k_acc_dtype), static_cast<int64_t>(kF32));
  EXPECT_TRUE(c->type->storage->product);
  EXPECT_EQ(c->type->place, TensorPlace::kOnChip);
  // An element-wise operation on it yields the declared dtype and is a plain value.
  const ExprPtr sum = call("add", {var(c->type), real(1.0)});
  EXPECT_EQ(sum->type->dtype, kBf);
  EXPECT_EQ(sum->type->acc_dtype, DType::kNone);
  const ExprPtr f =
      call("matmul", {tensor(dims({8, 16}), kBf), tensor(dims({16, 24}), kBf)}, {{"out_dtype", dtype(kF32)}});
  EXPECT_EQ(f->type->dtype, kF32);
  EXPECT_EQ(f->type->acc_dtype, DType::kNone);
  EXPECT_EQ(
      call("matmul", {tensor(dims({8, 16}), kI8), tensor(dims({16, 24}), kI8)}, {{"out_dtype", dtype(kI32)}})
          ->type->dtype,
      kI32);
  EXPECT_REJECTED(
      call("matmul", {tensor(dims({8, 16}), kI8), tensor(dims({16, 24}), kI8)}, {{"out_dtype", dtype(kF32)}}),
      "TypeError", "out_dtype", "fp32", "int8");
  EXPECT_REJECTED(call("matmul", {tensor(dims({8, 16}), kBf), tensor(dims({16, 24}), kF32)}), "same dtype");
  EXPECT_REJECTED(call("matmul", {tensor(dims({8, 16}), kI32), tensor(dims({16, 24}), kI32)}), "int32");
}

// O-1803, O-1804, B-11
TEST_F(Matmul, Tiles) {
  const ExprPtr a = tile(dims({16, 256}), kBf, dims({9, 255}), MemorySpace::kMat);
  const ExprPtr b = tile(dims({256, 64}), kBf, dims({256, 60}), MemorySpace::kMat);
  const ExprPtr c = call("matmul", {a, b});
  EXPECT_EQ(text_of(c), "Tile[[16, 64], fp32, Mem.Acc]");
  EXPECT_EQ(valid_text(c), "[9, 60]");
  EXPECT_REJECTED(call("matmul", {a, tile(dims({256, 64}), kBf, dims({200, 64}))}), "200", "255");
  EXPECT_REJECTED(call("matmul", {a, b}, {{"b_trans", yes()}}), "TypeError", "transpose_view");
  EXPECT_REJECTED(call("matmul", {a, b}, {{"out_dtype", dtype(kBf)}}), "TypeError", "out_dtype");
  EXPECT_EQ(text_of(call("matmul", {a, b}, {{"out_dtype", dtype(kF32)}})), "Tile[[16, 64], fp32, Mem.Acc]");
  EXPECT_EQ(text_of(call("matmul", {tile(dims({16, 32}), kI8), tile(dims({32, 16}), kI8)})),
            "Tile[[16, 16], int32, Mem.Acc]");
  EXPECT_REJECTED(call("matmul", {tensor(dims({16, 256}), kBf), b}), "cannot mix Tensor and Tile arguments");
}

// O-1805, O-215, B-12, B-13
TEST_F(Matmul, Accumulate) {
  const ExprPtr acc =
      call_tile("create", {ints({64, 64}), dtype(kF32)}, {{"target_memory", memory(MemorySpace::kAcc)}});
  const ExprPtr name = var(acc->type, "acc");
  const ExprPtr a = tile(dims({64, 32}), kBf);
  const ExprPtr b = tile(dims({32, 64}), kBf);
  const ExprPtr next = call("matmul_acc", {name, a, b}, {{"init_cond", scalar(DType::kBool)}});
  EXPECT_EQ(next->type->storage, acc->type->storage);
  EXPECT_REJECTED(call("matmul_acc", {name, a, b}, {{"init_cond", index()}}), "BOOL");
  EXPECT_REJECTED(call("matmul_acc", {name, a, tile(dims({32, 32}), kBf)}), "[64, 64]", "[64, 32]");
  EXPECT_REJECTED(call("matmul_acc", {tile(dims({64, 64}), kI32), a, b}), "int32", "fp32");
  const ExprPtr column = call("slice", {name, ints({64, 32}), ints({0, 32})});
  EXPECT_EQ(call("matmul_acc", {column, a, tile(dims({32, 32}), kBf)})->type->storage, acc->type->storage);
  const ExprPtr row = call("slice", {name, ints({32, 64}), ints({32, 0})});
  EXPECT_REJECTED(call("matmul_acc", {row, tile(dims({32, 32}), kBf), b}), "row window", "16-column block");
  // Tensors: created storage, batches, the declared dtype of a product.
  const ExprPtr sum = call("create_tensor", {ints({1, 8, 24}), dtype(kF32)});
  EXPECT_EQ(
      text_of(call("matmul_acc", {var(sum->type), tensor(dims({8, 16}), kBf), tensor(dims({1, 24, 16}), kBf)},
                   {{"b_trans", yes()}})),
      "Tensor[[1, 8, 24], fp32]");
  EXPECT_TRUE(sum->type->storage->product);
  EXPECT_REJECTED(
      call("matmul_acc", {var(sum->type), tensor(dims({8, 16}), kBf), tensor(dims({1, 24, 16}), kBf)},
           {{"b_trans", yes()}, {"init_cond", yes()}}),
      "rank-2");
  const ExprPtr product = call("matmul", {tensor(dims({8, 16}), kBf), tensor(dims({16, 24}), kBf)});
  EXPECT_EQ(text_of(call("matmul_acc",
                         {var(product->type), tensor(dims({8, 16}), kBf), tensor(dims({16, 24}), kBf)})),
            "Tensor[[8, 24], bfloat16]");
}

// O-1807 - O-1810
TEST_F(Matmul, OtherProducts) {
  const ExprPtr a = tile(dims({16, 32}), kBf);
  const ExprPtr b = tile(dims({32, 48}), kBf);
  EXPECT_EQ(text_of(call("matmul_bias", {a, b, tile(dims({1, 48}), kF32)})), "Tile[[16, 48], fp32, Mem.Acc]");
  EXPECT_REJECTED(call("matmul_bias", {a, b, tile(dims({1, 48}), kBf)}), "bfloat16");
  EXPECT_REJECTED(call("matmul_bias", {a, b, tile(dims({1, 32}), kF32)}), "[1, 48]");
  EXPECT_REJECTED(call("batch_matmul", {tensor(dims({2, 8, 16}), kBf), tensor(dims({2, 16, 8}), kBf)}),
                  "TypeError", "pl.matmul");
  EXPECT_EQ(text_of(call("batch_matmul", {tile(dims({1, 16, 32}), kBf), tile(dims({4, 32, 16}), kBf)})),
            "Tile[[4, 16, 16], fp32, Mem.Acc]");
  const ExprPtr g = call("gemv", {tile(dims({1, 32}), kBf), b});
  EXPECT_EQ(text_of(g), "Tile[[16, 48], fp32, Mem.Acc]");
  EXPECT_EQ(valid_text(g), "[1, 48]");
  EXPECT_REJECTED(call("gemv", {a, b}), "[1, K]");
  EXPECT_REJECTED(call("gemv", {tile(dims({1, 32}), kBf), b, text("last")}), "acc_phase");
  EXPECT_EQ(text_of(call("gemv_acc", {var(g->type), tile(dims({1, 32}), kBf), b})),
            "Tile[[16, 48], fp32, Mem.Acc]");
  const auto f8 = DType::kFp8E4M3FN;
  const std::vector<ExprPtr> mx = {tile(dims({16, 64}), f8), tile(dims({16, 2}), DType::kFp8E8M0),
                                   tile(dims({64, 32}), f8), tile(dims({2, 32}), DType::kFp8E8M0)};
  EXPECT_REJECTED(call("matmul_mx", mx), "a2a3");
  a5();
  EXPECT_EQ(text_of(call("matmul_mx", mx)), "Tile[[16, 32], fp32, Mem.Acc]");
  std::vector<ExprPtr> wrong = mx;
  wrong[1] = tile(dims({16, 4}), DType::kFp8E8M0);
  EXPECT_REJECTED(call("matmul_mx", wrong), "'lhs_scale'", "[16, 2]");
}

// O-1901 - O-1906
TEST_F(Matmul, Gather) {
  const ExprPtr x = tensor(dims({8, 64}), kF32);
  EXPECT_EQ(text_of(call("gather", {x, num(-1), tensor(dims({8, 10}), kI32)})), "Tensor[[8, 10], fp32]");
  EXPECT_REJECTED(call("gather", {x, num(-1), tensor(dims({9, 10}), kI32)}), "axis 0");
  EXPECT_REJECTED(call("gather", {x, num(-1), tensor(dims({8, 10}), DType::kInt16)}), "int16");
  EXPECT_REJECTED(call("gather", {x, num(-1)}), "TypeError", "three forms");
  EXPECT_REJECTED(call("gather", {x, num(-1), tensor(dims({8, 10}), kI32)}, {{"mask_pattern", num(1)}}),
                  "three forms");
  EXPECT_EQ(text_of(call("gather", {x}, {{"mask_pattern", num(2)}, {"output_dtype", dtype(kI32)}})),
            "Tensor[[8, 32], int32]");
  EXPECT_EQ(text_of(call("gather", {x}, {{"mask_pattern", num(4)}})), "Tensor[[8, 16], fp32]");
  EXPECT_REJECTED(call("gather", {x}, {{"mask_pattern", num(8)}}), "1 to 7", "8");
  EXPECT_REJECTED(call("gather", {x}, {{"mask_pattern", num(1)}, {"output_dtype", dtype(DType::kInt16)}}),
                  "bit width");
  const ExprPtr c =
      call("gather", {x}, {{"kvalue", real(0.5)}, {"cmp_mode", text("gt")}, {"out_cols", num(12)}});
  EXPECT_EQ(text_of(c), "Tuple[Tensor[[8, 12], int32], Tensor[[1, 8], int32]]");
  EXPECT_EQ(c->attrs.get_int(AttrKey::k_cmp_mode), 4);
  EXPECT_EQ(text_of(call_tile(
                "gather", {tile(dims({4, 16}), kF32), tile(dims({2, 8}), kI32), tile(dims({2, 8}), kI32)})),
            "Tile[[2, 8], fp32, Mem.Vec]");
  EXPECT_REJECTED(call("gather", {tile(dims({4, 16}), kF32)}, {{"mask_pattern", num(1)}}), "pl.tile.gather");
  EXPECT_EQ(text_of(call("gatherb", {tile(dims({4, 64}), kF32), tile(dims({2, 8}), DType::kUInt32)})),
            "Tile[[2, 64], fp32, Mem.Vec]");
}

// O-1910 - O-1914
TEST_F(Matmul, MemoryGathers) {
  const ExprPtr l1 = var(call("create_l1", {ints({64, 128}), dtype(kBf)})->type, "kv");
  const ExprPtr x = tensor(dims({1000, 128}), kBf);
  const ExprPtr r =
      call("gather_row", {l1, x, list({index("k"), num(0)}), list({index("row"), num(0)}), ints({1, 128})});
  EXPECT_EQ(r->type->storage, l1->type->storage);
  EXPECT_REJECTED(call("gather_row", {x, x, ints({0, 0}), ints({0, 0}), ints({1, 128})}), "TypeError",
                  "on-chip");
  EXPECT_REJECTED(call("gather_row", {l1, x, ints({64, 0}), ints({0, 0}), ints({1, 128})}), "axis 0", "64");
  EXPECT_REJECTED(call("gather_row", {l1, x, ints({0, 0}), ints({0, 0}), ints({1, 128})},
                       {{"transpose", yes()}, {"valid_shape", ints({1, 64})}}),
                  "transpose");
  EXPECT_EQ(text_of(call("paged_gather", {x, tensor(dims({1, 20}), kI32), tensor(dims({8}), kI32), num(16),
                                          num(128), num(32)})),
            "Tensor[[32, 128], bfloat16]");
  EXPECT_REJECTED(call("paged_gather",
                       {x, tensor(dims({40}), kI32), tensor(dims({8}), kI32), num(16), num(128), num(32)}),
                  "max_indices");
  const ExprPtr g = call("mgather", {x, tile(dims({1, 16}), kI32, dims({1, 5}))});
  EXPECT_EQ(text_of(g), "Tile[[16, 128], bfloat16, Mem.Vec]");
  EXPECT_EQ(valid_text(g), "[5, 128]");
  EXPECT_EQ(g->attrs.get_string(AttrKey::k_coalesce), "row");
  EXPECT_EQ(g->attrs.get_string(AttrKey::k_gather_oob), "undefined");
  EXPECT_REJECTED(call("mgather", {x, tile(dims({1, 16}), kI32)}, {{"gather_oob", text("wrapped")}}),
                  "ValueError", "wrapped");
  EXPECT_REJECTED(call("mgather", {x, tile(dims({16, 1}), kI32)}), "a2a3");
  EXPECT_REJECTED(call("mgather", {tensor(dims({100, 3}), kF32), tile(dims({1, 16}), kI32)}), "32 bytes");
}

// O-1920 - O-1924
TEST_F(Matmul, Scatter) {
  const ExprPtr x = tensor(dims({8, 64}), kF32);
  EXPECT_EQ(text_of(call("scatter", {x, num(1), tensor(dims({8, 4}), kI32), tensor(dims({8, 4}), kF32)})),
            "Tensor[[8, 64], fp32]");
  EXPECT_REJECTED(call("scatter", {x, num(0), tensor(dims({8, 4}), kI32), tensor(dims({8, 4}), kF32)}),
                  "'dim'");
  EXPECT_REJECTED(
      call("scatter", {x, num(1), tensor(dims({8, 4}), DType::kInt16), tensor(dims({8, 4}), kF32)}), "int16");
  EXPECT_EQ(text_of(call("scatter", {x}, {{"mask_pattern", num(1)}, {"dst", tensor(dims({8, 128}), kF32)}})),
            "Tensor[[8, 128], fp32]");
  EXPECT_REJECTED(call("scatter", {x}, {{"mask_pattern", num(1)}, {"dst", tensor(dims({8, 64}), kF32)}}),
                  "2 times");
  const ExprPtr dst = tile(dims({8, 64}), kF32);
  EXPECT_EQ(call_tile("scatter", {dst, tile(dims({2, 8}), kF32), tile(dims({2, 8}), kI32)})->type->storage,
            dst->type->storage);
  const ExprPtr rows = tensor(dims({6, 64}), kF32);
  const ExprPtr at = tensor(dims({2, 3}), kI32);
  EXPECT_EQ(text_of(call("scatter_update", {x, num(-2), at, rows})), "Tensor[[8, 64], fp32]");
  EXPECT_EQ(text_of(call("scatter_update", {x, at, rows})), "Tensor[[8, 64], fp32]");
  EXPECT_REJECTED(call("scatter_update", {x, num(0), at, rows}), "-2");
  EXPECT_REJECTED(call("scatter_update", {x, at, tensor(dims({5, 64}), kF32)}), "[5, 64]");
  EXPECT_REJECTED(call("scatter_update", {x, at}), "TypeError");
  EXPECT_REJECTED(call("mscatter", {dst, tile(dims({8, 64}), kI32), x}), "a2a3");
}

// O-2001 - O-2004
TEST_F(Matmul, Sort) {
  const ExprPtr x = tensor(dims({1, 512}), kF32);
  EXPECT_EQ(text_of(call("sort32", {x, tensor(dims({1, 512}), DType::kUInt32)})), "Tensor[[1, 1024], fp32]");
  EXPECT_EQ(text_of(call("sort32", {tile(dims({4, 64}), DType::kFp16), tile(dims({4, 64}), kI32)})),
            "Tile[[4, 256], fp16, Mem.Vec]");
  EXPECT_REJECTED(call("sort32", {tensor(dims({1, 40}), kF32), tensor(dims({1, 40}), kI32)}),
                  "multiple of 32", "40");
  const ExprPtr pairs = tensor(dims({1, 1024}), kF32);
  const ExprPtr m = call("mrgsort", {pairs}, {{"block_len", num(64)}});
  EXPECT_EQ(m->attrs.get_int(AttrKey::k_block_len), 64);
  EXPECT_EQ(text_of(call("mrgsort", {pairs, pairs, pairs})), "Tensor[[1, 3072], fp32]");
  EXPECT_REJECTED(call("mrgsort", {pairs}), "block_len");
  EXPECT_REJECTED(call("mrgsort", {pairs, pairs}, {{"block_len", num(64)}}), "cannot be combined");
  EXPECT_REJECTED(call("mrgsort", {pairs}, {{"block_len", num(100)}}), "multiple of 64");
  const ExprPtr t = tile(dims({1, 128}), kF32);
  EXPECT_REJECTED(call("mrgsort", {t, t}), "'tmp'");
  EXPECT_EQ(text_of(call("mrgsort", {t, t}, {{"tmp", tile(dims({1, 192}), kF32)}})),
            "Tile[[1, 192], fp32, Mem.Vec]");
  const ExprPtr printed = call_tile("mrgsort_format2", {t, t, tile(dims({1, 256}), kF32)});
  EXPECT_EQ(printed->op, OpId::k_mrgsort);
  EXPECT_EQ(text_of(printed), "Tile[[1, 256], fp32, Mem.Vec]");
}

}  // namespace
}  // namespace pypto::ir::test
