// SPDX-License-Identifier: Apache-2.0

// Which neighbouring steps of a chain run as one in registers.
#include "core/vm/kernels/chain_strips.h"

#include <optional>

namespace pypto::vm {

namespace {

bool in_registers(DType d) { return d == DType::kFp32 || d == DType::kFp16 || d == DType::kBf16; }

FuseType fuse_type(DType d) {
  return d == DType::kFp16 ? FuseType::kFp16 : d == DType::kBf16 ? FuseType::kBf16 : FuseType::kFp32;
}

/// The step that a function of one operand is in a fused unit, if it has one.
std::optional<FuseOp> fused(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg:
      return FuseOp::kNeg;
    case UnaryOp::kAbs:
      return FuseOp::kAbs;
    case UnaryOp::kExp:
      return FuseOp::kExp;
    case UnaryOp::kLog:
      return FuseOp::kLog;
    case UnaryOp::kSqrt:
      return FuseOp::kSqrt;
    case UnaryOp::kRsqrt:
      return FuseOp::kRsqrt;
    case UnaryOp::kRecip:
      return FuseOp::kRecip;
    case UnaryOp::kRelu:
      return FuseOp::kRelu;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool StripRun::fusable(const Step& s) const {
  if (!in_registers(s.dtype) || !in_registers(s.lhs_dtype) || s.out_part != ChainPart::kFull) return false;
  if (s.op.kind == ChainKind::kCast) return !same_dtype(s.dtype, s.lhs_dtype);
  if (!in_registers(s.compute)) return false;
  if (s.op.kind == ChainKind::kUnary) return fused(s.op.unary).has_value();
  return s.op.kind == ChainKind::kBinary && in_registers(s.rhs_dtype) && s.op.binary != BinaryOp::kLeaky;
}

/// Adds a step to a unit whose registers hold its left operand, its right one, or both.
void StripRun::append(Unit& unit, const Step& s, bool value_is_lhs, bool value_is_rhs) const {
  auto add = [&](FuseOp op, size_t slot, ChainPart part, DType type) {
    FuseStep f;
    f.op = op;
    f.one = part == ChainPart::kOne || part == ChainPart::kColumn;
    f.type = fuse_type(type);
    f.result = fuse_type(s.dtype);
    unit.steps.push_back(f);
    unit.slots.push_back(slot);
    unit.by_row = unit.by_row || part == ChainPart::kColumn;
  };
  const auto alone = [&](FuseOp op) { add(op, kNoSlot, ChainPart::kFull, DType::kFp32); };
  if (s.op.kind == ChainKind::kCast) return alone(FuseOp::kPass);
  if (s.op.kind == ChainKind::kUnary) {
    return alone(*fused(s.op.unary));
  }
  if (value_is_lhs && value_is_rhs) {
    return alone(s.op.binary == BinaryOp::kMul ? FuseOp::kSquare : FuseOp::kDouble);
  }
  const size_t slot = value_is_lhs ? s.rhs : s.lhs;
  const ChainPart part = value_is_lhs ? s.rhs_part : s.lhs_part;
  const DType type = value_is_lhs ? s.rhs_dtype : s.lhs_dtype;
  auto pick = [&](FuseOp left, FuseOp right) { add(value_is_lhs ? left : right, slot, part, type); };
  switch (s.op.binary) {
    case BinaryOp::kAdd:
      pick(FuseOp::kAdd, FuseOp::kAddRight);
      break;
    case BinaryOp::kMul:
      pick(FuseOp::kMul, FuseOp::kMulRight);
      break;
    case BinaryOp::kDiv:
      pick(FuseOp::kDiv, FuseOp::kDivRight);
      break;
    case BinaryOp::kMax:
      pick(FuseOp::kMax, FuseOp::kMaxRight);
      break;
    case BinaryOp::kMin:
      pick(FuseOp::kMin, FuseOp::kMinRight);
      break;
    default:
      pick(FuseOp::kSub, FuseOp::kSubRight);
      break;
  }
  if (s.op.binary == BinaryOp::kExpDif) alone(FuseOp::kExp);
}

/// Adds the step after a unit to it, if it reads what the unit makes: in registers when that is the last
/// value, else from where it was stored just before, while it is in the nearest cache.
bool StripRun::extend(Unit& unit) {
  const Step& next = steps_[unit.last + 1];
  const size_t made = steps_[unit.last].out;
  if (!fusable(next)) return false;
  bool is_lhs = next.lhs == made, is_rhs = next.has_rhs && next.rhs == made;
  const bool twice = next.has_rhs && next.lhs == next.rhs;
  // Other operations of a value with itself read the second operand from memory.
  const bool once = twice && next.op.binary != BinaryOp::kMul && next.op.binary != BinaryOp::kAdd;
  if (once) is_rhs = false;
  const auto made_here = [&](size_t v) {
    for (size_t i = unit.first; i <= unit.last; ++i) {
      if (steps_[i].out == v) return true;
    }
    return false;
  };
  if (!made_here(next.lhs) && !(next.has_rhs && made_here(next.rhs))) return false;
  Slot& value = slots_[made];
  value.stored = value.base != nullptr || last_use_[made] > unit.last + 1 || (once && is_lhs);
  if (value.stored) {
    FuseStep store;
    store.op = FuseOp::kStore;
    store.type = fuse_type(steps_[unit.last].dtype);
    unit.steps.push_back(store);
    unit.slots.push_back(made);
  }
  if (!is_lhs && !is_rhs) {
    FuseStep load;
    load.op = FuseOp::kLoad;
    load.one = next.lhs_part == ChainPart::kOne || next.lhs_part == ChainPart::kColumn;
    load.type = fuse_type(next.lhs_dtype);
    unit.by_row = unit.by_row || next.lhs_part == ChainPart::kColumn;
    unit.steps.push_back(load);
    unit.slots.push_back(next.lhs);
    is_lhs = true;
    is_rhs = twice && !once;
  }
  ++unit.last;
  append(unit, next, is_lhs, is_rhs);
  return true;
}

/// Cuts the steps into units: as long as a step reads what its predecessor made, both stay in registers.
void StripRun::group() {
  units_.clear();
  for (Slot& s : slots_) s.stored = true;
  last_use_.assign(slots_.size(), 0);
  for (size_t i = 0; i < steps_.size(); ++i) {
    last_use_[steps_[i].lhs] = i;
    if (steps_[i].has_rhs) last_use_[steps_[i].rhs] = i;
  }
  for (size_t i = 0; i < steps_.size();) {
    Unit unit;
    unit.first = unit.last = i;
    if (fusable(steps_[i])) {
      unit.start = steps_[i].lhs;
      unit.first_type = fuse_type(steps_[i].lhs_dtype);
      unit.by_row = steps_[i].lhs_part == ChainPart::kColumn;
      append(unit, steps_[i], true, false);
      while (unit.last + 1 < steps_.size() && extend(unit)) {
      }
      // The rows of the value are reduced as they come.
      if (unit.last + 1 < steps_.size()) {
        const Step& next = steps_[unit.last + 1];
        const size_t made = steps_[unit.last].out;
        if (next.op.kind == ChainKind::kReduce && next.lhs == made && next.dtype == DType::kFp32 &&
            next.lhs_dtype == DType::kFp32) {
          unit.reduces = true;
          unit.reduce = next.op.reduce;
          Slot& value = slots_[made];
          value.stored = value.base != nullptr || last_use_[made] > unit.last + 1;
          if (value.stored) {
            FuseStep store;
            store.op = FuseOp::kStore;
            unit.steps.push_back(store);
            unit.slots.push_back(made);
          }
          ++unit.last;
        }
      }
      // Quotients by one number are quicker there, too.
      const Step& s = steps_[i];
      const bool one = s.rhs_part == ChainPart::kOne || s.rhs_part == ChainPart::kColumn;
      unit.fused = unit.last > unit.first ||
                   (s.op.kind == ChainKind::kBinary && s.op.binary == BinaryOp::kDiv && s.has_rhs && one);
      unit.out_type = fuse_type(steps_[unit.last].dtype);
    }
    i = unit.last + 1;
    units_.push_back(std::move(unit));
  }
}

}  // namespace pypto::vm
