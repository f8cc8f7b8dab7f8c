// SPDX-License-Identifier: Apache-2.0
// What a race is called, how severe it is, and its text (03, M-33).
#include <algorithm>

#include "core/check/analysis.h"

namespace pypto::check {
namespace {

using vm::AccessKind;

const char* kind_text(AccessKind kind) {
  return kind == AccessKind::kRead ? "reads" : kind == AccessKind::kWrite ? "writes" : "adds atomically to";
}
const char* kind_name(AccessKind kind) {
  return kind == AccessKind::kRead ? "read" : kind == AccessKind::kWrite ? "write" : "atomic";
}

bool is_push(const Entry& e) { return e.remote && e.kind != AccessKind::kRead && e.op != ir::OpId::k_notify; }
bool is_remote_read(const Entry& e) { return e.remote && e.kind == AccessKind::kRead; }
bool writes(const Entry& e) { return e.kind != AccessKind::kRead; }

/// Rounds that a report waits for what follows it, when that decides how it is explained.
constexpr int64_t kPatience = 256;

}  // namespace

/// Index range of the first common bytes in the coordinates of the root, as far as the strides of the view
/// tell them.
void Analysis::locate(Found& f, const Shape& of_access) const {
  const Object& o = objects_[static_cast<size_t>(f.object)];
  Shape shape = of_access;
  if (shape.lowered && !o.info.stride.empty() && o.info.dtype == shape.dtype) {
    shape.rank = static_cast<int>(o.info.stride.size());
    shape.stride = o.info.stride.data();
  }
  f.object_name = o.info.name;
  f.object_rank = o.info.rank;
  f.window = o.info.window;
  const Range r = common_range(f.a_box, f.b_box);
  if (shape.rank == 0 || !shape.stride || shape.dtype == DType::kNone) return;
  const int64_t size = std::max(1, dtype_bits(shape.dtype) / 8);
  int64_t first = r.begin / size;
  int64_t last = (std::max(r.end, r.begin + 1) - 1) / size;
  // Outer axes first; a view of one row has any stride there.
  std::vector<std::pair<int64_t, int64_t>> range(static_cast<size_t>(shape.rank));
  std::vector<int> order(static_cast<size_t>(shape.rank));
  for (int i = 0; i < shape.rank; ++i) order[static_cast<size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return shape.stride[a] > shape.stride[b]; });
  for (const int i : order) {
    const int64_t stride = std::max<int64_t>(shape.stride[i], 1);
    range[static_cast<size_t>(i)] = {first / stride, last / stride + 1};
    first %= stride;
    last %= stride;
  }
  for (auto& [begin, end] : range) {
    if (end <= begin) end = begin + 1;
  }
  f.range = range;
  f.index = "[";
  for (size_t i = 0; i < range.size(); ++i) {
    f.index += (i ? ", " : "") + std::to_string(range[i].first);
    if (range[i].second > range[i].first + 1) f.index += ":" + std::to_string(range[i].second);
  }
  f.index += "]";
}

void Analysis::found(Found f) {
  f.round = sink_.round();
  (f.quiet ? quiet_ : found_).push_back(std::move(f));
}

/// Reports in order. One that later notifies may still explain holds back those behind it, for a while.
void Analysis::end_round() {
  settle_write();
  if (deciding_) return;
  size_t n = 0;
  while (n < found_.size() && (found_[n].round + kPatience <= sink_.round() || !classify(found_[n]).open))
    ++n;
  if (n == 0) return;
  std::vector<Found> now(std::make_move_iterator(found_.begin()),
                         std::make_move_iterator(found_.begin() + static_cast<std::ptrdiff_t>(n)));
  found_.erase(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(n));
  deciding_ = true;
  for (const Found& f : now) report(f);
  deciding_ = false;
}

void Analysis::decide() {
  if (deciding_) return;
  settle_write();
  std::vector<Found> now = std::move(found_);
  found_.clear();
  deciding_ = true;
  for (const Found& f : now) report(f);
  deciding_ = false;
}

