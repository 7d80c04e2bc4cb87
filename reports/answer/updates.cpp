// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;
using analyzers::underflow::UpdateSource;

using analyzers::Study;
using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

namespace {

/// Returns the role of the values from which a weight's updates are computed.
log::Role source_role(const TensorFindings& weight) {
  switch (weight.updates->source) {
    case UpdateSource::update: return log::Role::update;
    case UpdateSource::optimizer_state: return log::Role::optimizer_state;
    case UpdateSource::gradient: return log::Role::weight_grad;
    case UpdateSource::difference: return weight.role;
  }
  return log::Role::update;
}

std::string joined(const std::set<std::string>& names) {
  return listed({names.begin(), names.end()}, names.size());
}

std::string counts_text(const Analysis& analysis, const Tensors& weights, const UpdateSum& sum) {
  const UpdateCounts& counts = sum.table.counts;
  std::set<std::string> sources;
  for (const TensorFindings* weight : weights) {
    std::string name(analyzers::underflow::name_of(weight->updates->source));
    std::ranges::replace(name, '_', ' ');
    sources.insert(std::move(name));
  }
  return fmt::format(
      "{} with {}, added to weights in {}: {} are zero, {} hold NaN or infinity, {} are counted as "
      "lost or not. Source of the updates: {}.",
      plural(weights.size(), "weight"), plural(counts.pairs, "update"), format_name(analysis),
      count_text(counts.zero), count_text(counts.nonfinite), count_text(counts.updates()),
      joined(sources));
}

std::string undetermined_text(const UpdateSum& sum) {
  if (sum.undetermined == 0) return "";
  return fmt::format(
      "{} more are differences of recorded weights that are zero: lost updates among them cannot "
      "be counted.",
      count_text(sum.undetermined));
}

/// Returns a caveat on updates computed in FP16: if they underflowed there, they are zero.
std::string half_source_text(const Analysis& analysis, const Tensors& weights) {
  std::set<std::pair<std::string_view, log::Role>> narrow;
  for (const TensorFindings& t : analysis.tensors()) {
    if (t.computed_in_fp16()) narrow.emplace(*t.log, t.role);
  }
  std::set<std::string> sources;
  for (const TensorFindings* weight : weights) {
    const log::Role role = source_role(*weight);
    if (narrow.contains({*weight->log, role})) sources.emplace(log::name_of(role));
  }
  if (sources.empty()) return "";
  return fmt::format(
      "These are lower bounds: the updates come from values computed in FP16 ({}), and what "
      "underflowed there is zero already.",
      joined(sources));
}

/// Returns what the run itself loses, if it keeps only some weights in the target format.
std::string kept_text(const Analysis& analysis, const Tensors& weights) {
  const SumsByKept sums = sums_by_kept(weights, analysis.target.format);
  if (sums.narrow.weights == 0 || sums.others.weights == 0) return "";
  const UpdateCounts& counts = sums.narrow.table.counts;
  return fmt::format(
      "The run itself keeps {} of them in {} and loses {} of their {}; the others show what {} "
      "would lose.",
      count_text(sums.narrow.weights), format_name(analysis),
      share_text(counts.half.lost(), counts.updates()), plural(counts.updates(), "update"),
      format_name(analysis));
}

/// Returns sentences on weights in the other 16-bit format: these lose by that format's rules.
std::vector<std::string> other_format_texts(const Analysis& analysis, const Tensors& weights) {
  constexpr std::array kOthers = {std::tuple(Dtype::bf16, "BF16", "bfloat16"),
                                  std::tuple(Dtype::f16, "FP16", "binary16")};
  std::vector<std::string> texts;
  for (const auto& other : kOthers) {
    const Dtype dtype = std::get<0>(other);
    if (analysis.target.format == format_of(dtype)) continue;
    const auto held = static_cast<std::size_t>(std::ranges::count_if(
        weights, [dtype](const auto* weight) { return weight->source_dtype == dtype; }));
    if (held == 0) continue;
    texts.push_back(
        fmt::format("{} held in {}: {} shows what that loses.",
                    held == 1 ? "1 of these weights is"
                              : fmt::format("{} of these weights are", count_text(held)),
                    std::get<1>(other), code(fmt::format("--format {}", std::get<2>(other)))));
  }
  return texts;
}

Cell count_cell(std::uint64_t count, std::uint64_t of) {
  return {share_text(count, of), of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of),
          fmt::format("{} of {}", count_text(count), count_text(of)), count == 0};
}

