// SPDX-License-Identifier: Apache-2.0
// Drawn logs of eight printers: one to sixteen ranks, messages that are late, torn lines, excerpts
// that are cut anywhere. The range of skipped steps holds their number.
#include <fmt/format.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/skipped_in.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::readers::test_skipped_ranges {
namespace {

/// What a printer says of a step that lowers the scale from `from` to `to`.
using Says = std::string (*)(double from, double to);
constexpr Says kPrinters[] = {
    [](double, double to) {
      return fmt::format(
          "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {:.1f}", to);
    },
    [](double from, double to) {
      return fmt::format(
          "[deepspeed] OVERFLOW! Skipping step. Attempted loss scale: {}, reducing to {}", from,
          to);
    },
    [](double from, double to) {
      return fmt::format(
          "OVERFLOW! Skipping step. Attempted loss scale: {:.1f}, reducing to {:.1f}", from, to);
    },
    [](double from, double to) {
      return fmt::format(
          "Overflow detected. Skipping step. Attempted loss scale: {}, reducing to {}", from, to);
    },
    [](double, double to) {
      return fmt::format(
          "gradient overflow detected, ignoring gradient, setting loss scale to: {:.1f}", to);
    },
    [](double from, double to) {
      return fmt::format("Found inf or nan, current scale is: {:.1f}, decrease to: {:.1f}*{:.1f}",
                         from, from, to / from);
    },
    [](double, double to) {
      return fmt::format("overflow, drop step, loss scale adjust to {:.1f}", to);
    },
    [](double from, double to) {
      return fmt::format(
          "Overflow detected at step 7, ignoring gradient, decreasing loss scale from {} to {}.",
          from, to);
    },
};

/// Lines of progress: none has a counter, each has one, or dictionaries without a step.
enum class Lines : std::uint8_t { plain, counted, entries };

struct Line {
  std::string text;
  int message = 0;  ///< the skipped step that it tells of
  int counter = 0;  ///< the step, where it counts skipped ones
  int counts = 0;   ///< the skipped step that its counter counts
  bool torn = false;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  bool once_in(int often) { return below(often) == 0; }

 private:
  std::mt19937_64 random_;
};

std::string line_of(Lines lines, int step, double scale, bool skipped) {
  if (lines == Lines::entries) {
    return fmt::format("{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': {}}}", step);
  }
  return fmt::format(" iteration {}/ 100 | lm loss: 2.5E+00 | loss scale: {:.1f} |{}", step, scale,
                     lines == Lines::plain
                         ? ""
                         : fmt::format(" number of skipped iterations: {} |", skipped ? 1 : 0));
}

std::vector<Line> run_of(Draw& draw) {
  constexpr int kRanks[] = {1, 2, 3, 4, 8, 16};
  const int ranks = kRanks[draw.below(6)], often = 2 + draw.below(12), most_late = draw.below(3);
  const Says says = kPrinters[draw.below(std::size(kPrinters))];
  const auto lines = static_cast<Lines>(draw.below(3));
  double scale = 65536;
  std::vector<Line> run;
  std::map<int, std::vector<Line>> late;  // by the number of lines of progress before them
  int printed = 0;
  for (int step = 1; step <= 60; ++step) {
    const bool skips = draw.once_in(often);
    if (skips) {
      const double to = std::max(1.0, scale / 2);
      const Line message{says(scale, to), step};
      scale = to;
      const int in_time = most_late == 0 || draw.once_in(2) ? ranks : draw.below(ranks + 1);
      for (int rank = 0; rank < ranks; ++rank) {
        (rank < in_time ? run : late[printed + 1 + draw.below(most_late + 1)]).push_back(message);
      }
    } else if (draw.once_in(20)) {
      scale *= 2;
    }
    if (skips && lines != Lines::counted) continue;
    run.push_back({line_of(lines, step, scale, skips), 0, lines == Lines::counted ? step : 0,
                   skips ? step : 0});
    for (Line& message : late[printed++]) run.push_back(std::move(message));
  }
  for (auto& [after, messages] : late) {
    if (after >= printed) run.insert(run.end(), messages.begin(), messages.end());
  }
  return run;
}

/// Puts some messages into the one before, which is of the same step.
void tear(std::vector<Line>& run, Draw& draw) {
  for (std::size_t i = 1; i < run.size(); ++i) {
    Line &outer = run[i - 1], &inner = run[i];
    if (outer.message == 0 || outer.message != inner.message || outer.torn || !draw.once_in(4))
      continue;
    outer.text.insert(outer.text.size() - static_cast<std::size_t>(1 + draw.below(4)), inner.text);
    outer.torn = true;
    run.erase(run.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

TEST_CASE("A range of skipped steps holds their number in drawn logs") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Draw draw(seed);
    std::vector<Line> run = run_of(draw);
    if (draw.once_in(3)) tear(run, draw);
    const bool cut = draw.once_in(3);
    const int size = static_cast<int>(run.size());
    const int first = cut ? draw.below(size / 2) : 0,
              last = cut ? size / 2 + draw.below(size / 2) : size - 1;
    std::string text;
    // A message may be of a step before an excerpt whose counters tell the steps.
    int begin = 0;
    for (int i = first; i <= last && begin == 0; ++i)
      begin = run[static_cast<std::size_t>(i)].counter;
    std::set<int> surely, perhaps;  // skipped steps of which a whole message, or anything, is there
    for (int i = first; i <= last; ++i) {
      const Line& line = run[static_cast<std::size_t>(i)];
      const std::size_t from = cut && i == first ? line.text.size() / 2 : 0;
      const std::size_t length = cut && i == last ? line.text.size() / 2 : std::string::npos;
      const bool whole = from == 0 && length == std::string::npos;
      text += line.text.substr(from, length) + (whole || i < last ? "\n" : "");
      for (const int step : {line.message, line.counts}) {
        if (step == 0) continue;
        perhaps.insert(step);
        if (whole && !line.torn && step >= begin) surely.insert(step);
      }
    }
    const Interval told = test::skipped_in(text, {});
    INFO("seed " << seed << ": " << told.low << " to " << told.high << ", " << surely.size()
                 << " to " << perhaps.size() << "\n"
                 << text);
    CHECK((told.low <= perhaps.size() && told.high >= surely.size()));
  }
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_skipped_ranges