void Analysis::finish(bool complete) {
  decide();
  for (const Found& f : quiet_) report(f);
  quiet_.clear();
  if (complete) {
    for (const auto& [sequence, u] : unwritten_) report_unwritten(u);
  }
  unwritten_.clear();
}

/// An error stops the run: what was found before it comes first.
void Analysis::tell(Diagnostic d) {
  if (d.severity == Severity::kError) decide();
  sink_.report(std::move(d));
}

// ------------------------------------------------------------------ explanation

/// Whether waits before this access observed a notify of the rank.
bool Analysis::heard_rank(const Entry& listener, int rank) const {
  const auto it = ears_.find(metas_[listener.meta].info.dispatch);
  return it != ears_.end() && it->second.last_from(rank, listener.sequence) != 0;
}

/// Whether waits before this access observed a notify of the speaker's rank that was not another lane of the
/// speaker's block.
bool Analysis::heard(const Entry& listener, const Meta& speaker) const {
  const auto it = ears_.find(metas_[listener.meta].info.dispatch);
  if (it == ears_.end()) return false;
  const uint32_t m = it->second.last_from(speaker.info.rank, listener.sequence);
  if (m == 0) return false;
  const ActorInfo& i = metas_[m - 1].info;
  return !(i.dispatch == speaker.info.dispatch && i.task == speaker.info.task &&
           i.block == speaker.info.block && i.lane != speaker.info.lane);
}

/// Whether the waiter's last wait before its access could have observed a notify that the other sent after
/// its own access, but not in every order (03 M-30): then the order of arrivals decides.
Analysis::Arrival Analysis::order_dependent(const Entry& waiter, const Entry& other) const {
  if (waiter.last_wait < 0) return Arrival::kNo;
  const WaitRecord& w = waits_[static_cast<size_t>(waiter.last_wait)];
  const Object& o = objects_[static_cast<size_t>(w.object)];
  const Cell* c = o.cells.find(w.offset);
  if (!c) return Arrival::kNo;
  const int rank = metas_[other.meta].info.rank;
  const Arrival later = metas_[other.meta].ended ? Arrival::kNo : Arrival::kMaybe;
  const auto& mods = o.cells.mods;
  const bool others = [&] {
    for (const Mod& m : mods.range(c->mods)) {
      if (metas_[m.meta].info.rank != rank && (m.kind != Mod::Kind::kAdd || m.value > 0)) return true;
    }
    return false;
  }();
  if (!others) return later;
  const auto counts = [&](const Mod& m) { return m.sequence > w.sequence || w.open.has(m.sequence); };
  const auto ordered = [](const Mod& a, const Mod& b) {
    return a.chain == b.chain ? a.sequence < b.sequence : b.at(a.chain) >= a.epoch;
  };
  for (const Mod& m : mods.range(c->mods)) {
    if (metas_[m.meta].info.rank != rank || m.sequence < other.sequence || w.sure.has(m.number)) continue;
    if (!counts(m) || m.at(w.chain) >= w.epoch) continue;
    // The least that the cell can hold when this one arrives: it is observed if that is not enough.
    int64_t least = w.base;
    if (w.cmp == ir::WaitCmp::kEq && least == w.expected) continue;
    if (w.cmp == ir::WaitCmp::kGe) {
      for (const Mod& k : mods.range(c->mods)) {
        if (&k == &m || !counts(k) || k.kind != Mod::Kind::kAdd) continue;
        if (ordered(k, m)) {
          least += k.value;
        } else if (!ordered(m, k)) {
          least += std::min(k.value, 0);
        }
      }
      if (least >= w.expected) continue;
    }
    return Arrival::kDependent;
  }
  return later;
}

