// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/lowest_scale.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace test_lowest_scale {

using namespace halfscope;
using namespace halfscope::analyzers;
using log::Role;

const underflow::Target kHalf;

double below(double x) { return std::nextafter(x, 0.0); }
double above(double x) { return std::nextafter(x, INFINITY); }

/// So many times each value; 0 is a zero.
using Values = std::vector<std::pair<double, std::uint64_t>>;

/// `count` values from `first` (0: zeros may be among them) to `last`.
Span between(double first, double last, std::uint64_t count) {
  const auto from = first == 0 ? std::nullopt : std::optional(magnitude_of(first));
  return {from, magnitude_of(last), false, count};
}

/// Values that carry `scale`, in [1, 2).
underflow::ScaledTable table_of(const Values& values, const std::vector<Span>& spans = {},
                                double scale = 1) {
  BinadeTable exact(cuts_for(kBinary16, 1.0, scale));
  for (const auto& [value, times] : values) {
    if (value == 0) exact.add_specials({times, 0, 0, 0, 0});
    if (value != 0) exact.add(magnitude_of(value), false, times);
  }
  underflow::ScaledTable scaled{scale, exact};
  for (const Span& span : spans) scaled.table.add(span);
  return scaled;
}

underflow::TensorFindings tensor_of(const std::vector<underflow::ScaledTable>& tables,
                                    const std::string& name = "g") {
  underflow::TensorFindings tensor;
  tensor.name = name;
  tensor.tables = tables;
  for (const underflow::ScaledTable& t : tables) {
    tensor.counts.zero += t.table.zero();
    tensor.counts.finite_nonzero += t.table.finite_nonzero();
  }
  return tensor;
}

std::optional<int> lowest(const underflow::TensorFindings& tensor, double share = 0,
                          underflow::Take take = underflow::Take::worst,
                          const underflow::Target& target = kHalf) {
  return underflow::lowest_log2({&tensor}, target, share, take);
}

TEST_CASE("The lowest scale is the first at which a value is no longer flushed", "[table]") {
  struct Row {
    const char* what;
    double value;
    std::optional<int> log2;
  };
  const Row row = GENERATE(values<Row>({
      {"2^-25 is a tie that goes to zero", 0x1p-25, 1},
      {"above it, the value rounds to 2^-24", above(0x1p-25), 0},
      {"2^-30 needs 2^-24: 2^-25 is the tie", 0x1p-30, 6},
      {"1.5 * 2^-25 is above the tie", 0x1.8p-30, 5},
      {"2^-24 is kept, and no smaller scale is tried", 1, -24},
      {"2^-1 is flushed at 2^-24", 0.5, -23},
      {"a binary32 subnormal needs more than 2^40", 0x1p-149, {}},
      {"2^-65 times 2^40 is the tie", 0x1p-65, {}},
      {"above it, 2^40 serves", above(0x1p-65), 40},
  }));
  CAPTURE(row.what);
  CHECK(lowest(tensor_of({table_of({{row.value, 1}})})) == row.log2);
}

TEST_CASE("A value is kept from half the format's least number on, or as flushing has it",
          "[table]") {
  struct Row {
    const char* what;
    Format format;
    Subnormals rule;
    double kept;  ///< the first magnitude at scale 1
  };
  const Row row = GENERATE(values<Row>({
      {"bfloat16: 2^-133 / 2", kBfloat16, Subnormals::keep, above(0x1p-134)},
      {"E4M3: 2^-9 / 2", kFloat8E4M3, Subnormals::keep, above(0x1p-10)},
      {"E5M2: 2^-16 / 2", kFloat8E5M2, Subnormals::keep, above(0x1p-17)},
      {"tiny before rounding", kBinary16, Subnormals::flush_before, 0x1p-14},
      {"rounds to 2^-14 among subnormals", kBinary16, Subnormals::flush_result, 0x1p-14 - 0x1p-25},
      {"rounds to 2^-14 in 11 bits", kBinary16, Subnormals::flush, 0x1p-14 - 0x1p-26},
  }));
  CAPTURE(row.what);
  underflow::Target target;
  target.format = row.format;
  target.subnormals = row.rule;
  const auto found = [&](double value) {
    return lowest(tensor_of({table_of({{8 * value, 1}})}), 0, underflow::Take::worst, target);
  };
  CHECK(found(row.kept) == -3);
  CHECK(found(below(row.kept)) == -2);
}

