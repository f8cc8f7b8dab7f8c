// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// What to write instead of Python that kernels do not have (04 ERR-4).
namespace pypto::sema {

/// For a statement or expression by its Python name ("Try", "IfExp"); empty if nothing special helps.
std::string hint_for_syntax(std::string_view node);
/// For a builtin of Python that bodies cannot call; empty if `name` is none.
std::string hint_for_builtin(std::string_view name);
/// For an operator that tensors, tiles and run-time scalars lack; empty if nothing special helps.
std::string hint_for_operator(std::string_view text);

}  // namespace pypto::sema
