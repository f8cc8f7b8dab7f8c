// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/base/poll.h"
#include "core/ir/print_impl.h"

namespace pypto::ir::printing {
namespace {

const char* infix(OpId op) {
  switch (op) {
    case OpId::k_scalar_add:
      return " + ";
    case OpId::k_scalar_sub:
      return " - ";
    case OpId::k_scalar_mul:
      return " * ";
    case OpId::k_scalar_truediv:
      return " / ";
    case OpId::k_scalar_floordiv:
      return " // ";
    case OpId::k_scalar_mod:
      return " % ";
    case OpId::k_scalar_lshift:
      return " << ";
    case OpId::k_scalar_rshift:
      return " >> ";
    case OpId::k_scalar_eq:
      return " == ";
    case OpId::k_scalar_ne:
      return " != ";
    case OpId::k_scalar_lt:
      return " < ";
    case OpId::k_scalar_le:
      return " <= ";
    case OpId::k_scalar_gt:
      return " > ";
    case OpId::k_scalar_ge:
      return " >= ";
    case OpId::k_scalar_and:
      return " and ";
    case OpId::k_scalar_or:
      return " or ";
    default:
      return nullptr;
  }
}

const char* prefix(OpId op) {
  switch (op) {
    case OpId::k_scalar_neg:
      return "-";
    case OpId::k_scalar_invert:
      return "~";
    case OpId::k_scalar_not:
      return "not ";
    default:
      return nullptr;
  }
}

struct FormName {
  OpForm form;
  const char* text;
};
constexpr FormName kForms[] = {
    {kFormPldTensor, "pld.tensor."}, {kFormPldTile, "pld.tile."},
    {kFormPldSystem, "pld.system."}, {kFormFlat, "pl."},
    {kFormTile, "pl.tile."},         {kFormTensor, "pl.tensor."},
    {kFormSystem, "pl.system."},     {kFormArray, "pl.array."},
    {kFormPrefetch, "pl.prefetch."}, {kFormPld, "pld."},
};

/// Position in `form`'s parameters of the flat parameter `i`, -1 when the form does not have it.
int form_position(const std::vector<OpParam>& flat, const std::vector<OpParam>& form, size_t i) {
  for (size_t j = 0; j < form.size(); ++j) {
    if (form[j].name == flat[i].name) return static_cast<int>(j);
  }
  if (i >= form.size()) return -1;
  for (const auto& p : flat) {
    if (p.name == form[i].name) return -1;
  }
  return static_cast<int>(i);
}

bool has_tile(const Expr& e) {
  if (e.type && e.type->is_tile()) return true;
  for (const auto& a : e.args) {
    if (a && a->type && a->type->is_tile()) return true;
  }
  return false;
}

/// Whether arrays of 16-bit floats give FP32 here: a number without a dtype would take theirs (01 L-18).
bool widens(const Expr& e) {
  if (!e.type || !e.type->is_array_like() || e.type->dtype != DType::kFp32) return false;
  return std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) {
    return a && a->type && a->type->is_array_like() &&
           (a->type->dtype == DType::kFp16 || a->type->dtype == DType::kBf16);
  });
}

std::string typed_float(const Expr& number, const std::string& text) {
  const bool bare = number.type && number.type->dtype == DType::kFp32 && !number.untyped;
  return bare ? "pl.const(" + text + ", pl.FP32)" : text;
}

bool is_block_query(OpId op) {
  return op == OpId::k_get_block_idx || op == OpId::k_get_block_num || op == OpId::k_get_subblock_idx;
}

