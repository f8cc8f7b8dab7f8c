// SPDX-License-Identifier: Apache-2.0
// Types, extents and scalar arithmetic.
#include <cmath>

#include "core/ir/op.h"
#include "tests/core/infer_support.h"

namespace pypto::ir::test {
namespace {

ExprPtr op(OpId id, const ExprPtr& a, const ExprPtr& b) { return infer_scalar(id, a, b, {}); }
ExprPtr add(const ExprPtr& a, const ExprPtr& b) { return op(OpId::k_scalar_add, a, b); }
ExprPtr sub(const ExprPtr& a, const ExprPtr& b) { return op(OpId::k_scalar_sub, a, b); }
ExprPtr mul(const ExprPtr& a, const ExprPtr& b) { return op(OpId::k_scalar_mul, a, b); }
ExprPtr floordiv(const ExprPtr& a, const ExprPtr& b) { return op(OpId::k_scalar_floordiv, a, b); }
ExprPtr mod(const ExprPtr& a, const ExprPtr& b) { return op(OpId::k_scalar_mod, a, b); }

int64_t folded(const ExprPtr& e) {
  const auto c = const_int(simplify(e));
  return c ? *c : std::numeric_limits<int64_t>::min();
}

// O-813: `k : k + 64` has extent 64, whatever k is.
TEST(Extents, SumsCancel) {
  const ExprPtr k = index("k");
  const ExprPtr n = index("n");
  EXPECT_EQ(folded(sub(add(k, num(64)), k)), 64);
  EXPECT_EQ(folded(sub(mul(add(k, num(1)), num(32)), mul(k, num(32)))), 32);
  EXPECT_EQ(folded(sub(add(mul(k, num(4)), n), add(n, mul(num(4), k)))), 0);
  EXPECT_EQ(folded(floordiv(mul(k, num(8)), mul(num(1), num(8)))), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(same_expr(floordiv(mul(k, num(8)), num(8)), k));
  EXPECT_EQ(folded(mod(mul(k, num(16)), num(8))), 0);
  EXPECT_EQ(dim_text(Dim(simplify(add(k, num(64))))), "k + 64");
}

TEST(Extents, StructuralEquality) {
  const ExprPtr k = index("k");
  const ExprPtr n = index("n");
  EXPECT_TRUE(same_expr(add(k, n), add(n, k)));
  EXPECT_FALSE(same_expr(add(k, num(1)), add(n, num(1))));
  EXPECT_TRUE(same_expr(op(OpId::k_min, k, num(16)), op(OpId::k_min, k, num(16))));
  EXPECT_FALSE(same_expr(op(OpId::k_min, k, num(16)), op(OpId::k_max, k, num(16))));
  // A narrower sum wraps before it is widened, so it may not be opened.
  const ExprPtr small = scalar(DType::kInt32, "m");
  EXPECT_TRUE(same_expr(add(small, num(3)), add(num(3), small)));
}

TEST(Types, Texts) {
  EXPECT_EQ(text_of(tensor(dims({64, 32}), DType::kFp32)), "Tensor[[64, 32], fp32]");
  EXPECT_EQ(type_text(*window(dims({2, 1}), DType::kInt32)->type, true),
            "pld.DistributedTensor[[2, 1], pl.INT32]");
  EXPECT_EQ(type_text(*tile(dims({16, 64}), DType::kBf16)->type, true),
            "pl.Tile[[16, 64], pl.BF16, pl.Mem.Vec]");
  EXPECT_EQ(type_text(*array_type(4, DType::kTaskId), true), "pl.Array[4, pl.TASK_ID]");
  EXPECT_EQ(type_text(*scalar_type(DType::kIndex)), "Scalar[index]");
}

// 01 L-84
TEST(Types, Equality) {
  const auto t = [](std::initializer_list<int64_t> s, DType d) { return *tensor_type(dims(s), d); };
  EXPECT_TRUE(same_type(t({4, 8}, DType::kFp32), t({4, 8}, DType::kFp32)));
  EXPECT_FALSE(same_type(t({4, 8}, DType::kFp32), t({4, 9}, DType::kFp32)));
  EXPECT_FALSE(same_type(t({4, 8}, DType::kFp32), t({4, 8}, DType::kFp16)));
  EXPECT_FALSE(same_type(t({4, 8}, DType::kFp32), *tile_type(dims({4, 8}), DType::kFp32)));
  EXPECT_TRUE(same_type(*scalar_type(DType::kIndex), *scalar_type(DType::kInt64)));
  Type dynamic = t({4, 8}, DType::kFp32);
  dynamic.shape[0] = Dim(index());
  EXPECT_TRUE(same_type(dynamic, t({4, 8}, DType::kFp32)));
  Type narrowed = t({4, 8}, DType::kFp32);
  narrowed.valid = dims({2, 8});
  EXPECT_TRUE(same_type(narrowed, t({4, 8}, DType::kFp32)));
  EXPECT_FALSE(same_type(*tile_type(dims({16, 16}), DType::kFp32, MemorySpace::kVec),
                         *tile_type(dims({16, 16}), DType::kFp32, MemorySpace::kAcc)));
  EXPECT_FALSE(
      same_type(t({2, 2}, DType::kInt32), *tensor_type(dims({2, 2}), DType::kInt32, TensorPlace::kWindow)));
}

// O-301
TEST(Promotion, Arrays) {
  struct Row {
    DType a, b, want;
  };
  const Row rows[] = {
      {DType::kFp16, DType::kFp16, DType::kFp16},     {DType::kInt32, DType::kFp16, DType::kFp16},
      {DType::kFp16, DType::kInt64, DType::kFp16},    {DType::kFp16, DType::kFp32, DType::kFp32},
      {DType::kFp16, DType::kBf16, DType::kFp16},     {DType::kBf16, DType::kFp16, DType::kBf16},
      {DType::kInt8, DType::kInt32, DType::kInt32},   {DType::kUInt32, DType::kInt32, DType::kInt32},
      {DType::kInt32, DType::kUInt32, DType::kInt32}, {DType::kUInt8, DType::kInt16, DType::kInt16},
      {DType::kUInt16, DType::kInt8, DType::kUInt16}, {DType::kBool, DType::kInt32, DType::kNone},
      {DType::kTaskId, DType::kInt64, DType::kNone},
  };
  for (const Row& r : rows) {
    EXPECT_EQ(promote(r.a, r.b), r.want) << dtype_text(r.a) << " " << dtype_text(r.b);
  }
}

// 01 L-18
TEST(ScalarPromotion, WiderWinsThenLeft) {
  const auto of = [](DType a, DType b) { return add(scalar(a), scalar(b))->type->dtype; };
  EXPECT_EQ(of(DType::kInt32, DType::kInt64), DType::kInt64);
  EXPECT_EQ(of(DType::kInt32, DType::kUInt32), DType::kInt32);
  EXPECT_EQ(of(DType::kUInt32, DType::kInt32), DType::kUInt32);
  EXPECT_EQ(of(DType::kIndex, DType::kInt64), DType::kIndex);
  EXPECT_EQ(of(DType::kFp16, DType::kFp32), DType::kFp32);
  EXPECT_EQ(of(DType::kBf16, DType::kFp16), DType::kBf16);
  // An untyped literal beside an integer counts as INDEX: n * 4096 is computed in 64 bits.
  EXPECT_EQ(mul(scalar(DType::kInt32), num(4096))->type->dtype, DType::kIndex);
  EXPECT_EQ(mul(scalar(DType::kInt32), int_const(4096, DType::kInt32))->type->dtype, DType::kInt32);
  // Beside a float it is the equal float of that dtype.
  const ExprPtr half = mul(scalar(DType::kFp16), num(3));
  EXPECT_EQ(half->type->dtype, DType::kFp16);
  EXPECT_EQ(half->args[1]->kind, ExprKind::kFloat);
  EXPECT_EQ(half->args[1]->float_value, 3.0);
  EXPECT_EQ(mul(scalar(DType::kFp16), real(0.5))->type->dtype, DType::kFp32);
}

TEST(ScalarPromotion, Rejections) {
  EXPECT_REJECTED(add(scalar(DType::kInt32), scalar(DType::kFp32)), "TypeError", "'+'", "int32", "fp32",
                  "pl.cast");
  EXPECT_REJECTED(add(scalar(DType::kInt32), real(2.5)), "TypeError", "'+'", "int32", "fp32");
  EXPECT_REJECTED(add(scalar(DType::kBool), scalar(DType::kInt32)), "TypeError", "does not accept bool dtype",
                  "pl.cast");
  EXPECT_REJECTED(op(OpId::k_scalar_lt, yes(), yes(false)), "does not accept bool dtype");
  EXPECT_REJECTED(op(OpId::k_scalar_truediv, scalar(DType::kInt32), scalar(DType::kInt32)), "TypeError",
                  "//");
  EXPECT_REJECTED(op(OpId::k_scalar_eq, scalar(DType::kTaskId), none_const()), "task");
  EXPECT_REJECTED(infer_scalar(OpId::k_scalar_invert, scalar(DType::kFp32), nullptr, {}), "TypeError", "'~'");
  EXPECT_REJECTED(op(OpId::k_scalar_lshift, scalar(DType::kInt32), int_const(32, DType::kInt32)),
                  "shift count 32");
  EXPECT_REJECTED(op(OpId::k_scalar_rshift, scalar(DType::kInt32), num(-1)), "shift count -1");
  EXPECT_EQ(outcome([] { return op(OpId::k_scalar_eq, scalar(DType::kBool), yes()); }), "ok Scalar[bool]");
  EXPECT_EQ(outcome([] { return op(OpId::k_scalar_and, scalar(DType::kBool), scalar(DType::kInt32)); }),
            "ok Scalar[bool]");
}

// 01 L-17, L-19: floor semantics, also of folded constants
TEST(ScalarFolding, FloorDivision) {
  const int64_t values[] = {-9, -7, -1, 0, 1, 7, 9};
  for (const int64_t a : values) {
    for (const int64_t b : {-3, -2, 2, 3, 4}) {
      const auto want = static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
      EXPECT_EQ(*const_int(floordiv(num(a), num(b))), want) << a << " // " << b;
      EXPECT_EQ(*const_int(mod(num(a), num(b))), a - b * want) << a << " % " << b;
    }
  }
  EXPECT_REJECTED(floordiv(index(), num(0)), "ZeroDivisionError", "i // 0");
  EXPECT_REJECTED(mod(num(5), num(0)), "ZeroDivisionError");
}

TEST(ScalarFolding, WrapsAndRounds) {
  EXPECT_EQ(*const_int(add(int_const(INT32_MAX, DType::kInt32), int_const(1, DType::kInt32))), INT32_MIN);
  EXPECT_EQ(*const_int(sub(int_const(0, DType::kUInt8), int_const(1, DType::kUInt8))), 255);
  EXPECT_EQ(*const_int(op(OpId::k_scalar_rshift, int_const(-16, DType::kInt32), num(2))), -4);
  EXPECT_EQ(*const_int(op(OpId::k_scalar_rshift, int_const(0xF0, DType::kUInt8), num(4))), 0xF);
  // FP16: 2049 is a tie between 2048 and 2050 and goes to even.
  const ExprPtr tie = add(float_const(2048, DType::kFp16), float_const(1, DType::kFp16));
  EXPECT_EQ(*const_number(tie), 2048.0);
  // K22: BF16 nearest even
  EXPECT_EQ(*const_number(convert_scalar(real(1.01953125), DType::kBf16, "x")), 1.015625);
  EXPECT_EQ(*const_number(convert_scalar(real(1.02734375), DType::kBf16, "x")), 1.03125);
  EXPECT_TRUE(std::isinf(*const_number(convert_scalar(real(70000.0), DType::kFp16, "x"))));
  EXPECT_EQ(*const_number(op(OpId::k_scalar_truediv, num(1), num(4))), 0.25);
  EXPECT_EQ(*const_int(op(OpId::k_scalar_lt, num(3), num(4))), 1);
  EXPECT_EQ(*const_int(infer_scalar(OpId::k_scalar_not, num(0), nullptr, {})), 1);
  EXPECT_EQ(*const_int(infer_scalar(OpId::k_scalar_invert, num(5), nullptr, {})), -6);
}

// 01 L-12, L-18, L-47
TEST(ConvertScalar, LiteralsAdaptAndRangeIsChecked) {
  EXPECT_EQ(text_of(convert_scalar(num(7), DType::kInt8, "n")), "Scalar[int8]");
  EXPECT_EQ(text_of(convert_scalar(num(7), DType::kFp32, "n")), "Scalar[fp32]");
  EXPECT_REJECTED(convert_scalar(num(300), DType::kInt8, "parameter 'n'"), "ParserTypeError", "parameter 'n'",
                  "300", "int8");
  EXPECT_REJECTED(convert_scalar(num(-1), DType::kUInt32, "n"), "-1", "uint32");
  EXPECT_REJECTED(convert_scalar(real(2.5), DType::kInt32, "n"), "int32", "fp32", "pl.cast");
  EXPECT_REJECTED(convert_scalar(scalar(DType::kFp32), DType::kFp16, "n"), "fp16", "fp32");
  const ExprPtr narrowed = convert_scalar(index(), DType::kInt32, "parameter 'n'");
  EXPECT_EQ(narrowed->op, OpId::k_scalar_cast);
  EXPECT_EQ(narrowed->attrs.get_string(AttrKey::k_name), "parameter 'n'");  // range-checked at run time
  const ExprPtr widened = convert_scalar(scalar(DType::kInt32), DType::kInt64, "n");
  EXPECT_EQ(widened->attrs.find(AttrKey::k_name), nullptr);
  EXPECT_EQ(convert_scalar(index(), DType::kIndex, "n")->kind, ExprKind::kVar);
}

using ScalarCalls = Infer;

// O-604, O-606
TEST_F(ScalarCalls, FlatNamesOnScalars) {
  const ExprPtr sum = call("add", {index("a"), index("b")});
  EXPECT_EQ(sum->op, OpId::k_scalar_add);
  EXPECT_EQ(call("div", {scalar(DType::kFp32), real(2)})->op, OpId::k_scalar_truediv);
  EXPECT_EQ(call("max", {index(), num(3)})->op, OpId::k_max);
  EXPECT_EQ(*const_int(call("min", {num(8), num(3)})), 3);
  EXPECT_REJECTED(call("max", {tile(dims({16, 16}), DType::kFp32), num(1)}), "TypeError", "maximum",
                  "row_max");
  EXPECT_REJECTED(call("min", {num(1), tensor(dims({16, 16}), DType::kFp32)}), "TypeError", "minimum",
                  "row_min");
  EXPECT_REJECTED(call("div", {index("a"), index("b")}), "TypeError", "//");
}

// 01 L-22
TEST_F(ScalarCalls, Cast) {
  const ExprPtr c = call("cast", {index(), dtype(DType::kInt32)});
  EXPECT_EQ(c->op, OpId::k_scalar_cast);
  EXPECT_EQ(text_of(c), "Scalar[int32]");
  EXPECT_EQ(*const_int(call("cast", {real(-2.9), dtype(DType::kInt32)})), -2);
  EXPECT_EQ(*const_int(call("cast", {num(300), dtype(DType::kInt8)})), 44);
  EXPECT_EQ(*const_int(call("cast", {num(7), dtype(DType::kBool)})), 1);
  EXPECT_REJECTED(call("cast", {real(1e12), dtype(DType::kInt32)}), "out of range");
  EXPECT_REJECTED(call("cast", {index(), dtype(DType::kInt32), text("floor")}), "TypeError",
                  "Scalar inputs do not support non-default mode");
  EXPECT_REJECTED(call("cast", {index(), dtype(DType::kInt32), text("nearest")}), "ValueError");
  EXPECT_REJECTED(call("cast", {scalar(DType::kTaskId), dtype(DType::kInt64)}), "TypeError");
  EXPECT_EQ(text_of(call("cast", {scalar(DType::kInt32), dtype(DType::kInt32)})), "Scalar[int32]");
  orchestration();
  EXPECT_EQ(text_of(call("cast", {index(), dtype(DType::kFp32)})), "Scalar[fp32]");
}

// Every row has a type function, or the library would not link; no row crashes on an empty call.
TEST_F(ScalarCalls, EveryRowAnswers) {
  for (int i = 0; i < kOpCount; ++i) {
    const OpRow& row = op_row(static_cast<OpId>(i));
    OpCallSite site;
    site.row = &row;
    site.form = static_cast<OpForm>(row.forms & (~row.forms + 1));
    site.args.resize(op_params(row, kFormFlat).size(), tile(dims({16, 16}), DType::kFp32));
    const std::string got = outcome([&] { return infer_op(context, site); });
    EXPECT_EQ(got.find("InternalError"), std::string::npos) << row.name << ": " << got;
  }
}

// Whatever the arguments are, a call is typed or rejected with a message: never a crash, never our own
// defect.
TEST_F(ScalarCalls, ArbitraryArguments) {
  const std::vector<ExprPtr> pool = {
      nullptr,
      num(0),
      num(2),
      num(-1),
      real(0.5),
      yes(),
      none_const(),
      text("row"),
      text(""),
      index(),
      scalar(DType::kInt32),
      scalar(DType::kBool),
      scalar(DType::kTaskId),
      scalar(DType::kFp16),
      dtype(DType::kFp32),
      dtype(DType::kInt8),
      memory(MemorySpace::kMat),
      pad(PadValue::kMax),
      atomic_add(),
      ints({}),
      ints({0, 0}),
      ints({16, 64}),
      ints({1}),
      list({index(), num(4)}),
      list({real(1.5)}),
      list({tile(dims({16, 16}), DType::kFp32)}),
      tile(dims({16, 64}), DType::kFp32),
      tile(dims({16, 64}), DType::kFp32, dims({3, 7})),
      tile(dims({16, 1}), DType::kInt32),
      tile(dims({1, 64}), DType::kUInt8, {}, MemorySpace::kAcc),
      tile(dims({2, 16, 16}), DType::kBf16),
      tile(dims({8}), DType::kInt16),
      tensor(dims({16, 64}), DType::kFp32),
      tensor({}, DType::kFp32),
      tensor({Dim(index("M")), Dim(64)}, DType::kBf16),
      tensor({Dim(), Dim()}, DType::kFp32),
      tensor(dims({4, 1}), DType::kInt32),
      on_chip(dims({16, 64}), DType::kFp16),
      window(dims({16, 64}), DType::kFp32),
      window(dims({4, 1}), DType::kInt32),
      window({Dim(index("N")), Dim(1)}, DType::kInt32),
      var(array_type(4, DType::kInt32)),
      var(simple_type(TypeKind::kPtr)),
      var(simple_type(TypeKind::kCommCtx)),
      var(tuple_type({scalar_type(DType::kIndex), scalar_type(DType::kIndex)})),
  };
  uint64_t state = 20240229;
  const auto pick = [&](size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % n);
  };
  for (int i = 0; i < kOpCount; ++i) {
    const OpRow& row = op_row(static_cast<OpId>(i));
    for (int trial = 0; trial < 400; ++trial) {
      context.arch = pick(2) ? Arch::kA5 : Arch::kA2A3;
      context.place = pick(8) ? kPlaceKernel : pick(2) ? kPlaceOrch : kPlaceHost;
      context.in_split_aiv = pick(2) != 0;
      OpCallSite site;
      site.row = &row;
      uint32_t bit = 1u << pick(11);
      while (!(row.forms & bit)) bit = bit == kFormInternal ? 1u : bit << 1;
      site.form = static_cast<OpForm>(bit);
      for (size_t k = 0; k < op_params(row, kFormFlat).size(); ++k)
        site.args.push_back(pool[pick(pool.size())]);
      const std::string got = outcome([&] { return infer_op(context, site); });
      ASSERT_EQ(got.find("InternalError"), std::string::npos) << row.name << ": " << got;
      ASSERT_NE(got, "") << row.name;
    }
  }
}

}  // namespace
}  // namespace pypto::ir::test
