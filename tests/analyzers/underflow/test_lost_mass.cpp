// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/lost_mass.hpp"

#include <cmath>
#include <random>

#include "analyzers/fit_judge.hpp"
#include "analyzers/formats/format_fit.hpp"
#include "analyzers/logs.hpp"
#include "analyzers/whole_steps.hpp"
#include "catch.hpp"

namespace test_lost_mass {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

Values gradients(std::size_t n, unsigned seed, double mean, double deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<double> log2(mean, deviation);
  Values values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<float>(std::exp2(log2(random))));
  return values;
}

/// By the oracle, value by value.
struct Mass {
  Rational lost1, lost2, all1, all2;

  void add(const Values& values, int k, bool flush = false) {
    for (const float x : values) {
      if (x == 0 || !std::isfinite(x)) continue;
      const Rational v = abs(exactly(static_cast<double>(x)));
      const auto c =
          oracle::class_of(oracle::layout("binary16"), Rational(v * oracle::power_of_two(k)));
      const bool lost = c == oracle::Class::zero || (flush && c == oracle::Class::subnormal);
      all1 += v;
      all2 += v * v;
      if (lost) lost1 += v, lost2 += v * v;
    }
  }
  double l1() const { return static_cast<double>(Rational(lost1 / all1)); }
  double l2() const { return static_cast<double>(Rational(lost2 / all2)); }
};

underflow::Analysis with_sums(const std::filesystem::path& log,
                              const frames::Selection& selection = {},
                              const underflow::Target& target = {}) {
  underflow::Analysis a = underflow::analyze({log}, target, selection);
  add_whole_steps(a, selection, {.sums = true});
  return a;
}

void check_holds(const MassShare& found, const Mass& wanted) {
  CHECK(found.l1.low <= wanted.l1());
  CHECK(found.l1.high >= wanted.l1());
  CHECK(found.l2.low <= wanted.l2());
  CHECK(found.l2.high >= wanted.l2());
}

TEST_CASE("lost mass is exact where whole tensors are in the log", "[oracle]") {
  const TempFolder folder;
  const Values values = gradients(2000, 1, -22, 5);
  const bool flush = GENERATE(false, true);
  const Subnormals rule = flush ? Subnormals::flush_result : Subnormals::keep;
  const underflow::Target target{"binary16", kBinary16, rule};
  const underflow::Analysis a =
      with_sums(write_tensors(folder, {{"weight_grad/w", values}}), {}, target);
  for (const int k : {-10, 0, 1, 3, 12, 40}) {
    Mass wanted;
    wanted.add(values, k, flush);
    const MassShare found = underflow::lost_mass(a.logs[0].tensors[0], target, k);
    CAPTURE(k, flush);
    CHECK(found.l1.low == found.l1.high);
    CHECK(found.l1.low == Approx(wanted.l1()).epsilon(1e-15));
    CHECK(found.l2.low == Approx(wanted.l2()).epsilon(1e-15));
  }
}

TEST_CASE("of many tensors exact sums add up to the same, and of equal losses the first is worst",
          "[table]") {
  const TempFolder folder;
  std::vector<std::pair<std::string, Values>> many;
  for (unsigned i = 0; i < 2000; ++i) {
    const bool lost = i % 700 == 650;  // all of the mass
    many.emplace_back("weight_grad/" + std::to_string(i),
                      lost ? Values{1e-9F, 2e-9F} : gradients(5, i, -20, 4));
  }
  const underflow::Analysis a = with_sums(write_tensors(folder, many));
  const auto counted = underflow::loss_scaled_tensors(a);
  REQUIRE(counted.size() == many.size());
  MagnitudeSums sum = underflow::sums_for(a.target);
  std::string worst;
  double most = -1;
  for (const underflow::TensorFindings* t : counted) {
    sum.merge((*t->sums)->unpacked());
    const double low = underflow::lost_mass(*t, a.target, 0).l2.low;
    if (low > most) most = low, worst = t->name;
  }
  CHECK(most == 1.0);
  const Magnitude kept = a.target.boundaries(1.0, 1.0).nonzero;
  CHECK(underflow::LostMass(counted, a.target).at(0) == sum.share_below(kept));
  const auto found = underflow::worst_loss(counted, a.target, 0);
  REQUIRE(found);
  CHECK(found->tensor == worst);
  CHECK(found->l2.low == most);
}

