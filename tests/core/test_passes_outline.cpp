// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/ir/print.h"
#include "core/passes/build.h"
#include "core/passes/passes.h"

namespace pypto::passes {
namespace {

using ir::ExprPtr;
using ir::Function;
using ir::OpId;
using ir::StmtPtr;
using ir::VarPtr;

/// An orchestration function under construction.
struct Orchestration {
  ir::ModulePtr module = std::make_shared<ir::Module>();
  ir::FunctionPtr f = std::make_shared<Function>();

  Orchestration() {
    module->name = "Program";
    f->name = "main";
    f->type = ir::FunctionType::kOrchestration;
    module->functions.push_back(f);
  }

  VarPtr param(const std::string& name, ir::TypePtr type, ir::ParamDirection d) {
    auto t = std::make_shared<ir::Type>(*type);
    if (t->is_tensor()) {
      t->storage = std::make_shared<ir::Storage>();
      t->storage->name = name;
      t->storage->param = static_cast<int>(f->params.size());
    }
    VarPtr v = f->add_var(name, t, ir::VarKind::kParam, {});
    f->params.push_back(v);
    f->directions.push_back(d);
    return v;
  }

  /// A `pl.at` region with the given body.
  StmtPtr region(const std::string& hint, const std::function<void(CodeBuilder&)>& body) {
    CodeBuilder b(*f, module->arch, ir::kPlaceKernel, {});
    body(b);
    auto s = std::make_shared<ir::Stmt>();
    s->kind = ir::StmtKind::kScope;
    s->scope = std::make_shared<ir::ScopeInfo>();
    s->scope->name_hint = hint;
    s->body = std::move(b.code);
    f->body.push_back(s);
    return s;
  }
};

ir::TypePtr matrix(int64_t rows, int64_t cols) {
  return ir::tensor_type({ir::Dim(rows), ir::Dim(cols)}, DType::kFp32);
}

ExprPtr pair(CodeBuilder& b, int64_t x, int64_t y) { return b.list({b.index(x), b.index(y)}); }

TEST(Outline, RegionBecomesAKernelWithItsInputsInOrderOfUse) {  // 01 L-111
  Orchestration o;
  const VarPtr x = o.param("x", matrix(32, 64), ir::ParamDirection::kIn);
  const VarPtr y = o.param("y", matrix(32, 64), ir::ParamDirection::kOut);
  const VarPtr n = o.param("n", ir::scalar_type(DType::kIndex), ir::ParamDirection::kIn);
  o.region("double", [&](CodeBuilder& b) {
    const ExprPtr at = b.list({CodeBuilder::ref(n), b.index(0)});
    const VarPtr t = b.let("t", b.op(OpId::k_load, {CodeBuilder::ref(x), at, pair(b, 16, 64)}));
    b.set(y, b.op(OpId::k_store,
                  {b.op(OpId::k_add, {CodeBuilder::ref(t), CodeBuilder::ref(t)}), at, CodeBuilder::ref(y)}));
  });
  outline(*o.module);
  ASSERT_EQ(o.module->functions.size(), 2u);
  const Function& k = *o.module->functions[0];
  EXPECT_EQ(k.name, "double");
  ASSERT_EQ(k.params.size(), 3u);
  EXPECT_EQ(k.params[0]->name, "x");
  EXPECT_EQ(k.params[1]->name, "y");
  EXPECT_EQ(k.params[2]->name, "n");
  EXPECT_EQ(k.effective_directions[0], ir::ParamDirection::kIn);
  EXPECT_EQ(k.effective_directions[1], ir::ParamDirection::kOut);
  const std::string text = ir::print(*o.module);
  EXPECT_NE(text.find("self.double(x, y, n)"), std::string::npos) << text;
}

TEST(Outline, ValueReadLaterBecomesAnOutputCreatedBeforeTheCall) {  // 01 L-111, L-186
  Orchestration o;
  const VarPtr x = o.param("x", matrix(16, 32), ir::ParamDirection::kIn);
  const VarPtr y = o.param("y", matrix(16, 32), ir::ParamDirection::kOut);
  VarPtr t;
  o.region("first", [&](CodeBuilder& b) {
    t = b.let("t", b.op(OpId::k_mul, {CodeBuilder::ref(x), CodeBuilder::ref(x)}));
  });
  o.region("second", [&](CodeBuilder& b) {
    b.eval(b.op(
        OpId::k_assemble,
        {CodeBuilder::ref(y), b.op(OpId::k_add, {CodeBuilder::ref(t), CodeBuilder::ref(x)}), pair(b, 0, 0)}));
  });
  outline(*o.module);
  const std::string text = ir::print(*o.module);
  EXPECT_NE(text.find("t: pl.Tensor[[16, 32], pl.FP32] = pl.create_tensor([16, 32], pl.FP32"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("self.first(x, t)"), std::string::npos) << text;
  EXPECT_NE(text.find("self.second(y, t, x)"), std::string::npos) << text;
  const Function& first = *o.module->functions[0];
  EXPECT_EQ(first.effective_directions.back(), ir::ParamDirection::kOut);
}

TEST(Outline, ScalarReadLaterIsComputedByTheControlPlaneToo) {  // 01 L-111
  Orchestration o;
  const VarPtr n = o.param("n", ir::scalar_type(DType::kIndex), ir::ParamDirection::kIn);
  const VarPtr x = o.param("x", matrix(16, 32), ir::ParamDirection::kInOut);
  VarPtr half;
  o.region("first", [&](CodeBuilder& b) { half = b.let("half", b.div(CodeBuilder::ref(n), b.index(2))); });
  o.region("second", [&](CodeBuilder& b) {
    const ExprPtr at = b.list({CodeBuilder::ref(half), b.index(0)});
    b.eval(b.op(OpId::k_store, {b.op(OpId::k_load, {CodeBuilder::ref(x), pair(b, 0, 0), pair(b, 8, 32)}), at,
                                CodeBuilder::ref(x)}));
  });
  outline(*o.module);
  const std::string text = ir::print(*o.module);
  EXPECT_NE(text.find("half = n // 2\n        self.second(x, half)"), std::string::npos) << text;
}

TEST(Outline, ScalarReadFromDeviceDataCannotLeave) {  // 01 L-111
  Orchestration o;
  const VarPtr x = o.param("x", matrix(16, 32), ir::ParamDirection::kInOut);
  VarPtr s;
  o.region("first",
           [&](CodeBuilder& b) { s = b.let("s", b.op(OpId::k_read, {CodeBuilder::ref(x), pair(b, 3, 4)})); });
  o.region("second", [&](CodeBuilder& b) {
    b.eval(b.op(OpId::k_write, {CodeBuilder::ref(x), pair(b, 1, 1), CodeBuilder::ref(s)}));
  });
  try {
    outline(*o.module);
    FAIL() << "a scalar read in a region left it";
  } catch (const Failure& f) {
    EXPECT_EQ(f.diagnostic().cls, ErrorClass::kParserTypeError);
    EXPECT_NE(f.diagnostic().message.find("'s'"), std::string::npos);
    EXPECT_NE(f.diagnostic().message.find("'first'"), std::string::npos);
  }
}

TEST(Outline, NamesAreMadeUnique) {  // 04 SER-3
  Orchestration o;
  const VarPtr x = o.param("x", matrix(16, 32), ir::ParamDirection::kInOut);
  for (const char* hint : {"step", "step", ""}) {
    o.region(hint, [&](CodeBuilder& b) {
      b.eval(b.op(OpId::k_store, {b.op(OpId::k_load, {CodeBuilder::ref(x), pair(b, 0, 0), pair(b, 8, 32)}),
                                  pair(b, 8, 0), CodeBuilder::ref(x)}));
    });
  }
  outline(*o.module);
  ASSERT_EQ(o.module->functions.size(), 4u);
  EXPECT_EQ(o.module->functions[0]->name, "step");
  EXPECT_EQ(o.module->functions[1]->name, "step_1");
  EXPECT_EQ(o.module->functions[2]->name, "main_incore_0");
}

}  // namespace
}  // namespace pypto::passes
