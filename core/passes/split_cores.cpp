// SPDX-License-Identifier: Apache-2.0
#include "core/passes/split_cores.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/ir/clone.h"
#include "core/ir/print.h"
#include "core/passes/build.h"
#include "core/passes/core_halves.h"
#include "core/passes/core_order.h"
#include "core/passes/core_sides.h"
#include "core/passes/divide_lanes.h"
#include "core/passes/drop_unused.h"
#include "core/passes/flatten.h"
#include "core/passes/group.h"
#include "core/passes/lane_extents.h"
#include "core/passes/resolve_extents.h"
#include "core/passes/tile_bytes.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AliasClass;
using ir::AttrKey;
using ir::Block;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::FunctionPtr;
using ir::FunctionType;
using ir::MemorySpace;
using ir::OpId;
using ir::SplitMode;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtPtr;
using ir::Type;
using ir::Var;
using ir::VarPtr;

constexpr int64_t kDefaultSlots = 2;

bool is_tile(const ExprPtr& e) { return e && e->type && e->type->is_tile(); }
bool is_tensor(const ExprPtr& e) { return e && e->type && e->type->is_tensor(); }

class Splitter {
 public:
  /// `mode`: how the compiler divides the vector work between the lanes (01 L-129).
  Splitter(Function& whole, ir::Arch arch, SplitMode mode) : f_(whole), arch_(arch), divided_(mode) {
    if (const auto* a = f_.attr("slot_num"); a && a->int_value > 0) slots_ = a->int_value;
  }

  /// The pair and the group over it.
  std::array<FunctionPtr, 3> run() {
    auto body = one_operation_each(f_, arch_);
    if (!body) throw NotSplit();
    f_.body = std::move(*body);
    resolve_extents(f_);
    if (divided_ != SplitMode::kNone) {
      auto parts = divide_lanes(f_, arch_, divided_);
      if (!parts) throw NotSplit();
      f_.body = std::move(*parts);
    }
    sides_.emplace(f_);
    begin_halves(f_, half_);
    block(f_.body, {});
    for (const Side s : kSides) {
      drop_unused_code(*half_[s].fn);
      if (half_[s].fn->body.empty()) throw NotSplit();
    }
    check_shared_memory(f_, half_);
    add_pipe(f_, half_, arch_, slots_);
    std::array<FunctionPtr, 3> out{half_[kCube].fn, half_[kVector].fn, group()};
    for (auto& f : out) attributes(*f);
    return out;
  }

 private:
  /// Copies of the other core's tiles that were popped, by core that holds them.
  using Have = std::array<std::unordered_map<const Var*, VarPtr>, 2>;

  // ---------------------------------------------------------------- transfers
  CodeBuilder builder(Side s, const Span& span) { return {*half_[s].fn, arch_, ir::kPlaceKernel, span}; }

  void flush(Side s, CodeBuilder& b) {
    for (auto& made : b.code) half_[s].append(made);
  }

  /// How a tile passes from one core to the other.
  struct Passage {
    Side to;
    SplitMode mode = SplitMode::kNone;
    int64_t code = 0;    ///< 02 O-2104
    int64_t stride = 0;  ///< where lane 1 begins; 0: in the middle
    Type arrives;        ///< what the receiving core pops, its valid extents over variables of the kernel
  };

