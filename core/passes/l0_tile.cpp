// SPDX-License-Identifier: Apache-2.0
#include "core/passes/l0_tile.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "core/base/diagnostic.h"

namespace pypto::passes {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t up(int64_t x, int64_t a) { return ceil_div(x, a) * a; }

struct Candidate {
  int64_t m = 0, n = 0, k = 0;
  bool holds_a = false;
  int64_t cost = 0;
  double load = 0;
  int64_t volume = 0;
};

struct Regime {
  Stationarity stationarity = Stationarity::kOutput;
  bool double_buffered = false;
};

class Chooser {
 public:
  explicit Chooser(const L0TileConfig& c) : c_(c) {}

  L0TileResult run() {
    check();
    const auto best = [&](Regime r) { return search(r); };
    std::optional<Candidate> found = best({Stationarity::kOutput, false});
    Regime regime{Stationarity::kOutput, false};
    const bool whole = found && found->m == c_.M && found->n == c_.N && found->k == c_.K;
    if (!whole) {
      const auto consider = [&](Stationarity s, bool twice, bool allowed) {
        if (!allowed) return;
        const auto other = best({s, twice});
        if (other && (!found || other->cost < found->cost)) {
          found = other;
          regime = {s, twice};
        }
      };
      const bool d = c_.allow_double_buffer_c;
      consider(Stationarity::kOutput, true, d);
      consider(Stationarity::kA, false, c_.allow_a_stationary);
      consider(Stationarity::kA, true, c_.allow_a_stationary && d);
      consider(Stationarity::kB, false, c_.allow_b_stationary);
      consider(Stationarity::kB, true, c_.allow_b_stationary && d);
    }
    if (!found) {
      fail(ErrorClass::kValueError,
           "no tile of the product [" + std::to_string(c_.M) + ", " + std::to_string(c_.K) + "] x [" +
               std::to_string(c_.K) + ", " + std::to_string(c_.N) +
               "] fits l0a_bytes=" + std::to_string(c_.l0a_bytes) +
               ", l0b_bytes=" + std::to_string(c_.l0b_bytes) + ", l0c_bytes=" + std::to_string(c_.l0c_bytes));
    }
    return result(*found, regime);
  }

 private:
  void check() const {
    const auto positive = [](const char* name, double value) {
      if (!(value > 0))
        fail(ErrorClass::kValueError, std::string(name) + " must be positive, got " + std::to_string(value));
    };
    const std::pair<const char*, int64_t> counts[] = {{"M", c_.M},
                                                      {"N", c_.N},
                                                      {"K", c_.K},
                                                      {"l0a_bytes", c_.l0a_bytes},
                                                      {"l0b_bytes", c_.l0b_bytes},
                                                      {"l0c_bytes", c_.l0c_bytes},
                                                      {"bytes_a", c_.bytes_a},
                                                      {"bytes_b", c_.bytes_b},
                                                      {"bytes_c", c_.bytes_c},
                                                      {"min_m", c_.min_m},
                                                      {"min_n", c_.min_n},
                                                      {"min_k", c_.min_k},
                                                      {"align_m", c_.align_m},
                                                      {"align_n", c_.align_n},
                                                      {"align_k", c_.align_k},
                                                      {"l0c_align_m", c_.l0c_align_m},
                                                      {"box_align_m", c_.box_align_m},
                                                      {"box_align_n", c_.box_align_n},
                                                      {"drain_c0_bytes", c_.drain_c0_bytes},
                                                      {"mad_k_fractal_bytes", c_.mad_k_fractal_bytes},
                                                      {"mad_fp32_passes", c_.mad_fp32_passes}};
    for (const auto& [name, value] : counts) {
      if (value <= 0)
        fail(ErrorClass::kValueError, std::string(name) + " must be positive, got " + std::to_string(value));
    }
    positive("bw_a", c_.bw_a);
    positive("bw_b", c_.bw_b);
    positive("bw_drain", c_.bw_drain);
  }

