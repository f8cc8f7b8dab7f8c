// SPDX-License-Identifier: Apache-2.0
#include "core/passes/region.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/ir/clone.h"
#include "core/passes/create_outputs.h"
#include "core/passes/effects.h"
#include "core/passes/origins.h"
#include "core/passes/slice.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::AttrMap;
using ir::Block;
using ir::Dim;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::FunctionPtr;
using ir::OpId;
using ir::ParamDirection;
using ir::StmtKind;
using ir::StmtPtr;
using ir::TypeKind;
using ir::TypePtr;
using ir::Var;
using ir::VarKind;
using ir::VarPtr;

StmtPtr assign(std::vector<VarPtr> targets, ExprPtr value, const Span& span) {
  auto s = std::make_shared<ir::Stmt>();
  s->kind = StmtKind::kAssign;
  s->targets = std::move(targets);
  s->value = std::move(value);
  s->span = span;
  return s;
}

StmtPtr evaluate(ExprPtr value, const Span& span) {
  auto s = std::make_shared<ir::Stmt>();
  s->kind = StmtKind::kEval;
  s->value = std::move(value);
  s->span = span;
  return s;
}

bool is_passed_by_value(const ir::Type& t) {
  switch (t.kind) {
    case TypeKind::kScalar:
    case TypeKind::kCommCtx:
    case TypeKind::kPrefetchContext:
    case TypeKind::kAsyncEvent:
    case TypeKind::kAsyncSession:
    case TypeKind::kPtr:
      return true;
    default:
      return false;
  }
}

const char* kind_word(const ir::Type& t) {
  switch (t.kind) {
    case TypeKind::kTile:
      return "tile";
    case TypeKind::kArray:
      return "array";
    case TypeKind::kScalar:
      return t.dtype == DType::kTaskId ? "task handle" : "scalar";
    case TypeKind::kTuple:
      return "tuple";
    default:
      return "value";
  }
}

class Outliner {
 public:
  Outliner(Function& owner, const Region& region)
      : owner_(owner), region_(region), span_(region.stmt->span) {}

  OutlinedRegion run() {
    fn_ = std::make_shared<Function>();
    fn_->name = region_.name;
    fn_->type = region_.type;
    fn_->level = region_.level;
    // The level that reading gives a kernel.
    if (fn_->level == ir::Level::kNone && fn_->type == ir::FunctionType::kInCore)
      fn_->level = ir::Level::kChipDie;
    fn_->role = region_.role;
    fn_->span = span_;
    add_attrs();
    find_leaving();
    plan_outputs();
    plan_inputs();
    make_params();
    copy_body();
    set_directions();
    OutlinedRegion out;
    out.function = fn_;
    emit_code(out.code);
    return out;
  }

 private:
  struct Output {
    VarPtr var;  ///< variable of the region whose value leaves, or the target of the create
    const ir::Expr* create = nullptr;  ///< the create_tensor that becomes this output, else a copy at the end
    VarPtr outer;                      ///< tensor in the function around
    TypePtr outer_type;                ///< its type, set when the region has been copied
    VarPtr param;
    TypePtr type;
    size_t arg = 0;
  };

  [[noreturn]] void refuse(const VarPtr& v, const std::string& why, const std::string& hint) {
    const std::string what = std::string(kind_word(*v->type)) + " '" + v->name + "'";
    fail(ErrorClass::kParserTypeError, "The " + what + " " + why, v->span.known() ? v->span : span_, hint);
  }

  std::string region_text() const { return region_.kind + " region '" + region_.name + "'"; }

