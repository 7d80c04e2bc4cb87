// SPDX-License-Identifier: Apache-2.0
// The forms, and where they come from:
// * "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
//   "..., but hysteresis is 2. Reducing hysteresis to 1": DeepSpeed runtime/fp16/loss_scaler.py,
//   called update_scale (ZeRO); "[deepscale] OVERFLOW! Rank 3 ..." of its ZeRO optimizers before;
//   "OVERFLOW! Skipping step. Attempted ..." without a rank: Apex fp16_utils, old Megatron-LM.
// * "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 65536.0,
//   reducing to 32768.0" and "Overflow detected. Skipping step. Attempted ...": DeepSpeed
//   runtime/fp16/{unfused,fused}_optimizer.py, after "Grad overflow on iteration 4" (or ": 4").
// * "step=10, skipped=2, lr=[...], mom=[...]": DeepSpeed engine, _report_progress.
// * "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0": Apex
//   amp/handle.py.
// * "gradient overflow detected, ignoring gradient, setting loss scale to: 64.0": fairseq
// trainer.py
//   and optim/dynamic_loss_scaler.py.
// * " iteration       10/     100 | ... | learning rate: 1.500E-04 | ... | lm loss: 1.0E+01 | loss
//   scale: 65536.0 | ... | number of skipped iterations:   1 | number of nan iterations:   0 |":
//   Megatron-LM training_log(); GPT-NeoX and Megatron-DeepSpeed print the same names. The scale is
//   asked for after the step.
#include "analyzers/readers/console_lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>

#include "analyzers/readers/text_lines.hpp"

namespace halfscope::readers {
namespace {

/// The text after a mark, without what is before the next word; empty where the mark is missing.
std::optional<std::string_view> after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + mark.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" :")));
  return rest;
}

