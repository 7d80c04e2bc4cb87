// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "sim/network_fixture.hpp"
#include "sim/networks/anchors.hpp"

namespace test_networks {

using namespace sim_test;

std::int64_t weights_of(Run& run) {
  std::int64_t count = 0;
  for (autograd::Parameter* parameter : run.parameters.trained()) count += parameter->weight.size();
  return count;
}

Run begun(const char* network, const char* data, const char* precision = "fp32",
          std::uint64_t seed = 5) {
  const bool noise = std::string_view(data) == "8x8";
  Run run({network,
           noise ? std::make_shared<Noise>(backend::Shape{8, 8, 1})
                 : std::shared_ptr<data::Data>(data::open_data(data, 3)),
           1},
          backend::make_cpu_backend(backend::Accumulation::fp32, 1), precision, seed);
  run.loss();
  return run;
}

TEST_CASE("networks have the weights that their shapes say", "[sim][networks]") {
  // A convolution has kernel^2 * in * out + out, without its bias in ResNet; batch norm 2 * out.
  CHECK(weights_of(*std::make_unique<Run>(begun("mlp", "blobs"))) ==
        32 * 64 + 64 + 64 * 32 + 32 + 32 * 10 + 10);
  Run lenet = begun("lenet", "8x8");
  CHECK(weights_of(lenet) == 9 * 6 + 6 + 9 * 6 * 16 + 16 + 64 * 120 + 120 + 120 * 10 + 10);
  // He et al., table 6: 0.27 million.
  Run resnet = begun("resnet20", "images");
  const std::int64_t first = 27 * 16 + 32, stage1 = 6 * (9 * 16 * 16 + 32),
                     stage2 = 9 * 16 * 32 + 5 * 9 * 32 * 32 + 6 * 64,
                     stage3 = 9 * 32 * 64 + 5 * 9 * 64 * 64 + 6 * 128, last = 64 * 10 + 10;
  CHECK(first + stage1 + stage2 + stage3 + last == 269722);
  CHECK(weights_of(resnet) == 269722);
  Run ssd = begun("tinyssd", "boxes");
  const std::int64_t body = 27 * 16 + 16 + 9 * 16 * 32 + 32 + 9 * 32 * 64 + 64 + 9 * 64 * 64 + 64;
  CHECK(weights_of(ssd) == body + 2 * (9 * 64 * 12 + 12) * 2);
  Run lstm = begun("charlstm", "text");
  const std::int64_t characters = lstm.of.data->classes();
  CHECK(weights_of(lstm) ==
        characters * 32 + 512 * (32 + 128) + 2 * 512 + 128 * characters + characters);
}

TEST_CASE("weights are named as in PyTorch", "[sim][networks]") {
  Run resnet = begun("resnet20", "images");
  std::set<std::string> names;
  for (autograd::Parameter* parameter : resnet.parameters.all()) names.insert(parameter->name);
  for (const char* name : {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
                           "bn1.running_var", "layer3.2.conv2.weight", "fc.weight", "fc.bias"}) {
    INFO(name);
    CHECK(names.contains(name));
  }
  CHECK_FALSE(names.contains("conv1.bias"));
  Run lstm = begun("charlstm", "text");
  std::vector<std::string> in_order;
  for (autograd::Parameter* parameter : lstm.parameters.all()) in_order.push_back(parameter->name);
  CHECK(in_order == std::vector<std::string>{"embedding.weight", "lstm.weight_ih_l0",
                                             "lstm.weight_hh_l0", "lstm.bias_ih_l0",
                                             "lstm.bias_hh_l0", "fc.weight", "fc.bias"});
}

TEST_CASE("weights begin with bits of the seed and the name alone", "[sim][networks]") {
  Run a = begun("lenet", "8x8"), b = begun("lenet", "8x8"), c = begun("lenet", "8x8", "fp32", 6);
  Run exact({"lenet", std::make_shared<Noise>(backend::Shape{8, 8, 1}), 1},
            backend::make_reference_backend(), "fp32");
  exact.loss();
  for (std::size_t i = 0; i < a.parameters.all().size(); ++i) {
    const autograd::Parameter& one = *a.parameters.all()[i];
    INFO(one.name);
    const Floats values = a.backend->get(one.weight);
    CHECK(values == b.backend->get(b.parameters.all()[i]->weight));
    CHECK(values == exact.backend->get(exact.parameters.all()[i]->weight));
    CHECK(values != c.backend->get(c.parameters.all()[i]->weight));
  }
  auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  autograd::Parameters alone(*backend, precision_of("fp32"), 5);
  const autograd::Parameter& fc2 =
      alone.at("fc2.weight", {10, 120}, autograd::Initial::kaiming_uniform, 120);
  for (autograd::Parameter* one : a.parameters.all()) {
    if (one->name == "fc2.weight") {
      CHECK(backend->get(fc2.weight) == a.backend->get(one->weight));
    }
  }
}

TEST_CASE("weights begin with PyTorch's distributions", "[sim][networks]") {
  auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  autograd::Parameters parameters(*backend, precision_of("fp32"), 5);
  constexpr std::int64_t count = 20000, fan_in = 25;
  const auto moments_of = [&](const char* name, autograd::Initial initial) {
    const Floats values = backend->get(parameters.at(name, {count}, initial, fan_in).weight);
    double sum = 0, squares = 0, largest = 0;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
      largest = std::max(largest, std::abs(double{value}));
    }
    return std::array{sum / count, squares / count, largest};
  };
  for (const autograd::Initial initial :
       {autograd::Initial::kaiming_uniform, autograd::Initial::uniform_fan_in}) {
    const auto [mean, square, largest] =
        moments_of(initial == autograd::Initial::kaiming_uniform ? "a" : "b", initial);
    CHECK(std::abs(mean) < 0.004);                         // deviation of the mean: 0.0008
    CHECK(square == Approx(0.2 * 0.2 / 3).epsilon(0.03));  // U(-0.2, 0.2)
    CHECK(largest <= Approx(0.2));
    CHECK(largest > 0.199);
  }
  const auto [mean, square, largest] = moments_of("c", autograd::Initial::normal);
  CHECK(std::abs(mean) < 0.035);
  CHECK(square == Approx(1).epsilon(0.05));
  CHECK(largest > 3);
}