  void add_attrs() {
    const auto& f = *region_.facts;
    if (region_.type != ir::FunctionType::kInCore) return;
    if (f.has_split) {
      static const char* kNames[] = {"pl.SplitMode.NONE", "pl.SplitMode.UP_DOWN", "pl.SplitMode.LEFT_RIGHT"};
      fn_->attrs.push_back({"split", kNames[static_cast<int>(f.split)], static_cast<int64_t>(f.split)});
    }
    if (f.slot_num > 0) fn_->attrs.push_back({"slot_num", std::to_string(f.slot_num), f.slot_num});
    if (f.windowize) fn_->attrs.push_back({"windowize", "True", 1});
    bool waits = false;
    walk_exprs(region_.body, [&](const ExprPtr& e) {
      waits = waits || (e->kind == ExprKind::kOp && e->op == OpId::k_defer_wait);
    });
    if (waits) fn_->attrs.push_back({"deferred_waiter", "True", 1});
  }

  // Variables that the region defines and that are read after it, in order of definition.
  void find_leaving() {
    VarSet seen;
    walk_stmts(region_.body, [&](const StmtPtr& s) {
      own_defs(*s, [&](const VarPtr& v) {
        assigned_.insert(v.get());
        if (region_.live_after->count(v.get()) && seen.insert(v.get()).second) leaving_.push_back(v);
      });
    });
  }

  // Decides how each leaving variable gets its value after the call.
  void plan_outputs() {
    const OriginScan origins(region_.body);
    VarSet at_end, sliced;
    for (const auto& v : leaving_) at_end.insert(v.get());
    const OneStorage one(region_.body, origins, std::move(at_end));
    for (const auto& v : leaving_) {
      const ir::Type& t = *v->type;
      if (t.is_tensor()) {
        const Origin o = origins.of(v.get());
        if (o.is_entry()) {
          alias_.emplace_back(v, *o.entries.begin());
          continue;
        }
        const bool shared =
            std::all_of(o.creates.begin(), o.creates.end(), [&](const ir::Expr* c) { return one.can(*c); });
        if (!o.fresh && shared) {
          for (const auto* c : o.creates) add_create(c, v);
          if (o.is_create()) {
            alias_create_.emplace_back(v, *o.creates.begin());
            continue;
          }
          VarSet with = sliced;
          with.insert(v.get());
          ControlSlice slice(region_.body, outer_creates_, region_.facts->core_num);
          if (slice.build(with)) {
            sliced = with;
            continue;
          }
        }
        add_copy(v);
      } else if (is_passed_by_value(t) && !(t.is_scalar() && t.dtype == DType::kTaskId)) {
        sliced.insert(v.get());
        scalars_.push_back(v);
      } else if (region_.type == ir::FunctionType::kInCore || t.is_tile()) {
        refuse(v, "is made in the " + region_text() + " and read after it, but only tensors leave a region",
               t.is_tile() ? "store it to a tensor inside the region" : "compute it outside the region");
      } else {
        sliced.insert(v.get());
        scalars_.push_back(v);
      }
    }
    if (sliced.empty()) return;
    slice_ = std::make_unique<ControlSlice>(region_.body, outer_creates_, region_.facts->core_num);
    if (slice_->build(sliced)) return;
    for (const auto& v : scalars_) {
      ControlSlice one(region_.body, outer_creates_, region_.facts->core_num);
      if (one.build({v.get()})) continue;
      refuse(v,
             "is computed in the " + region_text() +
                 " and read after it, but cannot be computed in the control plane: " + one.reason(),
             "write it to a tensor inside the region and read it after it, or compute it outside");
    }
    fail_internal(__FILE__, __LINE__, "addresses that can be computed alone but not together");
  }

  void refuse_blocks(const VarPtr& v) {
    if (!region_.blocks) return;
    refuse(v, "is made by each block of the " + region_text() + " and read after it; each block has its own",
           "create the tensor before the region and let each block write its part");
  }

  void add_create(const ir::Expr* create, const VarPtr& v) {
    for (const auto& o : outputs_) {
      if (o.create == create) return;
    }
    refuse_blocks(v);
    Output o;
    o.create = create;
    o.var = create_target(create, v);
    o.type = create->type;
    o.outer_type = outer_type(*create->type, o.var->name);
    o.outer = outer_var(o);
    outer_creates_[create] = o.outer;
    outputs_.push_back(o);
  }

