// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Loops are read until what holds at the top of the body holds at its end (01 L-83, L-85, L-96).
namespace pypto::sema {

FunctionBuilder::Undo FunctionBuilder::undo_point() const {
  Undo u;
  u.mark = program_.mark();
  u.vars = fn->vars.size();
  u.table = frame_->vars;
  for (const auto& v : fn->vars) u.var_types.push_back(v->type);
  u.renamed = frame_->renamed;
  u.used = used_names_;
  u.next_suffix = next_suffix_;
  u.next_region = next_region_;
  u.buffers = buffers_;
  return u;
}

void FunctionBuilder::undo(const Undo& u) {
  program_.rollback(u.mark);
  // Facts are kept by address: a discarded variable must not give its address to another one.
  dropped_.insert(dropped_.end(), fn->vars.begin() + static_cast<long>(u.vars), fn->vars.end());
  fn->vars.resize(u.vars);
  frame_->vars = u.table;
  for (size_t i = 0; i < u.vars; ++i) fn->vars[i]->type = u.var_types[i];
  frame_->renamed = u.renamed;
  used_names_ = u.used;
  next_suffix_ = u.next_suffix;
  next_region_ = u.next_region;
  buffers_ = u.buffers;
  // Symbols made by the discarded reading stay: they are facts of the function.
  for (const auto& s : fn->symbols) {
    if (std::find(fn->vars.begin(), fn->vars.end(), s) == fn->vars.end()) {
      s->id = static_cast<int>(fn->vars.size());
      fn->vars.push_back(s);
    }
  }
}

/// Whether a name enters the body differently from what was assumed.
bool FunctionBuilder::changed(const Binding& a, const Binding& b, size_t serial0, const LoopMemo& memo) {
  if (a.kind != b.kind || a.var != b.var || a.undefined.empty() != b.undefined.empty() ||
      a.blocks != b.blocks) {
    return true;
  }
  if (a.lower != b.lower || static_cast<bool>(a.constant) != static_cast<bool>(b.constant)) return true;
  for (const int r : b.regions) {
    if (std::find(a.regions.begin(), a.regions.end(), r) == a.regions.end()) return true;
  }
  if (a.kind != Binding::Kind::kVar) return false;
  const ir::Type& x = *a.type;
  const ir::Type& y = *b.type;
  if (x.space != y.space || x.place != y.place || x.pad != y.pad || !same_dims(x.shape, y.shape) ||
      !same_dims(x.valid, y.valid)) {
    return true;
  }
  const auto significant = [&](const std::shared_ptr<ir::Storage>& s, bool* inside) {
    std::set<const ir::Storage*> out;
    *inside = false;
    if (!s) return out;
    for (const auto& leaf : leaves(s)) {
      if (made_by(memo, serial(leaf.get()), serial0)) {
        *inside = true;
      } else {
        out.insert(leaf.get());
      }
    }
    return out;
  };
  bool ia = false;
  bool ib = false;
  const auto sa = significant(x.storage, &ia);
  const auto sb = significant(y.storage, &ib);
  return sa != sb || ia != ib;
}

void FunctionBuilder::run_loop(LoopInfo& loop, const ir::StmtPtr& stmt, const std::vector<syn::StmtPtr>& body,
                               const std::function<void()>& read, bool once, bool endless,
                               ir::Block& before) {
  std::set<std::string> assigned;
  assigned_names(body, assigned);
  loop.last = body.empty() ? nullptr : body.back().get();
  const Flow original = flow();
  Flow entry = original;
  for (const auto& name : assigned) {
    const auto it = entry.names.find(name);
    if (it == entry.names.end() || !it->second->undefined.empty()) continue;
    const Binding& b = *it->second;
    if (b.kind == Binding::Kind::kVar && (b.constant || b.lower)) {
      auto n = std::make_shared<Binding>(b);
      n->constant = nullptr;
      n->lower.reset();
      it->second = n;
    } else if (b.kind == Binding::Kind::kValue && b.value.is_expr() && b.value.is_scalar() &&
               name != loop.variable) {
      // A compile-time value that the body replaces becomes a variable here.
      ExprPtr e = b.value.expr;
      if (e->untyped) e = ir::convert_scalar(e, e->type->dtype, "a literal");
      auto n = std::make_shared<Binding>(b);
      n->kind = Binding::Kind::kVar;
      n->var = variable(name, e->type, b.span);
      n->type = e->type;
      n->value = {};
      auto s = make(ir::StmtKind::kAssign, loop.span);
      s->targets = {n->var};
      s->value = e;
      before.push_back(s);
      it->second = n;
    }
  }
  const size_t serial0 = next_serial_;
  LoopMemo own;
  LoopMemo* const outer_memo = memo_;
  LoopMemo* const memo = recall_loop(body, own);
  const Env before_body = entry.names;
  apply_changes(*memo, loop, entry.names);
  if (!memo->lifted.empty()) {
    auto lifted = memo->lifted;
    std::erase_if(lifted, [&](size_t i) {
      return !loop.carry_types[i]->is_tensor() || loop.carry_types[i]->place != ir::TensorPlace::kGlobal;
    });
    lift_carries(loop, lifted);
  }
  const std::string line = std::to_string(loop.span.line);
  std::vector<LoopInfo::Edge> back;
  Flow end;
  for (int attempt = 0;; ++attempt) {
    const Undo point = undo_point();
    loop.breaks.clear();
    loop.continues.clear();
    loop.entry_reads.clear();
    loop.entry_read_spans.clear();
    loop.yielded = false;
    loop.met_addresses = false;
    loop.results.clear();
    loop.result_names.clear();
    loop.result_bindings.clear();
    stmt->body.clear();
    flow() = entry;
    flow().live = true;
    ir::Block* outer = block_;
    block_ = &stmt->body;
    loops_.push_back(&loop);
    memo_ = memo;
    memo->next = 0;
    memo->made_now.clear();
    read();
    loop.entry = flow().names;
    exec_block(body);
    memo_ = outer_memo;
    loops_.pop_back();
    block_ = outer;
    end = flow();
    back = loop.continues;
    if (end.live) back.push_back({end, &stmt->body, false});
    // What the body leaves must be what it was read with.
    bool again = false;
    Flow next = entry;
    for (auto& [name, binding] : next.names) {
      if (name == loop.variable ||
          std::find(loop.carried.begin(), loop.carried.end(), name) != loop.carried.end()) {
        continue;
      }
      for (const auto& edge : back) {
        const auto it = edge.flow.names.find(name);
        if (it == edge.flow.names.end() || it->second == binding) continue;
        Site site;
        site.block_a = &before;
        site.block_b = edge.block;
        site.before_last_b = edge.before_last;
        site.before = &entry.names;
        site.span = loop.span;
        site.loop = true;
        const BindingPtr joined = join(name, binding, it->second, site);
        if (changed(*binding, *joined, serial0, *memo)) again = true;
        binding = joined;
      }
    }
    const std::vector<size_t> lifted = carries_on_chip(loop, back);
    again |= !lifted.empty() || loop.met_addresses;
    if (!again || attempt >= 8) {
      if (outer_memo) note_changes(*memo, loop, before_body, entry.names, serial0);
      for (const auto& [name, b] : entry.names) {
        const auto it = next.names.find(name);
        if (b->kind == Binding::Kind::kVar && it->second->kind == Binding::Kind::kVar && b->type->storage &&
            it->second->type->storage) {
          add_leaves(b->type->storage, it->second->type->storage);
        }
      }
      break;
    }
    undo(point);
    lift_carries(loop, lifted);
    memo->lifted.insert(memo->lifted.end(), lifted.begin(), lifted.end());
    entry = next;
    for (auto& [name, b] : entry.names) {
      // A variable of the discarded reading that the name now enters with is kept.
      if (b->kind == Binding::Kind::kVar && b->var &&
          std::find(fn->vars.begin(), fn->vars.end(), b->var) == fn->vars.end()) {
        b->var->id = static_cast<int>(fn->vars.size());
        fn->vars.push_back(b->var);
        frame_->vars[name].push_back(b->var);
      }
      // What the body does not assign keeps its constant: it may be an extent.
      if (b->constant && assigned.count(name)) {
        auto n = std::make_shared<Binding>(*b);
        n->constant = nullptr;
        b = n;
      }
    }
  }
  if (loop.explicit_carry && !loop.yielded) {
    for (const auto& edge : back) {
      if (!edge.before_last) rebind_carries(loop, edge);  // jumps did so themselves
    }
  }
  if (loop.kind == LoopInfo::Kind::kParallel) check_parallel(loop, end);
  for (const auto& name : assigned) loop.assigned_tasks.insert(name);

  // A name that first appears in the body and is the storage of an outer tensor is that tensor if no
  // iteration runs.
  if (!once && !endless) {
    for (const auto& edge : back) {
      for (const auto& [name, b] : edge.flow.names) {
        if (entry.names.count(name) || b->kind != Binding::Kind::kVar || !b->type->is_tensor() ||
            !b->undefined.empty() || !b->type->storage || name == loop.variable) {
          continue;
        }
        const auto parts = leaves(b->type->storage);
        if (parts.size() != 1 || serial(parts[0].get()) >= serial0) continue;
        for (const auto& [root, r] : entry.names) {
          if (r->kind != Binding::Kind::kVar || !r->type->is_tensor() || !r->undefined.empty() ||
              r->type->storage != b->type->storage || r->type->dtype != b->type->dtype ||
              !same_dims(r->type->shape, b->type->shape)) {
            continue;
          }
          auto s = make(ir::StmtKind::kAssign, loop.span);
          s->targets = {b->var};
          s->value = ir::var_ref(r->var, loop.span);
          before.push_back(s);
          auto n = std::make_shared<Binding>(*r);
          n->var = b->var;
          n->span = b->span;
          entry.names[name] = n;
          break;
        }
      }
    }
  }
  std::string bounds;
  if (loop.stop) {
    const auto text = [](const ExprPtr& e) {
      return ir::dim_text(ir::const_int(e) ? ir::Dim(*ir::const_int(e)) : ir::Dim(e));
    };
    bounds = " (bounds " + text(loop.start) + " to " + text(loop.stop) + ")";
  }
  const std::string zero = "the loop at line " + line + bounds + " may run zero times";
  // After the loop: the ways out.
  Flow out;
  out.live = false;
  const auto leave = [&](Flow f, ir::Block* block, bool before_last, const std::string& missing) {
    if (!f.live) return;
    // The loop variable ends with the loop: nothing of it is handed on.
    if (!loop.variable.empty()) {
      const auto it = entry.names.find(loop.variable);
      if (it != entry.names.end()) {
        f.names[loop.variable] = it->second;
      } else {
        f.names.erase(loop.variable);
      }
    }
    if (!out.live) {
      out = f;
      return;
    }
    Site site;
    site.block_b = block;
    site.before_last_b = before_last;
    site.before = &entry.names;
    site.span = loop.span;
    site.missing_a = missing;
    site.missing_b = missing;
    site.loop = true;
    out = merge(out, f, site);
  };
  if (!endless) {
    if (!once) {
      Flow none = entry;
      none.live = true;
      leave(none, nullptr, false, zero);
    }
    for (const auto& edge : back) leave(edge.flow, edge.block, edge.before_last, zero);
    // Every iteration jumps out: the loop is left by the jumps alone.
  }
  for (const auto& edge : loop.breaks) {
    leave(edge.flow, edge.block, edge.before_last,
          once || endless ? "a 'break' of the loop at line " + line + " leaves it before the assignment"
                          : zero);
  }
  flow() = out;
  if (!out.live && (endless || once) && loop.breaks.empty() && back.empty()) {
    flow() = end;
    flow().live = false;
  }
  // The loop variable ends with the loop.
  if (!loop.variable.empty()) {
    const auto it = original.names.find(loop.variable);
    if (it != original.names.end()) {
      flow().names[loop.variable] = it->second;
    } else if (const auto v = loop.entry.find(loop.variable); v != loop.entry.end()) {
      auto gone = std::make_shared<Binding>(*v->second);
      gone->kind = Binding::Kind::kVar;
      gone->undefined = "it is the variable of the loop at line " + line + " and does not exist after it";
      flow().names[loop.variable] = gone;
    }
  }
}

void FunctionBuilder::check_parallel(LoopInfo& loop, const Flow& end) {
  if (place() == ir::kPlaceKernel || !end.live) return;
  for (const auto& name : loop.entry_reads) {
    const auto a = loop.entry.find(name);
    const auto b = end.names.find(name);
    if (a == loop.entry.end() || b == end.names.end() || a->second == b->second) continue;
    if (name == loop.variable || b->second->kind != Binding::Kind::kVar) continue;
    const ir::Type& t = *b->second->type;
    const bool kind = t.is_scalar() || t.kind == ir::TypeKind::kArray;
    if (!kind || t.dtype == DType::kTaskId) continue;
    reject(ErrorClass::kParserTypeError, loop.entry_read_spans[name],
           "'" + name + "' is carried from iteration to iteration of pl.parallel() at line " +
               std::to_string(loop.span.line) + ", whose iterations are independent",
           "use pl.range, or compute the value from the loop variable", {{"it is rebound", b->second->span}});
  }
}

}  // namespace pypto::sema
