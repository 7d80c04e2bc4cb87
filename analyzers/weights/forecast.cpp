// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/readers/tensors/open.hpp"
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

/// The forecast of one weight at one step, a byte an element of eight.
struct Marks {
  Bits moves, undecided;
};

std::uint64_t count(const Bits& a) {
  std::uint64_t sum = 0;
  for (const unsigned byte : a) sum += static_cast<unsigned>(std::popcount(byte));
  return sum;
}

std::uint64_t count_both(const Bits& a, const Bits& b) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<unsigned>(std::popcount(static_cast<unsigned>(a[i] & b[i])));
  }
  return sum;
}

/// Returns the gap between numbers of a format above the magnitude of a value.
double ulp_of(Format format, double value) {
  const int exponent = value == 0 ? format.emin() : std::max(std::ilogb(value), format.emin());
  return std::ldexp(1.0, exponent - format.fraction_bits());
}

/// Forecasts one weight at one step.
class OneForecast {
 public:
  OneForecast(const Pair& pair, const updates::Optimizer& optimizer, Dtype copies)
      : pair_(pair),
        optimizer_(optimizer),
        weight_(pair.weight().view),
        copies_(optimizer::copy_dtype(weight_.dtype, copies)),
        inputs_(pair.inputs()) {}

  Marks run(TensorForecast& to) {
    const bool exact = is_exact();
    Marks marks;
    marks.moves = changed(exact ? Bound::nearest : Bound::shortest, &to.expected);
    marks.undecided.resize(marks.moves.size());
    if (!exact) {
      const Bits longest = changed(Bound::longest, nullptr);
      for (std::size_t i = 0; i < longest.size(); ++i) {
        marks.undecided[i] = static_cast<std::uint8_t>(marks.moves[i] ^ longest[i]);
        marks.moves[i] &= longest[i];
      }
    }
    to.elements += weight_.count;
    to.moves += count(marks.moves);
    to.undecided += count(marks.undecided);
    return marks;
  }

 private:
  bool is_exact() const {
    const optimizer::Accuracy accuracy = optimizer_.row->accuracy;
    if (accuracy == optimizer::Accuracy::exact) return true;
    if (!optimizer_.is_adam()) return true;
    return accuracy == optimizer::Accuracy::root && weight_.dtype != Dtype::f32;
  }

  /// Returns the copies that change at a bound of the step; adds to the expected number.
  Bits changed(Bound bound, double* expected) {
    Bits bits((weight_.count + 7) / 8);
    optimizer::StepOptions options;
    options.steps = inputs_.steps;
    options.scale = inputs_.gradient_scale;
    options.moments_are_new = true;
    options.dtype = weight_.dtype;
    options.bound = bound;
    const optimizer::Step<float> step(*optimizer_.row, optimizer_.settings(), options);
    step.run(inputs_, 0, weight_.count, [&](const optimizer::Results<float>& of) {
      compare(of, bits);
      if (expected != nullptr) *expected += expected_of(of);
    });
    return bits;
  }

  void compare(const optimizer::Results<float>& of, Bits& bits) {
    const std::size_t width = static_cast<std::size_t>(format_of(copies_).width) / 8;
    before_.resize(of.count * width);
    after_.resize(of.count * width);
    optimizer::copies_of(weight_, copies_, of.start, of.count, before_.data());
    optimizer::copies_of(view_of(std::span(of.weight, of.count)), copies_, 0, of.count,
                         after_.data());
    for (std::size_t i = 0; i < of.count; ++i) {
      const bool moves = std::memcmp(&before_[i * width], &after_[i * width], width) != 0;
      bits[(of.start + i) / 8] |= static_cast<std::uint8_t>(moves << (of.start + i) % 8);
    }
  }

  double expected_of(const optimizer::Results<float>& of) const {
    const Format format = format_of(copies_);
    const std::vector<double> before = frames::elements(weight_, of.start, of.count);
    double sum = 0;
    for (std::size_t i = 0; i < of.count; ++i) {
      const double share = std::abs(of.weight[i] - before[i]) / ulp_of(format, before[i]);
      if (std::isfinite(share)) sum += std::min(1.0, share);
    }
    return sum;
  }

  const Pair& pair_;
  const updates::Optimizer& optimizer_;
  TensorView weight_;
  Dtype copies_;
  updates::OptimizerInputs inputs_;
  std::vector<std::byte> before_, after_;
};

