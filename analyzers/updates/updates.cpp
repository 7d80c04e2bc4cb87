// SPDX-License-Identifier: Apache-2.0
#include "analyzers/updates/updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/samples.hpp"
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

/// Fraction of a pair's time that counting needs if what-if is computed too.
constexpr double kCountedPart = 0.03;

/// Returns the format that one weight's updates are added in.
Format format_of_weight(const Analysis& analysis, const LogFindings& log,
                        const TensorFindings& weight, AddedTo added_to) {
  const std::optional<Dtype> kept =
      added_to == AddedTo::kept ? underflow::kept_in_16_bits(log, weight) : std::nullopt;
  return kept ? format_of(*kept) : analysis.target.format;
}

void add_table(UpdateFindings& found, UpdateSource source, std::int64_t step, UpdateTable table) {
  found.source = source;
  if (source == UpdateSource::difference) {
    found.undetermined += table.counts.zero;
    table.counts.pairs -= table.counts.zero;
    table.counts.zero = 0;
  }
  // A record may have the steps of one rank after those of another.
  auto at =
      std::ranges::lower_bound(found.per_step, step, {}, [](const auto& of) { return of.first; });
  if (at == found.per_step.end() || at->first != step) {
    at = found.per_step.emplace(at, step, UpdateCounts());
  }
  at->second += table.counts;
  found.table += table;
}

void add_pair(UpdateFindings& found, UpdateSource source, std::int64_t step, const Pair& pair,
              Format format, bool with_what_if, const frames::ProgressCallback& tell) {
  // Nearly all of the time is spent on what-if if it is computed.
  const double counted = with_what_if ? kCountedPart : 1.0;
  UpdateOptions counting;
  counting.format = format;
  add_table(found, source, step, pair.count(counting, [&](double part) { tell(part * counted); }));
  if (!with_what_if) return;
  WhatIfOptions options;
  options.format = format;
  if (!found.what_if) found.what_if.emplace();
  *found.what_if +=
      pair.what_if(options, [&](double part) { tell(counted + part * (1 - counted)); });
}

