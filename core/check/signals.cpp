// SPDX-License-Identifier: Apache-2.0
// Notifies and waits: modification orders of cells, sure observations (03 M-23, M-30).
#include <algorithm>

#include "core/check/analysis.h"

namespace pypto::check {
namespace {

constexpr size_t kFoldMods = 16;
constexpr size_t kKeptWaits = 16;
constexpr size_t kLargeClock = 64;

}  // namespace

void Analysis::notify(Notify&& n) {
  settle_write();
  if (!n.release || n.who < 0) return;
  Object& o = object(n.object);
  Cell& c = cell(o, n.offset, n.before);
  if (c.mods.empty() && c.waits.empty()) c.initial = n.before;
  const uint32_t meta = static_cast<uint32_t>(n.who);
  Mod m;
  m.kind = n.op == ir::NotifyOp::kSet ? Mod::Kind::kSet : Mod::Kind::kAdd;
  m.chain = n.release->chain;
  m.epoch = n.release->epoch;
  m.meta = meta;
  m.value = n.value;
  m.before = n.before;
  m.after = n.after;
  m.round = static_cast<int32_t>(sink_.round());
  m.sequence = ++sequence_;
  m.number = notify_count_++;
  m.release = std::move(n.release);
  m.site = n.site;

  auto entry_of = [&](const Mod& x) {
    Entry e;
    e.chain = x.chain;
    e.epoch = x.epoch;
    e.meta = x.meta;
    e.round = x.round;
    e.sequence = x.sequence;
    e.site = x.site;
    e.op = x.kind == Mod::Kind::kWrite ? ir::OpId::k_write : ir::OpId::k_notify;
    e.kind = x.kind == Mod::Kind::kAdd ? vm::AccessKind::kAtomic : vm::AccessKind::kWrite;
    e.dtype = DType::kInt32;
    e.remote = metas_[x.meta].info.rank != o.info.rank;
    e.bytes = 4;
    return e;
  };
  const Box box = box_of_range(n.offset, n.offset + 4);
  const int64_t unit = 1;
  const Shape shape{1, &unit, DType::kInt32, true};

  // Plain accesses of the cell that are not ordered before this notify (03 M-23).
  Earliest racing;
  const ActorInfo& me = metas_[meta].info;
  const auto look = [&](const Box& where, const Entry& old) {
    if (old.chain == m.chain || m.at(old.chain) >= old.epoch) return false;
    const ActorInfo& other = metas_[old.meta].info;
    // Another part of the same block may have been told by a pipe before this notify was committed.
    if (other.dispatch == me.dispatch && other.task == me.task && other.block == me.block) return false;
    racing.offer(where, old);
    return false;
  };
  if (!o.shared.empty()) o.shared.visit(box, look);
  if (racing.found) {
    Found f;
    f.object = n.object;
    f.a = racing.entry;
    f.a_box = racing.box;
    f.b = entry_of(m);
    f.b_box = box;
    f.b_notify = true;
    f.b_value = n.value;
    f.result = n.after;
    locate(f, shape);
    found(std::move(f));
  }
  // A Set against every other modification.
  for (const Mod& other : o.cells.mods.range(c.mods)) {
    if (m.kind != Mod::Kind::kSet && other.kind == Mod::Kind::kAdd) continue;
    if (other.chain == m.chain || m.at(other.chain) >= other.epoch) continue;
    if (other.kind == Mod::Kind::kWrite) continue;  // told above, if it changed anything
    Found f;
    f.object = n.object;
    f.a = entry_of(other);
    f.a_box = f.b_box = box;
    f.a_notify = f.b_notify = true;
    f.a_value = other.value;
    f.b = entry_of(m);
    f.b_value = n.value;
    f.result = n.after;
    locate(f, shape);
    found(std::move(f));
    break;
  }
  // Waits that are not ordered before it: an Eq wait might have missed its value, and what was surely
  // observed may not be so sure with one arrival more.
  for (const WaitNote& w : o.cells.waits.range(c.waits)) {
    if (w.chain == m.chain || m.at(w.chain) >= w.epoch) continue;
    // The wait saw its value, so in another order this one comes next and moves the cell away from it,
    // whatever was committed between the two here (03 M-30).
    if (w.cmp == ir::WaitCmp::kEq && (m.kind == Mod::Kind::kAdd ? n.value != 0 : n.value != w.expected))
      missed_value(n.object, n.offset, w, m);
  }
  if (m.kind == Mod::Kind::kAdd && m.value > 0) judge_again(o.cells, c, m);
  check_lanes(n);
  if (static_cast<size_t>(me.rank) >= last_notify_.size())
    last_notify_.resize(static_cast<size_t>(me.rank) + 1, -1);
  if (me.rank >= 0) last_notify_[static_cast<size_t>(me.rank)] = m.sequence;
  const bool settled = n.sole;
  const uint32_t chain = m.chain;
  o.cells.mods.push_back(c.mods, std::move(m));
  if (settled) forget_clocks(o.cells, c, [&](const Mod& x) { return x.sequence == sequence_; }, chain);
}

/// What everybody knows who may still wait on the cell gives no edges any more: of its clock only what
/// explanations of races ask for is kept, the epochs of the waiter and of those that modified the cell. With
/// a thousand ranks and two thousand cells on each, whole clocks would fill the memory.
template <class Known>
void Analysis::forget_clocks(Cells& cells, Cell& c, Known known, uint32_t waiter) {
  for (Mod& m : cells.mods.range(c.mods)) {
    if (!known(m)) continue;  // first: it does not look at the clock, which may be far away
    const ClockData* old = m.release.get();
    if (!old || !old->base || old->base->size() < kLargeClock) continue;
    Extras kept;
    bool fits = true;
    const auto keep = [&](uint32_t chain) {
      const uint32_t epoch = chain == m.chain ? 0 : old->at(chain);
      fits = fits && (epoch == 0 || kept.raise({chain, epoch}));
    };
    keep(waiter);
    for (const Mod& other : cells.mods.range(c.mods)) keep(other.chain);
    if (!fits) continue;
    if (kept.size() <= 1) {
      m.known = kept.size() == 1 ? *kept.begin() : Component();
      m.release = nullptr;
      continue;
    }
    if (m.release != last_full_ || !(last_small_->extras == kept)) {
      last_full_ = m.release;  // a rank clears all its cells at one point of its time
      last_small_ = Clock::make();
      last_small_->chain = old->chain;
      last_small_->epoch = old->epoch;
      last_small_->extras = kept;
    }
    m.release = last_small_;
  }
}

Clock Analysis::observe(const Observe& x) {
  settle_write();
  Object& o = object(x.object);
  Cell& c = cell(o, x.offset, x.seen);
  Actor* actor = x.actor >= 0 ? &actors_[static_cast<size_t>(x.actor)] : nullptr;
  ActorClock deferred;
  if (!actor) {
    deferred.start(kNoChain, 0);
    deferred.acquire(x.at);
  }
  ActorClock& clock = actor ? actor->clock : deferred;
  uint32_t meta = 0;
  if (actor) {
    meta = actor->meta;
  } else {
    meta = static_cast<uint32_t>(metas_.size());
    Meta m;
    m.info = x.info;
    metas_.push_back(std::move(m));
  }
  const uint32_t stamp = actor ? clock.stamp() : 0;
  const int64_t now = ++sequence_;
  auto before = [&](const Mod& m) { return clock.knows(m.chain, m.epoch); };
  const Observed& seen = observed_;
  judge_wait(o.cells, c, x.cmp, x.expected, before, [](const Mod&) { return false; }, observed_);

  Ears& ears = actor ? *actor->ears : ears_[metas_[meta].info.dispatch];
  WaitRecord record;
  record.meta = meta;
  record.object = x.object;
  record.offset = x.offset;
  record.site = x.site;
  record.cmp = x.cmp;
  record.expected = x.expected;
  record.chain = actor ? clock.chain() : kNoChain;
  record.epoch = stamp;
  record.sequence = now;
  record.base = seen.base;
  for (const Mod* m : seen.open) record.open.add(m->sequence);
  if (!seen.fresh && !c.waits.empty()) {
    const int64_t earlier = o.cells.waits.back(c.waits).sequence;
    record.reused = true;
    for (const Mod& m : o.cells.mods.range(c.mods))
      record.reused = record.reused && (!before(m) || m.sequence < earlier);
  }
  auto hear = [&](uint32_t who) {
    const auto rank = static_cast<size_t>(metas_[who].info.rank + 1);
    if (ears.heard.size() <= rank)
      ears.heard.resize(std::max(rank + 1, static_cast<size_t>(options_.ranks + 1)));
    if (ears.heard[rank].last == 0) ears.heard[rank].since = now;
    ears.heard[rank].last = who + 1;
  };
  if (c.mods.size < kFoldMods) {
    for (const Mod& m : o.cells.mods.range(c.mods)) {
      if (before(m)) hear(m.meta);
    }
  }
  std::vector<Clock>& sure = acquired_;
  sure.clear();
  WaitNote note;
  note.number = wait_count_++;
  for (size_t k = 0; k < seen.sure.size(); ++k) {
    const Mod* m = seen.sure[k];
    if (withdrawn_ && withdrawn_->count({note.number, m->number})) continue;
    if (k < seen.without.size()) note.margins.push_back({m->chain, m->epoch, m->number, seen.without[k]});
    sure.push_back(m->clock());
    record.sure.add(m->number);
    hear(m->meta);
  }
  if (x.cmp == ir::WaitCmp::kEq) {
    // A modification away from the value that is not ordered with the wait.
    for (const Mod& m : o.cells.mods.range(c.mods)) {
      if (m.before != x.expected || m.after == x.expected || before(m)) continue;
      WaitNote w;
      w.cmp = x.cmp;
      w.expected = x.expected;
      w.record = static_cast<int32_t>(waits_.size());
      waits_.push_back(WaitRecord(record));
      missed_value(x.object, x.offset, w, m);
      break;
    }
  }
  ++ears.waits;
  const auto index = static_cast<int32_t>(waits_.size());
  ears.last_wait = index;
  metas_[meta].last_wait = index;
  note.chain = actor ? clock.chain() : kNoChain;
  note.epoch = stamp;
  note.cmp = x.cmp;
  note.expected = x.expected;
  note.record = index;
  note.sequence = now;
  waits_.push_back(std::move(record));
  if (actor) {
    if (c.waits.size >= kKeptWaits) o.cells.waits.pop_front(c.waits);
    o.cells.waits.push_back(c.waits, std::move(note));
  }
  for (const Clock& s : sure) clock.acquire(s);
  if (x.sole && actor) forget_clocks(o.cells, c, before, clock.chain());
  // Old modifications that every later wait of this rank knows are one starting value.
  if (c.mods.size >= kFoldMods) {
    while (!c.mods.empty() && before(o.cells.mods.front(c.mods))) {
      c.initial = o.cells.mods.front(c.mods).after;
      o.cells.mods.pop_front(c.mods);
    }
  }
  return actor ? nullptr : join(sure);
}

/// Credits left on the signal of a collective: counting only modifications that happen before the
/// call.
void Analysis::enter_collective(const Entered& x) {
  if (x.actor < 0) return;
  settle_write();
  const Object& o = object(x.object);
  if (o.cells.empty()) return;
  Actor& actor = actors_[static_cast<size_t>(x.actor)];
  std::string cells;
  int left = -1;
  int count = 0;
  for (const int64_t at : o.cells.within(x.box.base, x.box.end())) {
    const Cell& c = *o.cells.find(at);
    int64_t value = c.initial;
    int by = -1;
    for (const Mod& m : o.cells.mods.range(c.mods)) {
      if (!actor.clock.knows(m.chain, m.epoch)) continue;
      value = m.kind == Mod::Kind::kAdd ? value + m.value : m.value;
      by = metas_[m.meta].info.rank;
    }
    if (value == 0) continue;
    left = by;
    if (++count <= 8)
      cells += (cells.empty() ? "" : ", ") + sink_.cell_text(x.object, at) + " = " + std::to_string(value);
  }
  if (count == 0) return;
  const ActorInfo& i = metas_[actor.meta].info;
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.id = "X-52";
  d.title = "collective entered with credits on its signal";
  d.message = x.name + " on rank " + std::to_string(i.rank) + ": signal '" + o.info.name +
              "' is not zero at entry: cells " + cells + (count > 8 ? ", ..." : "") +
              (left >= 0 ? ", left by notifies of rank " + std::to_string(left) : std::string()) +
              place_text(actor.meta);
  d.hint = "a fresh signal, or reset after hand-written notifies";
  if (x.site) d.span = x.site->span;
  d.rank = i.rank;
  d.core = i.core;
  d.task = i.task;
  d.kernel = i.kernel ? i.kernel->name : std::string();
  d.block = i.block;
  tell(std::move(d));
}

/// One more arrival that is not ordered after a wait: what the wait surely observed may have been lucky after
/// all (03 M-30, "notifies that arrive later in the run count too").
void Analysis::judge_again(Cells& cells, Cell& c, const Mod& mod) {
  for (WaitNote& w : cells.waits.range(c.waits)) {
    if (w.margins.empty() || w.chain == mod.chain || mod.at(w.chain) >= w.epoch) continue;
    for (size_t i = 0; i < w.margins.size(); ++i) {
      WaitNote::Margin& margin = w.margins[i];
      if (margin.chain == mod.chain || mod.at(margin.chain) >= margin.epoch) continue;
      margin.without += mod.value;
      if (margin.without >= w.expected) newly_withdrawn_.insert({w.number, margin.notify});
    }
  }
}

/// Both vector lanes of a block issued the same AtomicAdd.
void Analysis::check_lanes(const Notify& n) {
  const ActorInfo& info = metas_[static_cast<size_t>(n.who)].info;
  if (info.lane < 0 || n.op != ir::NotifyOp::kAtomicAdd || !n.site) return;
  const std::string key =
      std::to_string(info.dispatch) + "|" + std::to_string(info.task) + "|" + std::to_string(info.block) +
      "|" + std::to_string(reinterpret_cast<uintptr_t>(n.site)) + "|" + std::to_string(n.iteration) + "|" +
      std::to_string(n.object) + "|" + std::to_string(n.offset);
  if (lane_notifies_.size() > 65536) lane_notifies_.clear();
  const auto [it, fresh] = lane_notifies_.try_emplace(key, std::pair{info.lane, n.value});
  if (fresh || it->second.first == info.lane) return;
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.severity = options_.strict ? Severity::kError : Severity::kWarning;
  d.id = "X-56";
  d.title = "both lanes issue the same notify";
  const Object& o = object(n.object);
  d.message = "both vector lanes of block " + std::to_string(info.block) + " of kernel '" +
              (info.kernel ? info.kernel->name : std::string()) + "' issued the same AtomicAdd on " +
              sink_.cell_text(n.object, n.offset) + " of rank " + std::to_string(o.info.rank) +
              "; the cell is now " + std::to_string(n.after) + place_text(static_cast<uint32_t>(n.who));
  d.hint = "shard by the lane index, or guard with `if aiv_id == 0`";
  d.span = n.site->span;
  d.rank = info.rank;
  d.core = info.core;
  d.task = info.task;
  d.kernel = info.kernel ? info.kernel->name : std::string();
  d.block = info.block;
  lane_notifies_.erase(it);
  tell(std::move(d));
}

}  // namespace pypto::check
