// SPDX-License-Identifier: Apache-2.0
#include "core/passes/launch_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/passes/definitions.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::AttrKey;
using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::FunctionType;
using ir::OpId;

[[noreturn]] void refuse(const std::string& what, const Span& at, const std::string& hint) {
  fail(ErrorClass::kValueError, what, at, hint);
}

// ---------------------------------------------------------------- hard barriers
struct HardBarrier {
  std::string core_type;
  Span span;
};

class Barriers {
 public:
  explicit Barriers(const ir::Module& module) : module_(module) {
    for (const auto& f : module.functions) {
      if (f->is_sub_worker) continue;
      walk_exprs(f->body, [&](const ExprPtr& e) {
        if (is_op(e, OpId::k_syncall) && e->attrs.get_string(AttrKey::k_mode) != "soft") {
          std::string type = e->attrs.get_string(AttrKey::k_core_type);
          found_[f.get()].push_back({type.empty() ? "mix" : type, e->span});
        }
      });
    }
    // A group has the barriers of its members.
    for (const auto& f : module.functions) {
      if (f->type != FunctionType::kGroup) continue;
      walk_exprs(f->body, [&](const ExprPtr& e) {
        if (e->kind != ExprKind::kCall) return;
        const auto it = found_.find(e->call->callee.get());
        if (it == found_.end()) return;
        auto& all = found_[f.get()];
        all.insert(all.end(), it->second.begin(), it->second.end());
      });
    }
    for (const auto& f : module.functions) {
      if (f->is_sub_worker || f->is_kernel() || f->type == FunctionType::kGroup) continue;
      launches(*f);
    }
  }

 private:
  void launches(const Function& f) {
    const Definitions only = definitions(f.body);
    walk_exprs(f.body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall) return;
      if (e->call->sync_start) fits(*e);
      const auto it = found_.find(e->call->callee.get());
      if (it == found_.end()) return;
      const ExprPtr width = resolved(e->call->core_num, only);
      for (const auto& b : it->second) judge(*e, width, b);
    });
  }

  int64_t cores(const Function& k) const {
    const int64_t clusters = module_.arch == ir::Arch::kA5 ? 36 : 24;
    return k.uses_cube ? clusters : 2 * clusters;
  }

  /// All blocks of a launch with sync_start run at once (01 L-117).
  void fits(const Expr& launch) const {
    const Function& k = *launch.call->callee;
    const auto count = launch.call->core_num ? ir::const_int(launch.call->core_num) : std::nullopt;
    if (!count || *count <= cores(k)) return;
    refuse("sync_start launch of '" + k.name + "' asks for " + std::to_string(*count) +
               " blocks, and the platform has " + std::to_string(cores(k)) +
               (k.uses_cube ? " clusters" : " vector cores"),
           launch.span, "use at most that many blocks, or drop sync_start");
  }

  void judge(const Expr& launch, const ExprPtr& width, const HardBarrier& b) const {
    const Function& k = *launch.call->callee;
    const bool cubes = k.uses_cube;
    const std::string call = "pl.system.syncall(core_type=\"" + b.core_type + "\", mode=\"hard\") at " +
                             b.span.file_line() + " in '" + k.name + "'";
    if ((!cubes && b.core_type != "aiv_only") || (cubes && !k.uses_vector && b.core_type == "aiv_only")) {
      refuse(call + " can never complete: the launch has no " + (cubes ? "vector" : "cube") + " cores",
             launch.span,
             std::string("use core_type=\"") + (cubes ? "aic_only" : "aiv_only") +
                 "\". Use mode=\"soft\" otherwise");
    }
    const int64_t all = cores(k);
    const char* query = cubes ? "available_cluster_count" : "available_aiv_count";
    const auto count = width ? ir::const_int(width) : std::optional<int64_t>(1);
    const bool asked =
        is_op(width, OpId::k_available_cluster_count) || is_op(width, OpId::k_available_aiv_count);
    const bool fits =
        asked ? is_op(width, cubes ? OpId::k_available_cluster_count : OpId::k_available_aiv_count)
              : count == all;
    if ((count || asked) && !fits) {
      refuse(call + " requires the SPMD launch to fill all " + std::to_string(all) +
                 (cubes ? " cube" : " vector") + " cores, and this one has " +
                 (asked ? std::string("the other kind's count") : std::to_string(*count) + " block(s)"),
             launch.span,
             std::string("launch pl.spmd(pl.system.") + query +
                 "(), sync_start=True). Use mode=\"soft\" at another width");
    }
    if ((count || asked) && !launch.call->sync_start) {
      refuse(call + " requires the SPMD launch to set sync_start=True", launch.span,
             "add sync_start=True to the launch. Use mode=\"soft\" otherwise");
    }
  }

  const ir::Module& module_;
  std::unordered_map<const Function*, std::vector<HardBarrier>> found_;
};