/// Whether an attribute says no more than the parameter's default.
bool is_default(const AttrValue& v, AttrKind kind, const std::string& text) {
  if (const auto* s = std::get_if<std::string>(&v)) return text == quoted(*s);
  if (const auto* d = std::get_if<double>(&v)) return text == float_text(*d);
  if (const auto* i = std::get_if<int64_t>(&v)) {
    switch (kind) {
      case AttrKind::kBool:
        return text == (*i ? "True" : "False");
      case AttrKind::kDType: {
        const auto dtype = dtype_from_code(static_cast<int>(*i));
        return dtype && text == dtype_info(*dtype).member;
      }
      case AttrKind::kTensorLayout:
        return text == std::string("TensorLayout.") + tensor_layout_member(static_cast<TensorLayout>(*i));
      case AttrKind::kAtomicType:
        return *i == 0 && text == "AtomicType.None_";
      case AttrKind::kReduceOp:
        return *i == 0 && text == "ReduceOp.Sum";
      case AttrKind::kPadValue:
        return text == std::string("PadValue.") + pad_member(static_cast<PadValue>(*i));
      case AttrKind::kMemorySpace:
        return text == std::string("MemorySpace.") + space_member(static_cast<MemorySpace>(*i));
      default:
        return text == std::to_string(*i);
    }
  }
  return false;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          char hex[8];
          std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
          out += hex;
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string float_text(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "-float(\"inf\")";
  char text[40];
  for (const int digits : {6, 9, 15, 17}) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  std::string out = text;
  if (out.find_first_of(".en") == std::string::npos) out += ".0";
  return out;
}

std::string Printer::int_literal(const Expr& e, bool in_arithmetic) {
  const DType d = e.type ? e.type->dtype : DType::kIndex;
  if (d == DType::kBool) return e.int_value ? "True" : "False";
  std::string text =
      d == DType::kUInt64 ? std::to_string(static_cast<uint64_t>(e.int_value)) : std::to_string(e.int_value);
  // A bare literal is an INDEX constant (02 O-119).
  if (d != DType::kIndex || (lowered && in_arithmetic)) return "pl.const(" + text + ", " + dtype(d) + ")";
  return in_arithmetic && e.int_value < 0 ? "(" + text + ")" : text;
}

std::string Printer::list(const ExprPtr& e) {
  if (e->kind != ExprKind::kTuple) return expr(e);
  std::string out = "[";
  for (size_t i = 0; i < e->args.size(); ++i)
    out += (i ? ", " : "") + (e->args[i] ? list(e->args[i]) : "None");
  return out + "]";
}

std::string Printer::operand(const ExprPtr& e, OpId around) {
  if (e->kind == ExprKind::kInt) return int_literal(*e, true);
  const bool sum = around == OpId::k_scalar_add || around == OpId::k_scalar_sub;
  const bool product = e->kind == ExprKind::kOp && e->op == OpId::k_scalar_mul;
  if (sum && product && (extents_ > 0 || !multiple_of_lane(*e).empty())) return expr(e);
  if (e->kind == ExprKind::kOp && (infix(e->op) || prefix(e->op))) return "(" + expr(e) + ")";
  if (e->kind == ExprKind::kFloat && (e->float_value < 0 || std::isinf(e->float_value)))
    return "(" + expr(e) + ")";
  return expr(e);
}

/// What was written where a conversion with a range check stands: its place converts again when it is read
/// (01 L-18).
const ExprPtr& Printer::written(const ExprPtr& e) { return is_checked_conversion(e) ? e->args[0] : e; }

std::string Printer::expr(const ExprPtr& e) {
  poll();
  if (!e) return "None";
  switch (e->kind) {
    case ExprKind::kInt:
      return int_literal(*e, extents_ > 0);
    case ExprKind::kFloat: {
      const DType d = e->type ? e->type->dtype : DType::kFp32;
      const std::string text = float_text(e->float_value);
      return d == DType::kFp32 ? text : "pl.const(" + text + ", " + dtype(d) + ")";
    }
    case ExprKind::kNone:
      return "None";
    case ExprKind::kString:
      return quoted(e->text);
    case ExprKind::kVar:
      return names_.of(e->var.get());
    case ExprKind::kTuple: {
      std::string out = "(";
      for (size_t i = 0; i < e->args.size(); ++i) out += (i ? ", " : "") + expr(e->args[i]);
      return out + (e->args.size() == 1 ? ",)" : ")");
    }
    case ExprKind::kItem:
      return expr(e->args[0]) + "[" + std::to_string(e->int_value) + "]";
    case ExprKind::kDType: {
      const auto d = dtype_from_code(static_cast<int>(e->int_value));
      return d ? dtype(*d) : "None";
    }
    case ExprKind::kCall:
      return call(*e);
    case ExprKind::kOp:
      return op(*e);
  }
  return "None";
}

/// Where a lane's part begins reads `lane * 9`, its extents are of typed constants (04 TXT-5). Empty: it is
/// something else.
std::string Printer::multiple_of_lane(const Expr& e) {
  if (!lowered || extents_ > 0 || e.op != OpId::k_scalar_mul) return "";
  const ExprPtr &lane = e.args[0], &n = e.args[1];
  if (lane->kind != ExprKind::kVar || lane_vars_.count(lane->var.get()) == 0) return "";
  if (n->kind != ExprKind::kInt || n->int_value < 0 || (n->type && n->type->dtype != DType::kIndex))
    return "";
  return expr(lane) + " * " + std::to_string(n->int_value);
}

std::string Printer::op(const Expr& e) {
  if (const std::string text = multiple_of_lane(e); !text.empty()) return text;
  if (const char* text = infix(e.op)) return operand(e.args[0], e.op) + text + operand(e.args[1], e.op);
  if (const char* text = prefix(e.op)) return text + operand(e.args[0], e.op);
  switch (e.op) {
    case OpId::k_scalar_cast:
      return "pl.cast(" + expr(e.args[0]) + ", " + dtype(e.type->dtype) + ")";
    case OpId::k_copy_tile:
    case OpId::k_snapshot:
      return expr(e.args[0]);  // copies that a plain assignment or an address as a value makes by itself
    default:
      return op_call(e);
  }
}

std::string Printer::attr(AttrKey key, const AttrValue& value) {
  if (const auto* s = std::get_if<std::string>(&value)) return quoted(*s);
  if (const auto* d = std::get_if<double>(&value)) return float_text(*d);
  if (const auto* l = std::get_if<std::vector<int64_t>>(&value)) {
    std::string out = "[";
    for (size_t i = 0; i < l->size(); ++i) out += (i ? ", " : "") + std::to_string((*l)[i]);
    return out + "]";
  }
  const int64_t i = std::get<int64_t>(value);
  switch (attr_kind(key)) {
    case AttrKind::kBool:
      return i ? "True" : "False";
    case AttrKind::kDType: {
      const auto d = dtype_from_code(static_cast<int>(i));
      return d && *d != DType::kNone ? dtype(*d) : "None";
    }
    case AttrKind::kMemorySpace:
      return std::string("pl.Mem.") + space_member(static_cast<MemorySpace>(i));
    case AttrKind::kTensorLayout:
      return std::string("pl.TensorLayout.") + tensor_layout_member(static_cast<TensorLayout>(i));
    case AttrKind::kTileLayout:
      return std::string("pl.TileLayout.") + tile_layout_member(static_cast<TileLayout>(i));
    case AttrKind::kPadValue:
      return std::string("pl.PadValue.") + pad_member(static_cast<PadValue>(i));
    case AttrKind::kAtomicType:
      return i ? "pl.AtomicType.Add" : "pl.AtomicType.None_";
    case AttrKind::kPipeType:
      return std::string("pl.PipeType.") + pipe_member(static_cast<PipeType>(i));
    case AttrKind::kFloat:
      return float_text(static_cast<double>(i));
    default:
      return std::to_string(i);  // 03 section 2.2: the distributed enums print as integers
  }
}

std::string Printer::op_call(const Expr& e) {
  const OpRow& row = op_row(e.op);
  const auto& flat = op_params(row, kFormFlat);
  const auto held = [&](size_t i) -> const AttrValue* {
    const AttrKey key = attr_from_name(flat[i].name);
    const AttrValue* v = key == AttrKey::kCount ? nullptr : e.attrs.find(key);
    if (!v) return nullptr;
    if (const auto* s = std::get_if<int64_t>(v);
        s && attr_kind(key) == AttrKind::kDType && !dtype_from_code(static_cast<int>(*s))) {
      return nullptr;
    }
    return v;
  };
  const auto given = [&](size_t i) { return (i < e.args.size() && e.args[i]) || held(i); };
  // A form that has every parameter given here and asks for none that is missing.
  const auto fits = [&](OpForm form) {
    if (!(row.forms & form)) return false;
    const OpRow* found = find_op(form, row.name);
    if (!found || found->id != row.id) return false;
    const auto& params = op_params(row, form);
    std::vector<bool> filled(params.size());
    for (size_t i = 0; i < flat.size(); ++i) {
      if (!given(i)) continue;
      const int at = form_position(flat, params, i);
      if (at >= 0) {
        filled[static_cast<size_t>(at)] = true;
      } else if (!(held(i) && flat[i].has_default &&
                   is_default(*held(i), attr_kind(attr_from_name(flat[i].name)), flat[i].default_text))) {
        return false;
      }
    }
    for (size_t j = 0; j < params.size(); ++j) {
      if (!filled[j] && !params[j].has_default) return false;
    }
    return true;
  };
  const FormName* chosen = nullptr;
  // pl.tile.assemble writes into a tile only.
  const bool into_tensor =
      e.op == OpId::k_assemble && !e.args.empty() && e.args[0] && e.args[0]->type->is_tensor();
  const bool tile_first = lowered && !into_tensor && (has_tile(e) || is_block_query(e.op));
  if (tile_first && fits(kFormTile)) chosen = &kForms[4];
  const bool tensors = !has_tile(e) && fits(kFormTensor);
  for (const auto& f : kForms) {
    if (!chosen && !(tensors && f.form == kFormTile) && fits(f.form)) chosen = &f;
  }
  const std::vector<OpParam>& params = chosen ? op_params(row, chosen->form) : flat;
  std::string out = std::string(chosen ? chosen->text : "pl.internal.") + row.name + "(";
  bool first = true, positional = true;
  for (size_t i = 0; i < flat.size(); ++i) {
    const ExprPtr arg = i < e.args.size() ? e.args[i] : nullptr;
    const AttrValue* v = held(i);
    const int at = chosen ? form_position(flat, params, i) : static_cast<int>(i);
    if (at < 0) continue;
    const OpParam& p = params[static_cast<size_t>(at)];
    std::string text;
    bool is_attr = false;
    if (pop_typed_ && (flat[i].name == "shape" || flat[i].name == "dtype")) continue;
    if (flat[i].name == "id" && row.cost == CostClass::kSync && v && std::holds_alternative<int64_t>(*v) &&
        std::get<int64_t>(*v) == 0)
      continue;
    if (arg) {
      text = arg->kind == ExprKind::kTuple ? list(arg) : expr(written(arg));
      if (arg->kind == ExprKind::kFloat && widens(e)) text = typed_float(*arg, text);
    } else if (v) {
      const AttrKey key = attr_from_name(flat[i].name);
      if (e.op == OpId::k_alloc_window_buffer && key == AttrKey::k_name)
        continue;  // it is the variable's name
      // In a pl.split_aiv body the mode is that of the loop.
      if (key == AttrKey::k_split && lanes_ > 0 && (e.op == OpId::k_aiv_shard || e.op == OpId::k_aic_gather))
        continue;
      const bool pop = e.op == OpId::k_tpop_from_aic || e.op == OpId::k_tpop_from_aiv;
      const bool always = pop && key == AttrKey::k_split;  // 01 L-67
      if (!always && p.has_default && is_default(*v, attr_kind(key), p.default_text)) {
        positional = false;
        continue;
      }
      text = attr(key, *v);
      is_attr = p.has_default || p.keyword_only;
    } else {
      positional = false;
      continue;
    }
    if (!first) out += ", ";
    first = false;
    if (!positional || p.keyword_only || is_attr) {
      positional = false;
      out += p.name + "=";
    }
    out += text;
  }
  return out + ")";
}

std::string Printer::deps(const std::vector<ExprPtr>& list) {
  std::string out = "deps=[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    const auto& d = list[i];
    if (d && d->kind == ExprKind::kOp && d->op == OpId::k_array_get) {
      out += expr(d->args[0]) + "[" + expr(d->args[1]) + "]";
    } else {
      out += expr(d);
    }
  }
  return out + "]";
}

