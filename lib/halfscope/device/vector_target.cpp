// SPDX-License-Identifier: Apache-2.0
#include "halfscope/device/vector_target.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace halfscope {
namespace {

/// Targets for which code is built: Highway's choice, and AVX3_DL, which only count_hot.cpp uses.
constexpr std::int64_t kBuilt = HWY_TARGETS | HWY_AVX3_DL;

std::int64_t on_this_processor() {
  static const std::int64_t all = hwy::SupportedTargets() & kBuilt;
  return all;
}

std::atomic<std::int64_t>& in_use() {
  static std::atomic<std::int64_t> targets{on_this_processor()};
  return targets;
}

/// Returns the best target: Highway sorts its target bits so that the lowest is the best.
std::int64_t best_of(std::int64_t targets) { return targets & -targets; }

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

/// Returns the target with that name and all lower ones, or 0 if there is none.
std::int64_t up_to(std::string_view name) {
  for (std::int64_t rest = on_this_processor(); rest != 0; rest &= rest - 1) {
    if (same_but_for_case(hwy::TargetName(best_of(rest)), name)) return rest;
  }
  return 0;
}

}  // namespace

std::vector<std::string> vector_targets() {
  std::vector<std::string> names;
  for (std::int64_t rest = on_this_processor(); rest != 0; rest &= rest - 1) {
    names.emplace_back(hwy::TargetName(best_of(rest)));
  }
  return names;
}

std::string vector_target() { return hwy::TargetName(best_of(in_use())); }

bool uses_vector_target(std::int64_t target) { return (in_use() & target) != 0; }

void use_vector_target(std::string_view name) {
  const std::int64_t targets = name.empty() ? on_this_processor() : up_to(name);
  if (targets == 0) {
    std::string known;
    for (const std::string& each : vector_targets()) known += (known.empty() ? "" : ", ") + each;
    throw std::invalid_argument("vector target '" + std::string(name) +
                                "': this processor has no such instructions; use one of: " + known);
  }
  in_use() = targets;
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(targets);
}

void use_vector_target_of_environment() {
  const char* const name = std::getenv(kTargetVariable);
  if (name == nullptr) return;
  try {
    use_vector_target(name);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(std::string(kTargetVariable) + ": " + e.what());
  }
}

}  // namespace halfscope
