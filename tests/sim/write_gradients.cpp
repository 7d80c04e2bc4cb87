// SPDX-License-Identifier: Apache-2.0
// Writes what a network computes of one batch, for a judge in another language
// (tests/python/test_simulate_gradients.py):
//   write_gradients NETWORK OUT.safetensors [PRECISION [SCALE [BATCHES [SIZE]]]]
// Tensors: weight/* and weight_grad/* in PyTorch's layout, activation/* and activation_grad/* as
// they are (N, H, W, C), gradients times SCALE; of each batch inputs, labels or ids, boxes as
// (N, boxes, 5) with class -1 where there is none. Metadata: loss. NETWORK `exact` is one whose
// sums are exact in binary32, so that every order of adding gives the same bits.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "halfscope/log/safetensors.hpp"
#include "sim/backend/random.hpp"
#include "sim/backend/tensor_bits.hpp"
#include "sim/networks/network.hpp"

namespace {

using namespace halfscope;
using namespace halfscope::sim;

constexpr std::uint64_t kSeed = 5;

/// Integers from -most to most over `of`.
std::vector<float> integers(const std::string& name, std::int64_t count, int most, float of) {
  backend::Random random(kSeed, name);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto drawn = random.below(2 * static_cast<std::uint32_t>(most) + 1);
    values.push_back(static_cast<float>(static_cast<int>(drawn) - most) / of);
  }
  return values;
}

/// What goes into the file.
class Output {
 public:
  void add(const std::string& name, const backend::Shape& shape, const std::vector<float>& values) {
    backend::TensorBits bits{shape, Dtype::f32,
                             std::vector<std::byte>(values.size() * sizeof(float))};
    if (!values.empty()) std::memcpy(bits.bytes.data(), values.data(), bits.bytes.size());
    add(name, std::move(bits));
  }
  void add(const std::string& name, backend::TensorBits bits) {
    names_.push_back(name);
    tensors_.push_back(std::move(bits));
  }

  void write(const std::string& path, double loss) const {
    std::vector<log::NamedTensor> named;
    for (std::size_t i = 0; i < names_.size(); ++i) named.push_back(tensors_[i].named(names_[i]));
    log::write_safetensors(path, named, {{"loss", fmt::format("{}", loss)}});
  }

 private:
  std::vector<std::string> names_;
  std::vector<backend::TensorBits> tensors_;
};

void add_batch(const std::string& prefix, const data::Batch& batch, Output& out) {
  const auto numbers = [](const std::vector<std::int32_t>& integers) {
    return std::vector<float>(integers.begin(), integers.end());
  };
  if (!batch.inputs.empty()) out.add(prefix + "inputs", batch.shape, batch.inputs);
  const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
  if (!batch.ids.empty()) out.add(prefix + "ids", {count(batch.ids)}, numbers(batch.ids));
  if (!batch.labels.empty()) {
    out.add(prefix + "labels", {count(batch.labels)}, numbers(batch.labels));
  }
  if (batch.boxes.empty()) return;
  std::size_t most = 0;
  for (const auto& boxes : batch.boxes) most = std::max(most, boxes.size());
  std::vector<float> all;
  for (const auto& boxes : batch.boxes) {
    for (std::size_t i = 0; i < most; ++i) {
      const data::Box box = i < boxes.size() ? boxes[i] : data::Box{0, 0, 0, 0, -1};
      all.insert(all.end(),
                 {box.left, box.top, box.right, box.bottom, static_cast<float>(box.label)});
    }
  }
  out.add(prefix + "boxes", {count(batch.boxes), static_cast<std::int64_t>(most), 5}, all);
}

/// Convolution, ReLU, pool, convolution, ReLU, dense, smooth L1: inputs and weights are small
/// integers over powers of two, and every gradient of the loss is 1 or -1. The largest sum is below
/// 2^24 of its units (18 * 16 * 4; 36 * 1160 * 3 over 64; 64 * 1960 * 64 * 2 over 4096; in the
/// backward pass fewer), so binary32 adds without rounding.
class Exact {
 public:
  Exact() {
    batch_.shape = {4, 8, 8, 2};
    batch_.inputs = integers("inputs", backend::elements(batch_.shape), 16, 1);
  }

  const data::Batch& batch() const { return batch_; }

