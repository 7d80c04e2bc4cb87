// SPDX-License-Identifier: Apache-2.0
// Batch normalisation with the CPU backend's bits: sums are in the order of kNormRows, and every
// operation is rounded on its own (--fmad=false). The design is for an H100, and was not measured
// there: 132 multiprocessors, 3 TB/s, some 0.7 us from a load to its value, so 2 MB in flight.
//
// * Sums (columns.hpp): one warp adds 32 channels of a block of 256 rows. It loads 4 KB at a time,
//   64 rows of 16 bits. ResNet-50's largest layer has 6272 warps. A multiprocessor has space for
//   32, or for 16 with 8 KB each, so 17 MB are in flight. The smallest layer has 208 warps, and
//   needs 4 round trips to memory.
// * Totals of up to 3136 blocks: 8 warps load 256 rows at a time for the one that adds.
// * Elements: a thread reads and writes 16 bytes of a row, of the same channels in 8 rows. It reads
//   the channels' constants once, into registers.
//
// The forward pass reads x three times and writes y; the backward pass reads x and dy twice and
// writes dx. The L2 cache (50 MB) can keep tensors below 20 MB between the passes.
#include "sim/backend/cudnn/kernels/columns.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

constexpr int kTotalWarps = 8;                     // in each block of total_kernel
constexpr int kRowsOfThread = 8, kRowsLoaded = 4;  // in elementwise kernels

/// The part of a tensor that one warp of a sum adds.
struct Part {
  std::int64_t block, channel, begin, rows, width;
  __device__ Part(std::int64_t all_rows, std::int64_t channels) {
    const auto groups = static_cast<unsigned>((channels + kLanes - 1) / kLanes);
    block = blockIdx.x / groups;
    channel = std::int64_t{blockIdx.x % groups} * kLanes;
    begin = block * kNormRows * channels + channel;
    rows = min(kNormRows, all_rows - block * kNormRows);
    width = channels - channel;
  }
  /// Channel of this thread. It may be behind the last one.
  __device__ std::int64_t own() const { return channel + threadIdx.x; }
};

/// Writes, to partial (blocks, channels), the sums over blocks of rows of x, or of (x - mean)^2.
template <class T, int V, bool kSquares>
__global__ void sums_kernel(const T* x, std::int64_t rows, std::int64_t channels, const float* mean,
                            float* partial) {
  __shared__ __align__(16) T tile[Columns<T, V, 1>::kTile];
  const Part part(rows, channels);
  const bool inside = part.own() < channels;
  float center = 0, sum = 0;
  if (kSquares && inside) center = mean[part.own()];
  Columns<T, V, 1> columns(x + part.begin, part.rows, channels, part.width, tile);
  each_row(
      part.rows,
      [&](float value) {
        const float d = value - center;
        sum += kSquares ? d * d : d;
      },
      columns);
  if (inside) partial[part.block * channels + part.own()] = sum;
}

/// Writes, to partial (blocks, 2, channels), the sums over blocks of rows of dy, and of dy times
/// the normalised x.
template <class T, int V>
__global__ void gradient_sums_kernel(const T* x, const T* dy, std::int64_t rows,
                                     std::int64_t channels, const float* mean, const float* inverse,
                                     float* partial) {
  __shared__ __align__(16) T tiles[2][Columns<T, V, 1>::kTile];
  const Part part(rows, channels);
  const bool inside = part.own() < channels;
  const float center = inside ? mean[part.own()] : 0.0F,
              scale = inside ? inverse[part.own()] : 0.0F;
  float sum = 0, product = 0;
  Columns<T, V, 1> of_x(x + part.begin, part.rows, channels, part.width, tiles[0]),
      of_dy(dy + part.begin, part.rows, channels, part.width, tiles[1]);
  each_row(
      part.rows,
      [&](float value, float gradient) {
        sum += gradient;
        product += gradient * ((value - center) * scale);
      },
      of_x, of_dy);
  if (!inside) return;
  partial[2 * part.block * channels + part.own()] = sum;
  partial[(2 * part.block + 1) * channels + part.own()] = product;
}

/// Calls finish(column, sum) for the sum of each column of partial (rows, columns), added in order.
template <int V, class Finish>
__global__ void total_kernel(const float* partial, std::int64_t rows, std::int64_t columns,
                             Finish finish) {
  __shared__ __align__(16) float tile[Columns<float, V, kTotalWarps>::kTile];
  const std::int64_t first = std::int64_t{blockIdx.x} * kLanes, own = first + threadIdx.x;
  float sum = 0;
  Columns<float, V, kTotalWarps> staged(partial + first, rows, columns, columns - first, tile);
  each_row(
      rows, [&](float value) { sum += value; }, staged);
  if (threadIdx.x < kLanes && own < columns) finish(own, sum);
}

struct Mean {
  float count;
  float* mean;
  __device__ void operator()(std::int64_t c, float sum) const { mean[c] = sum / count; }
};

