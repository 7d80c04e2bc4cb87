// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/underflow.hpp"

#include <cmath>

#include "analyzers/logs.hpp"
#include "catch.hpp"
#include "halfscope/number/convert.hpp"

namespace test_underflow {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

/// Log-normal magnitudes around 2^-16, from a fixed linear congruential generator.
Values gradients(std::size_t n, std::uint32_t seed) {
  Values values(n);
  for (float& x : values) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      seed = seed * 1664525u + 1013904223u;
      sum += static_cast<double>(seed >> 8) / (1 << 24);
    }
    x = static_cast<float>((seed & 512) != 0 ? std::exp2(10 * sum - 36)
                                             : -std::exp2(10 * sum - 36));
  }
  return values;
}

/// Brute force: the class of every value, each times `factor` in exact binary64, rounded once.
underflow::Counts brute_force(const Values& values, double factor, Format f) {
  underflow::Counts c;
  std::uint64_t zero = 0, flushed = 0, subnormal = 0, normal = 0, overflow = 0;
  for (const float x : values) {
    ++c.total;
    if (x == 0) {
      ++zero;
      continue;
    }
    const std::uint64_t bits = from_double(f, double{x} * factor).bits & f.magnitude_mask();
    if (bits == 0)
      ++flushed;
    else if (bits >= f.infinity())
      ++overflow;
    else if ((bits >> f.fraction_bits()) == 0)
      ++subnormal;
    else
      ++normal;
  }
  c.zero = zero;
  c.classes = {flushed, subnormal, normal, overflow};
  return c;
}

void check_equal(const underflow::Counts& found, const underflow::Counts& wanted) {
  CHECK(found.total == wanted.total);
  CHECK(found.zero == wanted.zero);
  CHECK(found.classes == wanted.classes);
}

const underflow::TensorFindings& find(const underflow::Analysis& a, std::string_view name) {
  for (const underflow::TensorFindings& t : a.logs[0].tensors) {
    if (t.name == name) return t;
  }
  throw std::out_of_range(std::string(name));
}

underflow::Target target_of(std::string_view name) {
  return {find_format(name)->name, find_format(name)->format};
}

TEST_CASE("counts equal rounding every value, for every format and scale", "[oracle]") {
  const TempFolder folder;
  Values values = gradients(3000, 1);
  values.insert(values.end(), {0.0f, -0.0f, 0x1p-25f, 0x1.000002p-25f, 65519.0f, 65520.0f});
  const auto log = write_tensors(folder, {{"weight_grad/w", values}});
  const std::string format = GENERATE("binary16", "bfloat16", "tf32", "e4m3", "e5m2");
  const double scale = GENERATE(1.0, 0.25, 65536.0, 1000.0, 3.0, 0.1);
  const double recorded = GENERATE(1.0, 1024.0, 48.0);
  CAPTURE(format, scale, recorded);
  frames::Selection selection;
  selection.loss_scale = scale;
  selection.recorded_scale = recorded;
  const underflow::Analysis a = underflow::analyze({log}, target_of(format), selection);
  const underflow::TensorFindings& t = a.logs[0].tensors.at(0);
  // x * scale / recorded is no double in general: compare where the quotient is exact, and for the
  // others by cross-multiplication with boundaries in tests/table/test_boundary.cpp.
  const bool exact = recorded != 48.0 && scale != 0.1;
  if (exact)
    check_equal(t.counts, brute_force(values, scale / recorded, find_format(format)->format));
  CHECK(t.unscale_exact);
  CHECK(t.counts.classes.flushed_to_zero.exact());
  const underflow::Counts& c = t.counts;
  CHECK(c.classes.flushed_to_zero.low + c.classes.subnormal.low + c.classes.normal.low +
            c.classes.overflow.low + c.zero ==
        c.total);
}

TEST_CASE("every scale that is answered unasked equals asking for it", "[oracle]") {
  const TempFolder folder;
  const Values values = gradients(2000, 2);
  const auto log = write_tensors(folder, {{"weight_grad/w", values}});
  const std::vector<Classes> by_scale =
      underflow::analyze({log}, {}, {}).logs[0].tensors[0].by_scale({});
  for (int k = underflow::kFirstLog2Scale; k <= underflow::kLastLog2Scale; ++k) {
    CAPTURE(k);
    const underflow::Counts wanted = brute_force(values, std::ldexp(1.0, k), kBinary16);
    REQUIRE(by_scale[static_cast<std::size_t>(k - underflow::kFirstLog2Scale)] == wanted.classes);
  }
}

