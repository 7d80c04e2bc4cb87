// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analyzers/study.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"
#include "sim/training/true_error.hpp"

namespace halfscope::cli::terminal {

using sim::training::RunSummary;
using sim::training::Settings;

namespace {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;
using log::Role;
namespace text = reports::answer;

/// Gradients of one role over the recorded steps.
struct Lost {
  Interval flushed;
  std::uint64_t zero = 0, total = 0, finite_nonzero = 0;
};

Lost lost_of(const Analysis& analysis, Role role) {
  Lost lost;
  for (const TensorFindings& tensor : analysis.tensors()) {
    if (tensor.role != role) continue;
    lost.flushed += tensor.counts.classes.flushed_to_zero;
    lost.zero += tensor.counts.zero.low;
    lost.total += tensor.counts.total;
    lost.finite_nonzero += tensor.counts.finite_nonzero.low;
  }
  return lost;
}

/// Where gradients were computed in binary16 what is lost is lost: it is among the zeros.
std::string flushed_text(const Settings& settings, const Analysis& analysis) {
  const bool narrow = settings.precision.tensors == Dtype::f16;
  std::string out;
  for (const auto& [role, what] : {std::pair{Role::weight_grad, "weight gradients"},
                                   std::pair{Role::activation_grad, "activation gradients"}}) {
    const Lost lost = lost_of(analysis, role);
    if (lost.total == 0) continue;
    out += narrow ? fmt::format("  {} of the {} are zero, including those that FP16 flushed\n",
                                text::share_text(lost.zero, lost.total), what)
                  : fmt::format("  {} of the {} would be flushed to zero by FP16, unscaled\n",
                                text::share_text(lost.flushed, lost.finite_nonzero), what);
  }
  return out;
}

/// Where a run's weights are 16-bit, an update that was too small for the format is zero already.
std::string update_text(const Settings& settings, const Analysis& analysis) {
  UpdateCounts counts;
  for (const TensorFindings& tensor : analysis.tensors()) {
    if (tensor.updates) counts += tensor.updates->table.counts;
  }
  if (counts.updates() == 0) return "";
  const std::string_view format = analysis.target.format == kBfloat16 ? "BF16" : "FP16";
  if (settings.precision.update() != Dtype::f32) {
    return fmt::format(
        "  {} of the nonzero weight updates changed nothing: {} weights swamped them. {} of all "
        "updates are zero\n",
        text::share_text(counts.half.lost(), counts.updates()), format,
        text::share_text(counts.zero, counts.pairs));
  }
  return fmt::format(
      "  {} of the weight updates would be lost in {} weights without a master copy: {} swamped, "
      "{} too small themselves\n",
      text::share_text(counts.half.lost(), counts.updates()), format,
      text::share_text(counts.half.swamped, counts.updates()),
      text::share_text(counts.half.underflow, counts.updates()));
}

std::string lost_text(const Settings& settings, const RunSummary& summary) {
  analyzers::Passes passes;
  passes.updates = true;
  Analysis analysis = analyzers::analyze({summary.folder}, {}, {}, passes, {}).analysis;
  std::string out = "In the recorded steps:\n" + flushed_text(settings, analysis);
  if (settings.precision.tensors == Dtype::bf16) {
    const analyzers::underflow::Target bfloat16{"bfloat16", kBfloat16};
    analysis = analyzers::analyze({summary.folder}, bfloat16, {}, passes, {}).analysis;
  }
  return out + update_text(settings, analysis);
}

/// A role's gradients against the true ones, all recorded steps together.
struct Deviation {
  std::uint64_t lost = 0, underflowed = 0, sign_changed = 0, nonfinite = 0, true_nonzero = 0;
  std::vector<double> errors;  ///< relative, a tensor and step each

