// SPDX-License-Identifier: Apache-2.0
// Gradients that were clipped before they were recorded, by hand: norms and largest magnitudes.
#include "analyzers/underflow/clipped.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "analyzers/logs.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/series_logs.hpp"
#include "catch.hpp"

namespace test_clipped {

using namespace halfscope;
using namespace halfscope::analyzers;

struct Norm {
  double norm, largest;
};

/// One tensor of weight gradients, recorded at a scale of 8.
underflow::Analysis recorded(const std::vector<Norm>& steps, double scale = 8) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].name = "run";
  underflow::TensorFindings t;
  t.log = std::string("run");
  t.name = "weight_grad/w";
  t.role = log::Role::weight_grad;
  for (const Norm& step : steps) {
    underflow::StepFindings found;
    found.step = static_cast<std::int64_t>(t.per_step.size());
    found.scale = scale;
    found.counts.total = 100;
    found.max_abs = step.largest;
    found.moments = Moments{0, step.norm * step.norm * scale * scale};
    t.per_step.push_back(found);
  }
  analysis.logs[0].tensors.push_back(t);
  return analysis;
}

bool clipped(const underflow::Analysis& analysis) {
  return underflow::is_clipped(analysis.logs.at(0));
}

log::Manifest manifest(const nlohmann::json& recorder) {
  log::Manifest made;
  (*made.about)["recorder"] = recorder;
  return made;
}

TEST_CASE("clipped: one norm at many steps, never a larger one", "[clipped]") {
  CHECK(clipped(recorded({{0.1, 0.02}, {0.03, 0.01}, {0.09999, 0.05}, {0.1, 0.04}, {0.05, 0.03}})));
}

TEST_CASE("clipped: one largest magnitude at many steps, never a larger one", "[clipped]") {
  CHECK(clipped(recorded({{0.1, 0.05}, {0.03, 0.01}, {0.12, 0.05}, {0.13, 0.05}, {0.05, 0.03}})));
  CHECK(clipped(recorded({{0.5, 0.05}, {0.49999, 0.05}, {0.49998, 0.05}})));  // nearly all clipped
  CHECK_FALSE(clipped(recorded({{0.5, 0.05}, {0.5, 0.05}, {0.49999999, 0.05}})));
  const double next = std::nextafter(0.05, 0);
  CHECK_FALSE(clipped(recorded({{0.1, 0.05}, {0.12, 0.05}, {0.13, next}, {0.05, 0.03}})));
  CHECK_FALSE(clipped(recorded({{0.1, 0.05}, {0.12, 0.05}, {0.13, 0.05}, {0.14, 0.06}})));
}

TEST_CASE("clipped: what no clipping leaves", "[clipped]") {
  CHECK_FALSE(clipped(recorded({{0.1, 0.02}, {0.11, 0.01}, {0.12, 0.05}, {0.13, 0.04}})));
  CHECK_FALSE(clipped(recorded({{0.1, 0.02}, {0.1, 0.05}})));  // two steps are few
  CHECK_FALSE(clipped(recorded({{0.1, 0.02}, {0.1, 0.05}, {0.1, 0.03}, {0.2, 0.05}})));
  CHECK_FALSE(clipped(recorded({{0.1, 0.02}, {0.1, 0.02}, {0.1, 0.02}})));  // the same gradients
  CHECK_FALSE(clipped(recorded({{0, 0}, {0, 0}, {0, 0}})));
  CHECK_FALSE(clipped(recorded({})));
  std::vector<Norm> rare(13, Norm{0.05, 0.01});
  for (std::size_t i = 0; i < rare.size(); ++i) rare[i].norm += 0.003 * static_cast<double>(i);
  rare[0] = {0.1, 0.02}, rare[1] = {0.1, 0.03}, rare[2] = {0.1, 0.04};
  CHECK_FALSE(clipped(recorded(rare)));  // three of thirteen
}

TEST_CASE("clipped: steps that are not finite, or lack tensors, do not count", "[clipped]") {
  underflow::Analysis analysis =
      recorded({{0.1, 0.02}, {0.1, 0.03}, {0.1, 0.04}, {0.5, 0.04}, {0.6, 0.1}});
  CHECK_FALSE(clipped(analysis));
  analysis.logs[0].tensors[0].per_step.change([](underflow::StepFindings& step) {
    if (step.step == 3) step.counts.inf = 1;
    if (step.step == 4) step.counts.total = 50;
  });
  CHECK(clipped(analysis));
}

