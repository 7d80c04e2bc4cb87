// SPDX-License-Identifier: Apache-2.0
// Every row of lib/halfscope/optimizer, against formulas written out (step_judge.hpp).
#include "halfscope/optimizer/step.hpp"

#include <bit>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "step_judge.hpp"

namespace halfscope::optimizer {
namespace {

using step_judge::Case;
using step_judge::Element;

/// Values of a parameter in binary32, all of them values of the dtype, and their encodings.
class Tensor {
 public:
  Tensor(Dtype dtype, std::vector<float> values) : dtype_(dtype), values(std::move(values)) {
    for (const float value : this->values) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      if (dtype == Dtype::f32) append(bits, 4);
      if (dtype == Dtype::bf16) append(bits >> 16 | (std::isnan(value) ? 0x40 : 0), 2);
      if (dtype == Dtype::f16) append(half_bits(value), 2);
    }
  }
  TensorView view() const { return {dtype_, bytes_.data(), values.size()}; }

 private:
  void append(std::uint32_t bits, int count) {
    for (int i = 0; i < count; ++i) bytes_.push_back(static_cast<std::byte>(bits >> (8 * i)));
  }
  static std::uint32_t half_bits(float value) {
    const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | 0x7E00;
    if (std::isinf(value)) return sign | 0x7C00;
    const float magnitude = std::abs(value);
    if (magnitude < 0x1p-14f) return sign | static_cast<std::uint32_t>(magnitude * 0x1p24f);
    const int exponent = std::ilogb(magnitude);
    const auto digits = static_cast<std::uint32_t>(std::ldexp(magnitude, 10 - exponent));
    return sign | (static_cast<std::uint32_t>(exponent + 14) * 1024 + digits);
  }

  Dtype dtype_;
  std::vector<std::byte> bytes_;

 public:
  std::vector<float> values;
};

/// Makes values of a dtype: of every exponent and special ones, or of the size that training has.
class Values {
 public:
  explicit Values(Dtype dtype) { case_.o.dtype = dtype; }

  Tensor tensor(std::size_t n, float size, bool positive) {
    std::vector<float> values(n);
    for (float& value : values) {
      value = next() % 4 == 0 ? any() : size * normal_(random_) * std::ldexp(1.0f, exponent());
      value = step_judge::rounded(case_, value);
      if (positive) value = std::abs(value);
    }
    return {case_.o.dtype, std::move(values)};
  }

 private:
  std::uint32_t next() { return static_cast<std::uint32_t>(random_()); }
  int exponent() { return static_cast<int>(next() % 12) - 8; }
  float any() {
    constexpr std::uint32_t kDigits[] = {0, 1, 0x400000, 0x7FFFFF, 0x7F0000, 0x2AAAAA};
    const std::uint32_t digits = next() % 2 ? kDigits[next() % 6] : next() & 0x7FFFFF;
    const std::uint32_t exponent = next() % 16 == 0 ? 255 * (next() % 2) : next() % 255;
    return std::bit_cast<float>((next() & 1) << 31 | exponent << 23 | digits);
  }

  Case case_;
  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
};

struct Parameter {
  Tensor w, g, m, v, x;

  Parameter(Dtype dtype, std::size_t n) : Parameter(Values(dtype), n) {}
  Parameter(Values values, std::size_t n)
      : w(values.tensor(n, 0.5f, false)),
        g(values.tensor(n, 1e-2f, false)),
        m(values.tensor(n, 1e-2f, false)),
        v(values.tensor(n, 1e-4f, true)),
        x(values.tensor(n, 1e-4f, true)) {}

