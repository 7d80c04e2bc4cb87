// SPDX-License-Identifier: Apache-2.0
// Statistics for the recording. They are computed on the device and copied when they are read.
#include <cmath>
#include <limits>
#include <utility>

#include "halfscope/table/count/count_cuda.hpp"
#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend::cudnn {
namespace {

std::vector<cuda::DeviceTensor> views(std::span<const Tensor> tensors) {
  std::vector<cuda::DeviceTensor> found;
  for (const Tensor& tensor : tensors) {
    found.push_back({tensor.dtype, device_data(tensor), tensor.size()});
  }
  return found;
}

GradientFacts facts_of(const cuda::GradientSums& sums) {
  GradientFacts facts;
  facts.nonfinite = sums.nan || sums.infinity;
  facts.max_abs = sums.nan        ? std::numeric_limits<double>::quiet_NaN()
                  : sums.infinity ? std::numeric_limits<double>::infinity()
                                  : sums.max_abs;
  facts.sum_squares = sums.sum_squares;
  return facts;
}

/// A count with the device whose stream it uses, which must outlive it.
template <class Count>
struct Queued {
  std::shared_ptr<Device> device;
  Count count;
};

}  // namespace

Later<std::vector<GradientFacts>> CudnnBackend::facts_later(std::span<const Tensor> gradients) {
  using Facts = Queued<cuda::FactsCount>;
  const auto queued = std::make_shared<Facts>(Facts{device_, {views(gradients), stream()}});
  return [queued] {
    std::vector<GradientFacts> found;
    for (const cuda::GradientSums& sums : queued->count.get()) found.push_back(facts_of(sums));
    return found;
  };
}

GradientFacts CudnnBackend::facts(std::span<const Tensor> gradients) {
  GradientFacts all;
  for (const GradientFacts& one : facts_later(gradients)()) {
    all.nonfinite = all.nonfinite || one.nonfinite;
    if (!std::isnan(all.max_abs) && !(one.max_abs <= all.max_abs)) all.max_abs = one.max_abs;
    all.sum_squares += one.sum_squares;
  }
  return all;
}

Later<std::vector<TensorStatistics>> CudnnBackend::statistics_later(
    std::span<const Tensor> tensors) {
  using Tables = Queued<cuda::TableCount>;
  const auto queued = std::make_shared<Tables>(Tables{device_, {views(tensors), stream()}});
  return [queued] {
    std::vector<TensorStatistics> found;
    for (cuda::TensorFacts& facts : queued->count.get()) {
      found.push_back({std::move(facts.table), facts.moments});
    }
    return found;
  };
}

BinadeTable CudnnBackend::count(const Tensor& tensor) {
  return statistics_later(std::span(&tensor, 1))().front().table;
}

Moments CudnnBackend::moments(const Tensor& tensor) {
  return statistics_later(std::span(&tensor, 1))().front().moments;
}

}  // namespace halfscope::sim::backend::cudnn