  // TIL-4
  double hold_a(int64_t tm) const {
    return static_cast<double>(c_.bytes_a * c_.M * c_.K) / c_.bw_a +
           static_cast<double>(c_.bytes_b * c_.K * c_.N * tm) / c_.bw_b;
  }
  double hold_b(int64_t tn) const {
    return static_cast<double>(c_.bytes_a * c_.M * c_.K * tn) / c_.bw_a +
           static_cast<double>(c_.bytes_b * c_.K * c_.N) / c_.bw_b;
  }
  double load_cycles(const Candidate& x, Stationarity s, int64_t tm, int64_t tn) const {
    if (s == Stationarity::kA) return hold_a(tm);
    if (s == Stationarity::kB) return hold_b(tn);
    if (x.k == c_.K) return std::min(hold_a(tm), hold_b(tn));
    return static_cast<double>(c_.bytes_a * c_.M * c_.K * tn) / c_.bw_a +
           static_cast<double>(c_.bytes_b * c_.K * c_.N * tm) / c_.bw_b;
  }

  // TIL-5
  double multiply_cycles(const Candidate& x, int64_t t) const {
    const int64_t kt = std::max<int64_t>(1, c_.mad_k_fractal_bytes / c_.bytes_a);
    const int64_t p = c_.bytes_a == 4 ? c_.mad_fp32_passes : std::max<int64_t>(1, c_.bytes_a / 2);
    const int64_t q = c_.K / x.k;
    const int64_t rest = c_.K - q * x.k;
    const int64_t blocks = q + (rest > 0 ? 1 : 0);
    const int64_t fractals = q * ceil_div(x.k, kt) + ceil_div(rest, kt);
    return static_cast<double>(t) *
           (static_cast<double>(blocks) * c_.mad_head +
            static_cast<double>(p * ceil_div(x.m, c_.align_m) * fractals * ceil_div(x.n, c_.align_n)));
  }

  // TIL-6
  double drain_cycles(const Candidate& x, int64_t t) const {
    const int64_t per = std::max<int64_t>(1, c_.drain_c0_bytes / c_.bytes_c);
    int64_t odd = ceil_div(x.n, per);
    while (odd > 1 && odd % 2 == 0) odd /= 2;
    return static_cast<double>(t) *
           (c_.drain_fixed_cycles +
            static_cast<double>(x.m) *
                (std::max(c_.drain_row_cycles, static_cast<double>(c_.bytes_c * x.n) / c_.bw_drain) +
                 c_.drain_penalty_cycles * static_cast<double>(odd - 1)));
  }

  std::optional<Candidate> search(Regime r) const {
    const int64_t a_bytes = r.stationarity == Stationarity::kA ? c_.l0a_bytes : c_.l0a_bytes / 2;
    const int64_t b_bytes = r.stationarity == Stationarity::kB ? c_.l0b_bytes : c_.l0b_bytes / 2;
    const int64_t c_bytes = r.double_buffered ? c_.l0c_bytes / 2 : c_.l0c_bytes;
    const bool full_k = r.stationarity != Stationarity::kOutput || r.double_buffered;
    const int64_t top_m = c_.allow_padding ? up(c_.M, c_.align_m) : c_.M;
    const int64_t top_k = c_.allow_padding ? up(c_.K, c_.align_k) : c_.K;
    int64_t top_n = c_.allow_padding ? up(c_.N, c_.align_n) : c_.N;
    if (c_.max_n > 0) top_n = std::min(top_n, c_.max_n);
    std::optional<Candidate> best;
    const auto steps = [](int64_t from, int64_t step, int64_t to, const auto& body) {
      if (from > to) body(to);  // smaller than the least tile: the extent itself
      for (int64_t v = from; v <= to; v += step) body(v);
      // An extent that no step reaches is a candidate only with padding, which has rounded it up.
    };
    steps(c_.min_m, c_.align_m, top_m, [&](int64_t m) {
      steps(c_.min_n, c_.align_n, top_n, [&](int64_t n) {
        if (up(up(m, c_.box_align_m), c_.l0c_align_m) * up(n, c_.box_align_n) * c_.bytes_c > c_bytes) return;
        steps(c_.min_k, c_.align_k, top_k, [&](int64_t k) {
          if (up(m, c_.box_align_m) * k * c_.bytes_a > a_bytes ||
              up(n, c_.box_align_n) * k * c_.bytes_b > b_bytes)
            return;
          if (c_.K % k != 0 && !(c_.allow_k_boundary && c_.K % c_.align_k == 0) &&
              !(c_.allow_padding && k == top_k))
            return;
          if (full_k && k != c_.K) return;
          Candidate x;
          x.m = m;
          x.n = n;
          x.k = k;
          judge(x, r, best);
        });
      });
    });
    return best;
  }

