// SPDX-License-Identifier: Apache-2.0
#include "core/vm/emit.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/vm/emitter.h"
#include "core/vm/scalar.h"

namespace pypto::vm {

using namespace ir;  // NOLINT: the emitter reads IR throughout

// ------------------------------------------------------------------ registers

RegClass FunctionEmitter::class_of(const Type& type) {
  switch (type.kind) {
    case TypeKind::kTensor:
    case TypeKind::kTile:
      return RegClass::kView;
    case TypeKind::kArray:
      return RegClass::kArray;
    case TypeKind::kNone:
    case TypeKind::kString:
      return RegClass::kNone;
    default:
      return RegClass::kScalar;
  }
}

void FunctionEmitter::flatten(const Type& type, std::vector<const Type*>* out) {
  if (type.kind != TypeKind::kTuple) {
    out->push_back(&type);
    return;
  }
  for (const auto& t : type.elements) flatten(*t, out);
}

Reg FunctionEmitter::new_reg(RegClass cls, DType dtype) {
  Reg r;
  r.cls = cls;
  r.dtype = dtype;
  if (cls == RegClass::kScalar) r.index = out_.scalar_count++;
  if (cls == RegClass::kView) r.index = out_.view_count++;
  if (cls == RegClass::kArray) r.index = out_.array_count++;
  return r;
}

Reg FunctionEmitter::temp(RegClass cls, DType dtype) {
  if (cls == RegClass::kNone) return {};
  auto& list = free_[static_cast<int>(cls)];
  Reg r;
  if (list.empty()) {
    r = new_reg(cls, dtype);
  } else {
    r = list.back();
    list.pop_back();
    r.dtype = dtype;
  }
  temps_.push_back(r);
  return r;
}

void FunctionEmitter::recycle_temps(size_t mark) {
  while (temps_.size() > mark) {
    const Reg r = temps_.back();
    temps_.pop_back();
    if (r.cls == RegClass::kView) add(Opcode::kRelease, {}).a = r.index;
    free_[static_cast<int>(r.cls)].push_back(r);
  }
}

FunctionEmitter::Regs FunctionEmitter::regs_of_type(const Type& type, bool temporary) {
  std::vector<const Type*> parts;
  flatten(type, &parts);
  Regs out;
  for (const Type* t : parts)
    out.push_back(temporary ? temp(class_of(*t), t->dtype) : new_reg(class_of(*t), t->dtype));
  return out;
}

const FunctionEmitter::Regs& FunctionEmitter::var_regs(const VarPtr& var) {
  auto it = var_regs_.find(var.get());
  if (it != var_regs_.end()) return it->second;
  return var_regs_[var.get()] = regs_of_type(*var->type, false);
}

// ------------------------------------------------------------------ code

int32_t FunctionEmitter::site(const Span& span, std::string what) {
  const auto key = std::make_pair(what, span.line * 4096 + span.column);
  if (const auto it = site_index_.find(key); it != site_index_.end()) return it->second;
  out_.sites.push_back({span, std::move(what)});
  const auto index = static_cast<int32_t>(out_.sites.size()) - 1;
  site_index_[key] = index;
  return index;
}

Insn& FunctionEmitter::add(Opcode op, const Span& span, std::string what) {
  Insn in;
  in.op = op;
  if (span.known() || !what.empty()) in.site = site(span, std::move(what));
  out_.code.push_back(in);
  return out_.code.back();
}

void FunctionEmitter::patch_jumps(const std::vector<int32_t>& at, int32_t target) {
  for (const int32_t i : at) out_.code[static_cast<size_t>(i)].a = target;
}

void FunctionEmitter::move(const Reg& dst, const Reg& src, const Span& span) {
  if (dst.cls == RegClass::kNone || (dst.cls == src.cls && dst.index == src.index)) return;
  PYPTO_CHECK(dst.cls == src.cls, "value of one register class moved to another at " + span.text());
  const Opcode op = dst.cls == RegClass::kScalar ? Opcode::kMoveS
                    : dst.cls == RegClass::kView ? Opcode::kMoveV
                                                 : Opcode::kMoveA;
  Insn& in = add(op, span);
  in.dst = dst.index;
  in.a = src.index;
}

Reg FunctionEmitter::constant(int64_t value, DType dtype, const Span&) {
  const auto key = std::make_pair(value, static_cast<int>(dtype));
  if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
  return constants_[key] = new_reg(RegClass::kScalar, dtype);
}

Reg FunctionEmitter::float_constant(double value, DType dtype, const Span& span) {
  return constant(std::bit_cast<int64_t>(round_float(value, dtype)), dtype, span);
}

bool FunctionEmitter::kernel() const { return out_.level < Level::kChip; }

// ------------------------------------------------------------------ expressions

Reg FunctionEmitter::expr(const ExprPtr& e, const Reg* want) {
  if (!e) return {};
  switch (e->kind) {
    case ExprKind::kInt:
      if (e->type && is_float(e->type->dtype)) {
        return float_constant(static_cast<double>(e->int_value), e->type->dtype, e->span);
      }
      return constant(e->int_value, e->type ? e->type->dtype : DType::kIndex, e->span);
    case ExprKind::kFloat:
      return float_constant(e->float_value, e->type->dtype, e->span);
    case ExprKind::kNone:
      return constant(0, DType::kTaskId, e->span);
    case ExprKind::kDType:
      return constant(e->int_value, DType::kIndex, e->span);
    case ExprKind::kString:
      return {};
    default: {
      Regs wanted;
      if (want) wanted.push_back(*want);
      const Regs r = exprs(e, want ? &wanted : nullptr);
      return r.empty() ? Reg{} : r[0];
    }
  }
}

FunctionEmitter::Regs FunctionEmitter::exprs(const ExprPtr& e, const Regs* want) {
  switch (e->kind) {
    case ExprKind::kVar:
      return var_regs(e->var);
    case ExprKind::kTuple: {
      Regs out;
      for (const auto& item : e->args) {
        const Regs r = exprs(item, nullptr);
        out.insert(out.end(), r.begin(), r.end());
      }
      return out;
    }
    case ExprKind::kItem: {
      const Type& t = *e->args[0]->type;
      const Regs all = exprs(e->args[0], nullptr);
      size_t at = 0;
      for (int64_t k = 0; k < e->int_value; ++k) {
        std::vector<const Type*> parts;
        flatten(*t.elements[static_cast<size_t>(k)], &parts);
        at += parts.size();
      }
      std::vector<const Type*> parts;
      flatten(*t.elements[static_cast<size_t>(e->int_value)], &parts);
      return Regs(all.begin() + static_cast<std::ptrdiff_t>(at),
                  all.begin() + static_cast<std::ptrdiff_t>(at + parts.size()));
    }
    case ExprKind::kOp:
      return operation(*e, want);
    case ExprKind::kCall:
      return call(*e, want);
    default:
      return {expr(e, want && !want->empty() ? want->data() : nullptr)};
  }
}

bool FunctionEmitter::used_as_value(const OpRow& row, int param) const {
  if (row.id == OpId::k_tensor_remote_store) return param == 0;
  if (row.alias == AliasClass::kView || row.alias == AliasClass::kNone || row.id == OpId::k_load)
    return false;
  if (row.cost == CostClass::kComm) return false;
  return !(row.alias == AliasClass::kInPlace && param == row.inplace_param);
}

Operand FunctionEmitter::operand(const ExprPtr& e, bool as_value) {
  Operand o;
  if (!e || e->kind == ExprKind::kString) return o;
  if (e->kind == ExprKind::kTuple) {
    o.kind = Operand::Kind::kList;
    for (const auto& item : e->args) {
      o.list.push_back(expr(item));
    }
    return o;
  }
  o.kind = Operand::Kind::kReg;
  if (e->kind == ExprKind::kVar) {
    o.name = e->var->name;
    if (as_value) {
      if (const auto it = snapshots_.find(e->var.get()); it != snapshots_.end()) {
        o.reg = it->second;
        return o;
      }
    }
  }
  o.reg = as_value && cut_from_snapshot(e) ? value_of_address(e) : expr(e);
  if (o.name.empty() && e->type && e->type->storage) o.name = e->type->storage->name;
  return o;
}

namespace {

bool scalar_row(OpId id) {
  return (id >= OpId::k_scalar_add && id <= OpId::k_scalar_not) || id == OpId::k_min || id == OpId::k_max;
}

DType compute_dtype(const Expr& e) {
  const DType l = e.args[0]->type->dtype;
  const DType r = e.args.size() > 1 && e.args[1] ? e.args[1]->type->dtype : l;
  if (is_float(l) || is_float(r)) {
    if (e.type && is_float(e.type->dtype)) return e.type->dtype;
    return DType::kFp32;
  }
  switch (e.op) {
    case OpId::k_scalar_eq:
    case OpId::k_scalar_ne:
    case OpId::k_scalar_lt:
    case OpId::k_scalar_le:
    case OpId::k_scalar_gt:
    case OpId::k_scalar_ge:
    case OpId::k_scalar_and:
    case OpId::k_scalar_or:
    case OpId::k_scalar_not:
      return l == DType::kUInt64 && r == DType::kUInt64 ? DType::kUInt64 : DType::kInt64;
    default:
      return e.type ? e.type->dtype : l;
  }
}

}  // namespace

Reg FunctionEmitter::scalar_op(const Expr& e, const Reg* want) {
  const Reg a = expr(e.args[0]);
  const Reg b = e.args.size() > 1 && e.args[1] ? expr(e.args[1]) : Reg{};
  const Reg dst = want ? *want : temp(RegClass::kScalar, e.type->dtype);
  Insn& in = add(Opcode::kScalar, e.span);
  in.sub = static_cast<uint16_t>(e.op);
  in.dtype = compute_dtype(e);
  in.dst = dst.index;
  in.a = a.index;
  in.b = b.index;
  return dst;
}

FunctionEmitter::Regs FunctionEmitter::operation(const Expr& e, const Regs* want) {
  const OpRow& row = op_row(e.op);
  const Reg* want0 = want && want->size() == 1 ? want->data() : nullptr;
  if (scalar_row(e.op)) return {scalar_op(e, want0)};
  switch (e.op) {
    case OpId::k_scalar_cast: {
      const Reg a = expr(e.args[0]);
      if (const std::string what = e.attrs.get_string(AttrKey::k_name); !what.empty()) {
        Insn& check = add(Opcode::kRangeCheck, e.span, what);
        check.dtype = e.type->dtype;
        check.a = a.index;
      }
      const Reg dst = want0 ? *want0 : temp(RegClass::kScalar, e.type->dtype);
      Insn& in = add(Opcode::kCast, e.span);
      in.dtype = e.args[0]->type->dtype;
      in.dtype2 = e.type->dtype;
      in.dst = dst.index;
      in.a = a.index;
      return {dst};
    }
    case OpId::k_dim: {
      const Reg a = expr(e.args[0]);
      const Reg dst = want0 ? *want0 : temp(RegClass::kScalar, DType::kIndex);
      int64_t axis = e.attrs.get_int(AttrKey::k_axis);
      if (!e.attrs.find(AttrKey::k_axis) && e.args.size() > 1) axis = const_int(e.args[1]).value_or(0);
      if (axis < 0) axis += e.args[0]->type->rank();
      Insn& in = add(Opcode::kDim, e.span);
      in.dst = dst.index;
      in.a = a.index;
      in.b = static_cast<int32_t>(axis);
      return {dst};
    }
    case OpId::k_array_create: {
      const Reg dst = want0 ? *want0 : temp(RegClass::kArray, e.type->dtype);
      Insn& in = add(Opcode::kArrayNew, e.span);
      in.dtype = e.type->dtype;
      in.dst = dst.index;
      in.a = static_cast<int32_t>(e.type->shape[0].value);
      return {dst};
    }
    case OpId::k_array_get: {
      const Reg a = expr(e.args[0]);
      const Reg i = expr(e.args[1]);
      const Reg dst = want0 ? *want0 : temp(RegClass::kScalar, e.type->dtype);
      Insn& in =
          add(Opcode::kArrayGet, e.span, e.args[0]->kind == ExprKind::kVar ? e.args[0]->var->name : "array");
      in.dst = dst.index;
      in.a = a.index;
      in.b = i.index;
      return {dst};
    }
    case OpId::k_array_update: {
      const Reg a = expr(e.args[0]);
      const Reg i = expr(e.args[1]);
      const Reg v = expr(e.args[2]);
      const Reg dst = want0 ? *want0 : temp(RegClass::kArray, e.type->dtype);
      if (dst.index != a.index) move(dst, a, e.span);
      Insn& in =
          add(Opcode::kArraySet, e.span, e.args[0]->kind == ExprKind::kVar ? e.args[0]->var->name : "array");
      in.dst = dst.index;
      in.a = i.index;
      in.b = v.index;
      return {dst};
    }
    case OpId::k_create_tensor: {
      CreateInsn c;
      c.dtype = e.type->dtype;
      if (!e.args.empty() && e.args[0]) {
        for (const auto& d : e.args[0]->args) c.shape.push_back(expr(d));
      }
      c.manual_dep = e.attrs.get_int(AttrKey::k_manual_dep) != 0;
      c.has_init = e.attrs.find(AttrKey::k_init_value) != nullptr;
      c.init = e.attrs.get_float(AttrKey::k_init_value);
      c.on_chip = kernel() && !(e.type->storage && e.type->storage->needs_global);
      c.name = e.type->storage ? e.type->storage->name : std::string();
      const Reg dst = want0 ? *want0 : temp(RegClass::kView, e.type->dtype);
      out_.creates.push_back(std::move(c));
      Insn& in = add(Opcode::kCreate, e.span);
      in.dst = dst.index;
      in.a = static_cast<int32_t>(out_.creates.size()) - 1;
      return {dst};
    }
    case OpId::k_no_dep:
      return exprs(e.args[0], want);
    case OpId::k_task_invalid:
      return {constant(0, DType::kTaskId, e.span)};
    default:
      break;
  }
  OpInsn op;
  op.op = e.op;
  op.attrs = e.attrs;
  const bool base_value = std::exchange(base_as_value_, false);
  for (size_t i = 0; i < e.args.size(); ++i) {
    op.operands.push_back(
        operand(e.args[i], used_as_value(row, static_cast<int>(i)) || (i == 0 && base_value)));
  }
  std::vector<const Type*> parts;
  if (e.type) flatten(*e.type, &parts);
  for (size_t k = 0; k < parts.size(); ++k) {
    const Type& t = *parts[k];
    if (class_of(t) == RegClass::kNone) continue;
    op.results.push_back(want && want->size() == parts.size() ? (*want)[k] : temp(class_of(t), t.dtype));
    op.results.back().dtype = t.dtype;
    op.result_is_tile.push_back(t.is_tile());
    op.result_space.push_back(t.space);
  }
  Regs results = op.results;
  out_.ops.push_back(std::move(op));
  add(Opcode::kOp, e.span, row.name).a = static_cast<int32_t>(out_.ops.size()) - 1;
  if (row.alias == AliasClass::kInPlace && row.inplace_param >= 0) {
    const ExprPtr& target = e.args[static_cast<size_t>(row.inplace_param)];
    if (target && target->kind == ExprKind::kVar && snapshots_.count(target->var.get())) {
      // The value of an address includes what was written through it since (01 L-87).
      OpInsn copy;
      copy.op = OpId::k_snapshot;
      copy.operands.push_back({Operand::Kind::kReg, var_regs(target->var)[0], {}, target->var->name});
      copy.results.push_back(snapshots_[target->var.get()]);
      copy.result_is_tile.push_back(0);
      copy.result_space.push_back(MemorySpace::kUnset);
      out_.ops.push_back(std::move(copy));
      add(Opcode::kOp, e.span, "slice").a = static_cast<int32_t>(out_.ops.size()) - 1;
    }
  }
  return results;
}

FunctionEmitter::Regs FunctionEmitter::call(const Expr& e, const Regs* want) {
  const CallInfo& info = *e.call;
  const Function& callee = *info.callee;
  CallInsn c;
  const auto it = index_.find(&callee);
  PYPTO_CHECK(it != index_.end(), "callee '" + callee.name + "' is not part of the program");
  c.callee = it->second;
  for (const auto& a : e.args) c.args.push_back(expr(a));
  c.no_dep.assign(c.args.size(), 0);
  c.dump.assign(c.args.size(), 0);
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (i < info.no_dep.size() && info.no_dep[i]) c.no_dep[i] = 1;
    if (e.args[i] && e.args[i]->kind == ExprKind::kOp && e.args[i]->op == OpId::k_no_dep) c.no_dep[i] = 1;
    for (const auto& name : info.dumps) {
      if (e.args[i] && e.args[i]->kind == ExprKind::kVar && e.args[i]->var->name == name) c.dump[i] = 1;
    }
  }
  const bool callee_control = callee.level >= Level::kChip || callee.type == FunctionType::kOrchestration ||
                              callee.type == FunctionType::kGraph || callee.type == FunctionType::kOpaque;
  const bool caller_host = out_.level >= Level::kHost;
  if (out_.type == FunctionType::kGroup) {
    c.member = true;
  } else if (kernel()) {
    c.local = true;
  } else if (callee_control && !caller_host && !callee.is_sub_worker) {
    c.local = true;
  }
  c.has_deps = info.has_deps;
  for (const auto& d : info.deps) c.deps.push_back(expr(d));
  if (info.core_num) c.core_num = expr(info.core_num);
  c.sync_start = info.sync_start;
  if (info.device) c.device = expr(info.device);
  c.allow_early_resolve = info.allow_early_resolve;
  if (info.predicate) {
    const Expr& p = *info.predicate;
    const bool left = p.args[0]->kind == ExprKind::kOp;
    const Expr& read = left ? *p.args[0] : *p.args[1];
    c.has_predicate = true;
    c.predicate_tensor = expr(read.args[0]);
    for (const auto& i : read.args[1]->args) c.predicate_index.push_back(expr(i));
    c.predicate_op = p.op;
    c.predicate_value = const_int(left ? p.args[1] : p.args[0]).value_or(0);
    if (!left) {
      if (p.op == OpId::k_scalar_lt) c.predicate_op = OpId::k_scalar_gt;
      if (p.op == OpId::k_scalar_le) c.predicate_op = OpId::k_scalar_ge;
      if (p.op == OpId::k_scalar_gt) c.predicate_op = OpId::k_scalar_lt;
      if (p.op == OpId::k_scalar_ge) c.predicate_op = OpId::k_scalar_le;
    }
  }
  c.group_site = loop_site_;
  const size_t result_count = callee.return_types.size();
  Regs results;
  std::vector<std::pair<Reg, Reg>> moves;
  for (size_t k = 0; k < result_count; ++k) {
    const Type& t = *callee.return_types[k];
    const Reg wanted = want && k < want->size() ? (*want)[k] : temp(class_of(t), t.dtype);
    const int p = k < callee.return_params.size() ? callee.return_params[k] : -1;
    if (!c.local && p >= 0 && static_cast<size_t>(p) < c.args.size()) {
      moves.emplace_back(wanted, c.args[static_cast<size_t>(p)]);
      c.results.push_back({});
    } else if (caller_host && !c.local && !callee.is_sub_worker && t.is_array_like()) {
      if (want) {
        fail(ErrorClass::kValueError,
             "result " + std::to_string(k) + " of '" + callee.name +
                 "' is not one of its parameters: a dispatch hands back " +
                 "nothing that the device made or reshaped",
             e.span, "write it to a pl.Out parameter of '" + callee.name + "' and use that argument");
      }
      c.results.push_back({});
    } else {
      c.results.push_back(wanted);
    }
    results.push_back(wanted);
  }
  if (info.submit) {
    c.task =
        want && result_count < want->size() ? (*want)[result_count] : temp(RegClass::kScalar, DType::kTaskId);
    results.push_back(c.task);
  }
  out_.calls.push_back(std::move(c));
  add(Opcode::kCall, e.span, callee.name).a = static_cast<int32_t>(out_.calls.size()) - 1;
  for (const auto& [dst, src] : moves) move(dst, src, e.span);
  return results;
}

