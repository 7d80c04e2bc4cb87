// SPDX-License-Identifier: Apache-2.0
// What tests of tapes and networks share: data of any shape, a forward and backward pass on either
// backend, and the parameters' gradients by name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operation.hpp"
#include "sim/backend/random.hpp"
#include "sim/networks/network.hpp"

namespace sim_test {

/// Noise with labels.
class Noise : public data::Data {
 public:
  explicit Noise(backend::Shape shape) : shape_(std::move(shape)) {}
  std::string describe() const override { return "noise"; }
  std::int64_t classes() const override { return 10; }
  backend::Shape example() const override { return shape_; }
  data::Batch batch(std::int64_t index, std::int64_t size) const override {
    backend::Random random(7, "noise " + std::to_string(index));
    data::Batch made;
    made.shape = shape_;
    made.shape.insert(made.shape.begin(), size);
    for (std::int64_t i = 0; i < backend::elements(made.shape); ++i) {
      made.inputs.push_back(static_cast<float>(random.normal()));
    }
    for (std::int64_t i = 0; i < size; ++i) {
      made.labels.push_back(static_cast<std::int32_t>(random.below(10)));
    }
    return made;
  }
  std::vector<data::Batch> held_out(std::int64_t) const override { return {}; }

 private:
  backend::Shape shape_;
};

/// A network with small data for it.
struct Case {
  std::string network;
  std::shared_ptr<data::Data> data;
  std::int64_t batch = 4;
};

inline std::vector<Case> cases() {
  const auto open = [](const char* name) {
    return std::shared_ptr<data::Data>(data::open_data(name, 3));
  };
  return {{"mlp", open("blobs")},
          {"lenet", std::make_shared<Noise>(backend::Shape{8, 8, 1})},
          {"lenet", std::make_shared<Noise>(backend::Shape{28, 28, 1}), 2},
          {"resnet20", std::make_shared<Noise>(backend::Shape{8, 8, 3}), 8},
          {"tinyssd", open("boxes"), 2},
          {"tinyssd-all-anchors", open("boxes"), 2},
          {"charlstm", open("text"), 2}};
}

inline const backend::Precision& precision_of(std::string_view name) {
  for (const backend::Precision& precision : backend::kPrecisions) {
    if (precision.name == name) return precision;
  }
  throw std::invalid_argument("no such precision");
}

/// A backend with the parameters of a network on it.
struct Run {
  Case of;
  std::unique_ptr<backend::Backend> backend;
  autograd::Parameters parameters;

  Run(Case one, std::unique_ptr<backend::Backend> on, std::string_view precision,
      std::uint64_t seed = 5)
      : of(std::move(one)),
        backend(std::move(on)),
        parameters(*backend, precision_of(precision), seed) {}

  double loss(autograd::Tape& tape) {
    networks::find_network(of.network)
        ->forward(tape, *backend, of.data->batch(0, of.batch), parameters.precision().tensors,
                  *of.data);
    return tape.loss();
  }
  double loss() {
    autograd::Tape tape(*backend, parameters, true);
    return loss(tape);
  }
  double backward(double scale = 1, bool add = false, const autograd::LayerScale& layers = {}) {
    autograd::Tape tape(*backend, parameters, true);
    tape.scale_layers(layers);
    const double value = loss(tape);
    tape.backward(scale, add);
    return value;
  }
  std::map<std::string, Floats> gradients() {
    std::map<std::string, Floats> all;
    for (autograd::Parameter* one : parameters.trained()) {
      all[one->name] = backend->get(one->gradient);
    }
    return all;
  }
};

}  // namespace sim_test
