// SPDX-License-Identifier: Apache-2.0
// Checks of numbers on a command line, which say what was found and what is wanted.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <string>
#include <type_traits>

#include "halfscope/log/error.hpp"

namespace halfscope::cli {

/// Refuses what is no number of type T, is below `least`, or is not finite.
template <class T>
CLI::Validator number_from(T least) {
  const char* const kind = std::is_integral_v<T> ? "whole " : "finite ";
  const auto check = [least, kind](const std::string& text) -> std::string {
    T value{};
    bool fine = CLI::detail::lexical_cast(text, value) && value >= least;
    if constexpr (std::is_unsigned_v<T>)
      fine = fine && !text.starts_with('-');  // else taken modulo
    if constexpr (std::is_floating_point_v<T>) fine = fine && std::isfinite(value);
    if (fine) return {};
    return fmt::format("found '{}', want a {}number, {} or more", log::printable(text), kind,
                       least);
  };
  return CLI::Validator(check, "");
}

}  // namespace halfscope::cli