  void forward(autograd::Tape& tape, backend::Backend& backend, Dtype tensors) const {
    backend::Tensor x = backend.make(batch_.shape, tensors);
    backend.set(x, batch_.inputs);
    autograd::Tape::Value y = tape.relu("relu1", tape.conv("conv1", tape.input(x), 4, {}));
    y = tape.pool("pool1", y, {});
    y = tape.relu("relu2", tape.conv("conv2", y, 4, {}));
    y = tape.dense("fc", y, 4);
    std::vector<float> target = integers("target", 16, 8, 1);
    for (float& value : target) value = value < 0 ? -0x1p20F : 0x1p20F;  // far away
    tape.smooth_l1("fc", y, target, std::vector<std::uint8_t>{1, 1, 0, 1}, 1);
  }

  static void set_weights(backend::Backend& backend, autograd::Parameters& parameters) {
    for (autograd::Parameter* const parameter : parameters.trained()) {
      const std::string& name = parameter->name;
      const bool first = name.starts_with("conv1"), last = name.starts_with("fc");
      const auto values = integers(name, parameter->weight.size(),
                                   first  ? 4
                                   : last ? 2
                                          : 3,
                                   first ? 1.0F : 64.0F);
      backend.set(parameter->updated(), values);
      if (parameter->master) backend.copy(parameter->master, parameter->weight);
    }
  }

 private:
  data::Batch batch_;
};

struct Request {
  std::string network, path;
  const backend::Precision* precision = &backend::kPrecisions.front();
  double scale = 1;
  std::int64_t batches = 1, size = 8;
};

/// A pass over the batch of `forward`, and all that is seen in it.
template <class Forward>
void pass(const Request& request, backend::Backend& backend, autograd::Parameters& parameters,
          const Forward& forward, Output& out) {
  for (autograd::Parameter* const parameter : parameters.trained()) {
    out.add("weight/" + parameter->name,
            backend::torch_layout(backend::bits_of(backend, parameter->updated())));
  }
  autograd::Tape tape(backend, parameters, true);
  tape.watch([&](log::Role role, const std::string& name, const backend::Tensor& tensor, double) {
    backend::TensorBits bits = backend::bits_of(backend, tensor);
    if (role == log::Role::weight_grad) bits = backend::torch_layout(std::move(bits));
    out.add(fmt::format("{}/{}", log::name_of(role), name), std::move(bits));
  });
  forward(tape);
  tape.backward(request.scale, false);
  out.write(request.path, tape.loss());
}

void write_exact(const Request& request, backend::Backend& backend,
                 autograd::Parameters& parameters, Output& out) {
  const Exact network;
  const Dtype tensors = request.precision->tensors;
  autograd::Tape first(backend, parameters, false);
  network.forward(first, backend, tensors);
  Exact::set_weights(backend, parameters);
  add_batch("batch-0/", network.batch(), out);
  pass(
      request, backend, parameters,
      [&](autograd::Tape& tape) { network.forward(tape, backend, tensors); }, out);
}

void write_network(const Request& request, backend::Backend& backend,
                   autograd::Parameters& parameters, Output& out) {
  const networks::Network* const network = networks::find_network(request.network);
  if (network == nullptr) throw std::invalid_argument("no network is called " + request.network);
  const auto data = data::open_data(std::string(network->data), kSeed);
  const Dtype tensors = request.precision->tensors;
  const data::Batch batch = data->batch(0, request.size);
  for (std::int64_t i = 0; i < request.batches; ++i) {
    add_batch(fmt::format("batch-{}/", i), data->batch(i, request.size), out);
  }
  autograd::Tape first(backend, parameters, false);
  network->forward(first, backend, batch, tensors, *data);
  pass(
      request, backend, parameters,
      [&](autograd::Tape& tape) { network->forward(tape, backend, batch, tensors, *data); }, out);
}

Request request_of(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments.size() > 6) {
    throw std::invalid_argument(
        "wanted NETWORK OUT.safetensors [PRECISION [SCALE [BATCHES [SIZE]]]]");
  }
  Request request;
  request.network = arguments[0];
  request.path = arguments[1];
  if (arguments.size() > 2) {
    request.precision =
        std::ranges::find(backend::kPrecisions, arguments[2], &backend::Precision::name);
    if (request.precision == backend::kPrecisions.end()) {
      throw std::invalid_argument("no such precision");
    }
  }
  if (arguments.size() > 3) request.scale = std::stod(arguments[3]);
  if (arguments.size() > 4) request.batches = std::stoll(arguments[4]);
  if (arguments.size() > 5) request.size = std::stoll(arguments[5]);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Request request = request_of({argv + 1, argv + argc});
    const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
    autograd::Parameters parameters(*backend, *request.precision, kSeed);
    Output out;
    if (request.network == "exact") {
      write_exact(request, *backend, parameters, out);
    } else {
      write_network(request, *backend, parameters, out);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "write_gradients: {}\n", error.what());
    return 1;
  }
}
