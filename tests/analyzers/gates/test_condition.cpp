// SPDX-License-Identifier: Apache-2.0
#include "analyzers/gates/condition.hpp"

#include <stdexcept>

#include "catch.hpp"

namespace test_condition {

using namespace halfscope;
using namespace halfscope::analyzers;

gates::Verdict judge(const char* text, const gates::Measured& value,
                     gates::Subject subject = gates::Subject::tensor) {
  return gates::test(gates::parse_condition(text, subject), value);
}

/// 10 values: 2 zero, 1 NaN, 1 infinite, 6 finite and nonzero, of which 1 to 3 become zero.
underflow::TensorFindings sample() {
  underflow::TensorFindings t;
  t.name = "weight_grad/conv1/weight";
  t.role = log::Role::weight_grad;
  t.counts = {10, 2, 1, 1, 6, {{1, 3}, 2, {1, 3}, 0}};
  t.max_abs = 0.1;
  return t;
}

TEST_CASE("shares and counts are compared with the decimal as written", "[table]") {
  struct Row {
    const char* condition;
    gates::Measured value;
    gates::Verdict wanted;
  };
  constexpr gates::Verdict kNo = gates::Verdict::fails, kYes = gates::Verdict::holds,
                           kOpen = gates::Verdict::undecided;
  constexpr std::uint64_t kBig = 0xFFFFFFFFFFFFFFFF;
  const Row row = GENERATE(values<Row>({
      {"flushed_to_zero > 0.1%", underflow::Share{1, 1000}, kNo},
      {"flushed_to_zero >= 0.1%", underflow::Share{1, 1000}, kYes},
      {"flushed_to_zero == 0.1%", underflow::Share{1, 1000}, kYes},
      {"flushed_to_zero > 0.1%", underflow::Share{1001, 1000000}, kYes},
      {"flushed_to_zero > 0.1%", underflow::Share{999, 1000000}, kNo},
      {"flushed_to_zero == 33.333333333333333333333%", underflow::Share{1, 3}, kNo},
      {"flushed_to_zero < 100%", underflow::Share{kBig - 1, kBig}, kYes},
      {"total == 18446744073709551615", Interval(kBig), kYes},
      {"total < 18446744073709551615", Interval(kBig - 1), kYes},
      {"total > 9007199254740992", Interval(9007199254740993), kYes},
      {"nan > 0", Interval(0), kNo},
      {"nan != 0", Interval(1), kYes},
      {"nan > -1", Interval(0), kYes},
      {"nan <= 010", Interval(9), kYes},
      {"nan < 1e3", Interval(999), kYes},
      {"nan < 1e3", Interval(1000), kNo},
      {"nan > .5", Interval(1), kYes},
      {"nan < 2^-1", Interval(1), kNo},
      {"nan == 2^10", Interval(1024), kYes},
      {"overflow > 5", Interval(5, 6), kOpen},
      {"overflow > 4", Interval(5, 6), kYes},
      {"overflow > 6", Interval(5, 6), kNo},
      {"overflow == 6", Interval(5, 7), kOpen},
      {"overflow != 6", Interval(5, 7), kOpen},
      {"overflow == 5", Interval(5, 7), kOpen},
      {"overflow == 8", Interval(5, 7), kNo},
      {"overflow != 8", Interval(5, 7), kYes},
      {"overflow < 5.5", Interval(5, 6), kOpen},
      {"overflow > 10%", underflow::Share{{1, 2}, 10}, kOpen},
      {"overflow >= 10%", underflow::Share{{1, 2}, 10}, kYes},
      {"underflow_share >= 2%", gates::ShareRange{0.0199995, 0.0200005}, kOpen},
      {"underflow_share > 1.9%", gates::ShareRange{0.0199995, 0.0200005}, kYes},
      {"underflow_share > 0.03", gates::ShareRange{0.0199995, 0.0200005}, kNo},
      {"underflow_share == 0.1%", gates::ShareRange{0.001, 0.001}, kYes},
      {"max_abs > 0.1", 0.1, kNo},
      {"max_abs == 0.1", 0.1, kYes},
      {"max_abs > 0.1", 0.10000000149011612, kYes},
  }));
  CAPTURE(row.condition);
  CHECK(judge(row.condition, row.value) == row.wanted);
}

TEST_CASE("the ends of a recommendation's share belong together", "[table]") {
  // 1 of 10, or with 10 perhaps flushed zeros 11 of 20; never 1 of 20.
  const gates::Measured share = underflow::Share{{1, 11}, {10, 20}};
  CHECK(judge("flushed_at_1 < 10%", share, gates::Subject::recommendation) ==
        gates::Verdict::fails);
  CHECK(judge("flushed_at_1 <= 0.55", share, gates::Subject::recommendation) ==
        gates::Verdict::holds);
  CHECK(judge("flushed_at_1 > 54.99%", share, gates::Subject::recommendation) ==
        gates::Verdict::undecided);
}

TEST_CASE("a percentage is of the finite nonzero values, for zero, nan and inf of all", "[table]") {
  const underflow::TensorFindings t = sample();
  const auto on = [&](const char* text) {
    const gates::Condition c = gates::parse_condition(text, gates::Subject::tensor);
    return gates::test(c, *gates::measure(c, t));
  };
  CHECK(on("zero == 20%") == gates::Verdict::holds);
  CHECK(on("nan == 10 %") == gates::Verdict::holds);
  CHECK(on("inf>9.99%") == gates::Verdict::holds);
  CHECK(on("subnormal > 33.4%") == gates::Verdict::fails);
  CHECK(on("subnormal > 33.3%") == gates::Verdict::holds);
  CHECK(on("flushed_to_zero > 20%") == gates::Verdict::undecided);
  CHECK(on("flushed_to_zero <= 50%") == gates::Verdict::holds);
  CHECK(on("total == 10") == gates::Verdict::holds);
  CHECK(on("normal < 4") == gates::Verdict::holds);
  CHECK(on("overflow == 0") == gates::Verdict::holds);
}

TEST_CASE("what FP8 lost is asked of the recipe that the run used") {
  formats::QuantisedTensor tensor;
  tensor.layer = "layers.1.fc1";
  tensor.tensor = "gradient";
  tensor.role = log::Role::activation_grad;
  tensor.judged = true;
  const auto parsed = [](const char* text) {
    return gates::parse_condition(text, gates::Subject::tensor);
  };
  const gates::Condition all = parsed("underflow_share > 2%");
  CHECK_FALSE(gates::measure(all, tensor));
  CHECK_FALSE(gates::measure(all, sample()));
  tensor.underflow.emplace().largest = {7, 0.25, 0.5};
  const auto value = gates::measure(all, tensor);
  REQUIRE(value);
  CHECK(std::get<gates::ShareRange>(*value).low == 0.25);
  CHECK(std::get<gates::ShareRange>(*value).high == 0.5);
  CHECK(gates::applies(all, tensor));
  CHECK(gates::applies(parsed("underflow_share > 2% for activation_grad"), tensor));
  CHECK(gates::applies(parsed("underflow_share > 2% for *_gradient"), tensor));
  CHECK_FALSE(gates::applies(parsed("underflow_share > 2% for weight"), tensor));
  tensor.judged = false;
  CHECK_FALSE(gates::applies(all, tensor));
}

TEST_CASE("what has no value is not measured", "[edge]") {
  const auto value = [](const char* text, const underflow::TensorFindings& t) {
    return gates::measure(gates::parse_condition(text, gates::Subject::tensor), t);
  };
  CHECK_FALSE(value("min_abs_nonzero > 0", sample()));
  underflow::TensorFindings zeros;
  zeros.counts.total = 3;
  zeros.counts.zero = 3;
  CHECK_FALSE(value("overflow > 0%", zeros));
  CHECK(value("overflow > 0", zeros));
  CHECK(value("zero > 0%", zeros));
  const auto lowest = gates::parse_condition("lowest > 2^10", gates::Subject::recommendation);
  CHECK_FALSE(gates::measure(lowest, recommend::Recommendation{}));
}

TEST_CASE("'for' takes a role, or a glob over names with or without the role", "[table]") {
  const auto meant = [](const char* text) {
    return gates::applies(gates::parse_condition(text, gates::Subject::tensor), sample());
  };
  CHECK(meant("nan > 0"));
  CHECK(meant("nan > 0 for weight_grad"));
  CHECK_FALSE(meant("nan > 0 for activation"));
  CHECK(meant("nan > 0% for conv1/*"));
  CHECK(meant("nan > 0 for  weight_grad/* "));
  CHECK_FALSE(meant("nan > 0 for conv2/*"));
}

TEST_CASE("conditions that mean nothing are refused", "[edge]") {
  const char* text = GENERATE("", "nan", "nan > ", "> 0", "nan => 1", "nan > 1 2", "nan > 0x10",
                              "nan > 1e999", "nan > 1 for ", "nans > 0", "max_abs > 1%",
                              "total > 1%", "static_scale > 1", "nan > inf", "nan > --1");
  CAPTURE(text);
  CHECK_THROWS_AS(gates::parse_condition(text, gates::Subject::tensor), std::invalid_argument);
}

TEST_CASE("a number beyond binary64 is refused by name, not taken as 0 or infinity", "[edge]") {
  const std::string number = GENERATE("1e-400", "1e-324", "1e400", "-1e999");
  CHECK_THROWS_WITH(gates::parse_condition("max_abs > " + number, gates::Subject::tensor),
                    Catch::Contains("number " + number) && Catch::Contains("4.94e-324"));
  CHECK_NOTHROW(gates::parse_condition("max_abs > 5e-324", gates::Subject::tensor));
  CHECK_NOTHROW(gates::parse_condition("max_abs > 0e-999", gates::Subject::tensor));
}

TEST_CASE("a recommendation has fields of its own and no tensors", "[edge]") {
  const auto parse = [](const char* text) {
    gates::parse_condition(text, gates::Subject::recommendation);
  };
  CHECK_NOTHROW(parse("static_scale < 1024"));
  recommend::Recommendation broken;  // counted even where no scale can be given
  broken.nonfinite_steps = {130, 131};
  const gates::Condition c =
      gates::parse_condition("nonfinite_steps > 1", gates::Subject::recommendation);
  CHECK(gates::test(c, *gates::measure(c, broken)) == gates::Verdict::holds);
  CHECK_THROWS_AS(parse("nan > 0"), std::invalid_argument);
  CHECK_THROWS_AS(parse("lowest > 4%"), std::invalid_argument);
  CHECK_THROWS_AS(parse("lowest > 4 for weight_grad"), std::invalid_argument);
}

TEST_CASE("a log's state is a word, and what never came about holds no condition") {
  using scale_history::RunState;
  const auto subject = GENERATE(gates::Subject::tensor, gates::Subject::recommendation);
  CHECK(judge("state == broken", RunState::broken, subject) == gates::Verdict::holds);
  CHECK(judge("state != normal", RunState::normal, subject) == gates::Verdict::fails);
  CHECK(judge("skipped_share > 5%", underflow::Share{{4, 6}, 100}, subject) ==
        gates::Verdict::undecided);
  scale_history::TimelineFacts facts;
  const auto condition = gates::parse_condition("collapsed_since >= 0", subject);
  CHECK(gates::test(condition, *gates::measure(condition, facts)) == gates::Verdict::fails);
  CHECK_FALSE(gates::measure(gates::parse_condition("last_scale < 2", subject), facts));
  for (const char* const wrong :
       {"state > broken", "state == 1", "state == lost", "skipped > few", "last_scale > 5%",
        "skipped > 3 for weight", "state == broken for weight"}) {
    CHECK_THROWS_AS(gates::parse_condition(wrong, subject), std::invalid_argument);
  }
  CHECK_THROWS_AS(gates::parse_condition("state == normal", gates::Subject::comparison),
                  std::invalid_argument);
}

}  // namespace test_condition