  VarPtr create_target(const ir::Expr* create, const VarPtr& otherwise) const {
    VarPtr found;
    walk_stmts(region_.body, [&](const StmtPtr& s) {
      if (s->kind == StmtKind::kAssign && s->value.get() == create && s->targets.size() == 1)
        found = s->targets[0];
    });
    return found ? found : otherwise;
  }

  void add_copy(const VarPtr& v) {
    refuse_blocks(v);
    Output o;
    o.var = v;
    o.type = v->type;
    o.outer_type = outer_type(*v->type, v->name);
    o.outer = outer_var(o);
    outputs_.push_back(o);
    alias_output_.emplace_back(v, outputs_.size() - 1);
  }

  static int definitions(const Block& block, const VarPtr& var) {
    int n = 0;
    walk_stmts(block, [&](const StmtPtr& s) { own_defs(*s, [&](const VarPtr& v) { n += v == var; }); });
    return n;
  }

  // The variable itself, unless the region still needs what it held before.
  VarPtr outer_var(const Output& o) {
    VarSet at_end;
    if (!o.create) at_end.insert(o.var.get());
    bool taken =
        std::any_of(outputs_.begin(), outputs_.end(), [&](const Output& x) { return x.outer == o.var; });
    // It takes the output's type, so it must not stand for anything else outside the region.
    taken = taken || o.var->kind == VarKind::kParam ||
            definitions(owner_.body, o.var) != definitions(region_.body, o.var);
    if (!taken && !Liveness(region_.body, at_end).start().count(o.var.get())) return o.var;
    return owner_.add_var(o.var->name, o.outer_type, VarKind::kLocal, o.var->span);
  }

  // An output lives in global memory, fully valid, and is a storage of its own.
  static TypePtr outer_type(const ir::Type& t, const std::string& name) {
    auto copy = std::make_shared<ir::Type>(t);
    copy->place = ir::TensorPlace::kGlobal;
    copy->valid.clear();
    copy->tensor_view = nullptr;
    copy->memref = nullptr;
    copy->acc_dtype = DType::kNone;
    copy->storage = std::make_shared<ir::Storage>();
    copy->storage->name = name;
    copy->storage->created = true;
    copy->storage->needs_global = true;
    return copy;
  }

  // Variables whose value on entry the region needs, tensors and the rest in order of first use.
  void plan_inputs() {
    VarSet at_end;
    for (const auto& o : outputs_) {
      if (!o.create) at_end.insert(o.var.get());
    }
    const Liveness live(region_.body, at_end);
    VarSet wanted;
    for (const Var* v : live.start()) {
      if (region_.defined_before->count(v)) wanted.insert(v);
    }
    VarSet seen;
    const auto use = [&](const VarPtr& v) {
      if (wanted.count(v.get()) && seen.insert(v.get()).second) captured_.push_back(v);
    };
    walk_exprs(region_.body, [&](const ExprPtr& e) {
      if (e->kind == ExprKind::kVar) use(e->var);
    });
    for (const auto& o : outputs_) use(o.var);
    for (const auto& v : captured_) {
      const ir::Type& t = *v->type;
      if (t.is_tensor() || is_passed_by_value(t)) {
        if (t.is_scalar() && t.dtype == DType::kTaskId && region_.type == ir::FunctionType::kInCore) {
          refuse(v, "cannot be passed into the " + region_text(), "name the task in deps=[...]");
        }
        continue;
      }
      if (t.kind == TypeKind::kArray && t.dtype != DType::kTaskId) continue;
      refuse(v, "cannot be passed into the " + region_text() + "; only tensors and scalars enter a region",
             t.is_tile() ? "pass the tensor it was loaded from" : "");
    }
  }

