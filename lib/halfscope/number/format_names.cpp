// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/format_names.hpp"

#include <utility>

namespace halfscope {
namespace {

/// Aliases of formats: names that frameworks and compilers use.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"fp16", "binary16"},    {"half", "binary16"},     {"float16", "binary16"},
    {"f16", "binary16"},     {"bf16", "bfloat16"},     {"fp32", "binary32"},
    {"float32", "binary32"}, {"float", "binary32"},    {"fp64", "binary64"},
    {"float64", "binary64"}, {"double", "binary64"},   {"float8_e4m3fn", "e4m3"},
    {"float8_e5m2", "e5m2"}, {"tensorfloat32", "tf32"}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace

const NamedFormat* format_called(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const auto& [alias, own] : kAliases) {
    if (lower == alias) return find_format(own);
  }
  return find_format(lower);
}

std::string format_names() {
  std::string names;
  for (const NamedFormat& row : kFormats) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
    std::string others;
    for (const auto& [alias, own] : kAliases) {
      if (own == row.name) others += (others.empty() ? "" : ", ") + std::string(alias);
    }
    if (!others.empty()) names += " (" + others + ")";
  }
  return names;
}

std::string why_no_format(std::string_view name) {
  const std::string lower = lower_case(name);
  if (lower.starts_with("mx")) {
    return "scaled by blocks, which 'analyze --formats' covers; use one of " + format_names();
  }
  if (lower == "fp8" || lower == "float8") return "two formats: use e4m3 or e5m2";
  return "unknown; use one of " + format_names();
}

}  // namespace halfscope
