// SPDX-License-Identifier: Apache-2.0
// What a backend computes: the operations of our networks on tensors of its own. Every result is
// rounded once to the dtype of the tensor it goes into; inside an operation arithmetic is binary32
// (Accumulation says otherwise for sums of products). All backends keep these boundaries, so the
// same network rounds in the same places.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/backend/precision.hpp"
#include "sim/backend/tensor.hpp"

namespace halfscope::sim::backend {

/// A square convolution.
struct Convolution {
  int kernel = 3, stride = 1, padding = 1;
  std::int64_t out(std::int64_t in) const {
    return (in + std::int64_t{2} * padding - kernel) / stride + 1;
  }
};

struct Pool {
  enum class Kind : std::uint8_t { max, average } kind = Kind::max;
  int kernel = 2, stride = 2;
  std::int64_t out(std::int64_t in) const { return (in - kernel) / stride + 1; }
};

/// What batch normalisation keeps from the forward to the backward pass; binary32.
struct BatchNormSaved {
  Tensor mean, inverse_deviation;
};
/// Of one layer: (C) each, binary32. Running statistics by `momentum`, the variance unbiased.
struct BatchNormParameters {
  Tensor gamma, beta, running_mean, running_variance;
  double momentum = 0.1, epsilon = 1e-5;
};

/// A step's optimizer settings; `t` counts applied steps from 1.
struct UpdateRule {
  enum class Kind : std::uint8_t { sgd, momentum, adam } kind = Kind::sgd;
  double learning_rate = 0.1, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  std::int64_t t = 1;
};

/// Of gradients as they are stored, so of scaled ones while they carry a scale.
struct GradientFacts {
  bool nonfinite = false;
  double max_abs = 0;      ///< NaN where one is NaN, else infinity where one is
  double sum_squares = 0;  ///< in fixed order, binary64; of the finite ones
};

struct TensorStatistics {
  BinadeTable table;
  Moments moments;
};

/// What a backend may still be computing. Calling it waits for the result.
template <class T>
using Later = std::function<T()>;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string describe() const = 0;  ///< "cpu: x86_64 AVX2, Eigen 3.4.0"
  /// Versions, and which algorithm computes what, for the manifest; null where there is no choice.
  virtual nlohmann::json details() const;

  /// Zeros.
  virtual Tensor make(const Shape& shape, Dtype dtype) = 0;
  /// Memory that an operation is to fill: what is in it is not told.
  virtual Tensor room(const Shape& shape, Dtype dtype) { return make(shape, dtype); }
  /// Rounds to the tensor's dtype.
  virtual void set(Tensor& to, std::span<const float> values) = 0;
  virtual std::vector<float> get(const Tensor& from) = 0;
  /// Rounds where the dtypes differ.
  virtual void copy(const Tensor& from, Tensor& to) = 0;
  virtual void fill(Tensor& to, float value) = 0;