  // ---------------------------------------------------------------- parameters

  std::string param_name(const std::string& name) {
    std::string out = name;
    for (int k = 1; !param_names_.insert(out).second; ++k) out = name + "_" + std::to_string(k);
    return out;
  }

  VarPtr add_param(const std::string& name, TypePtr type, ParamDirection direction, const Span& span) {
    VarPtr p = fn_->add_var(param_name(name), std::move(type), VarKind::kParam, span);
    fn_->params.push_back(p);
    fn_->directions.push_back(direction);
    return p;
  }

  void make_params() {
    cloner_ = std::make_unique<CreateCloner>(fn_.get());
    cloner_->forget_foreign_extents = true;
    std::vector<VarPtr> tensors, arrays, scalars;
    for (const auto& v : captured_) {
      (v->type->is_tensor() ? tensors : v->type->kind == TypeKind::kArray ? arrays : scalars).push_back(v);
    }
    // A symbol used as a value comes first: a scalar of a symbol's name is that symbol (01 L-32).
    for (const auto& v : scalars) {
      if (v->kind != VarKind::kSymbol) continue;
      VarPtr p = add_param(v->name, v->type, ParamDirection::kIn, v->span);
      cloner_->vars[v.get()] = p;
      args_.push_back(ir::var_ref(v, span_));
    }
    bind_symbols(tensors);
    for (const auto& v : tensors) {
      VarPtr p = add_param(v->name, nullptr, ParamDirection::kIn, v->span);
      p->type = param_type(*v->type, p->name, static_cast<int>(fn_->params.size()) - 1);
      cloner_->vars[v.get()] = p;
      args_.push_back(ir::var_ref(v, span_));
      no_dep_.resize(args_.size());
      for (const auto& n : region_.facts->no_dep_args) {
        if (n == v) no_dep_.back() = true;
      }
    }
    for (auto& o : outputs_) {
      o.param = add_param(o.var->name, nullptr, ParamDirection::kOut, o.var->span);
      o.param->type = param_type(*o.outer_type, o.param->name, static_cast<int>(fn_->params.size()) - 1);
      if (o.create) {
        cloner_->creates[o.create] = o.param;
        if (names_only(region_.body, o.var, *o.create)) cloner_->vars[o.var.get()] = o.param;
        if (o.create->type->storage)
          cloner_->storages[o.create->type->storage.get()] = o.param->type->storage;
      }
      o.arg = args_.size();
      args_.push_back(nullptr);
    }
    for (const auto& v : scalars) {
      if (v->kind == VarKind::kSymbol) continue;
      VarPtr p = add_param(v->name, v->type, ParamDirection::kIn, v->span);
      cloner_->vars[v.get()] = p;
      args_.push_back(value_of(v));
    }
    for (const auto& v : arrays) pass_array(v);
  }

  /// A name that stands for one number outside the regions is given as that number, as the front end gives it
  /// where it reads such a call.
  ExprPtr value_of(const VarPtr& v) const {
    if (region_.definitions != nullptr && region_.live_after && region_.live_after->count(v.get()) == 0) {
      const auto it = region_.definitions->find(v.get());
      const bool number = it != region_.definitions->end() && ir::const_int(it->second);
      if (number && it->second->type->dtype == v->type->dtype) return it->second;
    }
    return ir::var_ref(v, span_);
  }