// ---------------------------------------------------------------- channels
enum Direction { kC2V, kV2C };

/// What one AIC or AIV function says of one pipe.
struct End {
  Span declared;  ///< unknown: no initialize_pipe call
  int64_t dir_mask = 0, slot_size = 0;
  std::array<std::vector<ExprPtr>, 2> pushes, pops, frees;  ///< by direction
};

struct Ends {
  std::map<int64_t, End> pipes;  ///< by id
  std::vector<ExprPtr> reserved, imported;
};

Ends ends_of(const Function& f) {
  Ends out;
  const auto end = [&](const ExprPtr& e) -> End& { return out.pipes[e->attrs.get_int(AttrKey::k_id)]; };
  walk_exprs(f.body, [&](const ExprPtr& e) {
    if (e->kind != ExprKind::kOp) return;
    switch (e->op) {
      case OpId::k_aic_initialize_pipe:
      case OpId::k_aiv_initialize_pipe:
        end(e).declared = e->span;
        end(e).dir_mask = e->attrs.get_int(AttrKey::k_dir_mask);
        end(e).slot_size = e->attrs.get_int(AttrKey::k_slot_size);
        break;
      case OpId::k_reserve_buffer:
        out.reserved.push_back(e);
        break;
      case OpId::k_import_peer_buffer:
        out.imported.push_back(e);
        break;
      case OpId::k_tpush_to_aiv:
        end(e).pushes[kC2V].push_back(e);
        break;
      case OpId::k_tpush_to_aic:
        end(e).pushes[kV2C].push_back(e);
        break;
      case OpId::k_tpop_from_aic:
        end(e).pops[kC2V].push_back(e);
        break;
      case OpId::k_tpop_from_aiv:
        end(e).pops[kV2C].push_back(e);
        break;
      case OpId::k_tfree_to_aic:
        end(e).frees[kC2V].push_back(e);
        break;
      case OpId::k_tfree_to_aiv:
        end(e).frees[kV2C].push_back(e);
        break;
      default:
        break;
    }
  });
  return out;
}

/// A slot holds the tile as it is stored, rows padded (01 L-146).
void check_slot(const Expr& push, int64_t slot) {
  const ir::Type& t = *push.args[0]->type;
  const int64_t bits = dtype_bits(t.dtype) == 1 ? 8 : dtype_bits(t.dtype);
  if (!t.static_shape() || t.rank() == 0 || slot <= 0) return;
  const int64_t plain = (t.static_elements() * bits + 7) / 8;
  const int64_t row = (t.shape.back().value * bits + 7) / 8;
  if (row % 32 == 0 || plain > slot) return;
  const int64_t stored = plain / row * ((row + 31) / 32 * 32);
  if (stored <= slot) return;
  refuse("X-26: the tile " + ir::shape_text(t.shape) + " " + std::string(dtype_text(t.dtype)) +
             " does not fit a slot of " + std::to_string(slot) + " bytes: its rows have " +
             std::to_string(row) +
             " bytes and must be 32-byte aligned (a multiple of 32 bytes), so that it takes " +
             std::to_string(stored),
         push.span,
         "give slot_size at least " + std::to_string(stored) + " bytes, or rows of a multiple of 32 bytes");
}

