// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/check/analysis.h"

namespace pypto::check {

/// An analysis with a log of what it was told. Whether a wait surely observes a notify may depend on notifies
/// that arrive later (03 M-30): then the log is analysed again without the edges that were not sure, and what
/// that finds is reported as well.
class Recorder final : public Checker {
 public:
  Recorder(const CheckOptions& options, Sink& sink)
      : options_(options), sink_(sink), live_(options, *this_sink(), &seen_) {}

  ActorId start(const ActorInfo& info, std::span<const Clock> after) override;
  int64_t identity(ActorId actor) override { return live_.identity(actor); }
  Clock release(ActorId actor) override;
  void acquire(ActorId actor, const Clock& clock) override;
  Clock end(ActorId actor) override;
  Clock join(std::span<const Clock> clocks) override;
  void add_object(int32_t object, const ObjectInfo& info) override;
  void drop_object(int32_t object) override;
  void reset_object(int32_t object) override;
  void drop_part(int64_t part) override;
  void access(const Access& access) override;
  void notify(Notify&& notify) override;
  Clock observe(const Observe& observe) override;
  void enter_collective(const Entered& entered) override;
  void settle() override { live_.settle(); }
  void end_round() override;
  void decide() override { live_.decide(); }
  void finish(bool complete) override;

 private:
  /// Passes reports on and remembers them.
  class Tap final : public Sink {
   public:
    explicit Tap(Recorder& owner) : owner_(owner) {}
    void report(Diagnostic d) override;
    int64_t round() const override { return owner_.sink_.round(); }
    std::string cell_text(int32_t object, int64_t offset) const override {
      return owner_.sink_.cell_text(object, offset);
    }
    std::string dispatch_text(int dispatch) const override { return owner_.sink_.dispatch_text(dispatch); }
    std::string parameter_of(const vm::FunctionCode* kernel, int window) const override {
      return owner_.sink_.parameter_of(kernel, window);
    }

   private:
    Recorder& owner_;
  };
  struct Start {
    ActorInfo info;
    std::vector<int64_t> after;
  };
  struct Release {
    ActorId actor;
    int64_t clock;
  };
  struct Acquire {
    ActorId actor;
    int64_t clock;
  };
  struct End {
    ActorId actor;
    int64_t clock;
  };
  struct Join {
    std::vector<int64_t> clocks;
    int64_t clock;
  };
  struct AddObject {
    int32_t object;
    ObjectInfo info;
  };
  struct Forget {
    enum class What : uint8_t { kDrop, kReset, kPart } what;
    int64_t id;
  };
  struct Touch {
    Access access;  ///< without pointers to the view
    int rank = 0;
    int64_t stride[vm::kMaxRank] = {};
  };
  struct Signal {
    Notify notify;
    int64_t release;
  };
  struct Saw {  ///< by an actor
    ActorId actor;
    int32_t object;
    int64_t offset;
    ir::WaitCmp cmp;
    int32_t expected;
    int32_t seen;
    const vm::Site* site;
    int64_t clock;
    bool sole;
  };
  struct Deferred {
    Observe observe;
    int64_t at;
    int64_t clock;
  };
  struct Round {
    int64_t round;
  };
  template <class E>
  using Rare = std::unique_ptr<E>;  ///< large ones: most events are signals
  using Event = std::variant<Rare<Start>, Release, Acquire, End, Join, Rare<AddObject>, Forget, Rare<Touch>,
                             Signal, Saw, Rare<Deferred>, Rare<Entered>, Round>;

  Sink* this_sink() { return &tap_; }
  bool logging() const { return logging_; }
  void log(Event e);
  int64_t id_of(const Clock& clock);
  void replay(bool complete);
  static std::string key_of(const Diagnostic& d);

  CheckOptions options_;
  Sink& sink_;
  Tap tap_{*this};
  Seen seen_;
  Analysis live_;
  bool logging_ = true;
  bool replayed_ = false;
  Chunks<Event> log_;
  int64_t clocks_ = 0;
  std::set<std::string> told_;
};

}  // namespace pypto::check
