// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// break, continue and while loops (01 L-102, L-103).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

void FunctionBuilder::exec_jump(const syn::Stmt& s) {
  const bool is_break = s.kind == StmtKind::kBreak;
  const std::string word = is_break ? "'break'" : "'continue'";
  if (loops_.size() <= frame_->loop_base) {
    reject(ErrorClass::kInvalidOperationError, s.span, word + " outside loop");
  }
  LoopInfo& loop = *loops_.back();
  const std::vector<Note> notes{{"the loop", loop.span}};
  std::string where;
  switch (loop.kind) {
    case LoopInfo::Kind::kParallel:
      where = " not supported in parallel loops";
      break;
    case LoopInfo::Kind::kUnroll:
      where = " not supported in unrolled loops";
      break;
    case LoopInfo::Kind::kSplitAiv:
      where = " not supported inside a 'for ... in pl.split_aiv(...)' body";
      break;
    case LoopInfo::Kind::kSpmd:
      where = " not supported inside a 'for ... in pl.spmd(...)' body";
      break;
    default:
      break;
  }
  if (!where.empty()) {
    reject(ErrorClass::kInvalidOperationError, s.span, word + where,
           "use an 'if' around the statements to be skipped", notes);
  }
  if (regions_.size() > loop.regions) {
    reject(ErrorClass::kInvalidOperationError, s.span,
           word + " outside loop: the " + regions_.back()->name + " region at line " +
               std::to_string(regions_.back()->span.line) + " lies between it and its loop",
           {}, notes);
  }
  // The carried names hold the values that go on (01 L-103): they are brought into the loop's own cells here.
  if (loop.explicit_carry) rebind_carries(loop, {flow(), block_, false});
  emit(make(is_break ? ir::StmtKind::kBreak : ir::StmtKind::kContinue, s.span));
  (is_break ? loop.breaks : loop.continues).push_back({flow(), block_, true});
  flow().live = false;
}

void FunctionBuilder::exec_while(const syn::Stmt& s) {
  if (!s.orelse.empty()) {
    reject(ErrorClass::kUnsupportedFeatureError, s.span, "Loop 'else' is not supported",
           "put the statements after the loop");
  }
  auto stmt = make(ir::StmtKind::kWhile, s.span);
  LoopInfo loop;
  loop.kind = LoopInfo::Kind::kWhile;
  loop.span = s.span;
  loop.frame = frame_;
  loop.regions = regions_.size();
  const auto known = constant_condition(*s.value);
  if (known && !*known) return;
  const bool endless = known.has_value();
  bool device = false;
  int devices = device_conditions_;
  run_loop(
      loop, stmt, s.body,
      [&] {
        device_conditions_ = devices;
        if (endless) {
          stmt->value = ir::bool_const(true, s.value->span);
          return;
        }
        const ExprPtr c = condition(*s.value, "while");
        device = kernel_region() && reads_device_data(c);
        if (device) ++device_conditions_;
        if (stmt->body.empty()) {
          stmt->value = c;
          return;
        }
        // The condition needs statements of its own: they run before every iteration.
        stmt->value = ir::bool_const(true, s.value->span);
        auto leave = make(ir::StmtKind::kIf, s.value->span);
        leave->value = ir::infer_scalar(ir::OpId::k_scalar_not, c, nullptr, s.value->span);
        leave->body.push_back(make(ir::StmtKind::kBreak, s.value->span));
        emit(leave);
      },
      false, endless, *block_);
  device_conditions_ = devices;
  if (endless && loop.breaks.empty() && flow().live) flow().live = false;
  if (endless && loop.breaks.empty()) {
    reject(ErrorClass::kParserSyntaxError, s.span, "'while True' without a reachable 'break' never ends",
           "add 'if ...: break', or give the loop a condition");
  }
  emit(stmt);
}