Table weights_table(const Analysis& analysis, const Tensors& weights) {
  Table table{Evidence::updates, "Weight by weight"};
  table.headings = {"weight",
                    "updates lost",
                    "too small for the format",
                    "rounded away",
                    rule_of_thumb(analysis.target),
                    "updates"};
  table.add_rows(weights, [](const TensorFindings* weight) -> Row {
    const UpdateCounts& c = weight->updates->table.counts;
    const std::uint64_t n = c.updates();
    return {{{code(weight->name)},
             count_cell(c.half.lost(), n),
             count_cell(c.half.underflow, n),
             count_cell(c.half.swamped, n),
             count_cell(c.rule_2048, n),
             {count_text(n), static_cast<double>(n)}}};
  });
  return table;
}

double lost_share(const TensorFindings* tensor) {
  const UpdateCounts& counts = tensor->updates->table.counts;
  return counts.updates() == 0
             ? 0
             : static_cast<double>(counts.half.lost()) / static_cast<double>(counts.updates());
}

/// For example "2.91 % are too small for FP16, 33.5 % are rounded away in the sum".
std::string parts_text(const UpdateCounts& counts, const std::string& format) {
  const std::uint64_t of = counts.updates();
  if (counts.half.underflow == 0) return "all of these are rounded away in the sum";
  return fmt::format("{} are too small for {}, {} are rounded away in the sum",
                     share_text(counts.half.underflow, of), format,
                     share_text(counts.half.swamped, of));
}

std::string masters_text(const Analysis& analysis) {
  const std::string_view scaler =
      analysis.target.format == kBinary16 ? " GradScaler needs FP32 parameters, too." : "";
  return fmt::format("Use FP32 master weights: in PyTorch, FP32 parameters under torch.autocast.{}",
                     scaler);
}

/// Adds a note for a training log with 16-bit weights, but without FP32 weights or updates.
void unknown_updates(const Study& study, std::vector<Finding>& to) {
  const Analysis& analysis = study.analysis;
  const bool narrow = std::ranges::any_of(analysis.tensors(), [&](const TensorFindings& t) {
    return t.role == log::Role::weight && t.source_dtype &&
           format_of(*t.source_dtype) == analysis.target.format;
  });
  const bool master = std::ranges::any_of(analysis.tensors(), [](const TensorFindings& t) {
    return t.role == log::Role::master_weight;
  });
  const bool trained = std::ranges::any_of(analysis.tensors(), &TensorFindings::loss_scaled);
  if (!narrow || master || !trained) return;
  to.push_back({Severity::note,
                fmt::format("Weights are stored in {}, and the log has neither FP32 master weights "
                            "nor updates: how many updates are lost is unknown.",
                            format_name(analysis)),
                masters_text(analysis)});
}

/// Adds a finding if all sampled updates are zero.
void no_updates(const UpdateCounts& counts, std::vector<Finding>& to) {
  if (counts.zero != counts.pairs) return;
  to.push_back(
      {Severity::serious,
       fmt::format("All {} sampled weight updates are zero: the weights do not change.",
                   count_text(counts.pairs)),
       "Look at the learning rate, at skipped steps, and at updates computed in 16 bits."});
}

/// For example "61.0 % of 1,000 sampled weight updates".
std::string lost_text(const UpdateCounts& counts) {
  return fmt::format("{} of {} sampled weight updates",
                     share_text(counts.half.lost(), counts.updates()),
                     count_text(counts.updates()));
}

/// Returns the finding on weights that the run keeps in the target format: updates that it loses.
Finding lost_in_run(const Study& study, const SumsByKept& sums) {
  const UpdateCounts& counts = sums.narrow.table.counts;
  const std::string format = format_name(study.analysis);
  const double share =
      static_cast<double>(counts.half.lost()) / static_cast<double>(counts.updates());
  const std::string stored =
      sums.others.weights == 0
          ? fmt::format("Weights are stored in {}, and", format)
          : fmt::format("{} of {} weight tensors {} stored in {}:", count_text(sums.narrow.weights),
                        count_text(sums.narrow.weights + sums.others.weights),
                        sums.narrow.weights == 1 ? "is" : "are", format);
  return {share >= study.advice.asked.serious_share ? Severity::breaks : Severity::warning,
          fmt::format("{} {} are lost{}: {}.", stored, lost_text(counts),
                      sums.others.weights == 0 ? "" : " there", parts_text(counts, format)),
          masters_text(study.analysis)};
}

