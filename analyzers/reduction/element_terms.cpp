// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/element_terms.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "analyzers/underflow/layer_inputs.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::reduction {

using log::Role;
using underflow::LogFindings;
using underflow::Modules;
using underflow::TensorFindings;

namespace {

using Shape = std::vector<std::uint64_t>;

std::size_t product(Shape::const_iterator first, Shape::const_iterator last) {
  return std::accumulate(first, last, std::size_t{1}, std::multiplies<>());
}

/// Returns a layout with one sum per index of an axis.
Layout by_axis(const Shape& shape, std::size_t axis) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  return {product(shape.begin(), at), *at, product(at + 1, shape.end()), true};
}

/// Returns a layout with one sum over the last `dimensions` per index of the others.
Layout by_rows(const Shape& shape, std::size_t dimensions) {
  const auto at = shape.end() - static_cast<std::ptrdiff_t>(std::min(dimensions, shape.size()));
  return {product(shape.begin(), at), product(at, shape.end()), 1, false};
}

/// Returns a layout with one sum per channel; empty if no axis but the batch's has that size.
std::optional<Layout> by_channels(const Shape& shape, std::size_t channels) {
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    if (shape[axis] == channels) return by_axis(shape, axis);
  }
  return std::nullopt;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Shapes of parameters by path, such as "conv1.weight".
class Parameters {
 public:
  explicit Parameters(const LogFindings& log) {
    for (const TensorFindings& t : log.tensors) {
      if (t.role == Role::weight || t.role == Role::weight_grad) {
        shapes_.emplace(underflow::path_of(std::string_view(t.name)), t.shape);
      }
    }
  }
  const Shape* find(const std::string& module, const char* name) const {
    const auto found = shapes_.find(module.empty() ? name : module + "." + name);
    return found == shapes_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Shape, std::less<>> shapes_;
};

/// Returns the layout of a bias's gradient, which sums the output's gradients of each channel.
/// type: the module's class; empty if the log does not have it.
std::optional<Layout> bias_layout(const Shape& gradient, const std::string& module,
                                  std::string_view type, const Parameters& parameters) {
  const Shape* const bias = parameters.find(module, "bias");
  const Shape* const weight = parameters.find(module, "weight");
  if (bias == nullptr || bias->size() != 1 || gradient.size() < 2) return std::nullopt;
  // Without the weight, the class shows a convolution, or else the number of dimensions.
  const bool convolves = weight != nullptr
                             ? weight->size() > 2
                             : has(type, "Conv") || (gradient.size() > 3 && !has(type, "Linear"));
  if (convolves) return by_channels(gradient, bias->front());
  if (gradient.back() != bias->front()) return std::nullopt;
  return by_axis(gradient, gradient.size() - 1);
}

/// Returns the whole number after a part of a text; 0 if there is none.
std::size_t number_after(std::string_view text, std::string_view part) {
  const std::size_t at = text.find(part);
  std::size_t number = 0;
  if (at == std::string_view::npos) return number;
  std::from_chars(text.data() + at + part.size(), text.data() + text.size(), number);
  return number;
}

/// Returns a layout with one sum per example and group of channels.
std::optional<Layout> by_groups(const Shape& input, std::size_t groups) {
  if (groups == 0 || input[1] % groups != 0) return std::nullopt;
  const std::size_t all = product(input.begin() + 1, input.end());
  return Layout{input[0] * groups, all / groups, 1, false};
}

/// Returns the layout of a normalization's means; empty if its text names no known class.
std::optional<Layout> norm_layout(std::string_view text, const Shape& input, const Shape* weight) {
  const std::string_view type = text.substr(0, text.find('('));
  if (input.size() < 2) return std::nullopt;
  if (has(type, "InstanceNorm")) return by_groups(input, input[1]);
  if (has(type, "GroupNorm")) return by_groups(input, number_after(text, "("));
  if (has(type, "LayerNorm") || has(type, "RMSNorm")) {
    return by_rows(input, weight == nullptr ? 1 : weight->size());
  }
  if (!has(type, "BatchNorm") || weight == nullptr || weight->size() != 1) return std::nullopt;
  return by_channels(input, weight->front());
}

/// Returns the layout of a softmax over the last dimension; empty if the text names another one.
std::optional<Layout> softmax_layout(std::string_view text, const Shape& input) {
  const auto rank = static_cast<int>(input.size());
  const std::size_t at = text.find("dim=");
  if (at == std::string_view::npos) {
    return has(text, "Softmax2d") ? std::nullopt : std::optional(by_rows(input, 1));
  }
  int dimension = rank == 2 ? 1 : rank;  // dim=None: the last of two dimensions
  std::from_chars(text.data() + at + 4, text.data() + text.size(), dimension);
  const bool last = dimension == -1 || dimension == rank - 1;
  return last ? std::optional(by_rows(input, 1)) : std::nullopt;
}

std::vector<Sum> norm_sums(std::string_view type) {
  if (has(type, "RMSNorm")) return {Sum::mean_square};
  return {Sum::mean, Sum::variance};
}

}  // namespace

