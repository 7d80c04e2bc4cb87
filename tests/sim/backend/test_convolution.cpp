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

namespace halfscope::sim::test_convolution {
namespace {

using Values = std::vector<float>;

/// A convolution's extents, and the loops that define it.
struct Case {
  backend::Convolution conv;
  std::int64_t n, h, w, c, k;

  std::int64_t p() const { return conv.out(h); }
  std::int64_t q() const { return conv.out(w); }
  backend::Shape x_shape() const { return {n, h, w, c}; }
  backend::Shape w_shape() const { return {k, conv.kernel, conv.kernel, c}; }
  backend::Shape y_shape() const { return {n, p(), q(), k}; }
};

constexpr Case kCases[] = {
    {{3, 1, 1}, 2, 6, 5, 3, 4},    {{3, 2, 1}, 2, 8, 8, 4, 5},   {{3, 2, 1}, 1, 7, 9, 2, 3},
    {{1, 1, 0}, 3, 4, 5, 6, 7},    {{1, 2, 0}, 2, 7, 6, 5, 3},   {{5, 1, 2}, 1, 9, 8, 1, 6},
    {{5, 1, 0}, 2, 8, 11, 1, 6},   {{5, 3, 2}, 1, 11, 7, 2, 2},  {{2, 2, 0}, 2, 5, 6, 3, 4},
    {{2, 3, 0}, 1, 9, 7, 2, 2},    {{3, 1, 2}, 1, 3, 2, 2, 3},   {{1, 1, 1}, 1, 3, 3, 2, 2},
    {{4, 2, 3}, 1, 5, 5, 1, 2},    {{3, 1, 1}, 1, 1, 1, 17, 33}, {{3, 1, 1}, 3, 32, 31, 16, 16},
    {{3, 2, 1}, 5, 32, 32, 16, 8}, {{3, 1, 1}, 9, 30, 31, 16, 5}};

Values drawn(const backend::Shape& shape, const std::function<float()>& draw) {
  Values values(static_cast<std::size_t>(backend::elements(shape)));
  for (float& x : values) x = draw();
  return values;
}

/// Calls visit(y index, x index or -1 outside, w index) in the order (n, p, q, k, r, s, c).
template <class Visit>
void forward_order(const Case& t, const Visit& visit) {
  const std::int64_t kernel = t.conv.kernel;
  for (std::int64_t i = 0; i < backend::elements(t.y_shape()); ++i) {
    const std::int64_t k = i % t.k, q = i / t.k % t.q(), p = i / t.k / t.q() % t.p();
    const std::int64_t n = i / t.k / t.q() / t.p();
    for (std::int64_t j = 0; j < kernel * kernel * t.c; ++j) {
      const std::int64_t c = j % t.c, s = j / t.c % kernel, r = j / t.c / kernel;
      const std::int64_t y = p * t.conv.stride + r - t.conv.padding;
      const std::int64_t x = q * t.conv.stride + s - t.conv.padding;
      const bool inside = y >= 0 && y < t.h && x >= 0 && x < t.w;
      visit(i, inside ? ((n * t.h + y) * t.w + x) * t.c + c : -1, k * kernel * kernel * t.c + j);
    }
  }
}

/// Calls visit(x index, y index or -1 outside, w index) so that y's pixels ascend for each x.
template <class Visit>
void data_gradient_order(const Case& t, const Visit& visit) {
  const std::int64_t kernel = t.conv.kernel, stride = t.conv.stride;
  for (std::int64_t i = 0; i < backend::elements(t.x_shape()); ++i) {
    const std::int64_t c = i % t.c, x = i / t.c % t.w, y = i / t.c / t.w % t.h;
    const std::int64_t n = i / t.c / t.w / t.h;
    for (std::int64_t j = kernel * kernel - 1; j >= 0; --j) {
      const std::int64_t down = y + t.conv.padding - j / kernel;
      const std::int64_t across = x + t.conv.padding - j % kernel;
      if (down % stride != 0 || across % stride != 0) continue;
      const std::int64_t p = down / stride, q = across / stride;
      const bool inside = p >= 0 && p < t.p() && q >= 0 && q < t.q();
      for (std::int64_t k = 0; k < t.k; ++k) {
        visit(i, inside ? ((n * t.p() + p) * t.q() + q) * t.k + k : -1,
              (k * kernel * kernel + j) * t.c + c);
      }
    }
  }
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
double read(const Values& v, std::int64_t i) { return i < 0 ? 0 : double{v[at(i)]}; }

struct Results {
  std::vector<double> y, dx, dw;  ///< y without bias
};

/// Exact where all partial sums are integers below 2^53.
Results naive(const Case& t, const Values& x, const Values& w, const Values& dy) {
  Results sums = {std::vector<double>(dy.size()), std::vector<double>(x.size()),
                  std::vector<double>(w.size())};
  forward_order(t, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
    sums.y[at(i)] += read(x, j) * read(w, l);
    sums.dw[at(l)] += read(x, j) * read(dy, i);
    if (j >= 0) sums.dx[at(j)] += read(dy, i) * read(w, l);
  });
  return sums;
}

/// To nearest, ties to even, of a precision; an integer within the format's range.
float rounded(double value, int precision) {
  if (value == 0) return 0;
  const double step = std::ldexp(1.0, std::ilogb(value) - precision + 1);
  return static_cast<float>(std::nearbyint(value / step) * step);
}

struct Inputs {
  Values x, w, b, dy, dw;

