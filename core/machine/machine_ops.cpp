// SPDX-License-Identifier: Apache-2.0
#include "core/machine/machine_ops.h"

#include "core/machine/simulation.h"
#include "core/vm/ops/lanes.h"

namespace pypto::machine {
namespace {

using ir::AttrKey;
using ir::OpId;
using vm::ExecStatus;
using vm::scalar_of;

ExecStatus task_dummy(Actor& actor, vm::OpCall& call) {
  Simulation::Submission s;
  s.site = actor.site();
  const auto deps = call.list(0);
  s.deps.assign(deps.begin(), deps.end());
  int64_t handle = 0;
  if (!actor.sim().submit(actor.dispatch, &actor, std::move(s), &handle)) return ExecStatus::kBlocked;
  call.set_result(scalar_of(handle));
  return ExecStatus::kDone;
}

ir::SplitMode split_of(const Actor& actor, const vm::OpCall& call) {
  if (call.has_attr(AttrKey::k_split)) {
    const int64_t code = call.attr_int(AttrKey::k_split);
    return code == 1 || code == 3   ? ir::SplitMode::kUpDown
           : code == 2 || code == 4 ? ir::SplitMode::kLeftRight
                                    : ir::SplitMode::kNone;
  }
  return actor.split;
}

int64_t block_index(const Actor& actor) { return actor.block ? actor.block->index : 0; }

}  // namespace

ExecStatus run_machine_op(Actor& actor, vm::OpCall& call) {
  Simulation& sim = actor.sim();
  if (!actor.travelling.empty()) {
    // Outgoing edges complete what is travelling; so do other transfers, which do not travel.
    switch (call.op) {
      case OpId::k_notify:
      case OpId::k_put:
      case OpId::k_tile_put:
      case OpId::k_tpush_to_aiv:
      case OpId::k_tpush_to_aic:
      case OpId::k_syncall:
      case OpId::k_sync_set:
      case OpId::k_fence:
        actor.deliver();
        break;
      default:
        break;
    }
  }
  switch (call.op) {
    case OpId::k_notify:
      return op_notify(actor, call);
    case OpId::k_wait:
      return op_wait(actor, call);
    case OpId::k_defer_wait:
      return op_defer_wait(actor, call);
    case OpId::k_comm_mark:
      return op_comm_mark(actor, call);
    case OpId::k_remote_load:
      return op_remote_load(actor, call);
    case OpId::k_remote_store:
    case OpId::k_tensor_remote_store:
      return op_remote_store(actor, call);
    case OpId::k_put:
    case OpId::k_tile_put:
      return op_put(actor, call);
    case OpId::k_get:
    case OpId::k_tile_get:
      return op_get(actor, call);

    case OpId::k_get_comm_ctx:
      call.set_result(scalar_of(int64_t{window_place(actor, call.view(0)).window}));
      return ExecStatus::kDone;
    case OpId::k_rank:
    case OpId::k_nranks: {
      const Domain& domain = sim.domain_of_window(static_cast<int>(call.integer(0)));
      call.set_result(scalar_of(call.op == OpId::k_nranks
                                    ? static_cast<int64_t>(domain.members.size())
                                    : int64_t{domain.index_of[static_cast<size_t>(actor.dispatch.rank)]}));
      return ExecStatus::kDone;
    }
    case OpId::k_world_size:
      call.set_result(scalar_of(int64_t{sim.ranks}));
      return ExecStatus::kDone;

    case OpId::k_get_block_idx:
      call.set_result(scalar_of(block_index(actor)));
      return ExecStatus::kDone;
    case OpId::k_get_block_num:
      call.set_result(scalar_of(actor.task ? actor.task->blocks : int64_t{1}));
      return ExecStatus::kDone;
    case OpId::k_get_subblock_idx:
      call.set_result(scalar_of(int64_t{actor.lane > 0 ? actor.lane : 0}));
      return ExecStatus::kDone;
    case OpId::k_available_cluster_count:
      call.set_result(scalar_of(int64_t{cluster_count(sim.program.arch)}));
      return ExecStatus::kDone;
    case OpId::k_available_aiv_count:
      call.set_result(scalar_of(int64_t{2 * cluster_count(sim.program.arch)}));
      return ExecStatus::kDone;

    case OpId::k_task_dummy:
      return task_dummy(actor, call);
    case OpId::k_task_invalid:
      call.set_result(scalar_of(int64_t{0}));
      return ExecStatus::kDone;

    case OpId::k_aiv_shard:
      call.set_result(vm::shard_lane(call.view(0), split_of(actor, call), actor.lane > 0 ? 1 : 0,
                                     call.attr_int(AttrKey::k_lane_stride)));
      return ExecStatus::kDone;
    case OpId::k_aic_gather:
      // The lanes' values are joined where the region ends (vm::LanesInsn::joins).
      call.set_result(call.view(0));
      return ExecStatus::kDone;

    case OpId::k_aic_initialize_pipe:
    case OpId::k_aiv_initialize_pipe:
      return op_initialize_pipe(actor, call);
    case OpId::k_reserve_buffer:
    case OpId::k_import_peer_buffer:
      return op_buffer(actor, call);
    case OpId::k_tpush_to_aiv:
    case OpId::k_tpush_to_aic:
      return op_push(actor, call);
    case OpId::k_tpop_from_aic:
    case OpId::k_tpop_from_aiv:
      return op_pop(actor, call);
    case OpId::k_tfree_to_aic:
    case OpId::k_tfree_to_aiv:
      return op_free(actor, call);

    case OpId::k_syncall:
      return op_syncall(actor, call);
    case OpId::k_sync_set:
      return op_sync_set(actor, call);
    case OpId::k_sync_wait:
      return op_sync_wait(actor, call);
    // Order inside one core is program order; fences and invalidations have nothing to do here (O-2304,
    // O-2305).
    case OpId::k_set_ffts:
    case OpId::k_sync_src:
    case OpId::k_sync_dst:
    case OpId::k_bar_v:
    case OpId::k_bar_m:
    case OpId::k_bar_all:
    case OpId::k_fence:
    case OpId::k_cacheinvalid:
    case OpId::k_dump_tag:
      return ExecStatus::kDone;
    case OpId::k_no_dep:
      call.set_result(call.view(0));
      return ExecStatus::kDone;
    case OpId::k_alloc:  // space is reserved when the tiles that name it are placed
    case OpId::k_prefetch_make_context:
    case OpId::k_prefetch_async:
    case OpId::k_prefetch_session:
      call.set_result(scalar_of(int64_t{0}));
      return ExecStatus::kDone;
    case OpId::k_prefetch_wait:
      call.set_result(scalar_of(int64_t{1}));
      return ExecStatus::kDone;
    default:
      break;
  }
  PYPTO_CHECK(false, std::string("no executor for operation '") + ir::op_row(call.op).name + "'");
}

}  // namespace pypto::machine
