// SPDX-License-Identifier: Apache-2.0
// Messages of a skipped step. docs/logs.md shows the lines of each program.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

constexpr std::string_view kNamed = "Grad overflow on iteration";
constexpr std::string_view kApplied = "overflow, still update";
/// Messages of DeepSpeed, fairseq2 (two) and icefall: the scale cannot be lowered any more.
constexpr std::string_view kAtMinimum[] = {
    "loss scale already at minimum", "loss scale is already at minimum",
    "gradients are scaled down to minimum", "grad_scale is too small, exiting"};

/// Returns the rank of a label before the line: torchrun's "[rank3]:", Lightning's "[rank: 3]",
/// "[default3]:" of Slurm scripts around torchrun, mpirun's "[1,3]<stdout>:", "3: " of srun
/// --label.
std::optional<std::int64_t> rank_of_label(std::string_view line) {
  for (const std::string_view begin : {"[rank", "[default"}) {
    if (line.starts_with(begin)) return count_after(line, begin);
  }
  const std::size_t end = std::min(line.find_first_of("]:"), line.size());
  const std::string_view label = line.substr(0, end), rest = line.substr(end);
  const std::size_t digits = label.find_last_not_of("0123456789") + 1;
  const std::string_view before = label.substr(0, digits);
  const bool of_mpirun =
      before.starts_with('[') && before.ends_with(',') && rest.starts_with("]<std");
  const bool of_srun =
      before.find_first_not_of(' ') == std::string_view::npos && rest.starts_with(": ");
  return of_mpirun || of_srun ? common::integer_in(label.substr(digits)) : std::nullopt;
}

std::optional<int> rank_of(const Line& line) {
  auto rank = count_after(line, "Rank ");
  if (!rank) rank = rank_of_label(line);
  if (!rank || *rank < 0 || *rank > kMostSteps) return std::nullopt;
  return static_cast<int>(*rank);
}

/// Returns the number behind the first of `marks` that has one. Paddle prints the new scale as a
/// product: "32768.0*0.5".
std::optional<double> scale_after(const Line& line, std::span<const std::string_view> marks) {
  for (const std::string_view mark : marks) {
    const auto rest = after(line, mark);
    const std::size_t end = rest ? end_of_number(*rest) : 0;
    if (end == 0) continue;
    const auto first = lines::printed_number(*rest);
    if (!rest->substr(end).starts_with('*')) return first;
    const auto second = lines::printed_number(rest->substr(end + 1));
    return second ? std::optional(*first * *second) : std::nullopt;
  }
  return std::nullopt;
}

/// Words before the scale that a step was tried at, and before the next scale.
constexpr std::string_view kTried[] = {"Attempted loss scale", "current scale is",
                                       "scale_before:",        "loss scale from ",
                                       "already at minimum (", "Using dynamic loss scale of"};
constexpr std::string_view kBecomes[] = {
    "educing loss scale to ", "reducing to ", "setting loss scale to",    "decrease to",
    "scale_after:",           "adjust to",    "loss scale is adjusted to"};

/// Returns true for a message of old Megatron-LM, which ends with the scale that was tried.
/// Messages of other programs that end there were cut.
bool ends_with_tried(const Line& line) {
  const auto rest = after(line, kTried[0]);
  const auto tried = number_after(line, kTried[0]);
  return tried && rest->find_first_not_of("0123456789. ") == std::string_view::npos &&
         exact_log2(*tried);
}

/// Sets the scales and the scaler that a message names.
void set_scales(const Line& line, Overflow& found) {
  found.attempted = scale_after(line, kTried);
  found.next = scale_after(line, kBecomes);
  if (const auto from = after(line, "loss scale from ")) found.next = number_after(*from, " to ");
  const bool stays = has(line, "hysteresis is") || has(line, "already at minimum (");
  if (!found.next && stays) found.next = found.attempted;
  const std::int64_t scaler = count_after(line, "loss scaler ").value_or(0);
  found.scaler = static_cast<int>(std::min<std::int64_t>(1000, scaler));
}

/// Returns true if a line says in other words that an update is skipped because of its gradients:
/// "The grad norm is nan. Skipping updating the model."
bool tells_skip(const Line& line) {
  constexpr std::string_view kGradients[] = {"grad", "Grad"};
  constexpr std::string_view kCauses[] = {"nan",  "NaN",  "Nan",      "inf ",       "Inf",
                                          "inf,", "inf.", "overflow", "non-finite", "not finite"};
  constexpr std::string_view kVerbs[] = {"kipping",     "kip step", "kip update",    "gnoring",
                                         "ot updating", "rop step", "pdate skipped", "tep skipped"};
  const auto any = [&](const auto& words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return has(line, word); });
  };
  return any(kVerbs) && any(kGradients) && any(kCauses);
}

