// SPDX-License-Identifier: Apache-2.0
// Tables and whole tensors of one step, collected until it is known how the step ended.
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

/// A tensor to be counted.
struct TensorToCount {
  log::Role role;
  std::string name;  ///< without the role
  backend::Tensor tensor;
  bool scaled = false;  ///< it carries `scale`
  double scale = 1;
  bool parameter = false;  ///< it gets the shape PyTorch gives it
};

/// Several tensors of one name, as of microbatches, are one: tables add, whole ones follow each
/// other, and the number of tensors is the first dimension where their shapes are alike. The
/// backend counts while the step goes on; write() waits for it.
class StepTables {
 public:
  explicit StepTables(backend::Backend& backend) : backend_(backend) {}

  void clear();
  /// Has them counted as they are now.
  void add(std::span<const TensorToCount> tensors);
  void keep_whole(const std::string& name, const backend::Tensor& tensor);

  void write(log::RunLogWriter& writer, std::int64_t step);
  void write_whole(log::RunLogWriter& writer, std::int64_t step,
                   const std::map<std::string, std::string>& metadata) const;

 private:
  struct Counted {
    std::vector<log::TensorRecord> records;  ///< without what is counted
    backend::Later<std::vector<backend::TensorStatistics>> statistics;
  };
  void take(log::TensorRecord&& record);
  static void merge(log::TensorRecord& into, log::TensorRecord&& record, std::size_t calls);

  backend::Backend& backend_;
  std::vector<Counted> counted_;                                      ///< not in records_ yet
  std::vector<log::TensorRecord> records_;                            ///< in the order they came
  std::map<std::string, std::pair<std::size_t, std::size_t>> index_;  ///< place, how many so far
  std::map<std::string, std::pair<backend::TensorBits, std::int64_t>> whole_;  ///< how many so far
};

}  // namespace halfscope::sim::training
