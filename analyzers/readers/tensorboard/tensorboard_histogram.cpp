// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensorboard/tensorboard_histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "halfscope/log/tensor_value.hpp"

namespace halfscope::analyzers::readers::tensorboard {

using common::Histogram;

namespace {

using log::proto::HistogramProto;
using log::proto::TensorProto;

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The default edges of torch, tensorboardX and TensorFlow: zero, and with both signs 1e-12 times
/// powers of 1.1 up to 1e20, each computed from the one before by a rounded multiplication.
/// TensorFlow also has the largest number (torch/utils/tensorboard/writer.py,
/// tensorflow/core/lib/histogram/histogram.cc).
const std::vector<double>& default_edges() {
  static const std::vector<double> edges = [] {
    std::vector<double> all = {0.0};
    for (double v = 1e-12; v < 1e20; v *= 1.1) all.insert(all.end(), {v, -v});
    std::sort(all.begin(), all.end());
    return all;
  }();
  return edges;
}

bool are_default(const std::vector<double>& edges) {
  const std::vector<double>& all = default_edges();
  return std::all_of(edges.begin(), edges.end(), [&](double edge) {
    return std::abs(edge) >= kLargest || std::binary_search(all.begin(), all.end(), edge);
  });
}

/// Adds the outermost buckets of the default edges. Writers omit empty buckets at the ends.
void restore_outer_edges(Histogram& h) {
  const double outermost = default_edges().back();
  if (h.edges.front() > -outermost) {
    h.edges.insert(h.edges.begin(), -outermost);
    h.counts.insert(h.counts.begin(), 0);
  }
  if (h.edges.back() < outermost) {
    h.edges.push_back(outermost);
    h.counts.push_back(0);
  }
}

/// A bucket's left edge is the limit of the bucket before it. The first bucket has no left edge and
/// holds -infinity too; if it is empty, only its limit is used.
Histogram buckets_of(const HistogramProto& proto) {
  if (proto.bucket_limit_size() != proto.bucket_size() || proto.bucket_size() == 0) {
    throw std::invalid_argument(
        fmt::format("{} bucket limits and {} buckets, expected as many, and one",
                    proto.bucket_limit_size(), proto.bucket_size()));
  }
  Histogram h;
  const bool first_is_empty = proto.bucket(0) == 0;
  if (!first_is_empty) h.edges.push_back(-kInfinity);
  h.edges.insert(h.edges.end(), proto.bucket_limit().begin(), proto.bucket_limit().end());
  h.counts.assign(proto.bucket().begin() + (first_is_empty ? 1 : 0), proto.bucket().end());
  if (h.counts.empty()) h.last_closed = false;
  return h;
}

/// Returns true if the writer omitted min and max, which then read as 0. If all values are 0, one
/// bucket has them and min and max are set.
bool is_unset(double min, double max, const Histogram& h) {
  if (min != 0 || max != 0) return false;
  std::size_t occupied = 0;
  for (std::size_t i = 0; i < h.counts.size(); ++i) {
    if (h.counts[i] == 0) continue;
    const bool holds_zero = h.edges[i] <= 0 && h.edges[i + 1] >= 0;
    if (++occupied > 1 || !holds_zero) return true;
  }
  return false;
}

}  // namespace

BoundedTable table_of(const HistogramProto& proto) {
  Histogram h = buckets_of(proto);
  if (are_default(h.edges)) restore_outer_edges(h);
  const bool any = std::any_of(h.counts.begin(), h.counts.end(), [](double n) { return n != 0; });
  if (proto.num() != 0 || !any) h.total = proto.num();
  if (!is_unset(proto.min(), proto.max(), h)) {
    h.min = proto.min();
    h.max = proto.max();
  }
  return common::table_of(h);
}

BoundedTable table_of_run_log(const HistogramProto& proto) {
  const Histogram written = buckets_of(proto);
  Histogram h;
  h.edges.push_back(-kLargest);
  const auto add = [&h](double right, double count) {
    h.edges.push_back(right);
    h.counts.push_back(count);
  };
  // In binary64, (a, b] is [next after a, next after b).
  const auto edge = [](double x) { return x < 0 ? std::nextafter(x, kInfinity) : x; };
  add(edge(written.edges.front()), 0);
  for (std::size_t i = 0; i < written.counts.size(); ++i) {
    const double right = written.edges[i + 1];
    if (written.edges[i] < 0 && right > 0) {
      add(0, 0);
      add(0, written.counts[i]);
      add(right, 0);
    } else {
      add(edge(right), written.counts[i]);
    }
  }
  if (h.edges.back() < kLargest) add(kLargest, 0);
  h.total = proto.num();
  BoundedTable table = common::table_of(h);
  const double largest = std::max(std::abs(proto.min()), std::abs(proto.max()));
  if (largest > 0 && std::isfinite(largest)) table.limit_largest(magnitude_of(largest));
  return table;
}

namespace {

Histogram buckets_of(const std::vector<double>& rows) {
  Histogram h;
  for (std::size_t i = 0; i < rows.size(); i += 3) {
    const double left = rows[i], right = rows[i + 1];
    if (h.edges.empty()) {
      h.edges.push_back(left);
    } else if (h.edges.back() != left) {  // a gap between buckets is an empty one
      h.edges.push_back(left);
      h.counts.push_back(0);
    }
    h.edges.push_back(right);
    h.counts.push_back(rows[i + 2]);
  }
  return h;
}

/// The largest distance of a value from its bucket. TensorFlow computes the bucket from the
/// distance to the least value, with 4 rounded operations, and the edges separately
/// (tensorboard/plugins/histogram/summary_v2.py). 32 half units of the larger end exceed both
/// errors.
double rounding_slack(const Histogram& h) {
  return 0x1p-48 * std::max(std::abs(h.edges.front()), std::abs(h.edges.back()));
}

bool is_linear(const Histogram& h, double slack) {
  const double first = h.edges.front(), range = h.edges.back() - first;
  const auto buckets = static_cast<double>(h.counts.size());
  for (std::size_t i = 0; i < h.edges.size(); ++i) {
    const double expected = first + range * (static_cast<double>(i) / buckets);
    if (!(std::abs(h.edges[i] - expected) <= slack)) return false;
  }
  return true;
}

/// The table if an edge is infinite or NaN, because a value is. The buckets then count the finite
/// values, without their magnitudes; the other values are not counted.
BoundedTable table_without_edges(const Histogram& h) {
  double sum = 0;
  for (const double count : h.counts) sum += count;
  Histogram anywhere;
  anywhere.edges = {-kLargest, kLargest};
  anywhere.counts = {sum};
  anywhere.nonfinite_known = false;
  BoundedTable table = common::table_of(anywhere);
  const Magnitude beyond_finite{std::numeric_limits<double>::max_exponent, 0};
  table.add({beyond_finite, std::nullopt, true, 1});
  return table;
}

}  // namespace

BoundedTable table_of(const TensorProto& tensor) {
  const auto rows = log::rows_of(tensor, 3);
  if (!rows) {
    throw std::invalid_argument(
        "its tensor is not a histogram, expected rows of left edge, right edge and count as "
        "DT_DOUBLE");
  }
  if (rows->empty()) return {};
  Histogram h = buckets_of(*rows);
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(h.edges.begin(), h.edges.end(), finite)) return table_without_edges(h);
  h.slack = rounding_slack(h);
  if (is_linear(h, h.slack)) {  // the writer made them between the least and the largest value
    h.min = h.edges.front();
    h.max = h.edges.back();
  }
  return common::table_of(h);
}

}  // namespace halfscope::analyzers::readers::tensorboard
