// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/reductions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "analyzers/reduction/element_terms.hpp"
#include "analyzers/reduction/gradient_terms.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/log/error.hpp"

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
  return facts.overflow > 0 || facts.relative_l2() >= kHarmfulError;
}

namespace {

/// What is added up in every format and order that is asked for.
struct Ways {
  std::vector<std::pair<std::string_view, Order>> all;

  /// A ring is of ranks.
  Ways(const Asked& asked, Over over) {
    for (const std::string_view format : asked.formats) {
      for (const Order order : asked.orders) {
        if (over == Over::ranks || order != Order::ring) all.emplace_back(format, order);
      }
    }
  }
};

/// Sums with few results take one chain each; the loops over results are for many.
constexpr std::size_t kFewSums = 16;

Facts facts_of(const Terms& terms, Format format, Order order) {
  namespace sums = halfscope::reduction;
  const std::size_t n = terms.addends.front().size();
  if (n >= kFewSums || order == Order::ring) {
    return sums::reduce(format, terms.addends,
                        {.order = order, .first = terms.first, .of = terms.of});
  }
  Facts facts;
  std::vector<float> addends(terms.addends.size());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t a = 0; a < addends.size(); ++a) addends[a] = terms.addends[a][i];
    facts += sums::sum(format, addends, order).facts;
  }
  return facts;
}

/// Every so many elements are kept for predictions, of a tensor of n.
std::size_t stride_of(std::size_t n) {
  constexpr std::size_t kMost = std::size_t{1} << 16;
  return (n + kMost - 1) / kMost;
}

/// Addends of some elements of a tensor, at the last step that has it: [addend][element].
struct Sample {
  std::size_t of = 0;  ///< elements of the tensor
  std::vector<std::vector<float>> addends;

  void take(const Terms& terms) {
    if (terms.first == 0) addends.assign(terms.addends.size(), {});
    of = terms.of;
    for (std::size_t a = 0; a < addends.size(); ++a) {
      for (std::size_t i = 0; i < terms.addends[a].size(); ++i) {
        if ((terms.first + i) % stride_of(of) == 0) addends[a].push_back(terms.addends[a][i]);
      }
    }
  }

  /// Those of another tensor: every so many of its elements are one here.
  void add(const Sample& other, std::size_t stride) {
    const std::size_t every = std::max<std::size_t>(1, stride / stride_of(other.of));
    addends.resize(other.addends.size());
    for (std::size_t a = 0; a < addends.size(); ++a) {
      for (std::size_t i = 0; i < other.addends[a].size(); i += every) {
        addends[a].push_back(other.addends[a][i]);
      }
    }
    of += other.of;
  }
};

/// The sums of one log.
class Collector {
 public:
  explicit Collector(const Asked& asked) : asked_(asked) {}

  void take(const Terms& terms) {
    const Key key{terms.over, terms.name, terms.sum, terms.addends.size()};
    const Ways ways(asked_, terms.over);
    std::vector<Facts>& kept = facts_[key];
    kept.resize(ways.all.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const auto& [format, order] = ways.all[i];
      kept[i] += facts_of(terms, find_format(format)->format, order);
    }
    const bool predicts = !asked_.counts.empty() && terms.over != Over::elements;
    if (predicts && key.count >= kFewestRanks) samples_[key].take(terms);
  }

  /// The sums of all gradients together first, then one by one.
  void finish(const std::string& log, std::vector<Reduction>& to) {
    std::map<Key, std::vector<Facts>> together;
    for (const auto& [key, facts] : facts_) {
      if (key.over == Over::elements) continue;
      std::vector<Facts>& all = together[{key.over, "", key.sum, key.count}];
      all.resize(facts.size());
      for (std::size_t i = 0; i < facts.size(); ++i) all[i] += facts[i];
    }
    together.merge(facts_);
    for (const auto& [key, facts] : together) {
      const Ways ways(asked_, key.over);
      for (std::size_t i = 0; i < facts.size(); ++i) {
        const auto& [format, order] = ways.all[i];
        to.push_back({log, key.name, key.sum, key.over, key.count, format, order, facts[i]});
      }
    }
  }

