// SPDX-License-Identifier: Apache-2.0
// A JSON value in a struct of which most readers never look at it.
#pragma once

#include <memory>

#include <nlohmann/json_fwd.hpp>

namespace halfscope::log {

/// Holds a JSON value as std::indirect (C++26) would: copies are deep, const reaches inside, and
/// what was moved from may only be assigned to or destroyed. Whoever looks inside includes
/// nlohmann/json.hpp, which takes the compiler longer than most of our files.
class Document {
 public:
  Document();  ///< an empty object
  explicit Document(nlohmann::json value);
  Document(const Document& other);
  Document(Document&& other) noexcept;
  Document& operator=(const Document& other);
  Document& operator=(Document&& other) noexcept;
  ~Document();

  nlohmann::json& operator*() { return *value_; }
  const nlohmann::json& operator*() const { return *value_; }
  nlohmann::json* operator->() { return value_.get(); }
  const nlohmann::json* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<nlohmann::json> value_;
};

}  // namespace halfscope::log
