// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/terms.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/underflow/modules.hpp"

namespace halfscope::analyzers::reduction {

using frames::WholeStep;

namespace {

/// Number of elements that are processed at once: 512 MiB for 512 ranks.
constexpr std::size_t kPart = std::size_t{1} << 18;

/// The local gradient of one rank: `microbatches` with `elements` each.
struct Local {
  std::shared_ptr<const log::NamedTensor> tensor;
  std::size_t microbatches = 1, elements = 0;

  /// Returns the shape of the weight.
  std::vector<std::uint64_t> shape() const {
    return {tensor->shape.begin() + (microbatches > 1 ? 1 : 0), tensor->shape.end()};
  }

  std::vector<double> part(std::size_t microbatch, std::size_t first, std::size_t n) const {
    return frames::elements(tensor->view, microbatch * elements + first, n);
  }

  std::vector<double> sum(std::size_t first, std::size_t n) const {
    std::vector<double> sums(n);
    for (std::size_t m = 0; m < microbatches; ++m) {
      const std::vector<double> values = part(m, first, n);
      for (std::size_t i = 0; i < n; ++i) sums[i] += values[i];
    }
    return sums;
  }
};

/// Returns the number of microbatches of a step. If there are several, they are the first
/// dimension; the shape of the gradient or of the weight shows that, or else the scalars.
std::size_t microbatches_of(const WholeStep& step, const log::NamedTensor& local) {
  const std::string path(underflow::path_of(std::string_view(local.name)));
  if (local.shape.empty()) return 1;
  for (const char* const role : {"weight_grad/", "weight/"}) {
    if (const auto other = step.tensors->outline(role + path)) {
      return other->shape.size() + 1 == local.shape.size() ? local.shape.front() : 1;
    }
  }
  std::size_t count = 0;
  while (step.scalars != nullptr &&
         step.scalars->more.contains("max_abs/weight_grad/microbatch-" + std::to_string(count))) {
    ++count;
  }
  return count > 1 && local.shape.front() == count ? count : 1;
}

std::optional<Local> local_of(const WholeStep& step, const std::string& name) {
  Local local{step.tensors->tensor(name)};
  if (!local.tensor) return std::nullopt;
  local.microbatches = microbatches_of(step, *local.tensor);
  local.elements = local.tensor->view.count / std::max<std::size_t>(1, local.microbatches);
  return local;
}

/// Calls `take` for part after part; addends(i, first, n) returns the i-th of `count` addends.
template <class Addends>
void take_parts(Terms terms, std::size_t count, const Addends& addends, const TakeTerms& take) {
  for (std::size_t first = 0; first < terms.of; first += kPart) {
    const std::size_t n = std::min(kPart, terms.of - first);
    std::vector<float> values;
    BeyondBinary32 beyond;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<float> addend = to_binary32(addends(i, first, n), n, beyond);
      values.insert(values.end(), addend.begin(), addend.end());
    }
    terms.first = first;
    terms.beyond = beyond.size();
    terms.values = values;
    terms.addends = count;
    take(terms);
  }
}

bool has(std::span<const Over> asked, Over over) {
  return std::ranges::find(asked, over) != asked.end();
}

/// Returns false if the tensor's shape differs between ranks.
bool take_tensor(std::span<const WholeStep> ranks, const std::string& name,
                 std::span<const Over> asked, const TakeTerms& take) {
  std::vector<Local> locals;
  for (const WholeStep& step : ranks) {
    if (auto local = local_of(step, name)) locals.push_back(std::move(*local));
  }
  for (const Local& local : locals) {
    if (local.microbatches < 2 || !has(asked, Over::microbatches)) continue;
    const auto microbatch = [&](std::size_t i, std::size_t first, std::size_t n) {
      return local.part(i, first, n);
    };
    take_parts({.name = name, .over = Over::microbatches, .of = local.elements}, local.microbatches,
               microbatch, take);
  }
  if (locals.size() < 2 || !has(asked, Over::ranks)) return true;
  const bool alike = std::ranges::all_of(
      locals, [&](const Local& local) { return local.shape() == locals.front().shape(); });
  if (!alike) return false;
  const auto rank = [&](std::size_t i, std::size_t first, std::size_t n) {
    return locals[i].sum(first, n);
  };
  take_parts({.name = name, .over = Over::ranks, .of = locals.front().elements}, locals.size(),
             rank, take);
  return true;
}

}  // namespace

void add_beyond(std::size_t beyond, std::size_t addends, Facts& facts) {
  facts.nonfinite -= beyond;
  facts.elements += beyond;
  facts.overflow += beyond;
  facts.additions += beyond * (addends - 1);
}

std::vector<float> to_binary32(std::span<const double> addends, std::size_t sums,
                               BeyondBinary32& beyond) {
  std::vector<float> values(addends.begin(), addends.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isinf(values[i]) && std::isfinite(addends[i])) beyond.insert(i % sums);
  }
  return values;
}

std::set<std::string> take_gradients(std::span<const WholeStep> ranks,
                                     const frames::Selection& selection,
                                     std::span<const Over> asked, const TakeTerms& take) {
  std::set<std::string> names, differ;
  for (const WholeStep& rank : ranks) {
    rank.tensors->for_each_name([&](const std::string& name) {
      const bool local = rank.role_of(selection, name) == log::Role::local_weight_grad;
      if (local && frames::selects(selection, name)) names.insert(name);
    });
  }
  for (const std::string& name : names) {
    if (!take_tensor(ranks, name, asked, take)) differ.insert(name);
  }
  return differ;
}

}  // namespace halfscope::analyzers::reduction