  Inputs(const Case& t, const std::function<float()>& draw)
      : x(drawn(t.x_shape(), draw)),
        w(drawn(t.w_shape(), draw)),
        b(drawn({t.k}, draw)),
        dy(drawn(t.y_shape(), draw)),
        dw(drawn(t.w_shape(), draw)) {}
};

/// All five operations by a backend.
struct Computed {
  Values x, w, b, dy, dw_before;  ///< as they were rounded
  Values y, y_bias, dx, dw, dw_added;
};

Computed compute(backend::Backend& backend, const Case& t, const Inputs& in, Dtype dtype) {
  const auto tensor = [&](const backend::Shape& shape, const Values& values) {
    backend::Tensor made = backend.make(shape, dtype);
    backend.set(made, values);
    return made;
  };
  const backend::Tensor x = tensor(t.x_shape(), in.x), w = tensor(t.w_shape(), in.w);
  const backend::Tensor b = tensor({t.k}, in.b), dy = tensor(t.y_shape(), in.dy);
  // What was there must not matter.
  backend::Tensor y = backend.make(t.y_shape(), dtype), dx = backend.make(t.x_shape(), dtype);
  backend::Tensor dw = backend.make(t.w_shape(), dtype), added = tensor(t.w_shape(), in.dw);
  for (backend::Tensor* to : {&y, &dx, &dw}) backend.fill(*to, std::nanf(""));
  Computed all = {backend.get(x),
                  backend.get(w),
                  backend.get(b),
                  backend.get(dy),
                  backend.get(added),
                  {},
                  {},
                  {},
                  {},
                  {}};
  backend.conv_forward(t.conv, x, w, {}, y);
  all.y = backend.get(y);
  backend.conv_forward(t.conv, x, w, b, y);
  all.y_bias = backend.get(y);
  backend.conv_data_gradient(t.conv, dy, w, dx);
  all.dx = backend.get(dx);
  backend.conv_weight_gradient(t.conv, x, dy, dw, false);
  all.dw = backend.get(dw);
  backend.conv_weight_gradient(t.conv, x, dy, added, true);
  all.dw_added = backend.get(added);
  return all;
}

void check_integers(backend::Backend& backend, const Case& t, Dtype dtype, int largest) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> draw(-largest, largest);
  const Inputs in(t, [&] { return static_cast<float>(draw(random)); });
  const Computed found = compute(backend, t, in, dtype);
  const Results wanted = naive(t, in.x, in.w, in.dy);
  const int precision = format_of(dtype).precision;
  const auto check = [&](const Values& values, const std::vector<double>& sums,
                         const std::function<float(std::size_t)>& more) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      wrong += values[i] != rounded(sums[i] + double{more(i)}, precision);
    }
    CHECK(wrong == 0);
  };
  const auto nothing = [](std::size_t) { return 0.0f; };
  CAPTURE(name_of(dtype), t.conv.kernel, t.conv.stride, t.conv.padding, t.h, t.w, t.c, t.k);
  check(found.y, wanted.y, nothing);
  check(found.y_bias, wanted.y, [&](std::size_t i) { return in.b[i % at(t.k)]; });
  check(found.dx, wanted.dx, nothing);
  check(found.dw, wanted.dw, nothing);
  check(found.dw_added, wanted.dw, [&](std::size_t i) { return in.dw[i]; });
}

