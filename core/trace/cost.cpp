// SPDX-License-Identifier: Apache-2.0
#include "core/trace/cost.h"

#include <algorithm>
#include <cmath>

namespace pypto::trace {
namespace {

using ir::OpId;

int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Whether the valid region is one run of memory: no gap between its rows.
bool without_gaps(const vm::View& v) {
  int64_t run = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    if (v.valid[i] == 1) continue;
    if (v.stride[i] != run) return false;
    run *= v.valid[i];
  }
  return true;
}

bool wide_float(DType d) { return d == DType::kFp32; }
bool half_float(DType d) { return d == DType::kFp16 || d == DType::kBf16; }
bool fp8(DType d) { return d == DType::kFp8E4M3FN || d == DType::kFp8E5M2 || d == DType::kHf8; }

VectorRow cast_row(DType from, DType to) {
  if ((wide_float(from) && half_float(to)) || (half_float(from) && wide_float(to)))
    return VectorRow::k_cast_float;
  if (fp8(to) && is_float(from)) return VectorRow::k_cast_to_fp8;
  if (fp8(from) && is_float(to)) return VectorRow::k_cast_from_fp8;
  if (to == DType::kFp4) return VectorRow::k_cast_to_fp4;
  if (from == DType::kFp4) return VectorRow::k_cast_from_fp4;
  return VectorRow::k_cast;
}

/// The row of H-66 / H-67 of an operation that is linear in the repeats.
VectorRow row_of(OpId op, DType dtype, DType to, bool high_precision) {
  const bool half = dtype == DType::kFp16;
  const auto by_type = [half](VectorRow row, VectorRow fp16) { return half ? fp16 : row; };
  switch (op) {
    case OpId::k_add:
      return VectorRow::k_add;
    case OpId::k_sub:
      return VectorRow::k_sub;
    case OpId::k_mul:
      return VectorRow::k_mul;
    case OpId::k_maximum:
      return VectorRow::k_maximum;
    case OpId::k_minimum:
      return VectorRow::k_minimum;
    case OpId::k_part_add:
    case OpId::k_part_mul:
    case OpId::k_part_max:
    case OpId::k_part_min:
      return VectorRow::k_part;
    case OpId::k_adds:
      return VectorRow::k_adds;
    case OpId::k_subs:
      return VectorRow::k_subs;
    case OpId::k_muls:
      return VectorRow::k_muls;
    case OpId::k_maximums:
      return VectorRow::k_maximums;
    case OpId::k_minimums:
      return VectorRow::k_minimums;
    case OpId::k_relu:
      return VectorRow::k_relu;
    case OpId::k_neg:
      return VectorRow::k_neg;
    case OpId::k_lrelu:
      return VectorRow::k_lrelu;
    case OpId::k_div:
      return by_type(VectorRow::k_div, VectorRow::k_div_fp16);
    case OpId::k_divs:
      return by_type(VectorRow::k_divs, VectorRow::k_divs_fp16);
    case OpId::k_exp:
      return by_type(VectorRow::k_exp, VectorRow::k_exp_fp16);
    case OpId::k_sqrt:
      return by_type(VectorRow::k_sqrt, VectorRow::k_sqrt_fp16);
    case OpId::k_log:
      return by_type(VectorRow::k_log, VectorRow::k_log_fp16);
    case OpId::k_rsqrt:
    case OpId::k_tile_rsqrt:
      return by_type(VectorRow::k_rsqrt, VectorRow::k_rsqrt_fp16);
    case OpId::k_recip:
      return high_precision ? by_type(VectorRow::k_recip_high, VectorRow::k_recip_high_fp16)
                            : by_type(VectorRow::k_recip, VectorRow::k_recip_fp16);
    case OpId::k_abs:
      return VectorRow::k_abs;
    case OpId::k_and_:
    case OpId::k_ands:
      return VectorRow::k_and;
    case OpId::k_or_:
    case OpId::k_ors:
      return VectorRow::k_or;
    case OpId::k_not_:
      return VectorRow::k_not;
    case OpId::k_shl:
    case OpId::k_shr:
    case OpId::k_shls:
    case OpId::k_shrs:
      return VectorRow::k_shift;
    case OpId::k_xor:
    case OpId::k_xors:
      return VectorRow::k_xor;
    case OpId::k_cmp:
    case OpId::k_cmps:
      return VectorRow::k_cmp;
    case OpId::k_sel:
    case OpId::k_sels:
      return dtype_bytes(dtype) == 2 ? VectorRow::k_sel_16 : VectorRow::k_sel;
    case OpId::k_cast:
      return cast_row(dtype, to);
    case OpId::k_full:
    case OpId::k_tile_full:
    case OpId::k_expands:
      return VectorRow::k_full;
    case OpId::k_move:
    case OpId::k_copy_tile:
    case OpId::k_extract:
    case OpId::k_assemble:
    case OpId::k_concat:
      return VectorRow::k_move;
    case OpId::k_fillpad:
    case OpId::k_fillpad_inplace:
    case OpId::k_fillpad_expand:
      return VectorRow::k_fillpad;
    case OpId::k_col_expand:
      return VectorRow::k_col_expand;
    case OpId::k_col_expand_mul:
    case OpId::k_col_expand_add:
    case OpId::k_col_expand_sub:
    case OpId::k_col_expand_div:
    case OpId::k_col_expand_max:
    case OpId::k_col_expand_min:
      return VectorRow::k_col_expand_op;
    case OpId::k_row_expand_mul:
    case OpId::k_row_expand_add:
    case OpId::k_row_expand_sub:
    case OpId::k_row_expand_div:
    case OpId::k_row_expand_max:
    case OpId::k_row_expand_min:
      return VectorRow::k_row_expand_op;
    case OpId::k_rem:
    case OpId::k_rems:
    case OpId::k_fmod:
    case OpId::k_fmods:
      return VectorRow::k_rem;
    case OpId::k_prelu:
      return VectorRow::k_prelu;
    case OpId::k_gather_mask:
      return VectorRow::k_gather_mask;
    case OpId::k_gatherb:
      return VectorRow::k_gatherb;
    case OpId::k_tri:
      return VectorRow::k_tri;
    default:
      return VectorRow::k_other;
  }
}

double row_reduction(const Params& p, const Extent& e) {
  const auto n = static_cast<double>(e.blocks());
  const auto rows = static_cast<double>(e.rows);
  return p[Param::k_row_sum_b] + p[Param::k_row_sum_block] * (n - 1) +
         (e.tail() ? p[Param::k_row_sum_tail] : 0) +
         rows * (p[Param::k_row_sum_row] + p[Param::k_row_sum_row_block] * (n - 1));
}

}  // namespace