// ------------------------------------------------------------------ statements

void FunctionEmitter::block(const Block& b) {
  for (const auto& s : b) {
    const size_t mark = temps_.size();
    statement(*s);
    recycle_temps(mark);
    release_dead(b, *s);
  }
}

void FunctionEmitter::release_dead(const Block& b, const Stmt& s) {
  if (s.kind == StmtKind::kReturn || s.kind == StmtKind::kBreak || s.kind == StmtKind::kContinue) return;
  const auto dying = dying_.find(&s);
  if (dying == dying_.end()) return;
  std::vector<int32_t> dead;
  for (const Var* var : dying->second) {
    if (uses_.ranges.at(var).block != &b || var->kind == VarKind::kParam) continue;
    const auto it = var_regs_.find(var);
    if (it == var_regs_.end()) continue;
    for (const Reg& r : it->second) {
      if (r.cls == RegClass::kView) dead.push_back(r.index);
    }
  }
  std::sort(dead.begin(), dead.end());
  for (const int32_t r : dead) add(Opcode::kRelease, {}).a = r;
}

void FunctionEmitter::statement(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kAssign:
      assign(s);
      break;
    case StmtKind::kEval:
      exprs(s.value, nullptr);
      break;
    case StmtKind::kFor:
      for_loop(s);
      break;
    case StmtKind::kWhile:
      while_loop(s);
      break;
    case StmtKind::kIf:
      branch(s);
      break;
    case StmtKind::kScope:
      scope(s);
      break;
    case StmtKind::kReturn:
      give_back(s);
      break;
    case StmtKind::kBreak:
      PYPTO_CHECK(!loops_.empty(), "break outside a loop");
      loops_.back().breaks.push_back(here());
      add(Opcode::kJump, s.span);
      break;
    case StmtKind::kContinue:
      PYPTO_CHECK(!loops_.empty(), "continue outside a loop");
      loops_.back().continues.push_back(here());
      add(Opcode::kJump, s.span);
      break;
    case StmtKind::kYield:
      yield(s);
      break;
    case StmtKind::kComment:
      break;
  }
}

