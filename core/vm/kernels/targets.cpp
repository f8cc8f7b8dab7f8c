// SPDX-License-Identifier: Apache-2.0
// The instruction set that the kernels run with. Highway asks its own library for it, but that library also
// measures the resolution of a clock when it is loaded, which is 3 ms of every process; these two functions
// are all we use of it, so with them here it is not loaded at all.
#include "core/vm/kernels/targets.h"

#include <hwy/highway.h>

#if HWY_ARCH_X86 && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12

namespace hwy {

int64_t SupportedTargets() {
  static const int64_t targets = [] {
    int64_t found = HWY_STATIC_TARGET;
    // Highway's AVX2 and AVX3 are these levels of the psABI, and the cipher instructions.
    if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) return found;
    if (__builtin_cpu_supports("x86-64-v3")) found |= HWY_AVX2;
    if (__builtin_cpu_supports("x86-64-v4")) found |= HWY_AVX3;
    return found;
  }();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy

#endif

namespace pypto::vm {

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const int64_t bit : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(bit));
  return names;
}

bool use_instruction_set(const std::string& name) {
  if (name.empty()) {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return true;
  }
  for (const int64_t bit : hwy::SupportedAndGeneratedTargets()) {
    if (name != hwy::TargetName(bit)) continue;
    hwy::GetChosenTarget().Update(bit);
    return true;
  }
  return false;
}

}  // namespace pypto::vm
