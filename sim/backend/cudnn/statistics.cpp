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

}  // namespace

Later<std::vector<GradientFacts>> CudnnBackend::facts_later(std::span<const Tensor> gradients) {
  const auto counted = std::make_shared<cuda::FactsCount>(views(gradients), stream());
  return [counted, device = device_] {  // keeps the stream alive
    std::vector<GradientFacts> found;
    for (const cuda::GradientSums& sums : counted->get()) found.push_back(facts_of(sums));
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
  const auto counted = std::make_shared<cuda::TableCount>(views(tensors), stream());
  return [counted, device = device_] {  // keeps the stream alive
    std::vector<TensorStatistics> found;
    for (cuda::TensorFacts& facts : counted->get()) {
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