bool FunctionEmitter::cut_from_snapshot(const ExprPtr& e) const {
  const Expr* at = e.get();
  bool address = false;
  while (at && at->kind == ExprKind::kOp && op_row(at->op).alias == AliasClass::kView && at->type &&
         at->type->is_tensor() && !at->args.empty()) {
    address = true;
    at = at->args[0].get();
  }
  return address && at && at->kind == ExprKind::kVar && snapshots_.count(at->var.get()) != 0;
}

Reg FunctionEmitter::value_of_address(const ExprPtr& e) {
  base_as_value_ = true;
  const Reg out = expr(e);
  base_as_value_ = false;
  return out;
}

bool FunctionEmitter::needs_snapshot(const Var& var, const ExprPtr& value) const {
  if (!kernel() || value->kind != ExprKind::kOp || !var.type->is_tensor()) return false;
  if (op_row(value->op).alias != AliasClass::kView || !uses_.value_uses.count(&var)) return false;
  // Nobody else can name what an address of a nameless value is cut from.
  const Expr* base = value.get();
  while (base && base->kind == ExprKind::kOp && op_row(base->op).alias == AliasClass::kView &&
         !base->args.empty()) {
    base = base->args[0].get();
  }
  if (!options_.force_copies && base && base->kind == ExprKind::kOp &&
      op_row(base->op).alias == AliasClass::kValue) {
    return false;
  }
  if (options_.force_copies) return true;
  const Type& t = *value->type;
  if (t.is_window()) return uses_.unknown_written || uses_.waits || !uses_.written.empty();
  return uses_.unknown_written || !t.storage || uses_.written.count(t.storage.get()) != 0;
}