  /// Pushes `given` on one core and pops it on the other: into `into`, or a new variable `name`.
  VarPtr cross(const ExprPtr& given, const Passage& how, const std::string& name, const VarPtr& into) {
    const Side to = how.to, from = other(to);
    order_.crossed(to);
    const Type& t = *given->type;
    if (t.static_elements() < 0 || t.rank() != 2 || how.arrives.static_elements() < 0) throw NotSplit();
    // The accumulator and the vector memory are what a pipe takes from (02 O-2106).
    const MemorySpace space = given->kind == ExprKind::kVar ? given->var->type->space : t.space;
    if (to == kVector ? space != MemorySpace::kAcc : space != MemorySpace::kVec) throw NotSplit();
    const ExprPtr split = int_text(how.code);
    const ExprPtr stride = how.stride > 0 ? int_text(how.stride) : nullptr;
    CodeBuilder push = builder(from, given->span);
    const ExprPtr tile = half_[from].cloner.expr(given);
    if (to == kVector) {
      push.eval(push.op(OpId::k_tpush_to_aiv, {tile, split, stride}, ir::kFormTile));
    } else {
      push.eval(push.op(OpId::k_tpush_to_aic, {tile, split}, ir::kFormTile));
    }
    flush(from, push);
    CodeBuilder pop = builder(to, given->span);
    std::vector<ExprPtr> shape;
    for (const auto& d : how.arrives.shape) shape.push_back(pop.index(d.value));
    std::vector<ExprPtr> args{pop.list(shape), pop.dtype(t.dtype), split};
    if (to == kVector) args.push_back(stride);
    const ExprPtr popped =
        narrowed(pop.op(to == kVector ? OpId::k_tpop_from_aic : OpId::k_tpop_from_aiv, args, ir::kFormTile),
                 how.arrives.valid, to);
    VarPtr v = into;
    if (v) {
      v->type = popped->type;
      pop.set(v, popped);
    } else {
      v = pop.let(name, popped);
    }
    flush(to, pop);
    half_[to].receives = true;
    const MemorySpace ring = to == kVector ? MemorySpace::kVec : MemorySpace::kMat;
    half_[to].slot_bytes = std::max(half_[to].slot_bytes, tile_bytes(how.arrives, ring, arch_));
    return v;
  }

  /// A popped tile whose text says which part of it is valid (02 O-2105).
  ExprPtr narrowed(const ExprPtr& popped, const ir::Shape& valid, Side at) {
    if (valid.empty()) return popped;
    auto view = std::make_shared<ir::TileView>();
    for (const auto& d : valid) {
      if (!d.is_const() && (!d.expr || sides_->of_scalar(d.expr).value_or(at) != at)) throw NotSplit();
      view->valid_shape.push_back(half_[at].cloner.dim(d));
    }
    auto type = std::make_shared<Type>(*popped->type);
    type->valid = view->valid_shape;
    type->tile_view = view;
    auto copy = std::make_shared<Expr>(*popped);
    copy->type = type;
    return copy;
  }

  static ExprPtr int_text(int64_t v) { return ir::int_const(v, DType::kIndex, {}, true); }

  void release(Side s, const VarPtr& v, const Span& span) {
    CodeBuilder b = builder(s, span);
    b.eval(b.op(s == kVector ? OpId::k_tfree_to_aic : OpId::k_tfree_to_aiv, {CodeBuilder::ref(v)},
                ir::kFormSystem));
    flush(s, b);
    --held_[s];
  }

  // ---------------------------------------------------------------- code
  struct Pending {
    size_t after;
    Side side;
    VarPtr copy;
    const Var* of;  ///< what it is a copy of; null: it is the variable itself
  };

  void hold(Side s) {
    if (++held_[s] > slots_) throw NotSplit();
  }

  void fetch(const Block& in, size_t i, const Var* v, const ExprPtr& ref, Side to, Have& have,
             std::vector<Pending>& pending) {
    hold(to);
    const VarPtr copy = cross(ref, {.to = to, .arrives = *ref->type}, v->name, nullptr);
    have[to][v] = copy;
    half_[to].cloner.values[v] = CodeBuilder::ref(copy);
    pending.push_back({sides_->last_use(in, i, v, to), to, copy, v});
  }

  void forget(const Var* v, Have& have) {
    for (const Side s : kSides) {
      have[s].erase(v);
      half_[s].cloner.values.erase(v);
    }
  }

  void operands(const Block& in, size_t i, Side at, Have& have, std::vector<Pending>& pending) {
    const Stmt& s = *in[i];
    own_exprs(s, [&](const ExprPtr& e) {
      walk_expr(e, [&](const ExprPtr& x) {
        if (x->kind != ExprKind::kVar || !x->type->is_tile()) return;
        const Var* v = x->var.get();
        if (side_of(*v->type) == at || have[at].count(v)) return;
        fetch(in, i, v, x, at, have, pending);
      });
    });
  }