/// Writes a layer's inverse deviation, and updates its running statistics.
struct Deviation {
  BatchNorm layer;
  float count, keep, take;
  __device__ void operator()(std::int64_t c, float sum) const {
    const float variance = sum / count, unbiased = variance * (count / (count - 1.0F));
    layer.inverse_deviation[c] = 1.0F / sqrtf(variance + layer.epsilon);
    layer.running_mean[c] = keep * layer.running_mean[c] + take * layer.mean[c];
    layer.running_variance[c] = keep * layer.running_variance[c] + take * unbiased;
  }
};

/// Writes the gradients of beta (columns below `channels`) and gamma, and their sums' means over
/// rows to `means` (2, channels).
struct ParameterGradients {
  std::int64_t channels;
  float count;
  float *dgamma, *dbeta, *means;
  bool add;
  __device__ void operator()(std::int64_t column, float sum) const {
    float* const to = column < channels ? dbeta + column : dgamma + (column - channels);
    means[column] = sum / count;
    *to = (add ? *to : 0.0F) + sum;
  }
};

__global__ void running_kernel(BatchNorm layer) {
  const std::int64_t c = first_element();
  if (c >= layer.channels) return;
  layer.mean[c] = layer.running_mean[c];
  layer.inverse_deviation[c] = 1.0F / sqrtf(layer.running_variance[c] + layer.epsilon);
}

/// Calls use(row, load(row)) for rows 0 to count - 1. The loads of kRowsLoaded rows precede the
/// first use of them.
template <class Load, class Use>
__device__ void each_element(int count, const Load& load, const Use& use) {
  decltype(load(0)) loaded[kRowsLoaded];
  for (int row = 0; row < count; row += kRowsLoaded) {
#pragma unroll
    for (int k = 0; k < kRowsLoaded; ++k) loaded[k] = load(min(row + k, count - 1));
#pragma unroll
    for (int k = 0; k < kRowsLoaded; ++k) {
      if (row + k < count) use(row + k, loaded[k]);
    }
  }
}

/// The elements of one thread: V channels of rows first, first + step, ...
struct Lane {
  std::int64_t channel = 0, first = 0;
  int rows = 0;
};
template <int V>
__device__ Lane lane_of_thread(std::int64_t rows, std::int64_t channels, std::int64_t step) {
  const auto groups = static_cast<unsigned>(channels / V);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;  // 32 bits, for the divisions
  const std::int64_t first = i / groups;
  int count = 0;  // counted, since a 64-bit division takes longer
  while (first < step && count < kRowsOfThread && first + count * step < rows) ++count;
  return {std::int64_t{i % groups} * V, first, count};
}

template <class T, int V>
struct Pair {
  Channels<T, V> x, dy;
};

template <class T, int V>
__global__ void normalise_kernel(const T* x, T* y, BatchNorm layer, std::int64_t step) {
  const Lane lane = lane_of_thread<V>(layer.rows, layer.channels, step);
  if (lane.rows == 0) return;
  const auto mean = channels_at<float, V>(layer.mean + lane.channel),
             inverse = channels_at<float, V>(layer.inverse_deviation + lane.channel),
             gamma = channels_at<float, V>(layer.gamma + lane.channel),
             beta = channels_at<float, V>(layer.beta + lane.channel);
  const std::int64_t first = lane.first * layer.channels + lane.channel,
                     stride = step * layer.channels;
  each_element(
      lane.rows, [&](int row) { return channels_at<T, V>(x + first + row * stride); },
      [&](int row, const Channels<T, V>& values) {
        Channels<T, V> out;
#pragma unroll
        for (int i = 0; i < V; ++i) {
          out.values[i] = narrow<T>(gamma[i] * ((values[i] - mean[i]) * inverse[i]) + beta[i]);
        }
        *reinterpret_cast<Channels<T, V>*>(y + first + row * stride) = out;
      });
}

/// `means`: as ParameterGradients writes them.
template <class T, int V>
__global__ void gradient_kernel(const T* x, const T* dy, T* dx, BatchNorm layer, const float* means,
                                std::int64_t step) {
  const Lane lane = lane_of_thread<V>(layer.rows, layer.channels, step);
  if (lane.rows == 0) return;
  const auto mean = channels_at<float, V>(layer.mean + lane.channel),
             inverse = channels_at<float, V>(layer.inverse_deviation + lane.channel),
             gamma = channels_at<float, V>(layer.gamma + lane.channel),
             shift = channels_at<float, V>(means + lane.channel),
             slope = channels_at<float, V>(means + layer.channels + lane.channel);
  const std::int64_t first = lane.first * layer.channels + lane.channel,
                     stride = step * layer.channels;
  each_element(
      lane.rows,
      [&](int row) {
        return Pair<T, V>{channels_at<T, V>(x + first + row * stride),
                          channels_at<T, V>(dy + first + row * stride)};
      },
      [&](int row, const Pair<T, V>& pair) {
        Channels<T, V> out;
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const float normal = (pair.x[i] - mean[i]) * inverse[i], factor = gamma[i] * inverse[i];
          out.values[i] = narrow<T>(factor * ((pair.dy[i] - shift[i]) - normal * slope[i]));
        }
        *reinterpret_cast<Channels<T, V>*>(dx + first + row * stride) = out;
      });
}