void FunctionEmitter::assign(const Stmt& s) {
  Regs targets;
  for (const auto& t : s.targets) {
    const Regs& r = var_regs(t);
    targets.insert(targets.end(), r.begin(), r.end());
  }
  const bool copies = options_.force_copies || uses_.tile_in_place;
  auto copy_tile = [&](const Reg& dst, const Reg& src, const std::string& name) {
    OpInsn op;
    op.op = OpId::k_copy_tile;
    op.operands.push_back({Operand::Kind::kReg, src, {}, name});
    op.results.push_back(dst);
    op.result_is_tile.push_back(1);
    op.result_space.push_back(MemorySpace::kUnset);
    out_.ops.push_back(std::move(op));
    add(Opcode::kOp, s.span, name).a = static_cast<int32_t>(out_.ops.size()) - 1;
  };
  if (s.value->kind == ExprKind::kTuple) {
    // Every element is read before the first target is written (a, b = b, a).
    Regs values;
    for (const auto& item : s.value->args) {
      const bool tile = item->type && item->type->is_tile() && item->kind == ExprKind::kVar;
      for (const Reg& r : exprs(item, nullptr)) {
        const Reg t = temp(r.cls, r.dtype);
        if (tile && copies) {
          copy_tile(t, r, item->var->name);
        } else {
          move(t, r, s.span);
        }
        values.push_back(t);
      }
    }
    for (size_t i = 0; i < targets.size() && i < values.size(); ++i) move(targets[i], values[i], s.span);
    return;
  }
  const bool plain = s.value->kind == ExprKind::kVar || s.value->kind == ExprKind::kItem;
  if (plain && copies && s.value->type->is_tile() && targets.size() == 1) {
    const Reg src = expr(s.value);
    if (src.index != targets[0].index) copy_tile(targets[0], src, s.targets[0]->name);
    return;
  }
  // The value goes straight to its target unless the target is still read while it is computed.
  const Regs values = exprs(s.value, &targets);
  for (size_t i = 0; i < targets.size() && i < values.size(); ++i) move(targets[i], values[i], s.span);
  if (s.value->kind == ExprKind::kOp && s.value->op == OpId::k_aic_gather && s.targets.size() == 1) {
    gathered_.insert(s.targets[0].get());
  }
  if (s.targets.size() == 1) {
    const Var& var = *s.targets[0];
    if (needs_snapshot(var, s.value)) {
      const bool base_value = cut_from_snapshot(s.value);
      if (!snapshots_.count(&var)) snapshots_[&var] = new_reg(RegClass::kView, var.type->dtype);
      OpInsn op;
      op.op = OpId::k_snapshot;
      const Reg from = base_value ? value_of_address(s.value) : targets[0];
      op.operands.push_back({Operand::Kind::kReg, from, {}, var.name});
      op.results.push_back(snapshots_[&var]);
      op.result_is_tile.push_back(0);
      op.result_space.push_back(MemorySpace::kUnset);
      out_.ops.push_back(std::move(op));
      add(Opcode::kOp, s.span, "slice").a = static_cast<int32_t>(out_.ops.size()) - 1;
    } else if (const auto known =
                   s.value->kind == ExprKind::kVar ? snapshots_.find(s.value->var.get()) : snapshots_.end();
               known != snapshots_.end() && known->first != &var && uses_.value_uses.count(&var)) {
      // One more name of an address: as a value it is the same bytes.
      const Reg from = known->second;
      if (!snapshots_.count(&var)) snapshots_[&var] = new_reg(RegClass::kView, var.type->dtype);
      move(snapshots_[&var], from, s.span);
    } else if (snapshots_.count(&var)) {
      // Another value now; later uses must not see the old snapshot.
      move(snapshots_[&var], targets[0], s.span);
    }
  }
}