  void block(const Block& in, Have have) {
    const auto saved = std::array{half_[kCube].cloner.values, half_[kVector].cloner.values};
    std::vector<Pending> pending;
    for (size_t i = 0; i < in.size(); ++i) {
      statement(in, i, have, pending);
      for (size_t k = 0; k < pending.size();) {
        if (pending[k].after != i) {
          ++k;
          continue;
        }
        release(pending[k].side, pending[k].copy, in[i]->span);
        if (pending[k].of && have[pending[k].side].count(pending[k].of) &&
            have[pending[k].side][pending[k].of] == pending[k].copy) {
          have[pending[k].side].erase(pending[k].of);
          half_[pending[k].side].cloner.values.erase(pending[k].of);
        }
        pending.erase(pending.begin() + static_cast<long>(k));
      }
    }
    if (!pending.empty()) throw NotSplit();
    for (const Side s : kSides) half_[s].cloner.values = saved[s];
  }

  void statement(const Block& in, size_t i, Have& have, std::vector<Pending>& pending) {
    const Stmt& s = *in[i];
    switch (s.kind) {
      case StmtKind::kFor:
      case StmtKind::kWhile:
      case StmtKind::kIf:
        structured(s, have);
        return;
      case StmtKind::kYield:
        yield(s);
        return;
      case StmtKind::kScope:
      case StmtKind::kReturn:
        throw NotSplit();
      default:
        break;
    }
    if (is_op(s.value, OpId::k_aiv_shard) || is_op(s.value, OpId::k_aic_gather)) {
      named_crossing(in, i, pending);
      own_defs(s, [&](const VarPtr& v) { forget(v.get(), have); });
      return;
    }
    if (is_op(s.value, OpId::k_get_subblock_idx) && s.targets.size() == 1) lane_ = s.targets[0];
    const auto at = sides_->of(s);
    if (at) operands(in, i, *at, have, pending);
    order_.run(s, at);
    for (const Side one : kSides) {
      if (!at || *at == one) {
        if (!at) refuse_foreign(s);
        half_[one].append(half_[one].cloner.stmt(s));
      } else if (s.kind == StmtKind::kAssign && is_tensor(s.value)) {
        // The storage under its new name, for what follows on this core.
        const auto& row = ir::op_row(s.value->op);
        if (row.alias != AliasClass::kInPlace || row.inplace_param < 0) throw NotSplit();
        auto alias = std::make_shared<Stmt>(s);
        alias->value = s.value->args[static_cast<size_t>(row.inplace_param)];
        half_[one].append(half_[one].cloner.stmt(*alias));
      }
    }
    own_defs(s, [&](const VarPtr& v) { forget(v.get(), have); });
  }

  /// Code that both cores run may not depend on what one of them alone knows.
  void refuse_foreign(const Stmt& s) const {
    own_exprs(s, [&](const ExprPtr& e) {
      if (sides_->of_scalar(e)) throw NotSplit();
      walk_expr(e, [&](const ExprPtr& x) {
        if (is_tile(x)) throw NotSplit();
      });
    });
  }

  void named_crossing(const Block& in, size_t i, std::vector<Pending>& pending) {
    const Stmt& s = *in[i];
    if (s.kind != StmtKind::kAssign) return;  // nobody uses it
    const bool shard = is_op(s.value, OpId::k_aiv_shard);
    const auto mode = static_cast<SplitMode>(s.value->attrs.get_int(AttrKey::k_split));
    if (mode == SplitMode::kNone || (mode_ != SplitMode::kNone && mode_ != mode)) throw NotSplit();
    mode_ = mode;
    const ExprPtr& given = s.value->args[0];
    if (side_of(given) == (shard ? kVector : kCube) || given->kind != ExprKind::kVar) throw NotSplit();
    const Side to = shard ? kVector : kCube;
    hold(to);
    Passage how{.to = to, .mode = mode, .arrives = *s.value->type};
    const size_t axis = split_axis(mode);
    const ir::Dim& extent = shard ? given->type->shape[axis] : how.arrives.shape[axis];
    if (!extent.is_const()) throw NotSplit();
    const int64_t stride = s.value->attrs.get_int(AttrKey::k_lane_stride);
    how.stride = shard ? stride : 0;
    how.code = split_code(mode, extent.value, stride > 0 ? stride : lane_half(extent.value));
    if (shard) how.arrives.valid = part_valid(*given->type, axis, stride);
    const VarPtr into = half_[to].cloner.var(s.targets[0]);
    cross(given, how, s.targets[0]->name, into);
    size_t last = i;
    for (size_t j = i + 1; j < in.size(); ++j) {
      if (sides_->uses(*in[j], s.targets[0].get(), to)) last = j;
      if (defines(*in[j], s.targets[0].get())) break;
    }
    pending.push_back({last, to, into, nullptr});
  }

