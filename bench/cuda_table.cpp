// SPDX-License-Identifier: Apache-2.0
// Measures tables, facts and updates of 1 GiB, and of many small tensors. The time includes the
// work on the stream and the copies of results.
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>

#include "bench/bench_cuda.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/table/count/count_cuda.hpp"
#include "halfscope/table/update/update_cuda.hpp"

namespace bench {
namespace {

using namespace halfscope;
using cuda::DeviceTensor;

constexpr std::int64_t kBytes = std::int64_t{1} << 30;

/// Returns the pattern in the dtype's encoding.
std::vector<std::byte> encoded(Dtype dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * (dtype == Dtype::f32 ? 4 : 2));
  if (dtype == Dtype::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    std::vector<std::uint16_t> narrow(values.size());
    convert(format_of(dtype), values, narrow);
    std::memcpy(bytes.data(), narrow.data(), bytes.size());
  }
  return bytes;
}

/// Fills `size` bytes of device memory with repetitions of the pattern.
void write(const std::vector<std::byte>& pattern, std::byte* to, std::int64_t size) {
  const auto length = static_cast<std::int64_t>(pattern.size());
  for (std::int64_t i = 0; i < size; i += length) {
    const auto n = static_cast<std::size_t>(std::min(length, size - i));
    check(cudaMemcpy(to + i, pattern.data(), n, cudaMemcpyHostToDevice));
  }
}

/// Checks, before the measurement, that the device's counts equal the CPU's.
void compare(const DeviceTensor& all, const std::vector<std::byte>& pattern, std::int64_t from) {
  const DeviceTensor part = {all.dtype, all.data, kPattern};
  const auto got = cuda::TableCount(std::span(&part, 1), nullptr, from).get();
  if (got[0].table == count_binades({all.dtype, pattern.data(), kPattern})) return;
  throw std::runtime_error("the device's table differs from the CPU's");
}

/// Returns the median seconds of constructing `Count(arguments...)`. Its work is complete at the
/// event that is recorded after it.
template <class Count, class... Arguments>
double time_of_count(const Arguments&... arguments) {
  std::optional<Count> count;
  return time_of([&] { count.emplace(arguments...); });
}

void measure_one(Dtype dtype, std::byte* memory, double read, std::vector<Result>& out) {
  const std::vector<std::byte> pattern = encoded(dtype, mixed_values());
  write(pattern, memory, kBytes);
  const std::int64_t n = kBytes / (dtype == Dtype::f32 ? 4 : 2);
  const DeviceTensor tensor = {dtype, memory, n};
  const std::span<const DeviceTensor> one(&tensor, 1);
  const auto add = [&](const std::string& what, double seconds) {
    out.push_back(result_of(what + " of 1 GiB of " + std::string(name_of(dtype)), double{kBytes},
                            seconds, read));
  };
  const cudaStream_t stream = nullptr;
  if (dtype != Dtype::f32) {
    compare(tensor, pattern, 0);
    add("table by encodings", time_of_count<cuda::TableCount>(one, stream, std::int64_t{0}));
  }
  compare(tensor, pattern, n + 1);
  add("table by parts", time_of_count<cuda::TableCount>(one, stream, n + 1));
  add("largest and sum of squares", time_of_count<cuda::FactsCount>(one, stream));
}

/// Measures 300 tensors of 1000 to 100,000 elements, as the gradients of one step.
void measure_small(Dtype dtype, std::byte* memory, double read, std::vector<Result>& out) {
  const std::int64_t width = dtype == Dtype::f32 ? 4 : 2;
  std::vector<DeviceTensor> tensors;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    const std::int64_t n = 1000 + i * i * 99000 / (299 * 299);
    tensors.push_back({dtype, memory + at, n});
    at += (n * width + 255) / 256 * 256;
  }
  write(encoded(dtype, mixed_values()), memory, at);
  const std::string what = " of 300 tensors of " + std::string(name_of(dtype));
  const std::span<const DeviceTensor> list(tensors);
  const auto bytes = static_cast<double>(at);
  const cudaStream_t stream = nullptr;
  out.push_back(
      result_of("tables" + what, bytes, time_of_count<cuda::TableCount>(list, stream), read));
  out.push_back(result_of("largest and sums" + what, bytes,
                          time_of_count<cuda::FactsCount>(list, stream), read));
}

void measure_updates(std::byte* memory, double read, std::vector<Result>& out) {
  std::vector<float> weights = mixed_values(), updates = weights;
  std::rotate(updates.begin(), updates.begin() + 12345, updates.end());
  for (float& u : updates) u *= 0x1p-10f;
  write(encoded(Dtype::f32, weights), memory, kBytes / 2);
  write(encoded(Dtype::f32, updates), memory + kBytes / 2, kBytes / 2);
  const auto half = [&](int which, std::int64_t n) {
    return DeviceTensor{Dtype::f32, memory + which * (kBytes / 2), n};
  };
  const cudaStream_t stream = nullptr;
  for (const bool distributions : {false, true}) {
    const UpdateOptions options = {.distributions = distributions};
    cuda::UpdateCount count(half(0, kPattern), half(1, kPattern), options, stream);
    const auto view = [](const std::vector<float>& v) {
      return view_of(std::span<const float>(v));
    };
    if (count.get() != count_updates(view(weights), view(updates), options)) {
      throw std::runtime_error("the device's updates differ from the CPU's");
    }
    const DeviceTensor w = half(0, kBytes / 8), u = half(1, kBytes / 8);
    out.push_back(result_of(distributions ? "updates of 1 GiB of pairs, distributions"
                                          : "updates of 1 GiB of pairs, counts",
                            double{kBytes}, time_of_count<cuda::UpdateCount>(w, u, options, stream),
                            read));
  }
}

}  // namespace

std::vector<Result> measure_tables(double read) {
  auto* const memory = allocate<std::byte>(kBytes);
  std::vector<Result> out;
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) measure_one(dtype, memory, read, out);
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) measure_small(dtype, memory, read, out);
  measure_updates(memory, read, out);
  check(cudaFree(memory));
  return out;
}

}  // namespace bench