/// Compares a forecast with what happened.
void judge(const TensorView& before, const TensorView& after, Dtype copies, const Marks& marks,
           ForecastCounts& to) {
  Bits moved(marks.moves.size());
  to.moved += optimizer::changed(before, after, copies, 0, before.count, moved);
  to.judged += before.count;
  to.judged_moves += count(marks.moves);
  to.judged_undecided += count(marks.undecided);
  const std::uint64_t found = count_both(moved, marks.moves);
  to.found += found;
  to.missed += count(moved) - found - count_both(moved, marks.undecided);
}

/// The forecasts of one log, step after step.
class Forecasts {
 public:
  Forecasts(const readers::Log& log, const frames::Selection& selection, Dtype copies,
            frames::Notes& notes)
      : opened_(log.opened()), selection_(selection), copies_(copies), notes_(notes) {}

  void take(const frames::WholeStep& step) {
    judge_previous(step);
    previous_.clear();
    previous_step_ = step.step;
    previous_file_ = step.file;
    for (updates::PairNames& names : updates::optimizer_pairs_of(step, selection_, notes_)) {
      const updates::Optimizer optimizer = *names.optimizer;
      const std::string weight = names.weight;
      const Pair pair(step, selection_, std::move(names));
      if (pair.weight().view.dtype == Dtype::f64) continue;
      TensorForecast& to = forecast_.try_emplace(weight).first->second;
      to.name = weight;
      to.row = optimizer.row->name;
      to.copies = optimizer::copy_dtype(pair.weight().view.dtype, copies_);
      Marks marks = OneForecast(pair, optimizer, copies_).run(to);
      const auto after =
          step.tensors->tensor("weight_after/" + std::string(underflow::path_of(weight)));
      if (after && is_like(pair.weight(), *after)) {
        judge(pair.weight().view, after->view, copies_, marks, to);
      } else {
        previous_.emplace(weight, std::move(marks));
      }
    }
    if (!forecast_.empty()) steps_.push_back(step.step);
  }

  Forecast finish(std::string name) && {
    Forecast out{std::move(name), std::move(steps_), {}, {}, {}};
    for (auto& [weight, forecast] : forecast_) {
      out.all += forecast;
      out.tensors.push_back(std::move(forecast));
    }
    return out;
  }

 private:
  static bool is_like(const log::NamedTensor& a, const log::NamedTensor& b) {
    return a.view.dtype == b.view.dtype && a.shape == b.shape;
  }

  /// The weights before a step are those after the step before.
  void judge_previous(const frames::WholeStep& step) {
    if (previous_.empty() || step.step != previous_step_ + 1) return;
    const auto file = readers::tensors::open_tensor_file(opened_.at(previous_file_));
    for (const auto& [weight, marks] : previous_) {
      const auto before = file->tensor(weight), after = step.tensors->tensor(weight);
      if (!before || !after || !is_like(*before, *after)) continue;
      judge(before->view, after->view, copies_, marks, forecast_.at(weight));
    }
  }

  const log::OpenPath& opened_;
  const frames::Selection& selection_;
  Dtype copies_;
  frames::Notes& notes_;
  std::map<std::string, TensorForecast> forecast_;
  std::map<std::string, Marks> previous_;  ///< weights of the previous step by name
  std::int64_t previous_step_ = 0;
  std::filesystem::path previous_file_;
  std::vector<std::int64_t> steps_;
};

}  // namespace

ForecastCounts& ForecastCounts::operator+=(const ForecastCounts& other) {
  elements += other.elements;
  moves += other.moves;
  undecided += other.undecided;
  expected += other.expected;
  judged += other.judged;
  judged_moves += other.judged_moves;
  judged_undecided += other.judged_undecided;
  moved += other.moved;
  found += other.found;
  missed += other.missed;
  return *this;
}

Forecast forecast_weights(const std::filesystem::path& log, const frames::Selection& selection,
                          Dtype copies, const frames::Progress& progress) {
  const readers::Logs opened(selection);
  const std::string name = log::printable(log.string());
  frames::Notes notes;
  Forecasts all(opened.at(log), selection, copies, notes);
  const auto take = [&](const frames::WholeStep& step) { all.take(step); };
  readers::for_each_whole_step(opened.at(log), selection, take, notes, progress);
  Forecast out = std::move(all).finish(name);
  if (out.tensors.empty()) {
    throw log::BadInput(
        fmt::format("{}: has no sampled step with weights and the state of SGD, Adam or AdamW, so "
                    "no step can be forecast; record samples of the roles weight and "
                    "optimizer_state",
                    name));
  }
  out.notes = std::move(notes);
  return out;
}

}  // namespace halfscope::analyzers::weights
