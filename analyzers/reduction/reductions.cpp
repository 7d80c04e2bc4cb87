// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/reductions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "analyzers/reduction/element_sums.hpp"
#include "analyzers/reduction/terms.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/number/format_names.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::analyzers::reduction {

std::string_view name_of(Over over) {
  switch (over) {
    case Over::ranks: return "ranks";
    case Over::microbatches: return "microbatches";
    case Over::elements: return "elements";
  }
  return "";
}

std::string_view name_of(Sum sum) {
  switch (sum) {
    case Sum::gradient: return "gradient";
    case Sum::bias_gradient: return "bias_gradient";
    case Sum::mean: return "mean";
    case Sum::variance: return "variance";
    case Sum::mean_square: return "mean_square";
    case Sum::softmax: return "softmax";
    case Sum::gradient_norm: return "gradient_norm";
  }
  return "";
}

bool Reduction::is_harmful() const {
  if (predicted)
    return predicted->overflow.high > 0 || predicted->relative_l2.high >= kHarmfulError;
  return facts.overflow > 0 || facts.relative_l2() >= kHarmfulError ||
         flushed_share >= kHarmfulError;
}

bool Reduction::is_surely_harmful() const {
  if (!predicted) return is_harmful();
  return predicted->overflow.low > 0 || predicted->relative_l2.low >= kHarmfulError;
}

bool Reduction::stalls() const {
  return facts.relative_l2() >= kTenth && facts.lost_share() >= kTenth;
}

/// A random sample of the elements of all gradients at one step, with their addends:
/// [addend][element]. It is random so that no row or column of a matrix is preferred.
class Sample {
 public:
  /// Adds the elements of a tensor. A later step replaces the sample.
  void take(std::int64_t step, const Terms& terms);

  std::uint64_t elements() const { return elements_; }
  std::vector<std::span<const float>> addends() const;

 private:
  void halve();

  std::int64_t step_ = -1;
  std::uint64_t elements_ = 0;  ///< number of elements of the step
  std::uint64_t one_of_ = 1;    ///< one of this many elements is sampled; a power of two
  std::vector<std::uint64_t> places_;
  std::vector<std::vector<float>> addends_;
};

/// Predicts from the last step of each log. Its ranks are alike, so a ring is a sequential sum.
class Predictions {
 public:
  explicit Predictions(const ReductionOptions& asked) : asked_(asked) {}

  /// Adds the gradients of a step as addends, over ranks or over microbatches.
  void take(const std::string& log, std::int64_t step, const Terms& terms);
  bool empty() const { return samples_.empty(); }
  std::vector<Reduction> finish(const frames::Progress& progress) const;

 private:
  /// Log, kind of addends, number of addends.
  using Key = std::tuple<std::string, Over, std::uint64_t>;

  void predict_orders(const Key& key, std::uint64_t count, std::string_view format,
                      std::vector<Reduction>& to) const;

  const ReductionOptions& asked_;
  std::map<Key, Sample> samples_;
};

