// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/updates/pairs.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/optimizer/changed.hpp"

namespace halfscope::analyzers::weights {

namespace {

using optimizer::Bound;
using updates::Pair;
using Bits = std::vector<std::uint8_t>;

/// The forecast of one weight at one step, a bit an element.
struct Marks {
  Bits moves, undecided;
  ForecastSet counts;
};

std::uint64_t count_both(Bits a, const Bits& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] &= b[i];
  return optimizer::count_bits(a);
}

/// Returns the sum of min(1, |change| / gap between the copies above the weight).
double expected_changes(Format format, const std::vector<double>& before, const float* after) {
  double sum = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const int exponent = std::max(std::ilogb(before[i]), format.emin());
    const double share =
        std::ldexp(std::abs(after[i] - before[i]), format.fraction_bits() - exponent);
    if (std::isfinite(share)) sum += std::min(1.0, share);
  }
  return sum;
}

/// Returns the copies that change at a bound of the step, and how many change by the size alone.
std::pair<Bits, double> changed(const Pair& pair, const updates::Optimizer& by, Dtype copies,
                                Bound bound) {
  const TensorView weight = pair.weight().view;
  const updates::OptimizerInputs inputs = pair.inputs();
  const optimizer::Step<float> step(*by.row, by.settings(),
                                    {.steps = inputs.steps,
                                     .scale = inputs.gradient_scale,
                                     .moments_are_new = true,
                                     .dtype = weight.dtype,
                                     .bound = bound});
  const auto width = static_cast<std::size_t>(format_of(copies).width) / 8;
  Bits bits((weight.count + 7) / 8);
  double expected = 0;
  std::vector<std::byte> before, after;
  step.run(inputs, 0, weight.count, [&](const optimizer::Results<float>& of) {
    before.resize(of.count * width);
    after.resize(of.count * width);
    optimizer::copies_of(weight, copies, of.start, of.count, before.data());
    optimizer::copies_of(view_of(std::span(of.weight, of.count)), copies, 0, of.count,
                         after.data());
    for (std::size_t i = 0; i < of.count; ++i) {
      const bool moves = std::memcmp(&before[i * width], &after[i * width], width) != 0;
      bits[(of.start + i) / 8] |= static_cast<std::uint8_t>(moves << (of.start + i) % 8);
    }
    expected += expected_changes(format_of(copies), frames::elements(weight, of.start, of.count),
                                 of.weight);
  });
  return {bits, expected};
}

/// Forecasts one weight at one step.
Marks forecast_one(const Pair& pair, const updates::Optimizer& by, Dtype copies) {
  auto [moves, expected] = changed(pair, by, copies, Bound::shortest);
  Bits undecided(moves.size());
  const optimizer::Accuracy accuracy = by.row->accuracy;
  const TensorView weight = pair.weight().view;
  if (by.is_adam() && accuracy != optimizer::Accuracy::exact &&
      (accuracy != optimizer::Accuracy::root || weight.dtype == Dtype::f32)) {
    const Bits longest = changed(pair, by, copies, Bound::longest).first;
    for (std::size_t i = 0; i < longest.size(); ++i) {
      undecided[i] = static_cast<std::uint8_t>(moves[i] ^ longest[i]);
      moves[i] &= longest[i];
    }
  }
  using optimizer::count_bits;
  return {moves, undecided, {weight.count, count_bits(moves), count_bits(undecided), expected}};
}

/// Compares a forecast with what happened. Returns false if the tensors are not alike.
bool judge(const log::NamedTensor* before, const log::NamedTensor* after, const Marks& marks,
           TensorForecast& to) {
  if (before == nullptr || after == nullptr || before->view.dtype != after->view.dtype ||
      before->shape != after->shape) {
    return false;
  }
  Bits moved(marks.moves.size());
  const std::uint64_t all =
      optimizer::changed(before->view, after->view, to.copies, 0, before->view.count, moved);
  const std::uint64_t found = count_both(moved, marks.moves);
  to.judged += marks.counts;
  to.moved += all;
  to.found += found;
  to.missed += all - found - count_both(moved, marks.undecided);
  return true;
}

