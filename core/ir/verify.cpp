// SPDX-License-Identifier: Apache-2.0
#include "core/ir/verify.h"

#include <unordered_set>
#include <utility>

#include "core/base/poll.h"
#include "core/ir/print.h"

namespace pypto::ir {
namespace {

class Verifier {
 public:
  Verifier(const Module& m, std::vector<Diagnostic>& out) : module_(m), out_(out) {
    for (const auto& f : m.functions) functions_.insert(f.get());
  }

  void function(const Function& f) {
    f_ = &f;
    assigned_.clear();
    for (size_t i = 0; i < f.vars.size(); ++i) {
      if (!f.vars[i] || f.vars[i]->id != static_cast<int>(i))
        report({}, "variable " + std::to_string(i) + " has another id");
    }
    if (f.directions.size() != f.params.size()) report(f.span, "directions and parameters differ in number");
    for (const auto& p : f.params) define(p, f.span);
    for (const auto& s : f.symbols) define(s, f.span);
    collect(f.body);
    block(f.body);
  }

 private:
  void report(const Span& span, const std::string& what) {
    Diagnostic d;
    d.cls = ErrorClass::kInternalError;
    d.message = "function '" + f_->name + "': " + what;
    d.span = span;
    out_.push_back(std::move(d));
  }

  void define(const VarPtr& v, const Span& span) {
    if (!v) return;
    assigned_.insert(v.get());
    known(v, span);
  }

  void known(const VarPtr& v, const Span& span) {
    if (!v) return report(span, "a variable is missing");
    const auto i = static_cast<size_t>(v->id);
    if (v->id < 0 || i >= f_->vars.size() || f_->vars[i] != v)
      report(span, "variable '" + v->name + "' is not the function's");
    if (!v->type) report(span, "variable '" + v->name + "' has no type");
  }

  void collect(const Block& b) {
    for (const auto& s : b) {
      poll();
      for (const auto& t : s->targets) define(t, s->span);
      define(s->loop_var, s->span);
      for (const auto& c : s->carries) {
        define(c.var, s->span);
        define(c.result, s->span);
      }
      if (s->scope) {
        define(s->scope->task, s->span);
        define(s->scope->loop_var, s->span);
      }
      collect(s->body);
      collect(s->else_body);
    }
  }

  void expr(const ExprPtr& e, const Span& span) {
    if (!e) return;
    poll();
    if (!e->type) return report(span, "an expression has no type");
    switch (e->kind) {
      case ExprKind::kVar:
        known(e->var, span);
        if (e->var && !assigned_.count(e->var.get()))
          report(span, "variable '" + e->var->name + "' is read but never assigned");
        break;
      case ExprKind::kOp: {
        const auto& row = op_row(e->op);
        if (e->args.size() > op_params(row, kFormFlat).size())
          report(span, std::string("'") + row.name + "' has too many operands");
        break;
      }
      case ExprKind::kItem:
        if (e->args.size() != 1 || !e->args[0] || e->args[0]->type->kind != TypeKind::kTuple ||
            e->int_value < 0 || e->int_value >= static_cast<int64_t>(e->args[0]->type->elements.size())) {
          report(span, "an element of no tuple, or past its end");
        }
        break;
      case ExprKind::kCall:
        if (!e->call || !e->call->callee) {
          report(span, "a call without callee");
          break;
        }
        if (!functions_.count(e->call->callee.get()))
          report(span, "callee '" + e->call->callee->name + "' is not in the program");
        if (e->args.size() > e->call->callee->params.size())
          report(span, "too many arguments for '" + e->call->callee->name + "'");
        expr(e->call->core_num, span);
        for (const auto& d : e->call->deps) expr(d, span);
        expr(e->call->device, span);
        expr(e->call->predicate, span);
        break;
      default:
        break;
    }
    for (const auto& a : e->args) expr(a, span);
  }

  void block(const Block& b) {
    for (const auto& s : b) {
      if (!s) {
        report({}, "a statement is missing");
        continue;
      }
      stmt(*s);
    }
  }

  void stmt(const Stmt& s) {
    expr(s.value, s.span);
    for (const auto& v : s.values) expr(v, s.span);
    expr(s.start, s.span);
    expr(s.stop, s.span);
    expr(s.step, s.span);
    for (const auto& c : s.carries) {
      if (!c.var || !c.init) report(s.span, "a carry without variable or initial value");
      expr(c.init, s.span);
    }
    const bool loop = s.kind == StmtKind::kFor || s.kind == StmtKind::kWhile;
    switch (s.kind) {
      case StmtKind::kAssign:
        if (!s.value || s.targets.empty()) {
          report(s.span, "an assignment without value or target");
        } else if (s.targets.size() > 1 && (s.value->type->kind != TypeKind::kTuple ||
                                            s.value->type->elements.size() != s.targets.size())) {
          report(s.span, "an assignment whose targets and values differ in number");
        }
        break;
      case StmtKind::kFor:
        if (!s.loop_var || !s.stop) report(s.span, "a loop without variable or bound");
        break;
      case StmtKind::kIf:
        if (!s.value) report(s.span, "a branch without condition");
        break;
      case StmtKind::kBreak:
      case StmtKind::kContinue:
        if (loops_ == 0) report(s.span, "a jump outside every loop");
        break;
      case StmtKind::kScope:
        if (!s.scope) {
          report(s.span, "a scope without facts");
        } else {
          expr(s.scope->core_num, s.span);
          for (const auto& d : s.scope->deps) expr(d, s.span);
          const ScopeKind k = s.scope->kind;
          if (module_.lowered &&
              (k == ScopeKind::kIncore || k == ScopeKind::kSpmd || k == ScopeKind::kCluster)) {
            report(s.span, "a region is left after lowering");
          }
        }
        break;
      default:
        break;
    }
    loops_ += loop;
    block(s.body);
    block(s.else_body);
    loops_ -= loop;
  }

  const Module& module_;
  std::vector<Diagnostic>& out_;
  std::unordered_set<const Function*> functions_;
  const Function* f_ = nullptr;
  std::unordered_set<const Var*> assigned_;
  int loops_ = 0;
};

}  // namespace

std::vector<Diagnostic> verify(const Module& m) {
  std::vector<Diagnostic> out;
  Verifier v(m, out);
  for (const auto& f : m.functions) {
    if (!f->is_sub_worker) v.function(*f);
  }
  return out;
}

}  // namespace pypto::ir