  /// All gradients together, by what they are over and how many were recorded.
  std::map<std::pair<Over, std::uint64_t>, Sample> samples() const {
    std::map<std::pair<Over, std::uint64_t>, std::size_t> strides;
    for (const auto& [key, sample] : samples_) {
      std::size_t& stride = strides[{key.over, key.count}];
      stride = std::max(stride, stride_of(sample.of));
    }
    std::map<std::pair<Over, std::uint64_t>, Sample> all;
    for (const auto& [key, sample] : samples_) {
      const std::pair of(key.over, key.count);
      all[of].add(sample, strides[of]);
    }
    return all;
  }

 private:
  struct Key {
    Over over;
    std::string name;
    Sum sum;
    std::uint64_t count;
    auto operator<=>(const Key&) const = default;
  };
  const Asked& asked_;
  std::map<Key, std::vector<Facts>> facts_;
  std::map<Key, Sample> samples_;  ///< where predictions are asked for
};

/// What is predicted of the sums of one log: all gradients together. In a model of ranks that are
/// alike a ring is a chain.
class Predictor {
 public:
  explicit Predictor(const Asked& asked) : asked_(asked) {}

  void add(const std::string& log, const Collector& collector) {
    for (auto& [of, sample] : collector.samples()) samples_.emplace_back(log, of.first, sample);
  }
  bool empty() const { return samples_.empty(); }

  void finish(std::vector<Reduction>& to, const frames::Progress& progress) {
    std::vector<Reduction> all;
    std::vector<const Sample*> of;
    for (const auto& [log, over, sample] : samples_) {
      for (const std::uint64_t count : asked_.counts) {
        for (const auto& [format, order] : Ways(asked_, over).all) {
          if (format == "binary32" && asked_.formats.size() > 1) continue;
          Reduction& one = all.emplace_back();
          one = {log, "", Sum::gradient, over, count, format, order, {}};
          one.facts.elements = sample.of;
          one.facts.additions = sample.of * (count - 1);
          of.push_back(&sample);
        }
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      predict_one(all, i, *of[i]);
      if (progress) progress(i + 1, all.size());
    }
    std::ranges::copy_if(all, std::back_inserter(to),
                         [](const Reduction& one) { return one.predicted.has_value(); });
  }

 private:
  static void predict_one(std::vector<Reduction>& all, std::size_t at, const Sample& sample) {
    Reduction& one = all[at];
    const Order order = one.order == Order::ring ? Order::sequential : one.order;
    for (std::size_t i = 0; i < at; ++i) {
      const Reduction& known = all[i];
      const bool same = std::tie(known.log, known.over, known.count, known.format, known.order) ==
                        std::tie(one.log, one.over, one.count, one.format, order);
      if (same) {
        one.predicted = known.predicted;
        return;
      }
    }
    const std::vector<std::span<const float>> addends(sample.addends.begin(), sample.addends.end());
    try {
      one.predicted =
          predict(find_format(one.format)->format, addends, one.count, {.order = order});
    } catch (const std::invalid_argument&) {
      // No element is finite on all ranks: there is nothing to predict from.
    }
  }

  const Asked& asked_;
  std::vector<std::tuple<std::string, Over, Sample>> samples_;
};

/// As it was asked, in the format that the analysis is about where none was named.
Asked with_formats(Asked asked, const underflow::Target& target) {
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

  OfLog(const underflow::LogFindings& log, const Asked& asked)
      : name(log.name), elements(log, asked.gradient_norms), collector(asked) {}
};

struct ReductionPass::Predictions : Predictor {
  using Predictor::Predictor;
};

ReductionPass::ReductionPass(underflow::Analysis& analysis, const frames::Selection& selection,
                             const Asked& asked)
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
  take_gradients(ranks, selection_, asked_.over, add);
  if (std::ranges::find(asked_.over, Over::elements) == asked_.over.end()) return;
  for (const frames::WholeStep& step : ranks) log_->elements.take(step, selection_, add);
}

void ReductionPass::finish_log() {
  log_->collector.finish(log_->name, found_);
  predictions_->add(log_->name, log_->collector);
  log_.reset();
}

std::vector<Reduction> ReductionPass::finish(const frames::Progress& predicting) {
  if (!asked_.counts.empty() && predictions_->empty()) {
    analysis_.notes.push_back(fmt::format(
        "{}: has no sums of {} addends or more, which predictions need; record more ranks or "
        "microbatches",
        log::printable(analysis_.logs.front().name), kFewestRanks));
  }
  predictions_->finish(found_, predicting);
  return std::move(found_);
}

}  // namespace halfscope::analyzers::reduction
