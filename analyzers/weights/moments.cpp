// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/moments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/updates/optimizer_update.hpp"
#include "analyzers/updates/pairs.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/block/scale.hpp"

namespace halfscope::analyzers::weights {
namespace {

using frames::WholeStep;
using Values = std::vector<float>;

/// About the most elements, and the most gradients in memory (512 MB).
constexpr std::size_t kMostElements = 1 << 18, kMostGradients = 1 << 27;

/// torchao's quantize_fp8, in torchao/optim/subclass_fp8.py.
constexpr block::Recipe kMomentRecipe = {.name = "e4m3-1x256",
                                         .element = block::Element::e4m3,
                                         .block = {1, kMomentBlock},
                                         .scale = block::ScaleFormat::f32,
                                         .formula = block::Formula::fp8_divide,
                                         .least = 1e-12F};

void round_at(const MomentStorage& storage, float scale, Values& values, const ArrayOptions& how) {
  for (float& x : values) x /= scale;
  quantise(storage.format, values, how);
  for (float& x : values) x *= scale;
}

/// Rounds values as they are stored. Returns their scale.
float store_moments(const MomentStorage& storage, Values& values, std::uint64_t seed) {
  ArrayOptions how = {.seed = seed, .threads = 1};
  if (storage.stochastic) how.modes.rounding = Rounding::stochastic;
  how.modes.saturate = storage.scaled;
  std::uint32_t largest = 0;
  for (const float x : values) largest = std::max(largest, block::steps::magnitude_of(x));
  const float scale = storage.scaled ? block::block_factor(kMomentRecipe, {}, largest).factor : 1;
  round_at(storage, scale, values, how);
  return scale;
}

/// Sums over a block of differences and of weights, by MomentMeasure.
struct BlockSums : MomentCounts {
  std::array<double, 4> difference{}, weight{};
  std::uint64_t nonfinite = 0;
};

/// Compares a block's moments with those in binary32.
BlockSums compare(const BlockGradients& block, std::uint64_t steps, const BlockMoments& wide,
                  const BlockMoments& held) {
  const double t = block.steps_before + static_cast<double>(steps);
  const double first = 1 - std::pow(block.adam.beta1, t);
  const double root = std::sqrt(1 - std::pow(block.adam.beta2, t));
  const auto step = [&](float m, float v) {
    return m / first / (std::sqrt(double{v}) / root + block.adam.eps);
  };
  BlockSums sums;
  for (std::size_t i = 0; i < wide.first.size(); ++i) {
    const float m32 = wide.first[i], v32 = wide.second[i], v = held.second[i];
    const bool finite = std::isfinite(m32) && std::isfinite(v32);
    sums.nonfinite += finite ? 0 : 1;
    sums.positive += v > 0 && std::isfinite(v) ? 1 : 0;
    sums.vanished += v == 0 && held.first[i] != 0 ? 1 : 0;
    if (!finite || !std::isfinite(v)) continue;
    const double s = step(m32, v32), sign = std::copysign(1.0, s);
    const float m_held = held.computed_first[i], v_held = held.computed_second[i];
    const double others[] = {0, step(m_held, v32), step(m32, v_held), step(m_held, v_held)};
    for (std::size_t k = step_first; k <= step_both; ++k) {
      sums.difference[k] += sign * (others[k] - s);
      sums.weight[k] += std::abs(s);
    }
    if (!(v32 > 0)) continue;
    sums.difference[of_second] += double{v} / v32 - 1;
    sums.weight[of_second] += 1;
  }
  return sums;
}

/// Counts elements with round(beta2 v) = v at an unchanged scale.
std::uint64_t count_stalled(const MomentStorage& storage, const BlockMoments& held, double beta2) {
  Values next = held.second;
  for (float& v : next) v *= static_cast<float>(beta2);
  round_at(storage, held.second_scale, next, {.threads = 1});
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < next.size(); ++i) {
    count += next[i] == held.second[i] && next[i] > 0 && std::isfinite(next[i]) ? 1 : 0;
  }
  return count;
}

using AllSums = std::array<BlockSums, kMomentStorages.size()>;

AllSums compare_all(const BlockGradients& block, std::uint64_t steps, std::uint64_t seed) {
  const BlockMoments wide = replay_block(block, nullptr, steps, seed);
  AllSums all;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const BlockMoments held = replay_block(block, &kMomentStorages[k], steps, seed);
    all[k] = compare(block, steps, wide, held);
    if (kMomentStorages[k].stochastic) continue;
    all[k].stalled = count_stalled(kMomentStorages[k], held, block.adam.beta2);
  }
  return all;
}

