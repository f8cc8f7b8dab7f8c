// SPDX-License-Identifier: Apache-2.0
#include "core/base/poll.h"
#include "core/vm/emit.h"
#include "core/vm/view.h"

namespace pypto::vm {
namespace {

std::string reg_text(const Reg& r) {
  static constexpr const char* kNames[] = {"s", "v", "a", "-"};
  return r.cls == RegClass::kNone ? "-" : kNames[static_cast<int>(r.cls)] + std::to_string(r.index);
}

std::string regs_text(const std::vector<Reg>& regs) {
  std::string out = "[";
  for (size_t i = 0; i < regs.size(); ++i) out += (i ? ", " : "") + reg_text(regs[i]);
  return out + "]";
}

std::string op_text(const OpInsn& o) {
  std::string out = regs_text(o.results) + " = " + ir::op_row(o.op).name + "(";
  for (size_t i = 0; i < o.operands.size(); ++i) {
    const Operand& x = o.operands[i];
    if (i) out += ", ";
    out += x.kind == Operand::Kind::kAbsent ? "_"
           : x.kind == Operand::Kind::kList ? regs_text(x.list)
                                            : reg_text(x.reg);
  }
  return out + ")";
}

std::string chain_text(const FunctionCode& f, const ChainInsn& c) {
  std::string out = " " + regs_text(c.outputs) + " = " + regs_text(c.inputs);
  for (const FoldedOp& o : c.loads) out += "; " + op_text(f.ops[static_cast<size_t>(o.op)]);
  for (size_t k = 0; k < c.chain.steps.size(); ++k) {
    const ChainStep& s = c.chain.steps[k];
    out += "; " + std::to_string(c.chain.inputs + static_cast<int32_t>(k)) + " = " + ir::op_row(s.op).name +
           " " + std::to_string(s.lhs);
    if (s.rhs >= 0) out += " " + std::to_string(s.rhs);
    if (s.scalar >= 0) out += " " + reg_text(c.scalars[static_cast<size_t>(s.scalar)]);
  }
  for (const FoldedOp& o : c.stores) out += "; " + op_text(f.ops[static_cast<size_t>(o.op)]);
  return out;
}

const char* opcode_text(Opcode op) {
  static constexpr const char* kNames[] = {
      "nop",   "const",  "move_s", "move_v",    "move_a",    "share_a",   "scalar",
      "cast",  "range",  "jump",   "if_false",  "for_test",  "for_check", "op",
      "call",  "dim",    "valid",  "array_new", "array_get", "array_set", "create",
      "lanes", "return", "scope",  "end_scope", "release",   "chain"};
  return kNames[static_cast<int>(op)];
}

}  // namespace

std::string disassemble(const Program& program) {
  std::string out;
  for (const auto& f : program.functions) {
    out += "func " + f.name + "  s" + std::to_string(f.scalar_count) + " v" + std::to_string(f.view_count) +
           " a" + std::to_string(f.array_count) + "\n";
    for (const auto& p : f.params) out += "  param " + p.name + " " + reg_text(p.reg) + "\n";
    for (size_t pc = 0; pc < f.code.size(); ++pc) {
      poll();
      const Insn& in = f.code[pc];
      out += "  " + std::to_string(pc) + ": " + opcode_text(in.op);
      if (in.op == Opcode::kOp) {
        out += " " + op_text(f.ops[static_cast<size_t>(in.a)]);
      } else if (in.op == Opcode::kCall) {
        const CallInsn& c = f.calls[static_cast<size_t>(in.a)];
        out += " " + regs_text(c.results) + " = " + program.functions[static_cast<size_t>(c.callee)].name +
               regs_text(c.args) +
               (c.local    ? " local"
                : c.member ? " member"
                           : "");
      } else if (in.op == Opcode::kChain) {
        out += chain_text(f, f.chains[static_cast<size_t>(in.a)]);
      } else if (in.op == Opcode::kScalar) {
        out += std::string(" ") + ir::op_row(static_cast<ir::OpId>(in.sub)).name + " " +
               std::to_string(in.dst) + " " + std::to_string(in.a) + " " + std::to_string(in.b);
      } else {
        out += " " + std::to_string(in.dst) + " " + std::to_string(in.a) + " " + std::to_string(in.b) + " " +
               std::to_string(in.c);
      }
      if (in.site >= 0) out += "    ; " + f.sites[static_cast<size_t>(in.site)].span.file_line();
      out += "\n";
    }
  }
  return out;
}

}  // namespace pypto::vm