namespace {

constexpr std::size_t kMostPlaces = std::size_t{1} << 17;

bool is_one_of(std::uint64_t place, std::uint64_t of) {
  return of == 1 || random_word(0, place) % of == 0;
}

/// Returns a prediction; empty if no element is finite in all addends.
std::optional<Prediction> predict_from(const Sample& sample, std::string_view format,
                                       std::uint64_t count, Order order) {
  try {
    return predict(find_format(format)->format, sample.addends(), count, {.order = order});
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

void Sample::take(std::int64_t step, const Terms& terms) {
  if (step != step_) *this = Sample();
  step_ = step;
  addends_.resize(terms.addends);
  for (std::size_t i = 0; i < terms.sums(); ++i, ++elements_) {
    if (!is_one_of(elements_, one_of_)) continue;
    places_.push_back(elements_);
    for (std::size_t a = 0; a < addends_.size(); ++a) addends_[a].push_back(terms.addend(a)[i]);
    if (places_.size() > kMostPlaces) halve();
  }
}

std::vector<std::span<const float>> Sample::addends() const {
  return {addends_.begin(), addends_.end()};
}

void Sample::halve() {
  one_of_ *= 2;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!is_one_of(places_[i], one_of_)) continue;
    places_[kept] = places_[i];
    for (std::vector<float>& addend : addends_) addend[kept] = addend[i];
    ++kept;
  }
  places_.resize(kept);
  for (std::vector<float>& addend : addends_) addend.resize(kept);
}

void Predictions::take(const std::string& log, std::int64_t step, const Terms& terms) {
  if (asked_.counts.empty() || terms.addends < kFewestRanks) return;
  samples_[{log, terms.over, terms.addends}].take(step, terms);
}

void Predictions::predict_orders(const Key& key, std::uint64_t count, std::string_view format,
                                 std::vector<Reduction>& to) const {
  const auto& [log, over, recorded] = key;
  const Sample& sample = samples_.at(key);
  std::map<Order, std::optional<Prediction>> known;
  for (const Order order : asked_.orders) {
    if (order == Order::ring && over != Over::ranks) continue;
    const Order chain = order == Order::ring ? Order::sequential : order;
    const auto [at, is_new] = known.try_emplace(chain);
    if (is_new) at->second = predict_from(sample, format, count, chain);
    if (!at->second) continue;
    Reduction& one = to.emplace_back(Reduction{log, "", Sum::gradient, over, count, format, order});
    one.facts.elements = sample.elements();
    one.facts.additions = sample.elements() * (count - 1);
    one.predicted = at->second;
  }
}

std::vector<Reduction> Predictions::finish(const frames::Progress& progress) const {
  std::vector<std::string_view> formats = asked_.formats;
  if (formats.size() > 1) std::erase(formats, "binary32");
  const std::uint64_t all = samples_.size() * asked_.counts.size() * formats.size();
  std::vector<Reduction> found;
  std::uint64_t done = 0;
  for (const auto& [key, sample] : samples_) {
    for (const std::uint64_t count : asked_.counts) {
      for (const std::string_view format : formats) {
        if (progress) progress(done++, all);
        predict_orders(key, count, format, found);
      }
    }
  }
  return found;
}

namespace {

/// The requested formats and orders.
struct FormatOrderPairs {
  std::vector<std::pair<std::string_view, Order>> all;

  /// The order `ring` applies to ranks only.
  FormatOrderPairs(const ReductionOptions& asked, Over over) {
    for (const std::string_view format : asked.formats) {
      for (const Order order : asked.orders) {
        if (over == Over::ranks || order != Order::ring) all.emplace_back(format, order);
      }
    }
  }
};

Facts facts_of(const Terms& terms, Format format, Order order) {
  namespace sums = halfscope::reduction;
  Facts facts;
  if (terms.sums() >= kFewSums || order == Order::ring) {
    std::vector<std::span<const float>> addends;
    for (std::size_t a = 0; a < terms.addends; ++a) addends.push_back(terms.addend(a));
    facts = sums::reduce(format, addends, {.order = order, .first = terms.first, .of = terms.of});
    add_beyond(terms.beyond, terms.addends, facts);
    return facts;
  }
  std::vector<float> addends(terms.addends);
  for (std::size_t i = 0; i < terms.sums(); ++i) {
    for (std::size_t a = 0; a < addends.size(); ++a) addends[a] = terms.addend(a)[i];
    facts += sums::sum(format, addends, order).facts;
  }
  add_beyond(terms.beyond, terms.addends, facts);
  return facts;
}

/// Returns the sum of the addends' magnitudes that are at most `largest`.
double magnitudes_of(const Terms& terms, double largest) {
  double sum = 0;
  for (const float x : terms.values) {
    const double magnitude = std::fabs(static_cast<double>(x));
    if (magnitude <= largest) sum += magnitude;
  }
  return sum;
}

/// Returns the largest magnitude that rounds to zero, ties to even: half the least subnormal.
double largest_flushed(Format f) { return std::ldexp(1.0, f.emin() - f.precision); }

struct Kept {
  Facts facts;
  double flushed = 0, all = 0;  ///< sums of the addends' magnitudes

  Kept& operator+=(const Kept& other) {
    facts += other.facts;
    flushed += other.flushed;
    all += other.all;
    return *this;
  }
};

/// Collects the sums of one log.
class Collector {
 public:
  explicit Collector(const ReductionOptions& asked) : asked_(asked) {}

  void take(const Terms& terms) {
    take(
        {terms.over, terms.name, terms.sum, terms.addends},
        [&](double largest) { return magnitudes_of(terms, largest); },
        [&](Format format, Order order) { return facts_of(terms, format, order); });
  }
  void take(const ElementSums& sums) {
    take(
        {Over::elements, sums.name(), sums.sum(), sums.addends()},
        [&](double largest) { return sums.magnitudes(largest); },
        [&](Format format, Order order) { return sums.facts(format, order); });
  }