Analysis::Verdict Analysis::classify(const Found& f) const {
  const Meta& ma = metas_[f.a.meta];
  const Meta& mb = metas_[f.b.meta];
  const bool one_rank = ma.info.rank == mb.info.rank;
  const bool window = f.window >= 0;
  // Reader and writer, when there is one of each.
  const Entry* read = !writes(f.a) ? &f.a : !writes(f.b) ? &f.b : nullptr;
  const Entry* write = read == &f.a ? &f.b : read == &f.b ? &f.a : nullptr;
  const Meta* reader = read ? &metas_[read->meta] : nullptr;
  const Meta* writer = write ? &metas_[write->meta] : nullptr;
  const bool owner_writes = write && !write->remote && writer->info.rank == f.object_rank;
  const bool owner_reads = read && !read->remote && reader->info.rank == f.object_rank;

  if (f.a_notify || f.b_notify) {
    const Entry& other = f.a_notify ? f.b : f.a;
    if (f.a_notify && f.b_notify) {
      return {"X-44", "unordered Set", "use AtomicAdd, or one cell per writer"};
    }
    if (writes(other)) {
      return {"X-44", "plain write of a cell that a notify is about to raise",
              "use AtomicAdd, or one cell per writer"};
    }
    return {"X-40", "plain read of a signal cell",
            "wait for the cell instead of reading it, or read it after the wait"};
  }
  bool open = false;
  if (window && !one_rank) {
    if (read && is_remote_read(*read) && owner_writes && read->waits == 0) {
      return {"X-40/X-42", "read before stage / missing barrier", "stage, then barrier, then remote_load"};
    }
    for (const Entry* e : {&f.a, &f.b}) {
      if (e->last_wait >= 0 && waits_[static_cast<size_t>(e->last_wait)].reused) {
        return {"X-40/X-45", "reused monotonic cells",
                "wait for the round number, or reset the cell between rounds"};
      }
    }
    for (const auto& [waiter, other] : {std::pair{&f.a, &f.b}, std::pair{&f.b, &f.a}}) {
      const Arrival arrival = order_dependent(*waiter, *other);
      open = open || arrival == Arrival::kMaybe;
      if (arrival == Arrival::kDependent) {
        return {"X-40/X-45", "order-dependent arrival",
                "wait for the full count, or give each source its own cell"};
      }
    }
    if (read && is_remote_read(*read) && owner_writes && !read->after_write && heard(*read, *writer)) {
      return {"X-40/X-43", "barrier on the wrong side (pull)",
              "move the barrier between the write and the read", open};
    }
    if (read && owner_reads && is_push(*write) && !read->after_write && heard(*read, *writer)) {
      return {"X-40/X-43", "barrier on the wrong side (push)", "push, then barrier, then read", open};
    }
    if (read && owner_reads && is_push(*write)) {
      const auto r = static_cast<size_t>(writer->info.rank);
      const bool told = r < last_notify_.size() && last_notify_[r] > write->sequence;
      if (!told) return {"X-40/X-60", "put without signal", "notify the peer after the put", true};
    }
    if (read && read->waits > 0 && !heard_rank(*read, writer->info.rank)) {
      return {"X-40/X-59", "handshake direction",
              "notify the rank that reads from you; wait for the rank you read from", open};
    }
    if (read && is_push(*write) && (read->after_write || read->sequence < write->sequence)) {
      return {"X-40", "target still being read", "alternate two windows, or barrier before the next push",
              open};
    }
    if (read && is_remote_read(*read) && owner_writes && read->after_write) {
      return {"X-40", "overwrite while peers read (or stale read)",
              "the reader wants the old value: a read-complete barrier before overwriting; it wants the new "
              "one: a barrier between the write and the read in every round",
              open};
    }
    if (!read) {
      return {"X-40/X-61", "two writers", "give each writer its own row, or use AtomicType.Add", open};
    }
    if (writer->info.lane >= 0 && heard_rank(*read, writer->info.rank) && !heard(*read, *writer)) {
      return {"X-40/X-58", "lane-guarded release",
              "synchronise the lanes, or let each lane notify for its part", open};
    }
  }
  if (one_rank) {
    const ActorInfo& a = ma.info;
    const ActorInfo& b = mb.info;
    if (a.task == b.task && a.dispatch == b.dispatch) {
      return {"X-40", a.block != b.block ? "slot reuse by blocks" : "two lanes of one block",
              a.block != b.block ? "give each block its own part, or order them with a barrier"
                                 : "divide the work by the lane index, or synchronise the lanes"};
    }
    if (a.manual || b.manual) {
      return {"X-40", "slot reuse by blocks", "add the task dependence: deps=[...] on the later task"};
    }
    return {"X-40", "slot reuse by blocks", "add the task dependence; remove no_dep or manual_dep"};
  }
  return {};
}