void check_function(const Function& f, const Ends& ends) {
  const bool cube = f.type == FunctionType::kAIC;
  const std::string side = cube ? "aic" : "aiv";
  int reserve = 0, import = 0;
  for (const auto& [id, end] : ends.pipes) {
    for (const auto* all : {&end.pushes, &end.pops, &end.frees}) {
      for (const auto& calls : *all) {
        if (calls.empty() || end.declared.known()) continue;
        refuse("'" + f.name + "' uses pipe " + std::to_string(id) + " but has no 'system." + side +
                   "_initialize_pipe' call",
               calls.front()->span, "initialise the pipe on both sides before its first use");
      }
    }
    const Direction in = cube ? kV2C : kC2V;
    for (const auto& push : end.pushes[kV2C]) check_slot(*push, end.slot_size);
    if (!end.pops[in].empty() && end.frees[in].empty()) {
      refuse(std::string(cube ? "AIC" : "AIV") + " function '" + f.name + "' pops from pipe " +
                 std::to_string(id) + " and never frees a slot",
             end.pops[in].front()->span,
             std::string("call pl.tfree_to_") + (cube ? "aiv" : "aic") + "(tile) once for every popped tile");
    }
    reserve += end.dir_mask & (cube ? 2 : 1) ? 1 : 0;
    import += end.dir_mask & (cube ? 1 : 2) ? 1 : 0;
  }
  if (ends.pipes.empty()) return;
  const auto count = [&](int got, int want, const char* name, const char* whose) {
    if (got == want) return;
    refuse("'" + f.name + "' has " + std::to_string(got) + " " + name + " call(s) for " +
               std::to_string(want) + " pipe" + (want == 1 ? "" : "s") + " in the direction that it " + whose,
           ends.pipes.begin()->second.declared.known() ? ends.pipes.begin()->second.declared : f.span,
           "the consumer of each direction reserves its buffer with pl.reserve_buffer, the producer imports "
           "it with "
           "pl.import_peer_buffer");
  };
  count(static_cast<int>(ends.reserved.size()), reserve, "reserve_buffer", "consumes");
  count(static_cast<int>(ends.imported.size()), import, "import_peer_buffer", "feeds");
  // A buffer holds at least one slot of a pipe that it may belong to (02 O-2102).
  int64_t slot = 0;
  for (const auto& [id, end] : ends.pipes) {
    if (end.dir_mask & (cube ? 2 : 1)) slot = slot == 0 ? end.slot_size : std::min(slot, end.slot_size);
  }
  for (const auto& buffer : ends.reserved) {
    const int64_t size = buffer->attrs.get_int(AttrKey::k_size);
    if (size >= slot) continue;
    refuse("'" + f.name + "' reserves " + std::to_string(size) + " bytes for buffer '" +
               buffer->attrs.get_string(AttrKey::k_name) + "', less than one slot of " +
               std::to_string(slot) + " bytes",
           buffer->span, "give size= at least slot_size, usually slot_num times as much");
  }
}

/// Static shape and element type of a transferred tile; empty where they are not known.
std::string tile_text(const ir::Type& t) {
  if (t.static_elements() < 0) return "";
  return ir::shape_text(t.shape) + " " + std::string(dtype_text(t.dtype));
}

