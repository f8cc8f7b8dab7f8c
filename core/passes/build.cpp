// SPDX-License-Identifier: Apache-2.0
#include "core/passes/build.h"

namespace pypto::passes {

using ir::ExprPtr;
using ir::Stmt;
using ir::StmtKind;
using ir::VarPtr;

ExprPtr CodeBuilder::dtype(DType d) const {
  auto e = std::make_shared<ir::Expr>();
  e->kind = ir::ExprKind::kDType;
  e->type = ir::none_type();
  e->span = span_;
  e->int_value = static_cast<int64_t>(d);
  return e;
}

ExprPtr CodeBuilder::op(ir::OpId id, std::vector<ExprPtr> args, ir::OpForm form) {
  const auto& row = ir::op_row(id);
  if (!(row.forms & form)) {
    for (uint32_t bit = 1; bit <= ir::kFormInternal; bit <<= 1) {
      if (row.forms & bit) {
        form = static_cast<ir::OpForm>(bit);
        break;
      }
    }
  }
  ir::InferContext context;
  context.arch = arch_;
  context.place = place_;
  context.function_type = f_.type;
  ir::OpCallSite call;
  call.row = &row;
  call.form = form;
  call.span = span_;
  args.resize(ir::op_params(row, ir::kFormFlat).size());
  call.args = std::move(args);
  return ir::infer_op(context, call);
}

VarPtr CodeBuilder::let(const std::string& name, const ExprPtr& value) {
  VarPtr v = f_.add_var(name, value->type, ir::VarKind::kLocal, span_);
  set(v, value);
  return v;
}

void CodeBuilder::set(const VarPtr& v, ExprPtr value) {
  auto s = std::make_shared<Stmt>();
  s->kind = StmtKind::kAssign;
  s->span = span_;
  s->targets = {v};
  s->value = std::move(value);
  append(std::move(s));
}

void CodeBuilder::eval(ExprPtr value) {
  auto s = std::make_shared<Stmt>();
  s->kind = StmtKind::kEval;
  s->span = span_;
  s->value = std::move(value);
  append(std::move(s));
}

void CodeBuilder::loop(const std::string& name, ExprPtr start, ExprPtr stop,
                       const std::function<void(ExprPtr)>& body,
                       std::vector<std::pair<std::string, std::string>> attrs) {
  auto s = std::make_shared<Stmt>();
  s->kind = StmtKind::kFor;
  s->span = span_;
  s->loop_var = f_.add_var(name, ir::scalar_type(DType::kIndex), ir::VarKind::kLoop, span_);
  s->start = std::move(start);
  s->stop = std::move(stop);
  s->step = index(1);
  s->loop_attrs = std::move(attrs);
  blocks_.push_back(&s->body);
  body(ref(s->loop_var));
  blocks_.pop_back();
  append(std::move(s));
}

void CodeBuilder::branch(const ExprPtr& condition, const std::function<void()>& then,
                         const std::function<void()>& otherwise) {
  if (const auto known = ir::const_int(condition)) {
    if (*known) {
      then();
    } else if (otherwise) {
      otherwise();
    }
    return;
  }
  auto s = std::make_shared<Stmt>();
  s->kind = StmtKind::kIf;
  s->span = span_;
  s->value = condition;
  blocks_.push_back(&s->body);
  then();
  blocks_.pop_back();
  if (otherwise) {
    s->has_else = true;
    blocks_.push_back(&s->else_body);
    otherwise();
    blocks_.pop_back();
  }
  append(std::move(s));
}

}  // namespace pypto::passes
