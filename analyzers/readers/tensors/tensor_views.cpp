// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/tensor_views.hpp"

#include <algorithm>
#include <utility>

namespace halfscope::analyzers::readers::tensors {
namespace {

class RenamedFile final : public log::TensorFile {
 public:
  RenamedFile(std::unique_ptr<log::TensorFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), skipped_(file_->skipped()) {
    for (log::SkippedTensor& skipped : skipped_) skipped.name = name_;
  }

  void for_each(const std::function<void(const log::NamedTensor&)>& visit) const override {
    file_->for_each([&](const log::NamedTensor& tensor) {
      visit({name_, tensor.shape, tensor.view});
    });
  }
  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }
  std::vector<std::string> names() const override {
    return std::vector<std::string>(file_->names().size(), name_);
  }
  std::shared_ptr<const log::NamedTensor> tensor(std::string_view name) const override {
    const std::vector<std::string> names = file_->names();
    if (name != name_ || names.empty()) return nullptr;
    struct Held {
      std::shared_ptr<const log::NamedTensor> data;
      log::NamedTensor tensor;
    };
    auto held = std::make_shared<Held>();
    held->data = file_->tensor(names.front());
    held->tensor = {name_, held->data->shape, held->data->view};
    return {held, &held->tensor};
  }
  std::optional<log::NamedTensor> outline(std::string_view name) const override {
    const std::vector<std::string> names = file_->names();
    if (name != name_ || names.empty()) return std::nullopt;
    std::optional<log::NamedTensor> known = file_->outline(names.front());
    known->name = name_;
    return known;
  }
  std::string shows_weights() const override { return file_->shows_weights(); }

 private:
  std::unique_ptr<log::TensorFile> file_;
  std::string name_;
  std::vector<log::SkippedTensor> skipped_;
};

class ChosenFile final : public log::TensorFile {
 public:
  ChosenFile(std::unique_ptr<log::TensorFile> file,
             std::shared_ptr<const std::set<std::string>> names)
      : file_(std::move(file)), names_(std::move(names)) {
    for (const log::SkippedTensor& skipped : file_->skipped()) {
      if (names_->contains(skipped.name)) skipped_.push_back(skipped);
    }
  }

  void for_each(const std::function<void(const log::NamedTensor&)>& visit) const override {
    file_->for_each([&](const log::NamedTensor& tensor) {
      if (names_->contains(tensor.name)) visit(tensor);
    });
  }
  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> all = file_->names();
    std::erase_if(all, [&](const std::string& name) { return !names_->contains(name); });
    return all;
  }
  std::shared_ptr<const log::NamedTensor> tensor(std::string_view name) const override {
    return names_->contains(std::string(name)) ? file_->tensor(name) : nullptr;
  }
  std::optional<log::NamedTensor> outline(std::string_view name) const override {
    return names_->contains(std::string(name)) ? file_->outline(name) : std::nullopt;
  }
  std::string shows_weights() const override { return file_->shows_weights(); }

 private:
  std::unique_ptr<log::TensorFile> file_;
  std::shared_ptr<const std::set<std::string>> names_;
  std::vector<log::SkippedTensor> skipped_;
};

}  // namespace

std::unique_ptr<log::TensorFile> renamed(std::unique_ptr<log::TensorFile> file, std::string name) {
  return std::make_unique<RenamedFile>(std::move(file), std::move(name));
}

std::unique_ptr<log::TensorFile> chosen(std::unique_ptr<log::TensorFile> file,
                                        std::shared_ptr<const std::set<std::string>> names) {
  return std::make_unique<ChosenFile>(std::move(file), std::move(names));
}

}  // namespace halfscope::analyzers::readers::tensors