  // Arrays do not cross function boundaries (01 L-132): their elements do, and make a new array inside.
  void pass_array(const VarPtr& v) {
    const int64_t extent = v->type->shape.empty() ? 0 : v->type->shape[0].value;
    VarPtr copy = fn_->add_var(v->name, v->type, VarKind::kLocal, v->span);
    cloner_->vars[v.get()] = copy;
    AttrMap attrs;
    attrs.set(AttrKey::k_extent, extent);
    attrs.set(AttrKey::k_dtype, static_cast<int64_t>(v->type->dtype));
    prologue_.push_back(
        assign({copy}, ir::op_expr(OpId::k_array_create, {nullptr, nullptr}, attrs, v->type, span_), span_));
    const TypePtr element = ir::scalar_type(v->type->dtype);
    for (int64_t i = 0; i < extent; ++i) {
      VarPtr p = add_param(v->name + "_" + std::to_string(i), element, ParamDirection::kIn, v->span);
      const ExprPtr index = ir::int_const(i, DType::kIndex, span_);
      prologue_.push_back(
          assign({copy},
                 ir::op_expr(OpId::k_array_update, {ir::var_ref(copy, span_), index, ir::var_ref(p, span_)},
                             {}, v->type, span_),
                 span_));
      args_.push_back(ir::op_expr(OpId::k_array_get, {ir::var_ref(v, span_), index}, {}, element, span_));
    }
  }

  // Symbols that an extent of an input is equal to are bound from it in the new function too.
  void bind_symbols(const std::vector<VarPtr>& tensors) {
    const auto bind = [&](const Dim& d) {
      if (!d.expr || d.expr->kind != ExprKind::kVar || d.expr->var->kind != VarKind::kSymbol) return;
      const VarPtr& s = d.expr->var;
      if (cloner_->vars.count(s.get())) return;
      param_names_.insert(s->name);
      VarPtr copy = fn_->add_var(s->name, s->type, VarKind::kSymbol, s->span);
      fn_->symbols.push_back(copy);
      cloner_->vars[s.get()] = copy;
    };
    for (const auto& v : tensors) {
      for (const auto& d : v->type->shape) bind(d);
    }
    for (const auto& o : outputs_) {
      for (const auto& d : o.outer_type->shape) bind(d);
    }
  }

  static void collect_vars(const ExprPtr& e, std::vector<const Var*>& out) {
    walk_expr(e, [&](const ExprPtr& x) {
      if (x->kind == ExprKind::kVar) out.push_back(x->var.get());
    });
  }

  // An extent of a parameter: a constant, an expression over symbols of the new function, or a symbol of its
  // own.
  Dim param_dim(const Dim& d, const std::string& param, int axis) {
    if (d.is_const()) return d;
    if (d.expr) {
      std::vector<const Var*> used;
      collect_vars(d.expr, used);
      const bool known = std::all_of(used.begin(), used.end(), [&](const Var* v) {
        return v->kind == VarKind::kSymbol && cloner_->vars.count(v) > 0;
      });
      if (known && !used.empty()) return cloner_->dim(d);
    }
    std::string name = param + "_d" + std::to_string(axis);
    name = param_name(name);
    VarPtr s = fn_->add_var(name, ir::scalar_type(DType::kIndex), VarKind::kSymbol, span_);
    fn_->symbols.push_back(s);
    return Dim(ir::var_ref(s, span_));
  }

  TypePtr param_type(const ir::Type& t, const std::string& name, int index) {
    auto copy = std::make_shared<ir::Type>(t);
    for (size_t i = 0; i < copy->shape.size(); ++i)
      copy->shape[i] = param_dim(t.shape[i], name, static_cast<int>(i));
    if (copy->place == ir::TensorPlace::kOnChip) copy->place = ir::TensorPlace::kGlobal;
    copy->valid.clear();
    copy->tensor_view = nullptr;
    copy->memref = nullptr;
    copy->acc_dtype = DType::kNone;
    // Two inputs that are addresses into one storage stay so.
    if (const auto known = t.storage ? cloner_->storages.find(t.storage.get()) : cloner_->storages.end();
        known != cloner_->storages.end()) {
      copy->storage = known->second;
      return copy;
    }
    auto storage = std::make_shared<ir::Storage>();
    storage->name = name;
    storage->param = index;
    storage->created = t.storage && t.storage->created && t.storage->param < 0;
    copy->storage = storage;
    if (t.storage) cloner_->storages[t.storage.get()] = storage;
    return copy;
  }