  Views views() const {
    return {w.view(), g.view(), m.view(), v.view(), x.view(), w.values.size()};
  }
  Element element(std::size_t i) const {
    return {w.values[i], g.values[i], m.values[i], v.values[i], x.values[i]};
  }
};

std::vector<Element> results_of(const Case& c, const Parameter& parameter, std::size_t begin,
                                std::size_t end) {
  const Step<float> step(*find_variant(c.row), c.s, c.o);
  std::vector<Element> results;
  step.run(parameter.views(), begin, end, [&](const Results<float>& r) {
    REQUIRE(r.start == begin + results.size());
    for (std::size_t i = 0; i < r.count; ++i) {
      results.push_back({r.weight[i], 0, r.first[i], r.second[i], r.largest[i]});
    }
  });
  return results;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Returns the number of elements whose results differ from the judge's.
std::size_t differences(Case c, const Parameter& parameter) {
  const std::size_t n = parameter.w.values.size();
  const std::vector<Element> results = results_of(c, parameter, 0, n);
  REQUIRE(results.size() == n);
  const bool is_default = c.o.processor != nullptr && c.o.processor->name == "DEFAULT";
  if (step_judge::is_cpu(c)) c.fma = !is_default;
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    c.tail = step_judge::in_tail(c, is_default, i, n);
    const Element wanted = step_judge::after(c, parameter.element(i));
    const bool sgd = c.s.algorithm == Algorithm::sgd;
    count += !(same(results[i].w, wanted.w) && same(results[i].m, wanted.m) &&
               (sgd || same(results[i].v, wanted.v)) && (sgd || same(results[i].x, wanted.x)));
  }
  return count;
}

std::vector<Settings> settings_of(Algorithm algorithm) {
  if (algorithm == Algorithm::sgd) {
    return {{.algorithm = algorithm, .lr = 0.03},
            {.algorithm = algorithm, .lr = 1e-3, .weight_decay = 0.01, .maximize = true},
            {.algorithm = algorithm, .lr = 0.1, .weight_decay = 0.013, .momentum = 0.9},
            {.algorithm = algorithm, .lr = 0.1, .momentum = 0.85, .dampening = 0.3},
            {.algorithm = algorithm,
             .lr = 0.01,
             .weight_decay = 1e-4,
             .momentum = 0.9,
             .nesterov = true,
             .maximize = true}};
  }
  return {{.algorithm = algorithm},
          {.algorithm = algorithm, .lr = 3e-4, .weight_decay = 0.1},
          {.algorithm = algorithm, .lr = 2e-3, .eps = 1e-5, .weight_decay = 0.01, .amsgrad = true},
          {.algorithm = algorithm, .lr = 1e-3, .beta1 = 0.4, .beta2 = 0.95, .maximize = true},
          {.algorithm = algorithm, .beta1 = 0, .eps = 1e-5},
          {.algorithm = algorithm, .beta1 = 0.5, .beta2 = 0.98, .eps = 1e-6, .weight_decay = 0.3}};
}

std::vector<StepOptions> options_of(const Settings& settings) {
  std::vector<StepOptions> all = {{.steps = 1, .first = true},
                                  {.steps = 2},
                                  {.steps = 1000, .scale = 1024},
                                  {.steps = 17, .scale = 3, .moments_are_new = true},
                                  {.steps = 17, .update_only = true},
                                  {.steps = 5, .moments_are_new = true, .update_only = true}};
  if (settings.algorithm != Algorithm::sgd) all.front().first = false;
  return all;
}

bool has(const Variant& row, Algorithm algorithm) {
  return !(algorithm == Algorithm::sgd ? row.sgd : row.adam).body.empty();
}

/// Calls visit(case) for all rows, algorithms, settings, options and processors of a dtype.
template <typename Visit>
void for_each_case(Dtype dtype, const Visit& visit) {
  for (const Variant& row : variants()) {
    for (const Algorithm algorithm : {Algorithm::sgd, Algorithm::adam, Algorithm::adamw}) {
      if (!has(row, algorithm)) continue;
      for (const Settings& settings : settings_of(algorithm)) {
        for (StepOptions options : options_of(settings)) {
          options.dtype = dtype;
          for (const Processor& processor : processors()) {
            options.processor = &processor;
            visit(Case{row.name, settings, options});
            if (row.loop == Loop::device) break;
          }
        }
      }
    }
  }
}

std::string text_of(const Case& c) {
  return std::string(c.row) + ", algorithm " + std::to_string(static_cast<int>(c.s.algorithm)) +
         ", lr " + std::to_string(c.s.lr) + ", weight_decay " + std::to_string(c.s.weight_decay) +
         ", momentum " + std::to_string(c.s.momentum) + ", steps " + std::to_string(c.o.steps) +
         (c.o.moments_are_new ? ", moments_are_new" : "") +
         (c.o.update_only ? ", update_only" : "") + ", " +
         std::string(c.o.processor ? c.o.processor->name : "");
}

TEST_CASE("step: every row, algorithm and setting has the bits of its formulas") {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    const Parameter parameter(dtype, 1031);
    for_each_case(dtype, [&](const Case& c) {
      INFO(text_of(c));
      CHECK(differences(c, parameter) == 0);
    });
  }
}

