// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/ir/clone.h"
#include "core/passes/core_kinds.h"
#include "core/passes/lane_rules.h"
#include "core/passes/lane_stores.h"
#include "core/passes/passes.h"
#include "core/passes/tile_bytes.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::MemorySpace;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtPtr;
using ir::Type;
using ir::Var;
using ir::VarPtr;

/// 01 L-38: layouts of the matrix memories are fixed.
void check_layouts(const Function& f) {
  for (const auto& v : f.vars) {
    const Type& t = *v->type;
    if (!t.is_tile() || !t.tile_view) continue;
    const auto fixed = [&]() -> std::pair<ir::TileLayout, ir::TileLayout> {
      using L = ir::TileLayout;
      switch (t.space) {
        case MemorySpace::kLeft:
        case MemorySpace::kAcc:
          return {L::kColMajor, L::kRowMajor};
        case MemorySpace::kRight:
          return {L::kRowMajor, L::kColMajor};
        case MemorySpace::kLeftScale:
          return {L::kRowMajor, L::kRowMajor};
        case MemorySpace::kRightScale:
          return {L::kColMajor, L::kColMajor};
        default:
          return {L::kNoneBox, L::kNoneBox};
      }
    }();
    if (fixed.first == ir::TileLayout::kNoneBox) continue;
    if ((t.tile_view->blayout && *t.tile_view->blayout != fixed.first) ||
        (t.tile_view->slayout && *t.tile_view->slayout != fixed.second)) {
      fail(ErrorClass::kValueError,
           "Tile '" + v->name + "' lives in pl.Mem." + space_name(t.space) +
               ", whose layout is fixed: pl.Mem." + space_name(t.space) +
               " does not allow blayout/slayout to override",
           v->span, "leave blayout and slayout out");
    }
  }
}

/// 01 L-146: rows are stored in multiples of 32 bytes, which a stride or a size that was written may not
/// contradict.
void check_alignment(const Function& f, ir::Arch arch) {
  for (const auto& v : f.vars) {
    const Type& t = *v->type;
    if (!t.is_tile() || t.rank() == 0 || !t.static_shape()) continue;
    if (t.space != MemorySpace::kVec && t.space != MemorySpace::kUnset) continue;
    const int64_t bits = dtype_bits(t.dtype) == 1 ? 8 : dtype_bits(t.dtype);
    const auto bytes = [&](int64_t n) { return (n * bits + 7) / 8; };
    const bool column = t.tile_view && t.tile_view->blayout &&
                        *t.tile_view->blayout == ir::TileLayout::kColMajor && t.rank() == 2;
    const int64_t line = bytes(column ? t.shape[0].value : t.shape.back().value);
    const auto refuse = [&](const std::string& what, int64_t has) {
      fail(ErrorClass::kCompileError,
           "X-26: Tile '" + v->name + "' " + ir::shape_text(t.shape) + " " +
               std::string(dtype_text(t.dtype)) + ": " + what + " makes " + (column ? "columns" : "rows") +
               " of " + std::to_string(has) +
               " bytes, which are not 32-byte aligned; a multiple of 32 bytes is required",
           v->span, "leave it out: the tile is then stored padded, with the same values");
    };
    if (t.tile_view && t.tile_view->stride.size() == t.shape.size() && t.rank() >= 2) {
      const ir::Dim& pitch = t.tile_view->stride[t.shape.size() - (column ? 1 : 2)];
      if (pitch.is_const() && bytes(pitch.value) % 32 != 0)
        refuse("the stride in its view", bytes(pitch.value));
    }
    const int64_t stored = tile_bytes(t, MemorySpace::kVec, arch);
    if (t.memref && t.memref->size > 0 && line % 32 != 0 && t.memref->size < stored &&
        t.memref->size >= bytes(t.static_elements())) {
      refuse("the size of its MemRef, " + std::to_string(t.memref->size) + " bytes,", line);
    }
  }
}

/// 01 L-150: one kernel may not write one tensor both in bulk and by element.
class MixedStores {
 public:
  explicit MixedStores(const Function& f) : f_(f) {
    for (const auto& p : f.params) roots_[p.get()].insert(p.get());
    for (bool changed = true; changed;) {
      changed = false;
      walk_stmts(f.body, [&](const StmtPtr& s) { changed = bind(*s) || changed; });
    }
    visit(f.body);
    for (const auto& p : f.params) judge(p);
  }

 private:
  using Set = std::unordered_set<const Var*>;
  struct Write {
    Span span;
    int position = 0;
    int depth = 0;
    bool element = false;
  };

