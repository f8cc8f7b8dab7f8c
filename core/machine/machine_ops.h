// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/machine/actor.h"
#include "core/vm/exec.h"

/// Operations that need the machine: signals, remote memory, channels, barriers, identity.
namespace pypto::machine {

/// Dispatches on the operation. Throws Failure for faults.
vm::ExecStatus run_machine_op(Actor& actor, vm::OpCall& call);

// signals.cpp
vm::ExecStatus op_notify(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_wait(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_defer_wait(Actor& actor, vm::OpCall& call);

// collectives.cpp
vm::ExecStatus op_comm_mark(Actor& actor, vm::OpCall& call);

// remote.cpp
vm::ExecStatus op_remote_load(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_remote_store(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_put(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_get(Actor& actor, vm::OpCall& call);

// channels.cpp
vm::ExecStatus op_initialize_pipe(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_buffer(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_push(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_pop(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_free(Actor& actor, vm::OpCall& call);

// barriers.cpp
vm::ExecStatus op_syncall(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_sync_set(Actor& actor, vm::OpCall& call);
vm::ExecStatus op_sync_wait(Actor& actor, vm::OpCall& call);

/// The window an operand belongs to, its domain, and this actor's place in it. Throws for plain tensors.
struct WindowPlace {
  int window = -1;
  const Domain* domain = nullptr;
  int me = -1;  ///< domain rank
};
WindowPlace window_place(const Actor& actor, const vm::View& v);
/// Checks a peer (03 X-20) and returns it.
int checked_peer(const Actor& actor, const WindowPlace& place, int64_t peer, const std::string& window_name);
/// The same view of another rank's slice.
vm::View at_peer(const Actor& actor, const WindowPlace& place, const vm::View& v, int peer);
/// The part of `v` at `offsets` with `extents` (equal rank). Throws X-54 when it leaves the view.
vm::View region_of(const vm::View& v, std::span<const int64_t> offsets, std::span<const int64_t> extents,
                   const char* operation, const std::string& name);
/// Byte address of one INT32 cell relative to its slice (03 O-20, X-54, X-55).
int64_t cell_offset(const vm::View& signal, std::span<const int64_t> offsets, const char* operation,
                    const std::string& name);
std::string index_text(std::span<const int64_t> index);

}  // namespace pypto::machine
