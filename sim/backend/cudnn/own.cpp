// SPDX-License-Identifier: Apache-2.0
// Operations of the backend's own kernels: checks arguments and copies host arrays to the device.
#include <cstring>
#include <numeric>
#include <vector>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cudnn/backend.hpp"
#include "sim/backend/update_constants.hpp"

namespace halfscope::sim::backend::cudnn {

using kernels::Elements;

namespace {

/// Calls visit(part, offset of the part in the whole's first item) for each part, in order.
template <class Visit>
void each_part(const Tensor& whole, std::span<const Tensor> parts, const Visit& visit) {
  Elements place = elements_of(whole);
  for (const Tensor& part : parts) {
    visit(part, place);
    place.data =
        static_cast<std::byte*>(place.data) + item_size(part) * format_of(whole.dtype).width / 8;
  }
}

}  // namespace

template <class T>
cuda::DeviceMemory CudnnBackend::upload(std::span<const T> values) {
  cuda::DeviceMemory memory(values.size_bytes(), stream());
  if (!values.empty()) {
    device_->send(memory.data(), values.size_bytes(),
                  [&](void* to) { std::memcpy(to, values.data(), values.size_bytes()); });
  }
  return memory;
}

double CudnnBackend::sum_in_order(const cuda::DeviceMemory& losses, std::size_t count) {
  std::vector<float> values(count);
  if (count != 0) {
    cuda::check(cudaMemcpyAsync(values.data(), losses.data(), count * sizeof(float),
                                cudaMemcpyDeviceToHost, stream()),
                "cudaMemcpyAsync");
  }
  device_->wait();
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void CudnnBackend::relu_forward(const Tensor& x, Tensor& y) {
  require_same_size("relu", x, y);
  kernels::relu_forward(elements_of(x), elements_of(y), x.size(), stream());
}

void CudnnBackend::relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  require_same_size("relu", y, dy);
  require_same_size("relu", dy, dx);
  kernels::relu_backward(elements_of(y), elements_of(dy), elements_of(dx), y.size(), stream());
}

void CudnnBackend::add(const Tensor& a, const Tensor& b, Tensor& y) {
  require_same_size("add", a, b);
  require_same_size("add", b, y);
  kernels::add(elements_of(a), elements_of(b), elements_of(y), y.size(), stream());
}

void CudnnBackend::multiply(const Tensor& x, double factor, Tensor& y) {
  require_same_size("multiply", x, y);
  kernels::multiply(elements_of(x), static_cast<float>(factor), elements_of(y), y.size(), stream());
}

void CudnnBackend::join(std::span<const Tensor> parts, Tensor& y) {
  require_parts(y, parts);
  each_part(y, parts, [&](const Tensor& part, Elements place) {
    kernels::copy_pieces(elements_of(part), item_size(part), place, item_size(y), y.shape[0],
                         item_size(part), stream());
  });
}

void CudnnBackend::split(const Tensor& dy, std::span<Tensor> parts) {
  require_parts(dy, parts);
  each_part(dy, parts, [&](const Tensor& part, Elements place) {
    kernels::copy_pieces(place, item_size(dy), elements_of(part), item_size(part), dy.shape[0],
                         item_size(part), stream());
  });
}

void CudnnBackend::lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c, Tensor& h) {
  const std::int64_t width = require_lstm(gates, h);
  const kernels::Lstm cell{h.size() / width, width, elements_of(gates),
                           static_cast<const float*>(device_data(c_before))};
  kernels::lstm_forward(cell, static_cast<float*>(device_data(c)), elements_of(h), stream());
}

void CudnnBackend::lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c,
                                 const Tensor& dh, Tensor& dc, Tensor& dgates) {
  const std::int64_t width = require_lstm(gates, dh);
  const kernels::Lstm cell{dh.size() / width, width, elements_of(gates),
                           static_cast<const float*>(device_data(c_before))};
  kernels::lstm_backward(cell, static_cast<const float*>(device_data(c)), elements_of(dh),
                         static_cast<float*>(device_data(dc)), elements_of(dgates), stream());
}

void CudnnBackend::embed_forward(std::span<const std::int32_t> ids, const Tensor& table,
                                 Tensor& y) {
  require_rows("embedding", y, ids.size());
  require_range("row", ids, 0, table.shape[0]);
  require_same_dtype("an embedding", {table, y});
  const cuda::DeviceMemory rows = upload(ids);
  kernels::embed_forward(rows.as<std::int32_t>(), std::ssize(ids), table.shape[1],
                         elements_of(table), elements_of(y), stream());
}

void CudnnBackend::embed_backward(std::span<const std::int32_t> ids, const Tensor& dy,
                                  Tensor& dtable, bool add) {
  require_rows("embedding", dy, ids.size());
  require_range("row", ids, 0, dtable.shape[0]);
  require_same_dtype("an embedding", {dy, dtable});
  const cuda::DeviceMemory rows = upload(ids);
  kernels::embed_backward(rows.as<std::int32_t>(), std::ssize(ids), dtable.shape[0],
                          dtable.shape[1], elements_of(dy), elements_of(dtable), add, stream());
}

double CudnnBackend::softmax_cross_entropy(const Tensor& logits,
                                           std::span<const std::int32_t> labels, double factor,
                                           Tensor& dlogits) {
  require_rows("cross entropy", logits, labels.size());
  require_rows("cross entropy", dlogits, labels.size());
  require_range("label", labels, -1, logits.shape.back());
  require_same_dtype("cross entropy", {logits, dlogits});
  const cuda::DeviceMemory wanted = upload(labels);
  const cuda::DeviceMemory losses(labels.size() * sizeof(float), stream());
  kernels::softmax_cross_entropy(elements_of(logits), wanted.as<std::int32_t>(), std::ssize(labels),
                                 logits.shape.back(), static_cast<float>(factor),
                                 elements_of(dlogits), losses.as<float>(), stream());
  return sum_in_order(losses, labels.size());
}

double CudnnBackend::smooth_l1(const Tensor& x, std::span<const float> target,
                               std::span<const std::uint8_t> mask, double factor, Tensor& dx) {
  require_rows("smooth L1", x, mask.size());
  require_rows("smooth L1", dx, mask.size());
  require_targets(target, x);
  require_same_dtype("smooth L1", {x, dx});
  const cuda::DeviceMemory wanted = upload(target), rows = upload(mask);
  const cuda::DeviceMemory losses(target.size_bytes(), stream());
  kernels::smooth_l1(elements_of(x), wanted.as<float>(), rows.as<std::uint8_t>(), std::ssize(mask),
                     x.shape.back(), static_cast<float>(factor), elements_of(dx),
                     losses.as<float>(), stream());
  return sum_in_order(losses, target.size());
}

void CudnnBackend::update(const UpdateRule& rule, const Tensor& gradient, double unscale,
                          Tensor& weight, std::span<Tensor> state, Tensor& delta) {
  require_update(rule, gradient, weight, state, delta);
  kernels::UpdateMemory memory;
  memory.gradient = elements_of(gradient);
  memory.weight = elements_of(weight);
  if (delta) memory.delta = elements_of(delta);
  if (!state.empty()) memory.first_state = device_data(state[0]);
  if (state.size() > 1) memory.second_state = device_data(state[1]);
  kernels::update(update_constants(rule, weight.dtype, unscale), memory, weight.size(), stream());
}

}  // namespace halfscope::sim::backend::cudnn
