// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/step_facts.hpp"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace test_step_facts {

using namespace halfscope;
using namespace halfscope::analyzers;
using log::Role;

constexpr double kInf = INFINITY, kNan = NAN;
double below(double x) { return std::nextafter(x, 0.0); }

log::StepScalars scalars_of(std::int64_t step, std::optional<double> loss_scale) {
  log::StepScalars scalars;
  scalars.step = step;
  scalars.loss_scale = loss_scale;
  return scalars;
}

underflow::TensorFindings tensor_of(Role role, std::optional<Dtype> source = {}) {
  underflow::TensorFindings tensor;
  tensor.role = role;
  tensor.source_dtype = source;
  return tensor;
}

underflow::StepFindings step_5(double scale, bool fits_as_is, Interval finite_nonzero) {
  underflow::StepFindings step;
  step.step = 5;
  step.scale = scale;
  step.fits_as_is = fits_as_is;
  step.counts.finite_nonzero = finite_nonzero;
  return step;
}

TEST_CASE("The scalars of a log are found by step") {
  underflow::LogFindings log;
  log.scalars = {scalars_of(3, 8), scalars_of(7, {})};
  const underflow::LogScalars run(log);
  CHECK(run.steps().size() == 2);
  CHECK(run.at(3) == &log.scalars[0]);
  CHECK(run.at(4) == nullptr);
  CHECK(run.loss_scale(3) == 8);
  CHECK_FALSE(run.loss_scale(4));  // no such step in this log
  CHECK_FALSE(run.loss_scale(7));  // it does not say
  CHECK(underflow::LogScalars(underflow::LogFindings()).empty());
}

TEST_CASE("A loss scale of the scalars is usable where it is a normal binary32 number") {
  const auto told = [](double scale) {
    underflow::LogFindings log;
    log.scalars.push_back(scalars_of(0, scale));
    return underflow::LogScalars(log).loss_scale(0).has_value();
  };
  for (const double scale : {0.3, 0x1p-126, 0x1.fffffep127}) CHECK(told(scale));
  // The largest subnormal number, what is beyond the largest one, and what is no scale.
  for (const double no : {0x1.fffffcp-127, 0x1p128, 0., -2., kInf, kNan}) CHECK(!told(no));
}

TEST_CASE("The highest scale of a magnitude is the last that rounds to no infinity", "[table]") {
  struct Row {
    const char* what;
    double recorded, scale;
    Format format;
    int log2;
  };
  const Row row = GENERATE(values<Row>({
      {"the largest binary16 number", 65504, 1, kBinary16, 0},
      {"65504 and half a step is a tie to infinity", 65520, 1, kBinary16, -1},
      {"just below rounds to 65504", below(65520), 1, kBinary16, 0},
      {"3 * 2^-1074 = 1.5 * 2^-1073", 0x3p-1074, 1, kBinary16, 1073 + 15},
      {"just below 2^-1022, all ones", below(0x1p-1022), 1, kBinary16, 1023 + 14},
      {"the largest double", 0x1.fffffffffffffp1023, 1, kBinary16, 14 - 1023},
      {"just below 65520 at scale 3", below(196560), 3, kBinary16, 0},
      {"the double 0.1 is above a tenth, so this is below 65520", 6552, 0.1, kBinary16, 0},
      {"the double 0.3 is below three tenths: above 65520", 19656, 0.3, kBinary16, -1},
      {"bfloat16: 255.5 * 2^120, a tie to infinity", 255.5 * 0x1p120, 1, kBfloat16, -1},
      {"E5M2: 57344 and half a step of 8192", 61440, 1, kFloat8E5M2, -1},
      {"below it", below(61440), 1, kFloat8E5M2, 0},
      {"E4M3: 464 is a tie that goes to 448, which is even", 464, 1, kFloat8E4M3, 0},
      {"above it", 464.25, 1, kFloat8E4M3, -1},
      {"E2M1: 6 and half a step of 2", 7, 1, kFloat4E2M1, -1},
  }));
  CAPTURE(row.what);
  CHECK(underflow::StepMagnitude{magnitude_of(row.recorded), row.scale}.highest_safe_log2(
            row.format) == row.log2);
}

