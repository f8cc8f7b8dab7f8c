// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/poll.h"
#include "core/ir/print.h"

namespace pypto::ir {
namespace {

/// The level a function runs at when none is written (01 L-44).
Level effective_level(const Function& f) {
  if (f.level != Level::kNone) return f.level;
  switch (f.type) {
    case FunctionType::kOrchestration:
    case FunctionType::kGraph:
      return Level::kChip;
    case FunctionType::kInCore:
      return Level::kChipDie;
    case FunctionType::kAIC:
      return Level::kAIC;
    case FunctionType::kAIV:
      return Level::kAIV;
    case FunctionType::kGroup:
      return Level::kCoreGroup;
    default:
      return Level::kNone;
  }
}

/// Statements without those that are only printed.
std::vector<const Stmt*> real(const Block& b) {
  std::vector<const Stmt*> out;
  for (const auto& s : b) {
    if (s->kind != StmtKind::kComment) out.push_back(s.get());
  }
  return out;
}

bool is_copy(const ExprPtr& e) {
  return e && e->kind == ExprKind::kOp && (e->op == OpId::k_copy_tile || e->op == OpId::k_snapshot);
}

/// Copies that a plain assignment makes by itself are not written (01 L-185).
const ExprPtr& bare(const ExprPtr& e) { return is_copy(e) ? bare(e->args[0]) : e; }

class Comparison {
 public:
  std::string path;  ///< to the first difference, and both sides

  bool module(const Module& a, const Module& b) {
    if (a.functions.size() != b.functions.size()) {
      return differ("functions", std::to_string(a.functions.size()) + " functions",
                    std::to_string(b.functions.size()) + " functions");
    }
    for (size_t i = 0; i < a.functions.size(); ++i) callees_[a.functions[i].get()] = b.functions[i].get();
    for (size_t i = 0; i < a.functions.size(); ++i) {
      if (!function(*a.functions[i], *b.functions[i])) return false;
    }
    return true;
  }

  bool function(const Function& a, const Function& b) {
    Step step(*this, a.name);
    forward_.clear();
    backward_.clear();
    if (a.type != b.type) return differ("type", number(a.type), number(b.type));
    if (effective_level(a) != effective_level(b)) return differ("level", number(a.level), number(b.level));
    if (a.role != b.role) return differ("role", number(a.role), number(b.role));
    if (a.is_sub_worker != b.is_sub_worker)
      return differ("sub-worker", number(a.is_sub_worker), number(b.is_sub_worker));
    if (a.auto_scope != b.auto_scope) return differ("auto_scope", number(a.auto_scope), number(b.auto_scope));
    if (a.strict_ssa != b.strict_ssa) return differ("strict_ssa", number(a.strict_ssa), number(b.strict_ssa));
    if (a.external_source != b.external_source)
      return differ("external_source", a.external_source, b.external_source);
    if (a.attrs.size() != b.attrs.size())
      return differ("attrs", number(a.attrs.size()), number(b.attrs.size()));
    for (size_t i = 0; i < a.attrs.size(); ++i) {
      if (a.attrs[i].key != b.attrs[i].key || a.attrs[i].value != b.attrs[i].value) {
        return differ("attrs", a.attrs[i].key + ": " + a.attrs[i].value,
                      b.attrs[i].key + ": " + b.attrs[i].value);
      }
    }
    if (a.params.size() != b.params.size())
      return differ("params", number(a.params.size()), number(b.params.size()));
    for (size_t i = 0; i < a.params.size(); ++i) {
      Step param(*this, "params[" + std::to_string(i) + "]");
      if (!same_var(a.params[i], b.params[i])) return differ("", a.params[i]->name, b.params[i]->name);
    }
    for (size_t i = 0; i < a.params.size(); ++i) {
      Step param(*this, "params[" + std::to_string(i) + "]");
      if (a.directions[i] != b.directions[i])
        return differ("direction", number(a.directions[i]), number(b.directions[i]));
      if (!type(*a.params[i]->type, *b.params[i]->type, true)) {
        return differ("type", type_text(*a.params[i]->type, true), type_text(*b.params[i]->type, true));
      }
    }
    if (a.return_types.size() != b.return_types.size()) {
      return differ("return_types", number(a.return_types.size()), number(b.return_types.size()));
    }
    for (size_t i = 0; i < a.return_types.size(); ++i) {
      if (!same_type(*a.return_types[i], *b.return_types[i])) {
        return differ("return_types[" + std::to_string(i) + "]", type_text(*a.return_types[i]),
                      type_text(*b.return_types[i]));
      }
    }
    if (a.is_sub_worker) return true;
    Step body(*this, "body");
    return block(a.body, b.body);
  }

