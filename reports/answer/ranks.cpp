// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "reports/answer/findings.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::ranks::RankComparison;
using analyzers::ranks::RankStudy;
using analyzers::ranks::RankValues;
using log::Role;

namespace {

/// Most rows of the table.
constexpr std::size_t kWorstShown = 10;

/// For example "5.0 binades above"; "32 times" for a loss.
std::string distance_text(Role role, double binades) {
  if (role != Role::loss) {
    return fmt::format("{:.1f} binades {}", std::abs(binades), binades < 0 ? "below" : "above");
  }
  const double times = std::exp2(binades);
  if (times >= 1e4 || times < 0.01) return fmt::format("2^{:.1f} times", binades);
  return times >= 10 ? fmt::format("{:.0f} times", times) : fmt::format("{:.2g} times", times);
}

std::string above_text(Role role, double binades) {
  return distance_text(role, binades) + " the median rank's";
}

std::string at_text(std::int64_t first, std::int64_t stride) {
  return stride == 1 ? fmt::format("at step {}", first)
                     : fmt::format("in steps {} to {}", first, first + stride - 1);
}

bool is_one(Role role) { return role == Role::loss; }

std::string nonfinite_text(const RankComparison& all, const RankValues& rank) {
  const bool first = std::ranges::all_of(all.ranks, [&](const RankValues& other) {
    return !other.nonfinite || other.nonfinite->step >= rank.nonfinite->step;
  });
  const std::string what =
      fmt::format("{} in its {}, at step {}", rank.nonfinite->nan ? "NaN" : "an infinity",
                  values_name(all.role), rank.nonfinite->step);
  return first ? fmt::format("is the first of {} ranks with {}", count_text(all.ranks.size()), what)
               : fmt::format("has {}", what);
}

/// Returns since which step the rank is far from the median; empty if the caller names that step.
std::string since_text(const RankValues& rank) {
  if (!rank.since || *rank.since >= rank.peak_step) return "";
  return fmt::format(", and far from it since step {}", *rank.since);
}

std::string peak_text(const RankComparison& all, const RankValues& rank) {
  const bool largest = rank.max_abs && rank.max_step >= rank.peak_step &&
                       rank.max_step - rank.peak_step < all.stride;
  const std::string_view values = values_name(all.role);
  const std::string above = above_text(all.role, *rank.peak);
  if (largest) {
    return fmt::format("its {} {} {} at step {}, {}{}", values,
                       is_one(all.role) ? "reaches" : "reach", magnitude_text(*rank.max_abs),
                       rank.max_step, above, since_text(rank));
  }
  return fmt::format("its {} {} {} {}{}", values, is_one(all.role) ? "is" : "are", above,
                     at_text(rank.peak_step, all.stride), since_text(rank));
}

std::string first_text(const RankValues& rank) {
  return rank.since ? fmt::format(", first at step {}", *rank.since) : "";
}

std::string middle_text(const RankComparison& all, const RankValues& rank) {
  const std::string verb = is_one(all.role) ? "is" : "are";
  if (std::isinf(*rank.middle)) {
    return fmt::format("its {} {} 0 at half of its steps or more{}", values_name(all.role), verb,
                       first_text(rank));
  }
  if (rank.peaks) {  // the values are named already
    return fmt::format("{} at half of its steps or more", distance_text(all.role, *rank.middle));
  }
  return fmt::format("its {} {} {} at half of its steps or more{}", values_name(all.role), verb,
                     above_text(all.role, *rank.middle), first_text(rank));
}

std::string overflows_text(const RankComparison& all, const RankValues& rank) {
  return fmt::format("its {} {} infinite or NaN at {} of {} steps{} ({} of the median rank's)",
                     values_name(all.role), is_one(all.role) ? "is" : "are",
                     count_text(rank.nonfinite_steps), count_text(rank.steps),
                     rank.overflow ? fmt::format(", first at step {}", *rank.overflow) : "",
                     count_text(all.median_nonfinite_steps));
}

std::string underflow_text(const RankComparison& all, const RankValues& rank) {
  return fmt::format("{} of its {} become zero, and {} of the median rank's",
                     share_text(*rank.underflow()), values_name(all.role),
                     share_text(all.median_underflow.value_or(0)));
}

/// Returns a sentence with the rank's number and everything in which it differs.
std::string rank_text(const RankComparison& all, const RankValues& rank) {
  std::string out;
  const auto add = [&out](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  if (rank.overflows) add(overflows_text(all, rank));
  if (rank.peaks) add(peak_text(all, rank));
  if (rank.departs) add(middle_text(all, rank));
  if (rank.underflows) add(underflow_text(all, rank));
  const std::string name = fmt::format("Rank {} ", rank.rank);
  if (!rank.is_nonfinite) {
    return name + fmt::format("is the worst of {}: {}.", count_text(all.ranks.size()), out);
  }
  return name + nonfinite_text(all, rank) + (out.empty() ? "." : "; " + out + ".");
}

const RankValues& worst_of(const RankComparison& all) { return all.ranks[all.worst.front()]; }

/// Returns ranges of consecutive ranks: "3", "8 to 15". Consecutive ranks often share a machine.
std::vector<std::string> runs_of(const std::set<std::uint64_t>& ranks) {
  std::vector<std::string> runs;
  for (auto first = ranks.begin(); first != ranks.end();) {
    auto last = first;
    while (std::next(last) != ranks.end() && *std::next(last) == *last + 1) ++last;
    runs.push_back(first == last ? std::to_string(*first) : fmt::format("{} to {}", *first, *last));
    first = std::next(last);
  }
  return runs;
}

std::string others_differ_text(std::size_t others) {
  return others == 1 ? "1 other rank differs" : plural(others, "other rank") + " differ";
}

std::string others_text(const RankStudy& study, std::uint64_t but) {
  constexpr std::size_t kNamed = 5;
  std::set<std::uint64_t> ranks = study.differing();
  ranks.erase(but);
  if (ranks.empty()) return "";
  return fmt::format("{} too: {}.", others_differ_text(ranks.size()),
                     listed(runs_of(ranks), kNamed));
}

/// Returns the values in which no rank differs: "weight gradients, activations and loss".
std::string agreeing_text(const RankStudy& study) {
  std::vector<std::string> names;
  for (const RankComparison& all : study.compared) {
    if (all.judged() && !all.differ()) names.emplace_back(values_name(all.role));
  }
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return out;
}

std::string agreement(const RankStudy& study) {
  return fmt::format("The {} ranks agree in their {}.", count_text(study.ranks),
                     agreeing_text(study));
}

std::string binades_text(double binades) {
  return std::abs(binades) < 0.05 ? "0" : fmt::format("{:+.1f}", binades);
}

Cell binades_cell(std::optional<double> binades, const std::string& more = "") {
  if (!binades) return {"", -1e9, "", true};
  if (std::isinf(*binades)) return {*binades > 0 ? "not finite" : "zero", *binades, more};
  return {binades_text(*binades), *binades, more};
}

Cell nonfinite_cell(const RankValues& rank) {
  if (rank.nonfinite) {
    return {fmt::format("{} at step {}", rank.nonfinite->nan ? "NaN" : "infinity",
                        rank.nonfinite->step),
            static_cast<double>(rank.nonfinite->step)};
  }
  if (!rank.overflows || !rank.overflow) return {"", -1, "", true};
  return {fmt::format("overflow at step {}", *rank.overflow), static_cast<double>(*rank.overflow)};
}

Row row_of(const RankComparison& all, const RankValues& rank) {
  const std::string at = at_text(rank.peak_step, all.stride);
  const auto share = rank.underflow();
  return {{{std::to_string(rank.rank), static_cast<double>(rank.rank)},
           {std::string(values_name(all.role))},
           rank.max_abs ? Cell{magnitude_text(*rank.max_abs), *rank.max_abs,
                               fmt::format("step {}", rank.max_step)}
                        : Cell{"", -1, "", true},
           binades_cell(rank.skew),
           binades_cell(rank.peak, at),
           binades_cell(rank.middle),
           rank.since ? Cell{fmt::format("step {}", *rank.since), static_cast<double>(*rank.since)}
                      : Cell{"", -1, "", true},
           share ? Cell{share_text(*share), *share} : Cell{"", -1, "", true},
           nonfinite_cell(rank)}};
}

Table worst_table(const RankStudy& study) {
  Table table{Evidence::ranks, "The worst ranks"};
  table.note =
      "\"Above\" is in binades above the median rank: of the largest magnitude of all steps, the "
      "most at one step, and the median over the steps.";
  table.headings = {"rank",         "values",    "largest",   "largest above",   "most above",
                    "median above", "far since", "underflow", "first not finite"};
  table.whole = true;
  std::size_t differing = 0;
  for (const RankComparison& all : study.compared) differing += all.worst.size();
  // The worst rank of each kind of values, then the second worst: no kind fills the table alone.
  for (std::size_t place = 0; table.rows.size() < std::min(differing, kWorstShown); ++place) {
    for (const RankComparison& all : study.compared) {
      if (place >= all.worst.size() || table.rows.size() == kWorstShown) continue;
      table.rows.push_back(row_of(all, all.ranks[all.worst[place]]));
    }
  }
  table.left_out = differing - table.rows.size();
  return table;
}

/// Returns the range of the ranks' largest values. Empty if it is small.
std::string skew_text(const RankComparison& all) {
  std::optional<double> least, most;
  for (const RankValues& rank : all.ranks) {
    if (!rank.skew) continue;
    least = std::min(least.value_or(*rank.skew), *rank.skew);
    most = std::max(most.value_or(*rank.skew), *rank.skew);
  }
  if (!least || std::max(std::abs(*least), std::abs(*most)) < 0.05) return "";
  return fmt::format("Over the ranks, the largest {} {} {} to {} binades from the median, {}.",
                     values_name(all.role), is_one(all.role) ? "is" : "are", binades_text(*least),
                     binades_text(*most), magnitude_text(*all.median_max_abs));
}

Section section_of(const RankStudy& study, const std::string& prefix) {
  Section section;
  if (!study.differ()) {
    if (study.judged()) section.sentences.push_back(prefix + agreement(study));
    return section;
  }
  section.title = prefix + "Ranks side by side";
  for (const RankComparison& all : study.compared) {
    if (!all.differ()) continue;
    const std::size_t more = all.worst.size() - 1;
    section.sentences.push_back(
        rank_text(all, worst_of(all)) +
        (more == 0 ? "" : fmt::format(" {} too.", others_differ_text(more))));
    if (const std::string skew = skew_text(all); !skew.empty()) section.sentences.push_back(skew);
  }
  if (const std::string rest = agreeing_text(study); !rest.empty()) {
    section.sentences.push_back(fmt::format("The ranks agree in their {}.", rest));
  }
  section.tables.push_back(worst_table(study));
  return section;
}

}  // namespace

std::string_view values_name(Role role) {
  switch (role) {
    case Role::local_weight_grad:
    case Role::weight_grad: return "weight gradients";
    case Role::activation_grad: return "activation gradients";
    case Role::activation: return "activations";
    default: return "loss";
  }
}

std::optional<Finding> ranks_finding(const RankStudy& study) {
  const RankComparison* const all = study.worst();
  if (all == nullptr) {
    if (!study.judged()) return std::nullopt;
    return Finding{Severity::note, agreement(study), ""};
  }
  const RankValues& rank = worst_of(*all);
  const std::string more = others_text(study, rank.rank);
  const bool lost = rank.is_nonfinite || rank.overflows;
  return Finding{
      lost ? Severity::serious : Severity::warning, rank_text(*all, rank),
      more + (more.empty() ? "" : " ") + "Look at the data and at the machine of this rank."};
}

void find_differing_ranks(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const RankStudy& log : study.ranks) {
    auto finding = ranks_finding(log);
    if (!finding) continue;
    finding->title = log_prefix(study.analysis, log.log) + finding->title;
    to.push_back(std::move(*finding));
  }
}

