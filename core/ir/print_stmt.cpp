// SPDX-License-Identifier: Apache-2.0
#include "core/base/poll.h"
#include "core/ir/print_impl.h"

namespace pypto::ir::printing {
namespace {

constexpr const char* kStep = "    ";

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) out += (i ? ", " : "") + parts[i];
  return out;
}

}  // namespace

void Printer::line(int indent, const std::string& text) {
  for (int i = 0; i < indent; ++i) out_ += kStep;
  out_ += text + "\n";
}

void Printer::block(const Block& b, int indent) {
  bool any = false;
  for (const auto& s : b) {
    poll();
    stmt(*s, indent);
    any = any || s->kind != StmtKind::kComment;
  }
  if (!any) line(indent, "pass");
}

std::string Printer::targets(const Stmt& s) {
  std::vector<std::string> names;
  for (const auto& t : s.targets) names.push_back(t ? names_.of(t.get()) : "_");
  const bool submit = s.value && s.value->kind == ExprKind::kCall && s.value->call && s.value->call->submit;
  if (submit) {  // also what was written as one flat tuple: its elements are variables
    const std::string task = names.back();
    names.pop_back();
    if (names.empty()) return "_, " + task;
    return (names.size() == 1 ? names[0] : "(" + joined(names) + ")") + ", " + task;
  }
  // A tuple-valued expression unpacked into its only element.
  const Type* t = s.value ? s.value->type.get() : nullptr;
  if (names.size() == 1 && t && t->kind == TypeKind::kTuple && t->elements.size() == 1 && s.targets[0] &&
      s.targets[0]->type && s.targets[0]->type->kind != TypeKind::kTuple) {
    return "(" + names[0] + ",)";
  }
  return joined(names);
}

std::string Printer::carry_names(const Stmt& s) {
  std::vector<std::string> names;
  for (const auto& c : s.carries) names.push_back(names_.of(c.var.get()));
  return "(" + joined(names) + (names.size() == 1 ? ",)" : ")");
}

std::string Printer::carry_values(const Stmt& s) {
  std::vector<std::string> values;
  for (const auto& c : s.carries) values.push_back(expr(c.init));
  return "init_values=(" + joined(values) + (values.size() == 1 ? ",)" : ")");
}

std::string Printer::loop_call(const Stmt& s) {
  static const char* kNames[] = {"pl.range(", "pl.parallel(", "pl.unroll(", "pl.pipeline("};
  std::vector<std::string> parts;
  const auto start = s.start ? const_int(s.start) : std::optional<int64_t>(0);
  const auto step = s.step ? const_int(s.step) : std::optional<int64_t>(1);
  const bool plain_start = start == 0 && (!s.start || s.start->type->dtype == DType::kIndex);
  const bool plain_step = step == 1 && (!s.step || s.step->type->dtype == DType::kIndex);
  if (!plain_start || !plain_step) parts.push_back(s.start ? expr(s.start) : "0");
  parts.push_back(expr(s.stop));
  if (!plain_step) parts.push_back(s.step ? expr(s.step) : "1");
  if (s.for_kind == ForKind::kPipeline) parts.push_back("stage=" + std::to_string(s.stage));
  if (s.explicit_carry && !s.carries.empty()) parts.push_back(carry_values(s));
  if (!s.loop_attrs.empty()) {
    std::string attrs = "attrs={";
    for (size_t i = 0; i < s.loop_attrs.size(); ++i) {
      attrs += (i ? ", " : "") + quoted(s.loop_attrs[i].first) + ": " + s.loop_attrs[i].second;
    }
    parts.push_back(attrs + "}");
  }
  return kNames[static_cast<int>(s.for_kind)] + joined(parts) + ")";
}

std::string Printer::scope_header(const ScopeInfo& s) {
  std::vector<std::string> parts;
  const auto optimizations = [&] {
    std::vector<std::string> list;
    if (s.has_split) list.push_back(std::string("pl.split(pl.SplitMode.") + split_member(s.split) + ")");
    if (s.slot_num > 0) list.push_back("pl.cross_core_slot(slot_num=" + std::to_string(s.slot_num) + ")");
    if (!list.empty()) parts.push_back("optimizations=[" + joined(list) + "]");
  };
  const auto names = [&](const char* key, const std::vector<VarPtr>& vars) {
    if (vars.empty()) return;
    std::vector<std::string> list;
    for (const auto& v : vars) list.push_back(names_.of(v.get()));
    parts.push_back(std::string(key) + "=[" + joined(list) + "]");
  };
  const auto hint = [&] {
    if (!s.name_hint.empty()) parts.push_back("name_hint=" + quoted(s.name_hint));
  };
  std::string head;
  switch (s.kind) {
    case ScopeKind::kIncore:
    case ScopeKind::kHierarchy: {
      head = "with pl.at(";
      const Level level = s.kind == ScopeKind::kIncore ? Level::kCoreGroup : s.level;
      parts.push_back(std::string("level=pl.Level.") + level_member(level));
      if (s.kind == ScopeKind::kHierarchy && s.role != Role::kNone) {
        parts.push_back(std::string("role=pl.Role.") + role_member(s.role));
      }
      optimizations();
      if (s.has_deps) parts.push_back(deps(s.deps));
      names("no_dep_args", s.no_dep_args);
      names("dumps", s.dumps);
      if (s.allow_early_resolve) parts.push_back("allow_early_resolve=True");
      hint();
      if (s.windowize) parts.push_back("windowize=True");
      break;
    }
    case ScopeKind::kCluster:
      head = "with pl.cluster(";
      hint();
      break;
    case ScopeKind::kSpmd:
      head = s.loop_var ? "for " + names_.of(s.loop_var.get()) + " in pl.spmd(" : "with pl.spmd(";
      parts.push_back(expr(s.core_num));
      if (s.sync_start) parts.push_back("sync_start=True");
      hint();
      optimizations();
      if (s.has_deps) parts.push_back(deps(s.deps));
      if (s.allow_early_resolve) parts.push_back("allow_early_resolve=True");
      if (s.predicate) parts.push_back(predicate(s.predicate));
      break;
    case ScopeKind::kAuto:
      return "with pl.scope():";
    case ScopeKind::kManual:
      return "with pl.manual_scope():";
    case ScopeKind::kSplitAiv:
      return "for " + names_.of(s.loop_var.get()) + " in pl.split_aiv(2, mode=pl.SplitMode." +
             split_member(s.mode) + "):";
  }
  head += joined(parts) + ")";
  if (s.task) head += " as " + names_.of(s.task.get());
  return head + ":";
}

