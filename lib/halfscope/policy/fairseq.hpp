// SPDX-License-Identifier: Apache-2.0
// Policies of fairseq and metaseq (OPT), which test the global gradient norm for overflow.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// Common part of both. They test the binary32 norm of binary16 gradients, which is finite if every
/// gradient is: 65504^2 N < 2^128 for up to 2^96 elements. So they see Attempt::nonfinite.
template <class Self>
struct FairseqScaler {
  double init_scale = 0, scale_factor = 2;
  std::int64_t scale_window = 1;
  double tolerance = 0;
  std::optional<double> threshold = std::nullopt;
  double min_loss_scale = 0;
  static constexpr auto settings() {
    return std::array{Option<Self>{"init_scale", &Self::init_scale, Range::positive},
                      Option<Self>{"scale_factor", &Self::scale_factor, Range::positive},
                      Option<Self>{"scale_window", &Self::scale_window, Range::count},
                      Option<Self>{"tolerance", &Self::tolerance, Range::non_negative},
                      Option<Self>{"threshold", &Self::threshold, Range::non_negative},
                      Option<Self>{"min_loss_scale", &Self::min_loss_scale, Range::non_negative}};
  }

  double current = 0;
  double window = 0;  ///< changed by metaseq, to a non-integer if scale_factor is not an integer
  std::int64_t iteration = 0, last_overflow = -1, last_rescale = -1, overflows_since_rescale = 0;
  static constexpr auto state() {
    return std::array{Option<Self>{"loss_scale", &Self::current},
                      Option<Self>{"scale_window", &Self::window},
                      Option<Self>{"iter", &Self::iteration},
                      Option<Self>{"last_overflow_iter", &Self::last_overflow},
                      Option<Self>{"last_rescale_iter", &Self::last_rescale},
                      Option<Self>{"overflows_since_rescale", &Self::overflows_since_rescale}};
  }

  void start() {
    current = init_scale;
    window = static_cast<double>(scale_window);
  }
  double scale() const { return current; }

 protected:
  /// Lowers the scale and returns true if the share of overflows since its last change is at least
  /// `tolerance`. A tolerated overflow also restarts the count towards growth.
  bool tolerate_or_lower() {
    const std::int64_t since_rescale = iteration - last_rescale;
    last_overflow = iteration;
    ++overflows_since_rescale;
    const double share =
        static_cast<double>(overflows_since_rescale) / static_cast<double>(since_rescale);
    if (share < tolerance) return false;
    current /= scale_factor;
    if (threshold) current = std::max(current, *threshold);
    last_rescale = iteration;
    overflows_since_rescale = 0;
    return true;
  }

  /// Raises the scale if growth is due; returns true if it did.
  bool grow_when_due() {
    if (std::fmod(static_cast<double>(iteration - last_overflow), window) != 0) return false;
    current *= scale_factor;
    last_rescale = iteration;
    return true;
  }
};

/// Formats a number as Python does.
inline std::string python_text(double value) {
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

/// Returns the message at the floor. It contains a setting, and Decision::error must outlive the
/// policy, so each distinct text is stored for the life of the program.
inline std::string_view fairseq_floor_message(double min_loss_scale) {
  static std::mutex mutex;
  static std::set<std::string> kept;
  const std::lock_guard lock(mutex);
  return *kept.insert("FloatingPointError: Minimum loss scale reached (" +
                      python_text(min_loss_scale) +
                      "). Your loss is probably exploding. Try lowering the learning rate, using "
                      "gradient clipping or increasing the batch size.")
              .first;
}

/// fairseq's DynamicLossScaler, with the defaults of its command line for one worker and
/// --update-freq 1: --fp16-scale-window is 2^14 / workers / update frequency. (The class's own
/// defaults are init_scale 2^15, scale_window 2000.)
struct Fairseq : FairseqScaler<Fairseq> {
  static constexpr Info info = {
      .name = "fairseq",
      .framework = "fairseq, DynamicLossScaler",
      .source = "fairseq fairseq/optim/dynamic_loss_scaler.py 3d262bb2",
      .quirk =
          "a scale at or below min_loss_scale ends training, unless threshold keeps it above; "
          "a tolerated overflow restarts growth; decides by the FP32 norm of the FP16 "
          "gradients, which is finite where they are",
      .arithmetic = Arithmetic::binary64,
      .initial = "init_scale",
      .interval = "scale_window",
      .floor = "threshold"};

  Fairseq() {
    init_scale = 128;
    scale_window = 16384;
    min_loss_scale = 1e-4;
  }

  Decision advance(const Attempt& attempt) {
    if (!attempt.nonfinite) {
      grow_when_due();
      ++iteration;
      return {Action::apply};
    }
    const double before = current;
    tolerate_or_lower();
    if (current <= min_loss_scale) {
      current = before;
      return {Action::skip, fairseq_floor_message(min_loss_scale)};
    }
    ++iteration;
    return {Action::skip};
  }
};

/// metaseq's DynamicLossScaler: the window changes with the scale.
struct Metaseq : FairseqScaler<Metaseq> {
  static constexpr Info info = {
      .name = "metaseq",
      .framework = "metaseq (OPT), DynamicLossScaler",
      .source = "metaseq metaseq/optim/dynamic_loss_scaler.py 0ba5657a",
      .quirk =
          "scale_window doubles at growth and halves at backoff; at the floor it goes on "
          "skipping, and the window still halves; decides by the FP32 norm of the FP16 "
          "gradients, which is finite where they are",
      .arithmetic = Arithmetic::binary64,
      .initial = "init_scale",
      .interval = "scale_window",
      .floor = "min_loss_scale"};

  Metaseq() {
    init_scale = 4;
    scale_window = 256;
    min_loss_scale = 0x1p-5;
  }

  Decision advance(const Attempt& attempt) {
    if (!attempt.nonfinite) {
      if (grow_when_due()) window *= scale_factor;
      ++iteration;
      return {Action::apply};
    }
    const double before = current;
    if (tolerate_or_lower()) window = std::max(std::trunc(window / scale_factor), 1.0);
    if (current < min_loss_scale) current = before;
    ++iteration;
    return {Action::skip};
  }
};

}  // namespace halfscope::policy