TEST_CASE("step: tails, around the ends of vectors and of threads' parts") {
  std::vector<std::size_t> sizes = {0, 1, 65535, 65536, 65537, 98321};
  for (const std::size_t size : {8, 16, 32, 64, 256, 512}) {
    for (const std::size_t n : {size - 1, size, size + 1}) sizes.push_back(n);
  }
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    for (const std::size_t n : sizes) {
      const Parameter parameter(dtype, n);
      for (const std::string_view row : {"cpu", "cpu-foreach", "cpu-fused"}) {
        for (const int threads : {1, 2, 3, 64}) {
          if (n < 65535 && threads != 1 && threads != 64) continue;
          for (const Algorithm algorithm : {Algorithm::sgd, Algorithm::adam}) {
            Case c{row, settings_of(algorithm)[algorithm == Algorithm::sgd ? 2 : 1], {.steps = 3}};
            c.o.dtype = dtype;
            c.o.threads = threads;
            INFO(text_of(c) << ", " << n << " elements, " << threads << " threads");
            CHECK(differences(c, parameter) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("step: a part of a parameter has the results of the whole") {
  const std::size_t n = 70001;
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Parameter parameter(dtype, n);
    for (const std::string_view row : {"cpu", "cpu-fused", "cuda-fused-2025"}) {
      Case c{row, settings_of(Algorithm::adamw)[1], {.steps = 3}};
      c.o.dtype = dtype;
      c.o.threads = 2;
      const std::vector<Element> whole = results_of(c, parameter, 0, n);
      std::size_t differ = 0, at = 0;
      for (const std::size_t end : {1, 255, 256, 1000, 34990, 35001, 69999, 70001}) {
        for (const Element& part : results_of(c, parameter, at, end)) {
          differ += !(same(part.w, whole[at].w) && same(part.m, whole[at].m) &&
                      same(part.v, whole[at].v));
          ++at;
        }
        REQUIRE(at == end);
      }
      CHECK(differ == 0);
    }
  }
}

/// Replaces values by square roots that are one ulp off, up or down, where `spread` says so.
RootFunction root_of(std::uint32_t spread) {
  return [spread](std::span<float> values) {
    for (float& value : values) {
      const std::uint32_t hash = (std::bit_cast<std::uint32_t>(value) + spread) * 2654435761u;
      value = std::sqrt(value);
      if (value == 0 || !std::isfinite(value)) continue;
      value = std::nextafter(value, hash >> 31 ? INFINITY : 0.0f);
    }
  };
}

TEST_CASE("step: bounds contain the results of every library's square root") {
  const Parameter parameter(Dtype::f32, 5000);
  for (const std::string_view row : {"cpu", "cpu-foreach"}) {
    for (const Algorithm algorithm : {Algorithm::adam, Algorithm::adamw}) {
      for (const Settings& settings : settings_of(algorithm)) {
        Case c{row, settings, {.steps = 7}};
        std::vector<std::vector<Element>> ends, inside;
        for (const Bound bound : {Bound::shortest, Bound::longest}) {
          c.o.bound = bound;
          ends.push_back(results_of(c, parameter, 0, 5000));
        }
        c.o.bound = Bound::nearest;
        inside.push_back(results_of(c, parameter, 0, 5000));
        for (const std::uint32_t spread : {1u, 77u, 12345u}) {
          c.o.root = root_of(spread);
          inside.push_back(results_of(c, parameter, 0, 5000));
        }
        std::size_t outside = 0, apart = 0;
        for (std::size_t i = 0; i < 5000; ++i) {
          const auto [low, high] = std::minmax(ends[0][i].w, ends[1][i].w);
          apart += low != high && !std::isnan(low);
          for (const auto& each : inside) {
            outside += std::isnan(low) || std::isnan(high)
                           ? !std::isnan(each[i].w) && !std::isnan(low + high)
                           : each[i].w < low || each[i].w > high;
          }
        }
        INFO(text_of(c));
        CHECK(outside == 0);
        CHECK(apart > 10);
      }
    }
  }
}

TEST_CASE("step: bounds of powers contain the nearest, and exact rows have one result") {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Parameter parameter(dtype, 3000);
    for (const Variant& row : variants()) {
      if (row.accuracy == Accuracy::random) continue;
      Case c{row.name, settings_of(Algorithm::adamw)[1], {.steps = 1000}};
      c.o.dtype = dtype;
      std::vector<std::vector<Element>> all;
      for (const Bound bound : {Bound::nearest, Bound::shortest, Bound::longest}) {
        c.o.bound = bound;
        all.push_back(results_of(c, parameter, 0, 3000));
      }
      std::size_t outside = 0, apart = 0;
      for (std::size_t i = 0; i < 3000; ++i) {
        const auto [low, high] = std::minmax(all[1][i].w, all[2][i].w);
        outside += all[0][i].w < low || all[0][i].w > high;
        apart += low != high && !std::isnan(low) && !std::isnan(high);
      }
      INFO(row.name << ", dtype " << static_cast<int>(dtype));
      CHECK(outside == 0);
      const bool inexact = row.accuracy == Accuracy::powers ||
                           (row.accuracy == Accuracy::root && dtype == Dtype::f32);
      CHECK((apart == 0 || inexact));
      if (dtype == Dtype::f32) CHECK((apart > 0) == inexact);
    }
  }
}

TEST_CASE("step: a square root of the caller's is used where it is a library's, and only there") {
  const Parameter parameter(Dtype::f32, 300);
  for (const Variant& row : variants()) {
    Case c{row.name, settings_of(Algorithm::adam)[0], {.steps = 3}};
    std::size_t calls = 0;
    c.o.root = [&](std::span<float> values) {
      ++calls;
      for (float& value : values) value = std::sqrt(value);
    };
    INFO(row.name);
    CHECK(differences(c, parameter) == 0);
    CHECK((calls != 0) == (row.accuracy == Accuracy::root));
  }
}

TEST_CASE("step: stochastic rounding has two results, the neighbours of the exact one") {
  const Parameter parameter(Dtype::bf16, 4000);
  Case c{"torchao", settings_of(Algorithm::adamw)[1], {.steps = 9}};
  c.o.dtype = Dtype::bf16;
  std::vector<std::vector<Element>> all;
  for (const Bound bound : {Bound::nearest, Bound::shortest, Bound::longest}) {
    c.o.bound = bound;
    all.push_back(results_of(c, parameter, 0, 4000));
  }
  std::size_t wrong = 0, apart = 0;
  for (std::size_t i = 0; i < 4000; ++i) {
    const float nearest = all[0][i].w, inner = all[1][i].w, outer = all[2][i].w;
    if (std::isnan(nearest)) continue;
    const auto between = std::bit_cast<std::uint32_t>(outer) - std::bit_cast<std::uint32_t>(inner);
    wrong += between != 0 && between != 0x10000;
    wrong += !same(nearest, inner) && !same(nearest, outer);
    apart += between != 0;
  }
  CHECK(wrong == 0);
  CHECK(apart > 1000);
}

TEST_CASE("step: what cannot be computed is refused") {
  const Parameter parameter(Dtype::f32, 10);
  CHECK_THROWS_AS(Step<float>(*find_variant("torchao"), {.algorithm = Algorithm::sgd}, {}),
                  std::invalid_argument);
  const Step<float> step(*find_variant("cpu"), {.algorithm = Algorithm::adam}, {});
  Views views = parameter.views();
  views.second = {};
  CHECK_THROWS_AS(step.run(views, 0, 10, [](const Results<float>&) {}), std::invalid_argument);
  views = parameter.views();
  views.gradient.count = 9;
  CHECK_THROWS_AS(step.run(views, 0, 10, [](const Results<float>&) {}), std::invalid_argument);
  CHECK(find_variant("cpu-fuse") == nullptr);
  CHECK(find_processor("AVX") == nullptr);
}

TEST_CASE("step: tensors that a step does not read may be missing") {
  const auto reads = [](Settings settings, StepOptions options, Operand operand) {
    return Step<float>(*find_variant("cpu"), settings, options).reads(operand);
  };
  const Settings sgd = {.algorithm = Algorithm::sgd, .momentum = 0.9};
  constexpr Algorithm kAdamW = Algorithm::adamw;
  CHECK(reads(sgd, {}, Operand::first));
  CHECK_FALSE(reads(sgd, {.first = true}, Operand::first));
  CHECK_FALSE(reads(sgd, {.moments_are_new = true}, Operand::gradient));
  CHECK_FALSE(reads({.algorithm = kAdamW}, {}, Operand::largest));
  CHECK(reads({.algorithm = kAdamW, .amsgrad = true}, {}, Operand::largest));
  CHECK_FALSE(
      reads({.algorithm = kAdamW, .weight_decay = 0}, {.update_only = true}, Operand::weight));
  CHECK(reads({.algorithm = kAdamW, .weight_decay = 0.1}, {.update_only = true}, Operand::weight));
  CHECK_FALSE(reads({.algorithm = kAdamW}, {.moments_are_new = true}, Operand::gradient));
}

}  // namespace
}  // namespace halfscope::optimizer
