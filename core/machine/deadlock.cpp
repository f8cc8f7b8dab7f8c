// SPDX-License-Identifier: Apache-2.0
// Quiescence: nothing can run, nothing is in flight, and something is left (03 M-31, X-46).
#include <algorithm>
#include <cstring>

#include "core/machine/simulation.h"

namespace pypto::machine {
namespace {

std::string cell_text(const std::vector<int64_t>& cell) {
  std::string s = "[";
  for (size_t i = 0; i < cell.size(); ++i) s += (i ? ", " : "") + std::to_string(cell[i]);
  return s + "]";
}

}  // namespace

void Simulation::add_waits(Diagnostic& d) {
  auto add = [&](Actor& a) {
    const check::ActorInfo info = a.info();
    DiagnosticWait w;
    w.rank = info.rank;
    w.core = info.core;
    w.kernel = info.kernel ? info.kernel->name : std::string();
    w.block = info.block;
    w.lane = info.lane;
    w.span = a.span();
    if (a.wait.kind == WaitState::Kind::kSignal) {
      const ObjectRecord& object = objects[static_cast<size_t>(a.wait.buffer->object)];
      w.object = object.name;
      w.cell = a.wait.cell;
      int32_t seen = 0;
      std::memcpy(&seen, a.wait.buffer->data + a.wait.offset, sizeof(seen));
      w.seen = seen;
      w.needed = a.wait.expected;
      w.comparison = a.wait.cmp == ir::WaitCmp::kGe ? ">=" : "==";
    } else {
      w.object = a.wait.detail;
    }
    d.waits.push_back(std::move(w));
  };
  for (const auto& step : steps) {
    if (!step->dispatch) continue;
    std::vector<Actor*> all;
    if (step->dispatch->orch) all.push_back(step->dispatch->orch.get());
    std::vector<const Task*> tasks;
    for (const auto& [handle, task] : step->dispatch->tasks) tasks.push_back(task.get());
    std::sort(tasks.begin(), tasks.end(), [](const Task* a, const Task* b) { return a->number < b->number; });
    for (const Task* task : tasks) {
      for (const auto& block : task->running) all.push_back(block->root.get());
    }
    for (size_t i = 0; i < all.size(); ++i) {
      for (const auto& kid : all[i]->kids) all.push_back(kid.get());
    }
    for (Actor* a : all) {
      if (a->state == Actor::State::kBlocked && a->wait.kind != WaitState::Kind::kChildren) add(*a);
    }
  }
}

void Simulation::deadlock() {
  Diagnostic d;
  d.cls = ErrorClass::kDeadlockError;
  d.id = "X-46";
  d.title = "deadlock";
  add_waits(d);
  d.message =
      "deadlock: nothing can run any more and " + std::to_string(d.waits.size()) + " wait(s) are pending";
  for (const DiagnosticWait& w : d.waits) {
    std::string line = rank_text(w.rank) + ", " + (w.kernel.empty() ? "" : "kernel '" + w.kernel + "'");
    if (w.block >= 0) line += ", block " + std::to_string(w.block) + ", " + w.core;
    line += " at " + w.span.file_line() + ": ";
    if (!w.comparison.empty()) {
      line += "waits for " + w.object + cell_text(w.cell) + " " + w.comparison + " " +
              std::to_string(w.needed) + ", which is " + std::to_string(w.seen);
    } else {
      line += w.object;
    }
    d.message += "\n  " + line;
    d.notes.push_back({line, w.span});
  }
  if (!d.waits.empty()) {
    d.span = d.waits.front().span;
    d.rank = d.waits.front().rank;
    d.kernel = d.waits.front().kernel;
  }
  throw Failure(std::move(d));
}

}  // namespace pypto::machine