TEST_CASE("At the highest scale no binary16 number overflows, at twice it all do", "[exhaustive]") {
  unsigned bad = 0;
  for (unsigned bits = 1; bits < 0x7C00 && bad == 0; ++bits) {
    const int fraction = static_cast<int>(bits & 1023), exponent = static_cast<int>(bits >> 10);
    const double x =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const int k = underflow::StepMagnitude{magnitude_of(x)}.highest_safe_log2(kBinary16);
    if (!(std::ldexp(x, k) < 65520 && std::ldexp(x, k + 1) >= 65520)) bad = bits;
  }
  INFO("first wrong encoding: 0x" << std::hex << bad);
  REQUIRE(bad == 0);
}

TEST_CASE("A step overflows where its largest value does at the scale, exactly", "[table]") {
  struct Row {
    const char* what;
    double recorded, recorded_scale, loss_scale;
    Format format;
    bool overflows;
  };
  const Row row = GENERATE(values<Row>({
      {"below the tie", below(65520), 1, 1, kBinary16, false},
      {"the tie to infinity", 65520, 1, 1, kBinary16, true},
      {"65520 / 3 at scale 3", 21840, 1, 3, kBinary16, true},
      {"3 * 65520 recorded at 3, though the double 1 / 3 is less", 196560, 3, 1, kBinary16, true},
      // In doubles both products are rounded to 655200, a tenth of which is 65520.
      {"the double 0.1 is above a tenth", 6552000, 10, 0.1, kBinary16, true},
      {"the double 0.3 is below three tenths", 2184000, 10, 0.3, kBinary16, false},
      {"bfloat16 has binary32's range", 65520, 1, 65536, kBfloat16, false},
  }));
  CAPTURE(row.what);
  underflow::StepFindings step;
  CHECK_FALSE(underflow::overflows(step, row.format, row.loss_scale));  // no finite nonzero value
  step.scale = row.recorded_scale;
  step.largest = magnitude_of(row.recorded);
  CHECK(underflow::overflows(step, row.format, row.loss_scale) == row.overflows);
}

TEST_CASE("A step is seen at the loss scale of its counts where one acts on it, else at 1") {
  underflow::TensorFindings tensor;
  underflow::StepFindings step = step_5(8, false, 1);
  step.loss_scale = 1024;
  CHECK(underflow::scale_seen(tensor, step) == 1);
  tensor.loss_scaled = true;
  CHECK(underflow::scale_seen(tensor, step) == 1024);
}

TEST_CASE("A loss without a scale was recorded before the scale multiplied it") {
  underflow::StepFindings step;
  CHECK(underflow::before_scaling(tensor_of(Role::loss), step));
  CHECK_FALSE(underflow::before_scaling(tensor_of(Role::weight_grad), step));
  step.scale = 2;
  CHECK_FALSE(underflow::before_scaling(tensor_of(Role::loss), step));
}

TEST_CASE("A step is not finite where an infinity or a NaN is sure") {
  underflow::StepFindings step;
  step.counts.nan = step.counts.inf = Interval(0, 3);  // perhaps, of a bucket without an end
  CHECK_FALSE(underflow::nonfinite(step));
  step.counts.nan = Interval(1, 3);
  CHECK(underflow::nonfinite(step));
  std::swap(step.counts.nan, step.counts.inf);
  CHECK(underflow::nonfinite(step));
}

TEST_CASE("A tensor may have overflowed in a narrow format unless the log shows otherwise") {
  const auto narrow = [](std::optional<Dtype> source, std::optional<Dtype> computed = {}) {
    underflow::TensorFindings tensor = tensor_of(Role::weight_grad, source);
    tensor.computed_dtype = computed;
    return underflow::may_have_fp16_range(tensor);
  };
  CHECK(narrow({}));  // the log does not say
  for (const Dtype dtype : {Dtype::f16, Dtype::f8_e4m3, Dtype::f8_e5m2}) {
    CHECK((narrow(dtype) && narrow({}, dtype) && narrow(Dtype::f32, dtype)));
    CHECK(narrow(dtype, Dtype::f32));  // too large for what it was held in
  }
  for (const Dtype dtype : {Dtype::bf16, Dtype::f32, Dtype::f64}) {  // binary32's range or more
    CHECK_FALSE((narrow(dtype) || narrow({}, dtype) || narrow(Dtype::f32, dtype)));
  }
  underflow::TensorFindings looks_like = tensor_of(Role::weight_grad, Dtype::f32);
  looks_like.suspected_fp16 = true;
  CHECK(underflow::may_have_fp16_range(looks_like));
}

