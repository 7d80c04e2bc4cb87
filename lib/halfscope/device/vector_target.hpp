// SPDX-License-Identifier: Apache-2.0
// The set of vector instructions for code that is chosen at run time: the processor's best, or a
// lower one from the environment variable HALFSCOPE_TARGET. Results have the same bits with all
// sets.
//
// All choices at run time go through this header or through Highway's own dispatch, which follows
// it. Query Highway rarely: each query takes microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

inline constexpr const char* kTargetVariable = "HALFSCOPE_TARGET";

/// Names of Highway's targets that this processor and this build have, the best first: "AVX3",
/// "AVX2", ... The last is the compiler's baseline, present on every processor.
std::vector<std::string> vector_targets();

/// The best target in use.
std::string vector_target();

/// Returns true if `target`, a target of Highway such as HWY_AVX2, is in use.
bool uses_vector_target(std::int64_t target);

/// Restricts all later choices to the target `name` and lower ones; an empty name lifts the
/// restriction. Case does not matter. Throws std::invalid_argument if the processor lacks the
/// target.
void use_vector_target(std::string_view name);

/// Calls use_vector_target() with the value of HALFSCOPE_TARGET. Programs call it first in main().
void use_vector_target_of_environment();

}  // namespace halfscope
