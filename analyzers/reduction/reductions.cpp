// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/reductions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/samples.hpp"
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
  if (predicted) return predicted->relative_l2.high >= kHarmfulError;
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

  /// Those of another tensor, of which the sample is denser: so many of its elements are one here.
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

  bool predicts() const { return !samples_.empty(); }

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
    add_predictions(log, to);
  }

 private:
  struct Key {
    Over over;
    std::string name;
    Sum sum;
    std::uint64_t count;
    auto operator<=>(const Key&) const = default;
  };
  /// Of all gradients together first.
  void add_predictions(const std::string& log, std::vector<Reduction>& to) {
    std::map<Key, std::size_t> strides;
    const auto together = [](const Key& key) { return Key{key.over, "", key.sum, key.count}; };
    for (const auto& [key, sample] : samples_) {
      std::size_t& stride = strides[together(key)];
      stride = std::max(stride, stride_of(sample.of));
    }
    std::map<Key, Sample> all;
    for (const auto& [key, sample] : samples_) {
      all[together(key)].add(sample, strides[together(key)]);
    }
    all.merge(samples_);
    for (const auto& [key, sample] : all) {
      for (const std::uint64_t count : asked_.counts) predict_sums(log, key, sample, count, to);
    }
  }

  void predict_sums(const std::string& log, const Key& key, const Sample& sample,
                    std::uint64_t count, std::vector<Reduction>& to) const {
    const std::vector<std::span<const float>> addends(sample.addends.begin(), sample.addends.end());
    for (const auto& [format, order] : Ways(asked_, key.over).all) {
      Reduction one{log, key.name, key.sum, key.over, count, format, order, {}};
      one.facts.elements = sample.of;
      one.facts.additions = sample.of * (count - 1);
      one.predicted = predict(find_format(format)->format, addends, count, {.order = order});
      to.push_back(std::move(one));
    }
  }

  const Asked& asked_;
  std::map<Key, std::vector<Facts>> facts_;
  std::map<Key, Sample> samples_;  ///< where predictions are asked for
};

}  // namespace

std::vector<Reduction> reductions(underflow::Analysis& analysis, const frames::Selection& selection,
                                  const Asked& asked, const readers::Logs& opened,
                                  const frames::Progress& progress) {
  std::vector<Reduction> found;
  const bool of_elements = std::ranges::find(asked.over, Over::elements) != asked.over.end();
  for (const underflow::LogFindings& log : analysis.logs) {
    const readers::Log& source = opened.at(log.source);
    const ElementTerms elements(log);
    Collector collector(asked);
    const auto take = [&](const Terms& terms) { collector.take(terms); };
    const auto of_step = [&](std::span<const frames::WholeStep> ranks) {
      take_gradients(ranks, selection, asked.over, take);
      if (!of_elements) return;
      for (const frames::WholeStep& step : ranks) elements.take(step, selection, take);
    };
    readers::for_each_whole_step_of_ranks(source, selection, of_step, analysis.notes, progress);
    collector.finish(log.name, found);
    if (!asked.counts.empty() && !collector.predicts()) {
      analysis.notes.push_back(fmt::format(
          "{}: has no sums of {} addends or more, which predictions need; record more ranks or "
          "microbatches",
          log::printable(log.name), kFewestRanks));
    }
  }
  return found;
}

}  // namespace halfscope::analyzers::reduction
