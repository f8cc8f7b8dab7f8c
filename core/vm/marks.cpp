// SPDX-License-Identifier: Apache-2.0
#include "core/vm/marks.h"

#include "core/vm/interp.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

constexpr size_t kMaxScalars = size_t{1} << 16;

int32_t mark_of(const Frame& f, const Reg& r) {
  return r.cls == RegClass::kScalar ? f.marks[static_cast<size_t>(r.index)] : 0;
}

void check(const Frame& f, int32_t reg, const char* what) {
  if (reg < 0) return;
  if (const int32_t m = f.marks[static_cast<size_t>(reg)]) marks().fail_scalar(m, what);
}

void check(const Frame& f, const Reg& reg, const std::string& what) {
  if (const int32_t m = mark_of(f, reg)) marks().fail_scalar(m, what);
}

/// Whether a scalar operand of the operation is data: the result rests on it. Others are positions, extents,
/// peers, flags and the values of signals.
bool takes_data(ir::OpId op) {
  switch (ir::op_row(op).cost) {
    case ir::CostClass::kElementwise:
    case ir::CostClass::kExpand:
    case ir::CostClass::kReduce:
    case ir::CostClass::kGather:
    case ir::CostClass::kSort:
      return true;
    default:
      return false;
  }
}

void follow_operands(Frame& f, const OpInsn& insn) {
  const ir::OpRow& row = ir::op_row(insn.op);
  const auto name = [&](size_t p) {
    const auto& params = ir::op_params(row, ir::kFormFlat);
    return p < params.size() ? params[p].name : std::string("operand");
  };
  for (size_t p = 0; p < insn.operands.size(); ++p) {
    const Operand& o = insn.operands[p];
    if (o.kind == Operand::Kind::kList) {
      for (const Reg& r : o.list) {
        if (r.cls == RegClass::kScalar) check(f, r, "'" + name(p) + "' of " + row.name);
        if (r.cls != RegClass::kArray) continue;
        for (const int32_t m : f.a[static_cast<size_t>(r.index)]->marks) {
          if (m) marks().fail_scalar(m, "'" + name(p) + "' of " + row.name);
        }
      }
    } else if (o.kind == Operand::Kind::kReg && o.reg.cls == RegClass::kScalar && mark_of(f, o.reg)) {
      if (takes_data(insn.op) || (insn.op == ir::OpId::k_write && p == 2)) continue;
      const bool signal =
          insn.op == ir::OpId::k_notify || insn.op == ir::OpId::k_wait || insn.op == ir::OpId::k_defer_wait;
      check(f, o.reg,
            signal && (name(p) == "value" || name(p) == "expected")
                ? "the " + name(p) + " of a signal (" + row.name + ")"
                : "'" + name(p) + "' of " + row.name);
    }
  }
  for (const Reg& r : insn.results) {
    if (r.cls == RegClass::kScalar) f.marks[static_cast<size_t>(r.index)] = 0;
  }
}

/// The value that the running instruction stores, as the user wrote it; "" if unknown.
std::string stored_name(const Fiber* fiber) {
  if (!fiber || fiber->frames.empty()) return {};
  const Frame& f = fiber->frames.back();
  const Insn& in = f.fn->code[static_cast<size_t>(f.pc)];
  if (in.op != Opcode::kOp) return {};
  const OpInsn& insn = f.fn->ops[static_cast<size_t>(in.a)];
  size_t operand = 0;
  if (insn.op == ir::OpId::k_assemble) {
    operand = 1;
  } else if (insn.op != ir::OpId::k_store && insn.op != ir::OpId::k_remote_store) {
    return {};
  }
  return insn.operands[operand].name;
}

}  // namespace

Marks& marks() {
  thread_local Marks current;
  return current;
}

MarksOfRun::MarksOfRun(bool on) {
  std::swap(saved_, marks());
  marks().on = on;
}
MarksOfRun::~MarksOfRun() { std::swap(saved_, marks()); }

Mark Marks::origin(Origin::Kind kind, const std::string& name, Mark from) {
  const Site* site = fiber ? fiber->site() : nullptr;
  for (size_t i = origins_.size(); i-- > 0;) {
    const Origin& o = origins_[i];
    if (o.site == site && o.kind == kind && o.from == from &&
        (o.name == name || kind == Origin::Kind::kStored))
      return static_cast<Mark>(i + 1);
  }
  if (origins_.size() + 1 >= kUnknownMark) return kUnknownMark;
  Origin o;
  o.kind = kind;
  o.from = from;
  o.site = site;
  o.name = name;
  if (kind == Origin::Kind::kStored) {
    if (env) env->annotate(o.place);
    o.name = stored_name(fiber);
  }
  origins_.push_back(std::move(o));
  return static_cast<Mark>(origins_.size());
}

int32_t Marks::scalar(std::string text, Mark from) {
  if (scalars_.size() >= kMaxScalars) return static_cast<int32_t>(scalars_.size());
  const Site* site = fiber ? fiber->site() : nullptr;
  scalars_.push_back({std::move(text), site ? site->span : Span(), from});
  return static_cast<int32_t>(scalars_.size());
}

