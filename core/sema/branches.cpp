// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/poll.h"
#include "core/sema/builder.h"
#include "core/sema/hints.h"

/// Statements in sequence, branches (01 L-91, L-92), returns (L-51, L-52).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

namespace {

bool is_docstring(const syn::Stmt& s) {
  return s.kind == StmtKind::kExpr && s.value &&
         (s.value->kind == ExprKind::kString || s.value->kind == ExprKind::kEllipsis);
}

const char* kSupported =
    "supported: assignment, annotated and augmented assignment, for, while, if, with, return, calls, break, "
    "continue, "
    "pass";

std::string with_hint(const std::string& hint) {
  return hint.empty() ? kSupported : hint + " (" + kSupported + ")";
}

}  // namespace

bool FunctionBuilder::contains_return(const std::vector<syn::StmtPtr>& body) {
  for (const auto& s : body) {
    if (s->kind == StmtKind::kReturn) return true;
    if (s->kind == StmtKind::kIf && (contains_return(s->body) || contains_return(s->orelse))) return true;
  }
  return false;
}

void FunctionBuilder::exec_block(const std::vector<syn::StmtPtr>& body) { exec_from(body, 0); }

void FunctionBuilder::exec_from(const std::vector<syn::StmtPtr>& body, size_t first) {
  for (size_t i = first; i < body.size(); ++i) {
    if (!flow().live) return;
    poll();
    const syn::Stmt& s = *body[i];
    const bool own_level = loops_.size() == frame_->loop_base && regions_.size() == frame_->region_base;
    if (frame_->is_inline && own_level && s.kind == StmtKind::kIf &&
        (contains_return(s.body) || contains_return(s.orelse))) {
      // What follows an early return belongs to the paths that do not return.
      exec_if(s, &body, i + 1);
      return;
    }
    try {
      exec(s);
    } catch (Failure& f) {  // what knows no place of its own is at the statement
      if (!f.diagnostic().span.known()) f.diagnostic().span = s.span;
      throw;
    }
  }
}

void FunctionBuilder::exec(const syn::Stmt& s) {
  switch (s.kind) {
    case StmtKind::kExpr:
      return exec_expression(s);
    case StmtKind::kAssign:
      return exec_assign(s);
    case StmtKind::kAnnAssign:
      return exec_ann_assign(s);
    case StmtKind::kAugAssign:
      return exec_aug_assign(s);
    case StmtKind::kFor:
      return exec_for(s);
    case StmtKind::kWhile:
      return exec_while(s);
    case StmtKind::kIf:
      return exec_if(s);
    case StmtKind::kWith:
      return exec_with(s);
    case StmtKind::kReturn:
      return exec_return(s);
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      return exec_jump(s);
    case StmtKind::kPass:
      return;
    case StmtKind::kOther:
      break;
  }
  reject(ErrorClass::kUnsupportedFeatureError, s.span, "Unsupported statement type: " + s.text,
         with_hint(hint_for_syntax(s.text)));
}

void FunctionBuilder::exec_expression(const syn::Stmt& s) {
  if (is_docstring(s)) return;
  const auto& e = *s.value;
  if (e.kind != ExprKind::kCall) {
    reject(ErrorClass::kUnsupportedFeatureError, s.span,
           "Unsupported statement type: an expression statement must be a call, got '" + source_text(e) + "'",
           with_hint(hint_for_syntax(e.text)));
  }
  const Callee callee = resolve_callee(*e.items[0]);
  if (callee.kind == Callee::Kind::kConstruct &&
      (callee.name == "pl.submit" || callee.name == "pl.spmd_submit")) {
    reject(ErrorClass::kParserSyntaxError, s.span, callee.name + "(...) must be unpacked as a 2-tuple",
           "write '_, tid = " + callee.name + "(...)'");
  }
  if (callee.kind == Callee::Kind::kConstruct &&
      callee.name.find("alloc_window_buffer") != std::string::npos) {
    alloc_window(e, "");
    return;
  }
  ++expr_depth_;
  const Value v = callee.kind == Callee::Kind::kPython && is_static(e) ? fold(e) : eval_call(e, true);
  --expr_depth_;
  if (!v.is_expr()) return;
  if (v.expr->kind == ir::ExprKind::kOp || v.expr->kind == ir::ExprKind::kCall) {
    // A pure result that nobody looks at needs no statement; an effect does.
    emit_eval(v.expr, s.span);
    if (v.expr->kind == ir::ExprKind::kOp) {
      // In place through a bare statement: the old name sees the change, valid extents included (01 L-185).
      const ir::OpRow& row = ir::op_row(v.expr->op);
      if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0 &&
          row.inplace_param < static_cast<int>(v.expr->args.size())) {
        const ExprPtr& target = v.expr->args[static_cast<size_t>(row.inplace_param)];
        if (target && target->kind == ir::ExprKind::kVar && v.expr->type &&
            !same_dims(target->type->valid, v.expr->type->valid)) {
          for (auto& [name, b] : flow().names) {
            if (b->kind == Binding::Kind::kVar && b->var == target->var &&
                same_dims(b->type->shape, v.expr->type->shape)) {
              block_->pop_back();
              emit_assign(b->var, v.expr, s.span);
              auto n = std::make_shared<Binding>(*b);
              n->type = v.expr->type;
              bind(name, n);
              break;
            }
          }
        }
      }
    }
  }
}

