// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/tensor_peaks.hpp"

#include <limits>

#include "catch.hpp"

namespace test_tensor_peaks {

using namespace halfscope;
using namespace halfscope::analyzers;
using log::Role;

frames::StepPeak peak_of(const std::string& tensor, std::int64_t step, double max_abs,
                         std::optional<double> at_least = {}, std::optional<double> smallest = {},
                         Role role = Role::weight_grad) {
  frames::StepPeak peak;
  peak.role = role;
  peak.step = step;
  peak.tensor = tensor;
  peak.max_abs = max_abs;
  peak.at_least = at_least;
  peak.min_abs_nonzero = smallest;
  return peak;
}

underflow::Analysis analysis_of(const std::vector<frames::StepPeak>& peaks, double loss_scale = 1) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].name = "log";
  analysis.loss_scale = loss_scale;
  for (const frames::StepPeak& peak : peaks) analysis.logs[0].peaks.push_back(peak);
  return analysis;
}

underflow::TensorPeaks only(const std::vector<frames::StepPeak>& peaks, double loss_scale = 1) {
  const std::vector<underflow::TensorPeaks> found =
      underflow::tensor_peaks(analysis_of(peaks, loss_scale));
  REQUIRE(found.size() == 1);
  return found[0];
}

TEST_CASE("tensor peaks: what bounds say of overflow") {
  CHECK(only({peak_of("w", 1, 65519.99)}).overflows == underflow::Answer::no);
  CHECK(only({peak_of("w", 1, 65520)}).overflows == underflow::Answer::yes);
  CHECK(only({peak_of("w", 1, 65520, 65000)}).overflows == underflow::Answer::perhaps);
  CHECK(only({peak_of("w", 1, 65520.5, 65520)}).overflows == underflow::Answer::yes);
  CHECK(only({peak_of("w", 1, 32), peak_of("w", 2, 1)}, 2048).overflows == underflow::Answer::yes);
  const underflow::TensorPeaks activation =
      only({peak_of("a", 1, 32, {}, {}, Role::activation)}, 2048);
  CHECK(activation.overflows == underflow::Answer::no);
  CHECK(activation.at_scale == 1);
}

TEST_CASE("tensor peaks: what bounds say of flushed values") {
  CHECK(only({peak_of("w", 1, 0x1p-25)}).all_flushed == underflow::Answer::yes);
  CHECK(only({peak_of("w", 1, 0x1p-25)}, 2).all_flushed == underflow::Answer::no);
  CHECK(only({peak_of("w", 1, 0x1p-25)}).flushes == underflow::Answer::yes);
  // Perhaps all of them are zeros, which nothing flushes.
  CHECK(only({peak_of("w", 1, 0x1p-25, 0.0)}).all_flushed == underflow::Answer::perhaps);
  CHECK(only({peak_of("w", 1, 5e-5, 0.0)}).all_flushed == underflow::Answer::perhaps);
  CHECK(only({peak_of("w", 1, 0.0)}).all_flushed == underflow::Answer::no);
  CHECK(only({peak_of("w", 1, 0.0)}).flushes == underflow::Answer::no);
  CHECK(only({peak_of("w", 1, 1)}).flushes == underflow::Answer::perhaps);
  CHECK(only({peak_of("w", 1, 1, {}, 0x1.8p-25)}).flushes == underflow::Answer::no);
  CHECK(only({peak_of("w", 1, 1, {}, 0x1p-25)}).flushes == underflow::Answer::perhaps);
  CHECK(only({peak_of("w", 1, 1, {}, 0.5), peak_of("w", 2, 1)}).flushes ==
        underflow::Answer::perhaps);
}

TEST_CASE("tensor peaks: over steps, and those that are not finite") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const underflow::TensorPeaks t = only({peak_of("w", 9, infinity), peak_of("w", 3, 2, 1.5),
                                         peak_of("w", 5, 1.75, 1.6), peak_of("w", 4, nan)});
  CHECK(t.max_abs == 2);
  CHECK(t.max_step == 3);
  CHECK(t.max_abs_at_least == 1.6);
  CHECK(t.nan_steps == std::vector<std::int64_t>{4});
  CHECK(t.inf_steps == std::vector<std::int64_t>{9});
  CHECK(t.steps.front().step == 3);
  CHECK(!t.min_abs_nonzero);
  const underflow::TensorPeaks broken = only({peak_of("w", 1, nan)});
  CHECK(!broken.max_abs);
  CHECK(broken.overflows == underflow::Answer::no);
}

TEST_CASE("tensor peaks: those of roles are none of a tensor, and order is by role") {
  const auto found = underflow::tensor_peaks(analysis_of(
      {peak_of("b", 1, 1, {}, {}, Role::weight), peak_of("", 1, 7), peak_of("a", 1, 1)}));
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "a");
  CHECK(found[1].name == "b");
}

}  // namespace test_tensor_peaks
