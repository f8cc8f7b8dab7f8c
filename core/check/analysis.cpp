// SPDX-License-Identifier: Apache-2.0
#include "core/check/analysis.h"

#include <algorithm>
#include <cstring>

namespace pypto::check {
namespace {

/// Writes up to this size are compared with a copy, which ends at the first byte that changed; larger ones by
/// hash.
constexpr int64_t kCopied = int64_t{32} << 20;
constexpr size_t kChainCandidates = 64;

template <class Run>
void for_each_run(const Box& box, int level, int64_t at, Run run) {
  if (level == box.dims) {
    run(at, box.run);
    return;
  }
  for (int64_t i = 0; i < box.dim[level].count; ++i)
    for_each_run(box, level + 1, at + i * box.dim[level].stride, run);
}

/// The same until `run` says no.
template <class Run>
bool all_runs(const Box& box, int level, int64_t at, Run run) {
  if (level == box.dims) return run(at, box.run);
  for (int64_t i = 0; i < box.dim[level].count; ++i) {
    if (!all_runs<Run&>(box, level + 1, at + i * box.dim[level].stride, run)) return false;
  }
  return true;
}

uint64_t hash_bytes(uint64_t h, const uint8_t* p, int64_t n) {
  if (n >= 256) {  // four chains of multiplications at once
    uint64_t lane[4] = {h, h ^ 0xA0761D6478BD642Full, h ^ 0xE7037ED1A0B428DBull, h ^ 0x8EBC6AF09C88C6E3ull};
    for (; n >= 32; p += 32, n -= 32) {
      uint64_t w[4];
      std::memcpy(w, p, 32);
      for (int k = 0; k < 4; ++k) {
        lane[k] = (lane[k] ^ w[k]) * 0x9E3779B97F4A7C15ull;
        lane[k] ^= lane[k] >> 29;
      }
    }
    h = 0;
    for (const uint64_t x : lane) {
      h = (h ^ x) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
    }
  }
  while (n >= 8) {
    uint64_t w;
    std::memcpy(&w, p, 8);
    h = (h ^ w) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 29;
    p += 8;
    n -= 8;
  }
  uint64_t w = 0;
  std::memcpy(&w, p, static_cast<size_t>(n));
  h = (h ^ w ^ static_cast<uint64_t>(n) << 56) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

void snapshot(const Box& box, const uint8_t* data, std::vector<uint8_t>* copy, uint64_t* hash) {
  copy->clear();
  *hash = 0;
  if (box.bytes() <= kCopied) {
    for_each_run(box, 0, box.base,
                 [&](int64_t at, int64_t n) { copy->insert(copy->end(), data + at, data + at + n); });
    return;
  }
  for_each_run(box, 0, box.base, [&](int64_t at, int64_t n) { *hash = hash_bytes(*hash, data + at, n); });
}

/// Whether the bytes are those of the snapshot.
bool unchanged(const Box& box, const uint8_t* data, const std::vector<uint8_t>& copy, uint64_t hash) {
  if (box.bytes() <= kCopied) {
    const uint8_t* old = copy.data();
    return all_runs(box, 0, box.base, [&](int64_t at, int64_t n) {
      const bool same = std::memcmp(data + at, old, static_cast<size_t>(n)) == 0;
      old += n;
      return same;
    });
  }
  uint64_t now = 0;
  for_each_run(box, 0, box.base, [&](int64_t at, int64_t n) { now = hash_bytes(now, data + at, n); });
  return now == hash;
}

}  // namespace

// ------------------------------------------------------------------ actors

uint32_t Analysis::take_chain(int rank, const ActorClock& known) {
  std::vector<uint32_t>& free = free_chains_[rank];
  const size_t n = std::min(free.size(), kChainCandidates);
  for (size_t k = 1; k <= n; ++k) {
    const uint32_t c = free[free.size() - k];
    if (!known.knows(c, chain_epoch_[c])) continue;
    free.erase(free.end() - static_cast<std::ptrdiff_t>(k));
    return c;
  }
  chain_epoch_.push_back(0);
  return static_cast<uint32_t>(chain_epoch_.size() - 1);
}

ActorId Analysis::start(const ActorInfo& info, std::span<const Clock> after) {
  settle_write();
  ActorId id;
  if (!free_actors_.empty()) {
    id = free_actors_.back();
    free_actors_.pop_back();
  } else {
    id = static_cast<ActorId>(actors_.size());
    actors_.emplace_back();
  }
  Actor& a = actors_[static_cast<size_t>(id)];
  a.live = true;
  a.meta = static_cast<uint32_t>(metas_.size());
  Meta meta;
  meta.info = info;
  metas_.push_back(std::move(meta));
  a.ears = &ears_[info.dispatch];
  ActorClock known;  // chain is chosen when everything it starts after is known
  known.start(kNoChain, 0);
  for (const Clock& c : after) known.acquire(c);
  const uint32_t chain = take_chain(info.rank, known);
  a.clock.start(known, chain, chain_epoch_[chain] + 1);
  return id;
}

Clock Analysis::release(ActorId actor) {
  if (actor < 0) return nullptr;
  settle_write();
  return actors_[static_cast<size_t>(actor)].clock.release();
}

void Analysis::acquire(ActorId actor, const Clock& clock) {
  if (actor < 0) return;
  settle_write();
  actors_[static_cast<size_t>(actor)].clock.acquire(clock);
}

Clock Analysis::end(ActorId actor) {
  if (actor < 0) return nullptr;
  settle_write();
  Actor& a = actors_[static_cast<size_t>(actor)];
  Clock clock = a.clock.release();
  const uint32_t chain = a.clock.chain();
  chain_epoch_[chain] = a.clock.epoch();
  free_chains_[metas_[a.meta].info.rank].push_back(chain);
  a.live = false;
  metas_[a.meta].ended = true;
  a.clock = ActorClock();
  free_actors_.push_back(actor);
  return clock;
}

Clock Analysis::join(std::span<const Clock> clocks) {
  ActorClock all;
  all.start(kNoChain, 0);
  const Clock* only = nullptr;
  size_t n = 0;
  for (const Clock& c : clocks) {
    if (!c) continue;
    only = &c;
    ++n;
    all.acquire(c);
  }
  if (n == 1) return *only;
  return all.release();
}

// ------------------------------------------------------------------ objects

void Analysis::add_object(int32_t id, const ObjectInfo& info) {
  if (static_cast<size_t>(id) >= objects_.size()) objects_.resize(static_cast<size_t>(id) + 1);
  Object& o = object(id);
  o = Object();
  o.info = info;
  o.live = true;
}

void Analysis::drop_object(int32_t id) {
  settle_write();
  object(id) = Object();
}

void Analysis::reset_object(int32_t id) {
  settle_write();
  Object& o = object(id);
  o.shared.clear();
  o.cells = Cells();
}

void Analysis::drop_part(int64_t part) {
  settle_write();
  parts_.erase(part);
}

History& Analysis::history(int32_t id, int64_t part) {
  return part == 0 ? object(id).shared : parts_[part].histories[id];
}

int32_t Analysis::value_of_cell(const Object& o, int64_t offset) {
  if (seen_ && seen_->replay) return seen_->cells[seen_->next_cell++];
  int32_t value = 0;
  std::memcpy(&value, o.info.data + offset, sizeof(value));
  if (seen_) seen_->cells.push_back(value);
  return value;
}

Cell& Analysis::cell(Object& o, int64_t offset, int32_t value) {
  return o.cells.get(offset, o.info.bytes, value);
}

// ------------------------------------------------------------------ accesses

bool Analysis::conflicts(const Entry& a, const Entry& b) {
  using vm::AccessKind;
  if (a.kind == AccessKind::kRead && b.kind == AccessKind::kRead) return false;
  if (a.kind == AccessKind::kAtomic && b.kind == AccessKind::kAtomic) return a.dtype != b.dtype;
  // A write that changes nothing races neither with reads nor with its like (03 M-24).
  const bool a_quiet = a.silent || a.kind == AccessKind::kRead;
  const bool b_quiet = b.silent || b.kind == AccessKind::kRead;
  return !(a_quiet && b_quiet);
}

/// Unordered accesses that would conflict but for the fact that no byte changes (a note of strict checking).
bool Analysis::overlaps_quietly(const Entry& a, const Entry& b) {
  using vm::AccessKind;
  return (a.kind == AccessKind::kWrite && a.silent && b.kind != AccessKind::kAtomic) ||
         (b.kind == AccessKind::kWrite && b.silent && a.kind != AccessKind::kAtomic);
}

/// Whether nothing that conflicts with `old` could miss `now` (which comes after it and covers its bytes).
bool Analysis::prunes(const Entry& now, const Entry& old) {
  using vm::AccessKind;
  switch (now.kind) {
    case AccessKind::kWrite:
      return !now.silent || old.silent || old.kind == AccessKind::kRead;
    case AccessKind::kAtomic:
      return old.kind == AccessKind::kAtomic && old.dtype == now.dtype;
    default:
      return old.kind == AccessKind::kRead;
  }
}

void Analysis::access(const Access& x) {
  if (x.actor < 0 || x.box.empty()) return;
  if (x.part == 0) object(x.object).shared.prefetch(x.box);
  settle_write();
  Actor& actor = actors_[static_cast<size_t>(x.actor)];
  const Meta& meta = metas_[actor.meta];
  const Ears& ears = *actor.ears;
  Entry e;
  e.chain = actor.clock.chain();
  e.epoch = actor.clock.stamp();
  e.meta = actor.meta;
  e.round = static_cast<int32_t>(sink_.round());
  e.sequence = ++sequence_;
  e.site = x.site;
  e.last_wait = meta.last_wait >= 0 ? meta.last_wait : ears.last_wait;
  e.waits = ears.waits;
  e.op = x.op;
  e.kind = x.kind;
  e.dtype = x.dtype;
  e.remote = x.remote;
  e.fetch = x.remote && !x.internal && x.kind == vm::AccessKind::kRead &&
            (x.op == ir::OpId::k_remote_load || x.op == ir::OpId::k_get || x.op == ir::OpId::k_tile_get);
  e.bytes = x.box.bytes();
  Shape shape;
  shape.dtype = x.dtype;
  shape.lowered = x.internal;
  if (x.view) {
    shape.rank = x.view->rank;
    shape.stride = x.view->stride;
  }
  if (x.kind == vm::AccessKind::kRead) {
    compare_cells(actor, x.object, x.box, e, shape);
    compare(actor, x.object, x.part, x.box, e, shape);
    return;
  }
  PendingWrite& p = pending_;
  p.valid = true;
  p.actor = x.actor;
  p.object = x.object;
  p.part = x.part;
  p.box = x.box;
  p.entry = e;
  p.rank = shape.rank;
  p.lowered = shape.lowered;
  std::copy(shape.stride, shape.stride + shape.rank, p.stride);
  p.changes = x.changes;
  if (p.changes < 0 && x.kind == vm::AccessKind::kWrite && !(seen_ && seen_->replay))
    snapshot(x.box, object(x.object).info.data, &p.old, &p.old_hash);
}

void Analysis::settle_write() {
  if (!pending_.valid) return;
  PendingWrite& p = pending_;
  p.valid = false;
  const Object& o = object(p.object);
  if (!o.live) return;
  if (seen_ && seen_->replay) {
    p.entry.silent = seen_->silent[seen_->next_silent++] != 0;
  } else {
    if (p.changes >= 0) {
      p.entry.silent = p.entry.kind == vm::AccessKind::kWrite && p.changes == 0;
    } else if (p.entry.kind == vm::AccessKind::kWrite) {
      p.entry.silent = unchanged(p.box, o.info.data, p.old, p.old_hash);
    }
    if (seen_) seen_->silent.push_back(p.entry.silent);
  }
  Actor& actor = actors_[static_cast<size_t>(p.actor)];
  const Shape shape{p.rank, p.stride, p.entry.dtype, p.lowered};
  compare_cells(actor, p.object, p.box, p.entry, shape);
  compare(actor, p.object, p.part, p.box, p.entry, shape);
}

/// Keeps the earliest of each statement.
static void offer(std::vector<Earliest>& rivals, const Box& box, const Entry& entry) {
  for (Earliest& r : rivals) {
    if (r.entry.site == entry.site && r.entry.remote == entry.remote) {
      r.offer(box, entry);
      return;
    }
  }
  rivals.emplace_back().offer(box, entry);
}

void Analysis::compare(Actor& actor, int32_t object_id, int64_t part, const Box& box, Entry& entry,
                       const Shape& shape) {
  History& h = history(object_id, part);
  const Object& o = object(object_id);
  const bool look_for_unwritten =
      options_.strict && entry.fetch && o.info.window >= 0 && !o.info.carried && o.cells.empty();
  std::vector<Box>& written = written_;
  std::vector<Box>& known = known_;  // writes that are ordered before this read
  written.clear();
  known.clear();
  bool replaced = false;  // the racing write replaced such a write
  bool late_write = false;
  std::vector<Earliest> conflicting, quiet;    // of each statement
  std::pair<int64_t, int64_t> latest{-1, -1};  // of the writes that this access replaces: first byte, age
  const auto look = [&](const Box& where, const Entry& old) {
    const bool old_writes = old.kind != vm::AccessKind::kRead;
    if (look_for_unwritten && old_writes) written.push_back(where);
    if (actor.clock.knows(old.chain, old.epoch)) {
      if (old_writes) {
        entry.after_write = true;
        if (entry.kind == vm::AccessKind::kRead) known.push_back(where);
      }
      if (!prunes(entry, old) || !covers(box, where) || unwritten_.count(old.sequence)) return false;
      const std::pair at{where.base, old.sequence};
      if (old_writes && at > latest) {
        latest = at;
        entry.prior[0] = {old.chain, old.epoch};
        entry.prior[1] = old.prior[0];
      }
      return true;
    }
    for (const Entry::Stamp& prior : old.prior) {
      replaced = replaced || (prior.chain != UINT32_MAX && actor.clock.knows(prior.chain, prior.epoch));
    }
    entry.after_write = entry.after_write || replaced;
    if (entry.kind != vm::AccessKind::kRead) unwritten_.erase(old.sequence);  // it reads too early: a race
    late_write = late_write || old_writes;
    if (conflicts(old, entry)) {
      offer(conflicting, where, old);
    } else if (options_.strict && overlaps_quietly(old, entry)) {
      offer(quiet, where, old);
    }
    return false;
  };
  if (entry.kind == vm::AccessKind::kRead) {
    h.visit_writes(box, look);
    h.prune_reads(
        box, [&](uint32_t chain, uint32_t epoch) { return actor.clock.knows(chain, epoch); },
        [&](const Entry& old) { return unwritten_.empty() || !unwritten_.count(old.sequence); });
  } else {
    h.visit(box, look);
  }
  std::vector<Earliest>& rivals = conflicting.empty() ? quiet : conflicting;
  std::sort(rivals.begin(), rivals.end(), [](const Earliest& x, const Earliest& y) {
    return std::pair(x.box.base, x.entry.sequence) < std::pair(y.box.base, y.entry.sequence);
  });
  for (const Earliest& racing : rivals) {
    Found f;
    f.object = object_id;
    f.a = racing.entry;
    f.a_box = racing.box;
    f.b = entry;
    f.b_box = box;
    f.quiet = conflicting.empty();
    // Only the bytes of this race count: an earlier write of others says nothing about them.
    if (entry.after_write && entry.kind == vm::AccessKind::kRead) {
      const auto meets = [&](const Box& b) { return overlap(b, racing.box); };
      f.b.after_write = replaced || std::any_of(known.begin(), known.end(), meets);
    }
    locate(f, shape);
    found(std::move(f));
  }
  if (look_for_unwritten && !late_write) note_unwritten(object_id, box, entry, shape, written);
  h.add(box, entry);
}

/// Plain accesses of signal cells against the notifies of those cells (03 M-23).
void Analysis::compare_cells(Actor& actor, int32_t object_id, const Box& box, const Entry& entry,
                             const Shape& shape) {
  Object& o = object(object_id);
  if (o.cells.empty()) return;
  for (const int64_t at : o.cells.within(box.base, box.end())) {
    Cell* c = o.cells.find(at);
    if (!overlap(box, box_of_range(at, at + 4))) continue;
    const int32_t now = entry.kind == vm::AccessKind::kRead ? 0 : value_of_cell(o, at);
    for (const Mod& m : o.cells.mods.range(c->mods)) {
      if (m.kind == Mod::Kind::kWrite || actor.clock.knows(m.chain, m.epoch)) continue;
      Found f;
      f.object = object_id;
      f.a.chain = m.chain;
      f.a.epoch = m.epoch;
      f.a.meta = m.meta;
      f.a.round = m.round;
      f.a.sequence = m.sequence;
      f.a.site = m.site;
      f.a.op = ir::OpId::k_notify;
      f.a.kind = m.kind == Mod::Kind::kSet ? vm::AccessKind::kWrite : vm::AccessKind::kAtomic;
      f.a.remote = metas_[m.meta].info.rank != o.info.rank;
      f.a.bytes = 4;
      f.a_box = box_of_range(at, at + 4);
      f.a_notify = true;
      f.a_value = m.value;
      f.b = entry;
      f.b_box = f.a_box;
      f.result = f.b_value = now;
      locate(f, shape);
      found(std::move(f));
      break;
    }
    if (entry.kind == vm::AccessKind::kRead) continue;
    Mod m;
    m.kind = Mod::Kind::kWrite;
    m.chain = entry.chain;
    m.epoch = entry.epoch;
    m.meta = entry.meta;
    m.round = entry.round;
    m.sequence = entry.sequence;
    m.site = entry.site;
    m.before = c->mods.empty() ? c->initial : o.cells.mods.back(c->mods).after;
    m.value = m.after = now;
    m.release = actor.clock.release();
    o.cells.mods.push_back(c->mods, std::move(m));
  }
}

// ------------------------------------------------------------------ bytes never written

namespace {

constexpr int64_t kMaxRuns = 1 << 16;

int64_t runs_of(const Box& box) { return box.run > 0 ? box.bytes() / box.run : 0; }

/// The first run of bytes of `box` that is in none of `written`, and how many such bytes there are.
std::pair<Range, int64_t> missing(const Box& box, const std::vector<Box>& written) {
  if (written.empty()) {
    Range first;
    for_each_run(box, 0, box.base, [&](int64_t at, int64_t n) {
      if (first.end == 0) first = {at, at + n};
    });
    return {first, box.bytes()};
  }
  int64_t runs = runs_of(box);
  for (const Box& w : written) {
    if (covers(w, box)) return {};
    runs += runs_of(w);
  }
  if (runs > kMaxRuns) return {};
  std::vector<Range> done;
  for (const Box& w : written)
    for_each_run(w, 0, w.base, [&](int64_t at, int64_t n) { done.push_back({at, at + n}); });
  std::sort(done.begin(), done.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> wanted;
  for_each_run(box, 0, box.base, [&](int64_t at, int64_t n) { wanted.push_back({at, at + n}); });
  Range first;
  int64_t bytes = 0;
  size_t next = 0;
  for (const Range& want : wanted) {
    int64_t at = want.begin;
    // Ranges that end before this run end before the later ones too, unless a longer one hides behind.
    while (next < done.size() && done[next].end <= at) ++next;
    for (size_t k = next; k < done.size() && done[k].begin < want.end && at < want.end; ++k) {
      if (done[k].begin > at) {
        if (bytes == 0) first = {at, done[k].begin};
        bytes += done[k].begin - at;
      }
      at = std::max(at, done[k].end);
    }
    if (at < want.end) {
      if (bytes == 0) first = {at, want.end};
      bytes += want.end - at;
    }
  }
  return {first, bytes};
}

}  // namespace

void Analysis::note_unwritten(int32_t object_id, const Box& box, const Entry& entry, const Shape& shape,
                              const std::vector<Box>& written) {
  const auto [first, bytes] = missing(box, written);
  if (bytes == 0) return;
  Unwritten u;
  u.read.object = object_id;
  u.read.b = entry;
  u.read.a_box = u.read.b_box = box_of_range(first.begin, first.end);
  u.bytes = bytes;
  locate(u.read, shape);
  unwritten_.emplace(entry.sequence, std::move(u));
}

void Analysis::settle() { settle_write(); }

}  // namespace pypto::check