Severity Analysis::severity(const Found& f, bool* host_order) const {
  *host_order = false;
  const ActorInfo& a = metas_[f.a.meta].info;
  const ActorInfo& b = metas_[f.b.meta].info;
  if (a.rank == b.rank || a.group == b.group || a.kernel == b.kernel) return Severity::kError;
  const bool a_earlier = a.group < b.group;
  const int32_t earlier = a_earlier ? f.a.round : f.b.round;
  const int32_t later = a_earlier ? f.b.round : f.a.round;
  if (earlier >= later) return Severity::kError;
  *host_order = true;
  return options_.strict ? Severity::kError : Severity::kWarning;
}

// ------------------------------------------------------------------ text

std::string Analysis::who(const Entry& e) const {
  const ActorInfo& i = metas_[e.meta].info;
  std::string s = i.rank < 0 ? "the host" : "rank " + std::to_string(i.rank);
  if (i.rank >= 0 && static_cast<size_t>(i.rank) < options_.device_ids.size()) {
    s += " (device " + std::to_string(options_.device_ids[static_cast<size_t>(i.rank)]) + ")";
  }
  if (i.task >= 0) {
    s += ", kernel '" + (i.kernel ? i.kernel->name : std::string()) + "', task " + std::to_string(i.task) +
         ", block " + std::to_string(i.block);
    if (i.lane >= 0) s += ", lane " + std::to_string(i.lane);
    if (!i.core.empty()) s += " (" + i.core + ")";
  } else if (i.kernel) {
    s += ", orchestration '" + i.kernel->name + "'";
  }
  return s;
}

DiagnosticAccess Analysis::access_record(const Found& f, const Entry& e, bool notify) const {
  const ActorInfo& i = metas_[e.meta].info;
  DiagnosticAccess a;
  a.rank = i.rank;
  a.core = i.core;
  a.task = i.task;
  a.kernel = i.kernel ? i.kernel->name : std::string();
  a.block = i.block;
  a.lane = i.lane;
  if (e.site) a.span = e.site->span;
  a.kind = notify ? "atomic" : kind_name(e.kind);
  a.object = f.object_name;
  a.range = f.range;
  const Range r = common_range(f.a_box, f.b_box);
  a.bytes = r.end - r.begin;
  return a;
}

/// What the kernels call the window: " (parameter 'data' of 'kernel')".
std::string Analysis::parameters_text(const Found& f) const {
  std::string text;
  for (const Entry* e : {&f.a, &f.b}) {
    const vm::FunctionCode* kernel = metas_[e->meta].info.kernel;
    if (!kernel || (e == &f.b && kernel == metas_[f.a.meta].info.kernel)) continue;
    const std::string name = sink_.parameter_of(kernel, f.window);
    if (name.empty()) continue;
    text += (text.empty() ? " (parameter '" : ", '") + name + "' of '" + kernel->name + "'";
  }
  return text.empty() ? text : text + ")";
}

/// " [rank 1 (device 9), kernel ..., dispatch of 'on_device' at ...]"
std::string Analysis::place_text(uint32_t meta) const {
  Entry e;
  e.meta = meta;
  const std::string dispatch = sink_.dispatch_text(metas_[meta].info.dispatch);
  return " [" + who(e) + (dispatch.empty() ? "" : ", dispatch of " + dispatch) + "]";
}

