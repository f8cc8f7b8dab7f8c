// SPDX-License-Identifier: Apache-2.0
#include "core/ir/op.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace pypto::ir {
namespace {

constexpr OpRow kRows[] = {
#define PYPTO_OP(id, name, forms, places, alias, inplace, effects, cost, sig, sig_tensor, sig_tile, doc) \
  {OpId::k_##id, name, forms, places, alias, inplace, effects, cost, sig, sig_tensor, sig_tile, doc},
#include "core/ir/ops.def"
#undef PYPTO_OP
};

/// Further spellings of rows (02 O-103 - O-106).
struct OpAlias {
  uint32_t form;
  const char* name;
  OpId id;
};
constexpr OpAlias kAliases[] = {
    {kFormTensor, "create", OpId::k_create_tensor},
    {kFormTile, "create", OpId::k_create_tile},
    {kFormTensor, "ci", OpId::k_arange},
    {kFormTile, "ci", OpId::k_tile_arange},
};

constexpr const char* kAttrNames[] = {
#define PYPTO_ATTR(name) #name,
#include "core/ir/attrs.def"
#undef PYPTO_ATTR
};

using NameIndex = std::map<std::pair<uint32_t, std::string_view>, const OpRow*>;

const NameIndex& name_index() {
  static const NameIndex index = [] {
    NameIndex m;
    for (const auto& row : kRows) {
      for (uint32_t bit = 1; bit <= kFormInternal; bit <<= 1) {
        if (row.forms & bit) m[{bit, row.name}] = &row;
      }
    }
    for (const auto& a : kAliases) m[{a.form, a.name}] = &op_row(a.id);
    return m;
  }();
  return index;
}

std::vector<OpParam> parse_signature(std::string_view text) {
  std::vector<OpParam> out;
  bool keyword_only = false;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    bool quoted = false;
    while (end < text.size() && (quoted || text[end] != ',')) {
      if (text[end] == '"') quoted = !quoted;
      ++end;
    }
    std::string_view part = text.substr(at, end - at);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    at = end + 1;
    if (part.empty()) continue;
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    OpParam p;
    p.keyword_only = keyword_only;
    if (const auto eq = part.find('='); eq != std::string_view::npos) {
      p.name = std::string(part.substr(0, eq));
      p.has_default = true;
      p.default_text = std::string(part.substr(eq + 1));
    } else {
      p.name = std::string(part);
    }
    out.push_back(std::move(p));
  }
  return out;
}

const char* signature_text(const OpRow& row, OpForm form) {
  const bool tensor = form == kFormTensor || form == kFormPldTensor;
  const bool tile = form == kFormTile || form == kFormPldTile;
  if (tensor && row.sig_tensor[0] != '\0') return row.sig_tensor;
  if (tile && row.sig_tile[0] != '\0') return row.sig_tile;
  return row.sig;
}

struct SignatureCache {
  std::vector<OpParam> flat[kOpCount], tensor[kOpCount], tile[kOpCount];
  SignatureCache() {
    for (int i = 0; i < kOpCount; ++i) {
      flat[i] = parse_signature(signature_text(kRows[i], kFormFlat));
      tensor[i] = parse_signature(signature_text(kRows[i], kFormTensor));
      tile[i] = parse_signature(signature_text(kRows[i], kFormTile));
    }
  }
};

const SignatureCache& signatures() {
  static const SignatureCache cache;
  return cache;
}

}  // namespace

const OpRow& op_row(OpId id) { return kRows[static_cast<int>(id)]; }

const OpRow* find_op(OpForm form, std::string_view name) {
  const auto& m = name_index();
  const auto it = m.find({static_cast<uint32_t>(form), name});
  return it == m.end() ? nullptr : it->second;
}

std::vector<std::string> op_names(OpForm form) {
  std::vector<std::string> out;
  for (const auto& [key, row] : name_index()) {
    if (key.first == static_cast<uint32_t>(form)) out.emplace_back(key.second);
  }
  std::sort(out.begin(), out.end());
  return out;
}

