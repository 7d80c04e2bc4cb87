// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/attention_scores.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::analyzers::overflow {

using frames::WholeTensor;
using log::Role;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double up(double x) { return std::nextafter(x, kInfinity); }

/// Words for a query in names, each with its word for a key.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kWords = {
    {{"q", "k"}, {"query", "key"}, {"queries", "keys"}, {"wq", "wk"}}};

bool is_number(std::string_view word) {
  return std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

/// Calls visit(first, word) for every word between these characters.
template <class Visit>
void for_each_word(std::string_view text, std::string_view between, const Visit& visit) {
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(between, first), text.size());
    visit(first, text.substr(first, end - first));
    first = end + 1;
  }
}

/// Returns position and text of a path's last word, without an output's index.
std::pair<std::size_t, std::string_view> last_word(std::string_view path) {
  std::pair<std::size_t, std::string_view> last;
  for_each_word(path, "./", [&](std::size_t first, std::string_view word) {
    if (!is_number(word)) last = {first, word};
  });
  return last;
}

/// A q or a k, and the name of the q that belongs to it.
struct Named {
  bool is_key = false;
  std::string query;
};

/// Returns the q or k if the name has exactly one such word: "q_proj", not "query_key_value".
std::optional<Named> named(std::string_view path) {
  const auto [begins, name] = last_word(path);
  std::vector<Named> found;
  for_each_word(name, "_-", [&, at = begins](std::size_t first, std::string_view word) {
    for (const auto& [query, key] : kWords) {
      if (word != query && word != key) continue;
      std::string of_query(path);
      of_query.replace(at + first, word.size(), query);
      found.push_back({word == key, std::move(of_query)});
    }
  });
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

bool is_normalised(std::string_view query) {
  return last_word(query).second.find("norm") != std::string_view::npos;
}

/// Returns an upper bound of the sum of squares of any `run` neighbouring elements (at most all).
/// Prefix sums never fall, so each has a relative error of at most its number of operations in
/// units of 2^-53.
double largest_square(const std::vector<double>& row, std::size_t run) {
  std::vector<double> sums(row.size() + 1, 0.0);
  for (std::size_t i = 0; i < row.size(); ++i) sums[i + 1] = sums[i] + row[i] * row[i];
  run = std::min(run, row.size());
  double largest = 0;
  for (std::size_t end = run; end <= row.size(); ++end) {
    largest = std::max(largest, sums[end] - sums[end - run]);
  }
  return largest + sums.back() * static_cast<double>(row.size() + 4) * 0x1p-51;
}

/// Position of a tensor's rows: elements [outer][width][inner]; `run` elements may be one head.
struct Layout {
  std::size_t outer = 1, width = 1, inner = 1, run = kLargestHead;
};

Layout layout_of(const std::vector<std::uint64_t>& shape, bool channels_second) {
  Layout rows;
  if (shape.empty()) return rows;
  const std::size_t axis = channels_second && shape.size() > 1 ? 1 : shape.size() - 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (i < axis ? rows.outer : i > axis ? rows.inner : rows.width) *= shape[i];
  }
  if (channels_second) rows.run = rows.width;  // images have one head
  return rows;
}

/// Returns the norm of the longest head; empty if a value is not finite, so that no bound exists.
std::optional<double> longest_norm(const TensorView& view, const Layout& rows) {
  double largest = 0;
  std::vector<double> row(rows.width);
  for (std::size_t o = 0; o < rows.outer; ++o) {
    const std::vector<double> block =
        frames::elements(view, o * rows.width * rows.inner, rows.width * rows.inner);
    for (std::size_t i = 0; i < rows.inner; ++i) {
      for (std::size_t c = 0; c < rows.width; ++c) row[c] = block[c * rows.inner + i];
      const double square = largest_square(row, rows.run);
      if (!std::isfinite(square)) return std::nullopt;
      largest = std::max(largest, square);
    }
  }
  return largest > 0 ? up(std::sqrt(largest)) : 0.0;
}

frames::CountedRows::Longest longest_of(const WholeTensor& tensor, const Layout& rows) {
  const double norm = longest_norm(tensor.view, rows).value_or(kInfinity);
  return {norm > 0 ? up(norm / tensor.scale) : 0.0, rows.width, rows.run >= rows.width};
}

