// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/paired_backend.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace halfscope::sim::backend {
namespace {

std::string convolution(const char* what, const Convolution& conv) {
  return fmt::format("{} {}x{}/{}", what, conv.kernel, conv.kernel, conv.stride);
}

}  // namespace

nlohmann::json PairedBackend::details() const { return run_->details(); }

Tensor PairedBackend::mirrored(const Tensor& tensor) {
  if (!tensor) return {};
  Tensor mirror = judge_->make(tensor.shape, tensor.dtype);
  judge_->set(mirror, run_->get(tensor));
  return mirror;
}

void PairedBackend::both(const std::string& name, const Inputs& in, const Results& out,
                         const Compute& compute) {
  Inputs mirrors;
  std::vector<Tensor> results, emulated;
  for (const Tensor* const result : out) results.push_back(*result);
  if (on_) {
    for (const Tensor& tensor : in) mirrors.push_back(mirrored(tensor));
    for (const Tensor& result : results) emulated.push_back(mirrored(result));
  }
  compute(*run_, in, results);
  for (std::size_t i = 0; i < out.size(); ++i) *out[i] = results[i];
  if (!on_) return;
  compute(*judge_, mirrors, emulated);
  std::string shapes;
  for (const Tensor& tensor : in) shapes += fmt::format(" {}", fmt::join(tensor.shape, "x"));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!results[i]) continue;
    const std::string which = out.size() == 1 ? "" : fmt::format(" result {}", i + 1);
    differences_.add(fmt::format("{}{} of{}, {}", name, which, shapes, name_of(results[i].dtype)),
                     results[i].dtype, run_->get(results[i]), judge_->get(emulated[i]));
  }
}

void PairedBackend::copy(const Tensor& from, Tensor& to) {
  if (from.dtype == to.dtype) return run_->copy(from, to);
  both("copy", {from}, {&to},
       [](Backend& b, const Inputs& i, std::vector<Tensor>& o) { b.copy(i[0], o[0]); });
}

void PairedBackend::conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w,
                                 const Tensor& b, Tensor& y) {
  both(convolution("conv_forward", conv), {x, w, b}, {&y},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.conv_forward(conv, i[0], i[1], i[2], o[0]);
       });
}

void PairedBackend::conv_data_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                                       Tensor& dx) {
  both(convolution("conv_data_gradient", conv), {dy, w}, {&dx},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.conv_data_gradient(conv, i[0], i[1], o[0]);
       });
}

void PairedBackend::conv_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy,
                                         Tensor& dw, bool add) {
  both(convolution("conv_weight_gradient", conv), {x, dy}, {&dw},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.conv_weight_gradient(conv, i[0], i[1], o[0], add);
       });
}

void PairedBackend::dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) {
  both("dense_forward", {x, w, b}, {&y}, [](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    of.dense_forward(i[0], i[1], i[2], o[0]);
  });
}

void PairedBackend::dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) {
  both("dense_data_gradient", {dy, w}, {&dx},
       [](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.dense_data_gradient(i[0], i[1], o[0]);
       });
}

void PairedBackend::dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw, bool add) {
  both("dense_weight_gradient", {x, dy}, {&dw},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.dense_weight_gradient(i[0], i[1], o[0], add);
       });
}

void PairedBackend::bias_gradient(const Tensor& dy, Tensor& db, bool add) {
  both("bias_gradient", {dy}, {&db}, [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    of.bias_gradient(i[0], o[0], add);
  });
}

void PairedBackend::batch_norm_forward(const Tensor& x, BatchNormParameters& parameters,
                                       bool inference, BatchNormSaved& saved, Tensor& y) {
  both("batch_norm_forward", {x, parameters.gamma, parameters.beta},
       {&y, &saved.mean, &saved.inverse_deviation, &parameters.running_mean,
        &parameters.running_variance},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         BatchNormParameters own = parameters;
         own.gamma = i[1];
         own.beta = i[2];
         own.running_mean = o[3];
         own.running_variance = o[4];
         BatchNormSaved kept{o[1], o[2]};
         of.batch_norm_forward(i[0], own, inference, kept, o[0]);
         o[1] = kept.mean;
         o[2] = kept.inverse_deviation;
       });
}

void PairedBackend::batch_norm_backward(const Tensor& x, const Tensor& dy,
                                        const BatchNormParameters& parameters,
                                        const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma,
                                        Tensor& dbeta, bool add) {
  both("batch_norm_backward",
       {x, dy, parameters.gamma, parameters.beta, saved.mean, saved.inverse_deviation},
       {&dx, &dgamma, &dbeta}, [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         BatchNormParameters own = parameters;
         own.gamma = i[2];
         own.beta = i[3];
         of.batch_norm_backward(i[0], i[1], own, {i[4], i[5]}, o[0], o[1], o[2], add);
       });
}