  // ---------------------------------------------------------------- body

  /// Copies the statements. An on-chip value that takes the name of an input in a straight line is a variable
  /// of its own: the input lives in global memory.
  Block cloned_body() {
    std::unordered_set<const Var*> shared;
    for (const auto& v : captured_) {
      if (v->type->is_tensor() && v->type->place == ir::TensorPlace::kOnChip) shared.insert(v.get());
    }
    Block out;
    for (const auto& s : region_.body) {
      walk_stmts(s->body,
                 [&](const StmtPtr& x) { own_defs(*x, [&](const VarPtr& v) { shared.erase(v.get()); }); });
      walk_stmts(s->else_body,
                 [&](const StmtPtr& x) { own_defs(*x, [&](const VarPtr& v) { shared.erase(v.get()); }); });
      StmtPtr copy = cloner_->stmt(*s);
      for (size_t i = 0; s->kind == StmtKind::kAssign && i < s->targets.size(); ++i) {
        const VarPtr& v = s->targets[i];
        const bool moved = s->value->kind == ExprKind::kVar && s->value->var == v;
        if (!v || moved || shared.erase(v.get()) == 0) continue;
        copy->targets[i] = fn_->add_var(v->name, cloner_->type(v->type), VarKind::kLocal, v->span);
        cloner_->vars[v.get()] = copy->targets[i];
      }
      out.push_back(std::move(copy));
    }
    return out;
  }

  void copy_body() {
    fn_->body = prologue_;
    for (auto& s : without_self_moves(cloned_body())) fn_->body.push_back(std::move(s));
    for (const auto& o : outputs_) {
      if (o.create) continue;
      const VarPtr value = cloner_->var(o.var);
      std::vector<ExprPtr> zeros(o.type->shape.size(), ir::int_const(0, DType::kIndex, span_, true));
      AttrMap attrs;
      attrs.set(AttrKey::k_atomic, int64_t{0});
      ExprPtr call = ir::op_expr(
          OpId::k_assemble,
          {ir::var_ref(o.param, span_), ir::var_ref(value, span_), ir::tuple_expr(zeros, span_), nullptr},
          attrs, o.param->type, span_);
      fn_->body.push_back(evaluate(call, span_));
    }
  }

  void set_directions() {
    const auto found = accesses(fn_->body, fn_->params);
    for (size_t i = 0; i < fn_->params.size(); ++i) {
      const VarPtr& p = fn_->params[i];
      if (!p->type->is_array_like()) continue;
      const Access a = found.at(p.get());
      ParamDirection d =
          a.write ? (a.read ? ParamDirection::kInOut : ParamDirection::kOut) : ParamDirection::kIn;
      const bool output =
          std::any_of(outputs_.begin(), outputs_.end(), [&](const Output& o) { return o.param == p; });
      if (output && d == ParamDirection::kIn) d = ParamDirection::kOut;
      fn_->directions[i] = d;
    }
    fn_->effective_directions = fn_->directions;
  }

  // ---------------------------------------------------------------- code around the call

