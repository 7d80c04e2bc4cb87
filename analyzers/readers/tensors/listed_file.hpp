// SPDX-License-Identifier: Apache-2.0
// Files whose tensors stand in a list, each under its name.
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

/// Entry: what is known of a tensor that is not loaded; it has a `name`.
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
  virtual std::shared_ptr<const log::NamedTensor> load(const Entry& entry) const = 0;
  virtual log::NamedTensor outline_of(const Entry& entry) const = 0;
  /// The list is whole.
  void index_names() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  }

  std::vector<Entry> tensors_;
  std::vector<log::SkippedTensor> skipped_;

 private:
  std::unordered_map<std::string_view, std::size_t> by_name_;  ///< into tensors_
};

}  // namespace halfscope::analyzers::readers::tensors
