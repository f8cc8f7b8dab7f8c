// SPDX-License-Identifier: Apache-2.0
#include "core/passes/collective_host.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/passes/collective_forms.h"
#include "core/passes/device_sets.h"
#include "core/passes/effects.h"
#include "core/passes/region.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Block;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::FunctionPtr;
using ir::OpId;
using ir::StmtKind;
using ir::StmtPtr;
using ir::VarPtr;

[[noreturn]] void refuse(const char* id, std::string message, const Span& span, std::string hint = {}) {
  Diagnostic d;
  d.cls = ErrorClass::kValueError;
  d.id = id;
  d.message = std::move(message);
  d.span = span;
  d.hint = std::move(hint);
  throw Failure(std::move(d));
}

std::string set_text(const DeviceSet& set) {
  if (set.world) return "all ranks";
  std::string out;
  for (const int64_t r : set.ranks) out += (out.empty() ? "{" : ", ") + std::to_string(r);
  return out + "}";
}

const char* reduce_name(ir::ReduceOp op) {
  static const char* kNames[] = {"sum", "max", "min", "prod"};
  return kNames[static_cast<int>(op)];
}

std::string dtype_name(DType d) { return d == DType::kBf16 ? "bf16" : std::string(dtype_text(d)); }

/// 03 A-4.
std::string variant(const CollectiveCall& c) {
  const std::string base = "builtin.tensor." + collective_name(c.op);
  switch (c.op) {
    case OpId::k_allreduce:
      return base + (c.ring ? "_ring__" : "__") + reduce_name(c.reduce) + "__" +
             dtype_name(c.target->type->dtype);
    case OpId::k_reduce_scatter:
      return base + "__" + reduce_name(c.reduce) + "__" + dtype_name(c.target->type->dtype);
    case OpId::k_broadcast:
      return base + "__root" + std::to_string(c.root) + "__fp32";
    default:
      return base + "__fp32";
  }
}

/// The operands of a collective in the order in which the generated functions take them, with their names
/// there.
std::vector<std::pair<const char*, ExprPtr CollectiveCall::*>> operands(OpId op) {
  using C = CollectiveCall;
  switch (op) {
    case OpId::k_barrier:
      return {{"signal", &C::signal}};
    case OpId::k_allreduce:
    case OpId::k_broadcast:
    case OpId::k_reduce_scatter:
      return {{"target", &C::target}, {"signal", &C::signal}};
    case OpId::k_all_to_all_v:
      return {{"source", &C::input},
              {"target", &C::target},
              {"signal", &C::signal},
              {"send_counts", &C::send_counts},
              {"recv_counts", &C::recv_counts}};
    default:
      return {{"source", &C::input}, {"target", &C::target}, {"signal", &C::signal}};
  }
}

class HostRewriter {
 public:
  HostRewriter(ir::Module& module, Function& host, const PassOptions& options, FunctionNames& names,
               std::map<std::string, FunctionPtr>& made, std::vector<FunctionPtr>& order)
      : module_(module),
        host_(host),
        options_(options),
        names_(names),
        made_(made),
        order_(order),
        scan_(host, options.world_size) {}

  void run() { host_.body = rewrite(host_.body, 0); }

 private:
  Block rewrite(const Block& block, int loops) {
    Block out;
    for (const auto& s : block) {
      const bool loop = s->kind == StmtKind::kFor || s->kind == StmtKind::kWhile;
      s->body = rewrite(s->body, loops + loop);
      s->else_body = rewrite(s->else_body, loops);
      const ExprPtr e = collective_of(*s);
      if (!e) {
        out.push_back(s);
        continue;
      }
      CodeBuilder b(host_, module_.arch, ir::kPlaceHost, s->span);
      lower(*e, b);
      for (auto& x : b.code) out.push_back(std::move(x));
      const ExprPtr result = collective_result(*e);
      if (s->kind == StmtKind::kAssign && !(result->kind == ExprKind::kVar && result->var == s->targets[0])) {
        s->value = result;
        out.push_back(s);
      } else if (s->kind == StmtKind::kReturn) {
        s->values = {result};
        out.push_back(s);
      }
    }
    return out;
  }