/// Returns the ratio of the sums over all blocks, and its standard error (Cochran, Sampling
/// Techniques, 2.11).
MomentShift shift_of(const std::vector<AllSums>& blocks, std::size_t storage, std::size_t measure) {
  double d = 0, w = 0, n = 0, squares = 0;
  for (const AllSums& block : blocks) {
    d += block[storage].difference[measure];
    w += block[storage].weight[measure];
    n += block[storage].weight[measure] > 0 ? 1 : 0;
  }
  if (w == 0) return {};
  for (const AllSums& block : blocks) {
    const BlockSums& sums = block[storage];
    squares += std::pow(sums.difference[measure] - d / w * sums.weight[measure], 2);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return {d / w, n < 2 ? infinity : std::sqrt(n / (n - 1) * squares) / w};
}

StoredMoments summarise(const std::vector<AllSums>& blocks, std::size_t storage) {
  StoredMoments to{{}, kMomentStorages[storage]};
  for (std::size_t i = 0; i < to.shifts.size(); ++i) to.shifts[i] = shift_of(blocks, storage, i);
  for (const AllSums& block : blocks) {
    to.positive += block[storage].positive;
    to.stalled += block[storage].stalled;
    to.vanished += block[storage].vanished;
  }
  return to;
}

Values unscaled(const TensorView& view, std::size_t first, double scale) {
  const auto wide = frames::elements(view, first, std::min(kMomentBlock, view.count - first));
  Values values(wide.size());
  std::ranges::transform(wide, values.begin(),
                         [&](double x) { return static_cast<float>(x / scale); });
  return values;
}

/// Returns a tensor of an optimizer's state; null without one of this length.
updates::TensorPointer state_of(const WholeStep& step, const char* name, const std::string& key,
                                std::size_t elements) {
  const auto tensor = step.tensors->tensor(fmt::format("optimizer_state/{}/{}", name, key));
  return tensor && tensor->view.count == elements ? tensor : nullptr;
}

/// Collects blocks of the weight gradients of sampled steps.
class Gradients {
 public:
  Gradients(const frames::Selection& selection, MomentReplay& found)
      : selection_(selection), found_(found) {}

  void take(const WholeStep& step) {
    if (step.rank > 0 || step.run == nullptr || updates::was_skipped(step)) return;
    std::vector<std::string> names = step.tensors->names();
    std::erase_if(names, [&](const std::string& name) {
      return step.role_of(selection_, name) != log::Role::weight_grad ||
             !frames::selects(selection_, name);
    });
    if (names.empty() || found_.gradients == most_) return;
    if (blocks.empty()) {
      quota_ = std::max<std::size_t>(1, kMostElements / kMomentBlock / names.size());
      most_ = std::max<std::size_t>(1, kMostGradients / kMomentBlock / names.size() / quota_);
    }
    bool any = false;
    for (const std::string& name : names) any = take(step, name) || any;
    if (!any) return;
    if (found_.gradients++ == 0) found_.first_step = step.step;
    found_.last_step = step.step;
  }

  std::map<std::pair<std::string, std::size_t>, BlockGradients> blocks;  ///< name, first element
  bool other_optimizer = false;  ///< some gradient belongs to no Adam

 private:
  bool take(const WholeStep& step, const std::string& name) {
    const std::string key(underflow::path_of(name));
    const auto adam = updates::optimizer_of(step, key);
    const updates::TensorPointer tensor = step.tensors->tensor(name);
    const TensorView view = tensor->view;
    const bool is_adam = adam && adam->is_adam();
    other_optimizer = other_optimizer || !is_adam;
    if (!is_adam || view.count == 0) return false;
    const auto [size, is_new] = sizes_.try_emplace(name, view.count);
    if (size->second != view.count) return false;
    if (is_new && found_.tensors++ == 0) found_.adam = *adam;
    if (is_new) found_.all_elements += view.count;
    const auto first = is_new ? state_of(step, "exp_avg", key, view.count) : nullptr;
    const auto second = is_new ? state_of(step, "exp_avg_sq", key, view.count) : nullptr;
    const auto counter = is_new ? state_of(step, "step", key, 1) : nullptr;
    found_.from_state = found_.from_state || (first && second);
    const double scale = step.scale_of(selection_, name);
    const std::size_t all = (view.count + kMomentBlock - 1) / kMomentBlock;
    const std::size_t taken = std::min(all, quota_);
    for (std::size_t i = 0; i < taken; ++i) {
      const std::size_t at = i * all / taken * kMomentBlock;
      BlockGradients& block = blocks[{name, at}];
      block.gradients.push_back(unscaled(view, at, scale));
      if (is_new) block.adam = *adam;
      if (!first || !second) continue;
      block.first = unscaled(first->view, at, 1);
      block.second = unscaled(second->view, at, 1);
      block.steps_before =
          counter ? updates::first_element(counter->view) : static_cast<double>(step.step) + 1;
    }
    return true;
  }

  const frames::Selection& selection_;
  MomentReplay& found_;
  std::size_t quota_ = 1, most_ = 1;  ///< blocks of a tensor; recorded steps
  std::map<std::string, std::uint64_t> sizes_;
};

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
  const auto beta2 = static_cast<float>(block.adam.beta2);
  const auto to_first = static_cast<float>(1 - block.adam.beta1);
  const auto to_second = static_cast<float>(1 - block.adam.beta2);
  for (std::uint64_t t = 1; t <= steps; ++t) {
    const Values& g = block.gradients[(t - 1 + ahead) % block.gradients.size()];
    for (std::size_t i = 0; i < elements; ++i) {
      now.first[i] = now.first[i] + to_first * (g[i] - now.first[i]);
      now.second[i] = now.second[i] * beta2 + to_second * g[i] * g[i];
    }
    if (t == steps) now.computed_first = now.first, now.computed_second = now.second;
    store(t);
  }
  return now;
}