std::string Printer::predicate(const ExprPtr& e) {
  const auto side = [&](const ExprPtr& x) -> std::string {
    if (x->kind == ExprKind::kOp && x->op == OpId::k_read) {
      std::string out = expr(x->args[0]) + "[";
      if (x->args[1]->kind != ExprKind::kTuple) return out + expr(x->args[1]) + "]";
      for (size_t i = 0; i < x->args[1]->args.size(); ++i) out += (i ? ", " : "") + expr(x->args[1]->args[i]);
      return out + "]";
    }
    return x->kind == ExprKind::kInt ? std::to_string(x->int_value) : expr(x);
  };
  if (e->kind == ExprKind::kOp && infix(e->op))
    return "predicate=(" + side(e->args[0]) + infix(e->op) + side(e->args[1]) + ")";
  return "predicate=" + expr(e);
}

std::string Printer::call(const Expr& e) {
  const CallInfo& info = *e.call;
  const std::string callee =
      (info.callee->is_sub_worker && self_.empty() ? "" : self_) + identifier(info.callee->name);
  std::string out;
  if (info.submit) {
    out = std::string(info.spmd ? "pl.spmd_submit(" : "pl.submit(") + callee;
  } else {
    out = callee + "(";
  }
  bool first = !info.submit;
  const auto add = [&](const std::string& text) {
    if (!first) out += ", ";
    first = false;
    out += text;
  };
  for (size_t i = 0; i < e.args.size(); ++i) {
    if (!e.args[i]) continue;
    const bool marked = i < info.no_dep.size() && info.no_dep[i] &&
                        !(e.args[i]->kind == ExprKind::kOp && e.args[i]->op == OpId::k_no_dep);
    // A window handed to a parameter of another rank: the dispatch implies the reshape, which the host may
    // not write.
    const ExprPtr& given = e.args[i];
    const bool implied = info.device && given->kind == ExprKind::kOp && given->op == OpId::k_reshape;
    const std::string text = expr(written(implied ? given->args[0] : given));
    add(marked ? "pl.no_dep(" + text + ")" : text);
  }
  if (info.core_num) add("core_num=" + expr(info.core_num));
  if (info.sync_start) add("sync_start=True");
  if (info.has_deps) add(deps(info.deps));
  if (!info.dumps.empty()) {
    std::string names = "dumps=[";
    for (size_t i = 0; i < info.dumps.size(); ++i) names += (i ? ", " : "") + info.dumps[i];
    add(names + "]");
  }
  if (info.allow_early_resolve) add("allow_early_resolve=True");
  if (info.predicate) add(predicate(info.predicate));
  if (info.device) add("device=" + expr(info.device));
  return out + ")";
}

}  // namespace pypto::ir::printing