  static ExprPtr collective_of(const ir::Stmt& s) {
    const ExprPtr e = s.kind == StmtKind::kReturn ? (s.values.size() == 1 ? s.values[0] : nullptr) : s.value;
    return e && e->kind == ExprKind::kOp && is_collective(e->op) ? e : nullptr;
  }

  static std::string name_of(const ExprPtr& e) {
    return e && e->kind == ExprKind::kVar ? e->var->name : "operand";
  }

  std::string buffer_of(const ExprPtr& window) const {
    std::string out;
    for (const ir::Var* b : scan_.buffers(window)) out += (out.empty() ? "" : "', '") + b->name;
    return out;
  }

  void lower(const ir::Expr& e, CodeBuilder& b) {
    CollectiveCall c = collective_call(e);
    const int64_t blocks = std::max<int64_t>(1, e.attrs.get_int(ir::AttrKey::k_core_num, 1));
    const ExprPtr data = c.target ? c.target : c.signal;
    DeviceSet set = scan_.devices(data);
    if (set.empty()) {
      if (c.target) {
        refuse("X-12",
               "window buffer '" + buffer_of(c.target) + "' of '" + name_of(c.target) +
                   "' is not consumed by any dispatch, so pld.tensor." + collective_name(c.op) +
                   " has no devices to run on",
               e.span, "pass a view of the buffer to a dispatch with device=");
      }
      // A barrier's own signal that no dispatch takes: the ranks that the program uses.
      set = scan_.reached();
      if (set.empty() || static_cast<int64_t>(set.ranks.size()) == options_.world_size) set.world = true;
      if (set.world) set.ranks.clear();
    }
    // All window operands belong to one domain (03 D-54).
    for (const auto& a : e.args) {
      if (!a || !a->type || !a->type->is_window()) continue;
      const DeviceSet other = scan_.devices(a);
      if (other.empty() || (other.world == set.world && other.ranks == set.ranks)) continue;
      refuse("X-31",
             "pld.tensor." + collective_name(c.op) + " takes windows of one domain, but '" + name_of(data) +
                 "' belongs to " + set_text(set) + " and '" + name_of(a) + "' to " + set_text(other),
             e.span, "allocate both for the same rank loop");
    }
    const int64_t n = scan_.size(set);
    if (!c.signal) c.signal = make_signal(c, set, blocks, b);
    check(e, c, n, blocks);
    const FunctionPtr f = function(c, blocks);
    std::vector<ExprPtr> args;
    for (const auto& [name, member] : operands(c.op)) args.push_back(c.*member);
    dispatch(f, args, set, b);
  }

  // 03 C-42, A-5
  ExprPtr make_signal(const CollectiveCall& c, const DeviceSet& set, int64_t blocks, CodeBuilder& b) {
    const std::string k = std::to_string(signals_++);
    ExprPtr n = set.world ? b.op(OpId::k_world_size, {}) : b.index(static_cast<int64_t>(set.ranks.size()));
    n = CodeBuilder::ref(b.let("__allreduce_signal_world_size_" + k, n));
    std::vector<ExprPtr> shape = {n, b.index(blocks)};
    if (c.ring) shape = {b.add(b.mul(b.index(2), b.sub(n, b.index(1))), b.index(1)), n};
    const ExprPtr buffer = CodeBuilder::ref(
        b.let("__allreduce_signal_buf_" + k,
              b.op(OpId::k_alloc_window_buffer,
                   {b.list(shape), b.dtype(DType::kInt32), b.text("__allreduce_signal_buf_" + k)},
                   ir::kFormPldTensor)));
    return CodeBuilder::ref(
        b.let("__allreduce_signal_" + k,
              b.op(OpId::k_window, {buffer, b.list(shape), b.dtype(DType::kInt32)}, ir::kFormPldTensor)));
  }