TEST_CASE("each mode holds weights, master copies and gradients in its types", "[sim][networks]") {
  for (const backend::Precision& precision : backend::kPrecisions) {
    INFO(precision.name);
    Run run({"resnet20", std::make_shared<Noise>(backend::Shape{8, 8, 3}), 2},
            backend::make_cpu_backend(backend::Accumulation::fp32, 1), precision.name);
    run.loss();
    for (autograd::Parameter* one : run.parameters.all()) {
      INFO(one->name);
      const bool wide = one->name.find("bn") != std::string::npos;
      CHECK(one->weight.dtype == (wide ? Dtype::f32 : precision.tensors));
      CHECK(static_cast<bool>(one->master) == (precision.master && !wide));
      CHECK(one->trained == (one->name.find("running") == std::string::npos));
      CHECK(static_cast<bool>(one->gradient) == one->trained);
      if (one->trained) CHECK(one->gradient.dtype == one->weight.dtype);
      if (one->master) {
        CHECK(run.backend->get(one->weight) ==
              rounded(precision.tensors, run.backend->get(one->master)));
      }
    }
  }
}

TEST_CASE("shortcuts of option A take every second pixel and add channels of zeros",
          "[sim][networks]") {
  // With gamma = 0 in the second batch norms each block is its shortcut alone.
  Run run({"resnet20", std::make_shared<Noise>(backend::Shape{8, 8, 3}), 2},
          backend::make_reference_backend(), "fp32");
  run.loss();
  for (autograd::Parameter* one : run.parameters.all()) {
    if (one->name.ends_with("bn2.weight")) run.backend->fill(one->weight, 0);
  }
  std::map<std::string, backend::Tensor> seen;
  autograd::Tape tape(*run.backend, run.parameters, true);
  tape.watch([&](log::Role, const std::string& name, const backend::Tensor& tensor, double) {
    seen[name] = tensor;
  });
  run.loss(tape);
  const backend::Tensor before = seen.at("layer1.2.relu2"), after = seen.at("layer2.0.add");
  REQUIRE(before.shape == backend::Shape{2, 8, 8, 16});
  REQUIRE(after.shape == backend::Shape{2, 4, 4, 32});
  const Floats x = run.backend->get(before), y = run.backend->get(after);
  std::size_t wrong = 0;
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t column = 0; column < 4; ++column) {
        for (std::size_t c = 0; c < 32; ++c) {
          const float wanted = c < 16 ? x[((n * 8 + 2 * row) * 8 + 2 * column) * 16 + c] : 0;
          wrong += y[((n * 4 + row) * 4 + column) * 32 + c] != wanted;
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("networks refuse data of another kind and say what they take", "[sim][networks]") {
  const auto blobs = data::open_data("blobs", 1), images = data::open_data("images", 1),
             boxes = data::open_data("boxes", 1), text = data::open_data("text", 1);
  const auto refused = [](const char* network, const data::Data& data) {
    return networks::find_network(network)->refuses(data);
  };
  CHECK(refused("mlp", *blobs).empty());
  CHECK(refused("mlp", *images).empty());
  CHECK(refused("lenet", *images).empty());
  CHECK(refused("resnet20", *images).empty());
  CHECK(refused("tinyssd", *boxes).empty());
  CHECK(refused("charlstm", *text).empty());
  using Catch::Matchers::Contains;
  CHECK_THAT(refused("mlp", *boxes), Contains("one label each"));
  CHECK_THAT(refused("mlp", *text), Contains("one label each"));
  CHECK_THAT(refused("lenet", *blobs), Contains("8 x 8"));
  CHECK_THAT(refused("resnet20", *blobs), Contains("square"));
  CHECK_THAT(refused("tinyssd", *images), Contains("take boxes"));
  CHECK_THAT(refused("tinyssd", *text), Contains("take boxes"));
  CHECK_THAT(refused("charlstm", *images), Contains("text file"));
  CHECK(networks::find_network("vgg") == nullptr);
}

TEST_CASE("a score counts rows whose largest logit is the label's", "[sim][networks]") {
  for (const Case& one : cases()) {
    INFO(one.network);
    Run run(one, backend::make_cpu_backend(backend::Accumulation::fp32, 1), "fp32");
    run.loss();
    // With a bias that outweighs all, one class is the answer everywhere.
    for (autograd::Parameter* parameter : run.parameters.all()) {
      const bool last = parameter->name == "fc.bias" || parameter->name == "fc2.bias" ||
                        parameter->name == "fc3.bias";
      if (!last || (one.network == "mlp" && parameter->name == "fc2.bias")) continue;
      Floats values(static_cast<std::size_t>(parameter->weight.size()));
      values[2] = 1000;
      run.backend->set(parameter->weight, values);
    }
    const data::Batch batch = one.data->batch(0, one.batch);
    autograd::Tape tape(*run.backend, run.parameters, false);
    const networks::Score score = networks::find_network(one.network)
                                      ->score(tape, *run.backend, batch, Dtype::f32, *one.data);
    if (one.network.starts_with("tinyssd")) {
      std::size_t boxes = 0;
      for (const auto& list : batch.boxes) boxes += list.size();
      CHECK(score.of >= boxes);
      CHECK(score.right <= score.of);
    } else {
      CHECK(score.of == batch.labels.size());
      CHECK(score.right == static_cast<std::uint64_t>(std::ranges::count(batch.labels, 2)));
    }
  }
}

TEST_CASE("anchors lie about the centres of cells", "[sim][networks]") {
  std::vector<networks::Anchor> anchors;
  networks::add_anchors(2, 4, 0.5, anchors);
  REQUIRE(anchors.size() == 24);
  const networks::Anchor& second_row = anchors[3 * 4 + 1];  // first cell of the second row, ratio 2
  CHECK(second_row.x == 0.125);
  CHECK(second_row.y == 0.75);
  CHECK(second_row.width == Approx(2 * second_row.height));
  CHECK(second_row.width * second_row.height == Approx(0.25));
}

TEST_CASE("overlap is intersection over union", "[sim][networks]") {
  const data::Box a{0, 0, 0.5F, 0.5F, 0}, b{0.25F, 0, 0.75F, 0.5F, 0}, apart{0.5F, 0.5F, 1, 1, 0};
  CHECK(networks::overlap(a, a) == 1);
  CHECK(networks::overlap(a, b) == Approx(1.0 / 3));
  CHECK(networks::overlap(a, apart) == 0);
  CHECK(networks::overlap(data::Box{}, data::Box{}) == 0);
}

TEST_CASE("offsets of boxes from anchors come back", "[sim][networks]") {
  const networks::Anchor anchor{0.5, 0.25, 0.5, 0.25};
  const data::Box box{0.375F, 0.25F, 0.625F, 0.75F, 1};
  const auto offsets = networks::encode(box, anchor);
  CHECK(offsets[0] == 0);
  CHECK(offsets[1] == 1);
  CHECK(offsets[2] == Approx(std::log(0.5)));
  CHECK(offsets[3] == Approx(std::log(2)));
  const data::Box back = networks::decode(offsets, anchor);
  CHECK(back.left == Approx(box.left));
  CHECK(back.bottom == Approx(box.bottom));
}

TEST_CASE("a box is matched to its best anchor and to all that overlap by half",
          "[sim][networks]") {
  const std::vector<networks::Anchor> anchors = {{0.25, 0.25, 0.5, 0.5},  // the first box itself
                                                 {0.3, 0.25, 0.5, 0.5},   // 0.45 / 0.55 of it
                                                 {0.45, 0.25, 0.5, 0.5},  // 0.3 / 0.7
                                                 {0.9, 0.9, 0.4, 0.4}};   // best for the small one
  const std::vector<data::Box> truth = {{0, 0, 0.5F, 0.5F, 0}, {0.9F, 0.9F, 1, 1, 2}};
  CHECK(networks::match(anchors, truth) == std::vector<std::int32_t>{0, 0, -1, 1});
  CHECK(networks::match(anchors, {}) == std::vector<std::int32_t>{-1, -1, -1, -1});
}

TEST_CASE("three negatives for each matched anchor, of the largest loss", "[sim][networks]") {
  const std::vector<std::int32_t> matched = {-1, 0, -1, -1, -1, -1};
  CHECK(networks::hardest(matched, std::vector<double>{1, 9, 3, 2, 3, 0}) ==
        std::vector<std::size_t>{2, 4, 3});
  CHECK(networks::hardest(matched, std::vector<double>{1, 9, 3, 2, NAN, 0}) ==
        std::vector<std::size_t>{4, 2, 3});
  const std::vector<std::int32_t> most = {0, 1, -1}, none = {-1, -1};
  CHECK(networks::hardest(most, std::vector<double>{0, 0, 0}) == std::vector<std::size_t>{2});
  CHECK(networks::hardest(none, std::vector<double>{1, 2}).empty());
}

TEST_CASE("the two losses of the detector differ by their divisors", "[sim][networks]") {
  Run matched = begun("tinyssd", "boxes"), all = begun("tinyssd-all-anchors", "boxes");
  const double ratio = matched.loss() / all.loss();
  const data::Batch batch = matched.of.data->batch(0, 1);
  std::vector<networks::Anchor> anchors;
  networks::add_anchors(12, 12, 0.25, anchors);
  networks::add_anchors(6, 6, 0.42, anchors);
  const auto of = networks::match(anchors, batch.boxes[0]);
  const auto count =
      static_cast<double>(of.size() - static_cast<std::size_t>(std::ranges::count(of, -1)));
  CHECK(count > 0);
  CHECK(ratio == Approx(540 / count));
}

}  // namespace test_networks
