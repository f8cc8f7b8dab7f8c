// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace pypto {

/// A file of the user's program as far as diagnostics need it.
struct SourceFile {
  std::string path;
  int first_line = 1;              ///< line number of lines[0]
  std::vector<std::string> lines;  ///< may be empty when no source is available

  /// The text of a 1-based line, or empty.
  std::string line(int number) const {
    const int i = number - first_line;
    return i >= 0 && i < static_cast<int>(lines.size()) ? lines[static_cast<size_t>(i)] : std::string();
  }
};

/// A place in the user's program; lines and columns are 1-based, 0 = unknown.
struct Span {
  std::shared_ptr<const SourceFile> file;
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;

  bool known() const { return file != nullptr && line > 0; }
  /// "file:line:column", or "<unknown>".
  std::string text() const {
    if (!known()) return "<unknown>";
    return file->path + ":" + std::to_string(line) + ":" + std::to_string(column);
  }
  /// "file:line".
  std::string file_line() const {
    if (!known()) return "<unknown>";
    return file->path + ":" + std::to_string(line);
  }
};

}  // namespace pypto