/// A form of message: any line with the mark. `found` has what all such messages have in common.
struct OverflowForm {
  std::string_view mark;
  Overflow found = {};
};
constexpr OverflowForm kOverflowForms[] = {
    {"Attempted loss scale"},  // DeepSpeed runtime/fp16, Apex fp16_utils, Megatron-LM
    {"Gradient overflow"},     // Apex amp/handle.py
    {"verflow detected"},      // fairseq trainer.py, fairseq2; DeepSpeed fused_optimizer.py
    {"overflow, drop step"},   // MindYOLO
    {"educing dynamic loss scale from", {.of_named = true}},  // DeepSpeed unfused_optimizer.py
    {"Using dynamic loss scale of", {.of_named = true}},      // Apex FP16_Optimizer
    {"Found inf or nan, current scale"},                      // Paddle
    {"optimizer not run", {.confirms = true}},                // PaddleNLP
    {"Overflow occurs, the loss scale"},                      // Colossal-AI, InternEvo: by one rank
    {"Found overflow. Skip step", {.bare = true}},            // the same: by every rank
};

/// Returns the place behind each occurrence of `words`.
std::vector<std::size_t> places_behind(std::string_view words, std::string_view line) {
  std::vector<std::size_t> places;
  for (std::size_t at = line.find(words); at != std::string_view::npos;
       at = line.find(words, at + 1)) {
    places.push_back(at + words.size());
  }
  return places;
}

}  // namespace

std::optional<Overflow> overflow_of(const Line& line) {
  if (has(line, "ncreasing loss scale")) return std::nullopt;
  for (const OverflowForm& form : kOverflowForms) {
    if (!has(line, form.mark)) continue;
    Overflow found = form.found;
    if (!found.bare) set_scales(line, found);
    const bool tried = found.attempted && form.mark.starts_with("Using");
    if (!found.next && !found.bare && !tried && !ends_with_tried(line)) continue;
    found.rank = rank_of(line);
    return found;
  }
  if (!tells_skip(line)) return std::nullopt;
  return Overflow{.rank = rank_of(line), .bare = true};
}

std::optional<OverflowIteration> iteration_of(const Line& line) {
  const auto rest = after(line, kNamed);
  if (!rest) return std::nullopt;
  const std::size_t end = std::min(rest->find_first_not_of("0123456789"), rest->size());
  const bool runs_on = end < rest->size() && std::isalpha(static_cast<unsigned char>((*rest)[end]));
  const bool torn = runs_on || has(*rest, kNamed);
  return OverflowIteration{torn ? std::nullopt : count_in(*rest)};
}

std::optional<AppliedOverflow> applied_of(const Line& line) {
  if (!has(line, kApplied)) return std::nullopt;
  return AppliedOverflow{number_after(line, "loss scale adjust to")};
}

bool ends_at_minimum(const Line& line) {
  return std::ranges::any_of(kAtMinimum, [&](std::string_view mark) { return has(line, mark); });
}

bool has_message_words(const Line& line) {
  const auto is_form = [&](const OverflowForm& form) { return has(line, form.mark); };
  return tells_skip(line) || has(line, kNamed) || has(line, kApplied) || ends_at_minimum(line) ||
         std::ranges::any_of(kOverflowForms, is_form);
}

std::size_t messages_begun(std::string_view line) {
  std::size_t most = 0;
  for (const OverflowForm& form : kOverflowForms) {
    most = std::max(most, places_behind(form.mark, line).size());
  }
  return most;
}

std::vector<std::string_view> messages_in(std::string_view line) {
  // Each of these messages ends with such words and a number.
  constexpr std::string_view kEnds[] = {"educing loss scale to ", "reducing to ",
                                        "educing hysteresis to ", "setting loss scale to",
                                        "loss scale is adjusted to "};
  std::vector<std::size_t> places;
  for (const std::string_view words : kEnds) {
    std::ranges::move(places_behind(words, line), std::back_inserter(places));
  }
  std::ranges::sort(places);
  std::vector<std::string_view> messages;
  std::size_t begin = 0;
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    const std::size_t number = std::min(line.find_first_not_of(" :", places[i]), line.size());
    const std::size_t end = number + end_of_number(line.substr(number));
    messages.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  messages.push_back(line.substr(begin));
  return messages;
}

}  // namespace halfscope::analyzers::readers::console
