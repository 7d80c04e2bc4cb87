// SPDX-License-Identifier: Apache-2.0
// Measures batch normalisation of F16 with the shapes of ResNet-50's layers. Bytes are the least
// that must be read and written: x and y forward, x, dy and dx backward. The kernels read x three
// times forward, x and dy twice backward. The tensors of 64x7x7x2048 have 13 MB and stay in the L2
// cache between repetitions: its share of reading can be above 1.
#include <string>

#include "bench/bench_cuda.hpp"
#include "halfscope/array/array_cuda.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace bench {
namespace {

using namespace halfscope;
namespace kernels = sim::backend::cudnn::kernels;

struct Images {
  std::int64_t n, size, channels;
};

void measure_one(const Images& images, const float* values, double read, std::vector<Result>& out) {
  const std::int64_t c = images.channels, rows = images.n * images.size * images.size,
                     count = rows * c;
  std::vector<void*> memory;
  const auto halves = [&] {
    auto* const made = allocate<std::uint16_t>(count);
    cuda::convert(kBinary16, values, made, count);
    memory.push_back(made);
    return kernels::Elements{Dtype::f16, made};
  };
  const auto floats = [&] {
    auto* const made = allocate<float>(c);
    check(cudaMemcpy(made, std::vector<float>(static_cast<std::size_t>(c), 1).data(),
                     static_cast<std::size_t>(c) * sizeof(float), cudaMemcpyHostToDevice));
    memory.push_back(made);
    return made;
  };
  const kernels::Elements x = halves(), y = halves(), dy = halves();
  const kernels::BatchNorm layer{rows,     c,        1e-5F,    floats(), floats(),
                                 floats(), floats(), floats(), floats()};
  float *const dgamma = floats(), *const dbeta = floats();
  const std::string shape = std::to_string(images.n) + "x" + std::to_string(images.size) + "x" +
                            std::to_string(images.size) + "x" + std::to_string(c);
  out.push_back(result_of("batch normalization forward " + shape, 4.0 * static_cast<double>(count),
                          time_of([&] {
                            kernels::batch_norm_statistics(layer, 0.1F, x, nullptr);
                            kernels::batch_norm_forward(layer, x, y, nullptr);
                          }),
                          read));
  out.push_back(result_of(
      "batch normalization backward " + shape, 6.0 * static_cast<double>(count), time_of([&] {
        kernels::batch_norm_backward(layer, x, dy, y, dgamma, dbeta, false, nullptr);
      }),
      read));
  for (void* const each : memory) check(cudaFree(each));
}

}  // namespace

std::vector<Result> measure_batch_norm(double read) {
  constexpr Images kLayers[] = {{64, 112, 64}, {64, 56, 256}, {64, 7, 2048}};
  constexpr std::int64_t kMost = std::int64_t{64} * 112 * 112 * 64;
  float* const values = fill(mixed_values(), kMost);
  std::vector<Result> out;
  for (const Images& images : kLayers) measure_one(images, values, read, out);
  check(cudaFree(values));
  return out;
}

}  // namespace bench
