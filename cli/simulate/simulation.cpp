// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/study.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/updates.hpp"
#include "sim/training/true_error.hpp"

namespace halfscope::cli::simulate {

namespace answer = reports::answer;
using analyzers::underflow::Analysis;
using answer::Cell;
using answer::plural;
using answer::Section;
using answer::share_text;
using answer::Table;
using log::Role;
using sim::training::GradientError;
using sim::training::RunSummary;
using sim::training::Settings;
using sim::training::StepError;

namespace {

/// Differences from the true gradients of one role, over all recorded steps.
struct Deviation {
  std::uint64_t lost = 0, underflowed = 0, sign_changed = 0, nonfinite = 0, true_nonzero = 0;
  std::vector<double> errors;  ///< relative errors, one per tensor and step

  void add(const GradientError& error) {
    lost += error.lost;
    underflowed += error.underflowed;
    sign_changed += error.sign_changed;
    nonfinite += error.nonfinite;
    true_nonzero += error.true_nonzero;
    if (std::isfinite(error.relative_error())) errors.push_back(error.relative_error());
  }
};

Deviation deviation_of(const std::vector<StepError>& steps, log::Role role) {
  Deviation out;
  for (const StepError& step : steps) {
    for (const GradientError& error : step.tensors) {
      if (error.role == role) out.add(error);
    }
  }
  std::ranges::sort(out.errors);
  return out;
}

Cell error_cell(const Deviation& of, std::size_t index) {
  if (of.errors.empty()) return {.text = "unknown", .key = -1, .muted = true};
  return {fmt::format("{:.2g}", of.errors[index]), of.errors[index]};
}

Cell share_cell(std::uint64_t count, std::uint64_t of) {
  return {answer::share_text(count, of), static_cast<double>(count)};
}

void add_row(const std::string& what, const Deviation& of, answer::Table& table) {
  if (of.true_nonzero == 0 && of.nonfinite == 0) return;
  const std::size_t last = of.errors.empty() ? 0 : of.errors.size() - 1;
  table.rows.push_back({{{what},
                         error_cell(of, last / 2),
                         error_cell(of, last),
                         share_cell(of.lost, of.true_nonzero),
                         share_cell(of.underflowed, of.lost),
                         share_cell(of.sign_changed, of.true_nonzero),
                         {answer::count_text(of.nonfinite), static_cast<double>(of.nonfinite)}}});
}

/// Returns a section with one row for weight gradients and one for activation gradients; an empty
/// section if no step was compared.
Section true_gradients_section(const Settings& settings, const std::filesystem::path& run) {
  const std::vector<StepError> steps = sim::training::read_true_errors(run);
  answer::Table table{
      .title = fmt::format("Against gradients in binary64, at the same weights and batches, in {}",
                           answer::plural(steps.size(), "recorded step")),
      .note =
          "Relative error: of one tensor at one step. Shares: of gradients that are finite "
          "here and not zero in binary64.",
      .headings = {
          "", "relative error: median", "relative error: largest", "stored as zero",
          fmt::format("of these too small for {}", answer::people_say(settings.precision.tensors)),
          "other sign", "infinite or NaN"}};
  add_row("weight gradients", deviation_of(steps, log::Role::weight_grad), table);
  add_row("activation gradients", deviation_of(steps, log::Role::activation_grad), table);
  answer::Section out;
  if (!table.empty()) out.tables.push_back(std::move(table));
  return out;
}

std::string steps_text(std::int64_t steps) {
  return plural(static_cast<std::uint64_t>(steps), "step");
}

std::string run_text(const Settings& settings, const RunSummary& summary) {
  std::string out = fmt::format("{} in {}{}{}: {}", settings.network->name, settings.precision.name,
                                settings.accumulation.architecture == nullptr
                                    ? ""
                                    : fmt::format(", sums of {}", text_of(settings.accumulation)),
                                settings.cudnn ? " on a GPU" : "", steps_text(summary.steps));
  if (!summary.ended.empty()) out += fmt::format(" of {}", settings.steps);
  out += fmt::format(", loss {} at first, {} at last", answer::loss_text(summary.first_loss, 4),
                     answer::loss_text(summary.last_loss, 4));
  if (summary.accuracy) {
    out += fmt::format(", {} correct on held-out data", share_text(*summary.accuracy));
  }
  return out + ".";
}

std::string scaling_text(const policy::Policy& policy, const RunSummary& summary) {
  std::string out =
      fmt::format("Loss scaling by {}: {} skipped", answer::code(policy::short_text_of(policy)),
                  steps_text(summary.skipped));
  if (summary.attempts > summary.steps) {
    out +=
        fmt::format(", {} in all", plural(static_cast<std::uint64_t>(summary.attempts), "attempt"));
  }
  return out + ".";
}

/// Returns the share of gradients that FP16 flushes. If the run computed in FP16, its lost
/// gradients cannot be distinguished from other zeros, so all zeros are reported.
std::string flushed_text(const Settings& settings, const Analysis& analysis, Role role,
                         std::string_view what) {
  const answer::Series sum = answer::sum(answer::of_role(answer::all_tensors(analysis), role));
  const analyzers::underflow::Counts& counts = sum.counts;
  if (counts.total == 0) return "";
  if (settings.precision.tensors == Dtype::f16) {
    return fmt::format("{} of the {} are zero, including those that FP16 flushed.",
                       share_text(counts.zero, counts.total), what);
  }
  return fmt::format("{} of the {} would be flushed to zero by FP16, unscaled.",
                     share_text(counts.classes.flushed_to_zero, counts.finite_nonzero.low), what);
}

/// Returns the share of lost weight updates. If the weights are 16-bit, updates too small for the
/// format are already zero.
std::string update_text(const Settings& settings, const Analysis& analysis) {
  const UpdateCounts counts = answer::all_updates(analysis).table.counts;
  if (counts.updates() == 0) return "";
  const auto share = [&](std::uint64_t count) { return share_text(count, counts.updates()); };
  const std::string_view format = analysis.target.format == kBfloat16 ? "BF16" : "FP16";
  if (settings.precision.update() != Dtype::f32) {
    return fmt::format(
        "{} of the nonzero weight updates changed nothing: {} weights swamped them. {} of all "
        "updates are zero.",
        share(counts.half.lost()), format, share_text(counts.zero, counts.pairs));
  }
  return fmt::format(
      "{} of the weight updates would be lost in {} weights without a master copy: {} swamped, {} "
      "too small themselves.",
      share(counts.half.lost()), format, share(counts.half.swamped), share(counts.half.underflow));
}

Section lost_section(const Settings& settings, const RunSummary& summary) {
  analyzers::Passes passes;
  passes.updates = true;
  const auto found_in = [&](const analyzers::underflow::Target& target) {
    return analyzers::analyze({summary.folder}, target, {}, passes, {});
  };
  const analyzers::Findings found = found_in({});
  const Analysis& analysis = found.analysis;
  const bool bfloat16 = settings.precision.tensors == Dtype::bf16;
  Section out{"In the recorded steps"};
  out.sentences = {flushed_text(settings, analysis, Role::weight_grad, "weight gradients"),
                   flushed_text(settings, analysis, Role::activation_grad, "activation gradients"),
                   bfloat16 ? update_text(settings, found_in({"bfloat16", kBfloat16}).analysis)
                            : update_text(settings, analysis)};
  std::erase(out.sentences, "");
  return out;
}

/// Returns a word quoted for a shell, if it needs quotes.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./=+:,@") == std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return log::printable(out + "'");
}

std::string next_text(const Settings& settings, const RunSummary& summary) {
  const std::string run = quoted(summary.folder.string());
  if (summary.stopped) {
    return fmt::format("To continue:  halfscope simulate {} --out {} --resume",
                       settings.network->name, run);
  }
  if (settings.ranks > 1) return fmt::format("Next:  halfscope reduce {} --over ranks", run);
  if (settings.policy) return fmt::format("Next:  halfscope policies {}", run);
  if (settings.precision.tensors == Dtype::f16) {
    return fmt::format("Next:  halfscope report {} --out report.html", run);
  }
  return fmt::format("Next:  halfscope recommend {}", run);
}

}  // namespace

