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
void compare(const DeviceTensor& all, const std::vector<std::byte>& pattern,
             const cuda::CountLimits& limits) {
  const DeviceTensor part = {all.dtype, all.data, kPattern};
  const auto got = cuda::TableCount(std::span(&part, 1), nullptr, limits).get();
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
  const cuda::CountLimits by_encodings = {.encodings_from = 0},
                          by_parts = {.encodings_from = n + 1};
  if (dtype != Dtype::f32) {
    compare(tensor, pattern, by_encodings);
    add("table by encodings", time_of_count<cuda::TableCount>(one, stream, by_encodings));
    write(encoded(dtype, std::vector<float>(kPattern, 1.0f)), memory, kBytes);  // the worst case
    add("table by encodings, one value",
        time_of_count<cuda::TableCount>(one, stream, by_encodings));
    write(pattern, memory, kBytes);
  }
  compare(tensor, pattern, by_parts);
  add("table by parts", time_of_count<cuda::TableCount>(one, stream, by_parts));
  add("largest and sum of squares", time_of_count<cuda::FactsCount>(one, stream));
}

/// Numbers of elements, as of the gradients of one step: 300 tensors of 1000 to 100,000, and the
/// weights of GPT-2 (124 M in 148 tensors: 12 blocks of width 768, 50,257 tokens, 1024 places).
std::vector<std::int64_t> many_sizes() {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < 300; ++i) out.push_back(1000 + i * i * 99000 / (299 * 299));
  return out;
}
std::vector<std::int64_t> gpt_sizes() {
  constexpr std::int64_t kWidth = 768;
  std::vector<std::int64_t> out = {50257 * kWidth, 1024 * kWidth, kWidth, kWidth};
  for (int block = 0; block < 12; ++block) {
    for (const std::int64_t outputs : {3 * kWidth, kWidth, 4 * kWidth}) {
      out.insert(out.end(), {outputs * kWidth, outputs});
    }
    out.insert(out.end(), {kWidth, kWidth, kWidth, kWidth, 4 * kWidth * kWidth, kWidth});
  }
  return out;
}

/// Places tensors in memory one after another. Returns the number of bytes.
std::int64_t place(Dtype dtype, const std::vector<std::int64_t>& sizes, std::byte* memory,
                   std::vector<DeviceTensor>& tensors) {
  const auto width = static_cast<std::int64_t>(cuda::width_of(dtype));
  std::int64_t at = 0;
  for (const std::int64_t n : sizes) {
    tensors.push_back({dtype, memory + at, n});
    at += (n * width + 255) / 256 * 256;
  }
  return at;
}

void measure_list(const std::string& name, Dtype dtype, const std::vector<std::int64_t>& sizes,
                  std::byte* memory, double read, std::vector<Result>& out) {
  std::vector<DeviceTensor> tensors;
  const std::int64_t size = place(dtype, sizes, memory, tensors);
  write(encoded(dtype, mixed_values()), memory, size);
  const std::string what = " of " + name + " of " + std::string(name_of(dtype));
  const std::span<const DeviceTensor> list(tensors);
  const auto bytes = static_cast<double>(size);
  const cudaStream_t stream = nullptr;
  out.push_back(
      result_of("tables" + what, bytes, time_of_count<cuda::TableCount>(list, stream), read));
  out.push_back(result_of("largest and sums" + what, bytes,
                          time_of_count<cuda::FactsCount>(list, stream), read));
}

/// Measures the updates of GPT-2's weights in one launch.
void measure_update_list(std::byte* memory, double read, std::vector<Result>& out) {
  std::vector<DeviceTensor> tensors;
  std::vector<std::int64_t> sizes = gpt_sizes(), both = sizes;
  both.insert(both.end(), sizes.begin(), sizes.end());
  const std::int64_t size = place(Dtype::f32, both, memory, tensors);
  std::vector<cuda::WeightUpdate> pairs;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    pairs.push_back({tensors[i], tensors[i + sizes.size()]});
  }
  const std::span<const cuda::WeightUpdate> list(pairs);
  const UpdateOptions counts = {.distributions = false};
  const cudaStream_t stream = nullptr;
  out.push_back(result_of("updates of GPT-2's weights, counts", static_cast<double>(size),
                          time_of_count<cuda::UpdateCount>(list, counts, stream), read));
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
    const cuda::WeightUpdate part = {half(0, kPattern), half(1, kPattern)};
    cuda::UpdateCount count(std::span(&part, 1), options, stream);
    const auto view = [](const std::vector<float>& v) {
      return view_of(std::span<const float>(v));
    };
    if (count.get()[0] != count_updates(view(weights), view(updates), options)) {
      throw std::runtime_error("the device's updates differ from the CPU's");
    }
    const cuda::WeightUpdate whole = {half(0, kBytes / 8), half(1, kBytes / 8)};
    const std::span<const cuda::WeightUpdate> one(&whole, 1);
    out.push_back(result_of(distributions ? "updates of 1 GiB of pairs, distributions"
                                          : "updates of 1 GiB of pairs, counts",
                            double{kBytes}, time_of_count<cuda::UpdateCount>(one, options, stream),
                            read));
  }
}

}  // namespace

std::vector<Result> measure_tables(double read) {
  auto* const memory = allocate<std::byte>(kBytes);
  std::vector<Result> out;
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) measure_one(dtype, memory, read, out);
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
    measure_list("300 tensors", dtype, many_sizes(), memory, read, out);
    measure_list("GPT-2's weights", dtype, gpt_sizes(), memory, read, out);
  }
  measure_updates(memory, read, out);
  measure_update_list(memory, read, out);
  check(cudaFree(memory));
  return out;
}

}  // namespace bench