/// The end of the number at the beginning of a text; a sentence's full stop, or the text of another
/// message, is not of it. 0 where there is none.
std::size_t end_of_number(std::string_view text) {
  double number = 0;
  const bool sign = text.starts_with('+');  // from_chars takes none
  const auto [end, error] =
      std::from_chars(text.data() + (sign ? 1 : 0), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  const auto length = static_cast<std::size_t>(end - text.data());
  const bool word = length < text.size() && std::islower(static_cast<unsigned char>(text[length]));
  return word && !std::isfinite(number) ? 0 : length;  // "info" is no number
}

std::optional<double> number_after(std::string_view line, std::string_view mark) {
  const auto rest = after(line, mark);
  return rest ? number_in(rest->substr(0, end_of_number(*rest))) : std::nullopt;
}

/// 0 is what is left of a loss scale after it collapsed.
bool can_be_scale(double scale) { return std::isfinite(scale) && scale >= 0; }

constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

std::optional<std::int64_t> count_after(std::string_view line, std::string_view mark) {
  const auto rest = after(line, mark);
  if (!rest) return std::nullopt;
  const auto count = integer_in(rest->substr(0, rest->find_first_not_of("0123456789")));
  return count && *count <= kMostSteps ? count : std::nullopt;
}

/// "Rank 3", or mpirun's "[1,3]<stdout>:" before a line.
std::optional<int> rank_of(std::string_view line) {
  auto rank = count_after(line, "Rank ");
  const std::size_t mark = line.find("]<std");
  if (!rank && line.starts_with('[') && mark != std::string_view::npos) {
    const std::size_t comma = line.substr(0, mark).find(',');
    if (comma != std::string_view::npos)
      rank = integer_in(line.substr(comma + 1, mark - comma - 1));
  }
  if (!rank || *rank < 0 || *rank > 1'000'000'000) return std::nullopt;
  return static_cast<int>(*rank);
}

std::optional<Overflow> overflow_of(std::string_view line) {
  Overflow found;
  if (const auto attempted = number_after(line, "Attempted loss scale")) {
    found.attempted = attempted;
    found.next = number_after(line, "reducing to ");
    if (!found.next && line.find("hysteresis is") != std::string_view::npos) found.next = attempted;
    if (!found.next) return std::nullopt;
  } else if (line.find("Gradient overflow.") != std::string_view::npos) {
    found.next = number_after(line, "educing loss scale to ");
    found.scaler = static_cast<int>(
        std::min<std::int64_t>(1000, count_after(line, "loss scaler ").value_or(0)));
  } else if (line.find("verflow detected") != std::string_view::npos) {
    found.next = number_after(line, "setting loss scale to");
  }
  if (!found.next) return std::nullopt;
  found.rank = rank_of(line);
  return found;
}

std::optional<Periodic> deepspeed_progress(std::string_view line) {
  const std::size_t at = line.find("step=");
  if (at == std::string_view::npos) return std::nullopt;
  const bool word = at == 0 || line[at - 1] == ' ' || line[at - 1] == ']';
  const auto steps = count_after(line, "step=");
  const auto skipped = count_after(line, ", skipped=");
  if (!word || !steps || !skipped) return std::nullopt;
  Periodic found;
  found.steps = *steps;
  found.skipped = skipped;
  found.learning_rate = number_after(line, ", lr=[");
  return found;
}

std::optional<Periodic> megatron_progress(std::string_view line) {
  constexpr std::string_view kSkipped = "number of skipped iterations:";
  const std::size_t at = line.find(" iteration ");
  if (at == std::string_view::npos || line.find(kSkipped) == std::string_view::npos) {
    return std::nullopt;
  }
  const auto steps = count_after(line.substr(at), "iteration ");
  if (!steps) return std::nullopt;
  Periodic found;
  found.steps = *steps;
  found.of_interval = true;
  found.skipped = count_after(line, kSkipped);
  found.loss_scale = number_after(line, "| loss scale:");
  found.loss = number_after(line, "lm loss:");
  if (!found.loss) found.loss = number_after(line, "lm_loss:");
  found.learning_rate = number_after(line, "learning rate:");
  return found;
}

/// Takes away what can be no loss scale, and keeps it to be told.
void check_scale(std::optional<double>& scale, std::optional<double>& odd) {
  if (!scale || (can_be_scale(*scale) && *scale != 0)) return;
  if (!odd) odd = scale;
  if (!can_be_scale(*scale)) scale.reset();
}

}  // namespace

ConsoleLine console_line(std::string_view line) {
  ConsoleLine found;
  if (line.find("verflow") != std::string_view::npos ||
      line.find("OVERFLOW!") != std::string_view::npos) {
    found.overflow = overflow_of(line);
    if (const auto iteration = count_after(line, "Grad overflow on iteration")) {
      found.iteration = OverflowIteration{*iteration};
    }
  }
  found.periodic = deepspeed_progress(line);
  if (!found.periodic) found.periodic = megatron_progress(line);
  if (found.overflow) check_scale(found.overflow->next, found.odd_scale);
  if (found.overflow) check_scale(found.overflow->attempted, found.odd_scale);
  if (found.periodic) check_scale(found.periodic->loss_scale, found.odd_scale);
  return found;
}

std::vector<std::string_view> messages_in(std::string_view line) {
  // What all these messages end with, before a number, and where each stands next.
  constexpr std::string_view ends[] = {"educing loss scale to ", "reducing to ",
                                       "educing hysteresis to ", "setting loss scale to"};
  std::array<std::size_t, std::size(ends)> next{};
  const auto next_end = [&](std::size_t from) {
    std::size_t first = std::string_view::npos;
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (next[i] < from || from == 0) next[i] = line.find(ends[i], from);
      if (next[i] != std::string_view::npos) first = std::min(first, next[i] + ends[i].size());
    }
    return first;
  };
  std::vector<std::string_view> messages;
  std::size_t begin = 0;
  for (std::size_t words = next_end(0); words != std::string_view::npos;) {
    const std::size_t number = std::min(line.find_first_not_of(" :", words), line.size());
    const std::size_t end = number + end_of_number(line.substr(number));
    words = next_end(end);
    if (words == std::string_view::npos) break;
    messages.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  messages.push_back(line.substr(begin));
  return messages;
}

}  // namespace halfscope::readers
