// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/vm/emitter.h"

/// Expressions: registers of values, operations, calls.
namespace pypto::vm {

using namespace ir;  // NOLINT: the emitter reads IR throughout

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

}  // namespace pypto::vm