  void check(const ir::Expr& e, const CollectiveCall& c, int64_t n, int64_t blocks) const {
    if (n < 0) return;
    const ir::Type& s = *c.signal->type;
    const auto extent = [&](size_t dim) { return dim < s.shape.size() ? scan_.extent(s.shape[dim]) : -1; };
    const int64_t first = extent(0), second = extent(1);
    if (!c.ring && first >= 0 && first < n) {
      refuse("X-30",
             "signal shape[0] (" + std::to_string(first) + ") must cover the participating device count (" +
                 std::to_string(n) + ")",
             e.span, "allocate the signal with pld.world_size() rows");
    }
    constexpr int64_t kMostInRing = 16;  // of cards (03 C-43)
    if (c.ring && options_.devices && n > kMostInRing) {
      refuse("X-30",
             "mode=\"ring\" takes " + std::to_string(kMostInRing) + " or fewer devices on a card, got " +
                 std::to_string(n),
             e.span, "use mode=\"mesh\", or call the ring from a kernel");
    }
    if (c.ring && s.rank() == 2) {
      const int64_t rows = 2 * (n - 1) + 1;
      if (first >= 0 && first < rows) {
        refuse("X-30",
               "mode=\"ring\" signal shape[0] (" + std::to_string(first) +
                   ") must be at least 2*(NR-1) + 1 (" + std::to_string(rows) + ")",
               e.span);
      }
      if (second >= 0 && second != n) {
        refuse("X-30",
               "mode=\"ring\" signal shape[1] (" + std::to_string(second) + ") must be the rank count (" +
                   std::to_string(n) + ")",
               e.span);
      }
    }
    if (c.op == OpId::k_broadcast && (c.root < 0 || c.root >= n)) {
      refuse("X-30",
             "root (" + std::to_string(c.root) + ") must be a valid rank in [0, " + std::to_string(n) + ")",
             e.span);
    }
    const bool by_rank =
        c.op == OpId::k_allgather || c.op == OpId::k_reduce_scatter || c.op == OpId::k_all_to_all;
    const auto covers = [&](const char* operand, const ExprPtr& x) {
      const int64_t rows = scan_.extent(x->type->shape[0]);
      if (rows < 0 || rows >= n) return;
      refuse("X-30",
             std::string(operand) + " '" + name_of(x) + "' shape[0] (" + std::to_string(rows) +
                 ") must cover the participating device count (" + std::to_string(n) + ")",
             e.span, "take the extent from pld.world_size()");
    };
    if (by_rank) covers("target", c.target);
    if (c.op == OpId::k_all_to_all) covers("input", c.input);
  }

  // The generated orchestration for operands of these types, and its kernel.
  FunctionPtr function(const CollectiveCall& c, int64_t blocks) {
    std::string key = variant(c) + "/" + std::to_string(blocks);
    for (const auto& [name, member] : operands(c.op)) {
      const ir::Type& t = *(c.*member)->type;
      key += "/" + std::string(dtype_text(t.dtype));
      for (const auto& d : t.shape) key += "," + (d.is_const() ? std::to_string(d.value) : std::string("?"));
    }
    if (const auto it = made_.find(key); it != made_.end()) return it->second;
    const std::string name = names_.unique(variant(c));
    const FunctionPtr kernel = make_kernel(c, names_.unique(name + ".kernel"), blocks);
    auto f = std::make_shared<Function>();
    f->name = name;
    f->type = ir::FunctionType::kOrchestration;
    f->level = ir::Level::kChip;
    f->role = ir::Role::kOrchestrator;
    add_params(*f, c, kernel->effective_directions);
    std::vector<ExprPtr> args;
    for (const auto& p : f->params) args.push_back(CodeBuilder::ref(p));
    ir::ScopeInfo facts;
    facts.core_num = ir::int_const(blocks, DType::kIndex, {}, true);
    f->body.push_back(make_task_call(*f, kernel, args, {}, facts, blocks > 1, {}, {}));
    f->effective_directions = kernel->effective_directions;
    order_.push_back(kernel);
    order_.push_back(f);
    return made_[key] = f;
  }

  static void add_params(Function& f, const CollectiveCall& c,
                         const std::vector<ir::ParamDirection>& directions) {
    int symbols = 0;
    for (const auto& [name, member] : operands(c.op)) {
      auto type = std::make_shared<ir::Type>(*(c.*member)->type);
      type->storage = std::make_shared<ir::Storage>();
      type->storage->name = name;
      type->storage->param = static_cast<int>(f.params.size());
      type->valid.clear();
      for (auto& d : type->shape) {
        if (d.is_const()) continue;
        VarPtr s = f.add_var("D" + std::to_string(symbols++), ir::scalar_type(DType::kIndex),
                             ir::VarKind::kSymbol, {});
        f.symbols.push_back(s);
        d = ir::Dim(CodeBuilder::ref(s));
      }
      f.params.push_back(f.add_var(name, type, ir::VarKind::kParam, {}));
      f.directions.push_back(directions.empty() ? ir::ParamDirection::kInOut
                                                : directions[f.params.size() - 1]);
    }
  }

