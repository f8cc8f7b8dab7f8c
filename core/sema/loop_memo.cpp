// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// A loop that is read again, because a loop around it is, starts where its last reading ended. What a name
/// may be at the top of a body only grows from reading to reading, so the result is the same, found at once.
namespace pypto::sema {

/// The memory of the loop with this body, kept by the loop around it; `own` if there is none.
LoopMemo* FunctionBuilder::recall_loop(const std::vector<syn::StmtPtr>& body, LoopMemo& own) {
  if (!memo_) return &own;
  const size_t slot = memo_->next++;
  auto& inner = memo_->inner;
  if (slot < inner.size() && inner[slot]->body != &body) inner.resize(slot);  // this reading took another way
  if (slot == inner.size()) {
    inner.push_back(std::make_unique<LoopMemo>());
    inner.back()->body = &body;
  }
  return inner[slot].get();
}

/// The reading of a loop makes its storages anew: each takes the place of the one that the reading before
/// made.
void FunctionBuilder::succeed(const std::shared_ptr<ir::Storage>& made) {
  if (!memo_) return;
  auto& known = memo_->made[made->name];
  const size_t place = memo_->made_now[made->name]++;
  if (place == known.size()) {
    known.push_back(made);
    return;
  }
  successors_[known[place].get()] = made;
  known[place] = made;
}

/// The storage that the present reading made where `old` was made.
std::shared_ptr<ir::Storage> FunctionBuilder::present(std::shared_ptr<ir::Storage> old) const {
  for (auto it = successors_.find(old.get()); it != successors_.end(); it = successors_.find(old.get())) {
    old = it->second;
  }
  return old;
}

/// Lets the names enter the body as the last reading found them to.
void FunctionBuilder::apply_changes(const LoopMemo& memo, const LoopInfo& loop, Env& entry) {
  for (const auto& [name, change] : memo.changes) {
    const auto it = entry.find(name);
    if (it == entry.end() || it->second->kind != Binding::Kind::kVar || name == loop.variable) continue;
    auto n = std::make_shared<Binding>(*it->second);
    auto t = std::make_shared<ir::Type>(*n->type);
    if (change.shape.size() != t->shape.size()) continue;
    for (size_t i = 0; i < t->shape.size(); ++i) {
      if (change.shape[i]) t->shape[i] = ir::Dim();
    }
    if (!change.valid.empty()) {
      if (t->valid.empty()) t->valid = t->shape;
      for (size_t i = 0; i < t->valid.size(); ++i) {
        if (change.valid[i]) t->valid[i] = ir::Dim();
      }
    }
    if (t->space == ir::MemorySpace::kUnset) t->space = change.space;
    if (change.pad) t->pad = ir::PadValue::kNull;
    for (const auto& leaf : change.leaves) t->storage = join_storage(t->storage, present(leaf));
    n->type = t;
    n->blocks |= change.blocks;
    if (n->undefined.empty() && !change.undefined.empty()) {
      n->undefined = change.undefined;
      n->undefined_span = change.undefined_span;
    }
    for (const int r : change.regions) {
      if (std::find(n->regions.begin(), n->regions.end(), r) == n->regions.end()) n->regions.push_back(r);
    }
    it->second = n;
  }
}

/// Remembers how the names enter the body (`entry`) other than they enter the loop (`before`).
void FunctionBuilder::note_changes(LoopMemo& memo, const LoopInfo& loop, const Env& before, const Env& entry,
                                   size_t serial0) {
  memo.serials.emplace_back(serial0, next_serial_);
  memo.changes.clear();
  for (const auto& [name, b] : entry) {
    const auto it = before.find(name);
    if (it == before.end() || it->second == b || name == loop.variable) continue;
    const Binding& a = *it->second;
    if (a.kind != Binding::Kind::kVar || b->kind != Binding::Kind::kVar || a.var != b->var) continue;
    const ir::Type& x = *a.type;
    const ir::Type& y = *b->type;
    if (x.place != y.place || x.shape.size() != y.shape.size()) continue;
    if (x.space != y.space && x.space != ir::MemorySpace::kUnset) continue;
    LoopMemo::Change c;
    if (x.space != y.space) c.space = y.space;
    for (size_t i = 0; i < x.shape.size(); ++i) c.shape.push_back(!same_dim(x.shape[i], y.shape[i]));
    if (!same_dims(x.valid, y.valid)) {
      const auto& v = x.valid.empty() ? x.shape : x.valid;
      const auto& w = y.valid.empty() ? y.shape : y.valid;
      if (v.size() != w.size() || v.size() != x.shape.size()) continue;
      for (size_t i = 0; i < v.size(); ++i) c.valid.push_back(!same_dim(v[i], w[i]));
    }
    c.pad = x.pad != y.pad;
    c.blocks = b->blocks;
    if (a.undefined.empty()) {
      c.undefined = b->undefined;
      c.undefined_span = b->undefined_span;
    }
    c.regions = b->regions;
    if (y.storage) {
      const auto own = x.storage ? leaves(x.storage) : std::vector<std::shared_ptr<ir::Storage>>();
      for (const auto& leaf : leaves(y.storage)) {
        if (std::find(own.begin(), own.end(), leaf) == own.end()) c.leaves.push_back(leaf);
      }
    }
    memo.changes[name] = std::move(c);
  }
}

/// Whether a storage was made by a reading of the loop; `serial0` is where the present one began.
bool FunctionBuilder::made_by(const LoopMemo& memo, size_t serial, size_t serial0) {
  return serial >= serial0 || std::any_of(memo.serials.begin(), memo.serials.end(), [&](const auto& range) {
           return serial >= range.first && serial < range.second;
         });
}

/// Makes carries live on chip.
void FunctionBuilder::lift_carries(LoopInfo& loop, const std::vector<size_t>& which) {
  for (const size_t i : which) {
    loop.carry_types[i] =
        with_storage(with_place(loop.carry_types[i], ir::TensorPlace::kOnChip), new_storage(loop.carried[i]));
    loop.carry_vars[i] = variable(loop.carried[i], loop.carry_types[i], loop.span, ir::VarKind::kCarry);
  }
}

}  // namespace pypto::sema
