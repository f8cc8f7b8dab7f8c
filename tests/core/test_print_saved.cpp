// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/ir/print.h"
#include "core/ir/verify.h"
#include "core/passes/build.h"

namespace pypto::ir {
namespace {

using passes::CodeBuilder;

/// A kernel with a loop, a branch, a carry and several kinds of constants.
ModulePtr sample() {
  auto m = std::make_shared<Module>();
  m->name = "Sample";
  auto f = std::make_shared<Function>();
  f->name = "kernel";
  f->type = FunctionType::kInCore;
  m->functions.push_back(f);
  const auto tensor = [&](const char* name, ParamDirection d) {
    auto t = std::make_shared<Type>(*tensor_type({Dim(32), Dim(64)}, DType::kFp32));
    t->storage = std::make_shared<Storage>();
    t->storage->name = name;
    t->storage->param = static_cast<int>(f->params.size());
    f->params.push_back(f->add_var(name, t, VarKind::kParam, {}));
    f->directions.push_back(d);
    return f->params.back();
  };
  const VarPtr x = tensor("x", ParamDirection::kIn);
  const VarPtr y = tensor("y", ParamDirection::kOut);
  CodeBuilder b(*f, m->arch, kPlaceKernel, {});
  b.loop("i", b.index(0), b.index(2), [&](const ExprPtr& i) {
    const ExprPtr at = b.list({b.mul(i, b.index(16)), b.index(0)});
    const VarPtr t =
        b.let("t", b.op(OpId::k_load, {CodeBuilder::ref(x), at, b.list({b.index(16), b.index(64)})}));
    b.branch(
        b.lt(i, b.index(1)),
        [&] { b.set(t, b.op(OpId::k_mul, {CodeBuilder::ref(t), float_const(0.5, DType::kFp32)})); },
        [&] { b.set(t, b.op(OpId::k_add, {CodeBuilder::ref(t), float_const(-1.25, DType::kFp32)})); });
    b.eval(b.op(OpId::k_store, {CodeBuilder::ref(t), at, CodeBuilder::ref(y)}));
  });
  f->body = std::move(b.code);
  return m;
}

TEST(Saved, ComesBackEqualAndByteForByte) {  // 04 SER-9
  const ModulePtr m = sample();
  const std::string bytes = serialize(*m);
  const ModulePtr back = deserialize_module(bytes);
  std::string path;
  EXPECT_TRUE(structural_equal(*m, *back, &path)) << path;
  EXPECT_EQ(print(*m), print(*back));
  EXPECT_EQ(serialize(*back), bytes);
  EXPECT_EQ(structural_hash(*m), structural_hash(*back));
  EXPECT_TRUE(verify(*back).empty());
}

TEST(Saved, FunctionKeepsItsName) {  // 04 SER-9
  const ModulePtr m = sample();
  const FunctionPtr f = deserialize_function(serialize(*m->functions[0]));
  EXPECT_EQ(f->name, "kernel");
  EXPECT_TRUE(structural_equal(*m->functions[0], *f));
}

TEST(Saved, DamagedBytesAreAValueError) {  // 04 SER-9
  const std::string bytes = serialize(*sample());
  const auto refused = [](const std::string& b) {
    try {
      deserialize_module(b);
    } catch (const Failure& f) {
      return f.diagnostic().cls == ErrorClass::kValueError;
    }
    return false;
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("not a program"));
  EXPECT_TRUE(refused(serialize(*sample()->functions[0])));
  for (size_t n = 0; n < bytes.size(); n += 7) EXPECT_TRUE(refused(bytes.substr(0, n))) << n;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    EXPECT_TRUE(refused(damaged)) << i;
  }
}

// A file whose checksum is right may still be nonsense: reading it ends in a program or in a ValueError.
TEST(Saved, NonsenseWithAValidChecksumIsHandled) {  // 04 SER-9
  const std::string bytes = serialize(*sample());
  constexpr size_t kHeader = 32;
  const auto patch = [](std::string b) {
    uint64_t h = 1469598103934665603ull;
    for (size_t i = kHeader; i < b.size(); ++i) h = (h ^ static_cast<unsigned char>(b[i])) * 1099511628211ull;
    for (size_t i = 0; i < 8; ++i) b[24 + i] = static_cast<char>(h >> (8 * i));
    return b;
  };
  ASSERT_EQ(patch(bytes), bytes);
  uint64_t state = 12345;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + round % 3; ++k) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const size_t at = kHeader + (state >> 33) % (bytes.size() - kHeader);
      damaged[at] = static_cast<char>(state >> 20);
    }
    try {
      const ModulePtr m = deserialize_module(patch(damaged));
      verify(*m);
    } catch (const Failure& f) {
      EXPECT_EQ(f.diagnostic().cls, ErrorClass::kValueError);
    }
  }
}

TEST(Equal, VariablesMatchByPositionAndDifferencesHaveAPath) {  // 04 SER-7, SER-8
  const ModulePtr a = sample();
  const ModulePtr b = clone(*a);
  for (const auto& v : b->functions[0]->vars) v->name += "_renamed";
  EXPECT_TRUE(structural_equal(*a, *b));
  EXPECT_EQ(structural_hash(*a), structural_hash(*b));
  b->functions[0]->body[0]->for_kind = ForKind::kParallel;
  std::string path;
  EXPECT_FALSE(structural_equal(*a, *b, &path));
  EXPECT_NE(path.find("kernel.body[0]"), std::string::npos) << path;
}

TEST(Print, IsDeterministicAndNamesVariablesApart) {  // 04 SER-2
  const ModulePtr m = sample();
  Function& f = *m->functions[0];
  // Two variables of one name.
  const VarPtr other = f.add_var("t", scalar_type(DType::kInt32), VarKind::kLocal, {});
  auto s = std::make_shared<Stmt>();
  s->kind = StmtKind::kAssign;
  s->targets = {other};
  s->value = int_const(7, DType::kInt32);
  f.body.push_back(s);
  const std::string text = print(*m);
  EXPECT_EQ(text, print(*clone(*m)));
  EXPECT_EQ(text.rfind("# pypto.program: Sample\nimport pypto.language as pl\n", 0), 0u);
  EXPECT_NE(text.find("t_1 = pl.const(7, pl.INT32)"), std::string::npos) << text;
  EXPECT_NE(text.find("for i in pl.range(2):"), std::string::npos) << text;
  PrintOptions options;
  options.prefix = "lang";
  const std::string other_prefix = print(*m, options);
  EXPECT_NE(other_prefix.find("import pypto.language as lang\n"), std::string::npos);
  EXPECT_EQ(other_prefix.find("pl."), std::string::npos) << other_prefix;
}

TEST(Verify, ReportsABrokenInvariant) {
  const ModulePtr m = sample();
  EXPECT_TRUE(verify(*m).empty());
  auto s = std::make_shared<Stmt>();
  s->kind = StmtKind::kBreak;
  m->functions[0]->body.push_back(s);
  const auto found = verify(*m);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cls, ErrorClass::kInternalError);
}

}  // namespace
}  // namespace pypto::ir
