// SPDX-License-Identifier: Apache-2.0
// Speed of the array operations on a CUDA device, as ratios to reading device memory in the same
// run. Built with the other benchmarks where nvcc is found, but not run by ./run bench:
//
//   cmake -S . -B build -DHALFSCOPE_BENCH=ON && cmake --build build --target bench_cuda
//   build/bin/bench_cuda [--json FILE] [--elements N]      N = 2^28 by default: 2.5 GiB on the
//   device
//
// Ratio: bytes an operation reads and writes by its time, over bytes a plain sum reads by its time.
// Each time is the median of 11 calls by CUDA's events and holds all a call does on its stream.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/array/array_cuda.hpp"

namespace {

using namespace halfscope;

constexpr std::int64_t kPattern = std::int64_t{1} << 20;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// Device memory, never freed: the program ends.
template <typename T>
T* allocate(std::int64_t count) {
  void* p = nullptr;
  check(cudaMalloc(&p, static_cast<std::size_t>(count) * sizeof(T)));
  return static_cast<T*>(p);
}

/// Mixed as gradients are: two thirds normal in binary16, a quarter subnormal, the rest becomes
/// zero or overflows.
std::vector<float> mixed_values() {
  std::mt19937_64 random(12345);
  std::normal_distribution<double> log2_magnitude(-10, 10);
  std::vector<float> out(kPattern);
  for (float& x : out) {
    const double log2 = std::clamp(log2_magnitude(random), -40.0, 20.0);
    x = static_cast<float>((random() % 2 == 0 ? 1 : -1) * std::exp2(log2));
  }
  return out;
}

/// The pattern over and over.
float* fill(const std::vector<float>& pattern, std::int64_t count) {
  float* const values = allocate<float>(count);
  for (std::int64_t i = 0; i < count; i += kPattern) {
    const auto bytes = static_cast<std::size_t>(std::min(kPattern, count - i)) * sizeof(float);
    check(cudaMemcpy(values + i, pattern.data(), bytes, cudaMemcpyHostToDevice));
  }
  return values;
}

/// What reading costs: every word is loaded, and the sum keeps the loads from being dropped.
__global__ void read_kernel(const uint4* in, std::int64_t count, unsigned* sink) {
  unsigned sum = 0;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
#pragma unroll 4
  for (std::int64_t i = first; i < count; i += threads) {
    const uint4 word = in[i];
    sum += word.x ^ word.y ^ word.z ^ word.w;
  }
  if (sum == 0x12345678) *sink = sum;
}

/// Median seconds of a call.
double time_of(const std::function<void()>& call) {
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
    if (run > 0) seconds.push_back(milliseconds / 1e3);  // the first one warms up
  }
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(stop));
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

struct Result {
  std::string name;
  double gigabytes_per_second, ratio_to_read;
};

/// The device gives what the CPU gives, before anything is timed.
void compare(const std::vector<float>& pattern, const std::uint16_t* halves) {
  std::vector<std::uint16_t> want(pattern.size()), got(pattern.size());
  convert(kBinary16, pattern, want);
  check(cudaMemcpy(got.data(), halves, got.size() * sizeof got[0], cudaMemcpyDeviceToHost));
  if (got != want) throw std::runtime_error("the device's conversion differs from the CPU's");
}

std::vector<Result> measure(std::int64_t n) {
  const std::vector<float> pattern = mixed_values();
  float* const x = fill(pattern, n);
  auto* const a = allocate<std::uint16_t>(n);
  auto* const b = allocate<std::uint16_t>(n);
  auto* const c = allocate<std::uint16_t>(n);
  cuda::convert(kBinary16, x, a, n);
  compare(pattern, a);
  for (std::uint16_t* const copy : {b, c}) {  // operands that are not equal: shifted by one
    check(cudaMemcpy(copy, a + 1, static_cast<std::size_t>(n - 1) * 2, cudaMemcpyDeviceToDevice));
    check(cudaMemcpy(copy + n - 1, a, 2, cudaMemcpyDeviceToDevice));
  }
  auto* const sink = allocate<unsigned>(1);
  const double bytes = 4.0 * static_cast<double>(n);
  const double read = bytes / time_of([&] {
                        read_kernel<<<4096, 256>>>(reinterpret_cast<const uint4*>(x), n / 4, sink);
                        check(cudaGetLastError());
                      });
  std::vector<Result> results = {{"read device memory", read / 1e9, 1.0}};
  const auto row = [&](const char* name, int bytes_each, const std::function<void()>& call) {
    const double speed = bytes_each * static_cast<double>(n) / time_of(call);
    results.push_back({name, speed / 1e9, speed / read});
  };
  const ArrayOptions away = {.modes = {.rounding = Rounding::ties_to_away}};
  const ArrayOptions stochastic = {.modes = {.rounding = Rounding::stochastic}, .seed = 1};
  row("binary32 to binary16", 6, [&] { cuda::convert(kBinary16, x, a, n); });
  row("binary32 to binary16, ties to away", 6, [&] { cuda::convert(kBinary16, x, a, n, away); });
  row("binary32 to binary16, stochastic", 6,
      [&] { cuda::convert(kBinary16, x, a, n, stochastic); });
  row("binary32 to bfloat16", 6, [&] { cuda::convert(kBfloat16, x, a, n); });
  cuda::convert(kBinary16, x, a, n);
  row("add binary16", 6, [&] { cuda::add(kBinary16, a, b, c, n); });
  row("multiply binary16", 6, [&] { cuda::multiply(kBinary16, a, b, c, n); });
  row("fused multiply-add binary16", 8,
      [&] { cuda::fused_multiply_add(kBinary16, a, b, b, c, n); });
  row("binary16 to binary32", 6, [&] { cuda::convert(kBinary16, a, x, n); });
  row("quantise to e4m3 in place", 8, [&] { cuda::quantise(kFloat8E4M3, x, n); });
  row("quantise to binary16 in place", 8, [&] { cuda::quantise(kBinary16, x, n); });
  return results;
}

void report(const std::vector<Result>& results, const std::string& json) {
  std::printf("%-40s %9s %14s\n", "", "GB/s", "ratio to read");
  for (const Result& r : results) {
    std::printf("%-40s %9.1f %14.2f\n", r.name.c_str(), r.gigabytes_per_second, r.ratio_to_read);
  }
  if (json.empty()) return;
  std::ofstream out(json);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    out << (i == 0 ? "[\n" : ",\n") << " {\"name\": \"" << r.name
        << "\", \"value\": " << r.gigabytes_per_second
        << ", \"unit\": \"GB/s\", \"ratio_to_read\": " << r.ratio_to_read << "}";
  }
  out << "\n]\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t elements = std::int64_t{1} << 28;
  std::string json;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--json") json = argv[i + 1];
    if (std::string_view(argv[i]) == "--elements") elements = std::stoll(argv[i + 1]);
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return 0;
  }
  if (elements < kPattern) {
    std::fprintf(stderr, "bench_cuda: --elements of at least %lld\n",
                 static_cast<long long>(kPattern));
    return 2;
  }
  try {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0));
    std::printf("%s, %lld elements\n", properties.name, static_cast<long long>(elements));
    report(measure(elements), json);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_cuda: %s\n", error.what());
    return 1;
  }
  return 0;
}
