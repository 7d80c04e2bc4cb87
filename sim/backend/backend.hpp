// SPDX-License-Identifier: Apache-2.0
// The operations of the simulator's networks, on tensors that belong to the backend. Every result
// is rounded once to the dtype of its output tensor. Inside an operation, arithmetic is binary32;
// for sums of products, see Accumulation. All backends round in the same places.
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

/// A convolution with a square kernel.
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

/// Batch statistics (binary32), saved by batch normalisation for its backward pass.
struct BatchNormSaved {
  Tensor mean, inverse_deviation;
};
/// Parameters of one batch normalisation layer: (C) each, binary32. Running statistics are updated
/// with weight `momentum`; the running variance is the unbiased one.
struct BatchNormParameters {
  Tensor gamma, beta, running_mean, running_variance;
  double momentum = 0.1, epsilon = 1e-5;
};

/// Rows of a block of batch normalisation's sums over rows. Each block is added row after row in
/// binary32, then the blocks' sums are added in order: the bits do not depend on threads, and the
/// error grows with the block, not with the tensor.
inline constexpr std::int64_t kNormRows = 256;

/// An optimizer's settings for one step. `t` counts applied steps, from 1.
struct UpdateRule {
  enum class Kind : std::uint8_t { sgd, momentum, adam } kind = Kind::sgd;
  double learning_rate = 0.1, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  std::int64_t t = 1;
};

/// Facts about stored gradients, multiplied by their scale if they have one.
struct GradientFacts {
  bool nonfinite = false;
  double max_abs = 0;      ///< NaN if any value is NaN, else infinity if any value is infinite
  double sum_squares = 0;  ///< over finite values, in a fixed order, in binary64
};

struct TensorStatistics {
  BinadeTable table;
  Moments moments;
};

