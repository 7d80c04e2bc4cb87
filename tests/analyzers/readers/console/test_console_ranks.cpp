// SPDX-License-Identifier: Apache-2.0
// How many steps were skipped, where several ranks print each message: ranges hold the truth.
#include "analyzers/readers/console/console_ranks.hpp"

#include <fmt/format.h>

#include <functional>
#include <string>

#include "analyzers/skipped_in.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::readers::test_console_ranks {
namespace {

using test::skipped_in;

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

/// Messages of two loss scalers, by each of two ranks in turn.
std::string of_two_scalers(int steps) {
  std::string text;
  for (int step = 0; step < steps; ++step) {
    std::string other = message(step);
    other.replace(other.find("scaler 0"), 8, "scaler 1");
    text += message(step) + other + message(step) + other;
  }
  return text;
}

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
      {"two ranks with two loss scalers each", of_two_scalers(7), 7, {}, 7},
      {"a line of each step within a late message of the next one", kLateWithin, 2, {}, {2, 6}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    const Interval told = skipped_in(row.text, row.ranks);
    CHECK(told == row.told);
    CHECK((told.low <= row.skipped && row.skipped <= told.high));
  }
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_console_ranks