std::string Marks::why(Mark mark) const {
  const Origin* o = find(mark);
  while (o && o->kind == Origin::Kind::kStored && find(o->from)) o = find(o->from);
  if (!o) return "is unspecified";
  const std::string named = o->name.empty() ? std::string() : "'" + o->name + "' is ";
  const std::string at = o->site ? " at " + o->site->span.file_line() : std::string();
  switch (o->kind) {
    case Origin::Kind::kPadding:
      return "is padding that nothing filled (outside the valid extents of the value made" + at + ")";
    case Origin::Kind::kHeld:
      return "was never written (" + named + "device memory allocated without init)";
    default:
      return "was never written (" + named + "created" + at + ")";
  }
}

void Marks::explain(Mark mark, Diagnostic& d) const {
  const Origin* o = find(mark);
  for (; o && o->kind == Origin::Kind::kStored; o = find(o->from)) {
    if (!o->site || d.span.text() == o->site->span.text()) continue;
    const std::string named = o->name.empty() ? std::string() : "from '" + o->name + "' ";
    d.notes.push_back({"the unspecified value is stored " + named + "here", o->site->span});
  }
}

void Marks::fail_scalar(int32_t scalar, const std::string& what) const {
  const ScalarOrigin& s = scalars_[static_cast<size_t>(scalar) - 1];
  Diagnostic d =
      unspecified_report("an unspecified value decides what the program does",
                         "an unspecified value decides " + what + ": " + s.text + " " + why(s.from));
  d.notes.push_back({"it is read here", s.span});
  explain(s.from, d);
  throw Failure(std::move(d));
}

Diagnostic unspecified_report(std::string title, std::string message) {
  Diagnostic d;
  d.cls = ErrorClass::kUninitializedReadError;
  d.id = "W-UNSPECIFIED";
  d.title = std::move(title);
  d.message = std::move(message);
  d.hint =
      "write it first (a store, pl.full, init_value=), fill padding with pl.fillpad, or narrow the valid "
      "shape "
      "to what was written";
  return d;
}

// ------------------------------------------------------------------ scalar registers

void follow_marks(Frame& f, const Insn& in) {
  const auto at = [&](int32_t reg) -> int32_t& { return f.marks[static_cast<size_t>(reg)]; };
  switch (in.op) {
    case Opcode::kConst:
    case Opcode::kDim:
    case Opcode::kValid:
      at(in.dst) = 0;
      break;
    case Opcode::kMoveS:
    case Opcode::kCast:
      at(in.dst) = at(in.a);
      break;
    case Opcode::kScalar: {
      const int32_t a = at(in.a);
      at(in.dst) = a != 0 ? a : in.b >= 0 ? at(in.b) : 0;
      break;
    }
    case Opcode::kBranchFalse:
      check(f, in.a, "which way a branch goes");
      break;
    case Opcode::kForTest:
      for (const int32_t reg : {in.a, in.b, in.c}) check(f, reg, "a loop bound");
      break;
    case Opcode::kForCheck:
      check(f, in.a, "the step of a loop");
      break;
    case Opcode::kArrayGet: {
      check(f, in.b, "an array index");
      const ArrayValue& array = *f.a[static_cast<size_t>(in.a)];
      const auto i = static_cast<size_t>(f.s[static_cast<size_t>(in.b)].i);
      at(in.dst) = i < array.marks.size() ? array.marks[i] : 0;
      break;
    }
    case Opcode::kArraySet: {
      check(f, in.a, "an array index");
      ArrayValue& array = *f.a[static_cast<size_t>(in.dst)];
      const auto i = static_cast<size_t>(f.s[static_cast<size_t>(in.a)].i);
      if (array.marks.empty() && at(in.b) != 0) array.marks.resize(array.items.size());
      if (i < array.marks.size()) array.marks[i] = at(in.b);
      break;
    }
    case Opcode::kCreate:
      for (const Reg& r : f.fn->creates[static_cast<size_t>(in.a)].shape)
        check(f, r, "an extent of create_tensor");
      break;
    case Opcode::kOp:
      follow_operands(f, f.fn->ops[static_cast<size_t>(in.a)]);
      break;
    case Opcode::kChain: {
      const ChainInsn& chain = f.fn->chains[static_cast<size_t>(in.a)];
      for (const auto* folded : {&chain.loads, &chain.stores}) {
        for (const FoldedOp& o : *folded) follow_operands(f, f.fn->ops[static_cast<size_t>(o.op)]);
      }
      break;
    }
    case Opcode::kCall: {
      const CallInsn& call = f.fn->calls[static_cast<size_t>(in.a)];
      check(f, call.core_num, "the number of blocks of a launch");
      check(f, call.device, "the device of a dispatch");
      for (const Reg& r : call.predicate_index) check(f, r, "the cell of a predicate");
      for (const Reg& r : call.results) {
        if (r.cls == RegClass::kScalar) at(r.index) = 0;
      }
      if (call.task.cls == RegClass::kScalar) at(call.task.index) = 0;
      break;
    }
    default:
      break;
  }
}

void spread_scalar_marks(Frame& f, const OpInsn& insn) {
  if (!takes_data(insn.op)) return;
  int32_t found = 0;
  for (const Operand& o : insn.operands) {
    if (o.kind == Operand::Kind::kReg && found == 0) found = mark_of(f, o.reg);
  }
  if (found == 0) return;
  for (const Reg& r : insn.results) {
    if (r.cls != RegClass::kView) continue;
    const View& v = f.v[static_cast<size_t>(r.index)];
    if (v.buffer) mark_unspecified(v, marks().mark_of_scalar(found));
  }
}

}  // namespace pypto::vm