void check_pair(const Function& producer, const Ends& from, const Function& consumer, const Ends& to,
                Direction d) {
  for (const auto& [id, end] : to.pipes) {
    if (end.pops[d].empty()) continue;
    const auto it = from.pipes.find(id);
    const bool pushed = it != from.pipes.end() && !it->second.pushes[d].empty();
    const ExprPtr& pop = end.pops[d].front();
    if (!pushed) {
      refuse(std::string(d == kC2V ? "AIV" : "AIC") + " function '" + consumer.name + "' pops from pipe " +
                 std::to_string(id) + ", and '" + producer.name + "' pushes nothing to it",
             pop->span,
             std::string("push with pl.tpush_to_") + (d == kC2V ? "aiv" : "aic") + "(tile, split=...)");
    }
    // Undivided transfers hand over the tile as it is.
    for (const auto& push : it->second.pushes[d]) {
      if (push->attrs.get_int(AttrKey::k_split) != 0 || pop->attrs.get_int(AttrKey::k_split) != 0) continue;
      const std::string given = tile_text(*push->args[0]->type), taken = tile_text(*pop->type);
      const bool alone = it->second.pushes[d].size() == 1 && end.pops[d].size() == 1;
      const bool same_size = push->args[0]->type->static_elements() == pop->type->static_elements() &&
                             push->args[0]->type->dtype == pop->type->dtype;
      if (alone && !given.empty() && !taken.empty() && !same_size) {
        refuse("pipe " + std::to_string(id) + ": '" + producer.name + "' pushes " + given + " (" +
                   push->span.file_line() + ") and '" + consumer.name + "' pops " + taken,
               pop->span, "give both ends one shape and element type");
      }
    }
  }
}

/// Peer and name of each imported buffer exist in the group (02 O-2102).
void check_imports(const std::vector<const Function*>& members,
                   const std::unordered_map<const Function*, Ends>& all) {
  for (const Function* f : members) {
    for (const auto& import : all.at(f).imported) {
      const std::string peer = import->attrs.get_string(AttrKey::k_peer_func);
      const std::string name = import->attrs.get_string(AttrKey::k_name);
      std::string functions, buffers;
      const Function* found = nullptr;
      for (const Function* other : members) {
        functions += (functions.empty() ? "'" : ", '") + other->name + "'";
        if (other->name == peer) found = other;
      }
      const std::string where = "'" + f->name + "' imports buffer '" + name + "' of '" + peer + "'";
      if (!found) {
        refuse(where + ", which is no function of this group", import->span,
               "the functions of the group are " + functions);
      }
      bool reserved = false;
      for (const auto& buffer : all.at(found).reserved) {
        const std::string own = buffer->attrs.get_string(AttrKey::k_name);
        buffers += (buffers.empty() ? "'" : ", '") + own + "'";
        reserved |= own == name;
      }
      if (reserved) continue;
      refuse(
          where + ", which reserves no such buffer", import->span,
          buffers.empty() ? "reserve it there with pl.reserve_buffer(name=...)" : "it reserves " + buffers);
    }
  }
}

void check_group(const Function& group, const std::unordered_map<const Function*, Ends>& all) {
  std::vector<const Function*> cubes, vectors;
  bool external = false;
  walk_exprs(group.body, [&](const ExprPtr& e) {
    if (e->kind != ExprKind::kCall) return;
    external |= !e->call->callee->external_source.empty();
    if (!e->call->callee->external_source.empty()) return;
    if (e->call->callee->type == FunctionType::kAIC) cubes.push_back(e->call->callee.get());
    if (e->call->callee->type == FunctionType::kAIV) vectors.push_back(e->call->callee.get());
  });
  if (!external) {
    std::vector<const Function*> members = cubes;
    members.insert(members.end(), vectors.begin(), vectors.end());
    check_imports(members, all);
  }
  if (cubes.size() != 1 || vectors.size() != 1) return;
  check_pair(*cubes[0], all.at(cubes[0]), *vectors[0], all.at(vectors[0]), kC2V);
  check_pair(*vectors[0], all.at(vectors[0]), *cubes[0], all.at(cubes[0]), kV2C);
}

}  // namespace

void check_launch_rules(const ir::Module& module) {
  Barriers barriers(module);
  std::unordered_map<const Function*, Ends> ends;
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || !f->external_source.empty()) continue;
    if (f->type != FunctionType::kAIC && f->type != FunctionType::kAIV) continue;
    const Ends& own = ends[f.get()] = ends_of(*f);
    check_function(*f, own);
  }
  for (const auto& f : module.functions) {
    if (f->type == FunctionType::kGroup) check_group(*f, ends);
  }
}

}  // namespace pypto::passes
