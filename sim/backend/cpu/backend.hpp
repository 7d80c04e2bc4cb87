// SPDX-License-Identifier: Apache-2.0
// The backend on the processor. Each group of operations is defined in a file of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/backend/backend.hpp"
#include "sim/backend/cpu/memory.hpp"
#include "sim/backend/cpu/store.hpp"

namespace halfscope::sim::backend::cpu {

class CpuBackend final : public Backend {
 public:
  /// `threads`: number of threads; 0 means one per hardware thread.
  explicit CpuBackend(Accumulation accumulation, int threads = 0);
  ~CpuBackend() override;

  // backend.cpp
  std::string describe() const override;
  Tensor make(const Shape& shape, Dtype dtype) override;
  void set(Tensor& to, std::span<const float> values) override;
  std::vector<float> get(const Tensor& from) override;
  void copy(const Tensor& from, Tensor& to) override;
  void fill(Tensor& to, float value) override;
  GradientFacts facts(std::span<const Tensor> gradients) override;
  BinadeTable count(const Tensor& tensor) override;
  Moments moments(const Tensor& tensor) override;

  // convolution.cpp
  void conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w, const Tensor& b,
                    Tensor& y) override;
  void conv_data_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                          Tensor& dx) override;
  void conv_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy, Tensor& dw,
                            bool add) override;

  // dense.cpp
  void dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) override;
  void dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) override;
  void dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw, bool add) override;
  void bias_gradient(const Tensor& dy, Tensor& db, bool add) override;

  // batch_norm.cpp
  void batch_norm_forward(const Tensor& x, BatchNormParameters& parameters, bool inference,
                          BatchNormSaved& saved, Tensor& y) override;
  void batch_norm_backward(const Tensor& x, const Tensor& dy, const BatchNormParameters& parameters,
                           const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma, Tensor& dbeta,
                           bool add) override;

  // pool.cpp
  void pool_forward(const Pool& pool, const Tensor& x, Tensor& y) override;
  void pool_backward(const Pool& pool, const Tensor& x, const Tensor& y, const Tensor& dy,
                     Tensor& dx) override;

  // activation.cpp
  void relu_forward(const Tensor& x, Tensor& y) override;
  void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) override;
  void add(const Tensor& a, const Tensor& b, Tensor& y) override;
  void multiply(const Tensor& x, double factor, Tensor& y) override;
  void join(std::span<const Tensor> parts, Tensor& y) override;
  void split(const Tensor& dy, std::span<Tensor> parts) override;

  // lstm.cpp
  void lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c, Tensor& h) override;
  void lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c, const Tensor& dh,
                     Tensor& dc, Tensor& dgates) override;

  // loss.cpp
  void embed_forward(std::span<const std::int32_t> ids, const Tensor& table, Tensor& y) override;
  void embed_backward(std::span<const std::int32_t> ids, const Tensor& dy, Tensor& dtable,
                      bool add) override;
  double softmax_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                               double factor, Tensor& dlogits) override;
  double smooth_l1(const Tensor& x, std::span<const float> target,
                   std::span<const std::uint8_t> mask, double factor, Tensor& dx) override;

  // update.cpp
  void update(const UpdateRule& rule, const Tensor& gradient, double unscale, Tensor& weight,
              std::span<Tensor> state, Tensor& delta) override;

 private:
  /// Calls work(i) for 0 <= i < parts, on the backend's threads. The division into parts must
  /// depend on shapes alone, and parts must write to different memory. Then the results do not
  /// depend on the number of threads.
  void parallel(std::int64_t parts, const std::function<void(std::int64_t)>& work) const;

  /// Calls work(first, count) for each part of [0, total); all but the last have length `part`.
  template <class Work>
  void parallel_parts(std::int64_t total, std::int64_t part, const Work& work) const {
    parallel((total + part - 1) / part,
             [&](std::int64_t i) { work(i * part, std::min(part, total - i * part)); });
  }

  /// A rectangle of a matrix.
  struct Tile {
    std::int64_t row, rows, column, columns;
  };
  /// Calls work(tile) for each tile of `high` rows and `wide` columns of a matrix.
  template <class Work>
  void parallel_tiles(std::int64_t rows, std::int64_t columns, std::int64_t high, std::int64_t wide,
                      const Work& work) const {
    const std::int64_t across = (columns + wide - 1) / wide;
    parallel((rows + high - 1) / high * across, [&](std::int64_t i) {
      const std::int64_t row = i / across * high, column = i % across * wide;
      work(Tile{row, std::min(high, rows - row), column, std::min(wide, columns - column)});
    });
  }

  /// Adds to `sum` what add_part(first, count, to) adds to `to` for the parts of [0, total). There
  /// is a fixed number of partial sums, each over its parts in order, and these are added in order.
  void sum_of_parts(std::int64_t total, std::int64_t part, std::vector<float>& sum,
                    const std::function<void(std::int64_t, std::int64_t, float*)>& add_part) const;

  /// Elements per part of an element-wise operation; a part fits a core's cache.
  static constexpr std::int64_t kPart = std::int64_t{1} << 14;

  /// Rounds all values to the tensor's dtype. Operations call round_values() on each part they have
  /// just written instead, which saves a pass over memory.
  void round(Tensor& tensor) const;

  /// Returns how sums of products of a and b into `to` are rounded. Throws std::invalid_argument if
  /// the requested Tensor Core does not support these operand types.
  Sums sums_of(const Tensor& a, const Tensor& b, const Tensor& to) const;

  /// Calls backend::accumulate() on the backend's threads.
  void accumulate(const Sums& sums, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
                  MatrixAt<float> c) const;

  struct Threads;
  Accumulation accumulation_;
  std::unique_ptr<Threads> threads_;
};

}  // namespace halfscope::sim::backend::cpu
