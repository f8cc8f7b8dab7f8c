// SPDX-License-Identifier: Apache-2.0
#include "core/passes/tile_form.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/passes/build.h"
#include "core/passes/core_kinds.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::Block;
using ir::CostClass;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::MemorySpace;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtPtr;
using ir::Type;
using ir::TypePtr;
using ir::Var;
using ir::VarPtr;

/// Thrown inside: the kernel keeps its tensor-level form.
struct NoTileForm {};

bool on_chip(const ExprPtr& e) {
  return e && e->type && e->type->is_tensor() && e->type->place == ir::TensorPlace::kOnChip;
}
bool global(const ExprPtr& e) {
  return e && e->type && e->type->is_tensor() && e->type->place == ir::TensorPlace::kGlobal;
}

TypePtr as_tile(const Type& t, MemorySpace space = MemorySpace::kUnset) {
  if (t.rank() != 2 || t.static_elements() < 0) throw NoTileForm();
  auto tile = std::make_shared<Type>(*ir::tile_type(t.shape, t.dtype, space));
  tile->valid = t.valid;
  tile->pad = t.pad;
  return tile;
}

/// Operations that mean the same on tiles, operand by operand (02 sections 10 - 17).
bool same_on_tiles(OpId op) {
  switch (op) {
    case OpId::k_add:
    case OpId::k_sub:
    case OpId::k_mul:
    case OpId::k_div:
    case OpId::k_maximum:
    case OpId::k_minimum:
    case OpId::k_neg:
    case OpId::k_abs:
    case OpId::k_recip:
    case OpId::k_exp:
    case OpId::k_log:
    case OpId::k_sqrt:
    case OpId::k_rsqrt:
    case OpId::k_cast:
    case OpId::k_fillpad:
    case OpId::k_set_validshape:
    case OpId::k_reshape:
    case OpId::k_aiv_shard:
    case OpId::k_aic_gather:
      return true;
    default:
      return ir::op_row(op).cost == CostClass::kExpand && op != OpId::k_expand_clone;
  }
}

bool row_reduction(OpId op) {
  return op == OpId::k_row_max || op == OpId::k_row_min || op == OpId::k_row_sum || op == OpId::k_row_prod;
}
bool column_reduction(OpId op) {
  return op == OpId::k_col_max || op == OpId::k_col_min || op == OpId::k_col_prod;
}

class TileForm {
 public:
  TileForm(Function& f, ir::Arch arch) : f_(f), arch_(arch) {}

  /// The new body.
  Block run() {
    scan(f_.body);
    scan_memory(f_.body);
    return block(f_.body);
  }

 private:
  // ---- addresses that are only read as values
  void scan(const Block& body) {
    walk_stmts(body, [&](const StmtPtr& s) {
      const bool address = s->kind == StmtKind::kAssign && s->targets.size() == 1 && global(s->value) &&
                           is_op(s->value, OpId::k_slice);
      if (address) (addresses_.count(s->targets[0].get()) ? twice_ : addresses_).insert(s->targets[0].get());
      own_defs(*s, [&](const VarPtr& v) {
        if (!address) defined_.insert(v.get());
      });
      own_exprs(*s, [&](const ExprPtr& e) {
        walk_expr(e, [&](const ExprPtr& x) {
          if (x->kind != ExprKind::kOp) return;
          accumulators_ = accumulators_ || x->op == OpId::k_matmul_acc;
          for (size_t i = 0; i < x->args.size(); ++i) {
            if (x->args[i] && x->args[i]->kind == ExprKind::kVar && !reads_value(*x, i))
              places_.insert(x->args[i]->var.get());
          }
        });
        if (e->kind == ExprKind::kVar) places_.insert(e->var.get());
      });
    });
  }

  static bool reads_value(const Expr& e, size_t i) {
    if (is_product(e.op) || row_reduction(e.op) || column_reduction(e.op)) return true;
    if (e.op == OpId::k_assemble) return i == 1;
    return same_on_tiles(e.op) && e.op != OpId::k_reshape;
  }