TEST_CASE("sim: convolutions of integers are the naive loops', rounded once") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 2);
  for (const Case& t : kCases) {
    check_integers(*backend, t, Dtype::f32, 15);
    // Sums of up to 2^16, beyond 2^11 and 2^8, where binary16 and bfloat16 begin to round.
    check_integers(*backend, t, Dtype::f16, t.n * t.p() * t.q() > 1000 ? 5 : 15);
    check_integers(*backend, t, Dtype::bf16, 15);
  }
}

std::uint64_t encoding(Format f, float x) {
  return convert(f, kBinary32, std::bit_cast<std::uint32_t>(x)).bits;
}

/// Sums in sequence by the scalar emulator, as encodings.
struct Sequence {
  Format f;
  std::vector<std::uint64_t> sums;

  Sequence(Format format, std::size_t count) : f(format), sums(count) {}
  void add(std::int64_t to, float a, float b) {
    std::uint64_t& sum = sums[at(to)];
    sum = fused_multiply_add(f, encoding(f, a), encoding(f, b), sum).bits;
  }
  std::size_t differ(const Values& found) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) wrong += encoding(f, found[i]) != sums[i];
    return wrong + (found.size() == sums.size() ? 0 : 1);
  }
};

float value(const Values& v, std::int64_t i) { return i < 0 ? 0.0f : v[at(i)]; }

TEST_CASE("sim: convolutions with sums in 16 bits are the emulator's, in order") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp16, 2);
  std::mt19937 random(4);
  std::normal_distribution<float> draw(0, 1);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Format f = format_of(dtype);
    for (const Case& t : kCases) {
      if (t.n * t.h * t.w * t.c > 2000 && t.conv.stride == 1) continue;  // one large case will do
      const Inputs in(t, [&] { return draw(random); });
      const Computed found = compute(*backend, t, in, dtype);
      Sequence y(f, found.y.size()), dx(f, found.x.size()), dw(f, found.w.size());
      forward_order(t, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
        y.add(i, value(found.x, j), found.w[at(l)]);
        dw.add(l, found.dy[at(i)], value(found.x, j));
      });
      data_gradient_order(t, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
        dx.add(i, value(found.dy, j), found.w[at(l)]);
      });
      CAPTURE(name_of(dtype), t.conv.kernel, t.conv.stride, t.conv.padding, t.h, t.w, t.c, t.k);
      CHECK(y.differ(found.y) == 0);
      CHECK(dx.differ(found.dx) == 0);
      CHECK(dw.differ(found.dw) == 0);
      for (std::size_t i = 0; i < y.sums.size(); ++i) {
        y.sums[i] = add(f, y.sums[i], encoding(f, found.b[i % at(t.k)])).bits;
      }
      for (std::size_t i = 0; i < dw.sums.size(); ++i) {
        dw.sums[i] = add(f, dw.sums[i], encoding(f, found.dw_before[i])).bits;
      }
      CHECK(y.differ(found.y_bias) == 0);
      CHECK(dw.differ(found.dw_added) == 0);
    }
  }
}

