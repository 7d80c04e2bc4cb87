// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/gaps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::frames::Gap;
using analyzers::frames::StepPeak;
using analyzers::frames::Tool;
using analyzers::underflow::Analysis;
using analyzers::underflow::LogFindings;
using analyzers::underflow::TensorFindings;

namespace {

/// One log with its gradients, or with all of its tensors if it has no gradients.
struct View {
  const Analysis& analysis;
  const LogFindings& log;
  std::vector<const TensorFindings*> tensors;
  std::vector<const StepPeak*> peaks;
  std::set<std::int64_t> steps;  ///< with histograms or magnitudes
  bool gradients = false;

  std::string_view values() const { return gradients ? "gradient values" : "values"; }
  std::string format() const { return people_say(analysis.target.name); }
  std::string scale() const { return scale_text(analysis.loss_scale); }
};

View view_of(const Analysis& analysis, const LogFindings& log) {
  View view{analysis, log, {}, {}, {}, false};
  view.gradients = std::ranges::any_of(log.tensors, &TensorFindings::loss_scaled);
  for (const TensorFindings& t : log.tensors) {
    for (const analyzers::underflow::StepFindings& step : t.per_step) view.steps.insert(step.step);
    if (t.loss_scaled == view.gradients) view.tensors.push_back(&t);
  }
  for (const StepPeak& peak : log.peaks) {
    // the magnitude of a role, which is computed from the tensors
    if (peak.tensor.empty()) continue;
    view.peaks.push_back(&peak);
    view.steps.insert(peak.step);
  }
  return view;
}

std::string named(const TensorFindings& tensor) { return log::printable(tensor.name); }

/// The number of values in buckets that contain zero, and the largest end of these buckets.
struct NearZero {
  std::uint64_t count = 0;
  double below = 0;
};

NearZero near_zero(const TensorFindings& tensor) {
  NearZero out;
  for (const analyzers::underflow::ScaledTable& scaled : tensor.tables) {
    for (const Span& span : scaled.table.spans()) {
      if (span.first || !span.last) continue;
      out.count += span.count;
      out.below = std::max(out.below, to_double(*span.last) / scaled.scale);
    }
  }
  return out;
}

std::string zeros_text(const View& view) {
  NearZero all;
  std::uint64_t of = 0;
  Interval flushed, nonzero;
  for (const TensorFindings* t : view.tensors) {
    if (t->hidden_by_buckets) continue;  // underflow_text() says it
    const NearZero found = near_zero(*t);
    all.count += found.count;
    all.below = std::max(all.below, found.below);
    of += t->counts.total;
    flushed += t->counts.classes.flushed_to_zero;
    nonzero += t->counts.finite_nonzero;
  }
  if (all.count == 0) return "";
  std::string text =
      fmt::format("{} of {} {} lie in a bucket with zero: they are zeros, or smaller than {:.3g}.",
                  count_text(all.count), count_text(of), view.values(), all.below);
  if (nonzero.low == 0 || flushed.high < all.count) return text;
  return text + fmt::format(
                    " If they are zeros, {} of the others become zero in {} at scale {}; "
                    "if none is, {} of all.",
                    share_text({flushed.low, flushed.high - all.count}, nonzero.low), view.format(),
                    view.scale(), share_text(flushed.high, nonzero.high));
}

std::string underflow_text(const View& view) {
  const TensorFindings* worst = nullptr;
  std::size_t hidden = 0;
  for (const TensorFindings* t : view.tensors) {
    if (!t->hidden_by_buckets) continue;
    ++hidden;
    const auto share = [](const TensorFindings& x) { return flushed_share(x.counts).high; };
    if (!worst || share(*t) > share(*worst)) worst = t;
  }
  if (!worst) return "";
  const Bounds share = flushed_share(worst->counts);
  return fmt::format(
      "Underflow to zero in {} is not identifiable: a bucket holds zero and values that {} keeps. "
      "It is between {} and {} of {} at scale {}{}.",
      view.format(), view.format(), share_text(share.low), share_text(share.high), named(*worst),
      view.scale(),
      hidden == 1 ? "" : fmt::format(", and in {} more", plural(hidden - 1, "tensor")));
}

std::string nonfinite_text(const View& view) {
  const auto unknown = std::ranges::count_if(
      view.tensors, [](const TensorFindings* t) { return !t->counts.nonfinite_known; });
  return fmt::format(
      "Infinities and NaN were dropped without a count{}, so overflow in the run itself is "
      "unknown.",
      unknown == 0 ? ""
                   : fmt::format(" in {}", plural(static_cast<std::uint64_t>(unknown), "tensor")));
}

std::string rounded_text(const View& view) {
  std::uint64_t bounded = 0, zero = 0;
  double most = 0;
  for (const StepPeak* peak : view.peaks) {
    if (!peak->at_least) continue;
    ++bounded;
    if (*peak->at_least > 0) continue;
    ++zero;
    most = std::max(most, peak->max_abs);
  }
  if (bounded == 0) return "The log prints few digits, so magnitudes are bounds.";
  std::string text = fmt::format(
      "The log prints few digits: {} of {} magnitudes are known only between two bounds",
      count_text(bounded), count_text(view.peaks.size()));
  if (zero != 0) {
    text += fmt::format(", {} of them only to be at most {:.3g}", count_text(zero), most);
  }
  return text + ".";
}

std::string dtype_text(const View& view) {
  Interval zeros;
  std::uint64_t of = 0;
  for (const TensorFindings* t : view.tensors) {
    zeros += t->counts.zero;
    of += t->counts.total;
  }
  const std::string text = fmt::format(
      "The log does not say which dtype computed the values: if it was {}, what underflowed is "
      "zero already",
      view.format());
  if (zeros.high == 0) return text + ".";
  return text + fmt::format(" ({} of the {} are zero).", share_text(zeros, of), view.values());
}

std::string loss_scale_text(const View& view) {
  const auto carries = [](const TensorFindings* t) {
    return std::ranges::any_of(t->per_step, [](const auto& step) { return step.scale != 1; });
  };
  // the log has the scale
  if (view.gradients && std::ranges::any_of(view.tensors, carries)) return "";
  return "The log does not say which loss scale the gradients carry: they are taken as unscaled. "
         "If they carry one, every scale here is wrong by that factor: give it with "
         "--recorded-scale S, or name the scalar that has it with --recorded-scale TAG.";
}

std::string counts_text(const View& view) {
  if (view.peaks.empty() && !view.tensors.empty()) return "";
  std::set<std::string> tensors;
  for (const StepPeak* peak : view.peaks) tensors.insert(peak->tensor);
  std::string text =
      "The log has maximum magnitudes but no histograms, so underflow cannot be measured";
  if (view.peaks.empty()) return text + ".";
  return text + fmt::format("; the largest magnitudes of {} at {} bound a loss scale from above.",
                            plural(tensors.size(), "tensor"), plural(view.steps.size(), "step"));
}

/// Returns what scalars show in a log without tensors; empty if nothing about the scale.
std::string scalars_text(const View& view) {
  const std::string steps = plural(view.log.scalars.size(), "step");
  const bool of_scale = std::ranges::any_of(view.log.scalars, [](const log::StepScalars& scalars) {
    return scalars.loss_scale || scalars.found_inf;
  });
  if (of_scale) return fmt::format("; the scalars of {} show what the loss scale did", steps);
  const bool counted = std::ranges::any_of(
      view.log.kinds, [](const auto& kind) { return kind.counted_from.has_value(); });
  if (!counted || !view.log.skips.empty() || view.log.scalars.empty()) return "";
  return fmt::format(
      "; the scalars of {} have no loss scale, and their counter shows no skipped step", steps);
}

std::string tensors_text(const View& view) {
  if (!view.peaks.empty() || !view.tensors.empty()) return "";
  return fmt::format(
      "The log has no magnitudes of tensors, so underflow and overflow cannot be measured{}.",
      scalars_text(view));
}

std::string steps_text(const View& view) {
  return fmt::format(
      "The log does not say which step each entry is from: where no step is printed, {} are "
      "counted from 0.",
      view.steps.size() < 2 ? "entries" : count_text(view.steps.size()) + " entries");
}

std::string every_step_text(const View& view) {
  if (view.steps.size() < 2) {
    return "The log has one step only: how magnitudes change, and how often a step would overflow, "
           "is unknown.";
  }
  const std::int64_t first = *view.steps.begin(), last = *view.steps.rbegin();
  const auto between = static_cast<std::uint64_t>(last - first) + 1;
  if (between == view.steps.size()) return "";
  return fmt::format(
      "The log has {} of the steps from {} to {}: an overflow at another step is not seen.",
      count_text(view.steps.size()), first, last);
}

std::string updates_text(const View& view) {
  return fmt::format(
      "The log has no weights with their updates, so updates lost in {} weights cannot be counted.",
      view.format());
}

/// The words for each gap, most important first.
struct Words {
  Gap gap;
  std::string_view name, what;
  std::string (*text)(const View& view);
};
constexpr Words kWords[] = {
    {Gap::tensors, "tensors", "magnitudes of tensors", tensors_text},
    {Gap::counts, "counts", "how many values are how large", counts_text},
    {Gap::underflow, "underflow", "what is flushed to zero", underflow_text},
    {Gap::zeros, "zeros", "which of the smallest values are zeros", zeros_text},
    {Gap::rounded, "rounded", "digits that were not printed", rounded_text},
    {Gap::nonfinite, "nonfinite", "how many infinities and NaN there were", nonfinite_text},
    {Gap::loss_scale, "loss_scale", "which loss scale gradients carry", loss_scale_text},
    {Gap::dtype, "dtype", "which format values were computed in", dtype_text},
    {Gap::steps, "steps", "which step an entry is of", steps_text},
    {Gap::every_step, "every_step", "the steps between those recorded", every_step_text},
    {Gap::updates, "updates", "what becomes of weight updates", updates_text}};

/// All kinds of files in one log. A folder may have several, and each closes gaps of the others.
struct Kinds {
  std::string name;
  std::set<Gap> gaps;
  std::vector<Tool> tools;
};

Kinds kinds_of(const LogFindings& log) {
  Kinds all;
  for (const analyzers::frames::LogKind& kind : log.kinds) {
    all.name += (all.name.empty() ? "" : " and ") + kind.name;
    all.gaps.insert(kind.gaps.begin(), kind.gaps.end());
    all.tools.push_back(kind.tool);
  }
  return all;
}

/// Returns the framework that most likely wrote the log. TensorBoard files come from PyTorch or
/// TensorFlow; Keras names weights "kernel". Other logs are most often from PyTorch.
Framework framework_of(const Kinds& kinds, const View& view) {
  const auto any = [&](Tool tool) { return std::ranges::count(kinds.tools, tool) != 0; };
  if (any(Tool::deepspeed)) return Framework::deepspeed;
  if (any(Tool::paddle)) return Framework::paddle;
  const bool keras = std::ranges::any_of(
      view.tensors, [](const auto* t) { return t->name.find("kernel") != std::string::npos; });
  return kinds.tools.front() == Tool::tensorboard && keras ? Framework::tensorflow
                                                           : Framework::pytorch;
}

/// In the order of Framework. tests/python/test_recording_lines.py runs the lines.
constexpr Recording kRecordings[] = {
    {"with PyTorch, around the training loop; add scaler=scaler where there is a GradScaler "
     "(docs/recording.md)",
     "from halfscope.torch import Recorder\n"
     "with Recorder(model, optimizer, \"run\", every=100, sample_every=1000):\n"
     "    ...  # the training loop, as it is"},
    // DeepSpeed's ZeRO optimizers return the full gradient with the loss scale that their step
    // divides by (deepspeed/utils/tensor_fragment.py). Every rank must make the call.
    {"with DeepSpeed, on every rank, between engine.backward(loss) and engine.step(), into a "
     "folder "
     "run (docs/folders.md)",
     "import safetensors.torch; from deepspeed.utils import safe_get_full_grad as full\n"
     "grads = {f\"weight_grad/{n}\": full(p).cpu() for n, p in engine.module.named_parameters() "
     "if p.requires_grad}\n"
     "engine.global_rank or safetensors.torch.save_file(grads, f\"run/step-{step}.safetensors\", "
     "{\"gradients\": \"scaled\", \"scale\": str(engine.optimizer.loss_scale)})"},
    {"with TensorFlow, where gradients = tape.gradient(...) are unscaled, into a folder run "
     "(docs/folders.md)",
     "import numpy as np\n"
     "grads = [(v.name, np.asarray(g)) for v, g in zip(model.trainable_variables, gradients)]\n"
     "np.savez(f\"run/step-{step}.npz\", **{f\"weight_grad/{i}/{n}\": g for i, (n, g) in "
     "enumerate(grads)})"},
    {"with Paddle, between loss.backward() and optimizer.step(), into a folder run "
     "(docs/folders.md)",
     "import numpy as np\n"
     "grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}\n"
     "np.savez(f\"run/step-{step}.npz\", **{f\"weight_grad/{n}\": g.numpy() for n, g in "
     "grads.items()})"}};

}  // namespace

std::string_view name_of(Gap gap) { return std::ranges::find(kWords, gap, &Words::gap)->name; }

std::string title_of(const LogGaps& gaps, bool several_logs) {
  return fmt::format("What {} does not show ({})", several_logs ? code(gaps.log) : "the log",
                     log::printable(gaps.kind));
}

std::vector<LogGaps> could_not_tell(const Analysis& analysis) {
  std::vector<LogGaps> out;
  for (const LogFindings& log : analysis.logs) {
    if (log.kinds.empty()) continue;
    const Kinds kinds = kinds_of(log);
    const View view = view_of(analysis, log);
    LogGaps found{log.name, kinds.name, {}, recording_for(framework_of(kinds, view))};
    for (const Words& words : kWords) {
      if (!kinds.gaps.contains(words.gap)) continue;
      const std::string text = words.text(view);
      if (!text.empty()) found.unknown.push_back({words.gap, words.what, text});
    }
    if (!found.unknown.empty()) out.push_back(std::move(found));
  }
  return out;
}

Recording recording_for(Framework framework) {
  return kRecordings[static_cast<std::size_t>(framework)];
}

}  // namespace halfscope::reports::answer