  void emit_code(Block& code) {
    for (const auto& o : outputs_) {
      o.outer->type = o.outer_type;
      args_[o.arg] = ir::var_ref(o.outer, span_);
    }
    emit_creates(code);
    code.push_back(make_task_call(owner_, fn_, args_, {}, *region_.facts, region_.blocks, no_dep_, span_));
    // Names that stand for a storage after the region. All are read before the first is set.
    std::vector<std::pair<VarPtr, VarPtr>> moves;
    for (const auto& [v, entry] : alias_) {
      if (v.get() == entry) continue;
      if (VarPtr source = find_var(entry)) moves.emplace_back(v, source);
    }
    const auto move = [&](const VarPtr& v, const VarPtr& source) {
      if (v != source) moves.emplace_back(v, source);
    };
    for (const auto& [v, create] : alias_create_) move(v, outer_creates_.at(create));
    for (const auto& [v, k] : alias_output_) move(v, outputs_[k].outer);
    std::vector<VarPtr> sources;
    for (size_t i = 0; i < moves.size(); ++i) {
      VarPtr source = moves[i].second;
      bool changes = slice_ && slice_->assigned().count(source.get()) > 0;
      for (size_t j = 0; j < i; ++j) changes = changes || moves[j].first == source;
      if (changes) {
        VarPtr saved = owner_.add_var(source->name, source->type, VarKind::kLocal, span_);
        code.push_back(assign({saved}, ir::var_ref(source, span_), span_));
        source = saved;
      }
      sources.push_back(source);
    }
    // The slice still sees the values on entry.
    if (slice_) {
      for (const auto& s : slice_->code()) code.push_back(s);
    }
    for (size_t i = 0; i < moves.size(); ++i) {
      code.push_back(assign({moves[i].first}, ir::var_ref(sources[i], span_), span_));
    }
  }

  VarPtr find_var(const Var* v) const {
    for (const auto& x : owner_.vars) {
      if (x.get() == v) return x;
    }
    return nullptr;
  }

  void emit_creates(Block& code) {
    VarSet in_shapes;
    for (const auto& o : outputs_) {
      for (const auto& e : shape_of(o)) {
        std::vector<const Var*> used;
        collect_vars(e, used);
        for (const Var* v : used) {
          if (assigned_.count(v)) in_shapes.insert(v);
        }
      }
    }
    // Extents computed in the region: run that computation on copies, the region itself is still to come.
    ir::Cloner copies(&owner_);
    bool sliced = false;
    std::unique_ptr<ControlSlice> slice;
    if (!in_shapes.empty()) {
      slice = std::make_unique<ControlSlice>(region_.body, outer_creates_, region_.facts->core_num);
      if (!slice->build(in_shapes)) {
        fail(ErrorClass::kParserTypeError,
             "The shape of a tensor made in the " + region_text() +
                 " and read after it cannot be computed in the control plane: " + slice->reason(),
             span_, "create the tensor before the region");
      }
      sliced = true;
      for (const auto& v : owner_.vars) {
        if (!assigned_.count(v.get())) copies.vars[v.get()] = v;
      }
      const VarSet entry = live_at_start(slice->code());
      for (const auto& v : std::vector<VarPtr>(owner_.vars)) {
        if (!entry.count(v.get()) || !assigned_.count(v.get())) continue;
        code.push_back(assign({copies.var(v)}, ir::var_ref(v, span_), span_));
      }
      for (auto& s : copies.block(slice->code())) code.push_back(std::move(s));
    }
    for (const auto& o : outputs_) {
      std::vector<ExprPtr> shape = shape_of(o);
      if (sliced) shape = copies.exprs(shape);
      AttrMap attrs;
      if (o.create) {
        attrs = o.create->attrs;
      } else {
        attrs.set(AttrKey::k_dtype, static_cast<int64_t>(o.type->dtype));
        attrs.set(AttrKey::k_layout, static_cast<int64_t>(ir::TensorLayout::kND));
        attrs.set(AttrKey::k_manual_dep, int64_t{0});
      }
      std::vector<ExprPtr> args(o.create
                                    ? o.create->args.size()
                                    : ir::op_params(ir::op_row(OpId::k_create_tensor), ir::kFormFlat).size());
      args[0] = ir::tuple_expr(shape, span_);
      if (o.create) {
        for (size_t i = 1; i < args.size(); ++i) args[i] = o.create->args[i];
      }
      code.push_back(assign({o.outer}, ir::op_expr(OpId::k_create_tensor, args, attrs, o.outer->type, span_),
                            o.var->span));
    }
  }

