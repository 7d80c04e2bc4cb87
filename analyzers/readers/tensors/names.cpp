// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <span>
#include <system_error>
#include <vector>

#include "analyzers/readers/common/roles.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using common::is_one_of;
using common::is_optimizer_state;
using common::parts_of;
using common::speaks_of_gradients;

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

/// Buffers that modules of PyTorch and transformers register. Buffers have no gradients.
constexpr std::string_view kBuffers[] = {"running_mean", "running_var", "num_batches_tracked",
                                         "position_ids", "inv_freq"};
/// Words in the names of files in which libraries save weights.
constexpr std::string_view kFileWords[] = {"model",      "models",     "weights", "params",
                                           "parameters", "checkpoint", "ckpt",    "consolidated"};

/// Returns true if a branch's name ends in a word for gradients, such as "model_grads". Names that
/// only begin with one are often modules ("grad_reversal").
bool is_of_gradients(std::string_view branch) {
  const auto words = parts_of(branch, "_- 0123456789");
  return !words.empty() && speaks_of_gradients(words.back());
}

/// Returns a reason if a file has gradients in one branch and other tensors beside it, as in
/// {"model": ..., "grads": ...}: the others are not gradients. Empty if not.
std::string in_branches(const std::vector<std::string>& names) {
  std::string_view gradients;
  bool others = false;
  for (const std::string& name : names) {
    const auto parts = parts_of(name, "./");
    const bool one = parts.size() > 1 && is_of_gradients(parts.front());
    if (one && gradients.empty()) gradients = parts.front();
    others = others || !(one || speaks_of_gradients(name) || is_optimizer_state(parts));
  }
  if (gradients.empty() || !others) return "";
  return fmt::format("holds gradients in a branch of their own, '{}'", log::printable(gradients));
}

/// Returns a reason if tensors lie beside an optimizer's state, as in a checkpoint; else empty.
std::string beside_optimizer(const std::vector<std::string>& names) {
  std::string_view state;
  bool others = false;
  for (const std::string& name : names) {
    const auto parts = parts_of(name, "./");
    const bool is_state = is_optimizer_state(parts);
    others = others || !(is_state || speaks_of_gradients(name));
    // A name that ends in ".step" may be any counter.
    if (is_state && state.empty() && parts.back() != "step") state = name;
  }
  if (state.empty() || !others) return "";
  return fmt::format("holds '{}', an optimizer's state", log::printable(state));
}

std::string in_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto parts = parts_of(name, "./");
    if (parts.empty()) continue;
    if (is_one_of(parts.back(), kBuffers)) {
      return fmt::format("holds '{}', which has no gradient", log::printable(name));
    }
    const bool state = std::ranges::any_of(
        parts, [](std::string_view part) { return part.ends_with("state_dict"); });
    if (state) return fmt::format("holds '{}'", log::printable(name));
  }
  return "";
}

/// Returns a reason if a file's name has a word for weights. Empty if not, and for files of one
/// tensor, which have its name ("fc.weight.npy").
std::string in_file_name(const std::filesystem::path& file, std::size_t tensors) {
  if (tensors < 2) return "";
  std::string name = file.filename().string();
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 0x20) : c; });
  for (const std::string_view word : parts_of(name, "._- 0123456789")) {
    if (is_one_of(word, kFileWords)) return fmt::format("is called '{}'", word);
  }
  return "";
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

std::string weights_shown(const std::filesystem::path& file, const log::TensorFile& opened) {
  std::vector<std::string> names = opened.names();
  const std::size_t readable = names.size();
  for (const log::SkippedTensor& skipped : opened.skipped()) names.push_back(skipped.name);
  std::string shown = in_branches(names);
  if (!shown.empty() || speaks_of_gradients(file.stem().string())) return shown;
  shown = opened.shows_weights();
  if (shown.empty()) shown = in_names(names);
  if (shown.empty()) shown = beside_optimizer(names);
  return shown.empty() ? in_file_name(file, readable) : shown;
}

}  // namespace halfscope::analyzers::readers::tensors
