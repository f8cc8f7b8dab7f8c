// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Calls of operations: binding of arguments (02 section 1.2), errors (01 L-179).
namespace pypto::sema {

bool operation_form(const std::string& dotted, ir::OpForm* form, std::string* name) {
  static const std::vector<std::pair<const char*, ir::OpForm>> kPrefixes = {
      {"pl.tensor.", ir::kFormTensor},
      {"pl.tile.", ir::kFormTile},
      {"pl.system.", ir::kFormSystem},
      {"pl.array.", ir::kFormArray},
      {"pl.prefetch.", ir::kFormPrefetch},
      {"pld.tensor.", ir::kFormPldTensor},
      {"pld.tile.", ir::kFormPldTile},
      {"pld.system.", ir::kFormPldSystem},
      {"pld.", ir::kFormPld},
      {"pl.internal.", ir::kFormInternal},
      {"pl.", ir::kFormFlat},
  };
  for (const auto& [prefix, f] : kPrefixes) {
    if (dotted.rfind(prefix, 0) != 0) continue;
    *form = f;
    *name = dotted.substr(std::string(prefix).size());
    return name->find('.') == std::string::npos;
  }
  return false;
}

const char* form_module(ir::OpForm form) {
  switch (form) {
    case ir::kFormTensor:
      return "tensor";
    case ir::kFormTile:
      return "tile";
    case ir::kFormSystem:
      return "system";
    case ir::kFormArray:
      return "array";
    case ir::kFormPrefetch:
      return "prefetch";
    default:
      return "";
  }
}

namespace {

/// The module an error of an operation is reported under (01 L-179).
std::string error_module(const ir::OpRow& row, ir::OpForm form, const std::vector<ExprPtr>& args) {
  if (form >= ir::kFormPld && form <= ir::kFormPldSystem) return "distributed";
  if (form != ir::kFormFlat) return form_module(form);
  // Promoted names belong to the one module they come from.
  if (!(row.forms & ir::kFormTensor) && (row.forms & ir::kFormTile)) return "tile";
  if (!(row.forms & ir::kFormTile) && (row.forms & ir::kFormTensor)) return "tensor";
  for (const auto& a : args) {  // the first array operand decides the level (02 O-113)
    if (a && a->type && a->type->is_tile()) return "tile";
    if (a && a->type && a->type->is_tensor()) return "tensor";
  }
  if (row.forms & ir::kFormTensor) return "tensor";
  if (row.forms & ir::kFormTile) return "tile";
  if (row.forms & ir::kFormSystem) return "system";
  return "tensor";
}

}  // namespace

ir::OpPlace FunctionBuilder::place() const {
  if (kernel_region()) return ir::kPlaceKernel;
  if (base_place_ == ir::kPlaceHost && enclosing(ir::ScopeKind::kHierarchy)) return ir::kPlaceOrch;
  return base_place_;
}

ir::InferContext FunctionBuilder::context(const Span& span) {
  ir::InferContext c;
  c.arch = program_.options.arch;
  c.place = place();
  c.function_type = fn->type;
  if (const RegionInfo* lanes = enclosing(ir::ScopeKind::kSplitAiv)) {
    c.in_split_aiv = true;
    c.split_mode = lanes->mode;
  }
  for (const LoopInfo* l : loops_) c.in_loop = c.in_loop || l->kind != LoopInfo::Kind::kUnroll;
  if (const RegionInfo* lanes = enclosing(ir::ScopeKind::kSplitAiv)) {
    c.in_split_aiv = true;
    c.split_mode = lanes->mode;
  }
  c.warn = [this, span](Diagnostic d) {
    if (!d.span.known()) d.span = span;
    d.severity = Severity::kWarning;
    program_.warn(std::move(d));
  };
  return c;
}

Value FunctionBuilder::call_operation(ir::OpForm form, const std::string& name, const std::string& spelling,
                                      const syn::Expr& e) {
  const ir::OpRow* row = ir::find_op(form, name);
  // Chosen by the kind of the source once the arguments are known (03 O-42); the parameters have equal
  // positions.
  const bool either_store = spelling == "pld.remote_store";
  if (either_store) {
    form = ir::kFormPldTile;
    row = ir::find_op(form, "remote_store");
  }
  if (!row) unknown_operation(*e.items[0], spelling);
  const bool distributed = form >= ir::kFormPld && form <= ir::kFormPldSystem;
  if (distributed) check_distributed(*row, spelling, e);
  if (row->id == ir::OpId::k_create_tensor && place() == ir::kPlaceHost) check_intermediate(spelling, e.span);

  const auto& params = ir::op_params(*row, form);
  const auto& flat = ir::op_params(*row, ir::kFormFlat);
  const auto bad = [&](const std::string& reason, const Span& span) {
    Diagnostic d;
    d.cls = ErrorClass::kInvalidOperationError;
    d.message = "Error in " + error_module(*row, form, {}) + " operation '" + name + "': " + reason;
    d.span = span;
    d.has_cause = true;
    d.cause_cls = ErrorClass::kTypeError;
    d.cause_message = reason;
    std::string list;
    bool star = false;
    for (const auto& p : params) {
      if (p.keyword_only && !star) {
        list += (list.empty() ? "*" : ", *");
        star = true;
      }
      list += (list.empty() ? "" : ", ") + p.name + (p.has_default ? "=" + p.default_text : "");
    }
    d.hint = "the signature is " + spelling + "(" + list + ")";
    throw Failure(std::move(d));
  };
  std::vector<const syn::Expr*> slots(flat.size(), nullptr);
  std::vector<size_t> by_position;  ///< entries of `order` that were given by position
  size_t positional = 0;
  std::vector<size_t> order;
  for (auto& a : arguments(e)) {
    int slot = -1;
    if (either_store && a.keyword == "src") a.keyword = "src_tile";
    std::string param_name = a.keyword;
    if (a.keyword.empty()) {
      size_t limit = 0;
      while (limit < params.size() && !params[limit].keyword_only) ++limit;
      if (positional >= limit) {
        bad(spelling + "() takes " +
                (limit == 0 ? "no positional arguments"
                 : limit == 1 && !params[0].has_default
                     ? "exactly one positional argument"
                     : "at most " + std::to_string(limit) + " positional argument" +
                           (limit == 1 ? "" : "s")) +
                ", got " + std::to_string(e.items.size() - 1) + " (surplus: " + source_text(*a.syntax) + ")",
            a.span);
      }
      param_name = params[positional].name;
      slot = ir::op_param_index(*row, param_name);
      by_position.push_back(order.size());
      ++positional;
    } else {
      if (a.keyword == "attrs" || a.keyword == "span") continue;
      const bool own = std::any_of(params.begin(), params.end(),
                                   [&](const ir::OpParam& p) { return p.name == a.keyword; });
      const bool in_flat =
          std::any_of(flat.begin(), flat.end(), [&](const ir::OpParam& p) { return p.name == a.keyword; });
      if (!own && !in_flat) {
        // A flat call may use the names of the form it dispatches to.
        const bool other = form == ir::kFormFlat && ir::op_param_index(*row, a.keyword) >= 0;
        if (!other) {
          std::vector<std::string> names;
          for (const auto& p : params) names.push_back(p.name);
          const std::string guess = nearest(a.keyword, names);
          bad(spelling + "() got an unexpected keyword argument '" + a.keyword + "'" +
                  (guess.empty() ? "" : "; did you mean '" + guess + "'?"),
              a.span);
        }
      }
      slot = ir::op_param_index(*row, a.keyword);
    }
    if (slot < 0 || slot >= static_cast<int>(slots.size())) {
      bad(spelling + "() got an unexpected argument '" + param_name + "'", a.span);
    }
    if (slots[static_cast<size_t>(slot)]) {
      bad(spelling + "() got multiple values for argument '" + param_name + "'", a.span);
    }
    slots[static_cast<size_t>(slot)] = a.syntax;
    order.push_back(static_cast<size_t>(slot));
  }
  for (const auto& p : params) {
    const int slot = ir::op_param_index(*row, p.name);
    if (!p.has_default && slot >= 0 && !slots[static_cast<size_t>(slot)]) {
      bad(spelling + "() missing required argument '" + p.name + "'", e.span);
    }
  }
  // Evaluate in the order written, then place.
  std::vector<const syn::Expr*> written;
  for (const size_t s : order) written.push_back(slots[s]);
  const std::vector<Value> values = eval_operands(written);
  // The flat name takes the positions of the form it dispatches to (02 section 18: matmul_acc on tiles).
  const bool tiles = form == ir::kFormFlat && row->sig_tile[0] != '\0' &&
                     std::any_of(values.begin(), values.end(), [](const Value& v) {
                       return v.is_expr() && v.expr->type && v.expr->type->is_tile();
                     });
  if (tiles) {
    const auto& own = ir::op_params(*row, ir::kFormTile);
    const size_t limit = static_cast<size_t>(
        std::count_if(own.begin(), own.end(), [](const ir::OpParam& p) { return !p.keyword_only; }));
    if (by_position.size() <= limit) {
      for (size_t k = 0; k < by_position.size(); ++k) {
        const int slot = ir::op_param_index(*row, own[k].name);
        if (slot >= 0) order[by_position[k]] = static_cast<size_t>(slot);
      }
    }
    for (size_t i = 0; i < order.size(); ++i) {
      if (std::count(order.begin(), order.end(), order[i]) > 1) {
        bad(spelling + "() got multiple values for argument '" + flat[order[i]].name + "'", written[i]->span);
      }
    }
  }
  std::vector<ExprPtr> args(flat.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Value& v = values[i];
    if (v.kind == Value::Kind::kNothing)
      bad("argument " + source_text(*written[i]) + " has no value", written[i]->span);
    args[order[i]] = to_argument(v, written[i]->span);
  }
  if (either_store && args[0] && args[0]->type && !args[0]->type->is_tile()) {
    form = ir::kFormPldTensor;
    row = ir::find_op(form, "remote_store");
  }
  if (distributed) {
    for (size_t i = 0; i < args.size(); ++i) {
      const auto& a = args[i];
      if (!a || !a->type || !a->type->is_window() || !a->type->storage) continue;
      const auto buffers = leaves(a->type->storage);
      if (buffers.size() < 2) continue;
      reject(ErrorClass::kParserTypeError, a->span.known() ? a->span : e.span,
             "X-17: Cannot determine the communication context of argument '" + flat[i].name + "' of " +
                 spelling + ": it may be a view of '" + buffers[0]->name + "' or of '" + buffers[1]->name +
                 "'",
             "keep one buffer per name");
    }
    if (row->id == ir::OpId::k_defer_wait) check_defer_wait(args, e.span);
  }
  if (distributed && place() == ir::kPlaceHost) {
    for (const auto& a : args) {
      if (a && a->type && a->type->is_window()) consume_window(a);
    }
  }
  const bool pop = row->id == ir::OpId::k_tpop_from_aic || row->id == ir::OpId::k_tpop_from_aiv;
  if (pop && pop_type_ && !args[0] && !args[1]) {
    // The annotation of the assigned variable gives the type (02 O-2105).
    std::vector<ExprPtr> dims;
    for (const auto& d : pop_type_->shape) dims.push_back(ir::int_const(d.value, DType::kIndex, e.span));
    args[0] = ir::tuple_expr(std::move(dims), e.span);
    HostValue h;
    h.kind = HostKind::kDType;
    h.dtype = pop_type_->dtype;
    args[1] = to_argument(Value::of_host(h), e.span);
  }
  return infer(*row, form, std::move(args), e.span, spelling);
}

Value FunctionBuilder::infer(const ir::OpRow& row, ir::OpForm form, std::vector<ExprPtr> args,
                             const Span& span, const std::string& spelling) {
  args.resize(ir::op_params(row, ir::kFormFlat).size());
  ir::InferContext c = context(span);
  // Rank slices and extents of host tensors (03 D-34) are typed like those of an orchestration.
  const bool slicing = row.id == ir::OpId::k_slice || row.id == ir::OpId::k_dim;
  if (c.place == ir::kPlaceHost && slicing) c.place = ir::kPlaceOrch;
  ir::OpCallSite site;
  site.row = &row;
  site.form = form;
  site.args = std::move(args);
  site.span = span;
  ExprPtr out;
  try {
    out = ir::infer_op(c, site);
  } catch (Failure& f) {
    Diagnostic& d = f.diagnostic();
    const bool located = d.span.known();
    if (!located) d.span = span;
    const bool operand = d.cls == ErrorClass::kTypeError || d.cls == ErrorClass::kValueError;
    const bool misplaced = d.message.find("Misplaced") != std::string::npos;
    if (operand && misplaced) {
      if (d.hint.empty())
        d.hint = "put it inside 'with pl.at(level=pl.Level.CORE_GROUP):' or a kernel function";
      throw;
    }
    if (operand) {
      d.has_cause = true;
      d.cause_cls = d.cls;
      d.cause_message = d.message;
      d.cls = ErrorClass::kInvalidOperationError;
      d.message = "Error in " + error_module(row, form, site.args) + " operation '" +
                  last_component(spelling) + "': " + d.message;
    }
    throw;
  }
  return Value::of(with_effects(out, span));
}

}  // namespace pypto::sema