const std::vector<OpParam>& op_params(const OpRow& row, OpForm form) {
  const int i = static_cast<int>(row.id);
  if (form == kFormTensor || form == kFormPldTensor) return signatures().tensor[i];
  if (form == kFormTile || form == kFormPldTile) return signatures().tile[i];
  return signatures().flat[i];
}

int op_param_index(const OpRow& row, std::string_view name) {
  for (const OpForm form : {kFormFlat, kFormTensor, kFormTile}) {
    const auto& params = op_params(row, form);
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].name != name) continue;
      if (form == kFormFlat) return static_cast<int>(i);
      // A form may leave out parameters: find the flat position by name, else by order.
      const auto& flat = op_params(row, kFormFlat);
      for (size_t j = 0; j < flat.size(); ++j) {
        if (flat[j].name == name) return static_cast<int>(j);
      }
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::string_view attr_name(AttrKey key) { return kAttrNames[static_cast<int>(key)]; }

AttrKey attr_from_name(std::string_view name) {
  for (int i = 0; i < static_cast<int>(AttrKey::kCount); ++i) {
    if (name == kAttrNames[i]) return static_cast<AttrKey>(i);
  }
  return AttrKey::kCount;
}

AttrKind attr_kind(AttrKey key) {
  switch (key) {
    case AttrKey::k_dtype:
    case AttrKey::k_target_type:
    case AttrKey::k_out_dtype:
    case AttrKey::k_output_dtype:
    case AttrKey::k_count_dtype:
    case AttrKey::k_acc_dtype:
      return AttrKind::kDType;
    case AttrKey::k_target_memory:
    case AttrKey::k_space:
    case AttrKey::k_memory_space:
      return AttrKind::kMemorySpace;
    case AttrKey::k_layout:
      return AttrKind::kTensorLayout;
    case AttrKey::k_blayout:
    case AttrKey::k_slayout:
      return AttrKind::kTileLayout;
    case AttrKey::k_pad_value:
      return AttrKind::kPadValue;
    case AttrKey::k_atomic:
      return AttrKind::kAtomicType;
    case AttrKey::k_pipe:
    case AttrKey::k_set_pipe:
    case AttrKey::k_wait_pipe:
      return AttrKind::kPipeType;
    case AttrKey::k_cmp_type:
    case AttrKey::k_cmp_mode:
      return AttrKind::kCmpType;
    case AttrKey::k_mask_pattern:
      return AttrKind::kMaskPattern;
    case AttrKey::k_drop_dims:
    case AttrKey::k_shape:
      return AttrKind::kIntList;
    case AttrKey::k_acc_phase:
    case AttrKey::k_coalesce:
    case AttrKey::k_gather_oob:
    case AttrKey::k_name:
    case AttrKey::k_peer_func:
    case AttrKey::k_core_type:
    case AttrKey::k_mode:
      return AttrKind::kString;
    case AttrKey::k_manual_dep:
    case AttrKey::k_transpose:
    case AttrKey::k_descending:
    case AttrKey::k_upper:
    case AttrKey::k_clamp:
    case AttrKey::k_a_trans:
    case AttrKey::k_b_trans:
    case AttrKey::k_c_matrix_nz:
    case AttrKey::k_high_precision:
    case AttrKey::k_is_trans:
    case AttrKey::k_is_b_matrix:
    case AttrKey::k_exhausted:
    case AttrKey::k_pipeline:
    case AttrKey::k_pinned:
    case AttrKey::k_flat_layout:
      return AttrKind::kBool;
    case AttrKey::k_value:
    case AttrKey::k_init_value:
      return AttrKind::kFloat;
    case AttrKey::k_op:
      return AttrKind::kReduceOp;  // notify prints NotifyOp: decided by the row
    case AttrKey::k_cmp:
      return AttrKind::kWaitCmp;
    default:
      return AttrKind::kInt;
  }
}

}  // namespace pypto::ir
