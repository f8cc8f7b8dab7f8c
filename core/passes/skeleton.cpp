// SPDX-License-Identifier: Apache-2.0
#include "core/passes/skeleton.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ir/print.h"
#include "core/passes/passes.h"
#include "core/passes/poly.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::Block;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::OpId;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

/// A line of the skeleton with what stands below it.
struct Node {
  enum class Kind : uint8_t { kLine, kLoop, kIf, kNotify, kWait } kind = Kind::kLine;
  std::string text;
  std::vector<Node> body, other;
  // signals, for folding
  std::string window, peer, value;
  std::vector<std::string> cell;

  bool operator==(const Node& o) const { return text == o.text && body == o.body && other == o.other; }
};

/// Which scalar parameters of device functions are the rank of the device they run on, or the number of
/// ranks.
class ThreadedRanks {
 public:
  explicit ThreadedRanks(const ir::Module& m) {
    for (bool changed = true; changed;) {
      changed = false;
      std::map<const Var*, std::set<char>> seen;
      for (const auto& f : m.functions) {
        walk_exprs(f->body, [&](const ExprPtr& e) {
          if (e->kind != ExprKind::kCall) return;
          for (size_t i = 0; i < e->args.size() && i < e->call->callee->params.size(); ++i) {
            const auto& p = e->call->callee->params[i];
            if (!p->type->is_scalar() || !e->args[i]) continue;
            seen[p.get()].insert(meaning(e->args[i], e->call->device));
          }
        });
      }
      for (const auto& [p, meanings] : seen) {
        const char all = meanings.size() == 1 ? *meanings.begin() : 0;
        if (known_[p] != all) {
          known_[p] = all;
          changed = true;
        }
      }
      if (++rounds_ > 16) break;
    }
  }
  /// 'r' for the rank, 'n' for the number of ranks, else 0.
  char of(const Var* p) const {
    const auto it = known_.find(p);
    return it == known_.end() ? 0 : it->second;
  }

 private:
  char meaning(ExprPtr e, const ExprPtr& device) const {
    while (is_op(e, OpId::k_scalar_cast)) e = e->args[0];
    if (is_op(e, OpId::k_world_size)) return 'n';
    if (e->kind != ExprKind::kVar) return 0;
    if (device) {
      ExprPtr d = device;
      while (is_op(d, OpId::k_scalar_cast)) d = d->args[0];
      if (d->kind == ExprKind::kVar && d->var == e->var) return 'r';
    }
    return of(e->var.get());
  }
  std::map<const Var*, char> known_;
  int rounds_ = 0;
};

class Skeleton {
 public:
  Skeleton(const Function& f, const ThreadedRanks& ranks, bool fold) : f_(f), ranks_(ranks), fold_(fold) {
    for (const auto& p : f.params) {
      if (p->type->is_tensor()) roots_[p.get()] = {p.get(), {}, true};
      if (ranks.of(p.get()) == 'r') scalars_[p.get()] = Poly::atom("me");
      if (ranks.of(p.get()) == 'n') scalars_[p.get()] = Poly::atom("P");
      // The extent of a signal is the number of ranks.
      if (p->type->is_window() && p->type->dtype == DType::kInt32 && p->type->rank() == 2) {
        const auto& s = p->type->shape;
        const bool column = s[1].is_const() && s[1].value == 1;
        const auto& extent = column ? s[0] : s[1];
        if (extent.expr && extent.expr->kind == ExprKind::kVar)
          scalars_[extent.expr->var.get()] = Poly::atom("P");
      }
    }
  }

  std::string run() {
    std::vector<Node> nodes = block(f_.body);
    if (fold_) fold(nodes);
    std::string out;
    print(nodes, 0, out);
    return out;
  }

 private:
  /// A tensor name: which parameter it is a view of and where it starts.
  struct Place {
    const Var* root = nullptr;
    std::vector<Poly> offset;  ///< empty: at the origin
    bool whole = false;
  };

