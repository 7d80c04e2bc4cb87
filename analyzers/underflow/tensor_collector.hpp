// SPDX-License-Identifier: Apache-2.0
// The findings of one log's tensors, from its frames.
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

/// Takes the frames of one log. May hold a million tensors: a name stands in its tensor alone.
class TensorCollector {
 public:
  /// Refers to the target.
  TensorCollector(std::string log, const Target& target)
      : log_(std::move(log)), target_(target), known_in_bfloat16_(target.by_default) {}
  TensorCollector(const TensorCollector&) = delete;
  TensorCollector& operator=(const TensorCollector&) = delete;
  ~TensorCollector() = default;

  bool empty() const { return tensors_.empty(); }
  /// loss_scale: the one that the counts are for.
  void add(const frames::Frame& frame, double loss_scale);
  /// Analysis::known_in_bfloat16, of this log.
  bool known_in_bfloat16() const { return known_in_bfloat16_; }
  /// By role, then first appearance.
  std::vector<TensorFindings> finish() &&;

 private:
  /// What is known of a tensor so far, beside its findings.
  struct Beside {
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
  std::vector<Beside> beside_;
  log::NameIndex<std::vector<TensorFindings>> places_{tensors_};
};

}  // namespace halfscope::analyzers::underflow
