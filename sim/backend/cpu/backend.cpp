// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cpu/backend.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cmath>
#include <limits>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cpu/product.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

TensorView view(const Tensor& tensor) {
  return view_of(std::span<const float>(data(tensor), static_cast<std::size_t>(tensor.size())));
}

std::invalid_argument wrong_count(const char* what, std::int64_t wanted, std::int64_t found) {
  return std::invalid_argument(
      fmt::format("sim: {} needs {} values, found {}", what, wanted, found));
}

constexpr std::string_view kProcessor =
#if defined(__x86_64__)
    "x86_64";
#elif defined(__aarch64__)
    "aarch64";
#else
    "other";
#endif

/// Adds up to one block of values to the facts.
void add_block(const float* values, std::int64_t count, GradientFacts& facts) {
  double sum = 0, largest = 0;
  bool nan = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(static_cast<double>(values[i]));
    nan |= std::isnan(magnitude);
    largest = magnitude > largest ? magnitude : largest;  // false for NaN
    if (magnitude <= std::numeric_limits<double>::max()) sum += magnitude * magnitude;
  }
  facts.nonfinite |= nan || std::isinf(largest);
  if (nan) largest = std::numeric_limits<double>::quiet_NaN();
  if (!std::isnan(facts.max_abs) && !(largest <= facts.max_abs)) facts.max_abs = largest;
  facts.sum_squares += sum;
}

}  // namespace

struct CpuBackend::Threads {
  tbb::task_arena arena;
};

CpuBackend::CpuBackend(Accumulation accumulation, int threads)
    : accumulation_(accumulation), threads_(std::make_unique<Threads>()) {
  if (threads < 0) {
    throw std::invalid_argument(
        fmt::format("sim: expected 0 (all) or a number of threads, found {}", threads));
  }
  // oneTBB prints a warning if more threads are requested than it may start.
  using Control = tbb::global_control;
  const auto allowed = static_cast<int>(Control::active_value(Control::max_allowed_parallelism));
  threads_->arena.initialize(threads == 0 ? tbb::task_arena::automatic
                                          : std::min(threads, allowed));
}

CpuBackend::~CpuBackend() = default;

void CpuBackend::parallel(std::int64_t parts, const std::function<void(std::int64_t)>& work) const {
  if (parts <= 1 || threads_->arena.max_concurrency() == 1) {
    for (std::int64_t i = 0; i < parts; ++i) work(i);
    return;
  }
  threads_->arena.execute([&] { tbb::parallel_for(std::int64_t{0}, parts, work); });
}

void CpuBackend::sum_of_parts(
    std::int64_t total, std::int64_t part, std::vector<float>& sum,
    const std::function<void(std::int64_t, std::int64_t, float*)>& add_part) const {
  constexpr std::int64_t kMostSums = 16;
  const std::int64_t parts = (total + part - 1) / part, sums = std::min(parts, kMostSums);
  std::vector<std::vector<float>> partial(static_cast<std::size_t>(sums));
  parallel(sums, [&](std::int64_t i) {
    std::vector<float>& mine = partial[static_cast<std::size_t>(i)];
    mine.resize(sum.size());
    for (std::int64_t j = i * parts / sums; j < (i + 1) * parts / sums; ++j) {
      add_part(j * part, std::min(part, total - j * part), mine.data());
    }
  });
  for (const std::vector<float>& addend : partial) {
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += addend[j];
  }
}

void CpuBackend::round(Tensor& tensor) const {
  if (tensor.dtype == Dtype::f32) return;
  float* values = data(tensor);
  parallel_parts(tensor.size(), kPart, [&](std::int64_t first, std::int64_t count) {
    round_values(tensor.dtype, values + first, count);
  });
}

