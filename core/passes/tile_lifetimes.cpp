// SPDX-License-Identifier: Apache-2.0
#include "core/passes/tile_lifetimes.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/poll.h"
#include "core/passes/core_kinds.h"
#include "core/passes/liveness.h"
#include "core/passes/tile_bytes.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AliasClass;
using ir::AttrKey;
using ir::Block;
using ir::CostClass;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::MemorySpace;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

using Sites = std::set<int>;

bool on_cube_side(MemorySpace s) {
  return s != MemorySpace::kVec && s != MemorySpace::kUnset && s != MemorySpace::kDDR;
}

/// Operations that may write over an operand while they read it.
bool works_in_place(OpId op) {
  const CostClass c = ir::op_row(op).cost;
  return c == CostClass::kElementwise || c == CostClass::kExpand;
}

/// Row-wise, column-wise or free: along which axis a tensor-level operation can be cut (01 L-147, exception
/// 1).
struct Cut {
  bool rows = false, columns = false;
};
Cut cut_of(const Expr& e) {
  const auto& row = ir::op_row(e.op);
  const std::string name = row.name;
  switch (row.cost) {
    case CostClass::kElementwise:
      return {e.op != OpId::k_random && e.op != OpId::k_tri,
              e.op != OpId::k_random && e.op != OpId::k_tri && e.op != OpId::k_arange};
    case CostClass::kExpand:
      return {true, true};
    case CostClass::kReduce:
      return name.compare(0, 4, "row_") == 0 ? Cut{true, false} : Cut{false, true};
    default:
      return {};
  }
}

class Lifetimes {
 public:
  Lifetimes(const ir::Function& f, ir::Arch arch, bool reuse)
      : f_(f), arch_(arch), reuse_(reuse), live_(f.body) {
    mixed_ = f.uses_cube && f.uses_vector;
    if (const auto* a = f.attr("split")) split_ = static_cast<int>(a->int_value);
    if (const auto* a = f.attr("slot_num"); a && a->int_value > 0) slots_ = a->int_value;
    number(f.body);
    count_uses(f.body);
    run(f.body);
  }

  KernelStorage take() {
    KernelStorage out;
    std::map<int, TileStorage> merged;
    for (size_t i = 0; i < sites_.size(); ++i) {
      const int root = find(static_cast<int>(i));
      auto [it, added] = merged.try_emplace(root, sites_[i]);
      if (added) continue;
      TileStorage& t = it->second;
      const TileStorage& o = sites_[i];
      t.from = std::min(t.from, o.from);
      t.to = std::max(t.to, o.to);
      if (o.bytes > t.bytes) {
        t.bytes = o.bytes;
        t.type = o.type;
      }
      t.piece_bytes = std::max(t.piece_bytes, o.piece_bytes);
      t.tileable = t.tileable && o.tileable;
    }
    mark_tileable(merged);
    for (auto& [root, t] : merged) {
      if (t.bytes > 0) out.tiles.push_back(std::move(t));
    }
    std::sort(out.tiles.begin(), out.tiles.end(), [](const TileStorage& a, const TileStorage& b) {
      return std::make_pair(a.from, a.name) < std::make_pair(b.from, b.name);
    });
    for (const auto& [space, bytes] : ring_) out.reserved[space] += slots_ * bytes;
    for (const auto& [space, bytes] : reserved_) out.reserved[space] += bytes;
    return out;
  }

 private:
  using Env = std::unordered_map<const Var*, Sites>;
  struct Loop {
    const Stmt* stmt;
    int from, to;
    Env breaks, continues;
  };

  // ---------------------------------------------------------------- positions
  void number(const ExprPtr& e) {
    walk_expr(e, [&](const ExprPtr& x) { at_[x.get()] = next_++; });
  }
  void number(const Block& block) {
    for (const auto& s : block) {
      own_exprs(*s, [&](const ExprPtr& e) { number(e); });
      const int from = next_++;
      number(s->body);
      number(s->else_body);
      range_[s.get()] = {from, next_++};
    }
  }