// ------------------------------------------------------------------ if

bool FunctionBuilder::yields(const std::vector<syn::StmtPtr>& body, const syn::Stmt** found) const {
  for (const auto& s : body) {
    const syn::Expr* value = s->value.get();
    const bool assigns =
        s->kind == StmtKind::kAssign || s->kind == StmtKind::kAnnAssign || s->kind == StmtKind::kExpr;
    if (assigns && value && value->kind == ExprKind::kCall && value->items[0]->kind == ExprKind::kAttribute &&
        value->items[0]->text == "yield_") {
      if (found) *found = s.get();
      return true;
    }
  }
  return false;
}

void FunctionBuilder::exec_if(const syn::Stmt& s, const std::vector<syn::StmtPtr>* all, size_t next) {
  const auto& test = *s.value;
  const auto take = [&](const std::vector<syn::StmtPtr>& arm) {
    exec_block(arm);
    if (all && flow().live && !frame_->returned) exec_from(*all, next);
  };
  const auto take_only = [&](const std::vector<syn::StmtPtr>& arm) {
    // An `elif` belongs to the branch around it, and the last yield of a loop to the loop.
    const bool in_branch = !if_yields_.empty() && if_yields_.back()->loops == loops_.size();
    const bool in_loop =
        loops_.size() > frame_->loop_base && loops_.back()->explicit_carry && loops_.back()->last == &s;
    IfYield folded;
    folded.folded = true;
    folded.loops = loops_.size();
    const bool own = !in_branch && !in_loop && yields(arm, nullptr);
    if (own) if_yields_.push_back(&folded);
    exec_block(arm);
    if (own) if_yields_.pop_back();
    if (all && flow().live && !frame_->returned) exec_from(*all, next);
  };
  if (const auto known = constant_condition(test)) {
    take_only(*known ? s.body : s.orelse);
    return;
  }
  const ExprPtr c = condition(test, "if");
  if (const auto k = ir::const_int(c)) {
    take_only(*k ? s.body : s.orelse);
    return;
  }
  const syn::Stmt* yield_a = nullptr;
  const syn::Stmt* yield_b = nullptr;
  const bool ya = yields(s.body, &yield_a);
  const bool yb = yields(s.orelse, &yield_b);
  const bool nested_elif = s.orelse.size() == 1 && s.orelse[0]->kind == StmtKind::kIf;
  if (ya != yb && !(ya && nested_elif)) {
    reject(ErrorClass::kParserSyntaxError, (ya ? yield_a : yield_b)->span,
           std::string("pl.yield_ in the '") + (ya ? "if" : "else") + "' arm only: the '" +
               (ya ? "else" : "if") + "' arm must yield as well",
           "end both arms with 'name = pl.yield_(value)' to the same names");
  }
  auto stmt = make(ir::StmtKind::kIf, s.span);
  stmt->value = c;
  std::set<int> params;
  const bool ranked = rank_dependent(c, &params);
  rank_conditions_.push_back({test.span, source_text(test), ranked, params});
  const bool device = kernel_region() && reads_device_data(c);
  device_conditions_ += device ? 1 : 0;
  const Flow before = flow();
  ir::Block* outer = block_;
  IfYield arm_yield;
  arm_yield.seen = false;
  const bool uses_yield = ya || yb;
  arm_yield.loops = loops_.size();
  if (uses_yield) if_yields_.push_back(&arm_yield);
  for (LoopInfo* l : loops_) ++l->if_depth;

  const bool returned_before = frame_->returned;
  block_ = &stmt->body;
  take(s.body);
  const bool returned_then = frame_->returned;
  const Flow then_flow = flow();

  flow() = before;
  frame_->returned = returned_before;
  const IfYield first = arm_yield;
  arm_yield.seen = false;
  arm_yield.names = first.names;
  arm_yield.types = first.types;
  block_ = &stmt->else_body;
  take(s.orelse);
  const bool returned_else = frame_->returned;
  const Flow else_flow = flow();
  block_ = outer;
  for (LoopInfo* l : loops_) --l->if_depth;
  if (uses_yield) if_yields_.pop_back();
  device_conditions_ -= device ? 1 : 0;
  rank_conditions_.pop_back();

  Site site;
  site.block_a = &stmt->body;
  site.block_b = &stmt->else_body;
  site.before = &before.names;
  site.span = s.span;
  const std::string line = std::to_string(s.span.line);
  site.missing_a = "the 'if' arm at line " + line + " does not assign it";
  site.missing_b = s.orelse.empty() ? "the 'if' at line " + line + " has no 'else' arm that assigns it"
                                    : "the 'else' arm of the 'if' at line " + line + " does not assign it";
  if (frame_->is_inline && (returned_then || returned_else)) {
    // Both paths of a helper ended: their results were put into the same variables.
    frame_->returned = returned_then && returned_else;
    if (returned_then && returned_else) {
      Flow a = then_flow;
      Flow b = else_flow;
      a.live = b.live = true;
      flow() = merge(a, b, site);
      flow().live = false;
    } else {
      flow() = merge(then_flow, else_flow, site);
    }
  } else {
    flow() = merge(then_flow, else_flow, site);
    if (!then_flow.live && !else_flow.live) flow().live = false;
  }
  stmt->has_else = !stmt->else_body.empty();
  emit(stmt);
}