  // ---------------------------------------------------------------- scalars
  Poly unknown(const Var* v) {
    auto [it, added] = unknown_.try_emplace(v, "v" + std::to_string(unknown_.size()));
    return Poly::atom(it->second);
  }

  Poly poly(const ExprPtr& e) {
    if (!e) return 0;
    switch (e->kind) {
      case ExprKind::kInt:
        return e->int_value;
      case ExprKind::kVar: {
        const auto it = scalars_.find(e->var.get());
        if (it != scalars_.end()) return it->second;
        if (e->var->kind == ir::VarKind::kSymbol) return Poly::atom(e->var->name);
        return unknown(e->var.get());
      }
      case ExprKind::kOp:
        break;
      default:
        return Poly::atom("?");
    }
    const auto a = [&](size_t i) { return poly(e->args[i]); };
    switch (e->op) {
      case OpId::k_rank:
        return Poly::atom("me");
      case OpId::k_nranks:
      case OpId::k_world_size:
        return Poly::atom("P");
      case OpId::k_scalar_cast:
        return a(0);
      case OpId::k_scalar_add:
        return a(0) + a(1);
      case OpId::k_scalar_sub:
        return a(0) - a(1);
      case OpId::k_scalar_mul:
        return a(0) * a(1);
      case OpId::k_scalar_neg:
        return Poly(0) - a(0);
      case OpId::k_scalar_floordiv:
        return Poly::quotient(a(0), a(1));
      case OpId::k_scalar_mod:
        return Poly::remainder(a(0), a(1));
      case OpId::k_min:
      case OpId::k_max:
        return Poly::extremum(e->op == OpId::k_max, a(0), a(1));
      case OpId::k_dim: {
        const Place p = place(e->args[0]);
        const int64_t axis = e->attrs.get_int(AttrKey::k_axis);
        if (p.root && p.whole) {
          const auto& shape = p.root->type->shape;
          const size_t k = axis < 0 ? shape.size() + static_cast<size_t>(axis) : static_cast<size_t>(axis);
          if (k < shape.size()) return shape[k].is_const() ? Poly(shape[k].value) : poly(shape[k].expr);
        }
        return Poly::atom("dim(" + name(p.root) + ", " + std::to_string(axis) + ")");
      }
      default: {
        std::string text = std::string(ir::op_row(e->op).name) + "(";
        bool first = true;
        for (const auto& x : e->args) {
          if (!x || !x->type || !x->type->is_scalar()) continue;
          text += (first ? "" : ", ") + poly(x).text();
          first = false;
        }
        return Poly::atom(text + ")");
      }
    }
  }

  std::vector<Poly> list(const ExprPtr& e) {
    std::vector<Poly> out;
    if (!e) return out;
    if (e->kind != ExprKind::kTuple) return {poly(e)};
    for (const auto& x : e->args) out.push_back(poly(x));
    return out;
  }