  // How often each variable is read, and whether only to be written to global memory.
  void count_uses(const Block& block) {
    walk_exprs(block, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kOp) return;
      if (is_product(e->op) && ir::op_row(e->op).alias == AliasClass::kInPlace && e->args[0] &&
          e->args[0]->type && e->args[0]->type->storage) {
        accumulated_.insert(e->args[0]->type->storage.get());
      }
      for (size_t i = 0; i < e->args.size(); ++i) {
        if (!e->args[i] || e->args[i]->kind != ExprKind::kVar) continue;
        const bool written =
            (e->op == OpId::k_assemble && i == 1) || (e->op == OpId::k_store && i == 0) ||
            ((e->op == OpId::k_remote_store || e->op == OpId::k_tensor_remote_store) && i == 0);
        if (!written) computed_with_.insert(e->args[i]->var.get());
      }
    });
    walk_stmts(block, [&](const ir::StmtPtr& s) {
      if (s->kind == StmtKind::kAssign && s->value->kind == ExprKind::kVar)
        computed_with_.insert(s->value->var.get());
      for (const auto& v : s->values) {
        if (v && v->kind == ExprKind::kVar && s->kind == StmtKind::kYield)
          computed_with_.insert(v->var.get());
      }
      for (const auto& c : s->carries) {
        if (c.init && c.init->kind == ExprKind::kVar) computed_with_.insert(c.init->var.get());
      }
    });
  }

  // ---------------------------------------------------------------- sites
  int find(int i) {
    while (parent_[static_cast<size_t>(i)] != i)
      i = parent_[static_cast<size_t>(i)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(i)])];
    return i;
  }
  void unite(int a, int b) {
    a = find(a);
    b = find(b);
    if (a == b || sites_[static_cast<size_t>(a)].space != sites_[static_cast<size_t>(b)].space ||
        sites_[static_cast<size_t>(a)].bytes != sites_[static_cast<size_t>(b)].bytes) {
      return;
    }
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

  int64_t halved(const Type& t, MemorySpace space) const {
    if (space != MemorySpace::kVec || !mixed_ || split_ == 0 || t.shape.empty())
      return tile_bytes(t, space, arch_);
    Type half = t;
    const size_t axis = split_ == 1 && t.shape.size() >= 2 ? t.shape.size() - 2 : t.shape.size() - 1;
    if (half.shape[axis].is_const() && half.shape[axis].value > 1)
      half.shape[axis] = ir::Dim((half.shape[axis].value + 1) / 2);
    return tile_bytes(half, space, arch_);
  }

  static int64_t piece_bytes(const Type& t, MemorySpace space, ir::Arch arch, Cut cut) {
    Type piece = t;
    if (cut.rows) {
      for (size_t i = 0; i + 1 < piece.shape.size(); ++i) piece.shape[i] = ir::Dim(1);
    } else if (cut.columns && !piece.shape.empty()) {
      const int64_t least = std::max<int64_t>(1, 32 / std::max(1, dtype_bytes(t.dtype)));
      piece.shape.back() = ir::Dim(std::min(piece.shape.back().value, least));
    }
    return tile_bytes(piece, space, arch);
  }

  /// The site of a fresh value; `role` tells several sites of one expression apart.
  int site(const Expr& e, int role, const Type& t, MemorySpace space, int from, const std::string& name,
           bool tensor_level) {
    const auto key = std::make_pair(&e, role);
    if (const auto it = index_.find(key); it != index_.end()) return it->second;
    TileStorage s;
    s.name = name;
    s.span = e.span;
    s.type = std::make_shared<Type>(t);
    s.space = space;
    s.bytes = std::max<int64_t>(0, halved(t, space));
    s.from = s.to = from;
    s.tensor_level = tensor_level;
    const int id = static_cast<int>(sites_.size());
    sites_.push_back(std::move(s));
    parent_.push_back(id);
    loops_of_.emplace_back();
    for (const auto& l : loops_) loops_of_.back().push_back(l.stmt);
    index_[key] = id;
    return id;
  }

  void use(const Sites& sites, int position) {
    for (const int i : sites) {
      TileStorage& s = sites_[static_cast<size_t>(i)];
      const auto& own = loops_of_[static_cast<size_t>(i)];
      // Used in a loop that it was not made in: it lives as long as the loop.
      const Loop* outer = nullptr;
      const Loop* common = nullptr;
      for (const auto& l : loops_) {
        if (std::find(own.begin(), own.end(), l.stmt) == own.end()) {
          if (!outer) outer = &l;
        } else {
          common = &l;
        }
      }
      s.to = std::max(s.to, outer ? outer->to * 2 : position);
      if (position < s.from) {
        if (common) {
          s.from = std::min(s.from, common->from * 2);
          s.to = std::max(s.to, common->to * 2);
        } else {
          s.from = position;
        }
      }
    }
  }

  // ---------------------------------------------------------------- expressions
  static std::string label(const std::string& target, const Expr& e) {
    return target.empty() ? std::string(ir::op_row(e.op).name) : target;
  }

  /// Sites of the value of an expression. `target`: name it will get.
  Sites value(const ExprPtr& e, const std::string& target, const Stmt* stmt) {
    if (!e) return {};
    switch (e->kind) {
      case ExprKind::kVar: {
        const auto it = env_.find(e->var.get());
        return it == env_.end() ? Sites() : it->second;
      }
      case ExprKind::kTuple: {
        Sites out;
        for (const auto& a : e->args) out.merge(value(a, "", stmt));
        return out;
      }
      case ExprKind::kItem:
        return value(e->args[0], target, stmt);
      case ExprKind::kOp:
        return operation(*e, target, stmt);
      case ExprKind::kCall:
        for (const auto& a : e->args) value(a, "", stmt);
        return {};
      default:
        return {};
    }
  }

  static bool is_local(const Type& t) {
    return t.is_tile() || (t.is_tensor() && t.place == ir::TensorPlace::kOnChip);
  }

  bool global(const ExprPtr& e) const {
    if (!e || !e->type || !e->type->is_tensor() || e->type->is_window())
      return e && e->type && e->type->is_window();
    return e->type->place != ir::TensorPlace::kOnChip &&
           !(e->type->storage && e->type->storage->created && !e->type->storage->needs_global &&
             e->type->storage->param < 0);
  }

  // The memory of a value's sites, for finding crossings.
  MemorySpace side(const Sites& sites) const {
    for (const int i : sites) return sites_[static_cast<size_t>(i)].space;
    return MemorySpace::kUnset;
  }

  void cross(const Type& t, MemorySpace consumer) {
    if (!mixed_) return;
    Type moved = t;
    if (consumer == MemorySpace::kVec && t.acc_dtype != DType::kNone) moved.dtype = t.acc_dtype;
    ring_[consumer] = std::max(ring_[consumer], halved(moved, consumer));
  }

  Sites operation(const Expr& e, const std::string& target, const Stmt* stmt) {
    const auto& row = ir::op_row(e.op);
    const int k = at_.at(&e);
    const bool in_place = works_in_place(e.op);
    if (e.op == OpId::k_assemble && e.args.size() > 1 && global(e.args[0]))
      written_directly_.insert(e.args[1].get());
    if (e.op == OpId::k_store || e.op == OpId::k_remote_store || e.op == OpId::k_tensor_remote_store) {
      written_directly_.insert(e.args[0].get());
    }
    std::vector<Sites> operands(e.args.size());
    for (size_t i = 0; i < e.args.size(); ++i) operands[i] = value(e.args[i], "", stmt);
    const std::vector<int> matrix = matrix_operands(e.op);
    const bool product = is_product(e.op);
    const bool compute = product || row.cost == CostClass::kElementwise || row.cost == CostClass::kReduce ||
                         row.cost == CostClass::kExpand || row.cost == CostClass::kGather ||
                         row.cost == CostClass::kSort;
    const bool tile_result = e.type && e.type->is_tile();
    for (size_t i = 0; i < e.args.size(); ++i) {
      if (!e.args[i] || !e.args[i]->type || !e.args[i]->type->is_array_like()) continue;
      const bool is_matrix = std::find(matrix.begin(), matrix.end(), static_cast<int>(i)) != matrix.end();
      use(operands[i], 2 * k + (in_place ? 0 : 1));
      const MemorySpace from = side(operands[i]);
      if (is_matrix && from == MemorySpace::kVec) cross(*e.args[i]->type, MemorySpace::kMat);
      if (compute && !product && from == MemorySpace::kAcc) cross(*e.args[i]->type, MemorySpace::kVec);
      if (e.op == OpId::k_assemble && i == 1 && from == MemorySpace::kAcc && is_local(*e.args[0]->type) &&
          !global(e.args[0])) {
        cross(*e.args[i]->type, MemorySpace::kVec);
      }
      // Whole tensors that a tensor-level operation reads are loaded first; products stream them (02 O-1806).
      if (compute && !product && !tile_result && global(e.args[i]) && row.effects[0] != '\0' &&
          e.op != OpId::k_gather_row && e.op != OpId::k_paged_gather && e.op != OpId::k_mgather &&
          e.op != OpId::k_mscatter && e.op != OpId::k_expand_clone &&
          e.args[i]->type->static_elements() >= 0) {
        const std::string name = e.args[i]->kind == ExprKind::kVar ? e.args[i]->var->name : "operand";
        const int id =
            site(e, 10 + static_cast<int>(i), *e.args[i]->type, MemorySpace::kVec, 2 * k, name, true);
        links_.push_back({&e, {id}});
        operands[i].insert(id);
      }
    }
    if (e.op == OpId::k_reserve_buffer) {
      reserved_[f_.type == ir::FunctionType::kAIC ? MemorySpace::kMat : MemorySpace::kVec] +=
          e.attrs.get_int(AttrKey::k_size);
      return {};
    }
    if (e.op == OpId::k_put || e.op == OpId::k_get) staging(e, k);
    if (row.alias == AliasClass::kView) return operands.empty() ? Sites() : operands[0];
    if (row.alias == AliasClass::kInPlace && row.inplace_param >= 0) {
      const auto p = static_cast<size_t>(row.inplace_param);
      const bool tile_assemble = e.op == OpId::k_assemble && e.args[p]->type->is_tile();
      if (!tile_assemble) {
        if (product && global(e.args[p]) && e.args[p]->type->static_elements() >= 0) {
          // Products accumulated into an output are built in Acc (01 L-186).
          const int id = accumulator(e.args[p], k);
          links_.push_back({&e, {id}});
        }
        link(e, operands, {});
        return operands[p];
      }
    }
    if (e.op == OpId::k_copy_tile || e.op == OpId::k_snapshot) return operands[0];
    if (!e.type || !is_local(*e.type)) {
      if (e.op == OpId::k_create_tensor && e.type && e.type->storage && !e.type->storage->needs_global &&
          e.type->static_elements() >= 0 && e.type->is_tensor()) {
        return {fresh(e, target, k, in_place)};
      }
      link(e, operands, {});
      return {};
    }
    if (e.op == OpId::k_create_tensor && e.type->storage && e.type->storage->needs_global) return {};
    if (e.type->static_elements() < 0) return {};
    // Crossings arrive in the channel's slots, which are reserved as a whole.
    if (mixed_ && (e.op == OpId::k_aiv_shard || e.op == OpId::k_aic_gather)) {
      cross(*e.type, e.op == OpId::k_aiv_shard ? MemorySpace::kVec : MemorySpace::kMat);
      return {};
    }
    if (mixed_ && e.op == OpId::k_move) {
      const auto to = static_cast<MemorySpace>(e.attrs.get_int(AttrKey::k_target_memory));
      const MemorySpace from = side(operands[0]);
      if (to == MemorySpace::kVec && on_cube_side(from)) {
        cross(*e.args[0]->type, MemorySpace::kVec);
        return {};
      }
      if (on_cube_side(to) && from == MemorySpace::kVec) {
        cross(*e.args[0]->type, MemorySpace::kMat);
        if (to == MemorySpace::kMat) return {};
      }
    }
    if (e.op == OpId::k_tpop_from_aic || e.op == OpId::k_tpop_from_aiv) return {};
    // A result over an operand that dies here takes its place.
    if (reuse_ && in_place) {
      if (const Sites* over = dying_operand(e, operands, stmt)) {
        use(*over, 2 * k + 1);
        Sites result = *over;
        link(e, operands, result);
        return result;
      }
    }
    const int id = fresh(e, target, k, in_place);
    if (!reuse_ || !in_place) instances(id, e, operands, stmt);
    link(e, operands, {id});
    return {id};
  }

  int fresh(const Expr& e, const std::string& target, int k, bool in_place) {
    const Type& t = *e.type;
    MemorySpace space =
        t.is_tile() ? (t.space == MemorySpace::kUnset ? MemorySpace::kVec : t.space) : MemorySpace::kVec;
    const bool product = is_product(e.op);
    if (!t.is_tile()) {
      if (product) space = MemorySpace::kAcc;
      if (e.op == OpId::k_create_l1) space = MemorySpace::kMat;
      if (e.op == OpId::k_paged_gather)
        space = static_cast<MemorySpace>(e.attrs.get_int(AttrKey::k_space, 2));
      if (e.op == OpId::k_create_tensor && accumulates(t)) space = MemorySpace::kAcc;
    }
    const bool known = index_.count({&e, 0}) > 0;
    const int id = site(e, 0, t, space, 2 * k + (in_place ? 1 : 0), label(target, e), t.is_tensor());
    TileStorage& s = sites_[static_cast<size_t>(id)];
    if (!known && space == MemorySpace::kAcc) {
      const bool only_written = written_directly_.count(&e) > 0 || (!target.empty() && only_written_out(e));
      // A product that is only written to global memory is written as it is made (02 O-1806).
      if (!t.is_tile() && product && only_written) s.bytes = 0;
      if (s.bytes > space_limit(MemorySpace::kAcc, arch_)) {
        if (only_written) {
          s.bytes = 0;
        } else {
          s.space = MemorySpace::kMat;
          s.bytes = tile_bytes(t, MemorySpace::kMat, arch_);
        }
      }
    }
    if (!known && t.memref && !t.memref->name.empty()) bind_memref(id, *t.memref);
    return id;
  }

  // Tiles bound to one declared allocation share it (01 L-39).
  void bind_memref(int id, const ir::MemRef& m) {
    const auto slot = m.slot ? ir::const_int(m.slot) : std::optional<int64_t>(0);
    const std::string key = m.name + "#" + (slot ? std::to_string(*slot) : "?");
    const auto [it, added] = memrefs_.try_emplace(key, id);
    if (!added) unite(it->second, id);
  }

  bool only_written_out(const Expr& e) const {
    const auto it = name_of_.find(&e);
    return it != name_of_.end() && computed_with_.count(it->second) == 0;
  }

  /// A created tensor that products accumulate into.
  bool accumulates(const Type& t) const { return t.storage && accumulated_.count(t.storage.get()) > 0; }

  int accumulator(const ExprPtr& acc, int k) {
    const Var* root = acc->kind == ExprKind::kVar ? acc->var.get() : nullptr;
    const ir::Storage* storage = acc->type->storage.get();
    const auto key =
        std::make_pair(static_cast<const void*>(storage ? static_cast<const void*>(storage) : root), 0);
    auto it = accumulators_.find(key.first);
    if (it == accumulators_.end()) {
      const int id =
          site(*acc, 20, *acc->type, MemorySpace::kAcc, 2 * k, root ? root->name : "accumulator", true);
      TileStorage& s = sites_[static_cast<size_t>(id)];
      if (s.bytes > space_limit(MemorySpace::kAcc, arch_)) s.bytes = 0;  // written through
      it = accumulators_.emplace(key.first, id).first;
    }
    use({it->second}, 2 * k + 1);
    return it->second;
  }

  // Staging of put and get (03 O-58): explicit pieces count, others are chosen to fit (O-60).
  void staging(const Expr& e, int k) {
    const int64_t rows = e.attrs.get_int(AttrKey::k_chunk_rows),
                  cols = e.attrs.get_int(AttrKey::k_chunk_cols);
    if (rows <= 0 || cols <= 0) return;
    Type t = *ir::tile_type({ir::Dim(rows), ir::Dim(cols)}, e.args[0]->type->dtype, MemorySpace::kVec);
    const int copies = e.attrs.get_int(AttrKey::k_pipeline) ? 2 : 1;
    for (int i = 0; i < copies; ++i) site(e, 30 + i, t, MemorySpace::kVec, 2 * k, "staging", false);
  }

  const Sites* dying_operand(const Expr& e, const std::vector<Sites>& operands, const Stmt* stmt) {
    const int64_t bytes = halved(*e.type, MemorySpace::kVec);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].empty() || !e.args[i] || !is_local(*e.args[i]->type)) continue;
      bool fits = true;
      for (const int s : operands[i]) {
        fits = fits && sites_[static_cast<size_t>(s)].space == MemorySpace::kVec &&
               sites_[static_cast<size_t>(s)].bytes == bytes;
      }
      if (!fits) continue;
      if (held_after(operands[i], stmt)) continue;
      // Another operand of the same operation may be the same tile; that is fine, both die here.
      return &operands[i];
    }
    return nullptr;
  }

  /// Whether a variable other than the statement's target still stands for one of the sites afterwards.
  bool held_after(const Sites& sites, const Stmt* stmt) const {
    if (!stmt) return true;
    const Liveness::At after = live_.after(*stmt);
    for (const auto& [v, held] : env_) {
      const bool redefined = std::any_of(stmt->targets.begin(), stmt->targets.end(),
                                         [&](const ir::VarPtr& t) { return t.get() == v; });
      if (redefined || !after.count(v)) continue;
      for (const int s : sites) {
        if (held.count(s)) return true;
      }
    }
    return false;
  }

  /// A value of the previous round of a loop that is still needed when the next one is made needs a place of
  /// its own.
  void instances(int id, const Expr& e, const std::vector<Sites>& operands, const Stmt* stmt) {
    bool old = held_after({id}, stmt);
    for (const auto& o : operands) old = old || o.count(id);
    if (!old || loops_.empty()) return;
    const Loop& l = loops_.back();
    TileStorage& s = sites_[static_cast<size_t>(id)];
    const int second = site(e, 1, *s.type, s.space, l.from * 2, s.name, s.tensor_level);
    sites_[static_cast<size_t>(second)].to = l.to * 2;
    sites_[static_cast<size_t>(second)].bytes = s.bytes;
  }

  // ---------------------------------------------------------------- chains that can be cut
  struct Link {
    const Expr* op;
    Sites sites;
  };
  void link(const Expr& e, const std::vector<Sites>& operands, const Sites& result) {
    Link l{&e, result};
    for (const auto& o : operands) l.sites.insert(o.begin(), o.end());
    links_.push_back(std::move(l));
  }

  void mark_tileable(std::map<int, TileStorage>& merged) {
    // Sites that an operation touches belong to one chain; a chain is cut where all its operations agree.
    std::map<int, int> chain;
    for (const auto& [root, t] : merged) chain[root] = root;
    const std::function<int(int)> top = [&](int i) { return chain[i] == i ? i : chain[i] = top(chain[i]); };
    std::map<int, Cut> cuts;
    for (const auto& l : links_) {
      int first = -1;
      for (const int s : l.sites) {
        const int r = find(s);
        if (first < 0) first = r;
        chain[top(r)] = top(first);
      }
    }
    std::map<int, Cut> agreed;
    for (const auto& [root, t] : merged) agreed.try_emplace(top(root), Cut{true, true});
    for (const auto& l : links_) {
      if (l.sites.empty()) continue;
      Cut c = cut_of(*l.op);
      // Reading from and writing to global memory is where a chain begins and ends.
      const bool write = l.op->op == OpId::k_assemble && global(l.op->args[0]);
      if (write || l.op->op == OpId::k_full) c = {true, true};
      Cut& a = agreed[top(find(*l.sites.begin()))];
      a.rows = a.rows && c.rows;
      a.columns = a.columns && c.columns;
    }
    for (auto& [root, t] : merged) {
      const Cut c = agreed[top(root)];
      t.tileable = t.tensor_level && t.space == MemorySpace::kVec && (c.rows || c.columns);
      if (t.tileable) t.piece_bytes = piece_bytes(*t.type, t.space, arch_, c);
    }
  }

  // ---------------------------------------------------------------- statements
  static void join(Env& into, const Env& from) {
    for (const auto& [v, s] : from) into[v].insert(s.begin(), s.end());
  }

  /// Forgets variables that nothing reads any more: what is looked at per operation stays small.
  void forget(const Stmt& s) {
    const Liveness::At after = live_.after(s);
    if (s.kind == StmtKind::kAssign || s.kind == StmtKind::kEval || s.kind == StmtKind::kYield) {
      const auto dead = [&](const Var* v) {
        if (!after.count(v)) env_.erase(v);
      };
      own_exprs(s, [&](const ExprPtr& e) {
        walk_expr(e, [&](const ExprPtr& x) {
          if (x->kind == ExprKind::kVar) dead(x->var.get());
        });
      });
      for (const auto& t : s.targets) dead(t.get());
    } else {
      std::erase_if(env_, [&](const auto& held) { return !after.count(held.first); });
    }
  }

  void meet(const Env& env, const Liveness::At& live) {
    if (!reuse_) return;
    for (const auto& [v, s] : env) {
      if (!live.count(v) || s.size() < 2) continue;
      for (const int x : s) unite(*s.begin(), x);
    }
  }

  void run(const Block& block) {
    for (const auto& s : block) {
      poll();
      stmt(*s);
      forget(*s);
    }
  }

  void stmt(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kAssign: {
        std::vector<Sites> values;
        if (s.targets.size() > 1 && s.value->kind == ExprKind::kTuple) {
          for (size_t i = 0; i < s.targets.size(); ++i) values.push_back(value(s.value->args[i], "", &s));
        } else {
          name_of_[s.value.get()] = s.targets[0].get();
          const Sites all = value(s.value, s.targets[0]->name, &s);
          values.assign(s.targets.size(), all);
        }
        for (size_t i = 0; i < s.targets.size(); ++i) {
          if (s.targets[i] &&
              (s.targets[i]->type->is_array_like() || s.targets[i]->type->kind == ir::TypeKind::kTuple)) {
            env_[s.targets[i].get()] = values[i];
          }
        }
        break;
      }
      case StmtKind::kYield: {
        std::vector<Sites> values;
        for (const auto& v : s.values) values.push_back(value(v, "", &s));
        const int position = range_.at(&s).first * 2;
        for (const auto& v : values) use(v, position);
        if (!loops_.empty()) {
          const Stmt& loop = *loops_.back().stmt;
          if (loop.explicit_carry && !loop.body.empty() && loop.body.back().get() == &s) {
            for (size_t i = 0; i < loop.carries.size() && i < values.size(); ++i)
              env_[loop.carries[i].var.get()] = values[i];
          }
        }
        for (size_t i = 0; i < s.targets.size() && i < values.size(); ++i)
          env_[s.targets[i].get()] = values[i];
        break;
      }
      case StmtKind::kEval:
        value(s.value, "", &s);
        break;
      case StmtKind::kReturn:
        for (const auto& v : s.values) use(value(v, "", &s), range_.at(&s).first * 2);
        break;
      case StmtKind::kIf: {
        value(s.value, "", &s);
        const Env before = env_;
        run(s.body);
        Env after_then = std::exchange(env_, before);
        run(s.else_body);
        join(env_, after_then);
        meet(env_, live_.after(s));
        break;
      }
      case StmtKind::kFor:
      case StmtKind::kWhile:
        loop(s);
        break;
      case StmtKind::kScope:
        run(s.body);
        break;
      case StmtKind::kBreak:
        if (!loops_.empty()) join(loops_.back().breaks, env_);
        break;
      case StmtKind::kContinue:
        if (!loops_.empty()) join(loops_.back().continues, env_);
        break;
      default:
        break;
    }
  }

  void loop(const Stmt& s) {
    for (const auto& c : s.carries) {
      const Sites init = value(c.init, "", &s);
      env_[c.var.get()] = init;
      if (c.result) env_[c.result.get()] = init;
    }
    const auto [from, to] = range_.at(&s);
    Env exits = env_;
    join(env_, heads_[&s]);  // what the last visit ended with holds in this one too
    for (int round = 0; round < 3; ++round) {
      const Env head = env_;
      loops_.push_back({&s, from, to, {}, {}});
      if (s.kind == StmtKind::kWhile && s.value) value(s.value, "", &s);
      run(s.body);
      const Loop done = std::move(loops_.back());
      loops_.pop_back();
      join(env_, done.continues);
      join(exits, env_);
      join(exits, done.breaks);
      // What is needed at the top of the next round lives through the whole loop.
      if (!s.body.empty()) {
        const Liveness::At needed = live_.before(*s.body.front());
        for (const auto& [v, sites] : env_) {
          if (!needed.count(v)) continue;
          for (const int i : sites) {
            const auto& own = loops_of_[static_cast<size_t>(i)];
            if (std::find(own.begin(), own.end(), &s) == own.end()) continue;
            TileStorage& t = sites_[static_cast<size_t>(i)];
            t.from = std::min(t.from, from * 2);
            t.to = std::max(t.to, to * 2);
          }
        }
      }
      Env next = head;
      join(next, env_);
      if (!s.body.empty()) meet(next, live_.before(*s.body.front()));
      env_ = std::move(next);
      if (env_ == head) break;
    }
    heads_[&s] = std::move(env_);
    env_ = std::move(exits);
    meet(env_, live_.after(s));
  }

  const ir::Function& f_;
  ir::Arch arch_;
  bool reuse_;
  Liveness live_;
  bool mixed_ = false;
  int split_ = 0;
  int64_t slots_ = 2;
  int next_ = 0;
  std::unordered_map<const Expr*, int> at_;
  std::unordered_map<const Stmt*, std::pair<int, int>> range_;
  std::set<const Var*> computed_with_;
  std::unordered_map<const Expr*, const Var*> name_of_;  ///< the variable that a value is assigned to
  std::unordered_set<const ir::Storage*> accumulated_;   ///< what products accumulate into
  std::set<const Expr*> written_directly_;               ///< values that an operand position writes out
  std::vector<TileStorage> sites_;
  std::vector<int> parent_;
  std::vector<std::vector<const Stmt*>> loops_of_;
  std::map<std::pair<const Expr*, int>, int> index_;
  std::map<const void*, int> accumulators_;
  std::map<std::string, int> memrefs_;
  std::vector<Link> links_;
  Env env_;
  std::unordered_map<const Stmt*, Env> heads_;  ///< by loop: what holds at the top of its body
  std::vector<Loop> loops_;
  std::map<MemorySpace, int64_t> ring_, reserved_;
};

}  // namespace

KernelStorage tile_lifetimes(const ir::Function& f, ir::Arch arch, bool reuse) {
  return Lifetimes(f, arch, reuse).take();
}

}  // namespace pypto::passes