  /// The valid extents of a lane's part of `t`.
  ir::Shape part_valid(const Type& t, size_t axis, int64_t stride) const {
    const ir::Shape whole = t.valid.empty() ? t.shape : t.valid;
    const int64_t half = lane_half(t.shape[axis].value);
    ir::Shape valid = whole;
    valid[axis] = ir::Dim(half);
    const bool full = whole[axis].is_const() && whole[axis].value == t.shape[axis].value;
    if (!full || t.shape[axis].value % 2 != 0) {
      if (!lane_) throw NotSplit();
      valid[axis] = lane_valid(whole[axis], stride > 0 ? stride : half, ir::var_ref(lane_));
    }
    return t.valid.empty() && valid[axis].is_const() ? ir::Shape() : valid;
  }

  void structured(const Stmt& s, Have& have) {
    // Initial values come from the core that carries them.
    for (const auto& c : s.carries) {
      if (is_tile(c.init) && side_of(c.init) != side_of(*c.var->type)) throw NotSplit();
    }
    for (const auto& e : {s.start, s.stop, s.step, s.value}) {
      if (e && sides_->of_scalar(e)) throw NotSplit();
    }
    const bool loop = s.kind != StmtKind::kIf;
    order_.run(s, std::nullopt);
    const CoreOrder::Missing before = order_.now();
    const CoreOrder::Missing entry = loop ? order_.in_loop(s, *sides_) : before;
    if (s.kind == StmtKind::kWhile) {  // its condition is evaluated after each iteration too
      order_.resume(entry);
      order_.run(s, std::nullopt);
    }
    // Without an else branch, and around a loop that runs no iteration or leaves one early.
    CoreOrder::Missing after;
    if (loop || !s.has_else) after = loop && jumps(s) ? entry : before;
    std::unordered_set<const Var*> defined;
    const auto collect = [&](const Stmt& x) {
      own_defs(x, [&](const VarPtr& v) { defined.insert(v.get()); });
    };
    collect(s);
    walk_stmts(s.body, [&](const StmtPtr& x) { collect(*x); });
    walk_stmts(s.else_body, [&](const StmtPtr& x) { collect(*x); });
    Have inner = have;
    std::array<StmtPtr, 2> made;
    for (const Side one : kSides) {
      auto shell = std::make_shared<Stmt>(s);
      shell->body.clear();
      shell->else_body.clear();
      auto& carries = shell->carries;
      carries.erase(
          std::remove_if(carries.begin(), carries.end(),
                         [&](const ir::Carry& c) { return is_tile(c.init) && side_of(*c.var->type) != one; }),
          carries.end());
      if (shell->explicit_carry && carries.empty()) shell->explicit_carry = false;
      made[one] = half_[one].cloner.stmt(*shell);
    }
    if (loop) {
      for (const Var* v : defined) forget(v, inner);
    }
    for (const bool second : {false, true}) {
      const Block& body = second ? s.else_body : s.body;
      if (second && !s.has_else) break;
      for (const Side one : kSides)
        half_[one].blocks.push_back(second ? &made[one]->else_body : &made[one]->body);
      for (const Side one : kSides) {
        for (const auto& [v, copy] : inner[one]) half_[one].cloner.values[v] = CodeBuilder::ref(copy);
      }
      order_.resume(entry);
      block(body, inner);
      order_.join(after);
      after = order_.now();
      for (const Side one : kSides) half_[one].blocks.pop_back();
    }
    for (const Side one : kSides) half_[one].append(made[one]);
    for (const Var* v : defined) forget(v, have);
    for (const Side one : kSides) {
      for (const auto& [v, copy] : have[one]) half_[one].cloner.values[v] = CodeBuilder::ref(copy);
    }
  }

  /// Whether an iteration of the loop may end before its last statement.
  static bool jumps(const Stmt& loop) {
    bool found = false;
    walk_stmts(loop.body, [&](const StmtPtr& x) {
      found = found || x->kind == StmtKind::kBreak || x->kind == StmtKind::kContinue;
    });
    return found;
  }