  // ---------------------------------------------------------------- tensors
  Place place(const ExprPtr& e) {
    if (!e) return {};
    if (e->kind == ExprKind::kVar) {
      const auto it = roots_.find(e->var.get());
      return it == roots_.end() ? Place() : it->second;
    }
    if (e->kind != ExprKind::kOp) return {};
    const auto& row = ir::op_row(e->op);
    if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0)
      return place(e->args[static_cast<size_t>(row.inplace_param)]);
    if (row.alias != ir::AliasClass::kView) return {};
    Place p = place(e->args[0]);
    if (e->op == OpId::k_slice) {
      const auto at = list(e->args[2]);
      p.whole = false;
      if (p.offset.empty()) {
        p.offset = at;
      } else {
        for (size_t i = 0; i < p.offset.size() && i < at.size(); ++i) p.offset[i] = p.offset[i] + at[i];
      }
    } else if (e->op != OpId::k_no_dep) {
      p.whole = false;
    }
    return p;
  }

  std::string name(const Var* root) {
    if (!root) return "?";
    auto it = names_.find(root);
    if (it != names_.end()) return it->second;
    const bool window = root->type->is_window();
    const std::string n = window ? "w" + std::to_string(windows_++) : "t" + std::to_string(tensors_++);
    return names_[root] = n;
  }

  static std::string texts(const std::vector<Poly>& list) {
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + list[i].text();
    return out + "]";
  }

  std::vector<Poly> moved(const Place& p, std::vector<Poly> at) {
    for (size_t i = 0; i < at.size() && i < p.offset.size(); ++i) at[i] = at[i] + p.offset[i];
    return at;
  }

  std::string region(const ExprPtr& tensor, const ExprPtr& offsets) {
    const Place p = place(tensor);
    std::vector<Poly> at =
        offsets ? list(offsets) : std::vector<Poly>(static_cast<size_t>(tensor->type->rank()));
    return name(p.root) + texts(moved(p, std::move(at)));
  }

  std::vector<Poly> extents(const ir::Type& t) {
    std::vector<Poly> out;
    const auto& shape = t.valid.size() == t.shape.size() ? t.valid : t.shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      const ir::Dim& d = shape[i].is_const() || shape[i].expr ? shape[i] : t.shape[i];
      out.push_back(d.is_const() ? Poly(d.value) : poly(d.expr));
    }
    return out;
  }

  // ---------------------------------------------------------------- operations
  void visit(const ExprPtr& e, std::vector<Node>& out) {
    walk_expr(e, [&](const ExprPtr& x) {
      if (x->kind == ExprKind::kOp) operation(*x, out);
    });
  }

  void line(std::string text, std::vector<Node>& out) {
    Node n;
    n.text = std::move(text);
    out.push_back(std::move(n));
  }

  // The extents a tile was loaded with, by variable: what a store of it moves.
  void operation(const Expr& e, std::vector<Node>& out) {
    const auto& a = e.args;
    const auto arg = [&](size_t i) { return i < a.size() ? a[i] : nullptr; };
    switch (e.op) {
      case OpId::k_notify: {
        const Place p = place(a[0]);
        Node n;
        n.kind = Node::Kind::kNotify;
        n.window = name(p.root);
        const auto cell = moved(p, list(a[2]));
        for (const auto& c : cell) n.cell.push_back(c.text());
        n.peer = poly(a[1]).text();
        const bool set = e.attrs.get_int(AttrKey::k_op) == 1;
        n.value = (set ? "set " : "add ") + poly(a[3]).text();
        n.text = "notify " + n.window + texts(cell) + " @" + n.peer + " " + n.value;
        out.push_back(std::move(n));
        return;
      }
      case OpId::k_wait:
      case OpId::k_defer_wait: {
        const Place p = place(a[0]);
        Node n;
        n.kind = Node::Kind::kWait;
        n.window = name(p.root);
        const auto cell = moved(p, list(a[1]));
        for (const auto& c : cell) n.cell.push_back(c.text());
        n.value = (e.attrs.get_int(AttrKey::k_cmp) == 1 ? "ge " : "eq ") + poly(a[2]).text();
        n.text = "wait " + n.window + texts(cell) + " " + n.value;
        out.push_back(std::move(n));
        return;
      }
      case OpId::k_remote_load: {
        const auto shape = arg(4) ? list(a[4]) : list(a[3]);
        line("rload " + region(a[0], a[2]) + " @" + poly(a[1]).text() + " " + texts(shape), out);
        return;
      }
      case OpId::k_remote_store:
      case OpId::k_tensor_remote_store:
        line("rstore " + region(a[1], a[3]) + " @" + poly(a[2]).text() + " " + texts(extents(*a[0]->type)) +
                 (e.attrs.get_int(AttrKey::k_atomic) ? " add" : ""),
             out);
        return;
      case OpId::k_put:
      case OpId::k_tile_put:
      case OpId::k_get:
      case OpId::k_tile_get: {
        const bool tile = e.op == OpId::k_tile_put || e.op == OpId::k_tile_get;
        const size_t first = tile ? 5 : 3;
        const bool put = e.op == OpId::k_put || e.op == OpId::k_tile_put;
        const auto shape = arg(first + 2) ? list(a[first + 2]) : extents(*a[0]->type);
        const std::string to = region(a[0], arg(first)), from = region(a[2], arg(first + 1));
        const std::string peer = " @" + poly(a[1]).text();
        line((put ? "put " + to + peer + " <- " + from : "get " + to + " <- " + from + peer) + " " +
                 texts(shape) + (put && e.attrs.get_int(AttrKey::k_atomic) ? " add" : ""),
             out);
        return;
      }
      case OpId::k_load:
        if (!place(a[0]).root) return;
        line("load " + region(a[0], a[1]) + " " + texts(arg(3) ? list(a[3]) : list(a[2])), out);
        return;
      case OpId::k_store:
        if (!place(a[2]).root) return;
        line("store " + region(a[2], a[1]) + " " + texts(stored(a[0])), out);
        return;
      case OpId::k_assemble:
        if (!place(a[0]).root) return;
        line("store " + region(a[0], a[2]) + " " + texts(stored(a[1])), out);
        return;
      case OpId::k_add:
      case OpId::k_maximum:
      case OpId::k_minimum:
      case OpId::k_mul: {
        if (!a[0]->type->is_array_like() || !a[1]->type->is_array_like()) return;
        const char* how = e.op == OpId::k_add       ? "sum"
                          : e.op == OpId::k_maximum ? "max"
                          : e.op == OpId::k_minimum ? "min"
                                                    : "prod";
        line(std::string("reduce ") + how, out);
        return;
      }
      default:
        return;
    }
  }

  // Extents of a stored value: those its load asked for, where the value comes from one.
  std::vector<Poly> stored(const ExprPtr& value) {
    if (value->kind == ExprKind::kVar) {
      const auto it = loaded_.find(value->var.get());
      if (it != loaded_.end()) return it->second;
    }
    if (value->kind == ExprKind::kOp) {
      const auto direct = load_extents(value);
      if (!direct.empty()) return direct;
      for (const auto& x : value->args) {
        if (x && x->type && x->type->is_array_like()) return stored(x);
      }
    }
    return extents(*value->type);
  }

  std::vector<Poly> load_extents(const ExprPtr& e) {
    if (is_op(e, OpId::k_load)) return e->args.size() > 3 && e->args[3] ? list(e->args[3]) : list(e->args[2]);
    if (is_op(e, OpId::k_remote_load))
      return e->args.size() > 4 && e->args[4] ? list(e->args[4]) : list(e->args[3]);
    return {};
  }

  // ---------------------------------------------------------------- statements
  void forget(const Block& b) {
    walk_stmts(b, [&](const ir::StmtPtr& s) {
      own_defs(*s, [&](const ir::VarPtr& v) { scalars_.erase(v.get()); });
    });
  }

  void bind(const ir::VarPtr& v, const ExprPtr& value) {
    if (!v || !value) return;
    if (v->type->is_scalar()) {
      if (is_int(v->type->dtype) || v->type->dtype == DType::kBool) {
        scalars_[v.get()] = poly(value);
      }
    } else if (v->type->is_tensor()) {
      roots_[v.get()] = place(value);
    } else if (v->type->is_tile()) {
      loaded_[v.get()] =
          value->kind == ExprKind::kOp || value->kind == ExprKind::kVar ? stored(value) : extents(*v->type);
    }
  }

  std::vector<Node> block(const Block& b) {
    std::vector<Node> out;
    for (const auto& s : b) stmt(*s, out);
    return out;
  }

  void stmt(const Stmt& s, std::vector<Node>& out) {
    switch (s.kind) {
      case StmtKind::kAssign:
        visit(s.value, out);
        for (size_t i = 0; i < s.targets.size(); ++i) {
          const bool display = s.value->kind == ExprKind::kTuple && s.targets.size() > 1;
          bind(s.targets[i], display ? s.value->args[i] : s.targets.size() == 1 ? s.value : nullptr);
        }
        break;
      case StmtKind::kEval:
        visit(s.value, out);
        break;
      case StmtKind::kYield:
      case StmtKind::kReturn:
        for (const auto& v : s.values) visit(v, out);
        for (size_t i = 0; i < s.targets.size() && i < s.values.size(); ++i) bind(s.targets[i], s.values[i]);
        break;
      case StmtKind::kFor:
        loop(s, out);
        break;
      case StmtKind::kWhile: {
        for (const auto& c : s.carries) bind(c.var, c.init);
        forget(s.body);
        Node n;
        n.kind = Node::Kind::kLoop;
        n.text = "while " + condition(s.value) + ":";
        ++depth_;
        n.body = block(s.body);
        --depth_;
        forget(s.body);
        if (!n.body.empty()) out.push_back(std::move(n));
        break;
      }
      case StmtKind::kIf:
        branch(s, out);
        break;
      case StmtKind::kScope:
        for (auto& n : block(s.body)) out.push_back(std::move(n));
        break;
      default:
        break;
    }
  }

  void loop(const Stmt& s, std::vector<Node>& out) {
    const Poly start = s.start ? poly(s.start) : Poly(0);
    const Poly stop = poly(s.stop);
    const Poly step = s.step ? poly(s.step) : Poly(1);
    for (const auto& c : s.carries) bind(c.var, c.init);
    const auto trip = (stop - start).constant();
    const auto stride = step.constant();
    if (trip && stride && *stride > 0 && *trip <= *stride) {
      if (*trip <= 0) return;
      scalars_[s.loop_var.get()] = start;
      for (auto& n : block(s.body)) out.push_back(std::move(n));
      return;
    }
    forget(s.body);
    const std::string variable = "i" + std::to_string(depth_);
    scalars_[s.loop_var.get()] = Poly::atom(variable);
    Node n;
    n.kind = Node::Kind::kLoop;
    n.text = "for " + variable + " in " + start.text() + ".." + stop.text() +
             (stride == 1 ? "" : " by " + step.text()) + ":";
    ++depth_;
    n.body = block(s.body);
    --depth_;
    forget(s.body);
    if (!n.body.empty()) out.push_back(std::move(n));
  }

  struct Condition {
    std::string text;
    std::optional<bool> known;
  };

  std::string condition(const ExprPtr& e) { return judge(e).text; }

  Condition judge(const ExprPtr& e) {
    if (const auto c = ir::const_int(e)) return {*c ? "True" : "False", *c != 0};
    if (e->kind != ExprKind::kOp) return {poly(e).text(), std::nullopt};
    const auto compare = [&](const char* op, const Poly& a, const Poly& b) {
      Condition c{Poly::comparison(op, a, b), Poly::decide(op, a, b)};
      // The skeleton speaks of two ranks or more.
      if (std::string(op) == "<" && a == Poly(1) && b == Poly::atom("P")) c.known = true;
      return c;
    };
    const auto a = [&](size_t i) { return poly(e->args[i]); };
    switch (e->op) {
      case OpId::k_scalar_eq:
        return compare("==", a(0), a(1));
      case OpId::k_scalar_ne:
        return compare("!=", a(0), a(1));
      case OpId::k_scalar_lt:
        return compare("<", a(0), a(1));
      case OpId::k_scalar_gt:
        return compare("<", a(1), a(0));
      case OpId::k_scalar_le:
        return compare("<", a(0), a(1) + Poly(1));
      case OpId::k_scalar_ge:
        return compare("<", a(1), a(0) + Poly(1));
      case OpId::k_scalar_and:
        return {"(" + condition(e->args[0]) + ") and (" + condition(e->args[1]) + ")", std::nullopt};
      case OpId::k_scalar_or:
        return {"(" + condition(e->args[0]) + ") or (" + condition(e->args[1]) + ")", std::nullopt};
      case OpId::k_scalar_not: {
        Condition c = judge(e->args[0]);
        c.text = "not (" + c.text + ")";
        if (c.known) c.known = !*c.known;
        return c;
      }
      default:
        return {poly(e).text(), std::nullopt};
    }
  }

  void branch(const Stmt& s, std::vector<Node>& out) {
    const Condition c = judge(s.value);
    if (c.known) {
      for (auto& n : block(*c.known ? s.body : s.else_body)) out.push_back(std::move(n));
      return;
    }
    Node n;
    n.kind = Node::Kind::kIf;
    n.text = "if " + c.text + ":";
    const auto before = std::make_tuple(scalars_, roots_, loaded_);
    n.body = block(s.body);
    const auto after_then = std::make_tuple(roots_, loaded_);
    std::tie(scalars_, roots_, loaded_) = before;
    n.other = block(s.else_body);
    if (s.else_body.empty()) std::tie(roots_, loaded_) = after_then;
    forget(s.body);
    forget(s.else_body);
    // What both arms end with follows the branch.
    std::vector<Node> tail;
    while (!n.body.empty() && !n.other.empty() && n.body.back() == n.other.back()) {
      tail.insert(tail.begin(), std::move(n.body.back()));
      n.body.pop_back();
      n.other.pop_back();
    }
    if (n.body.empty() && !n.other.empty()) {
      n.text = "if not (" + c.text + "):";
      std::swap(n.body, n.other);
    }
    if (!n.body.empty()) out.push_back(std::move(n));
    for (auto& t : tail) out.push_back(std::move(t));
  }

  // ---------------------------------------------------------------- folding
  // for i in 0..P: if i != me: <one signal line>
  static const Node* all_peers(const Node& n, std::string* variable) {
    if (n.kind != Node::Kind::kLoop || n.body.size() != 1) return nullptr;
    const Node& c = n.body[0];
    if (c.kind != Node::Kind::kIf || c.body.size() != 1 || !c.other.empty()) return nullptr;
    const auto space = n.text.find(" in 0..P:");
    if (n.text.compare(0, 4, "for ") != 0 || space == std::string::npos || space + 9 != n.text.size())
      return nullptr;
    *variable = n.text.substr(4, space - 4);
    if (c.text != "if " + *variable + " != me:") return nullptr;
    return &c.body[0];
  }

  // The fixed index of a row of cells, where `index` names the rank: [index, 0] or [row, index].
  static std::optional<std::string> row_of(const std::vector<std::string>& cell, const std::string& index) {
    if (cell.size() == 1) return cell[0] == index ? std::optional<std::string>("") : std::nullopt;
    if (cell.size() != 2) return std::nullopt;
    if (cell[0] == index) return cell[1] == "0" ? std::string() : " lane=" + cell[1];
    if (cell[1] == index) return " row=" + cell[0];
    return std::nullopt;
  }

  static void fold(std::vector<Node>& nodes) {
    for (auto& n : nodes) {
      fold(n.body);
      fold(n.other);
    }
    std::vector<Node> out;
    for (size_t i = 0; i < nodes.size(); ++i) {
      std::string q;
      const Node* first = all_peers(nodes[i], &q);
      if (first && first->kind == Node::Kind::kNotify) {
        std::string r;
        const Node* second = i + 1 < nodes.size() ? all_peers(nodes[i + 1], &r) : nullptr;
        if (second && second->kind == Node::Kind::kWait && second->window == first->window &&
            first->peer == q && first->value == "add 1" && second->value.compare(0, 3, "ge ") == 0) {
          const auto mine = row_of(first->cell, "me");
          const auto theirs = row_of(second->cell, r);
          if (mine && theirs && *mine == *theirs) {
            Node n;
            n.text = "barrier " + first->window + *mine + " g=" + second->value.substr(3);
            out.push_back(std::move(n));
            ++i;
            continue;
          }
        }
        const auto cell = row_of(first->cell, q);
        if (first->peer == "me" && cell && first->value.compare(0, 5, "add -") == 0) {
          Node n;
          std::string count = first->value.substr(5);
          // "add -a - b" takes back a + b.
          for (char& c : count) c = c == '-' ? '+' : c == '+' ? '-' : c;
          n.text = "clear " + first->window + *cell + " n=" + count;
          out.push_back(std::move(n));
          continue;
        }
      }
      out.push_back(std::move(nodes[i]));
    }
    nodes = std::move(out);
  }

  static void print(const std::vector<Node>& nodes, int indent, std::string& out) {
    for (const auto& n : nodes) {
      out += std::string(static_cast<size_t>(indent) * 2, ' ') + n.text + "\n";
      print(n.body, indent + 1, out);
      if (!n.other.empty()) {
        out += std::string(static_cast<size_t>(indent) * 2, ' ') + "else:\n";
        print(n.other, indent + 1, out);
      }
    }
  }

  const Function& f_;
  const ThreadedRanks& ranks_;
  bool fold_;
  std::unordered_map<const Var*, Poly> scalars_;
  std::unordered_map<const Var*, Place> roots_;
  std::unordered_map<const Var*, std::vector<Poly>> loaded_;
  std::unordered_map<const Var*, std::string> unknown_;
  std::unordered_map<const Var*, std::string> names_;
  int windows_ = 0, tensors_ = 0, depth_ = 0;
};

