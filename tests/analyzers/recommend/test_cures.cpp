// SPDX-License-Identifier: Apache-2.0
// What a recommendation says beyond one scale: layers' own scales, what to keep in FP32, memory.
#include <nlohmann/json.hpp>

#include <cmath>

#include "analyzers/logs.hpp"
#include "analyzers/recommend/parts.hpp"
#include "analyzers/underflow/modules.hpp"
#include "catch.hpp"

namespace test_cures {

using namespace halfscope;
using namespace halfscope::analyzers;
using halfscope::test::record_of;
using halfscope::test::TempFolder;
using halfscope::test::Values;
using log::Role;
using Kind = recommend::KeepInFp32::Kind;
using Why = recommend::KeepInFp32::Why;

const char* const kNetwork =
    "Net(\n"
    "  (body): Sequential(\n"
    "    (0): Conv2d(3, 8, kernel_size=(3, 3))\n"
    "    (1): BatchNorm2d(8, eps=1e-05)\n"
    "  )\n"
    "  (head): Linear(in_features=8, out_features=10, bias=True)\n"
    "  (soft): Softmax(dim=1)\n"
    ")";

log::Manifest manifest_with_text(const std::string& text) {
  log::Manifest manifest;
  (*manifest.about)["network"] = {{"text", text}};
  return manifest;
}

/// A run log of one step, analysed.
struct Run {
  TempFolder folder;
  underflow::Analysis analysis;

  Run(const log::Manifest& manifest, const std::vector<log::TensorRecord>& records,
      const log::StepScalars& scalars = {}) {
    {
      log::RunLogWriter writer(folder / "run", manifest);
      for (const log::TensorRecord& record : records) writer.write(record);
      writer.write(scalars);
    }
    analysis = underflow::analyze({folder / "run"}, {}, {});
  }
};

const recommend::LayerScale& layer_called(const std::vector<recommend::LayerScale>& layers,
                                          const std::string& name) {
  const auto found =
      std::find_if(layers.begin(), layers.end(),
                   [&](const recommend::LayerScale& layer) { return layer.layer == name; });
  REQUIRE(found != layers.end());
  return *found;
}

std::vector<std::string> names_of(const std::vector<recommend::KeepInFp32>& found,
                                  recommend::KeepInFp32::Kind kind) {
  std::vector<std::string> names;
  for (const recommend::KeepInFp32& keep : found) {
    if (keep.kind == kind) names.push_back(keep.name);
  }
  return names;
}

TEST_CASE("A tensor belongs to the module that its path begins with", "[advice]") {
  const Run run(manifest_with_text(kNetwork), {record_of("weight_grad/body.0.weight", 0, {1}),
                                               record_of("activation_grad/body.0", 0, {1}),
                                               record_of("activation_grad/body.1.0", 0, {1}),
                                               record_of("activation_grad/elsewhere.3", 0, {1}),
                                               record_of("local_weight_grad/own.bias", 0, {1}),
                                               record_of("weight_grad/other.bias", 0, {1})});
  const underflow::Modules modules(run.analysis.logs.front());
  std::vector<std::string> names;
  for (const underflow::TensorFindings& t : run.analysis.logs[0].tensors)
    names.push_back(modules.of(t));
  CHECK(names ==
        std::vector<std::string>{"body.0", "other", "body.0", "body.1", "elsewhere", "own"});
  CHECK(modules.class_of("body.1") == "BatchNorm2d");
  CHECK(modules.class_of("head") == "Linear");
  CHECK(modules.class_of("other").empty());
  CHECK(modules.with_class() ==
        std::vector<std::string>{"body", "body.0", "body.1", "head", "soft"});
}

TEST_CASE("A network text of any shape is read without harm", "[advice]") {
  for (const char* text : {"", "(", "  (", "  (a): ", "      (deep): Deep(\n  (a): A(",
                           "\n\n  (): X(", "  (a): B(\n        (much): C(\n  (b): D("}) {
    const Run run(manifest_with_text(text), {record_of("weight_grad/a.weight", 0, {1})});
    CHECK(underflow::Modules(run.analysis.logs.front()).of(run.analysis.logs[0].tensors[0]) == "a");
  }
}

TEST_CASE("Layers get scales of their own where no single one serves", "[advice]") {
  // 2^10 allows 2^4 at most (one binade spared); 2^-40 needs 2^16 to reach above 2^-25.
  const Run run({}, {record_of("weight_grad/big.weight", 0, {0x1p10f, 0x1p9f}),
                     record_of("weight_grad/small.weight", 0, {0x1p-40f, -0x1p-41f})});
  const underflow::RecommendOptions options;
  const recommend::Recommendation advice = recommend::recommend({run.analysis, {}, options});
  REQUIRE(advice.static_log2 == 4);
  const auto layers = recommend::per_layer({run.analysis, {}, options}, advice);
  REQUIRE(layers.size() == 2);
  const recommend::LayerScale& small = layer_called(layers, "small");
  CHECK(small.lowest_log2 == 17);  // the tie 2^-25 is flushed, so 2^-41 must reach above it
  CHECK(small.highest_log2 == underflow::kLastLog2Scale);
  CHECK(small.flushed_at_static == Interval(2));
  CHECK(small.flushed_at_own == Interval(0));
  CHECK(small.of == Interval(2));
  const recommend::LayerScale& big = layer_called(layers, "big");
  CHECK(big.highest_log2 == 4);
  CHECK(big.flushed_at_static == Interval(0));

  SECTION("and the layer that holds the scale down is named, with what the others gain") {
    const auto found = recommend::keep_in_fp32({run.analysis, {}, options}, advice);
    REQUIRE(found.size() == 1);
    CHECK(found[0].name == "big");
    CHECK(found[0].kind == Kind::tensor);
    CHECK(found[0].why == Why::limits_scale);
    CHECK(found[0].highest_log2 == 4);
    CHECK(found[0].highest_log2_without == underflow::kLastLog2Scale);
    CHECK(found[0].binades_gained == underflow::kLastLog2Scale - 4);
  }
}

TEST_CASE("Layers that hold the scale down alike are named together", "[advice]") {
  const Run run({}, {record_of("weight_grad/a.weight", 0, {3e4f}),
                     record_of("weight_grad/b.weight", 0, {3e4f}),
                     record_of("weight_grad/c.weight", 0, {1e-9f})});
  const recommend::Recommendation advice = recommend::recommend({run.analysis, {}, {}});
  const auto found = recommend::keep_in_fp32({run.analysis, {}, {}}, advice);
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "a, b");
  CHECK(found[0].binades_gained > 0);
}

