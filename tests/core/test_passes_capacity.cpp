// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "core/passes/build.h"
#include "core/passes/passes.h"
#include "core/passes/storage_plan.h"
#include "core/passes/tile_bytes.h"

namespace pypto::passes {
namespace {

using ir::Dim;
using ir::ExprPtr;
using ir::MemorySpace;
using ir::OpId;
using ir::VarPtr;

int64_t bytes(int64_t rows, int64_t cols, DType d, MemorySpace s, ir::Arch arch = ir::Arch::kA2A3) {
  return tile_bytes(*ir::tile_type({Dim(rows), Dim(cols)}, d, s), s, arch);
}

TEST(TileBytes, PadsAsTheMemoryStores) {  // 01 L-146, 05 H-25, H-26
  EXPECT_EQ(bytes(8, 64, DType::kFp32, MemorySpace::kVec), 8 * 256);
  EXPECT_EQ(bytes(4, 3, DType::kFp32, MemorySpace::kVec), 4 * 32);  // rows of 32 bytes
  EXPECT_EQ(bytes(10, 1, DType::kInt32, MemorySpace::kVec), 64);    // one column, contiguous
  EXPECT_EQ(bytes(1, 1, DType::kInt32, MemorySpace::kVec), 32);
  EXPECT_EQ(bytes(17, 20, DType::kFp16, MemorySpace::kMat), 32 * 64);    // boxes of 16 rows x 32 bytes
  EXPECT_EQ(bytes(20, 17, DType::kFp16, MemorySpace::kRight), 64 * 32);  // the other way round
  EXPECT_EQ(bytes(17, 20, DType::kFp32, MemorySpace::kAcc), 32 * 32 * 4);
  EXPECT_EQ(bytes(17, 16, DType::kInt32, MemorySpace::kAcc), 32 * 16 * 4);
  EXPECT_EQ(bytes(33, 16, DType::kInt32, MemorySpace::kAcc), 64 * 16 * 4);  // 32 rows on a2a3
  EXPECT_EQ(bytes(33, 16, DType::kInt32, MemorySpace::kAcc, ir::Arch::kA5), 48 * 16 * 4);
}

TEST(StoragePlan, SharesPlacesThatAreNeverAliveTogether) {  // 01 L-147
  std::vector<BufferSpan> b = {{1000, 0, 3, 0}, {2000, 4, 6, 0}, {500, 2, 5, 0}};
  EXPECT_EQ(place_buffers(b, 0, 128, 1 << 20), 2048 + 500);
  for (size_t i = 0; i < b.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool together = b[i].from <= b[j].to && b[j].from <= b[i].to;
      const bool apart = b[i].offset + b[i].bytes <= b[j].offset || b[j].offset + b[j].bytes <= b[i].offset;
      EXPECT_TRUE(!together || apart);
    }
  }
}

TEST(StoragePlan, FindsTheTightPlacementThatGreedyOrdersMiss) {
  // A chain of overlapping lifetimes whose sizes only fit when every hole is used.
  std::vector<BufferSpan> b;
  for (int i = 0; i < 12; ++i) b.push_back({(i % 3 + 1) * 1024, i, i + 2, 0});
  const int64_t used = place_buffers(b, 0, 128, 6 * 1024);
  EXPECT_EQ(used, 6 * 1024);  // at any position one buffer of each size is alive
}

struct Kernel {
  ir::ModulePtr module = std::make_shared<ir::Module>();
  ir::FunctionPtr f = std::make_shared<ir::Function>();
  VarPtr x, y;