/// Returns the finding on weights kept in more bits: updates that the target format would lose.
Finding lost_if_narrow(const Study& study, const SumsByKept& sums) {
  const UpdateCounts& counts = sums.others.table.counts;
  const std::string format = format_name(study.analysis);
  const bool all = sums.narrow.weights == 0;
  return {Severity::note,
          fmt::format("If {} stored in {}{}, {} would be lost: {}.",
                      all ? "weights were" : "the other weights were", format,
                      all ? " alone" : " too", lost_text(counts), parts_text(counts, format)),
          all ? "Keep FP32 master weights, as mixed precision does." : "Keep them in FP32."};
}

}  // namespace

Section updates_section(const Analysis& analysis, const Tensors& tensors) {
  const Tensors weights = with_updates(tensors);
  if (weights.empty()) return {};
  const UpdateSum sum = sum_updates(weights);
  Section section{"Weight updates that are lost"};
  section.sentences = {counts_text(analysis, weights, sum), kept_text(analysis, weights),
                       undetermined_text(sum), half_source_text(analysis, weights)};
  std::ranges::move(other_format_texts(analysis, weights), std::back_inserter(section.sentences));
  std::erase(section.sentences, "");
  if (sum.table.counts.updates() == 0) return section;
  section.tables = {what_if_table(analysis.target, sum), weights_table(analysis, weights)};
  return section;
}

std::string updates_digest(const Analysis& analysis, const UpdateSum& sum) {
  const UpdateCounts& counts = sum.table.counts;
  return fmt::format("{} of {} lost in pure {}", share_text(counts.half.lost(), counts.updates()),
                     plural(counts.updates(), "update"), format_name(analysis));
}

std::string missing_updates_text(const Analysis& analysis) {
  const int width = analysis.target.format.width;
  if (width != 16) {
    return fmt::format("weight updates are counted in formats of 16 bits, and {} has {}",
                       analysis.target.name, width);
  }
  if (analysis.has_run_log()) {
    return "unknown: no selected step has full weights with their updates; record the run with "
           "sample_every=N (docs/recording.md)";
  }
  return "no weight updates are known; they need weight/X with update/X, or with weight_grad/X and "
         "--lr (docs/json.md)";
}

UpdateSum sum_updates(const Tensors& tensors) {
  UpdateSum out;
  bool all_have_what_if = true;
  for (const TensorFindings* tensor : tensors) {
    if (!tensor->updates) continue;
    const analyzers::underflow::UpdateFindings& updates = *tensor->updates;
    ++out.weights;
    out.table += updates.table;
    out.undetermined += updates.undetermined;
    if (!updates.what_if) {
      all_have_what_if = false;
    } else if (out.what_if) {
      *out.what_if += *updates.what_if;
    } else {
      out.what_if = updates.what_if;
    }
  }
  if (!all_have_what_if) out.what_if.reset();
  return out;
}

UpdateSum all_updates(const analyzers::underflow::Analysis& analysis) {
  return sum_updates(all_tensors(analysis));
}

SumsByKept sums_by_kept(const Tensors& tensors, Format target) {
  Tensors narrow, others;
  for (const TensorFindings* tensor : tensors) {
    if (!tensor->updates) continue;
    const std::optional<Dtype>& kept = tensor->updates->kept_in;
    (kept && format_of(*kept) == target ? narrow : others).push_back(tensor);
  }
  return {sum_updates(narrow), sum_updates(others)};
}

bool loses_share(const UpdateSum& part, const SumsByKept& all, double share) {
  const auto lost = static_cast<double>(part.table.counts.half.lost());
  const std::uint64_t of = all.narrow.table.counts.updates() + all.others.table.counts.updates();
  return lost > 0 && lost >= share * static_cast<double>(of);
}

Tensors with_updates(const Tensors& tensors) {
  Tensors out;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(out),
               [](const TensorFindings* tensor) { return tensor->updates != nullptr; });
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return lost_share(a) > lost_share(b); });
  return out;
}

void find_lost_updates(const Study& study, std::vector<Finding>& to) {
  const Tensors tensors = all_tensors(study.analysis);
  const UpdateCounts counts = sum_updates(tensors).table.counts;
  if (counts.pairs == 0) return unknown_updates(study, to);
  if (counts.updates() == 0) return no_updates(counts, to);
  const SumsByKept sums = sums_by_kept(tensors, study.analysis.target.format);
  const double negligible = study.advice.asked.negligible_share;
  if (loses_share(sums.narrow, sums, negligible)) to.push_back(lost_in_run(study, sums));
  if (loses_share(sums.others, sums, negligible)) to.push_back(lost_if_narrow(study, sums));
}

}  // namespace halfscope::reports::answer