void Analysis::report(const Found& f) {
  Verdict v = classify(f);
  bool host_order = false;
  Diagnostic d;
  d.severity = severity(f, &host_order);
  if (host_order) {
    v = {"X-40", "host order only", "put pld.tensor.barrier between the two dispatch groups"};
  }
  if (f.quiet) {
    d.severity = Severity::kNote;
    v = {"X-40", "overlap that changes no byte", "order the two accesses all the same"};
  }
  std::pair<std::string, std::string> lines(f.a.site ? f.a.site->span.text() : std::string(),
                                            f.b.site ? f.b.site->span.text() : std::string());
  if (lines.second < lines.first) std::swap(lines.first, lines.second);
  const bool known = !racing_lines_.insert(std::move(lines)).second;
  if (f.quiet && known) return;
  const std::string key = std::string(v.id) + (f.quiet ? "quiet" : "") +
                          (f.a.site ? f.a.site->span.text() : "") + "|" +
                          (f.b.site ? f.b.site->span.text() : "");
  if (!reported_.insert(key).second) return;
  d.cls = ErrorClass::kRaceError;
  d.id = v.id;
  d.title = v.variant;
  const Range r = common_range(f.a_box, f.b_box);
  const std::string object = (f.window >= 0 ? "window '" + f.object_name + "' of rank " +
                                                  std::to_string(f.object_rank) + parameters_text(f)
                                            : "tensor '" + f.object_name + "'");
  auto line = [&](const Entry& e, bool notify, int32_t value) {
    std::string s = who(e) + " " + (notify ? "notifies" : kind_text(e.kind));
    if (notify) s += " (value " + std::to_string(value) + ")";
    if (!notify && e.op != ir::OpId{}) s += std::string(" (") + ir::op_row(e.op).name + ")";
    if (e.site && e.site->span.known()) {
      s += " at " + e.site->span.file_line();
    } else if (e.site) {  // the generated kernel of a host collective: its place is the statement
      s += " in the dispatch of " + sink_.dispatch_text(metas_[e.meta].info.dispatch);
    }
    return s;
  };
  d.message = std::string(f.quiet ? "accesses that are not ordered (" : "data race (") + v.id + ", " +
              v.variant + ") on " + object + (f.index.empty() ? "" : ", elements " + f.index) + ", bytes " +
              std::to_string(r.begin) + " to " + std::to_string(r.end) + ": " +
              line(f.a, f.a_notify, f.a_value) + "; " + line(f.b, f.b_notify, f.b_value) +
              "; nothing orders the two accesses";
  if (f.a_notify || f.b_notify) d.message += "; the cell becomes " + std::to_string(f.result);
  if (host_order) d.message += ": this run followed host order, hardware does not";
  for (const Entry* e : {&f.a, &f.b}) {
    std::string s = "last synchronisation of " + who(*e) + ": ";
    if (e->last_wait >= 0) {
      const WaitRecord& w = waits_[static_cast<size_t>(e->last_wait)];
      s += "the wait on " + objects_[static_cast<size_t>(w.object)].info.name + " at " +
           (w.site ? w.site->span.file_line() : std::string("<unknown>"));
    } else {
      s += "the start of its dispatch";
    }
    d.notes.push_back({s, e->site ? e->site->span : Span()});
  }
  // Who dispatched them; one line when it is the same statement.
  const std::string first = sink_.dispatch_text(metas_[f.a.meta].info.dispatch);
  const std::string second = sink_.dispatch_text(metas_[f.b.meta].info.dispatch);
  if (!first.empty()) d.notes.push_back({"dispatch of " + first, {}});
  if (!second.empty() && second != first) d.notes.push_back({"dispatch of " + second, {}});
  d.hint = v.fix;
  d.accesses = {access_record(f, f.a, f.a_notify), access_record(f, f.b, f.b_notify)};
  const ActorInfo& i = metas_[f.b.meta].info;
  d.rank = i.rank;
  d.core = i.core;
  d.task = i.task;
  d.kernel = i.kernel ? i.kernel->name : std::string();
  d.block = i.block;
  d.lane = i.lane;
  if (f.b.site) d.span = f.b.site->span;
  sink_.report(std::move(d));
}

