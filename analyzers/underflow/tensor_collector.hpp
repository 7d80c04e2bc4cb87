// SPDX-License-Identifier: Apache-2.0
// Computes the findings of one log's tensors from its frames.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "analyzers/underflow/provenance.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/log/name_index.hpp"

namespace halfscope::analyzers::underflow {

/// Collects the frames of one log. A log may have a million tensors, so names are stored only once.
class TensorCollector {
 public:
  /// Keeps a reference to the target.
  TensorCollector(std::string log, const Target& target)
      : log_(std::move(log)), target_(target), known_in_bfloat16_(target.by_default) {}
  TensorCollector(const TensorCollector&) = delete;
  TensorCollector& operator=(const TensorCollector&) = delete;
  ~TensorCollector() = default;

  bool empty() const { return tensors_.empty(); }
  /// Adds a frame. `loss_scale`: the scale that the counts are for.
  void add(const frames::Frame& frame, double loss_scale);
  /// Analysis::known_in_bfloat16 for this log.
  bool known_in_bfloat16() const { return known_in_bfloat16_; }
  /// Returns the findings by role, then by first appearance.
  std::vector<TensorFindings> finish() &&;

 private:
  /// State of a tensor while frames are added, in addition to its findings.
  struct PendingState {
    std::int64_t last_step = 0;
    Provenance provenance = {};
  };
  static_assert(std::is_nothrow_move_constructible_v<TensorFindings>, "else growth copies");

  std::size_t place_of(const frames::Frame& frame);
  void finish(std::size_t place);

  log::SharedText log_;
  const Target& target_;
  bool known_in_bfloat16_;
  std::vector<TensorFindings> tensors_;
  std::vector<PendingState> pending_;
  log::NameIndex<std::vector<TensorFindings>> places_{tensors_};
};

}  // namespace halfscope::analyzers::underflow