TEST_CASE("a flushing target loses its subnormals", "[table]") {
  const TempFolder folder;
  const auto log =
      write_tensors(folder, {{"weight_grad/w", {0x1p-24f, 0x1p-15f, 0x1.ffcp-15f, 1.0f}}});
  const auto classes = [&](Subnormals rule) {
    return underflow::analyze({log}, {"binary16", kBinary16, rule}, {})
        .logs[0]
        .tensors[0]
        .counts.classes;
  };
  CHECK(classes(Subnormals::keep) == Classes{0, 2, 2, 0});
  CHECK(classes(Subnormals::flush) == Classes{3, 0, 1, 0});
  CHECK(classes(Subnormals::flush_before) == Classes{3, 0, 1, 0});
  CHECK(classes(Subnormals::flush_result) == Classes{2, 0, 2, 0});  // 0x1.ffcp-15 rounds up
}

TEST_CASE("a flushing target flushes what the emulator flushes", "[oracle]") {
  const TempFolder folder;
  const std::string format = GENERATE("binary16", "bfloat16", "e4m3", "e5m2");
  const Subnormals rule =
      GENERATE(Subnormals::flush, Subnormals::flush_before, Subnormals::flush_result);
  const Format f = find_format(format)->format;
  Values values = gradients(2000, 7);
  const float normal = std::ldexp(1.0f, f.emin());
  for (int step = -70; step <= 70; ++step) {  // 2^emin, and by quarters of its ulp around it
    const float factor = 1 + static_cast<float>(step) * std::ldexp(1.0f, -f.precision - 2);
    if (factor <= 0) continue;
    values.push_back(normal * factor);
    values.push_back(std::nextafter(values.back(), 0.0f));
  }
  const auto log = write_tensors(folder, {{"weight_grad/w", values}});
  CAPTURE(format, name_of(rule));
  std::uint64_t flushed = 0;
  for (const float x : values) {
    const std::uint64_t bits = from_double(f, double{x}, with_subnormals({}, rule)).bits;
    flushed += (bits & f.magnitude_mask()) == 0;
  }
  const Classes c =
      underflow::analyze({log}, {format, f, rule}, {}).logs[0].tensors[0].counts.classes;
  CHECK(c.flushed_to_zero.low <= flushed);
  CHECK(c.flushed_to_zero.high >= flushed);
  // E4M3's limit after rounding is no cut of the tables: there are bounds.
  const bool cut = format != "e4m3" || rule != Subnormals::flush;
  CHECK(c.flushed_to_zero.exact() == cut);
  CHECK(c.subnormal.low == 0);
}

TEST_CASE("steps carry their own scale, and add up unscaled", "[table]") {
  const TempFolder folder;
  const Values values = gradients(500, 3);
  Values scaled = values;
  for (float& x : scaled) x *= 256.0f;  // exact
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/w", 0, values));
    writer.write(record_of("weight_grad/w", 7, scaled, 256.0));
  }
  const underflow::Analysis a = underflow::analyze({folder / "run"}, {}, {});
  const underflow::TensorFindings& t = a.logs[0].tensors.at(0);
  REQUIRE(t.per_step.size() == 2);
  CHECK(t.per_step[0].counts.classes == t.per_step[1].counts.classes);
  CHECK(t.per_step[0].max_abs == t.per_step[1].max_abs);
  CHECK(t.counts.total == 1000);
  CHECK(t.unscale_exact);
}

TEST_CASE("a recorded scale that is no power of two gives intervals from tables", "[table]") {
  const TempFolder folder;
  const Values values = gradients(5000, 4);
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/w", 0, values, 1000.0));
  }
  const underflow::Analysis a = underflow::analyze({folder / "run"}, {}, {});
  const underflow::TensorFindings& t = a.logs[0].tensors.at(0);
  CHECK_FALSE(t.unscale_exact);
  std::uint64_t flushed = 0;
  for (const float x : values) flushed += std::abs(x) <= 1000 * 0x1p-25;  // exact in binary64
  CHECK(t.counts.classes.flushed_to_zero.low <= flushed);
  CHECK(t.counts.classes.flushed_to_zero.high >= flushed);
  std::uint64_t sure = 0, perhaps = 0;
  for (const underflow::BinadeCount& b : t.binades) {
    sure += b.count.low;
    perhaps += b.count.high;
  }
  CHECK(sure <= values.size());
  CHECK(perhaps >= values.size());
}