void FunctionEmitter::yield(const Stmt& s) {
  Regs values;
  for (const auto& v : s.values) {
    for (const Reg& r : exprs(v, nullptr)) {
      const Reg t = temp(r.cls, r.dtype);
      move(t, r, s.span);
      values.push_back(t);
    }
  }
  size_t at = 0;
  for (const auto& t : s.targets) {
    for (const Reg& r : var_regs(t)) {
      if (at < values.size()) move(r, values[at++], s.span);
    }
  }
}

void FunctionEmitter::begin_carries(const Stmt& s) {
  std::vector<std::pair<Regs, Regs>> moves;
  for (const auto& c : s.carries) {
    if (c.init) moves.emplace_back(var_regs(c.var), exprs(c.init, nullptr));
  }
  for (const auto& [dst, src] : moves) {
    for (size_t i = 0; i < dst.size() && i < src.size(); ++i) move(dst[i], src[i], s.span);
  }
}

namespace {

/// The yield that ends an iteration, if the loop was written with one.
const Stmt* final_yield(const Stmt& loop) {
  if (!loop.explicit_carry || loop.body.empty()) return nullptr;
  const Stmt& last = *loop.body.back();
  return last.kind == StmtKind::kYield ? &last : nullptr;
}

/// Task handles that a parallel loop rebinds stand for all iterations afterwards (01 L-135).
void collect_handles(const Block& b, std::vector<VarPtr>* out) {
  for (const auto& s : b) {
    for (const auto& t : s->targets) {
      if (t->type->is_scalar() && t->type->dtype == DType::kTaskId &&
          std::find(out->begin(), out->end(), t) == out->end()) {
        out->push_back(t);
      }
    }
    collect_handles(s->body, out);
    collect_handles(s->else_body, out);
  }
}

}  // namespace