// ------------------------------------------------------------------ return

void FunctionBuilder::exec_return(const syn::Stmt& s) {
  if (loops_.size() > frame_->loop_base || regions_.size() > frame_->region_base) {
    const bool region = regions_.size() > frame_->region_base &&
                        (loops_.size() <= frame_->loop_base || loops_.back()->regions < regions_.size());
    const bool spmd_loop =
        !loops_.empty() && loops_.size() > frame_->loop_base &&
        (loops_.back()->kind == LoopInfo::Kind::kSpmd || loops_.back()->kind == LoopInfo::Kind::kSplitAiv);
    const Span& where = region ? regions_.back()->span : loops_.back()->span;
    std::string what = region ? regions_.back()->name : "loop";
    if (!region && spmd_loop) {
      what = loops_.back()->kind == LoopInfo::Kind::kSpmd ? "pl.spmd body" : "pl.split_aiv body";
    }
    reject(ErrorClass::kUnsupportedFeatureError, s.span,
           "'return' inside the " + what + " at line " + std::to_string(where.line) + " is not supported",
           "assign the value to a name and return it after the " + what, {{"the enclosing " + what, where}});
  }
  if (frame_->is_inline) {
    exec_inline_return(s);
    return;
  }
  auto stmt = make(ir::StmtKind::kReturn, s.span);
  std::vector<Value> values;
  const bool none = !s.value || s.value->kind == ExprKind::kNone;
  if (!none) {
    // Returning a parameter is no use of it (01 L-54).
    const bool names_only = s.value->kind == ExprKind::kName ||
                            (s.value->kind == ExprKind::kTuple &&
                             std::all_of(s.value->items.begin(), s.value->items.end(),
                                         [](const auto& i) { return i->kind == ExprKind::kName; }));
    const std::vector<bool> mentioned = param_mentioned_;
    const Value v = eval(*s.value);
    if (names_only) param_mentioned_ = mentioned;
    if (v.is_tuple()) {
      values = v.items;
    } else if (v.is_expr() && v.expr->type->kind == ir::TypeKind::kTuple) {
      values = spill(v, "_r", s.span).items;
    } else if (v.is_expr() && v.expr->kind == ir::ExprKind::kCall) {
      if (v.expr->type->kind == ir::TypeKind::kNone) {
        emit_eval(v.expr, s.span);
      } else {
        values = {spill(v, "_r", s.span)};
      }
    } else if (v.is_expr() && v.expr->type->kind == ir::TypeKind::kNone) {
      emit_eval(v.expr, s.span);
    } else if (v.kind != Value::Kind::kNothing) {
      values = {v};
    }
  }
  const bool kernel = place() == ir::kPlaceKernel;
  std::vector<TypePtr> types;
  std::vector<int> roots;
  for (size_t i = 0; i < values.size(); ++i) {
    ExprPtr e = to_expr(values[i], s.span);
    if (e->kind == ir::ExprKind::kString) {
      reject(ErrorClass::kParserTypeError, s.span,
             "A string cannot be returned from function '" + fn->name + "'");
    }
    if (!e->type) continue;
    if (e->type->kind == ir::TypeKind::kTuple) {
      reject(ErrorClass::kParserTypeError, s.span, "Nested tuple types are not supported in 'return'");
    }
    if (e->type->kind == ir::TypeKind::kArray) {
      reject(ErrorClass::kParserTypeError, s.span, "pl.Array values cannot cross function boundaries",
             "write the elements to a tensor");
    }
    if (e->type->is_tile()) {
      reject(ErrorClass::kParserTypeError, s.span,
             "A Tile (" + ir::type_text(*e->type) + ") cannot be returned from function '" + fn->name + "'",
             "pl.store it to an output tensor and return that");
    }
    if (e->type->is_scalar() && kernel) {
      reject(ErrorClass::kParserTypeError, s.span,
             "A scalar (" + ir::type_text(*e->type) + ") cannot be returned from kernel '" + fn->name + "'",
             "pl.write it to an output tensor");
    }
    const bool handle = e->type->kind == ir::TypeKind::kCommCtx || e->type->kind == ir::TypeKind::kPtr;
    if (handle && in_host()) {
      reject(ErrorClass::kParserTypeError, s.span,
             "A " + ir::type_text(*e->type) + " cannot be returned to the host");
    }
    if (e->type->is_tensor()) {
      mark_leaves_region(e->type);
      if (e->type->place == ir::TensorPlace::kOnChip) {
        auto copy = std::make_shared<ir::Expr>(*e);
        copy->type = with_place(e->type, ir::TensorPlace::kGlobal);
        if (e->kind == ir::ExprKind::kVar && e->type->storage && e->type->storage->created) e = copy;
        types.push_back(copy->type);
      } else {
        types.push_back(e->type);
      }
    } else {
      types.push_back(e->type);
    }
    // The parameter whose storage this is (01 L-50); an address into one is a value of its own, except in a
    // host function.
    int root = -1;
    if (e->type->is_tensor() && e->type->storage) {
      const auto parts = leaves(e->type->storage);
      if (parts.size() == 1 && parts[0]->param >= 0) {
        const auto p = static_cast<size_t>(parts[0]->param);
        const bool whole = same_dims(e->type->shape, fn->params[p]->type->shape);
        if (whole || in_host()) root = static_cast<int>(p);
      }
    }
    roots.push_back(root);
    stmt->values.push_back(e);
  }
  if (!return_annotation_.empty() || return_none_) {
    const size_t want = return_none_ ? 0 : return_annotation_.size();
    if (want != types.size()) {
      reject(ErrorClass::kParserTypeError, s.span,
             "Function '" + fn->name + "' returns " + std::to_string(types.size()) +
                 " value(s) but its annotation declares " + std::to_string(want));
    }
    for (size_t i = 0; i < want; ++i) {
      const Annotation& a = return_annotation_[i];
      if (!a.type) continue;
      const ir::Type& w = *a.type;
      const ir::Type& h = *types[i];
      std::string what;
      if (w.kind != h.kind || (w.is_tensor() && w.is_window() != h.is_window())) {
        what = "kind";
      } else if (!same_dtype(w.dtype, h.dtype)) {
        const bool literal = stmt->values[i]->untyped;
        if (!literal && !(is_int(w.dtype) && is_int(h.dtype) && w.is_scalar())) what = "dtype";
      } else if (w.is_tensor() && w.rank() != h.rank()) {
        what = "rank";
      }
      if (!what.empty()) {
        reject(ErrorClass::kParserTypeError, s.span,
               "Return value " + std::to_string(i) + " of function '" + fn->name + "' differs in " + what +
                   " from its annotation: declared " + ir::type_text(w) + ", got " + ir::type_text(h));
      }
    }
  }
  if (!has_return_) {
    has_return_ = true;
    first_return_ = s.span;
    value_return_ = !types.empty();
    fn->return_types = types;
    fn->return_params = roots;
  } else {
    if (types.size() != fn->return_types.size()) {
      reject(ErrorClass::kParserTypeError, s.span,
             "This 'return' gives " + std::to_string(types.size()) + " value(s), the first one gives " +
                 std::to_string(fn->return_types.size()),
             "all returns of a function must agree", {{"the first return", first_return_}});
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (!meets(*fn->return_types[i], *types[i])) {
        reject(ErrorClass::kParserTypeError, s.span,
               "This 'return' gives " + ir::type_text(*types[i]) + " as value " + std::to_string(i) +
                   ", the first one gives " + ir::type_text(*fn->return_types[i]),
               "all returns of a function must agree", {{"the first return", first_return_}});
      }
      if (fn->return_params[i] != roots[i]) fn->return_params[i] = -1;
    }
  }
  emit(stmt);
  flow().live = false;
}

}  // namespace pypto::sema
