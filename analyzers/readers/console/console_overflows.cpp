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
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

constexpr std::string_view kNamed = "Grad overflow on iteration";

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

/// "32768.0*0.5", as Paddle prints what the scale becomes.
std::optional<double> product_after(const Line& line, std::string_view mark) {
  const auto rest = after(line, mark);
  if (!rest) return std::nullopt;
  const std::size_t end = end_of_number(*rest);
  const auto first = common::number_in(rest->substr(0, end));
  if (!first || !rest->substr(end).starts_with('*')) return first;
  const std::string_view factor = rest->substr(end + 1);
  const auto second = common::number_in(factor.substr(0, end_of_number(factor)));
  return second ? std::optional(*first * *second) : std::nullopt;
}

/// A message that tells no more than what the scale becomes.
std::optional<Overflow> overflow_to(const Line& line, std::string_view mark) {
  Overflow found;
  found.next = number_after(line, mark);
  return found.next ? std::optional(found) : std::nullopt;
}

/// Of a line with "MARK65536 to 32768": both scales.
void put_fall(const Line& line, std::string_view mark, Overflow& to) {
  const auto from = after(line, mark);
  if (!from) return;
  to.attempted = number_after(line, mark);
  to.next = number_after(*from, " to ");
}

std::optional<Overflow> attempted_overflow(const Line& line) {
  Overflow found;
  if (!has(line, "verflow") && !has(line, "OVERFLOW!")) return std::nullopt;
  found.attempted = number_after(line, "Attempted loss scale");
  found.next = number_after(line, "reducing to ");
  if (!found.next && has(line, "hysteresis is")) found.next = found.attempted;
  if (!found.attempted) return std::nullopt;
  // Old Megatron-LM ends there; a line of others that ends there was cut.
  const auto rest = after(line, "Attempted loss scale");
  const bool ends = rest->find_first_not_of("0123456789. ") == std::string_view::npos;
  int exponent = 0;
  const bool whole = ends && std::frexp(*found.attempted, &exponent) == 0.5;
  return found.next || whole ? std::optional(found) : std::nullopt;
}

/// What a line tells of the scale after one that named the iteration.
std::optional<Overflow> of_named(const Line& line) {
  Overflow found;
  found.of_named = true;
  constexpr std::string_view kFrom = "educing dynamic loss scale from ";
  if (has(line, kFrom)) {
    put_fall(line, kFrom, found);
    return found.attempted && found.next ? std::optional(found) : std::nullopt;
  }
  found.attempted = number_after(line, "Using dynamic loss scale of");
  return found.attempted ? std::optional(found) : std::nullopt;
}

std::optional<Overflow> apex_overflow(const Line& line) {
  auto found = overflow_to(line, "educing loss scale to ");
  const std::int64_t scaler = count_after(line, "loss scaler ").value_or(0);
  if (found) found->scaler = static_cast<int>(std::min<std::int64_t>(1000, scaler));
  return found;
}

std::optional<Overflow> fairseq_overflow(const Line& line) {
  return overflow_to(line, "setting loss scale to");
}

std::optional<Overflow> paddle_overflow(const Line& line) {
  Overflow found;
  found.attempted = number_after(line, "current scale is");
  found.next = product_after(line, "decrease to");
  return found.attempted && found.next ? std::optional(found) : std::nullopt;
}

std::optional<Overflow> paddlenlp_overflow(const Line& line) {
  Overflow found;
  found.confirms = true;
  found.attempted = number_after(line, "scale_before:");
  found.next = number_after(line, "scale_after:");
  return found.attempted && found.next ? std::optional(found) : std::nullopt;
}

std::optional<Overflow> fairseq2_overflow(const Line& line) {
  Overflow found;
  constexpr std::string_view kFrom = "decreasing loss scale from ";
  if (has(line, kFrom)) {
    put_fall(line, kFrom, found);
  } else {
    found.attempted = found.next = number_after(line, "already at minimum (");
  }
  return found.attempted && found.next ? std::optional(found) : std::nullopt;
}

std::optional<Overflow> mindyolo_overflow(const Line& line) {
  return overflow_to(line, "loss scale adjust to");
}

std::optional<Overflow> colossal_scale(const Line& line) {
  return overflow_to(line, "the loss scale is adjusted to");
}

std::optional<Overflow> colossal_overflow(const Line&) {
  Overflow found;
  found.bare = true;
  return found;
}

/// Whether a line says in its own words that an update is skipped for its gradients: "The grad norm
/// is nan. Skipping updating the model."
bool tells_skip(const Line& line) {
  constexpr std::string_view kGradients[] = {"grad", "Grad"};
  constexpr std::string_view kCauses[] = {"nan",  "NaN",  "Nan",      "inf ",       "Inf",
                                          "inf,", "inf.", "overflow", "non-finite", "not finite"};
  constexpr std::string_view kVerbs[] = {"kipping", "kip step",    "kip update",
                                         "gnoring", "ot updating", "rop step"};
  const auto any = [&](const auto& words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return has(line, word); });
  };
  return any(kVerbs) && any(kGradients) && any(kCauses);
}

/// A line that has the mark is of that form.
struct OverflowForm {
  std::string_view mark;
  std::optional<Overflow> (*read)(const Line& line);
};
constexpr OverflowForm kOverflowForms[] = {{"Attempted loss scale", attempted_overflow},
                                           {"Gradient overflow", apex_overflow},
                                           {"verflow detected at step", fairseq2_overflow},
                                           {"verflow detected", fairseq_overflow},
                                           {"overflow, drop step", mindyolo_overflow},
                                           {"dynamic loss scale", of_named},
                                           {"Found inf or nan, current scale", paddle_overflow},
                                           {"optimizer not run", paddlenlp_overflow},
                                           {"Overflow occurs, the loss scale", colossal_scale},
                                           {"Found overflow. Skip step", colossal_overflow}};

}  // namespace

std::optional<Overflow> overflow_of(const Line& line) {
  const bool skip = tells_skip(line);
  if (!skip && !has(line, "scale") && !has(line, "verflow")) return std::nullopt;
  for (const OverflowForm& form : kOverflowForms) {
    if (!has(line, form.mark)) continue;
    auto found = form.read(line);
    if (!found) continue;
    found->rank = rank_of(line);
    return found;
  }
  if (!skip) return std::nullopt;
  Overflow found;
  found.bare = true;
  found.rank = rank_of(line);
  return found;
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
  if (!has(line, "overflow, still update")) return std::nullopt;
  return AppliedOverflow{number_after(line, "loss scale adjust to")};
}

bool ends_at_minimum(const Line& line) {
  // Of DeepSpeed, of fairseq2 twice, and of icefall.
  constexpr std::string_view kMarks[] = {
      "loss scale already at minimum", "loss scale is already at minimum",
      "gradients are scaled down to minimum", "grad_scale is too small, exiting"};
  if (!has(line, "minimum") && !has(line, "too small")) return false;
  return std::ranges::any_of(kMarks, [&](std::string_view mark) { return has(line, mark); });
}

std::vector<std::string_view> messages_in(std::string_view line) {
  // What all these messages end with, before a number, and where each stands next.
  constexpr std::string_view ends[] = {"educing loss scale to ", "reducing to ",
                                       "educing hysteresis to ", "setting loss scale to",
                                       "loss scale is adjusted to "};
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

}  // namespace halfscope::analyzers::readers::console
