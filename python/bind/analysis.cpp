// SPDX-License-Identifier: Apache-2.0
// Questions about programs and products that tools ask: the communication skeleton (03 L-2), the tile chooser
// (04 23).
#include "core/passes/l0_tile.h"
#include "core/passes/skeleton.h"
#include "python/bind/common.h"
#include "python/bind/program.h"

namespace pypto::bind {
namespace {

/// Reads the fields of `given` that the configuration has; unknown ones are our own defect.
passes::L0TileConfig config_from(const nb::dict& given) {
  passes::L0TileConfig c;
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    bool known = false;
    const auto field = [&](const char* n, auto& target) {
      if (name != n) return;
      target = nb::cast<std::remove_reference_t<decltype(target)>>(value);
      known = true;
    };
#define PYPTO_FIELD(n) field(#n, c.n)
    PYPTO_FIELD(M), PYPTO_FIELD(N), PYPTO_FIELD(K), PYPTO_FIELD(l0a_bytes), PYPTO_FIELD(l0b_bytes);
    PYPTO_FIELD(l0c_bytes), PYPTO_FIELD(bytes_a), PYPTO_FIELD(bytes_b), PYPTO_FIELD(bytes_c);
    PYPTO_FIELD(min_m), PYPTO_FIELD(min_n), PYPTO_FIELD(min_k), PYPTO_FIELD(align_m), PYPTO_FIELD(align_n);
    PYPTO_FIELD(align_k), PYPTO_FIELD(l0c_align_m), PYPTO_FIELD(box_align_m), PYPTO_FIELD(box_align_n);
    PYPTO_FIELD(max_n), PYPTO_FIELD(max_n_pipelined), PYPTO_FIELD(max_n_nested_pipelined);
    PYPTO_FIELD(allow_a_stationary), PYPTO_FIELD(allow_b_stationary), PYPTO_FIELD(allow_double_buffer_c);
    PYPTO_FIELD(c_read), PYPTO_FIELD(allow_padding), PYPTO_FIELD(allow_k_boundary), PYPTO_FIELD(bw_a);
    PYPTO_FIELD(bw_b), PYPTO_FIELD(bw_drain), PYPTO_FIELD(drain_fixed_cycles), PYPTO_FIELD(drain_row_cycles);
    PYPTO_FIELD(drain_penalty_cycles), PYPTO_FIELD(drain_c0_bytes), PYPTO_FIELD(mad_head);
    PYPTO_FIELD(mad_k_fractal_bytes), PYPTO_FIELD(mad_fp32_passes);
#undef PYPTO_FIELD
    PYPTO_CHECK(known, "no field of the tile configuration: " + name);
  }
  return c;
}

nb::dict choose(const nb::dict& given) {
  const passes::L0TileConfig c = config_from(given);
  const passes::L0TileResult r = guarded([&] { return passes::choose_l0_tile(c); });
  nb::dict out;
  out["m"] = r.m;
  out["n"] = r.n;
  out["k"] = r.k;
  out["stationarity"] = static_cast<int>(r.stationarity);
  out["os_holds_a"] = r.os_holds_a;
  out["double_buffer_c"] = r.double_buffer_c;
  out["estimated_traffic_bytes"] = r.estimated_traffic_bytes;
  out["estimated_cost_cycles"] = r.estimated_cost_cycles;
  out["padded_compute_volume"] = r.padded_compute_volume;
  out["perf_hint"] = r.perf_hint;
  return out;
}

}  // namespace

void register_analysis(nb::module_& m) {
  m.def("choose_l0_tile", &choose, nb::arg("config"));
  m.def(
      "comm_skeleton",
      [](const PyProgram& p, const std::optional<std::string>& kernel, bool fold) {
        return guarded([&] { return passes::comm_skeleton(*p.module, kernel, fold); });
      },
      nb::arg("program"), nb::arg("kernel").none() = nb::none(), nb::arg("fold") = true);
}

}  // namespace pypto::bind