Simulation simulation_of(const Settings& settings, const RunSummary& summary) {
  Simulation out;
  out.first.push_back(run_text(settings, summary));
  if (settings.policy) out.first.push_back(scaling_text(*settings.policy, summary));
  if (!summary.ended.empty()) out.first.push_back(summary.ended + ".");
  out.sections.push_back(lost_section(settings, summary));
  if (settings.true_error) {
    out.sections.push_back(true_gradients_section(settings, summary.folder));
  }
  out.next = next_text(settings, summary);
  return out;
}

std::vector<Table> choices() {
  Table networks{.title = "Networks",
                 .headings = {"name", "data", "steps", "batch", "learning rate", "what it is"}};
  for (const sim::networks::Network& n : sim::networks::networks()) {
    networks.rows.push_back({{{std::string(n.name)},
                              {std::string(n.data)},
                              {std::to_string(n.steps), static_cast<double>(n.steps)},
                              {std::to_string(n.batch), static_cast<double>(n.batch)},
                              {fmt::format("{:g}", n.learning_rate), n.learning_rate},
                              {std::string(n.what)}}});
  }
  Table data{.title = "Data", .headings = {"name", "what it is"}};
  for (const auto& [name, what] : sim::data::data_names()) {
    data.rows.push_back({{{std::string(name)}, {std::string(what)}}});
  }
  data.rows.push_back(
      {{{"PATH"}, {"a folder with the files of MNIST or CIFAR-10, or a text file"}}});
  return {networks, data};
}

}  // namespace halfscope::cli::simulate
