// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/infer.h"
#include "core/ir/ir.h"

namespace pypto::passes {

/// Writes statements of generated code into a block, typed by the same rules as what a user writes.
class CodeBuilder {
 public:
  CodeBuilder(ir::Function& f, ir::Arch arch, ir::OpPlace place, Span span)
      : f_(f), arch_(arch), place_(place), span_(std::move(span)) {
    blocks_.push_back(&code);
  }

  ir::Block code;

  // ---- scalars
  ir::ExprPtr index(int64_t v) const { return ir::int_const(v, DType::kIndex, span_, true); }
  ir::ExprPtr int32(int64_t v) const { return ir::int_const(v, DType::kInt32, span_); }
  ir::ExprPtr scalar(ir::OpId op, const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return ir::infer_scalar(op, a, b, span_);
  }
  ir::ExprPtr add(const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return scalar(ir::OpId::k_scalar_add, a, b);
  }
  ir::ExprPtr sub(const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return scalar(ir::OpId::k_scalar_sub, a, b);
  }
  ir::ExprPtr mul(const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return scalar(ir::OpId::k_scalar_mul, a, b);
  }
  ir::ExprPtr div(const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return scalar(ir::OpId::k_scalar_floordiv, a, b);
  }
  ir::ExprPtr mod(const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return scalar(ir::OpId::k_scalar_mod, a, b);
  }
  ir::ExprPtr min(const ir::ExprPtr& a, const ir::ExprPtr& b) const { return scalar(ir::OpId::k_min, a, b); }
  ir::ExprPtr max(const ir::ExprPtr& a, const ir::ExprPtr& b) const { return scalar(ir::OpId::k_max, a, b); }
  ir::ExprPtr ne(const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return scalar(ir::OpId::k_scalar_ne, a, b);
  }
  ir::ExprPtr lt(const ir::ExprPtr& a, const ir::ExprPtr& b) const {
    return scalar(ir::OpId::k_scalar_lt, a, b);
  }
  ir::ExprPtr list(std::vector<ir::ExprPtr> items) const { return ir::tuple_expr(std::move(items), span_); }
  ir::ExprPtr dtype(DType d) const;
  ir::ExprPtr text(std::string s) const { return ir::string_const(std::move(s), span_); }
  ir::ExprPtr flag(bool b) const { return ir::bool_const(b, span_); }

  // ---- operations: arguments by position of the row's flat signature; nullptr = not given
  ir::ExprPtr op(ir::OpId id, std::vector<ir::ExprPtr> args, ir::OpForm form = ir::kFormFlat);
  static ir::ExprPtr ref(const ir::VarPtr& v) { return ir::var_ref(v, v->span); }

  // ---- statements
  /// A new variable holding `value`.
  ir::VarPtr let(const std::string& name, const ir::ExprPtr& value);
  void set(const ir::VarPtr& v, ir::ExprPtr value);
  void eval(ir::ExprPtr value);
  void loop(const std::string& name, ir::ExprPtr start, ir::ExprPtr stop,
            const std::function<void(ir::ExprPtr)>& body,
            std::vector<std::pair<std::string, std::string>> attrs = {});
  /// A condition that folds selects its arm.
  void branch(const ir::ExprPtr& condition, const std::function<void()>& then,
              const std::function<void()>& otherwise = {});
  void append(ir::StmtPtr s) { blocks_.back()->push_back(std::move(s)); }

  const Span& span() const { return span_; }
  ir::Function& function() { return f_; }

 private:
  ir::Function& f_;
  ir::Arch arch_;
  ir::OpPlace place_;
  Span span_;
  std::vector<ir::Block*> blocks_;
};

}  // namespace pypto::passes
