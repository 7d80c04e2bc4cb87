// SPDX-License-Identifier: Apache-2.0
// Tables and whole tensors of one step, collected until it is known how the step ended.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "sim/backend.hpp"
#include "sim/tensor_bits.hpp"

namespace halfscope::sim {

/// Several tensors of one name, as of microbatches, are one: tables add, and the number of tensors
/// is the first dimension where their shapes are alike.
class StepTables {
 public:
  explicit StepTables(Backend& backend) : backend_(backend) {}

  void clear();
  /// A parameter's tensor gets the shape PyTorch gives it. scaled: it carries `scale`.
  void add(log::Role role, const std::string& name, const Tensor& tensor, bool scaled, double scale,
           bool parameter);
  void keep_whole(const std::string& name, const Tensor& tensor);

  void write(log::RunLogWriter& writer, std::int64_t step) const;
  void write_whole(log::RunLogWriter& writer, std::int64_t step,
                   const std::map<std::string, std::string>& metadata) const;

 private:
  void merge(log::TensorRecord& into, log::TensorRecord&& record, std::size_t calls);

  Backend& backend_;
  std::vector<log::TensorRecord> records_;                            ///< in the order they came
  std::map<std::string, std::pair<std::size_t, std::size_t>> index_;  ///< place, how many so far
  std::map<std::string, TensorBits> whole_;
};

}  // namespace halfscope::sim
