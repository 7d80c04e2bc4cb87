// SPDX-License-Identifier: Apache-2.0
// Which set of vector instructions code chosen at run time uses: the processor's best, or a lesser
// one by the environment variable HALFSCOPE_TARGET. Results have the same bits with all of them.
//
// Every choice at run time asks here or is Highway's own, which follows. Asking Highway costs
// microseconds: it asks the processor anew each time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

inline constexpr const char* kTargetVariable = "HALFSCOPE_TARGET";

/// The names of Highway's targets that this processor and this build have, the best first: "AVX3",
/// "AVX2", ... The last one is what the compiler may assume of every processor.
std::vector<std::string> vector_targets();

/// The best of those in use.
std::string vector_target();

/// Is this one of Highway's targets (HWY_AVX2) in use?
bool uses_vector_target(std::int64_t target);

/// From now on: as on a processor that has this target and no better one. An empty name: as on this
/// one. In a name case does not matter. Throws std::invalid_argument where the processor lacks it.
void use_vector_target(std::string_view name);

/// use_vector_target with the value of HALFSCOPE_TARGET. Programs call it before all else.
void use_vector_target_of_environment();

}  // namespace halfscope
