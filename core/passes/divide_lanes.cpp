// SPDX-License-Identifier: Apache-2.0
#include "core/passes/divide_lanes.h"

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/passes/build.h"
#include "core/passes/flatten.h"
#include "core/passes/lane_extents.h"
#include "core/passes/lane_memory.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::Block;
using ir::CostClass;
using ir::Dim;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::MemorySpace;
using ir::OpId;
using ir::SplitMode;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::TypePtr;
using ir::Var;
using ir::VarPtr;

/// Thrown inside: the vector work stays whole.
struct NotDivided {};

bool is_tile(const ExprPtr& e) { return e && e->type && e->type->is_tile(); }
bool on_cube(const Type& t) { return tile_side(t) == TileSide::kCube; }
bool on_cube(const ExprPtr& e) { return on_cube(e->kind == ExprKind::kVar ? *e->var->type : *e->type); }
bool on_vector(const ExprPtr& e) { return is_tile(e) && !on_cube(e); }

/// Cells of the result come from cells at the same place of the operands, and nothing else.
bool cell_by_cell(OpId op) {
  switch (op) {
    case OpId::k_tile_full:
    case OpId::k_copy_tile:
    case OpId::k_snapshot:
    case OpId::k_move:
      return true;
    case OpId::k_full:
    case OpId::k_arange:
    case OpId::k_tile_arange:
    case OpId::k_tri:
    case OpId::k_random:
    case OpId::k_tile_random:
    case OpId::k_expand_clone:
    case OpId::k_fillpad_expand:
      return false;
    default:
      break;
  }
  const CostClass cost = ir::op_row(op).cost;
  return cost == CostClass::kElementwise || cost == CostClass::kExpand;
}

/// The result holds data in the whole box, whatever the operands do.
bool fills_box(OpId op) {
  switch (op) {
    case OpId::k_tile_full:
    case OpId::k_fillpad:
    case OpId::k_fillpad_inplace:
    case OpId::k_expands:
    case OpId::k_row_expand:
    case OpId::k_col_expand:
      return true;
    default:
      return false;
  }
}

class DivideLanes {
 public:
  DivideLanes(Function& f, ir::Arch arch, SplitMode mode)
      : f_(f), arch_(arch), mode_(mode), axis_(split_axis(mode)), stride_(common_stride()) {}

  Block run() {
    CodeBuilder b(f_, arch_, ir::kPlaceKernel, f_.span);
    lane_ = b.let("subblock_idx", b.op(OpId::k_get_subblock_idx, {}, ir::kFormTile));
    Block out = block(f_.body, {}, {});
    out.insert(out.begin(), b.code.begin(), b.code.end());
    return out;
  }

 private:
  using Copies = std::unordered_map<const Var*, VarPtr>;

  ExprPtr lane() const { return CodeBuilder::ref(lane_); }

