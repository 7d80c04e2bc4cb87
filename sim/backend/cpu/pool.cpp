// SPDX-License-Identifier: Apache-2.0
// Pooling of (N, H, W, C) images without padding. NaN counts as the largest value, as in PyTorch.
#include <limits>

#include "sim/backend/cpu/backend.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

/// The pooling windows of one image; channels are innermost in memory.
struct Windows {
  Windows(const Pool& pool, const Shape& x, const Shape& y)
      : kernel(pool.kernel), stride(pool.stride), w(x[2]), c(x[3]), p(y[1]), q(y[2]) {}
  std::int64_t kernel, stride, w, c, p, q;

  /// Calls visit(offset of the window's output, offset of its first input) in row order.
  template <class Visit>
  void each(Visit visit) const {
    for (std::int64_t i = 0; i < p; ++i) {
      for (std::int64_t j = 0; j < q; ++j) {
        visit((i * q + j) * c, (i * stride * w + j * stride) * c);
      }
    }
  }
  /// Calls visit(offset from the window's first input) for its elements in row order.
  template <class Visit>
  void inside(Visit visit) const {
    for (std::int64_t r = 0; r < kernel; ++r) {
      for (std::int64_t s = 0; s < kernel; ++s) visit((r * w + s) * c);
    }
  }
};

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Returns true if `value` replaces `best`: among equal values or NaNs the first is kept.
bool exceeds(float value, float best) {  // no branch
  return ((value > best) | ((value != value) & (best == best))) != 0;
}

void forward(const Windows& windows, Pool::Kind kind, const float* in, float* out) {
  const auto area = static_cast<float>(windows.kernel * windows.kernel);
  windows.each([&](std::int64_t to, std::int64_t from) {
    float* o = out + to;
    std::fill_n(o, windows.c, kind == Pool::Kind::max ? kLowest : 0.0F);
    windows.inside([&](std::int64_t offset) {
      const float* i = in + from + offset;
      for (std::int64_t c = 0; c < windows.c; ++c) {
        o[c] = kind == Pool::Kind::average ? o[c] + i[c] : exceeds(i[c], o[c]) ? i[c] : o[c];
      }
    });
    if (kind == Pool::Kind::average) {
      for (std::int64_t c = 0; c < windows.c; ++c) o[c] /= area;
    }
  });
}

/// Adds the input's gradient to `out`.
void average_backward(const Windows& windows, const float* up, float* out) {
  const auto area = static_cast<float>(windows.kernel * windows.kernel);
  windows.each([&](std::int64_t to, std::int64_t from) {
    windows.inside([&](std::int64_t offset) {
      for (std::int64_t c = 0; c < windows.c; ++c) out[from + offset + c] += up[to + c] / area;
    });
  });
}

/// Adds the input's gradient to `out`.
void max_backward(const Windows& windows, const float* in, const float* up, float* out) {
  std::vector<float> best(static_cast<std::size_t>(windows.c));
  std::vector<std::int32_t> where(best.size());
  windows.each([&](std::int64_t to, std::int64_t from) {
    std::ranges::fill(best, kLowest);
    std::ranges::fill(where, 0);  // used if all values of the window are -infinity
    windows.inside([&](std::int64_t offset) {
      for (std::size_t c = 0; c < best.size(); ++c) {
        const float value = in[from + offset + static_cast<std::int64_t>(c)];
        const bool larger = exceeds(value, best[c]);
        best[c] = larger ? value : best[c];
        where[c] = larger ? static_cast<std::int32_t>(offset) : where[c];
      }
    });
    for (std::size_t c = 0; c < best.size(); ++c) {
      const auto channel = static_cast<std::int64_t>(c);
      out[from + where[c] + channel] += up[to + channel];
    }
  });
}

}  // namespace

void CpuBackend::pool_forward(const Pool& pool, const Tensor& x, Tensor& y) {
  const Windows windows(pool, x.shape, y.shape);
  const std::int64_t images = x.shape[0], in = x.size() / images, out = y.size() / images;
  const float* from = data(x);
  float* to = data(y);
  const bool exact = pool.kind == Pool::Kind::max && x.dtype == y.dtype;
  parallel(images, [&](std::int64_t n) {
    forward(windows, pool.kind, from + n * in, to + n * out);
    if (!exact) round_values(y.dtype, to + n * out, out);
  });
}

void CpuBackend::pool_backward(const Pool& pool, const Tensor& x, const Tensor& /*y*/,
                               const Tensor& dy, Tensor& dx) {
  const Windows windows(pool, x.shape, dy.shape);
  const std::int64_t images = x.shape[0], in = x.size() / images, out = dy.size() / images;
  const float *from = data(x), *up = data(dy);
  float* to = data(dx);
  parallel(images, [&](std::int64_t n) {
    std::fill_n(to + n * in, in, 0.0F);
    if (pool.kind == Pool::Kind::max) {
      max_backward(windows, from + n * in, up + n * out, to + n * in);
    } else {
      average_backward(windows, up + n * out, to + n * in);
    }
    round_values(dx.dtype, to + n * in, in);
  });
}

}  // namespace halfscope::sim::backend::cpu
