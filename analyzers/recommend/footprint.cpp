// SPDX-License-Identifier: Apache-2.0
// Memory that FP16 saves, and dimensions for which Tensor Cores have no fast kernels.
#include <algorithm>
#include <map>

#include "analyzers/frames/microbatches.hpp"
#include "analyzers/recommend/parts.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::recommend {
namespace {

using log::Role;

constexpr std::uint64_t kMultiple = 8;  // divides FP16 matrix dimensions on Tensor Cores
/// Padding saves time for extents from this size on: the last tile of a product is a small part of
/// it, and starting its kernel takes less time than the product.
constexpr std::uint64_t kLarge = 1024;
/// Extent that a thread block computes. If the other extent is less, Tensor Cores are idle anyway.
constexpr std::uint64_t kTile = 128;

/// Returns which extents of a weight are large and no multiple of 8; empty if there are none.
/// Vectors take part in no matrix product.
std::optional<Footprint::Extents> odd_extents(const std::vector<std::uint64_t>& shape) {
  if (shape.size() < 2 || std::min(shape[0], shape[1]) < kTile) return std::nullopt;
  const auto is_odd = [](std::uint64_t n) { return n >= kLarge && n % kMultiple != 0; };
  const bool out = is_odd(shape[0]), in = is_odd(shape[1]);
  if (!out && !in) return std::nullopt;
  return out && in ? Footprint::Extents::both
         : out     ? Footprint::Extents::outputs
                   : Footprint::Extents::inputs;
}

/// Returns the number of microbatches of the step; their largest magnitudes are among its scalars.
std::uint64_t microbatches_of(const log::StepScalars& scalars) {
  std::uint64_t count = 1;
  for (const Role role : {Role::activation_grad, Role::weight_grad}) {
    std::uint64_t told = 0;
    for (const auto& [tag, value] : scalars.more) told += frames::is_microbatch(tag, role) ? 1 : 0;
    count = std::max(count, told);
  }
  return count;
}

/// Returns the number of microbatches of each step of a log.
std::map<std::int64_t, std::uint64_t> microbatches_of(const underflow::LogFindings& log) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const log::StepScalars& scalars : log.scalars) {
    counts[scalars.step] = microbatches_of(scalars);
  }
  return counts;
}

}  // namespace

std::optional<Footprint> footprint(const underflow::Analysis& analysis) {
  Footprint sum;
  // Several logs are runs of one network.
  const underflow::LogFindings& log = analysis.logs.front();
  const auto microbatches = microbatches_of(log);
  for (const underflow::TensorFindings& t : log.tensors) {
    const std::uint64_t elements = log::element_count(t.shape).value_or(0);
    if (t.role == Role::activation) {
      // The tensor covers all microbatches, but memory holds one at a time.
      const auto of_step = microbatches.find(t.per_step.empty() ? -1 : t.per_step.back().step);
      const std::uint64_t together = of_step == microbatches.end() ? 1 : of_step->second;
      sum.activations += (elements + together - 1) / together;
      sum.microbatches = std::max(sum.microbatches, together);
    }
    if (t.role != Role::weight) continue;
    sum.weights += elements;
    const auto odd = odd_extents(t.shape);
    if (odd) sum.not_multiples_of_8.push_back({t.name, t.shape, *odd});
  }
  if (sum.weights + sum.activations == 0) return std::nullopt;
  sum.bytes_fp32 = 4 * (sum.weights + sum.activations);
  sum.bytes_fp16 = 2 * (sum.weights + sum.activations);
  sum.bytes_mixed = sum.bytes_fp16 + 4 * sum.weights;
  return sum;
}

}  // namespace halfscope::analyzers::recommend