TEST_CASE("many tiny values, little mass: below 2^-27 did not matter, 2^-27 to 2^-24 did",
          "[oracle]") {
  // In the manner of Multibox SSD (Micikevicius et al. 2018): most values below what matters, some
  // that do in the three binades that FP16 just misses, few above.
  const TempFolder folder;
  const Values tiny = gradients(9000, 2, -37, 2);
  const Values near = gradients(800, 3, -25.7, 0.3);
  const Values large = gradients(200, 4, -24, 0.3);
  const underflow::Analysis a = with_sums(write_tensors(
      folder, {{"weight_grad/tiny", tiny}, {"weight_grad/near", near}, {"weight_grad/l", large}}));
  std::vector<const underflow::TensorFindings*> all;
  std::uint64_t flushed_at_1 = 0, flushed_at_3 = 0;
  for (const underflow::TensorFindings& t : a.logs[0].tensors) {
    all.push_back(&t);
    flushed_at_1 += t.classes_at({}, 0).flushed_to_zero.low;
    flushed_at_3 += t.classes_at({}, 3).flushed_to_zero.low;
  }
  const underflow::Target target;
  const MassShare at_1 = underflow::LostMass(all, target).at(0),
                  at_3 = underflow::LostMass(all, target).at(3);
  CHECK(flushed_at_1 > 9500);  // by count, 2^3 changes little
  CHECK(flushed_at_3 > 8900);
  CHECK(at_1.l1.low > 0.5);  // by mass, nearly all
  CHECK(at_3.l1.high < 0.01);
  CHECK(at_3.l2.high < 0.001);
  Mass wanted;
  for (const Values* values : {&tiny, &near, &large}) wanted.add(*values, 3);
  CHECK(at_3.l1.low == Approx(wanted.l1()).epsilon(1e-14));
  CHECK(at_3.l1.low == at_3.l1.high);
}

TEST_CASE("from tables alone lost mass has true bounds", "[oracle]") {
  const TempFolder folder;
  const double scale = GENERATE(1.0, 1024.0, 48.0);
  const Values values = gradients(3000, 5, -22, 4);
  Values recorded = values;
  for (float& x : recorded) x = static_cast<float>(x * scale);
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/w", 0, recorded, scale));
  }
  const underflow::Analysis a = with_sums(folder / "run");
  CHECK_FALSE(a.logs[0].tensors[0].sums->has_value());
  for (const int k : {-4, 0, 2, 8}) {
    Mass wanted;
    wanted.add(values, k);
    CAPTURE(k, scale);
    const MassShare found = underflow::lost_mass(a.logs[0].tensors[0], {}, k);
    check_holds(found, wanted);
    CHECK(found.l1.low > wanted.l1() / 3);  // bounds of use: segments are a binade at most
    CHECK(found.l1.high < 3 * wanted.l1());
  }
}

TEST_CASE("exact and bounded tensors together", "[oracle]") {
  const TempFolder folder;
  const Values a = gradients(1000, 6, -24, 3), b = gradients(1000, 7, -23, 3);
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/a", 0, a));
    writer.write(record_of("weight_grad/b", 0, b));
    writer.write_sample(0, {{"weight_grad/a", {1000}, halfscope::test::view_of(a)}});
  }
  const underflow::Analysis found = with_sums(folder / "run");
  CHECK(found.logs[0].tensors[0].sums->has_value());
  CHECK_FALSE(found.logs[0].tensors[1].sums->has_value());
  Mass wanted;
  wanted.add(a, 1);
  wanted.add(b, 1);
  check_holds(underflow::LostMass({&found.logs[0].tensors[0], &found.logs[0].tensors[1]}, {}).at(1),
              wanted);
}

TEST_CASE("zeros of FP16-computed values may have been up to 2^-25 over the scale", "[oracle]") {
  const TempFolder folder;
  const double scale = 1024;
  Values recorded = {0x1p-24f, 0x1p-20f, 1.0f};
  recorded.insert(recorded.end(), 500, 0.0f);
  {
    log::RunLogWriter writer(folder / "run", {});
    log::TensorRecord record = record_of("weight_grad/w", 0, recorded, scale);
    record.computed_dtype = Dtype::f16;
    writer.write(record);
    writer.write_sample(0, {{"weight_grad/w", {503}, halfscope::test::view_of(recorded)}},
                        {{"scale", "1024"}, {"gradients", "scaled"}});
  }
  const underflow::Analysis a = with_sums(folder / "run");
  const MassShare found = underflow::lost_mass(a.logs[0].tensors[0], {}, 10);
  CHECK(found.l1.low == 0);  // nothing that is there is lost at the scale it was computed at
  const double most = 500 * 0x1p-25, all = most + 0x1p-24 + 0x1p-20 + 1;
  CHECK(found.l1.high == Approx(most / all).epsilon(1e-6));
  // At a larger scale zeros could have been kept, or flushed only below 2^-25 over that.
  const MassShare at_12 = underflow::lost_mass(a.logs[0].tensors[0], {}, 12);
  CHECK(at_12.l1.high == Approx(most / 4 / (most / 4 + 0x1p-24 + 0x1p-20 + 1)).epsilon(1e-6));
}

TEST_CASE("infinities of FP16-computed values may be any mass", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    log::TensorRecord record = record_of("weight_grad/w", 0, {0x1p-24f, INFINITY});
    record.computed_dtype = Dtype::f16;
    writer.write(record);
  }
  const underflow::Analysis a = with_sums(folder / "run");
  const MassShare found = underflow::lost_mass(a.logs[0].tensors[0], {}, -4);
  CHECK(found.l1.low == 0);
  CHECK(found.l1.high == Approx(0x1p-24 / 65520).epsilon(1e-6));
}

TEST_CASE("nothing has lost nothing", "[table]") {
  const TempFolder folder;
  const underflow::Analysis a =
      with_sums(write_tensors(folder, {{"weight_grad/z", {0.0f, -0.0f}}}));
  CHECK(underflow::lost_mass(a.logs[0].tensors[0], {}, 0) == MassShare{});
  CHECK(underflow::LostMass({}, {}).at(0) == MassShare{});
}

}  // namespace test_lost_mass
