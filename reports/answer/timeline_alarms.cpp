// SPDX-License-Identifier: Apache-2.0
// Alarms from a log's scalars and skipped steps: the first sentences of an answer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"

namespace halfscope::reports::answer {

using analyzers::scale_history::Nonfinite;
using analyzers::scale_history::Quantity;
using analyzers::scale_history::RunState;
using analyzers::scale_history::TimelineFacts;

namespace {

std::string_view subject_of(Quantity quantity) {
  if (quantity == Quantity::evaluation_loss) return "The loss of evaluations";
  return quantity == Quantity::loss ? "The loss" : "The gradient norm";
}

std::string_view step_name(const TimelineFacts& facts) { return facts.numbered ? "entry" : "step"; }

std::string_view steps_name(const TimelineFacts& facts) {
  return facts.numbered ? "entries" : "steps";
}

/// Returns " (line 71)", the line in the file, if the step's number may differ from the line's.
std::string line_text(std::int64_t step, const Nonfinite& found, const TimelineFacts& facts) {
  if (found.of == Quantity::evaluation_loss) return "";
  if (!facts.nonfinite_line || facts.nonfinite_line->step != step) return "";
  return fmt::format(" (line {})", facts.nonfinite_line->line);
}

/// Returns the steps one by one if they are few, else the range.
std::string where_text(std::int64_t first, std::int64_t last, std::uint64_t count,
                       const Nonfinite& found, const TimelineFacts& facts) {
  const std::vector<std::int64_t>& few = found.few;
  if (first == last)
    return fmt::format("at {} {}{}", step_name(facts), first, line_text(first, found, facts));
  const std::size_t from = few.size() - std::min<std::size_t>(few.size(), count);
  if (count <= few.size() && few[from] == first && few.back() == last) {
    const std::span<const std::int64_t> all(few.begin() + static_cast<std::ptrdiff_t>(from),
                                            few.end() - 1);
    return fmt::format("at {} {} and {}", steps_name(facts), fmt::join(all, ", "), last);
  }
  return fmt::format("from {} {}{} to {}, at {} printed {}", step_name(facts), first,
                     line_text(first, found, facts), last, count_text(count), steps_name(facts));
}

/// Returns since which step values are NaN to the end of the log, and earlier steps with NaN.
std::string lasting_text(const Nonfinite& found, const TimelineFacts& facts) {
  std::string out =
      fmt::format("{} is NaN or infinite {}", subject_of(found.of),
                  where_text(*found.since, found.last_since, found.count_since, found, facts));
  const std::uint64_t before = found.count - found.count_since - found.at_skips;
  if (before == 1) {
    out += fmt::format("; that of {} {} was followed by finite ones, as at a skipped step",
                       step_name(facts), found.last_before);
  } else if (before > 1) {
    out += fmt::format(
        "; those of {} {} before, {} to {}, were followed by finite ones, as at "
        "skipped steps",
        count_text(before), steps_name(facts), found.first, found.last_before);
  }
  return out;
}

std::string nonfinite_text(const Nonfinite& found, const TimelineFacts& facts) {
  if (found.of == Quantity::nan_iterations) {
    return fmt::format("{} had NaN, printed {} {}.", plural(found.count, "iteration"),
                       found.first == found.last ? "at step" : "between steps",
                       found.first == found.last
                           ? std::to_string(found.first)
                           : fmt::format("{} and {}", found.first, found.last));
  }
  std::string out =
      found.since ? lasting_text(found, facts)
                  : fmt::format("{} is NaN or infinite {}", subject_of(found.of),
                                where_text(found.first, found.last, found.count, found, facts));
  if (found.at_skips > 0) {
    out += fmt::format("; {} {} skipped",
                       plural(found.at_skips, found.since ? "other such step" : "such step"),
                       found.at_skips == 1 ? "was" : "were");
  }
  return out + ".";
}

/// Returns the parts of the loss that became NaN or infinite first. Empty if the log names none.
std::string part_text(const TimelineFacts& facts) {
  if (!facts.bad_loss_part || facts.bad_loss_part->of < 2) return {};
  const analyzers::frames::BadLossPart& part = *facts.bad_loss_part;
  const std::string where = fmt::format("at {} {}", step_name(facts), part.step);
  if (part.bad == part.of) {
    return fmt::format("All {} parts of the loss are NaN or infinite {}.", count_text(part.of),
                       where);
  }
  if (part.bad == 1) {
    return fmt::format(
        "{} is the first of its {} parts to be NaN or infinite, {}; the others are "
        "finite there.",
        part.name, count_text(part.of), where);
  }
  return fmt::format("{} and {} of its {} parts are the first to be NaN or infinite, {}.",
                     part.name, plural(part.bad - 1, "other"), count_text(part.of), where);
}

std::string in_vain_text(const TimelineFacts& facts) {
  const analyzers::frames::SkippedSteps& skips = *facts.in_vain;
  const std::string scale =
      facts.scale_last ? fmt::format(", the last at loss scale {}", scale_name(*facts.scale_last))
                       : "";
  if (!skips.last) {
    return fmt::format("The log ends with {}{}.{}", plural(skips.count.low, "skipped step"), scale,
                       skips.first > 1 ? fmt::format(" They come after step {}: the log does not "
                                                     "show how many steps between were applied.",
                                                     skips.first - 1)
                                       : "");
  }
  if (!facts.all_in_vain()) {
    return fmt::format("{} of the steps {} to {} were skipped{}: a lower scale did not help.",
                       count_text(skips.count), skips.first, *skips.last, scale);
  }
  return fmt::format("Every step from {} to {} was skipped{}: no update was applied {}.",
                     skips.first, *skips.last, scale,
                     skips.first > 1 || (facts.first && skips.first > *facts.first)
                         ? fmt::format("after step {}", skips.first - 1)
                         : "in this log");
}

constexpr std::string_view kNoCure = "hold NaN or infinities that no loss scale cures";

/// Returns the action for NaN or infinities that last to the end of the log.
std::string broken_action(const TimelineFacts& facts) {
  auto last = facts.last_finite();
  if (facts.numbered || last <= facts.first) last.reset();
  return fmt::format(
      "This lasts to the end of the log, and no loss scale cures it: {}look for the first NaN or "
      "infinity in the model, the data or the learning rate.",
      last ? fmt::format("go back to a checkpoint from before step {}, the last one whose loss and "
                         "gradient norm are finite, and ",
                         *last)
           : "");
}

std::string action_of(const TimelineFacts& facts) {
  if (facts.in_vain || facts.ended_at_minimum) {
    const bool lower = facts.scale_last.value_or(1) > 1;
    return fmt::format(
        "{} gradients {}: go back to a checkpoint from before, and look for them in "
        "the model, the data or the learning rate.",
        lower ? "If the loss scale could not fall further, lower its minimum, or "
                "the static scale. If steps are skipped all the same, the"
              : "The",
        kNoCure);
  }
  if (facts.state == RunState::broken) {
    return broken_action(facts);
  }
  if (std::ranges::all_of(facts.nonfinite,
                          [](const Nonfinite& found) { return found.at_skips == found.count; })) {
    // NaN in a part of the loss, or the loss is missing
    return "Look for NaN or infinities in the loss.";
  }
  const bool of_training = std::ranges::any_of(facts.nonfinite, [](const Nonfinite& found) {
    return found.of != Quantity::evaluation_loss && found.at_skips < found.count;
  });
  if (!of_training) {
    return fmt::format("{}: look at the data and the precision of the evaluation.",
                       facts.losses > 0 ? "All printed training values are finite"
                                        : "The log has no loss of the training");
  }
  const bool at_the_end = std::ranges::any_of(facts.nonfinite, [](const Nonfinite& found) {
    return found.of != Quantity::evaluation_loss && found.since;
  });
  return at_the_end
             ? "The log ends there. A dynamic loss scale skips such a step now and then; look "
               "at the steps that follow."
             : "Later ones are finite, so no NaN reached the weights: a dynamic loss scale skips "
               "such a step.";
}

/// Returns share_of_steps() with an upper-case letter at its start.
std::string share_first(const TimelineFacts& facts) {
  std::string text = share_of_steps(facts);
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

Finding slow_start_alarm(const TimelineFacts& facts) {
  const analyzers::frames::SkippedSteps& start = *facts.slow_start;
  const bool all = facts.skipped_in_all == start.count;
  const std::string from = start.scale_from ? "from " + scale_name(*start.scale_from) + " " : "";
  const std::string down = start.scale_to ? fmt::format("the loss scale came down {}to {}", from,
                                                        scale_name(*start.scale_to))
                                          : "";
  const std::string place = fmt::format("{} {}", step_name(facts), *start.last);
  const std::string skipped =
      facts.skips_told ? fmt::format("{}, {} at the start, up to {}{}{}", share_first(facts),
                                     all ? "all" : count_text(start.count) + " of them", place,
                                     down.empty() ? "" : ", while ", down)
                       : fmt::format("At the start {} by {}", down, place);
  const auto init = facts.settings ? std::optional(facts.settings->init) : start.scale_to;
  return {
      facts.attempts && facts.few_skipped() ? Severity::note : Severity::warning,
      skipped + (down.empty() ? ": the loss scale may start too high." : ": it starts too high."),
      init && *init > 0 ? fmt::format("Start it at {}.", scale_name(*init))
                        : "Start it lower: init_scale, in DeepSpeed initial_scale_power."};
}

constexpr std::string_view kAtOne =
    "There a lower scale does not help: look for NaN, infinities or gradients beyond 65504 in the "
    "model, the data or the learning rate.";

Finding at_one_alarm(const TimelineFacts& facts) {
  return {Severity::warning,
          fmt::format("{}, {} of them at a loss scale of 1 or less.", share_first(facts),
                      count_text(facts.skipped_at_one)),
          std::string(kAtOne)};
}

Finding many_skips_alarm(const TimelineFacts& facts) {
  if (facts.scale_first && facts.changes.empty()) {
    return {Severity::warning,
            fmt::format("{}, and the loss scale stayed at {}.", share_first(facts),
                        scale_name(*facts.scale_first)),
            *facts.scale_first <= 1 ? std::string(kAtOne)
                                    : "Use a dynamic loss scale, or a smaller static one; of a "
                                      "dynamic one, lower the minimum."};
  }
  return {Severity::warning, share_first(facts) + ".",
          "A dynamic loss scale costs 2 % of the steps at the most. If it grows and falls by "
          "turns, let it grow less often (growth_interval, loss_scale_window); else look for NaN "
          "and infinities in the model, the data or the learning rate."};
}

Finding untold_share_alarm(const TimelineFacts& facts) {
  return {Severity::warning,
          share_first(facts) + "; the log does not say of how many" +
              (facts.scale_first ? "." : ", nor at which loss scale."),
          "A few at the start, and one in some hundred, are what a dynamic loss scale costs; more "
          "are not."};
}

/// Returns an alarm on the number of skipped steps; empty if it is normal or already explained.
std::optional<Finding> skips_alarm(const TimelineFacts& facts) {
  const bool said = facts.in_vain || facts.collapse() != nullptr;
  if (said || (facts.skipped_in_all.high == 0 && facts.halvings.low == 0)) return {};
  if (facts.skipped_at_one > 0) return at_one_alarm(facts);
  if (facts.slow_start) return slow_start_alarm(facts);
  if (facts.steps_at_least > 0 && facts.few_skipped()) return {};
  if (!facts.skips_told && !facts.many_skipped()) return {};  // state_finding() says it
  return facts.attempts ? many_skips_alarm(facts) : untold_share_alarm(facts);
}

/// Returns an alarm on scalers whose messages are not counted. Empty if there are none.
std::optional<Finding> scalers_alarm(const TimelineFacts& facts) {
  if (facts.other_scalers.empty()) return {};
  std::vector<std::string> texts;
  bool any_dead = false;
  for (const analyzers::frames::OtherScaler& other : facts.other_scalers) {
    const bool dead = other.scale_last.value_or(2) <= 1;
    texts.push_back(fmt::format(
        "Loss scaler {} {}has {} of skipped steps{}.", other.scaler, dead ? "is dead: it " : "",
        plural(other.messages, "message"),
        other.scale_last ? ", down to loss scale " + scale_name(*other.scale_last) : ""));
    any_dead = any_dead || dead;
  }
  const std::string dead =
      any_dead ? fmt::format("A scale of 1 or less scales nothing: the gradients of that loss {}. ",
                             kNoCure)
               : "";
  return Finding{Severity::warning, fmt::format("{}", fmt::join(texts, " ")),
                 dead + fmt::format("All else here is of loss scaler {} alone: give the messages "
                                    "of each in a file.",
                                    facts.scaler)};
}

/// Returns an alarm for a log that begins after the collapse. Empty for other logs.
std::optional<Finding> below_one_alarm(const TimelineFacts& facts) {
  if (!facts.below_one()) return {};
  return Finding{
      Severity::warning,
      fmt::format("The loss scale is {} or less in the whole log: it collapsed before the first "
                  "line.",
                  scale_name(*facts.scale_most)),
      "A scale below 1 only makes gradients smaller: they held NaN or infinities at every scale "
      "before. Go back to a checkpoint from before, and look for these in the model, the data "
      "or the learning rate."};
}

/// Returns an alarm on NaN, infinities and steps skipped in vain. Empty if there are none.
std::optional<Finding> broken_alarm(const TimelineFacts& facts) {
  if (!facts.alarming()) return {};
  std::vector<std::string> texts;
  if (facts.in_vain) texts.push_back(in_vain_text(facts));
  if (facts.ended_at_minimum) {
    texts.emplace_back(
        "The run ended because its loss scale was at the minimum and gradients still overflowed.");
  }
  for (const Nonfinite& found : facts.nonfinite) {
    if (found.at_skips < found.count) texts.push_back(nonfinite_text(found, facts));
    if (found.of == Quantity::loss && facts.bad_loss_part) texts.push_back(part_text(facts));
  }
  const bool loss_broke =
      std::ranges::find(facts.nonfinite, Quantity::loss, &Nonfinite::of) != facts.nonfinite.end();
  if (facts.bad_loss_part && !loss_broke) {
    texts.push_back(
        fmt::format("{}, a part of the loss, is NaN or infinite from {} {}, although the total is "
                    "finite.",
                    facts.bad_loss_part->name, step_name(facts), facts.bad_loss_part->step));
  }
  if (facts.loss_missing_since) {
    texts.push_back(
        fmt::format("The loss is not printed from step {} on, although it was printed at each step "
                    "before: some programs leave out a loss that is NaN.",
                    *facts.loss_missing_since));
  }
  std::erase(texts, "");
  return Finding{facts.state == RunState::broken ? Severity::breaks : Severity::warning,
                 fmt::format("{}", fmt::join(texts, " ")), action_of(facts)};
}

}  // namespace

std::vector<Finding> scale_alarms(const TimelineFacts& facts, analyzers::frames::Tool tool) {
  std::vector<Finding> all;
  for (auto& alarm : {broken_alarm(facts), below_one_alarm(facts), scalers_alarm(facts),
                      skips_alarm(facts), jump_finding(facts, tool)}) {
    if (alarm) all.push_back(*alarm);
  }
  return all;
}

}  // namespace halfscope::reports::answer