void FunctionBuilder::exec_while_carry(const syn::Stmt& s, const syn::Expr& call) {
  if (call.items.size() > 1) {
    reject(ErrorClass::kParserSyntaxError, call.span, "pl.while_() takes no positional arguments",
           "write pl.while_(init_values=(...)) and 'pl.cond(...)' as the first statement");
  }
  const syn::Expr* init = nullptr;
  for (const auto& k : call.keywords) {
    if (k.name == "init_values") {
      init = k.value.get();
    } else {
      reject(ErrorClass::kParserSyntaxError, k.value->span,
             "Unknown keyword argument '" + k.name + "' in pl.while_()");
    }
  }
  if (!init) reject(ErrorClass::kParserSyntaxError, call.span, "pl.while_() requires init_values");
  const auto& target = *s.targets[0];
  std::vector<std::string> carried;
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList) {
    for (const auto& t : target.items) {
      if (t->kind != ExprKind::kName) {
        reject(ErrorClass::kParserSyntaxError, t->span, "pl.while_() loop target must be a tuple of names");
      }
      carried.push_back(t->text);
    }
  } else {
    reject(ErrorClass::kParserSyntaxError, target.span, "pl.while_() loop target must be a tuple of names",
           "write 'for (x,) in pl.while_(init_values=(x0,)):'");
  }
  const Value v = eval(*init);
  if (!v.is_tuple()) {
    reject(ErrorClass::kParserSyntaxError, init->span, "init_values must be a tuple or list of values");
  }
  std::vector<ExprPtr> inits;
  std::vector<std::string> init_names(v.items.size());
  for (size_t i = 0; i < v.items.size(); ++i) {
    ExprPtr e = to_expr(v.items[i], init->span);
    if (e->untyped) e = ir::convert_scalar(e, e->type->dtype, "a literal");
    inits.push_back(e);
    if (i < init->items.size() && init->items[i]->kind == ExprKind::kName)
      init_names[i] = init->items[i]->text;
  }
  if (inits.size() != carried.size()) {
    reject(ErrorClass::kParserSyntaxError, target.span,
           "Mismatch: " + std::to_string(carried.size()) + " iter_args but " + std::to_string(inits.size()) +
               " init_values");
  }
  const auto is_cond = [&](const syn::Stmt& st) {
    if (st.kind != StmtKind::kExpr || !st.value || st.value->kind != ExprKind::kCall) return false;
    const Callee c = resolve_callee(*st.value->items[0]);
    return c.kind == Callee::Kind::kConstruct && c.name == "pl.cond";
  };
  if (s.body.empty() || !is_cond(*s.body[0])) {
    reject(ErrorClass::kParserSyntaxError, s.body.empty() ? s.span : s.body[0]->span,
           "The first statement of a pl.while_() body must be pl.cond(condition)");
  }
  const auto& cond = *s.body[0]->value;
  if (cond.items.size() != 2 || !cond.keywords.empty()) {
    reject(ErrorClass::kParserSyntaxError, cond.span, "pl.cond takes exactly 1 argument");
  }
  auto stmt = make(ir::StmtKind::kWhile, s.span);
  stmt->explicit_carry = true;
  LoopInfo loop;
  loop.kind = LoopInfo::Kind::kWhile;
  loop.span = s.span;
  loop.frame = frame_;
  loop.regions = regions_.size();
  loop.explicit_carry = true;
  loop.carried = carried;
  for (size_t i = 0; i < inits.size(); ++i) {
    loop.carry_vars.push_back(variable(carried[i], inits[i]->type, target.span, ir::VarKind::kCarry));
    loop.carry_types.push_back(inits[i]->type);
  }
  static const std::vector<syn::StmtPtr> kNone;
  const int devices = device_conditions_;
  run_loop(
      loop, stmt, kNone,
      [&] {
        device_conditions_ = devices;
        bind_carries(loop, target.span);
        const ExprPtr c = condition(*cond.items[1], "while");
        if (kernel_region() && reads_device_data(c)) ++device_conditions_;
        if (stmt->body.empty()) {
          stmt->value = c;
        } else {
          stmt->value = ir::bool_const(true, cond.span);
          auto leave = make(ir::StmtKind::kIf, cond.span);
          leave->value = ir::infer_scalar(ir::OpId::k_scalar_not, c, nullptr, cond.span);
          leave->body.push_back(make(ir::StmtKind::kBreak, cond.span));
          emit(leave);
        }
        loop.entry = flow().names;
        exec_from(s.body, 1);
      },
      false, false, *block_);
  device_conditions_ = devices;
  if (!loop.yielded) {
    // Rebinding the carried names is accepted as in counted loops.
  }
  finish_carries(loop, stmt, inits, init_names, false);
  emit(stmt);
}

}  // namespace pypto::sema