void FunctionEmitter::for_loop(const Stmt& s) {
  begin_carries(s);
  auto keep = [&](const ExprPtr& e, int64_t fallback) {
    const Reg r = new_reg(RegClass::kScalar, DType::kInt64);
    const size_t mark = temps_.size();
    move(r, e ? expr(e) : constant(fallback, DType::kInt64, s.span), s.span);
    recycle_temps(mark);
    return r;
  };
  const Reg counter = keep(s.start, 0);
  const Reg stop = keep(s.stop, 0);
  const Reg step = keep(s.step, 1);
  if (s.step && !const_int(s.step)) add(Opcode::kForCheck, s.span).a = step.index;
  std::vector<std::pair<VarPtr, Reg>> handles;
  if (!kernel() && s.for_kind == ForKind::kParallel) {
    std::vector<VarPtr> vars;
    collect_handles(s.body, &vars);
    for (const auto& v : vars) {
      const auto it = uses_.ranges.find(v.get());
      if (it == uses_.ranges.end() || it->second.block == &s.body) continue;
      const Reg all = new_reg(RegClass::kScalar, DType::kTaskId);
      move(all, constant(0, DType::kTaskId, s.span), s.span);
      handles.emplace_back(v, all);
    }
  }
  const int32_t saved_site = loop_site_;
  loop_site_ = site(s.span, "loop");
  const int32_t head = here();
  Insn& test = add(Opcode::kForTest, s.span);
  test.a = counter.index;
  test.b = stop.index;
  test.c = step.index;
  move(var_regs(s.loop_var)[0], counter, s.span);
  loops_.push_back({});
  loops_.back().stmt = &s;
  block(s.body);
  if (const Stmt* y = final_yield(s)) {
    for (size_t k = 0; k < s.carries.size() && k < y->targets.size(); ++k) {
      const Regs dst = var_regs(s.carries[k].var);
      const Regs src = var_regs(y->targets[k]);
      for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
    }
  }
  patch_jumps(loops_.back().continues, here());
  for (const auto& [var, all] : handles) {
    OpInsn op;
    op.op = OpId::k_task_dummy;
    op.operands.push_back({Operand::Kind::kList, {}, {all, var_regs(var)[0]}, {}});
    op.results.push_back(all);
    op.result_is_tile.push_back(0);
    op.result_space.push_back(MemorySpace::kUnset);
    out_.ops.push_back(std::move(op));
    add(Opcode::kOp, s.span, "parallel").a = static_cast<int32_t>(out_.ops.size()) - 1;
  }
  Insn& next = add(Opcode::kScalar, s.span);
  next.sub = static_cast<uint16_t>(OpId::k_scalar_add);
  next.dtype = DType::kInt64;
  next.dst = next.a = counter.index;
  next.b = step.index;
  add(Opcode::kJump, s.span).a = head;
  out_.code[static_cast<size_t>(head)].dst = here();
  patch_jumps(loops_.back().breaks, here());
  loops_.pop_back();
  loop_site_ = saved_site;
  for (const auto& [var, all] : handles) move(var_regs(var)[0], all, s.span);
  for (const auto& c : s.carries) {
    if (!c.result || c.result == c.var) continue;
    const Regs dst = var_regs(c.result);
    const Regs src = var_regs(c.var);
    for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
  }
}

void FunctionEmitter::while_loop(const Stmt& s) {
  begin_carries(s);
  loops_.push_back({});
  const int32_t head = here();
  int32_t leave = -1;
  if (s.value) {
    const size_t mark = temps_.size();
    const Reg c = expr(s.value);
    leave = here();
    add(Opcode::kBranchFalse, s.span).a = c.index;
    recycle_temps(mark);
  }
  block(s.body);
  if (const Stmt* y = final_yield(s)) {
    for (size_t k = 0; k < s.carries.size() && k < y->targets.size(); ++k) {
      const Regs dst = var_regs(s.carries[k].var);
      const Regs src = var_regs(y->targets[k]);
      for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
    }
  }
  patch_jumps(loops_.back().continues, head);
  add(Opcode::kJump, s.span).a = head;
  if (leave >= 0) out_.code[static_cast<size_t>(leave)].b = here();
  patch_jumps(loops_.back().breaks, here());
  loops_.pop_back();
  for (const auto& c : s.carries) {
    if (!c.result || c.result == c.var) continue;
    const Regs dst = var_regs(c.result);
    const Regs src = var_regs(c.var);
    for (size_t i = 0; i < dst.size(); ++i) move(dst[i], src[i], s.span);
  }
}

