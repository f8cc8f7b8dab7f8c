// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/syntax/syntax.h"
#include "python/bind/common.h"

/// Python source -> syntax trees. Files are parsed once per (path, modification time) by Python's own parser.
namespace pypto::bind {

/// A parsed file: its tree as Python's `ast` nodes, its text, and where its functions start.
struct ParsedFile {
  std::shared_ptr<SourceFile> file;
  std::vector<bool> ascii;  ///< per line: byte offsets are character offsets
  nb::object tree;
  /// First line of a function (its first decorator, as in co_firstlineno) -> its FunctionDef nodes.
  std::unordered_map<long, std::vector<nb::object>> functions;
  /// Text line -> (file, line, column) that errors are to name (01 L-78 source_map).
  std::unordered_map<int, Span> mapped;
  int64_t mtime = -1, size = -1;
};

/// Parses a file, or finds it in the cache. nullptr when there is no source on disk or registered in
/// linecache.
std::shared_ptr<ParsedFile> parsed_file(const std::string& path);
/// Registers text under a unique file name (pl.parse); errors show `shown` instead. Optional source map.
void register_text(const std::string& path, const std::string& text, const std::string& shown,
                   nb::object source_map);
void forget_text(const std::string& path);

/// The definition of a Python function by its code object; nullptr when its source cannot be found.
std::shared_ptr<syntax::FunctionDef> function_tree(PyObject* code,
                                                   std::shared_ptr<ParsedFile>* parsed = nullptr);
/// Parses a string annotation; nullptr if it is no expression. Every node gets `span`.
syntax::ExprPtr parse_expression(const std::string& text, const Span& span);
/// Names that occur in a definition's decorators, defaults and annotations: those that Python may not have
/// captured in the closure.
std::vector<std::string> annotation_names(const syntax::FunctionDef& def);

}  // namespace pypto::bind