  // Convolution: x (N, H, W, C), w (K, R, S, C), b (K) or empty, y (N, P, Q, K). `add`: dw is added
  // to what is there, in one rounding.
  virtual void conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w,
                            const Tensor& b, Tensor& y) = 0;
  virtual void conv_data_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                                  Tensor& dx) = 0;
  virtual void conv_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy,
                                    Tensor& dw, bool add) = 0;

  // Dense: x (N, C), w (K, C), b (K) or empty, y (N, K). x may be of any shape with N first.
  virtual void dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) = 0;
  virtual void dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) = 0;
  virtual void dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw, bool add) = 0;

  /// db (K): sums of dy over all but its last dimension.
  virtual void bias_gradient(const Tensor& dy, Tensor& db, bool add) = 0;

  // Batch normalisation over all but the last dimension; training statistics unless `inference`.
  virtual void batch_norm_forward(const Tensor& x, BatchNormParameters& parameters, bool inference,
                                  BatchNormSaved& saved, Tensor& y) = 0;
  virtual void batch_norm_backward(const Tensor& x, const Tensor& dy,
                                   const BatchNormParameters& parameters,
                                   const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma,
                                   Tensor& dbeta, bool add) = 0;

  virtual void pool_forward(const Pool& pool, const Tensor& x, Tensor& y) = 0;
  /// Of equal largest values the first in row order gets the gradient.
  virtual void pool_backward(const Pool& pool, const Tensor& x, const Tensor& y, const Tensor& dy,
                             Tensor& dx) = 0;
  virtual void relu_forward(const Tensor& x, Tensor& y) = 0;
  virtual void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) = 0;
  virtual void add(const Tensor& a, const Tensor& b, Tensor& y) = 0;
  virtual void multiply(const Tensor& x, double factor, Tensor& y) = 0;

  /// Joined along the second dimension of (N, A_i, C) tensors; and taken apart.
  virtual void join(std::span<const Tensor> parts, Tensor& y) = 0;
  virtual void split(const Tensor& dy, std::span<Tensor> parts) = 0;

  // An LSTM cell, Hochreiter & Schmidhuber with forget gate, gates in the order i, f, g, o:
  // gates (N, 4H) are pre-activations of `tensors`' dtype, h of the same; c (N, H) binary32.
  virtual void lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c, Tensor& h) = 0;
  /// dc is the gradient of c from the step after, and leaves as that of c_before.
  virtual void lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c,
                             const Tensor& dh, Tensor& dc, Tensor& dgates) = 0;

  /// Rows of a table: ids (M) -> y (M, H); and the gradient: sums of rows, in order.
  virtual void embed_forward(std::span<const std::int32_t> ids, const Tensor& table, Tensor& y) = 0;
  virtual void embed_backward(std::span<const std::int32_t> ids, const Tensor& dy, Tensor& dtable,
                              bool add) = 0;

  /// Softmax and cross entropy over the last dimension of logits (M, K), binary32 inside: returns
  /// the sum over rows of the losses (binary64) and writes (p - y) * factor, rounded once. Rows
  /// with a label of -1 have neither.
  virtual double softmax_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                                       double factor, Tensor& dlogits) = 0;
  /// Smooth L1 with its corner at 1, over rows (M, 4) where `mask` is set; as above.
  virtual double smooth_l1(const Tensor& x, std::span<const float> target,
                           std::span<const std::uint8_t> mask, double factor, Tensor& dx) = 0;

  virtual GradientFacts facts(std::span<const Tensor> gradients) = 0;
  /// One for each. The tensors may be changed, or let go of, before the result is asked for.
  virtual Later<std::vector<GradientFacts>> facts_later(std::span<const Tensor> gradients);

  /// One optimizer step of one parameter: gradient times `unscale` (binary32, exact for powers of
  /// two), then the rule in the arithmetic of the weight's dtype, every operation rounded. `state`:
  /// none for sgd, velocity for momentum, exp_avg and exp_avg_sq for adam. `delta`, where it is not
  /// empty, gets what was added to the weight (or would have been, were there no rounding).
  virtual void update(const UpdateRule& rule, const Tensor& gradient, double unscale,
                      Tensor& weight, std::span<Tensor> state, Tensor& delta) = 0;

  virtual BinadeTable count(const Tensor& tensor) = 0;
  virtual Moments moments(const Tensor& tensor) = 0;
  /// One for each, as facts_later().
  virtual Later<std::vector<TensorStatistics>> statistics_later(std::span<const Tensor> tensors);
};

/// On the processor, every rounding emulated. threads: results are the same for any number.
std::unique_ptr<Backend> make_cpu_backend(Accumulation accumulation, int threads = 0);

/// What this machine, or this program, lacks for a backend: one line, with the way out.
struct BackendMissing : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// On an NVIDIA GPU, by cuDNN and cuBLAS. Throws BackendMissing.
std::unique_ptr<Backend> make_cudnn_backend(Accumulation accumulation);
/// What make_cudnn_backend() would lack, or empty.
std::string why_no_cudnn();

/// The same operations in binary64 with compensated sums and no rounding at boundaries: what the
/// gradients should have been.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace halfscope::sim::backend
