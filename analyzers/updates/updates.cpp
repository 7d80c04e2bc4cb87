// SPDX-License-Identifier: Apache-2.0
#include "analyzers/updates/updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "analyzers/underflow/kept_weights.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/updates/pairs.hpp"

namespace halfscope::analyzers::updates {

using frames::WholeStep;
using underflow::Analysis;
using underflow::LogFindings;
using underflow::TensorFindings;
using underflow::UpdateFindings;
using underflow::UpdateSource;

namespace {

using log::printable;

/// How much of a pair's time goes into counting where what-if is asked for too.
constexpr double kCountedPart = 0.03;

/// Findings of one weight by source: what is preferred at one step may be missing at another.
using BySource = std::map<UpdateSource, UpdateFindings>;

struct Wanted {
  UpdateOptions options;
  bool what_if = false;
  AddedTo added_to = AddedTo::target;

  /// The same for one weight.
  Wanted of(const LogFindings& log, const TensorFindings& weight) const {
    Wanted wanted = *this;
    if (added_to == AddedTo::target) return wanted;
    const std::optional<Dtype> kept = underflow::kept_in_16_bits(log, weight);
    if (kept) wanted.options.format = format_of(*kept);
    return wanted;
  }
};

void add_pair(BySource& by_source, UpdateSource source, std::int64_t step, const Pair& pair,
              const Wanted& wanted, const frames::Tell& tell) {
  // What-if takes all the time where it is asked for.
  const double counted = wanted.what_if ? kCountedPart : 1.0;
  UpdateFindings& found = by_source[source];
  found.source = source;
  UpdateTable table = pair.count(wanted.options, [&](double part) { tell(part * counted); });
  if (source == UpdateSource::difference) {
    found.undetermined += table.counts.zero;
    table.counts.pairs -= table.counts.zero;
    table.counts.zero = 0;
  }
  // Ranks of one step follow each other.
  if (found.per_step.empty() || found.per_step.back().first != step) {
    found.per_step.emplace_back(step, UpdateCounts());
  }
  found.per_step.back().second += table.counts;
  found.table += table;
  if (!wanted.what_if) return;
  WhatIfOptions options;
  options.format = wanted.options.format;
  if (!found.what_if) found.what_if.emplace();
  *found.what_if +=
      pair.what_if(options, [&](double part) { tell(counted + part * (1 - counted)); });
}

/// Tells a step's progress of its pairs', which take as long as they are large.
class StepProgress {
 public:
  StepProgress(const WholeStep& step, const std::vector<PairNames>& pairs,
               const std::map<std::string, TensorFindings*>& tensors)
      : step_(step), tensors_(tensors) {
    for (const PairNames& names : pairs) all_ += size_of(names.weight);
  }
  frames::Tell of(const std::string& weight) {
    const double before = done_, size = size_of(weight);
    done_ += size;
    return [this, before, size](double part) {
      if (step_.tell && all_ > 0) step_.tell((before + part * size) / all_);
    };
  }

 private:
  double size_of(const std::string& weight) const {
    const auto found = tensors_.find(weight);
    if (found == tensors_.end()) return 0;
    double size = 1;
    for (const std::uint64_t extent : found->second->shape) size *= static_cast<double>(extent);
    return size;
  }

  const WholeStep& step_;
  const std::map<std::string, TensorFindings*>& tensors_;
  double all_ = 0, done_ = 0;
};

void note_narrow(const WholeStep& step, const log::NamedTensor& tensor, frames::Notes& notes) {
  frames::note_once(notes, fmt::format("{} is held in {}: no updates are counted of 8-bit tensors",
                                       log::place_text(printable(step.file.string()), tensor.name),
                                       halfscope::name_of(tensor.view.dtype)));
}

/// The most preferred source; steps that have only others are left out, and a note says so.
UpdateFindings preferred(const std::string& weight, BySource&& by_source, frames::Notes& notes) {
  UpdateFindings best = std::move(by_source.begin()->second);
  for (auto other = std::next(by_source.begin()); other != by_source.end(); ++other) {
    notes.push_back(fmt::format(
        "tensor '{}': updates are taken from source '{}'; {} that {} only source "
        "'{}' left out",
        printable(weight), underflow::name_of(best.source),
        other->second.per_step.size() == 1 ? "a step"
                                           : fmt::format("{} steps", other->second.per_step.size()),
        other->second.per_step.size() == 1 ? "has" : "have", underflow::name_of(other->first)));
  }
  return best;
}

void add_log(LogFindings& log, const readers::Log& opened, const frames::Selection& selection,
             const Wanted& wanted, frames::Notes& notes, const frames::Progress& progress) {
  std::map<std::string, TensorFindings*> tensors;
  for (TensorFindings& tensor : log.tensors) tensors.emplace(tensor.name, &tensor);
  std::map<std::string, BySource> found;
  const auto visit = [&](const WholeStep& step) {
    std::vector<PairNames> pairs = pairs_of(step, selection, notes);
    StepProgress step_progress(step, pairs, tensors);
    for (PairNames& names : pairs) {
      if (!tensors.contains(names.weight)) {
        frames::note_once(
            notes, fmt::format("{}: tensor '{}' is sampled but has no table at any selected step: "
                               "its updates are not shown",
                               printable(log.name), printable(names.weight)));
        continue;
      }
      const UpdateSource source = names.source;
      const std::string weight = names.weight;
      const Pair pair(step, selection, std::move(names));
      if (const log::NamedTensor* narrow = pair.too_narrow()) {
        note_narrow(step, *narrow, notes);
      } else {
        add_pair(found[weight], source, step.step, pair, wanted.of(log, *tensors.at(weight)),
                 step_progress.of(weight));
      }
    }
  };
  readers::for_each_whole_step(opened, selection, visit, notes, progress);
  for (auto& [weight, by_source] : found) {
    tensors.at(weight)->updates = preferred(weight, std::move(by_source), notes);
  }
}

}  // namespace

void add_updates(Analysis& analysis, const frames::Selection& selection, bool with_what_if,
                 const frames::Progress& progress, AddedTo added_to, const readers::Logs& opened) {
  for (LogFindings& log : analysis.logs) {
    for (TensorFindings& tensor : log.tensors) tensor.updates.reset();
  }
  if (analysis.target.format.width != 16) return;
  Wanted wanted;
  wanted.options.format = analysis.target.format;
  wanted.what_if = with_what_if;
  wanted.added_to = added_to;
  for (LogFindings& log : analysis.logs) {
    add_log(log, opened.at(log.name), selection, wanted, analysis.notes, progress);
  }
  const bool any = std::ranges::any_of(
      analysis.tensors(), [](const TensorFindings& t) { return t.updates.has_value(); });
  if (any && analysis.target.subnormals != Subnormals::keep) {
    analysis.notes.push_back(frames::Message(frames::Option::subnormals, "flush", "'flush'") +
                             " is not applied to weight updates: subnormals are kept there");
  }
}

}  // namespace halfscope::analyzers::updates