MomentFit fit_of(const MomentShift& shift) {
  const double size = std::abs(shift.mean), margin = 2 * shift.error;
  return size + margin <= kMomentLimit  ? MomentFit::fits
         : size - margin > kMomentLimit ? MomentFit::fails
                                        : MomentFit::unclear;
}

MomentReplay replay_moments(const std::filesystem::path& path, const frames::Selection& selection,
                            std::uint64_t steps, const frames::Progress& progress) {
  const readers::Logs logs(selection);
  const readers::Log& log = logs.at(path);
  MomentReplay found{.log = log::printable(path.string()), .steps = steps};
  Gradients gradients(selection, found);
  const auto take = [&](const WholeStep& step) { gradients.take(step); };
  readers::for_each_whole_step(log, selection, take, found.notes, progress);
  if (gradients.blocks.empty()) {
    readers::refuse_without_tensors(
        log, selection,
        gradients.other_optimizer
            ? "the optimizer of the weight gradients is not Adam, expected Adam or AdamW, whose "
              "moments are replayed; name it in run.json under optimizer.class, as "
              "torch.optim.AdamW"
            : "found no whole weight gradients, expected tensors weight_grad/... of sampled steps, "
              "which are replayed; record the run with sample_every=N (docs/recording.md)");
  }
  std::vector<const BlockGradients*> blocks;
  for (const auto& [where, block] : gradients.blocks) {
    blocks.push_back(&block);
    found.elements += block.gradients.front().size();
  }
  std::vector<AllSums> sums;
  constexpr std::size_t kAtOnce = 64;  // blocks between calls of progress
  for (std::size_t done = 0; done < blocks.size(); done = sums.size()) {
    frames::in_order<AllSums>(
        std::min(kAtOnce, blocks.size() - done), 0,
        [&](std::size_t i) {
          return compare_all(*blocks[done + i], steps, (done + i) * (steps + 1));
        },
        [&](const AllSums& block) { sums.push_back(block); });
    if (progress) progress(sums.size(), blocks.size());
  }
  for (const AllSums& block : sums) found.nonfinite += block.front().nonfinite;
  for (std::size_t k = 0; k < kMomentStorages.size(); ++k) {
    found.stored.push_back(summarise(sums, k));
  }
  return found;
}

}  // namespace halfscope::analyzers::weights