/// Returns true if a weight's shape is that of a convolution: out, in, and the kernel's extents.
bool is_of_convolution(const underflow::TensorFindings& tensor) {
  return tensor.role == Role::weight && tensor.shape.size() > 2;
}

}  // namespace

double AttentionScores::at_most() const {
  const double product = query_norm * key_norm;
  return product > 0 ? up(product) : 0.0;
}

bool is_query_or_key(std::string_view path) { return named(path).has_value(); }

void for_each_query_and_key(const frames::WholeStep& step, const frames::Selection& selection,
                            const frames::WholeVisitor& visit,
                            const std::function<void(const log::NamedTensor&)>& beside) {
  frames::TensorsOfSteps tensors(selection, visit);
  step.tensors->for_each_name([&](const std::string& name) {
    const bool wanted = is_query_or_key(name) && step.role_of(selection, name) == Role::activation;
    if (!wanted) return;
    const auto tensor = step.tensors->tensor(name);
    tensors.take(step, *tensor, {});
    beside(*tensor);
  });
}

std::optional<frames::CountedRows> rows_of(const WholeTensor& tensor, bool channels_second) {
  if (tensor.role != Role::activation || tensor.view.count == 0 || !is_query_or_key(tensor.name))
    return {};
  frames::CountedRows rows{
      tensor.name, tensor.step, longest_of(tensor, layout_of(tensor.shape, false)), {}};
  if (channels_second) rows.channels_second = longest_of(tensor, layout_of(tensor.shape, true));
  return rows;
}

void ScoreBounds::begin(const underflow::LogFindings& log) {
  log_ = log.name;
  convolutions_.clear();
  if (std::ranges::none_of(log.tensors, is_of_convolution)) return;
  const underflow::Modules modules(log);
  for (const underflow::TensorFindings& tensor : log.tensors) {
    if (is_of_convolution(tensor)) convolutions_.insert(modules.of(tensor));
  }
}

bool ScoreBounds::is_convolution(std::string_view name) const {
  return convolutions_.contains(underflow::path_of(name));
}

void ScoreBounds::take(const WholeTensor& tensor) {
  if (const auto rows = rows_of(tensor, is_convolution(tensor.name))) take(*rows);
}

void ScoreBounds::take(const frames::CountedRows& rows) {
  const std::optional<Named> part = named(rows.name);
  if (!part) return;
  const bool second = rows.channels_second && is_convolution(rows.name);
  Pair& pair = pairs_[{log_, part->query, rows.step}];
  Longest& longest = part->is_key ? pair.key : pair.query;
  const auto& found = second ? *rows.channels_second : rows.features_last;
  if (longest.name.empty() || !(found.norm <= longest.norm)) longest = {found, rows.name};
}

std::vector<AttentionScores> ScoreBounds::finish(Format target) && {
  std::vector<AttentionScores> all;
  std::set<std::pair<std::string, std::string>> normalised;  // log, attention
  const auto attention = [](const std::string& log, const std::string& query) {
    return std::pair(log, query.substr(0, last_word(query).first));
  };
  for (const auto& [at, pair] : pairs_) {
    if (pair.query.name.empty() || pair.key.name.empty()) continue;
    const auto& [log, query, step] = at;
    if (is_normalised(query)) normalised.insert(attention(log, query));
    if (!std::isfinite(pair.query.norm) || !std::isfinite(pair.key.norm)) continue;
    AttentionScores found{log, pair.query.name, pair.key.name, step};
    found.query_norm = pair.query.norm;
    found.key_norm = pair.key.norm;
    found.width = pair.query.width;
    found.by_head = !pair.query.whole || !pair.key.whole;
    if (all.empty() || all.back().log != log || all.back().query != found.query) {
      all.push_back(std::move(found));
    } else if (found.at_most() > all.back().at_most()) {
      all.back() = std::move(found);
    }
  }
  // If q or k is also normalised, only the normalised one is used for scores.
  std::erase_if(all, [&](const AttentionScores& s) {
    return !is_normalised(s.query) && normalised.contains(attention(s.log, s.query));
  });
  const double limit = to_double(boundaries(target).overflow);
  const double most = to_double(target, target.largest_finite());
  for (AttentionScores& s : all) {
    s.can_overflow = s.at_most() >= limit;
    const double root = s.at_most() / most;
    if (s.can_overflow) s.enough_head = static_cast<std::uint64_t>(std::ceil(root * root));
  }
  return all;
}

}  // namespace halfscope::analyzers::overflow
