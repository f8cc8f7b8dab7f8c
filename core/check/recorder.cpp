// SPDX-License-Identifier: Apache-2.0
#include "core/check/recorder.h"

namespace pypto::check {
namespace {

constexpr size_t kMaxEvents = 200000;
constexpr int kMaxPasses = 8;

/// Keeps what an analysis of the log finds.
class Collector final : public Sink {
 public:
  explicit Collector(const Sink& names) : names_(names) {}
  void report(Diagnostic d) override { found.push_back(std::move(d)); }
  int64_t round() const override { return now; }
  std::string cell_text(int32_t object, int64_t offset) const override {
    return names_.cell_text(object, offset);
  }
  std::string dispatch_text(int dispatch) const override { return names_.dispatch_text(dispatch); }
  std::string parameter_of(const vm::FunctionCode* kernel, int window) const override {
    return names_.parameter_of(kernel, window);
  }
  std::vector<Diagnostic> found;
  int64_t now = 0;

 private:
  const Sink& names_;
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

// ------------------------------------------------------------------ recording

void Recorder::log(Event e) {
  if (!logging_) return;
  if (log_.size() >= kMaxEvents) {
    logging_ = false;
    log_ = Chunks<Event>();
    return;
  }
  log_.push_back(std::move(e));
}

int64_t Recorder::id_of(const Clock& clock) {
  if (!clock) return -1;
  if (clock->id < 0) clock->id = clocks_++;
  return clock->id;
}

ActorId Recorder::start(const ActorInfo& info, std::span<const Clock> after) {
  if (logging_) {
    auto e = std::make_unique<Start>(Start{info, {}});
    for (const Clock& c : after) e->after.push_back(id_of(c));
    log(std::move(e));
  }
  return live_.start(info, after);
}

Clock Recorder::release(ActorId actor) {
  Clock c = live_.release(actor);
  if (logging_) log(Release{actor, id_of(c)});
  return c;
}

void Recorder::acquire(ActorId actor, const Clock& clock) {
  log(Acquire{actor, id_of(clock)});
  live_.acquire(actor, clock);
}

Clock Recorder::end(ActorId actor) {
  Clock c = live_.end(actor);
  log(End{actor, id_of(c)});
  return c;
}

Clock Recorder::join(std::span<const Clock> clocks) {
  Clock c = live_.join(clocks);
  if (logging_) {
    Join e{{}, id_of(c)};
    for (const Clock& x : clocks) e.clocks.push_back(id_of(x));
    log(std::move(e));
  }
  return c;
}

void Recorder::add_object(int32_t object, const ObjectInfo& info) {
  if (logging_) log(std::make_unique<AddObject>(AddObject{object, info}));
  live_.add_object(object, info);
}

void Recorder::drop_object(int32_t object) {
  log(Forget{Forget::What::kDrop, object});
  live_.drop_object(object);
}

void Recorder::reset_object(int32_t object) {
  log(Forget{Forget::What::kReset, object});
  live_.reset_object(object);
}

void Recorder::drop_part(int64_t part) {
  log(Forget{Forget::What::kPart, part});
  live_.drop_part(part);
}

void Recorder::access(const Access& access) {
  if (logging_) {
    auto e = std::make_unique<Touch>();
    e->access = access;
    e->access.view = nullptr;
    e->access.name = {};
    if (access.view) {
      e->rank = access.view->rank;
      std::copy(access.view->stride, access.view->stride + e->rank, e->stride);
    }
    log(std::move(e));
  }
  live_.access(access);
}

void Recorder::notify(Notify&& notify) {
  if (logging_) {
    Signal e{notify, id_of(notify.release)};
    e.notify.release = nullptr;
    log(std::move(e));
  }
  live_.notify(std::move(notify));
}

Clock Recorder::observe(const Observe& observe) {
  Clock c = live_.observe(observe);
  if (logging_) {
    if (observe.actor >= 0) {
      log(Saw{observe.actor, observe.object, observe.offset, observe.cmp, observe.expected, observe.seen,
              observe.site, id_of(c), observe.sole});
    } else {
      auto e = std::make_unique<Deferred>(Deferred{observe, id_of(observe.at), id_of(c)});
      e->observe.at = nullptr;
      log(std::move(e));
    }
  }
  return c;
}

void Recorder::enter_collective(const Entered& entered) {
  if (logging_) log(std::make_unique<Entered>(entered));
  live_.enter_collective(entered);
}

void Recorder::end_round() {
  log(Round{sink_.round()});
  live_.end_round();
}

void Recorder::finish(bool complete) {
  // What the log tells when it is read again includes what is only told at the end.
  const bool again = logging_ && !replayed_ && !live_.newly_withdrawn().empty();
  live_.finish(complete && !again);
  if (again) replay(complete);
}

// ------------------------------------------------------------------ analysing again

std::string Recorder::key_of(const Diagnostic& d) {
  std::string key = d.span.text();
  for (const auto& a : d.accesses) key += "|" + a.span.text() + a.kind;
  if (d.accesses.empty()) key += d.id;
  return key;
}

void Recorder::Tap::report(Diagnostic d) {
  owner_.told_.insert(key_of(d));
  owner_.sink_.report(std::move(d));
}

void Recorder::replay(bool complete) {
  replayed_ = true;
  Withdrawn withdrawn = live_.newly_withdrawn();
  std::vector<Diagnostic> found;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    Collector collector(sink_);
    Seen seen = seen_;
    seen.replay = true;
    Analysis analysis(options_, collector, &seen, &withdrawn);
    std::vector<Clock> clocks(static_cast<size_t>(clocks_));
    auto clock = [&](int64_t id) { return id < 0 ? Clock() : clocks[static_cast<size_t>(id)]; };
    auto keep = [&](int64_t id, Clock c) {
      if (id >= 0) clocks[static_cast<size_t>(id)] = std::move(c);
    };
    auto all = [&](const std::vector<int64_t>& ids) {
      std::vector<Clock> out;
      for (const int64_t id : ids) out.push_back(clock(id));
      return out;
    };
    for (const Event& event : log_) {
      std::visit(Overloaded{[&](const Rare<Start>& e) { analysis.start(e->info, all(e->after)); },
                            [&](const Release& e) { keep(e.clock, analysis.release(e.actor)); },
                            [&](const Acquire& e) { analysis.acquire(e.actor, clock(e.clock)); },
                            [&](const End& e) { keep(e.clock, analysis.end(e.actor)); },
                            [&](const Join& e) { keep(e.clock, analysis.join(all(e.clocks))); },
                            [&](const Rare<AddObject>& e) { analysis.add_object(e->object, e->info); },
                            [&](const Forget& e) {
                              switch (e.what) {
                                case Forget::What::kDrop:
                                  analysis.drop_object(static_cast<int32_t>(e.id));
                                  break;
                                case Forget::What::kReset:
                                  analysis.reset_object(static_cast<int32_t>(e.id));
                                  break;
                                case Forget::What::kPart:
                                  analysis.drop_part(e.id);
                                  break;
                              }
                            },
                            [&](const Rare<Touch>& e) {
                              vm::View view;
                              view.rank = static_cast<int8_t>(e->rank);
                              std::copy(e->stride, e->stride + e->rank, view.stride);
                              Access a = e->access;
                              a.view = &view;
                              analysis.access(a);
                            },
                            [&](const Signal& e) {
                              Notify n = e.notify;
                              n.release = clock(e.release);
                              analysis.notify(std::move(n));
                            },
                            [&](const Saw& e) {
                              Observe o;
                              o.actor = e.actor;
                              o.object = e.object;
                              o.offset = e.offset;
                              o.cmp = e.cmp;
                              o.expected = e.expected;
                              o.seen = e.seen;
                              o.site = e.site;
                              o.sole = e.sole;
                              keep(e.clock, analysis.observe(o));
                            },
                            [&](const Rare<Deferred>& e) {
                              Observe o = e->observe;
                              o.at = clock(e->at);
                              keep(e->clock, analysis.observe(o));
                            },
                            [&](const Rare<Entered>& e) { analysis.enter_collective(*e); },
                            [&](const Round& e) {
                              analysis.end_round();
                              collector.now = e.round + 1;
                            }},
                 event);
    }
    analysis.finish(complete);
    found = std::move(collector.found);
    const size_t before = withdrawn.size();
    withdrawn.insert(analysis.newly_withdrawn().begin(), analysis.newly_withdrawn().end());
    if (withdrawn.size() == before) break;
  }
  for (Diagnostic& d : found) {
    if (told_.insert(key_of(d)).second) sink_.report(std::move(d));
  }
}

std::unique_ptr<Checker> make_checker(const CheckOptions& options, Sink& sink) {
  if (options.ranks > 1 || options.signals) return std::make_unique<Recorder>(options, sink);
  return std::make_unique<Analysis>(options, sink);
}

}  // namespace pypto::check