/// A result that the backend may still be computing. Calling it waits for the result.
template <class T>
using Later = std::function<T()>;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string describe() const = 0;  ///< "cpu: x86_64 AVX2, Eigen 3.4.0"
  /// Returns versions, and the algorithm of each operation, for the manifest; a JSON null if the
  /// backend has no choice of algorithms.
  virtual nlohmann::json details() const;

  /// Returns a tensor of zeros.
  virtual Tensor make(const Shape& shape, Dtype dtype) = 0;
  /// Returns a tensor with undefined values, for an operation to fill.
  virtual Tensor allocate_uninitialized(const Shape& shape, Dtype dtype) {
    return make(shape, dtype);
  }
  /// Writes `values`, rounded to the tensor's dtype.
  virtual void set(Tensor& to, std::span<const float> values) = 0;
  virtual std::vector<float> get(const Tensor& from) = 0;
  /// Copies the values, rounded if the dtypes differ.
  virtual void copy(const Tensor& from, Tensor& to) = 0;
  virtual void fill(Tensor& to, float value) = 0;

  // Convolution: x (N, H, W, C), w (K, R, S, C), b (K) or empty, y (N, P, Q, K). If `add` is true,
  // the sum of the new gradient and the old dw is rounded once.
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

  /// Writes db (K), the sums of dy over all but its last dimension.
  virtual void bias_gradient(const Tensor& dy, Tensor& db, bool add) = 0;

  // Batch normalisation over all but the last dimension. Uses the statistics of the batch, or the
  // running statistics if `inference` is true.
  virtual void batch_norm_forward(const Tensor& x, BatchNormParameters& parameters, bool inference,
                                  BatchNormSaved& saved, Tensor& y) = 0;
  virtual void batch_norm_backward(const Tensor& x, const Tensor& dy,
                                   const BatchNormParameters& parameters,
                                   const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma,
                                   Tensor& dbeta, bool add) = 0;

  virtual void pool_forward(const Pool& pool, const Tensor& x, Tensor& y) = 0;
  /// If several values of a window are the largest, the first in row order gets the gradient.
  virtual void pool_backward(const Pool& pool, const Tensor& x, const Tensor& y, const Tensor& dy,
                             Tensor& dx) = 0;
  virtual void relu_forward(const Tensor& x, Tensor& y) = 0;
  virtual void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) = 0;
  virtual void add(const Tensor& a, const Tensor& b, Tensor& y) = 0;
  virtual void multiply(const Tensor& x, double factor, Tensor& y) = 0;

  /// Joins (N, A_i, C) tensors along their second dimension. split() is the inverse.
  virtual void join(std::span<const Tensor> parts, Tensor& y) = 0;
  virtual void split(const Tensor& dy, std::span<Tensor> parts) = 0;

  // An LSTM cell (Hochreiter & Schmidhuber, with forget gate). The gates (N, 4H) are
  // pre-activations in the order i, f, g, o, in the dtype of `tensors`, as is h; c (N, H) is
  // binary32.
  virtual void lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c, Tensor& h) = 0;
  /// `dc` is the gradient of c on entry, and the gradient of c_before on return.
  virtual void lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c,
                             const Tensor& dh, Tensor& dc, Tensor& dgates) = 0;

  /// Copies the rows `ids` (M) of `table` to y (M, H). embed_backward() sums the rows of the
  /// gradient, in order.
  virtual void embed_forward(std::span<const std::int32_t> ids, const Tensor& table, Tensor& y) = 0;
  virtual void embed_backward(std::span<const std::int32_t> ids, const Tensor& dy, Tensor& dtable,
                              bool add) = 0;

  /// Softmax and cross entropy over the last dimension of logits (M, K), in binary32. Returns the
  /// sum of the rows' losses (binary64) and writes (p - y) * factor, rounded once. A row with label
  /// -1 has no loss and a gradient of zero.
  virtual double softmax_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                                       double factor, Tensor& dlogits) = 0;
  /// Smooth L1 loss with beta 1 over the rows of (M, 4) whose `mask` is set. Returns and writes the
  /// same as softmax_cross_entropy().
  virtual double smooth_l1(const Tensor& x, std::span<const float> target,
                           std::span<const std::uint8_t> mask, double factor, Tensor& dx) = 0;

  virtual GradientFacts facts(std::span<const Tensor> gradients) = 0;
  /// Returns the facts of each gradient. The tensors may be changed or freed after the call.
  virtual Later<std::vector<GradientFacts>> facts_later(std::span<const Tensor> gradients);

  /// Updates one parameter: multiplies the gradient by `unscale` (in binary32; exact for powers of
  /// two), then applies the rule in the dtype of the weight, rounding every operation. `state` is
  /// empty for sgd, velocity for momentum, exp_avg and exp_avg_sq for adam. If `delta` is not
  /// empty, it receives the value added to the weight, before the rounding of that sum.
  virtual void update(const UpdateRule& rule, const Tensor& gradient, double unscale,
                      Tensor& weight, std::span<Tensor> state, Tensor& delta) = 0;

  virtual BinadeTable count(const Tensor& tensor) = 0;
  virtual Moments moments(const Tensor& tensor) = 0;
  /// Returns the statistics of each tensor, with the guarantees of facts_later().
  virtual Later<std::vector<TensorStatistics>> statistics_later(std::span<const Tensor> tensors);
};

/// Returns a backend on the CPU that emulates every rounding. The results do not depend on the
/// number of threads.
std::unique_ptr<Backend> make_cpu_backend(Accumulation accumulation, int threads = 0);

/// Thrown if this machine or this build cannot run a backend. The message is one line that names
/// what is missing and how to get it.
struct BackendMissing : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns a backend on an NVIDIA GPU, with cuDNN and cuBLAS. Throws BackendMissing.
std::unique_ptr<Backend> make_cudnn_backend(Accumulation accumulation);
/// Returns the message that make_cudnn_backend() would throw, or an empty string.
std::string cudnn_missing_message();

/// Returns a backend that computes in binary64 with compensated sums and no rounding of results:
/// its gradients serve as the true ones.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace halfscope::sim::backend