  void judge(Candidate x, Regime r, std::optional<Candidate>& best) const {
    const int64_t tm = ceil_div(c_.M, x.m), tn = ceil_div(c_.N, x.n), t = tm * tn;
    x.holds_a = hold_a(tm) <= hold_b(tn);
    const bool rows_outer =
        r.stationarity == Stationarity::kA || (r.stationarity == Stationarity::kOutput && x.holds_a);
    if (r.double_buffered && (rows_outer ? c_.N / x.n : c_.M / x.m) < 2) return;
    const bool covers = x.m >= c_.M && x.n >= c_.N;
    if (x.k == c_.K && !covers) {
      if (c_.max_n_pipelined > 0 && rows_outer && x.n > c_.max_n_pipelined) return;
      if (c_.max_n_nested_pipelined > 0 && r.stationarity == Stationarity::kOutput && x.holds_a &&
          x.n > c_.max_n_nested_pipelined)
        return;
    }
    x.load = load_cycles(x, r.stationarity, tm, tn);
    const double work = std::max(x.load, multiply_cycles(x, t));
    const double drain = drain_cycles(x, t);
    const double cost = r.double_buffered
                            ? std::max(work, drain) + std::min(work, drain) / static_cast<double>(t)
                            : work + drain;
    x.cost = std::llround(cost);
    x.volume = tm * x.m * tn * x.n * ceil_div(c_.K, x.k) * x.k;
    if (!best || better(x, *best)) best = x;
  }

  // TIL-7
  bool better(const Candidate& a, const Candidate& b) const {
    const auto key = [&](const Candidate& x) {
      return std::make_tuple(x.cost, x.volume, ceil_div(c_.K, x.k), x.load, -x.m * x.n, -x.k);
    };
    return key(a) < key(b);
  }

  // TIL-8, TIL-11
  L0TileResult result(const Candidate& x, Regime r) const {
    L0TileResult out;
    out.m = x.m;
    out.n = x.n;
    out.k = x.k;
    out.stationarity = r.stationarity;
    out.double_buffer_c = r.double_buffered;
    out.os_holds_a = x.holds_a;
    out.estimated_cost_cycles = x.cost;
    out.padded_compute_volume = x.volume;
    const int64_t tm = ceil_div(c_.M, x.m), tn = ceil_div(c_.N, x.n);
    const int64_t a = c_.bytes_a * c_.M * c_.K, b = c_.bytes_b * c_.K * c_.N;
    const bool holds_a = r.stationarity == Stationarity::kA ||
                         (r.stationarity == Stationarity::kOutput && x.k == c_.K && x.holds_a);
    const bool holds_b = r.stationarity == Stationarity::kB ||
                         (r.stationarity == Stationarity::kOutput && x.k == c_.K && !x.holds_a);
    out.estimated_traffic_bytes =
        (holds_a ? a : a * tn) + (holds_b ? b : b * tm) + c_.bytes_c * c_.M * c_.N * (c_.c_read ? 2 : 1);
    const auto below = [&](const char* name, int64_t value, int64_t least) {
      if (value >= least) return;
      out.perf_hint += std::string(out.perf_hint.empty() ? "" : "; ") + name + "=" + std::to_string(value) +
                       " is below the least tile extent " + std::to_string(least);
    };
    below("M", c_.M, c_.min_m);
    below("N", c_.N, c_.min_n);
    below("K", c_.K, c_.min_k);
    return out;
  }

  const L0TileConfig& c_;
};

}  // namespace

L0TileResult choose_l0_tile(const L0TileConfig& config) { return Chooser(config).run(); }

L0TileConfig l0_config(ir::Arch arch, bool int32_accumulator) {
  L0TileConfig c;
  c.l0a_bytes = c.l0b_bytes = 65536;
  c.l0c_bytes = 131072;
  c.allow_a_stationary = c.allow_b_stationary = c.allow_k_boundary = true;
  if (arch == ir::Arch::kA5) {
    c.l0c_bytes = 262144;
    c.bw_a = 206.3;
    c.bw_b = 223.8;
    c.bw_drain = 30.0;
    c.drain_fixed_cycles = 343.4;
    c.drain_row_cycles = 4.59;
    c.drain_penalty_cycles = 0.26;
    c.mad_head = 25;
    c.mad_fp32_passes = 8;
  } else if (int32_accumulator) {
    c.l0c_align_m = 32;
  }
  return c;
}

}  // namespace pypto::passes
