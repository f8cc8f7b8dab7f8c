// SPDX-License-Identifier: Apache-2.0
#include "core/check/checker.h"

namespace pypto::check {

namespace {

class NullChecker final : public Checker {
 public:
  ActorId start(const ActorInfo&, std::span<const Clock>) override { return kNoActor; }
  int64_t identity(ActorId) override { return -1; }
  Clock release(ActorId) override { return nullptr; }
  void acquire(ActorId, const Clock&) override {}
  Clock end(ActorId) override { return nullptr; }
  Clock join(std::span<const Clock>) override { return nullptr; }
  void add_object(int32_t, const ObjectInfo&) override {}
  void drop_object(int32_t) override {}
  void reset_object(int32_t) override {}
  void drop_part(int64_t) override {}
  void access(const Access&) override {}
  void notify(Notify&&) override {}
  Clock observe(const Observe&) override { return nullptr; }
  void enter_collective(const Entered&) override {}
  void settle() override {}
  void end_round() override {}
  void decide() override {}
  void finish(bool) override {}
};

}  // namespace

std::unique_ptr<Checker> make_null_checker() { return std::make_unique<NullChecker>(); }

}  // namespace pypto::check