  FunctionPtr make_kernel(const CollectiveCall& c, const std::string& name, int64_t blocks) {
    auto f = std::make_shared<Function>();
    f->name = name;
    f->type = ir::FunctionType::kInCore;
    f->level = ir::Level::kChipDie;
    add_params(*f, c, {});
    CollectiveCall inside = c;
    size_t i = 0;
    for (const auto& [operand, member] : operands(c.op)) inside.*member = CodeBuilder::ref(f->params[i++]);
    CodeBuilder b(*f, module_.arch, ir::kPlaceKernel, {});
    Rail rail;
    rail.piece_elements = 256;
    rail.blocks = blocks;
    const bool one_column = c.signal->type->rank() == 1;
    if (blocks > 1) rail.block = CodeBuilder::ref(b.let("block", b.op(OpId::k_get_block_idx, {})));
    rail.cell = [&b, one_column, &rail](const ExprPtr& q) {
      std::vector<ExprPtr> cell = {q};
      if (!one_column) cell.push_back(rail.block ? rail.block : b.index(0));
      return cell;
    };
    write_collective(b, inside, rail);
    f->body = std::move(b.code);
    const auto found = accesses(f->body, f->params);
    for (size_t k = 0; k < f->params.size(); ++k) {
      const Access a = found.at(f->params[k].get());
      f->directions[k] = a.write ? (a.read ? ir::ParamDirection::kInOut : ir::ParamDirection::kOut)
                                 : ir::ParamDirection::kIn;
    }
    f->effective_directions = f->directions;
    return f;
  }

  static ExprPtr call(const FunctionPtr& f, const std::vector<ExprPtr>& args, ExprPtr device,
                      const Span& span) {
    auto info = std::make_shared<ir::CallInfo>();
    info->callee = f;
    info->device = std::move(device);
    info->no_dep.resize(args.size());
    auto e = std::make_shared<ir::Expr>();
    e->kind = ExprKind::kCall;
    e->type = ir::none_type();
    e->span = span;
    e->args = args;
    e->call = info;
    return e;
  }

  // One dispatch per device of the domain.
  static void dispatch(const FunctionPtr& f, const std::vector<ExprPtr>& args, const DeviceSet& set,
                       CodeBuilder& b) {
    if (set.world) {
      b.loop("r", b.index(0), b.op(OpId::k_world_size, {}),
             [&](const ExprPtr& r) { b.eval(call(f, args, r, b.span())); });
      return;
    }
    const int64_t from = *set.ranks.begin(), to = *set.ranks.rbegin() + 1;
    if (to - from == static_cast<int64_t>(set.ranks.size()) && to - from > 1) {
      b.loop("r", b.index(from), b.index(to), [&](const ExprPtr& r) { b.eval(call(f, args, r, b.span())); });
      return;
    }
    for (const int64_t r : set.ranks) b.eval(call(f, args, b.index(r), b.span()));
  }

  ir::Module& module_;
  Function& host_;
  const PassOptions& options_;
  FunctionNames& names_;
  std::map<std::string, FunctionPtr>& made_;
  std::vector<FunctionPtr>& order_;
  WindowScan scan_;
  int signals_ = 0;
};

}  // namespace

void lower_host_collectives(ir::Module& module, const PassOptions& options) {
  FunctionNames names(module);
  std::map<std::string, FunctionPtr> made;
  std::vector<FunctionPtr> order;
  for (const auto& f : module.functions) {
    if (!f->is_host() || f->is_sub_worker) continue;
    bool any = false;
    walk_exprs(f->body,
               [&](const ExprPtr& e) { any = any || (e->kind == ExprKind::kOp && is_collective(e->op)); });
    if (any) HostRewriter(module, *f, options, names, made, order).run();
  }
  if (order.empty()) return;
  // Callees before the host function that dispatches them.
  const auto host = std::find_if(module.functions.begin(), module.functions.end(),
                                 [](const FunctionPtr& f) { return f->is_host() && !f->is_sub_worker; });
  module.functions.insert(host, order.begin(), order.end());
}

}  // namespace pypto::passes