  bool loaded_at_definition(const Var* v) const {
    return addresses_.count(v) && !twice_.count(v) && !defined_.count(v) && !places_.count(v);
  }

  /// An address keeps, as a value, what it named when it was made (01 L-87): a later read is the same only
  /// where nobody writes in between. Tensors named directly are read at each use.
  bool unchanged(const Var* v) const {
    const auto it = made_from_.find(v);
    return it == made_from_.end() || !written_.count(it->second);
  }

  const Var* root(const ExprPtr& e) const {
    if (!e) return nullptr;
    if (e->kind == ExprKind::kVar) {
      const auto it = made_from_.find(e->var.get());
      if (it != made_from_.end()) return it->second;
      const auto same = same_.find(e->var.get());
      return same == same_.end() ? e->var.get() : same->second;
    }
    if (e->kind != ExprKind::kOp) return nullptr;
    const ir::OpRow& row = ir::op_row(e->op);
    if (row.alias == ir::AliasClass::kView) return root(e->args[0]);
    if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0)
      return root(e->args[static_cast<size_t>(row.inplace_param)]);
    return nullptr;
  }

  void scan_memory(const Block& body) {
    walk_stmts(body, [&](const StmtPtr& s) {
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && global(s->value)) {
        const Var* r = root(s->value);
        const bool view =
            s->value->kind == ExprKind::kOp && ir::op_row(s->value->op).alias == ir::AliasClass::kView;
        if (r) (view ? made_from_ : same_)[s->targets[0].get()] = r;
      }
      for (const auto& c : s->carries) {
        const Var* r = global(c.init) ? root(c.init) : nullptr;
        if (!r) continue;
        same_[c.var.get()] = r;
        if (c.result) same_[c.result.get()] = r;
      }
    });
    walk_exprs(body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kOp) return;
      const ir::OpRow& row = ir::op_row(e->op);
      for (size_t i = 0; row.effects[i] && i < e->args.size(); ++i) {
        if (row.effects[i] == '-' || row.effects[i] == 'r' || !global(e->args[i])) continue;
        if (const Var* r = root(e->args[i])) written_.insert(r);
      }
    });
  }

  // ---- values
  ExprPtr index(int64_t v) const { return ir::int_const(v, DType::kIndex, span_, true); }

  /// An operation on tiles, typed as if a person had written it.
  ExprPtr op(OpId id, std::vector<ExprPtr> args, MemorySpace space = MemorySpace::kUnset) const {
    CodeBuilder b(f_, arch_, ir::kPlaceKernel, span_);
    ExprPtr e = b.op(id, std::move(args), ir::kFormTile);
    if (space == MemorySpace::kUnset || e->type->space == space) return e;
    auto copy = std::make_shared<Expr>(*e);
    auto type = std::make_shared<Type>(*e->type);
    type->space = space;
    copy->type = type;
    return copy;
  }

  ExprPtr list(std::vector<ExprPtr> items) const { return ir::tuple_expr(std::move(items), span_); }

  /// Reads `tensor` (global memory) at `offsets` into a tile of type `t`.
  ExprPtr load(const ExprPtr& tensor, std::vector<ExprPtr> offsets, const Type& t) const {
    if (tensor->type->rank() != 2 || tensor->type->layout != ir::TensorLayout::kND) throw NoTileForm();
    const TypePtr type = as_tile(t);
    std::vector<ExprPtr> shape;
    for (const auto& d : type->shape) shape.push_back(index(d.value));
    ExprPtr valid;
    if (!type->valid.empty()) {
      std::vector<ExprPtr> extents;
      for (const auto& d : type->valid) {
        if (!d.is_const() && !d.expr) throw NoTileForm();
        extents.push_back(d.is_const() ? index(d.value) : d.expr);
      }
      valid = list(std::move(extents));
    }
    return op(OpId::k_load, {tensor, list(std::move(offsets)), list(std::move(shape)), valid});
  }

  ExprPtr value(const ExprPtr& e) {
    if (!e) return nullptr;
    if (e->type && e->type->is_tile()) return e;
    if (!e->type || !e->type->is_tensor()) return e;
    if (e->type->is_window()) throw NoTileForm();
    if (e->kind == ExprKind::kVar) {
      if (const auto it = tiles_.find(e->var.get()); it != tiles_.end())
        return ir::var_ref(it->second, e->span);
      if (!global(e) || !unchanged(e->var.get())) throw NoTileForm();
      return load(e, {index(0), index(0)}, *e->type);
    }
    if (e->kind != ExprKind::kOp) throw NoTileForm();
    if (global(e)) {
      if (e->op == OpId::k_slice) return sliced(*e);
      if (e->op == OpId::k_reshape) return retyped(*e, {value(e->args[0]), e->args[1]}, as_tile(*e->type));
      throw NoTileForm();
    }
    return operation(*e);
  }

  /// No attribute asks for anything.
  static bool plain(const Expr& e) {
    return std::all_of(e.attrs.entries().begin(), e.attrs.entries().end(), [](const auto& a) {
      const auto* i = std::get_if<int64_t>(&a.second);
      return i && *i == 0;
    });
  }

  ExprPtr sliced(const Expr& e) {
    // tensor, shape, offset, valid_shape, drop_dims, pad_value, clamp
    for (size_t i = 4; i < e.args.size(); ++i) {
      if (e.args[i]) throw NoTileForm();
    }
    if (e.args[0]->kind != ExprKind::kVar || !plain(e)) throw NoTileForm();
    if (tiles_.count(e.args[0]->var.get())) throw NoTileForm();
    if (!global(e.args[0]) || e.args[2]->kind != ExprKind::kTuple) throw NoTileForm();
    if (!unchanged(e.args[0]->var.get())) throw NoTileForm();
    return load(e.args[0], e.args[2]->args, *e.type);
  }

  static ExprPtr retyped(const Expr& e, std::vector<ExprPtr> args, TypePtr type, OpId id) {
    auto copy = std::make_shared<Expr>(e);
    copy->op = id;
    // Attributes that the form on tiles does not have ask for nothing, or there is no such form.
    ir::AttrMap attrs;
    for (const auto& [key, v] : e.attrs.entries()) {
      const auto& params = ir::op_params(ir::op_row(id), ir::kFormTile);
      const bool known = std::any_of(params.begin(), params.end(),
                                     [&](const auto& p) { return p.name == ir::attr_name(key); });
      const bool listed = ir::op_param_index(ir::op_row(id), ir::attr_name(key)) >= 0;
      if (known || !listed) {
        attrs.set(key, v);
      } else if (const auto* i = std::get_if<int64_t>(&v); !i || *i != 0) {
        throw NoTileForm();
      }
    }
    copy->attrs = attrs;
    copy->args = std::move(args);
    copy->type = std::move(type);
    return copy;
  }
  static ExprPtr retyped(const Expr& e, std::vector<ExprPtr> args, TypePtr type) {
    return retyped(e, std::move(args), std::move(type), e.op);
  }

  ExprPtr operation(const Expr& e) {
    if (e.op == OpId::k_full)
      return retyped(e, e.args, as_tile(*e.type, MemorySpace::kVec), OpId::k_tile_full);
    if (e.op == OpId::k_matmul) return product(e);
    if (e.op == OpId::k_matmul_acc) return accumulated(e);
    std::vector<ExprPtr> args;
    for (const auto& a : e.args) args.push_back(value(a));
    if (row_reduction(e.op)) {
      if (args.size() < 2) throw NoTileForm();
      args[1] = work_tile(*args[0]->type);
      return retyped(e, std::move(args), as_tile(*e.type));
    }
    if (!same_on_tiles(e.op) && !column_reduction(e.op)) throw NoTileForm();
    MemorySpace space = MemorySpace::kUnset;
    if (e.op == OpId::k_aiv_shard) space = MemorySpace::kVec;
    if (e.op == OpId::k_aic_gather) space = MemorySpace::kMat;
    if (e.op == OpId::k_rsqrt) {
      if (e.attrs.get_int(AttrKey::k_high_precision)) throw NoTileForm();
      return op(OpId::k_tile_rsqrt, {args[0]});
    }
    const bool arithmetic = !column_reduction(e.op) && e.op != OpId::k_cast && e.op != OpId::k_fillpad &&
                            e.op != OpId::k_set_validshape && e.op != OpId::k_reshape &&
                            space == MemorySpace::kUnset;
    if (arithmetic) check_tiles(e, args);
    return retyped(e, std::move(args), as_tile(*e.type, space));
  }

  /// Tensors convert and broadcast where tiles do not (02 O-902, O-1001, O-1101): those kernels stay as they
  /// are.
  void check_tiles(const Expr& e, const std::vector<ExprPtr>& args) const {
    if (op(e.op, args)->type->dtype != e.type->dtype) throw NoTileForm();
  }

  /// The tile that a row reduction works in, made before the statement.
  ExprPtr work_tile(const Type& t) {
    CodeBuilder b(f_, arch_, ir::kPlaceKernel, span_);
    const ExprPtr e =
        op(OpId::k_create_tile, {list({index(t.shape[0].value), index(t.shape[1].value)}), b.dtype(t.dtype)});
    const VarPtr v = f_.add_var("work", e->type, ir::VarKind::kLocal, span_);
    auto s = std::make_shared<Stmt>();
    s->kind = StmtKind::kAssign;
    s->span = span_;
    s->targets = {v};
    s->value = e;
    out_.back()->push_back(s);
    return ir::var_ref(v, span_);
  }

  /// Tile products give their accumulator; a transposed operand is a view.
  ExprPtr product(const Expr& e) {
    if (e.attrs.get_int(AttrKey::k_c_matrix_nz)) throw NoTileForm();
    if (e.type->acc_dtype != DType::kNone) throw NoTileForm();
    return op(OpId::k_matmul,
              {operand(e.args[0], e.attrs.get_int(AttrKey::k_a_trans) != 0),
               operand(e.args[1], e.attrs.get_int(AttrKey::k_b_trans) != 0)},
              MemorySpace::kAcc);
  }

  ExprPtr accumulated(const Expr& e) {
    const ExprPtr acc = value(e.args[0]);
    if ((e.args.size() > 5 && e.args[5]) || !acc->type->is_tile()) throw NoTileForm();
    return op(OpId::k_matmul_acc,
              {acc, operand(e.args[1], e.attrs.get_int(AttrKey::k_a_trans) != 0),
               operand(e.args[2], e.attrs.get_int(AttrKey::k_b_trans) != 0)},
              MemorySpace::kAcc);
  }

  ExprPtr operand(const ExprPtr& e, bool transposed) {
    ExprPtr v = value(e);
    if (!transposed) return v;
    if (!v->type->valid.empty()) throw NoTileForm();
    return op(OpId::k_transpose_view, {v});
  }

  // ---- statements
  VarPtr tile_var(const VarPtr& v, const Type& t) {
    auto it = tiles_.find(v.get());
    if (it == tiles_.end())
      it = tiles_.emplace(v.get(), f_.add_var(v->name, as_tile(t), ir::VarKind::kLocal, v->span)).first;
    return it->second;
  }

  /// An expression that is not a tensor-level value itself.
  ExprPtr rest(const ExprPtr& e) {
    if (!e) return nullptr;
    if (on_chip(e)) throw NoTileForm();
    if (e->kind == ExprKind::kOp && e->op == OpId::k_assemble && global(e->args[0])) {
      if (e->args[0]->type->rank() < 2 || e->attrs.get_int(AttrKey::k_atomic) != 0) throw NoTileForm();
      const ExprPtr source = value(e->args[1]);
      if (source->type->dtype != e->args[0]->type->dtype || source->type->rank() != 2) throw NoTileForm();
      return op(OpId::k_store, {source, e->args[2], e->args[0]});
    }
    bool same = true;
    std::vector<ExprPtr> args;
    for (const auto& a : e->args) {
      args.push_back(on_chip(a) && e->op == OpId::k_read && e->kind == ExprKind::kOp ? value(a) : rest(a));
      same = same && args.back() == a;
    }
    if (same) return e;
    auto copy = std::make_shared<Expr>(*e);
    copy->args = std::move(args);
    return copy;
  }

  Block block(const Block& in) {
    Block out;
    out_.push_back(&out);
    for (const auto& s : in) statement(*s, out);
    out_.pop_back();
    return out;
  }

  void statement(const Stmt& s, Block& out) {
    if (s.span.known()) span_ = s.span;
    auto copy = std::make_shared<Stmt>(s);
    for (auto& c : copy->carries) {
      if (!on_chip(c.init)) continue;
      const TypePtr t = c.init->type;
      c.init = value(c.init);
      c.var = tile_var(c.var, *t);
      if (c.result) c.result = tile_var(c.result, *t);
    }
    if (s.kind == StmtKind::kAssign) {
      assign(s, *copy);
    } else if (s.kind == StmtKind::kYield) {
      for (size_t i = 0; i < s.values.size(); ++i) {
        if (!on_chip(s.values[i])) {
          copy->values[i] = rest(s.values[i]);
          continue;
        }
        copy->values[i] = value(s.values[i]);
        if (i < s.targets.size() && s.targets[i])
          copy->targets[i] = tile_var(s.targets[i], *s.values[i]->type);
      }
    } else {
      copy->value = rest(s.value);
      for (auto& v : copy->values) v = rest(v);
    }
    copy->start = rest(s.start);
    copy->stop = rest(s.stop);
    copy->step = rest(s.step);
    copy->body = block(s.body);
    copy->else_body = block(s.else_body);
    out.push_back(copy);
  }

  void assign(const Stmt& s, Stmt& copy) {
    if (s.targets.size() != 1) {
      for (const auto& t : s.targets) {
        if (t && t->type->is_tensor() && t->type->place == ir::TensorPlace::kOnChip) throw NoTileForm();
      }
      copy.value = rest(s.value);
      return;
    }
    const bool address = global(s.value) && loaded_at_definition(s.targets[0].get());
    if (!address && !on_chip(s.value)) {
      copy.value = rest(s.value);
      return;
    }
    if (s.value->kind == ExprKind::kVar && accumulators_) throw NoTileForm();
    copy.value = value(s.value);
    copy.annotation = nullptr;
    copy.targets = {tile_var(s.targets[0], *s.value->type)};
  }

  Function& f_;
  ir::Arch arch_;
  Span span_;
  std::unordered_map<const Var*, const Var*> made_from_,
      same_;  ///< addresses and other names, to their storage
  std::unordered_set<const Var*> written_;
  std::vector<Block*> out_;
  bool accumulators_ = false;
  std::unordered_map<const Var*, VarPtr> tiles_;
  std::unordered_set<const Var*> addresses_, twice_, defined_, places_;
};

bool has_tensor_values(const Function& f) {
  bool found = false;
  walk_exprs(f.body, [&](const ExprPtr& e) {
    found = found || on_chip(e);
    if (e->kind != ExprKind::kOp) return;
    if (e->op == OpId::k_assemble && global(e->args[0])) found = true;  // a store, of a tile as well
  });
  return found;
}

}  // namespace

bool to_tile_form(Function& f, ir::Arch arch) {
  if (!has_tensor_values(f)) return false;
  const size_t vars = f.vars.size();
  try {
    f.body = TileForm(f, arch).run();
    return true;
  } catch (const NoTileForm&) {
    f.vars.resize(vars);
  } catch (const Failure&) {  // an operation that tiles do not have so
    f.vars.resize(vars);
  }
  return false;
}

}  // namespace pypto::passes