TEST_CASE("One scale that serves all leaves layers alone", "[advice]") {
  const Run run({}, {record_of("weight_grad/a.weight", 0, {1.0f}),
                     record_of("weight_grad/b.weight", 0, {0.001f})});
  const recommend::Recommendation advice = recommend::recommend({run.analysis, {}, {}});
  CHECK(recommend::per_layer({run.analysis, {}, {}}, advice).empty());
  CHECK(recommend::keep_in_fp32({run.analysis, {}, {}}, advice).empty());
}

/// The factor for a layer of 1000 gradients and a weight of `rows` rows, by mean and deviation.
std::optional<double> adaptive_factor(double mean_g, double dev_g, double mean_w, double dev_w,
                                      std::uint64_t rows) {
  const Values some(1000, 1e-6f);
  auto gradient = record_of("activation_grad/layer", 0, some);
  gradient.moments = {mean_g, 1000 * (mean_g * mean_g + dev_g * dev_g)};
  auto weight = record_of("weight/layer.weight", 0, some);
  weight.moments = {mean_w, 1000 * (mean_w * mean_w + dev_w * dev_w)};
  weight.shape = {rows, 1000 / rows};
  const Run run({}, {gradient, weight, record_of("weight_grad/big.weight", 0, {0x1p14f}),
                     record_of("weight_grad/tiny.weight", 0, {0x1p-60f})});
  return layer_called(recommend::per_layer({run.analysis, {}, {}},
                                           recommend::recommend({run.analysis, {}, {}})),
                      "layer")
      .als;
}

TEST_CASE("Adaptive loss scaling's factor is that of its authors' code", "[advice]") {
  // What the authors' code gave for four layers: before the bounds, and after them.
  struct Row {
    double mean_g, dev_g, mean_w, dev_w;
    std::uint64_t rows;
    double unbounded, factor;
  };
  for (const Row& row : {Row{-1.56932e-07, 9.87338e-06, -3.12023e-05, .049908, 128, 12.142545, 8},
                         Row{1.05087e-09, 9.98637e-08, 3.28937e-05, .0199918, 512, 1498.6031, 16},
                         Row{-4.55203e-05, 9.98837e-04, -6.44666e-04, .0503532, 64, 1, 1},
                         Row{-6.65949e-08, 1.06908e-06, -7.1761e-03, .089192, 10, 223.37167, 16}}) {
    CHECK(adaptive_factor(row.mean_g, row.dev_g, row.mean_w, row.dev_w, row.rows) == row.factor);
    if (row.factor == 1) continue;
    // The factor falls as gradients grow: just above and just below 8 it rounds down to 8 and 4.
    const double to_8 = row.unbounded / 8;
    for (const auto& [nudge, want] : {std::pair(0.9999, 8.0), {1.0001, 4.0}}) {
      const double by = to_8 * nudge;
      CHECK(adaptive_factor(by * row.mean_g, by * row.dev_g, row.mean_w, row.dev_w, row.rows) ==
            want);
    }
  }
}

