// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/element_sums.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/reduction/terms.hpp"
#include "analyzers/underflow/layer_inputs.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::reduction {

using Shape = std::vector<std::uint64_t>;
using log::Role;
using underflow::LogFindings;
using underflow::Modules;
using underflow::TensorFindings;

namespace {

/// Number of elements that are held in memory at a time.
constexpr std::size_t kTile = std::size_t{1} << 18;

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

/// A block of addends of a range of sums.
struct ElementSums::Tile {
  std::size_t addend = 0, addends = 0;  ///< first addend, and number of addends
  std::size_t sum = 0, sums = 0;

  std::size_t size() const { return addends * sums; }
  bool holds(std::size_t a) const { return a >= addend && a - addend < addends; }
};

/// Reads addends of sums [first, first + sums) in binary32, in the order [addend][sum].
class ElementSums::Reader {
 public:
  Reader(const ElementSums& of, std::size_t first, std::size_t sums, bool in_order) : of_(of) {
    const std::size_t all = of.layout_.addends(), most = std::max<std::size_t>(1, kTile / sums);
    tile_.sum = first;
    tile_.sums = sums;
    step_ = all <= most || in_order ? std::min(all, most) : 1;
  }

  /// Returns the addends from `a` on, as many as are held.
  std::span<const float> from(std::size_t a) {
    if (!tile_.holds(a)) {
      Tile next = tile_;
      next.addend = a / step_ * step_;
      next.addends = std::min(step_, of_.layout_.addends() - next.addend);
      if (!same_bytes(next)) load(next);
      tile_ = next;
    }
    return std::span<const float>(values_).subspan((a - tile_.addend) * tile_.sums);
  }

 private:
  /// Returns true if the next tile has equal bytes and need not be read: zeros are frequent.
  bool same_bytes(const Tile& next) const {
    return of_.layout_.sums() == 1 && next.addends == tile_.addends &&
           frames::same_bytes(of_.tensor_.view, next.addend, tile_.addend, next.addends);
  }

  void load(const Tile& next) {
    const std::vector<double> elements = of_.elements(next);
    values_.resize(elements.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(of_.addend(elements[i], next.sum + i % next.sums));
    }
  }

