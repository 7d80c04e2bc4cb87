// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/predict.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/reduction/addend_model.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/device/arena.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::analyzers::reduction {
namespace {

using halfscope::reduction::Facts;

constexpr std::size_t kAddends = std::size_t{1} << 25;  // number of simulated addends, about
constexpr std::size_t kMostElements = std::size_t{1} << 16, kFewestElements = 2048;
constexpr std::size_t kTensors = 256;  // simulated copies of a small tensor, at most
// Least relative errors of the model, as tests show; the second is divided by the number of ranks.
constexpr double kModelError = 0.05, kFewRanksError = 0.3;
// kShapeError / (ranks - 2) is the part of the effect of skewed noise that may be missing.
constexpr double kShapeError = 2;
constexpr double kTail = 0.025;  // share of single tensors beyond each end of their spread
// From this number of elements on, the model's error covers a part of that spread.
constexpr double kLargeTensor = 1024;
constexpr std::size_t kBlockAddends = std::size_t{1} << 20;  // held by a thread at a time

/// One simulated reduction. Elements are ordered by scale, and block b has every `blocks`-th one
/// from b on, so that each block is a sample of all. Blocks of a small tensor have its size.
struct Simulation {
  Format format;
  const AddendModel& model;
  Format recorded;           ///< format of the recorded addends; simulated ones are rounded to it
  std::size_t count, ranks;  ///< number of ranks to simulate, and of recorded ranks
  const PredictOptions& options;
  bool shared_noise = false;  ///< all elements share the noise, whatever their means

  std::size_t elements() const {
    const std::size_t most = std::min(kMostElements, kTensors * model.elements.size());
    return std::clamp(kAddends / count, kFewestElements, std::max(kFewestElements, most));
  }
  std::size_t block() const {
    const std::size_t most = std::clamp<std::size_t>(kBlockAddends / count, 16, 1024);
    return std::min(most, model.elements.size());
  }
  std::size_t blocks() const { return elements() / block(); }
  /// Returns the model's element of simulated element k. Blocks of a small tensor draw their
  /// elements at random, because the recorded values are random too.
  const ModelElement& element(std::size_t k) const {
    const std::size_t n = model.elements.size();
    if (block() < n) return model.elements[k * n / (blocks() * block())];
    return model.elements[std::uint64_t{random_word(options.seed + 1, k)} * n >> 32];
  }
};

/// Writes the addends of simulated element k, one per rank, to every block()-th of `values`.
void draw(const Simulation& s, std::size_t k, Spread spread, float* values) {
  const AddendModel& model = s.model;
  const ModelElement& element = s.element(k);
  const double mean = element.mean[static_cast<int>(spread)];
  const bool own = model.drawn > 0 && !s.shared_noise;
  const std::size_t first = own ? element.noise : 0, size = own ? model.drawn : model.shared;
  const double scale =
      own && element.mean[static_cast<int>(Spread::middle)] < 0 ? -element.scale : element.scale;
  const auto low = static_cast<std::uint32_t>(s.options.seed);
  const auto high = static_cast<std::uint32_t>(s.options.seed >> 32);
  for (std::size_t r = 0; r < s.count; r += 4) {
    const PhiloxBlock random = philox4x32(
        {{static_cast<std::uint32_t>(r / 4), static_cast<std::uint32_t>(k), 0, 0}}, low, high);
    for (std::size_t w = 0; w < 4 && r + w < s.count; ++w) {
      double noise = 0;
      if (element.scale > 0) {
        const std::uint64_t at = first + (std::uint64_t{random.words[w]} * size >> 32);
        noise = static_cast<double>(model.noise[at]);
      }
      const bool zero = std::isnan(noise);
      values[(r + w) * s.block()] = zero ? 0 : static_cast<float>(mean + scale * noise);
    }
  }
}

Facts simulate_block(const Simulation& s, Spread spread, std::size_t b) {
  std::vector<float> values(s.count * s.block());
  for (std::size_t i = 0; i < s.block(); ++i) draw(s, i * s.blocks() + b, spread, &values[i]);
  if (s.recorded != kBinary32) quantise(s.recorded, values, {.threads = 1});
  std::vector<std::span<const float>> addends;
  for (std::size_t rank = 0; rank < s.count; ++rank) {
    addends.push_back(std::span(values).subspan(rank * s.block(), s.block()));
  }
  return halfscope::reduction::reduce(s.format, addends, {.order = s.options.order, .threads = 1});
}

std::vector<Facts> simulate(const Simulation& s, Spread spread) {
  std::vector<Facts> blocks(s.blocks());
  in_arena(s.options.threads, [&] {
    tbb::parallel_for(std::size_t{0}, blocks.size(),
                      [&](std::size_t b) { blocks[b] = simulate_block(s, spread, b); });
  });
  return blocks;
}

/// Two numbers whose ratio, or its square root, is a result.
struct Parts {
  double part = 0, whole = 0;