TEST_CASE("clipped: a manifest says it, of gradients read at the step", "[clipped]") {
  const std::string at_step =
      "read when the optimizer's step is attempted, before a skip is decided";
  underflow::Analysis analysis = recorded({{0.1, 0.02}, {0.2, 0.03}});
  analysis.logs[0].manifest = manifest({{"gradients", at_step}, {"clipping", "norm 1"}});
  CHECK(clipped(analysis));
  for (const nlohmann::json& other :
       {nlohmann::json{{"gradients", at_step}, {"clipping", nullptr}},
        nlohmann::json{{"gradients", "as backward left them"}, {"clipping", "norm 1"}},
        nlohmann::json{{"clipping", "norm 1"}}, nlohmann::json(3)}) {
    analysis.logs[0].manifest = manifest(other);
    CHECK_FALSE(clipped(analysis));
  }
  analysis.logs[0].manifest = manifest({{"clipping", "norm 1"}});
  log::StepScalars scalars;
  scalars.more["gradients_read_at_step"] = 1;
  analysis.logs[0].scalars.push_back(scalars);
  CHECK(clipped(analysis));
}

TEST_CASE("clipped: a replay knows what overflows, and not what does not", "[clipped]") {
  replay::StepSeries series;
  series.seen = {{2, 0}, {INFINITY, 1024}};
  series.retried[0] = {{2, 0}, {2, 0}};
  replay::weights_at_least(series);
  CHECK(replay::judge(series.seen[0], 65520) == replay::OverflowVerdict::overflow);
  CHECK(replay::judge(series.seen[0], 1024) == replay::OverflowVerdict::unknown);
  CHECK(replay::judge(series.seen[1], 1024) == replay::OverflowVerdict::overflow);
  CHECK(series.retried[0][1].partial);
  CHECK(series.retried[0][1].weights_partial);
}

TEST_CASE("clipped: policies over a log that was recorded after clipping", "[clipped]") {
  const auto read = [](const std::vector<std::vector<float>>& gradients) {
    Scalars scalars;
    Records records;
    for (const std::vector<float>& values : gradients) {
      const std::int64_t number = std::ssize(scalars);
      records.push_back(record_of("weight_grad/w", number, values));
      double squares = 0;
      for (const float x : values) squares += double{x} * x;
      records.back().moments = Moments{0, squares};
      scalars.push_back(step(number, values.front()));
    }
    frames::Notes notes;
    replay::StepSeries series = read_ranks({scalars}, records, {}, {}, &notes);
    CHECK(std::ranges::all_of(series.seen, &replay::AttemptMagnitudes::partial) == !notes.empty());
    return series.seen.front().partial;
  };
  CHECK(read({{4, 3}, {5, 0}, {4.5F, 2.179449F}}));  // one norm
  CHECK_FALSE(read({{4, 3}, {5, 1}, {4.5F, 2}}));
}

/// One step's gradients in two files, the parts of one tensor.
void dump(const test::TempFolder& folder, std::size_t step, const test::Values& a,
          const test::Values& b) {
  const std::string number = std::to_string(step);
  const auto write = [&](const char* part, const test::Values& values) {
    log::write_safetensors(folder / (number + part + ".safetensors"),
                           {{"weight_grad/w", {values.size()}, test::view_of(values)}},
                           {{"step", number}});
  };
  write("a", a);
  write("b", b);
}

TEST_CASE("clipped: files of tensors show it, by norm and by value", "[clipped]") {
  const auto shown = [](const std::vector<std::pair<test::Values, test::Values>>& steps) {
    const test::TempFolder folder;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      dump(folder, i, steps[i].first, steps[i].second);
    }
    return underflow::analyze({folder / "."}, {}, {}).logs.at(0).clipped;
  };
  CHECK(shown({{{3, 0}, {4, 0}}, {{5, 0}, {0, 0}}, {{0, 3}, {-4, 0}}}));     // norm 5
  CHECK(shown({{{3, 1}, {2, 0}}, {{-3, 0}, {3, 0}}, {{0.5F, 0}, {3, 2}}}));  // at most 3
  CHECK_FALSE(shown({{{3, 0}, {4, 0}}, {{5, 0}, {1, 0}}, {{0, 0}, {2, 0}}}));
}

}  // namespace test_clipped
