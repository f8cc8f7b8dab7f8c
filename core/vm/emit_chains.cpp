// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/vm/emitter.h"

namespace pypto::vm {
namespace {

CastMode cast_mode(const ir::AttrMap& attrs) {
  static constexpr const char* kNames[] = {"none", "rint", "round", "floor", "ceil", "trunc", "odd"};
  const std::string text = attrs.get_string(ir::AttrKey::k_mode);
  for (int i = 0; i < 7; ++i) {
    if (text == kNames[i]) return static_cast<CastMode>(i);
  }
  return static_cast<CastMode>(attrs.get_int(ir::AttrKey::k_mode, static_cast<int64_t>(CastMode::kRound)));
}

/// Reductions take scratch as their second operand; it never influences the result (02 O-218).
bool has_scratch(ir::OpId op) { return ir::op_row(op).cost == ir::CostClass::kReduce; }

struct Parts {
  Reg lhs, rhs, scalar;
};

bool chainable(const OpInsn& o, Parts* parts) {
  if (o.attrs.find(ir::AttrKey::k_acc_dtype)) return false;  // a product's declared dtype is rounded to first
  if (o.results.size() != 1 || o.results[0].cls != RegClass::kView || o.operands.empty()) return false;
  if (o.operands[0].kind != Operand::Kind::kReg || o.operands[0].reg.cls != RegClass::kView) return false;
  *parts = {};
  parts->lhs = o.operands[0].reg;
  if (o.operands.size() > 1 && o.operands[1].kind != Operand::Kind::kAbsent && !has_scratch(o.op)) {
    if (o.operands[1].kind != Operand::Kind::kReg) return false;
    (o.operands[1].reg.cls == RegClass::kView ? parts->rhs : parts->scalar) = o.operands[1].reg;
  }
  return chain_supports(o.op, parts->lhs.dtype, parts->rhs.dtype, parts->scalar.dtype, o.results[0].dtype);
}

class Grouper {
 public:
  explicit Grouper(FunctionCode& fn) : fn_(fn) {}

  void run() {
    find_targets();
    const auto n = static_cast<int32_t>(fn_.code.size());
    new_pc_.assign(static_cast<size_t>(n) + 1, 0);
    for (int32_t pc = 0; pc < n;) {
      const int32_t end = extend(pc);
      if (end > pc) {
        const auto at = static_cast<int32_t>(out_.size());
        for (int32_t k = pc; k < end; ++k) new_pc_[static_cast<size_t>(k)] = at;
        group(pc, end);
        pc = end;
      } else {
        new_pc_[static_cast<size_t>(pc)] = static_cast<int32_t>(out_.size());
        out_.push_back(fn_.code[static_cast<size_t>(pc)]);
        ++pc;
      }
    }
    new_pc_[static_cast<size_t>(n)] = static_cast<int32_t>(out_.size());
    for (Insn& in : out_) {
      if (in.op == Opcode::kJump) in.a = moved(in.a);
      if (in.op == Opcode::kBranchFalse) in.b = moved(in.b);
      if (in.op == Opcode::kForTest) in.dst = moved(in.dst);
    }
    for (LanesInsn& l : fn_.lanes) {
      l.begin = moved(l.begin);
      l.end = moved(l.end);
    }
    fn_.code = std::move(out_);
  }

 private:
  int32_t moved(int32_t pc) const { return new_pc_[static_cast<size_t>(pc)]; }

  void find_targets() {
    for (const Insn& in : fn_.code) {
      if (in.op == Opcode::kJump) targets_.insert(in.a);
      if (in.op == Opcode::kBranchFalse) targets_.insert(in.b);
      if (in.op == Opcode::kForTest) targets_.insert(in.dst);
    }
    for (const LanesInsn& l : fn_.lanes) {
      targets_.insert(l.begin);
      targets_.insert(l.end);
    }
  }

