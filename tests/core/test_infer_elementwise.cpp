// SPDX-License-Identifier: Apache-2.0
// Dispatch (02 section 1), scalar operands, arithmetic, cast, bits, comparison (sections 9 - 14).
#include <cmath>

#include "core/ir/op.h"
#include "tests/core/infer_support.h"

namespace pypto::ir::test {
namespace {

using Elementwise = Infer;
const auto kF32 = DType::kFp32;
const auto kI32 = DType::kInt32;

// O-102, O-113, O-221
TEST_F(Elementwise, DispatchesOnOperandKind) {
  const ExprPtr g = tensor(dims({16, 64}), kF32);
  const ExprPtr t = tile(dims({16, 64}), kF32);
  const ExprPtr sum = call("add", {g, g});
  EXPECT_EQ(text_of(sum), "Tensor[[16, 64], fp32]");
  EXPECT_EQ(sum->type->place, TensorPlace::kOnChip);
  EXPECT_NE(sum->type->storage, g->type->storage);
  EXPECT_EQ(text_of(call("add", {t, t})), "Tile[[16, 64], fp32, Mem.Vec]");
  EXPECT_REJECTED(call("add", {g, t}), "TypeError", "cannot mix Tensor and Tile arguments",
                  "Tensor in global memory", "pl.load");
  EXPECT_REJECTED(call("add", {t, on_chip(dims({16, 64}), kF32)}), "cannot mix Tensor and Tile arguments",
                  "on-chip Tensor");
  EXPECT_REJECTED(call_tile("add", {g, g}), "TypeError", "must be a Tile", "pl.load");
  EXPECT_REJECTED(call_tensor("add", {t, t}), "TypeError", "pl.tensor.add takes Tensors");
  EXPECT_REJECTED(call("relu", {g}), "TypeError", "must be a Tile", "pl.load");
  EXPECT_REJECTED(call("add", {scalar(kF32), t}), "array operand comes first");
  EXPECT_REJECTED(call("sub", {real(1.0), t}), "pl.add(pl.neg(x), 1.0)");
  // A window is accepted wherever a tensor is; a computed value is plain (03 T-5).
  EXPECT_EQ(text_of(call("add", {window(dims({16, 64}), kF32), g})), "Tensor[[16, 64], fp32]");
}

// O-111
TEST_F(Elementwise, KeywordsOfTheOtherLevel) {
  const ExprPtr g = tensor(dims({16, 64}), kI32);
  const ExprPtr t = tile(dims({16, 64}), kI32);
  EXPECT_REJECTED(call("row_sum", {g, t}), "TypeError", "'tmp_tile'", "Tensor operands");
  EXPECT_REJECTED(call("row_sum", {t}), "TypeError", "'tmp_tile'", "Tile operands");
  EXPECT_REJECTED(call("xor", {g, g, t}), "TypeError", "'tmp'", "Tensor operands");
  EXPECT_REJECTED(call("xor", {t, t}), "TypeError", "'tmp'");
  EXPECT_REJECTED(call("slice", {t, ints({8, 64}), ints({0, 0})}, {{"clamp", yes()}}), "TypeError", "'clamp'",
                  "Tile operands");
  EXPECT_EQ(text_of(call("slice", {t, ints({8, 64}), ints({0, 0})}, {{"clamp", yes(false)}})),
            "Tile[[8, 64], int32, Mem.Vec]");
}

// O-901, O-902
TEST_F(Elementwise, Broadcast) {
  struct Row {
    std::initializer_list<int64_t> a, b;
    const char* want;
  };
  const Row rows[] = {{{16, 64}, {16, 1}, "[16, 64]"},        {{16, 1}, {16, 64}, "[16, 64]"},
                      {{16, 64}, {1, 64}, "[16, 64]"},        {{16, 64}, {1, 1}, "[16, 64]"},
                      {{2, 16, 64}, {16, 64}, "[2, 16, 64]"}, {{16, 1}, {1, 64}, "[16, 64]"}};
  for (const Row& r : rows) {
    EXPECT_EQ(shape_text(call("sub", {tensor(dims(r.a), kF32), tensor(dims(r.b), kF32)})->type->shape),
              r.want);
    EXPECT_EQ(shape_text(call("sub", {tile(dims(r.a), kF32), tile(dims(r.b), kF32)})->type->shape), r.want);
  }
  EXPECT_REJECTED(call("add", {tile(dims({16, 64}), kF32), tile(dims({16, 32}), kF32)}), "ValueError",
                  "[16, 64]", "[16, 32]", "do not broadcast");
  const ExprPtr dynamic = tensor({Dim(index("M")), Dim(64)}, kF32);
  EXPECT_EQ(shape_text(call("add", {dynamic, tensor(dims({1, 64}), kF32)})->type->shape), "[M, 64]");
  EXPECT_EQ(shape_text(call("add", {dynamic, tensor(dims({8, 64}), kF32)})->type->shape), "[8, 64]");
}

// O-210
TEST_F(Elementwise, ValidOfTheFirstOperand) {
  const ExprPtr a = tile(dims({16, 64}), kF32, dims({5, 60}));
  const ExprPtr b = tile(dims({16, 64}), kF32, dims({9, 64}));
  EXPECT_EQ(valid_text(call("add", {a, b})), "[5, 60]");
  EXPECT_EQ(valid_text(call("add", {b, a})), "[9, 64]");
  EXPECT_EQ(valid_text(call("exp", {a})), "[5, 60]");
  EXPECT_EQ(valid_text(call("mul", {tile(dims({1, 64}), kF32, dims({1, 60})), b})), "[16, 60]");
}

// O-120, O-905, B-2
TEST_F(Elementwise, LiteralsAndScalars) {
  const ExprPtr g = tensor(dims({16, 64}), kI32);
  const ExprPtr t = tile(dims({16, 64}), kI32);
  EXPECT_EQ(text_of(call("add", {g, num(2)})), "Tensor[[16, 64], int32]");
  EXPECT_EQ(text_of(call("add", {g, real(2.5)})), "Tensor[[16, 64], fp32]");
  EXPECT_EQ(text_of(call("mul", {tensor(dims({4}), DType::kFp16), scalar(kF32)})), "Tensor[[4], fp32]");
  EXPECT_EQ(text_of(call("mul", {tensor(dims({4}), DType::kFp16), real(0.1)})), "Tensor[[4], fp16]");
  // Tile forms and subs keep the array's dtype (O-123, O-904).
  const ExprPtr kept = call("add", {t, real(2.5)});
  EXPECT_EQ(text_of(kept), "Tile[[16, 64], int32, Mem.Vec]");
  EXPECT_EQ(*const_int(kept->args[1]), 2);
  EXPECT_EQ(text_of(call("sub", {g, real(2.5)})), "Tensor[[16, 64], int32]");
  EXPECT_REJECTED(call("sub", {tensor(dims({4}), DType::kUInt8), num(1)}), "TypeError", "uint8");
  EXPECT_REJECTED(call("add", {tile(dims({4, 32}), DType::kUInt8), num(300)}), "ParserTypeError", "300",
                  "uint8");
  EXPECT_REJECTED(call("add", {t, scalar(DType::kBool)}), "TypeError", "pl.cast");
  const ExprPtr converted = call("mul", {t, scalar(kF32)});
  EXPECT_EQ(converted->args[1]->op, OpId::k_scalar_cast);
  EXPECT_EQ(converted->args[1]->type->dtype, kI32);
  const ExprPtr half = call("mul", {tile(dims({16, 64}), DType::kBf16), num(3)});
  EXPECT_EQ(half->args[1]->kind, ExprKind::kFloat);
  EXPECT_EQ(half->args[1]->type->dtype, DType::kBf16);
}

// O-122, 01 L-23, B-3
TEST_F(Elementwise, IndexScalarsAreRejected) {
  for (const ExprPtr& x : {tensor(dims({16, 64}), kI32), tile(dims({16, 64}), kF32)}) {
    EXPECT_REJECTED(call("add", {x, index()}), "ValueError", "Scalar operand has dtype `index`",
                    "dtype `index`", "pl.cast(<value>, pl.INT32)");
  }
}

// O-903
TEST_F(Elementwise, Division) {
  const ExprPtr a = tile(dims({16, 64}), kF32);
  EXPECT_EQ(text_of(call("div", {a, a})), "Tile[[16, 64], fp32, Mem.Vec]");
  EXPECT_REJECTED(call("div", {a, tile(dims({16, 1}), kF32)}), "same shape");
  EXPECT_REJECTED(call("div", {a, tile(dims({16, 64}), DType::kFp16)}), "TypeError", "same dtype");
  EXPECT_REJECTED(call("div", {a, tile(dims({16, 64}), kF32, dims({8, 64}))}), "valid shapes");
  EXPECT_EQ(text_of(call("div", {tensor(dims({16, 1}), kF32), tensor(dims({16, 64}), DType::kFp16)})),
            "Tensor[[16, 64], fp32]");
  EXPECT_REJECTED(call("div", {tensor(dims({4}), DType::kBf16), tensor(dims({4}), DType::kBf16)}),
                  "bfloat16");
  EXPECT_REJECTED(call("div", {a, real(2.0)}, {{"high_precision", yes()}}), "TypeError", "high_precision");
  EXPECT_REJECTED(
      call("div", {tensor(dims({4, 1}), kF32), tensor(dims({4, 4}), kF32)}, {{"high_precision", yes()}}),
      "broadcast");
  EXPECT_REJECTED(call("rem", {a, a, tile(dims({1, 32}), kF32)}), "'tmp'", "64");
  EXPECT_REJECTED(call("fmod", {tile(dims({4, 32}), DType::kInt16), num(3)}), "a2a3");
}

// O-309
TEST_F(Elementwise, StorageTypesDoNotCompute) {
  const ExprPtr f8 = tile(dims({16, 64}), DType::kFp8E4M3FN);
  EXPECT_REJECTED(call("add", {f8, f8}), "TypeError", "fp8e4m3fn", "pl.cast");
  EXPECT_REJECTED(call("add", {tensor(dims({4}), DType::kBool), num(1)}), "TypeError", "bool");
}

// O-1001, O-1002
TEST_F(Elementwise, Unary) {
  EXPECT_EQ(text_of(call("exp", {tensor(dims({4, 4}), kI32)})), "Tensor[[4, 4], fp32]");
  EXPECT_EQ(text_of(call("recip", {tile(dims({4, 16}), DType::kInt16)})), "Tile[[4, 16], int16, Mem.Vec]");
  EXPECT_REJECTED(call("exp", {tile(dims({4, 16}), kI32)}), "TypeError", "int32");
  EXPECT_REJECTED(call("sin", {tile(dims({4, 16}), DType::kFp16)}), "TypeError", "pl.cast(x, pl.FP32)");
  EXPECT_REJECTED(call("log", {tensor(dims({4}), DType::kBf16)}), "TypeError", "pl.cast(x, pl.FP32)");
  const ExprPtr r = call("rsqrt", {tile(dims({4, 16}), kF32)});
  EXPECT_EQ(r->op, OpId::k_tile_rsqrt);
  EXPECT_REJECTED(call("rsqrt", {tile(dims({4, 16}), kF32)}, {{"high_precision", yes()}}), "tmp");
  EXPECT_EQ(text_of(call("rsqrt", {tensor(dims({4}), kF32)}, {{"high_precision", yes()}})),
            "Tensor[[4], fp32]");
  EXPECT_REJECTED(call("neg", {tile(dims({4, 16}), DType::kUInt8)}), "uint8");
}

// O-1101, O-1106
TEST_F(Elementwise, Cast) {
  const ExprPtr t = tile(dims({16, 64}), kF32, dims({3, 64}));
  const ExprPtr c = call("cast", {t, dtype(DType::kInt8), text("trunc")});
  EXPECT_EQ(c->attrs.get_string(AttrKey::k_mode), "trunc");
  EXPECT_EQ(valid_text(c), "[3, 64]");
  EXPECT_EQ(call("cast", {t, dtype(DType::kBf16)})->attrs.get_string(AttrKey::k_mode), "round");
  EXPECT_EQ(call("cast", {t, dtype(DType::kBf16), num(1)})->attrs.get_string(AttrKey::k_mode), "rint");
  EXPECT_REJECTED(call("cast", {t, dtype(kF32)}), "Remove the cast");
  EXPECT_REJECTED(call("cast", {t, dtype(DType::kInt8), text("nearest")}), "ValueError", "nearest");
  EXPECT_REJECTED(call("cast", {t, dtype(DType::kInt8), num(7)}), "ValueError");
  EXPECT_REJECTED(call("cast", {t, dtype(DType::kUInt16)}), "no native cast path from fp32 to uint16",
                  "a2a3");
  EXPECT_EQ(text_of(call("cast", {tile(dims({4, 64}), DType::kFp16), dtype(DType::kInt4)})),
            "Tile[[4, 64], int4, Mem.Vec]");
  a5();
  EXPECT_EQ(text_of(call("cast", {t, dtype(DType::kFp8E4M3FN)})), "Tile[[16, 64], fp8e4m3fn, Mem.Vec]");
  EXPECT_REJECTED(call("cast", {tile(dims({4, 64}), DType::kFp16), dtype(DType::kInt4)}),
                  "no native cast path", "a5");
  // A product that is cast stays placeable (O-1102).
  const ExprPtr acc = tile(dims({16, 16}), kF32, {}, MemorySpace::kAcc);
  EXPECT_EQ(call("cast", {acc, dtype(DType::kBf16)})->type->space, MemorySpace::kUnset);
}

// O-1201 - O-1203
TEST_F(Elementwise, Bits) {
  const ExprPtr t = tile(dims({16, 64}), kI32);
  EXPECT_EQ(text_of(call("ands", {t, num(255)})), "Tile[[16, 64], int32, Mem.Vec]");
  EXPECT_EQ(text_of(call("and_", {t, num(255)})), "Tile[[16, 64], int32, Mem.Vec]");
  EXPECT_REJECTED(call("and_", {tile(dims({16, 64}), kF32), num(1)}), "TypeError", "fp32");
  EXPECT_REJECTED(call("shls", {t, num(-1)}), "negative");
  EXPECT_REJECTED(call("shls", {t, real(1.0)}), "integer scalar");
  EXPECT_REJECTED(call("or_", {tensor(dims({4, 4}), kI32), tensor(dims({1, 4}), kI32)}), "same shape");
  EXPECT_REJECTED(call("not_", {t}), "int32", "INT16");
  EXPECT_EQ(text_of(call("shr", {tile(dims({4, 32}), DType::kUInt16), tile(dims({4, 32}), DType::kUInt16)})),
            "Tile[[4, 32], uint16, Mem.Vec]");
  EXPECT_EQ(text_of(call("xor", {t, t, t})), "Tile[[16, 64], int32, Mem.Vec]");
  EXPECT_REJECTED(call("ands", {tile(dims({4, 32}), DType::kInt64), num(1)}), "64-bit", "a2a3");
}

// O-1301, O-1302, B-10
TEST_F(Elementwise, Compare) {
  EXPECT_EQ(text_of(call("cmp", {tensor(dims({4, 1}), kF32), tensor(dims({4, 9}), DType::kFp16)},
                         {{"cmp_type", num(4)}})),
            "Tensor[[4, 9], fp32]");
  const ExprPtr mask =
      call("cmp", {tile(dims({16, 16}), kF32, dims({5, 9})), real(0.5)}, {{"cmp_type", num(2)}});
  EXPECT_EQ(text_of(mask), "Tile[[16, 32], uint8, Mem.Vec]");
  EXPECT_EQ(valid_text(mask), "[5, 2]");
  EXPECT_EQ(mask->attrs.get_int(AttrKey::k_cmp_type), 2);
  EXPECT_EQ(text_of(call("cmps", {tile(dims({8, 300}), kI32), num(3)})), "Tile[[8, 64], uint8, Mem.Vec]");
  EXPECT_REJECTED(call("cmp", {tile(dims({16, 16}), kF32), real(1)}, {{"cmp_type", num(6)}}), "cmp_type",
                  "6");
}

// O-1303, O-1304
TEST_F(Elementwise, Select) {
  const ExprPtr mask = tile(dims({16, 32}), DType::kUInt8);
  const ExprPtr tmp = tile(dims({1, 32}), DType::kUInt8);
  const ExprPtr x = tile(dims({16, 64}), kF32, dims({16, 50}));
  EXPECT_EQ(valid_text(call("sel", {mask, x, tile(dims({16, 64}), kF32), tmp})), "[16, 50]");
  EXPECT_REJECTED(call("sel", {tile(dims({8, 32}), DType::kUInt8), x, x, tmp}), "does not cover");
  EXPECT_EQ(text_of(call("sels", {mask, tile(dims({16, 64}), kI32), tmp, num(-1)})),
            "Tile[[16, 64], int32, Mem.Vec]");
  EXPECT_REJECTED(call("sels", {mask, tile(dims({16, 64}), kI32), tmp, real(0.5)}), "0.5", "int32");
  EXPECT_REJECTED(call("sels", {mask, tile(dims({16, 64}), DType::kInt8), tmp, num(0)}), "a2a3");
}

// O-1401 - O-1403
TEST_F(Elementwise, ActivationsAndThreeInputs) {
  const ExprPtr x = tile(dims({16, 64}), kF32, dims({7, 33}));
  EXPECT_EQ(valid_text(call("lrelu", {x, num(2)})), "[7, 33]");
  EXPECT_REJECTED(call("relu", {tile(dims({4, 16}), DType::kBf16)}), "bfloat16");
  EXPECT_REJECTED(call("prelu", {x, x, tile(dims({7, 32}), DType::kUInt8)}), "valid rows + 1");
  EXPECT_EQ(valid_text(call("prelu", {x, x, tile(dims({8, 32}), DType::kUInt8)})), "[7, 33]");
  EXPECT_EQ(text_of(call("addc", {tile(dims({4, 16}), DType::kFp16), tile(dims({1, 16}), kF32),
                                  tile(dims({4, 1}), kI32)})),
            "Tile[[4, 16], fp32, Mem.Vec]");
  EXPECT_EQ(text_of(call("subsc", {tile(dims({4, 16}), kF32), num(1), tile(dims({4, 16}), kF32)})),
            "Tile[[4, 16], fp32, Mem.Vec]");
  EXPECT_EQ(valid_text(call("part_max", {x, tile(dims({16, 64}), kF32, dims({16, 3}))})), "[7, 33]");
  EXPECT_REJECTED(call("part_add", {tile(dims({2, 4, 16}), kF32), tile(dims({2, 4, 16}), kF32)}), "rank 2");
}

// O-1501 - O-1506, B-8
TEST_F(Elementwise, Reductions) {
  const ExprPtr x = tile(dims({16, 64}), kF32, dims({5, 47}));
  const ExprPtr tmp = tile(dims({16, 64}), kF32);
  const ExprPtr m = call("row_max", {x, tmp});
  EXPECT_EQ(text_of(m), "Tile[[16, 1], fp32, Mem.Vec]");
  EXPECT_EQ(valid_text(m), "[5, 1]");
  EXPECT_EQ(valid_text(call("col_sum", {x})), "[1, 47]");
  EXPECT_EQ(text_of(call("col_sum", {x, tmp})), "Tile[[1, 64], fp32, Mem.Vec]");
  EXPECT_EQ(text_of(call("row_argmax", {tensor(dims({3, 16, 64}), kF32)})), "Tensor[[3, 16, 1], int32]");
  EXPECT_EQ(text_of(call("row_sum", {tensor(dims({64}), kF32)})), "Tensor[[1], fp32]");
  EXPECT_REJECTED(call("row_sum", {tile(dims({16, 64}), kF32, dims({5, 0})), tmp}), "valid", "empty");
  EXPECT_REJECTED(call("row_min", {tensor(dims({4, 4}), DType::kBf16)}), "bfloat16");
  EXPECT_REJECTED(call("row_sum", {x, tile(dims({16, 32}), kF32)}), "'tmp_tile'", "at least");
  EXPECT_REJECTED(call("row_argmin", {x, tile(dims({16, 128}), kF32)}), "exactly");
  EXPECT_REJECTED(call("col_max", {tile(dims({2, 4, 16}), kF32)}), "rank 2");
  EXPECT_REJECTED(call("row_sum", {tensor(dims({4, 4}), DType::kInt8)}), "int8");
}

// O-1601 - O-1605
TEST_F(Elementwise, Expands) {
  const ExprPtr a = tile(dims({16, 64}), DType::kFp16, dims({9, 64}));
  EXPECT_EQ(text_of(call("row_expand_mul", {a, tile(dims({16, 1}), kF32)})), "Tile[[16, 64], fp32, Mem.Vec]");
  EXPECT_EQ(valid_text(call("col_expand_sub", {a, tile(dims({1, 64}), DType::kFp16)})), "[9, 64]");
  EXPECT_REJECTED(call("row_expand_mul", {a, tile(dims({8, 1}), DType::kFp16)}), "[8, 1]", "[16, 1]");
  EXPECT_REJECTED(call("col_expand", {a, tile(dims({16, 64}), DType::kFp16)}), "[1, 64]");
  EXPECT_REJECTED(call("row_expand_add", {a, tile(dims({16, 1}), kF32)}), "same dtype");
  EXPECT_EQ(text_of(call("row_expand_add", {tile(dims({16, 64}), kF32), tile(dims({16, 8}), kF32)})),
            "Tile[[16, 64], fp32, Mem.Vec]");  // a lane block
  EXPECT_EQ(text_of(call("expands", {tensor(dims({4, 4}), kI32), real(2.5)})), "Tensor[[4, 4], int32]");
  EXPECT_EQ(text_of(call("expands", {tile(dims({4, 16}), kI32), real(2.5)})), "Tile[[4, 16], fp32, Mem.Vec]");
  EXPECT_EQ(text_of(call("expand_clone", {tensor(dims({1, 4, 8}), kF32), tensor(dims({3, 4, 8}), kF32)})),
            "Tensor[[3, 4, 8], fp32]");
  EXPECT_REJECTED(call("expand_clone", {tensor(dims({1, 1, 8}), kF32), tensor(dims({3, 4, 8}), kF32)}),
                  "one axis");
}

// O-1701 - O-1704
TEST_F(Elementwise, Padding) {
  const ExprPtr x = tile(dims({16, 64}), kF32, dims({5, 47}));
  const ExprPtr p = call("fillpad", {x, real(-INFINITY)});
  EXPECT_EQ(valid_text(p), "full");
  EXPECT_EQ(p->type->pad, PadValue::kMin);
  EXPECT_EQ(p->attrs.get_int(AttrKey::k_pad_value), static_cast<int64_t>(PadValue::kMin));
  EXPECT_REJECTED(call("fillpad", {x, pad(PadValue::kNull)}), "pl.PadValue.zero", "math.inf");
  EXPECT_REJECTED(call("fillpad", {x, yes()}), "accepted are");
  EXPECT_REJECTED(call("fillpad", {x, num(1)}), "accepted are");
  const ExprPtr in_place = call_tile("fillpad_inplace", {x});
  EXPECT_EQ(in_place->type->storage, x->type->storage);
  EXPECT_EQ(text_of(call("fillpad_expand", {x, ints({32, 64})})), "Tile[[32, 64], fp32, Mem.Vec]");
  EXPECT_REJECTED(call("fillpad_expand", {x, ints({8, 64})}), "smaller");
  EXPECT_REJECTED(call("fillpad", {tile(dims({16, 64}), kF32, {}, MemorySpace::kMat), pad(PadValue::kMax)}),
                  "Mat");
}

}  // namespace
}  // namespace pypto::ir::test