 private:
  struct Step {
    Step(Comparison& c, const std::string& name) : owner(c), size(c.where_.size()) {
      if (!name.empty()) c.where_ += (c.where_.empty() || name[0] == '[' ? "" : ".") + name;
    }
    ~Step() { owner.where_.resize(size); }
    Comparison& owner;
    size_t size;
  };

  template <class T>
  static std::string number(T v) {
    return std::to_string(static_cast<int64_t>(v));
  }

  bool differ(const std::string& what, const std::string& a, const std::string& b) {
    if (path.empty()) {
      Step step(*this, what);
      path = where_ + ":\n  left:  " + a + "\n  right: " + b;
    }
    return false;
  }

  bool same_var(const VarPtr& a, const VarPtr& b) {
    if (!a || !b) return !a && !b;
    const auto [f, new_f] = forward_.try_emplace(a.get(), b.get());
    const auto [g, new_g] = backward_.try_emplace(b.get(), a.get());
    return f->second == b.get() && g->second == a.get();
  }

  bool dim(const Dim& a, const Dim& b) {
    if (a.is_const() || b.is_const()) return a.value == b.value;
    if (!a.expr || !b.expr) return !a.expr && !b.expr;
    return expr(a.expr, b.expr);
  }

  bool type(const Type& a, const Type& b, bool extents) {
    if (a.kind != b.kind || a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
    if (a.is_tensor() && (a.is_window() != b.is_window() || a.layout != b.layout)) return false;
    for (size_t i = 0; i < a.shape.size(); ++i) {
      const bool constant = a.shape[i].is_const() && b.shape[i].is_const();
      if (constant ? a.shape[i].value != b.shape[i].value : extents && !dim(a.shape[i], b.shape[i]))
        return false;
    }
    if (a.elements.size() != b.elements.size()) return false;
    for (size_t i = 0; i < a.elements.size(); ++i) {
      if (!type(*a.elements[i], *b.elements[i], extents)) return false;
    }
    return true;
  }

  bool vars(const char* what, const std::vector<VarPtr>& a, const std::vector<VarPtr>& b) {
    if (a.size() != b.size()) return differ(what, number(a.size()), number(b.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same_var(a[i], b[i])) return differ(what, a[i] ? a[i]->name : "_", b[i] ? b[i]->name : "_");
      if (a[i] && !type(*a[i]->type, *b[i]->type, false))
        return differ(what, type_text(*a[i]->type), type_text(*b[i]->type));
    }
    return true;
  }

  bool exprs(const char* what, const std::vector<ExprPtr>& a, const std::vector<ExprPtr>& b) {
    if (a.size() != b.size()) return differ(what, number(a.size()), number(b.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      Step step(*this, std::string(what) + "[" + std::to_string(i) + "]");
      if (!expr(a[i], b[i])) return false;
    }
    return true;
  }

  bool expr_differ(const ExprPtr& a, const ExprPtr& b) {
    return differ("", a ? print(a) : "None", b ? print(b) : "None");
  }

  bool expr(const ExprPtr& left, const ExprPtr& right) {
    const ExprPtr& a = bare(left);
    const ExprPtr& b = bare(right);
    if (!a || !b) return (!a && !b) || expr_differ(a, b);
    if (a->kind != b->kind) return expr_differ(a, b);
    switch (a->kind) {
      case ExprKind::kInt:
        return (a->int_value == b->int_value && a->type->dtype == b->type->dtype) || expr_differ(a, b);
      case ExprKind::kFloat: {
        const bool equal = a->float_value == b->float_value ||
                           (a->float_value != a->float_value && b->float_value != b->float_value);
        return (equal && a->type->dtype == b->type->dtype) || expr_differ(a, b);
      }
      case ExprKind::kNone:
        return true;
      case ExprKind::kString:
        return a->text == b->text || expr_differ(a, b);
      case ExprKind::kVar:
        return same_var(a->var, b->var) || expr_differ(a, b);
      case ExprKind::kDType:
        return a->int_value == b->int_value || expr_differ(a, b);
      case ExprKind::kItem:
        return (a->int_value == b->int_value || expr_differ(a, b)) && expr(a->args[0], b->args[0]);
      case ExprKind::kTuple:
        return exprs("items", a->args, b->args);
      case ExprKind::kOp: {
        // What a checked conversion calls its value depends on where it stands.
        const bool checked =
            is_checked_conversion(a) && is_checked_conversion(b) && a->type->dtype == b->type->dtype;
        if (a->op != b->op || !(checked || attrs(a->attrs, b->attrs))) return expr_differ(a, b);
        Step step(*this, op_row(a->op).name);
        // Trailing operands that are absent may be left out.
        for (size_t i = 0; i < std::max(a->args.size(), b->args.size()); ++i) {
          const ExprPtr x = i < a->args.size() ? a->args[i] : nullptr;
          const ExprPtr y = i < b->args.size() ? b->args[i] : nullptr;
          Step arg(*this, "args[" + std::to_string(i) + "]");
          if (!expr(x, y)) return false;
        }
        return true;
      }
      case ExprKind::kCall:
        return call(*a, *b);
    }
    return false;
  }

  bool attrs(const AttrMap& a, const AttrMap& b) {
    if (a.entries().size() != b.entries().size()) return false;
    return std::all_of(a.entries().begin(), a.entries().end(), [&](const auto& entry) {
      const AttrValue* other = b.find(entry.first);
      return other && *other == entry.second;
    });
  }

  bool call(const Expr& x, const Expr& y) {
    const CallInfo& a = *x.call;
    const CallInfo& b = *y.call;
    Step step(*this, a.callee->name);
    const auto it = callees_.find(a.callee.get());
    const bool same = it != callees_.end() ? it->second == b.callee.get() : a.callee->name == b.callee->name;
    if (!same) return differ("callee", a.callee->name, b.callee->name);
    if (a.submit != b.submit || a.spmd != b.spmd || a.sync_start != b.sync_start ||
        a.has_deps != b.has_deps || a.allow_early_resolve != b.allow_early_resolve ||
        a.dumps.size() != b.dumps.size()) {
      return differ("form", "submit/spmd/sync_start/deps/allow_early_resolve", "other");
    }
    for (size_t i = 0; i < x.args.size() || i < y.args.size(); ++i) {
      if (no_dep(x, i) != no_dep(y, i)) return differ("no_dep", number(no_dep(x, i)), number(no_dep(y, i)));
    }
    const auto plain = [](const std::vector<ExprPtr>& list) {
      std::vector<ExprPtr> out;
      for (const auto& e : list) {
        out.push_back(e && e->kind == ExprKind::kOp && e->op == OpId::k_no_dep ? e->args[0] : e);
      }
      return out;
    };
    return exprs("args", plain(x.args), plain(y.args)) && exprs("deps", a.deps, b.deps) &&
           expr(a.core_num, b.core_num) && expr(a.device, b.device) && expr(a.predicate, b.predicate);
  }

  static bool no_dep(const Expr& e, size_t i) {
    if (i >= e.args.size()) return false;
    if (i < e.call->no_dep.size() && e.call->no_dep[i]) return true;
    return e.args[i] && e.args[i]->kind == ExprKind::kOp && e.args[i]->op == OpId::k_no_dep;
  }

  bool block(const Block& x, const Block& y) {
    const auto a = real(x);
    const auto b = real(y);
    for (size_t i = 0; i < a.size() || i < b.size(); ++i) {
      Step step(*this, "[" + std::to_string(i) + "]");
      if (i >= a.size()) return differ("", "(end)", print(*b[i]));
      if (i >= b.size()) return differ("", print(*a[i]), "(end)");
      if (!stmt(*a[i], *b[i])) return false;
    }
    return true;
  }

  bool stmt(const Stmt& a, const Stmt& b) {
    poll();
    if (a.kind != b.kind) return differ("", print(a), print(b));
    switch (a.kind) {
      case StmtKind::kAssign:
        return expr(a.value, b.value) && vars("targets", a.targets, b.targets);
      case StmtKind::kYield:
        return exprs("values", a.values, b.values) && vars("targets", a.targets, b.targets);
      case StmtKind::kEval:
        return expr(a.value, b.value);
      case StmtKind::kReturn:
        return exprs("values", a.values, b.values);
      case StmtKind::kIf:
        return expr(a.value, b.value) && block(a.body, b.body) && block(a.else_body, b.else_body);
      case StmtKind::kFor:
      case StmtKind::kWhile:
        return loop(a, b);
      case StmtKind::kScope:
        return scope(*a.scope, *b.scope) && block(a.body, b.body);
      default:
        return true;
    }
  }

  // A start of 0 and a step of 1 need not be written.
  bool bound(const char* what, const ExprPtr& a, const ExprPtr& b, int64_t fallback) {
    const auto x = a ? const_int(a) : std::optional<int64_t>(fallback);
    const auto y = b ? const_int(b) : std::optional<int64_t>(fallback);
    if (x && y) return *x == *y || differ(what, std::to_string(*x), std::to_string(*y));
    return expr(a, b);
  }

  bool loop(const Stmt& a, const Stmt& b) {
    if (a.for_kind != b.for_kind) return differ("kind", number(a.for_kind), number(b.for_kind));
    if (a.stage != b.stage) return differ("stage", number(a.stage), number(b.stage));
    if (a.loop_attrs != b.loop_attrs) return differ("attrs", "{...}", "{...}");
    if (a.explicit_carry != b.explicit_carry || a.carries.size() != b.carries.size()) {
      return differ("carries", number(a.carries.size()), number(b.carries.size()));
    }
    if (a.kind == StmtKind::kFor) {
      if (!bound("start", a.start, b.start, 0) || !bound("stop", a.stop, b.stop, 0) ||
          !bound("step", a.step, b.step, 1))
        return false;
      if (!same_var(a.loop_var, b.loop_var)) return differ("loop_var", a.loop_var->name, b.loop_var->name);
    }
    for (size_t i = 0; i < a.carries.size(); ++i) {
      if (!expr(a.carries[i].init, b.carries[i].init)) return false;
      if (!same_var(a.carries[i].var, b.carries[i].var))
        return differ("carry", a.carries[i].var->name, b.carries[i].var->name);
    }
    if (a.kind == StmtKind::kWhile && !expr(a.value, b.value)) return false;
    return block(a.body, b.body);
  }

  bool scope(const ScopeInfo& a, const ScopeInfo& b) {
    if (a.kind != b.kind) return differ("scope", number(a.kind), number(b.kind));
    if (a.name_hint != b.name_hint) return differ("name_hint", a.name_hint, b.name_hint);
    if (a.kind == ScopeKind::kHierarchy && a.level != b.level)
      return differ("level", number(a.level), number(b.level));
    if (a.role != b.role || a.has_split != b.has_split || a.split != b.split || a.slot_num != b.slot_num ||
        a.has_deps != b.has_deps || a.allow_early_resolve != b.allow_early_resolve ||
        a.windowize != b.windowize || a.sync_start != b.sync_start || a.mode != b.mode) {
      return differ("scope", "its options", "its options");
    }
    return exprs("deps", a.deps, b.deps) && vars("no_dep_args", a.no_dep_args, b.no_dep_args) &&
           vars("dumps", a.dumps, b.dumps) && expr(a.core_num, b.core_num) &&
           expr(a.predicate, b.predicate) && (same_var(a.task, b.task) || differ("task", "as", "as")) &&
           (same_var(a.loop_var, b.loop_var) || differ("loop_var", "for", "for"));
  }

  std::string where_;
  std::unordered_map<const Var*, const Var*> forward_, backward_;
  std::unordered_map<const Function*, const Function*> callees_;
};

/// A hash of what Comparison looks at; variables count by position of first mention.
class Hasher {
 public:
  uint64_t value = 1469598103934665603ull;

  void module(const Module& m) {
    add(m.functions.size());
    for (const auto& f : m.functions) function(*f);
  }

  void function(const Function& f) {
    vars_.clear();
    add(static_cast<uint64_t>(f.type));
    add(static_cast<uint64_t>(f.role));
    add(f.params.size());
    for (size_t i = 0; i < f.params.size(); ++i) {
      var(f.params[i]);
      add(static_cast<uint64_t>(f.directions[i]));
      type(*f.params[i]->type);
    }
    if (!f.is_sub_worker) block(f.body);
  }

 private:
  void add(uint64_t v) { value = (value ^ v) * 1099511628211ull ^ (value >> 29); }
  void add(const std::string& s) {
    for (const char c : s) add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
    add(s.size());
  }

  void var(const VarPtr& v) { add(v ? vars_.try_emplace(v.get(), vars_.size() + 1).first->second : 0); }

  void type(const Type& t) {
    add(static_cast<uint64_t>(t.kind));
    add(static_cast<uint64_t>(t.dtype));
    add(t.shape.size());
  }

  void expr(const ExprPtr& full) {
    const ExprPtr& e = bare(full);
    if (!e) return add(77);
    if (e->kind == ExprKind::kOp && e->op == OpId::k_no_dep) return expr(e->args[0]);
    add(static_cast<uint64_t>(e->kind));
    switch (e->kind) {
      case ExprKind::kInt:
      case ExprKind::kDType:
      case ExprKind::kItem:
        add(static_cast<uint64_t>(e->int_value));
        break;
      case ExprKind::kFloat:
        add(std::to_string(e->float_value));
        break;
      case ExprKind::kString:
        add(e->text);
        break;
      case ExprKind::kVar:
        var(e->var);
        break;
      case ExprKind::kOp:
        add(static_cast<uint64_t>(e->op));
        break;
      default:
        break;
    }
    for (const auto& a : e->args) {
      if (a) expr(a);
    }
  }

  void block(const Block& b) {
    for (const Stmt* s : real(b)) stmt(*s);
    add(99);
  }

  void stmt(const Stmt& s) {
    poll();
    add(static_cast<uint64_t>(s.kind));
    if (s.value) expr(s.value);
    for (const auto& v : s.values) expr(v);
    for (const auto& c : s.carries) {
      expr(c.init);
      var(c.var);
    }
    if (s.kind == StmtKind::kFor) {
      expr(s.stop);
      var(s.loop_var);
    }
    if (s.scope) {
      add(static_cast<uint64_t>(s.scope->kind));
      add(s.scope->name_hint);
    }
    for (const auto& t : s.targets) var(t);
    block(s.body);
    block(s.else_body);
  }

  std::unordered_map<const Var*, uint64_t> vars_;
};

}  // namespace

bool structural_equal(const Module& a, const Module& b, std::string* path) {
  Comparison c;
  const bool equal = c.module(a, b);
  if (path) *path = c.path;
  return equal;
}

bool structural_equal(const Function& a, const Function& b, std::string* path) {
  Comparison c;
  const bool equal = c.function(a, b);
  if (path) *path = c.path;
  return equal;
}

uint64_t structural_hash(const Module& m) {
  Hasher h;
  h.module(m);
  return h.value;
}

uint64_t structural_hash(const Function& f) {
  Hasher h;
  h.function(f);
  return h.value;
}

}  // namespace pypto::ir
