// SPDX-License-Identifier: Apache-2.0
// Judge of lib/halfscope/optimizer: the step of one element, written as straight formulas for each
// row. Shares no code with the interpreter; settings and names of rows alone are the library's.
#pragma once

#include <cfloat>
#include <cmath>
#include <string_view>

#include "halfscope/optimizer/step.hpp"

namespace halfscope::step_judge {

using optimizer::Algorithm;

struct Element {
  float w, g, m, v, x;
};

/// How one element is computed.
struct Case {
  std::string_view row;
  optimizer::Settings s;
  optimizer::StepOptions o;
  bool fma = true;  ///< the processor has the instruction
  bool tail = false;
};

inline bool is_16_bit(const Case& c) { return c.o.dtype == Dtype::bf16 || c.o.dtype == Dtype::f16; }
inline bool is_fused(const Case& c) {
  return c.row.find("fused") != c.row.npos || c.row == "torchao";
}
inline bool is_cpu(const Case& c) { return c.row.starts_with("cpu"); }
inline bool is_foreach(const Case& c) { return c.row.find("foreach") != c.row.npos; }

/// Rounds to the dtype, by binary64's scaling.
inline float rounded(const Case& c, float value) {
  if (!is_16_bit(c) || !std::isfinite(value) || value == 0) return value;
  const bool half = c.o.dtype == Dtype::f16;
  const int digits = half ? 10 : 7, least = half ? -14 : -126;
  const int exponent = std::max(std::ilogb(value), least);
  const double kept = std::nearbyint(std::ldexp(static_cast<double>(value), digits - exponent));
  const double result = std::ldexp(kept, exponent - digits);
  const double most = half ? 65504.0 : std::ldexp(255.0, 120);
  return static_cast<float>(std::abs(result) > most ? std::copysign(INFINITY, result) : result);
}

/// The same where PyTorch's operations store their results: not in kernels that store once.
inline float stored(const Case& c, float value) { return is_fused(c) ? value : rounded(c, value); }

/// A number as it meets the elements: binary32, and for some operations of CPUs the dtype.
inline float narrow(const Case& c, double number) {
  const auto value = static_cast<float>(number);
  return is_cpu(c) && !is_fused(c) ? rounded(c, value) : value;
}
inline float narrow_if_foreach(const Case& c, double number) {
  return is_foreach(c) ? narrow(c, number) : static_cast<float>(number);
}

inline float fma(const Case& c, float a, float b, float d) {
  return c.fma ? std::fma(a, b, d) : a * b + d;
}

/// Tensor.add(other, alpha=).
inline float add(const Case& c, float value, float other, double alpha) {
  const float number = narrow(c, alpha);
  if (c.tail && is_16_bit(c) && is_cpu(c) && !is_fused(c)) {
    return stored(c, value + stored(c, number * other));
  }
  return stored(c, fma(c, number, other, value));
}

/// The last operation on a weight: if only the update is wanted, nothing is rounded to 16 bits.
inline float last(const Case& c, float value) { return c.o.update_only ? value : stored(c, value); }

inline float larger(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b;
}

inline float power(double beta, double steps) {
  return static_cast<float>(std::pow(static_cast<float>(beta), steps));
}

/// Gradient as all kernels but those in binary64 begin.
inline void begin(const Case& c, Element& e) {
  if (c.o.scale != 1) e.g = stored(c, e.g / static_cast<float>(c.o.scale));
  if (c.s.maximize) e.g = -e.g;
}

inline void sgd(const Case& c, Element& e) {
  begin(c, e);
  const auto& s = c.s;
  if (s.weight_decay != 0) e.g = add(c, e.g, e.w, s.weight_decay);
  if (s.momentum != 0) {
    const double undamped = 1 - s.dampening;
    if (c.o.moments_are_new) {
    } else if (c.o.first) {
      e.m = e.g;
    } else if (c.row == "cpu-fused" && c.tail) {
      e.m = fma(c, e.m, static_cast<float>(s.momentum), e.g * static_cast<float>(undamped));
    } else {
      e.m = add(c, stored(c, e.m * narrow_if_foreach(c, s.momentum)), e.g, undamped);
    }
    e.g = s.nesterov ? add(c, e.g, e.m, s.momentum) : e.m;
  }
  if (!c.o.update_only) {
    e.w = add(c, e.w, e.g, -s.lr);
  } else if (c.tail && is_16_bit(c) && is_cpu(c) && !is_fused(c)) {
    e.w = 0 + stored(c, narrow(c, -s.lr) * e.g);
  } else {
    e.w = fma(c, narrow(c, -s.lr), e.g, 0);
  }
}

/// FusedSgdKernel.cu: numbers, and the buffer until it is stored, are binary64.
inline void fused_sgd_cuda(const Case& c, Element& e) {
  const auto& s = c.s;
  const auto to_float = [](double value) { return static_cast<float>(value); };
  if (c.o.scale != 1) e.g = to_float(e.g / c.o.scale);
  if (s.weight_decay != 0) e.g = to_float(std::fma(s.weight_decay, double(e.w), double(e.g)));
  if (s.momentum != 0) {
    double m = e.m;
    if (!c.o.moments_are_new) {
      m = c.o.first ? e.g : std::fma(s.momentum, m, (1 - s.dampening) * e.g);
    }
    e.g = to_float(s.nesterov ? std::fma(s.momentum, m, double(e.g)) : m);
    e.m = to_float(m);
  }
  if (s.maximize) e.g = -e.g;
  e.w = to_float(std::fma(-s.lr, double(e.g), c.o.update_only ? 0.0 : double(e.w)));
}

/// Weight decay and both moments of torch.optim's operations. Returns the denominator's square
/// root.
inline float moments(const Case& c, Element& e, float& decayed) {
  begin(c, e);
  const auto& s = c.s;
  decayed = c.o.update_only ? 0 : e.w;
  if (s.weight_decay != 0 && s.algorithm == Algorithm::adamw) {
    const float kept = narrow_if_foreach(c, 1 - s.lr * s.weight_decay);
    decayed = c.o.update_only ? e.w * (kept - 1) : stored(c, e.w * kept);
  } else if (s.weight_decay != 0) {
    e.g = add(c, e.g, e.w, s.weight_decay);
  }
  if (!c.o.moments_are_new) {
    const float apart = e.g - e.m;
    const auto share = static_cast<float>(1 - s.beta1);
    const float rest = 1 - share;
    if (1 - s.beta1 < 0.5) {
      e.m = stored(c, fma(c, share, apart, e.m));
    } else if (is_cpu(c) && (!c.tail || (!c.fma && c.row != "cpu-fused"))) {
      e.m = stored(c, fma(c, share - 1, apart, e.g));
    } else {
      e.m = stored(c, fma(c, -apart, rest, e.g));
    }
    const auto new2 = static_cast<float>(1 - s.beta2);
    const auto beta2 = static_cast<float>(s.beta2);
    if (c.row == "cpu-fused" && c.tail) {
      e.v = fma(c, e.v, beta2, new2 * e.g * e.g);
    } else {
      e.v = stored(c, e.v * narrow_if_foreach(c, s.beta2));
      e.v = stored(c, is_cpu(c) ? fma(c, new2 * e.g, e.g, e.v) : fma(c, new2, e.g * e.g, e.v));
    }
    if (s.amsgrad) e.x = larger(e.x, e.v);
  }
  return stored(c, std::sqrt(s.amsgrad ? e.x : e.v));
}

inline void adam(const Case& c, Element& e) {
  const auto& s = c.s;
  float decayed = 0;
  const float root = moments(c, e, decayed);
  const auto number = [](double value) { return static_cast<float>(value); };
  const double step_size = s.lr / (1 - std::pow(s.beta1, c.o.steps));
  const float root2 = number(std::pow(1 - std::pow(s.beta2, c.o.steps), 0.5));
  if (is_cpu(c)) {
    const float denominator = stored(c, stored(c, root / root2) + narrow(c, s.eps));
    e.w = last(c, decayed + number(-step_size) * e.m / denominator);
    return;
  }
  const float by = is_foreach(c) ? root / root2 : root * number(1.0 / root2);
  const float denominator = stored(c, stored(c, by) + number(s.eps));
  e.w = last(c, std::fma(number(-step_size), e.m / denominator, decayed));
}

inline void capturable(const Case& c, Element& e) {
  const auto& s = c.s;
  float decayed = 0;
  const float root = moments(c, e, decayed);
  const auto lr = static_cast<float>(s.lr), eps = static_cast<float>(s.eps);
  const float one = 1 - power(s.beta1, c.o.steps);
  const float root2 = std::sqrt(1 - power(s.beta2, c.o.steps));
  const auto tensor = [&](float number) { return rounded(c, number); };  // it has one element
  float denominator = 0;
  if (is_foreach(c)) {
    const float negative = 1 / ((power(s.beta1, c.o.steps) - 1) / lr);
    denominator = stored(c, stored(c, stored(c, root / tensor(root2)) + eps) / tensor(negative));
  } else {
    const float negative = -((1 / one) * lr);
    denominator =
        stored(c, stored(c, root / tensor(root2 * negative)) + tensor((1 / negative) * eps));
  }
  e.w = last(c, decayed + e.m / denominator);
}

inline void fused_adam_cuda(const Case& c, Element& e) {
  begin(c, e);
  const auto& s = c.s;
  const auto lr = static_cast<float>(s.lr), decay = static_cast<float>(s.weight_decay);
  const auto beta1 = static_cast<float>(s.beta1), beta2 = static_cast<float>(s.beta2);
  float w = c.o.update_only ? 0 : e.w;
  if (decay != 0 && s.algorithm == Algorithm::adam) e.g = std::fma(decay, e.w, e.g);
  if (decay != 0 && s.algorithm == Algorithm::adamw) w = std::fma(-(lr * decay), e.w, w);
  if (!c.o.moments_are_new) {
    const float g2 = e.g * e.g;
    e.m = std::fma(beta1, e.m, std::fma(-beta1, e.g, e.g));
    e.v = std::fma(beta2, e.v, std::fma(-beta2, g2, g2));
    if (s.amsgrad) e.x = larger(e.x, e.v);
  }
  const float root2 = std::sqrt(1 - power(s.beta2, c.o.steps));
  const float denominator = std::sqrt(s.amsgrad ? e.x : e.v) / root2 + static_cast<float>(s.eps);
  e.w = w - lr / (1 - power(s.beta1, c.o.steps)) * e.m / denominator;
}

inline void fused_adam_cuda_2025(const Case& c, Element& e) {
  const auto& s = c.s;
  const auto to_float = [](double value) { return static_cast<float>(value); };
  const double w0 = e.w;
  float w = c.o.update_only ? 0 : e.w;
  if (c.o.scale != 1) e.g = to_float(e.g / c.o.scale);
  if (s.maximize) e.g = -e.g;
  const bool decoupled = s.algorithm == Algorithm::adamw;
  if (s.weight_decay != 0 && !decoupled) e.g = to_float(std::fma(w0, s.weight_decay, double(e.g)));
  if (s.weight_decay != 0 && decoupled) {
    w = to_float(std::fma(-(s.lr * s.weight_decay), w0, double(w)));
  }
  if (!c.o.moments_are_new) {
    e.m = to_float(std::fma(s.beta1, double(e.m), (1 - s.beta1) * e.g));
    e.v = to_float(std::fma(s.beta2, double(e.v), (1 - s.beta2) * e.g * e.g));
    if (s.amsgrad) e.x = larger(e.x, e.v);
  }
  const float one = to_float(1 - std::pow(s.beta1, c.o.steps));
  const float root2 = std::sqrt(to_float(1 - std::pow(s.beta2, c.o.steps)));
  const float denominator = to_float(std::sqrt(s.amsgrad ? e.x : e.v) / root2 + s.eps);
  e.w = w - to_float(s.lr / one) * e.m / denominator;
}

inline void torchao(const Case& c, Element& e) {
  begin(c, e);
  const auto& s = c.s;
  const auto lr = static_cast<float>(s.lr), decay = static_cast<float>(s.weight_decay);
  float w = c.o.update_only ? 0 : e.w;
  if (decay != 0 && s.algorithm == Algorithm::adamw) w = w - lr * decay * e.w;
  if (decay != 0 && s.algorithm == Algorithm::adam) e.g = e.g + decay * e.w;
  if (!c.o.moments_are_new) {
    const auto share = static_cast<float>(1 - s.beta1);
    const float rest = 1 - share;
    const float apart = e.g - e.m;
    e.m = 1 - s.beta1 < 0.5 ? std::fma(share, apart, e.m) : std::fma(-apart, rest, e.g);
    e.v = std::fma(static_cast<float>(1 - s.beta2), e.g * e.g - e.v, e.v);
    if (s.amsgrad) e.x = larger(e.x, e.v);
  }
  const float root2 = std::sqrt(1 - power(s.beta2, c.o.steps));
  const float denominator = std::sqrt(s.amsgrad ? e.x : e.v) / root2 + static_cast<float>(s.eps);
  e.w = w - lr * (e.m / (1 - power(s.beta1, c.o.steps))) / denominator;
}

/// Returns the element after the step.
inline Element after(const Case& c, Element e) {
  const bool is_sgd = c.s.algorithm == Algorithm::sgd;
  if (is_sgd && c.row.starts_with("cuda-fused")) {
    fused_sgd_cuda(c, e);
  } else if (is_sgd) {
    sgd(c, e);
  } else if (c.row == "cuda-fused") {
    fused_adam_cuda(c, e);
  } else if (c.row == "cuda-fused-2025") {
    fused_adam_cuda_2025(c, e);
  } else if (c.row == "torchao") {
    torchao(c, e);
  } else if (c.row.find("capturable") != c.row.npos) {
    capturable(c, e);
  } else {
    adam(c, e);
  }
  if (!c.o.update_only) e.w = rounded(c, e.w);
  e.m = rounded(c, e.m);
  e.v = rounded(c, e.v);
  e.x = rounded(c, e.x);
  return e;
}

/// Returns true if element i of n is behind the last full vector of its part.
inline bool in_tail(const Case& c, bool default_processor, std::size_t i, std::size_t n) {
  const std::size_t vector = is_16_bit(c) ? 16 : 8;
  if (c.row == "cpu-fused") return i >= n / vector * vector;
  if (!is_cpu(c)) return false;
  if (default_processor) return true;
  const auto grains = static_cast<int>((n + 32767) / 32768);
  const auto parts = static_cast<std::size_t>(std::max(1, std::min(c.o.threads, grains)));
  const std::size_t part = (n + parts - 1) / parts;
  const std::size_t first = i / part * part, size = std::min(n - first, part);
  return i - first >= size / (2 * vector) * (2 * vector);
}

}  // namespace halfscope::step_judge
