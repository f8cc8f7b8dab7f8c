// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <unordered_map>
#include <utility>

#include "core/passes/collective_domains.h"
#include "core/passes/collective_forms.h"
#include "core/passes/collective_host.h"
#include "core/passes/definitions.h"
#include "core/passes/device_sets.h"
#include "core/passes/passes.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::StmtKind;
using ir::StmtPtr;

bool contains_collective(const ExprPtr& e) {
  bool found = false;
  walk_expr(e,
            [&](const ExprPtr& x) { found = found || (x->kind == ExprKind::kOp && is_collective(x->op)); });
  return found;
}

/// InCore rail: each collective becomes the primitives in front of its statement, and its value the operand
/// (03 C-1).
class KernelRewriter {
 public:
  KernelRewriter(Function& f, ir::Arch arch) : f_(f), arch_(arch) {}

  Block run(const Block& block) {
    Block out;
    for (const auto& s : block) {
      s->body = run(s->body);
      s->else_body = run(s->else_body);
      bool any = false;
      own_exprs(*s, [&](const ExprPtr& e) { any = any || contains_collective(e); });
      if (!any) {
        out.push_back(s);
        continue;
      }
      CodeBuilder b(f_, arch_, ir::kPlaceKernel, s->span);
      s->value = replace(s->value, b);
      for (auto& v : s->values) v = replace(v, b);
      s->start = replace(s->start, b);
      s->stop = replace(s->stop, b);
      s->step = replace(s->step, b);
      for (auto& c : s->carries) c.init = replace(c.init, b);
      for (auto& x : b.code) out.push_back(std::move(x));
      if (s->kind == StmtKind::kEval && s->value->kind == ExprKind::kVar) continue;
      if (s->kind == StmtKind::kAssign && s->targets.size() == 1 && s->value->kind == ExprKind::kVar &&
          s->value->var == s->targets[0]) {
        continue;  // data = pld.tensor.allreduce(data, signal)
      }
      out.push_back(s);
    }
    return out;
  }

 private:
  ExprPtr replace(const ExprPtr& e, CodeBuilder& b) {
    if (!contains_collective(e)) return e;
    auto copy = std::make_shared<ir::Expr>(*e);
    for (auto& a : copy->args) a = replace(a, b);
    if (copy->kind != ExprKind::kOp || !is_collective(copy->op)) return copy;
    for (auto& a : copy->args) {
      // An address is evaluated once.
      if (a && a->type && a->type->is_tensor() && a->kind != ExprKind::kVar)
        a = CodeBuilder::ref(b.let("operand", a));
    }
    Rail rail;
    rail.cell = [&b](const ExprPtr& q) { return std::vector<ExprPtr>{q, b.index(0)}; };
    write_collective(b, collective_call(*copy), rail);
    return collective_result(*copy);
  }

  Function& f_;
  ir::Arch arch_;
};

/// A root that no domain of this world can have (03 C-23).
void check_root(const ir::Expr& e, int world_size) {
  if (e.op != ir::OpId::k_broadcast || world_size <= 0) return;
  const int64_t root = e.attrs.get_int(ir::AttrKey::k_root);
  if (root < world_size) return;
  Diagnostic d;
  d.cls = ErrorClass::kCompileError;
  d.id = "X-30";
  d.message = "pld.tensor.broadcast: root (" + std::to_string(root) + ") must be a valid rank in [0, " +
              std::to_string(world_size) + ")";
  d.hint = "name a rank of the world";
  d.span = e.span;
  throw Failure(std::move(d));
}

/// Whether an address surely leaves gaps between its rows.
bool strided(const ExprPtr& address, const Definitions& only) {
  const ExprPtr e = resolved(address, only);
  if (!e || e->kind != ExprKind::kOp || e->op != ir::OpId::k_slice) return false;
  const auto& part = e->type->shape;
  const auto& whole = e->args[0]->type->shape;
  if (part.size() != whole.size()) return strided(e->args[0], only);
  bool cut = false;  // a dimension to the right is not taken whole
  for (size_t i = part.size(); i-- > 0;) {
    if (cut && part[i].is_const() && part[i].value > 1) return true;
    cut = cut || (part[i].is_const() && whole[i].is_const() && part[i].value != whole[i].value);
  }
  return strided(e->args[0], only);
}

/// Targets are packed (03 C-29). What no slice of this kernel says is looked at when it runs.
void check_packed(const ir::Expr& collective, const Definitions& only) {
  const ExprPtr target = collective_call(collective).target;
  if (!target || !strided(target, only)) return;
  Diagnostic d;
  d.cls = ErrorClass::kCompileError;
  d.id = "X-30";
  d.message = "pld.tensor." + collective_name(collective.op) + ": requires a packed source, and the target " +
              (target->kind == ExprKind::kVar ? "'" + target->var->name + "' " : std::string()) +
              "is a strided part of a window, of shape " + ir::shape_text(target->type->shape);
  d.hint = "copy it into a packed window first";
  d.span = collective.span;
  throw Failure(std::move(d));
}

/// No collective in a launch of several blocks (03 C-10): each block would post credits. Counts that no
/// constant gives are looked at when it runs.
class BlockRules {
 public:
  explicit BlockRules(const ir::Module& module) {
    for (const auto& f : module.functions) {
      if (!f->is_sub_worker && !f->is_host()) launches(*f);
    }
  }

 private:
  /// The first collective of a function or of what it calls, null without one.
  ExprPtr collective_in(const Function& f) {
    const auto [it, fresh] = first_.try_emplace(&f, nullptr);
    if (!fresh || f.is_sub_worker) return it->second;
    ExprPtr found;
    walk_exprs(f.body, [&](const ExprPtr& e) {
      if (found) return;
      if (e->kind == ExprKind::kOp && is_collective(e->op)) found = e;
      if (e->kind == ExprKind::kCall) found = collective_in(*e->call->callee);
    });
    return first_[&f] = found;
  }

  void launches(const Function& f) {
    const Definitions only = definitions(f.body);
    walk_exprs(f.body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall || !e->call->core_num) return;
      const auto blocks = ir::const_int(resolved(e->call->core_num, only));
      if (!blocks || *blocks <= 1) return;
      const ExprPtr collective = collective_in(*e->call->callee);
      if (!collective) return;
      Diagnostic d;
      d.cls = ErrorClass::kCompileError;
      d.id = "X-32";
      d.message = "'pld.tensor." + collective_name(collective->op) + "' in '" + e->call->callee->name +
                  "', which is launched with " + std::to_string(*blocks) + " blocks at " +
                  e->span.file_line() + ": " + std::to_string(*blocks) + " blocks would each post credits";
      d.hint = "call it from a single-block kernel";
      d.span = collective->span;
      throw Failure(std::move(d));
    });
  }

  std::unordered_map<const Function*, ExprPtr> first_;
};

}  // namespace

void lower_collectives(ir::Module& module, const PassOptions& options) {
  check_pinned_ranks(module, options.device_ids);
  if (options.devices) check_domain_sizes(module, options.world_size);
  warn_idle_ranks(module, options.world_size);
  check_kernel_collectives(module, options.world_size);
  BlockRules rules(module);
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || f->is_host()) continue;
    bool any = false;
    Definitions only;
    walk_exprs(f->body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kOp || !is_collective(e->op)) return;
      if (!any) only = definitions(f->body);
      any = true;
      check_root(*e, options.world_size);
      check_packed(*e, only);
    });
    if (any) f->body = KernelRewriter(*f, module.arch).run(f->body);
  }
  lower_host_collectives(module, options);
}

}  // namespace pypto::passes
