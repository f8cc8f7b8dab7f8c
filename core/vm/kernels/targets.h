// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// Which of the host's instruction sets the kernels use. All of them give the same bits (02 O-311), which is
/// what tests switch it for.
namespace pypto::vm {

/// Names of those that this host has and this build contains, the best one first.
std::vector<std::string> instruction_sets();
/// Uses one of them from now on, in programs compiled afterwards; an empty name stands for the best one.
/// False when there is none of that name.
bool use_instruction_set(const std::string& name);

}  // namespace pypto::vm
