// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/weights.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::weights::KindMovement;
using analyzers::weights::MovedCounts;
using analyzers::weights::Movement;
using analyzers::weights::SentBytes;
using analyzers::weights::Stall;
using analyzers::weights::TensorMovement;

std::string moved_text(const Movement& found) {
  const MovedCounts& all = found.all;
  const std::string where =
      found.other.empty()
          ? fmt::format("Over {} from {} to {}", plural(found.steps.size(), "sampled step"),
                        found.steps.front(), found.steps.back())
          : fmt::format("From {} to {}", code(found.log), code(found.other));
  std::string text =
      fmt::format("{}, the copies of {} of {} weights change ({}).", where, count_text(all.moved),
                  count_text(all.elements), share_text(all.moved, all.elements));
  if (all.changed.size() == 1) return text;
  const auto [least, most] = std::ranges::minmax(all.changed);
  return text + fmt::format(" Between two of these steps {} change.",
                            share_text(Interval(least, most), all.elements));
}

/// Returns the mean of a sum over the weights that would move or lose their updates.
std::string mean_text(const Stall& stall, double sum) {
  const auto weights = static_cast<double>(stall.weights() - stall.zero);
  return weights == 0 ? "0" : fmt::format("{:.3g}", sum / weights);
}

std::string frozen_text(const MovedCounts& all) {
  std::string text = fmt::format("{} weights never move ({}).", count_text(all.frozen()),
                                 share_text(all.frozen(), all.elements));
  if (!all.stall) return text;
  const Stall& stall = *all.stall;
  const auto median = stall.median();
  text += fmt::format(
      " Their mean update is {} a step, and the nearest other copy begins {} away. At this rate "
      "{}.",
      mean_text(stall, stall.sum_update), mean_text(stall, stall.sum_distance),
      median ? fmt::format("half of them need {} steps or fewer", count_text(median->high))
             : "more than half of them never move");
  if (stall.never() == 0) return text;
  return text + fmt::format(" {} have no update that ever moves them.",
                            share_text(stall.never(), stall.weights()));
}

std::string bytes_sentence(const SentBytes& sent) {
  return fmt::format(
      "All copies are {}. Changed copies with their indices are {} ({} with zstd), the XOR of all "
      "copies is {} with zstd. Building these takes {:.1f} s, compressing {:.1f} s.",
      bytes_text(sent.copies), bytes_text(sent.sparse), bytes_text(sent.sparse_zstd),
      bytes_text(sent.xored_zstd), sent.seconds, sent.zstd_seconds);
}

/// Returns a table with a row for each element. `name` is a member of theirs.
template <class Element>
Table table_of(std::string title, const std::vector<Element>& elements,
               std::string Element::*name) {
  Table table{Evidence::updates, std::move(title)};
  table.headings = {"weights of", "weights",       "moved",   "in the last pair",  "never moved",
                    "last moved", "mean |update|", "to move", "median steps up to"};
  table.all_by = "weights A B --json FILE";
  table.add_rows(elements, [&](const Element& of) {
    Row row{{{code(of.*name)},
             count_cell(of.elements),
             share_cell(of.moved, of.elements),
             share_cell(of.changed.back(), of.elements),
             count_cell(of.frozen()),
             {of.last_moved ? fmt::to_string(*of.last_moved) : "never"}}};
    if (!of.stall) {
      row.cells.resize(table.headings.size(), Cell{"", {}, {}, true});
      return row;
    }
    const auto median = of.stall->median();
    row.cells.push_back({mean_text(*of.stall, of.stall->sum_update)});
    row.cells.push_back({mean_text(*of.stall, of.stall->sum_distance)});
    row.cells.push_back({median ? count_text(median->high) : "never"});
    return row;
  });
  return table;
}

}  // namespace

std::vector<Section> weights_sections(const Movement& found) {
  Section out{"Which weights move"};
  out.sentences = {moved_text(found)};
  if (found.all.frozen() != 0) out.sentences.push_back(frozen_text(found.all));
  if (found.bytes) out.sentences.push_back(bytes_sentence(*found.bytes));
  out.add(table_of("By kind of layer", found.kinds, &KindMovement::kind));
  out.tables.back().note =
      "A weight moves if its copy differs between two adjacent steps. \"To move\" is the mean "
      "distance to the next copy in the direction of the update.";
  auto still = found.tensors;
  std::erase_if(still, [&](const auto& t) { return t.last_moved == found.steps.back(); });
  out.add(
      table_of("Tensors that do not move in the last pair of steps", still, &TensorMovement::name));
  return {out};
}

}  // namespace halfscope::reports::answer