TEST_CASE("scaled without a scale is refused with the flag to give", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    log::TensorRecord record = record_of("weight_grad/w", 3, {1.0f}, 2.0);
    record.scale_known = false;
    writer.write(record);
  }
  const std::string message = message_of([&] { underflow::analyze({folder / "run"}, {}, {}); });
  CHECK(message.find("weight_grad/w") != std::string::npos);
  CHECK(message.find("step 3") != std::string::npos);
  CHECK(message.find("--recorded-scale") != std::string::npos);
  frames::Selection told;
  told.recorded_scale = 2.0;
  CHECK(underflow::analyze({folder / "run"}, {}, told).logs[0].tensors[0].max_abs == 0.5);
}

TEST_CASE("gradients of an FP16 run are recognised by their values", "[table]") {
  const TempFolder folder;
  Values values = gradients(1000, 5);
  values.push_back(0.0f);
  for (float& x : values) {
    x = static_cast<float>(to_double(kBinary16, from_double(kBinary16, double{x} * 65536).bits) /
                           65536);
  }
  const auto log = write_tensors(folder, {{"weight_grad/w", values}});
  const underflow::TensorFindings t = underflow::analyze({log}, {}, {}).logs[0].tensors.at(0);
  CHECK(t.suspected_fp16);
  CHECK_FALSE(t.underflow_identifiable);  // some are zero
  // E4M3 has larger steps than binary16: there, underflow can be told from binary16 data too.
  CHECK(underflow::analyze({log}, target_of("e4m3"), {})
            .logs[0]
            .tensors.at(0)
            .underflow_identifiable);
  const underflow::TensorFindings wide =
      underflow::analyze({write_tensors(folder, {{"weight_grad/w", gradients(1000, 5)}})}, {}, {})
          .logs[0]
          .tensors.at(0);
  CHECK_FALSE(wide.suspected_fp16);
  CHECK(wide.underflow_identifiable);
}

TEST_CASE("few bits alone are no evidence of binary16", "[table]") {
  const TempFolder folder;
  const auto suspected = [&](const Values& values) {
    const auto log = write_tensors(folder, {{"weight_grad/w", values}});
    const underflow::TensorFindings t = underflow::analyze({log}, {}, {}).logs[0].tensors.at(0);
    CHECK(t.underflow_identifiable == !t.suspected_fp16);
    return t.suspected_fp16;
  };
  Values powers, integers, constants(1000, 0x1.99cp-4f);
  for (int i = -20; i < 20; ++i) powers.push_back(std::ldexp(1.0f, i));
  for (int i = 0; i < 2048; ++i) integers.push_back(static_cast<float>(i) * 0x1p-30f);
  CHECK_FALSE(suspected({1.0f, 1.0f, 0.5f, -2.0f, 0.0f}));
  CHECK_FALSE(suspected({0x1.99cp-4f, 0.0f}));  // 11 bits
  CHECK_FALSE(suspected({0x1.99cp-4f, -0x1.234p-12f, 0.0f}));
  CHECK(suspected({0x1.99cp-4f, -0x1.234p-12f, 0x1.abcp-9f, 0.0f}));
  constants.push_back(0.0f);
  CHECK_FALSE(suspected(constants));
  powers.push_back(0.0f);
  CHECK_FALSE(suspected(powers));
  powers.push_back(0x1.99cp-4f);
  CHECK_FALSE(suspected(powers));
  CHECK_FALSE(suspected(integers));
  integers.push_back(0x1.004p-31f);  // finer than their step: no integer times it
  CHECK(suspected(integers));
}

TEST_CASE("a constant under a loss scale that changes is one value", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    for (const int step : {0, 1, 2, 3, 4, 5}) {
      const float scale = std::ldexp(1.0f, 4 * step);
      log::TensorRecord record =
          record_of("weight_grad/w", step, {0x1.99cp-4f * scale, 0x1p-20f * scale, 0.0f}, scale);
      writer.write(record);
    }
  }
  CHECK_FALSE(underflow::analyze({folder / "run"}, {}, {}).logs[0].tensors.at(0).suspected_fp16);
}

TEST_CASE("binary16 data without a zero hides no underflow", "[table]") {
  const TempFolder folder;
  const auto of = [&](const Values& values, const char* name) {
    {
      log::RunLogWriter writer(folder / name, {});
      log::TensorRecord record = record_of("weight_grad/w", 0, values);
      record.computed_dtype = Dtype::f16;
      writer.write(record);
    }
    return underflow::analyze({folder / name}, {}, {}).logs[0].tensors.at(0);
  };
  const underflow::TensorFindings clean = of({0x1p-24f, -0x1.8p-14f, 1.0f, INFINITY}, "clean");
  CHECK(clean.underflow_identifiable);
  CHECK(clean.zeros_may_be_flushed);
  CHECK(clean.classes_at({}, 0).flushed_to_zero == Interval(0));
  CHECK(clean.classes_at({}, -1).flushed_to_zero == Interval(1));
  CHECK_FALSE(of({0x1p-24f, -0x1.8p-14f, 1.0f, -0.0f}, "zero").underflow_identifiable);
}