Sums CpuBackend::sums_of(const Tensor& a, const Tensor& b, const Tensor& to) const {
  if (accumulation_.architecture != nullptr) {
    const auto unit = accumulation_.unit_for(a.dtype);
    if (!unit || a.dtype != b.dtype) {
      throw std::invalid_argument(fmt::format(
          "sim: {} has no Tensor Core for {} and {}; expected two tensors of one 16-bit type that "
          "it has",
          accumulation_.architecture->name, name_of(a.dtype), name_of(b.dtype)));
    }
    const Format f = format_of(a.dtype);
    return {.tensor_core = tensor_core::Gemm{.unit = *unit, .a = f, .b = f, .threads = 1}};
  }
  const bool narrow = accumulation_.narrow && a.dtype == to.dtype && b.dtype == to.dtype;
  return {.narrow = narrow ? to.dtype : Dtype::f32};
}

void CpuBackend::accumulate(const Sums& sums, const ProductShape& shape, StridedAt a,
                            MatrixAt<const float> b, MatrixAt<float> c) const {
  if (sums.tensor_core) {
    Sums all = sums;
    all.tensor_core->threads = threads_->arena.max_concurrency();
    return cpu::accumulate(all, shape, a, b, c);
  }
  parallel_parts(shape.rows, 4, [&](std::int64_t row, std::int64_t rows) {
    cpu::accumulate(sums, {rows, shape.columns, shape.depth},
                    {a.data + row * a.row, a.row, a.column}, b,
                    {c.data + row * c.stride, c.stride});
  });
}

std::string CpuBackend::describe() const {
  return fmt::format("cpu: {} AVX2, {}", kProcessor, eigen_version());  // same sums everywhere
}

Tensor CpuBackend::make(const Shape& shape, Dtype dtype) {
  require_tensor(shape, dtype);
  return {shape, dtype, std::make_shared<CpuStorage>(elements(shape))};
}

void CpuBackend::set(Tensor& to, std::span<const float> values) {
  const auto found = static_cast<std::int64_t>(values.size());
  if (found != to.size()) throw wrong_count("a tensor that is set", to.size(), found);
  std::ranges::copy(values, data(to));
  round(to);
}

std::vector<float> CpuBackend::get(const Tensor& from) {
  const float* values = data(from);
  return {values, values + from.size()};
}

void CpuBackend::copy(const Tensor& from, Tensor& to) {
  if (from.size() != to.size()) throw wrong_count("a copy", to.size(), from.size());
  const float* source = data(from);
  float* target = data(to);
  parallel_parts(to.size(), kPart, [&](std::int64_t first, std::int64_t count) {
    std::copy_n(source + first, count, target + first);
    if (from.dtype != to.dtype) round_values(to.dtype, target + first, count);
  });
}

void CpuBackend::fill(Tensor& to, float value) {
  round_values(to.dtype, &value, 1);
  std::fill_n(data(to), to.size(), value);
}

GradientFacts CpuBackend::facts(std::span<const Tensor> gradients) {
  GradientFacts all;
  for (const Tensor& tensor : gradients) {
    const float* values = data(tensor);
    const std::int64_t parts = (tensor.size() + kPart - 1) / kPart;
    std::vector<GradientFacts> found(static_cast<std::size_t>(parts));
    parallel(parts, [&](std::int64_t i) {
      add_block(values + i * kPart, std::min(kPart, tensor.size() - i * kPart),
                found[static_cast<std::size_t>(i)]);
    });
    for (const GradientFacts& part : found) {
      all.nonfinite |= part.nonfinite;
      if (!std::isnan(all.max_abs) && !(part.max_abs <= all.max_abs)) all.max_abs = part.max_abs;
      all.sum_squares += part.sum_squares;
    }
  }
  return all;
}

BinadeTable CpuBackend::count(const Tensor& tensor) {
  return count_binades(view(tensor), threads_->arena.max_concurrency());
}

Moments CpuBackend::moments(const Tensor& tensor) { return halfscope::moments(view(tensor)); }

}  // namespace halfscope::sim::backend::cpu

std::unique_ptr<halfscope::sim::backend::Backend> halfscope::sim::backend::make_cpu_backend(
    Accumulation accumulation, int threads) {
  return std::make_unique<cpu::CpuBackend>(accumulation, threads);
}
