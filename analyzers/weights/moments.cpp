// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/moments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/updates/optimizer_update.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/block/scale.hpp"

namespace halfscope::analyzers::weights {
namespace {

using frames::WholeStep;
using updates::Optimizer;

/// Most elements of a tensor, about those of all, and most gradients in memory (512 MB).
constexpr std::size_t kMostOfTensor = 1 << 16, kMostElements = 1 << 18, kMostGradients = 1 << 27;

/// torchao's quantize_fp8, in torchao/optim/subclass_fp8.py.
constexpr block::Recipe kMomentRecipe = {.name = "e4m3-1x256",
                                         .element = block::Element::e4m3,
                                         .block = {1, kMomentBlock},
                                         .scale = block::ScaleFormat::f32,
                                         .formula = block::Formula::fp8_divide,
                                         .least = 1e-12F};

/// Rounds values as they are stored, in place. Returns their scale.
float store_moments(const MomentStorage& storage, std::span<float> values, std::uint64_t seed) {
  ArrayOptions how = {.seed = seed, .threads = 1};
  if (storage.stochastic) how.modes.rounding = Rounding::stochastic;
  how.modes.saturate = storage.scaled;
  float scale = 1;
  if (storage.scaled) {
    std::uint32_t largest = 0;
    for (const float x : values) largest = std::max(largest, block::steps::magnitude_of(x));
    scale = block::block_factor(kMomentRecipe, {}, largest).factor;
    for (float& x : values) x /= scale;
  }
  quantise(storage.format, values, how);
  if (storage.scaled) {
    for (float& x : values) x *= scale;
  }
  return scale;
}

std::uint64_t count_stalled(const MomentStorage& storage, const BlockMoments& held, float beta2) {
  if (storage.stochastic) return 0;
  std::vector<float> codes = held.second;
  for (float& v : codes) v /= held.second_scale;
  quantise(storage.format, codes, {.threads = 1});  // code times scale was rounded
  std::vector<float> next = codes;
  for (float& v : next) v *= beta2;
  quantise(storage.format, next, {.threads = 1});
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < next.size(); ++i) {
    count += codes[i] > 0 && std::isfinite(codes[i]) && next[i] == codes[i] ? 1 : 0;
  }
  return count;
}

/// Sums of differences and of weights, by MomentMeasure.
struct BlockSums {
  std::array<double, 4> difference{}, weight{};
  std::uint64_t positive = 0, stalled = 0, vanished = 0, nonfinite = 0;
};

/// Compares a block's moments with those in binary32.
BlockSums compare(const BlockGradients& block, std::uint64_t steps, const BlockMoments& wide,
                  const BlockMoments& held) {
  const double t = block.steps_before + static_cast<double>(steps);
  const double first = 1 - std::pow(block.beta1, t), root = std::sqrt(1 - std::pow(block.beta2, t));
  const auto step = [&](float m, float v) {
    return m / first / (std::sqrt(double{v}) / root + block.eps);
  };
  BlockSums sums;
  for (std::size_t i = 0; i < wide.first.size(); ++i) {
    const float m32 = wide.first[i], v32 = wide.second[i], v = held.second[i];
    sums.nonfinite += std::isfinite(m32) && std::isfinite(v32) ? 0 : 1;
    sums.positive += v > 0 && std::isfinite(v) ? 1 : 0;
    sums.vanished += v == 0 && held.first[i] != 0 ? 1 : 0;
    if (!std::isfinite(m32) || !std::isfinite(v32) || !std::isfinite(v)) continue;
    const double s = step(m32, v32), sign = std::copysign(1.0, s);
    const float m_held = held.computed_first[i], v_held = held.computed_second[i];
    const double others[] = {step(m_held, v32), step(m32, v_held), step(m_held, v_held)};
    for (std::size_t k = step_first; k <= step_both; ++k) {
      sums.difference[k] += sign * (others[k - step_first] - s);
      sums.weight[k] += std::abs(s);
    }
    if (!(v32 > 0)) continue;
    sums.difference[of_second] += double{v} / v32 - 1;
    sums.weight[of_second] += 1;
  }
  return sums;
}

using AllSums = std::array<BlockSums, kMomentStorages.size()>;

AllSums compare_all(const BlockGradients& block, std::uint64_t steps, std::uint64_t seed) {
  const BlockMoments wide = replay_block(block, nullptr, steps, seed);
  AllSums all;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const BlockMoments held = replay_block(block, &kMomentStorages[k], steps, seed);
    all[k] = compare(block, steps, wide, held);
    all[k].stalled = count_stalled(kMomentStorages[k], held, static_cast<float>(block.beta2));
  }
  return all;
}

