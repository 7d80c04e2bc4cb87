// SPDX-License-Identifier: Apache-2.0
// Collects the histograms and whole tensors of one step until the step's outcome is known.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "sim/backend/backend.hpp"
#include "sim/backend/tensor_bits.hpp"

namespace halfscope::sim::training {

/// A tensor whose histogram is computed.
struct TensorToCount {
  log::Role role;
  std::string name;  ///< without the role
  backend::Tensor tensor;
  bool scaled = false;  ///< the values are multiplied by `scale`
  double scale = 1;
  bool parameter = false;  ///< true: recorded with the shape that PyTorch uses
};

/// Histograms and whole tensors of a step. Tensors with the same name (such as those of several
/// microbatches) are combined: histograms are added, whole tensors are concatenated, and if their
/// shapes are equal, the number of tensors becomes the first dimension. The backend computes
/// histograms while the step continues; write() waits for them.
class StepTables {
 public:
  explicit StepTables(backend::Backend& backend) : backend_(backend) {}

  void clear();
  /// Starts the computation of histograms of the tensors' current values.
  void add(std::span<const TensorToCount> tensors);
  void keep_whole(const std::string& name, const backend::Tensor& tensor);

  void write(log::RunLogWriter& writer, std::int64_t step);
  void write_whole(log::RunLogWriter& writer, std::int64_t step,
                   const std::map<std::string, std::string>& metadata) const;

 private:
  struct Counted {
    std::vector<log::TensorRecord> records;  ///< without histograms and moments
    backend::Later<std::vector<backend::TensorStatistics>> statistics;
  };
  void take(log::TensorRecord&& record);
  static void merge(log::TensorRecord& into, log::TensorRecord&& record, std::size_t calls);

  backend::Backend& backend_;
  std::vector<Counted> counted_;            ///< not in records_ yet
  std::vector<log::TensorRecord> records_;  ///< in the order of their first tensors
  std::map<std::string, std::pair<std::size_t, std::size_t>> index_;           ///< index, count
  std::map<std::string, std::pair<backend::TensorBits, std::int64_t>> whole_;  ///< values, count
};

}  // namespace halfscope::sim::training
