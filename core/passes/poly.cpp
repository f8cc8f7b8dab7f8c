// SPDX-License-Identifier: Apache-2.0
#include "core/passes/poly.h"

#include <algorithm>

namespace pypto::passes {

Poly Poly::operator+(const Poly& o) const {
  Poly out = *this;
  for (const auto& [m, c] : o.terms_) {
    if ((out.terms_[m] += c) == 0) out.terms_.erase(m);
  }
  return out;
}

Poly Poly::operator-(const Poly& o) const { return *this + o * Poly(-1); }

Poly Poly::operator*(const Poly& o) const {
  Poly out;
  for (const auto& [a, x] : terms_) {
    for (const auto& [b, y] : o.terms_) {
      Monomial m = a;
      m.insert(m.end(), b.begin(), b.end());
      std::sort(m.begin(), m.end());
      if ((out.terms_[m] += x * y) == 0) out.terms_.erase(m);
    }
  }
  return out;
}

std::optional<int64_t> Poly::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

std::string Poly::monomial_text(const Monomial& m, int64_t coefficient) {
  std::string out;
  if (coefficient != 1 || m.empty()) out = std::to_string(coefficient);
  for (const auto& a : m) out += (out.empty() ? "" : "*") + a;
  return out;
}

std::string Poly::text() const {
  if (terms_.empty()) return "0";
  // Terms in order of their atoms, positive ones first, the constant last.
  std::string out;
  for (const bool positive : {true, false}) {
    for (const auto& [m, c] : terms_) {
      if (m.empty() || (c > 0) != positive) continue;
      if (out.empty()) {
        out = positive ? monomial_text(m, c) : "-" + monomial_text(m, -c);
      } else {
        out += positive ? " + " + monomial_text(m, c) : " - " + monomial_text(m, -c);
      }
    }
  }
  if (const auto it = terms_.find({}); it != terms_.end()) {
    const int64_t c = it->second;
    out += out.empty() ? std::to_string(c) : c > 0 ? " + " + std::to_string(c) : " - " + std::to_string(-c);
  }
  return out;
}

Poly Poly::quotient(const Poly& a, const Poly& b) {
  if (const auto d = b.constant(); d && *d != 0) {
    if (*d == 1) return a;
    bool exact = true;
    for (const auto& [m, c] : a.terms_) exact = exact && c % *d == 0;
    if (exact) {
      Poly out;
      for (const auto& [m, c] : a.terms_) out.terms_[m] = c / *d;
      return out;
    }
    if (const auto n = a.constant()) {
      int64_t q = *n / *d;
      if (*n % *d != 0 && ((*n < 0) != (*d < 0))) --q;
      return q;
    }
  }
  if (a == b) return 1;
  return atom("((" + a.text() + ") // " +
              (b.constant() || b.terms_.size() == 1 ? b.text() : "(" + b.text() + ")") + ")");
}

Poly Poly::remainder(const Poly& a, const Poly& b) {
  if (const auto d = b.constant(); d && *d > 0) {
    if (const auto n = a.constant()) return ((*n % *d) + *d) % *d;
  }
  const std::string modulus = b.text();
  // What is a multiple of the modulus falls away; a remainder by the same modulus opens.
  Poly rest;
  const std::string tail = ") % " + modulus + ")";
  for (const auto& [m, c] : a.terms_) {
    if (b.terms_.size() == 1 && !b.terms_.begin()->first.empty() && b.terms_.begin()->second == 1) {
      const Monomial& unit = b.terms_.begin()->first;
      if (std::includes(m.begin(), m.end(), unit.begin(), unit.end())) continue;
    }
    if (const auto d = b.constant(); d && c % *d == 0) continue;
    rest.terms_[m] = c;
  }
  if (rest.terms_.size() == 1 && rest.terms_.begin()->second == 1 && rest.terms_.begin()->first.size() == 1) {
    const std::string& only = rest.terms_.begin()->first[0];
    if (only.size() > tail.size() && only.compare(only.size() - tail.size(), tail.size(), tail) == 0)
      return atom(only);
    if (only == "me" && modulus == "P") return rest;  // a rank is below the number of ranks
  }
  // Non-negative form: one modulus per term that is subtracted.
  int64_t lifts = 0;
  for (const auto& [m, c] : rest.terms_) lifts += c < 0 ? 1 : 0;
  rest = rest + Poly(lifts) * b;
  return atom("((" + rest.text() + tail);
}

Poly Poly::extremum(bool greatest, const Poly& a, const Poly& b) {
  if (a == b) return a;
  const auto x = a.constant(), y = b.constant();
  if (x && y) return greatest ? std::max(*x, *y) : std::min(*x, *y);
  std::string first = a.text(), second = b.text();
  if (second < first) std::swap(first, second);
  return atom(std::string(greatest ? "max(" : "min(") + first + ", " + second + ")");
}

std::string Poly::comparison(const std::string& op, const Poly& a, const Poly& b) {
  Poly d = b - a;
  if (op != "<" && !d.terms_.empty()) {
    // Which side comes first does not matter: the first term in order stands on the left.
    for (const auto& [m, c] : d.terms_) {
      if (m.empty()) continue;
      if (c > 0) d = d * Poly(-1);
      break;
    }
  }
  Poly left, right;
  for (const auto& [m, c] : d.terms_) {
    if (c < 0) {
      left.terms_[m] = -c;
    } else {
      right.terms_[m] = c;
    }
  }
  return left.text() + " " + op + " " + right.text();
}

std::optional<bool> Poly::decide(const std::string& op, const Poly& a, const Poly& b) {
  const auto d = (b - a).constant();
  if (!d) return std::nullopt;
  if (op == "<") return *d > 0;
  return op == "==" ? *d == 0 : *d != 0;
}

}  // namespace pypto::passes
