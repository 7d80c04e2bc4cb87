// SPDX-License-Identifier: Apache-2.0
#include "cuda/network_calls.hpp"

#include <stdexcept>
#include <utility>

#include "sim/networks/network.hpp"

namespace halfscope::test {
namespace {

/// Images without content, with one label each.
class Blank final : public sim::data::Data {
 public:
  Blank(sim::backend::Shape shape, std::int64_t classes)
      : shape_(std::move(shape)), classes_(classes) {}
  std::string describe() const override { return "blank images"; }
  std::int64_t classes() const override { return classes_; }
  sim::backend::Shape example() const override { return shape_; }
  sim::data::Batch batch(std::int64_t, std::int64_t size) const override {
    sim::data::Batch made;
    made.shape = {size, shape_[0], shape_[1], shape_[2]};
    made.inputs.resize(static_cast<std::size_t>(sim::backend::elements(made.shape)));
    made.labels.resize(static_cast<std::size_t>(size));
    return made;
  }
  std::vector<sim::data::Batch> held_out(std::int64_t) const override { return {}; }

 private:
  sim::backend::Shape shape_;
  std::int64_t classes_;
};

/// Two microbatches of a step, so that weight gradients are also added.
std::set<ConvolutionCall> calls_of(const char* network_name, const sim::data::Data& data) {
  const sim::networks::Network& network = *sim::networks::find_network(network_name);
  if (const std::string why = network.refuses(data); !why.empty()) throw std::logic_error(why);
  ShapeBackend backend;
  sim::autograd::Parameters parameters(backend, sim::backend::kPrecisions[0], 0);
  for (const bool add : {false, true}) {
    sim::autograd::Tape tape(backend, parameters, true);
    network.forward(tape, backend, data.batch(0, network.batch), Dtype::f32, data);
    tape.backward(1, add);
  }
  return backend.calls;
}

}  // namespace

std::map<std::string, std::set<ConvolutionCall>> network_convolutions() {
  return {{"lenet, 8 x 8", calls_of("lenet", Blank({8, 8, 1}, 10))},
          {"lenet, 28 x 28", calls_of("lenet", Blank({28, 28, 1}, 10))},
          {"resnet20", calls_of("resnet20", Blank({32, 32, 3}, 10))},
          {"tinyssd", calls_of("tinyssd", *sim::data::open_data("boxes", 0))},
          {"resnet50", calls_of("resnet50", Blank({224, 224, 3}, 1000))}};
}

}  // namespace halfscope::test
