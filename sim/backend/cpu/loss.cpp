// SPDX-License-Identifier: Apache-2.0
// Embeddings and losses. A loss is computed in binary32 within a row, and summed over rows in order
// in binary64. Its gradient is computed and multiplied in binary32 and rounded once, as in a fused
// kernel.
#include <cmath>
#include <numeric>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cpu/backend.hpp"
#include "sim/backend/cpu/transcendental.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

constexpr std::int64_t kLossRows = 64;

/// Returns -log(softmax(z)[label]); writes its gradient times `factor`.
float cross_entropy_row(const float* z, std::int64_t classes, std::int64_t label, float factor,
                        float* gradient) {
  const float largest = *std::max_element(z, z + classes);
  for (std::int64_t k = 0; k < classes; ++k) gradient[k] = z[k] - largest;
  const float of_label = gradient[label];
  exponentials(gradient, gradient, classes);
  const float sum = std::accumulate(gradient, gradient + classes, 0.0F);
  for (std::int64_t k = 0; k < classes; ++k) {
    gradient[k] = (gradient[k] / sum - (k == label ? 1.0F : 0.0F)) * factor;
  }
  return std::log(sum) - of_label;
}

double in_order(const std::vector<float>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

}  // namespace

void CpuBackend::embed_forward(std::span<const std::int32_t> ids, const Tensor& table, Tensor& y) {
  require_rows("embedding", y, ids.size());
  require_range("row", ids, 0, table.shape[0]);
  const std::int64_t width = table.shape[1];
  const float* rows = data(table);
  float* out = data(y);
  for (const std::int32_t id : ids) out = std::copy_n(rows + id * width, width, out);
  if (table.dtype != y.dtype) round(y);
}

void CpuBackend::embed_backward(std::span<const std::int32_t> ids, const Tensor& dy, Tensor& dtable,
                                bool add) {
  require_rows("embedding", dy, ids.size());
  require_range("row", ids, 0, dtable.shape[0]);
  const std::int64_t width = dtable.shape[1];
  const float* up = data(dy);
  float* out = data(dtable);
  if (!add) std::fill_n(out, dtable.size(), 0.0F);
  for (const std::int32_t id : ids) {
    for (std::int64_t j = 0; j < width; ++j) out[id * width + j] += up[j];
    up += width;
  }
  round(dtable);
}

double CpuBackend::softmax_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                                         double factor, Tensor& dlogits) {
  require_rows("cross entropy", logits, labels.size());
  require_rows("cross entropy", dlogits, labels.size());
  const std::int64_t classes = logits.shape.back();
  require_range("label", labels, -1, classes);
  const float* z = data(logits);
  float* out = data(dlogits);
  const auto by = static_cast<float>(factor);
  std::vector<float> losses(labels.size());
  parallel_parts(std::ssize(labels), kLossRows, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t m = first; m < first + count; ++m) {
      const std::int64_t label = labels[at(m)];
      if (label < 0) {
        std::fill_n(out + m * classes, classes, 0.0F);
      } else {
        losses[at(m)] = cross_entropy_row(z + m * classes, classes, label, by, out + m * classes);
      }
    }
    round_values(dlogits.dtype, out + first * classes, count * classes);
  });
  return in_order(losses);
}

double CpuBackend::smooth_l1(const Tensor& x, std::span<const float> target,
                             std::span<const std::uint8_t> mask, double factor, Tensor& dx) {
  require_rows("smooth L1", x, mask.size());
  require_rows("smooth L1", dx, mask.size());
  require_targets(target, x);
  const std::int64_t width = x.shape.back();
  const float* in = data(x);
  float* out = data(dx);
  const auto by = static_cast<float>(factor);
  std::vector<float> losses(target.size());
  parallel_parts(x.size(), kPart, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) {
      out[i] = 0;
      if (mask[at(i / width)] == 0) continue;
      const float d = in[i] - target[at(i)], size = std::abs(d);
      losses[at(i)] = size < 1.0F ? 0.5F * d * d : size - 0.5F;
      out[i] = std::clamp(d, -1.0F, 1.0F) * by;
    }
    round_values(dx.dtype, out + first, count);
  });
  return in_order(losses);
}

}  // namespace halfscope::sim::backend::cpu