  void add(const sim::training::GradientError& error) {
    lost += error.lost;
    underflowed += error.underflowed;
    sign_changed += error.sign_changed;
    nonfinite += error.nonfinite;
    true_nonzero += error.true_nonzero;
    if (std::isfinite(error.relative_error())) errors.push_back(error.relative_error());
  }
};

std::string deviation_text(Deviation of, std::string_view what, std::string_view format) {
  if (of.true_nonzero == 0 && of.nonfinite == 0) return "";
  std::string out = fmt::format("  {}: ", what);
  if (!of.errors.empty()) {
    std::ranges::sort(of.errors);
    out += fmt::format("relative error {:.2g} (median of tensors and steps), {:.2g} at most; ",
                       of.errors[(of.errors.size() - 1) / 2], of.errors.back());
  }
  out += fmt::format("of the nonzero ones {} are stored as zero",
                     text::share_text(of.lost, of.true_nonzero));
  if (of.lost > 0) {
    out += fmt::format(" ({} of them too small for {})", text::share_text(of.underflowed, of.lost),
                       format);
  }
  out +=
      fmt::format(", {} have the other sign", text::share_text(of.sign_changed, of.true_nonzero));
  if (of.nonfinite > 0) out += fmt::format("; {} are infinite or NaN", of.nonfinite);
  return out + "\n";
}

std::string_view format_text(Dtype dtype) {
  return dtype == Dtype::f16 ? "FP16" : dtype == Dtype::bf16 ? "BF16" : "FP32";
}

std::string true_error_text(const Settings& settings, const RunSummary& summary) {
  const std::vector<sim::training::StepError> steps =
      sim::training::read_true_errors(summary.folder);
  if (steps.empty()) return "";
  Deviation weights, activations;
  for (const sim::training::StepError& step : steps) {
    for (const sim::training::GradientError& error : step.tensors) {
      (error.role == Role::weight_grad ? weights : activations).add(error);
    }
  }
  const std::string_view format = format_text(settings.precision.tensors);
  return fmt::format("Against gradients in binary64, at the same weights and batches, in {}:\n",
                     text::plural(steps.size(), "recorded step")) +
         deviation_text(std::move(weights), "weight gradients", format) +
         deviation_text(std::move(activations), "activation gradients", format);
}

/// NaN without its sign, which says nothing.
std::string loss_text(double loss) {
  return std::isnan(loss) ? "nan" : fmt::format("{:.4g}", loss);
}

/// For a command line: a folder's name as it is where the shell takes it so.
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
    return fmt::format("To continue:  halfscope simulate {} --out {} --resume\n",
                       settings.network->name, run);
  }
  if (settings.policy) return fmt::format("Next:  halfscope policies {}\n", run);
  if (settings.precision.tensors == Dtype::f16) {
    return fmt::format("Next:  halfscope report {} --out report.html\n", run);
  }
  return fmt::format("Next:  halfscope recommend {}\n", run);
}

}  // namespace

std::string networks_text() {
  std::string out = "Networks:\n";
  for (const sim::networks::Network& n : sim::networks::networks()) {
    out += fmt::format("  {:<22} {}; on {}, {} steps of {}, learning rate {:g}\n", n.name, n.what,
                       n.data, n.steps, n.batch, n.learning_rate);
  }
  out += "Data:\n";
  for (const auto& [name, what] : sim::data::data_names()) {
    out += fmt::format("  {:<22} {}\n", name, what);
  }
  return out +
         "  PATH                   a folder with the files of MNIST or CIFAR-10, or a text file\n";
}

std::string simulation_text(const Settings& settings, const RunSummary& summary) {
  std::string out = fmt::format("{} in {}{}: {}", settings.network->name, settings.precision.name,
                                settings.cudnn ? " on a GPU" : "",
                                text::plural(static_cast<std::uint64_t>(summary.steps), "step"));
  if (!summary.ended.empty()) out += fmt::format(" of {}", settings.steps);
  out += fmt::format(", loss {} at first, {} at last", loss_text(summary.first_loss),
                     loss_text(summary.last_loss));
  if (summary.accuracy) {
    out += fmt::format(", {} correct on held-out data", text::share_text(*summary.accuracy));
  }
  out += ".\n";
  if (settings.policy) {
    out += fmt::format("Loss scaling by {}: {} skipped", policy::short_text_of(*settings.policy),
                       text::plural(static_cast<std::uint64_t>(summary.skipped), "step"));
    if (summary.attempts > summary.steps) {
      out += fmt::format(", {} in all",
                         text::plural(static_cast<std::uint64_t>(summary.attempts), "attempt"));
    }
    out += ".\n";
  }
  if (!summary.ended.empty()) {
    out += summary.ended + ".\n";
  }
  out += lost_text(settings, summary);
  if (settings.true_error) out += true_error_text(settings, summary);
  return out + next_text(settings, summary);
}

}  // namespace halfscope::cli::terminal
