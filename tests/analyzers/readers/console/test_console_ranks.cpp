// SPDX-License-Identifier: Apache-2.0
// How many steps were skipped, where several ranks print each message: ranges hold the truth.
#include "analyzers/readers/console/console_ranks.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "analyzers/readers/kinds.hpp"
#include "catch.hpp"
#include "temp_folder.hpp"

namespace halfscope::analyzers::readers::test_console_ranks {
namespace {

/// Skipped steps as a log's range of them, with those that perhaps were skipped.
Interval skipped_in(const std::string& text, std::optional<std::uint64_t> ranks) {
  const test::TempFolder folder;
  Interval count;
  frames::Visitor visit;
  visit.skipped = [&](const frames::SkippedSteps& steps) { count += steps.count; };
  visit.scalars = [&](const log::StepScalars& s) { count += s.found_inf.value_or(false) ? 1 : 0; };
  visit.kind = [&](const frames::LogKind& kind) { count += Interval(0, kind.perhaps_skipped); };
  frames::Selection selection;
  selection.ranks = ranks;
  frames::Notes notes;
  for_each_frame(folder.write("out.log", text), selection, visit, notes, {});
  return count;
}

/// The message of a step whose scale was halved so often before.
std::string message(int halvings) {
  return fmt::format("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}\n",
                     1U << (30 - halvings));
}

/// What stands after the message of a rank at a step.
using After = std::function<std::string(int step, int rank)>;

std::string printed(int steps, int ranks, const After& after) {
  std::string text;
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) text += message(step) + after(step, rank);
  }
  return text;
}

/// Each rank is a step ahead of the next one: messages of two steps are mixed.
std::string mixed(int steps, int ranks) {
  std::string text;
  for (int at = 0; at <= steps; ++at) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int step = rank % 2 == 0 ? at : at - 1;
      if (step >= 0 && step < steps) text += message(step);
    }
  }
  return text;
}

/// Two of a step, one within the other.
std::string torn(int halvings) {
  std::string outer = message(halvings), inner = outer;
  inner.pop_back();
  return outer.insert(outer.size() - 3, inner);
}

After once(int at_step, int at_rank, const std::string& line) {
  return [=](int step, int rank) { return step == at_step && rank == at_rank ? line : ""; };
}

std::string nothing(int /*step*/, int /*rank*/) { return ""; }

std::string warning(int /*step*/, int rank) { return rank == 3 ? "a warning\n" : ""; }

std::string progress(int step, int rank) {
  return rank == 2 ? fmt::format(" iteration {}/ 100 | lm loss: 2.5E+00 |\n", step + 2) : "";
}

/// The messages of one step stand within those of the one before, and lines in both.
const std::string kLateWithin = message(0) + progress(1, 2) + message(1) + message(1) +
                                progress(3, 2) + message(1) + message(1) + message(0) +
                                progress(4, 2) + message(0) + message(0);

TEST_CASE("A range of skipped steps holds their number, however ranks print them", "[table]") {
  struct Row {
    const char* what;
    std::string text;
    std::uint64_t skipped;
    std::optional<std::uint64_t> ranks;  ///< --ranks
    Interval told;
  };
  const std::string cut = printed(4, 8, nothing).substr(5 * message(0).size());
  const Row rows[] = {
      {"384 ranks, each run whole", printed(18, 384, nothing), 18, {}, 18},
      {"384 ranks, a line within one run", printed(18, 384, once(3, 127, "a\n")), 18, {}, 18},
      {"8 ranks, a line within one run", printed(3, 8, once(1, 2, "a\n")), 3, {}, 3},
      {"a line in the middle of each run", printed(3, 8, warning), 3, {}, 3},
      {"8 ranks, a line within one run, asked", printed(3, 8, once(1, 2, "a\n")), 3, 8, 3},
      {"a line with a step within each run", printed(3, 8, progress), 3, {}, 3},
      {"messages of two steps are mixed", mixed(18, 384), 18, {}, 18},
      {"messages of two steps are mixed, asked", mixed(3, 8), 3, 8, 3},
      {"an excerpt that begins in a run, asked", cut, 4, 8, {4, 6}},
      {"one rank", printed(5, 1, nothing), 5, {}, 5},
      {"one of two ranks is late", message(0) + progress(5, 2) + message(0), 1, {}, {1, 2}},
      {"one rank, at its minimum at last",
       printed(5, 1, nothing) + message(4) + progress(8, 2) + message(4),
       7,
       {},
       7},
      {"messages within one another, of all steps but one",
       torn(0) + torn(1) + message(2) + message(2) + torn(3),
       4,
       {},
       {1, 8}},
      {"unnamed messages beside those of one rank",
       message(0) + "[rank1]: " + message(0) + message(1) + "[rank1]: " + message(1),
       2,
       {},
       2},
      {"a line of each step within a late message of the next one", kLateWithin, 2, {}, {2, 8}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    const Interval told = skipped_in(row.text, row.ranks);
    CHECK(told == row.told);
    CHECK((told.low <= row.skipped && row.skipped <= told.high));
  }
}

/// A run's log: of each skipped step some ranks print their message up to two lines late.
struct Drawn {
  std::string text;
  std::uint64_t skipped = 0;
};

std::string line_of(int kind, int step, double scale, int skipped) {
  if (kind == 0) return fmt::format("{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': {}}}\n", step);
  return fmt::format(" iteration {}/ 100 | lm loss: 2.5E+00 | loss scale: {:.1f} |{}\n", step,
                     scale,
                     kind == 1 ? "" : fmt::format(" number of skipped iterations: {} |", skipped));
}

Drawn drawn(std::mt19937_64& random) {
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  constexpr int kRanks[] = {1, 2, 3, 4, 8, 16};
  const int ranks = kRanks[below(6)], kind = below(3), often = 2 + below(12), most_late = below(3);
  const bool apex = below(2) == 0;
  Drawn log;
  std::map<int, std::string> late;  // by the number of lines before it
  double scale = 1 << 30;
  int lines = 0, skipped = 0;
  for (int step = 1; step <= 60; ++step) {
    const bool skips = below(often) == 0 && scale > 16;
    if (skips) {
      ++log.skipped;
      ++skipped;
      scale /= 2;
      const std::string text =
          apex ? fmt::format(
                     "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale "
                     "to {}\n",
                     scale)
               : fmt::format(
                     "[deepspeed] OVERFLOW! Skipping step. Attempted loss scale: {}, "
                     "reducing to {}\n",
                     2 * scale, scale);
      const int in_time = most_late == 0 || below(2) == 0 ? ranks : below(ranks + 1);
      for (int rank = 0; rank < ranks; ++rank) {
        (rank < in_time ? log.text : late[lines + 1 + below(most_late + 1)]) += text;
      }
    }
    if (!skips || kind == 2) {
      log.text += line_of(kind, step, scale, std::exchange(skipped, 0));
      log.text += late[lines++];
    }
  }
  for (const auto& [after, text] : late) {
    if (after >= lines) log.text += text;
  }
  return log;
}

TEST_CASE("A range of skipped steps holds their number in drawn logs") {
  std::mt19937_64 random(1);  // the same logs each time
  for (int i = 0; i < 600; ++i) {
    const Drawn log = drawn(random);
    const Interval told = skipped_in(log.text, {});
    INFO(i << ": " << told.low << " to " << told.high << "\n" << log.text);
    REQUIRE((told.low <= log.skipped && log.skipped <= told.high));
  }
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_console_ranks
