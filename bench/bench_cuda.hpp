// SPDX-License-Identifier: Apache-2.0
// Shared by the benchmarks on a CUDA device.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

inline constexpr std::int64_t kPattern = std::int64_t{1} << 20;

inline void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// Returns device memory. It is never freed.
template <typename T>
T* allocate(std::int64_t count) {
  void* p = nullptr;
  check(cudaMalloc(&p, static_cast<std::size_t>(count) * sizeof(T)));
  return static_cast<T*>(p);
}

/// Returns values distributed as gradients: in binary16, two thirds are normal, a quarter
/// subnormal, and the rest becomes zero or overflows.
inline std::vector<float> mixed_values() {
  std::mt19937_64 random(12345);
  std::normal_distribution<double> log2_magnitude(-10, 10);
  std::vector<float> out(kPattern);
  for (float& x : out) {
    const double log2 = std::clamp(log2_magnitude(random), -40.0, 20.0);
    x = static_cast<float>((random() % 2 == 0 ? 1 : -1) * std::exp2(log2));
  }
  return out;
}

/// Returns device memory filled with repetitions of the pattern.
inline float* fill(const std::vector<float>& pattern, std::int64_t count) {
  float* const values = allocate<float>(count);
  for (std::int64_t i = 0; i < count; i += kPattern) {
    const auto bytes = static_cast<std::size_t>(std::min(kPattern, count - i)) * sizeof(float);
    check(cudaMemcpy(values + i, pattern.data(), bytes, cudaMemcpyHostToDevice));
  }
  return values;
}

/// Returns the median time of a call in seconds.
inline double time_of(const std::function<void()>& call) {
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  std::vector<double> seconds;
  for (int run = 0; run < 12; ++run) {
    check(cudaEventRecord(start));
    call();
    check(cudaEventRecord(stop));
    check(cudaEventSynchronize(stop));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, stop));
    if (run > 0) seconds.push_back(milliseconds / 1e3);  // the first run is a warm-up
  }
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(stop));
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

struct Result {
  std::string name;
  double microseconds, gigabytes_per_second, ratio_to_read;
};

/// Returns the result of a call. `read` is the speed of a plain sum in bytes per second.
inline Result result_of(std::string name, double bytes, double seconds, double read) {
  return {std::move(name), seconds * 1e6, bytes / seconds / 1e9, bytes / seconds / read};
}

/// Measures tables, facts and updates (cuda_table.cpp).
std::vector<Result> measure_tables(double read);
/// Measures batch normalisation (cuda_batch_norm.cpp).
std::vector<Result> measure_batch_norm(double read);

}  // namespace bench