  void yield(const Stmt& s) {
    const auto home = [&](size_t k) {
      return k < s.targets.size() && s.targets[k] ? side_of(*s.targets[k]->type) : side_of(s.values[k]);
    };
    for (size_t k = 0; k < s.values.size(); ++k) {
      if (is_tile(s.values[k]) && side_of(s.values[k]) != home(k)) throw NotSplit();
    }
    for (const Side one : kSides) {
      auto copy = std::make_shared<Stmt>(s);
      copy->values.clear();
      copy->targets.clear();
      for (size_t k = 0; k < s.values.size(); ++k) {
        if (is_tile(s.values[k]) && home(k) != one) continue;
        copy->values.push_back(s.values[k]);
        if (k < s.targets.size()) copy->targets.push_back(s.targets[k]);
      }
      if (!copy->values.empty()) half_[one].append(half_[one].cloner.stmt(*copy));
    }
  }

  /// With explicit lanes both vector cores run the vector function, each on the part that its index names.
  void attributes(Function& f) const {
    if (mode_ == SplitMode::kNone || f.type == FunctionType::kAIC) return;
    f.attrs.push_back({"dual_aiv_dispatch", "True", 1});
    if (f.type == FunctionType::kAIV) f.attrs.push_back({"split_aiv", "True", 1});
  }

  FunctionPtr group() {
    if (!returns_parameters(f_)) throw NotSplit();
    return make_group(f_, {{half_[kCube].fn, keep_own_params(f_, *half_[kCube].fn)},
                           {half_[kVector].fn, keep_own_params(f_, *half_[kVector].fn)}});
  }

  Function& f_;
  ir::Arch arch_;
  int64_t slots_ = kDefaultSlots;
  SplitMode divided_;
  SplitMode mode_ = SplitMode::kNone;  ///< of the crossings that are divided
  VarPtr lane_;  ///< holds the index of the vector lane where the code being written stands
  std::optional<CoreSides> sides_;
  CoreOrder order_;
  Halves half_;
  std::array<int64_t, 2> held_{0, 0};
};

void drop_returns(Function& f) {
  f.body.erase(std::remove_if(f.body.begin(), f.body.end(),
                              [](const StmtPtr& s) { return s->kind == StmtKind::kReturn; }),
               f.body.end());
}

/// The pair and the group over it, with the vector work divided between the lanes when the kernel asks for it
/// and that is possible; nothing when the kernel cannot be written so.
std::vector<FunctionPtr> pair_of(const Function& f, ir::Arch arch) {
  std::vector<SplitMode> modes{SplitMode::kNone};
  const auto* split = f.attr("split");
  if (split && split->int_value != 0) modes.insert(modes.begin(), static_cast<SplitMode>(split->int_value));
  for (const SplitMode mode : modes) {
    try {
      const FunctionPtr copy = ir::clone(f);
      drop_returns(*copy);
      const auto made = Splitter(*copy, arch, mode).run();
      return {made.begin(), made.end()};
    } catch (const NotSplit&) {
      continue;
    }
  }
  return {};
}

}  // namespace

void split_cores(ir::Module& module) {
  std::vector<FunctionPtr> out;
  std::unordered_map<const Function*, FunctionPtr> became;
  for (const auto& f : module.functions) {
    const bool mixed =
        f->type == FunctionType::kInCore && f->uses_cube && f->uses_vector && !f->is_sub_worker;
    if (!mixed) {
      out.push_back(f);
      continue;
    }
    const auto made = pair_of(*f, module.arch);
    if (made.empty()) out.push_back(f);
    for (const auto& one : made) {
      out.push_back(one);
      if (one->type == FunctionType::kGroup) became[f.get()] = one;
    }
  }
  for (const auto& f : out) {
    walk_exprs(f->body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall) return;
      const auto it = became.find(e->call->callee.get());
      // The module is a copy of our own: nobody else holds its calls.
      if (it != became.end()) std::const_pointer_cast<ir::CallInfo>(e->call)->callee = it->second;
    });
  }
  module.functions = std::move(out);
}

}  // namespace pypto::passes