/// Returns the ratio of the sums over all blocks, and its standard error (Cochran, Sampling
/// Techniques, 2.11).
MomentShift shift_of(const std::vector<AllSums>& blocks, std::size_t storage, MomentMeasure what) {
  double d = 0, w = 0, n = 0, squares = 0;
  for (const AllSums& block : blocks) {
    d += block[storage].difference[what];
    w += block[storage].weight[what];
    n += block[storage].weight[what] > 0 ? 1 : 0;
  }
  if (w == 0) return {};
  for (const AllSums& block : blocks) {
    const double rest = block[storage].difference[what] - d / w * block[storage].weight[what];
    squares += rest * rest;
  }
  return {d / w,
          n < 2 ? std::numeric_limits<double>::infinity() : std::sqrt(n / (n - 1) * squares) / w};
}

void summarise(const std::vector<AllSums>& blocks, MomentReplay& found) {
  for (const AllSums& block : blocks) found.nonfinite += block.front().nonfinite;
  for (std::size_t k = 0; k < kMomentStorages.size(); ++k) {
    StoredMoments& to = found.stored.emplace_back(StoredMoments{kMomentStorages[k]});
    for (const MomentMeasure what : {of_second, step_first, step_second, step_both}) {
      to.shifts[what] = shift_of(blocks, k, what);
    }
    for (const AllSums& block : blocks) {
      to.positive += block[k].positive;
      to.stalled += block[k].stalled;
      to.vanished += block[k].vanished;
    }
  }
}

std::vector<float> unscaled(const TensorView& view, std::size_t first, double scale) {
  const auto wide = frames::elements(view, first, std::min(kMomentBlock, view.count - first));
  std::vector<float> values(wide.size());
  std::ranges::transform(wide, values.begin(),
                         [&](double x) { return static_cast<float>(x / scale); });
  return values;
}

bool is_skipped(const WholeStep& step) {
  const auto found = step.metadata.find("found_inf");
  if (found != step.metadata.end()) return found->second == "1";
  return step.scalars != nullptr && step.scalars->found_inf.value_or(false);
}

/// The replayed blocks of one gradient, by their first element.
struct Sampled {
  std::uint64_t elements = 0;  ///< elements of the whole tensor
  std::map<std::size_t, BlockGradients> blocks;
};

/// Collects the gradients of the sampled steps.
class Gradients {
 public:
  Gradients(const frames::Selection& selection, MomentReplay& found)
      : selection_(selection), found_(found) {}

  void take(const WholeStep& step) {
    if (step.rank > 0 || step.run == nullptr || is_skipped(step)) return;
    std::vector<std::string> names = step.tensors->names();
    std::erase_if(names, [&](const std::string& name) {
      return step.role_of(selection_, name) != log::Role::weight_grad ||
             !frames::selects(selection_, name);
    });
    if (names.empty()) return;
    if (tensors.empty()) {
      quota_ = std::clamp(kMostElements / names.size(), kMomentBlock, kMostOfTensor) / kMomentBlock;
      most_ = std::max<std::size_t>(1, kMostGradients / (names.size() * quota_ * kMomentBlock));
    }
    if (found_.gradients == most_) return;
    std::size_t taken = 0;
    for (const std::string& name : names) taken += take(step, name) ? 1 : 0;
    if (taken == 0) return;
    if (found_.gradients++ == 0) found_.first_step = step.step;
    found_.last_step = step.step;
  }

  std::map<std::string, Sampled> tensors;
  bool other_optimizer = false;  ///< some gradient belongs to no Adam

 private:
  bool take(const WholeStep& step, const std::string& name) {
    const std::string key = log::role_in_name(name) ? name.substr(name.find('/') + 1) : name;
    const std::optional<Optimizer> adam = updates::optimizer_of(step, key);
    other_optimizer = other_optimizer || !adam || !adam->is_adam();
    const auto tensor = step.tensors->tensor(name);
    if (!adam || !adam->is_adam() || tensor->view.count == 0) return false;
    Sampled& sampled = tensors[name];
    if (sampled.elements == 0) begin(step, key, *adam, tensor->view.count, sampled);
    if (sampled.elements != tensor->view.count) return false;
    const double scale = step.scale_of(selection_, name);
    for (auto& [first, block] : sampled.blocks) {
      block.gradients.push_back(unscaled(tensor->view, first, scale));
    }
    return true;
  }