  const ElementSums& of_;
  std::size_t step_ = 1;
  Tile tile_;
  std::vector<float> values_;
};

ElementSums::ElementSums(const frames::WholeTensor& tensor, Sum sum, const Layout& layout)
    : tensor_(tensor), sum_(sum), layout_(layout) {
  find_centres();
  std::vector<bool> beyond(layout_.sums());
  for_each_tile([&](const Tile& tile, std::span<const double> addends) {
    for (std::size_t i = 0; i < addends.size(); ++i) {
      const float x = static_cast<float>(addends[i]);
      all_zero_ = all_zero_ && x == 0;
      if (std::isfinite(x)) {
        all_ += std::fabs(static_cast<double>(x));
      } else if (std::isfinite(addends[i])) {
        beyond[tile.sum + i % tile.sums] = true;
      }
    }
  });
  beyond_ = static_cast<std::size_t>(std::count(beyond.begin(), beyond.end(), true));
}

template <class Visit>
void ElementSums::for_each_tile(const Visit& visit) const {
  const std::size_t sums = std::min(layout_.sums(), kTile), step = kTile / sums;
  for (std::size_t a = 0; a < layout_.addends(); a += step) {
    for (std::size_t s = 0; s < layout_.sums(); s += sums) {
      const Tile tile = {a, std::min(step, layout_.addends() - a), s,
                         std::min(sums, layout_.sums() - s)};
      std::vector<double> addends = elements(tile);
      for (std::size_t i = 0; i < addends.size(); ++i) {
        addends[i] = addend(addends[i], tile.sum + i % tile.sums);
      }
      visit(tile, addends);
    }
  }
}

/// Returns the elements of a tile in the order [addend][sum].
std::vector<double> ElementSums::elements(const Tile& tile) const {
  const auto [outer, width, inner, by_width] = layout_;
  if (layout_.sums() == 1) return frames::elements(tensor_.view, tile.addend, tile.addends);
  std::vector<double> to(tile.size());
  // A row of memory has the sums' elements of one index of `outer`.
  const std::size_t row = by_width ? tile.addend / inner : tile.sum;
  const std::size_t end =
      by_width ? (tile.addend + tile.addends - 1) / inner + 1 : tile.sum + tile.sums;
  const std::size_t first = by_width ? tile.sum * inner : tile.addend;
  const std::size_t length = by_width ? tile.sums * inner : tile.addends;
  const std::size_t together = length == width * inner ? end - row : 1;
  for (std::size_t o = row; o < end; o += together) {
    const std::vector<double> x =
        frames::elements(tensor_.view, o * width * inner + first, together * length);
    const double* from = x.data();
    for (std::size_t r = o; r < o + together; ++r) {
      for (std::size_t w = 0; w < length / inner; ++w) {
        for (std::size_t i = 0; i < inner; ++i, ++from) {
          const std::size_t a = by_width ? r * inner + i : first + w;
          const std::size_t sum = by_width ? w : r - tile.sum;
          if (tile.holds(a)) to[(a - tile.addend) * tile.sums + sum] = *from;
        }
      }
    }
  }
  return to;
}

/// Returns the addend for an element.
double ElementSums::addend(double element, std::size_t sum) const {
  switch (sum_) {
    case Sum::variance: return (element - centres_[sum]) * (element - centres_[sum]);
    case Sum::softmax: return std::exp(element - centres_[sum]);
    case Sum::mean_square:
    case Sum::gradient_norm: return element * element;
    case Sum::gradient:
    case Sum::bias_gradient:
    case Sum::mean: break;
  }
  return element;
}

void ElementSums::find_centres() {
  const Sum sum = sum_;
  if (sum != Sum::variance && sum != Sum::softmax) return;
  std::vector<double> found(layout_.sums(), sum == Sum::variance ? 0.0 : -HUGE_VAL);
  sum_ = Sum::mean;  // the elements as they are
  for_each_tile([&](const Tile& tile, std::span<const double> elements) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      double& of = found[tile.sum + i % tile.sums];
      of = sum == Sum::variance ? of + elements[i] : std::max(of, elements[i]);
    }
  });
  sum_ = sum;
  const auto n = static_cast<double>(layout_.addends());
  if (sum == Sum::variance) {
    for (double& x : found) x /= n;
  }
  centres_ = std::move(found);
}

double ElementSums::magnitudes(double largest) const {
  if (largest >= std::numeric_limits<float>::max()) return all_;
  double sum = 0;
  for_each_tile([&](const Tile&, std::span<const double> addends) {
    for (const double x : addends) {
      const double magnitude = std::fabs(static_cast<double>(static_cast<float>(x)));
      if (magnitude <= largest) sum += magnitude;
    }
  });
  return sum;
}

Facts ElementSums::facts(Format format, Order order) const {
  Facts all;
  const std::size_t sums = layout_.sums();
  if (all_zero_) {
    all.elements = sums;
    all.additions = sums * (addends() - 1);
    return all;
  }
  const std::size_t together = sums < kFewSums ? 1 : halfscope::reduction::kBlock;
  frames::in_order<Facts>((sums + together - 1) / together, 0,
                          [&](std::size_t i) {
                            const std::size_t first = i * together;
                            return facts_of(first, std::min(together, sums - first), format, order);
                          },
                          [&](const Facts& some) { all += some; });
  add_beyond(beyond_, addends(), all);
  return all;
}

Facts ElementSums::facts_of(std::size_t first, std::size_t sums, Format format, Order order) const {
  Reader reader(*this, first, sums, order != Order::tree);
  const auto from = [&](std::size_t a) { return reader.from(a); };
  if (layout_.sums() < kFewSums) {
    return halfscope::reduction::sum(format, addends(), from, order).facts;
  }
  return halfscope::reduction::reduce(format, sums, addends(), from, {.order = order});
}

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
