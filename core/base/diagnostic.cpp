// SPDX-License-Identifier: Apache-2.0
#include "core/base/diagnostic.h"

#include <algorithm>
#include <cstdio>

namespace pypto {
namespace {

std::string pad_left(const std::string& text, size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string excerpt(const Diagnostic& d) {
  const Span& s = d.span;
  std::string out = "  --> " + s.text() + "\n";
  if (!s.known() || s.file->lines.empty() || s.file->line(s.line).empty()) return out;
  const int first = std::max(s.file->first_line, s.line - 2);
  const int last = std::min(s.file->first_line + static_cast<int>(s.file->lines.size()) - 1, s.line + 2);
  const size_t width = std::max<size_t>(2, std::to_string(last).size());
  out += std::string(width, ' ') + " |\n";
  for (int n = first; n <= last; ++n) {
    out += pad_left(std::to_string(n), width) + " | " + s.file->line(n) + "\n";
    if (n == s.line && s.column > 0) {
      out += std::string(width, ' ') + " | " + std::string(static_cast<size_t>(s.column - 1), ' ') + "^";
      if (!d.label.empty()) out += " " + d.label;
      out += "\n";
    }
  }
  out += std::string(width, ' ') + " |\n";
  return out;
}

}  // namespace

void fail(ErrorClass cls, std::string message, Span span, std::string hint, std::string label) {
  Diagnostic d;
  d.cls = cls;
  d.message = std::move(message);
  d.span = std::move(span);
  d.hint = std::move(hint);
  d.label = std::move(label);
  throw Failure(std::move(d));
}

void fail_internal(const char* file, int line, const std::string& what) {
  std::string base = file;
  if (const auto at = base.rfind("core/"); at != std::string::npos) base = base.substr(at);
  fail(ErrorClass::kInternalError, "internal error at " + base + ":" + std::to_string(line) + ": " + what +
                                       "; this is a defect of PyPTO, please report it");
}

std::string render_location(const Diagnostic& d) { return d.span.known() ? excerpt(d) : std::string(); }

std::string render(const Diagnostic& d, bool color) {
  const char* word = d.severity == Severity::kError     ? "Error"
                     : d.severity == Severity::kWarning ? "Warning"
                                                        : "Note";
  std::string out;
  if (color) out += d.severity == Severity::kError ? "\033[1;31m" : "\033[1;33m";
  out += word;
  out += ": ";
  if (color) out += "\033[0m";
  if (!d.id.empty() && d.message.rfind(d.id, 0) != 0) out += d.id + ": ";
  out += d.message + "\n";
  if (d.span.known()) out += excerpt(d);
  // Reports of a run end with the line `fix:` (03 X-0); the compiler's have `= help:` (01 L-181).
  const bool run_time = d.cls >= ErrorClass::kRuntimeError && d.cls <= ErrorClass::kOutOfBoundsError &&
                        d.id.rfind("X-", 0) == 0;
  if (!d.hint.empty() && !run_time) out += "   = help: " + d.hint + "\n";
  for (const auto& note : d.notes) {
    out += "   = note: " + note.text;
    if (note.span.known()) out += " at " + note.span.text();
    out += "\n";
  }
  if (!d.hint.empty() && run_time) out += "   = fix: " + d.hint + "\n";
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::string nearest(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const auto& c : candidates) {
    std::vector<size_t> row(c.size() + 1);
    for (size_t j = 0; j <= c.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= c.size(); ++j) {
        const size_t up = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (name[i - 1] == c[j - 1] ? 0 : 1)});
        diagonal = up;
      }
    }
    if (row[c.size()] < best_distance) {
      best_distance = row[c.size()];
      best = c;
    }
  }
  return best;
}

}  // namespace pypto
