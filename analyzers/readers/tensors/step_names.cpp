// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/step_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace halfscope::analyzers::readers::tensors {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The position of a step in a name: from its word up to the end of its number.
struct StepMark {
  std::size_t begin = 0, end = 0;
  std::int64_t step = 0;
};

/// Returns the mark at position `at`, such as "step-000012". Empty if it is part of a longer word.
std::optional<StepMark> mark_at(std::string_view name, std::size_t at) {
  if (at > 0 && (is_letter(name[at - 1]) || is_digit(name[at - 1]))) return std::nullopt;
  constexpr std::array<std::string_view, 4> kWords = {"step", "checkpoint", "iteration", "iter"};
  for (const std::string_view word : kWords) {
    const std::string_view found = name.substr(at, word.size());
    const bool same = std::equal(found.begin(), found.end(), word.begin(), word.end(),
                                 [](char a, char b) { return (a | 0x20) == b; });
    if (!same) continue;
    std::size_t first = at + word.size();
    if (first < name.size() && (name[first] == '-' || name[first] == '_' || name[first] == '=')) {
      ++first;
    }
    std::int64_t step = 0;
    const char* const end = name.data() + name.size();
    if (first >= name.size() || !is_digit(name[first])) continue;  // from_chars accepts a sign
    const auto [stop, error] = std::from_chars(name.data() + first, end, step);
    if (error != std::errc() || (stop != end && is_letter(*stop))) continue;
    return StepMark{at, static_cast<std::size_t>(stop - name.data()), step};
  }
  return std::nullopt;
}

std::optional<StepMark> last_mark(std::string_view name) {
  for (std::size_t at = name.size(); at-- > 0;) {
    if (const auto mark = mark_at(name, at)) return mark;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> step_in_name(std::string_view name) {
  const auto mark = last_mark(name);
  return mark ? std::optional(mark->step) : std::nullopt;
}

std::string without_step(const std::string& name) {
  const auto mark = last_mark(name);
  if (!mark) return name;
  const auto joins = [](char c) { return c == '-' || c == '_' || c == '.'; };
  std::string before = name.substr(0, mark->begin), after = name.substr(mark->end);
  while (!before.empty() && joins(before.back())) before.pop_back();
  while (before.empty() && !after.empty() && joins(after.front())) after.erase(0, 1);
  return before.empty() && after.empty() ? "tensor" : before + after;
}

}  // namespace halfscope::analyzers::readers::tensors