ElementTerms::ElementTerms(const LogFindings& log, bool gradient_norms) {
  const Modules modules(log);
  const Parameters parameters(log);
  const underflow::LayerInputs inputs(log, modules);
  const auto plan = [&](const TensorFindings& t, Sum sum, const std::optional<Layout>& layout) {
    if (layout && layout->sums() > 0 && layout->addends() > 1)
      plans_[t.name].push_back({sum, *layout, t.shape});
  };
  for (const TensorFindings& t : log.tensors) {
    const std::string module = modules.of(t);
    const std::string_view type = modules.class_of(module);
    if (gradient_norms && t.role == Role::weight_grad)
      plan(t, Sum::gradient_norm, by_rows(t.shape, t.shape.size()));
    if (t.role == Role::activation_grad && !has(type, "Norm")) {
      plan(t, Sum::bias_gradient, bias_layout(t.shape, module, type, parameters));
    }
  }
  for (const std::string& module : modules.with_class()) {
    const TensorFindings* const input = inputs.of(module);
    const std::string_view type = modules.class_of(module);
    if (input == nullptr) continue;
    if (has(type, "Softmax")) {
      plan(*input, Sum::softmax, softmax_layout(modules.text_of(module), input->shape));
    }
    if (!has(type, "Norm")) continue;
    const auto layout =
        norm_layout(modules.text_of(module), input->shape, parameters.find(module, "weight"));
    for (const Sum sum : norm_sums(type)) plan(*input, sum, layout);
  }
  const TensorFindings* const logits = inputs.last();  // the loss computes their softmax
  if (logits == nullptr || logits->shape.size() < 2) return;
  if (has(modules.class_of(modules.of(*logits)), "Softmax")) return;
  plan(*logits, Sum::softmax, by_rows(logits->shape, 1));
}

void ElementTerms::take(const frames::WholeStep& step, const frames::Selection& selection,
                        const TakeElements& take, const frames::TakeLoaded& beside) const {
  const auto take_tensor = [&](const frames::WholeTensor& tensor) {
    const auto plans = plans_.find(tensor.name);
    if (plans == plans_.end()) return;
    for (const Plan& plan : plans->second) {
      if (plan.shape != tensor.shape) continue;  // a step with a smaller batch
      take(ElementSums(tensor, plan.sum, plan.layout));
    }
  };
  frames::TensorsOfSteps tensors(selection, take_tensor);
  step.tensors->for_each_name([&](const std::string& name) {
    if (!plans_.contains(name)) return;
    const std::shared_ptr<const log::NamedTensor> tensor = step.tensors->tensor(name);
    tensors.take(step, *tensor, {});
    beside(*tensor);
  });
}

}  // namespace halfscope::analyzers::reduction