void PairedBackend::pool_forward(const Pool& pool, const Tensor& x, Tensor& y) {
  both("pool_forward", {x}, {&y}, [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    of.pool_forward(pool, i[0], o[0]);
  });
}

void PairedBackend::pool_backward(const Pool& pool, const Tensor& x, const Tensor& y,
                                  const Tensor& dy, Tensor& dx) {
  both("pool_backward", {x, y, dy}, {&dx},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.pool_backward(pool, i[0], i[1], i[2], o[0]);
       });
}

void PairedBackend::relu_forward(const Tensor& x, Tensor& y) {
  both("relu_forward", {x}, {&y},
       [](Backend& of, const Inputs& i, std::vector<Tensor>& o) { of.relu_forward(i[0], o[0]); });
}

void PairedBackend::relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  both("relu_backward", {y, dy}, {&dx}, [](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    of.relu_backward(i[0], i[1], o[0]);
  });
}

void PairedBackend::add(const Tensor& a, const Tensor& b, Tensor& y) {
  both("add", {a, b}, {&y},
       [](Backend& of, const Inputs& i, std::vector<Tensor>& o) { of.add(i[0], i[1], o[0]); });
}

void PairedBackend::multiply(const Tensor& x, double factor, Tensor& y) {
  both("multiply", {x}, {&y}, [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    of.multiply(i[0], factor, o[0]);
  });
}

void PairedBackend::join(std::span<const Tensor> parts, Tensor& y) {
  both("join", Inputs(parts.begin(), parts.end()), {&y},
       [](Backend& of, const Inputs& i, std::vector<Tensor>& o) { of.join(i, o[0]); });
}

void PairedBackend::split(const Tensor& dy, std::span<Tensor> parts) {
  Results out;
  for (Tensor& part : parts) out.push_back(&part);
  both("split", {dy}, out,
       [](Backend& of, const Inputs& i, std::vector<Tensor>& o) { of.split(i[0], o); });
}

void PairedBackend::lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c,
                                 Tensor& h) {
  both("lstm_forward", {gates, c_before}, {&c, &h},
       [](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.lstm_forward(i[0], i[1], o[0], o[1]);
       });
}

void PairedBackend::lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c,
                                  const Tensor& dh, Tensor& dc, Tensor& dgates) {
  both("lstm_backward", {gates, c_before, c, dh}, {&dc, &dgates},
       [](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.lstm_backward(i[0], i[1], i[2], i[3], o[0], o[1]);
       });
}

void PairedBackend::embed_forward(std::span<const std::int32_t> ids, const Tensor& table,
                                  Tensor& y) {
  both("embed_forward", {table}, {&y}, [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    of.embed_forward(ids, i[0], o[0]);
  });
}

void PairedBackend::embed_backward(std::span<const std::int32_t> ids, const Tensor& dy,
                                   Tensor& dtable, bool add) {
  both("embed_backward", {dy}, {&dtable},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         of.embed_backward(ids, i[0], o[0], add);
       });
}

double PairedBackend::softmax_cross_entropy(const Tensor& logits,
                                            std::span<const std::int32_t> labels, double factor,
                                            Tensor& dlogits) {
  double loss = 0;
  both("softmax_cross_entropy", {logits}, {&dlogits},
       [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
         const double found = of.softmax_cross_entropy(i[0], labels, factor, o[0]);
         if (&of == run_.get()) loss = found;
       });
  return loss;
}

double PairedBackend::smooth_l1(const Tensor& x, std::span<const float> target,
                                std::span<const std::uint8_t> mask, double factor, Tensor& dx) {
  double loss = 0;
  both("smooth_l1", {x}, {&dx}, [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    const double found = of.smooth_l1(i[0], target, mask, factor, o[0]);
    if (&of == run_.get()) loss = found;
  });
  return loss;
}

void PairedBackend::update(const UpdateRule& rule, const Tensor& gradient, double unscale,
                           Tensor& weight, std::span<Tensor> state, Tensor& delta) {
  Results out = {&weight, &delta};
  for (Tensor& tensor : state) out.push_back(&tensor);
  both("update", {gradient}, out, [&](Backend& of, const Inputs& i, std::vector<Tensor>& o) {
    of.update(rule, i[0], unscale, o[0], std::span(o).subspan(2), o[1]);
  });
}

GradientFacts PairedBackend::facts(std::span<const Tensor> gradients) {
  return run_->facts(gradients);
}
Later<std::vector<GradientFacts>> PairedBackend::facts_later(std::span<const Tensor> gradients) {
  return run_->facts_later(gradients);
}
Later<std::vector<TensorStatistics>> PairedBackend::statistics_later(
    std::span<const Tensor> tensors) {
  return run_->statistics_later(tensors);
}

}  // namespace halfscope::sim::backend