  std::vector<ExprPtr> shape_of(const Output& o) {
    if (o.create && !o.create->args.empty() && o.create->args[0] &&
        o.create->args[0]->kind == ExprKind::kTuple) {
      return o.create->args[0]->args;
    }
    std::vector<ExprPtr> shape;
    for (const auto& d : o.type->shape) {
      if (d.is_const()) {
        shape.push_back(ir::int_const(d.value, DType::kIndex, span_, true));
      } else if (d.expr) {
        shape.push_back(d.expr);
      } else {
        refuse(o.var, "leaves the " + region_text() + " but has an extent known only on the device",
               "create the tensor before the region");
      }
    }
    return shape;
  }

  Function& owner_;
  const Region& region_;
  Span span_;
  FunctionPtr fn_;
  VarSet assigned_;
  std::vector<VarPtr> leaving_, scalars_, captured_;
  std::vector<Output> outputs_;
  std::vector<std::pair<VarPtr, const Var*>> alias_;
  std::vector<std::pair<VarPtr, const ir::Expr*>> alias_create_;
  std::vector<std::pair<VarPtr, size_t>> alias_output_;
  std::unordered_map<const ir::Expr*, VarPtr> outer_creates_;
  std::unique_ptr<ControlSlice> slice_;
  std::unique_ptr<CreateCloner> cloner_;
  std::set<std::string> param_names_;
  std::vector<ExprPtr> args_;
  std::vector<bool> no_dep_;
  Block prologue_;
};

}  // namespace

FunctionNames::FunctionNames(const ir::Module& module) {
  for (const auto& f : module.functions) taken_.insert(f->name);
}

std::string FunctionNames::unique(const std::string& wanted) {
  std::string out = wanted;
  for (int k = 1; !taken_.insert(out).second; ++k) out = wanted + "_" + std::to_string(k);
  return out;
}

OutlinedRegion outline_region(Function& owner, const Region& region) { return Outliner(owner, region).run(); }

StmtPtr make_task_call(Function& owner, const FunctionPtr& callee, std::vector<ExprPtr> args,
                       std::vector<VarPtr> results, const ir::ScopeInfo& facts, bool blocks,
                       std::vector<bool> no_dep, const Span& span) {
  auto info = std::make_shared<ir::CallInfo>();
  info->callee = callee;
  no_dep.resize(args.size());
  info->no_dep = std::move(no_dep);
  info->has_deps = facts.has_deps;
  info->deps = facts.deps;
  info->predicate = facts.predicate;
  info->allow_early_resolve = facts.allow_early_resolve;
  for (const auto& v : facts.dumps) info->dumps.push_back(v->name);
  if (blocks) {
    info->spmd = true;
    info->core_num = facts.core_num;
    info->sync_start = facts.sync_start;
  }
  info->submit = blocks || facts.task || facts.has_deps || facts.predicate || facts.allow_early_resolve ||
                 !info->dumps.empty();
  auto e = std::make_shared<ir::Expr>();
  e->kind = ExprKind::kCall;
  e->span = span;
  e->args = std::move(args);
  std::vector<TypePtr> types = callee->return_types;
  std::vector<VarPtr> targets = std::move(results);
  if (info->submit) {
    types.push_back(ir::scalar_type(DType::kTaskId));
    VarPtr task = facts.task;
    if (!task)
      task = owner.add_var(callee->name + "_tid", ir::scalar_type(DType::kTaskId), VarKind::kTask, span);
    while (targets.size() + 1 < types.size()) {
      targets.push_back(owner.add_var("_", types[targets.size()], VarKind::kLocal, span));
    }
    targets.push_back(task);
    e->type = ir::tuple_type(types);
  } else {
    e->type = types.empty() ? ir::none_type() : types.size() == 1 ? types[0] : ir::tuple_type(types);
  }
  e->call = std::move(info);
  return targets.empty() ? evaluate(e, span) : assign(std::move(targets), e, span);
}

}  // namespace pypto::passes