// ------------------------------------------------------------------ vector instructions

int64_t Extent::blocks() const { return div_up(columns * bytes, 256); }
int64_t Extent::repeats() const { return contiguous ? div_up(rows * columns * bytes, 256) : rows * blocks(); }
bool Extent::tail() const { return !contiguous && columns * bytes % 256 != 0; }

Extent extent_of(std::span<const vm::View* const> operands) {
  Extent e;
  e.bytes = 1;
  bool first = true;
  for (const vm::View* v : operands) {
    if (!v || v->rank == 0) continue;
    e.bytes = std::max<int64_t>(e.bytes, dtype_bytes(v->dtype));
    if (first) {
      first = false;
      e.columns = v->valid[v->rank - 1];
      e.rows = e.columns > 0 ? v->valid_elements() / e.columns : 0;
    } else if (v->valid_elements() != e.rows * e.columns) {
      continue;  // a vector beside the matrix
    }
    // Storage of the device is read into a tile of its valid extent.
    if (!v->buffer || v->buffer->kind == vm::BufferKind::kOnChip)
      e.contiguous = e.contiguous && without_gaps(*v);
  }
  return e;
}

OpId scalar_form(OpId op) {
  switch (op) {
    case OpId::k_add:
      return OpId::k_adds;
    case OpId::k_sub:
      return OpId::k_subs;
    case OpId::k_mul:
      return OpId::k_muls;
    case OpId::k_div:
      return OpId::k_divs;
    case OpId::k_maximum:
      return OpId::k_maximums;
    case OpId::k_minimum:
      return OpId::k_minimums;
    default:
      return op;
  }
}

double linear_time(const Params& p, VectorRow row, const Extent& e) {
  const LinearCost& c = p[row];
  if (p.arch() == ir::Arch::kA5) {
    if (e.contiguous) return p.cycles(c.b + c.k * static_cast<double>(e.repeats()));
    return p.cycles((c.a * static_cast<double>(e.blocks()) + c.d) * static_cast<double>(e.rows) + c.c);
  }
  return p.cycles(c.b + c.k * static_cast<double>(e.repeats()) + (e.tail() ? p[Param::k_op_tail] : 0));
}

