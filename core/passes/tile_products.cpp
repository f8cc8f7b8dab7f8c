// SPDX-License-Identifier: Apache-2.0
#include "core/passes/tile_products.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/passes/build.h"
#include "core/passes/l0_tile.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::Block;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::MemorySpace;
using ir::OpId;
using ir::StmtKind;
using ir::StmtPtr;
using ir::VarPtr;

/// A product and the statement that takes its result away.
struct Product {
  ExprPtr matmul;
  StmtPtr consumer;  ///< `y = pl.store(c, offsets, t)` or `w = pl.move(c, Mat)`
  ExprPtr consumer_op;
};

class ProductTiler {
 public:
  ProductTiler(Function& f, ir::Arch arch, bool double_buffer)
      : f_(f), arch_(arch), double_buffer_(double_buffer) {
    walk_stmts(f.body, [&](const StmtPtr& s) {
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && is_op(s->value, OpId::k_move))
        moves_.push_back(s);
      own_exprs(*s, [&](const ExprPtr& e) {
        walk_expr(e, [&](const ExprPtr& x) {
          if (x->kind == ExprKind::kVar) uses_.push_back(x->var.get());
        });
      });
    });
  }

  Block run(const Block& block) {
    Block out;
    for (size_t i = 0; i < block.size(); ++i) {
      const StmtPtr& s = block[i];
      s->body = run(s->body);
      s->else_body = run(s->else_body);
      size_t taken = 0;
      const auto p = find(block, i, &taken);
      if (p && tile(*p, out)) {
        i += taken - 1;
        continue;
      }
      out.push_back(s);
    }
    return out;
  }

 private:
  bool used_once(const VarPtr& v) const { return std::count(uses_.begin(), uses_.end(), v.get()) == 1; }

  /// A product at statement `i` whose result is stored or moved to Mat by the same statement or the next.
  std::optional<Product> find(const Block& block, size_t i, size_t* taken) const {
    const auto consumer = [](const StmtPtr& s) -> ExprPtr {
      if ((s->kind != StmtKind::kAssign && s->kind != StmtKind::kEval) || s->targets.size() > 1)
        return nullptr;
      if (is_op(s->value, OpId::k_store) && s->value->args[1] && s->value->args[1]->args.size() == 2 &&
          (s->value->args.size() < 4 || !s->value->args[3]) && s->value->args[2]->kind == ExprKind::kVar) {
        return s->value;
      }
      if (is_op(s->value, OpId::k_move) && s->kind == StmtKind::kAssign &&
          s->value->attrs.get_int(AttrKey::k_target_memory) == static_cast<int64_t>(MemorySpace::kMat)) {
        return s->value;
      }
      return nullptr;
    };
    if (const ExprPtr op = consumer(block[i]); op && is_op(op->args[0], OpId::k_matmul)) {
      *taken = 1;
      return Product{op->args[0], block[i], op};
    }
    if (block[i]->kind != StmtKind::kAssign || block[i]->targets.size() != 1 ||
        !is_op(block[i]->value, OpId::k_matmul))
      return std::nullopt;
    const VarPtr& v = block[i]->targets[0];
    if (i + 1 >= block.size() || !used_once(v)) return std::nullopt;
    const ExprPtr op = consumer(block[i + 1]);
    if (!op || op->args[0]->kind != ExprKind::kVar || op->args[0]->var != v) return std::nullopt;
    *taken = 2;
    return Product{block[i]->value, block[i + 1], op};
  }

  /// The tile in Mat that an operand was moved from, or the operand itself when it is there.
  ExprPtr source(const ExprPtr& e) const {
    if (is_op(e, OpId::k_move)) return source(e->args[0]);
    if (e->kind != ExprKind::kVar || !e->type->is_tile()) return nullptr;
    const MemorySpace space = e->type->space;
    if (space == MemorySpace::kMat || space == MemorySpace::kUnset) return e;
    for (const auto& m : moves_) {
      if (m->targets[0] == e->var) return source(m->value->args[0]);
    }
    return nullptr;
  }

  bool tile(const Product& p, Block& out) {
    const ir::Type& c = *p.matmul->type;
    if (!c.is_tile() || c.rank() != 2 || !c.static_shape()) return false;
    a_ = source(p.matmul->args[0]);
    b_ = source(p.matmul->args[1]);
    if (!a_ || !b_ || a_->type->rank() != 2 || b_->type->rank() != 2 || !a_->type->static_shape() ||
        !b_->type->static_shape() || !a_->type->valid.empty() || !b_->type->valid.empty()) {
      return false;
    }
    rows_ = c.shape[0].value;
    cols_ = c.shape[1].value;
    depth_ = a_->type->shape[1].value;
    if (b_->type->shape[0].value != depth_ || a_->type->shape[0].value != rows_ ||
        b_->type->shape[1].value != cols_)
      return false;
    L0TileConfig config = l0_config(arch_, c.dtype == DType::kInt32);
    config.M = rows_;
    config.N = cols_;
    config.K = depth_;
    config.bytes_a = dtype_bytes(a_->type->dtype);
    config.bytes_b = dtype_bytes(b_->type->dtype);
    config.allow_double_buffer_c = double_buffer_;
    if (depth_ % config.align_k != 0) return false;  // 04 TIL-10
    choice_ = choose_l0_tile(config);
    if (choice_.m >= rows_ && choice_.n >= cols_ && choice_.k >= depth_) return false;
    CodeBuilder b(f_, arch_, ir::kPlaceKernel, p.matmul->span);
    begin(p, b);
    loops(b);
    finish(p, b);
    for (auto& s : b.code) out.push_back(std::move(s));
    return true;
  }

  // ---- what happens to a piece
  void begin(const Product& p, CodeBuilder& b) {
    consumer_ = p.consumer_op;
    if (is_op(consumer_, OpId::k_move)) {
      const ir::Type& t = *consumer_->type;
      gathered_ = p.consumer->targets[0];
      b.set(gathered_, b.op(OpId::k_create_tile, {b.list({b.index(rows_), b.index(cols_)}), b.dtype(t.dtype),
                                                  b.index(static_cast<int64_t>(MemorySpace::kMat))}));
    }
  }

  void take(CodeBuilder& b, const ExprPtr& piece, const ExprPtr& i, const ExprPtr& j) {
    if (is_op(consumer_, OpId::k_store)) {
      auto store = std::make_shared<ir::Expr>(*consumer_);
      store->args[0] = piece;
      store->args[1] = b.list({b.add(consumer_->args[1]->args[0], i), b.add(consumer_->args[1]->args[1], j)});
      b.eval(store);
      return;
    }
    const ExprPtr moved = b.op(OpId::k_move, {piece, b.index(static_cast<int64_t>(MemorySpace::kMat))});
    b.set(gathered_, b.op(OpId::k_assemble, {CodeBuilder::ref(gathered_), moved, b.list({i, j})}));
  }

  static void finish(const Product& p, CodeBuilder& b) {
    if (!is_op(p.consumer_op, OpId::k_store) || p.consumer->kind != StmtKind::kAssign) return;
    const ExprPtr& target = p.consumer_op->args[2];
    if (target->var != p.consumer->targets[0]) b.set(p.consumer->targets[0], target);
  }

  // ---- the loops
  ExprPtr part(CodeBuilder& b, const ExprPtr& t, const ExprPtr& i, const ExprPtr& j, int64_t rows,
               int64_t cols, MemorySpace space) {
    return b.op(OpId::k_extract,
                {t, i, j, b.list({b.index(rows), b.index(cols)}), b.index(static_cast<int64_t>(space))},
                ir::kFormTile);
  }

  /// One piece of the result; `held` is the operand that the outer loop keeps.
  void piece(CodeBuilder& b, const ExprPtr& i, const ExprPtr& j, int64_t m, int64_t n, const ExprPtr& held,
             bool holds_a) {
    const int64_t k = choice_.k;
    if (k >= depth_) {
      const ExprPtr left = held && holds_a ? held : part(b, a_, i, b.index(0), m, depth_, MemorySpace::kLeft);
      const ExprPtr right =
          held && !holds_a ? held : part(b, b_, b.index(0), j, depth_, n, MemorySpace::kRight);
      const VarPtr c = b.let("piece", b.op(OpId::k_matmul, {left, right}));
      take(b, CodeBuilder::ref(c), i, j);
      return;
    }
    const VarPtr c =
        b.let("piece", b.op(OpId::k_matmul, {part(b, a_, i, b.index(0), m, k, MemorySpace::kLeft),
                                             part(b, b_, b.index(0), j, k, n, MemorySpace::kRight)}));
    const auto add = [&](const ExprPtr& at, int64_t depth) {
      b.set(c,
            b.op(OpId::k_matmul_acc, {CodeBuilder::ref(c), part(b, a_, i, at, m, depth, MemorySpace::kLeft),
                                      part(b, b_, at, j, depth, n, MemorySpace::kRight)}));
    };
    const int64_t full = depth_ / k;
    if (full == 2) add(b.index(k), k);
    if (full > 2) {
      b.loop("k", b.index(1), b.index(full), [&](const ExprPtr& q) { add(b.mul(q, b.index(k)), k); });
    }
    if (depth_ % k != 0) add(b.index(full * k), depth_ % k);
    take(b, CodeBuilder::ref(c), i, j);
  }

  void loops(CodeBuilder& b) {
    const bool full_depth = choice_.k >= depth_;
    const bool rows_outer =
        choice_.stationarity == Stationarity::kA ||
        (choice_.stationarity == Stationarity::kOutput && (!full_depth || choice_.os_holds_a));
    const int64_t outer_extent = rows_outer ? rows_ : cols_, outer_step = rows_outer ? choice_.m : choice_.n;
    const int64_t inner_extent = rows_outer ? cols_ : rows_, inner_step = rows_outer ? choice_.n : choice_.m;
    const auto row = [&](const ExprPtr& o, int64_t size, bool straight) {
      ExprPtr held;
      if (full_depth) {
        held = CodeBuilder::ref(
            b.let("held", rows_outer ? part(b, a_, o, b.index(0), size, depth_, MemorySpace::kLeft)
                                     : part(b, b_, b.index(0), o, depth_, size, MemorySpace::kRight)));
      }
      const auto one = [&](const ExprPtr& in, int64_t width) {
        if (rows_outer) {
          piece(b, o, in, size, width, held, true);
        } else {
          piece(b, in, o, width, size, held, false);
        }
      };
      const int64_t full = inner_extent / inner_step;
      if (full > 1 && !straight) {
        std::vector<std::pair<std::string, std::string>> attrs;
        if (choice_.double_buffer_c) attrs.emplace_back("pipeline_double_buffer_c", "True");
        b.loop(
            "inner", b.index(0), b.index(full),
            [&](const ExprPtr& q) { one(b.mul(q, b.index(inner_step)), inner_step); }, attrs);
      } else {
        for (int64_t q = 0; q < full; ++q) one(b.index(q * inner_step), inner_step);
      }
      if (inner_extent % inner_step != 0) one(b.index(full * inner_step), inner_extent % inner_step);
    };
    const int64_t full = outer_extent / outer_step;
    if (full > 1) {
      b.loop("outer", b.index(0), b.index(full),
             [&](const ExprPtr& q) { row(b.mul(q, b.index(outer_step)), outer_step, false); });
    } else if (full == 1) {
      row(b.index(0), outer_step, false);
    }
    if (outer_extent % outer_step != 0) row(b.index(full * outer_step), outer_extent % outer_step, full > 0);
  }

  Function& f_;
  ir::Arch arch_;
  bool double_buffer_;
  std::vector<StmtPtr> moves_;
  std::vector<const ir::Var*> uses_;
  ExprPtr a_, b_, consumer_;
  VarPtr gathered_;
  int64_t rows_ = 0, cols_ = 0, depth_ = 0;
  L0TileResult choice_;
};

}  // namespace

void tile_products(ir::Module& module, const PassOptions& options) {
  const bool twice = options.planner != MemoryPlanner::kPypto || options.double_buffer_c;
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || !f->is_kernel() || !f->external_source.empty()) continue;
    f->body = ProductTiler(*f, module.arch, twice).run(f->body);
  }
}

}  // namespace pypto::passes
