// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "core/passes/passes.h"
#include "core/passes/storage_plan.h"
#include "core/passes/tile_bytes.h"
#include "core/passes/tile_lifetimes.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Function;
using ir::MemorySpace;

constexpr MemorySpace kSpaces[] = {MemorySpace::kVec,       MemorySpace::kMat,       MemorySpace::kLeft,
                                   MemorySpace::kRight,     MemorySpace::kAcc,       MemorySpace::kBias,
                                   MemorySpace::kLeftScale, MemorySpace::kRightScale};

/// Places the tiles of one memory; `pieces`: chains that can be cut count with their smallest piece.
MemoryUse plan(const Function& f, const KernelStorage& storage, MemorySpace space, ir::Arch arch,
               bool pieces) {
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
    use.tiles.push_back({tiles[i]->name, buffers[i].offset, buffers[i].bytes, buffers[i].from, buffers[i].to,
                         tiles[i]->span});
  }
  return use;
}

[[noreturn]] void refuse(const Function& f, const MemoryUse& use, const KernelStorage& storage) {
  Diagnostic d;
  d.cls = ErrorClass::kValueError;
  d.kernel = f.name;
  d.span = f.span;
  d.message = std::string(space_name(use.space)) + " buffer usage (" + std::to_string(use.used) +
              " bytes) exceeds platform limit (" + std::to_string(use.limit) + " bytes) in kernel '" +
              f.name + "'";
  if (f.span.known()) d.message += " (" + f.span.file_line() + ")";
  std::vector<const TileStorage*> largest;
  for (const auto& t : storage.tiles) {
    if (t.space == use.space) largest.push_back(&t);
  }
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  if (largest.size() > 5) largest.resize(5);
  std::string list;
  for (const auto* t : largest) {
    list += (list.empty() ? "" : ", ") +
            ("'" + t->name + "' " + ir::shape_text(t->type->shape) + " " +
             std::string(dtype_text(t->type->dtype)) + " (" + std::to_string(t->bytes) + " bytes");
    list += t->span.known() ? ", line " + std::to_string(t->span.line) + ")" : ")";
    if (t->span.known())
      d.notes.push_back(
          {"tile '" + t->name + "' of " + std::to_string(t->bytes) + " bytes is made here", t->span});
  }
  if (!list.empty()) d.message += ". Largest tiles: " + list;
  d.hint = "use smaller tiles, or load and store in pieces inside a loop";
  const auto reserved = storage.reserved.find(use.space);
  if (reserved != storage.reserved.end() && reserved->second > 0) {
    d.message += ". The first " + std::to_string(reserved->second) +
                 " bytes of that space are reserved by system.reserve_buffer for the cross-core pipe ring; "
                 "lower the number of slots "
                 "with pl.cross_core_slot(slot_num=N)";
    d.hint =
        "transfer smaller tiles between the cube and the vector cores, or use fewer slots: "
        "pl.cross_core_slot(slot_num=N)";
  }
  throw Failure(std::move(d));
}

/// 03 O-60: a transfer too large for its staging tile moves in pieces of the compiler's choice, and says so.
void warn_staging(ir::Module& module, const Function& f) {
  walk_exprs(f.body, [&](const ir::ExprPtr& e) {
    if (!is_op(e, ir::OpId::k_put) && !is_op(e, ir::OpId::k_get)) return;
    const int64_t chunk_rows = e->attrs.get_int(ir::AttrKey::k_chunk_rows),
                  chunk_cols = e->attrs.get_int(ir::AttrKey::k_chunk_cols);
    if (chunk_rows > 0 && chunk_cols > 0) return;
    const ir::Type& t = *e->args[0]->type;
    int64_t rows = 1, cols = -1;
    const ir::ExprPtr shape = e->args.size() > 5 ? e->args[5] : nullptr;
    const size_t rank = t.shape.size();
    for (size_t i = 0; i < rank; ++i) {
      const auto given = shape && i < shape->args.size() ? ir::const_int(shape->args[i]) : std::nullopt;
      if (shape ? !given : !t.shape[i].is_const()) return;
      const int64_t extent = shape ? *given : t.shape[i].value;
      if (i + 1 == rank) {
        cols = extent;
      } else {
        rows *= extent;
      }
    }
    if (cols <= 0) return;
    if (chunk_rows > 0) rows = std::min(rows, chunk_rows);
    if (chunk_cols > 0) cols = std::min(cols, chunk_cols);
    const int64_t limit = space_limit(MemorySpace::kVec, module.arch);
    const int64_t item = dtype_bytes(t.dtype);
    const int64_t row_bytes = (cols * item + 31) / 32 * 32;
    if (rows * row_bytes <= limit) return;
    const int64_t chosen_cols = row_bytes <= limit ? cols : limit / 32 * 32 / item;
    const int64_t chosen_rows = row_bytes <= limit ? std::max<int64_t>(1, limit / row_bytes) : 1;
    Diagnostic d;
    d.cls = ErrorClass::kValueError;
    d.severity = Severity::kWarning;
    d.id = "X-29";
    d.kernel = f.name;
    d.span = e->span;
    d.message = std::string("pld.tensor.") + (e->op == ir::OpId::k_put ? "put" : "get") + " moves " +
                std::to_string(rows * row_bytes) + " bytes, more than the staging capacity of " +
                std::to_string(limit) + " bytes; it moves in pieces of [" + std::to_string(chosen_rows) +
                ", " + std::to_string(chosen_cols) + "]";
    d.hint = "give chunk_rows / chunk_cols";
    module.warnings.push_back(std::move(d));
  });
}

}  // namespace

std::vector<MemoryUse> check_capacity(ir::Module& module, const PassOptions&) {
  std::vector<MemoryUse> report;
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || !f->is_kernel() || !f->external_source.empty()) continue;
    warn_staging(module, *f);
    const KernelStorage shared = tile_lifetimes(*f, module.arch, true);
    std::optional<KernelStorage> plain;
    for (const MemorySpace space : kSpaces) {
      MemoryUse use = plan(*f, shared, space, module.arch, false);
      const KernelStorage* storage = &shared;
      if (use.used > use.limit) {
        if (!plain) plain = tile_lifetimes(*f, module.arch, false);
        MemoryUse other = plan(*f, *plain, space, module.arch, false);
        if (other.used < use.used) {
          use = std::move(other);
          storage = &*plain;
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