  // ---------------------------------------------------------------- where to cut
  /// When all divided values have the same valid cells, the cut lies in their middle (01 L-129); 0: in the
  /// middle of each box.
  int64_t common_stride() const {
    int64_t extent = -1, valid = -1;
    bool same = true;
    const auto look = [&](const ExprPtr& e) {
      const Type& t = *e->type;
      if (t.rank() != 2 || !t.shape[axis_].is_const() || t.shape[axis_].value == 1) return;
      const Dim& v = t.valid.empty() ? t.shape[axis_] : t.valid[axis_];
      same = same && v.is_const() && (extent < 0 || (extent == t.shape[axis_].value && valid == v.value));
      extent = t.shape[axis_].value;
      valid = v.value;
    };
    walk_exprs(f_.body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kOp) return;
      const bool vector = on_vector(e) || e->op == OpId::k_store;
      if (on_vector(e) && e->op != OpId::k_create_tile) look(e);
      for (const auto& a : e->args) {
        if (!is_tile(a)) continue;
        if (on_cube(a) && vector && is_tile(e)) look(a);
        // Joined halves are those of the box.
        if (!on_cube(a) && is_tile(e) && !vector) same = false;
      }
    });
    if (!same || extent < 0) return 0;
    const int64_t at = lane_stride(extent, valid);
    return at == lane_half(extent) ? 0 : at;
  }

  int64_t stride(int64_t extent) const { return stride_ > 0 ? stride_ : lane_half(extent); }

  // ---------------------------------------------------------------- types
  int64_t extent(const Type& t) const {
    if (t.rank() != 2 || !t.shape[axis_].is_const()) throw NotDivided();
    return t.shape[axis_].value;
  }

  /// Each lane holds a part of it; a value of one cell along the axis is whole on both.
  bool shared_out(const Type& t) const { return extent(t) > 1; }

  TypePtr part(const Type& t) const {
    if (t.memref) throw NotDivided();
    auto p = std::make_shared<Type>(t);
    p->storage = nullptr;
    if (p->tile_view && !p->tile_view->valid_shape.empty()) {
      auto view = std::make_shared<ir::TileView>(*p->tile_view);
      view->valid_shape.clear();
      p->tile_view = view;
    }
    if (!shared_out(t)) return p;
    const int64_t n = extent(t);
    p->shape[axis_] = Dim(lane_half(n));
    const Dim whole = t.valid.empty() ? t.shape[axis_] : t.valid[axis_];
    const bool full = whole.is_const() && whole.value == n;
    if (t.valid.empty() && n % 2 == 0) return p;
    if (p->valid.empty()) p->valid = p->shape;
    p->valid[axis_] = full && n % 2 == 0 ? p->shape[axis_] : lane_valid(whole, stride(n), lane());
    return p;
  }

  VarPtr part_var(const VarPtr& v) {
    VarPtr& made = parts_[v.get()];
    if (!made) made = f_.add_var(v->name, part(*v->type), v->kind, v->span);
    return made;
  }

  // ---------------------------------------------------------------- what crosses
  static bool defines(const Stmt& s, const Var* v) {
    bool found = false;
    own_defs(s, [&](const VarPtr& d) { found = found || d.get() == v; });
    return found;
  }

  ExprPtr crossing(OpId op, const ExprPtr& x, TypePtr type, int64_t at) const {
    auto e = std::make_shared<Expr>();
    e->kind = ExprKind::kOp;
    e->op = op;
    e->args = {x};
    e->attrs.set(AttrKey::k_split, static_cast<int64_t>(mode_));
    if (at > 0) e->attrs.set(AttrKey::k_lane_stride, at);
    e->type = std::move(type);
    e->span = x->span;
    return e;
  }

  VarPtr handed_over(const std::string& name, const ExprPtr& e, Block& out) {
    auto s = std::make_shared<Stmt>();
    s->kind = StmtKind::kAssign;
    s->span = e->span;
    s->targets = {f_.add_var(name, e->type, ir::VarKind::kLocal, e->span)};
    s->value = e;
    out.push_back(s);
    return s->targets[0];
  }

  /// A lane's part of a value of the cube core.
  ExprPtr shard(const ExprPtr& x, Block& out) {
    VarPtr& copy = shards_[x->var.get()];
    if (!copy) {
      if (!shared_out(*x->type)) throw NotDivided();
      const Dim whole = x->type->valid.empty() ? x->type->shape[axis_] : x->type->valid[axis_];
      if (!whole.is_const() && !whole.expr) throw NotDivided();
      auto type = std::make_shared<Type>(*part(*x->type));
      type->space = MemorySpace::kVec;
      copy = handed_over(x->var->name, crossing(OpId::k_aiv_shard, x, type, stride_), out);
    }
    return CodeBuilder::ref(copy);
  }

  /// Both lanes' parts, joined for the cube core.
  ExprPtr gather(const ExprPtr& x, Block& out) {
    VarPtr& copy = joins_[x->var.get()];
    if (!copy) {
      if (!shared_out(*x->type) || extent(*x->type) % 2 != 0) throw NotDivided();
      auto type = std::make_shared<Type>(*x->type);
      type->space = MemorySpace::kMat;
      type->storage = nullptr;
      const ExprPtr lanes = CodeBuilder::ref(part_var(x->var));
      copy = handed_over(x->var->name, crossing(OpId::k_aic_gather, lanes, type, 0), out);
    }
    return CodeBuilder::ref(copy);
  }

  void forget(const Stmt& s) {
    own_defs(s, [&](const VarPtr& v) {
      shards_.erase(v.get());
      joins_.erase(v.get());
    });
  }

  void forget_inside(const Stmt& s) {
    forget(s);
    walk_stmts(s.body, [&](const ir::StmtPtr& x) { forget(*x); });
    walk_stmts(s.else_body, [&](const ir::StmtPtr& x) { forget(*x); });
  }

  // ---------------------------------------------------------------- operands
  /// An operand as a statement of the vector core, or of the cube core, has it.
  ExprPtr operand(const ExprPtr& a, bool vector, Block& out) {
    if (!a || !is_tile(a)) {
      if (a) {
        walk_expr(a, [](const ExprPtr& x) {
          if (is_tile(x) || is_op(x, OpId::k_get_subblock_idx)) throw NotDivided();
        });
      }
      return a;
    }
    if (a->kind != ExprKind::kVar) throw NotDivided();
    if (!vector) return on_cube(a) ? a : gather(a, out);
    return on_cube(a) ? shard(a, out) : CodeBuilder::ref(part_var(a->var));
  }

  // ---------------------------------------------------------------- operations of the vector core
  ExprPtr index(int64_t v) const { return ir::int_const(v, DType::kIndex, {}, true); }

  /// `offset` of the whole value, in a lane's part.
  ExprPtr shifted(const ExprPtr& offset, int64_t n) const {
    const ExprPtr by = ir::infer_scalar(OpId::k_scalar_mul, lane(), index(stride(n)), offset->span);
    const auto at = ir::const_int(offset);
    return at && *at == 0 ? by : ir::infer_scalar(OpId::k_scalar_add, offset, by, offset->span);
  }

  ExprPtr replaced(const ExprPtr& list, const ExprPtr& item) const {
    if (!list || list->kind != ExprKind::kTuple || list->args.size() != 2) throw NotDivided();
    std::vector<ExprPtr> items = list->args;
    items[axis_] = item;
    return ir::tuple_expr(std::move(items), list->span);
  }

  static const ExprPtr& item(const ExprPtr& list, size_t i) {
    if (!list || list->kind != ExprKind::kTuple || list->args.size() != 2) throw NotDivided();
    return list->args[i];
  }

  static ExprPtr arg(const Expr& e, size_t i) { return i < e.args.size() ? e.args[i] : nullptr; }

  void load(const Expr& from, Expr& to) const {
    // tensor, offsets, shapes, valid_shape, target_memory, clamp
    if (from.attrs.get_int(AttrKey::k_clamp) || arg(from, 5)) throw NotDivided();
    if (from.args[0]->type->rank() != 2 || !shared_out(*from.type)) return;
    const int64_t n = extent(*from.type);
    to.args[1] = replaced(from.args[1], shifted(item(from.args[1], axis_), n));
    to.args[2] = replaced(from.args[2], index(lane_half(n)));
    const Dim valid = part(*from.type)->valid.empty() ? Dim(lane_half(n)) : part(*from.type)->valid[axis_];
    if (!arg(from, 3) && valid.is_const()) return;
    const ExprPtr given = arg(from, 3) ? item(from.args[3], axis_) : index(n);
    const auto known = ir::const_int(given);
    const Dim mine = lane_valid(known ? Dim(*known) : Dim(given), stride(n), lane());
    const ExprPtr across = arg(from, 3) ? item(from.args[3], 1 - axis_) : item(from.args[2], 1 - axis_);
    if (to.args.size() < 4) to.args.resize(4);
    to.args[3] = ir::tuple_expr(axis_ == 0 ? std::vector{mine.expr, across} : std::vector{across, mine.expr},
                                from.span);
  }

  void store(const Expr& from, Expr& to) const {
    // tile, offsets, output_tensor, shapes
    if (arg(from, 3) || !shared_out(*from.args[0]->type) || from.args[2]->type->rank() != 2)
      throw NotDivided();
    to.args[1] = replaced(from.args[1], shifted(item(from.args[1], axis_), extent(*from.args[0]->type)));
  }

  void reduce(const Expr& from) const {
    const std::string name = ir::op_row(from.op).name;
    const bool over_columns = name.rfind("row_", 0) == 0;
    if (!over_columns && name.rfind("col_", 0) != 0) throw NotDivided();
    if (over_columns != (axis_ == 0)) throw NotDivided();  // it would join the lanes
  }

  /// Operands lie beside the result, cell by cell, or are spread over it.
  void check_extents(const Expr& e) const {
    const int64_t n = extent(*e.type);
    for (const auto& a : e.args) {
      if (!is_tile(a)) continue;
      const int64_t m = extent(*a->type);
      if (m != n && m != 1) throw NotDivided();
    }
  }

  ExprPtr operation(const ExprPtr& e, Block& out) {
    auto made = std::make_shared<Expr>(*e);
    for (auto& a : made->args) {
      a = operand(a, true, out);
    }
    if (e->kind == ExprKind::kVar) return CodeBuilder::ref(part_var(e->var));
    if (e->kind != ExprKind::kOp) throw NotDivided();
    if (e->op == OpId::k_store) {
      store(*e, *made);
      return made;
    }
    if (!is_tile(e)) throw NotDivided();
    switch (e->op) {
      case OpId::k_load:
        load(*e, *made);
        break;
      case OpId::k_create_tile:
        if (shared_out(*e->type)) made->args[0] = replaced(e->args[0], index(lane_half(extent(*e->type))));
        break;
      case OpId::k_set_validshape: {
        const ExprPtr& given = e->args[1 + axis_];
        const auto known = ir::const_int(given);
        const int64_t n = extent(*e->type);
        if (known && *known == n && n % 2 == 0) {
          made->args[1 + axis_] = index(lane_half(n));
        } else if (n > 1) {
          made->args[1 + axis_] = lane_valid(known ? Dim(*known) : Dim(given), stride(n), lane()).expr;
        }
        break;
      }
      default:
        if (ir::op_row(e->op).cost == CostClass::kReduce) {
          reduce(*e);
        } else if (!cell_by_cell(e->op)) {
          throw NotDivided();
        }
        if (fills_box(e->op) && shared_out(*e->type) && extent(*e->type) % 2 != 0) throw NotDivided();
        if (e->op == OpId::k_tile_full && shared_out(*e->type))
          made->args[0] = replaced(e->args[0], index(lane_half(extent(*e->type))));
        check_extents(*e);
    }
    made->type = part(*e->type);
    return made;
  }

  // ---------------------------------------------------------------- statements
  Block block(const Block& in, Copies shards, Copies joins) {
    std::swap(shards, shards_);
    std::swap(joins, joins_);
    Block out;
    for (const auto& s : in) statement(*s, out);
    shards_ = std::move(shards);
    joins_ = std::move(joins);
    return out;
  }

  /// Code of both cores, or of one without tiles.
  static void check_scalar(const ExprPtr& e) {
    walk_expr(e, [](const ExprPtr& x) {
      if (is_tile(x) || x->kind == ExprKind::kCall || is_op(x, OpId::k_get_subblock_idx)) throw NotDivided();
      if (x->kind != ExprKind::kOp) return;
      const ir::OpRow& row = ir::op_row(x->op);
      for (const char* c = row.effects; *c; ++c) {
        if (*c != '-' && *c != 'r') throw NotDivided();  // it would happen once on each lane
      }
      if (row.cost == CostClass::kComm || row.cost == CostClass::kSync) throw NotDivided();
    });
  }

  void statement(const Stmt& s, Block& out) {
    auto copy = std::make_shared<Stmt>(s);
    switch (s.kind) {
      case StmtKind::kAssign:
      case StmtKind::kEval:
        assign(s, *copy, out);
        break;
      case StmtKind::kYield:
        for (size_t k = 0; k < s.values.size(); ++k)
          carried(copy->values[k], k < s.targets.size() ? &copy->targets[k] : nullptr);
        break;
      case StmtKind::kFor:
      case StmtKind::kWhile:
      case StmtKind::kIf:
        for (auto& c : copy->carries) {
          if (!is_tile(c.init) || on_cube(*c.var->type)) continue;
          if (on_cube(c.init) || c.init->kind != ExprKind::kVar) throw NotDivided();
          c.init = CodeBuilder::ref(part_var(c.init->var));
          c.var = part_var(c.var);
          if (c.result) c.result = part_var(c.result);
        }
        if (s.kind != StmtKind::kIf) forget_inside(s);
        copy->body = block(s.body, shards_, joins_);
        copy->else_body = block(s.else_body, shards_, joins_);
        forget_inside(s);
        break;
      case StmtKind::kComment:
      case StmtKind::kBreak:
      case StmtKind::kContinue:
        break;
      default:
        throw NotDivided();
    }
    out.push_back(copy);
    forget(s);
  }

  void carried(ExprPtr& value, VarPtr* target) {
    if (!is_tile(value) || on_cube(value)) return;
    if (value->kind != ExprKind::kVar) throw NotDivided();
    value = CodeBuilder::ref(part_var(value->var));
    if (target && *target) *target = part_var(*target);
  }

  void assign(const Stmt& s, Stmt& copy, Block& out) {
    const ExprPtr& e = s.value;
    if (is_op(e, OpId::k_aiv_shard) || is_op(e, OpId::k_aic_gather)) throw NotDivided();
    bool tiles = is_tile(e);
    const ExprPtr* of = &e;
    for (const auto& a : e->args) {
      if (!is_tile(a)) continue;
      if (!tiles) of = &a;
      tiles = true;
    }
    if (!tiles) {
      check_scalar(e);
      return;
    }
    if (s.kind == StmtKind::kAssign && s.targets.size() != 1) throw NotDivided();
    if (on_cube(is_tile(e) && !s.targets.empty() ? ir::var_ref(s.targets[0]) : *of)) {
      auto made = std::make_shared<Expr>(*e);
      for (auto& a : made->args) a = operand(a, false, out);
      copy.value = made;
      return;
    }
    copy.value = operation(e, out);
    if (is_tile(e) && !s.targets.empty()) {
      copy.targets = {part_var(s.targets[0])};
      copy.annotation = nullptr;
    }
  }

  Function& f_;
  ir::Arch arch_;
  SplitMode mode_;
  size_t axis_;
  int64_t stride_;  ///< of every divided value; 0: its half
  VarPtr lane_;
  std::unordered_map<const Var*, VarPtr> parts_;
  Copies shards_, joins_;
};

}  // namespace

std::optional<Block> divide_lanes(Function& f, ir::Arch arch, SplitMode mode) {
  if (!lanes_stay_apart(f, mode)) return std::nullopt;
  try {
    return DivideLanes(f, arch, mode).run();
  } catch (const NotDivided&) {
    return std::nullopt;
  }
}

}  // namespace pypto::passes
