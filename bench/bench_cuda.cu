// SPDX-License-Identifier: Apache-2.0
// Speed of array operations, histograms and batch normalisation on a CUDA device, as ratios to
// reading device memory in the same run. Built with the other benchmarks if nvcc is found, but not
// run by ./run bench:
//
//   cmake -S . -B build -DHALFSCOPE_BENCH=ON && cmake --build build --target bench_cuda
//   build/bin/bench_cuda [--json FILE] [--elements N]
//
// The array operations have N elements, by default 2^28 (2.5 GiB on the device); histograms, 1 GiB.
//
// The ratio is an operation's speed (bytes read and written per second) divided by that of a plain
// sum. Times are medians of 11 calls, measured by CUDA events, and include all work on the stream.
#include <cuda_runtime.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench_cuda.hpp"
#include "halfscope/array/array_cuda.hpp"

namespace {

using namespace halfscope;
using namespace bench;

/// Reads every word, for comparison. The sum prevents the loads from being optimised away.
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

/// Checks, before the measurement, that the device's results equal the CPU's.
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
  for (std::uint16_t* const copy : {b, c}) {  // shifted by one, so that the operands differ
    check(cudaMemcpy(copy, a + 1, static_cast<std::size_t>(n - 1) * 2, cudaMemcpyDeviceToDevice));
    check(cudaMemcpy(copy + n - 1, a, 2, cudaMemcpyDeviceToDevice));
  }
  auto* const sink = allocate<unsigned>(1);
  const double bytes = 4.0 * static_cast<double>(n);
  const double seconds = time_of([&] {
    read_kernel<<<4096, 256>>>(reinterpret_cast<const uint4*>(x), n / 4, sink);
    check(cudaGetLastError());
  });
  const double read = bytes / seconds;
  std::vector<Result> results = {result_of("read device memory", bytes, seconds, read)};
  const auto row = [&](const char* name, int bytes_each, const std::function<void()>& call) {
    results.push_back(result_of(name, bytes_each * static_cast<double>(n), time_of(call), read));
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
  for (void* const memory : {static_cast<void*>(x), static_cast<void*>(a), static_cast<void*>(b),
                             static_cast<void*>(c)}) {
    check(cudaFree(memory));
  }
  for (Result& result : measure_tables(read)) results.push_back(std::move(result));
  for (Result& result : measure_batch_norm(read)) results.push_back(std::move(result));
  return results;
}

/// Keeps freed memory in the process: otherwise every synchronisation would return it.
void keep_memory() {
  cudaMemPool_t pool = nullptr;
  std::uint64_t threshold = ~std::uint64_t{0};
  check(cudaDeviceGetDefaultMemPool(&pool, 0));
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

void report(const std::vector<Result>& results, const std::string& json) {
  std::printf("%-48s %10s %9s %14s\n", "", "us", "GB/s", "ratio to read");
  for (const Result& r : results) {
    std::printf("%-48s %10.1f %9.1f %14.2f\n", r.name.c_str(), r.microseconds,
                r.gigabytes_per_second, r.ratio_to_read);
  }
  if (json.empty()) return;
  std::ofstream out(json);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    out << (i == 0 ? "[\n" : ",\n") << " {\"name\": \"" << r.name
        << "\", \"value\": " << r.gigabytes_per_second
        << ", \"unit\": \"GB/s\", \"microseconds\": " << r.microseconds
        << ", \"ratio_to_read\": " << r.ratio_to_read << "}";
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
    keep_memory();
    std::printf("%s, %lld elements\n", properties.name, static_cast<long long>(elements));
    report(measure(elements), json);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_cuda: %s\n", error.what());
    return 1;
  }
  return 0;
}