TEST_CASE("roles come from names, options, or are assumed", "[table]") {
  const TempFolder folder;
  const auto bare = write_tensors(folder, {{"conv1.weight", {1.0f}}, {"fc", {1.0f}}});
  CHECK(underflow::analyze({bare}, {}, {}).logs[0].tensors[1].role == log::Role::weight_grad);
  CHECK(underflow::analyze({bare}, {}, {}).logs[0].tensors[1].role_source ==
        frames::RoleSource::assumed);
  frames::Selection named;
  named.roles = {{"conv*", log::Role::weight}};
  const underflow::Analysis a = underflow::analyze({bare}, {}, named);
  CHECK(a.logs[0].tensors[0].role == log::Role::weight);
  CHECK(a.logs[0].tensors[0].role_source == frames::RoleSource::option);
  CHECK(a.logs[0].tensors[1].role == log::Role::unknown);  // who names roles gets no others assumed
  CHECK(a.logs[0].tensors[1].role_source == frames::RoleSource::none);
  const auto mixed = write_tensors(folder, {{"activation/a", {1.0f}}, {"fc", {1.0f}}});
  const underflow::Analysis m = underflow::analyze({mixed}, {}, {});
  CHECK(m.logs[0].tensors[1].role == log::Role::unknown);
  CHECK(m.logs[0].tensors[1].role_source == frames::RoleSource::none);
}

TEST_CASE("ranks: sharded tables add, replicated ones are compared", "[table]") {
  const TempFolder folder;
  log::Manifest manifest;
  manifest.sharded = {log::Role::weight_grad};
  manifest.world_size = 2;
  for (const int rank : {0, 1}) {
    manifest.rank = rank;
    log::RunLogWriter writer(folder / ("run/rank-000" + std::to_string(rank)), manifest);
    writer.write(record_of("weight_grad/w", 0, gradients(100, 6)));
    for (const int step : {0, 1}) {
      writer.write(record_of("weight/w", step, {1.0f + static_cast<float>(rank)}));
    }
  }
  const underflow::Analysis a = underflow::analyze({folder / "run"}, {}, {});
  CHECK(a.logs[0].tensors.at(0).counts.total == 200);
  CHECK(a.logs[0].tensors.at(1).counts.total == 2);
  CHECK(a.logs[0].tensors.at(1).max_abs == 1.0);
  REQUIRE(a.notes.size() == 1);
  CHECK(a.notes[0].text().ends_with(
      "rank-0001: tensor 'weight/w', step 0: differs from rank 0, whose "
      "values are used (tables that differ: 2, on other ranks: 1)"));
}

TEST_CASE("steps and tensors are selected", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    for (const int step : {0, 5, 9}) {
      writer.write(record_of("weight_grad/a", step, {1.0f}));
      writer.write(record_of("weight_grad/b", step, {1.0f}));
    }
  }
  frames::Selection s;
  s.tensor_glob = "a";
  s.first_step = 5;
  s.end_step = 9;
  const underflow::Analysis a = underflow::analyze({folder / "run"}, {}, s);
  REQUIRE(a.logs[0].tensors.size() == 1);
  REQUIRE(a.logs[0].tensors[0].per_step.size() == 1);
  CHECK(a.logs[0].tensors[0].per_step[0].step == 5);
  s.tensor_glob = "nothing";
  CHECK(message_of([&] { underflow::analyze({folder / "run"}, {}, s); }).find("--tensor") !=
        std::string::npos);
}

TEST_CASE("empty, all zero and all NaN tensors are counted, not dropped", "[table]") {
  const TempFolder folder;
  const auto log = write_tensors(folder, {{"weight_grad/empty", {}},
                                          {"weight_grad/zeros", {0.0f, -0.0f}},
                                          {"weight_grad/nans", {NAN, NAN, INFINITY}}});
  const underflow::Analysis a = underflow::analyze({log}, {}, {});
  CHECK(find(a, "weight_grad/empty").counts.total == 0);
  CHECK(find(a, "weight_grad/zeros").counts.zero == 2);
  CHECK(find(a, "weight_grad/nans").counts.nan == 2);
  CHECK(find(a, "weight_grad/nans").counts.inf == 1);
  CHECK_FALSE(find(a, "weight_grad/nans").max_abs);
}

}  // namespace test_underflow