void FunctionEmitter::branch(const Stmt& s) {
  const size_t mark = temps_.size();
  const Reg c = expr(s.value);
  const int32_t test = here();
  add(Opcode::kBranchFalse, s.span).a = c.index;
  recycle_temps(mark);
  block(s.body);
  if (s.else_body.empty()) {
    out_.code[static_cast<size_t>(test)].b = here();
    return;
  }
  const int32_t skip = here();
  add(Opcode::kJump, s.span);
  out_.code[static_cast<size_t>(test)].b = here();
  block(s.else_body);
  out_.code[static_cast<size_t>(skip)].a = here();
}

void FunctionEmitter::scope(const Stmt& s) {
  const ScopeInfo& info = *s.scope;
  switch (info.kind) {
    case ScopeKind::kSplitAiv:
      split_aiv(s);
      return;
    case ScopeKind::kAuto:
    case ScopeKind::kManual:
    case ScopeKind::kHierarchy:
      add(Opcode::kScopeBegin, s.span).a = static_cast<int32_t>(info.kind);
      block(s.body);
      add(Opcode::kScopeEnd, s.span).a = static_cast<int32_t>(info.kind);
      return;
    default:
      PYPTO_CHECK(false, "a region was not outlined before emission");
  }
}

void FunctionEmitter::split_aiv(const Stmt& s) {
  const int32_t at = here();
  add(Opcode::kLanes, s.span, "split_aiv");
  LanesInsn lanes;
  lanes.mode = s.scope->mode;
  lanes.lane_reg = var_regs(s.scope->loop_var)[0].index;
  lanes.begin = here();
  block(s.body);
  lanes.end = here();
  // Every gathered value keeps its register; the parent's copy becomes the joined value.
  for (const Var* var : gathered_) {
    const auto it = uses_.ranges.find(var);
    if (it == uses_.ranges.end() || it->second.block == &s.body) continue;
    const int32_t reg = var_regs_.at(var)[0].index;
    lanes.joins.push_back({reg, reg, out_.code[static_cast<size_t>(at)].site});
  }
  gathered_.clear();
  std::sort(lanes.joins.begin(), lanes.joins.end(),
            [](const auto& x, const auto& y) { return x.lane_view < y.lane_view; });
  out_.lanes.push_back(std::move(lanes));
  out_.code[static_cast<size_t>(at)].a = static_cast<int32_t>(out_.lanes.size()) - 1;
}

void FunctionEmitter::give_back(const Stmt& s) {
  Regs values;
  for (const auto& v : s.values) {
    const Regs r = exprs(v, nullptr);
    values.insert(values.end(), r.begin(), r.end());
  }
  for (size_t i = 0; i < out_.results.size() && i < values.size(); ++i) {
    if (out_.results[i].cls == values[i].cls) move(out_.results[i], values[i], s.span);
  }
  add(Opcode::kReturn, s.span);
}

// ------------------------------------------------------------------ functions

FunctionEmitter::FunctionEmitter(const Module& module, const Function& fn,
                                 const std::map<const Function*, int>& index, const EmitOptions& options)
    : module_(module), fn_(fn), index_(index), options_(options), uses_(analyse_uses(fn)) {
  for (const auto& [var, range] : uses_.ranges) {
    if (range.last) dying_[range.last].push_back(var);
  }
}

namespace {

/// `dim` is var, var * k or k * var: the factor, else 0.
int64_t symbol_factor(const Dim& dim, const Var* var) {
  if (!dim.expr) return 0;
  const Expr& e = *dim.expr;
  if (e.kind == ExprKind::kVar) return e.var.get() == var || e.var->name == var->name ? 1 : 0;
  if (e.kind != ExprKind::kOp || e.op != OpId::k_scalar_mul) return 0;
  for (int side = 0; side < 2; ++side) {
    const auto& x = e.args[static_cast<size_t>(side)];
    const auto k = const_int(e.args[static_cast<size_t>(1 - side)]);
    if (k && *k > 0 && x->kind == ExprKind::kVar && (x->var.get() == var || x->var->name == var->name))
      return *k;
  }
  return 0;
}

void find_symbol(const Function& fn, const VarPtr& symbol, bool used, std::vector<SymbolBinding>* out,
                 int32_t reg) {
  SymbolBinding b;
  b.reg = reg;
  b.name = symbol->name;
  b.used_as_value = used;
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t p = 0; p < fn.params.size(); ++p) {
      const Type& t = *fn.params[p]->type;
      if (!t.is_array_like()) continue;
      const Shape* shapes[2] = {&t.shape, t.tensor_view ? &t.tensor_view->valid_shape : nullptr};
      for (int which = 0; which < 2; ++which) {
        if (!shapes[which]) continue;
        for (size_t axis = 0; axis < shapes[which]->size(); ++axis) {
          const int64_t k = symbol_factor((*shapes[which])[axis], symbol.get());
          if (k == 0 || (pass == 0 && (k != 1 || which == 1))) continue;
          if (b.param < 0) {
            b.param = static_cast<int32_t>(p);
            b.axis = static_cast<int32_t>(axis);
            b.valid = which == 1;
            b.divide = k;
          } else if (pass == 0) {
            b.others.emplace_back(static_cast<int32_t>(p), static_cast<int32_t>(axis));
          }
        }
      }
    }
    if (b.param >= 0) break;
  }
  if (b.param >= 0) out->push_back(std::move(b));
}