double mrgsort_time(const Params& p, int64_t merges, int64_t pairs) {
  return p.cycles(p[Param::k_mrgsort_b] + p[Param::k_mrgsort_merge] * static_cast<double>(merges) +
                  p[Param::k_mrgsort_pair] * static_cast<double>(pairs));
}

double vector_time(const Params& p, OpId op, const Extent& e, DType dtype, DType to, bool high_precision) {
  if (e.empty()) return 0;
  const auto rows = static_cast<double>(e.rows);
  const auto n = static_cast<double>(e.blocks());
  const auto elements = static_cast<double>(e.rows * e.columns);
  const auto col_max = [&] {
    return p[Param::k_col_max_b] + rows * (p[Param::k_col_max_row] + p[Param::k_col_max_row_block] * (n - 1));
  };
  switch (op) {
    case OpId::k_row_sum:
      return p.cycles(row_reduction(p, e));
    case OpId::k_row_max:
    case OpId::k_row_min:
      return p.cycles(row_reduction(p, e) - p[Param::k_row_max_less]);
    case OpId::k_row_prod:
      return p.cycles(row_reduction(p, e) * p[Param::k_row_prod_times]);
    case OpId::k_row_argmax:
    case OpId::k_row_argmin:
      return p.cycles((row_reduction(p, e) - p[Param::k_row_max_less]) * p[Param::k_arg_times]);
    case OpId::k_col_sum:
    case OpId::k_col_prod:
      return p.cycles(p[Param::k_col_sum_b] +
                      rows * (p[Param::k_col_sum_row] + p[Param::k_col_sum_row_block] * (n - 1)));
    case OpId::k_col_max:
    case OpId::k_col_min:
      return p.cycles(col_max());
    case OpId::k_col_argmax:
    case OpId::k_col_argmin:
      return p.cycles(col_max() * p[Param::k_arg_times]);
    case OpId::k_row_expand:
      return p.cycles(p[Param::k_row_expand_b] +
                      rows * (p[Param::k_row_expand_row] + p[Param::k_row_expand_row_block] * (n - 1)));
    case OpId::k_row_expand_mul:
    case OpId::k_row_expand_add:
    case OpId::k_row_expand_sub:
    case OpId::k_row_expand_div:
    case OpId::k_row_expand_max:
    case OpId::k_row_expand_min:
      return linear_time(p, VectorRow::k_row_expand_op, e) + p.cycles(p[Param::k_row_expand_op_row] * rows);
    case OpId::k_row_expand_expdif:
    case OpId::k_col_expand_expdif:
      return vector_time(p, OpId::k_sub, e, dtype, to) + vector_time(p, OpId::k_exp, e, dtype, to);
    case OpId::k_addc:
      return 2 * linear_time(p, VectorRow::k_add, e);
    case OpId::k_subc:
      return 2 * linear_time(p, VectorRow::k_sub, e);
    case OpId::k_addsc:
      return linear_time(p, VectorRow::k_adds, e) + linear_time(p, VectorRow::k_add, e);
    case OpId::k_subsc:
      return linear_time(p, VectorRow::k_subs, e) + linear_time(p, VectorRow::k_sub, e);
    case OpId::k_gather:
    case OpId::k_tile_gather:
    case OpId::k_gather_compare:
    case OpId::k_tensor_gather_compare:
      return p.cycles(p[Param::k_gather_b] +
                      p[Param::k_gather_k] * rows * static_cast<double>(div_up(e.columns, 64)));
    case OpId::k_scatter:
    case OpId::k_tile_scatter:
    case OpId::k_scatter_mask:
    case OpId::k_tensor_scatter_mask:
    case OpId::k_scatter_update:
      return p.cycles(p[Param::k_scatter_b] + p[Param::k_scatter_k] * elements);
    case OpId::k_transpose:
      return p.cycles(p[Param::k_transpose_b] +
                      p[Param::k_transpose_k] *
                          static_cast<double>(e.bytes * div_up(e.rows, 16) * div_up(e.columns, 16)));
    case OpId::k_sort32:
      return p.cycles(p[Param::k_sort32_b] +
                      p[Param::k_sort32_k] * static_cast<double>(div_up(e.rows * e.columns, 32)));
    case OpId::k_arange:
    case OpId::k_tile_arange:
      return p.cycles(p[Param::k_ci_k] * elements);
    default:
      return linear_time(p, row_of(op, dtype, to, high_precision), e);
  }
}