/// Converts progress of pairs to that of a step; a pair's time is proportional to its size.
class StepProgress {
 public:
  StepProgress(const frames::ProgressCallback& tell, const std::vector<PairNames>& pairs,
               const std::map<std::string, TensorFindings*>& tensors)
      : tell_(tell), tensors_(tensors) {
    for (const PairNames& names : pairs) all_ += size_of(names.weight);
  }
  frames::ProgressCallback of(const std::string& weight) {
    const double before = done_, size = size_of(weight);
    done_ += size;
    return [this, before, size](double part) {
      if (tell_ && all_ > 0) tell_((before + part * size) / all_);
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

  const frames::ProgressCallback& tell_;
  const std::map<std::string, TensorFindings*>& tensors_;
  double all_ = 0, done_ = 0;
};

void note_narrow(const WholeStep& step, const log::NamedTensor& tensor, frames::Notes& notes) {
  notes.add(fmt::format("{} is held in {}: no updates are counted of 8-bit tensors",
                        log::place_text(printable(step.file.string()), tensor.name),
                        halfscope::name_of(tensor.view.dtype)));
}

/// Returns the most preferred source; skips steps that have only other sources, with a note.
UpdateFindings preferred(const std::string& weight,
                         std::map<UpdateSource, UpdateFindings>&& by_source, frames::Notes& notes) {
  UpdateFindings best = std::move(by_source.begin()->second);
  for (auto other = std::next(by_source.begin()); other != by_source.end(); ++other) {
    notes.add(fmt::format(
        "tensor '{}': updates are taken from source '{}'; skipped: {} that {} only source '{}'",
        printable(weight), underflow::name_of(best.source),
        other->second.per_step.size() == 1 ? "a step"
                                           : fmt::format("{} steps", other->second.per_step.size()),
        other->second.per_step.size() == 1 ? "has" : "have", underflow::name_of(other->first)));
  }
  return best;
}

}  // namespace

UpdatePass::UpdatePass(Analysis& analysis, const frames::Selection& selection,
                       const UpdateRequest& asked)
    : analysis_(analysis), selection_(selection), asked_(asked) {
  for (LogFindings& log : analysis.logs) {
    for (TensorFindings& tensor : log.tensors) tensor.updates.reset();
  }
}

bool UpdatePass::needs_steps() const {
  if (analysis_.target.format.width != 16) return false;
  // A run log may have whole tensors without a histogram. In any other log all tensors are known.
  return analysis_.has_run_log() ||
         std::ranges::any_of(analysis_.tensors(), [](const TensorFindings& tensor) {
           return tensor.role == log::Role::weight || tensor.role == log::Role::master_weight;
         });
}

void UpdatePass::begin(LogFindings& log) {
  log_ = &log;
  tensors_.clear();
  found_.clear();
  for (TensorFindings& tensor : log.tensors) tensors_.emplace(tensor.name, &tensor);
}

bool UpdatePass::has_table(const std::string& weight) {
  if (tensors_.contains(weight)) return true;
  analysis_.notes.add(
      fmt::format("{}: tensor '{}' is sampled but has no histogram "
                  "at any selected step: its updates are not shown",
                  printable(log_->name), printable(weight)));
  return false;
}

void UpdatePass::take(const WholeStep& step, const frames::ProgressCallback& tell,
                      const TensorCallback& beside) {
  if (!needs_steps()) return;
  std::vector<PairNames> pairs = pairs_of(step, selection_, analysis_.notes);
  StepProgress progress(tell, pairs, tensors_);
  for (PairNames& names : pairs) {
    if (!has_table(names.weight)) continue;
    const UpdateSource source = names.source;
    const std::string weight = names.weight;
    const Pair pair(step, selection_, std::move(names));
    if (const log::NamedTensor* narrow = pair.too_narrow()) {
      note_narrow(step, *narrow, analysis_.notes);
    } else {
      const Format format =
          format_of_weight(analysis_, *log_, *tensors_.at(weight), asked_.added_to);
      add_pair(found_[weight][source], source, step.step, pair, format, asked_.what_if,
               progress.of(weight));
    }
    if (beside) pair.for_each_tensor(beside);
  }
}

void UpdatePass::take(const frames::CountedUpdates& counted) {
  if (!needs_steps() || !has_table(counted.weight)) return;
  const Format format =
      format_of_weight(analysis_, *log_, *tensors_.at(counted.weight), asked_.added_to);
  const auto source = underflow::find_update_source(counted.source);
  for (const auto& [name, table] : counted.by_format) {
    const NamedFormat* const named = find_format(name);
    if (!source || named == nullptr || named->format != format) continue;
    add_table(found_[counted.weight][*source], *source, counted.step, table);
  }
}

void UpdatePass::finish_log() {
  for (auto& [weight, by_source] : found_) {
    UpdateFindings found = preferred(weight, std::move(by_source), analysis_.notes);
    TensorFindings& tensor = *tensors_.at(weight);
    found.kept_in = underflow::kept_in(*log_, tensor);
    tensor.updates = std::make_shared<const UpdateFindings>(std::move(found));
  }
  found_.clear();
}

void UpdatePass::finish() {
  const bool any = std::ranges::any_of(
      analysis_.tensors(), [](const TensorFindings& t) { return t.updates != nullptr; });
  if (any && analysis_.target.subnormals != Subnormals::keep) {
    analysis_.notes.add(frames::Message(frames::Option::subnormals, "flush", "'flush'") +
                        " is not applied to weight updates: subnormals are kept there");
  }
}

void add_updates(Analysis& analysis, const frames::Selection& selection, const UpdateRequest& asked,
                 const frames::Progress& progress, const readers::Logs& opened) {
  UpdatePass pass(analysis, selection, asked);
  if (!pass.needs_steps()) return;
  for (LogFindings& log : analysis.logs) {
    pass.begin(log);
    const auto take = [&](const WholeStep& step) { pass.take(step, step.tell); };
    const readers::Log& source = opened.at(log.source);
    readers::for_each_whole_step(source, selection, take, analysis.notes, progress);
    readers::for_each_whole_count(
        source, selection, {[](const auto&) {}, [&](const auto& counted) { pass.take(counted); }});
    pass.finish_log();
  }
  pass.finish();
}

}  // namespace halfscope::analyzers::updates
