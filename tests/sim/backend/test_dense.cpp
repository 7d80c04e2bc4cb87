// SPDX-License-Identifier: Apache-2.0
#include <tbb/global_control.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "halfscope/number/arithmetic.hpp"
#include "sim/backend/backend.hpp"
#include "tests/catch.hpp"
#include "tests/sim/chains.hpp"

namespace halfscope::sim::test_dense {
namespace {

using Values = std::vector<float>;

struct Case {
  std::int64_t n, c, k;
};
constexpr Case kCases[] = {{1, 1, 1}, {3, 5, 7}, {65, 130, 129}, {128, 33, 10}, {700, 4, 3}};

struct Computed {
  Values x, w, b, dy, before;
  Values y, dx, dw, added, db, db_added;
};

Computed compute(backend::Backend& backend, const Case& t, Dtype dtype,
                 const std::function<float()>& draw) {
  const auto drawn = [&](const backend::Shape& shape) {
    backend::Tensor made = backend.make(shape, dtype);
    Values values(static_cast<std::size_t>(made.size()));
    for (float& x : values) x = draw();
    backend.set(made, values);
    return made;
  };
  // Images into a dense layer: any shape with N first.
  const backend::Tensor x = drawn({t.n, 1, t.c, 1}), w = drawn({t.k, t.c}), b = drawn({t.k});
  const backend::Tensor dy = drawn({t.n, t.k});
  backend::Tensor added = drawn({t.k, t.c}), db_added = backend.make({t.k}, dtype);
  backend.copy(b, db_added);
  Computed all = {backend.get(x),
                  backend.get(w),
                  backend.get(b),
                  backend.get(dy),
                  backend.get(added),
                  {},
                  {},
                  {},
                  {},
                  {},
                  {}};
  backend::Tensor y = backend.make({t.n, t.k}, dtype), dx = backend.make(x.shape, dtype);
  backend::Tensor dw = backend.make(w.shape, dtype), db = backend.make({t.k}, dtype);
  for (backend::Tensor* to : {&y, &dx, &dw, &db}) backend.fill(*to, std::nanf(""));
  backend.dense_forward(x, w, b, y);
  backend.dense_data_gradient(dy, w, dx);
  backend.dense_weight_gradient(x, dy, dw, false);
  backend.dense_weight_gradient(x, dy, added, true);
  backend.bias_gradient(dy, db, false);
  backend.bias_gradient(dy, db_added, true);
  all.y = backend.get(y);
  all.dx = backend.get(dx);
  all.dw = backend.get(dw);
  all.added = backend.get(added);
  all.db = backend.get(db);
  all.db_added = backend.get(db_added);
  return all;
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// To nearest, ties to even; an integer within the format's range.
float rounded(double value, int precision) {
  if (value == 0) return 0;
  const double step = std::ldexp(1.0, std::ilogb(value) - precision + 1);
  return static_cast<float>(std::nearbyint(value / step) * step);
}

/// How many of `found` are not the rounded sums over `depth` of term(row, column, k), and `before`.
std::size_t wrong(const Values& found, std::int64_t columns, std::int64_t depth, Dtype dtype,
                  const std::function<double(std::int64_t, std::int64_t, std::int64_t)>& term,
                  const std::function<double(std::int64_t, std::int64_t)>& before) {
  std::size_t count = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(found.size()); ++i) {
    double sum = before(i / columns, i % columns);
    for (std::int64_t k = 0; k < depth; ++k) sum += term(i / columns, i % columns, k);
    count += found[at(i)] != rounded(sum, format_of(dtype).precision);
  }
  return count;
}

TEST_CASE("sim: dense layers of integers are the naive loops', rounded once") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 2);
  std::mt19937 random(1);
  std::uniform_int_distribution<int> draw(-15, 15);
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const Case& t : kCases) {
      CAPTURE(name_of(dtype), t.n, t.c, t.k);
      const Computed r =
          compute(*backend, t, dtype, [&] { return static_cast<float>(draw(random)); });
      const auto x = [&](std::int64_t i, std::int64_t j) { return double{r.x[at(i * t.c + j)]}; };
      const auto w = [&](std::int64_t i, std::int64_t j) { return double{r.w[at(i * t.c + j)]}; };
      const auto dy = [&](std::int64_t i, std::int64_t j) { return double{r.dy[at(i * t.k + j)]}; };
      const auto none = [](std::int64_t, std::int64_t) { return 0.0; };
      const auto forward = [&](auto i, auto j, auto k) { return x(i, k) * w(j, k); };
      const auto data = [&](auto i, auto j, auto k) { return dy(i, k) * w(k, j); };
      const auto weight = [&](auto i, auto j, auto k) { return dy(k, i) * x(k, j); };
      const auto bias = [&](auto, auto j, auto k) { return dy(k, j); };
      CHECK(wrong(r.y, t.k, t.c, dtype, forward, [&](auto, auto j) { return r.b[at(j)]; }) == 0);
      CHECK(wrong(r.dx, t.c, t.k, dtype, data, none) == 0);
      CHECK(wrong(r.dw, t.c, t.n, dtype, weight, none) == 0);
      CHECK(wrong(r.added, t.c, t.n, dtype, weight,
                  [&](auto i, auto j) { return r.before[at(i * t.c + j)]; }) == 0);
      CHECK(wrong(r.db, t.k, t.n, dtype, bias, none) == 0);
      CHECK(wrong(r.db_added, t.k, t.n, dtype, bias, [&](auto, auto j) { return r.b[at(j)]; }) ==
            0);
    }
  }
}