TEST_CASE("Operations are kept in FP32 by what their inputs were", "[advice]") {
  const auto log_of = [](float norm_input, float soft_input) {
    return std::vector{
        record_of("activation/body.0", 0, {norm_input}), record_of("activation/body.1", 0, {1.0f}),
        record_of("activation/head", 0, {soft_input}), record_of("activation/soft", 0, {0.5f}),
        record_of("weight_grad/head.weight", 0, {0.01f})};
  };
  const auto found = [&](float norm_input, float soft_input) {
    const Run run(manifest_with_text(kNetwork), log_of(norm_input, soft_input));
    return recommend::keep_in_fp32({run.analysis, {}, {}},
                                   recommend::recommend({run.analysis, {}, {}}));
  };
  CHECK(found(255.0f, 11.0f).empty());  // 255^2 < 65504, e^11 = 59874
  CHECK(names_of(found(256.0f, 11.0f), Kind::normalization) == std::vector<std::string>{"body.1"});
  CHECK(names_of(found(255.0f, 11.1f), Kind::softmax) == std::vector<std::string>{"soft"});
  const auto overflowing = found(1e5f, 1.0f);
  CHECK(names_of(overflowing, Kind::tensor) == std::vector<std::string>{"activation/body.0"});
}

TEST_CASE("A loss that the recommended scale drives beyond FP16 is named", "[advice]") {
  log::StepScalars scalars;
  for (const double loss : {2.0, 4.0}) {
    scalars.loss = loss;
    // 2^-1 allows 2^15: 2 * 2^15 = 65536 is beyond 65504; half of it is not.
    const Run run({}, {record_of("weight_grad/a.weight", 0, {0.5f})}, scalars);
    const recommend::Recommendation advice = recommend::recommend({run.analysis, {}, {}});
    REQUIRE(advice.static_log2 == 15);
    CHECK(names_of(recommend::keep_in_fp32({run.analysis, {}, {}}, advice), Kind::loss) ==
          std::vector<std::string>{"loss"});
    scalars.loss = loss / 4;
    const Run half({}, {record_of("weight_grad/a.weight", 0, {0.5f})}, scalars);
    CHECK(names_of(recommend::keep_in_fp32({half.analysis, {}, {}}, advice), Kind::loss).empty());
  }
}

TEST_CASE("Memory is counted from shapes, and odd extents are named", "[advice]") {
  auto weight = record_of("weight/a.weight", 0, {1});
  weight.shape = {128, 50257};
  auto even = record_of("weight/b.weight", 0, {1});
  even.shape = {16, 8};
  auto bias = record_of("weight/b.bias", 0, {1});
  bias.shape = {17};
  auto activation = record_of("activation/a", 0, {1});
  activation.shape = {32, 64, 5, 5};
  const Run run({}, {weight, even, bias, activation});
  const auto found = recommend::footprint(run.analysis);
  REQUIRE(found);
  CHECK(found->weights == 128 * 50257 + 16 * 8 + 17);
  CHECK(found->activations == 32 * 64 * 25);
  CHECK(found->bytes_fp32 == 4 * (found->weights + found->activations));
  CHECK(found->bytes_mixed == found->bytes_fp16 + 4 * found->weights);
  REQUIRE(found->not_multiples_of_8.size() == 1);
  CHECK(found->not_multiples_of_8[0].name == "weight/a.weight");
  CHECK(found->not_multiples_of_8[0].extents == recommend::Footprint::Extents::inputs);
}

TEST_CASE("padding is advised where it saves time", "[advice][table]") {
  struct Row {
    const char* what;
    std::vector<std::uint64_t> shape;
    bool odd;
  };
  const Row row = GENERATE(values<Row>({
      {"GPT-2's vocabulary", {50257, 768}, true},
      {"padded", {50304, 768}, false},
      {"the least that is large", {1025, 128}, true},
      {"the vocabulary of a small model", {65, 384}, false},
      {"ten classes", {10, 4096}, false},
      {"the channels of an image", {4096, 3, 7, 7}, false},
      {"a large vocabulary of a narrow model", {50257, 64}, false},
      {"a vector", {50257}, false},
  }));
  CAPTURE(row.what);
  auto weight = record_of("weight/a", 0, {1});
  weight.shape = row.shape;
  const Run run({}, {weight});
  CHECK(recommend::footprint(run.analysis)->not_multiples_of_8.empty() != row.odd);
}

TEST_CASE("ResNet-50's estimate: 26 M weights and 16 M activations are 168 MB, and 84",
          "[advice]") {
  auto weight = record_of("weight/all", 0, {1});
  weight.shape = {26'000'000};
  auto activation = record_of("activation/all", 0, {1});
  activation.shape = {16'000'000};
  const Run run({}, {weight, activation});
  const auto found = recommend::footprint(run.analysis);
  REQUIRE(found);
  CHECK(found->bytes_fp32 == 168'000'000);
  CHECK(found->bytes_fp16 == 84'000'000);
}

}  // namespace test_cures