/// The forecasts of one log, step after step.
class Forecasts {
 public:
  Forecasts(const frames::Selection& selection, Dtype copies, Forecast& out)
      : selection_(selection), copies_(copies), out_(out) {}

  void take(const frames::WholeStep& step) {
    Previous& previous = previous_[step.rank];
    judge_previous(previous, step);
    previous = {step.step, step.tensors, {}};
    for (updates::PairNames& names : updates::optimizer_pairs_of(step, selection_, out_.notes)) {
      const updates::Optimizer by = *names.optimizer;
      const std::string weight = names.weight;
      const Pair pair(step, selection_, std::move(names));
      const Dtype dtype = pair.weight().view.dtype;
      if (dtype == Dtype::f64) continue;
      if (!pair.uses_gradient()) {
        out_.notes.add(fmt::format(
            "{}: the update of '{}' does not follow from its recorded gradient, which was changed "
            "before the step, as by clipping: such steps are not forecast",
            out_.log, log::printable(weight)));
        continue;
      }
      TensorForecast& to = tensors_[weight];
      to.name = weight;
      to.row = by.row->name;
      to.copies = optimizer::copy_dtype(dtype, copies_);
      Marks marks = forecast_one(pair, by, to.copies);
      to += marks.counts;
      const auto after =
          step.tensors->tensor("weight_after/" + std::string(underflow::path_of(weight)));
      if (!judge(&pair.weight(), after.get(), marks, to)) {
        previous.marks.emplace(weight, std::move(marks));
      }
      if (out_.steps.empty() || out_.steps.back() != step.step) out_.steps.push_back(step.step);
    }
  }

  void finish() {
    for (auto& [weight, forecast] : tensors_) {
      out_.all += forecast;
      out_.tensors.push_back(std::move(forecast));
    }
  }

 private:
  /// Forecasts of a rank's last step that its own file does not judge, by weight.
  struct Previous {
    std::int64_t step = 0;
    std::shared_ptr<const log::TensorFile> tensors = {};
    std::map<std::string, Marks> marks = {};
  };

  /// The weights before a step are those after the step before.
  void judge_previous(const Previous& previous, const frames::WholeStep& step) {
    if (previous.marks.empty() || step.step != previous.step + 1) return;
    for (const auto& [weight, marks] : previous.marks) {
      const auto before = previous.tensors->tensor(weight), after = step.tensors->tensor(weight);
      judge(before.get(), after.get(), marks, tensors_.at(weight));
    }
  }

  const frames::Selection& selection_;
  Dtype copies_;
  Forecast& out_;
  std::map<std::string, TensorForecast> tensors_;
  std::map<int, Previous> previous_;  ///< by rank
};

}  // namespace

ForecastSet& ForecastSet::operator+=(const ForecastSet& other) {
  elements += other.elements;
  moves += other.moves;
  undecided += other.undecided;
  expected += other.expected;
  return *this;
}

ForecastCounts& ForecastCounts::operator+=(const ForecastCounts& other) {
  ForecastSet::operator+=(other);
  judged += other.judged;
  moved += other.moved;
  found += other.found;
  missed += other.missed;
  return *this;
}

Forecast forecast_weights(const std::filesystem::path& path, const frames::Selection& selection,
                          Dtype copies, const frames::Progress& progress) {
  const readers::Logs logs(selection);
  const readers::Log& log = logs.at(path);
  Forecast out{.log = log::printable(path.string())};
  Forecasts all(selection, copies, out);
  const auto take = [&](const frames::WholeStep& step) { all.take(step); };
  readers::for_each_whole_step(log, selection, take, out.notes, progress);
  all.finish();
  if (!out.tensors.empty()) return out;
  const std::string reason = out.notes.empty() ? "" : "; " + *out.notes.begin();
  readers::refuse_without_tensors(
      log, selection,
      "has no sampled step with weights and the state of SGD, Adam or AdamW, so no step can be "
      "forecast; record samples of the roles weight and optimizer_state" +
          reason);
}

}  // namespace halfscope::analyzers::weights