TEST_CASE("FP16 made none of a log's infinities where all that computes is wide", "[table]") {
  using Of = std::pair<Role, Dtype>;
  const auto found = [](const std::vector<Of>& tensors) {
    underflow::ComputedFormats formats;
    for (const auto& [role, dtype] : tensors) formats.add(tensor_of(role, dtype));
    return std::pair(formats.all_wide(), formats.any_narrow_gradient());
  };
  const Of wide = {Role::activation_grad, Dtype::f32};
  CHECK(found({}) == std::pair(false, false));
  CHECK(found({wide}) == std::pair(true, false));
  CHECK(found({{Role::activation_grad, Dtype::f16}}) == std::pair(false, true));
  // Activations' gradients, which came into it, are not recorded.
  CHECK(found({{Role::weight_grad, Dtype::f32}}) == std::pair(false, false));
  for (const Role role : {Role::weight, Role::activation}) {
    CHECK(found({{role, Dtype::f16}, wide}) == std::pair(false, false));
  }
  for (const Role gradient : {Role::weight_grad, Role::local_weight_grad}) {
    CHECK(found({wide, {gradient, Dtype::f16}}) == std::pair(false, true));
  }
  for (const Role no_part : {Role::loss, Role::update, Role::optimizer_state, Role::unknown}) {
    CHECK(found({wide, {no_part, Dtype::f16}}) == std::pair(true, false));
  }
}

TEST_CASE("The scale a tensor was computed at: its own, the scalars', or 1", "[table]") {
  struct Row {
    const char* what;
    Role role;
    double scale;  ///< that the values carry
    std::vector<log::StepScalars> scalars;
    bool fits_as_is;
    Interval finite;
    std::optional<double> wanted, as_recorded;  ///< by WithoutScalars
  };
  const std::vector told = {scalars_of(5, 1024)}, zero = {scalars_of(5, 0)};
  const std::vector silent = {scalars_of(5, {})}, other = {scalars_of(4, 8)};
  constexpr Role kGradient = Role::weight_grad;
  const Row row = GENERATE_COPY(values<Row>({
      {"it carries one, no power of two", kGradient, 3, told, true, 1, 3, 3},
      {"unscaled: the scalars tell", kGradient, 1, told, true, 1, 1024, 1024},
      {"they tell none, values of binary16", kGradient, 1, silent, true, 1, 1, 1},
      {"they tell none, other values", kGradient, 1, silent, false, 1, {}, {}},
      {"they tell 0, which is no scale", kGradient, 1, zero, false, 1, {}, {}},
      {"they are of another step", kGradient, 1, other, true, 1, 1, 1},
      {"some may be finite", kGradient, 1, other, false, Interval(0, 3), {}, {}},
      {"no scalars: nothing confirms 1", kGradient, 1, {}, true, 1, {}, 1},
      {"no scalars, infinities alone", kGradient, 1, {}, false, 0, {}, 1},
      {"no loss scale acts on a weight", Role::weight, 1, told, false, 1, 1, 1},
      {"a loss before it is multiplied", Role::loss, 1, told, false, 1, 1, 1},
  }));
  CAPTURE(row.what);
  underflow::LogFindings log;
  log.scalars.assign(row.scalars.begin(), row.scalars.end());
  underflow::TensorFindings tensor = tensor_of(row.role);
  tensor.loss_scaled = row.role != Role::weight;
  const underflow::StepFindings step = step_5(row.scale, row.fits_as_is, row.finite);
  const underflow::LogScalars scalars(log);
  CHECK(underflow::computed_scale(tensor, step, scalars) == row.wanted);
  CHECK(underflow::computed_scale(tensor, step, scalars, underflow::WithoutScalars::as_recorded) ==
        row.as_recorded);
}

}  // namespace test_step_facts