  /// End of the run that starts at pc (with the releases that follow it), or pc if there is none worth
  /// grouping.
  int32_t extend(int32_t pc) {
    int steps = 0;
    std::unordered_set<int32_t> inputs, scalars, made;
    int32_t at = pc;
    for (; at < static_cast<int32_t>(fn_.code.size()); ++at) {
      if (at != pc && targets_.count(at)) break;
      const Insn& in = fn_.code[static_cast<size_t>(at)];
      if (in.op == Opcode::kRelease && steps > 0) continue;
      if (in.op != Opcode::kOp) break;
      Parts parts;
      const OpInsn& o = fn_.ops[static_cast<size_t>(in.a)];
      if (!chainable(o, &parts)) break;
      auto fresh_inputs = inputs;
      auto fresh_scalars = scalars;
      for (const Reg& r : {parts.lhs, parts.rhs}) {
        if (r.cls == RegClass::kView && !made.count(r.index)) fresh_inputs.insert(r.index);
      }
      if (parts.scalar.cls == RegClass::kScalar) fresh_scalars.insert(parts.scalar.index);
      if (fresh_inputs.size() >= kMaxChainOperands || fresh_scalars.size() >= kMaxChainOperands ||
          made.size() + 1 >= kMaxChainOperands) {
        break;
      }
      inputs = std::move(fresh_inputs);
      scalars = std::move(fresh_scalars);
      made.insert(o.results[0].index);
      ++steps;
    }
    return steps >= 2 ? at : pc;
  }

  void group(int32_t begin, int32_t end) {
    ChainInsn c;
    std::unordered_map<int32_t, int32_t> value;  // register -> current value
    std::unordered_map<int32_t, int32_t> scalar;
    std::vector<Insn> releases;  // of registers that the run only reads
    // Inputs are numbered first, so a first walk finds them.
    std::unordered_set<int32_t> made;
    auto input = [&](const Reg& r) {
      if (r.cls == RegClass::kView && !made.count(r.index) && !value.count(r.index)) {
        value[r.index] = static_cast<int32_t>(c.inputs.size());
        c.inputs.push_back(r);
      }
    };
    for (int32_t pc = begin; pc < end; ++pc) {
      const Insn& in = fn_.code[static_cast<size_t>(pc)];
      if (in.op == Opcode::kRelease) {
        made.insert(in.a);  // what comes after the release is another value
        continue;
      }
      Parts parts;
      const OpInsn& o = fn_.ops[static_cast<size_t>(in.a)];
      chainable(o, &parts);
      input(parts.lhs);
      input(parts.rhs);
      made.insert(o.results[0].index);
    }
    c.chain.inputs = static_cast<int32_t>(c.inputs.size());
    std::unordered_map<int32_t, Reg> live;  // registers that hold a result of the run
    for (int32_t pc = begin; pc < end; ++pc) {
      const Insn& in = fn_.code[static_cast<size_t>(pc)];
      if (in.op == Opcode::kRelease) {
        if (!live.erase(in.a)) releases.push_back(in);
        continue;
      }
      Parts parts;
      const OpInsn& o = fn_.ops[static_cast<size_t>(in.a)];
      chainable(o, &parts);
      ChainStep step;
      step.op = o.op;
      step.dtype = o.results[0].dtype;
      step.is_tile = !o.result_is_tile.empty() && o.result_is_tile[0];
      step.lhs = value.at(parts.lhs.index);
      if (parts.rhs.cls == RegClass::kView) step.rhs = value.at(parts.rhs.index);
      if (parts.scalar.cls == RegClass::kScalar) {
        const auto [it, fresh] =
            scalar.try_emplace(parts.scalar.index, static_cast<int32_t>(c.scalars.size()));
        if (fresh) {
          c.scalars.push_back(parts.scalar);
          c.chain.scalars.push_back(parts.scalar.dtype);
        }
        step.scalar = it->second;
      }
      if (o.op == ir::OpId::k_cast) step.mode = cast_mode(o.attrs);
      value[o.results[0].index] = c.chain.inputs + static_cast<int32_t>(c.chain.steps.size());
      live[o.results[0].index] = o.results[0];
      c.chain.steps.push_back(step);
    }
    std::vector<std::pair<int32_t, Reg>> outputs;
    for (const auto& [reg, r] : live) outputs.emplace_back(value.at(reg), r);
    std::sort(outputs.begin(), outputs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [v, r] : outputs) {
      c.chain.outputs.push_back(v);
      c.outputs.push_back(r);
    }
    Insn in;
    in.op = Opcode::kChain;
    in.a = static_cast<int32_t>(fn_.chains.size());
    in.site = fn_.code[static_cast<size_t>(begin)].site;
    fn_.chains.push_back(std::move(c));
    out_.push_back(in);
    for (const Insn& r : releases) {
      if (!live.count(r.a)) out_.push_back(r);  // else the register holds a result of the run by now
    }
  }

  FunctionCode& fn_;
  std::vector<Insn> out_;
  std::vector<int32_t> new_pc_;
  std::unordered_set<int32_t> targets_;
};

}  // namespace

void group_chains(FunctionCode& fn) { Grouper(fn).run(); }

}  // namespace pypto::vm
