// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pypto::passes {

/// An integer expression in normal form: a sum of products of atoms. Atoms are texts: symbols, and quotients,
/// remainders and extrema of normal forms. Equal expressions that differ by rearranging have equal texts.
class Poly {
 public:
  Poly() = default;
  Poly(int64_t c) {  // NOLINT: numbers are polynomials
    if (c != 0) terms_[{}] = c;
  }
  static Poly atom(const std::string& text) {
    Poly p;
    p.terms_[{text}] = 1;
    return p;
  }

  Poly operator+(const Poly& o) const;
  Poly operator-(const Poly& o) const;
  Poly operator*(const Poly& o) const;
  bool operator==(const Poly& o) const { return terms_ == o.terms_; }

  std::optional<int64_t> constant() const;
  std::string text() const;

  /// Floor quotient and remainder, in their least form.
  static Poly quotient(const Poly& a, const Poly& b);
  static Poly remainder(const Poly& a, const Poly& b);
  static Poly extremum(bool greatest, const Poly& a, const Poly& b);
  /// "a < b" and the like: both sides with positive coefficients only. `op` is one of < == !=.
  static std::string comparison(const std::string& op, const Poly& a, const Poly& b);
  /// The truth of a comparison of constants.
  static std::optional<bool> decide(const std::string& op, const Poly& a, const Poly& b);

 private:
  using Monomial = std::vector<std::string>;  ///< sorted
  static std::string monomial_text(const Monomial& m, int64_t coefficient);
  std::map<Monomial, int64_t> terms_;
};

}  // namespace pypto::passes