  Kernel(int64_t rows, int64_t cols, const std::function<void(CodeBuilder&, Kernel&)>& body) {
    module->name = "Program";
    f->name = "kernel";
    f->type = ir::FunctionType::kInCore;
    module->functions.push_back(f);
    for (const char* name : {"x", "y"}) {
      auto t = std::make_shared<ir::Type>(*ir::tensor_type({Dim(rows), Dim(cols)}, DType::kFp32));
      t->storage = std::make_shared<ir::Storage>();
      t->storage->param = static_cast<int>(f->params.size());
      f->params.push_back(f->add_var(name, t, ir::VarKind::kParam, {}));
      f->directions.push_back(ir::ParamDirection::kInOut);
    }
    x = f->params[0];
    y = f->params[1];
    CodeBuilder b(*f, module->arch, ir::kPlaceKernel, {});
    body(b, *this);
    f->body = std::move(b.code);
    place(*module);
  }
  ExprPtr load(CodeBuilder& b, int64_t rows, int64_t cols) {
    return b.op(OpId::k_load, {CodeBuilder::ref(x), b.list({b.index(0), b.index(0)}),
                               b.list({b.index(rows), b.index(cols)})});
  }
  void store(CodeBuilder& b, const ExprPtr& t) {
    b.eval(b.op(OpId::k_store, {t, b.list({b.index(0), b.index(0)}), CodeBuilder::ref(y)}));
  }
};

TEST(Capacity, OversizedTileIsRefusedWithTheNumbers) {  // 01 L-147
  Kernel k(256, 256, [](CodeBuilder& b, Kernel& k) {
    const VarPtr t = b.let("big", k.load(b, 256, 256));
    k.store(b, CodeBuilder::ref(t));
  });
  try {
    check_capacity(*k.module, {});
    FAIL() << "256 KiB fit into Vec";
  } catch (const Failure& f) {
    EXPECT_EQ(f.diagnostic().cls, ErrorClass::kValueError);
    EXPECT_NE(
        f.diagnostic().message.find("Vec buffer usage (262144 bytes) exceeds platform limit (188416 bytes)"),
        std::string::npos)
        << f.diagnostic().message;
    EXPECT_NE(f.diagnostic().message.find("'big' [256, 256] fp32"), std::string::npos)
        << f.diagnostic().message;
  }
}

TEST(Capacity, ChainOfElementWiseOperationsSharesOnePlace) {  // 01 L-147, 02 O-216
  Kernel k(128, 256, [](CodeBuilder& b, Kernel& k) {
    const VarPtr a = b.let("a", k.load(b, 128, 256));  // 128 KiB: two of them do not fit
    const VarPtr c = b.let("c", b.op(OpId::k_exp, {CodeBuilder::ref(a)}));
    const VarPtr d = b.let("d", b.op(OpId::k_neg, {CodeBuilder::ref(c)}));
    k.store(b, CodeBuilder::ref(d));
  });
  const auto report = check_capacity(*k.module, {});
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].used, 131072);
  EXPECT_EQ(report[0].limit, 188416);
}

TEST(Capacity, AccumulatorCarriedThroughALoopIsOnePlace) {  // 01 L-147
  Kernel k(64, 256, [](CodeBuilder& b, Kernel& k) {
    const VarPtr acc = b.let("acc", k.load(b, 64, 256));
    b.loop("i", b.index(0), b.index(8), [&](const ExprPtr&) {
      const VarPtr t = b.let("t", k.load(b, 64, 256));
      b.set(acc, b.op(OpId::k_add, {CodeBuilder::ref(acc), CodeBuilder::ref(t)}));
    });
    k.store(b, CodeBuilder::ref(acc));
  });
  const auto report = check_capacity(*k.module, {});
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].used, 2 * 65536);
}

TEST(Capacity, TensorLevelChainIsCutIntoPieces) {  // 01 L-147, exception 1
  Kernel k(1024, 1024, [](CodeBuilder& b, Kernel& k) {
    const VarPtr t = b.let("t", b.op(OpId::k_exp, {CodeBuilder::ref(k.x)}));  // 4 MiB as one tile
    const VarPtr m = b.let("m", b.op(OpId::k_row_max, {CodeBuilder::ref(t)}));
    const VarPtr u = b.let("u", b.op(OpId::k_row_expand_sub, {CodeBuilder::ref(t), CodeBuilder::ref(m)}));
    b.eval(b.op(OpId::k_assemble,
                {CodeBuilder::ref(k.y), CodeBuilder::ref(u), b.list({b.index(0), b.index(0)})}));
  });
  EXPECT_NO_THROW(check_capacity(*k.module, {}));
}

TEST(Capacity, ChainWithReductionsAlongBothAxesIsNotCut) {  // 01 L-147, exception 1
  Kernel k(1024, 1024, [](CodeBuilder& b, Kernel& k) {
    const VarPtr t = b.let("t", b.op(OpId::k_exp, {CodeBuilder::ref(k.x)}));
    const VarPtr m = b.let("m", b.op(OpId::k_row_max, {CodeBuilder::ref(t)}));
    const VarPtr c = b.let("c", b.op(OpId::k_col_max, {CodeBuilder::ref(t)}));
    const VarPtr u = b.let("u", b.op(OpId::k_row_expand_sub, {CodeBuilder::ref(t), CodeBuilder::ref(m)}));
    const VarPtr v = b.let("v", b.op(OpId::k_col_expand_sub, {CodeBuilder::ref(u), CodeBuilder::ref(c)}));
    b.eval(b.op(OpId::k_assemble,
                {CodeBuilder::ref(k.y), CodeBuilder::ref(v), b.list({b.index(0), b.index(0)})}));
  });
  EXPECT_THROW(check_capacity(*k.module, {}), Failure);
}

}  // namespace
}  // namespace pypto::passes
