// SPDX-License-Identifier: Apache-2.0
#include "analyzers/compare/compare.hpp"

#include <cmath>

#include "analyzers/compared.hpp"
#include "catch.hpp"

namespace test_compare {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

TEST_CASE("compare: what FP16 made of every element, exactly") {
  const TempFolder folder;
  Values values = kValues;
  values.insert(values.end(), {0.1f, 0.3f, 0.7f});  // of many bits: what is rounded looks like FP16
  const auto a = write_file(folder, "a.safetensors", {{"weight_grad/w", values}});
  const auto b =
      write_file(folder, "b.safetensors", {{"weight_grad/w", through_fp16(values, 1.0)}});
  const compare::Comparison c = compared(a, b);
  REQUIRE(c.tensors.size() == 1);
  const compare::ComparedTensor& t = c.tensors[0];
  // 2^-25 (twice), 2^-26 and 2^-30 become zero; 1.5 * 2^-25 becomes 2^-24.
  CHECK(t.counts.a.zero == 2);
  CHECK(t.counts.b.zero == 6);
  CHECK(t.counts.a.classes.flushed_to_zero == Interval(4));
  CHECK(t.counts.b.classes.flushed_to_zero == Interval(0));
  CHECK(t.zero_difference == 4);
  CHECK(t.new_zeros == Interval(4));  // the counts alone tell 4 to 6
  REQUIRE(t.elements);
  CHECK(t.elements->elements == 15);
  CHECK(t.elements->became_zero == 4);
  CHECK(t.elements->became_nonzero == 0);
  CHECK(t.elements->became_infinite == 1);
  CHECK(t.elements->became_nan == 0);
  CHECK(t.elements->equal == 5);  // 1, -2^-20, 0, -0, 2^-14
  CHECK(t.elements->became_finite == 0);
  CHECK(t.elements->largest_relative_error == 1.0);  // of those that became zero
  CHECK(t.elements->largest_ulps == 0.5);            // ties at 2^-25
  CHECK(t.elements->exact);
  // Both are zero or become zero: FP16 loses nothing twice.
  CHECK(c.underflow == compare::Change::same);
  CHECK(c.zero_difference == 4);
}

TEST_CASE("compare: subnormals are those of the format a run computed in") {
  const TempFolder folder;
  // Three values that need more bits than bfloat16 has: what is rounded to FP16 is suspected of it.
  const Values values = {0x1.ffcp-3f, 0x1p-20f, 0x1p-24f, 0x1p-14f, 0x1.998p-4f, 0x1.334p-2f};
  const auto a = write_file(
      folder, "a.safetensors",
      {{"weight_grad/w", {0.1f, 0x1p-20f, 0x1.8p-25f, 0x1p-14f, 0x1.998p-4f, 0x1.334p-2f}}});
  const auto b = write_file(folder, "b.safetensors", {{"weight_grad/w", values}});
  const compare::Comparison c = compared(a, b);
  REQUIRE(c.tensors[0].elements);
  CHECK(c.tensors[0].elements->became_subnormal == 2);
  CHECK(compared(b, b).tensors[0].elements->became_subnormal == 0);
}

TEST_CASE("compare: a loss scale keeps what one without loses") {
  const TempFolder folder;
  Run before(folder / "before"), after(folder / "after");
  for (const std::int64_t step : {0, 10}) {
    before.step(step, kValues, 1.0, 2.0);
    after.step(step, kValues, 1024.0, step == 10 ? 1.5 : 2.0, step == 10);
  }
  after.step(20, kValues, 1024.0, 1.0);
  const compare::Comparison c = compared(before.folder, after.folder, own_scale());
  REQUIRE(c.tensors.size() == 1);
  CHECK(c.tensors[0].steps == std::vector<std::int64_t>{0, 10});
  CHECK(c.tensors[0].left_out.a.empty());
  CHECK(c.tensors[0].left_out.b == std::vector<std::int64_t>{20});
  CHECK(c.runs.a.gradients.classes.flushed_to_zero == Interval(8));
  CHECK(c.runs.b.gradients.classes.flushed_to_zero == Interval(0));
  CHECK(c.runs.a.gradients.classes.overflow == Interval(2));
  CHECK(c.runs.b.gradients.classes.overflow == Interval(2));
  CHECK(c.runs.a.loss_scales == std::pair(1.0, 1.0));
  CHECK(c.runs.b.loss_scales == std::pair(1024.0, 1024.0));
  CHECK(c.underflow == compare::Change::less);
  CHECK(c.overflow == compare::Change::same);
  CHECK(c.runs.b.skipped == std::vector<std::int64_t>{10});
  REQUIRE(c.last_loss);
  CHECK(c.last_loss->step == 10);
  CHECK(c.last_loss->a == 2.0);
  CHECK(c.last_loss->b == 1.5);
  // Asked for one scale, both are counted at it.
  CHECK(compared(before.folder, after.folder).underflow == compare::Change::same);
  CHECK(compared(after.folder, before.folder, own_scale()).underflow == compare::Change::more);
}

TEST_CASE("compare: where the losses and the loss scales of runs part") {
  const TempFolder folder;
  Run a(folder / "a"), b(folder / "b"), other(folder / "other");
  const double of_b[] = {2.0, 1.5, 1.514, 1.0, 2.03};
  const double of_a[] = {2.0, 1.5, 1.5, 1.0, 2.0};
  for (const std::int64_t step : {0, 1, 2, 3, 4}) {
    a.step(step, kValues, 1024, of_a[step]);
    b.step(step, kValues, step < 3 ? 1024 : 512, of_b[step], step == 2);
    other.step(step, kValues, 1, step == 0 ? std::nan("") : of_a[step]);
  }
  const compare::Comparison c = compared(a.folder, b.folder, own_scale());
  CHECK(c.parting.losses == 5);
  CHECK(c.parting.same_until == 1);
  CHECK(c.parting.first_other == 2);
  CHECK(c.parting.first_far == 4);
  CHECK(!c.parting.far_at_first);
  CHECK(c.parting.first_other_scale == 3);
  CHECK(!c.parting.other_scale_at_first);
  CHECK(c.runs.b.scales.size() == 5);
  CHECK(c.runs.b.scales[3] == std::pair<std::int64_t, double>(3, 512));
  const compare::FirstDifferences none = compared(a.folder, a.folder).parting;
  CHECK(none.same_until == 4);
  CHECK(!none.first_other);
  CHECK(!none.first_far);
  CHECK(!none.first_other_scale);
  const compare::FirstDifferences broken = compared(a.folder, other.folder).parting;
  CHECK(!broken.same_until);
  CHECK(broken.first_other == 0);
  CHECK(broken.first_far == 0);
  CHECK(broken.far_at_first);
  CHECK(broken.other_scale_at_first);
  CHECK(compared(other.folder, other.folder).parting.same_until == 4);  // NaN with NaN
}

TEST_CASE("compare: shifts of the magnitudes") {
  const TempFolder folder;
  const auto a = write_file(folder, "a.safetensors", {{"weight_grad/w", {1, 2, 4, 8, 0}}});
  const auto b = write_file(folder, "b.safetensors", {{"weight_grad/w", {4, 8, 64, 128, 0}}});
  const compare::ComparedTensor t = compared(a, b).tensors[0];
  CHECK(t.max_abs_shift == 4.0);
  CHECK(t.median_shift == 2);                                       // lower medians 2 and 8
  CHECK(t.largest_share_difference == Approx(0.4).epsilon(1e-15));  // below 4: 3 of 5 and 1 of 5
}

TEST_CASE("compare: worst first, and what only one run has") {
  const TempFolder folder;
  const float inf = std::numeric_limits<float>::infinity();
  const auto a = write_file(folder, "a.safetensors",
                            {{"weight_grad/same", {1, 1}},
                             {"weight_grad/zeros", {1, 1}},
                             {"weight_grad/inf", {1, 1}},
                             {"weight_grad/gone", {1}}});
  const auto b = write_file(folder, "b.safetensors",
                            {{"weight_grad/same", {1, 1}},
                             {"weight_grad/zeros", {0, 0}},
                             {"weight_grad/inf", {1, inf}},
                             {"activation/new", {1}}});
  const compare::Comparison c = compared(a, b);
  REQUIRE(c.tensors.size() == 3);
  CHECK(c.tensors[0].name == "weight_grad/inf");
  CHECK(c.tensors[1].name == "weight_grad/zeros");
  CHECK(c.tensors[2].name == "weight_grad/same");
  CHECK(c.only.a == std::vector<std::string>{"weight_grad/gone"});
  CHECK(c.only.b == std::vector<std::string>{"activation/new"});
  CHECK(c.overflow == compare::Change::more);
}

TEST_CASE("compare: names meet by the roles the user gives") {
  const TempFolder folder;
  const auto a = write_file(folder, "a.safetensors", {{"weight_grad/w", {1, 1}}});
  const auto b = write_file(folder, "b.safetensors", {{"w", {1, 0}}});
  CHECK(compared(a, b).tensors[0].name == "weight_grad/w");
}

TEST_CASE("compare: runs that do not meet are refused with names, steps and a way out") {
  const TempFolder folder;
  const auto a = write_file(folder, "a.safetensors", {{"weight_grad/w", {1}}});
  const auto b = write_file(folder, "b.safetensors", {{"weight_grad/v\x1b", {1}}});
  const std::string names = message_of([&] { compared(a, b); });
  CHECK_THAT(names, Catch::Contains("'weight_grad/w'") && Catch::Contains("'weight_grad/v\\x1B'") &&
                        Catch::Contains("--role"));
  Run early(folder / "early"), late(folder / "late");
  early.step(1, {1}, 1, 1);
  late.step(2, {1}, 1, 1);
  const std::string steps = message_of([&] { compared(early.folder, late.folder); });
  CHECK_THAT(steps, Catch::Contains("no step in common") &&
                        Catch::Contains("the first has steps 1, the second 2"));
}

TEST_CASE("compare: whole tensors of two runs meet step by step, scaled or not") {
  const TempFolder folder;
  log::Manifest scaled;
  scaled.gradients = log::ScaleState::scaled;
  log::RunLogWriter a(folder / "a", {}), b(folder / "b", scaled);
  const Values grads = {1.0f, 0x1p-20f, 0x1p-26f};
  Values held;
  for (const float x : grads) held.push_back(x * 4096);
  a.write(record_of("weight_grad/w", 7, grads));
  a.write_sample(7, {{"weight_grad/w", {3}, view_of(grads)}});
  b.write(record_of("weight_grad/w", 7, held, 4096));
  b.write_sample(7, {{"weight_grad/w", {3}, view_of(held)}}, {{"scale", "4096"}});
  const compare::Comparison c = compared(folder / "a", folder / "b", own_scale());
  REQUIRE(c.tensors[0].elements);
  CHECK(c.tensors[0].elements->steps == std::vector<std::int64_t>{7});
  CHECK(c.tensors[0].elements->equal == 3);
  CHECK(c.runs.b.loss_scales == std::pair(4096.0, 4096.0));
  CHECK(c.runs.b.gradients.classes.flushed_to_zero == Interval(0));
  CHECK(c.runs.a.gradients.classes.flushed_to_zero == Interval(1));
}

TEST_CASE("compare: one large tensor is told of while it is read and compared") {
  const TempFolder folder;
  const std::size_t large = (std::size_t{1} << 24) + 5;
  Values values(large, 1.0f);
  values.back() = 0x1p-30f;
  const auto a = write_file(folder, "a.safetensors", {{"weight_grad/w", values}});
  values.front() = 0;
  const auto b = write_file(folder, "b.safetensors", {{"weight_grad/w", values}});
  std::vector<double> told;
  const frames::Progress hear = [&](std::uint64_t done, std::uint64_t all) {
    told.push_back(static_cast<double>(done) / static_cast<double>(all));
  };
  const auto heard_within = [&](double low, double high) {
    return std::count_if(told.begin(), told.end(), [&](double x) { return x > low && x < high; });
  };
  const underflow::Analysis of_a = underflow::analyze({a}, {}, {}, hear),
                            of_b = underflow::analyze({b}, {}, {});
  CHECK(heard_within(0.9, 0.9999999));  // the first 2^24 of the elements
  CHECK(of_a.logs[0].tensors[0].counts.total == large);
  CHECK(of_a.logs[0].tensors[0].counts.classes.flushed_to_zero == Interval(1));
  CHECK(of_a.logs[0].tensors[0].counts.classes.normal == Interval(large - 1));
  told.clear();
  compare::Comparison c = compare::compare(of_a, of_b, {});
  compare::add_elements(c, of_a.logs[0], of_b.logs[0], {}, hear);
  CHECK(heard_within(0.2, 0.3) == 1);
  CHECK(heard_within(0.7, 0.8) == 1);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(c.tensors[0].elements->elements == large);
  CHECK(c.tensors[0].elements->equal == large - 1);
  CHECK(c.tensors[0].elements->new_zeros == 1);
}

TEST_CASE("compare: folders of tensor files meet element by element, shard by shard") {
  const TempFolder folder;
  for (const char* run : {"a", "b"}) {
    std::filesystem::create_directory(folder / run);
    const Values first = {1, 0x1p-30f}, second = run[0] == 'a' ? first : Values{1, 0};
    for (const char* shard : {"step-3-x.safetensors", "step-3-y.safetensors"}) {
      log::write_safetensors(folder / run / shard, {{"w", {2}, view_of(second)}});
    }
  }
  const compare::Comparison c = compared(folder / "a", folder / "b");
  REQUIRE(c.tensors[0].elements);
  CHECK(c.tensors[0].elements->elements == 4);
  CHECK(c.tensors[0].elements->became_zero == 2);
  CHECK(c.tensors[0].elements->steps == std::vector<std::int64_t>{3});
  CHECK(c.tensors[0].new_zeros == Interval(2));
}

TEST_CASE("compare: what makes no real difference is said to be similar") {
  CHECK(compare::change_of(630, 10000, 629, 10000) == compare::Change::less);
  CHECK(compare::real_change_of(630, 10000, 629, 10000) == compare::Change::similar);
  CHECK(compare::real_change_of(629, 10000, 630, 10000) == compare::Change::similar);
  CHECK(compare::real_change_of(630, 10000, 620, 10000) ==
        compare::Change::less);  // 0.1 percentage points
  CHECK(compare::real_change_of(80, 100000, 89, 100000) ==
        compare::Change::more);  // over a tenth of 89
  CHECK(compare::real_change_of(81, 100000, 89, 100000) ==
        compare::Change::similar);  // less than one
  CHECK(compare::real_change_of(0, 1000000, 99, 1000000) ==
        compare::Change::similar);  // below 0.01 %
  CHECK(compare::real_change_of(0, 1000000, 100, 1000000) == compare::Change::more);
  CHECK(compare::real_change_of(630, 10000, Interval(628, 631), 10000) == compare::Change::similar);
  CHECK(compare::real_change_of(630, 10000, Interval(600, 631), 10000) == compare::Change::unknown);
  // Bounds that surely are apart by next to nothing, and by a real part.
  CHECK(compare::real_change_of(0, 100000, Interval(9, 20000), 100000) == compare::Change::unknown);
  CHECK(compare::real_change_of(0, 100000, Interval(11, 20000), 100000) == compare::Change::more);
  CHECK(compare::real_change_of(Interval(9, 20000), 100000, 0, 100000) == compare::Change::unknown);
  CHECK(compare::real_change_of(5, 10, 5, 10) == compare::Change::same);
  CHECK(compare::real_change_of(0, 0, 5, 10) == compare::Change::unknown);
}

TEST_CASE("compare: NaN and overflow of every role and step are told, common or not") {
  const TempFolder folder;
  log::RunLogWriter a(folder / "a", {}), b(folder / "b", {});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t step : {0, 10}) {
    a.write(record_of("weight_grad/w", step, {0.1f}));
    a.write(record_of("activation/x", step, {0.1f, 0.1f}));
    b.write(record_of("weight_grad/w", step, {0.1f}));
    b.write(record_of("activation/x", step, {0.1f, step == 0 ? 0.1f : 70000.0f}));
  }
  b.write(record_of("activation/x", 15, {nan, 70000.0f}));
  const compare::Comparison c = compared(folder / "a", folder / "b", own_scale());
  CHECK(c.overflow == compare::Change::same);  // of the gradients
  CHECK(c.not_finite == compare::Change::more);
  CHECK(c.tensors[0].name == "activation/x");
  CHECK(c.tensors[0].harmed);
  CHECK(!c.tensors[1].harmed);
  CHECK(!c.runs.a.non_finite);
  CHECK(!c.runs.a.overflow);
  REQUIRE(c.runs.b.overflow);
  CHECK(c.runs.b.overflow->values == Interval(2));
  CHECK(c.runs.b.overflow->first_step == 10);
  CHECK(c.runs.b.overflow->last_step == 15);
  REQUIRE(c.runs.b.non_finite);
  CHECK(c.runs.b.non_finite->first_step == 15);
  CHECK(c.runs.b.non_finite->most == "activation/x");
  CHECK(c.runs.b.non_finite->not_loss_scaled == 1);
}

}  // namespace test_compare