bool writes_remotely(const Block& body, const Var* param);

bool writes_remotely(const ExprPtr& e, const Var* param) {
  if (!e) return false;
  if (e->kind == ExprKind::kOp) {
    const std::string_view effects = op_row(e->op).effects;
    for (size_t i = 0; i < e->args.size(); ++i) {
      const auto& a = e->args[i];
      const char c = i < effects.size() ? effects[i] : '-';
      if ((c == 'W' || c == 'A' || c == 'n' || c == 's' || c == 'R') && a && a->type && a->type->storage) {
        const Var* v = a->kind == ExprKind::kVar ? a->var.get() : nullptr;
        if (v == param || (param->type->storage && a->type->storage == param->type->storage)) return true;
      }
    }
  }
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const ExprPtr& a) { return writes_remotely(a, param); });
}

bool writes_remotely(const Block& body, const Var* param) {
  for (const auto& s : body) {
    if (writes_remotely(s->value, param) || writes_remotely(s->body, param) ||
        writes_remotely(s->else_body, param))
      return true;
  }
  return false;
}

}  // namespace

FunctionCode FunctionEmitter::emit() {
  out_.name = fn_.name;
  out_.type = fn_.type;
  out_.level = fn_.level;
  out_.role = fn_.role;
  out_.auto_scope = fn_.auto_scope;
  out_.span = fn_.span;
  out_.host_callable = fn_.host_callable;
  out_.requires_binding = fn_.requires_runtime_binding;
  if (fn_.type == FunctionType::kOrchestration || fn_.type == FunctionType::kGraph ||
      (fn_.type == FunctionType::kOpaque && out_.level < Level::kChip)) {
    out_.level = std::max(out_.level, Level::kChip);
  }
  if (fn_.is_kernel() || fn_.type == FunctionType::kGroup || fn_.type == FunctionType::kSpmd) {
    out_.level = std::min(out_.level, Level::kChipDie);
  }
  out_.core = fn_.uses_cube && fn_.uses_vector ? CoreKind::kMixed
              : fn_.uses_cube                  ? CoreKind::kCube
              : fn_.uses_vector                ? CoreKind::kVector
                                               : CoreKind::kScalarOnly;
  if (const auto* dual = fn_.attr("dual_aiv_dispatch"))
    out_.dual_aiv = dual->int_value != 0 || dual->value == "True";
  for (size_t p = 0; p < fn_.params.size(); ++p) {
    ParamInfo info;
    info.name = fn_.params[p]->name;
    info.type = fn_.params[p]->type;
    info.reg = var_regs(fn_.params[p])[0];
    info.declared = p < fn_.directions.size() ? fn_.directions[p] : ParamDirection::kIn;
    info.effective = p < fn_.effective_directions.size() ? fn_.effective_directions[p] : info.declared;
    info.remote_target = info.type->is_window() && writes_remotely(fn_.body, fn_.params[p].get());
    info.span = fn_.params[p]->span;
    out_.params.push_back(std::move(info));
  }
  for (const auto& symbol : fn_.symbols) {
    const Reg r = var_regs(symbol)[0];
    find_symbol(fn_, symbol, uses_.ranges.count(symbol.get()) != 0, &out_.symbols, r.index);
  }
  for (const auto& t : fn_.return_types) {
    const Regs r = regs_of_type(*t, false);
    out_.results.insert(out_.results.end(), r.begin(), r.end());
  }
  out_.result_params = fn_.return_params;
  if (!fn_.is_sub_worker) block(fn_.body);
  add(Opcode::kReturn, fn_.span);

  // Constants are set once, before the body.
  std::vector<Insn> prologue;
  for (const auto& [key, reg] : constants_) {
    Insn in;
    in.op = Opcode::kConst;
    in.dst = reg.index;
    in.a = static_cast<int32_t>(out_.pool.size());
    out_.pool.push_back(key.first);
    prologue.push_back(in);
  }
  const auto shift = static_cast<int32_t>(prologue.size());
  for (Insn& in : out_.code) {
    if (in.op == Opcode::kJump) in.a += shift;
    if (in.op == Opcode::kBranchFalse) in.b += shift;
    if (in.op == Opcode::kForTest) in.dst += shift;
  }
  for (LanesInsn& l : out_.lanes) {
    l.begin += shift;
    l.end += shift;
  }
  out_.code.insert(out_.code.begin(), prologue.begin(), prologue.end());
  if (options_.chains) group_chains(out_);
  return std::move(out_);
}

ProgramPtr emit(const Module& lowered, const EmitOptions& options) {
  auto program = std::make_shared<Program>();
  program->name = lowered.name;
  program->arch = lowered.arch;
  program->baked = lowered.baked;
  for (const Diagnostic& d : lowered.warnings) {
    if (d.id == "X-57" || d.id == "X-69") program->findings.push_back(d);  // 03 M-37: rows
  }
  std::map<const Function*, int> index;
  for (const auto& f : lowered.functions) {
    if (f->type == FunctionType::kInline) continue;
    const int at = static_cast<int>(index.size());
    index[f.get()] = at;
  }
  for (const auto& f : lowered.functions) {
    if (f->type == FunctionType::kInline) continue;
    program->functions.push_back(FunctionEmitter(lowered, *f, index, options).emit());
  }
  const FunctionPtr entry = lowered.entry();
  if (entry) program->entry = index.at(entry.get());
  for (const auto& f : lowered.functions) {
    if (f->type == FunctionType::kOrchestration) program->entries.push_back(index.at(f.get()));
  }
  return program;
}

ProgramPtr emit(const Module& lowered) { return emit(lowered, EmitOptions{}); }

}  // namespace pypto::vm