bool communicates(const Function& f) {
  bool found = false;
  walk_exprs(f.body, [&](const ExprPtr& e) {
    found = found || (e->kind == ExprKind::kOp && ir::op_row(e->op).cost == ir::CostClass::kComm);
  });
  return found;
}

/// A kernel that `m` has not got: says what it has, at its entry.
[[noreturn]] void refuse_kernel(const ir::Module& m, const std::string& kernel) {
  std::vector<std::string> names;
  for (const auto& f : m.functions) {
    if (f->is_kernel()) names.push_back(f->name);
  }
  const ir::FunctionPtr entry = m.entry() ? m.entry() : m.functions.empty() ? nullptr : m.functions.front();
  const Span span = entry ? entry->span : Span();
  const std::string what = "program '" + m.name + "' has no kernel '" + kernel + "'";
  if (names.empty()) {
    fail(ErrorClass::kValueError,
         what + ": it has no kernels at all" + (entry ? ", '" + entry->name + "' calls none" : ""), span,
         "call a function with type=pl.FunctionType.InCore or a @pl.jit.incore function, or open a "
         "`with pl.at(level=pl.Level.CORE_GROUP):` region");
  }
  std::string known;
  for (const auto& n : names) known += (known.empty() ? "'" : ", '") + n + "'";
  const std::string near = nearest(kernel, names);
  fail(ErrorClass::kValueError,
       what + "; " + (names.size() == 1 ? "its kernel is " : "its kernels are ") + known, span,
       near.empty() ? "name one of its kernels, or none for all of them" : "did you mean '" + near + "'?");
}

}  // namespace

std::string comm_skeleton(const ir::Module& module, const std::optional<std::string>& kernel, bool fold) {
  const ir::Module* m = &module;
  ir::ModulePtr copy;
  if (!module.lowered) {
    copy = ir::clone(module);
    outline(*copy);
    lower_collectives(*copy, {});
    m = copy.get();
  }
  const ThreadedRanks ranks(*m);
  if (kernel) {
    for (const auto& f : m->functions) {
      if (f->name == *kernel) return Skeleton(*f, ranks, fold).run();
    }
    refuse_kernel(*m, *kernel);
  }
  std::string out;
  for (const auto& f : m->functions) {
    if (!f->is_kernel() || !communicates(*f)) continue;
    out += (out.empty() ? "" : "\n") + ("kernel " + f->name + ":\n");
    const std::string body = Skeleton(*f, ranks, fold).run();
    size_t at = 0;
    while (at < body.size()) {
      const size_t end = body.find('\n', at);
      out += "  " + body.substr(at, end - at) + "\n";
      at = end + 1;
    }
  }
  return out;
}

}  // namespace pypto::passes
