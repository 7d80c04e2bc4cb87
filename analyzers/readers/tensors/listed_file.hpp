// SPDX-License-Identifier: Apache-2.0
// Base class of tensor files that list their tensors by name.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// A tensor file that lists its readable tensors. `Entry` describes one and has a member `name`.
/// Derived classes fill `tensors_` and `skipped_`, then call index_names().
template <class Entry>
class ListedFile : public log::TensorFile {
 public:
  void for_each(const std::function<void(const log::NamedTensor&)>& visit) const override {
    for (const Entry& entry : tensors_) visit(*load(entry));
  }
  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    all.reserve(tensors_.size());
    for (const Entry& entry : tensors_) all.push_back(entry.name);
    return all;
  }
  std::shared_ptr<const log::NamedTensor> tensor(std::string_view name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : load(tensors_[found->second]);
  }
  std::optional<log::NamedTensor> outline(std::string_view name) const override {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    return outline_of(tensors_[found->second]);
  }

 protected:
  /// Returns the tensor with its values.
  virtual std::shared_ptr<const log::NamedTensor> load(const Entry& entry) const = 0;
  /// Returns the tensor without its values: the pointer of its view is null.
  virtual log::NamedTensor outline_of(const Entry& entry) const = 0;
  /// Builds the index of names. `tensors_` must not change after this call.
  void index_names() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  }

  std::vector<Entry> tensors_;
  std::vector<log::SkippedTensor> skipped_;

 private:
  std::unordered_map<std::string_view, std::size_t> by_name_;  ///< index into tensors_
};

}  // namespace halfscope::analyzers::readers::tensors