TEST_CASE("sim: dense layers with sums in 16 bits are the emulator's, in order") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp16, 2);
  std::mt19937 random(2);
  std::normal_distribution<float> draw(0, 1);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Format f = format_of(dtype);
    const auto encoding = [&](float x) {
      return convert(f, kBinary32, std::bit_cast<std::uint32_t>(x)).bits;
    };
    for (const Case& t : kCases) {
      CAPTURE(name_of(dtype), t.n, t.c, t.k);
      const Computed r = compute(*backend, t, dtype, [&] { return draw(random); });
      const auto differ = [&](const Values& found, std::int64_t columns, std::int64_t depth,
                              const auto& a, const auto& b, const auto& last) {
        std::size_t count = 0;
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(found.size()); ++i) {
          std::uint64_t sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) {
            sum =
                fused_multiply_add(f, encoding(a(i / columns, k)), encoding(b(i % columns, k)), sum)
                    .bits;
          }
          count += encoding(found[at(i)]) != last(sum, i);
        }
        return count;
      };
      const auto x = [&](std::int64_t i, std::int64_t j) { return r.x[at(i * t.c + j)]; };
      const auto w = [&](std::int64_t i, std::int64_t j) { return r.w[at(i * t.c + j)]; };
      const auto dy = [&](std::int64_t i, std::int64_t j) { return r.dy[at(i * t.k + j)]; };
      const auto turned = [](const auto& m) {
        return [&m](std::int64_t i, std::int64_t j) { return m(j, i); };
      };
      const auto same = [](std::uint64_t sum, std::int64_t) { return sum; };
      CHECK(differ(r.y, t.k, t.c, x, w, [&](std::uint64_t sum, std::int64_t i) {
              return add(f, sum, encoding(r.b[at(i % t.k)])).bits;
            }) == 0);
      CHECK(differ(r.dx, t.c, t.k, dy, turned(w), same) == 0);
      CHECK(differ(r.dw, t.c, t.n, turned(dy), turned(x), same) == 0);
      CHECK(
          differ(r.added, t.c, t.n, turned(dy), turned(x), [&](std::uint64_t sum, std::int64_t i) {
            return add(f, sum, encoding(r.before[at(i)])).bits;
          }) == 0);
    }
  }
}