// ------------------------------------------------------------------ transfers

PathCost path_cost(const Params& p, Path path) {
  switch (path) {
    case Path::kGmVec:
      return {p.ns(Param::k_gm_vec_alpha), p.rate(Param::k_gm_vec_beta)};
    case Path::kGmMat:
      return {p.ns(Param::k_gm_mat_alpha), p.rate(Param::k_gm_mat_beta)};
    case Path::kVecGm:
      return {p.ns(Param::k_vec_gm_alpha), p.rate(Param::k_vec_gm_beta)};
    case Path::kMatGm:
      return {p.ns(Param::k_mat_gm_alpha), p.rate(Param::k_mat_gm_beta)};
    case Path::kMatLeft:
      return {p.ns(Param::k_mat_left_alpha), p.rate(Param::k_mat_left_beta)};
    case Path::kMatRight:
      return {p.ns(Param::k_mat_right_alpha), p.rate(Param::k_mat_right_beta)};
    case Path::kMatBias:
      return {p.ns(Param::k_mat_bt_alpha), p.rate(Param::k_mat_bt_beta)};
    case Path::kVecMat:
      return {p.ns(Param::k_vec_mat_alpha), p.rate(Param::k_vec_mat_beta)};
    case Path::kL1Fill:
      return {p.ns(Param::k_l1_fill_alpha), p.rate(Param::k_l1_fill_beta)};
  }
  return {};
}

Transfer transfer_of(const vm::View& v) {
  Transfer t;
  const int64_t bits = dtype_bits(v.dtype);
  t.bytes = (v.valid_elements() * bits + 7) / 8;
  int64_t run = 1;
  int i = v.rank - 1;
  for (; i >= 0; --i) {
    if (v.valid[i] == 1) continue;
    if (v.stride[i] != run) break;
    run *= v.valid[i];
  }
  t.adjacent = i < 0;
  t.row = (run * bits + 7) / 8;
  return t;
}

double row_factor(const Params& p, const Transfer& t) {
  const double granularity = p[Param::k_dma_granularity];
  const auto row = static_cast<double>(t.row);
  if (t.adjacent || row >= granularity) return 1;
  return 1 + p[Param::k_dma_row_loss] * (1 - row / granularity);
}

double transfer_time(const Params& p, Path path, const Transfer& t) {
  if (t.bytes <= 0) return 0;
  const PathCost c = path_cost(p, path);
  return c.alpha + static_cast<double>(t.bytes) * row_factor(p, t) / c.rate;
}

double fixpipe_time(const Params& p, int64_t m, int64_t n, int64_t bytes) {
  if (m <= 0 || n <= 0) return 0;
  int64_t odd = div_up(n * bytes, 32);
  while (odd % 2 == 0) odd /= 2;
  const double row = std::max(p[Param::k_fix_row], static_cast<double>(bytes * n) / p[Param::k_fix_rate]) +
                     p[Param::k_fix_odd] * static_cast<double>(odd - 1);
  return p.cycles(p[Param::k_fix_fixed] + static_cast<double>(m) * row);
}

double matmul_time(const Params& p, int64_t m, int64_t k, int64_t n, int bits) {
  if (m <= 0 || k <= 0 || n <= 0) return 0;
  const int64_t kt = bits <= 4 ? 64 : 32 / (bits / 8);
  const double passes = bits >= 32 ? p[Param::k_mm_passes_fp32] : p[Param::k_mm_passes];
  return p.cycles(p[Param::k_mm_head] +
                  passes * static_cast<double>(div_up(m, 16) * div_up(k, kt) * div_up(n, 16)));
}

double get_piece_time(const Params& p, int64_t bytes) {
  return p.ns(Param::k_link_alpha_read) + static_cast<double>(bytes) / p.rate(Param::k_link_pair) +
         transfer_time(p, Path::kVecGm, {bytes, bytes, true});
}

double sdma_time(const Params& p, int64_t bytes) {
  return p.ns(Param::k_sdma_alpha) + static_cast<double>(bytes) / p.rate(Param::k_sdma_rate);
}

}  // namespace pypto::trace
