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
  find_direct(out_);
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