  /// Appends the sums over all gradients together, then the sums of single tensors.
  void finish(const std::string& log, std::vector<Reduction>& to) {
    std::map<Key, std::vector<Kept>> together;
    for (const auto& [key, kept] : kept_) {
      if (key.over == Over::elements) continue;
      std::vector<Kept>& all = together[{key.over, "", key.sum, key.count}];
      all.resize(kept.size());
      for (std::size_t i = 0; i < kept.size(); ++i) all[i] += kept[i];
    }
    together.merge(kept_);
    for (const auto& [key, kept] : together) {
      const FormatOrderPairs ways(asked_, key.over);
      for (std::size_t i = 0; i < kept.size(); ++i) {
        const auto& [format, order] = ways.all[i];
        const double share = kept[i].all > 0 ? kept[i].flushed / kept[i].all : 0;
        to.push_back(
            {log, key.name, key.sum, key.over, key.count, format, order, kept[i].facts, share});
      }
    }
  }

 private:
  struct Key {
    Over over;
    std::string name;
    Sum sum;
    std::uint64_t count;
    auto operator<=>(const Key&) const = default;
  };

  template <class Magnitudes, class FactsOf>
  void take(const Key& key, const Magnitudes& magnitudes, const FactsOf& facts) {
    const FormatOrderPairs ways(asked_, key.over);
    std::vector<Kept>& kept = kept_[key];
    kept.resize(ways.all.size());
    const double all = magnitudes(std::numeric_limits<float>::max());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const auto& [name, order] = ways.all[i];
      const Format format = find_format(name)->format;
      Kept one{facts(format, order), 0, all};
      if (one.facts.flushed > 0) one.flushed = magnitudes(largest_flushed(format));
      kept[i] += one;
    }
  }

  const ReductionOptions& asked_;
  std::map<Key, std::vector<Kept>> kept_;
};

/// Returns the request, with the target format if no format is named.
ReductionOptions with_formats(ReductionOptions asked, const underflow::Target& target) {
  if (asked.formats.empty() && halfscope::reduction::can_accumulate(target.format)) {
    asked.formats = {target.name};
  }
  return asked;
}

}  // namespace

struct ReductionPass::OfLog {
  std::string name;
  ElementTerms elements;
  Collector collector;
  std::set<std::string> differ;  ///< gradients whose shapes differ between ranks

  OfLog(const underflow::LogFindings& log, const ReductionOptions& asked)
      : name(log.name), elements(log, asked.gradient_norms), collector(asked) {}
};

ReductionPass::ReductionPass(underflow::Analysis& analysis, const frames::Selection& selection,
                             const ReductionOptions& asked)
    : analysis_(analysis),
      selection_(selection),
      asked_(with_formats(asked, analysis.target)),
      predictions_(std::make_unique<Predictions>(asked_)) {}

ReductionPass::~ReductionPass() = default;

void ReductionPass::begin(const underflow::LogFindings& log) {
  log_ = std::make_unique<OfLog>(log, asked_);
}

void ReductionPass::take(std::span<const frames::WholeStep> ranks) {
  const auto add = [&](const Terms& terms) { log_->collector.take(terms); };
  const auto add_gradients = [&](const Terms& terms) {
    add(terms);
    predictions_->take(log_->name, ranks.front().step, terms);
  };
  log_->differ.merge(take_gradients(ranks, selection_, asked_.over, add_gradients));
}

void ReductionPass::take(const frames::WholeStep& step, const frames::TakeLoaded& beside) {
  if (std::ranges::find(asked_.over, Over::elements) == asked_.over.end()) return;
  const auto add = [&](const ElementSums& sums) { log_->collector.take(sums); };
  log_->elements.take(step, selection_, add, beside);
}

void ReductionPass::finish_log() {
  log_->collector.finish(log_->name, found_);
  if (!log_->differ.empty()) {
    analysis_.notes.add(fmt::format(
        "{}: {} another shape on another rank, so {} not summed over ranks; the first is '{}'",
        log::printable(log_->name),
        log_->differ.size() == 1 ? "1 gradient has"
                                 : fmt::format("{} gradients have", log_->differ.size()),
        log_->differ.size() == 1 ? "it is" : "they are", log::printable(*log_->differ.begin())));
  }
  log_.reset();
}

std::vector<Reduction> ReductionPass::finish(const frames::Progress& predicting) {
  const bool has_gradients =
      std::ranges::any_of(found_, [](const Reduction& one) { return one.over != Over::elements; });
  if (!asked_.counts.empty() && has_gradients && predictions_->empty()) {
    analysis_.notes.add(fmt::format(
        "{}: has no sums of {} addends or more, which predictions need; record more ranks or "
        "microbatches",
        log::printable(analysis_.logs.front().name), kFewestRanks));
  }
  std::ranges::move(predictions_->finish(predicting), std::back_inserter(found_));
  return std::move(found_);
}

}  // namespace halfscope::analyzers::reduction