  Set of(const ExprPtr& e) const {
    if (!e) return {};
    if (e->kind == ExprKind::kVar) {
      const auto it = roots_.find(e->var.get());
      return it == roots_.end() ? Set() : it->second;
    }
    if (e->kind == ExprKind::kOp) {
      const auto& row = ir::op_row(e->op);
      if (row.alias == ir::AliasClass::kView) return of(e->args[0]);
      if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0)
        return of(e->args[static_cast<size_t>(row.inplace_param)]);
    }
    return {};
  }

  bool add(const VarPtr& v, const ExprPtr& value) {
    if (!v) return false;
    const Set from = of(value);
    if (from.empty()) return false;
    auto& to = roots_[v.get()];
    const size_t before = to.size();
    to.insert(from.begin(), from.end());
    return to.size() != before;
  }

  bool bind(const Stmt& s) {
    bool changed = false;
    if (s.kind == StmtKind::kAssign && s.targets.size() == 1) changed = add(s.targets[0], s.value);
    for (size_t i = 0; s.kind == StmtKind::kYield && i < s.targets.size() && i < s.values.size(); ++i) {
      changed = add(s.targets[i], s.values[i]) || changed;
    }
    for (const auto& c : s.carries) changed = add(c.var, c.init) || changed;
    return changed;
  }

  void visit(const Block& block) {
    for (const auto& s : block) {
      own_exprs(*s, [&](const ExprPtr& e) {
        walk_expr(e, [&](const ExprPtr& x) {
          if (x->kind != ExprKind::kOp) return;
          if (x->op == OpId::k_fence || x->op == OpId::k_bar_all)
            fences_.push_back({x->span, position_, depth_, false});
          int target = -1;
          if (x->op == OpId::k_store) target = 2;
          if (x->op == OpId::k_assemble || x->op == OpId::k_write) target = 0;
          if (target < 0) return;
          for (const Var* root : of(x->args[static_cast<size_t>(target)])) {
            writes_[root].push_back(
                {x->span.known() ? x->span : s->span, position_, depth_, x->op == OpId::k_write});
          }
          ++position_;
        });
      });
      const bool loop = s->kind == StmtKind::kFor || s->kind == StmtKind::kWhile;
      depth_ += loop;
      visit(s->body);
      visit(s->else_body);
      depth_ -= loop;
      ++position_;
    }
  }

  void judge(const VarPtr& p) const {
    const auto it = writes_.find(p.get());
    if (it == writes_.end() || p->type->is_window()) return;
    if (p->type->storage && p->type->storage->created)
      return;  // made by the control-plane body around the region
    const Write* bulk = nullptr;
    const Write* element = nullptr;
    for (const auto& w : it->second) {
      if (w.element) {
        if (!element) element = &w;
      } else {
        bulk = &w;  // the last one
      }
    }
    if (!bulk || !element) return;
    // Every bulk write, then a fence, then every element write; not around the same loop.
    const bool ordered =
        bulk->position < element->position && bulk->depth == 0 + std::min(bulk->depth, element->depth) &&
        std::any_of(
            fences_.begin(), fences_.end(),
            [&](const Write& f) { return f.position >= bulk->position && f.position <= element->position; });
    if (ordered && (bulk->depth == 0 || element->depth == 0)) return;
    Diagnostic d;
    d.cls = ErrorClass::kValueError;
    d.message = "Kernel '" + f_.name + "' mixes bulk stores (" + bulk->span.file_line() +
                ") and scalar stores (" + element->span.file_line() + ") to tensor '" + p->name + "'";
    d.span = element->span;
    d.hint =
        "write the elements in a kernel of their own, or put pl.system.fence() between the last bulk store "
        "and the first pl.write";
    d.notes.push_back({"the bulk store is here", bulk->span});
    throw Failure(std::move(d));
  }

  const Function& f_;
  std::unordered_map<const Var*, Set> roots_;
  std::unordered_map<const Var*, std::vector<Write>> writes_;
  std::vector<Write> fences_;
  int position_ = 0, depth_ = 0;
};

}  // namespace

void place(ir::Module& module) {
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || !f->is_kernel() || !f->external_source.empty()) continue;
    place_tiles(*f);
    check_layouts(*f);
    check_alignment(*f, module.arch);
    MixedStores check(*f);
    check_lane_rules(*f);
    shift_lane_stores(*f, module.arch);
    set_core_kind(*f);
    warn_lone_notifies(module, *f);
  }
  // A group runs what its members run.
  for (const auto& f : module.functions) {
    if (f->type != ir::FunctionType::kGroup) continue;
    walk_exprs(f->body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall) return;
      f->uses_cube = f->uses_cube || e->call->callee->uses_cube;
      f->uses_vector = f->uses_vector || e->call->callee->uses_vector;
    });
  }
}

}  // namespace pypto::passes
