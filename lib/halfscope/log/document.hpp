// SPDX-License-Identifier: Apache-2.0
// A JSON value as a struct member, without including the JSON library.
#pragma once

#include <memory>

#include <nlohmann/json_fwd.hpp>

namespace halfscope::log {

/// A JSON value with the semantics of std::indirect (C++26): copies are deep, const propagates to
/// the value, and a moved-from object may only be assigned to or destroyed. Code that uses the
/// value includes nlohmann/json.hpp, which is slow to compile.
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