  double ratio() const { return whole == 0 ? 0 : part / whole; }
};

Parts lost_of(const Facts& f) {
  return {static_cast<double>(f.lost), static_cast<double>(f.additions)};
}
Parts error_of(const Facts& f) { return {f.squared_error.value(), f.squared_exact.value()}; }

/// A ratio over all blocks, and its standard error by leaving out one block at a time (Quenouille
/// 1956, Tukey 1958). 95 % of single tensors of that size are between value - below and value +
/// above.
struct Measured {
  double value = 0, error = 0, below = 0, above = 0;
};

/// Sets below and above from the values of single blocks. `part` is the variance of tensors divided
/// by the variance of blocks.
void set_spread(std::vector<double> of_blocks, double part, Measured& out) {
  std::ranges::sort(of_blocks);
  const double last = static_cast<double>(of_blocks.size() - 1);
  const auto at = [&](double place) { return of_blocks[static_cast<std::size_t>(place)]; };
  const double scale = std::sqrt(part);
  out.below = scale * std::max(0.0, out.value - at(std::floor(kTail * last)));
  out.above = scale * std::max(0.0, at(std::ceil((1 - kTail) * last)) - out.value);
}

/// `part`: see set_spread().
template <class PartsOf, class Value>
Measured jackknife(const std::vector<Facts>& blocks, double part, PartsOf parts_of, Value value) {
  Parts all;
  for (const Facts& f : blocks) {
    all.part += parts_of(f).part;
    all.whole += parts_of(f).whole;
  }
  Measured out = {value(all.ratio()), 0};
  double sum = 0, squares = 0;
  const auto n = static_cast<double>(blocks.size());
  std::vector<double> single;
  for (const Facts& f : blocks) {
    single.push_back(value(parts_of(f).ratio()));
    const Parts own = parts_of(f), rest = {all.part - own.part, all.whole - own.whole};
    const double without = value(std::max(0.0, rest.ratio())) - out.value;
    sum += without;
    squares += without * without;
  }
  out.error = std::sqrt((n - 1) / n * std::max(0.0, squares - sum * sum / n));
  set_spread(std::move(single), part, out);
  return out;
}

Parts overflow_of(const Facts& f) {
  return {static_cast<double>(f.overflow), static_cast<double>(f.elements)};
}

/// Returns the model's relative error for the recorded ranks' own sum, whose true value is known.
double miss(double predicted, double truth) {
  return predicted == 0 || truth == 0 ? 0 : std::fabs(predicted / truth - 1);
}

/// The results of one simulation.
struct Shown {
  Measured lost, error, overflow;
};

Shown shown(const Simulation& s, Spread spread) {
  const std::vector<Facts> blocks = simulate(s, spread);
  const auto n = static_cast<double>(s.model.elements.size());
  const double part = static_cast<double>(s.block()) / n * std::min(1.0, kLargeTensor / n);
  const auto of_all = [nonzero = 1 - s.model.zero_share](double x) { return nonzero * x; };
  return {jackknife(blocks, part, lost_of, of_all),
          jackknife(blocks, part, error_of, [](double x) { return std::sqrt(x); }),
          jackknife(blocks, part, overflow_of, of_all)};
}

/// The simulations of a prediction: for each Spread, and with noise that all elements share.
struct Runs {
  Shown by_spread[3], shared;
  double model;  ///< lower bound of the model's relative error
  double shape;  ///< part of the difference between own and shared noise that may be missing

