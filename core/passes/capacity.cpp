// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/passes/passes.h"
#include "core/passes/storage_plan.h"
#include "core/passes/tile_bytes.h"
#include "core/passes/tile_lifetimes.h"

namespace pypto::passes {
namespace {

using ir::Function;
using ir::MemorySpace;

constexpr MemorySpace kSpaces[] = {MemorySpace::kVec,  MemorySpace::kMat,  MemorySpace::kLeft,      MemorySpace::kRight,
                                   MemorySpace::kAcc,  MemorySpace::kBias, MemorySpace::kLeftScale, MemorySpace::kRightScale};

/// Places the tiles of one memory; `pieces`: chains that can be cut count with their smallest piece.
MemoryUse plan(const Function& f, const KernelStorage& storage, MemorySpace space, ir::Arch arch, bool pieces) {
  MemoryUse use;
  use.kernel = f.name;
  use.space = space;
  use.limit = space_limit(space, arch);
  std::vector<BufferSpan> buffers;
  std::vector<const TileStorage*> tiles;
  for (const auto& t : storage.tiles) {
    if (t.space != space) continue;
    BufferSpan b;
    b.bytes = pieces && t.tileable ? t.piece_bytes : t.bytes;
    b.from = t.from;
    b.to = t.to;
    buffers.push_back(b);
    tiles.push_back(&t);
  }
  const auto reserved = storage.reserved.find(space);
  const int64_t base = reserved == storage.reserved.end() ? 0 : reserved->second;
  use.used = place_buffers(buffers, base, space_alignment(space), use.limit);
  for (size_t i = 0; i < buffers.size(); ++i) {
    use.tiles.push_back({tiles[i]->name, buffers[i].offset, buffers[i].bytes, buffers[i].from, buffers[i].to, tiles[i]->span});
  }
  return use;
}

[[noreturn]] void refuse(const Function& f, const MemoryUse& use, const KernelStorage& storage) {
  Diagnostic d;
  d.cls = ErrorClass::kValueError;
  d.kernel = f.name;
  d.span = f.span;
  d.message = std::string(space_name(use.space)) + " buffer usage (" + std::to_string(use.used) +
              " bytes) exceeds platform limit (" + std::to_string(use.limit) + " bytes) in kernel '" + f.name + "'";
  if (f.span.known()) d.message += " (" + f.span.file_line() + ")";
  std::vector<const TileStorage*> largest;
  for (const auto& t : storage.tiles) {
    if (t.space == use.space) largest.push_back(&t);
  }
  std::stable_sort(largest.begin(), largest.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  if (largest.size() > 5) largest.resize(5);
  std::string list;
  for (const auto* t : largest) {
    list += (list.empty() ? "" : ", ") + ("'" + t->name + "' " + ir::shape_text(t->type->shape) + " " +
                                          std::string(dtype_text(t->type->dtype)) + " (" + std::to_string(t->bytes) + " bytes");
    list += t->span.known() ? ", line " + std::to_string(t->span.line) + ")" : ")";
    if (t->span.known()) d.notes.push_back({"tile '" + t->name + "' of " + std::to_string(t->bytes) + " bytes is made here", t->span});
  }
  if (!list.empty()) d.message += ". Largest tiles: " + list;
  d.hint = "use smaller tiles, or load and store in pieces inside a loop";
  const auto reserved = storage.reserved.find(use.space);
  if (reserved != storage.reserved.end() && reserved->second > 0) {
    d.message += ". The first " + std::to_string(reserved->second) +
                 " bytes of that space are reserved by system.reserve_buffer for the cross-core pipe ring; lower the number of slots "
                 "with pl.cross_core_slot(slot_num=N)";
    d.hint = "transfer smaller tiles between the cube and the vector cores, or use fewer slots: pl.cross_core_slot(slot_num=N)";
  }
  throw Failure(std::move(d));
}

}  // namespace

std::vector<MemoryUse> check_capacity(ir::Module& module, const PassOptions&) {
  std::vector<MemoryUse> report;
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || !f->is_kernel() || !f->external_source.empty()) continue;
    const KernelStorage shared = tile_lifetimes(*f, module.arch, true);
    const KernelStorage plain = tile_lifetimes(*f, module.arch, false);
    for (const MemorySpace space : kSpaces) {
      MemoryUse use = plan(*f, shared, space, module.arch, false);
      const KernelStorage* storage = &shared;
      if (use.used > use.limit) {
        MemoryUse other = plan(*f, plain, space, module.arch, false);
        if (other.used < use.used) {
          use = std::move(other);
          storage = &plain;
        }
      }
      if (use.used > use.limit) {
        // Chains of tensor-level operations are cut over rows or columns (01 L-147, exception 1).
        MemoryUse cut = plan(*f, *storage, space, module.arch, true);
        if (cut.used > cut.limit) refuse(*f, use, *storage);
        use = std::move(cut);
      }
      if (use.used > 0) report.push_back(std::move(use));
    }
  }
  return report;
}

}  // namespace pypto::passes