namespace {

bool is_pop(const ExprPtr& e) {
  return e->kind == ExprKind::kOp && (e->op == OpId::k_tpop_from_aic || e->op == OpId::k_tpop_from_aiv);
}

}  // namespace

void Printer::stmt(const Stmt& s, int indent) {
  switch (s.kind) {
    case StmtKind::kAssign: {
      const bool checked = s.targets.size() == 1 && is_checked_conversion(s.value);
      pop_typed_ = s.targets.size() == 1 && is_pop(s.value);
      if (s.targets.size() == 1 && s.value->kind == ExprKind::kOp && s.value->op == OpId::k_get_subblock_idx)
        lane_vars_.insert(s.targets[0].get());
      std::string value = expr(checked ? s.value->args[0] : s.value);
      pop_typed_ = false;
      // `a, b = x, y`: a display needs no parentheses, a list operand of one target does not occur.
      std::string left = targets(s);
      if (s.targets.size() == 1 && s.targets[0] && s.value->kind != ExprKind::kTuple) {
        const Var& v = *s.targets[0];
        if (checked) {
          left += ": pl.Scalar[" + dtype(s.value->type->dtype) + "]";
        } else if (s.annotation) {
          left += ": " + type(*s.annotation, true);
        } else if (v.type && annotates(*v.type) && s.value->kind == ExprKind::kOp) {
          const bool pop = is_pop(s.value);
          left += ": " + type(*v.type, pop);
        }
      }
      line(indent, left + " = " + value);
      break;
    }
    case StmtKind::kEval:
      line(indent, expr(s.value));
      break;
    case StmtKind::kYield: {
      std::vector<std::string> values;
      for (const auto& v : s.values) values.push_back(expr(v));
      line(indent, targets(s) + " = pl.yield_(" + joined(values) + ")");
      break;
    }
    case StmtKind::kReturn: {
      std::vector<std::string> values;
      for (const auto& v : s.values) values.push_back(expr(v));
      line(indent, values.empty() ? "return" : "return " + joined(values));
      break;
    }
    case StmtKind::kBreak:
      line(indent, "break");
      break;
    case StmtKind::kContinue:
      line(indent, "continue");
      break;
    case StmtKind::kFor: {
      const std::string call = loop_call(s);
      std::string head = "for " + names_.of(s.loop_var.get());
      if (s.explicit_carry && !s.carries.empty()) head += ", " + carry_names(s);
      line(indent, head + " in " + call + ":");
      block(s.body, indent + 1);
      break;
    }
    case StmtKind::kWhile:
      if (s.explicit_carry && !s.carries.empty()) {
        const std::string values = carry_values(s);
        line(indent, "for " + carry_names(s) + " in pl.while_(" + values + "):");
        line(indent + 1, "pl.cond(" + expr(s.value) + ")");
        if (!s.body.empty()) block(s.body, indent + 1);
      } else {
        line(indent, "while " + (s.value ? expr(s.value) : std::string("True")) + ":");
        block(s.body, indent + 1);
      }
      break;
    case StmtKind::kIf:
      line(indent, "if " + expr(s.value) + ":");
      block(s.body, indent + 1);
      if (s.has_else || !s.else_body.empty()) {
        line(indent, "else:");
        block(s.else_body, indent + 1);
      }
      break;
    case StmtKind::kScope:
      line(indent, scope_header(*s.scope));
      lanes_ += s.scope->kind == ScopeKind::kSplitAiv ? 1 : 0;
      block(s.body, indent + 1);
      lanes_ -= s.scope->kind == ScopeKind::kSplitAiv ? 1 : 0;
      break;
    case StmtKind::kComment:
      line(indent, "# " + s.text);
      break;
  }
}

std::string Printer::statement(const Stmt& s, int indent) {
  out_.clear();
  stmt(s, indent);
  return std::move(out_);
}

}  // namespace pypto::ir::printing