std::vector<Section> ranks_sections(const analyzers::Findings& found) {
  std::vector<Section> sections;
  for (const RankStudy& study : found.ranks) {
    Section section = section_of(study, log_prefix(found.analysis, study.log));
    if (!section.empty()) sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<Section> differing_ranks(const analyzers::Findings& found) {
  std::vector<Section> sections = ranks_sections(found);
  std::erase_if(sections, [](const Section& section) { return section.tables.empty(); });
  return sections;
}

std::string ranks_digest(const analyzers::Findings& found) {
  std::uint64_t differing = 0, ranks = 0;
  for (const RankStudy& study : found.ranks) {
    differing += study.differing().size();
    ranks += study.ranks;
  }
  return fmt::format("{} of {} {}", count_text(differing), plural(ranks, "rank"),
                     differing == 1 ? "differs" : "differ");
}

Caption rank_strip_caption(Role role) {
  return {fmt::format("Largest {}, by rank", is_one(role) ? "loss" : values_name(role)),
          "Binades above the median rank at the same step: the most of each rank. A bar is several "
          "ranks, from the least to the most.",
          {{"now", "beyond it a rank differs"}}};
}

Caption rank_map_caption(Role role) {
  return {fmt::format("Distance of {} from the median rank, by rank and step", values_name(role)),
          "Each cell has the value that is farthest from the median rank at its step, above or "
          "below. The limit is the dashed line above. Where a cell is blank, no value is finite."};
}

}  // namespace halfscope::reports::answer