/// a fetch of bytes that nobody has written since the window was zeroed (strict).
void Analysis::report_unwritten(const Unwritten& u) {
  const Found& f = u.read;
  if (!reported_.insert("X-41" + (f.b.site ? f.b.site->span.text() : std::string())).second) return;
  const ActorInfo& i = metas_[f.b.meta].info;
  Diagnostic d;
  d.cls = ErrorClass::kUninitializedReadError;
  d.severity = Severity::kWarning;
  d.id = "X-41";
  d.title = "remote read of bytes that nobody has written";
  d.message = who(f.b) + " reads " + (f.index.empty() ? "" : "elements " + f.index + ", ") + "bytes " +
              std::to_string(f.b_box.begin()) + " to " + std::to_string(f.b_box.end()) + " of window '" +
              f.object_name + "' of rank " + std::to_string(f.object_rank) +
              (f.b.site ? " at " + f.b.site->span.file_line() : std::string()) +
              ", which nobody has written since the window was zeroed (" + std::to_string(u.bytes) + " of " +
              std::to_string(f.b.bytes) + " bytes of the read)";
  d.hint = "stage before the ordering barrier";
  if (f.b.site) d.span = f.b.site->span;
  d.accesses = {access_record(f, f.b, false)};
  d.rank = i.rank;
  d.core = i.core;
  d.task = i.task;
  d.kernel = i.kernel ? i.kernel->name : std::string();
  d.block = i.block;
  d.lane = i.lane;
  sink_.report(std::move(d));
}

void Analysis::missed_value(int32_t object_id, int64_t offset, const WaitNote& wait, const Mod& mod) {
  const WaitRecord& w = waits_[static_cast<size_t>(wait.record)];
  const Object& o = object(object_id);
  const std::string key = "X-48" + (w.site ? w.site->span.text() : std::string());
  if (!reported_.insert(key).second) return;
  const ActorInfo& i = metas_[w.meta].info;
  Diagnostic d;
  d.cls = ErrorClass::kProtocolError;
  d.id = "X-48";
  d.title = "Eq wait may miss its value";
  Entry waiter;
  waiter.meta = w.meta;
  Entry raiser;
  raiser.meta = mod.meta;
  std::string change =
      " moves the cell from " + std::to_string(mod.before) + " to " + std::to_string(mod.after);
  if (mod.before != wait.expected) {
    change = mod.kind == Mod::Kind::kAdd ? " adds " + std::to_string(mod.value) + " to the cell"
                                         : " sets the cell to " + std::to_string(mod.value);
  }
  d.message = "the wait for " + sink_.cell_text(object_id, offset) + " == " + std::to_string(wait.expected) +
              " of " + who(waiter) + " may miss the value: " + who(raiser) + change +
              (mod.site ? " at " + mod.site->span.file_line() : std::string()) +
              ", and nothing orders that after the wait";
  const Cell& c = *o.cells.find(offset);
  std::string history = "history of the cell: " + std::to_string(c.initial);
  uint32_t skip = c.mods.size > 8 ? c.mods.size - 8 : 0;
  for (const Mod& m : o.cells.mods.range(c.mods)) {
    if (skip > 0) {
      --skip;
      continue;
    }
    history += ", rank " + std::to_string(metas_[m.meta].info.rank) + " -> " + std::to_string(m.after);
  }
  d.notes.push_back({history, {}});
  d.hint = "use Ge";
  if (w.site) d.span = w.site->span;
  d.rank = i.rank;
  d.core = i.core;
  d.task = i.task;
  d.kernel = i.kernel ? i.kernel->name : std::string();
  d.block = i.block;
  d.lane = i.lane;
  tell(std::move(d));
}

}  // namespace pypto::check