  /// Returns the estimate. Its interval has two standard errors of the simulation around all
  /// spreads, and the model's error. It extends to the result with shared noise on one side, and by
  /// `shape` times that distance on the other. The independent spread of single tensors is added in
  /// squares.
  Estimate estimate(Measured Shown::*of, double missed) const {
    const double middle = (by_spread[1].*of).value;
    Estimate out = {middle, middle, middle};
    double below = 0, above = 0;
    for (const Shown& run : by_spread) {
      below = std::max(below, (run.*of).below);
      above = std::max(above, (run.*of).above);
      out.low = std::min(out.low, (run.*of).value - 2 * (run.*of).error);
      out.high = std::max(out.high, (run.*of).value + 2 * (run.*of).error);
    }
    const double off = std::max(missed, model) * middle, gap = (shared.*of).value - middle;
    const double down = middle - out.low + off - std::min(gap, -shape * gap);
    const double up = out.high - middle + off + std::max(gap, -shape * gap);
    return {std::max(0.0, middle - std::hypot(down, below)), middle,
            middle + std::hypot(up, above)};
  }
};

Runs run(Simulation s) {
  Runs out = {};
  const auto ranks = static_cast<double>(s.ranks);
  out.model = kModelError + (s.model.noise.empty() ? 0 : kFewRanksError / ranks);
  for (const Spread spread : {Spread::low, Spread::middle, Spread::high}) {
    out.by_spread[static_cast<int>(spread)] = shown(s, spread);
  }
  out.shared = out.by_spread[static_cast<int>(Spread::middle)];
  if (s.model.drawn == 0) return out;
  s.shared_noise = true;
  out.shared = shown(s, Spread::middle);
  out.shape = kShapeError / (ranks - 2);
  return out;
}

/// Returns the narrowest format that holds every recorded value.
Format format_of(Addends addends) {
  for (const Format f : {kBfloat16, kBinary16}) {
    const auto holds = [&](std::span<const float> rank) {
      std::vector<float> rounded(rank.begin(), rank.end());
      quantise(f, rounded);
      return std::equal(rank.begin(), rank.end(), rounded.begin(),
                        [](float a, float b) { return a == b || a != a; });
    };
    if (std::all_of(addends.begin(), addends.end(), holds)) return f;
  }
  return kBinary32;
}

}  // namespace

Prediction predict(Format f, Addends addends, std::size_t count, const PredictOptions& options) {
  if (count == 0) throw std::invalid_argument("halfscope: a prediction for no ranks");
  if (addends.size() < kFewestRanks) {
    throw std::invalid_argument("halfscope: a prediction needs 4 recorded ranks or more, not " +
                                std::to_string(addends.size()));
  }
  const Facts truth = halfscope::reduction::reduce(
      f, addends, {.order = options.order, .threads = options.threads});
  if (truth.elements == 0) {
    throw std::invalid_argument("halfscope: no element is finite on every rank");
  }
  const AddendModel model = model_addends(addends);
  Prediction out = {count, addends.size(), {}, {}, {}, model.noise_alone};
  if (model.elements.empty()) return out;
  const Format recorded = format_of(addends);
  const Runs runs = run({f, model, recorded, count, addends.size(), options});
  const Shown known =
      shown({f, model, recorded, addends.size(), addends.size(), options}, Spread::middle);
  out.lost = runs.estimate(&Shown::lost, miss(known.lost.value, truth.lost_share()));
  out.lost.high = std::min(1.0, out.lost.high);
  out.relative_l2 = runs.estimate(&Shown::error, miss(known.error.value, truth.relative_l2()));
  out.overflow = runs.estimate(&Shown::overflow, 0);
  out.overflow.high = std::min(1.0, out.overflow.high);
  return out;
}

}  // namespace halfscope::analyzers::reduction