TEST_CASE("sim: convolutions with a Tensor Core's sums are one chain each, in order") {
  for (const sim_test::CoreCase& core : sim_test::kCores) {
    for (const Case& t : kCases) {
      if (t.n * t.h * t.w * t.c > 2000 && t.conv.stride == 1) continue;  // one large case will do
      for (int kind = 0; kind < 3; ++kind) {
        Inputs in(t, kind == 0 ? sim_test::many_binades(7) : sim_test::cancelling(8));
        if (kind == 1) in.w = drawn(t.w_shape(), sim_test::signs(9));  // y and dx show the order
        if (kind == 2) in.x = drawn(t.x_shape(), sim_test::signs(9));  // dw
        const int threads = kind == 1 ? 1 : 2;
        const auto backend =
            backend::make_cpu_backend(*backend::find_accumulation(core.accumulate), threads);
        const Computed found = compute(*backend, t, in, core.dtype);
        using sim_test::Chains;
        Chains y(core, found.y.size()), dx(core, found.x.size()), dw(core, found.w.size());
        forward_order(t, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
          y.add(i, value(found.x, j), found.w[at(l)]);
          dw.add(l, found.dy[at(i)], value(found.x, j));
        });
        data_gradient_order(t, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
          dx.add(i, value(found.dy, j), found.w[at(l)]);
        });
        CAPTURE(core.accumulate, name_of(core.dtype), kind);
        CAPTURE(t.conv.kernel, t.conv.stride, t.conv.padding, t.h, t.w, t.c, t.k);
        CHECK(y.differ(found.y) == 0);
        CHECK(y.differ(found.y_bias, [&](std::size_t i) { return found.b[i % at(t.k)]; }) == 0);
        CHECK(dx.differ(found.dx) == 0);
        CHECK(dw.differ(found.dw) == 0);
        CHECK(dw.differ(found.dw_added, [&](std::size_t i) { return found.dw_before[i]; }) == 0);
      }
    }
  }
}

TEST_CASE("sim: convolutions have the same bits on any number of threads") {
  const tbb::global_control more_than_cores(tbb::global_control::max_allowed_parallelism, 4);
  constexpr Case kLarge[] = {{{3, 1, 1}, 9, 16, 17, 16, 24}, {{3, 2, 1}, 20, 17, 16, 8, 16}};
  std::mt19937 random(5);
  std::normal_distribution<float> draw(0, 1);
  for (const Case& t : kLarge) {
    const Inputs in(t, [&] { return draw(random); });
    for (const backend::Accumulation accumulation :
         {backend::Accumulation::fp32, backend::Accumulation::fp16}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f16}) {
        const Computed one = compute(*backend::make_cpu_backend(accumulation, 1), t, in, dtype);
        for (const int threads : {2, 3}) {
          const Computed more =
              compute(*backend::make_cpu_backend(accumulation, threads), t, in, dtype);
          CHECK(one.y_bias == more.y_bias);
          CHECK(one.dx == more.dx);
          CHECK(one.dw == more.dw);
          CHECK(one.dw_added == more.dw_added);
        }
      }
    }
  }
}

TEST_CASE("sim: a convolution refuses shapes that do not fit") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  const auto make = [&](const backend::Shape& shape) { return backend->make(shape, Dtype::f32); };
  const backend::Convolution conv = {3, 1, 1};
  backend::Tensor y = make({1, 4, 4, 2}), dw = make({2, 3, 3, 3});
  const backend::Tensor x = make({1, 4, 4, 3}), w = make({2, 3, 3, 3});
  CHECK_NOTHROW(backend->conv_forward(conv, x, w, make({2}), y));
  CHECK_THROWS_AS(backend->conv_forward(conv, x, w, make({3}), y), std::invalid_argument);
  CHECK_THROWS_AS(backend->conv_forward({3, 2, 1}, x, w, {}, y), std::invalid_argument);
  CHECK_THROWS_AS(backend->conv_forward(conv, x, make({2, 3, 3, 4}), {}, y), std::invalid_argument);
  CHECK_THROWS_AS(backend->conv_forward({0, 1, 1}, x, w, {}, y), std::invalid_argument);
  CHECK_THROWS_AS(backend->conv_weight_gradient(conv, make({2, 4, 4, 3}), y, dw, false),
                  std::invalid_argument);
  CHECK_THROWS_AS(
      backend->conv_forward(conv, backend::Tensor{{1, 4, 4, 3}, Dtype::f32, nullptr}, w, {}, y),
      std::invalid_argument);
}

}  // namespace
}  // namespace halfscope::sim::test_convolution