TEST_CASE("A tensor is within the target at exactly the share, and not one value above it") {
  const auto with_tiny = [](std::uint64_t tiny, std::uint64_t others, std::uint64_t zeros = 0) {
    return tensor_of({table_of({{1, others}, {0x1p-40, tiny}, {0, zeros}})});
  };
  CHECK(lowest(with_tiny(1, 1023), 0x1p-10) == -24);
  CHECK(lowest(with_tiny(2, 1022), 0x1p-10) == 16);
  CHECK(lowest(with_tiny(1, 1022), 0x1p-10) == 16);        // 1 of 1023
  CHECK(lowest(with_tiny(1, 1022, 9999), 0x1p-10) == 16);  // zeros are no part of it
  CHECK(lowest(with_tiny(1, 1023, 9999), 0x1p-10) == -24);
  CHECK(lowest(with_tiny(1, 1023), below(0x1p-10)) == 16);
  CHECK(lowest(with_tiny(5, 0), 1) == -24);     // all may be
  CHECK(lowest(with_tiny(0, 0, 7), 0) == -24);  // zeros alone: nothing is flushed
}

TEST_CASE("The lowest scale serves every tensor") {
  const underflow::TensorFindings large = tensor_of({table_of({{1, 1023}, {0x1p-60, 1}})});
  const underflow::TensorFindings small = tensor_of({table_of({{0x1p-30, 1}})});
  const underflow::TensorFindings smaller = tensor_of({table_of({{0x1p-33, 1}})});
  CHECK(underflow::lowest_log2({&large, &small, &smaller}, kHalf, 0x1p-10) == 9);
  CHECK(underflow::lowest_log2({&smaller, &small, &large}, kHalf, 0x1p-10) == 9);
  CHECK(underflow::lowest_log2({}, kHalf, 0) == -24);
  // 1 of 1024 and 1 of 1 are 2 of 1025 together: each tensor counts by itself.
  CHECK(underflow::lowest_log2({&large, &small}, kHalf, 0x1p-8) == 6);
}

TEST_CASE("Values that carry a scale count unscaled, and a tensor's tables together") {
  const underflow::ScaledTable plain = table_of({{0x1p-30, 1}});
  // 1.5 * 2^-33 over 1.5 is 2^-33, which is flushed at 2^8; one ulp more is not.
  const underflow::ScaledTable tie = table_of({{1.5 * 0x1p-33, 1}}, {}, 1.5);
  const underflow::ScaledTable over = table_of({{above(1.5 * 0x1p-33), 1}}, {}, 1.5);
  CHECK(lowest(tensor_of({tie})) == 9);
  CHECK(lowest(tensor_of({over})) == 8);
  CHECK(lowest(tensor_of({plain, tie})) == 9);
  CHECK(lowest(tensor_of({plain, tie}), 0.5) == 6);  // 1 of 2 may be flushed
}

/// What a bucket leaves open, and the lowest scale by each way to take it.
struct Bucket {
  const char* what;
  Values values;
  Span span;
  double share;
  std::optional<int> worst, zeros, best;
};

TEST_CASE("The lowest scale where only bounds are known: worst, as zeros, best", "[table]") {
  // No zeros: 2^-30 needs 2^6, and at 2^-4 2^-20 is 2^-24. Beside zero: values may be as small as
  // one likes, or zeros.
  const Span nonzero = between(0x1p-30, 0x1p-20, 4), with_zero = between(0, 0x1p-20, 4);
  const Bucket row = GENERATE_COPY(values<Bucket>({
      {"a bucket without zeros", {{1, 4}}, nonzero, 0, 6, 6, -4},
      {"half of 8 may be flushed", {{1, 4}}, nonzero, 0.5, -24, -24, -24},
      {"less than half may", {{1, 4}}, nonzero, below(0.5), 6, 6, -4},
      {"with zeros: a quarter of 16 perhaps", {{1, 12}}, with_zero, 0.25, -24, -24, -24},
      {"a little less", {{1, 12}}, with_zero, below(0.25), {}, -24, -24},
      {"exact zeros are no part of 16", {{1, 12}, {0, 99}}, with_zero, below(0.25), {}, -24, -24},
      {"and a small one: 5, 1 of 4, 1 of 8", {{1, 3}, {0x1p-40, 1}}, with_zero, 0.25, {}, -24, -24},
      {"a little less", {{1, 3}, {0x1p-40, 1}}, with_zero, below(0.25), {}, 16, -24},
      {"less than an eighth", {{1, 3}, {0x1p-40, 1}}, with_zero, below(0.125), {}, 16, 16},
  }));
  CAPTURE(row.what, row.share);
  const underflow::TensorFindings tensor = tensor_of({table_of(row.values, {row.span})});
  CHECK(lowest(tensor, row.share) == row.worst);
  CHECK(lowest(tensor, row.share, underflow::Take::zeros) == row.zeros);
  CHECK(lowest(tensor, row.share, underflow::Take::best) == row.best);
}

