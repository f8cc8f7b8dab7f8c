// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/ir/enums.h"

namespace pypto::passes {

enum class Stationarity : uint8_t { kOutput, kA, kB };

/// What the tile chooser is asked (04 section 23); the product is [M, K] x [K, N]. Bytes, elements, bytes per
/// cycle.
struct L0TileConfig {
  int64_t M = 0, N = 0, K = 0;
  int64_t l0a_bytes = 0, l0b_bytes = 0, l0c_bytes = 0;
  int64_t bytes_a = 2, bytes_b = 2, bytes_c = 4;
  int64_t min_m = 16, min_n = 16, min_k = 16;
  int64_t align_m = 16, align_n = 16, align_k = 16, l0c_align_m = 16;
  int64_t box_align_m = 1, box_align_n = 1;
  int64_t max_n = 0, max_n_pipelined = 0, max_n_nested_pipelined = 0;  ///< 0 = none
  bool allow_a_stationary = false, allow_b_stationary = false, allow_double_buffer_c = false;
  bool c_read = false, allow_padding = false, allow_k_boundary = false;
  double bw_a = 129.7, bw_b = 85.4, bw_drain = 118.0;
  double drain_fixed_cycles = 164.0, drain_row_cycles = 4.45, drain_penalty_cycles = 2.6;
  int64_t drain_c0_bytes = 32;
  double mad_head = 21;
  int64_t mad_k_fractal_bytes = 32;
  int64_t mad_fp32_passes = 2;
};

struct L0TileResult {
  int64_t m = 0, n = 0, k = 0;
  Stationarity stationarity = Stationarity::kOutput;
  bool os_holds_a = false;
  bool double_buffer_c = false;
  int64_t estimated_traffic_bytes = 0;
  int64_t estimated_cost_cycles = 0;
  int64_t padded_compute_volume = 0;
  std::string perf_hint;
};

/// The tile with the least estimated cost (04 TIL-1 to TIL-8). Throws Failure (kValueError) naming the field
/// that is not positive, or saying that nothing fits.
L0TileResult choose_l0_tile(const L0TileConfig& config);

/// The configuration that the lowering uses for a product on an architecture (04 TIL-9).
L0TileConfig l0_config(ir::Arch arch, bool int32_accumulator);

}  // namespace pypto::passes