TEST_CASE("sim: dense layers with a Tensor Core's sums are one chain each, k ascending") {
  for (const sim_test::CoreCase& core : sim_test::kCores) {
    for (const Case& t : kCases) {
      for (int kind = 0; kind < 3; ++kind) {
        CAPTURE(core.accumulate, name_of(core.dtype), t.n, t.c, t.k, kind);
        const auto backend = backend::make_cpu_backend(*backend::find_accumulation(core.accumulate),
                                                       kind == 1 ? 1 : 2);
        // In 1 the weights are signs, and y and dx show the order; in 2 the inputs are, and dw
        // does.
        const std::int64_t first = kind == 1 ? t.n * t.c : 0;
        const std::int64_t last = kind == 0 ? 0 : t.n * t.c + (kind == 1 ? t.k * t.c : 0);
        const Computed r = compute(
            *backend, t, core.dtype,
            [&, i = std::int64_t{0}, sign = sim_test::signs(9),
             draw = kind == 0 ? sim_test::many_binades(6) : sim_test::cancelling(8)]() mutable {
              const bool is_sign = i >= first && i < last;
              ++i;
              return is_sign ? sign() : draw();
            });
        sim_test::Chains y(core, r.y.size()), dx(core, r.dx.size()), dw(core, r.dw.size());
        for (std::int64_t n = 0; n < t.n; ++n) {
          for (std::int64_t k = 0; k < t.k; ++k) {
            for (std::int64_t c = 0; c < t.c; ++c) {
              const float a = r.x[at(n * t.c + c)], b = r.w[at(k * t.c + c)];
              const float up = r.dy[at(n * t.k + k)];
              y.add(n * t.k + k, a, b);
              dx.add(n * t.c + c, up, b);
              dw.add(k * t.c + c, up, a);
            }
          }
        }
        CHECK(y.differ(r.y, [&](std::size_t i) { return r.b[i % at(t.k)]; }) == 0);
        CHECK(dx.differ(r.dx) == 0);
        CHECK(dw.differ(r.dw) == 0);
        CHECK(dw.differ(r.added, [&](std::size_t i) { return r.before[i]; }) == 0);
      }
    }
  }
}

TEST_CASE("sim: a Tensor Core refuses operands that it does not take") {
  const auto backend =
      backend::make_cpu_backend(*backend::find_accumulation("tensor-core:volta"), 1);
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const auto make = [&](const backend::Shape& shape) { return backend->make(shape, dtype); };
    backend::Tensor y = make({2, 4});
    CHECK_THROWS_AS(backend->dense_forward(make({2, 3}), make({4, 3}), {}, y),
                    std::invalid_argument);
  }
  CHECK(!backend::find_accumulation("tensor-core:pascal"));
  CHECK(!backend::find_accumulation("tensor-core"));
}

TEST_CASE("sim: dense layers have the same bits on any number of threads") {
  const tbb::global_control more_than_cores(tbb::global_control::max_allowed_parallelism, 4);
  constexpr Case kLarge = {300, 300, 200};
  for (const backend::Accumulation accumulation :
       {backend::Accumulation::fp32, backend::Accumulation::fp16}) {
    const auto run = [&](int threads) {
      std::mt19937 random(3);
      std::normal_distribution<float> draw(0, 1);
      return compute(*backend::make_cpu_backend(accumulation, threads), kLarge, Dtype::f16,
                     [&] { return draw(random); });
    };
    const Computed one = run(1), two = run(2), three = run(3);
    for (const Computed* more : {&two, &three}) {
      CHECK(one.y == more->y);
      CHECK(one.dx == more->dx);
      CHECK(one.dw == more->dw);
      CHECK(one.db == more->db);
    }
  }
}

TEST_CASE("sim: dense layers refuse shapes that do not fit") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  const auto make = [&](const backend::Shape& shape) { return backend->make(shape, Dtype::f32); };
  backend::Tensor y = make({2, 4}), db = make({5});
  CHECK_THROWS_AS(backend->dense_forward(make({2, 3}), make({4, 4}), {}, y), std::invalid_argument);
  CHECK_THROWS_AS(backend->dense_forward(make({3, 3}), make({4, 3}), {}, y), std::invalid_argument);
  CHECK_THROWS_AS(backend->bias_gradient(y, db, false), std::invalid_argument);
}

}  // namespace
}  // namespace halfscope::sim::test_dense