  void begin(const WholeStep& step, const std::string& key, const Optimizer& adam,
             std::size_t elements, Sampled& to) {
    to.elements = elements;
    found_.all_elements += elements;
    if (found_.tensors++ == 0)
      std::tie(found_.beta1, found_.beta2) = std::pair(adam.beta1, adam.beta2);
    const auto state = [&](const std::string& name, std::size_t count) {
      const std::string full = "optimizer_state/" + name + "/" + key;
      const auto known = step.tensors->outline(full);
      return known && known->view.count == count ? step.tensors->tensor(full) : nullptr;
    };
    const auto first = state("exp_avg", elements), second = state("exp_avg_sq", elements);
    const auto counter = state("step", 1);
    found_.from_state = found_.from_state || (first && second);
    const std::size_t all = (elements + kMomentBlock - 1) / kMomentBlock;
    const std::size_t taken = std::min(all, quota_);
    for (std::size_t i = 0; i < taken; ++i) {
      const std::size_t at = i * all / taken * kMomentBlock;
      BlockGradients& block = to.blocks[at];
      std::tie(block.beta1, block.beta2, block.eps) = std::tuple(adam.beta1, adam.beta2, adam.eps);
      if (!first || !second) continue;
      block.first = unscaled(first->view, at, 1);
      block.second = unscaled(second->view, at, 1);
      block.steps_before =
          counter ? updates::first_element(counter->view) : static_cast<double>(step.step) + 1;
    }
  }

  const frames::Selection& selection_;
  MomentReplay& found_;
  std::size_t quota_ = 1, most_ = 1;  ///< blocks of a tensor; recorded steps
};

[[noreturn]] void refuse(const readers::Log& log, const frames::Selection& selection,
                         bool other_optimizer) {
  readers::require_tensors(log);
  readers::parts_of(log, selection);  // throws if this is no log
  throw log::BadInput(fmt::format(
      "{}: {}", log::printable(log.path().string()),
      other_optimizer
          ? "the optimizer of the weight gradients is not Adam, expected Adam or AdamW, whose "
            "moments are replayed; name it in run.json under optimizer.class, as torch.optim.AdamW"
          : "found no whole weight gradients, expected tensors weight_grad/... of sampled steps, "
            "which are replayed; record the run with sample_every=N (docs/recording.md)"));
}

}  // namespace

BlockMoments replay_block(const BlockGradients& block, const MomentStorage* storage,
                          std::uint64_t steps, std::uint64_t seed) {
  const std::size_t elements = block.gradients.front().size(), ahead = block.second.empty() ? 0 : 1;
  BlockMoments now = {block.first, block.second, {}, {}};
  now.first.resize(elements);
  now.second.resize(elements);
  const auto store = [&](std::uint64_t t) {
    if (storage == nullptr) return;
    store_moments(*storage, now.first, 2 * (seed + t));
    now.second_scale = store_moments(*storage, now.second, 2 * (seed + t) + 1);
  };
  if (ahead == 1) store(0);
  const auto beta2 = static_cast<float>(block.beta2);
  const auto to_first = static_cast<float>(1 - block.beta1);
  const auto to_second = static_cast<float>(1 - block.beta2);
  for (std::uint64_t t = 1; t <= steps; ++t) {
    const std::vector<float>& g = block.gradients[(t - 1 + ahead) % block.gradients.size()];
    for (std::size_t i = 0; i < elements; ++i) {
      now.first[i] = now.first[i] + to_first * (g[i] - now.first[i]);
      now.second[i] = now.second[i] * beta2 + to_second * g[i] * g[i];
    }
    if (t == steps)
      std::tie(now.computed_first, now.computed_second) = std::tie(now.first, now.second);
    store(t);
  }
  return now;
}

MomentFit fit_of(const MomentShift& shift, double limit) {
  const double size = std::abs(shift.mean), margin = 2 * shift.error;
  return size + margin <= limit  ? MomentFit::fits
         : size - margin > limit ? MomentFit::fails
                                 : MomentFit::unclear;
}

MomentReplay replay_moments(
    const readers::Log& log, const frames::Selection& selection, std::uint64_t steps,
    frames::Notes& notes, const std::function<frames::Progress(const std::string& what)>& phases) {
  MomentReplay found{.log = log.path().string(), .steps = steps};
  Gradients gradients(selection, found);
  readers::for_each_whole_step(
      log, selection, [&](const WholeStep& step) { gradients.take(step); }, notes,
      phases ? phases("Reading gradients") : frames::Progress());
  if (gradients.tensors.empty()) refuse(log, selection, gradients.other_optimizer);
  std::vector<const BlockGradients*> blocks;
  for (const auto& [name, sampled] : gradients.tensors) {
    for (const auto& [first, block] : sampled.blocks) {
      blocks.push_back(&block);
      found.elements += block.gradients.front().size();
    }
  }
  const frames::Progress progress = phases ? phases("Replaying moments") : frames::Progress();
  std::vector<AllSums> sums;
  constexpr std::size_t kAtOnce = 64;  // blocks between calls of progress
  while (sums.size() < blocks.size()) {
    const std::size_t done = sums.size();
    frames::in_order<AllSums>(
        std::min(kAtOnce, blocks.size() - done), 0,
        [&](std::size_t i) {
          return compare_all(*blocks[done + i], steps, (done + i) * (steps + 1));
        },
        [&](const AllSums& block) { sums.push_back(block); });
    if (progress) progress(sums.size(), blocks.size());
  }
  summarise(sums, found);
  return found;
}

}  // namespace halfscope::analyzers::weights