TEST_CASE("What is flushed is open where a bucket hides it, or zeros are not sure") {
  underflow::TensorFindings tensor = tensor_of({table_of({{1, 4}, {0, 3}})});
  CHECK_FALSE(underflow::is_bounded(tensor));
  tensor.hidden_by_buckets = true;
  CHECK(underflow::is_bounded(tensor));
  CHECK(underflow::is_bounded(tensor_of({table_of({{1, 4}}, {between(0, 0x1p-30, 1)})})));
  CHECK_FALSE(underflow::is_bounded(tensor_of({table_of({{1, 4}}, {between(0x1p-30, 1, 1)})})));
}

TEST_CASE("Tensors are named of which more than the share is flushed for sure") {
  using Names = std::vector<std::string>;
  const underflow::TensorFindings small = tensor_of({table_of({{0x1p-30, 1}, {1, 3}})}, "small");
  const underflow::TensorFindings one = tensor_of({table_of({{1, 4}})}, "one");
  const underflow::TensorFindings tiny = tensor_of({table_of({{0x1p-40, 4}})}, "tiny");
  const auto named = [&](int k, double share) {
    return underflow::names_above_target({&tiny, &one, &small}, kHalf, k, share);
  };
  CHECK(named(5, 0) == Names{"tiny", "small"});  // in the order given
  CHECK(named(6, 0) == Names{"tiny"});
  CHECK(named(5, 0.25) == Names{"tiny"});
  CHECK(named(5, below(0.25)) == Names{"tiny", "small"});
  CHECK(named(-25, 0) == Names{"tiny", "one", "small"});  // any scale: 2^-25 is the tie
}

TEST_CASE("Of bounds a tensor is named by the zeros, or where buckets hide it by the least") {
  const auto named = [](const Values& values, const Span& span, double share, bool hidden) {
    underflow::TensorFindings tensor = tensor_of({table_of(values, {span})});
    tensor.hidden_by_buckets = hidden;
    return !underflow::names_above_target({&tensor}, kHalf, 0, share).empty();
  };
  const Span nonzero = between(0x1p-30, 0x1p-20, 4), with_zero = between(0, 0x1p-30, 4);
  CHECK(named({{1, 4}}, nonzero, below(0.5), false));
  CHECK_FALSE(named({{1, 4}}, nonzero, 0.5, false));
  CHECK_FALSE(named({{1, 4}}, nonzero, 0, true));  // all four may be kept
  CHECK_FALSE(named({{1, 4}}, with_zero, 0, false));
  CHECK(named({{1, 3}, {0x1p-40, 1}}, with_zero, below(0.125), true));
}

TEST_CASE("Of gradients' smallest magnitudes the lowest scale keeps all", "[table]") {
  const auto lowest_of = [](const std::vector<frames::StepPeak>& peaks, Format format = kBinary16) {
    underflow::Analysis analysis;
    analysis.logs.resize(1);
    analysis.target.format = format;
    for (const frames::StepPeak& peak : peaks) analysis.logs[0].peaks.push_back(peak);
    return underflow::lowest_log2_of_peaks(analysis);
  };
  const auto of = [](std::optional<double> least, Role role = Role::weight_grad) {
    return frames::StepPeak{role, 0, 1e5, {}, "layer", {}, least};
  };
  const auto one = [&](double least) { return lowest_of({of(least)}); };
  CHECK(one(0x1p-25) == 1);
  CHECK(one(above(0x1p-25)) == 0);
  CHECK(one(0x1.8p-30) == 5);
  CHECK(one(0.5) == -23);
  CHECK(one(1) == -24);
  CHECK(one(65504) == -24);
  CHECK(one(above(0x1p-65)) == 40);
  CHECK(lowest_of({of(0x1p-134)}, kBfloat16) == 1);
  const frames::StepPeak small = of(0x1p-40, Role::activation_grad), large = of(1);
  CHECK(lowest_of({large, small}) == 16);
  CHECK(lowest_of({large, of(0x1p-60, Role::activation)}) == -24);  // no gradient
  frames::StepPeak over_all = of({}), zeros = of({});
  over_all.tensor.clear();  // its tensors tell by themselves
  zeros.max_abs = 0;
  CHECK(lowest_of({over_all, zeros, small}) == 16);
  CHECK_FALSE(lowest_of({}));
  for (const double unknown : {0.0, double{NAN}}) CHECK(!lowest_of({small, of(unknown)}));
  CHECK_FALSE(lowest_of({small, of({}), small}));
}

}  // namespace test_lowest_scale
