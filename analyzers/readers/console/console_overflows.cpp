// SPDX-License-Identifier: Apache-2.0
// Messages of a skipped step, and where they come from:
// * "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
//   "..., but hysteresis is 2. Reducing hysteresis to 1": DeepSpeed runtime/fp16/loss_scaler.py,
//   called update_scale (ZeRO); "[deepscale] OVERFLOW! Rank 3 ..." of its ZeRO optimizers before;
//   "OVERFLOW! Skipping step. Attempted ..." without a rank: Apex fp16_utils, old Megatron-LM.
// * "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 65536.0,
//   reducing to 32768.0" and "Overflow detected. Skipping step. Attempted ...": DeepSpeed
//   runtime/fp16/{unfused,fused}_optimizer.py, after "Grad overflow on iteration 4" (or ": 4") and
//   "Reducing dynamic loss scale from 65536.0 to 32768.0".
// * "Grad overflow on iteration 4", then "Using dynamic loss scale of 65536.0", the scale of that
//   iteration: Apex FP16_Optimizer.
// * "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0": Apex
//   amp/handle.py.
// * "gradient overflow detected, ignoring gradient, setting loss scale to: 64.0": trainer.py and
//   optim/dynamic_loss_scaler.py of fairseq.
// * "Found inf or nan, current scale is: 32768.0, decrease to: 32768.0*0.5" and "optimizer not run,
//   scale_before: 32768.0, scale_after: 16384.0": Paddle and PaddleNLP.
// * "Overflow detected at step 7, ignoring gradient, decreasing loss scale from 64 to 32.", or with
//   "loss scale is already at minimum (1)." at its end: fairseq2; the step is repeated.
// * "overflow, drop step, loss scale adjust to 1024.0": MindYOLO; with "still update" in the place
//   of "drop step" the update is applied.
// * "Found overflow. Skip step", by every rank, and before it, by one, where the scale comes down,
//   "Overflow occurs, the loss scale is adjusted to 32768.0": Colossal-AI, InternEvo.
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
/// The scale cannot be lowered any more: of DeepSpeed, of fairseq2 twice, and of icefall.
constexpr std::string_view kAtMinimum[] = {
    "loss scale already at minimum", "loss scale is already at minimum",
    "gradients are scaled down to minimum", "grad_scale is too small, exiting"};

/// The rank of a label before the line: mpirun's "[1,3]<stdout>:", "[rank3]:" of torchrun,
/// "[default3]:" of Slurm scripts around it, "3: " of srun --label.
std::optional<std::int64_t> rank_of_label(std::string_view line) {
  const std::size_t mark = line.find("]<std");
  if (line.starts_with('[') && mark != std::string_view::npos) {
    const std::size_t comma = line.substr(0, mark).find(',');
    if (comma != std::string_view::npos) {
      return common::integer_in(line.substr(comma + 1, mark - comma - 1));
    }
  }
  for (const std::string_view begin : {"[rank", "[default"}) {
    if (line.starts_with(begin)) return count_after(line, begin);
  }
  const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = std::min(line.find_first_not_of("0123456789", start), line.size());
  if (end > start && line.substr(end).starts_with(": ")) {
    return common::integer_in(line.substr(start, end - start));
  }
  return std::nullopt;
}

std::optional<int> rank_of(const Line& line) {
  auto rank = count_after(line, "Rank ");
  if (!rank) rank = rank_of_label(line);
  if (!rank || *rank < 0 || *rank > kMostSteps) return std::nullopt;
  return static_cast<int>(*rank);
}

/// The number behind the first of some marks that a line has. "32768.0*0.5" is a product, as Paddle
/// prints what the scale becomes.
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

/// What stands before the scale that a step was tried at, and before the one from then on.
constexpr std::string_view kTried[] = {"Attempted loss scale", "current scale is",
                                       "scale_before:",        "loss scale from ",
                                       "already at minimum (", "Using dynamic loss scale of"};
constexpr std::string_view kBecomes[] = {
    "educing loss scale to ", "reducing to ", "setting loss scale to",    "decrease to",
    "scale_after:",           "adjust to",    "loss scale is adjusted to"};

/// Old Megatron-LM ends with the scale that was tried; a line of others that ends there was cut.
bool ends_with_tried(const Line& line) {
  const auto rest = after(line, kTried[0]);
  const auto tried = number_after(line, kTried[0]);
  return tried && rest->find_first_not_of("0123456789. ") == std::string_view::npos &&
         exact_log2(*tried);
}

Overflow scales_of(const Line& line) {
  Overflow found;
  found.attempted = scale_after(line, kTried);
  found.next = scale_after(line, kBecomes);
  if (const auto from = after(line, "loss scale from ")) found.next = number_after(*from, " to ");
  const bool stays = has(line, "hysteresis is") || has(line, "already at minimum (");
  if (!found.next && stays) found.next = found.attempted;
  const std::int64_t scaler = count_after(line, "loss scaler ").value_or(0);
  found.scaler = static_cast<int>(std::min<std::int64_t>(1000, scaler));
  return found;
}

/// Whether a line says in its own words that an update is skipped for its gradients: "The grad norm
/// is nan. Skipping updating the model."
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

/// A line that has the mark is a message of that form.
struct OverflowForm {
  std::string_view mark;
  bool of_named = false, confirms = false, bare = false;  ///< as in Overflow
};
constexpr OverflowForm kOverflowForms[] = {{"Attempted loss scale"},
                                           {"Gradient overflow"},
                                           {"verflow detected"},
                                           {"overflow, drop step"},
                                           {"educing dynamic loss scale from", true},
                                           {"Using dynamic loss scale of", true},
                                           {"Found inf or nan, current scale"},
                                           {"optimizer not run", false, true},
                                           {"Overflow occurs, the loss scale"},
                                           {"Found overflow. Skip step", false, false, true}};

/// The places right behind some words of a line.
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
  if (has(line, "ncreasing loss scale")) return std::nullopt;  // it grows
  Overflow found;
  for (const OverflowForm& form : kOverflowForms) {
    if (!has(line, form.mark)) continue;
    found = form.bare ? Overflow() : scales_of(line);
    found.of_named = form.of_named;
    found.confirms = form.confirms;
    found.bare = form.bare;
    const bool tried = found.attempted && form.mark.starts_with("Using");
    if (!found.next && !form.bare && !tried && !ends_with_tried(line)) continue;
    found.rank = rank_of(line);
    return found;
  }
  if (!tells_skip(line)) return std::nullopt;
  return Overflow{.rank = rank_of(line), .bare = true};
}

std::optional<OverflowIteration> iteration_of(const Line& line) {
  const std::size_t at = line.find(kNamed);
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = after(line.substr(at), kNamed);
  const std::size_t digits = std::min(rest->find_first_not_of("0123456789"), rest->size());
  const bool runs_on =
      digits < rest->size() && std::isalpha(static_cast<unsigned char>((*rest)[digits]));
  const bool again = line.find(kNamed, at + 1) != std::string_view::npos;
  OverflowIteration found;
  if (!runs_on && !again) found.iteration = count_after(line, kNamed);
  return found;
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
  // What all these messages end with, before a number.
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