/// Calls f(T{}, V), where T is the element type and V a constant: the adjacent channels that a
/// thread reads at a time. They have 16 bytes if that divides a row, else V is 1.
template <class F>
void with_channels(Dtype dtype, std::int64_t channels, const F& f) {
  with_type(dtype, [&]<class T>(T) {
    constexpr int kMost = 16 / static_cast<int>(sizeof(T));
    if (channels % kMost == 0) {
      f(T{}, std::integral_constant<int, kMost>{});
    } else {
      f(T{}, std::integral_constant<int, 1>{});
    }
  });
}

/// Returns the grid of the sums over blocks of rows: one warp for 32 channels of a block.
cuda::Grid grid_of_sums(const BatchNorm& layer) {
  const std::int64_t blocks =
      blocks_for(layer.rows, kNormRows) * blocks_for(layer.channels, kLanes);
  return {.blocks = static_cast<unsigned>(blocks), .threads = kLanes};
}

template <bool kSquares>
void sums(const BatchNorm& layer, Elements x, float* partial, cudaStream_t stream) {
  with_channels(x.dtype, layer.channels, [&]<class T, int V>(T, std::integral_constant<int, V>) {
    launch("batch norm's sums", sums_kernel<T, V, kSquares>, grid_of_sums(layer), stream,
           static_cast<const T*>(x.data), layer.rows, layer.channels, layer.mean, partial);
  });
}

template <class Finish>
void total(const float* partial, std::int64_t rows, std::int64_t columns, const Finish& finish,
           cudaStream_t stream) {
  const auto start = [&](auto* kernel) {
    launch("batch norm's totals", kernel,
           {.blocks = static_cast<unsigned>(blocks_for(columns, kLanes)),
            .threads = kTotalWarps * kLanes},
           stream, partial, rows, columns, finish);
  };
  columns % 4 == 0 ? start(total_kernel<4, Finish>) : start(total_kernel<1, Finish>);
}

/// Returns the distance of a thread's rows, which is the number of rows that threads begin with.
std::int64_t row_step(const BatchNorm& layer) { return blocks_for(layer.rows, kRowsOfThread); }
/// Returns the grid of an elementwise kernel whose threads have v channels.
cuda::Grid grid_of_elements(const BatchNorm& layer, int v) {
  const std::int64_t blocks = blocks_for(row_step(layer) * (layer.channels / v), kThreads);
  return {.blocks = static_cast<unsigned>(blocks), .threads = kThreads};
}

}  // namespace

void batch_norm_statistics(const BatchNorm& layer, float momentum, Elements x,
                           cudaStream_t stream) {
  const std::int64_t blocks = blocks_for(layer.rows, kNormRows);
  const cuda::DeviceMemory memory(static_cast<std::size_t>(blocks * layer.channels) * sizeof(float),
                                  stream);
  auto* const partial = memory.as<float>();
  const auto count = static_cast<float>(layer.rows);
  sums<false>(layer, x, partial, stream);
  total(partial, blocks, layer.channels, Mean{count, layer.mean}, stream);
  sums<true>(layer, x, partial, stream);
  total(partial, blocks, layer.channels, Deviation{layer, count, 1.0F - momentum, momentum},
        stream);
}

void batch_norm_running(const BatchNorm& layer, cudaStream_t stream) {
  launch("batch norm's running statistics", running_kernel, {.blocks = blocks_of(layer.channels)},
         stream, layer);
}

void batch_norm_forward(const BatchNorm& layer, Elements x, Elements y, cudaStream_t stream) {
  with_channels(x.dtype, layer.channels, [&]<class T, int V>(T, std::integral_constant<int, V>) {
    launch("batch norm", normalise_kernel<T, V>, grid_of_elements(layer, V), stream,
           static_cast<const T*>(x.data), static_cast<T*>(y.data), layer, row_step(layer));
  });
}

void batch_norm_backward(const BatchNorm& layer, Elements x, Elements dy, Elements dx,
                         float* dgamma, float* dbeta, bool add, cudaStream_t stream) {
  const std::int64_t blocks = blocks_for(layer.rows, kNormRows), columns = 2 * layer.channels;
  const cuda::DeviceMemory memory(static_cast<std::size_t>((blocks + 1) * columns) * sizeof(float),
                                  stream);
  float *const partial = memory.as<float>(), *const means = partial + blocks * columns;
  const ParameterGradients finish{
      layer.channels, static_cast<float>(layer.rows), dgamma, dbeta, means, add};
  with_channels(x.dtype, layer.channels, [&]<class T, int V>(T, std::integral_constant<int, V>) {
    const auto* const from = static_cast<const T*>(x.data);
    const auto* const up = static_cast<const T*>(dy.data);
    launch("batch norm's gradient sums", gradient_sums_kernel<T, V>, grid_of_sums(layer), stream,
           from, up, layer.rows, layer.channels, layer.mean, layer.inverse_deviation, partial);
    total(partial, blocks, columns, finish, stream);
    launch("batch norm's gradient", gradient_kernel<T, V>, grid_of_elements(layer, V), stream, from,
           up, static_cast<T*>(dx.data), layer, means, row_step(layer));
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
